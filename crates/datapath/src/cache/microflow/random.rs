//! Random numbers for caches: cheap, and the same for the same seed.

/// SplitMix64: a counter whose bits are mixed.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 64 random bits.
    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `bound`, which is at least 1.
    #[inline]
    pub(super) fn below(&mut self, bound: usize) -> usize {
        scaled(self.bits() >> 32, bound)
    }

    /// True once in two.
    #[inline]
    pub(super) fn coin(&mut self) -> bool {
        self.bits() >> 63 == 1
    }
}

/// Bits that all depend on all bits of a number.
#[inline]
pub(super) fn mixed(number: u64) -> u64 {
    let z = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Leads 32 bits to a number below `bound`, evenly, without a division. There are at most
/// 2³² numbers.
#[inline]
pub(super) fn scaled(bits32: u64, bound: usize) -> usize {
    #[allow(clippy::cast_possible_truncation)] // below the bound
    let number = ((bits32 * bound as u64) >> 32) as usize;
    number
}

/// The low 32 bits.
#[inline]
pub(super) fn low(flow: u64) -> u32 {
    #[allow(clippy::cast_possible_truncation)] // what it is for
    let low = flow as u32;
    low
}

/// The bucket of a flow, of so many: by the high 32 bits of its hash, so that it is
/// independent of signatures, which are low bits.
#[inline]
pub(super) fn bucket_of(flow: u64, buckets: usize) -> usize {
    scaled(flow >> 32, buckets)
}
