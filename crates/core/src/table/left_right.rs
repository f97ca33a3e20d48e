//! Two copies of a value, for one writer and readers that never wait.
//!
//! # Idea
//! Readers use the *live* side. The writer changes the *standby* side, which no reader
//! uses, then makes it live: the sides *swap*. The old live side becomes the standby. The
//! writer may change the new standby as soon as the readers that were in it at the swap
//! have left. Later readers enter the other side. So the writer waits for a fixed set of
//! readers, at most once for each, and readers never wait.
//!
//! # Data layout
//! ```text
//!  live ─────┐ one line            slots, a list that only grows; a line for each
//!            ▼
//!  sides [ 0 ][ 1 ]                [pins 6] ──▶ [pins 3] ──▶ [pins 8]
//!          ▲    ▲                    out          in           out
//!          │    └─ current readers
//!          └────── the writer, once (slot 2, pins 3) has moved on
//!
//!  pool (behind a lock): the slots that no reader owns
//! ```
//! A reader's slot is a count: odd while the reader is in a side, otherwise even. After
//! a swap the writer records the *remaining readers*: the slots whose count was odd
//! after the change of `live`, with that count. A line is 128 bytes, because processors
//! fetch pairs of 64, so no reader shares a line that another thread often writes.
//!
//! A new reader takes a free slot from the pool, or adds a slot to the list if the pool
//! is empty; a dropped reader returns its slot. Both take the pool's lock. A reused slot
//! keeps its count and counts on from there. Entering, leaving and swapping never take
//! the lock.
//!
//! # Lookup
//! ```text
//! reader, enter:  pins ← pins + 1 (odd)             release
//!                 fence                             sequentially consistent
//!                 side ← live                       acquire
//! reader, leave:  pins ← pins + 1 (even)            release
//!
//! writer, swap:   live ← standby                    release
//!                 fence                             sequentially consistent
//!                 remaining ← {(slot, n) : n = slot.pins is odd}       acquire
//! writer, free?   remaining ← {(slot, n) : slot.pins is still n}       acquire
//!                 free if the set is empty
//! ```
//! Entering and leaving have no loop: two stores, a fence and a load in total.
//!
//! # Correctness
//! Let `W` be the writer's store to `live` that made side `S` the standby, and let a
//! reader enter with the store `E` to its slot. The writer then loads the slot, and
//! there are three cases:
//!
//! 1. *A value older than `E`*. The writer's fence is between `W` and that load, and the
//!    reader's fence is between `E` and its load of `live`. The writer's load came before
//!    `E` in the order of the slot's values, so the writer's fence comes before the
//!    reader's fence in the single order of all such fences. Hence the reader's load of
//!    `live` reads `W` or a newer value. The reader is not in `S`, unless a newer store
//!    made `S` live again; then the load, an acquire, sees everything that the writer did
//!    to `S` before.
//! 2. *`E`'s value*, which is odd: a remaining reader. The writer does not touch `S`
//!    until the count changes. The store that changes the count is a release, by the
//!    reader when it leaves or enters again, or by the slot's next owner; the writer's
//!    load is an acquire. The next owner took the slot out of the pool after the reader
//!    had put it there, and the pool's lock orders these two. So in each case all reads
//!    by the reader come before the writer's writes.
//! 3. *A value newer than `E`'s*. The reader has left, and as in 2 its reads are over.
//!    If the newer value is odd, the slot counts as a remaining reader again although its
//!    reader is in the other side. That costs time and nothing else.
//!
//! This requires that a slot's count only grows, also from one owner to the next: a new
//! owner reads the count under the pool's lock, after the last store of the previous
//! owner.
//!
//! If the writer does not find a slot at all, because it was added to the list during
//! the swap, case 1 applies, with the store to the list's head in place of `E`. Slots
//! are added under the pool's lock, so a thread that finds a slot in the list also finds
//! all older slots.
//!
//! Counts wrap after 2³¹ entries on 32-bit machines. If a count recurs, the writer
//! assumes that the reader never left: this also costs only time.
//!
//! `tests/table_model.rs` runs this code under a model checker.
//!
//! # Cost
//! Enter and leave: one fence, about 10 ns together. Making and dropping a reader: the
//! lock and a constant number of steps, amortised over the growth of the pool. Swap:
//! reads a cache line for each slot. The number of slots is the largest number of readers
//! that ever existed together. Checking that the standby is free: reads a cache line for
//! each remaining reader. Memory: twice the value, and 136 bytes for each slot, 8 of them
//! in the pool.
//!
//! # Where we differ from the paper, and why
//! [RC15] has two indicators, and the writer chooses the indicator that readers use, so
//! that it waits for each reader at most once. Here a slot's count shows the writer that
//! a reader has left, so one indicator is enough. The writer makes one store for a swap
//! instead of three, and need not wait within a swap: it may check again later, and
//! collect changes until then.
//!
//! # References
//! [RC15] Ramalhete, Correia: Left-Right: a concurrency control technique with
//! wait-free population oblivious reads. 2015.
//!
//! [RC15]: crate::papers#rc15

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::PoisonError;

use super::sync::{Arc, AtomicPtr, AtomicUsize, Cell, Mutex, MutexGuard, Ordering, Reading, fence};

/// A value with a pair of cache lines of its own.
#[repr(align(128))]
struct Line<T>(T);

/// The state that readers and the writer share.
pub(super) struct Sides<T> {
    /// The index of the side that readers enter.
    live: Line<AtomicUsize>,
    sides: [Line<Cell<T>>; 2],
    /// The newest slot; older slots follow in a list.
    slots: AtomicPtr<Slot>,
    /// Used only to make and to drop readers.
    pool: Mutex<Pool>,
}

/// The slots that no reader owns.
struct Pool {
    /// Has capacity for every slot, so that returning a slot does not allocate.
    free: Vec<NonNull<Slot>>,
    /// The number of slots in the list.
    made: usize,
}

// SAFETY: several threads may read a side at the same time, through `&T`, which `T:
// Sync` allows. The writer's thread changes sides and the last owner's thread drops
// them, which `T: Send` allows. The protocol ensures that no side is read while it is
// changed, as argued above. Slots are atomics; the pool is behind a lock.
unsafe impl<T: Send + Sync> Sync for Sides<T> {}
// SAFETY: the sides move with their last owner; `T: Send`. The list of slots is owned
// and used with the sides.
unsafe impl<T: Send + Sync> Send for Sides<T> {}

/// A reader's slot, which records if the reader is in a side.
#[repr(align(128))]
struct Slot {
    /// Odd while the reader is in a side. It only grows, also from one owner to the
    /// next.
    pins: AtomicUsize,
    /// The next older slot; set before the slot is in the list, never afterwards.
    next: *mut Slot,
}

impl<T> Sides<T> {
    /// Shares two equal values. The first is live.
    pub(super) fn share(left: T, right: T) -> (Writer<T>, Arc<Sides<T>>) {
        let sides = Arc::new(Sides {
            live: Line(AtomicUsize::new(0)),
            sides: [Line(Cell::new(left)), Line(Cell::new(right))],
            slots: AtomicPtr::new(ptr::null_mut()),
            pool: Mutex::new(Pool {
                free: Vec::new(),
                made: 0,
            }),
        });
        let writer = Writer {
            shared: Arc::clone(&sides),
            live: 0,
            remaining: Vec::new(),
        };
        (writer, sides)
    }

    /// Returns the slots that are in the list, newest first.
    fn slots(&self) -> impl Iterator<Item = NonNull<Slot>> {
        let mut next = self.slots.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            let slot = NonNull::new(next)?;
            // SAFETY: slots in the list are freed with the list, which `self` keeps
            // alive. `next` was set before the slot was added; the acquire above, or
            // that for a newer slot, makes it visible.
            next = unsafe { slot.as_ref() }.next;
            Some(slot)
        })
    }

    /// The number of slots: the largest number of readers that ever existed together.
    pub(super) fn slot_count(&self) -> usize {
        self.pool().made
    }

    /// Locks the pool. No code panics while it is locked, and the pool is valid after
    /// each statement, so poison can be ignored.
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a slot for a new reader, free or new, and the slot's count, which is
    /// even.
    fn claim(&self) -> (NonNull<Slot>, usize) {
        let mut pool = self.pool();
        if let Some(slot) = pool.free.pop() {
            // SAFETY: slots in the pool are in the list, which `self` keeps alive. The
            // previous owner stored the count before it put the slot into the pool,
            // under the same lock.
            let pins = unsafe { slot.as_ref() }.pins.load(Ordering::Relaxed);
            return (slot, pins);
        }
        let slot_count = pool.made + 1;
        // The pool is empty; its capacity must be enough for all slots.
        pool.free.reserve(slot_count);
        pool.made = slot_count;
        let slot = Box::into_raw(Box::new(Slot {
            pins: AtomicUsize::new(0),
            // Relaxed: only the thread with the lock adds slots.
            next: self.slots.load(Ordering::Relaxed),
        }));
        self.slots.store(slot, Ordering::Release);
        (NonNull::new(slot).expect("boxes are not null"), 0)
    }

    /// Returns the slot of a dropped reader to the pool. Its count is even.
    fn give_back(&self, slot: NonNull<Slot>) {
        self.pool().free.push(slot);
    }
}

impl<T> Drop for Sides<T> {
    fn drop(&mut self) {
        // The thread that drops the last reference has seen the writes of all others.
        let mut next = self.slots.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: slots come from boxes, each is in the list once, and each owner of
            // a pointer into the list kept the list alive.
            let slot = unsafe { Box::from_raw(next) };
            next = slot.next;
        }
    }
}

/// The writer's half: changes the value.
pub(super) struct Writer<T> {
    shared: Arc<Sides<T>>,
    /// The live side; only the writer changes it.
    live: usize,
    /// Readers that may be in the standby: each reader's slot, and the count of the slot
    /// at the swap.
    remaining: Vec<(NonNull<Slot>, usize)>,
}

// SAFETY: pointers to slots are valid as long as `shared`, whichever thread owns it, and
// slots are used through shared references to atomics.
unsafe impl<T: Send + Sync> Send for Writer<T> {}
// SAFETY: a shared writer can only read the live side, as readers do.
unsafe impl<T: Send + Sync> Sync for Writer<T> {}

impl<T> Writer<T> {
    /// Reads the live side.
    pub(super) fn with_live<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        let access = self.shared.sides[self.live].0.read();
        // SAFETY: no thread changes the live side: `with_standby` accesses the other
        // side, and `swap` needs `&mut self`.
        read(unsafe { &*access.pointer() })
    }

    /// True if no reader is in the standby, so that `with_standby` can change it. Stays
    /// true until the next swap. Waits for no reader.
    pub(super) fn standby_is_free(&mut self) -> bool {
        self.remaining.retain(|(slot, seen)| {
            // SAFETY: the slot is in the list, which `shared` keeps alive.
            unsafe { slot.as_ref() }.pins.load(Ordering::Acquire) == *seen
        });
        self.remaining.is_empty()
    }

    /// Changes the standby, if no reader is in it. Waits for no reader.
    pub(super) fn with_standby<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        if !self.standby_is_free() {
            return None;
        }
        let access = self.shared.sides[1 - self.live].0.write();
        // SAFETY: no reader is in the standby and none can enter it before the next
        // swap, as argued at the top; this writer is the only one and is borrowed
        // exclusively.
        Some(change(unsafe { &mut *access.pointer() }))
    }

    /// Makes the standby live. Waits for no reader.
    pub(super) fn swap(&mut self) {
        self.live = 1 - self.live;
        self.shared.live.0.store(self.live, Ordering::Release);
        fence(Ordering::SeqCst);
        self.remaining.clear();
        for slot in self.shared.slots() {
            // SAFETY: the slot is in the list, which `shared` keeps alive.
            let seen = unsafe { slot.as_ref() }.pins.load(Ordering::Acquire);
            if seen % 2 == 1 {
                self.remaining.push((slot, seen));
            }
        }
    }

    /// The shared state, for making readers.
    pub(super) fn sides(&self) -> &Arc<Sides<T>> {
        &self.shared
    }
}

/// A reader of the value, used by one thread at a time.
pub(super) struct Reader<T> {
    shared: Arc<Sides<T>>,
    slot: NonNull<Slot>,
    /// The slot's count while this reader is in no side: even.
    pins: usize,
    /// The reader may move between threads, but only one thread uses it at a time.
    not_sync: PhantomData<std::cell::Cell<()>>,
}

// SAFETY: the pointer to the slot is valid as long as `shared`, whichever thread owns
// it, and the slot is used through shared references to atomics.
unsafe impl<T: Send + Sync> Send for Reader<T> {}

impl<T> Reader<T> {
    /// Makes a reader with a slot of its own.
    pub(super) fn new(shared: &Arc<Sides<T>>) -> Reader<T> {
        let (slot, pins) = shared.claim();
        Reader {
            shared: Arc::clone(shared),
            slot,
            pins,
            not_sync: PhantomData,
        }
    }

    /// Enters the live side. The side does not change until the guard is dropped.
    ///
    /// If a guard is leaked, the reader counts as being in its side until it enters
    /// again or is dropped; both require that the leaked guard's lifetime is over. If
    /// the reader is leaked too, the side stays occupied for good.
    #[inline]
    pub(super) fn pin(&mut self) -> Guard<'_, T> {
        // SAFETY: the slot is in the list, which `shared` keeps alive.
        let slot = unsafe { self.slot.as_ref() };
        let inside = self.pins.wrapping_add(1);
        self.pins = inside.wrapping_add(1);
        slot.pins.store(inside, Ordering::Release);
        fence(Ordering::SeqCst);
        let side = self.shared.live.0.load(Ordering::Acquire);
        Guard {
            access: self.shared.sides[side].0.read(),
            _leave: Leave {
                slot,
                outside: self.pins,
            },
        }
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        // SAFETY: the slot is in the list, which `shared` keeps alive.
        let slot = unsafe { self.slot.as_ref() };
        // The count is still odd if a guard was leaked.
        slot.pins.store(self.pins, Ordering::Release);
        self.shared.give_back(self.slot);
    }
}

/// The side that a reader is in.
pub(super) struct Guard<'a, T> {
    /// Dropped before the reader leaves: fields are dropped in order.
    access: Reading<T>,
    _leave: Leave<'a>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the reader is in this side until `_leave` is dropped, and the writer
        // does not change the side before, as argued at the top.
        unsafe { &*self.access.pointer() }
    }
}

/// Leaves the side when dropped.
struct Leave<'a> {
    slot: &'a Slot,
    outside: usize,
}

impl Drop for Leave<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.pins.store(self.outside, Ordering::Release);
    }
}
