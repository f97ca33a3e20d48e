//! The packets that a set matches.

use std::collections::hash_map::Entry;
use std::fmt;

use super::element::{Item, address_bits};
use super::intervals::{Intervals, Network};
use super::{Element, IpSet, Kind, Sets};
use crate::packets::{
    Families, Field, MAX_BOXES, PacketSet, TooManyBoxes, Values, name_prefix, name_value,
};

/// The maximum number of lists inside each other.
const MAX_LIST_DEPTH: usize = 16;

/// The maximum number of boxes of the packets of all sets.
const MAX_CACHED_BOXES: usize = 1 << 20;

/// The maximum number of dimensions that a rule gives directions for.
const MAX_DIMENSIONS: u8 = 6;

/// For each dimension of a set, the side of the packet: `src,dst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Directions {
    count: u8,
    /// A bit for each dimension; 1 is the source.
    sources: u8,
}

impl Directions {
    /// Reads `src`, `dst`, `src,dst` and so on.
    pub(in super::super) fn parse(text: &str) -> Option<Directions> {
        let mut directions = Directions {
            count: 0,
            sources: 0,
        };
        for side in text.split(',') {
            match side {
                "src" => directions.sources |= 1 << directions.count,
                "dst" => {}
                _ => return None,
            }
            directions.count += 1;
            if directions.count > MAX_DIMENSIONS {
                return None;
            }
        }
        Some(directions)
    }

    fn is_source(self, dimension: usize) -> bool {
        self.sources >> dimension & 1 == 1
    }
}

/// A request for the packets of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lookup {
    set: usize,
    directions: Directions,
    is_negated: bool,
}

/// The reason for which the packets of a set are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum LookupError {
    /// The set is not in the file, or has elements that no field expresses.
    NotModelled,
    /// The set is wrong or too large.
    Bad(String),
}

impl From<TooManyBoxes> for LookupError {
    fn from(_: TooManyBoxes) -> LookupError {
        LookupError::Bad(format!(
            "a set that expands to more than {MAX_BOXES} matches"
        ))
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupError::NotModelled => f.write_str("a set that no field expresses"),
            LookupError::Bad(message) => f.write_str(message),
        }
    }
}

impl<'t> Sets<'t> {
    /// Returns the packets that a set matches, or with `is_negated` the other packets.
    pub(in super::super) fn packets(
        &mut self,
        name: &str,
        directions: Directions,
        is_negated: bool,
    ) -> Result<PacketSet, LookupError> {
        let set = *self.numbers.get(name).ok_or(LookupError::NotModelled)?;
        let lookup = Lookup {
            set,
            directions,
            is_negated,
        };
        self.look_up(lookup, 0)
    }

    /// True if the set has more dimensions than a rule has directions. The rule never
    /// matches then, or always if it is negated.
    pub(in super::super) fn lacks_directions(&self, name: &str, directions: Directions) -> bool {
        let set = self.numbers.get(name).map(|number| &self.sets[*number]);
        set.is_some_and(|set| set.kind.dimensions() > directions.count)
    }

    fn look_up(&mut self, lookup: Lookup, depth: usize) -> Result<PacketSet, LookupError> {
        let name = self.sets[lookup.set].name;
        match self.cache.entry(lookup) {
            Entry::Occupied(entry) => return entry.get().clone(),
            Entry::Vacant(entry) => {
                let error = format!("a loop of lists through the set `{name}`");
                entry.insert(Err(LookupError::Bad(error)));
            }
        }
        let mut result = self.compute(lookup, depth);
        if let Ok(packets) = &result {
            self.cached_boxes += packets.boxes().len();
            if self.cached_boxes > MAX_CACHED_BOXES {
                let error = format!("sets with more than {MAX_CACHED_BOXES} matches");
                result = Err(LookupError::Bad(error));
            }
        }
        self.cache.insert(lookup, result.clone());
        result
    }

    fn compute(&mut self, lookup: Lookup, depth: usize) -> Result<PacketSet, LookupError> {
        let set = &self.sets[lookup.set];
        let none_or_all = match lookup.is_negated {
            true => PacketSet::all(),
            false => PacketSet::none(),
        };
        if set.kind == Kind::NotModelled {
            return Err(LookupError::NotModelled);
        }
        if set.kind.dimensions() > lookup.directions.count {
            return Ok(none_or_all);
        }
        match set.kind {
            Kind::Sets => self.list(lookup, depth, none_or_all),
            _ if set.has_addresses_only() => set.addresses(lookup),
            _ => {
                let packets = set.elements(lookup.directions)?;
                match lookup.is_negated {
                    true => Ok(PacketSet::all().subtract(&packets)?),
                    false => Ok(packets),
                }
            }
        }
    }

    /// Returns the packets of a list of sets.
    fn list(
        &mut self,
        lookup: Lookup,
        depth: usize,
        none_or_all: PacketSet,
    ) -> Result<PacketSet, LookupError> {
        if depth == MAX_LIST_DEPTH {
            let error = format!("more than {MAX_LIST_DEPTH} lists of sets inside each other");
            return Err(LookupError::Bad(error));
        }
        let mut packets = none_or_all;
        for index in 0..self.sets[lookup.set].members.len() {
            let member = self.sets[lookup.set].members[index];
            let Some(&set) = self.numbers.get(member) else {
                let error = format!("a list with the set `{member}`, which is not defined");
                return Err(LookupError::Bad(error));
            };
            let of_member = self.look_up(Lookup { set, ..lookup }, depth + 1)?;
            packets = match lookup.is_negated {
                true => packets.intersect(&of_member)?,
                false => packets.union(of_member)?,
            };
        }
        Ok(packets)
    }
}

impl IpSet<'_> {
    /// True if elements have an address and nothing else.
    fn has_addresses_only(&self) -> bool {
        matches!(self.kind, Kind::Fields([_]))
    }

    /// Returns the packets of a set of addresses.
    fn addresses(&self, lookup: Lookup) -> Result<PacketSet, LookupError> {
        let networks = self.elements.iter().filter_map(|element| {
            let Item::Network { low, high } = element.items[0] else {
                return None;
            };
            Some(Network {
                low,
                high,
                is_excluded: element.is_excluded,
            })
        });
        let field = match lookup.directions.is_source(0) {
            true => Field::Source,
            false => Field::Destination,
        };
        let mut intervals = Intervals::of_networks(networks.collect());
        if !lookup.is_negated {
            return Ok(PacketSet::of_addresses(
                field,
                intervals.networks(self.family)?,
            ));
        }
        intervals = intervals.complement(u128::MAX >> (128 - address_bits(self.family)));
        let of_family = PacketSet::of_addresses(field, intervals.networks(self.family)?);
        let others = PacketSet::all().subtract(&PacketSet::of_families(self.family))?;
        Ok(of_family.union(others)?)
    }

    /// Returns the packets of the elements. An excluded element takes packets from the
    /// elements with larger networks.
    fn elements(&self, directions: Directions) -> Result<PacketSet, TooManyBoxes> {
        let mut excluded = PacketSet::none();
        let mut packets = PacketSet::none();
        let mut elements: Vec<&Element<'_>> = self.elements.iter().collect();
        if elements.iter().any(|element| element.is_excluded) {
            elements.sort_by_key(|element| element.sizes());
        }
        for element in elements {
            let of_element = element_packets(element, self.family, directions)?;
            if element.is_excluded {
                excluded = excluded.union(of_element)?;
            } else {
                let kept = match excluded.is_empty() {
                    true => of_element,
                    false => of_element.subtract(&excluded)?,
                };
                packets = packets.union(kept)?;
            }
        }
        Ok(packets)
    }
}

impl Element<'_> {
    /// The number of addresses of each network, less one.
    fn sizes(&self) -> Vec<u128> {
        let networks = self.items.iter().filter_map(|item| match item {
            Item::Network { low, high } => Some(high - low),
            _ => None,
        });
        networks.collect()
    }
}

/// Returns the packets of an element.
fn element_packets(
    element: &Element<'_>,
    family: Families,
    directions: Directions,
) -> Result<PacketSet, TooManyBoxes> {
    let mut packets = PacketSet::all();
    for (dimension, item) in element.items.iter().enumerate() {
        let of_item = item_packets(item, family, directions.is_source(dimension))?;
        packets = packets.intersect(&of_item)?;
    }
    Ok(packets)
}

/// Returns the packets that have the value of an item on one side.
fn item_packets(
    item: &Item<'_>,
    family: Families,
    is_source: bool,
) -> Result<PacketSet, TooManyBoxes> {
    let side = |source, destination| if is_source { source } else { destination };
    let protocols = |numbers: &[u8]| {
        PacketSet::of(
            Field::Protocol,
            numbers.iter().map(|number| Values::number(*number)),
        )
    };
    // Ports and types are not in later fragments.
    let with_header = PacketSet::of(Field::Fragment, [Values::range(0u8, 1u8)]);
    match *item {
        Item::Network { low, high } => {
            let max_address = u128::MAX >> (128 - address_bits(family));
            let network = Values::bits(low, max_address & !(low ^ high));
            let field = side(Field::Source, Field::Destination);
            Ok(PacketSet::of_addresses(field, [(family, network)]))
        }
        Item::Ports {
            protocol,
            low,
            high,
        } => {
            let field = side(Field::SourcePort, Field::DestinationPort);
            let ports = PacketSet::of(field, [Values::range(low, high)]);
            let protocols = match protocol {
                Some(protocol) => protocols(&[protocol]),
                None => protocols(&[6, 17]),
            };
            protocols.intersect(&ports)?.intersect(&with_header)
        }
        Item::Icmp {
            protocol,
            kind,
            code,
        } => {
            let types = super::super::icmp::of_numbers((kind, Some(code)));
            protocols(&[protocol])
                .intersect(&types)?
                .intersect(&with_header)
        }
        Item::Protocol(protocol) => Ok(protocols(&[protocol])),
        Item::Interface { name, is_prefix } => {
            let field = side(Field::InInterface, Field::OutInterface);
            let values = match is_prefix {
                true => name_prefix(name),
                false => name_value(name),
            };
            Ok(PacketSet::of(field, [values]))
        }
    }
}
