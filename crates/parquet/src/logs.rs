//! Logs: Parquet files whose rows are headers.

use std::path::{Path, PathBuf};

use classyard_arrow::{HeaderFields, Mapping};

use crate::columns::Wanted;
use crate::error::LogError;
use crate::footer::OpenFile;
use crate::results::{Keep, ResultSchema};

/// The maximum number of rows of a row group, if results are written: up to 5 bytes of results
/// are held for each of them.
pub const MAX_GROUP_ROWS: u64 = 1 << 26;

/// Row groups of fewer rows are processed together, if no columns are kept.
const TARGET_ROWS: u64 = 1 << 20;

/// The columns that are read, and the columns of the results.
#[derive(Clone, Debug)]
pub struct LogColumns {
    /// The columns of headers.
    pub mapping: Mapping,
    /// The fields of the policy.
    pub fields: HeaderFields,
    /// The column with verdicts to compare with the actions of rules, if wanted.
    pub verdict: Option<String>,
    /// The columns of logs that the results have too.
    pub keep: Keep,
    /// The beginning of the names of the results' own columns.
    pub prefix: String,
}

/// Parquet files whose columns were checked. Their footers were read, and no row.
pub struct Logs {
    columns: LogColumns,
    files: Vec<LogFile>,
    /// The columns of the results. Without files, `None`.
    schema: Option<ResultSchema>,
}

pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    /// The number of rows of each row group.
    pub(crate) group_rows: Vec<u64>,
}

/// A row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) file: usize,
    pub(crate) group: usize,
    /// The number of rows of the file before the group.
    pub(crate) first_row: u64,
    pub(crate) rows: u64,
}

impl Logs {
    /// Reads the footers of files, and checks that all have the columns. With `has_results`,
    /// also checks the columns that the results have.
    ///
    /// # Errors
    /// [`LogError`] with the file at fault.
    pub fn open(
        paths: Vec<PathBuf>,
        columns: LogColumns,
        has_results: bool,
    ) -> Result<Logs, LogError> {
        let mut logs = Logs {
            columns,
            files: Vec::new(),
            schema: None,
        };
        for path in paths {
            let open = OpenFile::open(&path)?;
            logs.wanted().check(&path, open.footer.schema())?;
            let group_rows = open.group_rows(&path)?;
            if has_results {
                match &logs.schema {
                    None => {
                        let LogColumns { keep, prefix, .. } = &logs.columns;
                        logs.schema = Some(ResultSchema::new(&path, &open, keep, prefix)?);
                    }
                    Some(schema) => drop(schema.check(&path, &open)?),
                }
                check_size(&path, &group_rows)?;
            }
            logs.files.push(LogFile { path, group_rows });
        }
        Ok(logs)
    }

    /// Returns the number of rows of all files.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.files.iter().flat_map(|file| &file.group_rows).sum()
    }

    /// Returns the files, in the order of their rows.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    pub(crate) fn wanted(&self) -> Wanted<'_> {
        Wanted {
            mapping: &self.columns.mapping,
            fields: &self.columns.fields,
            verdict: self.columns.verdict.as_deref(),
        }
    }

    pub(crate) fn file(&self, index: usize) -> &LogFile {
        &self.files[index]
    }

    /// Returns the columns of the results; `None` if the logs were opened without results.
    pub(crate) fn schema(&self) -> Option<&ResultSchema> {
        self.schema.as_ref()
    }

    /// Returns the row groups in the order of their rows, in units that become one row group of
    /// the results.
    pub(crate) fn units(&self) -> Vec<Vec<Group>> {
        let is_single = self.schema.as_ref().is_some_and(ResultSchema::has_kept);
        let mut units: Vec<Vec<Group>> = Vec::new();
        let mut unit_rows = 0;
        for (file, log) in self.files.iter().enumerate() {
            let mut first_row = 0;
            for (group, &rows) in log.group_rows.iter().enumerate() {
                let next = Group {
                    file,
                    group,
                    first_row,
                    rows,
                };
                first_row += rows;
                if rows == 0 {
                    continue;
                }
                unit_rows += rows;
                match units
                    .last_mut()
                    .filter(|_| !is_single && unit_rows <= TARGET_ROWS)
                {
                    Some(unit) => unit.push(next),
                    None => {
                        units.push(vec![next]);
                        unit_rows = rows;
                    }
                }
            }
        }
        units
    }
}

/// Returns the names of a file's columns, from its footer.
///
/// # Errors
/// [`LogError`] if the file cannot be read, or is not a Parquet file.
pub fn column_names(path: &Path) -> Result<Vec<String>, LogError> {
    let open = OpenFile::open(path)?;
    let fields = open.footer.schema().fields().iter();
    Ok(fields.map(|field| field.name().clone()).collect())
}

fn check_size(path: &Path, group_rows: &[u64]) -> Result<(), LogError> {
    let mut groups = group_rows.iter().enumerate();
    match groups.find(|(_, rows)| **rows > MAX_GROUP_ROWS) {
        None => Ok(()),
        Some((group, &rows)) => Err(LogError::LargeGroup {
            file: path.to_owned(),
            group,
            rows,
            limit: MAX_GROUP_ROWS,
        }),
    }
}
