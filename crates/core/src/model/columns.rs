//! Columns: the values of each field of many headers, one array for each field.
//!
//! Flow logs, data frames and Arrow arrays store headers by column. Engines look up keys,
//! whose fields share words. [`KeyVec::extend_columns`](crate::KeyVec::extend_columns)
//! and `classify_columns` of a [`Classifier`](crate::Classifier) pack columns
//! into keys, without a copy of the columns.
//!
//! # Cost
//! Each column is checked once, in one pass, unless every number of its type fits the
//! field. Packing takes one pass for each column and each word of a key, over 256 rows at
//! a time, so keys stay in the first-level cache until they are looked up.

use std::ops::Range;
use std::sync::Arc;

use crate::model::error::ColumnError;
use crate::model::schema::{Field, FieldId, Part, Schema};

/// Rows that are packed at a time: 2 KiB for each word of a key.
const PACKED_ROWS: usize = 256;

/// The values of one field, borrowed from the caller: one for each header.
///
/// The type of the numbers may be wider or narrower than the field. Each number must fit
/// the field.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Column<'a> {
    /// Numbers of 8 bits.
    U8(&'a [u8]),
    /// Numbers of 16 bits.
    U16(&'a [u16]),
    /// Numbers of 32 bits, such as IPv4 addresses as numbers: 10.0.0.1 is 0x0a000001.
    U32(&'a [u32]),
    /// Numbers of 64 bits.
    U64(&'a [u64]),
    /// Numbers of 128 bits, such as IPv6 addresses as numbers.
    U128(&'a [u128]),
    /// Numbers of `size` bytes each, most significant byte first, such as addresses in
    /// the order of packets. `size` is 1 to 16.
    BigEndian {
        /// The bytes of all numbers, one number after the other.
        bytes: &'a [u8],
        /// The number of bytes of one number.
        size: usize,
    },
    /// One number for all rows, if the caller has no column for the field.
    Constant {
        /// The number.
        value: u128,
        /// The number of rows.
        rows: usize,
    },
}

impl<'a> Column<'a> {
    /// Returns the number of values; incomplete values at the end are not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Column::U8(values) => values.len(),
            Column::U16(values) => values.len(),
            Column::U32(values) => values.len(),
            Column::U64(values) => values.len(),
            Column::U128(values) => values.len(),
            Column::BigEndian { bytes, size } => bytes.len().checked_div(*size).unwrap_or(0),
            Column::Constant { rows, .. } => *rows,
        }
    }

    /// True if the column has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the values in a range of rows.
    ///
    /// # Panics
    /// If the range exceeds the column.
    #[must_use]
    pub fn range(&self, rows: Range<usize>) -> Column<'a> {
        match *self {
            Column::U8(values) => Column::U8(&values[rows]),
            Column::U16(values) => Column::U16(&values[rows]),
            Column::U32(values) => Column::U32(&values[rows]),
            Column::U64(values) => Column::U64(&values[rows]),
            Column::U128(values) => Column::U128(&values[rows]),
            Column::BigEndian { bytes, size } => Column::BigEndian {
                bytes: &bytes[rows.start * size..rows.end * size],
                size,
            },
            Column::Constant { value, rows: all } => {
                assert!(
                    rows.start <= rows.end && rows.end <= all,
                    "rows of the column"
                );
                Column::Constant {
                    value,
                    rows: rows.len(),
                }
            }
        }
    }

    /// Returns the value in a row.
    ///
    /// # Panics
    /// If the row exceeds the column.
    #[must_use]
    pub fn get(&self, row: usize) -> u128 {
        match *self {
            Column::U8(values) => values[row].into(),
            Column::U16(values) => values[row].into(),
            Column::U32(values) => values[row].into(),
            Column::U64(values) => values[row].into(),
            Column::U128(values) => values[row],
            Column::BigEndian { bytes, size } => big_endian(&bytes[row * size..][..size]),
            Column::Constant { value, rows } => {
                assert!(row < rows, "a row of the column");
                value
            }
        }
    }

    /// Returns the first row whose value does not fit a field.
    fn first_too_large(&self, field: &Field) -> Option<usize> {
        let max = field.max_value();
        match *self {
            Column::U8(values) => first_above(values, max),
            Column::U16(values) => first_above(values, max),
            Column::U32(values) => first_above(values, max),
            Column::U64(values) => first_above(values, max),
            Column::U128(values) => first_above(values, max),
            Column::BigEndian { size, .. } if size * 8 <= field.width() as usize => None,
            Column::BigEndian { bytes, size } => {
                let mut values = bytes.chunks_exact(size);
                values.position(|value| big_endian(value) > max)
            }
            Column::Constant { value, rows } => (value > max && rows > 0).then_some(0),
        }
    }

    /// Adds the low 64 bits of each value, or the bits above, to the words at a shift.
    /// The words must be 0 there. Each value has a word.
    fn add_to(&self, words: &mut [u64], shift: u32, high: bool) {
        match *self {
            Column::U8(values) if !high => add(words, values, |&value| value.into(), shift),
            Column::U16(values) if !high => add(words, values, |&value| value.into(), shift),
            Column::U32(values) if !high => add(words, values, |&value| value.into(), shift),
            Column::U64(values) if !high => add(words, values, |&value| value, shift),
            Column::U8(_) | Column::U16(_) | Column::U32(_) | Column::U64(_) => {}
            Column::U128(values) => add(words, values, |&value| half(value, high), shift),
            Column::BigEndian { bytes, size } => add_big_endian(words, bytes, size, shift, high),
            Column::Constant { value, .. } => {
                let bits = half(value, high) << shift;
                words.iter_mut().for_each(|word| *word |= bits);
            }
        }
    }
}

/// Returns the low 64 bits of a number, or the bits above.
#[allow(clippy::cast_possible_truncation)] // one half
fn half(value: u128, high: bool) -> u64 {
    (if high { value >> 64 } else { value }) as u64
}

/// Returns the number that at most 16 bytes are, most significant byte first.
fn big_endian(bytes: &[u8]) -> u128 {
    let shifted = |number: u128, &byte: &u8| number << 8 | u128::from(byte);
    bytes.iter().fold(0, shifted)
}

/// Returns the first position of a value above `max`. The numbers are first combined
/// without branches; `max` is all ones.
fn first_above<T>(values: &[T], max: u128) -> Option<usize>
where
    T: Copy + Default + PartialEq + TryFrom<u128>,
    T: std::ops::BitOr<Output = T> + std::ops::BitAnd<Output = T> + std::ops::Not<Output = T>,
{
    let excess = !T::try_from(max).ok()?;
    if excess == T::default() {
        return None;
    }
    let all = |values: &[T]| {
        values
            .iter()
            .fold(T::default(), |bits, &value| bits | value)
    };
    if all(values) & excess == T::default() {
        return None;
    }
    values
        .iter()
        .position(|&value| value & excess != T::default())
}

fn add<T>(words: &mut [u64], values: &[T], number: impl Fn(&T) -> u64, shift: u32) {
    for (word, value) in words.iter_mut().zip(values) {
        *word |= number(value) << shift;
    }
}

fn add_big_endian(words: &mut [u64], bytes: &[u8], size: usize, shift: u32, high: bool) {
    // The sizes of addresses have their own loops, which need no loop over bytes.
    match size {
        4 if !high => {
            let (values, _) = bytes.as_chunks::<4>();
            add(
                words,
                values,
                |&value| u32::from_be_bytes(value).into(),
                shift,
            );
        }
        16 => {
            let (values, _) = bytes.as_chunks::<16>();
            add(
                words,
                values,
                |&value| half(u128::from_be_bytes(value), high),
                shift,
            );
        }
        _ => {
            for (word, value) in words.iter_mut().zip(bytes.chunks_exact(size)) {
                *word |= half(big_endian(value), high) << shift;
            }
        }
    }
}

/// Columns that fit a schema: one for each field, in order, all with the same number of
/// values. Every value fits its field.
///
/// ```
/// use classyard::columns::{Column, Columns};
/// use classyard::prelude::*;
///
/// let schema = Schema::ipv4_5tuple();
/// let mut rules = RuleSet::new(&schema);
/// rules.push(Rule::builder(&schema).id(0).field("dport", 80).build()?.view())?;
/// let classifier = EngineSpec::parse("forest")?.builder().build(&rules)?;
///
/// let columns = [
///     Column::BigEndian { bytes: &[192, 0, 2, 1, 192, 0, 2, 2], size: 4 },
///     Column::U32(&[0x0a00_0001, 0x0a00_0001]),
///     Column::U16(&[40_000, 40_001]),
///     Column::U16(&[80, 22]),
///     Column::U8(&[6, 6]),
/// ];
/// let columns = Columns::new(&schema, &columns)?;
/// let mut winners = [Winner::MISS; 2];
/// classifier.classify_columns(&columns, &mut winners, &mut Scratch::new());
/// assert_eq!(winners[0].rule(), Some(RuleId::new(0)?));
/// assert!(winners[1].is_miss());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    schema: Arc<Schema>,
    columns: &'a [Column<'a>],
    rows: Range<usize>,
}

impl<'a> Columns<'a> {
    /// Checks columns against a schema.
    ///
    /// # Errors
    /// [`ColumnError`] if the number of columns differs from the number of fields, the
    /// columns differ in length, or a value does not fit its field.
    pub fn new(
        schema: &Arc<Schema>,
        columns: &'a [Column<'a>],
    ) -> Result<Columns<'a>, ColumnError> {
        let fields = schema.fields();
        if columns.len() != fields.len() {
            return Err(ColumnError::WrongColumnCount {
                found: columns.len(),
                expected: fields.len(),
            });
        }
        let rows = columns[0].len();
        for (field, column) in fields.iter().zip(columns) {
            if let Column::BigEndian { bytes, size } = *column
                && (!(1..=16).contains(&size) || !bytes.len().is_multiple_of(size))
            {
                return Err(ColumnError::PartialValue {
                    column: field.name().to_owned(),
                    bytes: bytes.len(),
                    size,
                });
            }
            if column.len() != rows {
                return Err(ColumnError::WrongLength {
                    column: field.name().to_owned(),
                    found: column.len(),
                    first: fields[0].name().to_owned(),
                    expected: rows,
                });
            }
            if let Some(row) = column.first_too_large(field) {
                return Err(ColumnError::ValueTooLarge {
                    column: field.name().to_owned(),
                    row,
                    value: column.get(row),
                    width: field.width(),
                });
            }
        }
        Ok(Columns {
            schema: Arc::clone(schema),
            columns,
            rows: 0..rows,
        })
    }

    /// Returns the schema that the columns fit.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the number of headers.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns the column of a field.
    ///
    /// # Panics
    /// If the field comes from a schema with more fields.
    #[must_use]
    pub fn column(&self, field: FieldId) -> Column<'a> {
        self.columns[field.index()].range(self.rows.clone())
    }

    /// Returns the headers in a range of rows.
    ///
    /// # Panics
    /// If the range exceeds the columns.
    #[must_use]
    pub fn range(&self, rows: Range<usize>) -> Columns<'a> {
        assert!(
            rows.start <= rows.end && rows.end <= self.rows(),
            "rows of the columns"
        );
        Columns {
            schema: Arc::clone(&self.schema),
            columns: self.columns,
            rows: self.rows.start + rows.start..self.rows.start + rows.end,
        }
    }

    /// Packs the headers into keys of [`Schema::key_words`] words each. The old words are
    /// overwritten.
    ///
    /// # Panics
    /// If there is not one key for each row.
    pub fn pack(&self, keys: &mut [u64]) {
        let width = self.schema.key_words();
        assert_eq!(keys.len(), self.rows() * width, "one key for each row");
        let blocks = keys.chunks_mut(PACKED_ROWS * width);
        for (keys, start) in blocks.zip(self.rows.clone().step_by(PACKED_ROWS)) {
            self.pack_block(start, keys);
        }
    }

    /// Packs at most [`PACKED_ROWS`] headers from a row on: all rows of one word of the
    /// key at a time.
    fn pack_block(&self, start: usize, keys: &mut [u64]) {
        let width = self.schema.key_words();
        let rows = start..start + keys.len() / width;
        let mut words = [[0; PACKED_ROWS]; 2];
        if width == 2 {
            // Five-tuples of IPv4: a key is written by one store.
            let [first, second] = &mut words;
            self.add_word(0, rows.clone(), first);
            self.add_word(1, rows, second);
            let (keys, _) = keys.as_chunks_mut::<2>();
            for ((key, first), second) in keys.iter_mut().zip(first).zip(second) {
                *key = [*first, *second];
            }
            return;
        }
        for word in 0..width {
            let values = &mut words[0];
            values.fill(0);
            self.add_word(word, rows.clone(), values);
            for (key, value) in keys.chunks_exact_mut(width).zip(values) {
                key[word] = *value;
            }
        }
    }

    /// Adds all fields of one word of the keys, for some rows. The values must be 0.
    fn add_word(&self, word: usize, rows: Range<usize>, values: &mut [u64; PACKED_ROWS]) {
        let values = &mut values[..rows.len()];
        for (id, column) in self.schema.field_ids().zip(self.columns) {
            let placement = self.schema.placement(id);
            let mut add = |part: &Part, high| {
                if part.word == word {
                    column.range(rows.clone()).add_to(values, part.shift, high);
                }
            };
            add(&placement.low, false);
            if let Some(part) = &placement.high {
                add(part, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;
    use crate::engine::EngineSpec;
    use crate::model::key::KeyVec;
    use crate::model::rule::{FieldMatch, Rule, Winner};
    use crate::model::ruleset::RuleSet;
    use crate::model::schema::MatchKind;
    use crate::model::seed::splitmix;

    /// Values of one field, and arrays of them in every type that is wide enough.
    struct Arrays {
        values: Vec<u128>,
        u8s: Vec<u8>,
        u16s: Vec<u16>,
        u32s: Vec<u32>,
        u64s: Vec<u64>,
        bytes: Vec<u8>,
        size: usize,
    }

    #[allow(clippy::cast_possible_truncation)] // only types that are wide enough are used
    fn arrays(values: Vec<u128>, width: u32, extra_bytes: usize) -> Arrays {
        let size = (width.div_ceil(8) as usize + extra_bytes).min(16);
        let tail = |value: &u128| value.to_be_bytes()[16 - size..].to_vec();
        Arrays {
            u64s: values.iter().map(|&value| value as u64).collect(),
            u8s: values.iter().map(|&value| value as u8).collect(),
            u16s: values.iter().map(|&value| value as u16).collect(),
            u32s: values.iter().map(|&value| value as u32).collect(),
            bytes: values.iter().flat_map(tail).collect(),
            size,
            values,
        }
    }

    impl Arrays {
        fn columns(&self, width: u32) -> Vec<Column<'_>> {
            let big_endian = Column::BigEndian {
                bytes: &self.bytes,
                size: self.size,
            };
            let mut columns = vec![Column::U128(&self.values), big_endian];
            if let [first, others @ ..] = &self.values[..]
                && others.iter().all(|value| value == first)
            {
                columns.push(Column::Constant {
                    value: *first,
                    rows: self.values.len(),
                });
            }
            for (bits, column) in [
                (8, Column::U8(&self.u8s)),
                (16, Column::U16(&self.u16s)),
                (32, Column::U32(&self.u32s)),
                (64, Column::U64(&self.u64s)),
            ] {
                if width <= bits {
                    columns.push(column);
                }
            }
            columns
        }
    }

    fn random_value(state: &mut u64, field: &Field) -> u128 {
        let high = u128::from(splitmix(state)) << 64;
        (high | u128::from(splitmix(state))) & field.max_value()
    }

    /// Fields that share words, fields of two words, and widths that are not multiples of 8.
    fn odd_schema() -> Arc<Schema> {
        let widths = [1, 7, 8, 9, 20, 33, 64, 65, 100, 127, 128];
        let field = |(index, &width)| Field::new(&format!("f{index}"), width, MatchKind::Ternary);
        Schema::new("odd", widths.iter().enumerate().map(field).collect()).unwrap()
    }

    #[test]
    fn columns_of_every_type_become_the_keys_of_their_headers() {
        let mut state = 11;
        for schema in [Schema::ipv4_5tuple(), Schema::openflow15(), odd_schema()] {
            for rows in [0, 1, 2, 255, 256, 257, 700] {
                let fields = schema.fields();
                let arrays: Vec<Arrays> = (fields.iter().enumerate())
                    .map(|(index, field)| {
                        let mut values: Vec<u128> =
                            (0..rows).map(|_| random_value(&mut state, field)).collect();
                        if index % 4 == 3 && rows > 0 {
                            let first = values[0];
                            values.fill(first);
                        }
                        arrays(values, field.width(), index % 3)
                    })
                    .collect();
                let mut expected = KeyVec::new(&schema);
                for row in 0..rows {
                    let header: Vec<u128> = arrays.iter().map(|a| a.values[row]).collect();
                    expected.push(&header).unwrap();
                }
                for choice in 0..7 {
                    let columns: Vec<Column<'_>> = (fields.iter().zip(&arrays))
                        .map(|(field, arrays)| {
                            let columns = arrays.columns(field.width());
                            columns[choice % columns.len()]
                        })
                        .collect();
                    let columns = Columns::new(&schema, &columns).unwrap();
                    let mut keys = KeyVec::new(&schema);
                    keys.extend_columns(&columns.range(0..rows / 2));
                    keys.extend_columns(&columns.range(rows / 2..rows));
                    assert_eq!(keys, expected, "{rows} rows of {}", schema.name());
                    for id in schema.field_ids() {
                        assert!(
                            (0..rows).all(|row| {
                                columns.column(id).get(row) == expected.get(row, id)
                            })
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn columns_have_the_winners_of_packed_keys() {
        let schema = Schema::ipv4_5tuple();
        let mut rules = RuleSet::new(&schema);
        for port in 0..50 {
            let rule = Rule::builder(&schema).id(port).priority(port % 7);
            let ports = FieldMatch::Range {
                low: port.into(),
                high: u128::from(port) + 20,
            };
            let rule = rule.field("dport", ports).build().unwrap();
            rules.push(rule.view()).unwrap();
        }
        let ports: Vec<u16> = (0..1000).map(|row| row % 97).collect();
        let (zeros, protocols) = (vec![0; 1000], vec![6; 1000]);
        for name in ["forest", "linear", "tuplemerge"] {
            let classifier = EngineSpec::parse(name).unwrap().builder().build(&rules);
            let classifier = classifier.unwrap();
            for rows in [0, 1, 255, 256, 257, 1000] {
                let columns = [
                    Column::U32(&zeros[..rows]),
                    Column::U32(&zeros[..rows]),
                    Column::U16(&ports[..rows]),
                    Column::U16(&ports[..rows]),
                    Column::U8(&protocols[..rows]),
                ];
                let columns = Columns::new(&schema, &columns).unwrap();
                let mut keys = KeyVec::new(&schema);
                keys.extend_columns(&columns);
                let (mut expected, mut winners) = (vec![Winner::MISS; rows], vec![]);
                winners.resize(rows, Winner::from_rank(7));
                let mut scratch = Scratch::new();
                classifier.classify_batch(keys.as_slice(), &mut expected, &mut scratch);
                classifier.classify_columns(&columns, &mut winners, &mut scratch);
                assert_eq!(winners, expected, "{rows} rows with {name}");
            }
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error_with_column_and_row() {
        let mut state = 5;
        let schema = odd_schema();
        for (index, field) in schema.fields().iter().enumerate() {
            if field.width() == 128 {
                continue;
            }
            for rows in [1, 3, 300] {
                for row in [0, rows / 2, rows - 1] {
                    let mut values = vec![0; rows];
                    values[row] = field.max_value() + 1;
                    let bad = arrays(values.clone(), field.width() + 1, 0);
                    for column in bad.columns(field.width() + 1) {
                        let zeros = vec![0; rows];
                        let mut columns = vec![Column::U8(&zeros); schema.fields().len()];
                        columns[index] = column;
                        let error = Columns::new(&schema, &columns).unwrap_err();
                        let expected = ColumnError::ValueTooLarge {
                            column: field.name().to_owned(),
                            row,
                            value: values[row],
                            width: field.width(),
                        };
                        assert_eq!(error, expected);
                        values[row] = random_value(&mut state, field);
                        columns[index] = Column::U128(&values);
                        assert!(Columns::new(&schema, &columns).is_ok());
                        values[row] = field.max_value() + 1;
                    }
                }
            }
        }
    }

    #[test]
    fn columns_of_another_shape_are_errors() {
        let schema = Schema::ipv4_5tuple();
        let ports = [80, 81];
        let good = [Column::U16(&ports); 5];
        let message = |columns: &[Column<'_>]| match Columns::new(&schema, columns) {
            Err(error) => error.to_string(),
            Ok(_) => "no error".to_owned(),
        };
        assert_eq!(message(&good[1..]), "4 columns for a schema of 5 fields");
        let mut short = good;
        short[2] = Column::U8(&[1]);
        assert_eq!(
            message(&short),
            "column `sport` has 1 value and column `src` has 2"
        );
        for size in [0, 3, 17] {
            let mut partial = good;
            partial[1] = Column::BigEndian {
                bytes: &[0; 8],
                size,
            };
            let text = message(&partial);
            assert!(text.starts_with("column `dst`: 8 bytes are not"), "{text}");
        }
        assert_eq!(
            message(&[Column::U16(&[80, 256]); 5]),
            "column `proto`, row 1: 256 does not fit in 8 bits"
        );
    }

    #[test]
    #[should_panic = "columns of another schema"]
    fn columns_of_another_schema_are_not_packed() {
        let column = [Column::U8(&[0]); 15];
        let columns = Columns::new(&Schema::openflow15(), &column).unwrap();
        KeyVec::new(&Schema::ipv4_5tuple()).extend_columns(&columns);
    }
}
