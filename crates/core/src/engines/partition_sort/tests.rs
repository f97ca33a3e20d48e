//! Tests of properties that the shared tests cannot see: trees are sorted and shallow,
//! nodes are consistent with their rules after any updates, rules that cannot be sorted
//! go to the tuple space, and comparisons depend on the right bits of a key.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::dimension::Dimension;
use super::node::FANOUT;
use super::*;
use crate::contract::classifier::NoProgress;
use crate::model::key::KeyVec;
use crate::model::rule::{FieldMatch, Priority};
use crate::model::schema::{Field, MatchKind};
use crate::model::seed::splitmix;

const ANY: FieldMatch = FieldMatch::Any;

fn range(low: u128, high: u128) -> FieldMatch {
    FieldMatch::Range { low, high }
}

fn schema(fields: &[(u32, MatchKind)]) -> Arc<Schema> {
    let fields = fields.iter().enumerate();
    let fields =
        fields.map(|(number, &(width, kind))| Field::new(&format!("f{number}"), width, kind));
    Schema::new("small", fields.collect()).unwrap()
}

/// Two range fields of 16 bits: one word.
fn two_ranges() -> Arc<Schema> {
    schema(&[(16, MatchKind::Range), (16, MatchKind::Range)])
}

/// Fields of all kinds, two of them wide. Few values, so that rules often overlap.
fn all_kinds() -> Arc<Schema> {
    schema(&[
        (8, MatchKind::Range),
        (100, MatchKind::Prefix),
        (8, MatchKind::Ternary),
        (70, MatchKind::Range),
        (3, MatchKind::Exact),
    ])
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        splitmix(&mut self.0) % bound
    }

    /// Returns a match for a field, from a few.
    fn pick(&mut self, field: &Field) -> FieldMatch {
        let (width, most) = (field.width(), field.max_value());
        let value = match self.below(3) {
            0 => u128::from(self.below(8)),
            1 => u128::from(self.below(8)) << (width - 3),
            _ => most - u128::from(self.below(4)),
        };
        match (field.kind(), self.below(4)) {
            (_, 0) => ANY,
            (MatchKind::Exact, _) | (_, 1) => FieldMatch::Exact(value & most),
            (MatchKind::Prefix, _) => FieldMatch::Prefix {
                value,
                length: [1, 3, width - 1][usize::try_from(self.below(3)).unwrap()],
            },
            (MatchKind::Range, _) => {
                let length =
                    u128::from(self.below(8)) << [0, width - 4][usize::from(self.below(2) == 1)];
                range(value, value.saturating_add(length).min(most))
            }
            (MatchKind::Ternary, _) => FieldMatch::Ternary {
                value,
                mask: 0b1010_0101 & most,
            },
        }
    }

    fn rule(&mut self, schema: &Arc<Schema>, number: u32) -> Rule {
        let fields = schema.fields().iter();
        let matches: Vec<FieldMatch> = fields.map(|field| self.pick(field)).collect();
        let priority = Priority(u32::try_from(self.below(50)).unwrap());
        rule(schema, number, priority, &matches)
    }
}

fn rule(schema: &Arc<Schema>, number: u32, priority: Priority, matches: &[FieldMatch]) -> Rule {
    let id = RuleId::new(number).unwrap();
    Rule::new(schema, id, priority, ActionId(number), matches).unwrap()
}

fn rule_set(schema: &Arc<Schema>, matches: impl IntoIterator<Item = Vec<FieldMatch>>) -> RuleSet {
    let mut rules = RuleSet::new(schema);
    for (number, matches) in (0..).zip(matches) {
        let rule = rule(schema, number, Priority(1_000_000 - number), &matches);
        rules.push(rule.view()).unwrap();
    }
    rules
}

fn empty<const W: usize>(schema: &Arc<Schema>, leaf: usize, most: usize) -> PartitionSort<W> {
    PartitionSort::new(schema, leaf, most, Seed::new(1))
}

fn built<const W: usize>(rules: &RuleSet, leaf: usize, most: usize) -> PartitionSort<W> {
    let mut engine = empty(rules.schema(), leaf, most);
    unwatched(|monitor| engine.place_all(rules, monitor));
    engine
}

/// The contents of a subtree.
#[derive(Default)]
struct Found {
    rules: BTreeSet<RuleId>,
    nodes: usize,
    /// Nodes on the longest path.
    depth: usize,
    best: Option<u64>,
}

impl<const W: usize> Trees<W> {
    /// Panics unless a subtree is consistent: entries are ascending and disjoint, the
    /// rules below an entry are equal in its dimension, and nodes are consistent with
    /// rules.
    fn examine(&self, to: To) -> Found {
        let mut found = Found::default();
        if !to.is_node() {
            let ranks: Vec<u64> = self.list(to.first()).map(|rule| self.rank(rule)).collect();
            assert!(
                (1..=self.leaf).contains(&ranks.len()),
                "{} rules",
                ranks.len()
            );
            assert!(ranks.is_sorted(), "the best comes first");
            found.best = ranks.first().copied();
            let ids = self.list(to.first()).map(|rule| self.arena.get(rule).id());
            found.rules = ids.collect();
            assert_eq!(found.rules.len(), ranks.len());
            return found;
        }
        let node = self.nodes.get(to.as_node());
        let dimension = self.dimensions[usize::from(node.dimension)];
        assert!((2..=FANOUT).contains(&node.len()), "{} entries", node.len());
        assert_eq!((node.word, node.up), (dimension.word, dimension.up));
        assert_eq!(node.next[0], To::NOTHING);
        assert!(node.lows[node.len()..].iter().all(|&low| low == u64::MAX));
        assert!(
            node.next[node.len()..]
                .iter()
                .all(|&next| next == node.next[node.len()])
        );
        let mut end: Option<u64> = None;
        for (&low, &child) in node.lows().iter().zip(node.children()) {
            let below = self.examine(child);
            let is_same =
                child.is_node() && self.nodes.get(child.as_node()).dimension == node.dimension;
            let ends = |id: &RuleId| {
                let entries = 0..self.arena.records();
                let mut all = entries.filter_map(|position| self.arena.record(position));
                let rule = all.find(|&rule| self.arena.get(rule).id() == *id).unwrap();
                dimension.ends(&self.packed(rule))
            };
            let all: BTreeSet<(u64, u64)> = below.rules.iter().map(ends).collect();
            assert!(is_same || all.len() == 1, "rules below an entry agree");
            let (first, last) = (all.first().unwrap(), all.last().unwrap());
            assert_eq!(first.0, low);
            assert!(end.is_none_or(|end| end < low), "entries are apart");
            end = Some(last.1);
            found.nodes += below.nodes;
            found.depth = found.depth.max(below.depth);
            found.best = found.best.into_iter().chain(below.best).min();
            found.rules.extend(below.rules);
        }
        found.nodes += 1;
        found.depth += 1;
        assert_eq!(Some(node.best), found.best);
        assert!(found.rules.contains(&self.arena.get(node.rule).id()));
        found
    }
}

impl<const W: usize> PartitionSort<W> {
    /// Panics unless the engine is consistent. Returns the depths of the trees.
    fn examine(&self) -> Vec<usize> {
        assert!(self.order.is_sorted_by_key(|partition| partition.best));
        assert!(self.order.len() <= self.most);
        let (mut rules, mut nodes, mut depths) = (BTreeSet::new(), 0, Vec::new());
        for partition in &self.order {
            let found = self.trees.examine(partition.root);
            assert_eq!(found.best, Some(partition.best));
            assert_eq!(found.rules.len(), partition.rules);
            for id in &found.rules {
                let entry = self.trees.arena.get(self.ids.get(*id).unwrap());
                assert_eq!((entry.id(), entry.table), (*id, partition.number));
            }
            nodes += found.nodes;
            rules.extend(found.rules);
            depths.push(found.depth);
        }
        assert_eq!(self.trees.nodes.len(), nodes);
        assert_eq!(self.trees.arena.len(), rules.len());
        assert_eq!(self.ids.len(), rules.len());
        depths
    }

    /// Panics unless every kind of lookup agrees with a scan.
    fn agrees(&self, rules: &RuleSet, dice: &mut Dice) {
        let schema = rules.schema();
        let mut keys = KeyVec::new(schema);
        for _ in 0..200 {
            let values = schema.fields().iter().map(|field| match dice.pick(field) {
                FieldMatch::Exact(value) => value,
                FieldMatch::Prefix { value, .. } | FieldMatch::Ternary { value, .. } => value,
                FieldMatch::Range { high, .. } => high,
                ANY => u128::from(dice.below(300)) & field.max_value(),
            });
            keys.push(&values.collect::<Vec<_>>()).unwrap();
        }
        let keys: Vec<[u64; W]> = keys
            .as_slice()
            .iter()
            .map(|key| key.try_into().unwrap())
            .collect();
        let right: Vec<Winner> = keys.iter().map(|key| rules.scan(key)).collect();
        let mut winners = vec![Winner::MISS; keys.len()];
        self.improve_batch(&keys, &mut winners, &mut Buffers::default());
        assert_eq!(winners, right);
        for (key, right) in keys.iter().zip(right) {
            assert_eq!(self.improve(key, Winner::MISS), right);
            let mut mask = [0; W];
            assert_eq!(self.improve_masked(key, Winner::MISS, &mut mask), right);
            assert_eq!(self.trace(key).winner, right);
            // Bits outside the mask must not change the outcome.
            for _ in 0..4 {
                let mut other = *key;
                for (word, mask) in other.iter_mut().zip(mask) {
                    *word ^= splitmix(&mut dice.0) & splitmix(&mut dice.0) & !mask;
                }
                assert_eq!(self.improve(&other, Winner::MISS), right);
            }
        }
    }
}

/// Random updates of an empty and of a built engine, at both ends of each option.
#[test]
fn trees_stay_as_they_must_be() {
    let mut dice = Dice(5);
    for (leaf, most) in [(1, 1), (1, 64), (2, 3), (8, 64), (64, 256)] {
        let schema = all_kinds();
        let mut rules = RuleSet::new(&schema);
        let mut held: Vec<Rule> = (0..150).map(|number| dice.rule(&schema, number)).collect();
        held.iter()
            .for_each(|rule| rules.push(rule.view()).unwrap());
        let mut engine = built::<5>(&rules, leaf, most);
        let mut next = 150;
        for round in 0..30 {
            engine.examine();
            engine.agrees(&rules, &mut dice);
            // The engine grows, shrinks, empties and grows again.
            let grows = [true, false, true, false, false, true][round / 5];
            for _ in 0..40 {
                if !held.is_empty() && dice.below(4) == u64::from(grows) * 3 || held.len() > 400 {
                    let gone =
                        held.swap_remove(usize::try_from(dice.below(held.len() as u64)).unwrap());
                    assert!(Updates::remove(&mut engine, gone.view().id()));
                    assert!(!Updates::remove(&mut engine, gone.view().id()));
                } else if grows {
                    let rule = dice.rule(&schema, next);
                    next += 1;
                    assert!(Updates::insert(&mut engine, &rule.view()));
                    assert!(!Updates::insert(&mut engine, &rule.view()));
                    held.push(rule);
                } else if let Some(gone) = held.pop() {
                    assert!(Updates::remove(&mut engine, gone.view().id()));
                }
            }
            rules = RuleSet::new(&schema);
            held.iter()
                .for_each(|rule| rules.push(rule.view()).unwrap());
        }
        engine.rebuild(&mut NoProgress).unwrap();
        engine.examine();
        engine.agrees(&rules, &mut dice);
    }
}

/// Rules that are sortable by the paper's definition are one partition, whichever order
/// of fields sorts them.
#[test]
fn sortable_rules_are_one_partition() {
    let schema = two_ranges();
    // Disjoint in the second field, or equal there and disjoint in the first.
    let sortable = (0..200).map(|number| {
        let (first, second) = (number % 10, number / 10);
        let wide = u128::from(second % 2 == 0) * 3;
        vec![
            range(first * 100 + wide, first * 100 + 90 + wide),
            range(second * 50, second * 50 + 49),
        ]
    });
    let rules = rule_set(&schema, sortable);
    for leaf in [1, 2, 8] {
        let engine = built::<2>(&rules, leaf, 64);
        let depths = engine.examine();
        // Twenty intervals of one field and ten of the other, eight a node.
        assert!(depths.len() == 1 && depths[0] <= 4, "{depths:?}");
        // Inserted one by one in a bad order: few partitions.
        let mut engine = empty::<2>(&schema, leaf, 64);
        for rule in rules.iter() {
            assert!(Updates::insert(&mut engine, &rule));
        }
        assert!(engine.examine().len() <= 3);
    }
}

/// Nested intervals: no two can be sorted. Lists take `leaf` of them in each
/// partition, and the tuple space takes the rest.
#[test]
fn what_cannot_be_sorted_goes_to_lists_and_to_the_rest() {
    let schema = two_ranges();
    let nested = (0..300).map(|number| vec![range(number, 60_000 - number), ANY]);
    let rules = rule_set(&schema, nested);
    let mut dice = Dice(1);
    for (leaf, most) in [(1, 1), (4, 10), (8, 64)] {
        let mut by_rule = empty::<2>(&schema, leaf, most);
        for rule in rules.iter() {
            assert!(Updates::insert(&mut by_rule, &rule));
        }
        for engine in [built::<2>(&rules, leaf, most), by_rule] {
            assert_eq!(
                engine.examine(),
                vec![0; most.min(300_usize.div_ceil(leaf))]
            );
            assert_eq!(engine.rest.rules(), 300_usize.saturating_sub(leaf * most));
            engine.agrees(&rules, &mut dice);
        }
    }
}

/// Equal matches of many priorities share lists, and the best of them wins.
#[test]
fn equal_matches_are_found_best_first() {
    let schema = two_ranges();
    let equal = (0..100).map(|_| vec![range(5, 9), FieldMatch::Exact(3)]);
    let rules = rule_set(&schema, equal);
    let mut engine = built::<2>(&rules, 8, 4);
    let mut remaining = rules.clone();
    for _ in 0..100 {
        engine.examine();
        let mut keys = KeyVec::new(&schema);
        keys.push(&[7, 3]).unwrap();
        let key: [u64; 2] = keys.key(0).try_into().unwrap();
        let winner = engine.improve(&key, Winner::MISS);
        assert_eq!(winner, remaining.scan(&key));
        let gone = winner.rule().unwrap();
        assert!(Updates::remove(&mut engine, gone));
        let mut kept = RuleSet::new(&schema);
        let others = remaining.iter().filter(|rule| rule.id() != gone);
        others.for_each(|rule| kept.push(rule).unwrap());
        remaining = kept;
    }
    assert_eq!((engine.order.len(), Algorithm::<2>::rules(&engine)), (0, 0));
}

/// The depth is as in a B-tree, whatever the order of insertions and removals.
#[test]
fn trees_are_shallow() {
    let schema = schema(&[(32, MatchKind::Exact)]);
    for order in 0..3_u64 {
        let mut engine = empty::<2>(&schema, 1, 4);
        let number = |place: u32| match order {
            0 => place,
            1 => 3000 - place,
            _ => place.wrapping_mul(0x9e37_79b1),
        };
        for place in 0..3000 {
            let matches = [FieldMatch::Exact(u128::from(number(place)))];
            let rule = rule(&schema, place, Priority(1), &matches);
            assert!(Updates::insert(&mut engine, &rule.view()));
        }
        let depths = engine.order.iter().map(|partition| {
            let mut depth = 0;
            let mut to = partition.root;
            while to.is_node() {
                depth += 1;
                to = engine.trees.nodes.get(to.as_node()).next[1];
            }
            depth
        });
        // Nodes are at least half full: 4^6 > 3000.
        assert!(depths.clone().count() == 1 && depths.clone().all(|depth| depth <= 6));
        for place in (0..3000).filter(|place| place % 16 > 0) {
            assert!(Updates::remove(&mut engine, RuleId::new(place).unwrap()));
        }
        assert!(engine.examine()[0] <= 6);
        let fresh = 188 * size_of::<node::Node>();
        assert!(engine.trees.nodes.bytes() <= 3 * fresh);
    }
}

struct Stop;

impl Progress for Stop {
    fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// The first rules may choose a bad field. A rebuild finds the right field and moves
/// rules out of the tuple space. A cancelled rebuild changes nothing.
#[test]
fn rebuilding_finds_a_better_field() {
    let schema = two_ranges();
    let wrong = (0..3).map(|number| vec![FieldMatch::Exact(number), FieldMatch::Exact(number)]);
    let others = (0..400).map(|number| vec![range(0, 9), FieldMatch::Exact(number)]);
    let rules = rule_set(&schema, wrong.chain(others));
    let mut engine = empty::<2>(&schema, 2, 1);
    for rule in rules.iter() {
        assert!(Updates::insert(&mut engine, &rule));
    }
    assert_eq!(engine.rest.rules(), 400);
    assert!(engine.rebuild(&mut Stop).is_err());
    assert_eq!(engine.rest.rules(), 400);
    engine.rebuild(&mut NoProgress).unwrap();
    engine.examine();
    assert_eq!(engine.rest.rules(), 0);
    engine.agrees(&rules, &mut Dice(2));
}

/// Bits outside a comparison's bits do not change a key's target, and no fewer bits are
/// enough.
#[test]
fn bits_of_comparisons_are_enough_and_few() {
    let schema = schema(&[(6, MatchKind::Range), (3, MatchKind::Exact)]);
    let dimension = Dimension::all(&schema)[0];
    let placement = schema.placement(schema.field_ids().next().unwrap());
    let key = |value: u64| {
        let mut key = [0b101_u64 << 61 | 0b101];
        placement.set(&mut key, u128::from(value));
        key
    };
    for low in 0..64_u64 {
        for end in (low + 1..64).map(Some).chain([None]) {
            for value in low..end.unwrap_or(64) {
                let mut wanted = [0];
                dimension.want(
                    &key(value),
                    low << 58,
                    end.map(|end| end << 58),
                    &mut wanted,
                );
                let bits = u64::try_from(placement.get(&wanted)).unwrap();
                assert_eq!(
                    key(bits)[0] & wanted[0],
                    wanted[0],
                    "bits of the field alone"
                );
                let inside = |bits: u64| {
                    let (least, most) = (value & bits, value | (!bits & 63));
                    low <= least && end.is_none_or(|end| most < end)
                };
                assert!(inside(bits), "{value} of {low}..{end:?}: {bits:b}");
                let fewer = (bits << 1) & 63;
                assert!(
                    bits == 0 || !inside(fewer),
                    "{value} of {low}..{end:?}: {bits:b}"
                );
            }
        }
    }
}

/// Intervals contain all values that a rule matches, in every dimension.
#[test]
fn intervals_hold_their_rules() {
    let schema = all_kinds();
    let dimensions = Dimension::all(&schema);
    assert_eq!(dimensions.len(), 7, "two fields are wide");
    let mut dice = Dice(9);
    for number in 0..3000 {
        let rule = dice.rule(&schema, number);
        let packed = rule.view().into();
        let mut keys = KeyVec::new(&schema);
        let fields = schema.field_ids().map(|id| {
            let (low, high) = rule.view().ends(id);
            [low, high][usize::from(dice.below(2) == 1)]
        });
        keys.push(&fields.collect::<Vec<_>>()).unwrap();
        for dimension in &dimensions {
            let (low, high) = dimension.ends(&packed);
            let value = (keys.key(0)[usize::from(dimension.word)] << dimension.up) & dimension.bits;
            assert!(low <= value && value <= high, "{value} in {low}..={high}");
            assert_eq!((low & !dimension.bits, high & !dimension.bits), (0, 0));
        }
    }
}
