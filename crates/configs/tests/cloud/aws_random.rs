//! Random security groups and network ACLs: decisions are compared with an interpreter of the
//! JSON values.

use std::net::IpAddr;

use classyard_configs::ConfigFormat::Aws;
use serde_json::{Value, json};

use crate::helper::{Loaded, Packet, Random, has_address, load};

const NETWORKS: [&str; 6] = [
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.0.0.0/30",
    "10.0.0.2/31",
    "10.0.0.1/32",
    "10.0.0.128/25",
];
const NETWORKS_6: [&str; 4] = [
    "::/0",
    "2001:db8::/64",
    "2001:db8::2/127",
    "2001:db8::1/128",
];
const GROUPS: [&str; 4] = ["sg-0", "sg-1", "sg-2", "sg-x"];
const LISTS: [&str; 2] = ["pl-0", "pl-1"];

fn address(random: &mut Random, is_ipv6: bool) -> IpAddr {
    let texts = match is_ipv6 {
        true => ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db9::1"],
        false => ["10.0.0.1", "10.0.0.2", "10.0.0.130", "10.9.9.9"],
    };
    random.pick(&texts).parse().unwrap()
}

fn packet(random: &mut Random) -> Packet {
    let is_ipv6 = random.once_in(3);
    Packet {
        source: address(random, is_ipv6),
        destination: address(random, is_ipv6),
        protocol: *random.pick(&[6, 17, 1, 58, 47]),
        port: u16::try_from(random.below(12)).unwrap(),
        icmp: (*random.pick(&[0, 3, 8]), *random.pick(&[0, 4])),
        state: u8::try_from(random.below(4)).unwrap(),
        conditions: u128::try_from(random.below(256)).unwrap(),
    }
}

/// Adds the protocol, ports and ICMP types of a permission.
fn add_protocol(random: &mut Random, permission: &mut Value) {
    let protocol = *random.pick(&["tcp", "udp", "icmp", "icmpv6", "-1", "6", "17", "1", "47"]);
    permission["IpProtocol"] = json!(protocol);
    let (first, second) = match protocol {
        "-1" | "47" => (-1, -1),
        "icmp" | "icmpv6" | "1" => *random.pick(&[(-1, -1), (8, -1), (3, 4), (0, 0)]),
        _ => {
            let low = i32::try_from(random.below(8)).unwrap();
            (low, low + i32::try_from(random.below(5)).unwrap())
        }
    };
    permission["FromPort"] = json!(first);
    permission["ToPort"] = json!(second);
}

fn permission(random: &mut Random) -> Value {
    let mut permission = json!({});
    add_protocol(random, &mut permission);
    let mut peers = [const { Vec::new() }; 4];
    for _ in 0..=random.below(3) {
        match random.below(6) {
            0..3 => peers[0].push(json!({"CidrIp": random.pick(&NETWORKS)})),
            3 => peers[1].push(json!({"CidrIpv6": random.pick(&NETWORKS_6)})),
            4 => peers[2].push(json!({"PrefixListId": random.pick(&LISTS)})),
            _ => peers[3].push(json!({"GroupId": random.pick(&GROUPS), "UserId": "1"})),
        }
    }
    let keys = [
        "IpRanges",
        "Ipv6Ranges",
        "PrefixListIds",
        "UserIdGroupPairs",
    ];
    for (key, peers) in keys.iter().zip(peers) {
        permission[key] = json!(peers);
    }
    permission
}

fn permissions(random: &mut Random) -> Vec<Value> {
    (0..random.below(5)).map(|_| permission(random)).collect()
}

/// The things that rules refer to.
struct World {
    groups: Vec<Value>,
    /// If there are interfaces, the addresses of each group of [`GROUPS`].
    members: Option<Vec<Vec<IpAddr>>>,
    /// Of the first of [`LISTS`].
    prefixes: Vec<&'static str>,
}

impl World {
    fn new(random: &mut Random) -> World {
        let groups = (0..3).map(|number| {
            json!({
                "GroupId": GROUPS[number],
                "IpPermissions": permissions(random),
                "IpPermissionsEgress": permissions(random),
            })
        });
        let groups = groups.collect();
        let members = random.once_in(2).then(|| {
            let members = (0..4).map(|_| {
                let count = random.below(3);
                let addresses = (0..count).map(|number| address(random, number == 1));
                addresses.collect()
            });
            members.collect()
        });
        let prefixes = (0..=random.below(2))
            .map(|_| *random.pick(&NETWORKS))
            .collect();
        World {
            groups,
            members,
            prefixes,
        }
    }

    fn text(&self) -> String {
        let mut outputs = vec![json!({"SecurityGroups": self.groups})];
        if let Some(members) = &self.members {
            let interfaces = members.iter().zip(GROUPS).flat_map(|(addresses, group)| {
                addresses.iter().map(move |address| match address {
                    IpAddr::V4(_) => json!({
                        "Groups": [{"GroupId": group}],
                        "PrivateIpAddresses": [{"PrivateIpAddress": address}],
                    }),
                    IpAddr::V6(_) => json!({
                        "Groups": [{"GroupId": group}],
                        "Ipv6Addresses": [{"Ipv6Address": address}],
                    }),
                })
            });
            outputs.push(json!({"NetworkInterfaces": interfaces.collect::<Vec<_>>()}));
        }
        outputs.push(json!({"PrefixLists": [{"PrefixListId": LISTS[0]}]}));
        let entries = self.prefixes.iter().map(|prefix| json!({"Cidr": prefix}));
        outputs.push(json!({"Entries": entries.collect::<Vec<_>>()}));
        let texts = outputs.iter().map(|output| format!("{output:#}\n"));
        texts.collect()
    }

    /// True if a peer of a permission is at an address.
    fn is_peer(
        &self,
        permission: &Value,
        (address, name): (IpAddr, &str),
        holds: &dyn Fn(String) -> bool,
    ) -> bool {
        let peers = |key: &str, field: &'static str| {
            let peers = permission[key].as_array().unwrap().iter();
            let peers = peers.map(move |peer| peer[field].as_str().unwrap().to_owned());
            peers.collect::<Vec<_>>()
        };
        let networks = peers("IpRanges", "CidrIp").into_iter();
        let mut networks = networks.chain(peers("Ipv6Ranges", "CidrIpv6"));
        let of_list = |list: &String| match list == LISTS[0] {
            true => self
                .prefixes
                .iter()
                .any(|prefix| has_address(prefix, address)),
            false => holds(format!("{name} is in prefix list {list}")),
        };
        let is_member = |group: &String| {
            let number = GROUPS.iter().position(|other| other == group).unwrap();
            match &self.members {
                Some(members) if number < 3 || !members[number].is_empty() => {
                    members[number].contains(&address)
                }
                _ => holds(format!("{name} is member of {group}")),
            }
        };
        networks.any(|network| has_address(&network, address))
            || peers("PrefixListIds", "PrefixListId").iter().any(of_list)
            || peers("UserIdGroupPairs", "GroupId").iter().any(is_member)
    }
}

/// True if a packet has the protocol and numbers of a rule.
fn has_protocol(protocol: &str, first: &Value, second: &Value, packet: &Packet) -> bool {
    let number = match protocol {
        "-1" => return true,
        "tcp" => 6,
        "udp" => 17,
        "icmp" => 1,
        "icmpv6" => 58,
        number => number.parse().unwrap(),
    };
    let [first, second] = [first, second].map(|number| number.as_i64().unwrap_or(-1));
    packet.protocol == number
        && match number {
            6 | 17 => (first..=second).contains(&packet.port.into()),
            1 | 58 => {
                (first == -1 || first == i64::from(packet.icmp.0))
                    && (second == -1 || second == i64::from(packet.icmp.1))
            }
            _ => true,
        }
}

fn holds(loaded: &Loaded, packet: &Packet, condition: &str) -> bool {
    let mut texts = loaded.conditions.texts().iter();
    let bit = texts.position(|text| text == condition);
    packet.conditions >> bit.expect("a condition of the file") & 1 == 1
}

#[test]
fn random_security_groups_decide_as_their_json_says() {
    let mut random = Random::new(11);
    let mut permitted = 0;
    for _ in 0..150 {
        let world = World::new(&mut random);
        let text = world.text();
        let loaded = load(&text, Aws);
        let lists = loaded.lists();
        assert_eq!(lists.len(), 6);
        for _ in 0..100 {
            let number = random.below(6);
            let key = ["IpPermissions", "IpPermissionsEgress"][number % 2];
            let packet = packet(&mut random);
            let peer = match number % 2 {
                0 => (packet.source, "source"),
                _ => (packet.destination, "destination"),
            };
            let mut permissions = world.groups[number / 2][key].as_array().unwrap().iter();
            let is_permitted = [1, 2].contains(&packet.state)
                || permissions.any(|permission| {
                    has_protocol(
                        permission["IpProtocol"].as_str().unwrap(),
                        &permission["FromPort"],
                        &permission["ToPort"],
                        &packet,
                    ) && world.is_peer(permission, peer, &|text| holds(&loaded, &packet, &text))
                });
            let expected = if is_permitted { "permit" } else { "deny" };
            let (action, source) = loaded.decide(lists[number], &packet.header());
            assert_eq!(action, expected, "{packet:?} {source:?}\n{text}");
            permitted += usize::from(is_permitted && packet.state == 0);
        }
    }
    assert!(permitted > 500, "{permitted}");
}

fn entry(random: &mut Random, number: usize) -> Value {
    let mut entry = json!({
        "Egress": random.once_in(2),
        "RuleAction": random.pick(&["allow", "deny"]),
        "RuleNumber": number,
    });
    match random.once_in(3) {
        true => entry["Ipv6CidrBlock"] = json!(random.pick(&NETWORKS_6)),
        false => entry["CidrBlock"] = json!(random.pick(&NETWORKS)),
    }
    let mut numbers = json!({});
    add_protocol(random, &mut numbers);
    let protocol = match numbers["IpProtocol"].as_str().unwrap() {
        "tcp" => "6",
        "udp" => "17",
        "icmp" => "1",
        "icmpv6" => "58",
        number => number,
    };
    entry["Protocol"] = json!(protocol);
    let (first, second) = (&numbers["FromPort"], &numbers["ToPort"]);
    match protocol {
        "6" | "17" => entry["PortRange"] = json!({"From": first, "To": second}),
        "1" | "58" => entry["IcmpTypeCode"] = json!({"Type": first, "Code": second}),
        _ => {}
    }
    entry
}

#[test]
fn random_network_acls_decide_as_their_json_says() {
    let mut random = Random::new(12);
    let mut decided_by_entries = 0;
    for _ in 0..200 {
        let mut entries: Vec<Value> = Vec::new();
        for number in 1..=random.below(12) {
            let position = random.below(entries.len() + 1);
            entries.insert(position, entry(&mut random, number * 10));
        }
        let text = json!({"NetworkAcls": [{"NetworkAclId": "acl-1", "Entries": entries}]});
        let text = format!("{text:#}");
        let loaded = load(&text, Aws);
        let mut sorted: Vec<&Value> = entries.iter().collect();
        sorted.sort_by_key(|entry| entry["RuleNumber"].as_u64());
        for _ in 0..100 {
            let is_egress = random.once_in(2);
            let packet = packet(&mut random);
            let address = if is_egress {
                packet.destination
            } else {
                packet.source
            };
            let matching = sorted.iter().find(|entry| {
                let network = entry["CidrBlock"].as_str();
                let network = network.or(entry["Ipv6CidrBlock"].as_str()).unwrap();
                let group = match &entry["PortRange"] {
                    Value::Null => [
                        &entry["IcmpTypeCode"]["Type"],
                        &entry["IcmpTypeCode"]["Code"],
                    ],
                    range => [&range["From"], &range["To"]],
                };
                let protocol = entry["Protocol"].as_str().unwrap();
                entry["Egress"] == is_egress
                    && has_address(network, address)
                    && has_protocol(protocol, group[0], group[1], &packet)
            });
            let expected = match matching.map(|entry| entry["RuleAction"].as_str().unwrap()) {
                Some("allow") => "permit",
                _ => "deny",
            };
            let list = if is_egress { "acl-1/out" } else { "acl-1/in" };
            let (action, source) = loaded.decide(list, &packet.header());
            assert_eq!(action, expected, "{packet:?} {source:?}\n{text}");
            assert_eq!(source.is_implied, matching.is_none());
            decided_by_entries += usize::from(matching.is_some());
        }
    }
    assert!(decided_by_entries > 2000, "{decided_by_entries}");
}
