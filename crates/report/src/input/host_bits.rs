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

/// Returns the networks of a line with bits outside of their prefix. Prefixes are lengths
/// (`10.0.0.1/8`), netmasks (`10.0.0.1/255.0.0.0`, `10.0.0.1 255.0.0.0`), or wildcard masks
/// (`10.0.0.1 0.255.255.255`).
pub(super) fn host_bits(line: &str) -> Vec<HostBits> {
    let is_separator =
        |character: char| character.is_whitespace() || ",;={}()[]\"'!@".contains(character);
    let words = line.split(is_separator).filter(|word| !word.is_empty());
    let mut found = Vec::new();
    let mut last: Option<(&str, Ipv4Addr)> = None;
    for word in words {
        let address = word.parse::<Ipv4Addr>().ok();
        if let Some((address, length)) = word.split_once('/') {
            found.extend(with_length(word, address, length));
        } else if let (Some((first, before)), Some(mask)) = (last, address) {
            found.extend(with_mask(&format!("{first} {word}"), before, mask));
        }
        last = address.map(|address| (word, address));
    }
    found
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
    use super::*;

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
            let found = host_bits(line);
            let found: Vec<_> = found
                .iter()
                .map(|one| (one.written.as_str(), one.network.as_str()))
                .collect();
            assert_eq!(found, expected, "{line}");
        }
    }
}
