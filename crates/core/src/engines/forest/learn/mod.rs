//! Learning masks: the key bits that the tables of a chain hash.
//!
//! # Idea
//! A mask serves the rules that have all of its bits exact. A *plan* is a list of
//! masks. A rule goes to the first mask that serves it; rules that no mask serves
//! are scanned. Learning searches for the plan with the cheapest lookups:
//! ```text
//! sample the rules, make headers that hit them                     cost/
//! plans = for a few weights: choose one mask after the other       greedy.rs
//! improve the cheapest: drop, merge, reorder tables, change bits   search.rs
//! ```
//! Greedy masks make good tables but bad plans. Each mask takes the rules that are
//! easy to serve and leaves fewer rules for the next, until a header probes half a
//! dozen tables. The cost of a table depends on the ranks of its rules and on the
//! other tables, so only the whole plan shows it.
//!
//! # Cost
//! Linear in the number of rules with a small factor, plus the search. The work of
//! the search is counted in rules and headers read, and bounded by `Effort::work`.
//! It does not depend on time: a plan is a function of the rules.

use std::sync::Arc;

use super::outline::Outline;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::schema::{Schema, prefix_mask};

mod budget;
mod cost;
mod effort;
mod greedy;
mod plan;
mod search;

pub(super) use budget::Budget;
pub(super) use cost::Cost;
use cost::{Headers, Model, Prices, Sample};
use effort::Effort;
pub(super) use effort::Level;
use greedy::{Aim, Greedy};
pub(super) use plan::Plan;

/// True if a mask has only leading bits of fields.
fn is_tuple(schema: &Schema, mask: &[u64]) -> bool {
    schema.field_ids().all(|id| {
        let bits = schema.placement(id).get(mask);
        bits == prefix_mask(schema.field(id).width(), bits.count_ones())
    })
}

/// The options of learning.
#[derive(Clone, Copy, Debug)]
pub(super) struct LearnerOptions {
    /// The mean length of buckets, in rules, that tables aim at.
    pub(super) target: usize,
    /// Buckets of more rules get nested tables.
    pub(super) most: usize,
    /// True if runs have fingerprints.
    pub(super) fingerprints: bool,
    /// True if masks may have any bits, false if only the leading bits of fields.
    pub(super) any_bits: bool,
}

/// Chooses masks for rules of a schema.
#[derive(Clone, Debug)]
pub(super) struct Learner<const W: usize> {
    greedy: Greedy<W>,
    /// The schema, if masks have only leading bits of its fields.
    tuples: Option<Arc<Schema>>,
    aims: Vec<Aim>,
    options: LearnerOptions,
}

impl<const W: usize> Learner<W> {
    pub(super) fn new(schema: &Arc<Schema>, options: &LearnerOptions) -> Learner<W> {
        Learner {
            greedy: Greedy::new(schema, options.any_bits),
            tuples: (!options.any_bits).then(|| Arc::clone(schema)),
            aims: Aim::around(options.target),
            options: *options,
        }
    }

    /// Bytes of a learner for a schema.
    pub(super) fn bytes(schema: &Schema, any_bits: bool) -> usize {
        Greedy::<W>::bytes(schema, any_bits)
    }

    /// Returns the masks for tables of these rules; none if no bits distinguish the
    /// rules.
    pub(super) fn plan(
        &self,
        level: Level,
        rules: usize,
        outline: impl Fn(usize) -> Outline<W>,
        monitor: &mut Monitor<'_>,
    ) -> Result<Plan<W>, BuildError> {
        let effort = Effort::of(level, rules, W, self.options.fingerprints);
        self.plan_with(&effort, level, rules, outline, monitor)
    }

    fn plan_with(
        &self,
        effort: &Effort,
        level: Level,
        rules: usize,
        outline: impl Fn(usize) -> Outline<W>,
        monitor: &mut Monitor<'_>,
    ) -> Result<Plan<W>, BuildError> {
        let sample = Sample::draw(rules, effort.sample, outline, monitor)?;
        let headers = Headers::draw(&sample, effort.headers, monitor)?;
        let prices = Prices::of(level, rules, self.options.most, self.options.fingerprints);
        let mut model = Model::new(&sample, &headers, prices, monitor)?;
        let mut plans: Vec<Plan<W>> = Vec::new();
        if rules <= self.options.most {
            // A single run may be enough.
            let cost = model.cost(&[], monitor)?;
            plans.push(Plan {
                masks: Vec::new(),
                cost,
                words: 0,
            });
        }
        for aim in self.aims.iter().take(effort.starts) {
            // The other half is for improving the plans.
            if !plans.is_empty() && model.words >= effort.words / 2 {
                break;
            }
            let words = &mut model.words;
            let masks = (self.greedy).masks(aim, &sample, effort.greedy, words, monitor)?;
            if plans.iter().all(|plan| plan.masks != masks) {
                let cost = model.cost(&masks, monitor)?;
                plans.push(Plan {
                    masks,
                    cost,
                    words: 0,
                });
            }
        }
        // Stable: the first of equal plans is kept.
        plans.sort_by(|a, b| a.cost.total().total_cmp(&b.cost.total()));
        plans.truncate(effort.improved);
        let share = effort.work / plans.len().max(1);
        let allowed = |mask: &[u64; W]| match &self.tuples {
            None => true,
            Some(schema) => is_tuple(schema, mask),
        };
        let steps = self.greedy.steps();
        let mut improved = Vec::with_capacity(plans.len());
        for plan in plans {
            let (model, words) = (&mut model, effort.words);
            let plan = search::improve(model, steps, &allowed, plan, share, words, monitor)?;
            improved.push(plan);
        }
        let best = improved
            .into_iter()
            .min_by(|a, b| a.cost.total().total_cmp(&b.cost.total()));
        let bytes = model.bytes() + headers.bytes() + sample.bytes();
        monitor.memory().give_back(bytes);
        Ok(Plan {
            words: model.words,
            ..best.expect("there is always a first aim")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::monitor::unwatched;
    use crate::model::schema::{Field, MatchKind};
    use crate::model::seed::splitmix;

    /// Returns rules with random bits under the mask chosen by `make`, best first.
    fn outlines(count: usize, make: impl Fn(u64) -> u64) -> Vec<Outline<2>> {
        let mut state = 3;
        let mut outline = |rank| {
            let mask = make(splitmix(&mut state));
            Outline {
                value: [splitmix(&mut state) & mask, 0],
                mask: [mask, 0],
                rank,
            }
        };
        (0..count as u64).map(&mut outline).collect()
    }

    fn options(fingerprints: bool, any_bits: bool) -> LearnerOptions {
        LearnerOptions {
            target: 2,
            most: 32,
            fingerprints,
            any_bits,
        }
    }

    fn learner() -> Learner<2> {
        Learner::new(&Schema::ipv4_5tuple(), &options(false, true))
    }

    fn plan(rules: &[Outline<2>]) -> Plan<2> {
        planned(&learner(), rules)
    }

    fn planned<const W: usize>(learner: &Learner<W>, rules: &[Outline<W>]) -> Plan<W> {
        let outline = |index: usize| rules[index];
        unwatched(|monitor| learner.plan(Level::Root, rules.len(), outline, monitor))
    }

    const SOURCE_MASK: u64 = 0xffff_ffff << 32;
    const DESTINATION_MASK: u64 = 0xffff_ffff;

    #[test]
    fn exact_rules_are_spread_over_small_buckets_of_one_table() {
        let rules = outlines(10_000, |_| u64::MAX);
        let plan = plan(&rules);
        let [mask] = plan.masks[..] else {
            panic!("{} tables", plan.masks.len());
        };
        let bits = mask[0].count_ones();
        assert!((9..=30).contains(&bits), "{bits} bits for 10,000 rules");
        assert!((0.99..1.01).contains(&plan.cost.probes));
        assert!(plan.cost.compares < 1.1, "{:?}", plan.cost);
    }

    #[test]
    fn two_kinds_of_rules_that_share_no_bit_get_two_tables() {
        let rules = outlines(4000, |random| match random % 2 {
            0 => SOURCE_MASK,
            _ => DESTINATION_MASK,
        });
        let plan = plan(&rules);
        assert_eq!(plan.masks.len(), 2, "{:?}", plan.masks);
        for kind in [SOURCE_MASK, DESTINATION_MASK] {
            let of_kind = |mask: &[u64; 2]| mask[0] & !kind == 0 && mask[1] == 0;
            assert!(plan.masks.iter().any(of_kind), "{:?}", plan.masks);
        }
        assert!((1.9..2.01).contains(&plan.cost.probes), "{:?}", plan.cost);
    }

    #[test]
    fn a_table_of_bad_ranks_is_free() {
        // Two kinds as above, but all rules of one kind are better than all rules of the
        // other.
        let mut rules = outlines(4000, |random| match random % 2 {
            0 => SOURCE_MASK,
            _ => DESTINATION_MASK,
        });
        rules.sort_by_key(|rule| rule.mask[0] == SOURCE_MASK);
        for (rule, rank) in rules.iter_mut().zip(0..) {
            rule.rank = rank;
        }
        let probes = plan(&rules).cost.probes;
        assert!((1.4..1.6).contains(&probes), "{probes} probes");
    }

    #[test]
    fn rules_that_no_bit_tells_apart_have_no_mask() {
        let mut alike = outlines(100, |_| 0xff);
        for rule in &mut alike {
            rule.value[0] = 7;
        }
        assert_eq!(plan(&alike).masks, Vec::<[u64; 2]>::new());
        assert_eq!(plan(&outlines(100, |_| 0)).masks, Vec::<[u64; 2]>::new());
        assert_eq!(plan(&[]).masks, Vec::<[u64; 2]>::new());
        assert_eq!(plan(&[]).cost, Cost::default());
    }

    /// Returns rules with prefixes of two fields, long and short, as in real sets.
    fn mixed(count: usize) -> Vec<Outline<2>> {
        let prefix = |random: u64| match random % 5 {
            0 => 0,
            1 => 0xff00_0000,
            2 | 3 => 0xffff_ff00,
            _ => 0xffff_ffff_u64,
        };
        outlines(count, |random| prefix(random) | prefix(random / 5) << 32)
    }

    #[test]
    fn a_plan_is_never_worse_than_the_greedy_one() {
        let (mut greedy_sum, mut best_sum) = (0.0, 0.0);
        for count in [40, 300, 3000, 30_000] {
            let rules = mixed(count);
            let learner = learner();
            for level in [Level::Root, Level::Nested] {
                let effort = Effort::of(level, count, 2, false);
                let plan = |effort: &Effort| {
                    let outline = |index: usize| rules[index];
                    unwatched(|monitor| learner.plan_with(effort, level, count, outline, monitor))
                };
                let greedy = plan(&Effort {
                    starts: 1,
                    work: 0,
                    ..effort
                });
                let best = plan(&effort);
                assert!(best.cost.total() <= greedy.cost.total(), "{count} rules");
                greedy_sum += greedy.cost.total();
                best_sum += best.cost.total();
            }
        }
        assert!(best_sum < greedy_sum, "the search finds nothing");
    }

    #[test]
    fn tuples_are_leading_bits() {
        let schema = Schema::ipv4_5tuple();
        // All sources have the same upper half.
        let mut rules = outlines(3000, |_| SOURCE_MASK);
        for rule in &mut rules {
            rule.value[0] &= 0xffff << 32;
        }
        let masks = |any_bits| {
            let learner = Learner::new(&schema, &options(false, any_bits));
            planned(&learner, &rules).masks
        };
        let upper_half = |mask: &[u64; 2]| mask[0] >> 48 != 0;
        assert!(masks(false).iter().all(|mask| is_tuple(&schema, mask)));
        assert!(masks(false).iter().all(upper_half));
        assert!(!masks(true).iter().any(upper_half));
    }

    #[test]
    fn plans_are_a_function_of_the_rules() {
        let rules = mixed(3000);
        assert_eq!(plan(&rules), plan(&rules));
    }

    #[test]
    fn every_shape_of_key_has_a_plan() {
        let schema = |count: usize, width, kind| {
            let field = |number| Field::new(&format!("field{number}"), width, kind);
            Schema::new("shape", (0..count).map(field).collect()).unwrap()
        };
        let mut state = 1;
        let bit = schema(1, 1, MatchKind::Exact);
        let rules: Vec<Outline<1>> = (0..100)
            .map(|rank| Outline {
                value: [splitmix(&mut state) & 1],
                mask: [1],
                rank,
            })
            .collect();
        let plan = planned(&Learner::new(&bit, &options(false, true)), &rules);
        assert!(plan.masks.len() <= 1);

        let wide = schema(32, 32, MatchKind::Ternary);
        let rules: Vec<Outline<16>> = (0..2000_usize)
            .map(|index| {
                let mask = std::array::from_fn(|word| match word == index % 16 {
                    true => u64::MAX,
                    false => 0,
                });
                Outline {
                    value: mask.map(|mask| splitmix(&mut state) & mask),
                    mask,
                    rank: index as u64,
                }
            })
            .collect();
        let plan = planned(&Learner::new(&wide, &options(true, true)), &rules);
        assert_eq!(plan.masks.len(), 16);
        let mut seen = [false; 16];
        for mask in &plan.masks {
            for (seen, &word) in seen.iter_mut().zip(mask) {
                *seen |= word != 0;
            }
        }
        assert_eq!(seen, [true; 16], "one table for each kind");
    }
}
