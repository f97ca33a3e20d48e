//! Work on a frame that its sender leaves to a network card: the transport checksum, and the
//! cutting into segments.
//!
//! A host with a virtual network card hands over such frames, with a header that describes the
//! work (`virtio_net_hdr` of Linux). A switch passes both on, if the other end takes them;
//! otherwise it does the work itself.
//!
//! # A partial checksum
//! The field of a partial checksum holds the sum of the pseudo-header: of the addresses, the
//! protocol and the length. It is the sum itself, while a finished checksum is a complement:
//! ```text
//! partial      sum(pseudo-header)
//! finished    !sum(pseudo-header + transport header + payload)
//! ```
//! So a new address changes a partial checksum by the opposite of the change of a finished one,
//! and a new port does not change it: the port is summed when the checksum is finished.

use super::Packet;
use super::checksum::{Change, sum_of};
use super::parse::protocol_place;

/// A transport checksum that covers only the pseudo-header so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// The start of the transport header, in bytes from the start of the frame.
    pub start: u32,
    /// The place of the checksum, in bytes from `start`.
    pub offset: u16,
}

/// The protocol of a frame to cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// TCP over IPv4.
    TcpIpv4,
    /// TCP over IPv6.
    TcpIpv6,
    /// UDP over IPv4 or IPv6: each segment is a datagram.
    Udp,
}

/// A frame that is cut into segments before it is sent by a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// The protocol.
    pub kind: SegmentKind,
    /// The bytes of payload in each segment but the last, at least 1.
    pub segment_bytes: u16,
    /// The start of the IP header, in bytes from the start of the frame.
    pub network: u32,
    /// The start of the transport header, in bytes from the start of the frame.
    pub transport: u32,
}

/// The work that is left on a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The checksum to finish.
    pub checksum: Option<PartialChecksum>,
    /// The segments to cut.
    pub segmentation: Option<Segmentation>,
}

impl Offload {
    /// Nothing is left to do.
    pub const NONE: Offload = Offload {
        checksum: None,
        segmentation: None,
    };

    /// Moves all places at or after `at` by some bytes.
    pub(super) fn shift(&mut self, at: usize, bytes: i32) {
        let moved = |place: &mut u32| {
            if *place as usize >= at {
                *place = place.saturating_add_signed(bytes);
            }
        };
        if let Some(checksum) = &mut self.checksum {
            moved(&mut checksum.start);
        }
        if let Some(segmentation) = &mut self.segmentation {
            moved(&mut segmentation.network);
            moved(&mut segmentation.transport);
        }
    }
}

impl PartialChecksum {
    /// Returns the place of the checksum in the frame.
    pub(super) fn place(self) -> usize {
        self.start as usize + usize::from(self.offset)
    }
}

impl Packet {
    /// Replaces the packet by a frame on which work is left. A place that is not in the frame
    /// is ignored: the work was described wrongly, and the frame is passed on unchanged.
    ///
    /// # Panics
    /// If the frame has 4 GiB or more.
    pub fn receive_offloaded(&mut self, bytes: &[u8], in_port: u32, offload: Offload) {
        self.receive(bytes, in_port);
        let is_inside = |checksum: &PartialChecksum| checksum.place() + 2 <= bytes.len();
        self.offload = Offload {
            checksum: offload.checksum.filter(is_inside),
            segmentation: offload.segmentation.filter(|cut| cut.segment_bytes > 0),
        };
    }

    /// Returns the work that is left on the frame.
    #[inline]
    #[must_use]
    pub fn offload(&self) -> Offload {
        self.offload
    }

    /// Finishes a partial checksum.
    pub fn finish_checksum(&mut self) {
        let Some(partial) = self.offload.checksum.take() else {
            return;
        };
        let (start, place) = (partial.start as usize, partial.place());
        let bytes = self.frame.bytes_mut();
        let Some(covered) = bytes.get(start..) else {
            return;
        };
        if place + 2 > bytes.len() {
            return;
        }
        let finished = match !sum_of(covered) {
            // 0 would mean that UDP has no checksum. Both values stand for the same sum.
            0 => 0xffff,
            other => other,
        };
        bytes[place..place + 2].copy_from_slice(&finished.to_be_bytes());
    }

    /// Returns the segments of the frame, or `None` if there is nothing to cut: the frame is
    /// one segment, or its headers are not as the segmentation says.
    #[must_use]
    pub fn segments(&self) -> Option<Segments<'_>> {
        let cut = self.offload.segmentation?;
        let bytes = self.frame.bytes();
        let (network, transport) = (cut.network as usize, cut.transport as usize);
        let header = bytes.get(transport..)?;
        let header_bytes = match cut.kind {
            SegmentKind::Udp => 8,
            SegmentKind::TcpIpv4 | SegmentKind::TcpIpv6 => usize::from(header.get(12)? >> 4) * 4,
        };
        let least = match cut.kind {
            SegmentKind::Udp => 8,
            _ => 20,
        };
        let payload = transport + header_bytes;
        let version = bytes.get(network)? >> 4;
        let ip_bytes = if version == 4 { 20 } else { 40 };
        let fits = header_bytes >= least
            && payload < bytes.len()
            && network + ip_bytes <= transport
            && matches!(version, 4 | 6);
        fits.then_some(Segments {
            bytes,
            cut,
            payload,
            done: 0,
            number: 0,
        })
    }
}

/// The segments of a frame, one after the other.
#[derive(Clone, Debug)]
pub struct Segments<'p> {
    bytes: &'p [u8],
    cut: Segmentation,
    /// The start of the payload.
    payload: usize,
    /// The bytes of payload in earlier segments.
    done: usize,
    number: u16,
}

/// Flags of TCP.
mod tcp {
    pub(super) const FIN: u8 = 0x01;
    pub(super) const PSH: u8 = 0x08;
    pub(super) const CWR: u8 = 0x80;
}

impl Segments<'_> {
    /// Writes the next segment into a buffer: a whole frame with finished checksums. Returns
    /// false after the last segment.
    pub fn next_into(&mut self, buffer: &mut Vec<u8>) -> bool {
        let payload = &self.bytes[self.payload..];
        if self.done >= payload.len() {
            return false;
        }
        let end = payload
            .len()
            .min(self.done + usize::from(self.cut.segment_bytes));
        buffer.clear();
        buffer.extend_from_slice(&self.bytes[..self.payload]);
        buffer.extend_from_slice(&payload[self.done..end]);
        self.write_transport(buffer, end == payload.len());
        self.write_network(buffer);
        write_checksum(buffer, &self.cut);
        self.done = end;
        self.number = self.number.wrapping_add(1);
        true
    }

    /// Writes what differs in the transport header: the sequence number and flags of TCP, the
    /// length of UDP.
    fn write_transport(&self, frame: &mut [u8], is_last: bool) {
        let length = frame.len() - self.cut.transport as usize;
        let header = &mut frame[self.cut.transport as usize..];
        if self.cut.kind == SegmentKind::Udp {
            header[4..6].copy_from_slice(&truncated(length).to_be_bytes());
            return;
        }
        let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let done = u32::try_from(self.done).expect("a frame below 4 GiB");
        header[4..8].copy_from_slice(&sequence.wrapping_add(done).to_be_bytes());
        if !is_last {
            header[13] &= !(tcp::FIN | tcp::PSH);
        }
        if self.number > 0 {
            header[13] &= !tcp::CWR;
        }
    }

    /// Writes what differs in the IP header: the length; of IPv4 also the identification and
    /// the checksum.
    fn write_network(&self, frame: &mut [u8]) {
        let network = self.cut.network as usize;
        let length = frame.len() - network;
        let header = &mut frame[network..self.cut.transport as usize];
        if header[0] >> 4 == 6 {
            header[4..6].copy_from_slice(&truncated(length - 40).to_be_bytes());
            return;
        }
        header[2..4].copy_from_slice(&truncated(length).to_be_bytes());
        let identification = u16::from_be_bytes([header[4], header[5]]);
        let identification = identification.wrapping_add(self.number);
        header[4..6].copy_from_slice(&identification.to_be_bytes());
        header[10..12].fill(0);
        let checksum = !sum_of(header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Writes the transport checksum of a segment.
fn write_checksum(frame: &mut [u8], cut: &Segmentation) {
    let (network, transport) = (cut.network as usize, cut.transport as usize);
    let addresses = match frame[network] >> 4 {
        4 => network + 12..network + 20,
        _ => network + 8..network + 40,
    };
    // An action may have set another protocol.
    let protocol = frame[protocol_place(frame, network, transport)];
    let place = match cut.kind {
        SegmentKind::Udp => transport + 6,
        SegmentKind::TcpIpv4 | SegmentKind::TcpIpv6 => transport + 16,
    };
    frame[place..place + 2].fill(0);
    let length = u32::try_from(frame.len() - transport).expect("a frame below 4 GiB");
    let [l3, l2, l1, l0] = length.to_be_bytes();
    let pseudo_header = [l3, l2, l1, l0, 0, 0, 0, protocol];
    let sums = [&frame[addresses], &pseudo_header, &frame[transport..]].map(sum_of);
    let checksum = match !sum_of(&sums.map(u16::to_be_bytes).concat()) {
        0 => 0xffff,
        other => other,
    };
    frame[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Returns the lower 16 bits of a length.
fn truncated(length: usize) -> u16 {
    u16::try_from(length & 0xffff).expect("16 bits")
}

/// Changes a partial checksum when an address of the pseudo-header changes.
pub(super) fn changed_partial(checksum: u16, change: Change) -> u16 {
    !change.apply(!checksum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;

    /// Returns a TCP frame over IPv4 with a partial checksum and this payload.
    fn tcp(payload: &[u8]) -> (Vec<u8>, Offload) {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        let length = truncated(40 + payload.len()).to_be_bytes();
        frame.extend([0x45, 0, length[0], length[1], 0, 7, 0x40, 0, 64, 6, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = !sum_of(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame.extend([
            0x30, 0x39, 0, 80, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, 0x99, 1, 0, 0, 0, 0, 0,
        ]);
        frame.extend_from_slice(payload);
        let tcp_bytes = truncated(20 + payload.len()).to_be_bytes();
        let pseudo_header = [&frame[26..34], &[0, 6], &tcp_bytes].concat();
        let partial = sum_of(&pseudo_header);
        frame[50..52].copy_from_slice(&partial.to_be_bytes());
        let checksum = Some(PartialChecksum {
            start: 34,
            offset: 16,
        });
        let segmentation = Some(Segmentation {
            kind: SegmentKind::TcpIpv4,
            segment_bytes: 100,
            network: 14,
            transport: 34,
        });
        (
            frame,
            Offload {
                checksum,
                segmentation,
            },
        )
    }

    /// Returns true if the IPv4 header at 14 and the TCP checksum are right.
    fn is_right(frame: &[u8]) -> bool {
        let length = truncated(frame.len() - 34).to_be_bytes();
        let whole = [&frame[26..34], &[0, frame[23]], &length, &frame[34..]].concat();
        sum_of(&frame[14..34]) == 0xffff && sum_of(&whole) == 0xffff
    }

    #[test]
    fn a_finished_checksum_is_right_after_any_change() {
        let (frame, offload) = tcp(b"some bytes of odd length, 41 in all, I say");
        let mut packet = Packet::default();
        packet.receive_offloaded(&frame, 1, offload);
        packet.set_field(Field::Ipv4Src, 0xc0a8_0105);
        packet.set_field(Field::TcpDst, 8080);
        packet.push_vlan(0x8100);
        packet.set_field(Field::Ipv4Dst, 0x0102_0304);
        packet.set_ttl(3);
        packet.pop_vlan();
        assert!(!is_right(packet.bytes()));
        packet.finish_checksum();
        assert!(is_right(packet.bytes()));
        assert_eq!(packet.offload().checksum, None);
        // A finished checksum changes as always.
        packet.set_field(Field::Ipv4Src, 1);
        packet.set_field(Field::TcpSrc, 1);
        assert!(is_right(packet.bytes()));
    }

    #[test]
    fn another_protocol_is_in_the_pseudo_header_of_finished_checksums_and_segments() {
        let (frame, offload) = tcp(&[7; 250]);
        let mut packet = Packet::default();
        packet.receive_offloaded(&frame, 1, offload);
        packet.set_field(Field::IpProto, 17);
        assert_eq!(
            (packet.bytes()[23], packet.key().get(Field::UdpDst)),
            (17, 80)
        );
        let mut segments = packet.segments().expect("something to cut");
        let (mut segment, mut number) = (Vec::new(), 0);
        while segments.next_into(&mut segment) {
            assert!(segment[23] == 17 && is_right(&segment), "{number}");
            number += 1;
        }
        assert_eq!(number, 3);
        packet.finish_checksum();
        assert!(is_right(packet.bytes()));
    }

    #[test]
    fn places_move_with_pushed_and_popped_tags_and_labels() {
        let (frame, offload) = tcp(b"payload");
        let mut packet = Packet::default();
        packet.receive_offloaded(&frame, 1, offload);
        packet.push_vlan(0x88a8);
        packet.push_mpls(0x8847);
        let moved = packet.offload();
        assert_eq!(moved.checksum.unwrap().start, 42);
        assert_eq!(moved.segmentation.unwrap().network, 22);
        packet.pop_mpls(0x0800);
        packet.pop_vlan();
        assert_eq!(packet.offload(), offload);
        packet.finish_checksum();
        assert!(is_right(packet.bytes()));
    }

    #[test]
    fn segments_are_whole_packets_with_all_of_the_payload() {
        for length in [1, 99, 100, 101, 250, 1_000] {
            let payload: Vec<u8> = (0..length)
                .map(|byte: usize| byte.to_le_bytes()[0])
                .collect();
            let (frame, offload) = tcp(&payload);
            let mut packet = Packet::default();
            packet.receive_offloaded(&frame, 1, offload);
            let mut segments = packet.segments().expect("something to cut");
            let (mut segment, mut received, mut number) = (Vec::new(), Vec::new(), 0);
            while segments.next_into(&mut segment) {
                assert!(is_right(&segment), "segment {number} of {length} bytes");
                let is_last = received.len() + 100 >= length;
                assert_eq!(
                    segment[47],
                    if is_last { 0x19 } else { 0x10 } | u8::from(number == 0) << 7
                );
                assert_eq!(usize::from(segment[19]), 7 + number);
                let sequence = u32::from_be_bytes(segment[38..42].try_into().unwrap());
                assert_eq!(sequence as usize, 9 + received.len());
                received.extend_from_slice(&segment[54..]);
                number += 1;
            }
            assert_eq!(received, payload);
            assert_eq!(number, length.div_ceil(100));
        }
    }

    #[test]
    fn wrong_descriptions_change_nothing() {
        let (frame, mut offload) = tcp(b"");
        let mut packet = Packet::default();
        packet.receive_offloaded(&frame, 1, offload);
        assert!(packet.segments().is_none(), "no payload");
        offload.checksum = Some(PartialChecksum {
            start: 50,
            offset: 16,
        });
        offload.segmentation = Some(Segmentation {
            kind: SegmentKind::Udp,
            segment_bytes: 5,
            network: 40,
            transport: 60,
        });
        packet.receive_offloaded(&frame, 1, offload);
        packet.finish_checksum();
        assert_eq!(packet.bytes(), frame);
        assert!(packet.segments().is_none());
    }
}
