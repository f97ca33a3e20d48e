//! Reports on standard output: one file for each form.
//!
//! This is the only place that opens standard output.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::failure::Failure;

pub(crate) mod csv;
pub(crate) mod diagnostics;
pub(crate) mod file;
pub(crate) mod json;
pub(crate) mod records;
pub(crate) mod rule;
pub(crate) mod style;
pub(crate) mod svg;
pub(crate) mod table;

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    /// One object with all figures, its keys stable
    Json,
    /// The same object on one line, for files of several reports
    Ndjson,
    /// Comma-separated values with a heading
    Csv,
}

/// The flags of every command that reports.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct OutputArgs {
    /// The form of the report on standard output
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORM",
        help_heading = "Output"
    )]
    pub(crate) format: Format,
}

/// Something that can be reported in every form. As JSON it is what it
/// serializes to.
pub(crate) trait Report: Serialize {
    /// Writes the form for people.
    fn table(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Writes the form for spreadsheets: the list that the report is about.
    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()>;
}

impl OutputArgs {
    /// Writes a report to standard output.
    pub(crate) fn report(&self, report: &impl Report) -> Result<(), Failure> {
        let mut out = stdout();
        match self.format {
            Format::Table => report.table(&mut out)?,
            Format::Json => json::write(report, &mut out)?,
            Format::Ndjson => json::write_line(report, &mut out)?,
            Format::Csv => report.csv(&mut csv::Writer::new(&mut out))?,
        }
        out.flush()?;
        Ok(())
    }
}

/// Standard output, locked and buffered; colours are taken out where they do
/// not belong.
pub(crate) fn stdout() -> impl Write {
    BufWriter::with_capacity(1 << 16, anstream::AutoStream::auto(io::stdout().lock()))
}

/// Standard output for data that is not text for people: byte by byte as
/// written.
pub(crate) fn raw_stdout() -> impl Write {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Whether the report goes elsewhere than to standard output.
static ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// Whether people read the report on a terminal.
pub(crate) fn to_people() -> bool {
    use std::io::IsTerminal as _;
    io::stdout().is_terminal() && !ELSEWHERE.load(Ordering::Relaxed)
}

/// From now on the report goes to a file, so that no terminal limits its width.
pub(crate) fn leave_terminal() {
    ELSEWHERE.store(true, Ordering::Relaxed);
}

/// The columns of a terminal that does not know how many it has.
const USUAL_WIDTH: u16 = 80;

/// The columns of the terminal that shows standard output; `None` where it goes
/// elsewhere.
pub(crate) fn width() -> Option<u16> {
    let known = |columns: u16| if columns == 0 { USUAL_WIDTH } else { columns };
    to_people().then(|| {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        known(size.map_or(0, |size| size.ws_col))
    })
}

/// Prints an iterator's items with something between them.
pub(crate) fn join<T: fmt::Display>(items: impl IntoIterator<Item = T>, between: &str) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(between)
}
