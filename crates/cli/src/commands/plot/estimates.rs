//! Estimates against measurements.

use classyard_report::chart::{Chart, Figure, Mark, Point, Series};

use super::read::{Pair, Results, Times};

/// Estimates within this share of the measured time are in the band.
const BAND_SHARE: f64 = 0.3;

/// Returns a figure for each operation that has estimates.
pub(super) fn figures(results: &Results) -> Vec<Figure<'static>> {
    type Of = fn(&Times) -> Pair;
    let kinds: [(&str, &str, Of); 3] = [
        (
            "Lookups in batches: estimated against measured",
            "measured, ns per header",
            |times| times.batch,
        ),
        (
            "Single lookups: estimated against measured",
            "measured, ns per header",
            |times| times.single,
        ),
        (
            "Updates: estimated against measured",
            "measured, ns a rule",
            |times| times.update,
        ),
    ];
    let figures = kinds.into_iter();
    let drawn = figures.filter_map(|(title, x_label, of)| figure(results, title, x_label, of));
    drawn.collect()
}

#[allow(clippy::cast_precision_loss)] // counts of marks
fn figure(
    results: &Results,
    title: &'static str,
    x_label: &'static str,
    of: fn(&Times) -> Pair,
) -> Option<Figure<'static>> {
    let mut series = Vec::new();
    let (mut near, mut all) = (0_usize, 0_usize);
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for (number, engine) in results.engines().into_iter().enumerate() {
        let rows = results.rows.iter().filter(|row| row.engine == engine);
        let points = rows.filter_map(|row| {
            let (estimated, measured) = of(&row.times)?;
            all += 1;
            near += usize::from((estimated / measured - 1.0).abs() <= BAND_SHARE);
            (least, most) = (least.min(measured), most.max(measured));
            Some(Point {
                x: measured,
                y: estimated,
                mark: Mark::ALL[number % Mark::ALL.len()],
                hollow: false,
                apart: true,
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
    if all == 0 {
        return None;
    }
    let band = [least, most].map(|x| (x, x * (1.0 - BAND_SHARE), x * (1.0 + BAND_SHARE)));
    series.push(Series {
        name: "within 30 %".to_owned(),
        of: "within 30 %".to_owned(),
        band: band.to_vec(),
        ..Series::default()
    });
    let share = 100.0 * near as f64 / all as f64;
    Some(Figure {
        chart: Chart {
            title,
            x_label,
            y_label: "estimated, ns",
            log_x: true,
            log_y: true,
        },
        series,
        marks: Vec::new(),
        remarks: vec![
            "each mark: an engine on a set".to_owned(),
            format!("{near} of {all} within 30 % ({share:.0} %)"),
        ],
    })
}
