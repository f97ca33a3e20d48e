//! [SFL17] Fig. 5: changes, and lookups after them, measured separately.
//!
//! [SFL17]: classyard::papers#sfl17

use classyard::{Limits, NoProgress, Transaction, Winner};
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::cases::Kind;
use super::simulator::after;
use super::{DYNAMIC, STATIC, Study, buffered, spec, wrong_answers};
use crate::bench::timed;
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::reproduce::statistics::{Mean, coordinate};

/// Numbers of changes in the paper.
const CHANGES: [usize; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

/// Numbers of changes of a quick reproduction.
const FEW_CHANGES: [usize; 3] = [10, 50, 100];

/// A δ above the number of changes: nothing is rebuilt in this experiment.
const UNREACHED_DELTA: usize = 1_000;

/// The number of timed builds, at most, of an engine that takes no changes; the other
/// builds are assumed to take as long.
const MAX_TIMED_BUILDS: usize = 3;

/// Headers whose answers are compared with a scan.
const CHECKED_HEADERS: usize = 500;

/// Measured values of one rule set.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Timed {
    /// The time of all changes together.
    seconds: f64,
    /// The time of a lookup after the changes.
    lookup_ns: f64,
    wrong: usize,
}

/// Means over rule sets, of one engine.
#[derive(Clone, Copy)]
struct Means {
    /// The time of all changes, at the greatest number of changes.
    seconds: Mean,
    /// The time of a lookup after the fewest changes.
    first_lookup: Mean,
    /// The time of a lookup after the most changes.
    lookup: Mean,
}

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let changes: &[usize] = if study.args.quick {
        &FEW_CHANGES
    } else {
        &CHANGES
    };
    let mut engines: Vec<String> = DYNAMIC.map(str::to_owned).to_vec();
    for inner in STATIC {
        engines.extend([inner.to_owned(), buffered(inner, UNREACHED_DELTA)]);
        engines.push(format!(
            "{}{}",
            buffered(inner, UNREACHED_DELTA),
            ":form=paper"
        ));
    }
    study.expect_points(Kind::BOTH.len() * engines.len() * changes.len() * study.sets());
    let mut section = Section {
        title: "Changes and lookups, each for itself (Fig. 5)".to_owned(),
        method: format!(
            "{} rules at the beginning, {} rule sets for each point, 90 % confidence intervals. \
             The time of all changes together, then that of a lookup, one header at a time. An \
             engine that takes no changes is built anew for each; {MAX_TIMED_BUILDS} of these builds are \
             timed and the others taken to last as long. sfl is never rebuilt here, as in the \
             paper; the published form (form=paper) keeps the paper's algorithms to the letter.",
            study.sizes(&[super::DEFAULT_RULES])[0],
            study.sets()
        ),
        claims: Vec::new(),
        grids: Vec::new(),
        pictures: Vec::new(),
    };
    let mut wrong = 0;
    let mut rows = Vec::new();
    // means[kind][engine]
    let mut means: Vec<Vec<Means>> = Vec::new();
    for kind in Kind::BOTH {
        let (mut update_lines, mut lookup_lines) = (Vec::new(), Vec::new());
        let mut last = Vec::new();
        for engine in &engines {
            let (mut updating, mut looking) = (Vec::new(), Vec::new());
            for &count in changes {
                let (mut seconds, mut lookups) = (Vec::new(), Vec::new());
                for set in 0..study.sets() {
                    let timed = measure(study, engine, kind, count, set)?;
                    wrong += timed.wrong;
                    rows.push(format!(
                        "{},{engine},{count},{set},{:.9},{:.2}",
                        kind.name(),
                        timed.seconds,
                        timed.lookup_ns
                    ));
                    seconds.push(timed.seconds);
                    lookups.push(timed.lookup_ns);
                }
                updating.push((coordinate(count), Mean::of(&seconds)));
                looking.push((coordinate(count), Mean::of(&lookups)));
            }
            update_lines.push(line(engine, &updating, 1e3));
            lookup_lines.push(line(engine, &looking, 1.0));
            let mean = |point: Option<&(f64, Mean)>| point.map_or(Mean::default(), |one| one.1);
            last.push(Means {
                seconds: mean(updating.last()),
                first_lookup: mean(looking.first()),
                lookup: mean(looking.last()),
            });
        }
        for (what, label, lines) in [
            ("changes", "milliseconds, all changes", update_lines),
            ("lookups", "nanoseconds a header", lookup_lines),
        ] {
            let title = match what {
                "changes" => format!("Time of {} ([SFL17] Fig. 5)", kind.name()),
                _ => format!("Lookups after {} ([SFL17] Fig. 5)", kind.name()),
            };
            let chart = Chart {
                title: &title,
                x_label: kind.name(),
                y_label: label,
                log_x: false,
                log_y: true,
            };
            let name = format!("operations-{}-{what}.svg", kind.name());
            study.draw(&name, &chart, &lines)?;
            section.pictures.push(name);
        }
        section.grids.push(grid(kind, changes, &engines, &last));
        means.push(last);
    }
    study.write_csv(
        "operations.csv",
        "kind,engine,changes,set,seconds,lookup_ns",
        &rows,
    )?;
    section.claims = claims(&engines, &means);
    wrong_answers(&mut section, wrong);
    Ok(section)
}

/// Returns an engine's name without the δ that is the same for all.
fn label(engine: &str) -> String {
    let name = engine.replace(&format!(":delta={UNREACHED_DELTA}"), "");
    name.replace(":form=paper", ", published form")
}

/// Returns a line with its confidence intervals.
fn line(engine: &str, points: &[(f64, Mean)], scale: f64) -> Series {
    let inner = STATIC.iter().find(|inner| engine.contains(**inner));
    let mark = match engine {
        _ if engine.contains("form=paper") => Mark::Triangle,
        _ if engine.starts_with("sfl") => Mark::Square,
        _ => Mark::Circle,
    };
    let coordinates = points.iter().map(|(x, mean)| (*x, mean.mean * scale));
    let mut series = Series::marked(&label(engine), inner.unwrap_or(&engine), mark, coordinates);
    // A logarithmic axis cannot show values below zero.
    let positive = points.iter().filter(|(_, mean)| mean.interval().0 > 0.0);
    series.band = positive
        .map(|(x, mean)| {
            let (low, high) = mean.interval();
            (*x, low * scale, high * scale)
        })
        .collect();
    series
}

fn grid(kind: Kind, changes: &[usize], engines: &[String], means: &[Means]) -> Grid {
    let max_changes = changes.last().copied().unwrap_or(0);
    let rows = engines.iter().zip(means).map(|(engine, means)| {
        let (seconds, lookup) = (means.seconds, means.lookup);
        let mut milliseconds = seconds;
        milliseconds.mean *= 1e3;
        milliseconds.half_width = milliseconds.half_width.map(|half| half * 1e3);
        let micros = seconds.mean * 1e6 / coordinate(max_changes.max(1));
        vec![
            engine.clone(),
            format!("{milliseconds:.3}"),
            format!("{micros:.2}"),
            format!("{lookup:.1}"),
        ]
    });
    Grid {
        title: format!("{max_changes} {}", kind.name()),
        columns: ["engine", "ms, all", "µs a change", "ns a lookup after them"]
            .map(str::to_owned)
            .to_vec(),
        words: 1,
        rows: rows.collect(),
    }
}

/// Times changes and lookups with one rule set, or returns the stored times.
fn measure(
    study: &mut Study<'_>,
    engine: &str,
    kind: Kind,
    changes: usize,
    set: usize,
) -> Result<Timed, Failure> {
    let point = format!("operations {engine} {changes} {}, set {set}", kind.name());
    study.point(&point, |study| {
        let case = study.sfl17_case(kind, changes, set)?;
        let (case_changes, spec) = (case.changes(), spec(engine));
        let build = |count: usize| {
            let rules = after(case.initial(), &case_changes[..count]);
            timed(|| spec.build(&rules, &Limits::default(), &mut NoProgress))
        };
        let (classifier, seconds) = if spec.is_dynamic() {
            let mut classifier = build(0).0?;
            let dynamic = classifier.as_dynamic().expect("a dynamic engine");
            let ((), seconds) = timed(|| {
                let mut transaction = Transaction::new();
                for &change in &case_changes {
                    transaction.clear();
                    transaction.push(change);
                    let applied = dynamic.apply(&transaction);
                    applied.expect("the changes are of these rules");
                }
            });
            (classifier, seconds)
        } else {
            // The last build is over all changes.
            let builds = MAX_TIMED_BUILDS.min(changes);
            let counts = (1..=builds).map(|build| changes * build / builds);
            let (mut last, mut sum) = (None, 0.0);
            for count in counts {
                let (classifier, seconds) = build(count);
                last = Some(classifier?);
                sum += seconds;
            }
            let classifier = last.expect("at least one change");
            (classifier, sum / coordinate(builds) * coordinate(changes))
        };
        let rules = after(case.initial(), &case_changes);
        let headers = case.headers();
        let (folded, looking) = timed(|| {
            let winners = headers.as_slice().iter();
            winners.fold(0, |folded, key| {
                folded ^ classifier.classify_one(key).rank()
            })
        });
        std::hint::black_box(folded);
        let checked = headers.as_slice().iter().take(CHECKED_HEADERS);
        let wrong = checked.filter(|key| {
            let winner: Winner = classifier.classify_one(key);
            winner != rules.scan(key)
        });
        Ok(Timed {
            seconds,
            lookup_ns: looking * 1e9 / coordinate(headers.len().max(1)),
            wrong: wrong.count(),
        })
    })
}

fn claims(engines: &[String], means: &[Vec<Means>]) -> Vec<Claim> {
    let index_of = |engine: &str| {
        let index = engines.iter().position(|one| one == engine);
        index.expect("one of the engines")
    };
    let engine_means = |kind: usize, engine: &str| means[kind][index_of(engine)];
    let seconds = |kind: usize, engine: &str| engine_means(kind, engine).seconds.mean;
    let lookup = |kind: usize, engine: &str| engine_means(kind, engine).lookup.mean;
    let (mut cheaper, mut slower_than_dynamic) = (0, Vec::new());
    let (mut faster, mut not_faster) = (0, Vec::new());
    let mut ratios = Vec::new();
    let (mut static_faster, mut rfc_first, mut slowed, mut paper_slowed) = (0, 0, 0, 0);
    let (mut dynamic_cheaper, mut slowest_ratio) = (Vec::new(), f64::INFINITY);
    for kind in 0..Kind::BOTH.len() {
        for inner in STATIC {
            let sfl = buffered(inner, UNREACHED_DELTA);
            ratios.push(seconds(kind, inner) / seconds(kind, &sfl));
            for dynamic in DYNAMIC {
                let ratio = seconds(kind, inner) / seconds(kind, dynamic);
                slowest_ratio = ratio.min(slowest_ratio);
                dynamic_cheaper.push(ratio >= 100.0);
            }
            let fastest = STATIC.map(|engine| lookup(kind, engine));
            let fastest = fastest.into_iter().fold(f64::INFINITY, f64::min);
            rfc_first += usize::from(inner == "rfc" && lookup(kind, inner) <= fastest);
            let slow = |engine: &str| {
                let means = engine_means(kind, engine);
                means.lookup.mean > means.first_lookup.mean
            };
            slowed += usize::from(slow(&sfl));
            paper_slowed += usize::from(slow(&format!("{sfl}:form=paper")));
            let min_seconds = DYNAMIC.map(|engine| seconds(kind, engine));
            let min_seconds = min_seconds.into_iter().fold(f64::INFINITY, f64::min);
            if seconds(kind, &sfl) <= min_seconds {
                cheaper += 1;
            } else {
                let times = seconds(kind, &sfl) / min_seconds;
                slower_than_dynamic.push(format!("{} {times:.2}×", label(&sfl)));
            }
            let min_lookup = DYNAMIC.map(|engine| lookup(kind, engine));
            let min_lookup = min_lookup.into_iter().fold(f64::INFINITY, f64::min);
            static_faster += usize::from(lookup(kind, inner) < min_lookup);
            if lookup(kind, &sfl) < min_lookup {
                faster += 1;
            } else {
                not_faster.push(label(&sfl));
            }
        }
    }
    let least_ratio = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let combinations = Kind::BOTH.len() * STATIC.len();
    vec![
        Claim {
            place: "Figs. 5a, 5b",
            paper: "An engine that takes no changes needs orders of magnitude more time for \
                    changes than the same engine with an update buffer.",
            measured: format!("at least {least_ratio:.0} times as long"),
            verdict: Verdict::of(least_ratio >= 100.0, "less than 100 times as long"),
        },
        Claim {
            place: "Figs. 5a, 5b",
            paper: "Engines with an update buffer need the least time for changes, less than \
                    linear search and tuple space search.",
            measured: format!("{cheaper} of {combinations} combinations need the least time"),
            verdict: Verdict::for_most(
                cheaper,
                combinations,
                &format!(
                    "beside the cheaper of linear and tss the others need {}",
                    slower_than_dynamic.join(", ")
                ),
            ),
        },
        Claim {
            place: "Figs. 5c, 5d",
            paper: "After up to 100 changes, engines with an update buffer classify much faster \
                    than linear search and tuple space search.",
            measured: format!("{faster} of {combinations} combinations are faster than both"),
            verdict: Verdict::for_most(
                faster,
                combinations,
                &format!("not faster: {}", not_faster.join(", ")),
            ),
        },
        Claim {
            place: "Figs. 5a, 5b",
            paper: "Linear search and tuple space search make changes several orders of magnitude \
                    faster than engines that are built anew.",
            measured: format!("at least {slowest_ratio:.0} times as fast"),
            verdict: Verdict::for_most(
                dynamic_cheaper.iter().filter(|cheaper| **cheaper).count(),
                dynamic_cheaper.len(),
                "less than 100 times as fast in other combinations",
            ),
        },
        Claim {
            place: "Figs. 5c, 5d",
            paper: "Without update buffers, RFC, HyperSplit and bit vectors clearly beat linear \
                    search and tuple space search; RFC is the fastest.",
            measured: format!(
                "{static_faster} of {combinations} combinations are faster than both; RFC is the \
                 fastest after {rfc_first} of 2 kinds of changes"
            ),
            verdict: match (static_faster == combinations, rfc_first) {
                (true, 2) => Verdict::Holds,
                (true, _) => Verdict::InPart("RFC is not always the fastest".to_owned()),
                (false, _) => Verdict::InPart("some are not faster".to_owned()),
            },
        },
        Claim {
            place: "Figs. 5c, 5d",
            paper: "Lookups of engines with an update buffer get slower as changes gather in it.",
            measured: format!(
                "from the fewest to the most changes {slowed} of {combinations} get slower; in the \
                 published form {paper_slowed} of {combinations}"
            ),
            verdict: Verdict::for_most(
                slowed,
                combinations,
                "by less than runs differ in other combinations",
            ),
        },
    ]
}
