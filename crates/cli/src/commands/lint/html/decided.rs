//! The share of the packets that a rule matches which it decides.

use std::collections::{BTreeMap, BTreeSet};

use classyard::policy::PartId;
use classyard::{FieldMatch, Policy, Priority, RuleId, RuleRef};
use classyard_analysis::{AnalysisError, QuerySettings, query};
use classyard_report::output::join;
use classyard_report::output::style::percent;

/// The maximum number of rules of a file for which shares are computed.
pub(super) const MAX_RULES: usize = 5_000;

/// The maximum number of steps of the search. They take about a second.
const MAX_STEPS: u64 = 100_000_000;

/// Shares closer to 1 than this differ from it by rounding only.
const ROUNDING: f64 = 1e-9;

/// A larger share would be shown as 100.0 %.
const MAX_PERCENT_SHARE: f64 = 0.9995;

/// For each rule, the share of the packets that it matches which no better rule decides.
pub(super) struct DecidedShares {
    /// By rule and part. A rule that decides nothing has no entry.
    shares: BTreeMap<(RuleId, PartId), f64>,
    /// Rules whose shares are not known exactly.
    unknown: BTreeSet<RuleId>,
}

impl DecidedShares {
    /// Computes the shares. `None` if the policy has more than [`MAX_RULES`] rules.
    ///
    /// # Errors
    /// [`AnalysisError`] if the rules need too much memory.
    pub(super) fn new(
        policy: &Policy,
        progress: &mut dyn classyard::Progress,
    ) -> Result<Option<DecidedShares>, AnalysisError> {
        if policy.len() > MAX_RULES {
            return Ok(None);
        }
        let mut settings = QuerySettings::default();
        settings.max_steps = MAX_STEPS;
        let query = query(policy, &everything(policy), &settings, progress)?;
        let mut shares = BTreeMap::new();
        for answer in query.answers() {
            if let Some(rule) = answer.rule {
                shares.insert((rule, answer.part), answer.share);
            }
        }
        Ok(Some(DecidedShares {
            shares,
            unknown: query.undecided().iter().copied().flatten().collect(),
        }))
    }

    /// Returns the shares of a rule as text, one for each part of the policy that the rule is
    /// in. `None` if they are not known.
    pub(super) fn text(&self, policy: &Policy, rule: RuleId) -> Option<String> {
        if self.unknown.contains(&rule) {
            return None;
        }
        let texts = policy.rule(rule).map(|(part, form)| {
            let decided = self.shares.get(&(rule, part)).copied().unwrap_or(0.0);
            share_text(decided / matched(&form))
        });
        let texts: Vec<String> = texts.collect();
        match texts.iter().all(|text| *text == texts[0]) {
            true => texts.into_iter().next(),
            false => Some(join(texts, " / ")),
        }
    }
}

/// Returns a share as text that is 0 % or 100 % only if the share is exactly that.
fn share_text(share: f64) -> String {
    if share <= 0.0 {
        return "0 %".to_owned();
    }
    if share >= 1.0 - ROUNDING {
        return "100 %".to_owned();
    }
    match share > MAX_PERCENT_SHARE {
        true => ">99.9 %".to_owned(),
        false => percent(share),
    }
}

/// Returns a policy with one rule that matches everything.
fn everything(policy: &Policy) -> Policy {
    let schemas: Vec<_> = policy.schemas().cloned().collect();
    let mut all = Policy::new(policy.name(), &schemas);
    let action = all.declare_action("select");
    let forms = all.part_ids().zip(&schemas);
    let forms = forms.map(|(part, schema)| (part, vec![FieldMatch::Any; schema.fields().len()]));
    let forms: Vec<_> = forms.collect();
    let forms: Vec<_> = forms.iter().map(|(part, any)| (*part, &any[..])).collect();
    let added = all.add(RuleId::from_index(0), Priority(1), action, &forms);
    added.expect("the only rule");
    all
}

/// Returns the number of headers that a rule matches, divided by the number of all headers.
#[allow(clippy::cast_precision_loss)] // a share is shown with few digits
fn matched(rule: &RuleRef<'_>) -> f64 {
    let schema = rule.schema();
    let shares = schema.field_ids().map(|id| {
        let width = schema.field(id).width();
        let power = |bits: u32| 0.5_f64.powi(i32::try_from(bits).unwrap_or(i32::MAX));
        match rule.field(id) {
            FieldMatch::Any => 1.0,
            FieldMatch::Exact(_) => power(width),
            FieldMatch::Prefix { length, .. } => power(length),
            FieldMatch::Range { low, high } => ((high - low) as f64 + 1.0) * power(width),
            FieldMatch::Ternary { mask, .. } => power(mask.count_ones()),
        }
    });
    shares.product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use classyard::{NoProgress, Schema};

    #[test]
    fn shares_are_of_the_packets_that_a_rule_matches() {
        let mut policy = Policy::single(&Schema::ipv4_5tuple());
        let part = policy.part_ids().next().unwrap();
        let action = policy.declare_action("permit");
        for (id, (low, high)) in [(80, 83), (80, 87), (82, 87), (0, 65535)]
            .into_iter()
            .enumerate()
        {
            let mut matches = [FieldMatch::Any; 5];
            matches[3] = FieldMatch::Range { low, high };
            let priority = Priority(10 - u32::try_from(id).unwrap());
            let id = RuleId::from_index(id);
            policy
                .add(id, priority, action, &[(part, &matches)])
                .unwrap();
        }
        let shares = DecidedShares::new(&policy, &mut NoProgress)
            .unwrap()
            .unwrap();
        let texts: Vec<_> = policy
            .ids()
            .iter()
            .map(|&id| shares.text(&policy, id))
            .collect();
        let texts: Vec<_> = texts.iter().map(|text| text.as_deref().unwrap()).collect();
        assert_eq!(texts, ["100 %", "50.0 %", "0 %", ">99.9 %"]);
    }
}
