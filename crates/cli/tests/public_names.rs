//! Names that users meet: whatever a public module defines is exported from the
//! root, and documents import by name or from the prelude.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                files(&path, endings, found);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

/// The names in a `use` list, without nested braces.
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

/// What is public in a public module and for the few who go there: the words of
/// a layout, the traits that engines are written against, the insides of a live
/// table's replicas.
const IN_MODULES: [&str; 9] = [
    "Algorithm",
    "Updates",
    "Family",
    "DynamicFamily",
    "AcceptedRules",
    "RuleLog",
    "Parts",
    "InstallPlan",
    "Cookies",
];

#[test]
fn public_types_are_exported_from_the_root() {
    let source = root().join("crates/core/src");
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let (exports, _) = lib.split_once("pub mod prelude").unwrap();
    let exported = exported(exports);
    let mut sources = Vec::new();
    files(&source, &[".rs"], &mut sources);
    let mut found = 0;
    for path in &sources {
        let inner = path.strip_prefix(&source).unwrap().to_str().unwrap();
        // What is below these is private to an engine, or to the library.
        let private = ["engine/", "id_map", "simd", "table/tests", "policy/tests"];
        let is_contract = ["mod.rs", "spec.rs", "options.rs", "adapter.rs"];
        let in_engine = inner.starts_with("engine/")
            && !is_contract
                .iter()
                .any(|name| inner == format!("engine/{name}"));
        if in_engine || private[1..].iter().any(|folder| inner.starts_with(folder)) {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        for line in text.lines() {
            let Some(item) = ["pub struct ", "pub enum ", "pub trait "]
                .iter()
                .find_map(|start| line.strip_prefix(start))
            else {
                continue;
            };
            let end = item.find(|c: char| !c.is_alphanumeric() && c != '_');
            let name = &item[..end.unwrap_or(item.len())];
            found += 1;
            assert!(
                exported.contains(name) || IN_MODULES.contains(&name),
                "{inner}: `{name}` is public and not exported from the root"
            );
        }
    }
    assert!(found > 80, "only {found} public types were found");
}

/// `Table`, `Change` and `Field` mean something else in most programs.
#[test]
fn nothing_imports_all_names_of_the_library() {
    let mut documents = Vec::new();
    files(&root().join("docs"), &[".md"], &mut documents);
    files(&root().join("crates/core/src"), &[".rs"], &mut documents);
    files(
        &root().join("crates/workload/src"),
        &[".rs"],
        &mut documents,
    );
    files(&root().join("crates/cli/src"), &[".rs"], &mut documents);
    files(
        &root().join("crates/cli/examples"),
        &[".rs"],
        &mut documents,
    );
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
