//! Unsafe code for speed, shared by all engines: processor features that the
//! language does not offer.
//!
//! | module | contents |
//! |---|---|
//! | `isa` | vector instruction sets of the processor, proof values for them |
//! | [`vector`] | what a kernel may do with vectors; kernels are written once for all sets |
//! | `avx512`, `avx2`, `neon`, `plain` | the vectors of each set |
//! | `pair`, `execute` | two vectors as one; calls of instructions |
//! | [`bits`] | intersection of bit rows, 512 bits at a time |
//! | [`lanes`] | one key compared with eight rules at a time |
//! | [`pages`] | huge pages |
//! | this module | prefetching, alignment to cache lines |
//!
//! Kernels for an engine's own data layout are in that engine
//! (`engine/forest/kernels/`). Each function in this module is safe to call
//! with any argument, and changes speed, never results.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod bits;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod execute;
mod isa;
pub(crate) mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod pages;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod pair;
mod plain;
pub(crate) mod vector;

pub(crate) use isa::Isa;

/// Words aligned to a cache line, so that whole vectors of them are within one
/// line.
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

/// Returns the word, held in a general register. So the compiler does not compute it in
/// a vector: two products of 64 bits take 5 cycles as words, and 20 as an AVX2 vector.
#[inline(always)]
pub(crate) fn in_general_register(word: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut word = word;
        // SAFETY: the block is empty, so nothing is executed.
        unsafe {
            std::arch::asm!("/* {} */", inout(reg) word, options(pure, nomem, nostack, preserves_flags));
        }
        word
    }
    #[cfg(not(target_arch = "x86_64"))]
    word
}

/// Prefetches the cache line of a value that is used soon. Does nothing on
/// processors without a prefetch instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no visible effect on the program and cannot
        // fault, whatever the address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Prefetches a value that is used later, only into the second-level cache:
/// more such requests can be in flight than requests that fill the first-level
/// cache.
#[inline(always)]
pub(crate) fn prefetch_early<T>(value: &T) {
    prefetch_early_at(std::slice::from_ref(value), 0);
}

/// Like [`prefetch_early`], for the value at `position`. A position beyond the
/// end is allowed, but fetches nothing useful.
#[inline(always)]
pub(crate) fn prefetch_early_at<T>(values: &[T], position: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let address = values.as_ptr().wrapping_add(position);
        // SAFETY: a prefetch has no visible effect on the program and cannot
        // fault, whatever the address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, position);
}
