//! Field matches as text: `*`, a value, `v/len`, `lo-hi`, `value&mask`.

use std::fmt::Write as _;

use classyard::schema::Field;
use classyard::value::ValueFormat;
use classyard::{FieldMatch, MatchKind};

use super::Fault;
use super::text::{counted, decimal, quoted};

/// Reads the match of a field.
///
/// A sign gives the form: `&` a mask, `/` a prefix or a netmask, `-` a range. Texts have no such
/// forms: they are a value, or the start of a value and `*`. Names of values may contain `-`.
/// The caller checks that the field's kind supports the form. This function reports numbers
/// that do not fit, because it has their position in the line.
pub(super) fn parse_match<'t>(text: &'t str, field: &Field) -> Result<FieldMatch, Fault<'t>> {
    if text == "*" {
        return Ok(FieldMatch::Any);
    }
    if field.format() == ValueFormat::Text && !text.starts_with("0x") {
        return match text.strip_suffix('*') {
            Some(start) => parse_text_prefix(start, field),
            None => parse_value(text, field).map(FieldMatch::Exact),
        };
    }
    if let Some((value, mask)) = field.format().parse_masked(text) {
        return Ok(FieldMatch::Ternary { value, mask });
    }
    if field.format() == ValueFormat::TcpFlags && text.starts_with(['+', '-']) {
        return parse_value(text, field).map(FieldMatch::Exact);
    }
    if let Some((value, mask)) = text.split_once('&') {
        return Ok(FieldMatch::Ternary {
            value: parse_value(value, field)?,
            mask: parse_value(mask, field)?,
        });
    }
    if let Some((value, length)) = text.split_once('/') {
        if is_address(field.format())
            && length.contains(['.', ':'])
            && let Ok(mask) = parse_value(length, field)
        {
            return netmask(parse_value(value, field)?, mask, length, field);
        }
        return Ok(FieldMatch::Prefix {
            value: parse_value(value, field)?,
            length: parse_length(length, field.width())?,
        });
    }
    if field.format().parse(text).is_none()
        && let Some((low, high)) = text.split_once('-')
    {
        let (low, high) = (parse_value(low, field)?, parse_value(high, field)?);
        if low > high {
            return Err(inverted(text));
        }
        return Ok(FieldMatch::Range { low, high });
    }
    parse_value(text, field).map(FieldMatch::Exact)
}

/// Returns the match of an address and a netmask such as 255.255.255.0.
fn netmask<'t>(
    value: u128,
    mask: u128,
    text: &'t str,
    field: &Field,
) -> Result<FieldMatch, Fault<'t>> {
    match prefix_length(mask, field.width()) {
        Some(length) => Ok(FieldMatch::Prefix { value, length }),
        None => Err(Fault::new(
            text,
            format!("{} is no netmask", quoted(text)),
            "a mask of ones and then zeros (`ADDRESS&MASK` has any mask)",
        )),
    }
}

/// Reads the start of texts.
fn parse_text_prefix<'t>(text: &'t str, field: &Field) -> Result<FieldMatch, Fault<'t>> {
    let value = parse_value(text, field)?;
    let length = (128 - value.trailing_zeros()).next_multiple_of(8);
    Ok(FieldMatch::Prefix { value, length })
}

/// Returns the fault for a range whose first value is larger than its last value.
pub(super) fn inverted(range: &str) -> Fault<'_> {
    Fault::new(
        range,
        format!("the range {} is inverted", quoted(range)),
        "the lower end first",
    )
}

/// Reads a prefix length.
pub(super) fn parse_length(text: &str, width: u32) -> Result<u32, Fault<'_>> {
    match decimal::<u32>(text) {
        Some(length) if length <= width => Ok(length),
        Some(length) => Err(Fault::new(
            text,
            format!(
                "prefix length /{length} is longer than the field's {}",
                counted(width as usize, "bit")
            ),
            format!("a length of 0 to {width}"),
        )),
        None => Err(Fault::new(
            text,
            format!("{} is not a prefix length", quoted(text)),
            format!("a length of 0 to {width}"),
        )),
    }
}

/// Reads one value that fits a field.
pub(super) fn parse_value<'t>(text: &'t str, field: &Field) -> Result<u128, Fault<'t>> {
    match field.format().parse(text) {
        Some(value) if value <= field.max_value() => Ok(value),
        Some(_) => Err(too_large(text, field.name(), field.width())),
        None if text.is_empty() => Err(Fault::new(
            text,
            format!("`{}` has no value here", field.name()),
            field.format().expectation(),
        )),
        None => Err(Fault::new(
            text,
            format!("{} is not a value of `{}`", quoted(text), field.name()),
            field.format().expectation(),
        )),
    }
}

/// Returns the fault for a number with more bits than its field.
pub(super) fn too_large<'t>(text: &'t str, field: &str, width: u32) -> Fault<'t> {
    let largest = u128::MAX >> (128 - width.clamp(1, 128));
    Fault::new(
        text,
        format!(
            "{} does not fit in the {} of `{field}`",
            quoted(text),
            counted(width as usize, "bit")
        ),
        format!("at most {largest}"),
    )
}

/// Writes the match of a field, so that [`parse_match`] reads it back.
pub(super) fn write_match(out: &mut String, field: &Field, wanted: &FieldMatch) {
    let format = field.format();
    // Writing to a String cannot fail.
    let _ = match *wanted {
        FieldMatch::Any => write!(out, "*"),
        // `describe` writes the start of a text if there is one.
        FieldMatch::Prefix { value, length } if format == ValueFormat::Text => {
            match wanted.describe(field) {
                text if text.ends_with('*') => write!(out, "{text}"),
                _ => write!(out, "{value:#x}/{length}"),
            }
        }
        FieldMatch::Range { low, high } if format == ValueFormat::Text => {
            write!(out, "{low:#x}-{high:#x}")
        }
        FieldMatch::Exact(value) => write!(out, "{}", format.display(value)),
        FieldMatch::Prefix { value, length } => {
            write!(out, "{}/{length}", format.display(value))
        }
        FieldMatch::Range { low, high } => {
            write!(out, "{}-{}", format.display(low), format.display(high))
        }
        FieldMatch::Ternary { value, mask } => match prefix_length(mask, field.width()) {
            Some(length) if is_address(format) => {
                write!(out, "{}/{length}", format.display(value))
            }
            _ if is_address(format) => {
                write!(out, "{}&{}", format.display(value), format.display(mask))
            }
            _ => write!(out, "{}", wanted.describe(field)),
        },
    };
}

fn is_address(format: ValueFormat) -> bool {
    matches!(
        format,
        ValueFormat::Ipv4 | ValueFormat::Ipv6 | ValueFormat::Mac
    )
}

/// Returns the prefix length of a mask, or `None` if the mask is not a prefix mask.
pub(super) fn prefix_length(mask: u128, width: u32) -> Option<u32> {
    let full = u128::MAX >> (128 - width.clamp(1, 128));
    let wildcard_bits = full & !mask;
    let is_prefix = mask <= full && wildcard_bits & wildcard_bits.wrapping_add(1) == 0;
    is_prefix.then(|| mask.count_ones())
}

/// True if a field's kind supports a match. This is the same check as when the rule is
/// added.
pub(super) fn kind_takes(field: &Field, wanted: &FieldMatch) -> bool {
    let full = field.max_value();
    match (field.kind(), *wanted) {
        (MatchKind::Range, _) | (_, FieldMatch::Any | FieldMatch::Exact(_)) => true,
        (MatchKind::Prefix | MatchKind::Ternary, FieldMatch::Range { low, high }) => {
            range_is_prefix(low, high)
        }
        (MatchKind::Prefix | MatchKind::Ternary, _) => true,
        (MatchKind::Exact, FieldMatch::Prefix { length, .. }) => {
            length == 0 || length == field.width()
        }
        (MatchKind::Exact, FieldMatch::Range { low, high }) => {
            low == high || (low == 0 && high == full)
        }
        (MatchKind::Exact, FieldMatch::Ternary { mask, .. }) => mask == 0 || mask == full,
    }
}

/// True if every value matches. Ranges are not considered.
pub(super) fn takes_all(wanted: &FieldMatch) -> bool {
    matches!(
        wanted,
        FieldMatch::Any
            | FieldMatch::Prefix { length: 0, .. }
            | FieldMatch::Ternary { mask: 0, .. }
    )
}

fn range_is_prefix(low: u128, high: u128) -> bool {
    let differing_bits = low ^ high;
    differing_bits & differing_bits.wrapping_add(1) == 0 && low & differing_bits == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use classyard::{ActionId, Priority, Rule, RuleId, Schema};

    #[test]
    fn every_form_is_read_and_written_back() {
        let cases = [
            (ValueFormat::Decimal, 16, "*", "*"),
            (ValueFormat::Decimal, 16, "80", "80"),
            (ValueFormat::Decimal, 16, "0x50", "80"),
            (ValueFormat::Decimal, 16, "80-89", "80-89"),
            (ValueFormat::Decimal, 16, "0x40/12", "64/12"),
            (ValueFormat::Decimal, 16, "1&3", "0x1&0x3"),
            (ValueFormat::Ipv4, 32, "10.0.0.0/8", "10.0.0.0/8"),
            (
                ValueFormat::Ipv4,
                32,
                "10.0.0.1-10.0.0.9",
                "10.0.0.1-10.0.0.9",
            ),
            (ValueFormat::Ipv4, 32, "10.0.0.0&255.0.0.0", "10.0.0.0/8"),
            (
                ValueFormat::Ipv4,
                32,
                "10.0.0.1&255.0.0.255",
                "10.0.0.1&255.0.0.255",
            ),
            (ValueFormat::Ipv6, 128, "2001:db8::/32", "2001:db8::/32"),
            (
                ValueFormat::Mac,
                48,
                "01:00:00:00:00:00&01:00:00:00:00:00",
                "01:00:00:00:00:00&01:00:00:00:00:00",
            ),
            (ValueFormat::IpProtocol, 8, "tcp", "tcp"),
            (ValueFormat::IpProtocol, 8, "6", "tcp"),
            (ValueFormat::IpProtocol, 8, "ipv6-icmp", "icmpv6"),
            (ValueFormat::IpProtocol, 8, "icmp-tcp", "icmp-tcp"),
            (ValueFormat::Ipv4, 32, "10.0.0.1/255.0.0.0", "10.0.0.1/8"),
            (ValueFormat::Ipv4, 32, "10.0.0.1/0.0.0.0", "10.0.0.1/0"),
            (
                ValueFormat::Ipv6,
                128,
                "2001:db8::/ffff:ffff::",
                "2001:db8::/32",
            ),
            (ValueFormat::TcpFlags, 8, "+syn-ack", "+syn-ack"),
            (ValueFormat::TcpFlags, 8, "0x2&0x12", "+syn-ack"),
            (ValueFormat::TcpFlags, 8, "0x2", "0x2"),
        ];
        for (format, width, text, expected) in cases {
            let field = Field::new("f", width, MatchKind::Ternary).with_format(format);
            let mut written = String::new();
            let field_match = parse_match(text, &field).unwrap_or_else(|f| panic!("{text}: {f:?}"));
            write_match(&mut written, &field, &field_match);
            assert_eq!(written, expected);
            assert!(parse_match(&written, &field).is_ok());
        }
    }

    #[test]
    fn faults_point_at_the_number() {
        let field = Field::new("f", 8, MatchKind::Range);
        for (text, part, found) in [
            ("300", "300", "does not fit"),
            ("1-300", "300", "does not fit"),
            ("9-8", "9-8", "inverted"),
            ("1/9", "9", "longer"),
            ("1/x", "x", "not a prefix length"),
            ("1&999", "999", "does not fit"),
            ("+syn", "+syn", "not a value"),
            ("-1", "", "has no value"),
            ("abc", "abc", "not a value of `f`"),
            ("", "", "has no value"),
            ("1-", "", "has no value"),
            (
                "99999999999999999999999999999999999999999",
                "99999999999999999999999999999999999999999",
                "not a value",
            ),
        ] {
            let fault = parse_match(text, &field).unwrap_err();
            assert_eq!(fault.part(), part);
            assert!(fault.found().contains(found), "{text}: {}", fault.found());
        }
    }

    #[test]
    fn unknown_flags_are_one_fault() {
        let flags = Field::new("flags", 8, MatchKind::Ternary).with_format(ValueFormat::TcpFlags);
        for text in ["+syn-foo", "-ack+", "+", "+syn&1"] {
            assert_eq!(parse_match(text, &flags).unwrap_err().part(), text);
        }
    }

    /// [`kind_takes`] exists to report the right column. It must agree with the core.
    #[test]
    fn kinds_are_judged_as_the_core_judges() {
        let kinds = [
            MatchKind::Exact,
            MatchKind::Prefix,
            MatchKind::Range,
            MatchKind::Ternary,
        ];
        let mut cases = vec![FieldMatch::Any];
        for a in 0..16 {
            cases.push(FieldMatch::Exact(a));
            for b in 0..16 {
                cases.push(FieldMatch::Ternary { value: a, mask: b });
                if a <= b {
                    cases.push(FieldMatch::Range { low: a, high: b });
                }
                if b <= 4 {
                    let length = u32::try_from(b).unwrap();
                    cases.push(FieldMatch::Prefix { value: a, length });
                }
            }
        }
        for kind in kinds {
            let field = Field::new("f", 4, kind);
            let schema = Schema::new("t", vec![field.clone()]).unwrap();
            for wanted in &cases {
                let id = RuleId::from_index(0);
                let rule = Rule::new(&schema, id, Priority(0), ActionId(0), &[*wanted]);
                assert_eq!(
                    rule.is_ok(),
                    kind_takes(&field, wanted),
                    "{kind} {wanted:?}"
                );
            }
        }
    }
}
