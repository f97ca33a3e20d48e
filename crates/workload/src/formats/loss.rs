//! Rules that do not survive being written.

use std::fmt;

use classyard::RuleId;

use super::text::quoted;
use crate::diagnostic::SHOWN;

/// A rule that a file does not say, or says for fewer headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The rule: its number in the file that it was read from, unless it had an
    /// id of its own there.
    pub id: RuleId,
    /// The rule's name, if it has one.
    pub name: Option<String>,
    /// Whether the file says nothing of it. Otherwise the file has it, and it
    /// matches fewer headers there.
    pub left_out: bool,
    /// Why.
    pub why: String,
}

impl fmt::Display for Loss {
    /// `` rule 4 `ping`: left out: … ``
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " {}", quoted(name))?;
        }
        let what = if self.left_out {
            "left out"
        } else {
            "matches fewer headers"
        };
        write!(f, ": {what}: {}", self.why)
    }
}

/// The rules that do not survive being written: the first [`SHOWN`] of them and
/// their number.
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

    /// The first of them, in the order of writing.
    #[must_use]
    pub fn shown(&self) -> &[Loss] {
        &self.shown
    }

    /// How many there are.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}
