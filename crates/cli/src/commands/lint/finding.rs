//! Kinds of findings, and findings as rows of a report.

use std::collections::BTreeMap;

use classyard::RuleId;
use classyard_analysis::{Finding, LintSettings};
use classyard_report::input::rules::LoadedRules;
use classyard_report::rule_view::RuleView;
use serde::{Serialize, Serializer};

use crate::commands::classify::RuleHits;
use crate::commands::named_rules::{described, place};
use crate::commands::statements::{is_reported, views};

/// A kind of finding. `kinds/` has a file for each.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Kind {
    /// The name in options, comments and reports: `partly-dead`.
    pub(super) name: &'static str,
    /// The name in sentences: `partly dead`.
    pub(in crate::commands) label: &'static str,
    /// A sentence about findings of this kind, without the full stop.
    pub(super) summary: &'static str,
    /// True if the kind is reported without `--select`.
    pub(super) is_default: bool,
    /// True if findings make no sense for rules without actions.
    pub(super) needs_actions: bool,
    /// Makes the analysis search for findings of this kind.
    pub(super) enable: fn(&mut LintSettings),
    /// Returns the findings of this kind.
    pub(super) find: fn(&Subject<'_>) -> Vec<FindingRow>,
}

impl Kind {
    /// The name of the kind, as in reports.
    pub(in crate::commands) fn name(self) -> &'static str {
        self.name
    }

    /// A sentence about findings of this kind, for tools that list them.
    pub(super) fn summary(self) -> &'static str {
        self.summary
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.name == other.name
    }
}

impl Eq for Kind {}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// Rules, and the findings of their analysis.
pub(super) struct Subject<'a> {
    pub(super) rules: &'a LoadedRules,
    findings: &'a [Finding],
    /// The headers of a capture or a trace that the rules decide, if one is given.
    pub(super) hits: Option<&'a RuleHits>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(
        rules: &'a LoadedRules,
        findings: &'a [Finding],
        hits: Option<&'a RuleHits>,
    ) -> Subject<'a> {
        Subject {
            rules,
            findings,
            hits,
        }
    }

    /// Returns the findings of the analysis that are of use.
    pub(super) fn findings(&self) -> impl Iterator<Item = &'a Finding> + use<'a> {
        let rules = self.rules;
        let findings = self.findings.iter();
        findings.filter(move |finding| is_reported(rules, finding))
    }

    /// Returns the rows that `row` makes of findings of the analysis.
    pub(super) fn rows(&self, row: impl Fn(&Finding) -> Option<FindingRow>) -> Vec<FindingRow> {
        self.findings().filter_map(row).collect()
    }

    /// Returns a row about a rule. `by` has the rules that the finding names.
    pub(super) fn row(&self, finding: Kind, rule: RuleId, by: &[RuleId]) -> FindingRow {
        FindingRow {
            by: views(self.rules, by),
            ..FindingRow::new(
                finding,
                About::Rule(RuleView::of(self.rules, rule).expect("a rule of the policy")),
            )
        }
    }
}

/// The part of a file that a finding is about.
#[derive(Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::commands) enum About {
    Rule(RuleView),
    Member(MemberView),
}

/// A member of a named group of addresses.
#[derive(Clone, Serialize)]
pub(in crate::commands) struct MemberView {
    pub(super) line: u32,
    pub(super) column: u32,
    /// The name of the group.
    pub(super) group: String,
    /// The member as the file has it.
    pub(super) text: String,
}

impl About {
    /// Returns the line, from 1, if the file has lines.
    pub(in crate::commands) fn line(&self) -> Option<u32> {
        match self {
            About::Rule(rule) => rule.line,
            About::Member(member) => Some(member.line),
        }
    }

    /// Returns the column, from 1, of a part of a configuration.
    pub(super) fn column(&self) -> Option<u32> {
        match self {
            About::Rule(rule) => rule.column,
            About::Member(member) => Some(member.column),
        }
    }

    /// Returns the rule, unless the finding is about a member of a group.
    pub(in crate::commands) fn rule(&self) -> Option<&RuleView> {
        match self {
            About::Rule(rule) => Some(rule),
            About::Member(_) => None,
        }
    }

    /// Returns the file, line and column.
    pub(super) fn place(&self, file: &str) -> String {
        match self {
            About::Rule(rule) => place(file, rule),
            About::Member(MemberView { line, column, .. }) => format!("{file}:{line}:{column}"),
        }
    }

    /// Returns the text of the part, as `lint` quotes it.
    pub(super) fn described(&self) -> String {
        match self {
            About::Rule(rule) => described(rule),
            About::Member(member) => member.text.clone(),
        }
    }

    /// Returns a rule's match, or the statement or the member of a configuration.
    pub(super) fn described_match(&self) -> &str {
        match self {
            About::Rule(rule) => rule.statement.as_deref().unwrap_or(&rule.matches),
            About::Member(member) => &member.text,
        }
    }
}

/// A finding. Keys are stable. Keys that a kind does not use are left out.
#[derive(Clone, Serialize)]
pub(in crate::commands) struct FindingRow {
    pub(in crate::commands) finding: Kind,
    #[serde(flatten)]
    pub(in crate::commands) about: About,
    /// The dead part of a partly dead statement: its rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) dead_rules: Vec<RuleView>,
    /// The other rules of the finding: better rules that cover a dead rule, worse rules that decide
    /// the packets of a redundant rule without it, or better rules of a pair.
    pub(super) by: Vec<RuleView>,
    /// True if each of `by` is needed to cover the dead rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) all_needed: Option<bool>,
    /// True if all of `by` have the action of the dead rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) same_action: Option<bool>,
    /// True if the redundant rule can be removed together with all dead and removable rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) removable: Option<bool>,
    /// True if the rule may form pairs with more rules than `by` has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) more: Option<bool>,
    /// A packet that both rules of a pair match, by field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) header: BTreeMap<String, String>,
    /// The only different field of mergeable rules, with the match of the merged rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) merged: Option<String>,
    /// The common action with a similar name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) similar: Option<String>,
    /// The finding as a sentence, without the kind.
    #[serde(skip)]
    pub(super) sentence: String,
}

impl FindingRow {
    /// Returns a row without details.
    pub(super) fn new(finding: Kind, about: About) -> FindingRow {
        FindingRow {
            finding,
            about,
            by: Vec::new(),
            sentence: String::new(),
            dead_rules: Vec::new(),
            all_needed: None,
            same_action: None,
            removable: None,
            more: None,
            header: BTreeMap::new(),
            merged: None,
            similar: None,
        }
    }

    /// Returns the row with a sentence.
    pub(super) fn saying(self, sentence: String) -> FindingRow {
        FindingRow { sentence, ..self }
    }

    /// Returns the finding as a sentence.
    pub(in crate::commands) fn sentence(&self) -> &str {
        &self.sentence
    }
}
