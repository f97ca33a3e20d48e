//! `classyard switch dump-megaflows`: the megaflows in the caches of a running switch.

use std::io::{self, Write};

use classyard_report::failure::Failure;
use classyard_report::input::count;
use classyard_report::output::style::{counted, grouped};
use classyard_report::output::table::{Side, Table, fact, remark};
use classyard_report::output::{OutputArgs, Report, csv};
use classyard_switch::control::{MAX_LISTED_MEGAFLOWS, MegaflowList, MegaflowStatus, Request};
use serde::Serialize;

use super::target::NamedSwitch;

/// List the megaflows in the flow caches of a running switch
///
/// Each worker has a cache of its own. A megaflow covers all packets that agree in the fields
/// and bits that it lists. Megaflows that are added or removed during the listing may be left
/// out or listed twice.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch dump-megaflows
  classyard switch dump-megaflows br0 --limit 20k --format json")]
pub(crate) struct Args {
    #[command(flatten)]
    switch: NamedSwitch,

    /// Maximum number of megaflows to list, of all workers together
    #[arg(long, default_value = "4096", value_name = "COUNT", value_parser = limit)]
    limit: usize,

    #[command(flatten)]
    output: OutputArgs,
}

/// Parses the limit, for the argument parser.
fn limit(text: &str) -> Result<usize, String> {
    match count(text)? {
        limit @ 1..=MAX_LISTED_MEGAFLOWS => Ok(limit),
        _ => Err(format!("`{text}`; expected 1 to {MAX_LISTED_MEGAFLOWS}")),
    }
}

#[derive(Serialize)]
struct MegaflowReport {
    switch: String,
    #[serde(flatten)]
    list: MegaflowList,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let mut target = args.switch.connect()?;
    let list = target.request(&Request::DumpMegaflows { limit: args.limit })?;
    args.output.report(&MegaflowReport {
        switch: target.name,
        list,
    })
}

impl Report for MegaflowReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        fact(out, "Switch", &self.switch)?;
        let workers = self.list.workers.iter().map(|worker| {
            let megaflows = counted(worker.megaflows, "megaflow");
            match worker.left_out {
                0 => format!("worker {}: {megaflows}", worker.worker),
                left_out => format!(
                    "worker {}: {megaflows}, {} not listed",
                    worker.worker,
                    grouped(left_out)
                ),
            }
        });
        fact(out, "Caches", workers.collect::<Vec<_>>().join("\n"))?;
        if !self.list.megaflows.is_empty() {
            writeln!(out)?;
            self.megaflows().write(out)?;
        }
        if self.list.workers.iter().any(|worker| worker.left_out > 0) {
            remark(out, "--limit COUNT lists more")?;
        }
        Ok(())
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"worker",
            &"covers",
            &"bits",
            &"tables",
            &"continues_at",
            &"actions",
            &"stale",
            &"path_packets",
        ])?;
        for row in &self.list.megaflows {
            out.row(&[
                &row.worker,
                &row.megaflow.covers,
                &row.megaflow.bits,
                &tables(row),
                &csv::optional(row.megaflow.continues_at.as_ref()),
                &row.actions,
                &row.stale,
                &row.path_packets,
            ])?;
        }
        Ok(())
    }
}

impl MegaflowReport {
    fn megaflows(&self) -> Table {
        let mut table = Table::new(&[
            ("worker", Side::Right),
            ("covers", Side::Left),
            ("skips tables", Side::Left),
            ("packets of path", Side::Right),
            ("actions", Side::Left),
        ]);
        for row in &self.list.megaflows {
            table.row(vec![
                row.worker.to_string(),
                row.megaflow.covers.clone(),
                tables(row),
                grouped(row.path_packets),
                decision(row),
            ]);
        }
        table
    }
}

fn tables(row: &MegaflowStatus) -> String {
    let tables = row.megaflow.tables.iter().map(u8::to_string);
    tables.collect::<Vec<_>>().join(" ")
}

/// Returns the actions for people, and where the packets continue.
fn decision(row: &MegaflowStatus) -> String {
    let mut parts = Vec::new();
    if !row.actions.is_empty() {
        parts.push(row.actions.clone());
    }
    if let Some(table) = row.megaflow.continues_at {
        parts.push(format!("continues at table {table}"));
    }
    if row.stale {
        parts.push("stale".to_owned());
    }
    parts.join(", ")
}
