//! [FTS25] Figs. 10 to 12: hit rates by size, by threshold and by scheme; and caches with
//! equal bytes, and their speed.
//!
//! [FTS25]: classyard::papers#fts25

use classyard::author::splitmix;
use classyard_datapath::lab::microflow::{KINDS, MegaflowId};
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::stream::{
    BYTES, CUCKOO_ALGORITHM_1, CacheOutcome, Comparison, KIND_SIZES, Outcome, SIZES, WEF,
    WEF_ALGORITHM_1, WEF_WITHOUT_LATEST, kind,
};
use super::traffic::Traffic;
use super::{CACHE_FLOWS, THRESHOLD_MS, TRACES, many, percent};
use crate::bench::{size_name, thread_cpu_time};
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::comparison::csv_line;
use crate::reproduce::paper_values::PaperValues;
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
    let traffic = Traffic::measure(study)?;
    let measured = &traffic;
    let mut pictures = Vec::new();
    write(study, measured)?;
    by_size(study, measured, &mut pictures)?;
    by_threshold(study, measured, &mut pictures)?;
    by_scheme(study, measured, &mut pictures)?;
    for (comparison, what, label) in [
        (Comparison::Kind, "size", "flows"),
        (Comparison::Bytes, "bytes", "bytes"),
    ] {
        all_caches(study, measured, comparison, (what, label), &mut pictures)?;
    }
    let all_names = measured.names.join(" / ");
    let by_size = format!("Hit rates by size, {all_names}");
    let by_bytes = format!("Hit rates at equal bytes, {all_names}");
    let description = &traffic.description;
    let mut grids = vec![
        scheme_grid(measured),
        ways_grid(measured),
        grid(&measured.outcomes, Comparison::Kind, by_size),
        grid(&measured.outcomes, Comparison::Bytes, by_bytes),
    ];
    if study.inputs.is_empty() {
        grids.push(rates(study)?);
    }
    Ok(Section {
        title: traffic.title("Hit rates of caches (Figs. 10 to 12, §6.2)"),
        method: format!(
            "{description} All caches see the same packets, one by one. wef and cuckoo record the \
             latest packet of each flow (§4.2.2), as in our switch; the caches marked Alg. 1 record \
             the latest packet of each flow entry. In Figs. 10 to 12 and where buckets are \
             compared, they have the threshold of the figure, remove flows that are idle for 1 s, \
             and record 2^18 latest packets; elsewhere caches have their default settings, with a \
             threshold that is tuned. Bytes are those of all tables. Speed, if it is shown, is \
             measured with {BATCH_LOOKUPS} flows a batch, all of which were offered, on the \
             thread's CPU time, the best of 20 runs."
        ),
        claims: claims(traffic.claimed()),
        grids,
        pictures,
    })
}

/// Draws all caches with each kind of traffic. `axis` has the varied quantity, and the
/// label of the axis.
fn all_caches(
    study: &mut Study<'_>,
    measured: &Traffic,
    comparison: Comparison,
    (what, label): (&str, &str),
    pictures: &mut Vec<String>,
) -> Result<(), Failure> {
    for (index, (trace, outcome)) in measured.pairs().enumerate() {
        let title = format!("Hit rates of all caches by {what}, {trace}");
        let ending = measured.ending(index);
        let name = measured.file(&format!("hit-rates-{what}-{ending}.svg"));
        let names = names(outcome, comparison);
        let series = names.iter().zip(Mark::ALL).map(|(name, mark)| {
            let points = line(outcome, comparison, name);
            Series::marked(name, name, mark, points)
        });
        let series: Vec<Series> = series.collect();
        study.draw(&name, &chart(&title, label, true), &series)?;
        pictures.push(name);
    }
    Ok(())
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

fn write(study: &mut Study<'_>, measured: &Traffic) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for (trace, outcome) in measured.pairs() {
        let trace = csv_line([trace]);
        rows.extend(outcome.caches.iter().map(|cache| {
            format!(
                "{trace},{:?},{},{},{:.5},{:.0},{}",
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
    let name = measured.file("hit-rates.csv");
    study.write_csv(&name, heading, &rows)
}

/// Returns one line for each trace.
fn lines(measured: &Traffic, comparison: Comparison, name: &str) -> Vec<Series> {
    let pairs = measured.pairs().zip(Mark::ALL.iter().cycle());
    let series = pairs.map(|((trace, outcome), &mark)| {
        let points = line(outcome, comparison, name);
        Series::marked(trace, trace, mark, points)
    });
    series.collect()
}

fn by_size(
    study: &mut Study<'_>,
    measured: &Traffic,
    pictures: &mut Vec<String>,
) -> Result<(), Failure> {
    let title = "wef by size, threshold 256 ms ([FTS25] Fig. 10)";
    let mut series = lines(measured, Comparison::Size, WEF_ALGORITHM_1);
    let name = measured.file("hit-rates-size.svg");
    study.add_paper(&name, &paper_curves(coordinate(CACHE_FLOWS)), &mut series);
    study.draw(&name, &chart(title, "flows", false), &series)?;
    pictures.push(name);
    Ok(())
}

fn by_threshold(
    study: &mut Study<'_>,
    measured: &Traffic,
    pictures: &mut Vec<String>,
) -> Result<(), Failure> {
    let title = "wef with 8k flows by threshold ([FTS25] Fig. 11)";
    let mut series = lines(measured, Comparison::Threshold, WEF_ALGORITHM_1);
    let chart = chart(title, "threshold in ms", true);
    let name = measured.file("hit-rates-threshold.svg");
    study.add_paper(&name, &paper_curves(many(THRESHOLD_MS)), &mut series);
    study.draw(&name, &chart, &series)?;
    pictures.push(name);
    Ok(())
}

fn by_scheme(
    study: &mut Study<'_>,
    measured: &Traffic,
    pictures: &mut Vec<String>,
) -> Result<(), Failure> {
    let names = names(&measured.outcomes[0], Comparison::Scheme);
    let pairs = measured.pairs().zip(Mark::ALL.iter().cycle());
    let series = pairs.map(|((trace, outcome), &mark)| {
        let rates = names.iter().enumerate().map(|(place, name)| {
            let rate = rate(outcome, Comparison::Scheme, name, CACHE_FLOWS);
            (coordinate(place), rate * 100.0)
        });
        Series::marked(trace, trace, mark, rates)
    });
    let mut series: Vec<Series> = series.collect();
    let title = "Schemes with 8k flows ([FTS25] Fig. 12)";
    let name = measured.file("hit-rates-schemes.svg");
    study.add_paper(&name, &paper_bars(&names), &mut series);
    study.draw_groups(&name, &chart(title, "", false), &names, &series)?;
    pictures.push(name);
    Ok(())
}

/// The source of the paper's hit rates.
const PAPER_SOURCE: &str = "stated in §6.2 for 8k flows and a threshold of 256 ms; our traffic is \
                            fitted to them";

/// Returns the hit rates of §6.2, in percent, at the x of the paper's size or threshold.
pub(super) fn paper_curves(x: f64) -> PaperValues {
    let values = PaperValues::new(PAPER_SOURCE);
    TRACES.iter().fold(values, |values, trace| {
        values.curve(trace.name, trace.name, [(x, trace.hit_rate * 100.0)])
    })
}

/// Returns the bars of Fig. 12 for the paper's cache. `caches` has the names of the groups.
pub(super) fn paper_bars(caches: &[String]) -> PaperValues {
    let place = caches.iter().position(|name| name == WEF_ALGORITHM_1);
    let values = PaperValues::new(PAPER_SOURCE);
    TRACES.iter().fold(values, |values, trace| {
        let bar = place.map(|place| (coordinate(place), trace.hit_rate * 100.0));
        values.bars(trace.name, bar)
    })
}

fn scheme_grid(measured: &Traffic) -> Grid {
    let outcomes = &measured.outcomes;
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
    let mut columns = vec![String::new()];
    columns.extend(measured.names.iter().cloned());
    columns.push("bytes".to_owned());
    Grid {
        title: "Hit rates with 8k flows (Fig. 12); wef and cuckoo with 2 MiB for latest packets"
            .to_owned(),
        columns,
        words: 1,
        rows: rows.collect(),
    }
}

fn ways_grid(measured: &Traffic) -> Grid {
    let outcomes = &measured.outcomes;
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
    let mut columns = vec![String::new(), "entries".to_owned()];
    for name in &measured.names {
        columns.extend([name.clone(), "used".to_owned()]);
    }
    Grid {
        title: "Entries of a bucket: hit rates, and the share of 8k entries that is used"
            .to_owned(),
        columns,
        words: 1,
        rows: rows.collect(),
    }
}

fn grid(outcomes: &[Outcome], comparison: Comparison, title: String) -> Grid {
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
        title,
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
    let flow = |mut number: u64| splitmix(&mut number);
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

/// Returns a case for each trace, with a value that is the same in every run.
fn each(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> Vec<Case> {
    let pairs = TRACES.iter().zip(outcomes);
    let cases = pairs.map(|(trace, outcome)| Case::exact(trace.name, value(outcome)));
    cases.collect()
}

/// The greatest rise beyond 8k flows that counts as constant, and the least difference
/// between two caches that counts, as shares of packets.
const CONSTANT_RISE: f64 = 0.01;
const CACHE_GAIN: f64 = 0.001;

/// The greatest deviation from the paper's hit rates, as a share.
const MAX_DEVIATION: f64 = 0.02;

/// The least rise of the hit rate that counts, in percentage points.
const THRESHOLD_RISE: f64 = 1.0;

fn claims(outcomes: &[Outcome]) -> Vec<Claim> {
    vec![
        size_claim(outcomes),
        threshold_claim(outcomes),
        fitted_rates(),
        against_cuckoo(outcomes),
        against_emc(outcomes),
        ours(
            outcomes,
            "Not of the paper: adaptive has at least the hit rate of wef with equal flows.",
            Comparison::Kind,
            &KIND_SIZES,
        ),
        ours(
            outcomes,
            "Not of the paper: adaptive has at least the hit rate of wef at equal bytes.",
            Comparison::Bytes,
            &BYTES,
        ),
    ]
}

fn size_claim(outcomes: &[Outcome]) -> Claim {
    let of_size = |outcome: &Outcome, size| rate(outcome, Comparison::Size, WEF_ALGORITHM_1, size);
    // The least rise from one size to the next, up to 8k.
    let least_rise = |outcome: &Outcome| {
        let sizes = SIZES.iter().zip(&SIZES[1..5]);
        let rises = sizes.map(|(&from, &to)| of_size(outcome, to) - of_size(outcome, from));
        rises.fold(f64::INFINITY, f64::min)
    };
    Claim::new(
        "Fig. 10",
        "The hit rate rises with the size up to 8k and stays about constant beyond.",
    )
    .part(
        Part::new(
            "least rise of the hit rate from one size to the next, up to 8k",
            Threshold::Above(0.0),
        )
        .cases(each(outcomes, least_rise)),
    )
    .part(
        Part::new(
            "rise of the hit rate from 8k to 16k",
            Threshold::Below(CONSTANT_RISE),
        )
        .cases(each(outcomes, |outcome| {
            of_size(outcome, 16_384) - of_size(outcome, 8_192)
        })),
    )
}

fn threshold_claim(outcomes: &[Outcome]) -> Claim {
    let points = |outcome: &Outcome| line(outcome, Comparison::Threshold, WEF_ALGORITHM_1);
    let best = |outcome: &Outcome| {
        let points = points(outcome).into_iter();
        points.fold((0.0, 0.0), |best, point| match point.1 > best.1 {
            true => point,
            false => best,
        })
    };
    let from_best = |outcome: &Outcome, other: Option<(f64, f64)>| {
        best(outcome).1 - other.map_or(f64::NAN, |point| point.1)
    };
    Claim::new(
        "Fig. 11",
        "The hit rate first rises with the threshold, has its peak between 128 and 256 ms, and \
         falls beyond.",
    )
    .part(
        Part::new(
            "points from the least threshold to the peak",
            Threshold::Above(THRESHOLD_RISE),
        )
        .cases(each(outcomes, |outcome| {
            from_best(outcome, points(outcome).first().copied())
        })),
    )
    .part(
        Part::new("ms of the peak", Threshold::Within(128.0, 256.0))
            .cases(each(outcomes, |outcome| best(outcome).0)),
    )
    .part(
        Part::new(
            "points from the peak to the greatest threshold",
            Threshold::Above(THRESHOLD_RISE),
        )
        .cases(each(outcomes, |outcome| {
            from_best(outcome, points(outcome).last().copied())
        })),
    )
}

/// The claim about the hit rates to which the traffic is fitted.
fn fitted_rates() -> Claim {
    let claim = Claim::new(
        "Fig. 12",
        "The hit rate of the cache of active flows is 77 % and 85 %.",
    );
    TRACES.iter().fold(claim, |claim, trace| {
        let part = Part::new(
            format!("hit rate of wef, {}", trace.name),
            Threshold::near(trace.hit_rate, MAX_DEVIATION),
        );
        claim.part(
            part.paper(trace.hit_rate)
                .case(Case::missing("", Gap::Fitted)),
        )
    })
}

fn of_scheme(outcome: &Outcome, name: &str) -> f64 {
    rate(outcome, Comparison::Scheme, name, CACHE_FLOWS)
}

fn against_cuckoo(outcomes: &[Outcome]) -> Claim {
    Claim::new("Fig. 12", "It is higher than with cuckoo hashing.").part(
        Part::new("hit rate, wef less cuckoo", Threshold::Above(CACHE_GAIN))
            .cases(each(outcomes, |outcome| {
                of_scheme(outcome, WEF_ALGORITHM_1) - of_scheme(outcome, CUCKOO_ALGORITHM_1)
            })),
    )
}

fn against_emc(outcomes: &[Outcome]) -> Claim {
    let mut claim = Claim::new(
        "Fig. 12",
        "Both caches of active flows have much higher hit rates than Open vSwitch's.",
    );
    for cache in [WEF_ALGORITHM_1, CUCKOO_ALGORITHM_1] {
        let above = |outcome: &Outcome| {
            let emc = of_scheme(outcome, "emc").max(of_scheme(outcome, "emc, all flows"));
            of_scheme(outcome, cache) - emc
        };
        claim = claim.part(
            Part::new(
                format!("hit rate, {cache} less the better emc"),
                Threshold::Above(0.0),
            )
            .cases(each(outcomes, above)),
        );
    }
    claim
}

/// Compares `adaptive` with `wef` at each size.
fn ours(
    outcomes: &[Outcome],
    paper: &'static str,
    comparison: Comparison,
    sizes: &[usize],
) -> Claim {
    let mut part = Part::new("hit rate, adaptive less wef", Threshold::AtLeast(0.0));
    for (trace, outcome) in TRACES.iter().zip(outcomes) {
        for &size in sizes {
            let rate_of = |name| rate(outcome, comparison, name, size);
            let wef = match comparison {
                Comparison::Bytes => rate_of(WEF).max(rate_of(WEF_WITHOUT_LATEST)),
                _ => rate_of(WEF),
            };
            let name = format!("{} with {size}", trace.name);
            part = part.case(Case::exact(name, rate_of("adaptive") - wef));
        }
    }
    Claim::new("ours", paper).part(part)
}
