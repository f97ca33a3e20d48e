//! IOS and IOS-XE.

use crate::support::{CiscoIos, Device};

const EDGE: &str = "\
!
version 15.7
hostname edge
!
interface GigabitEthernet0/0
 ip address 192.0.2.1 255.255.255.0
 ip access-group OUTSIDE in
 ip access-group 101 out
!
ip access-list extended OUTSIDE
 remark web servers
 permit tcp any host 10.0.0.1 eq www 443
 permit tcp any 10.0.1.0 0.0.0.255 range 8000 8099
 remark answers
 permit tcp any any established
 deny   udp any any neq domain
 permit udp 10.0.0.0 0.255.0.255 gt 1023 any
 permit icmp any any echo
 permit icmp any any 3 4
 deny   icmp any any log
 permit gre any any
 permit 88 any any
 deny   ip any any log-input
!
access-list 10 remark managers
access-list 10 permit 10.9.0.0 0.0.255.255
access-list 10 permit 10.8.0.1
access-list 10 deny   any log
access-list 101 permit ip 172.16.0.0 0.15.255.255 any
!
route-map R permit 10
 match ip address 10
banner motd ^C
access-list 101 deny ip any any
^C
line vty 0 4
 access-class 10 in
end
";

#[test]
fn the_first_entry_decides() {
    let device = Device::new(EDGE, CiscoIos);
    assert!(device.config.notes.is_empty(), "{:?}", device.config.notes);
    device.check(
        "permit 12 list=OUTSIDE src=1.2.3.4 dst=10.0.0.1 proto=tcp dport=80 tcp_flags=2
         permit 12 list=OUTSIDE src=1.2.3.4 dst=10.0.0.1 proto=tcp dport=443
         deny 23 list=OUTSIDE src=1.2.3.4 dst=10.0.0.1 proto=tcp dport=22 tcp_flags=2
         permit 13 list=OUTSIDE src=1.2.3.4 dst=10.0.1.9 proto=tcp dport=8099
         deny 23 list=OUTSIDE src=1.2.3.4 dst=10.0.1.9 proto=tcp dport=8100 tcp_flags=2
         permit 15 list=OUTSIDE src=1.2.3.4 dst=10.0.1.9 proto=tcp dport=1 tcp_flags=0x10
         permit 15 list=OUTSIDE src=1.2.3.4 dst=10.0.1.9 proto=tcp dport=1 tcp_flags=4
         deny 16 list=OUTSIDE src=10.7.9.200 dst=10.0.1.9 proto=udp dport=52
         deny 16 list=OUTSIDE src=10.7.9.200 dst=10.0.1.9 proto=udp dport=54
         permit 17 list=OUTSIDE src=10.7.0.200 dst=10.0.1.9 proto=udp sport=1024 dport=53
         deny 23 list=OUTSIDE src=10.7.0.200 dst=10.0.1.9 proto=udp sport=1023 dport=53
         deny 23 list=OUTSIDE src=10.7.1.200 dst=10.0.1.9 proto=udp sport=1024 dport=53
         permit 18 list=OUTSIDE src=1.2.3.4 dst=10.0.1.9 proto=icmp icmp_type=8 icmp_code=3
         permit 19 list=OUTSIDE src=1.2.3.4 dst=10.0.1.9 proto=icmp icmp_type=3 icmp_code=4
         deny 20 list=OUTSIDE src=1.2.3.4 dst=10.0.1.9 proto=icmp icmp_type=3 icmp_code=3
         permit 21 list=OUTSIDE src=1.2.3.4 dst=10.0.1.9 proto=gre
         permit 22 list=OUTSIDE src=1.2.3.4 dst=10.0.1.9 proto=eigrp
         deny 23 list=OUTSIDE src=1.2.3.4 dst=10.0.1.9 proto=ospf
         permit 26 list=10 src=10.9.255.1 dst=1.1.1.1 proto=udp
         permit 27 list=10 src=10.8.0.1 dst=1.1.1.1 proto=tcp
         deny 28 list=10 src=10.8.0.2 dst=1.1.1.1 proto=tcp
         permit 29 list=101 src=172.31.255.255 dst=1.1.1.1 proto=tcp
         deny 29* list=101 src=172.32.0.0 dst=1.1.1.1 proto=tcp",
    );
}

#[test]
fn statements_have_lines_columns_and_comments() {
    let device = Device::new(EDGE, CiscoIos);
    let statements = device.statements();
    assert_eq!(statements[0].comment.as_deref(), Some("web servers"));
    assert_eq!((statements[0].line, statements[0].column), (12, 2));
    assert_eq!(
        statements[0].text,
        "permit tcp any host 10.0.0.1 eq www 443"
    );
    assert_eq!(statements[1].comment, None);
    assert_eq!(statements[2].comment.as_deref(), Some("answers"));
    let implied: Vec<_> = device
        .config
        .sources
        .iter()
        .filter(|s| s.is_implied)
        .collect();
    let lists: Vec<_> = implied.iter().map(|source| &source.list[..]).collect();
    assert_eq!(lists, ["OUTSIDE", "10", "101"]);
    assert_eq!(
        (implied[0].line, &implied[0].text[..]),
        (10, "deny ip any any")
    );
    assert_eq!((implied[1].line, &implied[1].text[..]), (25, "deny any"));
    assert!(
        device
            .config
            .sources
            .iter()
            .all(|s| s.conditions.is_empty())
    );
}

/// A permit with ports also permits later fragments; a deny with ports does not match them.
#[test]
fn later_fragments_have_no_ports() {
    let text = "\
ip access-list extended A
 deny tcp any host 10.0.0.1 eq 22
 permit tcp any host 10.0.0.1 eq 80
 deny udp any any fragments
 permit udp any any
";
    Device::new(text, CiscoIos).check(
        "deny 2 list=A src=1.1.1.1 dst=10.0.0.1 proto=tcp dport=22 fragment=whole
         deny 2 list=A src=1.1.1.1 dst=10.0.0.1 proto=tcp dport=22 fragment=first
         permit 3 list=A src=1.1.1.1 dst=10.0.0.1 proto=tcp dport=22 fragment=later
         permit 3 list=A src=1.1.1.1 dst=10.0.0.1 proto=tcp fragment=3
         permit 3 list=A src=1.1.1.1 dst=10.0.0.1 proto=tcp dport=80 fragment=first
         deny 1* list=A src=1.1.1.1 dst=10.0.0.1 proto=tcp dport=81 fragment=first
         deny 1* list=A src=1.1.1.1 dst=10.0.0.2 proto=tcp fragment=later
         deny 4 list=A src=1.1.1.1 dst=10.0.0.1 proto=udp fragment=later
         permit 5 list=A src=1.1.1.1 dst=10.0.0.1 proto=udp fragment=first
         permit 5 list=A src=1.1.1.1 dst=10.0.0.1 proto=udp fragment=whole",
    );
}

#[test]
fn numbers_order_entries() {
    let text = "\
ip access-list extended A
 20 permit ip any any
 permit tcp any any
 remark first
 10 deny tcp any any eq 25
 15 remark between
 16 deny tcp any any eq 26
ip access-list extended A
 no 30
 5 remark zero
 5 deny tcp any any eq 24
 40 deny ip any any
 no deny tcp any any eq 26
no ip access-list extended B
ip access-list extended C
 permit ip any any
no ip access-list extended C
";
    let device = Device::new(text, CiscoIos);
    let lines: Vec<u32> = device.statements().iter().map(|s| s.line).collect();
    assert_eq!(lines, [11, 5, 2, 12]);
    let statements = device.statements();
    assert_eq!(statements[0].comment.as_deref(), Some("zero"));
    assert_eq!(statements[1].comment.as_deref(), Some("first"));
    assert_eq!(statements[2].comment.as_deref(), Some("between"));
    device.check(
        "deny 11 list=A src=1.1.1.1 dst=1.1.1.1 proto=tcp dport=24
         deny 5 list=A src=1.1.1.1 dst=1.1.1.1 proto=tcp dport=25
         permit 2 list=A src=1.1.1.1 dst=1.1.1.1 proto=tcp dport=26",
    );
    assert!(
        device
            .config
            .sources
            .iter()
            .all(|source| source.list == "A")
    );
}

#[test]
fn tcp_flags_are_bits() {
    let text = "\
ip access-list extended A
 permit tcp any host 10.0.0.1 syn
 permit tcp any host 10.0.0.2 match-all +syn -ack
 permit tcp any host 10.0.0.3 match-any +syn -ack
 permit tcp any host 10.0.0.4 eq 80 established log
 permit tcp any host 10.0.0.5 established match-all +fin
 permit tcp any host 10.0.0.6 -syn
";
    Device::new(text, CiscoIos).check(
        "permit 2 list=A src=1.1.1.1 dst=10.0.0.1 proto=tcp tcp_flags=0x12
         deny 1* list=A src=1.1.1.1 dst=10.0.0.1 proto=tcp tcp_flags=0x10
         permit 3 list=A src=1.1.1.1 dst=10.0.0.2 proto=tcp tcp_flags=0x02
         deny 1* list=A src=1.1.1.1 dst=10.0.0.2 proto=tcp tcp_flags=0x12
         permit 4 list=A src=1.1.1.1 dst=10.0.0.3 proto=tcp tcp_flags=0x12
         permit 4 list=A src=1.1.1.1 dst=10.0.0.3 proto=tcp tcp_flags=0
         deny 1* list=A src=1.1.1.1 dst=10.0.0.3 proto=tcp tcp_flags=0x10
         permit 5 list=A src=1.1.1.1 dst=10.0.0.4 proto=tcp dport=80 tcp_flags=0x10
         deny 1* list=A src=1.1.1.1 dst=10.0.0.4 proto=tcp dport=81 tcp_flags=0x10
         deny 1* list=A src=1.1.1.1 dst=10.0.0.4 proto=tcp dport=80 tcp_flags=0x02
         permit 6 list=A src=1.1.1.1 dst=10.0.0.5 proto=tcp tcp_flags=0x11
         deny 1* list=A src=1.1.1.1 dst=10.0.0.5 proto=tcp tcp_flags=0x10
         permit 7 list=A src=1.1.1.1 dst=10.0.0.6 proto=tcp tcp_flags=0
         deny 1* list=A src=1.1.1.1 dst=10.0.0.6 proto=tcp tcp_flags=2",
    );
}

/// A condition is a bit that headers have or not.
#[test]
fn options_that_no_field_has_are_conditions() {
    let text = "\
ip access-list extended A
 permit ip any any dscp ef
 permit ip any any time-range WORK log
 permit tcp any any eq 80 ttl range 1 5
 deny ip any any precedence critical
 permit igmp any any host-report
 permit ip any any option any-options
 permit ip any any tos max-reliability log-input tag7
";
    let device = Device::new(text, CiscoIos);
    let texts: Vec<&str> = device
        .conditions
        .texts()
        .iter()
        .map(|text| &text[..])
        .collect();
    assert_eq!(
        texts,
        [
            "dscp ef",
            "time-range WORK",
            "ttl range 1 5",
            "precedence critical",
            "igmp host-report",
            "option any-options",
            "tos max-reliability"
        ]
    );
    assert_eq!(device.statements()[0].conditions, ["dscp ef"]);
    device.check(
        "deny 1* list=A src=1.1.1.1 dst=1.1.1.1 proto=tcp dport=80 condition=0
         permit 2 list=A src=1.1.1.1 dst=1.1.1.1 proto=tcp dport=80 condition=1
         permit 3 list=A src=1.1.1.1 dst=1.1.1.1 proto=tcp dport=80 condition=2
         permit 4 list=A src=1.1.1.1 dst=1.1.1.1 proto=tcp dport=80 condition=0xc
         permit 4 list=A src=1.1.1.1 dst=1.1.1.1 proto=tcp dport=81 condition=0xc fragment=later
         deny 5 list=A src=1.1.1.1 dst=1.1.1.1 proto=tcp dport=81 condition=0xc
         permit 6 list=A src=1.1.1.1 dst=1.1.1.1 proto=igmp condition=0x10",
    );
}

#[test]
fn lists_of_ipv6_permit_neighbour_discovery() {
    let text = "\
ipv6 access-list V6
 permit tcp 2001:db8::/32 any eq www
 sequence 5 deny tcp host 2001:db8::1 any
 permit icmp any any echo-request
 deny udp any any
interface Gi0/0
 ipv6 traffic-filter V6 in
";
    let device = Device::new(text, CiscoIos);
    device.check(
        "permit 2 list=V6 src=2001:db8::2 dst=::1 proto=tcp dport=80
         deny 1* list=V6 src=2001:db8::2 dst=::1 proto=tcp dport=80 fragment=later
         deny 3 list=V6 src=2001:db8::1 dst=::1 proto=tcp dport=80
         permit 4 list=V6 src=2001:db8::1 dst=::1 proto=icmpv6 icmp_type=128
         permit 1* list=V6 src=fe80::1 dst=::1 proto=icmpv6 icmp_type=135
         permit 1* list=V6 src=fe80::1 dst=::1 proto=icmpv6 icmp_type=136
         deny 1* list=V6 src=fe80::1 dst=::1 proto=icmpv6 icmp_type=134",
    );
    assert!(device.config.policy.parts()[0].is_empty());
    let implied = device
        .config
        .sources
        .iter()
        .filter(|source| source.is_implied);
    let texts: Vec<_> = implied.map(|source| &source.text[..]).collect();
    assert_eq!(
        texts,
        [
            "permit icmp any any nd-na",
            "permit icmp any any nd-ns",
            "deny ipv6 any any"
        ]
    );
}

#[test]
fn show_access_lists_has_hits() {
    let text = "\
edge#show access-lists
Standard IP access list 10
    10 permit 10.8.0.1 (3 matches)
    20 permit 10.9.0.0, wildcard bits 0.0.255.255 (1 match)
    30 deny   any log
Extended IP access list 101 (Compiled)
    10 permit tcp any any eq www (1234 matches)
    20 deny ip any any time-range NIGHT (inactive) (12 estimate matches)
IPv6 access list V6
    permit tcp any any eq bgp (8 matches) sequence 20
    permit udp any any sequence 10
";
    let device = Device::new(text, CiscoIos);
    let hits: Vec<_> = device
        .statements()
        .iter()
        .map(|s| (s.line, s.hits))
        .collect();
    assert_eq!(
        hits,
        [
            (3, Some(3)),
            (4, Some(1)),
            (5, None),
            (7, Some(1234)),
            (8, Some(12)),
            (11, None),
            (10, Some(8))
        ]
    );
    device.check(
        "permit 3 list=10 src=10.8.0.1 dst=1.1.1.1
         permit 4 list=10 src=10.9.7.1 dst=1.1.1.1
         permit 7 list=101 src=10.9.7.1 dst=1.1.1.1 proto=tcp dport=80
         permit 10 list=V6 src=::1 dst=::2 proto=tcp dport=179",
    );
}

#[test]
fn lines_without_indentation_belong_to_their_list() {
    let text = "\
ip access-list extended A
remark lost
permit tcp any any eq 80
10 deny udp any any
!
deny ip any any
hostname x
";
    let problems = crate::support::problems(text, CiscoIos);
    assert!(
        problems.contains("line 3 has the number 10 too"),
        "{problems}"
    );
    let device = Device::new(&text.replace("10 deny", "20 deny"), CiscoIos);
    assert_eq!(device.statements().len(), 3);
    assert_eq!(device.statements()[0].comment.as_deref(), Some("lost"));
}

#[test]
fn empty_lists_have_no_rules_but_a_note() {
    let text = "ip access-list extended A\n remark nothing\ninterface e0\n ip access-group B in\n";
    let device = Device::new(text, CiscoIos);
    assert!(device.config.sources.is_empty());
    let notes = &device.config.notes;
    assert!(notes[0].starts_with("1 access list has no entries"));
    assert!(notes[0].ends_with("empty lists: `A`"));
    assert_eq!(
        notes[1],
        "1 access list is bound to an interface but not defined in the file: `B`"
    );
}

#[test]
fn lists_of_mac_addresses_are_left_out_with_a_note() {
    let text = "\
mac access-list extended M
 permit any any
ip access-list standard 7
 permit 10.0.0.1
arp access-list P
 permit ip host 10.0.0.1 mac any
";
    let device = Device::new(text, CiscoIos);
    assert_eq!(device.statements().len(), 1);
    assert_eq!(
        device.config.notes,
        ["1 access list is for MAC addresses and left out"]
    );
}
