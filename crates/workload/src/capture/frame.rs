//! Builders of the smallest frames with a given five-tuple.
//!
//! [`ipv4_frame`] and [`ipv6_frame`] build an Ethernet frame around an IP packet, with
//! correct lengths and checksums:
//!
//! * TCP, UDP and SCTP carry the ports: a segment without data, an empty
//!   datagram, a lone COOKIE ACK.
//! * ICMP (in IPv4) and ICMPv6 (in IPv6) become an empty echo request. Their
//!   ports are lost.
//! * Any other protocol has an empty payload. Its ports are lost.
//! * IPv6 cannot carry the numbers of extension headers as a protocol. Such a
//!   header is followed by "no next header", which parses as protocol 59.
//!
//! Frames are padded to 60 bytes, the minimum of Ethernet (its own checksum not
//! counted).

use crate::packet::{ethernet, extension, icmp, sctp, tcp, udp};

/// The minimum length of an Ethernet frame without its checksum, in bytes.
pub const SHORTEST: usize = 60;

/// The source address of all frames: a locally administered address.
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// The destination address of all frames: another locally administered address.
const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// The hop limit of IPv6 and the time to live of IPv4.
const HOP_LIMIT: u8 = 64;

/// The parts of a header that a frame cannot carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// A port was not 0, and the protocol cannot carry ports.
    pub ports: bool,
    /// The protocol is an extension header's number.
    pub protocol: bool,
}

/// Replaces `frame` by a frame with this `ipv4-5tuple` header: source,
/// destination, source port, destination port, protocol. Bits beyond a field's
/// width are ignored.
pub fn ipv4_frame(header: &[u128; 5], frame: &mut Vec<u8>) -> Lost {
    let [src, dst, sport, dport, protocol] = *header;
    let addresses = Addresses::V4(low4(src), low4(dst));
    let [protocol] = low(protocol);
    let mut lost = Lost::default();
    let payload = payload(addresses, protocol, low(sport), low(dport), &mut lost);

    start(frame, ethernet::IPV4);
    let header_start = frame.len();
    let total = to_u16(20 + payload.len()).to_be_bytes();
    frame.extend([
        0x45, 0, total[0], total[1], 0, 0, 0, 0, HOP_LIMIT, protocol, 0, 0,
    ]);
    frame.extend(low4(src));
    frame.extend(low4(dst));
    let checksum = Sum::new().add(&frame[header_start..]).finish();
    frame[header_start + 10..header_start + 12].copy_from_slice(&checksum);
    finish(frame, &payload);
    lost
}

/// Replaces `frame` by a frame with this `ipv6-5tuple` header; see
/// [`ipv4_frame`].
pub fn ipv6_frame(header: &[u128; 5], frame: &mut Vec<u8>) -> Lost {
    let [src, dst, sport, dport, protocol] = *header;
    let addresses = Addresses::V6(src.to_be_bytes(), dst.to_be_bytes());
    let [protocol] = low(protocol);
    let mut lost = Lost::default();
    let payload = payload(addresses, protocol, low(sport), low(dport), &mut lost);

    start(frame, ethernet::IPV6);
    let length = to_u16(payload.len()).to_be_bytes();
    frame.extend([0x60, 0, 0, 0, length[0], length[1], protocol, HOP_LIMIT]);
    frame.extend(src.to_be_bytes());
    frame.extend(dst.to_be_bytes());
    finish(frame, &payload);
    lost
}

fn start(frame: &mut Vec<u8>, ethertype: u16) {
    frame.clear();
    frame.extend(DESTINATION);
    frame.extend(SOURCE);
    frame.extend(ethertype.to_be_bytes());
}

fn finish(frame: &mut Vec<u8>, payload: &[u8]) {
    frame.extend(payload);
    if frame.len() < SHORTEST {
        frame.resize(SHORTEST, 0);
    }
}

#[derive(Clone, Copy)]
enum Addresses {
    V4([u8; 4], [u8; 4]),
    V6([u8; 16], [u8; 16]),
}

/// Returns the bytes after the IP header.
fn payload(
    addresses: Addresses,
    protocol: u8,
    sport: [u8; 2],
    dport: [u8; 2],
    lost: &mut Lost,
) -> Vec<u8> {
    let [[a, b], [c, d]] = [sport, dport];
    let v6 = matches!(addresses, Addresses::V6(..));
    match protocol {
        tcp::PROTOCOL => {
            let mut header = [0; tcp::HEADER_BYTES];
            header[..4].copy_from_slice(&[a, b, c, d]);
            // Data offset 5 (no options), the ACK flag, and the window.
            header[12..16].copy_from_slice(&[0x50, 0x10, 0xff, 0xff]);
            let checksum = transport_checksum(addresses, protocol, &header);
            header[16..18].copy_from_slice(&checksum);
            return header.to_vec();
        }
        udp::PROTOCOL => {
            let mut header = [a, b, c, d, 0, 8, 0, 0];
            let checksum = transport_checksum(addresses, protocol, &header);
            // 0 would mean "no checksum".
            let checksum = if checksum == [0, 0] {
                [0xff; 2]
            } else {
                checksum
            };
            header[6..8].copy_from_slice(&checksum);
            return header.to_vec();
        }
        sctp::PROTOCOL => {
            // Ports, verification tag, checksum, and a chunk of 4 bytes.
            let mut header = [a, b, c, d, 0, 0, 0, 1, 0, 0, 0, 0, 11, 0, 0, 4];
            let checksum = crc32c(&header).to_le_bytes();
            header[8..12].copy_from_slice(&checksum);
            return header.to_vec();
        }
        _ => lost.ports = [a, b, c, d] != [0; 4],
    }
    match protocol {
        icmp::PROTOCOL if !v6 => {
            let mut message = [8, 0, 0, 0, 0, 0, 0, 0];
            let checksum = Sum::new().add(&message).finish();
            message[2..4].copy_from_slice(&checksum);
            message.to_vec()
        }
        icmp::PROTOCOL_V6 if v6 => {
            let mut message = [128, 0, 0, 0, 0, 0, 0, 0];
            let checksum = transport_checksum(addresses, protocol, &message);
            message[2..4].copy_from_slice(&checksum);
            message.to_vec()
        }
        extension::AUTHENTICATION if v6 => {
            lost.protocol = true;
            // 12 bytes, counted in units of 4 and without the first two.
            vec![extension::NO_NEXT, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
        }
        extension::FRAGMENT if v6 => {
            lost.protocol = true;
            vec![extension::NO_NEXT, 0, 0, 0, 0, 0, 0, 1]
        }
        _ if v6 && extension::is_extension(protocol) => {
            lost.protocol = true;
            // One padding option of 4 bytes.
            vec![extension::NO_NEXT, 0, 1, 4, 0, 0, 0, 0]
        }
        _ => Vec::new(),
    }
}

/// Returns the checksum over pseudo header and payload.
fn transport_checksum(addresses: Addresses, protocol: u8, payload: &[u8]) -> [u8; 2] {
    let sum = match addresses {
        Addresses::V4(src, dst) => Sum::new().add(&src).add(&dst),
        Addresses::V6(src, dst) => Sum::new().add(&src).add(&dst),
    };
    let length = to_u16(payload.len()).to_be_bytes();
    sum.add(&[0, protocol]).add(&length).add(payload).finish()
}

/// The internet checksum (RFC 1071).
struct Sum(u32);

impl Sum {
    fn new() -> Sum {
        Sum(0)
    }

    /// Adds an even number of bytes.
    fn add(self, bytes: &[u8]) -> Sum {
        debug_assert!(bytes.len().is_multiple_of(2));
        let (words, _) = bytes.as_chunks();
        // A message has at most a few hundred bytes, so this cannot overflow.
        Sum(words.iter().fold(self.0, |sum, &word| {
            sum + u32::from(u16::from_be_bytes(word))
        }))
    }

    fn finish(self) -> [u8; 2] {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        let [_, _, high, low] = (!sum).to_be_bytes();
        [high, low]
    }
}

/// Returns the checksum of SCTP (RFC 9260, appendix A).
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 * (crc & 1))
        })
    })
}

/// Returns the low `N` bytes of a value, most significant first.
fn low<const N: usize>(value: u128) -> [u8; N] {
    value.to_be_bytes().last_chunk().copied().unwrap_or([0; N])
}

fn low4(value: u128) -> [u8; 4] {
    low(value)
}

/// Converts a length; lengths in this file are below 100 bytes.
fn to_u16(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        // RFC 1071 section 3, and the check value of CRC-32C.
        let sum = Sum::new().add(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), [0x22, 0x0d]);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }
}
