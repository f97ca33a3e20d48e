//! Random rules are written, read, and decide every packet alike.

use classyard::Policy;
use classyard::policy::PartId;
use classyard_configs::{ConfigFormat, WriteError, WriteOptions, write};
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::{RuleFormat, read_policy};

use crate::random::{ASA, Features, LINUX, ROUTERS, header, lines, policy};
use crate::support::{Random, actions, config, rules, text};

/// Numbers the rules of a file so that neighbours with one action have the same number.
fn numbers_by_action(policy: &Policy) -> Vec<u32> {
    let mut number = 0;
    let mut last_action = None;
    let numbers = policy.ids().iter().map(|&id| {
        let action = policy.rule(id).next().unwrap().1.action();
        let is_new = last_action
            .replace(action)
            .is_some_and(|last| last != action);
        number += u32::from(is_new);
        number
    });
    numbers.collect()
}

/// Removes the rules that a format cannot express, and returns the text of the others. If
/// `joins`, neighbours with one action may become one statement.
pub(crate) fn written(lines: &mut Vec<String>, format: ConfigFormat, joins: bool) -> String {
    loop {
        let policy = policy(lines);
        let numbers = numbers_by_action(&policy);
        let options = WriteOptions {
            statement_of_rule: joins.then_some(&numbers),
            ..WriteOptions::default()
        };
        match write(&policy, format, &options) {
            Ok(written) => return written.text,
            Err(WriteError::Rules { shown, .. }) => {
                let is_refused = |position: usize| {
                    let rule = policy.ids()[position];
                    shown.iter().any(|refusal| refusal.rule == rule)
                };
                let mut position = 0;
                lines.retain(|_| {
                    position += 1;
                    !is_refused(position - 1)
                });
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Writes random rules, reads the text, and compares the actions of headers.
fn random_rules(format: ConfigFormat, features: &Features, seed: u64) {
    let random = &mut Random(seed);
    let mut kept = 0;
    for round in 0..60 {
        let mut lines = lines(random, features, 12);
        let text = written(&mut lines, format, round % 2 == 0);
        kept += lines.len() - 2;
        let headers: Vec<(PartId, Vec<u128>)> = (0..300).map(|_| header(random)).collect();
        let (first, second) = (policy(&lines), config(&text, format).policy);
        let decisions = actions(&first, &headers)
            .into_iter()
            .zip(actions(&second, &headers));
        for (header, (wanted, found)) in headers.iter().zip(decisions) {
            assert_eq!(wanted, found, "{header:?}\n{}\n{text}", lines.join("\n"));
        }
    }
    assert!(kept > 60 * 12 / 2, "{format} expresses only {kept} rules");
}

#[test]
fn random_rules_are_read_as_written_iptables() {
    random_rules(ConfigFormat::Iptables, &LINUX, 1);
}

#[test]
fn random_rules_are_read_as_written_nftables() {
    random_rules(ConfigFormat::Nftables, &LINUX, 2);
}

#[test]
fn random_rules_are_read_as_written_cisco_ios() {
    random_rules(ConfigFormat::CiscoIos, &ROUTERS, 3);
}

#[test]
fn random_rules_are_read_as_written_cisco_nxos() {
    random_rules(ConfigFormat::CiscoNxos, &ROUTERS, 4);
}

#[test]
fn random_rules_are_read_as_written_cisco_xr() {
    random_rules(ConfigFormat::CiscoXr, &ROUTERS, 5);
}

#[test]
fn random_rules_are_read_as_written_cisco_asa() {
    random_rules(ConfigFormat::CiscoAsa, &ASA, 6);
}

#[test]
fn rules_are_written_as_people_write_them() {
    let policy = rules(
        "schema acl\n\
         permit list=INPUT state=1-2\n\
         permit list=INPUT in=eth0 src=10.0.0.0/8 proto=tcp dport=80-89 fragment=0-1 name=web\n\
         reject list=INPUT family=ipv6\n\
         deny list=INPUT\n",
    );
    assert_eq!(
        text(&policy, ConfigFormat::Nftables),
        "table inet filter {\n\
         \tchain INPUT {\n\
         \t\ttype filter hook input priority filter; policy drop;\n\
         \t\tct state established,related accept\n\
         \t\tiifname \"eth0\" ip saddr 10.0.0.0/8 tcp dport 80-89 accept comment \"web\"\n\
         \t\tmeta nfproto ipv6 reject\n\
         \t}\n\
         }\n"
    );
    let iptables = text(&policy, ConfigFormat::Iptables);
    let wanted = [
        ":INPUT DROP [0:0]",
        "-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
        "-A INPUT -s 10.0.0.0/8 -i eth0 -p 6 -m tcp --dport 80:89 -m comment --comment \"web\" \
         -j ACCEPT",
        "-A INPUT -j REJECT",
    ];
    for line in wanted {
        assert!(
            iptables.lines().any(|other| other == line),
            "{line}\n{iptables}"
        );
    }
}

#[test]
fn a_protocol_with_an_exclamation_mark_stays_one_rule() {
    let save = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT ! -p 6 -j DROP\nCOMMIT\n";
    let read = config(save, ConfigFormat::Iptables);
    assert!(text(&read.policy, ConfigFormat::Iptables).contains("\n-A INPUT ! -p 6 -j DROP\n"));
    assert!(text(&read.policy, ConfigFormat::Nftables).contains("\tmeta l4proto != tcp drop\n"));
}

/// Rules of one statement become one statement again, where the format has sets.
#[test]
fn rules_of_one_statement_are_joined() {
    let text = "schema acl\n\
                permit src=192.0.2.1-192.0.2.3 proto=tcp dport=80,443,8000-8999 name=web\n\
                deny proto=tcp,udp dport=22,3389\n\
                permit src=192.0.2.9,2001:db8::9 proto=udp sport=1,3 dport=5,7\n\
                deny\n";
    let format = Some(RuleFormat::Rules);
    let loaded = read_policy("test", text, format, None, &ReadOptions::DEFAULT).unwrap();
    let options = WriteOptions {
        statement_of_rule: Some(&loaded.statement_of_rule),
        ..WriteOptions::default()
    };
    let lines = |format| {
        let written = write(&loaded.value, format, &options).unwrap();
        let lines = written.text.lines().map(|line| line.trim().to_owned());
        lines.collect::<Vec<_>>()
    };
    let nftables = lines(ConfigFormat::Nftables);
    let wanted = [
        "ip saddr { 192.0.2.1, 192.0.2.2/31 } tcp dport { 80, 443, 8000-8999 } accept comment \"web\"",
        "tcp dport { 22, 3389 } drop",
        "udp dport { 22, 3389 } drop",
        "ip saddr 192.0.2.9 udp sport { 1, 3 } udp dport { 5, 7 } accept",
        "ip6 saddr 2001:db8::9 udp sport { 1, 3 } udp dport { 5, 7 } accept",
    ];
    assert_eq!(nftables[3..8], wanted);
    let iptables = lines(ConfigFormat::Iptables);
    for line in [
        "-A FORWARD -s 192.0.2.2/31 -p 6 -m tcp -m multiport --dports 80,443,8000:8999 -m comment \
         --comment \"web\" -j ACCEPT",
        "-A FORWARD -s 192.0.2.9 -p 17 -m udp -m multiport --sports 1,3 -m multiport --dports 5,7 \
         -j ACCEPT",
    ] {
        assert!(iptables.iter().any(|other| other == line), "{iptables:#?}");
    }
}
