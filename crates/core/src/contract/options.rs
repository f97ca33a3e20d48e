//! Options of engines: the options that an engine declares, and the values that a
//! specification gives.

use std::fmt;

use crate::model::seed::Seed;

/// An option of an engine, as its registry entry declares it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EngineOption {
    /// The name: lower-case letters, digits and `-`.
    pub name: &'static str,
    /// The kind of the option's values.
    pub kind: OptionKind,
    /// The value if none is given.
    pub default: OptionValue,
    /// The meaning of the option in one phrase, without its values and its default.
    pub help: &'static str,
}

/// The value of an option whose number the engine chooses.
const AUTO: &str = "auto";

/// The kind of an option's values.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum OptionKind {
    /// A whole number from `min` to `max`.
    Whole {
        /// The smallest value.
        min: usize,
        /// The largest value.
        max: usize,
    },
    /// A whole number from `min` to `max`, or `auto`: the engine chooses.
    WholeOrAuto {
        /// The smallest value.
        min: usize,
        /// The largest value.
        max: usize,
    },
    /// A number from `min` to `max`, which may have decimals.
    Decimal {
        /// The smallest value.
        min: f64,
        /// The largest value.
        max: f64,
    },
    /// A word of a list.
    Choice(&'static [&'static str]),
    /// A word of a list. Some hosts do not support all of its words.
    HostChoice {
        /// The words, on every host.
        words: &'static [&'static str],
        /// Returns the reason why this host does not support a word, or `None`.
        lacks: fn(&str) -> Option<String>,
    },
    /// The seed of hash functions: a whole number below 2^64, or `random`.
    Seed,
}

/// A value of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum OptionValue {
    /// A value of [`OptionKind::Whole`], or a number of [`OptionKind::WholeOrAuto`].
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
    /// If the default is not from `min` to `max`.
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

    /// An option that takes a whole number or `auto`, which is the default.
    ///
    /// # Panics
    /// If `min` is above `max`.
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
    /// If the default is not from `min` to `max`.
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

    /// An option that takes a word of a list. The first word is the default.
    ///
    /// # Panics
    /// If the list is empty.
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

    /// An option that takes a word of a list. The first word is the default. `lacks`
    /// returns the reason why this host does not support a word, or `None`. Every
    /// host must support the first word.
    ///
    /// # Panics
    /// If the list is empty.
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

    /// The option `seed`, for every engine that hashes.
    pub const SEED: EngineOption = EngineOption {
        name: "seed",
        kind: OptionKind::Seed,
        default: OptionValue::Seed(Seed::PROCESS),
        help: "where hash functions begin; a number makes builds alike in every process, \
               and must then be kept from those who write rules or send headers",
    };

    /// Returns the reason why this host does not support a value, or `None`.
    #[must_use]
    pub fn lacks(&self, value: &OptionValue) -> Option<String> {
        match (&self.kind, value) {
            (OptionKind::HostChoice { lacks, .. }, OptionValue::Choice(word)) => lacks(word),
            _ => None,
        }
    }

    /// Returns values for tests. Numbers: both bounds, the default and a few numbers
    /// between the bounds. Words: every word of the list. Seeds: 0, 1 and the largest.
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
    /// The name of the kind: `whole`, `whole-or-auto`, `decimal`, `choice` or `seed`.
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

    /// The words of the list; empty if the option takes only numbers.
    #[must_use]
    pub fn words(&self) -> &'static [&'static str] {
        match self {
            OptionKind::Choice(words) | OptionKind::HostChoice { words, .. } => words,
            OptionKind::WholeOrAuto { .. } => &[AUTO],
            _ => &[],
        }
    }

    /// Reads a value. Returns `None` if the text is not of this kind.
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
    /// Writes the values as a phrase: `a whole number from 1 to 64`.
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

/// The options of a specification: the given values, and the defaults of all other
/// options.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    declared: &'static [EngineOption],
    /// The given options, in the order of the text.
    given: Vec<Given>,
}

#[derive(Clone, Debug)]
struct Given {
    name: &'static str,
    /// The text of the value.
    text: String,
    value: OptionValue,
}

impl PartialEq for EngineOptions {
    /// True if the texts are equal.
    fn eq(&self, other: &EngineOptions) -> bool {
        self.given.len() == other.given.len() && self.written().eq(other.written())
    }
}

impl Eq for EngineOptions {}

impl EngineOptions {
    pub(crate) fn new(declared: &'static [EngineOption]) -> EngineOptions {
        EngineOptions {
            declared,
            given: Vec::new(),
        }
    }

    /// Sets a value. Replaces an earlier value.
    pub(crate) fn give(&mut self, name: &'static str, text: &str, value: OptionValue) {
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

    /// All options of the engine.
    #[must_use]
    pub fn declared(&self) -> &'static [EngineOption] {
        self.declared
    }

    /// The given options, with the text of each value.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.given
            .iter()
            .map(|given| (given.name, given.text.as_str()))
    }

    /// True if the option is given, even with its default.
    #[must_use]
    pub fn is_given(&self, option: &str) -> bool {
        self.given.iter().any(|given| given.name == option)
    }

    /// Returns the value of an option: the given value, or the default.
    ///
    /// # Panics
    /// If the engine does not declare the option.
    #[must_use]
    pub fn value(&self, option: &str) -> OptionValue {
        let declared = self.declared.iter().find(|known| known.name == option);
        let declared = declared.unwrap_or_else(|| panic!("no option {option} is declared"));
        let given = self.given.iter().find(|given| given.name == option);
        given.map_or(declared.default, |given| given.value)
    }

    /// Returns the value of an option that takes whole numbers.
    ///
    /// # Panics
    /// If the engine does not declare the option, or its value is of another kind.
    #[must_use]
    pub fn whole(&self, option: &str) -> usize {
        match self.value(option) {
            OptionValue::Whole(number) => number,
            other => panic!("{option}={other} is not a whole number"),
        }
    }

    /// Returns the value of an option that takes numbers with decimals.
    ///
    /// # Panics
    /// If the engine does not declare the option, or its value is of another kind.
    #[must_use]
    pub fn decimal(&self, option: &str) -> f64 {
        match self.value(option) {
            OptionValue::Decimal(number) => number,
            other => panic!("{option}={other} is not a number with decimals"),
        }
    }

    /// Returns the value of an option that takes a word of a list.
    ///
    /// # Panics
    /// If the engine does not declare the option, or its value is of another kind.
    #[must_use]
    pub fn choice(&self, option: &str) -> &'static str {
        match self.value(option) {
            OptionValue::Choice(word) => word,
            other => panic!("{option}={other} is not a choice"),
        }
    }

    /// Returns the value of an option that takes a seed.
    ///
    /// # Panics
    /// If the engine does not declare the option, or its value is of another kind.
    #[must_use]
    pub fn seed(&self, option: &str) -> Seed {
        match self.value(option) {
            OptionValue::Seed(seed) => seed,
            other => panic!("{option}={other} is not a seed"),
        }
    }
}
