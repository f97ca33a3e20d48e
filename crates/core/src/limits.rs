//! Limits on what engines hold, and on what building them takes.

use crate::error::{BuildError, UpdateError};
use crate::rule::RuleId;

/// Limits that the caller sets. Exceeding one is an error, never a crash.
///
/// ```
/// use classyard::Limits;
///
/// let limits = Limits::default().with_rules(100_000).with_bytes(64 << 20);
/// assert_eq!(limits.peak_bytes, usize::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most rules, at building and after every update.
    pub rules: usize,
    /// The most bytes of a built engine, index and rules together. Afterwards
    /// an engine that holds more takes no transaction that leaves it with more
    /// rules, so updates overshoot by at most one step of growth.
    pub bytes: usize,
    /// The most bytes at any moment of building: all that the engine has
    /// allocated and not freed, of the structure that is built and of working
    /// memory, room that is not written yet included. Where an array grows,
    /// the old and the new one count together. The caller's rule set does not
    /// count. Memory is counted before it is allocated: small pieces together,
    /// so up to some 64 KiB may be taken before they are counted.
    pub peak_bytes: usize,
}

impl Default for Limits {
    /// No limit except that of the ids.
    fn default() -> Limits {
        Limits {
            rules: RuleId::MAX.index(),
            bytes: usize::MAX,
            peak_bytes: usize::MAX,
        }
    }
}

impl Limits {
    /// Returns these limits with at most `rules` rules.
    #[must_use]
    pub const fn with_rules(mut self, rules: usize) -> Self {
        self.rules = rules;
        self
    }

    /// Returns these limits with at most `bytes` bytes for an engine.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Returns these limits with at most `peak_bytes` bytes while an engine is built.
    #[must_use]
    pub const fn with_peak_bytes(mut self, peak_bytes: usize) -> Self {
        self.peak_bytes = peak_bytes;
        self
    }

    /// The same limits, except for rules at most an engine's capacity.
    pub(crate) fn within(&self, capacity: usize) -> Limits {
        Limits {
            rules: self.rules.min(capacity),
            ..*self
        }
    }

    /// An error of a check with [`within`](Self::within) an engine's capacity:
    /// names the engine when that was met before the caller's limit.
    pub(crate) fn blame(&self, error: UpdateError, engine: &str) -> UpdateError {
        match error {
            UpdateError::TooManyRules {
                change,
                found,
                limit,
            } if limit < self.rules => UpdateError::EngineFull {
                change,
                engine: engine.to_owned(),
                rules: found,
                limit,
            },
            other => other,
        }
    }

    /// Checks a number of rules to be built.
    ///
    /// # Errors
    /// [`BuildError::TooManyRules`]
    pub fn check_rules(&self, found: usize) -> Result<(), BuildError> {
        if found > self.rules {
            return Err(BuildError::TooManyRules {
                found,
                limit: self.rules,
            });
        }
        Ok(())
    }

    /// Checks a number of bytes that are needed.
    ///
    /// # Errors
    /// [`BuildError::TooManyBytes`]
    pub fn check_bytes(&self, needed: usize) -> Result<(), BuildError> {
        if needed > self.bytes {
            return Err(BuildError::TooManyBytes {
                needed,
                limit: self.bytes,
            });
        }
        Ok(())
    }
}
