//! What is wrong with an input file, said so that a person can mend it.
//!
//! Every reader of this crate works the same way: it reads on after a bad line
//! to list up to [`SHOWN`] problems, each with line, column, what was found and
//! what was expected; and it loads nothing unless it is told to keep the good
//! lines ([`ReadOptions::skip_bad`]), in which case it says how many it left
//! out and why.

use std::fmt;
use std::io;

use thiserror::Error;

use crate::limits::{self, FileLimit};

pub use classyard_text::{Problem, Problems, SHOWN};

/// How to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Load the good lines and report the bad ones, instead of loading nothing.
    pub skip_bad: bool,
    /// The most rules, or headers, to load; one more is an error.
    pub limit: usize,
    /// The most bytes of a file, counted after unpacking; one more is an error.
    /// Readers that take a text have it in memory already and do not check this.
    pub max_bytes: u64,
    /// Load only Open vSwitch's flows of this table. Without it, all
    /// flows of a file must stand in one table. With another format it is an
    /// error.
    pub table: Option<u8>,
}

impl ReadOptions {
    /// Everything or nothing, within the default [`limits`].
    pub const DEFAULT: ReadOptions = ReadOptions {
        skip_bad: false,
        limit: limits::MAX_ENTRIES,
        max_bytes: FileLimit::TEXT.bytes,
        table: None,
    };

    /// Returns these options with bad lines skipped if `skip_bad`.
    #[must_use]
    pub const fn with_skip_bad(mut self, skip_bad: bool) -> Self {
        self.skip_bad = skip_bad;
        self
    }

    /// Returns these options with at most `limit` rules or headers.
    #[must_use]
    pub const fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Returns these options with at most `max_bytes` bytes of a file.
    #[must_use]
    pub const fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Returns these options with the flows of `table` only.
    #[must_use]
    pub const fn with_table(mut self, table: Option<u8>) -> Self {
        self.table = table;
        self
    }

    /// Ends reading: the value with the problems that were skipped, or, unless
    /// bad lines may be skipped, the problems as an error.
    ///
    /// # Errors
    /// [`ReadError::Bad`] when there are problems and bad lines may not be skipped.
    pub fn finish<T>(&self, problems: Problems, value: T) -> Result<Loaded<T>, ReadError> {
        if problems.is_empty() || self.skip_bad {
            Ok(Loaded {
                value,
                skipped: problems,
                notes: Vec::new(),
                merged_rules: 0,
            })
        } else {
            Err(ReadError::Bad(problems))
        }
    }
}

impl Default for ReadOptions {
    /// [`ReadOptions::DEFAULT`].
    fn default() -> ReadOptions {
        ReadOptions::DEFAULT
    }
}

/// What was read, and what was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded<T> {
    /// What was read.
    pub value: T,
    /// The bad lines that were skipped; empty unless skipping was asked for.
    pub skipped: Problems,
    /// What was read but lost some of its meaning, one sentence each: columns
    /// or attributes that the rules here have no place for.
    pub notes: Vec<String>,
    /// Rules that differ from an earlier one only in what was left out, such as the TCP
    /// flags of ClassBench's files, and so are duplicates here.
    pub merged_rules: usize,
}

/// `1 rule`, `2 rules`, of a noun in the plural.
fn counted(count: &dyn fmt::Display, nouns: &str) -> String {
    let count = count.to_string();
    match nouns.strip_suffix('s') {
        Some(noun) if count == "1" => format!("1 {noun}"),
        _ => format!("{count} {nouns}"),
    }
}

/// A file cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read at all.
    #[error("{file}: {error}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        error: io::Error,
    },
    /// The file has bad lines. Nothing was loaded.
    #[error("{0}")]
    Bad(Problems),
    /// The file as a whole is not what it should be.
    #[error("{file}: {found}; expected {expected}")]
    Format {
        /// The file.
        file: String,
        /// What it is.
        found: String,
        /// What it should be, or what to do.
        expected: String,
    },
    /// More rules or headers than the caller allows. Nothing was loaded.
    #[error(
        "{file}:{line}: more than {}; raise the limit or split the file",
        counted(.limit, .what)
    )]
    Limit {
        /// The file.
        file: String,
        /// The line of the first one too many.
        line: usize,
        /// The limit.
        limit: usize,
        /// Rules, headers, packets or interfaces.
        what: &'static str,
    },
    /// The flows stand in more than one table, and none was asked for: the best
    /// flow of all tables is not what a switch would find. Nothing was loaded.
    #[error(
        "{file}:{line}: a second table: {}; read one of them, as jumps between tables are not followed",
        list_tables(.tables)
    )]
    SeveralTables {
        /// The file.
        file: String,
        /// The first line of the second table.
        line: usize,
        /// The tables' numbers, and how many flows each has.
        tables: Vec<(u8, usize)>,
    },
    /// No flow stands in the table that was asked for.
    #[error("{file}: no flow is in table {table}; {}", list_tables(.tables))]
    NoSuchTable {
        /// The file.
        file: String,
        /// What was asked for.
        table: u8,
        /// The tables that there are, and how many flows each has.
        tables: Vec<(u8, usize)>,
    },
    /// A table was named, but the rules of this format have none.
    #[error("{file}: table {table} was asked for, but rules of the format {format} have no tables")]
    NoTables {
        /// The file.
        file: String,
        /// What was asked for.
        table: u8,
        /// The format of the rules.
        format: &'static str,
    },
    /// More bytes than the caller allows, counted after unpacking. Nothing was
    /// loaded.
    #[error("{file}: more than {} bytes, counted after unpacking; no more are read of {}", limit.bytes, limit.what)]
    TooLong {
        /// The file.
        file: String,
        /// The limit.
        limit: FileLimit,
    },
}

/// `table 0 has 12 flows, table 5 has 1 flow`
pub(crate) fn list_tables(tables: &[(u8, usize)]) -> String {
    if tables.is_empty() {
        return "there are no flows".to_owned();
    }
    let tables = tables.iter().map(|(table, flows)| {
        let ending = if *flows == 1 { "" } else { "s" };
        format!("table {table} has {flows} flow{ending}")
    });
    tables.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_lines_are_an_error_unless_they_may_be_skipped() {
        let mut problems = Problems::new("f");
        problems.push(Problem::at(1, "x", "x", "`x`".into(), "y".into()));
        let strict = ReadOptions::default();
        assert!(strict.finish(problems.clone(), ()).is_err());
        let skip = ReadOptions {
            skip_bad: true,
            ..strict
        };
        assert_eq!(skip.finish(problems, 7).unwrap().value, 7);
    }
}
