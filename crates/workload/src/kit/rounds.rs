//! Differential runs over one random schema after the other.
//!
//! A [`Round`] follows from a seed: a schema, a number of rules, the rules to
//! begin with, and how much to do. It is a run of
//! [`differential`](super::differential()) with updates, rebuilds, learning and
//! emptying and filling again, so a round is repeated by its seed alone, with
//! whatever subjects.
//!
//! ```text
//! for seed in first..first + count:
//!     outcome = Round::draw(seed, None).run(subjects)
//!     stop if the outcome has a disagreement
//! ```

use std::sync::Arc;

use classyard::{Progress, RuleSet, Schema};

use super::Subject;
use super::differential::{Options, Outcome, differential};
use super::random::{Dice, RuleMaker, SeededDice, random_schema};

/// Numbers of rules to have most of the time. Small sets are checked most per
/// second; large ones have large tables.
const RULES: [usize; 10] = [3, 10, 25, 60, 60, 120, 120, 250, 600, 2500];

/// The most rules times the words of their keys, so that a round of a schema
/// with 32 words takes no longer than one with 4.
const RULE_WORDS: usize = 10_000;

/// Changes for each rule in which the phases of [`Churn`](super::random::Churn)
/// come once each: 2.8 transactions for each rule, of 4.7 changes in the mean.
const CHANGES_PER_RULE: usize = 13;

/// Changes that the phases take however many rules there are.
const CHANGES: usize = 500;

/// A differential run over a random schema.
#[derive(Clone, Debug)]
pub struct Round {
    /// Everything else follows from it and from the number of changes.
    pub seed: u64,
    /// The schema.
    pub schema: Arc<Schema>,
    /// The rules to begin with; none now and then.
    pub start: RuleSet,
    /// What to do.
    pub options: Options,
}

impl Round {
    /// The round of a seed, with at least so many changes. `None` stands for as
    /// many as it takes to empty and fill the rule set; when that is more than
    /// `updates`, there are fewer rules.
    #[must_use]
    pub fn draw(seed: u64, updates: Option<usize>) -> Round {
        let mut dice = SeededDice::new(seed);
        let dice: &mut dyn Dice = &mut dice;
        let schema = random_schema(dice);
        let most = RULE_WORDS / schema.key_words();
        let most = match updates {
            Some(updates) => most.min(updates / CHANGES_PER_RULE).max(RULES[0]),
            None => most,
        };
        let rules = (*dice.pick(&RULES)).min(most);
        let start = match dice.below(3) {
            0 => RuleSet::new(&schema),
            _ => RuleMaker::new(&schema, dice).rule_set(rules, dice),
        };
        // The oracle's time for a check grows with headers times rules, so that
        // few rules are looked up with many headers.
        let headers = (40_000 / rules).clamp(64, 512);
        let options = Options {
            seed,
            updates: updates.unwrap_or(CHANGES + CHANGES_PER_RULE * rules),
            rules,
            limit: rules + rules / 2 + 1,
            check_every: if rules > 250 { 40 } else { 10 },
            headers,
            batches: headers / 40,
            masked: 16,
            build_every: 6,
            ..Options::default()
        };
        Round {
            seed,
            schema,
            start,
            options,
        }
    }

    /// Runs all subjects.
    pub fn run(&self, subjects: &[Subject], progress: &mut dyn Progress) -> Outcome {
        differential(subjects, &self.start, &self.options, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use classyard::NoProgress;

    #[test]
    fn a_round_is_repeated_by_its_seed() {
        let linear = [Subject::engines().remove(0)];
        for seed in [3, u64::MAX] {
            let (first, second) = (Round::draw(seed, Some(200)), Round::draw(seed, Some(200)));
            assert_eq!(first.schema, second.schema);
            let (first, second) = (
                first.run(&linear, &mut NoProgress),
                second.run(&linear, &mut NoProgress),
            );
            assert!(first.disagreement.is_none());
            assert_eq!(first.counters, second.counters);
            assert!(first.counters.changes > 50 && first.counters.lookups() > 1000);
        }
    }

    #[test]
    fn rounds_are_of_many_sizes_and_wide_schemas_have_fewer_rules() {
        let rounds: Vec<Round> = (0..300).map(|seed| Round::draw(seed, None)).collect();
        for size in RULES {
            assert!(rounds.iter().any(|round| round.options.rules == size));
        }
        for round in &rounds {
            let words = round.schema.key_words();
            assert!(round.options.rules * words <= RULE_WORDS);
        }
        assert!(rounds.iter().any(|round| round.start.is_empty()));
        let few = Round::draw(1, Some(100));
        assert!(few.options.updates == 100 && few.options.rules <= 7);
    }
}
