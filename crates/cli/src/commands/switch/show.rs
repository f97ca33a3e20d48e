//! `classyard switch show`: the state of a running switch.

use std::io::{self, Write};

use classyard_report::failure::Failure;
use classyard_report::output::style::{grouped, percent};
use classyard_report::output::table::{Side, Table, fact, heading};
use classyard_report::output::{OutputArgs, Report, csv};
use classyard_switch::control::{DropCount, Request, SwitchStatus};
use serde::Serialize;

use super::target::NamedSwitch;

/// Show the ports, workers, tables and controllers of a running switch
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch show
  classyard switch show br0 --format json
  classyard switch show br0 --format csv > ports.csv

Counts begin when the switch starts. docs/switch.md describes the reasons of drops.")]
pub(crate) struct Args {
    #[command(flatten)]
    switch: NamedSwitch,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
#[serde(transparent)]
struct StatusReport(SwitchStatus);

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let mut target = args.switch.connect()?;
    let status = target.request(&Request::Show)?;
    args.output.report(&StatusReport(status))
}

impl Report for StatusReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        let status = &self.0;
        let name = format!("{}, datapath id {}", status.name, status.datapath_id);
        fact(out, "Switch", name)?;
        let uptime = uptime(status.uptime_seconds);
        fact(
            out,
            "Running",
            format!("{uptime}, version {}", status.version),
        )?;
        if !status.listeners.is_empty() {
            fact(out, "Listens on", status.listeners.join("\n"))?;
        }
        let sections = [
            ("Ports", ports(status)),
            ("Workers", workers(status)),
            ("Flow caches", caches(status)),
            ("Tables", tables(status)),
            ("Controllers", controllers(status)),
        ];
        for (title, table) in sections {
            if !table.is_empty() {
                writeln!(out)?;
                heading(out, title)?;
                table.write(out)?;
            }
        }
        Ok(())
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"number",
            &"name",
            &"device",
            &"link",
            &"received_packets",
            &"received_bytes",
            &"sent_packets",
            &"sent_bytes",
            &"dropped_packets",
        ])?;
        for port in &self.0.ports {
            out.row(&[
                &port.number,
                &port.name,
                &port.device,
                &port.link.word(),
                &port.received_packets,
                &port.received_bytes,
                &port.sent_packets,
                &port.sent_bytes,
                &total(&port.drops),
            ])?;
        }
        Ok(())
    }
}

fn ports(status: &SwitchStatus) -> Table {
    let mut table = Table::new(&[
        ("number", Side::Right),
        ("port", Side::Left),
        ("device", Side::Left),
        ("link", Side::Left),
        ("received", Side::Right),
        ("bytes", Side::Right),
        ("sent", Side::Right),
        ("bytes", Side::Right),
        ("dropped", Side::Left),
    ]);
    for port in &status.ports {
        table.row(vec![
            port.number.to_string(),
            port.name.clone(),
            port.device.clone(),
            port.link.word().to_owned(),
            grouped(port.received_packets),
            grouped(port.received_bytes),
            grouped(port.sent_packets),
            grouped(port.sent_bytes),
            drops(&port.drops),
        ]);
    }
    table
}

fn workers(status: &SwitchStatus) -> Table {
    let mut table = Table::new(&[
        ("worker", Side::Right),
        ("CPU", Side::Right),
        ("packets", Side::Right),
        ("vectors", Side::Right),
        ("sleeps", Side::Right),
        ("jobs", Side::Right),
        ("dropped", Side::Left),
    ]);
    for worker in &status.workers {
        let cpu = worker.cpu.map(|cpu| cpu.to_string());
        table.row(vec![
            worker.worker.to_string(),
            cpu.unwrap_or_else(|| "any".to_owned()),
            grouped(worker.packets),
            grouped(worker.vectors),
            grouped(worker.sleeps),
            grouped(worker.jobs),
            drops(&worker.drops),
        ]);
    }
    table
}

fn caches(status: &SwitchStatus) -> Table {
    let mut table = Table::new(&[
        ("worker", Side::Right),
        ("microflow hits", Side::Right),
        ("microflows", Side::Right),
        ("megaflow hits", Side::Right),
        ("megaflows", Side::Right),
        ("masks", Side::Right),
        ("packets to tables", Side::Right),
    ]);
    for worker in &status.workers {
        let Some(caches) = &worker.caches else {
            continue;
        };
        table.row(vec![
            worker.worker.to_string(),
            share(caches.microflow_hits, caches.microflow_lookups),
            grouped(caches.microflows as u64),
            share(caches.megaflow_hits, caches.megaflow_lookups),
            grouped(caches.megaflows as u64),
            grouped(caches.masks as u64),
            grouped(caches.by_tables),
        ]);
    }
    table
}

fn tables(status: &SwitchStatus) -> Table {
    let mut table = Table::new(&[
        ("table", Side::Right),
        ("entries", Side::Right),
        ("lookups", Side::Right),
        ("matches", Side::Right),
    ]);
    for row in &status.tables {
        table.row(vec![
            row.table.to_string(),
            grouped(row.entries as u64),
            grouped(row.lookups),
            grouped(row.matches),
        ]);
    }
    table
}

fn controllers(status: &SwitchStatus) -> Table {
    let mut table = Table::new(&[
        ("address", Side::Left),
        ("state", Side::Left),
        ("role", Side::Left),
        ("received", Side::Right),
        ("sent", Side::Right),
        ("dropped packet-ins", Side::Right),
    ]);
    for controller in &status.controllers {
        let role = controller.role.map_or("", |role| role.word());
        table.row(vec![
            controller.address.clone(),
            controller.state.word().to_owned(),
            role.to_owned(),
            grouped(controller.received_messages),
            grouped(controller.sent_messages),
            grouped(controller.dropped_packet_ins),
        ]);
    }
    table
}

fn total(drops: &[DropCount]) -> u64 {
    drops.iter().map(|drop| drop.packets).sum()
}

/// Returns drops for people: `12: no_room 10, missed 2`.
fn drops(drops: &[DropCount]) -> String {
    let reasons = drops
        .iter()
        .map(|drop| format!("{} {}", drop.reason, grouped(drop.packets)));
    match reasons.collect::<Vec<_>>().join(", ") {
        reasons if reasons.is_empty() => "0".to_owned(),
        reasons => format!("{}: {reasons}", grouped(total(drops))),
    }
}

/// Returns hits as a percentage of lookups.
#[allow(clippy::cast_precision_loss)] // shown with three digits
fn share(hits: u64, lookups: u64) -> String {
    match lookups {
        0 => "–".to_owned(),
        _ => percent(hits as f64 / lookups as f64),
    }
}

/// Returns a time in its two largest units: `3 d 4 h`, `12 min 5 s`.
fn uptime(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let first = units.iter().position(|(_, unit)| seconds >= *unit);
    let mut parts = Vec::new();
    let mut rest_seconds = seconds;
    for (name, unit) in units.iter().skip(first.unwrap_or(3)).take(2) {
        parts.push(format!("{} {name}", rest_seconds / unit));
        rest_seconds %= unit;
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units() {
        let times = [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min 0 s"),
            (3_725, "1 h 2 min"),
            (90_000, "1 d 1 h"),
        ];
        for (seconds, text) in times {
            assert_eq!(uptime(seconds), text);
        }
    }

    #[test]
    fn drops_have_their_reasons() {
        assert_eq!(drops(&[]), "0");
        let of = |reason: &str, packets| DropCount {
            reason: reason.to_owned(),
            packets,
        };
        let text = drops(&[of("no_room", 1_000), of("missed", 2)]);
        assert_eq!(text, "1,002: no_room 1,000, missed 2");
    }
}
