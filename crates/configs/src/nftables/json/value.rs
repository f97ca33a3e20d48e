//! Values of the JSON of a ruleset.

use classyard_text::line::quoted;

use crate::document::json_values;
pub(super) use crate::document::{Json, JsonKind};
use crate::nftables::tree::{Parsed, fault};

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
            JsonKind::Number(number) => number.to_string(),
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

/// Reads a JSON text of one value.
pub(super) fn parse(text: &str) -> Parsed<'_, Json<'_>> {
    let mut values = json_values(text)?.into_iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value),
        (_, Some(second)) => Err(fault(second.text, "a second value", "the end of the file")),
        (None, None) => Err(fault(text, "no value", "an object")),
    }
}
