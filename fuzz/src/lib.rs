//! Fuzz targets: what must hold for any bytes at all.
//!
//! A target is a function from bytes that panics when something is wrong, and
//! a line in [`TARGETS`]; a two-line binary hands it to libFuzzer:
//!
//! ```text
//! cargo +nightly fuzz run NAME              look for bytes that break it
//! cargo test -p classyard-fuzz              replay the corpus, on stable Rust
//! cargo run -p classyard-fuzz --bin NAME FILE …     replay some files
//! ```
//!
//! To add one: the function, its line, the binary (copy one) and its entry in
//! `Cargo.toml`, a few files in `corpus/NAME`. Tests fail if one is missing.

use std::path::Path;

mod engines;

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of the binary and of the folder of its corpus.
    pub name: &'static str,
    /// What must hold.
    pub summary: &'static str,
    /// The body. Panics when it does not hold.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "engines",
        summary: "every engine answers like the oracle, over any rules, headers and updates",
        run: engines,
    },
    Target {
        name: "masks",
        summary: "every engine's masks are right, for any rules and headers",
        run: masks,
    },
];

/// All registered engines against the oracle: bytes choose the schema, rules,
/// updates and headers.
pub fn engines(data: &[u8]) {
    engines::stream(data);
}

/// Masked lookups of all registered engines: bytes choose the schema, rules,
/// headers and candidates.
pub fn masks(data: &[u8]) {
    engines::masks(data);
}

/// What a target's binary does when it is built without libFuzzer: replays the
/// files that are named on the command line.
///
/// # Panics
/// When a file cannot be read, or the target finds something.
pub fn replay(target: fn(&[u8])) {
    for path in std::env::args_os().skip(1) {
        let path = Path::new(&path);
        let data = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        target(&data);
        println!("{}: nothing found", path.display());
    }
}

/// The binary of a target: libFuzzer's when it is built by cargo-fuzz, a
/// replay of files otherwise.
#[macro_export]
macro_rules! target {
    ($target:path) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $target(data));

        #[cfg(not(fuzzing))]
        fn main() {
            $crate::replay($target);
        }
    };
}
