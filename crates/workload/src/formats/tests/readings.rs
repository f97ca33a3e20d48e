//! Tests of actions, of the schemas of flow files, and of ignored columns.

use classyard::policy::PartId;
use classyard::{FieldMatch, Priority};

use super::round_trips::{said, trip};
use super::*;

/// Flags without a mask do not make rules different.
#[test]
fn rules_that_differ_in_what_is_left_out_are_counted() {
    let line = "@1.2.3.4/8\t1.2.3.4/32\t0 : 1\t0 : 1\t0x06/0xFF";
    let text = format!(
        "{line}\t0x1000/0x1000\n{line}\t0x0000/0x0200\n{line}\t0x1000/0x1000\n\
         @1.0.0.0/8\t1.2.3.4/32\t0 : 1\t0 : 1\t0x06/0xFF\n@::/0 ::/0 0:1 0:1 0x0/0x0 0x0/0x0\n\
         @::/0 ::/0 0:1 0:1 0x0/0x0"
    );
    let loaded = read_policy("f", &text, None, None, &ReadOptions::default()).unwrap();
    assert_eq!(loaded.merged_rules, 2);
}

/// Comments, blank lines and bad lines count as lines, but not as rules.
#[test]
fn each_rule_has_its_line() {
    let options = ReadOptions::default().with_skip_bad(true);
    let lines = |text: &str| {
        let loaded = read_policy("f", text, None, None, &options).unwrap();
        assert_eq!(loaded.rule_lines.len(), loaded.value.len());
        loaded.rule_lines
    };
    let filter = "@1.2.3.4/8\t1.2.3.4/32\t0 : 1\t0 : 1\t0x06/0xFF";
    assert_eq!(
        lines(&format!("\n{filter}\n@nothing\n\n{filter}\n")),
        [2, 5]
    );
    let rules = "# one\nschema ipv4-5tuple\n\nallow\nallow sprt=1\ndrop name=x # two\n";
    assert_eq!(lines(rules), [4, 6]);
    let flows = "NXST_FLOW reply (xid=0x4):\nip actions=1\nip,foo=1 actions=1\n\nudp actions=2";
    assert_eq!(lines(flows), [2, 5]);
}

const ACTIONS: &str = "schema ipv4-5tuple\n";

#[test]
fn misspelt_actions_are_refused_and_new_ones_are_listed() {
    for (rule, near) in [
        ("alow src=10.0.0.0/8", "allow"),
        ("allow:", "allow"),
        ("Drop", "drop"),
    ] {
        let text = format!("{ACTIONS}allow\n{rule}\n");
        let error = read_policy("f", &text, None, None, &ReadOptions::default());
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("f:3:1: unknown action `"), "{error}");
        assert!(
            error.contains(&format!("did you mean `{near}`?")),
            "{error}"
        );
        let word = rule.split(' ').next().unwrap();
        for text in [
            format!("{ACTIONS}actions {word} log\n{rule}\nlog\n"),
            format!("{ACTIONS}\"{word}\"\n"),
        ] {
            let loaded = read_policy("f", &text, None, None, &ReadOptions::default()).unwrap();
            assert_eq!(loaded.notes, [""; 0], "{text}");
        }
    }
    let text = format!("{ACTIONS}actions mirrors\nmirror\n");
    let error = read_policy("f", &text, None, None, &ReadOptions::default());
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("did you mean `mirrors`?")
    );
    let text = format!("{ACTIONS}output:1 src=10.0.0.1/8\noutput:2\nmirror\n");
    let loaded = read_policy("f", &text, None, None, &ReadOptions::default()).unwrap();
    assert_eq!(
        loaded.notes,
        [
            "3 actions are neither built in nor declared: `mirror`, `output:1`, `output:2`; a line `actions …` before the first rule declares actions",
            "1 rule has bits beyond a prefix or mask, such as `src=10.0.0.1/8` in line 2; they are ignored",
        ]
    );
    for (line, found) in [
        ("a\nactions b", "3:1: an `actions` line after"),
        ("actions a=1", "2:9: `a=1` where"),
    ] {
        let text = format!("{ACTIONS}{line}\n");
        let error = read_policy("f", &text, None, None, &ReadOptions::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(found), "{error}");
    }
}

/// A written file can be read, whatever the names of its actions.
#[test]
fn policies_with_misspelt_actions_are_written_and_read() {
    let mut policy = Policy::single(&Schema::ipv4_5tuple());
    for (index, word) in [
        "alow", "actions", "schema", "allow:", "Drop", "a b", "drip", "drop",
    ]
    .into_iter()
    .enumerate()
    {
        let action = policy.declare_action(word);
        let any = [FieldMatch::Any; 5];
        let priority = Priority(8 - u32::try_from(index).unwrap());
        let parts = [(PartId::FIRST, &any[..])];
        policy
            .add(RuleId::from_index(index), priority, action, &parts)
            .unwrap();
    }
    let (again, _, text) = trip(&policy, RuleFormat::Rules);
    assert_eq!(said(&policy), said(&again), "{text}");
    assert!(text.contains("actions Drop \"a b\""), "{text}");
}

/// Actions that make no decision in flows are written as other words.
#[test]
fn actions_that_flows_cannot_have_are_written_and_read() {
    let text = "schema openflow15\n\"a,Conjunction(1,1/2)\"\nconjunction\n";
    let policy = read_policy("f", text, None, None, &ReadOptions::default())
        .unwrap()
        .value;
    let (again, report, text) = trip(&policy, RuleFormat::Ovs);
    assert_eq!(again.len(), 2, "{text}");
    assert!(!report.is_exact());
}

/// Written flows are read back with the schema of their rules.
#[test]
fn flows_say_which_schema_they_are_for() {
    for name in ["openflow15", "ipv4-5tuple", "ipv6-5tuple", "dual-5tuple"] {
        let choice = SchemaChoice::named(name).unwrap();
        let mut policy = choice.policy();
        let action = policy.declare_action("drop");
        let any: Vec<Vec<FieldMatch>> = choice
            .schemas()
            .iter()
            .map(|schema| vec![FieldMatch::Any; schema.fields().len()])
            .collect();
        let parts: Vec<_> = policy
            .part_ids()
            .zip(any.iter().map(Vec::as_slice))
            .collect();
        policy
            .add(RuleId::from_index(0), Priority(1), action, &parts)
            .unwrap();
        let mut written = Vec::new();
        write_policy(&policy, RuleFormat::Ovs, &mut written).unwrap();
        let text = String::from_utf8(written).unwrap();
        let again = read_policy("f", &text, None, None, &ReadOptions::default()).unwrap();
        assert_eq!(again.value.name(), name, "{text}");
    }
    let text = "ipv6,ipv6_src=::1,actions=drop\ntcp,actions=drop\n";
    let read = read_policy("f", text, None, None, &ReadOptions::default()).unwrap();
    assert_eq!(read.value.name(), "dual-5tuple");
}
