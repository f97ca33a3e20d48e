//! Reports as comma-separated values (RFC 4180, but with plain line ends).

use std::fmt::Display;
use std::io::{self, Write};

/// Writes rows.
pub(crate) struct Writer<'a> {
    out: &'a mut dyn Write,
}

impl Writer<'_> {
    /// Rows go to `out`.
    pub(crate) fn new(out: &mut dyn Write) -> Writer<'_> {
        Writer { out }
    }

    /// Writes one row.
    pub(crate) fn row(&mut self, cells: &[&dyn Display]) -> io::Result<()> {
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                self.out.write_all(b",")?;
            }
            let cell = cell.to_string();
            if cell.contains(['"', ',', '\n', '\r']) {
                write!(self.out, "\"{}\"", cell.replace('"', "\"\""))?;
            } else {
                self.out.write_all(cell.as_bytes())?;
            }
        }
        self.out.write_all(b"\n")
    }
}

/// An optional cell: nothing for nothing.
pub(crate) fn optional<T: Display>(value: Option<&T>) -> String {
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
}
