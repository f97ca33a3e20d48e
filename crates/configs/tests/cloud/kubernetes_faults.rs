//! Faulty network policies.

use classyard_configs::{Conditions, ConfigFormat::Kubernetes, read};
use classyard_workload::diagnostic::ReadOptions;

use crate::helper::problems;

/// Returns a policy with a value of `ingress`, which is on line 4.
fn ingress(value: &str) -> String {
    format!(
        "{{\"kind\": \"NetworkPolicy\", \"apiVersion\": \"networking.k8s.io/v1\",\n\
         \"metadata\": {{\"name\": \"p\"}},\n\"spec\": {{\"ingress\": [\n{value}\n]}}}}"
    )
}

/// Elements of `ingress`, with their problems.
const MISTAKES: &[(&str, &str)] = &[
    ("null", "4:1: no value; expected a mapping"),
    (
        r#"{"form": []}"#,
        "4:2: the unknown field `form`; expected one of the fields from, ports",
    ),
    (
        r#"{"to": []}"#,
        "4:2: the unknown field `to`; expected one of the fields from, ports",
    ),
    (r#"{"from": {}}"#, "4:10: a mapping; expected a list"),
    (
        r#"{"from": [{}]}"#,
        "4:11: a peer without a selector; expected a value of podSelector, namespaceSelector \
             or ipBlock",
    ),
    (
        r#"{"from": [{"podSelector": null}]}"#,
        "4:11: a peer without a selector; expected a value of podSelector, namespaceSelector \
             or ipBlock",
    ),
    (
        r#"{"from": [{"podSelector": {}, "ipBlock": {"cidr": "::/0"}}]}"#,
        "4:42: a network in a peer with selectors; expected a peer with ipBlock alone",
    ),
    (
        r#"{"from": [{"ipBlock": {}}]}"#,
        "4:23: no `cidr`; expected a value of `cidr`",
    ),
    (
        r#"{"from": [{"ipBlock": {"cidr": "10.0.0.1"}}]}"#,
        "4:32: the string `10.0.0.1`; expected a network such as 10.0.0.0/8 or 2001:db8::/32",
    ),
    (
        r#"{"from": [{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["10.1.0.0/24"]}}]}"#,
        "4:58: the string `10.1.0.0/24`; expected a network inside of 10.0.0.0/16",
    ),
    (
        r#"{"from": [{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["10.0.0.0/16"]}}]}"#,
        "4:58: the string `10.0.0.0/16`; expected a network inside of 10.0.0.0/16",
    ),
    (
        r#"{"from": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["::/1"]}}]}"#,
        "4:56: the string `::/1`; expected a network inside of 0.0.0.0/0",
    ),
    (
        r#"{"from": [{"podSelector": {"app": "x"}}]}"#,
        "4:28: the unknown field `app`; expected one of the fields matchLabels, \
             matchExpressions",
    ),
    (
        r#"{"from": [{"podSelector": {"matchLabels": {"app": 1}}}]}"#,
        "4:51: the number `1`; expected a string, in quotes",
    ),
    (
        r#"{"from": [{"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]}"#,
        "4:49: no values; expected a list of values for this operator",
    ),
    (
        r#"{"from": [{"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}]}"#,
        "4:49: values for this operator; expected no values",
    ),
    (
        r#"{"from": [{"podSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}]}"#,
        "4:74: the string `Is`; expected In, NotIn, Exists or DoesNotExist",
    ),
    (
        r#"{"ports": [{"port": 0}]}"#,
        "4:21: the number `0`; expected a port from 1 to 65535, or the name of a port",
    ),
    (
        r#"{"ports": [{"port": "80"}]}"#,
        "4:21: the string `80`; expected a number, or a name of lowercase letters and digits",
    ),
    (
        r#"{"ports": [{"port": "http", "endPort": 90}]}"#,
        "4:21: the string `http`; expected a number, because there is endPort",
    ),
    (
        r#"{"ports": [{"endPort": 90}]}"#,
        "4:24: endPort without port; expected a value of port",
    ),
    (
        r#"{"ports": [{"port": 91, "endPort": 90}]}"#,
        "4:36: the number `90`; expected a number from 91 to 65535",
    ),
    (
        r#"{"ports": [{"protocol": "tcp"}]}"#,
        "4:25: the string `tcp`; expected TCP, UDP, SCTP",
    ),
    (
        r#"{"ports": [80]}"#,
        "4:12: the number `80`; expected a mapping",
    ),
];

#[test]
fn mistakes_of_rules_have_positions() {
    for (value, expected) in MISTAKES {
        assert_eq!(
            problems(&ingress(value), Kubernetes),
            [*expected],
            "{value}"
        );
    }
}

#[test]
fn mistakes_of_objects_have_positions() {
    let policy = "kind: NetworkPolicy\napiVersion: networking.k8s.io/v1\n";
    for (text, expected) in [
        (
            format!("{policy}metadata: {{name: p}}\n"),
            "1:1: no `spec`; expected a value of `spec`",
        ),
        (
            format!("{policy}spec: {{}}\n"),
            "1:1: no `metadata`; expected a value of `metadata`",
        ),
        (
            format!("{policy}metadata: {{name: p}}\nspec:\n  policyTypes: [Both]\n"),
            "5:17: the string `Both`; expected Ingress or Egress",
        ),
        (
            format!("{policy}metadata: {{name: p}}\nspec:\n  podselector: {{}}\n"),
            "5:3: the unknown field `podselector`; expected one of the fields podSelector, \
             policyTypes, ingress, egress",
        ),
        (
            format!("{policy}metadata: {{name: yes}}\nspec: {{}}\n"),
            "3:18: the Boolean `yes`; expected a string, in quotes",
        ),
        (
            "kind: NetworkPolicy\n".to_owned(),
            "1:1: no `apiVersion`; expected `networking.k8s.io/v1`",
        ),
        (
            "metadata: {}\n".to_owned(),
            "1:1: no `kind`; expected an object of Kubernetes",
        ),
        (
            "- 5\n".to_owned(),
            "1:3: the number `5`; expected a mapping",
        ),
    ] {
        assert_eq!(problems(&text, Kubernetes)[0], expected, "{text}");
    }
    let twice = format!("{policy}metadata: {{name: p}}\nspec: {{}}\n");
    let twice = format!("{twice}---\n{twice}");
    let expected = "6:1: a second NetworkPolicy `default/p`; expected each object once";
    assert_eq!(problems(&twice, Kubernetes), [expected]);
    let pods = format!(
        "{policy}metadata: {{name: p}}\nspec: {{}}\n---\nkind: Pod\nmetadata: {{name: x}}\nstatus:\n  podIP: 10.0.0\n"
    );
    let expected = "9:10: the string `10.0.0`; expected an address such as 10.0.0.1 or 2001:db8::1";
    assert_eq!(problems(&pods, Kubernetes), [expected]);
    let no_policy = problems("kind: Pod\nmetadata: {name: x}\n", Kubernetes);
    assert!(no_policy[0].starts_with("file: no NetworkPolicy; expected"));
}

#[test]
fn other_kinds_of_policies_are_named() {
    for (kind, version, feature) in [
        (
            "AdminNetworkPolicy",
            "policy.networking.k8s.io/v1alpha1",
            "AdminNetworkPolicy of policy.networking.k8s.io",
        ),
        (
            "BaselineAdminNetworkPolicy",
            "policy.networking.k8s.io/v1alpha1",
            "BaselineAdminNetworkPolicy of policy.networking.k8s.io",
        ),
        (
            "CiliumNetworkPolicy",
            "cilium.io/v2",
            "CiliumNetworkPolicy of cilium.io",
        ),
        (
            "CiliumClusterwideNetworkPolicy",
            "cilium.io/v2",
            "CiliumClusterwideNetworkPolicy of cilium.io",
        ),
        (
            "NetworkPolicy",
            "projectcalico.org/v3",
            "NetworkPolicy of projectcalico.org",
        ),
        (
            "GlobalNetworkPolicy",
            "crd.projectcalico.org/v1",
            "GlobalNetworkPolicy of crd.projectcalico.org",
        ),
        (
            "NetworkPolicy",
            "extensions/v1beta1",
            "NetworkPolicy of extensions",
        ),
    ] {
        let text = format!("kind: {kind}\napiVersion: {version}\nmetadata: {{name: p}}\n");
        let expected = format!("1:1: {feature}; expected NetworkPolicy of networking.k8s.io/v1");
        assert_eq!(problems(&text, Kubernetes), [expected]);
    }
}

#[test]
fn faulty_rules_are_skipped_if_the_options_say_so() {
    let text = ingress("{\"from\": [{}]}, {\"ports\": [{\"port\": 80}]}");
    let options = ReadOptions::DEFAULT.with_skip_bad(true);
    let config = read(
        "file",
        &text,
        Kubernetes,
        &options,
        &mut Conditions::default(),
    )
    .unwrap();
    assert_eq!(config.skipped.total(), 1);
    assert_eq!(config.sources.len(), 3);
    let few = ReadOptions::DEFAULT.with_limit(2);
    let text = ingress("{}");
    let error = read("file", &text, Kubernetes, &few, &mut Conditions::default()).unwrap_err();
    let expected = "file:1: more than 2 rules; raise the limit or split the file";
    assert_eq!(error.to_string(), expected);
}
