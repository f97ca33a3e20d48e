//! Security groups.

use std::collections::{HashMap, HashSet};

use classyard_text::Fault;
use classyard_text::line::counted_verb;
use classyard_workload::diagnostic::ReadError;

use super::Outputs;
use super::inventory::Inventory;
use super::protocols::{Numbers, Protocol};
use crate::builder::{Builder, DENY, PERMIT};
use crate::document::Item;
use crate::networks::{Network, parse_cidr};
use crate::packets::{Families, Field, PacketSet};
use crate::stateful;

/// The fields of an element of `IpPermissions`.
const PERMISSION_KEYS: [&str; 7] = [
    "IpProtocol",
    "FromPort",
    "ToPort",
    "IpRanges",
    "Ipv6Ranges",
    "PrefixListIds",
    "UserIdGroupPairs",
];

/// The lists of peers of a permission, and the fields of their elements. The first field names
/// the peer.
const PEER_KEYS: [(&str, &[&str]); 4] = [
    ("IpRanges", &["CidrIp", "Description"]),
    ("Ipv6Ranges", &["CidrIpv6", "Description"]),
    ("PrefixListIds", &["PrefixListId", "Description"]),
    (
        "UserIdGroupPairs",
        &[
            "GroupId",
            "GroupName",
            "UserId",
            "VpcId",
            "VpcPeeringConnectionId",
            "PeeringStatus",
            "Description",
        ],
    ),
];

/// The fields of an element of `SecurityGroupRules`.
const RULE_KEYS: [&str; 14] = [
    "SecurityGroupRuleId",
    "SecurityGroupRuleArn",
    "GroupId",
    "GroupOwnerId",
    "IsEgress",
    "IpProtocol",
    "FromPort",
    "ToPort",
    "CidrIpv4",
    "CidrIpv6",
    "PrefixListId",
    "ReferencedGroupInfo",
    "Description",
    "Tags",
];

/// Advice for files with too many conditions.
const CONDITIONS_ADVICE: &str = "a file with fewer of them, or with the network interfaces and \
                                 the entries of prefix lists";

/// A direction of packets, as seen from the members of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

impl Direction {
    /// The address of the peer.
    fn peer_field(self) -> Field {
        match self {
            Direction::In => Field::Source,
            Direction::Out => Field::Destination,
        }
    }

    fn peer_name(self) -> &'static str {
        match self {
            Direction::In => "source",
            Direction::Out => "destination",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
        }
    }
}

/// A rule: packets of a protocol and one peer.
struct GroupRule<'a, 'd> {
    item: Item<'d>,
    text: String,
    comment: Option<&'d str>,
    packets: PacketSet,
    peer: Peer<'a, 'd>,
}

enum Peer<'a, 'd> {
    Network(Network),
    Networks(&'a [Network]),
    /// A condition, without the words for source or destination.
    Condition(Item<'d>, String),
}

/// Adds the lists of all groups.
pub(super) fn add(outputs: &Outputs<'_>, builder: &mut Builder<'_>) -> Result<(), ReadError> {
    let mut reader = Reader {
        inventory: &outputs.inventory,
        group_ids: HashSet::new(),
    };
    let mut groups = Vec::new();
    for &group in &outputs.groups {
        let id = group.require("GroupId").and_then(Item::string);
        match id {
            Ok(id) if !reader.group_ids.insert(id) => {
                let fault = group.fault(
                    format!("a second security group `{id}`"),
                    "each security group once",
                );
                group.report(builder, fault);
            }
            Ok(id) => groups.push((group, id)),
            Err(fault) => group.report(builder, fault),
        }
    }
    let rules = rules_of_groups(outputs, &reader.group_ids, builder);
    reader.group_ids.extend(rules.iter().map(|(id, _)| id));
    for (group, id) in groups {
        reader.add_group(group, id, builder)?;
    }
    for (id, rules) in rules {
        reader.add_rules(id, &rules, builder)?;
    }
    Ok(())
}

/// Returns the elements of `SecurityGroupRules` of each group that has no element in
/// `SecurityGroups`, by group.
fn rules_of_groups<'d>(
    outputs: &Outputs<'d>,
    described: &HashSet<&str>,
    builder: &mut Builder<'_>,
) -> Vec<(&'d str, Vec<Item<'d>>)> {
    let mut groups: Vec<(&str, Vec<Item<'_>>)> = Vec::new();
    let mut indices = HashMap::new();
    let mut repeated = 0;
    for &rule in &outputs.group_rules {
        let id = match rule.require("GroupId").and_then(Item::string) {
            Ok(id) => id,
            Err(fault) => {
                rule.report(builder, fault);
                continue;
            }
        };
        if described.contains(id) {
            repeated += 1;
            continue;
        }
        let index = *indices.entry(id).or_insert(groups.len());
        if index == groups.len() {
            groups.push((id, Vec::new()));
        }
        groups[index].1.push(rule);
    }
    if repeated > 0 {
        builder.note(format!(
            "{} of security groups that `SecurityGroups` has too; the rules there were read",
            counted_verb(
                repeated,
                "element",
                "of `SecurityGroupRules` is",
                "of `SecurityGroupRules` are"
            )
        ));
    }
    groups
}

struct Reader<'a, 'd> {
    inventory: &'a Inventory<'d>,
    /// The groups that the file describes.
    group_ids: HashSet<&'d str>,
}

impl<'a, 'd> Reader<'a, 'd> {
    fn add_group(
        &self,
        group: Item<'d>,
        id: &str,
        builder: &mut Builder<'_>,
    ) -> Result<(), ReadError> {
        let name = match group.optional_string("GroupName") {
            Ok(Some(name)) => format!("{name}/{id}"),
            Ok(None) => id.to_owned(),
            Err(fault) => {
                group.report(builder, fault);
                return Ok(());
            }
        };
        for (key, direction) in [
            ("IpPermissions", Direction::In),
            ("IpPermissionsEgress", Direction::Out),
        ] {
            if group.get(key).is_none() {
                let fault = group.fault(format!("no `{key}`"), "both lists of permissions");
                group.report(builder, fault);
                continue;
            }
            let permissions = match group.list(key) {
                Ok(permissions) => permissions,
                Err(fault) => {
                    group.report(builder, fault);
                    continue;
                }
            };
            let mut rules = Vec::new();
            for permission in permissions {
                if let Err(fault) = self.permission(permission, &mut rules) {
                    group.report(builder, fault);
                }
            }
            let name = format!("{name}/{}", direction.suffix());
            self.add_list(group, &name, &rules, direction, builder)?;
        }
        Ok(())
    }

    /// Adds the lists of a group whose rules alone are in the file.
    fn add_rules(
        &self,
        id: &str,
        rules: &[Item<'d>],
        builder: &mut Builder<'_>,
    ) -> Result<(), ReadError> {
        let mut lists = [Vec::new(), Vec::new()];
        for &rule in rules {
            let is_egress = rule.require("IsEgress").and_then(Item::boolean);
            let list = is_egress.map(|is_egress| &mut lists[usize::from(is_egress)]);
            match list.and_then(|list| Ok((list, self.rule(rule)?))) {
                Ok((list, rule)) => list.push(rule),
                Err(fault) => rule.report(builder, fault),
            }
        }
        for (list, direction) in lists.iter().zip([Direction::In, Direction::Out]) {
            let name = format!("{id}/{}", direction.suffix());
            self.add_list(rules[0], &name, list, direction, builder)?;
        }
        Ok(())
    }

    /// Parses an element of `IpPermissions`: a rule for each peer.
    fn permission(
        &self,
        permission: Item<'d>,
        rules: &mut Vec<GroupRule<'a, 'd>>,
    ) -> Result<(), Fault<'d>> {
        permission.check_keys(&PERMISSION_KEYS)?;
        let packets = packets(permission)?;
        let mut own_rules = Vec::new();
        for (list, keys) in PEER_KEYS {
            for item in permission.list(list)? {
                item.check_keys(keys)?;
                let peer_name = item.require(keys[0])?;
                own_rules.push(GroupRule {
                    item,
                    text: rule_text(permission, keys[0], peer_name),
                    comment: item.optional_string("Description")?,
                    packets: packets.clone(),
                    peer: self.peer(keys[0], peer_name)?,
                });
            }
        }
        if own_rules.is_empty() {
            return Err(permission.fault(
                "a permission without peers",
                "an element of IpRanges, Ipv6Ranges, PrefixListIds or UserIdGroupPairs",
            ));
        }
        rules.append(&mut own_rules);
        Ok(())
    }

    /// Parses an element of `SecurityGroupRules`.
    fn rule(&self, rule: Item<'d>) -> Result<GroupRule<'a, 'd>, Fault<'d>> {
        rule.check_keys(&RULE_KEYS)?;
        let keys = [
            "CidrIpv4",
            "CidrIpv6",
            "PrefixListId",
            "ReferencedGroupInfo",
        ];
        let mut peers = keys.iter().filter_map(|key| Some((*key, rule.get(key)?)));
        let (key, peer_name) = peers.next().ok_or_else(|| {
            rule.fault(
                "a rule without a peer",
                format!("one of {}", keys.join(", ")),
            )
        })?;
        if let Some((_, second)) = peers.next() {
            return Err(second.fault("a second peer", "one peer in each rule"));
        }
        let (key, peer_name) = match key {
            "ReferencedGroupInfo" => ("GroupId", peer_name.require("GroupId")?),
            _ => (key, peer_name),
        };
        Ok(GroupRule {
            item: rule,
            text: rule_text(rule, key, peer_name),
            comment: rule.optional_string("Description")?,
            packets: packets(rule)?,
            peer: self.peer(key, peer_name)?,
        })
    }

    fn peer(&self, key: &str, name: Item<'d>) -> Result<Peer<'a, 'd>, Fault<'d>> {
        let text = name.string()?;
        let inventory = self.inventory;
        let (networks, condition) = match key {
            "CidrIp" | "CidrIpv4" => {
                let network = parse_cidr(name, Some(Families::IPV4))?;
                return Ok(Peer::Network(network));
            }
            "CidrIpv6" => {
                let network = parse_cidr(name, Some(Families::IPV6))?;
                return Ok(Peer::Network(network));
            }
            "PrefixListId" => (
                inventory.prefix_list(text),
                format!("in prefix list {text}"),
            ),
            _ => {
                let is_known = inventory.has_interfaces && self.group_ids.contains(text);
                let no_members: Option<&[Network]> = is_known.then_some(&[]);
                let members = inventory.members(text).or(no_members);
                (members, format!("member of {text}"))
            }
        };
        Ok(match networks {
            Some(networks) => Peer::Networks(networks),
            None => Peer::Condition(name, condition),
        })
    }

    /// Adds a list: replies, the rules, and the deny at the end.
    fn add_list(
        &self,
        group: Item<'d>,
        name: &str,
        rules: &[GroupRule<'a, 'd>],
        direction: Direction,
        builder: &mut Builder<'_>,
    ) -> Result<(), ReadError> {
        let of_list = match builder.list(name) {
            Ok(of_list) => of_list,
            Err(fault) => {
                let fault = group.fault(fault.found(), "another name for one of the groups");
                group.report(builder, fault);
                return Ok(());
            }
        };
        stateful::permit_replies(group, name, &of_list, builder)?;
        for rule in rules {
            let source = rule.item.source(builder, &rule.text, name);
            builder.source_mut(source).comment = rule.comment.map(str::to_owned);
            let peers = match &rule.peer {
                Peer::Network(network) => {
                    Ok(PacketSet::of_addresses(direction.peer_field(), [*network]))
                }
                Peer::Networks(networks) => Ok(PacketSet::of_addresses(
                    direction.peer_field(),
                    networks.iter().copied(),
                )),
                Peer::Condition(item, text) => {
                    let text = format!("{} is {text}", direction.peer_name());
                    let condition = builder.condition(source, &text);
                    condition.map_err(|fault| item.fault(fault.found(), CONDITIONS_ADVICE))
                }
            };
            let packets = peers.and_then(|peers| {
                let packets = rule.packets.intersect(&peers);
                let packets = packets.and_then(|packets| packets.intersect(&of_list));
                packets.map_err(|error| rule.item.fault(error.to_string(), "a simpler rule"))
            });
            match packets {
                Ok(packets) => builder.add(source, packets, PERMIT)?,
                Err(fault) => rule.item.report(builder, fault),
            }
        }
        let source = group.source(builder, "deny all other packets", name);
        builder.source_mut(source).is_implied = true;
        builder.add(source, of_list, DENY)
    }
}

/// Returns the packets of the protocol and ports of a permission or rule.
fn packets(item: Item<'_>) -> Result<PacketSet, Fault<'_>> {
    let protocol = Protocol::parse(item.require("IpProtocol")?)?;
    let numbers = Numbers {
        rule: item,
        first: item.get("FromPort"),
        second: item.get("ToPort"),
        keys: ["FromPort", "ToPort"],
    };
    numbers.packets(protocol)
}

/// Returns a rule as text: the fields that select packets.
fn rule_text(item: Item<'_>, peer_key: &str, peer: Item<'_>) -> String {
    let fields = ["IpProtocol", "FromPort", "ToPort"];
    let fields = fields.iter().filter_map(|key| Some((*key, item.get(key)?)));
    let fields = fields.chain([(peer_key, peer)]);
    let words = fields.map(|(key, value)| format!("{key} {}", value.scalar_text()));
    words.collect::<Vec<_>>().join(", ")
}
