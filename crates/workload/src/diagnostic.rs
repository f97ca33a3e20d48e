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

/// The most problems that are kept to be shown; the rest are counted.
pub const SHOWN: usize = 20;

/// The most characters of a source line that a problem carries along.
const EXCERPT: usize = 200;

/// How to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

impl Default for ReadOptions {
    /// [`ReadOptions::DEFAULT`].
    fn default() -> ReadOptions {
        ReadOptions::DEFAULT
    }
}

/// One thing that is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, counted from 1.
    pub line: usize,
    /// The column of the first offending character, counted from 1.
    pub column: usize,
    /// The number of offending characters; 0 where something is missing.
    pub length: usize,
    /// The line itself, cut at a reasonable length.
    pub excerpt: String,
    /// What is there, or what is wrong with it.
    pub found: String,
    /// What should be there, or what to do.
    pub expected: String,
}

impl Problem {
    /// A problem with a part of a line.
    ///
    /// `line` counts from 1, `text` is the whole line and `part` a slice of it,
    /// from which column and length follow. (A `part` that is no slice of
    /// `text` is taken to stand at its end.)
    #[must_use]
    pub fn at(line: usize, text: &str, part: &str, found: String, expected: String) -> Problem {
        let offset = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        let before = text.get(..offset).unwrap_or(text);
        Problem {
            line,
            column: before.chars().count() + 1,
            length: part.chars().count(),
            excerpt: text.chars().take(EXCERPT).collect(),
            found,
            expected,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem {
            line,
            column,
            found,
            expected,
            ..
        } = self;
        write!(f, "{line}:{column}: {found}; expected {expected}")
    }
}

/// The problems of one file: the first [`SHOWN`] of them and their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    source: String,
    shown: Vec<Problem>,
    total: usize,
    good: usize,
}

impl Problems {
    /// None yet, in a file of that name.
    #[must_use]
    pub fn new(source: &str) -> Problems {
        Problems {
            source: source.to_owned(),
            shown: Vec::new(),
            total: 0,
            good: 0,
        }
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.total += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(problem);
        }
    }

    /// The file's name.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The first problems, in file order.
    #[must_use]
    pub fn shown(&self) -> &[Problem] {
        &self.shown
    }

    /// How many problems there are.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Says how many lines of the file are good, where they can be loaded
    /// without the bad ones.
    #[must_use]
    pub fn beside(mut self, good: usize) -> Problems {
        self.good = good;
        self
    }

    /// Whether [`ReadOptions::skip_bad`] would load something: the reader can
    /// leave bad lines out, and some lines are good.
    #[must_use]
    pub fn can_be_skipped(&self) -> bool {
        self.good > 0
    }

    /// Ends reading: the value with the problems that were skipped, or, unless
    /// bad lines may be skipped, the problems as an error.
    ///
    /// # Errors
    /// [`ReadError::Bad`] when there are problems and `options` do not allow to
    /// skip them.
    pub fn finish<T>(self, value: T, options: &ReadOptions) -> Result<Loaded<T>, ReadError> {
        if self.is_empty() || options.skip_bad {
            Ok(Loaded {
                value,
                skipped: self,
                notes: Vec::new(),
            })
        } else {
            Err(ReadError::Bad(self))
        }
    }
}

impl fmt::Display for Problems {
    /// One `file:line:column: found; expected …` for each problem shown, then
    /// how many more there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.shown.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}:{problem}", self.source)?;
        }
        if self.total > self.shown.len() {
            write!(
                f,
                "\n{}: {} more {}",
                self.source,
                self.total - self.shown.len(),
                if self.total - self.shown.len() == 1 {
                    "problem"
                } else {
                    "problems"
                }
            )?;
        }
        Ok(())
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
    fn columns_follow_from_the_part() {
        let text = "déjà vu 42";
        let part = &text[text.find("42").unwrap()..];
        let problem = Problem::at(3, text, part, "`42`".into(), "a word".into());
        assert_eq!((problem.line, problem.column, problem.length), (3, 9, 2));
        assert_eq!(problem.to_string(), "3:9: `42`; expected a word");
    }

    #[test]
    fn only_the_first_problems_are_kept_and_all_are_counted() {
        let mut problems = Problems::new("f");
        for line in 1..=25 {
            problems.push(Problem::at(line, "x", "x", "`x`".into(), "y".into()));
        }
        assert_eq!((problems.shown().len(), problems.total()), (SHOWN, 25));
        assert!(problems.to_string().ends_with("f: 5 more problems"));
        assert!(
            problems
                .clone()
                .finish((), &ReadOptions::default())
                .is_err()
        );
        let skip = ReadOptions {
            skip_bad: true,
            ..ReadOptions::default()
        };
        assert_eq!(problems.finish(7, &skip).unwrap().value, 7);
    }
}
