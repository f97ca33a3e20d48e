//! JSON values that have their place in the text.

use std::borrow::Cow;

use classyard_text::line::quoted;

use crate::nftables::tree::{Parsed, fault};

/// The maximum number of arrays and objects inside each other.
const MAX_DEPTH: usize = 64;

/// A JSON value with its text.
#[derive(Clone, Debug)]
pub(super) struct Json<'t> {
    pub(super) text: &'t str,
    pub(super) kind: JsonKind<'t>,
}

/// The kinds of JSON values.
#[derive(Clone, Debug)]
pub(super) enum JsonKind<'t> {
    Null,
    Boolean(bool),
    /// A number, as it is written.
    Number(&'t str),
    String(Cow<'t, str>),
    Array(Vec<Json<'t>>),
    Object(Vec<(Cow<'t, str>, Json<'t>)>),
}

impl<'t> Json<'t> {
    /// Returns the value of a key. `None` if it is absent or null.
    pub(super) fn get(&self, key: &str) -> Option<&Json<'t>> {
        let JsonKind::Object(entries) = &self.kind else {
            return None;
        };
        let (_, value) = entries.iter().find(|(name, _)| name == key)?;
        (!matches!(value.kind, JsonKind::Null)).then_some(value)
    }

    /// Returns the value of a key that must be there.
    pub(super) fn need(&self, key: &str) -> Parsed<'t, &Json<'t>> {
        self.get(key)
            .ok_or_else(|| fault(self.text, format!("no key `{key}`"), "an object with it"))
    }

    /// Returns the key and value of an object with one key.
    pub(super) fn single(&self) -> Option<(&str, &Json<'t>)> {
        match &self.kind {
            JsonKind::Object(entries) if entries.len() == 1 => Some((&entries[0].0, &entries[0].1)),
            _ => None,
        }
    }

    /// Returns the elements of an array; any other value is its own only element.
    pub(super) fn elements(&self) -> &[Json<'t>] {
        match &self.kind {
            JsonKind::Array(elements) => elements,
            JsonKind::Null => &[],
            _ => std::slice::from_ref(self),
        }
    }

    /// Returns a string.
    pub(super) fn as_str(&self) -> Option<&str> {
        match &self.kind {
            JsonKind::String(string) => Some(string),
            _ => None,
        }
    }

    /// Returns a string, number or boolean as a word.
    pub(super) fn as_word(&self) -> Option<String> {
        Some(match &self.kind {
            JsonKind::String(string) => string.to_string(),
            JsonKind::Number(number) => (*number).to_owned(),
            JsonKind::Boolean(true) => "exists".to_owned(),
            JsonKind::Boolean(false) => "missing".to_owned(),
            _ => return None,
        })
    }

    /// Returns the word of a key that must be there.
    pub(super) fn need_word(&self, key: &str) -> Parsed<'t, String> {
        let value = self.need(key)?;
        value
            .as_word()
            .ok_or_else(|| value.unexpected("a string or a number"))
    }

    /// Returns the word of a key, if it is there.
    pub(super) fn word(&self, key: &str) -> Option<String> {
        self.get(key).and_then(Json::as_word)
    }

    pub(super) fn unexpected(&self, expected: &str) -> classyard_text::Fault<'t> {
        fault(self.text, quoted(self.text), expected)
    }
}

/// Reads a JSON text.
pub(super) fn parse(text: &str) -> Parsed<'_, Json<'_>> {
    let mut reader = Reader {
        text,
        offset: 0,
        depth: 0,
    };
    let value = reader.value()?;
    reader.skip_space();
    match reader.offset == text.len() {
        true => Ok(value),
        false => Err(reader.unexpected("the end of the file")),
    }
}

struct Reader<'t> {
    text: &'t str,
    offset: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn unread(&self) -> &'t str {
        &self.text[self.offset..]
    }

    fn skip_space(&mut self) {
        let unread = self.unread();
        self.offset += unread.len() - unread.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn accept(&mut self, symbol: char) -> bool {
        self.skip_space();
        let is_next = self.unread().starts_with(symbol);
        self.offset += usize::from(is_next) * symbol.len_utf8();
        is_next
    }

    fn unexpected(&self, expected: &str) -> classyard_text::Fault<'t> {
        let unread = self.unread();
        let length = unread.chars().next().map_or(0, char::len_utf8);
        let problem = match length {
            0 => "the file ends here".to_owned(),
            _ => quoted(&unread[..length]),
        };
        fault(&unread[..length], problem, expected)
    }

    fn value(&mut self) -> Parsed<'t, Json<'t>> {
        self.skip_space();
        let start = self.offset;
        let kind = match self.unread().bytes().next() {
            Some(b'{') => self.nested(Reader::object)?,
            Some(b'[') => self.nested(Reader::array)?,
            Some(b'"') => JsonKind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.keyword()?,
        };
        Ok(Json {
            text: &self.text[start..self.offset],
            kind,
        })
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Reader<'t>) -> Parsed<'t, JsonKind<'t>>,
    ) -> Parsed<'t, JsonKind<'t>> {
        if self.depth == MAX_DEPTH {
            let problem = format!("more than {MAX_DEPTH} values inside each other");
            return Err(fault(&self.unread()[..1], problem, "a simpler file"));
        }
        self.depth += 1;
        self.offset += 1;
        let kind = read(self)?;
        self.depth -= 1;
        Ok(kind)
    }

    fn object(&mut self) -> Parsed<'t, JsonKind<'t>> {
        let mut entries = Vec::new();
        if self.accept('}') {
            return Ok(JsonKind::Object(entries));
        }
        loop {
            self.skip_space();
            let key = self.string()?;
            if !self.accept(':') {
                return Err(self.unexpected("`:`"));
            }
            entries.push((key, self.value()?));
            if self.accept('}') {
                return Ok(JsonKind::Object(entries));
            }
            if !self.accept(',') {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }

    fn array(&mut self) -> Parsed<'t, JsonKind<'t>> {
        let mut elements = Vec::new();
        if self.accept(']') {
            return Ok(JsonKind::Array(elements));
        }
        loop {
            elements.push(self.value()?);
            if self.accept(']') {
                return Ok(JsonKind::Array(elements));
            }
            if !self.accept(',') {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
    }

    fn string(&mut self) -> Parsed<'t, Cow<'t, str>> {
        let unread = self.unread();
        if !unread.starts_with('"') {
            return Err(self.unexpected("a string"));
        }
        let mut is_escaped = false;
        let end = unread.bytes().enumerate().skip(1).find(|&(_, byte)| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        });
        let Some((end, _)) = end else {
            return Err(fault(&unread[..1], "a string without its end", "`\"`"));
        };
        self.offset += end + 1;
        let content = &unread[1..end];
        if !content.contains('\\') {
            return Ok(Cow::Borrowed(content));
        }
        let string = serde_json::from_str::<String>(&unread[..=end]);
        string
            .map(Cow::Owned)
            .map_err(|_| fault(content, "a string with a bad escape", "a JSON string"))
    }

    fn number(&mut self) -> JsonKind<'t> {
        let unread = self.unread();
        let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let length = unread.find(|c| !is_part(c)).unwrap_or(unread.len());
        self.offset += length;
        JsonKind::Number(&unread[..length])
    }

    fn keyword(&mut self) -> Parsed<'t, JsonKind<'t>> {
        let keywords = [
            ("null", JsonKind::Null),
            ("true", JsonKind::Boolean(true)),
            ("false", JsonKind::Boolean(false)),
        ];
        for (keyword, kind) in keywords {
            if self.unread().starts_with(keyword) {
                self.offset += keyword.len();
                return Ok(kind);
            }
        }
        Err(self.unexpected("a JSON value"))
    }
}
