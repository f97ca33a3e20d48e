//! Malformations of a frame.

use std::fmt;

macro_rules! flaws {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// A malformation of a frame. Fields before the malformed header are still parsed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Flaw {
            $($(#[$doc])* $variant,)*
        }

        impl Flaw {
            /// All flaws, in the order of the layers.
            pub const ALL: &[Flaw] = &[$(Flaw::$variant,)*];

            /// Returns a short name for reports, such as `truncated-ipv4`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Flaw::$variant => $name,)*
                }
            }
        }
    };
}

flaws! {
    /// Fewer bytes than an Ethernet header.
    TruncatedEthernet "truncated-ethernet",
    /// The frame ends inside a VLAN tag.
    TruncatedVlan "truncated-vlan",
    /// More VLAN tags than the parser follows.
    TooManyVlanTags "too-many-vlan-tags",
    /// The frame ends inside the LLC or SNAP header.
    TruncatedLlc "truncated-llc",
    /// The frame ends inside the outermost MPLS label.
    TruncatedMpls "truncated-mpls",
    /// The frame ends inside an ARP packet.
    TruncatedArp "truncated-arp",
    /// ARP for other protocols than IPv4 over Ethernet.
    UnknownArp "unknown-arp",
    /// The frame ends inside the 20 fixed bytes of an IPv4 header.
    TruncatedIpv4 "truncated-ipv4",
    /// The frame's type is IPv4, but the version is not 4.
    BadIpv4Version "bad-ipv4-version",
    /// The IPv4 header length is below 20 bytes.
    BadIhl "bad-ihl",
    /// The frame ends inside the options of an IPv4 header.
    TruncatedIpv4Options "truncated-ipv4-options",
    /// The IPv4 total length is shorter than the header.
    BadTotalLength "bad-total-length",
    /// The frame ends inside the 40 bytes of an IPv6 header.
    TruncatedIpv6 "truncated-ipv6",
    /// The frame's type is IPv6, but the version is not 6.
    BadIpv6Version "bad-ipv6-version",
    /// The packet ends inside an IPv6 extension header.
    TruncatedExtension "truncated-ipv6-extension",
    /// More bytes of IPv6 extension headers than the parser follows.
    TooManyExtensions "too-many-ipv6-extensions",
    /// The length of IPv4 or IPv6 is 0 although more headers must follow. The parser
    /// takes the rest of the frame as the packet.
    ZeroLength "zero-length",
    /// An IP packet is longer than its frame.
    PayloadCut "payload-cut",
    /// The packet ends before both ports of TCP, UDP or SCTP.
    TruncatedPorts "truncated-ports",
    /// The packet has the ports but ends inside the TCP header.
    TruncatedTcp "truncated-tcp",
    /// The TCP data offset is below 20 bytes.
    BadTcpOffset "bad-tcp-offset",
    /// The packet has the ports but ends inside the UDP header.
    TruncatedUdp "truncated-udp",
    /// The UDP length is below 8 bytes, or longer than its packet.
    BadUdpLength "bad-udp-length",
    /// The packet has the ports but ends inside the SCTP common header.
    TruncatedSctp "truncated-sctp",
    /// The packet ends before type and code of ICMP or ICMPv6.
    TruncatedIcmp "truncated-icmp",
    /// A neighbour discovery message that ends before its target, or has an option with
    /// an invalid length.
    BadNeighbourDiscovery "bad-neighbour-discovery",
}

/// A set of flaws.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flaws(u32);

// Each flaw has one bit.
const _: () = assert!(Flaw::ALL.len() <= 32);

impl Flaws {
    /// No flaw.
    pub const NONE: Flaws = Flaws(0);

    /// Adds a flaw to the set.
    #[inline]
    pub fn insert(&mut self, flaw: Flaw) {
        self.0 |= 1 << flaw as u32;
    }

    /// True if the set has `flaw`.
    #[inline]
    #[must_use]
    pub fn contains(self, flaw: Flaw) -> bool {
        self.0 & (1 << flaw as u32) != 0
    }

    /// True if the set is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the flaws in the set, in the order of [`Flaw::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Flaw> {
        let flaws = Flaw::ALL.iter().copied();
        flaws.filter(move |&flaw| self.contains(flaw))
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Flaws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
