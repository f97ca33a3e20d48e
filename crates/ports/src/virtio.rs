//! The header that Linux puts in front of frames on which work is left: `virtio_net_hdr`.
//!
//! ```text
//! byte   0      1     2..4           4..6            6..8            8..10
//!        flags  kind  header length  segment bytes   checksum start  checksum offset
//! ```
//! Numbers are in the byte order of the processor.

use classyard_datapath::packet::{Offload, PartialChecksum, SegmentKind, Segmentation};

use crate::ethernet::{Transport, ip_start, transport};

/// The bytes of the header.
pub(crate) const HEADER_BYTES: usize = 10;

/// A header in front of a frame.
pub(crate) type Header = [u8; HEADER_BYTES];

/// The flag of a partial checksum.
const NEEDS_CHECKSUM: u8 = 1;

/// Kinds of segmentation.
mod kind {
    pub(super) const NONE: u8 = 0;
    pub(super) const TCP_IPV4: u8 = 1;
    pub(super) const TCP_IPV6: u8 = 4;
    pub(super) const UDP: u8 = 5;
    /// Added to the kind if TCP's congestion window reduced flag (CWR) is set.
    pub(super) const ECN: u8 = 0x80;
}

/// The offset of the checksum in the transport header, and of TCP's fields.
mod place {
    pub(super) const TCP_CHECKSUM: u16 = 16;
    pub(super) const UDP_CHECKSUM: u16 = 6;
    pub(super) const TCP_LENGTH: usize = 12;
    pub(super) const TCP_FLAGS: usize = 13;
}

/// TCP's flag CWR.
const TCP_CWR: u8 = 0x80;

/// A header that does not describe its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidHeader;

/// Returns the work that a header describes. Its places count from the start of the frame
/// without the tag of `tag_bytes` that was put back after the addresses.
///
/// A checksum outside of the frame is ignored.
///
/// # Errors
/// [`InvalidHeader`] if the segmentation is of an unknown kind, or the frame has no such
/// transport header. Frames in tunnels are an example.
pub(crate) fn read(
    header: &Header,
    frame: &[u8],
    tag_bytes: usize,
) -> Result<Offload, InvalidHeader> {
    let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    if header[0] & NEEDS_CHECKSUM == 0 && header[1] == kind::NONE {
        return Ok(Offload::NONE);
    }
    let partial = PartialChecksum {
        start: u32::from(word(6)) + u32::try_from(tag_bytes).unwrap_or(0),
        offset: word(8),
    };
    let end = partial.start as usize + usize::from(partial.offset) + 2;
    let has_partial = header[0] & NEEDS_CHECKSUM != 0 && end <= frame.len();
    let checksum = has_partial.then_some(partial);
    let kind = match header[1] & !kind::ECN {
        kind::NONE => {
            return Ok(Offload {
                checksum,
                segmentation: None,
            });
        }
        kind::TCP_IPV4 => SegmentKind::TcpIpv4,
        kind::TCP_IPV6 => SegmentKind::TcpIpv6,
        kind::UDP => SegmentKind::Udp,
        _ => return Err(InvalidHeader),
    };
    let (network, transport) = places(frame, kind).ok_or(InvalidHeader)?;
    let agrees = checksum.is_none_or(|checksum| checksum.start == transport);
    let segment_bytes = word(4);
    if !agrees || segment_bytes == 0 {
        return Err(InvalidHeader);
    }
    let segmentation = Some(Segmentation {
        kind,
        segment_bytes,
        network,
        transport,
    });
    Ok(Offload {
        checksum,
        segmentation,
    })
}

/// Returns the header for a frame, or `None` if a header cannot describe the work: the frame
/// has MPLS labels, or its headers are not as the work says. Then the work has to be done
/// here.
pub(crate) fn write(offload: &Offload, frame: &[u8]) -> Option<Header> {
    let mut header = [0; HEADER_BYTES];
    if *offload == Offload::NONE {
        return Some(header);
    }
    if let Some(checksum) = offload.checksum {
        ip_start(frame)?;
        let start = u16::try_from(checksum.start).ok()?;
        header[0] = NEEDS_CHECKSUM;
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        header[8..10].copy_from_slice(&checksum.offset.to_ne_bytes());
    }
    if let Some(cut) = offload.segmentation {
        let start = offload.checksum?.start;
        let is_described = places(frame, cut.kind) == Some((cut.network, cut.transport));
        if !is_described || start != cut.transport || cut.segment_bytes == 0 {
            return None;
        }
        let is_udp = cut.kind == SegmentKind::Udp;
        let expected_offset = if is_udp {
            place::UDP_CHECKSUM
        } else {
            place::TCP_CHECKSUM
        };
        if offload.checksum?.offset != expected_offset {
            return None;
        }
        let payload = u16::try_from(payload_start(&cut, frame)?).ok()?;
        header[1] = kind_number(&cut, frame);
        header[2..4].copy_from_slice(&payload.to_ne_bytes());
        header[4..6].copy_from_slice(&cut.segment_bytes.to_ne_bytes());
    }
    Some(header)
}

/// Returns the start of the payload that segments are cut from.
pub(crate) fn payload_start(cut: &Segmentation, frame: &[u8]) -> Option<usize> {
    let transport = cut.transport as usize;
    let header_bytes = match cut.kind {
        SegmentKind::Udp => 8,
        _ => usize::from(frame.get(transport + place::TCP_LENGTH)? >> 4) * 4,
    };
    Some(transport + header_bytes)
}

/// Returns the number of a kind of segmentation.
fn kind_number(cut: &Segmentation, frame: &[u8]) -> u8 {
    let flags = frame.get(cut.transport as usize + place::TCP_FLAGS);
    let has_cwr = flags.is_some_and(|flags| flags & TCP_CWR != 0);
    let ecn = if has_cwr { kind::ECN } else { 0 };
    match cut.kind {
        SegmentKind::TcpIpv4 => kind::TCP_IPV4 | ecn,
        SegmentKind::TcpIpv6 => kind::TCP_IPV6 | ecn,
        SegmentKind::Udp => kind::UDP,
    }
}

/// Returns the starts of the network and the transport header, if the frame is of a kind.
fn places(frame: &[u8], kind: SegmentKind) -> Option<(u32, u32)> {
    let Transport {
        version,
        protocol,
        network,
        start,
    } = transport(frame)?;
    let is_kind = match kind {
        SegmentKind::TcpIpv4 => (version, protocol) == (4, 6),
        SegmentKind::TcpIpv6 => (version, protocol) == (6, 6),
        SegmentKind::Udp => protocol == 17,
    };
    let place = |at: usize| u32::try_from(at).ok();
    is_kind.then_some((place(network)?, place(start)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ethernet::tests::{ipv4, ipv6, tagged};

    /// A frame, and work that fits it.
    fn frames_with_work() -> impl Strategy<Value = (Vec<u8>, Offload)> {
        let options = (
            any::<bool>(),
            any::<bool>(),
            0..3_usize,
            0..2_000_usize,
            any::<bool>(),
        );
        (options, 1..=u16::MAX, 0..3_u8).prop_map(|(options, segment_bytes, work)| {
            let (is_v6, is_udp, tags, payload, is_cwr) = options;
            let protocol = if is_udp { 17 } else { 6 };
            let mut transport_header = vec![0_u8; 20 + payload];
            transport_header[12] = 0x50;
            transport_header[13] = if is_cwr { 0x90 } else { 0x10 };
            let (frame, ip_bytes) = if is_v6 {
                (ipv6(protocol, &transport_header), 40)
            } else {
                (ipv4(protocol, &transport_header), 20)
            };
            let frame = tagged(&frame, tags);
            let network = 14 + 4 * u32::try_from(tags).unwrap();
            let checksum = PartialChecksum {
                start: network + ip_bytes,
                offset: if is_udp { 6 } else { 16 },
            };
            let segmentation = Segmentation {
                kind: match (is_udp, is_v6) {
                    (true, _) => SegmentKind::Udp,
                    (false, true) => SegmentKind::TcpIpv6,
                    (false, false) => SegmentKind::TcpIpv4,
                },
                segment_bytes,
                network,
                transport: network + ip_bytes,
            };
            let offload = Offload {
                checksum: (work > 0).then_some(checksum),
                segmentation: (work > 1).then_some(segmentation),
            };
            (frame, offload)
        })
    }

    proptest! {
        #[test]
        fn a_header_that_was_written_reads_as_the_same_work((frame, offload) in frames_with_work()) {
            let header = write(&offload, &frame).expect("a header");
            prop_assert_eq!(read(&header, &frame, 0), Ok(offload));
        }

        #[test]
        fn work_moves_with_a_tag_that_is_put_back((frame, offload) in frames_with_work()) {
            prop_assume!(offload.segmentation.is_none_or(|cut| cut.network < 22));
            let header = write(&offload, &frame).expect("a header");
            let with_tag = [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat();
            let moved = read(&header, &with_tag, 4).expect("work");
            prop_assert_eq!(
                moved.checksum.map(|checksum| checksum.start),
                offload.checksum.map(|checksum| checksum.start + 4)
            );
            prop_assert_eq!(
                moved.segmentation.map(|cut| (cut.network, cut.transport)),
                offload.segmentation.map(|cut| (cut.network + 4, cut.transport + 4))
            );
        }

        #[test]
        fn any_header_before_any_frame_is_read_or_refused(
            header in any::<Header>(),
            frame in prop::collection::vec(any::<u8>(), 0..200),
            tag_bytes in prop::sample::select(vec![0_usize, 4]),
        ) {
            if let Ok(offload) = read(&header, &frame, tag_bytes)
                && let Some(checksum) = offload.checksum
            {
                let end = checksum.start as usize + usize::from(checksum.offset) + 2;
                prop_assert!(end <= frame.len());
            }
        }
    }

    #[test]
    fn headers_that_do_not_fit_their_frame_are_refused() {
        let frame = ipv4(6, &[&[0; 12][..], &[0x50], &[0; 107]].concat());
        let right = Offload {
            checksum: Some(PartialChecksum {
                start: 34,
                offset: 16,
            }),
            segmentation: Some(Segmentation {
                kind: SegmentKind::TcpIpv4,
                segment_bytes: 50,
                network: 14,
                transport: 34,
            }),
        };
        let header = write(&right, &frame).unwrap();
        assert_eq!(read(&header, &frame, 0), Ok(right));
        let changes: [(usize, u8); 4] = [(1, 3), (1, kind::TCP_IPV6), (1, kind::UDP), (1, 77)];
        for (at, value) in changes {
            let mut wrong = header;
            wrong[at] = value;
            assert_eq!(read(&wrong, &frame, 0), Err(InvalidHeader), "kind {value}");
        }
        let mut wrong = header;
        wrong[4..6].fill(0);
        assert_eq!(read(&wrong, &frame, 0), Err(InvalidHeader), "no segments");
        let mut wrong = header;
        wrong[6..8].copy_from_slice(&54_u16.to_ne_bytes());
        assert_eq!(read(&wrong, &frame, 0), Err(InvalidHeader), "in a tunnel");
        // A checksum outside of the frame is left out.
        let mut wrong = header;
        wrong[1] = kind::NONE;
        wrong[8..10].copy_from_slice(&200_u16.to_ne_bytes());
        assert_eq!(read(&wrong, &frame, 0), Ok(Offload::NONE));
    }

    #[test]
    fn work_behind_labels_cannot_be_described() {
        let frame = ipv4(17, &[0; 20]);
        let checksum = Some(PartialChecksum {
            start: 38,
            offset: 6,
        });
        let labelled = [&frame[..12], &[0x88, 0x47, 0, 0, 1, 64], &frame[14..]].concat();
        let offload = Offload {
            checksum,
            segmentation: None,
        };
        assert_eq!(write(&offload, &labelled), None);
        assert!(write(&offload, &tagged(&frame, 1)).is_some());
    }
}
