//! Comparisons of our sets with sets that ClassBench's own generator made from the same
//! parameter files. This repository does not contain the originals. The tests look for
//! a folder `shared/classbench` above it, and skip with a message if there is none.

#![allow(clippy::print_stderr)] // tests that are skipped say so

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use classyard::{NoProgress, Policy};

use super::super::compare::{Comparison, Summary};
use super::*;
use crate::diagnostic::ReadOptions;

/// Returns the folder of the originals, if it exists.
fn originals() -> Option<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/classbench"))
        .find(|folder| folder.is_dir())
}

/// Returns the original sets: profile from the parameter file, name and size, rules.
fn original_sets() -> Vec<(Arc<Profile>, String, RuleSet)> {
    let Some(folder) = originals() else {
        eprintln!("skipped: no folder shared/classbench above this crate");
        return Vec::new();
    };
    let mut sets = Vec::new();
    let list = std::fs::read_dir(folder.join("rulesets")).unwrap();
    let mut files: Vec<PathBuf> = list.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files {
        let file = path.file_name().unwrap().to_str().unwrap();
        let name = file.strip_suffix(".rules.xz").unwrap();
        let family = name.split('_').next().unwrap();
        let Ok(output) = Command::new("xz").arg("-dc").arg(&path).output() else {
            eprintln!("skipped: no program `xz` to unpack {name}");
            continue;
        };
        let text = String::from_utf8(output.stdout).unwrap();
        let seed = folder.join("seeds").join(format!("{family}_seed"));
        let seed = SeedFile::read(&seed, &ReadOptions::default())
            .unwrap()
            .value;
        let profile = Profile::from_seed_file(family, &seed).unwrap();
        sets.push((Arc::new(profile), name.to_owned(), parse(&text)));
    }
    sets
}

/// A minimal reader; tests of the generator must not depend on the real reader.
fn parse(text: &str) -> RuleSet {
    let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
    let mut seen = std::collections::HashSet::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.trim_start_matches('@').split('\t').collect();
        let prefix = |text: &str| {
            let (address, length) = text.split_once('/').unwrap();
            let address: std::net::Ipv4Addr = address.parse().unwrap();
            FieldMatch::Prefix {
                value: address.to_bits().into(),
                length: length.parse().unwrap(),
            }
        };
        let range = |text: &str| {
            let (low, high) = text.split_once(" : ").unwrap();
            FieldMatch::Range {
                low: low.parse().unwrap(),
                high: high.parse().unwrap(),
            }
        };
        let protocol = match fields[4].split_once('/').unwrap() {
            (_, "0x00") => FieldMatch::Any,
            (number, _) => FieldMatch::Exact(u128::from_str_radix(&number[2..], 16).unwrap()),
        };
        let matches = [
            prefix(fields[0]),
            prefix(fields[1]),
            range(fields[2]),
            range(fields[3]),
            protocol,
        ];
        // Rules that differ only in their flags are duplicates for us.
        if seen.insert(matches) {
            let id = RuleId::from_index(rules.len());
            let action = ActionId(0);
            rules.add(id, Priority(1), action, &matches).unwrap();
        }
    }
    rules
}

fn ours(profile: &Arc<Profile>, rules: usize, seed: u64) -> Policy {
    let mut recipe = Recipe::new(Family::Ipv4(Arc::clone(profile)), rules, seed);
    recipe.config.smoothing = 2;
    recipe.config.address_scope = 0.5;
    recipe.config.port_scope = -0.1;
    generate(&recipe, &mut NoProgress).unwrap()
}

#[test]
fn our_sets_are_like_the_originals() {
    for (profile, name, original) in original_sets() {
        if original.len() > 20_000 {
            continue;
        }
        let small = original.len() < 2000;
        let headers = if small { 5000 } else { 1000 };
        let policy = ours(&profile, original.len(), 1);
        let comparison = Comparison {
            names: [name.clone(), "ours".to_owned()],
            summaries: [
                Summary::of(&original, headers, 1),
                Summary::of(&policy.parts()[0], headers, 1),
            ],
        };
        let [theirs, ours] = &comparison.summaries;
        // Two sets from one file differ by chance; the smaller the sets, the larger the
        // difference.
        let close = |a: f64, b: f64, within: f64| a / b < within && b / a < within;
        let count = |a: usize, b: usize, within: f64| close(a as f64, b as f64, within);
        let within = if small { 1.25 } else { 1.12 };
        assert!(count(theirs.tuples, ours.tuples, within), "{comparison}");
        assert!(
            count(theirs.address_pairs, ours.address_pairs, 1.2),
            "{comparison}"
        );
        assert!(count(theirs.sources, ours.sources, 2.2), "{comparison}");
        assert!(
            count(theirs.destinations, ours.destinations, 1.6),
            "{comparison}"
        );
        assert!(close(theirs.matches, ours.matches, 2.0), "{comparison}");
        let [(_, lengths), (_, ports), (_, protocols)] = comparison.distances();
        assert!(lengths < if small { 0.3 } else { 0.12 }, "{comparison}");
        assert!(ports < 0.08 && protocols < 0.08, "{comparison}");
    }
}
