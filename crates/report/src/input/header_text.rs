//! One header as the user types it: `src=10.0.0.1 dport=443 proto=tcp`.

use classyard::Policy;
use classyard::error::HeaderTextError;
use classyard::policy::{HeaderText, PartId};

use crate::failure::Failure;
use crate::suggestion::did_you_mean;

/// Parses `field=value` pairs separated by spaces or commas. Missing fields are 0.
/// If a policy has several families, the addresses determine the family.
pub fn parse(text: &str, policy: &Policy) -> Result<(PartId, HeaderText), Failure> {
    policy.parse_header(text).map_err(failure)
}

/// Converts an error into a message and help.
fn failure(error: HeaderTextError) -> Failure {
    match error {
        HeaderTextError::NoPair { text } => {
            let example = crate::embedded::HEADER;
            Failure::usage(format!("`{text}` is not a header"))
                .with_help(format!("write field=value pairs, such as \"{example}\""))
        }
        HeaderTextError::UnknownField {
            schema,
            name,
            fields,
        } => {
            let hint = did_you_mean(&name, fields.iter().map(String::as_str));
            Failure::usage(format!("{schema} has no field `{name}`{hint}"))
                .with_help(format!("its fields are {}", fields.join(", ")))
        }
        HeaderTextError::BadValue {
            name,
            text,
            expected,
        } => Failure::usage(format!("{name}: `{text}` is not a value of the field"))
            .with_help(format!("expected {expected}")),
        other => Failure::usage(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_tell_the_family() {
        let policy = Policy::dual_stack();
        let (part, header) = parse("src=10.0.0.1,proto=tcp", &policy).unwrap();
        assert_eq!(part.index(), 0);
        assert_eq!(header.values, [0x0a00_0001, 0, 0, 0, 6]);
        assert_eq!(header.missing.len(), 3);
        let (part, _) = parse("dst=2001:db8::1", &policy).unwrap();
        assert_eq!(part.index(), 1);
    }

    #[test]
    fn nonsense_is_refused() {
        let policy = Policy::dual_stack();
        for text in [
            "",
            "src",
            "src=10.0.0.1 src=10.0.0.1",
            "sprt=1",
            "sport=65536",
            "src=x",
        ] {
            assert!(parse(text, &policy).is_err(), "{text}");
        }
    }
}
