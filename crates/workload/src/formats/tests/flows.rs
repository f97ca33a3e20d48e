//! Tests of Open vSwitch flows: meaning, refused flows, and writing and reading back.

use classyard::policy::PartId;
use classyard::{FieldMatch, Priority};
use proptest::prelude::*;

use super::round_trips::{Dice, said, trip};
use super::*;

pub(super) const ALL: ReadOptions = ReadOptions {
    skip_bad: false,
    ..ReadOptions::DEFAULT
};

fn read(text: &str, schema: &str) -> Result<Loaded<Policy>, ReadError> {
    let choice = SchemaChoice::named(schema).unwrap();
    read_policy("f", text, Some(RuleFormat::Ovs), Some(&choice), &ALL)
}

/// Returns the rules of a text, one per line: priority, matches, action.
fn shown(text: &str, schema: &str) -> Vec<String> {
    let loaded = read(text, schema).unwrap_or_else(|error| panic!("{error}"));
    let policy = &loaded.value;
    let mut lines = Vec::new();
    for &id in policy.ids() {
        for (part, rule) in policy.rule(id) {
            let action = policy.action_name(rule.action()).unwrap();
            lines.push(format!(
                "{}{} {rule} -> {action}",
                ["", "v6 "][part.index()],
                rule.priority()
            ));
        }
    }
    lines
}

#[test]
fn flows_mean_what_they_say() {
    let text = "NXST_FLOW reply (xid=0x4):\n\
        \u{20}cookie=0x0, duration=8.2s, table=0, n_packets=1, n_bytes=60, idle_age=7, priority=100,tcp,in_port=3,nw_src=10.0.0.0/8,tp_dst=443 actions=output:2,output:3\n\
        # a comment, and one at the end\n\
        ip,nw_src=10.1.0.0/255.255.0.0,nw_tos=184 actions=NORMAL # here\n\
        priority=5,udp,tp_src=0x100/0xff00,actions=resubmit(,3)\n\
        add priority=6,dl_type=0x800,nw_proto=6,ip_dscp=46,tcp_src=80,actions=drop\n\
        dl_vlan=7,dl_vlan_pcp=3,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02 action=drop\n\
        vlan_vid=0x1005/0x1fff,actions=drop\n\
        vlan_tci=0x7005 actions=drop\n\
        mpls,mpls_label=9,mpls_tc=1,metadata=0xff actions=drop\n\
        in_port=LOCAL,arp,actions=drop\r\n\
        ipv6,nw_tos=4,actions=drop\n\
        sctp6,tp_dst=1,actions=drop\n\
        priority=0,nw_src=*,actions=drop";
    assert_eq!(
        shown(text, "openflow15"),
        [
            "100 in_port=3 eth_type=0x800 src=10.0.0.0/8 proto=tcp dport=443 -> output:2,output:3",
            "32768 eth_type=0x800 src=10.1.0.0/16 ip_dscp=46 -> NORMAL",
            "5 eth_type=0x800 proto=udp sport=256-511 -> resubmit(,3)",
            "6 eth_type=0x800 proto=tcp ip_dscp=46 sport=80 -> drop",
            "32768 eth_src=02:00:00:00:00:01 eth_dst=02:00:00:00:00:02 vlan_vid=7 vlan_pcp=3 -> drop",
            "32768 vlan_vid=5 -> drop",
            "32768 vlan_vid=5 vlan_pcp=3 -> drop",
            "32768 metadata=0xff eth_type=0x8847 mpls_label=9 mpls_tc=1 -> drop",
            "32768 in_port=4294967294 eth_type=0x806 -> drop",
            "32768 eth_type=0x86dd ip_dscp=1 -> drop",
            "32768 eth_type=0x86dd proto=sctp dport=1 -> drop",
            "0 any -> drop",
        ]
    );
    let text = "tcp,nw_dst=1.2.3.4,actions=a\nipv6,ipv6_src=2001:db8::/32,actions=b\nactions=c\nicmp6,actions=d";
    assert_eq!(
        shown(text, "dual-5tuple"),
        [
            "32768 dst=1.2.3.4 proto=tcp -> a",
            "v6 32768 src=2001:db8::/32 -> b",
            "32768 any -> c",
            "v6 32768 any -> c",
            "v6 32768 proto=icmpv6 -> d",
        ]
    );
}

/// Reading and writing a switch's dump of flows preserves them.
#[test]
fn masks_of_any_bits_stand_on_ports_and_addresses() {
    let text = "priority=3,tcp,tp_src=0x10/0xfff0,tp_dst=0x1/0x11 actions=drop\n\
        priority=2,ip,nw_src=1.0.0.1/255.0.0.255,nw_dst=10.0.0.0/8 actions=drop\n\
        priority=1,udp,tp_dst=0x1000/0xff00 actions=drop\n";
    assert_eq!(
        shown(text, "ipv4-5tuple"),
        [
            "3 sport=16-31 dport=0x1&0x11 proto=tcp -> drop",
            "2 src=0x1000001&0xff0000ff dst=10.0.0.0/8 -> drop",
            "1 dport=4096-4351 proto=udp -> drop",
        ]
    );
    let choice = SchemaChoice::named("ipv4-5tuple").unwrap();
    let options = ReadOptions::default();
    let read = read_policy("f", text, Some(RuleFormat::Ovs), Some(&choice), &options);
    let mut written = Vec::new();
    let report = write_policy(&read.unwrap().value, RuleFormat::Ovs, &mut written).unwrap();
    let written = String::from_utf8(written).unwrap();
    assert_eq!(written, format!("# schema ipv4-5tuple\n{text}"));
    assert!(report.is_exact(), "{report}");

    let ipv6 = "ipv6,ipv6_src=2001:db8::1/ffff:ffff::ffff,actions=drop";
    assert_eq!(
        shown(ipv6, "ipv6-5tuple"),
        ["32768 src=0x20010db8000000000000000000000001&0xffffffff00000000000000000000ffff -> drop"]
    );
}

#[test]
fn what_flows_say_without_effect_is_noted() {
    let text = "cookie=0x0,table=1,idle_timeout=0,actions=drop\n\
        cookie=0x10,table=1,idle_timeout=60,ip,nw_tos=7,actions=output:1,resubmit(,2)\n\
        table=1,send_flow_rem,actions=goto_table:3\n\
        table=1,ip,actions=set_field:5->reg0,output:7";
    let notes = read(text, "openflow15").unwrap().notes;
    assert_eq!(
        notes,
        [
            "2 flows jump to a table (resubmit, goto_table), which is not followed: the action is kept as text",
            "1 flow has a cookie; ignored",
            "1 flow has a timeout; ignored",
            "1 flow has flags; ignored",
            "1 flow has a nw_tos with bits below the DSCP; ignored",
            "5 pairs of flows of equal priority overlap, such as lines 1 and 4, 3 and 4, 1 and 2; OpenFlow leaves open which of them wins, here it is the first",
        ]
    );
}

#[test]
fn flow_mistakes() {
    let cases = [
        (
            "ip,nw_src=10.0.0.0/33,actions=drop",
            "openflow15",
            "1:20: prefix length /33 is longer",
        ),
        (
            "ip,nw_src=10.0.0,actions=drop",
            "openflow15",
            "1:11: `10.0.0` is not an address; expected an IPv4",
        ),
        (
            "tcp,tp_dst=0x1/0x10011,actions=drop",
            "openflow15",
            "1:16: `0x10011` does not fit in the 16 bits of `tp_dst`",
        ),
        (
            "dl_src=01:00:00:00:00:00/01:00:00:00:00:00 actions=drop",
            "openflow15",
            "1:1: schema `openflow15` cannot say the mask of `dl_src=01:00:00:00:00:00/01:00:00:00:00:00`: `eth_src` takes exact",
        ),
        (
            "ct_state=+trk,actions=drop",
            "openflow15",
            "1:1: unsupported field `ct_state`",
        ),
        (
            "ip, tun_id=7,actions=drop",
            "openflow15",
            "1:5: unsupported field `tun_id`",
        ),
        (
            "reg0=1/1,actions=drop",
            "openflow15",
            "1:1: unsupported field `reg0`",
        ),
        (
            "ip,ip_frag=first,actions=drop",
            "openflow15",
            "1:4: unsupported field `ip_frag`",
        ),
        (
            "icmp,icmp_type=256,actions=drop",
            "openflow15",
            "1:16: `256` does not fit in the 8 bits of `icmp_type`",
        ),
        (
            "icmp,icmp_type=8/0xf,actions=drop",
            "openflow15",
            "1:16: `8/0xf` has a mask, which `icmp_type` does not take",
        ),
        (
            "icmp,tp_src=256,actions=drop",
            "openflow15",
            "1:6: `tp_src=256` is not an ICMP type or code; expected a type or code of ICMP: 0 to 255",
        ),
        (
            "icmp,tp_src=8/0xf,actions=drop",
            "openflow15",
            "1:6: `tp_src=8/0xf` is not an ICMP type or code",
        ),
        (
            "ip,nw_proto=58,tp_src=8,actions=drop",
            "openflow15",
            "1:16: `tp_src=8` without what it needs; expected `tcp`",
        ),
        (
            "ip,icmp_type=8,actions=drop",
            "openflow15",
            "1:4: `icmp_type=8` without what it needs; expected `icmp` or `icmp6`",
        ),
        (
            "ipv6,nw_proto=1,icmp_type=8,actions=drop",
            "openflow15",
            "1:17: `icmp_type=8` without what it needs",
        ),
        (
            "icmp,icmpv6_code=8,actions=drop",
            "openflow15",
            "1:6: `icmpv6_code=8` without what it needs; expected `icmp6`",
        ),
        (
            "icmp,icmp_type=8,tp_src=8,actions=drop",
            "openflow15",
            "1:18: `tp_src=8` after `icmp_type=8`: one field twice",
        ),
        (
            "icmp,icmp_type=8,actions=drop",
            "ipv4-5tuple",
            "1:6: schema `ipv4-5tuple` has no field for `icmp_type=8`: packets of ICMP have the ports 0 there; expected a flow without it, or the schema openflow15",
        ),
        (
            "icmp6,tp_dst=0,actions=drop",
            "dual-5tuple",
            "1:7: schema `ipv6-5tuple` has no field for `tp_dst=0`: packets of ICMP",
        ),
        (
            "arp,arp_sha=02:00:00:00:00:01,actions=drop",
            "openflow15",
            "1:5: no schema has a field for `arp_sha`",
        ),
        (
            "icmp6,icmp_type=135,nd_target=::1,actions=drop",
            "openflow15",
            "1:21: no schema has a field for `nd_target`",
        ),
        (
            "arp,arp_op=256,actions=drop",
            "openflow15",
            "1:12: `256` does not fit in the 8 bits of `arp_op`",
        ),
        (
            "arp,arp_op=1/0xff,actions=drop",
            "openflow15",
            "1:12: `1/0xff` has a mask, which `arp_op` does not take",
        ),
        (
            "ip,arp_op=1,actions=drop",
            "openflow15",
            "1:4: an operation of ARP without `arp` or `rarp`",
        ),
        (
            "arp_op=1,actions=drop",
            "openflow15",
            "1:1: an operation of ARP without `arp` or `rarp`",
        ),
        (
            "arp,nw_proto=1,arp_op=2,actions=drop",
            "openflow15",
            "1:16: `arp_op=2` contradicts `nw_proto=1`",
        ),
        (
            "ip,arp_spa=1.2.3.4,actions=drop",
            "openflow15",
            "1:4: `arp_spa=1.2.3.4` without what it needs; expected `arp`",
        ),
        (
            "arp,tp_src=1,actions=drop",
            "openflow15",
            "1:5: `tp_src=1` without what it needs",
        ),
        (
            "rarp,nw_tos=4,actions=drop",
            "openflow15",
            "1:6: `nw_tos=4` without what it needs",
        ),
        (
            "table=256,actions=drop",
            "openflow15",
            "1:7: `256` does not fit in the 8 bits of `table`",
        ),
        (
            "tcp_flags=+syn,actions=drop",
            "openflow15",
            "1:1: unsupported field `tcp_flags`",
        ),
        (
            "bogus,actions=drop",
            "openflow15",
            "1:1: unsupported field `bogus`",
        ),
        (
            "ip,udp,actions=drop\ntcp,nw_proto=17,actions=drop",
            "openflow15",
            "2:5: `nw_proto=17` contradicts `tcp`",
        ),
        (
            "ip,ipv6,actions=drop",
            "openflow15",
            "1:4: `ipv6` contradicts `ip`",
        ),
        (
            "nw_src=1.2.3.4,actions=drop",
            "openflow15",
            "1:1: `nw_src=1.2.3.4` without what it needs; expected `ip`",
        ),
        (
            "nw_proto=6,actions=drop",
            "openflow15",
            "1:1: a protocol without `ip` or `ipv6`",
        ),
        (
            "ip,tp_dst=80,actions=drop",
            "openflow15",
            "1:4: `tp_dst=80` without what it needs; expected `tcp`",
        ),
        (
            "udp,tcp_dst=80,actions=drop",
            "openflow15",
            "1:5: `tcp_dst=80` without what it needs",
        ),
        (
            "ip,mpls_label=80,actions=drop",
            "openflow15",
            "1:4: `mpls_label=80` without",
        ),
        (
            "nw_tos=4,actions=drop",
            "openflow15",
            "1:1: `nw_tos=4` without what it needs",
        ),
        (
            "tcp,tp_dst=65536,actions=drop",
            "openflow15",
            "1:12: `65536` does not fit in the 16 bits of `tp_dst`",
        ),
        (
            "priority=65536,actions=drop",
            "openflow15",
            "1:10: `65536` does not fit in the 16 bits of `priority`",
        ),
        (
            "priority=x,actions=drop",
            "openflow15",
            "1:10: `x` is not a value of `priority`",
        ),
        (
            "tcp,tp_dst=80,tcp_dst=80,actions=drop",
            "openflow15",
            "1:15: `tcp_dst=80` after `tp_dst=80`: one field twice",
        ),
        (
            "dl_vlan=0xffff,actions=drop",
            "openflow15",
            "1:9: `0xffff` asks whether there is a VLAN tag",
        ),
        (
            "dl_vlan=4096,actions=drop",
            "openflow15",
            "1:9: `4096` does not fit in the 12 bits",
        ),
        (
            "vlan_vid=5,actions=drop",
            "openflow15",
            "1:10: `5` asks whether",
        ),
        (
            "vlan_vid=0x1000/0x1000,actions=drop",
            "openflow15",
            "1:10: `0x1000/0x1000` asks whether",
        ),
        (
            "vlan_tci=0,actions=drop",
            "openflow15",
            "1:1: `vlan_tci=0` asks whether",
        ),
        (
            "vlan_tci=0x1000/0x1000,actions=drop",
            "openflow15",
            "1:1: `vlan_tci=0x1000/0x1000` asks whether",
        ),
        (
            "in_port=\"eth0,1,actions=drop",
            "openflow15",
            "1:9: `\"eth0,1,actions=drop` is not a port name",
        ),
        (
            "in_port=\"\",actions=drop",
            "openflow15",
            "1:9: `\"\"` is not a port name",
        ),
        (
            "ip,actions=conjunction(1,1/2)",
            "openflow15",
            "1:12: unsupported action `conjunction`",
        ),
        (
            "dl_dst=1,actions=drop",
            "openflow15",
            "1:8: `1` is not an Ethernet address",
        ),
        (
            "ipv6,ipv6_src=::1,actions=drop",
            "openflow15",
            "1:6: schema `openflow15` has no field for `ipv6_src=::1`",
        ),
        (
            "ip",
            "openflow15",
            "1:3: the line ends here; expected `actions=…`",
        ),
        (
            "ip,actions= ",
            "openflow15",
            "1:12: the line ends here; expected actions, or `drop`",
        ),
        (
            "delete ip,actions=drop",
            "openflow15",
            "1:1: a flow to delete",
        ),
        (
            "in_port=1,actions=drop",
            "ipv4-5tuple",
            "1:1: schema `ipv4-5tuple` has no field for `in_port=1`",
        ),
        (
            "ipv6,actions=drop",
            "ipv4-5tuple",
            "1:1: Ethernet type 0x86dd does not occur in schema `ipv4-5tuple`",
        ),
        (
            "arp,actions=drop",
            "dual-5tuple",
            "1:1: Ethernet type 0x0806 does not occur",
        ),
        (
            "tcp6,ipv6_src=::/129,actions=drop",
            "ipv6-5tuple",
            "1:18: prefix length /129",
        ),
    ];
    for (text, schema, expected) in cases {
        let Err(ReadError::Bad(problems)) = read(text, schema) else {
            panic!("{text:?} was read");
        };
        let found = problems.shown()[0].to_string();
        assert!(
            found.starts_with(expected),
            "{text}\n   found {found}\nexpected {expected}"
        );
        if expected.starts_with("1:") {
            assert_eq!(problems.total(), 1);
        }
    }
}

const DUMPS: [&str; 3] = [
    include_str!("../../../../../testdata/ovs/flows.dump"),
    include_str!("../../../../../testdata/ovs/groups.dump"),
    include_str!("../../../../../testdata/ovs/meters.dump"),
];

/// Output of `ovs-ofctl` is read table by table. Groups and meters are left out.
#[test]
fn a_dump_is_read_as_it_is_printed() {
    let text = DUMPS.concat();
    let table = |table, schema: Option<&str>, skip_bad| {
        let options = ReadOptions {
            table: Some(table),
            skip_bad,
            ..ALL
        };
        let choice = schema.map(|name| SchemaChoice::named(name).unwrap());
        read_policy("f", &text, None, choice.as_ref(), &options)
    };
    let loaded = table(0, Some("openflow15"), true).unwrap();
    // An IPv6 address, `ip_ecn`, and a mask on `metadata`.
    assert_eq!((loaded.value.len(), loaded.skipped.total()), (11, 3));
    let notes = loaded.notes.join("\n");
    for note in [
        "2 ports are called by name and got numbers: eth0.1 = 1, eth1 = 2",
        "2 groups were left out",
        "2 meters were left out",
    ] {
        assert!(notes.contains(note), "{notes}");
    }
    assert_eq!(table(2, None, false).unwrap().value.len(), 1);
    let error = table(1, None, false).unwrap_err().to_string();
    assert!(error.contains("whether there is a VLAN tag"), "{error}");
}

/// Only a caller of the library can build such rules: in files, both families have the same
/// conditions.
#[test]
fn a_half_that_matches_nothing_is_lost_and_the_other_is_written() {
    let mut policy = Policy::dual_stack();
    let action = policy.declare_action("drop");
    let half = |protocol| {
        let mut matches = [FieldMatch::Any; 5];
        matches[3] = FieldMatch::Exact(80);
        matches[4] = FieldMatch::Exact(protocol);
        matches
    };
    let (v4, v6) = (half(47), half(6));
    let parts = [(PartId::FIRST, &v4[..]), (PartId::from_index(1), &v6[..])];
    policy
        .add(RuleId::from_index(0), Priority(1), action, &parts)
        .unwrap();
    let mut written = Vec::new();
    let report = write_policy(&policy, RuleFormat::Ovs, &mut written).unwrap();
    assert_eq!(
        written,
        b"# schema dual-5tuple\npriority=1,tcp6,tp_dst=80 actions=drop\n"
    );
    assert_eq!(
        report.losses.shown()[0].to_string(),
        "rule 0: matches fewer headers: of one family, no packet has all that it demands"
    );
    assert_eq!(
        report.notes[0].text,
        "1 rule was written for one of IPv4 and IPv6 only"
    );
}

#[test]
fn losses_are_all_counted_and_the_first_are_named() {
    let lines = "drop eth_type=0x1234 dport=80\n".repeat(25);
    let text = format!("schema openflow15\ndrop name=last\n{lines}drop src=1.2.3.4 name=arp\n");
    let policy = read_policy("f", &text, None, None, &ALL).unwrap().value;
    let report = write_policy(&policy, RuleFormat::Ovs, &mut Vec::new()).unwrap();
    assert_eq!(report.losses.total(), 26);
    let ids: Vec<u32> = report
        .losses
        .shown()
        .iter()
        .map(|loss| loss.id.get())
        .collect();
    assert_eq!(ids, (1..=20).collect::<Vec<u32>>());
    assert!(!report.is_exact());
}

#[test]
fn rules_become_flows_that_switches_take() {
    let text = "schema openflow15\n\
        output:1 in_port=4294967294 metadata=0xff eth_src=02:00:00:00:00:01 vlan_vid=5 vlan_pcp=1\n\
        drop  eth_type=0x800 src=10.0.0.0/8 proto=tcp ip_dscp=46 dport=80\n\
        drop  eth_type=0x86dd proto=47\n\
        drop  eth_type=0x1234\n\
        allow eth_type=0x800 proto=udp sport=1-6 name=\"six ports\"\n\
        drop  src=10.0.0.1\n\
        drop  dport=80\n\
        drop  mpls_label=7\n\
        drop  eth_type=0x806 dport=80\n\
        drop  eth_type=0x800 proto=icmp sport=3-4 dport=0-300\n\
        drop  eth_type=0x8847 src=10.0.0.1\n\
        drop  eth_type=0x86dd proto=gre dport=0\n\
        drop  eth_type=0x8035 src=10.0.0.0/8 dst=10.0.0.1&255.0.0.255 proto=3 name=reverse\n\
        \" a#b\"\n";
    let policy = read_policy("f", text, None, None, &ALL).unwrap().value;
    let mut written = Vec::new();
    let report = write_policy(&policy, RuleFormat::Ovs, &mut written).unwrap();
    assert_eq!(
        String::from_utf8(written).unwrap(),
        "priority=14,in_port=LOCAL,metadata=0xff,dl_src=02:00:00:00:00:01,dl_vlan=5,dl_vlan_pcp=1 actions=output:1\n\
         priority=13,tcp,nw_src=10.0.0.0/8,nw_tos=184,tp_dst=80 actions=drop\n\
         priority=12,ipv6,nw_proto=47 actions=drop\n\
         priority=11,dl_type=0x1234 actions=drop\n\
         # six ports\n\
         priority=10,udp,tp_src=1 actions=allow\n\
         priority=10,udp,tp_src=0x2/0xfffe actions=allow\n\
         priority=10,udp,tp_src=0x4/0xfffe actions=allow\n\
         priority=10,udp,tp_src=6 actions=allow\n\
         priority=9,ip,nw_src=10.0.0.1 actions=drop\n\
         priority=9,arp,arp_spa=10.0.0.1 actions=drop\n\
         priority=9,rarp,arp_spa=10.0.0.1 actions=drop\n\
         priority=8,tcp,tp_dst=80 actions=drop\n\
         priority=8,udp,tp_dst=80 actions=drop\n\
         priority=8,sctp,tp_dst=80 actions=drop\n\
         priority=8,icmp,icmp_code=80 actions=drop\n\
         priority=8,tcp6,tp_dst=80 actions=drop\n\
         priority=8,udp6,tp_dst=80 actions=drop\n\
         priority=8,sctp6,tp_dst=80 actions=drop\n\
         priority=8,icmp6,icmpv6_code=80 actions=drop\n\
         priority=7,mpls,mpls_label=7 actions=drop\n\
         priority=7,mplsm,mpls_label=7 actions=drop\n\
         priority=5,icmp,icmp_type=3 actions=drop\n\
         priority=5,icmp,icmp_type=4 actions=drop\n\
         priority=3,ipv6,nw_proto=47 actions=drop\n\
         # reverse\n\
         priority=2,rarp,arp_spa=10.0.0.0/8,arp_tpa=10.0.0.1/255.0.0.255,arp_op=3 actions=drop\n\
         priority=1 actions=a_b\n"
    );
    assert_eq!(
        report.to_string(),
        "14 rules written as 26 lines\n\
         1 rule was left out: no packet has all that they demand\n\
         1 rule was left out: flows cannot match the fields after the MPLS labels\n\
         2 rules match fewer packets as flows, which must say an Ethernet type\n\
         2 rules have ranges, each written as up to 4 flows\n\
         3 rules leave out the Ethernet type or protocol that flows must say, and became a flow for each\n\
         2 rules demand of a field what all packets in question have, such as 0 of a missing field; flows leave that out\n\
         2 rule names written as comments\n\
         1 rule's action was changed to stand on one line\n\
         2 rules have actions that Open vSwitch does not know, such as `a_b`, `allow`; replace them before loading the file"
    );
    let lost: Vec<String> = report.losses.shown().iter().map(Loss::to_string).collect();
    assert_eq!(
        lost,
        [
            "rule 5: matches fewer headers: it has no Ethernet type, and flows cannot match packets with IP behind MPLS labels",
            "rule 6: matches fewer headers: it has no Ethernet type, and flows cannot match packets with IP behind MPLS labels",
            "rule 8: left out: no packet has all that it demands",
            "rule 10: left out: flows cannot match the fields after the MPLS labels",
        ]
    );
    assert!(!report.is_exact());
}

#[test]
fn priorities_are_made_to_fit() {
    let text = "schema ipv4-5tuple\na priority=70000\nb priority=5\nc priority=70000\n";
    let policy = read_policy("f", text, None, None, &ALL).unwrap().value;
    let mut written = Vec::new();
    let report = write_policy(&policy, RuleFormat::Ovs, &mut written).unwrap();
    assert_eq!(
        String::from_utf8(written).unwrap(),
        "# schema ipv4-5tuple\npriority=2,ip actions=a\npriority=1,ip actions=b\npriority=2,ip actions=c\n"
    );
    assert_eq!(report.notes[0].count, 2);
    assert_eq!(report.notes[1].count, 2);

    let schema = Schema::ipv4_5tuple();
    let mut many = Policy::single(&schema);
    let action = many.declare_action("drop");
    for index in 0..65_537 {
        let any = [FieldMatch::Any; 5];
        let id = RuleId::from_index(index);
        let priority = Priority(u32::try_from(index).unwrap());
        many.add(id, priority, action, &[(PartId::FIRST, &any)])
            .unwrap();
    }
    let error = write_policy(&many, RuleFormat::Ovs, &mut Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "65537 different priorities; ovs has only 65536"
    );
}

/// Returns the matches of a random rule that can be written as exactly one flow.
pub(super) fn sayable(dice: &mut Dice, schema: &Schema) -> Vec<FieldMatch> {
    let mut matches: Vec<FieldMatch> = schema
        .fields()
        .iter()
        .map(|f| dice.field_match(f))
        .collect();
    let mut set = |name: &str, wanted: FieldMatch| {
        if let Some(id) = schema.field_named(name) {
            matches[id.index()] = wanted;
        }
    };
    let stack = dice.below(6);
    let types = [0x800, 0x86dd, 0x8847, 0x806, 0x1234, 0x8035];
    let eth_type = types[usize::try_from(stack).unwrap()];
    set("eth_type", FieldMatch::Exact(eth_type));
    let five_tuple = schema.field_named("eth_type").is_none();
    let is_arp = matches!(eth_type, 0x806 | 0x8035);
    if stack != 0 && !is_arp && !five_tuple {
        set("src", FieldMatch::Any);
        set("dst", FieldMatch::Any);
    }
    let kind = dice.below(3);
    if stack > 1 && !five_tuple {
        for name in ["ip_dscp", "sport", "dport"] {
            set(name, FieldMatch::Any);
        }
        if !is_arp {
            set("proto", FieldMatch::Any);
        }
    } else if kind == 0 {
        set(
            "proto",
            FieldMatch::Exact([6, 17, 132][usize::try_from(dice.below(3)).unwrap()]),
        );
        for name in ["sport", "dport"] {
            // A mask, or a range that is a prefix, so that the rule remains one flow.
            let low = u128::from(dice.below(1 << 12)) << 4;
            let wanted = match dice.below(3) {
                0 => FieldMatch::Ternary {
                    value: low | 1,
                    mask: u128::from(dice.below(1 << 16)),
                },
                _ => FieldMatch::Range {
                    low,
                    high: low | 0xf,
                },
            };
            set(name, wanted);
        }
    } else if kind == 1 && !five_tuple {
        set("proto", FieldMatch::Exact(if stack == 0 { 1 } else { 58 }));
        for name in ["sport", "dport"] {
            let wanted = match dice.below(3) {
                0 => FieldMatch::Any,
                _ => FieldMatch::Exact(dice.below(256).into()),
            };
            set(name, wanted);
        }
    } else {
        set("sport", FieldMatch::Any);
        set("dport", FieldMatch::Any);
    }
    if stack != 2 {
        set("mpls_label", FieldMatch::Any);
        set("mpls_tc", FieldMatch::Any);
    }
    matches
}

proptest! {
    #[test]
    fn flows_survive_the_trip(seed: u64, rules in 0usize..12, which in 0usize..3) {
        let choice = SchemaChoice::named(["openflow15", "ipv4-5tuple", "ipv6-5tuple"][which]).unwrap();
        let mut dice = Dice::new(seed);
        let schema = &choice.schemas()[0];
        let mut policy = choice.policy();
        for index in 0..rules {
            let action = policy.declare_action(["drop", "output:1", "set_field:5->metadata,normal"][index % 3]);
            let priority = Priority(u32::try_from(dice.below(1 << 16)).unwrap());
            let matches = sayable(&mut dice, schema);
            policy.add(RuleId::from_index(index), priority, action, &[(PartId::FIRST, &matches)]).unwrap();
        }
        let (again, report, text) = trip(&policy, RuleFormat::Ovs);
        prop_assert_eq!(said(&policy), said(&again), "{}", text);
        prop_assert!(report.is_exact(), "{}", report);
        prop_assert_eq!(report.lines, rules);
    }
}
