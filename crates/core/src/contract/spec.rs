//! Engines by name: the entry of an engine in a registry, specifications of engines with
//! their options, and requests to build them.

use std::fmt;
use std::sync::Arc;

use crate::budget::memory::Memory;
use crate::budget::monitor::Monitor;
use crate::contract::classifier::{Classifier, Limits, Progress, report};
use crate::contract::options::{EngineOption, EngineOptions, OptionKind};
use crate::cost::estimate::{Costs, Estimate, Shape};
use crate::cost::machine::{Machine, Operation};
use crate::model::error::{BuildError, Refusal};
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;

/// An engine's registry entry.
///
/// [`ENGINES`](crate::engine::ENGINES) has the engines of this library. Specifications
/// can be [read](EngineSpec::parse_in) with the engines of another list.
#[derive(Clone, Copy)]
pub struct Engine {
    /// The name by which users choose the engine: lower-case letters, digits and `-`.
    pub name: &'static str,
    /// A summary of one line, for choosing an engine.
    pub summary: &'static str,
    /// The paper and section that describe the algorithm.
    pub paper: &'static str,
    /// The kind of engines that the engine wraps.
    pub wraps: Wraps,
    /// The options that it takes.
    pub options: &'static [EngineOption],
    /// Returns true if classifiers built to a specification take updates.
    pub dynamic: fn(&EngineSpec) -> bool,
    /// Returns a refusal if classifiers built to a specification do not support a schema.
    pub accepts: fn(&EngineSpec, &Schema) -> Result<(), Refusal>,
    /// Builds a classifier to a specification, over a copy of the rules. May panic if
    /// `accepts` returns a refusal or the host lacks something that an option requires.
    /// [`EngineSpec::build`] checks both before it calls this function.
    pub build: BuildFn,
    /// Estimates the costs of an engine built to a specification over rules of a shape.
    /// An engine that wraps another engine calls [`EngineSpec::costs`] for the inner
    /// engine. Not called if `accepts` returns a refusal or the host lacks something that
    /// an option requires. Limits are checked after the call.
    pub estimate: EstimateFn,
}

/// The build function of an engine: [`build_dynamic`](super::adapter::build_dynamic) or
/// [`build_static`](super::adapter::build_static), or a wrapper's own function.
pub type BuildFn = fn(&mut BuildRequest<'_>) -> Result<Box<dyn Classifier>, BuildError>;

/// The estimate function of an engine: costs that do not depend on the machine.
///
/// # Errors
/// The error that the build would return, such as [`BuildError::EngineFull`].
pub type EstimateFn = fn(&EngineSpec, &Shape) -> Result<Costs, BuildError>;

/// The kind of engines that an engine wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wraps {
    /// None.
    Nothing,
    /// Any engine that takes no updates.
    Static,
    /// Any engine.
    Any,
}

impl Engine {
    /// Returns true. For [`Engine::dynamic`] of an engine that takes updates.
    #[must_use]
    pub fn takes_updates(_: &EngineSpec) -> bool {
        true
    }

    /// Returns false. For [`Engine::dynamic`] of an engine that takes no updates.
    #[must_use]
    pub fn takes_no_updates(_: &EngineSpec) -> bool {
        false
    }

    /// Returns `Ok`. For [`Engine::accepts`] of an engine that supports every schema.
    ///
    /// # Errors
    /// Never.
    pub fn accepts_all(_: &EngineSpec, _: &Schema) -> Result<(), Refusal> {
        Ok(())
    }

    /// Returns the option with a name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'static EngineOption> {
        self.options.iter().find(|option| option.name == name)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({})", self.name)
    }
}

/// The rules, options and limits of a build.
pub struct BuildRequest<'a> {
    /// The engine and its options.
    pub spec: &'a EngineSpec,
    /// The rules. The build copies them.
    pub rules: &'a RuleSet,
    /// Limits on the build. The number of rules is checked before the build, and the
    /// bytes of the built engine after it.
    pub limits: &'a Limits,
    /// The progress callback.
    pub progress: &'a mut dyn Progress,
    /// Counts the memory of the build.
    pub memory: &'a mut Memory,
}

impl BuildRequest<'_> {
    /// The schema of the rules.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        self.rules.schema()
    }

    /// Reports that `done` of `total` steps of a stage are done. Engines call this at
    /// least every 100 ms.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if the progress callback cancels.
    pub fn report(
        &mut self,
        stage: &'static str,
        done: usize,
        total: usize,
    ) -> Result<(), BuildError> {
        self.memory.set_stage(stage);
        report(self.progress, stage, done, total)
    }

    /// Returns a monitor, which reports progress every [`Monitor::STEPS`] steps and
    /// counts memory. A build uses one monitor for all of its work and memory.
    pub fn monitor(&mut self) -> Monitor<'_> {
        Monitor::new(self.progress, self.memory)
    }

    /// Builds an inner engine over some rules, with the same limits, progress callback
    /// and memory counter. For engines that wrap another engine.
    ///
    /// # Errors
    /// The errors of [`EngineSpec::build`].
    pub fn build_inner(
        &mut self,
        spec: &EngineSpec,
        rules: &RuleSet,
    ) -> Result<Box<dyn Classifier>, BuildError> {
        spec.build_within(rules, self.limits, self.progress, self.memory)
    }
}

/// A specification of an engine: its name, its options, and the engine that it wraps.
/// Examples: `tuplemerge`, `tuplemerge:c=10`, `NAME(INNER):option=value`.
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
    pub(super) engine: &'static Engine,
    inner: Option<Box<EngineSpec>>,
    pub(super) options: EngineOptions,
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
    /// Sets the seed of this engine and of its inner engines to `number`. A seed that is
    /// given already stays. The result builds the same classifier in every process.
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

    pub(super) fn new(engine: &'static Engine, inner: Option<EngineSpec>) -> EngineSpec {
        EngineSpec {
            engine,
            inner: inner.map(Box::new),
            options: EngineOptions::new(engine.options),
        }
    }

    /// Returns a specification for every engine of a registry, with default options. A
    /// wrapper has one specification for each engine that it can wrap, except other
    /// wrappers.
    pub fn all_in(registry: &'static [Engine]) -> impl Iterator<Item = EngineSpec> {
        registry
            .iter()
            .flat_map(move |engine| EngineSpec::defaults(registry, engine))
    }

    /// Returns the specification of one engine of a registry, with default options. If
    /// the engine is a wrapper, returns one specification for each engine that it can
    /// wrap, except other wrappers.
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

    /// The options: given values, and defaults for all other options.
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
    /// [`BuildError`] if the engine does not support the schema, this host lacks
    /// something that an option requires, a limit is exceeded or the progress callback
    /// cancels.
    pub fn build(
        &self,
        rules: &RuleSet,
        limits: &Limits,
        progress: &mut dyn Progress,
    ) -> Result<Box<dyn Classifier>, BuildError> {
        self.build_within(rules, limits, progress, &mut Memory::new(limits))
    }

    /// Like [`build`](Self::build), with an existing memory counter. The limit on [peak
    /// bytes](Limits::peak_bytes) applies to everything that the counter counts, this
    /// build included.
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
    /// The [`BuildError`] with which [`build`](Self::build) would refuse such rules. The
    /// bytes in [`BuildError::TooManyBytes`] are estimated. So near the limit, one of the
    /// two functions may return an error and the other may not.
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
    pub(super) fn takes(self, inner: &EngineSpec) -> bool {
        match self {
            Wraps::Nothing => false,
            Wraps::Static => !inner.is_dynamic(),
            Wraps::Any => true,
        }
    }

    pub(super) fn allowed(self) -> &'static str {
        match self {
            Wraps::Nothing => "none",
            Wraps::Static => "one that takes no updates",
            Wraps::Any => "any engine",
        }
    }
}
