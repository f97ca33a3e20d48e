//! Flow caches before the tables: each worker has its own caches.
//!
//! ```text
//! vector ─▶ microflows ─▶ megaflows ─▶ tables ─┐
//!             │ hit         │ hit        recorded: path, mask
//!             ▼             ▼                  │
//!           paths: actions of all entries ◀────┘ for later packets
//! ```
//! The misses of a level are looked up together in the next level. The answer of a
//! microflow cache is a megaflow. It is used only if the megaflow covers the packet. A packet
//! whose megaflow is stale goes directly to the tables.
//!
//! Packets that miss all levels pass the tables. Some of them are recorded there, and their
//! paths are cached ([`learn`](super::learn)): one packet for each stale megaflow, and within
//! the selector's budget packets of flows seen recently and a sample of the others.
//!
//! # Coherence
//! Before the caches look a vector up, they apply all changes of entries that they have not
//! applied yet; a vector that bypasses them applies none. Of entries, their instructions and
//! cookies are cached, in the programs of paths, which are rebuilt when these change. Groups,
//! meters and ports come from the pinned version.

use std::time::Duration;

use classyard::RuleId;
use foldhash::HashMap;

use super::learn::{Learner, Operations, Program, RecordedPacket, SeenFlows};
use super::proactive::{ProactiveError, ProactiveMegaflows, Room};
use super::selector::{CacheSelector, Levels, Outcome, StepTimes, VectorPlan};
use super::settings::CacheSettings;
use super::status::{CacheAnswer, CacheStatus, Megaflow};
use crate::bits::{Words, match_bits};
use crate::cache::microflow::{Kind, MegaflowId, MicroflowCache};
use crate::cache::path::{EntryChange, Path, PathId};
use crate::cache::store::{Bounds, Found, NewEntry, Store, StoreCounts, StoredMegaflow};
use crate::flow::TableId;
use crate::hash::Secret;
use crate::megaflow::cross_product::CrossProduct;
use crate::packet::Packet;
use crate::pipeline::run::actions::NO_TABLE;
use crate::pipeline::run::observer::{Node, Observer};
use crate::pipeline::run::side::Side;
use crate::pipeline::run::tally::{Tally, nanoseconds};
use crate::pipeline::run::vector::{Recorder, Vector};

/// Stands for no path: of a packet that has not hit, or whose megaflow is stale.
const UNKNOWN: PathId = PathId(u32::MAX);

/// Approximate time to probe the megaflows of one mask for a packet, in nanoseconds.
/// Measured in `bench/records/constants.md` (Megaflows).
const PROBE_NS: f64 = 25.0;

/// Vectors between two calls of [`Store::tick`], which sorts the masks. Measured in
/// `bench/records/constants.md` (Megaflows).
const TICK_VECTORS: u32 = 256;

/// Maximum number of megaflow signatures to compare with new entries before a vector, which
/// takes about 2 ms. If there are more, a new era begins: each megaflow is checked in the
/// tables when a packet hits it, which takes more time in total. Measured in `bench/records/caches.md` (Changes).
const MAX_SCANNED_SIGNATURES: usize = 16_000_000;

/// Maximum number of paths to close or to give new programs before a vector. If modified and
/// removed entries have more, a new era begins. Measured in `bench/records/caches.md`
/// (Changes).
const MAX_CHANGED_PATHS: usize = 4096;

/// Words of a key that identify a flow: all except the registers.
const FLOW_WORDS: usize = 14;

/// The caches of a worker.
pub(in crate::pipeline) struct Caches {
    settings: CacheSettings,
    microflows: Option<Box<dyn MicroflowCache>>,
    pub(super) store: Store<Program>,
    /// The number of entry changes that were applied to the caches.
    followed: u64,
    learner: Learner,
    operations: Operations,
    seen: SeenFlows,
    /// The secret of the hashes of flows.
    secret: Secret,
    vectors: u32,
    selector: CacheSelector,
    status: CacheStatus,
    lookup: Lookup,
}

/// The lookup of one vector. Packets are given by their index in it.
#[derive(Default)]
struct Lookup {
    /// The packets whose ports receive.
    received: Vec<usize>,
    /// For each packet: the hash of its flow, the megaflow that the microflow cache has for
    /// the flow, and its path.
    flow_hashes: Vec<u64>,
    megaflows: Vec<MegaflowId>,
    paths: Vec<PathId>,
    /// The packets with a megaflow of the microflow cache, which may not cover them.
    to_check: Vec<(usize, MegaflowId)>,
    /// The packets that missed so far.
    misses: Vec<usize>,
    /// The packets whose megaflows are stale.
    stale: Vec<(usize, MegaflowId)>,
    /// The misses that are recorded.
    to_record: Vec<usize>,
}

impl Lookup {
    /// Begins the lookup of a vector.
    fn begin<O: Observer + ?Sized>(&mut self, vector: &Vector<'_, O>) {
        let packet_count = vector.packets.len();
        self.received.clear();
        let received = (0..packet_count).filter(|&packet_index| vector.is_received(packet_index));
        self.received.extend(received);
        self.flow_hashes.clear();
        self.flow_hashes.resize(packet_count, 0);
        self.paths.clear();
        self.paths.resize(packet_count, UNKNOWN);
        self.stale.clear();
        self.misses.clear();
    }
}

impl Caches {
    pub(in crate::pipeline) fn new(settings: CacheSettings) -> Caches {
        let seed = settings.seed;
        let bounds = Bounds {
            masks: settings.max_masks,
            megaflows: settings.max_megaflows,
        };
        let levels = Levels {
            microflows: settings.microflows.is_some(),
            megaflows: settings.megaflows,
        };
        let active = settings.active;
        let build =
            |(kind, flows): (Kind, usize)| active.build(&kind, flows, seed ^ 0x6d69_6372_6f66_6c6f);
        Caches {
            microflows: settings.microflows.map(build),
            store: Store::new(bounds, &settings.finder, seed),
            followed: 0,
            learner: Learner::default(),
            operations: Operations::default(),
            seen: SeenFlows::new(),
            secret: Secret::new(!seed),
            vectors: 0,
            selector: CacheSelector::new(levels, settings.clock),
            status: CacheStatus::default(),
            settings,
            lookup: Lookup::default(),
        }
    }

    /// Processes a vector: looks its packets up in the levels that the selector chooses,
    /// runs the programs of hits, and passes the other packets to the tables. Without a
    /// clock, the selector chooses all levels for every vector, and packets of any flow may
    /// be recorded.
    pub(in crate::pipeline) fn process<O: Observer + ?Sized>(
        &mut self,
        vector: &mut Vector<'_, O>,
    ) {
        let plan = self.selector.begin();
        let Levels {
            microflows,
            megaflows,
        } = plan.levels;
        self.status.microflow_bypasses += u64::from(!microflows && self.microflows.is_some());
        self.status.megaflow_bypasses += u64::from(!megaflows && self.settings.megaflows);
        if !microflows && !megaflows {
            self.bypass(vector);
            return;
        }
        let begun = self.selector.time();
        self.follow(vector.side, vector.tally);
        let after_changes = self.selector.time();
        self.lookup.begin(vector);
        match microflows {
            true => self.look_up_microflows(vector),
            false => {
                let Lookup {
                    misses, received, ..
                } = &mut self.lookup;
                misses.extend_from_slice(received);
            }
        }
        let after_microflows = self.selector.time();
        if megaflows && !self.lookup.misses.is_empty() {
            self.look_up_megaflows(vector, microflows);
        }
        let after_megaflows = self.selector.time();
        let hits = self.run_paths(vector);
        // If microflows are bypassed, megaflows are the first level.
        let after_first_level = after_microflows.filter(|_| microflows).or(after_megaflows);
        let mut outcome = Outcome {
            packets: vector.packets.len(),
            hits,
            took: StepTimes {
                upkeep: between(begun, after_changes),
                asking: between(after_changes, after_first_level),
                hits: between(after_megaflows, self.selector.time()),
            },
            ..Outcome::default()
        };
        // Packets that hit also wait for tables if their paths end early.
        if hits < self.lookup.received.len() || vector.is_waited() {
            self.pass_tables(vector, plan, &mut outcome);
        }
        self.selector.end(outcome);
        self.vectors += 1;
        if self.vectors.is_multiple_of(TICK_VECTORS) {
            self.store.tick(self.selector.without_caches() / PROBE_NS);
        }
    }

    /// Processes a vector in the tables alone. Unused caches follow changes when they are
    /// used again.
    fn bypass<O: Observer + ?Sized>(&mut self, vector: &mut Vector<'_, O>) {
        for packet_index in 0..vector.packets.len() {
            if vector.is_received(packet_index) {
                vector.wait(TableId(0), packet_index);
                self.status.by_tables += 1;
            }
        }
        vector.run_tables(None);
        self.selector.end(Outcome {
            packets: vector.packets.len(),
            ..Outcome::default()
        });
    }

    /// Looks packets up in the microflow cache.
    fn look_up_microflows<O: Observer + ?Sized>(&mut self, vector: &mut Vector<'_, O>) {
        let Some(cache) = &mut self.microflows else {
            return;
        };
        let packets = &*vector.packets;
        let Lookup {
            received,
            flow_hashes,
            megaflows,
            paths,
            to_check,
            misses,
            stale,
            ..
        } = &mut self.lookup;
        for &packet_index in &*received {
            flow_hashes[packet_index] =
                flow_hash_of(packets[packet_index].key().words(), self.secret);
        }
        // Packets that are not received have flow 0, and their megaflows are ignored.
        megaflows.clear();
        megaflows.resize(packets.len(), MegaflowId::NONE);
        cache.look_up(flow_hashes, vector.nanoseconds, megaflows);
        self.status.microflow_lookups += received.len() as u64;
        to_check.clear();
        for &packet_index in &*received {
            match megaflows[packet_index] {
                megaflow if megaflow.is_some() => to_check.push((packet_index, megaflow)),
                _ => misses.push(packet_index),
            }
        }
        let key = |packet_index: usize| packets[packet_index].key().words();
        let take_result = |packet_index: usize, megaflow, result| match result {
            Found::Path(path) => {
                paths[packet_index] = path;
                self.status.microflow_hits += 1;
            }
            Found::Stale => stale.push((packet_index, megaflow)),
            Found::Nothing => {
                cache.forget(flow_hashes[packet_index], megaflow);
                self.status.microflow_wrong += 1;
                misses.push(packet_index);
            }
        };
        self.store.check_all(to_check, key, take_result);
        vector.observer.node(Node::Microflows, received.len());
    }

    /// Looks up the packets that missed so far among the megaflows. If `offers_hits` is
    /// true, offers the hits to the microflow cache.
    fn look_up_megaflows<O: Observer + ?Sized>(
        &mut self,
        vector: &mut Vector<'_, O>,
        offers_hits: bool,
    ) {
        let packets = &*vector.packets;
        let Lookup {
            flow_hashes,
            paths,
            misses,
            stale,
            ..
        } = &mut self.lookup;
        let looked_up = misses.len();
        let mut covered = 0;
        let mut cache = self.microflows.as_mut().filter(|_| offers_hits);
        let key = |packet_index: usize| packets[packet_index].key().words();
        let take_result = |packet_index: usize, megaflow, result| match result {
            Found::Path(path) => {
                paths[packet_index] = path;
                covered += 1;
                let offer = |cache: &mut &mut Box<dyn MicroflowCache>| {
                    cache.offer(flow_hashes[packet_index], megaflow, vector.nanoseconds)
                };
                // False if the microflow cache took the flow as an active one: then the hit
                // does not count for the order of masks.
                !cache.as_mut().is_some_and(offer)
            }
            Found::Stale => {
                stale.push((packet_index, megaflow));
                true
            }
            // Not a result of this search.
            Found::Nothing => false,
        };
        let probes_all = self.settings.clock.is_none();
        self.store.find(probes_all, key, misses, take_result);
        self.status.megaflow_lookups += looked_up as u64;
        self.status.megaflow_hits += covered;
        vector.observer.node(Node::Megaflows, looked_up);
    }

    /// Runs the programs of packets that hit. Returns the number of these packets.
    fn run_paths<O: Observer + ?Sized>(&mut self, vector: &mut Vector<'_, O>) -> usize {
        let Lookup {
            received, paths, ..
        } = &self.lookup;
        let known = paths.iter().filter(|&&path| path != UNKNOWN);
        vector.tally.fetch_paths(known.copied());
        let mut hits = 0;
        for &packet_index in received {
            let path = paths[packet_index];
            if path == UNKNOWN {
                continue;
            }
            hits += 1;
            let program = self.store.paths().program(path);
            let program = program.expect("the path was not closed when it was found");
            let (mut run, packet, set) = vector.packet(packet_index, NO_TABLE);
            if let Some(next) = program.run(path, &mut run, packet, set) {
                vector.wait(next, packet_index);
            }
        }
        vector.observer.node(Node::Paths, hits);
        hits
    }
}

/// Packets that miss the caches.
impl Caches {
    /// Passes the packets that missed through the tables, and caches the recorded paths.
    fn pass_tables<O: Observer + ?Sized>(
        &mut self,
        vector: &mut Vector<'_, O>,
        plan: VectorPlan,
        outcome: &mut Outcome,
    ) {
        let Lookup { misses, stale, .. } = &self.lookup;
        let stale = stale.iter().map(|(packet_index, _)| packet_index);
        for &packet_index in misses.iter().chain(stale) {
            vector.wait(TableId(0), packet_index);
        }
        self.learner.begin(vector.packets.len());
        self.hash_misses(vector.packets, plan);
        self.select_recorded(vector.packets, plan, vector.nanoseconds, outcome);
        let learner = Some(&mut self.learner).filter(|learner| !learner.recorded().is_empty());
        vector.run_tables(learner.map(|learner| learner as &mut dyn Recorder));
        self.store_paths(vector.side, vector.tally, vector.nanoseconds);
    }

    /// Computes the flow hashes that recording needs and the lookup did not compute.
    fn hash_misses(&mut self, packets: &[Packet], plan: VectorPlan) {
        if plan.levels.microflows {
            return;
        }
        let Lookup {
            flow_hashes,
            misses,
            stale,
            ..
        } = &mut self.lookup;
        let noted: &[usize] = if plan.notes_flows { misses } else { &[] };
        let stale = stale.iter().map(|(packet_index, _)| packet_index);
        for &packet_index in noted.iter().chain(stale) {
            flow_hashes[packet_index] =
                flow_hash_of(packets[packet_index].key().words(), self.secret);
        }
    }

    /// Selects the packets to record: first one for each stale megaflow; then, if the plan
    /// permits, one for each flow seen recently, and a sample of the others; at most
    /// [`MAX_RECORDED_IN_VECTOR`](super::learn::MAX_RECORDED_IN_VECTOR) in total. The plan
    /// says whether the flows of misses are noted (`notes_flows`), whether misses are
    /// recorded (`may_record`), and whether packets of flows not seen recently are recorded
    /// too (`of_any_flow`).
    fn select_recorded(
        &mut self,
        packets: &[Packet],
        plan: VectorPlan,
        now: u64,
        outcome: &mut Outcome,
    ) {
        let stale_count = self.lookup.stale.len();
        self.status.stale += stale_count as u64;
        self.status.by_tables += (stale_count + self.lookup.misses.len()) as u64;
        // Renewing stale megaflows is a cost of changes, not of learning.
        self.record_stale(packets, 0);
        outcome.stale = stale_count;
        outcome.renewed = self.learner.recorded().len();
        if !plan.notes_flows {
            return;
        }
        let Lookup {
            flow_hashes,
            misses,
            to_record,
            ..
        } = &mut self.lookup;
        to_record.clear();
        let mut recent_flows = stale_count;
        for &packet_index in &*misses {
            let reasons = self.seen.note(flow_hashes[packet_index]);
            recent_flows += usize::from(reasons.recently);
            if reasons.recently || plan.of_any_flow || reasons.is_sampled {
                to_record.push(packet_index);
            }
        }
        outcome.seen = Some(recent_flows);
        if !plan.may_record {
            return;
        }
        if !plan.levels.megaflows {
            self.search_megaflows(packets, now);
            self.record_stale(packets, stale_count);
            outcome.stale = self.lookup.stale.len();
            outcome.renewed = self.learner.recorded().len();
            self.status.stale += (outcome.stale - stale_count) as u64;
        }
        for &packet_index in &self.lookup.to_record {
            let flow_hash = self.lookup.flow_hashes[packet_index];
            let key = packets[packet_index].key();
            self.learner.record(packet_index, flow_hash, None, key);
        }
        outcome.recorded = self.learner.recorded().len() - outcome.renewed;
    }

    /// Records packets with stale megaflows, starting at index `first`.
    fn record_stale(&mut self, packets: &[Packet], first: usize) {
        for &(packet_index, megaflow) in &self.lookup.stale[first..] {
            let flow_hash = self.lookup.flow_hashes[packet_index];
            let key = packets[packet_index].key();
            self.learner
                .record(packet_index, flow_hash, Some(megaflow), key);
        }
    }

    /// Looks up the packets to be recorded in the megaflows, for a vector that bypassed the
    /// megaflows. Offers hits to the microflow cache, and does not record their packets: a
    /// hit takes less time than recording a known path.
    fn search_megaflows(&mut self, packets: &[Packet], now: u64) {
        let Lookup {
            flow_hashes,
            stale,
            to_record,
            ..
        } = &mut self.lookup;
        let microflows = &mut self.microflows;
        let key = |packet_index: usize| packets[packet_index].key().words();
        let take_result = |packet_index: usize, megaflow, result| {
            match (result, microflows.as_mut()) {
                (Found::Path(_), Some(cache)) => {
                    return !cache.offer(flow_hashes[packet_index], megaflow, now);
                }
                (Found::Stale, _) => stale.push((packet_index, megaflow)),
                _ => {}
            }
            true
        };
        let probes_all = self.settings.clock.is_none();
        self.store.find(probes_all, key, to_record, take_result);
    }

    /// Caches the paths of recorded packets. Leaves out:
    /// - packets that were dropped on the way, since the ends of their paths are not known;
    /// - paths without a step, which end before a meter of table 0.
    fn store_paths(&mut self, side: &Side, tally: &Tally, now: u64) {
        if self.learner.recorded().is_empty() {
            return;
        }
        let steps = || {
            self.learner
                .recorded()
                .iter()
                .flat_map(|recorded| &recorded.path.steps)
        };
        let entries = || steps().filter_map(|step| step.winner.rule());
        self.store.paths().fetch_entries(entries());
        tally.fetch_entries(entries());
        for recorded in self.learner.recorded() {
            if let Some(megaflow) = recorded.stale {
                self.store.drop_stale(megaflow, &recorded.key);
            }
            if recorded.is_unfinished || recorded.path.steps.is_empty() {
                continue;
            }
            let mask = recorded.wide_mask();
            let operations = &mut self.operations;
            let program = |path: &Path| Program::new(side, path, operations);
            let stored = self
                .store
                .insert(&recorded.key, &mask, &recorded.path, program);
            let Some(megaflow) = count_path(&mut self.store, tally, &recorded.path, stored) else {
                continue;
            };
            self.status.learned += 1;
            if let Some(cache) = &mut self.microflows {
                cache.offer(recorded.flow_hash, megaflow, now);
            }
        }
    }

    /// Stores the entries of the cross product of a side's tables as megaflows.
    ///
    /// # Errors
    /// [`ProactiveError`] if the cache lacks room for all entries; then no megaflow is stored.
    pub(in crate::pipeline) fn store_product(
        &mut self,
        (side, tally): (&Side, &Tally),
        product: &CrossProduct,
    ) -> Result<ProactiveMegaflows, ProactiveError> {
        self.follow(side, tally);
        let entries = &product.entries;
        // The store reserves its last mask.
        let max_masks = self.settings.max_masks - 1;
        let room = Room {
            megaflows: self.settings.max_megaflows.saturating_sub(self.store.len()),
            masks: max_masks.saturating_sub(self.store.masks()),
        };
        room.check(entries.iter().map(|entry| &entry.term))?;
        let mut stored_count = 0;
        for entry in entries {
            let key = entry.term.value();
            let recorded = RecordedPacket::with_winners(key, &entry.path, side);
            if recorded.path.steps.is_empty() {
                continue;
            }
            let operations = &mut self.operations;
            let program = |path: &Path| Program::new(side, path, operations);
            let stored = self
                .store
                .insert(key, entry.term.mask(), &recorded.path, program);
            let megaflow = count_path(&mut self.store, tally, &recorded.path, stored);
            stored_count += usize::from(megaflow.is_some());
        }
        self.status.proactive += stored_count as u64;
        Ok(ProactiveMegaflows {
            megaflows: stored_count,
            left_to_tables: entries.len() - stored_count,
            masks: self.store.masks(),
            paths: self.store.paths().len(),
        })
    }
}

/// Opens the counts of a stored megaflow's path, and closes the counts of closed paths. Returns
/// the megaflow; `None` if it was not stored.
fn count_path(
    store: &mut Store<Program>,
    tally: &Tally,
    path: &Path,
    stored: Option<StoredMegaflow>,
) -> Option<MegaflowId> {
    for path_id in store.paths_mut().take_closed() {
        tally.close_path(path_id);
    }
    let stored = stored?;
    // The path may have open counts from an earlier era. `open_path` adds these to the
    // entries before it opens new counts.
    if stored.has_new_program {
        let steps = path.steps.iter();
        tally.open_path(stored.path, steps.map(|step| (step.table, step.winner)));
    }
    Some(stored.megaflow)
}

/// Changes of entries.
impl Caches {
    /// Applies the entry changes of a side that the caches have not applied yet.
    fn follow(&mut self, side: &Side, tally: &Tally) {
        let change_count = side.recent.made();
        if change_count == self.followed {
            return;
        }
        let changes = side.recent.since(self.followed);
        self.followed = change_count;
        if self.store.len() == 0 {
            return;
        }
        let changed = changes.and_then(|changes| {
            let changed = ChangedEntries::of(changes, self.store.rows())?;
            let ids = changed.removed.iter().chain(changed.modified.keys());
            let paths = ids.map(|&id| self.store.paths().count_of_entry(id));
            (paths.sum::<usize>() <= MAX_CHANGED_PATHS).then_some(changed)
        });
        let Some(changed) = changed else {
            self.store.begin_era();
            return;
        };
        for id in changed.removed {
            for path_id in self.store.paths().of_entry(id) {
                self.store.paths_mut().close(path_id);
            }
        }
        for (id, keeps_paths) in changed.modified {
            self.modified(side, id, keeps_paths);
        }
        self.store.entries_added(&changed.added);
        // This must happen before `open_path` reuses the number of a closed path.
        for path_id in self.store.paths_mut().take_closed() {
            tally.close_path(path_id);
        }
    }

    /// Handles an entry with new instructions. The paths on which it wins get new programs,
    /// or are closed if packets now take another path. A path of an earlier era may have an
    /// entry that has been removed. No program can be built for it, so it is closed.
    fn modified(&mut self, side: &Side, id: RuleId, keeps_paths: bool) {
        for path_id in self.store.paths().of_entry(id) {
            let (path, _) = self.store.paths().get(path_id);
            let mut winners = path.steps.iter().filter_map(|step| step.winner.rule());
            let is_there = keeps_paths && winners.all(|id| side.find_flow(id).is_some());
            let new = is_there.then(|| Program::new(side, path, &mut self.operations));
            match (new, self.store.paths_mut().program_mut(path_id)) {
                (Some(new), Some(program)) => *program = new,
                _ => self.store.paths_mut().close(path_id),
            }
        }
    }
}

/// The entries that changed since the caches last applied changes. While changes are applied,
/// no megaflow is added and none becomes valid again, so the order of changes does not matter:
/// new entries are compared with megaflows together, and a modified entry is handled once.
#[derive(Default)]
struct ChangedEntries {
    added: Vec<NewEntry>,
    removed: Vec<RuleId>,
    /// For each modified entry: true if its packets still take the same paths.
    modified: HashMap<RuleId, bool>,
}

impl ChangedEntries {
    /// Returns the entries of `changes`, or `None` if too many signatures of `rows` rows would
    /// be compared.
    fn of<'c>(
        changes: impl Iterator<Item = &'c EntryChange> + Clone,
        rows: usize,
    ) -> Option<ChangedEntries> {
        let is_added = |change: &&EntryChange| matches!(change, EntryChange::Added { .. });
        if changes.clone().filter(is_added).count() * rows > MAX_SCANNED_SIGNATURES {
            return None;
        }
        let mut changed = ChangedEntries::default();
        for change in changes {
            match change {
                EntryChange::Added {
                    table,
                    winner,
                    matches,
                } => changed.added.push(NewEntry {
                    table: *table,
                    winner: *winner,
                    match_bits: match_bits(matches),
                }),
                EntryChange::Removed(id) => changed.removed.push(*id),
                EntryChange::Modified { id, keeps_paths } => {
                    *changed.modified.entry(*id).or_insert(true) &= keeps_paths;
                }
            }
        }
        Some(changed)
    }
}

/// Reports.
impl Caches {
    /// True if packets are looked up among the megaflows.
    pub(in crate::pipeline) fn has_megaflows(&self) -> bool {
        self.settings.megaflows
    }

    /// Returns the contents and counters of the caches.
    pub(in crate::pipeline) fn status(&self) -> CacheStatus {
        let StoreCounts {
            probes,
            added,
            evicted,
            outdated,
            narrowed,
            eras,
        } = self.store.counts;
        CacheStatus {
            microflows: self
                .microflows
                .as_ref()
                .map(|cache| cache.usage())
                .unwrap_or_default(),
            megaflow_probes: probes,
            megaflows: self.store.len(),
            masks: self.store.masks(),
            paths: self.store.paths().len(),
            megaflow_bytes: self.store.bytes(),
            added,
            evicted,
            outdated,
            stranded: self.store.paths().stranded(),
            narrowed,
            revalidations: eras,
            ..self.status
        }
    }

    /// Returns the caches' answer for a packet.
    pub(in crate::pipeline) fn ask(
        &mut self,
        (side, tally): (&Side, &Tally),
        packet: &Packet,
        now: Duration,
    ) -> CacheAnswer {
        self.follow(side, tally);
        let words = packet.key().words();
        let (mut covering, mut stale) = (None, false);
        let microflow = self.microflows.as_mut().map(|cache| {
            let mut megaflows = [MegaflowId::NONE];
            cache.look_up(
                &[flow_hash_of(words, self.secret)],
                nanoseconds(now),
                &mut megaflows,
            );
            let [cached] = megaflows;
            let found = match cached.is_some() {
                true => self.store.check(cached, words),
                false => Found::Nothing,
            };
            stale = matches!(found, Found::Stale);
            let is_hit = matches!(found, Found::Path(_));
            covering = is_hit.then_some(cached);
            is_hit
        });
        // Several megaflows may cover the packet. An engine finds one of them, which may be
        // stale.
        let take_result = |_, megaflow, result| {
            match result {
                Found::Path(_) => covering = Some(megaflow),
                Found::Stale => stale |= covering.is_none(),
                Found::Nothing => {}
            }
            false
        };
        self.store.find(true, |_| words, &mut vec![0], take_result);
        let megaflow = covering.and_then(|megaflow| self.store.megaflow(megaflow));
        let megaflow = megaflow.map(|(key, mask, path)| {
            let (path, _) = self.store.paths().get(path);
            let steps = path.steps.iter();
            Megaflow {
                key,
                mask,
                steps: steps.map(|step| (step.table, step.winner.rule())).collect(),
                rest: path.rest,
            }
        });
        CacheAnswer {
            microflow,
            megaflow,
            stale,
        }
    }
}

/// Returns the time between two readings of the clock, or 0 without a clock.
fn between(from: Option<Duration>, to: Option<Duration>) -> Duration {
    let times = from.zip(to);
    times.map_or(Duration::ZERO, |(from, to)| to.saturating_sub(from))
}

/// Returns the hash of a packet's flow.
#[inline]
fn flow_hash_of(key: &Words, secret: Secret) -> u64 {
    secret.hash_pairs(&key[..FLOW_WORDS])
}
