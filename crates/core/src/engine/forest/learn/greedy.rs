//! A plan to begin with: one mask after the other.
//!
//! # Idea
//! More bits make smaller buckets and serve fewer rules. From no bits, add bits
//! one step at a time; a step is one bit, or the leading bits of a field, since
//! a field that half of the rules leave open costs its loss once and gains with
//! every further bit:
//! ```text
//! size(mask)  = mean number of rules in the bucket of a served rule
//! gain(step)  = log2(size before / size after), nothing below the target
//! loss(step)  = log2(rules served before / after)
//! take the step of the largest  (gain - weight × loss) / (1 + LENGTH × new bits)
//! until the size meets the target or no step is worth it
//! ```
//! The rules that the mask does not serve go to the next mask. When there is no
//! first step, losses are taken at half the weight, and half again; after that,
//! the next mask is that of the most frequent kind.
//!
//! # Cost
//! Steps are judged on a sample, of a size that bounds the work of a step.
//! Counting is by hashing into an array; the pairs that meet there by chance are
//! subtracted, since a sample of one rule in hundreds multiplies them by that.

#![allow(clippy::cast_precision_loss)] // counts are far below 2^52

use super::cost::{Drawn, Sample};
use super::{Outline, serves};
use crate::schema::{Schema, prefix_mask};

/// What makes one greedy plan differ from another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    /// The mean bucket, in rules, beyond which smaller is no better.
    target: f64,
    /// The weight of rules that a step no longer serves against smaller
    /// buckets.
    weight: f64,
}

impl Aim {
    /// Aims to begin with, the most promising first. No one aim is best for all
    /// sets; what more of them add, the search finds anyway.
    pub(super) fn around(target: usize) -> Vec<Aim> {
        let of = |factor: f64, weight| Aim {
            target: (target as f64 * factor).max(1.0),
            weight,
        };
        vec![of(1.0, 2.0), of(4.0, 4.0), of(2.0, 4.0)]
    }
}

/// What a bit of a step costs: of two equal steps, the shorter one leaves more
/// bits for headers to differ in.
const LENGTH: f64 = 0.02;

/// Steps worth less than this are not taken.
const LEAST_SCORE: f64 = 0.02;

/// How often the weight and the least score are halved when there is no first
/// step: rules of several kinds, none of which serves most.
const CONCESSIONS: u32 = 6;

/// The smallest and the largest sample.
const LEAST_SAMPLE: usize = 128;
const SAMPLE: usize = 2048;

/// Fewer rules than this are not worth another table: they are scanned.
const SCANNED: f64 = 8.0;

/// The most masks of a plan.
const MASKS: usize = 24;

/// Chooses masks for rules of a schema.
#[derive(Clone, Debug)]
pub(super) struct Greedy<const W: usize> {
    steps: Vec<[u64; W]>,
}

/// A rule of the sample that is still served, with a hash of its bucket.
#[derive(Clone, Copy)]
struct Served<const W: usize> {
    rule: Outline<W>,
    bucket: u64,
}

impl<const W: usize> Greedy<W> {
    /// With masks of any bits, or of the leading bits of fields only.
    pub(super) fn new(schema: &Schema, any_bits: bool) -> Greedy<W> {
        let mut steps = Vec::new();
        for id in schema.field_ids() {
            let width = schema.field(id).width();
            let bits = |mask: u128| {
                let mut words = [0; W];
                schema.placement(id).set(&mut words, mask);
                words
            };
            let single = if any_bits { 0 } else { width - 1 };
            steps.extend((single..width).map(|bit| bits(1 << bit)));
            steps.extend(
                (2..=width)
                    .filter(|length| {
                        // Every length up to 4, then every other, then every fourth.
                        *length <= 4 || length % 4 == 0 || (*length <= 8 && length % 2 == 0)
                    })
                    .map(|length| bits(prefix_mask(width, length))),
            );
        }
        Greedy { steps }
    }

    /// Bits that may be added together: one, or the leading ones of a field.
    pub(super) fn steps(&self) -> &[[u64; W]] {
        &self.steps
    }

    /// Masks until few rules are left or nothing tells them apart.
    pub(super) fn masks(&self, aim: &Aim, sample: &Sample<W>, work: usize) -> Vec<[u64; W]> {
        let mut rest: Vec<Drawn<W>> = sample.rules.clone();
        let mut masks = Vec::new();
        while rest
            .iter()
            .map(|drawn| f64::from(drawn.weight))
            .sum::<f64>()
            > SCANNED
            && masks.len() < MASKS
        {
            let mask = self.mask(aim, &rest, work);
            let Some(mask) = mask.or_else(|| mask_of_a_kind(&rest)) else {
                break;
            };
            rest.retain(|drawn| !serves(&drawn.rule, &mask));
            masks.push(mask);
        }
        masks
    }

    /// A mask for some of the rules, with at least one bit; `None` when no bit
    /// tells enough of them apart.
    fn mask(&self, aim: &Aim, rules: &[Drawn<W>], work: usize) -> Option<[u64; W]> {
        let most = (work / self.steps.len().max(1)).clamp(LEAST_SAMPLE, SAMPLE);
        let (scale, sample) = alike(rules, most);
        let mut counters = Counters::new(sample.len());
        let mut aim = *aim;
        let mut least = LEAST_SCORE;
        for _ in 0..=CONCESSIONS {
            let mask = self.search(sample.clone(), scale, &aim, least, &mut counters);
            if mask.is_some() {
                return mask;
            }
            aim.weight *= 0.5;
            least *= 0.5;
        }
        None
    }

    fn search(
        &self,
        mut served: Vec<Served<W>>,
        scale: f64,
        aim: &Aim,
        least: f64,
        counters: &mut Counters,
    ) -> Option<[u64; W]> {
        // A bucket with n sampled rules has about 1 + (n - 1) × scale rules.
        let size = |pairs: u64, rules: usize| 1.0 + scale * pairs as f64 / rules as f64;
        let all = served.len() as u64;
        let mut now = size(all * all.saturating_sub(1), served.len().max(1));
        let mut mask = [0; W];
        while now > aim.target && served.len() > 1 {
            let telling = telling_bits(served.iter().map(|served| &served.rule));
            let mut best = (least, [0; W], 0.0);
            let mut last = [0; W];
            for step in &self.steps {
                let mut add = [0; W];
                let mut bits = 0;
                let mut tells = 0;
                for word in 0..W {
                    add[word] = step[word] & !mask[word];
                    bits += add[word].count_ones();
                    tells |= add[word] & telling[word];
                }
                if tells == 0 || add == last {
                    continue;
                }
                last = add;
                let (count, pairs) = judge(&served, &add, counters);
                if count == 0 {
                    continue;
                }
                let after = size(pairs, count);
                let gain = (now.max(aim.target) / after.max(aim.target)).log2();
                let loss = (served.len() as f64 / count as f64).log2();
                let score = (gain - aim.weight * loss) / (1.0 + LENGTH * f64::from(bits));
                if score > best.0 {
                    best = (score, add, after);
                }
            }
            let (_, add, after) = best;
            if add == [0; W] {
                break;
            }
            for (mask, add) in mask.iter_mut().zip(add) {
                *mask |= add;
            }
            now = after;
            served.retain_mut(|served| {
                served.bucket = bucket(served, &add);
                serves(&served.rule, &add)
            });
        }
        (mask != [0; W]).then_some(mask)
    }
}

/// At most about that many of the rules, each for as many of the node's as the
/// others: that number, and the rules.
fn alike<const W: usize>(rules: &[Drawn<W>], most: usize) -> (f64, Vec<Served<W>>) {
    let weights = rules.iter().map(|drawn| drawn.weight);
    let scale = (weights.clone().sum::<f32>() / most as f32).max(weights.fold(1.0, f32::max));
    let mut due = 0.5 * scale;
    let mut drawn_rules = Vec::with_capacity(most.min(rules.len()));
    for drawn in rules {
        due += drawn.weight;
        if due >= scale {
            due -= scale;
            drawn_rules.push(Served {
                rule: drawn.rule,
                bucket: 0,
            });
        }
    }
    (f64::from(scale), drawn_rules)
}

/// The telling bits of the most frequent kind that has any: where there are so
/// many kinds that no step is worth what it loses.
fn mask_of_a_kind<const W: usize>(rules: &[Drawn<W>]) -> Option<[u64; W]> {
    let mut rules: Vec<&Drawn<W>> = rules.iter().collect();
    rules.sort_by_key(|drawn| drawn.kind);
    let kinds = rules.chunk_by(|a, b| a.kind == b.kind);
    let telling = kinds.map(|kind| {
        let telling = telling_bits(kind.iter().map(|drawn| &drawn.rule));
        let rules: f32 = kind.iter().map(|drawn| drawn.weight).sum();
        (rules, telling)
    });
    let some = telling.filter(|(_, telling)| *telling != [0; W]);
    // The first of the largest.
    some.reduce(|most, other| if other.0 > most.0 { other } else { most })
        .map(|(_, telling)| telling)
}

/// Bits that are exact in some rules, and in which these differ.
pub(super) fn telling_bits<'a, const W: usize>(
    rules: impl Iterator<Item = &'a Outline<W>>,
) -> [u64; W] {
    let mut ones = [0; W];
    let mut zeros = [0; W];
    for rule in rules {
        for word in 0..W {
            ones[word] |= rule.value[word] & rule.mask[word];
            zeros[word] |= !rule.value[word] & rule.mask[word];
        }
    }
    std::array::from_fn(|word| ones[word] & zeros[word])
}

/// How many rules still are served with these bits more, and how many ordered
/// pairs of them share a bucket.
fn judge<const W: usize>(
    served: &[Served<W>],
    add: &[u64; W],
    counters: &mut Counters,
) -> (usize, u64) {
    counters.clear();
    let mut count = 0;
    let mut pairs = 0;
    for served in served {
        if serves(&served.rule, add) {
            pairs += 2 * u64::from(counters.count_up(bucket(served, add)));
            count += 1;
        }
    }
    let by_chance = (count as u64).pow(2) / counters.seen.len() as u64;
    (count, pairs.saturating_sub(by_chance))
}

/// How often each hash was seen since the last clearing.
struct Counters {
    /// The round of the last count, and the count.
    seen: Vec<(u16, u16)>,
    round: u16,
}

impl Counters {
    /// For that many rules: enough of them that few meet by chance alone.
    fn new(rules: usize) -> Counters {
        let counters = (rules * 32).next_power_of_two();
        Counters {
            seen: vec![(0, 0); counters.max(64)],
            round: 0,
        }
    }

    fn clear(&mut self) {
        if self.round == u16::MAX {
            self.seen.fill((0, 0));
            self.round = 0;
        }
        self.round += 1;
    }

    /// Counts a hash; returns how often it was seen before.
    #[inline]
    fn count_up(&mut self, hash: u64) -> u16 {
        let last = self.seen.len() - 1;
        let (round, count) = &mut self.seen[(hash >> 40) as usize & last];
        if *round != self.round {
            *round = self.round;
            *count = 0;
        }
        *count += 1;
        *count - 1
    }
}

#[inline]
fn bucket<const W: usize>(served: &Served<W>, add: &[u64; W]) -> u64 {
    let words = served.rule.value.iter().zip(add);
    let mixed = words.fold(served.bucket, |hash, (value, add)| {
        (hash ^ (value & add))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    });
    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
