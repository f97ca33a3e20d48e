//! The packets of a capture as a switch receives them, one at a time.

use std::time::Duration;

use classyard_datapath::pipeline::Pipeline;
use classyard_datapath::{Packet, PortNo};
use classyard_workload::capture::ethernet_frame;
use classyard_workload::diagnostic::ReadError;

use super::headers::{Extent, HeadersArgs, OpenCapture};
use super::left_out::LeftOut;
use super::switch::{SwitchArgs, add_missing_ports, add_ports};
use crate::failure::Failure;
use crate::interrupt;
use crate::reporter::Reporter;

/// A packet of a capture as an Ethernet frame, converted if the capture has another
/// link type.
#[derive(Clone, Copy)]
pub struct Frame<'c> {
    /// The Ethernet frame.
    pub bytes: &'c [u8],
    /// The number of the port that receives the frame.
    pub in_port: u32,
    /// The time since the first packet.
    pub time: Duration,
    /// The capture time in nanoseconds since 1970.
    pub stamp: u64,
    /// The packet's position in the capture, from 1.
    pub number: usize,
}

/// A capture that is read packet by packet, with its current packet.
pub struct FrameStream {
    capture: OpenCapture,
    in_port: Option<u32>,
    /// The current frame.
    bytes: Vec<u8>,
    frame_port: u32,
    stamp: u64,
    first_stamp: Option<u64>,
    packets_read: usize,
    left_out: LeftOut,
    /// The number of capture interfaces that have a port in the pipeline.
    ports_added: u32,
}

impl FrameStream {
    /// Opens the capture that the arguments name and adds the ports to the pipeline:
    /// the ports that the pipeline names, and a port for each interface that the
    /// capture declares before its first packet. Existing ports keep their state.
    ///
    /// # Errors
    /// [`Failure`] if the capture cannot be read.
    pub fn open(args: &SwitchArgs, pipeline: &mut Pipeline) -> Result<FrameStream, Failure> {
        add_ports(pipeline, args.in_port.into_iter());
        let mut frames = FrameStream::open_alone(args)?;
        frames.add_interfaces(pipeline);
        Ok(frames)
    }

    /// Opens the capture that the arguments name, to [`read`](Self::read) it without a
    /// pipeline.
    ///
    /// # Errors
    /// [`Failure`] if the capture cannot be read.
    pub fn open_alone(args: &SwitchArgs) -> Result<FrameStream, Failure> {
        Ok(FrameStream {
            capture: args.open_capture()?,
            in_port: args.in_port,
            bytes: Vec::new(),
            frame_port: 0,
            stamp: 0,
            first_stamp: None,
            packets_read: 0,
            left_out: LeftOut::default(),
            ports_added: 0,
        })
    }

    /// Reads the next packet that a switch can process. Returns false at the end of
    /// the capture or if the command is interrupted. Adds the packet's input port to
    /// the pipeline if it is new.
    ///
    /// # Errors
    /// [`ReadError`] if the capture cannot be read.
    pub fn advance(&mut self, pipeline: &mut Pipeline) -> Result<bool, ReadError> {
        let is_read = self.read()?;
        if is_read {
            self.add_interfaces(pipeline);
        }
        Ok(is_read)
    }

    /// Reads the next packet that a switch can process, without a pipeline. Returns false
    /// at the end of the capture or if the command is interrupted.
    ///
    /// # Errors
    /// [`ReadError`] if the capture cannot be read.
    pub fn read(&mut self) -> Result<bool, ReadError> {
        while !interrupt::is_requested() {
            let Some(record) = self.capture.reader.next_record()? else {
                return Ok(false);
            };
            self.packets_read += 1;
            self.bytes.clear();
            match ethernet_frame(record.frame, record.packet.link) {
                Ok(frame) => self.bytes.extend_from_slice(&frame),
                Err(reason) => {
                    self.left_out.add(record.packet.link, reason);
                    continue;
                }
            }
            self.stamp = record.packet.timestamp_ns;
            self.first_stamp.get_or_insert(self.stamp);
            self.frame_port = self.in_port.unwrap_or(record.packet.interface + 1);
            return Ok(true);
        }
        Ok(false)
    }

    /// Adds a port for each interface that the capture has declared so far, unless
    /// all packets have the same input port.
    fn add_interfaces(&mut self, pipeline: &mut Pipeline) {
        let declared = self.capture.reader.interfaces().len();
        let declared = u32::try_from(declared).unwrap_or(u32::MAX);
        if self.in_port.is_some() || declared == self.ports_added {
            return;
        }
        let declared_ports = (self.ports_added + 1..=declared).map(PortNo);
        add_missing_ports(pipeline, declared_ports, self.frame().time);
        self.ports_added = declared;
    }

    /// Returns the current packet.
    pub fn frame(&self) -> Frame<'_> {
        let since_first = self.stamp.saturating_sub(self.first_stamp.unwrap_or(0));
        Frame {
            bytes: &self.bytes,
            in_port: self.frame_port,
            time: Duration::from_nanos(since_first),
            stamp: self.stamp,
            number: self.packets_read,
        }
    }

    /// Returns the capture's name.
    pub fn source(&self) -> &str {
        self.capture.reader.source()
    }

    /// Returns the amount of the file that was read, if it is a file.
    pub fn extent(&self) -> Option<&Extent> {
        self.capture.extent.as_ref()
    }

    /// Returns the number of packets read so far.
    pub fn packets_read(&self) -> usize {
        self.packets_read
    }

    /// Returns the number of these packets that a switch cannot process.
    pub fn packets_left_out(&self) -> usize {
        self.left_out.total()
    }

    /// Returns an error if all packets of a capture were skipped.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the link types and the counts.
    pub fn check(&self) -> Result<(), Failure> {
        let packets_taken = self.packets_read - self.left_out.total();
        self.left_out.check(self.source(), packets_taken)
    }

    /// Warns of damage and of skipped packets.
    pub fn warn(&self, reporter: Reporter) {
        let reader = &self.capture.reader;
        let (warnings, more) = (reader.warnings(), reader.more_warnings());
        HeadersArgs::warn(reader.source(), warnings, more, reporter);
        self.left_out.warn(reporter);
    }
}

/// Packets that are held together and processed as one vector.
pub struct HeldVector {
    bytes: Vec<u8>,
    /// The end of each packet in `bytes`, and the packet's input port.
    packets: Vec<(usize, u32)>,
    /// The latest time of all packets so far, after the first packet of the capture.
    time: Duration,
}

impl HeldVector {
    /// Returns the number of packets.
    pub fn packet_count(&self) -> usize {
        self.packets.len()
    }

    /// Returns the time of the last packet, after the first packet of the capture. If a
    /// capture's times decrease, returns the latest time so far.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Copies the packets into a vector.
    pub fn receive(&self, vector: &mut [Packet]) {
        let mut begin = 0;
        for (packet, &(end, in_port)) in vector.iter_mut().zip(&self.packets) {
            packet.receive(&self.bytes[begin..end], in_port);
            begin = end;
        }
    }
}

/// The first packets of a capture, held in memory up to a byte limit.
pub struct HeldFrames {
    vectors: Vec<HeldVector>,
    vector_packets: usize,
    packets: usize,
    max_bytes: u64,
    held_bytes: u64,
}

impl HeldFrames {
    /// Creates a store for at most `max_bytes` bytes, in vectors of `vector_packets`.
    pub fn new(vector_packets: usize, max_bytes: u64) -> HeldFrames {
        HeldFrames {
            vectors: Vec::new(),
            vector_packets,
            packets: 0,
            max_bytes,
            held_bytes: 0,
        }
    }

    /// Adds a packet. The first packet that would exceed the limit ends the store:
    /// later packets are ignored.
    pub fn add(&mut self, frame: &Frame<'_>) {
        let bytes = (frame.bytes.len() + size_of::<(usize, u32)>()) as u64;
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        if self.held_bytes > self.max_bytes {
            self.max_bytes = 0;
            return;
        }
        let is_full = |vector: &HeldVector| vector.packet_count() == self.vector_packets;
        if self.vectors.last().is_none_or(is_full) {
            self.vectors.push(HeldVector {
                bytes: Vec::new(),
                packets: Vec::with_capacity(self.vector_packets),
                time: self.duration(),
            });
        }
        if let Some(vector) = self.vectors.last_mut() {
            vector.bytes.extend_from_slice(frame.bytes);
            vector.packets.push((vector.bytes.len(), frame.in_port));
            vector.time = vector.time.max(frame.time);
            if vector.packet_count() == self.vector_packets {
                vector.bytes.shrink_to_fit();
            }
        }
        self.packets += 1;
    }

    /// Returns the packets by vector.
    pub fn vectors(&self) -> &[HeldVector] {
        &self.vectors
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Returns the time of the last packet, after the first packet of the capture.
    pub fn duration(&self) -> Duration {
        self.vectors.last().map_or(Duration::ZERO, HeldVector::time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_packet_is_held_after_one_that_exceeded_the_limit() {
        let frame = |length: usize| Frame {
            bytes: &[7; 100][..length],
            in_port: 3,
            time: Duration::from_secs(length as u64),
            stamp: 0,
            number: 1,
        };
        let mut held = HeldFrames::new(2, 200);
        for length in [60, 50, 40, 100, 1] {
            held.add(&frame(length));
        }
        assert_eq!(held.packets(), 3);
        let lengths: Vec<usize> = held
            .vectors()
            .iter()
            .map(HeldVector::packet_count)
            .collect();
        assert_eq!(lengths, [2, 1]);
        // Times never decrease.
        let times = held.vectors().iter().map(HeldVector::time);
        assert!(times.eq([Duration::from_secs(60); 2]));
        assert_eq!(held.duration(), Duration::from_secs(60));
        let mut vector = vec![Packet::default(); 2];
        held.vectors()[0].receive(&mut vector);
        assert_eq!(vector[0].bytes().len(), 60);
        assert_eq!(vector[1].bytes().len(), 50);
    }
}
