//! What goes out: counted, and written to captures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::{Count, PacketInReason, Sink};
use classyard_datapath::{Packet, PortNo};
use classyard_workload::capture::PcapWriter;
use classyard_workload::packet::LinkType;

use super::{in_port, make_folder};
use crate::failure::Failure;
use crate::input::frames::Frame;
use crate::output::records::RecordFile;

/// What came in and went out by a port.
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
    /// By the reasons, in their order.
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
    /// Ports whose packets are written to a folder, if there is one.
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

    /// Notes a packet that comes in.
    pub(super) fn received(&mut self, port: PortNo, frame: &Frame<'_>) {
        self.stamp = frame.stamp;
        add(
            &mut self.ports.entry(port).or_default().received,
            frame.bytes.len(),
        );
    }

    /// Says whether writing has failed.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes what is buffered of all captures.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        for file in self.files.values_mut() {
            let flushed = file.flush();
            flushed.map_err(|error| file.get_ref().failure(error))?;
        }
        Ok(())
    }

    fn write(&mut self, name: &str, bytes: &[u8]) {
        if self.folder.is_none() || self.failed.is_some() {
            return;
        }
        if let Err(failure) = self.write_packet(name, bytes) {
            self.failed = Some(failure);
        }
    }

    fn write_packet(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        let file = file_of(&mut self.files, name, &folder.join(name))?;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let written = file.packet(self.stamp, length, bytes);
        written.map_err(|error| file.get_ref().failure(error))
    }
}

/// The capture of a name, which is begun if it is not there. Its header is in the file
/// from the start, so that the file is a capture at any time.
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
        self.write(&format!("port-{port}.pcap"), bytes);
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
        // 0xffff: all of it.
        let most = match max_len {
            u16::MAX => bytes.len(),
            most => bytes.len().min(usize::from(most)),
        };
        self.ports.entry(in_port(packet.key())).or_default();
        self.write("controller.pcap", &bytes[..most]);
    }
}

/// Where packets go when only time counts.
pub(super) struct Nowhere;

impl Sink for Nowhere {
    fn send(&mut self, _: PortNo, _: Option<u32>, packet: &Packet) {
        std::hint::black_box(packet.bytes());
    }

    fn to_controller(&mut self, _: PacketInReason, _: u16, _: (TableId, u64), packet: &Packet) {
        std::hint::black_box(packet.bytes());
    }
}
