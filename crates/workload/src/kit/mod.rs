//! The test kit: everything needed to hold a classifier against the
//! definition of its answers.
//!
//! It is a product: `classyard check` runs it on users' rules and traffic, and
//! authors of engines can run it on their own. So it reports what it finds
//! instead of asserting, it says what it checked, and what could not be
//! checked is a [`Skip`] with a reason.
//!
//! | part | what it is for |
//! |---|---|
//! | [`random`] | nasty rules, headers, schemas and updates, from a seed or from a fuzzer's bytes |
//! | [`oracle`] | the definition: a plain list of rules that changes |
//! | [`differential`] | any engines against the oracle, over a stream of updates |
//! | [`rounds`] | such runs over one random schema after the other |
//! | [`collider`] | several engines against each other, over a trace of headers |
//! | [`vectors`] | cases written by hand, with their answers, in files |
//!
//! An answer is held against more than the right winner. A masked lookup's
//! mask is checked *exactly*: no header that agrees with the looked-up one on
//! the mask may have another outcome ([`oracle::Oracle::escape`]).

use std::any::Any;
use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Once, OnceLock};

use classyard::engine::ENGINES;
use classyard::engine::Engine;
use classyard::error::Refusal;
use classyard::{
    BuildError, Classifier, EngineSpec, KeyVec, Limits, NoProgress, Progress, RuleSet, Schema,
};

pub mod collider;
pub mod differential;
pub mod oracle;
pub mod random;
pub mod rounds;
pub mod text;
pub mod vectors;

/// How a subject builds a classifier.
pub type BuildFn = dyn Fn(&RuleSet, &Limits, &mut dyn Progress) -> Result<Box<dyn Classifier>, BuildError>
    + Send
    + Sync;

/// What is tested: a way to build a classifier, with a name.
///
/// Made from an [`EngineSpec`], or from a function for a classifier that is in
/// no registry.
pub struct Subject {
    name: String,
    dynamic: bool,
    /// Unless it is in no registry.
    spec: Option<EngineSpec>,
    build: Box<BuildFn>,
}

impl Subject {
    /// A classifier that is in no registry. `dynamic` says whether it takes
    /// updates.
    pub fn new(
        name: &str,
        dynamic: bool,
        build: impl Fn(&RuleSet, &Limits, &mut dyn Progress) -> Result<Box<dyn Classifier>, BuildError>
        + Send
        + Sync
        + 'static,
    ) -> Subject {
        Subject {
            name: name.to_owned(),
            dynamic,
            spec: None,
            build: Box::new(build),
        }
    }

    /// Every registered engine with its defaults.
    #[must_use]
    pub fn engines() -> Vec<Subject> {
        EngineSpec::all().map(Subject::from).collect()
    }

    /// Every registered engine with its defaults, and with each option set to
    /// each of the values that [`variants`] tries and this host can do.
    #[must_use]
    pub fn variants() -> Vec<Subject> {
        variant_specs().into_iter().map(Subject::from).collect()
    }

    /// The name: an engine's specification.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether classifiers built by it take updates.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.dynamic
    }

    /// Whether it can be built over rules of a schema.
    ///
    /// # Errors
    /// [`Refusal`] of the engine's specification; none for a classifier that is
    /// in no registry.
    pub fn accepts(&self, schema: &Schema) -> Result<(), Refusal> {
        self.spec
            .as_ref()
            .map_or(Ok(()), |spec| spec.accepts(schema))
    }

    /// Builds a classifier over a copy of the rules.
    ///
    /// # Errors
    /// Whatever the engine says.
    pub fn build(
        &self,
        rules: &RuleSet,
        limits: &Limits,
        progress: &mut dyn Progress,
    ) -> Result<Box<dyn Classifier>, BuildError> {
        (self.build)(rules, limits, progress)
    }
}

impl From<EngineSpec> for Subject {
    /// Seeds that the specification leaves to the process are set, so that what
    /// is found can be repeated by the subject's name in another process.
    fn from(spec: EngineSpec) -> Subject {
        let spec = spec.seeded(subject_seed());
        Subject {
            name: spec.to_string(),
            dynamic: spec.is_dynamic(),
            spec: Some(spec.clone()),
            build: Box::new(move |rules, limits, progress| spec.build(rules, limits, progress)),
        }
    }
}

/// The seed of subjects that are given none: one for each process, so that all
/// runs together try many. It is printed, so it is not that of the process,
/// which must stay secret; and it is short, for people read it.
fn subject_seed() -> u64 {
    static DRAWN: OnceLock<u64> = OnceLock::new();
    *DRAWN.get_or_init(|| RandomState::new().hash_one(0_u64) >> 32)
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subject({})", self.name)
    }
}

/// Specifications to test, and those that this host cannot build.
#[derive(Clone, Debug)]
pub struct Variants {
    /// What can be built.
    pub specs: Vec<EngineSpec>,
    /// What cannot, and what the host lacks: one for each such specification.
    pub skips: Vec<Skip>,
}

/// Every engine of a registry with its defaults, and with each option set to
/// each of [a few values](classyard::engine::EngineOption::samples) that it
/// declares: bounds, default and small numbers, or all words.
#[must_use]
pub fn variants(registry: &'static [Engine]) -> Variants {
    let mut variants = Variants {
        specs: EngineSpec::all_in(registry).collect(),
        skips: Vec::new(),
    };
    for engine in registry {
        // Around one engine, if it wraps one: options are the wrapper's own.
        let Some(plain) = EngineSpec::defaults(registry, engine).next() else {
            continue;
        };
        for option in engine.options {
            for value in option.samples() {
                let spec = plain.clone().with(option.name, &value.to_string());
                let spec = spec.expect("samples are among the declared values");
                match option.lacks(&value) {
                    None => variants.specs.push(spec),
                    Some(reason) => variants.skips.push(Skip {
                        subject: plain.to_string(),
                        what: format!("{}={value}", option.name),
                        reason,
                    }),
                }
            }
        }
    }
    variants
}

/// Those [`variants`] of the registered engines that this host can build.
#[must_use]
pub fn variant_specs() -> Vec<EngineSpec> {
    variants(ENGINES).specs
}

/// Specifications of the engines that have code for several instruction sets:
/// with each one that this processor has.
#[must_use]
pub fn isa_specs() -> Vec<EngineSpec> {
    let forced = |spec: &EngineSpec| {
        let text = spec.to_string();
        text.contains(":isa=") && !text.contains(":isa=auto")
    };
    variant_specs().into_iter().filter(forced).collect()
}

/// Something that was not checked, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The engine.
    pub subject: String,
    /// What was not checked.
    pub what: String,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Skip {
            subject,
            what,
            reason,
        } = self;
        write!(f, "{subject}: {what} skipped: {reason}")
    }
}

/// Re-optimises a classifier, and does `steps` steps of installing the plan at
/// once; `false` for classifiers that cannot be re-optimised.
fn reoptimise(classifier: &mut dyn Classifier, steps: usize) -> Result<bool, BuildError> {
    let dynamic = classifier.as_dynamic();
    let Some(engine) = dynamic.and_then(|dynamic| dynamic.reoptimise_mut()) else {
        return Ok(false);
    };
    let plan = engine.snapshot().compute(&mut NoProgress)?;
    let plan = plan.expect("the snapshot is complete");
    assert!(engine.install(&plan), "the engine refuses its own plan");
    engine.step(steps);
    Ok(true)
}

/// Calls a classifier, and turns a panic into its message.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| panic_message(payload.as_ref()))
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs something that may panic thousands of times, on purpose, without
/// telling the user each time. Other threads' panics print as ever.
pub(crate) fn quietly<T>(call: impl FnOnce() -> T) -> T {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        type Hook = Box<dyn Fn(&std::panic::PanicHookInfo<'_>) + Sync + Send>;
        static PREVIOUS: OnceLock<Hook> = OnceLock::new();
        let previous = PREVIOUS.get_or_init(take_hook);
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                previous(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = call();
    QUIET.set(before);
    result
}

/// `length` keys from `start` on, going round.
pub(crate) fn ring(keys: &KeyVec, start: usize, length: usize) -> KeyVec {
    let mut ring = KeyVec::new(keys.schema());
    for row in start..start + length {
        ring.push_key(keys.key(row % keys.len()));
    }
    ring
}
