//! Several ports after `eq` and `neq`.

use crate::support::{CiscoAsa, CiscoIos, CiscoNxos, CiscoXr, Device, problems};

/// Returns the entries as a list of a router.
fn list(entries: &str) -> String {
    let header = "ip access-list extended A";
    format!("{header}\n{entries}")
}

#[test]
fn lists_of_ports_are_one_statement_with_a_rule_for_each_range() {
    let text = list(
        " deny tcp any any eq 80 443 8080\n deny tcp any neq 80 www 443 any neq 22 23\n \
         permit udp any eq ntp domain snmp any eq 1 2 4\n",
    );
    let device = Device::new(&text, CiscoIos);
    let sources = device.config.source_of_rule.iter();
    let mut rule_counts = [0; 3];
    for &source in sources.filter(|&&source| source < 3) {
        rule_counts[source as usize] += 1;
    }
    // Other source ports: 0-79, 81-442, 444-65535; other destination ports: 0-21, 24-65535.
    // The last entry has 3 ranges of source ports and 2 of destination ports, and permits
    // later fragments by one more rule.
    assert_eq!(rule_counts, [3, 3 * 2, 3 * 2 + 1]);
    device.check(
        "deny 2 list=A proto=tcp src=1.1.1.1 dst=2.2.2.2 sport=443 dport=8080
         deny 3 list=A proto=tcp src=1.1.1.1 dst=2.2.2.2 sport=442 dport=24
         deny 1* list=A proto=tcp src=1.1.1.1 dst=2.2.2.2 sport=442 dport=23
         deny 1* list=A proto=tcp src=1.1.1.1 dst=2.2.2.2 sport=443 dport=24
         permit 4 list=A proto=udp src=1.1.1.1 dst=2.2.2.2 sport=53 dport=4
         permit 4 list=A proto=udp src=1.1.1.1 dst=2.2.2.2 sport=161 dport=1
         deny 1* list=A proto=udp src=1.1.1.1 dst=2.2.2.2 sport=161 dport=3",
    );
}

#[test]
fn only_ios_has_lists_of_ports() {
    for header in ["ip access-list extended A", "ipv6 access-list A"] {
        let text = format!("{header}\n 10 permit tcp any any eq www 443\n");
        let device = Device::new(&text, CiscoIos);
        let address = if header.starts_with("ipv6") {
            "::1"
        } else {
            "1.1.1.1"
        };
        for (port, decision) in [(80, "permit 2"), (443, "permit 2"), (81, "deny 1*")] {
            let packet = format!("list=A proto=tcp src={address} dst={address} dport={port}");
            device.check(&format!("{decision} {packet}"));
        }
    }
    for (format, text) in [
        (
            CiscoNxos,
            "ip access-list A\n 10 permit tcp any any eq 80 443\n",
        ),
        (
            CiscoXr,
            "ipv4 access-list A\n 10 permit tcp any any eq 80 443\n",
        ),
        (
            CiscoAsa,
            "access-list A extended permit tcp any any eq 80 443\n",
        ),
    ] {
        assert!(problems(text, format).contains("the unknown word `443`"));
    }
}

/// The options of an entry end its list of ports.
#[test]
fn options_after_a_list_of_ports_are_read() {
    let options = [
        "established",
        "log",
        "log-input",
        "syn",
        "match-all +syn -ack",
        "dscp ef",
        "dscp 46",
        "precedence 5",
        "time-range WORK",
        "ttl eq 5",
        "tos 4",
    ];
    for option in options {
        let read = |ports: &str| {
            let text = list(&format!(" permit tcp any any {ports} {option}\n"));
            let device = Device::new(&text, CiscoIos);
            (
                device.config.source_of_rule.len(),
                device.conditions.texts().to_vec(),
            )
        };
        let (rule_count, conditions) = read("eq 80 443 www");
        let (rule_count_of_one_port, expected_conditions) = read("eq 80");
        assert_eq!(conditions, expected_conditions, "{option}");
        // Whole packets and first fragments to port 443.
        assert!(rule_count > rule_count_of_one_port, "{option}");
    }
    let text = list(" permit tcp any any eq 80 443 established\n");
    Device::new(&text, CiscoIos).check(
        "permit 2 list=A proto=tcp src=1.1.1.1 dst=2.2.2.2 dport=443 tcp_flags=0x10
         deny 1* list=A proto=tcp src=1.1.1.1 dst=2.2.2.2 dport=443 tcp_flags=2",
    );
}

/// Lists are read up to a source address; ten ports are the most that IOS takes.
#[test]
fn ten_ports_before_an_address() {
    let ports: Vec<String> = (0..10).map(|port| (port * 2).to_string()).collect();
    let ports = ports.join(" ");
    let text = list(&format!(" permit tcp any eq {ports} host 10.0.0.1 eq 80\n"));
    Device::new(&text, CiscoIos).check(
        "permit 2 list=A proto=tcp src=1.1.1.1 dst=10.0.0.1 sport=18 dport=80
         deny 1* list=A proto=tcp src=1.1.1.1 dst=10.0.0.1 sport=17 dport=80",
    );
}
