//! Generated header traces for a policy.
//!
//! | recipe | headers | times and flows |
//! |---|---|---|
//! | [`TrafficRecipe::Rules`] | corners of rules, all rules equally likely, in bursts, as in ClassBench | – |
//! | [`TrafficRecipe::Zipf`] | a fixed number of flows, few of them heavy | flows |
//! | [`TrafficRecipe::Flows`] | flows that begin, send trains of packets and end | both |
//! | [`TrafficRecipe::Locality`] | packets of IPv4 flows as on a backbone link, whatever the rules | both |
//! | [`TrafficRecipe::Corners`] | each field at its ends and one step outside | – |
//! | [`TrafficRecipe::Misses`] | headers that no rule matches | – |
//! | [`TrafficRecipe::Random`] | any header, all equally likely | – |
//! | [`TrafficRecipe::OneBucket`] | points of the rule with the most expensive lookup | – |
//! | [`TrafficRecipe::Worst`] | headers with the most expensive lookups | – |
//!
//! To measure caches without a policy, use the stream of packets of [`locality`].
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
//! The same recipe for the same policy gives the same trace on every machine. The last
//! two recipes depend on the engine as well.
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
use locality::LocalityModel;

use crate::generate::draw::{Choice, Draw, whole};
use crate::generate::{GenerateError, Steps};

/// The kind of headers to generate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrafficRecipe {
    /// A random corner of a random rule, sent several times in a row. The number of
    /// copies is Pareto distributed: the smallest whole number above `scale / u^(1 /
    /// shape)` for a uniform `u`. If the scale is 0, each corner is sent once.
    Rules {
        /// The tail index of bursts: the smaller, the longer the longest bursts.
        shape: f64,
        /// The scale of bursts.
        scale: f64,
    },
    /// Flows that are points inside rules; the frequency of the flow with rank `k` is
    /// proportional to `1 / k^alpha`.
    Zipf {
        /// The number of flows.
        flows: usize,
        /// 0: all flows are equally frequent; 1: as on the Internet; above 1: fewer
        /// flows make up most packets.
        alpha: f64,
    },
    /// Flows over time.
    Flows(FlowModel),
    /// Packets of IPv4 flows with locality: batches with idle times between them, and few
    /// flows that have most of the packets. The headers do not depend on the rules.
    Locality(LocalityModel),
    /// For each rule and each of its fields: the field's lowest and highest value and
    /// one step outside of each, at a random corner of the other fields.
    Corners,
    /// Headers that no rule matches.
    Misses {
        /// The maximum number of candidates in a row without a miss.
        tries: usize,
    },
    /// Uniformly random headers.
    Random,
    /// Points of the one rule whose lookup is the most expensive for an engine. Needs
    /// the classifier.
    OneBucket {
        /// The number of candidate headers in the search.
        candidates: usize,
    },
    /// The headers that are the most expensive for an engine. Needs the classifier.
    Worst {
        /// The number of candidate headers; the most expensive 64th of them is kept.
        candidates: usize,
    },
}

/// The default number of candidates in the search for expensive headers.
pub const CANDIDATES: usize = 20_000;

impl TrafficRecipe {
    /// Returns the recipe of ClassBench's traces: corners of rules in short bursts.
    #[must_use]
    pub fn classbench() -> TrafficRecipe {
        TrafficRecipe::Rules {
            shape: 1.0,
            scale: 0.1,
        }
    }

    /// Returns a recipe of corners of rules without bursts.
    #[must_use]
    pub fn uniform() -> TrafficRecipe {
        TrafficRecipe::Rules {
            shape: 1.0,
            scale: 0.0,
        }
    }
}

/// The number of headers and the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrafficConfig {
    /// The number of headers.
    pub headers: usize,
    /// The seed of the random numbers.
    pub seed: u64,
}

impl TrafficConfig {
    /// Creates a configuration of `headers` headers.
    #[must_use]
    pub const fn new(headers: usize, seed: u64) -> TrafficConfig {
        TrafficConfig { headers, seed }
    }
}

/// A trace with times and flows of its packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The headers.
    pub trace: PolicyTrace,
    /// The send time of each header, in nanoseconds from the start, never decreasing;
    /// empty if the recipe has no times.
    pub timestamps: Vec<u64>,
    /// The flow of each header; empty if the recipe has no flows.
    pub flows: Vec<u32>,
}

/// A reason why traffic cannot be generated.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// A parameter is out of its bounds.
    #[error("{parameter} is {found}; expected {expected}")]
    BadParameter {
        /// The parameter's name.
        parameter: &'static str,
        /// Its value.
        found: String,
        /// The allowed values.
        expected: &'static str,
    },
    /// The recipe needs rules, and the policy has none.
    #[error("the policy has no rules to make headers from; random headers need none")]
    NoRules,
    /// The recipe makes headers of `ipv4-5tuple`, and no part of the policy has this schema.
    #[error(
        "traffic with locality has headers of the schema ipv4-5tuple, and no part of the rules has \
         this schema"
    )]
    NoIpv4,
    /// The recipe needs a classifier, and there is none.
    #[error("headers that are hard for an engine need a classifier of that engine")]
    NoClassifier,
    /// The recipe asks for misses, but every header matches.
    #[error(
        "rule {rule} matches every header, so no header can miss; remove the rule to get misses"
    )]
    NoMisses {
        /// The id of a rule that matches every header.
        rule: u32,
    },
    /// No miss was found within the number of tries.
    #[error(
        "found only {found} of {wanted} headers that no rule matches: {tries} tries in a row hit a \
         rule; the rules cover nearly everything"
    )]
    RareMisses {
        /// The number of misses found.
        found: usize,
        /// The number of misses requested.
        wanted: usize,
        /// The number of tries without success.
        tries: usize,
    },
    /// The progress callback cancelled the work.
    #[error("stopped while {stage}, at {done} of {total}")]
    Stopped {
        /// The current stage.
        stage: &'static str,
        /// The number of steps done.
        done: usize,
        /// The total number of steps.
        total: usize,
    },
}

impl From<GenerateError> for TrafficError {
    /// Only [`GenerateError::Stopped`] is expected here.
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

/// The stage's name for the progress callback.
const STAGE: &str = "making headers";

/// Generates headers for a policy.
///
/// A classifier of the same policy makes the search for misses fast; without a
/// classifier the rules are scanned. [`TrafficRecipe::OneBucket`] and
/// [`TrafficRecipe::Worst`] search for headers that are expensive for the classifier.
/// The other recipes do not need it.
///
/// # Errors
/// [`TrafficError`] if a parameter is out of bounds, the policy has no rules that the
/// recipe could start from, there are no misses, a required classifier is missing, or
/// the progress callback cancels.
///
/// # Panics
/// If the classifier's parts are not the parts of the policy.
pub fn traffic(
    policy: &Policy,
    recipe: &TrafficRecipe,
    config: &TrafficConfig,
    classifier: Option<&PolicyClassifier>,
    progress: &mut dyn Progress,
) -> Result<Traffic, TrafficError> {
    let mut maker = Maker::new(policy, config.seed);
    let mut steps = Steps::new(STAGE, config.headers, progress);
    let needs_rules = !matches!(
        recipe,
        TrafficRecipe::Random | TrafficRecipe::Misses { .. } | TrafficRecipe::Locality(_)
    );
    if needs_rules && policy.is_empty() && config.headers > 0 {
        return Err(TrafficError::NoRules);
    }
    match recipe {
        &TrafficRecipe::Rules { shape, scale } => {
            check("the shape of bursts", shape, f64::MIN_POSITIVE)?;
            check("the scale of bursts", scale, 0.0)?;
            while maker.made.trace.len() < config.headers {
                let missing_headers = config.headers - maker.made.trace.len();
                let (part, rule) = maker.rule();
                maker.corner(&rule);
                let copies = match scale > 0.0 {
                    true => whole(maker.draw.pareto(shape, scale).ceil(), missing_headers),
                    false => 1,
                };
                let copies = copies.clamp(1, missing_headers);
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
        TrafficRecipe::Locality(model) => {
            locality::make(&mut maker, model, config, &mut steps)?;
        }
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

fn check(parameter: &'static str, value: f64, minimum: f64) -> Result<(), TrafficError> {
    if value.is_finite() && value >= minimum {
        return Ok(());
    }
    Err(TrafficError::BadParameter {
        parameter,
        found: value.to_string(),
        expected: if minimum > 0.0 {
            "a number above 0"
        } else {
            "a number of at least 0"
        },
    })
}

/// The generator's state.
struct Maker<'a> {
    policy: &'a Policy,
    draw: Draw,
    /// The values of the current header.
    values: Vec<u128>,
    made: Traffic,
}

/// The headers of flows: part and key.
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

    /// Returns a random rule, in a random part among its parts.
    fn rule(&mut self) -> (PartId, RuleRef<'a>) {
        let position = self.draw.below(self.policy.len());
        self.rule_at(position)
    }

    /// Returns the rule at a position, in a random part among its parts.
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
                // In a prefix or mask, bits that differ between `low` and `high` are
                // free. This holds for a range field with a mask, too.
                let free = low ^ high;
                low | (self.draw.up_to(field.max_value()) & free)
            };
            self.values.push(value);
        }
    }

    /// Sets the header to random values.
    fn random(&mut self, part: PartId) {
        self.values.clear();
        for field in self.policy.part(part).schema().fields() {
            self.values.push(self.draw.up_to(field.max_value()));
        }
    }

    /// Moves one field of the header just outside of a rule, below or above it. If
    /// there is no value outside on that side, the field stays at the end of the range.
    fn step_out(&mut self, rule: &RuleRef<'_>, id: FieldId, up: bool) {
        let field = rule.schema().field(id);
        let (low, high) = rule.ends(id);
        let value = &mut self.values[id.index()];
        let masked = matches!(rule.field(id), FieldMatch::Ternary { .. });
        if masked || field.kind() == MatchKind::Ternary {
            // The neighbours of a mask differ in one bit of the mask.
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

    /// Adds a header around a rule; `turn` selects the field and its position.
    fn step_around(&mut self, position: usize, turn: usize) {
        let (part, rule) = self.rule_at(position);
        self.corner(&rule);
        let ids = rule.schema().field_ids();
        // Each rule begins with a different field, so that a small number of headers
        // covers all fields.
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

    /// Adds the current header to the trace.
    fn push(&mut self, part: PartId) {
        self.made
            .trace
            .push(part, &self.values)
            .expect("values are drawn within their fields");
    }

    /// Returns all positions of rules, shuffled.
    fn shuffled(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.policy.len()).collect();
        for index in (1..order.len()).rev() {
            order.swap(index, self.draw.below(index + 1));
        }
        order
    }

    /// Returns a header for each of `flows` flows: points inside random rules.
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

    /// Returns the current header as a key.
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
