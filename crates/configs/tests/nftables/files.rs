//! Files for `nft -f`: commands, variables, comments and line ends.

use classyard_configs::ConfigFormat;

use crate::support::{firewall, input};

#[test]
fn rulesets_are_detected() {
    let texts = [
        "table inet filter {\n}\n",
        "table filter {\n}\n",
        "#!/usr/sbin/nft -f\n\nflush ruleset\n",
        "# a comment\n\n  table ip x {}\n",
        "flush ruleset; table ip x {}\n",
        "define wan = eth0\n",
        "add table ip x\n",
        "\u{feff}table ip6 x {\n}",
        "{\"nftables\": []}",
        " {\n \"nftables\" : [] }",
    ];
    for text in texts {
        assert_eq!(
            ConfigFormat::detect(text),
            Some(ConfigFormat::Nftables),
            "{text}"
        );
    }
    let others = [
        "",
        "*filter\nCOMMIT\n",
        "{\"Rules\": []}",
        "table <bad> persist\n",
        "hello\n",
    ];
    for text in others {
        assert_ne!(
            ConfigFormat::detect(text),
            Some(ConfigFormat::Nftables),
            "{text}"
        );
    }
    assert_eq!(
        ConfigFormat::from_name("nftables"),
        Some(ConfigFormat::Nftables)
    );
}

#[test]
fn variables_stand_for_values() {
    let text = "\
#!/usr/sbin/nft -f
flush ruleset
define wan = \"eth0\"
define inside = { 10.0.0.0/8, 192.168.0.0/16 }
define all = { $inside, 172.16.0.0/12 } # two kinds
define web = 8000-8080
define decision = drop
table inet t {
    define hidden = 53
    chain other { accept; }
    chain input {
        type filter hook input priority 0; policy $decision;
        define next = other
        iifname $wan ip saddr $all tcp dport $web accept
        udp dport { $hidden, 123 } goto $next
        ip saddr != $inside reject
    }
}
define web = 1
";
    let firewall = firewall(text);
    let cases = [
        ("src=172.16.0.1 in=eth0 proto=tcp dport=8080", "permit"),
        ("src=172.16.0.1 in=eth1 proto=tcp dport=8080", "reject"),
        ("src=10.0.0.1 in=eth0 proto=tcp dport=1", "deny"),
        ("src=10.0.0.1 proto=udp dport=53", "permit"),
        ("src=10.0.0.1 proto=udp dport=123", "permit"),
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
fn commands_build_the_same_ruleset_as_blocks() {
    let text = "\
add table inet t
delete table inet t
table inet t
add chain inet t other
add chain inet t input { type filter hook input priority 0; policy drop; }
add set inet t hosts { type ipv4_addr; }
add element inet t hosts { 10.0.0.1, 10.0.0.2 }
add rule inet t input ip saddr @hosts accept
add rule inet t input tcp dport { 22, 23 } jump other
insert rule inet t input iifname lo drop comment \"first\"
add rule inet t other tcp dport 22 reject
table inet t { chain input { tcp dport 23 reject; }
}
";
    let firewall = firewall(text);
    let cases = [
        ("in=lo src=10.0.0.1", "deny", 10),
        ("src=10.0.0.1", "permit", 8),
        ("src=10.0.0.3 proto=tcp dport=22", "reject", 11),
        ("src=10.0.0.3 proto=tcp dport=23", "reject", 12),
        ("src=10.0.0.3", "deny", 5),
    ];
    for (header, action, line) in cases {
        let header = format!("{header} list=input");
        assert_eq!(firewall.action(&header), action, "{header}");
        assert_eq!(firewall.line(&header), line, "{header}");
    }
}

#[test]
fn flushes_remove_what_was_before() {
    let rules = "table ip t { chain input { type filter hook input priority 0; accept; }; }\n";
    let second = "table ip t { chain input { type filter hook input priority 0; drop; }; }\n";
    for (flush, line) in [
        ("flush ruleset", 3),
        ("flush table t", 3),
        ("flush chain ip t input", 3),
        ("delete table ip t", 3),
        ("", 1),
    ] {
        let firewall = firewall(&format!("{rules}{flush}\n{second}"));
        assert_eq!(firewall.line("src=1.1.1.1 list=input"), line, "{flush}");
    }
}

#[test]
fn rules_may_have_several_lines() {
    let rules = "tcp dport { 22, # the first\n  80,\n\n 443\n } \\\n   accept\nudp dport 53 accept; udp dport 54 drop;";
    for rules in [rules.to_owned(), rules.replace('\n', "\r\n")] {
        let firewall = firewall(&input(&rules));
        let sources = &firewall.config.sources;
        let places: Vec<_> = sources
            .iter()
            .map(|source| (source.line, source.column))
            .collect();
        assert_eq!(places, [(6, 1), (12, 1), (12, 22), (5, 36)]);
        assert_eq!(
            firewall.line("src=1.1.1.1 proto=tcp dport=443 list=input"),
            6
        );
        assert_eq!(sources[2].text, "udp dport 54 drop");
    }
    let firewall = firewall(&input("tcp dport {\n 22,\n 23 } accept"));
    assert_eq!(
        firewall.config.sources[0].text,
        "tcp dport { 22, 23 } accept"
    );
}

#[test]
fn columns_count_characters() {
    let text = "table ip t { comment \"größe\"; chain input { type filter hook input priority 0; ct state new accept; }; }";
    let firewall = firewall(text);
    assert_eq!(firewall.config.sources[0].column, 80);
}
