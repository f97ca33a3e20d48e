//! Keys: headers packed into machine words.

use std::ops::Range;
use std::sync::Arc;

use crate::model::columns::Columns;
use crate::model::error::HeaderError;
use crate::model::schema::{FieldId, Schema};

/// Packed headers of one schema, stored one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyVec {
    schema: Arc<Schema>,
    words: Vec<u64>,
}

impl KeyVec {
    /// Returns an empty list of keys.
    #[must_use]
    pub fn new(schema: &Arc<Schema>) -> KeyVec {
        KeyVec {
            schema: Arc::clone(schema),
            words: Vec::new(),
        }
    }

    /// Returns a list of keys that consists of these packed words. The words
    /// are not copied.
    ///
    /// Bits outside of the fields must be zero. The function does not check or
    /// clear these bits. No rule uses them, but two keys that differ in them
    /// are not equal.
    ///
    /// # Errors
    /// [`HeaderError::PartialKey`] if the number of words is not a multiple of
    /// [`Schema::key_words`].
    pub fn from_words(schema: &Arc<Schema>, words: Vec<u64>) -> Result<KeyVec, HeaderError> {
        if !words.len().is_multiple_of(schema.key_words()) {
            return Err(HeaderError::PartialKey {
                words: words.len(),
                key_words: schema.key_words(),
            });
        }
        Ok(KeyVec {
            schema: Arc::clone(schema),
            words,
        })
    }

    /// Packs one header: one value for each field, in order.
    ///
    /// # Errors
    /// [`HeaderError`] if the number of values differs from the number of
    /// fields, or a value does not fit its field; nothing is added then.
    pub fn push(&mut self, values: &[u128]) -> Result<(), HeaderError> {
        let schema = &self.schema;
        if values.len() != schema.fields().len() {
            return Err(HeaderError::WrongFieldCount {
                found: values.len(),
                expected: schema.fields().len(),
            });
        }
        for (field, &value) in schema.fields().iter().zip(values) {
            field.check_value(value)?;
        }
        let start = self.words.len();
        self.words.resize(start + schema.key_words(), 0);
        for (id, &value) in schema.field_ids().zip(values) {
            schema.placement(id).set(&mut self.words[start..], value);
        }
        Ok(())
    }

    /// Packs headers that are stored by column, in order: all rows of the columns.
    ///
    /// ```
    /// use classyard::columns::{Column, Columns};
    /// use classyard::{KeyVec, Schema};
    ///
    /// let schema = Schema::ipv4_5tuple();
    /// let columns = [
    ///     Column::U32(&[0x0a00_0001, 0x0a00_0002]),
    ///     Column::U32(&[0xc0a8_0001, 0xc0a8_0001]),
    ///     Column::U16(&[1234, 1235]),
    ///     Column::U16(&[80, 443]),
    ///     Column::U8(&[6, 6]),
    /// ];
    /// let mut keys = KeyVec::new(&schema);
    /// keys.extend_columns(&Columns::new(&schema, &columns)?);
    /// assert_eq!(keys.header(1), [0x0a00_0002, 0xc0a8_0001, 1235, 443, 6]);
    /// # Ok::<(), classyard::error::ColumnError>(())
    /// ```
    ///
    /// # Panics
    /// If the columns fit another schema.
    pub fn extend_columns(&mut self, columns: &Columns<'_>) {
        assert_eq!(columns.schema(), &self.schema, "columns of another schema");
        let start = self.words.len();
        let added = columns.rows() * self.schema.key_words();
        self.words.resize(start + added, 0);
        columns.pack(&mut self.words[start..]);
    }

    /// Adds a packed key.
    ///
    /// # Panics
    /// If the key's length is not [`Schema::key_words`].
    pub fn push_key(&mut self, key: &[u64]) {
        assert_eq!(
            key.len(),
            self.schema.key_words(),
            "a key of another schema"
        );
        self.words.extend_from_slice(key);
    }

    /// Returns the schema for which the keys are packed.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len() / self.schema.key_words()
    }

    /// True if the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the words of the key at a position.
    ///
    /// # Panics
    /// If the position is out of range.
    #[must_use]
    pub fn key(&self, index: usize) -> &[u64] {
        let width = self.schema.key_words();
        &self.words[index * width..(index + 1) * width]
    }

    /// Returns the header at a position: one value for each field, in order.
    ///
    /// # Panics
    /// If the position is out of range.
    #[must_use]
    pub fn header(&self, index: usize) -> Vec<u128> {
        unpack(&self.schema, self.key(index))
    }

    /// Returns one field of the key at a position.
    ///
    /// # Panics
    /// If the position is out of range, or the field comes from a schema with
    /// more fields.
    #[must_use]
    pub fn get(&self, index: usize, field: FieldId) -> u128 {
        self.schema.get_field(self.key(index), field)
    }

    /// Changes one field of the key at a position, and nothing else. Meant for
    /// pipelines that change fields between two flow tables.
    ///
    /// ```
    /// use classyard::{KeyVec, Schema};
    ///
    /// let schema = Schema::ipv4_5tuple();
    /// let mut keys = KeyVec::new(&schema);
    /// keys.push(&[0x0a00_0001, 0x0a00_0002, 1234, 80, 6])?;
    /// let source = schema.field_named("src").unwrap();
    /// keys.set(0, source, 0xc0a8_0001)?;
    /// assert_eq!(keys.get(0, source), 0xc0a8_0001);
    /// assert_eq!(keys.header(0), [0xc0a8_0001, 0x0a00_0002, 1234, 80, 6]);
    /// # Ok::<(), classyard::error::HeaderError>(())
    /// ```
    ///
    /// # Errors
    /// [`HeaderError::ValueTooLarge`] if the value does not fit the field; the
    /// key is not changed then.
    ///
    /// # Panics
    /// If the position is out of range, or the field comes from a schema with
    /// more fields.
    pub fn set(&mut self, index: usize, field: FieldId, value: u128) -> Result<(), HeaderError> {
        let width = self.schema.key_words();
        let key = &mut self.words[index * width..(index + 1) * width];
        self.schema.set_field(key, field, value)
    }

    /// Returns all keys as one batch.
    #[must_use]
    pub fn as_slice(&self) -> KeySlice<'_> {
        KeySlice {
            words: &self.words,
            width: self.schema.key_words(),
        }
    }

    /// Returns batches of at most `size` keys, in order.
    ///
    /// # Panics
    /// If `size` is 0.
    pub fn batches(&self, size: usize) -> impl Iterator<Item = KeySlice<'_>> {
        let width = self.schema.key_words();
        self.words
            .chunks(size * width)
            .map(move |words| KeySlice { words, width })
    }

    /// Removes all keys and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.words.clear();
    }
}

/// Unpacks a key: one value for each field, in order.
#[must_use]
pub fn unpack(schema: &Schema, key: &[u64]) -> Vec<u128> {
    schema
        .field_ids()
        .map(|id| schema.placement(id).get(key))
        .collect()
}

/// A batch of keys: borrowed words, and the number of words in a key.
#[derive(Clone, Copy, Debug)]
pub struct KeySlice<'a> {
    words: &'a [u64],
    width: usize,
}

impl<'a> KeySlice<'a> {
    /// Returns a batch over packed words; `width` is [`Schema::key_words`].
    ///
    /// # Panics
    /// If `width` is 0 or the words are not a whole number of keys.
    #[must_use]
    pub fn new(words: &'a [u64], width: usize) -> KeySlice<'a> {
        assert!(
            width > 0 && words.len().is_multiple_of(width),
            "part of a key"
        );
        KeySlice { words, width }
    }

    /// Returns the words of all keys, in order.
    #[must_use]
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len() / self.width
    }

    /// True if the batch is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the number of words of one key.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the keys in a range of positions.
    ///
    /// # Panics
    /// If the range exceeds the batch.
    #[must_use]
    pub fn range(&self, keys: Range<usize>) -> KeySlice<'a> {
        KeySlice {
            words: &self.words[keys.start * self.width..keys.end * self.width],
            width: self.width,
        }
    }

    /// Returns an iterator over the keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u64]> + use<'a> {
        self.words.chunks_exact(self.width)
    }

    /// Returns the keys as arrays of `W` words.
    ///
    /// # Panics
    /// If `W` is not the batch's width: the keys belong to another schema.
    #[inline]
    #[must_use]
    pub fn rows<const W: usize>(&self) -> &'a [[u64; W]] {
        assert_eq!(self.width, W, "keys of another schema");
        self.words.as_chunks().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::seed::splitmix;

    /// The schemas have fields that share a word, and a field of two words.
    #[test]
    fn a_field_is_changed_and_no_other() {
        for schema in [
            Schema::ipv4_5tuple(),
            Schema::ipv6_5tuple(),
            Schema::openflow15(),
        ] {
            let mut state = 3;
            let mut value = |field: &crate::model::schema::Field| {
                let high = u128::from(splitmix(&mut state)) << 64;
                (high | u128::from(splitmix(&mut state))) & field.max_value()
            };
            let mut keys = KeyVec::new(&schema);
            let mut headers: Vec<Vec<u128>> = Vec::new();
            for _ in 0..3 {
                headers.push(schema.fields().iter().map(&mut value).collect());
                keys.push(headers.last().unwrap()).unwrap();
            }
            for round in 0..20 {
                for id in schema.field_ids() {
                    let field = schema.field(id);
                    let new = [value(field), 0, field.max_value()][round % 3];
                    headers[1][id.index()] = new;
                    keys.set(1, id, new).unwrap();
                    assert_eq!(keys.get(1, id), new);
                    if field.width() < 128 {
                        let error = keys.set(1, id, field.max_value() + 1).unwrap_err();
                        assert!(matches!(error, HeaderError::ValueTooLarge { .. }));
                        assert!(error.to_string().starts_with(field.name()), "{error}");
                    }
                    for (index, header) in headers.iter().enumerate() {
                        assert_eq!(&keys.header(index), header);
                    }
                }
            }
            // The keys are bit for bit the same as newly packed headers.
            let mut fresh = KeyVec::new(&schema);
            for header in &headers {
                fresh.push(header).unwrap();
            }
            assert_eq!(keys, fresh);
        }
    }

    #[test]
    #[should_panic = "a key of another schema"]
    fn a_key_of_another_width_is_no_key() {
        let schema = Schema::ipv4_5tuple();
        let id = schema.field_ids().next().unwrap();
        let _ = schema.set_field(&mut [0; 3], id, 1);
    }

    #[test]
    fn a_range_of_a_batch_holds_those_keys() {
        let words: Vec<u64> = (0..12).collect();
        let batch = KeySlice::new(&words, 3);
        assert!(batch.range(2..2).is_empty());
        let middle: Vec<_> = batch.range(1..3).iter().collect();
        assert_eq!(middle, [&[3, 4, 5], &[6, 7, 8]]);
        assert_eq!(batch.range(0..4).len(), batch.len());
        assert_eq!(batch.range(1..4).range(2..3).rows::<3>(), [[9, 10, 11]]);
    }
}
