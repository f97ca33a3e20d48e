//! The figures: their points, labels and remarks.

use classyard_lab::bench::{geometric_mean, size_name};
use classyard_report::chart::{Chart, Figure, Mark, Point, Series};

use super::read::{Kind, Results, Row};

/// Draws the lookup rate against the number of rules: a line for each engine
/// through its geometric means, and a band from its slowest to its fastest set.
pub(super) fn lookups_against_rules(results: &Results) -> Figure<'static> {
    let rows = || results.rows.iter().filter(|row| row.kind == Kind::Alone);
    let sizes = sizes(rows());
    let mut series = Vec::new();
    let mut fewer = false;
    for engine in results.engines() {
        let mut line = Series {
            name: engine.clone(),
            of: engine.clone(),
            ..Series::default()
        };
        for &size in &sizes {
            let rows_of_size = || rows().filter(move |row| row.size == size);
            let rates: Vec<f64> = rows_of_size()
                .filter(|row| row.engine == engine)
                .map(|row| row.lookups)
                .collect();
            let Some(mean) = geometric_mean(&rates) else {
                continue;
            };
            let x = coordinate(size);
            let hollow = rates.len() < sets(rows_of_size()).len();
            fewer |= hollow;
            line.points.push(Point {
                x,
                y: mean,
                mark: Mark::Circle,
                hollow,
                apart: false,
            });
            let (least, most) = extremes(&rates);
            line.band.push((x, least, most));
        }
        if !line.points.is_empty() {
            series.push(line);
        }
    }
    let mut remarks = vec![
        "line: geometric mean over sets".to_owned(),
        "band: slowest to fastest set".to_owned(),
    ];
    if fewer {
        remarks.push("hollow: measured on fewer sets".to_owned());
    }
    remarks.extend(counts(rows, &sizes));
    Figure {
        chart: Chart {
            title: "Lookups against rules",
            x_label: "rules",
            y_label: "headers a second, in batches of 256",
            log_x: true,
            log_y: true,
        },
        series,
        marks: Vec::new(),
        remarks,
    }
}

/// Draws the lookup rate against the update rate: a mark for each engine and size.
/// Returns `None` if no updates were measured.
pub(super) fn lookups_against_updates(results: &Results) -> Option<Figure<'static>> {
    let measured = |row: &&Row| row.kind == Kind::Alone && row.updates.is_some();
    let rows = || results.rows.iter().filter(measured);
    let sizes = sizes(rows());
    let mut series = Vec::new();
    for engine in results.engines() {
        let points = sizes.iter().enumerate().filter_map(|(index, &size)| {
            let its = || rows().filter(|row| row.engine == engine && row.size == size);
            let lookups: Vec<f64> = its().map(|row| row.lookups).collect();
            let updates: Vec<f64> = its().filter_map(|row| row.updates).collect();
            Some(Point {
                x: geometric_mean(&updates)?,
                y: geometric_mean(&lookups)?,
                mark: Mark::ALL[index % Mark::ALL.len()],
                hollow: false,
                apart: false,
            })
        });
        let points: Vec<Point> = points.collect();
        if !points.is_empty() {
            series.push(Series {
                name: engine.clone(),
                of: engine,
                points,
                ..Series::default()
            });
        }
    }
    if series.is_empty() {
        return None;
    }
    let mut remarks = vec!["marks: geometric means over sets".to_owned()];
    remarks.extend(counts(rows, &sizes));
    Some(Figure {
        chart: Chart {
            title: "Lookups against updates, measured separately",
            x_label: "updates a second",
            y_label: "headers a second, in batches of 256",
            log_x: true,
            log_y: true,
        },
        series,
        marks: marks_of(&sizes),
        remarks,
    })
}

/// Draws the mixed load: lookups, and the latency of batches, against the update
/// rate of the concurrent writer.
pub(super) fn mixed_load(results: &Results) -> Vec<Figure<'static>> {
    let figures = [
        mixed(
            results,
            "Lookups with concurrent updates (mixed load)",
            "headers a second",
            |row| Some(row.lookups),
        ),
        mixed(
            results,
            "Latency of batches with concurrent updates (mixed load)",
            "microseconds for a batch of 256, p99.9",
            |row| row.batch_p999.map(|seconds| seconds * 1e6),
        ),
    ];
    figures.into_iter().flatten().collect()
}

/// Draws a figure of the mixed load: a line for each engine and size. Points
/// without a writer are hollow, at the left end and not connected.
fn mixed(
    results: &Results,
    title: &'static str,
    y_label: &'static str,
    value: fn(&Row) -> Option<f64>,
) -> Option<Figure<'static>> {
    let rows = || results.rows.iter().filter(|row| row.kind == Kind::Mixed);
    let sizes = sizes(rows());
    let updates = rows().filter_map(|row| row.updates);
    // A decade left of the slowest writer; any value without writers.
    let no_writer_x = updates.reduce(f64::min).map_or(1.0, |least| least / 10.0);
    let mut series = Vec::new();
    let mut still = false;
    for engine in results.engines() {
        for (index, &size) in sizes.iter().enumerate() {
            let its = || rows().filter(|row| row.engine == engine && row.size == size);
            let mut points = Vec::new();
            for target in targets(its()) {
                let rows_at_target = || its().filter(|row| row.target() == target);
                let values: Vec<f64> = rows_at_target().filter_map(value).collect();
                let updates: Vec<f64> = rows_at_target().filter_map(|row| row.updates).collect();
                let x = geometric_mean(&updates);
                still |= x.is_none();
                points.extend(geometric_mean(&values).map(|y| Point {
                    x: x.unwrap_or(no_writer_x),
                    y,
                    mark: Mark::ALL[index % Mark::ALL.len()],
                    hollow: x.is_none(),
                    apart: x.is_none(),
                }));
            }
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            if !points.is_empty() {
                series.push(Series {
                    name: match sizes.as_slice() {
                        [_] => engine.clone(),
                        _ => format!("{engine}, {}", size_name(size)),
                    },
                    of: engine.clone(),
                    points,
                    ..Series::default()
                });
            }
        }
    }
    if series.is_empty() {
        return None;
    }
    let mut remarks = vec!["marks: geometric means over sets".to_owned()];
    if still {
        remarks.push("hollow, at the left end: no writer".to_owned());
    }
    remarks.extend(counts(rows, &sizes));
    Some(Figure {
        chart: Chart {
            title,
            x_label: "updates made a second",
            y_label,
            log_x: true,
            log_y: true,
        },
        series,
        marks: Vec::new(),
        remarks,
    })
}

fn marks_of(sizes: &[usize]) -> Vec<(Mark, String)> {
    let meanings = sizes.iter().map(|&size| {
        format!(
            "{} {}",
            size_name(size),
            if size == 1 { "rule" } else { "rules" }
        )
    });
    let marks = Mark::ALL.iter().copied().cycle();
    marks.zip(meanings).collect()
}

/// Returns the sizes of some rows, in order.
fn sizes<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<usize> {
    let mut sizes: Vec<usize> = rows.map(|row| row.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Returns the sets of some rows.
fn sets<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<&'a str> {
    let mut sets: Vec<&str> = rows.map(|row| row.set.as_str()).collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// Returns the update rates that the writers of some rows were set to.
fn targets<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<&'a str> {
    let mut targets: Vec<&str> = rows.map(Row::target).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// Returns remarks such as `1k: 12 sets`, in a few lines.
fn counts<'a, R: Iterator<Item = &'a Row>>(rows: impl Fn() -> R, sizes: &[usize]) -> Vec<String> {
    let number = |size| sets(rows().filter(|row| row.size == size)).len();
    let numbers: Vec<usize> = sizes.iter().map(|&size| number(size)).collect();
    let text = |sets: usize| match sets {
        1 => "1 set".to_owned(),
        sets => format!("{sets} sets"),
    };
    match numbers.as_slice() {
        [] => Vec::new(),
        [first, others @ ..] if others.iter().all(|other| other == first) => {
            vec![text(*first)]
        }
        _ => {
            let each = sizes.iter().zip(numbers);
            each.map(|(&size, sets)| format!("{}: {}", size_name(size), text(sets)))
                .collect()
        }
    }
}

fn extremes(values: &[f64]) -> (f64, f64) {
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (min, max)
}

/// Converts a count to a coordinate.
#[allow(clippy::cast_precision_loss)] // far below 2^52
fn coordinate(count: usize) -> f64 {
    count as f64
}
