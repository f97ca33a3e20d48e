//! Anomalies of packets.
//!
//! The parser returns a result in spite of any anomaly. Some anomalies leave the
//! five-tuple unknown (a header that is cut short, an impossible header length); others
//! are only counted (a payload that the capture cut off). A packet may have several.

use std::fmt;

macro_rules! anomalies {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// One anomaly of a packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Anomaly {
            $($(#[$doc])* $variant,)*
        }

        impl Anomaly {
            /// Every anomaly, in the order of the layers.
            pub const ALL: &[Anomaly] = &[$(Anomaly::$variant,)*];

            /// Returns a short name, as in reports: `truncated-ipv4`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Anomaly::$variant => $name,)*
                }
            }
        }
    };
}

anomalies! {
    /// Fewer bytes than an Ethernet header.
    TruncatedEthernet "truncated-ethernet",
    /// Fewer bytes than the header of a Linux cooked capture.
    TruncatedCooked "truncated-cooked",
    /// Fewer bytes than the address family of a loopback capture.
    TruncatedLoopback "truncated-loopback",
    /// A frame without a single byte on a link without a header of its own.
    EmptyFrame "empty-frame",
    /// The frame ends inside a VLAN tag.
    TruncatedVlan "truncated-vlan",
    /// The frame ends inside the LLC or SNAP header.
    TruncatedLlc "truncated-llc",
    /// The frame ends inside an MPLS label, or right after the last one.
    TruncatedMpls "truncated-mpls",
    /// The frame ends inside the header of a PPPoE session, or inside the PPP protocol
    /// that follows it.
    TruncatedPppoe "truncated-pppoe",
    /// The frame ends inside an ARP packet.
    TruncatedArp "truncated-arp",
    /// The frame ends inside the 20 fixed bytes of an IPv4 header.
    TruncatedIpv4 "truncated-ipv4",
    /// The frame ends inside the options of an IPv4 header.
    TruncatedIpv4Options "truncated-ipv4-options",
    /// The frame ends inside the 40 bytes of an IPv6 header.
    TruncatedIpv6 "truncated-ipv6",
    /// The packet ends inside an IPv6 extension header.
    TruncatedExtension "truncated-ipv6-extension",
    /// The packet ends before both ports of TCP, UDP or SCTP.
    TruncatedPorts "truncated-ports",
    /// The packet has the ports but ends inside the TCP header.
    TruncatedTcp "truncated-tcp",
    /// The packet has the ports but ends inside the UDP header.
    TruncatedUdp "truncated-udp",
    /// The packet has the ports but ends inside the SCTP common header.
    TruncatedSctp "truncated-sctp",
    /// The packet ends before type and code of ICMP or ICMPv6.
    TruncatedIcmp "truncated-icmp",
    /// An IP packet is longer than its captured part: most often because of a snap
    /// length.
    PayloadCut "payload-cut",
    /// More VLAN tags than the parser follows.
    TooManyVlanTags "too-many-vlan-tags",
    /// More MPLS labels than the parser follows.
    TooManyMplsLabels "too-many-mpls-labels",
    /// More bytes of IPv6 extension headers than the parser follows.
    TooManyExtensions "too-many-ipv6-extensions",
    /// A link type whose frames the parser does not support.
    UnknownLinkType "unknown-link-type",
    /// An EtherType that the parser does not support.
    UnknownEthertype "unknown-ethertype",
    /// An address family of a loopback capture that is neither IPv4 nor IPv6.
    UnknownFamily "unknown-address-family",
    /// The bytes after the MPLS labels do not look like IPv4 or IPv6.
    UnknownMplsPayload "unknown-mpls-payload",
    /// A PPPoE header of another version, type or code than a session's data has.
    BadPppoe "bad-pppoe",
    /// A PPP protocol other than IPv4 and IPv6, such as the link control protocol.
    UnknownPppProtocol "unknown-ppp-protocol",
    /// ARP for anything other than IPv4 over Ethernet.
    UnknownArp "unknown-arp",
    /// The version is not 4 although the layer below announced IPv4.
    BadIpv4Version "bad-ipv4-version",
    /// The IPv4 header length is below 20 bytes.
    BadIhl "bad-ihl",
    /// The IPv4 total length is shorter than the header.
    BadTotalLength "bad-total-length",
    /// The total or payload length is 0 although more must follow: a segment that the
    /// network card would have split. The packet is assumed to fill the frame.
    ZeroLength "zero-length",
    /// The version is not 6 although the layer below announced IPv6.
    BadIpv6Version "bad-ipv6-version",
    /// A version that is neither 4 nor 6 although the link type announced raw IP.
    BadIpVersion "bad-ip-version",
    /// A hop-by-hop header that is not the first extension header.
    MisplacedHopByHop "misplaced-hop-by-hop",
    /// A fragment that would end beyond the largest packet.
    OversizedFragment "oversized-fragment",
    /// The TCP data offset is below 20 bytes.
    BadTcpOffset "bad-tcp-offset",
    /// The UDP length is below 8 bytes, or longer than its packet.
    BadUdpLength "bad-udp-length",
}

/// A set of anomalies.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Anomalies(u64);

impl Anomalies {
    /// No anomaly.
    pub const NONE: Anomalies = Anomalies(0);

    /// Adds an anomaly.
    #[inline]
    pub fn insert(&mut self, anomaly: Anomaly) {
        self.0 |= bit(anomaly);
    }

    /// True if the set has `anomaly`.
    #[inline]
    #[must_use]
    pub fn contains(self, anomaly: Anomaly) -> bool {
        self.0 & bit(anomaly) != 0
    }

    /// True if the set is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of anomalies.
    #[must_use]
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Iterates over the anomalies of the set in the order of [`Anomaly::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Anomaly> {
        Anomaly::ALL
            .iter()
            .copied()
            .filter(move |&anomaly| self.contains(anomaly))
    }
}

fn bit(anomaly: Anomaly) -> u64 {
    1 << (anomaly as u32)
}

// There must be a bit of the `u64` for each anomaly.
const _: () = assert!(Anomaly::ALL.len() <= 64);

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Anomalies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_back_what_was_put_in() {
        let mut set = Anomalies::NONE;
        assert!(set.is_empty());
        set.insert(Anomaly::BadUdpLength);
        set.insert(Anomaly::TruncatedEthernet);
        set.insert(Anomaly::BadUdpLength);
        assert_eq!(set.len(), 2);
        let listed: Vec<Anomaly> = set.iter().collect();
        assert_eq!(listed, [Anomaly::TruncatedEthernet, Anomaly::BadUdpLength]);
        assert_eq!(format!("{set:?}"), "{TruncatedEthernet, BadUdpLength}");
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<&str> = Anomaly::ALL.iter().map(|a| a.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Anomaly::ALL.len());
    }
}
