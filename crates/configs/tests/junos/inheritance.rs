//! Groups.

use super::helper::{load, problems};

const ANY: &str = "match { source-address any; destination-address any; application any; }";

#[test]
fn policies_of_a_group_follow_own_policies() {
    let text = format!(
        "groups {{
    log-deny {{ security {{ policies {{ from-zone <*> to-zone <*> {{
        policy default-deny {{ {ANY} then {{ deny; log {{ session-init; }} }} }}
    }} }} }} }}
    count {{ security {{ policies {{ from-zone <t*> to-zone <*> {{ policy <*> {{ then {{ count; }} }} }} }} }} }}
}}
apply-groups [ log-deny count ];
security {{
    policies {{
        from-zone trust to-zone untrust {{
            policy p {{ match {{ source-address any; destination-address any; application junos-ssh; }}
                then {{ permit; }} }}
        }}
        from-zone dmz to-zone trust {{ apply-groups-except log-deny; }}
        default-policy {{ permit-all; }}
    }}
}}"
    );
    let loaded = load(&text);
    loaded.check(
        "list=policies src=1.1.1.1 dst=2.2.2.2 proto=tcp",
        "permit 11 in=trust out=untrust dport=22
         deny 3 in=trust out=untrust dport=23
         permit 15 in=dmz out=trust dport=23",
    );
    assert!(
        loaded
            .statement(11)
            .text
            .contains("then { permit; count; }")
    );
}

#[test]
fn groups_add_filters_lists_and_conditions() {
    let text = "groups {
    lists { policy-options { prefix-list hosts { 10.0.0.1/32; } prefix-list own { 10.0.0.2/32; } } }
    names { interfaces { <ge-*> { unit 0 { family inet { address 10.7.0.1/24; } } } } }
    base { firewall { family inet { filter f {
        term a { from { protocol tcp; } }
        term b { then discard; }
    } } } }
    tcp { from { protocol udp; } }
}
apply-groups [ lists names ];
policy-options { prefix-list own { 10.0.0.3/32; } prefix-list path { apply-path \"interfaces <ge-*> unit <*> family inet address <*>\"; } }
interfaces { ge-0/0/0 { mtu 1500; } xe-0/0/0 { mtu 1500; } }
firewall {
    apply-groups base;
    family inet {
        filter f { term a { then accept; } }
        filter g { term a { from { source-prefix-list { hosts; own; path; } } then accept; } }
    }
}";
    let loaded = load(text);
    loaded.check(
        "list=f src=1.1.1.1 dst=2.2.2.2",
        "permit 16 proto=tcp\ndeny 6 proto=udp",
    );
    loaded.check(
        "list=g dst=2.2.2.2",
        "permit 17 src=10.0.0.1
         permit 17 src=10.0.0.2
         permit 17 src=10.0.0.3
         permit 17 src=10.7.0.77
         deny 0 src=10.0.0.4",
    );
}

#[test]
fn other_inheritance_is_a_fault() {
    let with = |groups: &str, filter: &str| {
        problems(&format!(
            "groups {{ {groups} }}\napply-groups [ A B ];\nfirewall {{ filter f {{ {filter} }} }}\n"
        ))
    };
    let a = "A { firewall { filter f { term x { then accept; } } } }";
    assert_eq!(
        with(a, "term a { then accept; }"),
        ["2:18: the group `B` is not in the file; expected a group of the file"]
    );
    assert_eq!(
        with(
            &format!("{a} B {{ firewall {{ filter f {{ term y {{ then accept; }} }} }} }}"),
            "term a;"
        ),
        ["2:18: two groups that add terms or policies to one list; expected one group"]
    );
    assert_eq!(
        with(
            "A { firewall { filter <*> { term <*> { from { protocol udp; } } } } } B { }",
            "term a { from { protocol tcp; } }"
        ),
        ["1:65: a group that adds values to a condition; expected the values in the statement"]
    );
    assert_eq!(
        with("A { firewall { apply-groups B; } } B { }", "term a;"),
        ["1:25: `apply-groups` in a group; expected groups that do not use groups"]
    );
    assert_eq!(
        problems(
            "groups { node0 { security { policies { default-policy { permit-all; } } } } }\napply-groups \"${node}\";\n"
        ),
        ["2:15: a group whose name is a variable, with rules; expected a group with a name"]
    );
    assert!(
        problems("groups { node0 { system { host-name a; } } }\napply-groups \"${node}\";\n")
            .is_empty()
    );
}
