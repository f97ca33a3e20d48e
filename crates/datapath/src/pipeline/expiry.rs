//! Flow entries whose time is over (OpenFlow 1.3.5 §5.5).
//!
//! An entry with timeouts stands in a queue at the earliest time at which it may go.
//! When that comes, an idle timeout is looked at again: if packets came since, the
//! entry goes back into the queue. So packets cost nothing here.

use std::collections::BTreeSet;
use std::time::Duration;

use classyard::RuleId;

use super::message::Change;
use crate::flow::{FlowChange, FlowEntry, RemovalReason};

/// When entries may go, soonest first.
#[derive(Default)]
pub(super) struct Expiry {
    queue: BTreeSet<(Duration, RuleId)>,
    /// Where entries stand in the queue, by their numbers.
    at: Vec<Option<Duration>>,
}

/// Whether an entry's time is over, and why; otherwise when it may be.
pub(super) enum Verdict {
    Gone(RemovalReason),
    Later(Duration),
}

impl Expiry {
    /// Follows changes of entries.
    pub(super) fn follow(&mut self, changes: &[Change]) {
        for change in changes {
            let Change::Flow(change) = change else {
                continue;
            };
            let entry = match change {
                FlowChange::Added(entry) => entry,
                FlowChange::Changed { new, .. } => new,
                FlowChange::Removed(entry, _) => {
                    self.take_out(entry.id);
                    continue;
                }
            };
            self.take_out(entry.id);
            if let Some(time) = soonest(entry) {
                self.put_in(entry.id, time);
            }
        }
    }

    /// The next entry that may go by now; it is out of the queue.
    pub(super) fn pop(&mut self, now: Duration) -> Option<RuleId> {
        let &(time, id) = self.queue.first()?;
        if time > now {
            return None;
        }
        self.take_out(id);
        Some(id)
    }

    pub(super) fn put_in(&mut self, id: RuleId, time: Duration) {
        if self.at.len() <= id.index() {
            self.at.resize(id.index() + 1, None);
        }
        self.at[id.index()] = Some(time);
        self.queue.insert((time, id));
    }

    fn take_out(&mut self, id: RuleId) {
        if let Some(time) = self.at.get_mut(id.index()).and_then(Option::take) {
            self.queue.remove(&(time, id));
        }
    }
}

fn seconds(timeout: u16) -> Option<Duration> {
    (timeout > 0).then(|| Duration::from_secs(u64::from(timeout)))
}

/// The earliest time at which an entry may go; `None` if that is later than any time.
fn soonest(entry: &FlowEntry) -> Option<Duration> {
    let timeouts = [entry.idle_timeout, entry.hard_timeout].into_iter();
    let first = timeouts.filter_map(seconds).min()?;
    entry.added.checked_add(first)
}

/// Whether an entry's time is over, of which the last packet came at some time. A hard
/// timeout counts before an idle one.
pub(super) fn judge(entry: &FlowEntry, last: Duration, now: Duration) -> Option<Verdict> {
    let after = |begin: Duration, timeout| begin.checked_add(seconds(timeout)?);
    let hard = after(entry.added, entry.hard_timeout);
    let idle = after(entry.added.max(last), entry.idle_timeout);
    if hard.is_some_and(|time| time <= now) {
        return Some(Verdict::Gone(RemovalReason::HardTimeout));
    }
    if idle.is_some_and(|time| time <= now) {
        return Some(Verdict::Gone(RemovalReason::IdleTimeout));
    }
    [hard, idle].into_iter().flatten().min().map(Verdict::Later)
}
