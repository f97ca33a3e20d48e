//! Exact analysis of policies: dead and redundant rules, differences, and who decides.

use std::collections::BTreeMap;

use classyard::policy::PartId;
use classyard::{FieldMatch, NoProgress, RuleId};
use classyard_analysis::{DiffSettings, Finding as Found, LintSettings, QuerySettings};
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::{RuleFormat, SchemaChoice, read_policy};
use pyo3::prelude::*;

use crate::error::{other, read_error};
use crate::policy::{Policy, PolicyData, Rule, rules_of};

/// Adds the functions and their results to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(lint, module)?)?;
    module.add_function(wrap_pyfunction!(diff, module)?)?;
    module.add_function(wrap_pyfunction!(query, module)?)?;
    module.add_class::<Lint>()?;
    module.add_class::<Finding>()?;
    module.add_class::<Diff>()?;
    module.add_class::<Difference>()?;
    module.add_class::<Query>()?;
    module.add_class::<Answer>()
}

/// The findings about a policy.
#[pyclass(frozen, get_all, module = "classyard")]
pub(crate) struct Lint {
    /// The findings, in the order of the file.
    findings: Vec<Finding>,
    /// The ids of rules for which a search reached its limit of steps.
    undecided: Vec<u32>,
}

/// A finding about a rule. It is proven for all headers.
#[pyclass(frozen, get_all, module = "classyard")]
#[derive(Clone)]
pub(crate) struct Finding {
    /// `dead`, `redundant`, `equal-priority`, `correlated`, `mergeable` or `rare-action`.
    kind: String,
    /// The rule.
    rule: Rule,
    /// The rules that the finding names, such as the better rules that cover a dead rule.
    others: Vec<Rule>,
    /// For `rare-action`: the common action with a similar name. None for other kinds.
    similar_action: Option<String>,
}

#[pymethods]
impl Finding {
    fn __repr__(&self) -> String {
        format!("<classyard.Finding {}: {}>", self.kind, self.rule.text)
    }
}

/// The differences of two policies.
#[pyclass(frozen, get_all, module = "classyard")]
pub(crate) struct Diff {
    /// The differences: headers with different actions.
    differences: Vec<Difference>,
    /// The rules that were not examined completely: the number of the policy (0 or 1), and
    /// the id.
    undecided: Vec<(usize, u32)>,
    /// True if both policies give the same action to every header. None if a search reached
    /// its limit of steps.
    equivalent: Option<bool>,
}

/// Headers with different actions in two policies, which the same two rules decide.
#[pyclass(frozen, get_all, module = "classyard")]
#[derive(Clone)]
pub(crate) struct Difference {
    /// The rule of the first policy, or None if no rule matches.
    first: Option<Rule>,
    /// The rule of the second policy, or None if no rule matches.
    second: Option<Rule>,
    /// An example: a text for each field.
    header: BTreeMap<String, String>,
    /// The number of these headers divided by the number of all headers of the schema.
    share: f64,
    /// True if there may be more of these headers.
    more: bool,
}

/// The rules that decide the headers of a match.
#[pyclass(frozen, get_all, module = "classyard")]
pub(crate) struct Query {
    /// The answers, best rules first. Headers that no rule matches come last.
    answers: Vec<Answer>,
    /// The ids of rules that may decide more headers, as a search reached its limit of steps.
    /// None stands for headers that no rule matches.
    undecided: Vec<Option<u32>>,
}

/// Headers of a match that one rule decides.
#[pyclass(frozen, get_all, module = "classyard")]
#[derive(Clone)]
pub(crate) struct Answer {
    /// The rule, or None if no rule matches.
    rule: Option<Rule>,
    /// An example: a text for each field.
    header: BTreeMap<String, String>,
    /// The number of these headers divided by the number of all headers of the match.
    share: f64,
}

#[pymethods]
impl Answer {
    fn __repr__(&self) -> String {
        let rule = self
            .rule
            .as_ref()
            .map_or("no rule", |rule| rule.text.as_str());
        format!("<classyard.Answer {rule}: {:.3} %>", self.share * 100.0)
    }
}

/// Finds dead and redundant rules. With the other options, finds further kinds; see
/// docs/auditing.md. Each rule is a statement of its own.
///
/// >>> import classyard
/// >>> policy = classyard.Policy.from_rules("ipv4-5tuple", [
/// ...     "permit dport=80-89", "deny dport=85", "deny"])
/// >>> [finding] = classyard.lint(policy).findings
/// >>> finding.kind, finding.rule.text, finding.others[0].text
/// ('dead', 'deny dport=85', 'permit dport=80-89')
#[pyfunction]
#[pyo3(signature = (policy, *, redundant=true, equal_priority=false, correlated=false, mergeable=false, rare_action=false))]
fn lint(
    py: Python<'_>,
    policy: PyRef<'_, Policy>,
    redundant: bool,
    equal_priority: bool,
    correlated: bool,
    mergeable: bool,
    rare_action: bool,
) -> PyResult<Lint> {
    let data = &policy.data;
    let mut settings = LintSettings::default();
    settings.redundant = redundant;
    settings.equal_priority = equal_priority;
    settings.correlated = correlated;
    settings.mergeable = mergeable;
    settings.rare_action = rare_action;
    let lint = py.detach(|| classyard_analysis::lint(&data.rules, &settings, &mut NoProgress));
    let lint = lint.map_err(other)?;
    let findings = lint.findings().iter().map(|found| finding(data, found));
    Ok(Lint {
        findings: findings.collect::<PyResult<_>>()?,
        undecided: lint.unknown().iter().map(|id| id.get()).collect(),
    })
}

fn finding(data: &PolicyData, found: &Found) -> PyResult<Finding> {
    let mut similar_action = None;
    let (kind, others): (_, &[RuleId]) = match found {
        Found::Dead { blockers, .. } => ("dead", blockers),
        Found::PartlyDead { blockers, .. } => ("partly-dead", blockers),
        Found::Redundant { successors, .. } => ("redundant", successors),
        Found::EqualPriority(conflict) => ("equal-priority", &conflict.others),
        Found::Correlated(conflict) => ("correlated", &conflict.others),
        Found::Mergeable { other, .. } => ("mergeable", std::slice::from_ref(other)),
        Found::RareAction { similar, .. } => {
            similar_action = Some(similar.clone());
            ("rare-action", &[])
        }
        found => return Err(other(format!("an unknown kind of finding: {found:?}"))),
    };
    Ok(Finding {
        kind: kind.to_owned(),
        rule: rule(data, found.rule()),
        others: rules_of(data, others),
        similar_action,
    })
}

fn rule(data: &PolicyData, id: RuleId) -> Rule {
    rules_of(data, &[id]).pop().expect("a rule of the policy")
}

/// Returns a header with a text for each field.
fn header(data: &PolicyData, part: PartId, values: &[u128]) -> BTreeMap<String, String> {
    let fields = data.rules.part(part).schema().fields().iter().zip(values);
    let texts = fields.map(|(field, &value)| {
        (
            field.name().to_owned(),
            field.format().display(value).to_string(),
        )
    });
    texts.collect()
}

/// Finds the headers with different actions in two policies. Names of actions that mean the
/// same are equal: `permit`, `allow` and `accept`; `deny` and `drop`.
///
/// Raises `Error` if the schemas differ, or if both configurations have conditions that are
/// not modelled, because their numbers differ from file to file.
///
/// >>> import classyard
/// >>> before = classyard.Policy.from_rules("ipv4-5tuple", ["permit dport=80-89", "deny"])
/// >>> after = classyard.Policy.from_rules("ipv4-5tuple", ["permit dport=80-88", "deny"])
/// >>> [difference] = classyard.diff(before, after).differences
/// >>> difference.first.action, difference.second.action, difference.header["dport"]
/// ('permit', 'deny', '89')
#[pyfunction]
fn diff(py: Python<'_>, first: PyRef<'_, Policy>, second: PyRef<'_, Policy>) -> PyResult<Diff> {
    let (first, second) = (&first.data, &second.data);
    if has_conditions(first) || has_conditions(second) {
        return Err(other(
            "the rules have conditions that are not modelled, such as rates; compare such \
             configurations with the command `classyard diff`",
        ));
    }
    let settings = DiffSettings::default();
    let diff = py.detach(|| {
        classyard_analysis::diff(&first.rules, &second.rules, &settings, &mut NoProgress)
    });
    let diff = diff.map_err(other)?;
    let differences = diff.differences().iter().map(|found| Difference {
        first: found.first.map(|id| rule(first, id)),
        second: found.second.map(|id| rule(second, id)),
        header: header(first, found.part, &found.header),
        share: found.share,
        more: found.more,
    });
    let undecided = diff.undecided().iter();
    Ok(Diff {
        differences: differences.collect(),
        undecided: undecided
            .map(|found| (found.policy, found.rule.get()))
            .collect(),
        equivalent: diff.is_equivalent().filter(|_| !diff.is_cut()).or_else(|| {
            // Differences were found before the limit.
            (!diff.differences().is_empty()).then_some(false)
        }),
    })
}

/// True if a rule depends on a condition that is only a number.
fn has_conditions(data: &PolicyData) -> bool {
    data.rules.parts().iter().any(|part| {
        let condition = part.schema().field_named("condition");
        condition.is_some_and(|id| part.iter().any(|rule| rule.field(id) != FieldMatch::Any))
    })
}

/// The maximum number of rules that the text of a query may become.
const MAX_BOXES: usize = 4096;

/// Lists the rules that decide the headers of a match: pairs `field=value` as in rules, with
/// prefixes, ranges, lists and negations.
///
/// >>> import classyard
/// >>> policy = classyard.Policy.from_rules("ipv4-5tuple", ["permit dport=80-89", "deny"])
/// >>> for answer in classyard.query(policy, "dport=85-94").answers:
/// ...     print(answer.rule.text, answer.share)
/// permit dport=80-89 0.5
/// deny 0.5
#[pyfunction]
fn query(py: Python<'_>, policy: PyRef<'_, Policy>, text: &str) -> PyResult<Query> {
    let data = &policy.data;
    let schema = SchemaChoice::of(&data.rules);
    let schema = schema.ok_or_else(|| other("a match cannot name the schemas of this policy"))?;
    if text.contains(['\n', '\r']) {
        return Err(other("a match of several lines; expected one line"));
    }
    let line = format!("permit {text}");
    let (format, options) = (Some(RuleFormat::Rules), ReadOptions::DEFAULT);
    let selection = read_policy("<match>", &line, format, Some(&schema), &options);
    let selection = selection.map_err(|error| read_error(py, &error, 0))?.value;
    if selection.len() > MAX_BOXES {
        let boxes = selection.len();
        return Err(other(format!(
            "the match has {boxes} boxes; the limit is {MAX_BOXES}"
        )));
    }
    let settings = QuerySettings::default();
    let query = py
        .detach(|| classyard_analysis::query(&data.rules, &selection, &settings, &mut NoProgress));
    let query = query.map_err(other)?;
    let answers = query.answers().iter().map(|answer| Answer {
        rule: answer.rule.map(|id| rule(data, id)),
        header: header(data, answer.part, &answer.header),
        share: answer.share,
    });
    Ok(Query {
        answers: answers.collect(),
        undecided: query
            .undecided()
            .iter()
            .map(|id| id.map(RuleId::get))
            .collect(),
    })
}
