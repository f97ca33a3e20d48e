//! Classifiers under test, and checks that were omitted.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::OnceLock;

use classyard::engine::{ENGINES, Engine};
use classyard::error::Refusal;
use classyard::{BuildError, Classifier, EngineSpec, Limits, Progress, RuleSet, Schema};

/// A function with which a subject builds a classifier.
pub type BuildFn = dyn Fn(&RuleSet, &Limits, &mut dyn Progress) -> Result<Box<dyn Classifier>, BuildError>
    + Send
    + Sync;

/// A classifier under test: a function that builds it, with a name.
///
/// A subject is created from an [`EngineSpec`] or, for a classifier that is not in a
/// registry, from a function.
pub struct Subject {
    name: String,
    dynamic: bool,
    /// The specification; `None` for a classifier that is not in a registry.
    spec: Option<EngineSpec>,
    build: Box<BuildFn>,
}

impl Subject {
    /// Returns a subject for a classifier that is not in a registry. `dynamic` is true if
    /// the classifier supports updates.
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

    /// Returns every registered engine with its defaults.
    #[must_use]
    pub fn engines() -> Vec<Subject> {
        EngineSpec::all().map(Subject::from).collect()
    }

    /// Returns every registered engine with its defaults, and with each option set to each
    /// value of [`variants`] that this host supports.
    #[must_use]
    pub fn variants() -> Vec<Subject> {
        variant_specs().into_iter().map(Subject::from).collect()
    }

    /// The name. For registered engines it is the engine's specification.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if its classifiers support updates.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        self.dynamic
    }

    /// Checks that it can be built over rules of a schema.
    ///
    /// # Errors
    /// [`Refusal`] of the engine's specification. A classifier that is not in a registry
    /// never refuses.
    pub fn accepts(&self, schema: &Schema) -> Result<(), Refusal> {
        self.spec
            .as_ref()
            .map_or(Ok(()), |spec| spec.accepts(schema))
    }

    /// Builds a classifier over a copy of the rules.
    ///
    /// # Errors
    /// The engine's error.
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
    /// Creates a subject from a specification. Seeds that the specification leaves to the
    /// process are set, so that the subject's name repeats a finding in another process.
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

/// Returns the seed of subjects without a given seed: a random seed for each process, so
/// that all runs together try many seeds. It is printed, so it differs from the seed of
/// the process, which must stay secret. It has only 32 bits, because people read it.
fn subject_seed() -> u64 {
    static DRAWN: OnceLock<u64> = OnceLock::new();
    *DRAWN.get_or_init(|| RandomState::new().hash_one(0_u64) >> 32)
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subject({})", self.name)
    }
}

/// Specifications to test, and specifications that this host cannot build.
#[derive(Clone, Debug)]
pub struct Variants {
    /// The specifications that can be built.
    pub specs: Vec<EngineSpec>,
    /// The specifications that cannot be built, each with the feature that the host lacks.
    pub skips: Vec<Skip>,
}

/// Returns every engine of a registry with its defaults, and with each option set to each
/// of [a few values](classyard::engine::EngineOption::samples) that it declares: bounds,
/// default and small numbers, or all words.
#[must_use]
pub fn variants(registry: &'static [Engine]) -> Variants {
    let mut variants = Variants {
        specs: EngineSpec::all_in(registry).collect(),
        skips: Vec::new(),
    };
    for engine in registry {
        // A wrapper is tested around one engine only, as the options are the wrapper's own.
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

/// Returns the [`variants`] of the registered engines that this host can build.
#[must_use]
pub fn variant_specs() -> Vec<EngineSpec> {
    variants(ENGINES).specs
}

/// Returns specifications of the engines with code for several instruction sets, one for
/// each instruction set that this processor has.
#[must_use]
pub fn isa_specs() -> Vec<EngineSpec> {
    let forced = |spec: &EngineSpec| {
        let text = spec.to_string();
        text.contains(":isa=") && !text.contains(":isa=auto")
    };
    variant_specs().into_iter().filter(forced).collect()
}

/// A check that was omitted, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The engine.
    pub subject: String,
    /// The omitted check.
    pub what: String,
    /// The reason.
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
