//! Random clusters: decisions are compared with an interpreter of the JSON values.

use std::fmt::Write as _;
use std::net::IpAddr;

use classyard_configs::ConfigFormat::Kubernetes;
use serde_json::{Map, Value, json};

use crate::helper::{Packet, Random, has_address, load};

const NAMESPACES: [&str; 3] = ["a", "b", "c"];
const KEYS: [&str; 3] = ["k", "l", "m"];
const VALUES: [&str; 3] = ["u", "v", "w"];
const PORT_NAMES: [&str; 2] = ["http", "sql"];
const BLOCKS: [(&str, &[&str]); 4] = [
    ("10.0.0.0/24", &["10.0.0.2/31", "10.0.0.8/29"]),
    ("0.0.0.0/0", &["10.0.0.0/28", "0.0.0.0/1"]),
    ("::/0", &["2001:db8::/124", "8000::/1"]),
    ("2001:db8::/64", &["2001:db8::2/127"]),
];

fn labels(random: &mut Random) -> Value {
    let mut labels = Map::new();
    for key in KEYS {
        if !random.once_in(3) {
            labels.insert(key.to_owned(), json!(random.pick(&VALUES)));
        }
    }
    Value::Object(labels)
}

fn selector(random: &mut Random) -> Value {
    let mut selector = json!({});
    if random.once_in(2) {
        selector["matchLabels"] = json!({(*random.pick(&KEYS)): random.pick(&VALUES)});
    }
    if random.once_in(3) {
        let operator = *random.pick(&["In", "NotIn", "Exists", "DoesNotExist"]);
        let mut expression = json!({"key": random.pick(&KEYS), "operator": operator});
        if operator.ends_with("In") {
            let values = (0..=random.below(2)).map(|_| random.pick(&VALUES));
            expression["values"] = json!(values.collect::<Vec<_>>());
        }
        selector["matchExpressions"] = json!([expression]);
    }
    selector
}

fn peer(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({"podSelector": selector(random)}),
        1 => json!({"namespaceSelector": selector(random)}),
        2 => json!({"namespaceSelector": selector(random), "podSelector": selector(random)}),
        _ => {
            let (cidr, exceptions) = *random.pick(&BLOCKS);
            match random.once_in(2) {
                true => json!({"ipBlock": {"cidr": cidr}}),
                false => json!({"ipBlock": {"cidr": cidr, "except": exceptions}}),
            }
        }
    }
}

fn rule(random: &mut Random, peers_key: &str) -> Value {
    let mut rule = json!({});
    if !random.once_in(4) {
        let peers: Vec<Value> = (0..random.below(3)).map(|_| peer(random)).collect();
        rule[peers_key] = json!(peers);
    }
    if !random.once_in(3) {
        let ports: Vec<Value> = (0..random.below(3)).map(|_| port(random)).collect();
        // A named port of a network is a condition, which is tested elsewhere.
        let peers = rule[peers_key].to_string();
        let has_block = peers.contains("ipBlock") && peers_key == "to";
        let has_name = ports.iter().any(|port| port["port"].is_string());
        if !(has_block && has_name) {
            rule["ports"] = json!(ports);
        }
    }
    rule
}

fn port(random: &mut Random) -> Value {
    let mut port = json!({});
    if random.once_in(2) {
        port["protocol"] = json!(random.pick(&["TCP", "UDP", "SCTP"]));
    }
    match random.below(4) {
        0 => {}
        1 => port["port"] = json!(random.pick(&PORT_NAMES)),
        2 => port["port"] = json!(random.below(6) + 1),
        _ => {
            let low = random.below(6) + 1;
            port["port"] = json!(low);
            port["endPort"] = json!(low + random.below(4));
        }
    }
    port
}

fn policy(random: &mut Random, number: usize) -> Value {
    let mut spec = json!({"podSelector": selector(random)});
    for (key, peers_key) in [("ingress", "from"), ("egress", "to")] {
        if !random.once_in(3) {
            let rules: Vec<Value> = (0..random.below(3))
                .map(|_| rule(random, peers_key))
                .collect();
            spec[key] = json!(rules);
        }
    }
    if !random.once_in(3) {
        let types: &[&[&str]] = &[&["Ingress"], &["Egress"], &["Ingress", "Egress"], &[]];
        spec["policyTypes"] = json!(random.pick(types));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": format!("policy-{number}"), "namespace": random.pick(&NAMESPACES)},
        "spec": spec,
    })
}

fn pod(random: &mut Random, number: usize) -> Value {
    let mut addresses = vec![json!({"ip": format!("10.0.0.{number}")})];
    if random.once_in(2) {
        addresses.push(json!({"ip": format!("2001:db8::{number:x}")}));
    }
    let mut ports = Vec::new();
    for name in PORT_NAMES {
        if random.once_in(2) {
            let mut port = json!({"name": name, "containerPort": random.below(6) + 1});
            if random.once_in(3) {
                port["protocol"] = json!("UDP");
            }
            ports.push(port);
        }
    }
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("pod-{number}"),
            "namespace": random.pick(&NAMESPACES),
            "labels": labels(random),
        },
        "spec": {"containers": [{"name": "c", "ports": ports}]},
        "status": {"podIPs": addresses},
    });
    if random.once_in(2) {
        let name = format!("owner-{}", random.below(3));
        let owners = json!([{"kind": "StatefulSet", "name": name, "controller": true}]);
        pod["metadata"]["ownerReferences"] = owners;
    }
    pod
}

/// Returns a value as YAML. The first line follows text of its line.
fn yaml(value: &Value, indent: usize, text: &mut String) {
    let blanks = " ".repeat(indent);
    match value {
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                write!(text, "\n{blanks}-").unwrap();
                yaml(item, indent + 2, text);
            }
        }
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                write!(text, "\n{blanks}{key}:").unwrap();
                yaml(value, indent + 2, text);
            }
        }
        Value::String(string) if string.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            write!(text, " {string}").unwrap();
        }
        other => write!(text, " {other}").unwrap(),
    }
}

// ---------------------------------------------------------------- interpreter

fn strings(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

fn selects(selector: &Value, labels: &Value) -> bool {
    let mut pairs = selector["matchLabels"].as_object().into_iter().flatten();
    let mut expressions = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten();
    pairs.all(|(key, value)| labels[key] == *value)
        && expressions.all(|expression| {
            let value = labels[expression["key"].as_str().unwrap()].as_str();
            let values = strings(&expression["values"]);
            match expression["operator"].as_str().unwrap() {
                "In" => value.is_some_and(|value| values.contains(&value)),
                "NotIn" => !value.is_some_and(|value| values.contains(&value)),
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}

struct Cluster {
    /// The labels of each of [`NAMESPACES`].
    namespaces: Vec<Value>,
    pods: Vec<Value>,
    policies: Vec<Value>,
}

impl Cluster {
    fn pod_at(&self, address: IpAddr) -> Option<&Value> {
        let address = address.to_string();
        self.pods.iter().find(|pod| {
            let mut addresses = pod["status"]["podIPs"].as_array().unwrap().iter();
            addresses.any(|other| other["ip"] == *address)
        })
    }

    fn is_peer(&self, policy: &Value, peer: &Value, address: IpAddr) -> bool {
        if let Some(cidr) = peer["ipBlock"]["cidr"].as_str() {
            let exceptions = strings(&peer["ipBlock"]["except"]);
            return has_address(cidr, address)
                && !exceptions
                    .iter()
                    .any(|network| has_address(network, address));
        }
        let Some(pod) = self.pod_at(address) else {
            return false;
        };
        let namespace = pod["metadata"]["namespace"].as_str().unwrap();
        let number = NAMESPACES
            .iter()
            .position(|name| *name == namespace)
            .unwrap();
        let in_namespace = match &peer["namespaceSelector"] {
            Value::Null => policy["metadata"]["namespace"] == namespace,
            selector => selects(selector, &self.namespaces[number]),
        };
        in_namespace && selects(&peer["podSelector"], &pod["metadata"]["labels"])
    }

    /// True if a packet to a pod, or to an address without a pod, has a port of a rule.
    fn has_port(port: &Value, packet: &Packet, pod: Option<&Value>) -> bool {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        let number = match protocol {
            "TCP" => 6,
            "UDP" => 17,
            _ => 132,
        };
        let packet_port = u64::from(packet.port);
        number == packet.protocol
            && match &port["port"] {
                Value::Null => true,
                Value::String(name) => {
                    let containers = pod.map(|pod| &pod["spec"]["containers"][0]["ports"]);
                    let mut ports = containers.and_then(Value::as_array).into_iter().flatten();
                    ports.any(|own| {
                        own["name"] == **name
                            && own["protocol"].as_str().unwrap_or("TCP") == protocol
                            && own["containerPort"] == packet_port
                    })
                }
                low => {
                    let low = low.as_u64().unwrap();
                    let high = port["endPort"].as_u64().unwrap_or(low);
                    (low..=high).contains(&packet_port)
                }
            }
    }

    fn is_permitted(&self, pod: &Value, is_egress: bool, packet: &Packet) -> bool {
        let (key, peers_key, kind, address) = match is_egress {
            false => ("ingress", "from", "Ingress", packet.source),
            true => ("egress", "to", "Egress", packet.destination),
        };
        let has_effect = |policy: &&Value| {
            let spec = &policy["spec"];
            let types = strings(&spec["policyTypes"]);
            let has_rules = spec[key].as_array().is_some_and(|rules| !rules.is_empty());
            policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
                && selects(&spec["podSelector"], &pod["metadata"]["labels"])
                && match types.is_empty() {
                    true => !is_egress || has_rules,
                    false => types.contains(&kind),
                }
        };
        let policies: Vec<&Value> = self.policies.iter().filter(has_effect).collect();
        let destination = match is_egress {
            false => Some(pod),
            true => self.pod_at(packet.destination),
        };
        let permits = |policy: &&Value| {
            let mut rules = policy["spec"][key].as_array().into_iter().flatten();
            rules.any(|rule| {
                let peers: Vec<&Value> = rule[peers_key].as_array().into_iter().flatten().collect();
                let ports: Vec<&Value> = rule["ports"].as_array().into_iter().flatten().collect();
                let is_peer = |peer: &&Value| self.is_peer(policy, peer, address);
                let has_port = |port: &&Value| Self::has_port(port, packet, destination);
                (peers.is_empty() || peers.iter().any(is_peer))
                    && (ports.is_empty() || ports.iter().any(has_port))
            })
        };
        policies.is_empty() || [1, 2].contains(&packet.state) || policies.iter().any(permits)
    }
}

fn address(random: &mut Random, is_ipv6: bool) -> IpAddr {
    let number = random.below(14);
    let text = match is_ipv6 {
        true => format!("2001:db8::{number:x}"),
        false => format!("10.0.0.{number}"),
    };
    let other = if is_ipv6 { "9000::1" } else { "200.0.0.1" };
    let text = if number == 13 { other } else { &text };
    text.parse().unwrap()
}

/// Returns the list of a pod: of the group whose comment names it.
fn list_of(loaded: &crate::helper::Loaded, pod: &Value, suffix: &str) -> String {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap();
    let name = pod["metadata"]["name"].as_str().unwrap();
    let mut sources = loaded.config.sources.iter();
    let last_source = sources.find(|source| {
        let comment = source.comment.as_deref().unwrap_or_default();
        let names = comment.split_once(": ").map_or("", |(_, names)| names);
        source.list.starts_with(&format!("{namespace}/"))
            && source.list.ends_with(suffix)
            && names.split(", ").any(|other| other == name)
    });
    last_source
        .map(|source| source.list.clone())
        .unwrap_or_default()
}

#[test]
fn random_clusters_decide_as_their_objects_say() {
    let mut random = Random::new(21);
    let mut counts = [0; 2];
    for round in 0..200 {
        let cluster = Cluster {
            namespaces: (0..3).map(|_| labels(&mut random)).collect(),
            pods: (1..=9).map(|number| pod(&mut random, number)).collect(),
            policies: (0..5).map(|number| policy(&mut random, number)).collect(),
        };
        let namespaces = cluster.namespaces.iter().zip(NAMESPACES).map(|(labels, name)| {
            json!({"kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        });
        let objects = cluster.policies.iter().chain(&cluster.pods).cloned();
        let objects: Vec<Value> = objects.chain(namespaces).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let mut text = String::new();
        match round % 2 {
            0 => write!(text, "{list:#}").unwrap(),
            _ => yaml(&list, 0, &mut text),
        }
        let loaded = load(&text, Kubernetes);
        assert!(loaded.conditions.texts().is_empty());
        for _ in 0..100 {
            let pod = random.pick(&cluster.pods);
            let is_egress = random.once_in(2);
            let is_ipv6 = random.once_in(3);
            let packet = Packet {
                source: address(&mut random, is_ipv6),
                destination: address(&mut random, is_ipv6),
                protocol: *random.pick(&[6, 6, 17, 132, 1]),
                port: u16::try_from(random.below(10)).unwrap(),
                icmp: (0, 0),
                state: u8::try_from(random.below(9) / 7).unwrap(),
                conditions: 0,
            };
            let list = list_of(&loaded, pod, if is_egress { "/out" } else { "/in" });
            if list.is_empty() {
                // The comment names three pods only.
                continue;
            }
            let is_permitted = cluster.is_permitted(pod, is_egress, &packet);
            let (action, source) = loaded.decide(&list, &packet.header());
            let expected = if is_permitted { "permit" } else { "deny" };
            assert_eq!(action, expected, "{list} {packet:?} {source:?}\n{text}");
            counts[usize::from(is_permitted && !source.is_implied)] += 1;
        }
    }
    assert!(counts.iter().all(|count| *count > 2000), "{counts:?}");
}
