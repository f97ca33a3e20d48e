//! SAX-PAC's measure of a rule set: the number of sets without overlaps that its
//! rules need.
//!
//! At most one rule of a set without overlaps matches a header, so the order of its
//! rules does not matter and finding any match is enough. [TM19] §IV.E compares
//! TupleMerge's number of tables with the number of such sets, counted in two ways.
//! Over all fields: a lower bound for any method that finds one rule in each set.
//! Over two fields: each set's rules must already differ in two fields, which can
//! be searched quickly.
//!
//! # Method
//! Sets are chosen greedily, as SAX-PAC does: in order of priority, a rule joins
//! the first set in which it overlaps no rule. For two fields, each next set tries
//! all pairs of fields and keeps the pair that covers most rules. Both numbers are
//! upper bounds; the minimum is hard to find.
//!
//! Each distinct match of a field has a bit vector with a bit per rule, set if that
//! rule's match of the field overlaps it. Two rules overlap if their bits are set
//! in all fields, so a rule is compared with 64 rules of a set at a time.
//!
//! [TM19]: classyard::papers#tm19

use std::collections::HashMap;

use classyard::{ActionId, FieldId, FieldMatch, Priority, Progress, Rule, RuleId, RuleSet, Schema};
use serde::{Deserialize, Serialize};

/// Larger rule sets are measured only on request: the work grows with the square of
/// the number of rules.
pub const MOST_RULES: usize = 4_000;

/// The maximum number of bytes of bit vectors.
const MOST_BYTES: usize = 1 << 29;

/// Rules between two reports of progress.
const REPORT_EVERY: usize = 64;

/// The numbers of sets, and their largest sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partitions {
    /// The number of sets whose rules do not overlap.
    pub over_all_fields: usize,
    /// The number of rules in the largest of these sets.
    pub largest_over_all_fields: usize,
    /// The number of sets whose rules do not overlap in two fields, chosen for each
    /// set.
    pub over_two_fields: usize,
    /// The number of rules in the largest of these sets.
    pub largest_over_two_fields: usize,
}

/// Counts the sets. Returns `None` if the bit vectors would take more than half a
/// gigabyte.
pub fn partitions(rules: &RuleSet, progress: &mut dyn Progress) -> Option<Partitions> {
    let overlaps = Overlaps::of(rules, progress)?;
    let over_all = overlaps.over_all_fields(progress);
    let two = overlaps.over_two_fields(progress);
    let largest = |sets: &[usize]| sets.iter().copied().max().unwrap_or(0);
    Some(Partitions {
        over_all_fields: over_all.len(),
        largest_over_all_fields: largest(&over_all),
        over_two_fields: two.len(),
        largest_over_two_fields: largest(&two),
    })
}

/// A bit for each rule, highest priority first.
type Bits = Vec<u64>;

/// The overlaps of rules in one field.
struct Column {
    /// For each rule, the index of its match among the distinct matches.
    of_rule: Vec<u32>,
    /// For each distinct match, the rules that overlap it.
    rows: Vec<Bits>,
}

impl Column {
    fn row(&self, rule: usize) -> &[u64] {
        &self.rows[self.of_rule[rule] as usize]
    }
}

/// The overlaps of rules by field. Leaves out fields that all rules overlap in.
struct Overlaps {
    rules: usize,
    columns: Vec<Column>,
}

impl Overlaps {
    fn of(rules: &RuleSet, progress: &mut dyn Progress) -> Option<Overlaps> {
        let order = rules.by_rank();
        let words = order.len().div_ceil(64);
        let mut columns = Vec::new();
        let mut bytes = 0;
        for field in rules.schema().field_ids() {
            let mut known: HashMap<FieldMatch, u32> = HashMap::new();
            let mut distinct: Vec<FieldMatch> = Vec::new();
            let of_rule: Vec<u32> = order
                .iter()
                .map(|&index| {
                    let demanded = rules.rule(index as usize).field(field);
                    *known.entry(demanded).or_insert_with(|| {
                        distinct.push(demanded);
                        u32::try_from(distinct.len() - 1).expect("at most one per rule")
                    })
                })
                .collect();
            bytes += distinct.len() * words * size_of::<u64>();
            if bytes > MOST_BYTES {
                return None;
            }
            let rows = overlapping(rules.schema(), field, &distinct, &of_rule, progress);
            let full = |row: &Bits| {
                let ones: u32 = row.iter().map(|word| word.count_ones()).sum();
                ones as usize == order.len()
            };
            if !rows.iter().all(full) {
                columns.push(Column { of_rule, rows });
            }
        }
        Some(Overlaps {
            rules: order.len(),
            columns,
        })
    }

    /// Returns the sizes of the sets chosen over all fields.
    fn over_all_fields(&self, progress: &mut dyn Progress) -> Vec<usize> {
        let words = self.rules.div_ceil(64);
        let mut sets: Vec<(Bits, usize)> = Vec::new();
        let mut conflicts = vec![0; words];
        for rule in 0..self.rules {
            if rule % REPORT_EVERY == 0 {
                let _ = progress.report("sets over all fields", rule, self.rules);
            }
            conflicts.fill(u64::MAX);
            for column in &self.columns {
                for (bits, row) in conflicts.iter_mut().zip(column.row(rule)) {
                    *bits &= row;
                }
            }
            let free = |(set, _): &&mut (Bits, usize)| !meet(set, &conflicts);
            match sets.iter_mut().find(free) {
                Some((set, size)) => {
                    set[rule / 64] |= 1 << (rule % 64);
                    *size += 1;
                }
                None => {
                    let mut set = vec![0; words];
                    set[rule / 64] |= 1 << (rule % 64);
                    sets.push((set, 1));
                }
            }
        }
        sets.into_iter().map(|(_, size)| size).collect()
    }

    /// Returns the sizes of the sets chosen over two fields each.
    fn over_two_fields(&self, progress: &mut dyn Progress) -> Vec<usize> {
        let mut unassigned: Vec<usize> = (0..self.rules).collect();
        let mut sets = Vec::new();
        while !unassigned.is_empty() {
            let done = self.rules - unassigned.len();
            let _ = progress.report("sets over two fields", done, self.rules);
            let chosen = self
                .pairs()
                .map(|pair| self.greedy(&unassigned, pair))
                .max_by_key(Vec::len)
                // If no field separates the rules, each rule is its own set.
                .unwrap_or_else(|| vec![unassigned[0]]);
            sets.push(chosen.len());
            let mut chosen = chosen.into_iter().peekable();
            unassigned.retain(|rule| chosen.next_if_eq(rule).is_none());
        }
        sets
    }

    /// Returns all pairs of fields, or a single field paired with itself.
    fn pairs(&self) -> impl Iterator<Item = [&Column; 2]> {
        let columns = &self.columns;
        let alone = columns.first().filter(|_| columns.len() == 1);
        let pairs = columns.iter().enumerate().flat_map(move |(index, one)| {
            let later_columns = columns[index + 1..].iter();
            later_columns.map(move |other| [one, other])
        });
        pairs.chain(alone.map(|one| [one, one]))
    }

    /// Returns the rules of `list`, in order, that overlap no earlier chosen rule.
    fn greedy(&self, list: &[usize], [one, other]: [&Column; 2]) -> Vec<usize> {
        let mut set = vec![0; self.rules.div_ceil(64)];
        let mut chosen = Vec::new();
        for &rule in list {
            let rows = one.row(rule).iter().zip(other.row(rule));
            let met = rows
                .zip(&set)
                .any(|((a, b), set): (_, &u64)| a & b & set != 0);
            if !met {
                set[rule / 64] |= 1 << (rule % 64);
                chosen.push(rule);
            }
        }
        chosen
    }
}

fn meet(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

/// Returns, for each distinct match of a field, the rules that overlap it.
fn overlapping(
    schema: &std::sync::Arc<Schema>,
    field: FieldId,
    distinct: &[FieldMatch],
    of_rule: &[u32],
    progress: &mut dyn Progress,
) -> Vec<Bits> {
    let words = of_rule.len().div_ceil(64);
    let mut members = vec![Vec::new(); distinct.len()];
    for (rule, &which) in of_rule.iter().enumerate() {
        members[which as usize].push(rule);
    }
    // Rules of one field each decide whether two matches overlap.
    let matches = distinct.iter().map(|&demanded| {
        let mut fields = vec![FieldMatch::Any; schema.fields().len()];
        fields[field.index()] = demanded;
        let rule = Rule::new(
            schema,
            RuleId::from_index(0),
            Priority(0),
            ActionId(0),
            &fields,
        );
        rule.expect("a rule had this match")
    });
    let matches: Vec<Rule> = matches.collect();
    let mut rows = vec![vec![0; words]; distinct.len()];
    for (a, one) in matches.iter().enumerate() {
        if a % REPORT_EVERY == 0 {
            let _ = progress.report("comparing fields", a, matches.len());
        }
        for (b, other) in matches.iter().enumerate().skip(a) {
            if !one.view().overlaps(&other.view()) {
                continue;
            }
            for (row, rules) in [(a, &members[b]), (b, &members[a])] {
                for &rule in rules {
                    rows[row][rule / 64] |= 1 << (rule % 64);
                }
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use classyard::{Field, MatchKind, NoProgress};
    use classyard_workload::generate::{Family, RandomRules, Recipe, generate};

    use super::*;

    fn rules(matches: &[[FieldMatch; 3]]) -> RuleSet {
        let fields = ["a", "b", "c"].map(|name| Field::new(name, 8, MatchKind::Range));
        let schema = Schema::new("three", fields.to_vec()).unwrap();
        let mut rules = RuleSet::new(&schema);
        for (index, fields) in matches.iter().enumerate() {
            let priority = Priority(u32::try_from(matches.len() - index).unwrap());
            let id = RuleId::from_index(index);
            let added = rules.add(id, priority, ActionId(0), fields);
            added.unwrap();
        }
        rules
    }

    #[test]
    fn two_fields_tell_fewer_rules_apart_than_three() {
        let (one, two) = (FieldMatch::Exact(1), FieldMatch::Exact(2));
        let any = FieldMatch::Any;
        // Any two rules differ in one field, and each pair in a different one.
        let apart = [[one, two, any], [any, one, two], [two, any, one]];
        let sets = partitions(&rules(&apart), &mut NoProgress).unwrap();
        assert_eq!((sets.over_all_fields, sets.over_two_fields), (1, 2));
        assert_eq!(sets.largest_over_all_fields, 3);
        // Equal rules, which no field separates.
        let equal = [[any, any, any]; 4];
        let sets = partitions(&rules(&equal), &mut NoProgress).unwrap();
        assert_eq!((sets.over_all_fields, sets.over_two_fields), (4, 4));
        let none = partitions(&rules(&[]), &mut NoProgress).unwrap();
        assert_eq!((none.over_all_fields, none.over_two_fields), (0, 0));
    }

    /// Returns the number of first-fit sets, from comparing pairs of rules without
    /// bits.
    fn plainly(rules: &RuleSet) -> usize {
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for index in rules.by_rank() {
            let rule = rules.rule(index as usize);
            let free = |set: &&mut Vec<usize>| {
                let overlaps = |&other: &usize| rules.rule(other).overlaps(&rule);
                !set.iter().any(overlaps)
            };
            match sets.iter_mut().find(free) {
                Some(set) => set.push(index as usize),
                None => sets.push(vec![index as usize]),
            }
        }
        sets.len()
    }

    #[test]
    fn sets_are_those_of_comparing_every_pair() {
        let kinds = [
            MatchKind::Exact,
            MatchKind::Prefix,
            MatchKind::Range,
            MatchKind::Ternary,
        ];
        let field = |(index, kind)| Field::new(&format!("field{index}"), 6, kind);
        let fields = kinds.into_iter().enumerate().map(field).collect();
        let schema = Schema::new("kinds", fields).unwrap();
        for seed in 0..20 {
            let family = Family::Schema(std::sync::Arc::clone(&schema), RandomRules::default());
            let mut recipe = Recipe::new(family, 150, seed);
            recipe.accept_fewer = true;
            let policy = generate(&recipe, &mut NoProgress).unwrap();
            let rules = &policy.parts()[0];
            let sets = partitions(rules, &mut NoProgress).unwrap();
            assert_eq!(sets.over_all_fields, plainly(rules), "seed {seed}");
            assert!(sets.over_two_fields >= 1);
        }
    }
}
