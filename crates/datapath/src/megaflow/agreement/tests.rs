use classyard::author::splitmix;
use proptest::prelude::*;

use super::{AgreementTrees, WantedBits, prefix_fields};
use crate::bits::{Known, Words};
use crate::key::KEY_WORDS;

/// Words in which the small world's bits are: a word with exact fields, the ports and an
/// address.
const WORDS: [usize; 3] = [2, 6, 7];

/// Bits of the small world in each of its words.
const BITS: u32 = 3;

/// A rule of the small world: value and mask of its bits.
#[derive(Clone, Copy, Debug)]
struct SmallRule {
    value: u32,
    mask: u32,
    rank: u64,
}

fn any_rule() -> impl Strategy<Value = SmallRule> {
    let world = 1u32 << (BITS * 3);
    (0..world, 0..world, 0..40u64).prop_map(|(value, mask, rank)| SmallRule {
        value: value & mask,
        mask,
        rank,
    })
}

/// Spreads the bits of the small world over a key.
fn spread(bits: u32) -> Words {
    let mut words = [0; KEY_WORDS];
    for (part, word) in (0..).zip(WORDS) {
        words[word] = u64::from(bits >> (BITS * part) & ((1 << BITS) - 1)) << 5;
    }
    words
}

fn required(rule: &SmallRule) -> Vec<Known> {
    crate::bits::known(&spread(rule.value), &spread(rule.mask))
}

fn winner(rules: &[SmallRule], packet: u32) -> Option<&SmallRule> {
    let matching = rules
        .iter()
        .filter(|rule| (packet ^ rule.value) & rule.mask == 0);
    matching.min_by_key(|rule| rule.rank)
}

/// Checks all packets: those with the same wanted bits have the same winning rank.
fn check(trees: &AgreementTrees, rules: &[SmallRule], is_ipv6: bool) {
    let world = 1u32 << (BITS * 3);
    for packet in 0..world {
        let best = winner(rules, packet);
        let mut mask = spread(best.map_or(0, |rule| rule.mask));
        let rank = best.map_or(u64::MAX, |rule| rule.rank);
        let mut wanted = WantedBits::new(&mut mask, prefix_fields(is_ipv6));
        trees.exclude_better(&spread(packet), rank, &mut wanted);
        for other in 0..world {
            let (one, two) = (spread(packet), spread(other));
            if (0..KEY_WORDS).all(|word| (one[word] ^ two[word]) & mask[word] == 0) {
                let other_rank = winner(rules, other).map(|rule| rule.rank);
                assert_eq!(
                    other_rank,
                    best.map(|rule| rule.rank),
                    "{packet:#x} {other:#x}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn packets_with_the_same_wanted_bits_have_the_same_winner(
        steps in prop::collection::vec((any_rule(), any::<prop::sample::Index>(), 0..3u8), 1..24),
        is_ipv6: bool,
    ) {
        let mut trees = AgreementTrees::default();
        let mut rules: Vec<SmallRule> = Vec::new();
        for (rule, index, step) in steps {
            match step {
                0 if !rules.is_empty() => {
                    let removed = rules.swap_remove(index.index(rules.len()));
                    trees.remove(&required(&removed), removed.rank);
                }
                _ => {
                    rules.push(rule);
                    trees.insert(&required(&rule), rule.rank);
                }
            }
        }
        check(&trees, &rules, is_ipv6);
        for rule in rules.drain(..) {
            trees.remove(&required(&rule), rule.rank);
        }
        prop_assert!(trees.groups.is_empty() && trees.group_indexes.is_empty());
    }
}

#[test]
fn one_bit_excludes_a_group_with_a_common_bit() {
    let mut trees = AgreementTrees::default();
    // Ports 0 to 99 have the upper bits 0; port 0x8000 differs in the highest bit.
    for port in 0..100 {
        let known = Known {
            word: 6,
            mask: 0xffff,
            value: port,
        };
        trees.insert(&[known], port);
    }
    let mut packet = [0; KEY_WORDS];
    packet[6] = 0x8000;
    let mut mask = [0; KEY_WORDS];
    let mut wanted = WantedBits::new(&mut mask, prefix_fields(false));
    trees.exclude_better(&packet, u64::MAX, &mut wanted);
    assert_eq!(mask[6], 0x8000);
}

#[test]
fn a_packet_is_compared_with_a_bounded_number_of_groups() {
    let mut trees = AgreementTrees::default();
    let mut state = 1;
    let mut packet = [0; KEY_WORDS];
    packet[14] = 1 << 63;
    for rank in 0..2 * super::MAX_GROUPS as u64 {
        let mask = splitmix(&mut state) | 1 << 63;
        trees.insert(
            &[Known {
                word: 14,
                mask,
                value: 0,
            }],
            rank,
        );
    }
    let mut mask = [0; KEY_WORDS];
    let mut wanted = WantedBits::new(&mut mask, &[]);
    trees.exclude_better(&packet, u64::MAX, &mut wanted);
    assert_eq!(mask[14], u64::MAX, "all mask bits of all groups");
}
