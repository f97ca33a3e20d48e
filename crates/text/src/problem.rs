//! Problems of a file: the first problems, and the number of problems by reason.

use std::collections::BTreeMap;
use std::fmt;

use crate::Fault;
use crate::ofctl::Statement;

/// The maximum number of problems kept for display. Further problems are only counted.
pub const SHOWN: usize = 20;

/// The maximum number of characters of a source line that a problem keeps.
const EXCERPT_CHARACTERS: usize = 200;

/// The maximum number of reasons that are counted separately.
const MAX_REASONS: usize = 64;

/// The reason of a problem that is a mistake in the file.
const MISTAKE: &str = "mistakes";

/// The reason under which problems are counted after [`MAX_REASONS`] different reasons.
const OTHER_REASONS: &str = "other reasons";

/// A problem in a file, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, counted from 1.
    pub line: usize,
    /// The column of the first offending character, counted from 1.
    pub column: usize,
    /// The number of offending characters; 0 if something is missing.
    pub length: usize,
    /// The text of the line, cut after 200 characters.
    pub excerpt: String,
    /// The text found, or a description of the problem.
    pub found: String,
    /// The expected text, or a remedy.
    pub expected: String,
    /// The unsupported feature; `None` for a mistake.
    pub reason: Option<String>,
}

impl Problem {
    /// Returns a problem with a part of a line.
    ///
    /// `line` counts from 1, `text` is the whole line, and `part` is a slice of `text`
    /// that gives column and length. If `part` is not a slice of `text`, the column is
    /// after the end of `text`.
    #[must_use]
    pub fn at(line: usize, text: &str, part: &str, found: String, expected: String) -> Problem {
        let offset = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        let before = text.get(..offset).unwrap_or(text);
        Problem {
            line,
            column: before.chars().count() + 1,
            length: part.chars().count(),
            excerpt: text.chars().take(EXCERPT_CHARACTERS).collect(),
            found,
            expected,
            reason: None,
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

/// The problems of one file: the first [`SHOWN`] of them, and their number by reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    source: String,
    shown: Vec<Problem>,
    total: usize,
    good: usize,
    by_reason: BTreeMap<String, usize>,
}

impl Problems {
    /// Returns an empty list for the file named `source`.
    #[must_use]
    pub fn new(source: &str) -> Problems {
        Problems {
            source: source.to_owned(),
            shown: Vec::new(),
            total: 0,
            good: 0,
            by_reason: BTreeMap::new(),
        }
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.push_with(problem.reason.clone(), || problem);
    }

    /// Adds a fault of a line. Builds the problem only if it will be shown.
    pub fn push_fault(&mut self, fault: Fault<'_>, number: usize, line: &str) {
        let reason = fault.reason().map(str::to_owned);
        self.push_with(reason, || fault.at(number, line));
    }

    /// Adds a fault of a statement. A statement may have several lines.
    pub fn push_fault_of(&mut self, statement: &Statement<'_>, fault: Fault<'_>) {
        let (number, line) = statement.line_of(fault.part());
        self.push_fault(fault, number, line);
    }

    fn push_with(&mut self, reason: Option<String>, problem: impl FnOnce() -> Problem) {
        self.total += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(problem());
        }
        let mut reason = reason.unwrap_or_else(|| MISTAKE.to_owned());
        if self.by_reason.len() >= MAX_REASONS && !self.by_reason.contains_key(&reason) {
            OTHER_REASONS.clone_into(&mut reason);
        }
        *self.by_reason.entry(reason).or_insert(0) += 1;
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

    /// The number of problems.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// True if the file has no problems.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns each reason with its number of problems, the most frequent reason first.
    /// A reason is an unsupported feature, such as `` unsupported action `ct` ``, or
    /// `mistakes`.
    #[must_use]
    pub fn by_reason(&self) -> Vec<(&str, usize)> {
        let reasons = self.by_reason.iter();
        let mut reasons: Vec<(&str, usize)> = reasons
            .map(|(reason, count)| (reason.as_str(), *count))
            .collect();
        reasons.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        reasons
    }

    /// Records the number of good lines of the file, if they can be loaded without the
    /// bad lines.
    #[must_use]
    pub fn with_good_lines(mut self, good: usize) -> Problems {
        self.good = good;
        self
    }

    /// True if skipping the bad lines would load something: the reader can skip bad
    /// lines, and some lines are good.
    #[must_use]
    pub fn can_be_skipped(&self) -> bool {
        self.good > 0
    }
}

impl std::error::Error for Problem {}

impl std::error::Error for Problems {}

impl fmt::Display for Problems {
    /// Writes a line `file:line:column: found; expected …` for each problem shown, then
    /// the number of further problems.
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
        assert_eq!(problems.by_reason(), [("mistakes", 25)]);
    }

    #[test]
    fn reasons_are_counted_and_are_not_without_end() {
        let mut problems = Problems::new("f");
        for number in 0..200 {
            let message = format!("unsupported action `a{number}`");
            problems.push_fault(Fault::unsupported("x", message, "y"), 1, "x");
            problems.push_fault(Fault::unsupported("x", "unsupported `b`", "y"), 1, "x");
        }
        let reasons = problems.by_reason();
        assert_eq!(reasons[0], ("unsupported `b`", 200));
        assert_eq!(reasons[1], ("other reasons", 137));
        assert_eq!(reasons.iter().map(|(_, count)| count).sum::<usize>(), 400);
    }
}
