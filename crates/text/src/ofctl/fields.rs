//! Fields that flows match and actions set, by all their names (ovs-fields(7)).

use classyard::value::ValueFormat;

use crate::Fault;
use crate::line::quoted;

/// The Ethernet type of IPv4.
pub(super) const ETH_IPV4: u16 = 0x0800;
/// The Ethernet type of IPv6.
pub(super) const ETH_IPV6: u16 = 0x86dd;
/// The Ethernet type of ARP.
pub(super) const ETH_ARP: u16 = 0x0806;
/// The Ethernet type of Reverse ARP.
pub(super) const ETH_RARP: u16 = 0x8035;
/// The Ethernet type of MPLS.
pub(super) const ETH_MPLS: u16 = 0x8847;
/// The Ethernet type of MPLS with an upstream-assigned label.
pub(super) const ETH_MPLS_UPSTREAM: u16 = 0x8848;
/// The IP protocol number of ICMP, in IPv4.
pub(super) const PROTO_ICMP: u8 = 1;
/// The IP protocol number of TCP.
pub(super) const PROTO_TCP: u8 = 6;
/// The IP protocol number of UDP.
pub(super) const PROTO_UDP: u8 = 17;
/// The IP protocol number of ICMPv6, in IPv6.
pub(super) const PROTO_ICMPV6: u8 = 58;
/// The IP protocol number of SCTP.
pub(super) const PROTO_SCTP: u8 = 132;

/// The kind of packets that a line matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// The Ethernet type, if the line gives one.
    pub eth_type: Option<u16>,
    /// The protocol above IP, if the line gives one.
    pub ip_proto: Option<u8>,
}

impl Kind {
    /// True for IPv4 and IPv6.
    #[must_use]
    pub fn is_ip(self) -> bool {
        matches!(self.eth_type, Some(ETH_IPV4 | ETH_IPV6))
    }

    /// True for ARP and RARP.
    #[must_use]
    pub fn is_arp(self) -> bool {
        matches!(self.eth_type, Some(ETH_ARP | ETH_RARP))
    }

    /// True for ICMP in IPv4 and ICMPv6 in IPv6.
    #[must_use]
    pub fn is_icmp(self) -> bool {
        matches!(
            (self.eth_type, self.ip_proto),
            (Some(ETH_IPV4), Some(PROTO_ICMP)) | (Some(ETH_IPV6), Some(PROTO_ICMPV6))
        )
    }
}

/// Words for kinds of packets, with their Ethernet type and their protocol above IP.
pub const SHORTHANDS: [(&str, u16, Option<u8>); 14] = [
    ("ip", ETH_IPV4, None),
    ("icmp", ETH_IPV4, Some(PROTO_ICMP)),
    ("tcp", ETH_IPV4, Some(PROTO_TCP)),
    ("udp", ETH_IPV4, Some(PROTO_UDP)),
    ("sctp", ETH_IPV4, Some(PROTO_SCTP)),
    ("ipv6", ETH_IPV6, None),
    ("icmp6", ETH_IPV6, Some(PROTO_ICMPV6)),
    ("tcp6", ETH_IPV6, Some(PROTO_TCP)),
    ("udp6", ETH_IPV6, Some(PROTO_UDP)),
    ("sctp6", ETH_IPV6, Some(PROTO_SCTP)),
    ("arp", ETH_ARP, None),
    ("rarp", ETH_RARP, None),
    ("mpls", ETH_MPLS, None),
    ("mplsm", ETH_MPLS_UPSTREAM, None),
];

/// The kind of packets that a line must match to use a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Any packets.
    Nothing,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// IPv4 or IPv6.
    Ip,
    /// ARP or RARP.
    Arp,
    /// MPLS.
    Mpls,
    /// A protocol above IPv4 or IPv6.
    Protocol(u8),
    /// ICMP in IPv4.
    Icmp,
    /// ICMPv6.
    Icmpv6,
}

impl Needs {
    /// True if packets of `kind` have the field.
    #[must_use]
    pub fn are_met(self, kind: Kind) -> bool {
        match self {
            Needs::Nothing => true,
            Needs::Ipv4 => kind.eth_type == Some(ETH_IPV4),
            Needs::Ipv6 => kind.eth_type == Some(ETH_IPV6),
            Needs::Ip => kind.is_ip(),
            Needs::Arp => kind.is_arp(),
            Needs::Mpls => matches!(kind.eth_type, Some(ETH_MPLS | ETH_MPLS_UPSTREAM)),
            Needs::Protocol(proto) => kind.is_ip() && kind.ip_proto == Some(proto),
            Needs::Icmp => kind.is_icmp() && kind.eth_type == Some(ETH_IPV4),
            Needs::Icmpv6 => kind.is_icmp() && kind.eth_type == Some(ETH_IPV6),
        }
    }

    /// Returns the words to add to the line, for a message.
    #[must_use]
    pub fn expectation(self) -> &'static str {
        match self {
            Needs::Nothing => "",
            Needs::Ipv4 => "`ip`, `tcp`, … or dl_type=0x0800 on the line",
            Needs::Ipv6 => "`ipv6`, `tcp6`, … or dl_type=0x86dd on the line",
            Needs::Ip => "`ip` or `ipv6` on the line",
            Needs::Arp => "`arp` or `rarp` on the line",
            Needs::Mpls => "`mpls` or `mplsm` on the line",
            Needs::Protocol(_) => "the field's protocol on the line",
            Needs::Icmp => "`icmp` or `icmp6` on the line",
            Needs::Icmpv6 => "`icmp6` on the line",
        }
    }
}

/// A field.
#[derive(Debug, PartialEq, Eq)]
pub struct FieldSpec {
    /// Its name in OpenFlow 1.3, as `ovs-ofctl` reads it.
    pub name: &'static str,
    /// Its width in bits.
    pub width: u32,
    /// The form of its values.
    pub format: ValueFormat,
    /// True if a match may have a mask that wildcards some of its bits.
    pub maskable: bool,
    /// The kind of packets that have the field.
    pub needs: Needs,
}

impl FieldSpec {
    /// The largest value.
    #[must_use]
    pub fn max_value(&self) -> u128 {
        u128::MAX >> (u128::BITS - self.width)
    }

    /// True if its values are ports. Ports may have names.
    #[must_use]
    pub fn is_port(&self) -> bool {
        matches!(self.name, "in_port" | "in_phy_port")
    }
}

const MASK: bool = true;
const EXACT: bool = false;

const fn spec(
    name: &'static str,
    width: u32,
    format: ValueFormat,
    maskable: bool,
    needs: Needs,
) -> FieldSpec {
    FieldSpec {
        name,
        width,
        format,
        maskable,
        needs,
    }
}

const TCP: Needs = Needs::Protocol(PROTO_TCP);
const UDP: Needs = Needs::Protocol(PROTO_UDP);
const SCTP: Needs = Needs::Protocol(PROTO_SCTP);

use Needs as N;
use ValueFormat as V;

/// All fields except the registers `reg0` to `reg15`.
#[rustfmt::skip]
pub const FIELDS: &[FieldSpec] = &[
    spec("in_port", 32, V::Decimal, EXACT, N::Nothing),
    spec("in_phy_port", 32, V::Decimal, EXACT, N::Nothing),
    spec("metadata", 64, V::Hex, MASK, N::Nothing),
    spec("eth_dst", 48, V::Mac, MASK, N::Nothing),
    spec("eth_src", 48, V::Mac, MASK, N::Nothing),
    spec("eth_type", 16, V::Hex, EXACT, N::Nothing),
    spec("vlan_vid", 13, V::Hex, MASK, N::Nothing),
    spec("vlan_pcp", 3, V::Decimal, EXACT, N::Nothing),
    spec("ip_dscp", 6, V::Decimal, EXACT, N::Ip),
    spec("ip_ecn", 2, V::Decimal, EXACT, N::Ip),
    spec("ip_proto", 8, V::Decimal, EXACT, N::Ip),
    spec("ipv4_src", 32, V::Ipv4, MASK, N::Ipv4),
    spec("ipv4_dst", 32, V::Ipv4, MASK, N::Ipv4),
    spec("tcp_src", 16, V::Decimal, MASK, TCP),
    spec("tcp_dst", 16, V::Decimal, MASK, TCP),
    spec("udp_src", 16, V::Decimal, MASK, UDP),
    spec("udp_dst", 16, V::Decimal, MASK, UDP),
    spec("sctp_src", 16, V::Decimal, MASK, SCTP),
    spec("sctp_dst", 16, V::Decimal, MASK, SCTP),
    spec("icmp_type", 8, V::Decimal, EXACT, N::Icmp),
    spec("icmp_code", 8, V::Decimal, EXACT, N::Icmp),
    spec("arp_op", 16, V::Decimal, EXACT, N::Arp),
    spec("arp_spa", 32, V::Ipv4, MASK, N::Arp),
    spec("arp_tpa", 32, V::Ipv4, MASK, N::Arp),
    spec("arp_sha", 48, V::Mac, MASK, N::Arp),
    spec("arp_tha", 48, V::Mac, MASK, N::Arp),
    spec("ipv6_src", 128, V::Ipv6, MASK, N::Ipv6),
    spec("ipv6_dst", 128, V::Ipv6, MASK, N::Ipv6),
    spec("ipv6_label", 20, V::Hex, MASK, N::Ipv6),
    spec("icmpv6_type", 8, V::Decimal, EXACT, N::Icmpv6),
    spec("icmpv6_code", 8, V::Decimal, EXACT, N::Icmpv6),
    spec("nd_target", 128, V::Ipv6, MASK, N::Icmpv6),
    spec("nd_sll", 48, V::Mac, MASK, N::Icmpv6),
    spec("nd_tll", 48, V::Mac, MASK, N::Icmpv6),
    spec("mpls_label", 20, V::Hex, EXACT, N::Mpls),
    spec("mpls_tc", 3, V::Decimal, EXACT, N::Mpls),
    spec("mpls_bos", 1, V::Decimal, EXACT, N::Mpls),
    spec("tun_id", 64, V::Hex, MASK, N::Nothing),
    spec("ipv6_exthdr", 9, V::Decimal, MASK, N::Ipv6),
];

/// The registers.
#[rustfmt::skip]
const REGISTERS: [FieldSpec; 16] = [
    spec("reg0", 32, V::Hex, MASK, N::Nothing), spec("reg1", 32, V::Hex, MASK, N::Nothing),
    spec("reg2", 32, V::Hex, MASK, N::Nothing), spec("reg3", 32, V::Hex, MASK, N::Nothing),
    spec("reg4", 32, V::Hex, MASK, N::Nothing), spec("reg5", 32, V::Hex, MASK, N::Nothing),
    spec("reg6", 32, V::Hex, MASK, N::Nothing), spec("reg7", 32, V::Hex, MASK, N::Nothing),
    spec("reg8", 32, V::Hex, MASK, N::Nothing), spec("reg9", 32, V::Hex, MASK, N::Nothing),
    spec("reg10", 32, V::Hex, MASK, N::Nothing), spec("reg11", 32, V::Hex, MASK, N::Nothing),
    spec("reg12", 32, V::Hex, MASK, N::Nothing), spec("reg13", 32, V::Hex, MASK, N::Nothing),
    spec("reg14", 32, V::Hex, MASK, N::Nothing), spec("reg15", 32, V::Hex, MASK, N::Nothing),
];

/// Returns the field with an OpenFlow 1.3 name.
fn by_name(name: &str) -> Option<&'static FieldSpec> {
    let mut specs = FIELDS.iter().chain(&REGISTERS);
    specs.find(|spec| spec.name == name)
}

/// Returns the field with an old or new name. The field of an old name may depend on the
/// kind of packets.
///
/// # Errors
/// A [`Fault`] about the name.
pub fn field(name: &str, kind: Kind) -> Result<&'static FieldSpec, Fault<'_>> {
    let is_arp = kind.is_arp();
    let is_v6 = kind.eth_type == Some(ETH_IPV6);
    let is_icmpv6 = kind.is_icmp() && is_v6;
    let pick = |which: bool, one, other| if which { one } else { other };
    let official = match name {
        "dl_src" => "eth_src",
        "dl_dst" => "eth_dst",
        "dl_type" => "eth_type",
        "dl_vlan" => "vlan_vid",
        "dl_vlan_pcp" => "vlan_pcp",
        "nw_src" => pick(is_arp, "arp_spa", "ipv4_src"),
        "nw_dst" => pick(is_arp, "arp_tpa", "ipv4_dst"),
        "ip_src" => "ipv4_src",
        "ip_dst" => "ipv4_dst",
        "nw_proto" => pick(is_arp, "arp_op", "ip_proto"),
        "nw_tos" => "ip_dscp",
        "nw_ecn" => "ip_ecn",
        "icmp_type" | "icmpv4_type" => pick(is_icmpv6, "icmpv6_type", "icmp_type"),
        "icmp_code" | "icmpv4_code" => pick(is_icmpv6, "icmpv6_code", "icmp_code"),
        "tunnel_id" => "tun_id",
        "ipv6_flabel" => "ipv6_label",
        "tp_src" => transport(kind, true),
        "tp_dst" => transport(kind, false),
        other => other,
    };
    by_name(official).ok_or_else(|| {
        Fault::unsupported(
            name,
            format!("unsupported field {}", quoted(name)),
            "a field such as `in_port`, `eth_src`, `ipv4_dst`, `tcp_dst`, or a line without it \
             (dropping it would change what matches)",
        )
    })
}

/// Returns the field's name for `tp_src` or `tp_dst`, which depends on the protocol.
fn transport(kind: Kind, is_source: bool) -> &'static str {
    let [source, destination] = match (kind.is_icmp(), kind.ip_proto) {
        (true, Some(PROTO_ICMPV6)) => ["icmpv6_type", "icmpv6_code"],
        (true, _) => ["icmp_type", "icmp_code"],
        (false, Some(PROTO_UDP)) => ["udp_src", "udp_dst"],
        (false, Some(PROTO_SCTP)) => ["sctp_src", "sctp_dst"],
        // Without a protocol, `check_needs` reports the missing word.
        _ => ["tcp_src", "tcp_dst"],
    };
    if is_source { source } else { destination }
}
