//! `classyard profiles`: lists the profiles for generated rules.

use std::io::{self, Write};

use classyard_report::failure::Failure;
use classyard_report::input::family::{OPENFLOW15, OPENFLOW15_SUMMARY, openflow_set};
use classyard_report::output::table::{Side, Table};
use classyard_report::output::{OutputArgs, Report, csv};
use classyard_workload::generate::{FlowTable, Profile};
use serde::Serialize;

/// List the built-in profiles that rule sets are generated from
///
/// Profiles of OpenFlow have fifteen fields. The others are five-tuples of the
/// requested family.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard profiles
  classyard profiles --show acl1 > mine.toml
      a profile as a file, to change and use with `classyard generate --profile mine.toml`")]
pub(crate) struct Args {
    /// Print this profile as a TOML file instead
    #[arg(long, value_name = "NAME")]
    show: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Profiles {
    profiles: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    summary: &'static str,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(name) = &args.show {
        let text = Profile::built_in_text(name).ok_or_else(|| {
            if openflow_set(name).is_some() {
                return Failure::usage(format!(
                    "`{name}` is built into the program and has no file"
                ));
            }
            let hint = classyard_report::suggestion::did_you_mean(name, Profile::BUILT_IN);
            Failure::usage(format!("there is no built-in profile `{name}`{hint}"))
        })?;
        let mut out = classyard_report::output::raw_stdout();
        out.write_all(text.as_bytes())?;
        return Ok(out.flush()?);
    }
    list(&args.output)
}

/// Lists the profiles.
pub(crate) fn list(output: &OutputArgs) -> Result<(), Failure> {
    let profiles = Profile::BUILT_IN
        .iter()
        .filter_map(|name| Profile::built_in(name));
    let mut rows: Vec<Row> = profiles
        .map(|profile| Row {
            name: profile.name(),
            summary: profile.summary(),
        })
        .collect();
    rows.push(Row {
        name: OPENFLOW15,
        summary: OPENFLOW15_SUMMARY,
    });
    rows.extend(FlowTable::ALL.map(|table| Row {
        name: table.name(),
        summary: table.summary(),
    }));
    output.report(&Profiles { profiles: rows })
}

impl Report for Profiles {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(&[("profile", Side::Left), ("what it is like", Side::Left)]);
        for profile in &self.profiles {
            table.row(vec![profile.name.to_owned(), profile.summary.to_owned()]);
        }
        table.write(out)
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[&"name", &"summary"])?;
        for profile in &self.profiles {
            out.row(&[&profile.name, &profile.summary])?;
        }
        Ok(())
    }
}
