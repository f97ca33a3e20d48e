//! Property tests of every registered engine, on rule sets that proptest draws and shrinks.

use std::sync::Arc;

use classyard::schema::FieldRole;
use classyard::{
    ActionId, Field, FieldMatch, KeyVec, Limits, MatchKind, NoProgress, Priority, RuleId, RuleSet,
    Schema, Scratch, Winner,
};
use classyard_conformance::Subject;
use classyard_conformance::oracle::Oracle;
use proptest::prelude::*;

/// Returns a small schema, so that random headers often match random rules. Two fields have
/// roles, which some engines treat specially.
fn schema() -> Arc<Schema> {
    let fields = vec![
        Field::new("e", 2, MatchKind::Exact),
        Field::new("p", 6, MatchKind::Prefix).with_role(FieldRole::SourceAddress),
        Field::new("r", 5, MatchKind::Range).with_role(FieldRole::SourcePort),
        Field::new("t", 4, MatchKind::Ternary),
    ];
    Schema::new("small", fields).unwrap()
}

/// Draws matches. Proptest shrinks them to wildcards.
fn matches() -> impl Strategy<Value = Vec<FieldMatch>> {
    let exact = prop_oneof![
        Just(FieldMatch::Any),
        (0u128..4).prop_map(FieldMatch::Exact)
    ];
    let prefix = prop_oneof![
        Just(FieldMatch::Any),
        (0u128..64, 0u32..=6).prop_map(|(value, length)| FieldMatch::Prefix { value, length }),
    ];
    let range = prop_oneof![
        Just(FieldMatch::Any),
        (0u128..32, 0u128..32).prop_map(|(a, b)| FieldMatch::Range {
            low: a.min(b),
            high: a.max(b),
        }),
    ];
    let ternary = prop_oneof![
        Just(FieldMatch::Any),
        (0u128..16, 0u128..16).prop_map(|(value, mask)| FieldMatch::Ternary { value, mask }),
    ];
    (exact, prefix, range, ternary).prop_map(|(e, p, r, t)| vec![e, p, r, t])
}

fn rule_set() -> impl Strategy<Value = RuleSet> {
    let rule = (matches(), 0u32..6);
    proptest::collection::vec(rule, 0..40).prop_map(|rules| {
        let mut set = RuleSet::new(&schema());
        for (index, (matches, priority)) in rules.into_iter().enumerate() {
            let id = RuleId::from_index(index);
            set.add(id, Priority(priority), ActionId(0), &matches)
                .unwrap();
        }
        set
    })
}

fn headers() -> impl Strategy<Value = KeyVec> {
    let header = (0u128..4, 0u128..64, 0u128..32, 0u128..16);
    proptest::collection::vec(header, 1..40).prop_map(|headers| {
        let mut keys = KeyVec::new(&schema());
        for (e, p, r, t) in headers {
            keys.push(&[e, p, r, t]).unwrap();
        }
        keys
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Batch, single and masked lookups give the oracle's winner, and masks
    /// are right.
    #[test]
    fn lookups_agree_with_the_oracle(rules in rule_set(), keys in headers()) {
        let oracle = Oracle::new(&rules, &Limits::default());
        let expected = oracle.winners(&keys);
        let mut scratch = Scratch::new();
        let mut subjects = Subject::variants();
        subjects.retain(|subject| subject.accepts(rules.schema()).is_ok());
        for subject in subjects {
            let built = subject.build(&rules, &Limits::default(), &mut NoProgress).unwrap();
            let mut found = vec![Winner::MISS; keys.len()];
            built.classify_batch(keys.as_slice(), &mut found, &mut scratch);
            prop_assert_eq!(&found, &expected, "{}", subject.name());
            for (key, &expected) in keys.as_slice().iter().zip(&expected) {
                let single = built.classify_one(key);
                prop_assert_eq!(single, expected, "{}", subject.name());
                let mut mask = vec![0; key.len()];
                let masked = built.classify_masked(key, &mut mask);
                prop_assert_eq!(masked, expected, "{}", subject.name());
                prop_assert_eq!(oracle.escape(key, &mask, Winner::MISS), None, "{}", subject.name());
            }
        }
    }

    /// Two classifiers over any split of the rules, chained over one candidate, give the
    /// winner of all rules.
    #[test]
    fn chained_lookups_agree(rules in rule_set(), keys in headers(), cut in 0usize..40) {
        let expected = Oracle::new(&rules, &Limits::default()).winners(&keys);
        let (mut first, mut second) = (RuleSet::new(&schema()), RuleSet::new(&schema()));
        for (index, rule) in rules.iter().enumerate() {
            let half = if index < cut { &mut first } else { &mut second };
            half.push(rule).unwrap();
        }
        let mut scratch = Scratch::new();
        for subject in Subject::engines() {
            let mut found = vec![Winner::MISS; keys.len()];
            for half in [&second, &first] {
                let built = subject.build(half, &Limits::default(), &mut NoProgress).unwrap();
                built.improve_batch(keys.as_slice(), &mut found, &mut scratch);
            }
            prop_assert_eq!(&found, &expected, "{}", subject.name());
        }
    }

    /// Removing rules one by one, in any order, never changes the answers for other rules.
    #[test]
    fn removal_uncovers_what_is_left(
        rules in rule_set(),
        keys in headers(),
        order in any::<prop::sample::Index>(),
    ) {
        let mut scratch = Scratch::new();
        for subject in Subject::engines().iter().filter(|subject| subject.is_dynamic()) {
            let mut built = subject.build(&rules, &Limits::default(), &mut NoProgress).unwrap();
            let mut left: Vec<RuleId> = rules.iter().map(|rule| rule.id()).collect();
            let mut kept = Oracle::new(&rules, &Limits::default());
            while !left.is_empty() {
                let id = left.swap_remove(order.index(left.len()));
                let change = [classyard_conformance::oracle::OwnedChange::Remove(id)];
                kept.apply(&change).unwrap();
                let dynamic = built.as_dynamic().unwrap();
                dynamic.apply(&classyard_conformance::oracle::transaction(&change)).unwrap();
                let mut found = vec![Winner::MISS; keys.len()];
                built.classify_batch(keys.as_slice(), &mut found, &mut scratch);
                prop_assert_eq!(&found, &kept.winners(&keys), "{}", subject.name());
            }
            prop_assert_eq!(built.stats().rules, 0, "{}", subject.name());
        }
    }
}
