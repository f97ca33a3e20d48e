//! Megaflows that are computed from the tables and stored before packets arrive: the entries of
//! the [cross product](crate::megaflow::cross_product) of all tables ([FCH14] §3.1).
//!
//! Then every packet has a megaflow, until entries change. A change makes megaflows stale, and
//! they are renewed by packets, like all megaflows. The number of entries grows with the product
//! of the sizes of the tables, so this is for small pipelines.
//!
//! [FCH14]: classyard::papers#fch14

use std::fmt;

use foldhash::HashSet;

use crate::header_space::Term;
use crate::key::KEY_WORDS;
use crate::megaflow::cross_product::TooManyEntries;

/// The megaflows that were stored before packets arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProactiveMegaflows {
    /// The number of stored megaflows.
    pub megaflows: usize,
    /// The number of entries of the cross product without a megaflow: the first table that
    /// looks their packets up sends them to a meter.
    pub left_to_tables: usize,
    /// The number of masks in the cache.
    pub masks: usize,
    /// The number of paths in the cache.
    pub paths: usize,
}

/// The megaflows of a pipeline cannot be stored before packets arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProactiveError {
    /// The worker has no megaflow cache.
    NoMegaflows,
    /// The worker is of another pipeline.
    OtherPipeline,
    /// The cross product has too many entries.
    Entries(TooManyEntries),
    /// The megaflows exceed the room of the cache.
    Megaflows {
        /// The entries of the cross product.
        megaflows: usize,
        /// The number of megaflows that the cache has room for.
        room: usize,
    },
    /// The masks exceed the room of the cache.
    Masks {
        /// The different masks of the cross product.
        masks: usize,
        /// The number of masks that the cache has room for.
        room: usize,
    },
}

impl fmt::Display for ProactiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProactiveError::NoMegaflows => f.write_str("the worker has no megaflow cache"),
            ProactiveError::OtherPipeline => f.write_str("the worker is of another pipeline"),
            ProactiveError::Entries(error) => error.fmt(f),
            ProactiveError::Megaflows { megaflows, room } => write!(
                f,
                "the cross product has {megaflows} entries; the cache has room for {room} megaflows"
            ),
            ProactiveError::Masks { masks, room } => write!(
                f,
                "the cross product has {masks} masks; the cache has room for {room} masks, and \
                 reserves one"
            ),
        }
    }
}

impl std::error::Error for ProactiveError {}

/// The room that a cache has left.
pub(super) struct Room {
    pub(super) megaflows: usize,
    pub(super) masks: usize,
}

impl Room {
    /// Checks that there is room for megaflows with these keys and masks.
    pub(super) fn check<'t>(
        &self,
        terms: impl Iterator<Item = &'t Term<KEY_WORDS>>,
    ) -> Result<(), ProactiveError> {
        let (mut megaflows, mut masks) = (0, HashSet::default());
        for term in terms {
            megaflows += 1;
            masks.insert(term.mask());
        }
        if megaflows > self.megaflows {
            let room = self.megaflows;
            return Err(ProactiveError::Megaflows { megaflows, room });
        }
        if masks.len() > self.masks {
            let (masks, room) = (masks.len(), self.masks);
            return Err(ProactiveError::Masks { masks, room });
        }
        Ok(())
    }
}
