//! Values that a publication has, drawn behind the measured lines.

use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::RGBColor;

use super::colours::Colours;
use super::{Area, Axis, Drawn, LINE_WIDTH, Mark, Series};

/// The lengths of dashes and of the gaps between them, in pixels.
const DASH_PIXELS: i32 = 7;
const GAP_PIXELS: i32 = 5;

/// The radius of the ring around a value, or of another outline: a measured mark on the same
/// value is inside.
const RING_RADIUS: i32 = 7;

/// Half of the width of a bar, and its thickness.
const HALF_BAR_PIXELS: i32 = 13;
const BAR_THICKNESS: u32 = 4;

/// The colour of bars, and of dashed lines if a chart has one.
const GREY: RGBColor = RGBColor(150, 150, 150);

/// The share of white in the paler form of a colour, and the greatest lightness of the
/// result, of 255: lighter lines are hard to see on white.
const PALE_SHARE: f64 = 0.45;
const MAX_LIGHTNESS: f64 = 195.0;

/// The drawing of published values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// A dashed line through the values, with the outline of a mark around each of them: a
    /// square, a triangle, or a ring for all other marks.
    Curve,
    /// For each value, a dashed horizontal line across the plot at its y.
    Level,
    /// For each value, a dashed vertical line across the plot at its x.
    Position,
    /// In a chart with groups, a grey bar at each value, behind the measured mark.
    Bar,
}

impl Published {
    /// Returns true if the horizontal axis has to include the values.
    fn has_x(self) -> bool {
        matches!(self, Published::Curve | Published::Position)
    }

    /// Returns true if the vertical axis has to include the values.
    fn has_y(self) -> bool {
        !matches!(self, Published::Position)
    }
}

/// Returns the x of all points that the horizontal axis includes.
pub(super) fn x_values(series: &[Series]) -> impl Iterator<Item = f64> {
    let included = series
        .iter()
        .filter(|one| one.published.is_none_or(Published::has_x));
    included.flat_map(|one| one.points.iter().map(|point| point.x))
}

/// Returns the y of all points that the vertical axis includes.
pub(super) fn y_values(series: &[Series]) -> impl Iterator<Item = f64> {
    let included = series
        .iter()
        .filter(|one| one.published.is_none_or(Published::has_y));
    included.flat_map(|one| one.points.iter().map(|point| point.y))
}

/// Returns the colour of a published line: a paler form of its own colour, or grey if no
/// other published line is dashed.
pub(super) fn colour(series: &[Series], one: &Series, colours: &Colours) -> RGBColor {
    let is_dashed = |one: &&Series| one.published.is_some_and(|kind| kind != Published::Bar);
    match one.published {
        Some(Published::Bar) => GREY,
        _ if series.iter().filter(is_dashed).count() < 2 => GREY,
        _ => pale(colours.get(&one.of)),
    }
}

fn pale(RGBColor(red, green, blue): RGBColor) -> RGBColor {
    let [r, g, b] = [red, green, blue].map(f64::from);
    let lightness = 0.3 * r + 0.59 * g + 0.11 * b;
    let max_share = (MAX_LIGHTNESS - lightness) / (255.0 - lightness).max(1.0);
    let share = PALE_SHARE.min(max_share).max(0.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 255
    let mix = |part: f64| (part + (255.0 - part) * share).round() as u8;
    RGBColor(mix(r), mix(g), mix(b))
}

/// Draws the dashed lines of `series` on a plot with these axes, and their rings.
/// `to_pixel` receives a point on the scale of the axes.
pub(super) fn draw_dashed(
    plot: &Area<'_>,
    series: &[Series],
    (x_axis, y_axis): (&Axis, &Axis),
    colours: &Colours,
    to_pixel: impl Fn(f64, f64) -> (i32, i32),
) -> Drawn {
    let (x_range, y_range) = (&x_axis.range, &y_axis.range);
    for one in series {
        let colour = colour(series, one, colours);
        let scaled = one.points.iter();
        let scaled = scaled.map(|point| (x_axis.scaled(point.x), y_axis.scaled(point.y)));
        let scaled: Vec<(f64, f64)> = scaled.collect();
        let pixels = |ends: [(f64, f64); 2]| ends.map(|(x, y)| to_pixel(x, y));
        match one.published {
            None | Some(Published::Bar) => {}
            Some(Published::Curve) => {
                let points: Vec<_> = scaled.iter().map(|&(x, y)| to_pixel(x, y)).collect();
                dashes(plot, &points, colour)?;
                for (pixel, point) in points.into_iter().zip(&one.points) {
                    outline(plot, pixel, point.mark, colour)?;
                }
            }
            Some(Published::Level) => {
                for (_, y) in scaled {
                    dashes(
                        plot,
                        &pixels([(x_range.start, y), (x_range.end, y)]),
                        colour,
                    )?;
                }
            }
            Some(Published::Position) => {
                for (x, _) in scaled {
                    dashes(
                        plot,
                        &pixels([(x, y_range.end), (x, y_range.start)]),
                        colour,
                    )?;
                }
            }
        }
    }
    Ok(())
}

/// Draws the bar of a value.
pub(super) fn draw_bar(area: &Area<'_>, (x, y): (i32, i32)) -> Drawn {
    let ends = [(x - HALF_BAR_PIXELS, y), (x + HALF_BAR_PIXELS, y)];
    area.draw(&PathElement::new(ends, GREY.stroke_width(BAR_THICKNESS)))?;
    Ok(())
}

/// Draws the sample of a published line in the legend, around a point.
pub(super) fn draw_sample(
    area: &Area<'_>,
    (x, y): (i32, i32),
    (kind, one): (Published, &Series),
    colour: RGBColor,
) -> Drawn {
    let across = [(x - 12, y), (x + 12, y)];
    match kind {
        Published::Curve => {
            dashes(area, &across, colour)?;
            let mark = one.mark().unwrap_or_default();
            outline(area, (x, y), mark, colour)
        }
        Published::Level => dashes(area, &across, colour),
        Published::Position => dashes(area, &[(x, y - 9), (x, y + 9)], colour),
        Published::Bar => draw_bar(area, (x, y)),
    }
}

fn dashes(area: &Area<'_>, points: &[(i32, i32)], colour: RGBColor) -> Drawn {
    let stroke = colour.stroke_width(LINE_WIDTH);
    let points = points.iter().copied();
    area.draw(&DashedPathElement::new(
        points,
        DASH_PIXELS,
        GAP_PIXELS,
        stroke,
    ))?;
    Ok(())
}

fn outline(area: &Area<'_>, (x, y): (i32, i32), mark: Mark, colour: RGBColor) -> Drawn {
    let edge = colour.stroke_width(2);
    let radius = RING_RADIUS;
    let corners: &[(i32, i32)] = match mark {
        Mark::Square => &[(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)],
        Mark::Triangle => &[(0, -1), (1, 1), (-1, 1), (0, -1)],
        _ => {
            area.draw(&Circle::new((x, y), radius, edge))?;
            return Ok(());
        }
    };
    let corners = corners
        .iter()
        .map(|(dx, dy)| (x + dx * radius, y + dy * radius));
    area.draw(&PathElement::new(corners.collect::<Vec<_>>(), edge))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Chart, draw_groups};
    use super::*;

    fn chart() -> Chart<'static> {
        Chart {
            title: "Tables against rules",
            x_label: "rules",
            y_label: "tables",
            log_x: true,
            log_y: true,
        }
    }

    fn names(svg: &str, name: &str) -> usize {
        svg.matches(&format!("\n{name}\n")).count()
    }

    #[test]
    fn the_scale_covers_published_values() {
        let measured = Series::line("tss", [(1e3, 10.0), (1e4, 20.0)]);
        let published =
            |kind| Series::published("paper", "tss", (kind, Mark::Circle), [(1e6, 1e5)]);
        let ranges = |kind| {
            let series = [measured.clone(), published(kind)];
            let axes = (
                Axis::of(true, x_values(&series)),
                Axis::of(true, y_values(&series)),
            );
            [axes.0.range.end > 6.0, axes.1.range.end > 5.0]
        };
        assert_eq!(ranges(Published::Curve), [true, true]);
        assert_eq!(ranges(Published::Level), [false, true]);
        assert_eq!(ranges(Published::Position), [true, false]);
        assert!(ranges(Published::Bar)[1]);
    }

    #[test]
    fn curves_are_behind_measured_lines_and_in_the_legend() {
        let points = [(1e3, 10.0), (1e4, 20.0)];
        let without = chart().draw(&[Series::line("tss", points)]).unwrap();
        let values = [(1e3, 12.0), (1e4, 30.0), (1e5, 50.0)];
        let paper = Series::published("paper", "tss", (Published::Curve, Mark::Circle), values);
        let svg = chart().draw(&[Series::line("tss", points), paper]).unwrap();
        assert_eq!((names(&without, "paper"), names(&svg, "paper")), (0, 1));
        // A ring around each value, and one in the legend.
        let circles = |svg: &str| svg.matches("<circle").count();
        assert_eq!(circles(&svg) - circles(&without), values.len() + 1);
        // One published line is grey, and drawn before the measured one.
        let [grey, own] = ["#969696", "#CC79A7"].map(|colour| svg.find(colour).unwrap());
        assert!(grey < own);
        assert!(svg.matches("#969696").count() > 10, "dashes: {svg}");
    }

    #[test]
    fn several_curves_have_paler_forms_of_their_colours() {
        let curve = |name: &str, of: &str| {
            Series::published(
                name,
                of,
                (Published::Curve, Mark::Circle),
                [(1e3, 10.0), (1e4, 20.0)],
            )
        };
        let series = [
            Series::line("tss", [(1e3, 10.0)]),
            Series::line("forest", [(1e3, 20.0)]),
            curve("paper: tss", "tss"),
            curve("paper: forest", "forest"),
        ];
        let svg = chart().draw(&series).unwrap();
        assert_eq!(names(&svg, "paper: tss"), 1);
        assert_eq!(names(&svg, "paper: forest"), 1);
        assert!(!svg.contains("#969696"));
        let colours = Colours::of(["tss", "forest"].into_iter());
        for name in ["tss", "forest"] {
            let RGBColor(red, green, blue) = pale(colours.get(name));
            let colour = format!("#{red:02X}{green:02X}{blue:02X}");
            assert!(svg.contains(&colour), "{name}: {colour}");
        }
    }

    #[test]
    fn paler_colours_are_seen_on_white() {
        for colour in [
            RGBColor(0, 0, 0),
            RGBColor(187, 187, 187),
            RGBColor(221, 204, 119),
        ] {
            let RGBColor(red, green, blue) = pale(colour);
            assert!(red >= colour.0 && green >= colour.1 && blue >= colour.2);
            assert!(red.min(green).min(blue) <= 200, "{red} {green} {blue}");
        }
        assert_eq!(pale(RGBColor(0, 0, 0)), RGBColor(115, 115, 115));
    }

    #[test]
    fn groups_have_levels_too() {
        let groups = ["acl1", "fw1"].map(str::to_owned);
        let measured = Series::line("tss", [(0.0, 2.0), (1.0, 4.0)]);
        let level = Series::published(
            "paper: mean",
            "tss",
            (Published::Level, Mark::Circle),
            [(0.0, 3.0)],
        );
        let svg = draw_groups(&chart(), &groups, &[measured, level]).unwrap();
        assert_eq!(names(&svg, "paper: mean"), 1);
        let dashes = svg.lines().filter(|line| line.contains("#969696"));
        let pixels = (DASH_PIXELS + GAP_PIXELS) as usize;
        assert!(dashes.count() > 600 / pixels, "across the plot: {svg}");
    }

    #[test]
    fn bars_are_at_the_place_of_their_series() {
        let groups = ["acl1", "fw1"].map(str::to_owned);
        let marked = |name, mark| Series::marked(name, name, mark, [(0.0, 2.0), (1.0, 4.0)]);
        let measured = [marked("tss", Mark::Square), marked("forest", Mark::Diamond)];
        let bar = |of| Series::published("paper", of, (Published::Bar, Mark::Circle), [(1.0, 4.0)]);
        let svg = |of| {
            let series = measured.iter().cloned().chain([bar(of), bar(of)]);
            draw_groups(&chart(), &groups, &series.collect::<Vec<_>>()).unwrap()
        };
        let bars = |of| -> Vec<String> {
            let svg = svg(of);
            // Equal names are listed once.
            assert_eq!(names(&svg, "paper"), 1);
            let lines = svg.lines().filter(|line| line.contains("#969696"));
            lines.map(str::to_owned).collect()
        };
        // Two bars, and the sample in the legend.
        assert_eq!(bars("tss").len(), 3);
        assert_ne!(bars("tss")[0], bars("forest")[0]);
        assert_eq!(bars("tss")[2], bars("forest")[2]);
    }
}
