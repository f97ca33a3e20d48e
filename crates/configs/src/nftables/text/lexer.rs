//! The words and symbols of a ruleset's text.

use std::net::Ipv6Addr;

/// A word or symbol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind,
    /// The text, without quotation marks.
    pub(super) text: &'t str,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Quoted,
    Symbol,
    Newline,
    /// The end of the file.
    End,
}

/// Symbols of two characters.
const LONG_SYMBOLS: [&str; 6] = ["==", "!=", "<=", ">=", "<<", ">>"];

/// The start of a match on bytes of a header: the base, then an offset and a length.
const RAW_BASES: [&str; 4] = ["@ll", "@nh", "@th", "@ih"];

/// Returns the tokens of a text. The last one is [`TokenKind::End`].
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        text,
        offset: 0,
        tokens: Vec::new(),
    };
    while lexer.offset < text.len() {
        lexer.read();
    }
    lexer.push(TokenKind::End, text.len(), text.len());
    lexer.tokens
}

struct Lexer<'t> {
    text: &'t str,
    offset: usize,
    tokens: Vec<Token<'t>>,
}

impl<'t> Lexer<'t> {
    fn push(&mut self, kind: TokenKind, start: usize, end: usize) {
        let text = &self.text[start..end];
        self.tokens.push(Token { kind, text });
    }

    /// Reads one token, or skips white space or a comment.
    fn read(&mut self) {
        let start = self.offset;
        let unread = &self.text[start..];
        let first = unread.chars().next().expect("a character");
        match first {
            '\n' => {
                self.offset += 1;
                self.push(TokenKind::Newline, start, start + 1);
            }
            _ if first.is_whitespace() => self.offset += first.len_utf8(),
            '#' => self.offset += unread.find('\n').unwrap_or(unread.len()),
            '\\' if is_continued(unread) => {
                self.offset += unread.find('\n').unwrap_or(unread.len() - 1) + 1;
            }
            '"' => self.read_quoted(start),
            _ if is_word_character(first) => self.read_word(start),
            _ => {
                let is_long = LONG_SYMBOLS.iter().any(|symbol| unread.starts_with(symbol));
                let length = if is_long { 2 } else { first.len_utf8() };
                self.offset += length;
                self.push(TokenKind::Symbol, start, start + length);
            }
        }
    }

    /// A string ends on its line; a quotation mark without an end is a symbol.
    fn read_quoted(&mut self, start: usize) {
        let content = &self.text[start + 1..];
        match content.find(['"', '\n']) {
            Some(length) if content[length..].starts_with('"') => {
                self.offset += length + 2;
                self.push(TokenKind::Quoted, start + 1, start + 1 + length);
            }
            _ => {
                self.offset += 1;
                self.push(TokenKind::Symbol, start, start + 1);
            }
        }
    }

    fn read_word(&mut self, start: usize) {
        let unread = &self.text[start..];
        let mut length = unread
            .find(|c: char| !is_word_character(c))
            .unwrap_or(unread.len());
        if RAW_BASES.contains(&&unread[..length]) {
            length += unread[length..]
                .find(|c: char| c != ',' && !c.is_ascii_digit())
                .unwrap_or(unread.len() - length);
        }
        self.offset = start + length;
        self.split(start, start + length);
    }

    /// Adds the tokens of characters without spaces, which colons may separate.
    fn split(&mut self, mut start: usize, end: usize) {
        while start < end {
            let word = &self.text[start..end];
            let length = match word.find(':') {
                Some(0) if !is_address(word) => {
                    self.push(TokenKind::Symbol, start, start + 1);
                    start += 1;
                    continue;
                }
                Some(_) if word.starts_with('[') => {
                    word.find(']').map_or(word.len(), |end| end + 1)
                }
                Some(length) if !is_address(word) => length,
                _ => word.len(),
            };
            self.push_word(start, start + length);
            start += length;
        }
    }

    fn push_word(&mut self, start: usize, end: usize) {
        let kind = match &self.text[start..end] {
            "." | "-" | "*" | "/" => TokenKind::Symbol,
            _ => TokenKind::Word,
        };
        self.push(kind, start, end);
    }
}

/// True if only white space stands between a backslash and the end of its line.
fn is_continued(text: &str) -> bool {
    let line = text[1..].split('\n').next().unwrap_or("");
    line.trim().is_empty()
}

fn is_word_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.:-/*$@[]%+~'".contains(c)
}

/// True if all colons of a word are of IPv6 or Ethernet addresses.
fn is_address(word: &str) -> bool {
    word.split('-').all(|end| {
        let address = end.split('/').next().unwrap_or(end);
        address.parse::<Ipv6Addr>().is_ok() || is_ethernet_address(address)
    })
}

fn is_ethernet_address(word: &str) -> bool {
    let is_octet = |octet: &str| octet.len() == 2 && octet.bytes().all(|b| b.is_ascii_hexdigit());
    word.split(':').count() == 6 && word.split(':').all(is_octet)
}
