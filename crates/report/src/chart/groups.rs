//! Charts whose x axis has names, such as profiles, instead of numbers.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::colours::Colours;
use super::published::{self, Published};
use super::{
    Area, Axis, Chart, Drawn, Figure, PLOT_HEIGHT, PLOT_WIDTH, Picture, Series, draw_mark, short,
};

/// The width of a letter of a group's name, and of a small letter in divided names.
const LETTER_PIXELS: usize = 7;
const SMALL_LETTER_PIXELS: usize = 6;

/// Draws a mark for each group and series. A point's x is the index of its group,
/// from 0. Every second group has a grey background. Published bars are at the place of the
/// series with the same subject.
///
/// # Errors
/// An error if the picture cannot be drawn.
pub fn draw_groups(chart: &Chart<'_>, groups: &[String], series: &[Series]) -> Picture {
    let Chart {
        title,
        x_label,
        y_label,
        log_x,
        log_y,
    } = *chart;
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
    let size = (PLOT_WIDTH + figure.legend_width(), PLOT_HEIGHT);
    let mut text = String::new();
    let page = SVGBackend::with_string(&mut text, size).into_drawing_area();
    page.fill(&WHITE)?;
    let colours = Colours::of(series.iter().map(|one| one.of.as_str()));
    let (plot, legend) = page.split_horizontally(PLOT_WIDTH);
    draw_plot(&plot, &figure, groups, &colours)?;
    figure.draw_legend(&legend, &colours)?;
    page.present()?;
    drop((plot, legend, page));
    Ok(text)
}

fn draw_plot(plot: &Area<'_>, figure: &Figure<'_>, groups: &[String], colours: &Colours) -> Drawn {
    let count = u32::try_from(groups.len().max(1))?;
    let axis = Axis::of(figure.chart.log_y, published::y_values(&figure.series));
    let (bottom, top) = (axis.range.start, axis.range.end);
    let mut chart = ChartBuilder::on(plot)
        .caption(figure.chart.title, ("sans-serif", 20))
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..f64::from(count), axis.clone())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .light_line_style(RGBColor(240, 240, 240))
        .bold_line_style(RGBColor(220, 220, 220))
        .x_desc(figure.chart.x_label)
        .y_desc(figure.chart.y_label)
        .y_label_formatter(&|y| short(axis.unscaled(*y)))
        .label_style(("sans-serif", 14))
        .draw()?;
    let grey = RGBColor(120, 120, 120).mix(0.08).filled();
    for group in (1..count).step_by(2) {
        let (left, right) = (f64::from(group), f64::from(group + 1));
        chart.draw_series([Rectangle::new([(left, bottom), (right, top)], grey)])?;
    }
    let (left, up) = plot.get_base_pixel();
    let area = chart.plotting_area();
    let to_pixel = |x: f64, y: f64| {
        let (x, y) = area.map_coordinate(&(x, y));
        (x - left, y - up)
    };
    draw_names(plot, groups, |x| to_pixel(x, bottom))?;
    let x_axis = Axis {
        log: false,
        range: 0.0..f64::from(count),
    };
    published::draw_dashed(plot, &figure.series, (&x_axis, &axis), colours, to_pixel)?;
    draw_marks(plot, figure, &axis, colours, to_pixel)
}

/// Writes the names of groups below a plot, in lines if they are wider than a group.
/// `to_pixel` receives an x on the horizontal axis.
fn draw_names(plot: &Area<'_>, groups: &[String], to_pixel: impl Fn(f64) -> (i32, i32)) -> Drawn {
    let width = usize::try_from(to_pixel(1.0).0 - to_pixel(0.0).0)?;
    let divided = |pixels: usize| -> Vec<Vec<String>> {
        let letters = width / pixels;
        groups.iter().map(|name| wrapped(name, letters)).collect()
    };
    let whole = divided(LETTER_PIXELS);
    let is_wrapped = whole.iter().any(|lines| lines.len() > 1);
    let (size, names) = match is_wrapped {
        true => (12, divided(SMALL_LETTER_PIXELS)),
        false => (14, whole),
    };
    let style = ("sans-serif", size).into_font().color(&BLACK);
    let style = style.pos(Pos::new(HPos::Center, VPos::Top));
    for (group, lines) in (0_u32..).zip(names) {
        let (x, mut y) = to_pixel(f64::from(group) + 0.5);
        for line in lines {
            plot.draw(&Text::new(line, (x, y + 6), style.clone()))?;
            y += size;
        }
    }
    Ok(())
}

/// Returns a name in lines of at most this number of letters, divided at spaces only.
fn wrapped(name: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Draws the marks of a plot, and published bars behind them. Within a group, series are
/// next to each other, so that equal values do not hide each other. `to_pixel` receives a
/// point on the scale of the axes.
fn draw_marks(
    plot: &Area<'_>,
    figure: &Figure<'_>,
    axis: &Axis,
    colours: &Colours,
    to_pixel: impl Fn(f64, f64) -> (i32, i32),
) -> Drawn {
    let measured: Vec<&Series> = figure.measured().collect();
    let lines = u32::try_from(measured.len())?;
    let aside = |line: u32| f64::from(line + 1) / f64::from(lines + 1);
    let is_bar = |one: &&Series| one.published == Some(Published::Bar);
    for one in figure.series.iter().filter(is_bar) {
        let mut places = (0..lines).zip(&measured);
        let place = places.find(|(_, measured)| measured.of == one.of);
        let aside = place.map_or(0.5, |(line, _)| aside(line));
        for point in &one.points {
            published::draw_bar(plot, to_pixel(point.x + aside, axis.scaled(point.y)))?;
        }
    }
    for (line, one) in (0..lines).zip(measured) {
        for point in &one.points {
            let pixel = to_pixel(point.x + aside(line), axis.scaled(point.y));
            draw_mark(plot, pixel, point.mark, point.hollow, colours.get(&one.of))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Mark;
    use super::*;

    #[test]
    fn long_names_are_wrapped_at_spaces() {
        assert_eq!(wrapped("acl1", 2), ["acl1"]);
        assert_eq!(
            wrapped("Open vSwitch, all flows", 9),
            ["Open", "vSwitch,", "all flows"]
        );
        assert_eq!(wrapped("no cache, sorted", 40), ["no cache, sorted"]);
    }

    #[test]
    fn groups_and_series_have_their_names() {
        let chart = Chart {
            title: "Time of updates",
            x_label: "profile",
            y_label: "microseconds",
            log_x: false,
            log_y: true,
        };
        let groups = ["acl1", "fw1", "ipc1"].map(str::to_owned);
        let points = [(0.0, 1.0), (1.0, 30.0), (2.0, 0.2)];
        let series = [
            Series::marked("tss", "tss", Mark::Square, points),
            Series::marked("forest (ours)", "forest", Mark::Circle, points),
        ];
        let svg = draw_groups(&chart, &groups, &series).unwrap();
        for text in [
            "acl1",
            "fw1",
            "ipc1",
            "tss",
            "forest (ours)",
            "Time of updates",
        ] {
            assert_eq!(svg.matches(&format!("\n{text}\n")).count(), 1, "{text}");
        }
        // One circle per point and one in the legend, each drawn with an edge.
        assert_eq!(svg.matches("<circle").count(), 2 * (points.len() + 1));
    }
}
