//! Figures of [TM19] §V with an own access list, own headers and own engines.
//!
//! [TM19]: classyard::papers#tm19

use classyard::key::unpack;
use classyard::policy::PartId;
use classyard::{EngineSpec, Policy, PolicyTrace, Schema};
use classyard_datapath::flow::TableId;
use classyard_report::failure::Failure;

use super::acl::Acl;
use super::check::check;
use super::frames::Frames;
use super::measure::{
    CHECK_SECONDS, FEW_TURNS, SHORT_CHECK_SECONDS, SHORT_TURN_SECONDS, TURN_COUNT, TURN_SECONDS,
    WARM_UP_SHARE,
};
use super::runner::{Runner, VectorTime, clock_cost};
use super::sheets::Measured;
use super::{CONTENDERS, ENGINES, MAX_RULES, SETUP, mpps, tables, throughput, times};
use crate::bench::Spread;
use crate::reproduce::claims::Section;
use crate::reproduce::comparison::{
    Cell, Comparison, Generated, Quantity, Workload, compare, with_priorities_from_1,
};
use crate::reproduce::statistics::{coordinate, quantile};
use crate::reproduce::study::Study;
use crate::reproduce::tm19::tables::count;

/// The quantities of [`draw_tables`].
const TABLES: [Quantity; 3] = [
    Quantity {
        column: "entries",
        title: "Flow entries of the access list",
    },
    Quantity {
        column: "tables_alone",
        title: "Tables of the engine over the rules",
    },
    Quantity {
        column: "tables",
        title: "Tables of the engine in the pipeline",
    },
];

/// The quantities of [`draw_throughput`].
const THROUGHPUT: [Quantity; 1] = [Quantity {
    column: "mpps",
    title: "Million packets a second",
}];

/// The quantities of [`draw_times`].
const TIMES: [Quantity; 4] = [
    Quantity {
        column: "lookup_p50_us",
        title: "Lookup of a single packet, µs, median",
    },
    Quantity {
        column: "lookup_p99_us",
        title: "Lookup of a single packet, µs, 99 % of packets",
    },
    Quantity {
        column: "whole_p50_us",
        title: "Single packet from frame to output, µs, median",
    },
    Quantity {
        column: "vector_lookup_p50_us",
        title: "Lookup of a packet in a vector, µs, median",
    },
];

/// The description of the inputs.
const INPUT_TEXT: &str = "Headers are drawn from the rules, unless they are from a file; a file \
    with few headers is repeated as a whole. All engines are compared with linear before anything \
    is measured, and linear with a scan of the rules.";

/// Draws tables in the pipeline (Fig. 10).
pub(in crate::reproduce) fn draw_tables(study: &mut Study<'_>) -> Result<Section, Failure> {
    let method = format!(
        "The rules are the access list of a pipeline. Engines alone are built over the rules, \
         with ranges as they are. {INPUT_TEXT}"
    );
    let section = draw(
        study,
        "pipeline-tables",
        &TABLES,
        method,
        |workload, list| {
            let alone = list
                .engines
                .iter()
                .map(|engine| count(&workload.policy, engine));
            let cells = alone.zip(&list.runners).map(|(alone, runner)| match alone {
                Ok(alone) => Cell {
                    refused: None,
                    values: vec![
                        coordinate(list.entries),
                        coordinate(alone),
                        coordinate(runner.pipeline.engine_tables(TableId(0))),
                    ],
                    wrong: 0,
                },
                Err(error) => Cell::refused(&error),
            });
            cells.collect()
        },
    )?;
    Ok(Section {
        title: "Tables in a pipeline (Fig. 10), own inputs".to_owned(),
        claims: tables::claims(&Measured::default()),
        ..section
    })
}

/// Draws packets a second (Fig. 11).
pub(in crate::reproduce) fn draw_throughput(study: &mut Study<'_>) -> Result<Section, Failure> {
    let method =
        format!("{SETUP} Engines take turns; the median of their turns counts. {INPUT_TEXT}");
    let (turns, seconds) = match study.args.quick {
        true => (FEW_TURNS, SHORT_TURN_SECONDS),
        false => (TURN_COUNT, TURN_SECONDS),
    };
    let section = draw(
        study,
        "pipeline-throughput",
        &THROUGHPUT,
        method,
        |_, list| {
            let mut rates = vec![Vec::new(); list.runners.len()];
            for _ in 0..turns {
                for (rates, runner) in rates.iter_mut().zip(&mut list.runners) {
                    let worker = &mut runner.vectors;
                    worker.run(&list.frames, seconds * WARM_UP_SHARE);
                    rates.push(worker.run(&list.frames, seconds));
                }
            }
            let cells = rates.iter().map(|rates| Cell {
                refused: None,
                values: vec![mpps(Spread::of(rates).expect("measured").median)],
                wrong: 0,
            });
            cells.collect()
        },
    )?;
    Ok(Section {
        title: "Throughput in a pipeline (Fig. 11), own inputs".to_owned(),
        claims: throughput::claims(&Measured::default()),
        ..section
    })
}

/// Draws times of single packets and of packets in vectors (Fig. 12).
pub(in crate::reproduce) fn draw_times(study: &mut Study<'_>) -> Result<Section, Failure> {
    let clock_seconds = clock_cost();
    let method = format!(
        "Each single packet is a vector of its own, timed by the wall clock. The cost of reading \
         this clock is subtracted. Times of vectors are CPU times, divided by their packets. \
         Lookup: the access list alone. Engines take turns, and the times of all turns are \
         pooled. {INPUT_TEXT}"
    );
    let (turns, seconds) = match study.args.quick {
        true => (FEW_TURNS, SHORT_TURN_SECONDS),
        false => (TURN_COUNT, TURN_SECONDS),
    };
    let section = draw(study, "pipeline-times", &TIMES, method, |_, list| {
        let engines = list.runners.len();
        let (mut single, mut vectors) = (vec![Vec::new(); engines], vec![Vec::new(); engines]);
        for _ in 0..turns {
            let samples = single.iter_mut().zip(&mut vectors);
            for ((single, vectors), runner) in samples.zip(&mut list.runners) {
                let (worker, frames) = (&mut runner.vectors, &list.frames);
                worker.run(frames, seconds * WARM_UP_SHARE);
                worker.time(frames, seconds, vectors);
                worker.time_single(frames, seconds, clock_seconds, single);
            }
        }
        let cells = single.iter().zip(&vectors).map(|(single, vectors)| Cell {
            refused: None,
            values: vec![
                micros(single, 0.5, |time| time.lookup),
                micros(single, 0.99, |time| time.lookup),
                micros(single, 0.5, |time| time.whole),
                micros(vectors, 0.5, |time| time.lookup),
            ],
            wrong: 0,
        });
        cells.collect()
    })?;
    Ok(Section {
        title: "Times of single packets and of vectors (Fig. 12), own inputs".to_owned(),
        claims: times::unmeasured_claims(),
        ..section
    })
}

/// Returns the time that a share of packets does not exceed, in microseconds.
fn micros(times: &[VectorTime], share: f64, time: fn(&VectorTime) -> f64) -> f64 {
    let mut seconds: Vec<f64> = times.iter().map(time).collect();
    seconds.sort_by(f64::total_cmp);
    quantile(&seconds, share) * 1e6
}

/// Own rules as the access list of a pipeline for each engine.
struct AccessList<'a> {
    engines: &'a [EngineSpec],
    runners: Vec<Runner>,
    frames: Frames,
    /// Flow entries of the rules.
    entries: usize,
}

/// Measures and draws a figure. `measure` returns a cell for each engine.
fn draw(
    study: &mut Study<'_>,
    figure: &'static str,
    quantities: &[Quantity],
    method: String,
    measure: impl Fn(&Workload<'_>, &mut AccessList<'_>) -> Vec<Cell>,
) -> Result<Section, Failure> {
    check_rules(study)?;
    let comparison = Comparison {
        figure,
        title: figure,
        method,
        quantities,
        engines: &ENGINES.map(|place| CONTENDERS[place].engine),
        generated: Generated::Profiles,
        sizes: &super::sheets::sizes(study),
        has_headers: true,
        options: String::new(),
    };
    compare(study, &comparison, |study, workload, engines| {
        let mut list = access_list(study, workload, engines)?;
        Ok(measure(workload, &mut list))
    })
}

/// Checks that own rules fit into an access list.
///
/// # Errors
/// [`Failure`] with the file, and the rules that the figures need.
fn check_rules(study: &Study<'_>) -> Result<(), Failure> {
    for own in &study.inputs.rules {
        let schemas: Vec<&Schema> = own.policy.schemas().map(|schema| &**schema).collect();
        if schemas != [&*Schema::ipv4_5tuple()] {
            return Err(Failure::usage(format!(
                "{}: the schema is {}; figures of section 5 need ipv4-5tuple",
                own.name,
                own.policy.name()
            ))
            .with_help("frames are made of addresses, ports and protocols of IPv4"));
        }
        if own.policy.len() > MAX_RULES {
            return Err(Failure::usage(format!(
                "{}: {} rules; a flow table has priorities for at most {MAX_RULES}",
                own.name,
                own.policy.len()
            )));
        }
    }
    Ok(())
}

/// Builds a pipeline for each engine and compares their decisions.
fn access_list<'a>(
    study: &Study<'_>,
    workload: &Workload<'_>,
    engines: &'a [EngineSpec],
) -> Result<AccessList<'a>, Failure> {
    let policy = with_priorities_from_1(&workload.policy);
    let acl = Acl::of(&policy)?;
    let names: Vec<String> = engines.iter().map(ToString::to_string).collect();
    let mut runners = Vec::new();
    for name in &names {
        runners.push(Runner::new(acl.pipeline(name)?));
    }
    let frames = [&workload.trace, &workload.few].map(|trace| frames(&policy, trace));
    let seconds = match study.args.quick {
        true => SHORT_CHECK_SECONDS,
        false => CHECK_SECONDS,
    };
    let (linear, others) = runners.split_first_mut().expect("the figures' engines");
    let others = names[1..].iter().map(String::as_str).zip(others);
    check(
        &policy,
        &frames,
        linear,
        &mut others.collect::<Vec<_>>(),
        seconds,
    )?;
    let [frames, _] = frames;
    Ok(AccessList {
        engines,
        runners,
        frames,
        entries: acl.flows,
    })
}

/// Returns a frame for each header.
fn frames(policy: &Policy, trace: &PolicyTrace) -> Frames {
    let schema = policy.part(PartId::FIRST).schema();
    let headers = trace.iter().map(|(_, key)| {
        let values = unpack(schema, key);
        values.try_into().expect("five-tuples have five fields")
    });
    Frames::of(headers)
}
