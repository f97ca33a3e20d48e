//! Rules and headers for benchmarks, generated.

use std::sync::Arc;

use classyard::{Policy, PolicyTrace, Progress};
use classyard_workload::generate::{
    Family, GeneratorConfig, OpenFlowRules, Profile, Recipe, generate,
};

use crate::failure::Failure;

/// The kinds of rules that can be generated for a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GeneratedFamily {
    /// IPv4 five-tuples
    Ipv4,
    /// IPv6 five-tuples
    Ipv6,
    /// IPv4 and IPv6 five-tuples in one order
    Dual,
    /// The fifteen OpenFlow fields; profiles make no difference
    Openflow15,
}

/// ClassBench's usual adjustments: `db_generator … 2 0.5 -0.1`, with which the
/// literature's rule sets are made.
pub(crate) const USUAL: GeneratorConfig = GeneratorConfig {
    rules: 0,
    seed: 0,
    smoothing: 2,
    address_scope: 0.5,
    port_scope: -0.1,
};

/// Generates rules.
pub(crate) fn generated_policy(
    family: GeneratedFamily,
    profile: Arc<Profile>,
    rules: usize,
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<Policy, Failure> {
    let family = match family {
        GeneratedFamily::Ipv4 => Family::Ipv4(profile),
        GeneratedFamily::Ipv6 => Family::Ipv6(profile),
        GeneratedFamily::Dual => Family::Dual {
            profile,
            ipv6_share: 0.5,
        },
        GeneratedFamily::Openflow15 => Family::OpenFlow15(OpenFlowRules::default()),
    };
    let mut recipe = Recipe::new(family, rules, seed);
    recipe.config = GeneratorConfig {
        rules,
        seed,
        ..USUAL
    };
    recipe.accept_fewer = true;
    generate(&recipe, progress).map_err(|error| Failure::usage(error.to_string()))
}

/// Draws headers from rules, each rule as likely as the other, each point of
/// the rule as likely as the other.
pub(crate) fn generated_trace(
    policy: &Policy,
    headers: usize,
    seed: u64,
    _progress: &mut dyn Progress,
) -> Result<PolicyTrace, Failure> {
    use rand::{RngExt as _, SeedableRng as _};
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut trace = PolicyTrace::new(policy.schemas());
    for _ in 0..headers {
        let id = policy.ids()[rng.random_range(0..policy.len())];
        let standing: Vec<_> = policy.rule(id).collect();
        let (part, rule) = standing[rng.random_range(0..standing.len())];
        let values: Vec<u128> = rule
            .schema()
            .field_ids()
            .map(|field| {
                let (low, high) = rule.ends(field);
                rng.random_range(low..=high)
            })
            .collect();
        trace
            .push(part, &values)
            .expect("values between a rule's ends fit");
    }
    Ok(trace)
}

/// `64000` as `64k`.
pub(crate) fn size_name(size: usize) -> String {
    match size {
        _ if size >= 1_000_000 && size.is_multiple_of(1_000_000) => {
            format!("{}M", size / 1_000_000)
        }
        _ if size >= 1_000 && size.is_multiple_of(1_000) => format!("{}k", size / 1_000),
        _ => size.to_string(),
    }
}
