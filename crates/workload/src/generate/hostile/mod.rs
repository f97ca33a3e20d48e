//! Rule sets that are hard for classifiers, each in one way.
//!
//! # Idea
//! Engines are fast because rules differ in bits that an index can use. Each of these
//! sets removes one such assumption. No set is aimed at one engine, and all are IPv4
//! five-tuples, so that every engine and every format accepts them.
//!
//! | set | assumption that it removes |
//! |---|---|
//! | [`Hostile::Overlapping`] | few rules match a header: here all rules match one header |
//! | [`Hostile::Ranges`] | fields have exact bits: here are only port ranges over the middle |
//! | [`Hostile::Wildcards`] | most rules test the same fields: here are all 31 choices of fields |
//! | [`Hostile::NestedPrefixes`] | prefixes have few lengths: here are chains of all 33 lengths in both addresses |
//! | [`Hostile::Alike`] | rules differ: here rules differ in one range, or only in priority |
//! | [`Hostile::OneBucket`] | some bits are worth hashing: here all rules agree in all exact bits |
//! | [`Hostile::Corners`] | lookups of most headers end early: here is a grid with holes whose values are all common |
//!
//! Rules are ordered from specific to general, as in sets from profiles. [`updates`]
//! has lists of changes that are hard in the same sense.

use classyard::{FieldMatch, Progress};

use super::draw::Draw;
use super::five_tuple::Seen;
use super::{GenerateError, GeneratorConfig, Steps};

pub mod updates;

/// A kind of hostile rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Hostile {
    /// Wide, staggered prefixes and ranges in some of the fields, all around one
    /// header: every rule overlaps every other rule.
    Overlapping,
    /// Port ranges whose ends share no leading bit; everything else is open.
    Ranges,
    /// Each rule tests some fields for exact values and leaves the other fields open;
    /// the rules cycle through all 31 choices of fields.
    Wildcards,
    /// Prefixes of every length, 0 to 32, along common paths, for source and
    /// destination.
    NestedPrefixes,
    /// Families of rules that differ in one range. Every fourth rule differs from
    /// another rule only in its priority. Only this set may have two rules that match
    /// the same headers.
    Alike,
    /// All rules agree in all bits that are exact in both; they differ only in their
    /// open bits.
    OneBucket,
    /// Exact rules: the product of a few values of each field, with one in eight rules
    /// left out.
    Corners,
}

/// The matches of a five-tuple: source, destination, their ports, protocol.
pub(super) type Matches = [FieldMatch; 5];

/// The maximum number of rules drawn for each requested rule.
const TRIES_PER_RULE: usize = 50;

const MAX_ADDRESS: u128 = u32::MAX as u128;
const MAX_PORT: u128 = u16::MAX as u128;
const MAX_PROTOCOL: u128 = u8::MAX as u128;

impl Hostile {
    /// All sets.
    pub const ALL: [Hostile; 7] = [
        Hostile::Overlapping,
        Hostile::Ranges,
        Hostile::Wildcards,
        Hostile::NestedPrefixes,
        Hostile::Alike,
        Hostile::OneBucket,
        Hostile::Corners,
    ];

    /// Returns the name on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Hostile::Overlapping => "overlapping",
            Hostile::Ranges => "ranges",
            Hostile::Wildcards => "wildcards",
            Hostile::NestedPrefixes => "nested-prefixes",
            Hostile::Alike => "alike",
            Hostile::OneBucket => "one-bucket",
            Hostile::Corners => "corners",
        }
    }

    /// Returns a short description of the rules.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Hostile::Overlapping => "every rule overlaps every other",
            Hostile::Ranges => "port ranges that share no leading bit, everything else open",
            Hostile::Wildcards => "exact values in some fields, all 31 choices of fields",
            Hostile::NestedPrefixes => "prefixes of every length along common paths",
            Hostile::Alike => "rules that differ in one range or in priority alone",
            Hostile::OneBucket => "rules that agree wherever they are exact",
            Hostile::Corners => "a grid of exact values with holes",
        }
    }

    /// Returns the set with the name `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Hostile> {
        Hostile::ALL.into_iter().find(|set| set.name() == name)
    }

    /// Returns the rules from specific to general; fewer than requested if there are
    /// not enough.
    pub(super) fn generate(
        self,
        config: &GeneratorConfig,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Matches>, GenerateError> {
        let mut maker = Maker::new(self, config);
        let mut steps = Steps::new("drawing rules", config.rules, progress);
        let mut seen: Seen<Matches> = Seen::default();
        let mut rules: Vec<Matches> = Vec::new();
        let tries = config.rules.saturating_mul(TRIES_PER_RULE);
        for turn in 0..tries {
            if rules.len() == config.rules {
                break;
            }
            let copies_last = self == Hostile::Alike && rules.len() % 4 == 3;
            let rule = match rules.last() {
                Some(&last) if copies_last => last,
                _ => maker.rule(turn),
            };
            if seen.insert(rule) || copies_last {
                rules.push(rule);
                steps.advance(1)?;
            }
        }
        rules.sort_by_cached_key(openness);
        Ok(rules)
    }
}

/// Returns how much a rule leaves open: the sum over its fields of the logarithm of the
/// number of admitted values, in 1/256 of a bit.
fn openness(rule: &Matches) -> u64 {
    let widths = [32, 32, 16, 16, 8];
    let bits = rule.iter().zip(widths).map(|(field, width)| match *field {
        FieldMatch::Any => 256 * width,
        FieldMatch::Exact(_) => 0,
        FieldMatch::Prefix { length, .. } => 256 * u64::from(32 - length),
        FieldMatch::Range { low, high } => {
            let values = u64::try_from(high - low + 1).expect("ports are small");
            let whole = u64::from(values.ilog2());
            256 * whole + ((256 * values) >> whole) - 256
        }
        FieldMatch::Ternary { .. } => unreachable!("there are none"),
    });
    bits.sum()
}

/// Draws the rules of a set.
struct Maker {
    set: Hostile,
    draw: Draw,
    /// The header that all rules of a set surround.
    anchor: [u128; 5],
    /// Common paths or values of each field.
    common: [Vec<u128>; 5],
    /// The number of families of rules in [`Hostile::Alike`].
    families: usize,
}

impl Maker {
    fn new(set: Hostile, config: &GeneratorConfig) -> Maker {
        let mut draw = Draw::new(config.seed, set.name());
        let maxima = [MAX_ADDRESS, MAX_ADDRESS, MAX_PORT, MAX_PORT, MAX_PROTOCOL];
        let anchor = maxima.map(|max| draw.up_to(max));
        // The number of paths of nested prefixes; each pair of paths has 33 × 33 pairs
        // of lengths.
        let paths = 2 + config.rules / 1000;
        // The number of values per field of a grid that has enough rules after one in
        // eight is left out.
        let mut side = 2;
        while side < 256 && usize::pow(side, 5) / 8 * 7 < config.rules {
            side += 1;
        }
        let count = match set {
            Hostile::Corners => side,
            _ => paths,
        };
        let common = maxima.map(|max| {
            let mut values: Vec<u128> = Vec::new();
            while values.len() < count && values.len() as u128 <= max {
                let value = draw.up_to(max);
                if !values.contains(&value) || values.len() > 200 {
                    values.push(value);
                }
            }
            values
        });
        Maker {
            set,
            draw,
            anchor,
            common,
            families: 1 + config.rules / 4096,
        }
    }

    fn rule(&mut self, turn: usize) -> Matches {
        let [src, dst, sport, dport, proto] = self.anchor;
        match self.set {
            Hostile::Overlapping => {
                let addresses = [src, dst].map(|value| self.any_length(value, 0, 32));
                let ports = [sport, dport].map(|value| self.around(value));
                let proto = self.maybe(FieldMatch::Exact(proto));
                [addresses[0], addresses[1], ports[0], ports[1], proto]
            }
            Hostile::Ranges => {
                let ports = [self.over_middle(), self.over_middle()];
                [
                    FieldMatch::Any,
                    FieldMatch::Any,
                    ports[0],
                    ports[1],
                    FieldMatch::Any,
                ]
            }
            Hostile::Wildcards => {
                let choice = 1 + turn % 31;
                let maxima = [MAX_ADDRESS, MAX_ADDRESS, MAX_PORT, MAX_PORT, MAX_PROTOCOL];
                let mut field = 0;
                maxima.map(|max| {
                    let value = self.draw.up_to(max);
                    let is_tested = choice >> field & 1 != 0;
                    field += 1;
                    if is_tested {
                        FieldMatch::Exact(value)
                    } else {
                        FieldMatch::Any
                    }
                })
            }
            Hostile::NestedPrefixes => {
                let path = |maker: &mut Maker, field: usize| {
                    let path = *maker.draw.of(&maker.common[field]);
                    maker.any_length(path, 0, 32)
                };
                let (src, dst) = (path(self, 0), path(self, 1));
                let port = FieldMatch::Exact(*self.draw.of(&self.common[3][..2]));
                let proto = FieldMatch::Exact(6);
                let (port, proto) = (self.maybe(port), self.maybe(proto));
                [src, dst, FieldMatch::Any, port, proto]
            }
            Hostile::Alike => {
                let family = self.draw.below(self.families) as u128;
                [
                    FieldMatch::Exact(src ^ family),
                    prefix(dst, 24),
                    FieldMatch::Any,
                    self.over_middle(),
                    FieldMatch::Exact(6),
                ]
            }
            Hostile::OneBucket => {
                let src = self.any_length(src, 8, 32);
                let dst = self.any_length(dst, 8, 32);
                let ports = [self.over_middle(), self.over_middle()];
                [src, dst, ports[0], ports[1], FieldMatch::Exact(proto)]
            }
            Hostile::Corners => {
                let mut rule = [FieldMatch::Any; 5];
                loop {
                    let mut sum = 0;
                    for (field, values) in rule.iter_mut().zip(&self.common) {
                        let index = self.draw.below(values.len());
                        sum = sum * 5 + index;
                        *field = FieldMatch::Exact(values[index]);
                    }
                    // The holes are spread over the grid.
                    if !sum.is_multiple_of(8) {
                        return rule;
                    }
                }
            }
        }
    }

    /// Returns a prefix of a path; all lengths within the bounds are equally likely.
    fn any_length(&mut self, path: u128, min_length: u32, max_length: u32) -> FieldMatch {
        let lengths = usize::try_from(max_length - min_length + 1).expect("at most 33");
        let length = min_length + u32::try_from(self.draw.below(lengths)).expect("at most 32");
        prefix(path, length)
    }

    /// Returns a range around a value or any port, each with probability 1/2.
    fn around(&mut self, value: u128) -> FieldMatch {
        if self.draw.coin() {
            return FieldMatch::Any;
        }
        let low = self.draw.up_to(value);
        let high = self.draw.between(value, MAX_PORT);
        range(low, high)
    }

    /// Returns a range of ports whose ends share no leading bit.
    fn over_middle(&mut self) -> FieldMatch {
        let middle = 1 << 15;
        let low = self.draw.up_to(middle - 1);
        let high = self.draw.between(middle, MAX_PORT);
        range(low, high)
    }

    fn maybe(&mut self, field: FieldMatch) -> FieldMatch {
        if self.draw.coin() {
            field
        } else {
            FieldMatch::Any
        }
    }
}

/// Returns a prefix of an IPv4 address in its canonical form.
fn prefix(address: u128, length: u32) -> FieldMatch {
    match length {
        0 => FieldMatch::Any,
        32 => FieldMatch::Exact(address),
        _ => FieldMatch::Prefix {
            value: address >> (32 - length) << (32 - length),
            length,
        },
    }
}

/// Returns a range of ports in its canonical form.
fn range(low: u128, high: u128) -> FieldMatch {
    match (low, high) {
        (0, MAX_PORT) => FieldMatch::Any,
        (low, high) if low == high => FieldMatch::Exact(low),
        (low, high) => FieldMatch::Range { low, high },
    }
}

#[cfg(test)]
mod tests;
