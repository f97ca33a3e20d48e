//! The test kit: everything needed to hold a classifier against the
//! definition of its answers.
//!
//! It is a product: `classyard check` runs it on users' rules and traffic, and
//! whoever writes an engine can run it on theirs. So it reports what it finds
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
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Once, OnceLock};

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
            build: Box::new(build),
        }
    }

    /// Every registered engine with its defaults.
    #[must_use]
    pub fn engines() -> Vec<Subject> {
        EngineSpec::all().map(Subject::from).collect()
    }

    /// Every registered engine with its defaults and with each value, of a
    /// few that are tried, that each of its options takes.
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
    fn from(spec: EngineSpec) -> Subject {
        Subject {
            name: spec.to_string(),
            dynamic: spec.engine().dynamic,
            build: Box::new(move |rules, limits, progress| spec.build(rules, limits, progress)),
        }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subject({})", self.name)
    }
}

/// Numbers that are tried for each option, as far as the engine takes them.
const OPTION_VALUES: [&str; 4] = ["0", "1", "2", "8"];

/// Specifications of every registered engine: with its defaults, and with each
/// option set to each of a few values.
///
/// The values are small numbers, and whatever words and numbers the engine
/// itself names when it refuses a value: the choices, or both bounds.
#[must_use]
pub fn variant_specs() -> Vec<EngineSpec> {
    let nothing = RuleSet::new(&Schema::ipv4_5tuple());
    let build = |spec: &EngineSpec| spec.build(&nothing, &Limits::default(), &mut NoProgress);
    let mut specs: Vec<EngineSpec> = EngineSpec::all().collect();
    for engine in classyard::ENGINES {
        for option in engine.options {
            let with = |value: &str| {
                EngineSpec::parse(&format!("{}:{}={value}", engine.name, option.name)).ok()
            };
            let refused = with("?").map(|spec| build(&spec));
            let named = match refused {
                Some(Err(BuildError::BadOption { expected, .. })) => expected,
                _ => String::new(),
            };
            let part_of_value = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let mut values: Vec<&str> = named.split(|c| !part_of_value(c)).collect();
            values.extend(OPTION_VALUES);
            values.sort_unstable();
            values.dedup();
            let accepted = values.into_iter().filter_map(with);
            specs.extend(accepted.filter(|spec| build(spec).is_ok()));
        }
    }
    specs
}

/// The names of instruction sets, as engines' option `isa` takes them.
const INSTRUCTION_SETS: [&str; 3] = ["avx512", "avx2", "scalar"];

/// Specifications of the engines that have code for several instruction sets:
/// with each one that this processor has.
#[must_use]
pub fn isa_specs() -> Vec<EngineSpec> {
    let nothing = RuleSet::new(&Schema::ipv4_5tuple());
    let engines = classyard::ENGINES.iter();
    let specs = engines.flat_map(|engine| {
        let spec = |isa| EngineSpec::parse(&format!("{}:isa={isa}", engine.name)).ok();
        INSTRUCTION_SETS.into_iter().filter_map(spec)
    });
    let builds = |spec: &EngineSpec| {
        let built = spec.build(&nothing, &Limits::default(), &mut NoProgress);
        built.is_ok()
    };
    specs.filter(builds).collect()
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

/// Has a classifier learn again from its rules, and adopt so many steps of that
/// at once; `false` for classifiers that do not learn.
fn relearn(classifier: &mut dyn Classifier, steps: usize) -> Result<bool, BuildError> {
    let Some(dynamic) = classifier.as_dynamic() else {
        return Ok(false);
    };
    let Some(plan) = dynamic.learn(&mut NoProgress)? else {
        return Ok(false);
    };
    assert!(
        plan.fits(dynamic) && dynamic.adopt(&plan),
        "the engine does not take its own plan"
    );
    dynamic.maintain(steps);
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

/// As many keys as asked for, going round.
pub(crate) fn ring(keys: &KeyVec, start: usize, length: usize) -> KeyVec {
    let mut ring = KeyVec::new(keys.schema());
    for row in start..start + length {
        ring.push_key(keys.key(row % keys.len()));
    }
    ring
}
