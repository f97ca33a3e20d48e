//! What lookups meet, found out with engines over a few of the rules.
//!
//! How many tables a lookup probes and how many rules it compares depends on how
//! rules overlap and on their values, which no simple count of a shape says. So the
//! engine is built over the shape's sample, headers of its rules are looked up step
//! by step, and what they meet is counted. A sample of fewer rules is looked at as
//! well, and counts are extrapolated to all rules along the two.
//!
//! Headers are corners of the rules, each rule as likely as the other, as
//! ClassBench draws them.

#![allow(clippy::cast_precision_loss)] // estimates

use crate::classifier::NoProgress;
use crate::engine::EngineSpec;
use crate::error::BuildError;
use crate::estimate::{Shape, some_of};
use crate::key::KeyVec;
use crate::limits::Limits;
use crate::machine::Work;
use crate::rule::RuleRef;
use crate::ruleset::RuleSet;
use crate::schema::Schema;
use crate::seed::splitmix;

/// The smaller of two samples has this share of the rules of the larger one.
const SHARE: usize = 4;

/// The most rules of a sample over which trees are built.
const IN_A_TREE: usize = 4096;

/// Headers that are looked up. The counts of 512 are within a tenth of those of
/// all, mostly.
const HEADERS: usize = 512;

/// The least and the greatest power of the number of rules with which what lookups
/// meet grows beyond the sample: what is extrapolated further than that is noise of
/// the samples, mostly. Chosen by what engines of 10k and 30k rules met.
pub(in crate::engine) type Growth = [f64; 2];

/// It may grow as the number of rules, such as what a scan compares.
pub(in crate::engine) const FREE: Growth = [-0.2, 1.0];

/// What a lookup meets, in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::engine) struct Met {
    /// Tables probed, or nodes passed.
    pub(in crate::engine) probes: f64,
    /// Rules compared.
    pub(in crate::engine) compared: f64,
}

impl Met {
    /// What lookups meet in an engine over all rules of a shape.
    ///
    /// # Errors
    /// Those of building over the sample.
    pub(in crate::engine) fn of(
        spec: &EngineSpec,
        shape: &Shape,
        growth: Growth,
    ) -> Result<Met, BuildError> {
        Met::of_some(spec, shape, usize::MAX, growth)
    }

    /// The same for a decision tree, whose building takes longer, so there are fewer
    /// rules in the sample.
    ///
    /// # Errors
    /// Those of building over the sample.
    pub(in crate::engine) fn of_tree(spec: &EngineSpec, shape: &Shape) -> Result<Met, BuildError> {
        Met::of_some(spec, shape, IN_A_TREE, FREE)
    }

    fn of_some(
        spec: &EngineSpec,
        shape: &Shape,
        most: usize,
        growth: Growth,
    ) -> Result<Met, BuildError> {
        let rules = shape.rules();
        let sample = some_of(shape.sample(), rules.min(most));
        let large = Met::over(spec, &sample)?;
        if sample.len() >= rules || sample.len() < 2 * SHARE {
            return Ok(large);
        }
        let few = some_of(&sample, sample.len() / SHARE);
        let small = Met::over(spec, &few)?;
        let step = (sample.len() as f64 / few.len() as f64).ln();
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

    /// Builds over rules, and looks headers of theirs up.
    fn over(spec: &EngineSpec, rules: &RuleSet) -> Result<Met, BuildError> {
        let built = spec.build(rules, &Limits::default(), &mut NoProgress)?;
        let mut met = Met::default();
        if rules.is_empty() {
            return Ok(met);
        }
        let headers = HEADERS.min(4 * rules.len());
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

/// What meeting things costs: instructions and lines of cache. They are fitted to
/// measurements (`bench/README.md`), which do not tell instructions from branches
/// that are mispredicted, so how these share the time is assumed.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Prices {
    /// Instructions of a lookup, whatever it meets.
    pub(in crate::engine) lookup: f64,
    /// Of a table that is probed, or a node.
    pub(in crate::engine) probe: f64,
    /// Of that, for each doubling of the number of rules.
    pub(in crate::engine) probe_doubling: f64,
    /// Of that, for each word of a key beyond two.
    pub(in crate::engine) probe_word: f64,
    /// Of a rule that is compared.
    pub(in crate::engine) compare: f64,
    /// Of that, for each word of a rule beyond five.
    pub(in crate::engine) compare_word: f64,
    /// Branches of a lookup that are mispredicted.
    pub(in crate::engine) mispredictions: f64,
    /// Lines that are read whatever a lookup meets.
    pub(in crate::engine) lines: f64,
    /// Lines that are read for a probe.
    pub(in crate::engine) probe_lines: f64,
}

impl Prices {
    /// Nothing costs anything.
    pub(in crate::engine) const NONE: Prices = Prices {
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

    /// The work of a lookup among `rules` rules, reads left out.
    fn computing(&self, met: &Met, schema: &Schema, rules: usize) -> Work {
        let more = |words: usize, few: usize| words.saturating_sub(few) as f64;
        let (key, rule) = (more(schema.key_words(), 2), more(schema.rule_words(), 5));
        let doublings = (rules.max(1) as f64).log2();
        let probe = self.probe + self.probe_doubling * doublings + self.probe_word * key;
        let compare = self.compare + self.compare_word * rule;
        Work::of(self.lookup + met.probes * probe + met.compared * compare)
            .mispredicting(self.mispredictions)
    }

    /// The work of a header of a batch: lines of `bytes` bytes are read together
    /// with those of other headers.
    pub(in crate::engine) fn batch(&self, met: &Met, shape: &Shape, bytes: usize) -> Work {
        self.batch_among(met, shape.schema(), shape.rules(), bytes)
    }

    /// The same among `rules` rules.
    pub(in crate::engine) fn batch_among(
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

    /// The work of a header that is looked up alone. Tables are probed while others
    /// are waited for; nothing else is done ahead.
    pub(in crate::engine) fn single(&self, met: &Met, shape: &Shape, bytes: usize) -> Work {
        self.single_among(met, shape.schema(), shape.rules(), bytes)
    }

    /// The same among `rules` rules.
    pub(in crate::engine) fn single_among(
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

/// Headers that are corners of rules, each rule as likely as the other; none of no
/// rules.
pub(super) fn corners(rules: &RuleSet, count: usize) -> KeyVec {
    let mut keys = KeyVec::new(rules.schema());
    let count = if rules.is_empty() { 0 } else { count };
    let mut state = 0;
    let mut order = 0;
    for _ in 0..count {
        let at = (u128::from(splitmix(&mut order)) * rules.len() as u128) >> 64;
        let rule = rules.rule(usize::try_from(at).expect("the index of a rule"));
        let corner = corner(&rule, &mut state);
        keys.push(&corner).expect("a value for each field");
    }
    keys
}

/// A header of a rule, which has the lowest or the highest value in each field.
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
    use crate::rule::Rule;

    /// Pairs of hosts, which differ.
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

    /// A scan compares half of the rules in the mean, also of more than the sample
    /// has; in a hash table a rule is found at once.
    #[test]
    fn lookups_meet_what_they_would_among_all_rules() {
        for count in [100, 1000, 10_000] {
            let shape = pairs(count);
            let of = |name| Met::of(&EngineSpec::named(name).unwrap(), &shape, FREE).unwrap();
            let (scan, hash) = (of("linear"), of("tss"));
            let half = f64::from(count) / 2.0;
            let one = |count: f64| (count - 1.0).abs() < 1e-9;
            assert!(one(scan.probes), "{scan:?} of {count}");
            assert!(
                (scan.compared / half - 1.0).abs() < 0.2,
                "{scan:?} of {count}"
            );
            assert!(
                one(hash.probes) && one(hash.compared),
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

    /// What costs nothing in a batch costs nothing alone, and more of anything
    /// costs more.
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
