//! The report of `diff`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use classyard::RuleId;
use classyard_analysis::{Diff, Difference};
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::style::{BOLD, GOOD, NOTABLE, counted, grouped, paint};
use classyard_report::output::{Report, csv};
use classyard_report::rule_view::RuleView;
use serde::Serialize;

use crate::commands::headers::{header_text, header_values, is_acl};
use crate::commands::named_rules::{described, place};
use crate::commands::rows::{MAX_ROWS, remark_more};
use crate::commands::statements::statement_number;
use crate::commands::two_files::{UndecidedRow, write_undecided};

/// The report of `diff`. Keys are stable.
#[derive(Serialize)]
pub(super) struct DiffReport {
    /// `null` if that was not decided within the limit of steps.
    equivalent: Option<bool>,
    /// True if the comparison stopped at the limit of differences.
    cut: bool,
    files: [FileRow; 2],
    differences: Vec<DifferenceRow>,
    undecided: Vec<UndecidedRow>,
}

#[derive(Serialize)]
struct FileRow {
    file: String,
    rules: usize,
    /// Rules without an equal rule in the other file; of several parts, once for each.
    changed: usize,
}

/// Packets that one rule of each file decides, with different actions.
#[derive(Serialize)]
struct DifferenceRow {
    schema: String,
    /// An example, by field.
    header: BTreeMap<String, String>,
    #[serde(skip)]
    header_text: String,
    /// True if the headers have names of interfaces and lists.
    #[serde(skip)]
    has_names: bool,
    /// The headers divided by all headers of the schema.
    share: f64,
    /// True if `share` may be too small.
    more: bool,
    /// The rule of each file; `null` if no rule matches.
    rules: [Option<RuleView>; 2],
}

impl DiffReport {
    /// Creates the report on two files of rules.
    pub(super) fn new(first: &LoadedRules, second: &LoadedRules, diff: &Diff) -> DiffReport {
        let files = [first, second];
        let view =
            |file: usize, id: RuleId| RuleView::of(files[file], id).expect("a rule of the policy");
        let row = |difference: &Difference| {
            let schema = first.policy.part(difference.part).schema();
            DifferenceRow {
                schema: schema.name().to_owned(),
                has_names: is_acl(schema),
                // Both files were read with the same conditions; the second has all of them.
                header_text: header_text(second, schema, &difference.header),
                header: header_values(schema, &difference.header)
                    .into_iter()
                    .collect(),
                share: difference.share,
                more: difference.more,
                rules: [
                    difference.first.map(|id| view(0, id)),
                    difference.second.map(|id| view(1, id)),
                ],
            }
        };
        let changed = diff.unpaired();
        DiffReport {
            equivalent: diff.is_equivalent(),
            cut: diff.is_cut(),
            files: [0, 1].map(|file| FileRow {
                file: files[file].source.clone(),
                rules: files[file].statement_count(),
                changed: changed[file],
            }),
            differences: by_statements(files, diff).iter().map(row).collect(),
            undecided: UndecidedRow::all(files, diff),
        }
    }

    fn write_summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let [first, second] = &self.files;
        let file = |row: &FileRow| {
            let rules = counted(row.rules, "rule");
            format!(
                "{}: {rules}, {} of them not in the other",
                row.file,
                grouped(row.changed)
            )
        };
        writeln!(out, "{}", file(first))?;
        writeln!(out, "{}", file(second))?;
        let verdict = match self.equivalent {
            Some(true) => paint(GOOD, "every packet gets the same action"),
            Some(false) => {
                let differences = counted(self.differences.len(), "difference");
                let cut_remark = if self.cut {
                    "; the others were not searched for"
                } else {
                    ""
                };
                paint(NOTABLE, &differences) + cut_remark
            }
            None => paint(
                NOTABLE,
                "undecided: the limit of steps was reached; --steps sets it",
            ),
        };
        writeln!(out, "{verdict}")
    }
}

/// Returns the differences, one for each pair of statements and schema.
fn by_statements(files: [&LoadedRules; 2], diff: &Diff) -> Vec<Difference> {
    let number =
        |file: usize, rule: Option<RuleId>| rule.map(|rule| statement_number(files[file], rule));
    let mut positions = BTreeMap::new();
    let mut merged: Vec<Difference> = Vec::new();
    for difference in diff.differences() {
        let statements = [number(0, difference.first), number(1, difference.second)];
        let key = (difference.part, statements);
        match positions.get(&key) {
            None => {
                positions.insert(key, merged.len());
                merged.push(difference.clone());
            }
            Some(&position) => {
                let earlier: &mut Difference = &mut merged[position];
                earlier.share += difference.share;
                earlier.more |= difference.more;
            }
        }
    }
    merged
}

impl DifferenceRow {
    /// Returns the action of the rule of a file.
    fn action(&self, file: usize) -> &str {
        match &self.rules[file] {
            Some(rule) => rule.action.as_deref().unwrap_or("no action"),
            None => "no match",
        }
    }

    /// Returns the number of headers as a share, if it means something: most names of
    /// interfaces and lists do not exist.
    fn share(&self) -> Option<String> {
        let at_least = if self.more { "at least " } else { "" };
        let share = || {
            format!(
                "{at_least}{:.3e} of all {} headers",
                self.share, self.schema
            )
        };
        (!self.has_names).then(share)
    }
}

impl Report for DiffReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in self.differences.iter().take(MAX_ROWS) {
            let actions = format!("{} becomes {}", row.action(0), row.action(1));
            let share = row.share().map(|share| format!(" ({share})"));
            writeln!(
                out,
                "{}: {}{}",
                paint(BOLD, &actions),
                row.header_text,
                share.unwrap_or_default()
            )?;
            for (file, rule) in self.files.iter().zip(&row.rules) {
                match rule {
                    Some(rule) => {
                        writeln!(out, "    {}: {}", place(&file.file, rule), described(rule))?;
                    }
                    None => writeln!(out, "    {}: no rule matches", file.file)?,
                }
            }
        }
        let unlisted = self.differences.len().saturating_sub(MAX_ROWS);
        remark_more(out, unlisted, "more difference")?;
        write_undecided(out, &self.undecided)?;
        self.write_summary(out)
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"schema",
            &"header",
            &"share",
            &"first_rule",
            &"first_action",
            &"second_rule",
            &"second_action",
        ])?;
        for row in &self.differences {
            let [first, second] = [0, 1].map(|file| {
                let rule = row.rules[file].as_ref();
                rule.map(|rule| rule.id.to_string()).unwrap_or_default()
            });
            let [before, after] = [row.action(0), row.action(1)];
            out.row(&[
                &row.schema,
                &row.header_text,
                &row.share,
                &first,
                &before,
                &second,
                &after,
            ])?;
        }
        Ok(())
    }
}
