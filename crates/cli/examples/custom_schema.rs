//! Headers of your own: a schema, rules by the names of its fields, batch lookups,
//! and the bits that a decision depended on.
//!
//! ```text
//! cargo run --example custom_schema
//! ```

// Results go to standard output.
#![allow(clippy::print_stdout)]

use std::error::Error;

use classyard::prelude::*;
use classyard::schema::{Field, MatchKind};
use classyard::value::ValueFormat;
use ipnet::Ipv6Net;

fn main() -> Result<(), Box<dyn Error>> {
    // The fields that a service mesh routes by.
    let schema = Schema::new(
        "mesh",
        vec![
            Field::new("tenant", 24, MatchKind::Exact),
            Field::new("workload", 128, MatchKind::Prefix).with_format(ValueFormat::Ipv6),
            Field::new("port", 16, MatchKind::Range),
            Field::new("flags", 16, MatchKind::Ternary).with_format(ValueFormat::Hex),
        ],
    )?;
    let mut rules = RuleSet::new(&schema);
    let pods: Ipv6Net = "fd00:1::/64".parse()?;
    let urgent = FieldMatch::Ternary {
        value: 0x0001,
        mask: 0x0003,
    };
    let rule_builders = [
        Rule::builder(&schema)
            .id(1)
            .priority(3)
            .field("tenant", 7)
            .field("flags", urgent),
        Rule::builder(&schema)
            .id(2)
            .priority(2)
            .field("workload", pods)
            .field("port", 8000..=8099),
        Rule::builder(&schema).id(3).priority(1),
    ];
    for rule in rule_builders {
        rules.push(rule.build()?.view())?;
    }

    let classifier = EngineSpec::parse("forest")?.builder().build(&rules)?;
    let mut keys = KeyVec::new(&schema);
    let pod = "fd00:1::5".parse::<std::net::Ipv6Addr>()?.to_bits();
    keys.push(&[7, pod, 9000, 0x0005])?;
    keys.push(&[8, pod, 8080, 0x0005])?;
    keys.push(&[8, pod, 9000, 0x0005])?;
    let (mut winners, mut scratch) = (vec![Winner::MISS; keys.len()], Scratch::new());
    classifier.classify_batch(keys.as_slice(), &mut winners, &mut scratch);
    for (row, winner) in winners.iter().enumerate() {
        let mut mask = vec![0; schema.key_words()];
        let again = classifier.classify_masked(keys.key(row), &mut mask);
        assert_eq!(again, *winner);
        let bits: u32 = mask.iter().map(|word| word.count_ones()).sum();
        let header = keys.header(row);
        println!(
            "tenant {} port {}: {winner:?}, by {bits} bits",
            header[0], header[2]
        );
    }
    Ok(())
}
