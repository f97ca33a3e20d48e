//! [TM19] Fig. 12: times of single packets.
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::frames::Traffic;
use super::measure::engines;
use super::runner::VectorTime;
use super::{CONTENDERS, ENGINES, SYNTHETIC_TRAFFIC, WORKLOADS};
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Gap, Grid, Section, Threshold};
use crate::reproduce::statistics::quantile;

/// The paper's profile and numbers of rules, and the numbers of a quick reproduction.
const PROFILE: &str = "acl1";
const SIZES: [usize; 4] = [1_000, 2_000, 4_000, 8_000];
const FEW_SIZES: [usize; 2] = [1_000, 4_000];

/// Turns of each engine, and seconds of a turn.
const TURN_COUNT: usize = 10;
const TURN_SECONDS: f64 = 0.1;
const FEW_TURNS: usize = 4;
const SHORT_TURN_SECONDS: f64 = 0.02;

/// Shares of vectors whose times are reported.
const SHARES: [f64; 7] = [0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0];

/// Microseconds a packet, at [`SHARES`] and at every hundredth of the vectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Distribution {
    vectors: usize,
    shares: Vec<f64>,
    hundredths: Vec<f64>,
}

/// Times of one engine with one workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Times {
    whole: Distribution,
    lookup: Distribution,
}

/// Times by workload and engine.
type OfSize = [Vec<Times>; 2];

impl Distribution {
    fn of(mut times: Vec<f64>) -> Distribution {
        times.sort_by(f64::total_cmp);
        let micros = |share: f64| quantile(&times, share) * 1e6;
        Distribution {
            vectors: times.len(),
            shares: SHARES.map(micros).to_vec(),
            hundredths: (0..=100)
                .map(|share| micros(f64::from(share) / 100.0))
                .collect(),
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
        times_by_size.push(study.point(&point, |study| {
            let policy = study.policy(profile, size)?;
            let traffic = Traffic::of(&policy, study.headers(), study.list_seed(0))?;
            let mut runners = engines(study, &policy, &traffic)?;
            let (turns, turn) = match study.args.quick {
                true => (FEW_TURNS, SHORT_TURN_SECONDS),
                false => (TURN_COUNT, TURN_SECONDS),
            };
            let mut times: [Vec<Vec<VectorTime>>; 2] = [
                vec![Vec::new(); ENGINES.len()],
                vec![Vec::new(); ENGINES.len()],
            ];
            for _ in 0..turns {
                for (times, frames) in times.iter_mut().zip(&traffic.frames) {
                    for (times, runner) in times.iter_mut().zip(&mut runners) {
                        // Refills the CPU caches after the previous engine's turn.
                        runner.vectors.run(frames, turn / 10.0);
                        runner.vectors.time(frames, turn, times);
                    }
                }
            }
            Ok(times.map(|of_workload| {
                of_workload
                    .iter()
                    .map(|times| distributions(times))
                    .collect()
            }))
        })?);
    }
    let mut rows = Vec::new();
    for (size, of_size) in sizes.iter().zip(&times_by_size) {
        for ((workload, _), of_workload) in WORKLOADS.iter().zip(of_size) {
            for (&engine, times) in ENGINES.iter().zip(of_workload) {
                for (what, times) in [("whole", &times.whole), ("lookup", &times.lookup)] {
                    let values = times.shares.iter().map(|time| format!("{time:.4}"));
                    rows.push(format!(
                        "{name},{size},{workload},{},{what},{},{}",
                        CONTENDERS[engine].engine,
                        times.vectors,
                        values.collect::<Vec<_>>().join(",")
                    ));
                }
            }
        }
    }
    let heading = "profile,rules,workload,engine,what,vectors,p1_us,p10_us,p50_us,p90_us,p99_us,\
                   p999_us,max_us";
    study.write_csv("pipeline-times.csv", heading, &rows)?;
    let mut pictures = Vec::new();
    for (place, &engine) in ENGINES.iter().enumerate() {
        pictures.push(picture(study, name, &sizes, &times_by_size, place, engine)?);
    }
    Ok(Section {
        title: "Times of vectors (Fig. 12, §V.C)".to_owned(),
        method: format!(
            "Rules of {name}. Each vector of 256 packets is timed for itself, in CPU time, and its \
             time is divided by its packets, as packets of a vector are looked up together. The \
             paper has times of single packets, which this mean does not show. Lookup: \
             the access list alone, as the paper has it. Whole: from copying and parsing frames \
             to their end. Reading the clock is part of both: some nanoseconds a packet. Engines \
             take turns; 1 % and 99 % are shares of an engine's vectors."
        ),
        claims: claims(),
        grids: grids(&sizes, &times_by_size),
        pictures,
    })
}

fn distributions(times: &[VectorTime]) -> Times {
    Times {
        whole: Distribution::of(times.iter().map(|time| time.whole).collect()),
        lookup: Distribution::of(times.iter().map(|time| time.lookup).collect()),
    }
}

/// Draws one engine's times.
fn picture(
    study: &mut Study<'_>,
    name: &str,
    sizes: &[usize],
    times_by_size: &[OfSize],
    place: usize,
    engine: usize,
) -> Result<String, Failure> {
    let marks = Mark::ALL.iter().cycle();
    let series = sizes
        .iter()
        .zip(times_by_size)
        .zip(marks)
        .map(|((&size, times), &mark)| {
            let hundredths = times[SYNTHETIC_TRAFFIC][place].lookup.hundredths.iter();
            let points = (0..=100_u32).zip(hundredths);
            // Only up to 99 %: the longest vectors were interrupted.
            let points = points.filter(|(share, _)| match share {
                1 | 99 => true,
                share => share.is_multiple_of(5) && (1..99).contains(share),
            });
            let points = points.map(|(share, &time)| (time, f64::from(share) / 100.0));
            let label = format!("{} rules", size_name(size));
            Series::marked(&label, &label, mark, points)
        });
    let series: Vec<Series> = series.collect();
    let contender = CONTENDERS[engine].engine;
    let chart = Chart {
        title: &format!("Lookup of a packet with {contender}, {name}, synthetic ([TM19] Fig. 12)"),
        x_label: "microseconds a packet, at most",
        y_label: "share of vectors",
        log_x: true,
        log_y: false,
    };
    let file = format!("pipeline-times-{contender}.svg");
    study.draw(&file, &chart, &series)?;
    Ok(file)
}

/// Returns the claims. They are about times of single packets, and here the time of a
/// vector is divided by its packets, which hides how much packets differ.
fn claims() -> Vec<Claim> {
    let by_packet = Gap::NotRun("times of single packets; a vector of 256 is timed as a whole");
    vec![
        Claim::new(
            "Fig. 12",
            "TupleMerge's times are all well under 1 µs, significantly below those of linear \
             search, 2 µs to over 20 µs, and of tuple space search, 5 µs to over 15 µs.",
        )
        .unmeasured(
            "µs to classify a packet with TupleMerge, 99 % of packets",
            Threshold::Below(1.0),
            by_packet,
        ),
        Claim::new(
            "Fig. 12",
            "TupleMerge's times are tight, 0.2 to 0.7 µs, and change less with the number of \
             rules than those of the others.",
        )
        .unmeasured(
            "µs to classify a packet with TupleMerge, 1 % to 99 % of packets",
            Threshold::Within(0.2, 0.7),
            by_packet,
        ),
    ]
}

fn grids(sizes: &[usize], times_by_size: &[OfSize]) -> Vec<Grid> {
    let grid = |title: &str, pick: fn(&Times) -> &Distribution| {
        let columns = [
            "traffic", "engine", "rules", "vectors", "1 %", "10 %", "50 %", "90 %", "99 %",
            "99.9 %", "all",
        ];
        let mut rows = Vec::new();
        for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
            for (place, &engine) in ENGINES.iter().enumerate() {
                for (size, of_size) in sizes.iter().zip(times_by_size) {
                    let times = pick(&of_size[workload][place]);
                    let mut row = vec![
                        (*what).to_owned(),
                        CONTENDERS[engine].engine.to_owned(),
                        size_name(*size),
                        times.vectors.to_string(),
                    ];
                    row.extend(times.shares.iter().map(|time| format!("{time:.3}")));
                    rows.push(row);
                }
            }
        }
        Grid {
            title: title.to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            words: 2,
            rows,
        }
    };
    vec![
        grid(
            "Lookup in the access list: µs a packet, which that share of vectors does not exceed",
            |times| &times.lookup,
        ),
        grid("The whole way: the same", |times| &times.whole),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(micros: f64) -> Times {
        // Times from 0.8 to 1.2 times `micros`.
        let samples = (0..=40).map(|step| micros * (0.8 + f64::from(step) / 100.0) / 1e6);
        let samples: Vec<VectorTime> = samples
            .map(|time| VectorTime {
                whole: 2.0 * time,
                lookup: time,
            })
            .collect();
        distributions(&samples)
    }

    #[test]
    fn distributions_have_their_shares() {
        let times = times(1.0);
        assert_eq!(times.lookup.vectors, 41);
        let expected = [0.8, 0.84, 1.0, 1.16, 1.2, 1.2, 1.2];
        for (share, expected) in times.lookup.shares.iter().zip(expected) {
            assert!((share - expected).abs() < 1e-9, "{share} {expected}");
        }
        assert!((times.whole.shares[2] - 2.0).abs() < 1e-9);
        assert_eq!(times.lookup.hundredths.len(), 101);
    }
}
