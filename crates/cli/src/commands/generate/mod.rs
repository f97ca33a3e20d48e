//! `classyard generate`: random rule sets and header traces.

use std::path::PathBuf;
use std::time::Instant;

use classyard::Policy;
use classyard_report::export::write_rules;
use classyard_report::failure::Failure;
use classyard_report::input::count;
use classyard_report::input::family::{FamilyName, hostile, openflow_set, profile, seed_file};
use classyard_report::input::rules::{rule_format, schema_choice};
use classyard_report::output::OutputArgs;
use classyard_report::output::style::{counted, seconds};
use classyard_report::reporter::Reporter;
use classyard_workload::formats::{RuleFormat, SchemaChoice};
use classyard_workload::generate::{
    Family, GenerateError, GeneratorConfig, Hostile, OpenFlowRules, RandomRules, Recipe, generate,
};

mod trace;

/// Generate a rule set, or with `trace` headers for one
///
/// Rules come from a built-in profile, from a profile in TOML or from a ClassBench
/// parameter file ("seed file"). The same flags give the same rules on every
/// machine.
///
/// A rule that the format cannot express, or only for fewer headers, is listed on
/// standard error; the rest is written, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  classyard generate --profile acl1 -n 10k --seed 7 -o acl1_10k.txt
  classyard generate --profile fw2 --family dual -n 1k --to rules | less
  classyard generate --seed-file acl1_seed -n 64k --smoothing 2 --address-scope 0.5
  classyard generate --profile of-acl -n 10k -o flows.rules
  classyard generate --hostile nested-prefixes -n 10k -o nests_10k.txt
  classyard generate trace --rules acl1_10k.txt --kind zipf -n 1M -o acl1_10k.trace"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,

    /// A built-in profile (see `classyard profiles`) or a profile's TOML file
    #[arg(
        short_alias = 'p',
        long,
        value_name = "NAME",
        conflicts_with = "seed_file"
    )]
    profile: Option<String>,

    /// A ClassBench parameter file instead of a profile
    #[arg(long, value_name = "FILE")]
    seed_file: Option<PathBuf>,

    /// A schema for random rules instead: a built-in name or a TOML file
    #[arg(long, value_name = "SCHEMA", conflicts_with_all = ["profile", "seed_file", "family"])]
    schema: Option<String>,

    /// Rules that are hard for classifiers instead: overlapping, ranges, wildcards,
    /// nested-prefixes, alike, one-bucket or corners
    #[arg(
        long,
        value_name = "NAME",
        value_parser = hostile,
        conflicts_with_all = ["profile", "seed_file", "family", "schema"]
    )]
    hostile: Option<Hostile>,

    /// The number of rules: 500, 10k, 1M
    #[arg(short = 'n', long, alias = "rules", value_name = "N", value_parser = count, default_value = "1k")]
    count: usize,

    /// The family of headers that the rules match
    #[arg(long, value_enum, default_value = "ipv4")]
    family: FamilyName,

    /// The share of IPv6 rules in the family dual, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    ipv6_share: f64,

    /// Keep to OpenFlow's prerequisites in the family openflow15
    #[arg(long)]
    consistent: bool,

    /// The seed of the random numbers
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Spread prefix lengths by up to BITS bits, 0 to 64
    #[arg(long, value_name = "BITS", default_value_t = 0)]
    smoothing: u32,

    /// Shift of prefix lengths, -1 to 1: above 0 shorter, below 0 longer
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    address_scope: f64,

    /// Shift of port ranges, -1 to 1: above 0 more general, below 0 more specific
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    port_scope: f64,

    /// If there are not enough distinct rules, write fewer instead of failing
    #[arg(long)]
    accept_fewer: bool,

    /// Skip bad lines of a parameter file
    #[arg(long)]
    skip_bad: bool,

    /// The file for the rules; - for standard output
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "-",
        help_heading = "Output"
    )]
    output: PathBuf,

    /// The format of the rules: classbench, rules or ovs
    ///
    /// The default is classbench for five-tuples of one family, and our own format
    /// for the rest.
    #[arg(long, value_name = "FORMAT", value_parser = rule_format, help_heading = "Output")]
    to: Option<RuleFormat>,

    /// List the built-in profiles instead
    #[arg(long, help_heading = "Output")]
    list_profiles: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Trace(Box<trace::Args>),
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    if let Some(What::Trace(args)) = &args.what {
        return trace::run(args, reporter);
    }
    if args.list_profiles {
        return crate::commands::profiles::list(&OutputArgs::default());
    }
    let recipe = Recipe {
        config: GeneratorConfig::new(args.count, args.seed)
            .with_smoothing(args.smoothing)
            .with_address_scope(args.address_scope)
            .with_port_scope(args.port_scope),
        accept_fewer: args.accept_fewer,
        ..Recipe::new(family(args, reporter)?, args.count, args.seed)
    };
    let began = Instant::now();
    let policy = make(&recipe, reporter)?;
    let took = began.elapsed().as_secs_f64();
    let format = args.to.unwrap_or_else(|| default_format(&policy));
    let written = write_rules(&policy, format, &args.output, reporter);
    if matches!(written, Ok(()) | Err(Failure::Different)) {
        reporter.note(&format!(
            "{} generated in {}",
            counted(policy.len(), "rule"),
            seconds(took)
        ));
    }
    written
}

fn family(args: &Args, reporter: Reporter) -> Result<Family, Failure> {
    if let Some(schema) = &args.schema {
        return match schema_choice(schema)? {
            SchemaChoice::Single(schema) => Ok(Family::Schema(schema, RandomRules::default())),
            SchemaChoice::DualStack | SchemaChoice::Acl => Err(Failure::usage(
                "random rules have one schema; use --family dual with a profile",
            )),
        };
    }
    if let Some(set) = args.hostile {
        return Ok(Family::Hostile(set));
    }
    let openflow = args.profile.as_deref().and_then(openflow_set);
    if let Some(Family::FlowTable(table)) = openflow {
        return Ok(Family::FlowTable(table));
    }
    if args.family == FamilyName::Openflow15 || openflow.is_some() {
        if openflow.is_none() && (args.profile.is_some() || args.seed_file.is_some()) {
            reporter.warn("profiles describe five-tuples and do not apply to openflow15");
        }
        return Ok(Family::OpenFlow15(if args.consistent {
            Box::new(OpenFlowRules::consistent())
        } else {
            Box::new(OpenFlowRules::default())
        }));
    }
    let profile = match (&args.profile, &args.seed_file) {
        (Some(name), _) => profile(name)?,
        (None, Some(path)) => seed_file(path, args.skip_bad, reporter)?,
        (None, None) => {
            return Err(
                Failure::usage("there is nothing to generate from").with_help(
                    "give --profile NAME, --seed-file FILE, --schema SCHEMA, --hostile NAME or \
                 --family openflow15; --list-profiles lists the built-in profiles",
                ),
            );
        }
    };
    Ok(args.family.with(profile, args.ipv6_share))
}

/// Generates a policy with a progress bar.
pub(crate) fn make(recipe: &Recipe, reporter: Reporter) -> Result<Policy, Failure> {
    generate(recipe, &mut reporter.progress()).map_err(|error| {
        let help = match error {
            GenerateError::TooFew { found, .. } => {
                Some(format!("--accept-fewer writes the {found}"))
            }
            _ => None,
        };
        let failure = Failure::usage(error.to_string());
        match help {
            Some(help) => failure.with_help(help),
            None => failure,
        }
    })
}

/// Returns the format that stores everything of a policy, preferring the common
/// one.
fn default_format(policy: &Policy) -> RuleFormat {
    match policy.name() {
        "ipv4-5tuple" | "ipv6-5tuple" => RuleFormat::Classbench,
        _ => RuleFormat::Rules,
    }
}
