//! [FTS25] Figs. 13 and 14: average search lengths; and eqs. 5 to 8 compared with
//! measurement.
//!
//! [FTS25]: classyard::papers#fts25

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::formulas::{failed, failed_of_many, fitted_ratio, miss_length, search_length};
use super::stream::{Outcome, SchemeOutcome};
use super::traffic::Traffic;
use super::{TRACES, percent};
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Grid, Part, Section, Threshold};
use crate::reproduce::comparison::csv_line;
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::coordinate;

/// The greatest deviation of a formula from the measured value, as a share.
const MAX_DEVIATION: f64 = 0.1;

/// A search length of a scheme.
type Length = fn(&SchemeOutcome) -> f64;

/// The paper's schemes.
const PAPER: [&str; 3] = ["FastTSS", "CuckooFlow", "Open vSwitch"];

/// The pictures, and the caption of the first one.
const AFTER_MISSES: &str = "search-length-tuples.svg";
const OF_ALL: &str = "search-length-all.svg";
const NO_NUMBERS: &str = "The paper draws the same quantity in Fig. 13 and states no number.";

/// Draws the figures.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let traffic = Traffic::measure(study)?;
    let names: Vec<String> = traffic.outcomes[0]
        .schemes
        .iter()
        .map(|one| one.name.clone())
        .collect();
    let mut rows = Vec::new();
    for (trace, outcome) in traffic.pairs() {
        let trace = csv_line([trace]);
        rows.extend(outcome.schemes.iter().map(|scheme| {
            format!(
                "{trace},{},{},{:.5},{:.4},{:.4},{:.4},{:.4}",
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
    study.write_csv(&traffic.file("search-length.csv"), heading, &rows)?;
    let figures: [(&str, &str, Length); 2] = [
        (
            AFTER_MISSES,
            "Search length in the tuple space after a miss ([FTS25] Fig. 13)",
            SchemeOutcome::mean_length,
        ),
        (
            OF_ALL,
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
        let pairs = traffic.pairs().zip(Mark::ALL.iter().cycle());
        let series = pairs.map(|((trace, outcome), &mark)| {
            let points = outcome.schemes.iter().enumerate();
            let points = points.map(|(place, scheme)| (coordinate(place), length(scheme)));
            Series::marked(trace, trace, mark, points)
        });
        let mut series: Vec<Series> = series.collect();
        let name = traffic.file(name);
        match name.as_str() {
            AFTER_MISSES => study.caption(&name, NO_NUMBERS),
            OF_ALL => {
                study.add_paper(&name, &paper_values(&names), &mut series);
            }
            _ => {}
        }
        study.draw_groups(&name, &chart, &names, &series)?;
        pictures.push(name);
    }
    Ok(Section {
        title: traffic.title("Average search length (Figs. 13 and 14, eqs. 5 to 8, §6.3)"),
        method: format!(
            "{} 16 tuples of 2^9 buckets, λ = 4, caches of 8k flows, wef and cuckoo with a \
             threshold of 256 ms and the latest packet of each flow entry (Alg. 1), or of each flow \
             (FastTSS, by flow). Metrics change by packets whose flows do not enter the cache. The \
             search length is the number of entries that are compared, \
             and 1 for the cache. Tuples that are not sorted stay in the order in which their \
             first packets came, so frequent ones are among the first already; in a random order \
             (L − 1)/2 lookups fail. r is the most likely ratio for how often tuples were \
             referenced: the one whose mean by eq. 5 is that of a static order by reference. \
             α is the mean of tuples, while packets come.",
            traffic.description
        ),
        claims: claims(traffic.claimed()),
        grids: vec![measured_grid(&traffic), formula_grid(&traffic)],
        pictures,
    })
}

/// Returns the bars of Fig. 14. `schemes` has the names of the groups.
pub(super) fn paper_values(schemes: &[String]) -> PaperValues {
    TRACES
        .iter()
        .fold(PaperValues::new("stated in §6.3"), |values, trace| {
            let lengths = PAPER.iter().zip(trace.search_lengths);
            let bars = lengths.filter_map(|(name, length)| {
                let place = schemes.iter().position(|scheme| scheme == name)?;
                Some((coordinate(place), length))
            });
            values.bars(trace.name, bars)
        })
}

fn scheme<'a>(outcome: &'a Outcome, name: &str) -> &'a SchemeOutcome {
    let scheme = outcome.schemes.iter().find(|scheme| scheme.name == name);
    scheme.expect("all traces have all schemes")
}

fn measured_grid(traffic: &Traffic) -> Grid {
    let mut rows = Vec::new();
    for (index, (trace, outcome)) in traffic.pairs().enumerate() {
        let of_paper = traffic.of_paper(index);
        for one in &outcome.schemes {
            let paper = PAPER.iter().position(|name| *name == one.name);
            rows.push(vec![
                trace.clone(),
                one.name.clone(),
                percent(one.hit_rate()),
                format!("{:.2}", one.mean_failed()),
                format!("{:.2}", one.mean_length()),
                format!("{:.2}", one.average()),
                paper
                    .zip(of_paper)
                    .map_or("–".to_owned(), |(place, trace)| {
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

fn formula_grid(traffic: &Traffic) -> Grid {
    let mut rows = Vec::new();
    for (trace, outcome) in traffic.pairs() {
        for one in outcome.schemes.iter().filter(|scheme| scheme.is_sorted) {
            let by = predicted(one);
            rows.push(vec![
                trace.clone(),
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

/// Returns a case for each trace, with a value that is the same in every run.
fn each(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> Vec<Case> {
    let pairs = TRACES.iter().zip(outcomes);
    let cases = pairs.map(|(trace, outcome)| Case::exact(trace.name, value(outcome)));
    cases.collect()
}

/// The paper's least ratio of search lengths.
const SHORTER_RATIO: f64 = 1.15;

fn claims(outcomes: &[Outcome]) -> Vec<Claim> {
    let length = |outcome: &Outcome, name| scheme(outcome, name).mean_length();
    let average = |outcome: &Outcome, name| scheme(outcome, name).average();
    let sorting = |outcome: &Outcome| {
        let [unsorted, sorted] = ["wef, unsorted", "FastTSS"];
        length(outcome, unsorted) / length(outcome, sorted)
    };
    let mut shorter = Claim::new(
        "Fig. 13",
        "The search in the tuple space is shorter with FastTSS than with CuckooFlow and Open \
         vSwitch, whose tuples are not sorted.",
    );
    let mut fast = Claim::new(
        "Fig. 14",
        "FastTSS searches 1.15 to 2.30 times as short as CuckooFlow and Open vSwitch.",
    );
    for (index, other) in PAPER.iter().enumerate().skip(1) {
        shorter = shorter.part(
            Part::new(
                format!("search length, {other} / FastTSS"),
                Threshold::Above(1.0),
            )
            .cases(each(outcomes, |outcome| {
                length(outcome, other) / length(outcome, PAPER[0])
            }))
            .picture(AFTER_MISSES),
        );
        let mut part = Part::new(
            format!("average search length, {other} / FastTSS"),
            Threshold::AtLeast(SHORTER_RATIO),
        );
        let speedups = TRACES
            .each_ref()
            .map(|trace| trace.search_lengths[index] / trace.search_lengths[0]);
        part = part.paper(speedups[0].min(speedups[1]));
        fast = fast.part(part.cases(each(outcomes, |outcome| {
            average(outcome, other) / average(outcome, PAPER[0])
        })));
    }
    let mut claims = vec![
        shorter,
        Claim::new(
            "§6.3",
            "Sorting shortens the search in the tuple space; of all that is compared, by 1.15 to \
             2.3.",
        )
        .part(
            Part::new(
                "search length with the same cache, unsorted / sorted",
                Threshold::AtLeast(SHORTER_RATIO),
            )
            .cases(each(outcomes, sorting)),
        ),
        fast,
    ];
    claims.extend(equations(outcomes));
    claims
}

/// Claims about the formulas, each compared with all sorted tuple spaces.
fn equations(outcomes: &[Outcome]) -> Vec<Claim> {
    let compare = |place, paper, formula: fn(&SchemeOutcome, &Predicted) -> f64| {
        let mut part = Part::new(
            "by the formula / measured",
            Threshold::Within(1.0 - MAX_DEVIATION, 1.0 + MAX_DEVIATION),
        )
        .paper(1.0);
        for (trace, outcome) in TRACES.iter().zip(outcomes) {
            for one in outcome.schemes.iter().filter(|one| one.is_sorted) {
                let name = format!("{}, {}", trace.name, one.name);
                part = part.case(Case::exact(name, formula(one, &predicted(one))));
            }
        }
        Claim::new(place, paper).part(part)
    };
    vec![
        compare(
            "eq. 5",
            "Failed lookups are those of tuples whose references decrease by a ratio r.",
            |one, by| by.failed / one.mean_failed().max(1e-9),
        ),
        compare(
            "eq. 6",
            "With many tuples they are about r/(1 − r).",
            |one, by| by.failed_of_many / one.mean_failed().max(1e-9),
        ),
        compare(
            "eq. 7",
            "The search length of a miss follows from failed lookups and the load factor.",
            |one, by| by.miss / (1.0 + one.mean_length()),
        ),
        compare(
            "eq. 8",
            "The average search length follows from the hit rate and the length of a miss.",
            |one, by| by.average / one.average_of_found().max(1e-9),
        ),
    ]
}
