//! The reasons why a record batch cannot be looked up.

use arrow_schema::DataType;
use thiserror::Error;

use crate::family::Family;

/// A record batch has no header in each row. Rows are counted from 0. Nothing was looked up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The batch lacks the column of a field that rules depend on.
    #[error(
        "field `{field}`: no column {}; the columns are {}; map the field to one of them, or give a constant",
        quoted_list(.wanted, " or "),
        quoted_list(.columns, ", ")
    )]
    MissingColumn {
        /// The field of the policy.
        field: String,
        /// The names of columns that the mapping has for the field.
        wanted: Vec<String>,
        /// The columns of the batch.
        columns: Vec<String>,
    },
    /// The batch has two columns with the name that the mapping has for a field.
    #[error("field `{field}`: there are several columns `{column}`; rename all but one")]
    RepeatedColumn {
        /// The field of the policy.
        field: String,
        /// The name of the columns.
        column: String,
    },
    /// The mapping names a field that the policy does not have.
    #[error("there is no field `{field}`; the fields are {}", quoted_list(.fields, ", "))]
    UnknownField {
        /// The field of the mapping.
        field: String,
        /// The fields of the policy.
        fields: Vec<String>,
    },
    /// The type of a column is not accepted for its field.
    #[error(
        "column `{column}` for the field `{field}` is of type {found}; accepted are {accepted}"
    )]
    WrongType {
        /// The field of the policy.
        field: String,
        /// The column.
        column: String,
        /// The type of the column.
        found: Box<DataType>,
        /// The accepted types.
        accepted: &'static str,
    },
    /// A text, bytes or a negative number that the field cannot have.
    #[error("column `{column}`, row {row}: {found}; expected {expected}")]
    BadValue {
        /// The column.
        column: String,
        /// The row.
        row: usize,
        /// The value.
        found: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// A number does not fit its field.
    #[error(
        "column `{column}`, row {row}: {value} does not fit in the {width} bits of the field `{field}`"
    )]
    TooLarge {
        /// The field of the policy.
        field: String,
        /// The column.
        column: String,
        /// The row.
        row: usize,
        /// The number.
        value: u128,
        /// The width of the field in bits.
        width: u32,
    },
    /// The field cannot have the constant of the mapping.
    #[error("the field `{field}` cannot have the constant {found}; expected {expected}")]
    BadConstant {
        /// The field of the policy.
        field: String,
        /// The constant.
        found: String,
        /// The accepted values.
        expected: String,
    },
    /// One address of a header is of IPv4 and another is of IPv6.
    #[error(
        "row {row}: column `{first}` has an {first_family} address, and `{second}` has an {second_family} address"
    )]
    MixedFamilies {
        /// The row.
        row: usize,
        /// A column with an address.
        first: String,
        /// The IP version of this address.
        first_family: Family,
        /// Another column with an address.
        second: String,
        /// The IP version of the other address.
        second_family: Family,
    },
    /// The policy has rules for several families, and the batch has no addresses.
    #[error(
        "no column has addresses, so the IP version of the headers is unknown; map one of the fields {}",
        quoted_list(.fields, ", ")
    )]
    NoAddress {
        /// The fields of addresses.
        fields: Vec<String>,
    },
    /// The batch has too many rows for one call.
    #[error("the batch has {rows} rows; the limit is {limit}")]
    TooManyRows {
        /// The number of rows.
        rows: usize,
        /// The maximum number of rows.
        limit: usize,
    },
}

/// A text is not a mapping; see [`Mapping::parse`](crate::Mapping::parse).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MappingError {
    /// The text begins with a word that is not a preset.
    #[error(
        "there is no preset `{found}`{}; the presets are {}; a field is mapped with FIELD=COLUMN or FIELD:=VALUE",
        .near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default(),
        .presets.join(", ")
    )]
    UnknownPreset {
        /// The word.
        found: String,
        /// The preset with the most similar name.
        near: Option<&'static str>,
        /// All presets.
        presets: &'static [&'static str],
    },
    /// A preset comes after the first comma.
    #[error("the preset `{found}` must come first: `{found},FIELD=COLUMN`")]
    LatePreset {
        /// The preset.
        found: String,
    },
    /// A part has no field, no column or no value.
    #[error("`{found}`: expected FIELD=COLUMN, FIELD=COLUMN|COLUMN or FIELD:=VALUE")]
    BadItem {
        /// The part.
        found: String,
    },
    /// Two parts are for the same field.
    #[error("the field `{field}` is mapped twice; remove one of both")]
    RepeatedField {
        /// The field.
        field: String,
    },
}

impl BatchError {
    /// Returns the column at fault, or the first column that was looked for.
    #[must_use]
    pub fn column(&self) -> Option<&str> {
        match self {
            BatchError::MissingColumn { wanted, .. } => wanted.first().map(String::as_str),
            BatchError::RepeatedColumn { column, .. }
            | BatchError::WrongType { column, .. }
            | BatchError::BadValue { column, .. }
            | BatchError::TooLarge { column, .. } => Some(column),
            BatchError::MixedFamilies { second, .. } => Some(second),
            BatchError::UnknownField { .. }
            | BatchError::BadConstant { .. }
            | BatchError::NoAddress { .. }
            | BatchError::TooManyRows { .. } => None,
        }
    }

    /// Returns the row at fault, counted from 0, if a single row is.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        match self {
            BatchError::BadValue { row, .. }
            | BatchError::TooLarge { row, .. }
            | BatchError::MixedFamilies { row, .. } => Some(*row),
            _ => None,
        }
    }

    /// Returns this error with `rows` added to its row, for a batch that follows batches
    /// with this number of rows.
    #[must_use]
    pub fn after_rows(mut self, rows: usize) -> BatchError {
        match &mut self {
            BatchError::BadValue { row, .. }
            | BatchError::TooLarge { row, .. }
            | BatchError::MixedFamilies { row, .. } => *row += rows,
            _ => {}
        }
        self
    }
}

fn quoted_list(names: &[String], separator: &str) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let names = names.iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(separator)
}
