//! Lists of prefixes with exceptions. The longest prefix decides.

use classyard_text::Fault;
use classyard_text::line::quoted;

use crate::packets::{
    AddressError, Families, Field, MAX_BOXES, PacketSet, TooManyBoxes, Values, parse_network,
    wildcard,
};

/// The number of bits of addresses, for IPv4 and IPv6.
const ADDRESS_BITS: [u32; 2] = [32, 128];

/// A prefix of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix<'t> {
    value: u128,
    length: u32,
    is_except: bool,
    text: &'t str,
}

/// A list of prefixes. A packet's address is in the list if its longest prefix is not an
/// exception. Addresses without a prefix are not in the list.
#[derive(Clone, Debug, Default)]
pub(super) struct PrefixList<'t> {
    /// The prefixes of IPv4 and of IPv6.
    prefixes: [Vec<Prefix<'t>>; 2],
    /// Addresses with other masks than netmasks; they have no length.
    masked: Vec<(Families, Values, &'t str)>,
}

/// Parses a network. Any mask may follow, and an IPv4 address may have fewer than four numbers.
pub(super) fn parse_prefix(text: &str) -> Result<(Families, Values), AddressError> {
    match parse_network(text) {
        Err(AddressError::Mask) => {
            let (address, mask) = text.split_once('/').ok_or(AddressError::Form)?;
            let address = address.parse().map_err(|_| AddressError::Form)?;
            let mask: std::net::Ipv4Addr = mask.parse().map_err(|_| AddressError::Form)?;
            wildcard(
                address,
                std::net::Ipv4Addr::from_bits(!mask.to_bits()).into(),
            )
        }
        Err(AddressError::Form) => {
            let (address, length) = text.split_once('/').unwrap_or((text, "32"));
            let numbers = address.split('.').count();
            let is_number = |number: &str| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            };
            if numbers > 3 || !address.split('.').all(is_number) {
                return Err(AddressError::Form);
            }
            parse_network(&format!("{address}{}/{length}", ".0".repeat(4 - numbers)))
        }
        other => other,
    }
}

/// Returns the fault of a text that is not a network.
pub(super) fn bad_prefix(text: &str, error: AddressError) -> Fault<'_> {
    let message = match error {
        AddressError::Form => quoted(text),
        error => format!("{} with {error}", quoted(text)),
    };
    Fault::new(text, message, "an address or a prefix such as 192.0.2.0/24")
}

/// Returns the fault of a set that is too large.
pub(super) fn too_many(part: &str, error: TooManyBoxes) -> Fault<'_> {
    Fault::new(part, error.to_string(), "fewer or simpler conditions")
}

impl<'t> PrefixList<'t> {
    /// Adds a prefix.
    pub(super) fn add(&mut self, text: &'t str, is_except: bool) -> Result<(), Fault<'t>> {
        let (families, values) = parse_prefix(text).map_err(|error| bad_prefix(text, error))?;
        let Values::Bits { value, mask } = values else {
            unreachable!("addresses are bits");
        };
        let index = usize::from(families == Families::IPV6);
        let bits = ADDRESS_BITS[index];
        let free = (u128::MAX >> (128 - bits)) & !mask;
        if free & free.wrapping_add(1) != 0 {
            if is_except {
                return Err(masked_exception(text));
            }
            self.masked.push((families, values, text));
            return Ok(());
        }
        self.prefixes[index].push(Prefix {
            value,
            length: mask.count_ones(),
            is_except,
            text,
        });
        Ok(())
    }

    /// Adds what another list has, as exceptions if `is_except`.
    pub(super) fn add_list(
        &mut self,
        other: &PrefixList<'t>,
        is_except: bool,
    ) -> Result<(), Fault<'t>> {
        for (own, others) in self.prefixes.iter_mut().zip(&other.prefixes) {
            own.extend(others.iter().map(|prefix| Prefix {
                is_except,
                ..*prefix
            }));
        }
        match other.masked.first() {
            Some((_, _, text)) if is_except => return Err(masked_exception(text)),
            _ => self.masked.extend(&other.masked),
        }
        Ok(())
    }

    /// Removes the prefixes of other families.
    pub(super) fn retain(&mut self, families: Families) {
        for (prefixes, (family, _)) in self.prefixes.iter_mut().zip(Families::EACH) {
            if !families.has(family) {
                prefixes.clear();
            }
        }
        self.masked.retain(|entry| families.has(entry.0));
    }

    /// True if the list has no prefix of some families.
    pub(super) fn is_empty(&self, families: Families) -> bool {
        let has_prefix = |(index, (family, _)): (usize, (Families, u32))| {
            families.has(family) && !self.prefixes[index].is_empty()
        };
        let masked = self.masked.iter().any(|entry| families.has(entry.0));
        !masked && !Families::EACH.into_iter().enumerate().any(has_prefix)
    }

    /// True if all prefixes of some families are exceptions.
    pub(super) fn has_only_exceptions(&self, families: Families) -> bool {
        let has_exceptions = |(index, (family, _)): (usize, (Families, u32))| {
            !families.has(family) || self.prefixes[index].iter().all(|prefix| prefix.is_except)
        };
        self.masked.is_empty() && Families::EACH.into_iter().enumerate().all(has_exceptions)
    }

    /// Returns the addresses of the list as values of a field.
    pub(super) fn packets(&self, field: Field) -> Result<PacketSet, Fault<'t>> {
        let mut networks = Vec::new();
        for (index, (family, bits)) in Families::EACH.into_iter().enumerate() {
            let prefixes = self.checked(index)?;
            if !self.masked.is_empty()
                && let Some(exception) = prefixes.iter().find(|prefix| prefix.is_except)
            {
                return Err(masked_exception(exception.text));
            }
            longest_match(&prefixes, bits, (family, &mut networks))
                .map_err(|error| too_many(self.first_text(), error))?;
        }
        networks.extend(
            self.masked
                .iter()
                .map(|(family, values, _)| (*family, *values)),
        );
        Ok(PacketSet::of_addresses(field, networks))
    }

    /// Returns the addresses that are not in a list without exceptions.
    pub(super) fn other_packets(&self, field: Field) -> Result<PacketSet, Fault<'t>> {
        let mut inverse = PrefixList::default();
        for (index, prefixes) in self.prefixes.iter().enumerate() {
            let inverted = prefixes.iter().map(|prefix| Prefix {
                is_except: !prefix.is_except,
                ..*prefix
            });
            inverse.prefixes[index] = inverted.collect();
            let has_all = prefixes.iter().any(|prefix| prefix.length == 0);
            if !has_all {
                inverse.prefixes[index].push(Prefix {
                    value: 0,
                    length: 0,
                    is_except: false,
                    text: self.first_text(),
                });
            }
        }
        let masked = self
            .masked
            .iter()
            .map(|(family, values, _)| (*family, *values));
        let masked = PacketSet::of_addresses(field, masked);
        let other_packets = inverse.packets(field)?.subtract(&masked);
        other_packets.map_err(|error| too_many(self.first_text(), error))
    }

    fn first_text(&self) -> &'t str {
        let prefix = self.prefixes.iter().flatten().next();
        let masked = self.masked.first().map(|entry| entry.2);
        prefix.map(|prefix| prefix.text).or(masked).unwrap_or("")
    }

    /// Returns the prefixes of a family, sorted by value and length, each once.
    fn checked(&self, index: usize) -> Result<Vec<Prefix<'t>>, Fault<'t>> {
        let mut prefixes = self.prefixes[index].clone();
        prefixes.sort_by_key(|prefix| (prefix.value, prefix.length));
        for pair in prefixes.windows(2) {
            let is_same = pair[0].value == pair[1].value && pair[0].length == pair[1].length;
            if is_same && pair[0].is_except != pair[1].is_except {
                return Err(Fault::unsupported(
                    pair[1].text,
                    "the same prefix with and without `except`",
                    "one of them",
                ));
            }
        }
        prefixes.dedup_by_key(|prefix| (prefix.value, prefix.length));
        Ok(prefixes)
    }
}

fn masked_exception(text: &str) -> Fault<'_> {
    Fault::unsupported(
        text,
        "`except` in a list with a mask that is not a netmask",
        "prefixes",
    )
}

/// A prefix of the address space while it is divided, and its prefixes.
struct Part<'a, 't> {
    value: u128,
    length: u32,
    is_match: bool,
    prefixes: &'a [Prefix<'t>],
}

/// Adds disjoint networks of the addresses whose longest prefix is not an exception. Prefixes
/// are sorted by value and length, each once.
fn longest_match(
    prefixes: &[Prefix<'_>],
    bits: u32,
    (family, networks): (Families, &mut Vec<(Families, Values)>),
) -> Result<(), TooManyBoxes> {
    let mut parts = vec![Part {
        value: 0,
        length: 0,
        is_match: false,
        prefixes,
    }];
    while let Some(mut part) = parts.pop() {
        if let Some((first, longer)) = part.prefixes.split_first()
            && first.length == part.length
        {
            part.is_match = !first.is_except;
            part.prefixes = longer;
        }
        let is_uniform = |prefix: &Prefix<'_>| prefix.is_except != part.is_match;
        if part.prefixes.iter().all(is_uniform) {
            if part.is_match {
                add_network(networks, family, (part.value, part.length), bits);
            }
            if networks.len() > MAX_BOXES {
                return Err(TooManyBoxes);
            }
            continue;
        }
        let upper = part.value | 1 << (bits - 1 - part.length);
        let middle = part.prefixes.partition_point(|prefix| prefix.value < upper);
        let half = |value, prefixes| Part {
            value,
            length: part.length + 1,
            is_match: part.is_match,
            prefixes,
        };
        parts.push(half(upper, &part.prefixes[middle..]));
        parts.push(half(part.value, &part.prefixes[..middle]));
    }
    Ok(())
}

/// Adds a network after the last one, which has lower addresses. Two halves of a network
/// become that network.
fn add_network(
    networks: &mut Vec<(Families, Values)>,
    family: Families,
    (mut value, mut length): (u128, u32),
    bits: u32,
) {
    let all_bits = u128::MAX >> (128 - bits);
    let values = |value: u128, length: u32| {
        let free = all_bits.checked_shr(length).unwrap_or(0);
        Values::bits(value, all_bits & !free)
    };
    while length > 0 {
        let half = 1 << (bits - length);
        let lower_half = (family, values(value & !half, length));
        if value & half == 0 || networks.last() != Some(&lower_half) {
            break;
        }
        networks.pop();
        value &= !half;
        length -= 1;
    }
    networks.push((family, values(value, length)));
}
