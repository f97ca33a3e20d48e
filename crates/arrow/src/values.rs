//! Numbers of one field, in the type in which an Arrow array holds them.

use arrow_buffer::{Buffer, ScalarBuffer};
use classyard::columns::Column;

/// Numbers of one field. Buffers are shared with the Arrow array, without a copy.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    U8(ScalarBuffer<u8>),
    U16(ScalarBuffer<u16>),
    U32(ScalarBuffer<u32>),
    U64(ScalarBuffer<u64>),
    U128(Vec<u128>),
    /// Numbers of `size` bytes, most significant byte first.
    Bytes {
        bytes: Buffer,
        size: usize,
    },
    Constant(u128),
}

impl Values {
    /// Returns the values as a column of `rows` rows.
    pub(crate) fn column(&self, rows: usize) -> Column<'_> {
        match self {
            Values::U8(values) => Column::U8(values),
            Values::U16(values) => Column::U16(values),
            Values::U32(values) => Column::U32(values),
            Values::U64(values) => Column::U64(values),
            Values::U128(values) => Column::U128(values),
            Values::Bytes { bytes, size } => Column::BigEndian { bytes, size: *size },
            Values::Constant(value) => Column::Constant {
                value: *value,
                rows,
            },
        }
    }

    /// Returns the value of a row.
    pub(crate) fn get(&self, row: usize) -> u128 {
        self.column(row + 1).get(row)
    }

    /// Returns the values of some rows, in their order. `width` is the width of the field in
    /// bits: numbers that were converted become as narrow as their field.
    pub(crate) fn gather(&self, rows: &[u32], width: u32) -> Values {
        match self {
            Values::U8(values) => Values::U8(taken(values, rows)),
            Values::U16(values) => Values::U16(taken(values, rows)),
            Values::U32(values) => Values::U32(taken(values, rows)),
            Values::U64(values) => Values::U64(taken(values, rows)),
            Values::U128(values) => {
                let values: Vec<u128> = rows.iter().map(|&row| values[row as usize]).collect();
                narrowed(values, width)
            }
            Values::Bytes { bytes, size } => {
                let mut taken = Vec::with_capacity(rows.len() * size);
                for &row in rows {
                    taken.extend_from_slice(&bytes[row as usize * size..][..*size]);
                }
                Values::Bytes {
                    bytes: taken.into(),
                    size: *size,
                }
            }
            Values::Constant(value) => Values::Constant(*value),
        }
    }

    /// Applies a function to each of the first `rows` values.
    pub(crate) fn map(&self, rows: usize, change: impl Fn(usize, u128) -> u128) -> Values {
        let column = self.column(rows);
        let values = (0..rows).map(|row| change(row, column.get(row)));
        Values::U128(values.collect())
    }
}

fn taken<T: arrow_buffer::ArrowNativeType>(
    values: &ScalarBuffer<T>,
    rows: &[u32],
) -> ScalarBuffer<T> {
    let taken: Vec<T> = rows.iter().map(|&row| values[row as usize]).collect();
    taken.into()
}

/// Returns numbers in the narrowest type for `width` bits, or as they are if one does not fit.
pub(crate) fn narrowed(values: Vec<u128>, width: u32) -> Values {
    fn all<T: TryFrom<u128>>(values: &[u128]) -> Option<Vec<T>> {
        let values = values.iter().map(|&value| T::try_from(value).ok());
        values.collect()
    }
    let narrow = match width {
        0..=8 => all::<u8>(&values).map(|values| Values::U8(values.into())),
        9..=16 => all::<u16>(&values).map(|values| Values::U16(values.into())),
        17..=32 => all::<u32>(&values).map(|values| Values::U32(values.into())),
        33..=64 => all::<u64>(&values).map(|values| Values::U64(values.into())),
        _ => None,
    };
    narrow.unwrap_or(Values::U128(values))
}
