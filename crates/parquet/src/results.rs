//! The file of results: kept columns of the logs, copied without decoding them, and the columns
//! of winners.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use classyard_arrow::Output;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::Compression;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{SchemaDescriptor, Type};

use crate::error::{LogError, quoted};
use crate::footer::OpenFile;

/// The columns of winners.
pub(crate) const OUTPUTS: [Output; 3] = [Output::Matched, Output::Rule, Output::Action];

/// The columns of logs that the results have too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// All columns.
    #[default]
    All,
    /// No column.
    None,
    /// The columns with these names, in the order of the logs.
    Columns(Vec<String>),
}

/// The columns of the results, from the footer of the first log.
pub(crate) struct ResultSchema {
    keep: Keep,
    first: PathBuf,
    /// The kept columns of the first log.
    kept: Vec<Arc<Type>>,
    /// Kept columns and columns of winners.
    arrow: SchemaRef,
    /// The columns of winners.
    winners: SchemaRef,
}

impl ResultSchema {
    /// Creates the schema for a log and for logs with the same kept columns.
    ///
    /// # Errors
    /// [`LogError`] if a kept column is missing or has the name of a column of winners.
    pub(crate) fn new(
        path: &Path,
        open: &OpenFile,
        keep: &Keep,
        prefix: &str,
    ) -> Result<ResultSchema, LogError> {
        let winners = Output::schema(&OUTPUTS);
        let winners = winners.fields().iter().map(|field| {
            let name = format!("{prefix}{}", field.name());
            Field::clone(field).with_name(name)
        });
        let winners = Schema::new(winners.collect::<Vec<_>>());
        let roots = kept_roots(path, open, keep)?;
        let schema = open.footer.schema();
        let kept_fields = roots.iter().map(|&root| Arc::clone(&schema.fields()[root]));
        let kept_fields: Vec<_> = kept_fields.collect();
        if let Some(field) = winners.fields().iter().find(|winner| {
            let mut kept = kept_fields.iter();
            kept.any(|kept| kept.name() == winner.name())
        }) {
            return Err(LogError::NameClash {
                file: path.to_owned(),
                column: field.name().clone(),
            });
        }
        let fields = kept_fields
            .into_iter()
            .chain(winners.fields().iter().cloned());
        // The notes of a data frame name columns that may not be kept.
        let notes = match keep {
            Keep::All => schema.metadata().clone(),
            Keep::None | Keep::Columns(_) => arrow_schema::Metadata::default(),
        };
        let arrow = Schema::new_with_metadata(fields.collect::<Vec<_>>(), notes);
        Ok(ResultSchema {
            keep: keep.clone(),
            first: path.to_owned(),
            kept: kept_types(open, &roots),
            arrow: Arc::new(arrow),
            winners: Arc::new(winners),
        })
    }

    /// True if the results have columns of the logs.
    pub(crate) fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Returns the kept columns of a log.
    ///
    /// # Errors
    /// [`LogError`] if the log has other ones than the first log.
    pub(crate) fn check(&self, path: &Path, open: &OpenFile) -> Result<Vec<usize>, LogError> {
        let roots = kept_roots(path, open, &self.keep)?;
        let kept = kept_types(open, &roots);
        if kept == self.kept {
            return Ok(roots);
        }
        let pair = kept
            .iter()
            .zip(&self.kept)
            .find(|(found, first)| found != first);
        let (found, expected) = match pair {
            Some((found, first)) => (described(found), described(first)),
            None => (listed(&kept), listed(&self.kept)),
        };
        Err(LogError::OtherColumns {
            file: path.to_owned(),
            found,
            first: self.first.clone(),
            expected,
        })
    }
}

fn kept_roots(path: &Path, open: &OpenFile, keep: &Keep) -> Result<Vec<usize>, LogError> {
    let fields = open.footer.schema().fields();
    match keep {
        Keep::All => Ok((0..fields.len()).collect()),
        Keep::None => Ok(Vec::new()),
        Keep::Columns(names) => {
            let mut roots = BTreeSet::new();
            for name in names {
                let (root, _) = fields.find(name).ok_or_else(|| LogError::MissingColumn {
                    file: path.to_owned(),
                    column: name.clone(),
                    purpose: "the results",
                    columns: fields.iter().map(|field| field.name().clone()).collect(),
                })?;
                roots.insert(root);
            }
            Ok(roots.into_iter().collect())
        }
    }
}

fn kept_types(open: &OpenFile, roots: &[usize]) -> Vec<Arc<Type>> {
    let types = open.footer.parquet_schema().root_schema().get_fields();
    roots.iter().map(|&root| Arc::clone(&types[root])).collect()
}

fn described(column: &Type) -> String {
    let mut text = Vec::new();
    parquet::schema::printer::print_schema(&mut text, column);
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    format!("the column `{}`", words.join(" ").trim_end_matches(';'))
}

fn listed(columns: &[Arc<Type>]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    format!("the columns {}", quoted(&names))
}

/// Encodes the columns of winners.
pub(crate) struct Encoder {
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
}

/// The columns of winners of one row group.
pub(crate) struct EncodedGroup<'e> {
    encoder: &'e Encoder,
    writers: Vec<ArrowColumnWriter>,
    rows: u64,
}

impl Encoder {
    fn new(schema: &SchemaRef) -> Result<Encoder, ParquetError> {
        let descriptor = ArrowSchemaConverter::new().convert(schema)?;
        let properties = Arc::new(properties().build());
        let file = SerializedFileWriter::new(io::sink(), descriptor.root_schema_ptr(), properties)?;
        Ok(Encoder {
            factory: ArrowRowGroupWriterFactory::new(&file, Arc::clone(schema)),
            schema: Arc::clone(schema),
        })
    }

    pub(crate) fn begin(&self) -> Result<EncodedGroup<'_>, ParquetError> {
        Ok(EncodedGroup {
            encoder: self,
            writers: self.factory.create_column_writers(0)?,
            rows: 0,
        })
    }
}

impl EncodedGroup<'_> {
    /// Adds the winners of a batch, which have the columns of [`OUTPUTS`].
    pub(crate) fn add(&mut self, winners: &RecordBatch) -> Result<(), ParquetError> {
        self.rows += winners.num_rows() as u64;
        let fields = self.encoder.schema.fields().iter();
        let columns = fields.zip(winners.columns()).zip(&mut self.writers);
        for ((field, column), writer) in columns {
            for leaf in compute_leaves(field, column)? {
                writer.write(&leaf)?;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Chunks, ParquetError> {
        let columns = self.writers.into_iter().map(ArrowColumnWriter::close);
        Ok(Chunks {
            columns: columns.collect::<Result<_, _>>()?,
            rows: self.rows,
        })
    }
}

/// Encoded columns of winners.
pub(crate) struct Chunks {
    columns: Vec<ArrowColumnChunk>,
    rows: u64,
}

fn properties() -> parquet::file::properties::WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("classyard ", env!("CARGO_PKG_VERSION")).to_owned())
}

/// The file of results.
pub(crate) struct ResultFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

/// The kept columns of a row group.
pub(crate) struct KeptGroup<'a> {
    pub(crate) path: &'a Path,
    pub(crate) open: &'a OpenFile,
    pub(crate) group: usize,
    /// The kept columns, among all columns of the file.
    pub(crate) roots: &'a [usize],
}

impl<W: Write + Send> ResultFile<W> {
    pub(crate) fn create(
        out: W,
        schema: &ResultSchema,
    ) -> Result<(ResultFile<W>, Encoder), ParquetError> {
        let encoder = Encoder::new(&schema.winners)?;
        let winners = ArrowSchemaConverter::new().convert(&schema.winners)?;
        let winners = winners.root_schema().get_fields().iter();
        let fields = schema.kept.iter().chain(winners).cloned().collect();
        let root = Type::group_type_builder("schema")
            .with_fields(fields)
            .build()?;
        let mut properties = properties().build();
        add_encoded_arrow_schema_to_metadata(&schema.arrow, &mut properties);
        let writer = SerializedFileWriter::new(out, Arc::new(root), Arc::new(properties))?;
        Ok((ResultFile { writer }, encoder))
    }

    /// Writes a row group: kept columns, then the columns of winners.
    pub(crate) fn append(
        &mut self,
        kept: Option<&KeptGroup<'_>>,
        chunks: Chunks,
    ) -> Result<(), LogError> {
        let mut group = self.writer.next_row_group().map_err(LogError::output)?;
        if let Some(kept) = kept {
            let metadata: &ParquetMetaData = kept.open.footer.metadata();
            for leaf in kept_leaves(kept.open.footer.parquet_schema(), kept.roots) {
                let chunk = metadata.row_group(kept.group).column(leaf).clone();
                let close = ColumnCloseResult {
                    bytes_written: u64::try_from(chunk.compressed_size()).unwrap_or(0),
                    rows_written: chunks.rows,
                    metadata: chunk,
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                let appended = group.append_column(&kept.open.file, close);
                appended.map_err(|error| match error {
                    ParquetError::External(_) => LogError::output(error),
                    other => LogError::damaged(kept.path, other),
                })?;
            }
        }
        for column in chunks.columns {
            column
                .append_to_row_group(&mut group)
                .map_err(LogError::output)?;
        }
        group.close().map_err(LogError::output)?;
        Ok(())
    }

    /// Writes the footer.
    pub(crate) fn finish(mut self) -> Result<(), LogError> {
        self.writer.finish().map_err(LogError::output)?;
        self.writer.inner_mut().flush().map_err(LogError::Output)
    }
}

fn kept_leaves<'a>(
    descriptor: &'a SchemaDescriptor,
    roots: &'a [usize],
) -> impl Iterator<Item = usize> + 'a {
    let leaves = 0..descriptor.num_columns();
    leaves.filter(|&leaf| roots.contains(&descriptor.get_column_root_idx(leaf)))
}
