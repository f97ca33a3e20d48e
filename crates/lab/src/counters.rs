//! Counts events of the processor while a thread works: instructions, cycles, and reads
//! from the first-level data cache.
//!
//! Linux has the counters in the system call `perf_event_open`. Virtual machines often have
//! no counters, and the system may refuse them to a program; then [`Counters::open`] fails,
//! and the caller must say that its numbers are estimates.

use std::fs::File;
use std::io::{self, Read as _};

use serde::{Deserialize, Serialize};

/// Counted events of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) instructions: f64,
    pub(crate) cycles: f64,
    /// `None` if the processor does not count them.
    pub(crate) l1_reads: Option<f64>,
}

impl Counted {
    /// Returns the mean counts of a unit of work, of `units` units.
    pub(crate) fn each_of(self, units: f64) -> Counted {
        let units = units.max(1.0);
        Counted {
            instructions: self.instructions / units,
            cycles: self.cycles / units,
            l1_reads: self.l1_reads.map(|reads| reads / units),
        }
    }
}

/// An event of `perf_event_open`: its type and its number in this type.
#[derive(Clone, Copy, Debug)]
struct Event {
    kind: u32,
    number: u64,
}

/// `PERF_TYPE_HARDWARE` with `PERF_COUNT_HW_CPU_CYCLES` and
/// `PERF_COUNT_HW_INSTRUCTIONS`.
const CYCLES: Event = Event { kind: 0, number: 0 };
const INSTRUCTIONS: Event = Event { kind: 0, number: 1 };

/// `PERF_TYPE_HW_CACHE` with the cache L1D, the operation read, and the result access.
const L1_READS: Event = Event { kind: 3, number: 0 };

/// Open counters of the calling thread.
pub(crate) struct Counters {
    instructions: Counter,
    cycles: Counter,
    l1_reads: Option<Counter>,
}

impl Counters {
    /// Opens the counters for the calling thread, outside of the kernel.
    ///
    /// # Errors
    /// If the system or the processor has no counters for instructions and cycles, or
    /// refuses them to this program.
    pub(crate) fn open() -> io::Result<Counters> {
        Ok(Counters {
            instructions: Counter::open(INSTRUCTIONS)?,
            cycles: Counter::open(CYCLES)?,
            l1_reads: Counter::open(L1_READS).ok(),
        })
    }

    /// Runs `work` on the calling thread and returns its counts.
    ///
    /// # Errors
    /// If a counter cannot be read, or did not count all the time because other programs
    /// use the processor's counters.
    pub(crate) fn count(&self, work: impl FnOnce()) -> io::Result<Counted> {
        let counters = [
            Some(&self.instructions),
            Some(&self.cycles),
            self.l1_reads.as_ref(),
        ];
        let read = || counters.map(|counter| counter.map(Counter::read).transpose());
        let before = read();
        work();
        let mut counts = [None; 3];
        for ((count, before), after) in counts.iter_mut().zip(before).zip(read()) {
            *count = match (before?, after?) {
                (Some(before), Some(after)) => Some(after.since(before)?),
                _ => None,
            };
        }
        let [instructions, cycles, l1_reads] = counts;
        Ok(Counted {
            instructions: instructions.unwrap_or_default(),
            cycles: cycles.unwrap_or_default(),
            l1_reads,
        })
    }
}

/// An open counter.
struct Counter {
    file: File,
}

/// The state of a counter, in the layout that `call::READ_FORMAT` requests.
#[derive(Clone, Copy, Debug)]
struct Reading {
    count: u64,
    enabled_ns: u64,
    running_ns: u64,
}

impl Counter {
    fn open(event: Event) -> io::Result<Counter> {
        let file = open_event(event)?;
        Ok(Counter { file })
    }

    fn read(&self) -> io::Result<Reading> {
        let mut bytes = [0; 24];
        (&self.file).read_exact(&mut bytes)?;
        let number = |index: usize| {
            let number = &bytes[8 * index..8 * index + 8];
            u64::from_ne_bytes(number.try_into().expect("eight bytes"))
        };
        Ok(Reading {
            count: number(0),
            enabled_ns: number(1),
            running_ns: number(2),
        })
    }
}

impl Reading {
    /// Returns the events since an earlier reading.
    #[allow(clippy::cast_precision_loss)] // counts below 2^53
    fn since(self, before: Reading) -> io::Result<f64> {
        if self.enabled_ns - before.enabled_ns != self.running_ns - before.running_ns {
            return Err(io::Error::other(
                "other programs used the processor's counters during the measurement",
            ));
        }
        Ok(self.count.wrapping_sub(before.count) as f64)
    }
}

#[cfg(target_os = "linux")]
mod call {
    //! The system call `perf_event_open`.

    use std::fs::File;
    use std::io;
    use std::os::fd::{FromRawFd as _, OwnedFd};

    use super::Event;

    /// The first published layout of `perf_event_attr`, 64 bytes; every kernel accepts it.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        kind: u32,
        size: u32,
        number: u64,
        sample_period: u64,
        sample_type: u64,
        read_format: u64,
        flags: u64,
        wakeup_events: u32,
        breakpoint_type: u32,
        breakpoint_address: u64,
    }

    /// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `PERF_FORMAT_TOTAL_TIME_RUNNING`.
    const READ_FORMAT: u64 = 0b11;

    /// `exclude_kernel` and `exclude_hv`.
    const OUTSIDE_OF_THE_KERNEL: u64 = 1 << 5 | 1 << 6;

    /// `PERF_FLAG_FD_CLOEXEC`.
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

    /// Opens a counter of the calling thread on all processors. It counts from now on.
    #[allow(unsafe_code)]
    pub(super) fn open_event(event: Event) -> io::Result<File> {
        let attributes = Attributes {
            kind: event.kind,
            size: u32::try_from(size_of::<Attributes>()).expect("64 bytes"),
            number: event.number,
            read_format: READ_FORMAT,
            flags: OUTSIDE_OF_THE_KERNEL,
            ..Attributes::default()
        };
        let (this_thread, every_processor, no_group): (libc::pid_t, libc::c_int, libc::c_int) =
            (0, -1, -1);
        // SAFETY: the arguments have the types of `perf_event_open(2)`. `attributes` is
        // initialised, has the size that its `size` states, and outlives the call, which
        // does not keep the pointer.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                this_thread,
                every_processor,
                no_group,
                CLOSE_ON_EXEC,
            )
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        let descriptor = libc::c_int::try_from(descriptor).expect("a file descriptor");
        // SAFETY: the call returned a new file descriptor, which nothing else owns.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(File::from(descriptor))
    }
}

#[cfg(target_os = "linux")]
use call::open_event;

#[cfg(not(target_os = "linux"))]
fn open_event(_: Event) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PERF_TYPE_SOFTWARE` with `PERF_COUNT_SW_TASK_CLOCK`: nanoseconds of the thread,
    /// which Linux counts without the processor's counters.
    const TASK_CLOCK: Event = Event { kind: 1, number: 1 };

    /// No event has this type.
    const NO_EVENT: Event = Event {
        kind: u32::MAX,
        number: 0,
    };

    fn spin() -> u64 {
        (0..1_000_000_u64).fold(1, |number, step| std::hint::black_box(number ^ step))
    }

    #[test]
    fn unknown_events_are_refused() {
        assert!(Counter::open(NO_EVENT).is_err());
    }

    /// A system may refuse all counters; then each of them must be an error.
    #[test]
    fn the_time_of_a_thread_is_counted() {
        let Ok(clock) = Counter::open(TASK_CLOCK) else {
            assert!(Counters::open().is_err());
            return;
        };
        let before = clock.read().unwrap();
        std::hint::black_box(spin());
        let counted = clock.read().unwrap().since(before).unwrap();
        assert!(counted > 100_000.0, "{counted} ns for a million steps");
    }

    #[test]
    fn instructions_are_counted_or_refused() {
        match Counters::open() {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(counters) => {
                let work = || {
                    std::hint::black_box(spin());
                };
                let counted = counters.count(work).unwrap().each_of(1e6);
                assert!(counted.instructions >= 1.0, "{counted:?}");
                assert!(counted.cycles > 0.0, "{counted:?}");
            }
        }
    }

    #[test]
    fn a_counter_that_paused_has_no_count() {
        let reading = |count, enabled_ns, running_ns| Reading {
            count,
            enabled_ns,
            running_ns,
        };
        let before = reading(10, 100, 100);
        assert_eq!(reading(15, 200, 200).since(before).unwrap(), 5.0);
        assert!(reading(15, 200, 150).since(before).is_err());
    }

    #[test]
    fn counts_are_divided_by_units() {
        let counted = Counted {
            instructions: 200.0,
            cycles: 50.0,
            l1_reads: Some(30.0),
        };
        assert_eq!(
            counted.each_of(10.0),
            Counted {
                instructions: 20.0,
                cycles: 5.0,
                l1_reads: Some(3.0),
            }
        );
    }
}
