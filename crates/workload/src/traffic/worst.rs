//! Headers that are the most work for one engine.
//!
//! # Idea
//! The work of a lookup is what the engine's trace shows: tables looked at and
//! rules compared. Candidates are corners of rules, points inside them, and
//! these with one field just outside, where lookups go far and find nothing.
//! The costliest are kept, or all headers are points of the rule whose lookups
//! are the costliest. Traces are slow, so the search ends after a number of
//! candidates or of steps, whichever comes first; it finds hard headers, not
//! the hardest there can be.

use classyard::policy::PartId;
use classyard::{LookupTrace, PolicyClassifier, RuleId};

use super::{Maker, TrafficError};
use crate::generate::Steps;

/// Tables and rules looked at while searching: a few seconds.
const WORK: usize = 8_000_000;

/// One candidate in `KEPT` is kept.
const KEPT: usize = 64;

/// Headers are not fewer than this, if there are as many candidates.
const LEAST: usize = 16;

/// The work of a lookup: tables looked at and rules compared.
#[must_use]
pub fn cost(trace: &LookupTrace) -> usize {
    let compared = trace.probes.iter().map(|probe| probe.compared.len());
    trace.probes.len() + compared.sum::<usize>()
}

/// A candidate with its work and the rule that wins.
struct Candidate {
    cost: usize,
    part: PartId,
    key: Box<[u64]>,
    winner: Option<RuleId>,
}

/// Candidates, the most work first.
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
    let mut found = Vec::new();
    let mut spent = 0;
    while found.len() < count && spent < WORK {
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
        found.push(Candidate {
            cost,
            part,
            key,
            winner: trace.winner.rule(),
        });
    }
    found.sort_by(|a, b| b.cost.cmp(&a.cost).then_with(|| a.key.cmp(&b.key)));
    Ok(found)
}

/// Adds the costliest candidates, in random order, again and again.
pub(super) fn make(
    maker: &mut Maker<'_>,
    count: usize,
    headers: usize,
    classifier: &PolicyClassifier,
    steps: &mut Steps<'_>,
) -> Result<(), TrafficError> {
    let mut worst = candidates(maker, count, classifier)?;
    worst.truncate((worst.len() / KEPT).max(LEAST));
    for _ in 0..headers {
        let candidate = &worst[maker.draw.below(worst.len())];
        maker.made.trace.push_key(candidate.part, &candidate.key);
        steps.advance(1)?;
    }
    Ok(())
}

/// Adds points of the rule whose lookup is the costliest; where all rules win
/// elsewhere in it, the costliest header itself.
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
        // A better rule may cover a part of this one.
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
