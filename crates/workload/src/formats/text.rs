//! Lines, words and numbers.

pub(super) use classyard_text::line::{counted, counted_verb, is_blank, lines, quoted};

/// The words of a line; each is a slice of it.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_ascii_whitespace()
}

/// The value of decimal digits; `None` for anything else, a sign included, and
/// for numbers that are too large.
pub(super) fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_are_decimal() {
        assert_eq!(decimal::<u8>("255"), Some(255));
        for text in ["", "+1", "-1", "256", "1 ", "0x1"] {
            assert_eq!(decimal::<u8>(text), None, "{text:?}");
        }
    }
}
