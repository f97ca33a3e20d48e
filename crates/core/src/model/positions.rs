//! The position of each rule id in a list that only grows.

use hashbrown::HashMap;

use crate::model::rule::RuleId;
use crate::model::seed::MapState;

/// Positions of rule ids. Allocates nothing while the ids are 0, 1, 2, … in
/// order, as in every rule file without ids.
#[derive(Clone, Debug)]
pub(crate) enum Positions {
    /// Id `i` is at position `i`; the number is the count of ids.
    Identity(u32),
    Map(HashMap<RuleId, u32, MapState>),
}

impl Positions {
    pub(crate) fn new() -> Positions {
        Positions::Identity(0)
    }

    pub(crate) fn get(&self, id: RuleId) -> Option<usize> {
        match self {
            Positions::Identity(count) => (id.get() < *count).then_some(id.index()),
            Positions::Map(map) => map.get(&id).map(|&position| position as usize),
        }
    }

    /// Assigns the next position to an id. Returns false if the id already has
    /// a position.
    pub(crate) fn push(&mut self, id: RuleId) -> bool {
        if let Positions::Identity(count) = self {
            if id.get() == *count {
                *count += 1;
                return true;
            }
            if id.get() < *count {
                return false;
            }
            let map = (0..*count).map(|i| (RuleId::from_index(i as usize), i));
            *self = Positions::Map(map.collect());
        }
        match self {
            Positions::Identity(_) => unreachable!("left above"),
            Positions::Map(map) => {
                let next = u32::try_from(map.len()).expect("fewer rules than ids");
                match map.entry(id) {
                    hashbrown::hash_map::Entry::Occupied(_) => false,
                    hashbrown::hash_map::Entry::Vacant(free) => {
                        free.insert(next);
                        true
                    }
                }
            }
        }
    }

    /// Returns the bytes held.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Positions::Identity(_) => 0,
            Positions::Map(map) => map.allocation_size(),
        }
    }
}
