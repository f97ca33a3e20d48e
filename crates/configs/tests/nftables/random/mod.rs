//! Random rulesets, written as text and as JSON, compared with an interpreter that has no
//! code in common with the importer.

mod comparison;
mod field;
mod packet;
mod ruleset;

use classyard_workload::diagnostic::ReadOptions;

use self::packet::Packet;
use self::ruleset::Ruleset;
use crate::support::{Firewall, Random, try_read};

/// Compares the decisions about random packets.
fn compare(ruleset: &Ruleset, firewall: &Firewall, form: &str, random: &mut Random) {
    let packets: Vec<Packet> = (0..60).map(|_| Packet::new(random)).collect();
    let headers: Vec<_> = packets.iter().map(|packet| packet.header("c3")).collect();
    for (packet, decision) in packets.iter().zip(firewall.decisions(&headers)) {
        let action = decision.map_or("none", |(action, _)| action);
        assert_eq!(action, ruleset.action(packet), "{packet:?}\n{form}");
    }
}

#[test]
fn random_rulesets_decide_like_the_interpreter() {
    const RULESETS: usize = 120;
    let mut random = Random(0x0f1e_2d3c_4b5a_6978);
    let mut too_large = 0;
    for _ in 0..RULESETS {
        let ruleset = Ruleset::random(&mut random);
        for form in [ruleset.text(), ruleset.json()] {
            match try_read(&form, &ReadOptions::DEFAULT) {
                Ok(firewall) => compare(&ruleset, &firewall, &form, &mut random),
                Err(error) if error.to_string().contains("expands to more than") => too_large += 1,
                Err(error) => panic!("{error}\n{form}"),
            }
        }
    }
    // Several negations of addresses with `return` after each other are too many boxes.
    assert!(
        too_large * 20 < 2 * RULESETS,
        "{too_large} forms are too large"
    );
}
