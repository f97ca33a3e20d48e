//! Values of fields, with masks.

use std::net::{Ipv4Addr, Ipv6Addr};

use classyard::value::ValueFormat;

use super::fields::FieldSpec;
use super::ports::PortNames;
use super::scan::too_large;
use crate::Fault;
use crate::line::quoted;

/// The bit of `vlan_vid` and `vlan_tci` that is set in packets with a VLAN tag.
pub(super) const TAG_BIT: u128 = 0x1000;

/// A value of a field and its mask. Bits outside of the mask are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldText {
    /// The value.
    pub value: u128,
    /// The bits that must match; 0 if every value matches.
    pub mask: u128,
    /// True if the text had bits outside of its mask or outside of the field.
    pub has_stray_bits: bool,
}

/// Reads a value of a field, with or without a mask. `name` is the field's name on the line.
///
/// # Errors
/// A [`Fault`] about the value or its mask.
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

/// Returns the fault for a mask of a field that requires an exact value.
pub(super) fn takes_no_mask<'t>(text: &'t str, name: &str) -> Fault<'t> {
    Fault::new(
        text,
        format!("{} has a mask, which `{name}` does not take", quoted(text)),
        "one value, or a line without the field",
    )
}

/// Reads a VLAN number, which matches tagged packets only; 0xffff matches untagged packets.
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

/// Reads a type-of-service byte. Its upper 6 bits are the DSCP.
fn type_of_service(text: &str) -> Result<FieldText, Fault<'_>> {
    let value = plain(text, "nw_tos", 8)?;
    Ok(FieldText {
        value: value >> 2,
        mask: 0x3f,
        has_stray_bits: value & 3 != 0,
    })
}

/// Reads a number of at most `width` bits.
pub(super) fn plain<'t>(text: &'t str, name: &str, width: u32) -> Result<u128, Fault<'t>> {
    let value = ValueFormat::Decimal.parse(text).ok_or_else(|| {
        let message = format!("{} is not a value of `{name}`", quoted(text));
        Fault::new(text, message, ValueFormat::Decimal.expectation())
    })?;
    if value > u128::MAX >> (128 - width) {
        return Err(too_large(text, name, width));
    }
    Ok(value)
}

/// Reads a value without a mask.
fn one<'t>(name: &str, field: &FieldSpec, text: &'t str) -> Result<u128, Fault<'t>> {
    let address = match field.format {
        ValueFormat::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|a| a.to_bits().into()),
        ValueFormat::Ipv6 => text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
        ValueFormat::Mac if text.contains(':') => ValueFormat::Mac.parse(text),
        ValueFormat::Mac => None,
        _ => return plain(text, name, field.width),
    };
    address.ok_or_else(|| {
        let noun = match field.format {
            ValueFormat::Mac => "Ethernet address",
            _ => "address",
        };
        let message = format!("{} is not an {noun}", quoted(text));
        Fault::new(text, message, field.format.expectation())
    })
}

/// Reads a mask, written like a value or, for an IP address, as a prefix length.
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
            let wildcard_bits = width - length;
            Ok(field.max_value() & u128::MAX.checked_shl(wildcard_bits).unwrap_or(0))
        }
        Some(length) => Err(Fault::new(
            text,
            format!("prefix length /{length} is longer than the field's {width} bits"),
            format!("a length of 0 to {width}"),
        )),
        None => Err(Fault::new(
            text,
            format!("{} is not a prefix length", quoted(text)),
            format!("a length of 0 to {width}"),
        )),
    }
}
