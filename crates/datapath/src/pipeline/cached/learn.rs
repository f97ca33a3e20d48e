//! Learning paths: records packets that miss the caches on their way through the tables.
//!
//! For each recorded packet, lookups return the bits of the key that they depended on. Bits
//! that earlier actions have set are left out, since they do not depend on the received
//! packet. Bits that decide whether an action sets something are added. So every packet
//! with the same values of these bits takes the same path ([FCH14] §3.2).

use crate::action::Action;
use crate::cache::bits::{Words, add_has, known};
use crate::cache::microflow::CachedDecision;
use crate::cache::path::{Path, Step};
use crate::field::{Field, VLAN_PRESENT};
use crate::flow::{Instructions, TableId};
use crate::flow_table::TableBuffers;
use crate::key::{KEY_WORDS, PacketKey};
use crate::pipeline::run::process::Recorder;
use crate::pipeline::run::side::Side;
use classyard::Winner;

/// A recorded packet.
#[derive(Default)]
pub(super) struct RecordedPacket {
    /// The hash of its flow.
    pub(in crate::pipeline) flow: u64,
    /// The stale megaflow that covered it.
    pub(super) stale: Option<CachedDecision>,
    /// Its key when it was received.
    pub(in crate::pipeline) key: Words,
    /// The bits of the key that its path depends on.
    pub(in crate::pipeline) mask: Words,
    pub(in crate::pipeline) path: Path,
    /// True until the end of its path is known.
    pub(in crate::pipeline) is_open: bool,
    /// Values and mask of the bits that actions have set so far.
    set: (Words, Words),
}

/// Records packets of a vector.
#[derive(Default)]
pub(super) struct Learner {
    /// The first `used` items are of this vector; the memory of the others is reused.
    recorded: Vec<RecordedPacket>,
    used: usize,
    /// For each packet of the vector: its index in `recorded` plus 1, or 0.
    places: Vec<u8>,
    buffers: TableBuffers,
}

/// Maximum number of recorded packets in a vector. It bounds the time that recording adds
/// to a vector.
const MAX_RECORDED: usize = 32;

impl Learner {
    pub(in crate::pipeline) fn begin(&mut self, packets: usize) {
        self.used = 0;
        self.places.clear();
        self.places.resize(packets, 0);
    }

    /// Records a packet, unless the maximum is reached, or another packet of its flow or of
    /// its stale megaflow is recorded.
    pub(in crate::pipeline) fn record(
        &mut self,
        place: usize,
        flow: u64,
        stale: Option<CachedDecision>,
        key: &PacketKey,
    ) {
        let is_same = |recorded: &RecordedPacket| match stale {
            Some(_) => recorded.stale == stale,
            None => recorded.flow == flow,
        };
        if self.is_full() || self.recorded().iter().any(is_same) {
            return;
        }
        if self.recorded.len() == self.used {
            self.recorded.push(RecordedPacket::default());
        }
        let recorded = &mut self.recorded[self.used];
        recorded.begin(flow, stale, key);
        self.used += 1;
        self.places[place] = u8::try_from(self.used).expect("few packets");
    }

    /// The recorded packets of this vector.
    pub(in crate::pipeline) fn recorded(&self) -> &[RecordedPacket] {
        &self.recorded[..self.used]
    }

    /// True if the maximum number of packets is recorded.
    pub(super) fn is_full(&self) -> bool {
        self.used == MAX_RECORDED
    }

    pub(super) fn is_recording(&self) -> bool {
        self.used > 0
    }
}

impl Recorder for Learner {
    /// Records a lookup of a packet, before its winner's instructions are carried out.
    fn looked_up(
        &mut self,
        (place, key): (usize, &PacketKey),
        table: TableId,
        winner: Winner,
        side: &Side,
    ) {
        let Some(number) = usize::from(self.places[place]).checked_sub(1) else {
            return;
        };
        let recorded = &mut self.recorded[number];
        if !recorded.is_open {
            return;
        }
        let instructions = winner.rule().map(|id| &*side.flow(id).instructions);
        if instructions.is_some_and(|instructions| instructions.meter.is_some()) {
            recorded.path.rest = Some(table);
            recorded.is_open = false;
            return;
        }
        // Looks the packet up again, for the mask.
        let mut mask = [0; KEY_WORDS];
        if let Some(rules) = side.table(table) {
            let masked_winner = rules.classify_masked(key, &mut mask, &mut self.buffers);
            debug_assert_eq!(masked_winner, winner);
        }
        recorded.path.steps.push(Step {
            table,
            winner,
            set: known(&recorded.set.0, &recorded.set.1),
        });
        let next = instructions.and_then(|instructions| instructions.goto_table);
        if let (Some(instructions), Some(next)) = (instructions, next)
            && !recorded.write(instructions, key, &mut mask)
        {
            recorded.path.rest = Some(next);
        }
        recorded.is_open = next.is_some() && recorded.path.rest.is_none();
        let set = recorded.set_before();
        let words = recorded.mask.iter_mut().zip(mask);
        for ((word, bits), set) in words.zip(set) {
            *word |= bits & !set;
        }
    }
}

impl RecordedPacket {
    /// Begins with another packet and reuses the memory.
    fn begin(&mut self, flow: u64, stale: Option<CachedDecision>, key: &PacketKey) {
        (self.flow, self.stale, self.key) = (flow, stale, *key.words());
        self.mask = [0; KEY_WORDS];
        self.path.clear();
        self.is_open = true;
        self.set = ([0; KEY_WORDS], [0; KEY_WORDS]);
    }

    /// Returns the mask of the bits that actions set before the last step.
    fn set_before(&self) -> Words {
        let mut masks = [0; KEY_WORDS];
        if let Some(step) = self.path.steps.last() {
            for known in &step.set {
                masks[usize::from(known.word)] = known.mask;
            }
        }
        masks
    }

    /// Updates `set` with the bits that the instructions write into the key. Adds to `mask`
    /// the bits that determine whether an action writes. Returns false if the key alone does
    /// not determine the result.
    fn write(&mut self, instructions: &Instructions, key: &PacketKey, mask: &mut Words) -> bool {
        let (values, masks) = &mut self.set;
        for action in &instructions.apply {
            match *action {
                Action::Output { .. }
                | Action::Group(_)
                | Action::SetQueue(_)
                | Action::SetMplsTtl(_)
                | Action::DecrementMplsTtl
                | Action::SetTtl(_)
                | Action::DecrementTtl
                | Action::CopyTtlOut
                | Action::CopyTtlIn => {}
                // These actions uncover or hide other headers.
                Action::PushVlan(_)
                | Action::PopVlan
                | Action::PushMpls(_)
                | Action::PopMpls(_) => return false,
                Action::SetField(value) => {
                    let field = value.field;
                    if matches!(field, Field::Icmpv6Type | Field::Icmpv6Code) {
                        // The packet may become or cease to be neighbour discovery.
                        return false;
                    }
                    add_has(mask, field);
                    if !is_set(key, field) {
                        continue;
                    }
                    let field_place = PacketKey::place(field);
                    let new = match field {
                        Field::VlanVid => value.value | u128::from(VLAN_PRESENT),
                        _ => value.value,
                    };
                    field_place.set(values, new);
                    field_place.set(masks, u128::MAX);
                }
            }
        }
        if let Some((value, bits)) = instructions.metadata {
            values[0] = values[0] & !bits | value & bits;
            masks[0] |= bits;
        }
        true
    }
}

/// Returns true if an action that sets the field writes it into the packet's key. Other
/// actions of the same entry do not matter, since none of them adds or removes a field.
fn is_set(key: &PacketKey, field: Field) -> bool {
    let has_tag = || key.get(Field::VlanVid) & u128::from(VLAN_PRESENT) != 0;
    match field {
        Field::VlanVid | Field::VlanPcp => has_tag(),
        // A frame too short for Ethernet addresses has type 0.
        Field::EthDst | Field::EthSrc => key.eth_type() != 0,
        _ => key.has(field),
    }
}
