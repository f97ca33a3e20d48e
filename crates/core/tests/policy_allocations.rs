//! Looking a policy's headers up allocates nothing, once a scratch is warm.

// The allocator is what counts here.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use classyard::policy::PartId;
use classyard::{
    ActionId, EngineSpec, FieldMatch, Limits, NoProgress, Policy, PolicyTrace, Priority, RuleId,
    Scratch, Winner,
};

thread_local! {
    /// Requests of this thread to the allocator for memory.
    static REQUESTS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting.
struct Counting;

fn count() {
    REQUESTS.with(|requests| requests.set(requests.get() + 1));
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above; all memory comes from `System`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; all memory comes from `System`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Rules for ports in both parts, one part or the other.
fn policy(single: bool) -> Policy {
    let mut policy = if single {
        Policy::single(&classyard::Schema::ipv4_5tuple())
    } else {
        Policy::dual_stack()
    };
    for number in 0..300_u32 {
        let mut matches = [FieldMatch::Any; 5];
        matches[3] = FieldMatch::Exact(u128::from(number / 2));
        matches[4] = FieldMatch::Exact(u128::from(number % 3));
        let parts: Vec<(PartId, &[FieldMatch])> = policy
            .part_ids()
            .filter(|part| single || number as usize % 3 != part.index())
            .map(|part| (part, &matches[..]))
            .collect();
        let id = RuleId::new(number).unwrap();
        policy
            .add(id, Priority(number % 7), ActionId(0), &parts)
            .unwrap();
    }
    policy
}

/// Headers of all parts in an order without a pattern; more than a batch.
fn trace(policy: &Policy, headers: u64) -> PolicyTrace {
    let mut trace = PolicyTrace::new(policy.schemas());
    let parts = policy.parts().len();
    let mut state = 7_u64;
    for _ in 0..headers {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let number = usize::try_from(state >> 40).unwrap();
        let part = PartId::from_index(number % 7 % parts);
        let (port, protocol) = (number / 8 % 160, number / 2048 % 3);
        trace
            .push(part, &[1, 2, 3, port as u128, protocol as u128])
            .unwrap();
    }
    trace
}

fn requests(work: impl FnOnce()) -> usize {
    let before = REQUESTS.with(Cell::get);
    work();
    REQUESTS.with(Cell::get) - before
}

#[test]
fn lookups_allocate_nothing_once_warm() {
    // The counter counts.
    assert!(requests(|| drop(vec![0_u8; 100])) > 0);
    for single in [true, false] {
        let policy = policy(single);
        for spec in EngineSpec::all() {
            let built = policy.build(&spec, &Limits::default(), &mut NoProgress);
            let classifier = built.unwrap();
            let mut scratch = Scratch::new();
            for headers in [1000, 0, 1, 255, 256, 257, 1000] {
                let trace = trace(&policy, headers);
                // Nothing that is there before shows through.
                let stale = Winner::new(Priority(u32::MAX), RuleId::new(0).unwrap());
                let mut winners = vec![stale; trace.len()];
                let first = requests(|| classifier.classify(&trace, &mut winners, &mut scratch));
                for (index, (part, key)) in trace.iter().enumerate() {
                    let expected = policy.part(part).scan(key);
                    assert_eq!(winners[index], expected, "{spec}, header {index}");
                }
                let expected = winners.clone();
                winners.fill(stale);
                let again = requests(|| classifier.classify(&trace, &mut winners, &mut scratch));
                assert_eq!(winners, expected);
                assert_eq!(again, 0, "{spec}: {first} requests the first time");
            }
        }
    }
}
