//! Monitors: a controller follows the changes of flow entries (ONF extension 187).
//!
//! ```text
//! controller ─▶ multipart request: a list of MonitorRequest
//! switch     ─▶ multipart reply:   the entries now, as FlowUpdate::Added
//! switch     ─▶ multipart reply with transaction 0 after each change: a list of FlowUpdate
//! switch     ─▶ MonitorPaused, when the controller reads too slowly
//! switch     ─▶ the entries that changed since, then MonitorResumed
//! controller ─▶ MonitorCancel
//! ```
//!
//! # Matches
//! Open vSwitch writes a match with its type and length, and counts these four bytes. os-ken
//! writes only the fields. Both forms are read, and the form of Open vSwitch is written. A
//! match is read as the form of Open vSwitch if it begins with the type and the length of
//! such a match.

use std::sync::Arc;

use classyard_datapath::flow::{Instructions, RemovalReason, TableId};
use classyard_datapath::{FlowMatch, PortNo};

use crate::fault::{Code, Fault};
use crate::flow::{removal_number, removal_reason};
use crate::oxm::{MATCH_OXM, read_fields};
use crate::wire::{Reader, Wire, Writer, layout, padding};

/// The number of multipart messages about monitors among ONF's messages.
pub(crate) const FLOW_MONITOR: u32 = 1870;

/// Types of ONF's messages about monitors.
pub(crate) const MONITOR_CANCEL: u32 = 1870;
pub(crate) const MONITOR_PAUSED: u32 = 1871;
pub(crate) const MONITOR_RESUMED: u32 = 1872;

/// Flags of monitors (`onf_flow_monitor_flags`).
pub mod flag {
    /// The reply to the request has the entries at that time.
    pub const INITIAL: u16 = 1 << 0;
    /// Added entries are reported.
    pub const ADD: u16 = 1 << 1;
    /// Removed entries are reported.
    pub const DELETE: u16 = 1 << 2;
    /// Modified entries are reported.
    pub const MODIFY: u16 = 1 << 3;
    /// Reports have the instructions of entries.
    pub const ACTIONS: u16 = 1 << 4;
    /// Changes of the same controller are reported like all others. Otherwise a report only
    /// has the transaction number of the message that made the change.
    pub const OWN: u16 = 1 << 5;
    /// All flags.
    pub const ALL: u16 = (1 << 6) - 1;
}

/// A request to monitor entries (`onf_flow_monitor_request`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorRequest {
    /// The number of the monitor, which the controller chooses.
    pub monitor: u32,
    /// Flags ([`flag`]).
    pub flags: u16,
    /// Only entries that send packets to this port; [`PortNo::ANY`] for no restriction.
    pub out_port: PortNo,
    /// The table, or all tables.
    pub table: TableId,
    /// Only entries whose matches are the same or more specific.
    pub flow: Arc<FlowMatch>,
}

impl Wire for MonitorRequest {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let (monitor, flags, match_bytes): (u32, u16, u16) =
            (reader.get()?, reader.get()?, reader.get()?);
        let (out_port, table) = (reader.get()?, reader.get()?);
        reader.skip(3)?;
        Ok(MonitorRequest {
            monitor,
            flags,
            out_port,
            table,
            flow: read_match(reader, match_bytes)?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&self.monitor);
        writer.put(&self.flags);
        let length_place = writer.len();
        writer.put(&0_u16);
        writer.put(&self.out_port);
        writer.put(&self.table);
        writer.skip(3);
        let match_bytes = write_match(writer, &self.flow);
        writer.set_length(length_place, match_bytes);
    }
}

/// Reads a match of `match_bytes` bytes, with or without its type and length, and its padding.
fn read_match(reader: &mut Reader<'_>, match_bytes: u16) -> Result<Arc<FlowMatch>, Fault> {
    let mut header = *reader;
    let begins = |header: &mut Reader<'_>| Some((header.get().ok()?, header.get().ok()?));
    if begins(&mut header) == Some((MATCH_OXM, match_bytes)) {
        return reader.get();
    }
    let length = usize::from(match_bytes);
    let mut fields = reader.or(Code::BAD_MATCH_LENGTH).part(length)?;
    let flow = read_fields(&mut fields)?;
    reader.skip(length)?;
    reader.skip(padding(length))?;
    Ok(Arc::new(flow))
}

/// Writes a match with type and length. Returns its bytes without padding.
fn write_match(writer: &mut Writer<'_>, flow: &Arc<FlowMatch>) -> usize {
    let start = writer.len();
    writer.put(flow);
    usize::from(writer.number_at(start + 2))
}

/// An entry in a report to a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitoredFlow {
    /// The entry's table.
    pub table: TableId,
    /// The entry's priority.
    pub priority: u16,
    /// The entry's idle timeout, in seconds.
    pub idle_timeout: u16,
    /// The entry's hard timeout, in seconds.
    pub hard_timeout: u16,
    /// The entry's cookie.
    pub cookie: u64,
    /// The entry's match.
    pub flow: Arc<FlowMatch>,
    /// The entry's instructions; none if the monitor does not ask for them, or if the entry was
    /// removed.
    pub instructions: Arc<Instructions>,
}

/// A report about an entry (`onf_flow_update_full`, `onf_flow_update_abbrev`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowUpdate {
    /// The entry was added, or is there when the monitor begins.
    Added(MonitoredFlow),
    /// The entry was removed.
    Deleted(MonitoredFlow, RemovalReason),
    /// The entry was modified.
    Modified(MonitoredFlow),
    /// A message of this controller, with this transaction number, has changed entries.
    Abbreviated(u32),
}

/// Numbers of events (`onf_flow_update_event`).
mod event {
    pub(super) const ENTRY_ADDED: u16 = 0;
    pub(super) const ENTRY_DELETED: u16 = 1;
    pub(super) const ENTRY_MODIFIED: u16 = 2;
    pub(super) const OWN_CHANGE: u16 = 3;
}

/// An item of a reply. It begins with its length.
impl Wire for FlowUpdate {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let length: u16 = reader.get()?;
        let mut item = reader.part(usize::from(length).saturating_sub(2))?;
        let update = match item.get()? {
            event::ENTRY_ADDED => FlowUpdate::Added(read_entry(&mut item)?.0),
            event::ENTRY_DELETED => {
                let (entry, reason) = read_entry(&mut item)?;
                FlowUpdate::Deleted(entry, removal_reason(reason)?)
            }
            event::ENTRY_MODIFIED => FlowUpdate::Modified(read_entry(&mut item)?.0),
            event::OWN_CHANGE => FlowUpdate::Abbreviated(item.get()?),
            unknown => {
                let message = format!("event {unknown} of an entry; the events are 0 to 3");
                return Err(Fault::new(Code::BAD_EXPERIMENTER_TYPE, message));
            }
        };
        item.end()?;
        Ok(update)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let start = writer.len();
        writer.put(&0_u16);
        match self {
            FlowUpdate::Added(entry) => write_entry(writer, event::ENTRY_ADDED, 0, entry),
            FlowUpdate::Deleted(entry, reason) => {
                let reason = u16::from(removal_number(*reason));
                write_entry(writer, event::ENTRY_DELETED, reason, entry);
            }
            FlowUpdate::Modified(entry) => write_entry(writer, event::ENTRY_MODIFIED, 0, entry),
            FlowUpdate::Abbreviated(xid) => {
                writer.put(&event::OWN_CHANGE);
                writer.put(xid);
            }
        }
        writer.set_length(start, writer.len() - start);
    }
}

/// Reads an entry behind the event, and the number of the reason.
fn read_entry(item: &mut Reader<'_>) -> Result<(MonitoredFlow, u16), Fault> {
    let (reason, priority) = (item.get()?, item.get()?);
    let (idle_timeout, hard_timeout) = (item.get()?, item.get()?);
    let (match_bytes, table) = (item.get()?, item.get()?);
    item.skip(1)?;
    let entry = MonitoredFlow {
        table,
        priority,
        idle_timeout,
        hard_timeout,
        cookie: item.get()?,
        flow: read_match(item, match_bytes)?,
        instructions: Arc::new(item.get()?),
    };
    Ok((entry, reason))
}

fn write_entry(writer: &mut Writer<'_>, event: u16, reason: u16, entry: &MonitoredFlow) {
    writer.put(&event);
    writer.put(&reason);
    writer.put(&entry.priority);
    writer.put(&entry.idle_timeout);
    writer.put(&entry.hard_timeout);
    let length_place = writer.len();
    writer.put(&0_u16);
    writer.put(&entry.table);
    writer.skip(1);
    writer.put(&entry.cookie);
    let match_bytes = write_match(writer, &entry.flow);
    writer.set_length(length_place, match_bytes);
    writer.put(&*entry.instructions);
}

layout! {
    /// Ends a monitor (`nx_flow_monitor_cancel`).
    pub struct MonitorCancel {
        /// The number of the monitor.
        monitor: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::multipart::{List, Multipart, Reply, Request};

    fn multipart(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u8::try_from(24 + body.len()).expect("a short message");
        let head = [4, kind, 0, length, 0, 0, 0, 6, 0xff, 0xff, 0, 0, 0, 0, 0, 0];
        [&head[..], &[0x4f, 0x4e, 0x46, 0, 0, 0, 7, 0x4e], body].concat()
    }

    /// A monitor of entries that match port 7, in the form with a header and in the form
    /// without.
    #[test]
    fn both_forms_of_matches_are_read() {
        let fixed = [0, 0, 16, 0, 0, 0x3f];
        let rest = [0xff, 0xff, 0xff, 0xfe, 1, 0, 0, 0];
        let field = [0x80, 0, 0, 4, 0, 0, 0, 7];
        let with_header = [&fixed[..], &[0, 12], &rest, &[0, 1, 0, 12], &field, &[0; 4]].concat();
        let without = [&fixed[..], &[0, 8], &rest, &field].concat();
        let empty_with_header = [&fixed[..], &[0, 4], &rest, &[0, 1, 0, 4, 0, 0, 0, 0]].concat();
        let empty = [&fixed[..], &[0, 0], &rest].concat();
        for (first, second, text) in [
            (with_header, without, "in_port=7"),
            (empty_with_header, empty, ""),
        ] {
            let both = [&first[..], &second[..]].concat();
            let (_, message) = Message::read(&multipart(18, &both)).expect("a right message");
            let Message::MultipartRequest(Multipart {
                body: Request::FlowMonitor(List(requests)),
                ..
            }) = &message
            else {
                panic!("{message:?}");
            };
            assert_eq!(requests[0], requests[1]);
            assert_eq!(requests[0].flow.to_string(), text);
            let (number, table) = (requests[0].monitor, requests[0].table);
            assert_eq!((number, table), (4096, TableId(1)));
            // The form with a header is written.
            let twice = [&first[..], &first[..]].concat();
            assert_eq!(message.to_bytes(6), multipart(18, &twice));
        }
    }

    #[test]
    fn updates_are_written_as_they_were_read() {
        let deleted = [
            &[0, 40, 0, 1, 0, 2, 0x80, 0, 0, 5, 0, 0, 0, 12, 0, 0][..],
            &[0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0],
            &[0, 1, 0, 12, 0x80, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0],
        ]
        .concat();
        let abbreviated = [0, 8, 0, 3, 0, 1, 0x86, 0xa0];
        let bytes = multipart(19, &[&deleted[..], &abbreviated].concat());
        let (header, message) = Message::read(&bytes).expect("a right message");
        assert_eq!(message.to_bytes(header.xid), bytes);
        let Message::MultipartReply(Multipart {
            body: Reply::FlowMonitor(List(updates)),
            ..
        }) = message
        else {
            panic!("{message:?}");
        };
        assert_eq!(updates[1], FlowUpdate::Abbreviated(100_000));
        let FlowUpdate::Deleted(entry, reason) = &updates[0] else {
            panic!("{updates:?}");
        };
        assert_eq!((entry.priority, entry.idle_timeout), (0x8000, 5));
        assert_eq!(*reason, RemovalReason::Delete);
    }

    #[test]
    fn faults_have_codes() {
        // An incomplete match, a match with an unknown field, an unknown event.
        let request = [
            0, 0, 0, 1, 0, 2, 0, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0,
        ];
        let field = [0x90, 0, 0, 4, 0, 0, 0, 7];
        let cases = [
            (multipart(18, &request), Code::BAD_MATCH_LENGTH),
            (
                multipart(18, &[&request[..], &field].concat()),
                Code::BAD_MATCH_FIELD,
            ),
            (multipart(18, &request[..15]), Code::BAD_LENGTH),
            (
                multipart(19, &[0, 8, 0, 9, 0, 0, 0, 0]),
                Code::BAD_EXPERIMENTER_TYPE,
            ),
        ];
        for (bytes, code) in cases {
            let fault = Message::read(&bytes).expect_err("a fault");
            assert_eq!(fault.code, code, "{bytes:?}");
        }
    }
}
