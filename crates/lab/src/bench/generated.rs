//! Generated rules and headers for benchmarks.

use classyard::{Policy, PolicyTrace, Progress};
use classyard_report::failure::Failure;
use classyard_workload::generate::{Family, GeneratorConfig, Recipe, generate};
use classyard_workload::traffic::{TrafficConfig, TrafficRecipe, traffic};

/// Generates rules with ClassBench's usual adjustments, as the rule sets in the
/// literature.
pub(crate) fn generated_policy(
    family: Family,
    rules: usize,
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<Policy, Failure> {
    let mut recipe = Recipe::new(family, rules, seed);
    recipe.config = GeneratorConfig::benchmark(rules, seed);
    recipe.accept_fewer = true;
    generate(&recipe, progress).map_err(|error| Failure::usage(error.to_string()))
}

/// Draws headers from rules as ClassBench's trace generator does.
pub(crate) fn generated_trace(
    policy: &Policy,
    headers: usize,
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<PolicyTrace, Failure> {
    let config = TrafficConfig::new(headers, seed);
    let drawn = traffic(
        policy,
        &TrafficRecipe::classbench(),
        &config,
        None,
        progress,
    );
    drawn
        .map(|drawn| drawn.trace)
        .map_err(|error| Failure::usage(error.to_string()))
}

/// Returns a short name of a size: `64k` for 64,000.
pub fn size_name(size: usize) -> String {
    match size {
        _ if size >= 1_000_000 && size.is_multiple_of(1_000_000) => {
            format!("{}M", size / 1_000_000)
        }
        _ if size >= 1_000 && size.is_multiple_of(1_000) => format!("{}k", size / 1_000),
        _ => size.to_string(),
    }
}
