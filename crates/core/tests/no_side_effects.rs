//! The library only computes. It reads no clock, environment, file or socket,
//! prints nothing and starts no thread. Time, memory limits and threads belong
//! to the caller.
//!
//! This test searches the library's source for forbidden names, ignoring
//! comments, string literals and code compiled only for tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Names that the library must not use.
const FORBIDDEN: [&str; 22] = [
    "Instant",
    "SystemTime",
    "UNIX_EPOCH",
    "std::env",
    "env::var",
    "env::vars",
    "env::args",
    "std::fs",
    "File::open",
    "File::create",
    "OpenOptions",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "std::process",
    "thread::spawn",
    "thread::scope",
    "thread::Builder",
    "println!",
    "eprintln!",
    "print!",
    "dbg!",
];

/// A use of a forbidden name: its line, from 1, and the name.
type Found = (usize, &'static str);

fn is_word(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || letter == b'_'
}

/// Returns the positions of a name, except inside of longer names.
fn positions<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(name)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let after = bytes.get(at + name.len());
            let longer = name.ends_with(|letter: char| letter.is_alphanumeric())
                && after.is_some_and(|&letter| is_word(letter));
            (at == 0 || !is_word(bytes[at - 1])) && !longer
        })
}

/// Blanks out comments, strings and characters, and keeps line numbers.
fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = if rest.starts_with(b"//") {
            rest.iter().position(|&letter| letter == b'\n')
        } else if rest.starts_with(b"/*") {
            block_comment(rest)
        } else if rest[0] == b'"' {
            text(rest)
        } else if rest[0] == b'r' && (at == 0 || !is_word(bytes[at - 1])) {
            raw_text(rest).or(Some(0))
        } else if rest[0] == b'\'' {
            Some(character(rest))
        } else {
            Some(0)
        };
        let end = length.map_or(bytes.len(), |length| at + length);
        for letter in &mut code[at..end] {
            if *letter != b'\n' {
                *letter = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(code).expect("whole characters are blanked out")
}

/// Returns the length of a block comment, which may be nested.
fn block_comment(rest: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn text(rest: &[u8]) -> Option<usize> {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// Returns the length of a raw string, or `None` if this is not a raw string.
fn raw_text(rest: &[u8]) -> Option<usize> {
    let marks = rest[1..].iter().take_while(|&&letter| letter == b'#');
    let marks = marks.count();
    if rest.get(1 + marks) != Some(&b'"') {
        return None;
    }
    let begin = marks + 2;
    let mut end = vec![b'"'];
    end.resize(marks + 1, b'#');
    let length = rest[begin..].windows(end.len()).position(|at| at == end);
    length.map(|length| begin + length + end.len())
}

/// Returns the length of a character literal; 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    let close = |from: usize| {
        let letters = rest.iter().enumerate().skip(from).take(10);
        let mut closing = letters.filter(|&(_, &letter)| letter == b'\'');
        closing.next().map_or(0, |(at, _)| at + 1)
    };
    match rest.get(1) {
        Some(b'\\') => close(3),
        Some(letter) if !letter.is_ascii() => close(2),
        Some(_) if rest.get(2) == Some(&b'\'') => 3,
        _ => 0,
    }
}

const TESTS_ONLY: &str = "#[cfg(test)]";

/// Blanks out items compiled only for tests. Returns the names of test modules
/// that have their own files.
fn without_tests(code: &mut String) -> Vec<String> {
    let mut modules = Vec::new();
    while let Some(begin) = code.find(TESTS_ONLY) {
        let item = begin + TESTS_ONLY.len();
        let open = code[item..].find(['{', ';']).map(|at| item + at);
        let open = open.expect("an item follows");
        let end = if code.as_bytes()[open] == b';' {
            let words: Vec<&str> = code[item..open].split_whitespace().collect();
            if let Some(at) = words.iter().position(|&word| word == "mod") {
                modules.push(words[at + 1].to_owned());
            }
            open + 1
        } else {
            let mut depth = 0;
            let closing = code[open..].bytes().position(|letter| {
                match letter {
                    b'{' => depth += 1,
                    b'}' => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            open + closing.expect("braces are balanced") + 1
        };
        let blank = code[begin..end].replace(|letter| letter != '\n', " ");
        code.replace_range(begin..end, &blank);
    }
    modules
}

/// Returns the forbidden names that a file uses, and its test modules in
/// separate files.
fn search(source: &str) -> (Vec<Found>, Vec<String>) {
    let mut code = code_only(source);
    let modules = without_tests(&mut code);
    let line = |at: usize| 1 + code[..at].matches('\n').count();
    let mut uses: Vec<Found> = FORBIDDEN
        .iter()
        .flat_map(|&name| positions(&code, name).map(move |at| (at, name)))
        .map(|(at, name)| (line(at), name))
        .collect();
    uses.sort_unstable();
    (uses, modules)
}

/// Collects all source files below a folder.
fn sources(folder: &Path, into: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.insert(path);
        }
    }
}

/// Returns the folder of the modules that a file declares.
fn module_folder(file: &Path) -> PathBuf {
    match file.file_name().and_then(|name| name.to_str()) {
        Some("mod.rs" | "lib.rs") => file.parent().unwrap().to_owned(),
        _ => file.with_extension(""),
    }
}

#[test]
fn the_library_reads_no_clock_environment_or_file_and_starts_no_thread() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = BTreeSet::new();
    sources(&root, &mut files);
    let mut uses = Vec::new();
    let mut tests = Vec::new();
    for file in &files {
        let (places, modules) = search(&fs::read_to_string(file).unwrap());
        tests.extend(modules.iter().map(|name| module_folder(file).join(name)));
        uses.extend(places.into_iter().map(|place| (file, place)));
    }
    let in_tests = |file: &Path| {
        let file = file.with_extension("");
        tests.iter().any(|tests| file.starts_with(tests))
    };
    // The search covers files of the library, and recognises test files.
    assert!(files.contains(&root.join("table/writer.rs")), "{files:?}");
    assert!(in_tests(&root.join("table/tests/leaks.rs")), "{tests:?}");
    uses.retain(|(file, _)| !in_tests(file));
    let lines = uses.iter().map(|(file, (line, name))| {
        let file = file.strip_prefix(&root).unwrap().display();
        format!("\n  src/{file}:{line}: {name}")
    });
    let lines: String = lines.collect();
    assert!(lines.is_empty(), "the library must not use:{lines}");
}

#[test]
fn the_search_finds_what_it_should_and_nothing_else() {
    let names = |source: &str| search(source).0;
    assert_eq!(
        names("fn a() {\n    let now = std::time::Instant::now();\n}"),
        [(2, "Instant")]
    );
    assert_eq!(
        names("use std::{fs, time};\nlet t = time::SystemTime::now(); std::env::var(NAME);"),
        [(2, "SystemTime"), (2, "env::var"), (2, "std::env")]
    );
    for name in FORBIDDEN {
        let source =
            format!("/* a /* b */ c */\nlet x = 'a'; let y: &'a str = \"\\\"\"; {name} ()");
        let uses = names(&source);
        assert!(uses.contains(&(2, name)), "{name} in {uses:?}");
    }
    for innocent in [
        "// Instant::now()\n//! println!()\n/// std::env::var",
        "/* Instant /* dbg! */ SystemTime */",
        "let a = \"Instant\"; let b = r#\"std::fs \" \"#; let c = '\"'; let d = \"println!\";",
        "let e = b'\\''; let f = 'ü'; let g = \"SystemTime\";",
        "Instantly(); my_println!(); fn std_fs() {} environment::variable();",
        "#[cfg(test)]\nmod tests {\n    fn a() { if b { Instant::now() } }\n}\nfn c() {}",
        "#[cfg(test)]\nuse std::fs;\n",
    ] {
        assert_eq!(names(innocent), [], "{innocent}");
    }
    // Code after comments, strings and tests is searched.
    for (source, line) in [
        ("/* a */ Instant", 1),
        ("let a = \"//\"; Instant", 1),
        ("let a = '\"'; Instant", 1),
        ("let a: &'static str = b; // c\nInstant", 2),
        ("let a = r##\"\"#\"##; Instant", 1),
        ("#[cfg(test)]\nmod tests {\n    mod a { }\n}\nInstant", 5),
        ("#[cfg(test)]\nmod tests;\nInstant", 3),
    ] {
        assert_eq!(names(source), [(line, "Instant")], "{source}");
    }
    let (_, modules) = search("#[cfg(test)]\npub(crate) mod some_tests;\nmod others;");
    assert_eq!(modules, ["some_tests"]);
}
