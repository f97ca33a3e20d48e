//! `classyard minimise`: a shorter list with the same actions.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use classyard::RuleId;
use classyard_analysis::{DiffSettings, Finding, Lint, LintSettings, diff, lint_statements};
use classyard_report::failure::Failure;
use classyard_report::input::rules::{LoadedRules, RulesArgs};
use classyard_report::input::{count, read_text};
use classyard_report::output::file::{is_dash, is_same_file, to_file};
use classyard_report::output::style::{BOLD, NOTABLE, counted, grouped, paint};
use classyard_report::output::{OutputArgs, Report, csv};
use classyard_report::reporter::Reporter;
use classyard_report::rule_view::RuleView;
use serde::Serialize;

use super::analysis_failure::failure;
use super::lint::{Kind, has_actions};
use super::named_rules::{described, place};
use super::rows::{MAX_ROWS, remark_more};
use super::statements::{is_reported, statements, views};

/// Write a shorter list of rules that gives every packet the same action
///
/// Removes rules that decide no packet, and rules without which every packet keeps its
/// action. All other lines are copied, comments included. The result is read again,
/// compared with the input, and written only if it is proven to be equivalent.
///
/// If the rules have no actions, only rules that decide no packet are removed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard minimise fw.rules shorter.rules
  classyard minimise fw.rules shorter.rules --format json  the removed rules as JSON
  classyard minimise fw.rules - --dead-only                keeps redundant rules")]
pub(crate) struct Args {
    /// The rules to read; - for standard input, gzip is unpacked
    #[arg(value_name = "IN", help_heading = "Input")]
    input: PathBuf,

    /// The file to write; - for standard output, without the report
    #[arg(value_name = "OUT")]
    out: PathBuf,

    #[command(flatten)]
    reading: RulesArgs,

    /// Remove only rules that decide no packet
    #[arg(long)]
    dead_only: bool,

    /// The maximum number of steps for each rule
    ///
    /// A step compares a rule with a part of another rule; a million take some 10 ms.
    /// A rule that needs more is kept. The limit for all rules together is 100 times
    /// as high.
    #[arg(long, value_name = "N", value_parser = count, default_value = "20M")]
    steps: usize,

    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    if is_same_file(&args.input, &args.out) {
        return Err(
            Failure::usage(format!("{} is both read and written", args.input.display()))
                .with_help("write to another file and rename it afterwards"),
        );
    }
    let text = read_text(&args.input, args.reading.bytes.text())?;
    let original = args.reading.load_text(&args.input, &text, reporter)?;
    let mut removed = BTreeMap::new();
    let mut shorter: Option<LoadedRules> = None;
    let undecided = loop {
        let rules = shorter.as_ref().unwrap_or(&original);
        let lint = examine(args, rules, reporter)?;
        let removable = removable_lines(rules, &lint);
        if removable.is_empty() {
            break lint.unknown().len();
        }
        removed.extend(removable);
        shorter = Some(reread(args, &text, &removed)?);
    };
    if let Some(shorter) = &shorter {
        prove(args, &original, shorter, reporter)?;
    }
    to_file(&args.out, |out| {
        for line in kept_lines(&text, &removed) {
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    })?;
    if is_dash(&args.out) {
        return Ok(());
    }
    args.output
        .report(&Removed::new(&original, &removed, undecided))
}

/// Reads the rules of the lines that are left. Removed lines are empty, so that all lines
/// keep their numbers.
fn reread(args: &Args, text: &str, removed: &BTreeMap<u32, Kind>) -> Result<LoadedRules, Failure> {
    let lines = numbered_lines(text);
    let shorter_text: String = lines
        .map(|(number, line)| match removed.contains_key(&number) {
            true => "\n",
            false => line,
        })
        .collect();
    // The reader has said everything about these lines before.
    args.reading
        .load_text(&args.input, &shorter_text, Reporter::new(true))
}

/// The lines of a text with their numbers, from 1, and with their line ends.
fn numbered_lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..).zip(text.split_inclusive('\n'))
}

/// The lines that are left.
fn kept_lines<'a>(text: &'a str, removed: &BTreeMap<u32, Kind>) -> impl Iterator<Item = &'a str> {
    numbered_lines(text)
        .filter(|(number, _)| !removed.contains_key(number))
        .map(|(_, line)| line)
}

fn examine(args: &Args, rules: &LoadedRules, reporter: Reporter) -> Result<Lint, Failure> {
    let mut settings = LintSettings::default();
    settings.max_steps_per_rule = args.steps as u64;
    settings.max_steps = settings.max_steps_per_rule.saturating_mul(100);
    settings.redundant = !args.dead_only && has_actions(&rules.policy);
    let mut progress = reporter.progress();
    let statements = statements(rules);
    lint_statements(&rules.policy, &statements, &settings, &mut progress).map_err(failure)
}

/// The lines of rules that can be removed together.
fn removable_lines(rules: &LoadedRules, lint: &Lint) -> Vec<(u32, Kind)> {
    let findings = lint.findings().iter();
    let findings = findings.filter(|finding| is_reported(rules, finding));
    let kinds = findings.filter_map(|finding| match finding {
        Finding::Dead { rule, .. } => Some((*rule, Kind::DEAD)),
        Finding::Redundant {
            rule, removable, ..
        } => removable.then_some((*rule, Kind::REDUNDANT)),
        _ => None,
    });
    let line = |rule: RuleId| rules.line(rules.policy.position(rule)?);
    kinds
        .filter_map(|(rule, kind)| Some((line(rule)?, kind)))
        .collect()
}

/// Proves that two lists give every packet the same action.
fn prove(
    args: &Args,
    original: &LoadedRules,
    shorter: &LoadedRules,
    reporter: Reporter,
) -> Result<(), Failure> {
    let mut settings = DiffSettings::default();
    settings.max_steps_per_rule = args.steps as u64;
    settings.max_steps = settings.max_steps_per_rule.saturating_mul(100);
    settings.max_differences = 1;
    let mut progress = reporter.progress();
    let diff = diff(&original.policy, &shorter.policy, &settings, &mut progress);
    drop(progress);
    if diff.map_err(failure)?.is_equivalent() == Some(true) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{}: the shorter list was not proven to be equivalent; nothing was written",
        original.source
    ))
    .with_help("a higher --steps lets the proof take longer; --dead-only removes fewer rules"))
}

/// The report of `minimise`. Keys are stable.
#[derive(Serialize)]
struct Removed {
    file: String,
    /// The number of rules before and after.
    rules: usize,
    rules_left: usize,
    removed: Vec<RemovedRule>,
    /// The number of kept rules that were not decided within the limit of steps.
    undecided: usize,
}

#[derive(Serialize)]
struct RemovedRule {
    reason: Kind,
    rule: RuleView,
}

impl Removed {
    fn new(original: &LoadedRules, removed: &BTreeMap<u32, Kind>, undecided: usize) -> Removed {
        let rules = original.statement_count();
        let removed: Vec<RemovedRule> = views(original, original.policy.ids())
            .into_iter()
            .filter_map(|rule| {
                let reason = *removed.get(&rule.line?)?;
                Some(RemovedRule { reason, rule })
            })
            .collect();
        Removed {
            file: original.source.clone(),
            rules,
            rules_left: rules - removed.len(),
            removed,
            undecided,
        }
    }
}

impl Report for Removed {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        for RemovedRule { reason, rule } in self.removed.iter().take(MAX_ROWS) {
            writeln!(
                out,
                "{}: {}: {}",
                paint(BOLD, &place(&self.file, rule)),
                paint(NOTABLE, reason.name()),
                described(rule)
            )?;
        }
        let unlisted = self.removed.len().saturating_sub(MAX_ROWS);
        remark_more(out, unlisted, "more removed rule")?;
        write!(
            out,
            "{}: {}, {} removed, {} left; the actions are proven to be the same",
            self.file,
            counted(self.rules, "rule"),
            grouped(self.removed.len()),
            grouped(self.rules_left)
        )?;
        match self.undecided {
            0 => writeln!(out),
            count => writeln!(out, "; {} undecided and kept", counted(count, "rule")),
        }
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[&"file", &"line", &"rule", &"reason", &"match"])?;
        for RemovedRule { reason, rule } in &self.removed {
            out.row(&[
                &self.file,
                &rule.line_cell(),
                &rule.id,
                &reason.name(),
                &rule.matches,
            ])?;
        }
        Ok(())
    }
}
