//! A firewall from a file, applied to the packets of a capture: counts the packets
//! by the rule that they hit and its action.
//!
//! ```text
//! cargo run --example firewall                      the embedded office
//! cargo run --example firewall RULES CAPTURE        your own files
//! ```

// Results go to standard output.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use classyard::prelude::*;
use classyard_workload::capture::{ReadOptions as CaptureOptions, read_capture_file};
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::read_policy_file;

fn main() -> Result<(), Box<dyn Error>> {
    let office = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/capture"
    ));
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let rules = paths.next().unwrap_or_else(|| office.join("office.rules"));
    let packets = paths.next().unwrap_or_else(|| office.join("office.pcap"));

    // The format and the schema are detected from the file. A bad line is an error
    // with its column, and then nothing is loaded.
    let policy = read_policy_file(&rules, None, None, &ReadOptions::default())?.value;
    let classifier = EngineSpec::parse("forest")?.builder().policy(&policy)?;

    let capture = read_capture_file(&packets, &CaptureOptions::default())?;
    let mut hits: BTreeMap<String, usize> = BTreeMap::new();
    for packet in capture.parsed() {
        let fate = match classifier.classify_header(&packet) {
            None => format!("no header for these rules ({})", packet.kind),
            Some(verdict) => match policy.decision(verdict) {
                None => "no rule".to_owned(),
                Some(decision) => format!(
                    "{} by {}",
                    decision.action_name.unwrap_or("nothing"),
                    decision
                        .rule_name
                        .map_or(format!("rule {}", decision.rule), str::to_owned),
                ),
            },
        };
        *hits.entry(fate).or_default() += 1;
    }

    for (fate, packets) in &hits {
        println!("{packets:>8}  {fate}");
    }
    println!(
        "{:>8}  packets, {} rules",
        capture.packets().len(),
        policy.len()
    );
    Ok(())
}
