//! Network policies of Kubernetes.
//!
//! The text is YAML or JSON: objects, or lists of objects as `kubectl get -o yaml` prints
//! them. Use `kubectl get networkpolicies,pods,namespaces -A -o yaml`.
//!
//! # Lists
//! With pods in the file, pods have two lists each: `NAMESPACE/POD/in` and
//! `NAMESPACE/POD/out`. A list permits the packets that any policy permits for the pod.
//! If a policy selects the pod for the direction, all other packets are denied; otherwise all
//! packets are permitted. Pods with the same owner and equal lists share their lists, which
//! have the owner's name; for a ReplicaSet of a Deployment, the name of the Deployment. Pods
//! without an owner that have equal lists share the lists of the first of them. If pods of an
//! owner have different lists, each list has the name of its first pod. The comment of the
//! last rule of a list names its pods.
//!
//! Without pods, a policy has the lists `NAMESPACE/POLICY/in` and `NAMESPACE/POLICY/out`, as
//! if it were the only policy. Its peers with selectors are conditions.
//!
//! # Semantics
//! | construct | meaning |
//! |---|---|
//! | `ingress: []`, or no value | permits nothing |
//! | `ingress: [{}]` | permits everything |
//! | `from: []`, or no value | all peers; `ports` in the same way |
//! | `podSelector: {}` | all pods, of the policy's namespace if there is no `namespaceSelector` |
//! | `podSelector` in a peer | the addresses of the pods in the file |
//! | `ipBlock` | its network without the networks of `except` |
//! | no `policyTypes` | Ingress, and Egress if there are egress rules |
//! | a port by name | the ports of containers of the destination pods that have this name |
//! | replies | the states `established` and `related` are permitted |
//!
//! If no pod of the file has an address, as in manifests, peers with selectors are conditions
//! too. A namespace that is not in the file has the label `kubernetes.io/metadata.name` only; a
//! peer that needs another label is a condition. Pods in the network of their host, and pods
//! that have ended, are left out.
//!
//! Not modelled: services (rules apply after their addresses are replaced), traffic between a
//! node and its pods, which is always permitted, and other kinds of policies, which are
//! reported by name. Kubernetes leaves open what happens to protocols other than TCP, UDP and
//! SCTP; here a rule without ports permits them, and a deny denies them.

use classyard_text::Fault;
use classyard_text::line::quoted;
use classyard_workload::diagnostic::ReadError;

use crate::builder::Builder;
use crate::document::{Document, Item};

mod cluster;
mod lists;
mod peers;
mod policy;
mod ports;
mod selector;

use cluster::Cluster;
use policy::Policy;

/// The maximum number of lists of objects inside each other.
const MAX_LISTS: usize = 4;

/// The kind of policies that are read, and its group and version.
const POLICY_KIND: (&str, &str) = ("NetworkPolicy", "networking.k8s.io/v1");

/// True if a text has objects of a kind whose name ends with `NetworkPolicy`.
pub(crate) fn is_format(text: &str) -> bool {
    text.contains("apiVersion") && text.contains("NetworkPolicy")
}

/// A direction of packets, as seen from a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

impl Direction {
    const BOTH: [Direction; 2] = [Direction::In, Direction::Out];

    /// The end of names of lists.
    fn suffix(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
        }
    }

    fn peer_name(self) -> &'static str {
        match self {
            Direction::In => "source",
            Direction::Out => "destination",
        }
    }
}

/// Reads policies.
pub(crate) fn read(file: &str, text: &str, builder: &mut Builder<'_>) -> Result<(), ReadError> {
    let Some(document) = Document::read(text, builder) else {
        return Ok(());
    };
    let mut objects = Objects::default();
    for root in document.roots() {
        if let Err(fault) = objects.add(root, None, 0, builder) {
            root.report(builder, fault);
            objects.has_faults = true;
        }
    }
    if !objects.has_policies && !objects.has_faults {
        return Err(ReadError::Format {
            file: file.to_owned(),
            found: "no NetworkPolicy".to_owned(),
            expected: "the output of `kubectl get networkpolicies,pods,namespaces -A -o yaml`"
                .to_owned(),
        });
    }
    lists::add(file, &objects.policies, &objects.cluster, builder)
}

/// The type of an object.
#[derive(Clone, Copy, Debug)]
struct ObjectType<'d> {
    kind: &'d str,
    /// The group and version.
    version: Option<&'d str>,
}

/// True for objects that are read, and for all kinds of policies. The kind of objects of a
/// `List` is empty.
fn is_relevant(kind: &str) -> bool {
    ["", "Pod", "Namespace"].contains(&kind) || kind.ends_with(POLICY_KIND.0)
}

#[derive(Default)]
struct Objects<'d> {
    policies: Vec<Policy<'d>>,
    cluster: Cluster<'d>,
    /// True if there are policies, also faulty ones.
    has_policies: bool,
    has_faults: bool,
}

impl<'d> Objects<'d> {
    /// Adds an object, or the objects of a list. `of_list` is the type of the objects of the
    /// list around it.
    fn add(
        &mut self,
        object: Item<'d>,
        of_list: Option<ObjectType<'d>>,
        depth: usize,
        builder: &mut Builder<'_>,
    ) -> Result<(), Fault<'d>> {
        if object.is_null() {
            return Ok(());
        }
        if depth > MAX_LISTS {
            return Err(object.fault("lists inside of lists", "a list of objects"));
        }
        if object.is_sequence() {
            return self.add_all(object, None, depth, builder);
        }
        object.check_mapping()?;
        let own_kind = object.optional_string("kind")?;
        let version = object.optional_string("apiVersion")?;
        let Some(kind) = own_kind.or(of_list.map(|of_list| of_list.kind)) else {
            return Err(object.fault("no `kind`", "an object of Kubernetes"));
        };
        let version = version.or(of_list.and_then(|of_list| of_list.version));
        if let Some(kind) = kind.strip_suffix("List").filter(|kind| is_relevant(kind)) {
            let Some(items) = object.get("items") else {
                return Ok(());
            };
            let of_list = (!kind.is_empty()).then_some(ObjectType { kind, version });
            return self.add_all(items, of_list, depth, builder);
        }
        match kind {
            "Pod" => self.cluster.add_pod(object, builder),
            "Namespace" => self.cluster.add_namespace(object),
            _ if kind.ends_with(POLICY_KIND.0) => {
                self.has_policies = true;
                self.add_policy(object, ObjectType { kind, version }, builder)
            }
            _ => Ok(()),
        }
    }

    fn add_all(
        &mut self,
        items: Item<'d>,
        of_list: Option<ObjectType<'d>>,
        depth: usize,
        builder: &mut Builder<'_>,
    ) -> Result<(), Fault<'d>> {
        for item in items.elements()? {
            if let Err(fault) = self.add(item, of_list, depth + 1, builder) {
                item.report(builder, fault);
                self.has_faults = true;
            }
        }
        Ok(())
    }

    fn add_policy(
        &mut self,
        object: Item<'d>,
        ObjectType { kind, version }: ObjectType<'_>,
        builder: &mut Builder<'_>,
    ) -> Result<(), Fault<'d>> {
        let Some(version) = version else {
            return Err(object.fault("no `apiVersion`", quoted(POLICY_KIND.1)));
        };
        if (kind, version) != POLICY_KIND {
            let group = version.split('/').next().unwrap_or(version);
            return Err(object.unsupported(
                format!("{kind} of {group}"),
                format!("{} of {}", POLICY_KIND.0, POLICY_KIND.1),
            ));
        }
        let policy = Policy::parse(object, builder)?;
        self.policies.push(policy);
        Ok(())
    }
}

/// The namespace of objects without one.
const DEFAULT_NAMESPACE: &str = "default";

/// Returns the namespace and name of an object.
fn full_name<'d>(object: Item<'d>) -> Result<(&'d str, &'d str), Fault<'d>> {
    let metadata = object.require("metadata")?;
    let namespace = metadata.optional_string("namespace")?;
    let name = metadata.require("name")?.string()?;
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    Ok((namespace.unwrap_or(DEFAULT_NAMESPACE), name))
}
