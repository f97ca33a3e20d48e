//! The built-in schemas.

use std::sync::{Arc, OnceLock};

use super::{Field, FieldRole, MatchKind, Schema};
use crate::model::value::ValueFormat;

use FieldRole::{DestinationAddress, DestinationPort, SourceAddress, SourcePort};
use MatchKind::{Exact, Prefix, Range};

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

    /// Returns the built-in schema with this name, if there is one.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Arc<Schema>> {
        match name {
            "ipv4-5tuple" => Some(Schema::ipv4_5tuple()),
            "ipv6-5tuple" => Some(Schema::ipv6_5tuple()),
            "openflow15" => Some(Schema::openflow15()),
            _ => None,
        }
    }

    /// The names that [`Schema::built_in`] accepts.
    pub const BUILT_IN: [&'static str; 3] = ["ipv4-5tuple", "ipv6-5tuple", "openflow15"];
}

fn address(name: &str, width: u32, format: ValueFormat, role: FieldRole) -> Field {
    Field::new(name, width, Prefix)
        .with_format(format)
        .with_role(role)
}

fn five_tuple(name: &str, address_bits: u32, format: ValueFormat) -> Arc<Schema> {
    let fields = vec![
        address("src", address_bits, format, SourceAddress),
        address("dst", address_bits, format, DestinationAddress),
        Field::new("sport", 16, Range).with_role(SourcePort),
        Field::new("dport", 16, Range).with_role(DestinationPort),
        Field::new("proto", 8, Exact).with_format(ValueFormat::IpProtocol),
    ];
    Schema::new(name, fields).expect("the built-in schema is valid")
}
