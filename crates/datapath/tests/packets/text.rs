//! Pipelines as text: messages are written and read back unchanged, flows of `ovs-ofctl`
//! are accepted, and problems are reported with line and column.

use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::Pipeline;
use classyard_datapath::text::{Located, fill, load, read};
use classyard_datapath::{GroupId, PortNo, TableSettings};

use crate::frames::Dice;
use crate::messages::Maker;

#[test]
fn messages_are_written_and_read_the_same() {
    let (mut flows, mut groups) = (0, 0);
    let mut maker = Maker(Dice(77));
    for _ in 0..4_000 {
        let packet = maker.packet();
        let message = maker.adding(&packet);
        let text = message.to_string();
        match read(&text) {
            Ok(found) => {
                assert_eq!(found, [Located { line: 1, message }], "{text}");
                flows += usize::from(text.starts_with("table"));
                groups += usize::from(text.starts_with("group"));
            }
            // An unsupported message is reported when it is read.
            Err(problems) => assert!(
                problems.shown()[0].found.contains("_"),
                "{text}: {problems:?}"
            ),
        }
    }
    assert!(flows > 1_500 && groups > 500, "{flows} {groups}");
}

fn one(line: &str) -> String {
    let messages = read(line).unwrap_or_else(|problems| panic!("{line}: {}", problems.shown()[0]));
    match &messages[..] {
        [Located { message, .. }] => message.to_string(),
        _ => panic!("{line}: {messages:?}"),
    }
}

#[test]
fn flows_of_ovs_ofctl_are_understood() {
    for (line, expected) in [
        (
            "priority=7,tcp,nw_src=10.1.2.3/8,tp_dst=80,in_port=2 actions=output:1,2,local",
            "table=0,priority=7,in_port=2,eth_type=0x800,ip_proto=6,ipv4_src=10.0.0.0/8,tcp_dst=80 \
             actions=output:1,output:2,local",
        ),
        (
            " cookie=0x5, duration=3.4s, table=3, n_packets=7, n_bytes=9, idle_timeout=10, \
             dl_vlan=5,dl_vlan_pcp=3,dl_src=02:00:00:00:00:01/ff:ff:00:00:00:00 actions=drop",
            "table=3,priority=32768,cookie=0x5,idle_timeout=0xa,\
             eth_src=02:00:00:00:00:00/ff:ff:00:00:00:00,vlan_vid=0x1005,vlan_pcp=3 actions=drop",
        ),
        (
            "arp,nw_dst=10.0.0.1,nw_proto=1,actions=controller:128",
            "table=0,priority=32768,eth_type=0x806,arp_op=1,arp_tpa=10.0.0.1 \
             actions=controller(max_len=128)",
        ),
        (
            "udp6,ipv6_dst=2001:db8::/32,udp_src=0x10/0xfff0 action=mod_tp_dst:53,CONTROLLER",
            "table=0,priority=32768,eth_type=0x86dd,ip_proto=17,udp_src=16/65520,\
             ipv6_dst=2001:db8::/32 actions=set_field:53->udp_dst,controller(max_len=65535)",
        ),
        (
            "flow add table=1,ip,nw_tos=184 actions=mod_nw_dst:192.0.2.1,dec_ttl,\
             write_actions(group:3,output:1),write_metadata:0x10/0xf0,meter:9,goto_table:2",
            "table=1,priority=32768,eth_type=0x800,ip_dscp=46 actions=meter:9,\
             set_field:192.0.2.1->ipv4_dst,dec_ttl,write_actions(group:3,output:1),\
             write_metadata:0x10/0xf0,goto_table:2",
        ),
        (
            "dl_vlan=1 actions=set_queue:4,mod_vlan_vid:9,clear_actions",
            "table=0,priority=32768,vlan_vid=0x1001 actions=set_queue:4,\
             set_field:0x1009->vlan_vid,clear_actions",
        ),
        (
            "mpls actions=set_field:0->mpls_bos,set_field:0x800->dl_type,set_field:6->nw_proto",
            "table=0,priority=32768,eth_type=0x8847 actions=set_field:0->mpls_bos,\
             set_field:0x800->eth_type,set_field:6->ip_proto",
        ),
        (
            "actions=flood # all of it",
            "table=0,priority=32768 actions=flood",
        ),
        (
            "dl_vlan=0xffff actions=all",
            "table=0,priority=32768,vlan_vid=0x0 actions=all",
        ),
        (
            "group_id=4,type=select,bucket=weight:3,actions=output:1,bucket=output:2",
            "group_id=4,type=select,bucket=weight:3,actions=output:1,bucket=weight:1,actions=output:2",
        ),
        (
            // Refused later, but written back as read.
            "group_id=2,type=ff,bucket=weight:2,actions=1",
            "group_id=2,type=ff,bucket=weight:2,actions=output:1",
        ),
        (
            "group add group_id=1,type=ff,bucket=watch_port:1,actions=1,bucket=watch_group:4,actions=drop",
            "group_id=1,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_group:4,actions=",
        ),
    ] {
        assert_eq!(one(line), expected, "{line}");
    }
}

#[test]
fn what_is_wrong_is_said_with_line_and_column() {
    for (line, column, length, found, expected) in [
        (
            "ip,nw_dst=10.0.0.0/8",
            21,
            0,
            "the line ends here",
            "actions=",
        ),
        (
            "ip,foo=1 actions=1",
            4,
            3,
            "unsupported field `foo`",
            "in_port",
        ),
        ("ip,bar actions=1", 4, 3, "unsupported field `bar`", "tcp6"),
        (
            "nw_dst=10.0.0.1 actions=1",
            1,
            15,
            "`nw_dst=10.0.0.1` without what it needs",
            "`ip`, `tcp`, `arp`",
        ),
        (
            "ip,tp_dst=1 actions=1",
            4,
            8,
            "`tp_dst=1` without what it needs",
            "`tcp`",
        ),
        (
            "ip,nw_dst=10.0.0.0/33 actions=1",
            20,
            2,
            "prefix length /33 is longer than the field's 32 bits",
            "0 to 32",
        ),
        (
            "ip,nw_dst=10.0.0 actions=1",
            11,
            6,
            "`10.0.0` is not an address",
            "192.0.2.1",
        ),
        (
            "tcp,tp_dst=65536 actions=1",
            12,
            5,
            "does not fit in the 16 bits of `tp_dst`",
            "at most 65535",
        ),
        (
            "tcp,tcp_dst=5,tcp_dst=6 actions=1",
            15,
            9,
            "`tcp_dst=6` after `tcp_dst=5`: one field twice",
            "at most once",
        ),
        (
            "ipv4_dst=1.2.3.4 actions=1",
            1,
            16,
            "`ipv4_dst=1.2.3.4` without what it needs",
            "dl_type=0x0800",
        ),
        (
            "table=254 actions=1",
            7,
            3,
            "there is no table 254",
            "0 to 253",
        ),
        (
            "priority=65536 actions=1",
            10,
            5,
            "does not fit in the 16 bits of `priority`",
            "at most 65535",
        ),
        (
            "actions=fly",
            9,
            3,
            "unsupported action `fly`",
            "goto_table",
        ),
        (
            "actions=output:1,drop",
            18,
            4,
            "`drop` together with other actions",
            "alone",
        ),
        (
            "actions=dec_ttl",
            9,
            7,
            "does not say that packets have IP",
            "",
        ),
        (
            "ip actions=mod_vlan_vid:9",
            12,
            14,
            "does not say that packets have",
            "",
        ),
        ("actions=set_field:5", 9, 11, "sets nothing", "VALUE->FIELD"),
        (
            "actions=set_field:5->foo",
            22,
            3,
            "unsupported field `foo`",
            "",
        ),
        (
            "actions=set_field:5/1->reg0",
            19,
            3,
            "a value with a mask",
            "as a whole",
        ),
        ("table=3 actions=goto_table:3", 17, 12, "to a later one", ""),
        (
            "actions=goto_table:1,goto_table:2",
            22,
            12,
            "is given twice",
            "once",
        ),
        (
            "ip,nw_tos=256 actions=1",
            11,
            3,
            "8 bits of `nw_tos`",
            "255",
        ),
        (
            "group_id=1,bucket=actions=1",
            11,
            0,
            "the line ends here",
            "type=",
        ),
        (
            "group_id=1,type=odd",
            17,
            3,
            "`odd` is not a group type",
            "`select`",
        ),
        (
            "group_id=1,type=all,bucket=weight:x",
            35,
            1,
            "`x` is not a value of `weight`",
            "number",
        ),
        ("é,actions=1", 1, 1, "unsupported field `é`", ""),
    ] {
        let text = format!("# a comment\n\n  {line}\n");
        let problems = read(&text).expect_err(line);
        let [problem] = problems.shown() else {
            panic!("{line}: {problems:?}");
        };
        assert_eq!(
            (problem.line, problem.column),
            (3, column + 2),
            "{line}: {problem}"
        );
        assert_eq!(problem.length, length, "{line}: {problem}");
        assert!(problem.to_string().contains(found), "{line}: {problem}");
        assert!(problem.expected.contains(expected), "{line}: {problem}");
    }
    let problems = read("x\nactions=1\ny").unwrap_err();
    let lines: Vec<usize> = problems
        .shown()
        .iter()
        .map(|problem| problem.line)
        .collect();
    assert_eq!(lines, [1, 3], "all of them");
}

#[test]
fn a_text_is_loaded_as_a_whole_or_not_at_all() {
    let engine = EngineSpec::parse("forest").unwrap();
    let mut pipeline = Pipeline::new(TableSettings::new(engine).unwrap().rebuild_below(100));
    let good = "group_id=1,type=all\n\nactions=group:1\ntable=4,ip actions=drop\n";
    let loaded = load(good, &mut pipeline, Duration::ZERO).unwrap();
    let lines: Vec<usize> = loaded.iter().map(|one| one.line).collect();
    assert_eq!(lines, [1, 3, 4]);
    assert_eq!(pipeline.flows().table(TableId(4)).count(), 1);
    let bad = "table=5 actions=drop\ntable=6 actions=group:7\ngroup_id=2,type=all";
    let problems = load(bad, &mut pipeline, Duration::ZERO).unwrap_err();
    let shown = problems.shown()[0].to_string();
    assert!(shown.starts_with("2:1: "), "{shown}");
    assert!(shown.contains("there is no group 7"), "{shown}");
    assert_eq!(pipeline.flows().len(), 2);
    assert!(pipeline.groups().get(GroupId(1)).is_some());
}

#[test]
fn ports_have_lines_names_and_states() {
    let text = "actions=output:wan0,output:lan1\nport=2,name=wan0,link=down,no-flood # uplink\n\
        group_id=1,type=ff,bucket=watch_port:wan0,actions=output:wan0\nport=LOCAL,name=br0\n";
    let engine = EngineSpec::parse("linear").unwrap();
    let empty = || Pipeline::new(TableSettings::new(engine.clone()).unwrap());
    let filled = fill(empty(), "f", text, false, Duration::ZERO).unwrap();
    let ports = filled.pipeline.ports();
    let wan0 = ports.get(PortNo(2)).unwrap();
    assert!(!wan0.is_up && wan0.no_flood && !wan0.no_forward && !wan0.no_receive);
    assert_eq!(wan0.name.unwrap().as_str(), "wan0");
    assert!(ports.get(PortNo::LOCAL).unwrap().is_up);
    assert_eq!(ports.get(PortNo(1)), None, "no line describes it");
    assert_eq!(filled.lines.port(PortNo(2)), Some(2));
    assert_eq!(filled.lines.port(PortNo(1)), None);
    let flow = filled.pipeline.flows().iter().next().unwrap();
    assert_eq!(flow.instructions.to_string(), "output:2,output:1");
    assert_eq!(filled.port_numbers["lan1"], 1);
    assert_eq!(
        filled.notes,
        ["1 port is called by name and got a number: lan1 = 1"]
    );
    // A repeated port or name is skipped, and its message names the earlier line.
    let text = "port=1,name=a\nport=1,link=down\nport=3,name=a\nactions=output:a";
    let filled = fill(empty(), "f", text, true, Duration::ZERO).unwrap();
    assert_eq!(filled.skipped.total(), 2);
    let skipped = filled.skipped.to_string();
    assert!(
        skipped.contains("f:2:6: port `1` again, after line 1"),
        "{skipped}"
    );
    assert!(
        skipped.contains("f:3:13: name `a` again, after line 1"),
        "{skipped}"
    );
    assert!(filled.pipeline.ports().get(PortNo(1)).unwrap().is_up);
}
