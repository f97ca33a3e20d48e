//! Compares a header's fields with a rule's, and describes masks in words.

use classyard::schema::MatchKind;
use classyard::{Field, FieldId, FieldMatch, RuleRef, Schema};
use serde::Serialize;

/// A field with the header's value and the rule's match.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Compared {
    pub(crate) field: String,
    pub(crate) value: String,
    #[serde(rename = "match")]
    pub(crate) wanted: String,
    /// The kind of match: exact, prefix, range, ternary.
    pub(crate) kind: &'static str,
}

/// Returns the fields that a rule constrains.
pub(crate) fn decided(rule: &RuleRef<'_>, header: &[u128]) -> Vec<Compared> {
    let schema = rule.schema();
    let constrained = schema
        .field_ids()
        .filter(|&id| rule.field(id) != FieldMatch::Any);
    constrained.map(|id| compare(rule, id, header)).collect()
}

/// Returns the fields that do not match the header.
pub(crate) fn refused(rule: &RuleRef<'_>, header: &[u128]) -> Vec<FieldId> {
    let schema = rule.schema();
    let admits = |id: &FieldId| {
        let field = schema.field(*id);
        admits(rule.field(*id), field, header[id.index()])
    };
    schema.field_ids().filter(|id| !admits(id)).collect()
}

/// Returns the distance of the header's value from the values that a rule matches:
/// the number of bits from the first differing one to the lowest.
pub(crate) fn distance(rule: &RuleRef<'_>, id: FieldId, header: &[u128]) -> u32 {
    let (low, high) = rule.ends(id);
    let header_value = header[id.index()];
    if let FieldMatch::Ternary { value, mask } = rule.field(id) {
        return 128 - ((header_value ^ value) & mask).leading_zeros();
    }
    let bits = |end: u128| 128 - (header_value ^ end).leading_zeros();
    bits(low).min(bits(high))
}

/// Compares a field of the header with the rule's match.
pub(crate) fn compare(rule: &RuleRef<'_>, id: FieldId, header: &[u128]) -> Compared {
    let field = rule.schema().field(id);
    let demand = rule.field(id);
    Compared {
        field: field.name().to_owned(),
        value: field.format().display(header[id.index()]).to_string(),
        wanted: demand.describe(field),
        kind: match demand {
            FieldMatch::Any => "any",
            FieldMatch::Exact(_) => MatchKind::Exact.name(),
            FieldMatch::Prefix { .. } => MatchKind::Prefix.name(),
            FieldMatch::Range { .. } => MatchKind::Range.name(),
            FieldMatch::Ternary { .. } => MatchKind::Ternary.name(),
        },
    }
}

fn admits(wanted: FieldMatch, field: &Field, found: u128) -> bool {
    match wanted {
        FieldMatch::Any => true,
        FieldMatch::Exact(value) => value == found,
        FieldMatch::Prefix { value, length } => {
            length == 0 || (value ^ found) >> (field.width() - length) == 0
        }
        FieldMatch::Range { low, high } => (low..=high).contains(&found),
        FieldMatch::Ternary { value, mask } => (value ^ found) & mask == 0,
    }
}

/// The part of a mask in one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct MaskField {
    pub(crate) field: String,
    /// The number of bits in the mask.
    pub(crate) bits: u32,
    /// The number of bits in the field.
    pub(crate) width: u32,
    /// `/24` for leading bits, `all`, or the bits in hexadecimal.
    pub(crate) mask: String,
}

/// Returns a mask by field, without the fields that have no bit in it.
pub(crate) fn mask_fields(schema: &Schema, mask: &[u64]) -> Vec<MaskField> {
    let fields = schema.field_ids().filter_map(|id| {
        let field = schema.field(id);
        let bits = schema.placement(id).get(mask);
        (bits != 0).then(|| MaskField {
            field: field.name().to_owned(),
            bits: bits.count_ones(),
            width: field.width(),
            mask: match leading(field, bits) {
                Some(length) if length == field.width() => "all".to_owned(),
                Some(length) => format!("/{length}"),
                None => format!("{bits:#x}"),
            },
        })
    });
    fields.collect()
}

/// Describes a mask in words: `src/16 dst proto`.
pub(crate) fn mask_words(fields: &[MaskField]) -> String {
    let words = fields.iter().map(|field| match field.mask.as_str() {
        "all" => field.field.clone(),
        mask if mask.starts_with('/') => format!("{}{mask}", field.field),
        mask => format!("{}&{mask}", field.field),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Describes the bits of a field under a mask: `10.20.1.0/24`, `443`, `any`.
pub(crate) fn masked_value(field: &Field, value: u128, mask: u128) -> String {
    let show = |value| field.format().display(value);
    match leading(field, mask) {
        Some(0) => "any".to_owned(),
        Some(length) if length == field.width() => show(value).to_string(),
        Some(length) => format!("{}/{length}", show(value & mask)),
        None => FieldMatch::Ternary {
            value: value & mask,
            mask,
        }
        .describe(field),
    }
}

/// Returns the length of a mask that consists of leading bits, else `None`.
fn leading(field: &Field, mask: u128) -> Option<u32> {
    let free = field.max_value() & !mask;
    (free & free.wrapping_add(1) == 0).then(|| mask.count_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_read_well() {
        let schema = Schema::ipv4_5tuple();
        let mut mask = vec![0; schema.key_words()];
        let set = |mask: &mut [u64], name: &str, bits: u128| {
            let id = schema.field_named(name).unwrap();
            schema.placement(id).set(mask, bits);
        };
        set(&mut mask, "src", 0xffff_0000);
        set(&mut mask, "proto", 0xff);
        set(&mut mask, "dport", 0x00f0);
        let fields = mask_fields(&schema, &mask);
        assert_eq!(mask_words(&fields), "src/16 dport&0xf0 proto");
        let src = schema.field(schema.field_named("src").unwrap());
        assert_eq!(masked_value(src, 0x0a14_010b, 0xffff_ff00), "10.20.1.0/24");
        assert_eq!(masked_value(src, 0x0a14_010b, 0), "any");
    }
}
