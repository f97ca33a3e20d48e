use super::*;
use crate::model::error::RuleError;

const ANY: [FieldMatch; 5] = [FieldMatch::Any; 5];
const BAD: [FieldMatch; 5] = [
    FieldMatch::Any,
    FieldMatch::Any,
    FieldMatch::Range { low: 2, high: 1 },
    FieldMatch::Any,
    FieldMatch::Any,
];

type Named<'a> = Vec<(PartId, &'a [FieldMatch])>;

fn part(index: usize) -> PartId {
    PartId::from_index(index)
}

fn add(policy: &mut Policy, id: u32, matches: &[(PartId, &[FieldMatch])]) -> Result<(), AddError> {
    policy.add(RuleId::new(id).unwrap(), Priority(1), ActionId(0), matches)
}

/// Returns a policy of two parts; rule 7 is only in the second part, rule 0 in
/// both.
fn policy() -> Policy {
    let mut policy = Policy::dual_stack();
    let action = policy.declare_action("accept");
    for (id, parts) in [(7, &[1][..]), (0, &[1, 0])] {
        let id = RuleId::new(id).unwrap();
        let matches: Named<'_> = parts.iter().map(|&at| (part(at), &ANY[..])).collect();
        policy.add(id, Priority(3), action, &matches).unwrap();
        policy.set_rule_name(id, "named");
    }
    policy
}

/// Returns the complete contents of a policy as text.
fn all_of(policy: &Policy) -> String {
    format!("{policy:?}")
}

#[test]
fn a_refused_rule_leaves_the_policy_as_it_was() {
    let repeated = PartError::Repeated { id: 5, part: 1 };
    let unknown = PartError::Unknown {
        id: 5,
        part: 2,
        parts: 2,
    };
    let taken = |id| AddError::Update(UpdateError::DuplicateId { change: 0, id });
    let inverted = add(&mut policy(), 5, &[(part(0), &BAD)]).unwrap_err();
    assert!(matches!(
        inverted,
        AddError::Rule(RuleError::InvertedRange { .. })
    ));
    let short = AddError::Rule(RuleError::WrongFieldCount {
        found: 4,
        expected: 5,
    });
    let refusals: [(u32, Named<'_>, AddError); 9] = [
        (5, vec![], AddError::Parts(PartError::Missing)),
        (
            5,
            vec![(part(1), &ANY), (part(1), &ANY)],
            AddError::Parts(repeated.clone()),
        ),
        (
            5,
            vec![(part(0), &ANY), (part(1), &ANY), (part(1), &ANY)],
            AddError::Parts(repeated),
        ),
        (
            5,
            vec![(part(0), &ANY), (part(2), &ANY)],
            AddError::Parts(unknown.clone()),
        ),
        (5, vec![(part(2), &ANY)], AddError::Parts(unknown)),
        (5, vec![(part(0), &ANY), (part(1), &BAD)], inverted.clone()),
        (5, vec![(part(0), &BAD), (part(1), &ANY)], inverted),
        (5, vec![(part(1), &ANY), (part(0), &ANY[..4])], short),
        (7, vec![(part(0), &ANY), (part(1), &ANY)], taken(7)),
    ];
    for (id, matches, expected) in refusals {
        let mut policy = policy();
        let before = all_of(&policy);
        let error = add(&mut policy, id, &matches).unwrap_err();
        assert_eq!(error, expected);
        assert_eq!(all_of(&policy), before, "{error}");
        assert_eq!((policy.len(), policy.part(part(0)).len()), (2, 1));
        assert_eq!(policy.part(part(1)).len(), 2);
        if id != 7 {
            assert_eq!(policy.position(RuleId::new(id).unwrap()), None);
            add(&mut policy, id, &[(part(0), &ANY), (part(1), &ANY)]).unwrap();
            assert_eq!((policy.len(), policy.ids()[2].get()), (3, id));
            assert_eq!(policy.rule(RuleId::new(id).unwrap()).count(), 2);
        }
    }
}

#[test]
fn an_id_taken_in_another_part_is_taken() {
    let mut sets = [
        RuleSet::new(&Schema::ipv4_5tuple()),
        RuleSet::new(&Schema::ipv6_5tuple()),
    ];
    let id = RuleId::new(0).unwrap();
    sets[1].add(id, Priority(1), ActionId(0), &ANY).unwrap();
    let mut policy = Policy::from_parts("both", sets.to_vec());
    let before = all_of(&policy);
    for parts in [&[0][..], &[0, 1], &[1]] {
        let matches: Named<'_> = parts.iter().map(|&at| (part(at), &ANY[..])).collect();
        let error = add(&mut policy, 0, &matches).unwrap_err();
        assert!(matches!(
            error,
            AddError::Update(UpdateError::DuplicateId { id: 0, .. })
        ));
        assert_eq!(all_of(&policy), before);
    }
    add(&mut policy, 1, &[(part(0), &ANY)]).unwrap();
    assert_eq!(policy.len(), 2);
}

/// Random lists of parts and matches, valid and invalid. A refused rule changes
/// nothing, and the policy has exactly the accepted rules.
#[test]
fn policies_hold_what_was_accepted_and_nothing_else() {
    let mut state = 11;
    let mut below = |bound: u64| crate::model::seed::splitmix(&mut state) % bound;
    let mut policy = Policy::dual_stack();
    let mut accepted: Vec<(u32, Vec<usize>)> = Vec::new();
    let mut refused = 0;
    for _ in 0..2_000 {
        let id = u32::try_from(below(400)).unwrap();
        let named: Vec<(usize, bool)> = (0..below(4))
            .map(|_| (usize::try_from(below(7) / 3).unwrap(), below(8) == 0))
            .collect();
        let matches: Named<'_> = named
            .iter()
            .map(|&(at, bad)| (part(at), if bad { &BAD[..] } else { &ANY[..] }))
            .collect();
        let mut parts: Vec<usize> = named.iter().map(|(at, _)| *at).collect();
        parts.sort_unstable();
        let good = !parts.is_empty()
            && parts.is_sorted_by(|a, b| a < b)
            && parts.iter().all(|&at| at < 2)
            && named.iter().all(|(_, bad)| !bad)
            && accepted.iter().all(|(taken, _)| *taken != id);
        let before = (!good).then(|| all_of(&policy));
        let added = add(&mut policy, id, &matches);
        assert_eq!(added.is_ok(), good, "rule {id}, {named:?}: {added:?}");
        match before {
            None => accepted.push((id, parts)),
            Some(before) => {
                refused += 1;
                assert_eq!(all_of(&policy), before);
            }
        }
    }
    assert!(accepted.len() > 200 && refused > 1_000);
    assert_eq!(policy.len(), accepted.len());
    let ids = accepted.iter().map(|(id, _)| *id);
    assert!(policy.ids().iter().map(|id| id.get()).eq(ids));
    for (id, parts) in accepted {
        let id = RuleId::new(id).unwrap();
        let found: Vec<usize> = policy.rule(id).map(|(at, _)| at.index()).collect();
        assert_eq!(found, parts);
    }
}

#[test]
fn a_refused_header_leaves_the_trace_as_it_was() {
    let mut trace = PolicyTrace::new(policy().schemas());
    trace.push(part(1), &[1, 2, 3, 4, 5]).unwrap();
    let before = trace.clone();
    trace.push(part(0), &[1, 2, 3, 4]).unwrap_err();
    trace.push(part(0), &[1, 2, 3, 4, 256]).unwrap_err();
    assert_eq!(trace, before);
    trace.push(part(0), &[1, 2, 3, 4, 255]).unwrap();
    let parts: Vec<usize> = trace.iter().map(|(at, _)| at.index()).collect();
    assert_eq!(parts, [1, 0]);
}

mod by_name {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use ipnet::IpNet;

    use super::*;
    use crate::contract::spec::EngineSpec;
    use crate::model::schema::{Field, FieldRole, MatchKind};
    use crate::model::value::ValueFormat;
    use crate::{Scratch, Winner};

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn parts(policy: &Policy, id: u32) -> Vec<usize> {
        let id = RuleId::new(id).unwrap();
        policy.rule(id).map(|(part, _)| part.index()).collect()
    }

    /// A rule is only in the parts that have addresses of its family.
    #[test]
    fn addresses_choose_the_parts() {
        let mut policy = Policy::dual_stack();
        let rules = [
            PolicyRule::new(0).field("dst", net("10.0.0.0/8")),
            PolicyRule::new(1).field("dst", net("2001:db8::/32")),
            PolicyRule::new(2).field("dport", 23),
            PolicyRule::new(3).field("dst", ..).cookie(77),
            PolicyRule::new(4)
                .field("src", Ipv4Addr::LOCALHOST)
                .field("dport", 1..),
            PolicyRule::new(5).field("src", Ipv6Addr::LOCALHOST..=Ipv6Addr::LOCALHOST),
            // A number has no family, but 2^32 fits only IPv6 addresses.
            PolicyRule::new(6).field("src", 1),
        ];
        for rule in &rules {
            policy.add_rule(rule).unwrap();
        }
        let expected: [&[usize]; 7] = [&[0], &[1], &[0, 1], &[0, 1], &[0], &[1], &[0, 1]];
        for (id, expected) in (0..).zip(expected) {
            assert_eq!(parts(&policy, id), expected, "rule {id}");
        }
        let cookies = policy.rule(RuleId::new(3).unwrap());
        assert!(cookies.map(|(_, rule)| rule.cookie()).eq([77, 77]));
        assert_eq!(policy.len(), 7);
        assert_eq!(policy.position(RuleId::new(6).unwrap()), Some(6));
    }

    /// Refused rules change nothing.
    #[test]
    #[allow(clippy::reversed_empty_ranges)] // it is refused
    fn refusals_change_nothing() {
        let mut policy = Policy::dual_stack();
        policy
            .add_rule(&PolicyRule::new(1).field("dport", 23))
            .unwrap();
        let before = all_of(&policy);
        let refusals = [
            (PolicyRule::new(1), "rule 1"),
            (
                PolicyRule::new(2).field("dest", 1),
                "ipv4-5tuple has no field `dest`",
            ),
            (
                PolicyRule::new(2).field("dport", 1 << 16),
                "dport: 65536 does not fit",
            ),
            (
                PolicyRule::new(2).field("dport", 7..=6),
                "dport: the range 7-6",
            ),
            (
                PolicyRule::new(2)
                    .field("src", net("10.0.0.0/8"))
                    .field("dst", net("::/0")),
                "src demands an IPv4 address and dst an IPv6 address",
            ),
            (PolicyRule::new(2).field("src", u128::MAX), "src: "),
            (
                PolicyRule::new(2).field("proto", Ipv4Addr::LOCALHOST),
                "proto: an IPv4 address",
            ),
            (PolicyRule::new(u32::MAX), "rule id 4294967295 is too large"),
        ];
        for (rule, expected) in refusals {
            let error = policy.add_rule(&rule).unwrap_err().to_string();
            assert!(error.contains(expected), "{error} | {expected}");
            assert_eq!(all_of(&policy), before);
            let mut changes = PolicyTransactionBuf::new(policy.schemas());
            if rule_is_wrong_by_itself(expected) {
                let error = changes.insert_rule(&rule).unwrap_err().to_string();
                assert!(error.contains(expected), "{error} | {expected}");
                assert!(changes.modify_rule(&rule).is_err());
                assert!(changes.is_empty());
            }
        }
    }

    /// A transaction cannot check whether ids are in use.
    fn rule_is_wrong_by_itself(expected: &str) -> bool {
        expected != "rule 1"
    }

    /// Headers of either family match the rules of their family, before and
    /// after a transaction of rules by name.
    #[test]
    fn headers_find_their_part_and_names() {
        let mut policy = Policy::dual_stack();
        let (allow, deny) = (
            policy.declare_action("allow"),
            policy.declare_action("deny"),
        );
        let rules = [
            PolicyRule::new(1)
                .priority(9)
                .field("dst", net("10.0.0.0/8"))
                .action(allow),
            PolicyRule::new(2)
                .priority(9)
                .field("dst", net("fd00::/8"))
                .action(allow),
            PolicyRule::new(3)
                .priority(1)
                .field("dport", 23)
                .action(deny),
        ];
        for rule in &rules {
            policy.add_rule(rule).unwrap();
        }
        policy.set_rule_name(RuleId::new(3).unwrap(), "telnet");
        let mut scratch = Scratch::new();
        for spec in EngineSpec::all() {
            let mut classifier = spec.builder().policy(&policy).unwrap();
            let mut look = |classifier: &PolicyClassifier, dst: &str, dport| {
                let dst = address(dst);
                let src = match dst {
                    IpAddr::V4(_) => address("192.0.2.1"),
                    IpAddr::V6(_) => address("::1"),
                };
                let header = FiveTuple::new(src, dst, 40_000, dport, 6).unwrap();
                let verdict = classifier.classify_header(&header).unwrap();
                // A batch has the same result.
                let mut trace = PolicyTrace::new(policy.schemas());
                assert_eq!(trace.push_header(&header), Some(verdict.part));
                let mut winners = [Winner::MISS];
                classifier.classify(&trace, &mut winners, &mut scratch);
                assert_eq!(winners, [verdict.winner]);
                assert_eq!(verdict.part.index(), usize::from(dst.is_ipv6()));
                let decision = policy.decision(verdict);
                (
                    verdict.winner.rule().map(RuleId::get),
                    decision.and_then(|decision| decision.action_name),
                    decision.and_then(|decision| decision.rule_name),
                )
            };
            let allowed = |id| (Some(id), Some("allow"), None);
            let denied = (Some(3), Some("deny"), Some("telnet"));
            assert_eq!(look(&classifier, "10.1.2.3", 23), allowed(1));
            assert_eq!(look(&classifier, "fd00::1", 23), allowed(2));
            assert_eq!(look(&classifier, "11.1.2.3", 23), denied);
            assert_eq!(look(&classifier, "2001:db8::1", 23), denied);
            assert_eq!(look(&classifier, "11.1.2.3", 24), (None, None, None));
            if !spec.is_dynamic() {
                continue;
            }
            let mut changes = PolicyTransactionBuf::new(policy.schemas());
            // Rule 1 moves to the other family; rule 4 is new.
            let moved = PolicyRule::new(1)
                .priority(9)
                .field("dst", net("2001:db8::/32"));
            changes.modify_rule(&moved.action(deny)).unwrap();
            let new = PolicyRule::new(4).priority(5).field("dport", 24);
            changes.insert_rule(&new).unwrap();
            classifier.apply(&changes.transaction()).unwrap();
            assert_eq!(look(&classifier, "10.1.2.3", 23), denied);
            assert_eq!(look(&classifier, "2001:db8::1", 23).0, Some(1));
            // A rule that is not in the policy has no names.
            assert_eq!(look(&classifier, "10.1.2.3", 24), (Some(4), None, None));
        }
    }

    /// A header whose field values are the fields' numbers, except for one set
    /// field.
    struct Numbered {
        fields: usize,
        set: (usize, u128),
    }

    impl PacketHeader for Numbered {
        fn values(&self, schema: &Schema, values: &mut [u128]) -> bool {
            for (index, value) in values.iter_mut().enumerate() {
                *value = index as u128;
            }
            values[self.set.0] = self.set.1;
            schema.fields().len() == self.fields
        }
    }

    /// Headers of schemas with few fields and with the maximum number of
    /// fields: each field's value matters, and a value that does not fit is
    /// refused.
    #[test]
    fn headers_of_any_number_of_fields_are_classified() {
        for fields in [1, 2, 15, 16, 17, 33, 64] {
            let field = |index| Field::new(&format!("f{index}"), 8, MatchKind::Exact);
            let schema = Schema::new("many", (0..fields).map(field).collect()).unwrap();
            let mut policy = Policy::single(&schema);
            for id in 0..fields {
                let mut matches = vec![FieldMatch::Any; fields];
                matches[id] = FieldMatch::Exact(200);
                let parts = [(PartId::FIRST, &matches[..])];
                let id = RuleId::from_index(id);
                policy.add(id, Priority(1), ActionId(0), &parts).unwrap();
            }
            let classifier = EngineSpec::parse("forest")
                .unwrap()
                .builder()
                .policy(&policy)
                .unwrap();
            for index in 0..fields {
                let look = |fields, value| {
                    let header = Numbered {
                        fields,
                        set: (index, value),
                    };
                    classifier.classify_header(&header)
                };
                let winner = look(fields, 200).unwrap().winner;
                assert_eq!(winner.rule(), Some(RuleId::from_index(index)));
                assert!(look(fields, 255).unwrap().winner.is_miss());
                assert_eq!(look(fields, 256), None, "it does not fit");
                assert_eq!(look(fields + 1, 200), None, "no header of this schema");
            }
        }
    }

    /// A five-tuple has values for schemas of its fields in any order, and for
    /// no other schemas.
    #[test]
    fn five_tuples_fit_schemas_of_their_fields() {
        let field =
            |name: &str, width, role| Field::new(name, width, MatchKind::Range).with_role(role);
        let proto = Field::new("p", 8, MatchKind::Exact).with_format(ValueFormat::IpProtocol);
        let fitting = vec![
            proto.clone(),
            field("to", 32, FieldRole::DestinationAddress),
            field("to-port", 16, FieldRole::DestinationPort),
        ];
        let zone = vec![Field::new("zone", 32, MatchKind::Exact), fitting[1].clone()];
        let wide_port = vec![field("to-port", 32, FieldRole::DestinationPort)];
        let v6 = vec![field("from", 128, FieldRole::SourceAddress), proto];
        let cases = [
            (fitting, Some(0)),
            (zone, None),
            (wide_port, None),
            (v6, None),
        ];
        let v4 = FiveTuple::new(address("1.2.3.4"), address("5.6.7.8"), 1, 2, 17).unwrap();
        for (fields, expected) in cases {
            let schema = Schema::new("any", fields).unwrap();
            let mut trace = PolicyTrace::new([&schema].into_iter());
            assert_eq!(trace.push_header(&v4).map(PartId::index), expected);
            assert_eq!(trace.len(), usize::from(expected.is_some()));
            if expected.is_some() {
                assert_eq!(trace.part(PartId::FIRST).header(0), [17, 0x0506_0708, 2]);
            }
        }
        assert_eq!(
            FiveTuple::new(address("1.2.3.4"), address("::1"), 1, 2, 17),
            None
        );
    }
}
