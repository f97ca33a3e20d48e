//! Taking a line apart.

use super::Problem;

/// What is wrong with a part of a line.
#[derive(Debug)]
pub(super) struct Fault<'t> {
    part: &'t str,
    found: String,
    expected: String,
}

impl<'t> Fault<'t> {
    pub(super) fn new(
        part: &'t str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Fault<'t> {
        Fault {
            part,
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// Something is missing at the end of a part.
    pub(super) fn missing(part: &'t str, expected: impl Into<String>) -> Fault<'t> {
        Fault::new(&part[part.len()..], "nothing more", expected)
    }

    /// The problem, in a line of which the part is a slice.
    pub(super) fn in_line(self, number: usize, line: &str) -> Problem {
        let offset = (self.part.as_ptr() as usize).wrapping_sub(line.as_ptr() as usize);
        let before = line.get(..offset).unwrap_or(line);
        Problem {
            line: number,
            column: before.chars().count() + 1,
            length: self.part.chars().count(),
            found: self.found,
            expected: self.expected,
        }
    }
}

/// Text in quotes, cut at a reasonable length.
pub(super) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    match short.len() < text.len() {
        true => format!("`{short}…`"),
        false => format!("`{short}`"),
    }
}

/// The first word of a text, and what follows it.
pub(super) fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// The parts of a text between commas and white space, not counting those within
/// parentheses. Empty parts are left out.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && (character == ',' || character.is_whitespace()) => {
                parts.push(&text[start..at]);
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// A decimal or hexadecimal number that fits a type.
pub(super) fn part_number<'t, T: TryFrom<u128> + Bounded>(
    text: &'t str,
    what: &str,
) -> Result<T, Fault<'t>> {
    let value = classyard::ValueFormat::Decimal.parse(text);
    let value = value.and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| {
        let found = format!("{} is no {what}", quoted(text));
        Fault::new(text, found, format!("a number up to {}", T::MOST))
    })
}

/// The largest number of a type.
pub(super) trait Bounded {
    const MOST: u128;
}

macro_rules! bounded {
    ($($kind:ty),*) => { $(impl Bounded for $kind { const MOST: u128 = <$kind>::MAX as u128; })* };
}
bounded!(u8, u16, u32, u64);

impl<'t> Fault<'t> {
    /// The same fault, of this part.
    pub(super) fn about(self, part: &'t str) -> Fault<'t> {
        Fault { part, ..self }
    }
}
