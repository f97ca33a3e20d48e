//! Reports as JSON.

use std::io::{self, Write};

use serde::Serialize;

/// Writes a report as one indented object and a line end.
pub fn write(report: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    out.write_all(b"\n")
}

/// Writes a report as one object on one line.
pub fn write_line(report: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, report)?;
    out.write_all(b"\n")
}
