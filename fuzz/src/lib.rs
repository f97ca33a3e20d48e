//! Fuzz targets: properties that must hold for any bytes.
//!
//! A target is a function of bytes that panics if a property is violated, and a line in
//! [`TARGETS`]; a two-line binary passes it to libFuzzer:
//!
//! ```text
//! cargo +nightly fuzz run NAME              look for bytes that break it
//! cargo test -p classyard-fuzz              replay the corpus, on stable Rust
//! cargo run -p classyard-fuzz --bin NAME FILE …     replay some files
//! ```
//!
//! A new target needs the function, its line in [`TARGETS`], the binary (copy one) and
//! its entry in `Cargo.toml`, and a few files in `corpus/NAME`. Tests fail if one is
//! missing.

use std::path::Path;

use classyard_workload::formats::RuleFormat;

mod changes;
mod configs;
mod engines;
mod frames;
mod openflow;
mod pipelines;
mod readers;

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of the binary and of the folder of its corpus.
    pub name: &'static str,
    /// The property that must hold.
    pub summary: &'static str,
    /// The body. Panics if the property is violated.
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
    Target {
        name: "classbench",
        summary: "ClassBench filter sets: no panic, and what is read is written and read the same",
        run: classbench,
    },
    Target {
        name: "rules",
        summary: "our rule format: no panic, and what is read is written and read the same",
        run: rules,
    },
    Target {
        name: "configs",
        summary: "configurations of firewalls: no panic, and every rule has a statement",
        run: configs,
    },
    Target {
        name: "flows",
        summary: "Open vSwitch flows: no panic when reading or writing",
        run: flows,
    },
    Target {
        name: "traces",
        summary: "header traces: no panic, and what is read is written and read the same",
        run: traces,
    },
    Target {
        name: "schema_files",
        summary: "schema files: no panic, and what is read is written and read the same",
        run: schema_files,
    },
    Target {
        name: "profiles",
        summary: "profiles and seed files of the generator: no panic",
        run: profiles,
    },
    Target {
        name: "captures",
        summary: "captures of any sort: no panic, bounded memory, headers only from packets",
        run: captures,
    },
    Target {
        name: "packets",
        summary: "frames on every link type: no panic, values that fit their fields",
        run: packets,
    },
    Target {
        name: "frames",
        summary: "frames in the datapath: parsed as by captures, and changed bytes are read the same",
        run: frames,
    },
    Target {
        name: "pipelines",
        summary: "pipelines as text: no panic, written and read the same, loaded whole or not at all",
        run: pipelines,
    },
    Target {
        name: "changes",
        summary: "bundles, packets and the clock: the datapath does what the reference interpreter does",
        run: changes,
    },
    Target {
        name: "openflow_messages",
        summary: "OpenFlow messages: no panic, and what is read is written and read the same",
        run: openflow_messages,
    },
    Target {
        name: "openflow_sessions",
        summary: "sessions of any bytes: no panic, whole answers, bounded memory",
        run: openflow_sessions,
    },
];

/// Compares all registered engines with the oracle: bytes choose the schema, rules,
/// updates and headers.
pub fn engines(data: &[u8]) {
    engines::stream(data);
}

/// Checks masked lookups of all registered engines: bytes choose the schema, rules,
/// headers and candidates.
pub fn masks(data: &[u8]) {
    engines::masks(data);
}

/// Reads ClassBench filter sets.
pub fn classbench(data: &[u8]) {
    readers::rules(data, RuleFormat::Classbench, true);
}

/// Reads configurations of firewalls.
pub fn configs(data: &[u8]) {
    configs::configs(data);
}

/// Reads rules in our own format, or as JSON if the first byte is `{`.
pub fn rules(data: &[u8]) {
    let format = match data.first() {
        Some(b'{') => RuleFormat::Json,
        _ => RuleFormat::Rules,
    };
    readers::rules(data, format, true);
}

/// Reads Open vSwitch flows.
pub fn flows(data: &[u8]) {
    readers::rules(data, RuleFormat::Ovs, false);
}

/// Reads header traces.
pub fn traces(data: &[u8]) {
    readers::traces(data);
}

/// Reads schema files.
pub fn schema_files(data: &[u8]) {
    readers::schema_files(data);
}

/// Reads profiles and ClassBench seed files.
pub fn profiles(data: &[u8]) {
    readers::profiles(data);
}

/// Reads captures and parses their packets.
pub fn captures(data: &[u8]) {
    readers::captures(data);
}

/// Parses single frames.
pub fn packets(data: &[u8]) {
    readers::packets(data);
}

/// Parses and changes frames in the datapath.
pub fn frames(data: &[u8]) {
    frames::frames(data);
}

/// Reads, writes, loads and runs pipelines.
pub fn pipelines(data: &[u8]) {
    pipelines::pipelines(data);
}

/// Compares a changing pipeline with the reference interpreter: bytes choose bundles,
/// frames and clock.
pub fn changes(data: &[u8]) {
    changes::changes(data);
}

/// Reads and writes OpenFlow messages.
pub fn openflow_messages(data: &[u8]) {
    openflow::messages(data);
}

/// Plays a controller of a switch.
pub fn openflow_sessions(data: &[u8]) {
    openflow::sessions(data);
}

/// The `main` of a target's binary without libFuzzer: replays the files named on the
/// command line.
///
/// # Panics
/// If a file cannot be read, or the target finds a violation.
pub fn replay(target: fn(&[u8])) {
    for path in std::env::args_os().skip(1) {
        let path = Path::new(&path);
        let data = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        target(&data);
        println!("{}: nothing found", path.display());
    }
}

/// Defines the binary of a target: libFuzzer's if it is built by cargo-fuzz, otherwise a
/// replay of files.
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
