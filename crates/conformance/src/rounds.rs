//! Differential runs over many random schemas.
//!
//! The seed of a [`Round`] determines its schema, number of rules, initial rules and
//! number of changes. The round runs [`differential`] with updates, rebuilds,
//! re-optimisation, emptying and refilling. So its seed alone repeats it, with any
//! subjects.
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

/// The numbers of rules to draw from. Small sets allow the most checks per second; large
/// sets have large tables.
const RULE_COUNTS: [usize; 14] = [
    3, 10, 25, 25, 60, 60, 60, 120, 120, 120, 250, 250, 600, 2500,
];

/// The maximum of rules times the square of key words. It limits rounds of wide schemas to
/// seconds, because the time of learning grows with this product. A round took 12 s with
/// 250 rules of 32 words, and 5 s with 2,500 rules of 3 words (2026-11-23).
const MAX_RULES_TIMES_WORDS_SQUARED: usize = 40_000;

/// The number of rules that is allowed for every schema, even with the widest keys.
const MIN_RULE_LIMIT: usize = 60;

/// The number of changes per rule until each phase of [`Churn`](super::random::Churn) has
/// occurred once: 2.8 transactions per rule, with 4.7 changes on average.
const CHANGES_PER_RULE: usize = 13;

/// The number of changes that the phases require in addition, for any number of rules.
const BASE_CHANGES: usize = 500;

/// The approximate number of checks in a round. Small sets have a check after every tenth
/// transaction instead. Each check includes reorganising and re-optimisation, and learning
/// takes most of a round's time.
const CHECKS_PER_ROUND: usize = 50;

/// The average number of changes in a transaction.
const CHANGES_PER_TRANSACTION: usize = 5;

/// The number of headers of a check times the number of rules. Below this product, the
/// oracle's scans take less time than the rest of a check. Of 10 s for 2,500 rules, scans
/// with 64 headers took 0.6 s (2026-11-23, `check --schemas 1 --seed 98` under perf).
const HEADERS_TIMES_RULES: usize = 300_000;

/// A differential run over a random schema.
#[derive(Clone, Debug)]
pub struct Round {
    /// The seed. With the number of changes, it determines all other fields.
    pub seed: u64,
    /// The schema.
    pub schema: Arc<Schema>,
    /// The initial rules. A third of the rounds starts without rules.
    pub start: RuleSet,
    /// The options of the differential run.
    pub options: Options,
}

impl Round {
    /// Returns the round of a seed, with at least `updates` changes. `None` means the number
    /// of changes for emptying and filling the rule set. If `updates` is less than that,
    /// there are fewer rules.
    #[must_use]
    pub fn draw(seed: u64, updates: Option<usize>) -> Round {
        let mut dice = SeededDice::new(seed);
        let dice: &mut dyn Dice = &mut dice;
        let schema = random_schema(dice);
        let words_squared = schema.key_words().pow(2);
        let max_rules = (MAX_RULES_TIMES_WORDS_SQUARED / words_squared).max(MIN_RULE_LIMIT);
        let max_rules = match updates {
            Some(updates) => max_rules
                .min(updates / CHANGES_PER_RULE)
                .max(RULE_COUNTS[0]),
            None => max_rules,
        };
        let rules = (*dice.pick(&RULE_COUNTS)).min(max_rules);
        let start = match dice.below(3) {
            0 => RuleSet::new(&schema),
            _ => RuleMaker::new(&schema, dice).rule_set(rules, dice),
        };
        let updates = updates.unwrap_or(BASE_CHANGES + CHANGES_PER_RULE * rules);
        let headers = (HEADERS_TIMES_RULES / rules).clamp(128, 1024);
        let options = Options {
            seed,
            updates,
            rules,
            limit: rules + rules / 2 + 1,
            check_every: (updates / CHANGES_PER_TRANSACTION / CHECKS_PER_ROUND).max(10),
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

    /// Runs the round on all subjects.
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
        for size in RULE_COUNTS {
            assert!(rounds.iter().any(|round| round.options.rules == size));
        }
        for round in &rounds {
            let words = round.schema.key_words();
            let rules = round.options.rules;
            let product = rules * words * words;
            assert!(rules <= MIN_RULE_LIMIT || product <= MAX_RULES_TIMES_WORDS_SQUARED);
        }
        assert!(rounds.iter().any(|round| round.start.is_empty()));
        let short = Round::draw(1, Some(100));
        assert!(short.options.updates == 100 && short.options.rules <= 7);
    }
}
