//! The part of a rule that masks depend on: exact bits and rank.

use crate::model::seed::splitmix;

/// The exact bits of a rule, and its rank. The upper ends of ranges are left out: a
/// range counts with the leading bits that its values share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline<const W: usize> {
    /// May have bits outside of the mask: the lower ends of ranges.
    pub(super) value: [u64; W],
    pub(super) mask: [u64; W],
    /// A smaller rank is better.
    pub(super) rank: u64,
}

/// The bits of a header that its rule leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Zeros,
    Ones,
    Random,
}

impl Ends {
    /// Returns the ends for header `number`. Every other pair of headers gets random
    /// bits, since real headers crowd at the ends of prefixes.
    pub(super) fn alternate(number: usize) -> Ends {
        match number % 4 {
            0 => Ends::Zeros,
            1 => Ends::Ones,
            _ => Ends::Random,
        }
    }
}

impl<const W: usize> Outline<W> {
    /// Returns a header that the rule matches.
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

    /// True if a table with that mask can hold the rule: all bits of the mask are
    /// exact in the rule.
    #[inline]
    pub(super) fn fits(&self, mask: &[u64; W]) -> bool {
        lacks(&self.mask, mask) == 0
    }
}

/// Not zero if some of the bits are not in the mask.
#[inline]
pub(super) fn lacks<const W: usize>(mask: &[u64; W], bits: &[u64; W]) -> u64 {
    let missing = mask.iter().zip(bits);
    missing.fold(0, |missing, (mask, bits)| missing | (bits & !mask))
}
