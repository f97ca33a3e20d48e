//! Columns from Python's buffer protocol, such as arrays of numpy, without a copy if they are
//! contiguous.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, FixedSizeBinaryArray, PrimitiveArray};
use arrow_buffer::{Buffer, MutableBuffer, ScalarBuffer};
use pyo3::buffer::PyUntypedBuffer;

/// The memory of a Python object, which is kept while an Arrow buffer uses it.
struct Owner(#[allow(dead_code)] PyUntypedBuffer);

// SAFETY: the value is only dropped, which attaches the thread to the interpreter.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}
impl std::panic::RefUnwindSafe for Owner {}

/// The numbers or bytes of a buffer, by the format of one item.
#[derive(Clone, Copy)]
struct Items {
    kind: Kind,
    size: usize,
    is_swapped: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Unsigned,
    Signed,
    Bytes,
}

impl Items {
    /// Returns the items of a format of the module `struct`; `None` for items other than integers
    /// and bytes.
    fn of(format: &str, size: usize) -> Option<Items> {
        let order = format.chars().next()?;
        let is_swapped = match order {
            '>' | '!' => cfg!(target_endian = "little"),
            '<' => cfg!(target_endian = "big"),
            _ => false,
        };
        let kind = match format.trim_start_matches(['@', '=', '<', '>', '!']) {
            "B" | "H" | "I" | "L" | "Q" | "N" => Kind::Unsigned,
            "b" | "h" | "i" | "l" | "q" | "n" => Kind::Signed,
            "4s" | "16s" | "4x" | "16x" if matches!(size, 4 | 16) => Kind::Bytes,
            _ => return None,
        };
        let is_swapped = is_swapped && size > 1 && kind != Kind::Bytes;
        matches!((kind, size), (Kind::Bytes, _) | (_, 1 | 2 | 4 | 8)).then_some(Items {
            kind,
            size,
            is_swapped,
        })
    }
}

/// Returns the column that a buffer has: integers of one dimension, or bytes of one dimension
/// (`S4`, `V16`), or rows of 4 or 16 bytes. `None` for other buffers.
pub(crate) fn column(buffer: PyUntypedBuffer) -> Option<ArrayRef> {
    let format = buffer.format().to_str().ok()?.to_owned();
    let mut items = Items::of(&format, buffer.item_size())?;
    if buffer.suboffsets().is_some() {
        return None;
    }
    let rows = *buffer.shape().first()?;
    let is_address_row = |size: &usize| matches!(size, 4 | 16);
    let row = match *buffer.shape() {
        [_] => 1,
        [_, size] if items.size == 1 && items.kind == Kind::Unsigned && is_address_row(&size) => {
            items.kind = Kind::Bytes;
            size
        }
        _ => return None,
    };
    let size = items.size * row;
    let bytes = match buffer.is_c_contiguous() && !items.is_swapped {
        true => shared(buffer, rows * size, items.size.min(8)),
        false => gathered(&buffer, rows, items),
    };
    array(bytes, items.kind, size)
}

fn array(bytes: Buffer, kind: Kind, size: usize) -> Option<ArrayRef> {
    fn numbers<T: ArrowPrimitiveType>(bytes: Buffer) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(bytes), None))
    }
    Some(match (kind, size) {
        (Kind::Bytes, size) => {
            let size = i32::try_from(size).ok()?;
            Arc::new(FixedSizeBinaryArray::try_new(size, bytes, None).ok()?)
        }
        (Kind::Unsigned, 1) => numbers::<UInt8Type>(bytes),
        (Kind::Unsigned, 2) => numbers::<UInt16Type>(bytes),
        (Kind::Unsigned, 4) => numbers::<UInt32Type>(bytes),
        (Kind::Unsigned, _) => numbers::<UInt64Type>(bytes),
        (Kind::Signed, 1) => numbers::<Int8Type>(bytes),
        (Kind::Signed, 2) => numbers::<Int16Type>(bytes),
        (Kind::Signed, 4) => numbers::<Int32Type>(bytes),
        (Kind::Signed, _) => numbers::<Int64Type>(bytes),
    })
}

/// Returns the memory of a contiguous buffer of `length` bytes: without a copy if it is
/// aligned for numbers of `alignment` bytes.
fn shared(buffer: PyUntypedBuffer, length: usize, alignment: usize) -> Buffer {
    let start = buffer.buf_ptr().cast::<u8>();
    let Some(start) = NonNull::new(start).filter(|_| length > 0) else {
        // Aligned for numbers of every type.
        return MutableBuffer::new(0).into();
    };
    // SAFETY: a contiguous buffer has this many bytes, and Python keeps them in place until
    // the buffer is released, which happens when the owner is dropped.
    let bytes = unsafe { Buffer::from_custom_allocation(start, length, Arc::new(Owner(buffer))) };
    match start.as_ptr().addr() % alignment.next_power_of_two() {
        0 => bytes,
        _ => copied(&bytes),
    }
}

fn copied(bytes: &[u8]) -> Buffer {
    let mut copy = MutableBuffer::with_capacity(bytes.len());
    copy.extend_from_slice(bytes);
    copy.into()
}

/// Copies the items of a strided buffer, or of another byte order.
fn gathered(buffer: &PyUntypedBuffer, rows: usize, items: Items) -> Buffer {
    let columns = buffer.shape().get(1).copied().unwrap_or(1);
    let mut bytes = MutableBuffer::with_capacity(rows * columns * items.size);
    for row in 0..rows {
        for column in 0..columns {
            let place = [row, column];
            let item = buffer.get_ptr(&place[..buffer.dimensions()]).cast::<u8>();
            // SAFETY: the indices are below the shape, so the item is in the buffer, which
            // lives as long as the reference to it.
            let item = unsafe { std::slice::from_raw_parts(item, items.size) };
            bytes.extend_from_slice(item);
            if items.is_swapped {
                let end = bytes.len();
                bytes.as_slice_mut()[end - items.size..].reverse();
            }
        }
    }
    bytes.into()
}
