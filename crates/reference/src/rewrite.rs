//! Actions that change a packet (OpenFlow 1.3.5 §5.12). An action has no effect on a
//! packet without its field or header.

use std::ops::Range;

use classyard_datapath::Field;

use crate::fields::MPLS;
use crate::frame::{Network, number};
use crate::packet::Packet;
use crate::sums::{self, Sum};

/// The time to live was 0 or 1, so it was not decremented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidTtl;

/// The time to live of a first label in front of a header that has none.
const DEFAULT_TTL: u128 = 64;

impl Packet {
    /// Writes bytes, and adjusts the checksums that cover them.
    fn write(&mut self, at: usize, new: &[u8]) {
        let sums = sums::of(&self.bytes, &self.parsed, self.partial_checksum());
        self.write_within(at, new, &sums);
    }

    fn write_within(&mut self, at: usize, new: &[u8], sums: &[Sum]) {
        let range = at..at + new.len();
        let old = self.bytes.clone();
        self.bytes[range.clone()].copy_from_slice(new);
        for sum in sums.iter().filter(|sum| sum.covers(&range)) {
            sum.adjust(&old, &mut self.bytes);
        }
        self.read();
    }

    /// Writes bits, counted from the beginning of the frame.
    fn write_bits(&mut self, bits: Range<usize>, value: u128) {
        let bytes = bits.start / 8..bits.end.div_ceil(8);
        let mut new = self.bytes[bytes.clone()].to_vec();
        for (number, bit) in bits.rev().enumerate() {
            let (byte, mask) = (bit / 8 - bytes.start, 0x80 >> (bit % 8));
            new[byte] = match value >> number & 1 {
                0 => new[byte] & !mask,
                _ => new[byte] | mask,
            };
        }
        self.write(bytes.start, &new);
    }

    /// Returns the position of a header field that the packet has, in bits from the
    /// beginning of the frame.
    fn bits_of(&self, field: Field) -> Option<Range<usize>> {
        let parsed = &self.parsed;
        let is_ipv4 = parsed.network == Network::Ipv4;
        let network = |offset: usize, count| Some((parsed.at * 8 + offset, count));
        let transport = |offset: usize, count| Some((parsed.transport? * 8 + offset, count));
        let (first, count) = match field {
            Field::EthDst => Some((0, 48)),
            Field::EthSrc => Some((48, 48)),
            Field::EthType => Some((parsed.type_at? * 8, 16)),
            Field::IpProto => Some((parsed.protocol_at? * 8, 8)),
            // Priority (3 bits), drop eligible (1 bit), VLAN number (12 bits).
            Field::VlanPcp => Some((14 * 8, 3)),
            Field::VlanVid => Some((14 * 8 + 4, 12)),
            Field::IpDscp if is_ipv4 => network(8, 6),
            Field::IpEcn if is_ipv4 => network(14, 2),
            Field::IpDscp => network(4, 6),
            Field::IpEcn => network(10, 2),
            Field::Ipv6Flabel => network(12, 20),
            Field::Ipv4Src => network(96, 32),
            Field::Ipv4Dst => network(128, 32),
            Field::Ipv6Src => network(64, 128),
            Field::Ipv6Dst => network(192, 128),
            Field::ArpOp => network(48, 16),
            Field::ArpSha => network(64, 48),
            Field::ArpSpa => network(112, 32),
            Field::ArpTha => network(144, 48),
            Field::ArpTpa => network(192, 32),
            Field::MplsLabel => network(0, 20),
            Field::MplsTc => network(20, 3),
            Field::MplsBos => network(23, 1),
            Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => transport(0, 16),
            Field::TcpDst | Field::UdpDst | Field::SctpDst => transport(16, 16),
            Field::Icmpv4Type | Field::Icmpv6Type => transport(0, 8),
            Field::Icmpv4Code | Field::Icmpv6Code => transport(8, 8),
            Field::NdTarget => transport(64, 128),
            Field::NdSll | Field::NdTll => Some((parsed.option_address? * 8, 48)),
            _ => None,
        }?;
        Some(first..first + count)
    }

    pub(crate) fn set_field(&mut self, field: Field, value: u128) {
        if self.note(field, value) || self.get(field).is_none() {
            return;
        }
        let is_lacking = match field {
            Field::EthDst | Field::EthSrc => !self.parsed.has_ethernet,
            Field::VlanVid | Field::VlanPcp => !self.parsed.has_tag,
            _ => false,
        };
        if let (false, Some(bits)) = (is_lacking, self.bits_of(field)) {
            self.write_bits(bits, value);
        }
    }

    /// Pushes a tag with the outermost tag's priority and number; both are 0 without a
    /// tag.
    pub(crate) fn push_vlan(&mut self, kind: u16) {
        if !self.parsed.has_ethernet {
            return;
        }
        let field = |field| self.get(field).unwrap_or(0);
        let control = field(Field::VlanPcp) << 13 | field(Field::VlanVid) & 0xfff;
        let [.., high, low] = control.to_be_bytes();
        let [kind_high, kind_low] = kind.to_be_bytes();
        self.bytes.splice(12..12, [kind_high, kind_low, high, low]);
        self.read();
    }

    pub(crate) fn pop_vlan(&mut self) {
        if self.parsed.has_tag {
            self.bytes.drain(12..16);
            self.read();
        }
    }

    /// Pushes a label behind the VLAN tags: a copy of the outermost label, not marked as
    /// the last; or, without labels, label 0, marked as the last, with the time to live
    /// of IP.
    pub(crate) fn push_mpls(&mut self, kind: u16) {
        let Some(at) = self.parsed.after_type else {
            return;
        };
        let label = match self.parsed.network {
            Network::Mpls => number(&self.bytes[at..at + 4]) & !0x100,
            _ => {
                0x100
                    | self
                        .ttl_at()
                        .map_or(DEFAULT_TTL, |at| self.bytes[at].into())
            }
        };
        let [.., a, b, c, d] = label.to_be_bytes();
        self.bytes.splice(at..at, [a, b, c, d]);
        self.bytes[at - 2..at].copy_from_slice(&kind.to_be_bytes());
        self.read();
    }

    pub(crate) fn pop_mpls(&mut self, kind: u16) {
        if let (Some(at), Network::Mpls) = (self.parsed.after_type, self.parsed.network) {
            self.bytes.drain(at..at + 4);
            self.bytes[at - 2..at].copy_from_slice(&kind.to_be_bytes());
            self.read();
        }
    }

    /// Returns the offset of IP's time to live.
    fn ttl_at(&self) -> Option<usize> {
        match self.parsed.network {
            Network::Ipv4 => Some(self.parsed.at + 8),
            Network::Ipv6 => Some(self.parsed.at + 7),
            _ => None,
        }
    }

    /// Returns the offset of the outermost label's time to live.
    fn mpls_ttl_at(&self) -> Option<usize> {
        (self.parsed.network == Network::Mpls).then_some(self.parsed.at + 3)
    }

    pub(crate) fn set_ttl(&mut self, ttl: u8) {
        if let Some(at) = self.ttl_at() {
            self.write(at, &[ttl]);
        }
    }

    pub(crate) fn set_mpls_ttl(&mut self, ttl: u8) {
        if let Some(at) = self.mpls_ttl_at() {
            self.write(at, &[ttl]);
        }
    }

    pub(crate) fn decrement_ttl(&mut self) -> Result<(), InvalidTtl> {
        self.decrement(self.ttl_at())
    }

    pub(crate) fn decrement_mpls_ttl(&mut self) -> Result<(), InvalidTtl> {
        self.decrement(self.mpls_ttl_at())
    }

    fn decrement(&mut self, at: Option<usize>) -> Result<(), InvalidTtl> {
        let Some(at) = at else {
            return Ok(());
        };
        match self.bytes[at] {
            0 | 1 => Err(InvalidTtl),
            ttl => {
                self.write(at, &[ttl - 1]);
                Ok(())
            }
        }
    }

    /// Returns the offset of the time to live below the outermost label, and the checksum
    /// of its header. Labels have no type for the header after the last one: it is IP if
    /// it begins with the version and is complete.
    fn inner_ttl(&self) -> Option<(usize, Option<Sum>)> {
        if self.parsed.network != Network::Mpls {
            return None;
        }
        let inner = self.parsed.at + 4;
        let payload = &self.bytes[inner..self.parsed.end];
        let is_last = self.get(Field::MplsBos) == Some(1);
        match (is_last, payload.len(), payload.first()? / 16) {
            (false, 4.., _) => Some((inner + 3, None)),
            (true, 20.., 4) => Some((inner + 8, Some(sums::of_ipv4_header(&self.bytes, inner)))),
            (true, 40.., 6) => Some((inner + 7, None)),
            _ => None,
        }
    }

    pub(crate) fn copy_ttl_out(&mut self) {
        if let Some((at, _)) = self.inner_ttl() {
            self.set_mpls_ttl(self.bytes[at]);
        }
    }

    pub(crate) fn copy_ttl_in(&mut self) {
        if let (Some((inner_at, sum)), Some(label_at)) = (self.inner_ttl(), self.mpls_ttl_at()) {
            let ttl = self.bytes[label_at];
            self.write_within(inner_at, &[ttl], sum.as_slice());
        }
    }

    /// True if an EtherType announces MPLS.
    pub(crate) fn is_mpls(kind: u16) -> bool {
        MPLS.contains(&kind.into())
    }
}
