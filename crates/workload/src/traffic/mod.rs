//! Header traces made up for a policy.
//!
//! | recipe | headers | times and flows |
//! |---|---|---|
//! | [`TrafficRecipe::Rules`] | corners of rules, all rules equally likely, in bursts, as ClassBench does | – |
//! | [`TrafficRecipe::Zipf`] | a number of flows, few of them heavy | flows |
//! | [`TrafficRecipe::Flows`] | flows that begin, send trains of packets and end | both |
//! | [`TrafficRecipe::Corners`] | each field at its ends and one step outside | – |
//! | [`TrafficRecipe::Misses`] | headers that no rule matches | – |
//! | [`TrafficRecipe::Random`] | any header, all equally likely | – |
//! | [`TrafficRecipe::OneBucket`] | points of the rule whose lookup is the most work | – |
//! | [`TrafficRecipe::Worst`] | headers whose lookup is the most work | – |
//!
//! Caches are measured with [`locality`], a stream of packets that needs no policy.
//!
//! ```
//! use classyard::NoProgress;
//! use classyard_workload::generate::{Family, Profile, Recipe, generate};
//! use classyard_workload::traffic::{TrafficConfig, TrafficRecipe, traffic};
//! use std::sync::Arc;
//!
//! let profile = Arc::new(Profile::built_in("fw1").unwrap().clone());
//! let policy = generate(&Recipe::new(Family::Ipv4(profile), 500, 1), &mut NoProgress)?;
//! let config = TrafficConfig::new(10_000, 1);
//! let made = traffic(&policy, &TrafficRecipe::classbench(), &config, None, &mut NoProgress)?;
//! assert_eq!(made.trace.len(), 10_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same recipe for the same policy gives the same trace on every machine; the
//! last two, for the same engine.
//!
//! # References
//! [TM19] §IV.A and §V.A; D. E. Taylor and J. S. Turner, ClassBench, 2007, §VI.
//!
//! [TM19]: classyard::papers#tm19

use classyard::policy::PartId;
use classyard::{
    FieldId, FieldMatch, MatchKind, Policy, PolicyClassifier, PolicyTrace, Progress, RuleRef,
    Schema,
};
use thiserror::Error;

mod flows;
pub mod locality;
mod misses;
pub mod worst;

pub use flows::{FlowModel, Gap, Size, Train};

use crate::generate::draw::{Choice, Draw, whole};
use crate::generate::{GenerateError, Steps};

/// Which headers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrafficRecipe {
    /// A random corner of a random rule, sent several times in a row. How many
    /// times is Pareto distributed: the smallest whole number above
    /// `scale / u^(1 / shape)` for a uniform `u`; once when the scale is 0.
    Rules {
        /// The tail index of bursts: the smaller, the longer the longest ones.
        shape: f64,
        /// The scale of bursts.
        scale: f64,
    },
    /// Flows that are points inside rules; the one of rank `k` is as frequent as
    /// `1 / k^alpha`.
    Zipf {
        /// The number of flows.
        flows: usize,
        /// 0: all alike; 1: as on the Internet; more: fewer flows count.
        alpha: f64,
    },
    /// Flows over time.
    Flows(FlowModel),
    /// For each rule and each of its fields in turn, the field's lowest and
    /// highest value and one step outside of both, at a corner of the others.
    Corners,
    /// Headers that no rule matches.
    Misses {
        /// The most candidates that are looked at for each header.
        tries: usize,
    },
    /// Uniformly random headers.
    Random,
    /// All headers go where a lookup is the most work for an engine: points of
    /// the one rule whose lookup is the costliest. Needs the classifier.
    OneBucket {
        /// Headers among which the costliest is looked for.
        candidates: usize,
    },
    /// Headers that are the most work for an engine. Needs the classifier.
    Worst {
        /// Headers of which the costliest are kept, one in 64.
        candidates: usize,
    },
}

/// Candidates for the costliest headers, by default.
pub const CANDIDATES: usize = 20_000;

impl TrafficRecipe {
    /// ClassBench's traces: corners of rules in short bursts.
    #[must_use]
    pub fn classbench() -> TrafficRecipe {
        TrafficRecipe::Rules {
            shape: 1.0,
            scale: 0.1,
        }
    }

    /// Corners of rules, one after the other, without bursts.
    #[must_use]
    pub fn uniform() -> TrafficRecipe {
        TrafficRecipe::Rules {
            shape: 1.0,
            scale: 0.0,
        }
    }
}

/// How many headers, and where the random numbers begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrafficConfig {
    /// The number of headers.
    pub headers: usize,
    /// The seed.
    pub seed: u64,
}

impl TrafficConfig {
    /// Creates a configuration of `headers` headers.
    #[must_use]
    pub const fn new(headers: usize, seed: u64) -> TrafficConfig {
        TrafficConfig { headers, seed }
    }
}

/// A trace and what is known of its packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The headers.
    pub trace: PolicyTrace,
    /// When each was sent, in nanoseconds from the start, never decreasing;
    /// empty when the recipe has no times.
    pub timestamps: Vec<u64>,
    /// The flow of each; empty when the recipe has no flows.
    pub flows: Vec<u32>,
}

/// Traffic cannot be generated.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// A parameter is out of its bounds.
    #[error("{parameter} is {found}; expected {expected}")]
    BadParameter {
        /// Which one.
        parameter: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// The recipe is about rules, and there are none.
    #[error("the policy has no rules to make headers from; random headers need none")]
    NoRules,
    /// The recipe is about an engine, and there is no classifier.
    #[error("headers that are hard for an engine need a classifier of that engine")]
    NoClassifier,
    /// Misses are wanted where every header matches.
    #[error(
        "rule {rule} matches every header, so there is none that no rule matches; take it out to \
         get misses"
    )]
    NoMisses {
        /// A rule that does.
        rule: u32,
    },
    /// No miss was found for a header.
    #[error(
        "only {found} of {wanted} headers that no rule matches were found, for {tries} tries in a \
         row hit a rule; the rules cover nearly everything"
    )]
    RareMisses {
        /// How many were found.
        found: usize,
        /// How many were wanted.
        wanted: usize,
        /// The tries without success.
        tries: usize,
    },
    /// The progress observer cancelled the work.
    #[error("stopped while {stage}, at {done} of {total}")]
    Stopped {
        /// What was going on.
        stage: &'static str,
        /// How far it was.
        done: usize,
        /// How far it had to go.
        total: usize,
    },
}

impl From<GenerateError> for TrafficError {
    /// Only stops come from there.
    fn from(error: GenerateError) -> TrafficError {
        match error {
            GenerateError::Stopped { stage, done, total } => {
                TrafficError::Stopped { stage, done, total }
            }
            other => TrafficError::BadParameter {
                parameter: "the recipe",
                found: other.to_string(),
                expected: "another",
            },
        }
    }
}

/// What the progress observer is told.
const STAGE: &str = "making headers";

/// Makes headers for a policy.
///
/// A classifier of the same policy makes the search for misses fast; without
/// one the rules are scanned. [`TrafficRecipe::OneBucket`] and
/// [`TrafficRecipe::Worst`] look for what is hard for it. The other recipes do
/// not need it.
///
/// # Errors
/// [`TrafficError`] when a parameter is out of bounds, the policy has no rules
/// that the recipe could start from, there are no misses, there is no
/// classifier where one is needed, or the observer cancels.
///
/// # Panics
/// When the classifier has not the policy's parts.
pub fn traffic(
    policy: &Policy,
    recipe: &TrafficRecipe,
    config: &TrafficConfig,
    classifier: Option<&PolicyClassifier>,
    progress: &mut dyn Progress,
) -> Result<Traffic, TrafficError> {
    let mut maker = Maker::new(policy, config.seed);
    let mut steps = Steps::new(STAGE, config.headers, progress);
    let needs_rules = !matches!(recipe, TrafficRecipe::Random | TrafficRecipe::Misses { .. });
    if needs_rules && policy.is_empty() && config.headers > 0 {
        return Err(TrafficError::NoRules);
    }
    match recipe {
        &TrafficRecipe::Rules { shape, scale } => {
            check("the shape of bursts", shape, f64::MIN_POSITIVE)?;
            check("the scale of bursts", scale, 0.0)?;
            while maker.made.trace.len() < config.headers {
                let left = config.headers - maker.made.trace.len();
                let (part, rule) = maker.rule();
                maker.corner(&rule);
                let copies = match scale > 0.0 {
                    true => whole(maker.draw.pareto(shape, scale).ceil(), left),
                    false => 1,
                };
                let copies = copies.clamp(1, left);
                for _ in 0..copies {
                    maker.push(part);
                }
                steps.advance(copies)?;
            }
        }
        &TrafficRecipe::Zipf { flows, alpha } => {
            check("alpha", alpha, 0.0)?;
            let headers = maker.flow_headers(flows)?;
            let weights = (1..=flows).map(|rank| libm::pow(rank as f64, -alpha));
            let choice = Choice::new(weights).expect("ranks have weights above 0");
            for _ in 0..config.headers {
                let flow = choice.draw(&mut maker.draw);
                maker.push_flow(&headers, flow);
                steps.advance(1)?;
            }
        }
        TrafficRecipe::Flows(model) => flows::make(&mut maker, model, config.headers, &mut steps)?,
        TrafficRecipe::Corners => {
            let order = maker.shuffled();
            for index in 0..config.headers {
                let rule = order[index % order.len()];
                maker.step_around(rule, index / order.len());
                steps.advance(1)?;
            }
        }
        &TrafficRecipe::Misses { tries } => {
            misses::make(&mut maker, tries, config.headers, classifier, &mut steps)?;
        }
        &TrafficRecipe::OneBucket { candidates } => {
            let classifier = classifier.ok_or(TrafficError::NoClassifier)?;
            worst::one_bucket(
                &mut maker,
                candidates,
                config.headers,
                classifier,
                &mut steps,
            )?;
        }
        &TrafficRecipe::Worst { candidates } => {
            let classifier = classifier.ok_or(TrafficError::NoClassifier)?;
            worst::make(
                &mut maker,
                candidates,
                config.headers,
                classifier,
                &mut steps,
            )?;
        }
        TrafficRecipe::Random => {
            let parts: Vec<PartId> = policy.part_ids().collect();
            for _ in 0..config.headers {
                let part = *maker.draw.of(&parts);
                maker.random(part);
                maker.push(part);
                steps.advance(1)?;
            }
        }
    }
    Ok(maker.made)
}

fn check(parameter: &'static str, value: f64, least: f64) -> Result<(), TrafficError> {
    if value.is_finite() && value >= least {
        return Ok(());
    }
    Err(TrafficError::BadParameter {
        parameter,
        found: value.to_string(),
        expected: if least > 0.0 {
            "a number above 0"
        } else {
            "a number of at least 0"
        },
    })
}

/// Headers in the making.
struct Maker<'a> {
    policy: &'a Policy,
    draw: Draw,
    /// The values of the header at hand.
    values: Vec<u128>,
    made: Traffic,
}

/// Headers of flows: part and key.
type FlowHeaders = Vec<(PartId, Box<[u64]>)>;

impl<'a> Maker<'a> {
    fn new(policy: &'a Policy, seed: u64) -> Maker<'a> {
        Maker {
            policy,
            draw: Draw::new(seed, "traffic"),
            values: Vec::new(),
            made: Traffic {
                trace: PolicyTrace::new(policy.schemas()),
                timestamps: Vec::new(),
                flows: Vec::new(),
            },
        }
    }

    /// A random rule, in one of the parts where it stands.
    fn rule(&mut self) -> (PartId, RuleRef<'a>) {
        let position = self.draw.below(self.policy.len());
        self.rule_at(position)
    }

    /// The rule at a position, in one of the parts where it stands.
    fn rule_at(&mut self, position: usize) -> (PartId, RuleRef<'a>) {
        let id = self.policy.ids()[position];
        let count = self.policy.rule(id).count();
        let pick = if count > 1 { self.draw.below(count) } else { 0 };
        let mut standing = self.policy.rule(id);
        standing.nth(pick).expect("every rule stands in some part")
    }

    /// Sets the header to a random corner of a rule.
    fn corner(&mut self, rule: &RuleRef<'_>) {
        crate::generate::compare::corner(rule.schema(), rule, &mut self.draw, &mut self.values);
    }

    /// Sets the header to a random point inside a rule.
    fn point(&mut self, rule: &RuleRef<'_>) {
        self.values.clear();
        let schema = rule.schema();
        for id in schema.field_ids() {
            let (low, high) = rule.ends(id);
            let field = schema.field(id);
            let masked = matches!(rule.field(id), FieldMatch::Ternary { .. });
            let value = if field.kind() == MatchKind::Range && !masked {
                self.draw.between(low, high)
            } else {
                // Prefixes are masks too: what `high` has more is free. So it is
                // of a range field with a mask.
                let free = low ^ high;
                low | (self.draw.up_to(field.max_value()) & free)
            };
            self.values.push(value);
        }
    }

    /// Sets the header to a random one.
    fn random(&mut self, part: PartId) {
        self.values.clear();
        for field in self.policy.part(part).schema().fields() {
            self.values.push(self.draw.up_to(field.max_value()));
        }
    }

    /// Moves one field of the header just out of a rule, below or above; stays
    /// where there is nothing outside on that side.
    fn step_out(&mut self, rule: &RuleRef<'_>, id: FieldId, up: bool) {
        let field = rule.schema().field(id);
        let (low, high) = rule.ends(id);
        let value = &mut self.values[id.index()];
        let masked = matches!(rule.field(id), FieldMatch::Ternary { .. });
        if masked || field.kind() == MatchKind::Ternary {
            // Its neighbours are those that differ in one bit of the mask.
            let mask = rule.schema().placement(id).get(rule.mask());
            if mask != 0 {
                let lowest = 1 << mask.trailing_zeros();
                let highest = 1 << (127 - mask.leading_zeros());
                *value = low ^ if up { highest } else { lowest };
            }
        } else if up && high < field.max_value() {
            *value = high + 1;
        } else if !up && low > 0 {
            *value = low - 1;
        } else {
            *value = if up { high } else { low };
        }
    }

    /// Adds a header around a rule: the turn says which field stands where.
    fn step_around(&mut self, position: usize, turn: usize) {
        let (part, rule) = self.rule_at(position);
        self.corner(&rule);
        let ids = rule.schema().field_ids();
        // Rules begin with different fields, so that few headers see them all.
        let turn = (turn + position) % (4 * ids.len());
        let id = rule.schema().field_ids().nth(turn / 4).expect("within");
        let (low, high) = rule.ends(id);
        match turn % 4 {
            0 => self.values[id.index()] = low,
            1 => self.values[id.index()] = high,
            2 => self.step_out(&rule, id, false),
            _ => self.step_out(&rule, id, true),
        }
        self.push(part);
    }

    /// Adds the header at hand to the trace.
    fn push(&mut self, part: PartId) {
        self.made
            .trace
            .push(part, &self.values)
            .expect("values are drawn within their fields");
    }

    /// All positions of rules, shuffled.
    fn shuffled(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.policy.len()).collect();
        for left in (1..order.len()).rev() {
            order.swap(left, self.draw.below(left + 1));
        }
        order
    }

    /// A header for each of that many flows: points inside random rules.
    fn flow_headers(&mut self, flows: usize) -> Result<FlowHeaders, TrafficError> {
        if flows == 0 || u32::try_from(flows).is_err() {
            return Err(TrafficError::BadParameter {
                parameter: "the number of flows",
                found: flows.to_string(),
                expected: "1 to 4294967295",
            });
        }
        Ok((0..flows).map(|_| self.flow_header()).collect())
    }

    fn flow_header(&mut self) -> (PartId, Box<[u64]>) {
        let (part, rule) = self.rule();
        self.point(&rule);
        (part, self.key(rule.schema()))
    }

    /// The header at hand as a key.
    fn key(&self, schema: &Schema) -> Box<[u64]> {
        let mut key = vec![0; schema.key_words()];
        for (id, &value) in schema.field_ids().zip(&self.values) {
            schema.placement(id).set(&mut key, value);
        }
        key.into_boxed_slice()
    }

    fn push_flow(&mut self, headers: &FlowHeaders, flow: usize) {
        let (part, key) = &headers[flow];
        self.made.trace.push_key(*part, key);
        let id = u32::try_from(flow).expect("checked before");
        self.made.flows.push(id);
    }
}

#[cfg(test)]
mod tests;
