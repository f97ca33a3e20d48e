//! The heap of a process that only runs a switch: free memory goes back to the system.
//!
//! The allocator of the GNU C library keeps free memory. A long list that has grown leaves its
//! former memory, and the messages of a large bundle leave gaps between flow entries. Therefore
//! each long list has memory of its own, and the system takes it back when the list is freed. In
//! idle times, the switch gives the gaps back. With other C libraries, nothing is done.

#![allow(unsafe_code)] // Calls of the allocator.

/// Blocks of at least this number of bytes have memory of their own. The allocator starts with
/// this value, and raises it when a longer block is freed, unless a program sets it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LONG_BLOCK_BYTES: libc::c_int = 128 << 10;

/// Bytes of controllers after which gaps are given back. Giving back takes about 10 ms for
/// 100 MB.
const RELEASE_BYTES: u64 = 1 << 20;

/// Gives free memory back after controllers have sent many messages.
#[derive(Debug)]
pub(crate) struct Heap {
    /// Bytes that controllers have sent.
    received: u64,
    /// The bytes at the last tick.
    ticked: u64,
    /// The bytes when free memory was given back.
    released: u64,
}

impl Heap {
    /// Returns the heap of this process. From now on, long lists have memory of their own.
    pub(crate) fn of_process() -> Heap {
        separate_long_blocks();
        Heap {
            // Flows of a file leave gaps too.
            received: RELEASE_BYTES,
            ticked: 0,
            released: 0,
        }
    }

    /// Notes that a controller has sent bytes.
    pub(crate) fn note(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// Gives free memory back if many bytes came, and none since the last call.
    pub(crate) fn tick(&mut self) {
        if self.is_due() {
            release();
        }
    }

    fn is_due(&mut self) -> bool {
        let is_idle = self.ticked == self.received;
        self.ticked = self.received;
        let is_due = is_idle && self.received - self.released >= RELEASE_BYTES;
        if is_due {
            self.released = self.received;
        }
        is_due
    }
}

/// Gives blocks from [`LONG_BLOCK_BYTES`] on memory of their own.
fn separate_long_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the call has no condition; it takes the allocator's lock.
        let is_set = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LONG_BLOCK_BYTES) };
        debug_assert_eq!(is_set, 1, "the allocator has this option");
    }
}

/// Gives all free memory back to the system.
fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call has no condition; it takes the allocator's lock. No byte stays at the end
    // of the heap.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_when_controllers_pause() {
        let mut heap = Heap::of_process();
        let ticks = [false, true, false];
        assert_eq!(ticks.map(|_| heap.is_due()), ticks, "after the start");
        heap.note(1 << 20);
        assert!(!heap.is_due(), "messages have come");
        heap.note(100);
        assert!(!heap.is_due(), "more messages have come");
        assert_eq!([(), ()].map(|()| heap.is_due()), [true, false]);
        heap.note(100);
        assert_eq!(
            [(), ()].map(|()| heap.is_due()),
            [false, false],
            "few bytes"
        );
    }
}
