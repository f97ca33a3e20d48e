//! The wanted bits of a packet's key, and the cheapest bit to add.

use classyard::schema::Part;

use crate::bits::Words;
use crate::key::KEY_WORDS;

/// The bits of a packet's key that a megaflow matches on. In some fields, all bits before a
/// wanted bit are wanted too.
pub(crate) struct WantedBits<'m> {
    mask: &'m mut Words,
    prefix_fields: &'m [Part],
}

/// A bit that can be added, and its cost.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    word: usize,
    /// The bit, and the bits before it that are not wanted yet.
    bits: u64,
}

impl<'m> WantedBits<'m> {
    /// Returns the wanted bits of `mask`. In `prefix_fields`, all bits before a wanted bit are
    /// wanted too.
    pub(crate) fn new(mask: &'m mut Words, prefix_fields: &'m [Part]) -> WantedBits<'m> {
        WantedBits {
            mask,
            prefix_fields,
        }
    }

    /// Returns all wanted bits.
    pub(crate) fn mask(&self) -> &Words {
        self.mask
    }

    /// Returns the wanted bits of a word.
    #[inline]
    pub(super) fn word(&self, word: usize) -> u64 {
        self.mask[word]
    }

    /// Adds bits of a word, and the bits before them.
    #[inline]
    pub(crate) fn add(&mut self, word: usize, bits: u64) {
        let mut added = bits;
        for field in self.prefix_fields {
            if field.word == word {
                added |= leading(field, bits);
            }
        }
        self.mask[word] |= added;
    }

    /// Adds bits of a word, and no bits before them.
    #[inline]
    pub(crate) fn add_exactly(&mut self, word: usize, bits: u64) {
        self.mask[word] |= bits;
    }

    /// Adds the bits of a candidate.
    pub(super) fn take(&mut self, candidate: Candidate) {
        self.mask[candidate.word] |= candidate.bits;
    }

    /// Returns the cheapest of some bits of a word: the one that adds the fewest bits, among
    /// equals the highest. Returns `None` if there is no bit.
    pub(super) fn cheapest(&self, word: usize, bits: u64) -> Option<Candidate> {
        let mut remaining = bits;
        let mut best: Option<Candidate> = None;
        for field in self.prefix_fields.iter().filter(|field| field.word == word) {
            let in_field = bits & field.mask();
            remaining &= !field.mask();
            if in_field != 0 {
                let highest = 1 << in_field.ilog2();
                let bits = leading(field, highest) & !self.mask[word];
                best = cheaper(best, Some(Candidate { word, bits }));
            }
        }
        let single = (remaining != 0).then(|| Candidate {
            word,
            bits: 1 << remaining.ilog2(),
        });
        cheaper(best, single)
    }
}

/// Sets of bits, from which one bit each is to be chosen. Every bit of a set excludes all
/// rules of the set. No bit is in two sets.
#[derive(Default)]
pub(super) struct PendingChoices {
    sets: Vec<Words>,
}

impl PendingChoices {
    /// Returns the number of sets.
    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Adds rules. Each bit in `excluding` excludes all of them. `excluding` has parts of words,
    /// and the indexes of the words in a key. The rules join the first set that has some of these
    /// bits, and the set keeps only the bits in common. Otherwise, the rules get a new
    /// set.
    pub(super) fn add(&mut self, excluding: impl Iterator<Item = (usize, u64)> + Clone) {
        let shares = |set: &&mut Words| excluding.clone().any(|(word, bits)| set[word] & bits != 0);
        let mut common_bits = [0; KEY_WORDS];
        match self.sets.iter_mut().find(shares) {
            Some(set) => {
                excluding.for_each(|(word, bits)| common_bits[word] |= set[word] & bits);
                *set = common_bits;
            }
            None => {
                excluding.for_each(|(word, bits)| common_bits[word] |= bits);
                self.sets.push(common_bits);
            }
        }
    }

    /// Adds the cheapest bit of each set to `wanted`, unless `wanted` has a bit of the set.
    /// Removes all sets.
    pub(super) fn choose(&mut self, wanted: &mut WantedBits<'_>) {
        for set in self.sets.drain(..) {
            let words = || set.iter().enumerate();
            if words().any(|(word, bits)| bits & wanted.word(word) != 0) {
                continue;
            }
            let candidates = words().filter_map(|(word, &bits)| wanted.cheapest(word, bits));
            let cheapest = candidates.map(Some).fold(None, cheaper);
            wanted.take(cheapest.expect("a set has a bit"));
        }
    }
}

/// Returns the candidate that adds fewer bits, `one` among equals.
#[inline]
pub(super) fn cheaper(one: Option<Candidate>, two: Option<Candidate>) -> Option<Candidate> {
    let cost = |candidate: &Candidate| candidate.bits.count_ones();
    match (&one, &two) {
        (Some(first), Some(second)) if cost(second) < cost(first) => two,
        (None, _) => two,
        _ => one,
    }
}

/// Returns the bits of a field from its highest bit to the lowest of `bits` in it.
#[inline]
fn leading(field: &Part, bits: u64) -> u64 {
    let in_field = bits & field.mask();
    match in_field {
        0 => 0,
        _ => field.mask() & (u64::MAX << in_field.trailing_zeros()),
    }
}
