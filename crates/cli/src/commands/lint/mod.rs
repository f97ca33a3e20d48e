//! `classyard lint`: rules that can never win, and rules that change nothing.

use std::path::PathBuf;

use classyard::Policy;
use classyard_analysis::{LintSettings, lint};
use classyard_report::failure::Failure;
use classyard_report::input::count;
use classyard_report::input::files::only_one_from_stdin;
use classyard_report::input::rules::{LoadedRules, RulesArgs};
use classyard_report::output::OutputArgs;
use classyard_report::reporter::Reporter;
use classyard_workload::formats::classbench::NO_ACTION;

mod report;

use report::{FileReport, LintReport};

use crate::commands::analysis_failure::failure;

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::commands) enum Kind {
    /// Better rules match everything that the rule matches
    Dead,
    /// The rule can be removed without another action for any packet
    Redundant,
}

impl Kind {
    /// The name of the kind, as in reports.
    pub(in crate::commands) fn name(self) -> &'static str {
        match self {
            Kind::Dead => "dead",
            Kind::Redundant => "redundant",
        }
    }
}

/// Find rules that never decide a packet, and rules whose removal changes nothing
///
/// The findings are proven: a rule is dead only if it decides no packet at all. Better
/// rules may cover it alone or together. Without files, examines the embedded example.
///
/// Exit code 1 says that there are findings, or rules that could not be decided.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard lint
  classyard lint fw.rules
  classyard lint site-a.rules site-b.rules --select dead --format json
  classyard lint generated.txt --steps 200M     searches longer for each rule")]
pub(crate) struct Args {
    /// Files of rules; - for standard input, gzip is unpacked
    #[arg(value_name = "RULES", help_heading = "Input")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: RulesArgs,

    /// Report only these kinds of findings
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    select: Vec<Kind>,

    /// Do not report these kinds of findings
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    ignore: Vec<Kind>,

    /// The maximum number of steps for each rule and kind of finding
    ///
    /// A step compares a rule with a part of another rule; a million take some 10 ms.
    /// A rule that needs more is reported as undecided. The limit for all rules
    /// of a file together is 100 times as high.
    #[arg(long, value_name = "N", value_parser = count, default_value = "20M")]
    steps: usize,

    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    /// True if findings of this kind are reported.
    fn is_selected(&self, kind: Kind) -> bool {
        (self.select.is_empty() || self.select.contains(&kind)) && !self.ignore.contains(&kind)
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let files: Vec<_> = args
        .files
        .iter()
        .map(|path| ("a file", Some(path.as_path())))
        .collect();
    only_one_from_stdin(&files)?;
    let mut report = LintReport::default();
    if args.files.is_empty() {
        report.files.push(lint_file(args, None, reporter)?);
    }
    for file in &args.files {
        report.files.push(lint_file(args, Some(file), reporter)?);
    }
    args.output.report(&report)?;
    match report.is_clean() {
        true => Ok(()),
        false => Err(Failure::Different),
    }
}

fn lint_file(
    args: &Args,
    file: Option<&PathBuf>,
    reporter: Reporter,
) -> Result<FileReport, Failure> {
    let rules: LoadedRules = args.reading.load(file.map(PathBuf::as_path), reporter)?;
    let has_actions = has_actions(&rules.policy);
    let mut settings = LintSettings::default();
    settings.max_steps_per_rule = args.steps as u64;
    settings.max_steps = settings.max_steps_per_rule.saturating_mul(100);
    settings.redundant = has_actions && args.is_selected(Kind::Redundant);
    if !has_actions && args.is_selected(Kind::Redundant) {
        reporter.note(&format!(
            "{}: its rules have no actions, so redundant rules are not searched for",
            rules.source
        ));
    }
    let mut progress = reporter.progress();
    let lint = lint(&rules.policy, &settings, &mut progress).map_err(failure)?;
    drop(progress);
    Ok(FileReport::new(&rules, &lint, |kind| {
        args.is_selected(kind)
    }))
}

/// True if some rule has an action.
pub(in crate::commands) fn has_actions(policy: &Policy) -> bool {
    let none = policy.action_named(NO_ACTION);
    let mut rules = policy.parts().iter().flat_map(classyard::RuleSet::iter);
    rules.any(|rule| Some(rule.action()) != none)
}
