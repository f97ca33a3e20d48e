//! Packets: an Ethernet frame together with its key.
//!
//! | module | what it has |
//! |---|---|
//! | `parse` | from bytes to a key, in one pass |
//! | `rewrite` | setting fields, pushing and popping tags and labels, times to live |
//! | `frame` | bytes with room in front |
//! | `flaw` | what is malformed |

mod checksum;
mod flaw;
mod frame;
mod parse;
mod rewrite;

pub use flaw::{Flaw, Flaws};
pub use frame::{Frame, HEADROOM};
pub use parse::{Layers, MAX_EXTENSION_BYTES, MAX_ND_OPTIONS, MAX_VLAN_TAGS, Parsed, parse};
pub use rewrite::InvalidTtl;

use crate::Field;
use crate::key::PacketKey;

/// A frame, its key and where its headers are. They change together.
///
/// ```
/// use classyard_datapath::{Field, Packet};
///
/// // An Ethernet frame of type 0x88b5 that came in by port 3.
/// let frame = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5, 0, 0];
/// let mut packet = Packet::new(&frame, 3);
/// assert_eq!(packet.key().get(Field::EthType), 0x88b5);
/// packet.push_vlan(0x8100);
/// assert_eq!(packet.bytes().len(), frame.len() + 4);
/// assert!(packet.key().has(Field::VlanPcp));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    frame: Frame,
    key: PacketKey,
    parsed: Parsed,
}

impl Packet {
    /// A frame that came in by a port.
    ///
    /// # Panics
    /// With a frame of 4 GiB or more.
    #[must_use]
    pub fn new(bytes: &[u8], in_port: u32) -> Packet {
        let mut packet = Packet::default();
        packet.receive(bytes, in_port);
        packet
    }

    /// Becomes a frame that came in by a port: metadata, tunnel and registers are 0.
    ///
    /// # Panics
    /// With a frame of 4 GiB or more.
    pub fn receive(&mut self, bytes: &[u8], in_port: u32) {
        self.frame.fill(bytes);
        self.key = PacketKey::default();
        // It came straight by a physical port, so both are the same (§7.4.1).
        self.key.set(Field::InPort, u128::from(in_port));
        self.key.set(Field::InPhyPort, u128::from(in_port));
        self.parse();
    }

    /// Becomes the same as another packet.
    pub fn copy_from(&mut self, other: &Packet) {
        self.frame.fill(other.bytes());
        self.key = other.key.clone();
        self.parsed = other.parsed;
    }

    /// Sets what is known of the frame anew, except for ports, metadata, tunnel and
    /// registers.
    fn parse(&mut self) {
        parse::parse_into(self.frame.bytes(), &mut self.key, &mut self.parsed);
    }

    /// The bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.frame.bytes()
    }

    /// The fields.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &PacketKey {
        &self.key
    }

    /// Where the headers are, and what is malformed.
    #[inline]
    #[must_use]
    pub fn parsed(&self) -> &Parsed {
        &self.parsed
    }

    /// Writes metadata where a mask says so.
    #[inline]
    pub fn write_metadata(&mut self, value: u64, mask: u64) {
        let old = self.key.words()[0];
        self.key.words_mut()[0] = old & !mask | value & mask;
    }
}
