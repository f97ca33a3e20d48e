//! A problem with a part of a line.

use crate::Problem;

/// A problem with a part of a line, without a line number.
///
/// The part is a slice of the line; it gives column and length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault<'t> {
    part: &'t str,
    found: String,
    expected: String,
    reason: Option<String>,
}

impl<'t> Fault<'t> {
    /// Returns a fault for a wrong part of a line.
    #[must_use]
    pub fn new(part: &'t str, found: impl Into<String>, expected: impl Into<String>) -> Fault<'t> {
        Fault {
            part,
            found: found.into(),
            expected: expected.into(),
            reason: None,
        }
    }

    /// Returns a fault for something missing at the end of a line.
    #[must_use]
    pub fn missing(line: &'t str, expected: impl Into<String>) -> Fault<'t> {
        let line_end = line.trim_end().len();
        Fault::new(&line[line_end..line_end], "the line ends here", expected)
    }

    /// Returns a fault for something that this program does not support. Such problems are
    /// counted by `found`, which must name the feature, not a value.
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

    /// The unsupported feature; `None` for a mistake.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns this fault for `text`. The part stays if it is a slice of `text`; otherwise the
    /// part is all of `text`.
    #[must_use]
    pub fn within<'u>(self, text: &'u str) -> Fault<'u> {
        let offset = (self.part.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
        let end = offset.and_then(|offset| offset.checked_add(self.part.len()));
        let part = offset
            .zip(end)
            .and_then(|(offset, end)| text.get(offset..end));
        Fault {
            part: part.unwrap_or(text),
            found: self.found,
            expected: self.expected,
            reason: self.reason,
        }
    }

    /// Returns the problem with its position. The part must be a slice of `line`, and
    /// `number` counts from 1.
    #[must_use]
    pub fn at(self, number: usize, line: &str) -> Problem {
        let problem = Problem::at(number, line, self.part, self.found, self.expected);
        Problem {
            reason: self.reason,
            ..problem
        }
    }
}
