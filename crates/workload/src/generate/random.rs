//! Random rules for any schema.
//!
//! # Idea
//! A few random headers are the *anchors*, and each rule belongs to one anchor. A field
//! of a rule is a wildcard with probability `wildcard_share`. Otherwise it admits its
//! anchor's value with probability `overlap`, and else a random value. So the higher
//! the two numbers, the more the rules of an anchor overlap each other. At an overlap
//! of 1, all rules of an anchor match the anchor's header.
//!
//! Rules keep the order of drawing: general rules may hide specific rules, which is
//! useful for tests.

use std::sync::Arc;

use classyard::author::splitmix;
use classyard::{
    ActionId, Field, FieldMatch, MatchKind, Priority, Progress, RuleId, RuleSet, Schema,
};

use super::draw::Draw;
use super::five_tuple::Seen;
use super::{GenerateError, GeneratorConfig, Steps};

/// The parameters of random rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomRules {
    /// The probability that a field is a wildcard.
    pub wildcard_share: f64,
    /// The probability that a field without a wildcard admits the anchor's value.
    pub overlap: f64,
    /// The number of anchors, at least 1.
    pub anchors: usize,
}

impl Default for RandomRules {
    /// Half of the fields are wildcards; most of the other fields admit the value of an
    /// anchor; there are sixteen anchors.
    fn default() -> RandomRules {
        RandomRules {
            wildcard_share: 0.5,
            overlap: 0.8,
            anchors: 16,
        }
    }
}

/// The maximum number of rules drawn for each requested rule.
const TRIES_PER_RULE: usize = 50;

impl RandomRules {
    fn check(&self) -> Result<(), GenerateError> {
        for (parameter, value) in [
            ("the wildcard share", self.wildcard_share),
            ("the overlap", self.overlap),
        ] {
            check_probability(parameter, value)?;
        }
        if self.anchors == 0 {
            return Err(GenerateError::BadParameter {
                parameter: "the number of anchors",
                found: "0".to_owned(),
                expected: "at least 1".to_owned(),
            });
        }
        Ok(())
    }

    /// Returns distinct rules, fewer than requested if the schema has no more. Their
    /// priorities and actions have no meaning yet.
    pub(super) fn generate(
        &self,
        schema: &Arc<Schema>,
        config: &GeneratorConfig,
        progress: &mut dyn Progress,
    ) -> Result<RuleSet, GenerateError> {
        self.check()?;
        let mut draw = Draw::new(config.seed, "random rules");
        let anchors: Vec<Vec<u128>> = (0..self.anchors.min(config.rules))
            .map(|_| {
                let fields = schema.fields().iter();
                fields.map(|field| draw.up_to(field.max_value())).collect()
            })
            .collect();
        let mut steps = Steps::new("drawing rules", config.rules, progress);
        // A rule with the same mixed bits as an earlier rule is drawn again, so no two
        // rules are equal. In very rare cases this also drops a distinct rule, which
        // does no harm.
        let mut seen: Seen<u64> = Seen::default();
        let mut rules = RuleSet::new(schema);
        let mut tries = config.rules.saturating_mul(TRIES_PER_RULE);
        let mut rule = Vec::new();
        while rules.len() < config.rules && tries > 0 {
            tries -= 1;
            let anchor = draw.of(&anchors);
            let fields = schema.fields().iter().zip(anchor);
            rule.clear();
            rule.extend(fields.map(|(field, &value)| self.field(field, value, &mut draw)));
            if seen.insert(mixed(&rule)) {
                let id = RuleId::from_index(rules.len());
                rules
                    .add(id, Priority(0), ActionId(0), &rule)
                    .expect("generated rules fit their schema");
                steps.advance(1)?;
            }
        }
        Ok(rules)
    }

    fn field(&self, field: &Field, anchor: u128, draw: &mut Draw) -> FieldMatch {
        if draw.chance(self.wildcard_share) {
            return FieldMatch::Any;
        }
        let value = if draw.chance(self.overlap) {
            anchor
        } else {
            draw.up_to(field.max_value())
        };
        around(field, value, draw)
    }
}

pub(super) fn check_probability(parameter: &'static str, value: f64) -> Result<(), GenerateError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(GenerateError::BadParameter {
        parameter,
        found: value.to_string(),
        expected: "a number from 0 to 1".to_owned(),
    })
}

/// Returns a hash of a rule that is the same on every machine.
fn mixed(rule: &[FieldMatch]) -> u64 {
    let mut state = 0;
    let mut mix = |number: u128| {
        let low = u64::try_from(number & u128::from(u64::MAX)).expect("masked");
        let high = u64::try_from(number >> 64).expect("shifted");
        for word in [low, high] {
            state ^= word;
            state = splitmix(&mut state);
        }
    };
    for field in rule {
        let (kind, a, b) = match *field {
            FieldMatch::Any => (0, 0, 0),
            FieldMatch::Exact(value) => (1, value, 0),
            FieldMatch::Prefix { value, length } => (2, value, length.into()),
            FieldMatch::Range { low, high } => (3, low, high),
            FieldMatch::Ternary { value, mask } => (4, value, mask),
        };
        mix(kind);
        mix(a);
        mix(b);
    }
    state
}

/// Returns a match of the field's kind that admits `value`; never a wildcard.
fn around(field: &Field, value: u128, draw: &mut Draw) -> FieldMatch {
    let width = field.width();
    let full = field.max_value();
    match field.kind() {
        MatchKind::Exact => FieldMatch::Exact(value),
        MatchKind::Prefix => {
            let length = 1 + u32::try_from(draw.below(width as usize)).expect("at most 128");
            if length == width {
                return FieldMatch::Exact(value);
            }
            let open = full >> length;
            FieldMatch::Prefix {
                value: value & !open,
                length,
            }
        }
        MatchKind::Range => {
            // The reach is a random power of two, so narrow and wide ranges are equally
            // frequent.
            let reach = full >> draw.below(width as usize);
            let low = value - draw.up_to(reach.min(value));
            let high = value + draw.up_to(reach.min(full - value));
            match (low, high) {
                (low, high) if low == high => FieldMatch::Exact(low),
                (0, high) if high == full => FieldMatch::Exact(value),
                (low, high) => FieldMatch::Range { low, high },
            }
        }
        MatchKind::Ternary => {
            // The three masks have a quarter, half and three quarters of the bits.
            let (a, b) = (draw.bits128() & full, draw.bits128() & full);
            let mask = *draw.of(&[a & b, a, a | b]);
            match mask {
                mask if mask == full || mask == 0 => FieldMatch::Exact(value),
                mask => FieldMatch::Ternary {
                    value: value & mask,
                    mask,
                },
            }
        }
    }
}
