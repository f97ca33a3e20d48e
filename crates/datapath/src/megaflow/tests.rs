//! Checks that every computed flow has one winner, and compares the algorithms.

use std::sync::Arc;

use proptest::prelude::*;

use super::simulator::{Cache, Table};
use super::*;
use classyard::author::splitmix;

type Boxed<const W: usize> = Box<dyn Heuristic<W>>;

impl<const W: usize> Heuristic<W> for Boxed<W> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn tell_apart(
        &mut self,
        packet: &[u64; W],
        above: usize,
        wanted: &mut [u64; W],
    ) -> Result<(), TooMuchWork> {
        (**self).tell_apart(packet, above, wanted)
    }
}

/// Returns all heuristics, with limits that small universes do not reach.
fn all<const W: usize>(rules: &Arc<[Term<W>]>) -> Vec<Boxed<W>> {
    vec![
        Box::new(Naive::new(rules)),
        Box::new(CommonMatch::new(Arc::clone(rules))),
        Box::new(MultiBit::new(Arc::clone(rules))),
        Box::new(PrefixTree::new(rules)),
        Box::new(BruteForce::new(Arc::clone(rules), 1 << 12)),
        Box::new(FewestMasks::new(Arc::clone(rules))),
        Box::new(FewestMasks::with_masks(Arc::clone(rules), 4, 4)),
        Box::new(FewestMasks::with_masks(Arc::clone(rules), 1, 0)),
    ]
}

/// Spreads some bits over two words.
fn place(bits: u64, value: u64) -> [u64; 2] {
    let mut words = [0; 2];
    for bit in 0..bits {
        words[(bit % 2) as usize] |= (value >> bit & 1) << (7 * (bit / 2));
    }
    words
}

/// Generates rules over `bits` bits: exact, prefixes or any masks.
fn some_rules(bits: u64) -> impl Strategy<Value = Vec<Term<2>>> {
    let value = 0u64..1 << bits;
    let mask = prop_oneof![
        Just((1u64 << bits) - 1),
        (0..=bits).prop_map(move |open| (1u64 << bits) - (1u64 << open)),
        0u64..1 << bits,
    ];
    let rule = (value, mask).prop_map(move |(v, m)| Term::new(place(bits, v), place(bits, m)));
    prop::collection::vec(rule, 0..12)
}

fn check_all(bits: u64, rules: Vec<Term<2>>) -> Result<(), TestCaseError> {
    let rules: Arc<[Term<2>]> = rules.into();
    let table = Table::new(Arc::clone(&rules));
    let universe: Vec<[u64; 2]> = (0..1 << bits).map(|value| place(bits, value)).collect();
    let mut winners = Vec::new();
    for packet in &universe {
        let first = rules.iter().position(|rule| rule.contains(packet));
        prop_assert_eq!(table.winner(packet), first);
        winners.push(first);
    }
    let mut fewest: Vec<u32> = vec![u32::MAX; universe.len()];
    let mut least: Vec<u32> = Vec::new();
    for mut heuristic in all(&rules) {
        let mut cache = Cache::new();
        for (number, packet) in universe.iter().enumerate() {
            let flow = table.megaflow(packet, &mut heuristic).unwrap();
            prop_assert!(flow.term.contains(packet));
            prop_assert_eq!(flow.winner, winners[number]);
            for (other, winner) in universe.iter().zip(&winners) {
                prop_assert!(
                    !flow.term.contains(other) || *winner == flow.winner,
                    "{}: {} holds {:?} and {:?}",
                    heuristic.name(),
                    flow.term,
                    packet,
                    other
                );
            }
            fewest[number] = fewest[number].min(flow.term.bits());
            if heuristic.name() == "brute force" {
                least.push(flow.term.bits());
            }
            cache.insert(&flow);
            prop_assert_eq!(cache.get(packet), Some(flow.winner));
        }
        prop_assert!(cache.masks() <= cache.flows());
        // Any bits may already be wanted.
        for (number, packet) in universe.iter().enumerate() {
            let above = winners[number].unwrap_or(rules.len());
            let before = place(bits, (number as u64 * 0x9e37) >> 3);
            let mut wanted = before;
            heuristic.tell_apart(packet, above, &mut wanted).unwrap();
            prop_assert_eq!(and(&wanted, &before), before);
            let apart = |rule: &Term<2>| tells_apart(&wanted, packet, rule);
            prop_assert!(rules[..above].iter().all(apart), "{}", heuristic.name());
        }
    }
    // No heuristic has fewer bits than brute force.
    prop_assert_eq!(fewest, least);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn flows_of_six_bits_have_one_winner(rules in some_rules(6)) {
        check_all(6, rules)?;
    }

    #[test]
    fn flows_of_eight_bits_have_one_winner(rules in some_rules(8)) {
        check_all(8, rules)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn flows_of_ten_bits_have_one_winner(rules in some_rules(10)) {
        check_all(10, rules)?;
    }
}

/// Returns a reproducible generator of random numbers.
pub(super) fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || splitmix(&mut state)
}

/// Rules over many words, too many for a plan. Packets are close to the rules, and the
/// packets that flows cover are sampled.
#[test]
fn flows_over_many_words_have_one_winner() {
    let mut next = numbers(3);
    let mut random = |bits: u32| -> [u64; 4] {
        std::array::from_fn(|_| (0..bits).fold(u64::MAX, |all, _| all & next()))
    };
    let rules: Vec<Term<4>> = (0..200)
        .map(|number| match number % 3 {
            0 => Term::exact(random(1)),
            _ => Term::new(random(1), random(4)),
        })
        .collect();
    let rules: Arc<[Term<4>]> = rules.into();
    let table = Table::new(Arc::clone(&rules));
    let mut heuristics = all(&rules);
    // Brute force is left out: over 256 bits it reaches its limit unless few bits
    // suffice.
    heuristics.remove(4);
    for mut heuristic in heuristics {
        for number in 0..300 {
            // A packet that a rule matches, with a few flipped bits.
            let (base, flips) = (random(1), random(6));
            let rule = &rules[number % rules.len()];
            let near: [u64; 4] =
                std::array::from_fn(|word| base[word] & !rule.mask()[word] | rule.value()[word]);
            let packet: [u64; 4] = std::array::from_fn(|word| near[word] ^ flips[word]);
            let flow = table.megaflow(&packet, &mut heuristic).unwrap();
            for _ in 0..20 {
                let (other, few) = (random(1), random(3));
                let mask = flow.term.mask();
                let inside: [u64; 4] = std::array::from_fn(|word| {
                    packet[word] ^ other[word] & few[word] & !mask[word]
                });
                assert_eq!(table.winner(&inside), flow.winner, "{}", heuristic.name());
            }
        }
    }
    let mut brute = BruteForce::new(Arc::clone(&rules), 10);
    let error = table.megaflow(&[1, 2, 3, 4], &mut brute).unwrap_err();
    assert_eq!(
        error.to_string(),
        "more than 10 masks would have to be tried"
    );
}

/// Returns distinct random ports in ascending order.
fn ports(count: usize, seed: u64) -> Arc<[Term<1>]> {
    let mut next = numbers(seed);
    let mut ports = std::collections::BTreeSet::new();
    while ports.len() < count {
        ports.insert(next() & 0xffff);
    }
    ports
        .into_iter()
        .map(|port| Term::new([port], [0xffff]))
        .collect()
}

/// Returns the number of flows and masks after all ports have been sent.
fn scan(table: &Table<1>, heuristic: &mut impl Heuristic<1>) -> (usize, usize) {
    let mut cache = Cache::new();
    let mut order: Vec<u64> = (0..1 << 16).collect();
    let mut next = numbers(9);
    for place in (1..order.len()).rev() {
        let other = next() % (place as u64 + 1);
        order.swap(place, usize::try_from(other).unwrap());
    }
    for port in order {
        if cache.get(&[port]).is_none() {
            cache.insert(&table.megaflow(&[port], heuristic).unwrap());
        }
    }
    (cache.flows(), cache.masks())
}

/// A small version of [FCH14] Table 4.
///
/// [FCH14]: classyard::papers#fch14
#[test]
fn fewest_masks_has_fewer_flows_than_both_and_32_masks() {
    for (count, seed) in [(0, 1), (1, 1), (10, 1), (10, 2), (100, 1)] {
        let rules = ports(count, seed);
        let table = Table::new(Arc::clone(&rules));
        let common = scan(&table, &mut CommonMatch::new(Arc::clone(&rules)));
        let tree = scan(&table, &mut PrefixTree::new(&rules));
        let mut fewest = FewestMasks::new(Arc::clone(&rules));
        let ours = scan(&table, &mut fewest);
        assert!(
            ours.0 <= common.0.min(tree.0),
            "{count}: {ours:?} {common:?} {tree:?}"
        );
        assert!(ours.1 <= 32 && tree.1 <= 17);
        assert!(ours.0 <= fewest.planned_flows().unwrap() + count);
    }
}

/// The number of masks is bounded, whatever the rules and packets are.
#[test]
fn masks_are_bounded() {
    let mut next = numbers(4);
    let rules: Arc<[Term<2>]> = (0..300)
        .map(|_| Term::new([next(), next()], [next() & 0xffff_ffff, next() & 0xff]))
        .collect();
    let table = Table::new(Arc::clone(&rules));
    for most in [1, 2, 8, 32] {
        let mut heuristic = FewestMasks::with_masks(Arc::clone(&rules), most, 0);
        assert_eq!(heuristic.planned_flows(), None);
        let mut masks = std::collections::HashSet::new();
        for _ in 0..2_000 {
            let packet = [next(), next()];
            if table.winner(&packet).is_none() {
                let flow = table.megaflow(&packet, &mut heuristic).unwrap();
                masks.insert(*flow.term.mask());
            }
        }
        assert!(masks.len() <= most && heuristic.masks() <= most.max(1));
    }
}

/// [FCH14] §3.2: A = 0101, B = 0110, the packet 1011.
///
/// [FCH14]: classyard::papers#fch14
#[test]
fn the_example_of_the_paper() {
    let rules: Arc<[Term<1>]> = [5u64, 6].map(|value| Term::new([value], [15])).into();
    let bits = |heuristic: &mut dyn Heuristic<1>| -> u64 {
        let mut wanted = [0];
        heuristic.tell_apart(&[11], 2, &mut wanted).unwrap();
        wanted[0]
    };
    assert_eq!(bits(&mut Naive::new(&rules)), 15);
    assert_eq!(bits(&mut CommonMatch::new(Arc::clone(&rules))), 8);
    assert_eq!(bits(&mut PrefixTree::new(&rules)), 8);
    assert_eq!(bits(&mut BruteForce::new(Arc::clone(&rules), 100)), 8);
    // 0111 differs from A in the second bit from the right, and from B in the last bit.
    let mut wanted = [0];
    let mut multi = MultiBit::new(Arc::clone(&rules));
    multi.tell_apart(&[7], 2, &mut wanted).unwrap();
    assert_eq!(wanted, [3]);
}
