//! Pods and namespaces.

use std::collections::{HashMap, HashSet};

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::full_name;
use super::selector::{Labels, NAME_LABEL, Selector, labels};
use crate::builder::Builder;
use crate::document::Item;
use crate::networks::{Network, parse_address};
use crate::services::parse_protocol;

/// The protocols of ports.
const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// A port of a container that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NamedPort<'d> {
    pub(super) name: &'d str,
    pub(super) protocol: u8,
    pub(super) number: u16,
}

/// A pod that has packets of its own.
#[derive(Debug)]
pub(super) struct Pod<'d> {
    pub(super) item: Item<'d>,
    pub(super) namespace: &'d str,
    pub(super) name: &'d str,
    /// The name of the pod's owner; of a Deployment instead of its ReplicaSet.
    pub(super) owner: Option<&'d str>,
    pub(super) labels: Labels<'d>,
    pub(super) addresses: Vec<Network>,
    pub(super) ports: Vec<NamedPort<'d>>,
}

/// The pods and namespaces of a file.
#[derive(Debug, Default)]
pub(super) struct Cluster<'d> {
    pub(super) pods: Vec<Pod<'d>>,
    pod_names: HashSet<(&'d str, &'d str)>,
    namespaces: HashMap<&'d str, Labels<'d>>,
    /// True if there are pods, also pods that were left out.
    pub(super) has_pods: bool,
    /// True if a pod has an address. Pods of manifests have none.
    pub(super) has_addresses: bool,
    /// True if a pod has no address.
    has_pods_without_address: bool,
}

impl<'d> Cluster<'d> {
    /// Adds a namespace.
    pub(super) fn add_namespace(&mut self, object: Item<'d>) -> Result<(), Fault<'d>> {
        let name = object.require("metadata")?.require("name")?;
        let mut labels = labels(object)?;
        labels.insert(NAME_LABEL, name.string()?);
        match self.namespaces.insert(name.string()?, labels) {
            None => Ok(()),
            Some(_) => Err(name.fault(
                format!("a second Namespace {}", quoted(name.string()?)),
                "each object once",
            )),
        }
    }

    /// Adds a pod, unless it has no packets of its own.
    pub(super) fn add_pod(
        &mut self,
        object: Item<'d>,
        builder: &mut Builder<'_>,
    ) -> Result<(), Fault<'d>> {
        self.has_pods = true;
        let (namespace, name) = full_name(object)?;
        if !self.pod_names.insert((namespace, name)) {
            return Err(object.fault(
                format!("a second Pod {}", quoted(&format!("{namespace}/{name}"))),
                "each object once",
            ));
        }
        let spec = object.get("spec");
        let is_on_host = spec.and_then(|spec| spec.get("hostNetwork"));
        if is_on_host.map(Item::boolean).transpose()? == Some(true) {
            builder.note("policies do not apply to pods in the network of their host".to_owned());
            return Ok(());
        }
        let status = object.get("status");
        let phase = status.and_then(|status| status.get("phase"));
        if let Some("Succeeded" | "Failed") = phase.map(Item::string).transpose()? {
            builder.note("pods that have ended were left out".to_owned());
            return Ok(());
        }
        let addresses = match status {
            Some(status) => addresses(status)?,
            None => Vec::new(),
        };
        match addresses.is_empty() {
            true => self.has_pods_without_address = true,
            false => self.has_addresses = true,
        }
        let labels = labels(object)?;
        self.pods.push(Pod {
            item: object,
            namespace,
            name,
            owner: owner(object, &labels)?,
            labels,
            addresses,
            ports: match spec {
                Some(spec) => ports(spec)?,
                None => Vec::new(),
            },
        });
        Ok(())
    }

    /// Notes pods without addresses.
    pub(super) fn note_addresses(&self, builder: &mut Builder<'_>) {
        match (self.has_addresses, self.has_pods_without_address) {
            (true, true) => {
                builder.note("pods without an address are peers of no packets".to_owned());
            }
            (false, true) => builder.note(
                "no pod of the file has an address, so peers with selectors are conditions"
                    .to_owned(),
            ),
            (_, false) => {}
        }
    }

    /// True or false if a selector selects a namespace. `None` if that depends on labels
    /// which are not in the file.
    pub(super) fn selects_namespace(
        &self,
        selector: &Selector<'_>,
        namespace: &str,
    ) -> Option<bool> {
        match self.namespaces.get(namespace) {
            Some(labels) => Some(selector.selects(labels)),
            None => selector.selects_unknown(namespace),
        }
    }
}

/// Returns the addresses of a pod.
fn addresses(status: Item<'_>) -> Result<Vec<Network>, Fault<'_>> {
    let addresses = status.list("podIPs")?.into_iter();
    let addresses = addresses.map(|address| parse_address(address.require("ip")?));
    let mut addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    if let Some(address) = status.get("podIP") {
        let address = parse_address(address)?;
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// Returns the name of the owner that controls a pod.
fn owner<'d>(pod: Item<'d>, labels: &Labels<'d>) -> Result<Option<&'d str>, Fault<'d>> {
    for owner in pod.require("metadata")?.list("ownerReferences")? {
        let is_controller = owner.get("controller").map(Item::boolean).transpose()?;
        if is_controller != Some(true) {
            continue;
        }
        let name = owner.require("name")?.string()?;
        let hash = labels.get("pod-template-hash");
        let is_replica_set = owner.optional_string("kind")? == Some("ReplicaSet");
        let deployment = hash.filter(|_| is_replica_set).and_then(|hash| {
            let name = name.strip_suffix(hash)?;
            name.strip_suffix('-')
        });
        return Ok(Some(deployment.unwrap_or(name)));
    }
    Ok(None)
}

/// Returns the named ports of the containers that run as long as the pod.
fn ports(spec: Item<'_>) -> Result<Vec<NamedPort<'_>>, Fault<'_>> {
    let mut containers = spec.list("containers")?;
    for container in spec.list("initContainers")? {
        if container.optional_string("restartPolicy")? == Some("Always") {
            containers.push(container);
        }
    }
    let mut ports = Vec::new();
    for container in containers {
        for port in container.list("ports")? {
            let Some(name) = port.optional_string("name")? else {
                continue;
            };
            let number = port.require("containerPort")?.integer(1, 65535)?;
            ports.push(NamedPort {
                name,
                protocol: protocol(port)?.1,
                number: u16::try_from(number).expect("at most 65535"),
            });
        }
    }
    Ok(ports)
}

/// Returns the protocol of a port of a container or policy: its name and number.
pub(super) fn protocol(port: Item<'_>) -> Result<(&str, u8), Fault<'_>> {
    let Some(item) = port.get("protocol") else {
        return Ok((PROTOCOLS[0], 6));
    };
    let name = item.string()?;
    let number = parse_protocol(&name.to_ascii_lowercase());
    match number.filter(|_| PROTOCOLS.contains(&name)) {
        Some(number) => Ok((name, number)),
        None => Err(item.unexpected(PROTOCOLS.join(", "))),
    }
}
