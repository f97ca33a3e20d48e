//! Networks from clouds: CIDR blocks, and sets of addresses as the fewest networks.

use std::net::IpAddr;

use crate::document::Item;
use crate::packets::{Families, Values, parse_network};

use classyard_text::Fault;

/// The addresses of a network, with their family.
pub(crate) type Network = (Families, Values);

/// Parses a network with a prefix length, such as `10.0.0.0/8`. Address bits after the prefix
/// are ignored. `family` is the expected family, if there is one.
pub(crate) fn parse_cidr<'d>(
    item: Item<'d>,
    family: Option<Families>,
) -> Result<Network, Fault<'d>> {
    let text = item.string()?;
    let expected = match family {
        Some(Families::IPV4) => "an IPv4 network such as 10.0.0.0/8",
        Some(_) => "an IPv6 network such as 2001:db8::/32",
        None => "a network such as 10.0.0.0/8 or 2001:db8::/32",
    };
    let length = text.split_once('/').map_or("", |(_, length)| length);
    if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(item.unexpected(expected));
    }
    let network = parse_network(text).map_err(|error| item.fault(error.to_string(), expected))?;
    match family.is_none_or(|family| family == network.0) {
        true => Ok(network),
        false => Err(item.unexpected(expected)),
    }
}

/// Parses an address.
pub(crate) fn parse_address(item: Item<'_>) -> Result<Network, Fault<'_>> {
    let text = item.string()?;
    let address: Option<IpAddr> = text.parse().ok();
    let network = address.and_then(|_| parse_network(text).ok());
    network.ok_or_else(|| item.unexpected("an address such as 10.0.0.1 or 2001:db8::1"))
}

/// Returns the fewest networks that have the same addresses.
pub(crate) fn merge_networks(networks: &[Network]) -> Vec<Network> {
    let mut merged = Vec::new();
    for (family, bits) in Families::EACH {
        let of_family = networks.iter().filter(|network| network.0 == family);
        let mut sorted: Vec<(u128, u128)> = of_family
            .filter_map(|(_, values)| match *values {
                Values::Bits { value, mask } => Some((value, mask)),
                Values::Range { .. } => None,
            })
            .collect();
        sorted.sort_unstable();
        let mut kept: Vec<(u128, u128)> = Vec::new();
        for network in sorted {
            let is_inside = |outer: &(u128, u128)| {
                network.0 & outer.1 == outer.0 && network.1 & outer.1 == outer.1
            };
            if kept.last().is_none_or(|outer| !is_inside(outer)) {
                kept.push(network);
                merge_last(&mut kept, u128::MAX >> (128 - bits));
            }
        }
        let to_values = |(value, mask)| (family, Values::bits(value, mask));
        merged.extend(kept.into_iter().map(to_values));
    }
    merged
}

/// Replaces the last two networks by one while they are the halves of one.
fn merge_last(kept: &mut Vec<(u128, u128)>, all_bits: u128) {
    while let [.., (low, mask), (high, high_mask)] = kept[..] {
        let outer_mask = (mask << 1) & all_bits;
        if mask != high_mask || mask == 0 || low ^ high != mask ^ outer_mask {
            return;
        }
        kept.truncate(kept.len() - 2);
        kept.push((low & outer_mask, outer_mask));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_merged() {
        let merged = |texts: &[&str]| {
            let networks: Vec<_> = texts
                .iter()
                .map(|text| parse_network(text).unwrap())
                .collect();
            merge_networks(&networks)
        };
        let expected = |texts: &[&str]| -> Vec<_> {
            texts
                .iter()
                .map(|text| parse_network(text).unwrap())
                .collect()
        };
        for (networks, fewest) in [
            (&["10.0.0.1", "10.0.0.0"][..], &["10.0.0.0/31"][..]),
            (&["10.0.0.1", "10.0.0.2"], &["10.0.0.1", "10.0.0.2"]),
            (
                &["10.0.0.3", "10.0.0.1", "10.0.0.2", "10.0.0.0", "10.0.0.2"],
                &["10.0.0.0/30"],
            ),
            (
                &["10.1.2.3", "10.0.0.0/8", "::2", "::3"],
                &["10.0.0.0/8", "::2/127"],
            ),
            (
                &["0.0.0.0/1", "128.0.0.0/1", "8000::/1", "::/1"],
                &["0.0.0.0/0", "::/0"],
            ),
            (&[], &[]),
        ] {
            assert_eq!(merged(networks), expected(fewest), "{networks:?}");
        }
    }
}
