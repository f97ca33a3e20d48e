//! The sets of `ipset save`.

use super::support::{Firewall, firewall, input, try_read};
use classyard_workload::diagnostic::ReadOptions;

/// Returns a firewall that accepts the packets that a match selects.
fn with_sets(sets: &str, matches: &str) -> Firewall {
    let rules = format!("-A INPUT {matches} -j ACCEPT");
    firewall(&format!("{sets}\n{}", input(&rules)))
}

/// Checks headers that a set matches and headers that it does not match, and the opposite
/// for the set with `!`.
fn check(sets: &str, matches: &str, selected: &[&str], others: &[&str]) {
    for (negation, actions) in [("", ["permit", "deny"]), ("! ", ["deny", "permit"])] {
        let firewall = with_sets(sets, &format!("-m set {negation}--match-set {matches}"));
        for (headers, action) in [selected, others].into_iter().zip(actions) {
            for header in headers {
                let text = format!("{header} list=INPUT");
                assert_eq!(
                    firewall.action(&text),
                    action,
                    "{sets}\n{negation}{matches}: {header}"
                );
            }
        }
    }
}

#[test]
fn addresses() {
    let sets = "create a hash:ip family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x1\n\
                add a 10.0.0.1\nadd a 10.0.0.4-10.0.0.6\nadd a 10.1.0.0/30";
    check(
        sets,
        "a src",
        &["src=10.0.0.1", "src=10.0.0.6", "src=10.1.0.3"],
        &[
            "src=10.0.0.3",
            "src=10.0.0.7",
            "dst=10.0.0.1",
            "src=10.1.0.4",
        ],
    );
    check(sets, "a dst,dst", &["dst=10.0.0.5"], &["src=10.0.0.5"]);
    let map = "create m bitmap:ip range 10.0.0.0-10.0.255.255 netmask 24\nadd m 10.0.3.0";
    check(map, "m src", &["src=10.0.3.77"], &["src=10.0.4.0"]);
    let empty = "create e hash:ip family inet";
    check(empty, "e src", &[], &["src=10.0.0.1"]);
    let all = "create n hash:net family inet\nadd n 0.0.0.0/1\nadd n 128.0.0.0/1";
    check(all, "n src", &["src=10.0.0.1", "src=255.255.255.255"], &[]);
}

#[test]
fn the_smallest_network_decides() {
    let sets = "create n hash:net family inet comment counters timeout 0\n\
                add n 10.0.0.0/8 timeout 0 packets 1 bytes 2 comment \"all of ten\"\n\
                add n 10.1.0.0/16 nomatch\nadd n 10.1.1.0/24\nadd n 10.1.1.5 nomatch";
    check(
        sets,
        "n src",
        &["src=10.0.0.1", "src=10.1.1.4", "src=10.255.0.1"],
        &["src=10.1.0.1", "src=10.1.1.5", "src=11.0.0.1"],
    );
}

#[test]
fn addresses_of_ipv6() {
    let sets = "create n hash:net family inet6\nadd n 2001:db8::/32\nadd n 2001:db8:1::/48 nomatch\n\
                create four hash:net family inet\nadd four 10.0.0.0/8";
    let rules = "-A INPUT -m set --match-set n src -j ACCEPT\n\
                 -A INPUT -m set --match-set four src -j DNAT\n\
                 -A INPUT -p icmpv6 -m set ! --match-set four src -j REJECT";
    let firewall = firewall(&format!("{sets}\n{}", input(rules)));
    for (header, action) in [
        ("src=2001:db8::1", "permit"),
        ("src=2001:db8:1::1", "deny"),
        ("src=2001:db8:1::1 proto=icmpv6", "reject"),
    ] {
        assert_eq!(
            firewall.action(&format!("{header} list=INPUT")),
            action,
            "{header}"
        );
    }
}

#[test]
fn addresses_with_ports() {
    let sets = "create s hash:ip,port family inet\n\
                add s 10.0.0.1,tcp:80\nadd s 10.0.0.1,udp:53-60\nadd s 10.0.0.2,8080\n\
                add s 10.0.0.3,icmp:echo-request\nadd s 10.0.0.3,icmp:3/4\nadd s 10.0.0.4,gre:0\n\
                add s 10.0.0.5,tcp:ftp-data\nadd s 10.0.0.6,sctp:5";
    check(
        sets,
        "s dst,dst",
        &[
            "dst=10.0.0.1 proto=tcp dport=80",
            "dst=10.0.0.1 proto=udp dport=60 fragment=first",
            "dst=10.0.0.2 proto=tcp dport=8080",
            "dst=10.0.0.3 proto=icmp icmp_type=8",
            "dst=10.0.0.3 proto=icmp icmp_type=3 icmp_code=4",
            "dst=10.0.0.4 proto=gre fragment=later",
            "dst=10.0.0.5 proto=tcp dport=20",
            "dst=10.0.0.6 proto=sctp dport=5",
        ],
        &[
            "dst=10.0.0.1 proto=udp dport=80",
            "dst=10.0.0.1 proto=tcp dport=80 fragment=later",
            "dst=10.0.0.2 proto=udp dport=8080",
            "dst=10.0.0.3 proto=icmp icmp_type=8 icmp_code=1",
            "dst=10.0.0.4 proto=esp",
            "src=10.0.0.1 proto=tcp dport=80",
        ],
    );
    check(
        sets,
        "s src,dst",
        &["src=10.0.0.1 proto=tcp dport=80"],
        &["src=10.0.0.1 proto=tcp sport=80"],
    );
    let nets = "create s hash:net,port family inet\n\
                add s 10.0.0.0/8,tcp:80\nadd s 10.1.0.0/16,tcp:80 nomatch";
    check(
        nets,
        "s src,src",
        &["src=10.2.0.1 proto=tcp sport=80"],
        &[
            "src=10.1.0.1 proto=tcp sport=80",
            "src=10.2.0.1 proto=tcp sport=81",
        ],
    );
}

#[test]
fn two_addresses_and_interfaces() {
    let ips = "create s hash:ip,port,ip family inet\nadd s 10.0.0.1,tcp:80,10.0.0.2";
    let hit = "src=10.0.0.1 dst=10.0.0.2 proto=tcp dport=80";
    check(
        ips,
        "s src,dst,dst",
        &[hit],
        &["src=10.0.0.2 dst=10.0.0.1 proto=tcp dport=80"],
    );
    let nets = "create s hash:ip,port,net family inet\nadd s 10.0.0.1,tcp:80,10.0.0.0/24";
    check(
        nets,
        "s src,dst,dst",
        &[hit],
        &["src=10.0.0.1 dst=10.0.1.2 proto=tcp dport=80"],
    );
    let pairs = "create s hash:net,net family inet\n\
                 add s 10.0.0.0/24,192.0.2.0/24\nadd s 10.0.0.0/28,192.0.2.0/24 nomatch\n\
                 add s 10.0.0.1,192.0.2.1";
    check(
        pairs,
        "s src,dst",
        &["src=10.0.0.77 dst=192.0.2.1", "src=10.0.0.1 dst=192.0.2.1"],
        &["src=10.0.0.2 dst=192.0.2.1", "src=10.0.0.1 dst=192.0.2.2"],
    );
    let interfaces = "create s hash:net,iface family inet\n\
                      add s 10.0.0.0/8,eth0\nadd s 0.0.0.0/0,vlan wildcard";
    check(
        interfaces,
        "s src,src",
        &["src=10.0.0.1 in=eth0", "src=11.0.0.1 in=vlan7"],
        &[
            "src=10.0.0.1 in=eth1",
            "src=10.0.0.1 out=eth0",
            "src=11.0.0.1 in=eth0",
        ],
    );
    check(
        interfaces,
        "s src,dst",
        &["src=10.0.0.1 out=eth0"],
        &["src=10.0.0.1 in=eth0"],
    );
}

#[test]
fn ports_and_lists() {
    let ports = "create p bitmap:port range 0-1023\nadd p 80\nadd p 20-21";
    check(
        ports,
        "p dst",
        &[
            "src=10.0.0.1 proto=tcp dport=80",
            "src=10.0.0.1 proto=udp dport=21",
        ],
        &[
            "src=10.0.0.1 proto=sctp dport=80",
            "src=10.0.0.1 proto=tcp sport=80",
        ],
    );
    let lists = format!(
        "{ports}\ncreate h hash:ip family inet\nadd h 10.0.0.9\n\
         create l list:set size 8\nadd l p\nadd l h\ncreate outer list:set size 8\nadd outer l"
    );
    check(
        &lists,
        "outer src",
        &["src=10.0.0.9", "src=10.0.0.1 proto=udp sport=80"],
        &["src=10.0.0.8", "src=10.0.0.1 proto=udp dport=80"],
    );
}

#[test]
fn sets_that_no_field_expresses_are_conditions() {
    let sets = "create m hash:mac\nadd m 02:00:00:00:00:01\n\
                create l list:set size 8\nadd l m";
    for name in ["m", "l", "absent"] {
        let matches = format!("-m set ! --match-set {name} src");
        let firewall = with_sets(sets, &matches);
        let bit = firewall.condition(&format!("--match-set {name} src"));
        assert_eq!(firewall.action("src=10.0.0.1 list=INPUT"), "permit");
        let header = format!("src=10.0.0.1 condition={bit} list=INPUT");
        assert_eq!(firewall.action(&header), "deny");
        let note = &firewall.config.notes[1];
        assert!(note.contains(&format!("`{name}`")), "{note}");
    }
    let counters = with_sets(
        "create h hash:ip counters\nadd h 10.0.0.9 packets 1 bytes 2",
        "-m set --match-set h src ! --update-counters --packets-gt 5",
    );
    let bit = counters.condition("--packets-gt 5 (number 1)");
    let header = format!("src=10.0.0.9 condition={bit} list=INPUT");
    assert_eq!(counters.action(&header), "permit");
    assert_eq!(counters.action("src=10.0.0.9 list=INPUT"), "deny");
}

#[test]
fn assumptions_are_noted() {
    let sets = "create t hash:ip timeout 300\nadd t 10.0.0.1 timeout 200\n\
                create s hash:ip,port\nadd s 10.0.0.1,80";
    let rules = "-A INPUT -m set --match-set s src -j ACCEPT\n\
                 -A INPUT -j SET --add-set t src --exist\n\
                 -A INPUT -m set ! --match-set s src -j REJECT";
    let firewall = firewall(&format!("{sets}\n{}", input(rules)));
    let header = "src=10.0.0.1 proto=tcp sport=80 dport=80 list=INPUT";
    assert_eq!(firewall.action(header), "reject");
    assert_eq!(
        firewall.config.notes,
        [
            "no rule reaches 3 chains: `A`, `B`, `C`",
            "elements of sets expire; they were read as they were saved: `t`",
            "rules give sets fewer directions than their elements have fields, so no packet \
             is in the set: `s`",
            "rules change sets; the sets were read as they were saved: `t`",
        ]
    );
}

#[test]
fn sets_may_be_defined_between_and_after_tables() {
    let rules = input("-A INPUT -m set --match-set a src -j ACCEPT");
    let text = format!("{rules}create a hash:ip family inet\nadd a 10.0.0.1\n");
    assert_eq!(firewall(&text).action("src=10.0.0.1 list=INPUT"), "permit");
}

#[test]
fn large_sets_are_read_and_have_limits() {
    let elements = |count: usize| -> String {
        let address = |index: usize| format!("add a 10.{}.{}.1\n", index / 256, index % 256);
        (0..count).map(address).collect()
    };
    let text = |count: usize, negation: &str| {
        let rule = format!("-A INPUT -m set {negation} --match-set a src -j ACCEPT");
        format!("create a hash:ip\n{}{}", elements(count), input(&rule))
    };
    let firewall = firewall(&text(20_000, ""));
    assert_eq!(firewall.action("src=10.78.31.1 list=INPUT"), "permit");
    assert_eq!(firewall.action("src=10.78.32.1 list=INPUT"), "deny");
    assert_eq!(firewall.config.policy.len(), 20_001);
    // The complement needs about nine networks for each element.
    let others = super::support::firewall(&text(5_000, "!"));
    assert_eq!(others.action("src=10.2.3.1 list=INPUT"), "deny");
    assert_eq!(others.action("src=10.2.3.2 list=INPUT"), "permit");
    let error = try_read(&text(20_000, "!"), &ReadOptions::DEFAULT);
    let error = error.map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("fw:20007:31: a set that expands to more than 65536 matches"),
        "{error}"
    );
}
