//! The program in the README: a dual-stack firewall over packets, changed while
//! it runs.

// Results go to standard output.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;

use classyard::prelude::*;
use classyard_workload::{capture, diagnostic, formats};

fn main() -> Result<(), Box<dyn Error>> {
    // Rules of both families, with names and actions, from a file.
    let rules = Path::new("testdata/capture/office.rules");
    let options = diagnostic::ReadOptions::default();
    let mut policy = formats::read_policy_file(rules, None, None, &options)?.value;
    let (allow, drop) = (
        policy.declare_action("allow"),
        policy.declare_action("drop"),
    );

    // Two copies of an engine for each family: one for readers, one to change.
    let engine = EngineSpec::parse("forest")?;
    let (mut writer, table) = engine.builder().policy_table(&policy)?;
    let mut reader = table.reader();

    let packets = Path::new("testdata/capture/office.pcap");
    let packets = capture::read_capture_file(packets, &capture::ReadOptions::default())?;
    let (mut passed, mut dropped, mut other) = (0, 0, 0);
    for (count, packet) in packets.parsed().enumerate() {
        if count == 1000 {
            // From here on nobody logs in by SSH, over IPv4 or IPv6.
            let mut changes = PolicyTransactionBuf::new(policy.schemas());
            let ssh = PolicyRule::new(9000).priority(u32::MAX).field("dport", 22);
            changes.insert_rule(&ssh.field("proto", 6).action(drop))?;
            writer.apply(&changes.transaction())?;
        }
        let guard = reader.pin(); // one version of all rules
        let verdict = guard.classify_header(&packet);
        let action = verdict.and_then(|found| guard.action_in(found.part, found.winner));
        match action {
            Some(action) if action == allow => passed += 1,
            Some(action) if action == drop => dropped += 1,
            _ => other += 1, // rejected, ARP and the like, no rule
        }
    }
    println!("{passed} passed, {dropped} dropped, {other} neither");
    Ok(())
}
