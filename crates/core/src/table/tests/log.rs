//! The log over a replica that does not depend on rules and records the calls it
//! receives.

use std::fmt;
use std::ops::Range;

use crate::table::log::{Budget, Log};
use crate::table::replica::{Accepted, Replica};

/// A call that the replica receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Change(u32),
    Maintain(usize),
    Operation(Operation),
}

/// An operation. It replaces earlier operations of its kind if the kind is even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Operation {
    kind: u32,
    number: u32,
}

struct Telling {
    told: Vec<Told>,
    /// The remaining steps of maintenance.
    steps: usize,
}

impl Replica for Telling {
    type Transaction<'t> = &'t [u32];
    type Refusal = fmt::Error;
    type Log = Vec<u32>;
    type Accepted = All;
    type Operation = Operation;

    fn replay(&mut self, log: &Vec<u32>, changes: Range<usize>) {
        let changes = log[changes].iter();
        self.told
            .extend(changes.map(|&number| Told::Change(number)));
    }

    fn operate(&mut self, operation: &Operation) {
        self.told.push(Told::Operation(*operation));
    }

    fn replaces(operation: &Operation, earlier: &Operation) -> bool {
        operation.kind.is_multiple_of(2) && operation.kind == earlier.kind
    }

    fn maintain(&mut self, steps: usize) -> bool {
        let made = steps.min(self.steps);
        self.steps -= made;
        self.told.push(Told::Maintain(made));
        self.is_unfinished()
    }

    fn is_unfinished(&self) -> bool {
        self.steps > 0
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// Accepts every transaction.
struct All;

impl Accepted<Telling> for All {
    fn check(&mut self, _: &Telling, changes: &[u32]) -> Result<usize, fmt::Error> {
        Ok(changes.len())
    }

    fn accept(&mut self, changes: &[u32], log: &mut Vec<u32>) {
        log.extend(changes);
    }
}

fn side(steps: usize) -> Telling {
    Telling {
        told: Vec::new(),
        steps,
    }
}

/// Returns the calls since the last time, with consecutive steps added up.
fn take(side: &mut Telling) -> Vec<Told> {
    let mut all: Vec<Told> = Vec::new();
    for told in side.told.drain(..) {
        match (all.last_mut(), told) {
            (Some(Told::Maintain(steps)), Told::Maintain(more)) => *steps += more,
            _ => all.push(told),
        }
    }
    all
}

/// Replays with a budget; returns the part used.
fn replay(log: &mut Log<Telling>, side: &mut Telling, steps: usize) -> usize {
    let mut budget = Budget::Steps(steps);
    log.replay(side, &mut budget);
    steps - budget.steps()
}

/// Replaying a log in pieces of any size makes all of it, in order.
#[test]
fn logs_replayed_in_pieces_are_replayed_in_order() {
    let operation = Operation { kind: 1, number: 0 };
    for budget in [1, 2, 3, 5, 8, 100] {
        let mut log: Log<Telling> = Log::default();
        let mut side = side(usize::MAX);
        let change = |log: &mut Log<Telling>, numbers: Range<u32>| {
            log.changes_mut().extend(numbers);
        };
        assert!(log.is_done());
        change(&mut log, 100..104);
        log.push_steps(7);
        change(&mut log, 104..106);
        log.push_operation(operation);
        log.push_steps(2);
        replay(&mut log, &mut side, budget);
        // Added to steps that are done, half done or not begun.
        log.push_steps(4);
        change(&mut log, 106..107);
        let mut used = budget.min(16);
        let whole = 7 + 7 + 1 + 6;
        while !log.is_done() {
            let now = replay(&mut log, &mut side, budget);
            assert!(now > 0 && now <= budget);
            used += now;
        }
        assert_eq!(used, whole);
        assert_eq!(replay(&mut log, &mut side, 10), 0);
        let mut expected: Vec<Told> = (100..104).map(Told::Change).collect();
        expected.push(Told::Maintain(7));
        expected.extend((104..106).map(Told::Change));
        expected.extend([
            Told::Operation(operation),
            Told::Maintain(6),
            Told::Change(106),
        ]);
        assert_eq!(take(&mut side), expected, "{budget} at a time");
        // The other side begins at the start of the log.
        log.rewind();
        assert!(!log.is_done());
        replay(&mut log, &mut side, usize::MAX);
        assert_eq!(take(&mut side), expected);
    }
}

/// Newer operations replace operations of their kind that one side has done. That side
/// does the newer ones as well, and does everything else exactly once. The other side
/// does only the last ones.
#[test]
fn a_newer_operation_takes_the_place_of_one_that_is_begun() {
    let plan = |number| Operation { kind: 2, number };
    for first in 0..=8 {
        let mut log: Log<Telling> = Log::default();
        let mut side = side(100);
        let other = Operation { kind: 4, number: 0 };
        let twice = Operation { kind: 3, number: 0 };
        log.changes_mut().push(1);
        log.push_operation(plan(0));
        log.changes_mut().push(2);
        log.push_steps(1);
        log.changes_mut().push(3);
        log.push_operation(other);
        log.push_operation(twice);
        log.changes_mut().push(4);
        let [one, two, three, four, five] = [1, 2, 3, 4, 5].map(Told::Change);
        let [first_plan, last_plan] = [plan(0), plan(1)].map(Told::Operation);
        let [other, again] = [other, twice].map(Told::Operation);
        let step = Told::Maintain(1);
        let before = [one, first_plan, two, step, three, other, again, four];
        let mut expected = before[..first].to_vec();
        assert_eq!(replay(&mut log, &mut side, first), first);
        assert_eq!(take(&mut side), expected);
        log.push_operation(plan(1));
        log.push_operation(twice);
        log.changes_mut().push(5);
        expected = before[first..].to_vec();
        expected.retain(|&told| told != first_plan);
        expected.extend([last_plan, again, five]);
        replay(&mut log, &mut side, usize::MAX);
        assert_eq!(take(&mut side), expected, "{first}");
        assert!(log.is_done());
        log.rewind();
        let expected = [
            one, two, step, three, other, again, four, last_plan, again, five,
        ];
        replay(&mut log, &mut side, usize::MAX);
        assert_eq!(take(&mut side), expected);
    }
}
