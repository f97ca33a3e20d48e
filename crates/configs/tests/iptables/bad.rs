//! Statements with faults: position and message.

use super::support::{input, try_read};
use classyard_workload::diagnostic::{ReadError, ReadOptions};

/// Returns the messages of the problems of a text.
fn problems(text: &str) -> String {
    match try_read(text, &ReadOptions::DEFAULT) {
        Err(ReadError::Bad(problems)) => problems.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => "no problem".to_owned(),
    }
}

/// A rule and the start of its problem. The first rule is on line 6; `A`, `B` and `C` are
/// chains.
const RULES: &[(&str, &str)] = &[
    (
        "-A INPUT -s 10.0.0.0/33 -j DROP",
        "6:13: `10.0.0.0/33`: a prefix length above 32",
    ),
    (
        "-A INPUT -s host.example -j DROP",
        "6:13: `host.example`: not an address",
    ),
    (
        "-A INPUT -s 10.0.0.1,x -j DROP",
        "6:22: `x`: not an address",
    ),
    (
        "-A INPUT ! -d 10.0.0.1,10.0.0.2",
        "6:15: `!` before several addresses",
    ),
    (
        "-A INPUT -s ! 10.0.0.1 -j DROP",
        "6:13: `!` after `-s`; expected `!` before `-s`",
    ),
    ("-A INPUT -s 10.0.0.1 -s 10.0.0.2", "6:22: a second `-s`"),
    (
        "-A INPUT -s",
        "6:12: the line ends here; expected the value of `-s`",
    ),
    (
        "-A INPUT !",
        "6:11: the line ends here; expected an option after `!`",
    ),
    ("-A INPUT ! -j DROP", "6:12: `!` before `-j`"),
    ("-A INPUT -j DROP -j ACCEPT", "6:18: a second `-j`"),
    (
        "-A INPUT -i an-interface-name -j DROP",
        "6:13: the interface `an-interface-name`",
    ),
    (
        "-A INPUT -p nonsense -j DROP",
        "6:13: the protocol `nonsense`",
    ),
    ("-A INPUT -p 256 -j DROP", "6:13: the protocol `256`"),
    (
        "-A INPUT ! -p all -j DROP",
        "6:10: `!` before all protocols",
    ),
    ("-A INPUT --dport 22 -j DROP", "6:10: the option `--dport`"),
    (
        "-A INPUT -p icmp --dport 22 -j DROP",
        "6:18: the option `--dport`",
    ),
    (
        "-A INPUT -p tcp --dport 65536 -j DROP",
        "6:25: the port `65536`",
    ),
    ("-A INPUT -p tcp --dport 22:x -j DROP", "6:28: the port `x`"),
    (
        "-A INPUT -p tcp --dport 23:22 -j DROP",
        "6:25: a range whose first port is above",
    ),
    (
        "-A INPUT -p udp --dport ssh -j DROP",
        "6:25: the port `ssh`",
    ),
    (
        "-A INPUT -p tcp --dport 1 --dport 2",
        "6:27: a second `--dport`",
    ),
    (
        "-A INPUT -m tcp --dport 22 -j DROP",
        "6:10: the match `tcp` without its protocol",
    ),
    (
        "-A INPUT ! -p tcp -m tcp -j DROP",
        "6:19: the match `tcp` without its protocol",
    ),
    (
        "-A INPUT -m multiport --dports 1",
        "6:10: the match `multiport` without its protocol",
    ),
    (
        "-A INPUT -p tcp -m multiport --dports 1,,2",
        "6:41: the port ``",
    ),
    (
        "-A INPUT -p tcp -m multiport --sports 1 --dports 2",
        "6:17: a match `multiport` with 2 options; expected one of",
    ),
    (
        "-A INPUT -p tcp --tcp-flags SYN,X SYN",
        "6:33: the flag `X`",
    ),
    (
        "-A INPUT -p tcp --tcp-flags SYN",
        "6:32: the line ends here; expected the 2 values",
    ),
    (
        "-A INPUT -p icmp --icmp-type nothing",
        "6:30: the ICMP type `nothing`",
    ),
    ("-A INPUT -m state --state NEW,OLD", "6:31: the state `OLD`"),
    ("-A INPUT -m state --state DNAT", "6:27: the state `DNAT`"),
    (
        "-A INPUT -m conntrack --ctfuture 1",
        "6:23: the option `--ctfuture` of conntrack",
    ),
    (
        "-A INPUT -m iprange --src-range 10.0.0.2-10.0.0.1",
        "6:33: a range whose first address",
    ),
    (
        "-A INPUT -m iprange --src-range 10.0.0.1-::2",
        "6:33: `10.0.0.1`; expected an address of IPv6",
    ),
    (
        "-A INPUT -m set -j DROP",
        "6:10: the match `set` without a set",
    ),
    (
        "-A INPUT -m set --match-set x up",
        "6:31: the directions `up`",
    ),
    (
        "-A INPUT -m set --match-set x src --return-nomatch",
        "6:35: the option `--return-nomatch`",
    ),
    (
        "-A INPUT -m comment ! --comment x",
        "6:21: `!` before `--comment`",
    ),
    (
        "-A INPUT -m comment --comment \"x",
        "6:31: a text in quotes that does not end",
    ),
    (
        "-A INPUT -j D",
        "6:13: the target `D`; expected a target of iptables, or a chain",
    ),
    ("-A INPUT -g ACCEPT", "6:13: the target `ACCEPT`"),
    ("-A A -j INPUT", "6:9: a jump to the built-in chain `INPUT`"),
    (
        "-A INPUT -j DROP --fast",
        "6:18: the option `--fast` of the target",
    ),
    (
        "-A INPUT -j REJECT --hard",
        "6:20: options of the target `REJECT`",
    ),
    (
        "-A INPUT -j A --to-ports 5",
        "6:15: the option `--to-ports` of the target",
    ),
    (
        "-A INPUT -j DNAT -s 10.0.0.1 --to-destination 10.0.0.1",
        "6:30: options of a target with other options between them",
    ),
    (
        "-A INPUT -s 10.0.0.1 stray -j DROP",
        "6:22: `stray`; expected an option",
    ),
    (
        "-A INPUT -s 10.0.0.1 --stray -j DROP",
        "6:22: the option `--stray`",
    ),
    (
        "-A INPUT -c x 5 -j DROP",
        "6:13: `x`; expected a number of packets",
    ),
    (
        "-A D -j DROP",
        "6:4: the chain `D`, which the table does not declare",
    ),
    (
        "-A",
        "6:3: the line ends here; expected the name of a chain",
    ),
    (
        "[12:x] -A INPUT -j DROP",
        "6:1: `[12:x]`; expected counters as",
    ),
    ("-I INPUT -j DROP", "6:1: the command `-I`"),
    ("nonsense", "6:1: `nonsense`; expected `:CHAIN POLICY`"),
    (
        "*nat",
        "6:1: a table inside of a table; expected `COMMIT` before it",
    ),
    (":INPUT ACCEPT [0:0]", "6:2: a second chain `INPUT`"),
    (":D MAYBE [0:0]", "6:4: the policy `MAYBE`"),
    (":D - [0]", "6:6: `[0]`; expected counters as"),
    (":D - [0:0] x", "6:12: `x`; expected the end of the line"),
    (
        ":D",
        "6:3: the line ends here; expected ACCEPT, DROP or `-`",
    ),
    (
        "-A INPUT -j A\n-A A -j B\n-A B -j A",
        "8:9: a loop of jumps through the chain `A`",
    ),
    (
        "-A INPUT -s 10.0.0.1 -j DROP\n-A INPUT -s ::1",
        "6:13: `10.0.0.1` in a rule for the other",
    ),
    (
        "-A INPUT -s ::1 -f -j DROP",
        "6:17: `-f` in a rule for IPv6",
    ),
];

#[test]
fn rules() {
    for (rule, message) in RULES {
        let messages = problems(&input(rule));
        assert!(
            messages.contains(&format!("fw:{message}")),
            "{rule}: {messages}"
        );
    }
}

/// A file and the start of its problem.
const FILES: &[(&str, &str)] = &[
    (
        "",
        "1:1: the line ends here; expected a table such as `*filter`",
    ),
    (
        "create a hash:ip\nadd a 10.0.0.1",
        "2:15: the line ends here; expected a table",
    ),
    (
        "*filter\n:INPUT ACCEPT [0:0]",
        "2:20: the line ends here; expected `COMMIT`",
    ),
    ("*broute\n-A X -j Y\nCOMMIT", "1:2: the table `broute`"),
    (
        "-A INPUT -j DROP\n*filter\nCOMMIT",
        "1:1: `-A INPUT -j DROP` outside of tables",
    ),
    (
        "*filter\nCOMMIT\n*filter\nCOMMIT",
        "3:1: a second table `filter` of IPv4",
    ),
    (
        "create a\n",
        "1:9: the line ends here; expected a type such as hash:ip",
    ),
    (
        "create a hash:odd\nadd a 1",
        "1:10: the type `hash:odd` of sets",
    ),
    (
        "create a hash:ip shade 5",
        "1:18: the option `shade` of sets",
    ),
    (
        "create a hash:ip family inet5",
        "1:25: `inet5`; expected `inet` or `inet6`",
    ),
    (
        "create a hash:ip netmask 33",
        "1:26: the prefix length `33`",
    ),
    (
        "create a hash:ip\ncreate a hash:ip",
        "2:8: a second set `a`",
    ),
    (
        "add a 10.0.0.1",
        "1:5: an element of the set `a`, which is not defined",
    ),
    (
        "create a hash:ip\nadd a",
        "2:6: the line ends here; expected an element",
    ),
    (
        "create a hash:ip\nadd a ::1",
        "2:7: `::1`; expected an IPv4 address",
    ),
    (
        "create a hash:ip\nadd a 10.0.0.1,80",
        "2:7: an element with 2 parts; expected 1",
    ),
    (
        "create a hash:net\nadd a 10.0.0.0/x",
        "2:16: the prefix length `x`",
    ),
    (
        "create a hash:net\nadd a 10.0.0.9-10.0.0.1",
        "2:7: a range whose first address",
    ),
    (
        "create a hash:net\nadd a 10.0.0.9 shade",
        "2:16: the option `shade` of elements",
    ),
    (
        "create a hash:ip,port\nadd a 10.0.0.1,odd:5",
        "2:16: the protocol `odd`",
    ),
    (
        "create a hash:ip,port\nadd a 10.0.0.1,gre:5",
        "2:20: a port of the protocol `gre`",
    ),
    (
        "create a hash:ip,port\nadd a 10.0.0.1,icmp:x",
        "2:21: `x`; expected the name of a type",
    ),
    (
        "create a hash:ip,port\nadd a 10.0.0.1,9-8",
        "2:16: a range whose first port",
    ),
    (
        "create a bitmap:port range 0-9\nadd a tcp:8",
        "2:7: `tcp:8`; expected a port",
    ),
    (
        "create a hash:net,iface\nadd a 10.0.0.0/8,physdev:x",
        "2:18: a port of a bridge",
    ),
    (
        "create a hash:net,iface\nadd a 10.0.0.0/8,",
        "2:18: the interface ``",
    ),
    ("swap a b", "1:1: the command `swap` of ipset"),
];

#[test]
fn files() {
    for (text, message) in FILES {
        let messages = problems(text);
        assert!(
            messages.contains(&format!("fw:{message}")),
            "{text}: {messages}"
        );
    }
}

#[test]
fn sets_of_rules() {
    let rule = input("-A INPUT -m set --match-set l src -j DROP");
    for (sets, message) in [
        (
            "create l list:set\nadd l x\n",
            "a list with the set `x`, which is not defined",
        ),
        (
            "create l list:set\ncreate x list:set\nadd l x\nadd x l\n",
            "a loop of lists through the set `l`",
        ),
    ] {
        let messages = problems(&format!("{sets}{rule}"));
        assert!(messages.contains(message), "{messages}");
    }
}

#[test]
fn unsupported_features_are_counted_by_name() {
    let rules = "-A INPUT -j SPECIAL\n-A INPUT -p tcp -j SPECIAL\n-A INPUT --stray\n-I INPUT\n\
                 -A INPUT -p udp -j ACCEPT";
    let options = ReadOptions::DEFAULT.with_skip_bad(true);
    let firewall = try_read(&input(rules), &options).unwrap();
    let skipped = &firewall.config.skipped;
    assert_eq!(
        skipped.by_reason(),
        [
            ("the target `SPECIAL`", 2),
            ("the command `-I`", 1),
            ("the option `--stray`", 1)
        ]
    );
    assert_eq!(
        firewall.action("src=10.0.0.1 proto=udp list=INPUT"),
        "permit"
    );
    assert_eq!(firewall.action("src=10.0.0.1 proto=tcp list=INPUT"), "deny");
}
