//! Matches and projections: a match gives the same result for packets as its rule in a
//! projection for their projected keys. Wrong matches are refused as OpenFlow requires.

use crate::frames::Dice;
use classyard::{ActionId, Priority, RuleId};
use classyard_datapath::field::{VLAN_PRESENT, eth_type, ip_proto};
use classyard_datapath::{
    ErrorCode, Family, Field, FieldSet, FlowMatch, MatchField, Packet, Prerequisite, Projection,
};

/// Adds a field and its prerequisites, so that a match may have it.
fn with_prerequisites(field: Field, into: &mut Vec<Field>) {
    if !into.contains(&field) {
        into.push(field);
    }
    let needed: &[Field] = match field.info().prerequisite {
        Prerequisite::None => &[],
        Prerequisite::InPort => &[Field::InPort],
        Prerequisite::Vlan => &[Field::VlanVid],
        Prerequisite::EthType(_) => &[Field::EthType],
        Prerequisite::IpProto(..) => &[Field::EthType, Field::IpProto],
        Prerequisite::Icmpv6Type(_) => &[Field::Icmpv6Type],
    };
    for &field in needed {
        with_prerequisites(field, into);
    }
}

/// Returns a match that the packet has, or nearly has.
pub(crate) fn random_match(dice: &mut Dice, packet: &Packet) -> Option<FlowMatch> {
    let mut fields = Vec::new();
    let candidates: Vec<Field> = Field::all().collect();
    for _ in 0..1 + dice.below(4) {
        with_prerequisites(*dice.pick(&candidates), &mut fields);
    }
    let is_needed = |field: &Field| {
        matches!(
            field,
            Field::EthType | Field::IpProto | Field::Icmpv6Type | Field::VlanVid | Field::InPort
        )
    };
    let values = fields.into_iter().map(|field| {
        let packet_value = packet.key().get(field);
        let max_value = field.max_value();
        let mask = match field.info().maskable && !is_needed(&field) {
            true if dice.one_in(2) => {
                (u128::from(dice.next()) << 64 | u128::from(dice.next())) & max_value
            }
            _ => max_value,
        };
        let value = match dice.below(12) {
            0 if !is_needed(&field) => {
                packet_value ^ 1 << dice.below(u64::from(field.info().width))
            }
            _ => packet_value,
        };
        MatchField {
            field,
            value: value & mask,
            mask,
        }
    });
    // The packet may be of another kind, so that the prerequisites do not hold.
    FlowMatch::new(values.collect::<Vec<_>>()).ok()
}

fn rule_matches(projection: &Projection, flow: &FlowMatch, packet: &Packet) -> bool {
    let id = RuleId::from_index(1);
    let rule = projection.rule(id, Priority(1), ActionId(0), flow).unwrap();
    let mut words = vec![0; projection.schema().key_words()];
    projection.project(packet.key(), &mut words);
    rule.view().matches(&words)
}

#[test]
fn rules_of_a_projection_match_the_packets_of_their_match() {
    let mut dice = Dice(1);
    let (mut decided, mut by_family) = ([0_usize; 2], [0_usize; 3]);
    for _ in 0..120_000 {
        let packets = [(); 3].map(|()| {
            let bytes = match dice.one_in(3) {
                true => crate::frames::damaged(&mut dice),
                false => crate::frames::whole(&mut dice),
            };
            let mut packet = Packet::new(&bytes, dice.below(4) as u32);
            packet.write_metadata(dice.below(3), u64::MAX);
            packet.set_field(Field::Reg5, u128::from(dice.below(3)));
            packet
        });
        let (Some(flow), Some(other)) = (
            random_match(&mut dice, &packets[0]),
            random_match(&mut dice, &packets[1]),
        ) else {
            continue;
        };
        for packet in &packets {
            let family = Family::of(packet.key());
            let expected = flow.matches(packet.key());
            decided[usize::from(expected)] += 1;
            if !flow.families().any(|other| other == family) {
                assert!(!expected, "{flow}: of another family");
                continue;
            }
            by_family[Family::ALL.iter().position(|&one| one == family).unwrap()] += 1;
            let fields = FieldSet::of(&flow, family);
            let projection = Projection::new(fields, family).unwrap();
            assert!(projection.covers(&flow));
            assert_eq!(
                rule_matches(&projection, &flow, packet),
                expected,
                "{flow} {packet:?}"
            );
            // A projection that also has the fields of another match.
            let all_fields = fields.and(FieldSet::of(&other, family));
            if let Ok(wider) = Projection::new(all_fields, family) {
                assert_eq!(
                    rule_matches(&wider, &flow, packet),
                    expected,
                    "{flow} {other}"
                );
                assert!(wider.covers(&other));
            }
            assert_eq!(fields.has(all_fields), fields == all_fields);
        }
    }
    assert!(decided.iter().all(|&times| times > 5_000), "{decided:?}");
    assert!(
        by_family.iter().all(|&times| times > 2_000),
        "{by_family:?}"
    );
}

fn exact(field: Field, value: impl Into<u128>) -> MatchField {
    MatchField::exact(field, value.into())
}

/// Returns the match of TCP port 80 over IPv4, with additional values.
fn web(more: &[MatchField]) -> FlowMatch {
    let mut values = vec![
        exact(Field::EthType, eth_type::IPV4),
        exact(Field::IpProto, ip_proto::TCP),
        exact(Field::TcpDst, 80_u16),
    ];
    values.extend(more);
    FlowMatch::new(values).unwrap()
}

#[test]
fn an_access_list_is_as_narrow_as_a_five_tuple() {
    let address = |field, mask| MatchField {
        field,
        value: 0,
        mask,
    };
    let flow = web(&[
        address(Field::Ipv4Src, 0xffff_0000),
        address(Field::Ipv4Dst, 0xffff_ff00),
        exact(Field::TcpSrc, 1_u16),
    ]);
    assert_eq!(flow.families().collect::<Vec<_>>(), [Family::Ipv4]);
    let projection = Projection::new(FieldSet::of(&flow, Family::Ipv4), Family::Ipv4).unwrap();
    assert_eq!(projection.schema().key_words(), 2);
    let names: Vec<&str> = projection
        .schema()
        .fields()
        .iter()
        .map(classyard::Field::name)
        .collect();
    assert_eq!(
        names,
        [
            "ip_proto", "ipv4_src", "ipv4_dst", "tcp_src", "tcp_dst", "presence"
        ]
    );
    // The ports of UDP have the same place in the key.
    let udp = FlowMatch::new([
        exact(Field::EthType, eth_type::IPV4),
        exact(Field::IpProto, ip_proto::UDP),
        exact(Field::UdpDst, 53_u16),
    ]);
    assert!(projection.covers(&udp.unwrap()));
    assert!(!projection.covers(&web(&[exact(Field::InPort, 3_u8)])));
}

#[test]
fn a_match_of_everything_is_a_rule_in_every_family() {
    let any_packet = FlowMatch::new([]).unwrap();
    assert_eq!(any_packet.families().count(), 3);
    assert_eq!(any_packet.to_string(), "");
    let packet = Packet::new(&[], 1);
    for family in any_packet.families() {
        let projection = Projection::new(FieldSet::of(&any_packet, family), family).unwrap();
        assert!(rule_matches(&projection, &any_packet, &packet));
    }
}

#[test]
fn a_table_of_all_fields_is_refused() {
    let registers = (0..16).map(|number| Field::from_name(&format!("reg{number}")).unwrap());
    let mut values: Vec<MatchField> = registers.map(|field| exact(field, 1_u8)).collect();
    let wide = [
        Field::Metadata,
        Field::TunnelId,
        Field::EthDst,
        Field::EthSrc,
        Field::Ipv6Src,
    ];
    values.extend(wide.map(|field| exact(field, 1_u8)));
    values.push(exact(Field::Ipv6Dst, 1_u8));
    values.push(exact(Field::EthType, eth_type::IPV6));
    values.push(exact(Field::IpProto, ip_proto::ICMPV6));
    values.push(exact(Field::Icmpv6Type, 135_u8));
    values.push(exact(Field::NdTarget, 1_u8));
    let fields = FieldSet::of(&FlowMatch::new(values).unwrap(), Family::Ipv6);
    let refused = Projection::new(fields, Family::Ipv6).unwrap_err();
    assert_eq!(
        refused.bits,
        16 * 32 + 64 + 64 + 48 + 48 + 3 * 128 + 8 + 16 + 5
    );
    assert!(refused.to_string().contains("at most 1024"), "{refused}");
}

#[test]
fn matches_are_refused_as_openflow_does() {
    use ErrorCode::{
        BadMatchMask, BadMatchPrerequisite, BadMatchValue, BadMatchWildcards, DuplicateMatchField,
    };
    let masked = |field, value: u128, mask: u128| MatchField { field, value, mask };
    let ipv4 = exact(Field::EthType, eth_type::IPV4);
    let ipv6 = exact(Field::EthType, eth_type::IPV6);
    let icmpv6 = exact(Field::IpProto, ip_proto::ICMPV6);
    let cases: [(&[MatchField], ErrorCode, &str); 17] = [
        (
            &[exact(Field::VlanPcp, 9_u8)],
            BadMatchValue,
            "vlan_pcp=0x9 does not fit into 3 bits",
        ),
        (
            &[masked(Field::EthSrc, 0, 1 << 48)],
            BadMatchMask,
            "does not fit into 48 bits",
        ),
        (
            &[masked(Field::EthSrc, 3, 1)],
            BadMatchWildcards,
            "bits outside of its mask",
        ),
        (
            &[masked(Field::EthType, 0x800, 0xff00)],
            BadMatchMask,
            "eth_type takes no mask",
        ),
        (
            &[ipv4, ipv4],
            DuplicateMatchField,
            "eth_type stands in the match twice",
        ),
        (
            &[exact(Field::Ipv4Src, 1_u8)],
            BadMatchPrerequisite,
            "ipv4_src needs eth_type=0x0800 in",
        ),
        (
            &[ipv6, exact(Field::Ipv4Src, 1_u8)],
            BadMatchPrerequisite,
            "needs eth_type=0x0800",
        ),
        (
            &[exact(Field::IpDscp, 1_u8)],
            BadMatchPrerequisite,
            "eth_type=0x0800 or eth_type=0x86dd",
        ),
        (
            &[ipv4, exact(Field::TcpSrc, 1_u8)],
            BadMatchPrerequisite,
            "and ip_proto=6",
        ),
        (
            &[exact(Field::IpProto, 6_u8), exact(Field::TcpSrc, 1_u8)],
            BadMatchPrerequisite,
            "ip_proto needs",
        ),
        (
            &[ipv4, icmpv6, exact(Field::Icmpv6Type, 1_u8)],
            BadMatchPrerequisite,
            "0x86dd",
        ),
        (
            &[
                ipv6,
                icmpv6,
                exact(Field::Icmpv6Type, 136_u8),
                exact(Field::NdSll, 1_u8),
            ],
            BadMatchPrerequisite,
            "nd_sll needs icmpv6_type=135",
        ),
        (
            &[exact(Field::VlanPcp, 1_u8)],
            BadMatchPrerequisite,
            "vlan_pcp needs vlan_vid=",
        ),
        (
            &[exact(Field::VlanVid, 0_u8), exact(Field::VlanPcp, 1_u8)],
            BadMatchPrerequisite,
            "vlan_vid=",
        ),
        (
            &[exact(Field::VlanVid, 5_u8)],
            BadMatchValue,
            "can match no packet",
        ),
        (
            &[masked(Field::VlanVid, 0, 0x1fff & !1)],
            BadMatchValue,
            "can match no packet",
        ),
        (
            &[exact(Field::InPhyPort, 5_u8)],
            BadMatchPrerequisite,
            "in_phy_port needs in_port",
        ),
    ];
    for (values, code, says) in cases {
        let error = FlowMatch::new(values.iter().copied()).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let tagged = u128::from(VLAN_PRESENT);
    for good in [
        vec![exact(Field::VlanVid, 0_u8)],
        vec![
            masked(Field::VlanVid, tagged, tagged),
            exact(Field::VlanPcp, 1_u8),
        ],
        vec![
            exact(Field::VlanVid, tagged | 5),
            exact(Field::VlanPcp, 1_u8),
        ],
        vec![masked(Field::EthType, 0, 0), ipv6],
        vec![
            ipv6,
            icmpv6,
            exact(Field::Icmpv6Type, 135_u8),
            exact(Field::NdSll, 1_u8),
        ],
        vec![exact(Field::InPort, 1_u8), exact(Field::InPhyPort, 1_u8)],
    ] {
        match FlowMatch::new(good.clone()) {
            Ok(flow) => assert!(flow.values().count() <= good.len()),
            // A field with an empty mask still counts as a duplicate.
            Err(error) => assert_eq!(error.code(), DuplicateMatchField),
        }
    }
}

#[test]
fn a_packet_that_lacks_a_field_matches_nothing_that_has_it() {
    // A later fragment of TCP has no ports; they are 0 in its key.
    let mut frame = vec![0; 12];
    frame.extend([
        8, 0, 0x45, 0, 0, 24, 0, 0, 0, 9, 64, 6, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0,
    ]);
    let packet = Packet::new(&frame, 1);
    let tcp = [
        exact(Field::EthType, eth_type::IPV4),
        exact(Field::IpProto, ip_proto::TCP),
    ];
    let with_port =
        FlowMatch::new(tcp.iter().copied().chain([exact(Field::TcpDst, 0_u8)])).unwrap();
    assert!(FlowMatch::new(tcp).unwrap().matches(packet.key()));
    assert!(!with_port.matches(packet.key()));
    let projection = Projection::new(FieldSet::of(&with_port, Family::Ipv4), Family::Ipv4).unwrap();
    assert!(!rule_matches(&projection, &with_port, &packet));
}
