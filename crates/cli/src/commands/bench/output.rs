//! Reports of benchmarks: row by row as they finish, or all at the end, each
//! with what it takes to repeat the run.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use crate::bench::{Finished, Run};
use crate::commands::generate::to_file;
use crate::failure::Failure;
use crate::input::is_dash;
use crate::output::{self, Report, csv, stdout};
use crate::reporter::Reporter;

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// For people
    #[default]
    Table,
    /// A list of objects with all figures, their keys stable
    Json,
    /// The same objects, one a line, each as soon as it is measured; what an
    /// interrupted run has measured is kept
    Ndjson,
    /// Comma-separated values with a heading
    Csv,
}

/// The flags that say what is reported where.
#[derive(Debug, Default, clap::Args)]
pub(super) struct BenchOutput {
    /// The form of the report
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORM",
        help_heading = "Output"
    )]
    format: Format,

    /// Where to write the report; - for standard output
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "-",
        help_heading = "Output"
    )]
    output: PathBuf,
}

/// A report that has a run.
pub(super) trait BenchReport: Report {
    /// Writes the report as JSON, with the run.
    fn json(&self, run: &Run, out: &mut dyn Write) -> io::Result<()>;
}

/// Anything with the run that it comes from.
#[derive(Serialize)]
pub(super) struct WithRun<'a, T> {
    #[serde(flatten)]
    pub(super) what: &'a T,
    pub(super) run: &'a Run,
}

/// Writes rows as a list of objects, each with its run.
pub(super) fn write_rows<T: Serialize>(
    rows: &[T],
    run: &Run,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows = rows.iter().map(|what| WithRun { what, run });
    output::json::write(&rows.collect::<Vec<_>>(), out)
}

/// Where a run's rows and its report go.
pub(super) struct Sink<'a> {
    flags: &'a BenchOutput,
    run: Run,
    reporter: Reporter,
    /// Where rows go as they finish, if they do.
    lines: Option<Box<dyn Write>>,
}

impl BenchOutput {
    /// A place for the rows of a run that begins now.
    ///
    /// # Errors
    /// [`Failure`] when the file cannot be written.
    pub(super) fn begin(&self, seed: u64, reporter: Reporter) -> Result<Sink<'_>, Failure> {
        let path = &self.output;
        let to_file = !is_dash(path);
        let lines: Option<Box<dyn Write>> = match self.format {
            Format::Ndjson if to_file => {
                let file = File::create(path).map_err(|error| Failure::file(path, error))?;
                Some(Box::new(file))
            }
            Format::Ndjson => Some(Box::new(io::stdout())),
            _ => None,
        };
        if to_file && lines.is_none() {
            // Better now than after an hour of measuring.
            let existed = path.exists();
            let opened = OpenOptions::new().append(true).create(true).open(path);
            opened.map_err(|error| Failure::file(path, error))?;
            if !existed {
                // The report writes it again, so a failure here does not matter.
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(Sink {
            flags: self,
            run: Run::now(seed),
            reporter,
            lines,
        })
    }
}

impl Sink<'_> {
    /// Takes a row that has been measured: writes it where rows are written one
    /// by one, and says so where no progress bar does.
    ///
    /// # Errors
    /// [`Failure`] when it cannot be written.
    pub(super) fn row(&mut self, row: &impl Finished) -> Result<(), Failure> {
        if let Some(lines) = &mut self.lines {
            let run = &self.run;
            let mut line = serde_json::to_vec(&WithRun { what: row, run })?;
            line.push(b'\n');
            let written = lines.write_all(&line).and_then(|()| lines.flush());
            written.map_err(|error| match is_dash(&self.flags.output) {
                true => Failure::Output(error),
                false => Failure::file(&self.flags.output, error),
            })?;
        }
        self.reporter.finished(&row.summary());
        Ok(())
    }

    /// Writes the report on all rows, unless they were written one by one.
    ///
    /// # Errors
    /// [`Failure`] when it cannot be written.
    pub(super) fn end(self, report: &impl BenchReport) -> Result<(), Failure> {
        let path = &self.flags.output;
        if self.lines.is_some() {
            return Ok(());
        }
        if is_dash(path) {
            let mut out = stdout();
            self.write(report, &mut out)?;
            return Ok(out.flush()?);
        }
        // What is in a file is for no terminal.
        output::leave_terminal();
        to_file(path, |out| {
            let mut plain = Vec::new();
            self.write(report, &mut anstream::StripStream::new(&mut plain))?;
            Ok(out.write_all(&plain)?)
        })
    }

    fn write(&self, report: &impl BenchReport, out: &mut dyn Write) -> io::Result<()> {
        match self.flags.format {
            Format::Table => {
                report.table(out)?;
                writeln!(out)?;
                self.run.write(out)
            }
            Format::Json | Format::Ndjson => report.json(&self.run, out),
            Format::Csv => report.csv(&mut csv::Writer::new(out).with_columns(self.run.columns())),
        }
    }
}
