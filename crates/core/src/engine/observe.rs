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
use crate::rule::RuleRef;
use crate::ruleset::RuleSet;
use crate::seed::splitmix;

/// The smaller of two samples has this share of the rules of the larger one.
const SHARE: usize = 4;

/// Headers that are looked up. The counts of 512 are within a tenth of those of
/// all, mostly.
const HEADERS: usize = 512;

/// The greatest power of the number of rules with which a count grows beyond the
/// sample, and with which it shrinks.
const MOST_POWER: f64 = 0.5;
const LEAST_POWER: f64 = -0.2;

/// What a lookup meets, in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::engine) struct Met {
    /// Tables probed, or nodes passed.
    pub(in crate::engine) probes: f64,
    /// Those of them where any rule was compared.
    pub(in crate::engine) hits: f64,
    /// Rules compared.
    pub(in crate::engine) compared: f64,
    /// Tables that there are.
    pub(in crate::engine) tables: f64,
}

impl Met {
    /// What lookups meet in an engine over all rules of a shape.
    ///
    /// # Errors
    /// Those of building over the sample.
    pub(in crate::engine) fn of(spec: &EngineSpec, shape: &Shape) -> Result<Met, BuildError> {
        let rules = shape.rules();
        let sample = some_of(shape.sample(), rules);
        let large = Met::over(spec, &sample)?;
        if sample.len() >= rules || sample.len() < 2 * SHARE {
            return Ok(large);
        }
        let few = some_of(&sample, sample.len() / SHARE);
        let small = Met::over(spec, &few)?;
        let step = (sample.len() as f64 / few.len() as f64).ln();
        let times = rules as f64 / sample.len() as f64;
        let grown = |from: f64, to: f64| {
            let power = ((to / from).ln() / step).clamp(LEAST_POWER, MOST_POWER);
            to * times.powf(if power.is_nan() { 0.0 } else { power })
        };
        Ok(Met {
            probes: grown(small.probes, large.probes),
            hits: grown(small.hits, large.hits),
            compared: grown(small.compared, large.compared),
            tables: grown(small.tables, large.tables),
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
            met.tables = trace.tables as f64;
            met.probes += trace.probes.len() as f64 * each;
            for probe in &trace.probes {
                met.hits += if probe.compared.is_empty() { 0.0 } else { each };
                met.compared += probe.compared.len() as f64 * each;
            }
        }
        Ok(met)
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
        let at = u128::from(splitmix(&mut order)) * rules.len() as u128 >> 64;
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
