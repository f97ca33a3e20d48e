//! One value under a mask: the headers that agree with it.

use std::fmt;

/// All headers of `W` words that agree with a value on the bits of a mask.
///
/// Two terms are equal if they are the same set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term<const W: usize> {
    value: [u64; W],
    mask: [u64; W],
}

impl<const W: usize> Term<W> {
    /// All headers.
    pub const ANY: Term<W> = Term {
        value: [0; W],
        mask: [0; W],
    };

    /// The headers that agree with `value` on the bits of `mask`; other bits of `value`
    /// are dropped.
    #[must_use]
    pub fn new(value: [u64; W], mask: [u64; W]) -> Term<W> {
        Term {
            value: std::array::from_fn(|word| value[word] & mask[word]),
            mask,
        }
    }

    /// The one header.
    #[must_use]
    pub fn exact(point: [u64; W]) -> Term<W> {
        Term::new(point, [u64::MAX; W])
    }

    /// The bits that headers must have. Those outside of the mask are 0.
    #[must_use]
    pub fn value(&self) -> &[u64; W] {
        &self.value
    }

    /// The bits that are looked at.
    #[must_use]
    pub fn mask(&self) -> &[u64; W] {
        &self.mask
    }

    /// How many bits are looked at.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.mask.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether a header is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, point: &[u64; W]) -> bool {
        (0..W).all(|word| (point[word] ^ self.value[word]) & self.mask[word] == 0)
    }

    /// The bits that are looked at and in which a header differs. They are all 0 if and
    /// only if the header is in the set.
    #[inline]
    #[must_use]
    pub fn differing(&self, point: &[u64; W]) -> [u64; W] {
        std::array::from_fn(|word| (point[word] ^ self.value[word]) & self.mask[word])
    }

    /// Whether some header is in both.
    #[must_use]
    pub fn overlaps(&self, other: &Term<W>) -> bool {
        (0..W).all(|word| {
            let both = self.mask[word] & other.mask[word];
            (self.value[word] ^ other.value[word]) & both == 0
        })
    }

    /// Whether all headers of the other set are in this one.
    #[must_use]
    pub fn covers(&self, other: &Term<W>) -> bool {
        (0..W).all(|word| self.mask[word] & !other.mask[word] == 0) && self.overlaps(other)
    }

    /// The headers that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Term<W>) -> Option<Term<W>> {
        self.overlaps(other).then(|| Term {
            value: std::array::from_fn(|word| self.value[word] | other.value[word]),
            mask: std::array::from_fn(|word| self.mask[word] | other.mask[word]),
        })
    }

    /// The headers that are in this set and not in the other: disjoint terms, at most as
    /// many as the other has bits that this one does not look at.
    ///
    /// A part for each of these bits: it differs from the other set there, and agrees
    /// with it in the bits before.
    pub fn difference(&self, other: &Term<W>) -> impl Iterator<Item = Term<W>> + use<W> {
        let apart = !self.overlaps(other);
        let (mut agreeing, other) = (*self, *other);
        let mut left: [u64; W] = match apart {
            true => [0; W],
            false => std::array::from_fn(|word| other.mask[word] & !self.mask[word]),
        };
        let mut word = 0;
        let parts = std::iter::from_fn(move || {
            while left.get(word)? == &0 {
                word += 1;
            }
            let bit = 1 << left[word].ilog2();
            left[word] ^= bit;
            let mut part = agreeing;
            part.mask[word] |= bit;
            agreeing.mask[word] |= bit;
            part.value[word] |= !other.value[word] & bit;
            agreeing.value[word] |= other.value[word] & bit;
            Some(part)
        });
        apart.then_some(*self).into_iter().chain(parts)
    }

    /// The headers that are not in this set: disjoint terms, as many as it looks at bits.
    pub fn complement(&self) -> impl Iterator<Item = Term<W>> + use<W> {
        Term::ANY.difference(self)
    }

    /// What the headers are after the bits of `mask` have been set to those of `value`,
    /// as set-field does.
    #[must_use]
    pub fn with_bits(&self, value: &[u64; W], mask: &[u64; W]) -> Term<W> {
        Term {
            value: std::array::from_fn(|word| {
                self.value[word] & !mask[word] | value[word] & mask[word]
            }),
            mask: std::array::from_fn(|word| self.mask[word] | mask[word]),
        }
    }

    /// The headers that are in this set once the bits of `mask` have been set to those of
    /// `value`: the reverse of [`Term::with_bits`]. `None` if there are none, since a bit
    /// that is set differs from the set.
    #[must_use]
    pub fn before_bits(&self, value: &[u64; W], mask: &[u64; W]) -> Option<Term<W>> {
        let constant = Term::new(*value, *mask);
        constant.overlaps(self).then(|| {
            let kept = std::array::from_fn(|word| self.mask[word] & !mask[word]);
            Term::new(self.value, kept)
        })
    }
}

impl<const W: usize> fmt::Display for Term<W> {
    /// `value/mask` word by word, without words that are not looked at; `any`.
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
