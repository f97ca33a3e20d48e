//! Damaged files: reading them never panics.

use classyard_configs::{Conditions, ConfigFormat, read};
use classyard_workload::diagnostic::ReadOptions;

use crate::support::Random;

/// A ruleset with most constructs.
const TEXT: &str = "\
#!/usr/sbin/nft -f
flush ruleset
define wan = \"eth0\"
define nets = { 10.0.0.0/8, 192.168.0.0/16 }
table inet filter {
    counter seen { packets 3 bytes 4; }
    set pairs { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/8 . 22, 10.1.0.1-10.1.0.7 . 80-90 } }
    set recent { type ipv4_addr; flags dynamic,timeout; timeout 1m; size 100; }
    map ports { type inet_service : verdict; elements = { 22 : accept, 23 : jump other, * : drop } }
    chain other { tcp flags & (fin|syn|rst|ack) == syn return; }
    chain input {
        type filter hook input priority 0; policy drop;
        ct state vmap { established : accept, related : accept, invalid : drop }
        ip saddr $nets iifname $wan tcp dport { ssh, 80-90 } counter packets 4 bytes 77 accept comment \"größe\"
        tcp flags syn / syn,ack ip saddr . tcp dport @pairs log prefix \"x: \" flags tcp options drop
        tcp dport vmap @ports
        icmpv6 type { nd-neighbor-solicit, nd-router-advert } ip6 saddr fe80::/10 accept
        limit rate over 10/minute burst 20 packets drop
        add @recent { ip saddr timeout 2m limit rate 3/minute } accept
        meta mark set ct mark and 0xff or 0x10
        fib saddr . iif oif missing drop
        @th,0,16 53 reject with icmpx admin-prohibited
        numgen inc mod 2 vmap { 0 : accept, 1 : drop }
        queue num 1-3 bypass
    }
    chain nat {
        type nat hook prerouting priority dstnat;
        dnat ip to tcp dport map { 80 : 10.0.0.1, 443 : 10.0.0.2 }
        tcp dport 5 dnat ip6 to [2001:db8::1]:80 random,persistent
    }
}
add rule inet filter input ip frag-off & 0x1fff != 0 drop
";

const JSON: &str = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}},
{"table": {"family": "inet", "name": "t", "handle": 1}},
{"set": {"family": "inet", "name": "s", "table": "t", "type": ["ipv4_addr", "inet_service"], "elem": [{"concat": [{"prefix": {"addr": "10.0.0.0", "len": 8}}, 22]}, {"concat": [{"range": ["10.1.0.1", "10.1.0.7"]}, {"range": [80, 90]}]}]}},
{"map": {"family": "inet", "name": "m", "table": "t", "type": "inet_service", "map": "verdict", "elem": [[22, {"accept": null}], [23, {"jump": {"target": "o"}}], ["*", {"drop": null}]]}},
{"chain": {"family": "inet", "table": "t", "name": "o", "handle": 1}},
{"chain": {"family": "inet", "table": "t", "name": "i", "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}},
{"rule": {"family": "inet", "table": "t", "chain": "i", "expr": [{"match": {"op": "==", "left": {"&": [{"payload": {"protocol": "tcp", "field": "flags"}}, ["fin", "syn"]]}, "right": "syn"}}, {"counter": {"packets": 1, "bytes": 2}}, {"accept": null}], "comment": "a\u00e9\n"}},
{"rule": {"family": "inet", "table": "t", "chain": "i", "expr": [{"match": {"op": "!=", "left": {"concat": [{"payload": {"protocol": "ip", "field": "saddr"}}, {"payload": {"protocol": "tcp", "field": "dport"}}]}, "right": "@s"}}, {"limit": {"rate": 10, "burst": 5, "per": "second"}}, {"reject": {"type": "icmp", "expr": "host-unreachable"}}]}},
{"rule": {"family": "inet", "table": "t", "chain": "i", "expr": [{"vmap": {"key": {"payload": {"protocol": "tcp", "field": "dport"}}, "data": "@m"}}]}},
{"rule": {"family": "inet", "table": "t", "chain": "i", "expr": [{"mangle": {"key": {"meta": {"key": "mark"}}, "value": {"|": [{"ct": {"key": "mark"}}, 16]}}}, {"dnat": {"family": "ip", "addr": "10.0.0.1", "port": 80}}]}}
]}"#;

/// Reads a text with bad statements skipped.
fn read_damaged(text: &str) {
    let options = ReadOptions::DEFAULT.with_skip_bad(true);
    let mut conditions = Conditions::default();
    let config = read(
        "fw",
        text,
        ConfigFormat::Nftables,
        &options,
        &mut conditions,
    );
    if let Ok(config) = config {
        assert_eq!(config.source_of_rule.len(), config.policy.len());
    }
    let _ = ConfigFormat::detect(text);
}

#[test]
fn the_undamaged_files_are_good() {
    for text in [TEXT, JSON] {
        let mut conditions = Conditions::default();
        let config = read(
            "fw",
            text,
            ConfigFormat::Nftables,
            &ReadOptions::DEFAULT,
            &mut conditions,
        );
        assert!(config.is_ok(), "{config:?}");
    }
}

#[test]
fn truncated_files_do_not_panic() {
    for text in [TEXT, JSON] {
        for (end, _) in text.char_indices() {
            read_damaged(&text[..end]);
        }
    }
}

#[test]
fn changed_files_do_not_panic() {
    let mut random = Random(0x5eed);
    let pieces = [
        "{",
        "}",
        "(",
        ")",
        ",",
        ";",
        ":",
        "\"",
        "\n",
        " ",
        ".",
        "-",
        "/",
        "!",
        "*",
        "@s",
        "$nets",
        "0",
        "4294967296",
        "::",
        "tcp",
        "accept",
        "é",
        "\\",
        "#",
        "[",
        "]",
        "map",
        "vmap",
        "null",
        "&",
        "==",
        "340282366920938463463374607431768211456",
        "{ * : drop }",
        "\u{0}",
    ];
    for text in [TEXT, JSON] {
        let places: Vec<usize> = text.char_indices().map(|(offset, _)| offset).collect();
        for _ in 0..2000 {
            let mut changed = text.to_owned();
            for _ in 0..=random.below(3) {
                let start = random.pick(&places).min(changed.len());
                let end = (start + random.below(12)).min(changed.len());
                if changed.is_char_boundary(start) && changed.is_char_boundary(end) {
                    changed.replace_range(start..end, random.pick(&pieces));
                }
            }
            read_damaged(&changed);
        }
    }
}
