//! `sfl(INNER)`: updates for an engine that takes none.
//!
//! # Idea
//! The inner engine is built over the rules of some moment. Rules that come
//! later wait in a small *update buffer*, those that go are hidden in the inner
//! engine. A lookup asks the inner engine, then looks for a better rule in the
//! buffer. When more than δ changes wait, the inner engine is built anew over
//! all rules, the *master rule set*, and the buffer is emptied.
//!
//! # Data layout
//! ```text
//! master:  all rules, with their actions                  places by id
//! inner:   an engine over the rules of its build          some of them hidden
//! buffer:  [ rank ] …   [ value mask high ] …             best first
//!          [ value × 8 | care × 8 ] …                     the same, by eights
//! log:     [ id ] …                                       changes since the build
//! ```
//!
//! # Lookup
//! ```text
//! winner = the inner engine's
//! for eight rules in the buffer, while the first one's rank beats winner:
//!     for those that fix no bit in which the key differs, best first:
//!         if it matches: winner = rule, stop
//! ```
//!
//! # Updates
//! ```text
//! insert: put the rule into the master set and into the buffer
//! remove: take it out of the master set; out of the buffer, or hide it in the
//!         inner engine
//! ```
//! With `rebuild=beside`, the default, the caller builds the inner engine anew
//! while lookups and updates go on: [`Reoptimise`](crate::reoptimise::Reoptimise) says when
//! more than δ changes wait, copies the rules some hundred at a time, and takes
//! the new engine in. What was changed meanwhile is found in the log: these
//! rules are hidden in the new engine, and stay in the buffer. Where a caller
//! does not do that, the update after which [`PATIENCE`] times as many changes
//! wait rebuilds. With `rebuild=at-once`, the update after which more than δ
//! wait does.
//!
//! # Cost
//! b changes wait: lookup as the inner engine and b/16 comparisons in the mean, of
//! eight rules each; insert O(b), remove O(log n + b). Memory: the rules once more
//! than in the inner engine, and both of its structures while a new one is built.
//!
//! # The threshold
//! `delta=auto` is where waiting costs as much as rebuilding. With B nanoseconds
//! for a build, c for comparing a rule, and l lookups for each change, k
//! changes cost B + c l k²/2 until the next rebuild, which is least for each
//! change at k = √(2 B / c l). B is the work of the last build, known by its
//! reports of progress, which come after equal steps of work; l is the option
//! `lookups`.
//!
//! # Where we differ from the paper, and why
//! `form=paper` is the method as published, with indices, nodes and offsets; see
//! [`paper`]. The form of the default has these differences:
//! - Rules are known by rank and id, which no insertion shifts, so there are no
//!   offsets.
//! - A deleted rule is hidden in the inner engine. In the paper, a lookup that
//!   finds a deleted rule searches all rules behind it; that is left for inner
//!   engines that cannot hide.
//! - Rebuilding beside updates. In the paper the update that exceeds δ rebuilds.
//! - An inner engine that refuses the rules of now, for a limit of its own, is
//!   kept; the next rebuild is tried when twice as many changes wait.
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

use std::ops::ControlFlow;

use crate::classifier::Classifier;
use crate::engine::adapter::{BuildRequest, DynamicFamily, build_dynamic};
use crate::engine::{Engine, EngineOption, EngineSpec, OptionValue, Wraps};
use crate::error::BuildError;
use crate::estimate::{Costs, Shape};
use crate::machine::{Machine, Work};
use crate::progress::Progress;
use crate::schema::Schema;
use crate::simd::Isa;

use buffered::Buffered;
use master::Master;
use paper::Paper;

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "sfl",
    summary: "updates for a static engine: rules that change wait in a buffer until it is rebuilt",
    paper: "[SFL17] §IV",
    wraps: Wraps::Static,
    options: &[
        EngineOption::whole_or_auto(
            "delta",
            (0, 1_000_000),
            "changes that may wait; more make a rebuild due",
        ),
        EngineOption::whole(
            "lookups",
            (1, 1_000_000_000),
            10_000,
            "lookups for each change, by which `delta=auto` weighs waiting against rebuilding",
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

/// Times delta changes after which an update rebuilds, if nobody else did.
const PATIENCE: usize = 8;

/// The inner engine's specification.
fn inner_of(spec: &EngineSpec) -> &EngineSpec {
    spec.inner().expect("it wraps an engine")
}

/// The forms at every key width.
struct Stable;
struct Published;

impl DynamicFamily for Stable {
    type At<const W: usize> = Buffered;
}

impl DynamicFamily for Published {
    type At<const W: usize> = Paper;
}

fn build(request: &mut BuildRequest<'_>) -> Result<Box<dyn Classifier>, BuildError> {
    match request.spec.options().choice("form") {
        "paper" => build_dynamic::<Published>(request),
        _ => build_dynamic::<Stable>(request),
    }
}

/// What the options say about rebuilding.
#[derive(Clone, Copy)]
struct Settings {
    /// `None` for `auto`.
    delta: Option<usize>,
    lookups: usize,
    at_once: bool,
    isa: Isa,
}

impl Settings {
    fn of(spec: &EngineSpec) -> Settings {
        let options = spec.options();
        Settings {
            delta: match options.value("delta") {
                OptionValue::Whole(delta) => Some(delta),
                _ => None,
            },
            lookups: options.whole("lookups"),
            at_once: options.choice("rebuild") == "at-once",
            isa: Isa::named(options.choice("isa")).expect("the specification was checked"),
        }
    }

    /// The changes that may wait beside an inner engine that took so many reports
    /// of progress to build.
    #[allow(clippy::cast_precision_loss)] // an estimate
    fn delta(&self, schema: &Schema, reports: usize) -> usize {
        self.waiting(schema.rule_words(), reports as f64 * REPORT_NS)
    }

    /// The same where building takes so many nanoseconds.
    #[allow(clippy::cast_precision_loss)] // an estimate
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn waiting(&self, rule_words: usize, build_ns: f64) -> usize {
        if let Some(delta) = self.delta {
            return delta;
        }
        let compare = compare_ns(rule_words);
        let changes = (2.0 * build_ns / (compare * self.lookups as f64)).sqrt();
        changes.clamp(1.0, 1e6) as usize
    }
}

/// Passes progress on, and counts the reports.
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

/// Comparing a rule of the buffer, half of which a lookup compares.
#[allow(clippy::cast_precision_loss)] // an estimate
fn compare_ns(rule_words: usize) -> f64 {
    (COMPARE_NS + COMPARE_WORD_NS * rule_words as f64) / 2.0
}

// Prices in nanoseconds; what they were fitted to: see `estimate`.
const COMPARE_NS: f64 = 0.06;
const COMPARE_WORD_NS: f64 = 0.02;
/// The work between two reports of progress: 4,096 steps.
const REPORT_NS: f64 = 400_000.0;

// Instructions; what they were fitted to: see `crate::estimate`.
/// Comparing a rule of the buffer, and for each of its words.
const COMPARE: f64 = 0.3;
const COMPARE_WORD: f64 = 0.1;
/// A lookup beside the inner engine's.
const LOOKUP: f64 = 40.0;
/// Copying a rule into the master set.
const BUILD: f64 = 300.0;
/// An update of the master set and the buffer.
const UPDATE: f64 = 2500.0;

/// The inner engine and the master rule set. In the mean half of the changes that
/// may wait do so, which lookups compare; and each change has its share of the
/// rebuild that ends their waiting.
#[allow(clippy::cast_precision_loss)] // an estimate
fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    let limits = crate::limits::Limits::default();
    let inner = inner_of(spec).costs(shape, &limits)?;
    let rules = shape.rules();
    let own = match spec.options().choice("form") {
        "paper" => Paper::bytes_of(shape.schema(), rules),
        _ => Master::bytes_of(shape.schema(), rules),
    };
    let build = inner.build + Work::of(rules as f64 * BUILD);
    let rule_words = shape.schema().rule_words();
    let waiting = Settings::of(spec).waiting(rule_words, Machine::default().ns(&build)) as f64;
    let compared = waiting / 2.0 * (COMPARE + COMPARE_WORD * rule_words as f64) / 2.0;
    Ok(Costs {
        bytes: inner.bytes.saturating_add(own),
        batch: inner.batch + Work::of(LOOKUP + compared),
        single: inner.single + Work::of(LOOKUP + compared),
        update: Some(Work::of(UPDATE) + build.clone() * (1.0 / waiting.max(1.0))),
        build,
    })
}
