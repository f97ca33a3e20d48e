//! A test case: rules, headers and steps, with the right answers.

use std::fmt;
use std::sync::Arc;

use classyard::{Limits, Rule, RuleId, Schema};

use super::oracle::OwnedChange;
use super::text;

/// A header with all rules that match it, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// One value for each field.
    pub header: Vec<u128>,
    /// The rules that match, best first.
    pub matches: Vec<RuleId>,
}

/// A transaction, and the probes after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The changes of the transaction. An empty list means no transaction.
    pub changes: Vec<OwnedChange>,
    /// The start of the error with which the transaction must be refused.
    pub refused: Option<String>,
    /// True to reorganise the classifier after the transaction.
    pub rebuild: bool,
    /// The number of steps to install immediately after re-optimising; `None` to not
    /// re-optimise.
    pub reoptimise: Option<usize>,
    /// The headers to look up at the end of the step.
    pub probes: Vec<Probe>,
}

/// A test case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The name, which describes the case.
    pub name: String,
    /// The schema.
    pub schema: Arc<Schema>,
    /// The maximum number of rules.
    pub limit: Option<usize>,
    /// The initial rules.
    pub rules: Vec<Arc<Rule>>,
    /// The headers to look up in the initial rules.
    pub probes: Vec<Probe>,
    /// The steps after that, in order.
    pub steps: Vec<Step>,
    /// Engines that do not run this case, each with the reason.
    pub skips: Vec<(String, String)>,
}

impl Case {
    /// Returns a case without rules.
    #[must_use]
    pub fn new(name: &str, schema: &Arc<Schema>) -> Case {
        Case {
            name: name.to_owned(),
            schema: Arc::clone(schema),
            limit: None,
            rules: Vec::new(),
            probes: Vec::new(),
            steps: Vec::new(),
            skips: Vec::new(),
        }
    }

    /// Returns the limits of the case.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let default = Limits::default();
        default.with_rules(self.limit.unwrap_or(default.rules))
    }

    /// Returns the number of probes of the case and all its steps.
    #[must_use]
    pub fn probe_count(&self) -> usize {
        let later = self.steps.iter().map(|step| step.probes.len());
        self.probes.len() + later.sum::<usize>()
    }

    /// Writes the case in the file format, so that [`parse`](super::vectors::parse) reads an equal case.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut out = format!("[[case]]\nname = {}\n", quoted(&self.name));
        match Schema::built_in(self.schema.name()) {
            Some(schema) if schema == self.schema => {
                out += &format!("schema = {}\n", quoted(schema.name()));
            }
            _ => {
                let fields = self.schema.fields().iter().map(text::write_field);
                out += &list("fields", fields);
            }
        }
        if let Some(limit) = self.limit {
            out += &format!("limit = {limit}\n");
        }
        let rules = self.rules.iter().map(|rule| text::write_rule(rule.view()));
        out += &list("rules", rules);
        let probes = |probes: &[Probe]| {
            let show = |p: &Probe| text::write_probe(&self.schema, &p.header, &p.matches);
            list("probes", probes.iter().map(show))
        };
        out += &probes(&self.probes);
        for (engine, reason) in &self.skips {
            let (engine, reason) = (quoted(engine), quoted(reason));
            out += &format!("skip = [{{ engine = {engine}, reason = {reason} }}]\n");
        }
        for step in &self.steps {
            out += "\n[[case.step]]\n";
            out += &list("changes", step.changes.iter().map(text::write_change));
            if let Some(refused) = &step.refused {
                out += &format!("refused = {}\n", quoted(refused));
            }
            if step.rebuild {
                out += "rebuild = true\n";
            }
            if let Some(steps) = step.reoptimise {
                out += &format!("reoptimise = {steps}\n");
            }
            out += &probes(&step.probes);
        }
        out
    }
}

/// Returns a text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Returns a TOML list with one text per line, or an empty text for no items.
fn list(name: &str, items: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = items
        .map(|item| format!("    {},\n", quoted(&item)))
        .collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("{name} = [\n{}]\n", lines.concat())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_toml())
    }
}
