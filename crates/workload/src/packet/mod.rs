//! Packets: from captured bytes to headers that rules can be matched against.
//!
//! [`parse`] walks through one frame without allocating and without panicking,
//! whatever the bytes are, and tells in a [`Parsed`] what the packet is
//! ([`Kind`]), what its fields hold and what is odd about it ([`Anomaly`]).
//! [`Parsed::ipv4_5tuple`], [`Parsed::ipv6_5tuple`] and [`Parsed::openflow15`]
//! turn that into a header of a built-in schema. [`Counters`] add it all up.
//!
//! # What rules see
//!
//! **A packet is classified only by what is known for certain.** When a packet
//! is cut short or malformed so that a part of its five-tuple is missing, it
//! has no five-tuple: it is [`Kind::Ipv4Incomplete`] or
//! [`Kind::Ipv6Incomplete`], is counted as such and matches no five-tuple rule,
//! not even a wildcard. (A capture that keeps only the first bytes of each
//! packet is no problem as long as the ports are among them.)
//!
//! **Packets without ports have port 0.** To five-tuple rules, ICMP and every
//! protocol other than TCP, UDP and SCTP, and every later fragment, whatever its
//! protocol, has source port 0 and destination port 0. So a rule with a
//! wildcard port matches them, a rule for port 80 does not, and a rule whose
//! port range begins at 0 (`0-1023`) *does*. To keep fragments and portless
//! protocols out of such a rule, start its range at 1.
//!
//! **Fragments.** The first fragment has its ports; later ones do not, and are
//! not reassembled. The protocol of a later IPv6 fragment is the one that its
//! fragment header names, even if that is another extension header. A packet
//! that is first and last fragment at once is an ordinary packet.
//!
//! **IPv6 extension headers** are walked through: hop-by-hop options, routing,
//! fragment, authentication and destination options, up to [`MAX_EXTENSION_BYTES`]
//! of them. The protocol is what comes after. ESP hides what follows, so the
//! protocol is 50; a packet with nothing after its extension headers has
//! protocol 59. An authentication header in *IPv4* is a protocol of its own,
//! 51. The address of a routing header does not matter: the destination is what
//! the IPv6 header says, and likewise for IPv4 source routes.
//!
//! **`openflow15`** sees more. Every frame whose EtherType can be read has a
//! header, malformed or not, with 0 for what it lacks:
//!
//! * `eth_type` is the type after all VLAN tags, `0x05ff` for IEEE 802.3 frames
//!   without one, `0x8847` for MPLS even when IP fields could be read behind the
//!   labels. For a tag that is cut off, `eth_type` is the tag's own.
//! * `vlan_vid` and `vlan_pcp` are those of the outermost tag, `mpls_label` and
//!   `mpls_tc` those of the outermost label.
//! * What follows the MPLS labels is taken for IPv4 or IPv6 if its first four
//!   bits are 4 or 6. This is a guess, as it is in every switch.
//! * `sport` and `dport` of ICMP and ICMPv6 are type and code, as OpenFlow 1.0
//!   has it (`tp_src`, `tp_dst`). Five-tuple rules see 0 instead, since rule
//!   sets of that kind wildcard ports for ICMP, and a filter for port 8 must
//!   not match a ping.
//! * In a PPPoE session `eth_type` is `0x8864`, also when IPv4 or IPv6 could be
//!   read inside it.
//! * Of ARP and RARP for IPv4, `src` and `dst` are the sender's and the
//!   target's protocol address and `proto` is the operation's low 8 bits, as in
//!   OpenFlow 1.1.
//! * Of IPv6, `src` and `dst` are 0: the schema's addresses have 32 bits. The
//!   other fields are as for IPv4.
//! * Without an Ethernet header (raw IP, loopback) `eth_src` and `eth_dst` are
//!   0 and `eth_type` is that of the IP version; of a Linux cooked header the
//!   sender's address is `eth_src`.
//!
//! UDP-Lite and DCCP are protocols without ports here.
//!
//! # Lengths
//!
//! What an IP header gives as its length bounds what follows: padding behind it
//! is never taken for ports. A length of 0 is read as "the rest of the frame",
//! since that is what captures of segmentation offload contain (in IPv6, where a
//! packet may be empty, only if TCP, UDP, SCTP, ICMPv6 or an extension header must
//! follow). A jumbogram has the length of its option (RFC 2675). A length beyond
//! the captured bytes is only noted ([`Anomaly::PayloadCut`]).
//!
//! # Why nothing here panics
//!
//! There is one file for each protocol. Each has one function that checks
//! lengths (`split` or `new`) and returns a view over an array of exactly the
//! header's size: all accesses to it are checked when compiling.

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
