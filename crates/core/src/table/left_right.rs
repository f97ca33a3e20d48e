//! Two copies of a value, one writer, readers that never wait.
//!
//! # Idea
//! Readers use the *live* side. The writer changes the *standby* side, which no
//! reader uses, then makes it the live one. The side that was live becomes the
//! standby. The writer may change it as soon as the readers that were in it at
//! the swap have left; later readers enter the other side. So the writer waits
//! for a fixed set of readers, each of them at most once, and readers wait for
//! nothing.
//!
//! # Data layout
//! ```text
//!  live ─────┐ one line            slots, a list that only grows; each a line
//!            ▼
//!  sides [ 0 ][ 1 ]                [pins 6] ──▶ [pins 3] ──▶ [pins 8]
//!          ▲    ▲                    out          in           out
//!          │    └─ current readers
//!          └────── the writer, once (slot 2, pins 3) has moved on
//!
//!  pool (behind a lock): the slots that no reader owns
//! ```
//! A reader's slot counts: odd while the reader is in a side, even while it is
//! not. After a swap the writer keeps the *remaining readers*: the slots whose
//! count was odd after it changed `live`, with the count that it saw. A line is
//! 128 bytes, because processors fetch pairs of 64, so readers share no line
//! that anybody writes often.
//!
//! A new reader takes a free slot from the pool, or adds a slot to the list
//! when the pool is empty; a dropped reader returns its slot. Both take the
//! pool's lock. A reused slot keeps its count and goes on counting from there.
//! Entering, leaving and swapping never take the lock.
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
//!                 free if there are none
//! ```
//! Entering and leaving have no loop: two stores, a fence and a load.
//!
//! # Why it is right
//! Let `W` be the writer's store to `live` that made side `S` the standby, and
//! take a reader that enters with the store `E` to its slot. The writer then
//! loads the slot, which finds
//!
//! 1. *something older than `E`*. The writer's fence lies between `W` and that
//!    load, the reader's between `E` and its load of `live`. The load came
//!    before `E` in the order of the slot's values, so the writer's fence comes
//!    before the reader's in the one order of all such fences, and the reader's
//!    load of `live` finds `W` or something newer. It is not in `S`, unless a
//!    newer store made `S` live again; then the load, an acquire, sees all that
//!    the writer did to `S` before.
//! 2. *`E`'s value*, which is odd: a remaining reader. The writer leaves `S`
//!    alone until the count is another. The store that makes it another is a
//!    release, by the reader when it leaves or enters again, or by the slot's
//!    next owner, and the writer's load is an acquire. The next owner took the
//!    slot out of the pool after the reader had put it there, and the pool's
//!    lock orders the two. So in each case all that the reader read, it read
//!    before the writer writes.
//! 3. *something newer*. The reader has left, and as in 2 its reads are over.
//!    Should the newer value be odd, the slot counts as a remaining reader once
//!    more though its reader is in the other side: that costs time and nothing
//!    else.
//!
//! This needs each slot's count to go only up, from one owner to the next as
//! well: a new owner reads the count under the pool's lock, after the last store
//! of the owner before.
//!
//! A slot that the writer does not find at all, because it was added to the list
//! meanwhile, is case 1, with the store to the list's head in the place of `E`.
//! Slots are added under the pool's lock, so a thread that finds a slot in the
//! list also finds all older ones.
//!
//! Counts wrap after 2³¹ entries on 32-bit machines, and a count that is met
//! again is taken for a reader that never left: again only time.
//!
//! `tests/table_model.rs` runs these lines under a model checker.
//!
//! # Cost
//! Enter and leave: one fence, about 10 ns together. A new reader, and dropping
//! one: the lock and a constant number of steps, amortised over the growth of
//! the pool. Swap: a cache line for each slot, so for the most readers that ever
//! were alive at once; the question whether the standby is free: a cache line
//! for each remaining reader. Memory: twice the value, 136 bytes for each reader
//! of the most that ever were alive at once, 8 of them in the pool.
//!
//! # Where we differ from the paper, and why
//! [RC15] readers announce themselves in one of two indicators that the writer
//! toggles, so that it waits for each reader once. Here a slot's count tells
//! the writer that a reader has moved on, so one indicator is enough, the
//! writer makes one store instead of three for a swap, and it need not wait
//! within one: it may check again later, and gather changes meanwhile.
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

/// A value alone on its pair of cache lines.
#[repr(align(128))]
struct Line<T>(T);

/// What readers and the writer share.
pub(super) struct Sides<T> {
    /// Which side readers enter.
    live: Line<AtomicUsize>,
    sides: [Line<Cell<T>>; 2],
    /// The newest slot; the others hang behind it.
    slots: AtomicPtr<Slot>,
    /// Needed to make and to drop readers, and for nothing else.
    pool: Mutex<Pool>,
}

/// The slots that no reader owns.
struct Pool {
    /// Has room for every slot, so that returning one allocates nothing.
    free: Vec<NonNull<Slot>>,
    /// Slots in the list.
    made: usize,
}

// SAFETY: several threads read a side at once, through `&T`, which `T: Sync`
// allows; the writer's thread changes sides and the last owner's thread drops
// them, which `T: Send` allows. That no side is read while it is changed is the
// protocol's doing, argued above. Slots are atomics; the pool is behind a lock.
unsafe impl<T: Send + Sync> Sync for Sides<T> {}
// SAFETY: the sides move with their last owner; `T: Send`. The list of slots is
// owned and used from wherever the sides are.
unsafe impl<T: Send + Sync> Send for Sides<T> {}

/// A reader's place: where it says that it is in a side.
#[repr(align(128))]
struct Slot {
    /// Odd while the reader is in a side. Only ever counts up, also from one
    /// owner to the next.
    pins: AtomicUsize,
    /// The slot behind; set before the slot is in the list, never afterwards.
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

    /// The slots that are in the list now, newest first.
    fn slots(&self) -> impl Iterator<Item = NonNull<Slot>> {
        let mut next = self.slots.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            let slot = NonNull::new(next)?;
            // SAFETY: slots in the list are freed with the list, which `self`
            // keeps alive; `next` was set before the slot was put in, and the
            // acquire above, or that of a newer slot's, makes it visible.
            next = unsafe { slot.as_ref() }.next;
            Some(slot)
        })
    }

    /// How many slots there are: the most readers that there ever were at once.
    pub(super) fn slot_count(&self) -> usize {
        self.pool().made
    }

    /// The pool. No code panics while it is locked, and the pool is in order
    /// after each statement, so poison is of no account.
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a new reader: one that is free, or else a new one. Its count,
    /// which is even.
    fn claim(&self) -> (NonNull<Slot>, usize) {
        let mut pool = self.pool();
        if let Some(slot) = pool.free.pop() {
            // SAFETY: slots in the pool are in the list, which `self` keeps
            // alive. The owner before stored the count before it put the slot
            // into the pool, under the same lock.
            let pins = unsafe { slot.as_ref() }.pins.load(Ordering::Relaxed);
            return (slot, pins);
        }
        let made = pool.made + 1;
        // The pool is empty: room for all of them.
        pool.free.reserve(made);
        pool.made = made;
        let slot = Box::into_raw(Box::new(Slot {
            pins: AtomicUsize::new(0),
            // The thread that adds slots has the lock.
            next: self.slots.load(Ordering::Relaxed),
        }));
        self.slots.store(slot, Ordering::Release);
        (NonNull::new(slot).expect("boxes are not null"), 0)
    }

    /// Takes the slot of a reader that is gone. Its count is even.
    fn give_back(&self, slot: NonNull<Slot>) {
        self.pool().free.push(slot);
    }
}

impl<T> Drop for Sides<T> {
    fn drop(&mut self) {
        // The thread that drops the last reference has seen what all others did.
        let mut next = self.slots.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: slots come from boxes, each is in the list once, and
            // each owner of a pointer into it kept the list alive as well.
            let slot = unsafe { Box::from_raw(next) };
            next = slot.next;
        }
    }
}

/// Changes the value.
pub(super) struct Writer<T> {
    shared: Arc<Sides<T>>,
    /// The live side; only the writer changes it.
    live: usize,
    /// Readers that may be in the standby: their slots and the counts seen.
    remaining: Vec<(NonNull<Slot>, usize)>,
}

// SAFETY: pointers to slots stay good as long as `shared`, whichever thread
// holds it, and slots are used through shared references to atomics.
unsafe impl<T: Send + Sync> Send for Writer<T> {}
// SAFETY: a shared writer can only read the live side, as readers do.
unsafe impl<T: Send + Sync> Sync for Writer<T> {}

impl<T> Writer<T> {
    /// Reads the live side.
    pub(super) fn with_live<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        let access = self.shared.sides[self.live].0.read();
        // SAFETY: no thread changes the live side: `with_standby` reaches the
        // other one, and `swap` needs `&mut self`.
        read(unsafe { &*access.pointer() })
    }

    /// Whether no reader is in the standby, so that `with_standby` will do it.
    /// Once true it stays true until the next swap. Waits for no reader.
    pub(super) fn standby_is_free(&mut self) -> bool {
        self.remaining.retain(|(slot, seen)| {
            // SAFETY: the slot is in the list, which `shared` keeps alive.
            unsafe { slot.as_ref() }.pins.load(Ordering::Acquire) == *seen
        });
        self.remaining.is_empty()
    }

    /// Changes the standby, if no reader is in it any more. Waits for no reader.
    pub(super) fn with_standby<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        if !self.standby_is_free() {
            return None;
        }
        let access = self.shared.sides[1 - self.live].0.write();
        // SAFETY: no reader is in the standby and none can enter it before the
        // next swap, as argued at the top; this writer is the only one and is
        // borrowed exclusively.
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

    /// What readers are made of.
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
    /// Moves between threads, and is used by one at a time.
    not_sync: PhantomData<std::cell::Cell<()>>,
}

// SAFETY: the pointer to the slot stays good as long as `shared`, whichever
// thread holds it, and the slot is used through shared references to atomics.
unsafe impl<T: Send + Sync> Send for Reader<T> {}

impl<T> Reader<T> {
    /// A reader with a slot of its own.
    pub(super) fn new(shared: &Arc<Sides<T>>) -> Reader<T> {
        let (slot, pins) = shared.claim();
        Reader {
            shared: Arc::clone(shared),
            slot,
            pins,
            not_sync: PhantomData,
        }
    }

    /// Enters the live side. It stays as it is until the guard is dropped.
    ///
    /// Should a guard be leaked, the writer takes the reader to be in its side
    /// until the reader enters again or is dropped, both of which need the
    /// leaked guard's lifetime to be over. Should the reader be leaked as well,
    /// the side stays taken for good.
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

/// A side that a reader is in.
pub(super) struct Guard<'a, T> {
    /// Dropped before the reader leaves: fields go in this order.
    access: Reading<T>,
    _leave: Leave<'a>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the reader is in this side until `_leave` is dropped, and the
        // writer does not change it before, as argued at the top.
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
