//! Lookups of [DEC14] Figs. 2 to 4 with own engines, rules and headers.
//!
//! [DEC14]: classyard::papers#dec14

use classyard::policy::PartId;
use classyard::{EngineSpec, Limits, NoProgress, PolicyClassifier};
use classyard_report::failure::Failure;

use super::latency::{self, Model};
use super::measure::{CHECKED_HEADERS, Lookups, medians, passes};
use super::model::{Mode, measured};
use super::{ENGINE, PAPER_FORM, TOGETHER, concurrency, peak, throughput};
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

/// The quantities of [`draw_latency`]. The last two are of decomposition only.
const LATENCY: [Quantity; 5] = [
    Quantity {
        column: "single_ns",
        title: "Time of a lookup, one by one, ns",
    },
    Quantity {
        column: "batch_ns",
        title: "Time of a lookup in batches, ns",
    },
    Quantity {
        column: "bytes",
        title: "Memory with rules and their actions, bytes",
    },
    Quantity {
        column: "single_predicted_ns",
        title: "Predicted time of a lookup, one by one, ns",
    },
    Quantity {
        column: "batch_predicted_ns",
        title: "Predicted time of a lookup in batches, ns",
    },
];

/// Draws times of lookups and the model's predictions (Fig. 2).
pub(super) fn draw_latency(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`latency` of dec14")?;
    let model = Model::fit(study)?;
    let rules = study.dec14_rules();
    let comparison = Comparison {
        figure: "latency",
        title: "Time of a lookup, and the model (Fig. 2)",
        method: "Engines are built over all rules; headers are looked up one by one, and in \
                 batches of 256, on one thread. Times are CPU times, the median of the passes. \
                 Without own rules, the rules have the fifteen fields of the paper. The model \
                 predicts the times of decomposition from counts in its structure. Its two \
                 factors are fitted to the figure's smallest generated rule sets, not to own \
                 rules."
            .to_owned(),
        quantities: &LATENCY,
        engines: &[ENGINE, PAPER_FORM],
        generated: Generated::OpenFlow15,
        sizes: &[rules],
        has_headers: true,
        options: String::new(),
    };
    let section = compare(study, &comparison, |study, workload, engines| {
        let cells = engines.iter().map(|engine| {
            let lookups = match lookups(study, workload, engine) {
                Ok((lookups, _)) => lookups,
                Err(refused) => return refused,
            };
            let both = [Mode::Single, Mode::Batch];
            let mut values = both.map(|mode| measured(&lookups, mode)).to_vec();
            values.push(coordinate(lookups.bytes));
            if engine.to_string().starts_with(ENGINE) {
                values.extend(both.map(|mode| model.predict(&lookups, mode)));
            }
            Cell {
                refused: None,
                values,
                wrong: lookups.wrong,
            }
        });
        Ok(cells.collect())
    })?;
    Ok(Section {
        claims: latency::claims(Vec::new(), &[], &[]),
        ..section
    })
}

/// The quantities of [`draw_throughput`].
const THROUGHPUT: [Quantity; 3] = [
    Quantity {
        column: "single_million_per_second",
        title: "Million headers a second, one by one",
    },
    Quantity {
        column: "batch_million_per_second",
        title: "Million headers a second in batches",
    },
    Quantity {
        column: "threads_million_per_second",
        title: "Million headers a second of all threads together",
    },
];

/// Draws headers a second (Fig. 4).
pub(super) fn draw_throughput(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`throughput` of dec14")?;
    let rules = study.dec14_rules();
    let threads = study.dec14_threads().into_iter().max().unwrap_or(1);
    let comparison = Comparison {
        figure: "throughput",
        title: "Headers a second (Fig. 4)",
        method: format!(
            "Engines are built over all rules. One thread looks headers up one by one and in \
             batches of 256; these rates are by CPU time. {threads} threads look up batches in \
             one shared structure; this rate is by elapsed time, and left out if the threads did \
             not have processors of their own. Without own rules, the rules have the fifteen \
             fields of the paper. Not optimised is group=off:stop=off; share=0 is the form of \
             the paper."
        ),
        quantities: &THROUGHPUT,
        engines: &throughput::ENGINES.map(|(engine, _)| engine),
        generated: Generated::OpenFlow15,
        sizes: &[rules],
        has_headers: true,
        options: format!(", {threads} threads"),
    };
    let section = compare(study, &comparison, |study, workload, engines| {
        let cells = engines.iter().map(|engine| {
            let (lookups, classifier) = match lookups(study, workload, engine) {
                Ok(measured) => measured,
                Err(refused) => return Ok(refused),
            };
            let rate = |mode| 1e3 / measured(&lookups, mode);
            let mut values = vec![rate(Mode::Single), rate(Mode::Batch)];
            if threads > 1 {
                let keys = workload.trace.part(PartId::FIRST).as_slice();
                let classifier = classifier.part(PartId::FIRST);
                let together = study.dec14_threads_over(classifier, keys, threads)?;
                let is_own = together.objection.is_none();
                values.extend(is_own.then_some(together.rate / 1e6));
            }
            Ok(Cell {
                refused: None,
                values,
                wrong: lookups.wrong,
            })
        });
        cells.collect()
    })?;
    let nothing = Lookups::default();
    Ok(Section {
        claims: throughput::claims(|_| &nothing, Vec::new(), peak::unmeasured_claim()),
        ..section
    })
}

/// Builds an engine, or returns the cell of an engine that was not built.
pub(super) fn built(
    workload: &Workload<'_>,
    engine: &EngineSpec,
) -> Result<PolicyClassifier, Cell> {
    let built = workload
        .policy
        .build(engine, &Limits::default(), &mut NoProgress);
    built.map_err(|error| Cell::refused(&error))
}

/// Builds an engine and times its lookups.
pub(super) fn lookups(
    study: &Study<'_>,
    workload: &Workload<'_>,
    engine: &EngineSpec,
) -> Result<(Lookups, PolicyClassifier), Cell> {
    let classifier = built(workload, engine)?;
    let keys = workload.trace.part(PartId::FIRST).as_slice();
    let part = classifier.part(PartId::FIRST);
    let lookups = Lookups::over(&workload.policy, part, keys, study.dec14_repeats());
    Ok((lookups, classifier))
}

/// Builds an engine and times its lookups.
fn cell(study: &Study<'_>, workload: &Workload<'_>, engine: &EngineSpec) -> Cell {
    let classifier = match built(workload, engine) {
        Ok(classifier) => classifier,
        Err(refused) => return refused,
    };
    let classifier = classifier.part(PartId::FIRST);
    let keys = workload.trace.part(PartId::FIRST).as_slice();
    let (samples, keys) = passes(classifier, keys, study.dec14_repeats());
    let rules = workload.policy.part(PartId::FIRST);
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
