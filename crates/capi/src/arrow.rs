//! Lookups in Arrow data, by Arrow's C data interface.
//!
//! Programs define the structures `ArrowSchema` and `ArrowArray` of the interface themselves,
//! or include a library that does, such as nanoarrow. A batch is lent to a call: the call reads
//! a copy of its structure that frees nothing.

use std::ffi::{c_char, c_void};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::DataType;
use classyard::Policy;
use classyard_arrow::{Headers, Mapping, Output};

use crate::reader::{Lookup, Reader, with_reader};
use crate::status::{Fault, Status};
use crate::types::{slice, text};

/// An array of Arrow's C data interface. C declares it as `struct ArrowArray`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// A type of Arrow's C data interface. C declares it as `struct ArrowSchema`.
#[repr(C)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

const _: () = assert!(size_of::<ArrowArray>() == size_of::<FFI_ArrowArray>());
const _: () = assert!(size_of::<ArrowSchema>() == size_of::<FFI_ArrowSchema>());

/// A column of the result of `cy_classify_arrow`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrowOutput {
    /// `matched`, Boolean: true if a rule matches.
    Matched = 1,
    /// `rule`, UInt32: the id of the winning rule, null if no rule matches.
    Rule = 2,
    /// `action`, Dictionary(Int32, Utf8): the name of the winner's action, null if no rule
    /// matches.
    Action = 4,
    /// `action_id`, UInt32: the number of the winner's action, null if no rule matches.
    ActionId = 8,
    /// `cookie`, UInt64: the cookie of the winner, null if no rule matches.
    Cookie = 16,
}

/// Looks up the headers in the rows of an Arrow record batch. All rows see the rules of one
/// moment.
///
/// `batch` and `schema` are a struct array of Arrow's C data interface: one child for each
/// column. They stay the caller's. `columns` says which columns have the fields: a preset
/// ("fields", "vpc", "zeek", "netflow", "ipfix"), or parts such as "src=source_ip,proto:=6", or
/// a preset and changes to it. "fields" takes the columns with the names of the fields. Columns
/// may be integers, texts, binary values or dictionaries of them.
///
/// `outputs` is the sum of the `cy_arrow_output` values of the wanted columns. `*result` and
/// `*result_schema` become a struct array with these columns, in the order of `cy_arrow_output`.
/// The caller releases both. Rows with a null in a mapped column are null. The call uses at most
/// `threads` threads; with 1, it starts none.
///
/// Columns that are missing or do not fit their fields are `CY_STATUS_INVALID_COLUMNS`; nothing
/// is looked up then, and `*result` is not written. A call allocates its results.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_classify_arrow(
    reader: *mut Reader,
    columns: *const c_char,
    batch: *const ArrowArray,
    schema: *const ArrowSchema,
    outputs: u32,
    threads: usize,
    result: *mut ArrowArray,
    result_schema: *mut ArrowSchema,
) -> Status {
    let body = |_: &Policy, lookup: &mut Lookup| {
        if result.is_null() || result_schema.is_null() {
            let message = "the place for the result is a null pointer";
            return Err(Fault::new(Status::NullPointer, message));
        }
        // SAFETY: the text is as documented.
        let mapping = Mapping::parse(unsafe { text(columns, "columns") }?);
        let mapping = mapping.map_err(Fault::argument)?;
        let outputs = requested(outputs)?;
        // SAFETY: the structures are as documented. The batch is dropped before the call ends.
        let batch = unsafe { borrow_batch(batch, schema) }?;
        let rules = lookup.reader.pin();
        // After the pin, so that it has the fields of all visible rules.
        let fields = lookup.arrow.fields();
        let headers = Headers::read(&batch, &mapping, &fields).map_err(invalid)?;
        let winners = headers.classify(&*rules, &outputs, threads.max(1));
        let columns = winners.to_batch(&lookup.arrow.action_names, &outputs);
        let (array, types) = to_ffi(&StructArray::from(columns).to_data()).map_err(invalid)?;
        // SAFETY: both places may be written, as documented, and have the layout of the
        // interface.
        unsafe {
            result.cast::<FFI_ArrowArray>().write(array);
            result_schema.cast::<FFI_ArrowSchema>().write(types);
        }
        Ok(())
    };
    // SAFETY: the reader is as documented.
    unsafe { with_reader(reader, body) }
}

// Errors are passed by value, as `map_err` does.
#[allow(clippy::needless_pass_by_value)]
fn invalid(error: impl ToString) -> Fault {
    Fault::new(Status::InvalidColumns, error)
}

fn requested(bits: u32) -> Result<Vec<Output>, Fault> {
    let outputs: Vec<Output> = (0..)
        .zip(Output::ALL)
        .filter_map(|(bit, output)| (bits >> bit & 1 != 0).then_some(output))
        .collect();
    if outputs.is_empty() || bits >> Output::ALL.len() != 0 {
        let message = format!("outputs {bits:#x}: expected a sum of values of cy_arrow_output");
        return Err(Fault::argument(message));
    }
    Ok(outputs)
}

/// Returns a batch that points to the memory of the caller's arrays.
///
/// # Safety
/// The pointers are null, or point to structures of Arrow's C data interface. They and what
/// they point to must not change or be released while the result exists.
unsafe fn borrow_batch(
    batch: *const ArrowArray,
    schema: *const ArrowSchema,
) -> Result<RecordBatch, Fault> {
    /// The copy frees nothing: the memory is the caller's.
    unsafe extern "C" fn release_nothing(array: *mut ArrowArray) {
        // SAFETY: called once, with the copy.
        unsafe { (*array).release = None };
    }
    // SAFETY: the caller promises it.
    let (batch, types) = unsafe {
        (
            &slice(batch, 1, "batch")?[0],
            &slice(schema, 1, "schema")?[0],
        )
    };
    if batch.release.is_none() || types.release.is_none() {
        return Err(Fault::argument("the batch or its schema was released"));
    }
    let copy = ArrowArray {
        release: Some(release_nothing),
        ..*batch
    };
    // SAFETY: both types have the layout of the interface.
    let (copy, types) = unsafe {
        (
            std::mem::transmute::<ArrowArray, FFI_ArrowArray>(copy),
            &*schema.cast::<FFI_ArrowSchema>(),
        )
    };
    // SAFETY: the caller promises structures of the interface.
    let data = unsafe { from_ffi(copy, types) }.map_err(invalid)?;
    if !matches!(data.data_type(), DataType::Struct(_)) {
        let message = format!(
            "the batch is of type {}; a struct array is needed",
            data.data_type()
        );
        return Err(invalid(message));
    }
    data.validate().map_err(invalid)?;
    if data.null_count() > 0 {
        return Err(invalid(
            "rows of the batch are null; columns may have nulls, but no row",
        ));
    }
    Ok(RecordBatch::from(StructArray::from(data)))
}
