//! Tables and lists of facts for people.

use std::fmt::Display;
use std::io::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Width};

use super::style::{BOLD, DIM, paint};

/// A table under construction, drawn with light lines.
pub struct Table {
    columns: Vec<(String, Side)>,
    rows: Vec<Vec<String>>,
}

/// The kind of a column: its alignment and how it shrinks on a narrow terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Words, on the left.
    Left,
    /// Numbers, on the right.
    Right,
    /// Bars that draw the number next to them, left-aligned. Left out if the table is
    /// too wide.
    Bar,
}

/// The longest word that stays unbroken in columns of words, in letters. The first
/// of these limits with which the table fits is used, or the last.
const WHOLE_WORDS: [usize; 4] = [24, 16, 12, 8];

/// The longest cell that stays unbroken in columns of numbers, in letters. Longer
/// cells may be broken between words.
const WHOLE_NUMBER: usize = 12;

impl Table {
    /// Creates a table with these columns.
    pub fn new(columns: &[(&str, Side)]) -> Table {
        let columns = columns.iter().map(|&(name, side)| (name.to_owned(), side));
        Table {
            columns: columns.collect(),
            rows: Vec::new(),
        }
    }

    /// Appends a row with one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// True if the table has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table at the width of the terminal.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in self.lines(super::width()) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Returns the lines of the table. To fit into `width` columns, first bars are
    /// left out, then cells are broken between words, then long words are broken. If
    /// that is not enough, the table is wider.
    fn lines(&self, width: Option<u16>) -> Vec<String> {
        let whole = self.arranged(true, None);
        let natural = whole.column_max_content_widths().into_iter();
        let natural: usize = natural.map(|width| usize::from(width) + CELL_PADDING).sum();
        let table = match width {
            Some(width) if natural > usize::from(width) => self.arranged(false, Some(width)),
            _ => whole,
        };
        let lines = table.lines();
        lines.map(|line| line.trim_end().to_owned()).collect()
    }

    /// Returns the table at a width, with or without bars.
    fn arranged(&self, bars: bool, width: Option<u16>) -> comfy_table::Table {
        let columns = || {
            let columns = self.columns.iter().enumerate();
            columns.filter(move |(_, (_, side))| bars || *side != Side::Bar)
        };
        let mut table = comfy_table::Table::new();
        let style = NOTHING.header_separator(LineStyle::none().fill('─'));
        table.load_style(style);
        table.set_content_arrangement(match width {
            Some(_) => ContentArrangement::Dynamic,
            None => ContentArrangement::Disabled,
        });
        if let Some(width) = width {
            table.set_width(width);
        }
        table.set_header(columns().map(|(_, (name, _))| Cell::new(paint(BOLD, name))));
        for row in &self.rows {
            table.add_row(columns().map(|(at, _)| row.get(at).map_or("", String::as_str)));
        }
        let min_widths = |whole: usize| -> Vec<usize> {
            let widths = columns().map(|(at, _)| self.least_width(at, whole));
            widths.collect()
        };
        let fits = |whole: &usize| {
            let total_width: usize = min_widths(*whole).iter().sum();
            width.is_none_or(|width| total_width <= usize::from(width))
        };
        let whole = WHOLE_WORDS.into_iter().find(fits);
        let min_widths = min_widths(whole.unwrap_or(WHOLE_WORDS[WHOLE_WORDS.len() - 1]));
        for (place, ((_, (_, side)), word)) in columns().zip(min_widths).enumerate() {
            let column = table
                .column_mut(place)
                .expect("the heading created the columns");
            column.set_cell_alignment(match side {
                Side::Left | Side::Bar => CellAlignment::Left,
                Side::Right => CellAlignment::Right,
            });
            let word = u16::try_from(word).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(word)));
        }
        table
    }

    /// Returns the minimum width of a column whose words of up to `whole` letters and
    /// whose numbers stay unbroken.
    fn least_width(&self, at: usize, whole: usize) -> usize {
        let (name, side) = &self.columns[at];
        let cells = self.rows.iter().filter_map(|row| row.get(at));
        let widths = cells.map(|cell| match side {
            Side::Left | Side::Bar => longest_word(cell).min(whole),
            Side::Right => match letters(cell) {
                all if all <= WHOLE_NUMBER => all,
                _ => longest_word(cell),
            },
        });
        let heading = longest_word(name).min(whole);
        widths.fold(heading, usize::max) + CELL_PADDING
    }
}

/// The number of spaces around a cell.
const CELL_PADDING: usize = 2;

/// Returns the number of letters of a cell, including spaces.
fn letters(cell: &str) -> usize {
    let plain = anstream::adapter::strip_str(cell).to_string();
    plain.chars().count()
}

/// Returns the number of letters in a cell's longest word.
fn longest_word(cell: &str) -> usize {
    let plain = anstream::adapter::strip_str(cell).to_string();
    let words = plain.split_whitespace();
    words.map(|word| word.chars().count()).max().unwrap_or(0)
}

/// The column where a fact's text begins.
const FACT_INDENT: usize = 12;

/// Writes a heading.
pub fn heading(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "{}", paint(BOLD, text))
}

/// Writes `label   text`, with further lines of the text indented below the first.
pub fn fact(out: &mut dyn Write, label: &str, text: impl Display) -> io::Result<()> {
    let text = text.to_string();
    let mut lines = text.lines();
    let pad = (FACT_INDENT - 1).saturating_sub(label.chars().count());
    writeln!(
        out,
        " {}{} {}",
        paint(BOLD, label),
        " ".repeat(pad.saturating_sub(1)),
        lines.next().unwrap_or_default()
    )?;
    for line in lines {
        writeln!(out, "{}{line}", " ".repeat(FACT_INDENT))?;
    }
    Ok(())
}

/// Writes a remark in a dim style.
pub fn remark(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, " {}", paint(DIM, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits() -> Table {
        let mut table = Table::new(&[
            ("rule", Side::Right),
            ("match", Side::Left),
            ("share", Side::Right),
            ("", Side::Bar),
        ]);
        for rule in 0..3 {
            table.row(vec![
                rule.to_string(),
                paint(DIM, "src=10.0.0.0/8 dst=192.168.10.0/24 dport=80 proto=tcp"),
                "38.2 %".to_owned(),
                "█".repeat(14),
            ]);
        }
        table
    }

    fn widest(lines: &[String]) -> usize {
        let plain = lines
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string());
        plain.map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn a_narrow_table_loses_its_bars_before_cells_are_broken() {
        let table = hits();
        let lines = |width| table.lines(width);
        assert_eq!(lines(None), lines(Some(200)));
        let wide = lines(None);
        assert!(wide.iter().any(|line| line.contains('█')));
        assert_eq!(wide.len(), 5);
        // Room for everything except the bars: no cell is broken.
        let width = u16::try_from(widest(&wide) - 5).unwrap();
        let without = lines(Some(width));
        assert!(!without.iter().any(|line| line.contains('█')));
        assert_eq!(without.len(), 5, "{without:#?}");
        assert!(widest(&without) <= usize::from(width));
    }

    #[test]
    fn words_stay_whole_as_long_as_there_is_room() {
        for width in [0, 1, 10, 30, 40, 60] {
            let lines = hits().lines(Some(width)).join("\n");
            for word in ["src=10.0", "share", "rule", "38.2 %"] {
                assert!(lines.contains(word), "{width}: no {word} in\n{lines}");
            }
            let whole = lines.contains("dst=192.168.10.0/24");
            assert_eq!(whole, width >= 40, "{width}:\n{lines}");
            if width >= 40 {
                assert!(
                    widest(&hits().lines(Some(width))) <= usize::from(width),
                    "{lines}"
                );
            }
        }
    }
}
