//! Flows that were seen recently.

/// Slots for flows seen recently. The low bits of a flow's hash select the slot, which
/// has the hash's high 16 bits.
const SEEN_SLOTS: usize = 1 << 16;

/// Remembers the last flow of each slot.
pub(super) struct SeenFlows(Box<[u16]>);

impl SeenFlows {
    pub(super) fn new() -> SeenFlows {
        SeenFlows(vec![0; SEEN_SLOTS].into())
    }

    /// Notes a flow, given by its hash. Returns true if it was seen recently.
    pub(super) fn note(&mut self, flow: u64) -> bool {
        #[allow(clippy::cast_possible_truncation)] // parts of a hash
        let (slot, tag) = (flow as usize % SEEN_SLOTS, (flow >> 48) as u16);
        std::mem::replace(&mut self.0[slot], tag) == tag
    }
}
