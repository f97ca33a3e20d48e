//! The log of a table: the changes and other work that a side lacks, in order.

use super::replica::{ChangeLog, Replica};

/// Work other than a change, which both sides do at the same position among the changes.
enum Work<O> {
    /// An operation of the replica.
    Operation(O),
    /// Maintenance: the number of steps.
    Maintain(usize),
}

/// The work that may be replayed now.
#[derive(Clone, Copy)]
pub(super) enum Budget {
    /// Everything.
    Unlimited,
    /// Work that costs at most this number of steps. A change costs one step.
    Steps(usize),
}

impl Budget {
    /// Returns the number of steps that are left.
    pub(super) fn steps(self) -> usize {
        match self {
            Budget::Unlimited => usize::MAX,
            Budget::Steps(steps) => steps,
        }
    }

    /// Subtracts the cost of work.
    fn spend(&mut self, spent: usize) {
        if let Budget::Steps(steps) = self {
            *steps -= spent;
        }
    }
}

/// A side's position in a log. The sides replay a log one after the other, so one
/// position is enough.
#[derive(Clone, Copy, Default)]
struct Place {
    changes: usize,
    work: usize,
    /// The number of steps done of the work at this position.
    steps: usize,
}

/// Changes and other work, in order. After a clear, the log can be filled again without
/// allocating.
///
/// ```text
///  changes     a b c d e f g h i j
///  work             ^2    ^5           each before the change of that number
///  place              ^                the standby has everything to the left
/// ```
pub(super) struct Log<R: Replica> {
    changes: R::Log,
    /// Work, each with the number of changes before it.
    work: Vec<(usize, Work<R::Operation>)>,
    /// The standby's position.
    place: Place,
}

impl<R: Replica> Default for Log<R> {
    fn default() -> Log<R> {
        Log {
            changes: R::Log::default(),
            work: Vec::new(),
            place: Place::default(),
        }
    }
}

impl<R: Replica> Log<R> {
    pub(super) fn changes(&self) -> &R::Log {
        &self.changes
    }

    /// The changes, for appending.
    pub(super) fn changes_mut(&mut self) -> &mut R::Log {
        &mut self.changes
    }

    /// True if there is work.
    pub(super) fn has_work(&self) -> bool {
        !self.work.is_empty()
    }

    /// Adds an operation. Removes operations that it replaces, also if the standby has
    /// done them; the other side then skips them.
    pub(super) fn push_operation(&mut self, operation: R::Operation) {
        let replaced = |(_, work): &(usize, Work<R::Operation>)| match work {
            Work::Operation(earlier) => R::replaces(&operation, earlier),
            Work::Maintain(_) => false,
        };
        let done = self.work[..self.place.work].iter();
        self.place.work -= done.filter(|&entry| replaced(entry)).count();
        self.work.retain(|entry| !replaced(entry));
        let position = self.changes.len();
        self.work.push((position, Work::Operation(operation)));
    }

    /// Adds steps of maintenance. If the last work is maintenance at the same position,
    /// adds the steps to it, so that the log does not grow with each call.
    pub(super) fn push_steps(&mut self, more: usize) {
        let position = self.changes.len();
        let all_done = self.place.work == self.work.len();
        match self.work.last_mut() {
            Some((at, Work::Maintain(steps))) if *at == position => {
                if all_done {
                    self.place.work -= 1;
                    self.place.steps = *steps;
                }
                *steps = steps.saturating_add(more);
            }
            _ => self.work.push((position, Work::Maintain(more))),
        }
    }

    /// Removes everything, and keeps memory for `keep` changes.
    pub(super) fn clear(&mut self, keep: usize) {
        self.changes.clear(keep);
        self.work.clear();
        self.rewind();
    }

    /// Moves the position to the start, after a swap: the new standby lacks everything in
    /// this log.
    pub(super) fn rewind(&mut self) {
        self.place = Place::default();
    }

    /// True if the standby has everything.
    pub(super) fn is_done(&self) -> bool {
        self.place.changes == self.changes.len() && self.place.work == self.work.len()
    }

    /// Replays changes and other work on the standby, in order, until everything is done
    /// or the budget is used up. A change costs 1, an operation costs 1, and maintenance
    /// costs its steps. Subtracts the cost from the budget.
    pub(super) fn replay(&mut self, replica: &mut R, budget: &mut Budget) {
        while budget.steps() > 0 && !self.is_done() {
            let next = self.work.get(self.place.work);
            let until = next.map_or(self.changes.len(), |&(at, _)| at);
            if self.place.changes < until {
                let start = self.place.changes;
                let stop = until.min(start.saturating_add(budget.steps()));
                replica.replay(&self.changes, start..stop);
                self.place.changes = stop;
                budget.spend(stop - start);
            } else {
                self.replay_work(replica, budget);
            }
        }
    }

    /// Does the work at the standby's position, as far as the budget allows.
    fn replay_work(&mut self, replica: &mut R, budget: &mut Budget) {
        let mut used = 1;
        match &self.work[self.place.work].1 {
            Work::Operation(operation) => replica.operate(operation),
            Work::Maintain(steps) => {
                used = (steps - self.place.steps).min(budget.steps());
                self.place.steps += used;
                // If the work is finished early, the remaining steps are not done later.
                if replica.maintain(used) && self.place.steps < *steps {
                    budget.spend(used);
                    return;
                }
            }
        }
        budget.spend(used);
        self.place.work += 1;
        self.place.steps = 0;
    }

    /// Bytes of the changes, including unused capacity.
    pub(super) fn bytes(&self) -> usize {
        self.changes.bytes()
    }
}
