//! Flow caches before the tables: each worker has its own caches.
//!
//! ```text
//! vector ─▶ microflows ─▶ megaflows ─▶ tables ─┐
//!             │ hit         │ hit        recorded: path, mask
//!             ▼             ▼                  │
//!           paths: actions of all entries ◀────┘ for later packets
//! ```
//! The misses of a level are looked up together in the next level. The answer of a
//! microflow cache is a megaflow. It is used only if the megaflow covers the packet.
//!
//! Packets that miss all levels pass the tables. Packets of flows seen recently and a
//! sample of the other packets are recorded there, and their paths are cached
//! ([`misses`](super::misses)). Before a vector is looked up, the caches apply all changes
//! of entries ([`follow`](super::follow)).

use std::time::Duration;

use super::flow_hash::flow_of;
use super::learn::Learner;
use super::program::{Operations, Program};
use super::seen::SeenFlows;
use super::selector::{CacheSelector, Levels, Outcome, Parts};
use super::settings::CacheSettings;
use super::status::{CacheAnswer, CacheStatus, Megaflow};
use crate::cache::entry_paths::PathId;
use crate::cache::microflow::{CachedDecision, Kind, MicroflowCache};
use crate::cache::store::{Bounds, Found, Store, StoreCounts};
use crate::flow::TableId;
use crate::packet::Packet;
use crate::pipeline::run::actions::NO_TABLE;
use crate::pipeline::run::observer::{Node, Observer};
use crate::pipeline::run::side::Side;
use crate::pipeline::run::tally::{Tally, nanoseconds};
use crate::pipeline::run::vector::Vector;

/// The path of a packet that misses all caches.
const UNKNOWN: PathId = PathId(u32::MAX);

/// Approximate time to probe the megaflows of one mask for a packet, in nanoseconds.
const PROBE_NS: f64 = 25.0;

/// Vectors between two calls of [`Store::tick`], which sorts the masks.
const TICK_VECTORS: u32 = 256;

/// The caches of a worker.
pub(in crate::pipeline) struct Caches {
    pub(super) settings: CacheSettings,
    pub(super) microflows: Option<Box<dyn MicroflowCache>>,
    pub(super) store: Store<Program>,
    /// The number of entry changes that were applied to the caches.
    pub(super) followed: u64,
    pub(super) learner: Learner,
    pub(super) operations: Operations,
    pub(super) seen: SeenFlows,
    pub(super) secrets: [u64; 2],
    vectors: u32,
    selector: CacheSelector,
    pub(super) status: CacheStatus,
    pub(super) lookup: Lookup,
}

/// The lookup of one vector. Packets are given by their index in it.
#[derive(Default)]
pub(super) struct Lookup {
    /// The packets whose ports receive.
    received: Vec<usize>,
    /// For each packet: the hash of its flow, its decision in the microflow cache,
    /// and its path.
    pub(super) flows: Vec<u64>,
    decisions: Vec<CachedDecision>,
    paths: Vec<PathId>,
    /// The packets with a decision.
    decided: Vec<(usize, CachedDecision)>,
    /// The packets that missed so far.
    pub(super) misses: Vec<usize>,
    /// The packets whose megaflows are stale.
    pub(super) stale: Vec<(usize, CachedDecision)>,
    /// The misses that are recorded.
    pub(super) to_record: Vec<usize>,
}

impl Lookup {
    /// Begins the lookup of a vector.
    fn begin<O: Observer + ?Sized>(&mut self, vector: &Vector<'_, O>) {
        let packet_count = vector.packets.len();
        self.received.clear();
        let received = (0..packet_count).filter(|&packet_index| vector.is_received(packet_index));
        self.received.extend(received);
        self.flows.clear();
        self.flows.resize(packet_count, 0);
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
        let build =
            |(kind, flows): (Kind, usize)| (kind.build)(flows, seed ^ 0x6d69_6372_6f66_6c6f);
        Caches {
            microflows: settings.microflows.map(build),
            store: Store::new(bounds, settings.finder.spec(), seed),
            followed: 0,
            learner: Learner::default(),
            operations: Operations::default(),
            seen: SeenFlows::new(),
            secrets: [
                seed ^ 0xa076_1d64_78bd_642f,
                seed.rotate_left(17) ^ 0xe703_7ed1_a0b4_28db,
            ],
            vectors: 0,
            selector: CacheSelector::new(levels, settings.clock),
            status: CacheStatus::default(),
            settings,
            lookup: Lookup::default(),
        }
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
            narrowed,
            revalidations: eras,
            ..self.status
        }
    }

    /// Processes a vector: looks its packets up in the levels that the selector chooses,
    /// runs the programs of hits, and passes the other packets to the tables.
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
        let followed = self.selector.time();
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
        let looked_up = self.selector.time();
        if megaflows && !self.lookup.misses.is_empty() {
            self.look_up_megaflows(vector, microflows);
        }
        let searched = self.selector.time();
        let hits = self.run_paths(vector);
        let first_level_done = looked_up.filter(|_| microflows).or(searched);
        let mut outcome = Outcome {
            packets: vector.packets.len(),
            hits,
            took: Parts {
                upkeep: between(begun, followed),
                asking: between(followed, first_level_done),
                hits: between(searched, self.selector.time()),
            },
            ..Outcome::default()
        };
        // Packets also wait for tables if their paths ended early.
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
            flows,
            decisions,
            paths,
            decided,
            misses,
            stale,
            ..
        } = &mut self.lookup;
        for &packet_index in &*received {
            flows[packet_index] = flow_of(packets[packet_index].key().words(), self.secrets);
        }
        // Packets that are not received have flow 0, and their decisions are ignored.
        decisions.clear();
        decisions.resize(packets.len(), CachedDecision::NONE);
        cache.look_up(flows, vector.nanoseconds, decisions);
        self.status.microflow_lookups += received.len() as u64;
        decided.clear();
        for &packet_index in &*received {
            match decisions[packet_index] {
                decision if decision.is_some() => decided.push((packet_index, decision)),
                _ => misses.push(packet_index),
            }
        }
        let key = |packet_index: usize| packets[packet_index].key().words();
        let take_result = |packet_index: usize, decision, result| match result {
            Found::Path(path) => {
                paths[packet_index] = path;
                self.status.microflow_hits += 1;
            }
            Found::Stale => stale.push((packet_index, decision)),
            Found::Nothing => {
                cache.forget(flows[packet_index], decision);
                self.status.microflow_wrong += 1;
                misses.push(packet_index);
            }
        };
        self.store.check_all(decided, key, take_result);
        vector.observer.node(Node::Microflows, received.len());
    }

    /// Looks up the packets that missed so far among the megaflows. If `offer` is true,
    /// offers the hits to the microflow cache.
    fn look_up_megaflows<O: Observer + ?Sized>(&mut self, vector: &mut Vector<'_, O>, offer: bool) {
        let packets = &*vector.packets;
        let Lookup {
            flows,
            paths,
            misses,
            stale,
            ..
        } = &mut self.lookup;
        let looked_up = misses.len();
        let mut covered = 0;
        let mut cache = self.microflows.as_mut().filter(|_| offer);
        let key = |packet_index: usize| packets[packet_index].key().words();
        let take_result = |packet_index: usize, decision, result| match result {
            Found::Path(path) => {
                paths[packet_index] = path;
                covered += 1;
                if let Some(cache) = &mut cache {
                    cache.offer(flows[packet_index], decision, vector.nanoseconds);
                }
            }
            Found::Stale => stale.push((packet_index, decision)),
            Found::Nothing => {}
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

    /// Returns the caches' answer for a packet.
    pub(in crate::pipeline) fn ask(
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
        let take_result = |_, covering, result| {
            if let Found::Path(_) = result {
                decision = Some(covering);
            }
        };
        self.store.find(true, |_| words, &mut vec![0], take_result);
        let megaflow = decision.and_then(|decision| self.store.megaflow(decision));
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
        }
    }
}

/// Returns the time between two readings of the clock, or 0 without a clock.
fn between(from: Option<Duration>, to: Option<Duration>) -> Duration {
    let times = from.zip(to);
    times.map_or(Duration::ZERO, |(from, to)| to.saturating_sub(from))
}
