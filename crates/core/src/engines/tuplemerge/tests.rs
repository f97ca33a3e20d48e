//! Tests of the work of insertions, counted in steps of progress reports.

use std::ops::ControlFlow;

use crate::budget::monitor::Monitor;
use crate::contract::classifier::{Limits, Progress};
use crate::contract::spec::EngineSpec;
use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId};
use crate::model::ruleset::RuleSet;
use crate::model::schema::{Field, MatchKind, Schema};
use crate::model::seed::splitmix;
use crate::model::transaction::TransactionBuf;

/// Counts reports: one for each [`Monitor::STEPS`] steps of work.
#[derive(Default)]
struct CountedReports(usize);

impl Progress for CountedReports {
    fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

/// Returns the steps of building `spec` over the rules, at most.
fn build_steps(spec: &str, rules: &RuleSet) -> usize {
    let mut reports = CountedReports::default();
    let spec = EngineSpec::parse(spec).unwrap();
    let built = spec.build(rules, &Limits::default(), &mut reports);
    assert_eq!(built.unwrap().stats().rules, rules.len());
    (reports.0 + 1) * Monitor::STEPS
}

/// Port ranges of one pair of addresses: rules with one mask that masks cannot separate.
fn port_ranges_of_one_pair(count: u32) -> RuleSet {
    let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
    for number in 0..count {
        let low = u128::from(number);
        let matches = [
            FieldMatch::Exact(0x0a00_0001),
            FieldMatch::Exact(0x0a00_0002),
            FieldMatch::Range {
                low,
                high: low + 0x8001,
            },
            FieldMatch::Any,
            FieldMatch::Exact(6),
        ];
        let id = RuleId::new(number).unwrap();
        (rules.add(id, Priority(number), ActionId(0), &matches)).unwrap();
    }
    rules
}

/// Rules with random masks over 1,024 bits.
fn wide_ternary_rules(count: u32) -> RuleSet {
    let fields = (0..8).map(|at| Field::new(&format!("f{at}"), 128, MatchKind::Ternary));
    let schema = Schema::new("wide", fields.collect()).unwrap();
    let mut rules = RuleSet::new(&schema);
    let mut state = 5;
    for number in 0..count {
        let matches: Vec<FieldMatch> = (0..8)
            .map(|field| match field {
                0 => FieldMatch::Exact(7),
                _ => {
                    let mask = u128::from(splitmix(&mut state)) << 32;
                    FieldMatch::Ternary { value: 0, mask }
                }
            })
            .collect();
        let id = RuleId::new(number).unwrap();
        (rules.add(id, Priority(number), ActionId(0), &matches)).unwrap();
    }
    rules
}

#[test]
fn chains_that_no_mask_parts_are_not_parted_at_each_insertion() {
    for form in ["tuplemerge", "tuplemerge-vpp"] {
        for rules in [port_ranges_of_one_pair(8000), wide_ternary_rules(2000)] {
            let (split, plain) = (build_steps(form, &rules), build_steps("tss", &rules));
            let chains = rules.len() * rules.len() / 2;
            assert!(
                split < 2 * plain.max(chains),
                "{form} over {}: {split} steps, tss {plain}",
                rules.schema().name()
            );
        }
    }
}

#[test]
fn a_chain_is_still_split_when_other_rules_arrive() {
    let rules = port_ranges_of_one_pair(400);
    let spec = EngineSpec::parse("tuplemerge").unwrap();
    let mut built = spec.builder().build(&rules).unwrap();
    let engine = built.as_dynamic().unwrap();
    let mut changes = TransactionBuf::new(rules.schema());
    for number in 400..4000 {
        // Ports that a mask separates.
        let matches = [
            FieldMatch::Exact(0x0a00_0001),
            FieldMatch::Exact(0x0a00_0002),
            FieldMatch::Exact(u128::from(number)),
            FieldMatch::Exact(80),
            FieldMatch::Exact(6),
        ];
        changes.clear();
        let id = RuleId::new(number).unwrap();
        (changes.insert(id, Priority(number), ActionId(0), &matches)).unwrap();
        engine.apply(&changes.transaction()).unwrap();
    }
    assert!(engine.stats().tables >= 2, "{:?}", engine.stats());
    let key = |port: u32| {
        let mut keys = crate::model::key::KeyVec::new(rules.schema());
        keys.push(&[0x0a00_0001, 0x0a00_0002, u128::from(port), 80, 6])
            .unwrap();
        keys
    };
    for port in [500, 3999] {
        let winner = engine.classify_one(key(port).key(0));
        assert_eq!(winner.rule(), Some(RuleId::new(port).unwrap()));
        let compared: usize = (engine.trace(key(port).key(0)).probes.iter())
            .map(|probe| probe.compared.len())
            .sum();
        assert!(compared < 1000, "{compared} rules compared");
    }
}

/// The example of [TM19] Tables I and III: seven rules over two fields of three bits, of
/// which at most one may have a key.
///
/// [TM19]: crate::papers#tm19
#[test]
fn the_papers_example_needs_its_three_tables() {
    let fields = ["source", "destination"].map(|name| Field::new(name, 3, MatchKind::Prefix));
    let schema = Schema::new("example", fields.to_vec()).unwrap();
    let mut rules = RuleSet::new(&schema);
    // Values and prefix lengths of the sources and destinations of r1 to r7.
    let example = [
        ((0b000, 3), (0b111, 3)),
        ((0b010, 3), (0b100, 3)),
        ((0b011, 3), (0b100, 3)),
        ((0b010, 3), (0b110, 2)),
        ((0b100, 2), (0b101, 3)),
        ((0b110, 3), (0b000, 0)),
        ((0b000, 0), (0b011, 3)),
    ];
    for (number, (source, destination)) in (0..).zip(example) {
        let matches =
            [source, destination].map(|(value, length)| FieldMatch::Prefix { value, length });
        let id = RuleId::new(number).unwrap();
        (rules.add(id, Priority(7 - number), ActionId(0), &matches)).unwrap();
    }
    let tables = |seed: u64| {
        let spec = EngineSpec::parse("tuplemerge-offline:offline-c=1").unwrap();
        let built = spec.seeded(seed).builder().build(&rules).unwrap();
        built.stats().tables
    };
    // Keys are counted by hash: with some seeds two keys share a counter, and a rule moves
    // to a later table.
    let counts: Vec<usize> = (0..40).map(tables).collect();
    let of_paper = counts.iter().filter(|&&tables| tables == 3).count();
    assert!(of_paper > 20, "{counts:?}");
}
