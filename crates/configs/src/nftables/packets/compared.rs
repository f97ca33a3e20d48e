//! The result of a comparison.

use crate::packets::PacketSet;

/// The packets of a comparison.
#[derive(Debug)]
pub(super) enum Compared {
    /// Exactly these packets.
    Packets(PacketSet),
    /// Some of these packets; no field expresses which.
    Unknown(PacketSet),
}
