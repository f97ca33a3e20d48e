//! [FTS25] Tables 1 and 2: the formulas, and simulations of the same quantities.
//!
//! [FTS25]: classyard::papers#fts25

use classyard::author::{fibonacci_hash, splitmix};
use classyard_datapath::lab::microflow::{MegaflowId, MicroflowCache};
use classyard_datapath::lab::sorted_tuples::{SortedTuples, TupleConfig};
use classyard_report::failure::Failure;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use super::formulas::{failed_of_many, hit_rate, miss_length, search_length};
use super::{percent, stream};
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Grid, Part, Section, Threshold};

/// Table 1: all flows in thousands, the ratio of activities, the number of cached flows,
/// and the paper's hit rates in percent, for its cache and for CuckooFlow.
const TABLE_1: [(f64, f64, f64, f64, f64); 12] = [
    (100.0, 0.9991, 2_000.0, 83.48, 76.32),
    (100.0, 0.9991, 2_200.0, 86.21, 79.49),
    (100.0, 0.9992, 2_000.0, 79.82, 72.21),
    (100.0, 0.9992, 2_200.0, 82.81, 75.55),
    (200.0, 0.9992, 2_200.0, 82.81, 75.55),
    (200.0, 0.9992, 2_400.0, 85.35, 78.48),
    (200.0, 0.9993, 2_200.0, 78.57, 70.84),
    (200.0, 0.9993, 2_400.0, 81.37, 73.93),
    (400.0, 0.9993, 2_400.0, 81.37, 73.93),
    (400.0, 0.9993, 2_600.0, 83.81, 76.69),
    (400.0, 0.9994, 2_400.0, 76.32, 68.41),
    (400.0, 0.9994, 2_600.0, 79.00, 71.30),
];

/// The share of CuckooFlow's entries that the paper assumes to be used.
const CUCKOO_USED: f64 = 0.8;

/// A row of Table 2.
struct Row {
    wef_hits: f64,
    cuckoo_hits: f64,
    /// The search lengths of FastTSS and of CuckooFlow, at α = 2 with r = 0.8 and 0.9,
    /// then at α = 4 with both.
    lengths: [(f64, f64); 4],
}

const TABLE_2: [Row; 4] = [
    Row {
        wef_hits: 0.7632,
        cuckoo_hits: 0.6841,
        lengths: [(3.36, 4.15), (5.73, 7.31), (5.49, 7.00), (10.23, 13.32)],
    },
    Row {
        wef_hits: 0.7900,
        cuckoo_hits: 0.7130,
        lengths: [(3.10, 3.87), (5.20, 6.74), (4.99, 6.45), (9.19, 12.19)],
    },
    Row {
        wef_hits: 0.8381,
        cuckoo_hits: 0.7669,
        lengths: [(2.61, 3.33), (4.23, 5.66), (4.07, 5.42), (7.31, 10.09)],
    },
    Row {
        wef_hits: 0.8621,
        cuckoo_hits: 0.7949,
        lengths: [(2.37, 3.05), (3.75, 5.10), (3.62, 4.89), (6.37, 8.99)],
    },
];

/// The values of α and r in the columns of Table 2.
const LOADS: [(f64, f64); 4] = [(2.0, 0.8), (2.0, 0.9), (4.0, 0.8), (4.0, 0.9)];

/// The number of simulated tuples, large enough that r^64 is nearly 0.
const TUPLE_COUNT: u32 = 64;

/// The greatest deviation of a simulation from a formula, as a share.
const MAX_DEVIATION: f64 = 0.1;

/// Draws the tables.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let packets = if study.args.quick { 200_000 } else { 1_000_000 };
    study.expect_points(TABLE_1.len() + LOADS.len());
    let (first, first_claims) = table_1(study, packets)?;
    let (second, second_claims) = table_2(study, packets)?;
    Ok(Section {
        title: "Hit rates and search lengths by formula (Tables 1 and 2, eqs. 1 to 8)".to_owned(),
        method: format!(
            "Formulas are evaluated, and held against what they describe. For Table 1 {packets} \
             packets are drawn independently, a flow with probability q times that of the flow \
             before it, and caches of n entries are measured after as many packets to fill them. \
             For Table 2 a tuple space of {TUPLE_COUNT} tuples with load factor α each is searched for \
             {packets} packets, drawn with probabilities of ratio r."
        ),
        claims: first_claims.into_iter().chain(second_claims).collect(),
        grids: vec![first, second],
        pictures: Vec::new(),
    })
}

fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Draws a number from 0 (included) to 1 (excluded).
#[allow(clippy::cast_precision_loss)] // 53 bits
fn unit(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Draws a place below `places`; each has `ratio` times the probability of the place
/// before.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // bounded by places
fn progression(random: &mut Xoshiro256PlusPlus, ratio: f64, places: f64) -> u64 {
    let point = unit(random) * (1.0 - ratio.powf(places));
    ((1.0 - point).ln() / ratio.ln()).clamp(0.0, places - 1.0) as u64
}

/// Hit rates of simulated caches.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct HitRates {
    ideal: f64,
    wef: f64,
    cuckoo: f64,
    adaptive: f64,
}

fn simulate_hits(flows: f64, q: f64, n: f64, packets: u32, seed: u64) -> HitRates {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a few thousand
    let entries = n as usize;
    let mut random = random(seed);
    let names = ["wef", "cuckoo", "adaptive"];
    let mut caches = names.map(|name| stream::kind(name, entries, seed));
    let (mut hits, mut ideal) = ([0_u32; 3], 0_u32);
    for packet in 0..2 * packets {
        let flow = progression(&mut random, q, flows);
        let now = u64::from(packet) * 8_000;
        let is_counted = packet >= packets;
        #[allow(clippy::cast_precision_loss)] // far below 2^52
        let is_ideal = (flow as f64) < n;
        ideal += u32::from(is_counted && is_ideal);
        let hash = splitmix(&mut flow.clone());
        let right = u32::try_from(flow).ok().and_then(MegaflowId::new);
        let right = right.expect("fewer than 2^32 flows");
        for (cache, hits) in caches.iter_mut().zip(&mut hits) {
            let is_hit = looked_up(&mut **cache, hash, right, now);
            *hits += u32::from(is_counted && is_hit);
        }
    }
    let rate = |hits: u32| f64::from(hits) / f64::from(packets);
    HitRates {
        ideal: rate(ideal),
        wef: rate(hits[0]),
        cuckoo: rate(hits[1]),
        adaptive: rate(hits[2]),
    }
}

/// Looks up a flow, and offers it to the cache after a miss.
fn looked_up(cache: &mut dyn MicroflowCache, flow: u64, right: MegaflowId, now: u64) -> bool {
    let mut decisions = [MegaflowId::NONE];
    cache.look_up(&[flow], now, &mut decisions);
    if decisions[0] == right {
        return true;
    }
    if decisions[0].is_some() {
        cache.forget(flow, decisions[0]);
    }
    cache.offer(flow, right, now);
    false
}

/// The greatest difference between a formula and a value printed with two decimal places,
/// which may have been cut instead of rounded.
const PRINTED_DIFFERENCE: f64 = 0.011;

fn table_1(study: &mut Study<'_>, packets: u32) -> Result<(Grid, Vec<Claim>), Failure> {
    let (mut table, mut rows) = (Vec::new(), Vec::new());
    let [mut printed, mut ideal, mut held] = [(); 3].map(|()| Vec::new());
    for (thousands, q, n, of_wef, of_cuckoo) in TABLE_1 {
        let flows = thousands * 1_000.0;
        let ours = hit_rate(flows, q, n);
        let cuckoo = hit_rate(flows, q, n * CUCKOO_USED);
        let point = format!("hit rates N {thousands}K q {q} n {n}");
        let measured: HitRates = study.point(&point, |study| {
            Ok(simulate_hits(flows, q, n, packets, study.args.seed))
        })?;
        let off = |ours: f64, paper: f64| (ours * 100.0 - paper).abs();
        let name = format!("N {thousands}K, q {q}, n {n}");
        let off = off(ours, of_wef).max(off(cuckoo, of_cuckoo));
        printed.push(Case::exact(&name, off));
        ideal.push(Case::exact(&name, measured.ideal / ours));
        held.push(Case::exact(name, measured.wef / ours));
        rows.push(format!(
            "{thousands},{q},{n},{ours:.4},{cuckoo:.4},{:.4},{:.4},{:.4},{:.4}",
            measured.ideal, measured.wef, measured.cuckoo, measured.adaptive
        ));
        table.push(vec![
            format!("{thousands}K"),
            q.to_string(),
            format!("{:.1}K", n / 1_000.0),
            format!("{of_wef} %"),
            format!("{:.2} %", ours * 100.0),
            format!("{of_cuckoo} %"),
            format!("{:.2} %", cuckoo * 100.0),
            percent(measured.ideal),
            percent(measured.wef),
            percent(measured.cuckoo),
            percent(measured.adaptive),
        ]);
    }
    let heading = "thousand_flows,q,n,eq2,eq2_cuckoo,ideal,wef,cuckoo,adaptive";
    study.write_csv("hit-rate-formula.csv", heading, &rows)?;
    let grid = Grid {
        title: "Table 1: hit rates by eq. 2, and of caches with n entries".to_owned(),
        columns: [
            "N",
            "q",
            "n",
            "wef, paper",
            "eq. 2",
            "cuckoo, paper",
            "eq. 2, 0.8 n",
            "the n most active",
            "wef",
            "cuckoo",
            "adaptive",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 0,
        rows: table,
    };
    let claims = vec![
        Claim::new(
            "Table 1",
            "Hit rates by eq. 2 for twelve combinations of N, q and n.",
        )
        .part(
            Part::new(
                "percentage points between eq. 2 and the printed rate",
                Threshold::Below(PRINTED_DIFFERENCE),
            )
            .cases(printed)
            .grid("Table 1", ""),
        )
        .part(
            Part::new(
                "hit rate of the n most active flows / eq. 2",
                Threshold::Within(0.99, 1.01),
            )
            .cases(ideal)
            .grid("Table 1", ""),
        ),
        Claim::new(
            "§4.2.4",
            "The cache holds the n most active flows, so eq. 2 is its hit rate.",
        )
        .part(
            Part::new(
                "hit rate of wef / eq. 2, independent packets",
                Threshold::AtLeast(1.0 - MAX_DEVIATION),
            )
            .paper(1.0)
            .cases(held)
            .grid("Table 1", ""),
        ),
    ];
    Ok((grid, claims))
}

/// Simulates a tuple space with equal load factors. Returns the mean numbers of failed
/// tuple lookups and of compared entries.
fn simulate_search(load: f64, r: f64, packets: u32, seed: u64) -> (f64, f64) {
    let mut random = random(seed);
    let mut space: SortedTuples<2> = SortedTuples::new(TupleConfig::default());
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a few thousand
    let entries = (load * 512.0) as u64;
    let mask = |tuple: u64| [u64::MAX, 1_u64 << tuple];
    // The word with the mask identifies the tuple; the other word is pseudorandom.
    let key = |tuple: u64, entry: u64| {
        let name = fibonacci_hash(tuple << 32 | entry);
        [name, 1_u64 << tuple]
    };
    // Creates the tuples in an order that is independent of their use.
    let shuffled = |tuple: u64| (tuple * 37 + 11) % u64::from(TUPLE_COUNT);
    for tuple in 0..u64::from(TUPLE_COUNT) {
        let tuple = shuffled(tuple);
        for entry in 0..entries {
            space.insert(&mask(tuple), &key(tuple, entry), 0);
        }
    }
    let (mut failed, mut length) = (0_u64, 0_u64);
    for packet in 0..packets + packets / 4 {
        let tuple = progression(&mut random, r, f64::from(TUPLE_COUNT));
        let search = space.look_up(&key(tuple, random.next_u64() % entries));
        // The first packets sort the tuples.
        if packet >= packets / 4 {
            failed += search.failed as u64;
            length += search.length as u64;
        }
        space.reference(search.failed);
    }
    let mean = |sum: u64| super::many(sum) / f64::from(packets);
    (mean(failed), mean(length))
}

fn table_2(study: &mut Study<'_>, packets: u32) -> Result<(Grid, Vec<Claim>), Failure> {
    let mut simulated = Vec::new();
    for (load, r) in LOADS {
        let point = format!("search length α {load} r {r}");
        let (_, length): (f64, f64) = study.point(&point, |study| {
            Ok(simulate_search(load, r, packets, study.args.seed))
        })?;
        simulated.push(1.0 + length);
    }
    let (mut table, mut rows) = (Vec::new(), Vec::new());
    let [mut printed, mut simulated_cases, mut faster] = [(); 3].map(|()| Vec::new());
    for row in TABLE_2 {
        let (of_wef, of_cuckoo) = (row.wef_hits, row.cuckoo_hits);
        for (((load, r), paper), &measured) in LOADS.iter().zip(row.lengths).zip(&simulated) {
            let miss = miss_length(failed_of_many(*r), *load);
            let ours = [of_wef, of_cuckoo].map(|hits| search_length(hits, miss));
            let by_simulation = [of_wef, of_cuckoo].map(|hits| search_length(hits, measured));
            let name = format!("α {load}, r {r}, wef {}", percent(of_wef));
            let off = (ours[0] - paper.0).abs().max((ours[1] - paper.1).abs());
            printed.push(Case::exact(&name, off));
            simulated_cases.push(Case::exact(&name, by_simulation[0] / ours[0]));
            let speedup = by_simulation[1] / by_simulation[0];
            faster.push(Case::exact(name, speedup));
            rows.push(format!(
                "{load},{r},{of_wef},{of_cuckoo},{:.3},{:.3},{:.3},{:.3}",
                ours[0], ours[1], by_simulation[0], by_simulation[1]
            ));
            table.push(vec![
                load.to_string(),
                r.to_string(),
                percent(of_wef),
                percent(of_cuckoo),
                paper.0.to_string(),
                format!("{:.2}", ours[0]),
                format!("{:.2}", by_simulation[0]),
                paper.1.to_string(),
                format!("{:.2}", ours[1]),
                format!("{:.2}", by_simulation[1]),
                format!("{speedup:.2}"),
            ]);
        }
    }
    let heading = "alpha,r,wef_hits,cuckoo_hits,fasttss_eq8,cuckooflow_eq8,fasttss_simulated,\
                   cuckooflow_simulated";
    study.write_csv("search-length-formula.csv", heading, &rows)?;
    let grid = Grid {
        title: "Table 2: average search lengths by eq. 8, and with a simulated tuple space"
            .to_owned(),
        columns: [
            "α",
            "r",
            "wef hits",
            "cuckoo hits",
            "FastTSS, paper",
            "eq. 8",
            "simulated",
            "CuckooFlow, paper",
            "eq. 8",
            "simulated",
            "speedup",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 0,
        rows: table,
    };
    let claims = vec![
        Claim::new(
            "Table 2",
            "Average search lengths by eq. 8 for sixteen combinations of α, r and hit rates.",
        )
        .part(
            Part::new(
                "difference between eq. 8 and the printed length",
                Threshold::Below(PRINTED_DIFFERENCE),
            )
            .cases(printed)
            .grid("Table 2", ""),
        ),
        Claim::new(
            "eqs. 6 to 8",
            "The formulas give the search length of a sorted tuple space.",
        )
        .part(
            Part::new(
                "search length, simulated / eq. 8",
                Threshold::Within(1.0 - MAX_DEVIATION, 1.0 + MAX_DEVIATION),
            )
            .paper(1.0)
            .cases(simulated_cases)
            .grid("Table 2", ""),
        ),
        Claim::new(
            "Table 2",
            "FastTSS searches at least 1.2 times as short as CuckooFlow.",
        )
        .part(
            Part::new(
                "search length, CuckooFlow / FastTSS, simulated",
                Threshold::AtLeast(1.2),
            )
            .paper(1.2)
            .cases(faster)
            .grid("Table 2", ""),
        ),
    ];
    Ok((grid, claims))
}
