//! The packets of a capture as headers, a bounded number at a time.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use classyard::{Policy, PolicyTrace, Schema};
use classyard_workload::capture::PacketHeaders;
use classyard_workload::diagnostic::ReadError;

use super::report::InputReport;
use crate::failure::Failure;
use crate::input::headers::{Extent, HeadersArgs, OpenCapture};
use crate::input::left_out::link_help;
use crate::interrupt;
use crate::output::join;
use crate::reporter::Reporter;

/// Packets that are held in memory together: at most 14 MiB with headers of
/// five words.
pub(super) const HELD: usize = 1 << 18;

/// Headers that are looked up together.
pub(super) struct Chunk {
    /// The headers.
    pub(super) trace: PolicyTrace,
    /// Where the headers come from, if they come from packets.
    pub(super) packets: Option<Column>,
}

/// What a chunk holds of its packets.
#[derive(Default)]
pub(super) struct Column {
    /// For each packet, whether it has a header.
    pub(super) with_header: Vec<bool>,
    /// For each header, how long its packet was on the wire.
    pub(super) lengths: Vec<u32>,
    /// How long all packets were on the wire.
    pub(super) bytes: u64,
}

/// A capture that is being read.
pub(super) struct Packets {
    capture: OpenCapture,
    headers: PacketHeaders,
    schemas: Vec<Arc<Schema>>,
    /// Packets of a chunk.
    most: usize,
    /// Hand on what there is before waiting for more.
    eager: bool,
    bytes: u64,
    with_header: usize,
}

/// What the thread that reads has to say.
pub(super) enum Message {
    /// More will come.
    More(Chunk),
    /// All packets have been read.
    Last(Chunk, Box<Packets>),
    /// The capture cannot be read.
    Failed(ReadError),
}

impl Packets {
    /// Packets for a policy, `most` to a chunk.
    pub(super) fn new(
        capture: OpenCapture,
        policy: &Policy,
        most: usize,
    ) -> Result<Packets, Failure> {
        let schemas: Vec<Arc<Schema>> = policy.schemas().cloned().collect();
        let headers =
            PacketHeaders::new(&schemas).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Packets {
            capture,
            headers,
            schemas,
            most,
            eager: false,
            bytes: 0,
            with_header: 0,
        })
    }

    /// How far the file has been read, if it is one.
    pub(super) fn extent(&self) -> Option<&Extent> {
        self.capture.extent.as_ref()
    }

    /// The next packets, and whether they are the last ones.
    pub(super) fn next_chunk(&mut self) -> Result<(Chunk, bool), ReadError> {
        let mut trace = PolicyTrace::new(self.schemas.iter());
        let mut column = Column::default();
        let reader = &mut self.capture.reader;
        let last = loop {
            let held = column.with_header.len();
            if interrupt::is_requested() {
                break true;
            }
            if held >= self.most || (self.eager && held > 0 && !reader.is_buffered()) {
                break false;
            }
            let Some(record) = reader.next_record()? else {
                break true;
            };
            let length = record.packet.original_length;
            let added = self.headers.add(&record.packet, record.frame, &mut trace);
            column.with_header.push(added);
            column.bytes += u64::from(length);
            if added {
                column.lengths.push(length);
            }
        };
        self.bytes += column.bytes;
        self.with_header += trace.len();
        let packets = Some(column);
        Ok((Chunk { trace, packets }, last))
    }

    /// Reads on in a thread of its own, which hands packets on as they come.
    /// Two chunks wait at most; then the thread does.
    pub(super) fn in_background(mut self) -> Receiver<Message> {
        self.eager = true;
        let (sender, receiver) = sync_channel(2);
        thread::spawn(move || {
            loop {
                let message = match self.next_chunk() {
                    Ok((chunk, false)) => Message::More(chunk),
                    Ok((chunk, true)) => {
                        // If the receiver is gone, no result is needed.
                        let _ = sender.send(Message::Last(chunk, Box::new(self)));
                        return;
                    }
                    Err(error) => Message::Failed(error),
                };
                let failed = matches!(message, Message::Failed(_));
                if sender.send(message).is_err() || failed {
                    return;
                }
            }
        });
        receiver
    }

    /// Says what is wrong with the capture.
    pub(super) fn warn(&self, reporter: Reporter) {
        let reader = &self.capture.reader;
        let (warnings, more) = (reader.warnings(), reader.more_warnings());
        HeadersArgs::warn(reader.source(), warnings, more, reporter);
    }

    /// Refuses a capture of which no packet has a header for the rules.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the link types, the kinds and their counts.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let reader = &self.capture.reader;
        if self.with_header > 0 || reader.packets() == 0 {
            return Ok(());
        }
        let kinds = self.headers.left_out().into_iter();
        let kinds = kinds.map(|(kind, count)| format!("{count} {kind}"));
        let links = self.headers.left_out_by_link().into_iter();
        let links = links.map(|(link, count)| format!("{count} of {link}"));
        let message = format!(
            "no packet of {} has a header for these rules: {}; by link type: {}",
            reader.source(),
            join(kinds, ", "),
            join(links, ", ")
        );
        Err(Failure::usage(message).with_help(link_help()))
    }

    /// What was read.
    pub(super) fn report(&self) -> InputReport {
        let source = self.capture.reader.source();
        InputReport::capture(source, self.with_header, &self.headers, self.bytes)
    }
}
