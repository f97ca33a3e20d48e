//! Lookups of one key: plain, masked and traced.
//!
//! One walk serves all three. An [`Observer`] is told which tables it probes and,
//! if it wants to, which rules it compares; the plain lookup's observer is told
//! nothing, and its walk compares whole runs by the kernels. Nothing is prefetched:
//! prefetching a slot of every root table before the first is read took a third of
//! the time.
//!
//! A masked lookup wants the mask of every table that it probes: every key with
//! the same bits there finds the same slots. For every rule that it compares it
//! wants the bits that [`crate::unwildcard`] names. It allocates nothing.

use super::Lookup;
use crate::classifier::{LookupTrace, Probe};
use crate::engine::forest::kernels::active::OneKey;
use crate::engine::forest::kernels::compare::Hits;
use crate::engine::forest::kernels::wide::Candidate;
use crate::engine::forest::rows::Unpacked;
use crate::engine::forest::slot::{Bucket, Hit, Run, Slot, TableNumber};
use crate::engine::forest::structure::Table;
use crate::packed::PackedRule;
use crate::rule::Winner;
use crate::unwildcard;

/// Is told what a lookup of one key does.
trait Observer<const W: usize> {
    /// Whether it is told about rules. Then they are compared one by one.
    const RULES: bool;

    /// A table is probed.
    fn probes(&mut self, _number: TableNumber, _table: &Table<W>) {}

    /// The key is compared with a rule of the table that was probed last.
    fn compares(&mut self, _rule: &PackedRule<'_>, _rank: Winner, _matches: bool) {}
}

/// Wants to know nothing.
struct Plain;

impl<const W: usize> Observer<W> for Plain {
    const RULES: bool = false;
}

/// Collects the bits on which the outcome depends.
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

/// Writes down every step.
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
        let mut one = OneKey::new(key, winner, self.structure.shape().print(key));
        self.visit(self.structure.root(), &mut one, &mut Plain);
        one.winner
    }

    /// Improves a candidate, and sets in `wanted` the bits on which that
    /// depended.
    pub(crate) fn improve_masked(self, key: &[u64; W], best: Winner, wanted: &mut [u64]) -> Winner {
        let mut one = OneKey::new(key, best, 0);
        self.visit(self.structure.root(), &mut one, &mut Masked { key, wanted });
        one.winner
    }

    /// A lookup step by step.
    pub(crate) fn trace(self, key: &[u64; W]) -> LookupTrace {
        let mut one = OneKey::new(key, Winner::MISS, 0);
        let mut traced = Traced { probes: Vec::new() };
        self.visit(self.structure.root(), &mut one, &mut traced);
        LookupTrace {
            probes: traced.probes,
            tables: self.structure.table_count(),
            winner: one.winner,
        }
    }

    /// Visits the tables of a chain from one on.
    fn visit<O: Observer<W>>(self, first: TableNumber, one: &mut OneKey<'_, W>, observer: &mut O) {
        let structure = self.structure;
        for number in structure.chain(first) {
            let table = structure.table(number);
            if !Winner::from_rank(table.best()).beats(one.winner) {
                break;
            }
            if !table.offer().may_improve(one.winner, one.conflicts) {
                continue;
            }
            observer.probes(number, table);
            let Some(slot) = table.find(one.key, structure.secrets()) else {
                continue;
            };
            match slot.bucket() {
                Bucket::Empty => {}
                Bucket::Nested(first) => self.visit(first, one, observer),
                Bucket::Run(run) if O::RULES => self.compare_rules(slot, run, one, observer),
                Bucket::Run(run) => {
                    let hits = Hits {
                        hits: &[Hit::new(slot, 0)],
                        short: usize::from(run.len) <= structure.shape().short(),
                        // The run is read at once: nothing is gained before.
                        prefetch: false,
                    };
                    self.compare(one, hits, &mut [Candidate::NONE]);
                }
            }
        }
    }

    /// Compares the key with the rules of a run, one by one, as far as they are
    /// better than the winner.
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
        for (at, &rank) in ranks.iter().enumerate() {
            let mask = self.structure.mask_of(rank);
            let rank = Winner::from_rank(rank);
            if !rank.beats(one.winner) {
                break;
            }
            let rule = unpacked.rule(shape, words, ranks.len(), at, mask);
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
