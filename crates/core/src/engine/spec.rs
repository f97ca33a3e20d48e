//! Engine specifications: the engine to build and its options, as text and as a
//! value.
//!
//! ```text
//! spec   = NAME [ "(" spec ")" ] { ":" OPTION "=" VALUE }
//! ```
//! Names, options and values have none of the characters `(`, `)` and `:`. The inner
//! specification is present if and only if the engine wraps another engine.

use std::fmt;
use std::str::FromStr;

use super::{BuildRequest, ENGINES, Engine, EngineOption, EngineOptions, OptionKind, Wraps};
use crate::classifier::{Classifier, Limits, Progress};
use crate::error::{BuildError, Refusal, SpecError, SpecPlace};
use crate::estimate::{Costs, Estimate, Shape};
use crate::machine::{Machine, Operation};
use crate::memory::Memory;
use crate::ruleset::RuleSet;
use crate::schema::Schema;

/// The largest depth of engines within each other. It bounds recursion.
pub const MAX_NESTING: usize = 8;

/// An engine to build and its options: `tuplemerge`, `tuplemerge:c=10`,
/// `NAME(INNER):option=value`.
///
/// All values are of the kinds that the engine declares. Two specifications are equal
/// if their texts are equal.
///
/// ```
/// use classyard::EngineSpec;
///
/// let spec = EngineSpec::parse("forest:bucket=4:isa=scalar")?;
/// assert_eq!(spec, EngineSpec::named("forest")?.with("bucket", "4")?.with("isa", "scalar")?);
/// assert_eq!(spec.options().whole("bucket"), 4);
/// assert_eq!(spec.to_string(), "forest:bucket=4:isa=scalar");
///
/// assert_eq!(spec, "forest:bucket=4:isa=scalar".parse()?);
///
/// let error = EngineSpec::parse("forest:isa=sse9").unwrap_err();
/// assert_eq!(error.column(), 12);
/// # Ok::<(), classyard::error::SpecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct EngineSpec {
    engine: &'static Engine,
    inner: Option<Box<EngineSpec>>,
    options: EngineOptions,
}

impl PartialEq for EngineSpec {
    fn eq(&self, other: &EngineSpec) -> bool {
        self.engine.name == other.engine.name
            && self.inner == other.inner
            && self.options == other.options
    }
}

impl Eq for EngineSpec {}

impl EngineSpec {
    /// Reads `NAME`, `NAME:OPTION=VALUE:…` or `NAME(INNER):OPTION=VALUE:…`.
    ///
    /// # Errors
    /// [`SpecError`] with the column, the reason and the allowed values.
    pub fn parse(text: &str) -> Result<EngineSpec, SpecError> {
        EngineSpec::parse_in(ENGINES, text)
    }

    /// Reads a specification with the engines of another registry.
    ///
    /// # Errors
    /// [`SpecError`], as for [`parse`](Self::parse).
    pub fn parse_in(registry: &'static [Engine], text: &str) -> Result<EngineSpec, SpecError> {
        let mut parser = Parser {
            registry,
            text,
            at: 0,
        };
        let spec = parser.spec(1)?;
        if parser.at < text.len() {
            return Err(parser.unexpected(&spec, false));
        }
        Ok(spec)
    }

    /// Returns an engine with its defaults.
    ///
    /// # Errors
    /// [`SpecError`] if no engine has the name, or the engine requires an inner
    /// engine.
    pub fn named(name: &str) -> Result<EngineSpec, SpecError> {
        let engine = find(ENGINES, name, name, 0)?;
        if engine.wraps != Wraps::Nothing {
            return Err(SpecError::MissingInner {
                at: SpecPlace::new(name, name.len()),
                engine: engine.name,
                allowed: engine.wraps.allowed(),
            });
        }
        Ok(EngineSpec::new(engine, None))
    }

    /// Sets an option. Replaces an earlier value.
    ///
    /// # Errors
    /// [`SpecError`] if the engine has no such option, or the option does not take
    /// the value.
    pub fn with(mut self, option: &str, value: &str) -> Result<EngineSpec, SpecError> {
        let mut text = self.to_string();
        text.push(':');
        let option_start = text.len();
        text.push_str(option);
        text.push('=');
        text.push_str(value);
        let declared = find_option(self.engine, option, &text, option_start)?;
        let parsed = parse_value(
            self.engine,
            declared,
            value,
            &text,
            option_start + option.len() + 1,
        )?;
        self.options.give(declared.name, value, parsed);
        Ok(self)
    }

    /// Sets every seed that is not set yet, here and in inner engines. The result
    /// builds the same classifier in every process.
    #[must_use]
    pub fn seeded(mut self, number: u64) -> EngineSpec {
        for option in self.engine.options {
            if matches!(option.kind, OptionKind::Seed) && !self.options.is_given(option.name) {
                let text = number.to_string();
                let value = option.kind.parse(&text).expect("every number is a seed");
                self.options.give(option.name, &text, value);
            }
        }
        self.inner = self.inner.map(|inner| Box::new(inner.seeded(number)));
        self
    }

    fn new(engine: &'static Engine, inner: Option<EngineSpec>) -> EngineSpec {
        EngineSpec {
            engine,
            inner: inner.map(Box::new),
            options: EngineOptions::new(engine.options),
        }
    }

    /// Every registered engine with its defaults. Engines that wrap another engine
    /// appear once for each engine that they can wrap.
    pub fn all() -> impl Iterator<Item = EngineSpec> {
        EngineSpec::all_in(ENGINES)
    }

    /// Every engine of another registry with its defaults. No wrapper is within
    /// another wrapper.
    pub fn all_in(registry: &'static [Engine]) -> impl Iterator<Item = EngineSpec> {
        registry
            .iter()
            .flat_map(move |engine| EngineSpec::defaults(registry, engine))
    }

    /// One engine of a registry with its defaults, once for each engine that it can
    /// wrap.
    pub fn defaults(
        registry: &'static [Engine],
        engine: &'static Engine,
    ) -> impl Iterator<Item = EngineSpec> {
        let alone = (engine.wraps == Wraps::Nothing).then(|| EngineSpec::new(engine, None));
        let inner = registry
            .iter()
            .filter(move |inner| engine.wraps != Wraps::Nothing && inner.wraps == Wraps::Nothing);
        let inner = inner.map(|inner| EngineSpec::new(inner, None));
        let wrapped = inner
            .filter(|inner| engine.wraps.takes(inner))
            .map(move |inner| EngineSpec::new(engine, Some(inner)));
        alone.into_iter().chain(wrapped)
    }

    /// The registry entry.
    #[must_use]
    pub fn engine(&self) -> &'static Engine {
        self.engine
    }

    /// The specification of the engine that this one wraps.
    #[must_use]
    pub fn inner(&self) -> Option<&EngineSpec> {
        self.inner.as_deref()
    }

    /// The given options, and the defaults of all other options.
    #[must_use]
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// True if classifiers built to this specification take updates.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        (self.engine.dynamic)(self)
    }

    /// Checks that classifiers can be built over rules of a schema.
    ///
    /// # Errors
    /// [`Refusal`] with the field, the reason and an alternative.
    pub fn accepts(&self, schema: &Schema) -> Result<(), Refusal> {
        (self.engine.accepts)(self, schema)
    }

    /// Checks that this host supports everything that the options require, including
    /// options of inner engines.
    ///
    /// # Errors
    /// [`BuildError::Unavailable`] with the option and the reason.
    pub fn available(&self) -> Result<(), BuildError> {
        for option in self.engine.options {
            let value = self.options.value(option.name);
            if let Some(reason) = option.lacks(&value) {
                return Err(BuildError::Unavailable {
                    engine: self.engine.name,
                    option: option.name,
                    value: value.to_string(),
                    reason,
                });
            }
        }
        self.inner().map_or(Ok(()), EngineSpec::available)
    }

    /// Builds a classifier over a copy of the rules.
    ///
    /// # Errors
    /// [`BuildError`] if the engine does not serve the schema, this host lacks
    /// something that an option requires, a limit is exceeded or the observer
    /// cancels.
    pub fn build(
        &self,
        rules: &RuleSet,
        limits: &Limits,
        progress: &mut dyn Progress,
    ) -> Result<Box<dyn Classifier>, BuildError> {
        self.build_within(rules, limits, progress, &mut Memory::new(limits))
    }

    /// Builds a classifier with an existing memory counter, which limits the [peak
    /// bytes](Limits::peak_bytes) of this build and of everything else that it
    /// counts.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build).
    pub fn build_within(
        &self,
        rules: &RuleSet,
        limits: &Limits,
        progress: &mut dyn Progress,
        memory: &mut Memory,
    ) -> Result<Box<dyn Classifier>, BuildError> {
        limits.check_rules(rules.len())?;
        self.available()?;
        self.accepts(rules.schema())?;
        (self.engine.build)(&mut BuildRequest {
            spec: self,
            rules,
            limits,
            progress,
            memory,
        })
    }

    /// Estimates the cost of a classifier over rules of a shape on the [default
    /// machine](Machine::default), without building it. Takes milliseconds for any
    /// number of rules.
    ///
    /// # Errors
    /// The [`BuildError`] with which [`build`](Self::build) would refuse such rules.
    /// The bytes in [`BuildError::TooManyBytes`] are estimated. So if rules are near
    /// the limit, only one of the two functions may refuse them.
    pub fn estimate(&self, shape: &Shape, limits: &Limits) -> Result<Estimate, BuildError> {
        self.estimate_on(shape, limits, &Machine::default())
    }

    /// Estimates the cost of a classifier on another machine.
    ///
    /// # Errors
    /// The errors of [`estimate`](Self::estimate).
    pub fn estimate_on(
        &self,
        shape: &Shape,
        limits: &Limits,
        machine: &Machine,
    ) -> Result<Estimate, BuildError> {
        Ok(self.priced(&self.costs(shape, limits)?, machine))
    }

    /// Converts [costs](Self::costs) of this engine to an estimate for a machine,
    /// including its [factors](Machine::factor). If the engine wraps another engine,
    /// lookups and the build have the factors of the inner engine.
    #[must_use]
    pub fn priced(&self, costs: &Costs, machine: &Machine) -> Estimate {
        let mut inner = self;
        while let Some(next) = inner.inner() {
            inner = next;
        }
        costs.on(machine, |operation| {
            let spec = match operation {
                Operation::Update => self,
                Operation::Batch | Operation::Single | Operation::Build => inner,
            };
            machine.factor(spec.engine.name, operation)
        })
    }

    /// Estimates the bytes held by a classifier over rules of a shape, and its work,
    /// which does not depend on the machine.
    ///
    /// # Errors
    /// The errors of [`estimate`](Self::estimate).
    pub fn costs(&self, shape: &Shape, limits: &Limits) -> Result<Costs, BuildError> {
        limits.check_rules(shape.rules())?;
        self.available()?;
        self.accepts(shape.schema())?;
        // The fixed seed makes estimates equal in every process.
        let costs = (self.engine.estimate)(&self.clone().seeded(0), shape)?;
        limits.check_bytes(costs.bytes)?;
        Ok(costs)
    }
}

impl FromStr for EngineSpec {
    type Err = SpecError;

    /// Calls [`EngineSpec::parse`].
    fn from_str(text: &str) -> Result<EngineSpec, SpecError> {
        EngineSpec::parse(text)
    }
}

impl fmt::Display for EngineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.engine.name)?;
        if let Some(inner) = &self.inner {
            write!(f, "({inner})")?;
        }
        for (option, value) in self.options.written() {
            write!(f, ":{option}={value}")?;
        }
        Ok(())
    }
}

impl Wraps {
    fn takes(self, inner: &EngineSpec) -> bool {
        match self {
            Wraps::Nothing => false,
            Wraps::Static => !inner.is_dynamic(),
            Wraps::Any => true,
        }
    }

    fn allowed(self) -> &'static str {
        match self {
            Wraps::Nothing => "none",
            Wraps::Static => "one that takes no updates",
            Wraps::Any => "any engine",
        }
    }
}

/// Reads a specification from left to right.
struct Parser<'t> {
    registry: &'static [Engine],
    text: &'t str,
    /// All bytes before this position have been read.
    at: usize,
}

/// The characters that names, options and values do not contain.
const MARKS: [char; 3] = ['(', ')', ':'];

impl<'t> Parser<'t> {
    /// Reads one specification. `depth` is the number of engines around it, including
    /// its own engine.
    fn spec(&mut self, depth: usize) -> Result<EngineSpec, SpecError> {
        let start = self.at;
        let name = self.word();
        if name.is_empty() {
            return Err(self.empty(start, "the name of an engine"));
        }
        let engine = find(self.registry, name, self.text, start)?;
        let inner = self.inner(engine, depth)?;
        let mut spec = EngineSpec::new(engine, inner);
        let mut starts = Vec::new();
        while self.takes(':') {
            self.option(&mut spec, &mut starts)?;
        }
        Ok(spec)
    }

    /// Reads the specification in parentheses, if the engine wraps another engine.
    fn inner(
        &mut self,
        engine: &'static Engine,
        depth: usize,
    ) -> Result<Option<EngineSpec>, SpecError> {
        let opened = self.at;
        match (self.takes('('), engine.wraps) {
            (false, Wraps::Nothing) => return Ok(None),
            (true, Wraps::Nothing) => {
                return Err(SpecError::UnexpectedInner {
                    at: self.place(opened),
                    engine: engine.name,
                });
            }
            (false, wraps) => {
                return Err(SpecError::MissingInner {
                    at: self.place(opened),
                    engine: engine.name,
                    allowed: wraps.allowed(),
                });
            }
            (true, _) => {}
        }
        if depth == MAX_NESTING {
            return Err(SpecError::TooDeep {
                at: self.place(opened),
                limit: MAX_NESTING,
            });
        }
        let start = self.at;
        let inner = self.spec(depth + 1)?;
        if !self.takes(')') {
            return Err(if self.at == self.text.len() {
                SpecError::Unclosed {
                    at: self.place(self.at),
                    opened: opened + 1,
                }
            } else {
                self.unexpected(&inner, true)
            });
        }
        if !engine.wraps.takes(&inner) {
            return Err(SpecError::WrongInner {
                at: self.place(start),
                engine: engine.name,
                found: inner.engine.name,
                allowed: engine.wraps.allowed(),
            });
        }
        Ok(Some(inner))
    }

    /// Reads `OPTION=VALUE`. `starts` has the options that were read before, and
    /// their positions.
    fn option(
        &mut self,
        spec: &mut EngineSpec,
        starts: &mut Vec<(&'static str, usize)>,
    ) -> Result<(), SpecError> {
        let start = self.at;
        let part = self.word();
        if part.is_empty() {
            return Err(self.empty(start, "OPTION=VALUE"));
        }
        let Some((name, value)) = part.split_once('=') else {
            return Err(SpecError::NoValue {
                at: self.place(start + part.len()),
                option: part.to_owned(),
            });
        };
        if name.is_empty() {
            return Err(self.empty(start, "the name of an option"));
        }
        let option = find_option(spec.engine, name, self.text, start)?;
        if let Some(&(_, first)) = starts.iter().find(|(given, _)| *given == option.name) {
            return Err(SpecError::Repeated {
                at: self.place(start),
                option: option.name,
                first: first + 1,
            });
        }
        starts.push((option.name, start));
        let value_start = start + name.len() + 1;
        let parsed = parse_value(spec.engine, option, value, self.text, value_start)?;
        spec.options.give(option.name, value, parsed);
        Ok(())
    }

    /// Reads the text before the next mark.
    fn word(&mut self) -> &'t str {
        let unread = &self.text[self.at..];
        let word = &unread[..unread.find(MARKS).unwrap_or(unread.len())];
        self.at += word.len();
        word
    }

    /// Reads a mark, if it comes next.
    fn takes(&mut self, mark: char) -> bool {
        let comes = self.text[self.at..].starts_with(mark);
        self.at += usize::from(comes);
        comes
    }

    fn place(&self, at: usize) -> SpecPlace {
        SpecPlace::new(self.text, at)
    }

    fn empty(&self, at: usize, expected: &'static str) -> SpecError {
        let unread = &self.text[at..];
        SpecError::Empty {
            at: self.place(at),
            found: unread.chars().next(),
            expected,
        }
    }

    /// Returns the error for text that follows a specification.
    fn unexpected(&self, before: &EngineSpec, inside: bool) -> SpecError {
        let unread = &self.text[self.at..];
        let word = &unread[..unread.find(MARKS).unwrap_or(unread.len())];
        let unexpected = if word.is_empty() {
            unread.chars().take(1).collect()
        } else {
            word.to_owned()
        };
        let expected = match (inside, before.engine.options.is_empty()) {
            (true, true) => "`)`",
            (true, false) => "`:OPTION=VALUE` or `)`",
            (false, true) => "nothing",
            (false, false) => "`:OPTION=VALUE` or nothing",
        };
        SpecError::Unexpected {
            at: self.place(self.at),
            found: unexpected,
            expected,
        }
    }
}

/// Finds the engine with a name. `at` is the position of the name in a text.
pub(super) fn find(
    registry: &'static [Engine],
    name: &str,
    text: &str,
    at: usize,
) -> Result<&'static Engine, SpecError> {
    let entry = registry.iter().find(|engine| engine.name == name);
    entry.ok_or_else(|| {
        let names = || registry.iter().map(|engine| engine.name);
        SpecError::UnknownEngine {
            at: SpecPlace::new(text, at),
            found: name.to_owned(),
            known: list(names()),
            near: nearest(name, names()),
        }
    })
}

fn find_option(
    engine: &'static Engine,
    name: &str,
    text: &str,
    at: usize,
) -> Result<&'static EngineOption, SpecError> {
    engine.option(name).ok_or_else(|| {
        let names = || engine.options.iter().map(|option| option.name);
        SpecError::UnknownOption {
            at: SpecPlace::new(text, at),
            engine: engine.name,
            found: name.to_owned(),
            known: list(names()),
            near: nearest(name, names()),
        }
    })
}

fn parse_value(
    engine: &'static Engine,
    option: &'static EngineOption,
    value: &str,
    text: &str,
    at: usize,
) -> Result<super::OptionValue, SpecError> {
    option.kind.parse(value).ok_or_else(|| SpecError::BadValue {
        at: SpecPlace::new(text, at),
        engine: engine.name,
        option: option.name,
        found: value.to_owned(),
        expected: option.kind.to_string(),
    })
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// Returns the name that is most similar to a word, if it begins with the word or at
/// most a third of its characters differ.
fn nearest(word: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    // No name is that long, and the comparison takes time proportional to the length.
    if word.len() > 100 {
        return None;
    }
    let similar = names.filter_map(|name| {
        let edits = distance(word, name);
        let alike = edits * 3 <= name.chars().count();
        (alike || word.len() >= 3 && name.starts_with(word)).then_some((edits, name))
    });
    Some(similar.min()?.1)
}

/// Returns the Levenshtein distance of two words: the number of characters to insert,
/// remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // The distances between the characters read from `a` and each beginning of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
