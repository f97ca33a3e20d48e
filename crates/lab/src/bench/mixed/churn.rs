//! The updates of the mixed load: rules are removed, inserted again and modified,
//! while their number stays about the same.
//!
//! One rule in [`OUTSIDE_ONE_IN`], chosen at random, begins outside the table. A
//! shuffled list of equally many insertions, removals and modifications follows. An
//! insertion adds a rule that is outside; a removal takes out a rule that is
//! inside; a modification switches a rule that is inside to its *other form* or
//! back. The other form matches the same headers with a different action, and with
//! the priority of its neighbour in file order. So lookups stay about as hard, and
//! a lost update shows in the answers.
//!
//! At the end of the list the writer undoes it step by step, from the last to the
//! first, and begins again. So it can run for any time, and the number of steps
//! determines which rules are in the table.

use classyard::{ActionId, Policy, Rule, RuleId, RuleSet};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One rule in `OUTSIDE_ONE_IN` begins outside.
const OUTSIDE_ONE_IN: usize = 16;

/// One of a rule's two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Own,
    Other,
}

impl Form {
    fn opposite(self) -> Form {
        match self {
            Form::Own => Form::Other,
            Form::Other => Form::Own,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Insert,
    Remove,
    Modify,
}

/// One update: its kind, its rule, and the form that the rule is inserted, removed
/// or modified to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) id: RuleId,
    pub(crate) form: Form,
}

impl Step {
    /// Returns the step that undoes this one.
    fn undone(self) -> Step {
        let Step { kind, id, form } = self;
        let (kind, form) = match kind {
            Kind::Insert => (Kind::Remove, form),
            Kind::Remove => (Kind::Insert, form),
            Kind::Modify => (Kind::Modify, form.opposite()),
        };
        Step { kind, id, form }
    }
}

/// A policy's rules in both forms.
pub(crate) struct Forms<'a> {
    own: &'a Policy,
    other: Policy,
}

impl<'a> Forms<'a> {
    pub(crate) fn new(own: &'a Policy) -> Forms<'a> {
        let ids = own.ids();
        let mut parts: Vec<RuleSet> = own.schemas().map(RuleSet::new).collect();
        for (position, &id) in ids.iter().enumerate() {
            let beside = ids.get(position ^ 1).copied().unwrap_or(id);
            let priority = own.rule(beside).next().map(|(_, rule)| rule.priority());
            for (part, rule) in own.rule(id) {
                let schema = rule.schema();
                let priority = priority.unwrap_or(rule.priority());
                let action = ActionId(rule.action().0.wrapping_add(1));
                let other_form = Rule::new(schema, id, priority, action, &rule.fields())
                    .expect("the fields come from a rule")
                    .with_cookie(rule.cookie());
                parts[part.index()]
                    .push(other_form.view())
                    .expect("ids are unique in the policy");
            }
        }
        Forms {
            own,
            other: Policy::from_parts(own.name(), parts),
        }
    }

    /// Returns all rules in this form.
    pub(crate) fn all(&self, form: Form) -> &Policy {
        match form {
            Form::Own => self.own,
            Form::Other => &self.other,
        }
    }

    /// Returns a policy of these rules.
    pub(crate) fn policy(&self, rules: &[(RuleId, Form)]) -> Policy {
        let mut parts: Vec<RuleSet> = self.own.schemas().map(RuleSet::new).collect();
        for &(id, form) in rules {
            for (part, rule) in self.all(form).rule(id) {
                parts[part.index()]
                    .push(rule)
                    .expect("ids are unique in the policy");
            }
        }
        Policy::from_parts(self.own.name(), parts)
    }
}

/// The rules that begin inside, and the list of steps.
pub(crate) struct Churn {
    initial: Vec<RuleId>,
    steps: Vec<Step>,
}

impl Churn {
    /// Creates a list of at most `changes` insertions, and as many removals and
    /// modifications. If no rule is outside to be inserted, one is removed instead,
    /// and vice versa. There must be a rule.
    pub(crate) fn new(ids: &[RuleId], changes: usize, seed: u64) -> Churn {
        assert!(!ids.is_empty(), "updates need rules");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.shuffle(&mut rng);
        let mut outside = order.split_off(ids.len() - ids.len() / OUTSIDE_ONE_IN);
        let mut inside = order;
        let mut initial = inside.clone();
        initial.sort_unstable(); // file order
        let mut kinds = vec![Kind::Insert; changes];
        kinds.resize(2 * changes, Kind::Remove);
        kinds.resize(3 * changes, Kind::Modify);
        kinds.shuffle(&mut rng);
        let mut forms = vec![Form::Own; ids.len()];
        let mut steps = Vec::with_capacity(kinds.len());
        for kind in kinds {
            let kind = match kind {
                Kind::Insert if outside.is_empty() => Kind::Remove,
                Kind::Remove | Kind::Modify if inside.is_empty() => Kind::Insert,
                kind => kind,
            };
            let rule_list = match kind {
                Kind::Insert => &mut outside,
                Kind::Remove | Kind::Modify => &mut inside,
            };
            let index = rng.random_range(0..rule_list.len());
            let rule = rule_list[index];
            match kind {
                Kind::Insert => inside.push(outside.swap_remove(index)),
                Kind::Remove => outside.push(inside.swap_remove(index)),
                Kind::Modify => forms[rule] = forms[rule].opposite(),
            }
            steps.push(Step {
                kind,
                id: ids[rule],
                form: forms[rule],
            });
        }
        Churn {
            initial: initial.into_iter().map(|rule| ids[rule]).collect(),
            steps,
        }
    }

    /// Returns the number of rules at the start.
    pub(crate) fn initial_len(&self) -> usize {
        self.initial.len()
    }

    /// Returns the step after `made` steps; there always is one.
    pub(crate) fn step(&self, made: usize) -> Step {
        let step_index = made % (2 * self.steps.len());
        match self.steps.get(step_index) {
            Some(&step) => step,
            None => self.steps[2 * self.steps.len() - 1 - step_index].undone(),
        }
    }

    /// Returns the rules after `made` steps, in the order of `policy`, which must be
    /// the policy whose ids the list was made from.
    pub(crate) fn rules_after(&self, made: usize, policy: &Policy) -> Vec<(RuleId, Form)> {
        let step_count = made % (2 * self.steps.len());
        let step_count = step_count.min(2 * self.steps.len() - step_count);
        let position = |id| policy.position(id).expect("an id of the policy");
        let mut standing = vec![None; policy.len()];
        for &id in &self.initial {
            standing[position(id)] = Some(Form::Own);
        }
        for step in &self.steps[..step_count] {
            standing[position(step.id)] = match step.kind {
                Kind::Insert | Kind::Modify => Some(step.form),
                Kind::Remove => None,
            };
        }
        let rules = policy.ids().iter().zip(standing);
        rules
            .filter_map(|(&id, form)| form.map(|form| (id, form)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use classyard::policy::PartId;
    use classyard::{FieldMatch, Priority, Schema};

    use super::*;

    /// Returns rules for IPv4, every third one for IPv6 as well.
    fn dual(rules: usize) -> Policy {
        let mut policy = Policy::dual_stack();
        for index in 0..rules {
            let id = RuleId::from_index(index);
            let any = [FieldMatch::Any; 5];
            let both_matches = [(PartId::FIRST, &any[..]), (PartId::from_index(1), &any[..])];
            let matches = &both_matches[..if index.is_multiple_of(3) { 2 } else { 1 }];
            let priority = Priority(u32::try_from(rules - index).unwrap());
            policy.add(id, priority, ActionId(7), matches).unwrap();
        }
        policy
    }

    #[test]
    fn the_list_can_be_carried_out_there_and_back() {
        for rules in [1, 2, 40] {
            let policy = dual(rules);
            let churn = Churn::new(policy.ids(), 200, 3);
            let first = churn.rules_after(0, &policy);
            assert_eq!(first.len(), churn.initial_len());
            assert_eq!(first.len(), rules - rules / 16);
            let mut forms: BTreeMap<u32, Form> =
                first.iter().map(|(id, form)| (id.get(), *form)).collect();
            for made in 0..2_500 {
                let rules = churn.rules_after(made, &policy);
                let rules = rules.into_iter().map(|(id, form)| (id.get(), form));
                assert_eq!(forms, rules.collect(), "after {made} steps");
                let Step { kind, id, form } = churn.step(made);
                let before = match kind {
                    Kind::Insert | Kind::Modify => forms.insert(id.get(), form),
                    Kind::Remove => forms.remove(&id.get()),
                };
                let expected = match kind {
                    Kind::Insert => None,
                    Kind::Remove => Some(form),
                    Kind::Modify => Some(form.opposite()),
                };
                assert_eq!(before, expected, "step {made}: {kind:?}");
            }
        }
    }

    #[test]
    fn kinds_are_about_as_many_and_the_number_of_rules_stays() {
        let policy = dual(640);
        let churn = Churn::new(policy.ids(), 1_000, 3);
        let count = |kind| churn.steps.iter().filter(|step| step.kind == kind).count();
        assert_eq!(churn.steps.len(), 3_000);
        assert_eq!(count(Kind::Modify), 1_000);
        assert!(count(Kind::Insert).abs_diff(count(Kind::Remove)) <= 40);
        for made in (0..6_000).step_by(100) {
            let rules = churn.rules_after(made, &policy).len();
            assert!((540..=640).contains(&rules), "{rules} after {made}");
        }
    }

    #[test]
    fn the_other_form_differs_in_action_and_priority_only() {
        let policy = dual(5);
        let forms = Forms::new(&policy);
        for (position, &id) in policy.ids().iter().enumerate() {
            let own: Vec<_> = policy.rule(id).collect();
            let other: Vec<_> = forms.all(Form::Other).rule(id).collect();
            assert_eq!(own.len(), other.len());
            for ((part, own), (other_part, other)) in own.iter().zip(&other) {
                assert_eq!((part, own.words()), (other_part, other.words()));
                assert_eq!(other.action(), ActionId(8));
                // The last rule has no neighbour.
                let has_same_priority = own.priority() == other.priority();
                assert_eq!(has_same_priority, position == 4);
            }
        }
        let second = PartId::from_index(1);
        let mixed: Vec<_> = policy.ids().iter().map(|&id| (id, Form::Other)).collect();
        let mixed = forms.policy(&mixed[..4]);
        assert_eq!(mixed.schemas().next(), Some(&Schema::ipv4_5tuple()));
        assert_eq!((mixed.len(), mixed.part(second).len()), (4, 2));
    }
}
