//! Lookups: in batches, one key at a time, masked, and traced.
//!
//! All kinds go through the same tables and find the same winners:
//! ```text
//! visit(chain):
//!     for table in chain, best first:
//!         if table.best does not beat winner: stop
//!         if the winner has no conflicts in the table: next
//!         slot = table.slots[hash(key & table.mask)]
//!         if slot's signature rejects the key: next
//!         run:           winner = the best of winner and the first match in it
//!         nested tables: visit(their chain)
//! ```
//! [`TableBounds::may_improve`] decides if the winner may have conflicts in a table, from
//! the conflicts in the winner's slot and from ranks.
//!
//! | file | lookups | outstanding memory accesses |
//! |---|---|---|
//! | [`batch`] | up to 256 keys together, with vectors | up to 256 |
//! | [`one`] | one key; also masked and traced, by observers of the same walk | one |
//!
//! [`TableBounds::may_improve`]: super::kernels::active::TableBounds::may_improve

use super::kernels::compare::{self, Hits};
use super::kernels::keys::Keys;
use super::kernels::probe::NEAR_WORDS;
use super::kernels::wide::{self, Candidate, WIDE_KEY_WORDS};
use super::structure::Structure;
use crate::parts::simd::Isa;
use crate::parts::simd::vector::{Kernel, Simd};

mod batch;
mod one;

pub(super) use batch::Buffers;

/// Options of lookups. They change speed, never results.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookupConfig {
    /// Instructions for hashing keys and reading slots.
    pub(super) probing: Isa,
    /// Instructions for comparing keys with rules.
    pub(super) comparing: Isa,
    /// True if memory is prefetched.
    pub(super) prefetch: bool,
}

impl LookupConfig {
    /// True if runs in `words` are prefetched. At most [`NEAR_WORDS`] words fit a
    /// cache near the core, so they arrive in time without prefetching.
    fn prefetches_runs(self, words: &[u64]) -> bool {
        self.prefetch && words.len() > NEAR_WORDS
    }
}

/// A structure with the options of lookups in it.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a, const W: usize> {
    structure: &'a Structure<W>,
    config: LookupConfig,
}

impl<'a, const W: usize> Lookup<'a, W> {
    pub(super) fn new(structure: &'a Structure<W>, config: LookupConfig) -> Lookup<'a, W> {
        Lookup { structure, config }
    }
}

/// Improves the winners of keys by the best rules of the runs that they have found.
struct Compare<'a, const W: usize> {
    structure: &'a Structure<W>,
    keys: Keys<'a, W>,
    hits: Hits<'a>,
    /// At least an element for each hit.
    room: &'a mut [Candidate],
}

impl<const W: usize> Kernel for Compare<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Compare {
            structure,
            keys,
            hits,
            room,
        } = self;
        let words = structure.words();
        let accept =
            |run: &[u64], len, rule, key: &[u64; W]| structure.accepts(run, len, rule, key);
        let accept_all = |_: &[u64], _, _, _: &[u64; W]| true;
        if W >= WIDE_KEY_WORDS
            && let Some((_, columns)) = structure.shape().wide()
        {
            if structure.has_more_to_check() {
                wide::improve::<S, W, true>(simd, words, columns, keys, hits, room, accept);
            } else {
                wide::improve::<S, W, false>(simd, words, columns, keys, hits, room, accept_all);
            }
            return;
        }
        let columns = structure.shape().run_columns();
        if structure.has_more_to_check() {
            compare::improve::<S, W, true>(simd, words, columns, keys, hits, accept);
        } else {
            compare::improve::<S, W, false>(simd, words, columns, keys, hits, accept_all);
        }
    }
}
