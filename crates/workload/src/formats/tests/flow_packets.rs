//! Tests of flows with packets: the rule that wins for a frame given in bytes, and equal
//! decisions of rules and of the flows written from them.

use classyard::policy::{PartId, PolicyTrace};
use classyard::{FieldMatch, Priority, Winner};
use proptest::prelude::*;

use super::round_trips::{Dice, said, trip};
use super::*;
use crate::packet::tests::stack::{Extension, Net, Stack, Upper};
use crate::packet::{LinkType, parse};

/// Returns the key of a frame under a schema, or `None` if the frame has no key.
fn key(frame: &[u8], schema: &Arc<Schema>) -> Option<Vec<u64>> {
    let parsed = parse(frame, LinkType::Ethernet);
    let values: Vec<u128> = match schema.name() {
        "openflow15" => parsed.openflow15(1)?.to_vec(),
        "ipv4-5tuple" => parsed.ipv4_5tuple()?.to_vec(),
        _ => parsed.ipv6_5tuple()?.to_vec(),
    };
    let mut trace = PolicyTrace::new([schema].into_iter());
    trace.push(PartId::FIRST, &values).unwrap();
    let (_, key) = trace.iter().next()?;
    Some(key.to_vec())
}

/// Returns the action of the rule that wins.
fn action(policy: &Policy, key: &[u64]) -> Option<String> {
    let id = policy.part(PartId::FIRST).scan(key).rule()?;
    let (_, rule) = policy.rule(id).next()?;
    policy.action_name(rule.action()).map(str::to_owned)
}

fn arp(reverse: bool, operation: u8, sender: u32, target: u32) -> Net {
    Net::Arp {
        reverse,
        operation: operation.into(),
        sender,
        target,
    }
}

fn ipv4(src: u32, upper: Upper) -> Net {
    Net::V4 {
        src,
        dst: 0x0a00_00fe,
        dscp: 0,
        option_words: 0,
        offset: 0,
        more: false,
        upper,
    }
}

fn ipv6(upper: Upper) -> Net {
    Net::V6 {
        src: 1,
        dst: 2,
        dscp: 0,
        extensions: Vec::new(),
        upper,
    }
}

#[test]
fn frames_of_icmp_and_arp_find_their_flows() {
    let text = "priority=90,icmp,icmp_type=8,icmp_code=0,actions=ping\n\
        priority=89,icmp,tp_src=3,tp_dst=1,actions=unreachable\n\
        priority=88,dl_type=0x800,nw_proto=1,icmp_type=11/0xff,actions=exceeded\n\
        priority=80,icmp6,icmpv6_type=135,icmpv6_code=0,actions=neighbour\n\
        priority=79,icmp6,icmp_type=128,actions=ping6\n\
        priority=78,ipv6,nw_proto=58,tp_src=1,icmpv6_code=4,actions=port6\n\
        priority=70,arp,arp_op=1,arp_tpa=10.0.0.1,actions=asked\n\
        priority=69,arp,nw_proto=2,nw_src=10.0.0.0/24,actions=answered\n\
        priority=68,arp,arp_spa=10.9.0.0/255.255.0.0,actions=elsewhere\n\
        priority=67,rarp,arp_op=3,actions=reverse\n\
        priority=66,arp,actions=other-arp\n\
        priority=65,rarp,actions=other-rarp\n\
        priority=60,tcp,tp_src=8,actions=tcp8\n\
        priority=0,actions=rest\n";
    let policy = read_policy("f", text, None, None, &ReadOptions::default());
    let policy = policy.unwrap().value;
    let host = 0x0a00_0001;
    let cases = [
        (ipv4(host, Upper::Icmp(8, 0)), "ping"),
        (ipv4(host, Upper::Icmp(8, 1)), "rest"),
        (ipv4(host, Upper::Icmp(3, 1)), "unreachable"),
        (ipv4(host, Upper::Icmp(3, 0)), "rest"),
        (ipv4(host, Upper::Icmp(11, 7)), "exceeded"),
        (ipv4(host, Upper::Tcp(8, 0, 0)), "tcp8"),
        (ipv4(host, Upper::Udp(8, 0)), "rest"),
        (ipv6(Upper::Icmp(135, 0)), "neighbour"),
        (ipv6(Upper::Icmp(135, 1)), "rest"),
        (ipv6(Upper::Icmp(128, 9)), "ping6"),
        (ipv6(Upper::Icmp(1, 4)), "port6"),
        (arp(false, 1, 0x0a00_0002, host), "asked"),
        (arp(false, 1, 0x0a00_0002, 0x0a00_0003), "other-arp"),
        (arp(false, 2, host, 0x0a00_0002), "answered"),
        (arp(false, 2, 0x0a09_0001, host), "elsewhere"),
        (arp(true, 3, 0, 0), "reverse"),
        (arp(true, 4, host, host), "other-rarp"),
        (Net::Other(0x1234, vec![1, 2, 3]), "rest"),
    ];
    let schema = Schema::openflow15();
    for (net, expected) in cases {
        let frame = Stack::ethernet(net.clone()).bytes();
        let key = key(&frame, &schema).unwrap();
        assert_eq!(action(&policy, &key).as_deref(), Some(expected), "{net:?}");
    }
}

const TYPES: [u16; 8] = [0x800, 0x800, 0x86dd, 0x806, 0x8035, 0x8847, 0x8848, 0x1234];
const PROTOCOLS: [u8; 9] = [0, 1, 2, 6, 17, 47, 58, 132, 255];
const PORTS: [u16; 10] = [0, 1, 8, 13, 80, 255, 256, 1023, 1024, 65535];
const ADDRESSES: [u32; 5] = [0, 0x0a00_0001, 0x0a00_0102, 0xc000_0201, u32::MAX];

fn pick<T: Copy>(dice: &mut Dice, pool: &[T]) -> T {
    pool[usize::try_from(dice.below(pool.len() as u64)).unwrap()]
}

fn small(dice: &mut Dice) -> u8 {
    u8::try_from(pick(dice, &PORTS[..6])).unwrap()
}

/// Returns a random frame of any kind. It has few different values, so that rules match it.
fn frame(dice: &mut Dice) -> Vec<u8> {
    let upper = match dice.below(8) {
        0 | 1 => Upper::Tcp(pick(dice, &PORTS), pick(dice, &PORTS), 0),
        2 => Upper::Udp(pick(dice, &PORTS), pick(dice, &PORTS)),
        3 => Upper::Sctp(pick(dice, &PORTS), pick(dice, &PORTS)),
        4..=6 => Upper::Icmp(small(dice), small(dice)),
        _ => Upper::Other(pick(dice, &[1, 2, 47, 58, 255]), vec![0; 4]),
    };
    let dscp = pick(dice, &[0, 0, 46]);
    let later = dice.below(6) == 0;
    let net = match dice.below(10) {
        0..=4 => Net::V4 {
            src: pick(dice, &ADDRESSES),
            dst: pick(dice, &ADDRESSES),
            dscp,
            option_words: 0,
            offset: if later { 185 } else { 0 },
            more: false,
            upper,
        },
        5 | 6 => Net::V6 {
            src: pick(dice, &ADDRESSES).into(),
            dst: pick(dice, &ADDRESSES).into(),
            dscp,
            extensions: later
                .then_some(Extension::Fragment(181, true))
                .into_iter()
                .collect(),
            upper,
        },
        7 | 8 => arp(
            dice.below(2) == 0,
            pick(dice, &PROTOCOLS),
            pick(dice, &ADDRESSES),
            pick(dice, &ADDRESSES),
        ),
        _ => Net::Other(0x1234, vec![0; 24]),
    };
    let mut stack = Stack::ethernet(net);
    if !matches!(stack.net, Net::Arp { .. }) && dice.below(5) == 0 {
        stack.labels = vec![(pick(dice, &[0, 7, 16]), pick(dice, &[0, 3]))];
    }
    if dice.below(4) == 0 {
        stack.tags = vec![(0x8100, pick(dice, &[0, 5, 7]), pick(dice, &[0, 3]))];
    }
    stack.bytes()
}

/// Returns the matches of a random rule, with values that [`frame`] uses.
fn rule(dice: &mut Dice, schema: &Schema) -> Vec<FieldMatch> {
    let exact = |value: u128| FieldMatch::Exact(value);
    let fields = schema.fields().iter();
    let matches = fields.map(|field| match field.name() {
        "eth_type" if dice.below(4) > 0 => exact(pick(dice, &TYPES).into()),
        "proto" if dice.below(2) == 0 => exact(pick(dice, &PROTOCOLS).into()),
        "vlan_vid" if dice.below(8) == 0 => exact(pick(dice, &[0, 5])),
        "vlan_pcp" if dice.below(16) == 0 => exact(pick(dice, &[0, 3])),
        "mpls_label" if dice.below(6) == 0 => exact(pick(dice, &[0, 7])),
        "mpls_tc" if dice.below(10) == 0 => exact(pick(dice, &[0, 3])),
        "ip_dscp" if dice.below(5) == 0 => exact(pick(dice, &[0, 46])),
        "src" | "dst" => {
            let value = pick(dice, &ADDRESSES).into();
            match dice.below(12) {
                0 => exact(value),
                1 => FieldMatch::Prefix {
                    value,
                    length: field.width() - 24,
                },
                2 => FieldMatch::Ternary { value, mask: 0xff },
                _ => FieldMatch::Any,
            }
        }
        "sport" | "dport" => {
            let range = |low, high| FieldMatch::Range { low, high };
            match dice.below(16) {
                0 | 1 => exact(pick(dice, &PORTS).into()),
                2 => range(0, 1023),
                3 => range(3, 8),
                4 => range(250, 300),
                5 => range(256, 65535),
                6 => FieldMatch::Ternary {
                    value: 8,
                    mask: 0x0f,
                },
                7 => FieldMatch::Ternary {
                    value: 8,
                    mask: 0xff08,
                },
                _ => FieldMatch::Any,
            }
        }
        _ => FieldMatch::Any,
    });
    matches.collect()
}

proptest! {
    /// Compares decisions, except for frames whose winning rule was lost.
    #[test]
    fn flows_decide_about_frames_as_rules_did(seed: u64, rules in 1usize..6, which in 0usize..5) {
        let name = ["openflow15", "openflow15", "openflow15", "ipv4-5tuple", "ipv6-5tuple"][which];
        let choice = SchemaChoice::named(name).unwrap();
        let schema = &choice.schemas()[0];
        let mut dice = Dice::new(seed);
        let mut policy = choice.policy();
        for index in 0..rules {
            let matches = rule(&mut dice, schema);
            let action = policy.declare_action(&format!("output:{index}"));
            let priority = Priority(u32::try_from(dice.below(4)).unwrap());
            policy.add(RuleId::from_index(index), priority, action, &[(PartId::FIRST, &matches)]).unwrap();
        }
        let (again, report, text) = trip(&policy, RuleFormat::Ovs);
        let changed = report.notes.iter().filter(|note| note.effect == Effect::Changed);
        prop_assert_eq!(report.losses.total(), changed.map(|note| note.count).sum::<usize>());
        let lost: Vec<RuleId> = report.losses.shown().iter().map(|loss| loss.id).collect();
        for _ in 0..40 {
            let frame = frame(&mut dice);
            let Some(key) = key(&frame, schema) else { continue };
            let (mut best, mut kept) = (Winner::MISS, true);
            for rule in policy.part(PartId::FIRST).iter().filter(|rule| rule.matches(&key)) {
                if rule.winner().beats(best) {
                    best = rule.winner();
                    kept = !lost.contains(&rule.id());
                }
            }
            let expected = best.rule().map(|id| format!("output:{}", id.get()));
            if kept {
                let parsed = parse(&frame, LinkType::Ethernet);
                prop_assert_eq!(action(&again, &key), expected, "{:?}\n{:?}\n{}\n{}", parsed, said(&policy), text, report);
            }
        }
    }
}

/// Returns value and mask that a flow requires for a frame's tag, as Open vSwitch defines
/// it: bits 0 to 11 are the number, bit 12 is 1 if there is a tag, bits 13 to 15 are the
/// priority. Other fields are ignored.
fn tag_match(flow: &str) -> Option<(u16, u16)> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    let (demands, _) = flow.split_once("actions=").unwrap();
    let (mut wanted, mut mask) = (0, 0);
    for token in demands.split([',', ' ']).filter(|token| !token.is_empty()) {
        let (key, value) = token.split_once('=').unwrap_or((token, "0"));
        let (value, under) = match value.split_once('/') {
            Some((value, under)) => (number(value), Some(number(under))),
            None if key.contains("vlan") => (number(value), None),
            None => continue,
        };
        let (value, bits) = match key {
            "dl_vlan" => (0x1000 | value, 0x1000 | under.unwrap_or(0xfff)),
            "dl_vlan_pcp" => (0x1000 | value << 13, 0xf000),
            "vlan_vid" => (value, under.unwrap_or(0x1fff)),
            "vlan_tci" => (value, under.unwrap_or(0xffff)),
            _ => continue,
        };
        if mask & bits & (wanted ^ value) != 0 {
            return None;
        }
        wanted |= value & bits;
        mask |= bits;
    }
    Some((wanted, mask))
}

/// Returns frames with and without a tag, and their tag control information.
fn tagged_frames() -> Vec<(Vec<u8>, u16)> {
    let mut stack = Stack::ethernet(Net::Other(0x1234, vec![0; 24]));
    let mut frames = vec![(stack.bytes(), 0)];
    for vid in [0, 1, 4, 5, 4095] {
        for pcp in [0, 1, 3, 7] {
            stack.tags = vec![(0x8100, vid, pcp)];
            frames.push((stack.bytes(), 0x1000 | vid | u16::from(pcp) << 13));
        }
    }
    frames
}

/// Flows about VLAN tags are read with their meaning, or refused if the schema cannot
/// express it: schemas have no field for the presence of a tag, so they cannot
/// distinguish a frame without a tag from a frame with a tag of zeros.
#[test]
fn flows_about_vlan_tags_mean_what_they_say_or_are_refused() {
    let numbers = [
        "",
        "dl_vlan=0",
        "dl_vlan=5",
        "vlan_vid=0x1000",
        "vlan_vid=0x1005/0x1fff",
    ];
    let priorities = ["", "dl_vlan_pcp=0", "dl_vlan_pcp=3"];
    let mut flows = Vec::new();
    for number in numbers {
        flows.extend(priorities.map(|priority| format!("{number},{priority}")));
    }
    for value in [0, 5, 0x1000, 0x1005, 0x3000, 0x3005, 0x7000, 0xffff] {
        for mask in [0xfff, 0xe000, 0xefff, 0x1fff, 0xf000, 0xffff] {
            flows.push(format!("vlan_tci={:#06x}/{mask:#06x}", value & mask));
        }
        flows.push(format!("vlan_tci={value}"));
    }
    let schema = Schema::openflow15();
    let (mut accepted, mut refused) = (0, 0);
    for flow in flows {
        let flow = format!("priority=9,{flow},actions=drop");
        let flow = flow.replace(",,", ",").replace(",,", ",");
        let (wanted, mask) = tag_match(&flow).unwrap();
        let hits = |tci: u16| (tci ^ wanted) & mask == 0;
        let read = read_policy("f", &flow, None, None, &ReadOptions::default());
        let says_nothing = !tagged_frames().iter().any(|&(_, tci)| hits(tci));
        if hits(0) == hits(0x1000) && !says_nothing {
            accepted += 1;
            let policy = read.unwrap_or_else(|error| panic!("{flow}: {error}")).value;
            for (frame, tci) in tagged_frames() {
                let key = key(&frame, &schema).unwrap();
                let found = action(&policy, &key).is_some();
                assert_eq!(found, hits(tci), "{flow}, tag {tci:#06x}");
            }
        } else {
            refused += 1;
            let error = read.map(drop).unwrap_err().to_string();
            assert!(
                error.contains("whether there is a VLAN tag"),
                "{flow}: {error}"
            );
        }
    }
    assert!(accepted > 30 && refused > 10, "{accepted}, {refused}");
}

/// Rules about VLAN tags become flows that match the same frames.
#[test]
fn rules_about_vlan_tags_become_flows_that_match_the_same_frames() {
    let schema = Schema::openflow15();
    let values = |pool: &[u128]| {
        let exact = pool.iter().map(|&value| FieldMatch::Exact(value));
        std::iter::once(FieldMatch::Any)
            .chain(exact)
            .collect::<Vec<_>>()
    };
    for vid in values(&[0, 1, 5, 4095]) {
        for pcp in values(&[0, 3, 7]) {
            let fields = schema.fields().iter();
            let matches: Vec<FieldMatch> = fields
                .map(|field| match field.name() {
                    "vlan_vid" => vid,
                    "vlan_pcp" => pcp,
                    _ => FieldMatch::Any,
                })
                .collect();
            let mut policy = SchemaChoice::Single(Arc::clone(&schema)).policy();
            let drop = policy.declare_action("drop");
            let parts = [(PartId::FIRST, &matches[..])];
            policy
                .add(RuleId::from_index(0), Priority(1), drop, &parts)
                .unwrap();
            let (again, report, text) = trip(&policy, RuleFormat::Ovs);
            assert_eq!(report.losses.total(), 0, "{text}");
            let flows = text.lines().filter(|line| !line.starts_with('#'));
            let demanded: Vec<(u16, u16)> = flows.filter_map(tag_match).collect();
            for (frame, tci) in tagged_frames() {
                let key = key(&frame, &schema).unwrap();
                let hit = demanded
                    .iter()
                    .any(|(wanted, mask)| (tci ^ wanted) & mask == 0);
                let expected = action(&policy, &key).is_some();
                assert_eq!(hit, expected, "{vid:?}, {pcp:?}, tag {tci:#06x}: {text}");
                assert_eq!(action(&again, &key).is_some(), expected, "{text}");
            }
        }
    }
}
