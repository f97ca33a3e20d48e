//! Values that a rule builder accepts for a field: addresses, networks,
//! numbers, ranges.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::{RangeFrom, RangeFull, RangeInclusive, RangeToInclusive};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::model::error::RuleError;
use crate::model::rule::FieldMatch;
use crate::model::schema::Field;

/// A value, network or range that a field must match, before it is known which
/// field.
///
/// Converts from numbers (`6`, `443_u16`), ranges of numbers (`1024..=65535`,
/// `1024..`, `..=1023`), addresses, networks ([`IpNet`]), ranges of addresses,
/// an Ethernet address as six bytes, `..` for any value, an [`Option`] whose
/// `None` is any value, and a [`FieldMatch`].
///
/// IPv4 addresses need a field of 32 bits and IPv6 addresses a field of 128
/// bits. So an address of the wrong family is an error; it is never used as a
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldValue(Value);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// Numbers, for any field that is wide enough.
    Match(FieldMatch),
    /// Numbers for fields of one width.
    OfWidth(FieldMatch, Width),
    /// A number below 0.
    Negative(i128),
    /// All numbers from this one to the largest in the field.
    From(u128),
}

/// Kinds of addresses, each with a fixed width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Ipv4,
    Ipv6,
    Mac,
}

impl Width {
    fn bits(self) -> u32 {
        match self {
            Width::Ipv4 => 32,
            Width::Ipv6 => 128,
            Width::Mac => 48,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Width::Ipv4 => "an IPv4 address",
            Width::Ipv6 => "an IPv6 address",
            Width::Mac => "an Ethernet address",
        }
    }
}

impl FieldValue {
    /// Returns the match for a field.
    ///
    /// # Errors
    /// [`RuleError::WrongAddress`], [`RuleError::Negative`]. Packing the rule
    /// checks whether numbers fit in the field.
    pub(crate) fn in_field(&self, field: &Field) -> Result<FieldMatch, RuleError> {
        match self.0 {
            Value::Match(field_match) => Ok(field_match),
            Value::OfWidth(field_match, width) if width.bits() == field.width() => Ok(field_match),
            Value::OfWidth(_, width) => Err(RuleError::WrongAddress {
                field: field.name().to_owned(),
                found: width.name(),
                bits: width.bits(),
                width: field.width(),
            }),
            Value::Negative(value) => Err(RuleError::Negative {
                field: field.name().to_owned(),
                value,
            }),
            Value::From(low) => Ok(FieldMatch::Range {
                low,
                // A lower end beyond the field is reported as too large.
                high: field.max_value().max(low),
            }),
        }
    }

    /// True if this is an IPv4 address, network or range.
    pub(crate) fn is_ipv4(&self) -> bool {
        matches!(self.0, Value::OfWidth(_, Width::Ipv4))
    }

    /// True if this is an IPv6 address, network or range.
    pub(crate) fn is_ipv6(&self) -> bool {
        matches!(self.0, Value::OfWidth(_, Width::Ipv6))
    }

    /// True if this is an IP address, network or range and the field has the
    /// width of the other IP family.
    pub(crate) fn is_of_another_family(&self, field: &Field) -> bool {
        self.is_ipv4() && field.width() == Width::Ipv6.bits()
            || self.is_ipv6() && field.width() == Width::Ipv4.bits()
    }

    fn exact(value: u128, width: Width) -> FieldValue {
        FieldValue(Value::OfWidth(FieldMatch::Exact(value), width))
    }

    fn prefix(value: u128, length: u8, width: Width) -> FieldValue {
        let length = u32::from(length);
        FieldValue(Value::OfWidth(FieldMatch::Prefix { value, length }, width))
    }

    fn range(low: u128, high: u128, width: Width) -> FieldValue {
        FieldValue(Value::OfWidth(FieldMatch::Range { low, high }, width))
    }
}

impl From<FieldMatch> for FieldValue {
    fn from(field_match: FieldMatch) -> FieldValue {
        FieldValue(Value::Match(field_match))
    }
}

impl From<RangeFull> for FieldValue {
    /// Any value.
    fn from(_: RangeFull) -> FieldValue {
        FieldMatch::Any.into()
    }
}

impl<T: Into<FieldValue>> From<Option<T>> for FieldValue {
    /// Any value if `None`.
    fn from(value: Option<T>) -> FieldValue {
        value.map_or(FieldMatch::Any.into(), Into::into)
    }
}

/// Conversions from signed and unsigned numbers and their ranges.
macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for FieldValue {
            /// A match of this value only.
            fn from(value: $number) -> FieldValue {
                match u128::try_from(value) {
                    Ok(value) => FieldMatch::Exact(value).into(),
                    Err(_) => FieldValue(Value::Negative(number(value))),
                }
            }
        }

        impl From<RangeInclusive<$number>> for FieldValue {
            /// From one value to another, both included.
            fn from(range: RangeInclusive<$number>) -> FieldValue {
                let (low, high) = range.into_inner();
                match (u128::try_from(low), u128::try_from(high)) {
                    (Ok(low), Ok(high)) => FieldMatch::Range { low, high }.into(),
                    (Err(_), _) => FieldValue(Value::Negative(number(low))),
                    (_, Err(_)) => FieldValue(Value::Negative(number(high))),
                }
            }
        }

        impl From<RangeFrom<$number>> for FieldValue {
            /// From a value to the largest value of the field.
            fn from(range: RangeFrom<$number>) -> FieldValue {
                match u128::try_from(range.start) {
                    Ok(low) => FieldValue(Value::From(low)),
                    Err(_) => FieldValue(Value::Negative(number(range.start))),
                }
            }
        }

        impl From<RangeToInclusive<$number>> for FieldValue {
            /// From 0 to a value, both included.
            fn from(range: RangeToInclusive<$number>) -> FieldValue {
                (0..=range.end).into()
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, u128, usize, i32, i64);

/// Converts a negative number for an error message. Callers pass only negative
/// numbers.
fn number(value: impl TryInto<i128>) -> i128 {
    value.try_into().unwrap_or(i128::MAX)
}

impl From<Ipv4Addr> for FieldValue {
    fn from(address: Ipv4Addr) -> FieldValue {
        FieldValue::exact(address.to_bits().into(), Width::Ipv4)
    }
}

impl From<Ipv6Addr> for FieldValue {
    fn from(address: Ipv6Addr) -> FieldValue {
        FieldValue::exact(address.to_bits(), Width::Ipv6)
    }
}

impl From<IpAddr> for FieldValue {
    fn from(address: IpAddr) -> FieldValue {
        match address {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => address.into(),
        }
    }
}

impl From<Ipv4Net> for FieldValue {
    fn from(net: Ipv4Net) -> FieldValue {
        let value = net.network().to_bits().into();
        FieldValue::prefix(value, net.prefix_len(), Width::Ipv4)
    }
}

impl From<Ipv6Net> for FieldValue {
    fn from(net: Ipv6Net) -> FieldValue {
        let value = net.network().to_bits();
        FieldValue::prefix(value, net.prefix_len(), Width::Ipv6)
    }
}

impl From<IpNet> for FieldValue {
    fn from(net: IpNet) -> FieldValue {
        match net {
            IpNet::V4(net) => net.into(),
            IpNet::V6(net) => net.into(),
        }
    }
}

impl From<RangeInclusive<Ipv4Addr>> for FieldValue {
    /// From one address to another, both included.
    fn from(range: RangeInclusive<Ipv4Addr>) -> FieldValue {
        let (low, high) = range.into_inner();
        FieldValue::range(low.to_bits().into(), high.to_bits().into(), Width::Ipv4)
    }
}

impl From<RangeInclusive<Ipv6Addr>> for FieldValue {
    /// From one address to another, both included.
    fn from(range: RangeInclusive<Ipv6Addr>) -> FieldValue {
        let (low, high) = range.into_inner();
        FieldValue::range(low.to_bits(), high.to_bits(), Width::Ipv6)
    }
}

impl From<[u8; 6]> for FieldValue {
    /// An Ethernet address.
    fn from(address: [u8; 6]) -> FieldValue {
        let value = address
            .into_iter()
            .fold(0, |value, byte| value << 8 | u128::from(byte));
        FieldValue::exact(value, Width::Mac)
    }
}
