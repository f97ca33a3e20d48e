//! Own rules as values under masks, which the algorithms of [FCH14] take.
//!
//! [FCH14]: classyard::papers#fch14

use std::sync::Arc;

use classyard::{FieldMatch, RuleId, RuleRef, RuleSet};
use classyard_datapath::lab::header_space::Term;

/// The values under masks of a list of rules, at most. Algorithms compare a header with all
/// of them.
const MAX_TERMS: usize = 1 << 17;

/// Values under masks, the best first, and the rule of each.
pub(super) struct OwnTerms<const W: usize> {
    pub(super) terms: Arc<[Term<W>]>,
    pub(super) rules: Vec<RuleId>,
}

/// Returns the rules as values under masks, in the order of their ranks. A rule with ranges
/// becomes a value under a mask for each combination of the prefixes of its ranges.
///
/// # Errors
/// The reason, if there are too many values.
pub(super) fn own_terms<const W: usize>(rules: &RuleSet) -> Result<OwnTerms<W>, String> {
    let (mut terms, mut owners) = (Vec::new(), Vec::new());
    for position in rules.by_rank() {
        let rule = rules.rule(position as usize);
        let added = terms_of(rule, MAX_TERMS - terms.len());
        let added = added.ok_or_else(|| {
            format!("its ranges are more than {MAX_TERMS} values under masks, the limit")
        })?;
        owners.extend(std::iter::repeat_n(rule.id(), added.len()));
        terms.extend(added);
    }
    Ok(OwnTerms {
        terms: terms.into(),
        rules: owners,
    })
}

/// Returns the values under masks of a rule; `None` if there are more than `max_terms`.
fn terms_of<const W: usize>(rule: RuleRef<'_>, max_terms: usize) -> Option<Vec<Term<W>>> {
    let words = |words: &[u64]| std::array::from_fn(|word| words[word]);
    let mut parts: Vec<([u64; W], [u64; W])> = vec![(words(rule.value()), words(rule.mask()))];
    for id in rule.schema().field_ids() {
        let range = rule.field(id);
        if !matches!(range, FieldMatch::Range { .. }) {
            continue;
        }
        let placement = rule.schema().placement(id);
        let prefixes = range.masked_values(rule.schema().field(id).width());
        if parts.len().saturating_mul(prefixes.len()) > max_terms {
            return None;
        }
        let with_prefix = |(value, mask): ([u64; W], [u64; W])| {
            prefixes.iter().map(move |&(first, field_mask)| {
                let (mut value, mut mask) = (value, mask);
                placement.set(&mut value, first);
                placement.set(&mut mask, field_mask);
                (value, mask)
            })
        };
        parts = parts.into_iter().flat_map(with_prefix).collect();
    }
    if parts.len() > max_terms {
        return None;
    }
    let terms = parts
        .into_iter()
        .map(|(value, mask)| Term::new(value, mask));
    Some(terms.collect())
}

#[cfg(test)]
mod tests {
    use classyard::policy::PartId;
    use classyard_report::input::family::FamilyName;
    use classyard_workload::generate::Profile;

    use super::*;
    use crate::bench::{generated_policy, generated_trace};

    #[test]
    fn values_under_masks_match_what_their_rules_match() {
        let profile = Arc::new(Profile::built_in("fw1").unwrap().clone());
        let family = FamilyName::Ipv4.with(profile, 0.0);
        let mut silent = classyard::NoProgress;
        let policy = generated_policy(family, 200, 1, &mut silent).unwrap();
        let rules = policy.part(PartId::FIRST);
        let own = own_terms::<2>(rules).unwrap();
        assert!(own.terms.len() > rules.len(), "fw1 has ranges");
        assert_eq!(own.terms.len(), own.rules.len());
        let trace = generated_trace(&policy, 3_000, 1, &mut silent).unwrap();
        let mut matched = 0;
        for key in trace.part(PartId::FIRST).as_slice().rows::<2>() {
            let first = own.terms.iter().position(|term| term.contains(key));
            let winner = first.map(|term| own.rules[term]);
            assert_eq!(winner, rules.scan(key).rule());
            matched += usize::from(winner.is_some());
            // At most one value under a mask of a rule matches.
            let mut matching: Vec<RuleId> = own.rules.clone();
            let mut terms = own.terms.iter();
            matching.retain(|_| terms.next().is_some_and(|term| term.contains(key)));
            let count = matching.len();
            matching.dedup();
            assert_eq!(matching.len(), count);
        }
        assert!(matched > 1_000, "{matched}");
    }

    #[test]
    fn too_many_values_are_refused() {
        let profile = Arc::new(Profile::built_in("fw1").unwrap().clone());
        let family = FamilyName::Ipv4.with(profile, 0.0);
        let policy = generated_policy(family, 50, 1, &mut classyard::NoProgress).unwrap();
        let rules = policy.part(PartId::FIRST);
        let counts = rules.iter().map(|rule| {
            let terms = terms_of::<2>(rule, MAX_TERMS).unwrap();
            assert!(terms_of::<2>(rule, terms.len()).is_some());
            assert!(terms_of::<2>(rule, terms.len() - 1).is_none());
            terms.len()
        });
        assert!(counts.max() > Some(1));
    }
}
