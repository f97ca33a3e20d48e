//! No map has a hash function that is the same in every process: an attacker who
//! knows the function could choose rules, flows or packets that all fall into one
//! bucket.

use std::fs;

mod project;

use project::{files, root};

/// Hash functions without a random seed.
const FIXED_HASHERS: [&str; 5] = [
    "FixedState",
    "FxHash",
    "DefaultHasher::new",
    "BuildHasherDefault",
    "SipHasher::new(",
];

/// Returns the lines of a source that use a fixed hash function, except in tests.
fn fixed_hashers(text: &str) -> Vec<usize> {
    let product_code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let numbered = product_code.lines().zip(1..);
    numbered
        .filter(|(line, _)| {
            let code = line.split("//").next().unwrap();
            FIXED_HASHERS.iter().any(|name| code.contains(name))
        })
        .map(|(_, number)| number)
        .collect()
}

#[test]
fn every_map_is_seeded_at_random() {
    let (mut file_count, mut fixed) = (0, Vec::new());
    for member in fs::read_dir(root().join("crates")).unwrap() {
        let folder = member.unwrap().path().join("src");
        for path in files(&folder, ".rs") {
            file_count += 1;
            let is_test = path.components().any(|part| part.as_os_str() == "tests")
                || path.ends_with("tests.rs");
            let text = fs::read_to_string(&path).unwrap();
            if !is_test {
                let lines = fixed_hashers(&text).into_iter();
                fixed.extend(lines.map(|line| format!("{}:{line}", path.display())));
            }
        }
    }
    assert!(file_count > 300, "{file_count} files");
    assert!(
        fixed.is_empty(),
        "maps with a fixed hash function: {fixed:#?}"
    );
}

#[test]
fn a_fixed_hash_function_is_noticed() {
    let text = "use a::b;\ntype Map = HashMap<u32, u32, foldhash::fast::FixedState>;\n";
    assert_eq!(fixed_hashers(text), [2]);
    assert_eq!(
        fixed_hashers(&text.replace("FixedState", "RandomState")),
        []
    );
    assert_eq!(fixed_hashers("// FixedState\n"), []);
}
