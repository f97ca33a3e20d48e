//! JSON as in RFC 8259; several objects and lists may follow each other.

use std::borrow::Cow;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::ScalarKind;
use super::tree::Tree;

/// Parses the values of a text.
pub(super) fn parse<'t>(text: &'t str, tree: &mut Tree<'t>) -> Result<(), Fault<'t>> {
    let mut parser = Parser { text, offset: 0 };
    parser.skip_blanks();
    while let Some(byte) = parser.byte() {
        if byte != b'{' && byte != b'[' {
            return Err(parser.unexpected("`{` or `[`"));
        }
        parser.value(tree)?;
        parser.skip_blanks();
    }
    Ok(())
}

struct Parser<'t> {
    text: &'t str,
    offset: usize,
}

impl<'t> Parser<'t> {
    fn tail(&self) -> &'t str {
        &self.text[self.offset..]
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.offset += 1;
        }
    }

    /// Skips blanks and then a byte, if it is there.
    fn skip(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_there = self.byte() == Some(byte);
        self.offset += usize::from(is_there);
        is_there
    }

    fn unexpected(&self, expected: &str) -> Fault<'t> {
        let tail = self.tail();
        match tail.chars().next() {
            None => Fault::new(tail, "the text ends here", expected),
            Some(c) => {
                let part = &tail[..c.len_utf8()];
                Fault::new(part, quoted(part), expected)
            }
        }
    }

    /// Parses a value. The tree limits the depth of the recursion.
    fn value(&mut self, tree: &mut Tree<'t>) -> Result<(), Fault<'t>> {
        self.skip_blanks();
        match self.byte() {
            Some(b'{') => self.object(tree),
            Some(b'[') => self.array(tree),
            Some(b'"') => self.string(tree),
            Some(b'-' | b'0'..=b'9') => self.number(tree),
            _ => self.literal(tree),
        }
    }

    fn object(&mut self, tree: &mut Tree<'t>) -> Result<(), Fault<'t>> {
        tree.open(self.offset, true)?;
        self.offset += 1;
        let mut is_first = true;
        while !self.skip(b'}') {
            if !is_first && !self.skip(b',') {
                return Err(self.unexpected("`,` or `}`"));
            }
            is_first = false;
            self.skip_blanks();
            if self.byte() != Some(b'"') {
                return Err(self.unexpected("a key in quotes"));
            }
            self.string(tree)?;
            if !self.skip(b':') {
                return Err(self.unexpected("`:`"));
            }
            self.value(tree)?;
        }
        tree.close(Some(self.offset)).map(|_| ())
    }

    fn array(&mut self, tree: &mut Tree<'t>) -> Result<(), Fault<'t>> {
        tree.open(self.offset, false)?;
        self.offset += 1;
        let mut is_first = true;
        while !self.skip(b']') {
            if !is_first && !self.skip(b',') {
                return Err(self.unexpected("`,` or `]`"));
            }
            is_first = false;
            self.value(tree)?;
        }
        tree.close(Some(self.offset)).map(|_| ())
    }

    fn literal(&mut self, tree: &mut Tree<'t>) -> Result<(), Fault<'t>> {
        let literals = [
            ("null", ScalarKind::Null),
            ("true", ScalarKind::Boolean),
            ("false", ScalarKind::Boolean),
        ];
        let mut literals = literals.into_iter();
        let literal = literals.find(|(word, _)| self.tail().starts_with(word));
        let (word, kind) = literal.ok_or_else(|| self.unexpected("a value of JSON"))?;
        self.scalar(tree, kind, Cow::Borrowed(word), word.len())
    }

    /// Adds a scalar of `length` bytes at the current offset.
    fn scalar(
        &mut self,
        tree: &mut Tree<'t>,
        kind: ScalarKind,
        text: Cow<'t, str>,
        length: usize,
    ) -> Result<(), Fault<'t>> {
        let start = self.offset;
        self.offset += length;
        tree.scalar(kind, text, start, self.offset).map(|_| ())
    }

    fn number(&mut self, tree: &mut Tree<'t>) -> Result<(), Fault<'t>> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let tail = self.tail();
        let text = &tail[..tail.find(|c| !is_part(c)).unwrap_or(tail.len())];
        if !is_number(text) {
            return Err(Fault::new(text, quoted(text), "a number of JSON"));
        }
        self.scalar(tree, ScalarKind::Number, Cow::Borrowed(text), text.len())
    }

    fn string(&mut self, tree: &mut Tree<'t>) -> Result<(), Fault<'t>> {
        let body = &self.tail()[1..];
        let special = |c: char| c == '"' || c == '\\' || c < ' ';
        let mut text = String::new();
        let mut length = 0;
        loop {
            let tail = &body[length..];
            let plain = tail.find(special).unwrap_or(tail.len());
            let (plain, special) = tail.split_at(plain);
            length += plain.len();
            let is_whole = special.starts_with('"') && length == plain.len();
            if is_whole {
                return self.scalar(tree, ScalarKind::String, Cow::Borrowed(plain), length + 2);
            }
            text.push_str(plain);
            if special.starts_with('"') {
                return self.scalar(tree, ScalarKind::String, Cow::Owned(text), length + 2);
            }
            let (c, escape_length) = escape(special)?;
            text.push(c);
            length += escape_length;
        }
    }
}

/// Returns the character of an escape sequence, and the sequence's length.
fn escape(text: &str) -> Result<(char, usize), Fault<'_>> {
    let start = |length: usize| text.get(..length).unwrap_or(text);
    let bad = |length: usize| {
        let part = start(length);
        Fault::new(part, quoted(part), "an escape sequence of JSON")
    };
    let Some(escaped) = text.strip_prefix('\\') else {
        return Err(match text.chars().next() {
            None => Fault::new(text, "the text ends here", "the end of the string"),
            Some(_) => Fault::new(&text[..0], "a control character in a string", "an escape"),
        });
    };
    let simple = match escaped.bytes().next() {
        Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let high = unit(text).ok_or_else(|| bad(6))?;
            if let Some(c) = char::from_u32(high) {
                return Ok((c, 6));
            }
            let low = text.get(6..).and_then(unit).ok_or_else(|| bad(6))?;
            let units = [high, low].map(|unit| u16::try_from(unit).unwrap_or(0));
            let mut decoded = char::decode_utf16(units);
            return match decoded.next() {
                Some(Ok(c)) => Ok((c, 12)),
                _ => Err(bad(6)),
            };
        }
        _ => return Err(bad(2)),
    };
    Ok((simple, 2))
}

/// Returns the number of an escape such as `\u00e9` at the start of a text.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hexadecimal.then(|| u32::from_str_radix(digits, 16).ok())?
}

/// True if a text is a number of JSON.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exponent = |text: &str| is_digits(text.strip_prefix(['+', '-']).unwrap_or(text));
    is_digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(is_digits)
        && exponent.is_none_or(is_exponent)
}
