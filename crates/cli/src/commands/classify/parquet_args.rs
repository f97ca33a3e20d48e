//! The options for flow logs in Parquet files.

use std::path::PathBuf;

use classyard_arrow::Mapping;
use classyard_parquet::{Keep, VerdictNames};

/// The options for flow logs in Parquet files.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct ParquetArgs {
    /// Flow logs in Parquet: files, folders, or quoted patterns such as 'logs/*.parquet'
    ///
    /// A folder stands for all *.parquet files below it, without hidden ones and those
    /// that begin with _. All files are checked before any row is read.
    #[arg(
        long,
        value_name = "FILES",
        num_args = 1..,
        conflicts_with_all = [
            "capture", "trace", "winners", "fields", "write", "every", "repeat", "rule", "action"
        ],
        help_heading = "Flow logs"
    )]
    pub(super) parquet: Vec<String>,

    /// The columns of headers: a preset, or FIELD=COLUMN,..., or a preset and changes
    ///
    /// The presets are fields (each field has the column of its name), vpc (AWS), zeek,
    /// netflow (nfdump) and ipfix. FIELD:=VALUE is the same value in all rows, and
    /// FIELD=A|B the first column that is not null: `vpc,proto=ip_proto,state:=new`.
    /// The default is fields.
    #[arg(
        long,
        value_name = "MAPPING",
        requires = "parquet",
        value_parser = Mapping::parse,
        help_heading = "Flow logs"
    )]
    pub(super) columns: Option<Mapping>,

    /// Write the rows with their rule and action to a Parquet file, - for standard output
    ///
    /// The file has the columns that --keep-columns names, then matched, rule (the id) and
    /// action. It replaces an older file when it is complete. With - no report is
    /// printed.
    #[arg(
        short,
        long,
        value_name = "FILE",
        requires = "parquet",
        help_heading = "Flow logs"
    )]
    pub(super) output: Option<PathBuf>,

    /// The columns of the logs that --output has too: all, none, or a list of names
    #[arg(
        long = "keep-columns",
        value_name = "NAMES",
        requires = "output",
        value_parser = keep,
        help_heading = "Flow logs"
    )]
    pub(super) keep: Option<Keep>,

    /// The beginning of the names of the columns that --output adds
    ///
    /// The default is policy_ if the mapping is vpc, whose logs have a column `action`,
    /// otherwise nothing.
    #[arg(
        long,
        value_name = "TEXT",
        requires = "output",
        help_heading = "Flow logs"
    )]
    pub(super) prefix: Option<String>,

    /// Compare a column with verdicts, such as ACCEPT and REJECT, with the rules' actions
    ///
    /// The report has the rows whose verdict differs. With the preset vpc, `action` is
    /// compared if the logs have it.
    #[arg(
        long,
        value_name = "COLUMN",
        requires = "parquet",
        help_heading = "Flow logs"
    )]
    pub(super) verdict: Option<String>,

    /// The meaning of verdicts and actions: WORD=permit or WORD=deny, with commas
    ///
    /// Known without it, in any case: accept, allow, permit and pass; reject, deny,
    /// drop and block. Other words are counted, and not compared.
    #[arg(
        long,
        value_name = "NAMES",
        requires = "parquet",
        value_delimiter = ',',
        value_parser = verdict_name,
        help_heading = "Flow logs"
    )]
    pub(super) verdict_names: Vec<String>,
}

fn keep(text: &str) -> Result<Keep, String> {
    match text {
        "all" => Ok(Keep::All),
        "none" => Ok(Keep::None),
        "" => Err("expected all, none, or names of columns separated by commas".to_owned()),
        names => Ok(Keep::Columns(names.split(',').map(str::to_owned).collect())),
    }
}

/// Checks the meaning of a word, for the argument parser.
fn verdict_name(text: &str) -> Result<String, String> {
    let added = VerdictNames::default().add(text);
    added
        .map(|()| text.to_owned())
        .map_err(|error| error.to_string())
}

impl ParquetArgs {
    /// Returns the columns of headers.
    pub(super) fn mapping(&self) -> Mapping {
        self.columns.clone().unwrap_or_else(Mapping::by_name)
    }

    /// Returns the beginning of the names of added columns.
    pub(super) fn prefix(&self, mapping: &Mapping) -> String {
        let default = match mapping.verdict_column() {
            Some(_) => "policy_",
            None => "",
        };
        self.prefix.as_deref().unwrap_or(default).to_owned()
    }

    /// Returns the meaning of verdicts and actions.
    pub(super) fn verdict_names(&self) -> VerdictNames {
        let mut names = VerdictNames::default();
        for text in &self.verdict_names {
            names.add(text).expect("the argument parser has checked it");
        }
        names
    }
}
