//! Links in the project's documents lead to existing files and headings. Words are
//! the field's, and sources are short.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

mod project;

use project::{files, root};

/// Returns a document without its code blocks.
fn prose(text: &str) -> String {
    let mut in_code = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the anchors of a document's headings, as forges generate them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| -> String {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// Returns the targets of `[text](target)` and `[key]: target`.
fn links(text: &str) -> Vec<String> {
    let inline = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'));
    let mut found: Vec<String> = inline.map(|(target, _)| target.to_owned()).collect();
    let defined = text
        .lines()
        .filter(|line| line.starts_with('['))
        .filter_map(|line| {
            let (_, target) = line.split_once("]: ")?;
            Some(target.trim().to_owned())
        });
    found.extend(defined);
    found
}

#[test]
fn links_lead_to_files_and_headings() {
    let files = files(&root(), ".md");
    let mut checked = 0;
    let mut broken = Vec::new();
    for file in &files {
        let text = prose(&fs::read_to_string(file).unwrap());
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path {
                "" => file.clone(),
                _ => file.parent().unwrap().join(path),
            };
            if !target.exists() {
                broken.push(format!("{}: {link}: no such file", file.display()));
            } else if !anchor.is_empty() {
                let text = prose(&fs::read_to_string(&target).unwrap());
                if !anchors(&text).contains(anchor) {
                    broken.push(format!("{}: {link}: no such heading", file.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(checked > 60, "only {checked} links were found");
}

/// A section that was pasted twice has its heading twice.
#[test]
fn sections_of_a_document_have_different_headings() {
    let mut repeated = Vec::new();
    for file in &files(&root(), ".md") {
        let text = prose(&fs::read_to_string(file).unwrap());
        let mut seen = BTreeSet::new();
        let headings = text.lines().filter(|line| line.starts_with("## "));
        for heading in headings.filter(|heading| !seen.insert(*heading)) {
            repeated.push(format!("{}: {heading}", file.display()));
        }
    }
    assert!(repeated.is_empty(), "{}", repeated.join("\n"));
}

/// Private words for which the field has a term, and that term.
const WORDS: [(&str, &str); 24] = [
    ("rivals", "conflicts"),
    ("relearn", "re-optimise"),
    ("learn again", "re-optimise"),
    ("learned again", "re-optimised"),
    ("learning again", "re-optimisation"),
    ("nested node", "nested table"),
    (" in vain", "false-positive bucket hits, or without effect"),
    ("dearer", "more expensive"),
    ("but for ", "except for"),
    ("ahead of its use", "prefetched"),
    ("asked for ahead", "prefetched"),
    ("mind no hold", "ignores the publish interval"),
    ("straggler", "keys that are still active"),
    ("so-many", "a number"),
    ("come to rest", "settle"),
    ("what was tried", "experiments"),
    ("left behind", "retired"),
    ("contestant", "candidate"),
    ("ingredient", "feature"),
    ("the house", "layout"),
    ("become others", "change"),
    ("in turns within", "interleaved within"),
    ("learned last", "at the last optimisation"),
    ("whoever", "the reader, the writer, the user"),
];

#[test]
fn words_are_those_of_the_field() {
    let mut files = files(&root(), ".md");
    files.extend(sources());
    assert!(files.len() > 300);
    let mut found = Vec::new();
    for file in &files {
        // This list itself, and the names of earlier versions.
        if file.ends_with("tests/documents.rs") || file.ends_with("CHANGELOG.md") {
            continue;
        }
        let text = fs::read_to_string(file).unwrap().to_lowercase();
        // Checks the words of names too.
        let text = text.replace('_', " ");
        for (line, number) in text.lines().zip(1..) {
            let wrong = WORDS.iter().filter(|(word, _)| line.contains(word));
            for (word, say) in wrong {
                found.push(format!("{}:{number}: `{word}`; say {say}", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Longer files are split into modules.
#[test]
fn sources_have_at_most_800_lines() {
    let mut found = Vec::new();
    for file in &sources() {
        let lines = fs::read_to_string(file).unwrap().lines().count();
        if lines > 800 {
            found.push(format!("{}: {lines} lines", file.display()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Returns the source files of all crates.
fn sources() -> Vec<PathBuf> {
    let folders = ["crates", "fuzz"].map(|folder| files(&root().join(folder), ".rs"));
    folders.concat()
}

/// Returns the texts in backticks of a document, each from a single line.
fn quoted(text: &str) -> Vec<String> {
    let lines = prose(text);
    let spans = lines
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    spans.map(str::to_owned).collect()
}

/// Returns the file of a path as documents write it: `core/contract/spec.rs`, below a
/// crate's sources or folder, or the last part of a source's path.
fn named_file(path: &str, sources: &[PathBuf]) -> Option<PathBuf> {
    if let Some(source) = sources.iter().find(|source| source.ends_with(path)) {
        return Some(source.clone());
    }
    let (member, rest) = path.split_once('/')?;
    let candidates = [
        root().join("crates").join(member).join("src").join(rest),
        root().join("crates").join(member).join(rest),
        root().join(path),
    ];
    candidates.into_iter().find(|candidate| candidate.exists())
}

/// True if a source defines a function, constant, type, field or variant with this
/// name.
fn is_defined(name: &str, source: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    source.match_indices(name).any(|(at, _)| {
        let before = &source[..at];
        let after = &source[at + name.len()..];
        let whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        let keywords = [
            "fn ", "const ", "type ", "struct ", "enum ", "trait ", "static ",
        ];
        let declared = keywords.iter().any(|keyword| before.ends_with(keyword));
        let listed = after.starts_with([':', ',', '(', ' ', '{'])
            && !before.ends_with("::")
            && !before.ends_with('.');
        whole && (declared || listed)
    })
}

/// Splits `Type::item` in a document.
fn as_qualified(text: &str) -> Option<(&str, &str)> {
    let (owner, item) = text.split_once("::")?;
    let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_type = owner.starts_with(|c: char| c.is_ascii_uppercase());
    (is_type && is_name(owner) && is_name(item)).then_some((owner, item))
}

#[test]
fn files_and_names_in_documents_exist() {
    let mut documents = files(&root().join("docs"), ".md");
    documents.push(root().join("README.md"));
    documents.push(root().join("CONTRIBUTING.md"));
    let code_files = files(&root().join("crates"), ".rs");
    let code: Vec<String> = (code_files.iter())
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let (mut checked, mut missing) = (0, Vec::new());
    for file in &documents {
        for text in quoted(&fs::read_to_string(file).unwrap()) {
            let is_path = text.ends_with(".rs") && !text.contains(['*', ' ', '{']);
            if is_path && text.contains('/') && !text.contains("NAME") {
                checked += 1;
                if named_file(&text, &code_files).is_none() {
                    missing.push(format!("{}: `{text}` is no file", file.display()));
                }
            }
            if let Some((owner, item)) = as_qualified(&text) {
                checked += 1;
                let defines = |source: &String| source.contains(owner) && is_defined(item, source);
                if !code.iter().any(defines) {
                    missing.push(format!("{}: `{text}` is nowhere", file.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(checked > 60, "only {checked} names were found");
}

/// Returns the comments above a constant, and above the constants that directly precede
/// it. Returns `None` if the source has no such constant.
fn comments_of_constant(name: &str, source: &str) -> Option<String> {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let declares = |line: &&str| line.contains(&format!("const {name}: "));
    let number = lines.iter().position(declares)?;
    let above = lines[..number].iter().rev();
    let block = above.take_while(|line| {
        line.starts_with("//") || line.starts_with("#[") || line.contains("const ")
    });
    let comments = block.filter(|line| line.starts_with("//"));
    Some(comments.copied().collect::<Vec<_>>().join("\n"))
}

#[test]
fn measured_constants_cite_their_record() {
    let groups = fs::read_to_string(root().join("bench/constants/groups.toml")).unwrap();
    let (mut checked, mut wrong) = (0, Vec::new());
    let names = groups.split("{ name = \"crates/").skip(1);
    for name in names.filter_map(|rest| rest.split('"').next()) {
        let (file, constant) = name.rsplit_once(':').unwrap();
        let source = fs::read_to_string(root().join("crates").join(file)).unwrap_or_default();
        match comments_of_constant(constant, &source) {
            None => wrong.push(format!("groups.toml: {name}: there is no such constant")),
            Some(comments) if !comments.contains("bench/records/constants.md") => {
                wrong.push(format!(
                    "crates/{name} does not cite bench/records/constants.md"
                ));
            }
            Some(_) => {}
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 100, "only {checked} constants were found");
}

#[test]
fn comments_of_constants_are_found() {
    let source = "/// A.\nconst A: u8 = 1;\nconst B: u8 = 2;\n\n/// C.\n#[x]\nconst C: u8 = 3;";
    assert_eq!(comments_of_constant("B", source).unwrap(), "/// A.");
    assert_eq!(comments_of_constant("C", source).unwrap(), "/// C.");
    assert_eq!(comments_of_constant("D", source), None);
}

#[test]
fn a_missing_file_or_name_is_noticed() {
    assert!(named_file("core/contract/spec.rs", &[]).is_some());
    assert!(named_file("core/contract/spec/nothing.rs", &[]).is_none());
    let elsewhere = [PathBuf::from("a/b/c.rs")];
    assert!(named_file("b/c.rs", &elsewhere).is_some());
    assert!(named_file("d/c.rs", &elsewhere).is_none());
    assert!(is_defined("build", "impl X { pub fn build() {} }"));
    assert!(is_defined("rules", "struct X { rules: usize }"));
    assert!(!is_defined("rules", "x.rules.len()"));
    assert!(!is_defined("details", "fn more_details() {}"));
    assert_eq!(as_qualified("Stats::bytes"), Some(("Stats", "bytes")));
    assert_eq!(as_qualified("std::fs"), None);
}
