//! Packets selected by the rule that decides them.

use std::collections::BTreeSet;

use classyard_report::failure::Failure;
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::join;
use classyard_report::suggestion::did_you_mean;

use super::outcome::Outcome;

/// A rule on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RuleSelector {
    /// The number in file order, from 0.
    Number(usize),
    Id(u32),
    /// All rules of a line, or of the statement at a column of the line.
    Line {
        line: u32,
        column: Option<u32>,
    },
    Name(String),
    /// Packets that no rule matches.
    NoRule,
    /// Packets that have no header for the rules.
    NoHeader,
}

impl RuleSelector {
    /// Parses a rule for the argument parser.
    pub(super) fn parse(text: &str) -> Result<RuleSelector, String> {
        let expected = || {
            "expected a rule's number, `line:N`, `line:N:COLUMN`, `id:N`, `name:NAME`, `none` or \
             `no-header`"
                .to_owned()
        };
        let number = |text: &str| text.parse::<u32>().map_err(|_| expected());
        match text.split_once(':') {
            Some(("line", place)) => {
                let (line, column) = match place.split_once(':') {
                    Some((line, column)) => (line, Some(number(column)?)),
                    None => (place, None),
                };
                let line = number(line)?;
                Ok(RuleSelector::Line { line, column })
            }
            Some(("id", id)) => Ok(RuleSelector::Id(number(id)?)),
            Some(("name", name)) => Ok(RuleSelector::Name(name.to_owned())),
            None if text == "none" => Ok(RuleSelector::NoRule),
            None if text == "no-header" => Ok(RuleSelector::NoHeader),
            _ => text
                .parse()
                .map(RuleSelector::Number)
                .map_err(|_| expected()),
        }
    }
}

/// The selected outcomes.
#[derive(Debug)]
pub(super) struct Selection {
    /// For each rule, in file order, whether its packets are selected.
    rules: Vec<bool>,
    has_misses: bool,
    has_packets_without_header: bool,
}

impl Selection {
    /// Selects everything.
    pub(super) fn all(rules: &LoadedRules) -> Selection {
        Selection {
            rules: vec![true; rules.policy.len()],
            has_misses: true,
            has_packets_without_header: true,
        }
    }

    /// Selects the packets of these rules, and of all rules with these actions.
    ///
    /// # Errors
    /// [`Failure::Usage`] if a rule or an action does not exist.
    pub(super) fn new(
        rules: &LoadedRules,
        selectors: &[RuleSelector],
        actions: &[String],
    ) -> Result<Selection, Failure> {
        let mut selection = Selection {
            rules: vec![false; rules.policy.len()],
            has_misses: false,
            has_packets_without_header: false,
        };
        for selector in selectors {
            match selector {
                RuleSelector::NoRule => selection.has_misses = true,
                RuleSelector::NoHeader => selection.has_packets_without_header = true,
                _ => {
                    for position in positions(rules, selector)? {
                        selection.rules[position] = true;
                    }
                }
            }
        }
        for action in actions {
            for position in with_action(rules, action)? {
                selection.rules[position] = true;
            }
        }
        Ok(selection)
    }

    /// True if packets with this outcome are selected.
    pub(super) fn has(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Rule(position) => self.rules[position],
            Outcome::Miss => self.has_misses,
            Outcome::NoHeader => self.has_packets_without_header,
        }
    }
}

/// Returns the positions of the rules that a selector names: at least one.
fn positions(rules: &LoadedRules, selector: &RuleSelector) -> Result<Vec<usize>, Failure> {
    let policy = &rules.policy;
    let all = 0..policy.len();
    let source = &rules.source;
    let (selected, missing): (Vec<usize>, String) = match selector {
        RuleSelector::Number(number) => (
            all.filter(|position| position == number).collect(),
            format!(
                "rule {number}; its rules have the numbers 0 to {}",
                policy.len().saturating_sub(1)
            ),
        ),
        RuleSelector::Id(id) => (
            all.filter(|&position| policy.ids()[position].get() == *id)
                .collect(),
            format!("rule with the id {id}"),
        ),
        RuleSelector::Line { line, column } => {
            let is_at = |position: &usize| {
                let found_column = rules.statement(*position).map(|source| source.column);
                rules.line(*position) == Some(*line)
                    && (column.is_none() || found_column == *column)
            };
            let place = match column {
                Some(column) => format!("rule at line {line}, column {column}"),
                None => format!("rule on line {line}"),
            };
            (
                all.filter(is_at).collect(),
                place + &next_rule(rules, *line),
            )
        }
        RuleSelector::Name(name) => {
            let name_of = |position: usize| policy.rule_name(policy.ids()[position]);
            let names = all.clone().filter_map(name_of);
            (
                all.clone()
                    .filter(|&position| name_of(position) == Some(name))
                    .collect(),
                format!("rule with the name `{name}`{}", did_you_mean(name, names)),
            )
        }
        RuleSelector::NoRule | RuleSelector::NoHeader => return Ok(Vec::new()),
    };
    match selected.is_empty() {
        true => Err(Failure::usage(format!("{source} has no {missing}"))),
        false => Ok(selected),
    }
}

/// Returns a remark on the first line from `line` that has a rule, or the last line with one.
fn next_rule(rules: &LoadedRules, line: u32) -> String {
    let lines = (0..rules.policy.len()).filter_map(|position| rules.line(position));
    let lines: BTreeSet<u32> = lines.collect();
    match (lines.range(line..).next(), lines.last()) {
        (Some(next), _) => format!("; the next rule is on line {next}"),
        (None, Some(last)) => format!("; its last rule is on line {last}"),
        (None, None) => "; its rules have no lines".to_owned(),
    }
}

/// Returns the positions of the rules with an action: at least one.
fn with_action(rules: &LoadedRules, action: &str) -> Result<Vec<usize>, Failure> {
    let policy = &rules.policy;
    let action_of = |&position: &usize| {
        let (_, rule) = policy.rule(policy.ids()[position]).next()?;
        policy.action_name(rule.action())
    };
    let all = 0..policy.len();
    let selected = all.clone();
    let selected = selected.filter(|position| action_of(position) == Some(action));
    let selected: Vec<usize> = selected.collect();
    if !selected.is_empty() {
        return Ok(selected);
    }
    let names: BTreeSet<&str> = all.filter_map(|position| action_of(&position)).collect();
    let hint = did_you_mean(action, names.iter().copied());
    let failure = Failure::usage(format!(
        "no rule of {} has the action `{action}`{hint}",
        rules.source
    ));
    Err(match names.is_empty() {
        true => failure.with_help("its rules have no actions"),
        false => failure.with_help(format!("its actions are {}", join(names, ", "))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_named_by_number_line_id_and_name() {
        let parsed = |text: &str| RuleSelector::parse(text).ok();
        assert_eq!(parsed("41"), Some(RuleSelector::Number(41)));
        assert_eq!(parsed("id:7"), Some(RuleSelector::Id(7)));
        let line = |line, column| Some(RuleSelector::Line { line, column });
        assert_eq!(parsed("line:12"), line(12, None));
        assert_eq!(parsed("line:12:9"), line(12, Some(9)));
        let name = RuleSelector::Name("a:b".to_owned());
        assert_eq!(parsed("name:a:b"), Some(name));
        assert_eq!(parsed("none"), Some(RuleSelector::NoRule));
        assert_eq!(parsed("no-header"), Some(RuleSelector::NoHeader));
        for bad in [
            "", "web", "-1", "line:", "line:1:", "line:x", "id:", "lime:3",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
