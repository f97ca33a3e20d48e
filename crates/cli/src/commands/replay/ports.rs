//! Counts of output packets, and captures of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::{Count, PacketInReason, Sink};
use classyard_datapath::{Packet, PortNo};
use classyard_report::failure::Failure;
use classyard_report::input::frames::Frame;
use classyard_report::output::records::RecordFile;
use classyard_workload::capture::PcapWriter;
use classyard_workload::packet::LinkType;

use super::{in_port, make_folder};

/// The packets received and sent by a port.
#[derive(Clone, Copy, Default)]
pub(super) struct PortCount {
    pub(super) received: Count,
    pub(super) sent: Count,
}

/// A capture that is written.
type Written = PcapWriter<RecordFile>;

/// All ports, and the controller.
pub(super) struct OutPorts {
    folder: Option<PathBuf>,
    pub(super) ports: BTreeMap<PortNo, PortCount>,
    /// Counts by reason, sorted by its name.
    pub(super) controller: BTreeMap<&'static str, u64>,
    files: BTreeMap<String, Written>,
    /// The time of the packet that is being processed.
    stamp: u64,
    failed: Option<Failure>,
}

fn add(count: &mut Count, bytes: usize) {
    count.packets += 1;
    count.bytes += bytes as u64;
}

impl OutPorts {
    /// Creates the ports. Their packets are written to `folder`, if there is one.
    pub(super) fn new(folder: Option<&Path>) -> Result<OutPorts, Failure> {
        if let Some(folder) = folder {
            make_folder(folder)?;
        }
        Ok(OutPorts {
            folder: folder.map(Path::to_owned),
            ports: BTreeMap::new(),
            controller: BTreeMap::new(),
            files: BTreeMap::new(),
            stamp: 0,
            failed: None,
        })
    }

    /// Counts a received packet.
    pub(super) fn received(&mut self, port: PortNo, frame: &Frame<'_>) {
        self.stamp = frame.stamp;
        add(
            &mut self.ports.entry(port).or_default().received,
            frame.bytes.len(),
        );
    }

    /// Returns the error of an earlier write, if one failed.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        // Called for each packet; taking the error moves its bytes.
        if self.failed.is_none() {
            return Ok(());
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Flushes the buffers of all captures.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        for file in self.files.values_mut() {
            let flushed = file.flush();
            flushed.map_err(|error| file.get_ref().failure(error))?;
        }
        Ok(())
    }

    /// Writes a packet to the capture of a port, or of the controller without a port.
    fn write(&mut self, port: Option<PortNo>, bytes: &[u8]) {
        let (Some(folder), None) = (&self.folder, &self.failed) else {
            return;
        };
        let name = port.map_or_else(
            || "controller.pcap".to_owned(),
            |port| format!("port-{port}.pcap"),
        );
        let written = file_of(&mut self.files, &name, &folder.join(&name)).and_then(|file| {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let written = file.packet(self.stamp, length, bytes);
            written.map_err(|error| file.get_ref().failure(error))
        });
        self.failed = written.err();
    }
}

/// Returns the capture with this name and creates it if needed. Its file header is
/// written immediately, so that the file is always a valid capture.
fn file_of<'f>(
    files: &'f mut BTreeMap<String, Written>,
    name: &str,
    path: &Path,
) -> Result<&'f mut Written, Failure> {
    if !files.contains_key(name) {
        let begun = PcapWriter::new(RecordFile::create(path)?, LinkType::Ethernet);
        let mut file = begun.map_err(|error| Failure::file(path, error))?;
        let flushed = file.flush();
        flushed.map_err(|error| file.get_ref().failure(error))?;
        files.insert(name.to_owned(), file);
    }
    Ok(files.get_mut(name).expect("just made"))
}

impl Sink for OutPorts {
    fn send(&mut self, port: PortNo, _: Option<u32>, packet: &Packet) {
        let bytes = packet.bytes();
        add(&mut self.ports.entry(port).or_default().sent, bytes.len());
        self.write(Some(port), bytes);
    }

    fn to_controller(
        &mut self,
        reason: PacketInReason,
        max_len: u16,
        _: (TableId, u64),
        packet: &Packet,
    ) {
        *self.controller.entry(reason.name()).or_default() += 1;
        let bytes = packet.bytes();
        // The length 0xffff means the whole packet.
        let max_bytes = match max_len {
            u16::MAX => bytes.len(),
            length => bytes.len().min(usize::from(length)),
        };
        self.ports.entry(in_port(packet.key())).or_default();
        self.write(None, &bytes[..max_bytes]);
    }
}

/// Discards packets when only the time is measured.
pub(super) struct Nowhere;

impl Sink for Nowhere {
    fn send(&mut self, _: PortNo, _: Option<u32>, packet: &Packet) {
        std::hint::black_box(packet.bytes());
    }

    fn to_controller(&mut self, _: PacketInReason, _: u16, _: (TableId, u64), packet: &Packet) {
        std::hint::black_box(packet.bytes());
    }
}
