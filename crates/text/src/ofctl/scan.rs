//! Words, lists and numbers.

use classyard::value::ValueFormat;

use crate::Fault;
use crate::line::quoted;

/// Returns the first word of a text, and the text after it.
#[must_use]
pub fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let word_end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..word_end], text[word_end..].trim_start())
}

/// True if `byte` separates the parts of a list.
fn separates(byte: u8) -> bool {
    byte == b',' || byte.is_ascii_whitespace() || byte == b'\x0b'
}

/// Splits a list at commas and white space, except within parentheses or quotes. Empty
/// parts are skipped.
#[must_use]
pub fn parts(text: &str) -> Vec<&str> {
    let mut list = Vec::new();
    let mut unread = text;
    while let Some(part) = next_part(&mut unread) {
        list.push(part);
    }
    list
}

/// Removes the next part of a list from the start of `unread` and returns it.
pub(super) fn next_part<'t>(unread: &mut &'t str) -> Option<&'t str> {
    let start = unread.trim_start_matches(|c: char| u8::try_from(c).is_ok_and(separates));
    let (mut depth, mut in_quotes) = (0_usize, false);
    let mut part_end = start.len();
    for (offset, byte) in start.bytes().enumerate() {
        match byte {
            b'"' => in_quotes = !in_quotes,
            _ if in_quotes => {}
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && separates(byte) => {
                part_end = offset;
                break;
            }
            _ => {}
        }
    }
    let (part, tail) = start.split_at(part_end);
    *unread = tail;
    (!part.is_empty()).then_some(part)
}

/// An unsigned integer type.
pub trait Bits: TryFrom<u128> {
    /// The width of the type in bits.
    const BITS: u32;
}

macro_rules! bits {
    ($($kind:ty),*) => { $(impl Bits for $kind { const BITS: u32 = <$kind>::BITS; })* };
}
bits!(u8, u16, u32, u64);

/// Reads a decimal or hexadecimal number that fits a type. Messages name `name`.
///
/// # Errors
/// A [`Fault`] about the text.
pub fn number<'t, T: Bits>(text: &'t str, name: &str) -> Result<T, Fault<'t>> {
    let value = ValueFormat::Decimal.parse(text).ok_or_else(|| {
        let message = format!("{} is not a value of `{name}`", quoted(text));
        Fault::new(text, message, ValueFormat::Decimal.expectation())
    })?;
    T::try_from(value).map_err(|_| too_large(text, name, T::BITS))
}

/// Returns the fault for a number that does not fit in `width` bits.
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
        assert_eq!(fault.found(), "`-1` is not a value of `n`");
    }
}
