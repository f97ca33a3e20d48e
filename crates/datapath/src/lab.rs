//! Parts of the datapath alone, for those who measure them: `classyard reproduce` does.
//! A switch needs none of it, and it changes without notice.
//!
//! | module | what it has |
//! |---|---|
//! | [`microflow`] | caches of single flows |
//! | [`sorted_tuples`] | megaflows in a hash table for each mask |
//! | [`megaflow`] | ways to compute the mask of a megaflow |
//! | [`header_space`] | sets of headers as unions of values under masks |
//! | [`projection`] | the few bits of a key that a table's rules look at |

pub use crate::cache::{microflow, sorted_tuples};
pub use crate::{header_space, megaflow, projection};
