//! The parts of a NetworkPolicy.

use classyard_text::Fault;

use super::ports::{Port, parse_port};
use super::selector::Selector;
use super::{Direction, full_name};
use crate::builder::Builder;
use crate::document::Item;
use crate::networks::{merge_networks, parse_cidr};
use crate::packets::{Field, PacketSet, Values};

/// The fields of a policy's `spec`.
const SPEC_KEYS: [&str; 4] = ["podSelector", "policyTypes", "ingress", "egress"];

/// A policy.
#[derive(Debug)]
pub(super) struct Policy<'d> {
    pub(super) item: Item<'d>,
    pub(super) namespace: &'d str,
    pub(super) name: &'d str,
    pub(super) selector: Selector<'d>,
    /// True if `policyTypes` lacks the direction of some rules, so that they have no effect.
    pub(super) has_idle_rules: bool,
    ingress: Option<Vec<Rule<'d>>>,
    egress: Option<Vec<Rule<'d>>>,
}

/// An element of `ingress` or `egress`.
#[derive(Debug)]
pub(super) struct Rule<'d> {
    pub(super) item: Item<'d>,
    /// The peers; all if there are none.
    pub(super) peers: Vec<Peer<'d>>,
    /// The ports; all if there are none.
    pub(super) ports: Vec<Port<'d>>,
}

/// An element of `from` or `to`.
#[derive(Debug)]
pub(super) enum Peer<'d> {
    /// Networks, and the text of the network and its exceptions. The field of the networks is
    /// the address of the peer.
    Block { networks: PacketSet, text: String },
    /// Pods with some labels, in namespaces with some labels; without a selector for
    /// namespaces, in the policy's namespace.
    Pods {
        pods: Selector<'d>,
        namespaces: Option<Selector<'d>>,
    },
}

impl<'d> Policy<'d> {
    /// Parses a policy. A rule with a problem is recorded as a problem and left out.
    pub(super) fn parse(
        object: Item<'d>,
        builder: &mut Builder<'_>,
    ) -> Result<Policy<'d>, Fault<'d>> {
        let (namespace, name) = full_name(object)?;
        let spec = object.require("spec")?;
        spec.check_keys(&SPEC_KEYS)?;
        let mut policy = Policy {
            item: object,
            namespace,
            name,
            selector: optional_selector(spec, "podSelector")?.unwrap_or(Selector::ALL),
            has_idle_rules: false,
            ingress: None,
            egress: None,
        };
        let directions = directions(spec)?;
        for direction in Direction::BOTH {
            let is_active = directions.contains(&direction);
            let rules = rules(spec, direction, builder)?;
            policy.has_idle_rules |= !is_active && !rules.is_empty();
            let rules = is_active.then_some(rules);
            match direction {
                Direction::In => policy.ingress = rules,
                Direction::Out => policy.egress = rules,
            }
        }
        Ok(policy)
    }

    /// Returns the namespace and name.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Returns the rules of a direction. `None` if the policy has no effect on it.
    pub(super) fn rules(&self, direction: Direction) -> Option<&[Rule<'d>]> {
        match direction {
            Direction::In => self.ingress.as_deref(),
            Direction::Out => self.egress.as_deref(),
        }
    }
}

/// The field of `spec` with the rules of a direction.
pub(super) fn key(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "ingress",
        Direction::Out => "egress",
    }
}

fn directions(spec: Item<'_>) -> Result<Vec<Direction>, Fault<'_>> {
    let types = spec.list("policyTypes")?;
    if types.is_empty() {
        return Ok(match spec.list("egress")?.is_empty() {
            true => vec![Direction::In],
            false => Direction::BOTH.to_vec(),
        });
    }
    let directions = types.into_iter().map(|item| match item.string()? {
        "Ingress" => Ok(Direction::In),
        "Egress" => Ok(Direction::Out),
        _ => Err(item.unexpected("Ingress or Egress")),
    });
    directions.collect()
}

fn rules<'d>(
    spec: Item<'d>,
    direction: Direction,
    builder: &mut Builder<'_>,
) -> Result<Vec<Rule<'d>>, Fault<'d>> {
    let mut rules = Vec::new();
    for item in spec.list(key(direction))? {
        match parse_rule(item, direction) {
            Ok(rule) => rules.push(rule),
            Err(fault) => item.report(builder, fault),
        }
    }
    Ok(rules)
}

fn parse_rule(item: Item<'_>, direction: Direction) -> Result<Rule<'_>, Fault<'_>> {
    let peers_key = match direction {
        Direction::In => "from",
        Direction::Out => "to",
    };
    item.check_keys(&[peers_key, "ports"])?;
    let peers = item.list(peers_key)?.into_iter();
    let peers = peers.map(|peer| parse_peer(peer, direction));
    let ports = item.list("ports")?.into_iter().map(parse_port);
    Ok(Rule {
        item,
        peers: peers.collect::<Result<_, _>>()?,
        ports: ports.collect::<Result<_, _>>()?,
    })
}

fn optional_selector<'d>(item: Item<'d>, key: &str) -> Result<Option<Selector<'d>>, Fault<'d>> {
    item.get(key).map(Selector::parse).transpose()
}

fn parse_peer(item: Item<'_>, direction: Direction) -> Result<Peer<'_>, Fault<'_>> {
    item.check_keys(&["podSelector", "namespaceSelector", "ipBlock"])?;
    let pods = optional_selector(item, "podSelector")?;
    let namespaces = optional_selector(item, "namespaceSelector")?;
    match (item.get("ipBlock"), &pods, &namespaces) {
        (Some(block), None, None) => parse_block(block, direction),
        (Some(block), ..) => Err(block.fault(
            "a network in a peer with selectors",
            "a peer with ipBlock alone",
        )),
        (None, None, None) => Err(item.fault(
            "a peer without a selector",
            "a value of podSelector, namespaceSelector or ipBlock",
        )),
        (None, ..) => Ok(Peer::Pods {
            pods: pods.unwrap_or(Selector::ALL),
            namespaces,
        }),
    }
}

fn parse_block(item: Item<'_>, direction: Direction) -> Result<Peer<'_>, Fault<'_>> {
    item.check_keys(&["cidr", "except"])?;
    let field = match direction {
        Direction::In => Field::Source,
        Direction::Out => Field::Destination,
    };
    let cidr = item.require("cidr")?;
    let (family, network) = parse_cidr(cidr, None)?;
    let mut text = format!("ipBlock {}", cidr.string()?);
    let mut exceptions = Vec::new();
    for exception in item.list("except")? {
        let (exception_family, values) = parse_cidr(exception, None)?;
        if exception_family != family || !is_smaller(&values, &network) {
            return Err(exception.unexpected(format!("a network inside of {}", cidr.string()?)));
        }
        text.push_str(if exceptions.is_empty() {
            " except "
        } else {
            ", "
        });
        text.push_str(exception.string()?);
        exceptions.push((family, values));
    }
    let exceptions = PacketSet::of_addresses(field, merge_networks(&exceptions));
    let networks = PacketSet::of_addresses(field, [(family, network)]);
    let networks = networks.subtract(&exceptions);
    let networks = networks.map_err(|error| item.fault(error.to_string(), "fewer exceptions"))?;
    Ok(Peer::Block { networks, text })
}

/// True if the first network is a part of the second, and not all of it.
fn is_smaller(inner: &Values, outer: &Values) -> bool {
    match (*inner, *outer) {
        (Values::Bits { value, mask }, Values::Bits { value: v, mask: m }) => {
            mask != m && mask & m == m && value & m == v
        }
        _ => false,
    }
}
