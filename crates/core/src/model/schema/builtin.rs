//! The built-in schemas.

use std::sync::{Arc, OnceLock};

use super::{Field, FieldRole, MatchKind, Schema};
use crate::model::value::ValueFormat;

use FieldRole::{DestinationAddress, DestinationPort, SourceAddress, SourcePort};
use MatchKind::{Exact, Prefix, Range, Ternary};

impl Schema {
    /// `ipv4-5tuple`: source and destination prefix, source and destination
    /// port range, protocol. 104 bits in 2 words.
    #[must_use]
    pub fn ipv4_5tuple() -> Arc<Schema> {
        static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
        Arc::clone(SCHEMA.get_or_init(|| five_tuple("ipv4-5tuple", 32, ValueFormat::Ipv4)))
    }

    /// `ipv6-5tuple`: like [`ipv4_5tuple`](Self::ipv4_5tuple) with 128-bit
    /// addresses. 296 bits in 5 words.
    #[must_use]
    pub fn ipv6_5tuple() -> Arc<Schema> {
        static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
        Arc::clone(SCHEMA.get_or_init(|| five_tuple("ipv6-5tuple", 128, ValueFormat::Ipv6)))
    }

    /// `openflow15`: the fifteen fields of [DEC14] Table I, in its order. 356
    /// bits in 6 words.
    ///
    /// [DEC14]: crate::papers#dec14
    #[must_use]
    pub fn openflow15() -> Arc<Schema> {
        static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
        let make = || {
            let fields = vec![
                Field::new("in_port", 32, Exact),
                Field::new("metadata", 64, Exact).with_format(ValueFormat::Hex),
                Field::new("eth_src", 48, Exact).with_format(ValueFormat::Mac),
                Field::new("eth_dst", 48, Exact).with_format(ValueFormat::Mac),
                Field::new("eth_type", 16, Exact).with_format(ValueFormat::Hex),
                Field::new("vlan_vid", 12, Exact),
                Field::new("vlan_pcp", 3, Exact),
                Field::new("mpls_label", 20, Exact),
                Field::new("mpls_tc", 3, Exact),
                address("src", 32, ValueFormat::Ipv4, SourceAddress),
                address("dst", 32, ValueFormat::Ipv4, DestinationAddress),
                Field::new("proto", 8, Exact).with_format(ValueFormat::IpProtocol),
                Field::new("ip_dscp", 6, Exact),
                Field::new("sport", 16, Range).with_role(SourcePort),
                Field::new("dport", 16, Range).with_role(DestinationPort),
            ];
            Schema::new("openflow15", fields).expect("the built-in schema is valid")
        };
        Arc::clone(SCHEMA.get_or_init(make))
    }

    /// `acl-ipv4`: the fields of firewall rules. 620 bits in 16 words.
    ///
    /// | field | bits | |
    /// |---|---|---|
    /// | `src`, `dst` | 32 | addresses |
    /// | `sport`, `dport` | 16 | ports |
    /// | `proto` | 8 | IP protocol |
    /// | `icmp_type`, `icmp_code` | 8 | |
    /// | `tcp_flags` | 8 | from bit 0: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR |
    /// | `fragment` | 2 | [`ValueFormat::Fragment`] |
    /// | `state` | 3 | [`ValueFormat::ConnectionState`] |
    /// | `in`, `out` | 128 | names of interfaces or zones |
    /// | `list` | 128 | the name of the list of rules that examines the packet |
    /// | `condition` | 128 | a bit for each condition that no field can express |
    #[must_use]
    pub fn acl_ipv4() -> Arc<Schema> {
        static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
        Arc::clone(SCHEMA.get_or_init(|| acl("acl-ipv4", 32, ValueFormat::Ipv4)))
    }

    /// `acl-ipv6`: like [`acl_ipv4`](Self::acl_ipv4) with 128-bit addresses. 812 bits in
    /// 16 words.
    #[must_use]
    pub fn acl_ipv6() -> Arc<Schema> {
        static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
        Arc::clone(SCHEMA.get_or_init(|| acl("acl-ipv6", 128, ValueFormat::Ipv6)))
    }

    /// Returns the built-in schema with this name, if there is one.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Arc<Schema>> {
        match name {
            "ipv4-5tuple" => Some(Schema::ipv4_5tuple()),
            "ipv6-5tuple" => Some(Schema::ipv6_5tuple()),
            "openflow15" => Some(Schema::openflow15()),
            "acl-ipv4" => Some(Schema::acl_ipv4()),
            "acl-ipv6" => Some(Schema::acl_ipv6()),
            _ => None,
        }
    }

    /// The names that [`Schema::built_in`] accepts.
    pub const BUILT_IN: [&'static str; 5] = [
        "ipv4-5tuple",
        "ipv6-5tuple",
        "openflow15",
        "acl-ipv4",
        "acl-ipv6",
    ];
}

fn address(name: &str, width: u32, format: ValueFormat, role: FieldRole) -> Field {
    Field::new(name, width, Prefix)
        .with_format(format)
        .with_role(role)
}

/// The first four fields of five-tuples.
fn addresses_and_ports(address_bits: u32, format: ValueFormat) -> Vec<Field> {
    vec![
        address("src", address_bits, format, SourceAddress),
        address("dst", address_bits, format, DestinationAddress),
        Field::new("sport", 16, Range).with_role(SourcePort),
        Field::new("dport", 16, Range).with_role(DestinationPort),
    ]
}

fn five_tuple(name: &str, address_bits: u32, format: ValueFormat) -> Arc<Schema> {
    let mut fields = addresses_and_ports(address_bits, format);
    fields.push(Field::new("proto", 8, Exact).with_format(ValueFormat::IpProtocol));
    Schema::new(name, fields).expect("the built-in schema is valid")
}

fn acl(name: &str, address_bits: u32, format: ValueFormat) -> Arc<Schema> {
    let mut fields = addresses_and_ports(address_bits, format);
    let text = |name, kind| Field::new(name, 128, kind).with_format(ValueFormat::Text);
    fields.extend([
        Field::new("proto", 8, Range).with_format(ValueFormat::IpProtocol),
        Field::new("icmp_type", 8, Range),
        Field::new("icmp_code", 8, Range),
        Field::new("tcp_flags", 8, Ternary).with_format(ValueFormat::TcpFlags),
        Field::new("fragment", 2, Range).with_format(ValueFormat::Fragment),
        Field::new("state", 3, Range).with_format(ValueFormat::ConnectionState),
        text("in", Prefix),
        text("out", Prefix),
        text("list", Exact),
        Field::new("condition", 128, Ternary).with_format(ValueFormat::Hex),
    ]);
    Schema::new(name, fields).expect("the built-in schema is valid")
}
