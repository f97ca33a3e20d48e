//! The options of engines: which values they take, and the values that a
//! specification gives.

use std::fmt;

use crate::seed::Seed;

/// An option of an engine, as its registry entry declares it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EngineOption {
    /// The name: lower-case letters, digits and `-`.
    pub name: &'static str,
    /// Which values there are.
    pub kind: OptionKind,
    /// The value when none is given.
    pub default: OptionValue,
    /// What it does, in one phrase, without values and default.
    pub help: &'static str,
}

/// The word for a number that the engine chooses.
const AUTO: &str = "auto";

/// Which values an option takes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum OptionKind {
    /// A whole number from `min` to `max`.
    Whole {
        /// The least.
        min: usize,
        /// The greatest.
        max: usize,
    },
    /// A whole number from `min` to `max`, or `auto`: the engine chooses.
    WholeOrAuto {
        /// The least.
        min: usize,
        /// The greatest.
        max: usize,
    },
    /// A number from `min` to `max`, which may have decimals.
    Decimal {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
    },
    /// One of some words.
    Choice(&'static [&'static str]),
    /// One of some words, some of which not every host can do.
    HostChoice {
        /// The words, on every host.
        words: &'static [&'static str],
        /// Says why this host cannot do one of the words, if so.
        lacks: fn(&str) -> Option<String>,
    },
    /// Where hash functions begin: a whole number below 2^64, or `random`.
    Seed,
}

/// A value of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum OptionValue {
    /// A value of [`OptionKind::Whole`], or one of [`OptionKind::WholeOrAuto`].
    Whole(usize),
    /// A value of [`OptionKind::Decimal`].
    Decimal(f64),
    /// A value of [`OptionKind::Choice`] or [`OptionKind::HostChoice`], or `auto`.
    Choice(&'static str),
    /// A value of [`OptionKind::Seed`].
    Seed(Seed),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Whole(number) => number.fmt(f),
            OptionValue::Decimal(number) => number.fmt(f),
            OptionValue::Choice(word) => f.write_str(word),
            OptionValue::Seed(seed) => seed.fmt(f),
        }
    }
}

impl EngineOption {
    /// An option that takes a whole number.
    ///
    /// # Panics
    /// When the default is not from `min` to `max`.
    #[must_use]
    pub const fn whole(
        name: &'static str,
        (min, max): (usize, usize),
        default: usize,
        help: &'static str,
    ) -> EngineOption {
        assert!(min <= default && default <= max, "a default within bounds");
        EngineOption {
            name,
            kind: OptionKind::Whole { min, max },
            default: OptionValue::Whole(default),
            help,
        }
    }

    /// An option that takes a whole number or, which is the default, `auto`.
    ///
    /// # Panics
    /// When `min` is above `max`.
    #[must_use]
    pub const fn whole_or_auto(
        name: &'static str,
        (min, max): (usize, usize),
        help: &'static str,
    ) -> EngineOption {
        assert!(min <= max, "there is a number");
        EngineOption {
            name,
            kind: OptionKind::WholeOrAuto { min, max },
            default: OptionValue::Choice(AUTO),
            help,
        }
    }

    /// An option that takes a number with decimals.
    ///
    /// # Panics
    /// When the default is not from `min` to `max`.
    #[must_use]
    pub const fn decimal(
        name: &'static str,
        (min, max): (f64, f64),
        default: f64,
        help: &'static str,
    ) -> EngineOption {
        assert!(min <= default && default <= max, "a default within bounds");
        EngineOption {
            name,
            kind: OptionKind::Decimal { min, max },
            default: OptionValue::Decimal(default),
            help,
        }
    }

    /// An option that takes one of some words, of which the first is the
    /// default.
    ///
    /// # Panics
    /// When there is no word.
    #[must_use]
    pub const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        help: &'static str,
    ) -> EngineOption {
        EngineOption {
            name,
            kind: OptionKind::Choice(words),
            default: OptionValue::Choice(words[0]),
            help,
        }
    }

    /// An option that takes one of some words, of which the first is the
    /// default. `lacks` says why this host cannot do one of them, if so; every
    /// host must be able to do the first.
    ///
    /// # Panics
    /// When there is no word.
    #[must_use]
    pub const fn host_choice(
        name: &'static str,
        words: &'static [&'static str],
        lacks: fn(&str) -> Option<String>,
        help: &'static str,
    ) -> EngineOption {
        EngineOption {
            name,
            kind: OptionKind::HostChoice { words, lacks },
            default: OptionValue::Choice(words[0]),
            help,
        }
    }

    /// The option `seed`, the same for every engine that hashes.
    pub const SEED: EngineOption = EngineOption {
        name: "seed",
        kind: OptionKind::Seed,
        default: OptionValue::Seed(Seed::PROCESS),
        help: "where hash functions begin; a number makes builds alike in every process, \
               and must then be kept from those who write rules or send headers",
    };

    /// Why this host cannot do a value of this option; `None` when it can.
    #[must_use]
    pub fn lacks(&self, value: &OptionValue) -> Option<String> {
        match (&self.kind, value) {
            (OptionKind::HostChoice { lacks, .. }, OptionValue::Choice(word)) => lacks(word),
            _ => None,
        }
    }

    /// Values that are worth trying: both bounds, the default and a few small
    /// ones, or every word.
    #[must_use]
    pub fn samples(&self) -> Vec<OptionValue> {
        match self.kind {
            OptionKind::WholeOrAuto { min, max } => {
                let numbers = EngineOption::whole(self.name, (min, max), min, self.help);
                let mut samples = numbers.samples();
                samples.push(self.default);
                samples
            }
            OptionKind::Whole { min, max } => {
                let mut numbers = vec![min, max, 0, 1, 2, 8];
                if let OptionValue::Whole(default) = self.default {
                    numbers.push(default);
                }
                numbers.retain(|number| (min..=max).contains(number));
                numbers.sort_unstable();
                numbers.dedup();
                numbers.into_iter().map(OptionValue::Whole).collect()
            }
            OptionKind::Decimal { min, max } => {
                let middle = min.midpoint(max);
                let numbers = [min, middle, max].map(OptionValue::Decimal);
                numbers.into_iter().chain([self.default]).collect()
            }
            OptionKind::Choice(words) | OptionKind::HostChoice { words, .. } => {
                words.iter().copied().map(OptionValue::Choice).collect()
            }
            OptionKind::Seed => [0, 1, u64::MAX]
                .map(|number| OptionValue::Seed(Seed::new(number)))
                .to_vec(),
        }
    }
}

impl OptionKind {
    /// The word for the kind of values: `whole`, `whole-or-auto`, `decimal`,
    /// `choice` or `seed`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            OptionKind::Whole { .. } => "whole",
            OptionKind::WholeOrAuto { .. } => "whole-or-auto",
            OptionKind::Decimal { .. } => "decimal",
            OptionKind::Choice(_) | OptionKind::HostChoice { .. } => "choice",
            OptionKind::Seed => "seed",
        }
    }

    /// The words to choose from; none where there are but numbers.
    #[must_use]
    pub fn words(&self) -> &'static [&'static str] {
        match self {
            OptionKind::Choice(words) | OptionKind::HostChoice { words, .. } => words,
            OptionKind::WholeOrAuto { .. } => &[AUTO],
            _ => &[],
        }
    }

    /// Reads a value; `None` when it is not one of this kind.
    #[must_use]
    pub fn parse(&self, text: &str) -> Option<OptionValue> {
        match self {
            OptionKind::WholeOrAuto { .. } if text == AUTO => Some(OptionValue::Choice(AUTO)),
            OptionKind::Whole { min, max } | OptionKind::WholeOrAuto { min, max } => {
                let number = text.parse().ok()?;
                (*min..=*max)
                    .contains(&number)
                    .then_some(OptionValue::Whole(number))
            }
            OptionKind::Decimal { min, max } => {
                let number = text.parse().ok()?;
                (*min..=*max)
                    .contains(&number)
                    .then_some(OptionValue::Decimal(number))
            }
            OptionKind::Choice(words) | OptionKind::HostChoice { words, .. } => {
                let word = words.iter().find(|word| **word == text)?;
                Some(OptionValue::Choice(word))
            }
            OptionKind::Seed if text == "random" => Some(OptionValue::Seed(Seed::PROCESS)),
            OptionKind::Seed => Some(OptionValue::Seed(Seed::new(text.parse().ok()?))),
        }
    }
}

impl fmt::Display for OptionKind {
    /// The values, as a phrase: `a whole number from 1 to 64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionKind::Whole {
                min,
                max: usize::MAX,
            } => write!(f, "a whole number of at least {min}"),
            OptionKind::Whole { min, max } => write!(f, "a whole number from {min} to {max}"),
            OptionKind::WholeOrAuto { min, max } => {
                write!(f, "`{AUTO}` or a whole number from {min} to {max}")
            }
            OptionKind::Decimal { min, max } => write!(f, "a number from {min} to {max}"),
            OptionKind::Choice(words) | OptionKind::HostChoice { words, .. } => {
                write!(f, "one of {}", words.join(", "))
            }
            OptionKind::Seed => f.write_str("`random` or a whole number below 2^64"),
        }
    }
}

/// The options of a specification: the values that it gives, and the defaults
/// of the others.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    declared: &'static [EngineOption],
    /// In the order in which they were written.
    given: Vec<Given>,
}

#[derive(Clone, Debug)]
struct Given {
    name: &'static str,
    /// The value as it was written.
    text: String,
    value: OptionValue,
}

impl PartialEq for EngineOptions {
    /// Whether they were written alike.
    fn eq(&self, other: &EngineOptions) -> bool {
        self.given.len() == other.given.len() && self.written().eq(other.written())
    }
}

impl Eq for EngineOptions {}

impl EngineOptions {
    pub(super) fn new(declared: &'static [EngineOption]) -> EngineOptions {
        EngineOptions {
            declared,
            given: Vec::new(),
        }
    }

    /// Gives a value, in place of an earlier one.
    pub(super) fn give(&mut self, name: &'static str, text: &str, value: OptionValue) {
        let given = Given {
            name,
            text: text.to_owned(),
            value,
        };
        match self.given.iter_mut().find(|earlier| earlier.name == name) {
            Some(earlier) => *earlier = given,
            None => self.given.push(given),
        }
    }

    /// The options that the engine has.
    #[must_use]
    pub fn declared(&self) -> &'static [EngineOption] {
        self.declared
    }

    /// The options that are given, as they were written.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.given
            .iter()
            .map(|given| (given.name, given.text.as_str()))
    }

    /// Whether an option is given, be it with its default.
    #[must_use]
    pub fn is_given(&self, option: &str) -> bool {
        self.given.iter().any(|given| given.name == option)
    }

    /// The value of an option: the one given, else the default.
    ///
    /// # Panics
    /// When the engine does not declare that option.
    #[must_use]
    pub fn value(&self, option: &str) -> OptionValue {
        let declared = self.declared.iter().find(|known| known.name == option);
        let declared = declared.unwrap_or_else(|| panic!("no option {option} is declared"));
        let given = self.given.iter().find(|given| given.name == option);
        given.map_or(declared.default, |given| given.value)
    }

    /// The value of an option that takes whole numbers.
    ///
    /// # Panics
    /// When the engine does not declare that option, of that kind.
    #[must_use]
    pub fn whole(&self, option: &str) -> usize {
        match self.value(option) {
            OptionValue::Whole(number) => number,
            other => panic!("{option}={other} is no whole number"),
        }
    }

    /// The value of an option that takes numbers with decimals.
    ///
    /// # Panics
    /// When the engine does not declare that option, of that kind.
    #[must_use]
    pub fn decimal(&self, option: &str) -> f64 {
        match self.value(option) {
            OptionValue::Decimal(number) => number,
            other => panic!("{option}={other} is no number with decimals"),
        }
    }

    /// The value of an option that takes one of some words.
    ///
    /// # Panics
    /// When the engine does not declare that option, of that kind.
    #[must_use]
    pub fn choice(&self, option: &str) -> &'static str {
        match self.value(option) {
            OptionValue::Choice(word) => word,
            other => panic!("{option}={other} is no choice"),
        }
    }

    /// The value of an option that takes a seed.
    ///
    /// # Panics
    /// When the engine does not declare that option, of that kind.
    #[must_use]
    pub fn seed(&self, option: &str) -> Seed {
        match self.value(option) {
            OptionValue::Seed(seed) => seed,
            other => panic!("{option}={other} is no seed"),
        }
    }
}
