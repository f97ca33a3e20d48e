//! Work on frames that the other end does not take: checksums are finished and segments cut
//! here.

use classyard_datapath::Packet;

/// Buffers for finished frames.
#[derive(Debug, Default)]
pub(crate) struct Software {
    packet: Packet,
    segment: Vec<u8>,
}

impl Software {
    /// Calls `emit` with each whole frame that a packet stands for.
    pub(crate) fn frames(&mut self, packet: &Packet, mut emit: impl FnMut(&[u8])) {
        if let Some(mut segments) = packet.segments() {
            while segments.next_into(&mut self.segment) {
                emit(&self.segment);
            }
        } else if packet.offload().checksum.is_some() {
            self.packet.copy_from(packet);
            self.packet.finish_checksum();
            emit(self.packet.bytes());
        } else {
            emit(packet.bytes());
        }
    }
}
