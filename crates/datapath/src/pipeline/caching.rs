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

use classyard::RuleId;

use super::actions::{NO_TABLE, Run, in_port};
use super::cache_settings::CacheSettings;
use super::cache_status::{CacheAnswer, CacheStatus, Megaflow};
use super::judge::{Judge, Levels, Outcome, Parts, Turn};
use super::learn::Learner;
use super::observer::{Node, Observer};
use super::process::{Buffers, Sink, run_tables};
use super::program::{Operations, Program};
use super::side::Side;
use super::tally::{Tally, nanoseconds};
use crate::cache::bits::{Words, asked};
use crate::cache::change::EntryChange;
use crate::cache::microflow::{Decision, Kind, MicroflowCache};
use crate::cache::path::{Path, PathId};
use crate::cache::store::{Added, Bounds, Found, Kept, Store, StoreCounts};
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

/// The path of a packet that no cache knows.
const UNKNOWN: PathId = PathId(u32::MAX);

/// Words of a key that flows differ in: all except the registers.
const FLOW_WORDS: usize = 14;

/// Flows that were seen a moment ago: part of the hash of each, by the rest of it.
const SEEN: usize = 1 << 16;

/// Of so many packets of flows that were not seen a moment ago one is watched.
const SAMPLED: u32 = 64;

/// Megaflows to go through for new entries at once, at most: some two milliseconds. For
/// more they are held against the tables instead, one by one as packets come for them,
/// which takes longer in all.
const SCANNED: usize = 16_000_000;

/// About what it takes to look a packet up in the megaflows of one mask, in nanoseconds.
const PROBE: f64 = 25.0;

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
    judge: Judge,
    status: CacheStatus,
    /// Packets of the vector: flows, what is said of them, places, paths.
    flows: Vec<u64>,
    found: Vec<Decision>,
    answers: Vec<(usize, Decision)>,
    here: Vec<usize>,
    left: Vec<usize>,
    wanted: Vec<usize>,
    paths: Vec<PathId>,
    stale: Vec<(usize, Decision)>,
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
            judge: Judge::new(levels, settings.clock),
            status: CacheStatus::default(),
            settings,
            flows: Vec::new(),
            found: Vec::new(),
            answers: Vec::new(),
            here: Vec::new(),
            left: Vec::new(),
            wanted: Vec::new(),
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
            outdated,
            narrowed,
            eras,
        } = self.store.counts;
        CacheStatus {
            microflows: self
                .microflows
                .as_ref()
                .map(|it| it.usage())
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

    /// Follows the changes of entries that a side has and the last one had not.
    fn follow(&mut self, side: &Side, tally: &Tally) {
        let made = side.recent.made();
        if made == self.followed {
            return;
        }
        let changes = side.recent.since(self.followed);
        self.followed = made;
        if self.store.len() == 0 {
            return;
        }
        let is_added = |change: &&EntryChange| matches!(change, EntryChange::Added { .. });
        let scanned = |changes| Iterator::filter(changes, is_added).count() * self.store.len();
        let Some(changes) = changes.filter(|changes| scanned(changes.clone()) <= SCANNED) else {
            self.store.begin_era();
            return;
        };
        // What is found wrong stays so, and nothing is added: the order does not matter,
        // and new entries are held against megaflows together.
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
                    asked: asked(flow),
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
        // Before their numbers are those of other paths.
        for path in self.store.paths.take_closed() {
            tally.close_path(path);
        }
    }

    /// An entry says something else: the paths on which it wins get new programs, or are
    /// closed where they go elsewhere now. A program has what all entries of its path say,
    /// of which some may be gone: changes that are followed later close it.
    fn modified(&mut self, side: &Side, id: RuleId, goes_on: bool) {
        for number in self.store.paths.of_entry(id) {
            let (path, _) = self.store.paths.get(number);
            let mut winners = path.steps.iter().filter_map(|step| step.winner.rule());
            let is_there = goes_on && winners.all(|id| side.find_flow(id).is_some());
            let made = is_there.then(|| Program::new(side, path, &mut self.operations));
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
        sink: &mut dyn Sink,
        observer: &mut (impl Observer + ?Sized),
    ) {
        let nanoseconds = nanoseconds(now);
        buffers.begin(packets.len());
        let turn = self.judge.begin();
        let (ask_microflows, ask_megaflows) = (turn.levels.microflows, turn.levels.megaflows);
        self.status.microflow_by_passed += u64::from(!ask_microflows && self.microflows.is_some());
        self.status.megaflow_by_passed += u64::from(!ask_megaflows && self.settings.megaflows);
        let receives = |packet: &Packet| side.ports.receives(in_port(packet.key()));
        if !ask_microflows && !ask_megaflows {
            let places = packets.iter().enumerate();
            let places = places.filter(|(_, packet)| receives(packet));
            for (place, _) in places {
                buffers.wait(TableId(0), place);
                self.status.by_tables += 1;
            }
            run_tables(side, packets, (tally, now), buffers, None, sink, observer);
            self.judge.end(Outcome {
                packets: packets.len(),
                ..Outcome::default()
            });
            return;
        }
        let begun = self.judge.time();
        self.follow(side, tally);
        let followed = self.judge.time();
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
        let asked = self.judge.time();
        let left = self.left.len();
        let known = self.here.len() - left - self.stale.len();
        let mut found = 0;
        if ask_megaflows && left > 0 {
            found = self.ask_megaflows(packets, ask_microflows, nanoseconds);
            observer.node(Node::Megaflows, left);
        }
        let searched = self.judge.time();
        self.run_paths(side, packets, (tally, now), buffers, sink, observer);
        observer.node(Node::Paths, known + found);
        let between = |from: Option<Duration>, to: Option<Duration>| {
            let both = from.zip(to);
            both.map_or(Duration::ZERO, |(from, to)| to.saturating_sub(from))
        };
        let mut outcome = Outcome {
            packets: packets.len(),
            known: known + found,
            took: Parts {
                upkeep: between(begun, followed),
                asking: between(followed, asked.filter(|_| ask_microflows).or(searched)),
                known: between(searched, self.judge.time()),
            },
            ..Outcome::default()
        };
        // Paths may have ended early, as well.
        if known + found < self.here.len() || buffers.is_waited() {
            if !ask_microflows {
                let unknown = self.left.iter().filter(|_| turn.notes_flows);
                let unknown = unknown.chain(self.stale.iter().map(|(place, _)| place));
                for &place in unknown {
                    self.flows[place] = flow_of(packets[place].key().words(), self.secrets);
                }
            }
            self.learner.begin(packets.len());
            self.send_on(packets, turn, buffers, nanoseconds, &mut outcome);
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
        self.judge.end(outcome);
        self.vectors += 1;
        if self.vectors.is_multiple_of(TICK) {
            self.store.tick(self.judge.without_caches() / PROBE);
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
        self.answers.clear();
        for &place in &self.here {
            match self.found[place] {
                decision if decision.is_some() => self.answers.push((place, decision)),
                _ => self.left.push(place),
            }
        }
        let key = |place: usize| packets[place].key().words();
        let found = |place: usize, decision, found| match found {
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
        };
        self.store.check_all(&self.answers, key, found);
    }

    /// Looks the packets that are left up among megaflows. Returns how many are covered.
    fn ask_megaflows(&mut self, packets: &[Packet], offer: bool, now: u64) -> usize {
        let mut covered = 0;
        self.status.megaflow_lookups += self.left.len() as u64;
        let (paths, stale) = (&mut self.paths, &mut self.stale);
        let (flows, microflows) = (&self.flows, &mut self.microflows);
        let key = |place: usize| packets[place].key().words();
        let all = self.settings.clock.is_none();
        self.store.find(
            all,
            key,
            &mut self.left,
            |place, decision, found| match found {
                Found::Path(path) => {
                    paths[place] = path;
                    covered += 1;
                    if let Some(cache) = microflows.as_mut().filter(|_| offer) {
                        cache.offer(flows[place], decision, now);
                    }
                }
                Found::Stale => stale.push((place, decision)),
                Found::Nothing => {}
            },
        );
        self.status.megaflow_hits += covered as u64;
        covered
    }

    /// Carries out what is to be done with packets whose paths are known.
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
        for &place in &self.here {
            let path = self.paths[place];
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
                carried: &mut buffers.carried[place],
            };
            let (packet, set) = (&mut packets[place], &mut buffers.sets[place]);
            let next = program.run(path, &mut run, packet, set);
            if let Some(next) = next {
                buffers.wait(next, place);
            }
        }
        buffers.copies = copies;
    }

    /// Has the packets of which nothing is known wait for the tables, and some of them
    /// watched.
    fn send_on(
        &mut self,
        packets: &[Packet],
        turn: Turn,
        buffers: &mut Buffers,
        now: u64,
        outcome: &mut Outcome,
    ) {
        let unknown = self.left.iter();
        let unknown = unknown.chain(self.stale.iter().map(|(place, _)| place));
        unknown.for_each(|&place| buffers.wait(TableId(0), place));
        self.status.stale += self.stale.len() as u64;
        self.status.by_tables += (self.stale.len() + self.left.len()) as u64;
        // What they cost is what changes cost, and not what it costs to know more.
        self.watch_stale(packets, 0);
        outcome.stale = self.stale.len();
        outcome.renewed = self.learner.watched().len();
        if !turn.notes_flows {
            return;
        }
        let mut seen = self.stale.len();
        self.wanted.clear();
        for &place in &self.left {
            let flow = self.flows[place];
            #[allow(clippy::cast_possible_truncation)] // parts of a hash
            let (at, tag) = (flow as usize % SEEN, (flow >> 48) as u16);
            let was_seen = std::mem::replace(&mut self.seen[at], tag) == tag;
            seen += usize::from(was_seen);
            self.chance = self.chance.wrapping_add(1);
            if was_seen || turn.of_any_flow || self.chance.is_multiple_of(SAMPLED) {
                self.wanted.push(place);
            }
        }
        outcome.seen = Some(seen);
        if !turn.may_watch {
            return;
        }
        if !turn.levels.megaflows {
            let known = self.stale.len();
            self.offer_megaflows(packets, now);
            self.watch_stale(packets, known);
            outcome.renewed = self.learner.watched().len();
        }
        for &place in &self.wanted {
            let (flow, key) = (self.flows[place], packets[place].key());
            self.learner.watch(place, flow, None, key);
        }
        outcome.watched = self.learner.watched().len() - outcome.renewed;
    }

    /// Watches packets whose megaflows may be wrong, the first ones left out.
    fn watch_stale(&mut self, packets: &[Packet], first: usize) {
        for &(place, decision) in &self.stale[first..] {
            let (flow, key) = (self.flows[place], packets[place].key());
            self.learner.watch(place, flow, Some(decision), key);
        }
    }

    /// Offers megaflows to the cache of single flows, where these were not asked: that
    /// takes less time than to learn a path that is known. Such packets are not to be
    /// watched any more.
    fn offer_megaflows(&mut self, packets: &[Packet], now: u64) {
        let (flows, stale, microflows) = (&self.flows, &mut self.stale, &mut self.microflows);
        let key = |place: usize| packets[place].key().words();
        let found = |place: usize, decision, found| match (found, microflows.as_mut()) {
            (Found::Path(_), Some(cache)) => cache.offer(flows[place], decision, now),
            (Found::Stale, _) => stale.push((place, decision)),
            _ => {}
        };
        let all = self.settings.clock.is_none();
        self.store.find(all, key, &mut self.wanted, found);
    }

    /// Keeps the paths of packets that were watched.
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
        self.store.find(true, |_| words, &mut vec![0], found);
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
