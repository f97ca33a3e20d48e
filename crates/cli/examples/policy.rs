//! A policy for IPv4 and IPv6 in one order of priorities, built by the program and
//! then changed.
//!
//! ```text
//! cargo run --example policy
//! ```

// Results go to standard output.
#![allow(clippy::print_stdout)]

use std::error::Error;

use classyard::prelude::*;
use ipnet::IpNet;

fn main() -> Result<(), Box<dyn Error>> {
    let mut policy = Policy::dual_stack();
    let (allow, deny) = (
        policy.declare_action("allow"),
        policy.declare_action("deny"),
    );
    let (office4, office6): (IpNet, IpNet) = ("10.20.0.0/16".parse()?, "2001:db8:20::/48".parse()?);

    // A rule's addresses determine its family. A rule without addresses belongs to
    // both families.
    let web = PolicyRule::new(1)
        .priority(30)
        .field("dport", 443)
        .field("proto", 6);
    policy.add_rule(&web.action(allow))?;
    for (id, office) in [(2, office4), (3, office6)] {
        let inside = PolicyRule::new(id).priority(20).field("src", office);
        policy.add_rule(&inside.field("dst", office).action(allow))?;
    }
    policy.add_rule(&PolicyRule::new(4).priority(10).action(deny))?;

    let forest = EngineSpec::parse("forest")?;
    let (mut writer, table) = forest.builder().policy_table(&policy)?;
    let mut reader = table.reader();
    let packets = [
        FiveTuple::new("10.20.1.1".parse()?, "10.20.2.2".parse()?, 40_000, 22, 6),
        FiveTuple::new(
            "2001:db8:20::1".parse()?,
            "2001:db8:20::2".parse()?,
            40_000,
            22,
            6,
        ),
        FiveTuple::new("192.0.2.1".parse()?, "10.20.2.2".parse()?, 40_000, 443, 6),
    ];
    let mut show = |title: &str| -> Result<(), Box<dyn Error>> {
        println!("{title}");
        let guard = reader.pin();
        for packet in packets.iter().flatten() {
            let verdict = guard.classify_header(packet);
            let verdict = verdict.ok_or("the policy has both families")?;
            let action = guard.action_in(verdict.part, verdict.winner);
            let name = action.and_then(|action| policy.action_name(action));
            println!("  {:?}: {}", verdict.winner, name.unwrap_or("no rule"));
        }
        Ok(())
    };
    show("at first")?;

    // One transaction: removes the web rule, and denies SSH inside the office.
    let mut changes = PolicyTransactionBuf::new(policy.schemas());
    changes.remove(RuleId::new(1)?);
    let ssh = PolicyRule::new(5)
        .priority(25)
        .field("dport", 22)
        .field("proto", 6);
    changes.insert_rule(&ssh.action(deny))?;
    writer.apply(&changes.transaction())?;
    writer.publish();
    show("after the transaction")?;
    Ok(())
}
