//! Figures of [SFL17] with own engines, rules and headers.
//!
//! [SFL17]: classyard::papers#sfl17

use std::time::Duration;

use classyard::EngineSpec;
use classyard::policy::PartId;
use classyard_report::failure::Failure;

use super::cases::{Case, Kind};
use super::operations::{self, time};
use super::simulator::{self, Load};
use super::threshold_claims::CHANGES_PER_RUN;
use super::{DEFAULT_RULES, ROLES, threshold, updates};
use crate::reproduce::claims::Section;
use crate::reproduce::comparison::{
    Cell, Comparison, Generated, Quantity, Workload, check_one_schema, compare,
};
use crate::reproduce::statistics::coordinate;
use crate::reproduce::study::Study;

/// The largest number of changes, as in the paper.
const MAX_CHANGES: usize = 100;

/// Draws changes, and lookups after them (Fig. 5).
pub(super) fn draw_operations(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`operations` of sfl17")?;
    let sizes = study.sizes(&[DEFAULT_RULES]);
    let engines = operations::engines();
    let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
    let comparison = Comparison {
        figure: "operations",
        title: "Changes and lookups, each for itself (Fig. 5)",
        method: format!(
            "Of each rule set, {MAX_CHANGES} rules at random positions are inserted, or deleted; of \
             small rule sets, half of the rules. The time of all changes together is followed by \
             the time of a lookup, one header at a time. An engine that takes no changes is built \
             again for each change. sfl is never rebuilt here, as in the paper."
        ),
        quantities: &[
            Quantity {
                column: "insertions_ms",
                title: "Time of all insertions, ms",
            },
            Quantity {
                column: "insertions_lookup_ns",
                title: "Time of a lookup after the insertions, ns",
            },
            Quantity {
                column: "deletions_ms",
                title: "Time of all deletions, ms",
            },
            Quantity {
                column: "deletions_lookup_ns",
                title: "Time of a lookup after the deletions, ns",
            },
        ],
        engines: &engines,
        generated: Generated::Profiles,
        sizes: &sizes[..1],
        has_headers: true,
        options: String::new(),
    };
    let section = compare(study, &comparison, |study, workload, engines| {
        let seed = study.list_seed(0);
        let cases = Kind::BOTH.map(|kind| case(workload, kind, MAX_CHANGES, seed));
        let cells = engines.iter().map(|engine| cell(&cases, engine));
        Ok(cells.collect())
    })?;
    Ok(Section {
        claims: operations::unmeasured_claims(),
        ..section
    })
}

/// Draws headers and changes during runs of the simulator (Table II, Fig. 6).
pub(super) fn draw_updates(study: &mut Study<'_>) -> Result<Section, Failure> {
    let title = "Headers and changes in 10 seconds (Table II, Fig. 6)";
    let section = draw_runs(study, "updates", title, &updates::engines())?;
    Ok(Section {
        claims: updates::unmeasured_claims(),
        ..section
    })
}

/// Draws the same runs for several values of δ (Figs. 7 and 8).
pub(super) fn draw_threshold(study: &mut Study<'_>) -> Result<Section, Failure> {
    let title = "The threshold δ (Figs. 7 and 8)";
    let section = draw_runs(study, "threshold", title, &threshold::engines())?;
    Ok(Section {
        claims: threshold::unmeasured_claims(),
        ..section
    })
}

/// The quantities of [`draw_runs`].
const RUN_QUANTITIES: [Quantity; 4] = [
    Quantity {
        column: "insertions_headers_per_second",
        title: "Headers a second during insertions",
    },
    Quantity {
        column: "insertions_made",
        title: "Insertions made",
    },
    Quantity {
        column: "deletions_headers_per_second",
        title: "Headers a second during deletions",
    },
    Quantity {
        column: "deletions_made",
        title: "Deletions made",
    },
];

/// Draws runs of the simulator with each engine.
fn draw_runs(
    study: &mut Study<'_>,
    figure: &'static str,
    title: &'static str,
    engines: &[String],
) -> Result<Section, Failure> {
    check_one_schema(study, &format!("`{figure}` of sfl17"))?;
    let sizes = study.sizes(&[DEFAULT_RULES]);
    let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
    let (seconds, issued) = (study.run_seconds(), study.issued(CHANGES_PER_RUN));
    let comparison = Comparison {
        figure,
        title,
        method: format!(
            "A run lasts {seconds} s. It issues {issued} insertions, or as many deletions, at equal \
             intervals: the paper's rate of {CHANGES_PER_RUN} in 10 s. In a small rule set, at \
             most half of the rules are changed. {ROLES}"
        ),
        quantities: &RUN_QUANTITIES,
        engines: &engines,
        generated: Generated::Profiles,
        sizes: &sizes[..1],
        has_headers: true,
        options: format!(", {issued} changes in {seconds} s"),
    };
    compare(study, &comparison, |study, workload, engines| {
        let seed = study.list_seed(0);
        let cases = Kind::BOTH.map(|kind| case(workload, kind, issued, seed));
        let cells = engines
            .iter()
            .map(|engine| run_cell(study, &cases, engine, seconds));
        Ok(cells.collect())
    })
}

/// Runs the simulator with an engine, with insertions and with deletions.
fn run_cell(study: &Study<'_>, cases: &[Case], engine: &EngineSpec, seconds: f64) -> Cell {
    let (mut values, mut wrong) = (Vec::new(), 0);
    for case in cases {
        let load = Load {
            rules: case.initial(),
            changes: &case.changes(),
            headers: case.headers(),
            duration: Duration::from_secs_f64(seconds),
            single: true,
            processors: study.processors,
        };
        match simulator::run(engine, &load) {
            Ok(outcome) => {
                #[allow(clippy::cast_precision_loss)] // far below 2^52
                values.push(outcome.headers as f64 / seconds);
                values.push(coordinate(outcome.changes));
                wrong += outcome.wrong;
            }
            Err(error) => return Cell::refused(&error),
        }
    }
    Cell {
        refused: None,
        values,
        wrong,
    }
}

/// Returns a case with at most `max_changes` changes, and of at most half of the rules.
fn case(workload: &Workload<'_>, kind: Kind, max_changes: usize, seed: u64) -> Case {
    let policy = workload.policy.clone().into_owned();
    let changes = (policy.part(PartId::FIRST).len() / 2).clamp(1, max_changes);
    Case::of(policy, workload.trace.clone(), changes, kind, seed)
}

/// Times an engine with insertions and with deletions.
fn cell(cases: &[Case], engine: &EngineSpec) -> Cell {
    let (mut values, mut wrong) = (Vec::new(), 0);
    for case in cases {
        match time(case, engine) {
            Ok(timed) => {
                values.extend([timed.seconds * 1e3, timed.lookup_ns]);
                wrong += timed.wrong;
            }
            Err(error) => return Cell::refused(&error),
        }
    }
    Cell {
        refused: None,
        values,
        wrong,
    }
}
