//! IP versions of addresses and of the parts of a policy.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use classyard::schema::FieldRole;
use classyard::value::ValueFormat;
use classyard::{Field, Schema};

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Addresses of 32 bits.
    V4,
    /// Addresses of 128 bits.
    V6,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}

impl Family {
    /// Returns the family of a field of addresses; `None` for other fields.
    pub(crate) fn of_field(field: &Field) -> Option<Family> {
        let is_address = matches!(
            field.role(),
            FieldRole::SourceAddress | FieldRole::DestinationAddress
        );
        match (field.format(), field.width()) {
            (ValueFormat::Ipv4, _) => Some(Family::V4),
            (ValueFormat::Ipv6, _) => Some(Family::V6),
            (_, 32) if is_address => Some(Family::V4),
            (_, 128) if is_address => Some(Family::V6),
            _ => None,
        }
    }

    /// Returns the family of a schema's first field of addresses.
    pub(crate) fn of_schema(schema: &Schema) -> Option<Family> {
        schema.fields().iter().find_map(Family::of_field)
    }
}

/// A number, and its family if it is an address.
pub(crate) type Value = (u128, Option<Family>);

/// Parses an address. A decimal number is an IPv4 address.
pub(crate) fn parse_address(text: &str) -> Option<Value> {
    if let Ok(number) = text.parse::<u32>() {
        return Some((number.into(), Some(Family::V4)));
    }
    Some(match text.parse::<IpAddr>().ok()? {
        IpAddr::V4(address) => (address.to_bits().into(), Some(Family::V4)),
        IpAddr::V6(address) => (address.to_bits(), Some(Family::V6)),
    })
}

/// Returns the address that bytes are, most significant byte first.
pub(crate) fn address_of_bytes(bytes: &[u8]) -> Option<Value> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some((Ipv4Addr::from(bytes).to_bits().into(), Some(Family::V4)));
    }
    let bytes = <[u8; 16]>::try_from(bytes).ok()?;
    Some((Ipv6Addr::from(bytes).to_bits(), Some(Family::V6)))
}
