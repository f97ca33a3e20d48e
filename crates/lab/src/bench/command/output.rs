//! Reports of benchmarks, written row by row or all at the end, each with the data
//! that is needed to repeat the run.

use std::io::{self, Write};
use std::path::PathBuf;

use classyard_report::failure::Failure;
use classyard_report::output::file::WholeFile;
use classyard_report::output::file::is_dash;
use classyard_report::output::records::RecordFile;
use classyard_report::output::{self, Report, csv, stdout};
use classyard_report::reporter::Reporter;
use classyard_report::run::{Finished, Run};
use serde::Serialize;

/// The format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// For people
    #[default]
    Table,
    /// A list of objects with all figures; their keys are stable
    Json,
    /// Objects as in JSON, one per line. Each is written immediately after its measurement,
    /// so that an interrupted run keeps its measurements
    Ndjson,
    /// Comma-separated values with a heading
    Csv,
}

/// The flags that choose the format and the file of the report.
#[derive(Debug, Default, clap::Args)]
pub(super) struct BenchOutput {
    /// The format of the report
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORM",
        help_heading = "Output"
    )]
    format: Format,

    /// The file for the report; - for standard output
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "-",
        help_heading = "Output"
    )]
    output: PathBuf,
}

/// A report that includes its run.
pub(super) trait BenchReport: Report {
    /// Writes the report as JSON, with its run.
    fn json(&self, run: &Run, out: &mut dyn Write) -> io::Result<()>;
}

/// Any value with the run that it comes from.
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

/// The destination of a run's rows and report.
pub(super) struct Sink<'a> {
    flags: &'a BenchOutput,
    run: Run,
    reporter: Reporter,
    target: Target,
}

/// The kind of a run's output.
enum Target {
    /// A report at the end, to standard output.
    Report,
    /// A report at the end, to a file.
    ReportFile(WholeFile),
    /// Rows as they finish, to standard output.
    Rows,
    /// Rows as they finish, to a file.
    RowFile(RecordFile),
}

impl BenchOutput {
    /// Prepares the output of a run that begins now.
    ///
    /// # Errors
    /// [`Failure`] if the file cannot be written.
    pub(super) fn begin(&self, seed: u64, reporter: Reporter) -> Result<Sink<'_>, Failure> {
        let path = &self.output;
        // Create the file before measuring, so that an unwritable file fails now.
        let target = match (self.format, is_dash(path)) {
            (Format::Ndjson, true) => Target::Rows,
            (Format::Ndjson, false) => Target::RowFile(RecordFile::create(path)?),
            (_, true) => Target::Report,
            (_, false) => Target::ReportFile(WholeFile::create(path)?),
        };
        Ok(Sink {
            flags: self,
            run: Run::now(seed),
            reporter,
            target,
        })
    }
}

impl Sink<'_> {
    /// Handles a measured row: writes it if rows are written one by one, and notes it
    /// if no progress bar is shown.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be written.
    pub(super) fn row(&mut self, row: &impl Finished) -> Result<(), Failure> {
        let run = &self.run;
        let line = || -> Result<Vec<u8>, Failure> {
            let mut line = serde_json::to_vec(&WithRun { what: row, run })?;
            line.push(b'\n');
            Ok(line)
        };
        match &mut self.target {
            Target::Rows => {
                let mut out = io::stdout();
                out.write_all(&line()?)?;
                out.flush()?;
            }
            Target::RowFile(file) => {
                let written = file.write_all(&line()?).and_then(|()| file.flush());
                written.map_err(|error| file.failure(error))?;
            }
            Target::Report | Target::ReportFile(_) => {}
        }
        self.reporter.finished(&row.summary());
        Ok(())
    }

    /// Writes the report on all rows, unless they were written one by one.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be written.
    pub(super) fn end(self, report: &impl BenchReport) -> Result<(), Failure> {
        let Sink {
            flags, run, target, ..
        } = self;
        match target {
            Target::Rows | Target::RowFile(_) => Ok(()),
            Target::Report => {
                let mut out = stdout();
                write(flags.format, report, &run, &mut out)?;
                Ok(out.flush()?)
            }
            Target::ReportFile(mut file) => {
                // A report in a file is not limited to the width of a terminal.
                output::leave_terminal();
                let mut plain = Vec::new();
                let mut stripped = anstream::StripStream::new(&mut plain);
                write(flags.format, report, &run, &mut stripped)?;
                let written = file.out().write_all(&plain);
                written.map_err(|error| Failure::file(&flags.output, error))?;
                file.finish()
            }
        }
    }
}

fn write(
    format: Format,
    report: &impl BenchReport,
    run: &Run,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Table => {
            report.table(out)?;
            writeln!(out)?;
            run.write(out)
        }
        Format::Json | Format::Ndjson => report.json(run, out),
        Format::Csv => report.csv(&mut csv::Writer::new(out).with_columns(run.columns())),
    }
}
