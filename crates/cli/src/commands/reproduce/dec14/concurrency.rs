//! [DEC14] Fig. 3: latency against the number of packets that are processed
//! concurrently.
//!
//! [DEC14]: classyard::papers#dec14

use super::latency::Model;
use super::measure::Lookups;
use super::model::{Mode, error, within};
use super::{ENGINE, Study, TOGETHER};
use crate::bench::size_name;
use crate::chart::{Chart, Mark, Series};
use crate::commands::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::commands::reproduce::statistics::{coordinate, mean};
use crate::failure::Failure;

/// Headers that the engine takes through each step together, and the most groups of
/// them.
const GROUP: usize = 16;
const CHUNK: usize = 64;

/// What taking a chunk through its steps costs besides its headers: fitted like the
/// model's constants, to batches of one group in the smallest rule sets.
fn chunk_ns(study: &mut Study<'_>, model: &Model) -> Result<f64, Failure> {
    let mut found = Vec::new();
    for &rules in &model.sizes {
        let lookups = study.dec14_lookups(ENGINE, rules)?;
        let at = |together: usize| lookups.ns[place(together)];
        let (one, many) = (1.0 / coordinate(GROUP), 1.0 / coordinate(CHUNK));
        found.push((at(GROUP) - at(256)) / (one - many));
    }
    Ok(mean(&found).max(0.0))
}

/// The place of a number of headers in [`TOGETHER`].
fn place(together: usize) -> usize {
    let place = TOGETHER.iter().position(|&one| one == together);
    place.expect("one of those that are measured")
}

/// The predicted nanoseconds for a header when so many are looked up together:
/// whole groups in chunks, the rest one by one.
fn predicted(model: &Model, lookups: &Lookups, together: usize, chunk_ns: f64) -> f64 {
    let in_groups = together / GROUP * GROUP;
    let chunks = coordinate(in_groups.div_ceil(CHUNK));
    let full = chunk_ns / coordinate(CHUNK);
    let batch = (model.predict(lookups, Mode::Batch) - full) * coordinate(in_groups);
    let rest = model.predict(lookups, Mode::Single) * coordinate(together - in_groups);
    (batch + chunks * chunk_ns + rest) / coordinate(together)
}

/// Draws the figure.
pub(in crate::commands::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
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
    let (mut lines, mut errors) = (Vec::new(), Vec::new());
    let mut series: [Vec<(f64, f64)>; 2] = Default::default();
    let mut show = |together: usize, threads: usize, found: f64, expected: f64| {
        let off = error(expected, found);
        errors.push(off);
        let latency = found * coordinate(together) / 1e3;
        let headers = together * threads;
        grid.rows.push(vec![
            together.to_string(),
            threads.to_string(),
            headers.to_string(),
            format!("{found:.1}"),
            format!("{expected:.1}"),
            format!("{:+.1} %", 100.0 * off),
            format!("{latency:.3}"),
        ]);
        lines.push(format!(
            "{rules},{together},{threads},{headers},{found:.2},{expected:.2},{off:.4}"
        ));
        if threads == 1 {
            let predicted = expected * coordinate(together) / 1e3;
            series[0].push((coordinate(headers), latency));
            series[1].push((coordinate(headers), predicted));
        }
    };
    for (&together, &found) in TOGETHER.iter().zip(&lookups.ns) {
        show(
            together,
            1,
            found,
            predicted(&model, &lookups, together, chunk_ns),
        );
    }
    for &threads in &threads {
        let parallel = study.dec14_parallel(ENGINE, rules, threads)?;
        let found = 1e9 * coordinate(threads) / parallel.rate;
        if threads > 1 {
            show(
                256,
                threads,
                found,
                predicted(&model, &lookups, 256, chunk_ns),
            );
        }
    }
    let heading = "rules,together,threads,p,ns,predicted_ns,error";
    study.write_csv("concurrency.csv", heading, &lines)?;
    let [found, expected] = series;
    let grows = match (found.first(), found.last()) {
        (Some(first), Some(last)) => (last.0 / first.0, last.1 / first.1),
        _ => (1.0, 1.0),
    };
    let chart = Chart {
        title: "Time until all of P headers are done ([DEC14] Fig. 3)",
        x_label: "headers together",
        y_label: "microseconds",
        log_x: true,
        log_y: true,
    };
    let drawn = [
        Series::marked("measured", "one", Mark::Circle, found),
        Series::marked("predicted", "two", Mark::Cross, expected),
    ];
    study.draw("concurrency.svg", &chart, &drawn)?;
    let (small, all) = (within(&errors), errors.len());
    let mut section = Section {
        title: "Latency against concurrently processed headers (Fig. 3)".to_owned(),
        method: format!(
            "The paper's P packets are processed by P threads on sixteen cores. Here P is the number of \
             headers that are looked up together, interleaved on one core, times the threads. \
             {GROUP} headers are searched for together, field by field, at most {CHUNK} at a time; fewer \
             are looked up one by one. Threads share the structure, and nothing else. Times are \
             CPU times. The model is that of Fig. 2, with one more constant, {chunk_ns:.0} ns for \
             each chunk."
        ),
        claims: vec![
            Claim {
                place: "Fig. 3",
                paper: "The latency of a packet increases rapidly with P, so throughput increases \
                        sublinearly.",
                measured: format!(
                    "{:.0} times as many headers together are done after {:.0} times the time",
                    grows.0, grows.1
                ),
                verdict: Verdict::of(grows.1 > 1.0 && grows.1 < grows.0, "see the table"),
            },
            Claim {
                place: "Fig. 3",
                paper: "The model has an error of less than ±10 % for all P.",
                measured: format!("{small} of {all} points are within ±10 %"),
                verdict: Verdict::for_most(
                    small,
                    all,
                    &format!("{} of {all} errors are greater", all - small),
                ),
            },
        ],
        grids: vec![grid],
        pictures: vec!["concurrency.svg".to_owned()],
    };
    super::wrong_answers(&mut section, lookups.wrong);
    Ok(section)
}
