//! The report of rates: tables for a terminal, lines for files, rows for spreadsheets.

use std::io::{self, Write};

use classyard_report::output::style::{grouped, percent, three_digits};
use classyard_report::output::table::{Side, Table, fact, heading};
use classyard_report::output::{Report, csv};

use super::rates::{ControllerRates, DropRates, PortRates, TopReport, WorkerRates};

/// The text for a share of nothing.
const NONE: &str = "–";

/// Returns a rate with three digits and a decimal prefix: `1.23 M`.
fn rate(rate: f64) -> String {
    let prefixes = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    let prefix = prefixes.into_iter().find(|(scale, _)| rate >= *scale);
    let (scale, prefix) = prefix.unwrap_or((1.0, ""));
    match rate == 0.0 {
        true => "0".to_owned(),
        false => format!("{}{prefix}", three_digits(rate / scale)),
    }
}

/// Returns a rate with its unit: `1.23 Mbit/s`, `0 packets/s`.
fn with_unit(value: f64, unit: &str) -> String {
    let number = rate(value);
    match number.split_once(' ') {
        Some((number, prefix)) if unit.starts_with("bit") => format!("{number} {prefix}{unit}"),
        Some((number, prefix)) => format!("{number} {prefix} {unit}"),
        None => format!("{number} {unit}"),
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| NONE.to_owned(), percent)
}

impl Report for TopReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        fact(out, "Switch", &self.switch)?;
        let running = format!(
            "{} s; rates of the last {} s",
            grouped(whole(self.uptime_seconds)),
            three_digits(self.seconds)
        );
        fact(out, "Running", running)?;
        let sections = [
            ("Ports, per second", self.ports()),
            ("Workers, per second", self.workers()),
            ("Drops, per second", self.drops()),
            ("Controllers, per second", self.controllers()),
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
        self.rows(out, true)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a time of less than 2^53 s
fn whole(seconds: f64) -> u64 {
    seconds as u64
}

impl TopReport {
    /// Writes a line for each port, worker, reason of drops, and controller.
    pub(super) fn lines(&self, out: &mut dyn Write) -> io::Result<()> {
        let time = format!("{:.1} s", self.uptime_seconds);
        for port in &self.ports {
            writeln!(out, "{time}  {}", port_line(port))?;
        }
        for worker in &self.workers {
            writeln!(out, "{time}  {}", worker_line(worker))?;
        }
        for drop in &self.drops {
            writeln!(out, "{time}  {}", drop_line(drop))?;
        }
        for controller in &self.controllers {
            writeln!(out, "{time}  {}", controller_line(controller))?;
        }
        Ok(())
    }

    /// Writes a row for each port.
    pub(super) fn rows(&self, out: &mut csv::Writer<'_>, has_heading: bool) -> io::Result<()> {
        if has_heading {
            out.row(&[
                &"uptime_seconds",
                &"seconds",
                &"number",
                &"name",
                &"link",
                &"received_packets",
                &"received_bits",
                &"sent_packets",
                &"sent_bits",
                &"dropped_packets",
            ])?;
        }
        for port in &self.ports {
            out.row(&[
                &self.uptime_seconds,
                &self.seconds,
                &port.number,
                &port.name,
                &port.link,
                &port.received_packets,
                &port.received_bits,
                &port.sent_packets,
                &port.sent_bits,
                &port.dropped_packets,
            ])?;
        }
        Ok(())
    }

    fn ports(&self) -> Table {
        let mut table = Table::new(&[
            ("number", Side::Right),
            ("port", Side::Left),
            ("link", Side::Left),
            ("packets in", Side::Right),
            ("bits in", Side::Right),
            ("packets out", Side::Right),
            ("bits out", Side::Right),
            ("dropped", Side::Right),
        ]);
        for port in &self.ports {
            table.row(vec![
                port.number.to_string(),
                port.name.clone(),
                port.link.to_owned(),
                rate(port.received_packets),
                rate(port.received_bits),
                rate(port.sent_packets),
                rate(port.sent_bits),
                rate(port.dropped_packets),
            ]);
        }
        table
    }

    fn workers(&self) -> Table {
        let mut table = Table::new(&[
            ("worker", Side::Right),
            ("CPU", Side::Right),
            ("busy", Side::Right),
            ("packets", Side::Right),
            ("per vector", Side::Right),
            ("microflow hits", Side::Right),
            ("megaflow hits", Side::Right),
            ("to tables", Side::Right),
        ]);
        for worker in &self.workers {
            let cpu = worker.cpu.map(|cpu| cpu.to_string());
            let vector = worker.packets_per_vector.map(three_digits);
            table.row(vec![
                worker.worker.to_string(),
                cpu.unwrap_or_else(|| "any".to_owned()),
                percent(worker.busy),
                rate(worker.packets),
                vector.unwrap_or_else(|| NONE.to_owned()),
                share(worker.microflow_hits),
                share(worker.megaflow_hits),
                rate(worker.by_tables),
            ]);
        }
        table
    }

    fn drops(&self) -> Table {
        let mut table = Table::new(&[
            ("at", Side::Left),
            ("reason", Side::Left),
            ("packets", Side::Right),
            ("in all", Side::Right),
        ]);
        for drop in &self.drops {
            table.row(vec![
                place(drop),
                drop.reason.clone(),
                rate(drop.dropped_packets),
                grouped(drop.total_packets),
            ]);
        }
        table
    }

    fn controllers(&self) -> Table {
        let mut table = Table::new(&[
            ("address", Side::Left),
            ("state", Side::Left),
            ("role", Side::Left),
            ("received", Side::Right),
            ("sent", Side::Right),
            ("dropped packet-ins", Side::Right),
        ]);
        for controller in &self.controllers {
            table.row(vec![
                controller.address.clone(),
                controller.state.to_owned(),
                controller.role.unwrap_or_default().to_owned(),
                rate(controller.received_messages),
                rate(controller.sent_messages),
                rate(controller.dropped_packet_ins),
            ]);
        }
        table
    }
}

/// Returns the port or the worker that dropped packets.
fn place(drop: &DropRates) -> String {
    match (&drop.port, drop.worker) {
        (Some(port), _) => format!("port {port}"),
        (None, worker) => format!("worker {}", worker.unwrap_or_default()),
    }
}

fn port_line(port: &PortRates) -> String {
    format!(
        "port {} {} {}: in {}, {}; out {}, {}; dropped {}",
        port.number,
        port.name,
        port.link,
        with_unit(port.received_packets, "packets/s"),
        with_unit(port.received_bits, "bit/s"),
        with_unit(port.sent_packets, "packets/s"),
        with_unit(port.sent_bits, "bit/s"),
        with_unit(port.dropped_packets, "packets/s"),
    )
}

fn worker_line(worker: &WorkerRates) -> String {
    format!(
        "worker {}: {} busy, {}; hits {} microflows, {} megaflows; to tables {}",
        worker.worker,
        percent(worker.busy),
        with_unit(worker.packets, "packets/s"),
        share(worker.microflow_hits),
        share(worker.megaflow_hits),
        with_unit(worker.by_tables, "packets/s"),
    )
}

fn drop_line(drop: &DropRates) -> String {
    format!(
        "drops of {}: {} {}, {} in all",
        place(drop),
        drop.reason,
        with_unit(drop.dropped_packets, "packets/s"),
        grouped(drop.total_packets)
    )
}

fn controller_line(controller: &ControllerRates) -> String {
    let role = controller.role.map(|role| format!(", {role}"));
    format!(
        "controller {}: {}{}; received {}, sent {}, dropped {}",
        controller.address,
        controller.state,
        role.unwrap_or_default(),
        with_unit(controller.received_messages, "messages/s"),
        with_unit(controller.sent_messages, "messages/s"),
        with_unit(controller.dropped_packet_ins, "packet-ins/s"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_and_a_prefix() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.500"),
            (12.0, "12.0"),
            (999.0, "999"),
            (1_234.0, "1.23 k"),
            (14_880_952.0, "14.9 M"),
            (9_523_809_524.0, "9.52 G"),
        ] {
            assert_eq!(rate(value), text);
        }
        assert_eq!(with_unit(1_234_567.0, "bit/s"), "1.23 Mbit/s");
        assert_eq!(with_unit(1_234.0, "packets/s"), "1.23 k packets/s");
        assert_eq!(with_unit(0.0, "bit/s"), "0 bit/s");
    }
}
