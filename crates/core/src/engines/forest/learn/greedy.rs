//! Greedy plans: masks chosen one after the other.
//!
//! # Idea
//! More bits make smaller buckets and serve fewer rules. Starting from no bits, adds
//! bits one step at a time. A step is one bit, or the leading bits of a field: if
//! half of the rules leave a field open, its first bit costs the whole loss and all
//! further bits only gain.
//! ```text
//! size(mask)  = mean number of rules in the bucket of a served rule
//! gain(step)  = log2(size before / size after), nothing below the target
//! loss(step)  = log2(rules served before / after)
//! take the step with the largest  (gain - weight × loss) / (1 + BIT_COST × new bits)
//! until the size meets the target or no step scores enough
//! ```
//! The rules that the mask does not serve go to the next mask. If no first step
//! scores enough, losses get half the weight, and half of that again, several times.
//! If no step scores enough then, the next mask is the mask of the most frequent kind.
//!
//! # Cost
//! Steps are judged on a sample, whose size bounds the work of a step. A step has
//! bits of one field, so judging it reads one or two words of each rule, whatever
//! the width of the key. If there are more than [`MAX_STEPS`] steps, only the most
//! promising are judged: the steps whose bits are exact in the most rules. All masks
//! of a plan together may take [`Work::total`] judgements. So the work is bounded
//! for every schema. It grows with the key width only by one pass over the words of
//! the sample for each mask.
//!
//! Pairs of rules in a bucket are counted by hashing into an array. Pairs that
//! collide by chance are subtracted, since in a sample of one rule out of hundreds
//! they would count hundreds of times.

#![allow(clippy::cast_precision_loss)] // counts are far below 2^52

use super::cost::{Drawn, Sample};
use super::effort::{MAX_MASKS, Work};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::engines::forest::outline::Outline;
use crate::model::error::BuildError;
use crate::model::schema::{Schema, prefix_mask};
use crate::model::seed::fibonacci_hash;
use crate::parts::sort::sort_short;

/// The parameters of a greedy plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    /// The mean bucket, in rules, below which smaller buckets do not count.
    target: f64,
    /// The weight of losing rules, compared with smaller buckets.
    weight: f64,
}

impl Aim {
    /// Returns the aims to try, the most promising first. No single aim is best for
    /// all sets. More aims would add only plans that the search finds anyway.
    pub(super) fn around(target: usize) -> Vec<Aim> {
        let aim = |factor: f64, weight| Aim {
            target: (target as f64 * factor).max(1.0),
            weight,
        };
        vec![aim(1.0, 2.0), aim(4.0, 4.0), aim(2.0, 4.0)]
    }
}

/// The cost of each bit of a step: of two equal steps, the shorter step leaves more
/// bits in which headers may differ. Measured in `bench/records/constants.md`
/// (Forest).
const BIT_COST: f64 = 0.02;

/// The smallest score of a step that is taken. Measured in
/// `bench/records/constants.md` (Forest).
const MIN_SCORE: f64 = 0.02;

/// The most times that the weight and the smallest score are halved if there is no
/// first step. This happens with rules of several kinds, none of which is a
/// majority. Bounds the work for a mask.
const MAX_HALVINGS: u32 = 6;

/// The smallest sample, in rules. Measured in `bench/records/constants.md` (Forest).
const MIN_SAMPLE_RULES: usize = 128;

/// The largest sample, in rules. Compared with 470 rules in
/// `bench/records/forest-experiments.md`, "greedy plans of the root".
const MAX_SAMPLE_RULES: usize = 2048;

/// At most this number of rules are scanned, since another table does not pay for
/// them. Measured in `bench/records/constants.md` (Forest).
const MAX_SCANNED_RULES: f64 = 8.0;

/// The most steps judged for one mask. Schemas of up to about 400 bits have fewer.
/// Bounds the time of learning over wide keys; `docs/forest.md` (Worst cases, wide
/// keys) has it with this and the other bounds and without.
const MAX_STEPS: usize = 512;

/// Rules judged for a step that count as one step of a monitor's work. Bounds the
/// time until a build can be stopped.
const RULES_PER_WORK_STEP: usize = 16;

/// The most rules whose bits are counted to choose the steps to judge. Bounds the
/// work of that choice.
const MAX_COUNTED_RULES: usize = 64;

/// Bits of one field, in one or two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    parts: [(u8, u64); 2],
}

impl Step {
    /// Returns the bits of a mask with bits in at most two words.
    fn new<const W: usize>(mask: &[u64; W]) -> Step {
        let words = mask.iter().zip(0..).filter(|(bits, _)| **bits != 0);
        let mut parts = [(0, 0); 2];
        for ((&bits, word), part) in words.zip(&mut parts) {
            *part = (word, bits);
        }
        Step { parts }
    }

    /// Returns the bits that are not in a mask.
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

    /// True if some bit is set in a mask.
    fn meets<const W: usize>(self, mask: &[u64; W]) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|&(word, bits)| bits & mask[usize::from(word)] != 0)
    }

    fn count(self) -> u32 {
        self.parts.iter().map(|(_, bits)| bits.count_ones()).sum()
    }

    /// True if all bits are exact in the rule.
    #[inline]
    fn serves<const W: usize>(self, rule: &Outline<W>) -> bool {
        let [(word, bits), (second_word, second_bits)] = self.parts;
        let missing = bits & !rule.mask[usize::from(word)];
        missing | second_bits & !rule.mask[usize::from(second_word)] == 0
    }
}

/// Returns the numbers of leading bits of a field that are added together: all up to
/// 4, then every second, then every fourth.
fn lengths(width: u32) -> impl Iterator<Item = u32> {
    (2..=width)
        .filter(|length| *length <= 4 || length % 4 == 0 || (*length <= 8 && length % 2 == 0))
}

/// Chooses masks for rules of a schema.
#[derive(Clone, Debug)]
pub(super) struct Greedy<const W: usize> {
    steps: Vec<[u64; W]>,
    /// Each step as one or two words.
    sparse: Vec<Step>,
}

/// A rule of the sample that is still served, with a hash of its bucket.
#[derive(Clone, Copy)]
struct Served<const W: usize> {
    rule: Outline<W>,
    bucket: u64,
}

impl<const W: usize> Greedy<W> {
    /// Allows masks of any bits, or only of the leading bits of fields.
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

    /// Bits that may be added together: one bit, or the leading bits of a field.
    pub(super) fn steps(&self) -> &[[u64; W]] {
        &self.steps
    }

    /// Returns masks until few rules remain, no bits distinguish them or the work is
    /// spent. Adds the words read to `words`.
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
        let mut remaining: Vec<Drawn<W>> = sample.rules.clone();
        let mut masks = Vec::new();
        let mut spent = 0;
        while remaining
            .iter()
            .map(|drawn| f64::from(drawn.weight))
            .sum::<f64>()
            > MAX_SCANNED_RULES
            && masks.len() < MAX_MASKS
            && spent < work.total
        {
            let mask = match self.mask(aim, &remaining, work, &mut spent, monitor)? {
                Some(mask) => Some(mask),
                None => mask_of_a_kind(&remaining, monitor)?,
            };
            let Some(mask) = mask else {
                break;
            };
            monitor.work(remaining.len())?;
            remaining.retain(|drawn| !drawn.rule.fits(&mask));
            masks.push(mask);
            *words += 2 * W * remaining.len();
        }
        // Comparing a rule with a step reads two words of its mask and two of its
        // value.
        *words += 2 * spent;
        drop(remaining);
        monitor.memory().give_back(bytes);
        Ok(masks)
    }

    /// Returns a mask with at least one bit for some of the rules, or `None` if no
    /// bit distinguishes enough of them. Adds the work to `spent`.
    fn mask(
        &self,
        aim: &Aim,
        rules: &[Drawn<W>],
        work: Work,
        spent: &mut usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<[u64; W]>, BuildError> {
        let max_rules = (work.step / self.steps.len().clamp(1, MAX_STEPS))
            .clamp(MIN_SAMPLE_RULES, MAX_SAMPLE_RULES);
        let max_drawn = (max_rules + 1).min(rules.len());
        // The sample and the rules of it that are still served, the counters, the
        // steps, and twice the results of judging.
        let bytes = 2 * bytes_of::<Served<W>>(max_drawn)
            + bytes_of::<(u16, u16)>(Counters::count(max_drawn))
            + bytes_of::<Step>(self.sparse.len())
            + 2 * bytes_of::<Judged>(self.sparse.len().min(MAX_STEPS));
        monitor.memory().take(bytes)?;
        let (scale, sample) = alike(rules, max_rules);
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
        let mut mask = None;
        let mut aim = *aim;
        let mut min_score = MIN_SCORE;
        for _ in 0..=MAX_HALVINGS {
            mask = search.mask(&first, &sample, &aim, min_score)?;
            if mask.is_some() {
                break;
            }
            aim.weight *= 0.5;
            min_score *= 0.5;
        }
        monitor.memory().give_back(bytes);
        Ok(mask)
    }

    /// Returns the steps to judge. If there are too many, chooses by the number of
    /// rules in which a step's rarest bit is exact, plus the rules that its best bit
    /// separates. Keeps their order.
    fn promising(&self, sample: &[Served<W>], spent: &mut usize) -> Vec<Step> {
        if self.sparse.len() <= MAX_STEPS {
            return self.sparse.clone();
        }
        let stride = sample.len().div_ceil(MAX_COUNTED_RULES).max(1);
        let sample = sample.iter().step_by(stride);
        // Costs as much as this number of comparisons.
        *spent += 16 * W * sample.len() + self.sparse.len();
        // For each bit: the number of rules in which it is exact, and in which it is
        // 1.
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
            let (mut exacts, mut separated) = (u32::MAX, 0);
            for (word, bits) in step.parts {
                let mut bits = bits;
                while bits != 0 {
                    let bit = bits.trailing_zeros();
                    let (exact, ones) = counts[usize::from(word)][bit as usize];
                    exacts = exacts.min(exact);
                    separated = separated.max(ones.min(exact - ones));
                    bits &= bits - 1;
                }
            }
            exacts + separated
        };
        let mut order: Vec<(std::cmp::Reverse<u32>, usize)> = (self.sparse.iter().enumerate())
            .map(|(index, step)| (std::cmp::Reverse(promise(step)), index))
            .collect();
        order.select_nth_unstable(MAX_STEPS);
        order.truncate(MAX_STEPS);
        sort_short(&mut order, |&(_, index)| index);
        order
            .into_iter()
            .map(|(_, index)| self.sparse[index])
            .collect()
    }
}

/// The result of judging a step: the bits that it adds, the number of rules that
/// remain served, and the number of ordered pairs of these rules that share a
/// bucket.
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
    /// Rules represented by each rule of the sample.
    scale: f64,
    counters: Counters,
    spent: &'a mut usize,
    total: usize,
}

impl MaskSearch<'_, '_> {
    /// Returns the mean bucket of a served rule: a bucket of n sampled rules has
    /// about 1 + (n - 1) × scale rules.
    fn size(&self, pairs: u64, rules: usize) -> f64 {
        1.0 + self.scale * pairs as f64 / rules as f64
    }

    /// Judges each step that distinguishes served rules and keeps some of them.
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
            self.monitor.work(1 + served.len() / RULES_PER_WORK_STEP)?;
            if count > 0 {
                judged.push(Judged { add, count, pairs });
            }
        }
        Ok(judged)
    }

    /// Returns a mask with at least one bit, if a first step scores more than
    /// `min_score`.
    fn mask<const W: usize>(
        &mut self,
        first: &[Judged],
        sample: &[Served<W>],
        aim: &Aim,
        min_score: f64,
    ) -> Result<Option<[u64; W]>, BuildError> {
        let mut served = sample.to_vec();
        let rule_count = served.len() as u64;
        let mut size = self.size(
            rule_count * rule_count.saturating_sub(1),
            served.len().max(1),
        );
        let mut mask = [0; W];
        while size > aim.target && served.len() > 1 {
            let fresh;
            let judged = if mask == [0; W] {
                first
            } else if *self.spent >= self.total {
                break;
            } else {
                fresh = self.judge_all(&served, &mask)?;
                &fresh
            };
            let mut best = (min_score, None);
            for judged in judged {
                let after = self.size(judged.pairs, judged.count);
                let gain = (size.max(aim.target) / after.max(aim.target)).log2();
                let loss = (served.len() as f64 / judged.count as f64).log2();
                let bits = f64::from(judged.add.count());
                let score = (gain - aim.weight * loss) / (1.0 + BIT_COST * bits);
                if score > best.0 {
                    best = (score, Some((judged.add, after)));
                }
            }
            let (_, Some((add, after))) = best else {
                break;
            };
            add.add_to(&mut mask);
            size = after;
            served.retain_mut(|served| {
                served.bucket = bucket(served, add);
                add.serves(&served.rule)
            });
        }
        Ok((mask != [0; W]).then_some(mask))
    }
}

/// Draws about `max_rules` rules at most, each representing the same number of
/// rules. Returns that number, and the rules drawn.
fn alike<const W: usize>(rules: &[Drawn<W>], max_rules: usize) -> (f64, Vec<Served<W>>) {
    let weights = rules.iter().map(|drawn| drawn.weight);
    let scale = (weights.clone().sum::<f32>() / max_rules as f32).max(weights.fold(1.0, f32::max));
    let mut due = 0.5 * scale;
    let mut drawn_rules = Vec::with_capacity((max_rules + 1).min(rules.len()));
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

/// Returns the distinguishing bits of the most frequent kind that has any. Used if
/// there are so many kinds that no step is worth its loss.
fn mask_of_a_kind<const W: usize>(
    rules: &[Drawn<W>],
    monitor: &mut Monitor<'_>,
) -> Result<Option<[u64; W]>, BuildError> {
    // Sorting is stable and takes the same memory again.
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
    let distinguishing = telling.filter(|(_, telling)| *telling != [0; W]);
    // The first of the largest kinds.
    let largest =
        distinguishing.reduce(|largest, other| if other.0 > largest.0 { other } else { largest });
    drop(rules);
    monitor.memory().give_back(bytes);
    Ok(largest.map(|(_, telling)| telling))
}

/// Bits that are exact in some rules and differ between them.
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

/// Returns the number of rules that are still served when the bits `add` are added,
/// and the number of ordered pairs of them that share a bucket.
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

/// Counts of each hash since the last clearing.
struct Counters {
    /// The round in which the hash was last counted, and its count.
    seen: Vec<(u16, u16)>,
    round: u16,
}

impl Counters {
    /// Returns counters for `rules` rules, enough that few hashes collide by chance.
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

    /// Counts a hash; returns its previous count.
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

/// Returns the bucket of a rule when the bits `add` are added.
#[inline]
fn bucket<const W: usize>(served: &Served<W>, add: Step) -> u64 {
    let mix = |hash: u64, (word, bits): (u8, u64)| {
        fibonacci_hash(hash ^ (served.rule.value[usize::from(word)] & bits)).rotate_left(29)
    };
    let [first, second] = add.parts;
    let mut mixed = mix(served.bucket, first);
    // Most steps have bits in only one word.
    if second.1 != 0 {
        mixed = mix(mixed, second);
    }
    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
