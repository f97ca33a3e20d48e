//! Problems with their positions, and texts that no reader should meet.

use classyard_workload::diagnostic::{ReadError, ReadOptions};

use super::helper::{Random, filter_with, problems, try_load};

/// Conditions of a term, and the problem: `column: messages`. The conditions begin at column 8
/// of line 6.
const CONDITIONS: &[(&str, &str)] = &[
    ("source-address 10.0.0.300;", "23: `10.0.0.300`"),
    (
        "source-address 10.0.0.0/33;",
        "23: `10.0.0.0/33` with a prefix length above 32",
    ),
    (
        "source-address 2001:db8::/32;",
        "23: `2001:db8::/32` in a filter of another family",
    ),
    ("source-address;", "8: `source-address` without a value"),
    (
        "source-address { 10.0.0.0/8; 10.0.0.0/255.0.255.0 except; }",
        "37: `except` in a list with a mask that is not a netmask",
    ),
    (
        "source-address { 10.0.0.0/8 except; 10.0.0.0/255.0.255.0; }",
        "25: `except` in a list with a mask that is not a netmask",
    ),
    (
        "source-address { 10.1.0.0/16; } source-prefix-list { mixed except; }",
        "2:22: the same prefix with and without `except`",
    ),
    (
        "source-prefix-list nowhere;",
        "27: the prefix list `nowhere` is not in the file",
    ),
    ("protocol tpc;", "17: `tpc`"),
    ("protocol 256;", "17: `256` is above 255"),
    (
        "protocol tcp except;",
        "17: `except` after a value of `protocol`",
    ),
    ("destination-port 65536;", "25: `65536` is above 65535"),
    (
        "destination-port 30-20;",
        "25: `30-20` begins above its end",
    ),
    ("destination-port sshd;", "25: `sshd`"),
    ("destination-port -1;", "25: `-1`"),
    ("fragment-offset 8192;", "24: `8192` is above 8191"),
    ("icmp-type echo;", "18: `echo`"),
    ("tcp-flags \"syn &\";", "24: the expression ends here"),
    ("tcp-flags \"syn & foo\";", "25: `foo`"),
    ("tcp-flags 0x12;", "18: a number of several TCP flags"),
    (
        "tcp-flags [ syn ack ];",
        "24: a second value of `tcp-flags`",
    ),
    ("tcp-initial yes;", "20: `yes`"),
    (
        "interface ge-*/0/0;",
        "18: `*` inside the name of an interface",
    ),
    (
        "protocol tcp; ether-type arp;",
        "22: the condition `ether-type`",
    ),
    (
        "interface-except ge-0/0/0;",
        "8: the condition `interface-except`",
    ),
    ("filter other;", "8: a filter in a term"),
];

#[test]
fn conditions_have_problems_at_their_columns() {
    for (conditions, expected) in CONDITIONS {
        let text = filter_with(conditions);
        let messages = problems(&text);
        assert_eq!(messages.len(), 1, "{conditions}: {messages:?}");
        let position = if expected.starts_with("2:") { "" } else { "6:" };
        // The conditions are on a line of their own after `from { `.
        let expected = format!("{position}{expected};");
        let text_line = text.lines().nth(5).unwrap();
        assert!(text_line.starts_with("from { "), "{text_line}");
        assert!(
            messages[0].starts_with(&expected),
            "{conditions}: {messages:?} {expected}"
        );
    }
}

/// Commands, and their problem.
const COMMANDS: &[(&str, &str)] = &[
    (
        "set firewall family mpls filter f term t then accept",
        "2:33: a filter of the family `mpls`",
    ),
    (
        "set firewall family any filter f term t then accept",
        "2:32: a filter of the family `any`",
    ),
    (
        "set firewall family inet service-filter f term t then skip",
        "2:26: `service-filter` of `firewall`",
    ),
    (
        "set firewall family inet filter f term t then accept now",
        "2:54: `now`",
    ),
    (
        "set firewall filter f term t then count x accept",
        "2:43: `accept`",
    ),
    (
        "set firewall filter f term t then next filter",
        "2:35: `next filter`",
    ),
    ("set firewall filter f term t then next", "2:35: `next`"),
    (
        "set firewall filter f term t then explode",
        "2:35: the action `explode`",
    ),
    (
        "set firewall filter f term t filter g",
        "2:30: a filter in a term",
    ),
    ("set firewall filter f term t to x", "2:30: `to` of a term"),
    (
        "set firewall filter f chains x",
        "2:23: `chains` of a filter",
    ),
    (
        "set firewall filter f term t then accept\nset firewall filter f term t then discard",
        "3:35: `discard` after another terminating action",
    ),
    (
        "set firewall filter f term t then next term\nset firewall filter f term t then accept",
        "3:35: `accept` after another terminating action",
    ),
    (
        "set firewall filter f term t\nset firewall family inet filter f term t",
        "3:33: a second filter `f`",
    ),
    ("delete firewall filter f", "2:1: the command `delete`"),
    (
        "insert firewall filter f term a before term b",
        "2:1: the command `insert`",
    ),
    (
        "rename firewall filter f to filter g",
        "2:1: the command `rename`",
    ),
    ("edit firewall", "2:1: the command `edit`"),
    ("sets firewall filter f", "2:1: `sets`"),
    ("set", "2:1: a command without a statement"),
    (
        "set firewall filter f term t from protocol [ tcp",
        "2:1: a list that does not end",
    ),
    (
        "set firewall filter f term t from protocol [ tcp ] udp",
        "2:52: `udp`",
    ),
    (
        "set logical-systems a firewall filter f term t",
        "2:23: `firewall` of `logical-systems`",
    ),
    (
        "set policy-options prefix-list p apply-path \"protocols bgp <*>\"\nset groups g protocols bgp x\nset firewall filter f term t from prefix-list p",
        "2:46: `apply-path` through statements that a group may have",
    ),
    (
        "set policy-options prefix-list p 2001:db8::/32\nset firewall filter f term t from prefix-list p",
        "3:47: a prefix list without prefixes of the filter's family",
    ),
    (
        "set security policies from-zone any to-zone b policy p then deny",
        "2:33: the zone `any` outside of global policies",
    ),
    (
        "set security policies from-zone a policy p",
        "2:35: `policy`",
    ),
    (
        "set security policies global rule x",
        "2:30: `rule` in a list of policies",
    ),
    (
        "set security policies unknown",
        "2:23: `unknown` of `security policies`",
    ),
    (
        "set security policies default-policy accept",
        "2:38: `accept`",
    ),
    (
        "set security policies global policy p then deny",
        "2:37: the policy `p` has no `source-address`",
    ),
    (
        "set security policies global policy p match source-address any",
        "2:37: the policy `p` has no action",
    ),
];

#[test]
fn commands_have_problems_at_their_columns() {
    for (commands, expected) in COMMANDS {
        let messages = problems(&format!("set system host-name x\n{commands}\n"));
        assert_eq!(messages.len(), 1, "{commands}: {messages:?}");
        assert!(
            messages[0].starts_with(&format!("{expected};")),
            "{commands}: {messages:?}"
        );
    }
}

/// Values of a security policy, and the problem. The values begin at column 51 of line 2.
const POLICY_PARTS: &[(&str, &str)] = &[
    (
        "match source-address nowhere",
        "the address `nowhere` is not in an address book",
    ),
    ("match destination-address bad", "`10.0.0.400`"),
    (
        "match destination-address two",
        "the address `two` has 2 values",
    ),
    (
        "match destination-address empty",
        "the address set `empty` is empty",
    ),
    (
        "match destination-address lost",
        "`gone` is not in the address book",
    ),
    ("match destination-address range", "`10.0.0.9` without `to`"),
    (
        "match destination-address down",
        "`10.0.0.9` with a range whose first address is not below its last address",
    ),
    (
        "match application nothing",
        "the application `nothing` is not in the file",
    ),
    (
        "match application junos-nothing",
        "the predefined application `junos-nothing`",
    ),
    (
        "match application ports",
        "an application without a protocol",
    ),
    (
        "match application both",
        "`protocol` in an application with terms",
    ),
    ("match application twice", "a second value of `protocol`"),
    (
        "match application loop",
        "the application set `loop` has itself",
    ),
    ("match application ether", "`ether-type` in an application"),
    ("match weather sunny", "the condition `weather` of a policy"),
    ("then reject", "`reject` after another action"),
    ("then trace", "the action `trace` of a policy"),
    (
        "then permit destination-address drop-translated",
        "`destination-address` after `permit`",
    ),
    ("until tomorrow", "`until` in a policy"),
];

#[test]
fn policies_have_problems() {
    let definitions = "
set security address-book global address bad 10.0.0.400
set security address-book global address two 10.0.0.4/32
set security address-book global address two dns-name x.example
set security address-book global address range range-address 10.0.0.9
set security address-book global address down range-address 10.0.0.9 to 10.0.0.8
set security address-book global address-set empty description x
set security address-book global address-set lost address gone
set applications application ports destination-port 80
set applications application both protocol tcp
set applications application both term t protocol tcp
set applications application twice protocol tcp
set applications application twice protocol udp
set applications application ether protocol tcp ether-type 0x800
set applications application-set loop application-set loop
";
    for (part, expected) in POLICY_PARTS {
        let mut text = String::from("set system host-name x\n");
        for own in [
            "match source-address any",
            "match destination-address any",
            "match application any",
            "then permit",
        ] {
            let keyword = own.rsplit_once(' ').unwrap().0;
            if !part.starts_with(keyword) || keyword == "then" {
                text += &format!("set security policies global policy p {own}\n");
            }
        }
        text += &format!("set security policies global policy p {part}\n{definitions}");
        let messages = problems(&text);
        assert_eq!(messages.len(), 1, "{part}: {messages:?}");
        assert!(
            messages[0].contains(&format!(": {expected}")),
            "{part}: {messages:?}"
        );
    }
}

#[test]
fn broken_blocks_end_reading() {
    for (text, expected) in [
        ("firewall {", "1:10: a block that does not end"),
        (
            "firewall { filter f { term t }",
            "1:30: `}`; expected `;` at the end",
        ),
        (
            "firewall { filter",
            "1:12: the file ends in the statement `filter`",
        ),
        ("firewall { }\n}", "2:1: `}` without a block"),
        ("{ }", "1:1: `{`"),
        (
            "firewall { filter \"f",
            "1:19: a text in quotation marks that does not end",
        ),
        ("firewall { /* x", "1:12: a comment that does not end"),
        ("firewall { filter [ a b ] c; }", "1:27: `c`"),
        ("firewall { filter [ a; b ] c; }", "1:22: `;`"),
        ("firewall { [ a ] }", "1:12: `[`"),
        (
            "firewall { rename: filter f; }",
            "1:12: `rename:` before a statement",
        ),
    ] {
        let messages = problems(text);
        assert_eq!(messages.len(), 1, "{text}: {messages:?}");
        assert!(messages[0].starts_with(expected), "{text}: {messages:?}");
        let loaded = try_load(text, &ReadOptions::DEFAULT.with_skip_bad(true)).unwrap();
        assert!(loaded.config.sources.is_empty(), "{text}");
    }
    let deep = "a { ".repeat(200_000);
    assert!(
        problems(&deep)[0].contains("more than 128"),
        "{:?}",
        problems(&deep)
    );
    let long = format!("set {}\n", "a ".repeat(200_000));
    assert!(
        problems(&long)[0].contains("more than 128"),
        "{:?}",
        problems(&long)
    );
}

#[test]
fn good_terms_are_kept_without_bad_ones() {
    let text = "firewall { filter f {\nterm a { from { protocol tcp; } then accept; }\n\
        term b { from { ether-type arp; } then accept; }\nterm c { then accept; }\n} }\n";
    let options = ReadOptions::DEFAULT.with_skip_bad(true);
    let loaded = try_load(text, &options).unwrap();
    loaded.check(
        "list=f src=1.1.1.1 dst=2.2.2.2",
        "permit 2 proto=6\npermit 4 proto=17",
    );
    assert_eq!(
        loaded.config.skipped.by_reason(),
        [("the condition `ether-type`", 1)]
    );
    let error = try_load(text, &ReadOptions::DEFAULT.with_limit(2));
    assert!(matches!(
        error,
        Err(ReadError::Limit {
            line: 1,
            limit: 2,
            ..
        })
    ));
}

#[test]
fn conditions_and_expansions_have_limits() {
    let mut text = String::from("set system host-name x\n");
    for number in 0..200 {
        text += &format!("set firewall filter f term t{number} from ttl {number}\n");
    }
    let messages = problems(&text);
    assert!(
        messages[0].starts_with("130:38: more than 128 different conditions"),
        "{messages:?}"
    );
    let mut text = String::from("set system host-name x\n");
    for number in 0..300 {
        text += &format!(
            "set firewall filter f term t from source-port {}\n",
            2 * number
        );
        text += &format!(
            "set firewall filter f term t from destination-port {}\n",
            2 * number
        );
    }
    assert!(
        problems(&text)[0].contains("more than 65536 matches"),
        "{:?}",
        problems(&text)
    );
}

/// Pieces that are inserted into texts.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ";",
    "\"",
    "\n",
    " ",
    "/*",
    "*/",
    "#",
    "\\",
    "<",
    ">",
    "<*>",
    "inactive:",
    "replace:",
    "delete:",
    "except",
    "term",
    "from",
    "then",
    "any",
    "apply-groups",
    "0",
    "-",
    "/",
    "::/0",
    "é",
    "\u{1}",
    "99999999999999999999",
    "!",
    "(",
    "&",
    "set ",
    "deactivate ",
    "*",
    "[a-",
];

fn mutate(text: &str, mutations: usize, seed: u64) {
    let options = ReadOptions::DEFAULT.with_skip_bad(true);
    for end in (0..=text.len()).step_by(5) {
        let _ = try_load(&text[..end], &ReadOptions::DEFAULT);
        let _ = try_load(&text[..end], &options);
        let _ = try_load(&text[end..], &options);
    }
    let mut random = Random::new(seed);
    for _ in 0..mutations {
        let mut bytes: Vec<char> = text.chars().collect();
        for _ in 0..=random.below(5) {
            let position = random.below(bytes.len());
            let length = random.below(12).min(bytes.len() - position);
            let piece: Vec<char> = match random.below(3) {
                0 => Vec::new(),
                1 => random.pick(PIECES).chars().collect(),
                _ => {
                    let start = random.below(bytes.len());
                    let end = (start + random.below(40)).min(bytes.len());
                    bytes[start..end].to_vec()
                }
            };
            bytes.splice(position..position + length, piece);
            if bytes.is_empty() {
                break;
            }
        }
        let _ = try_load(&bytes.into_iter().collect::<String>(), &options);
    }
}

#[test]
fn broken_texts_never_panic() {
    let blocks = "groups { g { firewall { filter <*> { term <*> { then { count c; } } } } } }
apply-groups g;
policy-options { prefix-list p { 10.0.0.0/8; apply-path \"interfaces <*> unit <*> address <*>\"; } }
interfaces { ge-0/0/0 { unit 0 { address 10.7.0.1/24; filter { input f; } } } }
firewall { filter f { /* c */ term a { from { source-prefix-list { p except; } source-address { 0.0.0.0/0; }
  protocol [ tcp udp ]; tcp-flags \"(syn & !ack) | fin\"; port 1-10; fragment-offset-except 3; ttl 4; }
  then { log; next term; } } inactive: term b; term c { then { reject; } } }
 family inet6 { filter f { term a { from { next-header [ fragment 6 ]; address 2001:db8::/32; } } } } }
applications { application a { term t1 protocol tcp destination-port 80; } application-set s { application a; } }
security { address-book { global { address x { range-address 10.0.0.1 { to { 10.0.0.9; } } } address-set y { address x; } } }
 policies { from-zone a to-zone b { policy p { match { source-address y; destination-address any; application s; } then { permit; } } }
 default-policy { deny-all; } } }
";
    mutate(blocks, 4000, 1);
    let commands = "set groups g firewall filter <*> term <*> then count c
set apply-groups g
set policy-options prefix-list p apply-path \"interfaces <*> unit <*> address <*>\"
set interfaces ge-0/0/0 unit 0 address 10.7.0.1/24
set firewall filter f term a from source-prefix-list p except
set firewall filter f term a from tcp-flags \"!(syn | ack)\"
deactivate firewall filter f term a from
set applications application a protocol udp destination-port 1-9
set security address-book global address x wildcard-address 10.0.0.1/255.0.0.255
set security policies global policy p match source-address x destination-address any application a source-address-excluded
set security policies global policy p then deny
";
    mutate(commands, 4000, 2);
}
