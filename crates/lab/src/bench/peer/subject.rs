//! The file of rules and headers that a peer reads, and the file of winners that it
//! writes.
//!
//! `bench/peers/common/subject.h` describes the file.

use std::io::{self, Write};

use classyard::schema::{Field, MatchKind};
use classyard::{FieldMatch, KeyVec, RuleSet, Winner};

/// Returns an error if a peer cannot use the rules: the file format has only prefix
/// masks, on prefix and range fields.
pub(super) fn check(rules: &RuleSet) -> Result<(), String> {
    let schema = rules.schema();
    for rule in rules.iter() {
        for id in schema.field_ids() {
            let (field, wanted) = (schema.field(id), rule.field(id));
            let masked = matches!(wanted, FieldMatch::Ternary { .. });
            if masked && field.kind() != MatchKind::Ternary {
                return Err(format!(
                    "peers take no masks on {} fields, and rule {} has {}={}",
                    field.kind(),
                    rule.id(),
                    field.name(),
                    wanted.describe(field)
                ));
            }
        }
    }
    Ok(())
}

/// Writes rules, best first, and headers.
pub(super) fn write(rules: &RuleSet, headers: &KeyVec, out: &mut dyn Write) -> io::Result<()> {
    let schema = rules.schema();
    writeln!(out, "classyard-subject 1")?;
    writeln!(out, "schema {}", schema.name())?;
    for field in schema.fields() {
        writeln!(
            out,
            "field {} {} {}",
            field.name(),
            field.kind().name(),
            field.width()
        )?;
    }
    writeln!(out, "rules {}", rules.len())?;
    writeln!(out, "headers {}", headers.len())?;
    writeln!(out)?;
    for position in rules.by_rank() {
        let rule = rules.rule(position as usize);
        for id in schema.field_ids() {
            let field = schema.field(id);
            let placement = schema.placement(id);
            let (first, second) = match field.kind() {
                MatchKind::Range => rule.ends(id),
                _ => (placement.get(rule.value()), placement.get(rule.mask())),
            };
            number(out, field, first)?;
            number(out, field, second)?;
        }
    }
    for key in headers.as_slice().iter() {
        for id in schema.field_ids() {
            number(out, schema.field(id), schema.placement(id).get(key))?;
        }
    }
    Ok(())
}

/// Writes a number in the bytes that its field needs, most significant first.
fn number(out: &mut dyn Write, field: &Field, value: u128) -> io::Result<()> {
    let bytes = value.to_be_bytes();
    let count = field.width().div_ceil(8) as usize;
    out.write_all(&bytes[bytes.len() - count..])
}

/// Reads winners of four bytes each: the position in `ranked` plus one, or 0 for a
/// miss.
pub(super) fn read_winners(bytes: &[u8], ranked: &[Winner]) -> Result<Vec<Winner>, String> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(format!("a file of winners of {} bytes", bytes.len()));
    }
    let winner = |&number: &[u8; 4]| match u32::from_le_bytes(number) {
        0 => Ok(Winner::MISS),
        number => ranked
            .get(number as usize - 1)
            .copied()
            .ok_or_else(|| format!("a winner {number} of {} rules", ranked.len())),
    };
    numbers.iter().map(winner).collect()
}

#[cfg(test)]
mod tests {
    use classyard::{ActionId, Priority, RuleId, Schema};

    use super::*;

    #[test]
    fn masks_on_ports_are_refused() {
        let schema = Schema::ipv4_5tuple();
        let mut rules = RuleSet::new(&schema);
        let mut matches = [FieldMatch::Any; 5];
        let mut add = |id, matches: &[FieldMatch; 5]| {
            let id = RuleId::new(id).unwrap();
            rules.add(id, Priority(1), ActionId(0), matches).unwrap();
            check(&rules)
        };
        matches[3] = FieldMatch::Ternary {
            value: 0x1000,
            mask: 0xff00,
        };
        assert_eq!(add(4, &matches), Ok(()));
        matches[3] = FieldMatch::Ternary {
            value: 1,
            mask: 0x11,
        };
        let error = add(5, &matches).unwrap_err();
        assert_eq!(
            error,
            "peers take no masks on range fields, and rule 5 has dport=0x1&0x11"
        );
    }

    #[test]
    fn files_are_as_described() {
        let schema = Schema::new(
            "two",
            vec![
                Field::new("a", 12, MatchKind::Prefix),
                Field::new("b", 8, MatchKind::Range),
            ],
        )
        .unwrap();
        let mut rules = RuleSet::new(&schema);
        let mut add = |id, priority, matches: [FieldMatch; 2]| {
            let id = RuleId::new(id).unwrap();
            rules
                .add(id, Priority(priority), ActionId(0), &matches)
                .unwrap();
        };
        add(0, 1, [FieldMatch::Any, FieldMatch::Any]);
        add(
            1,
            2,
            [
                FieldMatch::Prefix {
                    value: 0xabc,
                    length: 4,
                },
                FieldMatch::Exact(9),
            ],
        );
        let mut headers = KeyVec::new(&schema);
        headers.push(&[0x123, 7]).unwrap();
        let mut file = Vec::new();
        write(&rules, &headers, &mut file).unwrap();
        let heading = "classyard-subject 1\nschema two\nfield a prefix 12\nfield b range 8\n\
                       rules 2\nheaders 1\n\n";
        let (text, rows) = file.split_at(heading.len());
        assert_eq!(String::from_utf8_lossy(text), heading);
        let best = [0x0a, 0, 0x0f, 0, 9, 9];
        let last = [0, 0, 0, 0, 0, 255];
        assert_eq!(rows, [&best[..], &last[..], &[1, 0x23, 7][..]].concat());
    }

    #[test]
    fn winners_are_places() {
        let ranked = [4, 2].map(|id| Winner::new(Priority(1), RuleId::new(id).unwrap()));
        let read = |bytes: &[u8]| read_winners(bytes, &ranked);
        let right = vec![ranked[1], Winner::MISS];
        assert_eq!(read(&[2, 0, 0, 0, 0, 0, 0, 0]), Ok(right));
        assert!(read(&[3, 0, 0, 0]).is_err());
        assert!(read(&[1, 0, 0]).is_err());
    }
}
