//! Tests that protocol, versions and publication do not depend on the replica.

/// The generic files, except the protocol's own.
const GENERIC: [(&str, &str); 5] = [
    ("handles.rs", include_str!("../handles.rs")),
    ("log.rs", include_str!("../log.rs")),
    (
        "publish_interval.rs",
        include_str!("../publish_interval.rs"),
    ),
    ("replica.rs", include_str!("../replica.rs")),
    ("writer.rs", include_str!("../writer.rs")),
];

/// The names of the crate outside of `table` that these files may use: the error of
/// `try_apply`, and the default of a type parameter.
const ALLOWED: [&str; 2] = [
    "use crate::model::error::TryApplyError;",
    "use super::EngineReplica;",
];

#[test]
fn generic_files_name_nothing_of_rules() {
    for (name, source) in GENERIC {
        for (number, line) in source.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let names = [
                "crate::",
                "super::super",
                "rules::",
                "EngineReplica",
                "PolicyReplica",
            ];
            let default = code.contains("R: Replica = EngineReplica>");
            let found = names.iter().any(|name| code.contains(name));
            assert!(
                !found || default || ALLOWED.contains(&code.trim()),
                "{name}, line {}: {line}",
                number + 1
            );
        }
    }
}
