//! [DEC14] Fig. 3: latency against the number of concurrently processed packets.
//!
//! [DEC14]: classyard::papers#dec14

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::latency::Model;
use super::measure::Lookups;
use super::model::{Mode, PAPER_ERROR, error};
use super::{ENGINE, Study, TOGETHER};
use crate::bench::size_name;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::{coordinate, mean};

/// Headers of a group, which the engine takes through each step together, and headers of
/// a chunk of groups.
const GROUP_HEADERS: usize = 16;
const CHUNK_HEADERS: usize = 64;

/// Returns the cost of a chunk in addition to its headers, in nanoseconds. It is fitted
/// like the model's constants, to batches of one group over the smallest rule sets.
pub(super) fn chunk_ns(study: &mut Study<'_>, model: &Model) -> Result<f64, Failure> {
    let mut estimates = Vec::new();
    for &rules in &model.sizes {
        let lookups = study.dec14_lookups(ENGINE, rules)?;
        let ns = |together: usize| lookups.ns[place(together)];
        let (one, many) = (
            1.0 / coordinate(GROUP_HEADERS),
            1.0 / coordinate(CHUNK_HEADERS),
        );
        estimates.push((ns(GROUP_HEADERS) - ns(256)) / (one - many));
    }
    Ok(mean(&estimates).max(0.0))
}

/// Returns the index of a number of headers in [`TOGETHER`].
pub(super) fn place(together: usize) -> usize {
    let index = TOGETHER.iter().position(|&one| one == together);
    index.expect("one of those that are measured")
}

/// Returns the predicted nanoseconds a header for `together` headers: whole groups are
/// looked up in chunks, the other headers one by one.
pub(super) fn predicted(model: &Model, lookups: &Lookups, together: usize, chunk_ns: f64) -> f64 {
    let in_groups = together / GROUP_HEADERS * GROUP_HEADERS;
    let chunks = coordinate(in_groups.div_ceil(CHUNK_HEADERS));
    let full = chunk_ns / coordinate(CHUNK_HEADERS);
    let batch = (model.predict(lookups, Mode::Batch) - full) * coordinate(in_groups);
    let singles = model.predict(lookups, Mode::Single) * coordinate(together - in_groups);
    (batch + chunks * chunk_ns + singles) / coordinate(together)
}

/// Microseconds of a nanosecond.
const US_PER_NS: f64 = 1e-3;

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let model = Model::fit(study)?;
    let rules = study.dec14_rules();
    let threads = study.dec14_threads();
    study.expect_points(1 + threads.len());
    let chunk_ns = chunk_ns(study, &model)?;
    let lookups = study.dec14_lookups(ENGINE, rules)?;
    let mut grid = Grid {
        title: format!("Latency with {} rules", size_name(rules)),
        columns: [
            "headers together",
            "threads",
            "P",
            "ns a header",
            "predicted",
            "error",
            "µs until all are done",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 0,
        rows: Vec::new(),
    };
    let (mut lines, mut predictions) = (Vec::new(), Vec::new());
    let mut series: [Vec<(f64, f64)>; 2] = Default::default();
    let mut show = |together: usize, threads: usize, measured: f64, expected: f64| {
        let off = error(expected, measured);
        let latency = measured * coordinate(together) / 1e3;
        let headers = together * threads;
        grid.rows.push(vec![
            together.to_string(),
            threads.to_string(),
            headers.to_string(),
            format!("{measured:.1}"),
            format!("{expected:.1}"),
            format!("{:+.1} %", 100.0 * off),
            format!("{latency:.3}"),
        ]);
        lines.push(format!(
            "{rules},{together},{threads},{headers},{measured:.2},{expected:.2},{off:.4}"
        ));
        if threads == 1 {
            let predicted = expected * coordinate(together) / 1e3;
            series[0].push((coordinate(headers), latency));
            series[1].push((coordinate(headers), predicted));
        }
    };
    for (index, (&together, &measured)) in TOGETHER.iter().zip(&lookups.ns).enumerate() {
        let expected = predicted(&model, &lookups, together, chunk_ns);
        show(together, 1, measured, expected);
        let passes = lookups.passes.get(index).into_iter().flatten();
        let name = format!("P = {together}, one thread");
        predictions.push(Case::samples(name, passes.map(|ns| expected / ns)));
    }
    let mut left_out = String::new();
    for &threads in &threads {
        let parallel = study.dec14_parallel(ENGINE, rules, threads)?;
        let measured = 1e9 * coordinate(threads) / parallel.rate;
        if let Some(objection) = &parallel.objection {
            left_out.push_str(&format!(" {threads} threads are left out: {objection}."));
        } else if threads > 1 {
            show(
                256,
                threads,
                measured,
                predicted(&model, &lookups, 256, chunk_ns),
            );
        }
    }
    let heading = "rules,together,threads,p,ns,predicted_ns,error";
    study.write_csv("concurrency.csv", heading, &lines)?;
    let [measured, expected] = series;
    let chart = Chart {
        title: "Time until all of P headers are done ([DEC14] Fig. 3)",
        x_label: "headers together",
        y_label: "microseconds",
        log_x: true,
        log_y: true,
    };
    let mut drawn = vec![
        Series::marked("measured", "one", Mark::Circle, measured),
        Series::marked("predicted", "two", Mark::Cross, expected),
    ];
    let paper = super::paper_concurrency(US_PER_NS);
    study.add_paper("concurrency.svg", &paper, &mut drawn);
    study.draw("concurrency.svg", &chart, &drawn)?;
    let mut section = Section {
        title: "Latency against concurrently processed headers (Fig. 3)".to_owned(),
        method: format!(
            "The paper's P packets are processed by P threads on sixteen cores. Here P is the number of \
             headers that are looked up together, interleaved on one core, times the threads. \
             {GROUP_HEADERS} headers are searched for together, field by field, at most {CHUNK_HEADERS} at a time; fewer \
             are looked up one by one. Threads share the structure, and nothing else. Times of \
             threads are elapsed times, other times are CPU times.{left_out} The model is that of Fig. 2, with one more constant, {chunk_ns:.0} ns for \
             each chunk."
        ),
        claims: claims(predictions, &lookups),
        grids: vec![grid],
        pictures: vec!["concurrency.svg".to_owned()],
    };
    super::wrong_answers(&mut section, lookups.wrong);
    Ok(section)
}

pub(super) fn claims(predictions: Vec<Case>, lookups: &Lookups) -> Vec<Claim> {
    let batch_headers = coordinate(TOGETHER[TOGETHER.len() - 1]);
    let pairs = lookups.batch_passes().iter().zip(lookups.single_passes());
    // The time until all headers are done, over the time of one header.
    let growth: Vec<f64> = pairs
        .map(|(batch, single)| batch_headers * batch / single)
        .collect();
    let sublinear = growth.iter().map(|times| times / batch_headers);
    let sublinear: Vec<f64> = sublinear.collect();
    vec![
        Claim::new(
            "Fig. 3",
            "The latency of a packet increases rapidly with P, so throughput increases \
             sublinearly.",
        )
        .part(
            Part::new(
                "latency, P = 256 / P = 1, one thread",
                Threshold::Above(1.0),
            )
            .case(Case::samples("", growth))
            .picture("concurrency.svg"),
        )
        .part(
            Part::new("times the latency / times P", Threshold::Below(1.0))
                .case(Case::samples("", sublinear))
                .picture("concurrency.svg"),
        ),
        Claim::new(
            "Fig. 3",
            "The model has an error of less than ±10 % for all P; here it counts in the structure.",
        )
        .part(
            Part::new(
                "predicted / measured time",
                Threshold::Within(1.0 - PAPER_ERROR, 1.0 + PAPER_ERROR),
            )
            .paper(1.0)
            .cases(predictions)
            .case(Case::missing(
                "P threads",
                Gap::NotRun("several threads by the clock on the wall"),
            ))
            .grid("Latency with", ""),
        ),
    ]
}
