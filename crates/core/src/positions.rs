//! Where the rule of an id is, in a list that only grows.

use hashbrown::HashMap;

use crate::rule::RuleId;
use crate::seed::MapState;

/// Positions of ids. As long as ids are 0, 1, 2, … in order, which is true of
/// everything read from a file without ids, this takes no memory.
#[derive(Clone, Debug)]
pub(crate) enum Positions {
    /// Id `i` is at position `i`, and there are this many.
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

    /// Gives the next position to an id; says whether the id was free.
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

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Positions::Identity(_) => 0,
            Positions::Map(map) => map.allocation_size(),
        }
    }
}
