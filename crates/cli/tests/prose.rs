//! Comments and documents in plain English: habits that make readers stumble are
//! counted, for each crate and for the documents, and bounded.
//!
//! The bounds leave room for a sentence that needs such a word. A sentence that passes
//! and must be read twice is still wrong.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

mod project;

use project::{files, root};

/// The most habits in 10,000 words of comments or of documents.
const MAX_HABITS_IN_10K_WORDS: usize = 30;

/// The largest share, in percent, of item documentation that begins with a question word.
const MAX_QUESTION_HEADS_PERCENT: f64 = 1.5;

/// The largest share, in percent, of numeric constants that are named by one word.
const MAX_ONE_WORD_CONSTANTS_PERCENT: f64 = 30.0;

/// The largest share, in percent, of locals whose name says nothing.
const MAX_VAGUE_LOCALS_PERCENT: f64 = 5.0;

/// The most characters of a paragraph in a document, outside of code.
const MAX_PARAGRAPH_CHARACTERS: usize = 500;

/// The most words of the README.
const MAX_README_WORDS: usize = 900;

/// The most lines of the changelog for one version.
const MAX_CHANGELOG_LINES: usize = 20;

/// Habits as sequences of words; `|` separates alternatives, `^` stands for the
/// beginning of a sentence, and a word after `!` must not follow.
const HABITS: [&str; 26] = [
    "of|by|for|from|with|in|to|on|is|are|say|says|hold|holds|has|have|and what is|are|was|were|it|they|a|an|the|has|have|come|comes|goes|matter|matters",
    "^ what is|are|was|were|it|they|a|an|the|has|have",
    "those|that|one|ones that|which|of|with|who",
    "so many|much|long|often|few !that|as",
    "this|as many !as",
    "is|are|was|were|be|been|being|get|gets told",
    "tell|tells !apart",
    "believe|believes|believed|doubt|doubts|want|wants",
    "content with",
    "know|knows of",
    "is|are asked",
    "asked about",
    "held|hold against",
    "as it|they is|are|was|were|stand|stands|leave|leaves",
    "of|in|by|from|among which|whom",
    "beside|besides",
    "anew",
    "at once",
    "is|are|was|were gone",
    "is|are|was|were no !longer",
    "come|comes to be|know|have",
    "there is|are to|still",
    "^ the same",
    "in turns",
    "a moment ago",
    "meanwhile",
];

/// Names of locals that say nothing about the value.
const VAGUE_LOCALS: [&str; 33] = [
    "most", "least", "left", "found", "made", "place", "places", "here", "there", "of", "it",
    "some", "more", "other", "others", "one", "now", "at", "all", "both", "own", "asked", "kept",
    "below", "from", "to", "end", "wanted", "far", "near", "many", "same", "rest",
];

/// Words that begin the documentation of an item badly.
const QUESTION_HEADS: [&str; 7] = ["What", "Whether", "How", "Where", "Which", "Of", "The same"];

const NUMERIC_TYPES: [&str; 13] = [
    "f64", "f32", "u8", "u16", "u32", "u64", "u128", "usize", "i32", "i64", "i128", "isize",
    "Duration",
];

/// The words of a line in lower case, with `^` where a sentence begins.
fn words(line: &str) -> Vec<String> {
    let mut words = vec!["^".to_owned()];
    let mut word = String::new();
    for character in line.chars().chain([' ']) {
        if character.is_alphanumeric() || "'_-`".contains(character) {
            word.extend(character.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if ".:;".contains(character) {
            words.push("^".to_owned());
        }
    }
    words
}

/// The number of words in a line that are English words, not code.
fn prose_words(line: &str) -> usize {
    let is_letter = |character: char| character.is_ascii_alphabetic() || "'-".contains(character);
    let runs = line.split(|character| !is_letter(character));
    runs.filter(|run| run.len() > 1).count()
}

/// The habits in a line.
fn habits(line: &str) -> Vec<&'static str> {
    let words = words(line);
    let begins_with = |words: &[String], habit: &str| {
        let mut rest = words.iter();
        habit
            .split(' ')
            .all(|alternatives| match alternatives.strip_prefix('!') {
                Some(refused) => {
                    let next = rest.clone().next();
                    next.is_none_or(|word| !refused.split('|').any(|other| other == word))
                }
                None => {
                    let word = rest.next();
                    word.is_some_and(|word| alternatives.split('|').any(|other| other == word))
                }
            })
    };
    let starts = (0..words.len()).map(|start| &words[start..]);
    starts
        .flat_map(|words| HABITS.iter().filter(move |habit| begins_with(words, habit)))
        .copied()
        .collect()
}

/// Counts over the sources of a crate, or over documents.
#[derive(Default)]
struct Counts {
    words: usize,
    habits: usize,
    doc_lines: usize,
    question_heads: usize,
    constants: usize,
    one_word_constants: usize,
    locals: usize,
    vague_locals: usize,
    /// One line for each finding.
    findings: String,
}

impl Counts {
    fn note(&mut self, place: &str, finding: &str, line: &str) {
        writeln!(self.findings, "{place}: [{finding}] {line}").unwrap();
    }

    fn add_prose(&mut self, place: &str, text: &str) {
        self.words += prose_words(text);
        for habit in habits(text) {
            self.habits += 1;
            self.note(place, habit, text);
        }
    }

    fn add_source(&mut self, path: &Path) {
        let is_test = path.to_string_lossy().contains("test");
        for (line, number) in fs::read_to_string(path).unwrap().lines().zip(1..) {
            let place = format!("{}:{number}", path.display());
            let code = line.trim();
            if code.starts_with("//") {
                self.add_prose(&place, code.trim_start_matches(['/', '!', ' ']));
                self.add_doc_line(&place, code);
            } else if !is_test {
                self.add_code(&place, code);
            }
        }
    }

    fn add_doc_line(&mut self, place: &str, line: &str) {
        let Some(text) = line.strip_prefix("///") else {
            return;
        };
        self.doc_lines += 1;
        let is_head = |head: &&str| -> bool {
            let after = text.trim().strip_prefix(*head);
            after.is_some_and(|after| !after.starts_with(char::is_alphanumeric))
        };
        if QUESTION_HEADS.iter().any(is_head) {
            self.question_heads += 1;
            self.note(place, "question head", text);
        }
    }

    fn add_code(&mut self, place: &str, line: &str) {
        let item = match line.strip_prefix("pub") {
            Some(rest) => rest.split_once(' ').map_or("", |(_, item)| item),
            None => line,
        };
        let constant = item.strip_prefix("const ");
        let constant = constant.filter(|text| text.starts_with(char::is_uppercase));
        let constant = constant.and_then(|text| text.split_once(": "));
        if let Some((name, value)) = constant {
            let end = value.find(|character: char| !character.is_alphanumeric());
            if end.is_some_and(|end| NUMERIC_TYPES.contains(&&value[..end])) {
                self.constants += 1;
                if !name.contains('_') {
                    self.one_word_constants += 1;
                    self.note(place, "constant of one word", line);
                }
            }
        }
        let Some(pattern) = line.strip_prefix("let ") else {
            return;
        };
        let pattern = pattern.strip_prefix("mut ").unwrap_or(pattern);
        let end = pattern.find(|character: char| !character.is_alphanumeric() && character != '_');
        let name = &pattern[..end.unwrap_or(pattern.len())];
        if !name.is_empty() {
            self.locals += 1;
            if VAGUE_LOCALS.contains(&name) {
                self.vague_locals += 1;
                self.note(place, "vague local", line);
            }
        }
    }

    fn add_document(&mut self, path: &Path) {
        let mut is_code = false;
        for (line, number) in fs::read_to_string(path).unwrap().lines().zip(1..) {
            let is_fence = line.starts_with("```");
            is_code ^= is_fence;
            if !is_code && !is_fence {
                self.add_prose(&format!("{}:{number}", path.display()), line);
            }
        }
    }

    /// The bounds that are exceeded.
    fn excesses(&self) -> Vec<String> {
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let shares = [
            (
                "question heads",
                percent(self.question_heads, self.doc_lines),
                MAX_QUESTION_HEADS_PERCENT,
            ),
            (
                "constants of one word",
                percent(self.one_word_constants, self.constants),
                MAX_ONE_WORD_CONSTANTS_PERCENT,
            ),
            (
                "vague locals",
                percent(self.vague_locals, self.locals),
                MAX_VAGUE_LOCALS_PERCENT,
            ),
        ];
        let mut excesses: Vec<String> = shares
            .iter()
            .filter(|(_, share, bound)| share > bound)
            .map(|(name, share, bound)| format!("{share:.1} % {name}, at most {bound} %"))
            .collect();
        let habits = self.habits * 10_000 / self.words.max(1);
        if habits > MAX_HABITS_IN_10K_WORDS {
            let bound = MAX_HABITS_IN_10K_WORDS;
            excesses.push(format!("{habits} habits in 10,000 words, at most {bound}"));
        }
        excesses
    }

    #[track_caller]
    fn check(&self, name: &str) {
        let excesses = self.excesses();
        assert!(
            excesses.is_empty(),
            "{name}: {excesses:?}\n{}",
            self.findings
        );
    }
}

/// The documents, records of experiments left out.
fn documents() -> Vec<PathBuf> {
    let mut documents = files(&root(), ".md");
    documents.retain(|path| !path.components().any(|part| part.as_os_str() == "records"));
    documents
}

/// Paragraphs of a document with their first line's number: text between empty lines,
/// list items, headings, tables and code.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let (mut is_code, mut is_open) = (false, false);
    for (line, number) in text.lines().zip(1..) {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || trimmed.is_empty() || trimmed.starts_with(['|', '#']) {
            is_open = false;
            continue;
        }
        let marker = trimmed.trim_start_matches(|character: char| character.is_ascii_digit());
        let is_item = trimmed.starts_with("- ") || marker.starts_with(". ");
        match paragraphs.last_mut() {
            Some((_, paragraph)) if is_open && !is_item => {
                paragraph.push(' ');
                paragraph.push_str(trimmed);
            }
            _ => paragraphs.push((number, trimmed.to_owned())),
        }
        is_open = true;
    }
    paragraphs
}

#[test]
fn the_crates_are_in_plain_english() {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let mut crate_count = 0;
    for folder in crates.map(|entry| entry.unwrap().path()) {
        let mut counts = Counts::default();
        for path in files(&folder, ".rs") {
            // This file lists the habits.
            if !path.ends_with("tests/prose.rs") {
                counts.add_source(&path);
            }
        }
        assert!(
            counts.words > 500,
            "{}: {} words",
            folder.display(),
            counts.words
        );
        counts.check(&folder.display().to_string());
        crate_count += 1;
    }
    assert!(crate_count >= 6, "{crate_count} crates");
}

#[test]
fn the_documents_are_in_plain_english() {
    let mut counts = Counts::default();
    for path in documents() {
        counts.add_document(&path);
    }
    assert!(counts.words > 20_000, "{} words", counts.words);
    counts.check("documents");
}

#[test]
fn paragraphs_are_short() {
    let mut long = Vec::new();
    for path in documents() {
        for (number, paragraph) in paragraphs(&fs::read_to_string(&path).unwrap()) {
            let text_outside_code = paragraph.split('`').step_by(2);
            let characters: usize = text_outside_code.map(|text| text.chars().count()).sum();
            if characters > MAX_PARAGRAPH_CHARACTERS {
                long.push(format!(
                    "{}:{number}: {characters} characters",
                    path.display()
                ));
            }
        }
    }
    assert!(
        long.is_empty(),
        "at most {MAX_PARAGRAPH_CHARACTERS}: {long:#?}"
    );
}

#[test]
fn readme_and_changelog_are_short() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let count = readme.split_whitespace().count();
    assert!(count < MAX_README_WORDS, "README.md has {count} words");

    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    for version in changelog.split("\n## ").skip(1) {
        let items = version
            .lines()
            .filter(|line| line.starts_with("- "))
            .count();
        assert!(
            items > 0 && items <= MAX_CHANGELOG_LINES,
            "{items} lines: {version}"
        );
    }
}

#[test]
fn habits_are_found() {
    let counted = [
        ("Adds a rule to a table.", 0),
        ("This is what is left.", 1),
        ("Keys of those that match.", 1),
        ("It takes so many rules; so many as fit.", 1),
        ("The writer is told, and tells apart what differs.", 1),
        (
            "The table is gone. It is no table, and is no longer there.",
            2,
        ),
        ("Rebuilt anew, beside the tables, at once.", 3),
        ("The same for keys.", 1),
        ("Rules, of which most match.", 1),
    ];
    for (line, count) in counted {
        assert_eq!(habits(line).len(), count, "{line}: {:?}", habits(line));
    }
}

#[test]
fn heads_constants_and_locals_are_counted() {
    let mut counts = Counts::default();
    counts.add_doc_line("f:1", "/// Whether there are rules.");
    counts.add_doc_line("f:2", "/// Offers rules.");
    counts.add_code("f:3", "pub(super) const GROWTH: usize = 2;");
    counts.add_code("f:4", "const GROWTH_ROUNDS: usize = 2;");
    counts.add_code("f:5", "const NAME: &str = \"a\";");
    counts.add_code("f:6", "pub const fn new(number: u32) -> Self {");
    counts.add_code("f:7", "impl<const W: usize> Keys<W> {");
    counts.add_code("f:8", "let mut found = 3;");
    counts.add_code("f:9", "let foundation = 3;");
    assert_eq!((counts.doc_lines, counts.question_heads), (2, 1));
    assert_eq!((counts.constants, counts.one_word_constants), (2, 1));
    assert_eq!((counts.locals, counts.vague_locals), (2, 1));
    assert_eq!(counts.excesses().len(), 3, "{:?}", counts.excesses());
}

#[test]
fn paragraphs_end_where_lists_and_tables_begin() {
    let text = "one\ntwo\n- item\n  more\n1. number\n\n| a | b |\n```\ncode\n```\nlast\n";
    let expected = ["one two", "- item more", "1. number", "last"];
    let paragraphs: Vec<String> = paragraphs(text).into_iter().map(|(_, text)| text).collect();
    assert_eq!(paragraphs, expected);
}
