//! Comparisons of the fields of packets.

use crate::support::{FIRST_LINE, firewall, input};

/// Rules that accept, with headers that they match and headers that they do not match.
const CASES: [(&str, &[&str], &[&str]); 65] = [
    (
        "ip saddr 10.0.0.0/8",
        &["src=10.1.2.3"],
        &["src=11.0.0.0", "src=fd00::1"],
    ),
    (
        "ip saddr != 10.0.0.0/8",
        &["src=11.0.0.0"],
        &["src=10.1.2.3", "src=fd00::1"],
    ),
    (
        "ip daddr 10.0.0.5-10.0.0.9",
        &["dst=10.0.0.5", "dst=10.0.0.9"],
        &["dst=10.0.0.4", "dst=10.0.0.10"],
    ),
    (
        "ip daddr 10.0.0.5 - 10.0.0.9",
        &["dst=10.0.0.7"],
        &["dst=10.0.0.10"],
    ),
    (
        "ip saddr { 10.0.0.1, 10.0.0.4-10.0.0.5, 192.168.0.0/24 }",
        &["src=10.0.0.4", "src=192.168.0.77"],
        &["src=10.0.0.2", "src=192.168.1.0"],
    ),
    (
        "ip saddr != { 10.0.0.1, 10.0.0.3 }",
        &["src=10.0.0.2", "src=9.9.9.9"],
        &["src=10.0.0.3", "src=::1"],
    ),
    (
        "ip saddr >= 10.0.0.2",
        &["src=10.0.0.2", "src=255.255.255.255"],
        &["src=10.0.0.1"],
    ),
    (
        "ip saddr & 255.255.0.255 == 10.1.0.7",
        &["src=10.1.99.7"],
        &["src=10.1.99.8"],
    ),
    (
        "ip saddr & 255.255.0.255 != 10.1.0.7",
        &["src=10.1.99.8"],
        &["src=10.1.99.7", "src=fd00::1"],
    ),
    (
        "ip6 saddr fd00::/8",
        &["src=fd12::1"],
        &["src=fe80::1", "src=10.0.0.1"],
    ),
    (
        "ip6 daddr != { fe80::/10, ::1 }",
        &["dst=2001:db8::1"],
        &["dst=fe80::9", "dst=::1", "dst=1.2.3.4"],
    ),
    (
        "ip6 saddr 2001:db8::1-2001:db8::3",
        &["src=2001:db8::2"],
        &["src=2001:db8::4"],
    ),
    (
        "ip protocol tcp",
        &["src=1.1.1.1 proto=tcp"],
        &["src=1.1.1.1 proto=udp", "src=::1 proto=tcp"],
    ),
    (
        "ip protocol != { tcp, udp }",
        &["src=1.1.1.1 proto=icmp"],
        &["src=1.1.1.1 proto=udp", "src=::1 proto=icmp"],
    ),
    (
        "ip6 nexthdr icmpv6",
        &["src=::1 proto=icmpv6"],
        &["src=1.1.1.1 proto=icmpv6"],
    ),
    (
        "meta l4proto tcp",
        &["src=1.1.1.1 proto=tcp", "src=::1 proto=tcp"],
        &["src=1.1.1.1 proto=udp"],
    ),
    ("meta l4proto 47", &["proto=gre"], &["proto=tcp"]),
    (
        "meta l4proto { ah, esp, ipv6-icmp, 132 }",
        &["proto=50", "proto=51", "proto=58", "proto=132"],
        &["proto=6"],
    ),
    ("meta l4proto != udp", &["proto=tcp"], &["proto=udp"]),
    ("meta nfproto ipv6", &["src=::1"], &["src=1.1.1.1"]),
    (
        "meta nfproto { ipv4, ipv6 }",
        &["src=::1", "src=1.1.1.1"],
        &[],
    ),
    ("meta protocol ip", &["src=1.1.1.1"], &["src=::1"]),
    (
        "meta protocol != { ip, arp }",
        &["src=::1"],
        &["src=1.1.1.1"],
    ),
    ("meta protocol arp", &[], &["src=1.1.1.1", "src=::1"]),
    (
        "tcp dport 22",
        &[
            "proto=tcp dport=22",
            "src=::1 proto=tcp dport=22",
            "proto=tcp dport=22 fragment=first",
        ],
        &[
            "proto=tcp dport=23",
            "proto=udp dport=22",
            "proto=tcp dport=22 fragment=later",
        ],
    ),
    (
        "tcp dport != 22",
        &["proto=tcp dport=23"],
        &[
            "proto=tcp dport=22",
            "proto=udp dport=23",
            "proto=tcp dport=23 fragment=later",
        ],
    ),
    (
        "tcp dport ssh",
        &["proto=tcp dport=22"],
        &["proto=tcp dport=23"],
    ),
    (
        "tcp dport { http, https, 8000-8080 }",
        &["proto=tcp dport=443", "proto=tcp dport=8080"],
        &["proto=tcp dport=8081"],
    ),
    (
        "tcp dport != { 22, 80-90 }",
        &["proto=tcp dport=79"],
        &["proto=tcp dport=85", "proto=udp dport=79"],
    ),
    (
        "tcp sport 1024-65535",
        &["proto=tcp sport=65535"],
        &["proto=tcp sport=1023"],
    ),
    (
        "tcp sport >= 1024",
        &["proto=tcp sport=1024"],
        &["proto=tcp sport=1023"],
    ),
    (
        "tcp sport < 1024",
        &["proto=tcp sport=0"],
        &["proto=tcp sport=1024"],
    ),
    ("tcp sport gt 65535", &[], &["proto=tcp sport=65535"]),
    (
        "udp dport 0x35",
        &["proto=udp dport=53"],
        &["proto=tcp dport=53"],
    ),
    (
        "udplite dport 9",
        &["proto=136 dport=9"],
        &["proto=udp dport=9"],
    ),
    (
        "sctp sport 7",
        &["proto=sctp sport=7"],
        &["proto=tcp sport=7"],
    ),
    (
        "dccp dport 7",
        &["proto=33 dport=7"],
        &["proto=tcp dport=7"],
    ),
    (
        "meta l4proto { tcp, udp } th dport 53",
        &["proto=tcp dport=53", "proto=udp dport=53"],
        &["proto=sctp dport=53", "proto=udp dport=54"],
    ),
    (
        "meta l4proto . th dport { tcp . 22, udp . 53 }",
        &["proto=tcp dport=22", "proto=udp dport=53"],
        &["proto=udp dport=22"],
    ),
    (
        "tcp flags syn",
        &["proto=tcp tcp_flags=0x12"],
        &["proto=tcp tcp_flags=0x10", "proto=udp tcp_flags=0x2"],
    ),
    (
        "tcp flags syn,ack",
        &["proto=tcp tcp_flags=0x10", "proto=tcp tcp_flags=0x2"],
        &["proto=tcp tcp_flags=0x4"],
    ),
    (
        "tcp flags == syn",
        &["proto=tcp tcp_flags=0x2"],
        &["proto=tcp tcp_flags=0x12"],
    ),
    (
        "tcp flags != syn",
        &["proto=tcp tcp_flags=0x12"],
        &["proto=tcp tcp_flags=0x2"],
    ),
    (
        "tcp flags ! syn,rst",
        &["proto=tcp tcp_flags=0x10"],
        &["proto=tcp tcp_flags=0x14"],
    ),
    (
        "tcp flags & (fin | syn | rst | ack) == syn",
        &["proto=tcp tcp_flags=0x2", "proto=tcp tcp_flags=0xa"],
        &["proto=tcp tcp_flags=0x12"],
    ),
    (
        "tcp flags & (fin|syn|rst|ack) != syn",
        &["proto=tcp tcp_flags=0x12"],
        &["proto=tcp tcp_flags=0x82"],
    ),
    (
        "tcp flags & (fin | syn) == (fin | syn)",
        &["proto=tcp tcp_flags=0x3"],
        &["proto=tcp tcp_flags=0x2"],
    ),
    (
        "tcp flags & (syn | ack) == 0",
        &["proto=tcp tcp_flags=0x4"],
        &["proto=tcp tcp_flags=0x10"],
    ),
    (
        "tcp flags syn / syn,ack",
        &["proto=tcp tcp_flags=0x6"],
        &["proto=tcp tcp_flags=0x12"],
    ),
    (
        "tcp flags != syn / syn,ack",
        &["proto=tcp tcp_flags=0x12"],
        &["proto=tcp tcp_flags=0x2"],
    ),
    (
        "tcp flags { syn, syn | ack }",
        &["proto=tcp tcp_flags=0x2", "proto=tcp tcp_flags=0x12"],
        &["proto=tcp tcp_flags=0x10"],
    ),
    (
        "icmp type echo-request",
        &["proto=icmp icmp_type=8"],
        &["proto=icmp icmp_type=0", "src=::1 proto=icmp icmp_type=8"],
    ),
    (
        "icmp type { destination-unreachable, 11 } icmp code 1",
        &["proto=icmp icmp_type=3 icmp_code=1"],
        &["proto=icmp icmp_type=3"],
    ),
    (
        "icmpv6 type nd-neighbor-solicit",
        &["src=::1 proto=icmpv6 icmp_type=135"],
        &["src=1.1.1.1 proto=icmpv6 icmp_type=135"],
    ),
    (
        "icmpv6 code no-route",
        &["src=::1 proto=58 icmp_code=0"],
        &["src=::1 proto=58 icmp_code=1"],
    ),
    (
        "ct state established,related",
        &["state=established", "state=related"],
        &["state=new", "state=invalid"],
    ),
    (
        "ct state { new, untracked }",
        &["state=new", "state=untracked", "state=7"],
        &["state=established"],
    ),
    (
        "ct state != established",
        &["state=new", "state=invalid"],
        &["state=established"],
    ),
    (
        "ct state ! established,new",
        &["state=related", "state=untracked"],
        &["state=new"],
    ),
    (
        "ct state & (established | related) == 0",
        &["state=new"],
        &["state=related"],
    ),
    ("iifname \"eth*\"", &["in=eth0"], &["in=et", "out=eth0"]),
    (
        "iifname { \"eth*\", lo }",
        &["in=eth1", "in=lo"],
        &["in=lo1"],
    ),
    (
        "oifname != \"eth0\"",
        &["out=eth01", "out=lo"],
        &["out=eth0"],
    ),
    (
        "iif lo oif != \"wan\"",
        &["in=lo out=eth0"],
        &["in=lo out=wan", "in=eth0"],
    ),
    (
        "ip saddr . tcp dport { 10.0.0.0/8 . 22, 10.1.0.0-10.1.0.7 . 80-90 }",
        &[
            "src=10.9.9.9 proto=tcp dport=22",
            "src=10.1.0.7 proto=tcp dport=85",
        ],
        &[
            "src=10.9.9.9 proto=tcp dport=80",
            "src=10.1.0.7 proto=udp dport=22",
        ],
    ),
];

/// Returns a header with IPv4 addresses if it has no address, for the list `input`.
fn complete(header: &str) -> String {
    let address = match header.contains("src=") || header.contains("dst=") {
        true => "",
        false => "src=192.0.2.1 ",
    };
    format!("{address}{header} list=input")
}

#[test]
fn comparisons_match_their_packets() {
    for (rule, matching, others) in CASES {
        let firewall = firewall(&input(&format!("{rule} accept")));
        for header in matching {
            let header = complete(header);
            assert_eq!(firewall.action(&header), "permit", "{rule}: {header}");
            assert_eq!(firewall.line(&header), FIRST_LINE, "{rule}: {header}");
        }
        for header in others {
            let header = complete(header);
            assert_eq!(firewall.action(&header), "deny", "{rule}: {header}");
        }
        assert!(firewall.conditions.texts().is_empty(), "{rule}");
    }
}

#[test]
fn fragments_are_compared() {
    let cases = [
        (
            "ip frag-off & 0x1fff != 0",
            "src=1.1.1.1",
            [false, false, true],
        ),
        (
            "ip frag-off & 0x1fff == 0",
            "src=1.1.1.1",
            [true, true, false],
        ),
        (
            "ip frag-off & 0x3fff != 0",
            "src=1.1.1.1",
            [false, true, true],
        ),
        (
            "ip frag-off & 8191 > 0",
            "src=1.1.1.1",
            [false, false, true],
        ),
        ("ip frag-off & 0x1fff != 0", "src=::1", [false; 3]),
        ("exthdr frag exists", "src=::1", [false, true, true]),
        ("exthdr frag missing", "src=::1", [true, false, false]),
        ("exthdr frag exists", "src=1.1.1.1", [false; 3]),
        ("frag frag-off 0", "src=::1", [false, true, false]),
        ("frag frag-off != 0", "src=::1", [false, false, true]),
    ];
    for (rule, address, expected) in cases {
        let firewall = firewall(&input(&format!("{rule} accept")));
        for (fragment, is_matching) in ["whole", "first", "later"].iter().zip(expected) {
            let header = format!("{address} fragment={fragment} list=input");
            let action = if is_matching { "permit" } else { "deny" };
            assert_eq!(firewall.action(&header), action, "{rule}: {header}");
        }
    }
}

#[test]
fn tables_of_one_family_compare_the_protocol_of_icmp_only() {
    let chain = "chain input { type filter hook input priority 0; policy drop;\nRULE accept; }";
    let cases = [
        ("ip", "icmpv6 type 8", "src=1.1.1.1 proto=58 icmp_type=8"),
        ("ip6", "icmp type 8", "src=::1 proto=1 icmp_type=8"),
        ("ip", "icmp type 8", "src=1.1.1.1 proto=1 icmp_type=8"),
    ];
    for (family, rule, header) in cases {
        let text = format!("table {family} t {{ {} }}\n", chain.replace("RULE", rule));
        let action = firewall(&text)
            .action(&format!("{header} list=input"))
            .to_owned();
        assert_eq!(action, "permit", "{family} {rule}");
    }
}

#[test]
fn other_fields_are_conditions() {
    let cases = [
        ("meta mark 0x10", "meta mark 16", "", ""),
        ("mark & 0xff == 1", "meta mark & 255 == 1", "", ""),
        ("ct mark != 3", "ct mark != 3", "", ""),
        (
            "fib saddr . iif oif missing",
            "fib saddr . iif oif missing",
            "",
            "",
        ),
        ("ip ttl < 5", "ip ttl < 5", "", "src=::1"),
        ("ip6 hoplimit 1", "ip6 hoplimit 1", "src=::1", "src=1.1.1.1"),
        ("ip dscp cs1", "ip dscp cs1", "", "src=::1"),
        (
            "ether saddr 00:11:22:33:44:55",
            "ether saddr 00:11:22:33:44:55",
            "",
            "",
        ),
        ("@ih,0,32 1", "@ih,0,32 1", "", ""),
        (
            "ct original ip saddr 10.0.0.1",
            "ct original ip saddr 10.0.0.1",
            "",
            "",
        ),
        ("ct status dnat", "ct status dnat", "", ""),
        ("socket transparent 1", "socket transparent 1", "", ""),
        ("rt classid 1", "rt classid 1", "", ""),
        (
            "tcp option maxseg exists",
            "tcp option maxseg exists",
            "",
            "",
        ),
        (
            "udp length 8-20",
            "udp length 8-20",
            "proto=udp",
            "proto=tcp",
        ),
        ("meta skuid { 0, 1000 }", "meta skuid { 0, 1000 }", "", ""),
        ("iif 3", "meta iif 3", "", ""),
        ("ip frag-off 0x2000", "ip frag-off 8192", "", "src=::1"),
        (
            "ip saddr . mark { 10.0.0.1 . 1 }",
            "ip saddr . meta mark { 10.0.0.1 . 1 }",
            "",
            "src=::1",
        ),
        (
            "tcp dport & 1 == 1",
            "tcp dport & 1 == 1",
            "proto=tcp",
            "proto=udp",
        ),
        (
            "th dport 53",
            "th dport 53",
            "proto=gre",
            "proto=udp dport=54",
        ),
    ];
    for (rule, condition, possible, impossible) in cases {
        let firewall = firewall(&input(&format!("{rule} drop\naccept")));
        assert_eq!(firewall.conditions.texts(), [condition], "{rule}");
        assert_eq!(firewall.config.sources[0].conditions, [condition]);
        let with = |header: &str| complete(&format!("{header} condition=0x1"));
        assert_eq!(firewall.action(&with(possible)), "deny", "{rule}");
        assert_eq!(firewall.action(&complete(possible)), "permit", "{rule}");
        if !impossible.is_empty() {
            assert_eq!(firewall.action(&with(impossible)), "permit", "{rule}");
        }
    }
}
