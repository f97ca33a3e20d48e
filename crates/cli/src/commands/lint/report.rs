//! The report of `lint`.

use std::io::{self, Write};

use classyard::RuleId;
use classyard_analysis::{Finding, Lint};
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::style::{BAD, BOLD, NOTABLE, counted, paint};
use classyard_report::output::{Report, csv, join};
use classyard_report::rule_view::RuleView;
use serde::Serialize;

use super::Kind;
use super::allowances::AllowedBy;
use crate::commands::named_rules::{described, named, named_short, place};
use crate::commands::rows::{MAX_ROWS, remark_more};
use crate::commands::statements::{is_reported, views};

/// The maximum number of dead matches of a partly dead statement that a sentence shows.
const MAX_SHOWN_PARTS: usize = 3;

/// The report of `lint`. Keys are stable.
#[derive(Default, Serialize)]
pub(super) struct LintReport {
    pub(super) files: Vec<FileReport>,
}

/// The findings in one file.
#[derive(Serialize)]
pub(super) struct FileReport {
    pub(super) file: String,
    /// Rules, or statements of a configuration.
    rules: usize,
    dead: usize,
    partly_dead: usize,
    redundant: usize,
    removable: usize,
    /// Findings that a comment in the file allows. They are not listed.
    allowed: usize,
    /// Findings that a configuration file allows. They are not listed.
    allowed_by_config: usize,
    /// Statements with conditions that are not modelled. They are not called dead.
    with_conditions: usize,
    pub(super) findings: Vec<FindingRow>,
    /// Rules that were not decided within the limit of steps.
    pub(super) undecided: Vec<RuleView>,
    /// The findings that are allowed.
    #[serde(skip)]
    pub(super) allowed_rows: Vec<AllowedRow>,
}

/// A finding that is allowed.
pub(super) struct AllowedRow {
    pub(super) row: FindingRow,
    pub(super) by: AllowedBy,
}

/// A finding.
#[derive(Serialize)]
pub(super) struct FindingRow {
    pub(super) finding: Kind,
    pub(super) rule: RuleView,
    /// The dead part of a partly dead statement: its rules. Empty for other findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dead_rules: Vec<RuleView>,
    /// Better rules that cover a dead rule, or worse rules with the action of a redundant rule
    /// that decide its packets without it.
    pub(super) by: Vec<RuleView>,
    /// True if each of `by` is needed to cover the dead rule; `None` for other findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_needed: Option<bool>,
    /// True if all of `by` have the action of the dead rule; `None` for other findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_action: Option<bool>,
    /// True if the redundant rule can be removed together with all dead and removable rules;
    /// `None` for other findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    removable: Option<bool>,
}

impl FileReport {
    /// Creates the report of a file. Findings of kinds that `is_selected` refuses are left out.
    /// `allowed_by` returns the reason to allow a kind of finding about a rule, if there is one.
    pub(super) fn new(
        rules: &LoadedRules,
        lint: &Lint,
        is_selected: impl Fn(Kind) -> bool,
        allowed_by: impl Fn(&RuleView, &str) -> Option<AllowedBy>,
    ) -> FileReport {
        let row = |&id: &RuleId| RuleView::of(rules, id).expect("a rule of the policy");
        let findings = lint.findings().iter();
        let findings = findings.filter(|finding| is_reported(rules, finding));
        let findings = findings.filter_map(|finding| FindingRow::new(rules, finding));
        let findings = findings.filter(|row| is_selected(row.finding));
        let mut allowed_rows = Vec::new();
        let findings = findings.filter_map(|row| match allowed_by(&row.rule, row.finding.name()) {
            None => Some(row),
            Some(by) => {
                allowed_rows.push(AllowedRow { row, by });
                None
            }
        });
        let findings: Vec<FindingRow> = findings.collect();
        let by_config = |allowed: &&AllowedRow| matches!(allowed.by, AllowedBy::Config { .. });
        let allowed_by_config = allowed_rows.iter().filter(by_config).count();
        let count = |kind| findings.iter().filter(|row| row.finding == kind).count();
        let removable = findings.iter().filter(|row| row.removable == Some(true));
        FileReport {
            file: rules.source.clone(),
            rules: rules.statement_count(),
            dead: count(Kind::Dead),
            partly_dead: count(Kind::PartlyDead),
            with_conditions: rules.statements_with_conditions(),
            redundant: count(Kind::Redundant),
            removable: removable.count(),
            allowed: allowed_rows.len() - allowed_by_config,
            allowed_by_config,
            allowed_rows,
            undecided: lint.unknown().iter().map(row).collect(),
            findings,
        }
    }

    fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.undecided.is_empty()
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in self.findings.iter().take(MAX_ROWS) {
            let (label, style) = match (row.finding, row.same_action) {
                (Kind::Dead, Some(false)) => ("dead", BAD),
                (Kind::Dead, _) => ("dead", NOTABLE),
                (Kind::PartlyDead, _) => ("partly dead", NOTABLE),
                (Kind::Redundant, _) => ("redundant", NOTABLE),
            };
            writeln!(
                out,
                "{}: {}: {}",
                paint(BOLD, &place(&self.file, &row.rule)),
                paint(style, label),
                row.sentence()
            )?;
            writeln!(out, "    {}", described(&row.rule))?;
        }
        remark_more(
            out,
            self.findings.len().saturating_sub(MAX_ROWS),
            "more finding",
        )?;
        for rule in self.undecided.iter().take(MAX_ROWS) {
            writeln!(
                out,
                "{}: {}: the limit of steps was reached; --steps sets it",
                paint(BOLD, &place(&self.file, rule)),
                paint(NOTABLE, "undecided")
            )?;
            writeln!(out, "    {}", described(rule))?;
        }
        remark_more(
            out,
            self.undecided.len().saturating_sub(MAX_ROWS),
            "more rule",
        )?;
        let mut counts = vec![counted(self.rules, "rule")];
        counts.push(format!("{} dead", self.dead));
        if self.partly_dead > 0 {
            counts.push(format!("{} partly dead", self.partly_dead));
        }
        counts.push(match self.removable {
            count if count == self.redundant => format!("{} redundant", self.redundant),
            count => format!(
                "{} redundant, {count} of them removable together",
                self.redundant
            ),
        });
        if !self.undecided.is_empty() {
            counts.push(format!("{} undecided", self.undecided.len()));
        }
        if self.allowed > 0 {
            counts.push(format!("{} allowed by comments", self.allowed));
        }
        if self.allowed_by_config > 0 {
            let count = self.allowed_by_config;
            counts.push(format!("{count} allowed by the configuration"));
        }
        if self.with_conditions > 0 {
            let conditions = "with a condition that is not modelled";
            counts.push(format!("{} {conditions}", self.with_conditions));
        }
        writeln!(out, "{}: {}", self.file, join(counts, ", "))
    }
}

impl FindingRow {
    /// Returns the row of a finding. `None` for kinds that this program does not report.
    fn new(rules: &LoadedRules, finding: &Finding) -> Option<FindingRow> {
        let rule = RuleView::of(rules, finding.rule())?;
        let row = |finding, by: &[RuleId]| FindingRow {
            finding,
            rule,
            dead_rules: Vec::new(),
            by: views(rules, by),
            all_needed: None,
            same_action: None,
            removable: None,
        };
        Some(match finding {
            Finding::Dead {
                blockers,
                all_needed,
                same_action,
                ..
            } => FindingRow {
                all_needed: Some(*all_needed),
                same_action: Some(*same_action),
                ..row(Kind::Dead, blockers)
            },
            Finding::PartlyDead {
                dead_rules,
                blockers,
                ..
            } => FindingRow {
                dead_rules: dead_rules
                    .iter()
                    .filter_map(|&id| RuleView::of(rules, id))
                    .collect(),
                ..row(Kind::PartlyDead, blockers)
            },
            Finding::Redundant {
                successors,
                removable,
                ..
            } => FindingRow {
                removable: Some(*removable),
                ..row(Kind::Redundant, successors)
            },
            _ => return None,
        })
    }

    /// Returns the finding as a sentence.
    pub(super) fn sentence(&self) -> String {
        match self.finding {
            Kind::Dead => self.dead_sentence(),
            Kind::PartlyDead => {
                let shown = self.dead_rules.iter().take(MAX_SHOWN_PARTS);
                let shown = join(shown.map(|rule| rule.matches.as_str()), "; ");
                let unshown = self.dead_rules.len().saturating_sub(MAX_SHOWN_PARTS);
                let unshown = match unshown {
                    0 => String::new(),
                    count => format!("; {}", counted(count, "more match")),
                };
                format!("{shown}{unshown}: covered by {}", named(&self.by))
            }
            Kind::Redundant => {
                let successors = match self.by.is_empty() {
                    true => String::new(),
                    false => {
                        let verb = if self.by.len() == 1 { "gives" } else { "give" };
                        format!("; {} {verb} its packets the same", named(&self.by))
                    }
                };
                let exception = match self.removable {
                    Some(false) => " (not together with the other findings)",
                    _ => "",
                };
                format!("its removal changes no action{exception}{successors}")
            }
        }
    }

    fn dead_sentence(&self) -> String {
        let other_rules = named(&self.by);
        let need = match (self.by.len(), self.all_needed) {
            (1, _) => "",
            (_, Some(true)) => ", by none alone",
            _ => ", perhaps by fewer",
        };
        let other_actions = self.by.iter().filter(|by| by.action != self.rule.action);
        let other_actions: Vec<_> = other_actions.cloned().collect();
        let actions = match (self.same_action, other_actions.len()) {
            (Some(true), _) | (_, 0) => String::new(),
            (_, 1) => format!("; {} has another action", named_short(&other_actions)),
            _ => format!("; {} have other actions", named_short(&other_actions)),
        };
        format!("covered by {other_rules}{need}{actions}")
    }
}

/// Returns a rule's match, or the statement of a configuration.
fn described_match(rule: &RuleView) -> &str {
    rule.statement.as_deref().unwrap_or(&rule.matches)
}

impl LintReport {
    /// True if nothing was found and every rule was decided.
    pub(super) fn is_clean(&self) -> bool {
        self.files.iter().all(FileReport::is_clean)
    }
}

impl Report for LintReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        self.files.iter().try_for_each(|file| file.write(out))
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"file", &"line", &"rule", &"finding", &"match", &"by", &"detail",
        ])?;
        for file in &self.files {
            for row in &file.findings {
                let kind = row.finding.name();
                let line = row
                    .rule
                    .line
                    .map(|line| line.to_string())
                    .unwrap_or_default();
                let by = join(row.by.iter().map(|rule| rule.id), " ");
                out.row(&[
                    &file.file,
                    &line,
                    &row.rule.id,
                    &kind,
                    &described_match(&row.rule),
                    &by,
                    &row.sentence(),
                ])?;
            }
            for rule in &file.undecided {
                let line = rule.line.map(|line| line.to_string()).unwrap_or_default();
                out.row(&[
                    &file.file,
                    &line,
                    &rule.rule,
                    &"undecided",
                    &rule.matches,
                    &"",
                    &"",
                ])?;
            }
        }
        Ok(())
    }
}
