//! The decision about one header.

use pyo3::prelude::*;

use crate::policy::Rule;

/// The decision about one header: the winning rule and its action.
#[pyclass(frozen, get_all, module = "classyard")]
#[derive(Clone)]
pub(crate) struct Verdict {
    /// The id of the winner, or None if no rule matches.
    pub(crate) rule: Option<u32>,
    /// The name of the winner's action, or None if no rule matches.
    pub(crate) action: Option<String>,
    /// The line of the winner in the file of the policy, from 1. None if no rule matches, or
    /// the rule was inserted or modified later.
    pub(crate) line: Option<u32>,
    /// False if the policy has no rules for the header's IP version.
    pub(crate) has_header: bool,
    /// The version of the rules: the number of transactions before the lookup.
    pub(crate) version: u64,
}

#[pymethods]
impl Verdict {
    fn __repr__(&self) -> String {
        let Verdict {
            rule, action, line, ..
        } = self;
        match (rule, action) {
            (Some(rule), Some(action)) => {
                let line = line.map_or_else(|| "None".to_owned(), |line| line.to_string());
                format!("<classyard.Verdict {action}, rule {rule}, line {line}>")
            }
            _ => "<classyard.Verdict without a match>".to_owned(),
        }
    }

    fn __bool__(&self) -> bool {
        self.rule.is_some()
    }
}

/// All rules that match a header.
#[pyclass(frozen, get_all, module = "classyard")]
pub(crate) struct Explanation {
    /// The decision.
    pub(crate) verdict: Verdict,
    /// The rule that decides the header, or None.
    pub(crate) winner: Option<Rule>,
    /// The other rules that match the header, best first.
    pub(crate) beaten: Vec<Rule>,
}

#[pymethods]
impl Explanation {
    fn __repr__(&self) -> String {
        let winner = self
            .winner
            .as_ref()
            .map_or("no rule", |rule| rule.text.as_str());
        format!(
            "<classyard.Explanation {winner}, beats {} rules>",
            self.beaten.len()
        )
    }
}
