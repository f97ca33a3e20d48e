//! The capture file of the selected packets.

use std::io;
use std::path::{Path, PathBuf};

use classyard_report::failure::Failure;
use classyard_report::output::file::is_dash;
use classyard_workload::capture::{Packet, PcapWriter};
use classyard_workload::packet::LinkType;
use serde::Serialize;

use super::outcome::Outcome;
use super::outlet::Outlet;
use super::packets::Column;
use super::selection::Selection;

/// A pcap file that the selected packets are copied to.
///
/// The header of the file has the link type, so it is written before the first packet. A file
/// without packets has the header at the end.
pub(super) struct HitsFile {
    path: PathBuf,
    state: State,
    /// The packets that were read so far.
    read_packets: u64,
    written_packets: u64,
}

enum State {
    Empty(Outlet),
    /// The writer, the link type, and the number of the first packet, from 1.
    Begun(PcapWriter<Outlet>, LinkType, u64),
    /// Creating the writer failed.
    Failed,
}

/// The packets that were written, for reports.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Written {
    pub(super) file: String,
    pub(super) packets: u64,
}

impl HitsFile {
    /// Creates the file.
    pub(super) fn create(path: &Path) -> Result<HitsFile, Failure> {
        Ok(HitsFile {
            path: path.to_owned(),
            state: State::Empty(Outlet::create(path)?),
            read_packets: 0,
            written_packets: 0,
        })
    }

    /// Copies the packets that are selected.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the file cannot be written, the packets have several link types, or
    /// the format cannot hold a packet.
    pub(super) fn write(
        &mut self,
        packets: &Column,
        outcomes: &[Outcome],
        selection: &Selection,
    ) -> Result<(), Failure> {
        for ((packet, frame), &outcome) in packets.records().zip(outcomes) {
            self.read_packets += 1;
            if selection.has(outcome) {
                self.copy(packet, frame)?;
            }
        }
        Ok(())
    }

    fn copy(&mut self, packet: &Packet, frame: &[u8]) -> Result<(), Failure> {
        self.begin(packet.link)?;
        let State::Begun(writer, link, first) = &mut self.state else {
            return Ok(());
        };
        if packet.link != *link {
            let (name, number) = (self.path.display(), self.read_packets);
            return Err(Failure::usage(format!(
                "{name}: packet {number} has the link type {}, and packet {first} has {link}; a \
                 pcap file has one link type",
                packet.link
            ))
            .with_help(
                "select the packets of one interface first, for example with `tshark -r CAPTURE -Y \
                 frame.interface_id==0 -w FILE`",
            ));
        }
        let written = writer.packet(packet.timestamp_ns, packet.original_length, frame);
        written.map_err(|error| match error.kind() {
            // The format cannot hold the packet.
            io::ErrorKind::InvalidInput => {
                Failure::file(&self.path, format!("packet {}: {error}", self.read_packets))
            }
            _ => writer.get_ref().failure(error),
        })?;
        self.written_packets += 1;
        Ok(())
    }

    /// Writes the header of the file, if it has none.
    fn begin(&mut self, link: LinkType) -> Result<(), Failure> {
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Empty(outlet) => {
                let begun = PcapWriter::new(outlet, link);
                let writer = begun.map_err(|error| match is_dash(&self.path) {
                    true => error.into(),
                    false => Failure::file(&self.path, error),
                })?;
                self.state = State::Begun(writer, link, self.read_packets);
            }
            other => self.state = other,
        }
        Ok(())
    }

    /// Writes what is buffered. A file without packets stays without a header.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let State::Begun(writer, ..) = &mut self.state else {
            return Ok(());
        };
        let flushed = writer.flush();
        flushed.map_err(|error| writer.get_ref().failure(error))
    }

    /// Completes the file. `link` is the link type of a file without packets.
    pub(super) fn finish(&mut self, link: LinkType) -> Result<Written, Failure> {
        self.begin(link)?;
        self.flush()?;
        Ok(Written {
            file: match is_dash(&self.path) {
                true => "standard output".to_owned(),
                false => self.path.display().to_string(),
            },
            packets: self.written_packets,
        })
    }
}
