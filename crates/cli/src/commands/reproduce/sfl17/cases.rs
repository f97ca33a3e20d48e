//! Rule sets, the changes made to them, and headers for both.

use std::sync::Arc;

use classyard::policy::PartId;
use classyard::transaction::Change;
use classyard::{KeyVec, NoProgress, Policy, PolicyTrace, RuleId, RuleSet};
use classyard_workload::generate::Profile;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::bench::{generated_policy, generated_trace};
use crate::failure::Failure;
use crate::input::family::FamilyName;

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Insert,
    Delete,
}

impl Kind {
    pub(super) const BOTH: [Kind; 2] = [Kind::Insert, Kind::Delete];

    /// In the plural.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Insert => "insertions",
            Kind::Delete => "deletions",
        }
    }
}

/// A rule set with changes, as [SFL17] §V.B makes them: rules at random places
/// were taken out of it and are inserted again, or they are deleted.
///
/// [SFL17]: classyard::papers#sfl17
pub(super) struct Case {
    /// All rules that there ever are.
    policy: Policy,
    initial: RuleSet,
    kind: Kind,
    /// The rules that are changed, in this order.
    chosen: Vec<RuleId>,
    trace: PolicyTrace,
}

impl Case {
    /// Rules that are `rules` at the beginning, of which or to which `changes`
    /// are made.
    ///
    /// # Errors
    /// When the rules cannot be generated.
    pub(super) fn new(
        profile: &Arc<Profile>,
        rules: usize,
        changes: usize,
        kind: Kind,
        headers: usize,
        seed: u64,
    ) -> Result<Case, Failure> {
        let all = match kind {
            Kind::Insert => rules + changes,
            Kind::Delete => rules,
        };
        let family = FamilyName::Ipv4.with(Arc::clone(profile), 0.0);
        let policy = generated_policy(family, all, seed, &mut NoProgress)?;
        let trace = generated_trace(&policy, headers, seed, &mut NoProgress)?;
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
        Ok(Case {
            policy,
            initial,
            kind,
            chosen,
            trace,
        })
    }

    /// The same of a profile by its name.
    #[cfg(test)]
    pub(super) fn generate(
        profile: &str,
        rules: usize,
        changes: usize,
        kind: Kind,
        headers: usize,
        seed: u64,
    ) -> Result<Case, Failure> {
        let profile = crate::input::family::profile(profile)?;
        Case::new(&profile, rules, changes, kind, headers, seed)
    }

    /// The rules at the beginning.
    pub(super) fn initial(&self) -> &RuleSet {
        &self.initial
    }

    /// The changes, in their order.
    pub(super) fn changes(&self) -> Vec<Change<'_>> {
        let rules = self.policy.part(PartId::FIRST);
        let changes = self.chosen.iter().map(|&id| match self.kind {
            Kind::Insert => Change::Insert(rules.get(id).expect("chosen from these rules")),
            Kind::Delete => Change::Remove(id),
        });
        changes.collect()
    }

    /// Headers drawn from all rules.
    pub(super) fn headers(&self) -> &KeyVec {
        self.trace.part(PartId::FIRST)
    }
}
