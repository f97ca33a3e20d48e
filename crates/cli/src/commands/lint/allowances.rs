//! Findings that are allowed.

use std::fmt;

/// The reason why a finding is not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AllowedBy {
    /// A comment in the file of rules.
    Comment { line: u32 },
}

impl fmt::Display for AllowedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllowedBy::Comment { line } => write!(f, "the comment on line {line}"),
        }
    }
}
