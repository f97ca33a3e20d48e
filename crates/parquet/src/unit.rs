//! One unit of rows: decoded, looked up, counted and encoded.

use std::fs::File;

use arrow_array::RecordBatch;
use arrow_buffer::NullBuffer;
use classyard_arrow::{Dictionaries, Headers};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::comparison::{BatchWinners, Meanings};
use crate::error::LogError;
use crate::footer::OpenFile;
use crate::logs::{Group, Logs};
use crate::lookups::Lookups;
use crate::results::{Chunks, EncodedGroup, Encoder, OUTPUTS};
use crate::summary::{Example, MAX_EXAMPLES};
use crate::totals::Totals;

/// The maximum number of rows of a batch: its decoded columns are in the second-level cache.
const BATCH_ROWS: usize = 1 << 16;

/// Reads units, one after the other.
pub(crate) struct UnitReader<'a> {
    logs: &'a Logs,
    lookups: &'a Lookups<'a>,
    meanings: &'a Meanings<'a>,
    dictionaries: Dictionaries,
    /// The last file that was read, and its place among the files.
    open: Option<(usize, OpenFile)>,
}

/// A unit that was looked up.
pub(crate) struct UnitResult {
    /// The winners, if results are written.
    pub(crate) chunks: Option<Chunks>,
    /// The first disagreements.
    pub(crate) examples: Vec<Example>,
}

impl<'a> UnitReader<'a> {
    pub(crate) fn new(
        logs: &'a Logs,
        lookups: &'a Lookups<'a>,
        meanings: &'a Meanings<'a>,
    ) -> UnitReader<'a> {
        UnitReader {
            logs,
            lookups,
            meanings,
            dictionaries: Dictionaries::default(),
            open: None,
        }
    }

    /// Returns a file if no other file was read after it.
    pub(crate) fn open_file(&self, file: usize) -> Option<&OpenFile> {
        let (last, open) = self.open.as_ref()?;
        (*last == file).then_some(open)
    }

    /// Looks up the rows of a unit.
    pub(crate) fn read(
        &mut self,
        unit: &[Group],
        encoder: Option<&Encoder>,
        totals: &mut Totals,
    ) -> Result<UnitResult, LogError> {
        let encoded = encoder.map(Encoder::begin).transpose();
        let mut encoded = encoded.map_err(LogError::output)?;
        let mut examples = Vec::new();
        for group in unit {
            self.read_group(*group, &mut encoded, &mut examples, totals)?;
        }
        let chunks = encoded.map(EncodedGroup::finish).transpose();
        Ok(UnitResult {
            chunks: chunks.map_err(LogError::output)?,
            examples,
        })
    }

    fn read_group(
        &mut self,
        group: Group,
        encoded: &mut Option<EncodedGroup<'_>>,
        examples: &mut Vec<Example>,
        totals: &mut Totals,
    ) -> Result<(), LogError> {
        let file = self.logs.file(group.file);
        let path = &file.path;
        let mut rows = 0;
        for batch in self.batches(group)? {
            let batch = batch.map_err(|error| LogError::damaged(path, error))?;
            let first_row = group.first_row + rows;
            rows += batch.num_rows() as u64;
            let batch_place = Place {
                file: group.file,
                first_row,
            };
            let winners = self.look_up(&batch, batch_place, examples, totals)?;
            if let Some(encoded) = encoded {
                encoded.add(&winners).map_err(LogError::output)?;
            }
        }
        match rows == group.rows {
            true => Ok(()),
            false => Err(LogError::Changed { file: path.clone() }),
        }
    }

    /// Opens a row group.
    fn batches(&mut self, group: Group) -> Result<ParquetRecordBatchReader, LogError> {
        let file = self.logs.file(group.file);
        let path = &file.path;
        if self.open_file(group.file).is_none() {
            let open = OpenFile::open(path)?;
            if open.group_rows(path)? != file.group_rows {
                return Err(LogError::Changed { file: path.clone() });
            }
            self.open = Some((group.file, open));
        }
        let (_, open) = self.open.as_ref().expect("a file was opened");
        let (footer, columns) = self.logs.wanted().projection(path, open, group.group)?;
        let file: File = open.file.try_clone().map_err(LogError::io(path))?;
        ParquetRecordBatchReaderBuilder::new_with_metadata(file, footer)
            .with_row_groups(vec![group.group])
            .with_projection(columns)
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(|error| LogError::damaged(path, error))
    }

    /// Looks up a batch. Returns the columns of its winners.
    fn look_up(
        &mut self,
        batch: &RecordBatch,
        place: Place,
        examples: &mut Vec<Example>,
        totals: &mut Totals,
    ) -> Result<RecordBatch, LogError> {
        let wanted = self.logs.wanted();
        let failed = |error: classyard_arrow::BatchError| LogError::Batch {
            file: self.logs.file(place.file).path.clone(),
            error: error.after_rows(usize::try_from(place.first_row).unwrap_or(usize::MAX)),
        };
        let decoded = self
            .dictionaries
            .decode(batch, wanted.mapping, wanted.fields);
        let headers = Headers::read(&decoded, wanted.mapping, wanted.fields).map_err(failed)?;
        let winners = headers.classify(self.lookups.rules, &OUTPUTS, 1);
        let columns = winners.to_batch(self.lookups.actions, &OUTPUTS);
        let with_header = winners.headers().cloned();
        let verdicts = wanted
            .verdict
            .and_then(|verdict| batch.column_by_name(verdict));
        let of_other_family = winners.other_family_rows();
        let (rules, actions) = winners.into_numbers();
        let without_header = with_header.as_ref().map_or(0, NullBuffer::null_count);
        totals.counts.add(&rules, without_header, of_other_family);
        let Some(verdicts) = verdicts else {
            return Ok(columns);
        };
        let of_rows = BatchWinners {
            rules: &rules,
            actions: &actions,
            has_header: &|row| with_header.as_ref().is_none_or(|rows| rows.is_valid(row)),
        };
        totals
            .comparison
            .add(verdicts, &of_rows, self.meanings, |row, verdict| {
                if examples.len() == MAX_EXAMPLES {
                    return;
                }
                let one_row = Headers::read(&decoded.slice(row, 1), wanted.mapping, wanted.fields);
                let header = one_row.ok().and_then(|headers| headers.header(0));
                let (part, header) = header.expect("the row has a header");
                examples.push(Example {
                    file: place.file,
                    row: place.first_row + row as u64,
                    verdict: verdict.to_owned(),
                    rule: rules[row],
                    part,
                    header,
                });
            });
        Ok(columns)
    }
}

/// The place of a batch.
#[derive(Clone, Copy)]
struct Place {
    file: usize,
    /// The number of rows of the file before the batch.
    first_row: u64,
}
