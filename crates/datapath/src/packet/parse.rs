//! Parsing of an Ethernet frame to its key, in one pass.
//!
//! A frame is parsed up to its first incomplete or invalid header. Fields after it are 0,
//! [`Presence`] marks them as absent, and a [`Flaw`] names the problem. Whatever the
//! bytes are, nothing here panics or reads out of bounds, and every loop is bounded.
//!
//! Lengths in IP headers bound the packet, so padding is never parsed as ports. A length
//! of 0 means the rest of the frame, as in packets from segmentation offload. An IPv6
//! packet may be empty, so in IPv6 this holds only if the next header cannot be empty.
//! The length of a jumbogram is in its jumbo payload option (RFC 2675).

use super::flaw::{Flaw, Flaws};
use crate::field::{eth_type, exthdr, icmpv6, ip_proto};
use crate::key::{PacketKey, Presence};

/// The maximum number of VLAN tags that are parsed.
pub const MAX_VLAN_TAGS: usize = 8;

/// The maximum number of bytes of IPv6 extension headers that are parsed: 1,024 of the
/// smallest headers. RFC 8200 §4.1 uses at most seven headers.
pub const MAX_EXTENSION_BYTES: usize = 8_192;

/// The maximum number of neighbour discovery options that are parsed.
pub const MAX_ND_OPTIONS: usize = 16;

/// Positions of the headers of a frame, in bytes from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// The start of IP, ARP or MPLS, after the Ethernet header, VLAN tags and LLC.
    pub network: u32,
    /// The start of the header after IP and its options or extension headers.
    pub transport: u32,
    /// The end of the IP packet; the bytes after it are padding.
    pub end: u32,
    /// The start of the neighbour discovery option that contains the Ethernet address, or 0.
    pub nd_option: u32,
    /// True if an IPv6 routing header has addresses still to visit. Then transport checksums
    /// cover the final destination, not the destination in the IPv6 header.
    pub routed: bool,
    /// True if the packet is a fragment of a larger one.
    pub fragment: bool,
    /// True if the frame has a length in place of a type, followed by LLC.
    pub llc: bool,
}

/// The results of parsing a frame, in addition to its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The positions of the headers.
    pub layers: Layers,
    /// The malformations.
    pub flaws: Flaws,
}

/// Parses an Ethernet frame. Sets all header fields of the key; ports, metadata, tunnel
/// and registers keep their values.
///
/// # Panics
/// If the frame has 4 GiB or more.
#[must_use]
pub fn parse(frame: &[u8], key: &mut PacketKey) -> Parsed {
    let mut parsed = Parsed::default();
    parse_into(frame, key, &mut parsed);
    parsed
}

/// Parses a frame into existing memory, without copies: copying whole words right after
/// writing parts of them causes store-to-load stalls.
#[inline]
pub(super) fn parse_into(frame: &[u8], key: &mut PacketKey, parsed: &mut Parsed) {
    *parsed = Parsed::default();
    let words = key.words_mut()[FIRST_HEADER_WORD..].first_chunk_mut();
    let words: &mut [u64; HEADER_WORDS] = words.expect("a key has the words of headers");
    *words = [0; HEADER_WORDS];
    let mut parser = Parser {
        frame,
        words,
        presence: Presence::NONE,
        parsed,
    };
    parser.parsed.layers.end = offset(frame.len());
    parser.ethernet();
    parser.words[PORTS_WORD] |= u64::from(parser.presence.bits()) << PRESENCE_SHIFT;
}

// The layout of a key in `key.rs`, from word 3, for code that fills whole words. A test
// compares both.
const FIRST_HEADER_WORD: usize = 3;
const HEADER_WORDS: usize = 11;
const DESTINATION_WORD: usize = 0;
const SOURCE_WORD: usize = 1;
const NETWORK_WORD: usize = 2;
const PORTS_WORD: usize = 3;
const ADDRESSES_WORD: usize = 4;
const ND_TARGET_WORD: usize = 8;
const ND_OPTION_WORD: usize = 10;
const PRESENCE_SHIFT: u32 = 41;

fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("a frame below 4 GiB")
}

struct Parser<'a> {
    frame: &'a [u8],
    words: &'a mut [u64; HEADER_WORDS],
    presence: Presence,
    parsed: &'a mut Parsed,
}

/// Returns `N` bytes from offset `at`, or `None` if the frame is shorter.
#[inline(always)]
fn bytes<const N: usize>(frame: &[u8], at: usize) -> Option<&[u8; N]> {
    frame.get(at..)?.first_chunk()
}

#[inline(always)]
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline(always)]
fn mac(bytes: &[u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = *bytes;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

#[inline(always)]
fn word(bytes: &[u8; 8]) -> u64 {
    u64::from_be_bytes(*bytes)
}

impl Parser<'_> {
    fn flaw(&mut self, flaw: Flaw) {
        self.parsed.flaws.insert(flaw);
    }

    #[inline(always)]
    fn ethernet(&mut self) {
        let Some(header) = bytes::<14>(self.frame, 0) else {
            return self.flaw(Flaw::TruncatedEthernet);
        };
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *header;
        self.words[DESTINATION_WORD] = mac(&[d0, d1, d2, d3, d4, d5]);
        self.words[SOURCE_WORD] = mac(&[s0, s1, s2, s3, s4, s5]);
        let (mut kind, mut at) = (u16::from_be_bytes([t0, t1]), 14);
        if is_tag(kind) {
            (kind, at) = self.tags(kind, at);
        }
        if kind < eth_type::LEAST {
            (kind, at) = self.llc(kind, at);
        }
        self.words[SOURCE_WORD] |= u64::from(kind) << 48;
        self.parsed.layers.network = offset(at);
        self.parsed.layers.transport = offset(at);
        match kind {
            eth_type::IPV4 => self.ipv4(at),
            eth_type::IPV6 => self.ipv6(at),
            eth_type::ARP => self.arp(at),
            eth_type::MPLS | eth_type::MPLS_UPSTREAM => self.mpls(at),
            _ => {}
        }
    }

    /// Parses VLAN tags. Returns the type after them and the position after that type. If
    /// a tag is truncated, returns the type of that tag and the end of the frame.
    #[inline(never)]
    fn tags(&mut self, first: u16, from: usize) -> (u16, usize) {
        let (mut kind, mut at) = (first, from);
        for number in 0..MAX_VLAN_TAGS {
            let Some(&[high, low, next_high, next_low]) = bytes::<4>(self.frame, at) else {
                self.flaw(Flaw::TruncatedVlan);
                return (kind, self.frame.len());
            };
            if number == 0 {
                let (pcp, vid) = (high >> 5, u16::from_be_bytes([high & 0xf, low]));
                let vid = vid | crate::field::VLAN_PRESENT;
                self.words[DESTINATION_WORD] |= u64::from(vid) << 48 | u64::from(pcp) << 61;
            }
            (kind, at) = (u16::from_be_bytes([next_high, next_low]), at + 4);
            if !is_tag(kind) {
                return (kind, at);
            }
        }
        self.flaw(Flaw::TooManyVlanTags);
        (kind, at)
    }

    /// Parses a frame with a length in place of a type. Returns the type in its SNAP
    /// header, if any.
    #[inline(never)]
    fn llc(&mut self, length: u16, at: usize) -> (u16, usize) {
        let content_end = (at + usize::from(length)).min(self.frame.len());
        self.parsed.layers.llc = true;
        self.parsed.layers.end = offset(content_end);
        let content = &self.frame[at..content_end];
        let Some(&[dsap, ssap, control]) = bytes::<3>(content, 0) else {
            self.flaw(Flaw::TruncatedLlc);
            return (eth_type::NONE, at);
        };
        if (dsap, ssap, control) != (0xaa, 0xaa, 3) {
            return (eth_type::NONE, at);
        }
        match bytes::<5>(content, 3) {
            None => {
                self.flaw(Flaw::TruncatedLlc);
                (eth_type::NONE, at)
            }
            // RFC 1042, or bridge tunnel encapsulation.
            Some(&[0, 0, 0 | 0xf8, high, low]) => match u16::from_be_bytes([high, low]) {
                kind if kind >= eth_type::LEAST => (kind, at + 8),
                _ => (eth_type::NONE, at),
            },
            Some(_) => (eth_type::NONE, at),
        }
    }

    fn mpls(&mut self, at: usize) {
        let Some(&label) = self.content(at) else {
            return self.flaw(Flaw::TruncatedMpls);
        };
        let entry = u32::from_be_bytes(label);
        let (label, tc, bottom) = (entry >> 12, entry >> 9 & 7, entry >> 8 & 1);
        self.words[NETWORK_WORD] = u64::from(label) | u64::from(tc) << 20 | u64::from(bottom) << 23;
        self.presence = Presence::NETWORK;
    }

    /// Returns `N` bytes from offset `at`, or `None` if the packet is shorter.
    #[inline(always)]
    fn content<const N: usize>(&self, at: usize) -> Option<&[u8; N]> {
        self.frame
            .get(at..self.parsed.layers.end as usize)?
            .first_chunk()
    }

    fn arp(&mut self, at: usize) {
        let Some(kind) = self.content::<6>(at) else {
            return self.flaw(Flaw::TruncatedArp);
        };
        // Hardware type (Ethernet or IEEE 802), protocol type, two lengths.
        if !matches!(kind, [0, 1 | 6, 8, 0, 6, 4]) {
            return self.flaw(Flaw::UnknownArp);
        }
        let Some(arp) = self.content::<28>(at) else {
            return self.flaw(Flaw::TruncatedArp);
        };
        let address = |at: usize| {
            u64::from(u32::from_be_bytes([
                arp[at],
                arp[at + 1],
                arp[at + 2],
                arp[at + 3],
            ]))
        };
        let hardware = |at: usize| mac(arp[at..].first_chunk().expect("six bytes of 28"));
        let (operation, spa, tpa) = (be16(arp, 6), address(14), address(24));
        let (sha, tha) = (hardware(8), hardware(18));
        self.words[PORTS_WORD] = u64::from(operation);
        (self.words[ADDRESSES_WORD], self.words[ADDRESSES_WORD + 2]) = (spa, tpa);
        (self.words[ND_TARGET_WORD], self.words[ND_TARGET_WORD + 1]) = (sha, tha);
        self.presence = Presence::NETWORK;
    }

    #[inline(always)]
    fn ipv4(&mut self, at: usize) {
        let Some(header) = self.content::<20>(at) else {
            return self.flaw(Flaw::TruncatedIpv4);
        };
        if header[0] >> 4 != 4 {
            return self.flaw(Flaw::BadIpv4Version);
        }
        let length = usize::from(header[0] & 15) * 4;
        if length < 20 {
            return self.flaw(Flaw::BadIhl);
        }
        let (tos, protocol) = (header[1], header[9]);
        let (total, fragment) = (usize::from(be16(header, 2)), be16(header, 6));
        let [
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            s0,
            s1,
            s2,
            s3,
            d0,
            d1,
            d2,
            d3,
        ] = *header;
        self.words[ADDRESSES_WORD] = u64::from(u32::from_be_bytes([s0, s1, s2, s3]));
        self.words[ADDRESSES_WORD + 2] = u64::from(u32::from_be_bytes([d0, d1, d2, d3]));
        self.words[NETWORK_WORD] = u64::from(protocol) << 24 | traffic_class(tos);
        self.presence = Presence::PROTOCOL;
        if total != 0 && total < length {
            return self.flaw(Flaw::BadTotalLength);
        }
        let packet_end = self.parsed.layers.end as usize;
        if at + length > packet_end {
            return self.flaw(Flaw::TruncatedIpv4Options);
        }
        match total {
            0 => self.flaw(Flaw::ZeroLength),
            _ if at + total > packet_end => self.flaw(Flaw::PayloadCut),
            _ => self.parsed.layers.end = offset(at + total),
        }
        self.parsed.layers.transport = offset(at + length);
        // An offset, or the flag for more fragments.
        self.parsed.layers.fragment = fragment & 0x3fff != 0;
        if fragment & 0x1fff == 0 {
            self.transport(at + length, protocol, ip_proto::ICMP);
        }
    }

    #[inline(always)]
    fn ipv6(&mut self, at: usize) {
        let Some(header) = self.content::<40>(at) else {
            return self.flaw(Flaw::TruncatedIpv6);
        };
        if header[0] >> 4 != 6 {
            return self.flaw(Flaw::BadIpv6Version);
        }
        let class = header[0] << 4 | header[1] >> 4;
        let label = u32::from_be_bytes([0, header[1] & 15, header[2], header[3]]);
        let (length, next) = (usize::from(be16(header, 4)), header[6]);
        let half = |at: usize| word(header[at..].first_chunk().expect("eight bytes of 40"));
        let halves = [half(16), half(8), half(32), half(24)];
        self.words[ADDRESSES_WORD..ADDRESSES_WORD + 4].copy_from_slice(&halves);
        self.words[NETWORK_WORD] = u64::from(label) << 40 | traffic_class(class);
        self.presence = Presence::NETWORK;
        let (from, end) = (at + 40, self.parsed.layers.end as usize);
        if length == 0 {
            self.without_length(from, next);
        } else if from + length > end {
            self.flaw(Flaw::PayloadCut);
        } else {
            self.parsed.layers.end = offset(from + length);
        }
        if is_extension(next) || matches!(next, ESP_HEADER | NO_NEXT) {
            self.extensions(from, next);
        } else {
            self.after_extensions(from, next, false);
        }
    }

    /// Finds the end of an IPv6 packet whose payload length is 0.
    #[inline(never)]
    fn without_length(&mut self, from: usize, next: u8) {
        let packet_end = self.parsed.layers.end as usize;
        if from == packet_end || !cannot_be_empty(next) {
            // The packet is empty; the rest is padding.
            self.parsed.layers.end = offset(from);
            return;
        }
        let jumbo = match next {
            HOP_BY_HOP => jumbo_length(&self.frame[from..packet_end]),
            _ => None,
        };
        match jumbo {
            None => self.flaw(Flaw::ZeroLength),
            Some(length) if length > packet_end - from => self.flaw(Flaw::PayloadCut),
            Some(length) => self.parsed.layers.end = offset(from + length),
        }
    }

    /// Parses extension headers.
    #[inline(never)]
    fn extensions(&mut self, from: usize, first: u8) {
        let (mut at, mut next) = (from, first);
        let mut seen = Extensions::default();
        let mut later = false;
        while is_extension(next) && !later {
            seen.note(next);
            let Some(&[after, size, high, low, ..]) = self.content::<8>(at) else {
                self.note_extensions(seen);
                return self.flaw(Flaw::TruncatedExtension);
            };
            let length = extension_bytes(next, size);
            if at + length > self.parsed.layers.end as usize {
                self.note_extensions(seen);
                return self.flaw(Flaw::TruncatedExtension);
            }
            if at + length - from > MAX_EXTENSION_BYTES {
                self.note_extensions(seen);
                return self.flaw(Flaw::TooManyExtensions);
            }
            self.parsed.layers.routed |= next == ROUTING_HEADER && low > 0;
            if next == FRAGMENT_HEADER {
                let field = u16::from_be_bytes([high, low]);
                self.parsed.layers.fragment |= field & 0xfff9 != 0;
                later = field >> 3 != 0;
            }
            (at, next) = (at + length, after);
        }
        if matches!(next, ESP_HEADER | NO_NEXT) && !later {
            seen.note(next);
        }
        self.note_extensions(seen);
        self.after_extensions(at, next, later);
    }

    fn note_extensions(&mut self, seen: Extensions) {
        self.words[PORTS_WORD] |= u64::from(seen.bits) << 32;
    }

    #[inline(always)]
    fn after_extensions(&mut self, at: usize, protocol: u8, later: bool) {
        self.words[NETWORK_WORD] |= u64::from(protocol) << 24;
        self.presence = Presence::PROTOCOL;
        self.parsed.layers.transport = offset(at);
        if !later {
            self.transport(at, protocol, ip_proto::ICMPV6);
        }
    }

    /// Parses a transport header. `icmp` is the number of ICMP in this version of IP.
    #[inline(always)]
    fn transport(&mut self, at: usize, protocol: u8, icmp: u8) {
        match protocol {
            ip_proto::TCP | ip_proto::UDP | ip_proto::SCTP => {
                let Some(&[s0, s1, d0, d1]) = self.content::<4>(at) else {
                    return self.flaw(Flaw::TruncatedPorts);
                };
                let (src, dst) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
                self.words[PORTS_WORD] |= u64::from(src) | u64::from(dst) << 16;
                self.presence = Presence::TRANSPORT;
                self.check(at, protocol);
            }
            _ if protocol == icmp => {
                let Some(&[kind, code]) = self.content::<2>(at) else {
                    return self.flaw(Flaw::TruncatedIcmp);
                };
                self.words[PORTS_WORD] |= u64::from(kind) | u64::from(code) << 16;
                self.presence = Presence::TRANSPORT;
                let discovers = matches!(
                    kind,
                    icmpv6::NEIGHBOUR_SOLICITATION | icmpv6::NEIGHBOUR_ADVERTISEMENT
                );
                if icmp == ip_proto::ICMPV6
                    && discovers
                    && code == 0
                    && !self.parsed.layers.fragment
                {
                    self.neighbour_discovery(at, kind);
                }
            }
            _ => {}
        }
    }

    /// Finds flaws of a transport header that has both ports.
    #[inline(always)]
    fn check(&mut self, at: usize, protocol: u8) {
        let available = self.parsed.layers.end as usize - at;
        match protocol {
            ip_proto::TCP => match self.content::<20>(at) {
                None => self.flaw(Flaw::TruncatedTcp),
                Some(header) => match usize::from(header[12] >> 4) * 4 {
                    0..20 => self.flaw(Flaw::BadTcpOffset),
                    length if length > available => self.flaw(Flaw::TruncatedTcp),
                    _ => {}
                },
            },
            ip_proto::UDP => match self.content::<8>(at) {
                None => self.flaw(Flaw::TruncatedUdp),
                Some(header) => {
                    let length = usize::from(be16(header, 4));
                    let cut = self.parsed.flaws.contains(Flaw::PayloadCut);
                    let whole = !self.parsed.layers.fragment && !cut;
                    // 0 means the rest of the packet, as in IP.
                    if length != 0 && (length < 8 || (whole && length > available)) {
                        self.flaw(Flaw::BadUdpLength);
                    }
                }
            },
            _ if available < 12 => self.flaw(Flaw::TruncatedSctp),
            _ => {}
        }
    }

    /// Parses the target of neighbour discovery, and the Ethernet address in its options.
    #[inline(never)]
    fn neighbour_discovery(&mut self, at: usize, kind: u8) {
        let Some(message) = self.content::<24>(at) else {
            return self.flaw(Flaw::BadNeighbourDiscovery);
        };
        let half = |at: usize| word(message[at..].first_chunk().expect("eight bytes of 24"));
        let halves = [half(16), half(8)];
        self.words[ND_TARGET_WORD..ND_TARGET_WORD + 2].copy_from_slice(&halves);
        self.presence = Presence::ND_TARGET;
        let wanted_option = match kind {
            icmpv6::NEIGHBOUR_SOLICITATION => 1,
            _ => 2,
        };
        let mut position = at + 24;
        let packet_end = self.parsed.layers.end as usize;
        for _ in 0..MAX_ND_OPTIONS {
            if position == packet_end {
                return;
            }
            let Some(&[option, units, a, b, c, d, e, f]) = self.content::<8>(position) else {
                return self.flaw(Flaw::BadNeighbourDiscovery);
            };
            let length = usize::from(units) * 8;
            if length == 0 || position + length > packet_end {
                return self.flaw(Flaw::BadNeighbourDiscovery);
            }
            if option == wanted_option && units == 1 {
                self.words[ND_OPTION_WORD] = mac(&[a, b, c, d, e, f]);
                self.presence = Presence::ND_LINK_LAYER;
                self.parsed.layers.nd_option = offset(position);
                return;
            }
            position += length;
        }
    }
}

/// Returns the DSCP and ECN of a byte of IPv4 or IPv6, at their places in
/// [`NETWORK_WORD`].
#[inline(always)]
fn traffic_class(byte: u8) -> u64 {
    u64::from(byte >> 2) << 32 | u64::from(byte & 3) << 38
}

#[inline(always)]
fn is_tag(kind: u16) -> bool {
    // 0x9100 marked stacked tags before IEEE 802.1ad.
    matches!(kind, eth_type::VLAN | eth_type::VLAN_SERVICE | 0x9100)
}

const HOP_BY_HOP: u8 = 0;
const ROUTING_HEADER: u8 = 43;
const FRAGMENT_HEADER: u8 = 44;
const ESP_HEADER: u8 = 50;
const AUTHENTICATION_HEADER: u8 = 51;
const NO_NEXT: u8 = 59;
const DESTINATION_OPTIONS: u8 = 60;

/// True if a protocol is an extension header that the parser can skip.
#[inline(always)]
fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        HOP_BY_HOP | ROUTING_HEADER | FRAGMENT_HEADER | AUTHENTICATION_HEADER | DESTINATION_OPTIONS
    )
}

/// Returns the place of the byte that names the protocol above IP, in bytes from the beginning
/// of a frame with complete headers: the IP header at `network`, and the first header after
/// it and after its extension headers at `transport`.
pub(super) fn protocol_place(frame: &[u8], network: usize, transport: usize) -> usize {
    if frame[network] >> 4 == 4 {
        return network + 9;
    }
    let (mut place, mut at) = (network + 6, network + 40);
    while at < transport {
        let length = extension_bytes(frame[place], frame[at + 1]);
        (place, at) = (at, at + length);
    }
    place
}

/// Returns the length of an extension header with this value of its length field.
#[inline(always)]
fn extension_bytes(protocol: u8, length_field: u8) -> usize {
    match protocol {
        FRAGMENT_HEADER => 8,
        AUTHENTICATION_HEADER => (usize::from(length_field) + 2) * 4,
        _ => (usize::from(length_field) + 1) * 8,
    }
}

/// True if headers of this protocol have at least one byte.
fn cannot_be_empty(protocol: u8) -> bool {
    use ip_proto::{ICMPV6, SCTP, TCP, UDP};
    matches!(protocol, TCP | UDP | SCTP | ICMPV6) || is_extension(protocol)
}

/// The type of the jumbo payload option (RFC 2675), and the length of its value.
const JUMBO_PAYLOAD: (u8, u8) = (0xc2, 4);

/// Returns the payload length of the first jumbo payload option in a hop-by-hop header,
/// if the header is complete and the length does not fit into the IPv6 header.
fn jumbo_length(header: &[u8]) -> Option<usize> {
    let header_end = (usize::from(*header.get(1)?) + 1) * 8;
    let options = header.get(..header_end)?;
    let mut position = 2;
    while let Some(&kind) = options.get(position) {
        if kind == 0 {
            // A padding option of one byte, without a length.
            position += 1;
            continue;
        }
        let size = *options.get(position + 1)?;
        if (kind, size) == JUMBO_PAYLOAD {
            let length = u32::from_be_bytes(*bytes(options, position + 2)?);
            return usize::try_from(length)
                .ok()
                .filter(|&length| length > 0xffff);
        }
        position += 2 + usize::from(size);
    }
    None
}

/// The extension headers parsed so far.
#[derive(Clone, Copy, Default)]
struct Extensions {
    bits: u16,
    /// The number of destination options headers so far.
    destinations: u8,
    /// The highest rank of a header so far. Ranks are positions in the preferred order.
    rank: u8,
}

impl Extensions {
    /// Records a header. In the preferred order of RFC 2460 §4.1, destination options
    /// come before routing and at the end.
    fn note(&mut self, protocol: u8) {
        let (bit, rank) = match protocol {
            HOP_BY_HOP => (exthdr::HOP, 1),
            DESTINATION_OPTIONS => (exthdr::DEST, if self.rank <= 1 { 2 } else { 7 }),
            ROUTING_HEADER => (exthdr::ROUTER, 3),
            FRAGMENT_HEADER => (exthdr::FRAG, 4),
            AUTHENTICATION_HEADER => (exthdr::AUTH, 5),
            ESP_HEADER => (exthdr::ESP, 6),
            _ => (exthdr::NO_NEXT, 8),
        };
        let again = match protocol {
            DESTINATION_OPTIONS => {
                self.destinations = self.destinations.saturating_add(1);
                self.destinations > 2
            }
            _ => self.bits & bit != 0,
        };
        if again {
            self.bits |= exthdr::UNREP;
        }
        if rank < self.rank {
            self.bits |= exthdr::UNSEQ;
        }
        self.bits |= bit;
        self.rank = self.rank.max(rank);
    }
}
