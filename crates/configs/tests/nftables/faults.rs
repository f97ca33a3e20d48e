//! Statements that are wrong or not supported, with the place and the message.

use classyard_workload::diagnostic::ReadOptions;

use crate::support::{firewall, input, problems, try_read};

#[test]
fn bad_statements_have_places() {
    let cases = [
        ("tcp dport 70000 accept", "6:11: `70000`; expected a port"),
        (
            "tcp dport nowhere accept",
            "6:11: `nowhere`; expected a port",
        ),
        ("tcp dport 90-80 accept", "6:11: a range whose first"),
        (
            "ip saddr 10.0.0.256 accept",
            "6:10: `10.0.0.256`; expected an IPv4 address",
        ),
        (
            "ip saddr fd00::1 accept",
            "6:10: `fd00::1`; expected an IPv4 address",
        ),
        (
            "ip6 saddr 10.0.0.1 accept",
            "6:11: `10.0.0.1`; expected an IPv6 address",
        ),
        (
            "ip saddr www.example.org accept",
            "6:10: the name `www.example.org`, which is not looked up",
        ),
        ("ip saddr { 10.0.0.1, x } accept", "6:22: the name `x`"),
        (
            "ip saddr @nothing accept",
            "6:10: no set `nothing` in this table",
        ),
        ("ip saddr $nothing accept", "6:10: no variable `nothing`"),
        ("ip protocol 256 accept", "6:13: `256`; expected a protocol"),
        (
            "icmp type hello accept",
            "6:11: `hello`; expected an ICMP type",
        ),
        (
            "icmp type ! 8 accept",
            "6:13: `!` before a value that is not flags",
        ),
        ("tcp flags syn,foo accept", "6:15: `foo`; expected fin, syn"),
        (
            "ct state fresh accept",
            "6:10: `fresh`; expected invalid, established",
        ),
        ("meta nfproto ipx accept", "6:14: `ipx`; expected a family"),
        ("iifname \"*\" accept", "6:10: a name that is only `*`"),
        ("iifname < eth0 accept", "6:11: an order of names"),
        (
            "ip saddr . tcp dport { 10.0.0.1 } accept",
            "6:24: 1 values for 2 fields",
        ),
        ("tcp dport { 22, 23", "the file ends here"),
        (
            "tcp dport 22 log prefix \"x accept",
            "6:25: a string without its end",
        ),
        (
            "accept drop",
            "6:8: a statement after the decision of the rule",
        ),
        (
            "accept accept",
            "6:8: a statement after the decision of the rule",
        ),
        (
            "hello accept",
            "6:1: `hello`; expected a statement or a field",
        ),
        ("tcp dport", "6:10: the line ends here; expected a value"),
        ("tcp dport 22 |", "6:15: the line ends here"),
        (
            "jump",
            "6:5: the line ends here; expected the name of a chain",
        ),
        (
            "counter packets many bytes 2",
            "6:17: `many`; expected a number of packets",
        ),
        ("reject with nothing at", "6:13: `nothing`"),
        (
            "tcp dport vmap { 22 : 23 }",
            "6:18: an element without a verdict",
        ),
        ("add now", "6:1: `add`; expected a statement"),
        ("limit 5/second", "6:7: `5/second`; expected `rate`"),
        ("fib hello type local", "6:5: `hello`; expected `saddr`"),
        ("policy maybe", "6:8: `maybe`; expected `accept` or `drop`"),
        ("type strange hook input priority 0", "6:6: `strange`"),
        (") accept", "6:1: `)`"),
    ];
    for (rule, message) in cases {
        let messages = problems(&input(rule));
        assert!(messages.contains(message), "{rule}\n{message}\n{messages}");
    }
}

#[test]
fn unsupported_features_are_counted_by_name() {
    let rules = "\
flow add @f
ip protocol tcp flow add @f
tcp dport set 8080
ip daddr set 10.0.0.1 accept
dup to 10.0.0.1
fwd to eth0
synproxy mss 1460 accept
tcp dport 22 accept
";
    let options = ReadOptions::DEFAULT.with_skip_bad(true);
    let firewall = try_read(&input(rules), &options).unwrap();
    let skipped = firewall.config.skipped.to_string();
    assert_eq!(firewall.config.skipped.total(), 7, "{skipped}");
    for feature in [
        "the statement `flow`",
        "statements that change addresses, ports or other fields",
        "the statement `dup`",
        "the statement `fwd`",
        "the statement `synproxy`",
    ] {
        assert!(skipped.contains(feature), "{skipped}");
    }
    // A rule with a problem is not a statement of the configuration.
    assert_eq!(firewall.config.sources.len(), 2);
    assert_eq!(
        firewall.line("src=1.1.1.1 proto=tcp dport=22 list=input"),
        13
    );
}

#[test]
fn unsupported_commands_are_named() {
    let chain = "chain c { type filter hook input priority 0; }";
    let cases = [
        (
            "include \"other.nft\"\n".to_owned(),
            "1:1: `include` of other files",
        ),
        (
            "table ip t { chain c { include \"x\"; }; }\n".to_owned(),
            "1:24: `include` of other files",
        ),
        (
            "table ip t { chain c { jump { accept; }; }; }\n".to_owned(),
            "1:29: chains without a name",
        ),
        (
            "table ip t { chain c { counter name ip saddr map { 1.1.1.1 : \"a\" }; }; }\n"
                .to_owned(),
            "1:37: maps of counters, limits or quotas",
        ),
        ("list ruleset\n".to_owned(), "1:1: the command `list`"),
        (
            "delete rule ip t c handle 5\n".to_owned(),
            "1:8: the command `delete rule`",
        ),
        ("flush ruleset ip\n".to_owned(), "1:15: `flush ruleset ip`"),
        (
            "add rule ip t c index 3 accept\n".to_owned(),
            "1:17: rules that are added at a position",
        ),
        (
            format!("table bridge t {{ {chain}; }}\n"),
            "1:1: tables of the family `bridge`",
        ),
        (
            format!("table netdev t {{ {chain}; }}\n"),
            "1:1: tables of the family `netdev`",
        ),
        (
            format!("table arp t {{ {chain}; }}\n"),
            "1:1: tables of the family `arp`",
        ),
        ("hello\n".to_owned(), "1:1: `hello`"),
        ("}\n".to_owned(), "1:1: `}`"),
        ("table ip t {\n".to_owned(), "2:1: the file ends here"),
        ("table ip t { hello; }\n".to_owned(), "1:14: `hello`"),
        (
            "table ip t { set s { hello; }; }\n".to_owned(),
            "1:22: `hello`",
        ),
        (
            "table ip t { set s { elements = 5; }; }\n".to_owned(),
            "1:33: `5`; expected elements",
        ),
        (
            "table ip t { chain c { policy drop; }; }\n".to_owned(),
            "1:24: a policy of a chain without a hook",
        ),
        (
            "table ip t { } x\n".to_owned(),
            "1:16: `x`; expected the end of the statement",
        ),
    ];
    for (text, message) in cases {
        let messages = problems(&text);
        assert!(messages.contains(message), "{text}\n{message}\n{messages}");
    }
}

#[test]
fn good_rules_survive_bad_neighbours() {
    let rules = "tcp dport { 1, 2 oops } accept\ntcp dport 3 accept\nnonsense { here } there\ntcp dport 4 accept";
    let options = ReadOptions::DEFAULT.with_skip_bad(true);
    let firewall = try_read(&input(rules), &options).unwrap();
    assert_eq!(firewall.config.skipped.total(), 2);
    let line = |port| firewall.line(&format!("src=1.1.1.1 proto=tcp dport={port} list=input"));
    assert_eq!([line(1), line(3), line(4)], [5, 7, 9]);
}

#[test]
fn sizes_have_limits() {
    let nested = "( ".repeat(200);
    assert!(
        problems(&input(&format!("tcp dport {nested}")))
            .contains("more than 24 expressions inside each other")
    );
    let operators = "1 | ".repeat(100);
    assert!(
        problems(&input(&format!("meta mark {operators} 1 accept")))
            .contains("more than 16 operators")
    );
    let mut deep = String::from("define v0 = 1\n");
    for number in 1..9 {
        let previous = number - 1;
        let operators = " | 1".repeat(15);
        deep.push_str(&format!("define v{number} = $v{previous}{operators}\n"));
    }
    assert!(problems(&deep).contains("a variable with more than 64 expressions inside each other"));
    let mut variables = String::from("define v0 = { 1, 2, 3, 4, 5, 6, 7, 8 }\n");
    for number in 1..12 {
        let previous = format!("$v{}, ", number - 1).repeat(8);
        variables.push_str(&format!("define v{number} = {{ {previous} }}\n"));
    }
    assert!(problems(&variables).contains("variables add more than 1048576 values"));
    let ports: Vec<String> = (0..400).map(|port| (2 * port).to_string()).collect();
    let ports = ports.join(", ");
    let rule = format!("tcp sport {{ {ports} }} tcp dport {{ {ports} }} accept");
    assert!(problems(&input(&rule)).contains("the rule expands to more than 65536 matches"));
    let pairs: Vec<String> = (0..1025).map(|port| format!("10.0.0.1 . {port}")).collect();
    let rule = format!("ip saddr . tcp dport != {{ {} }} accept", pairs.join(", "));
    assert!(problems(&input(&rule)).contains("a negated set of more than 1024"));
    let elements: Vec<String> = (0..1100).map(|port| format!("{port} : accept")).collect();
    let rule = format!("tcp dport vmap {{ {}, * : drop }}", elements.join(", "));
    assert!(problems(&input(&rule)).contains("`*` after more than 1024 elements"));
    let many: Vec<String> = (0..130)
        .map(|mark| format!("meta mark {mark} accept"))
        .collect();
    assert!(problems(&input(&many.join("\n"))).contains("more than 128 different conditions"));
    let text = input("tcp dport 1-5 accept\ntcp dport 6 accept");
    let limited = try_read(&text, &ReadOptions::DEFAULT.with_limit(2));
    assert!(
        limited
            .err()
            .unwrap()
            .to_string()
            .contains("more than 2 rules")
    );
}

#[test]
fn empty_rulesets_are_empty() {
    for text in [
        "",
        "flush ruleset\n",
        "table ip t {\n}\n",
        "{\"nftables\": []}",
        "{\"nftables\": null}",
    ] {
        let is_empty = problems(text).is_empty() && firewall(text).config.policy.is_empty();
        assert!(
            is_empty || text.contains("null"),
            "{text}: {}",
            problems(text)
        );
    }
}
