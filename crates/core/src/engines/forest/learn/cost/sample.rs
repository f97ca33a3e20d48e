//! The sample: some rules, and the number of rules that each represents.
//!
//! A rule's mask alone decides if a table can hold it. Rules with the same mask are
//! one *kind*. Kinds are counted over all rules, so the number of a table's rules
//! and its best rank are exact; buckets are estimated from a sample. Half of the
//! sample is spread evenly over the rules, half over the kinds, so that all rules of
//! rare kinds are included. These are few rules, but with few exact bits, and decide
//! how many tables a header must probe. A drawn rule has a *weight*: the number of
//! rules of its kind that it represents.

#![allow(clippy::cast_precision_loss)] // counts are far below 2^52

use hashbrown::HashMap;

use super::WORDS_PER_WORK_STEP;
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::engines::forest::outline::Outline;
use crate::model::error::BuildError;
use crate::model::seed::{MapState, splitmix};
use crate::parts::sort::sort;

/// The most kinds, unless the sample has more. Kinds outside of the sample are added
/// in the order of their best ranks. Bounds the time of dealing out a plan.
const MAX_KINDS: usize = 1 << 12;

/// Rules of one mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind<const W: usize> {
    pub(crate) mask: [u64; W],
    pub(crate) best: u64,
    pub(crate) rules: usize,
    /// A random number; a table is identified by the sum of its kinds' numbers.
    pub(super) name: u64,
}

/// A rule of the sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn<const W: usize> {
    pub(crate) rule: Outline<W>,
    pub(crate) kind: u32,
    /// The number of rules of its kind that it represents.
    pub(crate) weight: f32,
}

/// A sample of the rules that are learned from.
#[derive(Clone, Debug)]
pub(crate) struct Sample<const W: usize> {
    /// Sorted by rank, best first.
    pub(crate) rules: Vec<Drawn<W>>,
    pub(crate) kinds: Vec<Kind<W>>,
    /// The number of all rules.
    pub(super) total: usize,
    /// The state of the random numbers.
    pub(super) state: u64,
    /// The approximate number of words read to draw the sample.
    pub(crate) words: usize,
}

impl<const W: usize> Sample<W> {
    /// Draws about `max_rules` of `total` rules.
    pub(crate) fn draw(
        total: usize,
        max_rules: usize,
        outline: impl Fn(usize) -> Outline<W>,
        monitor: &mut Monitor<'_>,
    ) -> Result<Sample<W>, BuildError> {
        let mut state = 0;
        let mut numbers: HashMap<[u64; W], u32, MapState> = HashMap::default();
        let mut kinds: Vec<Kind<W>> = Vec::new();
        let kind_bytes = bytes_of::<u32>(total);
        monitor.memory().take(kind_bytes)?;
        let mut kind_of = Vec::with_capacity(total);
        for index in 0..total {
            let rule = outline(index);
            let number = match numbers.get(&rule.mask) {
                Some(&number) => number,
                None => {
                    let number = u32::try_from(kinds.len()).expect("fewer kinds than rules");
                    monitor.memory().room(&mut kinds)?;
                    kinds.push(Kind {
                        mask: rule.mask,
                        best: u64::MAX,
                        rules: 0,
                        name: splitmix(&mut state),
                    });
                    monitor.memory().room_in_map(&mut numbers)?;
                    numbers.insert(rule.mask, number);
                    number
                }
            };
            if index % Monitor::BLOCK == 0 {
                monitor.work(Monitor::BLOCK.min(total - index) * (1 + W / WORDS_PER_WORK_STEP))?;
            }
            let kind = &mut kinds[number as usize];
            kind.best = kind.best.min(rule.rank);
            kind.rules += 1;
            kind_of.push(number);
        }
        let numbers_bytes = numbers.allocation_size();
        drop(numbers);
        monitor.memory().give_back(numbers_bytes);
        let rate_bytes = bytes_of::<Rate>(kinds.len());
        monitor.memory().take(rate_bytes)?;
        let mut rates = Rate::of(&kinds, max_rules, &mut state, monitor)?;
        let mut rules = Vec::new();
        monitor
            .memory()
            .take(bytes_of::<Drawn<W>>(max_rules.min(total)))?;
        rules.reserve_exact(max_rules.min(total));
        for (index, &kind) in kind_of.iter().enumerate() {
            if index % Monitor::BLOCK == 0 {
                monitor.work(Monitor::BLOCK.min(total - index))?;
            }
            if let Some(weight) = rates[kind as usize].next() {
                monitor.memory().room(&mut rules)?;
                rules.push(Drawn {
                    rule: outline(index),
                    kind,
                    weight,
                });
            }
        }
        drop((rates, kind_of));
        monitor.memory().give_back(rate_bytes + kind_bytes);
        rules.sort_unstable_by_key(|drawn: &Drawn<W>| drawn.rule.rank);
        leave_out_rare(&mut kinds, &mut rules, monitor)?;
        Ok(Sample {
            rules,
            kinds,
            total,
            state,
            words: 4 * W * total,
        })
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        bytes_of::<Drawn<W>>(self.rules.capacity()) + bytes_of::<Kind<W>>(self.kinds.capacity())
    }
}

/// The share of a kind's rules that is drawn.
#[derive(Clone, Copy, Debug)]
struct Rate {
    rate: f32,
    /// The sum of the rates of the rules since the last drawn rule.
    due: f32,
}

impl Rate {
    /// Returns the rate of each kind, so that at most about `max_rules` rules are
    /// drawn.
    fn of<const W: usize>(
        kinds: &[Kind<W>],
        max_rules: usize,
        state: &mut u64,
        monitor: &mut Monitor<'_>,
    ) -> Result<Vec<Rate>, BuildError> {
        let total: usize = kinds.iter().map(|kind| kind.rules).sum();
        let evenly = if total <= max_rules {
            1.0
        } else {
            0.5 * max_rules as f32 / total as f32
        };
        let size_bytes = bytes_of::<usize>(kinds.len());
        monitor.memory().take(size_bytes)?;
        let mut sizes = kinds.iter().map(|kind| kind.rules).collect();
        sort(&mut sizes, monitor)?;
        let each = from_each(sizes, max_rules / 2);
        monitor.memory().give_back(size_bytes);
        let rate = |kind: &Kind<W>| Rate {
            rate: (each as f32 / kind.rules as f32).max(evenly).min(1.0),
            // A random start. If every kind began with a drawn rule, rare kinds
            // would have too many.
            due: (splitmix(state) >> 40) as f32 / (1 << 24) as f32,
        };
        Ok(kinds.iter().map(rate).collect())
    }

    /// Advances to the kind's next rule; returns its weight, if it is drawn.
    fn next(&mut self) -> Option<f32> {
        self.due += self.rate;
        (self.due >= 1.0).then(|| {
            self.due -= 1.0;
            self.rate.recip()
        })
    }
}

/// Returns the largest number with this property: taking that many from each size,
/// or the whole size if it is smaller, makes at most `max_sum` in total. `sizes` is
/// sorted.
fn from_each(sizes: Vec<usize>, max_sum: usize) -> usize {
    let mut remaining = max_sum;
    let count = sizes.len();
    for (index, size) in sizes.into_iter().enumerate() {
        let each = remaining / (count - index);
        if size > each {
            return each;
        }
        remaining -= size;
    }
    max_sum
}

/// Drops kinds if there are too many; keeps all kinds of the sample.
fn leave_out_rare<const W: usize>(
    kinds: &mut Vec<Kind<W>>,
    rules: &mut [Drawn<W>],
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    if kinds.len() <= MAX_KINDS {
        return Ok(());
    }
    let bytes =
        kinds.len() * (size_of::<bool>() + size_of::<(bool, u64, usize)>() + size_of::<u32>());
    monitor.memory().take(bytes)?;
    let mut sampled = vec![false; kinds.len()];
    for drawn in &*rules {
        sampled[drawn.kind as usize] = true;
    }
    let numbered = kinds.iter().zip(&sampled).enumerate();
    let mut order: Vec<(bool, u64, usize)> = numbered
        .map(|(kind, (stats, &sampled))| (!sampled, stats.best, kind))
        .collect();
    sort(&mut order, monitor)?;
    let sampled_count = sampled.iter().filter(|&&sampled| sampled).count();
    order.truncate(sampled_count.max(MAX_KINDS));
    let mut numbers = vec![0; kinds.len()];
    for (number, &(.., kind)) in (0..).zip(&order) {
        numbers[kind] = number;
    }
    for drawn in rules {
        drawn.kind = numbers[drawn.kind as usize];
    }
    let memory = monitor.memory();
    memory.take(bytes_of::<Kind<W>>(order.len()))?;
    let before = bytes_of::<Kind<W>>(kinds.capacity());
    *kinds = order.iter().map(|&(.., kind)| kinds[kind]).collect();
    memory.give_back(before + bytes);
    Ok(())
}
