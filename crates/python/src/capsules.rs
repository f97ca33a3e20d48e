//! Arrow's PyCapsule interface: record batches from and for other libraries, without a copy.
//!
//! The functions move the C structures of Arrow out of capsules that the other library made.
//! A structure that was moved out has no `release` function, so nobody frees it twice.
#![allow(unsafe_code)]

use std::ffi::CStr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, StructArray, make_array};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::other;

const SCHEMA_CAPSULE: &CStr = c"arrow_schema";
const ARRAY_CAPSULE: &CStr = c"arrow_array";
const STREAM_CAPSULE: &CStr = c"arrow_array_stream";

/// The result of `__arrow_c_array__`: a schema and an array.
type ArrayCapsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

/// True if an object has Arrow data.
pub(crate) fn has_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__arrow_c_array__")? || object.hasattr("__arrow_c_stream__")?)
}

/// Imports the record batches of an object.
pub(crate) fn batches(object: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    if object.hasattr("__arrow_c_array__")? {
        let array = import_array(object)?;
        let Some(array) = array.as_any().downcast_ref::<StructArray>() else {
            return Err(other(
                "a single Arrow array; expected a record batch or a table",
            ));
        };
        return Ok(vec![batch_of(array)?]);
    }
    let stream = import_stream(object)?;
    let read = object.py().detach(|| -> Result<Vec<RecordBatch>, String> {
        let reader = RecordBatchStreamReader::try_new(stream).map_err(|error| error.to_string())?;
        let batches = reader.map(|batch| batch.map_err(|error| error.to_string()));
        batches.collect()
    });
    read.map_err(other)
}

/// Imports the array of an object, such as a column.
pub(crate) fn column(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if object.hasattr("__arrow_c_array__")? {
        return import_array(object);
    }
    let stream = import_stream(object)?;
    let read = object.py().detach(|| -> Result<Vec<ArrayRef>, String> {
        use arrow_array::ffi_stream::ArrayStreamReader;
        let reader = ArrayStreamReader::try_new(stream).map_err(|error| error.to_string())?;
        reader
            .map(|array| array.map_err(|error| error.to_string()))
            .collect()
    });
    let mut chunks = read.map_err(other)?;
    match (chunks.len(), chunks.pop()) {
        (1, Some(array)) => Ok(array),
        (0, _) => Ok(std::sync::Arc::new(arrow_array::NullArray::new(0))),
        (count, _) => Err(other(format!(
            "a column of {count} chunks; combine them (combine_chunks, rechunk), or pass a table"
        ))),
    }
}

fn batch_of(array: &StructArray) -> PyResult<RecordBatch> {
    if array.null_count() > 0 {
        return Err(other("a struct array with nulls; expected a record batch"));
    }
    Ok(RecordBatch::from(array))
}

fn import_array(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let capsules = object.call_method0("__arrow_c_array__")?;
    let (schema, array): ArrayCapsules<'_> = capsules.extract()?;
    let schema = schema
        .pointer_checked(Some(SCHEMA_CAPSULE))?
        .cast::<FFI_ArrowSchema>();
    let array = array
        .pointer_checked(Some(ARRAY_CAPSULE))?
        .cast::<FFI_ArrowArray>();
    // SAFETY: a capsule of this name has a pointer to such a structure, which is valid while
    // the capsule exists. The capsules exist until the end of this function.
    let data = unsafe {
        if array.as_ref().is_released() || schema.as_ref().release().is_none() {
            return Err(other("the capsules were already used; make new ones"));
        }
        let array = FFI_ArrowArray::from_raw(array.as_ptr());
        from_ffi(array, schema.as_ref())
    };
    Ok(make_array(data.map_err(other)?))
}

fn import_stream(object: &Bound<'_, PyAny>) -> PyResult<FFI_ArrowArrayStream> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let stream = capsule
        .pointer_checked(Some(STREAM_CAPSULE))?
        .cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name has a pointer to such a structure, which is valid while
    // the capsule exists. The capsule exists until the end of this function.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) })
}

/// Returns the capsules of a record batch, as a tuple of a schema and an array.
pub(crate) fn array_capsules<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
) -> PyResult<Bound<'py, PyTuple>> {
    let data = StructArray::from(batch.clone()).to_data();
    let schema = FFI_ArrowSchema::try_from(batch.schema_ref().as_ref()).map_err(other)?;
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA_CAPSULE)?;
    let array = PyCapsule::new_with_value(py, FFI_ArrowArray::new(&data), ARRAY_CAPSULE)?;
    PyTuple::new(py, [schema, array])
}

/// Returns the capsule of a stream of one record batch.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
) -> PyResult<Bound<'py, PyCapsule>> {
    let reader = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, STREAM_CAPSULE)
}
