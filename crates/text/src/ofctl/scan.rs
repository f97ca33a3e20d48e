//! Words, lists and numbers.

use classyard::value::ValueFormat;

use crate::Fault;
use crate::line::quoted;

/// The first word of a text, and what follows it.
#[must_use]
pub fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// True for what stands between the parts of a list.
fn separates(byte: u8) -> bool {
    byte == b',' || byte.is_ascii_whitespace() || byte == b'\x0b'
}

/// The parts of a list between commas and white space. Those within parentheses or
/// quotes do not count; empty parts are left out.
#[must_use]
pub fn parts(text: &str) -> Vec<&str> {
    let mut list = Vec::new();
    let mut rest = text;
    while let Some(part) = next_part(&mut rest) {
        list.push(part);
    }
    list
}

/// Takes the next part of a list.
pub(super) fn next_part<'t>(rest: &mut &'t str) -> Option<&'t str> {
    let start = rest.trim_start_matches(|c: char| u8::try_from(c).is_ok_and(separates));
    let (mut depth, mut in_quotes) = (0_usize, false);
    let mut end = start.len();
    for (at, byte) in start.bytes().enumerate() {
        match byte {
            b'"' => in_quotes = !in_quotes,
            _ if in_quotes => {}
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && separates(byte) => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let (part, tail) = start.split_at(end);
    *rest = tail;
    (!part.is_empty()).then_some(part)
}

/// An unsigned type of a number of bits.
pub trait Bits: TryFrom<u128> {
    /// The bits.
    const BITS: u32;
}

macro_rules! bits {
    ($($kind:ty),*) => { $(impl Bits for $kind { const BITS: u32 = <$kind>::BITS; })* };
}
bits!(u8, u16, u32, u64);

/// A decimal or hexadecimal number that fits a type. `name` is what it is the value of.
///
/// # Errors
/// A [`Fault`] about the text.
pub fn number<'t, T: Bits>(text: &'t str, name: &str) -> Result<T, Fault<'t>> {
    let value = ValueFormat::Decimal.parse(text).ok_or_else(|| {
        let found = format!("{} is no value of `{name}`", quoted(text));
        Fault::new(text, found, ValueFormat::Decimal.expectation())
    })?;
    T::try_from(value).map_err(|_| too_large(text, name, T::BITS))
}

/// The fault of a number that does not fit in `width` bits.
#[must_use]
pub fn too_large<'t>(text: &'t str, name: &str, width: u32) -> Fault<'t> {
    let largest = u128::MAX >> (128 - width.clamp(1, 128));
    let ending = if width == 1 { "" } else { "s" };
    Fault::new(
        text,
        format!(
            "{} does not fit in the {width} bit{ending} of `{name}`",
            quoted(text)
        ),
        format!("at most {largest}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_fall_into_parts() {
        assert_eq!(
            parts(" a,b(c, d),\t\"e, f\",in_port=\"g h\" ,, i"),
            ["a", "b(c, d)", "\"e, f\"", "in_port=\"g h\"", "i"]
        );
        assert_eq!(parts(" , "), [""; 0]);
        assert_eq!(parts("é,)x"), ["é", ")x"]);
        assert_eq!(parts("(a,b"), ["(a,b"]);
    }

    #[test]
    fn numbers_fit_their_type() {
        assert_eq!(number::<u8>("0xff", "n").unwrap(), 255);
        let fault = number::<u8>("256", "n").unwrap_err();
        assert_eq!(fault.found(), "`256` does not fit in the 8 bits of `n`");
        let fault = number::<u8>("-1", "n").unwrap_err();
        assert_eq!(fault.found(), "`-1` is no value of `n`");
    }
}
