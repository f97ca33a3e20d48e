//! Words and decimal numbers of a line.

pub(super) use classyard_text::line::{counted, counted_verb, is_blank, lines, quoted};

/// Returns the words of a line, as slices of the line.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_ascii_whitespace()
}

/// Reads a number of decimal digits only. Returns `None` for other text, such as a number
/// with a sign, and for numbers that are too large.
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
