//! The report of a replay.

use std::cmp::Reverse;
use std::io::{self, Write};

use classyard_datapath::flow::{FlowEntry, TableId};
use classyard_datapath::group::GroupType;
use classyard_datapath::limits::PacketLimit;
use classyard_datapath::meter::{BandKind, MeterUnit};
use classyard_datapath::pipeline::{Count, Pipeline};
use classyard_datapath::{Flaw, PortNo};
use classyard_report::input::switch::Lines;
use classyard_report::output::style::{counted, grouped};
use classyard_report::output::table::{Side, Table, fact, heading, remark};
use classyard_report::output::{Report, csv};
use classyard_report::reporter::Reporter;
use serde::Serialize;

use super::Replayed;
use super::caches::CacheReport;
use super::rate::Rate;
use crate::commands::rows::{MAX_ROWS, remark_more};
use crate::commands::script::{ItemLines, LineRow, ScriptReport, ScriptRun};

/// The report of a replay.
#[derive(Serialize)]
pub(super) struct ReplayReport {
    capture: CaptureRow,
    script: Option<ScriptReport>,
    /// The flow caches while the capture was replayed at its times; `None` without caches.
    caches: Option<CacheReport>,
    pub(super) rate: Option<Rate>,
    tables: Vec<TableRow>,
    flows: Vec<FlowRow>,
    /// The number of flows that are not listed.
    flows_not_listed: usize,
    removed: Vec<RemovedRow>,
    groups: Vec<GroupRow>,
    meters: Vec<MeterRow>,
    ports: Vec<PortRow>,
    controller: Vec<ReasonRow>,
    /// Packets that were dropped because of a limit, by limit.
    limits: Vec<ReasonRow>,
}

/// The capture that was replayed.
#[derive(Serialize)]
pub(super) struct CaptureRow {
    pub(super) source: String,
    pub(super) packets: usize,
    pub(super) left_out: usize,
    pub(super) malformed: Vec<ReasonRow>,
}

#[derive(Serialize)]
struct TableRow {
    table: u8,
    flows: usize,
    max_flows: u32,
    lookups: u64,
    matched: u64,
}

#[derive(Serialize)]
struct FlowRow {
    #[serde(flatten)]
    line: LineRow,
    table: u8,
    priority: u16,
    #[serde(rename = "match")]
    matches: String,
    actions: String,
    packets: u64,
    bytes: u64,
    last_seconds: Option<f64>,
}

#[derive(Serialize)]
struct RemovedRow {
    #[serde(flatten)]
    line: LineRow,
    table: u8,
    priority: u16,
    #[serde(rename = "match")]
    matches: String,
    reason: &'static str,
    seconds: f64,
    packets: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct GroupRow {
    #[serde(flatten)]
    line: LineRow,
    group: u32,
    #[serde(rename = "type")]
    kind: &'static str,
    packets: u64,
    bytes: u64,
    buckets: Vec<BucketRow>,
}

#[derive(Serialize)]
struct BucketRow {
    actions: String,
    packets: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct MeterRow {
    #[serde(flatten)]
    line: LineRow,
    meter: u32,
    unit: &'static str,
    packets: u64,
    bytes: u64,
    bands: Vec<BandRow>,
}

#[derive(Serialize)]
struct BandRow {
    #[serde(rename = "type")]
    kind: &'static str,
    rate: u32,
    packets: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct PortRow {
    port: String,
    line: Option<usize>,
    name: Option<String>,
    /// `up` or `down`, at the end of the replay.
    link: Option<&'static str>,
    speed: Option<String>,
    received_packets: u64,
    received_bytes: u64,
    sent_packets: u64,
    sent_bytes: u64,
}

/// A number of packets and their reason.
#[derive(Serialize)]
pub(super) struct ReasonRow {
    reason: &'static str,
    packets: u64,
}

/// Returns the flows of a pipeline by table and priority, or the `top` flows with
/// the most packets.
fn flow_rows(
    pipeline: &Pipeline,
    line: impl Fn(&FlowEntry) -> LineRow,
    top: Option<usize>,
) -> Vec<FlowRow> {
    let mut entries: Vec<(&FlowEntry, LineRow, Count)> = pipeline
        .flows()
        .iter()
        .map(|entry| (entry, line(entry), pipeline.flow_count(entry.id)))
        .collect();
    let by_priority = |(entry, line, _): &(&FlowEntry, LineRow, Count)| {
        (entry.table, Reverse(entry.priority), *line, entry.id)
    };
    match top {
        Some(top) => {
            let by_packets = |row: &(_, _, Count)| (Reverse(row.2.packets), by_priority(row));
            // Only the listed flows are sorted, since a pipeline may have a million.
            if top < entries.len() {
                entries.select_nth_unstable_by_key(top, by_packets);
                entries.truncate(top);
            }
            entries.sort_unstable_by_key(by_packets);
        }
        None => entries.sort_unstable_by_key(by_priority),
    }
    let rows = entries.into_iter().map(|(entry, line, count)| FlowRow {
        line,
        table: entry.table.0,
        priority: entry.priority,
        matches: entry.flow.to_string(),
        actions: entry.instructions.to_string(),
        packets: count.packets,
        bytes: count.bytes,
        last_seconds: pipeline.last_match(entry.id).map(|last| last.as_secs_f64()),
    });
    rows.collect()
}

/// Returns the non-zero packet counts by kind of malformation.
pub(super) fn malformed(packets: &[u64]) -> Vec<ReasonRow> {
    let rows = Flaw::ALL.iter().zip(packets);
    let rows = rows.filter(|(_, packets)| **packets > 0);
    rows.map(|(flaw, &packets)| ReasonRow {
        reason: flaw.name(),
        packets,
    })
    .collect()
}

/// Returns the non-zero counts of packets that were dropped because of a limit.
fn limits(pipeline: &Pipeline) -> Vec<ReasonRow> {
    let counts = pipeline.limit_counts();
    let rows = PacketLimit::ALL.iter().map(|limit| ReasonRow {
        reason: limit.name(),
        packets: counts.get(*limit),
    });
    rows.filter(|row| row.packets > 0).collect()
}

/// Returns the ports that sent or received packets, and the ports that lines describe.
fn port_rows(pipeline: &Pipeline, lines: &Lines, replayed: &Replayed) -> Vec<PortRow> {
    let mut counts = replayed.ports.ports.clone();
    for port in lines.ports() {
        counts.entry(port).or_default();
    }
    let rows = counts.iter().map(|(&port, count): (&PortNo, _)| {
        let state = pipeline.ports().get(port);
        PortRow {
            port: port.to_string(),
            line: lines.port(port),
            name: state.and_then(|state| Some(state.name?.as_str().to_owned())),
            link: state.map(|state| if state.is_up { "up" } else { "down" }),
            speed: state.and_then(|state| Some(state.speed?.to_string())),
            received_packets: count.received.packets,
            received_bytes: count.received.bytes,
            sent_packets: count.sent.packets,
            sent_bytes: count.sent.bytes,
        }
    });
    rows.collect()
}

impl ReplayReport {
    pub(super) fn new(
        pipeline: &Pipeline,
        lines: &Lines,
        replayed: &Replayed,
        capture: CaptureRow,
        top: Option<usize>,
    ) -> ReplayReport {
        let tables = (0..=TableId::LAST.0).map(TableId);
        let tables = tables.filter_map(|table| {
            let flows = pipeline.flows().table(table).count();
            let count = pipeline.table_count(table);
            (flows > 0 || count.lookups > 0).then_some(TableRow {
                table: table.0,
                flows,
                max_flows: pipeline.flows().config(table).max_entries,
                lookups: count.lookups,
                matched: count.matched,
            })
        });
        let flow_count = pipeline.flows().iter().count();
        let script = replayed.script.as_ref();
        let item_lines = ItemLines::new(lines, script);
        let flows = flow_rows(pipeline, |entry| item_lines.flow(entry), top);
        let removed = replayed.removed.iter().map(|gone| RemovedRow {
            line: item_lines.flow(&gone.entry),
            table: gone.entry.table.0,
            priority: gone.entry.priority,
            matches: gone.entry.flow.to_string(),
            reason: gone.reason.name(),
            seconds: gone.duration.as_secs_f64(),
            packets: gone.count.packets,
            bytes: gone.count.bytes,
        });
        let groups = pipeline.groups().iter().map(|group| {
            let count = pipeline.group_count(group.id);
            let buckets = group.buckets.iter().enumerate().map(|(number, bucket)| {
                let count = count.buckets.get(number).copied().unwrap_or_default();
                let actions: Vec<String> = bucket.actions.iter().map(ToString::to_string).collect();
                BucketRow {
                    actions: actions.join(","),
                    packets: count.packets,
                    bytes: count.bytes,
                }
            });
            GroupRow {
                line: item_lines.group(group.id),
                group: group.id.0,
                kind: match group.kind {
                    GroupType::All => "all",
                    GroupType::Select => "select",
                    GroupType::Indirect => "indirect",
                    GroupType::FastFailover => "ff",
                },
                packets: count.all.packets,
                bytes: count.all.bytes,
                buckets: buckets.collect(),
            }
        });
        let meters = pipeline.meters().iter().map(|meter| {
            let count = pipeline.meter_count(meter.id);
            let bands = meter.bands.iter().zip(&count.bands);
            MeterRow {
                line: item_lines.meter(meter.id),
                meter: meter.id.0,
                unit: match meter.unit {
                    MeterUnit::Kilobits => "kbps",
                    MeterUnit::Packets => "pktps",
                },
                packets: count.all.packets,
                bytes: count.all.bytes,
                bands: bands
                    .map(|(band, count)| BandRow {
                        kind: match band.kind {
                            BandKind::Drop => "drop",
                            BandKind::DscpRemark(_) => "dscp_remark",
                        },
                        rate: band.rate,
                        packets: count.packets,
                        bytes: count.bytes,
                    })
                    .collect(),
            }
        });
        let controller = replayed.ports.controller.iter();
        let caches = replayed.caches;
        ReplayReport {
            capture,
            script: script.map(ScriptRun::report),
            caches: caches
                .as_ref()
                .map(|status| CacheReport::new(std::slice::from_ref(status))),
            rate: None,
            tables: tables.collect(),
            flows_not_listed: flow_count - flows.len(),
            flows,
            removed: removed.collect(),
            groups: groups.collect(),
            meters: meters.collect(),
            ports: port_rows(pipeline, lines, replayed),
            controller: controller
                .map(|(&reason, &packets)| ReasonRow { reason, packets })
                .collect(),
            limits: limits(pipeline),
        }
    }

    /// Notes if the rate was measured with only a part of the capture.
    pub(super) fn note_held_packets(&self, reporter: Reporter) {
        let Some(rate) = &self.rate else { return };
        if rate.held_packets < self.capture.packets {
            reporter.note(&format!(
                "the rate was measured with the first {} of {}; --rate-memory sets the limit",
                grouped(rate.held_packets),
                counted(self.capture.packets, "packet")
            ));
        }
    }

    fn write_flows(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        heading(out, "Flows")?;
        let mut table = Table::new(&[
            ("line", Side::Right),
            ("table", Side::Right),
            ("priority", Side::Right),
            ("packets", Side::Right),
            ("bytes", Side::Right),
            ("match", Side::Left),
            ("actions", Side::Left),
        ]);
        for flow in &self.flows {
            table.row(vec![
                flow.line.text(),
                flow.table.to_string(),
                flow.priority.to_string(),
                grouped(flow.packets),
                grouped(flow.bytes),
                match flow.matches.is_empty() {
                    true => "every packet".to_owned(),
                    false => flow.matches.clone(),
                },
                flow.actions.clone(),
            ]);
        }
        table.write(out)?;
        match self.flows_not_listed {
            0 => Ok(()),
            count => {
                let flows_left = counted(count, "more flow");
                remark(
                    out,
                    &format!("and {flows_left} (--top N lists N, --format csv all)"),
                )
            }
        }
    }

    fn write_removed(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        heading(
            out,
            match self.script {
                Some(_) => "Removed flows",
                None => "Expired and evicted flows",
            },
        )?;
        let mut table = Table::new(&[
            ("line", Side::Right),
            ("table", Side::Right),
            ("priority", Side::Right),
            ("packets", Side::Right),
            ("bytes", Side::Right),
            ("after", Side::Right),
            ("reason", Side::Left),
            ("match", Side::Left),
        ]);
        for flow in self.removed.iter().take(MAX_ROWS) {
            table.row(vec![
                flow.line.text(),
                flow.table.to_string(),
                flow.priority.to_string(),
                grouped(flow.packets),
                grouped(flow.bytes),
                format!("{:.1} s", flow.seconds),
                flow.reason.to_owned(),
                flow.matches.clone(),
            ]);
        }
        table.write(out)?;
        remark_more(
            out,
            self.removed.len().saturating_sub(MAX_ROWS),
            "more flow",
        )
    }

    fn write_groups(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        heading(out, "Groups")?;
        let mut table = Table::new(&[
            ("line", Side::Right),
            ("group", Side::Right),
            ("type", Side::Left),
            ("packets", Side::Right),
            ("bytes", Side::Right),
            ("bucket", Side::Left),
        ]);
        let group_row = |group: &GroupRow| {
            vec![
                group.line.text(),
                group.group.to_string(),
                group.kind.to_owned(),
                grouped(group.packets),
                grouped(group.bytes),
                String::new(),
            ]
        };
        let bucket_row = |bucket: &BucketRow| {
            vec![
                String::new(),
                String::new(),
                String::new(),
                grouped(bucket.packets),
                grouped(bucket.bytes),
                bucket.actions.clone(),
            ]
        };
        let rows = self.groups.iter().flat_map(|group| {
            let buckets = group.buckets.iter().map(bucket_row);
            std::iter::once_with(move || group_row(group)).chain(buckets)
        });
        rows.take(MAX_ROWS).for_each(|row| table.row(row));
        let rows = self.groups.iter().map(|group| 1 + group.buckets.len());
        let rows_left = rows.sum::<usize>().saturating_sub(MAX_ROWS);
        table.write(out)?;
        remark_more(out, rows_left, "more row")
    }

    fn write_meters(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        heading(out, "Meters")?;
        let mut table = Table::new(&[
            ("line", Side::Right),
            ("meter", Side::Right),
            ("packets", Side::Right),
            ("bytes", Side::Right),
            ("band", Side::Left),
        ]);
        for meter in self.meters.iter().take(MAX_ROWS) {
            table.row(vec![
                meter.line.text(),
                meter.meter.to_string(),
                grouped(meter.packets),
                grouped(meter.bytes),
                String::new(),
            ]);
            for band in &meter.bands {
                table.row(vec![
                    String::new(),
                    String::new(),
                    grouped(band.packets),
                    grouped(band.bytes),
                    format!("{} above {} {}", band.kind, band.rate, meter.unit),
                ]);
            }
        }
        table.write(out)?;
        remark_more(
            out,
            self.meters.len().saturating_sub(MAX_ROWS),
            "more meter",
        )
    }

    fn write_ports(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        heading(out, "Ports")?;
        let is_described = self.ports.iter().any(|port| port.line.is_some());
        let mut columns = vec![("port", Side::Left)];
        if is_described {
            let descriptions = ["name", "link", "speed"];
            columns.extend(descriptions.map(|name| (name, Side::Left)));
        }
        columns.extend(["received", "bytes", "sent", "bytes"].map(|name| (name, Side::Right)));
        let mut table = Table::new(&columns);
        let row = |port: &str, descriptions: [&str; 3], counts: [String; 4]| {
            let descriptions = descriptions.iter().filter(|_| is_described);
            let texts = std::iter::once(&port).chain(descriptions);
            texts.map(|text| (*text).to_owned()).chain(counts).collect()
        };
        for port in &self.ports {
            let [name, speed] = [&port.name, &port.speed].map(|text| text.as_deref().unwrap_or(""));
            let counts = [
                port.received_packets,
                port.received_bytes,
                port.sent_packets,
                port.sent_bytes,
            ];
            let link = port.link.unwrap_or("");
            table.row(row(&port.port, [name, link, speed], counts.map(grouped)));
        }
        for reason in &self.controller {
            let port = format!("controller ({})", reason.reason);
            let sent = grouped(reason.packets);
            let counts = [String::new(), String::new(), sent, String::new()];
            table.row(row(&port, [""; 3], counts));
        }
        table.write(out)
    }
}

impl Report for ReplayReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        let CaptureRow {
            source,
            packets,
            left_out,
            malformed,
        } = &self.capture;
        fact(
            out,
            "Capture",
            format!("{source}, {}", counted(*packets, "packet")),
        )?;
        if *left_out > 0 {
            fact(
                out,
                "Left out",
                format!(
                    "{} that cannot be converted to Ethernet frames",
                    counted(*left_out, "packet")
                ),
            )?;
        }
        for row in malformed {
            fact(
                out,
                "Malformed",
                format!("{} {}", grouped(row.packets), row.reason),
            )?;
        }
        for row in &self.limits {
            let text = format!("{} {}", grouped(row.packets), row.reason);
            fact(out, "Dropped by limit", text)?;
        }
        if let Some(script) = &self.script {
            for (name, text) in script.facts() {
                fact(out, name, text)?;
            }
        }
        for (name, text) in self.caches.iter().flat_map(CacheReport::facts) {
            fact(out, name, text)?;
        }
        if let Some(rate) = &self.rate {
            let mut text = rate.text();
            if rate.held_packets < *packets {
                let held = grouped(rate.held_packets);
                text += &format!(", with the first {held} packets");
            }
            fact(out, "Rate", text)?;
            if let Some(text) = rate.caches().and_then(CacheReport::bypasses) {
                fact(out, "Bypasses", text)?;
            }
            for node in rate.nodes() {
                let text = format!(
                    "{:.1} ns a packet, {}",
                    node.ns_per_packet,
                    counted(node.packets, "packet")
                );
                fact(out, node.node, text)?;
            }
        }
        writeln!(out)?;
        heading(out, "Tables")?;
        let mut table = Table::new(&[
            ("table", Side::Right),
            ("flows", Side::Right),
            ("lookups", Side::Right),
            ("matched", Side::Right),
        ]);
        for row in &self.tables {
            table.row(vec![
                row.table.to_string(),
                row.flows.to_string(),
                grouped(row.lookups),
                grouped(row.matched),
            ]);
        }
        table.write(out)?;
        if let Some(script) = &self.script {
            script.write(out)?;
        }
        self.write_flows(out)?;
        if !self.removed.is_empty() {
            self.write_removed(out)?;
        }
        if !self.groups.is_empty() {
            self.write_groups(out)?;
        }
        if !self.meters.is_empty() {
            self.write_meters(out)?;
        }
        self.write_ports(out)
    }

    /// Writes the flows.
    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"line",
            &"table",
            &"priority",
            &"match",
            &"actions",
            &"packets",
            &"bytes",
            &"last_seconds",
            &"script_line",
        ])?;
        for flow in &self.flows {
            out.row(&[
                &csv::optional(flow.line.line.as_ref()),
                &flow.table,
                &flow.priority,
                &flow.matches,
                &flow.actions,
                &flow.packets,
                &flow.bytes,
                &csv::optional(flow.last_seconds.as_ref()),
                &csv::optional(flow.line.script_line.as_ref()),
            ])?;
        }
        Ok(())
    }
}
