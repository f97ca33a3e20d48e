//! Differential runs over one random schema after the other.
//!
//! A [`Round`] follows from a seed: a schema, a number of rules, the rules to
//! begin with, and how much to do. It is a run of
//! [`differential`] with updates, rebuilds, re-optimisation, emptying and
//! refilling, so a round is repeated by its seed alone, with whatever subjects.
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
const RULES: [usize; 14] = [
    3, 10, 25, 25, 60, 60, 60, 120, 120, 120, 250, 250, 600, 2500,
];

/// The most rules times the square of the words of their keys, so that rounds of
/// wide schemas take seconds, too: learning takes that long. With 250 rules of 32
/// words a round took 12 s, with 2,500 rules of 3 words 5 s (2026-11-23).
const RULE_WORDS: usize = 40_000;

/// The number of rules that any schema may have, however wide its keys are.
const ANY_SCHEMA: usize = 60;

/// Changes for each rule in which the phases of [`Churn`](super::random::Churn)
/// come once each: 2.8 transactions for each rule, of 4.7 changes in the mean.
const CHANGES_PER_RULE: usize = 13;

/// Changes that the phases take however many rules there are.
const CHANGES: usize = 500;

/// About how many checks there are in a round, except for small sets, which have
/// one after every tenth transaction. Reorganising and re-optimisation come with
/// checks, and learning takes most of a round's time.
const CHECKS: usize = 50;

/// Changes of a transaction in the mean.
const CHANGES_PER_TRANSACTION: usize = 5;

/// Headers of a check times rules: below this, the oracle's scans take less time
/// than what else is done for a check. In 10 s for 2,500 rules, scans with 64
/// headers took 0.6 s (2026-11-23, `check --schemas 1 --seed 98` under perf).
const HEADERS_TIMES_RULES: usize = 300_000;

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
    /// The round of a seed, with at least `updates` changes. `None` stands for as
    /// many as it takes to empty and fill the rule set; when that is more than
    /// `updates`, there are fewer rules.
    #[must_use]
    pub fn draw(seed: u64, updates: Option<usize>) -> Round {
        let mut dice = SeededDice::new(seed);
        let dice: &mut dyn Dice = &mut dice;
        let schema = random_schema(dice);
        let most = (RULE_WORDS / schema.key_words().pow(2)).max(ANY_SCHEMA);
        let most = match updates {
            Some(updates) => most.min(updates / CHANGES_PER_RULE).max(RULES[0]),
            None => most,
        };
        let rules = (*dice.pick(&RULES)).min(most);
        let start = match dice.below(3) {
            0 => RuleSet::new(&schema),
            _ => RuleMaker::new(&schema, dice).rule_set(rules, dice),
        };
        let updates = updates.unwrap_or(CHANGES + CHANGES_PER_RULE * rules);
        let headers = (HEADERS_TIMES_RULES / rules).clamp(128, 1024);
        let options = Options {
            seed,
            updates,
            rules,
            limit: rules + rules / 2 + 1,
            check_every: (updates / CHANGES_PER_TRANSACTION / CHECKS).max(10),
            headers,
            batches: headers / 30,
            masked: 16,
            build_every: 10,
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
            let rules = round.options.rules;
            assert!(rules <= ANY_SCHEMA || rules * words * words <= RULE_WORDS);
        }
        assert!(rounds.iter().any(|round| round.start.is_empty()));
        let few = Round::draw(1, Some(100));
        assert!(few.options.updates == 100 && few.options.rules <= 7);
    }
}
