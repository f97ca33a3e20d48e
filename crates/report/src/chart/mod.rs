//! Line charts and scatter plots as SVG files, one or several on a page.

use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

mod colours;
mod groups;
mod published;

use colours::Colours;
pub use groups::draw_groups;
pub use published::Published;

/// The size of the plot, and the minimum width of the legend next to it.
const PLOT_WIDTH: u32 = 780;
const PLOT_HEIGHT: u32 = 500;
const MIN_LEGEND_WIDTH: u32 = 230;

/// The legend's lines: the position of the first, and their distance.
const LEGEND_TOP: i32 = 60;
const LEGEND_LINE: i32 = 22;

/// The position of the legend's names, and the width of a letter.
const LEGEND_NAMES: u32 = 34;
const LETTER_WIDTH: u32 = 8;

/// The minimum distance between two labels, as a share of the axis.
const MIN_LABEL_DISTANCE: f64 = 0.06;

/// The shape of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// A filled circle.
    #[default]
    Circle,
    /// A filled square.
    Square,
    /// A filled triangle, point up.
    Triangle,
    /// A filled square on a corner.
    Diamond,
    /// Two diagonal strokes.
    Cross,
    /// A horizontal and a vertical stroke.
    Plus,
}

impl Mark {
    /// All marks, in the order of their use.
    pub const ALL: [Mark; 6] = [
        Mark::Circle,
        Mark::Square,
        Mark::Triangle,
        Mark::Diamond,
        Mark::Cross,
        Mark::Plus,
    ];
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The position on the horizontal axis, in its unit.
    pub x: f64,
    /// The position on the vertical axis, in its unit.
    pub y: f64,
    /// The symbol.
    pub mark: Mark,
    /// True for a hollow mark, which sets the point apart from the others.
    pub hollow: bool,
    /// True if the line does not lead to this point.
    pub apart: bool,
}

/// The width of lines.
const LINE_WIDTH: u32 = 2;

/// One line: its name, its points, and a band around them.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The subject of the line, such as an engine. Lines of the same subject have the
    /// same colour.
    pub of: String,
    /// The points, in the order of the line.
    pub points: Vec<Point>,
    /// For some x, the minimum and the maximum y: a band behind the line.
    pub band: Vec<(f64, f64, f64)>,
    /// The drawing of published values; `None` for measured values.
    pub published: Option<Published>,
}

impl Series {
    /// Creates a line with circles at its points, in its own colour.
    pub fn line(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series::marked(name, name, Mark::Circle, points)
    }

    /// Creates a line with these marks at its points, in the colour of its subject
    /// `of`.
    pub fn marked(
        name: &str,
        of: &str,
        mark: Mark,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Series {
        let points = points.into_iter().map(|(x, y)| Point {
            x,
            y,
            mark,
            hollow: false,
            apart: false,
        });
        Series {
            name: name.to_owned(),
            of: of.to_owned(),
            points: points.collect(),
            band: Vec::new(),
            published: None,
        }
    }

    /// Creates published values about the subject `of`. They are drawn behind all measured
    /// lines.
    pub fn published(
        name: &str,
        of: &str,
        (kind, mark): (Published, Mark),
        values: impl IntoIterator<Item = (f64, f64)>,
    ) -> Series {
        Series {
            published: Some(kind),
            ..Series::marked(name, of, mark, values)
        }
    }
}

impl Series {
    /// Returns the mark of all its points if they share one.
    fn mark(&self) -> Option<Mark> {
        let mark = self.points.first()?.mark;
        let is_shared = self.points.iter().all(|point| point.mark == mark);
        is_shared.then_some(mark)
    }
}

/// A chart whose axes are logarithmic or linear.
pub struct Chart<'a> {
    /// The line above the picture.
    pub title: &'a str,
    /// The quantity of the horizontal axis, with its unit.
    pub x_label: &'a str,
    /// The quantity of the vertical axis, with its unit.
    pub y_label: &'a str,
    /// True for a logarithmic horizontal axis.
    pub log_x: bool,
    /// True for a logarithmic vertical axis.
    pub log_y: bool,
}

/// A chart with its contents.
pub struct Figure<'a> {
    /// Title and axes.
    pub chart: Chart<'a>,
    /// The lines, in the order of the legend.
    pub series: Vec<Series>,
    /// The meaning of the marks, listed below the names of the lines.
    pub marks: Vec<(Mark, String)>,
    /// Remarks below the legend, one per line.
    pub remarks: Vec<String>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

/// A picture as SVG, or the error of drawing it.
pub type Picture = Result<String, Box<dyn Error>>;

impl Chart<'_> {
    /// Draws lines.
    ///
    /// # Errors
    /// An error if the picture cannot be drawn.
    pub fn draw(&self, series: &[Series]) -> Picture {
        let Chart {
            title,
            x_label,
            y_label,
            log_x,
            log_y,
        } = *self;
        let figure = Figure {
            chart: Chart {
                title,
                x_label,
                y_label,
                log_x,
                log_y,
            },
            series: series.to_vec(),
            marks: Vec::new(),
            remarks: Vec::new(),
        };
        draw_page(&[figure])
    }
}

/// Draws figures on one page, one below the other.
///
/// # Errors
/// An error if the picture cannot be drawn.
pub fn draw_page(figures: &[Figure<'_>]) -> Picture {
    let legend = figures.iter().map(Figure::legend_width).max();
    let height = PLOT_HEIGHT * u32::try_from(figures.len().max(1))?;
    let size = (PLOT_WIDTH + legend.unwrap_or(MIN_LEGEND_WIDTH), height);
    let mut text = String::new();
    let page = SVGBackend::with_string(&mut text, size).into_drawing_area();
    page.fill(&WHITE)?;
    let series = figures.iter().flat_map(|figure| &figure.series);
    let colours = Colours::of(series.map(|one| one.of.as_str()));
    let areas = page.split_evenly((figures.len().max(1), 1));
    for (figure, area) in figures.iter().zip(areas) {
        let (plot, legend) = area.split_horizontally(PLOT_WIDTH);
        figure.draw_plot(&plot, &colours)?;
        figure.draw_legend(&legend, &colours)?;
    }
    page.present()?;
    drop(page);
    Ok(text)
}

impl Figure<'_> {
    fn draw_plot(&self, plot: &Area<'_>, colours: &Colours) -> Drawn {
        let Chart { log_x, log_y, .. } = self.chart;
        let bands = || self.series.iter().flat_map(|one| &one.band);
        let x_values = published::x_values(&self.series).chain(bands().map(|b| b.0));
        let y_values = published::y_values(&self.series);
        let y_values = y_values.chain(bands().flat_map(|b| [b.1, b.2]));
        let (x_axis, y_axis) = (Axis::of(log_x, x_values), Axis::of(log_y, y_values));
        let scaled = |x, y| (x_axis.scaled(x), y_axis.scaled(y));
        let mut chart = ChartBuilder::on(plot)
            .caption(self.chart.title, ("sans-serif", 20))
            .margin(14)
            .x_label_area_size(46)
            .y_label_area_size(64)
            .build_cartesian_2d(x_axis.clone(), y_axis.clone())?;
        chart
            .configure_mesh()
            .light_line_style(RGBColor(240, 240, 240))
            .bold_line_style(RGBColor(220, 220, 220))
            .x_desc(self.chart.x_label)
            .y_desc(self.chart.y_label)
            .x_label_formatter(&|x| short(x_axis.unscaled(*x)))
            .y_label_formatter(&|y| short(y_axis.unscaled(*y)))
            .label_style(("sans-serif", 14))
            .draw()?;
        let (left, top) = plot.get_base_pixel();
        let area = chart.plotting_area();
        let to_pixel = |x, y| {
            let (x, y) = area.map_coordinate(&(x, y));
            (x - left, y - top)
        };
        let axes = (&x_axis, &y_axis);
        published::draw_dashed(plot, &self.series, axes, colours, to_pixel)?;
        for one in self.measured() {
            let upper_edge = one.band.iter().map(|&(x, _, most)| scaled(x, most));
            let lower_edge = one.band.iter().rev().map(|&(x, least, _)| scaled(x, least));
            let outline: Vec<(f64, f64)> = upper_edge.chain(lower_edge).collect();
            if one.band.len() > 1 {
                chart.draw_series([Polygon::new(outline, colours.get(&one.of).mix(0.12))])?;
            } else {
                let stroke = colours.get(&one.of).mix(0.35).stroke_width(3);
                chart.draw_series([PathElement::new(outline, stroke)])?;
            }
        }
        for one in self.measured() {
            let joined = one.points.iter().filter(|point| !point.apart);
            let line = joined.map(|point| scaled(point.x, point.y));
            let stroke = colours.get(&one.of).stroke_width(LINE_WIDTH);
            chart.draw_series(LineSeries::new(line, stroke))?;
        }
        // Marks have the same size in pixels, whatever the axes.
        let area = chart.plotting_area();
        for one in self.measured() {
            for point in &one.points {
                let (x, y) = area.map_coordinate(&scaled(point.x, point.y));
                let pixel = (x - left, y - top);
                draw_mark(plot, pixel, point.mark, point.hollow, colours.get(&one.of))?;
            }
        }
        Ok(())
    }

    /// Returns the lines of measured values.
    fn measured(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|one| one.published.is_none())
    }

    /// Returns the lines of published values, each name once.
    fn published(&self) -> impl Iterator<Item = (Published, &Series)> {
        let lines = self.series.iter().enumerate();
        lines.filter_map(|(index, one)| {
            let is_new = self.series[..index]
                .iter()
                .all(|other| other.published.is_none() || other.name != one.name);
            one.published.filter(|_| is_new).map(|kind| (kind, one))
        })
    }

    /// Draws the legend next to the plot, where it hides no line.
    fn draw_legend(&self, area: &Area<'_>, colours: &Colours) -> Drawn {
        let names = i32::try_from(LEGEND_NAMES)?;
        let mut y = LEGEND_TOP;
        let text = |y: i32, x: i32, size: i32, text: &str| {
            let font = ("sans-serif", size).into_font();
            area.draw(&Text::new(text.to_owned(), (x, y - 6), font))
        };
        for one in self.measured() {
            let colour = colours.get(&one.of);
            let stroke = colour.stroke_width(LINE_WIDTH + 1);
            area.draw(&PathElement::new([(4, y), (28, y)], stroke))?;
            if let Some(mark) = one.mark() {
                draw_mark(area, (16, y), mark, false, colour)?;
            }
            text(y, names, 13, &one.name)?;
            y += LEGEND_LINE;
        }
        for (kind, one) in self.published() {
            let colour = published::colour(&self.series, one, colours);
            published::draw_sample(area, (16, y), (kind, one), colour)?;
            text(y, names, 13, &one.name)?;
            y += LEGEND_LINE;
        }
        if !self.marks.is_empty() {
            y += LEGEND_LINE / 2;
        }
        for (mark, meaning) in &self.marks {
            draw_mark(area, (16, y), *mark, false, RGBColor(90, 90, 90))?;
            text(y, names, 13, meaning)?;
            y += LEGEND_LINE;
        }
        y += LEGEND_LINE / 2;
        for remark in &self.remarks {
            text(y, 4, 12, remark)?;
            y += LEGEND_LINE - 4;
        }
        Ok(())
    }

    fn legend_width(&self) -> u32 {
        let letters = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let names = self.series.iter().map(|one| one.name.as_str());
        let meanings = self.marks.iter().map(|(_, meaning)| meaning.as_str());
        let beside = names.chain(meanings).map(letters).max().unwrap_or(0);
        let remarks = self.remarks.iter().map(|remark| letters(remark)).max();
        let remarks = remarks.unwrap_or(0);
        let width = (LEGEND_NAMES + LETTER_WIDTH * beside).max(LETTER_WIDTH * remarks);
        (width + 14).clamp(MIN_LEGEND_WIDTH, 4 * MIN_LEGEND_WIDTH)
    }
}

fn draw_mark(
    area: &Area<'_>,
    (x, y): (i32, i32),
    mark: Mark,
    hollow: bool,
    colour: RGBColor,
) -> Drawn {
    let fill = if hollow { WHITE } else { colour };
    let edge = colour.stroke_width(2);
    let shape = |corners: &[(i32, i32)]| -> Drawn {
        let corners: Vec<_> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        area.draw(&Polygon::new(corners.clone(), fill.filled()))?;
        let closed = corners.iter().chain(corners.first()).copied();
        area.draw(&PathElement::new(closed.collect::<Vec<_>>(), colour))?;
        Ok(())
    };
    match mark {
        Mark::Circle => {
            area.draw(&Circle::new((x, y), 4, fill.filled()))?;
            area.draw(&Circle::new((x, y), 4, colour))?;
        }
        Mark::Square => shape(&[(-4, -4), (4, -4), (4, 4), (-4, 4)])?,
        Mark::Triangle => shape(&[(0, -5), (5, 4), (-5, 4)])?,
        Mark::Diamond => shape(&[(0, -6), (6, 0), (0, 6), (-6, 0)])?,
        Mark::Cross => {
            area.draw(&PathElement::new([(x - 4, y - 4), (x + 4, y + 4)], edge))?;
            area.draw(&PathElement::new([(x - 4, y + 4), (x + 4, y - 4)], edge))?;
        }
        Mark::Plus => {
            area.draw(&PathElement::new([(x - 5, y), (x + 5, y)], edge))?;
            area.draw(&PathElement::new([(x, y - 5), (x, y + 5)], edge))?;
        }
    }
    Ok(())
}

/// An axis. A logarithmic axis stores decimal logarithms. Its grid lines are at
/// powers of ten, and if these are few, also at round numbers in between.
#[derive(Clone, Debug)]
struct Axis {
    log: bool,
    range: Range<f64>,
}

impl Axis {
    /// Creates an axis that includes these values.
    fn of(log: bool, values: impl Iterator<Item = f64>) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            let value = if log { value.log10() } else { value };
            low = low.min(value);
            high = high.max(value);
        }
        if !low.is_finite() {
            return Axis {
                log,
                range: 0.0..1.0,
            };
        }
        let (start, span) = if log { (low, high - low) } else { (0.0, high) };
        let room = (span * 0.06).max(0.02);
        let start = if log { start - room } else { start };
        Axis {
            log,
            range: start..high + room,
        }
    }

    fn scaled(&self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }

    fn unscaled(&self, value: f64) -> f64 {
        if self.log { 10f64.powf(value) } else { value }
    }

    /// Returns the logarithms of some multiples of powers of ten on the axis.
    fn multiples(&self, digits: &[f64]) -> Vec<f64> {
        let mut lines = Vec::new();
        let mut power = self.range.start.floor();
        while power <= self.range.end {
            let logarithms = digits.iter().map(|digit| power + digit.log10());
            lines.extend(logarithms.filter(|line| self.range.contains(line)));
            power += 1.0;
        }
        lines
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range.clone()).map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if !self.log {
            return RangedCoordf64::from(self.range.clone()).key_points(hint);
        }
        let apart = MIN_LABEL_DISTANCE * (self.range.end - self.range.start);
        let choices: [&[f64]; 5] = [
            &[
                1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0,
            ],
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
            &[1.0],
        ];
        let lines = choices.map(|digits| self.multiples(digits));
        if hint.weight().allow_light_points() {
            let [_, nine, ..] = lines;
            return nine;
        }
        let clear = |lines: &Vec<f64>| lines.windows(2).all(|pair| pair[1] - pair[0] > apart);
        let chosen = lines.iter().find(|lines| lines.len() > 1 && clear(lines));
        chosen.or(lines.last()).cloned().unwrap_or_default()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// Formats the label of a grid line briefly: `1000000` as `1M`. Grid lines of an axis differ
/// in their first three digits, so their labels are all different.
fn short(value: f64) -> String {
    let three_digits = format!("{value:.2e}");
    let rounded: f64 = three_digits.parse().unwrap_or(value);
    match rounded.abs() {
        v if v >= 1e6 => format!("{}M", rounded / 1e6),
        v if v >= 1e3 => format!("{}k", rounded / 1e3),
        v if v >= 1e-3 || v == 0.0 => rounded.to_string(),
        _ => format!("{rounded:e}"),
    }
}

#[cfg(test)]
mod tests {
    use plotters::coord::ranged1d::{BoldPoints, LightPoints};

    use super::*;

    #[test]
    fn labels_are_short() {
        let labels: Vec<String> = [
            0.0,
            0.00002,
            0.001,
            0.05,
            0.14,
            0.30000000000000004,
            3.0,
            40.0,
            999.99,
            1_000.0,
            10_500.0,
            2_500_000.0,
        ]
        .into_iter()
        .map(short)
        .collect();
        let short = [
            "0", "2e-5", "0.001", "0.05", "0.14", "0.3", "3", "40", "1k", "1k", "10.5k", "2.5M",
        ];
        assert_eq!(labels, short);
    }

    #[test]
    fn logarithmic_axes_have_lines_at_round_numbers() {
        let labels = |low: f64, high: f64| {
            let axis = Axis::of(true, [low, high].into_iter());
            let lines = axis.key_points(BoldPoints(10));
            let labels = lines.iter().map(|&line| short(axis.unscaled(line)));
            labels.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(1e3, 1e6), "1k 2k 5k 10k 20k 50k 100k 200k 500k 1M");
        assert_eq!(labels(8e3, 17e3), "8k 9k 10k 12k 14k 16k");
        assert_eq!(labels(1e3, 64e3), "1k 2k 5k 10k 20k 50k");
        assert_eq!(labels(1.0, 1e9), "1 10 100 1k 10k 100k 1M 10M 100M 1000M");
        let axis = Axis::of(true, [5.0].into_iter());
        assert!(!axis.key_points(LightPoints::new(10, 100)).is_empty());
        assert!(axis.range.contains(&axis.scaled(5.0)));
    }

    #[test]
    fn no_two_labels_of_an_axis_are_equal() {
        let (mut axes, mut labels_total) = (0, 0);
        for log in [false, true] {
            for exponent in -9..9 {
                for digit in 10..100 {
                    let low = f64::from(digit) * 10f64.powi(exponent - 1);
                    for ratio in [1.0, 1.01, 1.2, 1.7, 3.0, 9.0, 40.0, 1e3, 1e7] {
                        let axis = Axis::of(log, [low, low * ratio].into_iter());
                        // At most 11 labels, the default of plotters.
                        let lines = axis.key_points(BoldPoints(11)).into_iter();
                        let labels: Vec<String> =
                            lines.map(|line| short(axis.unscaled(line))).collect();
                        for (index, label) in labels.iter().enumerate() {
                            let others = &labels[..index];
                            assert!(
                                !others.contains(label),
                                "{low} to {low} x {ratio}: {labels:?}"
                            );
                        }
                        axes += 1;
                        labels_total += labels.len();
                    }
                }
            }
        }
        assert!(
            labels_total > 3 * axes,
            "{labels_total} labels of {axes} axes"
        );
    }

    #[test]
    fn legends_have_room_for_their_names() {
        let mut figure = Figure {
            chart: Chart {
                title: "",
                x_label: "",
                y_label: "",
                log_x: true,
                log_y: true,
            },
            series: vec![Series::line("short", [(1.0, 1.0)])],
            marks: Vec::new(),
            remarks: Vec::new(),
        };
        assert_eq!(figure.legend_width(), MIN_LEGEND_WIDTH);
        figure.series[0].name = "x".repeat(40);
        assert!(figure.legend_width() >= 40 * LETTER_WIDTH);
    }
}
