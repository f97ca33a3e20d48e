//! The conditions of an entry, and the packets that they select.
//!
//! A router does not see ports in the later fragments of a packet. An entry that permits and
//! has conditions on the layer-4 header also permits later fragments for which its other
//! conditions hold. An entry that denies and has such conditions matches no later fragment.

use std::net::Ipv6Addr;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::Dialect;
use super::address::{self, Addresses, Condition, Mask};
use super::group::Groups;
use super::names;
use super::service::Service;
use super::words::{Statement, Words};
use crate::builder::{Builder, SourceId};
use crate::packets::{Families, Field, PacketSet, TooManyBoxes, Values};

/// Whole packets and first fragments, which have the layer-4 header.
const WITH_LAYER4: (u8, u8) = (0, 1);
/// Fragments without the layer-4 header.
const LATER_FRAGMENTS: (u8, u8) = (2, 3);

/// The maximum number of pairs of boxes that are intersected for an entry. Pairs of two IP
/// versions have no packets, so the limit of boxes does not limit the time.
const MAX_PAIRS: usize = 1 << 20;

/// The conditions of an entry. A packet must meet all of them.
#[derive(Clone, Debug)]
pub(super) struct Selector<'t> {
    /// The services that match.
    pub(super) services: Vec<Service>,
    pub(super) sources: Addresses<'t>,
    pub(super) destinations: Addresses<'t>,
    /// For each condition on TCP flags, the alternatives that match.
    pub(super) flags: Vec<Vec<Values>>,
    /// True if the entry matches later fragments only.
    pub(super) has_fragments: bool,
    /// Conditions on the IP header and on the time.
    pub(super) conditions: Vec<Condition<'t>>,
    /// Conditions on the header after the IP header.
    pub(super) layer4_conditions: Vec<Condition<'t>>,
    /// True if the entry is in the list but is not applied.
    pub(super) is_inactive: bool,
}

impl<'t> Selector<'t> {
    /// Returns all packets of some families.
    pub(super) fn any(families: Families) -> Selector<'t> {
        Selector {
            services: vec![Service::default()],
            sources: Addresses::any(families),
            destinations: Addresses::any(families),
            flags: Vec::new(),
            has_fragments: false,
            conditions: Vec::new(),
            layer4_conditions: Vec::new(),
            is_inactive: false,
        }
    }

    /// True if all services have this protocol.
    pub(super) fn is_of_protocol(&self, protocol: u8) -> bool {
        let mut services = self.services.iter();
        services.all(|service| service.protocol == Some(protocol))
    }

    /// True if the entry has conditions on the header after the IP header.
    fn has_layer4(&self) -> bool {
        let has_conditions = !self.flags.is_empty() || !self.layer4_conditions.is_empty();
        has_conditions || self.services.iter().any(Service::has_layer4)
    }

    /// Adds a condition on TCP flags. `word` is at fault if the entry is not for TCP.
    pub(super) fn add_flags(
        &mut self,
        word: &'t str,
        alternatives: Vec<Values>,
    ) -> Result<(), Fault<'t>> {
        match self.is_of_protocol(names::TCP_NUMBER) {
            true => {
                self.flags.push(alternatives);
                Ok(())
            }
            false => Err(Fault::new(
                word,
                format!("{} in an entry for other protocols than TCP", quoted(word)),
                "the protocol `tcp`",
            )),
        }
    }

    /// Makes the entry match later fragments only.
    pub(super) fn require_fragments(&mut self, word: &'t str) -> Result<(), Fault<'t>> {
        if self.has_layer4() {
            return Err(Fault::new(
                word,
                "`fragments` in an entry with ports, ICMP messages or TCP flags, which later \
                 fragments do not have",
                "an entry with addresses and a protocol",
            ));
        }
        self.has_fragments = true;
        Ok(())
    }
}

/// An entry whose packets are computed.
pub(super) struct EntryContext<'a, 'b, 't> {
    pub(super) builder: &'a mut Builder<'b>,
    pub(super) source: SourceId,
    pub(super) statement: Statement<'t>,
    /// The packets that the list examines.
    pub(super) list_packets: &'a PacketSet,
    /// True if entries that permit also permit later fragments.
    pub(super) permits_later_fragments: bool,
}

impl<'t> EntryContext<'_, '_, 't> {
    /// Returns the packets of an entry.
    pub(super) fn packets(&mut self, selector: &Selector<'t>) -> Result<PacketSet, Fault<'t>> {
        let sources = self.addresses(&selector.sources, Field::Source)?;
        let destinations = self.addresses(&selector.destinations, Field::Destination)?;
        let services = self.services(selector)?;
        let mut packets = self.both(self.list_packets, &sources)?;
        packets = self.both(&packets, &destinations)?;
        packets = self.both(&packets, &services)?;
        for condition in &selector.conditions {
            let selected = self.condition(condition, "")?;
            packets = self.both(&packets, &selected)?;
        }
        Ok(packets)
    }

    fn addresses(
        &mut self,
        addresses: &Addresses<'t>,
        field: Field,
    ) -> Result<PacketSet, Fault<'t>> {
        let direction = match field {
            Field::Source => "source ",
            _ => "destination ",
        };
        let mut packets = self.checked(addresses.packets(field))?;
        for condition in &addresses.conditions {
            let selected = self.condition(condition, direction)?;
            packets = self.checked(packets.union(selected))?;
        }
        Ok(packets)
    }

    /// Returns the packets of all services, with the conditions on layer 4.
    fn services(&mut self, selector: &Selector<'t>) -> Result<PacketSet, Fault<'t>> {
        let mut layer4 = PacketSet::all();
        for alternatives in &selector.flags {
            let flags = PacketSet::of(Field::TcpFlags, alternatives.iter().copied());
            layer4 = self.both(&layer4, &flags)?;
        }
        for condition in &selector.layer4_conditions {
            let selected = self.condition(condition, "")?;
            layer4 = self.both(&layer4, &selected)?;
        }
        let has_entry_layer4 = !selector.flags.is_empty() || !selector.layer4_conditions.is_empty();
        let mut packets = PacketSet::none();
        let mut protocols_of_later = Vec::new();
        for service in &selector.services {
            let mut selected = self.checked(service.packets())?;
            if service.has_layer4() || has_entry_layer4 {
                selected = self.both(&selected, &layer4)?;
                selected = self.both(&selected, &fragments(WITH_LAYER4))?;
                if self.permits_later_fragments && !protocols_of_later.contains(&service.protocol) {
                    protocols_of_later.push(service.protocol);
                    let of_protocol = service.protocol_packets();
                    let later = self.both(&of_protocol, &fragments(LATER_FRAGMENTS))?;
                    packets = self.checked(packets.union(later))?;
                }
            }
            packets = self.checked(packets.union(selected))?;
        }
        match selector.has_fragments {
            true => self.both(&packets, &fragments(LATER_FRAGMENTS)),
            false => Ok(packets),
        }
    }

    fn condition(
        &mut self,
        condition: &Condition<'t>,
        direction: &str,
    ) -> Result<PacketSet, Fault<'t>> {
        let text = format!("{direction}{}", condition.text);
        let packets = self.builder.condition(self.source, &text);
        packets.map_err(|fault| {
            Fault::new(
                condition.word,
                fault.found(),
                "a file with fewer conditions",
            )
        })
    }

    /// Returns the packets that are in both sets.
    fn both(&self, packets: &PacketSet, other: &PacketSet) -> Result<PacketSet, Fault<'t>> {
        let pairs = packets.boxes().len().saturating_mul(other.boxes().len());
        if pairs > MAX_PAIRS {
            return self.checked(Err(TooManyBoxes));
        }
        self.checked(packets.intersect(other))
    }

    fn checked(&self, packets: Result<PacketSet, TooManyBoxes>) -> Result<PacketSet, Fault<'t>> {
        packets.map_err(|error| {
            Fault::new(
                self.statement.text,
                error.to_string(),
                "smaller groups, or several entries",
            )
        })
    }
}

/// Returns the packets of some kinds of fragments.
pub(super) fn fragments((low, high): (u8, u8)) -> PacketSet {
    PacketSet::of(Field::Fragment, [Values::range(low, high)])
}

/// Returns the later fragments.
pub(super) fn later_fragments() -> PacketSet {
    fragments(LATER_FRAGMENTS)
}

/// Reads the address of an entry in a list that examines some families.
pub(super) fn read_address<'t>(
    words: &mut Words<'t>,
    families: Families,
    groups: &Groups<'t>,
    dialect: Dialect,
) -> Result<Addresses<'t>, Fault<'t>> {
    const EXPECTED: &str = "an address";
    let word = words.peek().ok_or_else(|| words.missing(EXPECTED))?;
    let is_asa = dialect == Dialect::Asa;
    let any_families = match word {
        "any" => Some(families),
        "any4" if is_asa => Some(Families::IPV4),
        "any6" if is_asa => Some(Families::IPV6),
        _ => None,
    };
    if let Some(families) = any_families {
        words.take();
        return Ok(Addresses::any(families));
    }
    let is_host_of_nxos = dialect == Dialect::NxOs && is_ipv6_host(words);
    let network = match word {
        _ if is_host_of_nxos => address::host(words.require(EXPECTED)?, |word| word)?,
        "host" => {
            words.take();
            address::host(words.require(EXPECTED)?, |word| groups.resolve(word))?
        }
        "object-group" | "object" | "addrgroup" | "net-group" => {
            words.take();
            let name = words.require("the name of a group of addresses")?;
            return groups.addresses(name);
        }
        "interface" if is_asa => {
            words.take();
            let name = words.require("the name of an interface")?;
            let text = format!("interface {name}");
            return Ok(Addresses {
                networks: Vec::new(),
                conditions: vec![Condition { text, word }],
            });
        }
        _ => {
            let resolve = |word| groups.resolve(word);
            address::network(words, Mask::of_entries(dialect), resolve)?
        }
    };
    match families.has(network.0) {
        true => Ok(Addresses::of(vec![network])),
        false => Err(Fault::new(
            word,
            "an address of another IP version than the list's",
            "an address of the list's IP version",
        )),
    }
}

/// True if the next word is an address of IPv6 without a prefix length or a mask. NX-OS
/// takes it for a host.
fn is_ipv6_host(words: &Words<'_>) -> bool {
    let is_address = |word: &str| word.parse::<Ipv6Addr>().is_ok();
    words.peek().is_some_and(is_address) && !words.peek_after(1).is_some_and(is_address)
}
