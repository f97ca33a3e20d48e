//! Firewall filters.

use super::helper::{check_conditions, load, load_conditions};

const EDGE: &str = r#"system { host-name edge1; }
interfaces {
    ge-0/0/0 { unit 0 { family inet { filter { input protect-re; } address 192.0.2.1/24; } } }
    lo0 { unit 0 { family inet { filter { input-list [ protect-re missing ]; } } } }
}
policy-options {
    prefix-list managers {
        198.51.100.0/24;
        203.0.113.7/32;
    }
    prefix-list own { apply-path "interfaces <*> unit <*> family inet address <*>"; }
}
firewall {
    policer slow { if-exceeding { bandwidth-limit 1m; burst-size-limit 15k; } then discard; }
    family inet {
        filter protect-re {
            interface-specific;
            /* only managers */
            term ssh {
                from {
                    source-prefix-list {
                        managers;
                    }
                    protocol tcp;
                    destination-port [ ssh 830 ];
                }
                then {
                    count ssh;
                    accept;
                }
            }
            term icmp {
                from { protocol icmp; }
                then policer slow;
            }
            term watch {
                from { protocol udp; }
                then { count udp; next term; }
            }
            term dns {
                from { protocol udp; source-port 53; destination-prefix-list own; }
                then { log; syslog; }
            }
            term vrf {
                from { destination-address 10.9.0.0/16; }
                then { routing-instance BLUE; }
            }
            term telnet { from { protocol tcp; port telnet; } then { reject tcp-reset; } }
            term last { then { discard; } }
        }
        filter open {
            term everything;
        }
    }
    family inet6 {
        filter protect-re {
            term icmp6 { from { next-header icmp6; icmp-type [ 135-136 echo-request ]; } then accept; }
        }
    }
}
"#;

#[test]
fn terms_decide_in_order() {
    let loaded = load(EDGE);
    loaded.check(
        "list=protect-re",
        "permit 19 src=198.51.100.9 dst=192.0.2.1 proto=tcp dport=22
         permit 19 src=203.0.113.7 dst=192.0.2.1 proto=tcp dport=830
         deny 49 src=203.0.113.8 dst=192.0.2.1 proto=tcp dport=22
         deny 49 src=198.51.100.9 dst=192.0.2.1 proto=tcp dport=80
         permit 32 src=203.0.113.8 dst=192.0.2.1 proto=icmp
         permit 40 src=203.0.113.8 dst=192.0.2.77 proto=udp sport=53
         deny 49 src=203.0.113.8 dst=192.0.3.77 proto=udp sport=53
         deny 49 src=203.0.113.8 dst=192.0.2.77 proto=udp sport=54
         routing-instance_BLUE 44 src=203.0.113.8 dst=10.9.3.3 proto=udp
         reject 48 src=203.0.113.8 dst=192.0.2.1 proto=tcp dport=23
         reject 48 src=203.0.113.8 dst=192.0.2.1 proto=tcp sport=23
         permit 57 src=2001:db8::1 dst=2001:db8::2 proto=icmpv6 icmp_type=135
         permit 57 src=2001:db8::1 dst=2001:db8::2 proto=icmpv6 icmp_type=128
         deny 0 src=2001:db8::1 dst=2001:db8::2 proto=icmpv6 icmp_type=134
         deny 0 src=2001:db8::1 dst=2001:db8::2 proto=tcp",
    );
    loaded.check("list=open", "permit 52 src=1.1.1.1 dst=2.2.2.2 proto=9");
}

#[test]
fn statements_have_positions_texts_and_comments() {
    let loaded = load(EDGE);
    let ssh = loaded.statement(19);
    assert_eq!((ssh.column, ssh.list.as_str()), (13, "protect-re"));
    assert_eq!(ssh.comment.as_deref(), Some("only managers"));
    assert_eq!(
        ssh.text,
        "term ssh { from { source-prefix-list managers; protocol tcp; \
         destination-port [ ssh 830 ]; } then { count ssh; accept; } }"
    );
    let implied = loaded
        .config
        .sources
        .iter()
        .filter(|source| source.is_implied);
    let implied: Vec<_> = implied
        .map(|source| (source.line, source.text.as_str()))
        .collect();
    let text = "term implicit-rule then discard";
    assert_eq!(implied, [(16, text), (51, text), (56, text)]);
    assert_eq!(
        loaded.config.notes,
        [
            "policers may drop packets of terms that accept them; rates are not modelled",
            "1 filter is not bound to an interface: `open`",
            "1 filter is bound to an interface, but not in the file: `missing`",
        ]
    );
}

#[test]
fn the_longest_prefix_decides() {
    check_conditions(
        "source-address { 10.0.0.0/8; 10.1.0.0/16 except; 10.1.2.0/24; 10.1.2.3/32 except; }",
        "yes src=10.0.0.1 dst=1.1.1.1
         no src=10.1.0.1 dst=1.1.1.1
         yes src=10.1.2.4 dst=1.1.1.1
         no src=10.1.2.3 dst=1.1.1.1
         no src=11.0.0.1 dst=10.0.0.1",
    );
    check_conditions(
        "source-address { 0.0.0.0/0; } source-prefix-list { mixed except; }",
        "yes src=10.0.0.1 dst=1.1.1.1
         no src=10.1.0.1 dst=1.1.1.1",
    );
    check_conditions(
        "destination-address { 1.2.3.4/255.0.255.0; 10/8; }",
        "yes src=1.1.1.1 dst=1.99.3.99
         no src=1.1.1.1 dst=1.99.4.99
         yes src=1.1.1.1 dst=10.0.0.0",
    );
    let loaded = load_conditions("source-prefix-list { mixed except; }");
    loaded.check("list=f", "deny 0 src=1.1.1.1 dst=2.2.2.2");
    assert!(
        loaded.config.notes[0].contains("matches no packet"),
        "{:?}",
        loaded.config.notes
    );
}

#[test]
fn prefixes_of_ipv6_are_as_exact() {
    let loaded = load(
        "set firewall family inet6 filter f term a from source-address ::/0
         set firewall family inet6 filter f term a from source-address 2001:db8::/32 except
         set firewall family inet6 filter f term a from source-address 2001:db8:1::/48
         set firewall family inet6 filter f term a from source-address 2001:db8:1::1/128 except
         set firewall family inet6 filter f term a from source-address ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff except
         set firewall family inet6 filter f term b from destination-address 2001:db8::1
         set firewall family inet6 filter f term b then reject",
    );
    loaded.check(
        "list=f",
        "permit 1 src=::1 dst=::2
         deny 0 src=2001:db8:: dst=::2
         permit 1 src=2001:db8:1:: dst=::2
         reject 6 src=2001:db8:1::1 dst=2001:db8::1
         deny 0 src=2001:db8:1::1 dst=2001:db8::2
         permit 1 src=2001:db8:1::2 dst=::2
         deny 0 src=2001:db8:ffff:ffff:ffff:ffff:ffff:ffff dst=::2
         permit 1 src=2001:db9:: dst=::2
         deny 0 src=ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff dst=::2
         permit 1 src=ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe dst=::2",
    );
}

#[test]
fn an_exception_of_either_address_needs_both() {
    check_conditions(
        "address { 10.0.0.0/8; 10.1.0.0/16 except; }",
        "yes src=10.0.0.1 dst=1.1.1.1
         yes src=1.1.1.1 dst=10.0.0.1
         yes src=10.1.0.1 dst=10.0.0.1
         no src=10.1.0.1 dst=10.1.0.2
         no src=1.1.1.1 dst=10.1.0.2",
    );
    check_conditions(
        "prefix-list mixed;",
        "yes src=1.1.1.1 dst=10.1.0.1\nno src=1.1.1.1 dst=10.2.0.1",
    );
}

#[test]
fn ports_do_not_test_the_protocol() {
    check_conditions(
        "destination-port [ http 8000-8100 ];",
        "yes src=1.1.1.1 dst=2.2.2.2 proto=tcp dport=80
         yes src=1.1.1.1 dst=2.2.2.2 proto=gre dport=80
         yes src=1.1.1.1 dst=2.2.2.2 proto=udp dport=8100 fragment=later
         no src=1.1.1.1 dst=2.2.2.2 proto=tcp dport=8101",
    );
    check_conditions(
        "port-except [ 20-30 ]; source-port-except 40;",
        "yes src=1.1.1.1 dst=2.2.2.2 sport=1 dport=2
         no src=1.1.1.1 dst=2.2.2.2 sport=20 dport=2
         no src=1.1.1.1 dst=2.2.2.2 sport=2 dport=30
         no src=1.1.1.1 dst=2.2.2.2 sport=40 dport=2
         yes src=1.1.1.1 dst=2.2.2.2 sport=2 dport=40",
    );
    check_conditions(
        "port 0100; destination-port-except 7;",
        "yes src=1.1.1.1 dst=2.2.2.2 sport=100 dport=2
         yes src=1.1.1.1 dst=2.2.2.2 sport=1 dport=100
         no src=1.1.1.1 dst=2.2.2.2 sport=100 dport=7",
    );
}

#[test]
fn protocols_and_icmp() {
    check_conditions(
        "protocol [ tcp 17 ospf ];",
        "yes src=1.1.1.1 dst=2.2.2.2 proto=6
         yes src=1.1.1.1 dst=2.2.2.2 proto=17
         yes src=1.1.1.1 dst=2.2.2.2 proto=89
         no src=1.1.1.1 dst=2.2.2.2 proto=1",
    );
    check_conditions(
        "protocol-except [ tcp hop-by-hop ]; icmp-type-except [ 0-7 9-255 ]; icmp-code 3;",
        "yes src=1.1.1.1 dst=2.2.2.2 proto=1 icmp_type=8 icmp_code=3
         no src=1.1.1.1 dst=2.2.2.2 proto=6 icmp_type=8 icmp_code=3
         no src=1.1.1.1 dst=2.2.2.2 proto=0 icmp_type=8 icmp_code=3
         no src=1.1.1.1 dst=2.2.2.2 proto=1 icmp_type=9 icmp_code=3
         no src=1.1.1.1 dst=2.2.2.2 proto=1 icmp_type=8 icmp_code=4",
    );
    check_conditions(
        "icmp-type unreachable; icmp-code port-unreachable;",
        "yes src=1.1.1.1 dst=2.2.2.2 icmp_type=3 icmp_code=3
         no src=1.1.1.1 dst=2.2.2.2 icmp_type=3 icmp_code=1",
    );
}

#[test]
fn tcp_flags_and_fragments() {
    let header = "src=1.1.1.1 dst=2.2.2.2";
    for (conditions, field, selected) in [
        ("tcp-flags \"syn & !ack\";", "tcp_flags", &[2, 6, 0x22][..]),
        ("tcp-initial;", "tcp_flags", &[2, 6, 0x22]),
        ("tcp-established;", "tcp_flags", &[4, 6, 0x10, 0x12, 0x14]),
        (
            "tcp-flags \"(ack | rst)\";",
            "tcp_flags",
            &[4, 6, 0x10, 0x12, 0x14],
        ),
        ("tcp-flags syn;", "tcp_flags", &[2, 6, 0x12, 0x22]),
        ("first-fragment;", "fragment", &[1]),
        ("is-fragment;", "fragment", &[2]),
        ("fragment-offset 0;", "fragment", &[0, 1]),
        ("fragment-offset 1-8191;", "fragment", &[2]),
        ("fragment-offset-except 0;", "fragment", &[2]),
        ("fragment-offset-except 1-8191;", "fragment", &[0, 1]),
    ] {
        let loaded = load_conditions(conditions);
        let values: &[u8] = if field == "fragment" {
            &[0, 1, 2]
        } else {
            &[0, 2, 4, 6, 0x10, 0x12, 0x14, 0x22]
        };
        for value in values {
            let (action, _) = loaded.decide(&format!("list=f {header} {field}={value}"));
            assert_eq!(
                action == "permit",
                selected.contains(value),
                "{conditions} {value}"
            );
        }
    }
}

#[test]
fn other_conditions_are_bits() {
    let loaded =
        load_conditions("ttl [ 7 3-4 ]; dscp-except ef; protocol tcp; fragment-offset [ 0 5 ];");
    assert_eq!(
        loaded.conditions.texts(),
        ["ttl 3-4 7", "dscp-except ef", "fragment-offset 5"]
    );
    let statement = loaded
        .config
        .sources
        .iter()
        .find(|source| !source.is_implied)
        .unwrap();
    assert_eq!(
        statement.conditions,
        ["ttl 3-4 7", "dscp-except ef", "fragment-offset 5"]
    );
    loaded.check(
        "list=f src=1.1.1.1 dst=2.2.2.2 proto=6",
        "deny 0 condition=0
         permit 5 condition=3
         deny 0 condition=1 fragment=first
         permit 5 condition=3 fragment=first
         deny 0 condition=3 fragment=later
         permit 5 condition=7 fragment=later",
    );
    let loaded = load(
        "firewall { family inet6 { filter f {\n\
         term t { from { next-header [ fragment tcp ]; } then accept; }\n\
         term u { from { payload-protocol udp; } then accept; }\n\
         term v { from { next-header-except [ gre ]; } then discard; } } } }\nsystem {\n}\n",
    );
    assert_eq!(loaded.conditions.texts(), ["next-header 44"]);
    loaded.check(
        "list=f src=::1 dst=::2",
        "permit 2 proto=6
         permit 2 proto=58 condition=1
         permit 3 proto=17
         deny 4 proto=58
         deny 0 proto=47",
    );
}

#[test]
fn interfaces_are_names() {
    check_conditions(
        "interface [ ge-0/0/0.0 xe-1/* ];",
        "yes src=1.1.1.1 dst=2.2.2.2 in=ge-0/0/0.0
         yes src=1.1.1.1 dst=2.2.2.2 in=xe-1/0/3.7
         no src=1.1.1.1 dst=2.2.2.2 in=ge-0/0/0.1
         no src=1.1.1.1 dst=2.2.2.2 in=xe-2/0/3.7",
    );
}

#[test]
fn actions_end_terms_or_not() {
    for (then, action) in [
        ("", "permit"),
        ("then accept;", "permit"),
        ("then { discard; }", "deny"),
        ("then { log; discard; }", "deny"),
        ("then { reject; }", "reject"),
        (
            "then { reject administratively-prohibited; count x; }",
            "reject",
        ),
        ("then count x;", "permit"),
        (
            "then { forwarding-class ef; loss-priority high; }",
            "permit",
        ),
        ("then { policer p; }", "permit"),
        ("then { three-color-policer { two-rate p; } }", "permit"),
        ("then { sample; port-mirror; }", "permit"),
        ("then { next term; }", "deny"),
        ("then { next term; count x; }", "deny"),
        ("then { next-ip 10.1.1.1/32; }", "next-ip 10.1.1.1/32"),
        (
            "then { accept; next-ip 10.1.1.1/32; }",
            "next-ip 10.1.1.1/32",
        ),
        (
            "then { routing-instance X; count y; accept; }",
            "routing-instance X",
        ),
        ("then { decapsulate gre; }", "decapsulate gre"),
    ] {
        let text = format!(
            "firewall {{\nfilter f {{ term a {{ {then} }} term b {{ then discard; }} }} }}\nsystem {{\n}}"
        );
        let loaded = load(&text);
        let (decision, source) = loaded.decide("list=f src=1.1.1.1 dst=2.2.2.2");
        assert_eq!(decision, action, "{then}");
        assert_eq!(
            source.text.starts_with("term b"),
            then.contains("next term"),
            "{then}"
        );
    }
}
