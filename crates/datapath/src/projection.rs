//! Projections: the bits of a packet's key that a flow table's rules use.
//!
//! # Idea
//! A packet's key has nearly 1,400 bits, but the rules of a table use only a few fields.
//! So a table matches on a *projection*: a schema of just these fields. Its keys are as
//! narrow as in a classifier made for these rules. An access list over IPv4
//! five-tuples runs at five-tuple speed, whatever other tables match.
//!
//! ```text
//! PacketKey   │ metadata │ … │ eth_src │ eth_type │ ip_proto … │ ports … │ addresses … │ registers │
//!                                            │          ╲           │      ╱
//! projection                    (implied by the family)  │ src │ dst │ sport │ dport │ proto │ presence │
//! ```
//! Each family of packets has its own projections. In IPv4 and IPv6, the family implies
//! `eth_type`, so their projections leave it out, and they have no fields of other
//! families. Fields that share a place in the key, such as the ports of TCP and UDP, are
//! one field of the schema.
//!
//! A rule with a field that a packet may lack also compares the bits of the [`Presence`].

use std::fmt;
use std::sync::Arc;

use classyard::error::RuleError;
use classyard::schema::{FieldRole, Part, Placement};
use classyard::{ActionId, FieldMatch, KeyVec, MatchKind, Priority, Rule, RuleId, Schema};

use crate::field::Field;
use crate::flow_match::{Family, FlowMatch};
use crate::key::{KEY_WORDS, PacketKey, Presence};

/// A set of fields, by their places in a key; may include the presence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSet(u64);

/// The presence bit, above the bits of the fields.
const PRESENCE_BIT: u32 = 63;

const _: () = assert!(Field::COUNT < PRESENCE_BIT as usize);

impl FieldSet {
    /// No field.
    pub const NONE: FieldSet = FieldSet(0);

    /// Returns the fields that a match uses in packets of a family.
    #[must_use]
    pub fn of(flow: &FlowMatch, family: Family) -> FieldSet {
        let fields = flow.values().map(|value| value.field);
        let fields = fields.filter(|&field| !is_implied(field, family));
        let fields = fields.fold(0, |set, field| set | 1 << shared(field).index());
        let presence = u64::from(flow.presence() != Presence::NONE) << PRESENCE_BIT;
        FieldSet(fields | presence)
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn and(self, other: FieldSet) -> FieldSet {
        FieldSet(self.0 | other.0)
    }

    /// True if all fields of `other` are in this set.
    #[must_use]
    pub fn has(self, other: FieldSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// The maximum number of bits in a set.
    pub(crate) const BITS: usize = 64;

    /// Adds or removes a bit.
    pub(crate) fn set_bit(&mut self, bit: usize, is_in: bool) {
        self.0 = self.0 & !(1 << bit) | u64::from(is_in) << bit;
    }

    /// Iterates over the bits of the set.
    pub(crate) fn bits(self) -> impl Iterator<Item = usize> {
        let mut bits = self.0;
        std::iter::from_fn(move || {
            let lowest = bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            (lowest < u64::BITS).then_some(lowest as usize)
        })
    }

    /// Checks that a key has room for all fields.
    pub(crate) fn check_width(self) -> Result<(), TooWide> {
        let widths = self.fields().map(|field| field.info().width);
        let presence = match self.has_presence() {
            true => Presence::WIDTH,
            false => 0,
        };
        let bits = widths.sum::<u32>() + presence;
        match bits > classyard::schema::MAX_BITS {
            true => Err(TooWide { bits }),
            false => Ok(()),
        }
    }

    fn has_presence(self) -> bool {
        self.0 >> PRESENCE_BIT & 1 == 1
    }

    fn fields(self) -> impl Iterator<Item = Field> {
        let fields = self.bits().take_while(|&bit| bit < Field::COUNT);
        fields.map(|bit| Field::at(bit).field)
    }

    /// Returns the position of a field of the set among its fields.
    fn position(self, field: Field) -> usize {
        (self.0 & ((1 << field.index()) - 1)).count_ones() as usize
    }
}

/// True if the family implies the value of a field.
fn is_implied(field: Field, family: Family) -> bool {
    field == Field::EthType && family != Family::Other
}

/// Returns the field that represents all fields at the same place. Type and code of ICMP
/// are at the place of ports.
fn shared(field: Field) -> Field {
    match field {
        Field::UdpSrc | Field::SctpSrc | Field::Icmpv4Type | Field::Icmpv6Type => Field::TcpSrc,
        Field::NdTll => Field::NdSll,
        Field::UdpDst | Field::SctpDst | Field::Icmpv4Code | Field::Icmpv6Code => Field::TcpDst,
        other => other,
    }
}

/// Returns a field's role, for engines that treat addresses and ports of one side
/// together, such as TupleMerge. Fields at the same place have the same role, including
/// type and code of ICMP.
fn role(field: Field) -> FieldRole {
    match field {
        Field::Ipv4Src | Field::Ipv6Src => FieldRole::SourceAddress,
        Field::Ipv4Dst | Field::Ipv6Dst => FieldRole::DestinationAddress,
        Field::TcpSrc => FieldRole::SourcePort,
        Field::TcpDst => FieldRole::DestinationPort,
        _ => FieldRole::Plain,
    }
}

/// The rules of a table use more bits than the keys of an engine may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooWide {
    /// The bits that the rules use.
    pub bits: u32,
}

impl fmt::Display for TooWide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the flow entries of a table look at {} bits; at most {} are possible: use fewer \
             fields in one table",
            self.bits,
            classyard::schema::MAX_BITS
        )
    }
}

impl std::error::Error for TooWide {}

/// A move of some bits from a word of a packet's key to a word of the projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Move {
    from: usize,
    mask: u64,
    /// The number of bits to rotate to the left.
    rotate: u32,
}

/// The fields that the rules of a table use in packets of a family.
#[derive(Clone, Debug)]
pub struct Projection {
    fields: FieldSet,
    family: Family,
    schema: Arc<Schema>,
    moves: Moves,
}

/// Moves of bits from a packet's key to a narrower key.
#[derive(Clone, Debug)]
pub(crate) struct Moves {
    /// The moves to the first word of the narrower key, then those to the second, and so on.
    moves: Vec<Move>,
    /// For each word of the narrower key, the end of its moves.
    ends: Vec<usize>,
}

impl Moves {
    /// Returns moves from parts of a packet's key to parts of a narrower key of `width` words.
    pub(crate) fn new(parts: impl Iterator<Item = (Part, Part)>, width: usize) -> Moves {
        let mut words = vec![Vec::new(); width];
        for (from, to) in parts {
            join(&mut words[to.word], moved(from, to));
        }
        let ends = words.iter().scan(0, |end, moves| {
            *end += moves.len();
            Some(*end)
        });
        Moves {
            ends: ends.collect(),
            moves: words.concat(),
        }
    }

    /// Writes all words of the narrower key. `words` has the length of the schema's keys.
    #[inline]
    pub(crate) fn project(&self, from: &[u64; KEY_WORDS], words: &mut [u64]) {
        debug_assert_eq!(words.len(), self.ends.len());
        let mut begin = 0;
        for (word, &end) in words.iter_mut().zip(&self.ends) {
            // The bits are collected in a register: bits added to the word in memory would
            // wait for the write before.
            let parts = self.moves[begin..end].iter();
            *word = parts.fold(0, |bits, part| {
                bits | (from[part.from] & part.mask).rotate_left(part.rotate)
            });
            begin = end;
        }
    }
}

impl Projection {
    /// Returns a projection to `fields`, for packets of a family.
    ///
    /// # Errors
    /// [`TooWide`] if the fields have more bits than an engine's keys may have.
    pub fn new(fields: FieldSet, family: Family) -> Result<Projection, TooWide> {
        let mut placements: Vec<Placement> = Vec::new();
        let mut described = Vec::new();
        for field in fields.fields() {
            let info = field.info();
            let kind = match field {
                Field::Ipv4Src | Field::Ipv4Dst | Field::Ipv6Src | Field::Ipv6Dst => {
                    MatchKind::Prefix
                }
                _ if info.maskable => MatchKind::Ternary,
                _ => MatchKind::Exact,
            };
            let description = classyard::Field::new(info.name, info.width, kind);
            let role = role(field);
            let is_new = |field: &classyard::Field| field.role() != role;
            described.push(match described.iter().all(is_new) {
                true => description.with_role(role),
                false => description,
            });
            placements.push(*PacketKey::place(field));
        }
        // A schema has at least one field.
        if fields.has_presence() || described.is_empty() {
            let field = classyard::Field::new("presence", Presence::WIDTH, MatchKind::Ternary);
            described.push(field);
            placements.push(Placement {
                low: *PacketKey::presence_place(),
                high: None,
            });
        }
        let widths = described.iter().map(classyard::Field::width);
        let bits = widths.sum();
        let Ok(schema) = Schema::new("projection", described) else {
            return Err(TooWide { bits });
        };
        let placements = schema.field_ids().zip(&placements);
        let parts = placements.flat_map(|(id, from)| {
            let target = schema.placement(id);
            [Some((from.low, target.low)), from.high.zip(target.high)]
        });
        let moves = Moves::new(parts.flatten(), schema.key_words());
        Ok(Projection {
            fields,
            family,
            schema,
            moves,
        })
    }

    /// Returns the fields.
    #[must_use]
    pub fn fields(&self) -> FieldSet {
        self.fields
    }

    /// Returns the schema of rules and keys.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// True if a match uses only fields of the projection.
    #[must_use]
    pub fn covers(&self, flow: &FlowMatch) -> bool {
        self.fields.has(FieldSet::of(flow, self.family))
    }

    /// Writes the key of a packet. `words` has the length of the schema's keys.
    #[inline]
    pub fn project(&self, key: &PacketKey, words: &mut [u64]) {
        self.moves.project(key.words(), words);
    }

    /// Appends the projected keys of packets to `to`.
    pub fn project_all<'k>(&self, keys: impl Iterator<Item = &'k PacketKey>, to: &mut KeyVec) {
        let mut words = [0; classyard::schema::MAX_KEY_WORDS];
        let words = &mut words[..self.schema.key_words()];
        for key in keys {
            self.project(key, words);
            to.push_key(words);
        }
    }

    /// Returns a match as a rule of the schema, which includes the presence of fields.
    /// For packets of the family, the rule matches exactly if the match does.
    ///
    /// # Errors
    /// The errors of [`Rule::new`].
    ///
    /// # Panics
    /// If the projection does not [cover](Self::covers) the match.
    pub fn rule(
        &self,
        id: RuleId,
        priority: Priority,
        action: ActionId,
        flow: &FlowMatch,
    ) -> Result<Rule, RuleError> {
        assert!(self.covers(flow), "{flow} looks at other fields");
        let mut matches = vec![FieldMatch::Any; self.schema.fields().len()];
        for value in flow.values() {
            if is_implied(value.field, self.family) {
                continue;
            }
            let position = self.fields.position(shared(value.field));
            let kind = self.schema.fields()[position].kind();
            matches[position] = match value.is_exact() {
                true => FieldMatch::Exact(value.value),
                false if kind == MatchKind::Exact => unreachable!("the field takes no mask"),
                false => FieldMatch::Ternary {
                    value: value.value,
                    mask: value.mask,
                },
            };
        }
        if self.fields.has_presence() {
            let bits = u128::from(flow.presence().bits());
            *matches.last_mut().expect("the presence") = FieldMatch::Ternary {
                value: bits,
                mask: bits,
            };
        }
        Rule::new(&self.schema, id, priority, action, &matches)
    }
}

fn moved(from: Part, to: Part) -> Move {
    Move {
        from: from.word,
        mask: from.mask(),
        rotate: to.shift.wrapping_sub(from.shift) & 63,
    }
}

/// Adds a move to the moves to a word. Joins it to a move from the same word with the same
/// rotation.
fn join(moves: &mut Vec<Move>, added: Move) {
    let is_same = |other: &&mut Move| (other.from, other.rotate) == (added.from, added.rotate);
    match moves.iter_mut().find(is_same) {
        Some(other) => other.mask |= added.mask,
        None => moves.push(added),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MatchField;

    #[test]
    fn a_narrower_key_replaces_all_words() {
        let part = |word, shift, width| Part { word, shift, width };
        let parts = [
            (part(0, 8, 16), part(1, 48, 16)),
            // Joined with the part above.
            (part(0, 40, 8), part(1, 16, 8)),
            (part(3, 0, 16), part(1, 0, 16)),
            (part(2, 60, 4), part(0, 0, 4)),
        ];
        let moves = Moves::new(parts.into_iter(), 3);
        let mut key = [u64::MAX; KEY_WORDS];
        key[0] = 0xaaaa_5b5b_cc12_34ee;
        key[2] = 0x7000_0000_0000_0000;
        key[3] = 0xffff_ffff_0000_9abc;
        let mut words = [u64::MAX; 3];
        moves.project(&key, &mut words);
        assert_eq!(words, [7, 0x1234_0000_005b_9abc, 0]);
    }

    #[test]
    fn engines_are_told_which_fields_are_addresses_and_ports() {
        let exact = MatchField::exact;
        let flow_of = |kind: u128, source: Field| {
            let flow = FlowMatch::new([
                exact(Field::EthType, kind),
                exact(Field::IpProto, 17),
                exact(source, 1),
                exact(Field::UdpDst, 53),
            ]);
            flow.unwrap()
        };
        for (family, flow) in [
            (Family::Ipv4, flow_of(0x800, Field::Ipv4Src)),
            (Family::Ipv6, flow_of(0x86dd, Field::Ipv6Src)),
        ] {
            let projection = Projection::new(FieldSet::of(&flow, family), family).unwrap();
            let schema = projection.schema();
            let name = |role| Some(schema.field(schema.field_with_role(role)?).name());
            assert!(name(FieldRole::SourceAddress).is_some(), "{family:?}");
            assert_eq!(name(FieldRole::DestinationAddress), None);
            assert_eq!(name(FieldRole::SourcePort), None);
            assert!(name(FieldRole::DestinationPort).is_some());
        }
    }
}
