//! The columns of a file that are decoded, and the types that they are decoded to.

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use classyard_arrow::{HeaderFields, Headers, Mapping};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Encoding;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::schema::types::SchemaDescriptor;

use crate::error::LogError;
use crate::footer::OpenFile;

/// The columns that headers and verdicts are read from.
pub(crate) struct Wanted<'a> {
    pub(crate) mapping: &'a Mapping,
    pub(crate) fields: &'a HeaderFields,
    pub(crate) verdict: Option<&'a str>,
}

impl Wanted<'_> {
    /// Returns the places of the columns among the columns of a file.
    fn roots(&self, schema: &Schema) -> Vec<usize> {
        let names = self.mapping.column_names(self.fields);
        let is_wanted =
            |name: &str| names.contains(name) || self.verdict.is_some_and(|wanted| wanted == name);
        let fields = schema.fields().iter().enumerate();
        let fields = fields.filter(|(_, field)| is_wanted(field.name()));
        fields.map(|(index, _)| index).collect()
    }

    /// Checks that the columns exist and have accepted types, without reading a row.
    pub(crate) fn check(&self, path: &Path, schema: &Schema) -> Result<(), LogError> {
        let roots = self.roots(schema);
        let projected = schema.project(&roots).expect("columns of the file");
        let all_columns = || {
            let fields = schema.fields().iter();
            fields.map(|field| field.name().clone()).collect::<Vec<_>>()
        };
        let empty = RecordBatch::new_empty(Arc::new(projected));
        let headers = Headers::read(&empty, self.mapping, self.fields);
        headers.map_err(|mut error| {
            use classyard_arrow::BatchError::MissingColumn;
            if let MissingColumn { columns, .. } = &mut error {
                *columns = all_columns();
            }
            LogError::Batch {
                file: path.to_owned(),
                error,
            }
        })?;
        let Some(verdict) = self.verdict else {
            return Ok(());
        };
        match schema.column_with_name(verdict) {
            None => Err(LogError::MissingColumn {
                file: path.to_owned(),
                column: verdict.to_owned(),
                purpose: "verdicts",
                columns: all_columns(),
            }),
            Some((_, field)) if !is_text(plain_type(field.data_type())) => {
                Err(LogError::VerdictType {
                    file: path.to_owned(),
                    column: verdict.to_owned(),
                    found: field.data_type().clone(),
                })
            }
            Some(_) => Ok(()),
        }
    }

    /// Returns the columns to decode of one row group, and the footer with their types.
    ///
    /// Texts become dictionaries if all pages of the column have a dictionary: then each distinct
    /// text is parsed once.
    pub(crate) fn projection(
        &self,
        path: &Path,
        open: &OpenFile,
        group: usize,
    ) -> Result<(ArrowReaderMetadata, ProjectionMask), LogError> {
        let schema = open.footer.schema();
        let roots = self.roots(schema);
        let descriptor = open.footer.parquet_schema();
        let group = open.footer.metadata().row_group(group);
        let fields = schema.fields().iter().enumerate().map(|(root, field)| {
            if !roots.contains(&root) {
                return Arc::clone(field);
            }
            let data_type = decoded_type(field.data_type(), || {
                chunk_of(descriptor, group, root).is_some_and(has_only_dictionary)
            });
            Arc::new(Field::clone(field).with_data_type(data_type))
        });
        let decoded: SchemaRef = Arc::new(Schema::new_with_metadata(
            fields.collect::<Vec<_>>(),
            schema.metadata().clone(),
        ));
        let mask = ProjectionMask::roots(descriptor, roots);
        let options = ArrowReaderOptions::new().with_schema(decoded);
        let footer = Arc::clone(open.footer.metadata());
        let footer = ArrowReaderMetadata::try_new(footer, options);
        let footer = footer.map_err(|error| LogError::damaged(path, error))?;
        Ok((footer, mask))
    }
}

/// Returns the type of a dictionary's values, or the type itself.
fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// Returns the type that a column is decoded to.
fn decoded_type(data_type: &DataType, has_dictionary: impl Fn() -> bool) -> DataType {
    match plain_type(data_type) {
        text if is_text(text) => match has_dictionary() {
            true => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            false => DataType::Utf8View,
        },
        other => other.clone(),
    }
}

/// Returns the column chunk of a column; `None` for nested columns.
fn chunk_of<'g>(
    descriptor: &SchemaDescriptor,
    group: &'g RowGroupMetaData,
    root: usize,
) -> Option<&'g ColumnChunkMetaData> {
    let leaves = 0..descriptor.num_columns();
    let mut leaves = leaves.filter(|&leaf| descriptor.get_column_root_idx(leaf) == root);
    let leaf = leaves.next()?;
    leaves.next().is_none().then(|| group.column(leaf))
}

/// True if all data pages of a column chunk have keys of a dictionary. Writers note the
/// encodings of pages; without notes, the encodings of the chunk must not include another one.
fn has_only_dictionary(chunk: &ColumnChunkMetaData) -> bool {
    let dictionary = [Encoding::RLE_DICTIONARY, Encoding::PLAIN_DICTIONARY];
    if chunk.dictionary_page_offset().is_none() {
        return false;
    }
    if let Some(mask) = chunk.page_encoding_stats_mask() {
        let mut encodings = mask.encodings();
        return encodings.all(|encoding| dictionary.contains(&encoding));
    }
    // `PLAIN` may be the encoding of the dictionary only, or of data pages too.
    let without_plain = [
        Encoding::RLE,
        Encoding::PLAIN_DICTIONARY,
        Encoding::RLE_DICTIONARY,
    ];
    chunk
        .encodings()
        .all(|encoding| without_plain.contains(&encoding))
}
