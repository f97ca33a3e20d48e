//! Imports between the modules of a folder have one direction: no module imports,
//! through others or directly, a module that imports it. This holds for every folder
//! of every crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The names from the root of a crate to a module or an item.
type ItemPath = Vec<String>;

/// The imports between sibling modules, with one source file for each.
type Imports = BTreeMap<String, BTreeMap<String, PathBuf>>;

/// Returns the module path and file of each module of a crate, tests left out.
fn modules(source: &Path) -> BTreeMap<ItemPath, PathBuf> {
    let mut modules = BTreeMap::new();
    let mut folders = vec![(source.to_owned(), ItemPath::new())];
    while let Some((folder, path)) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let file = entry.unwrap().path();
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            if name == "tests" {
                continue;
            }
            let mut path = path.clone();
            if file.is_dir() {
                path.push(name);
                folders.push((file, path));
            } else if file.extension().is_some_and(|extension| extension == "rs") {
                if !["mod", "lib", "main"].contains(&&*name) {
                    path.push(name);
                }
                modules.insert(path, file);
            }
        }
    }
    modules
}

/// Returns a source without comments and without its test module, which comes last.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines();
    let lines = lines.map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// Splits a text at commas outside of braces.
fn list_items(text: &str) -> Vec<&str> {
    let (mut items, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    items
}

/// Returns the length of a list in braces, without the braces.
fn list_length(text: &str) -> usize {
    let mut depth = 1;
    let end = text.find(|character: char| {
        depth += i32::from(character == '{') - i32::from(character == '}');
        depth == 0
    });
    end.unwrap_or(text.len())
}

/// Adds all paths that a text begins with: `a::b`, or `a::{b, c::d}`.
fn add_paths(text: &str, prefix: &[String], paths: &mut Vec<ItemPath>) {
    let text = text.trim_start();
    if let Some(list) = text.strip_prefix('{') {
        for item in list_items(&list[..list_length(list)]) {
            add_paths(item, prefix, paths);
        }
        return;
    }
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let end = text.find(|character| !is_part(character));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let mut path = prefix.to_vec();
    if !name.is_empty() {
        path.push(name.to_owned());
    }
    match rest.strip_prefix("::") {
        Some(rest) if !name.is_empty() => add_paths(rest, &path, paths),
        _ => paths.push(path),
    }
}

/// Returns all paths of a source that begin with `crate`, `self` or `super`, from the
/// root of the crate.
fn imported_paths(code: &str, module: &[String]) -> Vec<ItemPath> {
    let mut relative = Vec::new();
    for keyword in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(keyword) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                add_paths(&code[at..], &[], &mut relative);
            }
        }
    }
    let absolute = relative.into_iter().map(|path| {
        let mut names = path.iter().peekable();
        let mut absolute = match names.next_if(|name| *name == "crate") {
            Some(_) => ItemPath::new(),
            None => module.to_vec(),
        };
        while let Some(name) = names.next_if(|name| ["self", "super"].contains(&name.as_str())) {
            if name == "super" {
                absolute.pop();
            }
        }
        absolute.extend(names.cloned());
        absolute
    });
    absolute.collect()
}

/// Returns the imports between siblings for each folder of a crate.
fn imports_of_folders(modules: &BTreeMap<ItemPath, PathBuf>) -> BTreeMap<ItemPath, Imports> {
    let prefixes: BTreeSet<&[String]> = modules
        .keys()
        .flat_map(|path| (1..=path.len()).map(|length| &path[..length]))
        .collect();
    let mut folders: BTreeMap<ItemPath, Imports> = BTreeMap::new();
    for (module, file) in modules {
        let code = code(&fs::read_to_string(file).unwrap());
        for path in imported_paths(&code, module) {
            let shared = module.iter().zip(&path).take_while(|(a, b)| a == b).count();
            if shared < module.len() && shared < path.len() && prefixes.contains(&path[..=shared]) {
                let folder = folders.entry(module[..shared].to_vec()).or_default();
                let imports = folder.entry(module[shared].clone()).or_default();
                imports.insert(path[shared].clone(), file.clone());
            }
        }
    }
    folders
}

/// Keeps the modules that are part of a circle, or between two circles: repeatedly
/// removes modules that import no other one or that no other one imports.
fn circles(mut imports: Imports) -> Imports {
    loop {
        let count = imports.len();
        let names: BTreeSet<String> = imports.keys().cloned().collect();
        for imported in imports.values_mut() {
            imported.retain(|name, _| names.contains(name));
        }
        let targets = imports.values().flat_map(BTreeMap::keys).cloned();
        let targets: BTreeSet<String> = targets.collect();
        imports.retain(|name, imported| !imported.is_empty() && targets.contains(name));
        if imports.len() == count {
            return imports;
        }
    }
}

#[test]
fn no_folder_has_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut import_count, mut found) = (0, String::new());
    for package in fs::read_dir(crates).unwrap() {
        let source = package.unwrap().path().join("src");
        for imports in imports_of_folders(&modules(&source)).into_values() {
            import_count += imports.values().map(BTreeMap::len).sum::<usize>();
            for (module, imported) in circles(imports) {
                for (name, file) in imported {
                    found += &format!("{module} imports {name} ({})\n", file.display());
                }
            }
        }
    }
    assert!(import_count > 500, "{import_count} imports");
    assert!(found.is_empty(), "circles of imports:\n{found}");
}

#[test]
fn paths_are_resolved() {
    let module = ["a", "b"].map(String::from);
    let source = "use crate::{one, two::{Two, three}};\nsuper::c::f();\nuse super::super::d;\n\
                  use other_crate::no; self::child::g();";
    let mut paths: Vec<String> = imported_paths(source, &module)
        .into_iter()
        .map(|path| path.join("::"))
        .collect();
    paths.sort();
    let expected = [
        "a::b::child::g",
        "a::c::f",
        "d",
        "one",
        "two::Two",
        "two::three",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn a_circle_is_noticed() {
    let imports = |lines: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (module, imported) in lines {
            let all = imports.entry((*module).to_owned()).or_default();
            all.insert((*imported).to_owned(), PathBuf::new());
        }
        imports
    };
    assert!(circles(imports(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let circle = circles(imports(&[
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
        ("c", "d"),
        ("e", "a"),
    ]));
    assert_eq!(circle.len(), 3);
}
