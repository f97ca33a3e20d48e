//! Kinds of fields.

use std::fmt;

/// How rules may constrain a field.
///
/// Every kind admits the wildcard as well. Prefix and range fields also take a
/// value under any mask, as ternary fields do: kinds say what is usual, and
/// engines arrange rules by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// One value.
    Exact,
    /// All values that start with the given leading bits.
    Prefix,
    /// All values from a low to a high one, both included.
    Range,
    /// All values that agree with a given one on the bits of a mask.
    Ternary,
}

impl MatchKind {
    /// The kind's name as schema files spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MatchKind::Exact => "exact",
            MatchKind::Prefix => "prefix",
            MatchKind::Range => "range",
            MatchKind::Ternary => "ternary",
        }
    }

    /// The kind of that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<MatchKind> {
        [
            MatchKind::Exact,
            MatchKind::Prefix,
            MatchKind::Range,
            MatchKind::Ternary,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }
}

impl fmt::Display for MatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
