//! Rivals: where a rule may be beaten.
//!
//! # Idea
//! A *rival* of a rule is a better rule that some header matches as well. A
//! header that has found a rule need look only into tables that hold rivals of
//! it. Most rules have rivals in few tables, or in none: the order of the tables
//! by their best rules knows nothing of that.
//!
//! ```text
//! group     0     1     2     3    4, 4, …
//! table  ──▶ 1 ──▶ 2 ──▶ 3 ──▶ 4 ──▶ 5, 6, …        the root, best first
//!              │
//!              └─ slot │ position │ signature │ rivals 10010 │ length │
//! ```
//! Each slot has five bits for groups of tables: those with rivals of any rule in
//! its run. A lookup keeps the bits of what it has found, and passes over tables
//! of other groups; the first table comes first and needs no group of its own,
//! the fifth and all after it share one.
//!
//! # Marking
//! After building, for each rule and each table with better rules: the slots that
//! a header of the rule can meet, if they are few, and the rules in them. Where
//! the rule leaves many bits of the table's mask open, or there is much to
//! compare, there may be rivals, and the bit is set.
//!
//! # Updates
//! A rule that comes may be a rival of rules anywhere; finding those would take
//! too long. So the table remembers the best of the rules that have come since
//! marking ([`Table::unmarked`]), and headers whose winners are worse look into
//! it, whatever their bits. The slot that it comes to has all bits set. Removing
//! rules leaves bits set for nothing. All that costs lookups probes until the
//! next marking, never a right answer.
//!
//! When a plan has been adopted, slots are marked one by one while updates go on.
//! Until the last is marked, bits mean nothing; what comes meanwhile is
//! remembered apart ([`Table::came`]).
//!
//! # Cost
//! A hash and a slot for each rule and table when building.
//!
//! [`Table::unmarked`]: super::table::Table::unmarked
//! [`Table::came`]: super::table::Table::came

use super::Ingredient;
use super::table::{Bucket, TableNumber};
use super::tree::Forest;
use crate::simd::pending::Rivals;

/// Bits of a table's mask that a rule may leave open: its headers meet up to two
/// to the power of that slots.
const OPEN: u32 = 6;

/// Rules compared with one, in one table.
const COMPARED: usize = 256;

/// How far marking has come.
#[derive(Debug)]
pub(super) struct Marking {
    /// The root's tables when it began.
    root: Vec<TableNumber>,
    turn: usize,
    slot: u32,
}

impl Marking {
    pub(super) fn bytes(&self) -> usize {
        self.root.capacity() * size_of::<TableNumber>()
    }
}

impl<const W: usize> Forest<W> {
    /// Marks all runs of the root.
    pub(super) fn mark_rivals(&mut self) {
        let mut marking = self.begin_marking();
        while self.mark_next(&mut marking).is_some() {}
        self.end_marking(&marking);
    }

    /// Shares the groups out. Until the marking ends, lookups look into all
    /// tables.
    pub(super) fn begin_marking(&mut self) -> Marking {
        let mut root: Vec<TableNumber> = self.chain(self.root).collect();
        if root.len() < 2 || !self.settings.has(Ingredient::Rivals) {
            root.clear();
        }
        let groups = std::iter::once(0).chain(0..Rivals::GROUPS);
        let groups = groups.chain(std::iter::repeat(Rivals::GROUPS - 1));
        for (&number, group) in root.iter().zip(groups) {
            let table = &mut self.tables[number.index()];
            table.group = Rivals::group(group);
            table.unmarked = 0;
            table.came = u64::MAX;
        }
        Marking {
            root,
            turn: 0,
            slot: 0,
        }
    }

    /// Marks the next slot; returns the number of rules in its run, `None` when
    /// all slots are marked.
    pub(super) fn mark_next(&mut self, marking: &mut Marking) -> Option<usize> {
        let number = *marking.root.get(marking.turn)?;
        let slot = marking.slot;
        // A table may have gone meanwhile, and another have its number.
        let table = self.tables.get(number);
        let table = table
            .filter(|table| (slot as usize) < table.slot_count() && table.group != Rivals::NONE);
        let Some(table) = table else {
            marking.turn += 1;
            marking.slot = 0;
            return Some(0);
        };
        marking.slot += 1;
        let held = table.get(slot);
        let Bucket::Run(run) = held.bucket() else {
            return Some(0);
        };
        let mut row = Vec::with_capacity(self.shape.columns());
        let mut rivals = Rivals::NONE;
        for rule in 0..usize::from(run.len) {
            row.clear();
            self.runs.push_row(run, rule, &mut row);
            rivals = self.with_rivals_of(&row, number, rivals);
        }
        let marked = held.with_rivals(rivals);
        self.tables[number.index()].set(slot, marked);
        Some(usize::from(run.len))
    }

    /// From now on, lookups pass over tables without rivals.
    pub(super) fn end_marking(&mut self, marking: &Marking) {
        for &number in &marking.root {
            if self.tables.get(number).is_none() {
                continue;
            }
            let table = &mut self.tables[number.index()];
            if table.group != Rivals::NONE {
                table.unmarked = table.came;
            }
        }
    }

    /// Those given, and the groups of tables that may hold rivals of a rule of
    /// the table `own`.
    fn with_rivals_of(&self, row: &[u64], own: TableNumber, mut rivals: Rivals) -> Rivals {
        for number in self.chain(self.root) {
            let table = &self.tables[number.index()];
            if table.best >= row[0] {
                break;
            }
            // A table without a group is always looked into.
            if number != own && table.group != Rivals::NONE && !rivals.has(table.group) {
                let mut left = COMPARED;
                if self.may_hold_rival(number, row, &mut left) {
                    rivals = rivals.or(table.group);
                }
            }
        }
        rivals
    }

    /// Whether a table may hold rivals of a rule; no more than `left` rules are
    /// compared.
    fn may_hold_rival(&self, number: TableNumber, row: &[u64], left: &mut usize) -> bool {
        let table = &self.tables[number.index()];
        let rule = self.outline(row);
        let key = std::array::from_fn(|word| rule.value[word] & rule.mask[word]);
        let open: [u64; W] = std::array::from_fn(|word| table.mask[word] & !rule.mask[word]);
        let count: u32 = open.iter().map(|word| word.count_ones()).sum();
        if table.slot_count() <= 1 << count.min(OPEN) {
            // A header of the rule may meet any slot.
            return table
                .slots()
                .any(|slot| self.bucket_may_hold_rival(slot.bucket(), row, left));
        }
        if count > OPEN {
            return true;
        }
        // What each open bit adds to the hash.
        let mut adds = [0u64; OPEN as usize];
        let mut next = adds.iter_mut();
        for (mut bits, secret) in open.into_iter().zip(self.secrets) {
            while bits != 0 {
                let bit = bits & bits.wrapping_neg();
                *next.next().expect("no more than are open") = bit.wrapping_mul(secret);
                bits ^= bit;
            }
        }
        let hash = table.hash(&key, &self.secrets);
        (0..1_usize << count).any(|choice| {
            let chosen = adds.iter().enumerate();
            let chosen = chosen.filter(|(bit, _)| choice >> bit & 1 != 0);
            let hash = chosen.fold(hash, |hash, (_, add)| hash.wrapping_add(*add));
            let slot = table.get(table.slot(hash));
            slot.may_hold(table.sign(hash)) && self.bucket_may_hold_rival(slot.bucket(), row, left)
        })
    }

    fn bucket_may_hold_rival(&self, bucket: Bucket, row: &[u64], left: &mut usize) -> bool {
        match bucket {
            Bucket::Empty => false,
            Bucket::Node(first) => self
                .chain(first)
                .take_while(|number| self.tables[number.index()].best < row[0])
                .any(|number| self.may_hold_rival(number, row, left)),
            Bucket::Run(run) => {
                let better = self.runs.ranks(run).partition_point(|&rank| rank < row[0]);
                if better > *left {
                    return true;
                }
                *left -= better;
                let words = self.runs.of(run);
                let len = usize::from(run.len);
                (0..better).any(|rule| self.shape.may_overlap(words, len, rule, row))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Settings;
    use super::*;
    use crate::classifier::NoProgress;
    use crate::rule::{ActionId, FieldMatch, Priority, RuleId, RuleRef};
    use crate::ruleset::RuleSet;
    use crate::schema::Schema;
    use crate::seed::splitmix;

    /// Prefixes of a few networks, ports now and then.
    fn rules(count: u32) -> RuleSet {
        let schema = Schema::ipv4_5tuple();
        let mut rules = RuleSet::new(&schema);
        let mut state = 11;
        let mut random = |below: u64| splitmix(&mut state) % below;
        for id in 0..count {
            let mut prefix = || match random(6) {
                0 => FieldMatch::Any,
                1 => FieldMatch::Prefix {
                    value: u128::from(random(8)) << 29,
                    length: 3,
                },
                _ => FieldMatch::Prefix {
                    value: u128::from(random(1 << 12)) << 16 & 0xffff_0000,
                    length: 16,
                },
            };
            let addresses = [prefix(), prefix()];
            let mut port = || match random(3) {
                0 => FieldMatch::Exact(u128::from(random(4))),
                1 => FieldMatch::Range { low: 1, high: 2 },
                _ => FieldMatch::Any,
            };
            let ports = [port(), port()];
            let fields = [
                addresses[0],
                addresses[1],
                ports[0],
                ports[1],
                FieldMatch::Any,
            ];
            let priority = Priority(u32::try_from(random(1000)).unwrap());
            let id = RuleId::new(id).unwrap();
            rules.add(id, priority, ActionId(0), &fields).unwrap();
        }
        rules
    }

    fn overlap(a: &RuleRef<'_>, b: &RuleRef<'_>) -> bool {
        a.schema().field_ids().all(|field| {
            let ((a_low, a_high), (b_low, b_high)) = (a.ends(field), b.ends(field));
            a_low <= b_high && b_low <= a_high
        })
    }

    /// The root's table that a rule is in, and its slot there.
    fn top(forest: &Forest<2>, id: RuleId) -> (TableNumber, u32) {
        let place = forest.places.get(id).unwrap();
        let (mut number, mut slot) = (place.table, place.slot);
        loop {
            let table = &forest.tables[number.index()];
            if table.parent == TableNumber::NONE {
                return (number, slot);
            }
            (number, slot) = (table.parent, table.parent_slot);
        }
    }

    #[test]
    fn every_rival_is_known_and_some_tables_need_no_look() {
        let rules = rules(1500);
        let settings = Settings {
            target: 2,
            most: 32,
            seed: 0,
            without: None,
        };
        let mut forest = Forest::<2>::new(rules.schema(), settings);
        forest.fill(rules.iter(), &mut NoProgress).unwrap();
        assert!(forest.chain(forest.root).count() > 2, "a set with rivals");
        let (mut rivals, mut free) = (0, 0);
        for rule in rules.iter() {
            let (number, slot) = top(&forest, rule.id());
            let held = forest.tables[number.index()].get(slot);
            let marked = held.rivals();
            free += u32::from(Rivals::GROUPS) - marked.bits().count_ones();
            for other in rules.iter() {
                let (its, _) = top(&forest, other.id());
                if its != number && other.winner().beats(rule.winner()) && overlap(&rule, &other) {
                    rivals += 1;
                    let group = forest.tables[its.index()].group;
                    assert!(marked.has(group), "{:?} beats {:?}", other.id(), rule.id());
                }
            }
        }
        assert!(rivals > 1000, "only {rivals} rivals");
        assert!(free > 500, "only {free} groups without rivals");
    }

    #[test]
    fn tables_remember_the_best_of_the_rules_that_came_later() {
        let all = rules(600);
        let mut forest = Forest::<2>::new(
            all.schema(),
            Settings {
                target: 2,
                most: 32,
                seed: 0,
                without: None,
            },
        );
        let half: Vec<RuleRef<'_>> = all.iter().take(300).collect();
        forest.fill(half.into_iter(), &mut NoProgress).unwrap();
        let marked = |forest: &Forest<2>, number: TableNumber| {
            forest.tables[number.index()].unmarked == u64::MAX
        };
        let root: Vec<TableNumber> = forest.chain(forest.root).collect();
        assert!(root.iter().all(|&number| marked(&forest, number)));
        for rule in all.iter().skip(300) {
            forest.insert(&rule);
            let (number, slot) = top(&forest, rule.id());
            let table = &forest.tables[number.index()];
            assert!(table.unmarked <= rule.winner().rank());
            assert_eq!(table.get(slot).rivals(), Rivals::ALL);
        }
    }
}
