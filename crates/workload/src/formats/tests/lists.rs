//! Tests of lines that become several rules: lists, negations, ranges of addresses.

use classyard::KeyVec;
use classyard::policy::PartId;

use super::round_trips::Dice;
use super::*;

fn rules(text: &str) -> Loaded<Policy> {
    let loaded = read_policy("f", text, None, None, &ReadOptions::default());
    loaded.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns each rule as text, in file order, with its priority.
fn shown(policy: &Policy) -> Vec<String> {
    let rules = policy.ids().iter().map(|&id| {
        let parts: Vec<_> = policy.rule(id).collect();
        let families = parts.iter().map(|(part, _)| ["4", "6"][part.index()]);
        let priority = parts[0].1.priority();
        format!("{priority} {} {}", families.collect::<String>(), parts[0].1)
    });
    rules.collect()
}

#[test]
fn a_line_becomes_the_rules_that_it_needs() {
    let cases: [(&str, &[&str]); 13] = [
        ("dport=80,443", &["2 46 dport=80", "1 46 dport=443"]),
        ("dport=80,81,70-90", &["1 46 dport=70-90"]),
        ("dport=!80", &["2 46 dport=0-79", "1 46 dport=81-65535"]),
        ("dport=!0-1023,2000-65535", &["1 46 dport=1024-1999"]),
        (
            "src=10.0.0.1-10.0.0.4",
            &[
                "3 4 src=10.0.0.1",
                "2 4 src=10.0.0.2/31",
                "1 4 src=10.0.0.4",
            ],
        ),
        (
            "src=10.0.0.0/255.255.0.0 dst=192.0.2.1",
            &["1 4 src=10.0.0.0/16 dst=192.0.2.1"],
        ),
        (
            "src=!128.0.0.0/2",
            &["2 4 src=0.0.0.0/1", "1 4 src=192.0.0.0/2"],
        ),
        // A list has addresses of both families; each rule is of one.
        (
            "src=10.0.0.0/8,2001:db8::/32 dport=1,3",
            &[
                "4 4 src=10.0.0.0/8 dport=1",
                "3 4 src=10.0.0.0/8 dport=3",
                "2 6 src=2001:db8::/32 dport=1",
                "1 6 src=2001:db8::/32 dport=3",
            ],
        ),
        (
            "src=10.0.0.0/8,2001:db8::/32 dst=::1",
            &["1 6 src=2001:db8::/32 dst=::1"],
        ),
        ("family=ipv6 dport=1,3", &["2 6 dport=1", "1 6 dport=3"]),
        (
            "proto=tcp tcp_flags=+syn-ack state=established,related",
            &["1 46 proto=tcp tcp_flags=+syn-ack state=established-related"],
        ),
        (
            "tcp_flags=+syn,-ack",
            &["2 46 tcp_flags=+syn", "1 46 tcp_flags=-syn-ack"],
        ),
        ("any", &["1 46 any"]),
    ];
    for (line, expected) in cases {
        let loaded = rules(&format!("schema acl\nallow {line}\n"));
        assert_eq!(shown(&loaded.value), expected, "{line}");
        assert_eq!(loaded.rule_lines, vec![2; expected.len()]);
        let text = loaded.statement_texts.get(&0).map(String::as_str);
        let line = format!("allow {line}");
        assert_eq!(text, (expected.len() > 1).then_some(line.as_str()));
    }
}

/// Lines after a line of several rules keep their order, and priorities count rules.
#[test]
fn rules_of_one_line_have_its_name_and_rank() {
    let text = "schema ipv4-5tuple\ndrop dport=1,3 name=odd\nallow\ndrop proto=6-7\n";
    let policy = rules(text).value;
    assert_eq!(
        shown(&policy),
        [
            "5 4 dport=1",
            "4 4 dport=3",
            "3 4 any",
            "2 4 proto=tcp",
            "1 4 proto=7"
        ]
    );
    let names: Vec<_> = policy
        .ids()
        .iter()
        .map(|&id| policy.rule_name(id))
        .collect();
    assert_eq!(names, [Some("odd"), Some("odd"), None, None, None]);
    let with_priorities = "schema ipv4-5tuple\ndrop dport=1,3 priority=9\nallow priority=4\n";
    let policy = rules(with_priorities).value;
    assert_eq!(shown(&policy), ["9 4 dport=1", "9 4 dport=3", "4 4 any"]);
}

/// Of a line that cannot be added, no rule is.
#[test]
fn a_bad_line_of_several_rules_adds_none() {
    let text = "schema ipv4-5tuple\nallow id=2\ndrop dport=1,3,5\n";
    let loaded = read_policy(
        "f",
        text,
        None,
        None,
        &ReadOptions::default().with_skip_bad(true),
    );
    let loaded = loaded.unwrap();
    assert_eq!(shown(&loaded.value), ["4 4 any"]);
    assert_eq!(loaded.skipped.total(), 1);
    let options = ReadOptions::default().with_limit(2);
    let text = "schema ipv4-5tuple\nallow\ndrop dport=1,3\n";
    let error = read_policy("f", text, None, None, &options).unwrap_err();
    assert!(error.to_string().contains("2 rules"), "{error}");
}

/// Every header of random lines of a small schema, against the values that the text names.
#[test]
fn lists_decide_as_they_read() {
    let kinds = ["exact", "prefix", "range", "ternary"];
    for kind in kinds {
        let fields = format!(
            "name = \"small\"\n[[field]]\nname = \"a\"\nwidth = 3\nkind = \"{kind}\"\n\
             [[field]]\nname = \"b\"\nwidth = 3\nkind = \"range\"\n"
        );
        let schema = read_schema("small.toml", &fields).unwrap();
        let choice = SchemaChoice::Single(Arc::clone(&schema));
        for number in 0..2_000u32 {
            let digit = |at: u32| number.wrapping_mul(2_654_435_761) >> (at * 3) & 7;
            let (low, high) = (digit(1).min(digit(2)), digit(1).max(digit(2)));
            let sign = if digit(3) & 1 == 0 { "!" } else { "" };
            let line = format!(
                "allow a={sign}{},{low}-{high},{}&{} b={},{}\n",
                digit(0),
                digit(4),
                digit(5),
                digit(6),
                digit(7),
            );
            let in_list = |value: u32| {
                value == digit(0)
                    || (low..=high).contains(&value)
                    || (value ^ digit(4)) & digit(5) == 0
            };
            let loaded = read_policy(
                "f",
                &line,
                Some(RuleFormat::Rules),
                Some(&choice),
                &ReadOptions::default(),
            );
            let policy = match loaded {
                Ok(loaded) => loaded.value,
                Err(error) => {
                    assert!(
                        (0..8).all(|a| in_list(a) == (sign == "!")),
                        "{line}: {error}"
                    );
                    continue;
                }
            };
            for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
                let expected = in_list(a) != (sign == "!") && (b == digit(6) || b == digit(7));
                let mut keys = KeyVec::new(&schema);
                keys.push(&[a.into(), b.into()]).unwrap();
                let rules = policy.part(PartId::FIRST).iter();
                let matching = rules.filter(|rule| rule.matches(keys.key(0))).count();
                assert_eq!(matching, usize::from(expected), "{line}: {a} {b}");
            }
        }
    }
}

/// Rules on one line of JSON stay apart; rules of one object belong together.
#[test]
fn rules_of_json_are_statements() {
    let text = "{\"schema\": \"acl\", \"rules\": [{\"action\": \"deny\"}, {\"action\": \"allow\", \
                \"dport\": [80, \"443\", \"8000-8999\"], \"src\": \"!10.0.0.0/1\", \"name\": \"w\\\"x\"}, \
                {\"action\": \"deny\", \"in\": \"a\\\\x20b\"}]}";
    let loaded = rules(text);
    assert_eq!(
        shown(&loaded.value),
        [
            "5 46 any",
            "4 4 src=128.0.0.0/1 dport=80",
            "3 4 src=128.0.0.0/1 dport=443",
            "2 4 src=128.0.0.0/1 dport=8000-8999",
            "1 46 in=a\\x20b",
        ]
    );
    assert_eq!(loaded.rule_lines, [1; 5]);
    assert_eq!(loaded.statement_of_rule, [0, 1, 1, 1, 2]);
    let texts: Vec<_> = loaded.statement_texts.keys().collect();
    assert_eq!(texts, [&1]);
    let id = loaded.value.ids()[2];
    assert_eq!(loaded.value.rule_name(id), Some("w\"x"));
}

/// Reading takes time in proportion to the text, also if all rules are on one line.
#[test]
fn a_line_of_json_may_have_all_rules() {
    let rule = |number: u32| format!("{{\"action\": \"deny\", \"dport\": {number}}}");
    let rules: Vec<String> = (0..70_000).map(rule).collect();
    let text = format!("{{\"schema\": \"acl\", \"rules\": [{}]}}", rules.join(", "));
    let options = ReadOptions::default().with_skip_bad(true);
    let loaded = read_policy("f", &text, None, None, &options).unwrap();
    assert_eq!(loaded.value.len(), 65_536);
    assert_eq!(loaded.skipped.total(), 70_000 - 65_536);
    let column = text.find("65536}").unwrap() + 1;
    assert_eq!(loaded.skipped.shown()[0].column, column);
}

/// Lists without masks with holes are written as lists again.
#[test]
fn rules_of_one_statement_are_written_as_one() {
    let lines = [
        "schema acl",
        "allow src=192.0.2.1-192.0.2.3,192.0.2.8 proto=tcp dport=80,443,8000-8999 name=web",
        "deny  dport=22,3389",
        "allow in=a,b*",
        "deny",
    ];
    let loaded = rules(&lines.join("\n"));
    for format in [RuleFormat::Rules, RuleFormat::Json] {
        let mut written = Vec::new();
        let report = write_statements(
            &loaded.value,
            &loaded.statement_of_rule,
            format,
            &mut written,
        );
        let report = report.unwrap();
        assert_eq!((report.rules, report.lines), (14, 4));
        assert!(!report.is_exact());
        let text = String::from_utf8(written).unwrap();
        let dport = match format {
            RuleFormat::Json => "\"dport\": \"80,443,8000-8999\"",
            _ => "dport=80,443,8000-8999",
        };
        assert!(text.contains(dport), "{text}");
        let again = rules(&text);
        assert_eq!(again.statement_of_rule, loaded.statement_of_rule);
        let sorted = |policy: &Policy| {
            let mut shown = shown(policy);
            shown
                .iter_mut()
                .for_each(|line| *line = line.split_off(line.find(' ').unwrap()));
            shown.sort();
            shown
        };
        assert_eq!(sorted(&again.value), sorted(&loaded.value));
    }
    // Given ids and priorities are kept, so rules stay apart.
    let loaded = rules("schema acl\nallow dport=80,443 priority=7\ndeny priority=1\n");
    let mut written = Vec::new();
    let format = RuleFormat::Rules;
    let report = write_statements(
        &loaded.value,
        &loaded.statement_of_rule,
        format,
        &mut written,
    );
    assert_eq!(report.unwrap().lines, 3);
}

/// Every header of random lines, before and after.
#[test]
fn joined_rules_decide_alike() {
    for kind in ["exact", "prefix", "range", "ternary"] {
        let fields = format!(
            "name = \"small\"\n[[field]]\nname = \"a\"\nwidth = 3\nkind = \"{kind}\"\n\
             [[field]]\nname = \"b\"\nwidth = 3\nkind = \"range\"\n"
        );
        let schema = read_schema("small.toml", &fields).unwrap();
        let choice = SchemaChoice::Single(Arc::clone(&schema));
        let mut joined = 0;
        for seed in 0..300 {
            let mut dice = Dice::new(seed);
            let mut digit = || dice.below(8);
            let line = |action: &str, digits: [u64; 8]| {
                let [a, b, c, d, e, f, g, h] = digits;
                format!(
                    "{action} a={a},{b},{c}&{d} b={e},{f},{}-{}\n",
                    g.min(h),
                    g.max(h)
                )
            };
            let actions = ["allow", "deny", "deny", "allow"];
            let lines = actions.map(|action| line(action, std::array::from_fn(|_| digit())));
            let options = ReadOptions::default();
            let read = |text: &str| {
                read_policy("f", text, Some(RuleFormat::Rules), Some(&choice), &options).unwrap()
            };
            let first = read(&lines.concat());
            let mut written = Vec::new();
            let numbers = &first.statement_of_rule;
            let report = write_statements(&first.value, numbers, RuleFormat::Rules, &mut written);
            let report = report.unwrap();
            joined += report.rules - report.lines;
            let text = String::from_utf8(written).unwrap();
            let rules = text.split_once('\n').unwrap().1;
            let second = read(rules);
            for header in 0..64u32 {
                let mut keys = KeyVec::new(&schema);
                keys.push(&[(header % 8).into(), (header / 8).into()])
                    .unwrap();
                let action = |policy: &Policy| {
                    let id = policy.part(PartId::FIRST).scan(keys.key(0)).rule()?;
                    let action = policy.rule(id).next()?.1.action();
                    policy.action_name(action).map(str::to_owned)
                };
                assert_eq!(
                    action(&first.value),
                    action(&second.value),
                    "{lines:?}\n{text}"
                );
            }
        }
        assert!(joined > 300, "{kind}: {joined}");
    }
}
