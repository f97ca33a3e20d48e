//! Tables of a configuration file: their keys, and values of several types.

use std::ops::Range;

use classyard_text::line::quoted;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::faults::{Faults, Mistake};

/// The similarity (Jaro and Winkler) above which a key is suggested for a mistyped one.
const MIN_SIMILARITY: f64 = 0.8;

/// A value and its range of bytes in the file.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// A table of the file.
pub(super) struct Section<'a> {
    table: &'a DeTable<'a>,
    /// The range of bytes of the heading.
    pub(super) place: Range<usize>,
}

impl<'a> Section<'a> {
    /// Returns a section. Reports the keys of the table that `keys` lacks. `name` is for
    /// messages, such as `[switch]`.
    pub(super) fn new(
        table: &'a DeTable<'a>,
        place: Range<usize>,
        name: &str,
        keys: &[&str],
        faults: &mut Faults<'_>,
    ) -> Section<'a> {
        check_keys(table, &format!(" in `{name}`"), keys, faults);
        Section { table, place }
    }

    /// True if the table has a key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Returns the range of bytes of a key's value.
    pub(super) fn span(&self, key: &str) -> Option<Range<usize>> {
        self.table.get(key).map(Spanned::span)
    }

    /// Returns the number of items of a list, good or bad.
    pub(super) fn list_length(&self, key: &str) -> usize {
        let list = self
            .table
            .get(key)
            .and_then(|value| value.get_ref().as_array());
        list.map_or(0, |list| list.len())
    }

    /// Reads the value of a key with `read`. Returns `None` if the key is absent or the
    /// value is wrong; a wrong value is reported.
    pub(super) fn read<T>(
        &self,
        key: &str,
        faults: &mut Faults<'_>,
        read: impl FnOnce(&Spanned<DeValue<'_>>) -> Result<T, Mistake>,
    ) -> Option<At<T>> {
        let value = self.table.get(key)?;
        match read(value) {
            Ok(read_value) => Some(At {
                value: read_value,
                span: value.span(),
            }),
            Err(mistake) => {
                faults.push(value.span(), mistake);
                None
            }
        }
    }

    /// Reads the value of a key as [`read`](Self::read) does. An absent key is a mistake,
    /// and `example` shows the expected line.
    pub(super) fn required<T>(
        &self,
        key: &str,
        example: &str,
        faults: &mut Faults<'_>,
        read: impl FnOnce(&Spanned<DeValue<'_>>) -> Result<T, Mistake>,
    ) -> Option<At<T>> {
        if !self.has(key) {
            let message = format!("`{key}` is missing");
            faults.push(self.place.clone(), Mistake::new(message, quoted(example)));
        }
        self.read(key, faults, read)
    }

    /// Reads the items of a list with `read`. Reports an item that is wrong and continues
    /// with the next.
    pub(super) fn list<T>(
        &self,
        key: &str,
        expected: &str,
        faults: &mut Faults<'_>,
        read: impl Fn(&Spanned<DeValue<'_>>) -> Result<T, Mistake>,
    ) -> Option<At<Vec<At<T>>>> {
        let value = self.table.get(key)?;
        let Some(array) = value.get_ref().as_array() else {
            faults.push(value.span(), Mistake::new(found(value), expected));
            return None;
        };
        let mut items = Vec::new();
        for item in array {
            match read(item) {
                Ok(read_value) => items.push(At {
                    value: read_value,
                    span: item.span(),
                }),
                Err(mistake) => faults.push(item.span(), mistake),
            }
        }
        Some(At {
            value: items,
            span: value.span(),
        })
    }
}

/// Reports the keys of a table that `keys` lacks. `owner` ends the message, such as
/// `` in `[switch]` ``.
pub(super) fn check_keys(table: &DeTable<'_>, owner: &str, keys: &[&str], faults: &mut Faults<'_>) {
    for key in table.keys() {
        let word: &str = key.get_ref();
        if !keys.contains(&word) {
            let message = format!("unknown key {}{owner}", quoted(word));
            faults.push(key.span(), Mistake::new(message, known_key(word, keys)));
        }
    }
}

/// Returns the expected key for an unknown one: the most similar key, or all.
fn known_key(word: &str, keys: &[&str]) -> String {
    let scored = keys
        .iter()
        .map(|key| (strsim::jaro_winkler(word, key), key));
    match scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((score, key)) if score > MIN_SIMILARITY => format!("`{key}`, the nearest known key"),
        _ if keys.len() == 1 => format!("`{}`", keys[0]),
        _ => format!("one of `{}`", keys.join("`, `")),
    }
}

/// Returns a value as messages show it.
pub(super) fn found(value: &Spanned<DeValue<'_>>) -> String {
    match value.get_ref() {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => quoted(&number.to_string()),
        DeValue::Float(number) => quoted(&number.to_string()),
        DeValue::Boolean(truth) => quoted(&truth.to_string()),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Reads a text in quotes. `expected` describes it.
pub(super) fn text(value: &Spanned<DeValue<'_>>, expected: &str) -> Result<String, Mistake> {
    let text = value.get_ref().as_str().map(str::to_owned);
    text.ok_or_else(|| Mistake::new(found(value), format!("{expected} in quotes")))
}

/// Reads a whole number. Returns `None` if the value is not a whole number of 64 bits.
pub(super) fn whole(value: &Spanned<DeValue<'_>>) -> Option<u64> {
    let number = value.get_ref().as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// Reads a whole number from `min` to `max`. `noun` describes it.
pub(super) fn number<T: TryFrom<u64>>(
    value: &Spanned<DeValue<'_>>,
    noun: &str,
    min: u64,
    max: u64,
) -> Result<T, Mistake> {
    let number = whole(value).filter(|number| (min..=max).contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| Mistake::new(found(value), format!("{noun}, {min} to {max}")))
}
