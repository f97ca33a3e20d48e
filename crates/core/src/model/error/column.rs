//! Errors of headers that are stored by column.

use thiserror::Error;

use super::counted;

/// Columns of headers do not fit a schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// The numbers of columns and fields differ.
    #[error("{} for a schema of {}", counted(.found, "column"), counted(.expected, "field"))]
    WrongColumnCount {
        /// The number of columns.
        found: usize,
        /// The number of fields in the schema.
        expected: usize,
    },
    /// Two columns differ in length.
    #[error("column `{column}` has {} and column `{first}` has {expected}", counted(.found, "value"))]
    WrongLength {
        /// The field of the column.
        column: String,
        /// The number of its values.
        found: usize,
        /// The field of the first column.
        first: String,
        /// The number of values of the first column.
        expected: usize,
    },
    /// The bytes of a column are not a whole number of values of 1 to 16 bytes.
    #[error(
        "column `{column}`: {bytes} bytes are not a whole number of values of {size} bytes; \
             a value has 1 to 16 bytes"
    )]
    PartialValue {
        /// The field of the column.
        column: String,
        /// The number of bytes.
        bytes: usize,
        /// The number of bytes of one value.
        size: usize,
    },
    /// A number does not fit its field.
    #[error("column `{column}`, row {row}: {value} does not fit in {}", counted(.width, "bit"))]
    ValueTooLarge {
        /// The field of the column.
        column: String,
        /// The row, counted from 0.
        row: usize,
        /// The number.
        value: u128,
        /// The field's width.
        width: u32,
    },
}
