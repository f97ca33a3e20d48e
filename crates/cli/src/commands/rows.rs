//! The maximum number of rows in tables for people.

use std::io::{self, Write};

use classyard_report::output::style::counted;
use classyard_report::output::table::remark;

/// The maximum number of rows in a table for people, except the table of flows.
pub(super) const MAX_ROWS: usize = 1_000;

/// Says how many items a table for people does not list.
pub(super) fn remark_more(out: &mut dyn Write, count: usize, item: &str) -> io::Result<()> {
    match count {
        0 => Ok(()),
        count => remark(
            out,
            &format!("and {} (--format json lists all)", counted(count, item)),
        ),
    }
}
