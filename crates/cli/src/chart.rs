//! Line charts as SVG files.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

/// Colours that people with colour-blindness can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
    RGBColor(0, 0, 0),
];

/// The plot's size, and the legend's width beside it.
const WIDTH: u32 = 780;
const HEIGHT: u32 = 500;
const LEGEND: u32 = 230;

/// One line: its name and its points.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A chart with both axes logarithmic or linear.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) x_label: &'a str,
    pub(crate) y_label: &'a str,
    pub(crate) log_x: bool,
    pub(crate) log_y: bool,
}

impl Chart<'_> {
    /// Draws the lines.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn draw(&self, path: &Path, series: &[Series]) -> Result<(), Box<dyn Error>> {
        let scale = |log: bool, value: f64| if log { value.log10() } else { value };
        let label = |log: bool, value: f64| if log { 10f64.powf(value) } else { value };
        let points = || series.iter().flat_map(|s| &s.points);
        let bounds = |log: bool, values: &mut dyn Iterator<Item = f64>| {
            let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
            for value in values {
                low = low.min(scale(log, value));
                high = high.max(scale(log, value));
            }
            if !low.is_finite() {
                return 0.0..1.0;
            }
            let room = ((high - low) * 0.06).max(0.02);
            let start = if log { low - room } else { 0.0 };
            start..high + room
        };
        let x_range = bounds(self.log_x, &mut points().map(|p| p.0));
        let y_range = bounds(self.log_y, &mut points().map(|p| p.1));

        let area = SVGBackend::new(path, (WIDTH + LEGEND, HEIGHT)).into_drawing_area();
        area.fill(&WHITE)?;
        let (plot, legend) = area.split_horizontally(WIDTH);
        let mut chart = ChartBuilder::on(&plot)
            .caption(self.title, ("sans-serif", 20))
            .margin(14)
            .x_label_area_size(46)
            .y_label_area_size(64)
            .build_cartesian_2d(x_range, y_range)?;
        chart
            .configure_mesh()
            .light_line_style(RGBColor(240, 240, 240))
            .bold_line_style(RGBColor(220, 220, 220))
            .x_desc(self.x_label)
            .y_desc(self.y_label)
            .x_label_formatter(&|x| short(label(self.log_x, *x)))
            .y_label_formatter(&|y| short(label(self.log_y, *y)))
            .label_style(("sans-serif", 14))
            .draw()?;
        for (index, one) in series.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let scaled = one
                .points
                .iter()
                .map(|&(x, y)| (scale(self.log_x, x), scale(self.log_y, y)));
            let scaled: Vec<(f64, f64)> = scaled.collect();
            // Lines beyond the number of colours are thinner, to tell them apart.
            let width = if index < COLOURS.len() { 2 } else { 1 };
            chart.draw_series(LineSeries::new(scaled.clone(), colour.stroke_width(width)))?;
            chart.draw_series(
                scaled
                    .into_iter()
                    .map(|p| Circle::new(p, 3, colour.filled())),
            )?;
            // The legend stands beside the plot, where it hides no line.
            let y = 60 + 22 * i32::try_from(index)?;
            let stroke = colour.stroke_width(width + 1);
            legend.draw(&PathElement::new([(4, y), (28, y)], stroke))?;
            let font = ("sans-serif", 13).into_font();
            legend.draw(&Text::new(one.name.clone(), (34, y - 6), font))?;
        }
        area.present()?;
        Ok(())
    }
}

/// `1000000` as `1M`: labels that fit.
fn short(value: f64) -> String {
    let text = |value: f64, unit: &str| {
        let digits = if value >= 9.95 || (value - value.round()).abs() < 0.05 {
            0
        } else {
            1
        };
        format!("{value:.digits$}{unit}")
    };
    match value.abs() {
        v if v >= 999_500.0 => text(value / 1e6, "M"),
        v if v >= 999.5 => text(value / 1e3, "k"),
        v if v >= 0.1 || v == 0.0 => text(value, ""),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        let labels: Vec<String> = [0.0, 0.25, 3.0, 40.0, 1_000.0, 65_536.0, 2_500_000.0]
            .into_iter()
            .map(short)
            .collect();
        assert_eq!(labels, ["0", "0.2", "3", "40", "1k", "66k", "2.5M"]);
    }
}
