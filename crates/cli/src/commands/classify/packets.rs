//! The packets of a capture as headers, a bounded number at a time.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use classyard::{Policy, PolicyTrace, Schema};
use classyard_report::failure::Failure;
use classyard_report::input::headers::{Extent, HeadersArgs, OpenCapture};
use classyard_report::input::left_out::link_help;
use classyard_report::interrupt;
use classyard_report::output::join;
use classyard_report::reporter::Reporter;
use classyard_workload::capture::{HeaderExtractor, Packet};
use classyard_workload::diagnostic::ReadError;
use classyard_workload::packet::LinkType;

use super::input_report::InputReport;

/// The number of packets held in memory together: at most 14 MiB with headers of
/// five words.
pub(super) const MAX_HELD_PACKETS: usize = 1 << 18;

/// The number of packets of a chunk that are kept for files of packets.
const MAX_KEPT_PACKETS: usize = 1 << 14;

/// The captured bytes after which a chunk ends if they are kept.
const MAX_KEPT_BYTES: usize = 8 << 20;

/// The data of packets that a chunk keeps, in addition to their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Nothing,
    /// Times, lengths and link types.
    Records,
    /// Records and captured bytes.
    Frames,
}

/// Headers that are looked up together.
pub(super) struct Chunk {
    /// The headers.
    pub(super) trace: PolicyTrace,
    /// The packets of the headers, if they come from packets.
    pub(super) packets: Option<Column>,
}

/// The packets of a chunk.
#[derive(Default)]
pub(super) struct Column {
    /// For each packet, whether it has a header.
    pub(super) with_header: Vec<bool>,
    /// For each header, the length of its packet on the wire.
    pub(super) lengths: Vec<u32>,
    /// The length of all packets on the wire.
    pub(super) bytes: u64,
    /// The packets, if they are kept.
    records: Vec<Packet>,
    /// The captured bytes of all packets, if they are kept.
    frames: Vec<u8>,
}

impl Column {
    /// Returns the packets in order, each with its captured bytes. The bytes are empty if they
    /// are not kept.
    pub(super) fn records(&self) -> impl Iterator<Item = (&Packet, &[u8])> {
        let mut unread = self.frames.as_slice();
        self.records.iter().map(move |packet| {
            let length = (packet.captured_length() as usize).min(unread.len());
            let (frame, after) = unread.split_at(length);
            unread = after;
            (packet, frame)
        })
    }
}

/// A capture that is being read.
pub(super) struct PacketStream {
    capture: OpenCapture,
    extractor: HeaderExtractor,
    schemas: Vec<Arc<Schema>>,
    /// The maximum number of packets in a chunk.
    max_packets: usize,
    kept: Kept,
    /// If set, hand on the available packets before waiting for more.
    eager: bool,
    bytes: u64,
    /// The number of packets so far that have a header of the policy.
    header_count: usize,
}

/// A message of the reading thread.
pub(super) enum Message {
    /// A chunk that is not the last.
    More(Chunk),
    /// The last chunk: all packets have been read.
    Last(Chunk, Box<PacketStream>),
    /// The capture cannot be read.
    Failed(ReadError),
}

impl PacketStream {
    /// Creates packets for a policy, with at most `max_packets` in a chunk, or fewer if
    /// something of them is kept.
    pub(super) fn new(
        capture: OpenCapture,
        policy: &Policy,
        max_packets: usize,
        kept: Kept,
    ) -> Result<PacketStream, Failure> {
        let schemas: Vec<Arc<Schema>> = policy.schemas().cloned().collect();
        let extractor =
            HeaderExtractor::new(&schemas).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(PacketStream {
            capture,
            extractor,
            schemas,
            max_packets: match kept {
                Kept::Nothing => max_packets,
                Kept::Records | Kept::Frames => max_packets.min(MAX_KEPT_PACKETS),
            },
            kept,
            eager: false,
            bytes: 0,
            header_count: 0,
        })
    }

    /// Returns the amount of the file that was read, if it is a file.
    pub(super) fn extent(&self) -> Option<&Extent> {
        self.capture.extent.as_ref()
    }

    /// Reads the next packets. Returns true with the last ones.
    pub(super) fn next_chunk(&mut self) -> Result<(Chunk, bool), ReadError> {
        let mut trace = PolicyTrace::new(self.schemas.iter());
        let mut column = Column::default();
        let reader = &mut self.capture.reader;
        let last = loop {
            let held = column.with_header.len();
            if interrupt::is_requested() {
                break true;
            }
            let is_full = held >= self.max_packets || column.frames.len() >= MAX_KEPT_BYTES;
            if is_full || (self.eager && held > 0 && !reader.is_buffered()) {
                break false;
            }
            let Some(record) = reader.next_record()? else {
                break true;
            };
            let length = record.packet.original_length;
            let added = self.extractor.add(&record.packet, record.frame, &mut trace);
            column.with_header.push(added);
            column.bytes += u64::from(length);
            if added {
                column.lengths.push(length);
            }
            if self.kept != Kept::Nothing {
                column.records.push(record.packet);
            }
            if self.kept == Kept::Frames {
                column.frames.extend_from_slice(record.frame);
            }
        };
        self.bytes += column.bytes;
        self.header_count += trace.len();
        let packets = Some(column);
        Ok((Chunk { trace, packets }, last))
    }

    /// Continues reading in a new thread, which sends packets as they arrive. The
    /// thread waits while two chunks are unread.
    pub(super) fn in_background(mut self) -> Receiver<Message> {
        self.eager = true;
        let (sender, receiver) = sync_channel(2);
        thread::spawn(move || {
            loop {
                let message = match self.next_chunk() {
                    Ok((chunk, false)) => Message::More(chunk),
                    Ok((chunk, true)) => {
                        // If the receiver has been dropped, no result is needed.
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

    /// Warns of problems in the capture.
    pub(super) fn warn(&self, reporter: Reporter) {
        let reader = &self.capture.reader;
        let (warnings, more) = (reader.warnings(), reader.more_warnings());
        HeadersArgs::warn(reader.source(), warnings, more, reporter);
    }

    /// Returns an error if no packet of a capture has a header for the rules.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the link types, the kinds and their counts.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let reader = &self.capture.reader;
        if self.header_count > 0 || reader.packets() == 0 {
            return Ok(());
        }
        let kinds = self.extractor.left_out().into_iter();
        let kinds = kinds.map(|(kind, count)| format!("{count} {kind}"));
        let links = self.extractor.left_out_by_link().into_iter();
        let links = links.map(|(link, count)| format!("{count} of {link}"));
        let message = format!(
            "no packet of {} has a header for these rules: {}; by link type: {}",
            reader.source(),
            join(kinds, ", "),
            join(links, ", ")
        );
        Err(Failure::usage(message).with_help(link_help()))
    }

    /// Returns the link type of the first interface, or Ethernet if there is none.
    pub(super) fn link(&self) -> LinkType {
        let interface = self.capture.reader.interfaces().first();
        interface.map_or(LinkType::Ethernet, |interface| interface.link)
    }

    /// Reports the packets that were read.
    pub(super) fn report(&self) -> InputReport {
        let source = self.capture.reader.source();
        InputReport::capture(source, self.header_count, &self.extractor, self.bytes)
    }
}
