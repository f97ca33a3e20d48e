//! `classyard query`: the rules that decide the packets of a match.

use classyard::Policy;
use classyard_analysis::{QuerySettings, query};
use classyard_report::failure::Failure;
use classyard_report::input::count;
use classyard_report::input::files::{RulesFile, only_one_from_stdin};
use classyard_report::input::rules::RulesArgs;
use classyard_report::output::OutputArgs;
use classyard_report::reporter::Reporter;
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::{RuleFormat, SchemaChoice, read_policy};

mod report;

use report::QueryReport;

use crate::commands::analysis_failure::failure;

/// List the rules that decide the packets of a match
///
/// A match has field=value pairs as in rule files, with prefixes and ranges. Fields
/// that are not given match everything. The answer has every rule that decides such a
/// packet, with an example and its share of the packets. Without a file, asks the
/// embedded example.
///
/// Exit code 1 says that the limit of steps was reached.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard query -m \"dst=10.20.1.0/24 proto=tcp dport=22\"
  classyard query fw.rules -m \"src=10.0.0.0/8 dport=1-1023\"
  classyard query fw.rules -m \"dst=192.0.2.10\" --action allow --format json")]
pub(crate) struct Args {
    #[command(flatten)]
    rules: RulesFile,

    /// The packets: field=value pairs, as in rule files
    #[arg(
        short = 'm',
        long = "match",
        value_name = "MATCH",
        default_value = "any"
    )]
    matches: String,

    /// Show only packets with this action
    #[arg(long, value_name = "NAME")]
    action: Option<String>,

    #[command(flatten)]
    reading: RulesArgs,

    /// The maximum number of steps
    ///
    /// A step compares a rule with a part of another rule; a million take some 10 ms.
    #[arg(long, value_name = "N", value_parser = count, default_value = "2000M")]
    steps: usize,

    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    only_one_from_stdin(&[("rules", args.rules.path())])?;
    let rules = args.reading.load(args.rules.path(), reporter)?;
    let selection = parse(&args.matches, &rules.policy)?;
    let known = |action: &String| rules.policy.action_named(action).is_some();
    if let Some(action) = args.action.as_ref().filter(|action| !known(action)) {
        return Err(Failure::usage(format!(
            "no rule of {} has the action `{action}`",
            rules.source
        )));
    }
    let mut settings = QuerySettings::default();
    settings.max_steps = args.steps as u64;
    let mut progress = reporter.progress();
    let query = query(&rules.policy, &selection, &settings, &mut progress).map_err(failure)?;
    drop(progress);
    let report = QueryReport::new(&rules, &args.matches, &query, args.action.as_deref());
    args.output.report(&report)?;
    match query.undecided().is_empty() {
        true => Ok(()),
        false => Err(Failure::Different),
    }
}

/// Reads a match as a rule of the policy's schema.
fn parse(text: &str, policy: &Policy) -> Result<Policy, Failure> {
    let choice = match policy.parts() {
        [only] => SchemaChoice::Single(only.schema().clone()),
        _ => SchemaChoice::named(policy.name()).expect("a combination of built-in schemas"),
    };
    if text.contains('\n') {
        return Err(Failure::usage("a match has one line"));
    }
    let fields = if text == "any" { "" } else { text };
    let line = format!("ask {fields}\n");
    let (format, options) = (Some(RuleFormat::Rules), ReadOptions::DEFAULT);
    let loaded = read_policy("the match", &line, format, Some(&choice), &options)?;
    Ok(loaded.value)
}
