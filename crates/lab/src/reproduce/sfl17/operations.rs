//! [SFL17] Fig. 5: changes, and lookups after them, measured separately.
//!
//! [SFL17]: classyard::papers#sfl17

use std::error::Error;

use classyard::{EngineSpec, Limits, NoProgress, Transaction, Winner};
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::cases::{Case as SetCase, Kind};
use super::simulator::after;
use super::{DYNAMIC, STATIC, Study, buffered, published, spec, wrong_answers};
use crate::bench::timed;
use crate::reproduce::claims::{Case, Claim, Grid, Part, Section, Threshold};
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
pub(super) struct Timed {
    /// The time of all changes together.
    pub(super) seconds: f64,
    /// The time of a lookup after the changes.
    pub(super) lookup_ns: f64,
    pub(super) wrong: usize,
}

/// Measured values of one engine, one for each rule set.
#[derive(Clone, Default)]
struct Sampled {
    /// Times of all changes, at the greatest number of changes.
    seconds: Vec<f64>,
    /// Times of a lookup after the fewest changes.
    first_lookup: Vec<f64>,
    /// Times of a lookup after the most changes.
    lookup: Vec<f64>,
}

/// The time for changes of a rebuilt engine, over the time with a buffer: orders of magnitude.
const MAGNITUDES_RATIO: f64 = 100.0;

/// The ratio that we take for "much faster".
const MUCH_FASTER_RATIO: f64 = 2.0;

/// The caption of all pictures.
const NO_NUMBERS: &str = "The paper draws the same quantity in Fig. 5 and states no number.";

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let changes: &[usize] = if study.args.quick {
        &FEW_CHANGES
    } else {
        &CHANGES
    };
    let engines = engines();
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
    // sampled[kind][engine]
    let mut sampled: Vec<Vec<Sampled>> = Vec::new();
    for kind in Kind::BOTH {
        let (mut update_lines, mut lookup_lines) = (Vec::new(), Vec::new());
        let mut last = Vec::new();
        for engine in &engines {
            let (mut updating, mut looking) = (Vec::new(), Vec::new());
            let mut of_engine = Sampled::default();
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
                if of_engine.first_lookup.is_empty() {
                    of_engine.first_lookup.clone_from(&lookups);
                }
                (of_engine.seconds, of_engine.lookup) = (seconds, lookups);
            }
            update_lines.push(line(engine, &updating, 1e3));
            lookup_lines.push(line(engine, &looking, 1.0));
            last.push(of_engine);
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
            study.caption(&name, NO_NUMBERS);
            study.draw(&name, &chart, &lines)?;
            section.pictures.push(name);
        }
        section.grids.push(grid(kind, changes, &engines, &last));
        sampled.push(last);
    }
    study.write_csv(
        "operations.csv",
        "kind,engine,changes,set,seconds,lookup_ns",
        &rows,
    )?;
    section.claims = claims(&engines, &sampled);
    wrong_answers(&mut section, wrong);
    Ok(section)
}

/// Returns the engines of the figure.
pub(super) fn engines() -> Vec<String> {
    let mut engines: Vec<String> = DYNAMIC.map(str::to_owned).to_vec();
    for inner in STATIC {
        engines.extend([inner.to_owned(), buffered(inner, UNREACHED_DELTA)]);
        engines.push(published(inner, UNREACHED_DELTA));
    }
    engines
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

fn grid(kind: Kind, changes: &[usize], engines: &[String], sampled: &[Sampled]) -> Grid {
    let max_changes = changes.last().copied().unwrap_or(0);
    let rows = engines.iter().zip(sampled).map(|(engine, sampled)| {
        let (seconds, lookup) = (Mean::of(&sampled.seconds), Mean::of(&sampled.lookup));
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
        time(&case, &spec(engine)).map_err(|error| Failure::usage(error.to_string()))
    })
}

/// Times the changes of a case, and lookups after them.
///
/// # Errors
/// If the engine cannot be built, or refuses a change.
pub(super) fn time(case: &SetCase, spec: &EngineSpec) -> Result<Timed, Box<dyn Error>> {
    let case_changes = case.changes();
    let changes = case_changes.len();
    let build = |count: usize| {
        let rules = after(case.initial(), &case_changes[..count]);
        timed(|| spec.build(&rules, &Limits::default(), &mut NoProgress))
    };
    let (classifier, seconds) = if spec.is_dynamic() {
        let mut classifier = build(0).0?;
        let dynamic = classifier.as_dynamic().expect("a dynamic engine");
        let (applied, seconds) = timed(|| {
            let mut transaction = Transaction::new();
            case_changes.iter().try_for_each(|&change| {
                transaction.clear();
                transaction.push(change);
                dynamic.apply(&transaction)
            })
        });
        applied?;
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
}

/// The measured values of all engines, for claims.
struct Comparison<'a> {
    engines: &'a [String],
    /// By kind and engine.
    sampled: &'a [Vec<Sampled>],
}

impl Comparison<'_> {
    fn of(&self, kind: usize, engine: &str) -> &Sampled {
        let index = self.engines.iter().position(|one| one == engine);
        &self.sampled[kind][index.expect("one of the engines")]
    }

    /// Returns the ratios of engine `a`'s values to engine `b`'s, one for each rule set.
    fn ratio(&self, kind: usize, a: &str, b: &str, values: fn(&Sampled) -> &[f64]) -> Case {
        let pairs = values(self.of(kind, a))
            .iter()
            .zip(values(self.of(kind, b)));
        let name = format!("{} / {}, {}", label(a), label(b), Kind::BOTH[kind].name());
        Case::samples(name, pairs.map(|(a, b)| a / b))
    }

    /// Returns a case for each kind of changes, each engine that takes no changes, and
    /// each of `others`. `pair` receives the first engine's and the other's name.
    fn each(
        &self,
        others: &[&str],
        values: fn(&Sampled) -> &[f64],
        pair: impl Fn(&str, &str) -> (String, String),
    ) -> Vec<Case> {
        let mut cases = Vec::new();
        for kind in 0..Kind::BOTH.len() {
            for inner in STATIC {
                for other in others {
                    let (a, b) = pair(inner, other);
                    cases.push(self.ratio(kind, &a, &b, values));
                }
            }
        }
        cases
    }

    /// Returns the ratios of lookup times after the most changes to those after the
    /// fewest.
    fn slowing(&self, engine: impl Fn(&str) -> String) -> Vec<Case> {
        let mut cases = Vec::new();
        for (kind, name) in Kind::BOTH.iter().enumerate() {
            for inner in STATIC {
                let sampled = self.of(kind, &engine(inner));
                let pairs = sampled.lookup.iter().zip(&sampled.first_lookup);
                let name = format!("{inner}, {}", name.name());
                cases.push(Case::samples(name, pairs.map(|(last, first)| last / first)));
            }
        }
        cases
    }
}

/// Returns the claims without any measurement.
pub(super) fn unmeasured_claims() -> Vec<Claim> {
    let engines = engines();
    let nothing = vec![vec![Sampled::default(); engines.len()]; Kind::BOTH.len()];
    claims(&engines, &nothing)
}

fn claims(engines: &[String], sampled: &[Vec<Sampled>]) -> Vec<Claim> {
    let compared = Comparison { engines, sampled };
    let mut claims = changes_claims(&compared);
    claims.extend(lookup_claims(&compared));
    claims
}

/// An engine with an update buffer that is never rebuilt.
fn sfl(inner: &str) -> String {
    buffered(inner, UNREACHED_DELTA)
}

/// Claims about the time of changes (Figs. 5a and 5b).
fn changes_claims(compared: &Comparison<'_>) -> Vec<Claim> {
    let seconds: fn(&Sampled) -> &[f64] = |sampled| &sampled.seconds;
    vec![
        Claim::new(
            "Figs. 5a, 5b",
            "An engine that takes no changes needs orders of magnitude more time for changes than \
             the same engine with an update buffer.",
        )
        .part(
            Part::new(
                "time of all changes: without / with an update buffer",
                Threshold::AtLeast(MAGNITUDES_RATIO),
            )
            .cases(compared.each(&[""], seconds, |inner, _| (inner.to_owned(), sfl(inner))))
            .picture("operations-insertions-changes.svg"),
        ),
        Claim::new(
            "Figs. 5a, 5b",
            "Engines with an update buffer need the least time for changes, less than linear \
             search and tuple space search.",
        )
        .part(
            Part::new(
                "time of all changes: with an update buffer / linear or tss",
                Threshold::Below(1.0),
            )
            .cases(compared.each(&DYNAMIC, seconds, |inner, other| {
                (sfl(inner), other.to_owned())
            }))
            .picture("operations-insertions-changes.svg"),
        ),
        Claim::new(
            "Figs. 5a, 5b",
            "Linear search and tuple space search make changes several orders of magnitude faster \
             than engines that are built anew.",
        )
        .part(
            Part::new(
                "time of all changes: built anew / linear or tss",
                Threshold::AtLeast(MAGNITUDES_RATIO),
            )
            .cases(compared.each(&DYNAMIC, seconds, |inner, other| {
                (inner.to_owned(), other.to_owned())
            }))
            .picture("operations-insertions-changes.svg"),
        ),
    ]
}

/// Claims about lookups after the changes (Figs. 5c and 5d).
fn lookup_claims(compared: &Comparison<'_>) -> Vec<Claim> {
    let lookups: fn(&Sampled) -> &[f64] = |sampled| &sampled.lookup;
    let fastest = Part::new(
        "time of a lookup: hyper-split or bit-vector / rfc",
        Threshold::Above(1.0),
    );
    let fastest = fastest.cases((0..Kind::BOTH.len()).flat_map(|kind| {
        ["hyper-split", "bit-vector"].map(|other| compared.ratio(kind, other, "rfc", lookups))
    }));
    vec![
        Claim::new(
            "Figs. 5c, 5d",
            "After up to 100 changes, engines with an update buffer classify much faster than \
             linear search and tuple space search.",
        )
        .part(
            Part::new(
                "time of a lookup: linear or tss / with an update buffer",
                Threshold::AtLeast(MUCH_FASTER_RATIO),
            )
            .cases(compared.each(&DYNAMIC, lookups, |inner, other| {
                (other.to_owned(), sfl(inner))
            }))
            .picture("operations-insertions-lookups.svg"),
        ),
        Claim::new(
            "Figs. 5c, 5d",
            "Without update buffers, RFC, HyperSplit and bit vectors clearly beat linear search \
             and tuple space search; RFC is the fastest.",
        )
        .part(
            Part::new(
                "time of a lookup: linear or tss / built anew",
                Threshold::Above(1.0),
            )
            .cases(compared.each(&DYNAMIC, lookups, |inner, other| {
                (other.to_owned(), inner.to_owned())
            }))
            .picture("operations-insertions-lookups.svg"),
        )
        .part(fastest.picture("operations-insertions-lookups.svg")),
        Claim::new(
            "Figs. 5c, 5d",
            "Lookups of engines with an update buffer get slower as changes gather in it.",
        )
        .part(
            Part::new(
                "time of a lookup, published form: after the most / the fewest changes",
                Threshold::Above(1.0),
            )
            .cases(compared.slowing(|inner| format!("{}:form=paper", sfl(inner))))
            .picture("operations-insertions-lookups.svg"),
        )
        .part(
            Part::new(
                "time of a lookup, our form: after the most / the fewest changes",
                Threshold::Above(1.0),
            )
            .cases(compared.slowing(sfl))
            .picture("operations-insertions-lookups.svg"),
        ),
    ]
}
