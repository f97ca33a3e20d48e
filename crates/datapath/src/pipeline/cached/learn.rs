//! Learning paths: packets that miss the caches are recorded on their way through the
//! tables, and later packets run the program of the recorded path.
//!
//! ```text
//! miss ─▶ SeenFlows ─▶ Learner ─▶ tables ─▶ RecordedPacket ─▶ Program ─▶ later packets
//!         record it?              lookups   path, mask        actions of all entries
//! ```
//!
//! # Recording
//! After a table has looked a recorded packet up, `FlowTable::add_bits` computes the bits of
//! the key on which the winner depends. Bits that earlier actions have set are left out,
//! since they do not depend on the received packet. Bits that decide whether an action sets
//! something are added. So every packet with the same values of these bits takes the same
//! path ([FCH14] §3.2).
//!
//! # Programs
//! The instructions of all entries on a path become one list of actions. Writes to the
//! action set are carried out when the program is built, so the list has only the final
//! set. Packets are counted for all entries of the path together
//! ([`path_counts`](crate::pipeline::run::path_counts)), unless an action drops the packet.
//! A packet has the same length at all steps, since a path ends where an action changes it.

use std::fmt;
use std::sync::Arc;

use classyard::{RuleId, Winner};
use foldhash::HashSet;

use crate::action::{Action, ActionSet, PortNo};
use crate::bits::{Words, add_has, is_set, known};
use crate::cache::microflow::MegaflowId;
use crate::cache::path::{Path, PathId, Step};
use crate::field::{Field, VLAN_PRESENT};
use crate::flow::{Instructions, TableId};
use crate::key::{KEY_WORDS, PacketKey};
use crate::limits::MAX_PACKET_ACTIONS;
use crate::packet::Packet;
use crate::pipeline::run::actions::{Dropped, MatchedEntry, Run};
use crate::pipeline::run::observer::Observer;
use crate::pipeline::run::side::{Side, SideFlow};
use crate::pipeline::run::tally::Tally;
use crate::pipeline::run::vector::Recorder;

/// Slots for flows seen recently. The low bits of a flow's hash select the slot, which has
/// the hash's high 16 bits. Measured in `bench/records/constants.md` (Choice of caches).
pub(super) const SEEN_SLOTS: usize = 1 << 16;

/// One in this number of packets whose flows were not seen recently is recorded. Measured
/// in `bench/records/constants.md` (Choice of caches).
pub(super) const SAMPLING_PACKETS: u32 = 64;

/// Remembers the last flow of each slot, and counts packets to sample them.
pub(super) struct SeenFlows {
    slots: Box<[u16]>,
    packets: u32,
}

/// The reasons to record a packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordReasons {
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

    /// Notes a packet of a flow, and returns the reasons to record it. A flow was seen
    /// recently if its slot has the flow's tag. Slots begin with tag 0, so the first packet of
    /// a flow with tag 0 may count as seen.
    pub(super) fn note(&mut self, flow_hash: u64) -> RecordReasons {
        #[allow(clippy::cast_possible_truncation)] // parts of a hash
        let (slot, tag) = (flow_hash as usize % SEEN_SLOTS, (flow_hash >> 48) as u16);
        self.packets = self.packets.wrapping_add(1);
        RecordReasons {
            recently: std::mem::replace(&mut self.slots[slot], tag) == tag,
            is_sampled: self.packets.is_multiple_of(SAMPLING_PACKETS),
        }
    }
}

/// Maximum number of recorded packets in a vector. It bounds the time that recording adds
/// to a vector.
pub(super) const MAX_RECORDED_IN_VECTOR: usize = 32;

/// A recorded packet.
#[derive(Default)]
pub(in crate::pipeline) struct RecordedPacket {
    /// The hash of its flow.
    pub(super) flow_hash: u64,
    /// The stale megaflow that covered it.
    pub(super) stale: Option<MegaflowId>,
    /// Its key when it was received.
    pub(in crate::pipeline) key: Words,
    /// The bits of the key that its path depends on.
    mask: Words,
    pub(in crate::pipeline) path: Path,
    /// True until the end of its path is known.
    pub(in crate::pipeline) is_unfinished: bool,
    /// Values and mask of the bits that actions have written so far.
    written: (Words, Words),
}

/// Records packets of a vector.
#[derive(Default)]
pub(in crate::pipeline) struct Learner {
    /// The first `used` items are of this vector; the memory of the others is reused.
    recorded: Vec<RecordedPacket>,
    used: usize,
    /// For each packet of the vector: its index in `recorded` plus 1, or 0.
    record_numbers: Vec<u8>,
    /// Buffer for the recorded packets that a table has looked up, and their winners.
    lookups: Vec<(usize, Winner)>,
}

impl Learner {
    /// Begins a vector of `packets` packets. No packet is recorded yet.
    pub(in crate::pipeline) fn begin(&mut self, packets: usize) {
        self.used = 0;
        self.record_numbers.clear();
        self.record_numbers.resize(packets, 0);
    }

    /// Records a packet, unless the maximum is reached, or another packet of its flow or of
    /// its stale megaflow is recorded.
    pub(in crate::pipeline) fn record(
        &mut self,
        packet_index: usize,
        flow_hash: u64,
        stale: Option<MegaflowId>,
        key: &PacketKey,
    ) {
        let is_same = |recorded: &RecordedPacket| match stale {
            Some(_) => recorded.stale == stale,
            None => recorded.flow_hash == flow_hash,
        };
        if self.used == MAX_RECORDED_IN_VECTOR || self.recorded().iter().any(is_same) {
            return;
        }
        if self.recorded.len() == self.used {
            self.recorded.push(RecordedPacket::default());
        }
        let recorded = &mut self.recorded[self.used];
        recorded.begin(flow_hash, stale, key);
        self.used += 1;
        self.record_numbers[packet_index] = u8::try_from(self.used).expect("few packets");
    }

    /// Returns the recorded packets of this vector.
    pub(in crate::pipeline) fn recorded(&self) -> &[RecordedPacket] {
        &self.recorded[..self.used]
    }
}

impl Recorder for Learner {
    /// Records lookups of packets. `Vector::run_tables` calls this after each table's
    /// lookup, before it carries out the winners' instructions.
    fn record_lookups(
        &mut self,
        table: TableId,
        (here, winners): (&[usize], &[Winner]),
        packets: &[Packet],
        side: &Side,
    ) {
        let record_numbers = &self.record_numbers;
        let lookups = here.iter().copied().zip(winners.iter().copied());
        let is_recorded = |&(packet_index, _): &(usize, _)| record_numbers[packet_index] > 0;
        self.lookups.clear();
        self.lookups.extend(lookups.filter(is_recorded));
        if let Some(rules) = side.table(table) {
            rules.fetch_entries(self.lookups.iter().filter_map(|(_, winner)| winner.rule()));
        }
        for &(packet_index, winner) in &self.lookups {
            let record = usize::from(record_numbers[packet_index]) - 1;
            let key = packets[packet_index].key();
            self.recorded[record].record_lookup(table, key, winner, side);
        }
    }
}

impl RecordedPacket {
    /// Begins with another packet and reuses the memory.
    fn begin(&mut self, flow_hash: u64, stale: Option<MegaflowId>, key: &PacketKey) {
        (self.flow_hash, self.stale, self.key) = (flow_hash, stale, *key.words());
        self.mask = [0; KEY_WORDS];
        self.path.clear();
        self.is_unfinished = true;
        self.written = ([0; KEY_WORDS], [0; KEY_WORDS]);
    }

    /// Returns the record of packets with these winners. `key` is the received key of any such
    /// packet. The mask has no bits.
    pub(super) fn with_winners(
        key: &Words,
        winners: &[(TableId, Winner)],
        side: &Side,
    ) -> RecordedPacket {
        let mut recorded = RecordedPacket::default();
        let mut packet_key = PacketKey::default();
        *packet_key.words_mut() = *key;
        recorded.begin(0, None, &packet_key);
        for &(table, winner) in winners {
            if !recorded.is_unfinished || recorded.ends_before(table, winner, side) {
                break;
            }
            recorded.add_step(table, &packet_key, winner, side, &mut [0; KEY_WORDS]);
        }
        recorded
    }

    /// Adds a table to the path, and the bits that its lookup depended on to the mask. `key` is
    /// the packet's key at this table; `self.key` is the received key.
    fn record_lookup(&mut self, table: TableId, key: &PacketKey, winner: Winner, side: &Side) {
        if !self.is_unfinished || self.ends_before(table, winner, side) {
            return;
        }
        // `add_bits` prefers bits that its argument `mask` has already. Bits that actions of
        // earlier tables have written cost nothing, so they are in `mask` too until the end.
        let written_before = self.written.1;
        let mut mask: Words = std::array::from_fn(|word| self.mask[word] | written_before[word]);
        if let Some(rules) = side.table(table) {
            rules.add_bits(key, winner, &mut mask);
        }
        self.add_step(table, key, winner, side, &mut mask);
        let words = self.mask.iter_mut().zip(mask);
        for ((word, bits), set) in words.zip(written_before) {
            *word |= bits & !set;
        }
    }

    /// Ends the path before a table whose winner has a meter: that table looks up later packets
    /// itself, so its lookup adds no bits. Returns false if the winner has no meter.
    fn ends_before(&mut self, table: TableId, winner: Winner, side: &Side) -> bool {
        let meter = winner
            .rule()
            .and_then(|id| side.flow(id).instructions.meter);
        if meter.is_some() {
            self.path.rest = Some(table);
            self.is_unfinished = false;
        }
        meter.is_some()
    }

    /// Adds a table to the path, and the bits that determine what the winner's actions write to
    /// `mask`.
    fn add_step(
        &mut self,
        table: TableId,
        key: &PacketKey,
        winner: Winner,
        side: &Side,
        mask: &mut Words,
    ) {
        self.path.steps.push(Step {
            table,
            winner,
            set: known(&self.written.0, &self.written.1),
        });
        let instructions = winner.rule().map(|id| &*side.flow(id).instructions);
        let next = instructions.and_then(|instructions| instructions.goto_table);
        if let (Some(instructions), Some(next)) = (instructions, next)
            && !self.write(instructions, key, mask)
        {
            self.path.rest = Some(next);
        }
        self.is_unfinished = next.is_some() && self.path.rest.is_none();
    }

    /// Returns the mask of its megaflow: the bits that its path depends on, and more bits, so
    /// that there are fewer different masks. If the mask of an address is a prefix, rounds its
    /// length up to a multiple of four.
    pub(in crate::pipeline) fn wide_mask(&self) -> Words {
        let mut wide = self.mask;
        let is_ipv6 = PacketKey::place(Field::EthType).get(&self.key) == 0x86dd;
        let addresses = match is_ipv6 {
            true => [(Field::Ipv6Src, 128), (Field::Ipv6Dst, 128)],
            false => [(Field::Ipv4Src, 32), (Field::Ipv4Dst, 32)],
        };
        for (field, width) in addresses {
            let field_place = PacketKey::place(field);
            let field_mask = field_place.get(&self.mask);
            let last = field_mask.trailing_zeros().min(width);
            let prefix = |last: u32| u128::MAX >> (128 - width) >> last << last;
            if field_mask != 0 && field_mask == prefix(last) {
                field_place.set_bits(&mut wide, prefix(last / 4 * 4));
            }
        }
        wide
    }

    /// Updates `set` with the bits that the instructions write into the key. Adds to `mask`
    /// the bits that determine whether an action writes. Returns false if the key alone does
    /// not determine the result.
    fn write(&mut self, instructions: &Instructions, key: &PacketKey, mask: &mut Words) -> bool {
        let (values, masks) = &mut self.written;
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
                    if field.announces_headers() {
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

/// A step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    /// The actions of a step's entry follow. Packets to the controller and dropped packets
    /// name this entry.
    Begin(u8),
    /// Carries out an action.
    Act(Action),
    /// Writes metadata: value and mask.
    Metadata(u64, u64),
    /// The actions of the action set follow.
    Set,
}

/// Lists of operations, shared by programs with equal lists.
#[derive(Default)]
pub(super) struct Operations {
    shared: HashSet<Arc<[Operation]>>,
    /// Working memory: the list and the action set of the program that is being built.
    list: Vec<Operation>,
    set: ActionSet,
}

impl Operations {
    /// Maximum number of shared lists. When it is reached, the set is cleared. It bounds the
    /// memory of lists that no program uses any more.
    const MAX_SHARED: usize = 4096;

    /// Returns the list that was built, shared with all programs with an equal list.
    fn share(&mut self) -> Arc<[Operation]> {
        if let Some(operations) = self.shared.get(&self.list[..]) {
            return Arc::clone(operations);
        }
        if self.shared.len() == Operations::MAX_SHARED {
            self.shared.clear();
        }
        let operations: Arc<[Operation]> = self.list[..].into();
        self.shared.insert(Arc::clone(&operations));
        operations
    }
}

/// The program of a path.
pub(super) struct Program {
    operations: Arc<[Operation]>,
    /// `None` unless the program needs its steps or the pipeline continues after the path.
    details: Option<Box<Details>>,
}

/// The actions that a cached path carries out for its packets, before the pipeline continues
/// at a later table, if it does. Its text has the actions in the syntax of `ovs-ofctl`, and is
/// empty if there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision(Arc<[Operation]>);

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.0.iter().filter_map(|operation| match operation {
            Operation::Act(action) => Some(action.to_string()),
            Operation::Metadata(value, u64::MAX) => Some(format!("write_metadata:{value:#x}")),
            Operation::Metadata(value, mask) => {
                Some(format!("write_metadata:{value:#x}/{mask:#x}"))
            }
            Operation::Begin(_) | Operation::Set => None,
        });
        f.write_str(&texts.collect::<Vec<_>>().join(","))
    }
}

/// Data that only few programs need.
struct Details {
    /// The tables, and the entry that wins in each.
    steps: Vec<(TableId, Option<RuleId>)>,
    /// The table and entry that each step matched.
    matched: Vec<MatchedEntry>,
    /// The table where the pipeline continues, and the action set.
    rest: Option<(TableId, ActionSet)>,
}

impl Program {
    pub(super) fn new(side: &Side, path: &Path, shared: &mut Operations) -> Program {
        let flows = || {
            let winners = path.steps.iter().map_while(|step| step.winner.rule());
            winners.map(|entry| side.flow(entry))
        };
        let matched = flows().count();
        // With many actions, a packet may reach a limit at any action.
        let lists = || flows().map(|flow| &flow.instructions);
        let length = lists().map(|list| list.apply.len() + list.write.len());
        let is_long = length.sum::<usize>() > MAX_PACKET_ACTIONS as usize
            || lists().any(|list| list.apply.iter().chain(&list.write).any(multiplies));
        let needs_step = |action: &Action| is_long || needs_entry(action);
        let Operations { list, set, .. } = shared;
        list.clear();
        set.clear();
        for (step, flow) in (0..).zip(flows()) {
            let instructions = &flow.instructions;
            let actions = &instructions.apply;
            if actions.iter().any(&needs_step) {
                list.push(Operation::Begin(step));
            }
            list.extend(actions.iter().copied().map(Operation::Act));
            if instructions.clear {
                set.clear();
            }
            set.write(&instructions.write);
            if let Some((value, mask)) = instructions.metadata {
                list.push(Operation::Metadata(value, mask));
            }
        }
        // A packet that no entry matches is dropped.
        if path.rest.is_none() && !set.is_empty() && matched == path.steps.len() {
            if set.ordered().any(&needs_step) {
                let last = u8::try_from(matched - 1).expect("fewer steps than tables");
                list.push(Operation::Begin(last));
            }
            list.push(Operation::Set);
            list.extend(set.ordered().copied().map(Operation::Act));
        }
        let begins = |operation: &Operation| matches!(operation, Operation::Begin(_));
        let has_details = path.rest.is_some() || list.iter().any(begins);
        let details = has_details.then(|| Box::new(Details::new(path, flows(), set)));
        Program {
            operations: shared.share(),
            details,
        }
    }

    /// Returns the actions of the program, for reports.
    pub(super) fn decision(&self) -> Decision {
        Decision(Arc::clone(&self.operations))
    }

    /// Runs the program for a packet. If the pipeline continues after the path, returns the
    /// table and puts the packet's action set into `set`.
    pub(super) fn run<O: Observer + ?Sized>(
        &self,
        path: PathId,
        run: &mut Run<'_, O>,
        packet: &mut Packet,
        set: &mut ActionSet,
    ) -> Option<TableId> {
        let (length, details) = (packet.bytes().len(), self.details.as_deref());
        let mut begun = 0;
        for operation in &*self.operations {
            match *operation {
                Operation::Begin(step) => {
                    begun = usize::from(step);
                    if let Some(details) = details {
                        run.matched = details.matched[begun];
                    }
                }
                Operation::Act(action) => {
                    if let Err(Dropped) = run.action(&action, packet) {
                        if let Some(details) = details {
                            let steps = 0..=begun;
                            let time = run.nanoseconds;
                            steps.for_each(|step| details.count(step, run.tally, length, time));
                        }
                        return None;
                    }
                }
                Operation::Metadata(value, mask) => packet.write_metadata(value, mask),
                Operation::Set => run.observer.action_set(),
            }
        }
        run.tally.count_path(path, length, run.nanoseconds);
        let (table, actions) = details?.rest.as_ref()?;
        set.copy_from(actions);
        Some(*table)
    }
}

impl Details {
    /// Returns the details of a path with the entries `flows`. If the pipeline continues
    /// after the path, it continues with the action set `set`.
    fn new<'s>(path: &Path, flows: impl Iterator<Item = &'s SideFlow>, set: &ActionSet) -> Details {
        let steps = path.steps.iter();
        let matched_steps = path.steps.iter().zip(flows);
        Details {
            steps: steps.map(|step| (step.table, step.winner.rule())).collect(),
            matched: matched_steps
                .map(|(step, flow)| MatchedEntry {
                    table: step.table,
                    cookie: flow.cookie,
                    is_miss: flow.is_miss,
                })
                .collect(),
            rest: path.rest.map(|table| (table, set.clone())),
        }
    }

    /// Counts a packet at a step that has an entry.
    fn count(&self, step: usize, tally: &Tally, bytes: usize, now: u64) {
        let (table, entry) = self.steps[step];
        let entry = entry.expect("steps that begin have an entry");
        tally.count_flows(entry, (1, bytes), now);
        tally.count_table(table, 1, 1);
    }
}

/// True if an action may send packets to the controller or drop them. Then the program
/// needs the action's entry.
fn needs_entry(action: &Action) -> bool {
    match action {
        Action::Output { port, .. } => *port == PortNo::CONTROLLER,
        Action::Group(_) | Action::DecrementTtl | Action::DecrementMplsTtl => true,
        _ => false,
    }
}

/// True if an action carries out other actions, or sends several packets.
fn multiplies(action: &Action) -> bool {
    match action {
        Action::Group(_) => true,
        Action::Output { port, .. } => matches!(*port, PortNo::ALL | PortNo::FLOOD),
        _ => false,
    }
}
