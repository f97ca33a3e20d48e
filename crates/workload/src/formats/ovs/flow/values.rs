//! Values of flows: numbers, addresses, ports and VLAN tags, with their masks.

use std::net::{Ipv4Addr, Ipv6Addr};

use classyard::{FieldMatch, ValueFormat};

use crate::formats::ovs::{Fault, PORTS, quoted};
use crate::formats::value::{parse_length, too_large};

/// A decimal or hexadecimal number of at most `width` bits.
pub(super) fn number<'t, T: TryFrom<u128>>(
    text: &'t str,
    width: u32,
    key: &str,
) -> Result<T, Fault<'t>> {
    let value = ValueFormat::Decimal.parse(text).ok_or_else(|| {
        Fault::new(
            text,
            format!("{} is no value of `{key}`", quoted(text)),
            ValueFormat::Decimal.expectation(),
        )
    })?;
    let fits = value <= u128::MAX >> (128 - width);
    let value = if fits { T::try_from(value).ok() } else { None };
    value.ok_or_else(|| too_large(text, key, width))
}

pub(super) fn exact<'t>(text: &'t str, width: u32, key: &str) -> Result<FieldMatch, Fault<'t>> {
    number(text, width, key).map(FieldMatch::Exact)
}

/// A type or code of ICMP. Open vSwitch takes a mask of all bits or of none.
pub(super) fn byte<'t>(text: &'t str, key: &str) -> Result<FieldMatch, Fault<'t>> {
    let (value, mask) = split_mask(text, 8, key)?;
    match ternary(value, mask, 8) {
        FieldMatch::Ternary { .. } => Err(Fault::new(
            text,
            format!("{} has a mask, which `{key}` does not take", quoted(text)),
            "one value, 0 to 255",
        )),
        wanted => Ok(wanted),
    }
}

/// A number, and its mask if it has one.
pub(super) fn split_mask<'t>(
    text: &'t str,
    width: u32,
    key: &str,
) -> Result<(u128, Option<u128>), Fault<'t>> {
    match text.split_once('/') {
        None => Ok((number(text, width, key)?, None)),
        Some((value, mask)) => Ok((number(value, width, key)?, Some(number(mask, width, key)?))),
    }
}

pub(super) fn masked<'t>(text: &'t str, width: u32, key: &str) -> Result<FieldMatch, Fault<'t>> {
    let (value, mask) = split_mask(text, width, key)?;
    Ok(ternary(value, mask, width))
}

/// The simplest match that says a value under a mask.
pub(super) fn ternary(value: u128, mask: Option<u128>, width: u32) -> FieldMatch {
    match mask {
        None => FieldMatch::Exact(value),
        Some(0) => FieldMatch::Any,
        Some(mask) if mask == u128::MAX >> (128 - width) => FieldMatch::Exact(value),
        Some(mask) => FieldMatch::Ternary { value, mask },
    }
}

pub(super) fn port_number(text: &str) -> Result<FieldMatch, Fault<'_>> {
    let named = PORTS
        .iter()
        .find(|(name, _)| text.eq_ignore_ascii_case(name));
    if let Some((_, number)) = named {
        return Ok(FieldMatch::Exact(u128::from(*number)));
    }
    if text.starts_with('"') || text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(Fault::new(
            text,
            format!("the name of a port, {}", quoted(text)),
            "the port's number (ovs-ofctl prints numbers with --no-names)",
        ));
    }
    exact(text, 32, "in_port")
}

pub(super) fn mac(text: &str) -> Result<FieldMatch, Fault<'_>> {
    let parse = |text| {
        ValueFormat::Mac
            .parse(text)
            .filter(|_| text.contains(':'))
            .ok_or_else(|| {
                Fault::new(
                    text,
                    format!("{} is no Ethernet address", quoted(text)),
                    ValueFormat::Mac.expectation(),
                )
            })
    };
    match text.split_once('/') {
        None => parse(text).map(FieldMatch::Exact),
        Some((value, mask)) => Ok(ternary(parse(value)?, Some(parse(mask)?), 48)),
    }
}

pub(super) fn dl_vlan(text: &str) -> Result<FieldMatch, Fault<'_>> {
    let (vid, mask) = split_mask(text, 16, "dl_vlan")?;
    match mask {
        _ if vid == 0xffff => Err(no_tag_bit(text)),
        None | Some(0xfff | 0xffff) if vid <= 0xfff => Ok(FieldMatch::Exact(vid)),
        Some(mask @ 0..=0xfff) if vid <= 0xfff => Ok(ternary(vid, Some(mask), 12)),
        _ => Err(too_large(text, "dl_vlan", 12)),
    }
}

/// As OpenFlow 1.2 has it: bit 12 says that there is a tag.
pub(super) fn vlan_vid(text: &str) -> Result<FieldMatch, Fault<'_>> {
    let (vid, mask) = split_mask(text, 13, "vlan_vid")?;
    let mask = mask.unwrap_or(0x1fff);
    if vid & mask & 0x1000 == 0 || mask & 0xfff == 0 {
        return Err(no_tag_bit(text));
    }
    Ok(ternary(vid & 0xfff, Some(mask & 0xfff), 12))
}

pub(super) fn ipv4(text: &str) -> Result<FieldMatch, Fault<'_>> {
    address(text, 32, |text| {
        text.parse::<Ipv4Addr>().ok().map(|a| a.to_bits().into())
    })
}

pub(super) fn ipv6(text: &str) -> Result<FieldMatch, Fault<'_>> {
    address(text, 128, |text| {
        text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits)
    })
}

/// An address, perhaps with a prefix length or a mask in the form of one.
fn address(
    text: &str,
    width: u32,
    parse: impl Fn(&str) -> Option<u128>,
) -> Result<FieldMatch, Fault<'_>> {
    let value = |part| {
        parse(part).ok_or_else(|| {
            let format = if width == 32 {
                ValueFormat::Ipv4
            } else {
                ValueFormat::Ipv6
            };
            Fault::new(
                part,
                format!("{} is no address", quoted(part)),
                format.expectation(),
            )
        })
    };
    match text.split_once('/') {
        None => value(text).map(FieldMatch::Exact),
        Some((bits, mask)) => match parse(mask) {
            Some(mask) => Ok(ternary(value(bits)?, Some(mask), width)),
            None => Ok(FieldMatch::Prefix {
                value: value(bits)?,
                length: parse_length(mask, width)?,
            }),
        },
    }
}

/// What can be demanded instead of a tag.
pub(super) const TAG_WORDS: &str = "a VLAN's number or priority that is not 0, such as dl_vlan=5, or \
    vlan_tci=0x0000/0x0fff for 0 with a tag or without; schemas have no field for the presence \
    of a tag";

pub(super) fn no_tag_bit(token: &str) -> Fault<'_> {
    Fault::new(
        token,
        format!("{} asks whether there is a VLAN tag", quoted(token)),
        TAG_WORDS,
    )
}
