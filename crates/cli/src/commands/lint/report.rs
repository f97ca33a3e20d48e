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
use crate::commands::named_rules::{described, named, named_short, place};
use crate::commands::rows::{MAX_ROWS, remark_more};

/// The report of `lint`. Keys are stable.
#[derive(Default, Serialize)]
pub(super) struct LintReport {
    pub(super) files: Vec<FileReport>,
}

/// The findings in one file.
#[derive(Serialize)]
pub(super) struct FileReport {
    file: String,
    rules: usize,
    dead: usize,
    redundant: usize,
    removable: usize,
    findings: Vec<FindingRow>,
    /// Rules that were not decided within the limit of steps.
    undecided: Vec<RuleView>,
}

#[derive(Serialize)]
struct FindingRow {
    finding: Kind,
    rule: RuleView,
    /// Better rules that cover a dead rule, or worse rules with the action of a redundant rule
    /// that decide its packets without it.
    by: Vec<RuleView>,
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
    pub(super) fn new(
        rules: &LoadedRules,
        lint: &Lint,
        is_selected: impl Fn(Kind) -> bool,
    ) -> FileReport {
        let row = |&id: &RuleId| RuleView::of(rules, id).expect("a rule of the policy");
        let rows = |ids: &[RuleId]| ids.iter().map(row).collect();
        let findings = lint.findings().iter().filter_map(|finding| {
            let rule = row(&finding.rule());
            Some(match finding {
                Finding::Dead {
                    blockers,
                    all_needed,
                    same_action,
                    ..
                } => FindingRow {
                    finding: Kind::Dead,
                    rule,
                    by: rows(blockers),
                    all_needed: Some(*all_needed),
                    same_action: Some(*same_action),
                    removable: None,
                },
                Finding::Redundant {
                    successors,
                    removable,
                    ..
                } => FindingRow {
                    finding: Kind::Redundant,
                    rule,
                    by: rows(successors),
                    all_needed: None,
                    same_action: None,
                    removable: Some(*removable),
                },
                _ => return None,
            })
        });
        let findings: Vec<_> = findings.filter(|row| is_selected(row.finding)).collect();
        let count = |kind| findings.iter().filter(|row| row.finding == kind).count();
        let removable = findings.iter().filter(|row| row.removable == Some(true));
        FileReport {
            file: rules.source.clone(),
            rules: rules.policy.len(),
            dead: count(Kind::Dead),
            redundant: count(Kind::Redundant),
            removable: removable.count(),
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
        writeln!(out, "{}: {}", self.file, join(counts, ", "))
    }
}

impl FindingRow {
    /// Returns the finding as a sentence.
    fn sentence(&self) -> String {
        match self.finding {
            Kind::Dead => self.dead_sentence(),
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
                    &row.rule.matches,
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
