//! The datapath compared with the reference interpreter, in random worlds.
//!
//! `CLASSYARD_SEEDS=n` runs n times as many worlds, with further seeds, and
//! `CLASSYARD_SEEDS=1..n` only the further ones. To compare more packets: `cargo run
//! --release -p classyard-reference --example equivalence`.

// The summary is printed.
#![allow(clippy::print_stdout)]

use std::ops::Range;

use classyard_conformance::random::{ByteDice, Dice, SeededDice};
use classyard_reference::equivalence::{Options, Summary, run, run_seed};

/// The number of worlds in each run of these tests.
const WORLDS: u64 = 1500;

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
    let worlds = seeds().start * WORLDS..seeds().end * WORLDS;
    let middle = worlds.start + (worlds.end - worlds.start) / 2;
    let total = std::thread::scope(|threads| {
        let second = threads.spawn(|| summary_of(middle..worlds.end));
        let mut total = summary_of(worlds.start..middle);
        total.add(&second.join().expect("the worlds agree"));
        total
    });
    println!("{total:#?}");
    // Worlds with little activity would agree, too.
    assert!(total.events > total.packets / 3, "packets come out");
    assert!(total.refused.len() >= 20, "messages are refused");
    assert_eq!(total.removed.len(), 6, "entries go for every reason");
    assert!(total.entries > 50 && total.banded > 5);
    // Groups and lists reach the limits of one packet's work.
    for code in [
        "GMFC_CHAINING_UNSUPPORTED",
        "GMFC_OUT_OF_BUCKETS",
        "BAC_TOO_MANY",
    ] {
        assert!(total.refused.contains_key(code), "{code}");
    }
    assert!(total.limited_actions > 50 && total.limited_copies > 50);
}

/// Runs worlds, and panics at the first difference.
fn summary_of(worlds: Range<u64>) -> Summary {
    let mut total = Summary::default();
    for world in worlds {
        match run_seed(world, &Options::default()) {
            Ok(summary) => total.add(&summary),
            Err(difference) => panic!("{difference}"),
        }
    }
    total
}

/// The worlds of the fuzz target `changes`, from random bytes.
#[test]
fn bytes_make_worlds() {
    let mut dice = SeededDice::new(1);
    let mut total = Summary::default();
    for _ in 0..400 {
        let bytes: Vec<u8> = (0..200).flat_map(|_| dice.word().to_le_bytes()).collect();
        match run(&mut ByteDice::new(&bytes), &Options::small()) {
            Ok(summary) => total.add(&summary),
            Err(difference) => panic!("{difference}"),
        }
    }
    println!("{total:#?}");
    assert!(
        total.packets > 4_000 && total.messages > 4_000,
        "bytes are left for them"
    );
}
