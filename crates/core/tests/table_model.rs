//! Model checking of the live table's protocol: within bounds, tries every
//! interleaving of threads, and every value that the memory model lets a load
//! return.
//!
//! This compiles the library's own source file `left_right.rs` with the
//! checker's types. A cell that one thread reads while another thread writes it
//! fails the test, whatever the value read.
//!
//! The bounds are a few swaps, two readers, and [`MAX_PREEMPTIONS`], the number
//! of times that a thread is interrupted although it could continue. Within
//! these bounds the search is complete. Weakening any single memory ordering of
//! the protocol makes a model here fail.

// The checker supports only 64-bit targets.
#![cfg(target_arch = "x86_64")]
// The library uses the whole protocol, each model only a part.
#![allow(dead_code)]

use std::sync::PoisonError;

use sync::Arc;

#[path = "../src/table/left_right.rs"]
mod left_right;

/// A replacement of `table/sync.rs` with checked types.
mod sync {
    pub(super) use loom::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};
    pub(super) use loom::sync::{Arc, Mutex, MutexGuard};

    pub(super) struct Cell<T>(loom::cell::UnsafeCell<T>);

    impl<T> Cell<T> {
        pub(super) fn new(value: T) -> Cell<T> {
            Cell(loom::cell::UnsafeCell::new(value))
        }

        pub(super) fn read(&self) -> Reading<T> {
            Reading(self.0.get())
        }

        pub(super) fn write(&self) -> Writing<T> {
            Writing(self.0.get_mut())
        }
    }

    pub(super) struct Reading<T>(loom::cell::ConstPtr<T>);

    impl<T> Reading<T> {
        pub(super) fn pointer(&self) -> *const T {
            self.0.with(|pointer| pointer)
        }
    }

    pub(super) struct Writing<T>(loom::cell::MutPtr<T>);

    impl<T> Writing<T> {
        pub(super) fn pointer(&self) -> *mut T {
            self.0.with(|pointer| pointer)
        }
    }
}

use left_right::{Reader, Sides, Writer};

/// The maximum number of interruptions in one execution, unless a model
/// overrides it.
const MAX_PREEMPTIONS: usize = 3;

/// Tries all executions with up to `preemptions` interruptions, or up to
/// `LOOM_MAX_PREEMPTIONS` if that is larger.
///
/// Runs one model at a time. Each execution maps and unmaps stacks for its
/// threads, so concurrent models would wait for each other in the kernel and
/// take more than twice the processor time.
fn model(preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = loom::model::Builder::new();
    let requested = builder.preemption_bound;
    builder.preemption_bound =
        Some(requested.map_or(preemptions, |requested| requested.max(preemptions)));
    builder.check(run);
}

/// A value whose halves are equal, unless a reader sees half a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair(usize, usize);

fn share() -> (Writer<Pair>, Arc<Sides<Pair>>) {
    Sides::share(Pair(0, 0), Pair(0, 0))
}

/// Sets the standby's value and makes it live, if no reader is in it.
fn try_publish(writer: &mut Writer<Pair>, value: usize) -> bool {
    let changed = writer.with_standby(|pair| {
        pair.0 = value;
        pair.1 = value;
    });
    if changed.is_some() {
        writer.swap();
    }
    changed.is_some()
}

fn publish(writer: &mut Writer<Pair>, value: usize) {
    while !try_publish(writer, value) {
        loom::thread::yield_now();
    }
}

/// Pins the table `times` times; values must be whole and never decrease.
fn read(mut reader: Reader<Pair>, times: usize) -> usize {
    let mut last = 0;
    for _ in 0..times {
        let guard = reader.pin();
        let Pair(left, right) = *guard;
        assert_eq!(left, right, "half a change");
        assert!(left >= last, "back from {last} to {left}");
        last = left;
    }
    last
}

#[test]
fn two_readers_beside_a_writer_that_publishes() {
    // The largest model: one more interruption takes a minute.
    model(MAX_PREEMPTIONS - 1, || {
        let (mut writer, sides) = share();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let reader = Reader::new(&sides);
                loom::thread::spawn(move || read(reader, 2))
            })
            .collect();
        for value in 1..=2 {
            publish(&mut writer, value);
        }
        for reader in readers {
            assert!(reader.join().unwrap() <= 2);
        }
        // A reader that enters after a publication sees it.
        assert_eq!(read(Reader::new(&sides), 1), 2);
    });
}

#[test]
fn one_reader_beside_many_swaps() {
    model(MAX_PREEMPTIONS + 1, || {
        let (mut writer, sides) = share();
        let reader = Reader::new(&sides);
        let reader = loom::thread::spawn(move || read(reader, 3));
        for value in 1..=3 {
            publish(&mut writer, value);
        }
        reader.join().unwrap();
    });
}

/// The writer never waits; changes that it cannot publish go with the next
/// publication.
#[test]
fn a_writer_that_gathers_changes() {
    model(MAX_PREEMPTIONS, || {
        let (mut writer, sides) = share();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let reader = Reader::new(&sides);
                loom::thread::spawn(move || read(reader, 1))
            })
            .collect();
        let mut visible = 0;
        for value in 1..=3 {
            if try_publish(&mut writer, value) {
                visible = value;
            }
        }
        assert!(visible >= 1, "no reader was in the first standby");
        assert_eq!(writer.with_live(|pair| pair.0), visible);
        for reader in readers {
            assert!(reader.join().unwrap() <= visible);
        }
        // All readers have left.
        assert!(try_publish(&mut writer, 4));
    });
}

/// The standby is free once the reader has left, even if the reader re-enters
/// immediately, and not earlier.
#[test]
fn a_reader_holds_the_standby_until_it_leaves() {
    model(MAX_PREEMPTIONS, || {
        let (mut writer, sides) = share();
        let mut reader = Reader::new(&sides);
        let guard = reader.pin();
        assert!(try_publish(&mut writer, 1));
        assert!(!try_publish(&mut writer, 2));
        assert_eq!(*guard, Pair(0, 0));
        drop(guard);
        let reader = loom::thread::spawn(move || read(reader, 2));
        assert!(try_publish(&mut writer, 2));
        reader.join().unwrap();
    });
}

/// Readers are created and dropped on other threads, and their slots are
/// reused.
#[test]
fn handles_made_and_dropped_meanwhile() {
    model(MAX_PREEMPTIONS, || {
        let (mut writer, sides) = share();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let sides = Arc::clone(&sides);
                loom::thread::spawn(move || {
                    read(Reader::new(&sides), 1);
                })
            })
            .collect();
        for value in 1..=2 {
            publish(&mut writer, value);
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// A reader is dropped and its slot is reused while the writer swaps; only the
/// pool's lock is between the two owners. Both cases must occur: the second
/// reader reuses the first reader's slot, or comes earlier and adds a slot.
#[test]
fn a_slot_taken_over_while_the_writer_swaps() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static REUSED: AtomicUsize = AtomicUsize::new(0);
    static ADDED: AtomicUsize = AtomicUsize::new(0);
    model(MAX_PREEMPTIONS, || {
        let (mut writer, sides) = share();
        let first = Reader::new(&sides);
        let second_sides = Arc::clone(&sides);
        let first = loom::thread::spawn(move || read(first, 1));
        let second = loom::thread::spawn(move || read(Reader::new(&second_sides), 2));
        for value in 1..=2 {
            publish(&mut writer, value);
        }
        try_publish(&mut writer, 3);
        first.join().unwrap();
        second.join().unwrap();
        match sides.slot_count() {
            1 => &REUSED,
            2 => &ADDED,
            more => panic!("{more} slots for two readers"),
        }
        .fetch_add(1, Ordering::Relaxed);
        assert!(try_publish(&mut writer, 4), "all have left");
    });
    assert!(REUSED.load(Ordering::Relaxed) > 0);
    assert!(ADDED.load(Ordering::Relaxed) > 0);
}

/// One thread repeatedly drops a reader and creates the next while the writer
/// swaps. There is one slot, whose count continues from owner to owner.
#[test]
fn one_slot_with_an_owner_after_the_other() {
    model(MAX_PREEMPTIONS, || {
        let (mut writer, sides) = share();
        let reader_sides = Arc::clone(&sides);
        let thread = loom::thread::spawn(move || {
            let mut last = 0;
            for _ in 0..3 {
                let seen = read(Reader::new(&reader_sides), 1);
                assert!(seen >= last, "back from {last} to {seen}");
                last = seen;
            }
        });
        for value in 1..=3 {
            try_publish(&mut writer, value);
        }
        thread.join().unwrap();
        assert_eq!(sides.slot_count(), 1);
    });
}

/// The last owner frees all memory.
#[test]
fn all_are_dropped_in_any_order() {
    model(MAX_PREEMPTIONS, || {
        let (mut writer, sides) = share();
        let reader = Reader::new(&sides);
        let reader = loom::thread::spawn(move || read(reader, 1));
        let factory = loom::thread::spawn(move || drop(Reader::new(&sides)));
        publish(&mut writer, 1);
        drop(writer);
        reader.join().unwrap();
        factory.join().unwrap();
    });
}
