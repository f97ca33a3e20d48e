//! Tests of files with flows of several tables: one table is read at a time.

use std::collections::BTreeMap;

use classyard::Priority;
use classyard::policy::PartId;
use proptest::prelude::*;

use super::flows::{ALL, sayable};
use super::round_trips::{Dice, said};
use super::*;

const DUMP: &str = "NXST_FLOW reply (xid=0x4):\n\
    \u{20}table=0, priority=9,tcp,tp_dst=80 actions=resubmit(,5)\n\
    \u{20}priority=8,udp actions=drop\n\
    \n\
    \u{20}table=5, priority=900,tcp actions=output:1\n\
    \u{20}table=5, bogus=1,actions=drop\n\
    \u{20}table=7, priority=1 actions=drop\n";

fn read_table(text: &str, table: Option<u8>, skip_bad: bool) -> Result<Loaded<Policy>, ReadError> {
    let options = ReadOptions {
        skip_bad,
        table,
        ..ALL
    };
    read_policy("f", text, Some(RuleFormat::Ovs), None, &options)
}

#[test]
fn one_table_is_read_at_a_time() {
    for skip_bad in [false, true] {
        assert_eq!(
            read_table(DUMP, None, skip_bad).unwrap_err().to_string(),
            "f:5: a second table: table 0 has 2 flows, table 5 has 2 flows, table 7 has 1 flow; \
             read one of them, as jumps between tables are not followed"
        );
    }
    let said = |table| {
        let loaded = read_table(DUMP, Some(table), false).unwrap();
        let policy = loaded.value;
        let ids = policy.ids().iter().map(|&id| {
            let (_, rule) = policy.rule(id).next().unwrap();
            format!("{id} {rule}")
        });
        (ids.collect::<Vec<_>>(), loaded.notes)
    };
    let (rules, notes) = said(0);
    assert_eq!(
        rules,
        [
            "0 eth_type=0x800 proto=tcp dport=80",
            "1 eth_type=0x800 proto=udp"
        ]
    );
    assert_eq!(
        notes,
        [
            "3 flows of other tables were left out: table 5 has 2 flows, table 7 has 1 flow",
            "1 flow jumps to a table (resubmit, goto_table), which is not followed: the action is kept as text",
        ]
    );
    assert_eq!(said(7).0, ["4 any"]);
    // The bad line counts in its own table only.
    assert_eq!(
        read_table(DUMP, Some(5), false).unwrap_err().to_string(),
        "f:6:11: unsupported field `bogus`; expected a field such as `in_port`, `eth_src`, \
         `ipv4_dst`, `tcp_dst`, or a line without it (dropping it would change what matches)"
    );
    let kept = read_table(DUMP, Some(5), true).unwrap();
    assert_eq!((kept.value.len(), kept.skipped.total()), (1, 1));
    assert_eq!(
        read_table(DUMP, Some(9), false).unwrap_err().to_string(),
        "f: no flow is in table 9; table 0 has 2 flows, table 5 has 2 flows, table 7 has 1 flow"
    );
    assert_eq!(
        read_table("# none\n", Some(0), false)
            .unwrap_err()
            .to_string(),
        "f: no flow is in table 0; there are no flows"
    );
    // A line with an unreadable table is bad for every requested table.
    for table in [None, Some(3)] {
        let text = "table=3,actions=drop\ngarbage\n";
        let error = read_table(text, table, false).unwrap_err().to_string();
        assert!(error.starts_with("f:2:1: unsupported"), "{error}");
    }
    // A single table need not be requested, whatever its number.
    assert_eq!(
        read_table("table=3,actions=drop", None, false)
            .unwrap()
            .value
            .len(),
        1
    );
}

#[test]
fn other_formats_have_no_tables() {
    let options = ReadOptions {
        table: Some(0),
        ..ALL
    };
    for (text, format) in [
        ("schema ipv4-5tuple\nallow\n", "rules"),
        (
            "@1.2.3.4/32\t0.0.0.0/0\t0 : 1\t0 : 1\t0x06/0xFF\n",
            "classbench",
        ),
    ] {
        let error = read_policy("f", text, None, None, &options).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("f: table 0 was requested, but rules of the format {format} have no tables")
        );
    }
}

proptest! {
    /// Each table of a file is read as if it were alone in the file, except for the rule
    /// numbers. Without a requested table the file is refused.
    #[test]
    fn tables_are_read_apart(seed: u64, rules in 1usize..12) {
        let mut dice = Dice::new(seed);
        let schema = Schema::openflow15();
        let mut policy = Policy::single(&schema);
        for index in 0..rules {
            let action = policy.declare_action("output:1");
            let matches = sayable(&mut dice, &schema);
            policy.add(RuleId::from_index(index), Priority(7), action, &[(PartId::FIRST, &matches)]).unwrap();
        }
        let mut written = Vec::new();
        write_policy(&policy, RuleFormat::Ovs, &mut written).unwrap();
        let (mut text, mut counts) = (String::new(), BTreeMap::new());
        let mut tables = Vec::new();
        for line in String::from_utf8(written).unwrap().lines() {
            let table = [0, 1, 254][usize::try_from(dice.below(3)).unwrap()];
            let said = match table {
                0 => line.to_owned(),
                _ => format!("cookie=0x0, table={table}, {line}"),
            };
            text.push_str(&said);
            text.push('\n');
            *counts.entry(table).or_insert(0) += 1;
            tables.push(table);
        }
        let whole = said(&policy);
        for table in [0, 1, 254] {
            let wanted = tables.contains(&table);
            let loaded = read_table(&text, Some(table), false);
            prop_assert_eq!(loaded.is_ok(), wanted, "{}", text);
            if let Ok(loaded) = loaded {
                let expected = whole.only(|id| tables[id] == table);
                prop_assert_eq!(said(&loaded.value), expected, "{}", text);
            }
        }
        match read_table(&text, None, false) {
            Ok(loaded) => {
                prop_assert_eq!(counts.len(), 1);
                prop_assert_eq!(said(&loaded.value), whole);
            }
            Err(ReadError::SeveralTables { line, tables: found, .. }) => {
                prop_assert!(counts.len() > 1);
                prop_assert_eq!(found, counts.into_iter().collect::<Vec<_>>());
                let second = tables.iter().position(|table| *table != tables[0]).unwrap();
                prop_assert_eq!(line, second + 1);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
