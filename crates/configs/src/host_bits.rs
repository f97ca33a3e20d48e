//! Networks in texts whose address has bits outside of the prefix, such as `10.0.0.1/8`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network with bits outside of its prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostBits {
    /// The network in the file.
    pub written: String,
    /// The network that devices compare.
    pub network: String,
}

/// A member of a named group of addresses, for example of an object group, whose networks have
/// bits outside of their prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberWithHostBits {
    /// The line, counted from 1.
    pub line: u32,
    /// The column of the first character, counted from 1.
    pub column: u32,
    /// The member as it is written, cut after 200 characters.
    pub text: String,
    /// The name of the group.
    pub group: String,
    /// The networks, at least one.
    pub networks: Vec<HostBits>,
}

/// Returns the networks of a line with bits outside of their prefix. Prefixes are lengths
/// (`10.0.0.1/8`), netmasks (`10.0.0.1/255.0.0.0`, `10.0.0.1 255.0.0.0`), or wildcard masks
/// (`10.0.0.1 0.255.255.255`).
#[must_use]
pub fn host_bits(line: &str) -> Vec<HostBits> {
    let is_separator =
        |character: char| character.is_whitespace() || ",;={}()[]\"'!@".contains(character);
    let words = line.split(is_separator).filter(|word| !word.is_empty());
    let mut host_bits = Vec::new();
    let mut last: Option<(&str, Ipv4Addr)> = None;
    for word in words {
        let address = word.parse::<Ipv4Addr>().ok();
        if let Some((address, length)) = word.split_once('/') {
            host_bits.extend(with_length(word, address, length));
        } else if let (Some((first, before)), Some(mask)) = (last, address) {
            host_bits.extend(with_mask(&format!("{first} {word}"), before, mask));
        }
        last = address.map(|address| (word, address));
    }
    host_bits
}

/// Returns the network `address/length` if it has bits outside of its prefix.
fn with_length(written: &str, address: &str, length: &str) -> Option<HostBits> {
    let address: IpAddr = address.parse().ok()?;
    let length = match length.parse::<Ipv4Addr>() {
        Ok(mask) => prefix_length(mask)?,
        Err(_) => length.parse().ok()?,
    };
    let network = match address {
        IpAddr::V4(address) if length <= 32 => {
            let ignored = u32::MAX.checked_shr(length).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & !ignored))
        }
        IpAddr::V6(address) if length <= 128 => {
            let ignored = u128::MAX.checked_shr(length).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !ignored))
        }
        _ => return None,
    };
    (network != address).then(|| HostBits {
        written: written.to_owned(),
        network: format!("{network}/{length}"),
    })
}

/// Returns the network of an address and a netmask or a wildcard mask, if it has bits outside
/// of its prefix.
fn with_mask(written: &str, address: Ipv4Addr, mask: Ipv4Addr) -> Option<HostBits> {
    let length = prefix_length(mask).or_else(|| prefix_length(!mask))?;
    let is_address = mask.is_unspecified() || mask.is_broadcast();
    if is_address {
        return None;
    }
    with_length(written, &address.to_string(), &length.to_string())
}

/// Returns the length of a netmask, or `None` if the mask has a 1 after a 0.
fn prefix_length(mask: Ipv4Addr) -> Option<u32> {
    let ignored = !mask.to_bits();
    (ignored & ignored.wrapping_add(1) == 0).then(|| mask.to_bits().count_ones())
}

#[cfg(test)]
mod tests {
    use classyard_workload::diagnostic::ReadOptions;

    use super::*;
    use crate::{Conditions, ConfigFormat, read};

    /// Checks the members: line, column, group, text and the networks that devices compare.
    fn check_members(format: ConfigFormat, text: &str, expected: &[(u32, u32, &str, &str, &str)]) {
        let options = ReadOptions::DEFAULT;
        let config = read("f", text, format, &options, &mut Conditions::default()).unwrap();
        let members = config.members_with_host_bits.iter().map(|member| {
            let networks = member.networks.iter().map(|one| one.network.clone());
            let networks = networks.collect::<Vec<_>>().join(" ");
            (
                member.line,
                member.column,
                &member.group[..],
                &member.text[..],
                networks,
            )
        });
        let members: Vec<_> = members.collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|&(line, column, group, text, networks)| {
                (line, column, group, text, networks.to_owned())
            })
            .collect();
        assert_eq!(members, expected, "{format:?}");
    }

    #[test]
    fn members_of_groups_of_ios_are_found() {
        let text = "\
object-group network NETS
 host 10.0.0.1
 10.1.0.1 255.255.0.0
 10.2.0.0 255.255.0.0
 range 10.3.0.1 10.3.0.9
object-group network NETS
 10.4.0.9 /24
object-group network UNUSED
 10.5.0.1 255.255.255.0
object-group network OLD
 10.6.0.1 255.255.255.0
no object-group network OLD
object-group network NETS
 10.7.0.1 255.255.255.0
 no 10.7.0.1 255.255.255.0
ip access-list extended A
 permit ip object-group NETS any
 deny ip any object-group NETS
";
        let expected = [
            (3, 2, "NETS", "10.1.0.1 255.255.0.0", "10.1.0.0/16"),
            (9, 2, "UNUSED", "10.5.0.1 255.255.255.0", "10.5.0.0/24"),
        ];
        check_members(ConfigFormat::CiscoIos, text, &expected);
    }

    #[test]
    fn members_of_groups_of_other_systems_of_cisco_are_found() {
        let nxos = "\
object-group ip address N
  10 host 10.0.0.1
  20 10.1.0.1/16
  30 10.2.0.9 0.0.0.255
object-group ipv6 address V6
  10 2001:db8::1/64
ip access-list A
  permit ip addrgroup N any
";
        let expected = [
            (3, 3, "N", "20 10.1.0.1/16", "10.1.0.0/16"),
            (4, 3, "N", "30 10.2.0.9 0.0.0.255", "10.2.0.0/24"),
            (6, 3, "V6", "10 2001:db8::1/64", "2001:db8::/64"),
        ];
        check_members(ConfigFormat::CiscoNxos, nxos, &expected);
        let xr = "\
object-group network ipv4 N
 10.1.0.1/16
ipv4 access-list A
 permit ipv4 net-group N any
";
        let expected = [(2, 2, "N", "10.1.0.1/16", "10.1.0.0/16")];
        check_members(ConfigFormat::CiscoXr, xr, &expected);
        let asa = "\
object network WEB
 subnet 192.0.2.9 255.255.255.0
object network WEB
 subnet 192.0.2.10 255.255.255.0
object-group network N
 network-object 10.1.0.1 255.255.0.0
 network-object host 10.9.0.1
 network-object object WEB
access-list A extended permit ip object-group N any
";
        let expected = [
            (
                4,
                2,
                "WEB",
                "subnet 192.0.2.10 255.255.255.0",
                "192.0.2.0/24",
            ),
            (
                6,
                2,
                "N",
                "network-object 10.1.0.1 255.255.0.0",
                "10.1.0.0/16",
            ),
        ];
        check_members(ConfigFormat::CiscoAsa, asa, &expected);
    }

    #[test]
    fn elements_of_sets_are_found() {
        let iptables = "\
create S hash:net,port,net family inet
add S 10.0.0.1/8,tcp:80,10.1.0.1/24
add S 10.2.0.0/16,udp:53,10.1.0.1 comment \"10.0.0.1/8\"
*filter
:INPUT ACCEPT [0:0]
-A INPUT -m set --match-set S src,src,dst -j DROP
-A INPUT -m set --match-set S src,src,dst -p tcp -j DROP
COMMIT
";
        let element = "10.0.0.1/8,tcp:80,10.1.0.1/24";
        let expected = [(2, 7, "S", element, "10.0.0.0/8 10.1.0.0/24")];
        check_members(ConfigFormat::Iptables, iptables, &expected);
        let nftables = "\
table inet t {
	set s {
		type ipv4_addr . inet_service; flags interval
		elements = { 10.0.0.1/8 . 80, 10.1.0.0/16 . 80,
		             10.2.0.1 . 443 }
	}
	map m {
		type ipv6_addr : verdict; flags interval
		elements = { 2001:db8::1/32 : drop }
	}
	chain c {
		type filter hook input priority 0;
		ip saddr . tcp dport @s drop
		ip6 saddr vmap @m
	}
}
";
        let expected = [
            (4, 16, "s", "10.0.0.1/8 . 80", "10.0.0.0/8"),
            (9, 16, "m", "2001:db8::1/32", "2001:db8::/32"),
        ];
        check_members(ConfigFormat::Nftables, nftables, &expected);
        let json = r#"{"nftables": [
{"table": {"family": "ip", "name": "t", "handle": 1}},
{"set": {"family": "ip", "name": "s", "table": "t", "type": "ipv4_addr", "handle": 2,
 "flags": ["interval"], "elem": ["192.0.2.1",
 {"prefix": {"addr": "10.0.0.1", "len": 8}}]}}
]}
"#;
        let expected = [(5, 2, "s", "10.0.0.1/8", "10.0.0.0/8")];
        check_members(ConfigFormat::Nftables, json, &expected);
    }

    #[test]
    fn prefix_lists_and_address_books_of_junos_are_found() {
        let braces = "\
policy-options {
    prefix-list LIST {
        10.0.0.1/8;
        10.0.0.0/16;
    }
}
security {
    address-book {
        global {
            address a 192.0.2.1/24;
            address b {
                description \"10.9.9.9/8\";
                ip-prefix 192.0.2.9/28;
            }
            address c range-address 10.0.0.1 { to 10.0.0.9; }
        }
    }
    zones {
        security-zone trust {
            address-book {
                address d 198.51.100.1/24;
            }
        }
    }
}
";
        let expected = [
            (3, 9, "LIST", "10.0.0.1/8", "10.0.0.0/8"),
            (10, 23, "a", "192.0.2.1/24", "192.0.2.0/24"),
            (13, 27, "b", "192.0.2.9/28", "192.0.2.0/28"),
            (21, 27, "d", "198.51.100.1/24", "198.51.100.0/24"),
        ];
        check_members(ConfigFormat::Junos, braces, &expected);
        let commands = "\
set groups COMMON policy-options prefix-list <*> 10.0.0.1/8
set apply-groups COMMON
set policy-options prefix-list A 10.1.0.0/16
set policy-options prefix-list B 10.2.0.0/16
";
        let expected = [(1, 50, "A", "10.0.0.1/8", "10.0.0.0/8")];
        check_members(ConfigFormat::Junos, commands, &expected);
    }

    #[test]
    fn networks_with_other_bits_are_found_in_every_notation() {
        let cases: [(&str, &[(&str, &str)]); 12] = [
            ("allow src=10.0.0.1/8", &[("10.0.0.1/8", "10.0.0.0/8")]),
            ("allow src=10.0.0.0/8 dst=192.0.2.1", &[]),
            (
                "deny src=!10.1.0.0/8,10.0.0.0/8",
                &[("10.1.0.0/8", "10.0.0.0/8")],
            ),
            (
                "@10.0.0.1/0\t2001:db8::1/64\t0 : 1",
                &[
                    ("10.0.0.1/0", "0.0.0.0/0"),
                    ("2001:db8::1/64", "2001:db8::/64"),
                ],
            ),
            (
                "-A INPUT -s 10.0.0.1/255.0.0.0 -j DROP",
                &[("10.0.0.1/255.0.0.0", "10.0.0.0/8")],
            ),
            (
                "permit ip 10.0.0.1 0.0.0.255 host 10.0.0.1",
                &[("10.0.0.1 0.0.0.255", "10.0.0.0/24")],
            ),
            (
                "permit ip host 10.0.0.1 10.0.0.5 255.255.255.0",
                &[("10.0.0.5 255.255.255.0", "10.0.0.0/24")],
            ),
            ("permit ip 10.0.0.0 0.0.0.255 10.1.0.1 0.0.0.0", &[]),
            ("permit ip 10.0.0.1 255.255.255.255 any", &[]),
            ("permit ip 10.0.1.1 0.0.254.255 any", &[]),
            (
                "ip saddr { 10.0.0.1/31, 10.0.0.3/32 }",
                &[("10.0.0.1/31", "10.0.0.0/31")],
            ),
            ("comment \"and/or 1/2 a/300 10.0.0.1/33\"", &[]),
        ];
        for (line, expected) in cases {
            let host_bits = host_bits(line);
            let host_bits: Vec<_> = host_bits
                .iter()
                .map(|one| (one.written.as_str(), one.network.as_str()))
                .collect();
            assert_eq!(host_bits, expected, "{line}");
        }
    }
}
