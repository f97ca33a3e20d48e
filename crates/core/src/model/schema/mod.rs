//! Schemas: the header fields that rules match, and their layout in a key.
//!
//! A *schema* is an ordered list of fields. Each field has a name, a width of 1
//! to 128 bits and a [`MatchKind`]. Creating a schema fixes its *layout*: the
//! place of each field in the machine words of a key. Lookups and updates use
//! only the words, not the names.
//!
//! # Layout
//!
//! A field of at most 64 bits is one *part*. A wider field has two parts: its
//! low 64 bits and the rest. Parts are placed first-fit in order of decreasing
//! width. So no part crosses a word, and less than half of the space is wasted:
//!
//! ```text
//! ipv4-5tuple   word 0  |        dst 32        |        src 32        |
//!               word 1  |   -  24   | proto 8 | dport 16  | sport 16  |
//!
//! ipv6-5tuple   words 0,1 src   words 2,3 dst   word 4 like word 1 above
//! ```
//!
//! The number of words is then rounded up to a width in [`KEY_WIDTHS`]. The
//! engines' inner loops are compiled for these widths.

use std::fmt;
use std::sync::Arc;

pub use crate::model::match_kind::MatchKind;

use crate::model::error::{HeaderError, SchemaError};
use crate::model::value::ValueFormat;

mod builtin;
mod layout;

pub use layout::{KEY_WIDTHS, MAX_KEY_WORDS, Part, Placement, RangeField};

use layout::Layout;
pub(crate) use layout::{pack, prefix_mask};

/// The maximum number of fields in a schema. This number bounds arrays with an
/// entry for each field.
pub const MAX_FIELDS: usize = 64;

/// The maximum total width of a schema's fields in bits. It bounds the width of a key.
pub const MAX_BITS: u32 = 1024;

/// The maximum width of a field in bits: the width of `u128`.
pub const MAX_FIELD_BITS: u32 = 128;

/// The role of a field, for algorithms that treat addresses and ports
/// specially.
///
/// TupleMerge's tuple selection ([TM19] §III.C.2) compares the source with the
/// destination address, and drops an address together with its port. Fields
/// without a role are not treated specially.
///
/// [TM19]: crate::papers#tm19
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum FieldRole {
    /// No role.
    #[default]
    Plain,
    /// The source address.
    SourceAddress,
    /// The destination address.
    DestinationAddress,
    /// The port that goes with the source address.
    SourcePort,
    /// The port that goes with the destination address.
    DestinationPort,
}

impl FieldRole {
    /// Returns the role's name in schema files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FieldRole::Plain => "plain",
            FieldRole::SourceAddress => "source-address",
            FieldRole::DestinationAddress => "destination-address",
            FieldRole::SourcePort => "source-port",
            FieldRole::DestinationPort => "destination-port",
        }
    }

    /// Returns the role with this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<FieldRole> {
        [
            FieldRole::Plain,
            FieldRole::SourceAddress,
            FieldRole::DestinationAddress,
            FieldRole::SourcePort,
            FieldRole::DestinationPort,
        ]
        .into_iter()
        .find(|role| role.name() == name)
    }
}

/// The position of a field in its schema, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(u8);

impl FieldId {
    /// Returns the position as an index.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One field of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    name: String,
    width: u32,
    kind: MatchKind,
    role: FieldRole,
    format: ValueFormat,
}

impl Field {
    /// Returns a field without a role, with values printed as decimal numbers.
    ///
    /// `width` is in bits. [`Schema::new`] checks names and widths.
    #[must_use]
    pub fn new(name: &str, width: u32, kind: MatchKind) -> Field {
        Field {
            name: name.to_owned(),
            width,
            kind,
            role: FieldRole::Plain,
            format: ValueFormat::Decimal,
        }
    }

    /// Returns the field with another role.
    #[must_use]
    pub fn with_role(mut self, role: FieldRole) -> Field {
        self.role = role;
        self
    }

    /// Returns the field with another format for its values.
    #[must_use]
    pub fn with_format(mut self, format: ValueFormat) -> Field {
        self.format = format;
        self
    }

    /// Returns the field's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the field's width in bits, 1 to 128.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the kind of match that rules use for the field.
    #[must_use]
    pub fn kind(&self) -> MatchKind {
        self.kind
    }

    /// Returns the field's role, for algorithms that treat addresses specially.
    #[must_use]
    pub fn role(&self) -> FieldRole {
        self.role
    }

    /// Returns the format of the field's values.
    #[must_use]
    pub fn format(&self) -> ValueFormat {
        self.format
    }

    /// Returns the largest value of the field.
    #[must_use]
    pub fn max_value(&self) -> u128 {
        low_ones(self.width)
    }

    /// Checks that a value fits in the field.
    pub(crate) fn check_value(&self, value: u128) -> Result<(), HeaderError> {
        if value > self.max_value() {
            return Err(HeaderError::ValueTooLarge {
                field: self.name.to_string(),
                value: self.format.display(value).to_string(),
                width: self.width,
            });
        }
        Ok(())
    }
}

/// Returns a value with the lowest `count` bits set; `count` is at most 128.
pub(crate) fn low_ones(count: u32) -> u128 {
    if count == 0 {
        0
    } else {
        u128::MAX >> (128 - count)
    }
}

/// An ordered list of fields with a fixed key layout. Engines, rule sets and
/// keys share it in an [`Arc`].
#[derive(Clone, PartialEq, Eq)]
pub struct Schema {
    name: String,
    fields: Vec<Field>,
    layout: Layout,
}

impl Schema {
    /// Creates a schema from a list of fields.
    ///
    /// # Errors
    /// [`SchemaError`] if the number of fields is 0 or above [`MAX_FIELDS`], if
    /// a name is empty, repeated, reserved, or has characters other than
    /// letters, digits, `_`, `-` and `.`, if a width is not 1 to 128, if a
    /// format does not suit a width, if a role is given twice, or if the total
    /// width exceeds [`MAX_BITS`].
    pub fn new(name: &str, fields: Vec<Field>) -> Result<Arc<Schema>, SchemaError> {
        check_fields(&fields)?;
        let layout = Layout::new(&fields);
        Ok(Arc::new(Schema {
            name: name.to_owned(),
            fields,
            layout,
        }))
    }

    /// Returns the schema's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the fields, in order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the field at a position.
    ///
    /// # Panics
    /// If the id comes from a schema with more fields.
    #[must_use]
    pub fn field(&self, id: FieldId) -> &Field {
        &self.fields[id.index()]
    }

    /// Returns the ids of all fields, in order.
    pub fn field_ids(
        &self,
    ) -> impl DoubleEndedIterator<Item = FieldId> + ExactSizeIterator + use<> {
        let count = u8::try_from(self.fields.len()).expect("at most MAX_FIELDS fields");
        (0..count).map(FieldId)
    }

    /// Returns the id of the field with this name, if there is one.
    #[must_use]
    pub fn field_named(&self, name: &str) -> Option<FieldId> {
        self.field_ids().find(|&id| self.field(id).name() == name)
    }

    /// Returns the id of the first field with this role, if there is one.
    #[must_use]
    pub fn field_with_role(&self, role: FieldRole) -> Option<FieldId> {
        self.field_ids().find(|&id| self.field(id).role() == role)
    }

    /// Returns the total width of the fields in bits.
    #[must_use]
    pub fn total_bits(&self) -> u32 {
        self.fields.iter().map(Field::width).sum()
    }

    /// Returns the number of 64-bit words of a key; a width in [`KEY_WIDTHS`].
    #[must_use]
    pub fn key_words(&self) -> usize {
        self.layout.key_words
    }

    /// Returns the number of leading words of a key that hold fields. The
    /// remaining words are 0.
    #[must_use]
    pub(crate) fn used_words(&self) -> usize {
        self.layout.used_words
    }

    /// Returns the number of 64-bit words in a rule for the upper ends of its
    /// ranges; 0 if the schema has no range field.
    #[must_use]
    pub fn high_words(&self) -> usize {
        self.layout.high_words
    }

    /// Returns the number of 64-bit words of a packed rule: value, mask and
    /// upper ends.
    #[must_use]
    pub fn rule_words(&self) -> usize {
        2 * self.key_words() + self.high_words()
    }

    /// Returns the place of a field in a key.
    ///
    /// # Panics
    /// If the id comes from a schema with more fields.
    #[must_use]
    pub fn placement(&self, id: FieldId) -> &Placement {
        &self.layout.placements[id.index()]
    }

    /// Reads a field of a packed key.
    ///
    /// # Panics
    /// If the id comes from a schema with more fields, or the key does not have
    /// [`key_words`](Self::key_words) words.
    #[must_use]
    pub fn get_field(&self, key: &[u64], id: FieldId) -> u128 {
        assert_eq!(key.len(), self.key_words(), "a key of another schema");
        self.placement(id).get(key)
    }

    /// Writes a field of a packed key without changing other fields.
    ///
    /// ```
    /// use classyard::Schema;
    ///
    /// let schema = Schema::ipv4_5tuple();
    /// let destination = schema.field_named("dst").unwrap();
    /// let mut key = vec![0; schema.key_words()];
    /// schema.set_field(&mut key, destination, 0x0a00_0001)?;
    /// assert_eq!(schema.get_field(&key, destination), 0x0a00_0001);
    /// assert!(schema.set_field(&mut key, destination, 1 << 32).is_err());
    /// # Ok::<(), classyard::error::HeaderError>(())
    /// ```
    ///
    /// # Errors
    /// [`HeaderError::ValueTooLarge`] if the value does not fit the field; the
    /// key is not changed then.
    ///
    /// # Panics
    /// If the id comes from a schema with more fields, or the key does not have
    /// [`key_words`](Self::key_words) words.
    pub fn set_field(&self, key: &mut [u64], id: FieldId, value: u128) -> Result<(), HeaderError> {
        assert_eq!(key.len(), self.key_words(), "a key of another schema");
        self.field(id).check_value(value)?;
        self.placement(id).set(key, value);
        Ok(())
    }

    /// Returns the range fields, each with its place in a key and in a rule's
    /// high words.
    #[must_use]
    pub fn range_fields(&self) -> &[RangeField] {
        &self.layout.ranges
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({}:", self.name)?;
        for field in &self.fields {
            write!(f, " {}/{}/{}", field.name, field.width, field.kind)?;
        }
        f.write_str(")")
    }
}

fn check_fields(fields: &[Field]) -> Result<(), SchemaError> {
    if fields.is_empty() {
        return Err(SchemaError::NoFields);
    }
    if fields.len() > MAX_FIELDS {
        return Err(SchemaError::TooManyFields {
            found: fields.len(),
            limit: MAX_FIELDS,
        });
    }
    for (position, field) in fields.iter().enumerate() {
        let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if field.name.is_empty() || !field.name.chars().all(valid) {
            return Err(SchemaError::BadName {
                position,
                name: field.name.clone(),
            });
        }
        if RESERVED_NAMES.contains(&field.name.as_str()) {
            return Err(SchemaError::ReservedName {
                name: field.name.clone(),
            });
        }
        if field.width == 0 || field.width > MAX_FIELD_BITS {
            return Err(SchemaError::BadWidth {
                field: field.name.clone(),
                found: field.width,
                limit: MAX_FIELD_BITS,
            });
        }
        if !field.format.fits(field.width) {
            return Err(SchemaError::BadFormat {
                field: field.name.clone(),
                format: field.format.name(),
                width: field.width,
            });
        }
        let before = &fields[..position];
        if before.iter().any(|other| other.name == field.name) {
            return Err(SchemaError::RepeatedName {
                name: field.name.clone(),
            });
        }
        if field.role != FieldRole::Plain
            && let Some(other) = before.iter().find(|other| other.role == field.role)
        {
            return Err(SchemaError::RepeatedRole {
                role: field.role.name(),
                first: other.name.clone(),
                second: field.name.clone(),
            });
        }
    }
    let total = fields.iter().map(Field::width).sum();
    if total > MAX_BITS {
        return Err(SchemaError::TooManyBits {
            found: total,
            limit: MAX_BITS,
        });
    }
    Ok(())
}

/// Field names reserved by the rule format.
pub const RESERVED_NAMES: [&str; 4] = ["id", "name", "priority", "family"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_what_cannot_be_a_schema() {
        let ok = Field::new("a", 8, MatchKind::Exact);
        let cases: Vec<(Vec<Field>, &str)> = vec![
            (vec![], "no field"),
            (vec![ok.clone(), ok.clone()], "twice"),
            (vec![Field::new("a b", 8, MatchKind::Exact)], "name"),
            (vec![Field::new("", 8, MatchKind::Exact)], "name"),
            (
                vec![Field::new("priority", 8, MatchKind::Exact)],
                "reserved",
            ),
            (vec![Field::new("a", 0, MatchKind::Exact)], "1 to 128"),
            (vec![Field::new("a", 129, MatchKind::Exact)], "1 to 128"),
            (
                vec![Field::new("a", 33, MatchKind::Prefix).with_format(ValueFormat::Ipv4)],
                "ipv4",
            ),
            (
                vec![
                    ok.clone().with_role(FieldRole::SourcePort),
                    Field::new("b", 8, MatchKind::Exact).with_role(FieldRole::SourcePort),
                ],
                "source-port",
            ),
            (
                (0..9)
                    .map(|i| Field::new(&format!("f{i}"), 128, MatchKind::Exact))
                    .collect(),
                "1152",
            ),
            (
                (0..65)
                    .map(|i| Field::new(&format!("f{i}"), 1, MatchKind::Exact))
                    .collect(),
                "65",
            ),
        ];
        for (fields, expected) in cases {
            let error = Schema::new("t", fields).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error:?} lacks {expected:?}");
        }
    }

    #[test]
    fn built_in_schemas_have_the_documented_shape() {
        let v4 = Schema::ipv4_5tuple();
        assert_eq!(
            (v4.total_bits(), v4.key_words(), v4.high_words()),
            (104, 2, 1)
        );
        let v6 = Schema::ipv6_5tuple();
        assert_eq!(
            (v6.total_bits(), v6.key_words(), v6.high_words()),
            (296, 5, 1)
        );
        let openflow = Schema::openflow15();
        assert_eq!(openflow.fields().len(), 15);
        assert_eq!(
            (
                openflow.total_bits(),
                openflow.key_words(),
                openflow.high_words()
            ),
            (356, 6, 1)
        );
    }
}
