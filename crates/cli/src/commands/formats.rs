//! `classyard formats`: a field-by-field description of the file formats.

use std::io::{self, Write};

use classyard_report::failure::Failure;
use classyard_report::output::table::{Side, Table};
use classyard_report::output::{OutputArgs, Report, csv};
use classyard_report::suggestion::did_you_mean;
use serde::Serialize;

/// The document whose sections the command prints.
const DOCUMENT: &str = include_str!("../../embedded/formats.md");

/// Describe the formats of files that are read and written
///
/// Without a name, lists all formats. With a name, describes such a file field by
/// field, with an example.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard formats
  classyard formats rules            the format of rule files for people, field by field
  classyard formats --format json")]
pub(crate) struct Args {
    /// Describe this format
    #[arg(value_name = "NAME", conflicts_with = "format")]
    name: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Formats {
    formats: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    summary: &'static str,
    read_by: &'static str,
    written_by: &'static str,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        return args.output.report(&Formats { formats: rows() });
    };
    let Some(text) = section(name) else {
        let names: Vec<&str> = rows().iter().map(|row| row.name).collect();
        let hint = did_you_mean(name, names.iter().copied());
        let failure = Failure::usage(format!("there is no format `{name}`{hint}"));
        return Err(failure.with_help(format!("there are {}", names.join(", "))));
    };
    let mut out = classyard_report::output::raw_stdout();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Returns the rows of the document's table of formats.
fn rows() -> Vec<Row> {
    let lines = DOCUMENT
        .lines()
        .skip_while(|line| !line.starts_with("| format |"));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    rows.filter_map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let mut next = || cells.next();
        Some(Row {
            name: next()?.trim_matches('`'),
            summary: next()?,
            read_by: next()?,
            written_by: next()?,
        })
    })
    .collect()
}

/// Returns the document's section of a format, including its heading.
fn section(name: &str) -> Option<&'static str> {
    let heading = format!("\n## {name}\n");
    let start = DOCUMENT.find(&heading)? + 1;
    let remaining_text = &DOCUMENT[start..];
    let section_end = remaining_text[1..]
        .find("\n## ")
        .map_or(remaining_text.len(), |at| at + 2);
    Some(&remaining_text[..section_end])
}

impl Report for Formats {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = ["format", "what it holds", "read by", "written by"];
        let mut table = Table::new(&columns.map(|title| (title, Side::Left)));
        for row in &self.formats {
            let cells = [row.name, row.summary, row.read_by, row.written_by];
            table.row(cells.map(|cell| cell.replace('`', "")).to_vec());
        }
        table.write(out)
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[&"name", &"summary", &"read_by", &"written_by"])?;
        for row in &self.formats {
            out.row(&[&row.name, &row.summary, &row.read_by, &row.written_by])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use classyard_configs::{Conditions, ConfigFormat, InputFormat, read};
    use classyard_workload::diagnostic::ReadOptions;
    use classyard_workload::formats::{RuleFormat, read_policy, read_schema, read_trace};

    use super::*;

    /// Returns the first code block of a section that is marked with the section's
    /// name.
    fn example(name: &str) -> Option<&'static str> {
        let text = section(name).unwrap();
        let (_, rest) = text.split_once(&format!("```{name}\n"))?;
        rest.split_once("```").map(|(example, _)| example)
    }

    #[test]
    fn every_format_has_a_row_and_a_section() {
        let rows = rows();
        let sections = DOCUMENT.lines().filter_map(|line| line.strip_prefix("## "));
        let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        assert!(sections.eq(names.iter().copied()));
        for format in InputFormat::all() {
            assert!(names.contains(&format.name()), "{}", format.name());
        }
        for row in &rows {
            let text = section(row.name).unwrap();
            assert!(text.starts_with(&format!("## {}\n\n", row.name)));
            assert!(
                text.len() > 100 && !text[1..].contains("\n## "),
                "{}",
                row.name
            );
            for cell in [row.summary, row.read_by, row.written_by] {
                assert!(cell.len() > 4, "{}", row.name);
            }
        }
    }

    /// Also tests that the format is detected.
    #[test]
    fn examples_of_rules_are_read() {
        for format in RuleFormat::ALL {
            let text = example(format.name()).unwrap();
            for said in [None, Some(format)] {
                let loaded = read_policy("example", text, said, None, &ReadOptions::default());
                let loaded = loaded.unwrap_or_else(|error| panic!("{format}: {error}"));
                assert!(loaded.value.len() > 1, "{format}");
            }
        }
    }

    /// Also tests that the format is detected.
    #[test]
    fn examples_of_configurations_are_read() {
        for format in ConfigFormat::ALL {
            let text = example(format.name()).unwrap();
            assert_eq!(InputFormat::detect(text), Some(InputFormat::Config(format)));
            let options = ReadOptions::default();
            let config = read(
                "example",
                text,
                format,
                &options,
                &mut Conditions::default(),
            );
            let config = config.unwrap_or_else(|error| panic!("{format}: {error}"));
            assert!(config.policy.len() > 1, "{format}");
        }
    }

    #[test]
    fn examples_of_schemas_and_traces_are_read() {
        let schema = read_schema("example", example("schema").unwrap()).unwrap();
        assert_eq!(schema.fields().len(), 2);
        for expected in [false, true] {
            let text = example("trace").unwrap();
            let options = ReadOptions::default();
            let loaded = read_trace("example", text, None, expected, &options).unwrap();
            assert_eq!(loaded.value.headers.len(), 2);
        }
    }

    /// Binary files, and formats with examples in other documents.
    #[test]
    fn only_these_formats_have_no_example() {
        let without: Vec<&str> = rows()
            .iter()
            .map(|row| row.name)
            .filter(|name| example(name).is_none())
            .collect();
        assert_eq!(without, ["capture", "profile", "seed", "report"]);
    }
}
