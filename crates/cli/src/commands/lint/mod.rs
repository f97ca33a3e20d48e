//! `classyard lint`: rules that can never win, and rules that change nothing.

use std::io::Write as _;
use std::path::PathBuf;

use classyard::Policy;
use classyard_analysis::{Finding, LintSettings, lint_statements};
use classyard_report::failure::Failure;
use classyard_report::input::count;
use classyard_report::input::files::only_one_from_stdin;
use classyard_report::input::headers::HeadersArgs;
use classyard_report::input::rules::{LoadedRules, RulesArgs};
use classyard_report::output::file::is_dash;
use classyard_report::output::{self, Format, OutputArgs, join};
use classyard_report::reporter::Reporter;
use classyard_report::suggestion::did_you_mean;
use classyard_workload::formats::classbench::NO_ACTION;

mod allowances;
mod config;
mod exchange;
mod finding;
mod html;
mod kinds;
mod report;

use allowances::{Allowance, AllowedBy, FileAllowances};
use config::LintConfig;
use finding::Subject;
pub(in crate::commands) use finding::{FindingRow, Kind};
use html::Page;
use kinds::Selector;
use report::{FileReport, LintReport};

use crate::commands::analysis_failure::failure;
use crate::commands::classify::rule_hits;
use crate::commands::statements::statements;

/// Find rules that never decide a packet, and rules whose removal changes nothing
///
/// The findings are proven: a rule is dead only if it decides no packet at all. Better
/// rules may cover it alone or together. Without files, examines the embedded example.
///
/// With a capture or a trace, rules that decide none of its packets are findings too. If a
/// configuration has several lists, name the list of the packets with --list.
///
/// A comment `classyard: allow dead` on the line of a rule, or on the line before it, allows
/// findings of the named kinds about the rule.
///
/// Exit code 1 says that there are findings, or rules that could not be decided.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard lint
  classyard lint fw.rules
  iptables-save | classyard lint -
  classyard lint site-a.rules site-b.rules --select dead --format json
  classyard lint fw.rules --format sarif > lint.sarif
  classyard lint fw.save --select never-hit     unused statements, by counters
  classyard lint fw.rules -c day.pcapng.gz      unused rules, by a capture
  classyard lint fw.rules --html report.html    a page for people, with a picture
  classyard lint fw.rules --config ci/classyard.toml
      settings and allowed findings of a file:
        [lint]
        select = [\"dead\"]
        allow = [{ rule = \"permit dport=80\", kind = \"dead\", why = \"kept for its counters\" }]
  classyard lint generated.txt --steps 200M     searches longer for each rule")]
pub(crate) struct Args {
    /// Files of rules; - for standard input, gzip is unpacked
    #[arg(value_name = "RULES", help_heading = "Input")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: RulesArgs,

    #[command(flatten)]
    headers: HeadersArgs,

    /// Report only these kinds of findings
    ///
    /// The default is dead, partly-dead, redundant, equal-priority and rare-action, and
    /// never-hit with a capture or a trace.
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    select: Vec<Selector>,

    /// Do not report these kinds of findings
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    ignore: Vec<Kind>,

    /// The maximum number of steps for each rule and kind of finding
    ///
    /// A step compares a rule with a part of another rule; a million take some 10 ms.
    /// A rule that needs more is reported as undecided. The limit for all rules
    /// of a file together is 100 times as high. The default is 20M.
    #[arg(long, value_name = "N", value_parser = count)]
    steps: Option<usize>,

    /// Read settings and allowed findings from a TOML file
    ///
    /// By default, classyard.toml in the current folder is read if it exists. Its table
    /// `[lint]` has the keys select, ignore, steps, strict and allow. Options of the
    /// command line win. An entry of allow has the rule as lint quotes it or its line, the
    /// kind of finding, the reason why, and may have the file.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "no_config",
        help_heading = "Input"
    )]
    config: Option<PathBuf>,

    /// Read no configuration file
    #[arg(long, help_heading = "Input")]
    no_config: bool,

    /// The format of the report on standard output
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORM",
        help_heading = "Output"
    )]
    format: LintFormat,

    /// Write a page of HTML with the findings, all rules and a picture to a file, - for
    /// standard output
    ///
    /// The page needs no other files and has no scripts. With - no report is printed.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
}

/// The format of the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum LintFormat {
    /// For people
    #[default]
    Table,
    /// One object with all findings; its keys are stable
    Json,
    /// The JSON object on one line
    Ndjson,
    /// Comma-separated values with a heading
    Csv,
    /// SARIF 2.1.0, for code scanning services and editors
    Sarif,
    /// Test results of JUnit, one failed test for each finding
    Junit,
}

impl LintFormat {
    /// Writes a report to standard output.
    fn write(self, report: &LintReport) -> Result<(), Failure> {
        let format = match self {
            LintFormat::Table => Format::Table,
            LintFormat::Json => Format::Json,
            LintFormat::Ndjson => Format::Ndjson,
            LintFormat::Csv => Format::Csv,
            LintFormat::Sarif | LintFormat::Junit => {
                let mut out = output::stdout();
                match self {
                    LintFormat::Sarif => exchange::write_sarif(report, &mut out)?,
                    _ => exchange::write_junit(report, &mut out)?,
                }
                return Ok(out.flush()?);
            }
        };
        OutputArgs { format }.report(report)
    }
}

/// The default of [`Args::steps`].
const DEFAULT_STEPS: usize = 20_000_000;

/// The settings of a run: of the command line, and of a configuration file.
struct Settings {
    reading: RulesArgs,
    select: Vec<Selector>,
    ignore: Vec<Kind>,
    steps: usize,
    allow: Vec<Allowance>,
    headers: HeadersArgs,
}

impl Settings {
    /// Reads the configuration file. Options of the command line win: `--select` replaces
    /// `select` and `ignore` of the file, `--ignore` replaces `ignore`.
    fn new(args: &Args, reporter: Reporter) -> Result<Settings, Failure> {
        let config = match args.no_config {
            true => LintConfig::default(),
            false => LintConfig::load(args.config.as_deref(), reporter)?,
        };
        let only = |kinds: Vec<Kind>| kinds.into_iter().map(Selector::Only).collect();
        let selected_by_config = config.select.map(only).unwrap_or_default();
        let ignore = config.ignore.filter(|_| args.select.is_empty());
        let mut reading = args.reading.clone();
        reading.strict |= config.strict;
        let mut settings = Settings {
            reading,
            select: match args.select.is_empty() {
                true => selected_by_config,
                false => args.select.clone(),
            },
            ignore: match args.ignore.is_empty() {
                true => ignore.unwrap_or_default(),
                false => args.ignore.clone(),
            },
            steps: args.steps.or(config.steps).unwrap_or(DEFAULT_STEPS),
            allow: config.allow,
            headers: args.headers.clone(),
        };
        settings.reading.finds_host_bits = settings.is_selected(Kind::HOST_BITS);
        Ok(settings)
    }

    /// Warns of entries that allowed no finding, although a kind of theirs was searched for.
    fn warn_of_unused(&self, reporter: Reporter) {
        let is_searched = |allowance: &&Allowance| {
            let mut kinds = Kind::ALL.into_iter().filter(|kind| self.is_selected(*kind));
            kinds.any(|kind| allowance.kinds.iter().any(|name| name == kind.name()))
        };
        let unused = self.allow.iter().filter(|allowance| allowance.is_unused());
        for allowance in unused.filter(is_searched) {
            reporter.warn(&format!("{}: allows no finding", allowance.place));
        }
    }

    /// True if findings of this kind are reported.
    fn is_selected(&self, kind: Kind) -> bool {
        let is_selected = match &self.select[..] {
            [] => kind.is_default || kind == Kind::NEVER_HIT && !self.headers.is_empty(),
            select => select.iter().any(|selector| selector.has(kind)),
        };
        is_selected && !self.ignore.contains(&kind)
    }

    /// Returns the kinds of findings that are reported, with sentences about them.
    fn kind_texts(&self) -> Vec<(&'static str, &'static str)> {
        let kinds = Kind::ALL.into_iter().filter(|kind| self.is_selected(*kind));
        kinds.map(|kind| (kind.name(), kind.summary())).collect()
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let files: Vec<_> = args
        .files
        .iter()
        .map(|path| ("a file", Some(path.as_path())))
        .collect();
    let [capture, trace] = args.headers.files();
    only_one_from_stdin(&[files, vec![capture, trace]].concat())?;
    if args.files.len() > 1 && [capture.1, trace.1].into_iter().flatten().any(is_dash) {
        return Err(Failure::usage(
            "packets from standard input can be compared with one file of rules",
        ));
    }
    let mut report = LintReport::default();
    let settings = Settings::new(args, reporter)?;
    let mut page = args.html.as_ref().map(|_| Page::new(settings.kind_texts()));
    let mut lint = |file| lint_file(&settings, file, page.as_mut(), reporter);
    if args.files.is_empty() {
        report.files.push(lint(None)?);
    }
    for file in &args.files {
        report.files.push(lint(Some(file))?);
    }
    settings.warn_of_unused(reporter);
    if let (Some(page), Some(path)) = (page, &args.html) {
        page.write(path)?;
    }
    if !args.html.as_deref().is_some_and(is_dash) {
        args.format.write(&report)?;
    }
    match report.is_clean() {
        true => Ok(()),
        false => Err(Failure::Different),
    }
}

fn lint_file(
    run: &Settings,
    file: Option<&PathBuf>,
    page: Option<&mut Page>,
    reporter: Reporter,
) -> Result<FileReport, Failure> {
    let path = file.map(PathBuf::as_path);
    let rules: LoadedRules = match run.headers.capture {
        Some(_) => run.reading.load_for_packets(path, reporter)?,
        None => run.reading.load(path, reporter)?,
    };
    let hits = match run.headers.is_empty() || !run.is_selected(Kind::NEVER_HIT) {
        true => None,
        false => Some(rule_hits(&run.headers, &run.reading, &rules, reporter)?),
    };
    warn_of_unknown_kinds(&rules, reporter);
    let has_actions = has_actions(&rules.policy);
    let mut settings = LintSettings::default();
    settings.max_steps_per_rule = run.steps as u64;
    settings.max_steps = settings.max_steps_per_rule.saturating_mul(100);
    settings.redundant = false;
    let selected = Kind::ALL.into_iter().filter(|&kind| run.is_selected(kind));
    let (senseless, searched): (Vec<Kind>, Vec<Kind>) =
        selected.partition(|kind| kind.needs_actions && !has_actions);
    for kind in &searched {
        (kind.enable)(&mut settings);
    }
    if !senseless.is_empty() {
        reporter.note(&format!(
            "{}: its rules have no actions, so {} rules are not searched for",
            rules.source,
            join(senseless.iter().map(|kind| kind.label), " and ")
        ));
    }
    let mut progress = reporter.progress();
    let statements = statements(&rules);
    let lint = lint_statements(&rules.policy, &statements, &settings, &mut progress);
    let lint = lint.map_err(failure)?;
    drop(progress);
    let is_selected = |kind| searched.contains(&kind);
    let allowances = FileAllowances::new(&run.allow, file.map(PathBuf::as_path));
    let report = FileReport::new(&rules, &lint, hits.as_ref(), is_selected, |about, kind| {
        let by_config = allowances.find(about, kind);
        let line = about.line().and_then(|line| rules.allowance(line, kind));
        line.map(|line| AllowedBy::Comment { line }).or(by_config)
    });
    if let Some(page) = page {
        page.add(&rules, &report, reporter)?;
    }
    Ok(report)
}

/// Warns of comments that allow findings of a kind that does not exist.
fn warn_of_unknown_kinds(rules: &LoadedRules, reporter: Reporter) {
    for (line, names) in rules.allowances() {
        let is_unknown = |name: &&String| Kind::ALL.iter().all(|kind| kind.name() != *name);
        for name in names.iter().filter(is_unknown) {
            let kinds = Kind::ALL.map(Kind::name);
            let hint = did_you_mean(name, kinds);
            reporter.warn(&format!(
                "{}:{line}: a comment allows `{name}`, which is no kind of finding{hint}",
                rules.source
            ));
        }
    }
}

/// Returns the findings of some kinds as rows of a report.
pub(in crate::commands) fn rows(
    rules: &LoadedRules,
    findings: &[Finding],
    kinds: &[Kind],
) -> Vec<FindingRow> {
    let subject = Subject::new(rules, findings, None);
    kinds
        .iter()
        .flat_map(|kind| (kind.find)(&subject))
        .collect()
}

/// True if some rule has an action.
pub(in crate::commands) fn has_actions(policy: &Policy) -> bool {
    let none = policy.action_named(NO_ACTION);
    let mut rules = policy.parts().iter().flat_map(classyard::RuleSet::iter);
    rules.any(|rule| Some(rule.action()) != none)
}
