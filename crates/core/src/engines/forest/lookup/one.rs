//! Lookups of one key: plain, masked and traced.
//!
//! One walk serves all three. An [`Observer`] receives the probed tables and, if
//! [`RULES`](Observer::RULES) is set, the compared rules. The plain lookup's
//! observer receives nothing, and its walk compares whole runs by the kernels.
//! Nothing is prefetched: prefetching a slot of every root table before reading the
//! first took a third of the time.
//!
//! A masked lookup adds the mask of every probed table: every key with the same bits
//! under it finds the same slots. For every compared rule it adds the bits that
//! [`crate::parts::unwildcard`] selects. It allocates nothing.

use super::{Compare, Lookup};
use crate::contract::classifier::{LookupTrace, Probe};
use crate::engines::forest::kernels::compare::Hits;
use crate::engines::forest::kernels::keys::OneKey;
use crate::engines::forest::kernels::wide::Candidate;
use crate::engines::forest::rows::Unpacked;
use crate::engines::forest::slot::{Bucket, FoundSlot, Run, Slot, TableNumber};
use crate::engines::forest::structure::Table;
use crate::model::packed::PackedRule;
use crate::model::rule::Winner;
use crate::parts::simd::vector::{Kernel, Simd};
use crate::parts::unwildcard;

/// Receives the steps of a lookup of one key.
trait Observer<const W: usize> {
    /// True if rules are reported. Then they are compared one by one.
    const RULES: bool;

    /// Receives a probed table.
    fn probes(&mut self, _number: TableNumber, _table: &Table<W>) {}

    /// Receives a rule of the table that was probed last, after it was compared with
    /// the key.
    fn compares(&mut self, _rule: &PackedRule<'_>, _rank: Winner, _matches: bool) {}
}

/// Ignores all steps.
struct Plain;

impl<const W: usize> Observer<W> for Plain {
    const RULES: bool = false;
}

/// Collects the bits that the result depends on.
struct Masked<'a, const W: usize> {
    key: &'a [u64; W],
    wanted: &'a mut [u64],
}

impl<const W: usize> Observer<W> for Masked<'_, W> {
    const RULES: bool = true;

    fn probes(&mut self, _: TableNumber, table: &Table<W>) {
        for (wanted, mask) in self.wanted.iter_mut().zip(table.mask()) {
            *wanted |= mask;
        }
    }

    fn compares(&mut self, rule: &PackedRule<'_>, _: Winner, matches: bool) {
        if matches {
            unwildcard::confirm(rule, self.key, self.wanted);
        } else {
            unwildcard::refute(rule, self.key, self.wanted);
        }
    }
}

/// Records every step.
struct Traced {
    probes: Vec<Probe>,
}

impl<const W: usize> Observer<W> for Traced {
    const RULES: bool = true;

    fn probes(&mut self, number: TableNumber, table: &Table<W>) {
        self.probes.push(Probe {
            table: number.index(),
            mask: table.mask().to_vec(),
            rules: table.rules(),
            compared: Vec::new(),
            winner: Winner::MISS,
        });
    }

    fn compares(&mut self, _: &PackedRule<'_>, rank: Winner, matches: bool) {
        let probe = self.probes.last_mut().expect("rules are in tables");
        probe.compared.extend(rank.rule());
        if matches {
            probe.winner = rank;
        }
    }
}

impl<const W: usize> Lookup<'_, W> {
    /// Improves a candidate for one key.
    pub(crate) fn improve(self, key: &[u64; W], winner: Winner) -> Winner {
        let mut one_key = OneKey::new(key, winner, self.structure.shape().print(key));
        self.visit(self.structure.root(), &mut one_key, &mut Plain);
        one_key.winner
    }

    /// Improves a candidate, and sets in `wanted` the bits that the result depends
    /// on.
    pub(crate) fn improve_masked(self, key: &[u64; W], best: Winner, wanted: &mut [u64]) -> Winner {
        let mut one_key = OneKey::new(key, best, 0);
        self.visit(
            self.structure.root(),
            &mut one_key,
            &mut Masked { key, wanted },
        );
        one_key.winner
    }

    /// Traces a lookup step by step.
    pub(crate) fn trace(self, key: &[u64; W]) -> LookupTrace {
        let mut one_key = OneKey::new(key, Winner::MISS, 0);
        let mut traced = Traced { probes: Vec::new() };
        self.visit(self.structure.root(), &mut one_key, &mut traced);
        LookupTrace {
            probes: traced.probes,
            tables: self.structure.table_count(),
            winner: one_key.winner,
        }
    }

    /// Visits the tables of a chain from `first` on.
    fn visit<O: Observer<W>>(&self, first: TableNumber, one: &mut OneKey<'_, W>, observer: &mut O) {
        self.config.comparing.run(Visit {
            lookup: self,
            first,
            one,
            observer,
        });
    }

    /// Compares the key with the rules of a run that are better than the winner, one
    /// by one.
    fn compare_rules<O: Observer<W>>(
        self,
        slot: Slot,
        run: Run,
        one: &mut OneKey<'_, W>,
        observer: &mut O,
    ) {
        let shape = self.structure.shape();
        let words = self.structure.run(run);
        let ranks = self.structure.ranks(run);
        let mut unpacked = Unpacked::<W>::new();
        for (position, &rank) in ranks.iter().enumerate() {
            let mask = self.structure.mask_of(rank);
            let rank = Winner::from_rank(rank);
            if !rank.beats(one.winner) {
                break;
            }
            let rule = unpacked.rule(shape, words, ranks.len(), position, mask);
            let matches = rule.matches(one.key);
            observer.compares(&rule, rank, matches);
            if matches {
                one.winner = rank;
                one.conflicts.narrow(slot.conflicts(), true);
                break;
            }
        }
    }
}

/// The visit of a chain as a kernel, so that runs are compared without a call.
struct Visit<'a, 'k, 'o, const W: usize, O> {
    /// A reference: a copy would be loaded as one vector, and wait until all its parts,
    /// which were just stored, have left the processor's store buffer.
    lookup: &'o Lookup<'a, W>,
    first: TableNumber,
    one: &'o mut OneKey<'k, W>,
    observer: &'o mut O,
}

impl<const W: usize, O: Observer<W>> Kernel for Visit<'_, '_, '_, W, O> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Visit {
            lookup,
            first,
            one,
            observer,
        } = self;
        let structure = lookup.structure;
        for number in structure.chain(first) {
            let table = structure.table(number);
            if !Winner::from_rank(table.best()).beats(one.winner) {
                break;
            }
            if !table.bounds().may_improve(one.winner, one.conflicts) {
                continue;
            }
            observer.probes(number, table);
            let Some(slot) = table.find(one.key, structure.secrets()) else {
                continue;
            };
            match slot.bucket() {
                Bucket::Empty => {}
                Bucket::Nested(first) => lookup.visit(first, one, observer),
                Bucket::Run(run) if O::RULES => lookup.compare_rules(slot, run, one, observer),
                Bucket::Run(run) => {
                    let hits = Hits {
                        hits: &[FoundSlot::new(slot, 0)],
                        is_short: usize::from(run.len) <= structure.shape().max_short_len(),
                        // The run is read immediately, so prefetching gains nothing.
                        prefetch: false,
                    };
                    let compare = Compare {
                        structure,
                        keys: one.keys(),
                        hits,
                        room: &mut [Candidate::NONE],
                    };
                    compare.run(simd);
                }
            }
        }
    }
}
