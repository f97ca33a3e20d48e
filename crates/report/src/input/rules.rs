//! Rules from a file, from standard input or from the embedded example.

use std::io;
use std::path::{Path, PathBuf};

use classyard::Policy;
use classyard_workload::diagnostic::{Loaded, ReadError, ReadOptions};
use classyard_workload::formats::{
    self, RuleFormat, SchemaChoice, read_policy_file, read_policy_with, read_schema_file,
};

use super::limits::ByteLimit;
use super::{count, read_text, source_name};
use crate::embedded;
use crate::failure::Failure;
use crate::output::file::is_dash;
use crate::reporter::Reporter;
use crate::suggestion::did_you_mean;

/// The flags of every command that reads rules, except the file itself.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RulesArgs {
    /// The format of the rules; by default, detected from their first line
    ///
    /// classbench, rules (our own) or ovs (as ovs-ofctl prints flows).
    #[arg(long, value_name = "FORMAT", value_parser = rule_format, help_heading = "Input")]
    pub rules_format: Option<RuleFormat>,

    /// The table of Open vSwitch flows to read, 0 to 255
    ///
    /// Required if the file has flows of several tables. Jumps from table to table
    /// are not followed.
    #[arg(long, value_name = "N", help_heading = "Input")]
    pub table: Option<u8>,

    /// The schema of the rules: a built-in name or a TOML file
    ///
    /// Built-in schemas are ipv4-5tuple, ipv6-5tuple, openflow15 and dual-5tuple
    /// (IPv4 and IPv6 in one order). By default a file in the format `rules`
    /// names it, and for other formats it is detected from the rules.
    #[arg(long, value_name = "SCHEMA", help_heading = "Input")]
    pub schema: Option<String>,

    /// Skip bad lines and use the good ones
    ///
    /// Standard error has the number of skipped lines and the reasons. Without the
    /// flag, a single bad line is an error and nothing is loaded.
    #[arg(long, help_heading = "Input")]
    pub skip_bad: bool,

    /// Refuse files with more than N rules (10k, 1M, ...)
    ///
    /// The default is 16,777,216.
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Input")]
    pub limit_rules: Option<usize>,

    /// The limit on bytes of a file.
    #[command(flatten)]
    pub bytes: ByteLimit,
}

/// Rules that were read.
pub struct LoadedRules {
    /// The rules.
    pub policy: Policy,
    /// The source of the rules.
    pub source: String,
    /// True if the rules are the embedded example.
    pub embedded: bool,
    /// The number of bad lines that were skipped.
    pub skipped: usize,
    /// Rules that differ from an earlier one only in columns that were not read.
    pub merged: usize,
    /// The line of each rule in the source, in file order.
    lines: Vec<u32>,
}

impl LoadedRules {
    /// Returns the line, from 1, of the rule at a position in file order.
    pub fn line(&self, position: usize) -> Option<u32> {
        self.lines.get(position).copied()
    }
}

impl RulesArgs {
    /// Returns the options for reading rules.
    pub fn options(&self) -> ReadOptions {
        ReadOptions::DEFAULT
            .with_skip_bad(self.skip_bad)
            .with_limit(self.limit_rules.unwrap_or(ReadOptions::DEFAULT.limit))
            .with_max_bytes(self.bytes.text().bytes)
            .with_table(self.table)
    }

    /// Returns the requested schema.
    pub fn schema(&self) -> Result<Option<SchemaChoice>, Failure> {
        self.schema.as_deref().map(schema_choice).transpose()
    }

    /// Reads a file of rules; without a file, the embedded example.
    pub fn load(&self, file: Option<&Path>, reporter: Reporter) -> Result<LoadedRules, Failure> {
        let schema = self.schema()?;
        let (source, loaded) = match file {
            None => {
                let name = embedded::RULES_NAME;
                let options = self.options();
                let loaded = formats::read_policy(name, embedded::RULES, None, None, &options)?;
                (name.to_owned(), loaded)
            }
            Some(path) if is_dash(path) => {
                let text = read_text(path, self.bytes.text())?;
                return self.load_text(path, &text, reporter);
            }
            Some(path) => {
                let options = self.options();
                let loaded = read_policy_file(path, self.rules_format, schema.as_ref(), &options)?;
                (source_name(path), loaded)
            }
        };
        Ok(finish(source, file.is_none(), loaded, reporter))
    }

    /// Reads rules from the text of a file, or of standard input if the path is `-`. A
    /// schema file that the rules name is relative to the folder of the file, or to the
    /// current folder.
    pub fn load_text(
        &self,
        path: &Path,
        text: &str,
        reporter: Reporter,
    ) -> Result<LoadedRules, Failure> {
        let schema = self.schema()?;
        let folder = match path.parent() {
            Some(folder) if !is_dash(path) => folder,
            _ => Path::new(""),
        };
        let mut loader = |name: &str| read_schema_file(&folder.join(name));
        let source = source_name(path);
        let loaded = read_policy_with(
            &source,
            text,
            self.rules_format,
            schema.as_ref(),
            &self.options(),
            &mut loader,
        )?;
        Ok(finish(source, false, loaded, reporter))
    }
}

fn finish(
    source: String,
    embedded: bool,
    loaded: Loaded<Policy>,
    reporter: Reporter,
) -> LoadedRules {
    reporter.skipped(&loaded.skipped);
    for note in &loaded.notes {
        reporter.note(&format!("{source}: {note}"));
    }
    LoadedRules {
        policy: loaded.value,
        source,
        embedded,
        skipped: loaded.skipped.total(),
        merged: loaded.merged_rules,
        lines: loaded.rule_lines,
    }
}

/// Returns the built-in schema `text`, or the schema in the file `text`.
pub fn schema_choice(text: &str) -> Result<SchemaChoice, Failure> {
    if let Some(choice) = SchemaChoice::named(text) {
        return Ok(choice);
    }
    let path = PathBuf::from(text);
    match read_schema_file(&path) {
        Ok(schema) => Ok(SchemaChoice::Single(schema)),
        Err(ReadError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            let names = SchemaChoice::names();
            let hint = did_you_mean(text, names.iter().copied());
            Err(Failure::usage(format!(
                "`{text}` is neither a built-in schema nor a file{hint}"
            ))
            .with_help(format!("built-in schemas are {}", names.join(", "))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Parses the name of a rule format, for the argument parser.
pub fn rule_format(text: &str) -> Result<RuleFormat, String> {
    RuleFormat::from_name(text).ok_or_else(|| {
        let names = RuleFormat::ALL.map(RuleFormat::name);
        format!(
            "unknown rule format `{text}`; expected {}{}",
            names.join(", "),
            did_you_mean(text, names)
        )
    })
}
