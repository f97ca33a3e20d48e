//! A packet on its way through the switch.

use classyard_datapath::Field;

use crate::frame::{Parsed, parse};

/// A packet: its bytes, what is read from them, and what the switch notes beside them.
#[derive(Clone, Debug)]
pub struct Packet {
    pub(crate) bytes: Vec<u8>,
    pub(crate) parsed: Parsed,
    in_port: u32,
    metadata: u64,
    tunnel: u64,
    registers: [u32; 16],
    /// The queue that an action has chosen.
    pub(crate) queue: Option<u32>,
}

fn register(field: Field) -> Option<usize> {
    field.index().checked_sub(Field::Reg0.index())
}

impl Packet {
    /// A frame that has come in by a port, by way of a tunnel or of tunnel 0.
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
        }
    }

    /// The bytes as they are now.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A field, if the packet has it.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<u128> {
        match field {
            // §7.2.3.8: a packet that came straight by a physical port has both the same.
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

    /// Sets what is no field of a header; says whether it is.
    pub(crate) fn note(&mut self, field: Field, value: u128) -> bool {
        let [.., a, b, c, d, e, f, g, h] = value.to_be_bytes();
        match (field, register(field)) {
            (Field::TunnelId, _) => self.tunnel = u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            (_, Some(number)) => self.registers[number] = u32::from_be_bytes([e, f, g, h]),
            _ => return false,
        }
        true
    }

    /// Reads the bytes again.
    pub(crate) fn read(&mut self) {
        self.parsed = parse(&self.bytes);
    }
}
