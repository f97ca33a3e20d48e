//! Addresses, networks, ranges of addresses and wildcard masks.

use std::net::IpAddr;

use classyard::FieldMatch;
use thiserror::Error;

use super::{Families, Values};

/// The reason for which a text is not an address or a network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum AddressError {
    /// It has another form.
    #[error("not an address or a network")]
    Form,
    /// The prefix is longer than the address.
    #[error("a prefix length above {0}")]
    Length(u32),
    /// The mask is not a netmask, such as 255.0.255.0.
    #[error("a mask that is no netmask")]
    Mask,
    /// The first address is above the last one, or of another family.
    #[error("a range whose first address is not below its last address")]
    Range,
}

/// Returns the family and the bits of an address.
fn family_and_bits(address: IpAddr) -> (Families, u128, u32) {
    match address {
        IpAddr::V4(address) => (Families::IPV4, address.to_bits().into(), 32),
        IpAddr::V6(address) => (Families::IPV6, address.to_bits(), 128),
    }
}

/// Returns the mask of a prefix length.
fn prefix_mask(length: u32, bits: u32) -> u128 {
    let all = u128::MAX >> (128 - bits);
    all & !u128::MAX.checked_shr(128 - bits + length).unwrap_or(0)
}

/// Parses `10.0.0.1`, `10.0.0.0/8`, `10.0.0.0/255.0.0.0` or the same of IPv6. Bits outside
/// of the mask are ignored.
pub(crate) fn parse_network(text: &str) -> Result<(Families, Values), AddressError> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| AddressError::Form)?;
    let (family, value, bits) = family_and_bits(address);
    let mask = match length {
        None => prefix_mask(bits, bits),
        Some(length) => match (length.parse::<u32>(), length.parse::<IpAddr>()) {
            (Ok(length), _) if length <= bits => prefix_mask(length, bits),
            (Ok(_), _) => return Err(AddressError::Length(bits)),
            (_, Ok(mask)) if family_and_bits(mask).0 == family => family_and_bits(mask).1,
            _ => return Err(AddressError::Form),
        },
    };
    let free = prefix_mask(bits, bits) & !mask;
    if free & free.wrapping_add(1) != 0 {
        return Err(AddressError::Mask);
    }
    Ok((family, Values::bits(value, mask)))
}

/// Returns the addresses that agree with `address` on the bits that are 0 in `wildcard`.
pub(crate) fn wildcard(
    address: IpAddr,
    wildcard: IpAddr,
) -> Result<(Families, Values), AddressError> {
    let (family, value, bits) = family_and_bits(address);
    let (wildcard_family, free, _) = family_and_bits(wildcard);
    match family == wildcard_family {
        true => Ok((family, Values::bits(value, prefix_mask(bits, bits) & !free))),
        false => Err(AddressError::Form),
    }
}

/// Returns the networks that have the addresses from `first` to `last`.
pub(crate) fn range_of_addresses(
    first: IpAddr,
    last: IpAddr,
) -> Result<Vec<(Families, Values)>, AddressError> {
    let (family, low, bits) = family_and_bits(first);
    let (last_family, high, _) = family_and_bits(last);
    if family != last_family || low > high {
        return Err(AddressError::Range);
    }
    let masked = FieldMatch::Range { low, high }.masked_values(bits);
    let networks = masked.into_iter();
    Ok(networks
        .map(|(value, mask)| (family, Values::bits(value, mask)))
        .collect())
}
