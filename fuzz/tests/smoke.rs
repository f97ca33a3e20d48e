//! A short run of every target on inputs that are mutated at random from its corpus. It
//! needs no fuzzer: every run has the same inputs, none chosen by coverage. `FUZZ_RUNS`
//! sets the number of inputs (default 400 for each reader).

use std::fs;
use std::path::Path;

use classyard_fuzz::{TARGETS, Target};

/// A random number generator: xorshift.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.roll() >> 16).unwrap_or(usize::MAX) % limit.max(1)
    }
}

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Mutates an input: bits, bytes, longer ranges, a piece of another input.
fn change(data: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    const ODD: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, b'\n', b' ', b'9'];
    let at = dice.below(data.len());
    let length = 1 + dice.below(16);
    match dice.below(7) {
        0 if !data.is_empty() => data[at] ^= 1 << dice.below(8),
        1 if !data.is_empty() => data[at] = ODD[dice.below(ODD.len())],
        2 => data.truncate(at),
        3 => {
            let end = data.len().min(at + length);
            data.drain(at.min(end)..end);
        }
        4 => {
            let end = data.len().min(at + length);
            let piece = data[at.min(end)..end].to_vec();
            let to = dice.below(data.len() + 1);
            data.splice(to..to, piece);
        }
        5 => {
            let from = dice.below(other.len());
            let end = other.len().min(from + 4 * length);
            let to = dice.below(data.len() + 1);
            data.splice(to..to, other[from.min(end)..end].iter().copied());
        }
        _ => {
            let bytes: Vec<u8> = (0..length).map(|_| dice.roll().to_le_bytes()[2]).collect();
            data.splice(at.min(data.len())..at.min(data.len()), bytes);
        }
    }
}

#[test]
fn every_target_survives_changed_inputs() {
    let runs = std::env::var("FUZZ_RUNS").ok();
    let runs: usize = runs.map_or(400, |text| text.parse().expect("FUZZ_RUNS is a number"));
    for target in TARGETS {
        // One input of these targets builds every engine several times.
        let runs = match target.name {
            "engines" | "masks" => runs.div_ceil(20),
            _ => runs,
        };
        let corpus = corpus(target);
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        for run in 0..runs {
            let mut data = corpus[dice.below(corpus.len())].clone();
            let other = &corpus[dice.below(corpus.len())];
            for _ in 0..=dice.below(6) {
                change(&mut data, other, &mut dice);
            }
            let call = std::panic::AssertUnwindSafe(|| (target.run)(&data));
            let result = std::panic::catch_unwind(call);
            assert!(result.is_ok(), "{}, input {run}: {data:02x?}", target.name);
        }
        println!("{}: {runs} inputs", target.name);
    }
}
