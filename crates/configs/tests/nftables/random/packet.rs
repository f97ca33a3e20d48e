//! Random packets.

use classyard::policy::PartId;

use crate::support::Random;

/// A packet.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) is_v6: bool,
    /// The last byte of the addresses 10.0.0.x or fd00::x.
    pub(super) source: u8,
    pub(super) destination: u8,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) protocol: u8,
    pub(super) icmp_type: u8,
    pub(super) flags: u8,
    pub(super) fragment: u8,
    pub(super) state: usize,
    pub(super) input: &'static str,
}

pub(super) const PROTOCOLS: [(&str, u8); 5] = [
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("ipv6-icmp", 58),
];
/// States in the order of the values of the field `state`.
pub(super) const STATES: [&str; 5] = ["new", "established", "related", "invalid", "untracked"];
pub(super) const FLAGS: [&str; 4] = ["fin", "syn", "rst", "ack"];
pub(super) const FLAG_BITS: [u8; 4] = [1, 2, 4, 16];
pub(super) const INTERFACES: [&str; 4] = ["eth0", "eth1", "lo", "wan"];
pub(super) const PATTERNS: [&str; 5] = ["eth0", "eth*", "lo", "e*", "wan"];

impl Packet {
    pub(super) fn new(random: &mut Random) -> Packet {
        let byte = |random: &mut Random, limit: usize| u8::try_from(random.below(limit)).unwrap();
        Packet {
            is_v6: random.coin(),
            source: byte(random, 16),
            destination: byte(random, 16),
            source_port: byte(random, 12).into(),
            destination_port: byte(random, 12).into(),
            protocol: random.pick(&PROTOCOLS).1,
            icmp_type: byte(random, 12),
            flags: byte(random, 32),
            fragment: byte(random, 6).saturating_sub(3),
            state: random.below(5),
            input: random.pick(&INTERFACES),
        }
    }

    /// Returns the values of the fields of the schema.
    pub(super) fn header(&self, list: &str) -> (PartId, Vec<u128>) {
        let name = |name: &str| {
            let mut bytes = [0; 16];
            bytes[..name.len()].copy_from_slice(name.as_bytes());
            u128::from_be_bytes(bytes)
        };
        let start: u128 = if self.is_v6 {
            0xfd00 << 112
        } else {
            0x0a00_0000
        };
        let values = vec![
            start | u128::from(self.source),
            start | u128::from(self.destination),
            self.source_port.into(),
            self.destination_port.into(),
            self.protocol.into(),
            self.icmp_type.into(),
            0,
            self.flags.into(),
            self.fragment.into(),
            self.state as u128,
            name(self.input),
            0,
            name(list),
            0,
        ];
        (PartId::from_index(usize::from(self.is_v6)), values)
    }
}
