//! Lookups allocate nothing with a warm scratch: lookups of a policy in
//! batches, and masked lookups singly and in batches.

use classyard::policy::PartId;
use classyard::{
    ActionId, EngineSpec, Field, FieldMatch, KeyVec, Limits, MatchKind, NoProgress, Policy,
    PolicyTrace, Priority, RuleId, RuleSet, Schema, Scratch, Winner,
};

mod allocations;

use allocations::requests;

/// Returns rules for ports in both parts or in one part.
fn policy(single: bool) -> Policy {
    let mut policy = if single {
        Policy::single(&classyard::Schema::ipv4_5tuple())
    } else {
        Policy::dual_stack()
    };
    for number in 0..300_u32 {
        let mut matches = [FieldMatch::Any; 5];
        matches[3] = FieldMatch::Exact(u128::from(number / 2));
        matches[4] = FieldMatch::Exact(u128::from(number % 3));
        let parts: Vec<(PartId, &[FieldMatch])> = policy
            .part_ids()
            .filter(|part| single || number as usize % 3 != part.index())
            .map(|part| (part, &matches[..]))
            .collect();
        let id = RuleId::new(number).unwrap();
        policy
            .add(id, Priority(number % 7), ActionId(0), &parts)
            .unwrap();
    }
    policy
}

/// Returns pseudorandom headers of all parts; more than a batch.
fn trace(policy: &Policy, headers: u64) -> PolicyTrace {
    let mut trace = PolicyTrace::new(policy.schemas());
    let parts = policy.parts().len();
    let mut state = 7_u64;
    for _ in 0..headers {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let number = usize::try_from(state >> 40).unwrap();
        let part = PartId::from_index(number % 7 % parts);
        let (port, protocol) = (number / 8 % 160, number / 2048 % 3);
        trace
            .push(part, &[1, 2, 3, port as u128, protocol as u128])
            .unwrap();
    }
    trace
}

#[test]
fn lookups_allocate_nothing_once_warm() {
    // The counter works.
    assert!(requests(|| drop(vec![0_u8; 100])) > 0);
    for single in [true, false] {
        let policy = policy(single);
        for spec in EngineSpec::all() {
            let built = policy.build(&spec, &Limits::default(), &mut NoProgress);
            let classifier = built.unwrap();
            let mut scratch = Scratch::new();
            for headers in [1000, 0, 1, 255, 256, 257, 1000] {
                let trace = trace(&policy, headers);
                // Old contents must not affect the result.
                let stale = Winner::new(Priority(u32::MAX), RuleId::new(0).unwrap());
                let mut winners = vec![stale; trace.len()];
                let first = requests(|| classifier.classify(&trace, &mut winners, &mut scratch));
                for (index, (part, key)) in trace.iter().enumerate() {
                    let expected = policy.part(part).scan(key);
                    assert_eq!(winners[index], expected, "{spec}, header {index}");
                }
                let expected = winners.clone();
                winners.fill(stale);
                let again = requests(|| classifier.classify(&trace, &mut winners, &mut scratch));
                assert_eq!(winners, expected);
                assert_eq!(again, 0, "{spec}: {first} requests the first time");
            }
        }
    }
}

/// Returns a schema with fields of every kind, including ranges whose width is
/// not a multiple of 16 bits, and a range wider than a word.
fn schema() -> std::sync::Arc<Schema> {
    let fields = vec![
        Field::new("address", 128, MatchKind::Prefix),
        Field::new("port", 16, MatchKind::Range),
        Field::new("time", 40, MatchKind::Range),
        Field::new("serial", 80, MatchKind::Range),
        Field::new("flags", 8, MatchKind::Ternary),
        Field::new("protocol", 8, MatchKind::Exact),
    ];
    Schema::new("mixed", fields).unwrap()
}

/// Returns the next pseudorandom number.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
    *state >> 33
}

/// Returns overlapping rules. Some of their fields are equal, so that buckets
/// get long.
fn overlapping_rules(count: u32) -> RuleSet {
    let schema = schema();
    let mut rules = RuleSet::new(&schema);
    let mut state = 11;
    for number in 0..count {
        let mut range = |below: u64| {
            let (a, b) = (next(&mut state) % below, next(&mut state) % below);
            FieldMatch::Range {
                low: a.min(b).into(),
                high: a.max(b).into(),
            }
        };
        let mut matches = [
            FieldMatch::Any,
            range(50),
            range(20),
            range(9),
            FieldMatch::Any,
            FieldMatch::Any,
        ];
        if number % 3 != 0 {
            let length = 120 + u32::try_from(next(&mut state) % 9).unwrap();
            matches[0] = FieldMatch::Prefix {
                value: u128::from(next(&mut state) % 200),
                length,
            };
        }
        if number % 5 == 0 {
            matches[4] = FieldMatch::Ternary {
                value: u128::from(next(&mut state) % 4),
                mask: 0b101,
            };
        }
        if number % 4 == 0 {
            matches[5] = FieldMatch::Exact(u128::from(next(&mut state) % 3));
        }
        let id = RuleId::new(number).unwrap();
        rules
            .add(id, Priority(number % 50), ActionId(0), &matches)
            .unwrap();
    }
    rules
}

#[test]
fn masked_lookups_allocate_nothing_once_warm() {
    let rules = overlapping_rules(2000);
    let mut keys = KeyVec::new(rules.schema());
    let mut state = 3;
    for _ in 0..600 {
        let mut value = |below: u64| u128::from(next(&mut state) % below);
        let header = [
            value(220),
            value(55),
            value(22),
            value(10),
            value(8),
            value(4),
        ];
        keys.push(&header).unwrap();
    }
    let expected: Vec<Winner> = keys.as_slice().iter().map(|key| rules.scan(key)).collect();
    let hits = expected.iter().filter(|winner| !winner.is_miss()).count();
    assert!((100..600).contains(&hits), "{hits} hits");
    let width = rules.schema().key_words();
    for spec in EngineSpec::all() {
        let engine = spec.build(&rules, &Limits::default(), &mut NoProgress);
        let engine = engine.unwrap();
        let mut scratch = Scratch::new();
        let mut winners = vec![Winner::MISS; keys.len()];
        let mut masks = vec![0; keys.len() * width];
        let mut one = vec![0; width];
        for warm in [false, true] {
            let singly = requests(|| {
                for (index, key) in keys.as_slice().iter().enumerate() {
                    one.fill(0);
                    let winner = engine.classify_masked(key, &mut one);
                    assert_eq!(winner, expected[index], "{spec}, header {index}");
                }
            });
            winners.fill(Winner::MISS);
            masks.fill(0);
            let batch = requests(|| {
                let keys = keys.as_slice();
                engine.improve_batch_masked(keys, &mut winners, &mut masks, &mut scratch);
            });
            assert_eq!(winners, expected, "{spec}");
            let last = keys.len() - 1;
            assert_eq!(masks[last * width..], one[..], "{spec}: the masks differ");
            if warm {
                assert_eq!(
                    (singly, batch),
                    (0, 0),
                    "{spec}: requests, one by one and in a batch"
                );
            }
        }
    }
}
