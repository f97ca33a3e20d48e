//! Properties of every kind of cache in the registry.

use std::collections::HashMap;

use proptest::prelude::*;

use super::random::mixed;
use super::*;

/// Returns a flow whose low 16 bits are its number, so that all signatures differ.
fn flow(number: u16) -> u64 {
    mixed(u64::from(number) + 1) << 16 | u64::from(number)
}

fn megaflow(number: u32) -> MegaflowId {
    MegaflowId::new(number).unwrap()
}

fn one(cache: &mut dyn MicroflowCache, flow: u64, now: u64) -> MegaflowId {
    let mut found = [MegaflowId::NONE];
    cache.look_up(&[flow], now, &mut found);
    found[0]
}

/// An operation on a cache.
#[derive(Clone, Copy, Debug)]
enum Step {
    LookUp,
    Offer(u32),
    Forget,
    ForgetAnother,
}

fn steps() -> impl Strategy<Value = Vec<(u16, Step, u64)>> {
    let step = prop_oneof![
        4 => Just(Step::LookUp),
        4 => (0..200_u32).prop_map(Step::Offer),
        1 => Just(Step::Forget),
        1 => Just(Step::ForgetAnother),
    ];
    // Few flows are frequent. Time advances by up to 40 ms, and sometimes by much more.
    let number = prop_oneof![Just(0_u16), 0..8_u16, 0..600_u16];
    let wait = prop_oneof![8 => 0..40_000_000_u64, 1 => 0..20_000_000_000_u64];
    prop::collection::vec((number, step, wait), 1..2_000)
}

/// Applies steps to a cache and checks each answer. Returns all answers.
fn check(kind: &Kind, flows: usize, steps: &[(u16, Step, u64)], seed: u64) -> Vec<MegaflowId> {
    let mut cache = (kind.build)(flows, seed);
    let mut offered: HashMap<u64, MegaflowId> = HashMap::new();
    let (mut now, mut forgotten) = (0, 0_usize);
    let mut answers = Vec::new();
    let bytes = cache.usage().bytes;
    for &(number, step, wait) in steps {
        now += wait;
        let flow = flow(number);
        let before = cache.usage();
        match step {
            Step::LookUp => {
                let found = one(&mut *cache, flow, now);
                if found.is_some() {
                    assert_eq!(offered.get(&flow), Some(&found), "{}", kind.name);
                }
                answers.push(found);
            }
            Step::Offer(number) => {
                // As in a pipeline, a flow that is found is not offered.
                let found = one(&mut *cache, flow, now);
                if found.is_some() {
                    cache.forget(flow, found);
                    forgotten += 1;
                    assert_eq!(one(&mut *cache, flow, now), MegaflowId::NONE);
                }
                cache.offer(flow, megaflow(number), now);
                offered.insert(flow, megaflow(number));
            }
            Step::Forget => {
                let found = one(&mut *cache, flow, now);
                let before = cache.usage().used;
                cache.forget(flow, found);
                if found.is_some() {
                    forgotten += 1;
                    assert_eq!(cache.usage().used, before - 1);
                }
                assert_eq!(
                    one(&mut *cache, flow, now),
                    MegaflowId::NONE,
                    "{}",
                    kind.name
                );
                offered.remove(&flow);
            }
            Step::ForgetAnother => {
                cache.forget(flow, megaflow(4_000));
                assert_eq!(cache.usage(), before, "{}: another megaflow", kind.name);
            }
        }
        let usage = cache.usage();
        assert!(usage.used <= usage.capacity, "{}: {usage:?}", kind.name);
        assert_eq!(usage.bytes, bytes, "{}", kind.name);
        let gone = usize::try_from(usage.evicted).unwrap() + forgotten;
        let admitted = usize::try_from(usage.admitted).unwrap();
        assert_eq!(admitted, usage.used + gone, "{}: {usage:?}", kind.name);
        assert!(usage.admitted >= before.admitted && usage.evicted >= before.evicted);
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn answers_are_what_was_offered_last(steps in steps(), flows in 1..400_usize, seed: u64) {
        for kind in KINDS {
            let answers = check(kind, flows, &steps, seed);
            prop_assert_eq!(answers, check(kind, flows, &steps, seed));
        }
    }
}

/// Every kind and size of cache admits a flow that comes again and again.
#[test]
fn frequent_flows_are_found() {
    for kind in KINDS {
        for flows in [64, 100, 1_000, 8_192, 65_536, 1_000_000] {
            let mut cache = (kind.build)(flows, 7);
            let mut hits = 0;
            for step in 0..2_000_u64 {
                let flow = flow(u16::try_from(step % 10).unwrap());
                let now = step * 1_000_000;
                let is_found = one(&mut *cache, flow, now).is_some();
                hits += u32::from(is_found);
                if !is_found {
                    cache.offer(flow, megaflow(u32::try_from(step % 10).unwrap()), now);
                }
            }
            // emc admits one in a hundred flows that are not found.
            assert!(hits > 800, "{}, {flows} flows: {hits} hits", kind.name);
        }
    }
}

/// Every kind of cache admits flows that share a megaflow, although no flow has two
/// successive packets: a megaflow covers many flows.
#[test]
fn flows_that_share_a_megaflow_are_found() {
    const COUNTED_ROUNDS: u64 = 100;
    for kind in KINDS {
        for (flow_count, rounds, step_ns) in [
            (2, 1_500, 1_000_000),
            (50, 1_500, 1_000_000),
            (4_000, 400, 20_000),
        ] {
            let mut cache = (kind.build)(16_384, 11);
            let (mut hits, mut now) = (0, 0);
            for round in 0..rounds {
                for number in 0..flow_count {
                    now += step_ns;
                    let flow = flow(number);
                    match one(&mut *cache, flow, now).is_some() {
                        true => hits += u64::from(round >= rounds - COUNTED_ROUNDS),
                        false => {
                            cache.offer(flow, megaflow(7), now);
                        }
                    }
                }
            }
            let counted = COUNTED_ROUNDS * u64::from(flow_count);
            // emc admits one in a hundred flows that are not found.
            assert!(
                hits * 4 > counted * 3,
                "{}, {flow_count} flows: {hits} hits of {counted}",
                kind.name
            );
        }
    }
}

/// A flood of flows, each with two packets in quick succession, does not overfill the
/// caches.
#[test]
fn floods_stay_within_bounds() {
    for kind in KINDS {
        for flows in [64, 1_000, 4_096] {
            let mut cache = (kind.build)(flows, 3);
            let (capacity, bytes) = (cache.usage().capacity, cache.usage().bytes);
            // At most `flows`, and not much less.
            assert!(capacity <= flows && capacity + 10 > flows, "{}", kind.name);
            for number in 0..40_000_u64 {
                let flow = mixed(number / 2);
                let now = number * 50_000;
                if !one(&mut *cache, flow, now).is_some() {
                    cache.offer(flow, megaflow(low_half(number)), now);
                }
            }
            let usage = cache.usage();
            assert_eq!((usage.capacity, usage.bytes), (capacity, bytes));
            assert!(usage.used <= capacity, "{}: {usage:?}", kind.name);
        }
    }
}

fn low_half(number: u64) -> u32 {
    u32::try_from(number % 1_000).unwrap()
}

/// Lookups in batches of any length return the same as single lookups.
#[test]
fn batches_answer_as_single_lookups() {
    for kind in KINDS {
        let mut cache = (kind.build)(512, 5);
        for round in 0..400_u64 {
            for number in 0..100 {
                cache.offer(flow(number), megaflow(u32::from(number)), round * 1_000_000);
            }
        }
        let flows: Vec<u64> = (0..130).map(flow).collect();
        let now = 400_000_000;
        let singles: Vec<MegaflowId> = flows
            .iter()
            .map(|&flow| one(&mut *cache, flow, now))
            .collect();
        assert!(
            singles[..100].iter().any(|found| found.is_some()),
            "{}",
            kind.name
        );
        for length in 0..=flows.len() {
            let mut found = vec![MegaflowId::NONE; length];
            cache.look_up(&flows[..length], now, &mut found);
            assert_eq!(found, singles[..length], "{}", kind.name);
        }
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KINDS.len());
    assert_eq!(KINDS.len(), 5);
}

fn active(flows: usize, timeout_ns: u64) -> active::ActiveConfig {
    active::ActiveConfig {
        threshold_ns: Some(256_000_000),
        timeout_ns,
        ..active::ActiveConfig::new(flows)
    }
}

/// Sends flows twice within the threshold until one is replaced. Returns the fill level.
fn filled(cache: &mut dyn MicroflowCache) -> f64 {
    let mut number = 0;
    while cache.usage().evicted == 0 {
        for _ in 0..2 {
            cache.offer(mixed(number), megaflow(low_half(number)), number * 100);
        }
        number += 1;
    }
    cache.usage().used as f64 / cache.usage().capacity as f64
}

/// With kicks the cache gets fuller than without, for buckets of one entry and of four.
#[test]
fn kicks_fill_the_cache() {
    let config = active(8_192, 10_000_000_000);
    let without = active::ActiveConfig {
        kicks: 0,
        ..config.clone()
    };
    let pairs: [(Box<dyn MicroflowCache>, Box<dyn MicroflowCache>); 4] = [
        (
            Box::new(wef::Wef::<4>::new(&config, 1)),
            Box::new(wef::Wef::<4>::new(&without, 1)),
        ),
        (
            Box::new(wef::Wef::<1>::new(&config, 1)),
            Box::new(wef::Wef::<1>::new(&without, 1)),
        ),
        (
            Box::new(cuckoo::Cuckoo::<4>::new(&config, 1)),
            Box::new(cuckoo::Cuckoo::<4>::new(&without, 1)),
        ),
        (
            Box::new(cuckoo::Cuckoo::<1>::new(&config, 1)),
            Box::new(cuckoo::Cuckoo::<1>::new(&without, 1)),
        ),
    ];
    for (mut with, mut without) in pairs {
        let (with_kicks, without_kicks) = (filled(&mut *with), filled(&mut *without));
        assert!(
            with_kicks > 1.5 * without_kicks,
            "{with_kicks} {without_kicks}"
        );
    }
}

/// After kicks every flow is still found.
#[test]
fn moved_flows_are_found() {
    let config = active(4_096, 10_000_000_000);
    let caches: [Box<dyn MicroflowCache>; 2] = [
        Box::new(wef::Wef::<4>::new(&config, 1)),
        Box::new(cuckoo::Cuckoo::<4>::new(&config, 1)),
    ];
    for mut cache in caches {
        filled(&mut *cache);
        let admitted = cache.usage().admitted;
        let is_found = |number: u64, cache: &mut dyn MicroflowCache| {
            one(cache, mixed(number), 0) == megaflow(low_half(number))
        };
        let found = (0..admitted).filter(|&number| is_found(number, &mut *cache));
        // One flow was replaced.
        assert_eq!(found.count() as u64, admitted - 1);
    }
}

/// A flow is active if its packet comes soon after its previous one.
#[test]
fn inactive_flows_are_not_admitted() {
    let mut cache = wef::Wef::<4>::new(&active(1_024, 1_000_000_000), 1);
    let [slow, fast] = [flow(1), flow(2)];
    for step in 0..10 {
        cache.offer(slow, megaflow(1), step * 300_000_000);
    }
    assert_eq!(cache.usage().used, 0);
    // Another flow of the same megaflow comes in between.
    cache.offer(slow, megaflow(1), 3_000_000_000);
    cache.offer(fast, megaflow(1), 3_100_000_000);
    cache.offer(slow, megaflow(1), 3_300_000_000);
    assert_eq!(cache.usage().used, 0);
    assert!(cache.offer(fast, megaflow(1), 3_301_000_000));
    assert_eq!(one(&mut cache, slow, 3_302_000_000), MegaflowId::NONE);
    assert_eq!(one(&mut cache, fast, 3_304_000_000), megaflow(1));
    // The flow is idle for more than a second, and a scan removes it a little later.
    for step in 0..200 {
        one(&mut cache, slow, 4_400_000_000 + step * 10_000_000);
    }
    assert_eq!(cache.usage().used, 0);
    assert_eq!(cache.usage().evicted, 1);
}

/// [FTS25] Alg. 1 to the letter stores one flow for each megaflow, so flows that alternate
/// are never active.
///
/// [FTS25]: classyard::papers#fts25
#[test]
fn by_the_letter_alternating_flows_are_not_admitted() {
    let hits = |recorded| {
        let config = active::ActiveConfig {
            recorded,
            ..active(1_024, 10_000_000_000)
        };
        let mut cache = wef::Wef::<4>::new(&config, 1);
        let mut hits = 0;
        for step in 0..1_000_u64 {
            let (flow, now) = (flow(u16::try_from(step % 2).unwrap()), step * 1_000_000);
            match one(&mut cache, flow, now).is_some() {
                true => hits += 1,
                false => {
                    cache.offer(flow, megaflow(7), now);
                }
            }
        }
        hits
    };
    // The first two packets of each flow miss.
    assert_eq!(hits(latest::Recorded::Flows), 996);
    assert_eq!(hits(latest::Recorded::Decisions), 0);
}

/// The threshold falls if there are more active flows than room, and rises again.
#[test]
fn the_threshold_follows_the_traffic() {
    let mut cache = wef::Wef::<4>::new(&active::ActiveConfig::new(256), 1);
    let first = cache.threshold_ns();
    let mut now = 0;
    for number in 0..20_000_u64 {
        for _ in 0..2 {
            cache.offer(mixed(number), megaflow(low_half(number)), now);
            now += 100_000;
        }
    }
    let after_flood = cache.threshold_ns();
    assert!(after_flood < first / 4, "{after_flood}");
    for number in 0..20_000_u64 {
        cache.offer(mixed(number), megaflow(low_half(number)), now);
        now += 10_000_000;
    }
    assert!(cache.threshold_ns() > after_flood * 4);
}

/// A flood of one-packet flows does not evict flows in use.
#[test]
fn scans_leave_flows_in_use() {
    let mut cache = adaptive::Adaptive::new(1_000);
    let (mut hits, mut now) = (0, 0);
    for round in 0..200_u64 {
        for number in 0..300 {
            now += 1_000;
            match one(&mut cache, flow(number), now).is_some() {
                true => hits += u32::from(round > 20),
                false => {
                    cache.offer(flow(number), megaflow(u32::from(number)), now);
                }
            }
            let passing = mixed(1_000_000 + now * 10);
            for other in [passing, passing + 1] {
                if !one(&mut cache, other, now).is_some() {
                    cache.offer(other, megaflow(1), now);
                }
            }
        }
    }
    let share = f64::from(hits) / (179.0 * 300.0);
    assert!(share > 0.9, "{share}");
}
