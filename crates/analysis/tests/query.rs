//! The answers of `query` against every header of small schemas.

use std::collections::BTreeMap;

use classyard::NoProgress;
use classyard::prelude::*;
use classyard_analysis::{QuerySettings, query};
use classyard_conformance::random::{Dice as _, SeededDice};

mod small;

use small::{all_keys, apart, crowded_policy, small_policy, small_schema};

#[test]
fn answers_are_those_of_every_header() {
    let mut dice = SeededDice::new(3);
    let (mut headers, mut answers, mut several) = (0, 0, 0);
    for round in 0..2500 {
        let policy = match round % 500 {
            0 => crowded_policy(&mut dice),
            _ => small_policy(&small_schema(&mut dice), &mut dice),
        };
        let schema = policy.parts()[0].schema().clone();
        let asked = apart(&schema, 1 + dice.below(3), &mut dice);
        let selects = |key: &[u64]| asked.parts()[0].iter().any(|rule| rule.matches(key));
        several += usize::from(asked.len() > 1);
        let result = query(&policy, &asked, &QuerySettings::default(), &mut NoProgress).unwrap();
        assert!(result.undecided().is_empty());
        let rules = &policy.parts()[0];
        let keys = all_keys(&schema);
        headers += keys.len();
        let mut expected: BTreeMap<Option<RuleId>, usize> = BTreeMap::new();
        let mut total = 0;
        for key in keys.as_slice().iter() {
            if selects(key) {
                total += 1;
                *expected.entry(rules.scan(key).rule()).or_default() += 1;
            }
        }
        let ranks = result.answers().iter().map(|answer| {
            let rule = answer.rule.and_then(|rule| rules.get(rule));
            rule.map_or(u64::MAX, |rule| rule.winner().rank())
        });
        assert!(ranks.is_sorted(), "best first");
        for answer in result.answers() {
            let count = expected
                .remove(&answer.rule)
                .expect("a rule that decides headers");
            #[allow(clippy::cast_precision_loss)] // few headers
            let share = count as f64 / f64::from(total);
            assert!((share - answer.share).abs() < 1e-12);
            let mut key = KeyVec::new(&schema);
            key.push(&answer.header).unwrap();
            assert_eq!(rules.scan(key.key(0)).rule(), answer.rule);
            assert!(selects(key.key(0)));
            answers += 1;
        }
        assert!(expected.is_empty(), "{policy:?} {expected:?}");
    }
    assert!(headers >= 1_000_000 && answers > 5000 && several > 100);
}
