//! Targets, user chains, policies, tables and counters.

use super::support::{firewall, input};

#[test]
fn targets_have_actions() {
    for (target, action) in [
        ("-j ACCEPT", "permit"),
        ("-j DROP", "deny"),
        ("--jump REJECT", "reject"),
        ("-j REJECT --reject-with icmp-port-unreachable", "reject"),
        ("-j REJECT --reject-with tcp-reset", "reject"),
        (
            "-j DNAT --to-destination 10.0.0.1:80",
            "dnat to 10.0.0.1:80",
        ),
        (
            "-j SNAT --to-source 192.0.2.1 --random",
            "snat to 192.0.2.1 random",
        ),
        ("-j MASQUERADE", "masquerade"),
        (
            "-j MASQUERADE --to-ports 1024-2048",
            "masquerade to :1024-2048",
        ),
        ("-j REDIRECT --to-ports 3128", "redirect to :3128"),
        ("-j NETMAP --to 10.0.0.0/8", "netmap to 10.0.0.0/8"),
        (
            "-j TPROXY --on-port 50080 --on-ip 0.0.0.0",
            "tproxy on-port 50080 on-ip 0.0.0.0",
        ),
        ("-j QUEUE", "queue"),
        ("-j NFQUEUE --queue-num 5", "nfqueue queue-num 5"),
        // These continue with the next rule.
        ("-j LOG --log-prefix \"-j ACCEPT \" --log-level 6", "reject"),
        ("-j LOG --log-prefix -j --log-level 6", "reject"),
        ("-j NFLOG --nflog-group 2", "reject"),
        ("-j MARK --set-xmark 0x1/0xff", "reject"),
        ("-j CONNMARK --save-mark --nfmask 0xffffffff", "reject"),
        ("-j CT --notrack", "reject"),
        ("-j SET --add-set blocked src", "reject"),
        ("-j TCPMSS --clamp-mss-to-pmtu", "reject"),
        ("", "reject"),
    ] {
        let rules = format!("-A INPUT -p tcp {target}\n-A INPUT -j REJECT");
        let firewall = firewall(&input(&rules));
        let header = "src=10.0.0.1 proto=tcp list=INPUT";
        assert_eq!(firewall.action(header), action, "{target}");
    }
}

#[test]
fn synproxy_takes_the_packets_that_open_connections() {
    let rules = "-A INPUT -p tcp -m tcp --dport 80 -j SYNPROXY --sack-perm --mss 1460\n\
                 -A INPUT -j REJECT";
    let firewall = firewall(&input(rules));
    for (flags, action) in [
        (0x02, "synproxy sack-perm mss 1460"),
        (0x10, "synproxy sack-perm mss 1460"),
        (0x18, "synproxy sack-perm mss 1460"),
        (0x12, "reject"),
        (0x14, "reject"),
        (0x00, "reject"),
    ] {
        let header = format!("src=10.0.0.1 proto=tcp dport=80 tcp_flags={flags} list=INPUT");
        assert_eq!(firewall.action(&header), action, "{flags:#x}");
    }
}

#[test]
fn jumps_and_gotos_return_to_the_right_chain() {
    let rules = "-A INPUT -s 10.0.0.1 -j A\n\
                 -A INPUT -s 10.0.0.2 -g A\n\
                 -A INPUT -s 10.0.0.3 -j B\n\
                 -A INPUT -d 10.0.0.9 -j RETURN\n\
                 -A INPUT -j REJECT\n\
                 -A A -p udp -j ACCEPT\n\
                 -A A -p tcp -j RETURN\n\
                 -A A -p icmp -g C\n\
                 -A A -p gre -j ACCEPT\n\
                 -A B -j A\n\
                 -A B -p tcp -j ACCEPT\n\
                 -A B -p icmp -j ACCEPT\n\
                 -A C -d 10.0.0.8 -j ACCEPT";
    let firewall = firewall(&input(rules));
    for (header, action, line) in [
        ("src=10.0.0.1 proto=udp", "permit", 11),
        ("src=10.0.0.1 proto=tcp", "reject", 10),
        ("src=10.0.0.1 proto=icmp dst=10.0.0.8", "permit", 18),
        ("src=10.0.0.1 proto=icmp", "reject", 10),
        ("src=10.0.0.1 proto=gre", "permit", 14),
        // After a goto from a built-in chain, its policy decides.
        ("src=10.0.0.2 proto=tcp", "deny", 7),
        ("src=10.0.0.2 proto=udp", "permit", 11),
        ("src=10.0.0.2 proto=icmp", "deny", 7),
        // After a goto from A, B continues.
        ("src=10.0.0.3 proto=tcp", "permit", 16),
        ("src=10.0.0.3 proto=icmp", "permit", 17),
        ("src=10.0.0.3 proto=esp", "reject", 10),
        ("src=10.0.0.4 dst=10.0.0.9", "deny", 9),
        ("src=10.0.0.4", "reject", 10),
    ] {
        let header = format!("{header} list=INPUT");
        let (decided, source) = firewall.decision(&header).unwrap();
        assert_eq!((decided, source.line), (action, line), "{header}");
    }
    assert_eq!(firewall.source_at(11).list, "A");
    assert!(firewall.config.notes.is_empty());
}

#[test]
fn a_chain_that_no_rule_reaches_is_noted() {
    let rules = "-A INPUT -j A\n-A B -j C\n-A C -j REJECT";
    let notes = firewall(&input(rules)).config.notes;
    assert_eq!(notes, ["no rule reaches 2 chains: `B`, `C`"]);
}

#[test]
fn tables_are_lists() {
    let text = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -j NOTRACK\nCOMMIT\n\
                *nat\n:PREROUTING ACCEPT [1:2]\n:OUTPUT DROP\n:dnat - [0:0]\n\
                -A PREROUTING -j dnat\n-A dnat -p tcp -j DNAT --to-destination 10.0.0.1\nCOMMIT\n\
                *mangle\n:POSTROUTING DROP [0:0]\nCOMMIT\n\
                *security\n:FORWARD ACCEPT [0:0]\nCOMMIT\n\
                *filter\n:INPUT DROP [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n";
    let firewall = firewall(text);
    for (list, action) in [
        ("raw/PREROUTING", "permit"),
        ("nat/PREROUTING", "dnat to 10.0.0.1"),
        ("nat/OUTPUT", "deny"),
        ("security/FORWARD", "permit"),
        ("INPUT", "deny"),
        ("OUTPUT", "permit"),
        ("dnat", "none"),
    ] {
        let header = format!("src=10.0.0.1 proto=tcp list={list}");
        assert_eq!(firewall.action(&header), action, "{list}");
    }
    // A name of more than 16 bytes has a short form.
    let rules = firewall
        .config
        .policy
        .part(classyard::policy::PartId::FIRST);
    assert_eq!(rules.len(), 8);
    assert_eq!(firewall.source_at(10).list, "nat/dnat");
}

#[test]
fn counters_comments_and_positions_are_kept() {
    let text = "# Generated by iptables-save v1.8.9 on Mon Nov 30 05:53:38 2026\n\
                *filter\n\
                :INPUT DROP [7:700]\n\
                [12:340] -A INPUT -i lo -m comment --comment \"loop \\\"back\\\"\" -j ACCEPT\n\
                \x20 -A INPUT -p tcp -m comment --comment web -m comment --comment here -j ACCEPT\n\
                -A INPUT -p udp -c 5 600 -j ACCEPT\n\
                COMMIT\n\
                # Completed on Mon Nov 30 05:53:38 2026\n";
    let firewall = firewall(text);
    let source = firewall.source_at(4);
    assert_eq!((source.column, source.hits), (10, Some(12)));
    assert_eq!(source.comment.as_deref(), Some("loop \"back\""));
    assert!(source.text.starts_with("-A INPUT -i lo") && source.list == "INPUT");
    let source = firewall.source_at(5);
    assert_eq!((source.column, source.hits), (3, None));
    assert_eq!(source.comment.as_deref(), Some("web here"));
    assert_eq!(firewall.source_at(6).hits, Some(5));
    let policy = firewall.source_at(3);
    assert_eq!((policy.hits, policy.is_implied), (Some(7), false));
    assert_eq!(policy.text, ":INPUT DROP [7:700]");
    assert!(
        firewall
            .config
            .sources
            .iter()
            .all(|source| !source.is_implied)
    );
}

#[test]
fn the_ip_version_is_stated_or_seen() {
    let table = |rule: &str| format!("*filter\n:INPUT ACCEPT [0:0]\n{rule}\nCOMMIT\n");
    let any = table("-A INPUT -p tcp -j DROP");
    let v6 = table("-A INPUT -s 2001:db8::/32 -j DROP");
    let comment = |program: &str| format!("# Generated by {program} v1.8.7 on Mon\n");
    let (v4_header, v6_header) = ("src=10.0.0.1 list=INPUT", "src=::1 list=INPUT");
    for (text, has_v4, has_v6) in [
        (any.clone(), true, false),
        (v6.clone(), false, true),
        (table("-A INPUT -p ipv6-icmp -j DROP"), false, true),
        (
            table("-A INPUT -d 10.0.0.1 -p ipv6-icmp -j DROP"),
            true,
            false,
        ),
        (comment("iptables-save") + &any, true, false),
        (comment("ip6tables-save") + &any, false, true),
        (
            comment("iptables-save") + &any + &comment("ip6tables-save") + &any,
            true,
            true,
        ),
        (
            comment("xtables-save") + &any + &comment("xtables-save") + &v6,
            true,
            true,
        ),
        (any.clone() + &v6, true, true),
        // A table without addresses is of the version of its neighbours.
        (
            any.replace("filter", "nat").replace("INPUT", "OUTPUT") + &v6,
            false,
            true,
        ),
    ] {
        let firewall = firewall(&text);
        assert_eq!(firewall.action(v4_header) != "none", has_v4, "{text}");
        assert_eq!(firewall.action(v6_header) != "none", has_v6, "{text}");
    }
}

#[test]
fn comments_about_missing_tables_are_noted() {
    let text = "# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n\
                # Table `mangle' is incompatible, use 'nft' tool.\n\
                *filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n";
    assert_eq!(firewall(text).config.notes.len(), 2);
}

#[test]
fn a_command_makes_a_chain() {
    let text = "*filter\n:INPUT DROP [0:0]\n-N WEB\n-A WEB -s 10.0.0.0/8 -j ACCEPT\n\
                -A INPUT -j WEB\nCOMMIT\n";
    let firewall = firewall(text);
    let header = "src=10.1.1.1 dst=1.2.3.4 list=INPUT";
    assert_eq!(firewall.action(header), "permit");
    let header = "src=11.1.1.1 dst=1.2.3.4 list=INPUT";
    assert_eq!(firewall.action(header), "deny");
}
