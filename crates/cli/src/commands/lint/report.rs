//! The report of `lint`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use classyard::RuleId;
use classyard_analysis::Lint;
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::style::{BAD, BOLD, NOTABLE, counted, paint};
use classyard_report::output::{Report, csv, join};
use classyard_report::rule_view::RuleView;
use serde::Serialize;

use super::allowances::AllowedBy;
use super::finding::{About, FindingRow, Kind, Subject};
use crate::commands::classify::RuleHits;
use crate::commands::named_rules::{described, place};
use crate::commands::rows::{MAX_ROWS, remark_more};

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
    /// The findings of every kind.
    counts: BTreeMap<&'static str, usize>,
    /// Findings that a comment in the file allows. They are not listed.
    allowed: usize,
    /// Findings that a configuration file allows. They are not listed.
    allowed_by_config: usize,
    /// Statements with conditions that are not modelled. They are not called dead.
    with_conditions: usize,
    /// The headers of a capture or a trace that were counted for `never-hit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<u64>,
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

impl FileReport {
    /// Creates the report of a file. `hits` has the headers that rules decide. Findings of kinds that `is_selected` refuses are left out.
    /// `allowed_by` returns the reason to allow a kind of finding about a part of the file, if there is
    /// one.
    pub(super) fn new(
        rules: &LoadedRules,
        lint: &Lint,
        hits: Option<&RuleHits>,
        is_selected: impl Fn(Kind) -> bool,
        allowed_by: impl Fn(&About, &str) -> Option<AllowedBy>,
    ) -> FileReport {
        let row = |&id: &RuleId| RuleView::of(rules, id).expect("a rule of the policy");
        let subject = Subject::new(rules, lint.findings(), hits);
        let kinds = Kind::ALL.into_iter().filter(|&kind| is_selected(kind));
        let kinds: Vec<Kind> = kinds.collect();
        let mut findings: Vec<FindingRow> = kinds
            .iter()
            .flat_map(|kind| (kind.find)(&subject))
            .collect();
        findings.sort_by_key(|row| {
            let rule = row.about.rule().map(|rule| rule.rule);
            (row.about.line(), row.about.column(), rule)
        });
        let mut allowed_rows = Vec::new();
        let findings = findings.into_iter().filter_map(|row| {
            match allowed_by(&row.about, row.finding.name()) {
                None => Some(row),
                Some(by) => {
                    allowed_rows.push(AllowedRow { row, by });
                    None
                }
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
            dead: count(Kind::DEAD),
            partly_dead: count(Kind::PARTLY_DEAD),
            with_conditions: rules.statements_with_conditions(),
            headers: hits.map(|hits| hits.headers),
            redundant: count(Kind::REDUNDANT),
            removable: removable.count(),
            counts: kinds.iter().map(|&kind| (kind.name, count(kind))).collect(),
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
            let style = match row.same_action {
                Some(false) => BAD,
                _ => NOTABLE,
            };
            writeln!(
                out,
                "{}: {}: {}",
                paint(BOLD, &row.about.place(&self.file)),
                paint(style, row.finding.label),
                row.sentence()
            )?;
            writeln!(out, "    {}", row.about.described())?;
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
        writeln!(out, "{}: {}", self.file, join(self.summary(), ", "))
    }

    /// Returns the numbers of rules and findings, in words.
    fn summary(&self) -> Vec<String> {
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
        let named = [Kind::DEAD, Kind::PARTLY_DEAD, Kind::REDUNDANT];
        for kind in Kind::ALL.iter().filter(|kind| !named.contains(kind)) {
            match self.counts.get(kind.name) {
                None | Some(0) => {}
                Some(count) => counts.push(format!("{count} {}", kind.label)),
            }
        }
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
        counts
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
                let line = row.about.line();
                let line = line.map(|line| line.to_string()).unwrap_or_default();
                let id = row.about.rule().map(|rule| rule.id.to_string());
                let by = join(row.by.iter().map(|rule| rule.id), " ");
                out.row(&[
                    &file.file,
                    &line,
                    &id.unwrap_or_default(),
                    &kind,
                    &row.about.described_match(),
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
