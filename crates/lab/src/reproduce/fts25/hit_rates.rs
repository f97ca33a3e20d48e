//! [FTS25] Figs. 10 to 12: hit rates by size, by threshold and by scheme; and caches with
//! equal bytes, and their speed.
//!
//! [FTS25]: classyard::papers#fts25

use classyard_datapath::lab::microflow::{KINDS, MegaflowId};
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::stream::{
    BYTES, CUCKOO_ALGORITHM_1, CacheOutcome, Comparison, KIND_SIZES, Outcome, SIZES, WEF,
    WEF_ALGORITHM_1, WEF_WITHOUT_LATEST, kind,
};
use super::{CACHE_FLOWS, TRACES, TRAFFIC, percent};
use crate::bench::{size_name, thread_cpu_time};
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::reproduce::statistics::coordinate;

/// Lookups of a speed measurement, and of one batch.
const TIMED_LOOKUPS: usize = 1 << 16;
const BATCH_LOOKUPS: usize = 256;

/// The speed of a cache.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Rate {
    million_lookups: f64,
    hit_rate: f64,
}

/// Draws the figures.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let outcomes = study.fts25_outcomes()?;
    let mut pictures = Vec::new();
    write(study, &outcomes)?;
    by_size(study, &outcomes, &mut pictures)?;
    by_threshold(study, &outcomes, &mut pictures)?;
    by_scheme(study, &outcomes, &mut pictures)?;
    for (comparison, what, label) in [
        (Comparison::Kind, "size", "flows"),
        (Comparison::Bytes, "bytes", "bytes"),
    ] {
        for (trace, outcome) in TRACES.iter().zip(&outcomes) {
            let title = format!("Hit rates of all caches by {what}, {}", trace.name);
            let name = format!("hit-rates-{what}-{}.svg", trace.name.to_lowercase());
            let names = names(outcome, comparison);
            let series = names.iter().zip(Mark::ALL).map(|(name, mark)| {
                let points = line(outcome, comparison, name);
                Series::marked(name, name, mark, points)
            });
            let series: Vec<Series> = series.collect();
            study.draw(&name, &chart(&title, label, true), &series)?;
            pictures.push(name);
        }
    }
    let grids = vec![
        scheme_grid(&outcomes),
        ways_grid(&outcomes),
        grid(
            &outcomes,
            Comparison::Kind,
            "Hit rates by size, TRACE1 / TRACE2",
        ),
        grid(
            &outcomes,
            Comparison::Bytes,
            "Hit rates at equal bytes, TRACE1 / TRACE2",
        ),
        rates(study)?,
    ];
    Ok(Section {
        title: "Hit rates of caches (Figs. 10 to 12, §6.2)".to_owned(),
        method: format!(
            "{TRAFFIC} All caches see the same packets, one by one. wef and cuckoo record the \
             latest packet of each flow (§4.2.2), as in our switch; the caches marked Alg. 1 record \
             the latest packet of each flow entry. In Figs. 10 to 12 and where buckets are \
             compared, they have the threshold of the figure, remove flows that are idle for 1 s, \
             and record 2^18 latest packets; elsewhere caches have their default settings, with a \
             threshold that is tuned. Bytes are those of all \
             tables. Speed is measured with {BATCH_LOOKUPS} flows a batch, all of which were offered, on \
             the thread's CPU time, the best of 20 runs."
        ),
        claims: claims(&outcomes),
        grids,
        pictures,
    })
}

fn chart<'a>(title: &'a str, x_label: &'a str, log_x: bool) -> Chart<'a> {
    Chart {
        title,
        x_label,
        y_label: "hit rate in percent",
        log_x,
        log_y: false,
    }
}

fn of(outcome: &Outcome, of: Comparison) -> impl Iterator<Item = &CacheOutcome> {
    outcome.caches.iter().filter(move |cache| cache.of == of)
}

/// Returns the names of a comparison's caches, in their order.
fn names(outcome: &Outcome, comparison: Comparison) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for cache in of(outcome, comparison) {
        if !names.contains(&cache.name) {
            names.push(cache.name.clone());
        }
    }
    names
}

/// Returns a cache's hit rates in percent along a comparison.
fn line(outcome: &Outcome, comparison: Comparison, name: &str) -> Vec<(f64, f64)> {
    let caches = of(outcome, comparison).filter(|cache| cache.name == name && cache.x > 0);
    let points = caches.map(|cache| (coordinate(cache.x), cache.hit_rate * 100.0));
    points.collect()
}

fn rate(outcome: &Outcome, comparison: Comparison, name: &str, x: usize) -> f64 {
    let cache = of(outcome, comparison).find(|cache| cache.name == name && cache.x == x);
    cache.map_or(0.0, |cache| cache.hit_rate)
}

fn write(study: &mut Study<'_>, outcomes: &[Outcome]) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for (trace, outcome) in TRACES.iter().zip(outcomes) {
        rows.extend(outcome.caches.iter().map(|cache| {
            format!(
                "{},{:?},{},{},{:.5},{:.0},{}",
                trace.name,
                cache.of,
                cache.name.replace(',', ""),
                cache.x,
                cache.hit_rate,
                cache.used,
                cache.bytes
            )
        }));
    }
    let heading = "trace,comparison,cache,x,hit_rate,used,bytes";
    study.write_csv("hit-rates.csv", heading, &rows)
}

/// Returns one line for each trace.
fn lines(outcomes: &[Outcome], comparison: Comparison, name: &str) -> Vec<Series> {
    let pairs = TRACES.iter().zip(outcomes).zip(Mark::ALL);
    let series = pairs.map(|((trace, outcome), mark)| {
        let points = line(outcome, comparison, name);
        Series::marked(trace.name, trace.name, mark, points)
    });
    series.collect()
}

fn by_size(
    study: &mut Study<'_>,
    outcomes: &[Outcome],
    pictures: &mut Vec<String>,
) -> Result<(), Failure> {
    let title = "wef by size, threshold 256 ms ([FTS25] Fig. 10)";
    let series = lines(outcomes, Comparison::Size, WEF_ALGORITHM_1);
    study.draw("hit-rates-size.svg", &chart(title, "flows", false), &series)?;
    pictures.push("hit-rates-size.svg".to_owned());
    Ok(())
}

fn by_threshold(
    study: &mut Study<'_>,
    outcomes: &[Outcome],
    pictures: &mut Vec<String>,
) -> Result<(), Failure> {
    let title = "wef with 8k flows by threshold ([FTS25] Fig. 11)";
    let series = lines(outcomes, Comparison::Threshold, WEF_ALGORITHM_1);
    let chart = chart(title, "threshold in ms", true);
    study.draw("hit-rates-threshold.svg", &chart, &series)?;
    pictures.push("hit-rates-threshold.svg".to_owned());
    Ok(())
}

fn by_scheme(
    study: &mut Study<'_>,
    outcomes: &[Outcome],
    pictures: &mut Vec<String>,
) -> Result<(), Failure> {
    let names = names(&outcomes[0], Comparison::Scheme);
    let pairs = TRACES.iter().zip(outcomes).zip(Mark::ALL);
    let series = pairs.map(|((trace, outcome), mark)| {
        let rates = names.iter().enumerate().map(|(place, name)| {
            let rate = rate(outcome, Comparison::Scheme, name, CACHE_FLOWS);
            (coordinate(place), rate * 100.0)
        });
        Series::marked(trace.name, trace.name, mark, rates)
    });
    let series: Vec<Series> = series.collect();
    let title = "Schemes with 8k flows ([FTS25] Fig. 12)";
    study.draw_groups(
        "hit-rates-schemes.svg",
        &chart(title, "", false),
        &names,
        &series,
    )?;
    pictures.push("hit-rates-schemes.svg".to_owned());
    Ok(())
}

fn scheme_grid(outcomes: &[Outcome]) -> Grid {
    let rows = names(&outcomes[0], Comparison::Scheme)
        .into_iter()
        .map(|name| {
            let mut row = vec![name.clone()];
            for outcome in outcomes {
                row.push(percent(rate(
                    outcome,
                    Comparison::Scheme,
                    &name,
                    CACHE_FLOWS,
                )));
            }
            let bytes = of(&outcomes[0], Comparison::Scheme).find(|cache| cache.name == name);
            row.push(bytes.map_or(0, |cache| cache.bytes).to_string());
            row
        });
    Grid {
        title: "Hit rates with 8k flows (Fig. 12); wef and cuckoo with 2 MiB for latest packets"
            .to_owned(),
        columns: ["", "TRACE1", "TRACE2", "bytes"]
            .map(str::to_owned)
            .to_vec(),
        words: 1,
        rows: rows.collect(),
    }
}

fn ways_grid(outcomes: &[Outcome]) -> Grid {
    let rows = of(&outcomes[0], Comparison::Ways).map(|cache| {
        let mut row = vec![cache.name.clone(), cache.x.to_string()];
        for outcome in outcomes {
            let is_same = |other: &&CacheOutcome| other.name == cache.name && other.x == cache.x;
            let counterpart = of(outcome, Comparison::Ways).find(is_same);
            let counterpart = counterpart.expect("all traces have all caches");
            row.push(percent(counterpart.hit_rate));
            row.push(percent(counterpart.used / coordinate(CACHE_FLOWS)));
        }
        row
    });
    Grid {
        title: "Entries of a bucket: hit rates, and the share of 8k entries that is used"
            .to_owned(),
        columns: ["", "entries", "TRACE1", "used", "TRACE2", "used"]
            .map(str::to_owned)
            .to_vec(),
        words: 1,
        rows: rows.collect(),
    }
}

fn grid(outcomes: &[Outcome], comparison: Comparison, title: &str) -> Grid {
    let mut sizes: Vec<usize> = of(&outcomes[0], comparison).map(|cache| cache.x).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut columns = vec!["".to_owned()];
    columns.extend(sizes.iter().map(|&size| match comparison {
        Comparison::Bytes => format!("{} KiB", size >> 10),
        _ => size_name(size),
    }));
    let rows = names(&outcomes[0], comparison).into_iter().map(|name| {
        let mut row = vec![name.clone()];
        row.extend(sizes.iter().map(|&size| {
            let rates = outcomes
                .iter()
                .map(|outcome| format!("{:.1}", rate(outcome, comparison, &name, size) * 100.0));
            rates.collect::<Vec<_>>().join(" / ")
        }));
        row
    });
    Grid {
        title: title.to_owned(),
        columns,
        words: 1,
        rows: rows.collect(),
    }
}

/// Measures the speed of caches with 8k flows.
fn rates(study: &mut Study<'_>) -> Result<Grid, Failure> {
    study.expect_points(KINDS.len());
    let mut rows = Vec::new();
    let mut table = Vec::new();
    for one in KINDS {
        let measured: Rate = study.point(&format!("lookups of {}", one.name), |study| {
            Ok(speed(one.name, study.args.seed))
        })?;
        rows.push(format!(
            "{},{:.2},{:.4}",
            one.name, measured.million_lookups, measured.hit_rate
        ));
        table.push(vec![
            one.name.to_owned(),
            one.source.to_owned(),
            format!("{:.0}", measured.million_lookups),
            percent(measured.hit_rate),
        ]);
    }
    study.write_csv("cache-rates.csv", "cache,million_lookups,hit_rate", &rows)?;
    Ok(Grid {
        title: "Million lookups a second, 8k entries of which some 6k are used, hashes given"
            .to_owned(),
        columns: ["", "source", "million lookups/s", "hits"]
            .map(str::to_owned)
            .to_vec(),
        words: 2,
        rows: table,
    })
}

fn speed(name: &str, seed: u64) -> Rate {
    let mut cache = kind(name, CACHE_FLOWS, seed);
    let flow = |number: u64| {
        let hash = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^ hash >> 32
    };
    let flows = (CACHE_FLOWS * 7 / 10) as u64;
    // 300 offers are enough for emc, which accepts one in a hundred.
    for number in (0..flows).flat_map(|number| [number; 300]) {
        let decision = u32::try_from(number).ok().and_then(MegaflowId::new);
        cache.offer(flow(number), decision.expect("a few thousand"), 0);
    }
    let hashes: Vec<u64> = (0..TIMED_LOOKUPS as u64)
        .map(|number| flow(flow(number) % flows))
        .collect();
    let mut decisions = [MegaflowId::NONE; BATCH_LOOKUPS];
    let (mut best, mut hits) = (f64::INFINITY, 0);
    for _ in 0..20 {
        let before = thread_cpu_time();
        hits = 0;
        for batch in hashes.chunks_exact(BATCH_LOOKUPS) {
            cache.look_up(batch, 1, &mut decisions);
            hits += decisions
                .iter()
                .filter(|decision| decision.is_some())
                .count();
        }
        let spent = thread_cpu_time().saturating_sub(before);
        best = best.min(spent.as_secs_f64());
    }
    Rate {
        million_lookups: coordinate(TIMED_LOOKUPS) / best.max(1e-9) / 1e6,
        hit_rate: coordinate(hits) / coordinate(TIMED_LOOKUPS),
    }
}

/// Joins a text for each trace.
fn each(outcomes: &[Outcome], words: impl Fn(&Outcome) -> String) -> String {
    let pairs = TRACES.iter().zip(outcomes);
    let words = pairs.map(|(trace, outcome)| format!("{}: {}", trace.name, words(outcome)));
    words.collect::<Vec<_>>().join("; ")
}

fn claims(outcomes: &[Outcome]) -> Vec<Claim> {
    let traces = outcomes.len();
    let size = |outcome: &Outcome, size| rate(outcome, Comparison::Size, WEF_ALGORITHM_1, size);
    let holding =
        |holds: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| holds(outcome)).count();
    let grows = holding(&|outcome| {
        let rates = SIZES.iter().map(|&flows| size(outcome, flows));
        let rates: Vec<f64> = rates.take(5).collect();
        rates.is_sorted()
    });
    let flat = holding(&|outcome| size(outcome, 16_384) - size(outcome, 8_192) < 0.01);
    let best = |outcome: &Outcome| {
        let line = line(outcome, Comparison::Threshold, WEF_ALGORITHM_1);
        line.into_iter().fold(
            (0.0, 0.0),
            |best, point| if point.1 > best.1 { point } else { best },
        )
    };
    let last = |outcome: &Outcome| {
        let line = line(outcome, Comparison::Threshold, WEF_ALGORITHM_1);
        line.last().map_or(0.0, |point| point.1)
    };
    let first = |outcome: &Outcome| {
        let line = line(outcome, Comparison::Threshold, WEF_ALGORITHM_1);
        line.first().map_or(0.0, |point| point.1)
    };
    let rises = holding(&|outcome| best(outcome).1 > first(outcome) + 1.0);
    let peaks = holding(&|outcome| (128.0..=256.0).contains(&best(outcome).0));
    let scheme =
        |outcome: &Outcome, name: &str| rate(outcome, Comparison::Scheme, name, CACHE_FLOWS);
    let above_cuckoo = holding(&|outcome| {
        scheme(outcome, WEF_ALGORITHM_1) > scheme(outcome, CUCKOO_ALGORITHM_1) + 0.001
    });
    let above_emc = holding(&|outcome| {
        let emc_rate = scheme(outcome, "emc").max(scheme(outcome, "emc, all flows"));
        scheme(outcome, WEF_ALGORITHM_1).min(scheme(outcome, CUCKOO_ALGORITHM_1)) > emc_rate
    });
    let bytes = |outcome: &Outcome| {
        let ahead = BYTES.iter().filter(|&&bytes| {
            let rate_of = |name| rate(outcome, Comparison::Bytes, name, bytes);
            rate_of("adaptive") >= rate_of(WEF).max(rate_of(WEF_WITHOUT_LATEST))
        });
        ahead.count()
    };
    let flows = |outcome: &Outcome| {
        let ahead = KIND_SIZES.iter().filter(|&&size| {
            let rate_of = |name| rate(outcome, Comparison::Kind, name, size);
            rate_of("adaptive") >= rate_of(WEF)
        });
        ahead.count()
    };
    let close_traces = TRACES.iter().zip(outcomes).filter(|(trace, outcome)| {
        (scheme(outcome, WEF_ALGORITHM_1) - trace.hit_rate).abs() < 0.02
    });
    vec![
        Claim {
            place: "Fig. 10",
            paper: "The hit rate rises with the size up to 8k and stays about constant beyond.",
            measured: each(outcomes, |outcome| {
                format!(
                    "{} with 1k, {} with 8k, {} with 16k",
                    percent(size(outcome, 1_024)),
                    percent(size(outcome, 8_192)),
                    percent(size(outcome, 16_384))
                )
            }),
            verdict: Verdict::for_most(
                grows.min(flat),
                traces,
                "it goes on rising for other traces",
            ),
        },
        Claim {
            place: "Fig. 11",
            paper: "The hit rate first rises with the threshold, has its peak between 128 and 256 \
                    ms, and falls beyond.",
            measured: each(outcomes, |outcome| {
                let (threshold, max_rate) = best(outcome);
                format!(
                    "{:.1} % at 8 ms, most at {threshold:.0} ms: {max_rate:.1} %, and {:.1} % at \
                     4,096 ms",
                    first(outcome),
                    last(outcome)
                )
            }),
            verdict: match (rises == traces, peaks == traces) {
                (true, true) => Verdict::Holds,
                (true, false) => Verdict::InPart(
                    "it rises and then hardly changes: flows that are idle for longest are \
                     replaced first, so admitting more flows costs little"
                        .to_owned(),
                ),
                _ => Verdict::Fails("the threshold hardly matters".to_owned()),
            },
        },
        Claim {
            place: "Fig. 12",
            paper: "The hit rate of the cache of active flows is 77 % and 85 %.",
            measured: each(outcomes, |outcome| {
                format!("{} (fitted)", percent(scheme(outcome, WEF_ALGORITHM_1)))
            }),
            verdict: Verdict::for_most(close_traces.count(), traces, "more than 2 points off"),
        },
        Claim {
            place: "Fig. 12",
            paper: "It is higher than with cuckoo hashing.",
            measured: each(outcomes, |outcome| {
                format!(
                    "{:.2} % and {:.2} % with cuckoo",
                    scheme(outcome, WEF_ALGORITHM_1) * 100.0,
                    scheme(outcome, CUCKOO_ALGORITHM_1) * 100.0
                )
            }),
            verdict: Verdict::for_most(
                above_cuckoo,
                traces,
                "with four entries a bucket both fill the cache; see the table of entries of a \
                 bucket for fewer",
            ),
        },
        Claim {
            place: "Fig. 12",
            paper: "Both caches of active flows have much higher hit rates than Open vSwitch's.",
            measured: each(outcomes, |outcome| {
                format!(
                    "emc {}, and {} when all flows are taken in",
                    percent(scheme(outcome, "emc")),
                    percent(scheme(outcome, "emc, all flows"))
                )
            }),
            verdict: Verdict::for_most(above_emc, traces, "not on other traces"),
        },
        Claim {
            place: "ours",
            paper: "Not of the paper: adaptive has at least the hit rate of wef with equal flows.",
            measured: each(outcomes, |outcome| {
                format!(
                    "with {} of {} numbers of flows",
                    flows(outcome),
                    KIND_SIZES.len()
                )
            }),
            verdict: Verdict::for_most(
                outcomes.iter().map(flows).sum(),
                traces * KIND_SIZES.len(),
                "wef has more with other numbers of flows",
            ),
        },
        Claim {
            place: "ours",
            paper: "Not of the paper: adaptive has at least the hit rate of wef at equal bytes.",
            measured: each(outcomes, |outcome| {
                format!("at {} of {} numbers of bytes", bytes(outcome), BYTES.len())
            }),
            verdict: Verdict::for_most(
                outcomes.iter().map(bytes).sum(),
                traces * BYTES.len(),
                "wef has more at other numbers of bytes",
            ),
        },
    ]
}
