//! A problem with a part of a line.

use crate::Problem;

/// A problem with a part of a line, before the line's number is known.
///
/// The part is a slice of the line, from which column and length follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault<'t> {
    part: &'t str,
    found: String,
    expected: String,
    reason: Option<String>,
}

impl<'t> Fault<'t> {
    /// A part that is not what it should be.
    #[must_use]
    pub fn new(part: &'t str, found: impl Into<String>, expected: impl Into<String>) -> Fault<'t> {
        Fault {
            part,
            found: found.into(),
            expected: expected.into(),
            reason: None,
        }
    }

    /// Something is missing at the end of a line.
    #[must_use]
    pub fn missing(line: &'t str, expected: impl Into<String>) -> Fault<'t> {
        let end = line.trim_end().len();
        Fault::new(&line[end..end], "the line ends here", expected)
    }

    /// Something that this program does not support. Such problems are counted by
    /// `found`, which names the kind of thing and not the value.
    #[must_use]
    pub fn unsupported(
        part: &'t str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Fault<'t> {
        let found = found.into();
        Fault {
            part,
            reason: Some(found.clone()),
            found,
            expected: expected.into(),
        }
    }

    /// The part of the line.
    #[must_use]
    pub fn part(&self) -> &'t str {
        self.part
    }

    /// The first sentence of the message.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }

    /// The kind of thing that is not supported; `None` for a mistake.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The problem, in a line of which the part is a slice. `number` counts from 1.
    #[must_use]
    pub fn at(self, number: usize, line: &str) -> Problem {
        let problem = Problem::at(number, line, self.part, self.found, self.expected);
        Problem {
            reason: self.reason,
            ..problem
        }
    }
}
