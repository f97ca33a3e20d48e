//! Compares the cross product with packets that pass the tables one by one.

use std::time::Duration;

use super::*;
use crate::bits::is_set;
use crate::key::Presence;
use crate::megaflow::tests::numbers;
use crate::pipeline::Message;
use crate::text;

/// Returns the flow entries in a text.
fn flows(text: &str) -> FlowStore {
    let mut flows = FlowStore::new();
    for located in text::read(text).unwrap() {
        if let Message::Flow(message) = located.message {
            flows.apply(&message, Duration::ZERO).unwrap();
        }
    }
    flows
}

/// Returns a packet's path, found by trying the matches of every table.
fn walk(flows: &FlowStore, key: &PacketKey) -> (Path, End) {
    let (mut key, mut table) = (key.clone(), TableId(0));
    let mut path = Path::new();
    loop {
        let matching = flows.table(table).filter(|entry| entry.flow.matches(&key));
        let best = matching.min_by_key(|entry| (std::cmp::Reverse(entry.priority), entry.id));
        path.push((table, best.map_or(Winner::MISS, winner_of)));
        let Some(entry) = best else {
            return (path, End::Miss);
        };
        let Some(next) = entry.instructions.goto_table else {
            return (path, End::ActionSet);
        };
        for action in &entry.instructions.apply {
            match *action {
                Action::PopVlan | Action::PushMpls(_) => return (path, End::Continue(next)),
                Action::SetField(MatchField { field, value, .. }) if is_set(&key, field) => {
                    key.set(field, value);
                }
                _ => {}
            }
        }
        if let Some((value, mask)) = entry.instructions.metadata {
            let old = key.get(Field::Metadata);
            let (value, mask) = (u128::from(value), u128::from(mask));
            key.set(Field::Metadata, old & !mask | value & mask);
        }
        table = next;
    }
}

/// Checks that exactly one entry contains each key and that it has the key's path.
/// Returns the product.
#[track_caller]
fn check(text: &str, keys: &[PacketKey]) -> CrossProduct {
    let flows = flows(text);
    let product = cross_product(&flows, 100_000).unwrap();
    for (number, one) in product.entries.iter().take(1_000).enumerate() {
        for two in &product.entries[..number] {
            assert!(!one.term.overlaps(&two.term), "{text}");
        }
    }
    let mut paths: Vec<_> = product.entries.iter().map(|entry| &entry.path).collect();
    paths.dedup();
    assert!(paths.len() <= product.paths);
    for key in keys {
        let holding = product.entries.iter();
        let mut holding = holding.filter(|entry| entry.term.contains(key.words()));
        let entry = holding.next().expect("every packet is in an entry");
        assert_eq!(holding.next(), None, "in no other");
        let entry_path = ((*entry.path).clone(), entry.end);
        assert_eq!(entry_path, walk(&flows, key), "{text}\n{key:?}");
    }
    product
}

/// Returns TCP packets, first or later fragments, and other packets, with few ports and
/// values.
fn keys(seed: u64, count: usize) -> Vec<PacketKey> {
    let mut next = numbers(seed);
    let mut key = || {
        let mut key = PacketKey::default();
        key.set(Field::InPort, u128::from(1 + next() % 3));
        key.set(Field::Metadata, u128::from(next() % 4));
        key.set(Field::Reg0, u128::from(next() % 4));
        if !next().is_multiple_of(4) {
            key.set(Field::EthType, 0x800);
            key.set(Field::IpProto, 6);
            key.set(Field::Ipv4Src, u128::from(next() % 4));
            key.set_presence(Presence::PROTOCOL);
            if !next().is_multiple_of(3) {
                key.set(Field::TcpDst, u128::from(next() % 4));
                key.set_presence(Presence::TRANSPORT);
            }
        } else if next().is_multiple_of(2) {
            key.set(Field::VlanVid, u128::from(0x1000 + next() % 3));
        }
        key
    };
    (0..count).map(|_| key()).collect()
}

#[test]
fn the_tables_of_the_paper() {
    // [FCH14] Tables 1 and 2; registers are set to constants.
    let text = "table=0,priority=1000,tcp,tcp_dst=80 actions=drop\n\
                table=0,priority=1000,tcp,tcp_dst=443 actions=drop\n\
                table=0,priority=500,eth_src=01:00:00:00:00:00/ff:00:00:00:00:00 \
                actions=set_field:1->reg4,goto_table:1\n\
                table=1,priority=1000,reg4=1 actions=output:2\n";
    let product = check(text, &keys(1, 200));
    // Two dropped paths, an output, and the table miss of table 0.
    assert_eq!(product.paths, 4);
    let at_exit = product.entries.iter().filter(|entry| entry.path.len() == 2);
    assert!(at_exit.clone().count() > 1);
    assert!(at_exit.clone().all(|entry| entry.end == End::ActionSet));
}

#[test]
fn what_is_set_decides_later_tables() {
    let text = "table=0,priority=9,tcp,tcp_dst=2 actions=set_field:1->tcp_dst,goto_table:1\n\
                table=0,priority=8,tcp,ipv4_src=0.0.0.1 actions=set_field:3->tcp_dst,\
                set_field:2->reg0,write_metadata:2/3,goto_table:2\n\
                table=0,priority=7,reg0=1/3 actions=write_metadata:1/1,goto_table:1\n\
                table=0,priority=0 actions=goto_table:1\n\
                table=1,priority=5,metadata=1/1 actions=goto_table:2\n\
                table=1,priority=4,metadata=2/2 actions=output:1\n\
                table=1,priority=3,reg0=0/1 actions=goto_table:2\n\
                table=2,priority=2,tcp,tcp_dst=3 actions=output:3\n\
                table=2,priority=1,metadata=2/2,reg0=2 actions=output:2\n";
    let product = check(text, &keys(2, 2_000));
    assert!(product.paths > 6, "{}", product.paths);
    // A later fragment has no port to set, and continues unchanged.
    let text = "table=0,tcp actions=set_field:3->tcp_dst,set_field:1->reg0,goto_table:1\n\
                table=1,priority=2,tcp,tcp_dst=3 actions=output:1\n\
                table=1,priority=1,reg0=1 actions=output:2\n";
    let product = check(text, &keys(3, 500));
    assert_eq!(product.paths, 3);
}

/// A frame that is too short for a type has no address to set.
#[test]
fn what_a_packet_lacks_is_not_set() {
    let text = "table=0 actions=set_field:02:00:00:00:00:09->eth_dst,goto_table:1\n\
                table=1,priority=2,eth_dst=02:00:00:00:00:09 actions=output:2\n\
                table=1,priority=1 actions=output:3\n";
    let product = check(text, &keys(6, 500));
    // Two for entry 1: packets that are changed, and short frames that have its address.
    assert_eq!(product.paths, 3);
}

#[test]
fn what_a_key_does_not_have_ends_an_entry() {
    let text = "table=0,priority=2,vlan_vid=0x1001 actions=pop_vlan,goto_table:5\n\
                table=0,priority=1,vlan_vid=0x1002 actions=pop_vlan,output:1\n\
                table=0,priority=0 actions=goto_table:5\n\
                table=5 actions=output:2\n";
    let product = check(text, &keys(4, 500));
    let ends: Vec<End> = product.entries.iter().map(|entry| entry.end).collect();
    assert!(ends.contains(&End::Continue(TableId(5))));
    // After the last table nothing matches the packet.
    assert!(ends.contains(&End::ActionSet));
}

/// Random tables over few values.
#[test]
fn random_pipelines_are_as_packet_by_packet() {
    for seed in 0..60 {
        let mut next = numbers(1_000 + seed);
        let mut text = String::new();
        let mut protocols = 0;
        for table in 0..3 {
            for _ in 0..1 + next() % 4 {
                let mut line = format!("table={table},priority={}", next() % 4);
                // Each exact match of a protocol adds 24 bits that multiply the number of
                // terms.
                let is_tcp = next().is_multiple_of(4) && protocols < 2;
                if is_tcp {
                    protocols += 1;
                    line += ",tcp";
                    if next().is_multiple_of(2) {
                        line += &format!(",tcp_dst={}/3", next() % 4);
                    }
                    if next().is_multiple_of(2) {
                        line += &format!(",ipv4_src=0.0.0.{}/0.0.0.3", next() % 4);
                    }
                }
                for field in ["metadata", "reg0", "in_port", "eth_dst"] {
                    let mask = 1 + next() % 3;
                    match (field, next() % 4) {
                        ("in_port", 0) if !is_tcp && protocols < 2 => {
                            protocols += 1;
                            line += &format!(",in_port={}", 1 + next() % 3);
                        }
                        ("eth_dst", 0) => {
                            line +=
                                &format!(",eth_dst=00:00:00:00:00:0{0}/00:00:00:00:00:0{0}", mask);
                        }
                        ("metadata" | "reg0", 0) => {
                            line += &format!(",{field}={}/{mask}", (next() % 4) & mask);
                        }
                        _ => {}
                    }
                }
                line += " actions=";
                if next().is_multiple_of(2) {
                    line += &format!("set_field:{}->reg0,", next() % 4);
                }
                if is_tcp && next().is_multiple_of(2) {
                    line += &format!("set_field:{}->tcp_dst,", next() % 4);
                }
                if next().is_multiple_of(4) {
                    line += &format!("set_field:02:00:00:00:00:0{}->eth_dst,", next() % 3);
                }
                if next().is_multiple_of(2) {
                    line += &format!("write_metadata:{}/3,", next() % 4);
                }
                match table + 1 + next() % 2 {
                    later @ 0..3 => line += &format!("goto_table:{later}"),
                    _ => line += "output:1",
                }
                text += &line;
                text += "\n";
            }
        }
        // Instructions output before they write the metadata, so the text must too.
        let lines = text.lines().map(|line| match line.find("write_metadata") {
            Some(at) if line.ends_with("output:1") => {
                let (before, _) = line.split_at(at);
                format!("{before}output:1\n")
            }
            _ => format!("{line}\n"),
        });
        check(&lines.collect::<String>(), &keys(seed, 300));
    }
}

#[test]
fn terms_are_matches() {
    for (number, key) in keys(5, 300).iter().enumerate() {
        let text = [
            "tcp,tcp_dst=1",
            "tcp",
            "ip,ipv4_src=0.0.0.2/0.0.0.2",
            "vlan_vid=0x1000/0x1000",
            "vlan_vid=0",
            "in_port=2,metadata=1/1,reg0=3",
            "",
        ][number % 7];
        let flows = flows(&format!("{text} actions=drop"));
        let flow = &flows.iter().next().unwrap().flow;
        assert_eq!(
            term_of(flow).contains(key.words()),
            flow.matches(key),
            "{text}"
        );
    }
}

#[test]
fn limits_are_met_with_an_error_that_says_where() {
    let mut text = String::new();
    for port in 0..20 {
        text += &format!(
            "table=0,priority=2,tcp,tcp_dst={} actions=drop\n",
            port * 3_001
        );
        text += &format!(
            "table=1,priority=2,tcp,tcp_src={} actions=drop\n",
            port * 3_001
        );
    }
    text += "table=0,priority=0 actions=goto_table:1\ntable=1,priority=0 actions=output:1\n";
    let flows = flows(&text);
    let product = cross_product(&flows, 1_000_000).unwrap();
    assert!(product.entries.len() > 1_000, "{}", product.entries.len());
    let error = cross_product(&flows, 300).unwrap_err();
    assert_eq!((error.most, error.table), (300, TableId(1)));
    let text = error.to_string();
    assert!(text.starts_with("the cross product has more than 300 entries, its limit: "));
    assert!(text.contains("were complete at table 1"), "{text}");
    assert_eq!(cross_product(&flows, product.entries.len()), Ok(product));
    // Without tables every packet misses.
    let nothing = cross_product(&FlowStore::new(), 1).unwrap();
    assert_eq!(nothing.entries.len(), 1);
    assert_eq!(nothing.entries[0].end, End::Miss);
}
