//! What engines share.
//!
//! | module | contents |
//! |---|---|
//! | `simd` | instruction sets, prefetching, huge pages, vectors |
//! | `sort`, `projection`, `combine` | sorting, values of a field as intervals, classes of fields combined |
//! | `id_map`, `unwildcard` | maps from rule ids, and bits that an outcome depends on |
//! | `ranked`, `range_tree`, `tree` | rules in order of priority, searches of a field, decision trees |
//! | `tuple_space`, `bit_vectors` | hash tables of rules with one mask, and rules as bits of vectors |

pub(crate) mod bit_vectors;
pub(crate) mod combine;
pub(crate) mod id_map;
pub(crate) mod projection;
pub(crate) mod range_tree;
pub(crate) mod ranked;
pub(crate) mod simd;
pub(crate) mod sort;
pub(crate) mod tree;
pub(crate) mod tuple_space;
pub(crate) mod unwildcard;
