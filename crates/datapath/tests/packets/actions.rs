//! Actions that do not fit a match are refused. Accepted actions change every packet of
//! the match that has the field.

use crate::frames::Dice;
use classyard_datapath::action::{Kind, check};
use classyard_datapath::field::{VLAN_PRESENT, eth_type, ip_proto};
use classyard_datapath::{
    Action, ActionSet, ErrorCode, Field, FlowMatch, GroupId, MatchField, Packet, PortNo,
};

fn exact(field: Field, value: impl Into<u128>) -> MatchField {
    MatchField::exact(field, value.into())
}

fn set(field: Field, value: impl Into<u128>) -> Action {
    Action::SetField(exact(field, value))
}

fn output(port: PortNo) -> Action {
    Action::Output { port, max_len: 0 }
}

#[test]
fn actions_are_refused_as_openflow_does() {
    use ErrorCode::{BadOutPort, BadSetArgument, BadSetType, BadTag, InconsistentAction};
    let any_packet = FlowMatch::new([]).unwrap();
    let ipv4 = FlowMatch::new([exact(Field::EthType, eth_type::IPV4)]).unwrap();
    let tcp = FlowMatch::new([
        exact(Field::EthType, eth_type::IPV6),
        exact(Field::IpProto, ip_proto::TCP),
    ])
    .unwrap();
    let tag = u128::from(VLAN_PRESENT);
    let cases: [(&FlowMatch, &[Action], Result<(), ErrorCode>); 36] = [
        (
            &any_packet,
            &[output(PortNo(1)), output(PortNo::FLOOD)],
            Ok(()),
        ),
        (&any_packet, &[output(PortNo(0))], Err(BadOutPort)),
        (&any_packet, &[output(PortNo::ANY)], Err(BadOutPort)),
        (&any_packet, &[output(PortNo::TABLE)], Err(BadOutPort)),
        (&any_packet, &[output(PortNo::NORMAL)], Err(BadOutPort)),
        (&any_packet, &[output(PortNo(0xffff_ff01))], Err(BadOutPort)),
        (
            &any_packet,
            &[set(Field::EthSrc, 1_u8), set(Field::Reg3, 1_u8)],
            Ok(()),
        ),
        (&any_packet, &[set(Field::Metadata, 1_u8)], Err(BadSetType)),
        (&any_packet, &[set(Field::InPort, 1_u8)], Err(BadSetType)),
        (
            &any_packet,
            &[set(Field::EthSrc, 1_u128 << 48)],
            Err(BadSetArgument),
        ),
        (
            &any_packet,
            &[set(Field::Ipv4Src, 1_u8)],
            Err(InconsistentAction),
        ),
        (
            &ipv4,
            &[set(Field::Ipv4Src, 1_u8), Action::DecrementTtl],
            Ok(()),
        ),
        (&ipv4, &[set(Field::Ipv6Src, 1_u8)], Err(InconsistentAction)),
        (&ipv4, &[set(Field::TcpDst, 1_u8)], Err(InconsistentAction)),
        (&tcp, &[set(Field::TcpDst, 1_u8), Action::SetTtl(3)], Ok(())),
        (&tcp, &[set(Field::UdpDst, 1_u8)], Err(InconsistentAction)),
        (
            &any_packet,
            &[Action::DecrementTtl],
            Err(InconsistentAction),
        ),
        (&any_packet, &[Action::PopVlan], Err(InconsistentAction)),
        (
            &any_packet,
            &[set(Field::VlanVid, tag | 5)],
            Err(InconsistentAction),
        ),
        (
            &any_packet,
            &[
                Action::PushVlan(0x8100),
                set(Field::VlanVid, tag | 5),
                Action::PopVlan,
            ],
            Ok(()),
        ),
        (
            &any_packet,
            &[Action::PushVlan(0x8100), set(Field::VlanVid, 5_u8)],
            Err(BadSetArgument),
        ),
        (&any_packet, &[Action::PushVlan(0x9100)], Err(BadTag)),
        (&any_packet, &[Action::PushMpls(0x800)], Err(BadTag)),
        (
            &any_packet,
            &[Action::PopMpls(0x800)],
            Err(InconsistentAction),
        ),
        (
            &ipv4,
            &[Action::PushMpls(0x8847), Action::DecrementTtl],
            Err(InconsistentAction),
        ),
        (
            &ipv4,
            &[
                Action::PushMpls(0x8847),
                set(Field::MplsLabel, 9_u8),
                Action::DecrementMplsTtl,
                Action::CopyTtlIn,
                Action::PopMpls(0x86dd),
                set(Field::Ipv6Dst, 9_u8),
            ],
            Ok(()),
        ),
        (
            &ipv4,
            &[
                Action::PushMpls(0x8847),
                Action::PopMpls(0x86dd),
                set(Field::Ipv4Dst, 9_u8),
            ],
            Err(InconsistentAction),
        ),
        (
            &any_packet,
            &[Action::SetMplsTtl(1)],
            Err(InconsistentAction),
        ),
        (&any_packet, &[Action::CopyTtlOut], Err(InconsistentAction)),
        (
            &any_packet,
            &[Action::Group(GroupId(7)), Action::SetQueue(2)],
            Ok(()),
        ),
        // After a type or protocol is set, the packet has the fields of the new one.
        (
            &any_packet,
            &[
                set(Field::EthType, eth_type::IPV6),
                set(Field::IpProto, ip_proto::UDP),
                set(Field::UdpDst, 53_u8),
            ],
            Ok(()),
        ),
        (
            &any_packet,
            &[set(Field::EthType, 0x5ff_u16)],
            Err(BadSetArgument),
        ),
        (
            &any_packet,
            &[set(Field::IpProto, 6_u8)],
            Err(InconsistentAction),
        ),
        (
            &tcp,
            &[set(Field::EthType, 0x86dd_u16), set(Field::TcpDst, 1_u8)],
            Err(InconsistentAction),
        ),
        (
            &tcp,
            &[set(Field::IpProto, 17_u8), set(Field::TcpDst, 1_u8)],
            Err(InconsistentAction),
        ),
        (&ipv4, &[set(Field::MplsBos, 1_u8)], Err(InconsistentAction)),
    ];
    for (flow, actions, expected) in cases {
        let result = check(actions, flow).map_err(|error| {
            assert!(error.to_string().len() > 20, "{error}");
            error.code()
        });
        assert_eq!(result, expected, "{actions:?}");
    }
}

/// If an action passes the check, every packet of the match has its field, unless the
/// packet is truncated. Then its bytes do not change.
#[test]
fn what_fits_a_match_fits_its_packets() {
    let mut dice = Dice(1);
    let settable: Vec<Field> = Field::all().filter(|field| field.info().settable).collect();
    let (mut changed, mut refused) = (0, 0);
    for _ in 0..60_000 {
        let packet = Packet::new(&crate::frames::whole(&mut dice), 1);
        let own = |field: Field| exact(field, packet.key().get(field));
        let mut values = vec![own(Field::EthType)];
        if packet.key().get(Field::VlanVid) != 0 {
            values.push(own(Field::VlanVid));
        }
        if packet.key().get(Field::IpProto) != 0 && dice.one_in(2) {
            values.push(own(Field::IpProto));
        }
        let Ok(flow) = FlowMatch::new(values) else {
            continue;
        };
        let field = *dice.pick(&settable);
        let value = u128::from(dice.next()) & field.max_value();
        let old = packet.key().get(field);
        let is_tag = |kind: u128| [0x8100, 0x88a8, 0x9100].contains(&kind);
        let value = match field {
            Field::VlanVid => value | u128::from(VLAN_PRESENT),
            // Behind a tag is another type. A frame with a length has none.
            Field::EthType if packet.parsed().layers.llc || is_tag(value) || is_tag(old) => {
                continue;
            }
            // An extension header names another protocol.
            Field::IpProto => u128::from(*dice.pick(&[1, 6, 17, 58, 132, 253_u8])),
            _ => value,
        };
        if check(&[set(field, value)], &flow).is_err() {
            refused += 1;
            continue;
        }
        let mut after = packet.clone();
        set(field, value).change(&mut after).unwrap();
        let present = packet.key().presence().has(field.info().presence);
        assert!(
            after.key().get(field) == value || !present,
            "{field}: {flow}"
        );
        assert!(present || after == packet);
        changed += usize::from(after != packet);
    }
    assert!(changed > 5_000 && refused > 5_000, "{changed} {refused}");
}

#[test]
fn a_set_has_one_action_of_each_kind_in_its_own_order() {
    let mut actions = ActionSet::default();
    actions.write(&[
        output(PortNo(1)),
        set(Field::EthSrc, 1_u8),
        Action::PushVlan(0x8100),
        Action::DecrementTtl,
        set(Field::EthDst, 2_u8),
        Action::PopVlan,
    ]);
    actions.write(&[
        output(PortNo(2)),
        set(Field::EthSrc, 3_u8),
        Action::SetTtl(9),
    ]);
    let ordered: Vec<Action> = actions.ordered().copied().collect();
    let expected = [
        Action::PopVlan,
        Action::PushVlan(0x8100),
        Action::DecrementTtl,
        Action::SetTtl(9),
        set(Field::EthDst, 2_u8),
        set(Field::EthSrc, 3_u8),
        output(PortNo(2)),
    ];
    assert_eq!(ordered, expected);
    actions.write(&[
        Action::Group(GroupId(4)),
        Action::CopyTtlIn,
        Action::SetQueue(1),
    ]);
    let kinds: Vec<Kind> = actions.ordered().map(Action::kind).collect();
    assert_eq!(kinds[0], Kind::CopyTtlIn);
    assert_eq!(
        kinds[kinds.len() - 2..],
        [Kind::SetQueue, Kind::Group],
        "the group, no output"
    );
    actions.clear();
    assert_eq!(actions.ordered().count(), 0);
}

#[test]
fn ports_have_names() {
    for name in ["in_port", "FLOOD", "all", "Controller", "local"] {
        let port = PortNo::from_name(name).unwrap();
        assert_eq!(port.to_string(), name.to_lowercase());
        assert!(!port.is_physical());
    }
    assert_eq!(PortNo::from_name("nowhere"), None);
    assert_eq!(PortNo(7).to_string(), "7");
    assert!(PortNo(7).is_physical() && !PortNo(0).is_physical());
}
