//! Faults: lines, columns, messages and the names of unsupported features.

use classyard_configs::ConfigFormat;
use classyard_workload::diagnostic::ReadOptions;

use crate::support::{CiscoAsa, CiscoIos, CiscoNxos, CiscoXr, Device, problems, read_with};

/// An entry, the column of the fault, the start of the message.
type Row = (&'static str, usize, &'static str);

fn check(format: ConfigFormat, header: &str, rows: &[Row]) {
    for (entry, column, message) in rows {
        let text = format!("{header}\n {entry}\n permit ip host 1.1.1.1 any\n");
        let listed = problems(&text, format);
        let expected = format!("f:2:{}: {message}", column + 1);
        assert!(
            listed.starts_with(&expected),
            "{entry}\n{listed}\n{expected}"
        );
    }
}

const IOS_ROWS: &[Row] = &[
    ("permit", 7, "the statement ends here"),
    ("permit tcp", 11, "the statement ends here"),
    ("permit tcp any", 15, "the statement ends here"),
    ("permit foo any any", 8, "the unknown protocol `foo`"),
    ("permit ipv6 any any", 8, "the unknown protocol `ipv6`"),
    ("permit 256 any any", 8, "the unknown protocol `256`"),
    ("permit ip any 10.0.0.0", 23, "the statement ends here"),
    ("permit ip 10.0.0.0 x any", 20, "`x` is not a mask"),
    (
        "permit ip 10.0.0 0.0.0.255 any",
        11,
        "`10.0.0` is not an address",
    ),
    (
        "permit ip host 10.0.0 any",
        16,
        "`10.0.0` is not an address",
    ),
    (
        "permit ip host ::1 any",
        11,
        "an address of another IP version",
    ),
    ("permit tcp any any eq", 22, "the statement ends here"),
    (
        "permit tcp any any eq 65536",
        23,
        "the unknown port `65536`",
    ),
    (
        "permit tcp any any eq syslog",
        23,
        "the unknown port `syslog`",
    ),
    (
        "permit tcp any any eq 80 syslog",
        26,
        "the unknown port `syslog`",
    ),
    (
        "permit tcp any any neq www sqlnet",
        28,
        "the port name `sqlnet`",
    ),
    (
        "permit tcp any any eq 80 htps",
        26,
        "the unknown word `htps`",
    ),
    ("permit tcp any any range 1 2 3", 30, "the unknown word `3`"),
    (
        "permit tcp any any range 9 8",
        26,
        "a range whose first port is above",
    ),
    (
        "permit tcp any any lt 0",
        23,
        "no port is selected by `lt 0`",
    ),
    ("permit ip any any eq 80", 19, "the unknown word `eq`"),
    (
        "permit udp any any established",
        20,
        "`established` in an entry for other",
    ),
    (
        "permit tcp any any eq 80 fragments",
        26,
        "`fragments` in an entry with ports",
    ),
    (
        "permit tcp any any fragments established",
        20,
        "`fragments` in an entry with",
    ),
    (
        "permit tcp any any syn ack",
        20,
        "several TCP flags without `match-any`",
    ),
    (
        "permit tcp any any match-all",
        29,
        "the statement ends here",
    ),
    (
        "permit tcp any any match-all +syn -syn",
        20,
        "a TCP flag that must be set and",
    ),
    ("permit icmp any any 256", 21, "the ICMP number `256`"),
    ("permit icmp any any 3 256", 23, "the ICMP number `256`"),
    ("permit icmp any any nd-na", 21, "the unknown word `nd-na`"),
    ("permit ip any any dscp", 23, "the statement ends here"),
    ("permit ip any any reflect R", 19, "the option `reflect`"),
    (
        "evaluate R",
        1,
        "the statement `evaluate` in an access list",
    ),
    (
        "dynamic D permit ip any any",
        1,
        "the statement `dynamic` in an access list",
    ),
    ("allow ip any any", 1, "the unknown statement `allow`"),
    ("10", 3, "the statement ends here"),
    (
        "no permit ip any any",
        1,
        "no entry of the list is the same",
    ),
    (
        "permit ip any any (3 bytes)",
        19,
        "the unknown counter `3 bytes`",
    ),
    (
        "permit ip any any (3 matches",
        19,
        "a bracket that is not closed",
    ),
    (
        "99999999999999999999 permit ip any any",
        1,
        "a sequence number that is too",
    ),
    (
        "permit ip any any log extra words",
        23,
        "the unknown word `extra`",
    ),
];

#[test]
fn entries_of_ios() {
    check(CiscoIos, "ip access-list extended A", IOS_ROWS);
}

const NXOS_ROWS: &[Row] = &[
    (
        "10 permit tcp any any ack tcp-flags-mask 47",
        27,
        "the option `tcp-flags-mask`",
    ),
    (
        "10 permit tcp any any eq 80 81",
        29,
        "the unknown word `81`",
    ),
    (
        "10 permit ip addrgroup G any",
        24,
        "no group of addresses is named `G`",
    ),
    (
        "10 permit tcp any portgroup G any",
        29,
        "no group of ports is named `G`",
    ),
    ("fragments some", 11, "the unknown word `some`"),
    (
        "ignore routable",
        1,
        "the statement `ignore` in an access list",
    ),
    (
        "10 permit ip any any redirect Ethernet1/1",
        22,
        "the option `redirect`",
    ),
];

const XR_ROWS: &[Row] = &[
    (
        "10 permit ipv4 any any nexthop1 ipv4 1.1.1.1",
        24,
        "the option `nexthop1`",
    ),
    (
        "10 permit ipv4 any any set qos-group 1",
        24,
        "the option `set`",
    ),
    (
        "10 permit 10.0.0.0/33 any",
        11,
        "the unknown protocol `10.0.0.0/33`",
    ),
    ("10 permit 10.0.0.0/8 any", 22, "the unknown word `any`"),
];

#[test]
fn entries_of_other_systems() {
    check(CiscoNxos, "ip access-list A", NXOS_ROWS);
    check(CiscoXr, "ipv4 access-list A", XR_ROWS);
}

const ASA_ROWS: &[Row] = &[
    ("extended", 9, "the statement ends here"),
    (
        "webtype permit url x",
        1,
        "an access list of the kind `webtype`",
    ),
    (
        "ethertype permit any",
        1,
        "an access list of the kind `ethertype`",
    ),
    ("line 0 extended permit ip any any", 6, "the position `0`"),
    (
        "extended permit ip 10.0.0.0 0.0.0.255 any",
        29,
        "a mask that is no netmask",
    ),
    (
        "extended permit ip any any4 extra",
        29,
        "the unknown word `extra`",
    ),
    (
        "extended permit tcp any any eq 80 443",
        35,
        "the unknown word `443`",
    ),
    (
        "extended permit tcp any any eq kerberos",
        32,
        "the port name `kerberos`",
    ),
    (
        "extended permit tcp any any object-group P",
        29,
        "the unknown word `object-group`",
    ),
    (
        "extended permit object S any any",
        24,
        "no group of services is named `S`",
    ),
    (
        "extended permit icmp6 any any object-group P",
        44,
        "a group of ICMP types",
    ),
    (
        "extended permit ip any any established",
        28,
        "the unknown word `established`",
    ),
];

#[test]
fn entries_of_asa() {
    for (entry, column, message) in ASA_ROWS {
        let text = format!("access-list A {entry}\n");
        let listed = problems(&text, CiscoAsa);
        let expected = format!("f:1:{}: {message}", column + 14);
        assert!(
            listed.starts_with(&expected),
            "{entry}\n{listed}\n{expected}"
        );
    }
}

/// Texts, and the start of the first message.
const TEXTS: &[(&str, ConfigFormat, &str)] = &[
    (
        "permit ip any any",
        CiscoIos,
        "f:1:1: an entry outside of an access list",
    ),
    (
        "access-list 700 permit 0000.0000.0000",
        CiscoIos,
        "f:1:13: a number of access lists",
    ),
    (
        "access-list 101",
        CiscoIos,
        "f:1:16: the statement ends here",
    ),
    (
        "access-list rate-limit 1 0000",
        CiscoIos,
        "f:1:13: an access list of the kind",
    ),
    (
        "access-list X permit ip any any",
        CiscoIos,
        "f:1:13: the unknown number `X`",
    ),
    (
        "no access-list 101 permit ip any any",
        CiscoIos,
        "f:1:20: an entry after",
    ),
    (
        "ip access-list X",
        CiscoIos,
        "f:1:16: the unknown kind of access lists `X`",
    ),
    (
        "ip access-list role-based X",
        CiscoIos,
        "f:1:16: `ip access-list role-based`",
    ),
    (
        "ip access-list extended",
        CiscoIos,
        "f:1:16: the unknown kind",
    ),
    (
        "Reflexive IP access list X",
        CiscoIos,
        "f:1:1: an access list of the kind",
    ),
    (
        "ipv6 access-list X permit",
        CiscoAsa,
        "f:1:6: `ipv6 access-list` in a configuration",
    ),
    (
        "no access-list X permit ip any any",
        CiscoAsa,
        "f:1:1: no entry of the list",
    ),
    (
        "object-group network",
        CiscoAsa,
        "f:1:21: the statement ends here",
    ),
    (
        "object-group network a b",
        CiscoAsa,
        "f:1:24: the unknown word `b`",
    ),
    (
        "ip access-list standard 10\n permit any\nip access-list extended 10",
        CiscoIos,
        "f:3:25: the list `10` is of another kind in line 1",
    ),
    (
        "object-group network ipv4 N\n 10.0.0.0 255.0.0.0",
        CiscoXr,
        "f:2:11: an address with a mask in an object group of IOS XR",
    ),
];

#[test]
fn statements_outside_of_lists() {
    for &(text, format, message) in TEXTS {
        let listed = problems(text, format);
        assert!(listed.starts_with(message), "{text}\n{listed}");
    }
}

/// Problems are listed in the order of the file, and features are counted by name.
#[test]
fn faulty_entries_are_skipped_and_counted() {
    let text = "\
ip access-list extended A
 permit tcp any any reflect R1
 permit udp any any reflect R2
 deny ip host 1.1.1 any
 bogus
 evaluate R3
 deny ip any any
";
    let options = ReadOptions::DEFAULT.with_skip_bad(true);
    let config = read_with(text, CiscoIos, &options).unwrap();
    assert_eq!(config.skipped.total(), 5);
    let lines: Vec<_> = config.skipped.shown().iter().map(|p| p.line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6]);
    let reasons = config.skipped.by_reason();
    assert!(
        reasons.contains(&("the option `reflect`", 2)),
        "{reasons:?}"
    );
    assert!(reasons.contains(&("the statement `evaluate` in an access list", 1)));
    let device = Device::with_options(text, CiscoIos, &options);
    assert_eq!(device.statements().len(), 1);
    device.check("deny 7 list=A src=1.1.1.1 dst=1.1.1.1");
}

/// A list whose entries are all faulty still ends with its implied rule.
#[test]
fn a_faulty_list_still_denies() {
    let options = ReadOptions::DEFAULT.with_skip_bad(true);
    let text = "ip access-list extended A\n permit foo any any\naccess-list 5 permit any\n";
    Device::with_options(text, CiscoIos, &options).check("deny 1* list=A src=1.1.1.1 dst=1.1.1.1");
}
