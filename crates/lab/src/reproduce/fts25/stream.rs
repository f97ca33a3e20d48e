//! One pass over a trace, through all caches and tuple spaces together.

use std::collections::{HashMap, HashSet};

use classyard::author::splitmix;
use classyard_datapath::lab::microflow::active::ActiveConfig;
use classyard_datapath::lab::microflow::cuckoo::Cuckoo;
use classyard_datapath::lab::microflow::emc::{Emc, EmcConfig};
use classyard_datapath::lab::microflow::latest::Recorded;
use classyard_datapath::lab::microflow::wef::Wef;
use classyard_datapath::lab::microflow::{KINDS, MegaflowId, MicroflowCache};
use classyard_datapath::lab::sorted_tuples::{SortedTuples, TupleConfig};
use classyard_report::failure::Failure;
use classyard_workload::traffic::locality::LocalityPacket;
use serde::{Deserialize, Serialize};

use super::{CACHE_FLOWS, IDLE_TIMEOUT_NS, THRESHOLD_MS, Trace};

/// Cache sizes of Fig. 10, and two larger ones.
pub(super) const SIZES: [usize; 8] = [1_024, 2_048, 4_096, 6_144, 8_192, 10_240, 12_288, 16_384];

/// Thresholds of Fig. 11, in ms.
pub(super) const THRESHOLDS: [u64; 9] = [8, 16, 32, 64, 128, 256, 512, 1_024, 4_096];

/// Sizes for the comparison of all kinds.
pub(super) const KIND_SIZES: [usize; 5] = [1_024, 2_048, 4_096, 8_192, 16_384];

/// Bytes for the comparison of caches.
pub(super) const BYTES: [usize; 6] = [8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];

/// The idle timeout of flow entries, in nanoseconds.
const ENTRY_TIMEOUT_NS: u64 = 10_000_000_000;

/// The number of buckets of a tuple, 2^9 as in the paper.
const BUCKETS_PER_TUPLE: f64 = 512.0;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Measured values of a trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) packets: u64,
    pub(super) seconds: f64,
    /// Wildcarding flows at the end of each second.
    pub(super) wildcarding: Vec<usize>,
    pub(super) caches: Vec<CacheOutcome>,
    pub(super) schemes: Vec<SchemeOutcome>,
}

/// The results of a cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CacheOutcome {
    /// The comparison for which it was measured.
    pub(super) of: Comparison,
    pub(super) name: String,
    /// The varied quantity of the comparison: flows, milliseconds or bytes.
    pub(super) x: usize,
    pub(super) hit_rate: f64,
    /// The number of cached flows, as a mean over seconds.
    pub(super) used: f64,
    pub(super) bytes: usize,
}

/// A comparison of caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Comparison {
    /// The paper's cache by its size (Fig. 10).
    Size,
    /// The paper's cache by its threshold (Fig. 11).
    Threshold,
    /// Schemes as the paper configures them (Fig. 12); x is the number of flows.
    Scheme,
    /// Buckets of 1, 2 and 4 entries; x is the number of entries.
    Ways,
    /// All kinds by size, with default settings.
    Kind,
    /// All kinds by bytes, with default settings.
    Bytes,
}

/// The results of a cache with a tuple space.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SchemeOutcome {
    pub(super) name: String,
    pub(super) is_sorted: bool,
    pub(super) hits: u64,
    /// Packets that searched the tuple space and found an entry there.
    pub(super) found: u64,
    /// Failed tuple lookups of these packets, and the entries that they compared.
    pub(super) failed: u64,
    pub(super) length: u64,
    /// Packets that searched the tuple space, including first packets of wildcarding
    /// flows; and the entries that they compared.
    pub(super) searches: u64,
    pub(super) length_of_all: u64,
    /// The number of references of each tuple, in the tuples' order at the end.
    pub(super) references: Vec<u64>,
    /// The load factor, as a mean over tuples and found packets.
    pub(super) load: f64,
    /// The load factor of each tuple at the end.
    pub(super) loads: Vec<f64>,
}

impl SchemeOutcome {
    /// Returns the mean number of failed tuple lookups of a found packet.
    pub(super) fn mean_failed(&self) -> f64 {
        super::many(self.failed) / super::many(self.found.max(1))
    }

    /// Returns the mean search length of a found packet.
    pub(super) fn mean_length(&self) -> f64 {
        super::many(self.length) / super::many(self.found.max(1))
    }

    pub(super) fn hit_rate(&self) -> f64 {
        super::many(self.hits) / super::many((self.hits + self.searches).max(1))
    }

    /// Returns the hit rate over packets that have an entry: all packets except the first
    /// of each wildcarding flow. [`average_of_found`](Self::average_of_found) is their
    /// search length.
    pub(super) fn hit_rate_of_found(&self) -> f64 {
        super::many(self.hits) / super::many((self.hits + self.found).max(1))
    }

    pub(super) fn average_of_found(&self) -> f64 {
        let packets = super::many((self.hits + self.found).max(1));
        1.0 + super::many(self.length) / packets
    }

    /// Returns the average search length: 1 in the cache, plus the length in the tuple
    /// space after misses.
    pub(super) fn average(&self) -> f64 {
        let packets = super::many((self.hits + self.searches).max(1));
        1.0 + super::many(self.length_of_all) / packets
    }
}

/// A measured cache.
struct Measured {
    outcome: CacheOutcome,
    cache: Box<dyn MicroflowCache>,
    hits: u64,
    used: Vec<usize>,
}

/// A measured cache with a tuple space.
struct Scheme {
    outcome: SchemeOutcome,
    cache: Option<Box<dyn MicroflowCache>>,
    tuples: SortedTuples<2>,
    /// The sum over found packets of the load factor, each a mean over tuples.
    load: f64,
}

/// A wildcarding flow: a flow entry.
struct FlowEntry {
    mask: [u64; 2],
    key: [u64; 2],
    latest: u64,
}

/// The latest packets that the paper's caches of active flows record. The paper stores one
/// in each flow entry, so there is room for one per decision.
const LATEST_PACKETS: usize = 1 << 18;

/// Returns the settings of the paper's cache of active flows, by Alg. 1: each flow entry
/// stores its latest packet.
pub(super) fn active(flows: usize, threshold_ms: u64) -> ActiveConfig {
    ActiveConfig {
        threshold_ns: Some(threshold_ms * 1_000_000),
        timeout_ns: IDLE_TIMEOUT_NS,
        latest: LATEST_PACKETS,
        recorded: Recorded::Decisions,
        ..ActiveConfig::new(flows)
    }
}

/// Returns these settings by §4.2.2: the latest packet of each flow is recorded, as in a
/// switch.
fn by_flow(flows: usize, threshold_ms: u64) -> ActiveConfig {
    ActiveConfig {
        recorded: Recorded::Flows,
        ..active(flows, threshold_ms)
    }
}

/// The names of the caches of active flows by Alg. 1, and by §4.2.2.
pub(super) const WEF_ALGORITHM_1: &str = "wef, Alg. 1";
pub(super) const CUCKOO_ALGORITHM_1: &str = "cuckoo, Alg. 1";
pub(super) const WEF: &str = "wef";
pub(super) const CUCKOO: &str = "cuckoo";
/// The name of the cache by Alg. 1 without the bytes of latest packets.
pub(super) const WEF_WITHOUT_LATEST: &str = "wef, Alg. 1, without latest packets";

fn caches(seed: u64) -> Vec<Measured> {
    let mut measured_caches = Vec::new();
    let mut add = |of, name: &str, x: usize, cache: Box<dyn MicroflowCache>| {
        let outcome = CacheOutcome {
            of,
            name: name.to_owned(),
            x,
            hit_rate: 0.0,
            used: 0.0,
            bytes: cache.usage().bytes,
        };
        measured_caches.push(Measured {
            outcome,
            cache,
            hits: 0,
            used: Vec::new(),
        });
    };
    let wef = |config: &ActiveConfig| Box::new(Wef::<4>::new(config, seed));
    for size in SIZES {
        add(
            Comparison::Size,
            WEF_ALGORITHM_1,
            size,
            wef(&active(size, THRESHOLD_MS)),
        );
    }
    for threshold in THRESHOLDS {
        let x = usize::try_from(threshold).expect("a few thousand");
        add(
            Comparison::Threshold,
            WEF_ALGORITHM_1,
            x,
            wef(&active(CACHE_FLOWS, threshold)),
        );
    }
    let tuned = ActiveConfig {
        threshold_ns: None,
        ..active(CACHE_FLOWS, THRESHOLD_MS)
    };
    add(Comparison::Threshold, "wef, Alg. 1, tuned", 0, wef(&tuned));
    let paper = active(CACHE_FLOWS, THRESHOLD_MS);
    let cuckoo = |config: &ActiveConfig| Box::new(Cuckoo::<4>::new(config, seed));
    let emc = |one_in| {
        let config = EmcConfig {
            one_in,
            ..EmcConfig::new(CACHE_FLOWS)
        };
        Box::new(Emc::new(&config, seed))
    };
    let flows = by_flow(CACHE_FLOWS, THRESHOLD_MS);
    for (name, cache) in [
        (WEF_ALGORITHM_1, wef(&paper) as Box<dyn MicroflowCache>),
        (CUCKOO_ALGORITHM_1, cuckoo(&paper)),
        (WEF, wef(&flows)),
        (CUCKOO, cuckoo(&flows)),
    ] {
        add(Comparison::Scheme, name, CACHE_FLOWS, cache);
    }
    add(Comparison::Scheme, "emc, all flows", CACHE_FLOWS, emc(1));
    add(Comparison::Scheme, "emc", CACHE_FLOWS, emc(100));
    for name in ["heavy-hitter", "adaptive"] {
        add(
            Comparison::Scheme,
            name,
            CACHE_FLOWS,
            kind(name, CACHE_FLOWS, seed),
        );
    }
    add(
        Comparison::Ways,
        WEF_ALGORITHM_1,
        1,
        Box::new(Wef::<1>::new(&paper, seed)),
    );
    add(
        Comparison::Ways,
        WEF_ALGORITHM_1,
        2,
        Box::new(Wef::<2>::new(&paper, seed)),
    );
    add(Comparison::Ways, WEF_ALGORITHM_1, 4, wef(&paper));
    add(
        Comparison::Ways,
        CUCKOO_ALGORITHM_1,
        1,
        Box::new(Cuckoo::<1>::new(&paper, seed)),
    );
    add(
        Comparison::Ways,
        CUCKOO_ALGORITHM_1,
        2,
        Box::new(Cuckoo::<2>::new(&paper, seed)),
    );
    add(Comparison::Ways, CUCKOO_ALGORITHM_1, 4, cuckoo(&paper));
    for kind in KINDS {
        for size in KIND_SIZES {
            add(Comparison::Kind, kind.name, size, (kind.build)(size, seed));
        }
        let bytes_of = |flows| (kind.build)(flows, seed).usage().bytes;
        for bytes in BYTES {
            // Searches the greatest number of flows that fits into these bytes: every
            // cache needs more than 4 bytes a flow.
            let (mut fits, mut too_many) = (16, bytes / 4);
            while too_many - fits > 1 {
                let middle = usize::midpoint(fits, too_many);
                match bytes_of(middle) <= bytes {
                    true => fits = middle,
                    false => too_many = middle,
                }
            }
            add(
                Comparison::Bytes,
                kind.name,
                bytes,
                (kind.build)(fits, seed),
            );
        }
    }
    // Compares wef again without the bytes of the table of latest packets, which the paper
    // stores in flow entries.
    for bytes in BYTES {
        let config = ActiveConfig {
            latest: LATEST_PACKETS,
            recorded: Recorded::Decisions,
            ..ActiveConfig::new(bytes / 12)
        };
        let name = WEF_WITHOUT_LATEST;
        add(Comparison::Bytes, name, bytes, wef(&config));
    }
    measured_caches
}

/// Creates a cache of a registered kind.
pub(super) fn kind(name: &str, flows: usize, seed: u64) -> Box<dyn MicroflowCache> {
    let kind = KINDS.iter().find(|kind| kind.name == name);
    (kind.expect("a registered kind").build)(flows, seed)
}

fn schemes(seed: u64) -> Vec<Scheme> {
    let paper = active(CACHE_FLOWS, THRESHOLD_MS);
    let flows = by_flow(CACHE_FLOWS, THRESHOLD_MS);
    let scheme = |name: &str, is_sorted, cache: Option<Box<dyn MicroflowCache>>| Scheme {
        outcome: SchemeOutcome {
            name: name.to_owned(),
            is_sorted,
            hits: 0,
            found: 0,
            failed: 0,
            length: 0,
            searches: 0,
            length_of_all: 0,
            references: Vec::new(),
            load: 0.0,
            loads: Vec::new(),
        },
        cache,
        tuples: SortedTuples::new(TupleConfig {
            is_sorted,
            ..TupleConfig::default()
        }),
        load: 0.0,
    };
    let wef = || -> Option<Box<dyn MicroflowCache>> { Some(Box::new(Wef::<4>::new(&paper, seed))) };
    let emc = |one_in| -> Option<Box<dyn MicroflowCache>> {
        let config = EmcConfig {
            one_in,
            ..EmcConfig::new(CACHE_FLOWS)
        };
        Some(Box::new(Emc::new(&config, seed)))
    };
    vec![
        scheme("FastTSS", true, wef()),
        scheme(
            "CuckooFlow",
            false,
            Some(Box::new(Cuckoo::<4>::new(&paper, seed))),
        ),
        scheme("Open vSwitch", false, emc(100)),
        scheme("Open vSwitch, all flows", false, emc(1)),
        scheme("wef, unsorted", false, wef()),
        scheme(
            "FastTSS, by flow",
            true,
            Some(Box::new(Wef::<4>::new(&flows, seed))),
        ),
        scheme(
            "adaptive, sorted",
            true,
            Some(kind("adaptive", CACHE_FLOWS, seed)),
        ),
        scheme(
            "adaptive, unsorted",
            false,
            Some(kind("adaptive", CACHE_FLOWS, seed)),
        ),
        scheme("no cache, sorted", true, None),
        scheme("no cache, unsorted", false, None),
    ]
}

/// Mixes a flow's number so that each bit of the result depends on all its bits.
fn hash(flow: u64, seed: u64) -> u64 {
    splitmix(&mut flow.wrapping_add(seed))
}

/// True if a cache has the right decision for a flow; a wrong decision is removed.
fn hits(cache: &mut dyn MicroflowCache, flow: u64, right: MegaflowId, now: u64) -> bool {
    let mut decisions = [MegaflowId::NONE];
    cache.look_up(&[flow], now, &mut decisions);
    if decisions[0] == right {
        return true;
    }
    if decisions[0].is_some() {
        cache.forget(flow, decisions[0]);
    }
    false
}

/// Sends generated packets through all caches and schemes.
pub(super) fn measure(trace: &Trace, packets: usize, seed: u64) -> Result<Outcome, Failure> {
    let stream = trace.model.packets(seed);
    let stream = stream.map_err(|error| Failure::usage(error.to_string()))?;
    Ok(measure_packets(stream.take(packets), seed))
}

/// Sends packets, whose times never decrease, through all caches and schemes.
pub(super) fn measure_packets(packets: impl Iterator<Item = LocalityPacket>, seed: u64) -> Outcome {
    let mut caches = caches(seed);
    let mut schemes = schemes(seed);
    let mut known: HashMap<[u64; 2], u32> = HashMap::new();
    let mut entries: Vec<FlowEntry> = Vec::new();
    let mut free: Vec<u32> = Vec::new();
    let mut wildcarding = Vec::new();
    let mut masks: HashSet<[u64; 2]> = HashSet::new();
    let (mut next_second, mut now) = (NS_PER_SECOND, 0);
    let mut count = 0;
    for packet in packets {
        count += 1;
        now = packet.time;
        while now >= next_second {
            expire(
                next_second,
                &mut known,
                &mut entries,
                &mut free,
                &mut schemes,
            );
            wildcarding.push(known.len());
            for one in &mut caches {
                one.used.push(one.cache.usage().used);
            }
            next_second += NS_PER_SECOND;
        }
        let (words, mask) = (packet.header.words(), packet.header.class_mask());
        let key = [words[0] & mask[0], words[1] & mask[1]];
        let mut is_new = false;
        let entry = *known.entry(key).or_insert_with(|| {
            is_new = true;
            free.pop().unwrap_or_else(|| {
                let number = u32::try_from(entries.len()).expect("far fewer flows");
                entries.push(FlowEntry {
                    mask,
                    key,
                    latest: 0,
                });
                number
            })
        });
        entries[entry as usize] = FlowEntry {
            mask,
            key,
            latest: now,
        };
        let flow = hash(packet.flow, seed);
        let right = MegaflowId::new(entry).expect("far fewer flows");
        for one in &mut caches {
            match hits(&mut *one.cache, flow, right, now) {
                true => one.hits += 1,
                false => {
                    one.cache.offer(flow, right, now);
                }
            }
        }
        masks.insert(mask);
        let load = known.len() as f64 / (BUCKETS_PER_TUPLE * masks.len() as f64);
        for scheme in &mut schemes {
            scheme.packet(&words, flow, right, now, load);
            if is_new {
                scheme.tuples.insert(&mask, &words, entry);
            }
        }
    }
    let caches = caches.into_iter().map(|one| {
        let used: usize = one.used.iter().sum();
        CacheOutcome {
            hit_rate: super::many(one.hits) / super::many(count.max(1)),
            used: super::many(used as u64) / super::many(one.used.len().max(1) as u64),
            ..one.outcome
        }
    });
    let schemes = schemes.into_iter().map(|scheme| {
        let tuples = || scheme.tuples.tuples();
        let outcome = scheme.outcome;
        SchemeOutcome {
            references: tuples().map(|tuple| tuple.references).collect(),
            load: scheme.load / super::many(outcome.found.max(1)),
            loads: tuples().map(|tuple| tuple.load_factor).collect(),
            ..outcome
        }
    });
    Outcome {
        packets: count,
        seconds: super::many(now) / 1e9,
        wildcarding,
        caches: caches.collect(),
        schemes: schemes.collect(),
    }
}

impl Scheme {
    fn packet(&mut self, words: &[u64; 2], flow: u64, right: MegaflowId, now: u64, load: f64) {
        if let Some(cache) = &mut self.cache
            && hits(&mut **cache, flow, right, now)
        {
            self.outcome.hits += 1;
            return;
        }
        let cache = self.cache.as_mut();
        let is_admitted = cache.is_some_and(|cache| cache.offer(flow, right, now));
        let search = self.tuples.look_up(words);
        self.outcome.searches += 1;
        self.outcome.length_of_all += search.length as u64;
        if search.value.is_some() {
            self.outcome.found += 1;
            self.outcome.failed += search.failed as u64;
            self.outcome.length += search.length as u64;
            self.load += load;
            // Alg. 1 updates metrics only for packets whose flows do not enter the cache.
            match is_admitted {
                true => self.tuples.count(search.failed),
                false => self.tuples.reference(search.failed),
            }
        }
    }
}

/// Removes flow entries that have been idle for longer than the timeout.
fn expire(
    now: u64,
    known: &mut HashMap<[u64; 2], u32>,
    entries: &mut [FlowEntry],
    free: &mut Vec<u32>,
    schemes: &mut [Scheme],
) {
    known.retain(|_, &mut number| {
        let entry = &entries[number as usize];
        let stays = entry.latest + ENTRY_TIMEOUT_NS >= now;
        if !stays {
            free.push(number);
            for scheme in &mut *schemes {
                scheme.tuples.remove(&entry.mask, &entry.key);
            }
        }
        stays
    });
    // Makes the order reproducible: the iteration order of a hash map is random.
    free.sort_unstable_by(|a, b| b.cmp(a));
}
