use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proptest::prelude::*;

use super::*;
use crate::model::rule::Winner;
use crate::model::schema::MatchKind;

fn v4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

/// Returns the match of a value in a field of the IPv4 five-tuple, or the
/// error.
fn in_v4(field: &str, value: impl Into<FieldValue>) -> Result<FieldMatch, String> {
    let schema = Schema::ipv4_5tuple();
    let rule = Rule::builder(&schema).id(0).field(field, value).build();
    let rule = rule.map_err(|error| error.to_string())?;
    let id = schema.field_named(field).unwrap();
    Ok(rule.view().field(id))
}

#[test]
fn every_kind_of_value_becomes_the_match_that_it_means() {
    let range = |low, high| Ok(FieldMatch::Range { low, high });
    assert_eq!(in_v4("dport", 443), Ok(FieldMatch::Exact(443)));
    assert_eq!(in_v4("dport", 443_u16), Ok(FieldMatch::Exact(443)));
    assert_eq!(in_v4("dport", 80..=89), range(80, 89));
    assert_eq!(in_v4("dport", 1024..), range(1024, 65_535));
    assert_eq!(in_v4("dport", ..=1023_u16), range(0, 1023));
    assert_eq!(in_v4("dport", ..), Ok(FieldMatch::Any));
    assert_eq!(in_v4("dport", 0..), Ok(FieldMatch::Any));
    assert_eq!(in_v4("dport", None::<u16>), Ok(FieldMatch::Any));
    assert_eq!(in_v4("dport", Some(7_u16)), Ok(FieldMatch::Exact(7)));
    let address = v4("10.1.2.3");
    let exact = Ok(FieldMatch::Exact(0x0a01_0203));
    assert_eq!(in_v4("dst", address), exact);
    assert_eq!(in_v4("dst", IpAddr::V4(address)), exact);
    assert_eq!(in_v4("dst", 0x0a01_0203_u32), exact);
    // Host bits of a network are ignored.
    let net = FieldMatch::Prefix {
        value: 0x0a01_0000,
        length: 16,
    };
    assert_eq!(
        in_v4("dst", "10.1.2.3/16".parse::<Ipv4Net>().unwrap()),
        Ok(net)
    );
    assert_eq!(
        in_v4("dst", "10.1.2.3/16".parse::<IpNet>().unwrap()),
        Ok(net)
    );
    assert_eq!(in_v4("dst", v4("10.1.0.0")..=v4("10.1.255.255")), Ok(net));
    let everything: IpNet = "0.0.0.0/0".parse().unwrap();
    assert_eq!(in_v4("dst", everything), Ok(FieldMatch::Any));

    let schema = Schema::openflow15();
    let rule = Rule::builder(&schema)
        .id(3)
        .field("eth_dst", [2, 0, 0x5e, 0x10, 0, 1])
        .build();
    let rule = rule.unwrap();
    assert_eq!(rule.view().to_string(), "eth_dst=02:00:5e:10:00:01");
}

#[test]
fn what_is_not_given_matches_anything_and_is_nought() {
    let schema = Schema::ipv6_5tuple();
    let rule = Rule::builder(&schema).id(9).build().unwrap();
    let view = rule.view();
    assert_eq!(view.to_string(), "any");
    assert_eq!(
        (view.priority(), view.action(), view.cookie()),
        (Priority(0), ActionId(0), 0)
    );
    let rule = Rule::builder(&schema)
        .id(9)
        .priority(4)
        .action(ActionId(5))
        .cookie(6);
    let rule = rule.build().unwrap();
    assert_eq!(
        rule.view().winner(),
        Winner::new(Priority(4), RuleId::new(9).unwrap())
    );
    assert_eq!(
        (rule.view().action(), rule.view().cookie()),
        (ActionId(5), 6)
    );
}

/// Each error names the field and says what to do.
#[test]
#[allow(clippy::reversed_empty_ranges)] // they are refused
fn refusals_name_the_field() {
    let error = |result: Result<FieldMatch, String>| result.unwrap_err();
    assert_eq!(
        error(in_v4("dport", 65_536)),
        "dport: 65536 does not fit in 16 bits"
    );
    assert_eq!(
        error(in_v4("dport", -1)),
        "dport: -1 is negative; fields hold numbers from 0 on"
    );
    assert_eq!(
        error(in_v4("sport", -5_i64..=3)),
        "sport: -5 is negative; fields hold numbers from 0 on"
    );
    assert_eq!(
        error(in_v4("sport", ..=-1)),
        "sport: -1 is negative; fields hold numbers from 0 on"
    );
    assert_eq!(
        error(in_v4("sport", 70_000..)),
        "sport: 70000 does not fit in 16 bits"
    );
    let inverted = 9..=8;
    assert_eq!(
        error(in_v4("sport", inverted)),
        "sport: the range 9-8 is inverted; the lower end comes first"
    );
    let other = Ipv6Addr::LOCALHOST;
    let wrong = "dst: an IPv6 address has 128 bits, the field 32";
    assert_eq!(error(in_v4("dst", other)), wrong);
    assert_eq!(error(in_v4("dst", Ipv6Net::from(other))), wrong);
    assert_eq!(error(in_v4("dst", other..=other)), wrong);
    assert_eq!(
        error(in_v4("dport", v4("10.0.0.1"))),
        "dport: an IPv4 address has 32 bits, the field 16"
    );
    assert_eq!(
        error(in_v4("dst", [0; 6])),
        "dst: an Ethernet address has 48 bits, the field 32"
    );
    let unknown = Rule::builder(&Schema::ipv4_5tuple())
        .id(0)
        .field("dest", 1)
        .build();
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "ipv4-5tuple has no field `dest`; its fields are src, dst, sport, dport, proto"
    );
    let schema = Schema::ipv4_5tuple();
    let twice = Rule::builder(&schema)
        .id(0)
        .field("proto", 6)
        .field("proto", 6)
        .build();
    let twice = twice.unwrap_err();
    assert_eq!(
        twice,
        RuleError::RepeatedField {
            field: "proto".to_owned()
        }
    );
    assert_eq!(Rule::builder(&schema).build(), Err(RuleError::MissingId));
    let large = Rule::builder(&schema).id(u32::MAX).build();
    assert_eq!(large, Err(RuleError::IdTooLarge { number: u32::MAX }));
}

proptest! {
    /// A rule by name equals the rule by position, in any schema and any order
    /// of fields, with some fields left out.
    #[test]
    fn by_name_is_by_position(
        fields in prop::collection::vec((1_u32..=128, 0..4_usize, any::<(u128, u128)>()), 1..12),
        order in any::<u64>(),
        given in any::<u16>(),
    ) {
        let kinds = [MatchKind::Exact, MatchKind::Prefix, MatchKind::Range, MatchKind::Ternary];
        let mut bits = 0;
        let fields = fields.into_iter().take_while(|(width, ..)| {
            bits += width;
            bits <= crate::model::schema::MAX_BITS
        });
        let fields: Vec<_> = fields.collect();
        let described = fields.iter().enumerate();
        let schema = described.map(|(at, (width, kind, _))| {
            Field::new(&format!("f{at}"), *width, kinds[*kind])
        });
        let schema = Schema::new("any", schema.collect()).unwrap();
        let matches: Vec<FieldMatch> = schema.field_ids().zip(&fields).map(|(id, (_, kind, (a, b)))| {
            let field = schema.field(id);
            let (a, b) = (a & field.max_value(), b & field.max_value());
            match kind {
                _ if given >> id.index() & 1 == 0 => FieldMatch::Any,
                0 => FieldMatch::Exact(a),
                1 => FieldMatch::Prefix { value: a, length: u32::try_from(b % u128::from(field.width())).unwrap() },
                2 => FieldMatch::Range { low: a.min(b), high: a.max(b) },
                _ => FieldMatch::Ternary { value: a, mask: b },
            }
        }).collect();
        let id = RuleId::new(3).unwrap();
        let expected = Rule::new(&schema, id, Priority(2), ActionId(1), &matches).unwrap();
        let mut named: Vec<_> = schema.fields().iter().zip(&matches).collect();
        let turn = usize::try_from(order % 64).unwrap() % named.len();
        named.rotate_left(turn);
        let mut builder = Rule::builder(&schema).id(3).priority(2).action(ActionId(1));
        for (field, wanted) in named {
            if *wanted != FieldMatch::Any {
                builder = builder.field(field.name(), *wanted);
            }
        }
        prop_assert_eq!(builder.build().unwrap(), expected);
    }
}
