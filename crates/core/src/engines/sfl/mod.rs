//! `sfl(INNER)`: updates for an engine that takes none.
//!
//! # Idea
//! The inner engine is built over the rules at one moment. Rules inserted later are in a
//! small *update buffer*; removed rules are hidden in the inner engine. A lookup
//! searches the inner engine, then looks for a better rule in the buffer. When more than
//! δ changes are pending, the inner engine is rebuilt over all rules, the *master rule
//! set*, and the buffer is emptied.
//!
//! # Data layout
//! ```text
//! master:  all rules, with their actions                  places by id
//! inner:   an engine over the rules of its build          some of them hidden
//! buffer:  [ rank ] …   [ value mask high ] …             best first
//!          [ value × 8 | care × 8 ] …                     the same rules, by eights
//! log:     [ id ] …                                       changes since the build
//! ```
//!
//! # Lookup
//! ```text
//! winner = the inner engine's
//! for eight rules in the buffer, while the first rule's rank beats winner:
//!     for the rules whose fixed bits all equal the key's, best first:
//!         if it matches: winner = rule, stop
//! ```
//!
//! # Updates
//! ```text
//! insert: put the rule into the master set and into the buffer
//! remove: remove it from the master set, and from the buffer; if it is not in the
//!         buffer, hide it in the inner engine
//! ```
//! With `rebuild=beside`, the default, the caller rebuilds the inner engine while
//! lookups and updates continue: [`Reoptimise`](crate::contract::reoptimise::Reoptimise) reports
//! when a rebuild is due, copies the rules some hundred at a time, and adopts the new
//! engine. Rules that changed during the build are in the log: they are
//! hidden in the new engine, and stay in the buffer. If the caller does not rebuild, an
//! update does when more than 8 (δ + 1) changes are pending, or when pending changes have
//! cost as much as 8 builds. With `rebuild=at-once`, the update after which a rebuild is due
//! rebuilds.
//!
//! # Cost
//! With b pending changes, a lookup costs as much as in the inner engine, plus b/16
//! comparisons of eight rules each in the mean. Insert takes O(b), remove O(log n + b).
//! Memory: the rules once more than in the inner engine, and two inner engines during a
//! rebuild.
//!
//! # The value of δ
//! A rebuild is due when more than δ changes are pending. If δ is not given, pending changes
//! may cost as much as a build ([`threshold`]). The costs of lookups and changes are counted,
//! since the rates may change. With `lookups=N`, δ is the optimum for N lookups for each
//! change.
//!
//! The time of a build is the work of the last build, measured by its progress reports, which
//! come after equal steps of work: the library reads no clock.
//!
//! # Where we differ from the paper, and why
//! `form=paper` is the method as published, with indices, nodes and offsets; see
//! [`paper`]. The default form differs as follows:
//! - Rules are identified by rank and id. Insertions do not change these, so there are
//!   no offsets.
//! - A deleted rule is hidden in the inner engine. In the paper, a lookup that finds a
//!   deleted rule searches all rules behind it. Here only inner engines that cannot hide
//!   need a search.
//! - Rebuilds run during updates. In the paper the update that exceeds δ rebuilds.
//! - The engine chooses δ. The paper measures several values and gives no rule.
//! - If the inner engine refuses the current rules, because of a limit of its own, the
//!   old one is kept; the next rebuild is tried when the number of pending changes has
//!   doubled.
//!
//! # References
//! [SFL17] §IV.
//!
//! [SFL17]: crate::papers#sfl17

mod buffer;
mod buffered;
mod master;
mod paper;
mod rebuild;
#[cfg(test)]
mod tests;
mod threshold;

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::budget::progress::Progress;
use crate::contract::adapter::{DynamicEveryWidth, build_dynamic};
use crate::contract::classifier::Classifier;
use crate::contract::options::{EngineOption, OptionValue};
use crate::contract::spec::BuildRequest;
use crate::contract::spec::EngineSpec;
use crate::contract::spec::{Engine, Wraps};
use crate::cost::estimate::{Costs, Shape};
use crate::cost::machine::{Machine, Work};
use crate::model::error::BuildError;
use crate::model::schema::Schema;
use crate::parts::simd::Isa;

use buffered::Buffered;
use master::Master;
use paper::Paper;
use threshold::{LookupCount, MAX_DELTA, Threshold, optimal_delta};

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "sfl",
    summary: "updates for a static engine: rules that change wait in a buffer until it is rebuilt",
    paper: "[SFL17] §IV",
    wraps: Wraps::Static,
    options: &[
        EngineOption::whole_or_auto(
            "delta",
            (0, MAX_DELTA),
            "changes that may wait; more make a rebuild due",
        ),
        EngineOption::whole_or_auto(
            "lookups",
            (1, 1_000_000_000),
            "lookups for each change, by which `delta=auto` weighs waiting against rebuilding; \
             auto: counted, and 10000 with form=paper",
        ),
        EngineOption::choice(
            "rebuild",
            &["beside", "at-once"],
            "beside: by re-optimisation, while lookups and updates go on; at-once: within the \
             update that exceeds delta",
        ),
        EngineOption::choice(
            "form",
            &["stable", "paper"],
            "stable: rules known by id; paper: by index, as published, rebuilt at once",
        ),
        EngineOption::host_choice(
            "isa",
            &Isa::NAMES,
            Isa::lacks,
            "instructions to compare the buffer's rules with; form=paper uses none of them",
        ),
    ],
    dynamic: Engine::takes_updates,
    accepts: |spec, schema| inner_of(spec).accepts(schema),
    build,
    estimate,
};

/// Returns the inner engine's specification.
fn inner_of(spec: &EngineSpec) -> &EngineSpec {
    spec.inner().expect("it wraps an engine")
}

/// The forms at every key width.
struct Stable;
struct Published;

impl DynamicEveryWidth for Stable {
    type At<const W: usize> = Buffered;
}

impl DynamicEveryWidth for Published {
    type At<const W: usize> = Paper;
}

fn build(request: &mut BuildRequest<'_>) -> Result<Box<dyn Classifier>, BuildError> {
    match request.spec.options().choice("form") {
        "paper" => build_dynamic::<Published>(request),
        _ => build_dynamic::<Stable>(request),
    }
}

/// The options about rebuilding.
#[derive(Clone, Copy)]
struct Settings {
    /// `None` for `auto`.
    delta: Option<usize>,
    /// `None` for `auto`.
    lookups: Option<usize>,
    at_once: bool,
    isa: Isa,
}

impl Settings {
    fn of(spec: &EngineSpec) -> Settings {
        let options = spec.options();
        let number = |option| match options.value(option) {
            OptionValue::Whole(number) => Some(number),
            _ => None,
        };
        Settings {
            delta: number("delta"),
            lookups: number("lookups"),
            at_once: options.choice("rebuild") == "at-once",
            isa: Isa::named(options.choice("isa")).expect("the specification was checked"),
        }
    }

    /// Returns the number of changes that may be pending, if lookups are not counted.
    #[allow(clippy::cast_precision_loss)] // an estimate
    fn delta(&self, build_cost: f64) -> usize {
        let lookups = self.lookups.unwrap_or(ASSUMED_LOOKUPS) as f64;
        (self.delta).unwrap_or_else(|| optimal_delta(build_cost, lookups))
    }

    /// Returns the threshold after a build. `lookups` are counted by the engine, if any are.
    fn threshold(&self, lookups: Option<&Arc<LookupCount>>, build_cost: f64) -> Threshold {
        match (self.delta, self.lookups) {
            (None, None) => {
                let lookups = lookups.map_or_else(Arc::default, Arc::clone);
                Threshold::counting(lookups, build_cost)
            }
            _ => Threshold::fixed(self.delta(build_cost), build_cost),
        }
    }
}

/// Returns the cost in comparisons of a build with that number of progress reports.
#[allow(clippy::cast_precision_loss)] // an estimate
fn build_cost(schema: &Schema, reports: usize) -> f64 {
    reports as f64 * REPORT_NS / compare_ns(schema.rule_words())
}

/// Forwards progress, and counts the reports.
struct Counted<'a> {
    progress: &'a mut dyn Progress,
    reports: usize,
}

impl<'a> Counted<'a> {
    fn new(progress: &'a mut dyn Progress) -> Counted<'a> {
        Counted {
            progress,
            reports: 0,
        }
    }
}

impl Progress for Counted<'_> {
    fn report(&mut self, stage: &'static str, done: usize, total: usize) -> ControlFlow<()> {
        self.reports += 1;
        self.progress.report(stage, done, total)
    }
}

/// Returns the time of a lookup for each rule of the buffer. A lookup compares half of
/// the rules.
#[allow(clippy::cast_precision_loss)] // an estimate
fn compare_ns(rule_words: usize) -> f64 {
    (COMPARE_NS + COMPARE_WORD_NS * rule_words as f64) / 2.0
}

/// Prices in nanoseconds: to compare a rule of the buffer, fixed and for each of its words.
/// Measured in `bench/records/constants.md` (SFL).
const COMPARE_NS: f64 = 0.06;
const COMPARE_WORD_NS: f64 = 0.02;
/// The work between two reports of progress: 4,096 steps. Measured in
/// `bench/records/sfl17-updates.md` (Counting lookups).
const REPORT_NS: f64 = 200_000.0;

/// The lookups for each change that estimates and `form=paper` assume with `lookups=auto`: no
/// value is the best for all loads.
const ASSUMED_LOOKUPS: usize = 10_000;

// Numbers of instructions.
/// Comparing a rule of the buffer: fixed, and for each of its words. Measured in
/// `bench/records/constants.md` (SFL).
const COMPARE_WORK: f64 = 0.3;
const COMPARE_WORD: f64 = 0.1;
/// A lookup, in addition to the inner engine's. Measured in
/// `bench/records/constants.md` (SFL).
const LOOKUP_WORK: f64 = 40.0;
/// Copying a rule into the master set. Measured in `bench/records/constants.md`
/// (SFL).
const COPY_WORK: f64 = 300.0;
/// An update of the master set and the buffer. Measured in
/// `bench/records/constants.md` (SFL).
const UPDATE_WORK: f64 = 2500.0;

/// Costs of the inner engine and the master rule set. In the mean, half of the allowed
/// changes are pending, and lookups compare them. Each change has its share of the cost
/// of the next rebuild.
#[allow(clippy::cast_precision_loss)] // an estimate
fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    let limits = crate::model::limits::Limits::default();
    let inner = inner_of(spec).costs(shape, &limits)?;
    let rules = shape.rules();
    let master_bytes = match spec.options().choice("form") {
        "paper" => Paper::bytes_of(shape.schema(), rules),
        _ => Master::bytes_of(shape.schema(), rules),
    };
    let build = inner.build + Work::of(rules as f64 * COPY_WORK);
    let rule_words = shape.schema().rule_words();
    let build_cost = Machine::default().ns(&build) / compare_ns(rule_words);
    let waiting = Settings::of(spec).delta(build_cost) as f64;
    let compared = waiting / 2.0 * (COMPARE_WORK + COMPARE_WORD * rule_words as f64) / 2.0;
    Ok(Costs {
        bytes: inner.bytes.saturating_add(master_bytes),
        batch: inner.batch + Work::of(LOOKUP_WORK + compared),
        single: inner.single + Work::of(LOOKUP_WORK + compared),
        update: Some(Work::of(UPDATE_WORK) + build.clone() * (1.0 / waiting.max(1.0))),
        build,
    })
}
