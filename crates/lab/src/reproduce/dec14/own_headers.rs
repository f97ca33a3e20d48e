//! [DEC14] §V.A with own engines, rules and headers: times by the kind of headers.
//!
//! [DEC14]: classyard::papers#dec14

use classyard::policy::PartId;
use classyard::{EngineSpec, KeySlice};
use classyard_report::failure::Failure;

use super::measure::CHECKED_HEADERS;
use super::own::built;
use super::random_headers::{KINDS, claim, time};
use super::{ENGINE, PAPER_FORM};
use crate::bench::Spread;
use crate::reproduce::claims::Section;
use crate::reproduce::comparison::{
    Cell, Comparison, Generated, Quantity, Workload, check_one_schema, compare,
};
use crate::reproduce::study::Study;

/// The quantities of each kind of headers, and then of own headers.
const QUANTITIES: [Quantity; 2 * (KINDS.len() + 1)] = [
    Quantity {
        column: "bursts_single_ns",
        title: "Corners in bursts: time of a lookup, one by one, ns",
    },
    Quantity {
        column: "bursts_batch_ns",
        title: "Corners in bursts: time of a lookup in batches, ns",
    },
    Quantity {
        column: "corners_single_ns",
        title: "Corners once: time of a lookup, one by one, ns",
    },
    Quantity {
        column: "corners_batch_ns",
        title: "Corners once: time of a lookup in batches, ns",
    },
    Quantity {
        column: "random_single_ns",
        title: "Random headers: time of a lookup, one by one, ns",
    },
    Quantity {
        column: "random_batch_ns",
        title: "Random headers: time of a lookup in batches, ns",
    },
    Quantity {
        column: "own_single_ns",
        title: "Own headers: time of a lookup, one by one, ns",
    },
    Quantity {
        column: "own_batch_ns",
        title: "Own headers: time of a lookup in batches, ns",
    },
];

/// Draws times by the kind of headers.
pub(super) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`random-headers` of dec14")?;
    let own = study.inputs.rules.iter();
    let has_own_headers = own.into_iter().any(|rules| rules.headers.is_some());
    let kinds = KINDS.len() + usize::from(has_own_headers);
    let comparison = Comparison {
        figure: "random-headers",
        title: "Random headers and headers in bursts (§V.A)",
        method: "Bursts: corners of rules, each repeated as in ClassBench's traces. Corners \
                 once: corners of rules. Random: all bits of all fields uniformly random. Times \
                 are CPU times of one thread, medians of passes that alternate between the kinds \
                 of headers. Without own rules, the rules have the fifteen fields of the paper."
            .to_owned(),
        quantities: &QUANTITIES[..2 * kinds],
        engines: &[ENGINE, PAPER_FORM],
        generated: Generated::OpenFlow15,
        sizes: &[study.dec14_rules()],
        has_headers: true,
        options: String::new(),
    };
    let section = compare(study, &comparison, |study, workload, engines| {
        let mut traces = study.dec14_headers_of_kinds(&workload.policy)?;
        if has_own_headers {
            traces.push(workload.trace.clone());
        }
        let keys = traces.iter();
        let keys: Vec<_> = keys
            .map(|trace| trace.part(PartId::FIRST).as_slice())
            .collect();
        let cells = engines
            .iter()
            .map(|engine| cell(study, workload, &keys, engine));
        Ok(cells.collect())
    })?;
    Ok(Section {
        claims: vec![claim([Vec::new(), Vec::new()])],
        ..section
    })
}

/// Builds an engine and times its lookups of each kind.
fn cell(
    study: &Study<'_>,
    workload: &Workload<'_>,
    kinds: &[KeySlice<'_>],
    engine: &EngineSpec,
) -> Cell {
    let classifier = match built(workload, engine) {
        Ok(classifier) => classifier,
        Err(refused) => return refused,
    };
    let classifier = classifier.part(PartId::FIRST);
    let rules = workload.policy.part(PartId::FIRST);
    let times = time(classifier, kinds, study.dec14_repeats());
    let median = |samples: Vec<f64>| Spread::of(&samples).map_or(0.0, |spread| spread.median);
    let checked = kinds
        .iter()
        .flat_map(|keys| keys.iter().take(CHECKED_HEADERS));
    let wrong = checked.filter(|key| classifier.classify_one(key) != rules.scan(key));
    Cell {
        refused: None,
        wrong: wrong.count(),
        values: times.into_iter().flatten().map(median).collect(),
    }
}
