//! The first headers of a frame: tags, the IP header, the start of the transport header.

/// The bytes of an Ethernet header without tags.
pub(crate) const HEADER_BYTES: usize = 14;

/// The bytes of a VLAN tag.
pub(crate) const TAG_BYTES: usize = 4;

/// The place of the type of a frame without tags, after the two addresses.
pub(crate) const TYPE_PLACE: usize = 12;

/// The maximum number of tags before an IP header for which Linux takes work on a frame.
const MAX_TAGS: usize = 2;

/// The maximum number of extension headers that are passed over.
const MAX_EXTENSIONS: usize = 8;

/// Types of frames.
mod ether_type {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const IPV6: u16 = 0x86dd;
    pub(super) const VLAN: u16 = 0x8100;
    pub(super) const SERVICE_VLAN: u16 = 0x88a8;
}

/// The place of a transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transport {
    /// The version of IP.
    pub(crate) version: u8,
    /// The number of the transport protocol.
    pub(crate) protocol: u8,
    /// The start of the IP header.
    pub(crate) network: usize,
    /// The start of the transport header.
    pub(crate) start: usize,
}

/// Returns two bytes of a frame as a number.
fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

/// True if the frame begins with a VLAN tag of type 0x8100.
pub(crate) fn is_tagged(frame: &[u8]) -> bool {
    word(frame, TYPE_PLACE) == Some(ether_type::VLAN)
}

/// Returns the version of IP and the start of its header, after at most two tags.
pub(crate) fn ip_start(frame: &[u8]) -> Option<(u8, usize)> {
    let mut place = TYPE_PLACE;
    for _ in 0..=MAX_TAGS {
        match word(frame, place)? {
            ether_type::IPV4 => return Some((4, place + 2)),
            ether_type::IPV6 => return Some((6, place + 2)),
            ether_type::VLAN | ether_type::SERVICE_VLAN => place += TAG_BYTES,
            _ => return None,
        }
    }
    None
}

/// Returns the place of the transport header of a frame that is not a fragment.
pub(crate) fn transport(frame: &[u8]) -> Option<Transport> {
    let (version, network) = ip_start(frame)?;
    let first = *frame.get(network)?;
    if first >> 4 != version {
        return None;
    }
    let (protocol, start) = match version {
        4 => {
            let is_fragment = word(frame, network + 6)? & 0x3fff != 0;
            let header_bytes = usize::from(first & 0xf) * 4;
            if is_fragment || header_bytes < 20 {
                return None;
            }
            (*frame.get(network + 9)?, network + header_bytes)
        }
        _ => after_extensions(frame, *frame.get(network + 6)?, network + 40)?,
    };
    (start <= frame.len()).then_some(Transport {
        version,
        protocol,
        network,
        start,
    })
}

/// Passes over the extension headers of IPv6 that segments may have: hop-by-hop options,
/// destination options, and routing.
fn after_extensions(frame: &[u8], first: u8, start: usize) -> Option<(u8, usize)> {
    let (mut protocol, mut place) = (first, start);
    for _ in 0..MAX_EXTENSIONS {
        if ![0, 43, 60].contains(&protocol) {
            return Some((protocol, place));
        }
        protocol = *frame.get(place)?;
        place += usize::from(*frame.get(place + 1)?) * 8 + 8;
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns an IPv4 frame without options.
    pub(crate) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, length[0], length[1], 0, 1, 0, 0, 64, protocol]);
        frame.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend_from_slice(payload);
        frame
    }

    /// Returns an IPv6 frame without extension headers.
    pub(crate) fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
        frame.extend([0x60, 0, 0, 0, length[0], length[1], protocol, 64]);
        frame.extend([0xfd; 32]);
        frame.extend_from_slice(payload);
        frame
    }

    /// Returns a frame with `tags` more tags.
    pub(crate) fn tagged(frame: &[u8], tags: usize) -> Vec<u8> {
        let tag = [0x81, 0, 0, 5].repeat(tags);
        [&frame[..12], &tag, &frame[12..]].concat()
    }

    #[test]
    fn the_transport_header_is_found_after_tags_options_and_extensions() {
        let place = |frame: &[u8]| transport(frame).map(|found| (found.protocol, found.start));
        let frame = ipv4(17, &[0; 8]);
        assert_eq!(place(&frame), Some((17, 34)));
        assert_eq!(place(&tagged(&frame, 1)), Some((17, 38)));
        assert_eq!(place(&tagged(&frame, 2)), Some((17, 42)));
        assert_eq!(place(&tagged(&frame, 3)), None);
        let mut options = ipv4(6, &[0; 30]);
        options[14] = 0x47;
        assert_eq!(place(&options), Some((6, 42)));
        options[14] = 0x44;
        assert_eq!(place(&options), None, "a header of 16 bytes");
        let mut fragment = ipv4(6, &[0; 30]);
        fragment[20] = 0x20;
        assert_eq!(place(&fragment), None);
        let extension = [6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(place(&ipv6(0, &extension)), Some((6, 70)));
        assert_eq!(place(&ipv6(0, &[0; 200])), None, "too many extensions");
        for length in 0..frame.len() {
            let _ = transport(&frame[..length]);
        }
    }
}
