//! The program in the README: the packets of a capture, counted by the action of
//! the rule that each one hits.

// Results go to standard output.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::{error::Error, path::Path};

use classyard::prelude::*;
use classyard_workload::{capture, formats};

fn main() -> Result<(), Box<dyn Error>> {
    let rules = Path::new("testdata/capture/office.rules");
    let policy = formats::read_policy_file(rules, None, None, &Default::default())?.value;
    let classifier = EngineSpec::parse("forest")?.builder().policy(&policy)?;

    let packets = Path::new("testdata/capture/office.pcap");
    let mut counts = BTreeMap::new();
    for packet in capture::read_capture_file(packets, &Default::default())?.parsed() {
        let verdict = classifier.classify_header(&packet);
        let rule = verdict.and_then(|verdict| policy.rule(verdict.winner.rule()?).next());
        let action = rule.and_then(|(_, rule)| policy.action_name(rule.action()));
        *counts.entry(action.unwrap_or("no rule")).or_insert(0) += 1;
    }
    println!("{counts:?}");
    Ok(())
}
