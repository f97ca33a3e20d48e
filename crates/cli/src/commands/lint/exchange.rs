//! The findings of `lint` in the formats of other tools: SARIF 2.1.0 and JUnit.

use std::io::{self, Write};

use classyard_report::output::json;
use serde_json::{Value, json};

use super::finding::{About, Kind};
use super::report::{FileReport, LintReport};

/// The level of findings and of undecided rules in SARIF.
const FINDING_LEVEL: &str = "warning";

/// The name of the rule of SARIF under which undecided rules are reported.
const UNDECIDED_RULE_ID: &str = "undecided";

const UNDECIDED_SENTENCE: &str = "the limit of steps was reached; --steps sets it";

/// Writes the findings as a log of SARIF, for code scanning services and editors.
pub(super) fn write_sarif(report: &LintReport, out: &mut dyn Write) -> io::Result<()> {
    let kinds = Kind::ALL.map(|kind| (kind.name(), kind.summary()));
    let undecided = (UNDECIDED_RULE_ID, "The limit of steps was reached");
    let rules = kinds.into_iter().chain([undecided]);
    let rules = rules.map(|(id, text)| json!({"id": id, "shortDescription": {"text": text}}));
    let results: Vec<Value> = report.files.iter().flat_map(results).collect();
    let log = json!({
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{
            "tool": {"driver": {
                "name": "classyard",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.collect::<Vec<_>>(),
            }},
            "results": results,
        }],
    });
    json::write(&log, out)
}

/// Returns the results of SARIF for a file.
fn results(file: &FileReport) -> Vec<Value> {
    let findings = file.findings.iter().map(|row| {
        let related = row.by.iter();
        let related = related.map(|rule| location(&file.file, rule.line, rule.column));
        json!({
            "ruleId": row.finding.name(),
            "level": FINDING_LEVEL,
            "message": {"text": row.sentence()},
            "locations": [location(&file.file, row.about.line(), row.about.column())],
            "relatedLocations": related.collect::<Vec<_>>(),
        })
    });
    let undecided = file.undecided.iter().map(|rule| {
        json!({
            "ruleId": UNDECIDED_RULE_ID,
            "level": FINDING_LEVEL,
            "message": {"text": UNDECIDED_SENTENCE},
            "locations": [location(&file.file, rule.line, rule.column)],
        })
    });
    findings.chain(undecided).collect()
}

/// Returns a location in SARIF.
fn location(file: &str, line: Option<u32>, column: Option<u32>) -> Value {
    json!({"physicalLocation": {
        "artifactLocation": {"uri": file},
        "region": {"startLine": line.unwrap_or(1), "startColumn": column.unwrap_or(1)},
    }})
}

/// Writes the findings as test results of JUnit: a suite for each file, and a failed test for
/// each finding. A file without findings has one test that passes.
pub(super) fn write_junit(report: &LintReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"classyard lint\">")?;
    for file in &report.files {
        let failures = file.findings.len() + file.undecided.len();
        let name = escaped(&file.file);
        writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failures}\">",
            failures.max(1)
        )?;
        if failures == 0 {
            writeln!(
                out,
                "    <testcase classname=\"{name}\" name=\"no findings\"/>"
            )?;
        }
        for row in &file.findings {
            write_failure(out, &name, row.finding.name(), &row.about, row.sentence())?;
        }
        for rule in &file.undecided {
            let about = About::Rule(rule.clone());
            write_failure(out, &name, UNDECIDED_RULE_ID, &about, UNDECIDED_SENTENCE)?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn write_failure(
    out: &mut dyn Write,
    file: &str,
    kind: &str,
    about: &About,
    sentence: &str,
) -> io::Result<()> {
    let id = about.rule().map_or(0, |rule| rule.id);
    let line = about.line().unwrap_or(id);
    writeln!(
        out,
        "    <testcase classname=\"{file}\" name=\"line {line}: {kind}\">"
    )?;
    writeln!(
        out,
        "      <failure type=\"{kind}\" message=\"{}\">{}</failure>",
        escaped(sentence),
        escaped(about.described_match())
    )?;
    writeln!(out, "    </testcase>")
}

/// Returns a text for an attribute or an element of XML. Characters that XML does not allow
/// become U+FFFD.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            character if character.is_control() => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_has_no_forbidden_characters() {
        assert_eq!(
            escaped("a<b> & \"c\"\n\u{1b}"),
            "a&lt;b&gt; &amp; &quot;c&quot; \u{fffd}"
        );
    }
}
