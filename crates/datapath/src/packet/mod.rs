//! Packets: Ethernet frames with their keys.
//!
//! | module | what it has |
//! |---|---|
//! | `parse` | parsing of bytes to a key, in one pass |
//! | `rewrite` | setting fields, pushing and popping tags and labels, times to live |
//! | `frame` | bytes with free space in front |
//! | `offload` | work that a sender leaves to a network card: checksum, segments |
//! | `flaw` | kinds of malformations |

mod checksum;
mod flaw;
mod frame;
mod offload;
mod parse;
mod rewrite;

pub use flaw::{Flaw, Flaws};
pub use frame::{Frame, HEADROOM};
pub use offload::{Offload, PartialChecksum, SegmentKind, Segmentation, Segments};
pub use parse::{Layers, MAX_EXTENSION_BYTES, MAX_ND_OPTIONS, MAX_VLAN_TAGS, Parsed, parse};
pub use rewrite::InvalidTtl;

use crate::Field;
use crate::key::PacketKey;

/// An Ethernet frame, its key and the positions of its headers. Each change of the packet
/// keeps all three consistent.
///
/// ```
/// use classyard_datapath::{Field, Packet};
///
/// // An Ethernet frame of type 0x88b5, received on port 3.
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
    /// Work that is left on the frame.
    offload: Offload,
}

impl Packet {
    /// Returns a packet with a frame that was received on a port.
    ///
    /// # Panics
    /// If the frame has 4 GiB or more.
    #[must_use]
    pub fn new(bytes: &[u8], in_port: u32) -> Packet {
        let mut packet = Packet::default();
        packet.receive(bytes, in_port);
        packet
    }

    /// Replaces the packet by a frame that was received on a port. Metadata, tunnel and
    /// registers become 0.
    ///
    /// # Panics
    /// If the frame has 4 GiB or more.
    pub fn receive(&mut self, bytes: &[u8], in_port: u32) {
        self.frame.fill(bytes);
        self.offload = Offload::NONE;
        self.key = PacketKey::default();
        // The frame came directly from a physical port, so both fields are equal
        // (§7.4.1).
        self.key.set(Field::InPort, u128::from(in_port));
        self.key.set(Field::InPhyPort, u128::from(in_port));
        self.parse();
    }

    /// Replaces this packet by a copy of `other`.
    pub fn copy_from(&mut self, other: &Packet) {
        self.frame.fill(other.bytes());
        self.key = other.key.clone();
        self.parsed = other.parsed;
        self.offload = other.offload;
    }

    /// Returns a packet with another frame, on which no work is left. Ports, metadata, tunnel and
    /// registers are the same.
    ///
    /// # Panics
    /// If the frame has 4 GiB or more.
    #[must_use]
    pub fn with_frame(&self, bytes: &[u8]) -> Packet {
        let mut packet = Packet {
            frame: Frame::new(bytes),
            key: self.key.clone(),
            parsed: self.parsed,
            offload: Offload::NONE,
        };
        packet.parse();
        packet
    }

    /// Parses the frame again. Ports, metadata, tunnel and registers keep their values.
    fn parse(&mut self) {
        parse::parse_into(self.frame.bytes(), &mut self.key, &mut self.parsed);
    }

    /// Returns the bytes of the frame.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.frame.bytes()
    }

    /// Returns the fields.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &PacketKey {
        &self.key
    }

    /// Returns the positions of the headers, and the flaws.
    #[inline]
    #[must_use]
    pub fn parsed(&self) -> &Parsed {
        &self.parsed
    }

    /// Writes the metadata bits of `mask`.
    #[inline]
    pub fn write_metadata(&mut self, value: u64, mask: u64) {
        let old = self.key.words()[0];
        self.key.words_mut()[0] = old & !mask | value & mask;
    }
}
