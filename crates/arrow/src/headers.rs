//! Headers in the rows of a record batch: one set of columns for each part of a policy.

use arrow_array::RecordBatch;
use arrow_buffer::NullBuffer;
use classyard::columns::{Column, Columns};
use classyard::error::ColumnError;
use classyard::policy::PartId;

use crate::convert::{Converted, Families};
use crate::error::BatchError;
use crate::family::Family;
use crate::fields::{HeaderFields, PartFields};
use crate::mapping::{LogRules, Mapping};
use crate::source::{FieldValues, read_fields};
use crate::values::Values;

/// The maximum number of rows of a record batch.
pub const MAX_ROWS: usize = u32::MAX as usize;

/// The headers of a record batch, checked: every value fits its field.
///
/// Each row belongs to the part of the policy that has addresses of its family. A row without
/// such a part has no header, and its outputs are null; so have rows with a null in a mapped
/// column.
#[derive(Clone, Debug)]
pub struct Headers {
    rows: usize,
    parts: Vec<PartHeaders>,
    other_family_rows: usize,
}

/// The headers of one part.
#[derive(Clone, Debug)]
pub(crate) struct PartHeaders {
    pub(crate) fields: PartFields,
    pub(crate) columns: Vec<Values>,
    /// The rows of the headers; `None` if the headers are all rows of the batch.
    pub(crate) rows: Option<Vec<u32>>,
    pub(crate) count: usize,
}

impl Headers {
    /// Reads the headers of a batch.
    ///
    /// Columns of integers and of binary values are not copied, if all rows belong to one part
    /// and none is null. Columns of strings and dictionaries are converted.
    ///
    /// # Errors
    /// [`BatchError`] if a column is missing or of another type, a value does not belong to its
    /// field, or addresses of a row are of different families.
    pub fn read(
        batch: &RecordBatch,
        mapping: &Mapping,
        fields: &HeaderFields,
    ) -> Result<Headers, BatchError> {
        let rows = batch.num_rows();
        if rows > MAX_ROWS {
            return Err(BatchError::TooManyRows {
                rows,
                limit: MAX_ROWS,
            });
        }
        let values = read_fields(batch, mapping, fields)?;
        let nulls = values
            .iter()
            .fold(None, |nulls: Option<NullBuffer>, field| {
                NullBuffer::union(nulls.as_ref(), field.values.nulls.as_ref())
            });
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let selected = rows_of_parts(&values, nulls.as_ref(), rows, fields)?;
        let mut headers = Headers {
            rows,
            parts: Vec::new(),
            other_family_rows: selected.other_family_rows,
        };
        for (fields, part_rows) in selected.parts {
            let count = part_rows.as_ref().map_or(rows, Vec::len);
            if count > 0 {
                let mut part = part_headers(fields, &values, part_rows, count);
                part.apply_log_rules(mapping.log_rules());
                part.check(&values)?;
                headers.parts.push(part);
            }
        }
        Ok(headers)
    }

    /// Returns the number of rows of the batch.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of rows whose addresses are of a family without a part in the
    /// policy, such as IPv6 rows for rules over IPv4.
    #[must_use]
    pub fn other_family_rows(&self) -> usize {
        self.other_family_rows
    }

    /// True if columns of integers and of binary values are used without a copy.
    #[must_use]
    pub fn is_without_copies(&self) -> bool {
        matches!(&self.parts[..], [part] if part.rows.is_none())
    }

    /// Returns the header of a row: its part, and a value for each field of the part's schema.
    /// `None` if the row has no header, or does not exist.
    #[must_use]
    pub fn header(&self, row: usize) -> Option<(PartId, Vec<u128>)> {
        self.parts.iter().find_map(|part| {
            let place = match &part.rows {
                None => row,
                Some(rows) => rows.binary_search(&u32::try_from(row).ok()?).ok()?,
            };
            let values = part.columns.iter().map(|values| values.get(place));
            (place < part.count).then(|| (part.fields.part, values.collect()))
        })
    }

    pub(crate) fn into_parts(self) -> Vec<PartHeaders> {
        self.parts
    }
}

/// The rows of each part, without rows that are null.
struct Selected<'a> {
    parts: Vec<(&'a PartFields, Option<Vec<u32>>)>,
    other_family_rows: usize,
}

#[allow(clippy::cast_possible_truncation)] // at most `MAX_ROWS` rows
fn rows_of_parts<'a>(
    values: &[FieldValues],
    nulls: Option<&NullBuffer>,
    rows: usize,
    fields: &'a HeaderFields,
) -> Result<Selected<'a>, BatchError> {
    let is_valid = |row: &u32| nulls.is_none_or(|nulls| nulls.is_valid(*row as usize));
    let addresses = || {
        values
            .iter()
            .filter(|field| field.is_address && !field.is_default)
    };
    if let Some(family) = common_family(addresses(), fields)? {
        let valid = nulls.map(|_| (0..rows as u32).filter(is_valid).collect::<Vec<u32>>());
        let count = valid.as_ref().map_or(rows, Vec::len);
        let part = fields.part_of(family);
        return Ok(Selected {
            other_family_rows: if part.is_some() { 0 } else { count },
            parts: part.map(|part| (part, valid)).into_iter().collect(),
        });
    }
    let mut of_family = [Vec::new(), Vec::new()];
    for row in (0..rows as u32).filter(is_valid) {
        let family = family_of_row(addresses(), row as usize)?;
        of_family[usize::from(family == Family::V6)].push(row);
    }
    let mut selected = Selected {
        parts: Vec::new(),
        other_family_rows: 0,
    };
    for (family, rows) in [Family::V4, Family::V6].into_iter().zip(of_family) {
        match fields.part_of(Some(family)) {
            Some(part) => selected.parts.push((part, Some(rows))),
            None => selected.other_family_rows += rows.len(),
        }
    }
    Ok(selected)
}

/// Returns the family of all rows, where `Some(None)` stands for headers without addresses.
/// `None` if rows must be examined one by one.
fn common_family<'v>(
    addresses: impl Iterator<Item = &'v FieldValues>,
    fields: &HeaderFields,
) -> Result<Option<Option<Family>>, BatchError> {
    let (mut common, mut has_addresses) = (None, false);
    for field in addresses {
        has_addresses = true;
        let family = match &field.values.families {
            Families::All(Some(family)) => *family,
            // All values are null, so no row is examined.
            Families::All(None) => continue,
            Families::Each(_) => return Ok(None),
        };
        if *common.get_or_insert(family) != family {
            return Ok(None);
        }
    }
    if !has_addresses && fields.parts().len() > 1 && fields.parts()[0].family.is_some() {
        let named = fields.named().iter();
        let named = named.filter(|field| field.is_address);
        return Err(BatchError::NoAddress {
            fields: named.map(|field| field.name.clone()).collect(),
        });
    }
    Ok(Some(common))
}

/// Returns the family of a row's addresses. The row has no null.
fn family_of_row<'v>(
    addresses: impl Iterator<Item = &'v FieldValues>,
    row: usize,
) -> Result<Family, BatchError> {
    let mut first: Option<(&FieldValues, Family)> = None;
    for field in addresses {
        let family = field
            .values
            .families
            .get(row)
            .expect("an address that is not null");
        let (first, first_family) = *first.get_or_insert((field, family));
        if first_family != family {
            return Err(BatchError::MixedFamilies {
                row,
                first: first.column.clone(),
                first_family,
                second: field.column.clone(),
                second_family: family,
            });
        }
    }
    Ok(first.expect("a column with addresses").1)
}

fn part_headers(
    fields: &PartFields,
    values: &[FieldValues],
    rows: Option<Vec<u32>>,
    count: usize,
) -> PartHeaders {
    let parts = fields.schema.fields().iter().zip(&fields.names);
    let columns = parts.map(|(field, &name)| {
        let Converted { values, .. } = &values[name].values;
        match &rows {
            Some(rows) => values.gather(rows, field.width()),
            None => values.clone(),
        }
    });
    PartHeaders {
        fields: fields.clone(),
        columns: columns.collect(),
        rows,
        count,
    }
}

impl PartHeaders {
    /// Returns the values of each field.
    pub(crate) fn values(&self) -> Vec<Column<'_>> {
        let columns = self.columns.iter();
        columns.map(|column| column.column(self.count)).collect()
    }

    /// Returns the [`values`](Self::values) as headers.
    ///
    /// # Panics
    /// If a value does not fit its field.
    pub(crate) fn columns<'a>(&self, values: &'a [Column<'a>]) -> Columns<'a> {
        let columns = Columns::new(&self.fields.schema, values);
        columns.expect("the columns were checked")
    }

    /// Checks that every value fits its field.
    fn check(&self, values: &[FieldValues]) -> Result<(), BatchError> {
        let columns = self.values();
        let Err(error) = Columns::new(&self.fields.schema, &columns) else {
            return Ok(());
        };
        let ColumnError::ValueTooLarge {
            column: field,
            row,
            value,
            width,
        } = error
        else {
            unreachable!("the columns have one length: {error}");
        };
        let id = self
            .fields
            .schema
            .field_named(&field)
            .expect("a field of the schema");
        let source = &values[self.fields.names[id.index()]];
        if source.is_constant {
            return Err(BatchError::BadConstant {
                found: value.to_string(),
                expected: format!("a number of at most {width} bits"),
                field,
            });
        }
        let row = self.rows.as_ref().map_or(row, |rows| rows[row] as usize);
        Err(BatchError::TooLarge {
            column: source.column.clone(),
            row,
            value,
            width,
            field,
        })
    }

    /// Gives values of flow logs the meaning that they have in rules.
    fn apply_log_rules(&mut self, rules: LogRules) {
        if !rules.ports_need_transport && !rules.icmp_of_both_families {
            return;
        }
        let schema = &self.fields.schema;
        let [proto, sport, dport] = ["proto", "sport", "dport"]
            .map(|name| schema.field_named(name).map(classyard::FieldId::index));
        let Some(proto) = proto else { return };
        let rows = self.count;
        if rules.icmp_of_both_families && self.fields.family == Some(Family::V6) {
            let change = |_, protocol| {
                if protocol == ICMP_PROTOCOL {
                    ICMPV6_PROTOCOL
                } else {
                    protocol
                }
            };
            self.columns[proto] = self.columns[proto].map(rows, change);
        }
        if rules.ports_need_transport {
            let protocols = self.columns[proto].clone();
            let has_ports = |row| PROTOCOLS_WITH_PORTS.contains(&protocols.column(rows).get(row));
            if (0..rows).all(has_ports) {
                return;
            }
            for port in [sport, dport].into_iter().flatten() {
                let zero = |row, port| if has_ports(row) { port } else { 0 };
                self.columns[port] = self.columns[port].map(rows, zero);
            }
        }
    }
}

const ICMP_PROTOCOL: u128 = 1;
const ICMPV6_PROTOCOL: u128 = 58;

/// TCP, UDP and SCTP: the protocols whose packets have ports in headers.
const PROTOCOLS_WITH_PORTS: [u128; 3] = [6, 17, 132];
