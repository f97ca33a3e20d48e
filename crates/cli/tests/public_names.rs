//! Names that users see: the root exports few, each public type is exported, and
//! documents import by name or from the prelude.

use std::collections::BTreeSet;
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

/// Returns the file of a top-level module of the library.
fn module_file(source: &Path, module: &str) -> PathBuf {
    let folder_file = source.join(module).join("mod.rs");
    if folder_file.exists() {
        return folder_file;
    }
    source.join(format!("{module}.rs"))
}

/// Public in a private module, only for signatures: a trait's bound, and an
/// argument that only the library creates.
const IN_SIGNATURES: [&str; 2] = ["Parts", "Cookies"];

#[test]
fn public_types_are_exported_where_users_find_them() {
    let source = root().join("crates/core/src");
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let (exports, _) = lib.split_once("pub mod prelude").unwrap();
    let root_names = exported(exports);
    let count = root_names.len();
    assert!(count <= MAX_ROOT_NAMES, "the root exports {count} names");
    let author = fs::read_to_string(source.join("author.rs")).unwrap();
    let author_names = exported(&author);
    let public_modules = modules(&lib, "pub mod ");
    let sources = files(&source, ".rs");
    let mut checked = 0;
    for path in &sources {
        let inner = path.strip_prefix(&source).unwrap().to_str().unwrap();
        // Modules below these are private to an engine or to the library.
        let private = ["id_map", "simd", "table/tests", "policy/tests"];
        let is_contract = ["mod.rs", "spec.rs", "options.rs", "adapter.rs"];
        let in_engine = inner.starts_with("engine/")
            && !is_contract
                .iter()
                .any(|name| inner == format!("engine/{name}"));
        if in_engine || private.iter().any(|folder| inner.starts_with(folder)) {
            continue;
        }
        let module = inner.split(['/', '.']).next().unwrap();
        let file = module_file(&source, module);
        let module_text = fs::read_to_string(&file).unwrap_or_default();
        let module_names = exported(&module_text);
        let is_public_file = *path == file || inner == "engine/adapter.rs";
        for name in public_types(&fs::read_to_string(path).unwrap()) {
            checked += 1;
            let is_in_public_module =
                public_modules.contains(module) && (is_public_file || module_names.contains(name));
            assert!(
                is_in_public_module
                    || root_names.contains(name)
                    || author_names.contains(name)
                    || IN_SIGNATURES.contains(&name),
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
        let lib = root().join(format!("crates/{folder}/src/lib.rs"));
        let lib = fs::read_to_string(lib).unwrap();
        let (root_names, _) = lib.split_once("pub mod prelude").unwrap_or((&lib, ""));
        let names: BTreeSet<&str> = (exported(root_names).into_iter())
            .map(|name| name.rsplit(" as ").next().unwrap())
            .collect();
        let listed: BTreeSet<&str> = listing
            .lines()
            .filter_map(|line| line.strip_prefix("Root: "))
            .flat_map(|line| line.split('`').skip(1).step_by(2))
            .collect();
        assert_eq!(listed, names, "docs/names.md: root names of {package}");
        let public_modules = modules(&lib, "pub mod ");
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
