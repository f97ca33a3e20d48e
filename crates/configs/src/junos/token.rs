//! Words, punctuation and comments of both notations.

use classyard_text::Fault;

/// A notation of configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    /// Blocks in braces; a statement ends with `;`.
    Braces,
    /// One command a line: `set`, `deactivate`.
    Commands,
}

/// A kind of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word, or the text between quotation marks.
    Word,
    /// `{`
    Open,
    /// `}`
    Close,
    /// `;`
    End,
    /// `[`
    ListOpen,
    /// `]`
    ListClose,
    /// The end of a line; only in [`Notation::Commands`].
    Line,
    /// The text between `/*` and `*/`.
    Comment,
}

/// A part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
}

/// Reads the tokens of a text.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'t> {
    unread: &'t str,
    notation: Notation,
}

impl<'t> Tokens<'t> {
    /// Returns the tokens of a text.
    pub(super) fn new(text: &'t str, notation: Notation) -> Tokens<'t> {
        Tokens {
            unread: text,
            notation,
        }
    }

    /// Reads a token. `None` at the end of the text.
    pub(super) fn read(&mut self) -> Result<Option<Token<'t>>, Fault<'t>> {
        loop {
            self.skip_spaces();
            match self.unread.bytes().next() {
                None => return Ok(None),
                Some(b'#') => {
                    let end = self.unread.find('\n').unwrap_or(self.unread.len());
                    self.take(end);
                }
                Some(b'\n') => return Ok(Some(self.token(Kind::Line, 1))),
                Some(b'"') => return self.quoted().map(Some),
                Some(b'/') if self.unread.starts_with("/*") => return self.comment().map(Some),
                Some(b'[') => return Ok(Some(self.token(Kind::ListOpen, 1))),
                Some(b']') => return Ok(Some(self.token(Kind::ListClose, 1))),
                Some(first) => return Ok(Some(self.punctuation_or_word(first))),
            }
        }
    }

    fn skip_spaces(&mut self) {
        let braces = self.notation == Notation::Braces;
        let is_space = |c: char| c.is_whitespace() && (braces || c != '\n');
        self.unread = self.unread.trim_start_matches(is_space);
    }

    fn punctuation_or_word(&mut self, first: u8) -> Token<'t> {
        if self.notation == Notation::Braces {
            let kind = match first {
                b'{' => Some(Kind::Open),
                b'}' => Some(Kind::Close),
                b';' => Some(Kind::End),
                _ => None,
            };
            if let Some(kind) = kind {
                return self.token(kind, 1);
            }
        }
        let braces = self.notation == Notation::Braces;
        // The brackets of a pattern such as `<[gx]e-*>` do not start a list.
        let mut in_pattern = false;
        let ends = |c: char| {
            in_pattern = (in_pattern || c == '<') && c != '>';
            let is_punctuation = matches!(c, ';' | '{' | '}') || (!in_pattern && c == ']');
            c.is_whitespace() || (braces && is_punctuation)
        };
        let end = self.unread.find(ends).unwrap_or(self.unread.len());
        // A word is never empty, so that the text ends.
        let first_length = self.unread.chars().next().map_or(0, char::len_utf8);
        self.token(Kind::Word, end.max(first_length))
    }

    fn quoted(&mut self) -> Result<Token<'t>, Fault<'t>> {
        let opening = &self.unread[..1];
        let mut is_escaped = false;
        let ends = |c: char| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        };
        let Some(length) = self.unread[1..].find(ends) else {
            return Err(Fault::new(
                opening,
                "a text in quotation marks that does not end",
                "`\"` at its end",
            ));
        };
        let text = &self.unread[1..=length];
        self.take(length + 2);
        Ok(Token {
            kind: Kind::Word,
            text,
        })
    }

    fn comment(&mut self) -> Result<Token<'t>, Fault<'t>> {
        let Some(length) = self.unread[2..].find("*/") else {
            return Err(Fault::new(
                &self.unread[..2],
                "a comment that does not end",
                "`*/` at its end",
            ));
        };
        let text = &self.unread[2..2 + length];
        self.take(length + 4);
        Ok(Token {
            kind: Kind::Comment,
            text,
        })
    }

    fn token(&mut self, kind: Kind, length: usize) -> Token<'t> {
        let text = self.take(length);
        Token { kind, text }
    }

    fn take(&mut self, length: usize) -> &'t str {
        let (text, unread) = self.unread.split_at(length);
        self.unread = unread;
        text
    }
}
