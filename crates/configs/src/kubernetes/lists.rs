//! Lists of rules for groups of pods. Without pods, each policy has lists.

use std::collections::{HashMap, HashSet};

use classyard_text::line::{counted, counted_verb};
use classyard_workload::diagnostic::ReadError;

use super::Direction;
use super::cluster::{Cluster, NamedPort};
use super::peers::{Member, ResolvedPeer, Subject, resolve};
use super::policy::{Peer, Policy, Rule, key};
use super::ports::PortNumbers;
use super::selector::Selector;
use crate::builder::{Builder, DENY, PERMIT};
use crate::document::Item;
use crate::notes::Names;
use crate::packets::PacketSet;
use crate::stateful;

/// The maximum number of comparisons of labels: of each selector with each pod.
const MAX_COMPARISONS: u64 = 1 << 26;

/// The maximum number of networks of all peers.
const MAX_NETWORKS: usize = 1 << 22;

/// The maximum number of statements: peers and ports of rules, for each list.
const MAX_STATEMENTS: usize = 1 << 20;

/// A limit was reached.
#[derive(Debug)]
struct LimitReached {
    found: String,
}

/// Adds the lists of all pods or policies.
pub(super) fn add(
    file: &str,
    policies: &[Policy<'_>],
    cluster: &Cluster<'_>,
    builder: &mut Builder<'_>,
) -> Result<(), ReadError> {
    let policies = distinct_policies(policies, builder);
    let to_error = |limit: LimitReached| ReadError::Format {
        file: file.to_owned(),
        found: limit.found,
        expected: "a file with fewer policies, rules or pods".to_owned(),
    };
    check_comparisons(&policies, cluster).map_err(to_error)?;
    note_idle_rules(&policies, builder);
    let mut writer = Writer {
        file,
        rules: resolve_all(&policies, cluster).map_err(to_error)?,
        policies,
        cluster,
        statements: 0,
    };
    match cluster.has_pods {
        true => writer.add_pods(builder),
        false => writer.add_policies(builder),
    }
}

/// Returns the policies. A second policy with the same name is a problem.
fn distinct_policies<'p, 'd>(
    policies: &'p [Policy<'d>],
    builder: &mut Builder<'_>,
) -> Vec<&'p Policy<'d>> {
    let mut names = HashSet::new();
    let mut distinct = Vec::new();
    for policy in policies {
        if names.insert((policy.namespace, policy.name)) {
            distinct.push(policy);
            continue;
        }
        let problem = format!(
            "a second NetworkPolicy `{}/{}`",
            policy.namespace, policy.name
        );
        let fault = policy.item.fault(problem, "each object once");
        policy.item.report(builder, fault);
    }
    distinct
}

/// Notes the policies with rules of a direction that `policyTypes` lacks.
fn note_idle_rules(policies: &[&Policy<'_>], builder: &mut Builder<'_>) {
    let mut names = Names::default();
    for policy in policies.iter().filter(|policy| policy.has_idle_rules) {
        names.add(policy.full_name());
    }
    if names.count() > 0 {
        builder.note(format!(
            "`policyTypes` lacks the direction of some rules, so they have no effect: {names}"
        ));
    }
}

/// Checks that comparing all selectors with all pods takes no excessive time.
fn check_comparisons(policies: &[&Policy<'_>], cluster: &Cluster<'_>) -> Result<(), LimitReached> {
    let peer_cost = |peer: &Peer<'_>| match peer {
        Peer::Block { .. } => 0,
        Peer::Pods { pods, namespaces } => {
            pods.cost() + namespaces.as_ref().map_or(0, Selector::cost)
        }
    };
    let rule_cost = |rule: &Rule<'_>| {
        let is_named = |numbers: &PortNumbers<'_>| matches!(numbers, PortNumbers::Named(_));
        let named = rule
            .ports
            .iter()
            .filter(|port| is_named(&port.numbers))
            .count();
        let peers = rule.peers.len().max(1);
        rule.peers.iter().map(peer_cost).sum::<u64>() + named as u64 * peers as u64
    };
    let policy_cost = |policy: &&Policy<'_>| {
        let rules = Direction::BOTH
            .iter()
            .filter_map(|&direction| policy.rules(direction));
        policy.selector.cost() + rules.flatten().map(rule_cost).sum::<u64>()
    };
    let cost = policies.iter().map(policy_cost).sum::<u64>();
    match cost.saturating_mul(cluster.pods.len() as u64) > MAX_COMPARISONS {
        false => Ok(()),
        true => Err(LimitReached {
            found: format!(
                "policies and pods with more than {MAX_COMPARISONS} comparisons of labels"
            ),
        }),
    }
}

/// The rules of a policy in each direction, with the packets of their peers.
type PolicyRules<'a> = [Vec<(&'a Rule<'a>, Vec<ResolvedPeer>)>; 2];

fn resolve_all<'a>(
    policies: &[&'a Policy<'a>],
    cluster: &Cluster<'_>,
) -> Result<Vec<PolicyRules<'a>>, LimitReached> {
    let mut networks = 0;
    let mut all_rules = Vec::with_capacity(policies.len());
    for policy in policies {
        let mut of_policy = [Vec::new(), Vec::new()];
        for (direction, resolved) in Direction::BOTH.into_iter().zip(&mut of_policy) {
            for rule in policy.rules(direction).unwrap_or(&[]) {
                let peers = resolve(policy, rule, direction, cluster);
                networks += peers.iter().map(ResolvedPeer::networks).sum::<usize>();
                if networks > MAX_NETWORKS {
                    return Err(LimitReached {
                        found: format!("peers with more than {MAX_NETWORKS} networks"),
                    });
                }
                resolved.push((rule, peers));
            }
        }
        all_rules.push(of_policy);
    }
    Ok(all_rules)
}

/// Pods that share their lists, by their numbers in the cluster, and equal properties of them.
#[derive(Debug)]
struct PodGroup<'a> {
    key: GroupKey<'a>,
    pods: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct GroupKey<'a> {
    namespace: &'a str,
    owner: Option<&'a str>,
    /// The policies that select the pods.
    selecting: Vec<usize>,
    /// The ports that policies name.
    ports: Vec<NamedPort<'a>>,
}

struct Writer<'a> {
    file: &'a str,
    policies: Vec<&'a Policy<'a>>,
    /// By policy.
    rules: Vec<PolicyRules<'a>>,
    cluster: &'a Cluster<'a>,
    statements: usize,
}

/// A list to write.
struct List<'a> {
    /// The pod or policy.
    item: Item<'a>,
    name: String,
    direction: Direction,
    /// The policies that select the pods.
    policies: &'a [usize],
    subject: Subject<'a>,
    comment: Option<String>,
}

impl<'a> Writer<'a> {
    fn add_policies(&mut self, builder: &mut Builder<'_>) -> Result<(), ReadError> {
        for number in 0..self.policies.len() {
            let policy = self.policies[number];
            for direction in Direction::BOTH {
                if policy.rules(direction).is_none() {
                    continue;
                }
                let suffix = direction.suffix();
                self.add_list(
                    &List {
                        item: policy.item,
                        name: format!("{}/{suffix}", policy.full_name()),
                        direction,
                        policies: &[number],
                        subject: Subject::Unknown,
                        comment: None,
                    },
                    builder,
                )?;
            }
        }
        builder.note(
            "without pods in the file, each policy is read as if it were the only one, and its \
             selectors are conditions"
                .to_owned(),
        );
        Ok(())
    }

    fn add_pods(&mut self, builder: &mut Builder<'_>) -> Result<(), ReadError> {
        self.cluster.note_addresses(builder);
        let groups = self.groups();
        self.note_unused_policies(&groups, builder);
        let mut groups_of_owner: HashMap<_, usize> = HashMap::new();
        for PodGroup { key, .. } in &groups {
            *groups_of_owner
                .entry((key.namespace, key.owner))
                .or_default() += 1;
        }
        let pods = &self.cluster.pods;
        let pod_names: HashSet<_> = pods.iter().map(|pod| (pod.namespace, pod.name)).collect();
        for PodGroup { key, pods: members } in &groups {
            let first = &self.cluster.pods[members[0]];
            let is_usable = |owner: &&str| {
                groups_of_owner[&(key.namespace, key.owner)] == 1
                    && !pod_names.contains(&(key.namespace, *owner))
            };
            let name = key.owner.filter(is_usable).unwrap_or(first.name);
            for direction in Direction::BOTH {
                let policies = self.acting(key, direction);
                self.add_list(
                    &List {
                        item: first.item,
                        name: format!("{}/{name}/{}", key.namespace, direction.suffix()),
                        direction,
                        policies: &policies,
                        subject: Subject::Pods(&key.ports),
                        comment: Some(self.comment(members)),
                    },
                    builder,
                )?;
            }
        }
        builder.note(format!(
            "{} lists of {}",
            counted_verb(
                groups.len(),
                "group",
                "of pods shares the",
                "of pods share the"
            ),
            counted(self.cluster.pods.len(), "pod"),
        ));
        Ok(())
    }

    /// Returns the groups of pods, by the namespace and name of their first pod.
    fn groups(&self) -> Vec<PodGroup<'a>> {
        let mut by_namespace: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, policy) in self.policies.iter().enumerate() {
            by_namespace
                .entry(policy.namespace)
                .or_default()
                .push(number);
        }
        let pods = &self.cluster.pods;
        let mut order: Vec<usize> = (0..pods.len()).collect();
        order.sort_unstable_by_key(|&pod| (pods[pod].namespace, pods[pod].name));
        let mut groups: Vec<PodGroup<'a>> = Vec::new();
        let mut numbers = HashMap::new();
        for pod in order {
            let policies = by_namespace.get(pods[pod].namespace);
            let key = self.group_key(pod, policies.map_or(&[], Vec::as_slice));
            let number = *numbers.entry(key.clone()).or_insert(groups.len());
            if number == groups.len() {
                let pods = Vec::new();
                groups.push(PodGroup { key, pods });
            }
            groups[number].pods.push(pod);
        }
        groups
    }

    /// Returns the policies that act on the pods of a group in a direction.
    fn acting(&self, key: &GroupKey<'_>, direction: Direction) -> Vec<usize> {
        let acts = |policy: &usize| self.policies[*policy].rules(direction).is_some();
        key.selecting.iter().copied().filter(acts).collect()
    }

    /// Returns the properties of a pod that decide its lists.
    fn group_key(&self, pod: usize, policies: &[usize]) -> GroupKey<'a> {
        let pod = &self.cluster.pods[pod];
        let selecting = policies.iter().copied();
        let selecting =
            selecting.filter(|&policy| self.policies[policy].selector.selects(&pod.labels));
        let selecting: Vec<usize> = selecting.collect();
        let mut ports = Vec::new();
        if !pod.ports.is_empty() {
            let rules = selecting
                .iter()
                .flat_map(|&policy: &usize| &self.rules[policy][0]);
            let named = rules.flat_map(|(rule, _)| &rule.ports);
            for port in named {
                let PortNumbers::Named(name) = port.numbers else {
                    continue;
                };
                let is_same =
                    |own: &&NamedPort<'_>| own.name == name && own.protocol == port.protocol;
                ports.extend(pod.ports.iter().copied().filter(|own| is_same(&own)));
            }
        }
        ports.sort_unstable_by_key(|port: &NamedPort<'_>| (port.name, port.protocol, port.number));
        ports.dedup();
        GroupKey {
            namespace: pod.namespace,
            owner: pod.owner,
            selecting,
            ports,
        }
    }

    /// Notes the policies that select no pod.
    fn note_unused_policies(&self, groups: &[PodGroup<'_>], builder: &mut Builder<'_>) {
        let used = groups.iter().flat_map(|group| &group.key.selecting);
        let used: HashSet<usize> = used.copied().collect();
        let mut unused = Names::default();
        for (number, policy) in self.policies.iter().enumerate() {
            if !used.contains(&number) {
                unused.add(policy.full_name());
            }
        }
        if unused.count() > 0 {
            builder.note(format!("policies that select no pod of the file: {unused}"));
        }
    }

    /// Returns the number and the first names of pods.
    fn comment(&self, pods: &[usize]) -> String {
        let mut names = Names::default();
        for &pod in pods {
            names.add(self.cluster.pods[pod].name);
        }
        format!("{}: {names}", counted(pods.len(), "pod"))
    }

    fn add_list(&mut self, list: &List<'_>, builder: &mut Builder<'_>) -> Result<(), ReadError> {
        let of_list = match builder.list(&list.name) {
            Ok(of_list) => of_list,
            Err(fault) => {
                let fault = list
                    .item
                    .fault(fault.found(), "another name for one of the objects");
                list.item.report(builder, fault);
                return Ok(());
            }
        };
        let (text, action) = match list.policies.is_empty() {
            true => ("permit all packets: no policy selects the pod", PERMIT),
            false => ("deny all other packets", DENY),
        };
        if action == DENY {
            stateful::permit_replies(list.item, &list.name, &of_list, builder)?;
        }
        for &policy in list.policies {
            self.add_rules(list, policy, &of_list, builder)?;
        }
        let source = list.item.source(builder, text, &list.name);
        builder.source_mut(source).is_implied = true;
        builder.source_mut(source).comment.clone_from(&list.comment);
        builder.add(source, of_list, action)
    }

    /// Adds the rules of one policy to a list.
    fn add_rules(
        &mut self,
        list: &List<'_>,
        policy: usize,
        of_list: &PacketSet,
        builder: &mut Builder<'_>,
    ) -> Result<(), ReadError> {
        let (namespace, name) = (self.policies[policy].namespace, self.policies[policy].name);
        let direction = list.direction;
        let (index, preposition) = match direction {
            Direction::In => (0, "from"),
            Direction::Out => (1, "to"),
        };
        let start = format!("{namespace}/{name} {} {preposition}", key(direction));
        let mut statements = self.statements;
        for (rule, peers) in &self.rules[policy][index] {
            let ports: Vec<_> = match rule.ports.len() {
                0 => vec![None],
                ports => (0..ports).map(Some).collect(),
            };
            let peers = peers
                .iter()
                .flat_map(|peer| ports.iter().map(move |port| (peer, *port)));
            for (peer, port) in peers {
                statements += 1;
                if statements > MAX_STATEMENTS {
                    return Err(self.too_many_statements());
                }
                let text = match port {
                    Some(port) => {
                        let port = rule.ports[port].text();
                        format!("{start} {}, {port}", peer.text)
                    }
                    None => format!("{start} {}", peer.text),
                };
                let source = rule.item.source(builder, &text, &list.name);
                let member = Member {
                    rule,
                    peer,
                    port,
                    direction,
                };
                let packets = member.packets(list.subject, source, builder);
                let packets = packets.and_then(|packets| {
                    let packets = packets.intersect(of_list);
                    packets.map_err(|error| rule.item.fault(error.to_string(), "a simpler rule"))
                });
                match packets {
                    Ok(packets) => builder.add(source, packets, PERMIT)?,
                    Err(fault) => rule.item.report(builder, fault),
                }
            }
        }
        self.statements = statements;
        Ok(())
    }

    fn too_many_statements(&self) -> ReadError {
        ReadError::Format {
            file: self.file.to_owned(),
            found: format!("more than {MAX_STATEMENTS} peers and ports of all lists"),
            expected: "a file with fewer policies, rules or pods".to_owned(),
        }
    }
}
