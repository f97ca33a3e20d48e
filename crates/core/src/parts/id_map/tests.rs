//! Tests: the map compared with `BTreeMap`, its memory and its work.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::model::seed::splitmix;

fn id(number: u32) -> RuleId {
    RuleId::new(number).unwrap()
}

/// Returns a value of 8 bytes that differs between ids.
fn value(id: RuleId) -> (u32, u32) {
    (!id.get(), id.get() ^ 77)
}

fn filled(ids: impl IntoIterator<Item = u32>) -> IdMap<(u32, u32)> {
    let mut map = IdMap::new(9);
    for number in ids {
        map.set(id(number), value(id(number)));
    }
    map
}

/// Completes the deferred work, as further updates would.
fn settle<V: Copy>(map: &mut IdMap<V>) {
    while !map.index.is_settled() {
        map.index.sweep();
    }
}

fn shuffled(count: u32, seed: u64) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count).collect();
    let mut state = seed;
    for last in (1..numbers.len()).rev() {
        let other = splitmix(&mut state) % (last as u64 + 1);
        numbers.swap(last, usize::try_from(other).unwrap());
    }
    numbers
}

/// Compares the answers of all methods with the model.
fn check<V: Copy + PartialEq + fmt::Debug>(map: &IdMap<V>, model: &BTreeMap<RuleId, V>) {
    assert_eq!(map.len(), model.len());
    assert_eq!(map.is_empty(), model.is_empty());
    for (&id, &value) in model {
        assert_eq!(map.get(id), Some(value), "of {id}");
    }
    let mut met = BTreeMap::new();
    for position in 0..map.entries() {
        if let Some((id, value)) = map.entry(position) {
            assert_eq!(met.insert(id, value), None, "{id} has two positions");
        }
    }
    assert_eq!(&met, model);
    assert_eq!(map.entry(map.entries()), None);
    assert!(map.entries() <= 4 * map.len());
    assert_eq!(map.iter().count(), model.len());
}

/// A distribution of ids.
#[derive(Clone, Copy, Debug)]
enum Ids {
    Dense,
    Gaps(u32),
    Random,
    Extremes,
}

impl Ids {
    fn nth(self, n: u32) -> RuleId {
        let mut state = u64::from(n);
        let random = u32::try_from(splitmix(&mut state) >> 32).unwrap();
        id(match self {
            Ids::Dense => n,
            Ids::Gaps(gap) => n * gap,
            Ids::Random => random.min(RuleId::MAX.get()),
            Ids::Extremes if n.is_multiple_of(2) => n / 2,
            Ids::Extremes => RuleId::MAX.get() - n / 2,
        })
    }
}

fn ids() -> impl Strategy<Value = Ids> {
    prop_oneof![
        Just(Ids::Dense),
        Just(Ids::Gaps(16)),
        Just(Ids::Gaps(1000)),
        Just(Ids::Random),
        Just(Ids::Extremes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Phases that mostly add and phases that mostly remove; values of three words.
    #[test]
    fn it_is_a_map(
        ids in ids(),
        seed: u64,
        below in 1_u32..4000,
        phases in prop::collection::vec((1_u64..10, 1_usize..3000), 1..6),
    ) {
        let mut map = IdMap::new(seed);
        let mut model = BTreeMap::new();
        let mut state = seed;
        let mut random = |below: u32| {
            u32::try_from(splitmix(&mut state) % u64::from(below)).unwrap()
        };
        for (adds, steps) in phases {
            for step in 0..steps {
                let id = ids.nth(random(below));
                let new = [id.get(), random(u32::MAX), 3];
                prop_assert_eq!(map.get(id).is_some(), model.contains_key(&id));
                if u64::from(random(10)) < adds {
                    prop_assert_eq!(map.set(id, new), model.insert(id, new));
                } else if random(8) == 0 {
                    let held = map.get(id);
                    prop_assert_eq!(held, model.get(&id).copied());
                    if let Some([first, _, third]) = held {
                        let new = [first, 5, third];
                        prop_assert_eq!(map.set(id, new), model.insert(id, new));
                    }
                } else {
                    prop_assert_eq!(map.remove(id), model.remove(&id));
                }
                let other = ids.nth(random(below));
                prop_assert_eq!(map.get(other), model.get(&other).copied());
                if step % 512 == 0 {
                    check(&map, &model);
                }
            }
            check(&map, &model);
        }
        for &id in model.keys() {
            prop_assert!(map.remove(id).is_some());
        }
        check(&map, &BTreeMap::new());
        prop_assert_eq!(map.bytes(), 0);
    }
}

/// Many segments of the index and groups of chunks, growing and shrinking.
#[test]
fn ids_can_be_added_at_once() {
    for ids in [Ids::Dense, Ids::Gaps(3), Ids::Gaps(16), Ids::Random] {
        for count in [0, 1, 15, 17, 100, 5000] {
            let mut model = BTreeMap::new();
            let mut map = IdMap::new(9);
            let mut first_ids: Vec<RuleId> = (0..count).map(|n| ids.nth(n)).collect();
            let mut later_ids = first_ids.split_off(first_ids.len() / 3);
            let valued = |id: &RuleId| (*id, (id.get(), 1));
            map.extend(first_ids.iter().map(valued));
            model.extend(first_ids.iter().map(valued));
            check(&map, &model);
            // In another order, and also into existing pages.
            later_ids.reverse();
            let valued = |id: &RuleId| (*id, (id.get(), 2));
            map.extend(later_ids.iter().map(valued));
            model.extend(later_ids.iter().map(valued));
            check(&map, &model);
            settle(&mut map);
            check(&map, &model);
        }
    }
}

#[test]
fn large_maps_grow_and_shrink() {
    for ids in [Ids::Dense, Ids::Gaps(16), Ids::Random] {
        let mut map = IdMap::new(4);
        let mut model = BTreeMap::new();
        for n in shuffled(200_000, 1) {
            let id = ids.nth(n);
            assert_eq!(map.set(id, n), model.insert(id, n));
        }
        check(&map, &model);
        for (step, n) in shuffled(200_000, 2).into_iter().enumerate() {
            let id = ids.nth(n);
            assert_eq!(map.remove(id), model.remove(&id));
            if step % 50_000 == 0 {
                check(&map, &model);
            }
        }
        check(&map, &BTreeMap::new());
    }
}

#[test]
fn the_first_and_the_last_id_have_pages() {
    let mut map = IdMap::new(0);
    for id in [id(0), RuleId::MAX] {
        assert_eq!(map.set(id, 1_u8), None);
        assert_eq!(map.set(id, 2), Some(1));
    }
    assert_eq!(map.get(id(1)), None);
    let all: BTreeMap<_, _> = map.iter().collect();
    assert_eq!(all, BTreeMap::from([(id(0), 2), (RuleId::MAX, 2)]));
    assert_eq!(map.remove(id(0)), Some(2));
    assert_eq!(map.remove(id(0)), None);
    assert_eq!(map.remove(RuleId::MAX), Some(2));
    assert!(map.is_empty());
}

fn bytes_an_id(map: &IdMap<(u32, u32)>) -> f64 {
    f64::from(u32::try_from(map.bytes()).unwrap()) / f64::from(u32::try_from(map.len()).unwrap())
}

#[test]
fn dense_ids_take_little_more_than_their_values() {
    for order in [(0..100_000).collect(), shuffled(100_000, 3)] {
        let mut map = filled(order);
        settle(&mut map);
        let bytes = bytes_an_id(&map);
        assert!(bytes <= 10.5, "{bytes} bytes an id");
    }
}

#[test]
fn ids_alone_in_their_pages_take_a_value_a_header_and_a_slot() {
    let mut map = filled(shuffled(100_000, 3).iter().map(|n| n * 16));
    settle(&mut map);
    let bytes = bytes_an_id(&map);
    assert!(bytes <= 40.0, "{bytes} bytes an id");
}

#[test]
fn a_few_ids_take_few_bytes() {
    assert_eq!(IdMap::<u64>::new(1).bytes(), 0);
    let bytes = filled(0..5).bytes();
    assert!(bytes <= 1024, "{bytes} bytes");
}

#[test]
fn memory_is_given_back() {
    for order in [(0..100_000).collect(), shuffled(100_000, 3)] {
        let mut map = filled(0..100_000);
        for &number in order.iter().filter(|&number| number % 100 != 0) {
            map.remove(id(number));
        }
        let fresh = filled((0..100_000).step_by(100));
        let (bytes, fresh) = (map.bytes(), fresh.bytes());
        assert!(bytes <= 3 * fresh + (8 << 10), "{bytes} against {fresh}");
        for number in order.into_iter().filter(|&number| number % 100 == 0) {
            // Two ids are left: most memory is freed before the last removals.
            if map.len() == 2 {
                assert!(map.bytes() <= 8 << 10, "{} bytes", map.bytes());
            }
            map.remove(id(number));
        }
        assert_eq!((map.len(), map.bytes()), (0, 0));
    }
}

/// Checks the largest and the mean work of single operations.
#[cfg(debug_assertions)]
#[test]
fn no_operation_does_much() {
    for ids in [Ids::Dense, Ids::Gaps(16), Ids::Gaps(1000), Ids::Random] {
        for seed in 0..4 {
            let mut map = IdMap::new(seed);
            let (mut max_work, mut probed) = (work::Work::default(), 0);
            let mut count = || {
                let work = work::take();
                max_work.moved = max_work.moved.max(work.moved);
                max_work.swept = max_work.swept.max(work.swept);
                max_work.probed = max_work.probed.max(work.probed);
                probed += work.probed;
            };
            count();
            for n in shuffled(100_000, seed) {
                map.set(ids.nth(n), n);
                count();
            }
            for n in 0..100_000 {
                map.remove(ids.nth(n));
                count();
            }
            // Three blocks copied, 16 entries swept, and one entry added or a few moved
            // into a gap.
            assert!(
                max_work.moved <= 3 * PAGE_IDS + hashed::SWEPT_SLOTS + 64,
                "{max_work:?}"
            );
            assert_eq!(max_work.swept, hashed::SWEPT_SLOTS, "{max_work:?}");
            assert!(max_work.probed <= 2048, "{max_work:?}");
            assert!(probed <= 40 * 200_000, "{probed} slots probed");
        }
    }
}

/// Returns the mean time of an operation.
fn mean(numbers: &[u32], mut act: impl FnMut(RuleId)) -> Duration {
    let begin = Instant::now();
    for &number in numbers {
        act(id(number));
    }
    begin.elapsed() / u32::try_from(numbers.len()).unwrap()
}

/// Takes the shortest time of each operation, so that interruptions do not count.
fn least(times: &mut [Duration], numbers: &[u32], mut act: impl FnMut(RuleId)) {
    for (time, &number) in times.iter_mut().zip(numbers) {
        let begin = Instant::now();
        act(id(number));
        *time = begin.elapsed().min(*time);
    }
}

/// Run by hand: `cargo test -p classyard --lib --release id_map -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout)] // what it is for
fn times_of_a_million_ids() {
    let (order, removal_order) = (shuffled(1_000_000, 5), shuffled(1_000_000, 6));
    let mut times = [(); 2].map(|()| vec![Duration::MAX; order.len()]);
    for round in 0..5 {
        let mut map = IdMap::new(1);
        let set = mean(&order, |id| _ = map.set(id, value(id)));
        let bytes = bytes_an_id(&map);
        let get = mean(&removal_order, |id| {
            assert_eq!(map.get(id), Some(value(id)));
        });
        let remove = mean(&removal_order, |id| _ = map.remove(id));
        println!("{round}: set {set:?}, get {get:?}, remove {remove:?}, {bytes:.2} bytes an id");
        let [sets, removes] = &mut times;
        least(sets, &order, |id| _ = map.set(id, value(id)));
        least(removes, &removal_order, |id| _ = map.remove(id));
    }
    for (name, mut times) in ["set", "remove"].into_iter().zip(times) {
        times.sort_unstable();
        println!("longest {name}s: {:?}", &times[times.len() - 4..]);
    }
}
