//! Captures: frames are received from a file, and sent into a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use classyard_datapath::Packet;
use classyard_workload::capture::{CaptureReader, PcapWriter, ReadOptions, ethernet_frame};
use classyard_workload::packet::LinkType;

use crate::counters::{Counters, QueueCounts};
use crate::error::OpenError;
use crate::queue::{Queue, Sent};
use crate::software::Software;
use crate::sys::event::Event;

/// Bytes of frames that are held before they are written without a flush.
const MAX_BUFFER_BYTES: usize = 1 << 20;

/// Opens the queues of a device of files, one for each of `counters`. The first queue receives
/// the frames of the file.
pub(crate) fn open(
    receive: Option<&Path>,
    send: Option<&Path>,
    counters: &[Arc<Counters>],
) -> Result<Vec<Box<dyn Queue>>, OpenError> {
    let mut reader = receive.map(open_reader).transpose()?;
    let writer = send.map(open_writer).transpose()?;
    let writer = writer.map(|writer| Arc::new(Mutex::new(writer)));
    let mut queues: Vec<Box<dyn Queue>> = Vec::new();
    for counters in counters {
        let event = Event::new().map_err(|error| OpenError::System {
            name: "capture".to_owned(),
            operation: "create an event",
            error,
        })?;
        let reader = reader.take();
        if reader.is_some() {
            event.set();
        }
        queues.push(Box::new(CaptureQueue {
            reader,
            error: None,
            event,
            writer: writer.clone(),
            software: Software::default(),
            counters: Arc::clone(counters),
        }));
    }
    Ok(queues)
}

/// Opens a file to receive from.
fn open_reader(path: &Path) -> Result<CaptureReader<File>, OpenError> {
    let failed = |error| OpenError::File {
        path: path.to_owned(),
        error,
    };
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        // A worker must not wait for another program.
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    let source = path.display().to_string();
    Ok(CaptureReader::new(&source, file, &ReadOptions::STREAMED)?)
}

/// Creates a file for sent frames.
fn open_writer(path: &Path) -> Result<PcapWriter<RecordFile>, OpenError> {
    let failed = |error| OpenError::File {
        path: path.to_owned(),
        error,
    };
    let file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let path = path.to_owned();
            return Err(OpenError::FileExists { path });
        }
        file => file.map_err(failed)?,
    };
    let mut writer = PcapWriter::new(RecordFile::new(file), LinkType::Ethernet).map_err(failed)?;
    writer.flush().map_err(failed)?;
    Ok(writer)
}

/// A queue of a device of files.
#[derive(Debug)]
struct CaptureQueue {
    /// The rest of the file, until its end.
    reader: Option<CaptureReader<File>>,
    /// An error that ended the file.
    error: Option<io::Error>,
    /// Set until the end of the file was received.
    event: Event,
    writer: Option<Arc<Mutex<PcapWriter<RecordFile>>>>,
    software: Software,
    counters: Arc<Counters>,
}

impl Queue for CaptureQueue {
    fn receive(&mut self, packets: &mut [Packet], in_port: u32) -> io::Result<usize> {
        let mut counts = QueueCounts::default();
        let mut filled = 0;
        while let (Some(packet), Some(reader)) = (packets.get_mut(filled), &mut self.reader) {
            let record = match reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    let (source, warnings) = (reader.source(), reader.warnings());
                    let damage = warnings.first();
                    let damage = damage.map(|warning| format!("{source}: {warning}"));
                    self.error = damage.map(io::Error::other);
                    self.reader = None;
                    break;
                }
                Err(error) => {
                    self.error = Some(io::Error::other(error));
                    self.reader = None;
                    break;
                }
            };
            if record.packet.captured_length() < record.packet.original_length {
                counts.received_too_long += 1;
                continue;
            }
            let Ok(frame) = ethernet_frame(record.frame, record.packet.link) else {
                counts.received_invalid += 1;
                continue;
            };
            packet.receive(&frame, in_port);
            counts.received_packets += 1;
            counts.received_bytes += frame.len() as u64;
            filled += 1;
        }
        self.counters.add(&counts);
        if filled > 0 {
            return Ok(filled);
        }
        if self.reader.is_none() {
            self.event.clear();
        }
        // The error comes after all frames before it.
        self.error.take().map_or(Ok(0), Err)
    }

    fn send(&mut self, packet: &Packet) -> Sent {
        let Some(writer) = &self.writer else {
            return Sent::Queued;
        };
        let mut counts = QueueCounts::default();
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let now = nanoseconds_now();
        self.software.frames(packet, |frame| {
            let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
            // Errors of the file come with a flush, so this one is of the frame.
            match writer.packet(now, length, frame) {
                Ok(()) if writer.get_ref().is_writable() => {
                    counts.sent_packets += 1;
                    counts.sent_bytes += u64::from(length);
                }
                Ok(()) => counts.no_room += 1,
                Err(_) => counts.sent_too_long += 1,
            }
        });
        drop(writer);
        self.counters.add(&counts);
        match counts {
            QueueCounts { no_room: 1.., .. } => Sent::NoRoom,
            QueueCounts {
                sent_too_long: 1.., ..
            } => Sent::TooLong,
            _ => Sent::Queued,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &self.writer {
            Some(writer) => {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                writer.flush()
            }
            None => Ok(()),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.event.as_fd())
    }
}

/// Returns the time in nanoseconds since 1970.
fn nanoseconds_now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// A file of records. Each call of `write` is one record. The file never ends inside of a record:
/// if the disk is full, the part of a record is cut off again, and nothing more is written.
#[derive(Debug)]
struct RecordFile {
    file: File,
    /// Records that are not written yet.
    records: Vec<u8>,
    /// The ends of these records.
    ends: Vec<usize>,
    /// The bytes of the file.
    file_bytes: u64,
    has_failed: bool,
    /// An error that the next flush returns.
    pending: Option<io::Error>,
}

impl RecordFile {
    fn new(file: File) -> RecordFile {
        RecordFile {
            file,
            records: Vec::new(),
            ends: Vec::new(),
            file_bytes: 0,
            has_failed: false,
            pending: None,
        }
    }

    /// True until writing has failed.
    fn is_writable(&self) -> bool {
        !self.has_failed
    }

    /// Writes all records.
    fn write_records(&mut self) {
        let mut written = 0;
        while written < self.records.len() {
            match self.file.write(&self.records[written..]) {
                Ok(0) => {
                    self.fail(written, io::ErrorKind::WriteZero.into());
                    break;
                }
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.fail(written, error);
                    break;
                }
            }
        }
        if !self.has_failed {
            self.file_bytes += self.records.len() as u64;
        }
        self.records.clear();
        self.ends.clear();
    }

    /// Ends the file after the last whole record.
    fn fail(&mut self, written: usize, error: io::Error) {
        let whole = self.ends.iter().rev().find(|end| **end <= written);
        self.file_bytes += whole.map_or(0, |end| *end as u64);
        // If this fails too, readers still find all whole records.
        let _ = self.file.set_len(self.file_bytes);
        self.has_failed = true;
        self.pending = Some(error);
    }
}

impl Write for RecordFile {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        if !self.has_failed {
            self.records.extend_from_slice(record);
            self.ends.push(self.records.len());
            if self.records.len() >= MAX_BUFFER_BYTES {
                self.write_records();
            }
        }
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_records();
        self.pending.take().map_or(Ok(()), Err)
    }
}

impl Drop for RecordFile {
    fn drop(&mut self) {
        self.write_records();
    }
}
