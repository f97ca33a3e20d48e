//! Counters of packets by kind, protocol, property and anomaly.

use std::collections::BTreeMap;

use super::{Anomaly, Family, Fragment, Kind, Parsed, Transport};

/// Numbers of packets by kind, protocol, property and anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    packets: u64,
    kinds: [u64; Kind::ALL.len()],
    transports: [u64; Transport::ALL.len()],
    properties: [u64; Property::ALL.len()],
    anomalies: [u64; Anomaly::ALL.len()],
    /// Packets of each EtherType that the parser does not support. There are at most
    /// 64,000 such types, which take about 2 MB.
    unknown_ethertypes: BTreeMap<u16, u64>,
}

/// A property of a packet in addition to its kind and its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Property {
    /// At least one VLAN tag.
    VlanTagged,
    /// Two VLAN tags or more.
    QinQTagged,
    /// At least one MPLS label.
    MplsLabelled,
    /// The header of a PPPoE session.
    PppoeSession,
    /// Both ports are known.
    WithPorts,
    /// IPv4 options.
    Ipv4Options,
    /// IPv6 extension headers, the fragment header included.
    Ipv6Extensions,
    /// The first of several IPv4 fragments.
    Ipv4FirstFragment,
    /// A later IPv4 fragment.
    Ipv4LaterFragment,
    /// The first of several IPv6 fragments.
    Ipv6FirstFragment,
    /// A later IPv6 fragment.
    Ipv6LaterFragment,
}

impl Property {
    /// All properties.
    pub const ALL: [Property; 11] = [
        Property::VlanTagged,
        Property::QinQTagged,
        Property::MplsLabelled,
        Property::PppoeSession,
        Property::WithPorts,
        Property::Ipv4Options,
        Property::Ipv6Extensions,
        Property::Ipv4FirstFragment,
        Property::Ipv4LaterFragment,
        Property::Ipv6FirstFragment,
        Property::Ipv6LaterFragment,
    ];

    /// Returns a short name, as in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Property::VlanTagged => "vlan-tagged",
            Property::QinQTagged => "qinq-tagged",
            Property::MplsLabelled => "mpls-labelled",
            Property::PppoeSession => "pppoe-sessions",
            Property::WithPorts => "with-ports",
            Property::Ipv4Options => "ipv4-options",
            Property::Ipv6Extensions => "ipv6-extensions",
            Property::Ipv4FirstFragment => "ipv4-first-fragments",
            Property::Ipv4LaterFragment => "ipv4-later-fragments",
            Property::Ipv6FirstFragment => "ipv6-first-fragments",
            Property::Ipv6LaterFragment => "ipv6-later-fragments",
        }
    }

    /// True if a packet has the property.
    #[must_use]
    pub fn holds(self, parsed: &Parsed) -> bool {
        let is = |family, fragment| parsed.family == Some(family) && parsed.fragment == fragment;
        match self {
            Property::VlanTagged => parsed.vlan_tags >= 1,
            Property::QinQTagged => parsed.vlan_tags >= 2,
            Property::MplsLabelled => parsed.mpls_labels >= 1,
            Property::PppoeSession => parsed.pppoe_session.is_some(),
            Property::WithPorts => parsed.ports.is_some(),
            Property::Ipv4Options => parsed.options && parsed.family == Some(Family::V4),
            Property::Ipv6Extensions => parsed.options && parsed.family == Some(Family::V6),
            Property::Ipv4FirstFragment => is(Family::V4, Fragment::First),
            Property::Ipv4LaterFragment => is(Family::V4, Fragment::Later),
            Property::Ipv6FirstFragment => is(Family::V6, Fragment::First),
            Property::Ipv6LaterFragment => is(Family::V6, Fragment::Later),
        }
    }
}

impl Default for Counters {
    fn default() -> Counters {
        Counters::new()
    }
}

impl Counters {
    /// Creates counters that are all 0.
    #[must_use]
    pub fn new() -> Counters {
        Counters {
            packets: 0,
            kinds: [0; Kind::ALL.len()],
            transports: [0; Transport::ALL.len()],
            properties: [0; Property::ALL.len()],
            anomalies: [0; Anomaly::ALL.len()],
            unknown_ethertypes: BTreeMap::new(),
        }
    }

    /// Counts a packet.
    pub fn add(&mut self, parsed: &Parsed) {
        self.packets += 1;
        self.kinds[parsed.kind as usize] += 1;
        if let Some(transport) = parsed.transport() {
            self.transports[transport as usize] += 1;
        }
        for property in Property::ALL {
            self.properties[property as usize] += u64::from(property.holds(parsed));
        }
        if !parsed.anomalies.is_empty() {
            for anomaly in parsed.anomalies.iter() {
                self.anomalies[anomaly as usize] += 1;
            }
            if let Some(ethertype) = parsed.eth_type
                && parsed.anomalies.contains(Anomaly::UnknownEthertype)
            {
                *self.unknown_ethertypes.entry(ethertype).or_default() += 1;
            }
        }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Counters) {
        self.packets += other.packets;
        let mine = [
            &mut self.kinds[..],
            &mut self.transports,
            &mut self.properties,
            &mut self.anomalies,
        ];
        let theirs = [
            &other.kinds[..],
            &other.transports,
            &other.properties,
            &other.anomalies,
        ];
        for (mine, theirs) in mine.into_iter().zip(theirs) {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
        for (&ethertype, &packets) in &other.unknown_ethertypes {
            *self.unknown_ethertypes.entry(ethertype).or_default() += packets;
        }
    }

    /// Returns the number of packets.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of packets of a kind.
    #[must_use]
    pub fn kind(&self, kind: Kind) -> u64 {
        self.kinds[kind as usize]
    }

    /// Returns the number of IP packets of a protocol.
    #[must_use]
    pub fn transport(&self, transport: Transport) -> u64 {
        self.transports[transport as usize]
    }

    /// Returns the number of packets with a property.
    #[must_use]
    pub fn property(&self, property: Property) -> u64 {
        self.properties[property as usize]
    }

    /// Returns the number of packets with an anomaly.
    #[must_use]
    pub fn anomaly(&self, anomaly: Anomaly) -> u64 {
        self.anomalies[anomaly as usize]
    }

    /// Returns the EtherTypes that the parser does not support, with their numbers of
    /// packets. The most frequent types come first; types with equal counts are in
    /// ascending order.
    #[must_use]
    pub fn unknown_ethertypes(&self) -> Vec<(u16, u64)> {
        let counts = self.unknown_ethertypes.iter();
        let mut counts: Vec<(u16, u64)> = counts.map(|(&kind, &packets)| (kind, packets)).collect();
        counts.sort_by_key(|&(_, packets)| std::cmp::Reverse(packets));
        counts
    }

    /// Returns name and count for each count that is not 0: the number of packets, then
    /// kinds, protocols, properties and anomalies. The kinds add up to the number of
    /// packets; the other groups overlap.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, u64)> {
        let mut rows = vec![("packets", self.packets)];
        rows.extend(Kind::ALL.map(|kind| (kind.name(), self.kind(kind))));
        rows.extend(Transport::ALL.map(|transport| (transport.name(), self.transport(transport))));
        rows.extend(Property::ALL.map(|property| (property.name(), self.property(property))));
        rows.extend(
            Anomaly::ALL
                .iter()
                .map(|&anomaly| (anomaly.name(), self.anomaly(anomaly))),
        );
        rows.retain(|&(name, count)| count > 0 || name == "packets");
        rows
    }
}
