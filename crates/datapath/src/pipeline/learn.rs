//! Learning paths: packets that the caches know nothing of are watched in the pipeline.
//!
//! For each such packet the lookups say which bits of the key they depended on. Bits that
//! actions have set before say nothing about the packet that came, and are left out;
//! those that decide whether an action sets something are added. So every packet that
//! has the same bits takes the same path ([FCH14] §3.2).

use super::side::Side;
use crate::action::Action;
use crate::cache::bits::{Words, add_has, known};
use crate::cache::microflow::Decision;
use crate::cache::path::{Path, Step};
use crate::field::{Field, VLAN_PRESENT};
use crate::flow::{Instructions, TableId};
use crate::flow_table::TableBuffers;
use crate::key::{KEY_WORDS, PacketKey};
use classyard::Winner;

/// A packet that is watched.
#[derive(Default)]
pub(super) struct Watched {
    /// Its flow's hash.
    pub(super) flow: u64,
    /// The megaflow that covered it, but was not believed any more.
    pub(super) stale: Option<Decision>,
    /// Its key as it came.
    pub(super) key: Words,
    /// The bits that its path depends on.
    pub(super) mask: Words,
    pub(super) path: Path,
    /// It is not known yet where its path ends.
    pub(super) is_open: bool,
    /// What actions have set so far.
    set: (Words, Words),
}

/// Who watches the packets of a vector.
#[derive(Default)]
pub(super) struct Learner {
    /// Those of this vector first; the others are memory for later ones.
    watched: Vec<Watched>,
    used: usize,
    /// For packets by their places in the vector: which of the watched ones, plus 1.
    places: Vec<u8>,
    buffers: TableBuffers,
}

/// Packets of a vector that can be watched.
const MOST: usize = 32;

impl Learner {
    pub(super) fn begin(&mut self, packets: usize) {
        self.used = 0;
        self.places.clear();
        self.places.resize(packets, 0);
    }

    /// Watches a packet, unless there are enough, or another one of its flow or of the
    /// same megaflow is watched.
    pub(super) fn watch(
        &mut self,
        place: usize,
        flow: u64,
        stale: Option<Decision>,
        key: &PacketKey,
    ) {
        let is_same = |other: &Watched| match stale {
            Some(_) => other.stale == stale,
            None => other.flow == flow,
        };
        if self.is_full() || self.watched().iter().any(is_same) {
            return;
        }
        if self.watched.len() == self.used {
            self.watched.push(Watched::default());
        }
        let watched = &mut self.watched[self.used];
        watched.begin(flow, stale, key);
        self.used += 1;
        self.places[place] = u8::try_from(self.used).expect("few packets");
    }

    /// The packets of this vector that are watched.
    pub(super) fn watched(&self) -> &[Watched] {
        &self.watched[..self.used]
    }

    /// Whether as many are watched as can be.
    pub(super) fn is_full(&self) -> bool {
        self.used == MOST
    }

    pub(super) fn is_watching(&self) -> bool {
        self.used > 0
    }

    /// A packet was looked up; its winner's instructions are still to be carried out.
    pub(super) fn looked_up(
        &mut self,
        (place, key): (usize, &PacketKey),
        table: TableId,
        winner: Winner,
        side: &Side,
    ) {
        let Some(number) = usize::from(self.places[place]).checked_sub(1) else {
            return;
        };
        let watched = &mut self.watched[number];
        if !watched.is_open {
            return;
        }
        let instructions = winner.rule().map(|id| &*side.flow(id).instructions);
        if instructions.is_some_and(|instructions| instructions.meter.is_some()) {
            watched.path.rest = Some(table);
            watched.is_open = false;
            return;
        }
        let mut mask = [0; KEY_WORDS];
        if let Some(rules) = side.table(table) {
            let same = rules.classify_masked(key, &mut mask, &mut self.buffers);
            debug_assert_eq!(same, winner);
        }
        watched.path.steps.push(Step {
            table,
            winner,
            set: known(&watched.set.0, &watched.set.1),
        });
        let next = instructions.and_then(|instructions| instructions.goto_table);
        if let (Some(instructions), Some(next)) = (instructions, next)
            && !watched.follow(instructions, key, &mut mask)
        {
            watched.path.rest = Some(next);
        }
        watched.is_open = next.is_some() && watched.path.rest.is_none();
        let set = watched.set_before();
        let all = watched.mask.iter_mut().zip(mask);
        for ((all, bits), set) in all.zip(set) {
            *all |= bits & !set;
        }
    }
}

impl Watched {
    /// Another packet, in the memory of the last one.
    fn begin(&mut self, flow: u64, stale: Option<Decision>, key: &PacketKey) {
        (self.flow, self.stale, self.key) = (flow, stale, *key.words());
        self.mask = [0; KEY_WORDS];
        self.path.clear();
        self.is_open = true;
        self.set = ([0; KEY_WORDS], [0; KEY_WORDS]);
    }

    /// What was set before the last step.
    fn set_before(&self) -> Words {
        let mut masks = [0; KEY_WORDS];
        if let Some(step) = self.path.steps.last() {
            for known in &step.set {
                masks[usize::from(known.word)] = known.mask;
            }
        }
        masks
    }

    /// Follows what instructions set in the key; says whether the key alone tells that.
    /// Adds the bits to a mask that decide it.
    fn follow(&mut self, instructions: &Instructions, key: &PacketKey, mask: &mut Words) -> bool {
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
                // These uncover other headers, or hide some.
                Action::PushVlan(_)
                | Action::PopVlan
                | Action::PushMpls(_)
                | Action::PopMpls(_) => return false,
                Action::SetField(value) => {
                    let field = value.field;
                    if matches!(field, Field::Icmpv6Type | Field::Icmpv6Code) {
                        // It may be neighbour discovery now, or no more.
                        return false;
                    }
                    add_has(mask, field);
                    if !is_set(key, field) {
                        continue;
                    }
                    let place = PacketKey::place(field);
                    let new = match field {
                        Field::VlanVid => value.value | u128::from(VLAN_PRESENT),
                        _ => value.value,
                    };
                    place.set(values, new);
                    place.set(masks, u128::MAX);
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

/// Whether setting a field changes a packet's key, which has it, whatever it is set to.
/// What other actions of the same entry set does not matter: none of them makes a packet
/// have a field or lack it.
fn is_set(key: &PacketKey, field: Field) -> bool {
    let has_tag = || key.get(Field::VlanVid) & u128::from(VLAN_PRESENT) != 0;
    match field {
        Field::VlanVid | Field::VlanPcp => has_tag(),
        // A frame that is too short for them has no type.
        Field::EthDst | Field::EthSrc => key.eth_type() != 0,
        _ => key.has(field),
    }
}
