//! Kinds of fields, by the matches that rules may use.

use std::fmt;

/// The kind of match that rules use for a field.
///
/// Every kind allows the wildcard as well. Prefix and range fields also accept
/// a value under any mask, as ternary fields do. The kind is the form that most
/// of the rules have; engines choose their structures for this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// A single value.
    Exact,
    /// All values that start with the given leading bits.
    Prefix,
    /// All values from a low to a high value, both included.
    Range,
    /// All values that agree with a given value on the bits of a mask.
    Ternary,
}

impl MatchKind {
    /// Returns the kind's name in schema files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MatchKind::Exact => "exact",
            MatchKind::Prefix => "prefix",
            MatchKind::Range => "range",
            MatchKind::Ternary => "ternary",
        }
    }

    /// Returns the kind with this name, if there is one.
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
