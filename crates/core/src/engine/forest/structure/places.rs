//! Where the rule of an id is.

use crate::engine::forest::slot::Place;
use crate::id_map::IdMap;

/// The slots of all rules, by id.
pub(super) type Places = IdMap<Place>;
