//! [SFL17] §V: the gain of an update buffer for engines that take no updates.
//!
//! [SFL17]: classyard::papers#sfl17

use std::time::Duration;

use classyard::EngineSpec;
use classyard_report::failure::Failure;

use super::claims::Section;
use super::figure::{Figure, OwnFigure};
use super::inputs::LOOKUP_INPUTS;
use super::request::{Common, Paper, Request, at_least_one, run_time, sizes};
use super::study::Study;
use cases::Case;
use simulator::{Load, Outcome};

mod cases;
pub(super) mod operations;
mod own;
mod simulator;
pub(super) mod threshold;
mod threshold_claims;
mod update_claims;
pub(super) mod updates;

/// The paper.
const PAPER: Paper = Paper {
    key: "sfl17",
    name: "sfl17",
    title: "The Small, the Fast and the Lazy [SFL17], measured with classyard",
    headers: 100_000,
    is_stored_by_set: false,
};

/// Its figures and tables.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "operations",
        draw: operations::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: false,
            draw: own::draw_operations,
        }),
    },
    Figure {
        name: "updates",
        draw: updates::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: false,
            draw: own::draw_updates,
        }),
    },
    Figure {
        name: "threshold",
        draw: threshold::draw,
        own: Some(OwnFigure {
            accepts: LOOKUP_INPUTS,
            needs_updates: false,
            draw: own::draw_threshold,
        }),
    },
];

/// The Small, the Fast and the Lazy (SFL), 2017
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures:
  operations       changes and lookups, each for itself (Fig. 5)
  updates          headers and changes in 10 seconds (Table II, Fig. 6)
  threshold        the same against δ (Figs. 7 and 8)

Examples:
  classyard reproduce sfl17 --quick
  classyard reproduce sfl17 --figures updates --sets 3 --run 2s")]
pub(super) struct Args {
    #[command(flatten)]
    common: Common,

    /// Numbers of rules; only the first counts [default: 2k, as in the paper]
    #[arg(long, value_delimiter = ',', value_parser = sizes, value_name = "COUNTS")]
    sizes: Vec<usize>,

    /// Profiles: built-in names or TOML files [default: all built-in ones]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    profiles: Vec<String>,

    /// Headers in each trace [default: 100k, quick 20k]
    #[arg(long, value_parser = at_least_one, value_name = "COUNT")]
    headers: Option<usize>,

    /// Rule sets for each point, taken from the profiles in rotation [default: 10, quick 5]
    #[arg(long, value_parser = at_least_one, value_name = "COUNT")]
    sets: Option<usize>,

    /// Length of a run of the simulator, 10 seconds in the paper; the rate of changes is
    /// the paper's [default: 10s, quick 250ms]
    #[arg(long, value_parser = run_time, value_name = "TIME")]
    run: Option<Duration>,
}

impl Args {
    pub(super) fn request(&self) -> Request {
        Request {
            sizes: self.sizes.clone(),
            profiles: self.profiles.clone(),
            headers: self.headers,
            sets: self.sets,
            run: self.run,
            ..Request::new(&PAPER, &self.common)
        }
    }
}

/// The default number of rules at the beginning of every experiment.
const DEFAULT_RULES: usize = 2_000;

/// The engines that get an update buffer.
const STATIC: [&str; 3] = ["hyper-split", "rfc", "bit-vector"];

/// The engines that take changes themselves.
const DYNAMIC: [&str; 2] = ["linear", "tss"];

/// Seconds of the paper's runs that count changes.
const RUN_SECONDS: f64 = 10.0;

/// The year of the paper, and its machine (§V.B).
const MACHINE: &str = "in 2017 on an Intel Xeon E5-1660v3";

/// Returns the specification of an engine with an update buffer for δ changes.
fn buffered(inner: &str, delta: usize) -> String {
    format!("sfl({inner}):delta={delta}")
}

/// Returns the specification of the published form of the same engine.
fn published(inner: &str, delta: usize) -> String {
    format!("{}:form=paper", buffered(inner, delta))
}

/// A form of an engine with an update buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The paper's algorithms to the letter: the change that exceeds δ rebuilds.
    Published,
    /// The default of `sfl`, which is rebuilt while changes continue.
    Ours,
}

impl Form {
    const BOTH: [Form; 2] = [Form::Published, Form::Ours];

    /// Returns the name for people.
    fn name(self) -> &'static str {
        match self {
            Form::Published => "published form",
            Form::Ours => "our form",
        }
    }

    /// Returns the value of the option `form` of `sfl`.
    fn option(self) -> &'static str {
        match self {
            Form::Published => "paper",
            Form::Ours => "stable",
        }
    }

    /// Returns the specification of an engine with an update buffer for δ changes.
    fn engine(self, inner: &str, delta: usize) -> String {
        match self {
            Form::Published => published(inner, delta),
            Form::Ours => buffered(inner, delta),
        }
    }
}

/// Returns a registered engine by its specification.
fn spec(engine: &str) -> EngineSpec {
    let spec = EngineSpec::parse(engine).expect("a registered engine with these options");
    spec.seeded(0)
}

/// One run of the simulator.
struct RunPlan<'a> {
    engine: &'a str,
    kind: cases::Kind,
    /// Changes in [`RUN_SECONDS`].
    changes: usize,
    /// Seconds of the run in the paper.
    paper_seconds: f64,
    /// The number of the rule set.
    set: usize,
}

impl Study<'_> {
    /// Generates a rule set with changes.
    fn sfl17_case(&self, kind: cases::Kind, changes: usize, set: usize) -> Result<Case, Failure> {
        let (_, profile) = &self.profiles[set % self.profiles.len()];
        let seed = self
            .args
            .seed
            .wrapping_add((set / self.profiles.len()) as u64);
        let rules = self.sizes(&[DEFAULT_RULES])[0];
        Case::new(profile, rules, changes, kind, self.headers(), seed)
    }

    /// Runs the simulator, or returns the stored outcome.
    fn simulated(&mut self, plan: &RunPlan<'_>) -> Result<Outcome, Failure> {
        let seconds = self.run_seconds() * plan.paper_seconds / RUN_SECONDS;
        // The paper's rate of changes, also if the run is shorter.
        let changes = scaled(plan.changes, seconds / plan.paper_seconds);
        let point = format!(
            "run {} {} {} in {} s, set {}",
            plan.engine,
            plan.changes,
            plan.kind.name(),
            plan.paper_seconds,
            plan.set
        );
        let (kind, set, engine) = (plan.kind, plan.set, spec(plan.engine));
        self.point(&point, |study| {
            let case = study.sfl17_case(kind, changes, set)?;
            let load = Load {
                rules: case.initial(),
                changes: &case.changes(),
                headers: case.headers(),
                duration: std::time::Duration::from_secs_f64(seconds),
                single: true,
                processors: study.processors,
            };
            Ok(simulator::run(&engine, &load)?)
        })
    }

    /// The number of changes that a run of the simulator issues.
    fn issued(&self, changes: usize) -> usize {
        scaled(changes, self.run_seconds() / RUN_SECONDS)
    }
}

/// Returns a share of a number of changes, at least one change.
fn scaled(changes: usize, share: f64) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most `changes`
    let scaled = (super::statistics::coordinate(changes) * share).round() as usize;
    scaled.clamp(1, changes.max(1))
}

/// The report's description of how the roles share processors.
const ROLES: &str = "Headers are in memory before a run and are looked up one by one on a \
    processor that no other role uses; changes, rebuilds and the counter share the others. \
    Engines that take changes are in a live table; sfl is rebuilt beside changes. Other engines \
    are built anew at every change, while the reader searches a list of the rules.";

/// Adds a note to the report if answers were wrong.
fn wrong_answers(section: &mut Section, wrong: usize) {
    if wrong > 0 {
        let remark = format!(" WRONG: {wrong} answers differ from a scan of the rules.");
        section.method.push_str(&remark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_picture_has_all_values_of_the_paper() {
        for kind in cases::Kind::BOTH {
            updates::paper_values(kind).check(&[1; 3]);
            let threshold =
                |seconds, is_headers| threshold::paper_values(kind, seconds, is_headers, 0.5);
            // A curve with a buffer and a level without for each engine.
            threshold(10.0, true).unwrap().check(&[1; 6]);
            // The paper makes all changes from δ = 10, 50 and 0 on. Table II has δ = 20, with
            // which not all deletions are made.
            let counts = match kind {
                cases::Kind::Insert => [2, 1, 3, 1, 2, 1],
                cases::Kind::Delete => [5, 1, 3, 1, 5, 1],
            };
            threshold(10.0, false).unwrap().check(&counts);
            threshold(25.0, false).unwrap().check(&[2, 2, 2, 1]);
            assert!(threshold(25.0, true).is_none());
        }
    }
}
