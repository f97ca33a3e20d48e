//! The words of a rule line, with or without quotes: words, `key=value`, comments.

use std::borrow::Cow;

use super::Fault;
use crate::formats::text::quoted;

/// A word of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    /// The whole word, with its quotes.
    pub(super) text: &'t str,
    /// The text before the first `=` outside of quotes, if there is one.
    pub(super) key: Option<&'t str>,
    /// The text after the `=`; the whole word if `key` is `None`.
    pub(super) value: &'t str,
}

/// Removes the next word of a line and returns it. Returns `None` at the end of the line
/// or at a comment.
pub(super) fn next_token<'t>(unread: &mut &'t str) -> Result<Option<Token<'t>>, Fault<'t>> {
    let text = unread.trim_ascii_start();
    if text.is_empty() || text.starts_with('#') {
        *unread = "";
        return Ok(None);
    }
    let mut equals = None;
    let mut word_end = text.len();
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b if b.is_ascii_whitespace() || b == b'#' => {
                word_end = index;
                break;
            }
            b'=' if equals.is_none() => equals = Some(index),
            b'"' => {
                let starts_value = index == 0 || equals.is_some_and(|at| at + 1 == index);
                if !starts_value {
                    return Err(Fault::new(
                        &text[index..=index],
                        "a quote in the middle of a word",
                        "the whole word in quotes, or none",
                    ));
                }
                let Some(close) = closing_quote(text, index) else {
                    return Err(Fault::new(
                        &text[index..=index],
                        "a quote that is never closed",
                        "another `\"` on this line",
                    ));
                };
                let after = text[close + 1..].chars().next();
                if after.is_some_and(|c| !c.is_ascii_whitespace() && c != '#') {
                    return Err(Fault::new(
                        &text[close..=close],
                        "a quote in the middle of a word",
                        "a blank behind the closing quote",
                    ));
                }
                word_end = close + 1;
                break;
            }
            _ => {}
        }
    }
    let (word, tail) = text.split_at(word_end);
    *unread = tail;
    let (key, value) = match equals {
        Some(at) => (Some(&word[..at]), &word[at + 1..]),
        None => (None, word),
    };
    Ok(Some(Token {
        text: word,
        key,
        value,
    }))
}

/// Returns the position of the quote that closes the quote at `open`.
fn closing_quote(text: &str, open: usize) -> Option<usize> {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(open + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(index),
            _ => {}
        }
    }
    None
}

/// Returns the text of a word: the word itself, or the text within its quotes.
pub(super) fn unquote(word: &str) -> Result<Cow<'_, str>, Fault<'_>> {
    let inner = word.strip_prefix('"').and_then(|w| w.strip_suffix('"'));
    let Some(inner) = inner else {
        return Ok(Cow::Borrowed(word));
    };
    if !inner.contains('\\') {
        return Ok(Cow::Borrowed(inner));
    }
    let mut out = String::with_capacity(inner.len());
    let mut unread = inner;
    while let Some(at) = unread.find('\\') {
        out.push_str(&unread[..at]);
        let escape = &unread[at..];
        let (c, length) = escaped_char(escape).ok_or_else(|| {
            let length = escape.chars().take(2).map(char::len_utf8).sum();
            Fault::new(
                &escape[..length],
                format!("unknown escape {}", quoted(&escape[..length])),
                "\\\", \\\\, \\n, \\r, \\t or \\u{…}",
            )
        })?;
        out.push(c);
        unread = &escape[length..];
    }
    out.push_str(unread);
    Ok(Cow::Owned(out))
}

/// Returns the character of the escape at the start of a text, and the escape's length.
fn escaped_char(text: &str) -> Option<(char, usize)> {
    match text.as_bytes().get(1)? {
        b'"' => Some(('"', 2)),
        b'\\' => Some(('\\', 2)),
        b'n' => Some(('\n', 2)),
        b'r' => Some(('\r', 2)),
        b't' => Some(('\t', 2)),
        b'u' => {
            let digits = text.strip_prefix("\\u{")?;
            let digits = &digits[..digits.find('}')?];
            let valid =
                (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let code = u32::from_str_radix(digits, 16).ok().filter(|_| valid)?;
            Some((char::from_u32(code)?, digits.len() + 4))
        }
        _ => None,
    }
}

/// Writes a text as one word, in quotes if necessary. `key` is true if the word is written
/// after a `=`; then it needs no quotes for another `=`.
pub(super) fn write_word(out: &mut String, text: &str, key: bool) {
    let plain = |c: char| {
        c.is_alphanumeric() || (c.is_ascii_graphic() && c != '"' && c != '#' && (key || c != '='))
    };
    if !text.is_empty() && text.chars().all(plain) && (key || !matches!(text, "schema" | "actions"))
    {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == ' ' || plain(c) || matches!(c, '#' | '=') => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(line: &str) -> Vec<(&str, Option<&str>, &str)> {
        let mut unread = line;
        let mut tokens = Vec::new();
        while let Some(token) = next_token(&mut unread).unwrap() {
            tokens.push((token.text, token.key, token.value));
        }
        tokens
    }

    #[test]
    fn lines_fall_into_words() {
        assert_eq!(
            tokens("  allow\ta=1  \"x y#=\" n=\"b=c\"# d"),
            [
                ("allow", None, "allow"),
                ("a=1", Some("a"), "1"),
                ("\"x y#=\"", None, "\"x y#=\""),
                ("n=\"b=c\"", Some("n"), "\"b=c\""),
            ]
        );
        assert_eq!(tokens("a#b"), [("a", None, "a")]);
        assert_eq!(tokens("# all"), []);
        assert_eq!(tokens("a=b=c"), [("a=b=c", Some("a"), "b=c")]);
    }

    #[test]
    fn any_text_is_one_word() {
        for text in [
            "",
            "a",
            "a b",
            "schema",
            "actions",
            "a=b",
            "é",
            "\"",
            "\\",
            "\\n",
            "#",
            "a\tb\r\n",
            "\u{0}\u{85}\u{feff}\u{2028}",
            "\u{a0}",
            "日本",
            "a\"b",
        ] {
            for key in [false, true] {
                let mut line = if key { "k=".to_owned() } else { String::new() };
                write_word(&mut line, text, key);
                assert!(!line.contains('\n'));
                let mut unread = line.as_str();
                let token = next_token(&mut unread).unwrap().unwrap();
                assert_eq!((unread, token.key.is_some()), ("", key), "{line}");
                assert_eq!(unquote(token.value).unwrap(), text);
            }
        }
    }

    #[test]
    fn bad_quotes_are_found() {
        for (line, part) in [("a\"b\"", "\""), ("\"ab", "\""), ("\"ab\"c", "\"")] {
            let mut unread = line;
            assert_eq!(next_token(&mut unread).unwrap_err().part(), part, "{line}");
        }
        for (word, part) in [
            ("\"a\\x\"", "\\x"),
            ("\"\\u{}\"", "\\u"),
            ("\"\\u{d800}\"", "\\u"),
            ("\"\\u{+41}\"", "\\u"),
            ("\"\\é\"", "\\é"),
        ] {
            assert_eq!(unquote(word).unwrap_err().part(), part, "{word}");
        }
    }
}
