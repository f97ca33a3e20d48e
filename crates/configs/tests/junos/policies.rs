//! Security policies.

use super::helper::{load, problems};

const SRX: &str = r#"set version 21.4R1
set security address-book global address web 203.0.113.10/32
set security address-book global address web6 2001:db8::10/128
set security address-book global address block range-address 10.0.0.1 to 10.0.0.6
set security address-book global address odd wildcard-address 10.3.0.7/255.255.0.255
set security address-book global address update dns-name update.example.com
set security address-book global address-set servers address web
set security address-book global address-set servers address web6
set security address-book global address-set all-servers address-set servers
set security address-book global address-set all-servers address block
set security address-book branch address web 192.0.2.10/32
set security address-book branch attach zone trust
set security zones security-zone dmz address-book address web 198.51.100.10/32
set applications application app tcp-app protocol tcp
set applications application app8 protocol tcp destination-port 8000-8080
set applications application mixed term t1 protocol tcp destination-port 22
set applications application mixed term t1 source-port 1024-65535
set applications application mixed term t2 alg ignore protocol icmp icmp-type 8 icmp-code 0
set applications application-set group application mixed
set applications application-set group application-set inner
set applications application-set inner application junos-dns-udp
set security policies from-zone trust to-zone untrust policy own match source-address web
set security policies from-zone trust to-zone untrust policy own match destination-address any
set security policies from-zone trust to-zone untrust policy own match application [ junos-http junos-cifs ]
set security policies from-zone trust to-zone untrust policy own then permit tunnel ipsec-vpn v
set security policies from-zone trust to-zone untrust policy own description "the shop"
set security policies from-zone trust to-zone untrust policy rest match source-address all-servers destination-address any application group
set security policies from-zone trust to-zone untrust policy rest then reject
set security policies from-zone dmz to-zone trust policy p match source-address web
set security policies from-zone dmz to-zone trust policy p match destination-address odd
set security policies from-zone dmz to-zone trust policy p match application app8
set security policies from-zone dmz to-zone trust policy p then permit
set security policies from-zone dmz to-zone trust policy p then log session-close
set security policies from-zone dmz to-zone trust policy not match source-address servers
set security policies from-zone dmz to-zone trust policy not match source-address block
set security policies from-zone dmz to-zone trust policy not match source-address-excluded
set security policies from-zone dmz to-zone trust policy not match destination-address any-ipv4
set security policies from-zone dmz to-zone trust policy not match application any
set security policies from-zone dmz to-zone trust policy not then permit
set security policies global policy g match source-address any
set security policies global policy g match destination-address update
set security policies global policy g match application junos-https
set security policies global policy g match from-zone [ trust dmz ]
set security policies global policy g match to-zone any
set security policies global policy g then permit
set security policies global policy h match source-address any
set security policies global policy h match destination-address any
set security policies global policy h match application any
set security policies global policy h match dynamic-application junos:FACEBOOK
set security policies global policy h scheduler-name work
set security policies global policy h then deny
"#;

#[test]
fn policies_decide_by_zones_addresses_and_applications() {
    let loaded = load(SRX);
    assert_eq!(
        loaded.conditions.texts(),
        [
            "destination dns-name update.example.com",
            "scheduler-name work",
            "dynamic-application junos:FACEBOOK",
        ]
    );
    loaded.check(
        "list=policies",
        "permit 22 in=trust out=untrust src=192.0.2.10 dst=8.8.8.8 proto=tcp dport=80
         permit 22 in=trust out=untrust src=192.0.2.10 dst=8.8.8.8 proto=tcp dport=445
         deny 0 in=trust out=untrust src=203.0.113.10 dst=8.8.8.8 proto=tcp dport=80
         reject 27 in=trust out=untrust src=203.0.113.10 dst=8.8.8.8 proto=tcp dport=22 sport=1024
         deny 0 in=trust out=untrust src=203.0.113.10 dst=8.8.8.8 proto=tcp dport=22 sport=1023
         reject 27 in=trust out=untrust src=10.0.0.6 dst=8.8.8.8 proto=icmp icmp_type=8
         deny 0 in=trust out=untrust src=10.0.0.7 dst=8.8.8.8 proto=icmp icmp_type=8
         reject 27 in=trust out=untrust src=2001:db8::10 dst=::1 proto=udp dport=53
         permit 29 in=dmz out=trust src=198.51.100.10 dst=10.3.99.7 proto=tcp dport=8080
         permit 34 in=dmz out=trust src=198.51.100.10 dst=10.3.99.8 proto=tcp dport=8080
         deny 0 in=dmz out=trust src=10.0.0.3 dst=10.3.99.8 proto=tcp dport=8080
         deny 0 in=dmz out=trust src=2001:db8::1 dst=::1 proto=tcp dport=8080
         permit 40 in=trust out=any src=1.1.1.1 dst=2.2.2.2 proto=tcp dport=443 condition=1
         deny 0 in=trust out=any src=1.1.1.1 dst=2.2.2.2 proto=tcp dport=443 condition=0
         deny 0 in=guest out=any src=1.1.1.1 dst=2.2.2.2 proto=tcp dport=443 condition=1
         deny 46 in=guest out=any src=1.1.1.1 dst=2.2.2.2 proto=tcp dport=443 condition=7",
    );
    let shop = loaded.statement(22);
    assert_eq!(
        (shop.column, shop.comment.as_deref()),
        (55, Some("the shop"))
    );
    assert_eq!(shop.list, "policies");
    let notes = &loaded.config.notes;
    assert_eq!(notes.len(), 1);
    assert!(notes[0].starts_with("policies with `permit tunnel` count as permitting"));
}

const POLICY: &str = "set security policies from-zone a to-zone b policy p match source-address any destination-address any application any\n\
    set security policies from-zone a to-zone b policy p then permit\n";

#[test]
fn the_default_denies_unless_stated() {
    for (statement, action, is_implied) in [
        ("", "deny", true),
        (
            "set security policies default-policy permit-all\n",
            "permit",
            false,
        ),
        (
            "set security policies default-policy deny-all\n",
            "deny",
            false,
        ),
    ] {
        let loaded = load(&format!("{POLICY}{statement}"));
        let (decision, source) = loaded.decide("list=policies in=b out=a src=1.1.1.1 dst=2.2.2.2");
        assert_eq!(
            (decision, source.is_implied),
            (action, is_implied),
            "{statement}"
        );
        assert_eq!(source.line, if is_implied { 1 } else { 3 });
        let (decision, source) = loaded.decide("list=policies in=a out=b src=::1 dst=::2");
        assert_eq!((decision, source.line), ("permit", 1));
    }
}

#[test]
fn own_applications_replace_predefined_ones() {
    let text = "set applications application junos-ssh protocol tcp destination-port 2222\n\
        set security policies global policy p match source-address any destination-address any\n\
        set security policies global policy p match application [ junos-ssh junos-icmp6-echo-request ]\n\
        set security policies global policy p match application [ junos-sun-rpc-nfs ]\n\
        set security policies global policy p then permit\n";
    let loaded = load(text);
    loaded.check(
        "list=policies src=::1 dst=::2",
        "permit 2 proto=tcp dport=2222
         deny 0 proto=tcp dport=22
         permit 2 proto=58 icmp_type=128 icmp_code=9
         deny 0 proto=58 icmp_type=129
         permit 2 proto=udp dport=111
         permit 2 proto=udp dport=5000 condition=0xf
         deny 0 proto=udp dport=5000",
    );
    assert_eq!(loaded.conditions.texts().len(), 4);
    assert_eq!(
        loaded.conditions.texts()[3],
        "application junos-sun-rpc-nfs-udp"
    );
}

#[test]
fn sets_that_loop_or_are_deep_are_faults() {
    let mut text = POLICY.replace("source-address any", "source-address s0");
    text += "set security address-book global address x 10.0.0.0/8\n";
    let mut deep = text.clone();
    for level in 0..40 {
        deep += &format!(
            "set security address-book global address-set s{level} address-set s{}\n",
            level + 1
        );
        deep += &format!("set security address-book global address-set s{level} address x\n");
    }
    deep += "set security address-book global address-set s40 address x\n";
    assert!(
        problems(&deep)[0].contains("more than 32 address sets"),
        "{:?}",
        problems(&deep)
    );
    // Two ways to each set: 2^20 paths, each set once.
    let mut wide = text.clone();
    for level in 0..20 {
        for other in ["s", "t"] {
            for set in ["s", "t"] {
                wide += &format!(
                    "set security address-book global address-set {set}{level} address-set {other}{}\n",
                    level + 1
                );
            }
        }
    }
    wide += "set security address-book global address-set s20 address x\n";
    wide += "set security address-book global address-set t20 address x\n";
    load(&wide).check(
        "list=policies in=a out=b",
        "permit 1 src=10.0.0.1 dst=1.1.1.1",
    );
    let looped = text
        + "set security address-book global address-set s0 address-set s1\n\
           set security address-book global address-set s1 address-set s0\n";
    assert_eq!(
        problems(&looped),
        ["4:46: the address set `s0` has itself; expected sets without a loop"]
    );
}

#[test]
fn a_filter_has_another_name_than_the_list_of_policies() {
    let text = format!("{POLICY}set firewall filter policies term t then accept\n");
    let messages = problems(&text);
    assert_eq!(
        messages,
        ["3:21: a filter with the name of the list of security policies; expected another name"]
    );
}

#[test]
fn exclusions_have_names_and_families() {
    let loaded = load(
        "set security policies global policy p match source-address [ name any-ipv6 net wild ]
         set security policies global policy p match source-address-excluded
         set security policies global policy p match destination-address any
         set security policies global policy p match application junos-pingv6
         set security policies global policy p match application junos-ping
         set security policies global policy p then permit
         set security address-book global address name dns-name a.example ipv4-only
         set security address-book global address net 10.0.0.0/8
         set security address-book global address wild wildcard-address 11.0.0.5/255.0.0.255",
    );
    loaded.check(
        "list=policies",
        "permit 1 src=9.0.0.1 dst=1.1.1.1 proto=icmp
         deny 0 src=9.0.0.1 dst=1.1.1.1 proto=icmp condition=1
         deny 0 src=10.0.0.1 dst=1.1.1.1 proto=icmp
         deny 0 src=11.7.7.5 dst=1.1.1.1 proto=icmp
         permit 1 src=11.7.7.6 dst=1.1.1.1 proto=icmp
         deny 0 src=::1 dst=::2 proto=icmpv6",
    );
}
