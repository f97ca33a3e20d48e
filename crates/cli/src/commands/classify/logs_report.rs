//! The part of a report of `classify` on flow logs.

use std::io::{self, Write};

use classyard::{ActionId, RuleId};
use classyard_parquet::{Example, Logs, Summary, VerdictSummary};
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::style::{
    self, BOLD, NOTABLE, counted, grouped, large, paint, percent,
};
use classyard_report::output::table::{Side, Table, fact, remark};
use classyard_report::rule_view::RuleView;
use serde::Serialize;

/// The maximum number of disagreements that a table lists.
const DISAGREEMENTS_SHOWN: usize = 20;

/// The flow logs that were looked up.
#[derive(Serialize)]
pub(super) struct LogsReport {
    files: usize,
    rows: u64,
    /// Rows with a null in a mapped column.
    null_rows: u64,
    /// Rows of an IP version without rules.
    other_family_rows: u64,
    /// The time from the first row to the last, with writing.
    seconds: f64,
    rows_per_second: f64,
    /// The file of results.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdicts: Option<VerdictsReport>,
}

/// Verdicts of the logs, compared with the actions of rules.
#[derive(Serialize)]
struct VerdictsReport {
    column: String,
    agreeing: u64,
    disagreeing: u64,
    disagreements: Vec<Disagreement>,
    examples: Vec<ExampleReport>,
    /// Rows whose verdict is null.
    null: u64,
    without_rule: u64,
    /// Verdicts without a known meaning.
    unknown_verdicts: Vec<Named>,
    other_unknown_verdicts: u64,
    /// Actions without a known meaning.
    unknown_actions: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    name: String,
    rows: u64,
}

#[derive(Serialize)]
struct Disagreement {
    verdict: String,
    rows: u64,
    #[serde(flatten)]
    rule: RuleView,
}

#[derive(Serialize)]
struct ExampleReport {
    file: String,
    /// The row of the file, from 0.
    row: u64,
    verdict: String,
    #[serde(flatten)]
    rule: RuleView,
    header: String,
}

impl LogsReport {
    /// Describes the logs. `verdict` is the column of verdicts.
    #[allow(clippy::cast_precision_loss)] // a rate is shown with three digits
    pub(super) fn new(
        logs: &Logs,
        summary: &Summary,
        rules: &LoadedRules,
        verdict: Option<&str>,
        seconds: f64,
        output: Option<String>,
    ) -> LogsReport {
        let verdicts = summary.verdicts.as_ref().zip(verdict);
        LogsReport {
            files: logs.paths().len(),
            rows: summary.rows,
            null_rows: summary.null_rows,
            other_family_rows: summary.other_family_rows,
            seconds,
            rows_per_second: summary.rows as f64 / seconds,
            output,
            verdicts: verdicts.map(|(verdicts, column)| {
                VerdictsReport::new(column, verdicts, &summary.examples, logs, rules)
            }),
        }
    }

    /// Writes the facts about the rows.
    pub(super) fn write_facts(&self, source: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut text = format!(
            "{} of {} from {}",
            counted(self.rows, "row"),
            counted(self.files, "file"),
            paint(BOLD, source)
        );
        for (rows, reason) in [
            (self.null_rows, "with a null in a column of the header"),
            (self.other_family_rows, "of an IP version without rules"),
        ] {
            if rows > 0 {
                let text_of_rows = format!("{} {reason}: no header", counted(rows, "row"));
                text.push_str(&format!("\n{}", paint(NOTABLE, &text_of_rows)));
            }
        }
        text.push_str(&format!("\n{} rows/s", large(self.rows_per_second)));
        fact(out, "Rows", text)?;
        if let Some(output) = &self.output {
            let text = format!("{} to {}", counted(self.rows, "row"), paint(BOLD, output));
            fact(out, "Written", text)?;
        }
        Ok(())
    }

    /// Writes the comparison of verdicts, if there is one.
    pub(super) fn write_verdicts(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.verdicts {
            Some(verdicts) => verdicts.write(out),
            None => Ok(()),
        }
    }
}

impl VerdictsReport {
    fn new(
        column: &str,
        summary: &VerdictSummary,
        examples: &[Example],
        logs: &Logs,
        rules: &LoadedRules,
    ) -> VerdictsReport {
        let view = |rule: u32| {
            let id = RuleId::new(rule).ok();
            let view = id.and_then(|id| RuleView::of(rules, id));
            view.expect("a winner is a rule of the policy")
        };
        let disagreeing = summary.disagreeing.iter();
        let mut disagreements: Vec<Disagreement> = disagreeing
            .map(|((verdict, rule, _), &rows)| Disagreement {
                verdict: verdict.clone(),
                rows,
                rule: view(*rule),
            })
            .collect();
        disagreements.sort_by_key(|one| std::cmp::Reverse(one.rows));
        let paths: Vec<_> = logs.paths().collect();
        let examples = examples.iter().map(|example| ExampleReport {
            file: paths[example.file].display().to_string(),
            row: example.row,
            verdict: example.verdict.clone(),
            rule: view(example.rule),
            header: header_text(rules, example),
        });
        let action = |action: u32| {
            let name = rules.policy.action_name(ActionId(action));
            name.map_or_else(|| action.to_string(), str::to_owned)
        };
        VerdictsReport {
            column: column.to_owned(),
            agreeing: summary.agreeing,
            disagreeing: summary.disagreements(),
            disagreements,
            examples: examples.collect(),
            null: summary.null_verdicts,
            without_rule: summary.without_rule,
            unknown_verdicts: named(
                summary
                    .unknown
                    .iter()
                    .map(|(name, &rows)| (name.clone(), rows)),
            ),
            other_unknown_verdicts: summary.other_unknown,
            unknown_actions: named(
                (summary.unclear_actions.iter()).map(|(&id, &rows)| (action(id), rows)),
            ),
        }
    }

    #[allow(clippy::cast_precision_loss)] // a share is shown with one digit
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let compared = self.agreeing + self.disagreeing;
        let mut text = match (compared, self.disagreeing) {
            (0, _) => format!("no verdict of `{}` could be compared", self.column),
            (_, 0) => format!(
                "{} of `{}` compared, none differs",
                counted(compared, "verdict"),
                self.column
            ),
            (_, rows) => {
                let share = percent(rows as f64 / compared as f64);
                let differ = format!(
                    "{} of {} differ ({share})",
                    grouped(rows),
                    grouped(compared)
                );
                format!(
                    "{} from the actions of rules, by the column `{}`",
                    paint(NOTABLE, &differ),
                    self.column
                )
            }
        };
        for (rows, reason) in [
            (self.null, "no verdict"),
            (self.without_rule, "no rule"),
            (
                self.other_unknown_verdicts,
                "one of too many other verdicts",
            ),
        ] {
            if rows > 0 {
                text.push_str(&format!(
                    "\n{} not compared: {reason}",
                    counted(rows, "row")
                ));
            }
        }
        for (kind, names) in [
            ("verdict", &self.unknown_verdicts),
            ("action", &self.unknown_actions),
        ] {
            if !names.is_empty() {
                let names = names
                    .iter()
                    .map(|one| format!("{} {}", grouped(one.rows), one.name));
                text.push_str(&format!(
                    "\nnot compared, {kind} without a known meaning: {}; --verdict-names gives it one",
                    style::listed(names)
                ));
            }
        }
        fact(out, "Verdicts", text)?;
        writeln!(out)?;
        self.write_disagreements(out)?;
        self.write_examples(out)
    }

    fn write_disagreements(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.disagreements.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(&[
            ("verdict", Side::Left),
            ("action", Side::Left),
            ("rule", Side::Right),
            ("line", Side::Right),
            ("match", Side::Left),
            ("rows", Side::Right),
        ]);
        for one in self.disagreements.iter().take(DISAGREEMENTS_SHOWN) {
            table.row(vec![
                one.verdict.clone(),
                one.rule.action.clone().unwrap_or_default(),
                one.rule.rule.to_string(),
                one.rule.line_cell(),
                one.rule.matches.clone(),
                grouped(one.rows),
            ]);
        }
        table.write(out)?;
        let hidden = self.disagreements.len().saturating_sub(DISAGREEMENTS_SHOWN);
        if hidden > 0 {
            remark(
                out,
                &format!("and {} more; --format json has all", grouped(hidden)),
            )?;
        }
        writeln!(out)
    }

    fn write_examples(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.examples.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(&[
            ("file", Side::Left),
            ("row", Side::Right),
            ("verdict", Side::Left),
            ("rule", Side::Right),
            ("header", Side::Left),
        ]);
        for example in &self.examples {
            table.row(vec![
                example.file.clone(),
                example.row.to_string(),
                example.verdict.clone(),
                example.rule.rule.to_string(),
                example.header.clone(),
            ]);
        }
        table.write(out)?;
        writeln!(out)
    }
}

/// Returns names with their rows, most rows first.
fn named(rows: impl Iterator<Item = (String, u64)>) -> Vec<Named> {
    let mut rows: Vec<Named> = rows.map(|(name, rows)| Named { name, rows }).collect();
    rows.sort_by_key(|one| std::cmp::Reverse(one.rows));
    rows
}

fn header_text(rules: &LoadedRules, example: &Example) -> String {
    let schema = rules.policy.part(example.part).schema();
    let fields = schema.fields().iter().zip(&example.header);
    let fields =
        fields.map(|(field, value)| format!("{}={}", field.name(), field.format().display(*value)));
    fields.collect::<Vec<_>>().join(" ")
}
