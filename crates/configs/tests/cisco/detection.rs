//! The detection of systems by their statements.

use classyard_configs::ConfigFormat;

use crate::support::{CiscoAsa, CiscoIos, CiscoNxos, CiscoXr, FORMATS};

const TEXTS: &[(&str, ConfigFormat)] = &[
    (
        "IPv6 access list A\n        10 permit ipv6 any any [match=3]",
        CiscoNxos,
    ),
    ("access-list 101 permit ip any any", CiscoIos),
    (
        "access-list 101 remark x\naccess-list 101 permit ip any any",
        CiscoIos,
    ),
    ("ip access-list extended A\n permit ip any any", CiscoIos),
    ("ip access-list standard 10\n 10 permit any", CiscoIos),
    ("no ip access-list extended A", CiscoIos),
    (
        "r1#show access-lists\nExtended IP access list A\n    10 permit ip any any",
        CiscoIos,
    ),
    ("ipv6 access-list A\n permit ipv6 any any", CiscoIos),
    (
        "ip access-list extended A\n permit tcp any any\nipv6 access-list B",
        CiscoIos,
    ),
    (
        "object-group network N\n host 1.1.1.1\nip access-list extended A",
        CiscoIos,
    ),
    ("ip access-list A\n  10 permit ip any any", CiscoNxos),
    (
        "feature bgp\nipv6 access-list A\n  10 permit ipv6 any any",
        CiscoNxos,
    ),
    (
        "!Command: show running-config\nipv6 access-list A",
        CiscoNxos,
    ),
    ("object-group ip address A\n  host 1.1.1.1", CiscoNxos),
    (
        "IP access list A\n        10 permit ip any any [match=0]",
        CiscoNxos,
    ),
    ("ipv4 access-list A\n 10 permit ipv4 any any", CiscoXr),
    (
        "!! IOS XR Configuration 7.0\nipv6 access-list A\n 10 permit ipv6 any any",
        CiscoXr,
    ),
    ("ipv6 access-list A\n 10 permit icmpv6 any any", CiscoXr),
    ("object-group network ipv4 N\n 10.0.0.0/8", CiscoXr),
    ("access-list A extended permit ip any any", CiscoAsa),
    ("access-list 101 extended permit ip any any", CiscoAsa),
    ("access-list A permit ip any any", CiscoAsa),
    ("access-list A line 1 remark x", CiscoAsa),
    (
        "ASA Version 9.8(2)\nobject-group network N\n network-object host 1.1.1.1",
        CiscoAsa,
    ),
    ("object network N\n host 1.1.1.1", CiscoAsa),
    (
        "object-group network N\n network-object host 1.1.1.1",
        CiscoAsa,
    ),
];

#[test]
fn systems_are_detected_by_their_statements() {
    for &(text, format) in TEXTS {
        assert_eq!(ConfigFormat::detect(text), Some(format), "{text}");
        let windows = text.replace('\n', "\r\n");
        assert_eq!(ConfigFormat::detect(&windows), Some(format), "{text}");
    }
}

#[test]
fn other_texts_are_not_detected() {
    for text in [
        "",
        "hostname r1\ninterface e0\n ip address 1.1.1.1 255.255.255.0",
        "ASA Version 9.8(2)\nhostname fw",
        "feature bgp\nvdc a id 1",
        "@10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF",
        "! device: sw1 (DCS-7050, EOS-4.20.1F)\nip access-list A\n   10 permit ip any any",
        "access-list acl1 permit 10.0.0.0/8",
        "set firewall family inet filter F term T then accept",
        "table inet filter {\n chain input {\n  tcp dport 22 accept\n }\n}",
        "{\"SecurityGroups\": []}",
    ] {
        let detected = ConfigFormat::detect(text);
        assert!(
            detected.is_none_or(|format| !FORMATS.contains(&format)),
            "{text}"
        );
    }
}

#[test]
fn formats_have_names() {
    for format in FORMATS {
        assert_eq!(ConfigFormat::from_name(format.name()), Some(format));
    }
    let names = FORMATS.map(ConfigFormat::name);
    assert_eq!(names, ["cisco-ios", "cisco-nxos", "cisco-xr", "cisco-asa"]);
}
