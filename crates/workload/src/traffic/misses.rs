//! The search for headers that no rule matches.
//!
//! # Idea
//! Candidates are random headers, and points of rules with one field moved just outside
//! or to any value. Points of rules go far into an engine before they miss. Candidates
//! are looked up in batches; candidates that hit are dropped.

use classyard::classifier::BATCH;
use classyard::policy::PartId;
use classyard::{FieldMatch, KeyVec, Policy, PolicyClassifier, RuleSet, Scratch, Winner};

use super::{Maker, TrafficError};
use crate::generate::Steps;

/// Adds misses to the trace.
pub(super) fn make(
    maker: &mut Maker<'_>,
    tries: usize,
    headers: usize,
    classifier: Option<&PolicyClassifier>,
    steps: &mut Steps<'_>,
) -> Result<(), TrafficError> {
    if tries == 0 {
        return Err(TrafficError::BadParameter {
            parameter: "the number of tries",
            found: "0".to_owned(),
            expected: "at least 1",
        });
    }
    let parts = open_parts(maker.policy)?;
    let mut scratch = Scratch::new();
    let mut hits_in_a_row = 0;
    while maker.made.trace.len() < headers {
        // In most rule sets nearly all candidates miss, so a batch has at most one
        // candidate for each missing header.
        let size = BATCH.min(headers - maker.made.trace.len());
        let part = *maker.draw.of(&parts);
        let rules = maker.policy.part(part);
        let mut keys = KeyVec::new(rules.schema());
        for _ in 0..size {
            candidate(maker, part);
            keys.push(&maker.values).expect("drawn within the fields");
        }
        let mut winners = vec![Winner::MISS; size];
        match classifier {
            Some(classifier) => {
                let part = classifier.part(part);
                part.classify_batch(keys.as_slice(), &mut winners, &mut scratch);
            }
            None => {
                for (key, winner) in keys.as_slice().iter().zip(&mut winners) {
                    let hit = rules.iter().find(|rule| rule.matches(key));
                    *winner = hit.map_or(Winner::MISS, |rule| rule.winner());
                }
            }
        }
        for (key, winner) in keys.as_slice().iter().zip(winners) {
            if winner.is_miss() {
                maker.made.trace.push_key(part, key);
                steps.advance(1)?;
                hits_in_a_row = 0;
            } else {
                hits_in_a_row += 1;
            }
        }
        if hits_in_a_row >= tries {
            return Err(TrafficError::RareMisses {
                found: maker.made.trace.len(),
                wanted: headers,
                tries: hits_in_a_row,
            });
        }
    }
    Ok(())
}

/// Returns the parts without a rule that matches everything.
fn open_parts(policy: &Policy) -> Result<Vec<PartId>, TrafficError> {
    let mut covering = 0;
    let open: Vec<PartId> = policy
        .part_ids()
        .filter(|&part| match covers_all(policy.part(part)) {
            Some(rule) => {
                covering = rule;
                false
            }
            None => true,
        })
        .collect();
    if open.is_empty() {
        return Err(TrafficError::NoMisses { rule: covering });
    }
    Ok(open)
}

/// Returns a rule that matches every header, if there is one.
fn covers_all(rules: &RuleSet) -> Option<u32> {
    let any = |field: FieldMatch| field == FieldMatch::Any;
    let covering = rules.iter().find(|rule| rule.fields().into_iter().all(any));
    covering.map(|rule| rule.id().get())
}

/// Sets the header to a candidate that may miss.
fn candidate(maker: &mut Maker<'_>, part: PartId) {
    let rules = maker.policy.part(part);
    if rules.is_empty() || maker.draw.below(4) == 0 {
        maker.random(part);
        return;
    }
    let rule = rules.rule(maker.draw.below(rules.len()));
    maker.point(&rule);
    let schema = rules.schema();
    let ids: Vec<_> = schema.field_ids().collect();
    let id = *maker.draw.of(&ids);
    if maker.draw.coin() {
        let up = maker.draw.coin();
        maker.step_out(&rule, id, up);
    } else {
        let max = schema.field(id).max_value();
        maker.values[id.index()] = maker.draw.up_to(max);
    }
}
