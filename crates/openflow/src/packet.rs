//! Packets from and to the controller (OpenFlow 1.3.5 §7.3.7, §7.4.1).

use std::sync::Arc;

use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::PacketInReason;
use classyard_datapath::{Action, FlowMatch, PortNo};

use crate::action::read_actions;
use crate::fault::{Code, Fault};
use crate::flow::NO_BUFFER;
use crate::wire::{Reader, Wire, Writer, layout};

/// Reasons of packet-in messages (`ofp_packet_in_reason`).
impl Wire for PacketInReason {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        match reader.get::<u8>()? {
            0 => Ok(PacketInReason::NoMatch),
            1 => Ok(PacketInReason::Action),
            2 => Ok(PacketInReason::InvalidTtl),
            unknown => {
                let message = format!("a packet for the unknown reason {unknown}");
                Err(Fault::new(Code::BAD_LENGTH, message))
            }
        }
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&packet_in_number(*self));
    }
}

/// Returns the number of a reason; a mask of reasons has it as a bit.
pub(crate) fn packet_in_number(reason: PacketInReason) -> u8 {
    match reason {
        PacketInReason::NoMatch => 0,
        PacketInReason::Action => 1,
        PacketInReason::InvalidTtl => 2,
    }
}

layout! {
    /// A packet for the controller (`ofp_packet_in`).
    pub struct PacketIn {
        /// The number of the buffered packet; 2^32 − 1, since this switch buffers no packets.
        buffer: u32,
        /// The length of the packet, in bytes.
        total_bytes: u16,
        /// The reason.
        reason: PacketInReason,
        /// The table of the entry that sent the packet.
        table: TableId,
        /// The cookie of this entry.
        cookie: u64,
        /// The port of the packet, and its metadata if it has any.
        context: Arc<FlowMatch>,
        /// The first bytes of the packet.
        [2] data: Vec<u8>,
    }
}

impl PacketIn {
    /// Stands for a packet that is not buffered.
    pub const NO_BUFFER: u32 = NO_BUFFER;
}

/// A packet of the controller, and its actions (`ofp_packet_out`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut {
    /// The port that the packet counts as received from; [`PortNo::CONTROLLER`] for none.
    pub in_port: PortNo,
    /// The actions.
    pub actions: Vec<Action>,
    /// The frame.
    pub data: Vec<u8>,
}

impl Wire for PacketOut {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let buffer: u32 = reader.get()?;
        if buffer != NO_BUFFER {
            let message = format!("buffer {buffer}; this switch buffers no packets");
            return Err(Fault::new(Code::BUFFER_UNKNOWN, message));
        }
        let in_port = reader.get()?;
        let length: u16 = reader.get()?;
        reader.skip(6)?;
        Ok(PacketOut {
            in_port,
            actions: read_actions(reader, usize::from(length))?,
            data: reader.get()?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&NO_BUFFER);
        writer.put(&self.in_port);
        let length_start = writer.len();
        writer.put(&0_u16);
        writer.skip(6);
        let start = writer.len();
        writer.list(&self.actions);
        writer.set_length(length_start, writer.len() - start);
        writer.put(&self.data);
    }
}
