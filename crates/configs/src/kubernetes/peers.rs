//! Peers of rules as packets.

use std::collections::{BTreeMap, HashMap};

use classyard_text::Fault;

use super::Direction;
use super::cluster::{Cluster, NamedPort, Pod};
use super::policy::{Peer, Policy, Rule};
use super::ports::{Port, PortNumbers, port_packets, protocol_packets};
use super::selector::Selector;
use crate::builder::{Builder, SourceId};
use crate::networks::{Network, merge_networks};
use crate::packets::{Field, PacketSet, TooManyBoxes};

/// A peer of a rule, with its packets.
#[derive(Debug)]
pub(super) struct ResolvedPeer {
    pub(super) text: String,
    packets: PeerPackets,
    pods: PeerPods,
    /// For each port of an egress rule, the packets to pods that have the port by its name;
    /// `None` if the port has no name, or the pods are not known.
    named_ports: Vec<Option<Result<PacketSet, TooManyBoxes>>>,
}

/// The pods of a peer.
#[derive(Debug)]
enum PeerPods {
    /// All pods of the file.
    All,
    /// Some pods, by their numbers in the cluster.
    Some(Vec<usize>),
    /// The peer is a network or a condition.
    Unknown,
}

#[derive(Debug)]
enum PeerPackets {
    Packets(PacketSet),
    /// A condition that no field can express.
    Condition(String),
}

impl ResolvedPeer {
    /// The number of networks, also of each named port.
    pub(super) fn networks(&self) -> usize {
        let of_port = |port: &Option<Result<PacketSet, TooManyBoxes>>| match port {
            Some(Ok(packets)) => packets.boxes().len() + 1,
            _ => 1,
        };
        let of_ports = self.named_ports.iter().map(of_port).sum::<usize>();
        of_ports
            + match &self.packets {
                PeerPackets::Packets(packets) => packets.boxes().len(),
                PeerPackets::Condition(_) => 1,
            }
    }

    /// Finds the pods that have named ports of an egress rule.
    fn resolve_ports(&mut self, rule: &Rule<'_>, cluster: &Cluster<'_>) {
        let is_named = |port: &Port<'_>| matches!(port.numbers, PortNumbers::Named(_));
        if !rule.ports.iter().any(is_named) {
            return;
        }
        let pods: Vec<&Pod<'_>> = match &self.pods {
            PeerPods::All => cluster.pods.iter().collect(),
            PeerPods::Some(pods) => pods.iter().map(|&pod| &cluster.pods[pod]).collect(),
            PeerPods::Unknown => return,
        };
        let ports = rule.ports.iter().map(|port| match port.numbers {
            PortNumbers::Named(name) => Some(packets_to_port(&pods, name, port.protocol)),
            _ => None,
        });
        self.named_ports = ports.collect();
    }
}

/// The pods that a list belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject<'a> {
    /// Pods with these named ports.
    Pods(&'a [NamedPort<'a>]),
    /// All pods that a policy selects, which are not in the file.
    Unknown,
}

/// Returns the packets to the pods that have a port with this name.
fn packets_to_port(pods: &[&Pod<'_>], name: &str, protocol: u8) -> Result<PacketSet, TooManyBoxes> {
    let mut addresses: BTreeMap<u16, Vec<Network>> = BTreeMap::new();
    for pod in pods {
        for number in numbers(&pod.ports, name, protocol) {
            addresses.entry(number).or_default().extend(&pod.addresses);
        }
    }
    let mut packets = PacketSet::none();
    for (number, addresses) in addresses {
        let of_pods = of_peers(Direction::Out, &addresses);
        let to_port = of_pods.intersect(&port_packets(protocol, number, number))?;
        packets = packets.union(to_port)?;
    }
    Ok(packets)
}

/// Returns the peers of a rule. If the rule has none, one peer that is everyone.
pub(super) fn resolve(
    policy: &Policy<'_>,
    rule: &Rule<'_>,
    direction: Direction,
    cluster: &Cluster<'_>,
) -> Vec<ResolvedPeer> {
    let mut peers = match rule.peers.is_empty() {
        true => vec![everyone(cluster)],
        false => {
            let peers = rule.peers.iter();
            let peers = peers.map(|peer| resolve_peer(policy, peer, direction, cluster));
            peers.collect()
        }
    };
    if direction == Direction::Out {
        for peer in &mut peers {
            peer.resolve_ports(rule, cluster);
        }
    }
    peers
}

fn everyone(cluster: &Cluster<'_>) -> ResolvedPeer {
    ResolvedPeer {
        text: "all peers".to_owned(),
        packets: PeerPackets::Packets(PacketSet::all()),
        pods: match cluster.has_addresses {
            true => PeerPods::All,
            false => PeerPods::Unknown,
        },
        named_ports: Vec::new(),
    }
}

fn resolve_peer(
    policy: &Policy<'_>,
    peer: &Peer<'_>,
    direction: Direction,
    cluster: &Cluster<'_>,
) -> ResolvedPeer {
    match peer {
        Peer::Block { networks, text } => ResolvedPeer {
            text: text.clone(),
            packets: PeerPackets::Packets(networks.clone()),
            pods: PeerPods::Unknown,
            named_ports: Vec::new(),
        },
        Peer::Pods { pods, namespaces } => {
            resolve_pods(policy, pods, namespaces.as_ref(), direction, cluster)
        }
    }
}

fn resolve_pods(
    policy: &Policy<'_>,
    pods: &Selector<'_>,
    namespaces: Option<&Selector<'_>>,
    direction: Direction,
    cluster: &Cluster<'_>,
) -> ResolvedPeer {
    let selected = match cluster.has_addresses {
        true => selected_pods(policy.namespace, pods, namespaces, cluster),
        false => None,
    };
    let packets = match &selected {
        Some(selected) => {
            let pods = selected.iter().map(|&pod| &cluster.pods[pod]);
            let addresses: Vec<Network> =
                pods.flat_map(|pod| pod.addresses.iter().copied()).collect();
            PeerPackets::Packets(of_peers(direction, &addresses))
        }
        None => PeerPackets::Condition(condition(policy, pods, namespaces, direction)),
    };
    ResolvedPeer {
        text: text(pods, namespaces),
        packets,
        pods: selected.map_or(PeerPods::Unknown, PeerPods::Some),
        named_ports: Vec::new(),
    }
}

fn of_peers(direction: Direction, addresses: &[Network]) -> PacketSet {
    let field = match direction {
        Direction::In => Field::Source,
        Direction::Out => Field::Destination,
    };
    PacketSet::of_addresses(field, merge_networks(addresses))
}

/// Returns the pods of a peer. `None` if that depends on labels of namespaces that are not in
/// the file.
fn selected_pods(
    own_namespace: &str,
    pods: &Selector<'_>,
    namespaces: Option<&Selector<'_>>,
    cluster: &Cluster<'_>,
) -> Option<Vec<usize>> {
    let mut is_selected = HashMap::new();
    let mut selected = Vec::new();
    for (number, pod) in cluster.pods.iter().enumerate() {
        let in_namespace = match namespaces {
            None => Some(pod.namespace == own_namespace),
            Some(selector) => *is_selected
                .entry(pod.namespace)
                .or_insert_with(|| cluster.selects_namespace(selector, pod.namespace)),
        };
        if in_namespace != Some(false) && pods.selects(&pod.labels) {
            in_namespace?;
            selected.push(number);
        }
    }
    Some(selected)
}

/// Returns the selectors of a peer as the text of a statement.
fn text(pods: &Selector<'_>, namespaces: Option<&Selector<'_>>) -> String {
    let selector = |name: &str, selector: &Selector<'_>| match selector.is_all() {
        true => format!("{name} {{}}"),
        false => format!("{name} {}", selector.text()),
    };
    match namespaces {
        None => selector("podSelector", pods),
        Some(namespaces) if pods.is_all() => selector("namespaceSelector", namespaces),
        Some(namespaces) => format!(
            "{} and {}",
            selector("namespaceSelector", namespaces),
            selector("podSelector", pods)
        ),
    }
}

/// Returns the condition that a pod with these labels is the peer of a packet.
fn condition(
    policy: &Policy<'_>,
    pods: &Selector<'_>,
    namespaces: Option<&Selector<'_>>,
    direction: Direction,
) -> String {
    let namespaces = match namespaces {
        None => format!("in namespace {}", policy.namespace),
        Some(selector) if selector.is_all() => "in any namespace".to_owned(),
        Some(selector) => format!("in a namespace with {}", selector.text()),
    };
    let labels = match pods.is_all() {
        true => String::new(),
        false => format!("with {} ", pods.text()),
    };
    format!("{} is a pod {labels}{namespaces}", direction.peer_name())
}

/// A peer of a rule with a port of the rule, or with all ports.
pub(super) struct Member<'a> {
    pub(super) rule: &'a Rule<'a>,
    pub(super) peer: &'a ResolvedPeer,
    /// The port's position in the rule.
    pub(super) port: Option<usize>,
    pub(super) direction: Direction,
}

impl<'a> Member<'a> {
    /// Returns the packets of the member. Conditions are recorded with its statement.
    pub(super) fn packets(
        &self,
        subject: Subject<'_>,
        source: SourceId,
        builder: &mut Builder<'_>,
    ) -> Result<PacketSet, Fault<'a>> {
        let too_many = |error: TooManyBoxes| {
            let fault = self.rule.item.fault(error.to_string(), "a simpler rule");
            Err(fault)
        };
        let named = self.port.and_then(|port| self.peer.named_ports.get(port));
        if let Some(Some(packets)) = named {
            return packets.clone().or_else(too_many);
        }
        let condition = match &self.peer.packets {
            PeerPackets::Packets(_) => PacketSet::all(),
            PeerPackets::Condition(text) => self.condition(text, source, builder)?,
        };
        let ports = match self.port {
            None => PacketSet::all(),
            Some(port) => self.port_packets(&self.rule.ports[port], subject, source, builder)?,
        };
        let packets = ports.intersect(&condition).or_else(too_many)?;
        match &self.peer.packets {
            PeerPackets::Packets(peers) => packets.intersect(peers).or_else(too_many),
            PeerPackets::Condition(_) => Ok(packets),
        }
    }

    fn condition(
        &self,
        text: &str,
        source: SourceId,
        builder: &mut Builder<'_>,
    ) -> Result<PacketSet, Fault<'a>> {
        let condition = builder.condition(source, text);
        condition.map_err(|fault| {
            let advice = "a file with fewer of them, or with the pods and namespaces";
            self.rule.item.fault(fault.found(), advice)
        })
    }

    fn port_packets(
        &self,
        port: &Port<'_>,
        subject: Subject<'_>,
        source: SourceId,
        builder: &mut Builder<'_>,
    ) -> Result<PacketSet, Fault<'a>> {
        let protocol = port.protocol;
        let name = match port.numbers {
            PortNumbers::All => return Ok(protocol_packets(protocol)),
            PortNumbers::Range(low, high) => return Ok(port_packets(protocol, low, high)),
            PortNumbers::Named(name) => name,
        };
        let too_many = |error: TooManyBoxes| self.rule.item.fault(error.to_string(), "fewer ports");
        match (self.direction, subject) {
            (Direction::In, Subject::Pods(ports)) => {
                let mut packets = PacketSet::none();
                for number in numbers(ports, name, protocol) {
                    let to_port = port_packets(protocol, number, number);
                    packets = packets.union(to_port).map_err(too_many)?;
                }
                Ok(packets)
            }
            _ => {
                let text = format!("destination port is named {name}");
                let condition = self.condition(&text, source, builder)?;
                condition
                    .intersect(&protocol_packets(protocol))
                    .map_err(too_many)
            }
        }
    }
}

/// Returns the numbers of the ports with a name and protocol, ascending.
fn numbers(ports: &[NamedPort<'_>], name: &str, protocol: u8) -> Vec<u16> {
    let named = ports
        .iter()
        .filter(|port| port.name == name && port.protocol == protocol);
    let mut numbers: Vec<u16> = named.map(|port| port.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
