//! The configuration file of `lint`: `classyard.toml` with a table `[lint]`.

use std::ops::Range;
use std::path::{Path, PathBuf};

use classyard_report::failure::Failure;
use classyard_report::input::{count, read_text, source_name};
use classyard_report::output::join;
use classyard_report::reporter::Reporter;
use classyard_report::suggestion::did_you_mean;
use classyard_workload::diagnostic::{Problem, Problems, ReadError};
use classyard_workload::limits::FileLimit;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Kind;
use super::allowances::Allowance;

/// The file that is read from the current folder if it exists.
pub(super) const DEFAULT_FILE: &str = "classyard.toml";

/// The maximum size of the file.
const LIMIT: FileLimit = FileLimit {
    bytes: 1 << 20,
    what: "a configuration file",
};

/// The value of `select` that stands for all kinds of findings.
const ALL: &str = "all";

/// The keys of the table `[lint]`.
const LINT_KEYS: [&str; 5] = ["select", "ignore", "steps", "strict", "allow"];

/// The keys of an entry of `allow`.
const ALLOW_KEYS: [&str; 5] = ["file", "rule", "line", "kind", "why"];

/// The settings of a configuration file. Absent settings are `None` or empty.
#[derive(Debug, Default)]
pub(super) struct LintConfig {
    pub(super) select: Option<Vec<Kind>>,
    pub(super) ignore: Option<Vec<Kind>>,
    pub(super) steps: Option<usize>,
    pub(super) strict: bool,
    pub(super) allow: Vec<Allowance>,
}

impl LintConfig {
    /// Reads the file at `path`, or [`DEFAULT_FILE`] if it exists. Notes on standard error which
    /// file was read.
    ///
    /// # Errors
    /// [`Failure::Read`] if the file cannot be read or has mistakes.
    pub(super) fn load(path: Option<&Path>, reporter: Reporter) -> Result<LintConfig, Failure> {
        let default = Path::new(DEFAULT_FILE);
        let path = match path {
            Some(path) => path,
            None if default.exists() => default,
            None => return Ok(LintConfig::default()),
        };
        let text = read_text(path, LIMIT)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let config = parse(&source_name(path), folder, &text)?;
        reporter.note(&format!("settings are from {}", source_name(path)));
        Ok(config)
    }
}

/// Parses the text of a file. Files of rules are relative to `folder`.
fn parse(source: &str, folder: &Path, text: &str) -> Result<LintConfig, ReadError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reading = Reading {
        source,
        folder,
        text,
        mistakes: Vec::new(),
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let message = error.message().replace('\n', "; ");
        let (found, expected) = message
            .split_once(", expected ")
            .unwrap_or((&message, "TOML"));
        reading.fault(error.span().unwrap_or(0..0), found, expected);
    }
    let mut config = LintConfig::default();
    if errors.is_empty() {
        reading.check_keys(table.get_ref(), "the file", &["lint"]);
        if let Some(lint) = table.get_ref().get("lint") {
            match lint.get_ref() {
                DeValue::Table(lint) => config = reading.lint(lint),
                other => reading.fault(lint.span(), described(other), "the table `[lint]`"),
            }
        }
    }
    match reading.mistakes.is_empty() {
        true => Ok(config),
        false => Err(ReadError::Bad(reading.problems())),
    }
}

/// A text that is being read, with the mistakes so far.
struct Reading<'t> {
    source: &'t str,
    folder: &'t Path,
    text: &'t str,
    /// The range of bytes, the text found, and the text expected.
    mistakes: Vec<(Range<usize>, String, String)>,
}

type Item<'a> = Spanned<DeValue<'a>>;

impl Reading<'_> {
    fn fault(&mut self, span: Range<usize>, found: impl Into<String>, expected: impl Into<String>) {
        self.mistakes.push((span, found.into(), expected.into()));
    }

    /// Reports the keys of a table that `known` lacks.
    fn check_keys(&mut self, table: &DeTable<'_>, owner: &str, known: &[&str]) {
        for key in table.keys() {
            let word: &str = key.get_ref();
            if !known.contains(&word) {
                let hint = did_you_mean(word, known.iter().copied());
                let found = format!("unknown key `{word}` in {owner}{hint}");
                self.fault(
                    key.span(),
                    found,
                    format!("one of `{}`", known.join("`, `")),
                );
            }
        }
    }

    fn lint(&mut self, table: &DeTable<'_>) -> LintConfig {
        self.check_keys(table, "`[lint]`", &LINT_KEYS);
        let mut config = LintConfig::default();
        let kinds = |reading: &mut Self, key| table.get(key).map(|item| reading.kinds(item));
        config.select = match table.get("select").map(|item| item.get_ref().as_str()) {
            Some(Some(ALL)) => Some(Kind::ALL.to_vec()),
            _ => kinds(self, "select"),
        };
        config.ignore = kinds(self, "ignore");
        config.steps = table.get("steps").and_then(|item| self.steps(item));
        if let Some(item) = table.get("strict") {
            match item.get_ref().as_bool() {
                Some(strict) => config.strict = strict,
                None => self.fault(item.span(), described(item.get_ref()), "true or false"),
            }
        }
        if let Some(item) = table.get("allow") {
            match item.get_ref() {
                DeValue::Array(entries) => {
                    let entries = entries.iter().filter_map(|entry| self.allowance(entry));
                    config.allow = entries.collect();
                }
                other => self.fault(item.span(), described(other), "a list of tables"),
            }
        }
        config
    }

    /// Reads the name of a kind, or a list of names.
    fn kinds(&mut self, item: &Item<'_>) -> Vec<Kind> {
        match item.get_ref() {
            DeValue::Array(names) => names.iter().filter_map(|name| self.kind(name)).collect(),
            _ => self.kind(item).into_iter().collect(),
        }
    }

    fn kind(&mut self, item: &Item<'_>) -> Option<Kind> {
        let names = Kind::ALL.map(Kind::name);
        let expected = format!("one of `{}`", join(names, "`, `"));
        let Some(name) = item.get_ref().as_str() else {
            self.fault(item.span(), described(item.get_ref()), expected);
            return None;
        };
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        if kind.is_none() {
            let hint = did_you_mean(name, names);
            let found = format!("`{name}` is no kind of finding{hint}");
            self.fault(item.span(), found, expected);
        }
        kind
    }

    /// Reads a number of steps: a whole number, or a text such as `200M`.
    fn steps(&mut self, item: &Item<'_>) -> Option<usize> {
        let steps = match item.get_ref() {
            DeValue::String(text) => count(text).ok(),
            _ => whole(item),
        };
        if steps.is_none() {
            let expected = "a number such as 20_000_000 or \"20M\"";
            self.fault(item.span(), described(item.get_ref()), expected);
        }
        steps
    }

    /// Reads a text in quotes.
    fn text(&mut self, table: &DeTable<'_>, key: &str, expected: &str) -> Option<String> {
        let item = table.get(key)?;
        let text = item
            .get_ref()
            .as_str()
            .filter(|text| !text.trim().is_empty());
        if text.is_none() {
            self.fault(
                item.span(),
                described(item.get_ref()),
                format!("{expected} in quotes"),
            );
        }
        text.map(str::to_owned)
    }

    fn allowance(&mut self, entry: &Item<'_>) -> Option<Allowance> {
        let DeValue::Table(table) = entry.get_ref() else {
            let expected = "a table such as `{ rule = \"…\", kind = \"…\", why = \"…\" }`";
            self.fault(entry.span(), described(entry.get_ref()), expected);
            return None;
        };
        self.check_keys(table, "`allow`", &ALLOW_KEYS);
        for (key, expected) in [
            ("kind", "`kind = \"…\"` with the kind of finding"),
            ("why", "`why = \"…\"` with the reason"),
        ] {
            if !table.contains_key(key) {
                self.fault(entry.span(), format!("`{key}` is missing"), expected);
            }
        }
        if !table.contains_key("rule") && !table.contains_key("line") {
            let expected = "`rule = \"…\"` with the rule as `lint` quotes it, or `line = N`";
            self.fault(entry.span(), "an entry that names no rule", expected);
        }
        let line = table.get("line").and_then(|item| {
            let line = whole(item).filter(|&line: &u32| line > 0);
            if line.is_none() {
                self.fault(item.span(), described(item.get_ref()), "a line, from 1");
            }
            line
        });
        let kinds = table.get("kind").map(|item| self.kinds(item));
        let kinds = kinds.unwrap_or_default().into_iter();
        let file = self.text(table, "file", "the name of a file of rules");
        Some(Allowance {
            place: format!("{}:{}", self.source, self.line_of(entry.span().start)),
            file: file.map(|file| match file.as_str() {
                "-" => PathBuf::from(file),
                _ => self.folder.join(file),
            }),
            rule: self.text(table, "rule", "the rule as `lint` quotes it"),
            line,
            kinds: kinds.map(|kind| kind.name().to_owned()).collect(),
            why: self.text(table, "why", "the reason").unwrap_or_default(),
            ..Allowance::default()
        })
    }

    /// Returns the line of a byte, from 1.
    fn line_of(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    /// Returns the mistakes in the order of the text.
    fn problems(mut self) -> Problems {
        self.mistakes.sort_by_key(|(span, ..)| span.start);
        let mut problems = Problems::new(self.source);
        for (span, found, expected) in std::mem::take(&mut self.mistakes) {
            let start = span.start.min(self.text.len());
            let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
            let line = self.text[line_start..].lines().next().unwrap_or("");
            let end = span.end.min(line_start + line.len()).max(start);
            let part = self.text.get(start..end).unwrap_or("");
            let number = self.line_of(start);
            problems.push(Problem::at(number, line, part, found, expected));
        }
        problems
    }
}

/// Reads a whole number that is not negative.
fn whole<T: TryFrom<u64>>(item: &Item<'_>) -> Option<T> {
    let number = item.get_ref().as_integer()?;
    let number = u64::from_str_radix(number.as_str(), number.radix()).ok()?;
    T::try_from(number).ok()
}

/// Describes a value in messages.
fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("`{text}`"),
        DeValue::Integer(number) => format!("`{number}`"),
        DeValue::Float(number) => format!("`{number}`"),
        DeValue::Boolean(truth) => format!("`{truth}`"),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        match parse("c.toml", Path::new(""), text) {
            Err(ReadError::Bad(problems)) => {
                let shown = problems.shown().iter();
                shown.map(ToString::to_string).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_settings_are_read() {
        let text = "[lint]\nselect = [\"dead\", \"redundant\"]\nignore = \"redundant\"\n\
            steps = \"2M\"\nstrict = true\n\n[[lint.allow]]\nfile = \"fw.rules\"\nline = 12\n\
            kind = \"dead\"\nwhy = \"kept for its counters\"\n";
        let config = parse("c.toml", Path::new("site"), text).unwrap();
        assert_eq!(config.select, Some(vec![Kind::DEAD, Kind::REDUNDANT]));
        let all = parse("c.toml", Path::new("site"), "[lint]\nselect = \"all\"\n").unwrap();
        assert_eq!(all.select, Some(Kind::ALL.to_vec()));
        assert_eq!(config.ignore, Some(vec![Kind::REDUNDANT]));
        assert_eq!((config.steps, config.strict), (Some(2_000_000), true));
        let [allowance] = &config.allow[..] else {
            panic!("{config:?}")
        };
        assert_eq!(allowance.place, "c.toml:7");
        assert_eq!(allowance.file, Some(PathBuf::from("site/fw.rules")));
        assert_eq!((allowance.line, &allowance.rule), (Some(12), &None));
        assert_eq!(allowance.kinds, ["dead"]);
        let steps = |text: &str| parse("c", Path::new(""), text).unwrap().steps;
        assert_eq!(steps("[lint]\nsteps = 1_000"), Some(1000));
        assert_eq!(steps("\u{feff}"), None);
    }

    #[test]
    fn mistakes_have_their_places() {
        assert_eq!(
            problems("[lint]\nselct = [\"dead\"]\n"),
            [
                "2:1: unknown key `selct` in `[lint]`; did you mean `select`?; expected one of \
              `select`, `ignore`, `steps`, `strict`, `allow`"
            ]
        );
        let found = problems("[lint]\nselect = [\"dead\", \"ded\"]\n");
        assert!(found[0].starts_with("2:19: `ded` is no kind of finding; did you mean `dead`?"));
        let found = problems("[lints]\n");
        assert!(found[0].starts_with("1:2: unknown key `lints` in the file; did you mean `lint`?"));
        let found = problems("lint = 3\n");
        assert_eq!(found, ["1:8: `3`; expected the table `[lint]`"]);
        for (text, place) in [
            ("[lint]\nsteps = -1\n", "2:9: `-1`; expected a number"),
            (
                "[lint]\nsteps = \"many\"\n",
                "2:9: `many`; expected a number",
            ),
            ("[lint]\nstrict = 1\n", "2:10: `1`; expected true or false"),
            ("[lint]\nallow = 1\n", "2:9: `1`; expected a list of tables"),
            (
                "[lint]\nallow = [1]\n",
                "2:10: `1`; expected a table such as",
            ),
            ("[lint]\nsteps = \n", "2:"),
        ] {
            let found = problems(text);
            assert!(found[0].starts_with(place), "{found:?}");
        }
        let found = problems("[lint]\nallow = [\n  { file = \"a\", line = 0 },\n]\n");
        let starts = [
            "3:3: `kind` is missing",
            "3:3: `why` is missing",
            "3:24: `0`; expected a line, from 1",
        ];
        assert_eq!(found.len(), starts.len(), "{found:?}");
        for (found, start) in found.iter().zip(starts) {
            assert!(found.starts_with(start), "{found}");
        }
    }
}
