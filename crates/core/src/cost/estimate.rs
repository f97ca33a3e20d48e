//! Estimates of an engine's memory and time, made before it is built.
//!
//! # Idea
//! A [`Shape`] summarises a rule set for estimates. It has the schema and, for
//! each tuple (distinct mask), the number of rules, the number of distinct
//! values under the mask, and the rank of the best rule. For each field it has
//! the number of distinct matches. It also has a sample of the rules, for
//! engines whose memory depends on how rules overlap. A shape is measured from
//! rules, or constructed for rules that do not exist yet. It can be scaled to
//! other numbers of rules. [`EngineSpec::estimate`] returns an [`Estimate`] for
//! an engine over rules of this shape, or the error that building it would
//! return.
//!
//! ```
//! use classyard::{BuildError, EngineSpec, Limits, Schema};
//! use classyard::estimate::{Shape, Tuple};
//!
//! let schema = Schema::ipv4_5tuple();
//! // A table of a million pairs of hosts. None of its rules exists yet.
//! let pairs = Tuple::of_lengths(&schema, &[32, 32, 0, 0, 0], 1_000_000);
//! let shape = Shape::new(&schema, vec![pairs]);
//! let forest = EngineSpec::parse("forest")?;
//! let estimate = forest.estimate(&shape, &Limits::default())?;
//! assert!(estimate.bytes > 40_000_000 && estimate.bytes < 200_000_000);
//!
//! let small = Limits::default().with_bytes(10_000_000);
//! let error = forest.estimate(&shape, &small).unwrap_err();
//! assert!(matches!(error, BuildError::TooManyBytes { .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Accuracy
//! **Bytes** are computed from the sizes of the engine's structures and the
//! rules by which their capacities grow. Only the number of distinct keys in a
//! merged table cannot be computed without the rules; it is estimated. A test
//! checks that the estimated bytes of every engine are within a factor of 1.5
//! of the bytes of the built classifier.
//!
//! **Times** are the engine's work ([`Costs`]) multiplied by the prices of a
//! [machine](crate::cost::machine). Most engines are built over the shape's
//! sample; the tables, nodes and rules that lookups visit there are counted and
//! extrapolated to all rules. The instructions and cache lines for each visited
//! table, node and rule were fitted to measurements on the [default
//! machine](crate::cost::machine::Machine): headers drawn as in ClassBench, six
//! of the built-in profiles at 1k, 10k and 30k rules, three profiles of IPv6,
//! fifteen fields, and two kinds of flow tables (November 2026).
//! `bench/README.md` has the command that compares estimates with measured
//! times, and its results for other profiles and sizes. Use estimates to rank
//! engines and to choose machines. Actual times can differ considerably.
//!
//! [`EngineSpec::estimate`]: crate::contract::spec::EngineSpec::estimate

#![allow(clippy::cast_precision_loss)] // estimates

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;

pub use crate::budget::memory::{grown, map_bytes};
use crate::cost::machine::{Machine, Operation, Work};
use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId, RuleRef};
use crate::model::ruleset::RuleSet;
use crate::model::schema::{Field, FieldId, MatchKind, Schema, prefix_mask};
use crate::model::seed::{MapState, splitmix};

/// The estimated memory and time of an engine over a rule set, on a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Bytes held after building, rules included, as
    /// [`Stats::bytes`](crate::contract::classifier::Stats::bytes) counts them.
    pub bytes: usize,
    /// CPU time of a build on one core.
    pub build: Duration,
    /// Mean nanoseconds for each header when headers are looked up in batches
    /// of [`BATCH`](crate::contract::classifier::BATCH) on one core.
    pub lookup_ns: f64,
    /// Mean nanoseconds for each header when headers are looked up one by one.
    pub single_ns: f64,
    /// Mean nanoseconds for inserting or removing a rule; `None` if the engine
    /// does not support updates.
    pub update_ns: Option<f64>,
}

/// The estimated memory and work of an engine over a rule set, on any machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// Bytes held after building, rules included.
    pub bytes: usize,
    /// The work of a build.
    pub build: Work,
    /// Mean work for a header in a batch of
    /// [`BATCH`](crate::contract::classifier::BATCH).
    pub batch: Work,
    /// Mean work for a header that is looked up alone.
    pub single: Work,
    /// Mean work for inserting or removing a rule; `None` if the engine does
    /// not support updates.
    pub update: Option<Work>,
}

impl Costs {
    /// Returns the estimate for a machine. `factor` is the ratio of measured to
    /// computed time for each operation ([`Machine::factor`]).
    #[must_use]
    pub fn on(&self, machine: &Machine, factor: impl Fn(Operation) -> f64) -> Estimate {
        let ns = |work: &Work, operation| machine.ns(work) * factor(operation);
        Estimate {
            bytes: self.bytes,
            build: nanoseconds(ns(&self.build, Operation::Build)),
            lookup_ns: ns(&self.batch, Operation::Batch),
            single_ns: ns(&self.single, Operation::Single),
            update_ns: self.update.as_ref().map(|work| ns(work, Operation::Update)),
        }
    }
}

/// A summary of the rules that have one mask.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuple {
    /// The bits that the rules compare, in the words of a key. For a range,
    /// these are the leading bits that all its values share.
    pub mask: Box<[u64]>,
    /// The number of rules with this mask.
    pub rules: usize,
    /// The number of distinct values under the mask; at most `rules`.
    pub keys: usize,
    /// The share of all rules, 0 to 1, that are better than this tuple's best
    /// rule.
    pub best: f64,
}

impl Tuple {
    /// Returns a tuple of rules that all have distinct values. Their priorities
    /// are assumed to be randomly distributed among all priorities.
    #[must_use]
    pub fn new(mask: &[u64], rules: usize) -> Tuple {
        Tuple {
            mask: mask.into(),
            rules,
            keys: rules,
            best: 1.0 / (rules + 1) as f64,
        }
    }

    /// Like [`new`](Self::new), for rules that compare the first `lengths[i]`
    /// bits of field `i`.
    ///
    /// # Panics
    /// If the number of lengths differs from the number of fields, or a length
    /// exceeds its field's width.
    #[must_use]
    pub fn of_lengths(schema: &Schema, lengths: &[u32], rules: usize) -> Tuple {
        assert_eq!(
            lengths.len(),
            schema.fields().len(),
            "one length for each field"
        );
        let mut mask = vec![0; schema.key_words()];
        for (id, &length) in schema.field_ids().zip(lengths) {
            let width = schema.field(id).width();
            assert!(length <= width, "a length of {length} in {width} bits");
            let bits = prefix_mask(width, length);
            schema.placement(id).set(&mut mask, bits);
        }
        Tuple::new(&mask, rules)
    }
}

/// The numbers of distinct matches that rules have in a field, excluding
/// wildcards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FieldShape {
    /// Single values and prefixes: any two of them are nested or disjoint.
    pub prefixes: usize,
    /// Ranges that are not prefixes, and values under a mask with holes.
    pub ranges: usize,
}

/// A summary of a rule set for estimates.
#[derive(Clone, Debug)]
pub struct Shape {
    schema: Arc<Schema>,
    rules: usize,
    /// The number of groups of [`ID_GROUP`] consecutive ids with at least one
    /// rule.
    id_groups: usize,
    /// In descending order of their numbers of rules.
    tuples: Vec<Tuple>,
    /// In the schema's order.
    fields: Vec<FieldShape>,
    /// At most [`SAMPLE_RULES`] of the rules.
    sample: Arc<RuleSet>,
}

/// The number of ids that an engine's map of ids stores together: a page of
/// `crate::parts::id_map`.
const ID_GROUP: usize = 16;

/// Maximum number of rules in a sample. Measured in `bench/records/constants.md`
/// (Estimates: samples).
const SAMPLE_RULES: usize = 8192;

/// Number of sampled ranks for estimating the rank of a tuple's best rule. Measured
/// in `bench/records/constants.md` (Estimates: samples).
const SAMPLED_RANKS: usize = 4096;

impl Shape {
    /// Returns a shape from tuples, for rules that need not exist. Tuples
    /// without rules are dropped. The function assumes that ids are 0, 1, 2, …,
    /// and that each tuple has as many distinct values in a field as its keys
    /// and its bits in the field allow. The [sample](Self::sample) has rules
    /// with random values. Each tuple has its share of them.
    ///
    /// # Panics
    /// If a mask and the schema's keys differ in their number of words.
    #[must_use]
    pub fn new(schema: &Arc<Schema>, tuples: Vec<Tuple>) -> Shape {
        let shape = Shape::with_tuples(schema, tuples, Arc::new(RuleSet::new(schema)));
        let sample = made_up(schema, &shape.tuples, shape.rules);
        Shape {
            sample: Arc::new(sample),
            ..shape
        }
    }

    fn with_tuples(schema: &Arc<Schema>, mut tuples: Vec<Tuple>, sample: Arc<RuleSet>) -> Shape {
        tuples.retain(|tuple| tuple.rules > 0);
        for tuple in &mut tuples {
            let words = schema.key_words();
            assert_eq!(tuple.mask.len(), words, "a mask of {words} words");
            tuple.keys = tuple.keys.clamp(1, tuple.rules);
        }
        tuples.sort_by(|a, b| (b.rules, &a.mask).cmp(&(a.rules, &b.mask)));
        let rules = tuples.iter().map(|tuple| tuple.rules).sum::<usize>();
        let fields = schema.field_ids().map(|field| {
            let values = tuples.iter().map(|tuple| {
                let bits = schema.placement(field).get(&tuple.mask).count_ones();
                match bits {
                    0 => 0,
                    1..usize::BITS => tuple.keys.min(1 << bits),
                    _ => tuple.keys,
                }
            });
            FieldShape {
                prefixes: values.sum(),
                ranges: 0,
            }
        });
        Shape {
            fields: fields.collect(),
            schema: Arc::clone(schema),
            rules,
            id_groups: rules.div_ceil(ID_GROUP),
            tuples,
            sample,
        }
    }

    /// Replaces the numbers of distinct matches in the fields, in the schema's
    /// order. Engines that index each field separately use them for estimates.
    ///
    /// # Panics
    /// If the number of `fields` differs from the number of the schema's
    /// fields.
    #[must_use]
    pub fn with_fields(self, fields: &[FieldShape]) -> Shape {
        assert_eq!(fields.len(), self.fields.len(), "one for each field");
        Shape {
            fields: fields.to_vec(),
            ..self
        }
    }

    /// Replaces the sample of rules. Engines whose memory depends on how rules
    /// overlap use it for estimates.
    ///
    /// # Panics
    /// If the sample's rules have another schema.
    #[must_use]
    pub fn with_sample(self, sample: &RuleSet) -> Shape {
        assert_eq!(sample.schema(), &self.schema, "rules of another schema");
        Shape {
            sample: Arc::new(some_of(sample, SAMPLE_RULES)),
            ..self
        }
    }

    /// Measures a rule set. Distinct values, and distinct matches of a field,
    /// are counted by hash in a bitmap of eight to sixteen bits a rule, so up
    /// to 6% of them are missed. The rank of a tuple's best rule is estimated
    /// from a sample of all ranks.
    ///
    /// The sample has at most 8,192 rules, evenly spaced in the set.
    ///
    /// Takes 0.05 to 0.1 µs for each rule, and 0.02 µs for each field of a
    /// rule. Allocates the bitmaps, the distinct masks and the sample.
    #[must_use]
    pub fn of(rules: &RuleSet) -> Shape {
        let step = rules.len().div_ceil(SAMPLED_RANKS).max(1);
        let sampled = (0..rules.len()).step_by(step);
        let mut ranks: Vec<u64> = sampled.map(|at| rules.rule(at).winner().rank()).collect();
        ranks.sort_unstable();

        let mut numbers: HashMap<&[u64], usize, MapState> = HashMap::default();
        let mut tuples: Vec<Tuple> = Vec::new();
        let mut best_ranks = Vec::new();
        let mut keys = Seen::room_for(rules.len());
        let mut groups = Seen::room_for(rules.len());
        let mut id_groups = 0;
        let schema = rules.schema();
        let mut fields = vec![FieldShape::default(); schema.fields().len()];
        let mut matches = Seen::room_for(rules.len().saturating_mul(fields.len()));
        for rule in rules.iter() {
            for (id, field) in schema.field_ids().zip(&mut fields) {
                field.count(&rule, id, &mut matches);
            }
            let rank = rule.winner().rank();
            let number = *numbers.entry(rule.mask()).or_insert_with(|| {
                tuples.push(Tuple {
                    mask: rule.mask().into(),
                    rules: 0,
                    keys: 0,
                    best: 0.0,
                });
                best_ranks.push(u64::MAX);
                tuples.len() - 1
            });
            let tuple = &mut tuples[number];
            tuple.rules += 1;
            let masked = rule.value().iter().zip(rule.mask());
            let masked = masked.map(|(value, mask)| value & mask);
            tuple.keys += usize::from(keys.is_new(number as u64, masked));
            best_ranks[number] = best_ranks[number].min(rank);
            let group = (rule.id().index() / ID_GROUP) as u64;
            id_groups += usize::from(groups.is_new(group, std::iter::empty()));
        }
        for (tuple, best) in tuples.iter_mut().zip(best_ranks) {
            let better = ranks.partition_point(|&rank| rank < best);
            tuple.best = better as f64 / ranks.len() as f64;
        }
        Shape {
            id_groups,
            fields,
            ..Shape::with_tuples(schema, tuples, Arc::new(some_of(rules, SAMPLE_RULES)))
        }
    }

    /// Returns the shape scaled to `rules` rules. Each tuple keeps its share of
    /// the rules, so tuples with few rules may disappear. The sample is
    /// unchanged. A shape without rules becomes a shape of rules that are exact
    /// in every field.
    #[must_use]
    pub fn with_rules(&self, rules: usize) -> Shape {
        if self.rules == 0 {
            let widths = self.schema.fields().iter().map(Field::width);
            let widths: Vec<u32> = widths.collect();
            let exact = Tuple::of_lengths(&self.schema, &widths, rules);
            return Shape::new(&self.schema, vec![exact]);
        }
        let share = |part: usize| {
            let scaled = part as u128 * rules as u128 / self.rules as u128;
            usize::try_from(scaled).expect("at most all rules")
        };
        let mut before = 0;
        let tuples = self.tuples.iter().map(|tuple| {
            let start = share(before);
            before += tuple.rules;
            let count = share(before) - start;
            let keys = count as f64 * tuple.keys as f64 / tuple.rules as f64;
            Tuple {
                rules: count,
                keys: whole(keys.ceil()),
                ..tuple.clone()
            }
        });
        let sample = Arc::clone(&self.sample);
        let shape = Shape::with_tuples(&self.schema, tuples.collect(), sample);
        let times = rules as f64 / self.rules as f64;
        let fields = self.fields.iter().map(|field| FieldShape {
            prefixes: whole((field.prefixes as f64 * times).ceil()).min(rules),
            ranges: whole((field.ranges as f64 * times).ceil()).min(rules),
        });
        Shape {
            id_groups: whole((self.id_groups as f64 * times).ceil()).min(rules),
            fields: fields.collect(),
            ..shape
        }
    }

    /// Returns the schema of the rules.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn rules(&self) -> usize {
        self.rules
    }

    /// Returns the tuples in descending order of their numbers of rules.
    #[must_use]
    pub fn tuples(&self) -> &[Tuple] {
        &self.tuples
    }

    /// Returns the numbers of distinct matches for each field, in the schema's
    /// order.
    #[must_use]
    pub fn fields(&self) -> &[FieldShape] {
        &self.fields
    }

    /// Returns a sample of the rules, or made-up rules with the same masks. The
    /// sample has at most 8,192 rules. It may have more or fewer rules than the
    /// shape.
    #[must_use]
    pub fn sample(&self) -> &RuleSet {
        &self.sample
    }

    /// Returns the number of aligned groups of sixteen consecutive ids with at
    /// least one rule.
    #[must_use]
    pub fn id_groups(&self) -> usize {
        self.id_groups
    }
}

/// Returns the indices of the rules that [`Shape::of`] samples from `rules`
/// rules.
pub(crate) fn sample_of(rules: usize) -> impl Iterator<Item = u32> {
    let count = rules.min(SAMPLE_RULES);
    let indices = (0..count).map(move |number| number * rules / count);
    indices.map(|index| u32::try_from(index).expect("at most 2^32 rules"))
}

/// Returns a copy of at most `count` of the rules, evenly spaced.
pub(crate) fn some_of(rules: &RuleSet, count: usize) -> RuleSet {
    let mut sample = RuleSet::new(rules.schema());
    let count = count.min(rules.len());
    sample.reserve(count);
    for number in 0..count {
        let rule = rules.rule(number * rules.len() / count);
        sample.push(rule).expect("ids of a rule set differ");
    }
    sample
}

/// Returns a sample of rules with random values, for tuples whose rules do not
/// exist.
fn made_up(schema: &Arc<Schema>, tuples: &[Tuple], rules: usize) -> RuleSet {
    let mut sample = RuleSet::new(schema);
    let count = rules.min(SAMPLE_RULES);
    let mut tuples = tuples.iter().enumerate();
    let (mut first, mut current) = (0, None::<(usize, &Tuple)>);
    for number in 0..count {
        let index = number * rules / count;
        while current.is_none_or(|(_, tuple)| index >= first + tuple.rules) {
            first += current.map_or(0, |(_, tuple)| tuple.rules);
            current = tuples.next();
            assert!(current.is_some(), "each rule has a tuple");
        }
        let (tuple_number, tuple) = current.expect("each rule has a tuple");
        let mut state = (tuple_number as u64) << 32 ^ ((index - first) % tuple.keys) as u64;
        let fields = schema.field_ids().map(|id| {
            let mask = schema.placement(id).get(&tuple.mask);
            let value = u128::from(splitmix(&mut state)) << 64 | u128::from(splitmix(&mut state));
            random_match(schema.field(id), mask, value)
        });
        let fields: Vec<FieldMatch> = fields.collect();
        let priority = Priority(u32::MAX - place_among_all(tuple, index - first, rules));
        let added = sample.add(RuleId::from_index(number), priority, ActionId(0), &fields);
        added.expect("matches that fit the schema");
    }
    sample
}

/// Returns the position of a tuple's rule among all rules, best first. The
/// tuple's other rules are assumed to be evenly spaced between its best rule
/// and the end.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // up to 2^31
fn place_among_all(tuple: &Tuple, number: usize, rules: usize) -> u32 {
    let worse_share = 1.0 - tuple.best;
    let share = tuple.best + worse_share * number as f64 / tuple.rules as f64;
    (share * (rules as f64).min(2e9)) as u32
}

/// Returns a match of `value`. A ternary field compares the bits of the mask, a
/// prefix or range field the leading bits of the mask. An exact field compares
/// all bits if the mask has all, otherwise none.
fn random_match(field: &Field, mask: u128, value: u128) -> FieldMatch {
    let width = field.width();
    let length = (mask << (128 - width)).leading_ones().min(width);
    let prefix = prefix_mask(width, length);
    match field.kind() {
        _ if mask == 0 => FieldMatch::Any,
        MatchKind::Exact if length < width => FieldMatch::Any,
        MatchKind::Exact => FieldMatch::Exact(value & prefix),
        MatchKind::Prefix | MatchKind::Range => FieldMatch::Prefix {
            value: value & prefix,
            length,
        },
        MatchKind::Ternary => FieldMatch::Ternary {
            value: value & mask,
            mask,
        },
    }
}

impl FieldShape {
    /// Counts a rule's match of a field, unless the same match was counted
    /// before.
    #[allow(clippy::cast_possible_truncation)] // two halves
    fn count(&mut self, rule: &RuleRef<'_>, field: FieldId, seen: &mut Seen) {
        let schema = rule.schema();
        let mask = schema.placement(field).get(rule.mask());
        let (low, high) = rule.ends(field);
        let max_value = schema.field(field).max_value();
        if (low, high) == (0, max_value) && mask == 0 {
            return;
        }
        let numbers = [low, high, mask].into_iter();
        let words = numbers.flat_map(|number| [number as u64, (number >> 64) as u64]);
        if !seen.is_new(field.index() as u64, words) {
            return;
        }
        let free = max_value & !mask;
        let is_prefix = free & free.wrapping_add(1) == 0 && high == low | free;
        *(if is_prefix {
            &mut self.prefixes
        } else {
            &mut self.ranges
        }) += 1;
    }
}

/// The set of values seen before: one bit for each hash.
struct Seen {
    bits: Vec<u64>,
}

impl Seen {
    fn room_for(values: usize) -> Seen {
        let words = (values / 8).next_power_of_two().max(16);
        Seen {
            bits: vec![0; words],
        }
    }

    /// Adds words and returns true if they were not seen before.
    fn is_new(&mut self, first: u64, words: impl Iterator<Item = u64>) -> bool {
        let mut state = first;
        let mut hash = splitmix(&mut state);
        for word in words {
            state ^= word;
            hash = splitmix(&mut state) ^ hash.rotate_left(5);
        }
        let last = self.bits.len() - 1;
        let word = &mut self.bits[whole_bits(hash >> 6) & last];
        let bit = 1 << (hash & 63);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

/// Converts a hash to an index; drops the high bits on 32-bit machines.
#[allow(clippy::cast_possible_truncation)]
fn whole_bits(hash: u64) -> usize {
    hash as usize
}

/// Converts an estimate to a count, rounded down; 0 if it is negative.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // counts
#[must_use]
pub fn whole(count: f64) -> usize {
    count.max(0.0) as usize
}

/// Converts an estimate in nanoseconds to a time of at least 1 ns.
#[must_use]
pub fn nanoseconds(ns: f64) -> Duration {
    Duration::from_secs_f64(ns.clamp(1.0, 1e18) / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId};
    use crate::model::schema::MatchKind;

    fn host(value: u128) -> FieldMatch {
        FieldMatch::Exact(value)
    }

    /// Returns sixty pairs of hosts, twenty of them twice, and a wildcard rule.
    fn rules() -> RuleSet {
        let schema = Schema::ipv4_5tuple();
        let mut rules = RuleSet::new(&schema);
        let mut add = |id: u32, fields: [FieldMatch; 5]| {
            let priority = Priority(1000 - id);
            rules
                .add(RuleId::new(id).unwrap(), priority, ActionId(0), &fields)
                .unwrap();
        };
        let any = FieldMatch::Any;
        for number in 0..60_u32 {
            let pair = u128::from(number % 40);
            add(number, [host(pair), host(pair), any, any, any]);
        }
        add(990, [any; 5]);
        rules
    }

    #[test]
    fn rules_are_measured() {
        let shape = Shape::of(&rules());
        assert_eq!(shape.rules(), 61);
        let [pairs, world] = shape.tuples() else {
            panic!("{:?}", shape.tuples());
        };
        assert_eq!((pairs.rules, world.rules, world.keys), (60, 1, 1));
        assert!((36..=40).contains(&pairs.keys), "{} keys", pairs.keys);
        assert_eq!(pairs.best, 0.0);
        assert!((world.best - 60.0 / 61.0).abs() < 1e-9);
        assert_eq!(shape.id_groups(), 5);
        let fields = shape.fields().iter();
        let fields: Vec<_> = fields.map(|f| (f.prefixes, f.ranges)).collect();
        assert_eq!(fields, [(40, 0), (40, 0), (0, 0), (0, 0), (0, 0)]);
        let lengths = Tuple::of_lengths(shape.schema(), &[32, 32, 0, 0, 0], 1);
        assert_eq!(pairs.mask, lengths.mask);
    }

    /// Prefixes are counted once, separately from ranges and masks with holes.
    #[test]
    fn matches_of_fields_are_measured_by_kind() {
        let field = |name| Field::new(name, 16, MatchKind::Range);
        let schema = Schema::new("two", vec![field("a"), field("b")]).unwrap();
        let any = FieldMatch::Any;
        let prefix = |value| FieldMatch::Prefix { value, length: 8 };
        let range = |low, high| FieldMatch::Range { low, high };
        let holes = FieldMatch::Ternary {
            value: 0x0101,
            mask: 0x0f0f,
        };
        let matches = [
            [any, any],
            [prefix(0x1200), range(0, 0xffff)],
            [range(0x1200, 0x12ff), range(0, 0xfffe)],
            [prefix(0x1300), holes],
            [range(0, 0x7fff), holes],
            [host(5), any],
        ];
        let mut rules = RuleSet::new(&schema);
        for (number, matches) in matches.iter().enumerate() {
            let id = RuleId::from_index(number);
            rules.add(id, Priority(1), ActionId(0), matches).unwrap();
        }
        let shape = Shape::of(&rules);
        let counts = |prefixes, ranges| FieldShape { prefixes, ranges };
        assert_eq!(shape.fields(), [counts(4, 0), counts(0, 2)]);
        let scaled = shape.with_rules(60);
        assert_eq!(scaled.fields(), [counts(40, 0), counts(0, 20)]);
        // Without rules, a tuple's bits and keys limit the number.
        let tuples = vec![
            Tuple::of_lengths(&schema, &[16, 2], 1000),
            Tuple::of_lengths(&schema, &[0, 16], 50),
        ];
        let made_up = Shape::new(&schema, tuples);
        assert_eq!(made_up.fields(), [counts(1000, 0), counts(54, 0)]);
    }

    /// Samples are evenly spaced, also for a given sample.
    #[test]
    fn samples_are_of_all_parts_of_a_set() {
        let rules = rules();
        let shape = Shape::of(&rules);
        let ids = |rules: &RuleSet| -> Vec<RuleId> { rules.iter().map(|rule| rule.id()).collect() };
        assert_eq!(ids(shape.sample()), ids(&rules));
        let small_sample = some_of(shape.with_rules(1000).sample(), 4);
        assert_eq!(ids(&small_sample), [0, 15, 30, 45].map(RuleId::from_index));
        let schema = rules.schema();
        let mut large_set = RuleSet::new(schema);
        for number in 0..10_000 {
            let id = RuleId::from_index(number);
            let fields = [FieldMatch::Any; 5];
            large_set
                .add(id, Priority(1), ActionId(0), &fields)
                .unwrap();
        }
        let sample = Shape::of(&large_set).sample().clone();
        let last = sample.rule(SAMPLE_RULES - 1).id().index();
        assert_eq!(sample.len(), SAMPLE_RULES);
        assert!((9_990..10_000).contains(&last), "{last}");
        let indices: Vec<RuleId> = sample_of(large_set.len())
            .map(|index| large_set.rule(index as usize).id())
            .collect();
        assert_eq!(indices, ids(&sample));
        let given = shape.with_sample(&large_set);
        assert_eq!(ids(given.sample()), ids(&sample));
    }

    /// Made-up rules have the tuples' masks, in proportion, and the same number
    /// of values.
    #[test]
    fn made_up_samples_have_the_tuples() {
        let schema = Schema::openflow15();
        let fields = schema.fields().len();
        let lengths = |number: usize| {
            let widths = schema.fields().iter().enumerate();
            let lengths =
                widths.map(|(index, field)| if index == number { field.width() } else { 0 });
            lengths.collect::<Vec<u32>>()
        };
        let tuples = (0..fields).map(|field| Tuple {
            keys: 10,
            ..Tuple::of_lengths(&schema, &lengths(field), 1000)
        });
        let shape = Shape::new(&schema, tuples.collect());
        assert_eq!(shape.sample().len(), SAMPLE_RULES);
        let measured = Shape::of(shape.sample());
        assert_eq!(measured.tuples().len(), fields);
        for (tuple, original) in measured.tuples().iter().zip(shape.tuples()) {
            let share = SAMPLE_RULES / fields;
            assert!(tuple.rules.abs_diff(share) <= 1, "{} rules", tuple.rules);
            assert!((2..=10).contains(&tuple.keys), "{} keys", tuple.keys);
            assert!(shape.tuples().iter().any(|other| other.mask == tuple.mask));
            assert_eq!(original.rules, 1000);
        }
    }

    #[test]
    fn shapes_are_scaled() {
        let shape = Shape::of(&rules());
        for count in [0, 1, 2, 61, 1000, 1_000_000] {
            let scaled = shape.with_rules(count);
            assert_eq!(scaled.rules(), count);
            let sum: usize = scaled.tuples().iter().map(|tuple| tuple.rules).sum();
            assert_eq!(sum, count);
            assert!(
                scaled
                    .tuples()
                    .iter()
                    .all(|tuple| tuple.keys <= tuple.rules)
            );
            assert!(scaled.id_groups() <= count);
        }
        let unscaled = shape.with_rules(61);
        assert_eq!(unscaled.tuples(), shape.tuples());
        let million = shape.with_rules(1_000_000);
        assert!(million.tuples()[0].rules > 900_000);
        let none = Shape::of(&RuleSet::new(&Schema::openflow15()));
        assert_eq!(none.rules(), 0);
        let ten_rules = none.with_rules(10);
        assert_eq!((ten_rules.rules(), ten_rules.tuples().len()), (10, 1));
    }

    #[test]
    fn tuples_without_rules_are_left_out() {
        let schema = Schema::ipv4_5tuple();
        let tuple = |length, rules| Tuple::of_lengths(&schema, &[length, 0, 0, 0, 0], rules);
        let shape = Shape::new(&schema, vec![tuple(8, 0), tuple(16, 3), tuple(24, 5)]);
        let rules: Vec<usize> = shape.tuples().iter().map(|tuple| tuple.rules).collect();
        assert_eq!(rules, [5, 3]);
    }

    #[test]
    fn values_are_counted() {
        for count in [10_u64, 1000, 100_000] {
            let mut seen = Seen::room_for(whole(count as f64));
            let numbers = (0..count).chain(0..count);
            let new = numbers.filter(|&n| seen.is_new(7, [n, n << 40].into_iter()));
            let share = new.count() as f64 / count as f64;
            assert!((0.9..=1.0).contains(&share), "{share} of {count}");
        }
    }
}
