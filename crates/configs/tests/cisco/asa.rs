//! ASA.

use crate::support::{CiscoAsa, Device};

const FIREWALL: &str = "\
: Saved
ASA Version 9.16(2)
hostname fw
names
name 10.0.0.5 MAIL description the server
interface GigabitEthernet0/0
 nameif outside
 security-level 0
object network WEB1
 host 10.0.0.1
object network LAN
 subnet 10.1.0.0 255.255.0.0
object network RANGE
 range 10.2.0.1 10.2.0.3
object network V6
 subnet 2001:db8::/32
object network CDN
 fqdn v4 cdn.example.com
object service WEBPORT
 service tcp source gt 1023 destination eq https
object-group network ALL
 description everything
 network-object object LAN
 network-object host MAIL
 network-object 192.168.0.0 255.255.255.0
 group-object MORE
object-group network MORE
 network-object object RANGE
object-group service MIXED
 service-object object WEBPORT
 service-object udp destination eq domain
 service-object icmp echo
 service-object tcp-udp destination eq 5060
 service-object esp
object-group service TCPPORTS tcp
 port-object eq ssh
 port-object range 8000 8010
object-group protocol TCPUDP
 protocol-object udp
 protocol-object tcp
object-group icmp-type PING
 icmp-object echo
 icmp-object echo-reply
access-list OUT remark web
access-list OUT extended permit tcp any object WEB1 eq www log informational interval 600
access-list OUT extended permit object-group MIXED any4 object-group ALL
access-list OUT extended permit tcp object-group ALL object-group TCPPORTS any
access-list OUT extended permit tcp object-group ALL any object-group TCPPORTS
access-list OUT extended permit object-group TCPUDP any host MAIL eq sip
access-list OUT extended permit icmp any any object-group PING
access-list OUT extended deny ip 172.16.0.0 255.240.0.0 any inactive
access-list OUT extended permit tcp any interface outside eq 22
access-list OUT extended permit ip any object CDN time-range WORK
access-list OUT extended permit ip user CORP\\\\bob any any
access-list OUT extended permit ip any6 object V6
access-list OUT extended permit icmp6 any6 any6 neighbor-solicitation
access-list SPLIT standard permit 10.1.0.0 255.255.0.0
access-list UNUSED extended permit ip any any
object network WEB1
 nat (inside,outside) static 192.0.2.1
access-group OUT in interface outside
access-group SPLIT global
";

#[test]
fn the_first_entry_decides() {
    let device = Device::new(FIREWALL, CiscoAsa);
    device.check(
        "permit 45 list=OUT src=1.1.1.1 dst=10.0.0.1 proto=tcp dport=80
         deny 44* list=OUT src=1.1.1.1 dst=10.0.0.1 proto=tcp dport=80 fragment=later
         permit 46 list=OUT src=1.1.1.1 dst=10.1.9.9 proto=tcp sport=1024 dport=443
         deny 44* list=OUT src=1.1.1.1 dst=10.1.9.9 proto=tcp sport=1023 dport=443
         permit 46 list=OUT src=1.1.1.1 dst=10.0.0.5 proto=udp dport=53
         permit 46 list=OUT src=1.1.1.1 dst=192.168.0.9 proto=icmp icmp_type=8
         permit 46 list=OUT src=1.1.1.1 dst=10.2.0.3 proto=tcp dport=5060
         permit 46 list=OUT src=1.1.1.1 dst=10.2.0.3 proto=esp
         deny 44* list=OUT src=1.1.1.1 dst=10.2.0.4 proto=esp
         permit 47 list=OUT src=10.0.0.5 dst=1.1.1.1 proto=tcp sport=8005 dport=1
         permit 48 list=OUT src=10.0.0.5 dst=1.1.1.1 proto=tcp sport=1 dport=22
         permit 46 list=OUT src=10.0.0.6 dst=10.0.0.5 proto=udp dport=5060
         permit 50 list=OUT src=1.1.1.1 dst=1.1.1.1 proto=icmp icmp_type=0
         deny 44* list=OUT src=172.16.1.1 dst=1.1.1.1 proto=gre
         deny 44* list=OUT src=1.1.1.1 dst=1.1.1.1 proto=tcp dport=22
         permit 52 list=OUT src=1.1.1.1 dst=1.1.1.1 proto=tcp dport=22 condition=1
         permit 53 list=OUT src=1.1.1.1 dst=1.1.1.1 proto=tcp condition=6
         deny 44* list=OUT src=1.1.1.1 dst=1.1.1.1 proto=tcp condition=2
         permit 54 list=OUT src=1.1.1.1 dst=1.1.1.1 proto=tcp condition=8
         permit 55 list=OUT src=::1 dst=2001:db8::1 proto=tcp
         permit 56 list=OUT src=::1 dst=::2 proto=icmpv6 icmp_type=135
         deny 44* list=OUT src=::1 dst=::2 proto=icmpv6 icmp_type=136
         permit 57 list=SPLIT src=1.1.1.1 dst=10.1.0.1
         deny 57* list=SPLIT src=10.1.0.1 dst=1.1.1.1",
    );
    assert_eq!(
        device.conditions.texts(),
        [
            "destination interface outside",
            "destination fqdn v4 cdn.example.com",
            "time-range WORK",
            "source user CORP\\\\bob"
        ]
    );
    assert_eq!(
        device.config.notes,
        [
            "1 entry is `inactive` and not applied",
            "1 access list is bound to no interface by `access-group`: `UNUSED`",
            "a global access list examines the packets that no entry of an interface's list \
             matches; here each list ends with its own implied rule"
        ]
    );
    assert_eq!(device.statements()[0].comment.as_deref(), Some("web"));
}

#[test]
fn lines_are_positions() {
    let text = "\
access-list A extended permit tcp any any eq 80
access-list A extended permit tcp any any eq 81
access-list A line 1 extended deny tcp any any eq 82
access-list A line 2 remark before the first
access-list A permit udp any any
no access-list A extended permit tcp any any eq 81
access-list B extended permit ip any any
no access-list B
";
    let device = Device::new(text, CiscoAsa);
    let read: Vec<_> = device
        .statements()
        .iter()
        .map(|s| (s.line, s.comment.clone()))
        .collect();
    let comment = Some("before the first".to_owned());
    assert_eq!(read, [(3, None), (1, comment), (5, None)]);
}

#[test]
fn show_access_list_expands_groups() {
    let text = "\
access-list cached ACL log flows: total 0, denied 0 (deny-flow-max 4096)
            alert-interval 300
access-list OUT; 4 elements; name hash: 0x1a2b3c4d
access-list OUT line 1 remark web
access-list OUT line 2 extended permit tcp any object-group WEB eq www (hitcnt=9) 0x0a0b0c0d
  access-list OUT line 2 extended permit tcp any host 10.0.0.1 eq www (hitcnt=4) 0x11111111
  access-list OUT line 2 extended permit tcp any host 10.0.0.2 eq www (hitcnt=5) 0x22222222
access-list OUT line 3 extended permit udp any any inactive (hitcnt=0) (inactive) 0x33333333
access-list OUT line 4 extended deny ip any any log (hitcnt=77) 0x44444444
";
    let device = Device::new(text, CiscoAsa);
    let hits: Vec<_> = device
        .statements()
        .iter()
        .map(|s| (s.line, s.hits))
        .collect();
    assert_eq!(hits, [(6, Some(4)), (7, Some(5)), (9, Some(77))]);
    assert_eq!(device.statements()[0].column, 3);
    assert_eq!(device.statements()[0].comment.as_deref(), Some("web"));
    device.check(
        "permit 7 list=OUT src=1.1.1.1 dst=10.0.0.2 proto=tcp dport=80
         deny 9 list=OUT src=1.1.1.1 dst=10.0.0.3 proto=tcp dport=80
         deny 9 list=OUT src=::1 dst=::2 proto=tcp dport=80",
    );
}

#[test]
fn asa_has_objects_that_no_statement_defines() {
    let text = "\
access-list A extended permit object icmp-echo any any
access-list A extended permit object icmp6-echo any any
access-list A extended permit object ospf any4 any4
";
    Device::new(text, CiscoAsa).check(
        "permit 1 list=A src=1.1.1.1 dst=1.1.1.1 proto=icmp icmp_type=8
         deny 1* list=A src=1.1.1.1 dst=1.1.1.1 proto=icmp icmp_type=0
         permit 2 list=A src=::1 dst=::1 proto=icmpv6 icmp_type=128
         permit 3 list=A src=1.1.1.1 dst=1.1.1.1 proto=ospf
         deny 1* list=A src=::1 dst=::1 proto=ospf",
    );
}
