//! Learning masks: which key bits a table should look at.
//!
//! # Idea
//! A mask serves the rules in which all of its bits are exact. More bits make
//! smaller buckets and serve fewer rules. From no bits, add bits one step at a
//! time; a step is one bit, or the leading bits of a field, since a field that
//! half of the rules leave open costs its loss once and gains with every
//! further bit:
//! ```text
//! cost(mask)  = mean number of rules in the bucket of a served rule
//! gain(step)  = log2(cost before / cost after), nothing below the target
//! loss(step)  = log2(rules served before / after)
//! take the step of the largest  (gain - WEIGHT × loss) / (1 + LENGTH × new bits)
//! until the cost meets the target or no step is worth it
//! ```
//! The rules that the mask does not serve go to the next mask.
//!
//! # Cost
//! Steps are judged on a sample, of a size that bounds the work of a step, so
//! learning a mask takes a few milliseconds at any number of rules. Counting is
//! by hashing into an array; the pairs that meet there by chance are subtracted,
//! since a sample of one rule in hundreds multiplies them by that.
//!
//! Everything is a function of the rules alone.

use crate::schema::{Schema, prefix_mask};

/// A rule, as far as masks are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline<const W: usize> {
    pub(super) value: [u64; W],
    pub(super) mask: [u64; W],
}

/// The weight of rules that a step no longer serves against smaller buckets.
const WEIGHT: f64 = 2.0;

/// What a bit of a step costs: of two equal steps, the shorter one leaves more
/// bits for headers to differ in.
const LENGTH: f64 = 0.02;

/// Steps worth less than this are not taken.
const LEAST_SCORE: f64 = 0.02;

/// How often the weight and the least score are halved when there is no first
/// step: rules of several kinds, none of which serves most.
const CONCESSIONS: u32 = 6;

/// Rules compared with steps, all steps together: what bounds the time.
const WORK: usize = 1 << 19;

/// The largest sample.
const SAMPLE: usize = 2048;

/// Counters for buckets: the more, the fewer pairs meet by chance alone.
const COUNTERS: usize = 1 << COUNTER_BITS;
const COUNTER_BITS: u32 = 16;

/// Chooses masks for rules of a schema.
#[derive(Clone, Debug)]
pub(super) struct Learner<const W: usize> {
    steps: Vec<[u64; W]>,
    /// The mean bucket, in rules, beyond which smaller is no better.
    target: f64,
}

/// A rule of the sample that is still served, with a hash of its bucket.
#[derive(Clone, Copy)]
struct Served<const W: usize> {
    rule: Outline<W>,
    bucket: u64,
}

impl<const W: usize> Learner<W> {
    pub(super) fn new(schema: &Schema, target: usize) -> Learner<W> {
        let mut steps = Vec::new();
        for id in schema.field_ids() {
            let width = schema.field(id).width();
            let bits = |mask: u128| {
                let mut words = [0; W];
                schema.placement(id).set(&mut words, mask);
                words
            };
            steps.extend((0..width).map(|bit| bits(1 << bit)));
            steps.extend(
                (2..=width)
                    .filter(|length| {
                        // Every length up to 4, then every other, then every fourth.
                        *length <= 4 || length % 4 == 0 || (*length <= 8 && length % 2 == 0)
                    })
                    .map(|length| bits(prefix_mask(width, length))),
            );
        }
        Learner {
            steps,
            #[allow(clippy::cast_precision_loss)] // a small number
            target: target as f64,
        }
    }

    /// A mask for some of the rules, with at least one bit; `None` when no bit
    /// tells enough of them apart.
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^52
    pub(super) fn mask(
        &self,
        rules: usize,
        outline: impl Fn(usize) -> Outline<W>,
    ) -> Option<[u64; W]> {
        let most = (WORK / self.steps.len()).clamp(64, SAMPLE);
        let stride = rules.div_ceil(most).max(1);
        let sample: Vec<Served<W>> = (0..rules)
            .step_by(stride)
            .map(|index| Served {
                rule: outline(index),
                bucket: 0,
            })
            .collect();
        let mut weight = WEIGHT;
        let mut least = LEAST_SCORE;
        for _ in 0..=CONCESSIONS {
            let mask = self.search(sample.clone(), stride as f64, weight, least);
            if mask.is_some() {
                return mask;
            }
            weight *= 0.5;
            least *= 0.5;
        }
        None
    }

    #[allow(clippy::cast_precision_loss)] // counts are far below 2^52
    fn search(
        &self,
        mut served: Vec<Served<W>>,
        stride: f64,
        weight: f64,
        least: f64,
    ) -> Option<[u64; W]> {
        // A bucket with n sampled rules has about 1 + (n - 1) × stride rules.
        let cost = |pairs: u64, rules: usize| 1.0 + stride * pairs as f64 / rules as f64;
        let all = served.len() as u64;
        let mut now = cost(all * all.saturating_sub(1), served.len().max(1));
        let mut mask = [0; W];
        let mut counters = Counters::new();
        while now > self.target && served.len() > 1 {
            let telling = telling_bits(&served);
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
                let (count, pairs) = judge(&served, &add, &mut counters);
                if count == 0 {
                    continue;
                }
                let after = cost(pairs, count);
                let gain = (now.max(self.target) / after.max(self.target)).log2();
                let loss = (served.len() as f64 / count as f64).log2();
                let score = (gain - weight * loss) / (1.0 + LENGTH * f64::from(bits));
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

/// Bits in which two served rules differ, or that some serve and some do not.
fn telling_bits<const W: usize>(served: &[Served<W>]) -> [u64; W] {
    let mut ones = [0; W];
    let mut zeros = [0; W];
    for Served { rule, .. } in served {
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
    let by_chance = (count as u64).pow(2) / COUNTERS as u64;
    (count, pairs.saturating_sub(by_chance))
}

/// How often each hash was seen since the last clearing.
struct Counters {
    /// The round of the last count, and the count.
    seen: Vec<(u16, u16)>,
    round: u16,
}

impl Counters {
    fn new() -> Counters {
        Counters {
            seen: vec![(0, 0); COUNTERS],
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
        let (round, count) = &mut self.seen[(hash >> (64 - COUNTER_BITS)) as usize];
        if *round != self.round {
            *round = self.round;
            *count = 0;
        }
        *count += 1;
        *count - 1
    }
}

/// Whether all bits are exact in the rule.
#[inline]
pub(super) fn serves<const W: usize>(rule: &Outline<W>, bits: &[u64; W]) -> bool {
    let missing = rule.mask.iter().zip(bits);
    missing.fold(0, |missing, (mask, bits)| missing | (bits & !mask)) == 0
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::splitmix;

    fn outlines(count: usize, make: impl Fn(u64) -> (u64, u64)) -> Vec<Outline<2>> {
        let mut state = 3;
        let mut one = || {
            let (value, mask) = make(splitmix(&mut state));
            Outline {
                value: [value & mask, 0],
                mask: [mask, 0],
            }
        };
        (0..count).map(|_| one()).collect()
    }

    fn learn(rules: &[Outline<2>]) -> Option<[u64; 2]> {
        Learner::new(&Schema::ipv4_5tuple(), 4).mask(rules.len(), |index| rules[index])
    }

    #[test]
    fn exact_rules_are_spread_over_small_buckets() {
        let rules = outlines(10_000, |random| (random, u64::MAX));
        let mask = learn(&rules).unwrap();
        let bits = mask[0].count_ones();
        assert!((11..=16).contains(&bits), "{bits} bits for 10,000 rules");
        assert!(rules.iter().all(|rule| serves(rule, &mask)));
    }

    #[test]
    fn of_two_kinds_of_rules_one_is_served() {
        let rules = outlines(4000, |random| match random % 2 {
            0 => (random, 0xffff_ffff),
            _ => (random, 0xffff_ffff << 32),
        });
        let mask = learn(&rules).unwrap();
        let served = rules.iter().filter(|rule| serves(rule, &mask)).count();
        assert!((1800..2200).contains(&served), "{served} served");
    }

    #[test]
    fn rules_that_no_bit_tells_apart_have_no_mask() {
        assert_eq!(learn(&outlines(100, |_| (7, 0xff))), None);
        assert_eq!(learn(&outlines(100, |random| (random, 0))), None);
        assert_eq!(learn(&[]), None);
    }
}
