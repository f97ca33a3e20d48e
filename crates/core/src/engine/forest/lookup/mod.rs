//! Lookups: in batches, one key at a time, masked, and traced.
//!
//! All of them go through the same tables and find the same winners:
//! ```text
//! visit(chain):
//!     for table in chain, best first:
//!         if not table.best beats winner: stop
//!         if the winner has no conflicts in the table: next
//!         slot = table.slots[hash(key & table.mask)]
//!         if slot's signature rules the key out: next
//!         run:           winner = the best of winner and the first match in it
//!         nested tables: visit(their chain)
//! ```
//! Whether the winner may have conflicts in a table is known from the slot in
//! which it was found and from ranks: [`Offer::may_improve`].
//!
//! | file | lookups | memory accesses under way |
//! |---|---|---|
//! | [`batch`] | up to 256 keys together, with vectors | up to 256 |
//! | [`one`] | one key; also masked and traced, by an observer of the same walk | one |
//!
//! [`Offer::may_improve`]: super::kernels::active::Offer::may_improve

use super::kernels::active::Keys;
use super::kernels::compare::{self, Hits};
use super::kernels::probe::NEAR;
use super::kernels::wide::{self, Candidate, WIDE};
use super::structure::Structure;
use crate::simd::Isa;

mod batch;
mod one;

pub(super) use batch::Buffers;

/// How lookups are done. It changes speed, never results.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookupConfig {
    /// Instructions for hashing keys and reading slots.
    pub(super) probing: Isa,
    /// Instructions for comparing keys with rules.
    pub(super) comparing: Isa,
    /// Whether to prefetch memory.
    pub(super) prefetch: bool,
}

impl LookupConfig {
    /// Whether to prefetch runs out of these words. Where there are at most
    /// `NEAR`, they fit a cache near the core and arrive in time anyway.
    fn prefetches_runs(self, words: &[u64]) -> bool {
        self.prefetch && words.len() > NEAR
    }
}

/// A structure to look up in.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a, const W: usize> {
    structure: &'a Structure<W>,
    config: LookupConfig,
}

impl<'a, const W: usize> Lookup<'a, W> {
    pub(super) fn new(structure: &'a Structure<W>, config: LookupConfig) -> Lookup<'a, W> {
        Lookup { structure, config }
    }

    /// Improves the winners of keys by the best rules of the runs that they have
    /// found. There is room for as many candidates as hits.
    #[inline]
    fn compare(self, keys: &mut impl Keys<W>, hits: Hits<'_>, room: &mut [Candidate]) {
        let words = self.structure.words();
        let structure = self.structure;
        let isa = self.config.comparing;
        if W >= WIDE
            && let Some((_, columns)) = structure.shape().wide()
        {
            if structure.has_more_to_check() {
                let accept =
                    |run: &[u64], len, rule, key: &[u64; W]| structure.accepts(run, len, rule, key);
                wide::improve::<W, true>(isa, words, columns, keys, hits, room, accept);
            } else {
                let accept = |_: &[u64], _, _, _: &[u64; W]| true;
                wide::improve::<W, false>(isa, words, columns, keys, hits, room, accept);
            }
            return;
        }
        let columns = structure.shape().run_columns();
        if structure.has_more_to_check() {
            let accept =
                |run: &[u64], len, rule, key: &[u64; W]| structure.accepts(run, len, rule, key);
            compare::improve::<W, true>(isa, words, columns, keys, hits, accept);
        } else {
            compare::improve::<W, false>(isa, words, columns, keys, hits, |_, _, _, _| true);
        }
    }
}
