//! Changing packets: fields, tags, labels and times to live (OpenFlow 1.3.5 §5.12).
//!
//! Bytes, key and checksums change together. The checksums of IPv4, TCP, UDP, ICMP and
//! SCTP are adjusted by the difference, so a wrong checksum stays wrong. Setting an
//! absent field does nothing, for example the port of a later fragment.
//!
//! A field that announces a header, such as the protocol of IP, changes no header but its
//! own. The packet is parsed again, so the following bytes are then read as another header.

use super::checksum::{self, Change};
use super::offload::changed_partial;
use super::parse::protocol_place;
use super::{Flaw, Layers, Packet};
use crate::Field;
use crate::field::{VLAN_PRESENT, eth_type, ip_proto};
use crate::key::Presence;

/// A time to live was not decremented since it was 0 or 1 (`OFPR_INVALID_TTL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTtl;

/// The time to live of a pushed MPLS label if the packet has no IP header.
const DEFAULT_TTL: u8 = 64;

/// The position of a transport checksum, and the bytes that it covers.
#[derive(Clone, Copy)]
struct TransportSum {
    at: usize,
    /// True if the checksum is optional: 0 means none. A sum of 0 is then written as 0xffff.
    optional: bool,
    /// True if the checksum also covers the pseudo-header: the IP addresses and the protocol.
    with_addresses: bool,
}

impl Packet {
    /// Sets a header field, the tunnel or a register. Does nothing if the packet lacks
    /// the field, since groups may send packets of any kind to an action.
    pub fn set_field(&mut self, field: Field, value: u128) {
        if !self.key.has(field) {
            return;
        }
        let layers = self.parsed.layers;
        let (network, transport) = (layers.network as usize, layers.transport as usize);
        let bytes = value.to_be_bytes();
        let [.., b4, b3, b2, b1] = bytes;
        let [.., m5, m4, m3, m2, m1, m0] = bytes;
        let mac = [m5, m4, m3, m2, m1, m0];
        match field {
            Field::EthDst | Field::EthSrc if self.frame.len() < 14 => return,
            Field::EthDst => self.put(0, &mac),
            Field::EthSrc => self.put(6, &mac),
            Field::EthType => return self.set_type([b2, b1]),
            Field::VlanVid | Field::VlanPcp => return self.set_tag(field, value),
            Field::IpDscp | Field::IpEcn => self.set_traffic_class(network, field, value),
            Field::IpProto => self.put_protocol(b1),
            Field::Ipv4Src => self.put_address(network + 12, &[b4, b3, b2, b1], true),
            Field::Ipv4Dst => self.put_address(network + 16, &[b4, b3, b2, b1], true),
            Field::Ipv6Src => self.put_address(network + 8, &bytes, true),
            Field::Ipv6Dst => self.put_address(network + 24, &bytes, !layers.routed),
            Field::Ipv6Flabel => {
                let class = self.frame.bytes()[network + 1] & 0xf0;
                self.put(network + 1, &[class | b3 & 15, b2, b1]);
            }
            Field::TcpSrc | Field::UdpSrc => self.put_transport(transport, &[b2, b1]),
            Field::TcpDst | Field::UdpDst => self.put_transport(transport + 2, &[b2, b1]),
            Field::SctpSrc => self.put_sctp(transport, &[b2, b1]),
            Field::SctpDst => self.put_sctp(transport + 2, &[b2, b1]),
            Field::Icmpv4Type | Field::Icmpv6Type => self.put_transport(transport, &[b1]),
            Field::Icmpv4Code | Field::Icmpv6Code => self.put_transport(transport + 1, &[b1]),
            Field::ArpOp => self.put(network + 6, &[b2, b1]),
            Field::ArpSha => self.put(network + 8, &mac),
            Field::ArpSpa => self.put(network + 14, &[b4, b3, b2, b1]),
            Field::ArpTha => self.put(network + 18, &mac),
            Field::ArpTpa => self.put(network + 24, &[b4, b3, b2, b1]),
            Field::NdTarget => self.put_transport(transport + 8, &bytes),
            Field::NdSll | Field::NdTll => {
                self.put_transport(layers.nd_option as usize + 2, &mac);
            }
            Field::MplsLabel | Field::MplsTc | Field::MplsBos => {
                self.set_label(network, field, value);
            }
            _ => {}
        }
        self.key.set(field, value);
        if field.announces_headers() {
            self.parse();
        }
    }

    /// Pushes a VLAN tag of a type, with the VLAN number and priority of the previous
    /// outermost tag, or 0 without a tag. Does nothing if the frame is shorter than an
    /// Ethernet header.
    pub fn push_vlan(&mut self, tag_type: u16) {
        if self.frame.len() < 14 {
            return;
        }
        let (vid, pcp) = (self.key.get(Field::VlanVid), self.key.get(Field::VlanPcp));
        let [.., c1, c0] = (pcp << 13 | vid & 0xfff).to_be_bytes();
        let [t1, t0] = tag_type.to_be_bytes();
        self.insert(12, [t1, t0, c1, c0]);
        self.parse();
    }

    /// Removes the outermost VLAN tag, if there is one.
    pub fn pop_vlan(&mut self) {
        if self.has_tag() {
            self.remove(12, 4);
            self.parse();
        }
    }

    /// Pushes an MPLS label after the VLAN tags: a copy of the previous outermost label,
    /// or label 0 with the time to live of IP, or 64 without IP. `kind` becomes the
    /// frame's type. Does nothing to frames with LLC.
    pub fn push_mpls(&mut self, kind: u16) {
        let Some(network) = self.typed_network() else {
            return;
        };
        let entry = match self.label() {
            // The new label is not the last one.
            Some(outer) => outer & !0x100,
            None => 0x100 | u32::from(self.ttl().unwrap_or(DEFAULT_TTL)),
        };
        self.insert(network, entry.to_be_bytes());
        self.put(network - 2, &kind.to_be_bytes());
        self.parse();
    }

    /// Removes the outermost MPLS label, if there is one. `kind` becomes the frame's
    /// type.
    pub fn pop_mpls(&mut self, kind: u16) {
        if let (Some(network), Some(_)) = (self.typed_network(), self.label()) {
            self.remove(network, 4);
            self.put(network - 2, &kind.to_be_bytes());
            self.parse();
        }
    }

    /// Sets the time to live of IP.
    pub fn set_ttl(&mut self, ttl: u8) {
        if let Some(at) = self.ttl_place() {
            self.put_ip(at, &[ttl]);
        }
    }

    /// Decrements the time to live of IP, if the packet is IP.
    ///
    /// # Errors
    /// [`InvalidTtl`]; the packet is unchanged.
    pub fn decrement_ttl(&mut self) -> Result<(), InvalidTtl> {
        match self.ttl() {
            Some(0 | 1) => Err(InvalidTtl),
            Some(ttl) => {
                self.set_ttl(ttl - 1);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Sets the time to live of the outermost MPLS label.
    pub fn set_mpls_ttl(&mut self, ttl: u8) {
        if self.label().is_some() {
            self.put(self.parsed.layers.network as usize + 3, &[ttl]);
        }
    }

    /// Decrements the time to live of the outermost MPLS label, if there is one.
    ///
    /// # Errors
    /// [`InvalidTtl`]; the packet is unchanged.
    pub fn decrement_mpls_ttl(&mut self) -> Result<(), InvalidTtl> {
        match self.label().map(u32::to_be_bytes) {
            Some([.., 0 | 1]) => Err(InvalidTtl),
            Some([.., ttl]) => {
                self.set_mpls_ttl(ttl - 1);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Copies the time to live of the next inner label or IP header to the outermost MPLS
    /// label.
    pub fn copy_ttl_out(&mut self) {
        if let (Some(_), Some(at)) = (self.label(), self.inner_ttl_place()) {
            self.set_mpls_ttl(self.frame.bytes()[at]);
        }
    }

    /// Copies the time to live of the outermost MPLS label to the next inner label or IP
    /// header.
    pub fn copy_ttl_in(&mut self) {
        if let (Some(label), Some(at)) = (self.label(), self.inner_ttl_place()) {
            let [.., ttl] = label.to_be_bytes();
            let inner = self.parsed.layers.network as usize + 4;
            match is_bottom(label) {
                // IPv4 has a checksum; IPv6 has none.
                true if self.frame.bytes()[inner] >> 4 == 4 => {
                    self.put_summed(inner, at, &[ttl], inner + 10);
                }
                _ => self.put(at, &[ttl]),
            }
        }
    }

    fn has_tag(&self) -> bool {
        self.key.get(Field::VlanVid) & u128::from(VLAN_PRESENT) != 0
    }

    fn eth_type(&self) -> u16 {
        u16::try_from(self.key.get(Field::EthType)).expect("sixteen bits")
    }

    /// Returns the begin of the network layer, if a type comes directly before it.
    fn typed_network(&self) -> Option<usize> {
        let Layers { network, llc, .. } = self.parsed.layers;
        let network = network as usize;
        (!llc && network >= 14 && network <= self.frame.len() && self.is_tagged_whole())
            .then_some(network)
    }

    /// True if the bytes before the network layer are a type, and not a tag that is
    /// truncated or beyond the parser's limit.
    fn is_tagged_whole(&self) -> bool {
        let kind = self.eth_type();
        !matches!(kind, eth_type::VLAN | eth_type::VLAN_SERVICE | 0x9100)
    }

    /// Writes the type after the VLAN tags, or the type in a SNAP header. Does nothing to
    /// frames without a type.
    fn set_type(&mut self, kind: [u8; 2]) {
        let Layers { network, llc, .. } = self.parsed.layers;
        let has_snap = llc && self.eth_type() != eth_type::NONE;
        let network = match has_snap {
            true => Some(network as usize),
            false => self.typed_network(),
        };
        if let Some(network) = network {
            self.put(network - 2, &kind);
            self.parse();
        }
    }

    /// Returns the outermost entry of the MPLS label stack: label, traffic class,
    /// bottom-of-stack bit and time to live.
    fn label(&self) -> Option<u32> {
        let is_mpls = matches!(self.eth_type(), eth_type::MPLS | eth_type::MPLS_UPSTREAM);
        if !is_mpls || !self.key.presence().has(Presence::NETWORK) {
            return None;
        }
        let label = self.frame.bytes()[self.parsed.layers.network as usize..].first_chunk();
        label.map(|&label| u32::from_be_bytes(label))
    }

    /// Returns the position of the time to live of IP.
    fn ttl_place(&self) -> Option<usize> {
        if !self.key.presence().has(Presence::NETWORK) {
            return None;
        }
        let network = self.parsed.layers.network as usize;
        match self.eth_type() {
            eth_type::IPV4 => Some(network + 8),
            eth_type::IPV6 => Some(network + 7),
            _ => None,
        }
    }

    fn ttl(&self) -> Option<u8> {
        Some(self.frame.bytes()[self.ttl_place()?])
    }

    /// Returns the position of the time to live of the next inner label or IP header.
    /// Labels do not name the protocol after the last label, so it is taken as IP if it
    /// begins with an IP version and is long enough.
    fn inner_ttl_place(&self) -> Option<usize> {
        let label = self.label()?;
        let inner = self.parsed.layers.network as usize + 4;
        let inner_bytes = &self.frame.bytes()[inner..self.parsed.layers.end as usize];
        let position = match (is_bottom(label), inner_bytes.first().map(|byte| byte >> 4)) {
            (false, _) if inner_bytes.len() >= 4 => inner + 3,
            (true, Some(4)) if inner_bytes.len() >= 20 => inner + 8,
            (true, Some(6)) if inner_bytes.len() >= 40 => inner + 7,
            _ => return None,
        };
        Some(position)
    }

    /// Sets the VLAN number or priority of the outermost tag.
    fn set_tag(&mut self, field: Field, value: u128) {
        if !self.has_tag() {
            return;
        }
        match field {
            Field::VlanVid => {
                let value = value | u128::from(VLAN_PRESENT);
                self.key.set(field, value);
            }
            _ => self.key.set(field, value),
        }
        let (vid, pcp) = (self.key.get(Field::VlanVid), self.key.get(Field::VlanPcp));
        // The drop-eligible bit between them keeps its value.
        let drop_eligible = self.frame.bytes()[14] & 0x10;
        let [.., high, low] = (pcp << 13 | vid & 0xfff).to_be_bytes();
        self.put(14, &[high | drop_eligible, low]);
    }

    fn set_label(&mut self, network: usize, field: Field, value: u128) {
        let Some(entry) = self.label() else {
            return;
        };
        let value = u32::try_from(value & field.max_value()).expect("twenty bits");
        let entry = match field {
            Field::MplsLabel => entry & 0xfff | value << 12,
            Field::MplsBos => entry & !0x100 | value << 8,
            _ => entry & !0xe00 | value << 9,
        };
        self.put(network, &entry.to_be_bytes());
    }

    /// Sets DSCP or ECN in IPv4 or IPv6.
    fn set_traffic_class(&mut self, network: usize, field: Field, value: u128) {
        let [.., value] = value.to_be_bytes();
        let joined = |class: u8| match field {
            Field::IpDscp => class & 3 | value << 2,
            _ => class & !3 | value & 3,
        };
        let bytes = self.frame.bytes();
        if self.eth_type() == eth_type::IPV4 {
            let class = joined(bytes[network + 1]);
            self.put_ip(network + 1, &[class]);
        } else {
            let (first, second) = (bytes[network], bytes[network + 1]);
            let class = joined(first << 4 | second >> 4);
            self.put(
                network,
                &[first & 0xf0 | class >> 4, second & 15 | class << 4],
            );
        }
    }

    /// Inserts bytes, and moves the places of the work that is left on the frame.
    fn insert(&mut self, at: usize, bytes: [u8; 4]) {
        self.frame.insert(at, bytes);
        self.offload.shift(at, 4);
    }

    /// Removes bytes, and moves the places of the work that is left on the frame.
    fn remove(&mut self, at: usize, count: u8) {
        self.frame.remove(at, usize::from(count));
        self.offload.shift(at, -i32::from(count));
    }

    /// Writes bytes that no checksum covers.
    fn put(&mut self, at: usize, new: &[u8]) {
        self.frame.bytes_mut()[at..][..new.len()].copy_from_slice(new);
    }

    /// Writes bytes of a header that begins at `from`, and adjusts the header's checksum at
    /// `sum`.
    fn put_summed(&mut self, from: usize, at: usize, new: &[u8], sum: usize) {
        let bytes = self.frame.bytes();
        let change = Change::of(at - from, &bytes[at..at + new.len()], new);
        let checksum = u16::from_be_bytes([bytes[sum], bytes[sum + 1]]);
        self.put(sum, &change.apply(checksum).to_be_bytes());
        self.put(at, new);
    }

    /// Writes bytes of an IP header, and adjusts the checksum of IPv4.
    fn put_ip(&mut self, at: usize, new: &[u8]) {
        let network = self.parsed.layers.network as usize;
        match self.eth_type() {
            eth_type::IPV4 => self.put_summed(network, at, new, network + 10),
            _ => self.put(at, new),
        }
    }

    /// Writes an address of IP. If `summed`, also adjusts a transport checksum that
    /// covers addresses.
    fn put_address(&mut self, at: usize, new: &[u8], summed: bool) {
        if summed {
            let old = &self.frame.bytes()[at..at + new.len()];
            self.change_pseudo_header(Change::of(0, old, new));
        }
        self.put_ip(at, new);
    }

    /// Writes the protocol above IP, and adjusts the transport checksum of the old protocol.
    fn put_protocol(&mut self, new: u8) {
        let Layers {
            network, transport, ..
        } = self.parsed.layers;
        let bytes = self.frame.bytes();
        let at = protocol_place(bytes, network as usize, transport as usize);
        // In the pseudo-header, the protocol is the second byte of its word.
        let change = Change::of(1, &[bytes[at]], &[new]);
        self.change_pseudo_header(change);
        self.put_ip(at, &[new]);
    }

    /// Adjusts the transport checksum after a change of the pseudo-header, if the packet has a
    /// checksum that covers a pseudo-header.
    fn change_pseudo_header(&mut self, change: Change) {
        let sum = self.transport_sum().filter(|sum| sum.with_addresses);
        if let Some(sum) = sum {
            match self.is_partial(sum) {
                true => self.change_partial_sum(sum, change),
                false => self.change_transport_sum(sum, change),
            }
        }
    }

    /// Writes bytes of a transport header, and adjusts its checksum.
    fn put_transport(&mut self, at: usize, new: &[u8]) {
        if let Some(sum) = self.transport_sum()
            && !self.is_partial(sum)
        {
            let transport = self.parsed.layers.transport as usize;
            let old = &self.frame.bytes()[at..at + new.len()];
            self.change_transport_sum(sum, Change::of(at - transport, old, new));
        }
        self.put(at, new);
    }

    /// True if a checksum covers only the pseudo-header so far.
    fn is_partial(&self, sum: TransportSum) -> bool {
        let partial = self.offload.checksum;
        partial.is_some_and(|partial| partial.place() == sum.at)
    }

    fn change_partial_sum(&mut self, sum: TransportSum, change: Change) {
        let bytes = self.frame.bytes();
        let old = u16::from_be_bytes([bytes[sum.at], bytes[sum.at + 1]]);
        let new = changed_partial(old, change);
        self.put(sum.at, &new.to_be_bytes());
    }

    fn change_transport_sum(&mut self, sum: TransportSum, change: Change) {
        let bytes = self.frame.bytes();
        let checksum = match u16::from_be_bytes([bytes[sum.at], bytes[sum.at + 1]]) {
            0 if sum.optional => return,
            old => change.apply(old),
        };
        let checksum = match checksum {
            0 if sum.optional => 0xffff,
            other => other,
        };
        self.put(sum.at, &checksum.to_be_bytes());
    }

    /// Returns the transport checksum, if the packet has one.
    fn transport_sum(&self) -> Option<TransportSum> {
        if !self.key.presence().has(Presence::TRANSPORT) {
            return None;
        }
        let [.., protocol] = self.key.get(Field::IpProto).to_be_bytes();
        let (offset, optional, with_addresses) = match protocol {
            ip_proto::TCP => (16, false, true),
            ip_proto::UDP => (6, true, true),
            ip_proto::ICMP => (2, false, false),
            ip_proto::ICMPV6 => (2, false, true),
            _ => return None,
        };
        let at = self.parsed.layers.transport as usize + offset;
        (at + 2 <= self.parsed.layers.end as usize).then_some(TransportSum {
            at,
            optional,
            with_addresses,
        })
    }

    /// Writes a port of SCTP. The checksum covers the whole packet, so a fragment's
    /// checksum cannot be adjusted.
    fn put_sctp(&mut self, at: usize, new: &[u8]) {
        let Layers { transport, end, .. } = self.parsed.layers;
        let (transport, end) = (transport as usize, end as usize);
        let packet = &self.frame.bytes()[transport..end];
        let whole = !self.parsed.layers.fragment && !self.parsed.flaws.contains(Flaw::PayloadCut);
        if let Some(old) = packet.get(8..12).filter(|_| whole) {
            // The checksum is computed with 0 in its own place; the difference does not
            // depend on that place.
            let old = u32::from_le_bytes([old[0], old[1], old[2], old[3]]);
            let sum = checksum::sctp(packet, at - transport, new, old);
            self.put(transport + 8, &sum.to_le_bytes());
        }
        self.put(at, new);
    }
}

/// True if an MPLS label is the last one of the label stack.
fn is_bottom(label: u32) -> bool {
    label & 0x100 != 0
}
