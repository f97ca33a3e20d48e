//! Dictionaries of successive record batches, each converted once.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, DictionaryArray, FixedSizeBinaryArray, RecordBatch, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{Field, Schema};

use crate::convert::{Converted, Families, Target, convert};
use crate::family::{Family, Value};
use crate::fields::{HeaderFields, NamedField};
use crate::mapping::Mapping;
use crate::values::Values;

/// The dictionaries of the last record batch, converted.
///
/// [`Headers::read`](crate::Headers::read) converts the dictionaries of each batch. Successive
/// batches of one file often share a dictionary. [`decode`](Self::decode) then converts it once,
/// and only copies numbers for each batch.
#[derive(Default)]
pub struct Dictionaries {
    columns: HashMap<String, KnownDictionary>,
}

struct KnownDictionary {
    values: ArrayRef,
    /// `None` if a value does not belong to the field. A row may have it or not.
    converted: Option<Numbers>,
}

/// The values of a dictionary. Values that are null mean nothing.
struct Numbers {
    values: Values,
    /// The bytes of each address, if there are IPv4 and IPv6 addresses.
    mixed_addresses: Option<Vec<Vec<u8>>>,
    nulls: Option<NullBuffer>,
}

impl Dictionaries {
    /// Returns a batch with the values of dictionaries in place of the dictionaries of mapped
    /// columns: integers, or addresses as 16 bytes or of either length. Other columns stay. A
    /// dictionary with a value that does not belong to its field stays too, and is an error of
    /// [`Headers::read`](crate::Headers::read) if a row has the value.
    #[must_use]
    pub fn decode(
        &mut self,
        batch: &RecordBatch,
        mapping: &Mapping,
        fields: &HeaderFields,
    ) -> RecordBatch {
        let mut columns = batch.columns().to_vec();
        let mut is_changed = false;
        for (field, name) in single_columns(mapping, fields) {
            let Some((index, _)) = batch.schema_ref().column_with_name(&name) else {
                continue;
            };
            let column = Arc::clone(&columns[index]);
            let Some(array) = column.as_dictionary_opt::<Int32Type>() else {
                continue;
            };
            if let Some(decoded) = self.decoded(&name, array, field, mapping) {
                columns[index] = decoded;
                is_changed = true;
            }
        }
        match is_changed {
            true => with_columns(batch, columns),
            false => batch.clone(),
        }
    }

    fn decoded(
        &mut self,
        name: &str,
        array: &DictionaryArray<Int32Type>,
        field: &NamedField,
        mapping: &Mapping,
    ) -> Option<ArrayRef> {
        let values = array.values();
        if values.is_empty() {
            return None;
        }
        let is_known = |known: &KnownDictionary| {
            Arc::ptr_eq(&known.values, values) || known.values.to_data().ptr_eq(&values.to_data())
        };
        if !self.columns.get(name).is_some_and(is_known) {
            let target = Target {
                field: &field.name,
                column: name,
                is_address: field.is_address,
                format: field.format,
                dash_is_null: mapping.log_rules().dash_is_null,
            };
            let converted = convert(values.as_ref(), &target, field.width).ok();
            let known = KnownDictionary {
                values: Arc::clone(values),
                converted: converted.and_then(|converted| Numbers::new(converted, values.len())),
            };
            self.columns.insert(name.to_owned(), known);
        }
        self.columns[name].converted.as_ref()?.of_rows(array)
    }
}

/// Returns the columns that a single field is read from, with their field.
fn single_columns<'f>(
    mapping: &Mapping,
    fields: &'f HeaderFields,
) -> impl Iterator<Item = (&'f NamedField, String)> {
    let mut of_column: HashMap<String, Vec<&NamedField>> = HashMap::new();
    for field in fields.named() {
        for column in mapping.columns_of(&field.name) {
            of_column.entry(column).or_default().push(field);
        }
    }
    let columns = of_column.into_iter();
    columns.filter_map(|(column, fields)| match fields[..] {
        [field] => Some((field, column)),
        _ => None,
    })
}

fn with_columns(batch: &RecordBatch, columns: Vec<ArrayRef>) -> RecordBatch {
    let fields = batch.schema_ref().fields().iter().zip(&columns);
    let fields =
        fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(schema), columns, &rows)
        .expect("columns of one length, of the types of the schema")
}

fn address_bytes(value: Option<Value>) -> Vec<u8> {
    match value {
        None => Vec::new(),
        Some((address, Some(Family::V6))) => address.to_be_bytes().to_vec(),
        Some((address, _)) => address.to_be_bytes()[12..].to_vec(),
    }
}

impl Numbers {
    /// `None` if no type of array has the numbers.
    fn new(converted: Converted, count: usize) -> Option<Numbers> {
        let is_mixed = matches!(converted.families, Families::Each(_));
        let bytes = || (0..count).map(|index| address_bytes(converted.get(index)));
        let values = match (&converted.values, &converted.families) {
            (Values::U128(values), Families::All(Some(Family::V6))) => Values::Bytes {
                bytes: (values.iter().flat_map(|value| value.to_be_bytes()))
                    .collect::<Vec<u8>>()
                    .into(),
                size: size_of::<u128>(),
            },
            (Values::U128(_), Families::All(_)) => return None,
            (values, _) => values.clone(),
        };
        Some(Numbers {
            mixed_addresses: is_mixed.then(|| bytes().collect()),
            values,
            nulls: converted.nulls,
        })
    }

    /// Returns the values of rows.
    fn of_rows(&self, array: &DictionaryArray<Int32Type>) -> Option<ArrayRef> {
        let keys = array.keys();
        // The keys of rows that are null may be any number.
        let count = array.values().len();
        let place_of = |key: &i32| u32::try_from(*key).map_or(0, |key| key.min(last_place(count)));
        let places: Vec<u32> = keys.values().iter().map(place_of).collect();
        let nulls = match &self.nulls {
            None => keys.nulls().cloned(),
            Some(nulls) => {
                let of_rows = places.iter().map(|&place| nulls.is_valid(place as usize));
                NullBuffer::union(keys.nulls(), Some(&of_rows.collect()))
            }
        };
        if let Some(addresses) = &self.mixed_addresses {
            let is_valid = |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let rows = places.iter().enumerate();
            let rows = rows
                .map(|(row, &place)| is_valid(row).then(|| addresses[place as usize].as_slice()));
            return Some(Arc::new(rows.collect::<BinaryArray>()));
        }
        let width = u128::BITS;
        Some(match self.values.gather(&places, width) {
            Values::U8(values) => Arc::new(UInt8Array::new(values, nulls)),
            Values::U16(values) => Arc::new(UInt16Array::new(values, nulls)),
            Values::U32(values) => Arc::new(UInt32Array::new(values, nulls)),
            Values::U64(values) => Arc::new(UInt64Array::new(values, nulls)),
            Values::Bytes { bytes, size } => Arc::new(FixedSizeBinaryArray::new(
                i32::try_from(size).expect("4 or 16"),
                bytes,
                nulls,
            )),
            Values::U128(_) | Values::Constant(_) => return None,
        })
    }
}

/// Returns the last place of a dictionary that is not empty.
fn last_place(count: usize) -> u32 {
    u32::try_from(count - 1).unwrap_or(u32::MAX)
}
