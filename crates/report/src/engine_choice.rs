//! The `--engine` flag of commands that look up: an engine's name, or `auto`.

use classyard::engine::auto::{Auto, Ranking};
use classyard::estimate::Shape;
use classyard::{BuildError, EngineSpec, Limits, Progress, RuleSet};

use crate::failure::Failure;
use crate::input::build_limits::{BuildLimits, Refused};
use crate::input::engine;
use crate::machine::MachineArgs;
use crate::registry;
use crate::reporter::Reporter;

/// The word for the engine that is predicted to be the fastest.
const AUTO: &str = "auto";

/// The value of `--engine`.
#[derive(Clone, Debug)]
pub enum EngineChoice {
    /// An engine by its name.
    Named(EngineSpec),
    /// The engine that is predicted to be the fastest.
    Auto,
}

impl EngineChoice {
    /// Parses a specification or `auto`, for the argument parser.
    pub fn parse(text: &str) -> Result<EngineChoice, String> {
        match text {
            AUTO => Ok(EngineChoice::Auto),
            text => engine(text).map(EngineChoice::Named),
        }
    }

    /// Builds the requested engine, or the default one, over rule sets that share it.
    /// For `auto`, notes which engine was chosen.
    ///
    /// # Errors
    /// An error of the limits or the engine; for `auto` only if no engine can be
    /// built.
    pub fn build<T>(
        choice: Option<&EngineChoice>,
        parts: &[RuleSet],
        limits: &BuildLimits,
        reporter: Reporter,
        build: impl Fn(&EngineSpec, &Limits, &mut dyn Progress) -> Result<T, BuildError>,
    ) -> Result<(EngineSpec, T), Failure> {
        let mut progress = reporter.progress();
        let mut build = |spec: &EngineSpec| {
            limits.build(&mut progress, |limits, progress| {
                build(spec, limits, progress)
            })
        };
        let spec = match choice {
            Some(EngineChoice::Named(spec)) => spec.clone(),
            Some(EngineChoice::Auto) => {
                let auto = Auto::default()
                    .with_registry(registry::engines())
                    .with_limits(limits.limits())
                    .with_machine(MachineArgs::default().load(reporter)?.machine);
                let parts = parts.iter().map(|part| auto.rank(&Shape::of(part)));
                return first_built(parts.collect(), reporter, build);
            }
            None => registry::parse(registry::DEFAULT)?,
        };
        let built = build(&spec)?;
        Ok((spec, built))
    }
}

/// Builds the engine with the least predicted lookup time, or the next one if that
/// fails.
fn first_built<T>(
    rankings: Vec<Ranking>,
    reporter: Reporter,
    mut build: impl FnMut(&EngineSpec) -> Result<T, Refused>,
) -> Result<(EngineSpec, T), Failure> {
    let mut refused = None;
    for (ns, spec) in ranked(&rankings) {
        match build(&spec) {
            Ok(built) => {
                reporter.note(&format!(
                    "auto chooses {spec}, predicted to take {ns:.0} ns per lookup"
                ));
                return Ok((spec, built));
            }
            Err(Refused::Build(stopped @ BuildError::Stopped { .. })) => return Err(stopped.into()),
            Err(reason) => {
                reporter.note(&format!("auto skips {spec}: {reason}"));
                refused = Some(reason);
            }
        }
    }
    let excluded = rankings.into_iter().flat_map(|ranking| ranking.excluded);
    let reason = refused.or_else(|| excluded.map(|one| Refused::Build(one.reason)).next());
    let failure = reason.map_or_else(|| Failure::usage("there is no engine"), Failure::from);
    Err(failure.with_help("no engine can be built within the limits: raise them"))
}

/// Returns the engines that support all parts, with the sum of their predicted
/// nanoseconds per lookup in each part, in increasing order.
fn ranked(rankings: &[Ranking]) -> Vec<(f64, EngineSpec)> {
    let Some((first, other_rankings)) = rankings.split_first() else {
        return Vec::new();
    };
    let everywhere = first.candidates.iter().filter_map(|candidate| {
        let spec = &candidate.spec;
        let other_ns = other_rankings
            .iter()
            .map(|other| Some(other.candidate(spec)?.ns));
        let other_ns: Option<f64> = other_ns.sum();
        Some((candidate.ns + other_ns?, spec.clone()))
    });
    let mut candidates: Vec<_> = everywhere.collect();
    candidates.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    candidates
}
