//! NX-OS.

use crate::support::{CiscoNxos, Device};

const LEAF: &str = "\
!Command: show running-config
version 9.3(5) Bios:version 05.33
feature bgp
vdc leaf id 1
object-group ip address SERVERS
  10 host 10.0.0.1
  20 10.1.0.0/16
  30 10.2.0.0 0.0.255.0
object-group ip port WEB
  10 eq 80
  20 range 8443 8000
  30 gt 65000
ip access-list EDGE
  statistics per-entry
  10 remark servers
  20 permit tcp any addrgroup SERVERS portgroup WEB
  30 permit udp 192.0.2.0/24 lt 1024 any
  15 deny tcp 198.51.100.0 0.0.0.255 any log
  40 permit ip 203.0.113.7/32 any
  permit icmp any any packet-too-big
  fragments permit-all
interface Ethernet1/1
  ip access-group EDGE in
  ip port access-group MISSING in
";

#[test]
fn the_first_entry_decides() {
    let device = Device::new(LEAF, CiscoNxos);
    device.check(
        "permit 16 list=EDGE src=1.1.1.1 dst=10.0.0.1 proto=tcp dport=80
         permit 16 list=EDGE src=1.1.1.1 dst=10.1.7.1 proto=tcp dport=8000
         permit 16 list=EDGE src=1.1.1.1 dst=10.1.7.1 proto=tcp dport=8443
         permit 16 list=EDGE src=1.1.1.1 dst=10.2.9.0 proto=tcp dport=65001
         deny 13* list=EDGE src=1.1.1.1 dst=10.2.9.1 proto=tcp dport=65001
         deny 13* list=EDGE src=1.1.1.1 dst=10.2.9.0 proto=tcp dport=65000
         deny 18 list=EDGE src=198.51.100.4 dst=10.0.0.1 proto=tcp dport=80
         permit 17 list=EDGE src=192.0.2.1 dst=1.1.1.1 proto=udp sport=1023
         deny 13* list=EDGE src=192.0.2.1 dst=1.1.1.1 proto=udp sport=1024
         permit 19 list=EDGE src=203.0.113.7 dst=1.1.1.1 proto=gre
         permit 20 list=EDGE src=1.1.1.1 dst=1.1.1.1 proto=icmp icmp_type=3 icmp_code=4
         permit 21 list=EDGE src=1.1.1.1 dst=1.1.1.1 proto=gre fragment=later
         permit 16 list=EDGE src=1.1.1.1 dst=10.0.0.1 proto=tcp fragment=later
         deny 13* list=EDGE src=1.1.1.1 dst=1.1.1.1 proto=gre",
    );
    assert_eq!(device.statements()[0].line, 18);
    assert_eq!(device.statements()[0].comment.as_deref(), Some("servers"));
    assert_eq!(
        device.config.notes,
        ["1 access list is bound to an interface but not defined in the file: `MISSING`"]
    );
}

#[test]
fn remarks_have_numbers() {
    let text = "\
ip access-list A
  remark one
  permit tcp any any
  12 remark two
  15 permit udp any any
  11 permit igmp any any
";
    let device = Device::new(text, CiscoNxos);
    let read: Vec<_> = device
        .statements()
        .iter()
        .map(|s| (s.line, s.comment.clone()))
        .collect();
    let [first, second] = ["one", "two"].map(|comment| Some(comment.to_owned()));
    assert_eq!(read, [(6, first), (5, second), (3, None)]);
}

#[test]
fn lists_of_ipv6_permit_neighbours_and_routers() {
    let text = "\
object-group ipv6 address V6HOSTS
  host 2001:db8::7
ipv6 access-list V6
  10 permit tcp addrgroup V6HOSTS any eq 22
  20 deny icmp any any echo-request
  30 permit udp any 2001:db8::9 eq ntp
";
    Device::new(text, CiscoNxos).check(
        "permit 4 list=V6 src=2001:db8::7 dst=::1 proto=tcp dport=22
         deny 3* list=V6 src=2001:db8::8 dst=::1 proto=tcp dport=22
         deny 5 list=V6 src=2001:db8::7 dst=::1 proto=icmpv6 icmp_type=128
         permit 6 list=V6 src=::1 dst=2001:db8::9 proto=udp dport=123
         permit 3* list=V6 src=2001:db8::7 dst=::1 proto=icmpv6 icmp_type=136
         permit 3* list=V6 src=2001:db8::7 dst=::1 proto=icmpv6 icmp_type=134
         permit 3* list=V6 src=2001:db8::7 dst=::1 proto=icmpv6 icmp_type=133
         deny 3* list=V6 src=2001:db8::7 dst=::1 proto=icmpv6 icmp_type=129",
    );
}

#[test]
fn show_access_lists_has_hits() {
    let text = "\
IP access list EDGE
        statistics per-entry
        10 permit tcp any any eq 22 [match=1204]
        20 deny ip any any [match=0]
IPV4 ACL OLD
        10 permit ip any any
";
    let device = Device::new(text, CiscoNxos);
    let hits: Vec<_> = device.statements().iter().map(|s| s.hits).collect();
    assert_eq!(hits, [Some(1204), Some(0), None]);
    assert_eq!(device.statements()[2].list, "OLD");
}

#[test]
fn options_are_conditions() {
    let text = "\
ip access-list A
  permit tcp any any http-method get
  permit udp any any nve vni 10000
  permit ip any any packet-length range 500 600
  permit tcp any any established ttl 5
";
    let device = Device::new(text, CiscoNxos);
    assert_eq!(
        device.conditions.texts(),
        [
            "http-method get",
            "vni 10000",
            "packet-length range 500 600",
            "ttl 5"
        ]
    );
}
