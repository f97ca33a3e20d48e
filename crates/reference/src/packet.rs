//! A packet in the switch's pipeline.

use classyard_datapath::Field;

use crate::fields::{TCP, UDP};
use crate::frame::{Parsed, parse};

/// A packet: its bytes, the fields parsed from them, and its metadata in the switch.
#[derive(Clone, Debug)]
pub struct Packet {
    pub(crate) bytes: Vec<u8>,
    pub(crate) parsed: Parsed,
    in_port: u32,
    metadata: u64,
    tunnel: u64,
    registers: [u32; 16],
    /// The queue set by an action.
    pub(crate) queue: Option<u32>,
    /// The distance of a partial checksum from the end of the frame. Pushes and pops move
    /// only bytes before it, so the distance stays the same.
    partial_from_end: Option<usize>,
}

fn register(field: Field) -> Option<usize> {
    field.index().checked_sub(Field::Reg0.index())
}

impl Packet {
    /// Creates a packet from a frame received by a port and a tunnel; tunnel 0 stands for
    /// none.
    #[must_use]
    pub fn new(bytes: &[u8], in_port: u32, tunnel: u64) -> Packet {
        Packet {
            bytes: bytes.to_vec(),
            parsed: parse(bytes),
            in_port,
            metadata: 0,
            tunnel,
            registers: [0; 16],
            queue: None,
            partial_from_end: None,
        }
    }

    /// Returns the packet with a partial checksum at `place` in the frame: the field holds the
    /// sum of the pseudo-header.
    #[must_use]
    pub fn with_partial_checksum(self, place: usize) -> Packet {
        let partial_from_end = self.bytes.len().checked_sub(place);
        Packet {
            partial_from_end,
            ..self
        }
    }

    /// Returns the start of the transport header of TCP or UDP, and the place of the checksum
    /// behind it.
    #[must_use]
    pub fn transport_checksum(&self) -> Option<(usize, usize)> {
        let start = self.parsed.transport?;
        let offset = match self.get(Field::IpProto)? {
            TCP => 16,
            UDP => 6,
            _ => return None,
        };
        (start + offset + 2 <= self.parsed.end).then_some((start, offset))
    }

    /// Returns the place of a partial checksum in the frame.
    #[must_use]
    pub fn partial_checksum(&self) -> Option<usize> {
        self.bytes.len().checked_sub(self.partial_from_end?)
    }

    /// Returns the current bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns a field, if the packet has it.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<u128> {
        match field {
            // §7.2.3.8: both are equal for a packet that was received directly by a
            // physical port.
            Field::InPort | Field::InPhyPort => Some(self.in_port.into()),
            Field::Metadata => Some(self.metadata.into()),
            Field::TunnelId => Some(self.tunnel.into()),
            _ => match register(field) {
                Some(number) => Some(self.registers[number].into()),
                None => self.parsed.fields.get(field),
            },
        }
    }

    pub(crate) fn write_metadata(&mut self, value: u64, mask: u64) {
        self.metadata = self.metadata & !mask | value & mask;
    }

    /// Sets a field that is not in a header; returns false if the field is in a header.
    pub(crate) fn note(&mut self, field: Field, value: u128) -> bool {
        let [.., a, b, c, d, e, f, g, h] = value.to_be_bytes();
        match (field, register(field)) {
            (Field::TunnelId, _) => self.tunnel = u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            (_, Some(number)) => self.registers[number] = u32::from_be_bytes([e, f, g, h]),
            _ => return false,
        }
        true
    }

    /// Parses the bytes again.
    pub(crate) fn read(&mut self) {
        self.parsed = parse(&self.bytes);
    }
}
