//! A rule, as far as masks are concerned: exact bits and rank.

use crate::seed::splitmix;

/// The bits of a rule that are exact, and its rank. The upper ends of ranges are
/// left out: a range counts with the leading bits that its values share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline<const W: usize> {
    /// May have bits outside of the mask: the lower ends of ranges.
    pub(super) value: [u64; W],
    pub(super) mask: [u64; W],
    /// The better, the smaller.
    pub(super) rank: u64,
}

/// What a header has where its rule is wild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Zeros,
    Ones,
    Random,
}

impl Ends {
    /// For the header of that number. Random for every other pair: real headers
    /// crowd at the ends of prefixes.
    pub(super) fn alternate(number: usize) -> Ends {
        match number % 4 {
            0 => Ends::Zeros,
            1 => Ends::Ones,
            _ => Ends::Random,
        }
    }
}

impl<const W: usize> Outline<W> {
    /// A header of the rule.
    pub(super) fn header(&self, ends: Ends, state: &mut u64) -> [u64; W] {
        std::array::from_fn(|word| {
            let wild = match ends {
                Ends::Zeros => 0,
                Ends::Ones => u64::MAX,
                Ends::Random => splitmix(state),
            };
            (self.value[word] & self.mask[word]) | (wild & !self.mask[word])
        })
    }

    /// Whether a table with that mask can hold the rule: all bits of the mask are
    /// exact in it.
    #[inline]
    pub(super) fn fits(&self, mask: &[u64; W]) -> bool {
        lacks(&self.mask, mask) == 0
    }
}

/// Not zero where some of the bits are not in the mask.
#[inline]
pub(super) fn lacks<const W: usize>(mask: &[u64; W], bits: &[u64; W]) -> u64 {
    let missing = mask.iter().zip(bits);
    missing.fold(0, |missing, (mask, bits)| missing | (bits & !mask))
}
