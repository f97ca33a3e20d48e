//! Tests beyond the shared tests: the structure of trees after any changes, the rules
//! that share a tree, bounds, and smallest and largest values of options.

use std::sync::Arc;

use super::node::{MAX_CUT_BITS, Node};
use super::rows::room_for;
use super::*;
use crate::budget::monitor::unwatched;
use crate::contract::adapter::opened::DynamicAdapter;
use crate::contract::classifier::{Classifier, Limits, MetricValue, NoProgress, Scratch};
use crate::model::key::KeyVec;
use crate::model::rule::{FieldMatch, Rule};
use crate::model::ruleset::RuleSet;
use crate::model::schema::{Field, FieldId, MatchKind};
use crate::model::seed::splitmix;

const ANY: FieldMatch = FieldMatch::Any;

fn range(low: u128, high: u128) -> FieldMatch {
    FieldMatch::Range { low, high }
}

fn schema(widths: &[u32]) -> Arc<Schema> {
    let fields = widths.iter().enumerate();
    let fields =
        fields.map(|(number, &width)| Field::new(&format!("f{number}"), width, MatchKind::Range));
    Schema::new("ranges", fields.collect()).unwrap()
}

/// Rules with falling priorities.
fn rules(schema: &Arc<Schema>, matches: impl IntoIterator<Item = Vec<FieldMatch>>) -> RuleSet {
    let mut rules = RuleSet::new(schema);
    for (number, matches) in matches.into_iter().enumerate() {
        let priority = Priority(1_000_000 - u32::try_from(number).unwrap());
        let id = RuleId::from_index(number);
        rules.add(id, priority, ActionId(0), &matches).unwrap();
    }
    rules
}

fn build(text: &str, rules: &RuleSet) -> Box<dyn Classifier> {
    let spec = EngineSpec::parse(text).unwrap();
    spec.build(rules, &Limits::default(), &mut NoProgress)
        .unwrap()
}

/// The engine without its adapter.
fn open<const W: usize>(text: &str, rules: &RuleSet) -> CutSplit<W> {
    let spec = EngineSpec::parse(text).unwrap();
    let mut memory = Memory::unlimited();
    let mut request = BuildRequest {
        spec: &spec,
        rules,
        limits: &Limits::default(),
        progress: &mut NoProgress,
        memory: &mut memory,
    };
    CutSplit::build(&mut request).unwrap()
}

fn closed<const W: usize>(engine: CutSplit<W>) -> Box<dyn Classifier> {
    let schema = Arc::clone(engine.schema());
    let limits = Limits::default();
    Box::new(DynamicAdapter::<W, _>::new(
        engine,
        ENGINE.name,
        &schema,
        &limits,
    ))
}

fn count(classifier: &dyn Classifier, metric: &str) -> usize {
    match classifier.stats().metric(metric) {
        Some(MetricValue::Count(count)) => count,
        other => panic!("{metric}: {other:?}"),
    }
}

/// Keys at the ends of rules and next to them.
fn keys(rules: &RuleSet, step: usize) -> KeyVec {
    let mut keys = KeyVec::new(rules.schema());
    let ids: Vec<FieldId> = rules.schema().field_ids().collect();
    for (number, rule) in rules.iter().enumerate().step_by(step) {
        for step in 0..4 {
            let values = ids.iter().enumerate().map(|(field, &id)| {
                let (low, high) = rule.ends(id);
                let most = rules.schema().field(id).max_value();
                match (step + number * field) % 4 {
                    0 => low,
                    1 => high,
                    2 => low.saturating_sub(1),
                    _ => high.saturating_add(1).min(most),
                }
            });
            keys.push(&values.collect::<Vec<u128>>()).unwrap();
        }
    }
    keys
}

/// Every kind of lookup returns the same as a scan of the rules. The outcome does not
/// change with bits outside of the mask.
fn check(built: &dyn Classifier, keys: &KeyVec, left: &RuleSet) {
    let scratch = &mut Scratch::new();
    for length in [1, GROUP_KEYS - 1, GROUP_KEYS, 2 * GROUP_KEYS + 3] {
        for batch in keys.batches(length) {
            let mut winners = vec![Winner::MISS; batch.len()];
            built.classify_batch(batch, &mut winners, scratch);
            for (key, winner) in batch.iter().zip(winners) {
                assert_eq!(winner, left.scan(key));
            }
        }
    }
    let mut state = 1;
    for key in keys.as_slice().iter() {
        let expected = left.scan(key);
        let mut mask = vec![0; key.len()];
        let masked = built.classify_masked(key, &mut mask);
        assert_eq!(masked, expected);
        check_trace(&built.trace(key), built.stats().tables, expected);
        assert_eq!(built.classify_one(key), expected);
        for _ in 0..4 {
            let other = key.iter().zip(&mask);
            let other = other.map(|(word, mask)| word ^ (splitmix(&mut state) & !mask));
            let other: Vec<u64> = other.collect();
            assert_eq!(left.scan(&other), expected, "{key:x?} {mask:x?} {other:x?}");
        }
    }
}

/// A trace has a probe for each node on the way, then one for the leaf with its rules.
/// Trees that are not searched are counted.
fn check_trace(trace: &LookupTrace, trees: usize, expected: Winner) {
    assert_eq!(trace.winner, expected);
    let mut searched: Vec<usize> = trace.probes.iter().map(|probe| probe.table).collect();
    searched.dedup();
    assert!(searched.len() <= trees, "{searched:?} of {trees}");
    assert_eq!(trace.tables, trace.probes.len() + trees - searched.len());
    for of_tree in trace.probes.chunk_by(|a, b| a.table == b.table) {
        let (leaf, nodes) = of_tree.split_last().expect("a chunk has a probe");
        for node in nodes {
            assert!(node.rules == 0 && node.compared.is_empty());
            assert!(
                node.mask
                    .iter()
                    .zip(&leaf.mask)
                    .all(|(of, all)| of & !all == 0)
            );
        }
    }
}

/// Counts below a node.
#[derive(Default)]
struct Below {
    nodes: usize,
    places: usize,
    rows: usize,
    ranks: Vec<u64>,
}

fn walk<const W: usize>(trees: &Trees<W>, at: u32, depth: usize, below: &mut Below) {
    assert!(depth <= grow::MAX_DEPTH);
    let node: &Node = trees.nodes.node(at);
    if node.is_leaf() {
        assert_eq!(node.child(), at, "a leaf sends keys to itself");
        let ranks = trees.rows.rows(node.rows()).map(|row| row[0]);
        let ranks: Vec<u64> = ranks.collect();
        assert!(ranks.is_sorted_by(|a, b| a < b), "best first, each once");
        below.places += ranks.len();
        below.rows += room_for(ranks.len());
        below.ranks.extend(ranks);
        return;
    }
    let before = below.places;
    for child in 0..1 << node.fan_bits() {
        walk(trees, node.child() + child, depth + 1, below);
    }
    below.nodes += 1 << node.fan_bits();
    if !node.is_split() {
        assert!(node.bits() <= MAX_CUT_BITS);
        assert_eq!(node.value(), (below.places - before) as u64);
    }
}

/// Checks everything that trees record about themselves.
fn inspect<const W: usize>(engine: &CutSplit<W>) {
    let trees = &engine.trees;
    let (mut nodes, mut rows) = (2, 0);
    let mut known = vec![Vec::new(); trees.trees.len()];
    for (id, rule) in engine.ids.iter() {
        if rule.side == engine.side {
            known[usize::from(rule.tree)].push(CutSplit::rank(id, &rule));
        }
        assert_eq!(engine.row(id, &rule)[0], CutSplit::rank(id, &rule));
    }
    for (tree, known) in trees.trees.iter().zip(&mut known) {
        let mut below = Below::default();
        walk(trees, tree.root, 0, &mut below);
        assert_eq!((tree.rules, tree.places), (known.len(), below.places));
        below.ranks.sort_unstable();
        below.ranks.dedup();
        known.sort_unstable();
        assert_eq!(&below.ranks, known);
        let best = known.first().copied().unwrap_or(u64::MAX);
        assert!(tree.best <= best && (tree.lost > 0 || tree.best == best));
        nodes += 2 + below.nodes;
        rows += below.rows;
    }
    assert_eq!(trees.nodes.used(), nodes);
    assert_eq!(trees.rows.used(), rows);
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(splitmix(&mut self.0) % bound as u64).unwrap()
    }

    fn bits(&mut self) -> u128 {
        u128::from(splitmix(&mut self.0)) << 64 | u128::from(splitmix(&mut self.0))
    }

    /// Any match of a field, of few lengths and values, so that many overlap.
    fn field(&mut self, field: &Field) -> FieldMatch {
        let (width, most) = (field.width(), field.max_value());
        let clustered = match self.below(3) {
            0 => self.bits() & most,
            _ => (self.bits() & most) >> (width / 2) | most >> 3,
        };
        match self.below(6) {
            0 => ANY,
            1 => FieldMatch::Exact(clustered),
            2 if field.kind() != MatchKind::Exact => FieldMatch::Ternary {
                value: clustered,
                mask: self.bits() & most,
            },
            3 if field.kind() == MatchKind::Range => {
                let other = self.bits() & most;
                range(clustered.min(other), clustered.max(other))
            }
            _ if field.kind() == MatchKind::Exact => FieldMatch::Exact(clustered),
            _ => FieldMatch::Prefix {
                value: clustered,
                length: u32::try_from(self.below(width as usize + 1)).unwrap(),
            },
        }
    }

    fn rule(&mut self, schema: &Arc<Schema>, number: usize) -> Rule {
        let matches: Vec<FieldMatch> = schema
            .fields()
            .iter()
            .map(|field| self.field(field))
            .collect();
        let priority = Priority(u32::try_from(self.below(50)).unwrap());
        let action = ActionId(u32::try_from(self.below(1000)).unwrap());
        Rule::new(
            schema,
            RuleId::from_index(number),
            priority,
            action,
            &matches,
        )
        .unwrap()
    }
}

/// Rules are inserted, removed and changed; trees are rebuilt; a plan is installed
/// during these changes.
fn churn<const W: usize>(text: &str, schema: &Arc<Schema>, ids: usize, changes: usize) {
    let mut dice = Dice(ids as u64 + W as u64);
    let mut held: Vec<Option<Rule>> = vec![None; ids];
    let mut set = RuleSet::new(schema);
    for number in (0..ids).step_by(3) {
        let rule = dice.rule(schema, number);
        set.push(rule.view()).unwrap();
        held[number] = Some(rule);
    }
    let mut engine: CutSplit<W> = open(text, &set);
    inspect(&engine);
    let mut share = 50;
    for step in 0..changes {
        if step % (changes / 8).max(1) == 0 {
            share = [80, 20, 50, 95, 5][dice.below(5)];
            match dice.below(4) {
                0 => engine.rebuild(&mut NoProgress).unwrap(),
                1 => {
                    let plan = Reoptimise::snapshot(&engine).compute(&mut NoProgress);
                    assert!(engine.install(&plan.unwrap().unwrap()));
                }
                _ => {}
            }
        }
        let number = dice.below(ids);
        let id = RuleId::from_index(number);
        assert_eq!(engine.remove(id), held[number].is_some());
        held[number] = (dice.below(100) < share).then(|| dice.rule(schema, number));
        if let Some(rule) = &held[number] {
            assert!(engine.insert(&rule.view()) && !engine.insert(&rule.view()));
            assert_eq!(engine.action(id), Some(rule.view().action()));
            let mut words = Vec::new();
            assert_eq!(
                engine.copy_rule(id, &mut words),
                Some(rule.view().priority())
            );
            assert_eq!(words, rule.view().words());
        }
        engine.settle(1);
        if step % (changes / 40).max(1) == 0 {
            inspect(&engine);
            let mut left = RuleSet::new(schema);
            left.extend(held.iter().flatten().cloned());
            for key in keys(&left, 1 + ids / 100).as_slice().iter() {
                let row = key.try_into().unwrap();
                assert_eq!(engine.improve(row, Winner::MISS), left.scan(key), "{text}");
            }
        }
    }
    while engine.step(8) {}
    inspect(&engine);
    let mut left = RuleSet::new(schema);
    left.extend(held.iter().flatten().cloned());
    let keys = keys(&left, 1 + ids / 60);
    let mut engine = closed(engine);
    check(engine.as_ref(), &keys, &left);
    let dynamic = engine.as_dynamic().unwrap();
    for rule in left.iter() {
        let mut change = crate::model::transaction::Transaction::new();
        dynamic.apply(change.remove(rule.id())).unwrap();
    }
    assert_eq!(
        (count(engine.as_ref(), "places"), engine.stats().tables),
        (0, 0)
    );
    assert!(
        engine.stats().bytes() < 8 << 10,
        "{}",
        engine.stats().bytes()
    );
}

const SPECS: [&str; 9] = [
    "cut-split",
    "cut-split:binth=1",
    "cut-split:binth=65536",
    "cut-split:fields=0",
    "cut-split:fields=1:change=1",
    "cut-split:fields=4:binth=2:change=4",
    "cut-split:places=1",
    "cut-split:spread=1:binth=3",
    "cut-split:spread=65536:places=65536:binth=1:change=2",
];

#[test]
fn any_changes_leave_trees_that_are_right() {
    for text in SPECS {
        churn::<2>(text, &Schema::ipv4_5tuple(), 300, 1000);
    }
    churn::<2>("cut-split", &Schema::ipv4_5tuple(), 4000, 5000);
}

#[test]
fn fields_of_any_width_and_kind_are_served() {
    for text in ["cut-split", "cut-split:fields=4:binth=2:change=2"] {
        churn::<5>(text, &Schema::ipv6_5tuple(), 300, 1000);
        churn::<2>(text, &schema(&[1, 2, 3]), 40, 400);
        churn::<2>(text, &schema(&[65, 1]), 300, 1000);
        churn::<5>(text, &schema(&[128, 100]), 300, 1000);
        let kinds = [MatchKind::Exact, MatchKind::Ternary, MatchKind::Prefix];
        let fields = kinds.into_iter().zip([20, 70, 48]).enumerate();
        let fields =
            fields.map(|(number, (kind, width))| Field::new(&format!("f{number}"), width, kind));
        let mixed = Schema::new("mixed", fields.collect()).unwrap();
        assert_eq!(mixed.key_words(), 5);
        churn::<5>(text, &mixed, 300, 1000);
    }
    let bits: Vec<u32> = vec![1; 64];
    churn::<2>("cut-split", &schema(&bits), 100, 300);
}

#[test]
fn hosts_are_cut_and_other_fields_do_not_matter() {
    let schema = schema(&[16, 32, 16]);
    let hosts = (0..1000).map(|number| {
        let host = FieldMatch::Exact(1 << 31 | number << 18);
        vec![ANY, host, ANY]
    });
    let rules = rules(&schema, hosts);
    let built = build("cut-split:fields=1", &rules);
    assert_eq!(count(built.as_ref(), "places"), 1000);
    assert_eq!(built.stats().tables, 1);
    let mut keys = KeyVec::new(&schema);
    // The first bit is 1 in all rules.
    keys.push(&[7, 5, 9]).unwrap();
    keys.push(&[7, 1 << 31 | 500 << 18, 9]).unwrap();
    let field = schema.field_ids().nth(1).unwrap();
    for (key, most, id) in [(keys.key(0), 8, None), (keys.key(1), 32, Some(500))] {
        let mut mask = vec![0; schema.key_words()];
        let winner = built.classify_masked(key, &mut mask);
        assert_eq!(winner.rule(), id.map(RuleId::from_index));
        let ones: u32 = mask.iter().map(|word| word.count_ones()).sum();
        assert_eq!(ones, schema.get_field(&mask, field).count_ones());
        assert!(ones <= most, "{ones} bits");
    }
    check(built.as_ref(), &keys, &rules);
}

/// The four classes of the paper each have their own tree. The trees are in the order
/// of their best rules.
#[test]
fn rules_share_a_tree_by_the_fields_in_which_they_are_small() {
    let schema = Schema::ipv4_5tuple();
    let mut dice = Dice(4);
    let matches = (0..800).map(|number| {
        let mut matches = vec![ANY; 5];
        for (field, wanted) in matches.iter_mut().take(2).enumerate() {
            if ((number % 4) >> field) & 1 == 0 {
                *wanted = FieldMatch::Prefix {
                    value: dice.bits() & 0xffff_ffff,
                    length: 24,
                };
            }
        }
        matches
    });
    let matches: Vec<_> = matches.collect();
    let rules = rules(&schema, matches);
    let engine: CutSplit<2> = open("cut-split", &rules);
    let mut fields: Vec<usize> = engine.trees.selected.iter().map(|s| s.field).collect();
    fields.sort_unstable();
    assert_eq!(fields, [0, 1]);
    let cuts: Vec<(usize, usize)> = (engine.trees.trees.iter())
        .map(|tree| (tree.cuts, tree.rules))
        .collect();
    assert_eq!(cuts, [(3, 200), (2, 200), (1, 200), (0, 200), (0, 0)]);
    let best: Vec<u64> = engine.trees.order.iter().map(|tree| tree.0).collect();
    let expected: Vec<u64> = (0..4).map(|at| rules.rule(at).winner().rank()).collect();
    assert_eq!(best, expected);
    inspect(&engine);
    check(closed(engine).as_ref(), &keys(&rules, 9), &rules);
}

/// Rules that no field separates stay together, and rules that match almost everything
/// go to the list, in builds and in updates.
#[test]
fn rules_of_many_leaves_are_listed() {
    let schema = schema(&[32, 32]);
    let narrow = |number: u128| vec![range(number << 20, (number << 20) + 5), ANY];
    let wide = |number: u128| vec![range(number, (1 << 32) - 1 - number), ANY];
    let matches = (0..2000_u128).map(|number| match number {
        0..1980 => narrow(number),
        _ => wide(number),
    });
    let all = rules(&schema, matches);
    let built = build("cut-split:fields=0", &all);
    assert_eq!(count(built.as_ref(), "rules in the list"), 20);
    check(built.as_ref(), &keys(&all, 7), &all);
    let mut engine: CutSplit<2> = open("cut-split:fields=0", &RuleSet::new(&schema));
    for rule in all.iter() {
        assert!(engine.insert(&rule));
    }
    inspect(&engine);
    assert_eq!(engine.trees.trees[engine.trees.list()].rules, 20);
    assert!(engine.trees.places() < 2 * 2000);
    check(closed(engine).as_ref(), &keys(&all, 7), &all);
}

#[test]
fn equal_rules_are_one_leaf() {
    let schema = schema(&[16, 16]);
    let equal = (0..600).map(|_| vec![range(3, 1000), range(7, 9)]);
    let all = rules(&schema, equal);
    let mut engine: CutSplit<2> = open("cut-split", &RuleSet::new(&schema));
    for rule in all.iter() {
        assert!(engine.insert(&rule));
    }
    inspect(&engine);
    assert!(engine.trees.places() <= 600 + 16);
    for number in 0..590 {
        assert!(engine.remove(RuleId::from_index(number)));
    }
    inspect(&engine);
    let mut left = RuleSet::new(&schema);
    all.iter()
        .skip(590)
        .for_each(|rule| left.push(rule).unwrap());
    check(closed(engine).as_ref(), &keys(&all, 20), &left);
}

/// A plan from a snapshot makes the same trees as a build.
#[test]
fn trees_that_grew_by_updates_become_those_of_a_build() {
    let schema = Schema::ipv4_5tuple();
    let mut dice = Dice(11);
    let mut all = RuleSet::new(&schema);
    let mut engine: CutSplit<2> = open("cut-split", &all);
    for number in 0..3000 {
        let mut matches = vec![ANY; 5];
        matches[number % 2] = FieldMatch::Prefix {
            value: dice.bits() & 0xffff_ffff,
            length: 20,
        };
        matches[3] = FieldMatch::Exact(dice.bits() & 0xff);
        let rule = Rule::new(
            &schema,
            RuleId::from_index(number),
            Priority(7),
            ActionId(1),
            &matches,
        );
        let rule = rule.unwrap();
        all.push(rule.view()).unwrap();
        assert!(engine.insert(&rule.view()));
    }
    let built: CutSplit<2> = open("cut-split", &all);
    let grown = engine.drift();
    assert!(grown.is_due(), "{grown:?}");
    let plan = Reoptimise::snapshot(&engine).compute(&mut NoProgress);
    assert!(engine.install(&plan.unwrap().unwrap()));
    let mut steps = 0;
    while engine.step(16) {
        steps += 16;
        assert!(steps < 20_000);
        if steps % 1024 == 0 {
            inspect(&engine);
        }
    }
    let installed = engine.drift();
    assert!(!installed.is_due() && !installed.installing);
    assert!(installed.current < 1.1 * built.cost(), "{installed:?}");
    assert_eq!(engine.trees.nodes.used(), built.trees.nodes.used());
    assert_eq!(engine.trees.places(), built.trees.places());
    inspect(&engine);
    check(closed(engine).as_ref(), &keys(&all, 50), &all);
}

#[test]
fn more_rules_than_can_be_numbered_are_refused() {
    assert!(check_rules(MOST_RULES).is_ok());
    let error = check_rules(MOST_RULES + 1).unwrap_err();
    assert!(matches!(error, BuildError::EngineFull { .. }));
    let none = RuleSet::new(&schema(&[8]));
    let engine: CutSplit<2> = open("cut-split", &none);
    assert_eq!(Updates::capacity(&engine), MOST_RULES);
    assert!(unwatched(|monitor| engine.all_rows(monitor)).is_empty());
}
