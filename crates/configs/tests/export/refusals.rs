//! A rule that a format cannot express is an error, and the error names it.

use classyard_configs::{Conditions, ConfigFormat, WriteError, WriteOptions, read, write};
use classyard_workload::diagnostic::ReadOptions;

use crate::support::rules;

/// Returns the reasons against some rules of the schema `acl`, after which all are denied.
fn reasons(lines: &str, format: ConfigFormat) -> Vec<String> {
    let policy = rules(&format!("schema acl\n{lines}\ndeny name=rest\n"));
    match write(&policy, format, &WriteOptions::default()) {
        Err(WriteError::Rules { shown, total }) => {
            assert_eq!(shown.len(), total);
            shown.into_iter().map(|refusal| refusal.reason).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_rule_has_its_reason() {
    for (line, format, reason) in [
        (
            "permit proto=0",
            ConfigFormat::Iptables,
            "the protocol 0, which iptables takes as every protocol",
        ),
        (
            "permit tcp_flags=0x80&0x80",
            ConfigFormat::Nftables,
            "the TCP flags ECE and CWR",
        ),
        (
            "permit family=ipv6 fragment=2-3",
            ConfigFormat::Iptables,
            "fragments of IPv6",
        ),
        (
            "\"output:2\" proto=tcp",
            ConfigFormat::Iptables,
            "the action `output:2`, where firewalls have permit, deny and reject",
        ),
        (
            "permit condition=1",
            ConfigFormat::Nftables,
            "a condition that no field expresses",
        ),
        (
            "permit state=4",
            ConfigFormat::Nftables,
            "a part of the packets that are not tracked",
        ),
        (
            "permit proto=tcp in=eth0",
            ConfigFormat::CiscoIos,
            "an interface, which entries of IOS do not compare: interfaces name their lists",
        ),
        (
            "permit state=1-2",
            ConfigFormat::CiscoAsa,
            "the state of connections, which entries of ASA do not compare",
        ),
        (
            "reject proto=tcp",
            ConfigFormat::CiscoXr,
            "the action reject, where access lists of IOS XR have permit and deny",
        ),
        (
            "permit proto=136 dport=80",
            ConfigFormat::CiscoNxos,
            "ports of the protocol 136, where access lists compare ports of TCP, UDP and SCTP; a \
             rule that names one of these can be written",
        ),
        (
            "permit proto=0-5",
            ConfigFormat::CiscoIos,
            "the protocol 0, which systems may take as every protocol",
        ),
        (
            "permit proto=icmp icmp_type=0-7 icmp_code=0-63",
            ConfigFormat::CiscoIos,
            "more than 256 ICMP messages, each of which needs an entry",
        ),
        (
            "permit src=2001:db8::1 proto=tcp tcp_flags=0x2&0x12",
            ConfigFormat::CiscoIos,
            "several TCP flags or a flag that is not set, where entries of IOS for IPv6 have one \
             flag that is set",
        ),
        (
            "permit proto=tcp tcp_flags=0x2&0x2",
            ConfigFormat::CiscoAsa,
            "TCP flags, which entries of ASA do not have",
        ),
        (
            "permit src=10.0.0.1&255.0.0.255",
            ConfigFormat::CiscoAsa,
            "a mask with holes, where ASA has prefixes of IPv4",
        ),
        (
            "permit proto=tcp fragment=2-3",
            ConfigFormat::CiscoAsa,
            "later fragments only, as ASA examines packets as a whole",
        ),
        (
            "permit proto=tcp fragment=whole",
            ConfigFormat::CiscoIos,
            "only whole packets, or only first fragments",
        ),
    ] {
        assert_eq!(reasons(line, format), [reason], "{line}");
    }
}

#[test]
fn a_condition_is_named() {
    let text = "*filter\n:INPUT DROP [0:0]\n-A INPUT -m limit --limit 5/min -j ACCEPT\nCOMMIT\n";
    let conditions = &mut Conditions::default();
    let format = ConfigFormat::Iptables;
    let config = read("fw", text, format, &ReadOptions::DEFAULT, conditions).unwrap();
    let options = WriteOptions {
        lists: &config.lists,
        conditions: conditions.texts(),
        default_action: None,
        ..WriteOptions::default()
    };
    let error = write(&config.policy, ConfigFormat::Nftables, &options).unwrap_err();
    let WriteError::Rules { shown, .. } = error else {
        panic!("{error:?}");
    };
    assert!(shown[0].reason.contains("limit"), "{shown:?}");
}

#[test]
fn lists_need_a_default_action_and_a_place() {
    let policy = rules("schema ipv4-5tuple\npermit proto=tcp\n");
    let format = ConfigFormat::Iptables;
    let write = |default_action| {
        let options = WriteOptions {
            default_action,
            ..WriteOptions::default()
        };
        write(&policy, format, &options)
    };
    let error = write(None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no rule of the file matches every IPv4 packet, and iptables needs an action for the others"
    );
    assert!(write(Some("deny")).unwrap().text.contains(":FORWARD DROP"));

    let policy = rules("schema acl\npermit list=INSIDE\npermit list=OUTSIDE\n");
    let error = classyard_configs::write(&policy, format, &WriteOptions::default()).unwrap_err();
    assert!(matches!(error, WriteError::List { .. }), "{error:?}");
}

/// Two lists never become one: a format has them both, or refuses them.
#[test]
fn two_lists_stay_two() {
    for [first, second] in [
        ["FORWARD", "FOrWARD"],
        ["INPUT", "filter/INPUT"],
        ["INPUT", "OUTPUT"],
        ["inside", "INSIDE"],
        ["nat/PREROUTING", "NAT/prerouting"],
        ["a.b", "a-b"],
        ["10", "010"],
    ] {
        let text = format!("schema acl\npermit list={first} proto=tcp\ndeny list={second}\n");
        let policy = rules(&text);
        let mut refusing = 0;
        for format in ConfigFormat::ALL {
            let options = WriteOptions {
                default_action: Some("deny"),
                ..WriteOptions::default()
            };
            let written = match write(&policy, format, &options) {
                Ok(written) => written,
                Err(WriteError::List { .. } | WriteError::Format(_)) => {
                    refusing += 1;
                    continue;
                }
                Err(error) => panic!("{format}: {error}"),
            };
            let conditions = &mut Conditions::default();
            let again = read(
                "written",
                &written.text,
                format,
                &ReadOptions::DEFAULT,
                conditions,
            );
            let again = again.unwrap_or_else(|error| panic!("{format}: {error}"));
            assert_eq!(again.lists.len(), 2, "{first} {second} {format}");
        }
        assert!(refusing > 0, "{first} {second}");
    }
    let policy = rules("schema acl\npermit list=FORWARD\ndeny list=FOrWARD\n");
    let error = write(&policy, ConfigFormat::Iptables, &WriteOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "iptables has no place for the list `FOrWARD` beside others; another list is written as \
         the same chain"
    );
}

#[test]
fn formats_and_schemas_are_checked() {
    let policy = rules("schema openflow15\npermit eth_type=0x800\n");
    let error = write(&policy, ConfigFormat::Nftables, &WriteOptions::default()).unwrap_err();
    assert!(matches!(error, WriteError::Schema(_)), "{error:?}");
    let policy = rules("schema acl\npermit name=all\n");
    let error = write(&policy, ConfigFormat::Kubernetes, &WriteOptions::default()).unwrap_err();
    assert_eq!(error, WriteError::Format(ConfigFormat::Kubernetes));
}
