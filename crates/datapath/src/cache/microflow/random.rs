//! Random numbers for caches: fast, and reproducible from the seed.

use classyard::author::splitmix;

/// SplitMix64: a counter whose bits are mixed.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns 64 random bits.
    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        splitmix(&mut self.0)
    }

    /// Returns a number below `bound`, which must be at least 1.
    #[inline]
    pub(super) fn below(&mut self, bound: usize) -> usize {
        scaled(self.bits() >> 32, bound)
    }

    /// Returns true with probability 1/2.
    #[inline]
    pub(super) fn coin(&mut self) -> bool {
        self.bits() >> 63 == 1
    }
}

/// Mixes a number: each bit of the result depends on all bits of `number`.
#[inline]
pub(super) fn mixed(number: u64) -> u64 {
    let z = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Maps 32 bits evenly to a number below `bound`, without a division. `bound` is at most
/// 2³².
#[inline]
pub(super) fn scaled(bits32: u64, bound: usize) -> usize {
    #[allow(clippy::cast_possible_truncation)] // below the bound
    let number = ((bits32 * bound as u64) >> 32) as usize;
    number
}

/// Returns the low 32 bits.
#[inline]
pub(super) fn low(flow: u64) -> u32 {
    #[allow(clippy::cast_possible_truncation)] // only the low bits
    let low = flow as u32;
    low
}

/// Returns the bucket of a flow out of `buckets`. It uses the high 32 bits of the hash,
/// so that it is independent of signatures, which are low bits.
#[inline]
pub(super) fn bucket_of(flow: u64, buckets: usize) -> usize {
    scaled(flow >> 32, buckets)
}
