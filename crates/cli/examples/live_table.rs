//! A live table: one writer changes rules while two readers look up packets. Every
//! reader sees each transaction completely or not at all.
//!
//! ```text
//! cargo run --example live_table
//! ```

// Results go to standard output.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};

use classyard::prelude::*;
use classyard::{Table, Transaction};

/// The number of transactions that the writer makes.
const TRANSACTION_COUNT: u32 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let schema = Schema::ipv4_5tuple();
    // Two rules for one server that always change together: one for the open port,
    // one for all other traffic.
    let server = Ipv4Addr::new(10, 20, 2, 10);
    let open = |action| {
        let rule = Rule::builder(&schema)
            .id(1)
            .priority(2)
            .field("dst", server);
        rule.field("dport", 443).action(action).build()
    };
    let other_traffic = |action| {
        let rule = Rule::builder(&schema)
            .id(2)
            .priority(1)
            .field("dst", server);
        rule.action(action).build()
    };
    let mut rules = RuleSet::new(&schema);
    rules.push(open(ActionId(0))?.view())?;
    rules.push(other_traffic(ActionId(0))?.view())?;

    let forest = EngineSpec::parse("forest")?;
    let (mut writer, table): (_, Table) = forest.builder().max_rules(1000).table(&rules)?;

    let mut keys = KeyVec::new(&schema);
    for port in [443, 80] {
        keys.push(&[0x0a14_010b, server.to_bits().into(), 40_000, port, 6])?;
    }
    let over = AtomicBool::new(false);
    let versions = std::thread::scope(|scope| {
        let readers = [0, 1].map(|_| {
            scope.spawn(|| {
                let (mut reader, mut scratch) = (table.reader(), Scratch::new());
                let (mut versions, mut last) = (0_u64, None);
                while !over.load(Ordering::Relaxed) {
                    // While the guard lives, rules and actions do not change.
                    let guard = reader.pin();
                    let mut winners = [Winner::MISS; 2];
                    guard.classify_batch(keys.as_slice(), &mut winners, &mut scratch);
                    let actions = winners.map(|winner| guard.action(winner));
                    assert_eq!(actions[0], actions[1], "half of a transaction was seen");
                    versions += u64::from(last.replace(guard.version()) != Some(guard.version()));
                }
                versions
            })
        });
        for step in 1..=TRANSACTION_COUNT {
            let (open, other_traffic) = (open(ActionId(step))?, other_traffic(ActionId(step))?);
            let mut changes = Transaction::new();
            changes.modify(open.view()).modify(other_traffic.view());
            writer.apply(&changes)?;
        }
        writer.publish();
        over.store(true, Ordering::Relaxed);
        let versions = readers.map(|reader| reader.join().expect("readers do not fail"));
        Ok::<_, Box<dyn Error>>(versions)
    })?;

    let mut reader = table.reader();
    let last = reader.pin().action(rules.rule(0).winner());
    println!("{TRANSACTION_COUNT} transactions; the last action is {last:?}");
    println!(
        "versions that the readers saw: {} and {}",
        versions[0], versions[1]
    );
    Ok(())
}
