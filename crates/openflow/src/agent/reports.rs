//! Reports of monitors about changes of entries, and the entries that monitors begin with.

use classyard_datapath::flow::FlowStore;
use classyard_datapath::pipeline::Change;

use super::monitor::{Cause, EntryChange, MAX_REPORT_BYTES};
use super::parts::Parts;
use super::session::{Session, Waiting};
use super::stats::{ENTRIES_PER_STEP, check_table};
use super::turn::Turn;
use crate::fault::Fault;
use crate::message::Message;
use crate::monitor::{FlowUpdate, MonitorRequest, flag};
use crate::multipart::{List, Nothing, Reply};

/// The transaction number of reports, which no request has.
const NO_REQUEST: u32 = 0;

/// Returns a reply about monitors without items.
fn empty_reply(xid: u32) -> Parts {
    Parts::new(xid, Reply::FlowMonitor(List(Vec::new())))
}

/// Reports that are sent together.
#[derive(Default)]
struct Batch(Option<Parts>);

impl Batch {
    /// Adds a report. Returns false if it is longer than a message can be.
    fn push(&mut self, update: &FlowUpdate) -> bool {
        let parts = self.0.get_or_insert_with(|| empty_reply(NO_REQUEST));
        parts.push(update)
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, Parts::len)
    }
}

impl Session {
    /// Reports changes of entries that the session's monitors select.
    pub(super) fn report(&mut self, cause: Cause, changes: &[Change]) {
        if self.monitors.is_empty() || !self.connection.is_open() {
            return;
        }
        let mut batch = Batch::default();
        let mut is_abbreviated = false;
        for change in changes {
            let Some(change) = EntryChange::of(change, cause) else {
                continue;
            };
            let is_paused = self.monitors.are_paused();
            let flags = match is_paused {
                true => self.monitors.miss(&change),
                false => self.monitors.flags_for(&change),
            };
            let Some(flags) = flags else {
                continue;
            };
            match cause {
                Cause::Own { xid, .. } if flags & flag::OWN == 0 && !is_paused => {
                    if !is_abbreviated {
                        is_abbreviated = true;
                        batch.push(&FlowUpdate::Abbreviated(xid));
                    }
                }
                _ => self.push(&mut batch, &change.update(flags)),
            }
            if !is_paused && self.unsent().len() + batch.len() > MAX_REPORT_BYTES {
                self.send_batch(&mut batch);
                self.monitors.pause();
                self.counts.monitor_pauses += 1;
                self.send(NO_REQUEST, &Message::MonitorPaused(Nothing));
            }
        }
        self.send_batch(&mut batch);
    }

    fn push(&mut self, batch: &mut Batch, update: &FlowUpdate) {
        let is_sent = batch.push(update);
        self.counts.too_long += u64::from(!is_sent);
    }

    /// Sends the reports of a batch, and leaves it empty.
    fn send_batch(&mut self, batch: &mut Batch) {
        if let Some(parts) = batch.0.take() {
            self.send_bytes(&parts.finish(false));
        }
    }

    /// Reports the changes that paused monitors have missed, if all bytes have been sent. The
    /// pause ends when no such change is left.
    pub(super) fn resume_monitors(&mut self, flows: &FlowStore) {
        if !self.monitors.are_paused() || !self.unsent().is_empty() {
            return;
        }
        let mut batch = Batch::default();
        while let Some(update) = self.monitors.take_missed(flows) {
            if let Some(update) = update {
                self.push(&mut batch, &update);
            }
            if batch.len() > MAX_REPORT_BYTES {
                break;
            }
        }
        self.send_batch(&mut batch);
        if self.monitors.resume() {
            self.send(NO_REQUEST, &Message::MonitorResumed(Nothing));
        }
    }
}

impl Turn<'_, '_> {
    /// Adds monitors. The reply has the entries that they begin with.
    pub(super) fn monitor(&mut self, xid: u32, requests: &[MonitorRequest]) -> Result<(), Fault> {
        let mut tables = requests.iter().map(|request| request.table);
        tables.try_for_each(check_table)?;
        match self.session.monitors.add(requests)? {
            true => self.session.waiting = Some(Waiting::Monitors(xid)),
            false => self.session.send_bytes(&empty_reply(xid).finish(false)),
        }
        Ok(())
    }

    /// Sends the next part of the entries that new monitors begin with. Returns true if more
    /// entries are left.
    pub(super) fn send_monitored(&mut self, xid: u32) -> bool {
        let session = &mut *self.session;
        let mut parts = empty_reply(xid);
        let mut entries_left = ENTRIES_PER_STEP;
        let flows = self.around.pipeline.flows();
        let mut entries = flows.after(session.monitors.reached());
        let is_more = loop {
            let Some(entry) = entries.next() else {
                break false;
            };
            if entries_left == 0 {
                break true;
            }
            entries_left -= 1;
            if let Some(update) = session.monitors.begin_with(entry) {
                let is_sent = parts.push(&update);
                session.counts.too_long += u64::from(!is_sent);
            }
        };
        session.send_bytes(&parts.finish(is_more));
        if !is_more {
            session.monitors.end_beginning();
        }
        is_more
    }

    /// Reports changes of entries to this controller and to all others.
    pub(super) fn report(&mut self, cause: Cause, changes: &[Change]) {
        self.session.report(cause, changes);
        for other in self.others.values_mut() {
            other.report(cause.for_others(), changes);
        }
    }
}
