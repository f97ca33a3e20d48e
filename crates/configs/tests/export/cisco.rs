//! Access lists as network engineers write them.

use classyard::policy::PartId;
use classyard_configs::{ConfigFormat, WriteError, WriteOptions, write};

use crate::random::policy;
use crate::round_trips::written;
use crate::support::{actions, config, rules, text};

const OFFICE: &str = "schema acl\n\
    permit list=EDGE src=10.0.0.0/8 dst=192.0.2.1 name=office\n\
    permit list=EDGE family=ipv4 proto=tcp dport=443 name=web\n\
    permit list=EDGE dst=192.0.2.0/25 proto=udp dport=5000-5999\n\
    deny list=EDGE src=10.0.0.1&255.0.0.255\n\
    permit list=EDGE family=ipv4 proto=icmp icmp_type=8\n\
    permit list=EDGE family=ipv4 proto=icmp icmp_type=3 icmp_code=4\n\
    permit list=EDGE family=ipv4 proto=gre\n\
    deny list=EDGE family=ipv4\n";

#[test]
fn entries_for_later_fragments_are_before_the_first_ports() {
    assert_eq!(
        text(&rules(OFFICE), ConfigFormat::CiscoIos),
        "! cisco-ios configuration, written by classyard\n\
         !\n\
         ip access-list extended EDGE\n \
         remark office\n \
         permit ip 10.0.0.0 0.255.255.255 host 192.0.2.1\n \
         remark later fragments of packets\n \
         deny ip 10.0.0.1 0.255.255.0 any fragments\n \
         permit gre any any fragments\n \
         deny ip any any fragments\n \
         remark web\n \
         permit tcp any any eq 443\n \
         permit udp any 192.0.2.0 0.0.0.127 range 5000 5999\n \
         deny ip 10.0.0.1 0.255.255.0 any\n \
         permit icmp any any echo\n \
         permit icmp any any 3 4\n \
         permit gre any any\n \
         deny ip any any\n"
    );
}

#[test]
fn each_system_has_its_own_form() {
    let policy = rules(
        "schema acl\n\
         permit list=EDGE src=10.0.0.0/8 proto=tcp dport=22 name=ssh\n\
         permit list=EDGE proto=tcp dport=443\n\
         permit list=EDGE src=2001:db8::/32 proto=58 icmp_type=128\n\
         deny list=EDGE\n",
    );
    for (format, lines) in [
        (
            ConfigFormat::CiscoNxos,
            &[
                "ip access-list EDGE",
                "  10 remark later fragments of packets",
                "  20 deny ip any any fragments",
                "  40 permit tcp 10.0.0.0/8 any eq 22",
                "ipv6 access-list EDGE",
                "  20 permit icmp 2001:db8::/32 any 128",
                "  30 deny ipv6 any any",
            ][..],
        ),
        (
            ConfigFormat::CiscoXr,
            &[
                "ipv4 access-list EDGE",
                " 20 deny ipv4 any any fragments",
                " 40 permit tcp 10.0.0.0 0.255.255.255 any eq 22",
                " 20 permit icmpv6 2001:db8::/32 any 128",
            ],
        ),
        (
            ConfigFormat::CiscoAsa,
            &[
                "access-list EDGE remark ssh",
                "access-list EDGE extended permit tcp 10.0.0.0 255.0.0.0 any4 eq 22",
                "access-list EDGE extended permit tcp any any eq 443",
                "access-list EDGE extended permit icmp6 2001:db8::/32 any6 128",
                "access-list EDGE extended deny ip any any",
            ],
        ),
    ] {
        let written = text(&policy, format);
        assert_eq!(ConfigFormat::detect(&written), Some(format), "{written}");
        let mut rest = written.lines();
        for line in lines {
            assert!(rest.any(|other| other == *line), "{line}\n{written}");
        }
    }
}

#[test]
fn lists_of_ios_are_written_as_they_were_read() {
    let lists = "! cisco-ios configuration, written by classyard\n\
                 !\n\
                 ip access-list extended 101\n \
                 permit tcp any any established\n \
                 permit tcp any host 192.0.2.1 eq 80\n \
                 permit tcp any host 192.0.2.1 eq 443\n \
                 deny tcp any any fragments\n \
                 deny tcp any any eq 25\n \
                 permit tcp any any match-all +syn -ack\n \
                 permit udp any eq 53 any\n \
                 deny ip any any\n";
    let read = config(lists, ConfigFormat::CiscoIos);
    assert_eq!(text(&read.policy, ConfigFormat::CiscoIos), lists);
}

#[test]
fn statements_without_effect_on_asa_are_noted() {
    let policy = rules(
        "schema acl\n\
         permit list=EDGE family=ipv4 proto=tcp dport=22\n\
         deny list=EDGE family=ipv4 fragment=2-3\n\
         deny list=EDGE family=ipv4\n",
    );
    let format = ConfigFormat::CiscoAsa;
    let written = write(&policy, format, &WriteOptions::default()).unwrap();
    assert_eq!(
        written.text,
        "! cisco-asa configuration, written by classyard\n\
         !\n\
         access-list EDGE extended permit tcp any4 any4 eq 22\n\
         access-list EDGE extended deny ip any4 any4\n"
    );
    assert_eq!(written.statements, 1);
    assert!(
        written.notes[0].contains("1 statement is left out"),
        "{:?}",
        written.notes
    );
}

#[test]
fn long_names_are_several_remarks() {
    let word = "a".repeat(60);
    let policy = rules(&format!(
        "schema acl\npermit family=ipv4 proto=tcp name=\"{word} {word}\"\ndeny family=ipv4\n"
    ));
    let written = text(&policy, ConfigFormat::CiscoIos);
    assert!(written.contains(&format!(
        " remark {word}\n remark {word}\n permit tcp any any\n"
    )));
    let sources = config(&written, ConfigFormat::CiscoIos).sources;
    assert_eq!(sources[0].comment, Some(format!("{word} {word}")));
}

#[test]
fn names_of_lists_are_checked() {
    for name in ["role-based", "two words", "1st", "a?", "101", "12"] {
        let policy = rules(&format!(
            "schema acl\npermit list=\"{name}\"\ndeny list=\"{name}\"\n"
        ));
        let written = write(&policy, ConfigFormat::CiscoIos, &WriteOptions::default());
        assert!(
            matches!(written, Err(WriteError::List { .. })),
            "{name}: {written:?}"
        );
    }
}

#[test]
fn families_of_asa_may_have_different_defaults() {
    let policy = rules(
        "schema acl\n\
         permit list=101 proto=tcp dport=22\n\
         permit list=101 family=ipv4\n\
         deny list=101 family=ipv6\n",
    );
    assert_eq!(
        text(&policy, ConfigFormat::CiscoAsa),
        "! cisco-asa configuration, written by classyard\n\
         !\n\
         access-list 101 extended permit tcp any any eq 22\n\
         access-list 101 extended permit ip any4 any4\n\
         access-list 101 extended deny ip any6 any6\n"
    );
}

/// Returns every list of three of the rules, before a rule for every packet.
fn lists_of_three(rules: &[String]) -> impl Iterator<Item = Vec<String>> {
    let count = rules.len();
    (0..count * count * count * 2).map(move |number| {
        let last = ["permit", "deny"][number % 2];
        let indices = [1, count, count * count].map(|step| number / 2 / step % count);
        let mut lines: Vec<String> = indices.map(|index| rules[index].clone()).into();
        lines.push(format!("{last} list=EDGE family=ipv4"));
        lines
    })
}

#[test]
fn every_order_of_ports_and_fragments_is_read_as_written() {
    let conditions = [
        "",
        "proto=tcp",
        "proto=tcp fragment=0-1",
        "proto=tcp fragment=2-3",
        "proto=tcp dport=80",
        "proto=tcp dport=0-80",
        "proto=tcp tcp_flags=0x10&0x10",
        "proto=tcp tcp_flags=0x4&0x14",
        "proto=tcp tcp_flags=0x4&0x6",
    ];
    let of_action =
        |action| conditions.map(|text| format!("{action} list=EDGE family=ipv4 {text}"));
    let all: Vec<String> = ["permit", "deny"].into_iter().flat_map(of_action).collect();
    let mut headers = Vec::new();
    for (protocol, port, flags, fragment) in [
        (6, 80, 0x02, 0),
        (6, 81, 0x04, 0),
        (6, 81, 0x06, 0),
        (6, 81, 0x10, 1),
        (6, 81, 0x02, 0),
        (6, 0, 0, 2),
        (17, 80, 0, 0),
        (17, 0, 0, 2),
    ] {
        let edge = u128::from_be_bytes(*b"EDGE\0\0\0\0\0\0\0\0\0\0\0\0");
        let values = [
            1, 2, 1000, port, protocol, 0, 0, flags, fragment, 0, 0, 0, edge, 0,
        ];
        let values = match fragment {
            2 => [1, 2, 0, 0, protocol, 0, 0, 0, 2, 0, 0, 0, edge, 0],
            _ => values,
        };
        headers.push((PartId::from_index(0), values.to_vec()));
    }
    for mut lines in lists_of_three(&all) {
        let format = ConfigFormat::CiscoIos;
        let written = written(&mut lines, format, false);
        assert_eq!(lines.len(), 4);
        let read = config(&written, format).policy;
        assert_eq!(
            actions(&policy(&lines), &headers),
            actions(&read, &headers),
            "{}\n{written}",
            lines.join("\n")
        );
    }
}
