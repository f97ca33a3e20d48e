//! The drawings of modules in `docs/design.md` show which module imports which, the
//! lowest first. This test reads all `use` lines and paths of the sources. It fails
//! if a module imports one that is drawn above it, or if drawing and sources
//! differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

type Imports = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the lines `name -> name, name` of the drawing with this title.
fn drawing(title: &str) -> Vec<(String, BTreeSet<String>)> {
    let path = root().join("docs/design.md");
    let text = fs::read_to_string(path).unwrap();
    let start = format!("```text\n{title}\n");
    let (_, rest) = text.split_once(&start).expect("the drawing is there");
    let (block, _) = rest.split_once("```").unwrap();
    let lines = block.lines().filter_map(|line| line.split_once("->"));
    let lines = lines.map(|(name, imports)| {
        let imports = imports.split(',').map(|name| name.trim().to_owned());
        let imports = imports.filter(|name| !name.is_empty());
        (name.trim().to_owned(), imports.collect())
    });
    lines.collect()
}

/// Returns all source files of a folder except tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Returns a source without comments and without its test module, which comes last.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().map(|line| {
        let comment = line.find("//").unwrap_or(line.len());
        &line[..comment]
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the first names of all paths after a prefix, including lists in braces.
fn names_after(text: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in text.match_indices(prefix) {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &text[at + prefix.len()..];
        let word = |text: &str| -> String {
            let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
            text.trim().chars().take_while(is_part).collect()
        };
        if let Some(list) = rest.strip_prefix('{') {
            let (list, _) = list.split_once('}').unwrap();
            names.extend(list.split(',').map(word));
        } else {
            names.insert(word(rest));
        }
    }
    names
}

/// Returns the imports between the modules of a folder. `prefix` is the path of the
/// folder; its own files use `super::` instead.
fn imports(folder: &Path, prefix: &str, modules: &BTreeSet<String>) -> Imports {
    let mut all = Imports::new();
    for path in files(folder) {
        let inside = path.strip_prefix(folder).unwrap();
        let mut parts = inside.iter().map(|part| part.to_str().unwrap());
        let module = parts.next().unwrap().trim_end_matches(".rs").to_owned();
        if module == "mod" || module == "lib" {
            continue;
        }
        let text = code(&path);
        let mut names = names_after(&text, prefix);
        let rest: Vec<&str> = parts.collect();
        // `super` is the folder, in its own files and in the `mod.rs` of modules.
        if rest.is_empty() || rest == ["mod.rs"] {
            names.extend(names_after(&text, "super::"));
        }
        names.retain(|name| modules.contains(name) && *name != module);
        all.entry(module).or_default().extend(names);
    }
    all
}

/// Checks that a folder of `crates` has the modules and imports of a drawing. `prefix`
/// is the path of the folder in its crate.
#[track_caller]
fn agree(title: &str, folder: &str, prefix: &str) {
    let folder = root().join("crates").join(folder);
    let drawn = drawing(title);
    let modules: BTreeSet<String> = drawn.iter().map(|line| line.0.clone()).collect();
    assert_eq!(modules.len(), drawn.len(), "a module is drawn twice");
    let there = files(&folder).into_iter().map(|path| {
        let inside = path.strip_prefix(&folder).unwrap();
        let first = inside.iter().next().unwrap().to_str().unwrap();
        first.trim_end_matches(".rs").to_owned()
    });
    let there: BTreeSet<String> = there.collect();
    let found = imports(&folder, prefix, &there);
    let mut expected = String::new();
    for (module, imports) in &found {
        let imports: Vec<&str> = imports.iter().map(String::as_str).collect();
        expected += &format!("{module} -> {}\n", imports.join(", "));
    }
    let names: BTreeSet<String> = found.keys().cloned().collect();
    assert_eq!(names, modules, "the sources say:\n{expected}");
    let mut below = BTreeSet::new();
    for (module, imports) in &drawn {
        let real = found.get(module);
        let real = real.expect("all names are the same");
        let upward: Vec<&String> = real.difference(&below).collect();
        assert!(
            upward.is_empty(),
            "`{module}` imports {upward:?}, drawn at or above it"
        );
        assert_eq!(real, imports, "`{module}`; the sources say:\n{expected}");
        below.insert(module.clone());
    }
}

#[test]
fn the_library_is_as_drawn() {
    agree("Modules of the library", "core/src", "crate::");
}

#[test]
fn the_forest_is_as_drawn() {
    agree(
        "Modules of the forest",
        "core/src/engine/forest",
        "crate::engine::forest::",
    );
}

#[test]
fn the_datapath_is_as_drawn() {
    agree("Modules of the datapath", "datapath/src", "crate::");
}

#[test]
fn the_pipeline_is_as_drawn() {
    agree(
        "Modules of the pipeline",
        "datapath/src/pipeline",
        "crate::pipeline::",
    );
}

#[test]
fn the_text_readers_are_as_drawn() {
    agree("Modules of the text readers", "text/src", "crate::");
}

#[test]
fn the_reference_is_as_drawn() {
    agree("Modules of the reference", "reference/src", "crate::");
}

#[test]
fn the_workload_is_as_drawn() {
    agree("Modules of the workload", "workload/src", "crate::");
}

#[test]
fn the_command_line_is_as_drawn() {
    agree("Modules of the command line", "cli/src", "crate::");
}

/// The parser finds exactly the imports of a source.
#[test]
fn paths_are_read() {
    let text = "use crate::{one, two::Two};\nlet x = crate::three::f();\nuse other_crate::no;\n\
                pub(in crate::four) fn f();\nuse super::five::{self, Six};";
    let expected = ["four", "one", "three", "two"].map(String::from);
    assert!(names_after(text, "crate::").into_iter().eq(expected));
    assert!(
        names_after(text, "super::")
            .into_iter()
            .eq(["five".to_owned()])
    );
}

/// Returns a path without `.` and `..`, computed from its text: symbolic links are
/// not followed.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// A package contains only the files of its folder, so its sources include no
/// others.
#[test]
fn sources_include_files_of_their_own_package_only() {
    let mut included = 0;
    for package in fs::read_dir(root().join("crates")).unwrap() {
        let package = normal(&package.unwrap().path());
        for path in files(&package.join("src")) {
            let code = code(&path);
            let macros = ["include_str!(\"", "include_bytes!(\"", "include!(\""];
            for after in macros.iter().flat_map(|start| code.split(start).skip(1)) {
                let name = after.split('"').next().unwrap();
                let file = normal(&path.parent().unwrap().join(name));
                let path = path.display();
                assert!(file.starts_with(&package), "{path} includes {name}");
                assert!(file.exists(), "{path} includes {name}");
                included += 1;
            }
        }
    }
    assert!(included >= 8, "{included} files are included");
}
