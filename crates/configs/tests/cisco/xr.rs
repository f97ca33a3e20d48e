//! IOS XR.

use crate::support::{CiscoXr, Device};

const CORE: &str = "\
!! IOS XR Configuration 7.3.2
hostname core
object-group network ipv4 NETS
 10.0.0.0/8
 host 192.0.2.1
 range 198.51.100.1 198.51.100.6
 object-group MORE
!
object-group network ipv4 MORE
 description nested
 203.0.113.0/24
!
object-group port PORTS
 eq ssh
 range 8000 8010
!
ipv4 access-list EDGE
 10 remark management
 20 permit tcp net-group NETS any port-group PORTS
 30 deny udp any 10.1.0.0 0.0.255.255 eq domain
 ! a comment inside of the list
 25 permit ipv4 host 192.0.2.9 any
 40 permit icmp any any echo-reply
 50 permit tcp any any established capture
 60 deny ipv4 any any log-input
!
ipv4 access-list EDGE 70 permit ipv4 any any
ipv4 access-list SOURCES
 10 permit 10.0.0.0/8
 20 permit 172.16.0.0 0.15.255.255 log
 30 permit any
!
ipv6 access-list V6
 10 permit icmpv6 any any echo
 20 permit tcp any 2001:db8::/32 eq www
 30 permit ipv6 fe80::/10 any fragments
!
interface Bundle-Ether1
 ipv4 access-group common EDGE SOURCES ingress
 ipv6 access-group V6 egress
!
";

#[test]
fn the_first_entry_decides() {
    let device = Device::new(CORE, CiscoXr);
    assert!(device.config.notes.is_empty(), "{:?}", device.config.notes);
    device.check(
        "permit 19 list=EDGE src=10.9.9.9 dst=1.1.1.1 proto=tcp dport=22
         permit 19 list=EDGE src=203.0.113.9 dst=1.1.1.1 proto=tcp dport=8010
         permit 19 list=EDGE src=198.51.100.6 dst=1.1.1.1 proto=tcp dport=8010
         permit 19 list=EDGE src=198.51.100.6 dst=1.1.1.1 proto=tcp fragment=later
         deny 25 list=EDGE src=198.51.100.7 dst=1.1.1.1 proto=tcp dport=8010
         permit 22 list=EDGE src=192.0.2.9 dst=10.1.7.7 proto=udp dport=53
         deny 20 list=EDGE src=192.0.2.8 dst=10.1.7.7 proto=udp dport=53
         deny 25 list=EDGE src=192.0.2.8 dst=10.1.7.7 proto=udp dport=54
         permit 23 list=EDGE src=192.0.2.8 dst=10.1.7.7 proto=icmp icmp_type=0
         permit 24 list=EDGE src=192.0.2.8 dst=10.1.7.7 proto=tcp tcp_flags=4
         permit 29 list=SOURCES src=10.1.1.1 dst=1.1.1.1
         permit 30 list=SOURCES src=172.31.1.1 dst=1.1.1.1
         permit 31 list=SOURCES src=172.32.1.1 dst=1.1.1.1
         permit 34 list=V6 src=::1 dst=::2 proto=icmpv6 icmp_type=128
         permit 35 list=V6 src=::1 dst=2001:db8::2 proto=tcp dport=80
         permit 36 list=V6 src=fe80::1 dst=::2 proto=tcp fragment=later
         permit 33* list=V6 src=fe80::1 dst=::2 proto=icmpv6 icmp_type=135
         deny 33* list=V6 src=fe80::1 dst=::2 proto=tcp",
    );
    let statements = device.statements();
    assert_eq!(statements[0].comment.as_deref(), Some("management"));
    let single_line = statements.iter().find(|source| source.line == 27).unwrap();
    assert_eq!((single_line.column, &single_line.list[..]), (1, "EDGE"));
    let implied = device.config.sources.iter().find(|s| s.is_implied).unwrap();
    assert_eq!(implied.text, "deny ipv4 any any");
}

#[test]
fn counters_of_hardware_are_read() {
    let text = "\
ipv4 access-list A
 10 permit tcp any any (17 hw matches)
 20 deny ipv4 any any (3 matches)
";
    let device = Device::new(text, CiscoXr);
    let hits: Vec<_> = device.statements().iter().map(|s| s.hits).collect();
    assert_eq!(hits, [Some(17), Some(3)]);
}
