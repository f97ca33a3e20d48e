//! The monitors of a session (ONF extension 187): their filters, and the changes that they do
//! not report while they pause.
//!
//! # Pausing
//! When too many bytes are unsent, the session's monitors pause. Then the session only notes
//! the numbers of added and modified entries. It still reports removed entries, unless they
//! were added during the pause. When all bytes have been sent, it reports the noted entries as
//! they are then.
//!
//! # The entries at the beginning
//! A new monitor with [`flag::INITIAL`] begins with the entries that exist. The session sends
//! them in parts, in the order of tables and numbers. Until an entry has its turn, changes of
//! this entry are not reported: its last state will be sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use classyard::RuleId;
use classyard_datapath::flow::{
    Command, FlowChange, FlowEntry, FlowStore, Instructions, RemovalReason, TableId,
};
use classyard_datapath::pipeline::{Change, Message as PipelineMessage};
use classyard_datapath::{FlowMatch, PortNo};

use crate::fault::{Code, Fault};
use crate::monitor::{FlowUpdate, MonitorRequest, MonitoredFlow, flag};

/// Maximum number of monitors of a session.
pub const MAX_MONITORS: usize = 64;

/// Unsent bytes of a session beyond which its monitors pause.
pub const MAX_REPORT_BYTES: usize = 1 << 20;

/// The cause of changes of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A message of the controller itself.
    Own {
        /// The transaction number.
        xid: u32,
        /// True for a message that adds an entry.
        adds: bool,
    },
    /// A message of another controller.
    Other {
        /// True for a message that adds an entry.
        adds: bool,
    },
    /// No message.
    Switch,
}

impl Cause {
    /// Returns the cause, for the controller that has sent the message.
    pub(super) fn of(xid: u32, message: &PipelineMessage) -> Cause {
        let adds =
            matches!(message, PipelineMessage::Flow(change) if change.command == Command::Add);
        Cause::Own { xid, adds }
    }

    /// Returns the cause, for all other controllers.
    pub(super) fn for_others(self) -> Cause {
        match self {
            Cause::Own { adds, .. } => Cause::Other { adds },
            other => other,
        }
    }

    fn adds(self) -> bool {
        matches!(
            self,
            Cause::Own { adds: true, .. } | Cause::Other { adds: true }
        )
    }
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Added,
    Modified,
    Deleted(RemovalReason),
}

/// A change of an entry, as monitors see it.
#[derive(Clone, Copy)]
pub(super) struct EntryChange<'c> {
    event: Event,
    /// The entry after the change, or the removed entry.
    entry: &'c FlowEntry,
    /// The instructions before the change, if there was an entry.
    old: Option<&'c Arc<Instructions>>,
    /// The instructions after the change, if there is an entry.
    new: Option<&'c Arc<Instructions>>,
    /// Flags of monitors that report such a change.
    flags: u16,
}

impl<'c> EntryChange<'c> {
    /// Returns the change if it concerns an entry, and `None` if not.
    pub(super) fn of(change: &'c Change, cause: Cause) -> Option<EntryChange<'c>> {
        let Change::Flow(change) = change else {
            return None;
        };
        let (event, entry, old) = match change {
            FlowChange::Added(entry) => (Event::Added, entry, None),
            // As in Open vSwitch, an entry that replaces another one is added.
            FlowChange::Changed { old, new, .. } if cause.adds() => {
                (Event::Added, &**new, Some(&old.instructions))
            }
            FlowChange::Changed { old, new, .. } => {
                (Event::Modified, &**new, Some(&old.instructions))
            }
            FlowChange::Removed(entry, reason) => {
                (Event::Deleted(*reason), entry, Some(&entry.instructions))
            }
        };
        let (new, flags) = match event {
            Event::Added => (Some(&entry.instructions), flag::ADD),
            Event::Modified => (Some(&entry.instructions), flag::MODIFY),
            Event::Deleted(_) => (None, flag::DELETE),
        };
        Some(EntryChange {
            event,
            entry,
            old,
            new,
            flags,
        })
    }

    /// Returns the report of the change, for monitors with these flags together.
    pub(super) fn update(&self, flags: u16) -> FlowUpdate {
        let entry = described(self.entry, flags);
        match self.event {
            Event::Added => FlowUpdate::Added(entry),
            Event::Modified => FlowUpdate::Modified(entry),
            Event::Deleted(reason) => FlowUpdate::Deleted(
                MonitoredFlow {
                    instructions: Arc::default(),
                    ..entry
                },
                reason,
            ),
        }
    }
}

/// Returns the description of an entry, with instructions if the flags require them.
pub(super) fn described(entry: &FlowEntry, flags: u16) -> MonitoredFlow {
    let has_instructions = flags & flag::ACTIONS != 0;
    MonitoredFlow {
        table: entry.table,
        priority: entry.priority,
        idle_timeout: entry.idle_timeout,
        hard_timeout: entry.hard_timeout,
        cookie: entry.cookie,
        flow: Arc::clone(&entry.flow),
        instructions: match has_instructions {
            true => Arc::clone(&entry.instructions),
            false => Arc::default(),
        },
    }
}

/// A monitor.
struct Monitor {
    flags: u16,
    out_port: Option<PortNo>,
    table: TableId,
    flow: Arc<FlowMatch>,
    /// True until all entries that it begins with are sent.
    begins: bool,
}

impl Monitor {
    /// True if the monitor is about an entry, which has or had these instructions.
    fn is_about(&self, entry: &FlowEntry, states: [Option<&Arc<Instructions>>; 2]) -> bool {
        let sends = |port| {
            let mut states = states.iter().flatten();
            states.any(|instructions| instructions.sends_to(port))
        };
        (self.table == TableId::ALL || self.table == entry.table)
            && self.out_port.is_none_or(sends)
            && self.flow.includes(&entry.flow)
    }
}

/// An entry that has changed while the monitors pause.
struct Missed {
    /// The instructions that the controller knows; `None` if the entry was added.
    known: Option<Arc<Instructions>>,
    /// Flags of monitors that report the changes.
    flags: u16,
}

/// The monitors of a session, by their numbers.
#[derive(Default)]
pub(super) struct Monitors {
    by_number: BTreeMap<u32, Monitor>,
    /// The last entry that new monitors have looked at, while they begin.
    reached: Option<(TableId, RuleId)>,
    /// The changed entries that are not reported, while the monitors pause.
    missed: Option<BTreeMap<RuleId, Missed>>,
}

impl Monitors {
    pub(super) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// Adds all monitors of a request, or none. Returns true if a monitor begins with the
    /// entries that exist.
    pub(super) fn add(&mut self, requests: &[MonitorRequest]) -> Result<bool, Fault> {
        let events = flag::ADD | flag::DELETE | flag::MODIFY;
        let mut numbers = std::collections::BTreeSet::new();
        for request in requests {
            let (number, flags) = (request.monitor, request.flags);
            if flags & !flag::ALL != 0 || flags & events == 0 {
                let message = format!(
                    "flags {flags:#06x} of monitor {number}; monitors have {:#06x}, and one of \
                     {events:#06x}",
                    flag::ALL
                );
                return Err(Fault::new(Code::BAD_MONITOR_FLAGS, message));
            }
            if self.by_number.contains_key(&number) || !numbers.insert(number) {
                let message = format!("there is already a monitor {number}");
                return Err(Fault::new(Code::MONITOR_EXISTS, message));
            }
        }
        if self.by_number.len() + requests.len() > MAX_MONITORS {
            let message = format!("a connection has {MAX_MONITORS} monitors at most");
            return Err(Fault::new(Code::MULTIPART_OVERFLOW, message));
        }
        for request in requests {
            let monitor = Monitor {
                flags: request.flags,
                out_port: Some(request.out_port).filter(|port| *port != PortNo::ANY),
                table: request.table,
                flow: Arc::clone(&request.flow),
                begins: request.flags & flag::INITIAL != 0,
            };
            self.by_number.insert(request.monitor, monitor);
        }
        self.reached = None;
        Ok(self.by_number.values().any(|monitor| monitor.begins))
    }

    /// Ends a monitor.
    pub(super) fn cancel(&mut self, number: u32) -> Result<(), Fault> {
        if self.by_number.remove(&number).is_none() {
            let message = format!("there is no monitor {number}");
            return Err(Fault::new(Code::UNKNOWN_MONITOR, message));
        }
        if let Some(missed) = self.missed.as_mut().filter(|_| self.by_number.is_empty()) {
            missed.clear();
        }
        Ok(())
    }

    /// Returns the flags of all monitors that report a change together, or `None`.
    pub(super) fn flags_for(&self, change: &EntryChange<'_>) -> Option<u16> {
        let place = Some((change.entry.table, change.entry.id));
        let monitors = self.by_number.values();
        let flags = monitors
            .filter(|monitor| !monitor.begins || place <= self.reached)
            .filter(|monitor| monitor.flags & change.flags != 0)
            .filter(|monitor| monitor.is_about(change.entry, [change.old, change.new]))
            .fold(0, |flags, monitor| flags | monitor.flags);
        (flags != 0).then_some(flags)
    }

    /// Returns the report of the next entry that new monitors begin with, or `None` if they do
    /// not monitor the entry.
    pub(super) fn begin_with(&mut self, entry: &FlowEntry) -> Option<FlowUpdate> {
        self.reached = Some((entry.table, entry.id));
        let monitors = self.by_number.values();
        let flags = monitors
            .filter(|monitor| monitor.begins)
            .filter(|monitor| monitor.is_about(entry, [Some(&entry.instructions), None]))
            .fold(0, |flags, monitor| flags | monitor.flags);
        if flags == 0 {
            return None;
        }
        // The controller has the entry now, so its removal is reported.
        if let Some(missed) = self.missed.as_mut().and_then(|all| all.get_mut(&entry.id)) {
            missed.known = Some(Arc::clone(&entry.instructions));
        }
        Some(FlowUpdate::Added(described(entry, flags)))
    }

    /// Returns the last entry that new monitors have looked at.
    pub(super) fn reached(&self) -> Option<(TableId, RuleId)> {
        self.reached
    }

    /// Notes that new monitors have looked at all entries.
    pub(super) fn end_beginning(&mut self) {
        self.reached = None;
        let monitors = self.by_number.values_mut();
        monitors.for_each(|monitor| monitor.begins = false);
    }

    /// Returns true if the monitors pause.
    pub(super) fn are_paused(&self) -> bool {
        self.missed.is_some()
    }

    pub(super) fn pause(&mut self) {
        self.missed = Some(BTreeMap::new());
    }

    /// Ends the pause if every missed change was taken. Returns true if it has ended.
    pub(super) fn resume(&mut self) -> bool {
        let is_over = self.missed.as_ref().is_some_and(BTreeMap::is_empty);
        if is_over {
            self.missed = None;
        }
        is_over
    }

    /// Notes a change while the monitors pause. Returns the removals that are reported
    /// nevertheless, with the flags of monitors.
    pub(super) fn miss(&mut self, change: &EntryChange<'_>) -> Option<u16> {
        let missed = self.missed.as_mut()?;
        let id = change.entry.id;
        if let Event::Deleted(_) = change.event {
            return match missed.remove(&id) {
                None => self.flags_for(change),
                Some(Missed { known, .. }) => {
                    let old = Some(known.as_ref()?);
                    self.flags_for(&EntryChange { old, ..*change })
                }
            };
        }
        let entry = missed.entry(id).or_insert_with(|| Missed {
            known: change.old.map(Arc::clone),
            flags: 0,
        });
        entry.flags |= change.flags;
        None
    }

    /// Takes a missed change, and returns its report, or `Some(None)` if no monitor reports it.
    /// Returns `None` when all missed changes are taken.
    pub(super) fn take_missed(&mut self, flows: &FlowStore) -> Option<Option<FlowUpdate>> {
        let (id, Missed { known, flags }) = self.missed.as_mut()?.pop_first()?;
        let Some(entry) = flows.get(id) else {
            return Some(None);
        };
        let is_modified = known.is_some() && flags & flag::MODIFY != 0;
        let change = EntryChange {
            event: match is_modified {
                true => Event::Modified,
                false => Event::Added,
            },
            entry,
            old: known.as_ref(),
            new: Some(&entry.instructions),
            flags,
        };
        Some(self.flags_for(&change).map(|flags| change.update(flags)))
    }
}
