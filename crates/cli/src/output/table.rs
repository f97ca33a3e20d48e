//! Tables and lists of facts for people.

use std::fmt::Display;
use std::io::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle};

use super::style::{BOLD, DIM, paint};

/// A table under construction: light lines, room to breathe.
pub(crate) struct Table {
    table: comfy_table::Table,
}

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(columns: &[(&str, Side)]) -> Table {
        let mut table = comfy_table::Table::new();
        let style = NOTHING.header_separator(LineStyle::none().fill('─'));
        table.load_style(style);
        table.set_content_arrangement(if super::to_people() {
            ContentArrangement::Dynamic
        } else {
            ContentArrangement::Disabled
        });
        table.set_header(columns.iter().map(|(name, _)| Cell::new(paint(BOLD, name))));
        for (index, (_, side)) in columns.iter().enumerate() {
            let column = table
                .column_mut(index)
                .expect("the heading made the columns");
            column.set_cell_alignment(match side {
                Side::Left => CellAlignment::Left,
                Side::Right => CellAlignment::Right,
            });
        }
        Table { table }
    }

    /// Appends a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.table.add_row(cells);
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.row_count() == 0
    }

    /// Writes the table.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in self.table.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The column in which a fact's text begins.
const FACT_INDENT: usize = 12;

/// Writes a heading.
pub(crate) fn heading(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "{}", paint(BOLD, text))
}

/// Writes `label   text`; further lines of the text stand under the first.
pub(crate) fn fact(out: &mut dyn Write, label: &str, text: impl Display) -> io::Result<()> {
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

/// Writes a remark that completes the picture.
pub(crate) fn remark(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, " {}", paint(DIM, text))
}
