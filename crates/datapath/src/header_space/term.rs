//! Terms: a value under a mask, and the headers that match it.

use std::fmt;

/// All headers of `W` words that have a given value on the bits of a mask.
///
/// Two terms are equal if they are equal as sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term<const W: usize> {
    value: [u64; W],
    mask: [u64; W],
}

impl<const W: usize> Term<W> {
    /// The set of all headers.
    pub const ANY: Term<W> = Term {
        value: [0; W],
        mask: [0; W],
    };

    /// Returns the headers that have `value` on the bits of `mask`; other bits of `value`
    /// are dropped.
    #[must_use]
    pub fn new(value: [u64; W], mask: [u64; W]) -> Term<W> {
        Term {
            value: std::array::from_fn(|word| value[word] & mask[word]),
            mask,
        }
    }

    /// Returns the set of one header.
    #[must_use]
    pub fn exact(point: [u64; W]) -> Term<W> {
        Term::new(point, [u64::MAX; W])
    }

    /// Returns the required bits. Bits outside of the mask are 0.
    #[must_use]
    pub fn value(&self) -> &[u64; W] {
        &self.value
    }

    /// Returns the compared bits.
    #[must_use]
    pub fn mask(&self) -> &[u64; W] {
        &self.mask
    }

    /// Returns the number of compared bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.mask.iter().map(|word| word.count_ones()).sum()
    }

    /// True if a header is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, point: &[u64; W]) -> bool {
        (0..W).all(|word| (point[word] ^ self.value[word]) & self.mask[word] == 0)
    }

    /// Returns the compared bits where a header differs. The result is 0 if and only
    /// if the header is in the set.
    #[inline]
    #[must_use]
    pub fn differing(&self, point: &[u64; W]) -> [u64; W] {
        std::array::from_fn(|word| (point[word] ^ self.value[word]) & self.mask[word])
    }

    /// True if some header is in both sets.
    #[must_use]
    pub fn overlaps(&self, other: &Term<W>) -> bool {
        (0..W).all(|word| {
            let common_mask = self.mask[word] & other.mask[word];
            (self.value[word] ^ other.value[word]) & common_mask == 0
        })
    }

    /// True if all headers of `other` are in this set.
    #[must_use]
    pub fn covers(&self, other: &Term<W>) -> bool {
        (0..W).all(|word| self.mask[word] & !other.mask[word] == 0) && self.overlaps(other)
    }

    /// Returns the headers that are in both sets, or `None` if there are none.
    #[must_use]
    pub fn intersection(&self, other: &Term<W>) -> Option<Term<W>> {
        self.overlaps(other).then(|| Term {
            value: std::array::from_fn(|word| self.value[word] | other.value[word]),
            mask: std::array::from_fn(|word| self.mask[word] | other.mask[word]),
        })
    }

    /// Returns the smallest term that contains both: the bits that both have with the same
    /// value.
    #[must_use]
    pub fn agreement(&self, other: &Term<W>) -> Term<W> {
        let mask = std::array::from_fn(|word| {
            self.mask[word] & other.mask[word] & !(self.value[word] ^ other.value[word])
        });
        Term::new(self.value, mask)
    }

    /// Returns the headers that are in this set and not in `other`, as disjoint terms.
    ///
    /// There is one term for each mask bit of `other` that this set does not have. The
    /// term differs from `other` in this bit and agrees with it in the bits before.
    pub fn difference(&self, other: &Term<W>) -> impl Iterator<Item = Term<W>> + use<W> {
        let apart = !self.overlaps(other);
        let (mut agreeing, other) = (*self, *other);
        let mut remaining: [u64; W] = match apart {
            true => [0; W],
            false => std::array::from_fn(|word| other.mask[word] & !self.mask[word]),
        };
        let mut word = 0;
        let parts = std::iter::from_fn(move || {
            while remaining.get(word)? == &0 {
                word += 1;
            }
            let bit = 1 << remaining[word].ilog2();
            remaining[word] ^= bit;
            let mut part = agreeing;
            part.mask[word] |= bit;
            agreeing.mask[word] |= bit;
            part.value[word] |= !other.value[word] & bit;
            agreeing.value[word] |= other.value[word] & bit;
            Some(part)
        });
        apart.then_some(*self).into_iter().chain(parts)
    }

    /// Returns the headers that are not in this set: one disjoint term for each mask bit.
    pub fn complement(&self) -> impl Iterator<Item = Term<W>> + use<W> {
        Term::ANY.difference(self)
    }

    /// Returns the headers after the bits of `mask` have been set to `value`, as in
    /// set-field.
    #[must_use]
    pub fn with_bits(&self, value: &[u64; W], mask: &[u64; W]) -> Term<W> {
        Term {
            value: std::array::from_fn(|word| {
                self.value[word] & !mask[word] | value[word] & mask[word]
            }),
            mask: std::array::from_fn(|word| self.mask[word] | mask[word]),
        }
    }

    /// Returns the headers that are in this set after the bits of `mask` have been set to
    /// `value`: the reverse of [`Term::with_bits`]. `None` if a bit that is set differs
    /// from the set.
    #[must_use]
    pub fn before_bits(&self, value: &[u64; W], mask: &[u64; W]) -> Option<Term<W>> {
        let constant = Term::new(*value, *mask);
        constant.overlaps(self).then(|| {
            let unset_mask = std::array::from_fn(|word| self.mask[word] & !mask[word]);
            Term::new(self.value, unset_mask)
        })
    }
}

impl<const W: usize> fmt::Display for Term<W> {
    /// Writes `value/mask` word by word, without words whose mask is 0; or `any`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let looked_at = (0..W).filter(|&word| self.mask[word] != 0);
        let mut separator = "";
        for word in looked_at {
            let (value, mask) = (self.value[word], self.mask[word]);
            write!(f, "{separator}{word}:{value:#x}/{mask:#x}")?;
            separator = ",";
        }
        match separator {
            "" => f.write_str("any"),
            _ => Ok(()),
        }
    }
}
