//! Object groups.

use crate::support::{CiscoIos, CiscoXr, Device, problems};

const IOS_GROUPS: &str = "\
object-group network INNER
 host 10.0.0.1
 10.1.0.0 255.255.0.0
 range 10.2.0.1 10.2.0.2
object-group network OUTER
 description all
 group-object INNER
 10.3.0.0 /16
object-group service SVC
 tcp eq 80 443
 udp source eq 53
 tcp-udp range 6000 6001
 icmp echo
 ospf
";

#[test]
fn groups_of_ios_use_netmasks() {
    let text = IOS_GROUPS.to_owned()
        + "\
object-group network OUTER
 no 10.3.0.0 /16
 10.4.0.0 255.255.255.255
ip access-list extended A
 permit object-group SVC object-group OUTER any
 deny tcp any object-group INNER eq 22
 permit tcp host 10.9.9.9 object-group INNER
";
    Device::new(&text, CiscoIos).check(
        "permit 19 list=A src=10.0.0.1 dst=1.1.1.1 proto=tcp dport=443
         permit 19 list=A src=10.1.9.9 dst=1.1.1.1 proto=udp sport=53
         permit 19 list=A src=10.2.0.2 dst=1.1.1.1 proto=udp dport=6001
         permit 19 list=A src=10.4.0.0 dst=1.1.1.1 proto=tcp dport=6000
         permit 19 list=A src=10.4.0.0 dst=1.1.1.1 proto=icmp icmp_type=8
         permit 19 list=A src=10.4.0.0 dst=1.1.1.1 proto=ospf
         permit 19 list=A src=10.4.0.0 dst=1.1.1.1 proto=tcp fragment=later
         permit 19 list=A src=10.4.0.0 dst=1.1.1.1 proto=udp fragment=later
         deny 18* list=A src=10.3.0.1 dst=1.1.1.1 proto=ospf
         deny 18* list=A src=10.2.0.3 dst=1.1.1.1 proto=ospf
         deny 18* list=A src=10.4.0.0 dst=1.1.1.1 proto=gre fragment=later
         deny 20 list=A src=10.9.9.9 dst=10.1.1.1 proto=tcp dport=22
         permit 21 list=A src=10.9.9.9 dst=10.1.1.1 proto=tcp dport=23",
    );
}

/// A group may be defined after the list that uses it.
#[test]
fn groups_are_found_anywhere() {
    let text = "\
ipv4 access-list A
 10 permit ipv4 net-group N any
object-group network ipv4 N
 10.0.0.0/8
";
    Device::new(text, CiscoXr).check("permit 2 list=A src=10.1.1.1 dst=1.1.1.1");
}

#[test]
fn groups_with_faults_are_named() {
    let entry = "ip access-list extended A\n permit ip object-group G any\n";
    for (group, problem) in [
        ("", "f:2:25: no group of addresses is named `G`"),
        (
            "object-group network G\n",
            "f:2:25: the group `G` has no members",
        ),
        (
            "object-group network G\n group-object H\nobject-group network H\n group-object G\n",
            "f:2:25: the group `G` contains itself",
        ),
        (
            "object-group network G\n group-object H\n host 1.1.1.1\n",
            "f:2:25: no group of addresses is named `H`",
        ),
        (
            "object-group network G\n host 1.1.1\n",
            "f:4:7: `1.1.1` is not an address",
        ),
        (
            "object-group network G\n host 1.1.1\n",
            "f:2:25: the group `G` has a fault in line 4",
        ),
        (
            "object-group network G\n 10.0.0.0 0.0.0.255\n",
            "f:4:11: a mask that is no netmask",
        ),
        (
            "object-group network G\n no host 1.1.1.1\n",
            "f:4:5: the group has no such member",
        ),
        (
            "object-group service G\n tcp eq 80\n",
            "f:2:25: no group of addresses is named `G`",
        ),
    ] {
        let text = format!("{entry}{group}");
        let message = problems(&text, CiscoIos);
        assert!(message.contains(problem), "{text}\n{message}");
    }
}

#[test]
fn groups_have_limits() {
    let mut text = String::from("ip access-list extended A\n permit ip object-group G0 any\n");
    for level in 0..40 {
        text += &format!(
            "object-group network G{level}\n group-object G{}\n",
            level + 1
        );
    }
    text += "object-group network G40\n host 1.1.1.1\n";
    let message = problems(&text, CiscoIos);
    assert!(
        message.contains("f:2:25: more than 32 groups inside each other"),
        "{message}"
    );

    // Each level has the one below twice.
    let mut text = String::from("ip access-list extended A\n permit ip object-group G0 any\n");
    for level in 0..30 {
        let next = level + 1;
        text += &format!(
            "object-group network G{level}\n group-object G{next}\n group-object G{next}\n"
        );
    }
    text += "object-group network G30\n host 1.1.1.1\n";
    let message = problems(&text, CiscoIos);
    assert!(
        message.contains("f:2:25: the entries use more than 4194304 members"),
        "{message}"
    );
}

#[test]
fn groups_of_ipv6() {
    let text = "\
object-group v6-network N
 host ::1
 ::2/127
 group-object M
object-group v6-network M
 2001:db8::/32
ipv6 access-list A
 permit tcp object-group N any
";
    Device::new(text, CiscoIos).check(
        "permit 8 list=A src=::1 dst=::1 proto=tcp
         permit 8 list=A src=::3 dst=::1 proto=tcp
         permit 8 list=A src=2001:db8::3 dst=::1 proto=tcp
         deny 7* list=A src=::4 dst=::1 proto=tcp",
    );
}
