//! Replays the committed corpus through its targets, and checks that every target has a
//! corpus, a binary and an entry.

use std::fs;
use std::path::{Path, PathBuf};

use classyard_fuzz::{TARGETS, Target};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn corpus(target: &Target) -> Vec<PathBuf> {
    let folder = here().join("corpus").join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_target_survives_its_corpus() {
    for target in TARGETS {
        let files = corpus(target);
        assert!(files.len() >= 3, "corpus/{} is too small", target.name);
        for file in &files {
            let data = fs::read(file).unwrap();
            let run = std::panic::AssertUnwindSafe(|| (target.run)(&data));
            let result = std::panic::catch_unwind(run);
            assert!(result.is_ok(), "{}: {}", target.name, file.display());
        }
        println!("{}: {} files", target.name, files.len());
    }
}

#[test]
fn every_target_survives_the_corpus_of_the_others_and_no_bytes() {
    for target in TARGETS {
        (target.run)(&[]);
        (target.run)(&[0]);
        (target.run)(&[0xff; 300]);
        for other in TARGETS.iter().filter(|other| other.name != target.name) {
            for file in corpus(other).iter().take(5) {
                (target.run)(&fs::read(file).unwrap());
            }
        }
    }
}

#[test]
fn every_target_has_a_binary_an_entry_and_a_summary() {
    let manifest = fs::read_to_string(here().join("Cargo.toml")).unwrap();
    for Target { name, summary, .. } in TARGETS {
        assert!(summary.len() > 10, "{name}: no summary");
        let binary = fs::read_to_string(here().join(format!("src/bin/{name}.rs"))).unwrap();
        let call = format!("classyard_fuzz::target!(classyard_fuzz::{name});");
        assert!(binary.contains(&call), "src/bin/{name}.rs does not call it");
        let entry = format!("name = \"{name}\"\npath = \"src/bin/{name}.rs\"");
        assert!(manifest.contains(&entry), "no entry for {name}");
    }
    let binaries = fs::read_dir(here().join("src/bin")).unwrap().count();
    assert_eq!(binaries, TARGETS.len(), "a binary without a target");
    let corpora = fs::read_dir(here().join("corpus")).unwrap().count();
    assert_eq!(corpora, TARGETS.len(), "a corpus without a target");
}
