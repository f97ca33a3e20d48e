//! The report of `query`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use classyard_analysis::{Answer, Query};
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::style::{DIM, action_style, counted, paint, percent};
use classyard_report::output::table::{Side, Table, remark};
use classyard_report::output::{Report, csv};
use classyard_report::rule_view::RuleView;
use serde::Serialize;

use crate::commands::headers::{header_text, header_values};
use crate::commands::named_rules::described;
use crate::commands::rows::{MAX_ROWS, remark_more};
use crate::commands::statements::statement_number;

/// The report of `query`. Keys are stable.
#[derive(Serialize)]
pub(super) struct QueryReport {
    file: String,
    rules: usize,
    #[serde(rename = "match")]
    matches: String,
    answers: Vec<AnswerRow>,
    /// Rules for which the limit of steps was reached; `null` for packets that no rule
    /// matches.
    undecided: Vec<Option<RuleView>>,
}

/// Packets that one rule decides.
#[derive(Serialize)]
struct AnswerRow {
    /// `null` if no rule matches.
    action: Option<String>,
    rule: Option<RuleView>,
    schema: String,
    /// The packets divided by all packets of the match, in this schema.
    share: f64,
    /// An example, by field.
    header: BTreeMap<String, String>,
    #[serde(skip)]
    header_text: String,
}

impl QueryReport {
    /// Creates the report. `action` selects answers.
    pub(super) fn new(
        rules: &LoadedRules,
        matches: &str,
        query: &Query,
        action: Option<&str>,
    ) -> QueryReport {
        let view = |rule| RuleView::of(rules, rule).expect("a rule of the policy");
        let row = |answer: &Answer| {
            let schema = rules.policy.part(answer.part).schema();
            let rule = answer.rule.map(view);
            AnswerRow {
                action: rule.as_ref().and_then(|rule| rule.action.clone()),
                rule,
                schema: schema.name().to_owned(),
                share: answer.share,
                header: header_values(schema, &answer.header).into_iter().collect(),
                header_text: header_text(rules, schema, &answer.header),
            }
        };
        let answers = by_statements(rules, query);
        let answers = answers.iter().map(row);
        let has_action =
            |row: &AnswerRow| action.is_none_or(|name| row.action.as_deref() == Some(name));
        QueryReport {
            file: rules.source.clone(),
            rules: rules.statement_count(),
            matches: matches.to_owned(),
            answers: answers.filter(has_action).collect(),
            undecided: query
                .undecided()
                .iter()
                .map(|rule| rule.map(view))
                .collect(),
        }
    }
}

/// Returns the answers, one for each statement and schema.
fn by_statements(rules: &LoadedRules, query: &Query) -> Vec<Answer> {
    let mut positions = BTreeMap::new();
    let mut merged: Vec<Answer> = Vec::new();
    for answer in query.answers() {
        let statement = answer.rule.map(|rule| statement_number(rules, rule));
        match positions.get(&(answer.part, statement)) {
            None => {
                positions.insert((answer.part, statement), merged.len());
                merged.push(answer.clone());
            }
            Some(&position) => merged[position].share += answer.share,
        }
    }
    merged
}

impl Report for QueryReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(&[
            ("action", Side::Left),
            ("share", Side::Right),
            ("line", Side::Right),
            ("rule", Side::Left),
            ("for example", Side::Left),
        ]);
        for row in self.answers.iter().take(MAX_ROWS) {
            let action = row.action.as_deref().unwrap_or("none");
            let rule = row.rule.as_ref();
            table.row(vec![
                paint(action_style(action), action),
                percent(row.share),
                rule.map(RuleView::line_cell).unwrap_or_default(),
                rule.map_or_else(|| paint(DIM, "no rule matches"), described),
                row.header_text.clone(),
            ]);
        }
        table.write(out)?;
        remark_more(
            out,
            self.answers.len().saturating_sub(MAX_ROWS),
            "more rule",
        )?;
        if !self.undecided.is_empty() {
            let rules = counted(self.undecided.len(), "rule");
            remark(
                out,
                &format!("{rules} undecided: the limit of steps was reached; --steps sets it"),
            )?;
        }
        remark(
            out,
            &format!(
                "packets of \"{}\" through {} of {}",
                self.matches,
                counted(self.rules, "rule"),
                self.file
            ),
        )
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"action", &"rule", &"line", &"match", &"schema", &"share", &"header",
        ])?;
        for row in &self.answers {
            let rule = row.rule.as_ref();
            let id = rule.map(|rule| rule.id.to_string()).unwrap_or_default();
            let line = rule.map(RuleView::line_cell).unwrap_or_default();
            let matches = rule.map(|rule| rule.matches.as_str()).unwrap_or_default();
            let action = row.action.as_deref().unwrap_or_default();
            out.row(&[
                &action,
                &id,
                &line,
                &matches,
                &row.schema,
                &row.share,
                &row.header_text,
            ])?;
        }
        Ok(())
    }
}
