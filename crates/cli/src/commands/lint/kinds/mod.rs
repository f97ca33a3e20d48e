//! The kinds of findings.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use super::finding::Kind;

mod conflict;
mod correlated;
mod dead;
mod equal_priority;
mod host_bits;
mod mergeable;
mod never_hit;
mod partly_dead;
mod rare_action;
mod redundant;

/// All kinds, in the order of reports.
const ALL: [Kind; 9] = [
    dead::KIND,
    partly_dead::KIND,
    redundant::KIND,
    equal_priority::KIND,
    rare_action::KIND,
    mergeable::KIND,
    correlated::KIND,
    never_hit::KIND,
    host_bits::KIND,
];

impl Kind {
    pub(in crate::commands) const ALL: [Kind; 9] = ALL;
    pub(in crate::commands) const DEAD: Kind = dead::KIND;
    pub(in crate::commands) const PARTLY_DEAD: Kind = partly_dead::KIND;
    pub(in crate::commands) const REDUNDANT: Kind = redundant::KIND;
    pub(super) const NEVER_HIT: Kind = never_hit::KIND;
    pub(super) const HOST_BITS: Kind = host_bits::KIND;
}

/// A value of `--select`: a kind, or `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selector {
    All,
    Only(Kind),
}

impl Selector {
    /// True if the selector has a kind.
    pub(super) fn has(self, kind: Kind) -> bool {
        self == Selector::All || self == Selector::Only(kind)
    }
}

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Kind] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.summary))
    }
}

impl ValueEnum for Selector {
    fn value_variants<'a>() -> &'a [Selector] {
        const SELECTORS: [Selector; ALL.len() + 1] = {
            let mut selectors = [Selector::All; ALL.len() + 1];
            let mut index = 0;
            while index < ALL.len() {
                selectors[index] = Selector::Only(ALL[index]);
                index += 1;
            }
            selectors
        };
        &SELECTORS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Selector::All => Some(PossibleValue::new("all").help("All of these kinds")),
            Selector::Only(kind) => kind.to_possible_value(),
        }
    }
}
