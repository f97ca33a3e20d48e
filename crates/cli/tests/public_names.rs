//! Names that users see: the root exports few, each public type is exported, and
//! documents import by name or from the prelude.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

mod project;

use project::{files, root};

/// Returns the names in a `use` list, without nested braces.
fn exported(lib: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for part in lib.split("\npub use ").skip(1) {
        let (list, _) = part.split_once(';').unwrap();
        let list = list.rsplit_once("::{").map_or_else(
            || list.rsplit("::").next().unwrap(),
            |(_, list)| list.trim_end_matches('}'),
        );
        names.extend(
            list.split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty()),
        );
    }
    names
}

/// The maximum number of names that the root exports.
const MAX_ROOT_NAMES: usize = 50;

/// Returns the modules that `lib.rs` declares with `declaration`, which is `pub mod
/// ` or `mod `.
fn modules<'a>(lib: &'a str, declaration: &str) -> BTreeSet<&'a str> {
    lib.lines()
        .filter_map(|line| line.strip_prefix(declaration)?.split([';', ' ']).next())
        .collect()
}

/// Returns the file of a module in a folder, if it exists.
fn module_file(folder: &Path, module: &str) -> Option<PathBuf> {
    let files = [
        folder.join(module).join("mod.rs"),
        folder.join(format!("{module}.rs")),
    ];
    files.into_iter().find(|file| file.exists())
}

/// Returns the public modules of a crate with their files: those that `lib.rs` declares,
/// and those that it exports from private modules.
fn public_modules(source: &Path, lib: &str) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for module in modules(lib, "pub mod ") {
        // The modules in `lib.rs` itself have no file of their own.
        let file = module_file(source, module).unwrap_or_else(|| source.join("lib.rs"));
        found.insert(module.to_owned(), file);
    }
    for statement in lib.split("\npub use ").skip(1) {
        let (statement, _) = statement.split_once(';').unwrap();
        let (room, _) = statement.split_once("::").unwrap();
        let list = format!("\npub use {statement};");
        for name in exported(&list) {
            if let Some(file) = module_file(&source.join(room), name) {
                found.insert(name.to_owned(), file);
            }
        }
    }
    found
}

/// Public in a private module, only for signatures: a trait's bound, and an
/// argument that only the library creates.
const IN_SIGNATURES: [&str; 2] = ["Parts", "Labels"];

#[test]
fn public_types_are_exported_where_users_find_them() {
    let source = root().join("crates/core/src");
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let (exports, _) = lib.split_once("pub mod prelude").unwrap();
    let public_modules = public_modules(&source, exports);
    let mut root_names = exported(exports);
    root_names.retain(|name| !public_modules.contains_key(*name));
    let count = root_names.len();
    assert!(count <= MAX_ROOT_NAMES, "the root exports {count} names");
    let mut names: BTreeSet<String> = root_names.into_iter().map(str::to_owned).collect();
    for module in ["author", "engine"] {
        let text = fs::read_to_string(&public_modules[module]).unwrap();
        names.extend(exported(&text).into_iter().map(str::to_owned));
    }
    let mut checked = 0;
    for path in files(&source, ".rs") {
        let inner = path.strip_prefix(&source).unwrap().to_str().unwrap();
        // Modules below these are private to an engine or to the library.
        let private = [
            "engines/",
            "parts/bit_vectors",
            "parts/id_map",
            "parts/range_tree",
            "parts/ranked",
            "parts/simd",
            "parts/tree",
            "parts/tuple_space",
            "table/tests",
            "policy/tests",
        ];
        if private.iter().any(|folder| inner.starts_with(folder)) {
            continue;
        }
        let folder = path.parent().unwrap();
        let mut module = public_modules.values().filter(|file| {
            let is_folder = file.ends_with("mod.rs");
            **file == path || is_folder && folder.starts_with(file.parent().unwrap())
        });
        let module = module.next();
        let module_text = module.map(|file| fs::read_to_string(file).unwrap());
        let module_names = exported(module_text.as_deref().unwrap_or_default());
        let is_public_file = module == Some(&path);
        for name in public_types(&fs::read_to_string(&path).unwrap()) {
            checked += 1;
            assert!(
                is_public_file
                    || module_names.contains(name)
                    || names.contains(name)
                    || IN_SIGNATURES.contains(&name)
                    || inner.starts_with("contract/adapter"),
                "{inner}: `{name}` is public, and neither the root, `author` nor a public \
                 module exports it"
            );
        }
    }
    assert!(checked > 80, "only {checked} public types were found");
}

/// Returns the names of public types and traits that a file defines.
fn public_types(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let item = ["pub struct ", "pub enum ", "pub trait "]
            .iter()
            .find_map(|start| line.strip_prefix(start))?;
        let end = item.find(|c: char| !c.is_alphanumeric() && c != '_');
        Some(&item[..end.unwrap_or(item.len())])
    })
}

#[test]
fn the_list_of_public_names_is_true() {
    let document = fs::read_to_string(root().join("docs/names.md")).unwrap();
    let mut checked = 0;
    for section in document.split("\n## `").skip(1) {
        let (package, listing) = section.split_once('`').unwrap();
        let folder = package.strip_prefix("classyard-").unwrap_or("core");
        let source = root().join(format!("crates/{folder}/src"));
        let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
        let (root_names, _) = lib.split_once("pub mod prelude").unwrap_or((&lib, ""));
        let public_modules = public_modules(&source, &lib);
        let public_modules: BTreeSet<&str> = public_modules.keys().map(String::as_str).collect();
        let names: BTreeSet<&str> = (exported(root_names).into_iter())
            .map(|name| name.rsplit(" as ").next().unwrap())
            .filter(|name| !public_modules.contains(name))
            .collect();
        let listed: BTreeSet<&str> = listing
            .lines()
            .filter_map(|line| line.strip_prefix("Root: "))
            .flat_map(|line| line.split('`').skip(1).step_by(2))
            .collect();
        assert_eq!(listed, names, "docs/names.md: root names of {package}");
        let listed: BTreeSet<&str> = listing
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        assert_eq!(
            listed, public_modules,
            "docs/names.md: modules of {package}"
        );
        checked += names.len() + public_modules.len();
    }
    assert!(checked > 100, "only {checked} names were checked");
}

/// `Table`, `Change` and `Field` have other meanings in most programs.
#[test]
fn nothing_imports_all_names_of_the_library() {
    let mut documents = files(&root().join("docs"), ".md");
    for folder in [
        "core/src",
        "workload/src",
        "report/src",
        "lab/src",
        "cli/src",
        "cli/examples",
    ] {
        documents.extend(files(&root().join("crates").join(folder), ".rs"));
    }
    documents.push(root().join("README.md"));
    assert!(documents.len() > 200);
    for path in documents {
        let text = fs::read_to_string(&path).unwrap();
        let all = concat!("use classyard::", "*;");
        assert!(
            !text.contains(all),
            "{}: imports everything",
            path.display()
        );
    }
    let lib = root().join("crates/core/src/lib.rs");
    let lib = fs::read_to_string(lib).unwrap();
    let (_, prelude) = lib.split_once("pub mod prelude").unwrap();
    let (_, list) = prelude.split_once("pub use crate::{").unwrap();
    let names: Vec<&str> = list.split([',', '}']).map(str::trim).collect();
    for generic in [
        "Table", "Change", "Field", "Reader", "Writer", "Version", "Guard", "Part",
    ] {
        assert!(!names.contains(&generic), "`{generic}` is in the prelude");
    }
}
