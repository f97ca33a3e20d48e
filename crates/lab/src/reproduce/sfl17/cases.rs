//! Rule sets, the changes made to them, and headers for both.

use std::sync::Arc;

use classyard::policy::PartId;
use classyard::transaction::Change;
use classyard::{KeyVec, NoProgress, Policy, PolicyTrace, RuleId, RuleSet};
use classyard_report::failure::Failure;
use classyard_report::input::family::FamilyName;
use classyard_workload::generate::Profile;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::bench::{generated_policy, generated_trace};

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Insert,
    Delete,
}

impl Kind {
    pub(super) const BOTH: [Kind; 2] = [Kind::Insert, Kind::Delete];

    /// Returns the name in the plural.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Insert => "insertions",
            Kind::Delete => "deletions",
        }
    }
}

/// A rule set with changes as in [SFL17] §V.B: rules at random positions were removed
/// from it and are inserted again, or they are deleted.
///
/// [SFL17]: classyard::papers#sfl17
pub(super) struct Case {
    /// All rules, at any time.
    policy: Policy,
    initial: RuleSet,
    kind: Kind,
    /// The rules that are changed, in the order of the changes.
    chosen: Vec<RuleId>,
    trace: PolicyTrace,
}

impl Case {
    /// Generates `rules` initial rules, and `changes` insertions or deletions.
    ///
    /// # Errors
    /// If the rules cannot be generated.
    pub(super) fn new(
        profile: &Arc<Profile>,
        rules: usize,
        changes: usize,
        kind: Kind,
        headers: usize,
        seed: u64,
    ) -> Result<Case, Failure> {
        let rule_count = match kind {
            Kind::Insert => rules + changes,
            Kind::Delete => rules,
        };
        let family = FamilyName::Ipv4.with(Arc::clone(profile), 0.0);
        let policy = generated_policy(family, rule_count, seed, &mut NoProgress)?;
        let trace = generated_trace(&policy, headers, seed, &mut NoProgress)?;
        Ok(Case::of(policy, trace, changes, kind, seed))
    }

    /// Returns a case of `changes` insertions or deletions of rules of the policy's first
    /// part.
    pub(super) fn of(
        policy: Policy,
        trace: PolicyTrace,
        changes: usize,
        kind: Kind,
        seed: u64,
    ) -> Case {
        let mut chosen = policy.ids().to_vec();
        chosen.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        chosen.truncate(changes);
        let everything = policy.part(PartId::FIRST);
        let mut initial = RuleSet::new(everything.schema());
        for rule in everything.iter() {
            if kind == Kind::Delete || !chosen.contains(&rule.id()) {
                initial.push(rule).expect("ids are unique in the policy");
            }
        }
        Case {
            policy,
            initial,
            kind,
            chosen,
            trace,
        }
    }

    /// Generates a case from a profile's name.
    #[cfg(test)]
    pub(super) fn generate(
        profile: &str,
        rules: usize,
        changes: usize,
        kind: Kind,
        headers: usize,
        seed: u64,
    ) -> Result<Case, Failure> {
        let profile = classyard_report::input::family::profile(profile)?;
        Case::new(&profile, rules, changes, kind, headers, seed)
    }

    /// Returns the rules at the beginning.
    pub(super) fn initial(&self) -> &RuleSet {
        &self.initial
    }

    /// Returns the changes, in order.
    pub(super) fn changes(&self) -> Vec<Change<'_>> {
        let rules = self.policy.part(PartId::FIRST);
        let changes = self.chosen.iter().map(|&id| match self.kind {
            Kind::Insert => Change::Insert(rules.get(id).expect("chosen from these rules")),
            Kind::Delete => Change::Remove(id),
        });
        changes.collect()
    }

    /// Returns headers drawn from all rules.
    pub(super) fn headers(&self) -> &KeyVec {
        self.trace.part(PartId::FIRST)
    }
}
