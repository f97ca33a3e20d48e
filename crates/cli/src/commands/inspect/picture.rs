//! The picture of a rule set: prefix lengths, port classes, tuples, protocols.

use std::path::Path;

use classyard_report::output::style::{counted, grouped, percent, three_digits};
use classyard_report::output::svg::{Anchor, BLUE, FAINT, INK, ORANGE, PALE, Svg, is_dark, ramp};

use super::report::{InspectReport, PartReport};

const PAGE_WIDTH: f64 = 1180.0;
const PAGE_MARGIN: f64 = 40.0;
const HEADING_HEIGHT: f64 = 84.0;

/// The height of one part's panels, including the space below them.
const PART_HEIGHT: f64 = 592.0;

/// The side of the heat map of prefix lengths.
const HEAT_MAP_SIDE: f64 = 396.0;

/// The left edge of the panels next to the heat map.
const RIGHT_PANELS_X: f64 = PAGE_MARGIN + HEAT_MAP_SIDE + 130.0;

/// Names of port classes, from general to specific.
const SIDES: [&str; 5] = ["any", "high", "low", "range", "exact"];

/// Maximum number of bars in a list of shares.
const MAX_BARS: usize = 7;

/// Draws a rule set.
pub(super) fn draw(report: &InspectReport) -> String {
    #[allow(clippy::cast_precision_loss)] // at most eight
    let parts = report.parts.len() as f64;
    let mut svg = Svg::new(PAGE_WIDTH, HEADING_HEIGHT + parts * PART_HEIGHT);
    let name = Path::new(&report.source).file_name();
    let name = name.map_or_else(
        || report.source.clone(),
        |name| name.to_string_lossy().into(),
    );
    svg.title((PAGE_MARGIN, 42.0), 22.0, &name);
    let mut facts = vec![
        counted(report.rules, "rule"),
        format!("of {}", report.schema),
    ];
    facts.extend(
        report
            .engines
            .iter()
            .filter(|row| row.engine != "linear")
            .map(|row| format!("{}: {}", row.engine, counted(row.tables, "table"))),
    );
    svg.text(
        (PAGE_MARGIN, 64.0),
        13.0,
        Anchor::Start,
        FAINT,
        &facts.join("   ·   "),
    );
    let mut top = HEADING_HEIGHT;
    for part in &report.parts {
        draw_part(&mut svg, part, top, report.parts.len() > 1);
        top += PART_HEIGHT;
    }
    svg.finish()
}

fn draw_part(svg: &mut Svg, part: &PartReport, top: f64, several: bool) {
    svg.line((PAGE_MARGIN, top), (PAGE_WIDTH - PAGE_MARGIN, top), PALE);
    let mut top = top + 34.0;
    if several {
        let title = format!("{}: {}", part.schema, counted(part.rules, "rule"));
        svg.title((PAGE_MARGIN, top), 16.0, &title);
    } else {
        top -= 10.0;
    }
    top += 42.0;
    if part.prefix_lengths.is_empty() {
        svg.text(
            (PAGE_MARGIN, top),
            13.0,
            Anchor::Start,
            FAINT,
            "no addresses, so no prefix lengths",
        );
    } else {
        lengths(svg, part, (PAGE_MARGIN + 40.0, top));
    }
    ports(svg, part, (RIGHT_PANELS_X + 44.0, top));
    protocols(svg, part, (RIGHT_PANELS_X + 330.0, top));
    tuples(svg, part, (RIGHT_PANELS_X + 20.0, top + 286.0));
}

/// Draws a heat map: source length to the right, destination length upwards.
#[allow(clippy::cast_precision_loss)] // lengths are small
fn lengths(svg: &mut Svg, part: &PartReport, at: (f64, f64)) {
    let (left, top) = at;
    svg.title((left, top - 12.0), 14.0, "Prefix lengths");
    // Lengths of 128-bit addresses are grouped by four.
    let step = (part.address_bits / 32).max(1);
    let cells = part.address_bits / step + 1;
    let side = HEAT_MAP_SIDE / f64::from(cells);
    svg.rect((left, top), (HEAT_MAP_SIDE, HEAT_MAP_SIDE), PALE, "");
    let mut shares = vec![0.0; (cells * cells) as usize];
    for row in &part.prefix_lengths {
        let cell = (row.destination / step) * cells + row.source / step;
        shares[cell as usize] += row.share;
    }
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let smallest = 1.0 / part.rules.max(1) as f64;
    for (index, &share) in (0_u32..).zip(&shares).filter(|(_, share)| **share > 0.0) {
        let (source, destination) = (index % cells, index / cells);
        // Logarithmic, so that single rules stay visible next to thousands.
        let depth = (share / smallest).ln() / (largest / smallest).ln().max(1e-9);
        let corner = (
            left + f64::from(source) * side,
            top + HEAT_MAP_SIDE - f64::from(destination + 1) * side,
        );
        let tip = format!(
            "source {}, destination {}: {}",
            span(source * step, step, part.address_bits),
            span(destination * step, step, part.address_bits),
            percent(share)
        );
        svg.rect(corner, (side - 0.6, side - 0.6), &ramp(depth), &tip);
    }
    for mark in 0..=4 {
        let length = part.address_bits * mark / 4;
        let offset = (f64::from(length / step) + 0.5) * side;
        svg.text(
            (left + offset, top + HEAT_MAP_SIDE + 16.0),
            11.0,
            Anchor::Middle,
            FAINT,
            &format!("/{length}"),
        );
        svg.text(
            (left - 6.0, top + HEAT_MAP_SIDE - offset + 4.0),
            11.0,
            Anchor::End,
            FAINT,
            &format!("/{length}"),
        );
    }
    svg.text(
        (left + HEAT_MAP_SIDE / 2.0, top + HEAT_MAP_SIDE + 34.0),
        12.0,
        Anchor::Middle,
        INK,
        "source",
    );
    svg.upward(
        (left - 38.0, top + HEAT_MAP_SIDE / 2.0),
        12.0,
        INK,
        "destination",
    );
    // The colour scale, in rules.
    let scale = top + HEAT_MAP_SIDE + 48.0;
    for step in 0..60 {
        let share = f64::from(step) / 59.0;
        let corner = (left + 130.0 + f64::from(step) * 2.4, scale);
        svg.rect(corner, (2.5, 9.0), &ramp(share), "");
    }
    svg.text(
        (left + 122.0, scale + 9.0),
        11.0,
        Anchor::End,
        FAINT,
        "1 rule",
    );
    let largest_label = format!("{} of the rules", percent(largest));
    svg.text(
        (left + 282.0, scale + 9.0),
        11.0,
        Anchor::Start,
        FAINT,
        &largest_label,
    );
}

fn span(first: u32, step: u32, bits: u32) -> String {
    let last = (first + step - 1).min(bits);
    if first == last {
        format!("/{first}")
    } else {
        format!("/{first} to /{last}")
    }
}

/// Draws the 25 port classes as a table of coloured cells.
fn ports(svg: &mut Svg, part: &PartReport, at: (f64, f64)) {
    if part.port_classes.is_empty() {
        return;
    }
    let (left, top) = at;
    let side = 38.0;
    svg.title((left - 44.0, top - 12.0), 14.0, "Port classes");
    let largest = part.port_classes.iter().map(|row| row.share);
    let largest = largest.fold(0.0, f64::max).max(1e-9);
    for (row, destination) in SIDES.iter().enumerate() {
        for (column, source) in SIDES.iter().enumerate() {
            let class = part
                .port_classes
                .iter()
                .find(|class| class.source == *source && class.destination == *destination);
            let share = class.map_or(0.0, |class| class.share);
            #[allow(clippy::cast_precision_loss)] // below five
            let corner = (left + column as f64 * side, top + row as f64 * side);
            let depth = (share / largest).sqrt();
            let fill = if share > 0.0 {
                ramp(depth)
            } else {
                PALE.to_owned()
            };
            let tip = format!(
                "source {source}, destination {destination}: {}",
                percent(share)
            );
            svg.rect(corner, (side - 1.5, side - 1.5), &fill, &tip);
            if share >= 0.005 {
                let colour = if is_dark(depth) { "#ffffff" } else { INK };
                let middle = (corner.0 + side / 2.0 - 0.75, corner.1 + side / 2.0 + 3.0);
                svg.text(
                    middle,
                    10.5,
                    Anchor::Middle,
                    colour,
                    &format!("{:.0}", share * 100.0),
                );
            }
        }
    }
    for (index, name) in SIDES.iter().enumerate() {
        #[allow(clippy::cast_precision_loss)] // below five
        let middle = (index as f64 + 0.5) * side;
        svg.text(
            (left - 6.0, top + middle + 4.0),
            11.0,
            Anchor::End,
            FAINT,
            name,
        );
        let label_y = top + 5.0 * side + 14.0;
        svg.text((left + middle, label_y), 11.0, Anchor::Middle, FAINT, name);
    }
    svg.text(
        (left + 2.5 * side, top + 5.0 * side + 31.0),
        12.0,
        Anchor::Middle,
        INK,
        "source port (% of rules)",
    );
    svg.upward(
        (left - 46.0, top + 2.5 * side),
        12.0,
        INK,
        "destination port",
    );
}

/// Draws the shares of the protocols as bars.
fn protocols(svg: &mut Svg, part: &PartReport, at: (f64, f64)) {
    if part.protocols.is_empty() {
        return;
    }
    let (left, top) = at;
    let width = PAGE_WIDTH - PAGE_MARGIN - left - 100.0;
    svg.title((left, top - 12.0), 14.0, "Protocols");
    let largest = part.protocols[0].share.max(1e-9);
    for (index, row) in part.protocols.iter().take(MAX_BARS).enumerate() {
        #[allow(clippy::cast_precision_loss)] // below MAX_BARS
        let y = top + index as f64 * 25.0;
        svg.text(
            (left + 50.0, y + 14.0),
            12.0,
            Anchor::End,
            INK,
            &row.protocol,
        );
        let length = row.share / largest * width;
        svg.rect((left + 58.0, y + 2.0), (length, 16.0), BLUE, "");
        let label_position = (left + 64.0 + length, y + 14.0);
        svg.text(
            label_position,
            11.0,
            Anchor::Start,
            FAINT,
            &percent(row.share),
        );
    }
    if part.protocols.len() > MAX_BARS {
        let bars_left = format!("and {} more", part.protocols.len() - MAX_BARS);
        #[allow(clippy::cast_precision_loss)] // small
        let y = top + MAX_BARS as f64 * 25.0 + 12.0;
        svg.text((left + 58.0, y), 11.0, Anchor::Start, FAINT, &bars_left);
    }
}

/// Draws the distribution of rules over tuples: the rules in the k largest tuples.
#[allow(clippy::cast_precision_loss)] // a plot
fn tuples(svg: &mut Svg, part: &PartReport, at: (f64, f64)) {
    let sizes = &part.tuple_sizes;
    if sizes.is_empty() {
        return;
    }
    let (left, top) = (at.0 + 24.0, at.1);
    let (width, height) = (PAGE_WIDTH - PAGE_MARGIN - left - 12.0, 156.0);
    let title = format!("Rules per tuple: {}", counted(sizes.len(), "tuple"));
    svg.title((at.0 - 20.0, top - 14.0), 14.0, &title);
    let largest_tuple = sizes[0].max(1) as f64;
    let decades = largest_tuple.log10().ceil().max(1.0);
    // A tuple of a single rule has a visible bar too.
    let floor = 0.6_f64.log10();
    let y_of =
        |count: f64| top + height - (count.max(1.0).log10() - floor) / (decades - floor) * height;
    let mut count = 1.0;
    while count <= 10f64.powf(decades) {
        let y = y_of(count);
        svg.line((left, y), (left + width, y), PALE);
        let label = match count {
            n if n >= 1e6 => format!("{}M", n / 1e6),
            n if n >= 1e3 => format!("{}k", n / 1e3),
            n => format!("{n}"),
        };
        svg.text((left - 6.0, y + 4.0), 11.0, Anchor::End, FAINT, &label);
        count *= 10.0;
    }
    let bars = sizes.len();
    let slot = width / bars as f64;
    if bars <= 160 {
        for (index, &size) in sizes.iter().enumerate() {
            let y = y_of(size as f64);
            let corner = (left + index as f64 * slot, y);
            let tip = format!("tuple {}: {}", index + 1, counted(size, "rule"));
            svg.rect(
                corner,
                ((slot - 1.0).max(0.8), top + height - y),
                BLUE,
                &tip,
            );
        }
    } else {
        let points: Vec<(f64, f64)> = (0..bars)
            .map(|index| (left + index as f64 * slot, y_of(sizes[index] as f64)))
            .collect();
        svg.path(&points, BLUE);
    }
    // The share of the rules in the k largest tuples together.
    let total: usize = sizes.iter().sum();
    let mut held = 0;
    let shares: Vec<(f64, f64)> = sizes
        .iter()
        .enumerate()
        .map(|(index, &size)| {
            held += size;
            let share = held as f64 / total.max(1) as f64;
            (
                left + (index as f64 + 0.5) * slot,
                top + height * (1.0 - share),
            )
        })
        .collect();
    svg.path(&shares, ORANGE);
    let label_y = top + height + 16.0;
    svg.text((left, label_y), 11.0, Anchor::Start, FAINT, "largest tuple");
    svg.text(
        (left + width, label_y),
        11.0,
        Anchor::End,
        FAINT,
        "smallest",
    );
    svg.text(
        (left + width / 2.0, label_y + 18.0),
        12.0,
        Anchor::Middle,
        ORANGE,
        "line: share of all rules in the largest tuples so far, 0 to 100 %",
    );
    let half = sizes
        .iter()
        .scan(0, |held, &size| {
            *held += size;
            Some(*held)
        })
        .position(|held| held * 2 >= total)
        .map_or(0, |index| index + 1);
    let text = format!(
        "half of the rules are in {}; mean {} rules a tuple",
        grouped(half),
        three_digits(total as f64 / bars as f64)
    );
    svg.text(
        (left + width / 2.0, label_y),
        11.0,
        Anchor::Middle,
        FAINT,
        &text,
    );
}
