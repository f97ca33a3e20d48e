//! The fields of packets, and sets of values of one field.

use classyard::FieldMatch;

/// A field of the schemas `acl-ipv4` and `acl-ipv6`, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Field {
    Source,
    Destination,
    SourcePort,
    DestinationPort,
    Protocol,
    IcmpType,
    IcmpCode,
    TcpFlags,
    Fragment,
    State,
    InInterface,
    OutInterface,
    List,
    Condition,
}

/// The protocols with ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
pub(crate) const PORT_PROTOCOLS: [u8; 5] = [6, 17, 33, 132, 136];

/// The number of fields.
pub(crate) const FIELDS: usize = Field::Condition as usize + 1;

impl Field {
    /// The number of bits; addresses have the bits of their family.
    pub(crate) fn bits(self, address_bits: u32) -> u32 {
        match self {
            Field::Source | Field::Destination => address_bits,
            Field::SourcePort | Field::DestinationPort => 16,
            Field::Protocol | Field::IcmpType | Field::IcmpCode | Field::TcpFlags => 8,
            Field::Fragment => 2,
            Field::State => 3,
            Field::InInterface | Field::OutInterface | Field::List | Field::Condition => 128,
        }
    }

    /// True if sets of values are ranges; otherwise they are bits of a mask.
    fn has_ranges(self) -> bool {
        match self {
            Field::SourcePort
            | Field::DestinationPort
            | Field::Protocol
            | Field::IcmpType
            | Field::IcmpCode
            | Field::Fragment
            | Field::State => true,
            Field::Source
            | Field::Destination
            | Field::TcpFlags
            | Field::InInterface
            | Field::OutInterface
            | Field::List
            | Field::Condition => false,
        }
    }
}

/// Values of one field. All values of the field are not a set of this type: a box has no
/// entry for the field then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Values {
    /// The values from `low` to `high`, both included.
    Range { low: u128, high: u128 },
    /// The values that agree with `value` on the bits of `mask`. Other bits of `value` are 0.
    Bits { value: u128, mask: u128 },
}

impl Values {
    /// Returns one value of a field with ranges.
    pub(crate) fn number(value: impl Into<u128>) -> Values {
        let value = value.into();
        Values::Range {
            low: value,
            high: value,
        }
    }

    /// Returns a range.
    pub(crate) fn range(low: impl Into<u128>, high: impl Into<u128>) -> Values {
        Values::Range {
            low: low.into(),
            high: high.into(),
        }
    }

    /// Returns the values that agree with `value` on the bits of `mask`.
    pub(crate) fn bits(value: u128, mask: u128) -> Values {
        Values::Bits {
            value: value & mask,
            mask,
        }
    }

    /// Returns the values that a rule's match selects. `None` for all values of the field.
    pub(crate) fn of_match(matched: FieldMatch, field: Field, address_bits: u32) -> Option<Values> {
        let bits = field.bits(address_bits);
        let max_value = u128::MAX >> (128 - bits);
        let (value, mask) = match matched {
            FieldMatch::Any => return None,
            FieldMatch::Range { low, high } => return Some(Values::range(low, high)),
            FieldMatch::Exact(value) => (value, max_value),
            FieldMatch::Prefix { value, length } => {
                let free_bits = bits - length;
                (
                    value,
                    max_value & u128::MAX.checked_shl(free_bits).unwrap_or(0),
                )
            }
            FieldMatch::Ternary { value, mask } => (value, mask & max_value),
        };
        let free = max_value & !mask;
        match field.has_ranges() {
            _ if mask == 0 => None,
            true if free & (free + 1) == 0 => Some(Values::range(value & mask, value | free)),
            _ => Some(Values::bits(value, mask)),
        }
    }

    /// True if a value is in the set.
    pub(crate) fn has(&self, number: u128) -> bool {
        match *self {
            Values::Range { low, high } => (low..=high).contains(&number),
            Values::Bits { value, mask } => number & mask == value,
        }
    }

    /// True if the set is of the kind that the field has.
    pub(super) fn suits(&self, field: Field) -> bool {
        matches!(self, Values::Range { .. }) == field.has_ranges()
    }

    /// Returns the values that are in both sets.
    pub(crate) fn intersect(&self, other: &Values) -> Option<Values> {
        match (*self, *other) {
            (Values::Range { low, high }, Values::Range { low: l, high: h }) => {
                let (low, high) = (low.max(l), high.min(h));
                (low <= high).then_some(Values::Range { low, high })
            }
            (Values::Bits { value, mask }, Values::Bits { value: v, mask: m }) => {
                let agree = (value ^ v) & mask & m == 0;
                agree.then_some(Values::Bits {
                    value: value | v,
                    mask: mask | m,
                })
            }
            _ => unreachable!("a field has one kind of sets"),
        }
    }

    /// Returns disjoint sets of the values of `self` that are not in `other`. Without
    /// `self`, of all values that have `bits` bits.
    pub(super) fn subtract(all: Option<&Values>, other: &Values, bits: u32) -> Vec<Values> {
        let max_value = u128::MAX >> (128 - bits);
        match *other {
            Values::Range { low, high } => {
                let (first, last) = match all {
                    Some(&Values::Range { low, high }) => (low, high),
                    _ => (0, max_value),
                };
                let below = (first < low).then(|| Values::range(first, last.min(low - 1)));
                let above = (last > high).then(|| Values::range(first.max(high + 1), last));
                below.into_iter().chain(above).collect()
            }
            Values::Bits { value, mask } => {
                let (mut kept_value, mut kept_mask) = match all {
                    Some(&Values::Bits { value, mask }) => (value, mask),
                    _ => (0, 0),
                };
                let mut pieces = Vec::new();
                let mut open = mask & !kept_mask;
                while open != 0 {
                    let bit = 1 << open.ilog2();
                    open &= !bit;
                    kept_mask |= bit;
                    pieces.push(Values::bits(kept_value | (!value & bit), kept_mask));
                    kept_value |= value & bit;
                }
                pieces
            }
        }
    }

    /// Returns the match of a rule.
    pub(super) fn to_match(self, field: Field, address_bits: u32) -> FieldMatch {
        let max_value = u128::MAX >> (128 - field.bits(address_bits));
        match self {
            Values::Range { low, high } if low == high => FieldMatch::Exact(low),
            Values::Range { low, high } if low == 0 && high >= max_value => FieldMatch::Any,
            Values::Range { low, high } => FieldMatch::Range { low, high },
            Values::Bits { value, mask } if mask == max_value => FieldMatch::Exact(value),
            Values::Bits { mask: 0, .. } => FieldMatch::Any,
            Values::Bits { value, mask } => {
                let free = max_value & !mask;
                match free & (free + 1) == 0 {
                    true => FieldMatch::Prefix {
                        value,
                        length: mask.count_ones(),
                    },
                    false => FieldMatch::Ternary { value, mask },
                }
            }
        }
    }
}
