//! Rules that a written file lacks or has only in part.

use std::fmt;

use classyard::RuleId;

use super::text::quoted;
use crate::diagnostic::SHOWN;

/// A rule that a file lacks, or that matches fewer headers in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The rule's id. If the rule was read from a file without ids, this is its number in
    /// that file.
    pub id: RuleId,
    /// The rule's name, if it has one.
    pub name: Option<String>,
    /// True if the file lacks the rule. False if the file has the rule, but matching fewer
    /// headers.
    pub left_out: bool,
    /// The reason.
    pub why: String,
}

impl fmt::Display for Loss {
    /// Writes, for example, `` rule 4 `ping`: left out: … ``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " {}", quoted(name))?;
        }
        let effect = if self.left_out {
            "left out"
        } else {
            "matches fewer headers"
        };
        write!(f, ": {effect}: {}", self.why)
    }
}

/// The rules that a written file lacks or has only in part: the first [`SHOWN`] of them,
/// and their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    shown: Vec<Loss>,
    total: usize,
}

impl Losses {
    /// Adds a rule.
    pub(super) fn push(&mut self, loss: impl FnOnce() -> Loss) {
        self.total += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(loss());
        }
    }

    /// The first lost rules, in the order of writing.
    #[must_use]
    pub fn shown(&self) -> &[Loss] {
        &self.shown
    }

    /// The number of lost rules.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// True if no rule was lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}
