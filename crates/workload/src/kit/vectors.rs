//! Test cases with their answers, in files that people write and read.
//!
//! A case does not depend on an engine: it has rules, headers and, for each header, the
//! matching rules, best first. Every engine runs every case, with each [`Way`] to create
//! the rule set and each kind of lookup. If an engine does not run a case, a
//! [`Skip`](super::Skip) has the reason.
//!
//! # Format
//! ```toml
//! [[case]]
//! name = "of equal priorities the lower id wins"
//! schema = "ipv4-5tuple"                  # or: fields = ["a 8 range", …]
//! limit = 3                               # the maximum number of rules; optional
//! rules = ["7 @ 10: dport=80", "3 @ 10: proto=tcp"]
//! probes = ["dport=80 proto=tcp -> 3, 7", "dport=80 -> 7", "* -> miss"]
//! skip = [{ engine = "name", reason = "why" }]
//!
//! [[case.step]]                           # any number of steps, in order
//! changes = ["remove 3", "insert 4 @ 11: *"]
//! refused = "change 1: cannot insert"     # the start of the error; optional
//! rebuild = true                          # reorganise after the changes; optional
//! reoptimise = 3                          # then re-optimise, and do 3 steps; optional
//! probes = ["dport=80 proto=tcp -> 4, 7"]
//! ```
//! [`super::text`] describes the syntax of the lines.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;

use classyard::{Limits, Rule, RuleId, Schema};

use super::oracle::OwnedChange;
use super::text;

mod run;

pub use run::{Failure, VectorReport, WAYS, Way, run};

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

    /// Writes the case in the file format, so that [`parse`] reads an equal case.
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

/// The reason for which a file of cases cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VectorError {
    /// The file or folder cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// The path.
        path: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file is not TOML, or does not have the format of a case file.
    #[error("{path}: {error}")]
    Toml {
        /// The file.
        path: String,
        /// The error, with its position.
        error: Box<toml::de::Error>,
    },
    /// A line of a case is not valid.
    #[error("{path}: case `{case}`: {what}")]
    Line {
        /// The file.
        path: String,
        /// The case.
        case: String,
        /// The problem.
        what: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    case: Vec<RawCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    name: String,
    schema: Option<String>,
    fields: Option<Vec<String>>,
    limit: Option<usize>,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    probes: Vec<String>,
    #[serde(default)]
    skip: Vec<RawSkip>,
    #[serde(default)]
    step: Vec<RawStep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSkip {
    engine: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    #[serde(default)]
    changes: Vec<String>,
    refused: Option<String>,
    #[serde(default)]
    rebuild: bool,
    reoptimise: Option<usize>,
    #[serde(default)]
    probes: Vec<String>,
}

/// Reads cases from a text. `path` names it in messages.
///
/// # Errors
/// [`VectorError`]
pub fn parse(path: &str, text: &str) -> Result<Vec<Case>, VectorError> {
    let file: RawFile = toml::from_str(text).map_err(|error| VectorError::Toml {
        path: path.to_owned(),
        error: Box::new(error),
    })?;
    let read = |raw: RawCase| {
        let case = raw.name.clone();
        parse_case(raw).map_err(|what| VectorError::Line {
            path: path.to_owned(),
            case,
            what,
        })
    };
    file.case.into_iter().map(read).collect()
}

fn parse_case(raw: RawCase) -> Result<Case, String> {
    let schema = match (raw.schema, raw.fields) {
        (Some(name), None) => {
            Schema::built_in(&name).ok_or(format!("there is no schema `{name}`"))?
        }
        (None, Some(fields)) => {
            let fields = fields.iter().map(|line| text::parse_field(line));
            Schema::new("case", fields.collect::<Result<_, _>>()?).map_err(|e| e.to_string())?
        }
        _ => return Err("expected either `schema` or `fields`".to_owned()),
    };
    let probes = |lines: &[String]| {
        let probes = lines.iter().map(|line| parse_probe(&schema, line));
        probes.collect::<Result<Vec<Probe>, String>>()
    };
    let step = |raw: RawStep| {
        let changes = raw.changes.iter().map(|l| text::parse_change(&schema, l));
        Ok(Step {
            changes: changes.collect::<Result<_, String>>()?,
            refused: raw.refused,
            rebuild: raw.rebuild,
            reoptimise: raw.reoptimise,
            probes: probes(&raw.probes)?,
        })
    };
    let rules = raw.rules.iter();
    let rules = rules.map(|line| text::parse_rule(&schema, line).map(Arc::new));
    let rules: Vec<Arc<Rule>> = rules.collect::<Result<_, _>>()?;
    let mut ids: Vec<RuleId> = rules.iter().map(|rule| rule.view().id()).collect();
    ids.sort();
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("two rules have the id {}", pair[0]));
    }
    let skips = raw.skip.into_iter();
    Ok(Case {
        name: raw.name,
        limit: raw.limit,
        rules,
        probes: probes(&raw.probes)?,
        steps: raw
            .step
            .into_iter()
            .map(step)
            .collect::<Result<_, String>>()?,
        skips: skips.map(|skip| (skip.engine, skip.reason)).collect(),
        schema,
    })
}

fn parse_probe(schema: &Schema, line: &str) -> Result<Probe, String> {
    let (header, matches) = text::parse_probe(schema, line)?;
    for (field, &value) in schema.fields().iter().zip(&header) {
        if value > field.max_value() {
            return Err(format!(
                "{}: {value} is too large in `{line}`",
                field.name()
            ));
        }
    }
    Ok(Probe { header, matches })
}

/// Reads all cases of a folder's `.toml` files, in the order of the files' names.
///
/// # Errors
/// [`VectorError`]
pub fn read_folder(folder: &Path) -> Result<Vec<Case>, VectorError> {
    let io = |path: &Path, error| VectorError::Io {
        path: path.display().to_string(),
        error,
    };
    let entries = fs::read_dir(folder).map_err(|error| io(folder, error))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| io(folder, error))?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            paths.push(path);
        }
    }
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| io(&path, error))?;
        cases.extend(parse(&path.display().to_string(), &text)?);
    }
    Ok(cases)
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_toml())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::Subject;

    const TEXT: &str = r#"
        [[case]]
        name = "a \"quoted\" name"
        fields = ["a 8 range", "b 32 prefix ipv4 source-address"]
        limit = 3
        rules = ["7 @ 10: a=3-9", "3 @ 10: b=10.0.0.0/8"]
        probes = ["a=5 b=10.0.0.1 -> 3, 7", "a=3 -> 7", "* -> miss"]
        skip = [{ engine = "nobody", reason = "is not there" }]
        [[case.step]]
        changes = ["remove 3", "insert 3 @ 9: *", "insert 7 @ 9: *"]
        refused = "change 2: cannot insert rule 7"
        [[case.step]]
        changes = ["insert foreign"]
        refused = "change 0"
        [[case.step]]
        changes = ["remove 3", "modify 7 @ 1: *"]
        rebuild = true
        reoptimise = 3
        probes = ["* -> 7"]
    "#;

    #[test]
    fn cases_read_back_as_they_are_written() {
        let cases = parse("t", TEXT).unwrap();
        let again = parse("t", &cases[0].to_toml()).unwrap();
        assert_eq!(cases[0].to_toml(), again[0].to_toml());
        assert_eq!(cases[0].rules, again[0].rules);
        assert_eq!(cases[0].probes, again[0].probes);
        assert_eq!(cases[0].skips, again[0].skips);
        assert_eq!(cases[0].probe_count(), 4);
    }

    #[test]
    fn engines_run_a_case_and_wrong_answers_are_reported() {
        let mut cases = parse("t", TEXT).unwrap();
        let report = run(&cases, &Subject::engines());
        assert!(report.failures.is_empty(), "{report}");
        assert!(report.runs >= WAYS.len());
        cases[0].probes[0].matches.reverse();
        let report = run(&cases, &Subject::engines());
        assert!(!report.failures.is_empty());
    }

    #[test]
    fn nonsense_is_refused_with_the_case_named() {
        for (from, to, expected) in [
            ("a 8 range", "a 8 fuzzy", "fuzzy"),
            ("a=3-9", "a=3-999", "8 bits"),
            ("7 @ 10", "3 @ 10", "two rules"),
            ("limit", "limitt", "unknown field"),
            ("-> miss", "-> 7 8", "rule id"),
            ("a=3 ->", "a=300 ->", "too large"),
            ("fields", "schema = \"x\"\nfields", "either"),
        ] {
            let error = parse("t", &TEXT.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
