//! The values of each field of a policy in a record batch: from columns, or constant.

use arrow_array::RecordBatch;

use crate::convert::{Converted, Families, Target, convert};
use crate::error::BatchError;
use crate::family::{Family, parse_address};
use crate::fields::{HeaderFields, NamedField};
use crate::mapping::{Constant, Mapping, Source};
use crate::values::Values;

/// The values of one field in all rows.
#[derive(Debug)]
pub(crate) struct FieldValues {
    pub(crate) values: Converted,
    /// The column, for messages. The field, for constants.
    pub(crate) column: String,
    pub(crate) is_address: bool,
    pub(crate) is_constant: bool,
    /// True if the values are 0 because no rule depends on the field.
    pub(crate) is_default: bool,
}

/// Reads the values of all fields, in the order of [`HeaderFields::named`].
pub(crate) fn read_fields(
    batch: &RecordBatch,
    mapping: &Mapping,
    fields: &HeaderFields,
) -> Result<Vec<FieldValues>, BatchError> {
    let names: Vec<&str> = fields.names().collect();
    if let Some(field) = mapping.unknown_field(&names) {
        return Err(BatchError::UnknownField {
            field: field.to_owned(),
            fields: names.into_iter().map(str::to_owned).collect(),
        });
    }
    let has_needed_port = fields
        .named()
        .iter()
        .any(|field| field.is_needed && matches!(field.name.as_str(), "sport" | "dport"));
    // In flow logs, the meaning of ports depends on the protocol.
    let needs_protocol = has_needed_port && mapping.log_rules().ports_need_transport;
    let fields = fields.named().iter();
    let read = fields.map(|field| {
        let is_needed = field.is_needed || (needs_protocol && field.name == "proto");
        read_field(batch, mapping, field, is_needed)
    });
    read.collect()
}

fn read_field(
    batch: &RecordBatch,
    mapping: &Mapping,
    field: &NamedField,
    is_needed: bool,
) -> Result<FieldValues, BatchError> {
    let wanted = match mapping.source(&field.name) {
        Some((Source::Constant(constant), _)) => return constant_field(&constant, field),
        Some((Source::Columns(wanted), must_exist)) => {
            let dash_is_null = mapping.log_rules().dash_is_null;
            if let Some(values) = column_field(batch, &wanted, field, dash_is_null)? {
                return Ok(values);
            }
            if must_exist || is_needed {
                return Err(missing(batch, field, wanted));
            }
            wanted
        }
        None => vec![field.name.clone()],
    };
    match is_needed {
        true => Err(missing(batch, field, wanted)),
        false => Ok(FieldValues {
            values: constant_values(0, None),
            column: field.name.clone(),
            is_address: field.is_address,
            is_constant: true,
            is_default: true,
        }),
    }
}

fn missing(batch: &RecordBatch, field: &NamedField, wanted: Vec<String>) -> BatchError {
    let columns = batch.schema_ref().fields().iter();
    BatchError::MissingColumn {
        field: field.name.clone(),
        wanted,
        columns: columns.map(|column| column.name().clone()).collect(),
    }
}

/// Reads a field from the columns that exist among `wanted`. `None` if none does.
fn column_field(
    batch: &RecordBatch,
    wanted: &[String],
    field: &NamedField,
    dash_is_null: bool,
) -> Result<Option<FieldValues>, BatchError> {
    let mut result: Option<FieldValues> = None;
    for name in wanted {
        let columns = batch.schema_ref().fields().iter().enumerate();
        let mut columns = columns.filter(|(_, column)| column.name() == name);
        let Some((index, _)) = columns.next() else {
            continue;
        };
        if columns.next().is_some() {
            return Err(BatchError::RepeatedColumn {
                field: field.name.clone(),
                column: name.clone(),
            });
        }
        let target = Target {
            field: &field.name,
            column: name,
            is_address: field.is_address,
            format: field.format,
            dash_is_null,
        };
        let values = convert(batch.column(index), &target, field.width)?;
        result = Some(match result {
            None => FieldValues {
                values,
                column: name.clone(),
                is_address: field.is_address,
                is_constant: false,
                is_default: false,
            },
            Some(mut first) => {
                first.values = first_of(first.values, &values, batch.num_rows(), field.width);
                first.column = format!("{} or {name}", first.column);
                first
            }
        });
    }
    Ok(result)
}

/// Returns for each row the first value that is not null.
fn first_of(first: Converted, second: &Converted, rows: usize, width: u32) -> Converted {
    if first.nulls.is_none() {
        return first;
    }
    let values = (0..rows).map(|row| first.get(row).or_else(|| second.get(row)));
    Converted::from_values(&values.collect::<Vec<_>>(), width)
}

fn constant_values(value: u128, family: Option<Family>) -> Converted {
    Converted {
        values: Values::Constant(value),
        families: Families::All(family),
        nulls: None,
    }
}

fn constant_field(constant: &Constant, field: &NamedField) -> Result<FieldValues, BatchError> {
    let value = match (constant, field.is_address) {
        (Constant::Number(number), true) => {
            let is_ipv4 = u32::try_from(*number).is_ok();
            is_ipv4.then_some((*number, Some(Family::V4)))
        }
        (Constant::Number(number), false) => Some((*number, None)),
        (Constant::Text(text), true) => parse_address(text),
        (Constant::Text(text), false) => field.format.parse(text).map(|number| (number, None)),
    };
    let Some((number, family)) = value else {
        return Err(BatchError::BadConstant {
            field: field.name.clone(),
            found: match constant {
                Constant::Number(number) => number.to_string(),
                Constant::Text(text) => format!("`{}`", text.escape_debug()),
            },
            expected: match field.is_address {
                true => "an IPv4 or IPv6 address; a number is an IPv4 address".to_owned(),
                false => field.format.expectation().to_owned(),
            },
        });
    };
    Ok(FieldValues {
        values: constant_values(number, family),
        column: field.name.clone(),
        is_address: field.is_address,
        is_constant: true,
        is_default: false,
    })
}
