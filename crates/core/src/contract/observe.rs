//! Counts the tables and rules that lookups visit, in engines that are built over samples
//! of the rules.
//!
//! The number of tables that a lookup probes and the number of rules that it compares
//! depend on the rules' values and overlaps. They cannot be computed from the numbers in
//! a shape. So the engine is built over the shape's sample, and the probes and
//! comparisons of lookups are counted. The counts of this sample and of a smaller one are
//! extrapolated to all rules.
//!
//! The headers are corners of rules: in each field, the lowest or the highest value of a
//! rule. Every rule is equally likely, as in ClassBench.

#![allow(clippy::cast_precision_loss)] // estimates

use crate::contract::classifier::NoProgress;
use crate::contract::spec::EngineSpec;
use crate::cost::estimate::{Shape, some_of};
use crate::cost::machine::Work;
use crate::model::error::BuildError;
use crate::model::key::KeyVec;
use crate::model::limits::Limits;
use crate::model::rule::RuleRef;
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::seed::splitmix;

/// The number of rules of the larger sample, divided by the number of the smaller
/// one. Measured in `bench/records/constants.md` (Estimates: samples).
const SAMPLE_RATIO: usize = 4;

/// The largest number of rules in a sample over which trees are built. Measured in
/// `bench/records/constants.md` (Estimates: samples).
const MAX_TREE_SAMPLE: usize = 4096;

/// The number of headers that are looked up. In most cases, the counts of 512 headers
/// differ from the counts of all headers by less than 10 %. Measured in
/// `bench/records/constants.md` (Estimates: samples).
const SAMPLE_HEADERS: usize = 512;

/// The smallest and the largest exponent with which the counts of a lookup may grow with
/// the number of rules. An exponent outside of this interval is mostly noise of the
/// samples, so it is clamped. The bounds were chosen by the counts of engines with 10k
/// and 30k rules (`bench/README.md`, Estimates).
pub(crate) type Growth = [f64; 2];

/// Bounds for counts that may grow up to linearly with the number of rules, such as the
/// comparisons of a scan.
pub(crate) const FREE: Growth = [-0.2, 1.0];

/// Mean counts of a lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Met {
    /// Tables probed, or nodes passed.
    pub(crate) probes: f64,
    /// Rules compared.
    pub(crate) compared: f64,
}

impl Met {
    /// Returns the counts of lookups in an engine over all rules of a shape.
    ///
    /// # Errors
    /// The errors of a build over the sample.
    pub(crate) fn of(spec: &EngineSpec, shape: &Shape, growth: Growth) -> Result<Met, BuildError> {
        Met::of_some(spec, shape, usize::MAX, growth)
    }

    /// Returns the counts of lookups in a decision tree. Trees take longer to build,
    /// so the sample has fewer rules.
    ///
    /// # Errors
    /// The errors of a build over the sample.
    pub(crate) fn of_tree(spec: &EngineSpec, shape: &Shape) -> Result<Met, BuildError> {
        Met::of_some(spec, shape, MAX_TREE_SAMPLE, FREE)
    }

    fn of_some(
        spec: &EngineSpec,
        shape: &Shape,
        max_sample: usize,
        growth: Growth,
    ) -> Result<Met, BuildError> {
        let rules = shape.rules();
        let sample = some_of(shape.sample(), rules.min(max_sample));
        let large = Met::over(spec, &sample)?;
        if sample.len() >= rules || sample.len() < 2 * SAMPLE_RATIO {
            return Ok(large);
        }
        let small_sample = some_of(&sample, sample.len() / SAMPLE_RATIO);
        let small = Met::over(spec, &small_sample)?;
        let step = (sample.len() as f64 / small_sample.len() as f64).ln();
        let times = rules as f64 / sample.len() as f64;
        let grown = |from: f64, to: f64| {
            let power = ((to / from).ln() / step).clamp(growth[0], growth[1]);
            to * times.powf(if power.is_nan() { 0.0 } else { power })
        };
        Ok(Met {
            probes: grown(small.probes, large.probes),
            compared: grown(small.compared, large.compared),
        })
    }

    /// Builds an engine over rules, looks up headers of these rules, and returns the mean
    /// counts.
    fn over(spec: &EngineSpec, rules: &RuleSet) -> Result<Met, BuildError> {
        let built = spec.build(rules, &Limits::default(), &mut NoProgress)?;
        let mut met = Met::default();
        if rules.is_empty() {
            return Ok(met);
        }
        let headers = SAMPLE_HEADERS.min(4 * rules.len());
        let keys = corners(rules, headers);
        let each = 1.0 / headers as f64;
        for number in 0..headers {
            let trace = built.trace(keys.key(number));
            met.probes += trace.probes.len() as f64 * each;
            let compared = trace.probes.iter().map(|probe| probe.compared.len());
            met.compared += compared.sum::<usize>() as f64 * each;
        }
        Ok(met)
    }
}

/// The costs of a lookup, a probe and a comparison, in instructions and cache lines. The
/// numbers are fitted to measurements (`bench/README.md`). The measurements do not
/// separate instructions from mispredicted branches, so the division of time between the
/// two is an assumption.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    /// Fixed instructions of a lookup.
    pub(crate) lookup: f64,
    /// Instructions for a probed table or a visited node.
    pub(crate) probe: f64,
    /// Additional instructions of a probe for each doubling of the number of rules.
    pub(crate) probe_doubling: f64,
    /// Additional instructions of a probe for each word of a key beyond two.
    pub(crate) probe_word: f64,
    /// Instructions for a compared rule.
    pub(crate) compare: f64,
    /// Additional instructions of a comparison for each word of a rule beyond five.
    pub(crate) compare_word: f64,
    /// Mispredicted branches of a lookup.
    pub(crate) mispredictions: f64,
    /// Cache lines that every lookup reads.
    pub(crate) lines: f64,
    /// Cache lines that a probe reads.
    pub(crate) probe_lines: f64,
}

impl Prices {
    /// All costs are zero.
    pub(crate) const NONE: Prices = Prices {
        lookup: 0.0,
        probe: 0.0,
        probe_doubling: 0.0,
        probe_word: 0.0,
        compare: 0.0,
        compare_word: 0.0,
        mispredictions: 0.0,
        lines: 0.0,
        probe_lines: 0.0,
    };

    /// These prices with `factor` times the instructions.
    pub(crate) fn times(self, factor: f64) -> Prices {
        Prices {
            lookup: factor * self.lookup,
            probe: factor * self.probe,
            probe_doubling: factor * self.probe_doubling,
            probe_word: factor * self.probe_word,
            compare: factor * self.compare,
            compare_word: factor * self.compare_word,
            ..self
        }
    }

    /// Returns the work of a lookup among `rules` rules, without memory reads.
    fn computing(&self, met: &Met, schema: &Schema, rules: usize) -> Work {
        let words_beyond = |words: usize, few: usize| words.saturating_sub(few) as f64;
        let (key, rule) = (
            words_beyond(schema.key_words(), 2),
            words_beyond(schema.rule_words(), 5),
        );
        let doublings = (rules.max(1) as f64).log2();
        let probe = self.probe + self.probe_doubling * doublings + self.probe_word * key;
        let compare = self.compare + self.compare_word * rule;
        Work::of(self.lookup + met.probes * probe + met.compared * compare)
            .mispredicting(self.mispredictions)
    }

    /// Returns the work for one header of a batch. Its cache lines are read together with
    /// the cache lines of other headers. `bytes` is the size of the data that lookups
    /// read.
    pub(crate) fn batch(&self, met: &Met, shape: &Shape, bytes: usize) -> Work {
        self.batch_among(met, shape.schema(), shape.rules(), bytes)
    }

    /// Returns the work for one header of a batch, among `rules` rules.
    pub(crate) fn batch_among(
        &self,
        met: &Met,
        schema: &Schema,
        rules: usize,
        bytes: usize,
    ) -> Work {
        let lines = self.lines + met.probes * self.probe_lines;
        self.computing(met, schema, rules)
            .reading_ahead(lines, bytes)
    }

    /// Returns the work of a single lookup. The reads of its probes overlap. Its other
    /// reads are dependent: each waits for the read before it.
    pub(crate) fn single(&self, met: &Met, shape: &Shape, bytes: usize) -> Work {
        self.single_among(met, shape.schema(), shape.rules(), bytes)
    }

    /// Returns the work of a single lookup among `rules` rules.
    pub(crate) fn single_among(
        &self,
        met: &Met,
        schema: &Schema,
        rules: usize,
        bytes: usize,
    ) -> Work {
        self.computing(met, schema, rules)
            .reading(self.lines, bytes)
            .reading_ahead(met.probes * self.probe_lines, bytes)
    }
}

/// Returns `count` headers that are corners of rules, or none if there are no rules.
/// Every rule is equally likely.
pub(crate) fn corners(rules: &RuleSet, count: usize) -> KeyVec {
    let mut keys = KeyVec::new(rules.schema());
    let count = if rules.is_empty() { 0 } else { count };
    let mut state = 0;
    let mut order = 0;
    for _ in 0..count {
        let index = (u128::from(splitmix(&mut order)) * rules.len() as u128) >> 64;
        let rule = rules.rule(usize::try_from(index).expect("the index of a rule"));
        let corner = corner(&rule, &mut state);
        keys.push(&corner).expect("a value for each field");
    }
    keys
}

/// Returns a header that has the lowest or the highest value of a rule in each field.
fn corner(rule: &RuleRef<'_>, state: &mut u64) -> Vec<u128> {
    let bits = splitmix(state);
    let fields = rule.schema().field_ids();
    fields
        .map(|id| {
            let (low, high) = rule.ends(id);
            if bits >> (id.index() % 64) & 1 == 0 {
                low
            } else {
                high
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rule::Rule;

    /// Rules that each match a pair of hosts, all different.
    fn pairs(count: u32) -> Shape {
        let schema = Schema::ipv4_5tuple();
        let mut rules = RuleSet::new(&schema);
        for id in 0..count {
            let host = std::net::Ipv4Addr::from_bits(id.wrapping_mul(0x9e37_79b9));
            let rule = Rule::builder(&schema)
                .id(id)
                .field("src", host)
                .field("dst", host);
            rules.push(rule.build().unwrap().view()).unwrap();
        }
        Shape::of(&rules)
    }

    /// A scan compares half of the rules on average, also for more rules than the
    /// sample has. A hash table finds a rule with one comparison.
    #[test]
    fn lookups_meet_what_they_would_among_all_rules() {
        for count in [100, 1000, 10_000] {
            let shape = pairs(count);
            let counts_of =
                |name| Met::of(&EngineSpec::named(name).unwrap(), &shape, FREE).unwrap();
            let (scan, hash) = (counts_of("linear"), counts_of("tss"));
            let half = f64::from(count) / 2.0;
            let is_one = |count: f64| (count - 1.0).abs() < 1e-9;
            assert!(is_one(scan.probes), "{scan:?} of {count}");
            assert!(
                (scan.compared / half - 1.0).abs() < 0.2,
                "{scan:?} of {count}"
            );
            assert!(
                is_one(hash.probes) && is_one(hash.compared),
                "{hash:?} of {count}"
            );
        }
    }

    #[test]
    fn no_rules_meet_nothing() {
        let shape = pairs(0);
        for spec in EngineSpec::all() {
            let met = Met::of(&spec, &shape, FREE).unwrap();
            assert_eq!(met, Met::default(), "{spec}");
        }
    }

    /// A cost of zero adds nothing to a batch and to a single lookup, and larger
    /// counts cost more.
    #[test]
    fn prices_are_of_what_is_met() {
        let shape = pairs(16);
        let met = Met {
            probes: 3.0,
            compared: 2.0,
        };
        let prices = Prices {
            lookup: 1.0,
            probe: 10.0,
            probe_doubling: 0.5,
            probe_word: 1e9,
            compare: 100.0,
            compare_word: 1e9,
            mispredictions: 1.0,
            lines: 7.0,
            probe_lines: 2.0,
        };
        let expected = Work::of(1.0 + 3.0 * 12.0 + 200.0).mispredicting(1.0);
        let batch = prices.batch(&met, &shape, 640);
        assert_eq!(batch, expected.clone().reading_ahead(13.0, 640));
        let single = prices.single(&met, &shape, 640);
        assert_eq!(single, expected.reading(7.0, 640).reading_ahead(6.0, 640));
    }
}
