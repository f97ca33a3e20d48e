//! The heap of a process that only runs a switch.
//!
//! The allocator of the GNU C library gives long blocks memory of their own, which the system
//! takes back when a block is freed. After a long block is freed, the allocator counts only longer
//! blocks as long. Then a growing list leaves its former memory unused. Therefore the length is
//! fixed. Other C libraries are left unchanged.

#![allow(unsafe_code)] // A call of the allocator.

/// Blocks of at least this number of bytes have memory of their own. The allocator starts with
/// this value.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LONG_BLOCK_BYTES: libc::c_int = 128 << 10;

/// Fixes the length of long blocks for this process.
pub(crate) fn keep_long_blocks_apart() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the call has no condition; it takes the allocator's lock.
        let is_set = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LONG_BLOCK_BYTES) };
        debug_assert_eq!(is_set, 1, "the allocator has this option");
    }
}
