//! Headers from keyword arguments: a column or a value for each field.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Int64Array, NullArray, RecordBatch, RecordBatchOptions, StringArray,
    UInt64Array,
};
use arrow_schema::{Field, Schema};
use classyard_arrow::{Constant, Mapping};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyString};

use crate::buffers;
use crate::capsules;
use crate::error::column_error;

/// The maximum length of a value in a message.
const SHOWN_CHARACTERS: usize = 60;

/// Returns the columns among the keyword arguments as a batch, and the other arguments as
/// constants. Without columns the batch has one row.
pub(crate) fn headers(fields: &Bound<'_, PyDict>) -> PyResult<(RecordBatch, Mapping)> {
    let py = fields.py();
    let mut mapping = Mapping::by_name();
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for (name, value) in fields {
        let name: String = name.extract()?;
        match constant(&name, &value)? {
            Some(constant) => mapping = mapping.constant(&name, constant),
            None => columns.push((name.clone(), column(&name, &value)?)),
        }
    }
    let rows = columns.first().map_or(1, |(_, array)| array.len());
    for (name, array) in &columns[..] {
        if array.len() != rows {
            let message = format!(
                "column `{name}` has {} values, and column `{}` has {rows}",
                array.len(),
                columns[0].0
            );
            return Err(column_error(py, message, Some(name), None));
        }
    }
    let schema = columns
        .iter()
        .map(|(name, array)| Field::new(name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(schema.collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(schema, arrays, &options);
    Ok((batch.map_err(crate::error::other)?, mapping))
}

/// Returns a single value as a constant, or `None` for a column.
pub(crate) fn constant(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Constant>> {
    if value.is_instance_of::<PyString>() {
        return Ok(Some(Constant::Text(value.extract()?)));
    }
    if is_number(value)? {
        let number = value.extract::<u128>().map_err(|_| {
            let message = format!(
                "field `{name}`: {}; expected a number of 0 to 2^128 - 1",
                shown(value)
            );
            column_error(value.py(), message, Some(name), None)
        })?;
        return Ok(Some(Constant::Number(number)));
    }
    if is_address(value)? {
        return Ok(Some(Constant::Text(value.str()?.to_string())));
    }
    // The bytes of an address.
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(Constant::Text(bytes_as_text(bytes.as_bytes()))));
    }
    Ok(None)
}

/// True for integers, including single integers of numpy.
fn is_number(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_integer = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    Ok(is_integer
        || (value.hasattr("__index__")? && value.hasattr("dtype")? && !value.hasattr("__len__")?))
}

/// True for addresses of the module `ipaddress`.
fn is_address(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.get_type().module()? == "ipaddress" && value.hasattr("packed")?)
}

fn column(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let py = value.py();
    if value.is_none() {
        let message = format!("column `{name}` is None; expected a column or a value");
        return Err(column_error(py, message, Some(name), None));
    }
    if capsules::has_arrow(value)? {
        let array = capsules::column(value);
        return array.map_err(|error| {
            column_error(
                py,
                format!("column `{name}`: {}", error.value(py)),
                Some(name),
                None,
            )
        });
    }
    if let Ok(buffer) = PyUntypedBuffer::get(value) {
        let format = buffer.format().to_string_lossy().into_owned();
        let shape = buffer.shape().to_vec();
        if let Some(array) = buffers::column(buffer) {
            return Ok(array);
        }
        // Arrays of texts and of objects are read item by item.
        if !format.ends_with(['w', 'O']) || shape.len() != 1 {
            let message = format!(
                "column `{name}` is an array of shape {shape:?} and format `{format}`; expected \
                 integers, rows of 4 or 16 bytes, or strings"
            );
            return Err(column_error(py, message, Some(name), None));
        }
    }
    items(name, value)
}

/// One item of a sequence.
enum Item {
    Null,
    Number(u64),
    Negative(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// Reads a sequence item by item.
fn items(name: &str, values: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let py = values.py();
    let iterator = values.try_iter().map_err(|_| {
        let message = format!(
            "column `{name}`: {}; expected an array, a list or a value",
            shown(values)
        );
        column_error(py, message, Some(name), None)
    })?;
    let mut items = Vec::new();
    for (row, value) in iterator.enumerate() {
        let value = value?;
        let item = item(&value)?.ok_or_else(|| {
            let message = format!(
                "column `{name}`, row {row}: {}; expected an integer, a string, bytes, an \
                 address or None",
                shown(&value)
            );
            column_error(py, message, Some(name), Some(row))
        });
        items.push(item?);
    }
    Ok(array(items))
}

fn item(value: &Bound<'_, PyAny>) -> PyResult<Option<Item>> {
    if value.is_none() {
        return Ok(Some(Item::Null));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Some(Item::Text(value.extract()?)));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(Item::Bytes(bytes.as_bytes().to_vec())));
    }
    if is_number(value)? {
        let number = value.extract::<u64>().map(Item::Number);
        let negative = || value.extract::<i64>().map(Item::Negative);
        // A larger number becomes a text, whose error names the row.
        let number = number.or_else(|_| negative());
        return match number {
            Ok(item) => Ok(Some(item)),
            Err(_) => Ok(Some(Item::Text(value.str()?.to_string()))),
        };
    }
    match is_address(value)? {
        true => Ok(Some(Item::Text(value.str()?.to_string()))),
        false => Ok(None),
    }
}

fn array(items: Vec<Item>) -> ArrayRef {
    let is_number = |item: &Item| matches!(item, Item::Null | Item::Number(_));
    let is_signed = |item: &Item| matches!(item, Item::Null | Item::Number(_) | Item::Negative(_));
    let is_bytes = |item: &Item| matches!(item, Item::Null | Item::Bytes(_));
    if items.iter().all(|item| matches!(item, Item::Null)) {
        return Arc::new(NullArray::new(items.len()));
    }
    if items.iter().all(is_number) {
        let numbers = items.iter().map(|item| match item {
            Item::Number(number) => Some(*number),
            _ => None,
        });
        return Arc::new(numbers.collect::<UInt64Array>());
    }
    if items.iter().all(is_signed) {
        let numbers = items.iter().map(|item| match item {
            Item::Number(number) => Some(i64::try_from(*number).unwrap_or(i64::MAX)),
            Item::Negative(number) => Some(*number),
            _ => None,
        });
        return Arc::new(numbers.collect::<Int64Array>());
    }
    if items.iter().all(is_bytes) {
        let bytes = items.iter().map(|item| match item {
            Item::Bytes(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        return Arc::new(bytes.collect::<BinaryArray>());
    }
    let texts = items.into_iter().map(|item| match item {
        Item::Null => None,
        Item::Number(number) => Some(number.to_string()),
        Item::Negative(number) => Some(number.to_string()),
        Item::Text(text) => Some(text),
        Item::Bytes(bytes) => Some(bytes_as_text(&bytes)),
    });
    Arc::new(texts.collect::<StringArray>())
}

/// Returns an address of bytes among texts as a text; other bytes become a text that is no
/// address.
fn bytes_as_text(bytes: &[u8]) -> String {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return std::net::Ipv4Addr::from(bytes).to_string();
    }
    match <[u8; 16]>::try_from(bytes) {
        Ok(bytes) => std::net::Ipv6Addr::from(bytes).to_string(),
        Err(_) => format!("{bytes:?}"),
    }
}

/// Returns a value and its type, for messages.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value
        .repr()
        .map(|text| text.to_string())
        .unwrap_or_default();
    let text: String = text.chars().take(SHOWN_CHARACTERS).collect();
    match value.get_type().qualname() {
        Ok(kind) => format!("{text} of type {kind}"),
        Err(_) => text,
    }
}
