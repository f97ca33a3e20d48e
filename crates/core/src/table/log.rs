//! What a side of a table still has to be told: changes, and work that is no
//! change, in order.

use super::replica::{ChangeLog, Replica};

/// Work that is no change, and that both sides do at the same place among the
/// changes.
enum Work<O> {
    /// The replica's own.
    Operation(O),
    /// Maintenance, and the number of its steps.
    Maintain(usize),
}

/// How far one side has come in a log. The sides replay a log one after the
/// other, so one such place is enough.
#[derive(Clone, Copy, Default)]
struct Place {
    changes: usize,
    work: usize,
    /// Steps of the work there that are done.
    steps: usize,
}

/// Changes and work in order. Cleared and filled again, it allocates nothing.
///
/// ```text
///  changes     a b c d e f g h i j
///  work             ^2    ^5           each before the change of that number
///  place              ^                the standby has what is on the left
/// ```
pub(super) struct Log<R: Replica> {
    changes: R::Log,
    /// Work, each with the number of changes before it.
    work: Vec<(usize, Work<R::Operation>)>,
    /// What the standby has.
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

    /// The changes, to append to.
    pub(super) fn changes_mut(&mut self) -> &mut R::Log {
        &mut self.changes
    }

    /// Whether there is work to do.
    pub(super) fn has_work(&self) -> bool {
        !self.work.is_empty()
    }

    /// Takes the place of operations that it replaces, also if the standby has
    /// done them already: the other side then goes without.
    pub(super) fn push_operation(&mut self, operation: R::Operation) {
        let replaced = |(_, work): &(usize, Work<R::Operation>)| match work {
            Work::Operation(earlier) => R::replaces(&operation, earlier),
            Work::Maintain(_) => false,
        };
        let behind = self.work[..self.place.work].iter();
        self.place.work -= behind.filter(|&entry| replaced(entry)).count();
        self.work.retain(|entry| !replaced(entry));
        let here = self.changes.len();
        self.work.push((here, Work::Operation(operation)));
    }

    /// Steps are added to those at the same place, so the log does not grow with
    /// each call.
    pub(super) fn push_steps(&mut self, more: usize) {
        let here = self.changes.len();
        let made = self.place.work == self.work.len();
        match self.work.last_mut() {
            Some((at, Work::Maintain(steps))) if *at == here => {
                if made {
                    self.place.work -= 1;
                    self.place.steps = *steps;
                }
                *steps = steps.saturating_add(more);
            }
            _ => self.work.push((here, Work::Maintain(more))),
        }
    }

    /// Forgets everything and keeps memory for `keep` changes.
    pub(super) fn clear(&mut self, keep: usize) {
        self.changes.clear(keep);
        self.work.clear();
        self.rewind();
    }

    /// The sides have swapped: the new standby has nothing of this.
    pub(super) fn rewind(&mut self) {
        self.place = Place::default();
    }

    /// Whether the standby has everything.
    pub(super) fn is_done(&self) -> bool {
        self.place.changes == self.changes.len() && self.place.work == self.work.len()
    }

    /// Continues with the standby, in order, until the budget is used up: a
    /// change costs 1, other work costs its steps. Subtracts what it has used
    /// from the budget.
    pub(super) fn replay(&mut self, replica: &mut R, budget: &mut usize) {
        while *budget > 0 && !self.is_done() {
            let next = self.work.get(self.place.work);
            let until = next.map_or(self.changes.len(), |&(at, _)| at);
            if self.place.changes < until {
                let from = self.place.changes;
                let to = until.min(from.saturating_add(*budget));
                replica.replay(&self.changes, from..to);
                self.place.changes = to;
                *budget -= to - from;
            } else {
                self.replay_work(replica, budget);
            }
        }
    }

    /// Goes on with the work at the place reached.
    fn replay_work(&mut self, replica: &mut R, budget: &mut usize) {
        let mut used = 1;
        match &self.work[self.place.work].1 {
            Work::Operation(operation) => replica.operate(operation),
            Work::Maintain(steps) => {
                used = (steps - self.place.steps).min(*budget);
                self.place.steps += used;
                // The steps that are left where nothing is to do cost nothing.
                if replica.maintain(used) && self.place.steps < *steps {
                    *budget -= used;
                    return;
                }
            }
        }
        *budget -= used;
        self.place.work += 1;
        self.place.steps = 0;
    }

    /// Bytes that the changes hold, spare room included.
    pub(super) fn bytes(&self) -> usize {
        self.changes.bytes()
    }
}
