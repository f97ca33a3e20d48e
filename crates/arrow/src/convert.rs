//! One Arrow array of any accepted type, as numbers of one field.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use classyard::value::ValueFormat;

use crate::error::BatchError;
use crate::family::{Family, Value, address_of_bytes, parse_address};
use crate::values::{Values, narrowed};

/// The accepted types of columns for fields of addresses.
const ADDRESS_TYPES: &str = "integers (IPv4), binary values of 4 or 16 bytes, strings such as \
    10.0.0.1 or 2001:db8::1, dictionaries of these, and null";

/// The accepted types of columns for other fields.
const NUMBER_TYPES: &str = "integers, strings, dictionaries of these, and null";

/// The field that an array has values of.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) field: &'a str,
    pub(crate) column: &'a str,
    pub(crate) is_address: bool,
    /// The format of texts, unless the field has addresses.
    pub(crate) format: ValueFormat,
    /// True if the text `-` is null.
    pub(crate) dash_is_null: bool,
}

/// The families of a column's addresses.
#[derive(Clone, Debug)]
pub(crate) enum Families {
    /// All values are of one family, or no addresses.
    All(Option<Family>),
    /// One for each row; `None` in rows that are null.
    Each(Vec<Option<Family>>),
}

impl Families {
    pub(crate) fn get(&self, row: usize) -> Option<Family> {
        match self {
            Families::All(family) => *family,
            Families::Each(families) => families[row],
        }
    }
}

/// The values of a column. Values of rows that are null mean nothing.
#[derive(Clone, Debug)]
pub(crate) struct Converted {
    pub(crate) values: Values,
    pub(crate) families: Families,
    pub(crate) nulls: Option<NullBuffer>,
}

impl Converted {
    /// Returns the values of rows; `None` is null.
    pub(crate) fn from_values(values: &[Option<Value>], width: u32) -> Converted {
        let numbers = values
            .iter()
            .map(|value| value.map_or(0, |(number, _)| number));
        let numbers = numbers.collect();
        let families = values
            .iter()
            .map(|value| value.and_then(|(_, family)| family));
        let mut known = families.clone().flatten();
        let first = known.next();
        let (families, width) = match known.all(|family| Some(family) == first) {
            true if first == Some(Family::V4) => (Families::All(first), 32),
            true => (Families::All(first), width),
            false => (Families::Each(families.collect()), 128),
        };
        let is_null = values.iter().any(Option::is_none);
        Converted {
            values: narrowed(numbers, width),
            families,
            nulls: is_null.then(|| values.iter().map(Option::is_some).collect()),
        }
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Returns the value of a row, or `None` if it is null.
    pub(crate) fn get(&self, row: usize) -> Option<Value> {
        (!self.is_null(row)).then(|| (self.values.get(row), self.families.get(row)))
    }
}

/// Converts an array. `width` is the width of the field in bits.
///
/// Integers and binary values of one size are not copied. Negative numbers, texts and bytes
/// that are no values of the field are errors, except in rows where the array is null.
pub(crate) fn convert(
    array: &dyn Array,
    target: &Target<'_>,
    width: u32,
) -> Result<Converted, BatchError> {
    let family = target.is_address.then_some(Family::V4);
    let integers = |values| Converted {
        values,
        families: Families::All(family),
        nulls: array.nulls().cloned(),
    };
    Ok(match array.data_type() {
        DataType::UInt8 => integers(Values::U8(unsigned::<UInt8Type>(array))),
        DataType::UInt16 => integers(Values::U16(unsigned::<UInt16Type>(array))),
        DataType::UInt32 => integers(Values::U32(unsigned::<UInt32Type>(array))),
        DataType::UInt64 => integers(Values::U64(unsigned::<UInt64Type>(array))),
        DataType::Int8 => integers(Values::U8(signed::<Int8Type, _>(array, target)?)),
        DataType::Int16 => integers(Values::U16(signed::<Int16Type, _>(array, target)?)),
        DataType::Int32 => integers(Values::U32(signed::<Int32Type, _>(array, target)?)),
        DataType::Int64 => integers(Values::U64(signed::<Int64Type, _>(array, target)?)),
        DataType::FixedSizeBinary(size @ (4 | 16)) if target.is_address => Converted {
            values: Values::Bytes {
                bytes: array.as_fixed_size_binary().values().clone(),
                size: usize::try_from(*size).expect("4 or 16"),
            },
            families: Families::All(Some(if *size == 4 { Family::V4 } else { Family::V6 })),
            nulls: array.nulls().cloned(),
        },
        DataType::Null => Converted {
            values: Values::Constant(0),
            families: Families::All(None),
            nulls: Some(NullBuffer::new_null(array.len())),
        },
        _ => Converted::from_values(&each_value(array, target, width)?, width),
    })
}

fn unsigned<T: ArrowPrimitiveType>(array: &dyn Array) -> ScalarBuffer<T::Native> {
    array.as_primitive::<T>().values().clone()
}

/// Returns the numbers of a signed array. A negative number is an error.
fn signed<T, U>(array: &dyn Array, target: &Target<'_>) -> Result<ScalarBuffer<U>, BatchError>
where
    T: ArrowPrimitiveType<Native: PartialOrd + Default + std::fmt::Display>,
    U: ArrowNativeType,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    let zero = T::Native::default();
    let is_negative = |row: &usize| array.value(*row) < zero && array.is_valid(*row);
    if array.values().iter().any(|value| *value < zero)
        && let Some(row) = (0..array.len()).find(is_negative)
    {
        return Err(BatchError::BadValue {
            column: target.column.to_owned(),
            row,
            found: format!("the negative number {}", array.value(row)),
            expected: "a number from 0",
        });
    }
    Ok(ScalarBuffer::from(array.values().inner().clone()))
}

/// Converts the values of an array one by one.
fn each_value(
    array: &dyn Array,
    target: &Target<'_>,
    width: u32,
) -> Result<Vec<Option<Value>>, BatchError> {
    match array.data_type() {
        DataType::Utf8 => each_text(array.as_string::<i32>().iter(), target),
        DataType::LargeUtf8 => each_text(array.as_string::<i64>().iter(), target),
        DataType::Utf8View => each_text(array.as_string_view().iter(), target),
        DataType::Binary if target.is_address => {
            each_address(array.as_binary::<i32>().iter(), target)
        }
        DataType::LargeBinary if target.is_address => {
            each_address(array.as_binary::<i64>().iter(), target)
        }
        DataType::BinaryView if target.is_address => {
            each_address(array.as_binary_view().iter(), target)
        }
        DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => {
            dictionary(array, target, width)
        }
        other => Err(BatchError::WrongType {
            field: target.field.to_owned(),
            column: target.column.to_owned(),
            found: Box::new(other.clone()),
            accepted: if target.is_address {
                ADDRESS_TYPES
            } else {
                NUMBER_TYPES
            },
        }),
    }
}

fn each_text<'a>(
    texts: impl Iterator<Item = Option<&'a str>>,
    target: &Target<'_>,
) -> Result<Vec<Option<Value>>, BatchError> {
    let values = texts.enumerate().map(|(row, text)| {
        let Some(text) = text.filter(|text| !target.dash_is_null || *text != "-") else {
            return Ok(None);
        };
        let value = match target.is_address {
            true => parse_address(text),
            false => target.format.parse(text).map(|number| (number, None)),
        };
        let value = value.ok_or_else(|| bad_value(target, row, text));
        value.map(Some)
    });
    values.collect()
}

fn each_address<'a>(
    values: impl Iterator<Item = Option<&'a [u8]>>,
    target: &Target<'_>,
) -> Result<Vec<Option<Value>>, BatchError> {
    let values = values.enumerate().map(|(row, bytes)| {
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let value = address_of_bytes(bytes);
        let value = value.ok_or_else(|| bad_value(target, row, &format!("{} bytes", bytes.len())));
        value.map(Some)
    });
    values.collect()
}

/// The maximum number of characters of a text in a message.
const MAX_SHOWN_CHARACTERS: usize = 60;

fn bad_value(target: &Target<'_>, row: usize, text: &str) -> BatchError {
    let shown: String = text.chars().take(MAX_SHOWN_CHARACTERS).collect();
    BatchError::BadValue {
        column: target.column.to_owned(),
        row,
        found: format!("`{}`", shown.escape_debug()),
        expected: match target.is_address {
            true => "an IPv4 or IPv6 address, as text or as 4 or 16 bytes",
            false => target.format.expectation(),
        },
    }
}

/// Converts the values of a dictionary, each once. A value that no row has may be of any form.
fn dictionary(
    array: &dyn Array,
    target: &Target<'_>,
    width: u32,
) -> Result<Vec<Option<Value>>, BatchError> {
    let array = array.as_any_dictionary();
    if array.values().is_empty() {
        return Ok(vec![None; array.len()]);
    }
    let keys = array.normalized_keys();
    let is_null = |row: usize| array.keys().is_null(row);
    let mut first_rows = vec![None; array.values().len()];
    for (row, &key) in keys.iter().enumerate().filter(|(row, _)| !is_null(*row)) {
        first_rows[key].get_or_insert(row);
    }
    let mut values = vec![None; first_rows.len()];
    for (key, row) in first_rows.iter().enumerate() {
        let Some(row) = *row else { continue };
        let converted = convert(&array.values().slice(key, 1), target, width);
        values[key] = converted.map_err(|error| error.after_rows(row))?.get(0);
    }
    let rows = keys.iter().enumerate();
    Ok(rows
        .map(|(row, &key)| if is_null(row) { None } else { values[key] })
        .collect())
}
