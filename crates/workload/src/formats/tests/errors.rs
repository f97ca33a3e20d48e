//! Tests of mistakes: line, column and message of each.

use super::*;
use crate::diagnostic::SHOWN;

const ALL: ReadOptions = ReadOptions {
    skip_bad: false,
    ..ReadOptions::DEFAULT
};

const SKIP: ReadOptions = ReadOptions {
    skip_bad: true,
    ..ReadOptions::DEFAULT
};

/// Reads a text and returns its problems as `line:column: message`.
fn problems(text: &str, format: RuleFormat, schema: Option<&SchemaChoice>) -> Vec<String> {
    match read_policy("f", text, Some(format), schema, &ALL) {
        Ok(loaded) => panic!("{text:?} was read as {:?}", loaded.value),
        Err(ReadError::Bad(problems)) => problems.shown().iter().map(ToString::to_string).collect(),
        Err(other) => vec![other.to_string()],
    }
}

#[track_caller]
fn assert_problem(text: &str, format: RuleFormat, schema: Option<&SchemaChoice>, expected: &str) {
    let found = problems(text, format, schema);
    assert_eq!(found.len(), 1, "{text:?}: {found:#?}");
    assert!(
        found[0].starts_with(expected),
        "{text:?}\n   found {}\nexpected {expected}",
        found[0]
    );
}

#[test]
fn classbench_mistakes() {
    let tail = "\t0 : 65535\t80 : 80\t0x06/0xFF\t0x0000/0x0200\t";
    let cases = [
        (
            "10.0.0.0/8\t1.2.3.4/32",
            "1:1: `10.0.0.0/8`; expected `@` and",
        ),
        // Ports at the place of the destination.
        ("@10.0.0.0/8", "1:13: `0` has no prefix length"),
        ("@10.0.0/8\t1.2.3.4/32", "1:2: `10.0.0` is not an address"),
        (
            "@10.0.0.256/8\t1.2.3.4/32",
            "1:2: `10.0.0.256` is not an address",
        ),
        (
            "@10.0.0.01/8\t1.2.3.4/32",
            "1:2: `10.0.0.01` is not an address",
        ),
        (
            "@10.0.0.0\t1.2.3.4/32",
            "1:2: `10.0.0.0` has no prefix length",
        ),
        (
            "@10.0.0.0/33\t1.2.3.4/32",
            "1:11: prefix length /33 is longer than the field's 32 bits; expected a length of 0 to 32",
        ),
        (
            "@10.0.0.0/-1\t1.2.3.4/32",
            "1:11: `-1` is not a prefix length",
        ),
        ("@10.0.0.0/8\t1.2.3.4/", "1:21: `` is not a prefix length"),
        (
            "@::/129\t::/0",
            "1:5: prefix length /129 is longer than the field's 128",
        ),
        (
            "@::/0\t1.2.3.4/32",
            "1:7: `1.2.3.4/32` is of another family than the source; expected an IPv6 prefix",
        ),
        (
            "@1.2.3.4/32  ::/0",
            "1:14: `::/0` is of another family than the source; expected an IPv4 prefix",
        ),
    ];
    for (head, expected) in cases {
        let text = format!("{head}{tail}\n");
        assert_problem(&text, RuleFormat::Classbench, None, expected);
    }
    let head = "@10.0.0.0/8\t1.2.3.4/32";
    let cases = [
        (
            "",
            "1:23: the line ends here; expected the source ports as LOW : HIGH",
        ),
        ("\t0", "1:25: the line ends here; expected the source ports"),
        (
            "\t0 :",
            "1:27: the line ends here; expected the source ports",
        ),
        ("\t0 - 5\t", "1:26: `-`; expected `:`"),
        ("\tx : 5\t", "1:24: `x`; expected the source ports"),
        ("\t0 : 5x\t", "1:29: `x`; expected a tab"),
        (
            "\t0 : 65536\t",
            "1:28: port `65536` does not fit in 16 bits; expected at most 65535",
        ),
        (
            "\t9 : 8\t",
            "1:24: the range `9 : 8` is inverted; expected the lower end first",
        ),
        ("\t9:8\t", "1:24: the range `9:8` is inverted"),
        ("\t0 : 1\t2 : 1\t", "1:30: the range `2 : 1` is inverted"),
        (
            "\t0 : 1\t1 : 1",
            "1:35: the line ends here; expected the protocol as",
        ),
        ("\t0 : 1\t1 : 1\t6", "1:36: `6`; expected the protocol as"),
        (
            "\t0 : 1\t1 : 1\t0x06/0x0F",
            "1:41: protocol mask `0x0F`; expected 0x00",
        ),
        (
            "\t0 : 1\t1 : 1\t0x106/0xFF",
            "1:36: `0x106` is too large; expected at most 0xff",
        ),
        (
            "\t0 : 1\t1 : 1\t0x6/0xFG",
            "1:40: `0xFG`; expected the protocol",
        ),
        (
            "\t0 : 1\t1 : 1\t0x6/0xFF\tyes",
            "1:45: `yes`; expected flags as",
        ),
        (
            "\t0 : 1\t1 : 1\t0x6/0xFF\t0x10000/0x0",
            "1:45: `0x10000` is too large",
        ),
    ];
    for (tail, expected) in cases {
        assert_problem(
            &format!("{head}{tail}"),
            RuleFormat::Classbench,
            None,
            expected,
        );
    }
    // Line numbers count blank lines, and CRLF is not part of a line.
    let text = format!("\u{feff}\r\n{head}\t0 : 1\t1 : 1\t0x06/0xFF\r\n\r\n{head}\t3\r\n");
    assert_problem(
        &text,
        RuleFormat::Classbench,
        None,
        "4:25: the line ends here",
    );
    let v6 = SchemaChoice::named("ipv6-5tuple").unwrap();
    assert_problem(
        &format!("{head}{}", "\t0 : 1\t1 : 1\t0x06/0xFF"),
        RuleFormat::Classbench,
        Some(&v6),
        "1:2: an IPv4 address in a file read as `ipv6-5tuple`; expected addresses of the schema",
    );
    let openflow = SchemaChoice::named("openflow15").unwrap();
    assert_problem(
        head,
        RuleFormat::Classbench,
        Some(&openflow),
        "f: schema `openflow15` was asked for",
    );
}

#[test]
fn rule_mistakes() {
    let cases = [
        (
            "allow src=10.0.0.1/33",
            "2:20: prefix length /33 is longer than the field's 32 bits; expected a length of 0 to 32",
        ),
        (
            "allow src=10.0.0",
            "2:11: `10.0.0` is not a value of `src`; expected an IPv4 address",
        ),
        ("allow src=::1", "2:11: `::1` is not a value of `src`"),
        (
            "allow src=",
            "2:11: `src` has no value here; expected an IPv4",
        ),
        (
            "allow src=\"10.0.0.1\"",
            "2:11: `\"10.0.0.1\"` is not a value",
        ),
        (
            "allow src=10.0.0.0/255.0.255.0",
            "2:20: `255.0.255.0` is no netmask; expected a mask of ones and then zeros",
        ),
        (
            "allow dport=80,443, proto=tcp",
            "2:20: `dport` has no value here",
        ),
        ("allow dport=80,!443", "2:16: `!443` is not a value"),
        (
            "allow dport=!1-65535,0",
            "2:7: no value of `dport` meets `dport=!1-65535,0`; expected a condition that",
        ),
        (
            "allow dport=1,3 id=7",
            "2:20: an id, but the line becomes 2 rules; expected no id here",
        ),
        (
            "allow sport=!5 dport=!5 src=!10.0.0.0 dst=!10.0.0.0 proto=!tcp",
            "2:1: `allow sport=!5",
        ),
        (
            "allow dport=90-80",
            "2:13: the range `90-80` is inverted; expected the lower end first",
        ),
        (
            "allow dport=70000",
            "2:13: `70000` does not fit in the 16 bits of `dport`; expected at most 65535",
        ),
        ("allow dport=80-70000", "2:16: `70000` does not fit"),
        ("allow dport=+80", "2:13: `+80` is not a value of `dport`"),
        ("allow dport=1&70000", "2:15: `70000` does not fit"),
        (
            "allow proto=tcpp",
            "2:13: `tcpp` is not a value of `proto`; expected a protocol name",
        ),
        (
            "allow  sorc=1",
            "2:8: unknown field `sorc`; expected one of src, dst, sport, dport, proto, id, name, priority",
        ),
        (
            "allow dport=1 src=* dport=2",
            "2:21: `dport` is set twice in this rule",
        ),
        ("allow src=* src=*", "2:13: `src` is set twice"),
        ("allow name=a name=b", "2:14: `name` is set twice"),
        ("allow id=1 id=1", "2:12: `id` is set twice"),
        (
            "allow priority=1 priority=1",
            "2:18: `priority` is set twice",
        ),
        (
            "allow id=4294967295",
            "2:10: `4294967295` is not a rule id; expected a number of 0 to 4294967294",
        ),
        ("allow id=x", "2:10: `x` is not a rule id"),
        ("allow priority=-1", "2:16: `-1` is not a priority"),
        (
            "allow family=ipv4",
            "2:7: `family` in a file of schema `ipv4-5tuple`",
        ),
        ("allow all", "2:7: `all`; expected field=value"),
        ("dport=80", "2:1: `dport=80` where the action should be"),
        ("schema ipv6-5tuple", "2:1: a second `schema` line"),
        ("allow name=\"x", "2:12: a quote that is never closed"),
        ("allow name=x\"y\"", "2:13: a quote in the middle of a word"),
        ("\"a\"b", "2:3: a quote in the middle of a word"),
        ("\"a\\q\"", "2:3: unknown escape `\\q`; expected"),
    ];
    for (line, expected) in cases {
        let text = format!("schema ipv4-5tuple\n{line}\n");
        assert_problem(&text, RuleFormat::Rules, None, expected);
        let text = format!("# é\r\n\u{20}schema\tipv4-5tuple # x\r\n{line}");
        let expected = expected.replacen('2', "3", 1);
        assert_problem(&text, RuleFormat::Rules, None, &expected);
    }
}

#[test]
fn mistakes_in_json() {
    let rule = |text: &str| format!("{{\"schema\": \"ipv4-5tuple\", \"rules\": [\n  {text}\n]}}");
    let cases = [
        (
            "{\"action\": \"a\", \"dport\": 70000}",
            "2:28: `70000` does not fit",
        ),
        (
            "{\"action\": \"a\", \"dport\": [80, \"x\"]}",
            "2:34: `x` is not a value of `dport`",
        ),
        (
            "{\"action\": \"a\", \"dport\": \"80,x\"}",
            "2:32: `x` is not a value of `dport`",
        ),
        (
            "{\"action\": \"a\", \"dport\": \"8\\u0078\"}",
            "2:28: `8x` is not a value of `dport`",
        ),
        (
            "{\"action\": \"a\", \"dport\": null}",
            "2:28: `null`; expected a string",
        ),
        (
            "{\"action\": \"a\", \"dport\": [[1]]}",
            "2:29: `[1]`; expected a string",
        ),
        (
            "{\"action\": \"a\", \"port\": 1}",
            "2:20: unknown field `port`",
        ),
        (
            "{\"action\": \"a\", \"dport\": 1, \"dport\": 2}",
            "2:40: `dport` is set twice",
        ),
        (
            "{\"action\": \"a\", \"action\": \"b\"}",
            "2:29: `action` is set twice",
        ),
        ("{\"action\": 7}", "2:14: `7`; expected a string"),
        ("{\"dport\": 1}", "2:3: a rule without `action`"),
        (
            "{\"action\": \"a\", \"id\": -1}",
            "2:25: `-1`; expected a string or a number",
        ),
        ("[]", "2:3: no object; expected an object for each rule"),
        ("{\"action\": \"a\", }", "2:19: key must be a string"),
        ("{\n\"action\": \"a\",\n\"dport\": 1-2}", "4:11: "),
    ];
    for (text, expected) in cases {
        assert_problem(&rule(text), RuleFormat::Json, None, expected);
    }
    for (text, expected) in [
        ("{", "1:1: EOF while parsing an object"),
        ("[]", "1:1: invalid type"),
        (
            "{\"schema\": \"x\", \"rules\": []}",
            "1:12: unknown schema `x`",
        ),
        (
            "{\"schema\": \"acl\", \"rules\": {}}",
            "1:28: `rules` is no list",
        ),
        (
            "{\"schema\": \"acl\", \"rule\": [], \"rules\": []}",
            "1:27: the key `rule`",
        ),
        (
            "{\"schema\": \"acl\", \"schema\": \"acl\"}",
            "1:29: `schema` is set twice",
        ),
        (
            "{\"schema\": \"acl\"}",
            "f: the key `rules` is missing; expected the keys",
        ),
        (
            "{\"rules\": []}",
            "f: the key `schema` is missing; expected the keys",
        ),
        (
            "{\"schema\": {\"file\": \"a.toml\"}, \"rules\": []}",
            "1:12: schema file `a.toml`",
        ),
    ] {
        assert_problem(text, RuleFormat::Json, None, expected);
    }
    let acl = SchemaChoice::Acl;
    assert_problem(
        &rule(""),
        RuleFormat::Json,
        Some(&acl),
        "1:12: the file is for schema",
    );
    let text = "{\"rules\": [{\"action\": \"deny\"}]}";
    let loaded = read_policy("f", text, None, Some(&acl), &ALL).unwrap();
    assert_eq!(loaded.value.len(), 1);
}

#[test]
fn rule_files_that_disagree_with_themselves() {
    let head = "schema ipv4-5tuple\nallow dport=1\n";
    let cases = [
        (
            "allow priority=5",
            "3:7: `priority=5` here, but the rule in line 2 has no priority",
        ),
        (
            "allow id=0",
            "3:10: rule id 0 is taken by the rule in line 2",
        ),
    ];
    for (line, expected) in cases {
        assert_problem(&format!("{head}{line}"), RuleFormat::Rules, None, expected);
    }
    let text = "schema ipv4-5tuple\nallow priority=2\nallow  # c\nallow priority=3";
    assert_problem(
        text,
        RuleFormat::Rules,
        None,
        "3:1: no priority here, but the rule in line 2 has one",
    );
    let text = "schema ipv4-5tuple\nallow id=1\nallow";
    assert_problem(
        text,
        RuleFormat::Rules,
        None,
        "3:1: rule id 1 is taken by the rule in line 2",
    );
    let head = "schema dual-5tuple\n";
    let cases = [
        (
            "allow src=10.0.0.1 dst=::1",
            "2:20: `dst=::1` is IPv6, but what stands before it on this line is IPv4",
        ),
        (
            "allow src=::1 dst=10.0.0.1",
            "2:15: `dst=10.0.0.1` is IPv4, but what stands before it on this line is IPv6",
        ),
        (
            "allow family=ipv6 dst=10.0.0.1",
            "2:19: `dst=10.0.0.1` is IPv4",
        ),
        (
            "allow dst=10.0.0.1 family=ipv6",
            "2:20: `family=ipv6` is IPv6",
        ),
        (
            "allow src=10 dport=80",
            "2:7: `src=10` could be an address of either family; expected an address such as",
        ),
        (
            "allow family=ipv5",
            "2:14: unknown family `ipv5`; expected ipv4 or ipv6",
        ),
        (
            "allow family=ipv4 family=ipv4",
            "2:19: `family` is set twice",
        ),
        (
            "allow dst=10.0.0.0/33",
            "2:20: prefix length /33 is longer than the field's 32 bits",
        ),
        (
            "allow dst=::/129",
            "2:14: prefix length /129 is longer than the field's 128 bits",
        ),
        (
            "allow foo=1",
            "2:7: unknown field `foo`; expected one of src, dst, sport, dport, proto, id, name, priority, family",
        ),
    ];
    for (line, expected) in cases {
        assert_problem(&format!("{head}{line}"), RuleFormat::Rules, None, expected);
    }
}

#[test]
fn schema_mistakes() {
    let cases = [
        (
            "allow src=1",
            "1:1: `allow` before any `schema` line; expected `schema NAME` first",
        ),
        (
            "schema",
            "1:7: the line ends here; expected `schema NAME` first, where NAME is ipv4-5tuple, ipv6-5tuple, openflow15, acl-ipv4, acl-ipv6, dual-5tuple, acl or",
        ),
        ("schema ipv5", "1:8: unknown schema `ipv5`; expected"),
        (
            "schema ipv4-5tuple x",
            "1:20: `x`; expected nothing after the schema",
        ),
        (
            "schema \"x.toml\"",
            "1:8: schema file `x.toml`: this text was not read from a file",
        ),
        ("schema \"x.toml", "1:8: a quote that is never closed"),
        ("", "f: there is no rule and no schema"),
    ];
    for (text, expected) in cases {
        assert_problem(text, RuleFormat::Rules, None, expected);
    }
    let v6 = SchemaChoice::named("ipv6-5tuple").unwrap();
    assert_problem(
        "schema ipv4-5tuple\nallow",
        RuleFormat::Rules,
        Some(&v6),
        "1:8: the file is for schema `ipv4-5tuple`; expected schema `ipv6-5tuple`, which was asked for",
    );
}

#[test]
fn a_format_must_be_recognised_or_said() {
    for (text, format) in [
        ("\n# x\n@1.2.3.4/32", Some(RuleFormat::Classbench)),
        ("\u{feff}schema ipv4-5tuple", Some(RuleFormat::Rules)),
        ("allow src=10.0.0.0/8", Some(RuleFormat::Rules)),
        ("NXST_FLOW reply (xid=0x4):\n", Some(RuleFormat::Ovs)),
        (
            " cookie=0x0, priority=1 actions=drop",
            Some(RuleFormat::Ovs),
        ),
        ("ip,actions=drop", Some(RuleFormat::Ovs)),
        ("hello world", None),
        ("", None),
    ] {
        assert_eq!(RuleFormat::detect(text), format, "{text:?}");
    }
    let error = read_policy("f", "\nhello", None, None, &ALL).unwrap_err();
    assert_eq!(
        error.to_string(),
        "f: line 2 is of no known format: `hello`; expected a file of the format classbench, rules, json or ovs, or to be told which it is"
    );
    assert!(read_policy("f", " \n", None, None, &ALL).is_err());
    for format in RuleFormat::ALL {
        assert_eq!(RuleFormat::from_name(format.name()), Some(format));
    }
}

#[test]
fn the_first_problems_are_listed_and_all_are_counted() {
    let text = format!("schema ipv4-5tuple\n{}", "allow bad=1\n".repeat(30));
    let Err(ReadError::Bad(problems)) = read_policy("f", &text, None, None, &ALL) else {
        panic!("bad lines were read");
    };
    assert_eq!((problems.shown().len(), problems.total()), (SHOWN, 30));
}

#[test]
fn good_lines_can_be_kept_and_keep_their_numbers() {
    let text = "schema ipv4-5tuple\nallow dport=1\nallow dport=x\ndeny dport=2\n";
    let loaded = read_policy("f", text, None, None, &SKIP).unwrap();
    let policy = loaded.value;
    assert_eq!(loaded.skipped.total(), 1);
    let rules: Vec<_> = policy
        .part(classyard::policy::PartId::FIRST)
        .iter()
        .collect();
    let numbers: Vec<_> = rules
        .iter()
        .map(|r| (r.id().get(), r.priority().0))
        .collect();
    assert_eq!(numbers, [(0, 3), (2, 1)]);
    let line = "@1.2.3.4/32\t1.2.3.4/32\t0 : 1\t0 : 1\t0x06/0xFF\n";
    let loaded = read_policy("f", &format!("{line}@x\n{line}"), None, None, &SKIP).unwrap();
    let ids: Vec<_> = loaded.value.ids().iter().map(|id| id.get()).collect();
    assert_eq!((ids, loaded.skipped.total()), (vec![0, 2], 1));
}

#[test]
fn more_rules_than_allowed_are_an_error() {
    let limit = ReadOptions {
        limit: 2,
        ..ReadOptions::default()
    };
    let line = "@1.2.3.4/32\t1.2.3.4/32\t0 : 1\t0 : 1\t0x06/0xFF\n";
    let files = [
        (line.repeat(3), "f:3: more than 2 rules"),
        (
            format!("schema ipv4-5tuple\n{}", "a\n".repeat(3)),
            "f:4: more than 2 rules",
        ),
        ("ip,actions=drop\n".repeat(3), "f:3: more than 2 rules"),
    ];
    for (text, expected) in files {
        let error = read_policy("f", &text, None, None, &limit)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(read_policy("f", &line.repeat(2), None, None, &limit).is_ok());
    let error = read_trace("f", "1 2 3 4 5\n1 2 3 4 5\n1 2 3 4 5", None, false, &limit);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("f:3: more than 2 headers"), "{error}");
}

#[test]
fn trace_mistakes() {
    let read = |text: &str, expected| match read_trace("f", text, None, expected, &ALL) {
        Err(ReadError::Bad(problems)) => problems.shown()[0].to_string(),
        other => panic!("{other:?}"),
    };
    for (text, found) in [
        (
            "1 2 3 4",
            "1:8: the line ends here; expected a column for `proto`: ipv4-5tuple has 5",
        ),
        ("1 2 3 4 tcq", "1:9: `tcq` is not a value of `proto`"),
        (
            "1\t2 3 4 256",
            "1:9: `256` does not fit in the 8 bits of `proto`",
        ),
        ("1 -2 3 4 5", "1:3: `-2` is not a value of `dst`"),
        (
            "4294967296 2 3 4 5",
            "1:1: `4294967296` does not fit in the 32 bits of `src`",
        ),
        (
            "::1 ::x 3 4 5",
            "1:5: `::x` is not a value of `dst`; expected an IPv6",
        ),
    ] {
        let problem = read(text, false);
        assert!(problem.starts_with(found), "{problem}");
    }
    for (text, found) in [
        (
            "1 2 3 4 5",
            "1:10: the line ends here; expected the number of the rule that wins",
        ),
        ("\n1 2 3 4 5 -2", "2:11: `-2` is not a rule number"),
        (
            "1 2 3 4 5 4294967295",
            "1:11: `4294967295` is not a rule number",
        ),
    ] {
        let problem = read(text, true);
        assert!(problem.starts_with(found), "{problem}");
    }
    let mixed = read_trace(
        "f",
        "1 2 3 4 tcp 9\r\n::1 ::2 3 4 0x11 -1",
        None,
        true,
        &ALL,
    )
    .unwrap();
    let trace = mixed.value;
    assert_eq!(trace.headers.len(), 2);
    let expected = vec![Some(RuleId::new(9).unwrap()), None];
    assert_eq!(trace.expected, Some(expected));
}

#[test]
fn very_long_lines_are_no_trouble() {
    let long = "x".repeat(1 << 20);
    let found = problems(&format!("@{long}"), RuleFormat::Classbench, None);
    assert!(found[0].starts_with("1:2:") && found[0].len() < 300);
    let text = format!(
        "schema ipv4-5tuple\nallow {}dport={long}",
        " ".repeat(1 << 20)
    );
    let found = problems(&text, RuleFormat::Rules, None);
    assert!(
        found[0].starts_with("2:1048589:") && found[0].len() < 300,
        "{}",
        found[0]
    );
    let text = format!("schema ipv4-5tuple\nallow name={long}");
    let policy = read_policy("f", &text, None, None, &ALL).unwrap().value;
    let name = policy.rule_name(RuleId::from_index(0)).unwrap();
    assert_eq!(name.len(), 1 << 20);
}
