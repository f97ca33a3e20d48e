//! Parts of the datapath for separate measurements, such as
//! `classyard reproduce`. A switch does not need this module, and its interface may
//! change at any time.
//!
//! | module | what it has |
//! |---|---|
//! | [`microflow`] | microflow caches |
//! | [`sorted_tuples`] | megaflows in one hash table per mask |
//! | [`megaflow`] | algorithms for the mask of a megaflow |
//! | [`header_space`] | sets of headers as unions of values under masks |
//! | [`projection`] | the bits of a key that a table's rules use |

pub use crate::cache::{microflow, sorted_tuples};

/// Sets of headers as unions of values under masks.
pub mod header_space {
    pub use crate::header_space::*;
}

/// Algorithms for the mask of a megaflow.
pub mod megaflow {
    pub use crate::megaflow::*;
}

/// The bits of a key that a table's rules use.
pub mod projection {
    pub use crate::projection::*;
}
