//! Which flows are recorded: flows that were seen recently, and a sample of the others.

/// Slots for flows seen recently. The low bits of a flow's hash select the slot, which
/// has the hash's high 16 bits.
const SEEN_SLOTS: usize = 1 << 16;

/// One in this number of packets whose flows were not seen recently is recorded.
const SAMPLING_PACKETS: u32 = 64;

/// Remembers the last flow of each slot, and counts packets to sample them.
pub(super) struct SeenFlows {
    slots: Box<[u16]>,
    packets: u32,
}

/// The reasons to record a packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// True if the flow was seen recently.
    pub(super) recently: bool,
    /// True if the packet is in the sample.
    pub(super) is_sampled: bool,
}

impl SeenFlows {
    pub(super) fn new() -> SeenFlows {
        SeenFlows {
            slots: vec![0; SEEN_SLOTS].into(),
            packets: 0,
        }
    }

    /// Notes a packet of a flow, given by its hash.
    pub(super) fn note(&mut self, flow: u64) -> Seen {
        #[allow(clippy::cast_possible_truncation)] // parts of a hash
        let (slot, tag) = (flow as usize % SEEN_SLOTS, (flow >> 48) as u16);
        self.packets = self.packets.wrapping_add(1);
        Seen {
            recently: std::mem::replace(&mut self.slots[slot], tag) == tag,
            is_sampled: self.packets.is_multiple_of(SAMPLING_PACKETS),
        }
    }
}
