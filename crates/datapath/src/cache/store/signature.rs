//! Signatures of megaflows: 32 bits of each key, for finding the megaflows that a new
//! rule may overlap.
//!
//! A new rule may make every megaflow that overlaps it wrong. To find these megaflows,
//! the rule is compared with all megaflows. So each megaflow has a short signature: 32
//! bits of its key, at positions that are in the masks of many rules and at which keys
//! differ. If a signature differs from the rule in a bit of the rule's mask, the megaflow
//! does not overlap the rule. The remaining megaflows are compared in full.
//!
//! A table stores keys under its mask, so its signatures only use bits of that mask.

use crate::bits::{Known, Words};
use crate::key::KEY_WORDS;

/// The number of rules that had each bit of a key in their masks.
pub(super) struct Demand(Box<[[u32; 64]; KEY_WORDS]>);

impl Default for Demand {
    fn default() -> Demand {
        Demand(Box::new([[0; 64]; KEY_WORDS]))
    }
}

impl Demand {
    /// Records the mask bits of a rule.
    pub(super) fn note(&mut self, match_bits: &[Known]) {
        for known in match_bits {
            let counts = &mut self.0[usize::from(known.word)];
            for bit in bits(known.mask) {
                counts[bit as usize] = counts[bit as usize].saturating_add(1);
            }
        }
    }
}

/// Returns the set bits of a word, the lowest first.
fn bits(word: u64) -> impl Iterator<Item = u32> {
    let mut remaining = word;
    std::iter::from_fn(move || {
        let bit = (remaining != 0).then(|| remaining.trailing_zeros())?;
        remaining &= remaining - 1;
        Some(bit)
    })
}

/// A bit of a key that is in signatures.
#[derive(Clone, Copy, Debug)]
struct Picked {
    word: u8,
    bit: u8,
}

/// The bits of a key that make its signature: at most 32.
#[derive(Clone, Debug, Default)]
pub(super) struct Signature(Vec<Picked>);

impl Signature {
    /// Picks bits of a mask that rules often have in their masks and where keys differ.
    pub(super) fn pick(mask: &Words, keys: &[Words], demand: &Demand) -> Signature {
        let mut scored = Vec::new();
        for (word, (&mask, counts)) in (0u8..).zip(mask.iter().zip(demand.0.iter())) {
            for bit in bits(mask) {
                let ones = keys
                    .iter()
                    .filter(|key| key[usize::from(word)] >> bit & 1 == 1);
                let ones = ones.count();
                let differ = ones.min(keys.len() - ones) as u64;
                let score = differ * (1 + u64::from(counts[bit as usize]));
                let bit = u8::try_from(bit).expect("less than 64");
                scored.push((score, Picked { word, bit }));
            }
        }
        scored.sort_by_key(|&(score, picked)| {
            (std::cmp::Reverse(score), picked.word, 64 - picked.bit)
        });
        Signature(
            scored
                .into_iter()
                .take(32)
                .map(|(_, picked)| picked)
                .collect(),
        )
    }

    /// Returns the signature of a key.
    pub(super) fn of(&self, key: impl Fn(usize) -> u64) -> u32 {
        let bits = (0..).zip(&self.0);
        bits.fold(0, |all, (position, picked)| {
            all | u32::from(key(usize::from(picked.word)) >> picked.bit & 1 == 1) << position
        })
    }

    /// Returns the value and mask for a rule's comparison with signatures. Bits in
    /// `open`, which actions may have set before the rule, are left out.
    pub(super) fn of_bits(&self, match_bits: &[Known], open: &Words) -> (u32, u32) {
        let (mut value, mut mask) = (0, 0);
        for (position, picked) in (0..).zip(&self.0) {
            let word = usize::from(picked.word);
            let known = match_bits
                .iter()
                .find(|known| usize::from(known.word) == word);
            let Some(known) = known else { continue };
            if (known.mask & !open[word]) >> picked.bit & 1 == 1 {
                mask |= 1 << position;
                value |= u32::from(known.value >> picked.bit & 1 == 1) << position;
            }
        }
        (value, mask)
    }
}

/// The number of signatures compared together. Measured in `bench/records/constants.md`
/// (Signatures and changes).
const CHUNK_SIGNATURES: usize = 32;

/// Finds the positions of signatures that agree with a value under a mask.
pub(super) fn agreeing(signatures: &[u32], (value, mask): (u32, u32), found: &mut Vec<usize>) {
    let differs = |signature: u32| (signature ^ value) & mask;
    let chunks = signatures.chunks_exact(CHUNK_SIGNATURES);
    let chunked = signatures.len() - chunks.remainder().len();
    for (number, chunk) in chunks.enumerate() {
        // Compared without a branch, so the compiler can vectorise it.
        let any = chunk
            .iter()
            .fold(false, |any, &one| any | (differs(one) == 0));
        if any {
            let positions = number * CHUNK_SIGNATURES..;
            let agree = positions.zip(chunk).filter(|&(_, &one)| differs(one) == 0);
            found.extend(agree.map(|(position, _)| position));
        }
    }
    let agree = (chunked..)
        .zip(&signatures[chunked..])
        .filter(|&(_, &one)| differs(one) == 0);
    found.extend(agree.map(|(position, _)| position));
}

#[cfg(test)]
mod tests {
    use classyard::author::fibonacci_hash;

    use super::*;

    #[test]
    fn keys_that_a_rule_may_match_agree_with_it() {
        let mut mask = [0; KEY_WORDS];
        (mask[3], mask[7]) = (0xff00, 0xffff_ffff);
        let keys: Vec<Words> = (0..500_u64)
            .map(|number| {
                let mut key = [0; KEY_WORDS];
                let mixed = fibonacci_hash(number);
                (key[3], key[7]) = (mixed >> 20 & 0xff00, mixed >> 32);
                key
            })
            .collect();
        let mut demand = Demand::default();
        let rule = [
            Known {
                word: 3,
                mask: 0x300,
                value: 0x100,
            },
            Known {
                word: 7,
                mask: 0xf000_0000,
                value: 0xa000_0000,
            },
            Known {
                word: 9,
                mask: 1,
                value: 1,
            },
        ];
        demand.note(&rule);
        let signature = Signature::pick(&mask, &keys, &demand);
        let signatures: Vec<u32> = keys
            .iter()
            .map(|key| signature.of(|word| key[word]))
            .collect();
        let mut positions = Vec::new();
        agreeing(
            &signatures,
            signature.of_bits(&rule, &[0; KEY_WORDS]),
            &mut positions,
        );
        let fits = |key: &Words| key[3] & 0x300 == 0x100 && key[7] & 0xf000_0000 == 0xa000_0000;
        let expected: Vec<usize> = (0..500).filter(|&at| fits(&keys[at])).collect();
        assert!(!expected.is_empty());
        // The rule has all six differing bits, so they are in the signature.
        assert_eq!(positions, expected);
        // Bits that actions set before are ignored.
        let mut open = [0; KEY_WORDS];
        open[7] = u64::MAX;
        positions.clear();
        agreeing(&signatures, signature.of_bits(&rule, &open), &mut positions);
        let expected: Vec<usize> = (0..500)
            .filter(|&at| keys[at][3] & 0x300 == 0x100)
            .collect();
        assert_eq!(positions, expected);
    }
}
