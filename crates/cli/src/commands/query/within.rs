//! `query --within`: the packets that a file of rules permits and another one does not.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use classyard_analysis::{Diff, Difference, outside};
use classyard_configs::with_impossible_headers_denied;
use classyard_report::failure::Failure;
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::style::{BAD, BOLD, GOOD, NOTABLE, counted, grouped, paint};
use classyard_report::output::{Report, csv};
use classyard_report::reporter::Reporter;
use classyard_report::rule_view::RuleView;
use classyard_report::suggestion::did_you_mean;
use serde::Serialize;

use super::{Args, check_action, parse};
use crate::commands::analysis_failure::failure;
use crate::commands::headers::{header_text, header_values, is_acl};
use crate::commands::named_rules::{described, place};
use crate::commands::rows::{MAX_ROWS, remark_more};
use crate::commands::statements::statement_number;
use crate::commands::two_files::{self, UndecidedRow, write_undecided};

/// The action in question if `--action` names none.
const DEFAULT_ACTION: &str = "permit";

/// The number of rules that share the limit of steps.
const RULES_WITH_ALL_STEPS: usize = 100;

/// Runs the command on the file and the rules that allow.
pub(super) fn run(args: &Args, files: [&Path; 2], reporter: Reporter) -> Result<(), Failure> {
    let second_list = args.second_list.as_ref();
    let [rules, allowed] = two_files::load(&args.reading, second_list, files, reporter)?;
    let action = args.action.as_deref().unwrap_or(DEFAULT_ACTION);
    check_action(&rules, action)?;
    warn_of_missing_action(&allowed, action, reporter);
    let selection = match args.matches.as_str() {
        "any" => None,
        text => Some(parse(text, &rules.policy)?),
    };
    let settings = two_files::settings(args.steps / RULES_WITH_ALL_STEPS);
    let policies = [&rules, &allowed].map(|rules| with_impossible_headers_denied(&rules.policy));
    let mut progress = reporter.progress();
    let selection = selection.as_ref();
    let [first, second] = &policies;
    let diff = outside(first, second, action, selection, &settings, &mut progress);
    drop(progress);
    let report = WithinReport::new([&rules, &allowed], args, action, &diff.map_err(failure)?);
    args.output.report(&report)?;
    match report.is_within {
        Some(true) => Ok(()),
        _ => Err(Failure::Different),
    }
}

/// Warns if no rule of the file that allows has the action.
fn warn_of_missing_action(allowed: &LoadedRules, action: &str, reporter: Reporter) {
    if allowed.policy.action_named(action).is_some() {
        return;
    }
    let rules = allowed.policy.parts().iter();
    let rules = rules.flat_map(classyard::RuleSet::iter);
    let names = rules.filter_map(|rule| allowed.policy.action_name(rule.action()));
    reporter.warn(&format!(
        "no rule of {} has the action `{action}`, so it allows nothing{}",
        allowed.source,
        did_you_mean(action, names)
    ));
}

/// The report of `query --within`. Keys are stable.
#[derive(Serialize)]
struct WithinReport {
    file: String,
    /// Rules, or statements of a configuration.
    rules: usize,
    /// The file that allows.
    within: String,
    #[serde(rename = "match")]
    matches: String,
    action: String,
    /// `null` if that was not decided within the limit of steps.
    is_within: Option<bool>,
    /// True if the search stopped at the limit of findings.
    cut: bool,
    outside: Vec<OutsideRow>,
    undecided: Vec<UndecidedRow>,
}

/// Packets of a rule that the other file does not allow.
#[derive(Serialize)]
struct OutsideRow {
    rule: RuleView,
    schema: String,
    /// The packets divided by all packets of the match, in this schema.
    share: f64,
    /// True if `share` may be too small.
    more: bool,
    /// An example, by field.
    header: BTreeMap<String, String>,
    #[serde(skip)]
    header_text: String,
    /// True if the headers have names of interfaces and lists.
    #[serde(skip)]
    has_names: bool,
    /// The rule of the other file that decides the example; `null` if no rule matches.
    other_rule: Option<RuleView>,
}

impl WithinReport {
    fn new(files: [&LoadedRules; 2], args: &Args, action: &str, diff: &Diff) -> WithinReport {
        let [rules, allowed] = files;
        let view = |file: usize, id| RuleView::of(files[file], id).expect("a rule of the policy");
        let row = |difference: &Difference| {
            let schema = rules.policy.part(difference.part).schema();
            OutsideRow {
                rule: view(0, difference.first.expect("a rule with the action")),
                schema: schema.name().to_owned(),
                share: difference.share,
                more: difference.more,
                header: header_values(schema, &difference.header)
                    .into_iter()
                    .collect(),
                // Both files were read with the same conditions; the second has all of them.
                header_text: header_text(allowed, schema, &difference.header),
                has_names: is_acl(schema),
                other_rule: difference.second.map(|id| view(1, id)),
            }
        };
        WithinReport {
            file: rules.source.clone(),
            rules: rules.statement_count(),
            within: allowed.source.clone(),
            matches: args.matches.clone(),
            action: action.to_owned(),
            is_within: diff.is_equivalent(),
            cut: diff.is_cut(),
            outside: by_statement(rules, diff).iter().map(row).collect(),
            undecided: UndecidedRow::all(files, diff),
        }
    }

    fn write_summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self {
            file,
            within,
            action,
            ..
        } = self;
        let packets = match self.matches.as_str() {
            "any" => "packets".to_owned(),
            matches => format!("packets of \"{matches}\""),
        };
        let verdict = match self.is_within {
            Some(true) => {
                let verdict = format!("no {packets} with the action {action} are outside");
                paint(GOOD, &verdict)
            }
            Some(false) => {
                let verb = if self.statements() == 1 {
                    "has"
                } else {
                    "have"
                };
                let verdict = format!(
                    "{} of them {verb} {packets} with the action {action} outside",
                    grouped(self.statements())
                );
                let cut = match self.cut {
                    true => "; the search stopped at its limit of findings",
                    false => "",
                };
                paint(NOTABLE, &verdict) + cut
            }
            None => paint(
                NOTABLE,
                "undecided: the limit of steps was reached; --steps sets it",
            ),
        };
        let rules = counted(self.rules, "rule");
        writeln!(out, "{file}: {rules}; {verdict} of {within}")
    }

    /// Returns the number of rules of the file with packets outside.
    fn statements(&self) -> usize {
        let rules = self.outside.iter().map(|row| row.rule.rule);
        rules.collect::<std::collections::BTreeSet<_>>().len()
    }
}

/// Returns the differences, one for each statement of the first file and schema, in the order
/// of the file.
fn by_statement(rules: &LoadedRules, diff: &Diff) -> Vec<Difference> {
    let mut merged: BTreeMap<_, Difference> = BTreeMap::new();
    for difference in diff.differences() {
        let Some(rule) = difference.first else {
            continue;
        };
        let statement = statement_number(rules, rule);
        let earlier = merged.entry((statement, difference.part));
        earlier
            .and_modify(|earlier| {
                earlier.share += difference.share;
                earlier.more |= difference.more;
            })
            .or_insert_with(|| difference.clone());
    }
    merged.into_values().collect()
}

impl OutsideRow {
    /// Returns the number of headers as a share, if it means something: most names of
    /// interfaces and lists do not exist.
    fn share_text(&self, matches: &str) -> String {
        if self.has_names {
            return String::new();
        }
        let at_least = if self.more { "at least " } else { "" };
        let whole = match matches {
            "any" => format!("all {} headers", self.schema),
            _ => "the match".to_owned(),
        };
        format!(" ({at_least}{:.3e} of {whole})", self.share)
    }
}

impl Report for WithinReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in self.outside.iter().take(MAX_ROWS) {
            writeln!(
                out,
                "{}: {}: {}{}",
                paint(BOLD, &place(&self.file, &row.rule)),
                paint(BAD, "outside"),
                row.header_text,
                row.share_text(&self.matches)
            )?;
            writeln!(out, "    {}", described(&row.rule))?;
            match &row.other_rule {
                Some(rule) => {
                    writeln!(
                        out,
                        "    {}: {}",
                        place(&self.within, rule),
                        described(rule)
                    )?;
                }
                None => writeln!(out, "    {}: no rule matches", self.within)?,
            }
        }
        let unlisted = self.outside.len().saturating_sub(MAX_ROWS);
        remark_more(out, unlisted, "more rule")?;
        write_undecided(out, &self.undecided)?;
        self.write_summary(out)
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"line",
            &"rule",
            &"match",
            &"schema",
            &"share",
            &"header",
            &"other_rule",
            &"other_action",
        ])?;
        for row in &self.outside {
            let other = row.other_rule.as_ref();
            let id = other.map(|rule| rule.id.to_string()).unwrap_or_default();
            let action = other.and_then(|rule| rule.action.as_deref());
            out.row(&[
                &row.rule.line_cell(),
                &row.rule.id,
                &row.rule.matches,
                &row.schema,
                &row.share,
                &row.header_text,
                &id,
                &action.unwrap_or_default(),
            ])?;
        }
        Ok(())
    }
}
