//! The picture of the rules that overlap: a matrix of positions in the file.

use std::fmt::Write as _;

use classyard::{Policy, RuleRef};
use classyard_conformance::random::{Dice, SeededDice};
use classyard_report::output::style::grouped;

use super::statement_rows::StatementRows;
use super::text::escaped;

/// Up to this number of rules, every pair of rules is compared.
const ALL_PAIRS: usize = 5_000;

/// The maximum number of rows and columns of the matrix.
const MAX_BINS: usize = 200;

/// The number of pairs that are compared for each cell of a matrix of more rules.
const SAMPLED_PAIRS: usize = 100;

/// The seed of the sample.
const SEED: u64 = 1;

/// The number of shades of overlapping cells.
const SHADES: usize = 8;

/// The side of the matrix, and the distances to labels and strips, in units of the picture.
const SIDE: f64 = 200.0;
const MARGIN_LEFT: f64 = 24.0;
const MARGIN_TOP: f64 = 12.0;
const STRIP_WIDTH: f64 = 5.0;
const STRIP_GAP: f64 = 2.0;

/// The rows with findings of one kind.
pub(super) struct MarkedRows<'a> {
    pub(super) kind: &'a str,
    /// The class of the kind in the style of the page.
    pub(super) class: String,
    pub(super) rows: Vec<usize>,
}

/// The overlapping pairs of rules by their positions in the file.
pub(super) struct OverlapMatrix {
    bins: usize,
    rows: usize,
    /// For each pair of bins, the compared pairs and how many of them overlap. The first bin is
    /// not behind the second.
    cells: Vec<Cell>,
    is_exact: bool,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    compared: u32,
    overlapping: u32,
}

impl OverlapMatrix {
    /// Compares all pairs of rules of different rows, or a sample if there are too many.
    pub(super) fn new(policy: &Policy, rows: &StatementRows) -> OverlapMatrix {
        let bins = rows.len().min(MAX_BINS);
        let mut matrix = OverlapMatrix {
            bins,
            rows: rows.len(),
            cells: vec![Cell::default(); bins * bins],
            is_exact: policy.len() <= ALL_PAIRS,
        };
        let forms: Vec<Vec<(usize, RuleRef<'_>)>> = (policy.ids().iter())
            .map(|&id| {
                policy
                    .rule(id)
                    .map(|(part, rule)| (part.index(), rule))
                    .collect()
            })
            .collect();
        let mut compare = |first: usize, second: usize| {
            let (a, b) = (rows.row_of(first), rows.row_of(second));
            if a != b {
                let cell = matrix.cell_of(a.min(b), a.max(b));
                let cell = &mut matrix.cells[cell];
                cell.compared += 1;
                cell.overlapping += u32::from(overlap(&forms[first], &forms[second]));
            }
        };
        if policy.len() <= ALL_PAIRS {
            for first in 0..policy.len() {
                (first + 1..policy.len()).for_each(|second| compare(first, second));
            }
            return matrix;
        }
        let mut dice = SeededDice::new(SEED);
        let range = |bin: usize| bin * rows.len() / bins..(bin + 1) * rows.len() / bins;
        for (first, second) in (0..bins).flat_map(|bin| (0..=bin).map(move |other| (other, bin))) {
            let mut draw = |bin: usize| {
                let range = range(bin);
                rows.first(range.start + dice.below(range.len()))
            };
            for _ in 0..SAMPLED_PAIRS {
                let (a, b) = (draw(first), draw(second));
                compare(a, b);
            }
        }
        matrix
    }

    fn bin_of(&self, row: usize) -> usize {
        // The inverse of the ranges of rows: bin `b` starts at row `b * rows / bins`.
        ((row + 1) * self.bins - 1) / self.rows
    }

    fn cell_of(&self, earlier: usize, later: usize) -> usize {
        self.bin_of(later) * self.bins + self.bin_of(earlier)
    }

    /// Returns the shade of a cell: 0 if no compared pair overlaps, else 1 to [`SHADES`].
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    fn shade(&self, cell: Cell) -> usize {
        if cell.overlapping == 0 {
            return 0;
        }
        // The cube root keeps single pairs apart from a hundred.
        let share = f64::from(cell.overlapping) / f64::from(cell.compared);
        ((share.cbrt() * SHADES as f64).ceil() as usize).clamp(1, SHADES)
    }

    /// Returns the number of compared and of overlapping pairs.
    pub(super) fn pairs(&self) -> (u64, u64) {
        let cells = self.cells.iter();
        cells.fold((0, 0), |(compared, overlapping), cell| {
            (
                compared + u64::from(cell.compared),
                overlapping + u64::from(cell.overlapping),
            )
        })
    }

    /// True if all pairs were compared, false for a sample.
    pub(super) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Returns the picture as SVG inside of a page, with a strip for each kind of finding.
    #[allow(clippy::cast_precision_loss)] // a picture
    pub(super) fn svg(&self, marks: &[MarkedRows<'_>]) -> String {
        let strips = marks.len() as f64 * (STRIP_WIDTH + STRIP_GAP);
        let (width, height) = (MARGIN_LEFT + SIDE + strips + 4.0, MARGIN_TOP + SIDE + 12.0);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"Rules that overlap, by \
             position in the file\">\n"
        );
        let scale = SIDE / self.bins as f64;
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<path class=\"field\" d=\"M{MARGIN_LEFT} {MARGIN_TOP}v{SIDE}h{SIDE}z\"/>\n\
             <g transform=\"translate({MARGIN_LEFT} {MARGIN_TOP}) scale({scale})\">"
        );
        for shade in 1..=SHADES {
            let path = self.path_of(shade);
            if !path.is_empty() {
                let _ = writeln!(svg, "<path class=\"s{shade}\" d=\"{path}\"/>");
            }
        }
        for (strip, mark) in marks.iter().enumerate() {
            let left = SIDE + STRIP_GAP + strip as f64 * (STRIP_WIDTH + STRIP_GAP);
            let mut path = String::new();
            let mut bins: Vec<usize> = mark.rows.iter().map(|&row| self.bin_of(row)).collect();
            bins.dedup();
            let (left, width) = (left / scale, STRIP_WIDTH / scale);
            for bin in bins {
                let _ = write!(path, "M{left} {bin}h{width}v1h-{width}z");
            }
            let kind = escaped(mark.kind);
            let _ = writeln!(
                svg,
                "<path class=\"{}\" d=\"{path}\"><title>{kind}</title></path>",
                mark.class
            );
        }
        svg.push_str("</g>\n");
        self.write_labels(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    /// Returns the outline of all cells of a shade; neighbours in a row are joined.
    fn path_of(&self, shade: usize) -> String {
        let mut path = String::new();
        for row in 0..self.bins {
            let mut column = 0;
            while column <= row {
                let is_shade = |column: usize| {
                    column <= row && self.shade(self.cells[row * self.bins + column]) == shade
                };
                let length = (column..).take_while(|&column| is_shade(column)).count();
                if length > 0 {
                    let _ = write!(path, "M{column} {row}h{length}v1h-{length}z");
                }
                column += length.max(1);
            }
        }
        path
    }

    fn write_labels(&self, svg: &mut String) {
        let row_count = grouped(self.rows);
        let (left, bottom) = (MARGIN_LEFT - 2.0, MARGIN_TOP + SIDE);
        let mut label = |x: f64, y: f64, anchor: &str, text: &str| {
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
            );
        };
        label(left, MARGIN_TOP + 5.0, "end", "# 1");
        label(left, bottom, "end", &row_count);
        label(MARGIN_LEFT, bottom + 8.0, "start", "# 1");
        label(MARGIN_LEFT + SIDE, bottom + 8.0, "end", &row_count);
    }
}

/// True if two rules match a common header of some part.
fn overlap(first: &[(usize, RuleRef<'_>)], second: &[(usize, RuleRef<'_>)]) -> bool {
    first.iter().any(|(part, rule)| {
        let others = second.iter().filter(|(other, _)| other == part);
        others.into_iter().any(|(_, other)| rule.overlaps(other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_the_bin_whose_range_has_it() {
        for rows in [1, 2, 199, 200, 201, 399, 1_000, 5_003] {
            let bins = rows.min(MAX_BINS);
            let matrix = OverlapMatrix {
                bins,
                rows,
                cells: Vec::new(),
                is_exact: true,
            };
            for bin in 0..bins {
                for row in bin * rows / bins..(bin + 1) * rows / bins {
                    assert_eq!(matrix.bin_of(row), bin, "row {row} of {rows}");
                }
            }
        }
    }

    #[test]
    fn shades_grow_with_the_share_of_overlapping_pairs() {
        let matrix = OverlapMatrix {
            bins: 1,
            rows: 1,
            cells: Vec::new(),
            is_exact: true,
        };
        let shade = |overlapping| {
            matrix.shade(Cell {
                compared: 1_000,
                overlapping,
            })
        };
        assert_eq!((shade(0), shade(1), shade(1_000)), (0, 1, SHADES));
        assert!((1..1_000).all(|count| shade(count) <= shade(count + 1)));
    }
}
