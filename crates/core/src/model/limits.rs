//! Limits on the size of engines and on the memory for building them.

use crate::model::error::{BuildError, UpdateError};
use crate::model::rule::RuleId;

/// Limits set by the caller. Exceeding one is an error, never a crash.
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
    /// The maximum number of rules, in the build and after every update.
    pub rules: usize,
    /// The maximum number of bytes of a built engine, index and rules together.
    /// An engine that already holds more refuses every transaction that would
    /// leave it with more rules. So updates exceed the limit by at most one
    /// step of growth of the engine's arrays.
    pub bytes: usize,
    /// The maximum number of bytes at any moment of the build. This limit
    /// covers everything that the build has allocated and not freed: the new
    /// structure, working memory and unused capacity. When an array grows, the
    /// old and the new array count together. The caller's rule set does not
    /// count. Memory is counted before it is allocated. Small pieces are
    /// counted together, so up to about 64 KiB may be allocated before they are
    /// counted.
    pub peak_bytes: usize,
}

impl Default for Limits {
    /// No limits, except the number of rule ids.
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

    /// Returns these limits with the limit on rules lowered to `capacity`, if
    /// it is higher.
    pub(crate) fn within(&self, capacity: usize) -> Limits {
        Limits {
            rules: self.rules.min(capacity),
            ..*self
        }
    }

    /// Converts an error of a check against [`within`](Self::within). If the
    /// exceeded limit is the engine's capacity and not the caller's limit,
    /// returns [`UpdateError::EngineFull`] with the engine's name.
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

    /// Checks the number of rules of a build against the limit.
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

    /// Checks the number of bytes that an engine needs against the limit.
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
