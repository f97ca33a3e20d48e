//! The report of `lint` as one page of HTML for auditors, without scripts and other files.
//!
//! Every text of a file of rules is escaped by [`text::escaped`].

use std::fmt::Write as _;
use std::path::Path;

use classyard_report::command_line;
use classyard_report::failure::Failure;
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::file::to_file;
use classyard_report::output::style::{counted, grouped};
use classyard_report::reporter::Reporter;
use classyard_report::rule_view::RuleView;

use super::report::FileReport;
use crate::commands::analysis_failure::failure;
use crate::commands::named_rules::described;

mod decided;
mod overlaps;
mod section;
mod statement_rows;
mod text;

use decided::DecidedShares;
use overlaps::OverlapMatrix;
use section::Section;
use statement_rows::StatementRows;
use text::escaped;

const STYLE: &str = include_str!("style.css");

/// A kind of finding as a page shows it: its name, and a sentence about it.
pub(super) type KindText = (&'static str, &'static str);

/// A page under construction: a section for each file.
pub(super) struct Page {
    kinds: Vec<KindText>,
    /// The rows of the summary.
    summary: String,
    sections: String,
    files: usize,
    findings: usize,
    /// The name of the last file, escaped.
    last_file: Option<String>,
}

impl Page {
    /// Creates a page without files. `kinds` are the kinds of findings that are searched for.
    pub(super) fn new(kinds: Vec<KindText>) -> Page {
        Page {
            kinds,
            summary: String::new(),
            sections: String::new(),
            files: 0,
            findings: 0,
            last_file: None,
        }
    }

    /// Adds the section of a file.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the rules need too much memory.
    pub(super) fn add(
        &mut self,
        rules: &LoadedRules,
        report: &FileReport,
        reporter: Reporter,
    ) -> Result<(), Failure> {
        self.files += 1;
        self.findings += report.findings.len();
        self.add_summary(rules, report);
        let mut progress = reporter.progress();
        let decided = DecidedShares::new(&rules.policy, &mut progress).map_err(failure)?;
        drop(progress);
        let rows = StatementRows::new(rules);
        let matrix = (rows.len() > 1).then(|| OverlapMatrix::new(&rules.policy, &rows));
        let section = Section::new(self.files, rules, report, &self.kinds, &rows);
        section.write(decided.as_ref(), matrix.as_ref(), &mut self.sections);
        Ok(())
    }

    fn add_summary(&mut self, rules: &LoadedRules, report: &FileReport) {
        let file = escaped(&report.file);
        self.last_file = Some(file.clone());
        let text = &mut self.summary;
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "<tr><td><a href=\"#file{}\">{file}</a></td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td>",
            self.files,
            lists(rules),
            grouped(rules.statement_count())
        );
        for (kind, _) in &self.kinds {
            let rows = report.findings.iter();
            let count = rows.filter(|row| row.finding.name() == *kind).count();
            let _ = write!(text, "<td class=\"n\">{}</td>", grouped(count));
        }
        let _ = writeln!(
            text,
            "<td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            grouped(report.undecided.len()),
            grouped(report.allowed_rows.len())
        );
    }

    /// Writes the page to a file, or to standard output for `-`.
    ///
    /// # Errors
    /// [`Failure`] if the file cannot be written; it then keeps its contents.
    pub(super) fn write(self, path: &Path) -> Result<(), Failure> {
        let page = self.finish();
        to_file(path, |out| Ok(out.write_all(page.as_bytes())?))
    }

    fn finish(self) -> String {
        let title = match self.findings {
            0 => "No findings".to_owned(),
            count => counted(count, "finding"),
        };
        let title = match &self.last_file {
            Some(file) if self.files == 1 => format!("{title} in {file}"),
            _ => format!("{title} in {}", counted(self.files, "file")),
        };
        let mut heads = String::new();
        let mut legend = String::new();
        for (index, (kind, summary)) in self.kinds.iter().enumerate() {
            let (kind, summary) = (escaped(kind), escaped(summary));
            let _ = write!(heads, "<th class=\"n\">{kind}</th>");
            let class = kind_class(index);
            let _ = writeln!(
                legend,
                "<p><span class=\"badge {class}\">{kind}</span> {summary}.</p>"
            );
        }
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
             <p class=\"meta\">classyard {} · <code>{}</code></p>\n\
             <div class=\"wide\"><table class=\"summary\"><thead><tr><th>file</th>\
             <th class=\"n\">lists</th><th class=\"n\">rules</th>{heads}\
             <th class=\"n\">undecided</th><th class=\"n\">allowed</th></tr></thead>\n<tbody>\n{}\
             </tbody></table></div>\n{legend}{}</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
            escaped(command_line::text()),
            self.summary,
            self.sections
        )
    }
}

/// Returns the number of lists of a configuration as a cell; a dash for other formats.
fn lists(rules: &LoadedRules) -> String {
    let statements = (0..rules.policy.len()).filter_map(|position| rules.statement(position));
    let names: std::collections::BTreeSet<&str> = statements
        .map(|statement| statement.list.as_str())
        .collect();
    match names.len() {
        0 => "–".to_owned(),
        count => grouped(count),
    }
}

/// The number of colours of kinds.
const KIND_COLOURS: usize = 6;

/// Returns the class of a kind in the style.
fn kind_class(index: usize) -> String {
    format!("k{}", index % KIND_COLOURS)
}

/// Returns a rule as an element: its statement, or its name, action and match.
fn code(rule: &RuleView) -> String {
    format!("<code>{}</code>", escaped(&described(rule)))
}
