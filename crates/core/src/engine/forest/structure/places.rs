//! What is known of a rule by its id: where it is, and its action, which an
//! update writes in the same cache line.

use crate::engine::forest::slot::Place;
use crate::id_map::IdMap;
use crate::rule::ActionId;

/// What is known of a rule by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The slot of its run; [`Place::ROOT`] until it is placed.
    pub(super) place: Place,
    pub(super) action: ActionId,
}

impl Known {
    /// The entry of a rule that is to be placed next.
    pub(super) fn unplaced(action: ActionId) -> Known {
        Known {
            place: Place::ROOT,
            action,
        }
    }
}

/// The places and actions of all rules, by id.
pub(super) type Places = IdMap<Known>;
