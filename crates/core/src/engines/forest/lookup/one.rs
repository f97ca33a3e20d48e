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
use crate::engines::forest::kernels::compare::{self, Hits};
use crate::engines::forest::kernels::keys::Best;
use crate::engines::forest::kernels::wide::{Candidate, WIDE_KEY_WORDS};
use crate::engines::forest::rows::Unpacked;
use crate::engines::forest::slot::{Bucket, FoundSlot, Slot, TableNumber};
use crate::engines::forest::structure::{Structure, Table};
use crate::model::packed::PackedRule;
use crate::model::rule::Winner;
use crate::parts::simd::Isa;
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
    #[inline]
    pub(crate) fn improve(self, key: &[u64; W], winner: Winner) -> Winner {
        let print = self.structure.shape().print(key);
        self.visit(key, print, winner, &mut Plain)
    }

    /// Improves a candidate, and sets in `wanted` the bits that the result depends
    /// on.
    pub(crate) fn improve_masked(self, key: &[u64; W], best: Winner, wanted: &mut [u64]) -> Winner {
        self.visit(key, 0, best, &mut Masked { key, wanted })
    }

    /// Traces a lookup step by step.
    pub(crate) fn trace(self, key: &[u64; W]) -> LookupTrace {
        let mut traced = Traced { probes: Vec::new() };
        let winner = self.visit(key, 0, Winner::MISS, &mut traced);
        LookupTrace {
            probes: traced.probes,
            tables: self.structure.table_count(),
            winner,
        }
    }

    /// Visits the tables of the root.
    #[inline]
    fn visit<O: Observer<W>>(
        self,
        key: &[u64; W],
        print: u64,
        winner: Winner,
        observer: &mut O,
    ) -> Winner {
        let visit = Visit {
            structure: self.structure,
            isa: self.config.comparing,
            first: self.structure.root(),
            key,
            print,
            best: Best::new(winner),
            observer,
        };
        self.config.comparing.run(visit).winner
    }
}

/// The visit of a chain as a kernel, so that runs are compared without a call. Returns
/// the best rule.
struct Visit<'a, 'o, const W: usize, O> {
    structure: &'a Structure<W>,
    /// The instructions, for nested tables.
    isa: Isa,
    first: TableNumber,
    key: &'a [u64; W],
    print: u64,
    best: Best,
    observer: &'o mut O,
}

impl<const W: usize, O: Observer<W>> Kernel for Visit<'_, '_, W, O> {
    type Output = Best;

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) -> Best {
        let structure = self.structure;
        let secrets = structure.secrets();
        let mut number = self.first;
        let mut best = self.best;
        while let Some(table) = structure.table_if_any(number) {
            let bounds = table.bounds();
            if !bounds.best.beats(best.winner) {
                break;
            }
            let this = std::mem::replace(&mut number, table.next());
            if !bounds.may_improve(best.winner, best.conflicts) {
                continue;
            }
            self.observer.probes(this, table);
            let Some(slot) = table.find(self.key, secrets) else {
                continue;
            };
            best = if slot.is_nested() {
                self.visit_nested(TableNumber::from_slot(slot), best)
            } else if O::RULES {
                self.compare_rules(slot, best)
            } else {
                self.compare::<S>(simd, FoundSlot::new(slot, 0), best)
            };
        }
        best
    }
}

impl<const W: usize, O: Observer<W>> Visit<'_, '_, W, O> {
    /// Visits a chain of nested tables.
    #[inline(never)]
    fn visit_nested(&mut self, first: TableNumber, best: Best) -> Best {
        self.isa.run(Visit {
            structure: self.structure,
            isa: self.isa,
            first,
            key: self.key,
            print: self.print,
            best,
            observer: &mut *self.observer,
        })
    }

    /// Compares the key with a whole run by the kernels.
    #[inline(always)]
    fn compare<S: Simd>(&self, simd: S, hit: FoundSlot, mut best: Best) -> Best {
        let structure = self.structure;
        let shape = structure.shape();
        if W >= WIDE_KEY_WORDS && shape.wide().is_some() {
            let compare = Compare {
                structure,
                keys: best.of_key(self.key, &self.print),
                hits: Hits {
                    hits: &[hit],
                    is_short: hit.len() <= shape.max_short_len(),
                    // The run is read immediately, so prefetching gains nothing.
                    prefetch: false,
                },
                room: &mut [Candidate::NONE],
            };
            compare.run(simd);
            return best;
        }
        let (words, columns) = (structure.words(), shape.run_columns());
        let key_and_winner = (self.key, best.winner);
        let (winner, matched) = if structure.has_more_to_check() {
            let accept =
                |run: &[u64], len, rule, key: &[u64; W]| structure.accepts(run, len, rule, key);
            compare::improve_one::<S, W, true>(simd, words, columns, key_and_winner, hit, accept)
        } else {
            let accept_all = |_: &[u64], _, _, _: &[u64; W]| true;
            compare::improve_one::<S, W, false>(
                simd,
                words,
                columns,
                key_and_winner,
                hit,
                accept_all,
            )
        };
        best.winner = winner;
        best.conflicts.narrow(hit.conflicts(), matched);
        best
    }

    /// Compares the key with the rules of a run that are better than the winner, one
    /// by one.
    fn compare_rules(&mut self, slot: Slot, mut best: Best) -> Best {
        let Bucket::Run(run) = slot.bucket() else {
            return best;
        };
        let structure = self.structure;
        let words = structure.run(run);
        let ranks = structure.ranks(run);
        let mut unpacked = Unpacked::<W>::new();
        for (position, &rank) in ranks.iter().enumerate() {
            let mask = structure.mask_of(rank);
            let rank = Winner::from_rank(rank);
            if !rank.beats(best.winner) {
                break;
            }
            let rule = unpacked.rule(structure.shape(), words, ranks.len(), position, mask);
            let matches = rule.matches(self.key);
            self.observer.compares(&rule, rank, matches);
            if matches {
                best.winner = rank;
                best.conflicts.narrow(slot.conflicts(), true);
                break;
            }
        }
        best
    }
}
