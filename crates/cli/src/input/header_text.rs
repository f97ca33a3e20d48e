//! One header, as the user types it: `src=10.0.0.1 dport=443 proto=tcp`.

use std::sync::Arc;

use classyard::policy::PartId;
use classyard::value::ValueFormat;
use classyard::{Field, FieldId, Policy, Schema};

use super::did_you_mean;
use crate::failure::Failure;
use crate::output::style::counted;

/// A header of one part of a policy.
pub(crate) struct Header {
    /// The part.
    pub(crate) part: PartId,
    /// One value for each field.
    pub(crate) values: Vec<u128>,
    /// The fields that were not given and are 0 for it.
    pub(crate) missing: Vec<FieldId>,
}

/// Reads `field=value` pairs that are parted by spaces or commas. Fields that
/// are not given are 0. In a policy of several families the addresses tell
/// which one it is.
pub(crate) fn parse(text: &str, policy: &Policy) -> Result<Header, Failure> {
    let pairs = pairs(text)?;
    let part = part_of(&pairs, policy);
    let schema = policy.part(part).schema();
    let mut values: Vec<Option<u128>> = vec![None; schema.fields().len()];
    for (name, value) in pairs {
        let id = field(schema, name)?;
        let slot = &mut values[id.index()];
        if slot.is_some() {
            return Err(Failure::usage(format!("the header says `{name}` twice")));
        }
        *slot = Some(parse_value(schema, id, value)?);
    }
    let missing = schema.field_ids().filter(|id| values[id.index()].is_none());
    Ok(Header {
        part,
        missing: missing.collect(),
        values: values.into_iter().map(Option::unwrap_or_default).collect(),
    })
}

fn pairs(text: &str) -> Result<Vec<(&str, &str)>, Failure> {
    let words = text.split([' ', ',', '\t', '\n']).filter(|w| !w.is_empty());
    let pairs: Option<Vec<_>> = words.map(|word| word.split_once('=')).collect();
    match pairs {
        Some(pairs) if !pairs.is_empty() => Ok(pairs),
        _ => Err(
            Failure::usage(format!("`{text}` is no header")).with_help(format!(
                "write field=value pairs, such as \"{}\"",
                crate::embedded::HEADER
            )),
        ),
    }
}

/// The part whose addresses look like the header's: the first in which every
/// address can be read.
fn part_of(pairs: &[(&str, &str)], policy: &Policy) -> PartId {
    let fits = |part: &PartId| {
        let schema = policy.part(*part).schema();
        pairs.iter().all(|(name, value)| {
            schema.field_named(name).is_none_or(|id| {
                let format = schema.field(id).format();
                match format {
                    ValueFormat::Ipv4 => !value.contains(':'),
                    ValueFormat::Ipv6 => !value.contains('.') || value.contains(':'),
                    _ => true,
                }
            })
        })
    };
    policy.part_ids().find(fits).unwrap_or(PartId::FIRST)
}

fn field(schema: &Arc<Schema>, name: &str) -> Result<FieldId, Failure> {
    schema.field_named(name).ok_or_else(|| {
        let names: Vec<&str> = schema.fields().iter().map(Field::name).collect();
        let hint = did_you_mean(name, names.iter().copied());
        Failure::usage(format!("{} has no field `{name}`{hint}", schema.name()))
            .with_help(format!("its fields are {}", names.join(", ")))
    })
}

fn parse_value(schema: &Schema, id: FieldId, text: &str) -> Result<u128, Failure> {
    let field = schema.field(id);
    let value = field.format().parse(text).ok_or_else(|| {
        Failure::usage(format!(
            "{}: `{text}` is no value of the field",
            field.name()
        ))
        .with_help(format!("expected {}", field.format().expectation()))
    })?;
    if value > field.max_value() {
        return Err(Failure::usage(format!(
            "{}: {text} does not fit in {}",
            field.name(),
            counted(field.width(), "bit")
        )));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_tell_the_family() {
        let policy = Policy::dual_stack();
        let header = parse("src=10.0.0.1,proto=tcp", &policy).unwrap_or_else(|_| panic!());
        assert_eq!(header.part.index(), 0);
        assert_eq!(header.values, [0x0a00_0001, 0, 0, 0, 6]);
        assert_eq!(header.missing.len(), 3);
        let header = parse("dst=2001:db8::1", &policy).unwrap_or_else(|_| panic!());
        assert_eq!(header.part.index(), 1);
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
