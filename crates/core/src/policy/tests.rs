use super::*;
use crate::error::RuleError;

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

/// A policy of two parts; rule 7 is in the second alone, rule 0 in both.
fn policy() -> Policy {
    let mut policy = Policy::dual_stack();
    let action = policy.action("accept");
    for (id, parts) in [(7, &[1][..]), (0, &[1, 0])] {
        let id = RuleId::new(id).unwrap();
        let matches: Named<'_> = parts.iter().map(|&at| (part(at), &ANY[..])).collect();
        policy.add(id, Priority(3), action, &matches).unwrap();
        policy.set_rule_name(id, "named");
    }
    policy
}

/// Everything that a policy holds, as text.
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

/// Random lists of parts and matches, good and bad: what is refused changes
/// nothing, and what is accepted is what a list of accepted rules says.
#[test]
fn policies_hold_what_was_accepted_and_nothing_else() {
    let mut state = 11;
    let mut below = |bound: u64| crate::seed::splitmix(&mut state) % bound;
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
