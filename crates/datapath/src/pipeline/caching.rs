//! Flow caches before the tables: each worker has its own caches.
//!
//! ```text
//! vector ─▶ microflows ─▶ megaflows ─▶ tables ─┐
//!             │ hit         │ hit        recorded: path, mask
//!             ▼             ▼                  │
//!           paths: actions of all entries ◀────┘ for later packets
//! ```
//! The misses of a level are looked up together in the next level. A cache of single flows
//! leads to a megaflow. Its answer is used only if the megaflow covers the packet.
//!
//! Packets that miss all levels pass the tables. Packets of flows seen recently and a
//! sample of the other packets are recorded there, and their paths are cached.
//!
//! # Coherence
//! Before a vector is looked up, the caches apply all changes of entries since the previous
//! vector ([`Store`]). The effects of entries, groups, meters and ports are not cached, with
//! one exception: the program of a path has the actions of its entries, and is rebuilt
//! when these actions change.

use std::time::Duration;

use classyard::RuleId;

use super::actions::{NO_TABLE, Run, in_port};
use super::cache_settings::CacheSettings;
use super::cache_status::{CacheAnswer, CacheStatus, Megaflow};
use super::learn::Learner;
use super::observer::{Node, Observer};
use super::process::{Buffers, run_tables};
use super::program::{Operations, Program};
use super::selector::{CacheSelector, Levels, Outcome, Parts, VectorPlan};
use super::side::Side;
use super::sink::Sink;
use super::tally::{Tally, nanoseconds};
use crate::cache::bits::{Words, match_bits};
use crate::cache::change::EntryChange;
use crate::cache::entry_paths::PathId;
use crate::cache::microflow::{CachedDecision, Kind, MicroflowCache};
use crate::cache::path::Path;
use crate::cache::store::{Added, Bounds, Found, Kept, Store, StoreCounts};
use crate::field::Field;
use crate::flow::TableId;
use crate::key::PacketKey;
use crate::packet::Packet;

/// Returns the hash of a packet's flow. It is a sum of independent products, so the CPU
/// computes them in parallel.
#[inline]
fn flow_of(key: &Words, secrets: [u64; 2]) -> u64 {
    let (mut sum, mut salt) = (secrets[1], secrets[0]);
    let (pairs, _) = key[..FLOW_WORDS].as_chunks::<2>();
    for &[one, other] in pairs {
        // The salts depend on the position, so words of 0 do not make the product 0.
        let product = u128::from(one ^ salt) * u128::from(other ^ salt.rotate_left(32));
        #[allow(clippy::cast_possible_truncation)] // both halves are used
        let (low, high) = (product as u64, (product >> 64) as u64);
        sum = sum.wrapping_add(low ^ high);
        salt = salt.rotate_left(7).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    (sum ^ sum >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// The path of a packet that misses all caches.
const UNKNOWN: PathId = PathId(u32::MAX);

/// Words of a key that identify a flow: all except the registers.
const FLOW_WORDS: usize = 14;

/// Slots for flows seen recently. The low bits of a flow's hash select the slot, which
/// has the hash's high 16 bits.
const SEEN_SLOTS: usize = 1 << 16;

/// One in this number of packets whose flows were not seen recently is recorded.
const SAMPLING_PACKETS: u32 = 64;

/// Maximum number of megaflow signatures to compare with new entries in one call, about
/// 2 ms. If there are more, a new era begins: each megaflow is checked in the tables when a
/// packet hits it, which takes more time in total. Measured in `bench/records/caches.md`
/// (Changes).
const MAX_SCANNED_SIGNATURES: usize = 16_000_000;

/// Approximate time to probe the megaflows of one mask for a packet, in nanoseconds.
const PROBE_NS: f64 = 25.0;

/// Vectors between two calls of [`Store::tick`], which sorts the masks.
const TICK_VECTORS: u32 = 256;

/// The caches of a worker.
pub(super) struct Caches {
    settings: CacheSettings,
    microflows: Option<Box<dyn MicroflowCache>>,
    store: Store<Program>,
    /// The number of entry changes that were applied to the caches.
    followed: u64,
    learner: Learner,
    operations: Operations,
    seen: Box<[u16]>,
    secrets: [u64; 2],
    chance: u32,
    vectors: u32,
    selector: CacheSelector,
    status: CacheStatus,
    /// Working memory for a vector's packets: flows, decisions, places, paths.
    flows: Vec<u64>,
    found: Vec<CachedDecision>,
    answers: Vec<(usize, CachedDecision)>,
    received: Vec<usize>,
    misses: Vec<usize>,
    to_record: Vec<usize>,
    paths: Vec<PathId>,
    stale: Vec<(usize, CachedDecision)>,
}

impl Caches {
    pub(super) fn new(settings: CacheSettings) -> Caches {
        let seed = settings.seed;
        let bounds = Bounds {
            masks: settings.max_masks,
            megaflows: settings.max_megaflows,
        };
        let levels = Levels {
            microflows: settings.microflows.is_some(),
            megaflows: settings.megaflows,
        };
        let build =
            |(kind, flows): (Kind, usize)| (kind.build)(flows, seed ^ 0x6d69_6372_6f66_6c6f);
        Caches {
            microflows: settings.microflows.map(build),
            store: Store::new(bounds, seed).found_by(settings.finder.spec(), seed),
            followed: 0,
            learner: Learner::default(),
            operations: Operations::default(),
            seen: vec![0; SEEN_SLOTS].into(),
            secrets: [
                seed ^ 0xa076_1d64_78bd_642f,
                seed.rotate_left(17) ^ 0xe703_7ed1_a0b4_28db,
            ],
            chance: 0,
            vectors: 0,
            selector: CacheSelector::new(levels, settings.clock),
            status: CacheStatus::default(),
            settings,
            flows: Vec::new(),
            found: Vec::new(),
            answers: Vec::new(),
            received: Vec::new(),
            misses: Vec::new(),
            to_record: Vec::new(),
            paths: Vec::new(),
            stale: Vec::new(),
        }
    }

    /// Returns the contents and counters of the caches.
    pub(super) fn status(&self) -> CacheStatus {
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
            paths: self.store.paths.len(),
            megaflow_bytes: self.store.bytes(),
            added,
            evicted,
            outdated,
            narrowed,
            revalidations: eras,
            ..self.status
        }
    }

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
        let is_added = |change: &&EntryChange| matches!(change, EntryChange::Added { .. });
        let scanned = |changes| Iterator::filter(changes, is_added).count() * self.store.len();
        let Some(changes) =
            changes.filter(|changes| scanned(changes.clone()) <= MAX_SCANNED_SIGNATURES)
        else {
            self.store.begin_era();
            return;
        };
        // A stale megaflow stays stale, and no megaflow is added. So the order of changes
        // does not matter, and new entries are compared with megaflows together.
        let mut added = Vec::new();
        for change in changes {
            match change {
                EntryChange::Added {
                    table,
                    winner,
                    flow,
                } => added.push(Added {
                    table: *table,
                    winner: *winner,
                    match_bits: match_bits(flow),
                }),
                EntryChange::Removed(id) => {
                    for path in self.store.paths.of_entry(*id) {
                        self.store.paths.close(path);
                    }
                }
                EntryChange::Modified { id, goes_on } => self.modified(side, *id, *goes_on),
            }
        }
        self.store.entries_added(&added);
        // Must come before other paths get the numbers of the closed paths.
        for path in self.store.paths.take_closed() {
            tally.close_path(path);
        }
    }

    /// Handles an entry with new instructions. The paths on which it wins get new programs,
    /// or are closed if packets now take another path. A path with a removed entry is closed
    /// as well, since its program needs the instructions of all its entries.
    fn modified(&mut self, side: &Side, id: RuleId, goes_on: bool) {
        for number in self.store.paths.of_entry(id) {
            let (path, _) = self.store.paths.get(number);
            let mut winners = path.steps.iter().filter_map(|step| step.winner.rule());
            let is_there = goes_on && winners.all(|id| side.find_flow(id).is_some());
            let new = is_there.then(|| Program::new(side, path, &mut self.operations));
            match (new, self.store.paths.program_mut(number)) {
                (Some(new), Some(program)) => *program = new,
                _ => self.store.paths.close(number),
            }
        }
    }

    /// Processes a vector, as [`process`](super::process::process) does.
    pub(super) fn process(
        &mut self,
        side: &Side,
        packets: &mut [Packet],
        (tally, now): (&Tally, Duration),
        buffers: &mut Buffers,
        sink: &mut dyn Sink,
        observer: &mut (impl Observer + ?Sized),
    ) {
        let nanoseconds = nanoseconds(now);
        buffers.begin(packets.len());
        let plan = self.selector.begin();
        let (uses_microflows, uses_megaflows) = (plan.levels.microflows, plan.levels.megaflows);
        self.status.microflow_by_passed += u64::from(!uses_microflows && self.microflows.is_some());
        self.status.megaflow_by_passed += u64::from(!uses_megaflows && self.settings.megaflows);
        let receives = |packet: &Packet| side.ports.receives(in_port(packet.key()));
        // Unused caches follow changes when they are used again.
        if !uses_microflows && !uses_megaflows {
            let numbered = packets.iter().enumerate();
            let received = numbered.filter(|(_, packet)| receives(packet));
            for (packet_index, _) in received {
                buffers.wait(TableId(0), packet_index);
                self.status.by_tables += 1;
            }
            run_tables(side, packets, (tally, now), buffers, None, sink, observer);
            self.selector.end(Outcome {
                packets: packets.len(),
                ..Outcome::default()
            });
            return;
        }
        let begun = self.selector.time();
        self.follow(side, tally);
        let followed = self.selector.time();
        self.received.clear();
        let numbered = packets.iter().enumerate();
        let received = numbered.filter(|(_, packet)| receives(packet));
        self.received
            .extend(received.map(|(packet_index, _)| packet_index));
        self.flows.clear();
        self.flows.resize(packets.len(), 0);
        self.paths.clear();
        self.paths.resize(packets.len(), UNKNOWN);
        self.stale.clear();
        self.misses.clear();
        match uses_microflows {
            true => {
                for &packet_index in &self.received {
                    self.flows[packet_index] =
                        flow_of(packets[packet_index].key().words(), self.secrets);
                }
                self.look_up_microflows(packets, nanoseconds);
                observer.node(Node::Microflows, self.received.len());
            }
            false => self.misses.extend_from_slice(&self.received),
        }
        let looked_up = self.selector.time();
        let microflow_misses = self.misses.len();
        let microflow_hits = self.received.len() - microflow_misses - self.stale.len();
        let mut megaflow_hits = 0;
        if uses_megaflows && microflow_misses > 0 {
            megaflow_hits = self.look_up_megaflows(packets, uses_microflows, nanoseconds);
            observer.node(Node::Megaflows, microflow_misses);
        }
        let searched = self.selector.time();
        self.run_paths(side, packets, (tally, now), buffers, sink, observer);
        let hits = microflow_hits + megaflow_hits;
        observer.node(Node::Paths, hits);
        let between = |from: Option<Duration>, to: Option<Duration>| {
            let times = from.zip(to);
            times.map_or(Duration::ZERO, |(from, to)| to.saturating_sub(from))
        };
        let mut outcome = Outcome {
            packets: packets.len(),
            known: hits,
            took: Parts {
                upkeep: between(begun, followed),
                asking: between(followed, looked_up.filter(|_| uses_microflows).or(searched)),
                known: between(searched, self.selector.time()),
            },
            ..Outcome::default()
        };
        // Packets also wait for tables if their paths ended early.
        if hits < self.received.len() || buffers.is_waited() {
            if !uses_microflows {
                let unknown = self.misses.iter().filter(|_| plan.notes_flows);
                let unknown =
                    unknown.chain(self.stale.iter().map(|(packet_index, _)| packet_index));
                for &packet_index in unknown {
                    self.flows[packet_index] =
                        flow_of(packets[packet_index].key().words(), self.secrets);
                }
            }
            self.learner.begin(packets.len());
            self.send_on(packets, plan, buffers, nanoseconds, &mut outcome);
            let learner = self.learner.is_watching().then_some(&mut self.learner);
            run_tables(
                side,
                packets,
                (tally, now),
                buffers,
                learner,
                sink,
                observer,
            );
            self.keep(side, tally, nanoseconds);
        }
        self.selector.end(outcome);
        self.vectors += 1;
        if self.vectors.is_multiple_of(TICK_VECTORS) {
            self.store.tick(self.selector.without_caches() / PROBE_NS);
        }
    }

    /// Looks packets up in the cache of single flows.
    fn look_up_microflows(&mut self, packets: &[Packet], now: u64) {
        let Some(cache) = &mut self.microflows else {
            return;
        };
        // Packets that are not received have flow 0, and their decisions are ignored.
        self.found.clear();
        self.found.resize(packets.len(), CachedDecision::NONE);
        cache.look_up(&self.flows, now, &mut self.found);
        self.status.microflow_lookups += self.received.len() as u64;
        self.answers.clear();
        for &packet_index in &self.received {
            match self.found[packet_index] {
                decision if decision.is_some() => self.answers.push((packet_index, decision)),
                _ => self.misses.push(packet_index),
            }
        }
        let key = |packet_index: usize| packets[packet_index].key().words();
        let record = |packet_index: usize, decision, result| match result {
            Found::Path(path) => {
                self.paths[packet_index] = path;
                self.status.microflow_hits += 1;
            }
            Found::Stale => self.stale.push((packet_index, decision)),
            Found::Nothing => {
                cache.forget(self.flows[packet_index], decision);
                self.status.microflow_wrong += 1;
                self.misses.push(packet_index);
            }
        };
        self.store.check_all(&self.answers, key, record);
    }

    /// Looks up the remaining packets among megaflows. Returns the number of hits.
    fn look_up_megaflows(&mut self, packets: &[Packet], offer: bool, now: u64) -> usize {
        let mut covered = 0;
        self.status.megaflow_lookups += self.misses.len() as u64;
        let (paths, stale) = (&mut self.paths, &mut self.stale);
        let (flows, microflows) = (&self.flows, &mut self.microflows);
        let key = |packet_index: usize| packets[packet_index].key().words();
        let probes_all = self.settings.clock.is_none();
        self.store.find(
            probes_all,
            key,
            &mut self.misses,
            |packet_index, decision, result| match result {
                Found::Path(path) => {
                    paths[packet_index] = path;
                    covered += 1;
                    if let Some(cache) = microflows.as_mut().filter(|_| offer) {
                        cache.offer(flows[packet_index], decision, now);
                    }
                }
                Found::Stale => stale.push((packet_index, decision)),
                Found::Nothing => {}
            },
        );
        self.status.megaflow_hits += covered as u64;
        covered
    }

    /// Runs the programs of packets that hit.
    fn run_paths(
        &mut self,
        side: &Side,
        packets: &mut [Packet],
        (tally, now): (&Tally, Duration),
        buffers: &mut Buffers,
        sink: &mut dyn Sink,
        observer: &mut (impl Observer + ?Sized),
    ) {
        let known = self.paths.iter().filter(|&&path| path != UNKNOWN);
        tally.fetch_paths(known.copied());
        let mut copies = std::mem::take(&mut buffers.copies);
        for &packet_index in &self.received {
            let path = self.paths[packet_index];
            if path == UNKNOWN {
                continue;
            }
            let program = self.store.paths.program(path);
            let program = program.expect("the path was not closed when it was found");
            let mut run = Run {
                side,
                tally,
                now,
                nanoseconds: nanoseconds(now),
                sink: &mut *sink,
                observer: &mut *observer,
                copies: &mut copies,
                place: NO_TABLE,
                carried: &mut buffers.carried[packet_index],
            };
            let (packet, set) = (&mut packets[packet_index], &mut buffers.sets[packet_index]);
            let next = program.run(path, &mut run, packet, set);
            if let Some(next) = next {
                buffers.wait(next, packet_index);
            }
        }
        buffers.copies = copies;
    }

    /// Sends the packets that missed to the tables, and selects some of them to be
    /// recorded.
    fn send_on(
        &mut self,
        packets: &[Packet],
        plan: VectorPlan,
        buffers: &mut Buffers,
        now: u64,
        outcome: &mut Outcome,
    ) {
        let unknown = self.misses.iter();
        let unknown = unknown.chain(self.stale.iter().map(|(packet_index, _)| packet_index));
        unknown.for_each(|&packet_index| buffers.wait(TableId(0), packet_index));
        self.status.stale += self.stale.len() as u64;
        self.status.by_tables += (self.stale.len() + self.misses.len()) as u64;
        // Renewing stale megaflows is a cost of changes, not of learning.
        self.watch_stale(packets, 0);
        outcome.stale = self.stale.len();
        outcome.renewed = self.learner.watched().len();
        if !plan.notes_flows {
            return;
        }
        let mut seen = self.stale.len();
        self.to_record.clear();
        for &packet_index in &self.misses {
            let flow = self.flows[packet_index];
            #[allow(clippy::cast_possible_truncation)] // parts of a hash
            let (at, tag) = (flow as usize % SEEN_SLOTS, (flow >> 48) as u16);
            let was_seen = std::mem::replace(&mut self.seen[at], tag) == tag;
            seen += usize::from(was_seen);
            self.chance = self.chance.wrapping_add(1);
            if was_seen || plan.of_any_flow || self.chance.is_multiple_of(SAMPLING_PACKETS) {
                self.to_record.push(packet_index);
            }
        }
        outcome.seen = Some(seen);
        if !plan.may_watch {
            return;
        }
        if !plan.levels.megaflows {
            let known = self.stale.len();
            self.offer_megaflows(packets, now);
            self.watch_stale(packets, known);
            outcome.renewed = self.learner.watched().len();
        }
        for &packet_index in &self.to_record {
            let (flow, key) = (self.flows[packet_index], packets[packet_index].key());
            self.learner.watch(packet_index, flow, None, key);
        }
        outcome.watched = self.learner.watched().len() - outcome.renewed;
    }

    /// Records packets with stale megaflows, starting at index `first`.
    fn watch_stale(&mut self, packets: &[Packet], first: usize) {
        for &(packet_index, decision) in &self.stale[first..] {
            let (flow, key) = (self.flows[packet_index], packets[packet_index].key());
            self.learner.watch(packet_index, flow, Some(decision), key);
        }
    }

    /// Looks up packets among the megaflows, which the vector has not used yet, and offers
    /// hits to the cache of single flows. That takes less time than recording a known path.
    /// Packets that hit are not recorded any more.
    fn offer_megaflows(&mut self, packets: &[Packet], now: u64) {
        let (flows, stale, microflows) = (&self.flows, &mut self.stale, &mut self.microflows);
        let key = |packet_index: usize| packets[packet_index].key().words();
        let record = |packet_index: usize, decision, result| match (result, microflows.as_mut()) {
            (Found::Path(_), Some(cache)) => cache.offer(flows[packet_index], decision, now),
            (Found::Stale, _) => stale.push((packet_index, decision)),
            _ => {}
        };
        let probes_all = self.settings.clock.is_none();
        self.store
            .find(probes_all, key, &mut self.to_record, record);
    }

    /// Caches the paths of recorded packets.
    fn keep(&mut self, side: &Side, tally: &Tally, now: u64) {
        for watched in self.learner.watched() {
            if let Some(decision) = watched.stale {
                self.store.drop_stale(decision, &watched.key);
            }
            if watched.is_open || watched.path.steps.is_empty() {
                continue;
            }
            let mask = widened(&watched.mask, &watched.key);
            let operations = &mut self.operations;
            let program = |path: &Path| Program::new(side, path, operations);
            let added = self
                .store
                .insert(&watched.key, &mask, &watched.path, program);
            for path in self.store.paths.take_closed() {
                tally.close_path(path);
            }
            let Some(added) = added else { continue };
            let Kept { decision, path, .. } = added;
            if added.is_new {
                let steps = watched.path.steps.iter();
                tally.open_path(path, steps.map(|step| (step.table, step.winner)));
            }
            self.status.learned += 1;
            if let Some(cache) = &mut self.microflows {
                cache.offer(watched.flow, decision, now);
            }
        }
    }

    /// Returns the caches' answer for a packet.
    pub(super) fn ask(
        &mut self,
        (side, tally): (&Side, &Tally),
        packet: &Packet,
        now: Duration,
    ) -> CacheAnswer {
        self.follow(side, tally);
        let words = packet.key().words();
        let microflow = self.microflows.as_mut().map(|cache| {
            let mut decisions = [CachedDecision::NONE];
            cache.look_up(
                &[flow_of(words, self.secrets)],
                nanoseconds(now),
                &mut decisions,
            );
            let [decision] = decisions;
            decision.is_some() && matches!(self.store.check(decision, words), Found::Path(_))
        });
        let mut decision = None;
        let record = |_, covering, result| {
            if let Found::Path(_) = result {
                decision = Some(covering);
            }
        };
        self.store.find(true, |_| words, &mut vec![0], record);
        let megaflow = decision.and_then(|decision| self.store.megaflow(decision));
        let megaflow = megaflow.map(|(key, mask, path)| {
            let (path, _) = self.store.paths.get(path);
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
        }
    }
}

/// Returns a mask with more bits, so that there are fewer different masks: of addresses and
/// ports, all leading bits up to the last bit in `mask`, for addresses in steps of four.
fn widened(mask: &Words, key: &Words) -> Words {
    let mut wide = *mask;
    let is_ipv6 = PacketKey::place(Field::EthType).get(key) == 0x86dd;
    let addresses = match is_ipv6 {
        true => [(Field::Ipv6Src, 128), (Field::Ipv6Dst, 128)],
        false => [(Field::Ipv4Src, 32), (Field::Ipv4Dst, 32)],
    };
    let ports = [(Field::TcpSrc, 16), (Field::TcpDst, 16)];
    let fields = addresses.into_iter().map(|field| (field, 4));
    let fields = fields.chain(ports.into_iter().map(|field| (field, 1)));
    for ((field, width), step) in fields {
        let field_place = PacketKey::place(field);
        let field_mask = field_place.get(mask);
        if field_mask != 0 {
            let last = field_mask.trailing_zeros() / step * step;
            field_place.set_bits(&mut wide, u128::MAX >> (128 - width) >> last << last);
        }
    }
    wide
}
