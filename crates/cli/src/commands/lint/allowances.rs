//! Findings that are allowed: by a comment in the file of rules, or by a configuration file.

use std::cell::Cell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use classyard_report::output::file::is_dash;

use super::finding::About;

/// The reason why a finding is not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AllowedBy {
    /// A comment in the file of rules.
    Comment { line: u32 },
    /// An entry of a configuration file: its place, and its reason.
    Config { place: String, why: String },
}

impl fmt::Display for AllowedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllowedBy::Comment { line } => write!(f, "the comment on line {line}"),
            AllowedBy::Config { place, why } => write!(f, "{why} ({place})"),
        }
    }
}

/// An entry of a configuration file that allows findings about a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowance {
    /// File and line of the entry.
    pub(super) place: String,
    /// The file of rules; `None` for all files.
    pub(super) file: Option<PathBuf>,
    /// The rule as `lint` quotes it.
    pub(super) rule: Option<String>,
    /// The line of the rule.
    pub(super) line: Option<u32>,
    /// The names of the kinds of findings.
    pub(super) kinds: Vec<String>,
    pub(super) why: String,
    pub(super) use_count: UseCount,
}

/// The files that an entry was applied to, and the findings that it allowed.
#[derive(Clone, Debug, Default)]
pub(super) struct UseCount {
    files: Cell<usize>,
    findings: Cell<usize>,
}

impl Allowance {
    /// True if the entry is about a file of rules; `None` stands for the embedded example.
    fn is_about(&self, path: Option<&Path>) -> bool {
        match (&self.file, path) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(file), Some(path)) if is_dash(file) || is_dash(path) => file == path,
            (Some(file), Some(path)) => match (fs::canonicalize(file), fs::canonicalize(path)) {
                (Ok(file), Ok(path)) => file == path,
                _ => file == path,
            },
        }
    }

    fn allows(&self, about: &About, kind: &str) -> bool {
        self.kinds.iter().any(|allowed| allowed == kind)
            && self.line.is_none_or(|line| about.line() == Some(line))
            && self
                .rule
                .as_ref()
                .is_none_or(|text| is_same_text(text, &about.described()))
    }

    /// True if the entry applied to a file, but allowed no finding.
    pub(super) fn is_unused(&self) -> bool {
        self.use_count.files.get() > 0 && self.use_count.findings.get() == 0
    }
}

/// True if two texts differ in spaces only.
fn is_same_text(first: &str, second: &str) -> bool {
    let words = |text| str::split_whitespace(text);
    words(first).eq(words(second))
}

/// The entries about one file.
pub(super) struct FileAllowances<'a>(Vec<&'a Allowance>);

impl<'a> FileAllowances<'a> {
    /// Selects the entries about a file; `None` stands for the embedded example.
    pub(super) fn new(all: &'a [Allowance], path: Option<&Path>) -> FileAllowances<'a> {
        let about = all.iter().filter(|allowance| allowance.is_about(path));
        let about: Vec<&Allowance> = about.collect();
        for allowance in &about {
            let files = &allowance.use_count.files;
            files.set(files.get() + 1);
        }
        FileAllowances(about)
    }

    /// Returns the first entry that allows a kind of finding about a part of the file. All
    /// entries that do are counted as used.
    pub(super) fn find(&self, about: &About, kind: &str) -> Option<AllowedBy> {
        let allowing = self
            .0
            .iter()
            .filter(|allowance| allowance.allows(about, kind));
        let allowing: Vec<&&Allowance> = allowing.collect();
        for allowance in &allowing {
            let findings = &allowance.use_count.findings;
            findings.set(findings.get() + 1);
        }
        allowing.first().map(|allowance| AllowedBy::Config {
            place: allowance.place.clone(),
            why: allowance.why.clone(),
        })
    }
}
