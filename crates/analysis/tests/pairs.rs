//! The findings of `lint` about pairs of rules, against every header of small schemas.

use std::collections::{BTreeMap, BTreeSet};

use classyard::prelude::*;
use classyard::{Field, FieldId, MatchKind, NoProgress};
use classyard_analysis::{Conflict, Finding, Lint, LintSettings, Statements, lint_statements};
use classyard_conformance::random::{Dice, SeededDice};

mod small;

use small::{all_keys, small_match, small_policy, small_schema};

/// A policy of one part, the number of each rule's statement, and the findings.
struct Case {
    policy: Policy,
    numbers: Vec<u32>,
    lint: Lint,
}

impl Case {
    fn new(policy: Policy, numbers: Vec<u32>) -> Case {
        let statements = Statements::new(&policy, &numbers);
        let mut settings = LintSettings::default();
        settings.redundant = false;
        settings.equal_priority = true;
        settings.correlated = true;
        settings.mergeable = true;
        let lint = lint_statements(&policy, &statements, &settings, &mut NoProgress).unwrap();
        assert!(lint.unknown().is_empty());
        Case {
            policy,
            numbers,
            lint,
        }
    }

    /// A policy of statements of one rule each, or of several.
    fn random(policy: Policy, of_one_rule: bool, dice: &mut dyn Dice) -> Case {
        let count = u32::try_from(policy.len()).unwrap();
        let numbers = match of_one_rule {
            true => (0..count).collect(),
            false => (0..count)
                .map(|_| u32::try_from(dice.below(policy.len())).unwrap())
                .collect(),
        };
        Case::new(policy, numbers)
    }

    fn rules(&self) -> &RuleSet {
        &self.policy.parts()[0]
    }

    fn number(&self, rule: RuleId) -> u32 {
        self.numbers[self.policy.position(rule).unwrap()]
    }

    /// True if a rule of a statement matches a key.
    fn matches(&self, statement: u32, key: &[u64]) -> bool {
        let mut rules = self.rules().iter();
        rules.any(|rule| self.number(rule.id()) == statement && rule.matches(key))
    }
}

/// By statement: the other statements that are in conflict with it.
type Expected = BTreeMap<u32, BTreeSet<u32>>;

/// Returns the conflicts of equal priority, and the conflicts of correlated statements.
fn expected(case: &Case) -> [Expected; 2] {
    let keys = all_keys(case.rules().schema());
    let mut expected: [Expected; 2] = Default::default();
    let mut alone: BTreeSet<(u32, u32)> = BTreeSet::new();
    for key in keys.as_slice().iter() {
        let statements: BTreeSet<u32> = case.numbers.iter().copied().collect();
        let (inside, outside): (Vec<u32>, Vec<u32>) = statements
            .into_iter()
            .partition(|&number| case.matches(number, key));
        alone.extend(
            inside
                .iter()
                .flat_map(|&a| outside.iter().map(move |&b| (a, b))),
        );
    }
    for key in keys.as_slice().iter() {
        let mut matching: Vec<_> = case
            .rules()
            .iter()
            .filter(|rule| rule.matches(key))
            .collect();
        matching.sort_by_key(|rule| rule.winner().rank());
        let Some(best) = matching.first() else {
            continue;
        };
        for (index, worse) in matching.iter().enumerate() {
            for better in &matching[..index] {
                let [own, other] = [worse, better].map(|rule| case.number(rule.id()));
                if better.action() == worse.action() || own == other {
                    continue;
                }
                if worse.priority() == best.priority() {
                    expected[0].entry(own).or_default().insert(other);
                }
                let are_crossing = alone.contains(&(own, other)) && alone.contains(&(other, own));
                if better.id() == best.id() && are_crossing {
                    expected[1].entry(own).or_default().insert(other);
                }
            }
        }
    }
    expected
}

/// Checks that the conflicts of a kind are as expected. Returns their number.
fn check_conflicts(case: &Case, conflicts: &[&Conflict], mut expected: Expected) -> usize {
    for conflict in conflicts {
        let own = case.number(conflict.rule);
        let partners = expected.remove(&own).unwrap_or_default();
        let named: Vec<u32> = conflict
            .others
            .iter()
            .map(|&rule| case.number(rule))
            .collect();
        let named_set: BTreeSet<u32> = named.iter().copied().collect();
        assert_eq!(named_set.len(), named.len(), "{conflict:?}");
        assert!(
            named_set.is_subset(&partners),
            "{:?} {conflict:?}",
            case.policy
        );
        assert!(conflict.more && named.len() == 8 || named_set == partners);
        let mut key = KeyVec::new(case.rules().schema());
        key.push(&conflict.header).unwrap();
        let first = case.rules().get(conflict.others[0]).unwrap();
        assert!(first.matches(key.key(0)) && case.matches(own, key.key(0)));
        let winner = case.rules().scan(key.key(0)).rule().unwrap();
        let winner = case.rules().get(winner).unwrap();
        assert_eq!(winner.priority(), first.priority(), "a better rule decides");
    }
    assert!(expected.is_empty(), "{:?} {expected:?}", case.policy);
    conflicts.len()
}

/// Returns the conflicts of both kinds.
fn conflicts(lint: &Lint) -> [Vec<&Conflict>; 2] {
    let mut conflicts = [Vec::new(), Vec::new()];
    for finding in lint.findings() {
        match finding {
            Finding::EqualPriority(conflict) => conflicts[0].push(conflict),
            Finding::Correlated(conflict) => conflicts[1].push(conflict),
            _ => {}
        }
    }
    conflicts
}

#[test]
fn conflicts_are_those_of_every_header() {
    let mut dice = SeededDice::new(31);
    let mut counts = [0; 2];
    for round in 0..400 {
        let policy = small_policy(&small_schema(&mut dice), &mut dice);
        let case = Case::random(policy, round % 2 == 0, &mut dice);
        let conflicts = conflicts(&case.lint);
        for (kind, expected) in expected(&case).into_iter().enumerate() {
            counts[kind] += check_conflicts(&case, &conflicts[kind], expected);
        }
    }
    assert!(counts.iter().all(|&count| count > 300), "{counts:?}");
}

#[test]
fn a_conflict_names_at_most_eight_rules() {
    let fields = ["x", "y"].map(|name| Field::new(name, 4, MatchKind::Range));
    let schema = Schema::new("grid", fields.into()).unwrap();
    let mut policy = Policy::single(&schema);
    let part = policy.part_ids().next().unwrap();
    let single = |value| FieldMatch::Range {
        low: value,
        high: value,
    };
    // Columns, and a row that crosses them.
    let columns = (0..12).map(|x| ([single(x), FieldMatch::Any], ActionId(0)));
    let row = ([FieldMatch::Any, single(7)], ActionId(1));
    for (index, (matches, action)) in columns.chain([row]).enumerate() {
        let id = RuleId::from_index(index);
        let added = policy.add(id, Priority(1), action, &[(part, &matches)]);
        added.unwrap();
    }
    let case = Case::new(policy, (0..13).collect());
    for conflicts in conflicts(&case.lint) {
        let [conflict] = &conflicts[..] else {
            panic!("{conflicts:?}")
        };
        assert_eq!(conflict.rule.get(), 12);
        assert_eq!((conflict.others.len(), conflict.more), (8, true));
    }
}

/// Returns the values that a match has.
fn values(matched: FieldMatch, field: &Field) -> BTreeSet<u128> {
    let has = |value: &u128| match matched {
        FieldMatch::Any => true,
        FieldMatch::Exact(own) => own == *value,
        FieldMatch::Prefix { value: own, length } => {
            length == 0 || (own ^ value) >> (field.width() - length) == 0
        }
        FieldMatch::Range { low, high } => (low..=high).contains(value),
        FieldMatch::Ternary { value: own, mask } => (own ^ value) & mask == 0,
    };
    (0..=field.max_value()).filter(has).collect()
}

/// True if two matches have no value in common, and one match has the values of both.
fn is_one_match(a: &BTreeSet<u128>, b: &BTreeSet<u128>, field: &Field) -> bool {
    let union: BTreeSet<u128> = a | b;
    if union.len() != a.len() + b.len() {
        return false;
    }
    let is_interval = |values: &BTreeSet<u128>| {
        let (first, last) = (values.first().unwrap(), values.last().unwrap());
        last - first + 1 == values.len() as u128
    };
    // The values under a mask: as many as the bits that differ allow.
    let is_cube = |values: &BTreeSet<u128>| {
        let first = values.first().unwrap();
        let varying = values.iter().fold(0, |bits, value| bits | (first ^ value));
        values.len() as u128 == 1 << varying.count_ones()
    };
    let are_intervals = is_interval(a) && is_interval(b) && is_interval(&union);
    let have_holes = !is_interval(a);
    match field.kind() {
        MatchKind::Exact => union.len() as u128 == field.max_value() + 1,
        MatchKind::Range if are_intervals => true,
        MatchKind::Prefix if are_intervals => is_cube(&union),
        MatchKind::Ternary => is_cube(a) && is_cube(b) && is_cube(&union),
        MatchKind::Range | MatchKind::Prefix => {
            have_holes && is_cube(a) && is_cube(b) && is_cube(&union)
        }
    }
}

/// The field that two mergeable statements differ in, and the values of the merged rules. The
/// rules are in file order.
fn merge_statements(
    case: &Case,
    better: &[RuleRef<'_>],
    worse: &[RuleRef<'_>],
) -> Option<(FieldId, BTreeSet<u128>)> {
    let mut merged = None;
    for (better, worse) in better.iter().zip(worse) {
        if !better.winner().beats(worse.winner()) {
            return None;
        }
        if better.action() == worse.action() && better.fields() == worse.fields() {
            continue;
        }
        let merge = merge(case, better, worse)?;
        if merged.get_or_insert_with(|| merge.clone()) != &merge {
            return None;
        }
    }
    merged.filter(|_| better.len() == worse.len())
}

/// The field that two mergeable rules differ in, and the values of the merged rule.
fn merge(
    case: &Case,
    better: &RuleRef<'_>,
    worse: &RuleRef<'_>,
) -> Option<(FieldId, BTreeSet<u128>)> {
    let schema = case.rules().schema();
    if better.action() != worse.action() {
        return None;
    }
    let mut differing = schema.field_ids().filter(|&id| {
        let field = schema.field(id);
        values(better.field(id), field) != values(worse.field(id), field)
    });
    let (field, None) = (differing.next()?, differing.next()) else {
        return None;
    };
    let [a, b] = [better, worse].map(|rule| values(rule.field(field), schema.field(field)));
    let is_between = |rule: &RuleRef<'_>| {
        better.winner().beats(rule.winner()) && rule.winner().beats(worse.winner())
    };
    let keys = all_keys(schema);
    let has_obstacle = keys.as_slice().iter().any(|key| {
        let mut rules = case.rules().iter();
        worse.matches(key)
            && rules.any(|rule| {
                is_between(&rule) && rule.action() != worse.action() && rule.matches(key)
            })
    });
    (is_one_match(&a, &b, schema.field(field)) && !has_obstacle).then(|| (field, &a | &b))
}

/// Returns a random policy with copies of its rules that differ in one field.
fn policy_of_similar_rules(dice: &mut dyn Dice) -> Policy {
    let schema = small_schema(dice);
    let mut policy = small_policy(&schema, dice);
    let part = policy.part_ids().next().unwrap();
    for _ in 0..dice.below(12) {
        let id = RuleId::from_index(policy.len());
        let original = policy.parts()[0].rule(dice.below(policy.len()));
        let (mut matches, action) = (original.fields(), original.action());
        let field = dice.below(matches.len());
        matches[field] = small_match(&schema.fields()[field], dice);
        let priority = Priority(u32::try_from(dice.below(6)).unwrap());
        policy
            .add(id, priority, action, &[(part, &matches)])
            .unwrap();
    }
    policy
}

/// Returns a random policy with statements of two rules each: rules, and copies of them in which
/// one field of one or both rules is different.
fn policy_of_similar_statements(dice: &mut dyn Dice) -> Policy {
    let schema = small_schema(dice);
    let mut policy = Policy::single(&schema);
    let part = policy.part_ids().next().unwrap();
    let actions = ["permit", "deny"].map(|name| policy.declare_action(name));
    for _ in 0..3 {
        let action = actions[dice.below(2)];
        let mut statement: Vec<Vec<FieldMatch>> = (0..2)
            .map(|_| {
                schema
                    .fields()
                    .iter()
                    .map(|field| small_match(field, dice))
                    .collect()
            })
            .collect();
        for _ in 0..=dice.below(3) {
            for matches in &statement {
                let id = RuleId::from_index(policy.len());
                let priority = Priority(u32::try_from(40 - policy.len()).unwrap());
                policy
                    .add(id, priority, action, &[(part, &matches[..])])
                    .unwrap();
            }
            let field = dice.below(schema.fields().len());
            let changed = small_match(&schema.fields()[field], dice);
            for matches in &mut statement[dice.below(2)..] {
                matches[field] = changed;
            }
        }
    }
    policy
}

#[test]
fn mergeable_rules_are_those_of_every_pair() {
    let mut dice = SeededDice::new(33);
    let (mut count, mut several) = (0, 0);
    for round in 0..1500 {
        let policy = match round % 2 {
            0 => policy_of_similar_rules(&mut dice),
            _ => policy_of_similar_statements(&mut dice),
        };
        let case = match round % 2 {
            0 => Case::random(policy, round % 4 > 0, &mut dice),
            _ => {
                let numbers = (0..u32::try_from(policy.len()).unwrap()).map(|rule| rule / 2);
                let numbers = numbers.collect();
                Case::new(policy, numbers)
            }
        };
        let mut findings: BTreeMap<RuleId, &Finding> = BTreeMap::new();
        for finding in case.lint.findings() {
            if let Finding::Mergeable { rule, .. } = finding {
                assert!(findings.insert(*rule, finding).is_none());
            }
        }
        let numbers: BTreeSet<u32> = case.numbers.iter().copied().collect();
        let rules_of = |number: u32| {
            let rules = case.rules().iter();
            let mut rules: Vec<_> = rules
                .filter(|rule| case.number(rule.id()) == number)
                .collect();
            rules.sort_by_key(|rule| case.policy.position(rule.id()));
            rules
        };
        for &number in &numbers {
            let worse = rules_of(number);
            let others = numbers.iter().filter(|&&other| other != number);
            let merges = others.filter_map(|&other| {
                let better = rules_of(other);
                let merge = merge_statements(&case, &better, &worse)?;
                Some((better[0], merge))
            });
            // The nearest statement.
            let expected = merges.max_by_key(|(better, _)| better.winner().rank());
            let worse = worse[0];
            let finding = findings.remove(&worse.id());
            let Some((better, (expected_field, expected_values))) = expected else {
                assert!(finding.is_none(), "{:?} {finding:?}", case.policy);
                continue;
            };
            several += usize::from(rules_of(number).len() > 1);
            let Some(Finding::Mergeable {
                other,
                field,
                merged,
                ..
            }) = finding
            else {
                panic!("{:?} rules {} and {}", case.policy, better.id(), worse.id())
            };
            assert_eq!((*other, *field), (better.id(), expected_field));
            let schema = case.rules().schema();
            assert_eq!(values(*merged, schema.field(*field)), expected_values);
            count += 1;
        }
    }
    assert!(count > 200, "{count}");
    assert!(several > 20, "{several}");
}

#[test]
fn a_rule_of_two_families_is_merged_in_both() {
    let policy = |families: [&[usize]; 2]| {
        let mut policy = Policy::dual_stack();
        let parts: Vec<_> = policy.part_ids().collect();
        for (index, families) in families.into_iter().enumerate() {
            let mut matches = [FieldMatch::Any; 5];
            let port = 80 + index as u128;
            matches[3] = FieldMatch::Range {
                low: port,
                high: port,
            };
            let families = families.iter().map(|&family| (parts[family], &matches[..]));
            let families: Vec<_> = families.collect();
            let id = RuleId::from_index(index);
            policy.add(id, Priority(9), ActionId(0), &families).unwrap();
        }
        policy
    };
    let both: &[usize] = &[0, 1];
    let merged = Case::new(policy([both, both]), vec![0, 1]).lint;
    assert!(matches!(merged.findings(), [Finding::Mergeable { .. }]));
    let others: [[&[usize]; 2]; 3] = [[both, &[0]], [&[1], both], [&[0], &[1]]];
    for families in others {
        let lint = Case::new(policy(families), vec![0, 1]).lint;
        assert_eq!(lint.findings(), []);
    }
}

#[test]
fn a_misspelled_action_of_a_long_list_is_found() {
    let lint = |rules: usize, misspelled: usize| {
        let mut policy = Policy::single(&Schema::ipv4_5tuple());
        let part = policy.part_ids().next().unwrap();
        for index in 0..rules {
            let name = if index < misspelled {
                "premit"
            } else {
                "permit"
            };
            let action = policy.declare_action(name);
            let mut matches = [FieldMatch::Any; 5];
            let port = index as u128;
            matches[3] = FieldMatch::Range {
                low: port,
                high: port,
            };
            let id = RuleId::from_index(index);
            policy
                .add(id, Priority(1), action, &[(part, &matches)])
                .unwrap();
        }
        let statements = Statements::of_one_rule(&policy);
        let mut settings = LintSettings::default();
        settings.rare_action = true;
        lint_statements(&policy, &statements, &settings, &mut NoProgress).unwrap()
    };
    let found = lint(200, 2);
    assert_eq!(found.findings().len(), 2);
    let Finding::RareAction {
        action, similar, ..
    } = &found.findings()[0]
    else {
        panic!("{found:?}")
    };
    assert_eq!((action.as_str(), similar.as_str()), ("premit", "permit"));
    for (rules, misspelled) in [(49, 1), (199, 2), (400, 3), (200, 0)] {
        assert_eq!(
            lint(rules, misspelled).findings(),
            [],
            "{misspelled} of {rules}"
        );
    }
}
