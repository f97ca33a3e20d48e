//! The place and the action of each rule, by id. An update writes both in the same
//! cache line.

use crate::engines::forest::slot::Place;
use crate::model::rule::ActionId;
use crate::parts::id_map::IdMap;

/// The place and the action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The slot of the rule's run; [`Place::ROOT`] until the rule is placed.
    pub(super) place: Place,
    pub(super) action: ActionId,
}

impl Known {
    /// Returns the entry of a rule that is placed next.
    pub(super) fn unplaced(action: ActionId) -> Known {
        Known {
            place: Place::ROOT,
            action,
        }
    }
}

/// The places and actions of all rules, by id.
pub(super) type Places = IdMap<Known>;
