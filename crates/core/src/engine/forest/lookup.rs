//! Lookups in a forest.
//!
//! One key:
//! ```text
//! visit(node):
//!     for table in node, best first:
//!         if not table.best beats winner: stop
//!         if winner has no rivals in the table: next
//!         slot = table.slots[hash(key & table.mask)]
//!         if slot's signature rules the key out: next
//!         run:  winner = the best of winner and the first match in the run
//!         node: visit(node)
//! ```
//! What [rivals](super::rivals) are known, the slots say in which matches were
//! found.
//!
//! A batch goes through each table of the root, all keys together, with up to
//! 256 memory accesses under way:
//! ```text
//! 1  list the keys that the table may improve              crate::simd::pending
//! 2  probe: hash keys, read their slots, and keep those that may hold something,
//!    short runs, long runs and nested nodes apart          crate::simd::probe
//! 3  ask for the lines of all runs that are far, and compare  crate::simd::runs
//! ```
//! Then the nested nodes of all keys go through the same steps in rounds, one
//! table of each node at a time; nodes nested in them join the next round.

use super::RowShape;
use super::table::{Bucket, Slot, TableNumber};
use super::tree::Forest;
use crate::classifier::{BATCH, LookupTrace, Probe};
use crate::rule::Winner;
use crate::simd::pending::{Keys, OneKey, Pending, Workspace};
use crate::simd::probe::{Found, Hit, NEAR, probe};
use crate::simd::runs::{self, Hits, SHORT};
use crate::simd::{Isa, prefetch};
use crate::unwildcard;

/// By what means lookups are done. They change speed, never results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Means {
    /// Instructions for hashing keys and reading slots.
    pub(super) probing: Isa,
    /// Instructions for comparing keys with rules.
    pub(super) comparing: Isa,
    /// Whether to ask for memory ahead of its use.
    pub(super) ahead: bool,
}

impl Means {
    /// Whether to ask for runs among so many words: those that fit a cache near
    /// the core are there in time.
    fn runs_ahead(self, words: &[u64]) -> bool {
        self.ahead && words.len() > NEAR
    }
}

/// A key on its way to a table.
#[derive(Clone, Copy, Debug)]
struct Visit {
    key: u8,
    table: TableNumber,
}

/// Working memory of a batch.
#[derive(Default)]
pub(super) struct Buffers {
    workspace: Workspace,
    found: Found,
    visits: Vec<Visit>,
    coming: Vec<Visit>,
    slots: Vec<(u32, u32)>,
}

impl<const W: usize> Forest<W> {
    /// Improves the winners of a batch.
    pub(super) fn improve_batch(
        &self,
        means: Means,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        buffers: &mut Buffers,
    ) {
        for (keys, winners) in keys.chunks(BATCH).zip(winners.chunks_mut(BATCH)) {
            let Buffers {
                workspace,
                found,
                visits,
                coming,
                slots,
            } = buffers;
            let mut keys = Pending::new(keys, winners, workspace);
            visits.clear();
            self.visit_root(means, &mut keys, found, visits);
            while !visits.is_empty() {
                coming.clear();
                self.visit_nested(means, &mut keys, found, visits, slots, coming);
                std::mem::swap(visits, coming);
            }
        }
    }

    /// All tables of the root; what nested nodes are to be visited then.
    fn visit_root(
        &self,
        means: Means,
        keys: &mut Pending<'_, W>,
        found: &mut Found,
        visits: &mut Vec<Visit>,
    ) {
        for number in self.chain(self.root) {
            let table = &self.tables[number.index()];
            let offer = table.offer();
            let table = table.probed(&self.secrets, means.ahead);
            if !keys.take_up(means.probing, &offer) {
                break;
            }
            if keys.positions().is_empty() {
                continue;
            }
            probe(means.probing, &table, keys, found);
            visits.extend(found.nodes.hits().iter().map(|hit| Visit {
                key: hit.key(),
                table: TableNumber::from_slot(Slot::from_word(hit.slot())),
            }));
            self.compare_found(means, keys, found);
        }
    }

    /// One table of each nested node that is to be visited.
    fn visit_nested(
        &self,
        means: Means,
        keys: &mut Pending<'_, W>,
        found: &mut Found,
        visits: &mut Vec<Visit>,
        slots: &mut Vec<(u32, u32)>,
        coming: &mut Vec<Visit>,
    ) {
        slots.clear();
        if means.ahead {
            for visit in visits.iter() {
                prefetch(&self.tables[visit.table.index()]);
            }
        }
        visits.retain(|visit| {
            let table = &self.tables[visit.table.index()];
            let (key, winner, _) = keys.at(visit.key);
            if !Winner::from_rank(table.best).beats(*winner) {
                return false;
            }
            let hash = table.hash(key, &self.secrets);
            if means.ahead {
                table.ask(hash);
            }
            slots.push((table.slot(hash), table.sign(hash)));
            if table.next != TableNumber::NONE {
                coming.push(Visit {
                    key: visit.key,
                    table: table.next,
                });
            }
            true
        });
        for (visits, slots) in visits.chunks(BATCH).zip(slots.chunks(BATCH)) {
            found.clear();
            for (visit, &(slot, sign)) in visits.iter().zip(slots) {
                let slot = self.tables[visit.table.index()].get(slot);
                if !slot.may_hold(sign) {
                    continue;
                }
                if slot.is_node() {
                    coming.push(Visit {
                        key: visit.key,
                        table: TableNumber::from_slot(slot),
                    });
                } else {
                    found.push_run(Hit::new(slot.word(), visit.key));
                }
            }
            self.compare_found(means, keys, found);
        }
    }

    fn compare_found(&self, means: Means, keys: &mut Pending<'_, W>, found: &Found) {
        for (list, short) in [(&found.short, true), (&found.long, false)] {
            let hits = Hits {
                hits: list.hits(),
                short,
                ahead: means.runs_ahead(self.runs.words()),
            };
            self.compare(means, keys, hits);
        }
    }

    fn compare(&self, means: Means, keys: &mut impl Keys<W>, hits: Hits<'_>) {
        let words = self.runs.words();
        let columns = self.shape.run_columns();
        if self.shape.has_odd_ranges() {
            let accept = |run: &[u64], len, rule, key: &[u64; W]| {
                self.shape.odd_ranges_accept(run, len, rule, key)
            };
            runs::improve::<W, true>(means.comparing, words, columns, keys, hits, accept);
        } else {
            runs::improve::<W, false>(means.comparing, words, columns, keys, hits, |_, _, _, _| {
                true
            });
        }
    }

    /// Improves a candidate for one key.
    pub(super) fn improve(&self, means: Means, key: &[u64; W], winner: Winner) -> Winner {
        let mut one = OneKey::new(key, winner);
        self.visit_one(means, self.root, &mut one);
        one.winner
    }

    fn visit_one(&self, means: Means, first: TableNumber, one: &mut OneKey<'_, W>) {
        for number in self.chain(first) {
            let table = &self.tables[number.index()];
            if !Winner::from_rank(table.best).beats(one.winner) {
                break;
            }
            if !table.offer().may_improve(one.winner, one.rivals) {
                continue;
            }
            let Some(slot) = table.find(one.key, &self.secrets) else {
                continue;
            };
            match slot.bucket() {
                Bucket::Empty => {}
                Bucket::Node(first) => self.visit_one(means, first, one),
                Bucket::Run(_) => {
                    let hits = Hits {
                        hits: &[Hit::new(slot.word(), 0)],
                        short: usize::from(slot.length()) <= SHORT,
                        // The run is read at once: nothing is gained before.
                        ahead: false,
                    };
                    self.compare(means, one, hits);
                }
            }
        }
    }

    /// Improves a candidate, and sets in `wanted` the bits on which that
    /// depended.
    pub(super) fn improve_masked(
        &self,
        key: &[u64; W],
        best: Winner,
        wanted: &mut [u64],
    ) -> Winner {
        let mut one = OneKey::new(key, best);
        self.explain(self.root, &mut one, &mut |step| match step {
            Step::Table(number) => {
                let mask = &self.tables[number.index()].mask;
                for (wanted, mask) in wanted.iter_mut().zip(mask) {
                    *wanted |= mask;
                }
            }
            Step::Rule(row, matches) => {
                let words = self.shape.unpack(&self.schema, row);
                let rule = RowShape::packed(&self.schema, &words);
                if matches {
                    unwildcard::confirm(&rule, key, wanted);
                } else {
                    unwildcard::refute(&rule, key, wanted);
                }
            }
        });
        one.winner
    }

    /// A lookup step by step.
    pub(super) fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut one = OneKey::new(key, Winner::MISS);
        let mut probes: Vec<Probe> = Vec::new();
        self.explain(self.root, &mut one, &mut |step| match step {
            Step::Table(number) => {
                let table = &self.tables[number.index()];
                probes.push(Probe {
                    table: number.index(),
                    mask: table.mask.to_vec(),
                    rules: table.rules,
                    compared: Vec::new(),
                    winner: Winner::MISS,
                });
            }
            Step::Rule(row, matches) => {
                let rank = Winner::from_rank(row[0]);
                let probe = probes.last_mut().expect("rules are in tables");
                probe.compared.extend(rank.rule());
                if matches {
                    probe.winner = rank;
                }
            }
        });
        LookupTrace {
            probes,
            tables: self.tables_in_use(),
            winner: one.winner,
        }
    }

    /// The lookup of one key, telling each table and each rule that it looks
    /// at. Slow.
    fn explain(&self, first: TableNumber, one: &mut OneKey<'_, W>, tell: &mut dyn FnMut(Step<'_>)) {
        for number in self.chain(first) {
            let table = &self.tables[number.index()];
            if !Winner::from_rank(table.best).beats(one.winner) {
                break;
            }
            if !table.offer().may_improve(one.winner, one.rivals) {
                continue;
            }
            tell(Step::Table(number));
            let Some(slot) = table.find(one.key, &self.secrets) else {
                continue;
            };
            match slot.bucket() {
                Bucket::Empty => {}
                Bucket::Node(first) => self.explain(first, one, tell),
                Bucket::Run(run) => {
                    let mut row = Vec::with_capacity(self.shape.columns());
                    for rule in 0..usize::from(run.len) {
                        row.clear();
                        self.runs.push_row(run, rule, &mut row);
                        let rank = Winner::from_rank(row[0]);
                        if !rank.beats(one.winner) {
                            break;
                        }
                        let words = self.shape.unpack(&self.schema, &row);
                        let matches = RowShape::packed(&self.schema, &words).matches(one.key);
                        tell(Step::Rule(&row, matches));
                        if matches {
                            one.winner = rank;
                            one.rivals.narrow(slot.rivals(), true);
                            break;
                        }
                    }
                }
            }
        }
    }
}

/// What a lookup looks at.
enum Step<'a> {
    Table(TableNumber),
    /// A rule as a row, and whether it matches.
    Rule(&'a [u64], bool),
}
