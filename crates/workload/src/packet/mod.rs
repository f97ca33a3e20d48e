//! Packet parsing: turns captured bytes into headers that rules can match.
//!
//! [`parse`] reads one frame without allocating and never panics, whatever the bytes
//! are. It returns a [`Parsed`] with the packet's kind ([`Kind`]), its fields and its
//! anomalies ([`Anomaly`]). [`Parsed::ipv4_5tuple`], [`Parsed::ipv6_5tuple`] and
//! [`Parsed::openflow15`] turn that into a header of a built-in schema. [`Counters`]
//! counts packets by all of these.
//!
//! # Header values that rules match
//!
//! **A packet is classified only by values that are certain.** If a packet is cut short
//! or malformed so that a part of its five-tuple is missing, it has no five-tuple. Its
//! kind is [`Kind::Ipv4Incomplete`] or [`Kind::Ipv6Incomplete`], it is counted as such,
//! and it matches no five-tuple rule, not even a wildcard. (Captures of only the first
//! bytes of each packet are fine if the ports are among them.)
//!
//! **Packets without ports have port 0.** For five-tuple rules, source and destination
//! port are 0 in ICMP, in every protocol other than TCP, UDP and SCTP, and in every
//! later fragment of any protocol. So a rule with a wildcard port matches these
//! packets, a rule for port 80 does not, and a rule whose port range begins at 0
//! (`0-1023`) *does*. To keep fragments and portless protocols out of such a rule,
//! start its range at 1.
//!
//! **Fragments.** The first fragment has ports. Later fragments have none, and
//! fragments are not reassembled. The protocol of a later IPv6 fragment is the protocol
//! in its fragment header, even if that is another extension header. A packet that is
//! both first and last fragment is an ordinary packet.
//!
//! **IPv6 extension headers** are walked through: hop-by-hop options, routing,
//! fragment, authentication and destination options, up to [`MAX_EXTENSION_BYTES`] in
//! total. The packet's protocol is the protocol after them. ESP hides what follows, so
//! the protocol is 50. A packet with nothing after its extension headers has protocol
//! 59. An authentication header in *IPv4* is a protocol of its own, 51. The address in
//! a routing header is ignored: the destination is the address in the IPv6 header. IPv4
//! source routes are ignored as well.
//!
//! **`openflow15`** has more fields. Every frame with a readable EtherType has a
//! header, malformed or not, with 0 for missing fields:
//!
//! * `eth_type` is the type after all VLAN tags, `0x05ff` for IEEE 802.3 frames without
//!   a type, and `0x8847` for MPLS even if IP fields were read behind the labels. If a
//!   tag is cut off, `eth_type` is the tag's own type.
//! * `vlan_vid` and `vlan_pcp` are from the outermost tag, `mpls_label` and `mpls_tc`
//!   from the outermost label.
//! * The bytes after the MPLS labels are taken for IPv4 or IPv6 if the first four bits
//!   are 4 or 6. This is a guess, as in every switch.
//! * `sport` and `dport` of ICMP and ICMPv6 are type and code, as in OpenFlow 1.0
//!   (`tp_src`, `tp_dst`). For five-tuple rules they are 0, since such rule sets have
//!   wildcard ports for ICMP, and a filter for port 8 must not match a ping.
//! * In a PPPoE session `eth_type` is `0x8864`, even if IPv4 or IPv6 was read inside
//!   it.
//! * In ARP and RARP for IPv4, `src` and `dst` are the protocol addresses of sender and
//!   target, and `proto` is the operation, as in OpenFlow 1.1; 0 for operations above 255.
//! * In IPv6, `src` and `dst` are 0, because the schema's addresses have 32 bits. The
//!   other fields are as for IPv4.
//! * Without an Ethernet header (raw IP, loopback) `eth_src` and `eth_dst` are 0, and
//!   `eth_type` is the type of the IP version. With a Linux cooked header, `eth_src` is
//!   the sender's address.
//!
//! UDP-Lite and DCCP are treated as protocols without ports.
//!
//! # Lengths
//!
//! The length in an IP header bounds what follows: padding behind it is never taken for
//! ports. A length of 0 means "the rest of the frame", since captures of segmentation
//! offload have this length (in IPv6, where a packet may be empty, only if TCP, UDP,
//! SCTP, ICMPv6 or an extension header must follow). A jumbogram has the length of its
//! option (RFC 2675). A length beyond the captured bytes only adds an anomaly
//! ([`Anomaly::PayloadCut`]).
//!
//! # Why nothing here panics
//!
//! There is one file for each protocol. Each has one function that checks lengths
//! (`split` or `new`) and returns a view of an array of exactly the header's size, so
//! the compiler checks all accesses to it.

pub mod arp;
pub mod cooked;
pub mod ethernet;
pub mod extension;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod llc;
pub mod loopback;
pub mod mpls;
pub mod ports;
pub mod pppoe;
pub mod sctp;
pub mod tcp;
pub mod udp;
pub mod vlan;

mod anomaly;
mod counters;
mod link;
mod parsed;
mod walk;

#[cfg(test)]
pub(crate) mod tests;

pub use anomaly::{Anomalies, Anomaly};
pub use counters::{Counters, Property};
pub use link::LinkType;
pub use parsed::{Family, Fragment, Kind, Parsed, Received, Transport};
pub use walk::{MAX_EXTENSION_BYTES, MAX_MPLS_LABELS, MAX_VLAN_TAGS, parse};
