//! A file of records, or standard output.

use std::io::{self, Write};
use std::path::Path;

use classyard_report::failure::Failure;
use classyard_report::output::file::is_dash;
use classyard_report::output::raw_stdout;
use classyard_report::output::records::RecordFile;

/// A file of records, or standard output. Each call of [`write`](Write::write) must pass one
/// record.
pub(super) enum Outlet {
    Stdout(Box<dyn Write>),
    File(RecordFile),
}

impl Outlet {
    /// Creates a file, or opens standard output for `-`.
    pub(super) fn create(path: &Path) -> Result<Outlet, Failure> {
        match is_dash(path) {
            true => Ok(Outlet::Stdout(Box::new(raw_stdout()))),
            false => RecordFile::create(path).map(Outlet::File),
        }
    }

    /// Returns the failure for an error of this file.
    pub(super) fn failure(&self, error: io::Error) -> Failure {
        match self {
            Outlet::Stdout(_) => error.into(),
            Outlet::File(file) => file.failure(error),
        }
    }
}

impl Write for Outlet {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        match self {
            Outlet::Stdout(out) => out.write(record),
            Outlet::File(file) => file.write(record),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Outlet::Stdout(out) => out.flush(),
            Outlet::File(file) => file.flush(),
        }
    }
}
