//! The engines, and the registry through which everything finds them.
//!
//! | engine | kind | pick it when |
//! |---|---|---|
//! | `linear` | dynamic | there are a few dozen rules, or to check the others |
//! | `forest` | dynamic | lookups must be fast and rules change |
//! | `tss` | dynamic | rules change all the time and there are few distinct masks |
//! | `tuplemerge` | dynamic | rules change and lookups must be fast |
//! | `tuplemerge-offline` | dynamic | the rules are known up front and change little |
//! | `tuplemerge-vpp` | dynamic | one hash table for all is wanted, as in VPP's ACL plugin |
//!
//! An engine is a file in this folder and a line in [`ENGINES`]. Conformance
//! and differential tests, fuzzing, benchmarks and the command line walk the
//! registry, so a new engine is in all of them at once.

use std::fmt;

use crate::classifier::{Classifier, Limits, Progress};
use crate::error::BuildError;
use crate::ruleset::RuleSet;

mod forest;
mod linear;
mod tss;
mod tuple_space;
mod tuplemerge;

/// All engines.
pub const ENGINES: &[Engine] = &[
    linear::ENGINE,
    forest::ENGINE,
    tss::ENGINE,
    tuplemerge::ONLINE,
    tuplemerge::OFFLINE,
    tuplemerge::VPP,
];

/// An engine's registry entry.
pub struct Engine {
    /// The name by which users ask for it.
    pub name: &'static str,
    /// One line for people who choose.
    pub summary: &'static str,
    /// The paper and section that it comes from.
    pub paper: &'static str,
    /// Whether built classifiers take updates.
    pub dynamic: bool,
    /// The options that it understands.
    pub options: &'static [EngineOption],
    /// Builds a classifier.
    build: BuildFn,
}

type BuildFn = fn(
    &RuleSet,
    &EngineOptions,
    &Limits,
    &mut dyn Progress,
) -> Result<Box<dyn Classifier>, BuildError>;

/// An option of an engine.
pub struct EngineOption {
    /// The option's name.
    pub name: &'static str,
    /// What it does and what it takes, with the default.
    pub help: &'static str,
}

/// The engine of that name.
///
/// # Errors
/// [`BuildError::UnknownEngine`], with the names that there are.
pub fn engine(name: &str) -> Result<&'static Engine, BuildError> {
    ENGINES
        .iter()
        .find(|engine| engine.name == name)
        .ok_or_else(|| BuildError::UnknownEngine {
            name: name.to_owned(),
            known: list(ENGINES.iter().map(|engine| engine.name)),
        })
}

/// Which engine to build and how: `tuplemerge`, `tuplemerge:c=10`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSpec {
    name: &'static str,
    options: EngineOptions,
}

impl EngineSpec {
    /// Reads `NAME` or `NAME:OPTION=VALUE:…`. Values are checked when building.
    ///
    /// # Errors
    /// [`BuildError`] when the form is wrong, or there is no such engine or
    /// option.
    pub fn parse(text: &str) -> Result<EngineSpec, BuildError> {
        let mut parts = text.split(':');
        let engine = engine(parts.next().unwrap_or_default())?;
        let mut pairs = Vec::new();
        for part in parts {
            let Some((option, value)) = part.split_once('=') else {
                return Err(BuildError::BadSpec {
                    text: text.to_owned(),
                });
            };
            if !engine.options.iter().any(|known| known.name == option) {
                return Err(BuildError::UnknownOption {
                    engine: engine.name.to_owned(),
                    option: option.to_owned(),
                    known: list(engine.options.iter().map(|known| known.name)),
                });
            }
            pairs.push((option.to_owned(), value.to_owned()));
        }
        Ok(EngineSpec {
            name: engine.name,
            options: EngineOptions { pairs },
        })
    }

    /// Every registered engine with its defaults.
    pub fn all() -> impl Iterator<Item = EngineSpec> {
        ENGINES.iter().map(|engine| EngineSpec {
            name: engine.name,
            options: EngineOptions::default(),
        })
    }

    /// The registry entry.
    #[must_use]
    pub fn engine(&self) -> &'static Engine {
        engine(self.name).expect("specs are made of registered names")
    }

    /// Builds a classifier over a copy of the rules.
    ///
    /// # Errors
    /// [`BuildError`] when an option's value is wrong, a limit is met or the
    /// observer asks to stop.
    pub fn build(
        &self,
        rules: &RuleSet,
        limits: &Limits,
        progress: &mut dyn Progress,
    ) -> Result<Box<dyn Classifier>, BuildError> {
        limits.check_rules(rules.len())?;
        (self.engine().build)(rules, &self.options, limits, progress)
    }
}

impl fmt::Display for EngineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        for (option, value) in &self.options.pairs {
            write!(f, ":{option}={value}")?;
        }
        Ok(())
    }
}

/// Options as the user wrote them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EngineOptions {
    pairs: Vec<(String, String)>,
}

impl EngineOptions {
    /// A whole number within bounds, or the default when the option is not
    /// given. The last of several wins.
    ///
    /// # Errors
    /// [`BuildError::BadOption`]
    pub fn number(
        &self,
        engine: &str,
        option: &str,
        default: usize,
        bounds: std::ops::RangeInclusive<usize>,
    ) -> Result<usize, BuildError> {
        let Some((_, value)) = self.pairs.iter().rev().find(|(name, _)| name == option) else {
            return Ok(default);
        };
        match value.parse() {
            Ok(number) if bounds.contains(&number) => Ok(number),
            _ => Err(BuildError::BadOption {
                engine: engine.to_owned(),
                option: option.to_owned(),
                value: value.clone(),
                expected: match bounds.end() {
                    &usize::MAX => format!("a whole number of at least {}", bounds.start()),
                    end => format!("a whole number from {} to {end}", bounds.start()),
                },
            }),
        }
    }
}

impl EngineOptions {
    /// One of several words; the first is the default. The last of several
    /// settings wins.
    ///
    /// # Errors
    /// [`BuildError::BadOption`]
    pub fn choice(
        &self,
        engine: &str,
        option: &str,
        words: &[&'static str],
    ) -> Result<&'static str, BuildError> {
        let Some((_, value)) = self.pairs.iter().rev().find(|(name, _)| name == option) else {
            return Ok(words[0]);
        };
        let known = words.iter().find(|word| *word == value);
        known.copied().ok_or_else(|| BuildError::BadOption {
            engine: engine.to_owned(),
            option: option.to_owned(),
            value: value.clone(),
            expected: format!("one of {}", list(words.iter().copied())),
        })
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// The next number of a sequence whose members look random (Steele et al.,
/// "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
