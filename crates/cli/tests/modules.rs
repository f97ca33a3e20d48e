//! Imports between the modules of a folder have one direction, in every folder of
//! every crate. The drawings in `docs/design.md` show them, the lowest module first.
//! This test reads all paths of the sources. It fails if a module imports, through
//! others or directly, a module that imports it, or if drawing and sources differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

mod project;

use project::{files, root};

/// The names from the root of a crate to a module or an item.
type ItemPath = Vec<String>;

/// The imports between sibling modules, with one source file for each.
type Imports = BTreeMap<String, BTreeMap<String, PathBuf>>;

/// Returns the module path and file of each module of a crate, tests left out.
fn modules(source: &Path) -> BTreeMap<ItemPath, PathBuf> {
    let mut modules = BTreeMap::new();
    for file in files(source, ".rs") {
        let inner = file.strip_prefix(source).unwrap().with_extension("");
        let names = inner.iter().map(|name| name.to_str().unwrap().to_owned());
        let mut path: ItemPath = names.collect();
        path.pop_if(|name| ["mod", "lib", "main"].contains(&name.as_str()));
        if !path.iter().any(|name| name == "tests") {
            modules.insert(path, file);
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

/// Checks that a folder of a crate has the modules and imports of a drawing.
#[track_caller]
fn agree(title: &str, package: &str, folder: &[&str]) {
    let source = root().join("crates").join(package).join("src");
    let modules = modules(&source);
    let folder: ItemPath = folder.iter().map(|name| (*name).to_owned()).collect();
    let inside = modules
        .keys()
        .filter_map(|path| path.strip_prefix(&*folder));
    let names: BTreeSet<&String> = inside.filter_map(<[String]>::first).collect();
    let imports = imports_of_folders(&modules).remove(&folder).unwrap();
    let imports_of = |module: &String| -> BTreeSet<String> {
        let imported = imports.get(module).into_iter().flat_map(BTreeMap::keys);
        imported.cloned().collect()
    };
    let lines = names.iter().map(|module| {
        let imported = Vec::from_iter(imports_of(module));
        format!("{module} -> {}\n", imported.join(", "))
    });
    let expected: String = lines.collect();
    let drawn = drawing(title);
    let drawn_names: BTreeSet<&String> = drawn.iter().map(|line| &line.0).collect();
    assert_eq!(drawn_names.len(), drawn.len(), "a module is drawn twice");
    assert_eq!(drawn_names, names, "the sources say:\n{expected}");
    let mut below = BTreeSet::new();
    for (module, imported) in &drawn {
        let real = imports_of(module);
        let upward: Vec<&String> = real.difference(&below).collect();
        assert!(
            upward.is_empty(),
            "`{module}` imports {upward:?}, drawn at or above it"
        );
        assert_eq!(&real, imported, "`{module}`; the sources say:\n{expected}");
        below.insert(module.clone());
    }
}

#[test]
fn the_library_is_as_drawn() {
    agree("Modules of the library", "core", &[]);
    agree("Model", "core", &["model"]);
    agree("Budget", "core", &["budget"]);
    agree("Cost", "core", &["cost"]);
    agree("Contract", "core", &["contract"]);
    agree("Parts", "core", &["parts"]);
    agree("Engines", "core", &["engines"]);
}

#[test]
fn the_forest_is_as_drawn() {
    agree("Modules of the forest", "core", &["engines", "forest"]);
}

#[test]
fn the_datapath_is_as_drawn() {
    agree("Modules of the datapath", "datapath", &[]);
}

#[test]
fn the_pipeline_is_as_drawn() {
    agree("Modules of the pipeline", "datapath", &["pipeline"]);
    agree(
        "Processing of packets in tables",
        "datapath",
        &["pipeline", "run"],
    );
    agree(
        "Flow caches of the pipeline",
        "datapath",
        &["pipeline", "cached"],
    );
    agree(
        "Control of the pipeline",
        "datapath",
        &["pipeline", "control"],
    );
    agree("The store of megaflows", "datapath", &["cache", "store"]);
}

#[test]
fn the_text_readers_are_as_drawn() {
    agree("Modules of the text readers", "text", &[]);
}

#[test]
fn openflow_is_as_drawn() {
    agree("Modules of OpenFlow", "openflow", &[]);
    agree("The agent", "openflow", &["agent"]);
}

#[test]
fn the_ports_are_as_drawn() {
    agree("Modules of the ports", "ports", &[]);
    agree("System calls", "ports", &["sys"]);
}

#[test]
fn the_switch_is_as_drawn() {
    agree("Modules of the switch", "switch", &[]);
    agree("Modules of workers", "switch", &["worker"]);
    agree("Modules of the agent's thread", "switch", &["agent"]);
    agree("Modules of the configuration", "switch", &["config"]);
    agree("Modules of the control socket", "switch", &["control"]);
}

#[test]
fn the_reference_is_as_drawn() {
    agree("Modules of the reference", "reference", &[]);
}

#[test]
fn the_workload_is_as_drawn() {
    agree("Modules of the workload", "workload", &[]);
}

#[test]
fn the_test_kit_is_as_drawn() {
    agree("Modules of the test kit", "conformance", &[]);
}

#[test]
fn the_report_is_as_drawn() {
    agree("Modules of the report", "report", &[]);
}

#[test]
fn the_lab_is_as_drawn() {
    agree("Modules of the lab", "lab", &[]);
    agree("Modules of the benchmark", "lab", &["bench"]);
    agree("Modules of the reproductions", "lab", &["reproduce"]);
}

#[test]
fn the_commands_are_as_drawn() {
    agree("Modules of the command line", "cli", &[]);
    agree("Commands", "cli", &["commands"]);
}

/// Returns the crates of this workspace that a crate depends on, tests aside.
fn dependencies(package: &str) -> BTreeSet<String> {
    let manifest = root().join("crates").join(package).join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let (_, section) = manifest.split_once("\n[dependencies]\n").unwrap();
    let section = section.split("\n[").next().unwrap();
    let names = section
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next());
    let names = names.filter_map(|name| match name {
        "classyard" => Some("core".to_owned()),
        name => name.strip_prefix("classyard-").map(str::to_owned),
    });
    names.collect()
}

#[test]
fn the_crates_are_as_drawn() {
    let drawn = drawing("Crates");
    let packages = fs::read_dir(root().join("crates")).unwrap();
    let packages = packages.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let drawn_names: BTreeSet<String> = drawn.iter().map(|line| line.0.clone()).collect();
    assert_eq!(drawn_names, packages.collect());
    let mut below = BTreeSet::new();
    for (package, imported) in &drawn {
        assert_eq!(
            &dependencies(package),
            imported,
            "dependencies of {package}"
        );
        assert!(imported.is_subset(&below), "{package} is drawn too low");
        below.insert(package.clone());
    }
}

#[test]
fn no_folder_has_a_circle() {
    let (mut import_count, mut found) = (0, String::new());
    for package in fs::read_dir(root().join("crates")).unwrap() {
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

/// `.ci/run` compiles only the library for aarch64.
#[test]
fn only_the_library_has_code_for_a_processor() {
    let (mut files_of_library, mut others) = (0, Vec::new());
    for package in fs::read_dir(root().join("crates")).unwrap() {
        let package = package.unwrap();
        for file in modules(&package.path().join("src")).into_values() {
            let source = fs::read_to_string(&file).unwrap();
            if !source.contains("target_arch") {
                continue;
            }
            if package.file_name() == "core" {
                files_of_library += 1;
            } else {
                others.push(file);
            }
        }
    }
    assert!(files_of_library >= 2, "{files_of_library} files");
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn paths_are_resolved() {
    let module = ["a", "b"].map(String::from);
    let source = "use crate::{one, two::{Two, three}};\nsuper::c::f();\nuse super::super::d;\n\
                  use other_crate::no; self::child::g();\nlet x = crate::four::f();\n\
                  pub(in crate::five) fn f();\nuse super::six::{self, Six};";
    let mut paths: Vec<String> = imported_paths(source, &module)
        .into_iter()
        .map(|path| path.join("::"))
        .collect();
    paths.sort();
    let expected = [
        "a::b::child::g",
        "a::c::f",
        "a::six::Six",
        "a::six::self",
        "d",
        "five",
        "four::f",
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
        for path in modules(&package.join("src")).into_values() {
            let code = code(&fs::read_to_string(&path).unwrap());
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
