//! Figures of [TM19] §IV with own engines, rules and headers.
//!
//! [TM19]: classyard::papers#tm19

use classyard::{NoProgress, Stats};
use classyard_report::failure::Failure;
use classyard_report::input::build_limits::BuildLimits;

use super::coverage::Coverage;
use super::{
    collision_limit, growth, offline, online, online_claims, online_engines, partitions, tables,
};
use crate::bench::{Protocol, timed};
use crate::reproduce::claims::Section;
use crate::reproduce::comparison::{Cell, Comparison, Generated, Quantity, compare};
use crate::reproduce::inputs::Input;
use crate::reproduce::statistics::coordinate;
use crate::reproduce::study::Study;

/// The inputs of figures without lookups.
pub(super) const WITHOUT_LOOKUPS: &[Input] = &[Input::Engines, Input::Rules];

/// The inputs of figures about options of their own engines.
pub(super) const WITHOUT_ENGINES: &[Input] = &[Input::Rules, Input::Trace, Input::CapturedHeaders];

/// The quantities of [`draw_online`].
const ONLINE: [Quantity; 5] = [
    Quantity {
        column: "update_ns",
        title: "Time of an update, ns",
    },
    Quantity {
        column: "lookup_ns",
        title: "Time of a lookup, ns",
    },
    Quantity {
        column: "tables",
        title: "Tables after all insertions",
    },
    Quantity {
        column: "index_bytes",
        title: "Memory of the search structure, bytes",
    },
    Quantity {
        column: "bytes",
        title: "Memory with rules and their actions, bytes",
    },
];

/// No size and no seed of the paper.
const NOTHING: Coverage<'static> = Coverage {
    paper_sizes: &tables::SIZES,
    sizes: &[],
    names: &[],
};

/// Draws tables of engines (Fig. 2).
pub(super) fn draw_tables(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = tables::sizes(study);
    let comparison = Comparison {
        figure: "tables",
        title: "Tables (Fig. 2)",
        method: "Every engine is built over all rules of each rule set. The tables of \
                 partition-sort are its partitions."
            .to_owned(),
        quantities: &[Quantity {
            column: "tables",
            title: "Tables",
        }],
        engines: &tables::ENGINES,
        generated: Generated::Profiles,
        sizes: &sizes,
        has_headers: false,
        options: String::new(),
    };
    let section = compare(study, &comparison, |_, workload, engines| {
        let cells = engines
            .iter()
            .map(|engine| match tables::count(&workload.policy, engine) {
                Ok(tables) => Cell {
                    refused: None,
                    values: vec![coordinate(tables)],
                    wrong: 0,
                },
                Err(error) => Cell::refused(&error),
            });
        Ok(cells.collect())
    })?;
    let counts = vec![Vec::new(); tables::ENGINES.len()];
    Ok(Section {
        claims: tables::claims(&counts, NOTHING),
        ..section
    })
}

/// Draws updates, lookups and memory (Figs. 1, 3 and 4).
pub(super) fn draw_online(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = tables::sizes(study);
    let changes = study.changes();
    let comparison = Comparison {
        figure: "online",
        title: "Online: updates, lookups and memory (Figs. 1, 3 and 4)",
        method: format!(
            "Lookups: rules are inserted one by one in a random order, the same for all engines; \
             headers are looked up one at a time, interleaved over the engines, and the median of \
             the passes counts. Updates: half of the rules are inserted, then {changes} insertions \
             and {changes} deletions, shuffled, are timed together. Times are CPU times of one \
             thread. {HEADERS}"
        ),
        quantities: &ONLINE,
        engines: &online_engines::ENGINES.map(|(engine, ..)| engine),
        generated: Generated::Profiles,
        sizes: &sizes,
        has_headers: true,
        options: format!(", {changes} changes"),
    };
    let section = compare(study, &comparison, |study, workload, engines| {
        let (policy, seed) = (&workload.policy, study.list_seed(0));
        let looked = online::look(engines, policy, &workload.trace, &workload.few, seed);
        let protocol = Protocol::new(policy.ids(), changes, seed);
        let updated = online::update(engines, policy, &protocol, &workload.few);
        let cells = looked.into_iter().zip(updated).map(|pair| match pair {
            (Ok(looked), Ok(updated)) => Cell {
                refused: None,
                values: vec![
                    updated.update_ns,
                    looked.lookup_ns,
                    coordinate(looked.tables),
                    coordinate(looked.index_bytes),
                    coordinate(looked.bytes),
                ],
                wrong: looked.wrong + updated.wrong,
            },
            (Err(reason), _) | (_, Err(reason)) => Cell::refused(&reason),
        });
        Ok(cells.collect())
    })?;
    Ok(Section {
        claims: online_claims::claims(&online_engines::Measured::default(), NOTHING),
        ..section
    })
}

/// Draws engines that know all rules from the start (Fig. 5).
pub(super) fn draw_offline(study: &mut Study<'_>) -> Result<Section, Failure> {
    let mut sizes = tables::sizes(study);
    let min_size = sizes.iter().copied().min().unwrap_or(0);
    sizes.retain(|&size| size <= offline::MOST_RULES.max(min_size));
    let limit = study.build_time();
    let seconds = limit.as_secs_f64();
    let comparison = Comparison {
        figure: "offline",
        title: "Offline: all rules known (Fig. 5)",
        method: format!(
            "Engines are built over all rules at once, in at most {seconds} CPU seconds; headers \
             are looked up one at a time, interleaved over the engines, and the median of the \
             passes counts. {HEADERS}"
        ),
        quantities: &[
            Quantity {
                column: "build_ms",
                title: "Time to build, ms",
            },
            Quantity {
                column: "lookup_ns",
                title: "Time of a lookup, ns",
            },
            Quantity {
                column: "index_bytes",
                title: "Memory of the search structure, bytes",
            },
            Quantity {
                column: "bytes",
                title: "Memory with rules and their actions, bytes",
            },
        ],
        engines: &offline::ENGINES.map(|(engine, ..)| engine),
        generated: Generated::Profiles,
        sizes: &sizes,
        has_headers: true,
        options: format!(", {seconds} s to build"),
    };
    let section = compare(study, &comparison, |_, workload, engines| {
        let (policy, trace) = (&workload.policy, &workload.trace);
        let built = offline::measure(engines, policy, trace, &workload.few, limit);
        let cells = built.into_iter().map(|built| match built.refused {
            Some(reason) => Cell::refused(&reason),
            None => Cell {
                refused: None,
                values: vec![
                    built.build_seconds * 1e3,
                    built.lookup_ns,
                    coordinate(built.index_bytes),
                    coordinate(built.bytes),
                ],
                wrong: built.wrong,
            },
        });
        Ok(cells.collect())
    })?;
    Ok(Section {
        claims: offline::claims(&offline::Measured::default(), &[]),
        ..section
    })
}

/// Draws tables against SAX-PAC's sets (Fig. 6).
pub(super) fn draw_partitions(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = partitions::sizes(study);
    let comparison = Comparison {
        figure: "partitions",
        title: "Sets of rules without overlaps (Fig. 6)",
        method: "Every engine is built over all rules of each rule set. SAX-PAC's sets are chosen \
                 greedily, best rule first, as `inspect` counts them; the number of tables is \
                 divided by the number of sets."
            .to_owned(),
        quantities: &[
            Quantity {
                column: "tables",
                title: "Tables",
            },
            Quantity {
                column: "tables_per_set_all_fields",
                title: "Tables / SAX-PAC's sets over all fields",
            },
            Quantity {
                column: "tables_per_set_two_fields",
                title: "Tables / SAX-PAC's sets over two fields",
            },
        ],
        engines: &partitions::FORMS,
        generated: Generated::Profiles,
        sizes: &sizes,
        has_headers: false,
        options: String::new(),
    };
    let section = compare(study, &comparison, |_, workload, engines| {
        let sets = partitions::sets(&workload.policy);
        let cells = engines.iter().map(|engine| {
            let [all, two] = match &sets {
                Ok(sets) => sets.map(|count| coordinate(count.max(1))),
                Err(reason) => return Cell::refused(reason),
            };
            match tables::count(&workload.policy, engine) {
                Ok(tables) => {
                    let tables = coordinate(tables);
                    Cell {
                        refused: None,
                        values: vec![tables, tables / all, tables / two],
                        wrong: 0,
                    }
                }
                Err(error) => Cell::refused(&error),
            }
        });
        Ok(cells.collect())
    })?;
    Ok(Section {
        claims: partitions::claims(&vec![Vec::new(); partitions::FORMS.len() + 2], NOTHING),
        ..section
    })
}

/// Draws the best collision limits (Figs. 7 and 8).
pub(super) fn draw_collision_limit(study: &mut Study<'_>) -> Result<Section, Failure> {
    let forms = collision_limit::FORMS.map(|(engine, _)| engine);
    let comparison = Comparison {
        figure: "collision-limit",
        title: "Collision limits (Figs. 7 and 8)",
        method: format!(
            "TupleMerge is built with each of the figure's limits c over each rule set. The best c \
             is the least one whose time is within 3 % of the least. The paper's c is 40 for \
             tuplemerge and 8 for tuplemerge-offline. Headers are looked up one at a time, \
             interleaved over the limits. {HEADERS}"
        ),
        quantities: &[
            Quantity {
                column: "best_c",
                title: "Best collision limit",
            },
            Quantity {
                column: "best_c_ns",
                title: "Time of a lookup with the best limit, ns",
            },
            Quantity {
                column: "paper_c_ns",
                title: "Time of a lookup with the paper's limit, ns",
            },
        ],
        engines: &forms,
        generated: Generated::Profiles,
        sizes: &[],
        has_headers: true,
        options: String::new(),
    };
    let section = compare(study, &comparison, |_, workload, _| {
        let forms = collision_limit::FORMS.iter().enumerate();
        let cells = forms.map(|(form, (engine, option))| {
            let (policy, trace) = (&workload.policy, &workload.trace);
            let times = collision_limit::measure(policy, trace, engine, option)?;
            Ok(Cell {
                refused: None,
                values: times.summary(form).to_vec(),
                wrong: 0,
            })
        });
        cells.collect()
    })?;
    Ok(Section {
        claims: collision_limit::claims(&[Vec::new()], &[], NOTHING),
        ..section
    })
}

/// Draws time and memory of building.
pub(super) fn draw_growth(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = growth::sizes(study);
    let limit = study.build_time();
    let seconds = limit.as_secs_f64();
    let comparison = Comparison {
        figure: "growth",
        title: "What building costs as rule sets grow",
        method: format!(
            "Engines are built over all rules at once, in at most {seconds} CPU seconds of one \
             thread. Reading the rules is not included."
        ),
        quantities: &[
            Quantity {
                column: "build_ms",
                title: "Time to build, ms",
            },
            Quantity {
                column: "index_bytes",
                title: "Memory of the search structure, bytes",
            },
            Quantity {
                column: "bytes",
                title: "Memory with rules and their actions, bytes",
            },
            Quantity {
                column: "tables",
                title: "Tables",
            },
        ],
        engines: &[growth::ENGINE],
        generated: Generated::Profiles,
        sizes: &sizes,
        has_headers: false,
        options: format!(", {seconds} s to build"),
    };
    let section = compare(study, &comparison, |_, workload, engines| {
        let limits = BuildLimits::of_time(limit);
        let cells = engines.iter().map(|engine| {
            let (built, seconds) = timed(|| {
                limits.build(&mut NoProgress, |limits, progress| {
                    workload.policy.build(engine, limits, progress)
                })
            });
            let classifier = match built {
                Ok(classifier) => classifier,
                Err(error) => return Cell::refused(&error),
            };
            let stats: Vec<_> = classifier.parts().iter().map(|part| part.stats()).collect();
            let sum = |count: fn(&Stats) -> usize| coordinate(stats.iter().map(count).sum());
            Cell {
                refused: None,
                values: vec![
                    seconds * 1e3,
                    sum(|stats| stats.index_bytes),
                    sum(Stats::bytes),
                    sum(|stats| stats.tables),
                ],
                wrong: 0,
            }
        });
        Ok(cells.collect())
    })?;
    Ok(Section {
        claims: vec![growth::claim(Vec::new())],
        ..section
    })
}

/// The description of the headers.
const HEADERS: &str = "Headers are drawn from the rules, unless they are from a file; a file \
    with few headers is repeated as a whole, so that a pass takes measurable time.";
