//! The file of winners: one line per header, or per packet of a capture.

use std::io::{self, Write};
use std::path::Path;

use classyard_report::failure::Failure;

use super::outcome::Outcome;
use super::outlet::Outlet;

/// The file of winners.
pub(super) struct WinnersFile(Outlet);

impl WinnersFile {
    /// Creates the file.
    pub(super) fn create(path: &Path) -> Result<WinnersFile, Failure> {
        Outlet::create(path).map(WinnersFile)
    }

    /// Writes a line for each outcome.
    pub(super) fn write(&mut self, outcomes: &[Outcome]) -> Result<(), Failure> {
        let written = write_lines(&mut self.0, outcomes);
        written.map_err(|error| self.0.failure(error))
    }

    /// Writes what is buffered.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.0.flush();
        flushed.map_err(|error| self.0.failure(error))
    }
}

/// Writes each line with one call, as [`Outlet`] requires.
fn write_lines(out: &mut Outlet, outcomes: &[Outcome]) -> io::Result<()> {
    let mut text = Vec::new();
    for outcome in outcomes {
        text.clear();
        match outcome {
            Outcome::Rule(position) => writeln!(text, "{position}")?,
            Outcome::Miss => text.extend(b"-\n"),
            Outcome::NoHeader => text.extend(b"x\n"),
        }
        out.write_all(&text)?;
    }
    Ok(())
}
