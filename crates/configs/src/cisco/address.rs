//! Addresses of entries and of members of groups.

use std::net::IpAddr;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::Dialect;
use super::words::Words;
use crate::packets::{
    AddressError, Families, Field, PacketSet, TooManyBoxes, Values, parse_network,
    range_of_addresses, wildcard,
};

/// Networks, and conditions on an address that no field expresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses<'t> {
    pub(super) networks: Vec<(Families, Values)>,
    /// Conditions such as `fqdn www.example.com`.
    pub(super) conditions: Vec<Condition<'t>>,
}

/// A condition that no field expresses.
#[derive(Clone, Debug)]
pub(super) struct Condition<'t> {
    /// The condition in words.
    pub(super) text: String,
    /// The word that faults point to.
    pub(super) word: &'t str,
}

impl<'t> Addresses<'t> {
    /// Returns all addresses of some families.
    pub(super) fn any(families: Families) -> Addresses<'t> {
        Addresses::of(vec![(families, Values::bits(0, 0))])
    }

    pub(super) fn of(networks: Vec<(Families, Values)>) -> Addresses<'t> {
        Addresses {
            networks,
            conditions: Vec::new(),
        }
    }

    /// Returns the packets whose `field` has an address of a network.
    pub(super) fn packets(&self, field: Field) -> Result<PacketSet, TooManyBoxes> {
        let is_any = |values: &Values| matches!(values, Values::Bits { mask: 0, .. });
        let networks = || self.networks.iter().copied();
        let mut packets = PacketSet::none();
        let mut any_families = Vec::new();
        for (families, _) in networks().filter(|(_, values)| is_any(values)) {
            if !any_families.contains(&families) {
                any_families.push(families);
                packets = packets.union(PacketSet::of_families(families))?;
            }
        }
        let others = networks().filter(|(families, _)| {
            let covers = |any: &Families| any.has(*families);
            !any_families.iter().any(covers)
        });
        packets.union(PacketSet::of_addresses(field, others))
    }
}

/// The second address of `10.0.0.0 0.255.255.255` or `10.0.0.0 255.0.0.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mask {
    /// Bits that are 1 may have any value.
    Wildcard,
    /// Bits that are 1 must agree.
    Netmask,
}

impl Mask {
    /// Returns the kind of mask in entries of lists.
    pub(super) fn of_entries(dialect: Dialect) -> Mask {
        match dialect {
            Dialect::Asa => Mask::Netmask,
            Dialect::Ios | Dialect::NxOs | Dialect::Xr => Mask::Wildcard,
        }
    }
}

const EXPECTED: &str = "`any`, `host` and an address, or a network";

/// Returns an address of one host. `resolve` returns the address of a name.
pub(super) fn host<'t>(
    word: &'t str,
    resolve: impl Fn(&'t str) -> &'t str,
) -> Result<(Families, Values), Fault<'t>> {
    let address_text = resolve(word);
    match address_text.parse::<IpAddr>() {
        Ok(_) => parse_network(address_text).map_err(|error| address_fault(word, &error)),
        Err(_) => Err(Fault::new(
            word,
            format!("{} is not an address", quoted(word)),
            "an IPv4 or IPv6 address",
        )),
    }
}

/// Returns a network: `10.0.0.0/8`, `2001:db8::/32`, or an IPv4 address and a mask.
/// `resolve` returns the address of a name.
pub(super) fn network<'t>(
    words: &mut Words<'t>,
    mask: Mask,
    resolve: impl Fn(&'t str) -> &'t str,
) -> Result<(Families, Values), Fault<'t>> {
    let word = words.require(EXPECTED)?;
    let address_text = resolve(word);
    if address_text.contains('/') {
        return parse_network(address_text).map_err(|error| address_fault(word, &error));
    }
    let Ok(address) = address_text.parse::<IpAddr>() else {
        return Err(Fault::new(
            word,
            format!("{} is not an address", quoted(word)),
            EXPECTED,
        ));
    };
    let expected = match mask {
        Mask::Wildcard => "a wildcard mask after the address, or `host` before it",
        Mask::Netmask => "a netmask after the address, or `host` before it",
    };
    if address.is_ipv6() {
        return Err(Fault::new(
            word,
            "an IPv6 address without a prefix length",
            "a prefix such as `2001:db8::/32`, or `host` before the address",
        ));
    }
    let mask_word = words.require(expected)?;
    if mask_word.starts_with('/') {
        let prefix = format!("{address_text}{mask_word}");
        return parse_network(&prefix).map_err(|error| address_fault(mask_word, &error));
    }
    let Ok(IpAddr::V4(mask_bits)) = mask_word.parse::<IpAddr>() else {
        return Err(Fault::new(
            mask_word,
            format!("{} is not a mask", quoted(mask_word)),
            expected,
        ));
    };
    let free_bits = match mask {
        Mask::Wildcard => mask_bits,
        Mask::Netmask => {
            let is_netmask = mask_bits.to_bits().leading_ones() == mask_bits.to_bits().count_ones();
            if !is_netmask {
                return Err(address_fault(mask_word, &AddressError::Mask));
            }
            (!mask_bits.to_bits()).into()
        }
    };
    wildcard(address, free_bits.into()).map_err(|error| address_fault(word, &error))
}

/// Returns the networks of `range FIRST LAST`, without the word `range`.
pub(super) fn range<'t>(
    words: &mut Words<'t>,
    resolve: impl Fn(&'t str) -> &'t str,
) -> Result<Vec<(Families, Values)>, Fault<'t>> {
    let first_word = words.require("the first address")?;
    let last_word = words.require("the last address")?;
    let parse = |word: &'t str| {
        let address = resolve(word).parse::<IpAddr>();
        address.map_err(|_| address_fault(word, &AddressError::Form))
    };
    let (low, high) = (parse(first_word)?, parse(last_word)?);
    range_of_addresses(low, high).map_err(|error| address_fault(first_word, &error))
}

fn address_fault<'t>(word: &'t str, error: &AddressError) -> Fault<'t> {
    Fault::new(word, error.to_string(), EXPECTED)
}
