//! Unsafe code for speed that any engine can use: what the processor can do and
//! the language cannot say.
//!
//! | module | what it has |
//! |---|---|
//! | `isa` | which vector instructions the processor has, proofs of that, masks of the first lanes |
//! | [`bits`] | rows of bits, joined 512 at a time |
//! | [`lanes`] | one key compared with eight rules at a time |
//! | [`pages`] | huge pages |
//! | this one | prefetching, alignment to cache lines |
//!
//! Kernels that know an engine's data layout are with that engine
//! (`engine/forest/kernels/`). Each function here is safe to call with any
//! argument and changes speed, never results.

#![allow(unsafe_code)]

pub(crate) mod bits;
mod isa;
pub(crate) mod lanes;
pub(crate) mod pages;

pub(crate) use isa::Isa;
#[cfg(target_arch = "x86_64")]
pub(crate) use isa::{Avx2, Avx512, first_bits, first_four, first_of_32};

/// Words that begin with a cache line, so that whole vectors of them lie within
/// one.
#[derive(Clone, Debug, PartialEq)]
#[repr(align(64))]
pub(crate) struct Aligned<T>(pub(crate) T);

impl<T> std::ops::Deref for Aligned<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// Prefetches the cache line of a value that is used soon. Does nothing on
/// processors without such an instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing as far as the program can tell and
        // cannot fault, whatever the address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// The same for a value that is used later. Its line is fetched into the
/// second-level cache only: more of such requests can be under way than of those
/// that fill the first.
#[inline(always)]
pub(crate) fn prefetch_early<T>(value: &T) {
    prefetch_early_at(std::slice::from_ref(value), 0);
}

/// The same for the value at a position, which may be beyond the end: then
/// nothing useful is fetched.
#[inline(always)]
pub(crate) fn prefetch_early_at<T>(values: &[T], position: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let address = values.as_ptr().wrapping_add(position);
        // SAFETY: a prefetch reads nothing as far as the program can tell and
        // cannot fault, whatever the address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, position);
}
