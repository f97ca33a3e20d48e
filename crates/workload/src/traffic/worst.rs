//! The search for headers that are the most expensive for one engine.
//!
//! # Idea
//! The cost of a lookup is taken from the engine's trace: the number of tables probed
//! plus the number of rules compared. Candidates are corners of rules, points inside
//! them, and corners with one field just outside, where lookups go far and find
//! nothing. Either the most expensive candidates are kept, or all headers are points of
//! the rule whose lookup is the most expensive. Tracing is slow, so the search ends
//! after a number of candidates or a total cost, whichever comes first. It finds
//! expensive headers, not the most expensive possible.

use classyard::policy::PartId;
use classyard::{LookupTrace, PolicyClassifier, RuleId};

use super::{Maker, TrafficError};
use crate::generate::Steps;

/// The limit on the total cost of the search: a few seconds.
const MAX_SEARCH_COST: usize = 8_000_000;

/// One candidate in `CANDIDATES_PER_KEPT` is kept.
const CANDIDATES_PER_KEPT: usize = 64;

/// The minimum number of candidates kept, if there are enough candidates.
const MIN_KEPT: usize = 16;

/// Returns the cost of a lookup: tables probed plus rules compared.
#[must_use]
pub fn cost(trace: &LookupTrace) -> usize {
    let compared = trace.probes.iter().map(|probe| probe.compared.len());
    trace.probes.len() + compared.sum::<usize>()
}

/// A candidate with its cost and the winning rule.
struct Candidate {
    cost: usize,
    part: PartId,
    key: Box<[u64]>,
    winner: Option<RuleId>,
}

/// Returns candidates, the most expensive first.
fn candidates(
    maker: &mut Maker<'_>,
    count: usize,
    classifier: &PolicyClassifier,
) -> Result<Vec<Candidate>, TrafficError> {
    if count == 0 {
        return Err(TrafficError::BadParameter {
            parameter: "the number of candidates",
            found: "0".to_owned(),
            expected: "at least 1",
        });
    }
    let mut drawn = Vec::new();
    let mut spent = 0;
    while drawn.len() < count && spent < MAX_SEARCH_COST {
        let (part, rule) = maker.rule();
        match maker.draw.below(3) {
            0 => maker.corner(&rule),
            1 => maker.point(&rule),
            _ => {
                maker.corner(&rule);
                let ids: Vec<_> = rule.schema().field_ids().collect();
                let id = *maker.draw.of(&ids);
                let up = maker.draw.coin();
                maker.step_out(&rule, id, up);
            }
        }
        let key = maker.key(rule.schema());
        let trace = classifier.part(part).trace(&key);
        let cost = cost(&trace);
        spent += cost;
        drawn.push(Candidate {
            cost,
            part,
            key,
            winner: trace.winner.rule(),
        });
    }
    drawn.sort_by(|a, b| b.cost.cmp(&a.cost).then_with(|| a.key.cmp(&b.key)));
    Ok(drawn)
}

/// Adds `headers` headers, each a random choice among the most expensive candidates.
pub(super) fn make(
    maker: &mut Maker<'_>,
    count: usize,
    headers: usize,
    classifier: &PolicyClassifier,
    steps: &mut Steps<'_>,
) -> Result<(), TrafficError> {
    let mut worst = candidates(maker, count, classifier)?;
    worst.truncate((worst.len() / CANDIDATES_PER_KEPT).max(MIN_KEPT));
    for _ in 0..headers {
        let candidate = &worst[maker.draw.below(worst.len())];
        maker.made.trace.push_key(candidate.part, &candidate.key);
        steps.advance(1)?;
    }
    Ok(())
}

/// Adds points of the rule whose lookup is the most expensive. If another rule wins at a
/// point, or no candidate matches a rule, adds the most expensive header instead.
pub(super) fn one_bucket(
    maker: &mut Maker<'_>,
    count: usize,
    headers: usize,
    classifier: &PolicyClassifier,
    steps: &mut Steps<'_>,
) -> Result<(), TrafficError> {
    let candidates = candidates(maker, count, classifier)?;
    let hit = candidates.iter().find_map(|candidate| {
        let id = candidate.winner?;
        let (_, rule) = maker
            .policy
            .rule(id)
            .find(|(part, _)| *part == candidate.part)?;
        Some((candidate, rule))
    });
    let Some((costliest, rule)) = hit else {
        let first = &candidates[0];
        for _ in 0..headers {
            maker.made.trace.push_key(first.part, &first.key);
            steps.advance(1)?;
        }
        return Ok(());
    };
    let engine = classifier.part(costliest.part);
    for _ in 0..headers {
        maker.point(&rule);
        let key = maker.key(rule.schema());
        // A better rule may cover a part of this rule.
        let winner = engine.classify_one(&key);
        let key = match winner.rule() == costliest.winner {
            true => &key,
            false => &costliest.key,
        };
        maker.made.trace.push_key(costliest.part, key);
        steps.advance(1)?;
    }
    Ok(())
}
