//! Reports on standard output, with a module for each format.
//!
//! Only this module opens standard output.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::failure::Failure;

pub mod csv;
pub(crate) mod diagnostics;
pub mod file;
pub mod json;
pub mod records;
pub mod style;
pub mod svg;
pub mod table;

/// The format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// One object with all figures; its keys are stable
    Json,
    /// The JSON object on one line, for files of several reports
    Ndjson,
    /// Comma-separated values with a heading
    Csv,
}

/// The flags of every command that reports.
#[derive(Debug, Default, clap::Args)]
pub struct OutputArgs {
    /// The format of the report on standard output
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORM",
        help_heading = "Output"
    )]
    pub format: Format,
}

/// A report that can be written in every format. Its JSON is its serialized form.
pub trait Report: Serialize {
    /// Writes the table for people.
    fn table(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Writes the report's main list for spreadsheets.
    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()>;
}

impl OutputArgs {
    /// Writes a report to standard output.
    pub fn report(&self, report: &impl Report) -> Result<(), Failure> {
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

/// Returns standard output, locked and buffered, without colours if it is not a
/// terminal.
pub fn stdout() -> impl Write {
    BufWriter::with_capacity(1 << 16, anstream::AutoStream::auto(io::stdout().lock()))
}

/// Returns standard output for binary data, written unchanged.
pub fn raw_stdout() -> impl Write {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// True if the report does not go to standard output.
static ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// True if the report is shown on a terminal.
pub(crate) fn to_people() -> bool {
    use std::io::IsTerminal as _;
    io::stdout().is_terminal() && !ELSEWHERE.load(Ordering::Relaxed)
}

/// Marks the report as going to a file, so that no terminal limits its width.
pub fn leave_terminal() {
    ELSEWHERE.store(true, Ordering::Relaxed);
}

/// The columns of a terminal that does not report its width.
const USUAL_WIDTH: u16 = 80;

/// Returns the columns of the terminal that shows standard output, or `None` if it
/// is not a terminal.
pub fn width() -> Option<u16> {
    let known = |columns: u16| if columns == 0 { USUAL_WIDTH } else { columns };
    to_people().then(|| {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        known(size.map_or(0, |size| size.ws_col))
    })
}

/// Returns the rows of the terminal that shows standard output, or `None` if it is not a
/// terminal or does not report its height.
pub fn height() -> Option<u16> {
    let size = to_people().then(|| rustix::termios::tcgetwinsize(io::stdout()));
    let rows = size?.ok()?.ws_row;
    (rows > 0).then_some(rows)
}

/// Joins the items of an iterator with `between` as the separator.
pub fn join<T: fmt::Display>(items: impl IntoIterator<Item = T>, between: &str) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(between)
}
