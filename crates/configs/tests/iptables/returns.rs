//! Chains that packets leave by many fields.

use super::support::{Random, firewall};

/// Rules that return, and whether they match a packet.
type Return = (&'static str, fn(&Packet) -> bool);

struct Packet {
    src: [u8; 4],
    dst: [u8; 4],
    sport: u16,
    dport: u16,
    proto: u8,
    state: &'static str,
    input: &'static str,
    output: &'static str,
    is_later_fragment: bool,
}

impl Packet {
    fn random(random: &mut Random) -> Packet {
        let mut byte = |values: &[u8]| random.pick(values);
        let src = [
            10,
            byte(&[0, 1, 2, 64, 200]),
            byte(&[0, 128]),
            byte(&[0, 1, 9]),
        ];
        let dst = [
            byte(&[10, 192]),
            byte(&[0, 168]),
            byte(&[0, 7]),
            byte(&[1, 2]),
        ];
        Packet {
            src,
            dst,
            sport: random.pick(&[0, 53, 123, 1023, 1024, 5000, 65535]),
            dport: random.pick(&[0, 22, 80, 443, 8000, 8080, 65535]),
            proto: random.pick(&[6, 17, 47, 50]),
            state: random.pick(&["new", "established", "invalid"]),
            input: random.pick(&["eth0", "eth1", "tun0", "lo"]),
            output: random.pick(&["eth0", "eth1", "wg0"]),
            is_later_fragment: random.once_in(5),
        }
    }

    fn has_ports(&self) -> bool {
        matches!(self.proto, 6 | 17) && !self.is_later_fragment
    }

    fn header(&self) -> String {
        let text = |address: [u8; 4]| address.map(|byte| byte.to_string()).join(".");
        format!(
            "list=FORWARD src={} dst={} sport={} dport={} proto={} state={} in={} out={} fragment={}",
            text(self.src),
            text(self.dst),
            self.sport,
            self.dport,
            self.proto,
            self.state,
            self.input,
            self.output,
            if self.is_later_fragment {
                "later"
            } else {
                "whole"
            },
        )
    }
}

const RETURNS: [Return; 20] = [
    ("-s 10.1.0.0/16", |p| p.src[1] == 1),
    ("-d 192.168.7.0/24", |p| p.dst[..3] == [192, 168, 7]),
    ("-i tun+", |p| p.input == "tun0"),
    ("-o wg0", |p| p.output == "wg0"),
    ("-p udp -m udp --sport 53", |p| {
        p.proto == 17 && p.has_ports() && p.sport == 53
    }),
    ("-p tcp -m tcp --dport 22", |p| {
        p.proto == 6 && p.has_ports() && p.dport == 22
    }),
    ("-m conntrack --ctstate INVALID", |p| p.state == "invalid"),
    ("-p esp", |p| p.proto == 50),
    ("-s 10.2.128.9/32", |p| p.src == [10, 2, 128, 9]),
    ("-d 10.0.0.2/32", |p| p.dst == [10, 0, 0, 2]),
    ("-p udp -m udp --dport 8000:8080", |p| {
        p.proto == 17 && p.has_ports() && (8000..=8080).contains(&p.dport)
    }),
    ("-p tcp -m tcp --sport 0:1023 --dport 443", |p| {
        p.proto == 6 && p.has_ports() && p.sport < 1024 && p.dport == 443
    }),
    ("-i lo -o eth0", |p| p.input == "lo" && p.output == "eth0"),
    ("-i eth1 -s 10.64.0.0/10", |p| {
        p.input == "eth1" && (64..128).contains(&p.src[1])
    }),
    ("-s 10.0.0.1/32 -d 10.168.0.0/16", |p| {
        p.src == [10, 0, 0, 1] && p.dst[..2] == [10, 168]
    }),
    ("-f", |p| p.is_later_fragment),
    ("! -s 10.0.0.0/9 -o eth1", |p| {
        p.src[1] >= 128 && p.output == "eth1"
    }),
    ("-p udp -m udp --dport 65535", |p| {
        p.proto == 17 && p.has_ports() && p.dport == 65535
    }),
    ("-p gre -i eth0", |p| p.proto == 47 && p.input == "eth0"),
    ("-d 192.0.0.0/16 -p tcp", |p| {
        p.dst[..2] == [192, 0] && p.proto == 6
    }),
];

/// The packets that stay in the chain would need a box for each combination of prefixes,
/// names and ports.
#[test]
fn twenty_returns_on_different_fields_are_few_rules() {
    let mut text = "*filter\n:FORWARD ACCEPT [0:0]\n:C - [0:0]\n-A FORWARD -j C\n\
                    -A FORWARD -p tcp -m tcp --dport 80 -j REJECT\n"
        .to_owned();
    for (matches, _) in RETURNS {
        text += &format!("-A C {matches} -j RETURN\n");
    }
    text += "-A C -j DROP\nCOMMIT\n";
    let firewall = firewall(&text);
    let rule_count = firewall.config.policy.len();
    assert!(rule_count < 3000, "{rule_count} rules");
    let random = &mut Random(5);
    let mut counts = [0; 3];
    for _ in 0..3000 {
        let packet = Packet::random(random);
        let returns = RETURNS.iter().any(|(_, matches)| matches(&packet));
        let is_web = packet.proto == 6 && packet.has_ports() && packet.dport == 80;
        let (action, index) = match (returns, is_web) {
            (false, _) => ("deny", 0),
            (true, true) => ("reject", 1),
            (true, false) => ("permit", 2),
        };
        counts[index] += 1;
        let header = packet.header();
        assert_eq!(firewall.action(&header), action, "{header}");
    }
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
}

/// A large set returns before the last rule of its chain, and many rules follow the jump.
#[test]
fn rules_after_a_jump_are_not_repeated_for_each_element_of_a_set() {
    let mut text = "create a hash:ip\n".to_owned();
    for number in 0..300u32 {
        let address = std::net::Ipv4Addr::from_bits(number * 7_654_321);
        text += &format!("add a {address}\n");
    }
    text += "*filter\n:FORWARD ACCEPT [0:0]\n:C - [0:0]\n-A FORWARD -j C\n";
    for port in 1..=100 {
        text += &format!("-A FORWARD -p tcp -m tcp --dport {port} -j REJECT\n");
    }
    text += "-A C -m set --match-set a src -j RETURN\n-A C -j DROP\nCOMMIT\n";
    let firewall = firewall(&text);
    let rule_count = firewall.config.policy.len();
    assert!(rule_count < 10_000, "{rule_count} rules");
    let header = "list=FORWARD proto=tcp dst=10.0.0.1";
    for (src, port, action) in [
        ("0.0.0.0", 7, "reject"),
        ("0.116.203.177", 101, "permit"),
        ("0.116.203.178", 7, "deny"),
    ] {
        let header = format!("{header} src={src} dport={port}");
        assert_eq!(firewall.action(&header), action, "{header}");
    }
}
