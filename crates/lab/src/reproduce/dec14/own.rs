//! Lookups of [DEC14] Fig. 3 with own engines, rules and headers.
//!
//! [DEC14]: classyard::papers#dec14

use classyard::policy::PartId;
use classyard::{EngineSpec, Limits, NoProgress};
use classyard_report::failure::Failure;

use super::measure::{CHECKED_HEADERS, Lookups, medians, passes};
use super::{ENGINE, PAPER_FORM, TOGETHER, concurrency};
use crate::reproduce::claims::Section;
use crate::reproduce::comparison::{
    Cell, Comparison, Generated, Quantity, Workload, check_one_schema, compare,
};
use crate::reproduce::statistics::coordinate;
use crate::reproduce::study::Study;

/// The numbers of headers together that are shown, and their quantities.
const SHOWN: [usize; 3] = [1, 16, 256];
const QUANTITIES: [Quantity; 4] = [
    Quantity {
        column: "together_1_ns",
        title: "Time of a lookup, one by one, ns",
    },
    Quantity {
        column: "together_16_ns",
        title: "Time of a lookup, 16 headers together, ns",
    },
    Quantity {
        column: "together_256_ns",
        title: "Time of a lookup, 256 headers together, ns",
    },
    Quantity {
        column: "bytes",
        title: "Memory with rules and their actions, bytes",
    },
];

/// Draws times of lookups against the headers that are looked up together (Fig. 3).
pub(super) fn draw_concurrency(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`concurrency` of dec14")?;
    let rules = study.dec14_rules();
    let comparison = Comparison {
        figure: "concurrency",
        title: "Headers that are looked up together (Fig. 3)",
        method: "Engines are built over all rules; headers are looked up one by one, and in \
                 batches of 16 and 256, on one thread. Times are CPU times, the median of the \
                 passes. Without own rules, the rules have the fifteen fields of the paper. There \
                 is no prediction by the model, which is of decomposition."
            .to_owned(),
        quantities: &QUANTITIES,
        engines: &[ENGINE, PAPER_FORM],
        generated: Generated::OpenFlow15,
        sizes: &[rules],
        has_headers: true,
        options: String::new(),
    };
    let section = compare(study, &comparison, |study, workload, engines| {
        let cells = engines.iter().map(|engine| cell(study, workload, engine));
        Ok(cells.collect())
    })?;
    Ok(Section {
        claims: concurrency::claims(Vec::new(), &Lookups::default()),
        ..section
    })
}

/// Builds an engine and times its lookups.
fn cell(study: &Study<'_>, workload: &Workload<'_>, engine: &EngineSpec) -> Cell {
    let policy = &workload.policy;
    let classifier = match policy.build(engine, &Limits::default(), &mut NoProgress) {
        Ok(classifier) => classifier,
        Err(error) => return Cell::refused(&error),
    };
    let classifier = classifier.part(PartId::FIRST);
    let keys = workload.trace.part(PartId::FIRST).as_slice();
    let (samples, keys) = passes(classifier, keys, study.dec14_repeats());
    let rules = policy.part(PartId::FIRST);
    let checked = keys.iter().take(CHECKED_HEADERS);
    let wrong = checked.filter(|key| classifier.classify_one(key) != rules.scan(key));
    let wrong = wrong.count();
    let times = TOGETHER.iter().zip(medians(&samples));
    let times = times.filter(|(together, _)| SHOWN.contains(together));
    let mut values: Vec<f64> = times.map(|(_, ns)| ns).collect();
    values.push(coordinate(classifier.stats().bytes()));
    Cell {
        refused: None,
        values,
        wrong,
    }
}
