//! [FTS25] Figs. 13 and 14: average search lengths; and eqs. 5 to 8 compared with
//! measurement.
//!
//! [FTS25]: classyard::papers#fts25

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::formulas::{failed, failed_of_many, fitted_ratio, miss_length, search_length};
use super::stream::{Outcome, SchemeOutcome};
use super::{TRACES, TRAFFIC, percent};
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::reproduce::statistics::coordinate;

/// The greatest deviation of a formula from the measured value, as a share.
const MAX_DEVIATION: f64 = 0.1;

/// A search length of a scheme.
type Length = fn(&SchemeOutcome) -> f64;

/// The paper's schemes.
const PAPER: [&str; 3] = ["FastTSS", "CuckooFlow", "Open vSwitch"];

/// Draws the figures.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let outcomes = study.fts25_outcomes()?;
    let names: Vec<String> = outcomes[0]
        .schemes
        .iter()
        .map(|one| one.name.clone())
        .collect();
    let mut rows = Vec::new();
    for (trace, outcome) in TRACES.iter().zip(&outcomes) {
        rows.extend(outcome.schemes.iter().map(|scheme| {
            format!(
                "{},{},{},{:.5},{:.4},{:.4},{:.4},{:.4}",
                trace.name,
                scheme.name.replace(',', ""),
                scheme.is_sorted,
                scheme.hit_rate(),
                scheme.mean_failed(),
                scheme.mean_length(),
                scheme.average(),
                scheme.load
            )
        }));
    }
    let heading = "trace,scheme,sorted,hit_rate,failed_lookups,tuple_space_length,average_length,\
                   load_factor";
    study.write_csv("search-length.csv", heading, &rows)?;
    let figures: [(&str, &str, Length); 2] = [
        (
            "search-length-tuples.svg",
            "Search length in the tuple space after a miss ([FTS25] Fig. 13)",
            SchemeOutcome::mean_length,
        ),
        (
            "search-length-all.svg",
            "Average search length of all packets ([FTS25] Fig. 14)",
            SchemeOutcome::average,
        ),
    ];
    let mut pictures = Vec::new();
    for (name, title, length) in figures {
        let chart = Chart {
            title,
            x_label: "",
            y_label: "entries compared",
            log_x: false,
            log_y: false,
        };
        let pairs = TRACES.iter().zip(&outcomes).zip(Mark::ALL);
        let series = pairs.map(|((trace, outcome), mark)| {
            let points = outcome.schemes.iter().enumerate();
            let points = points.map(|(place, scheme)| (coordinate(place), length(scheme)));
            Series::marked(trace.name, trace.name, mark, points)
        });
        let series: Vec<Series> = series.collect();
        study.draw_groups(name, &chart, &names, &series)?;
        pictures.push(name.to_owned());
    }
    Ok(Section {
        title: "Average search length (Figs. 13 and 14, eqs. 5 to 8, §6.3)".to_owned(),
        method: format!(
            "{TRAFFIC} 16 tuples of 2^9 buckets, λ = 4, caches of 8k flows, wef and cuckoo with a \
             threshold of 256 ms and the latest packet of each flow entry (Alg. 1), or of each flow \
             (FastTSS, by flow). Metrics change by packets whose flows do not enter the cache. The \
             search length is the number of entries that are compared, \
             and 1 for the cache. Tuples that are not sorted stay in the order in which their \
             first packets came, so frequent ones are among the first already; in a random order \
             (L − 1)/2 lookups fail. r is the most likely ratio for how often tuples were \
             referenced: the one whose mean by eq. 5 is that of a static order by reference. \
             α is the mean of tuples, while packets come."
        ),
        claims: claims(&outcomes),
        grids: vec![measured_grid(&outcomes), formula_grid(&outcomes)],
        pictures,
    })
}

fn scheme<'a>(outcome: &'a Outcome, name: &str) -> &'a SchemeOutcome {
    let scheme = outcome.schemes.iter().find(|scheme| scheme.name == name);
    scheme.expect("all traces have all schemes")
}

fn measured_grid(outcomes: &[Outcome]) -> Grid {
    let mut rows = Vec::new();
    for (trace, outcome) in TRACES.iter().zip(outcomes) {
        for one in &outcome.schemes {
            let paper = PAPER.iter().position(|name| *name == one.name);
            rows.push(vec![
                trace.name.to_owned(),
                one.name.clone(),
                percent(one.hit_rate()),
                format!("{:.2}", one.mean_failed()),
                format!("{:.2}", one.mean_length()),
                format!("{:.2}", one.average()),
                paper.map_or("–".to_owned(), |place| {
                    trace.search_lengths[place].to_string()
                }),
            ]);
        }
    }
    Grid {
        title: "Failed tuple lookups and search lengths".to_owned(),
        columns: [
            "trace",
            "scheme",
            "hits",
            "failed lookups after a miss",
            "length after a miss",
            "average length",
            "in the paper",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 2,
        rows,
    }
}

/// The formulas' predictions for a scheme with sorted tuples.
struct Predicted {
    ratio: f64,
    failed: f64,
    failed_of_many: f64,
    /// Eq. 7 with eq. 5 or eq. 6, and one load factor.
    miss: f64,
    miss_of_many: f64,
    /// Eq. 7 with each tuple's own load factor and references.
    miss_by_tuple: f64,
    average: f64,
    average_by_tuple: f64,
}

fn predicted(scheme: &SchemeOutcome) -> Predicted {
    let ratio = fitted_ratio(&scheme.references);
    let failed = failed(ratio, coordinate(scheme.references.len()));
    let failed_of_many = failed_of_many(ratio);
    let miss = miss_length(failed, scheme.load);
    let pairs = scheme.references.iter().zip(&scheme.loads);
    let mut tuples: Vec<(u64, f64)> = pairs.map(|(&count, &load)| (count, load)).collect();
    tuples.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
    let (mut before, mut sum, mut references) = (0.0, 0.0, 0.0);
    for (count, load) in tuples {
        sum += super::many(count) * (before + load / 2.0 + 1.0);
        references += super::many(count);
        before += load;
    }
    let miss_by_tuple = 1.0 + sum / f64::max(references, 1.0);
    let hit_rate = scheme.hit_rate_of_found();
    Predicted {
        ratio,
        failed,
        failed_of_many,
        miss,
        miss_of_many: miss_length(failed_of_many, scheme.load),
        miss_by_tuple,
        average: search_length(hit_rate, miss),
        average_by_tuple: search_length(hit_rate, miss_by_tuple),
    }
}

fn formula_grid(outcomes: &[Outcome]) -> Grid {
    let mut rows = Vec::new();
    for (trace, outcome) in TRACES.iter().zip(outcomes) {
        for one in outcome.schemes.iter().filter(|scheme| scheme.is_sorted) {
            let by = predicted(one);
            rows.push(vec![
                trace.name.to_owned(),
                one.name.clone(),
                format!("{:.3}", by.ratio),
                format!("{:.2}", one.load),
                format!("{:.2}", one.mean_failed()),
                format!("{:.2}", by.failed),
                format!("{:.2}", by.failed_of_many),
                format!("{:.2}", 1.0 + one.mean_length()),
                format!("{:.2}", by.miss),
                format!("{:.2}", by.miss_of_many),
                format!("{:.2}", by.miss_by_tuple),
                format!("{:.2}", one.average_of_found()),
                format!("{:.2}", by.average),
                format!("{:.2}", by.average_by_tuple),
            ]);
        }
    }
    Grid {
        title: "Eqs. 5 to 8 against measurement, sorted tuples; packets that have an entry"
            .to_owned(),
        columns: [
            "trace",
            "scheme",
            "r",
            "α",
            "failed lookups",
            "eq. 5",
            "eq. 6",
            "length of a miss",
            "eq. 7 with eq. 5",
            "eq. 7",
            "eq. 7, α of each tuple",
            "average length",
            "eq. 8 with eq. 5",
            "eq. 8, α of each tuple",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 2,
        rows,
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
    let holding =
        |holds: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| holds(outcome)).count();
    let length = |outcome: &Outcome, name| scheme(outcome, name).mean_length();
    let average = |outcome: &Outcome, name| scheme(outcome, name).average();
    let shorter = holding(&|outcome| {
        PAPER[1..]
            .iter()
            .all(|other| length(outcome, PAPER[0]) < length(outcome, other))
    });
    let speedup = |outcome: &Outcome, other| average(outcome, other) / average(outcome, PAPER[0]);
    let fast = holding(&|outcome| {
        PAPER[1..]
            .iter()
            .all(|other| speedup(outcome, other) >= 1.15)
    });
    let sorting = |outcome: &Outcome| {
        let [unsorted, sorted] = ["wef, unsorted", "FastTSS"];
        length(outcome, unsorted) / length(outcome, sorted)
    };
    let sorted_enough = holding(&|outcome| sorting(outcome) >= 1.15);
    let is_near =
        |measured: f64, formula: f64| (formula / measured.max(1e-9) - 1.0).abs() <= MAX_DEVIATION;
    let schemes = || {
        let schemes = outcomes.iter().flat_map(|outcome| &outcome.schemes);
        schemes.filter(|scheme| scheme.is_sorted)
    };
    let count = |holds: &dyn Fn(&SchemeOutcome, &Predicted) -> bool| {
        let holding = schemes().filter(|one| holds(one, &predicted(one)));
        (holding.count(), schemes().count())
    };
    let eq5 = count(&|one, by| is_near(one.mean_failed(), by.failed));
    let eq6 = count(&|one, by| is_near(one.mean_failed(), by.failed_of_many));
    let eq7 = count(&|one, by| is_near(1.0 + one.mean_length(), by.miss));
    let eq7_by_tuple = count(&|one, by| is_near(1.0 + one.mean_length(), by.miss_by_tuple));
    let eq8 = count(&|one, by| is_near(one.average_of_found(), by.average));
    let eq8_by_tuple = count(&|one, by| is_near(one.average_of_found(), by.average_by_tuple));
    vec![
        Claim {
            place: "Fig. 13",
            paper: "The search in the tuple space is shorter with FastTSS than with CuckooFlow and \
                    Open vSwitch, whose tuples are not sorted.",
            measured: each(outcomes, |outcome| {
                let lengths = PAPER.map(|name| format!("{:.2}", length(outcome, name)));
                lengths.join(", ")
            }),
            verdict: Verdict::for_most(shorter, traces, "not on the other trace"),
        },
        Claim {
            place: "§6.3",
            paper: "Sorting shortens the search in the tuple space; of all that is compared, by \
                    1.15 to 2.3.",
            measured: each(outcomes, |outcome| {
                let one = scheme(outcome, "FastTSS");
                let random = (coordinate(one.references.len()) - 1.0) / 2.0;
                format!(
                    "{:.2} times with the same cache, and {:.2} times as few failed lookups as in a \
                     random order",
                    sorting(outcome),
                    random / one.mean_failed().max(1e-9)
                )
            }),
            verdict: Verdict::for_most(
                sorted_enough,
                traces,
                "unsorted tuples are in the order of their first packets, which is nearly that of \
                 their use",
            ),
        },
        Claim {
            place: "Fig. 14",
            paper: "FastTSS searches 1.15 to 2.30 times as short as CuckooFlow and Open vSwitch.",
            measured: each(outcomes, |outcome| {
                let speedup_text = |other| format!("{:.2}", speedup(outcome, other));
                format!(
                    "{} and {}; average lengths {}",
                    speedup_text(PAPER[1]),
                    speedup_text(PAPER[2]),
                    PAPER
                        .map(|name| format!("{:.2}", average(outcome, name)))
                        .join(", ")
                )
            }),
            verdict: Verdict::for_most(fast, traces, "less than 1.15 against one of them"),
        },
        Claim {
            place: "eq. 5",
            paper: "Failed lookups are those of tuples whose references decrease by a ratio r.",
            measured: format!("{} of {} sorted tuple spaces within 10 %", eq5.0, eq5.1),
            verdict: Verdict::for_most(eq5.0, eq5.1, "others differ by more"),
        },
        Claim {
            place: "eq. 6",
            paper: "With many tuples they are about r/(1 − r).",
            measured: format!("{} of {} within 10 %", eq6.0, eq6.1),
            verdict: Verdict::for_most(
                eq6.0,
                eq6.1,
                "16 tuples are not many enough: r^L is not near 0",
            ),
        },
        Claim {
            place: "eq. 7",
            paper: "The search length of a miss follows from failed lookups and the load factor.",
            measured: format!(
                "{} of {} within 10 %, with eq. 5 in place of eq. 6; {} with the load factor of each \
                 tuple",
                eq7.0, eq7.1, eq7_by_tuple.0
            ),
            verdict: match (eq7.0 == eq7.1, eq7_by_tuple.0 == eq7.1) {
                (true, _) => Verdict::Holds,
                (false, true) => Verdict::InPart(
                    "frequent tuples have more entries than others, so one load factor for all is \
                     too low; it holds with the load factor of each tuple"
                        .to_owned(),
                ),
                _ => Verdict::Fails("the differences are greater".to_owned()),
            },
        },
        Claim {
            place: "eq. 8",
            paper: "The average search length follows from the hit rate and the length of a miss.",
            measured: format!(
                "{} of {} within 10 %; {} with the load factor of each tuple",
                eq8.0, eq8.1, eq8_by_tuple.0
            ),
            verdict: match (eq8.0 == eq8.1, eq8_by_tuple.0 == eq8.1) {
                (true, _) => Verdict::Holds,
                (false, true) => {
                    Verdict::InPart("with the load factor of each tuple, as eq. 7".to_owned())
                }
                _ => Verdict::Fails("as with eq. 7".to_owned()),
            },
        },
    ]
}
