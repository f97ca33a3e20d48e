//! A bit for each unit of an array.

/// Bits that can be set, cleared, and searched forwards.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// Changes the number of bits; new bits are clear.
    pub(super) fn resize(&mut self, len: usize) {
        self.words.resize(len.div_ceil(64), 0);
        if len < self.len
            && let Some(last) = self.words.last_mut()
            && !len.is_multiple_of(64)
        {
            *last &= !(u64::MAX << (len % 64));
        }
        self.len = len;
        if self.words.capacity() > 64 + 4 * self.words.len() {
            self.words.shrink_to(2 * self.words.len());
        }
    }

    pub(super) fn get(&self, index: usize) -> bool {
        self.words[index / 64] >> (index % 64) & 1 != 0
    }

    pub(super) fn set(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }

    pub(super) fn clear(&mut self, index: usize) {
        self.words[index / 64] &= !(1 << (index % 64));
    }

    /// Returns the first set bit at or after `start`.
    pub(super) fn next_one(&self, start: usize) -> Option<usize> {
        let mut word = start / 64;
        let mut bits = self.words.get(word)? & u64::MAX << (start % 64);
        while bits == 0 {
            word += 1;
            bits = *self.words.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_found_and_forgotten() {
        let mut bits = Bits::default();
        bits.resize(200);
        for index in [3, 64, 199] {
            bits.set(index);
        }
        assert_eq!(bits.next_one(0), Some(3));
        assert_eq!(bits.next_one(4), Some(64));
        assert_eq!(bits.next_one(65), Some(199));
        assert_eq!(bits.next_one(500), None);
        bits.clear(64);
        assert!(!bits.get(64) && bits.get(199));
        bits.resize(66);
        bits.resize(200);
        assert_eq!(
            bits.next_one(4),
            None,
            "removed bits are clear when they return"
        );
    }
}
