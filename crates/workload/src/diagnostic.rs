//! Problems of input files, described so that a person can correct them.
//!
//! Every reader of this crate works the same way. It continues after a bad line to list
//! up to [`SHOWN`] problems, each with line, column, the text at fault and the expected
//! text. It loads nothing if there are problems, unless [`ReadOptions::skip_bad`] keeps
//! the good lines. In that case it reports how many lines it skipped and why.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use thiserror::Error;

use crate::limits::{self, FileLimit};

pub use classyard_text::{Problem, Problems, SHOWN};

/// Options for reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Load the good lines and report the bad ones, instead of loading nothing.
    pub skip_bad: bool,
    /// The maximum number of rules or headers to load; one more is an error.
    pub limit: usize,
    /// The maximum number of rules of a firewall's configuration, in place of `limit`. Jumps and
    /// groups multiply rules, so a small file can have many.
    pub config_limit: usize,
    /// The maximum number of bytes of a file, counted after unpacking; one more is an
    /// error. Readers that take a text have it in memory already and do not check this
    /// limit.
    pub max_bytes: u64,
    /// Load only the Open vSwitch flows of this table. If `None`, all flows of a file
    /// must be in one table. With any format other than Open vSwitch flows, a table is
    /// an error.
    pub table: Option<u8>,
}

impl ReadOptions {
    /// All lines must be good; the [`limits`] are the defaults.
    pub const DEFAULT: ReadOptions = ReadOptions {
        skip_bad: false,
        limit: limits::MAX_ENTRIES,
        config_limit: limits::MAX_CONFIG_RULES,
        max_bytes: FileLimit::TEXT.bytes,
        table: None,
    };

    /// Returns these options with bad lines skipped if `skip_bad`.
    #[must_use]
    pub const fn with_skip_bad(mut self, skip_bad: bool) -> Self {
        self.skip_bad = skip_bad;
        self
    }

    /// Returns these options with at most `limit` rules or headers, also of configurations.
    #[must_use]
    pub const fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self.config_limit = limit;
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

    /// Ends reading. Returns the value with the skipped problems, or the problems as an
    /// error if bad lines must not be skipped.
    ///
    /// # Errors
    /// [`ReadError::Bad`] if there are problems and bad lines must not be skipped.
    pub fn finish<T>(&self, problems: Problems, value: T) -> Result<Loaded<T>, ReadError> {
        if problems.is_empty() || self.skip_bad {
            Ok(Loaded {
                value,
                skipped: problems,
                notes: Vec::new(),
                merged_rules: 0,
                rule_lines: Vec::new(),
                statement_of_rule: Vec::new(),
                statement_texts: BTreeMap::new(),
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

/// A value that was read, with reports on skipped content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded<T> {
    /// The value.
    pub value: T,
    /// The bad lines that were skipped; empty without [`ReadOptions::skip_bad`].
    pub skipped: Problems,
    /// One sentence for each kind of content that was read with loss: columns or
    /// attributes that rules of this crate cannot hold.
    pub notes: Vec<String>,
    /// The number of rules that became duplicates of an earlier rule because they
    /// differ only in dropped content, such as the TCP flags of ClassBench files.
    pub merged_rules: usize,
    /// If the value is a policy: the line of each rule, counted from 1, in the order of
    /// [`Policy::ids`](classyard::Policy::ids).
    pub rule_lines: Vec<u32>,
    /// If the value is a policy: the statement of each rule, counted from 0, in the order of
    /// the rules. Empty if each rule is a statement of its own.
    pub statement_of_rule: Vec<u32>,
    /// The texts of statements that became several rules: at most 200 characters of each.
    pub statement_texts: BTreeMap<u32, String>,
}

/// Formats a count with its noun, which is given in the plural: `1 rule`, `2 rules`.
fn counted(count: &dyn fmt::Display, nouns: &str) -> String {
    let count = count.to_string();
    match nouns.strip_suffix('s') {
        Some(noun) if count == "1" => format!("1 {noun}"),
        _ => format!("{count} {nouns}"),
    }
}

/// A reason why a file cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read at all.
    #[error("{file}: {error}")]
    Io {
        /// The file.
        file: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file has bad lines. Nothing was loaded.
    #[error("{0}")]
    Bad(Problems),
    /// The file as a whole has the wrong format.
    #[error("{file}: {found}; expected {expected}")]
    Format {
        /// The file.
        file: String,
        /// A description of the file.
        found: String,
        /// The expected format, or advice.
        expected: String,
    },
    /// There are more rules or headers than the caller allows. Nothing was loaded.
    #[error(
        "{file}:{line}: more than {}; raise the limit or split the file",
        counted(.limit, .what)
    )]
    Limit {
        /// The file.
        file: String,
        /// The line of the first entry above the limit.
        line: usize,
        /// The limit.
        limit: usize,
        /// The noun: rules, headers, packets or interfaces.
        what: &'static str,
    },
    /// The flows are in several tables, and the caller selected none. The best flow of
    /// all tables together is not what a switch would select. Nothing was loaded.
    #[error(
        "{file}:{line}: a second table: {}; read one of them, as jumps between tables are not followed",
        list_tables(.tables)
    )]
    SeveralTables {
        /// The file.
        file: String,
        /// The first line of the second table.
        line: usize,
        /// Each table's number and its number of flows.
        tables: Vec<(u8, usize)>,
    },
    /// No flow is in the table that the caller selected.
    #[error("{file}: no flow is in table {table}; {}", list_tables(.tables))]
    NoSuchTable {
        /// The file.
        file: String,
        /// The selected table.
        table: u8,
        /// Each table of the file and its number of flows.
        tables: Vec<(u8, usize)>,
    },
    /// The caller selected a table, but rules of this format have no tables.
    #[error("{file}: table {table} was requested, but rules of the format {format} have no tables")]
    NoTables {
        /// The file.
        file: String,
        /// The selected table.
        table: u8,
        /// The format of the rules.
        format: &'static str,
    },
    /// The file has more bytes than the caller allows, counted after unpacking. Nothing
    /// was loaded.
    #[error("{file}: more than {} bytes, counted after unpacking: the limit for {}", limit.bytes, limit.what)]
    TooLong {
        /// The file.
        file: String,
        /// The limit.
        limit: FileLimit,
    },
}

impl FileLimit {
    /// Returns an error if `text` is longer than the limit.
    pub(crate) fn check(self, source: &str, text: &str) -> Result<(), ReadError> {
        if u64::try_from(text.len()).is_ok_and(|length| length <= self.bytes) {
            return Ok(());
        }
        Err(ReadError::TooLong {
            file: source.to_owned(),
            limit: self,
        })
    }
}

/// Returns a list such as `table 0 has 12 flows, table 5 has 1 flow`.
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
