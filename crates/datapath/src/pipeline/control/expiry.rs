//! Timeouts of flow entries (OpenFlow 1.3.5 §5.5).
//!
//! An entry with timeouts is in a queue at the earliest time when it may expire. At that
//! time an idle timeout is checked again: if packets have matched since, the entry goes
//! back into the queue. So processing a packet does not touch the queue.

use std::collections::BTreeSet;
use std::time::Duration;

use classyard::RuleId;

use crate::flow::{FlowChange, FlowEntry, RemovalReason};
use crate::pipeline::run::change::Change;

/// The queue of entries that may expire, earliest first.
#[derive(Default)]
pub(super) struct Expiry {
    queue: BTreeSet<(Duration, RuleId)>,
    /// The time of each queued entry, indexed by entry number.
    at: Vec<Option<Duration>>,
}

/// An entry has expired, with the reason, or may expire at a later time.
pub(super) enum Expiration {
    Due(RemovalReason),
    Later(Duration),
}

impl Expiry {
    /// Updates the queue after changes of entries.
    pub(in crate::pipeline) fn follow(&mut self, changes: &[Change]) {
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

    /// Removes the next entry that may have expired at `now` from the queue, and returns it.
    pub(in crate::pipeline) fn pop(&mut self, now: Duration) -> Option<RuleId> {
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

/// Returns the earliest time when an entry may expire; `None` if it has no timeout, or if
/// the time is too late for a [`Duration`].
fn soonest(entry: &FlowEntry) -> Option<Duration> {
    let timeouts = [entry.idle_timeout, entry.hard_timeout].into_iter();
    let first = timeouts.filter_map(seconds).min()?;
    entry.added.checked_add(first)
}

/// Decides whether an entry has expired. Its last packet arrived at time `last`. If both
/// timeouts have passed, the reason is the hard timeout. Returns `None` without timeouts.
pub(super) fn expiration(entry: &FlowEntry, last: Duration, now: Duration) -> Option<Expiration> {
    let after = |begin: Duration, timeout| begin.checked_add(seconds(timeout)?);
    let hard = after(entry.added, entry.hard_timeout);
    let idle = after(entry.added.max(last), entry.idle_timeout);
    if hard.is_some_and(|time| time <= now) {
        return Some(Expiration::Due(RemovalReason::HardTimeout));
    }
    if idle.is_some_and(|time| time <= now) {
        return Some(Expiration::Due(RemovalReason::IdleTimeout));
    }
    [hard, idle]
        .into_iter()
        .flatten()
        .min()
        .map(Expiration::Later)
}
