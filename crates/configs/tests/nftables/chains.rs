//! Chains, jumps, verdict maps, sets and the names of lists.

use crate::support::{FIRST_LINE, firewall, input, problems};

#[test]
fn jumps_return_and_gotos_do_not() {
    let text = "\
table ip filter {
    chain first {
        tcp dport 1 accept
        tcp dport 2 return
        tcp dport 3 goto second
        tcp dport 4 jump second
        tcp dport 5 drop
    }
    chain second {
        tcp sport 9 accept
    }
    chain input {
        type filter hook input priority filter; policy drop;
        tcp sport 7 jump first
        tcp sport 8 goto first
        tcp sport 9 jump first
        tcp sport 9 tcp dport 6 reject
        tcp sport 7 reject
    }
}
";
    let firewall = firewall(text);
    let cases = [
        (7, 1, "permit", 3),
        (7, 2, "reject", 18),
        (7, 3, "reject", 18),
        (7, 4, "reject", 18),
        (7, 5, "deny", 7),
        (8, 1, "permit", 3),
        (8, 2, "deny", 13),
        (8, 6, "deny", 13),
        (9, 3, "permit", 10),
        (9, 4, "permit", 10),
        (9, 6, "reject", 17),
    ];
    for (sport, dport, action, line) in cases {
        let header = format!("src=10.0.0.1 proto=tcp sport={sport} dport={dport} list=input");
        assert_eq!(firewall.action(&header), action, "{header}");
        assert_eq!(firewall.line(&header), line, "{header}");
    }
    assert_eq!(firewall.config.sources[0].list, "first");
}

#[test]
fn verdict_maps_select_verdicts() {
    let text = "\
table inet t {
    map ports {
        type inet_service : verdict
        elements = { 22 : accept, 80-89 : jump web, 99 : continue,
                     * : drop }
    }
    map pairs {
        type ipv4_addr . inet_service : verdict; flags interval
        elements = { 10.0.0.0/8 . 7 counter packets 3 bytes 4 : accept, 10.0.0.1 . 8 comment \"x\" : reject_it }
    }
    chain web {
        tcp dport 81 accept
    }
    chain input {
        type filter hook input priority 0;
        iifname vmap { lo : accept, \"eth*\" : continue } counter drop
        ct state vmap { established : accept, invalid : drop }
        tcp dport vmap @ports
        ip saddr . tcp sport vmap @pairs
        udp sport . udp dport vmap { 1 . 2 : drop, * : return }
        drop
    }
}
";
    assert!(
        problems(text).contains("fw:9:73: an element without a verdict"),
        "{}",
        problems(text)
    );
    let firewall = firewall(&text.replace(" : reject_it", " : drop"));
    let cases = [
        ("in=lo", "permit", 16),
        ("in=eth0", "deny", 16),
        ("in=wan state=established", "permit", 17),
        ("in=wan state=invalid", "deny", 17),
        ("proto=tcp dport=22", "permit", 18),
        ("proto=tcp dport=81", "permit", 12),
        ("proto=tcp dport=82", "deny", 21),
        ("proto=tcp dport=99", "deny", 21),
        ("proto=tcp dport=100", "deny", 18),
        ("proto=udp sport=1 dport=2", "deny", 20),
        ("proto=udp sport=1 dport=3", "permit", 14),
        ("proto=gre", "deny", 21),
    ];
    for (header, action, line) in cases {
        let header = format!("src=192.0.2.1 {header} list=input");
        assert_eq!(firewall.action(&header), action, "{header}");
        assert_eq!(firewall.line(&header), line, "{header}");
    }
    let implied = firewall
        .config
        .sources
        .iter()
        .filter(|source| source.is_implied);
    let implied: Vec<_> = implied
        .map(|source| (source.line, &source.text[..]))
        .collect();
    assert_eq!(implied, [(14, "policy accept")]);
}

#[test]
fn named_sets_have_elements() {
    let sets = "\
set hosts { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.0.0/24,
    10.0.1.1-10.0.1.3 comment \"lab\",
    10.0.2.1 counter packets 1 bytes 2 } }
set pairs {
    typeof ip saddr . tcp dport
    size 100
    elements = { 10.0.0.1 . 22, 10.0.0.2 . 23 }
}
set names { type ifname; elements = { \"eth0\", \"wg*\" }; }
";
    let rules = "ip saddr @hosts accept\nip daddr . tcp dport @pairs accept\n\
                 iifname @names accept\nip daddr . tcp dport != @pairs reject";
    let firewall = firewall(&input(rules).replace("chain a", &format!("{sets}chain a")));
    let cases = [
        ("src=10.0.0.9", "permit"),
        ("src=10.0.1.3", "permit"),
        ("src=10.0.1.4", "deny"),
        ("src=10.0.2.1", "permit"),
        ("src=1.1.1.1 dst=10.0.0.1 proto=tcp dport=22", "permit"),
        ("src=1.1.1.1 dst=10.0.0.1 proto=tcp dport=23", "reject"),
        ("src=1.1.1.1 dst=10.0.0.1 proto=udp dport=23", "deny"),
        ("src=::1 in=eth0", "permit"),
        ("src=::1 in=wg7", "permit"),
        ("src=::1 in=eth1", "deny"),
    ];
    for (header, action) in cases {
        assert_eq!(
            firewall.action(&format!("{header} list=input")),
            action,
            "{header}"
        );
    }
}

#[test]
fn lists_have_unique_names() {
    let chain = "type filter hook input priority 0; policy drop;";
    let text = format!(
        "table ip a {{ chain in {{ {chain}
        tcp dport 1 accept; }}; chain only {{ {chain} }}; }}
        table ip6 a {{ chain in {{ {chain}
        tcp dport 2 accept; }}; }}
        table ip b {{ chain in {{ {chain}
        tcp dport 3 accept; }}; }}
        table inet b {{ chain in {{ {chain}
        tcp dport 4 accept; }}; }}
        table ip6 c {{ chain INPUT {{ {chain} }}; }}
        table ip c {{ chain INPUT {{ {chain} }}; }}"
    );
    let firewall = firewall(&text);
    let cases = [
        ("src=1.1.1.1 proto=tcp dport=1 list=a/in", 2),
        ("src=1.1.1.1 proto=tcp dport=3 list=ip/b/in", 6),
        ("src=1.1.1.1 proto=tcp dport=4 list=inet/b/in", 8),
        ("src=::1 proto=tcp dport=2 list=a/in", 4),
        ("src=::1 proto=tcp dport=4 list=inet/b/in", 8),
        ("src=1.1.1.1 list=only", 2),
        ("src=::1 list=INPUT", 9),
        ("src=1.1.1.1 list=INPUT", 10),
        ("src=1.1.1.1 list=in", 0),
    ];
    for (header, line) in cases {
        assert_eq!(firewall.line(header), line, "{header}");
    }
    let notes = firewall.config.notes.join("\n");
    assert!(
        notes.contains("several chains have the hook `input`"),
        "{notes}"
    );
}

#[test]
fn chains_without_effect_are_noted() {
    let text = "\
table ip t {
    chain lonely { tcp dport 22 accept; }
    chain used { }
    chain out { type nat hook postrouting priority srcnat; jump used; masquerade; }
}
table ip6 off { flags dormant
    chain in { type filter hook input priority 0; policy drop; }
}
table arp empty { chain unused { }
}
";
    let firewall = firewall(text);
    assert_eq!(
        firewall.config.notes,
        [
            "chains of type `nat` examine only the first packet of each connection",
            "no chain with a hook leads to the chains `lonely` of the table `t`: their rules were \
             left out",
            "the table `off` is dormant: its chains were left out",
        ]
    );
    assert_eq!(firewall.action("src=1.1.1.1 list=out"), "masquerade");
    assert_eq!(firewall.action("src=::1 list=in"), "none");
}

#[test]
fn loops_and_missing_chains_are_problems() {
    let chains = "chain x { jump y; }\nchain y { tcp dport 1 jump x; }\nchain a";
    let text = input("jump x").replace("chain a", chains);
    assert!(problems(&text).contains("a loop of jumps through the chain `x`"));
    let messages = problems(&input("jump nowhere"));
    assert!(
        messages.contains("6:1: no chain `nowhere` in this table"),
        "{messages}"
    );
    let messages = problems(&input("jump input"));
    assert!(
        messages.contains("6:1: a jump to `input`, which has a hook"),
        "{messages}"
    );
}

#[test]
fn the_order_of_rules_counts() {
    let firewall = firewall(&input("tcp dport 1 drop\ntcp dport 1-2 accept"));
    let line = |port| firewall.line(&format!("src=1.1.1.1 proto=tcp dport={port} list=input"));
    assert_eq!([line(1), line(2), line(3)], [FIRST_LINE, FIRST_LINE + 1, 5]);
}

/// Problems with jumps point to the jump, in its line.
#[test]
fn problems_with_jumps_have_positions() {
    let text = "\
table ip t {
    chain a {
        ip saddr 10.0.0.1 jump b
    }
    chain b { tcp dport 1 drop; udp dport 2 goto a; }
    chain input {
        type filter hook input priority 0;
        jump a
    }
}
";
    let message = problems(text);
    assert!(
        message.contains("fw:5:45: a loop of jumps through the chain `a`"),
        "{message}"
    );
    let mut deep = "table ip t {\n".to_owned();
    for level in 0..40 {
        deep += &format!("chain c{} {{\n counter jump c{level}\n}}\n", level + 1);
    }
    deep += "chain c0 { accept; }\nchain input {\n type filter hook input priority 0;\n jump c40\n}\n}\n";
    let message = problems(&deep);
    // The chain c10 is the 32nd in the path.
    assert!(
        message.contains("fw:30:10: more than 32 jumps inside each other"),
        "{message}"
    );
}

/// Returns that [`combination`] knows.
const RETURNS: [&str; 10] = [
    "ip saddr 10.1.0.0/16",
    "ip daddr 192.168.7.0/24",
    "iifname \"tun0\"",
    "oifname \"wg0\"",
    "udp sport 53",
    "tcp dport 22",
    "ct state invalid",
    "meta l4proto esp",
    "ip6 saddr 2001:db8::/32",
    "ip6 daddr fe80::/10",
];

/// The number of combinations of values of packets.
const COMBINATIONS: usize = 4 * 4 * 2 * 2 * 3 * 3 * 3 * 2;

/// Returns the header of a combination of values, true if a rule of [`RETURNS`] matches it, and
/// true if it is TCP to port 80. `None` if its addresses are of two families.
fn combination(mut number: usize) -> Option<(String, bool, bool)> {
    let mut choose = |count: usize| {
        let chosen = number % count;
        number /= count;
        chosen
    };
    let (src, dst, input, output) = (choose(4), choose(4), choose(2), choose(2));
    let (sport, dport) = ([53, 54, 55][choose(3)], [22, 80, 81][choose(3)]);
    let (protocol, state) = (["tcp", "udp", "esp"][choose(3)], choose(2));
    let returns = src % 2 == 0
        || dst % 2 == 0
        || input == 0
        || output == 0
        || protocol == "udp" && sport == 53
        || protocol == "tcp" && dport == 22
        || state == 0
        || protocol == "esp";
    let header = format!(
        "list=input src={} dst={} in={} out={} sport={sport} dport={dport} proto={protocol} \
         state={}",
        ["10.1.2.3", "10.2.0.1", "2001:db8::1", "2001::1"][src],
        ["192.168.7.9", "192.168.8.9", "fe80::1", "::1"][dst],
        ["tun0", "lan0"][input],
        ["wg0", "lan1"][output],
        ["invalid", "new"][state]
    );
    let is_of_one_family = (src < 2) == (dst < 2);
    is_of_one_family.then_some((header, returns, protocol == "tcp" && dport == 80))
}

/// The packets that stay in the chain would need a box for each combination.
#[test]
fn returns_on_many_fields_are_few_rules() {
    let rules = RETURNS.map(|matches| format!("{matches} return\n"));
    let text = format!(
        "table inet t {{\nchain c {{\n{}drop\n}}\nchain input {{\n\
         type filter hook input priority 0; policy accept;\njump c\ntcp dport 80 reject\n}}\n}}\n",
        rules.concat()
    );
    let firewall = firewall(&text);
    let rule_count = firewall.config.policy.len();
    assert!(rule_count < 3000, "{rule_count} rules");
    let mut counts = [0; 3];
    for (header, returns, is_web) in (0..COMBINATIONS).filter_map(combination) {
        let (action, index) = match (returns, is_web) {
            (false, _) => ("deny", 0),
            (true, true) => ("reject", 1),
            (true, false) => ("permit", 2),
        };
        counts[index] += 1;
        assert_eq!(firewall.action(&header), action, "{header}");
    }
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
}
