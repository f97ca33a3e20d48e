//! The section of one file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use classyard_report::input::rules::LoadedRules;
use classyard_report::output::style::{counted, grouped};
use classyard_report::rule_view::RuleView;

use super::decided::{self, DecidedShares};
use super::overlaps::{MarkedRows, OverlapMatrix};
use super::statement_rows::StatementRows;
use super::text::escaped;
use super::{KindText, code, kind_class};
use crate::commands::lint::finding::{About, FindingRow};
use crate::commands::lint::report::FileReport;

/// The maximum number of findings of a file on a page.
const MAX_FINDINGS: usize = 2_000;

/// The maximum number of rules of a file on a page.
const MAX_RULES: usize = 5_000;

/// The maximum number of other rules that a finding links to.
const MAX_LINKS: usize = 16;

/// The section of one file.
pub(super) struct Section<'a> {
    /// The number of the file on the page, from 1.
    number: usize,
    rules: &'a LoadedRules,
    report: &'a FileReport,
    kinds: &'a [KindText],
    rows: &'a StatementRows,
    /// The rows that are listed.
    listed: BTreeSet<usize>,
    /// The findings of each row, by position in the report.
    findings_of_row: BTreeMap<usize, Vec<usize>>,
}

impl<'a> Section<'a> {
    /// Creates the section. It lists the rules with findings, then the rules that these
    /// findings name, then the first other rules, up to a limit.
    pub(super) fn new(
        number: usize,
        rules: &'a LoadedRules,
        report: &'a FileReport,
        kinds: &'a [KindText],
        rows: &'a StatementRows,
    ) -> Section<'a> {
        let mut section = Section {
            number,
            rules,
            report,
            kinds,
            rows,
            listed: BTreeSet::new(),
            findings_of_row: BTreeMap::new(),
        };
        for (index, finding) in report.findings.iter().enumerate() {
            if let Some(rule) = finding.about.rule() {
                let row = section.row_of(rule);
                section.findings_of_row.entry(row).or_default().push(index);
            }
        }
        let shown = || report.findings.iter().take(MAX_FINDINGS);
        let subjects = shown().filter_map(|finding| finding.about.rule());
        let subjects = subjects.chain(&report.undecided);
        let allowed = report.allowed_rows.iter();
        let subjects = subjects.chain(allowed.filter_map(|allowed| allowed.row.about.rule()));
        let named = shown().flat_map(|finding| finding.by.iter().take(MAX_LINKS));
        let wanted = subjects.chain(named).map(|rule| section.row_of(rule));
        let wanted = wanted.chain(0..rows.len());
        let mut listed = BTreeSet::new();
        for row in wanted {
            if listed.len() >= MAX_RULES {
                break;
            }
            listed.insert(row);
        }
        section.listed = listed;
        section
    }

    /// Returns the row of a rule.
    fn row_of(&self, rule: &RuleView) -> usize {
        self.rows.row_of(rule.rule)
    }

    /// Writes the section.
    pub(super) fn write(
        &self,
        decided: Option<&DecidedShares>,
        matrix: Option<&OverlapMatrix>,
        page: &mut String,
    ) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "<h2 id=\"file{}\">{}</h2>",
            self.number,
            escaped(&self.report.file)
        );
        self.write_facts(page);
        self.write_findings(page);
        self.write_undecided(page);
        self.write_allowed(page);
        if let Some(matrix) = matrix {
            self.write_overlaps(matrix, page);
        }
        self.write_rules(decided, page);
    }

    fn write_facts(&self, page: &mut String) {
        let mut facts = vec![counted(self.rows.len(), "rule")];
        let skipped = self.rules.skipped;
        if skipped > 0 {
            facts.push(format!(
                "{} not read (--skip-bad)",
                counted(skipped, "line")
            ));
        }
        let with_conditions = self.rules.statements_with_conditions();
        if with_conditions > 0 {
            facts.push(format!(
                "{with_conditions} with a condition that is not modelled, which are never called \
                 dead"
            ));
        }
        let _ = writeln!(page, "<p class=\"meta\">{}</p>", facts.join("; "));
    }

    /// Returns a link to a rule with its line as the text, or the line if the rule is not
    /// listed.
    fn link(&self, rule: &RuleView) -> String {
        let text = match rule.line {
            Some(line) => format!("line {line}"),
            None => format!("rule {}", rule.id),
        };
        let row = self.row_of(rule);
        match self.listed.contains(&row) {
            true => format!("<a href=\"#f{}r{row}\">{text}</a>", self.number),
            false => text,
        }
    }

    /// Returns a link to the rule of a finding, or the line of a member of a group.
    fn link_about(&self, about: &About) -> String {
        match about {
            About::Rule(rule) => self.link(rule),
            About::Member(member) => format!("line {}", member.line),
        }
    }

    /// Returns the label of a kind.
    fn badge(&self, kind: &str) -> String {
        let index = self.kinds.iter().position(|(name, _)| *name == kind);
        let class = kind_class(index.unwrap_or(self.kinds.len()));
        format!("<span class=\"badge {class}\">{}</span>", escaped(kind))
    }

    fn write_findings(&self, page: &mut String) {
        let findings = &self.report.findings;
        let _ = writeln!(page, "<h3>Findings</h3>");
        if findings.is_empty() {
            let _ = writeln!(page, "<p>None.</p>");
            return;
        }
        self.write_cut(findings.len(), MAX_FINDINGS, "finding", page);
        let _ = writeln!(
            page,
            "<div class=\"wide\"><table><thead><tr><th>kind</th><th>rule</th><th>statement</th>\
             <th>reason</th></tr></thead>\n<tbody>"
        );
        for (index, row) in findings.iter().take(MAX_FINDINGS).enumerate() {
            let _ = writeln!(
                page,
                "<tr id=\"f{}n{index}\"><td class=\"kind\">{}</td><td class=\"kind\">{}</td>\
                 <td>{}</td><td>{}</td></tr>",
                self.number,
                self.badge(row.finding.name()),
                self.link_about(&row.about),
                code_about(&row.about),
                self.reason(row)
            );
        }
        let _ = writeln!(page, "</tbody></table></div>");
    }

    /// Returns the sentence of a finding, with links to the rules that it names.
    fn reason(&self, row: &FindingRow) -> String {
        let mut reason = format!("<p>{}</p>", escaped(row.sentence()));
        if !row.by.is_empty() {
            let links = row.by.iter().take(MAX_LINKS).map(|rule| self.link(rule));
            let mut links: Vec<String> = links.collect();
            if row.by.len() > MAX_LINKS {
                links.push(format!("and {} more", row.by.len() - MAX_LINKS));
            }
            let _ = write!(reason, "<p>See {}</p>", links.join(", "));
        }
        reason
    }

    /// Says that only the first items are listed, if there are more.
    fn write_cut(&self, count: usize, limit: usize, noun: &str, page: &mut String) {
        if count > limit {
            let _ = writeln!(
                page,
                "<p class=\"note\">The first {} of {}. <code>--format json</code> lists all.</p>",
                grouped(limit),
                counted(count, noun)
            );
        }
    }

    fn write_undecided(&self, page: &mut String) {
        let undecided = &self.report.undecided;
        if undecided.is_empty() {
            return;
        }
        let _ = writeln!(
            page,
            "<h3>Undecided</h3>\n<p>The limit of steps was reached; <code>--steps</code> sets it. \
             These rules may have findings.</p>"
        );
        self.write_cut(undecided.len(), MAX_FINDINGS, "rule", page);
        let _ = writeln!(
            page,
            "<table><thead><tr><th>rule</th><th>statement</th></tr></thead>\n<tbody>"
        );
        for rule in undecided.iter().take(MAX_FINDINGS) {
            let (link, code) = (self.link(rule), code(rule));
            let _ = writeln!(
                page,
                "<tr><td class=\"kind\">{link}</td><td>{code}</td></tr>"
            );
        }
        let _ = writeln!(page, "</tbody></table>");
    }

    fn write_allowed(&self, page: &mut String) {
        let allowed = &self.report.allowed_rows;
        if allowed.is_empty() {
            return;
        }
        let _ = writeln!(page, "<h3>Allowed findings</h3>");
        self.write_cut(allowed.len(), MAX_FINDINGS, "finding", page);
        let _ = writeln!(
            page,
            "<div class=\"wide\"><table><thead><tr><th>kind</th><th>rule</th><th>statement</th>\
             <th>allowed by</th></tr></thead>\n<tbody>"
        );
        for allowed in allowed.iter().take(MAX_FINDINGS) {
            let row = &allowed.row;
            let _ = writeln!(
                page,
                "<tr><td class=\"kind\">{}</td><td class=\"kind\">{}</td><td>{}</td><td>{}</td></tr>",
                self.badge(row.finding.name()),
                self.link_about(&row.about),
                code_about(&row.about),
                escaped(&allowed.by.to_string())
            );
        }
        let _ = writeln!(page, "</tbody></table></div>");
    }

    fn write_overlaps(&self, matrix: &OverlapMatrix, page: &mut String) {
        let marks = self.kinds.iter().enumerate().map(|(index, (kind, _))| {
            let rows = self.findings_of_row.iter();
            let rows = rows.filter(|(_, findings)| {
                let mut kinds = findings
                    .iter()
                    .map(|&at| self.report.findings[at].finding.name());
                kinds.any(|found| found == *kind)
            });
            MarkedRows {
                kind,
                class: kind_class(index),
                rows: rows.map(|(&row, _)| row).collect(),
            }
        });
        let marks: Vec<MarkedRows<'_>> = marks.filter(|mark| !mark.rows.is_empty()).collect();
        let (compared, overlapping) = matrix.pairs();
        let pairs = match matrix.is_exact() {
            true => format!(
                "{} of {} pairs of rules overlap.",
                grouped(overlapping),
                grouped(compared)
            ),
            false => format!(
                "A sample: {} of {} compared pairs of rules overlap.",
                grouped(overlapping),
                grouped(compared)
            ),
        };
        let mut strips = String::new();
        for mark in &marks {
            let _ = write!(strips, " {}", self.badge(mark.kind));
        }
        let strips = match marks.is_empty() {
            true => String::new(),
            false => format!(" Marks on the right are rules with findings:{strips}."),
        };
        let _ = writeln!(
            page,
            "<h3>Rules that overlap</h3>\n<figure>\n{}<figcaption>A row shows which earlier \
             rules match some of its packets, by the number # in the list below; the stronger the \
             colour, the more. {pairs}{strips}</figcaption>\n</figure>",
            matrix.svg(&marks)
        );
    }

    fn write_rules(&self, decided: Option<&DecidedShares>, page: &mut String) {
        let _ = writeln!(page, "<h3>Rules</h3>");
        let (listed, all) = (self.listed.len(), self.rows.len());
        if listed < all {
            let _ = writeln!(
                page,
                "<p class=\"note\">{} of {} rules: rules with findings, rules that findings name, \
                 and the first others.</p>",
                grouped(listed),
                grouped(all)
            );
        }
        let views: Vec<(usize, RuleView)> = (self.listed.iter())
            .map(|&row| (row, self.rows.view(self.rules, row)))
            .collect();
        let columns = Columns {
            list: views.iter().any(|(_, view)| view.list.is_some()),
            hits: views.iter().any(|(_, view)| view.hits.is_some()),
            decided,
        };
        match decided {
            Some(_) => {
                let _ = writeln!(
                    page,
                    "<p class=\"note\"><b>decides</b> is the share of the headers matching \
                     the rule that no better rule matches; – if it is not known. Traffic may have \
                     other shares.</p>"
                );
            }
            None => {
                let _ = writeln!(
                    page,
                    "<p class=\"note\">The share of packets that a rule decides is computed for \
                     files of at most {} rules.</p>",
                    grouped(decided::MAX_RULES)
                );
            }
        }
        let _ = writeln!(
            page,
            "<div class=\"wide\"><table class=\"rules\"><thead><tr>{}</tr></thead>\n<tbody>",
            columns.heading()
        );
        for (row, view) in &views {
            self.write_rule(&columns, *row, view, page);
        }
        let _ = writeln!(page, "</tbody></table></div>");
    }

    fn write_rule(&self, columns: &Columns<'_>, row: usize, view: &RuleView, page: &mut String) {
        let findings = self.findings_of_row.get(&row);
        let class = match findings.is_some() {
            true => " class=\"found\"",
            false => "",
        };
        let number = self.number;
        let _ = write!(
            page,
            "<tr id=\"f{number}r{row}\"{class}><td class=\"n\">{}</td><td class=\"n\">{}</td>",
            row + 1,
            view.line_cell()
        );
        if columns.list {
            let list = escaped(view.list.as_deref().unwrap_or_default());
            let _ = write!(page, "<td>{list}</td>");
        }
        let _ = write!(page, "<td class=\"text\">{}</td>", code(view));
        if columns.hits {
            let hits = view.hits.map(grouped).unwrap_or_default();
            let _ = write!(page, "<td class=\"n\">{hits}</td>");
        }
        if let Some(decided) = columns.decided {
            let policy = &self.rules.policy;
            let share = match self.rows.rule_count(row) {
                1 => decided.text(policy, policy.ids()[self.rows.first(row)]),
                _ => None,
            };
            let share = share.as_deref().map_or("–".to_owned(), escaped);
            let _ = write!(page, "<td class=\"n\">{share}</td>");
        }
        let badges = findings.into_iter().flatten().map(|&at| {
            let badge = self.badge(self.report.findings[at].finding.name());
            match at < MAX_FINDINGS {
                true => format!("<a href=\"#f{number}n{at}\">{badge}</a>"),
                false => badge,
            }
        });
        let badges: Vec<String> = badges.collect();
        let _ = writeln!(page, "<td>{}</td></tr>", badges.join(" "));
    }
}

/// Returns the part of the file that a finding is about, as code.
fn code_about(about: &About) -> String {
    format!("<code>{}</code>", escaped(&about.described()))
}

/// The columns of the list of rules that not every file has.
struct Columns<'a> {
    list: bool,
    hits: bool,
    decided: Option<&'a DecidedShares>,
}

impl Columns<'_> {
    fn heading(&self) -> String {
        let mut heading = "<th class=\"n\">#</th><th class=\"n\">line</th>".to_owned();
        if self.list {
            heading.push_str("<th>list</th>");
        }
        heading.push_str("<th>statement</th>");
        if self.hits {
            heading.push_str("<th class=\"n\">hits</th>");
        }
        if self.decided.is_some() {
            heading.push_str("<th class=\"n\">decides</th>");
        }
        heading.push_str("<th>findings</th>");
        heading
    }
}
