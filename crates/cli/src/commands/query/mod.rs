//! `classyard query`: the rules that decide the packets of a match.

use std::collections::BTreeSet;
use std::path::PathBuf;

use classyard::Policy;
use classyard_analysis::{QuerySettings, query};
use classyard_report::failure::Failure;
use classyard_report::input::count;
use classyard_report::input::files::{RulesFile, only_one_from_stdin};
use classyard_report::input::rules::{LoadedRules, RulesArgs};
use classyard_report::output::{OutputArgs, join};
use classyard_report::reporter::Reporter;
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::{RuleFormat, SchemaChoice, read_policy};

mod report;
mod within;

use report::QueryReport;

use crate::commands::analysis_failure::failure;

/// List the rules that decide the packets of a match
///
/// A match has field=value pairs as in rule files, with prefixes, ranges, lists and
/// negations. Fields that are not given match everything. The answer has every rule that decides such a
/// packet, with an example and its share of the packets. Without a file, asks the
/// embedded example.
///
/// With --within, the answer has the rules of the file that permit packets which another
/// file of rules does not permit. --action names another action than `permit`.
///
/// Exit code 1 says that --within found such packets, or that the limit of steps was
/// reached.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard query -m \"dst=10.20.1.0/24 proto=tcp dport=22\"
  classyard query fw.rules -m \"src=10.0.0.0/8 dport=!80,443\"
  classyard query fw.rules -m \"dst=192.0.2.10\" --action allow --format json
  classyard query fw.rules --within allowed.rules     is all that is permitted allowed?
  classyard query asa.cfg --list OUTSIDE_IN --within zone.nft --second-list input")]
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

    /// Show only packets that these rules do not permit, though RULES permit them
    ///
    /// If --action is given, packets with this action in RULES and another one, or none, in
    /// ALLOWED. Rules are read as by `classyard diff`.
    #[arg(long, value_name = "ALLOWED", requires = "rules_given")]
    within: Option<PathBuf>,

    /// The list of ALLOWED, if it has another name than --list
    #[arg(
        long,
        value_name = "NAME",
        requires_all = ["list", "within"],
        help_heading = "Input"
    )]
    second_list: Option<String>,

    #[command(flatten)]
    reading: RulesArgs,

    /// The maximum number of steps
    ///
    /// A step compares a rule with a part of another rule; a million take some 10 ms.
    /// With --within, a hundredth is the limit for each rule.
    #[arg(long, value_name = "N", value_parser = count, default_value = "2000M")]
    steps: usize,

    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    if let (Some(file), Some(allowed)) = (args.rules.path(), &args.within) {
        return within::run(args, [file, allowed], reporter);
    }
    only_one_from_stdin(&[("rules", args.rules.path())])?;
    let rules = args.reading.load(args.rules.path(), reporter)?;
    let selection = parse(&args.matches, &rules.policy)?;
    if let Some(action) = &args.action {
        check_action(&rules, action)?;
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

/// Fails if no rule has an action.
fn check_action(rules: &LoadedRules, action: &str) -> Result<(), Failure> {
    if rules.policy.action_named(action).is_some() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "no rule of {} has the action `{action}`",
        rules.source
    ))
    .with_help(format!("{}; --action names one", actions(&rules.policy))))
}

/// Returns a sentence with the names of the actions that rules have.
fn actions(policy: &Policy) -> String {
    let rules = policy.parts().iter().flat_map(classyard::RuleSet::iter);
    let names: BTreeSet<&str> = rules
        .filter_map(|rule| policy.action_name(rule.action()))
        .collect();
    let shown = names.iter().take(MAX_SHOWN_ACTIONS);
    let shown = join(shown.map(|name| format!("`{name}`")), ", ");
    match names.len().saturating_sub(MAX_SHOWN_ACTIONS) {
        0 => format!("its actions are {shown}"),
        more => format!("its actions are {shown} and {more} more"),
    }
}

/// The maximum number of actions that a message names.
const MAX_SHOWN_ACTIONS: usize = 12;

/// Reads a match as a rule of the policy's schema.
fn parse(text: &str, policy: &Policy) -> Result<Policy, Failure> {
    let choice = match policy.parts() {
        [only] => SchemaChoice::Single(only.schema().clone()),
        _ => SchemaChoice::named(policy.name()).expect("a combination of built-in schemas"),
    };
    if text.contains('\n') {
        return Err(Failure::usage("a match has one line"));
    }
    let line = format!("ask {text}\n");
    let (format, options) = (Some(RuleFormat::Rules), ReadOptions::DEFAULT);
    let loaded = read_policy("the match", &line, format, Some(&choice), &options)?;
    match loaded.value.len() {
        rules if rules > MAX_BOXES => Err(Failure::usage(format!(
            "the match has {rules} boxes; expected at most {MAX_BOXES}"
        ))
        .with_help("ask for shorter lists of values, one after the other")),
        _ => Ok(loaded.value),
    }
}

/// The maximum number of boxes of a match with lists of values.
const MAX_BOXES: usize = 4096;
