//! [TM19] Fig. 12: times of single packets, and of packets in vectors.
//!
//! [TM19]: classyard::papers#tm19

use std::sync::Arc;

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use classyard_workload::generate::Profile;
use serde::{Deserialize, Serialize};

use super::super::coverage::Coverage;
use super::frames::Traffic;
use super::measure::engines;
use super::runner::{VectorTime, clock_cost};
use super::{
    CONTENDERS, ENGINES, LINEAR_SEARCH, SYNTHETIC_TRAFFIC, TUPLE_MERGE, TUPLE_SPACE,
    VECTOR_PACKETS, WORKLOADS,
};
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::quantile;

/// The paper's profile and numbers of rules, and the numbers of a quick reproduction.
const PROFILE: &str = "acl1";
const SIZES: [usize; 4] = [1_000, 2_000, 4_000, 8_000];
const FEW_SIZES: [usize; 2] = [1_000, 4_000];

/// Turns of each engine, and seconds of a turn with vectors and with single packets.
const TURN_COUNT: usize = 10;
const TURN_SECONDS: f64 = 0.1;
const SINGLE_TURN_SECONDS: f64 = 0.03;

/// Turns of a quick reproduction, and their seconds. An interval of a claim needs five turns.
const FEW_TURNS: usize = 5;
const SHORT_TURN_SECONDS: f64 = 0.02;
const SHORT_SINGLE_TURN_SECONDS: f64 = 0.01;

/// The share of a turn that is processed untimed before it, to refill the CPU caches after
/// the previous engine's turn.
const WARM_UP_SHARE: f64 = 0.1;

/// Shares of packets or vectors whose times are reported.
const SHARES: [f64; 7] = [0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0];

/// Indices in [`SHARES`]: 1 %, 50 % and 99 %.
const LOW_INDEX: usize = 0;
const MEDIAN_INDEX: usize = 2;
const HIGH_INDEX: usize = 4;

/// The paper's range of times with TupleMerge, its lower ends of the ranges with linear
/// search and with tuple space search, and its bound for TupleMerge, in µs (§V.C).
const PAPER_TIMES_US: (f64, f64) = (0.2, 0.7);
const PAPER_LINEAR_US: f64 = 2.0;
const PAPER_TUPLE_SPACE_US: f64 = 5.0;
const PAPER_BOUND_US: f64 = 1.0;

/// The ratio of times that we take for "significantly faster".
const FASTER_RATIO: f64 = 2.0;

/// Microseconds a packet, at [`SHARES`] and at every hundredth of the samples.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Distribution {
    samples: usize,
    shares: Vec<f64>,
    hundredths: Vec<f64>,
}

/// Times from receiving frames to their end, and of the lookup in the access list.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Times {
    whole: Distribution,
    lookup: Distribution,
}

/// Times of one engine with one workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OfEngine {
    /// Packets alone in their vectors.
    single: Times,
    /// Vectors, divided by their packets.
    vectors: Times,
    /// Lookup times of single packets at [`SHARES`], in each turn.
    turns: Vec<Vec<f64>>,
}

/// Times over one rule set.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OfSize {
    /// The cost of reading the clock, which times of single packets do not include.
    clock_ns: f64,
    /// Times by workload and engine.
    engines: [Vec<OfEngine>; 2],
}

impl Distribution {
    fn of(times: impl Iterator<Item = f64>) -> Distribution {
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        let micros = |share: f64| quantile(&times, share) * 1e6;
        Distribution {
            samples: times.len(),
            shares: SHARES.map(micros).to_vec(),
            hundredths: (0..=100)
                .map(|share| micros(f64::from(share) / 100.0))
                .collect(),
        }
    }
}

impl Times {
    fn of(times: &[VectorTime]) -> Times {
        Times {
            whole: Distribution::of(times.iter().map(|time| time.whole)),
            lookup: Distribution::of(times.iter().map(|time| time.lookup)),
        }
    }
}

/// Measured times of one engine with one workload.
#[derive(Clone, Default)]
struct Samples {
    vectors: Vec<VectorTime>,
    single: Vec<VectorTime>,
    turns: Vec<Vec<f64>>,
}

impl Samples {
    fn times(&self) -> OfEngine {
        OfEngine {
            single: Times::of(&self.single),
            vectors: Times::of(&self.vectors),
            turns: self.turns.clone(),
        }
    }
}

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let default_sizes: &[usize] = if study.args.quick { &FEW_SIZES } else { &SIZES };
    let mut sizes = study.sizes(default_sizes);
    sizes.sort_unstable();
    sizes.dedup();
    let min_size = sizes[0];
    sizes.retain(|&size| size <= SIZES[3].max(min_size));
    let profiles = study.profiles.clone();
    let usual = profiles.iter().find(|(name, _)| name == PROFILE);
    let (name, profile) = usual.unwrap_or(&profiles[0]);
    study.expect_points(sizes.len());
    let mut times_by_size: Vec<OfSize> = Vec::new();
    for &size in &sizes {
        let point = format!("pipeline times {name} {size}, {}", study.headers());
        times_by_size.push(study.point(&point, |study| measure(study, profile, size))?);
    }
    let heading = "profile,rules,workload,engine,what,vector_packets,vectors,p1_us,p10_us,p50_us,\
                   p90_us,p99_us,p999_us,max_us";
    let rows = rows(name, &sizes, &times_by_size);
    study.write_csv("pipeline-times.csv", heading, &rows)?;
    let mut pictures = Vec::new();
    for (place, &engine) in ENGINES.iter().enumerate() {
        pictures.push(picture(study, name, &sizes, &times_by_size, place, engine)?);
    }
    let clock_ns = times_by_size.iter().map(|of_size| of_size.clock_ns);
    let clock_ns = clock_ns.fold(0.0, f64::max);
    Ok(Section {
        title: "Times of single packets and of vectors (Fig. 12, §V.C)".to_owned(),
        method: format!(
            "Rules of {name}. Single packets: each packet is a vector of its own and is timed by \
             the wall clock. Reading this clock takes {clock_ns:.0} ns, which is subtracted. A \
             packet alone waits for each of its memory accesses, and bears the costs of a vector \
             alone. Vectors: {VECTOR_PACKETS} packets are looked up together; the CPU time of a \
             vector is divided by its packets, and includes some ns a packet for the clock. \
             Lookup: the access list alone, as in the paper. Whole: from copying and parsing \
             frames to their end. Engines are interleaved. The claims are judged by single \
             packets of the synthetic traffic; a sample is a turn of an engine. The longest times \
             include interruptions of the process."
        ),
        claims: claims(name, &sizes, &times_by_size),
        grids: grids(&sizes, &times_by_size),
        pictures,
    })
}

/// Measures all engines over one rule set.
fn measure(study: &Study<'_>, profile: &Arc<Profile>, size: usize) -> Result<OfSize, Failure> {
    let policy = study.policy(profile, size)?;
    let traffic = Traffic::of(&policy, study.headers(), study.list_seed(0))?;
    let mut runners = engines(study, &policy, &traffic)?;
    let (turns, turn, single_turn) = match study.args.quick {
        true => (FEW_TURNS, SHORT_TURN_SECONDS, SHORT_SINGLE_TURN_SECONDS),
        false => (TURN_COUNT, TURN_SECONDS, SINGLE_TURN_SECONDS),
    };
    let clock_seconds = clock_cost();
    let mut samples = [(); 2].map(|()| vec![Samples::default(); ENGINES.len()]);
    for _ in 0..turns {
        for (samples, frames) in samples.iter_mut().zip(&traffic.frames) {
            for (samples, runner) in samples.iter_mut().zip(&mut runners) {
                let worker = &mut runner.vectors;
                worker.run(frames, turn * WARM_UP_SHARE);
                worker.time(frames, turn, &mut samples.vectors);
                let turn_start = samples.single.len();
                worker.time_single(frames, single_turn, clock_seconds, &mut samples.single);
                let of_turn = Times::of(&samples.single[turn_start..]);
                samples.turns.push(of_turn.lookup.shares);
            }
        }
    }
    Ok(OfSize {
        clock_ns: clock_seconds * 1e9,
        engines: samples.map(|engines| engines.iter().map(Samples::times).collect()),
    })
}

/// Returns the rows of the CSV file.
fn rows(name: &str, sizes: &[usize], times_by_size: &[OfSize]) -> Vec<String> {
    let mut rows = Vec::new();
    for (size, of_size) in sizes.iter().zip(times_by_size) {
        for ((workload, _), of_workload) in WORKLOADS.iter().zip(&of_size.engines) {
            for (&engine, times) in ENGINES.iter().zip(of_workload) {
                for (what, vector_packets, times) in [
                    ("whole", 1, &times.single.whole),
                    ("lookup", 1, &times.single.lookup),
                    ("whole", VECTOR_PACKETS, &times.vectors.whole),
                    ("lookup", VECTOR_PACKETS, &times.vectors.lookup),
                ] {
                    let values = times.shares.iter().map(|time| format!("{time:.4}"));
                    rows.push(format!(
                        "{name},{size},{workload},{},{what},{vector_packets},{},{}",
                        CONTENDERS[engine].engine,
                        times.samples,
                        values.collect::<Vec<_>>().join(",")
                    ));
                }
            }
        }
    }
    rows
}

/// Draws one engine's times of lookups.
fn picture(
    study: &mut Study<'_>,
    name: &str,
    sizes: &[usize],
    times_by_size: &[OfSize],
    place: usize,
    engine: usize,
) -> Result<String, Failure> {
    let mut series = Vec::new();
    for (&size, of_size) in sizes.iter().zip(times_by_size) {
        let times = &of_size.engines[SYNTHETIC_TRAFFIC][place];
        let colour_key = format!("{} rules", size_name(size));
        for (label, mark, times) in [
            (
                format!("{colour_key}, single packets"),
                Mark::Circle,
                &times.single,
            ),
            (format!("{colour_key}, vectors"), Mark::Plus, &times.vectors),
        ] {
            let points = (0..=100_u32).zip(&times.lookup.hundredths);
            // Only up to 99 %: the longest were interrupted. A logarithmic axis has no 0.
            let points = points.filter(|(share, time)| match share {
                _ if **time <= 0.0 => false,
                1 | 99 => true,
                share => share.is_multiple_of(5) && (1..99).contains(share),
            });
            let points = points.map(|(share, &time)| (time, f64::from(share) / 100.0));
            series.push(Series::marked(&label, &colour_key, mark, points));
        }
    }
    let contender = CONTENDERS[engine].engine;
    let chart = Chart {
        title: &format!("Lookup of a packet with {contender}, {name}, synthetic ([TM19] Fig. 12)"),
        x_label: "microseconds a packet, at most",
        y_label: "share of packets or of vectors",
        log_x: true,
        log_y: false,
    };
    let file = format!("pipeline-times-{contender}.svg");
    if let Some(values) = paper_values(engine) {
        study.add_paper(&file, &values, &mut series);
    }
    study.draw(&file, &chart, &series)?;
    Ok(file)
}

/// The ends of the paper's ranges of times with linear search and with tuple space search, in
/// µs; single packets take longer than both (§V.C).
const PAPER_LINEAR_END_US: f64 = 20.0;
const PAPER_TUPLE_SPACE_END_US: f64 = 15.0;

/// Returns the range of Fig. 12 for a contender, `None` if the paper does not have it.
pub(super) fn paper_values(contender: usize) -> Option<PaperValues> {
    let ends = match contender {
        LINEAR_SEARCH => [PAPER_LINEAR_US, PAPER_LINEAR_END_US],
        TUPLE_SPACE => [PAPER_TUPLE_SPACE_US, PAPER_TUPLE_SPACE_END_US],
        TUPLE_MERGE => [PAPER_TIMES_US.0, PAPER_TIMES_US.1],
        _ => return None,
    };
    let values = PaperValues::new(
        "stated in §V.C as the ends of the range of times with 1k to 8k rules; linear search and \
         tuple space search exceed their upper ends",
    );
    Some(values.on(super::MACHINE).positions("range", "range", ends))
}

/// The beginnings of the titles of both tables of lookups.
const SINGLE_GRID: &str = "Single packets, lookup in the access list";
const VECTOR_GRID: &str = "Vectors, lookup in the access list";

/// Returns the claims without measurements, for a run with own inputs.
pub(super) fn unmeasured_claims() -> Vec<Claim> {
    claims(PROFILE, &[], &[])
}

/// Returns the claims, judged by the lookups of single packets.
fn claims(name: &str, sizes: &[usize], times_by_size: &[OfSize]) -> Vec<Claim> {
    let names = [name.to_owned()];
    // The paper's claims are about rules of one seed.
    let sizes = if name == PROFILE { sizes } else { &[] };
    let coverage = Coverage {
        paper_sizes: &SIZES,
        sizes,
        names: &names,
    };
    // Contenders 0 to 3 are the engines. `times(engine, share)(place)` has a sample a turn.
    let of_turns = |engine: usize, share: usize, place: usize| -> Vec<f64> {
        let turns = times_by_size[place].engines[SYNTHETIC_TRAFFIC][engine]
            .turns
            .iter();
        turns.map(|shares| shares[share]).collect()
    };
    let ratio_to_tm = |engine: usize, place: usize| -> Vec<f64> {
        let others = of_turns(engine, MEDIAN_INDEX, place).into_iter();
        let pairs = others.zip(of_turns(TUPLE_MERGE, MEDIAN_INDEX, place));
        pairs.map(|(other, tm)| other / tm).collect()
    };
    let faster = |compared: &str, engine: usize, paper_us: f64| {
        Part::new(compared, Threshold::AtLeast(FASTER_RATIO))
            .paper(paper_us / PAPER_TIMES_US.1)
            .cases(coverage.by_size(|_| true, move |place| ratio_to_tm(engine, place)))
            .grid(SINGLE_GRID, "synthetic")
    };
    let range = |share: usize, percent: &str| {
        let cases = SIZES.map(|size| {
            let case_name = format!("{}, {percent}", size_name(size));
            coverage.at_size(size, case_name, |place| of_turns(TUPLE_MERGE, share, place))
        });
        cases.to_vec()
    };
    vec![
        Claim::new(
            "Fig. 12",
            "TupleMerge's times are all well under 1 µs, significantly below those of linear \
             search, 2 µs to over 20 µs, and of tuple space search, 5 µs to over 15 µs.",
        )
        .part(
            Part::new(
                "µs to classify a packet with TupleMerge, 99 % of packets",
                Threshold::Below(PAPER_BOUND_US),
            )
            .paper(PAPER_TIMES_US.1)
            .cases(coverage.by_size(|_| true, |place| of_turns(TUPLE_MERGE, HIGH_INDEX, place)))
            .grid(SINGLE_GRID, "synthetic tuplemerge"),
        )
        .part(faster(
            "median time, LS / TM",
            LINEAR_SEARCH,
            PAPER_LINEAR_US,
        ))
        .part(faster(
            "median time, TSS / TM",
            TUPLE_SPACE,
            PAPER_TUPLE_SPACE_US,
        )),
        Claim::new(
            "Fig. 12",
            "TupleMerge's times are tight, 0.2 to 0.7 µs, and change less with the number of \
             rules than those of the others.",
        )
        .part(
            Part::new(
                "µs to classify a packet with TupleMerge, 1 % to 99 % of packets",
                Threshold::Within(PAPER_TIMES_US.0, PAPER_TIMES_US.1),
            )
            .cases(range(LOW_INDEX, "1 %"))
            .cases(range(HIGH_INDEX, "99 %"))
            .grid(SINGLE_GRID, "synthetic tuplemerge"),
        )
        .part(growth(coverage, &ratio_to_tm)),
    ]
}

/// Returns the comparison of how much the median times of the other engines grow. The ratio
/// to TupleMerge's time grows if the other engine's time grows more.
fn growth(coverage: Coverage<'_>, ratio_to_tm: &dyn Fn(usize, usize) -> Vec<f64>) -> Part {
    let [first, .., last] = SIZES;
    let cases = [("LS", LINEAR_SEARCH), ("TSS", TUPLE_SPACE)].map(|(name, engine)| {
        let places = coverage.place(first).zip(coverage.place(last));
        let Some((first, last)) = places else {
            return Case::missing(name, Gap::NotRun("1k and 8k rules of acl1"));
        };
        let pairs = ratio_to_tm(engine, last).into_iter();
        let pairs = pairs.zip(ratio_to_tm(engine, first));
        Case::samples(name, pairs.map(|(last, first)| last / first))
    });
    Part::new(
        "growth of the median time from 1k to 8k rules, the other engine's / TM's",
        Threshold::Above(1.0),
    )
    .cases(cases)
    .grid(SINGLE_GRID, "synthetic")
}

fn grids(sizes: &[usize], times_by_size: &[OfSize]) -> Vec<Grid> {
    let grid = |title: String, samples: &str, pick: fn(&OfEngine) -> &Distribution| {
        let columns = [
            "traffic", "engine", "rules", samples, "1 %", "10 %", "50 %", "90 %", "99 %", "99.9 %",
            "all",
        ];
        let mut rows = Vec::new();
        for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
            for (place, &engine) in ENGINES.iter().enumerate() {
                for (size, of_size) in sizes.iter().zip(times_by_size) {
                    let times = pick(&of_size.engines[workload][place]);
                    let mut row = vec![
                        (*what).to_owned(),
                        CONTENDERS[engine].engine.to_owned(),
                        size_name(*size),
                        times.samples.to_string(),
                    ];
                    row.extend(times.shares.iter().map(|time| format!("{time:.3}")));
                    rows.push(row);
                }
            }
        }
        Grid {
            title,
            columns: columns.map(str::to_owned).to_vec(),
            words: 2,
            rows,
        }
    };
    let single_title = format!("{SINGLE_GRID}: µs, which that share of packets does not exceed");
    let vector_title =
        format!("{VECTOR_GRID}: µs a packet, which that share of vectors does not exceed");
    vec![
        grid(single_title, "packets", |times| &times.single.lookup),
        grid("Single packets, whole".to_owned(), "packets", |times| {
            &times.single.whole
        }),
        grid(vector_title, "vectors", |times| &times.vectors.lookup),
        grid("Vectors, whole".to_owned(), "vectors", |times| {
            &times.vectors.whole
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns samples of three turns with times from 0.8 to 1.2 times `micros`.
    fn samples(micros: f64) -> Samples {
        let times = (0..=40).map(|step| micros * (0.8 + f64::from(step) / 100.0) / 1e6);
        let times = times.map(|time| VectorTime {
            whole: 2.0 * time,
            lookup: time,
        });
        let times: Vec<VectorTime> = times.collect();
        Samples {
            turns: vec![Times::of(&times).lookup.shares; TURN_COUNT],
            single: times.clone(),
            vectors: times,
        }
    }

    /// Returns the verdicts for these times of the engines at each size.
    fn words(name: &str, sizes: &[usize], micros: impl Fn(usize) -> [f64; 4]) -> [&'static str; 2] {
        let times_by_size = sizes.iter().map(|&size| {
            let engines: Vec<OfEngine> =
                micros(size).map(|micros| samples(micros).times()).to_vec();
            OfSize {
                clock_ns: 20.0,
                engines: [engines.clone(), engines],
            }
        });
        let times_by_size: Vec<OfSize> = times_by_size.collect();
        let claims = claims(name, sizes, &times_by_size);
        [0, 1].map(|claim: usize| claims[claim].verdict().word())
    }

    #[test]
    fn distributions_have_their_shares() {
        let times = samples(1.0).times().single;
        assert_eq!(times.lookup.samples, 41);
        let expected = [0.8, 0.84, 1.0, 1.16, 1.2, 1.2, 1.2];
        for (share, expected) in times.lookup.shares.iter().zip(expected) {
            assert!((share - expected).abs() < 1e-9, "{share} {expected}");
        }
        assert!((times.whole.shares[2] - 2.0).abs() < 1e-9);
        assert_eq!(times.lookup.hundredths.len(), 101);
    }

    #[test]
    fn claims_are_judged_by_single_packets() {
        let paper = |size: usize| {
            let growth = if size == 8_000 { 3.0 } else { 1.0 };
            [3.0 * growth, 5.0 * growth, 0.4, 0.1]
        };
        assert_eq!(words(PROFILE, &SIZES, paper), ["holds", "holds"]);
        // Only the profile and the sizes of the paper count.
        assert_eq!(words("fw1", &SIZES, paper), ["not measured"; 2]);
        assert_eq!(words(PROFILE, &[40], paper), ["not measured"; 2]);
        // TupleMerge is slow, and its time grows more than the other engines' times.
        let slow = |size: usize| {
            let growth = if size == 8_000 { 3.0 } else { 1.0 };
            [3.0, 5.0, 4.0 * growth, 0.1]
        };
        assert_eq!(words(PROFILE, &SIZES, slow), ["does not hold here"; 2]);
    }
}
