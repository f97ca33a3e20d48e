//! Fig. 5 of [SFL17] with own engines, rules and headers.
//!
//! [SFL17]: classyard::papers#sfl17

use classyard::EngineSpec;
use classyard::policy::PartId;
use classyard_report::failure::Failure;

use super::DEFAULT_RULES;
use super::cases::{Case, Kind};
use super::operations::{self, time};
use crate::reproduce::claims::Section;
use crate::reproduce::comparison::{
    Cell, Comparison, Generated, Quantity, Workload, check_one_schema, compare,
};
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
        let cases = Kind::BOTH.map(|kind| case(workload, kind, seed));
        let cells = engines.iter().map(|engine| cell(&cases, engine));
        Ok(cells.collect())
    })?;
    Ok(Section {
        claims: operations::unmeasured_claims(),
        ..section
    })
}

fn case(workload: &Workload<'_>, kind: Kind, seed: u64) -> Case {
    let policy = workload.policy.clone().into_owned();
    let changes = (policy.part(PartId::FIRST).len() / 2).clamp(1, MAX_CHANGES);
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
