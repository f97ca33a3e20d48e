//! The words of a line of `iptables-save` or `ipset save`.

use std::borrow::Cow;

use classyard_text::Fault;

/// The usual number of bytes of a word with the blank after it.
const WORD_BYTES: usize = 6;

/// A word: characters without blanks, or a text in double quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word<'t> {
    /// The word with its quotes.
    pub(super) text: &'t str,
    /// The word without quotes and backslashes.
    pub(super) value: Cow<'t, str>,
    /// True if the word has quotes. Such a word is never an option.
    pub(super) is_quoted: bool,
    /// The offset of the first byte in the line.
    start: usize,
}

impl<'t> Word<'t> {
    /// Returns the value as a slice of the line. If the word has backslashes in quotes,
    /// returns the word with its quotes.
    pub(super) fn slice(&self) -> &'t str {
        match self.value {
            Cow::Borrowed(value) => value,
            Cow::Owned(_) => self.text,
        }
    }

    /// True if the word has no quotes and is equal to `text`.
    pub(super) fn is(&self, text: &str) -> bool {
        !self.is_quoted && self.text == text
    }

    /// True if the word may be an option.
    pub(super) fn is_option(&self) -> bool {
        !self.is_quoted && self.text.len() > 1 && self.text.starts_with('-')
    }

    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Returns the part of a line from one word to another.
pub(super) fn span<'t>(line: &'t str, first: &Word<'t>, last: &Word<'t>) -> &'t str {
    &line[first.start..last.end()]
}

/// Splits a line into words.
pub(super) fn split(line: &str) -> Result<Vec<Word<'_>>, Fault<'_>> {
    let mut words = Vec::with_capacity(line.len() / WORD_BYTES);
    let mut start = 0;
    loop {
        let unread = &line[start..];
        start += unread.len() - unread.trim_ascii_start().len();
        if start == line.len() {
            return Ok(words);
        }
        let word = word_at(line, start)?;
        start = word.end();
        words.push(word);
    }
}

/// Returns the word at an offset of a line.
fn word_at(line: &str, start: usize) -> Result<Word<'_>, Fault<'_>> {
    let unread = &line[start..];
    let is_end = |byte: u8| byte.is_ascii_whitespace();
    let bare_end = unread.bytes().position(is_end).unwrap_or(unread.len());
    let bare = &unread[..bare_end];
    if !bare.contains('"') {
        return Ok(Word {
            text: bare,
            value: Cow::Borrowed(bare),
            is_quoted: false,
            start,
        });
    }
    let mut value = String::new();
    let (mut is_in_quotes, mut is_escaped) = (false, false);
    let mut end = unread.len();
    for (offset, character) in unread.char_indices() {
        match character {
            _ if is_escaped => {
                value.push(character);
                is_escaped = false;
            }
            '\\' if is_in_quotes => is_escaped = true,
            '"' => is_in_quotes = !is_in_quotes,
            blank if blank.is_ascii_whitespace() && !is_in_quotes => {
                end = offset;
                break;
            }
            _ => value.push(character),
        }
    }
    if is_in_quotes {
        return Err(Fault::new(
            unread.trim_ascii_end(),
            "a text in quotes that does not end",
            "`\"` at the end of the text",
        ));
    }
    let text = &unread[..end];
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let value = match inner {
        Some(inner) if inner == value => Cow::Borrowed(inner),
        _ => Cow::Owned(value),
    };
    Ok(Word {
        text,
        value,
        is_quoted: true,
        start,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        let line = r#"-A INPUT  -m comment --comment "a \"b\" c" --x "" "d e""#;
        let words = split(line).unwrap();
        let values: Vec<&str> = words.iter().map(|word| &*word.value).collect();
        assert_eq!(
            values,
            [
                "-A",
                "INPUT",
                "-m",
                "comment",
                "--comment",
                "a \"b\" c",
                "--x",
                "",
                "d e"
            ]
        );
        assert_eq!(words[8].slice(), "d e");
        assert_eq!(span(line, &words[2], &words[3]), "-m comment");
        assert!(split("a \"b").is_err());
        assert!(split(" \t ").unwrap().is_empty());
    }
}
