//! The datapath against the reference interpreter, in random worlds.
//!
//! `CLASSYARD_SEEDS=n` runs n times as many worlds, with other seeds, and
//! `CLASSYARD_SEEDS=1..n` those that do not run by default. For as many packets as one
//! has time for: `cargo run --release -p classyard-reference --example equivalence`.

// What was compared is printed.
#![allow(clippy::print_stdout)]

use std::ops::Range;

use classyard_reference::equivalence::{Options, Summary, run_seed};

/// Worlds of each run of these tests.
const WORLDS: u64 = 300;

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("CLASSYARD_SEEDS") else {
        return 0..1;
    };
    let range = match text.split_once("..") {
        Some((first, end)) => first.parse().ok().zip(end.parse().ok()),
        None => text.parse().ok().map(|end| (0, end)),
    };
    let Some((first, end)) = range else {
        panic!("CLASSYARD_SEEDS is `{text}`; expected a number, or a range such as 1..3");
    };
    first..end
}

#[test]
fn the_datapath_does_what_the_reference_does() {
    let mut all = Summary::default();
    for number in seeds() {
        for world in 0..WORLDS {
            match run_seed(number * WORLDS + world, &Options::default()) {
                Ok(summary) => all.add(&summary),
                Err(found) => panic!("{found}"),
            }
        }
    }
    println!("{all:#?}");
}
