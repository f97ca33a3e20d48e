//! Captures of packets as Arrow data: a row for each packet.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, TimestampNanosecondBuilder, UInt8Builder, UInt16Builder,
    UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use classyard::policy::PacketHeader;
use classyard::schema::FieldRole;
use classyard::{Field, Schema};
use classyard_workload::capture::{CaptureReader, ReadOptions};
use classyard_workload::diagnostic::ReadError;
use classyard_workload::packet::{Kind, parse};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::capsules;
use crate::error::read_error;
use crate::policy::named_schema;

/// The packets of a capture (pcap or pcapng), a row for each packet.
///
/// A capture is Arrow data: `table.classify(capture)`, `pyarrow.record_batch(capture)`,
/// `polars.DataFrame(capture)`. The columns are `time` (nanoseconds, UTC), `length` (bytes on
/// the wire), and one for each field of the schema, which is a name that `Policy.from_rules`
/// takes. Addresses are binary, with 4 or 16 bytes. Interfaces, lists and conditions have no
/// columns, because packets do not contain them. Packets without a header of the schema, such
/// as ARP among five-tuples, have nulls in these columns. At most 16,777,216 packets are read.
///
/// `notes` has sentences about packets without a header and about damage of the file.
///
/// >>> import classyard
/// >>> policy = classyard.Policy.read("testdata/capture/office.rules")
/// >>> capture = classyard.Capture.read("testdata/capture/office.pcap")
/// >>> result = classyard.Table(policy).classify(capture)
/// >>> len(capture) == len(result)
/// True
#[pyclass(frozen, module = "classyard")]
pub(crate) struct Capture {
    batch: RecordBatch,
    notes: Vec<String>,
}

#[pymethods]
impl Capture {
    /// Reads a capture file. Raises `ParseError` if it is none.
    #[staticmethod]
    #[pyo3(signature = (path, schema="dual-5tuple"))]
    fn read(py: Python<'_>, path: PathBuf, schema: &str) -> PyResult<Capture> {
        let schemas = named_schema(schema)?.schemas();
        let read = py.detach(|| read(&path, &schemas));
        read.map_err(|error| read_error(py, &error, 0))
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<classyard.Capture of {} packets>", self.batch.num_rows())
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let schema = self.batch.schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.collect()
    }

    /// Sentences about packets without a header and about damage of the file.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // The schema is a request that need not be followed.
        drop(requested_schema);
        capsules::array_capsules(py, &self.batch)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        capsules::stream_capsule(py, &self.batch)
    }
}

fn read(path: &PathBuf, schemas: &[Arc<Schema>]) -> Result<Capture, ReadError> {
    let source = path.display().to_string();
    let file = File::open(path).map_err(|error| ReadError::Io {
        file: source.clone(),
        error,
    })?;
    let mut reader = CaptureReader::new(&source, file, &ReadOptions::DEFAULT)?;
    let mut rows = Rows::new(schemas);
    while let Some(record) = reader.next_record()? {
        let packet = record.packet;
        let parsed = parse(record.frame, packet.link);
        let in_port = packet.interface.saturating_add(1);
        rows.times
            .append_value(i64::try_from(packet.timestamp_ns).unwrap_or(i64::MAX));
        rows.lengths.append_value(packet.original_length);
        if !rows.push(&parsed.received_by(in_port), schemas) {
            rows.without_header[parsed.kind as usize] += 1;
        }
    }
    let mut notes = rows.notes();
    notes.extend(reader.warnings().iter().map(ToString::to_string));
    if reader.more_warnings() > 0 {
        notes.push(format!("{} more warnings", reader.more_warnings()));
    }
    Ok(Capture {
        batch: rows.finish(),
        notes,
    })
}

/// The rows that were read.
struct Rows {
    times: TimestampNanosecondBuilder,
    lengths: UInt32Builder,
    columns: Vec<Column>,
    /// For each schema, the column of each of its fields, if there is one.
    places: Vec<Vec<Option<usize>>>,
    values: Vec<u128>,
    /// The number of packets without a header, by kind.
    without_header: [u64; Kind::ALL.len()],
}

struct Column {
    name: String,
    values: Values,
    /// True if the row that is being added has a value.
    is_set: bool,
}

enum Values {
    U8(UInt8Builder),
    U16(UInt16Builder),
    U32(UInt32Builder),
    U64(UInt64Builder),
    Binary(BinaryBuilder),
}

impl Rows {
    fn new(schemas: &[Arc<Schema>]) -> Rows {
        let mut columns: Vec<Column> = Vec::new();
        let mut column_of = |field: &Field| {
            let values = Values::of(field)?;
            let mut named = columns.iter();
            let position = named.position(|column| column.name == field.name());
            Some(position.unwrap_or_else(|| {
                columns.push(Column {
                    name: field.name().to_owned(),
                    values,
                    is_set: false,
                });
                columns.len() - 1
            }))
        };
        let columns_of_fields =
            (schemas.iter()).map(|schema| schema.fields().iter().map(&mut column_of).collect());
        let places = columns_of_fields.collect();
        let most_fields = schemas.iter().map(|schema| schema.fields().len()).max();
        Rows {
            times: TimestampNanosecondBuilder::new().with_timezone("UTC"),
            lengths: UInt32Builder::new(),
            columns,
            places,
            values: vec![0; most_fields.unwrap_or(0)],
            without_header: [0; Kind::ALL.len()],
        }
    }

    /// Adds the header of a packet, for the first schema that the packet has a header of. If it
    /// has a header of none, adds nulls and returns false.
    fn push(&mut self, packet: &impl PacketHeader, schemas: &[Arc<Schema>]) -> bool {
        let mut parts = schemas.iter().zip(&self.places);
        let header =
            parts.find(|(schema, places)| packet.values(schema, &mut self.values[..places.len()]));
        if let Some((schema, places)) = header {
            let fields = schema.fields().iter().zip(places);
            for ((field, &place), &value) in fields.zip(&self.values) {
                if let Some(index) = place {
                    let column = &mut self.columns[index];
                    column.values.push(value, field.width());
                    column.is_set = true;
                }
            }
        }
        let has_header = header.is_some();
        for column in &mut self.columns {
            if !std::mem::take(&mut column.is_set) {
                column.values.push_null();
            }
        }
        has_header
    }

    fn notes(&self) -> Vec<String> {
        let kinds = Kind::ALL.iter().zip(self.without_header);
        let kinds_without_header = kinds.filter(|(_, packets)| *packets > 0);
        let notes = kinds_without_header
            .map(|(kind, packets)| format!("{packets} packets have no header: {kind}"));
        notes.collect()
    }

    fn finish(mut self) -> RecordBatch {
        let mut columns: Vec<(String, ArrayRef)> = vec![
            ("time".to_owned(), Arc::new(self.times.finish())),
            ("length".to_owned(), Arc::new(self.lengths.finish())),
        ];
        columns.extend(
            self.columns
                .into_iter()
                .map(|mut column| (column.name, column.values.finish())),
        );
        RecordBatch::try_from_iter_with_nullable(
            columns
                .into_iter()
                .map(|(name, values)| (name, values, true)),
        )
        .expect("columns of one length")
    }
}

impl Values {
    /// Returns an empty column for an address or for a field of up to 64 bits. Packets do not
    /// contain other fields.
    fn of(field: &Field) -> Option<Values> {
        let is_address = matches!(
            field.role(),
            FieldRole::SourceAddress | FieldRole::DestinationAddress
        );
        Some(match field.width() {
            _ if is_address => Values::Binary(BinaryBuilder::new()),
            0..=8 => Values::U8(UInt8Builder::new()),
            9..=16 => Values::U16(UInt16Builder::new()),
            17..=32 => Values::U32(UInt32Builder::new()),
            33..=64 => Values::U64(UInt64Builder::new()),
            _ => return None,
        })
    }

    /// Adds a value of a field of `width` bits.
    #[allow(clippy::cast_possible_truncation)] // values fit their fields
    fn push(&mut self, value: u128, width: u32) {
        match self {
            Values::U8(values) => values.append_value(value as u8),
            Values::U16(values) => values.append_value(value as u16),
            Values::U32(values) => values.append_value(value as u32),
            Values::U64(values) => values.append_value(value as u64),
            Values::Binary(values) => {
                let bytes = width.div_ceil(8) as usize;
                values.append_value(&value.to_be_bytes()[16 - bytes..]);
            }
        }
    }

    fn push_null(&mut self) {
        match self {
            Values::U8(values) => values.append_null(),
            Values::U16(values) => values.append_null(),
            Values::U32(values) => values.append_null(),
            Values::U64(values) => values.append_null(),
            Values::Binary(values) => values.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        let builder: &mut dyn ArrayBuilder = match self {
            Values::U8(values) => values,
            Values::U16(values) => values,
            Values::U32(values) => values,
            Values::U64(values) => values,
            Values::Binary(values) => values,
        };
        builder.finish()
    }
}
