//! Values as words that several formats have.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Family;
use crate::packets::name_of_value;

/// The flags of TCP that firewalls have names for, from bit 0.
const FLAGS: [&str; 6] = ["fin", "syn", "rst", "psh", "ack", "urg"];

/// The states of connections; the last one has the numbers from 4 to 7.
const STATES: [&str; 5] = ["new", "established", "related", "invalid", "untracked"];

/// The name of an interface, or the start of names.
pub(super) enum Name {
    Whole(String),
    Start(String),
}

/// Returns the name of an interface. `None` if the value is not of a name.
pub(super) fn name_of(value: u128, mask: u128) -> Option<Name> {
    let name = name_of_value(value)?;
    match mask {
        u128::MAX => Some(Name::Whole(name)),
        _ if mask.leading_ones() as usize == 8 * name.len() => Some(Name::Start(name)),
        _ => None,
    }
}

/// Returns an address of a family.
pub(super) fn host(family: Family, value: u128) -> String {
    match family {
        Family::Ipv4 => Ipv4Addr::from(u32::try_from(value).unwrap_or(u32::MAX)).to_string(),
        Family::Ipv6 => Ipv6Addr::from(value).to_string(),
    }
}

/// Returns the length of the prefix that a mask selects. `None` if the mask has holes.
pub(super) fn prefix_length(family: Family, mask: u128) -> Option<u32> {
    let bits = family.address_bits();
    let free = (u128::MAX >> (128 - bits)) & !mask;
    (free & free.wrapping_add(1) == 0).then(|| bits - free.count_ones())
}

/// Returns an address, a network as `ADDRESS/LENGTH`, or `ADDRESS/MASK`.
pub(super) fn address(family: Family, value: u128, mask: u128) -> String {
    let first = host(family, value);
    match prefix_length(family, mask) {
        Some(length) if length == family.address_bits() => first,
        Some(length) => format!("{first}/{length}"),
        None => format!("{first}/{}", host(family, mask)),
    }
}

/// Returns a port or a range of ports.
pub(super) fn port_range((low, high): (u128, u128), separator: char) -> String {
    match low == high {
        true => low.to_string(),
        false => format!("{low}{separator}{high}"),
    }
}

/// Returns the names of TCP flags. `None` if there are bits without a name.
pub(super) fn flag_names(bits: u128, separator: &str) -> Option<String> {
    let names = (0..).zip(FLAGS).filter(|(bit, _)| bits >> bit & 1 == 1);
    let names: Vec<&str> = names.map(|(_, name)| name).collect();
    (bits < 1 << FLAGS.len()).then(|| names.join(separator))
}

/// Returns the names of states with commas between them. `None` if the range has a part of
/// the numbers of `untracked`.
pub(super) fn state_names((low, high): (u128, u128)) -> Option<String> {
    let last = STATES.len() - 1;
    let first = usize::try_from(low).ok().filter(|&first| first <= last)?;
    let end = match high {
        7 => last,
        high if high < last as u128 => usize::try_from(high).ok()?,
        _ => return None,
    };
    Some(STATES[first..=end].join(","))
}
