//! Network ACLs.

use std::collections::{BTreeMap, HashSet};

use classyard_text::Fault;
use classyard_workload::diagnostic::ReadError;

use super::protocols::{Numbers, Protocol};
use crate::builder::{Builder, DENY, PERMIT};
use crate::document::Item;
use crate::networks::parse_cidr;
use crate::packets::{Families, Field, PacketSet, Values};

/// The number of the last entry, which denies all packets. The last entry for IPv6 has the
/// next number.
const LAST_NUMBER: i64 = 32767;

/// The highest number of an entry.
const MAX_NUMBER: i64 = LAST_NUMBER + 1;

/// The fields of an element of `Entries`.
const ENTRY_KEYS: [&str; 8] = [
    "CidrBlock",
    "Ipv6CidrBlock",
    "Egress",
    "IcmpTypeCode",
    "PortRange",
    "Protocol",
    "RuleAction",
    "RuleNumber",
];

struct Entry<'d> {
    item: Item<'d>,
    packets: PacketSet,
    action: &'static str,
}

/// The entries of a direction, by their numbers.
#[derive(Default)]
struct Entries<'d> {
    by_number: BTreeMap<i64, Entry<'d>>,
    /// The families that a last entry of the file denies.
    denied: Vec<Families>,
}

/// Adds the lists of all network ACLs.
pub(super) fn add(acls: &[Item<'_>], builder: &mut Builder<'_>) -> Result<(), ReadError> {
    let mut ids = HashSet::new();
    for &acl in acls {
        let id = acl.require("NetworkAclId").and_then(Item::string);
        let id = id.and_then(|id| match ids.insert(id) {
            true => Ok(id),
            false => Err(acl.fault(
                format!("a second network ACL `{id}`"),
                "each network ACL once",
            )),
        });
        let parts = id.and_then(|id| Ok((id, acl.require("Entries")?.elements()?)));
        let (id, items) = match parts {
            Ok(parts) => parts,
            Err(fault) => {
                acl.report(builder, fault);
                continue;
            }
        };
        let mut directions = [Entries::default(), Entries::default()];
        for item in items {
            if let Err(fault) = add_entry(item, &mut directions) {
                item.report(builder, fault);
            }
        }
        for (entries, suffix) in directions.iter().zip(["in", "out"]) {
            add_list(acl, &format!("{id}/{suffix}"), entries, builder)?;
        }
    }
    Ok(())
}

/// Parses an element of `Entries` and adds it to its direction: ingress or egress.
fn add_entry<'d>(item: Item<'d>, directions: &mut [Entries<'d>; 2]) -> Result<(), Fault<'d>> {
    item.check_keys(&ENTRY_KEYS)?;
    let is_egress = item.require("Egress")?.boolean()?;
    let number_item = item.require("RuleNumber")?;
    let number = number_item.integer(1, MAX_NUMBER)?;
    let action_item = item.require("RuleAction")?;
    let action = match action_item.string()? {
        "allow" => PERMIT,
        "deny" => DENY,
        _ => return Err(action_item.unexpected("allow or deny")),
    };
    let network = match (item.get("CidrBlock"), item.get("Ipv6CidrBlock")) {
        (Some(block), None) => parse_cidr(block, Some(Families::IPV4))?,
        (None, Some(block)) => parse_cidr(block, Some(Families::IPV6))?,
        (None, None) => {
            return Err(item.fault("no network", "a value of CidrBlock or Ipv6CidrBlock"));
        }
        (Some(_), Some(block)) => {
            return Err(block.fault("a second network", "CidrBlock or Ipv6CidrBlock alone"));
        }
    };
    let field = match is_egress {
        true => Field::Destination,
        false => Field::Source,
    };
    let of_numbers = packets(item)?;
    let denies_family = action == DENY
        && number >= LAST_NUMBER
        && of_numbers == PacketSet::all()
        && network.1 == Values::bits(0, 0);
    let packets = of_numbers.intersect(&PacketSet::of_addresses(field, [network]));
    let packets = packets.map_err(|error| item.fault(error.to_string(), "a simpler entry"))?;
    let entries = &mut directions[usize::from(is_egress)];
    if entries.by_number.contains_key(&number) {
        return Err(number_item.fault(
            format!("a second entry with the number {number} in this direction"),
            "entries with different numbers",
        ));
    }
    if denies_family {
        entries.denied.push(network.0);
    }
    let entry = Entry {
        item,
        packets,
        action,
    };
    entries.by_number.insert(number, entry);
    Ok(())
}

/// Returns the packets of the protocol, ports and ICMP types of an entry.
fn packets(item: Item<'_>) -> Result<PacketSet, Fault<'_>> {
    let protocol = Protocol::parse(item.require("Protocol")?)?;
    let (group, keys) = match protocol.is_icmp() {
        true => (item.get("IcmpTypeCode"), ["Type", "Code"]),
        false => (item.get("PortRange"), ["From", "To"]),
    };
    if let Some(group) = group {
        group.check_keys(&keys)?;
    }
    let numbers = Numbers {
        rule: group.unwrap_or(item),
        first: group.and_then(|group| group.get(keys[0])),
        second: group.and_then(|group| group.get(keys[1])),
        keys,
    };
    numbers.packets(protocol)
}

/// Adds a list: the entries by their numbers, then the deny that no entry of the file states.
fn add_list(
    acl: Item<'_>,
    name: &str,
    entries: &Entries<'_>,
    builder: &mut Builder<'_>,
) -> Result<(), ReadError> {
    let of_list = match builder.list(name) {
        Ok(of_list) => of_list,
        Err(fault) => {
            let fault = acl.fault(fault.found(), "another name for one of the network ACLs");
            acl.report(builder, fault);
            return Ok(());
        }
    };
    for (&number, entry) in &entries.by_number {
        let source = entry.item.source(builder, &entry.item.compact(), name);
        builder.source_mut(source).is_default = number >= LAST_NUMBER;
        let packets = entry.packets.intersect(&of_list);
        match packets {
            Ok(packets) => builder.add(source, packets, entry.action)?,
            Err(error) => {
                let fault = entry.item.fault(error.to_string(), "a simpler entry");
                acl.report(builder, fault);
            }
        }
    }
    let mut undecided = of_list;
    for &family in &entries.denied {
        let denied = PacketSet::of_families(family);
        undecided = undecided.subtract(&denied).expect("two families");
    }
    if undecided.is_empty() {
        return Ok(());
    }
    let source = acl.source(builder, "deny all other packets", name);
    builder.source_mut(source).is_implied = true;
    builder.add(source, undecided, DENY)
}
