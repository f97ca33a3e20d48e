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
//! Steps are judged on a sample, of a size that bounds the work of a step. A
//! step is bits of one field, so judging it looks at one or two words of each
//! rule, whatever the width of the key. If there are more than [`STEPS`] steps,
//! only the most promising are judged, by the number of rules in which their
//! bits are exact; and all masks of a plan together may take [`Work::total`]
//! judgements. So the work is bounded for every schema, and grows with the key
//! width only by one pass over the words of the sample for each mask.
//!
//! Counting is by hashing into an array; the pairs that meet there by chance are
//! subtracted, since a sample of one rule in hundreds multiplies them by that.

#![allow(clippy::cast_precision_loss)] // counts are far below 2^52

use super::cost::{Drawn, Sample};
use super::effort::Work;
use crate::engine::forest::outline::Outline;
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::schema::{Schema, prefix_mask};
use crate::sort::sort_short;

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
pub(super) const MASKS: usize = 24;

/// The most steps judged for one mask. Schemas of up to about 400 bits have no
/// more.
const STEPS: usize = 512;

/// Rules judged for one of them, as much work as a step of a monitor.
const JUDGED: usize = 16;

/// Rules in which bits are counted to choose these.
const COUNTED: usize = 64;

/// Bits of one field: they lie in one word or in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    parts: [(u8, u64); 2],
}

impl Step {
    /// The bits of a mask that lies in at most two words.
    fn new<const W: usize>(mask: &[u64; W]) -> Step {
        let words = mask.iter().zip(0..).filter(|(bits, _)| **bits != 0);
        let mut parts = [(0, 0); 2];
        for ((&bits, word), part) in words.zip(&mut parts) {
            *part = (word, bits);
        }
        Step { parts }
    }

    /// Those that are not in a mask.
    fn without<const W: usize>(self, mask: &[u64; W]) -> Step {
        let parts = self.parts;
        Step {
            parts: parts.map(|(word, bits)| (word, bits & !mask[usize::from(word)])),
        }
    }

    fn add_to<const W: usize>(self, mask: &mut [u64; W]) {
        for (word, bits) in self.parts {
            mask[usize::from(word)] |= bits;
        }
    }

    /// Whether some bit is set in a mask.
    fn meets<const W: usize>(self, mask: &[u64; W]) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|&(word, bits)| bits & mask[usize::from(word)] != 0)
    }

    fn count(self) -> u32 {
        self.parts.iter().map(|(_, bits)| bits.count_ones()).sum()
    }

    /// Whether all bits are exact in the rule.
    #[inline]
    fn serves<const W: usize>(self, rule: &Outline<W>) -> bool {
        let [(word, bits), (other, more)] = self.parts;
        let missing = bits & !rule.mask[usize::from(word)];
        missing | more & !rule.mask[usize::from(other)] == 0
    }
}

/// Numbers of leading bits of a field that are added together: all up to 4, then
/// every other, then every fourth.
fn lengths(width: u32) -> impl Iterator<Item = u32> {
    (2..=width)
        .filter(|length| *length <= 4 || length % 4 == 0 || (*length <= 8 && length % 2 == 0))
}

/// Chooses masks for rules of a schema.
#[derive(Clone, Debug)]
pub(super) struct Greedy<const W: usize> {
    steps: Vec<[u64; W]>,
    /// The same, word by word.
    sparse: Vec<Step>,
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
        let mut steps = Vec::with_capacity(Greedy::<W>::count(schema, any_bits));
        for id in schema.field_ids() {
            let width = schema.field(id).width();
            let bits = |mask: u128| {
                let mut words = [0; W];
                schema.placement(id).set(&mut words, mask);
                words
            };
            let single = if any_bits { 0 } else { width - 1 };
            steps.extend((single..width).map(|bit| bits(1 << bit)));
            steps.extend(lengths(width).map(|length| bits(prefix_mask(width, length))));
        }
        let sparse = steps.iter().map(Step::new).collect();
        Greedy { steps, sparse }
    }

    /// The number of steps.
    fn count(schema: &Schema, any_bits: bool) -> usize {
        let fields = schema.field_ids().map(|id| schema.field(id).width());
        let single = |width: u32| if any_bits { width as usize } else { 1 };
        fields
            .map(|width| single(width) + lengths(width).count())
            .sum()
    }

    /// Bytes of the steps.
    pub(super) fn bytes(schema: &Schema, any_bits: bool) -> usize {
        Greedy::<W>::count(schema, any_bits) * (size_of::<[u64; W]>() + size_of::<Step>())
    }

    /// Bits that may be added together: one, or the leading ones of a field.
    pub(super) fn steps(&self) -> &[[u64; W]] {
        &self.steps
    }

    /// Masks until few rules are left, nothing tells them apart or the work is
    /// spent. Counts up how many words that took.
    pub(super) fn masks(
        &self,
        aim: &Aim,
        sample: &Sample<W>,
        work: Work,
        words: &mut usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<Vec<[u64; W]>, BuildError> {
        let bytes = bytes_of::<Drawn<W>>(sample.rules.len());
        monitor.memory().take(bytes)?;
        let mut rest: Vec<Drawn<W>> = sample.rules.clone();
        let mut masks = Vec::new();
        let mut spent = 0;
        while rest
            .iter()
            .map(|drawn| f64::from(drawn.weight))
            .sum::<f64>()
            > SCANNED
            && masks.len() < MASKS
            && spent < work.total
        {
            let mask = match self.mask(aim, &rest, work, &mut spent, monitor)? {
                Some(mask) => Some(mask),
                None => mask_of_a_kind(&rest, monitor)?,
            };
            let Some(mask) = mask else {
                break;
            };
            monitor.work(rest.len())?;
            rest.retain(|drawn| !drawn.rule.fits(&mask));
            masks.push(mask);
            *words += 2 * W * rest.len();
        }
        // A rule compared with a step is two words of its mask and two of its value.
        *words += 2 * spent;
        drop(rest);
        monitor.memory().give_back(bytes);
        Ok(masks)
    }

    /// A mask for some of the rules, with at least one bit; `None` when no bit
    /// tells enough of them apart. Counts the work up.
    fn mask(
        &self,
        aim: &Aim,
        rules: &[Drawn<W>],
        work: Work,
        spent: &mut usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<[u64; W]>, BuildError> {
        let most = (work.step / self.steps.len().clamp(1, STEPS)).clamp(LEAST_SAMPLE, SAMPLE);
        let most_drawn = (most + 1).min(rules.len());
        // The sample and what is left of it, its counters, the steps, and what
        // came of them twice.
        let bytes = 2 * bytes_of::<Served<W>>(most_drawn)
            + bytes_of::<(u16, u16)>(Counters::count(most_drawn))
            + bytes_of::<Step>(self.sparse.len())
            + 2 * bytes_of::<Judged>(self.sparse.len().min(STEPS));
        monitor.memory().take(bytes)?;
        let (scale, sample) = alike(rules, most);
        monitor.work(rules.len() / 4)?;
        let steps = self.promising(&sample, spent);
        let mut search = MaskSearch {
            steps: &steps,
            scale,
            counters: Counters::new(sample.len()),
            spent,
            total: work.total,
            monitor,
        };
        // The first step is judged once, whatever the weight.
        let first = search.judge_all(&sample, &[0; W])?;
        let mut found = None;
        let mut aim = *aim;
        let mut least = LEAST_SCORE;
        for _ in 0..=CONCESSIONS {
            found = search.mask(&first, &sample, &aim, least)?;
            if found.is_some() {
                break;
            }
            aim.weight *= 0.5;
            least *= 0.5;
        }
        monitor.memory().give_back(bytes);
        Ok(found)
    }

    /// The steps to judge: all, or those whose rarest bit is exact in the most
    /// rules, less the rules that it does not tell apart. They keep their order.
    fn promising(&self, sample: &[Served<W>], spent: &mut usize) -> Vec<Step> {
        if self.sparse.len() <= STEPS {
            return self.sparse.clone();
        }
        let stride = sample.len().div_ceil(COUNTED).max(1);
        let sample = sample.iter().step_by(stride);
        // As dear as this many comparisons.
        *spent += 16 * W * sample.len() + self.sparse.len();
        // How many rules have a bit, and how many have it set.
        let mut counts = vec![[(0u32, 0u32); 64]; W];
        for served in sample {
            for (word, counts) in counts.iter_mut().enumerate() {
                let mut exact = served.rule.mask[word];
                while exact != 0 {
                    let bit = exact.trailing_zeros();
                    let (exacts, ones) = &mut counts[bit as usize];
                    *exacts += 1;
                    *ones += u32::from(served.rule.value[word] >> bit & 1 != 0);
                    exact &= exact - 1;
                }
            }
        }
        let promise = |step: &Step| {
            let (mut exacts, mut told) = (u32::MAX, 0);
            for (word, bits) in step.parts {
                let mut bits = bits;
                while bits != 0 {
                    let bit = bits.trailing_zeros();
                    let (exact, ones) = counts[usize::from(word)][bit as usize];
                    exacts = exacts.min(exact);
                    told = told.max(ones.min(exact - ones));
                    bits &= bits - 1;
                }
            }
            exacts + told
        };
        let mut order: Vec<(std::cmp::Reverse<u32>, usize)> = (self.sparse.iter().enumerate())
            .map(|(index, step)| (std::cmp::Reverse(promise(step)), index))
            .collect();
        order.select_nth_unstable(STEPS);
        order.truncate(STEPS);
        sort_short(&mut order, |&(_, index)| index);
        order
            .into_iter()
            .map(|(_, index)| self.sparse[index])
            .collect()
    }
}

/// What came of judging a step: the bits that it adds, the rules that are still
/// served, and how many ordered pairs of them share a bucket.
#[derive(Clone, Copy)]
struct Judged {
    add: Step,
    count: usize,
    pairs: u64,
}

/// The search for one mask.
struct MaskSearch<'a, 'm> {
    steps: &'a [Step],
    monitor: &'a mut Monitor<'m>,
    /// Rules that each of the sample stands for.
    scale: f64,
    counters: Counters,
    spent: &'a mut usize,
    total: usize,
}

impl MaskSearch<'_, '_> {
    /// The mean bucket of a served rule: one with n sampled rules has about
    /// 1 + (n - 1) × scale rules.
    fn size(&self, pairs: u64, rules: usize) -> f64 {
        1.0 + self.scale * pairs as f64 / rules as f64
    }

    /// Every step that tells served rules apart and leaves some.
    fn judge_all<const W: usize>(
        &mut self,
        served: &[Served<W>],
        mask: &[u64; W],
    ) -> Result<Vec<Judged>, BuildError> {
        let telling = telling_bits(served.iter().map(|served| &served.rule));
        let mut judged = Vec::with_capacity(self.steps.len());
        let mut last = Step { parts: [(0, 0); 2] };
        for step in self.steps {
            let add = step.without(mask);
            if !add.meets(&telling) || add == last {
                continue;
            }
            last = add;
            let (count, pairs) = judge(served, add, &mut self.counters);
            *self.spent += served.len();
            self.monitor.work(1 + served.len() / JUDGED)?;
            if count > 0 {
                judged.push(Judged { add, count, pairs });
            }
        }
        Ok(judged)
    }

    /// A mask with at least one bit, if a first step scores more than `least`.
    fn mask<const W: usize>(
        &mut self,
        first: &[Judged],
        sample: &[Served<W>],
        aim: &Aim,
        least: f64,
    ) -> Result<Option<[u64; W]>, BuildError> {
        let mut served = sample.to_vec();
        let all = served.len() as u64;
        let mut now = self.size(all * all.saturating_sub(1), served.len().max(1));
        let mut mask = [0; W];
        while now > aim.target && served.len() > 1 {
            let fresh;
            let judged = if mask == [0; W] {
                first
            } else if *self.spent >= self.total {
                break;
            } else {
                fresh = self.judge_all(&served, &mask)?;
                &fresh
            };
            let mut best = (least, None);
            for judged in judged {
                let after = self.size(judged.pairs, judged.count);
                let gain = (now.max(aim.target) / after.max(aim.target)).log2();
                let loss = (served.len() as f64 / judged.count as f64).log2();
                let bits = f64::from(judged.add.count());
                let score = (gain - aim.weight * loss) / (1.0 + LENGTH * bits);
                if score > best.0 {
                    best = (score, Some((judged.add, after)));
                }
            }
            let (_, Some((add, after))) = best else {
                break;
            };
            add.add_to(&mut mask);
            now = after;
            served.retain_mut(|served| {
                served.bucket = bucket(served, add);
                add.serves(&served.rule)
            });
        }
        Ok((mask != [0; W]).then_some(mask))
    }
}

/// At most about that many of the rules, each standing for as many of all rules as
/// the others: that number, and the rules.
fn alike<const W: usize>(rules: &[Drawn<W>], most: usize) -> (f64, Vec<Served<W>>) {
    let weights = rules.iter().map(|drawn| drawn.weight);
    let scale = (weights.clone().sum::<f32>() / most as f32).max(weights.fold(1.0, f32::max));
    let mut due = 0.5 * scale;
    let mut drawn_rules = Vec::with_capacity((most + 1).min(rules.len()));
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
fn mask_of_a_kind<const W: usize>(
    rules: &[Drawn<W>],
    monitor: &mut Monitor<'_>,
) -> Result<Option<[u64; W]>, BuildError> {
    // Sorting is stable, which takes as much room again.
    let bytes = 2 * bytes_of::<&Drawn<W>>(rules.len());
    monitor.memory().take(bytes)?;
    monitor.work(4 * rules.len())?;
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
    let largest = some.reduce(|most, other| if other.0 > most.0 { other } else { most });
    drop(rules);
    monitor.memory().give_back(bytes);
    Ok(largest.map(|(_, telling)| telling))
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
fn judge<const W: usize>(served: &[Served<W>], add: Step, counters: &mut Counters) -> (usize, u64) {
    counters.clear();
    let mut count = 0;
    let mut pairs = 0;
    for served in served {
        if add.serves(&served.rule) {
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
        Counters {
            seen: vec![(0, 0); Counters::count(rules)],
            round: 0,
        }
    }

    fn count(rules: usize) -> usize {
        (rules * 32).next_power_of_two().max(64)
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

/// The bucket of a rule with these bits more.
#[inline]
fn bucket<const W: usize>(served: &Served<W>, add: Step) -> u64 {
    let mix = |hash: u64, (word, bits): (u8, u64)| {
        (hash ^ (served.rule.value[usize::from(word)] & bits))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    };
    let [first, other] = add.parts;
    let mut mixed = mix(served.bucket, first);
    // Most steps lie in one word.
    if other.1 != 0 {
        mixed = mix(mixed, other);
    }
    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
