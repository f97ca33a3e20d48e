//! Statements of rules.

use crate::support::{FIRST_LINE, firewall, input};

const HEADER: &str = "src=192.0.2.1 dst=198.51.100.1 proto=tcp dport=80 list=input";

#[test]
fn statements_decide_or_continue() {
    let cases = [
        ("accept", "permit"),
        ("drop", "deny"),
        ("reject", "reject"),
        ("reject with tcp reset", "reject"),
        ("reject with icmp type host-unreachable", "reject"),
        ("reject with icmpx admin-prohibited", "reject"),
        ("queue", "queue"),
        ("queue num 1-3 bypass", "queue flags bypass to 1-3"),
        (
            "queue flags bypass,fanout to 1-3",
            "queue flags bypass,fanout to 1-3",
        ),
        ("dnat ip to 10.0.0.1:8080", "dnat to 10.0.0.1:8080"),
        (
            "dnat ip to 10.0.0.1-10.0.0.4:80-90 random,persistent",
            "dnat to 10.0.0.1-10.0.0.4:80-90 random,persistent",
        ),
        ("snat ip to 192.0.2.7", "snat to 192.0.2.7"),
        ("masquerade", "masquerade"),
        (
            "masquerade to :1024-65535 fully-random",
            "masquerade to :1024-65535 fully-random",
        ),
        ("redirect to :8080", "redirect to :8080"),
        ("redirect to 8080 comment plain", "redirect to :8080"),
        (
            "dnat ip to tcp dport map { 80 : 10.0.0.1, 443 : 10.0.0.2 }",
            "dnat to tcp dport map { 80 : 10.0.0.1, 443 : 10.0.0.2 }",
        ),
        (
            "dnat ip addr . port to ip daddr map { 198.51.100.1 : 10.0.0.1 . 80 }",
            "dnat to ip daddr map { 198.51.100.1 : 10.0.0.1 . 80 }",
        ),
    ];
    for (statement, action) in cases {
        let firewall = firewall(&input(&format!("counter {statement}\naccept")));
        assert_eq!(firewall.action(HEADER), action, "{statement}");
        assert_eq!(firewall.line(HEADER), FIRST_LINE, "{statement}");
    }
    let passing = [
        "log",
        "log prefix \"in: \" level info flags tcp sequence,options flags ip options",
        "counter",
        "counter packets 5 bytes 100",
        "counter name \"web\"",
        "notrack",
        "meta mark set 0x1",
        "meta mark set ct mark and 0xff or 0x10",
        "ct mark set meta mark",
        "ct helper set \"ftp\"",
        "meta priority set 1:2",
        "meta nftrace set 1",
        "tcp option maxseg size set rt mtu",
        "ip dscp set cs1",
        "add @seen { ip saddr timeout 1m }",
        "update @seen { ip saddr counter }",
        "delete @seen { ip saddr }",
        "set add ip saddr @seen",
        "continue",
    ];
    for statement in passing {
        let text = input(statement).replace("chain a", "set seen { type ipv4_addr; }\nchain a");
        let firewall = firewall(&text);
        assert_eq!(firewall.action(HEADER), "deny", "{statement}");
        assert_eq!(firewall.line(HEADER), 5 + 1, "{statement}");
    }
}

#[test]
fn statements_imply_fields() {
    let cases = [
        (
            "reject with tcp reset",
            "src=192.0.2.1 proto=udp list=input",
        ),
        ("reject with icmp host-unreachable", "src=::1 list=input"),
        ("reject with icmpv6 no-route", "src=192.0.2.1 list=input"),
        ("dnat ip to 10.0.0.1", "src=::1 list=input"),
        ("dnat ip6 to [2001:db8::1]:80", "src=192.0.2.1 list=input"),
        (
            "dnat to tcp dport map { 80 : 10.0.0.1 }",
            "src=192.0.2.1 proto=tcp dport=81 list=input",
        ),
        (
            "meta mark set tcp dport map { 80 : 1 } drop",
            "src=192.0.2.1 proto=tcp dport=81 list=input",
        ),
        ("ip dscp set cs1 drop", "src=::1 list=input"),
        ("add @seen { ip saddr } drop", "src=::1 list=input"),
    ];
    for (statement, header) in cases {
        let text = input(&format!("{statement}\naccept"));
        let firewall = firewall(&text.replace("chain a", "set seen { type ipv4_addr; }\nchain a"));
        assert_eq!(firewall.action(header), "permit", "{statement}");
    }
}

#[test]
fn limits_are_conditions_of_each_rule() {
    let cases = [
        (
            "limit rate 10/second",
            "limit rate 10/second burst 5 packets",
        ),
        (
            "limit rate over 3/minute burst 7 packets",
            "limit rate over 3/minute burst 7 packets",
        ),
        (
            "limit rate 10 mbytes/second burst 5 kbytes",
            "limit rate 10 mbytes/second burst 5 kbytes",
        ),
        ("limit name \"slow\"", "limit name slow"),
        ("quota over 10 mbytes used 3 bytes", "quota over 10 mbytes"),
        ("ct count over 20", "ct count over 20"),
        (
            "meter m size 10 { ip saddr limit rate 3/second }",
            "meter m { ip saddr limit rate 3/second burst 5 packets }",
        ),
        (
            "add @seen { ip saddr limit rate 3/minute }",
            "add @seen { ip saddr limit rate 3/minute burst 5 packets }",
        ),
        ("numgen random mod 2 0", "numgen random mod 2 0"),
        ("meta hour \"08:00\"-\"17:00\"", "meta hour 08:00-17:00"),
        ("tproxy to 127.0.0.1:50080", "tproxy to 127.0.0.1:50080"),
    ];
    for (statement, condition) in cases {
        let text = input(&format!("{statement} accept\n{statement} accept"));
        let firewall = firewall(&text);
        let names = [1, 2].map(|number| format!("{condition} (number {number})"));
        assert_eq!(firewall.conditions.texts(), names, "{statement}");
        let second = firewall.condition(&names[1]);
        assert_eq!(firewall.action(HEADER), "deny", "{statement}");
        let header = format!("{HEADER} condition={second:#x}");
        assert_eq!(firewall.line(&header), FIRST_LINE + 1, "{statement}");
    }
}

#[test]
fn sets_that_change_are_conditions() {
    let sets = "set seen { type ipv4_addr; flags dynamic; elements = { 10.0.0.1 } }\n\
                set slow { type ipv4_addr; timeout 1h; }\nset plain { type ipv4_addr; }\n";
    let rules = "ip saddr @seen drop\nip saddr @slow drop\nip saddr != @plain drop\n\
                 add @plain { ip saddr }";
    let text = input(rules).replace("chain a", &format!("{sets}chain a"));
    let firewall = firewall(&text);
    let texts = ["ip saddr @seen", "ip saddr @slow", "ip saddr != @plain"];
    assert_eq!(firewall.conditions.texts(), texts);
}

#[test]
fn comments_and_counters_are_kept() {
    let rules = "tcp dport 22 counter packets 12 bytes 900 accept comment \"ssh; from # all\"\n\
                 counter packets 7 bytes 9 tcp dport 23 accept\n\
                 tcp dport 24 counter packets 3 bytes 4 limit rate 1/second accept\n\
                 counter packets 5 bytes 6 # a comment\n";
    let firewall = firewall(&input(rules));
    let sources = &firewall.config.sources;
    let hits: Vec<_> = sources.iter().map(|source| source.hits).collect();
    // A counter before a comparison counts packets that the rule does not match.
    assert_eq!(hits, [Some(12), None, None, Some(5), None]);
    assert_eq!(sources[0].comment.as_deref(), Some("ssh; from # all"));
    assert_eq!(sources[1].comment, None);
    assert_eq!(
        sources[0].text,
        "tcp dport 22 counter packets 12 bytes 900 accept comment \"ssh; from # all\""
    );
    let places: Vec<_> = sources
        .iter()
        .map(|source| (source.line, source.column))
        .collect();
    assert_eq!(places, [(6, 1), (7, 1), (8, 1), (9, 1), (5, 36)]);
    assert_eq!(sources[3].text, "counter packets 5 bytes 6");
    assert!(
        sources
            .iter()
            .all(|source| source.list == "input" && !source.is_implied)
    );
}
