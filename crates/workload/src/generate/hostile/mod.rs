//! Rule sets that are hard for classifiers, each in one way.
//!
//! # Idea
//! Engines are fast because rules differ in bits that an index can look at.
//! These sets take that away, one assumption at a time. Nothing in them is
//! aimed at one engine, and all are IPv4 five-tuples, so that every engine and
//! every format takes them.
//!
//! | set | what it takes away |
//! |---|---|
//! | [`Hostile::Overlapping`] | that few rules match a header: all match one and the same |
//! | [`Hostile::Ranges`] | exact bits: nothing but port ranges over the middle |
//! | [`Hostile::Wildcards`] | fields that most rules test: all 31 choices of fields |
//! | [`Hostile::NestedPrefixes`] | prefixes of few lengths: chains of all 33, both addresses |
//! | [`Hostile::Alike`] | rules that differ: in one range, or in priority alone |
//! | [`Hostile::OneBucket`] | bits worth hashing: rules agree wherever they are exact |
//! | [`Hostile::Corners`] | headers that end early: a grid with holes, all values common |
//!
//! Rules are ordered from specific to general like those of the profiles.
//! [`updates`] has lists of changes that are hard in the same sense.

use classyard::{FieldMatch, Progress};

use super::draw::Draw;
use super::five_tuple::Seen;
use super::{GenerateError, GeneratorConfig, Steps};

pub mod updates;

/// A kind of hostile rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Hostile {
    /// Wide, staggered prefixes and ranges in some of the fields, all of them
    /// around one header: every rule overlaps every other.
    Overlapping,
    /// Port ranges whose ends share no leading bit; everything else is open.
    Ranges,
    /// Each rule tests some fields for exact values and leaves the others open;
    /// all 31 choices of fields in turn.
    Wildcards,
    /// Prefixes of every length, 0 to 32, along common paths, of source and
    /// destination.
    NestedPrefixes,
    /// Families of rules that differ in one range, and every fourth rule in
    /// nothing but its priority. The only set in which two rules may match the
    /// same headers.
    Alike,
    /// All rules agree in all bits that are exact in both; they differ in what
    /// is open.
    OneBucket,
    /// Exact rules, the product of a few values of each field, one in eight
    /// left out.
    Corners,
}

/// The matches of a five-tuple: source, destination, their ports, protocol.
pub(super) type Matches = [FieldMatch; 5];

/// The most rules that are drawn for each one wanted.
const TRIES: usize = 50;

const ADDRESS: u128 = u32::MAX as u128;
const PORT: u128 = u16::MAX as u128;
const PROTOCOL: u128 = u8::MAX as u128;

impl Hostile {
    /// All of them.
    pub const ALL: [Hostile; 7] = [
        Hostile::Overlapping,
        Hostile::Ranges,
        Hostile::Wildcards,
        Hostile::NestedPrefixes,
        Hostile::Alike,
        Hostile::OneBucket,
        Hostile::Corners,
    ];

    /// The name on command lines.
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

    /// What the rules are like, in a few words.
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

    /// The set of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Hostile> {
        Hostile::ALL.into_iter().find(|set| set.name() == name)
    }

    /// The rules, fewer than wanted when there are no more, from specific to
    /// general.
    pub(super) fn generate(
        self,
        config: &GeneratorConfig,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Matches>, GenerateError> {
        let mut maker = Maker::new(self, config);
        let mut steps = Steps::new("drawing rules", config.rules, progress);
        let mut seen: Seen<Matches> = Seen::default();
        let mut rules: Vec<Matches> = Vec::new();
        let tries = config.rules.saturating_mul(TRIES);
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

/// How much a rule leaves open: the sum of the logarithms of what its fields
/// admit, in 1/256 of a bit.
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
    /// The header that everything is around.
    anchor: [u128; 5],
    /// Common paths or values, for each field.
    common: [Vec<u128>; 5],
    /// Families of rules, or cells of the grid in an order of their own.
    families: usize,
}

impl Maker {
    fn new(set: Hostile, config: &GeneratorConfig) -> Maker {
        let mut draw = Draw::new(config.seed, set.name());
        let maxima = [ADDRESS, ADDRESS, PORT, PORT, PROTOCOL];
        let anchor = maxima.map(|max| draw.up_to(max));
        // Paths of nested prefixes: 33 × 33 pairs of lengths for each pair of paths.
        let paths = 2 + config.rules / 1000;
        // Values of a grid with one more rule in eight than are wanted.
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
                let maxima = [ADDRESS, ADDRESS, PORT, PORT, PROTOCOL];
                let mut field = 0;
                maxima.map(|max| {
                    let value = self.draw.up_to(max);
                    let wanted = choice >> field & 1 != 0;
                    field += 1;
                    if wanted {
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
                        let at = self.draw.below(values.len());
                        sum = sum * 5 + at;
                        *field = FieldMatch::Exact(values[at]);
                    }
                    // The holes are spread over the grid.
                    if !sum.is_multiple_of(8) {
                        return rule;
                    }
                }
            }
        }
    }

    /// A prefix of a path, all lengths within the bounds equally likely.
    fn any_length(&mut self, path: u128, least: u32, most: u32) -> FieldMatch {
        let lengths = usize::try_from(most - least + 1).expect("at most 33");
        let length = least + u32::try_from(self.draw.below(lengths)).expect("at most 32");
        prefix(path, length)
    }

    /// A range around a value, half of the time; any port otherwise.
    fn around(&mut self, value: u128) -> FieldMatch {
        if self.draw.coin() {
            return FieldMatch::Any;
        }
        let low = self.draw.up_to(value);
        let high = self.draw.between(value, PORT);
        range(low, high)
    }

    /// A range of ports whose ends share no leading bit.
    fn over_middle(&mut self) -> FieldMatch {
        let middle = 1 << 15;
        let low = self.draw.up_to(middle - 1);
        let high = self.draw.between(middle, PORT);
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

/// A prefix of an IPv4 address in the one form that each has.
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

/// A range of ports in the one form that each has.
fn range(low: u128, high: u128) -> FieldMatch {
    match (low, high) {
        (0, PORT) => FieldMatch::Any,
        (low, high) if low == high => FieldMatch::Exact(low),
        (low, high) => FieldMatch::Range { low, high },
    }
}

#[cfg(test)]
mod tests;
