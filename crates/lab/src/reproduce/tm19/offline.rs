//! [TM19] Fig. 5 and §IV.D: engines that know all rules from the start.
//!
//! [TM19]: classyard::papers#tm19

use std::time::Duration;

use classyard::{EngineSpec, NoProgress, Policy, PolicyTrace};
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use classyard_report::input::build_limits::BuildLimits;
use serde::{Deserialize, Serialize};

use super::sheet::Sheet;
use super::tables;
use crate::bench::{SCANNED_RULES, Spread, answers, single_rate, size_name, timed, wrong_answers};
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::coordinate;

/// The paper's engines, SmartSplit and the offline form of TupleMerge, and our forest.
pub(super) const ENGINES: [(&str, &str, Mark); 3] = [
    (
        "tuplemerge-offline",
        "tuplemerge-offline (TM)",
        Mark::Circle,
    ),
    ("smart-split", "smart-split (SS)", Mark::Square),
    ("forest", "forest (ours)", Mark::Cross),
];

/// Indices in [`ENGINES`].
const TUPLE_MERGE: usize = 0;
const SMART_SPLIT: usize = 1;

/// The greatest number of rules, as in the paper.
pub(super) const MOST_RULES: usize = 64_000;

/// Passes over the trace, interleaved over the engines; the median counts.
const TIMED_PASSES: usize = 3;

/// The paper's time of TupleMerge divided by SmartSplit's, at 64k rules.
const PAPER_RATIO: f64 = 2.0;

/// An engine over one rule set, or the reason why it was not built.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Built {
    pub(super) refused: Option<String>,
    pub(super) build_seconds: f64,
    pub(super) index_bytes: usize,
    pub(super) bytes: usize,
    pub(super) lookup_ns: f64,
    pub(super) wrong: usize,
}

/// Values of all engines for each rule set.
#[derive(Default)]
pub(super) struct Measured {
    lookups: Sheet,
    builds: Sheet,
    index_bytes: Sheet,
    refusals: Vec<String>,
    wrong: usize,
}

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let mut sizes = tables::sizes(study);
    let min_size = *sizes.iter().min().expect("at least one size");
    sizes.retain(|&size| size <= MOST_RULES.max(min_size));
    let profiles = study.profiles.clone();
    let names: Vec<String> = profiles.iter().map(|(name, _)| name.clone()).collect();
    study.expect_points(profiles.len() * sizes.len() * study.lists());
    let limit = study.build_time();
    let mut measured = Measured::default();
    let mut rows = Vec::new();
    for (place, &size) in sizes.iter().enumerate() {
        for (number, (name, profile)) in profiles.iter().enumerate() {
            for list in 0..study.lists() {
                let point = format!(
                    "offline {name} {size} {list}, {} headers, {} s",
                    study.headers(),
                    limit.as_secs_f64()
                );
                let built_engines: Vec<Built> = study.point(&point, |study| {
                    let policy = study.policy_of(profile, size, list)?;
                    let trace = study.trace_of(&policy, list)?;
                    let few = study.few_headers(&policy, list)?;
                    Ok(measure(&specs(), &policy, &trace, &few, limit))
                })?;
                let cell = (number, place);
                let column = |value: fn(&Built) -> f64| {
                    let values = built_engines.iter().map(|built| match built.refused {
                        None => value(built),
                        Some(_) => f64::NAN,
                    });
                    values.collect::<Vec<f64>>()
                };
                measured.lookups.add(cell, column(|built| built.lookup_ns));
                measured
                    .builds
                    .add(cell, column(|built| built.build_seconds));
                let bytes = column(|built| coordinate(built.index_bytes));
                measured.index_bytes.add(cell, bytes);
                for ((engine, ..), built) in ENGINES.iter().zip(&built_engines) {
                    measured.wrong += built.wrong;
                    if let Some(reason) = &built.refused {
                        let which = format!("{engine} over {name} {}: {reason}", size_name(size));
                        measured.refusals.push(which);
                    }
                    rows.push(row(name, size, list, engine, built));
                }
            }
        }
    }
    let heading = "profile,rules,list,engine,built,build_seconds,index_bytes,bytes,lookup_ns,wrong";
    study.write_csv("offline.csv", heading, &rows)?;
    let mut section = Section {
        title: "Offline: SmartSplit and TupleMerge (Fig. 5, §IV.D)".to_owned(),
        method: method(study, &measured, limit),
        claims: claims(&measured, &sizes),
        grids: grids(&measured, &sizes, &names),
        pictures: Vec::new(),
    };
    for (file, title, label, sheet, scale) in [
        (
            "lookup",
            "Time of a lookup, all rules known ([TM19] Fig. 5, §IV.D)",
            "nanoseconds a header",
            &measured.lookups,
            1.0,
        ),
        (
            "build",
            "Time to build ([TM19] §IV.D)",
            "CPU seconds",
            &measured.builds,
            1.0,
        ),
        (
            "memory",
            "Memory of the search structure ([TM19] §IV.D)",
            "MiB, rules not counted",
            &measured.index_bytes,
            1.0 / 1_048_576.0,
        ),
    ] {
        let lines = ENGINES
            .iter()
            .enumerate()
            .map(|(engine, (colour_key, label, mark))| {
                line((colour_key, label, *mark), &sizes, sheet, engine, scale)
            });
        let mut lines: Vec<Series> = lines.collect();
        let chart = Chart {
            title,
            x_label: "rules",
            y_label: label,
            log_x: true,
            log_y: true,
        };
        let name = format!("offline-{file}.svg");
        match file {
            "lookup" => study.add_paper(&name, &paper_values(), &mut lines),
            "build" => study.caption(&name, BUILDS_CAPTION),
            _ => study.caption(&name, MEMORY_CAPTION),
        }
        study.draw(&name, &chart, &lines)?;
        section.pictures.push(name);
    }
    Ok(section)
}

/// The paper's nanoseconds a lookup with its greatest number of rules.
const PAPER_LOOKUPS_NS: [(usize, f64); 2] = [(TUPLE_MERGE, 240.0), (SMART_SPLIT, 120.0)];

/// Captions of pictures for which the paper has no number.
const BUILDS_CAPTION: &str = "The paper states no number: TupleMerge takes seconds, and SmartSplit \
                              can take hours.";
const MEMORY_CAPTION: &str = "The paper states no number, only that SmartSplit's memory is \
                              unpredictable.";

/// Returns the lookup times that the text has.
pub(super) fn paper_values() -> PaperValues {
    let values = PaperValues::new("stated in §IV.D as means for 64k rules");
    let lookups = PAPER_LOOKUPS_NS.iter();
    lookups.fold(
        values.on(super::SIMULATOR_MACHINE),
        |values, &(engine, ns)| {
            let (colour_key, label, _) = ENGINES[engine];
            values.curve(label, colour_key, [(coordinate(MOST_RULES), ns)])
        },
    )
}

/// Returns the mean over rule sets against the number of rules, with a band from the
/// least to the greatest value.
fn line(
    (colour_key, label, mark): (&str, &str, Mark),
    sizes: &[usize],
    sheet: &Sheet,
    engine: usize,
    scale: f64,
) -> Series {
    let points = sizes.iter().enumerate().filter_map(|(place, &size)| {
        let mean = sheet.mean(engine, |at| at.1 == place)?;
        Some((coordinate(size), mean * scale))
    });
    let mut series = Series::marked(label, colour_key, mark, points);
    let bands = sizes.iter().enumerate().filter_map(|(place, &size)| {
        let values = sheet.values(engine, |at| at.1 == place);
        let spread = Spread::of(&values).filter(|spread| spread.min > 0.0)?;
        Some((coordinate(size), spread.min * scale, spread.max * scale))
    });
    series.band = bands.collect();
    series
}

fn row(name: &str, size: usize, list: usize, engine: &str, built: &Built) -> String {
    match &built.refused {
        Some(_) => format!("{name},{size},{list},{engine},no,,,,,"),
        None => format!(
            "{name},{size},{list},{engine},yes,{:.6},{},{},{:.2},{}",
            built.build_seconds, built.index_bytes, built.bytes, built.lookup_ns, built.wrong
        ),
    }
}

fn method(study: &Study<'_>, measured: &Measured, limit: Duration) -> String {
    let mut method = format!(
        "{} rule set(s) for each profile and size, at most 64k rules as in the paper. Engines are \
         built over all rules at once; {} headers are looked up one at a time, all engines in \
         turns, and the median of {TIMED_PASSES} passes counts. Builds are CPU seconds, and given up \
         after {} s. Bands have the least and the greatest of all rule sets. smart-split bounds \
         its memory and predicts trees from samples, where the paper's SmartSplit builds until \
         its leaves are short.",
        study.lists(),
        study.headers(),
        limit.as_secs_f64()
    );
    if !measured.refusals.is_empty() {
        method.push_str(&format!(
            " Not built, and left out of means: {}.",
            measured.refusals.join("; ")
        ));
    }
    if measured.wrong > 0 {
        method.push_str(" WRONG: some answers differ from a scan of the rules; see offline.csv.");
    }
    method
}

/// Returns the figure's engines.
fn specs() -> Vec<EngineSpec> {
    let specs = ENGINES.map(|(engine, ..)| {
        let spec = EngineSpec::parse(engine).expect("a registered engine");
        spec.seeded(0)
    });
    specs.to_vec()
}

/// Builds all engines and times their lookups. `few` refills CPU caches.
pub(super) fn measure(
    engines: &[EngineSpec],
    policy: &Policy,
    trace: &PolicyTrace,
    few: &PolicyTrace,
    limit: Duration,
) -> Vec<Built> {
    let limits = BuildLimits::of_time(limit);
    let mut built = Vec::new();
    for spec in engines {
        let (classifier, seconds) = timed(|| {
            limits.build(&mut NoProgress, |limits, progress| {
                policy.build(spec, limits, progress)
            })
        });
        let reason = classifier.as_ref().err().map(ToString::to_string);
        built.push((classifier.ok(), reason, seconds, Vec::new()));
    }
    for _ in 0..TIMED_PASSES {
        for (classifier, .., times) in &mut built {
            if let Some(classifier) = classifier {
                // Refills the CPU caches after the previous engine's pass.
                single_rate(classifier, few);
                times.push(1e9 / single_rate(classifier, trace));
            }
        }
    }
    let classifiers = built.iter().filter_map(|one| one.0.as_ref());
    let winners: Vec<_> = classifiers
        .map(|classifier| answers(classifier, trace))
        .collect();
    let winners: Vec<_> = winners.iter().map(Vec::as_slice).collect();
    let wrong = wrong_answers(policy, trace, &winners, None, SCANNED_RULES / 10);
    let mut wrong = wrong.into_iter();
    let results = built
        .into_iter()
        .map(|(classifier, refused, build_seconds, times)| {
            let stats = classifier
                .iter()
                .flat_map(classyard::PolicyClassifier::parts);
            let stats: Vec<_> = stats.map(|part| part.stats()).collect();
            Built {
                refused,
                build_seconds,
                index_bytes: stats.iter().map(|stats| stats.index_bytes).sum(),
                bytes: stats.iter().map(classyard::Stats::bytes).sum(),
                lookup_ns: Spread::of(&times).map_or(0.0, |times| times.median),
                wrong: classifier.map_or(0, |_| wrong.next().expect("one for each that is built")),
            }
        });
    results.collect()
}

/// The paper's SmartSplit grows trees until their leaves are short, whatever memory that
/// takes.
const UNBOUNDED: Gap = Gap::NotRun("SmartSplit as published, without a bound on memory");

/// Seconds of a build that we still count as "seconds".
const BUILD_SECONDS: f64 = 10.0;

/// The ratio that we take for orders of magnitude.
const MAGNITUDES_RATIO: f64 = 100.0;

/// Returns the claims, which are about the greatest number of rules of the paper.
pub(super) fn claims(measured: &Measured, sizes: &[usize]) -> Vec<Claim> {
    let place = sizes.iter().position(|&size| size == MOST_RULES);
    let case = |name: &str, samples: &dyn Fn(usize) -> Vec<f64>| match place {
        Some(place) => Case::samples(name, samples(place)),
        None => Case::missing(name, Gap::NotRun("64k rules")),
    };
    let lookups = case("our smart-split, bounded memory", &|place| {
        let sheet = &measured.lookups;
        sheet.ratios(TUPLE_MERGE, SMART_SPLIT, |at| at.1 == place)
    });
    let builds = case("our smart-split, trees by samples", &|place| {
        let sheet = &measured.builds;
        sheet.ratios(SMART_SPLIT, TUPLE_MERGE, |at| at.1 == place)
    });
    let seconds = case("", &|place| {
        measured.builds.values(TUPLE_MERGE, |at| at.1 == place)
    });
    let by_size = "Mean over rule sets";
    vec![
        Claim::new(
            "§IV.D, Fig. 5",
            "SmartSplit classifies faster than offline TupleMerge: 0.12 µs and 0.24 µs at 64k \
             rules.",
        )
        .part(
            Part::new(
                "time of a lookup at 64k, TupleMerge / SmartSplit",
                Threshold::AtLeast(PAPER_RATIO * 0.9),
            )
            .paper(PAPER_RATIO)
            .case(lookups)
            .case(Case::missing("the paper's SmartSplit", UNBOUNDED))
            .grid(by_size, ""),
        ),
        Claim::new(
            "§IV.D",
            "TupleMerge builds in seconds even over very large rule sets.",
        )
        .part(
            Part::new(
                "seconds to build TupleMerge at 64k",
                Threshold::Below(BUILD_SECONDS),
            )
            .case(seconds)
            .grid(by_size, ""),
        ),
        Claim::new(
            "§IV.D",
            "TupleMerge builds orders of magnitude faster than SmartSplit, which can take hours.",
        )
        .part(
            Part::new(
                "seconds to build at 64k, SmartSplit / TupleMerge",
                Threshold::AtLeast(MAGNITUDES_RATIO),
            )
            .case(builds)
            .case(Case::missing("the paper's SmartSplit", UNBOUNDED))
            .grid(by_size, ""),
        ),
        Claim::new(
            "§IV.D",
            "SmartSplit's memory is unpredictable: some rule sets need far more than others.",
        )
        .part(
            Part::new(
                "memory at 64k, the most / the least of all rule sets, SmartSplit",
                Threshold::AtLeast(2.0),
            )
            .case(Case::missing("the paper's SmartSplit", UNBOUNDED))
            .picture("offline-memory.svg"),
        ),
    ]
}

fn grids(measured: &Measured, sizes: &[usize], names: &[String]) -> Vec<Grid> {
    let cell = |sheet: &Sheet, engine, within: &dyn Fn((usize, usize)) -> bool, scale: f64| {
        let value = sheet.mean(engine, within);
        value.map_or("–".to_owned(), |value| format!("{:.3}", value * scale))
    };
    let kinds = [
        ("lookup ns", &measured.lookups, 1.0),
        ("build s", &measured.builds, 1.0),
        ("MiB", &measured.index_bytes, 1.0 / 1_048_576.0),
    ];
    let row = |first: String, within: &dyn Fn((usize, usize)) -> bool| {
        let mut row = vec![first];
        for (_, sheet, scale) in kinds {
            row.extend((0..ENGINES.len()).map(|engine| cell(sheet, engine, within, scale)));
        }
        row
    };
    let columns = |first: &str| {
        let mut columns = vec![first.to_owned()];
        for (kind, ..) in kinds {
            columns.extend(ENGINES.map(|(engine, ..)| format!("{engine}: {kind}")));
        }
        columns
    };
    let by_size = sizes.iter().enumerate();
    let by_size = by_size.map(|(place, &size)| row(size_name(size), &|at| at.1 == place));
    let last = sizes.len() - 1;
    let by_name = names.iter().enumerate();
    let by_name = by_name.map(|(number, name)| row(name.clone(), &|at| at == (number, last)));
    vec![
        Grid {
            title: "Mean over rule sets".to_owned(),
            columns: columns("rules"),
            words: 0,
            rows: by_size.collect(),
        },
        Grid {
            title: format!("Each profile at {} rules", size_name(sizes[last])),
            columns: columns("profile"),
            words: 1,
            rows: by_name.collect(),
        },
    ]
}
