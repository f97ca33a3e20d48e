//! The length of frames that an interface takes.

use classyard_datapath::Packet;

use crate::{ethernet, virtio};

/// True if an interface takes a frame: its content is no longer than the MTU. A VLAN tag does
/// not count.
pub(crate) fn fits(frame: &[u8], mtu: u32) -> bool {
    is_within(frame.len(), frame, mtu)
}

/// True if an interface takes a packet, or all segments that are cut from it.
pub(crate) fn packet_fits(packet: &Packet, mtu: u32) -> bool {
    let bytes = packet.bytes();
    let length = packet.offload().segmentation.and_then(|cut| {
        let payload = virtio::payload_start(&cut, bytes)?;
        Some(bytes.len().min(payload + usize::from(cut.segment_bytes)))
    });
    is_within(length.unwrap_or(bytes.len()), bytes, mtu)
}

fn is_within(length: usize, frame: &[u8], mtu: u32) -> bool {
    let untagged = mtu as usize + ethernet::HEADER_BYTES;
    length <= untagged || length <= untagged + ethernet::TAG_BYTES && ethernet::is_tagged(frame)
}

#[cfg(test)]
mod tests {
    use classyard_datapath::packet::{Offload, SegmentKind, Segmentation};

    use super::*;
    use crate::ethernet::tests::{ipv4, tagged};

    #[test]
    fn a_tag_does_not_count_and_segments_count_one_by_one() {
        let frame = ipv4(17, &[0; 1_480]);
        assert!(fits(&frame, 1_500) && !fits(&frame, 1_499));
        assert!(fits(&tagged(&frame, 1), 1_500));
        assert!(!fits(&tagged(&frame, 2), 1_500));
        let frame = ipv4(17, &[0; 9_000]);
        let mut packet = Packet::default();
        for (segment_bytes, is_right) in [(1_472, true), (1_473, false)] {
            let segmentation = Some(Segmentation {
                kind: SegmentKind::Udp,
                segment_bytes,
                network: 14,
                transport: 34,
            });
            let offload = Offload {
                checksum: None,
                segmentation,
            };
            packet.receive_offloaded(&frame, 1, offload);
            assert_eq!(packet_fits(&packet, 1_500), is_right);
        }
        packet.receive(&frame, 1);
        assert!(!packet_fits(&packet, 1_500));
    }
}
