//! Flow caches before the tables: one set of them for each worker.
//!
//! ```text
//! vector ─▶ microflows ─▶ megaflows ─▶ tables ─┐
//!             │ known       │ known       watched: path, mask
//!             ▼             ▼                  │
//!           paths: actions of all entries ◀────┘ for later packets
//! ```
//! What a level does not know is gathered and looked up together at the next. A cache of
//! single flows leads to a megaflow, and is believed only if that covers the packet.
//!
//! Packets that no level knows pass the tables. Those of flows that were seen a moment
//! ago, and a few others, are watched there, and their paths are kept.
//!
//! # Coherence
//! Before a vector is looked up, all changes of entries since the last one are followed
//! ([`Store`]). What entries, groups, meters and ports do is not cached at all, with
//! one exception: programs of paths have the actions of their entries, and are made
//! anew when these change.

use std::time::Duration;

use super::actions::{NO_TABLE, Run, in_port};
use super::cache_status::{CacheAnswer, CacheSettings, CacheStatus, Megaflow};
use super::governor::Governor;
use super::learn::Learner;
use super::observer::{Node, Observer};
use super::process::{Buffers, Sink, run_tables};
use super::program::{Operations, Program};
use super::side::Side;
use super::tally::{Tally, nanoseconds};
use crate::cache::bits::{Words, asked};
use crate::cache::change::EntryChange;
use crate::cache::microflow::{Decision, Kind, MicroflowCache};
use crate::cache::path::{Path, PathId, Step};
use crate::cache::store::{Bounds, Found, Kept, MAX_MASKS, MAX_MEGAFLOWS, Store, StoreCounts};
use crate::field::Field;
use crate::flow::TableId;
use crate::key::PacketKey;
use crate::packet::Packet;

/// The hash of a packet's flow: a sum of products, which do not wait for each other.
#[inline]
fn flow_of(key: &Words, secrets: [u64; 2]) -> u64 {
    let (mut sum, mut salt) = (secrets[1], secrets[0]);
    let (pairs, _) = key[..FLOW_WORDS].as_chunks::<2>();
    for &[one, other] in pairs {
        // Both change with the place, so that words of 0 do not make the product 0.
        let product = u128::from(one ^ salt) * u128::from(other ^ salt.rotate_left(32));
        #[allow(clippy::cast_possible_truncation)] // both halves are used
        let (low, high) = (product as u64, (product >> 64) as u64);
        sum = sum.wrapping_add(low ^ high);
        salt = salt.rotate_left(7).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    (sum ^ sum >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// What work costs, in nanoseconds on a processor of 2024, to weigh what caches cost
/// against what they save: measured with `replay --nodes`.
mod cost {
    /// A flow's hash, and its lookup in a cache of single flows.
    pub(super) const MICROFLOW: f64 = 16.0;
    /// What that and the megaflow cost besides where megaflows have as many bytes as
    /// below, or more: they are not in the nearest caches of the processor.
    pub(super) const FAR: f64 = 40.0;
    /// See above.
    pub(super) const FAR_BYTES: f64 = 3e6;
    /// A table of megaflows that a packet is looked up in.
    pub(super) const PROBE: f64 = 20.0;
    /// A flow table that a packet need not pass.
    pub(super) const TABLE: f64 = 16.0;
    /// A packet that is watched, and its path kept.
    pub(super) const LEARN: f64 = 1000.0;
    /// The same for each table on its way.
    pub(super) const LEARN_TABLE: f64 = 150.0;
    /// A change that is followed, and a path that is closed by it.
    pub(super) const CHANGE: f64 = 500.0;
    /// A megaflow that is gone through for an entry that is new.
    pub(super) const SCAN: f64 = 0.2;
}

/// The path of a packet that no cache knows.
const UNKNOWN: PathId = PathId(u32::MAX);

/// Words of a key that flows differ in: all except the registers.
const FLOW_WORDS: usize = 14;

/// Flows that were seen a moment ago: part of the hash of each, by the rest of it.
const SEEN: usize = 1 << 15;

/// Of so many packets of flows that were not seen a moment ago one is watched.
const SAMPLED: u32 = 64;

/// Of the time that tables would take, the share that may be spent on watching packets in
/// any case.
const WATCHING: f64 = 0.02;

/// Of the time that caches have saved, the share that may be spent on it besides: what
/// is learned is paid by what was learned.
const REINVESTED: f64 = 0.5;

/// The most time that may be left over for watching, in nanoseconds: for what comes after
/// a start or a change.
const WATCHING_MOST: f64 = 1e7;

/// Megaflows to go through for changes, at most, before they are held against the
/// tables instead, one by one as packets come for them.
const SCANNED: usize = 4_000_000;

/// Vectors between two sortings of masks.
const TICK: u32 = 256;

/// The caches of a worker.
pub(super) struct Caches {
    settings: CacheSettings,
    microflows: Option<Box<dyn MicroflowCache>>,
    store: Store<Program>,
    /// Changes of entries that were followed.
    followed: u64,
    learner: Learner,
    operations: Operations,
    seen: Box<[u16]>,
    secrets: [u64; 2],
    chance: u32,
    vectors: u32,
    /// Time that may be spent on watching packets, in nanoseconds.
    budget: f64,
    /// Tables that packets pass, on average.
    tables: f64,
    /// What a packet costs that the cache of single flows does not know, in nanoseconds.
    next: f64,
    /// Time that was spent on following changes since caches were judged, in nanoseconds.
    upkeep: f64,
    governors: (Governor, Governor),
    status: CacheStatus,
    /// Packets of the vector: flows, what is said of them, places, paths.
    flows: Vec<u64>,
    found: Vec<Decision>,
    here: Vec<usize>,
    left: Vec<usize>,
    paths: Vec<PathId>,
    stale: Vec<(usize, Decision)>,
}

impl Caches {
    /// # Panics
    /// Where settings are not what [`CacheSettings`] says.
    pub(super) fn new(settings: CacheSettings) -> Caches {
        assert!(
            (2..=MAX_MASKS).contains(&settings.max_masks),
            "{settings:?}"
        );
        let megaflows = 1..=MAX_MEGAFLOWS;
        assert!(megaflows.contains(&settings.max_megaflows), "{settings:?}");
        let seed = settings.seed;
        let bounds = Bounds {
            masks: settings.max_masks,
            megaflows: settings.max_megaflows,
        };
        let build =
            |(kind, flows): (Kind, usize)| (kind.build)(flows, seed ^ 0x6d69_6372_6f66_6c6f);
        Caches {
            microflows: settings.microflows.map(build),
            store: Store::new(bounds, seed).found_by(&settings.finder, seed),
            followed: 0,
            learner: Learner::default(),
            operations: Operations::default(),
            seen: vec![0; SEEN].into(),
            secrets: [
                seed ^ 0xa076_1d64_78bd_642f,
                seed.rotate_left(17) ^ 0xe703_7ed1_a0b4_28db,
            ],
            chance: 0,
            vectors: 0,
            budget: WATCHING_MOST,
            tables: 1.0,
            next: cost::TABLE,
            upkeep: 0.0,
            governors: (
                Governor::new(settings.always),
                Governor::new(settings.always),
            ),
            status: CacheStatus::default(),
            settings,
            flows: Vec::new(),
            found: Vec::new(),
            here: Vec::new(),
            left: Vec::new(),
            paths: Vec::new(),
            stale: Vec::new(),
        }
    }

    /// How they are doing.
    pub(super) fn status(&self) -> CacheStatus {
        let StoreCounts {
            probes,
            added,
            evicted,
            removed,
            narrowed,
            eras,
        } = self.store.counts;
        CacheStatus {
            microflows: self
                .microflows
                .as_ref()
                .map(|it| it.usage())
                .unwrap_or_default(),
            microflow_by_passed: self.governors.0.by_passed(),
            megaflow_by_passed: self.governors.1.by_passed(),
            megaflow_probes: probes,
            megaflows: self.store.len(),
            masks: self.store.masks(),
            paths: self.store.paths.len(),
            megaflow_bytes: self.store.bytes(),
            added,
            evicted,
            removed,
            narrowed,
            revalidations: eras,
            ..self.status
        }
    }

    /// Follows the changes of entries that a side has and the last one had not.
    fn follow(&mut self, side: &Side, tally: &Tally) {
        let made = side.recent.made();
        if made == self.followed {
            return;
        }
        let changes = side.recent.since(self.followed);
        let count = usize::try_from(made - self.followed).unwrap_or(usize::MAX);
        self.followed = made;
        if self.store.len() == 0 {
            return;
        }
        let scanned = count.saturating_mul(self.store.len());
        let Some(changes) = changes.filter(|_| scanned <= SCANNED) else {
            self.store.begin_era();
            return;
        };
        #[allow(clippy::cast_precision_loss)] // an estimate
        let scan = self.store.len() as f64 * cost::SCAN;
        for change in changes {
            self.upkeep += cost::CHANGE;
            match change {
                EntryChange::Added {
                    table,
                    winner,
                    flow,
                } => {
                    self.upkeep += scan;
                    self.store.entry_added(*table, *winner, &asked(flow));
                }
                EntryChange::Removed(id) => {
                    for path in self.store.paths.of_entry(*id) {
                        self.store.paths.close(path);
                    }
                }
                EntryChange::Modified(id) => self.modified(side, *id),
            }
            // Before their numbers are those of other paths.
            for path in self.store.paths.take_closed() {
                tally.close_path(path);
                self.upkeep += cost::CHANGE;
            }
        }
    }

    /// An entry says something else: the paths on which it wins get new programs, or are
    /// closed where they go elsewhere now. A program has what all entries of its path say,
    /// of which others may have changed as well.
    fn modified(&mut self, side: &Side, id: classyard::RuleId) {
        for number in self.store.paths.of_entry(id) {
            let (path, program) = self.store.paths.get(number);
            let goes_on = |(at, step): (usize, &Step)| match step.winner.rule() {
                None => true,
                Some(id) => side.find_flow(id).is_some_and(|flow| {
                    program.is_some_and(|program| program.goes_on(at, &flow.instructions))
                }),
            };
            let goes_on = path.steps.iter().enumerate().all(goes_on);
            let made = goes_on.then(|| Program::new(side, path, &mut self.operations));
            match (made, self.store.paths.program_mut(number)) {
                (Some(made), Some(program)) => *program = made,
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
        sink: &mut impl Sink,
        observer: &mut impl Observer,
    ) {
        let nanoseconds = nanoseconds(now);
        buffers.begin(packets.len());
        let ask_microflows = self.microflows.is_some() && self.governors.0.begin();
        let ask_megaflows = self.settings.megaflows && self.governors.1.begin();
        let receives = |packet: &Packet| side.ports.receives(in_port(packet.key()));
        if !ask_microflows && !ask_megaflows {
            let places = packets.iter().enumerate();
            let places = places.filter(|(_, packet)| receives(packet));
            for (place, _) in places {
                buffers.wait(TableId(0), place);
                self.status.by_tables += 1;
            }
            run_tables(side, packets, (tally, now), buffers, None, sink, observer);
            return;
        }
        self.follow(side, tally);
        self.here.clear();
        let places = packets.iter().enumerate();
        let places = places.filter(|(_, packet)| receives(packet));
        self.here.extend(places.map(|(place, _)| place));
        self.flows.clear();
        self.flows.resize(packets.len(), 0);
        self.paths.clear();
        self.paths.resize(packets.len(), UNKNOWN);
        self.stale.clear();
        self.left.clear();
        match ask_microflows {
            true => {
                for &place in &self.here {
                    self.flows[place] = flow_of(packets[place].key().words(), self.secrets);
                }
                self.ask_microflows(packets, nanoseconds);
                observer.node(Node::Microflows, self.here.len());
            }
            false => self.left.extend_from_slice(&self.here),
        }
        let asked = self.left.len();
        let known = self.here.len() - asked - self.stale.len();
        let probes = self.store.counts.probes;
        let mut found = 0;
        if ask_megaflows && asked > 0 {
            found = self.ask_megaflows(packets, ask_microflows, nanoseconds);
            observer.node(Node::Megaflows, asked);
        }
        let probes = self.store.counts.probes - probes;
        let steps = self.run_paths(side, packets, (tally, now), buffers, sink, observer);
        observer.node(Node::Paths, known + found);
        // Paths may have ended early, as well.
        if known + found < self.here.len() || buffers.is_waited() {
            if !ask_microflows {
                let unknown = self.left.iter();
                let unknown = unknown.chain(self.stale.iter().map(|(place, _)| place));
                for &place in unknown {
                    self.flows[place] = flow_of(packets[place].key().words(), self.secrets);
                }
            }
            self.run_rest(side, packets, (tally, now), buffers, sink, observer);
        }
        self.keep(side, tally, nanoseconds);
        self.judge(&Work {
            asked: (ask_microflows, ask_megaflows),
            microflows: (self.here.len(), known),
            megaflows: (asked, found),
            probes,
            steps,
        });
        self.vectors += 1;
        if self.vectors.is_multiple_of(TICK) {
            self.store.tick();
        }
    }

    /// Looks packets up in the cache of single flows.
    fn ask_microflows(&mut self, packets: &[Packet], now: u64) {
        let Some(cache) = &mut self.microflows else {
            return;
        };
        // Flows of packets that are not received are hashes of 0, and are not looked at.
        self.found.clear();
        self.found.resize(packets.len(), Decision::NONE);
        cache.look_up(&self.flows, now, &mut self.found);
        self.status.microflow_lookups += self.here.len() as u64;
        for &place in &self.here {
            let decision = self.found[place];
            if !decision.is_some() {
                self.left.push(place);
                continue;
            }
            match self.store.check(decision, packets[place].key().words()) {
                Found::Path(path) => {
                    self.paths[place] = path;
                    self.status.microflow_hits += 1;
                }
                Found::Stale => self.stale.push((place, decision)),
                Found::Nothing => {
                    cache.forget(self.flows[place], decision);
                    self.status.microflow_wrong += 1;
                    self.left.push(place);
                }
            }
        }
    }

    /// Looks the packets that are left up among megaflows. Returns how many are covered.
    fn ask_megaflows(&mut self, packets: &[Packet], offer: bool, now: u64) -> usize {
        let mut covered = 0;
        self.status.megaflow_lookups += self.left.len() as u64;
        let (paths, stale) = (&mut self.paths, &mut self.stale);
        let (flows, microflows) = (&self.flows, &mut self.microflows);
        let key = |place: usize| packets[place].key().words();
        self.store
            .find(key, &mut self.left, |place, decision, found| match found {
                Found::Path(path) => {
                    paths[place] = path;
                    covered += 1;
                    if let Some(cache) = microflows.as_mut().filter(|_| offer) {
                        cache.offer(flows[place], decision, now);
                    }
                }
                Found::Stale => stale.push((place, decision)),
                Found::Nothing => {}
            });
        self.status.megaflow_hits += covered as u64;
        covered
    }

    /// Carries out what is to be done with packets whose paths are known. Returns the
    /// tables that they need not pass.
    fn run_paths(
        &mut self,
        side: &Side,
        packets: &mut [Packet],
        (tally, now): (&Tally, Duration),
        buffers: &mut Buffers,
        sink: &mut impl Sink,
        observer: &mut impl Observer,
    ) -> usize {
        let mut copies = std::mem::take(&mut buffers.copies);
        let mut steps = 0;
        for &place in &self.here {
            let path = self.paths[place];
            if path == UNKNOWN {
                continue;
            }
            let program = self.store.paths.program(path);
            let program = program.expect("the path was not closed when it was found");
            steps += program.len();
            let mut run = Run {
                side,
                tally,
                now,
                nanoseconds: nanoseconds(now),
                sink: &mut *sink,
                observer: &mut *observer,
                copies: &mut copies,
                place: NO_TABLE,
                queue: None,
            };
            let (packet, set) = (&mut packets[place], &mut buffers.sets[place]);
            let next = program.run(path, &mut run, packet, set);
            buffers.queues[place] = run.queue;
            if let Some(next) = next {
                buffers.wait(next, place);
            }
        }
        buffers.copies = copies;
        steps
    }

    /// Has the packets of which nothing is known pass the tables, and watches some.
    fn run_rest(
        &mut self,
        side: &Side,
        packets: &mut [Packet],
        counted: (&Tally, Duration),
        buffers: &mut Buffers,
        sink: &mut impl Sink,
        observer: &mut impl Observer,
    ) {
        self.learner.begin(packets.len());
        let (stale, left) = (
            std::mem::take(&mut self.stale),
            std::mem::take(&mut self.left),
        );
        for &(place, decision) in &stale {
            let flow = self.flows[place];
            if self.may_watch() {
                self.learner
                    .watch(place, flow, Some(decision), packets[place].key());
            }
            buffers.wait(TableId(0), place);
        }
        self.status.stale += stale.len() as u64;
        self.status.by_tables += (stale.len() + left.len()) as u64;
        for &place in &left {
            buffers.wait(TableId(0), place);
            let flow = self.flows[place];
            #[allow(clippy::cast_possible_truncation)] // parts of a hash
            let (at, tag) = (flow as usize % SEEN, (flow >> 48) as u16);
            let was_seen = std::mem::replace(&mut self.seen[at], tag) == tag;
            self.chance = self.chance.wrapping_add(1);
            let wanted = was_seen || self.chance.is_multiple_of(SAMPLED) || self.settings.always;
            if wanted && self.may_watch() {
                self.learner.watch(place, flow, None, packets[place].key());
            }
        }
        (self.stale, self.left) = (stale, left);
        let learner = self.learner.is_watching().then_some(&mut self.learner);
        run_tables(side, packets, counted, buffers, learner, sink, observer);
    }

    /// Whether there is time to watch one more packet.
    fn may_watch(&mut self) -> bool {
        if self.learner.is_full() || self.budget < 0.0 && !self.settings.always {
            return false;
        }
        self.budget -= cost::LEARN + self.tables * cost::LEARN_TABLE;
        true
    }

    /// Keeps the paths of packets that were watched.
    fn keep(&mut self, side: &Side, tally: &Tally, now: u64) {
        for watched in self.learner.watched.drain(..) {
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
                .insert(&watched.key, &mask, watched.path, program);
            for path in self.store.paths.take_closed() {
                tally.close_path(path);
            }
            let Some(added) = added else { continue };
            let Kept { decision, path, .. } = added;
            if added.is_new
                && let Some(program) = self.store.paths.program(path)
            {
                tally.open_path(path, program.steps());
            }
            self.status.learned += 1;
            if let Some(cache) = &mut self.microflows {
                cache.offer(watched.flow, decision, now);
            }
        }
    }

    /// Holds what caches cost against what they save.
    fn judge(&mut self, work: &Work) {
        #[allow(clippy::cast_precision_loss)] // numbers of packets
        let count = |number: usize| number as f64;
        let (lookups, known) = work.microflows;
        let (asked, found) = work.megaflows;
        if known + found > 0 {
            let tables = count(work.steps) / count(known + found);
            self.tables += (tables - self.tables) / 64.0;
        }
        let tables = self.tables * cost::TABLE;
        let upkeep = std::mem::take(&mut self.upkeep);
        #[allow(clippy::cast_precision_loss)] // less than 2^53
        let (probes, bytes) = (work.probes as f64, self.store.bytes() as f64);
        let probe = probes * cost::PROBE;
        // The more there is in them, the farther away caches are themselves.
        let far = (bytes / cost::FAR_BYTES).min(1.0) * cost::FAR;
        let microflow = cost::MICROFLOW + far;
        let asked_for = match work.asked.0 {
            true => count(lookups) * microflow,
            false => 0.0,
        };
        let saved = count(known + found) * tables - asked_for - probe - upkeep;
        let spare = count(lookups) * tables * WATCHING + saved.max(0.0) * REINVESTED;
        self.budget = (self.budget + spare).min(WATCHING_MOST);
        if asked > 0 && work.asked.1 {
            let missed = count(asked - found) / count(asked) * tables;
            let next = probe / count(asked) + missed;
            let weight = (count(asked) / 4096.0).min(1.0);
            self.next += (next - self.next) * weight;
        }
        if work.asked.1 {
            self.governors.1.end(probe + upkeep, count(found) * tables);
        }
        if work.asked.0 {
            // What a packet costs that is not known to the cache of single flows: of what
            // came there lately, since a vector may have no such packet.
            let next = match work.asked.1 {
                true => self.next.min(tables + cost::PROBE),
                false => tables,
            };
            let cost = count(lookups) * microflow + upkeep;
            self.governors.0.end(cost, count(known) * next);
        }
    }

    /// What the caches know of a packet.
    pub(super) fn ask(
        &mut self,
        (side, tally): (&Side, &Tally),
        packet: &Packet,
        now: Duration,
    ) -> CacheAnswer {
        self.follow(side, tally);
        let words = packet.key().words();
        let microflow = self.microflows.as_mut().map(|cache| {
            let mut found = [Decision::NONE];
            cache.look_up(
                &[flow_of(words, self.secrets)],
                nanoseconds(now),
                &mut found,
            );
            found[0].is_some() && matches!(self.store.check(found[0], words), Found::Path(_))
        });
        let mut decision = None;
        let found = |_, covers, found| {
            if let Found::Path(_) = found {
                decision = Some(covers);
            }
        };
        self.store.find(|_| words, &mut vec![0], found);
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

/// What was done for a vector.
struct Work {
    /// Which levels were asked.
    asked: (bool, bool),
    /// Packets that were looked up among single flows, and those that were known.
    microflows: (usize, usize),
    /// The same of megaflows.
    megaflows: (usize, usize),
    probes: u64,
    /// Tables that packets did not have to pass.
    steps: usize,
}

/// A mask with more bits, of which there are fewer: of addresses and ports the first
/// ones, up to the last that is looked at; of addresses in steps of four.
fn widened(mask: &Words, key: &Words) -> Words {
    let mut wide = *mask;
    let is_ipv6 = PacketKey::place(Field::EthType).get(key) == 0x86dd;
    let addresses = match is_ipv6 {
        true => [(Field::Ipv6Src, 128), (Field::Ipv6Dst, 128)],
        false => [(Field::Ipv4Src, 32), (Field::Ipv4Dst, 32)],
    };
    let ports = [(Field::TcpSrc, 16), (Field::TcpDst, 16)];
    let fields = addresses.into_iter().map(|it| (it, 4));
    let fields = fields.chain(ports.into_iter().map(|it| (it, 1)));
    for ((field, width), step) in fields {
        let place = PacketKey::place(field);
        let wanted = place.get(mask);
        if wanted != 0 {
            let last = wanted.trailing_zeros() / step * step;
            place.set_bits(&mut wide, u128::MAX >> (128 - width) >> last << last);
        }
    }
    wide
}
