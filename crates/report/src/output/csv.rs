//! Reports as comma-separated values (RFC 4180, but with plain line ends).

use std::fmt::Display;
use std::io::{self, Write};

/// Writes rows.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    /// Columns appended to every row, and whether the heading was written.
    columns: Vec<(&'static str, String)>,
    begun: bool,
}

impl<'a> Writer<'a> {
    /// Creates a writer to `out`.
    pub fn new(out: &'a mut dyn Write) -> Writer<'a> {
        Writer {
            out,
            columns: Vec::new(),
            begun: false,
        }
    }

    /// Appends these columns to every row: their names in the first row, which is the
    /// heading, and their values in all other rows.
    pub fn with_columns(mut self, columns: Vec<(&'static str, String)>) -> Self {
        self.columns = columns;
        self
    }

    /// Writes one row.
    pub fn row(&mut self, cells: &[&dyn Display]) -> io::Result<()> {
        let begun = std::mem::replace(&mut self.begun, true);
        let appended_cells = self.columns.iter().map(|(name, value)| match begun {
            true => value.clone(),
            false => (*name).to_owned(),
        });
        let cells = cells.iter().map(ToString::to_string).chain(appended_cells);
        for (index, cell) in cells.enumerate() {
            if index > 0 {
                self.out.write_all(b",")?;
            }
            if cell.contains(['"', ',', '\n', '\r']) {
                write!(self.out, "\"{}\"", cell.replace('"', "\"\""))?;
            } else {
                self.out.write_all(cell.as_bytes())?;
            }
        }
        self.out.write_all(b"\n")
    }
}

/// Returns the text of an optional cell, empty for `None`.
pub fn optional<T: Display>(value: Option<&T>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_when_they_must_be() {
        let mut out = Vec::new();
        Writer::new(&mut out)
            .row(&[&1, &"a b", &"a,b", &"say \"x\""])
            .unwrap();
        assert_eq!(out, b"1,a b,\"a,b\",\"say \"\"x\"\"\"\n");
    }

    #[test]
    fn rows_may_all_end_with_the_same() {
        let mut out = Vec::new();
        let columns = vec![("seed", "7".to_owned()), ("command", "a, b".to_owned())];
        let mut writer = Writer::new(&mut out).with_columns(columns);
        writer.row(&[&"rules"]).unwrap();
        writer.row(&[&1]).unwrap();
        writer.row(&[&2]).unwrap();
        assert_eq!(out, b"rules,seed,command\n1,7,\"a, b\"\n2,7,\"a, b\"\n");
    }
}
