//! Each match, with packets that it selects and packets that it does not select.

use super::support::{firewall, input};

/// A rule's matches, headers that match, and headers that do not.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const TCP: &str = "src=10.1.2.3 dst=10.9.9.9 proto=tcp";

fn check(cases: &[Case], base: &str) {
    for (matches, selected, others) in cases {
        let text = input(&format!("-A INPUT {matches} -j ACCEPT"));
        let firewall = firewall(&text);
        let action = |header: &&str| {
            let field = |pair: &str| pair.split('=').next().unwrap().to_owned();
            let fields: Vec<String> = header.split(' ').map(field).collect();
            let kept = base
                .split(' ')
                .filter(|pair| !fields.contains(&field(pair)));
            let kept: Vec<&str> = kept.collect();
            firewall
                .action(&format!("{} {header} list=INPUT", kept.join(" ")))
                .to_owned()
        };
        for header in *selected {
            assert_eq!(action(header), "permit", "{matches}: {header}");
        }
        for header in *others {
            assert_eq!(action(header), "deny", "{matches}: {header}");
        }
    }
}

#[test]
fn addresses() {
    let cases: &[Case] = &[
        ("", &["src=10.0.0.1", "src=::1"][..1], &[]),
        ("-s 10.0.0.0/8", &["src=10.255.0.1"], &["src=11.0.0.1"]),
        ("-s 10.0.0.1", &["src=10.0.0.1"], &["src=10.0.0.2"]),
        (
            "--source 10.1.0.0/255.255.0.0",
            &["src=10.1.2.3"],
            &["src=10.2.2.3"],
        ),
        ("! -s 10.0.0.0/8", &["src=11.0.0.1"], &["src=10.255.0.1"]),
        (
            "--dst 10.0.0.0/8,192.0.2.1",
            &["dst=192.0.2.1", "dst=10.1.1.1"],
            &["dst=192.0.2.2"],
        ),
        ("! -d 192.0.2.1/32", &["dst=192.0.2.2"], &["dst=192.0.2.1"]),
        (
            "-s 10.0.7.0/255.0.255.0",
            &["src=10.9.7.1"],
            &["src=10.9.8.1", "src=11.9.7.1"],
        ),
        ("-s 0.0.0.0/0", &["src=1.2.3.4"], &[]),
        (
            "-m iprange --src-range 10.0.0.5-10.0.0.9",
            &["src=10.0.0.5", "src=10.0.0.9"],
            &["src=10.0.0.4", "src=10.0.0.10"],
        ),
        (
            "-m iprange ! --dst-range 10.0.0.5-10.0.0.9 --src-range 10.0.0.1-10.0.0.1",
            &["src=10.0.0.1 dst=10.0.0.4"],
            &["src=10.0.0.1 dst=10.0.0.7", "src=10.0.0.2 dst=10.0.0.4"],
        ),
        (
            "-m iprange --src-range 10.0.0.5",
            &["src=10.0.0.5"],
            &["src=10.0.0.6"],
        ),
        ("-4 -s 10.0.0.1", &["src=10.0.0.1"], &["src=10.0.0.2"]),
        ("-6", &[], &["src=10.0.0.1"]),
    ];
    check(cases, "dport=1");
}

#[test]
fn addresses_of_ipv6() {
    let rules = "-A INPUT -s 2001:db8::/32 ! -d 2001:db8::1 -j ACCEPT\n\
                 -A INPUT -m iprange --src-range ::1-::3 -j REJECT";
    let firewall = firewall(&input(rules));
    for (header, action) in [
        ("src=2001:db8:1::1 dst=2001:db8::2", "permit"),
        ("src=2001:db8:1::1 dst=2001:db8::1", "deny"),
        ("src=2001:db9::1 dst=2001:db8::2", "deny"),
        ("src=::2 dst=::1", "reject"),
        ("src=::4 dst=::1", "deny"),
        ("src=10.0.0.1 dst=10.0.0.1", "none"),
    ] {
        assert_eq!(
            firewall.action(&format!("{header} list=INPUT")),
            action,
            "{header}"
        );
    }
}

#[test]
fn interfaces() {
    let cases: &[Case] = &[
        ("-i eth0", &["in=eth0"], &["in=eth1", "in=eth", "in=eth00"]),
        (
            "-i eth+",
            &["in=eth0", "in=eth", "in=eth0.7"],
            &["in=et", "in=wlan0"],
        ),
        (
            "! -i eth+ -o br0",
            &["in=lo out=br0"],
            &["in=eth1 out=br0", "in=lo out=br1"],
        ),
        ("! -o eth0", &["out=eth1"], &["out=eth0"]),
        ("-i +", &["in=eth0", "in=lo"], &[]),
        ("--in-interface lo", &["in=lo"], &["in=lo0"]),
    ];
    check(cases, "src=10.0.0.1");
}

#[test]
fn protocols() {
    let cases: &[Case] = &[
        (
            "-p tcp",
            &["proto=tcp", "proto=tcp fragment=later"],
            &["proto=udp"],
        ),
        ("! -p tcp", &["proto=udp"], &["proto=tcp"]),
        ("-p all", &["proto=udp"], &[]),
        ("-p 0", &["proto=udp"], &[]),
        ("-p 47", &["proto=gre"], &["proto=esp"]),
        ("-p GRE", &["proto=47"], &["proto=48"]),
        ("-p dccp", &["proto=33"], &["proto=34"]),
        ("-p udplite", &["proto=136"], &["proto=17"]),
        (
            "-f",
            &["fragment=later", "fragment=3"],
            &["fragment=first", "fragment=whole"],
        ),
        (
            "! -f",
            &["fragment=first", "fragment=whole"],
            &["fragment=later"],
        ),
    ];
    check(cases, "src=10.0.0.1");
}

#[test]
fn ports() {
    let cases: &[Case] = &[
        (
            "-p tcp -m tcp --dport 22",
            &["dport=22", "dport=22 fragment=first"],
            &["dport=23"],
        ),
        (
            "-p tcp --dport 22",
            &["dport=22"],
            &["dport=22 fragment=later", "dport=22 proto=udp"],
        ),
        ("-p tcp -m tcp", &["dport=1"], &["fragment=later"]),
        (
            "-p tcp ! --dport 22",
            &["dport=23"],
            &["dport=22", "dport=23 proto=udp"],
        ),
        (
            "-p tcp --dport ssh:25",
            &["dport=24"],
            &["dport=21", "dport=26"],
        ),
        (
            "-p tcp --sport :1023",
            &["sport=0", "sport=1023"],
            &["sport=1024"],
        ),
        (
            "-p tcp --source-port 1024:",
            &["sport=65535"],
            &["sport=1023"],
        ),
        ("-p 6 --destination-port http", &["dport=80"], &["dport=81"]),
    ];
    check(cases, TCP);
}

#[test]
fn lists_of_ports() {
    let cases: &[Case] = &[
        (
            "-p tcp -m multiport --dports 22,80:90,https",
            &["dport=22", "dport=85", "dport=443"],
            &["dport=79", "dport=91", "dport=22 fragment=later"],
        ),
        (
            "-p tcp -m multiport ! --sports 22,80",
            &["sport=23 dport=22"],
            &["sport=80", "sport=22", "proto=udp sport=23"],
        ),
        (
            "-p tcp -m multiport --ports 22,80",
            &["sport=22", "dport=80"],
            &["sport=23 dport=81"],
        ),
        (
            "-p tcp -m multiport ! --ports 22,80",
            &["sport=23 dport=81"],
            &["sport=22", "dport=80"],
        ),
        (
            "-p tcp -m tcp --sport 1 -m multiport --dports 2,4",
            &["sport=1 dport=4"],
            &["sport=1 dport=3", "sport=2 dport=4"],
        ),
    ];
    check(cases, TCP);
    let others: &[Case] = &[
        (
            "-p udp --dport domain",
            &["proto=udp dport=53"],
            &["proto=tcp dport=53"],
        ),
        (
            "-p udplite -m udp --dport 53",
            &["proto=136 dport=53"],
            &["proto=udp dport=53"],
        ),
        (
            "-p sctp --dport 5",
            &["proto=sctp dport=5"],
            &["proto=tcp dport=5"],
        ),
        (
            "-p dccp -m dccp ! --sport 5",
            &["proto=33 sport=6"],
            &["proto=33 sport=5"],
        ),
        (
            "-p sctp -m multiport --dports 5",
            &["proto=sctp dport=5"],
            &["proto=udp dport=5"],
        ),
    ];
    check(others, "src=10.0.0.1");
}

#[test]
fn flags_of_tcp() {
    let cases: &[Case] = &[
        (
            "-p tcp --syn",
            &["tcp_flags=0x02", "tcp_flags=0xe2"],
            &["tcp_flags=0x12"],
        ),
        (
            "-p tcp ! --syn",
            &["tcp_flags=0x12", "tcp_flags=0"],
            &["tcp_flags=0x02"],
        ),
        (
            "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN",
            &["tcp_flags=0x0a"],
            &["tcp_flags=0x03"],
        ),
        (
            "-p tcp -m tcp --tcp-flags ALL NONE",
            &["tcp_flags=0xc0"],
            &["tcp_flags=0x20"],
        ),
        (
            "-p tcp -m tcp ! --tcp-flags SYN,FIN syn,fin",
            &["tcp_flags=1"],
            &["tcp_flags=3"],
        ),
        (
            "-p tcp -m tcp --tcp-flags SYN ACK",
            &[],
            &["tcp_flags=2", "tcp_flags=0x10"],
        ),
        (
            "-p tcp -m tcp ! --tcp-flags SYN ACK",
            &["tcp_flags=2"],
            &["proto=udp"],
        ),
    ];
    check(cases, TCP);
}

#[test]
fn types_of_icmp() {
    let icmp: &[Case] = &[
        (
            "-p icmp -m icmp --icmp-type echo-request",
            &["icmp_type=8", "icmp_type=8 icmp_code=1"],
            &[
                "icmp_type=0",
                "icmp_type=8 fragment=later",
                "icmp_type=8 proto=tcp",
            ],
        ),
        (
            "-p icmp --icmp-type 3/4",
            &["icmp_type=3 icmp_code=4"],
            &["icmp_type=3 icmp_code=3"],
        ),
        (
            "-p icmp ! --icmp-type 3/4",
            &["icmp_type=3 icmp_code=3", "icmp_type=4 icmp_code=4"],
            &["icmp_type=3 icmp_code=4", "proto=tcp"],
        ),
        (
            "-p icmp --icmp-type any",
            &["icmp_type=77"],
            &["fragment=later"],
        ),
        ("-p icmp ! --icmp-type any", &[], &["icmp_type=77"]),
        (
            "-p 1 --icmp-type fragmentation-needed",
            &["icmp_type=3 icmp_code=4"],
            &["icmp_type=3"],
        ),
    ];
    check(icmp, "src=10.0.0.1 proto=icmp");
    let rule = "-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 135 -j ACCEPT\n\
                -A INPUT -p icmpv6 --icmpv6-type bad-header -j REJECT\n";
    let firewall = firewall(&input(rule));
    for (header, action) in [
        ("icmp_type=135", "permit"),
        ("icmp_type=136", "deny"),
        ("icmp_type=4 icmp_code=0", "reject"),
        ("icmp_type=4 icmp_code=1", "deny"),
    ] {
        let header = format!("src=fe80::1 proto=icmpv6 {header} list=INPUT");
        assert_eq!(firewall.action(&header), action, "{header}");
    }
}

#[test]
fn states() {
    let cases: &[Case] = &[
        (
            "-m conntrack --ctstate RELATED,ESTABLISHED",
            &["state=established", "state=related"],
            &["state=new", "state=invalid", "state=untracked"],
        ),
        ("-m state --state NEW", &["state=new"], &["state=related"]),
        (
            "-m state ! --state NEW,INVALID",
            &["state=related", "state=7"],
            &["state=invalid"],
        ),
        (
            "-m conntrack --ctstate new,UNTRACKED",
            &["state=new", "state=untracked", "state=7"],
            &["state=established"],
        ),
    ];
    check(cases, "src=10.0.0.1");
}

#[test]
fn translated_connections_are_a_condition() {
    let rules = "-A INPUT -m conntrack --ctstate NEW,DNAT -j ACCEPT\n\
                 -A INPUT -m conntrack ! --ctstate INVALID,DNAT --ctdir ORIGINAL -j REJECT";
    let firewall = firewall(&input(rules));
    let dnat = firewall.condition("--ctstate DNAT");
    let original = firewall.condition("--ctdir ORIGINAL");
    let action = |state: &str, bits: u128| {
        let header = format!("src=10.0.0.1 state={state} condition={bits} list=INPUT");
        firewall.action(&header).to_owned()
    };
    assert_eq!(action("new", 0), "permit");
    assert_eq!(action("related", dnat), "permit");
    assert_eq!(action("related", original), "reject");
    assert_eq!(action("related", 0), "deny");
    assert_eq!(action("invalid", original), "deny");
    assert_eq!(action("invalid", dnat), "permit");
    assert_eq!(firewall.source_at(6).conditions, ["--ctstate DNAT"]);
}

#[test]
fn conditions_of_packets_are_shared_and_those_of_rules_are_not() {
    let rules = "-A INPUT -m mac --mac-source 02:00:00:00:00:01 -i eth0 -j ACCEPT\n\
                 -A INPUT -m mac --mac-source 02:00:00:00:00:01 -j REJECT\n\
                 -A INPUT -p tcp -m limit --limit 5/min --limit-burst 3 -m tcp --dport 22 -j ACCEPT\n\
                 -A INPUT -p tcp -m limit --limit 5/min --limit-burst 3 --dport 23 -j ACCEPT\n\
                 -A INPUT -m nosuch ! --opt \"a -j b\" ! -s 10.0.0.0/8 -m comment --comment c -j REJECT";
    let firewall = firewall(&input(rules));
    let texts = [
        "-m mac --mac-source 02:00:00:00:00:01",
        "-m limit --limit 5/min --limit-burst 3 (number 1)",
        "-m limit --limit 5/min --limit-burst 3 (number 2)",
        "-m nosuch ! --opt \"a -j b\" (number 1)",
    ];
    assert_eq!(firewall.conditions.texts(), texts);
    let action = |header: &str, bits: u128| {
        let header = format!("{header} condition={bits} list=INPUT");
        firewall.action(&header).to_owned()
    };
    let bits = texts.map(|text| firewall.condition(text));
    assert_eq!(action("src=10.0.0.1 in=eth0", bits[0]), "permit");
    assert_eq!(action("src=10.0.0.1 in=eth0", 0), "deny");
    assert_eq!(action("src=10.0.0.1 in=eth1", bits[0]), "reject");
    let [ssh, telnet] = [22, 23].map(|port| format!("src=10.0.0.1 proto=tcp dport={port}"));
    assert_eq!(action(&ssh, bits[1]), "permit");
    assert_eq!(action(&ssh, bits[2]), "deny");
    assert_eq!(action(&telnet, bits[2]), "permit");
    assert_eq!(action("src=11.0.0.1", bits[3]), "reject");
    assert_eq!(action("src=10.0.0.1", bits[3]), "deny");
    let source = firewall.source_at(10);
    assert_eq!(source.conditions, ["-m nosuch ! --opt \"a -j b\""]);
    assert_eq!(source.comment.as_deref(), Some("c"));
}

#[test]
fn a_match_that_a_target_may_change_is_a_condition_of_its_rule() {
    let rules = "-A INPUT -m mark --mark 0x1 -j ACCEPT\n\
                 -A INPUT -m tos --tos 0x10 -j ACCEPT\n\
                 -A INPUT -s 10.0.0.1 -j MARK --set-xmark 0x1/0xffffffff\n\
                 -A INPUT -m mark --mark 0x1 -j DROP\n\
                 -A INPUT -m tos --tos 0x10 -j REJECT";
    let conditions = firewall(&input(rules)).conditions;
    assert_eq!(
        conditions.texts(),
        [
            "-m mark --mark 0x1 (number 1)",
            "-m tos --tos 0x10",
            "-m mark --mark 0x1 (number 2)"
        ]
    );
}

#[test]
fn partly_modelled_matches_have_conditions() {
    let rules = "-A INPUT -p tcp -m tcp --dport 80 ! --tcp-option 8 -j ACCEPT\n\
                 -A INPUT -p sctp -m sctp --chunk-types any DATA --dport 9 -j ACCEPT\n\
                 -A INPUT -m conntrack --ctexpire 10:20 -j ACCEPT";
    let firewall = firewall(&input(rules));
    let [option, chunks] = ["--tcp-option 8", "--chunk-types any DATA"];
    let [option, chunks] = [option, chunks].map(|text| firewall.condition(text));
    firewall.condition("--ctexpire 10:20 (number 1)");
    let http = "src=10.0.0.1 proto=tcp dport=80 list=INPUT";
    assert_eq!(firewall.action(http), "permit");
    assert_eq!(
        firewall.action(&format!("{http} condition={option}")),
        "deny"
    );
    let sctp = "src=10.0.0.1 proto=sctp dport=9 list=INPUT";
    assert_eq!(firewall.action(sctp), "deny");
    assert_eq!(
        firewall.action(&format!("{sctp} condition={chunks}")),
        "permit"
    );
}
