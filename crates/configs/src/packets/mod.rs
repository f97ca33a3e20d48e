//! Sets of packets: unions of boxes, with intersection and difference.
//!
//! A rule of a firewall selects packets by conditions that all must hold, and a condition
//! is often a list of alternatives. So a rule's packets are an intersection of unions,
//! which is a union of boxes. A box has at most one set of values for each field.

use classyard::FieldMatch;
use thiserror::Error;

mod address;
mod field;
mod name;

pub(crate) use address::{AddressError, parse_network, range_of_addresses, wildcard};
pub(crate) use field::{FIELDS, Field, PORT_PROTOCOLS, Values};
pub(crate) use name::{name_of_value, name_prefix, name_value};

/// The maximum number of boxes of a set.
pub(crate) const MAX_BOXES: usize = 1 << 16;

/// The maximum number of pairs of boxes that an operation compares. It bounds the time of
/// operations whose boxes are mostly disjoint.
const MAX_PAIRS: usize = 1 << 24;

/// A set needs more than [`MAX_BOXES`] boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the rule expands to more than {MAX_BOXES} matches")]
pub(crate) struct TooManyBoxes;

/// IP families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Families(u8);

impl Families {
    pub(crate) const IPV4: Families = Families(1);
    pub(crate) const IPV6: Families = Families(2);
    pub(crate) const BOTH: Families = Families(3);

    /// The families with the numbers of their address bits, in the order of the parts of
    /// [`Policy::acl`](classyard::Policy::acl).
    pub(crate) const EACH: [(Families, u32); 2] = [(Families::IPV4, 32), (Families::IPV6, 128)];

    /// Returns the families that are in both sets, if there is one.
    fn intersect(self, other: Families) -> Option<Families> {
        match self.0 & other.0 {
            0 => None,
            both => Some(Families(both)),
        }
    }

    /// Returns the families of `self` that are not in `other`, if there is one.
    fn subtract(self, other: Families) -> Option<Families> {
        self.intersect(Families(!other.0))
    }

    /// True if all families of `other` are in `self`.
    pub(crate) fn has(self, other: Families) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A box: packets of some families whose fields have values of a set each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PacketBox {
    families: Families,
    /// Ascending by field. A field without an entry may have any value.
    fields: Vec<(Field, Values)>,
}

impl PacketBox {
    fn values(&self, field: Field) -> Option<&Values> {
        let index = self.fields.binary_search_by_key(&field, |entry| entry.0);
        index.ok().map(|index| &self.fields[index].1)
    }

    fn set(&mut self, field: Field, values: Values) {
        debug_assert!(values.suits(field), "{field:?} {values:?}");
        match self.fields.binary_search_by_key(&field, |entry| entry.0) {
            Ok(index) => self.fields[index].1 = values,
            Err(index) => self.fields.insert(index, (field, values)),
        }
    }

    /// True if no packet is in both boxes.
    fn is_disjoint(&self, other: &PacketBox) -> bool {
        let mut fields = other.fields.iter();
        self.families.intersect(other.families).is_none()
            || fields.any(|(field, values)| {
                let own = self.values(*field);
                own.is_some_and(|own| own.intersect(values).is_none())
            })
    }

    fn intersect(&self, other: &PacketBox) -> Option<PacketBox> {
        if self.is_disjoint(other) {
            return None;
        }
        // Sets of many boxes come from intersections, so the fields take no spare memory.
        let added_fields = (other.fields.iter()).filter(|(field, _)| self.values(*field).is_none());
        let mut fields = Vec::with_capacity(self.fields.len() + added_fields.count());
        let mut others = other.fields.iter().peekable();
        for &(field, own) in &self.fields {
            while let Some(entry) = others.next_if(|entry| entry.0 < field) {
                fields.push(*entry);
            }
            let values = match others.next_if(|entry| entry.0 == field) {
                Some((_, values)) => own.intersect(values)?,
                None => own,
            };
            fields.push((field, values));
        }
        fields.extend(others);
        Some(PacketBox {
            families: self.families.intersect(other.families)?,
            fields,
        })
    }

    /// Adds disjoint boxes of the packets that are not in `other` to `pieces`.
    fn subtract(&self, other: &PacketBox, pieces: &mut Vec<PacketBox>) {
        if self.is_disjoint(other) {
            pieces.push(self.clone());
            return;
        }
        let mut unexamined = self.clone();
        if let Some(families) = self.families.subtract(other.families) {
            pieces.push(PacketBox {
                families,
                fields: self.fields.clone(),
            });
        }
        unexamined.families = Families(self.families.0 & other.families.0);
        // Sets of addresses are of one family.
        let address_bits = if unexamined.families.has(Families::IPV6) {
            128
        } else {
            32
        };
        for (field, values) in &other.fields {
            let own = unexamined.values(*field).copied();
            for outside in Values::subtract(own.as_ref(), values, field.bits(address_bits)) {
                let mut piece = unexamined.clone();
                piece.set(*field, outside);
                pieces.push(piece);
            }
            let inside = own.map_or(Some(*values), |own| own.intersect(values));
            unexamined.set(*field, inside.expect("boxes that overlap"));
        }
    }

    /// Returns the families.
    pub(crate) fn families(&self) -> Families {
        self.families
    }

    /// Returns the match of each field of `acl-ipv4` or `acl-ipv6`.
    pub(crate) fn matches(&self, address_bits: u32) -> [FieldMatch; FIELDS] {
        let mut matches = [FieldMatch::Any; FIELDS];
        for &(field, values) in &self.fields {
            matches[field as usize] = values.to_match(field, address_bits);
        }
        matches
    }
}

/// A union of boxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PacketSet {
    boxes: Vec<PacketBox>,
}

impl PacketSet {
    /// Returns all packets of some families.
    pub(crate) fn of_families(families: Families) -> PacketSet {
        PacketSet {
            boxes: vec![PacketBox {
                families,
                fields: Vec::new(),
            }],
        }
    }

    /// Returns all packets.
    pub(crate) fn all() -> PacketSet {
        PacketSet::of_families(Families::BOTH)
    }

    /// Returns the set without packets.
    pub(crate) fn none() -> PacketSet {
        PacketSet { boxes: Vec::new() }
    }

    /// Returns the packets with a value of `field` in any of several sets. Addresses have
    /// a family, so they are added with [`of_addresses`](Self::of_addresses).
    pub(crate) fn of(field: Field, alternatives: impl IntoIterator<Item = Values>) -> PacketSet {
        PacketSet::of_addresses(
            field,
            alternatives
                .into_iter()
                .map(|values| (Families::BOTH, values)),
        )
    }

    /// Returns the packets with an address in any of several sets.
    pub(crate) fn of_addresses(
        field: Field,
        alternatives: impl IntoIterator<Item = (Families, Values)>,
    ) -> PacketSet {
        let to_box = |(families, values)| PacketBox {
            families,
            fields: vec![(field, values)],
        };
        PacketSet {
            boxes: alternatives.into_iter().map(to_box).collect(),
        }
    }

    /// True if the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// Returns the boxes.
    pub(crate) fn boxes(&self) -> &[PacketBox] {
        &self.boxes
    }

    /// Returns the packets of both sets together.
    pub(crate) fn union(mut self, other: PacketSet) -> Result<PacketSet, TooManyBoxes> {
        self.boxes.extend(other.boxes);
        self.checked()
    }

    /// Returns the packets that are in both sets.
    pub(crate) fn intersect(&self, other: &PacketSet) -> Result<PacketSet, TooManyBoxes> {
        if self.boxes.len().saturating_mul(other.boxes.len()) > MAX_PAIRS {
            return Err(TooManyBoxes);
        }
        let mut boxes = Vec::new();
        for own in &self.boxes {
            boxes.extend(other.boxes.iter().filter_map(|other| own.intersect(other)));
            if boxes.len() > MAX_BOXES {
                return Err(TooManyBoxes);
            }
        }
        Ok(PacketSet { boxes })
    }

    /// Returns the packets that are not in the other set.
    pub(crate) fn subtract(&self, other: &PacketSet) -> Result<PacketSet, TooManyBoxes> {
        let mut kept = self.boxes.clone();
        let mut pairs = 0;
        for other in &other.boxes {
            pairs += kept.len();
            if pairs > MAX_PAIRS {
                return Err(TooManyBoxes);
            }
            let mut pieces = Vec::new();
            for own in &kept {
                own.subtract(other, &mut pieces);
                if pieces.len() > MAX_BOXES {
                    return Err(TooManyBoxes);
                }
            }
            kept = pieces;
        }
        Ok(PacketSet { boxes: kept })
    }

    fn checked(self) -> Result<PacketSet, TooManyBoxes> {
        match self.boxes.len() > MAX_BOXES {
            true => Err(TooManyBoxes),
            false => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests;
