//! Every engine with updates returns each rule word for word as inserted, after
//! any updates and reorganisations, and returns no other rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use classyard::*;

mod table_kit;

use table_kit::{Dice, id};

/// The number of ids to draw from; about half of them are in use at a time.
const ID_COUNT: usize = 160;
const ROUND_COUNT: usize = 40;

/// Returns schemas with ranges in different layouts: in lanes of 16 bits, next
/// to other fields, with odd widths, across two words, and with one or several
/// words of upper ends.
fn schemas() -> Vec<Arc<Schema>> {
    use MatchKind::{Exact, Prefix, Range, Ternary};
    let make = |name: &str, fields: &[(u32, MatchKind)]| {
        let fields = fields.iter().enumerate();
        let fields = fields.map(|(i, &(width, kind))| Field::new(&format!("f{i}"), width, kind));
        Schema::new(name, fields.collect()).unwrap()
    };
    vec![
        Schema::ipv4_5tuple(),
        Schema::ipv6_5tuple(),
        Schema::openflow15(),
        make(
            "lanes",
            &[(16, Range), (16, Range), (16, Ternary), (16, Range)],
        ),
        make(
            "odd",
            &[
                (32, Range),
                (24, Range),
                (8, Prefix),
                (13, Range),
                (1, Range),
            ],
        ),
        make(
            "two words",
            &[(128, Range), (80, Range), (16, Range), (16, Exact)],
        ),
        make(
            "wide",
            &[
                (65, Range),
                (64, Range),
                (48, Ternary),
                (128, Prefix),
                (96, Range),
            ],
        ),
        make("no ranges", &[(128, Ternary), (33, Exact), (40, Prefix)]),
    ]
}

fn bits(width: u32, dice: &mut Dice) -> u128 {
    let random_bits = u128::from(dice.roll()) << 64 | u128::from(dice.roll());
    random_bits >> (128 - width)
}

/// Returns a random value, often from a small set, so that rules share buckets;
/// sometimes a value near a multiple of 2^16.
fn value(width: u32, dice: &mut Dice) -> u128 {
    let random_value = bits(width, dice);
    match dice.below(4) {
        0 => random_value,
        1 if width > 16 => {
            (random_value >> 16 << 16).wrapping_sub(u128::from(dice.roll() % 3)) & full(width)
        }
        _ => random_value % 5,
    }
}

fn full(width: u32) -> u128 {
    u128::MAX >> (128 - width)
}

fn random_match(field: &Field, dice: &mut Dice) -> FieldMatch {
    let width = field.width();
    let first = value(width, dice);
    if dice.below(5) == 0 {
        return FieldMatch::Any;
    }
    match field.kind() {
        MatchKind::Exact => FieldMatch::Exact(first),
        MatchKind::Prefix | MatchKind::Range if dice.below(5) == 0 => FieldMatch::Ternary {
            value: first,
            mask: bits(width, dice),
        },
        MatchKind::Prefix => FieldMatch::Prefix {
            value: first,
            length: u32::try_from(dice.below(width as usize + 1)).unwrap(),
        },
        MatchKind::Range => {
            let second = match dice.below(3) {
                0 => first,
                1 => (first + 1).min(full(width)),
                _ => value(width, dice),
            };
            FieldMatch::Range {
                low: first.min(second),
                high: first.max(second),
            }
        }
        MatchKind::Ternary => FieldMatch::Ternary {
            value: first,
            mask: bits(width, dice),
        },
    }
}

fn random_rule(schema: &Arc<Schema>, number: u32, dice: &mut Dice) -> Rule {
    let fields = schema.fields().iter();
    let matches: Vec<FieldMatch> = fields.map(|field| random_match(field, dice)).collect();
    let priority = match dice.below(9) {
        0 => u32::MAX,
        other => u32::try_from(other).unwrap() - 1,
    };
    let priority = Priority(priority);
    // A modified rule usually gets another action.
    let action = ActionId(number << 8 | u32::try_from(dice.below(256)).unwrap());
    Rule::new(schema, id(number), priority, action, &matches).unwrap()
}

/// Compares the engine's rules for all possible ids with the expected rules.
fn check(engine: &dyn Classifier, rules: &BTreeMap<u32, Rule>, what: &str) {
    let dynamic = engine.dynamic().unwrap();
    let beyond = [u32::try_from(ID_COUNT).unwrap(), RuleId::MAX.get()];
    for number in (0..u32::try_from(ID_COUNT).unwrap()).chain(beyond) {
        // Existing words must not change.
        let mut words = vec![7, 8];
        let priority = dynamic.copy_rule(id(number), &mut words);
        let rule = rules.get(&number).map(Rule::view);
        assert_eq!(
            priority,
            rule.map(|rule| rule.priority()),
            "{what}: rule {number}"
        );
        let action = rule.map(|rule| rule.action());
        assert_eq!(dynamic.action(id(number)), action, "{what}: rule {number}");
        assert_eq!(words[..2], [7, 8], "{what}: rule {number}");
        let expected = rule.map_or(&[][..], |rule| rule.words());
        assert_eq!(&words[2..], expected, "{what}: rule {number}");
    }
    let by_rank = |winner: &Winner| winner.rank();
    let mut expected: Vec<Winner> = rules.values().map(|rule| rule.view().winner()).collect();
    expected.sort_by_key(by_rank);
    let mut winners = dynamic.winners();
    winners.sort_by_key(by_rank);
    assert_eq!(winners, expected, "{what}: the list of rules");
    assert_eq!(dynamic.rules(), rules.len(), "{what}");
}

fn run(spec: &str, schema: &Arc<Schema>, seed: u64) {
    let mut dice = Dice(seed);
    let what = format!("{spec} over {}", schema.name());
    let mut rules: BTreeMap<u32, Rule> = (0..u32::try_from(ID_COUNT).unwrap())
        .step_by(2)
        .map(|number| (number, random_rule(schema, number, &mut dice)))
        .collect();
    let mut set = RuleSet::new(schema);
    set.extend(rules.values().cloned());
    let spec = EngineSpec::parse(spec).unwrap();
    let built = spec.build(&set, &Limits::default(), &mut NoProgress);
    let mut engine = built.unwrap();
    check(engine.as_ref(), &rules, &what);
    for round in 0..ROUND_COUNT {
        // Sometimes few rules, down to none.
        let removals = [1, 1, 3, 20][round / 20];
        for _ in 0..1 + dice.below(12) {
            let number = u32::try_from(dice.below(ID_COUNT)).unwrap();
            let rule = random_rule(schema, number, &mut dice);
            let mut transaction = Transaction::new();
            let known = rules.contains_key(&number);
            if known && dice.below(1 + removals) > 0 {
                transaction.remove(id(number));
                rules.remove(&number);
            } else {
                if known {
                    transaction.modify(rule.view());
                } else {
                    transaction.insert(rule.view());
                }
                rules.insert(number, rule.clone());
            }
            engine.as_dynamic().unwrap().apply(&transaction).unwrap();
        }
        let dynamic = engine.as_dynamic().unwrap();
        match dice.below(8) {
            0 => dynamic.rebuild(&mut NoProgress).unwrap(),
            1 => {
                if let Some(engine) = dynamic.reoptimise_mut() {
                    let plan = engine.snapshot().compute(&mut NoProgress);
                    assert!(engine.install(&plan.unwrap().unwrap()));
                }
            }
            2 => {
                if let Some(engine) = dynamic.reoptimise_mut() {
                    engine.step(dice.below(300));
                }
            }
            _ => {}
        }
        check(engine.as_ref(), &rules, &what);
    }
    for number in std::mem::take(&mut rules).into_keys() {
        let mut transaction = Transaction::new();
        transaction.remove(id(number));
        engine.as_dynamic().unwrap().apply(&transaction).unwrap();
    }
    check(engine.as_ref(), &rules, &what);
}

#[test]
fn rules_are_read_back_as_they_were_put_in() {
    let dynamic = EngineSpec::all().filter(EngineSpec::is_dynamic);
    let mut specs: Vec<String> = dynamic.map(|spec| spec.to_string()).collect();
    for expected in ["forest", "tss", "sfl(bit-vector)"] {
        assert!(specs.iter().any(|spec| spec == expected), "{specs:?}");
    }
    let options = [
        "forest:most=2",
        "forest:without=nested",
        "tss:mask=no-ports",
        "tss:mask=addresses",
        "sfl(bit-vector):delta=5",
        "sfl(bit-vector):form=paper",
    ];
    specs.extend(options.map(str::to_owned));
    for spec in specs {
        for (seed, schema) in (1..).zip(schemas()) {
            run(&spec, &schema, seed);
        }
    }
}
