//! Tests of writing and reading back: both give the same policy.

use classyard::author::splitmix;
use classyard::policy::{PartId, PolicyTrace};
use classyard::schema::Field;
use classyard::value::ValueFormat;
use classyard::{FieldMatch, MatchKind, Priority};
use proptest::prelude::*;

use super::*;

/// The complete contents of a policy, for comparison.
#[derive(Debug, PartialEq)]
pub(super) struct Said {
    schemas: Vec<Arc<Schema>>,
    rules: Vec<SaidRule>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct SaidRule {
    id: u32,
    priority: u32,
    action: Option<String>,
    name: Option<String>,
    parts: Vec<(PartId, Vec<FieldMatch>)>,
}

impl Said {
    /// Returns the contents with only the rules for which `keep` is true.
    pub(super) fn only(&self, keep: impl Fn(usize) -> bool) -> Said {
        let rules = self.rules.iter().filter(|rule| keep(rule.id as usize));
        Said {
            schemas: self.schemas.clone(),
            rules: rules.cloned().collect(),
        }
    }
}

pub(super) fn said(policy: &Policy) -> Said {
    let rule = |&id| {
        let parts: Vec<_> = policy.rule(id).collect();
        let (_, first) = parts[0];
        SaidRule {
            id: id.get(),
            priority: first.priority().0,
            action: policy.action_name(first.action()).map(str::to_owned),
            name: policy.rule_name(id).map(str::to_owned),
            parts: parts
                .iter()
                .map(|(part, rule)| (*part, rule.fields()))
                .collect(),
        }
    };
    Said {
        schemas: policy.schemas().cloned().collect(),
        rules: policy.ids().iter().map(rule).collect(),
    }
}

/// Writes a policy and reads it back.
#[track_caller]
pub(super) fn trip(policy: &Policy, format: RuleFormat) -> (Policy, WriteReport, String) {
    let mut written = Vec::new();
    let report = write_policy(policy, format, &mut written).unwrap();
    let text = String::from_utf8(written).unwrap();
    let choice = SchemaChoice::of(policy).unwrap();
    let schemas = choice.schemas();
    let mut loader = |_: &str| Ok(Arc::clone(&schemas[0]));
    let options = ReadOptions::default();
    let loaded = read_policy_with(
        "f",
        &text,
        Some(format),
        Some(&choice),
        &options,
        &mut loader,
    );
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}\n{text}"));
    (loaded.value, report, text)
}

/// A generator of random policies from a seed. Proptest shrinks the seed and the number of
/// rules.
pub(super) struct Dice {
    state: u64,
    /// True if some matches of prefix and range fields have non-contiguous masks.
    masks: bool,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice {
            state: seed,
            masks: true,
        }
    }

    /// Returns a generator without masks that formats with only prefixes and ranges lack.
    fn without_masks(seed: u64) -> Dice {
        Dice {
            state: seed,
            masks: false,
        }
    }

    pub(super) fn roll(&mut self) -> u64 {
        splitmix(&mut self.state)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    pub(super) fn value(&mut self, field: &Field) -> u128 {
        let wide = (u128::from(self.roll()) << 64) | u128::from(self.roll());
        // Small and large values, because formats differ in runs of zeros and ones.
        let value = match self.below(4) {
            0 => wide & 0xff,
            1 => !(wide & 0xff),
            _ => wide,
        };
        value & field.max_value()
    }

    pub(super) fn field_match(&mut self, field: &Field) -> FieldMatch {
        let value = self.value(field);
        let width = u64::from(field.width());
        match (self.below(4), field.kind()) {
            (0, _) => FieldMatch::Any,
            (1, _) | (_, MatchKind::Exact) => FieldMatch::Exact(value),
            (2, _) if self.masks && self.below(3) == 0 => FieldMatch::Ternary {
                value,
                mask: self.value(field),
            },
            (_, MatchKind::Prefix) => FieldMatch::Prefix {
                value,
                length: u32::try_from(self.below(width + 1)).unwrap(),
            },
            (_, MatchKind::Range) => {
                let other = self.value(field);
                FieldMatch::Range {
                    low: value.min(other),
                    high: value.max(other),
                }
            }
            (_, MatchKind::Ternary) => FieldMatch::Ternary {
                value,
                mask: self.value(field),
            },
        }
    }

    fn word(&mut self) -> String {
        let pool: Vec<char> = "ab=#\"\\ \t\n\r,:;é日\u{0}\u{feff}\u{a0}0-_"
            .chars()
            .collect();
        let length = self.below(6);
        (0..length)
            .map(|_| pool[usize::try_from(self.roll() % pool.len() as u64).unwrap()])
            .collect()
    }

    /// Returns a policy with `rules` rules. If `decorated`, they have various names,
    /// actions, ids and priorities.
    pub(super) fn policy(&mut self, choice: &SchemaChoice, rules: u32, decorated: bool) -> Policy {
        let mut policy = choice.policy();
        let schemas = choice.schemas();
        let (own_ids, own_priorities) = (self.below(2) == 0, self.below(2) == 0);
        for index in 0..rules {
            let mut id = RuleId::new(index).unwrap();
            let mut priority = Priority(rules - index);
            let mut action = "match".to_owned();
            if decorated {
                if own_ids {
                    id = RuleId::new(index * 7 + 3).unwrap();
                }
                if own_priorities {
                    priority = Priority(u32::try_from(self.below(5)).unwrap());
                }
                if self.below(2) == 0 {
                    action = self.word();
                }
                if self.below(2) == 0 {
                    let name = self.word();
                    policy.set_rule_name(id, &name);
                }
            }
            let action = policy.declare_action(&action);
            let matches: Vec<Vec<FieldMatch>> = schemas
                .iter()
                .map(|schema| {
                    schema
                        .fields()
                        .iter()
                        .map(|f| self.field_match(f))
                        .collect()
                })
                .collect();
            let added = match (matches.as_slice(), self.below(3)) {
                ([v4, v6], 0) => {
                    // A rule of both families: no addresses, and equal other fields.
                    let (mut v4, mut v6) = (v4.clone(), v6.clone());
                    v4[..2].fill(FieldMatch::Any);
                    v6[..2].fill(FieldMatch::Any);
                    v6[2..].copy_from_slice(&v4[2..]);
                    let parts = [(PartId::FIRST, &v4[..]), (PartId::from_index(1), &v6[..])];
                    policy.add(id, priority, action, &parts)
                }
                ([_, v6], 1) => {
                    let parts = [(PartId::from_index(1), v6.as_slice())];
                    policy.add(id, priority, action, &parts)
                }
                ([first, ..], _) => policy.add(id, priority, action, &[(PartId::FIRST, first)]),
                ([], _) => unreachable!("a choice has schemas"),
            };
            added.unwrap();
        }
        policy
    }

    fn trace(&mut self, choice: &SchemaChoice, headers: u32) -> PolicyTrace {
        let schemas = choice.schemas();
        let mut trace = PolicyTrace::new(schemas.iter());
        for _ in 0..headers {
            let part =
                PartId::from_index(usize::try_from(self.below(schemas.len() as u64)).unwrap());
            let fields = schemas[part.index()].fields();
            let values: Vec<u128> = fields.iter().map(|field| self.value(field)).collect();
            trace.push(part, &values).unwrap();
        }
        trace
    }
}

pub(super) fn all_choices() -> Vec<SchemaChoice> {
    let mut all: Vec<_> = SchemaChoice::names()
        .into_iter()
        .map(|name| SchemaChoice::named(name).unwrap())
        .collect();
    all.push(SchemaChoice::Single(forty_fields()));
    all
}

/// Returns a schema such as users may have, with 40 fields of all kinds and formats.
fn forty_fields() -> Arc<Schema> {
    let kinds = [
        MatchKind::Exact,
        MatchKind::Prefix,
        MatchKind::Range,
        MatchKind::Ternary,
    ];
    let formats = [
        (ValueFormat::Decimal, 13),
        (ValueFormat::Ipv4, 32),
        (ValueFormat::Hex, 17),
        (ValueFormat::Mac, 48),
        (ValueFormat::Decimal, 1),
        (ValueFormat::IpProtocol, 8),
        (ValueFormat::ConnectionState, 3),
        (ValueFormat::Fragment, 2),
        (ValueFormat::TcpFlags, 8),
    ];
    let mut fields: Vec<Field> = (0..38usize)
        .map(|i| {
            let (format, width) = formats[i % formats.len()];
            Field::new(&format!("f{i}.x"), width, kinds[i / 2 % kinds.len()]).with_format(format)
        })
        .collect();
    fields.push(Field::new("v6", 128, MatchKind::Ternary).with_format(ValueFormat::Ipv6));
    fields.push(Field::new("wide", 100, MatchKind::Range));
    Schema::new("forty of them", fields).unwrap()
}

proptest! {
    #[test]
    fn our_own_formats_keep_everything(
        seed: u64,
        rules in 0u32..12,
        which in 0usize..8,
        is_json: bool,
    ) {
        let choice = &all_choices()[which];
        let policy = Dice::new(seed).policy(choice, rules, true);
        let format = if is_json { RuleFormat::Json } else { RuleFormat::Rules };
        let (again, report, text) = trip(&policy, format);
        prop_assert_eq!(said(&policy), said(&again), "{}", text);
        prop_assert!(report.is_exact());
        prop_assert_eq!(report.lines, policy.len());
        prop_assert!(which == 7 || report.notes.is_empty());
        prop_assert_eq!(RuleFormat::detect(&text), Some(format));
    }

    #[test]
    fn classbench_keeps_rules_and_their_order(seed: u64, rules in 0u32..12, which in 0usize..2) {
        let choice = SchemaChoice::named(["ipv4-5tuple", "ipv6-5tuple"][which]).unwrap();
        let policy = Dice::without_masks(seed).policy(&choice, rules, false);
        let (again, report, text) = trip(&policy, RuleFormat::Classbench);
        prop_assert_eq!(said(&policy), said(&again), "{}", text);
        prop_assert!(report.is_exact() && report.notes.is_empty(), "{}", report);
    }

    /// The decisions remain equal, whatever else is lost. Rules are identified by their
    /// rank.
    #[test]
    fn classbench_keeps_decisions(seed: u64, rules in 1u32..12, which in 0usize..3) {
        let choice = SchemaChoice::named(["ipv4-5tuple", "ipv6-5tuple", "dual-5tuple"][which]).unwrap();
        let mut dice = Dice::without_masks(seed);
        let policy = dice.policy(&choice, rules, true);
        let (again, _, text) = trip(&policy, RuleFormat::Classbench);
        let before = ranked(&policy);
        let after = ranked(&again);
        prop_assert_eq!(before, after, "{}", text);
    }

    #[test]
    fn traces_keep_headers_and_expectations(seed: u64, headers in 0u32..20, which in 0usize..8) {
        let choice = &all_choices()[which];
        let mut dice = Dice::new(seed);
        let trace = dice.trace(choice, headers);
        let expected: Vec<Option<RuleId>> = (0..headers)
            .map(|_| RuleId::new(u32::try_from(dice.below(1 << 32)).unwrap()).ok().filter(|id| id.get() % 3 > 0))
            .collect();
        let options = ReadOptions::default();
        let mut written = Vec::new();
        write_trace(&trace, Some(&expected), &mut written).unwrap();
        let text = String::from_utf8(written).unwrap();
        let again = read_trace("f", &text, Some(choice), true, &options).unwrap().value;
        prop_assert_eq!(&again.headers, &trace);
        prop_assert_eq!(again.expected, Some(expected));
        let without = read_trace("f", &text, Some(choice), false, &options).unwrap().value;
        prop_assert_eq!(without, Trace { headers: trace, expected: None });
    }

    #[test]
    fn schemas_survive_a_file(widths in prop::collection::vec(1u32..=60, 1..16), name in "\\PC{0,12}") {
        let kinds = ["exact", "prefix", "range", "ternary"];
        let fields = widths.iter().enumerate().map(|(i, &width)| {
            Field::new(&format!("f{i}"), width, MatchKind::from_name(kinds[i % 4]).unwrap())
                .with_format([ValueFormat::Hex, ValueFormat::Decimal][i % 2])
        });
        let schema = Schema::new(&name, fields.collect()).unwrap();
        let mut written = Vec::new();
        write_schema(&schema, &mut written).unwrap();
        let again = read_schema("s", std::str::from_utf8(&written).unwrap()).unwrap();
        prop_assert_eq!(schema, again);
    }

    /// No text makes a reader panic.
    #[test]
    fn nothing_panics(text in "\\PC{0,80}", which in 0usize..8) {
        poke(&text, &all_choices()[which]);
    }

    /// No text made of pieces of valid files makes a reader panic.
    #[test]
    fn nothing_panics_on_soup(pieces in prop::collection::vec(0..SOUP.len(), 0..24), which in 0usize..8) {
        let text: String = pieces.iter().map(|&piece| SOUP[piece]).collect();
        let choice = &all_choices()[which];
        poke(&text, choice);
        poke(&format!("schema {}\n{text}", choice.name()), choice);
    }

    /// No almost valid text makes a reader panic.
    #[test]
    fn nothing_panics_on_damage(seed: u64, rules in 1u32..4, which in 0usize..8, at: usize, with: u8) {
        let choice = &all_choices()[which];
        let policy = Dice::new(seed).policy(choice, rules, true);
        for format in RuleFormat::ALL {
            let mut written = Vec::new();
            if write_policy(&policy, format, &mut written).is_err() || written.is_empty() {
                continue;
            }
            let at = at % written.len();
            written[at] = with;
            poke(&String::from_utf8_lossy(&written), choice);
            written.truncate(at);
            poke(&String::from_utf8_lossy(&written), choice);
        }
    }
}

/// Rules with masks are counted, and not replaced by wider or narrower rules.
#[test]
fn classbench_leaves_rules_with_masks_out() {
    let text = "schema ipv4-5tuple\n\
        match dport=1&0x11 id=0\n\
        match dport=0x1000&0xff00 id=1\n\
        match src=10.0.0.1&255.0.0.255 id=2\n\
        match src=10.0.0.0&255.0.0.0 id=3\n";
    let policy = read_policy("f", text, None, None, &ReadOptions::default());
    let mut written = Vec::new();
    let policy = policy.unwrap().value;
    let report = write_policy(&policy, RuleFormat::Classbench, &mut written).unwrap();
    assert_eq!(
        String::from_utf8(written).unwrap(),
        "@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t4096 : 4351\t0x00/0x00\t0x0000/0x0000\n\
         @10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n"
    );
    assert_eq!(
        report.notes[0].text,
        "2 rules were left out: the format has only prefix masks"
    );
    assert!(!report.is_exact());
    assert_eq!((report.rules, report.lines), (4, 2));
    let lost: Vec<String> = report.losses.shown().iter().map(Loss::to_string).collect();
    assert_eq!(
        lost,
        [
            "rule 0: left out: the format has only prefix masks",
            "rule 2: left out: the format has only prefix masks",
        ]
    );
}

/// Pieces of valid files.
const SOUP: [&str; 72] = [
    "@",
    "10.0.0.1",
    "/8",
    "\t",
    " ",
    "\n",
    "\r\n",
    ":",
    "0",
    "65535",
    "65536",
    "0x06",
    "/0xFF",
    "0x0000/0x0200",
    "::",
    "2001:db8::1",
    "/",
    "-",
    "&",
    "*",
    "=",
    "#",
    "\"",
    "\\",
    "\\u{",
    "}",
    ",",
    "schema ",
    "ipv4-5tuple",
    "dual-5tuple",
    "allow",
    "drop",
    "src=",
    "dst=",
    "dport=",
    "proto=",
    "tcp",
    "name=",
    "id=",
    "priority=",
    "family=",
    "ipv4",
    "actions=",
    "ip,",
    "nw_src=",
    "tp_dst=",
    "icmp,",
    "icmp6,",
    "icmp_type=",
    "icmpv6_code=",
    "arp,",
    "arp_op=",
    "arp_spa=",
    "table=",
    "dl_vlan=",
    "vlan_tci=",
    "in_port=",
    "dl_src=",
    "01:02:03:04:05:06",
    "metadata=",
    "mpls,",
    "é",
    "\u{feff}",
    "\u{a0}",
    "4294967295",
    "340282366920938463463374607431768211456",
    "[[field]]\n",
    "width = ",
    "kind = ",
    "\"exact\"\n",
    "[",
    "]",
];

/// Reads a text with every reader.
fn poke(text: &str, choice: &SchemaChoice) {
    for skip_bad in [false, true] {
        let options = ReadOptions {
            skip_bad,
            limit: 100,
            ..ReadOptions::default()
        };
        for format in [None].into_iter().chain(RuleFormat::ALL.map(Some)) {
            for choice in [None, Some(choice)] {
                let _ = read_policy("f", text, format, choice, &options);
            }
        }
        for expected in [false, true] {
            let _ = read_trace("f", text, Some(choice), expected, &options);
            let _ = read_trace("f", text, None, expected, &options);
        }
    }
    let _ = read_schema("f", text);
}

/// Returns the matches of the rules of each part, the winning rule first.
fn ranked(policy: &Policy) -> Vec<(String, Vec<Vec<FieldMatch>>)> {
    let part = |rules: &classyard::RuleSet| {
        let order = rules.by_rank();
        let demands = order.iter().map(|&i| rules.rule(i as usize).fields());
        (rules.schema().name().to_owned(), demands.collect())
    };
    policy.parts().iter().map(part).collect()
}

#[test]
fn a_readable_file_reads_as_it_looks() {
    let text = "schema dual-5tuple\n\
        # Staff may use the web.\n\
        allow proto=tcp src=10.20.1.0/24 dst=10.20.2.80 dport=443 name=staff-web\n\
        \"output:3,vlan\" proto=udp src=2001:db8::/32 dport=5000-5999   # video\n\
        allow family=ipv6 proto=icmpv6\n\
        drop name=default\n";
    let loaded = read_policy("office", text, None, None, &ReadOptions::default()).unwrap();
    assert!(loaded.notes.is_empty() && loaded.skipped.is_empty());
    let policy = loaded.value;
    let id = RuleId::from_index;
    assert_eq!(policy.len(), 4);
    assert_eq!(policy.rule_name(id(0)), Some("staff-web"));
    assert_eq!(policy.rule(id(0)).count(), 1);
    assert_eq!(policy.rule(id(1)).next().unwrap().0, PartId::from_index(1));
    assert_eq!(policy.rule(id(2)).next().unwrap().0, PartId::from_index(1));
    assert_eq!(policy.rule(id(3)).count(), 2);
    let (_, first) = policy.rule(id(0)).next().unwrap();
    assert_eq!(
        first.to_string(),
        "src=10.20.1.0/24 dst=10.20.2.80 dport=443 proto=tcp"
    );
    let (again, report, written) = trip(&policy, RuleFormat::Rules);
    assert_eq!(said(&policy), said(&again));
    assert!(report.is_exact());
    assert_eq!(
        written,
        "schema dual-5tuple\n\
         allow                     src=10.20.1.0/24  dst=10.20.2.80 dport=443       proto=tcp    name=staff-web\n\
         output:3,vlan             src=2001:db8::/32                dport=5000-5999 proto=udp\n\
         allow         family=ipv6                                                  proto=icmpv6\n\
         drop                                                                                    name=default\n"
    );
}

#[test]
fn a_schema_may_come_from_the_caller_or_from_a_file_beside() {
    let v4 = SchemaChoice::named("ipv4-5tuple").unwrap();
    let options = ReadOptions::default();
    let text = "allow dport=1\n";
    let loaded = read_policy("f", text, Some(RuleFormat::Rules), Some(&v4), &options).unwrap();
    assert_eq!(loaded.value.name(), "ipv4-5tuple");

    let folder = std::env::temp_dir().join(format!("classyard-rules-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("deep")).unwrap();
    let mut written = Vec::new();
    write_schema(&forty_fields(), &mut written).unwrap();
    std::fs::write(folder.join("deep/my schema.toml"), &written).unwrap();
    let rules = folder.join("my.rules");
    std::fs::write(
        &rules,
        "schema \"deep/my schema.toml\"\nallow f1.x=10.0.0.1\n",
    )
    .unwrap();
    let policy = read_policy_file(&rules, None, None, &options)
        .unwrap()
        .value;
    assert_eq!(policy.part(PartId::FIRST).schema(), &forty_fields());

    std::fs::write(folder.join("deep/my schema.toml"), "name = 3\n[[field]]").unwrap();
    let error = read_policy_file(&rules, None, None, &options)
        .unwrap_err()
        .to_string();
    assert!(error.contains("my schema.toml:1:8: `3`"), "{error}");
    std::fs::remove_file(folder.join("deep/my schema.toml")).unwrap();
    let error = read_policy_file(&rules, None, None, &options)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("my.rules:1:8: schema file `deep/my schema.toml`: "),
        "{error}"
    );

    let trace = folder.join("trace");
    std::fs::write(&trace, "1 2 3 4 5 6\n").unwrap();
    let trace = read_trace_file(&trace, Some(&v4), true, &options)
        .unwrap()
        .value;
    assert_eq!((trace.headers.len(), trace.expected.unwrap().len()), (1, 1));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn halves_that_differ_become_two_rules() {
    let mut policy = Policy::dual_stack();
    let action = policy.declare_action("allow");
    let (v4, v6) = (PartId::FIRST, PartId::from_index(1));
    let mut first = [FieldMatch::Any; 5];
    let mut second = first;
    first[3] = FieldMatch::Exact(80);
    second[3] = FieldMatch::Exact(81);
    let any = [FieldMatch::Any; 5];
    policy
        .add(
            RuleId::from_index(0),
            Priority(2),
            action,
            &[(v4, &first), (v6, &second)],
        )
        .unwrap();
    policy
        .add(
            RuleId::from_index(1),
            Priority(1),
            action,
            &[(v4, &any), (v6, &any)],
        )
        .unwrap();
    let (again, report, text) = trip(&policy, RuleFormat::Rules);
    assert_eq!(report.lines, 3);
    assert!(!report.is_exact());
    assert_eq!(report.notes[0].count, 1, "{report}");
    assert_eq!(ranked(&policy), ranked(&again), "{text}");
    assert_eq!(
        again.ids().iter().map(|id| id.get()).collect::<Vec<_>>(),
        [0, 2, 1]
    );
}

/// A half with a new id must still win over the rules of equal priority over which it won
/// before.
#[test]
fn halves_that_differ_keep_their_rank_among_equals() {
    let mut policy = Policy::dual_stack();
    let action = policy.declare_action("allow");
    let (v4, v6) = (PartId::FIRST, PartId::from_index(1));
    let port = |port| {
        let mut matches = [FieldMatch::Any; 5];
        matches[3] = FieldMatch::Exact(port);
        matches
    };
    let (first, second, third) = (port(80), port(81), port(82));
    let both = [(v4, &first[..]), (v6, &second[..])];
    let mut add = |id, parts: &[(PartId, &[FieldMatch])]| {
        let id = RuleId::from_index(id);
        policy.add(id, Priority(7), action, parts).unwrap();
    };
    add(0, &both);
    add(1, &[(v6, &third)]);
    let (again, report, text) = trip(&policy, RuleFormat::Rules);
    assert_eq!(ranked(&policy), ranked(&again), "{text}");
    assert!(report.losses.is_empty());
}

#[test]
fn classbench_reports_what_it_drops() {
    let text = "schema dual-5tuple\n\
        allow src=1.2.3.4 name=a priority=5 id=7\n\
        match dst=::1     name=b priority=9\n\
        drop priority=5\n";
    let policy = read_policy("f", text, None, None, &ReadOptions::default())
        .unwrap()
        .value;
    let (again, report, written) = trip(&policy, RuleFormat::Classbench);
    assert_eq!(ranked(&policy), ranked(&again));
    assert_eq!(
        written,
        "@0:0:0:0:0:0:0:0/0\t0:0:0:0:0:0:0:1/128\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n\
         @0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n\
         @0:0:0:0:0:0:0:0/0\t0:0:0:0:0:0:0:0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n\
         @1.2.3.4/32\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n"
    );
    assert_eq!(
        report.to_string(),
        "3 rules written as 4 lines\n\
         2 rule names dropped: the format has none\n\
         the actions of 2 rules dropped: the format has none\n\
         3 rules ranked by the order of lines instead of a priority of their own\n\
         3 rules on another line than their place in the policy, as the first line wins\n\
         1 rule id dropped: rules are numbered by their lines\n\
         1 rule without an address written as two lines, one for IPv4 and one for IPv6"
    );
    let openflow = Policy::single(&Schema::openflow15());
    let error = write_policy(&openflow, RuleFormat::Classbench, &mut Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rules of schema `openflow15` cannot be written as classbench; it takes ipv4-5tuple, ipv6-5tuple and dual-5tuple"
    );
}

#[test]
fn classbench_keeps_tcp_flags_in_the_schema_acl() {
    let line = "@1.2.3.4/32\t1.2.3.4/32\t0 : 1\t0 : 1\t0x06/0xFF";
    let text = format!("{line}\t0x1000/0x1000\n{line}\t0x0000/0x0200\n{line}\n");
    let options = ReadOptions::default();
    let loaded = read_policy("f", &text, None, Some(&SchemaChoice::Acl), &options).unwrap();
    assert_eq!(loaded.notes, [""; 0]);
    assert_eq!(loaded.merged_rules, 0);
    let header = "src=1.2.3.4 dst=1.2.3.4 sport=1 dport=1 proto=tcp tcp_flags=";
    let winner = |flags: &str| {
        let (part, header) = loaded
            .value
            .parse_header(&format!("{header}{flags}"))
            .unwrap();
        let rules = loaded.value.part(part);
        let mut key = vec![0; rules.schema().key_words()];
        for (field, value) in rules.schema().field_ids().zip(header.values) {
            rules.schema().set_field(&mut key, field, value).unwrap();
        }
        rules.scan(&key).rule().unwrap().get()
    };
    assert_eq!([winner("0x12"), winner("0x04"), winner("0x02")], [0, 1, 2]);
    let bad = format!("{line}\t0x0010/0x0010\n");
    let error = read_policy("f", &bad, None, Some(&SchemaChoice::Acl), &options).unwrap_err();
    assert!(
        error.to_string().contains("TCP flags `0x0010/0x0010`"),
        "{error}"
    );
}

#[test]
fn classbench_notes_what_it_ignores() {
    let line = "@1.2.3.4/32\t1.2.3.4/32\t0 : 1\t0 : 1\t0x06/0xFF";
    let text = format!(
        "{line}\t0x1000/0x1000\n{line}\t0x1000/0x0000\n{line}\t0x0/0x0\t17\r\n{line}\n@::1/128 ::/0 0:0 1:1 0x0/0x0"
    );
    let loaded = read_policy("f", &text, None, None, &ReadOptions::default()).unwrap();
    assert_eq!(loaded.value.name(), Policy::DUAL_STACK);
    assert_eq!(loaded.value.len(), 5);
    assert_eq!(
        loaded.notes,
        [
            "1 rule demands TCP flags, which are not among the five fields; the demand was \
             dropped (--schema acl keeps it)",
            "1 rule has columns beyond the flags; they were ignored",
            "3 rules differ from another only in columns that were left out, and are duplicates here",
        ]
    );
}
