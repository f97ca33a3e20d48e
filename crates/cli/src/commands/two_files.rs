//! Two files of rules that are compared.

use std::io::{self, Write};
use std::path::Path;

use classyard_analysis::{Diff, DiffSettings};
use classyard_report::failure::Failure;
use classyard_report::input::files::only_one_from_stdin;
use classyard_report::input::rules::{LoadedRules, RulesArgs, load_both};
use classyard_report::output::style::{BOLD, NOTABLE, paint};
use classyard_report::reporter::Reporter;
use classyard_report::rule_view::RuleView;
use serde::Serialize;

use super::named_rules::{described, place};
use super::rows::{MAX_ROWS, remark_more};

/// Reads two files. `second_list` is the name of the list of the second file, if it differs
/// from the name in the first file.
pub(super) fn load(
    reading: &RulesArgs,
    second_list: Option<&String>,
    files: [&Path; 2],
    reporter: Reporter,
) -> Result<[LoadedRules; 2], Failure> {
    only_one_from_stdin(&[
        ("the first rules", Some(files[0])),
        ("the second rules", Some(files[1])),
    ])?;
    let second_reading = RulesArgs {
        list: second_list.or(reading.list.as_ref()).cloned(),
        ..reading.clone()
    };
    load_both([reading, &second_reading], files, reporter)
}

/// Returns the settings of a comparison with a maximum number of steps for each rule. The
/// maximum for all rules together is 100 times as high.
pub(super) fn settings(steps_per_rule: usize) -> DiffSettings {
    let mut settings = DiffSettings::default();
    settings.max_steps_per_rule = steps_per_rule as u64;
    settings.max_steps = settings.max_steps_per_rule.saturating_mul(100);
    settings
}

/// A rule for which the limit of steps was reached.
#[derive(Serialize)]
pub(super) struct UndecidedRow {
    file: String,
    rule: RuleView,
}

impl UndecidedRow {
    /// Returns the undecided rules of a comparison.
    pub(super) fn all(files: [&LoadedRules; 2], diff: &Diff) -> Vec<UndecidedRow> {
        let undecided = diff.undecided().iter().map(|undecided| {
            let file = files[undecided.policy];
            UndecidedRow {
                file: file.source.clone(),
                rule: RuleView::of(file, undecided.rule).expect("a rule of the policy"),
            }
        });
        undecided.collect()
    }
}

/// Lists undecided rules for people.
pub(super) fn write_undecided(out: &mut dyn Write, rows: &[UndecidedRow]) -> io::Result<()> {
    for row in rows.iter().take(MAX_ROWS) {
        writeln!(
            out,
            "{}: {}: {}",
            paint(BOLD, &place(&row.file, &row.rule)),
            paint(NOTABLE, "undecided"),
            described(&row.rule)
        )?;
    }
    let unlisted = rows.len().saturating_sub(MAX_ROWS);
    remark_more(out, unlisted, "more rule")
}
