//! The live table's protocol under a model checker: every order in which
//! threads may take turns, and every value that the memory model lets a load
//! find, within bounds.
//!
//! This compiles the very source that the library runs, `left_right.rs`,
//! against the checker's types. A cell that one thread reads while another
//! writes fails the test, whatever was read.
//!
//! What is bounded: a few swaps, two readers, and [`PREEMPTIONS`], the number
//! of times that a thread is interrupted where it could have gone on. Within
//! these bounds the search is complete. Weakening any one ordering of the
//! protocol makes a model here fail.

// The checker is written for 64-bit targets alone.
#![cfg(target_pointer_width = "64")]
// The library uses all of the protocol, each model a part.
#![allow(dead_code)]

use std::sync::PoisonError;

use sync::Arc;

#[path = "../src/table/left_right.rs"]
mod left_right;

/// The shape of `table/sync.rs`, made of checked types.
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

/// The most interruptions in one execution, unless a model says otherwise.
const PREEMPTIONS: usize = 3;

/// Tries all executions with up to `preemptions` interruptions; with more, if
/// `LOOM_MAX_PREEMPTIONS` says so.
///
/// One model at a time: each execution maps and unmaps stacks for its threads,
/// which makes models that run side by side wait for each other in the kernel
/// and take more than twice the processor time.
fn model(preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = loom::model::Builder::new();
    let asked = builder.preemption_bound;
    builder.preemption_bound = Some(asked.map_or(preemptions, |asked| asked.max(preemptions)));
    builder.check(run);
}

/// A value whose halves always agree, unless a reader sees half a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair(usize, usize);

fn share() -> (Writer<Pair>, Arc<Sides<Pair>>) {
    Sides::share(Pair(0, 0), Pair(0, 0))
}

/// Gives the standby a value and makes it live, if no reader is in it.
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

/// Enters `times` times; values are whole and never go back.
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
    // The largest model: one interruption more takes a minute.
    model(PREEMPTIONS - 1, || {
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
    model(PREEMPTIONS + 1, || {
        let (mut writer, sides) = share();
        let reader = Reader::new(&sides);
        let reader = loom::thread::spawn(move || read(reader, 3));
        for value in 1..=3 {
            publish(&mut writer, value);
        }
        reader.join().unwrap();
    });
}

/// The writer never waits; what it could not publish goes with the next.
#[test]
fn a_writer_that_gathers_changes() {
    model(PREEMPTIONS, || {
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
        // All have left.
        assert!(try_publish(&mut writer, 4));
    });
}

/// The standby is free again once the reader has left, although it is back at
/// once, and not before.
#[test]
fn a_reader_holds_the_standby_until_it_leaves() {
    model(PREEMPTIONS, || {
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

/// Handles come and go on other threads, and slots go from one to the next.
#[test]
fn handles_made_and_dropped_meanwhile() {
    model(PREEMPTIONS, || {
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

/// A reader is dropped and its slot is taken over while the writer swaps, with
/// nothing but the pool's lock between the two owners. Both ways must come up:
/// the second reader finds the slot of the first, or is earlier and adds one.
#[test]
fn a_slot_taken_over_while_the_writer_swaps() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static REUSED: AtomicUsize = AtomicUsize::new(0);
    static ADDED: AtomicUsize = AtomicUsize::new(0);
    model(PREEMPTIONS, || {
        let (mut writer, sides) = share();
        let first = Reader::new(&sides);
        let other = Arc::clone(&sides);
        let first = loom::thread::spawn(move || read(first, 1));
        let second = loom::thread::spawn(move || read(Reader::new(&other), 2));
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

/// One thread drops a reader and makes the next, again and again, while the
/// writer swaps: one slot, whose count goes on from owner to owner.
#[test]
fn one_slot_with_an_owner_after_the_other() {
    model(PREEMPTIONS, || {
        let (mut writer, sides) = share();
        let others = Arc::clone(&sides);
        let thread = loom::thread::spawn(move || {
            let mut last = 0;
            for _ in 0..3 {
                let seen = read(Reader::new(&others), 1);
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

/// The last owner frees everything.
#[test]
fn all_are_dropped_in_any_order() {
    model(PREEMPTIONS, || {
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
