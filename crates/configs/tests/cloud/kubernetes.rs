//! Network policies, written for these tests.

use classyard_configs::ConfigFormat::Kubernetes;

use crate::helper::{Loaded, load, mutate};

const CLUSTER: &str = r#"apiVersion: v1
kind: List
items:
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata:
    name: web
    namespace: shop
  spec:
    podSelector:
      matchLabels:
        app: web
    policyTypes:
    - Ingress
    - Egress
    ingress:
    - from:
      - ipBlock:
          cidr: 0.0.0.0/0
          except:
          - 10.0.0.0/8
          - 192.0.2.0/24
      - ipBlock:
          cidr: 2001:db8::/32
          except: ["2001:db8:1::/48"]
      ports:
      - port: http
      - protocol: UDP
        port: 8000
        endPort: 8010
    - from:
      - namespaceSelector:
          matchLabels:
            team: ops
        podSelector:
          matchExpressions:
          - {key: app, operator: In, values: [probe, scan]}
    egress:
    - to:
      - podSelector: {matchLabels: {app: db}}
      ports:
      - port: sql
    - ports:
      - {protocol: UDP, port: 53}
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {name: default-deny, namespace: shop}
  spec:
    podSelector: {}
    policyTypes: [Ingress]
- apiVersion: v1
  kind: Namespace
  metadata: {name: shop}
- apiVersion: v1
  kind: Namespace
  metadata:
    name: ops
    labels: {team: ops}
- apiVersion: v1
  kind: Service
  metadata: {name: web, namespace: shop}
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-6d5f-aaaaa
    namespace: shop
    labels: {app: web, pod-template-hash: 6d5f}
    ownerReferences:
    - {kind: ReplicaSet, name: web-6d5f, controller: true}
  spec:
    containers:
    - name: web
      ports:
      - {name: http, containerPort: 8080}
      - {name: metrics, containerPort: 9090}
  status:
    podIP: 10.1.0.1
    podIPs:
    - ip: 10.1.0.1
    - ip: 2001:db8:5::1
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-6d5f-bbbbb
    namespace: shop
    labels: {app: web, pod-template-hash: 6d5f}
    ownerReferences:
    - {kind: ReplicaSet, name: web-6d5f, controller: true}
  spec:
    containers:
    - name: web
      ports:
      - {name: http, containerPort: 8080}
  status:
    podIP: 10.1.0.2
- apiVersion: v1
  kind: Pod
  metadata: {name: db-0, namespace: shop, labels: {app: db}}
  spec:
    containers:
    - ports:
      - {name: sql, containerPort: 5432}
  status: {podIP: 10.1.1.1}
- apiVersion: v1
  kind: Pod
  metadata: {name: db-1, namespace: shop, labels: {app: db}}
  spec:
    containers:
    - ports:
      - {name: sql, containerPort: 5433}
  status: {podIP: 10.1.1.2}
- apiVersion: v1
  kind: Pod
  metadata: {name: probe, namespace: ops, labels: {app: probe}}
  spec: {}
  status: {podIP: 10.2.0.1}
- apiVersion: v1
  kind: Pod
  metadata: {name: scan, namespace: shop, labels: {app: scan}}
  status: {podIP: 10.1.2.1}
- apiVersion: v1
  kind: Pod
  metadata: {name: node-agent, namespace: ops, labels: {app: probe}}
  spec: {hostNetwork: true}
  status: {podIP: 10.3.0.1}
- apiVersion: v1
  kind: Pod
  metadata: {name: job, namespace: ops, labels: {app: probe}}
  status: {podIP: 10.2.0.9, phase: Succeeded}
"#;

#[test]
fn pods_have_the_union_of_their_policies() {
    let loaded = load(CLUSTER, Kubernetes);
    let lists = [
        "ops/probe/in",
        "ops/probe/out",
        "shop/db-0/in",
        "shop/db-0/out",
        "shop/web/in",
        "shop/web/out",
    ];
    assert_eq!(loaded.lists(), lists);
    loaded.check(
        "shop/web/in",
        "permit 17 src=8.8.8.8 dst=10.1.0.1 proto=tcp dport=8080
         deny 62 src=8.8.8.8 dst=10.1.0.1 proto=tcp dport=9090
         deny 62 src=8.8.8.8 dst=10.1.0.1 proto=udp dport=8080
         permit 62 src=8.8.8.8 dst=10.1.0.1 proto=udp dport=8080 state=established
         permit 17 src=8.8.8.8 dst=10.1.0.1 proto=udp dport=8010
         deny 62 src=8.8.8.8 dst=10.1.0.1 proto=udp dport=8011
         deny 62 src=192.0.2.3 dst=10.1.0.1 proto=tcp dport=8080
         permit 17 src=2001:db8:2::1 dst=2001:db8:5::1 proto=tcp dport=8080
         deny 62 src=2001:db8:1::1 dst=2001:db8:5::1 proto=tcp dport=8080
         permit 31 src=10.2.0.1 dst=10.1.0.1 proto=tcp dport=9999
         permit 31 src=10.2.0.1 dst=10.1.0.1 proto=icmp
         deny 62 src=10.2.0.9 dst=10.1.0.1 proto=tcp dport=8080
         deny 62 src=10.3.0.1 dst=10.1.0.1 proto=tcp dport=8080
         deny 62 src=10.1.2.1 dst=10.1.0.1 proto=tcp dport=8080",
    );
    loaded.check(
        "shop/web/out",
        "permit 39 src=10.1.0.1 dst=10.1.1.1 proto=tcp dport=5432
         deny 62 src=10.1.0.1 dst=10.1.1.1 proto=tcp dport=5433
         permit 39 src=10.1.0.1 dst=10.1.1.2 proto=tcp dport=5433
         permit 43 src=10.1.0.1 dst=8.8.8.8 proto=udp dport=53
         deny 62 src=10.1.0.1 dst=8.8.8.8 proto=tcp dport=53",
    );
    loaded.check(
        "shop/db-0/in",
        "deny 96 src=10.1.0.1 dst=10.1.1.1 proto=tcp dport=5432",
    );
    loaded.check(
        "shop/db-0/out",
        "permit 96 src=10.1.1.1 dst=10.1.0.1 proto=tcp dport=5432",
    );
    loaded.check(
        "ops/probe/in",
        "permit 112 src=10.1.0.1 dst=10.2.0.1 proto=tcp dport=5432",
    );
    assert!(loaded.conditions.texts().is_empty());
}

#[test]
fn statements_have_positions_texts_and_pods() {
    let loaded = load(CLUSTER, Kubernetes);
    let header = "src=8.8.8.8 dst=10.1.0.1 proto=tcp dport=8080";
    let (_, source) = loaded.decide("shop/web/in", header);
    assert_eq!((source.line, source.column), (17, 7));
    let text =
        "shop/web ingress from ipBlock 0.0.0.0/0 except 10.0.0.0/8, 192.0.2.0/24, TCP port http";
    assert_eq!(source.text, text);
    let header = "src=10.2.0.1 dst=10.1.0.1 proto=tcp dport=8080";
    let (_, source) = loaded.decide("shop/web/in", header);
    let text =
        "shop/web ingress from namespaceSelector team=ops and podSelector app in (probe,scan)";
    assert_eq!(source.text, text);
    let (_, source) = loaded.decide("shop/web/out", "dst=8.8.8.8 proto=udp dport=53");
    assert_eq!(source.text, "shop/web egress to all peers, UDP port 53");
    for (list, comment, text) in [
        (
            "shop/web/in",
            "2 pods: web-6d5f-aaaaa, web-6d5f-bbbbb",
            "deny all other packets",
        ),
        (
            "shop/db-0/in",
            "3 pods: db-0, db-1, scan",
            "deny all other packets",
        ),
        (
            "ops/probe/out",
            "1 pod: probe",
            "permit all packets: no policy selects the pod",
        ),
    ] {
        let mut sources = loaded.config.sources.iter();
        let last_source = sources.rfind(|source| source.list == list).unwrap();
        assert_eq!(last_source.comment.as_deref(), Some(comment), "{list}");
        assert_eq!(last_source.text, text);
        assert!(last_source.is_implied);
    }
    let notes = [
        "policies do not apply to pods in the network of their host",
        "pods that have ended were left out",
        "3 groups of pods share the lists of 6 pods",
    ];
    assert_eq!(loaded.config.notes, notes);
}

/// Returns a policy of the namespace `a`, with lines of its `spec`.
fn policy(spec: &str) -> String {
    let spec: String = spec
        .lines()
        .map(|line| format!("  {}\n", line.trim_end()))
        .collect();
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: p, namespace: a}}\n\
         spec:\n{spec}"
    )
}

/// Returns the pods `a/x` (10.0.0.1, app=x) and `b/y` (10.0.0.2, app=y).
fn pods() -> &'static str {
    "---\n{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: a, labels: {app: x}}, \
     status: {podIPs: [{ip: 10.0.0.1}]}}\n\
     ---\n{apiVersion: v1, kind: Pod, metadata: {name: y, namespace: b, labels: {app: y}}, \
     status: {podIPs: [{ip: 10.0.0.2}]}}\n"
}

fn with_pods(spec: &str) -> Loaded {
    load(&(policy(spec) + pods()), Kubernetes)
}

/// Policies, and the actions of `a/x/in` for packets from a pod, from another address and
/// from an IPv6 address.
const EMPTY_VALUES: &[(&str, [&str; 3])] = &[
    ("podSelector: {}\ningress: []", ["deny"; 3]),
    ("podSelector: {}\ningress:", ["deny"; 3]),
    ("podSelector: {}", ["deny"; 3]),
    ("ingress: [{}]", ["permit"; 3]),
    ("podSelector: {}\ningress: [{}]", ["permit"; 3]),
    ("podSelector: {}\ningress: [{from: []}]", ["permit"; 3]),
    ("podSelector: {}\ningress: [{from: }]", ["permit"; 3]),
    (
        "podSelector: {}\ningress: [{from: [], ports: []}]",
        ["permit"; 3],
    ),
    (
        "podSelector: {}\ningress: [{ports: [{}]}]",
        ["permit", "permit", "deny"],
    ),
    (
        "podSelector: {}\ningress: [{ports: [{port: 81}]}]",
        ["deny"; 3],
    ),
    // Without a selector of namespaces: the pods of the policy's namespace.
    (
        "podSelector: {}\ningress: [{from: [{podSelector: {}}]}]",
        ["deny"; 3],
    ),
    (
        "podSelector: {}\ningress: [{from: [{namespaceSelector: {}}]}]",
        ["permit", "deny", "deny"],
    ),
    (
        "podSelector: {}\ningress: [{from: [{namespaceSelector: {}, podSelector: \
             {matchLabels: {app: x}}}]}]",
        ["deny"; 3],
    ),
    (
        "podSelector: {}\ningress: [{from: [{namespaceSelector: {}}, {podSelector: \
             {matchLabels: {app: x}}}]}]",
        ["permit", "deny", "deny"],
    ),
    (
        "podSelector: {}\ningress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]",
        ["permit", "permit", "deny"],
    ),
    (
        "podSelector: {}\ningress: [{from: [{ipBlock: {cidr: '::/0'}}]}]",
        ["deny", "deny", "permit"],
    ),
    // The policy selects no pod of its namespace.
    ("podSelector: {matchLabels: {app: y}}", ["permit"; 3]),
    ("podSelector: {}\npolicyTypes: [Egress]", ["permit"; 3]),
];

#[test]
fn empty_and_missing_values_differ() {
    let from_pod = "src=10.0.0.2 dst=10.0.0.1 proto=tcp dport=80";
    let from_else = "src=10.9.0.2 dst=10.0.0.1 proto=tcp dport=80";
    let from_v6 = "src=2001:db8::1 dst=2001:db8::2 proto=icmpv6";
    for (spec, decisions) in EMPTY_VALUES {
        let loaded = with_pods(spec);
        let headers = [from_pod, from_else, from_v6];
        let actions = headers.map(|header| loaded.decide("a/x/in", header).0);
        assert_eq!(actions, *decisions, "{spec}");
        assert_eq!(loaded.decide("b/y/in", from_else).0, "permit", "{spec}");
    }
}

#[test]
fn policy_types_have_defaults() {
    let header = "src=10.0.0.1 dst=10.0.0.2 proto=tcp dport=80";
    for (spec, decisions) in [
        ("podSelector: {}", ["deny", "permit"]),
        ("podSelector: {}\negress: []", ["deny", "permit"]),
        ("podSelector: {}\negress: [{}]", ["deny", "permit"]),
        (
            "podSelector: {}\negress: [{ports: [{port: 1}]}]",
            ["deny", "deny"],
        ),
        (
            "podSelector: {}\npolicyTypes: []\negress: [{ports: [{port: 1}]}]",
            ["deny", "deny"],
        ),
        ("podSelector: {}\npolicyTypes: [Egress]", ["permit", "deny"]),
        (
            "podSelector: {}\npolicyTypes: [Egress, Ingress]",
            ["deny", "deny"],
        ),
        (
            "podSelector: {}\npolicyTypes: [Ingress]\negress: [{ports: [{port: 1}]}]",
            ["deny", "permit"],
        ),
    ] {
        let loaded = with_pods(spec);
        let actions = ["a/x/in", "a/x/out"].map(|list| loaded.decide(list, header).0);
        assert_eq!(actions, decisions, "{spec}");
    }
    let loaded = with_pods("policyTypes: [Ingress]\negress: [{}]");
    let note = "`policyTypes` lacks the direction of some rules, so they have no effect: a/p";
    assert!(loaded.config.notes.iter().any(|other| other == note));
}

#[test]
fn policies_without_pods_have_conditions() {
    let loaded = load(
        &policy(
            "podSelector: {}\n\
             ingress:\n\
             - from:\n  \
               - podSelector: {matchLabels: {app: x}}\n  \
               - namespaceSelector: {}\n  \
               - namespaceSelector: {matchExpressions: [{key: t, operator: NotIn, values: [u, v]}]}\n    \
                 podSelector: {matchExpressions: [{key: old, operator: DoesNotExist}]}\n  \
               - ipBlock: {cidr: 10.0.0.0/8}\n  \
               ports:\n  \
               - port: http\n\
             egress:\n\
             - to: [{podSelector: {}}]",
        ),
        Kubernetes,
    );
    assert_eq!(loaded.lists(), ["a/p/in", "a/p/out"]);
    let conditions = [
        "source is a pod with app=x in namespace a",
        "destination port is named http",
        "source is a pod in any namespace",
        "source is a pod with !old in a namespace with t notin (u,v)",
        "destination is a pod in namespace a",
    ];
    assert_eq!(loaded.conditions.texts(), conditions);
    loaded.check(
        "a/p/in",
        "deny 1 src=11.0.0.1 proto=tcp condition=0x1
         permit 7 src=11.0.0.1 proto=tcp condition=0x3
         deny 1 src=11.0.0.1 proto=udp condition=0x3
         deny 1 src=10.0.0.1 proto=tcp
         permit 7 src=10.0.0.1 proto=tcp condition=0x2
         permit 1 src=10.0.0.1 proto=tcp state=established",
    );
    loaded.check("a/p/out", "permit 16 src=11.0.0.1 proto=tcp condition=0x10");
    let sources = &loaded.config.sources;
    assert_eq!(sources[1].conditions, conditions[..2]);
    assert!(loaded.config.notes[0].starts_with("without pods in the file"));
}

#[test]
fn unknown_namespaces_are_conditions_only_if_their_labels_count() {
    let label = "kubernetes.io/metadata.name";
    let by_name =
        format!("ingress: [{{from: [{{namespaceSelector: {{matchLabels: {{{label}: b}}}}}}]}}]");
    let loaded = with_pods(&by_name);
    assert!(loaded.conditions.texts().is_empty());
    assert_eq!(
        loaded.decide("a/x/in", "src=10.0.0.2 proto=tcp").0,
        "permit"
    );
    assert_eq!(loaded.decide("a/x/in", "src=10.0.0.1 proto=tcp").0, "deny");
    let by_label = "ingress: [{from: [{namespaceSelector: {matchLabels: {team: b}}}]}]";
    let loaded = with_pods(by_label);
    assert_eq!(
        loaded.conditions.texts(),
        ["source is a pod in a namespace with team=b"]
    );
    let namespaces = "---\nkind: Namespace\nmetadata: {name: a}\n---\nkind: Namespace\nmetadata: \
                      {name: b, labels: {team: b}}\n";
    let loaded = load(&(policy(by_label) + pods() + namespaces), Kubernetes);
    assert!(loaded.conditions.texts().is_empty());
    assert_eq!(
        loaded.decide("a/x/in", "src=10.0.0.2 proto=tcp").0,
        "permit"
    );
}

#[test]
fn peers_of_pods_without_addresses_are_conditions() {
    let pod = "---\nkind: Pod\nmetadata: {name: x, namespace: a}\nspec:\n  containers:\n  \
               - ports: [{name: http, containerPort: 8080}]\n";
    let spec = "ingress:\n- {from: [{podSelector: {}}], ports: [{port: http}]}\negress:\n\
                - ports: [{port: http}]";
    let loaded = load(&(policy(spec) + pod), Kubernetes);
    let conditions = [
        "source is a pod in namespace a",
        "destination port is named http",
    ];
    assert_eq!(loaded.conditions.texts(), conditions);
    loaded.check(
        "a/x/in",
        "permit 6 src=10.0.0.1 proto=tcp dport=8080 condition=0x1
         deny 10 src=10.0.0.1 proto=tcp dport=8080",
    );
    loaded.check("a/x/out", "permit 8 dst=10.0.0.1 proto=tcp condition=0x2");
    let note = "no pod of the file has an address, so peers with selectors are conditions";
    assert_eq!(loaded.config.notes[0], note);
}

#[test]
fn a_named_port_of_a_network_is_a_condition() {
    let loaded = with_pods(
        "podSelector: {}\negress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [{port: http}]}]",
    );
    assert_eq!(
        loaded.conditions.texts(),
        ["destination port is named http"]
    );
    loaded.check(
        "a/x/out",
        "permit 6 dst=10.0.0.1 proto=tcp condition=0x1
         deny 8 dst=11.0.0.1 proto=tcp condition=0x1",
    );
}

#[test]
fn pods_of_an_owner_share_their_lists() {
    let mut text =
        policy("podSelector: {matchLabels: {tier: front}}\ningress: [{ports: [{port: 80}]}]");
    for number in 0..1000 {
        let tier = if number % 2 == 0 { "front" } else { "back" };
        let owner = number % 8;
        text.push_str(&format!(
            "---\nkind: Pod\nmetadata:\n  name: pod-{number:04}\n  namespace: a\n  \
             labels: {{tier: {tier}, pod-template-hash: h}}\n  \
             ownerReferences: [{{kind: ReplicaSet, name: app-{owner}-h, controller: true}}]\n\
             status: {{podIP: 10.0.{}.{}}}\n",
            number / 250,
            number % 250,
        ));
    }
    let loaded = load(&text, Kubernetes);
    assert_eq!(loaded.lists().len(), 16);
    assert_eq!(
        loaded.lists()[..3],
        ["a/app-0/in", "a/app-0/out", "a/app-1/in"]
    );
    assert_eq!(loaded.config.policy.len(), 4 * (3 + 1) + 4 * 2);
    assert_eq!(loaded.decide("a/app-0/in", "proto=tcp dport=81").0, "deny");
    assert_eq!(
        loaded.decide("a/app-1/in", "proto=tcp dport=81").0,
        "permit"
    );
    let comment = "125 pods: pod-0000, pod-0008, pod-0016, pod-0024, pod-0032, …";
    let header = "proto=tcp dport=81";
    let (_, source) = loaded.decide("a/app-0/in", header);
    assert_eq!(source.comment.as_deref(), Some(comment));
}

#[test]
fn pods_of_an_owner_with_different_lists_have_their_own() {
    let pod = |name: &str, tier: &str, owner: &str| {
        format!(
            "---\nkind: Pod\nmetadata: {{name: {name}, namespace: a, labels: {{tier: {tier}}}, \
             ownerReferences: [{{kind: StatefulSet, name: {owner}, controller: true}}]}}\n"
        )
    };
    let text = policy("podSelector: {matchLabels: {tier: front}}")
        + &pod("s-0", "front", "s")
        + &pod("s-1", "back", "s")
        + &pod("s-2", "front", "s")
        + &pod("t-0", "back", "u")
        + &pod("u", "front", "v");
    let loaded = load(&text, Kubernetes);
    let lists: Vec<&str> = loaded.lists().into_iter().step_by(2).collect();
    // The owner `u` has the name of a pod, so its list has the name of its first pod.
    assert_eq!(lists, ["a/s-0/in", "a/s-1/in", "a/t-0/in", "a/v/in"]);
}

#[test]
fn json_and_lists_of_one_kind_are_read() {
    let text = r#"{"kind": "NetworkPolicyList", "apiVersion": "networking.k8s.io/v1", "items": [
      {"metadata": {"name": "p"},
       "spec": {"ingress": [{"from": [{"podSelector": {}}]}]}}]}
    {"kind": "PodList", "apiVersion": "v1", "items": [
      {"metadata": {"name": "x"}, "status": {"podIP": "10.0.0.1"}}]}
    [{"kind": "ConfigMap"}, {"kind": "Deployment"}]"#;
    let loaded = load(text, Kubernetes);
    loaded.check(
        "default/x/in",
        "permit 3 src=10.0.0.1 dst=10.0.0.1 proto=tcp
         deny 5 src=10.0.0.2 dst=10.0.0.1 proto=tcp",
    );
}

#[test]
fn mutations_do_not_panic() {
    mutate(CLUSTER, Kubernetes, 2000, 4);
    let json = r#"{"kind": "NetworkPolicy", "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": "p"}, "spec": {"podSelector": {}, "ingress": [{"from":
        [{"podSelector": {}}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
        "ports": [{"port": 80, "endPort": 90}, {"port": "http", "protocol": "UDP"}]}]}}"#;
    mutate(json, Kubernetes, 2000, 5);
}
