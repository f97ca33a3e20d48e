//! Values of fields, with masks.

use std::net::{Ipv4Addr, Ipv6Addr};

use classyard::value::ValueFormat;

use super::fields::FieldSpec;
use super::ports::PortNames;
use super::scan::too_large;
use crate::Fault;
use crate::line::quoted;

/// The bit of `vlan_vid` and `vlan_tci` that packets with a VLAN tag have.
pub(super) const TAG_BIT: u128 = 0x1000;

/// A value of a field under a mask. Bits outside of the mask are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldText {
    /// The value.
    pub value: u128,
    /// The bits that count; none if every value matches.
    pub mask: u128,
    /// True if the text had bits outside of its mask, or of the field.
    pub has_stray_bits: bool,
}

/// Reads a value of a field under one of its names, with a mask or without.
///
/// # Errors
/// A [`Fault`] about the text, or about its mask.
pub fn value<'t>(
    name: &str,
    field: &FieldSpec,
    text: &'t str,
    ports: &mut PortNames<'_>,
) -> Result<FieldText, Fault<'t>> {
    match name {
        "dl_vlan" => return vlan_number(text),
        "nw_tos" => return type_of_service(text),
        _ if field.is_port() => {
            let value = u128::from(ports.port(text, name)?);
            let mask = field.max_value();
            return Ok(FieldText {
                value,
                mask,
                has_stray_bits: false,
            });
        }
        _ => {}
    }
    let (value, mask) = match text.split_once('/') {
        None => (one(name, field, text)?, field.max_value()),
        Some((value, mask)) => (one(name, field, value)?, read_mask(name, field, mask)?),
    };
    if mask != 0 && mask != field.max_value() && !field.maskable {
        return Err(takes_no_mask(text, name));
    }
    Ok(FieldText {
        value: value & mask,
        mask,
        has_stray_bits: value & !mask != 0 && mask != 0,
    })
}

/// The fault of a mask that leaves bits of a field open that takes one value.
pub(super) fn takes_no_mask<'t>(text: &'t str, name: &str) -> Fault<'t> {
    Fault::new(
        text,
        format!("{} has a mask, which `{name}` does not take", quoted(text)),
        "one value, or a line without the field",
    )
}

/// The number of a VLAN, which packets with a tag have; 0xffff for packets without.
fn vlan_number(text: &str) -> Result<FieldText, Fault<'_>> {
    let (value, mask) = match text.split_once('/') {
        None => (plain(text, "dl_vlan", 16)?, 0xfff),
        Some((value, mask)) => (plain(value, "dl_vlan", 16)?, plain(mask, "dl_vlan", 16)?),
    };
    if value == 0xffff {
        return Ok(FieldText {
            value: 0,
            mask: TAG_BIT | 0xfff,
            has_stray_bits: false,
        });
    }
    if value > 0xfff || (mask > 0xfff && mask != 0xffff) {
        return Err(too_large(text, "dl_vlan", 12));
    }
    let mask = mask & 0xfff;
    Ok(FieldText {
        value: (value & mask) | TAG_BIT,
        mask: mask | TAG_BIT,
        has_stray_bits: value & !mask != 0,
    })
}

/// The byte of which DSCP is the upper part.
fn type_of_service(text: &str) -> Result<FieldText, Fault<'_>> {
    let value = plain(text, "nw_tos", 8)?;
    Ok(FieldText {
        value: value >> 2,
        mask: 0x3f,
        has_stray_bits: value & 3 != 0,
    })
}

/// A number of at most `width` bits.
pub(super) fn plain<'t>(text: &'t str, name: &str, width: u32) -> Result<u128, Fault<'t>> {
    let value = ValueFormat::Decimal.parse(text).ok_or_else(|| {
        let found = format!("{} is no value of `{name}`", quoted(text));
        Fault::new(text, found, ValueFormat::Decimal.expectation())
    })?;
    if value > u128::MAX >> (128 - width) {
        return Err(too_large(text, name, width));
    }
    Ok(value)
}

/// One value, without a mask.
fn one<'t>(name: &str, field: &FieldSpec, text: &'t str) -> Result<u128, Fault<'t>> {
    let address = match field.format {
        ValueFormat::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|a| a.to_bits().into()),
        ValueFormat::Ipv6 => text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
        ValueFormat::Mac if text.contains(':') => ValueFormat::Mac.parse(text),
        ValueFormat::Mac => None,
        _ => return plain(text, name, field.width),
    };
    address.ok_or_else(|| {
        let what = match field.format {
            ValueFormat::Mac => "Ethernet address",
            _ => "address",
        };
        let found = format!("{} is no {what}", quoted(text));
        Fault::new(text, found, field.format.expectation())
    })
}

/// A mask: as a value is written, or the number of upper bits of an IP address.
fn read_mask<'t>(name: &str, field: &FieldSpec, text: &'t str) -> Result<u128, Fault<'t>> {
    let is_length = !text.contains(['.', ':']);
    match field.format {
        ValueFormat::Ipv4 | ValueFormat::Ipv6 if is_length => prefix_mask(text, field),
        _ => one(name, field, text),
    }
}

fn prefix_mask<'t>(text: &'t str, field: &FieldSpec) -> Result<u128, Fault<'t>> {
    let width = field.width;
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let length = text.parse::<u32>().ok().filter(|_| is_number);
    match length {
        Some(length) if length <= width => {
            let open = width - length;
            Ok(field.max_value() & u128::MAX.checked_shl(open).unwrap_or(0))
        }
        Some(length) => Err(Fault::new(
            text,
            format!("prefix length /{length} is longer than the field's {width} bits"),
            format!("a length of 0 to {width}"),
        )),
        None => Err(Fault::new(
            text,
            format!("{} is no prefix length", quoted(text)),
            format!("a length of 0 to {width}"),
        )),
    }
}
