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

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;

use classyard::{Rule, RuleId, Schema};

use super::text;

mod run;

pub use super::case::{Case, Probe, Step};
pub use run::{Failure, VectorReport, WAYS, Way, run};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Subject;

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
