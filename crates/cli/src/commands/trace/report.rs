//! The report of a trace.

use std::io::{self, Write};
use std::time::Duration;

use classyard_datapath::Packet;
use classyard_datapath::limits::PacketLimit;
use classyard_datapath::pipeline::{CacheAnswer, PacketTrace};
use classyard_report::output::style::{BOLD, DIM, GOOD, NOTABLE, counted, paint};
use classyard_report::output::table::fact;
use classyard_report::output::{Report, csv};
use classyard_switch::control::{
    LiveTrace, RefusedField, TraceChange, TraceMegaflow, TracePacket, TracePort, TraceStep,
    TraceTable,
};
use serde::Serialize;

use super::decision::{AlteredRow, write_altered};
use super::items::{flow_text, origin, port_text};
use crate::commands::script::{ItemLines, LineRow, ScriptReport};

/// The packet and its source.
pub(super) struct Traced<'t> {
    pub(super) source: String,
    /// The packet's number in the capture, from 1.
    pub(super) number: Option<usize>,
    pub(super) time: Duration,
    pub(super) packet: &'t Packet,
    /// The cache answers before and after the packet.
    pub(super) caches: Option<(CacheAnswer, CacheAnswer)>,
    pub(super) script: Option<TracedScript>,
}

/// The report on a script whose changes before the packet were made.
#[derive(Serialize)]
pub(super) struct TracedScript {
    #[serde(flatten)]
    pub(super) report: ScriptReport,
    /// The changes that altered the decision on the packet.
    pub(super) altered: Vec<AlteredRow>,
}

impl TracedScript {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (name, text) in self.report.facts() {
            fact(out, name, text)?;
        }
        let text = match self.altered.last() {
            None => "by no change of the script".to_owned(),
            Some(latest) => {
                let count = counted(self.altered.len(), "change");
                format!(
                    "by {count}, the latest {}",
                    latest.place(self.report.source())
                )
            }
        };
        fact(out, "Altered", text)?;
        write_altered(&self.altered, out)
    }
}

/// The report of a trace. Keys are stable.
#[derive(Serialize)]
pub(in crate::commands) struct TraceReport {
    pipeline: String,
    packet: TracePacket,
    /// `None` without a script.
    script: Option<TracedScript>,
    steps: Vec<TraceStep>,
    dropped: bool,
    /// `None` without caches.
    caches: Option<CacheRow>,
    /// `None` unless a running switch has the pipeline.
    #[serde(flatten)]
    live: Option<LiveRow>,
}

/// The part of a report that only traces of a running switch have.
#[derive(Serialize)]
struct LiveRow {
    /// `None` for a reserved port.
    port: Option<TracePort>,
    /// The megaflow that a worker adds for the packet.
    megaflow: Option<TraceMegaflow>,
}

impl LiveRow {
    fn write_port(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(port) = &self.port else {
            return Ok(());
        };
        let link = if port.is_up { "up" } else { "down" };
        let mut text = format!("{} {}, link {link}", port.number, port.name);
        if !port.receives {
            text.push_str(", does not receive (OFPPC_NO_RECV)");
        }
        fact(out, "Port", text)
    }
}

/// The contents of the flow caches for the packet.
#[derive(Serialize)]
struct CacheRow {
    /// True if the microflow cache had the packet's flow; `None` without such a
    /// cache.
    microflow_hit: Option<bool>,
    megaflow_hit: bool,
    /// True if a change made the packet's megaflow stale, so the tables processed the
    /// packet.
    megaflow_stale: bool,
    /// The megaflow that covers the packet; `None` if none was added.
    megaflow: Option<TraceMegaflow>,
}

impl CacheRow {
    fn new((before, after): &(CacheAnswer, CacheAnswer)) -> CacheRow {
        CacheRow {
            microflow_hit: before.microflow,
            megaflow_hit: before.megaflow.is_some() && !before.stale,
            megaflow_stale: before.stale,
            megaflow: after.megaflow.as_ref().map(TraceMegaflow::new),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let hit_text = |hit| if hit { "hit" } else { "miss" };
        let mut text = match (self.megaflow_stale, &self.megaflow) {
            (true, Some(_)) => "megaflow cache: stale, renewed by the tables".to_owned(),
            (true, None) => "megaflow cache: stale, removed".to_owned(),
            (false, _) => format!("megaflow cache: {}", hit_text(self.megaflow_hit)),
        };
        if let Some(hit) = self.microflow_hit {
            text = format!("microflow cache: {}, {text}", hit_text(hit));
        }
        fact(out, "Caches", text)?;
        let Some(megaflow) = &self.megaflow else {
            return fact(
                out,
                "Megaflow",
                "none was added: the first table is not skipped",
            );
        };
        write_megaflow(megaflow, out)
    }
}

fn write_megaflow(megaflow: &TraceMegaflow, out: &mut dyn Write) -> io::Result<()> {
    let tables: Vec<String> = megaflow.tables.iter().map(u8::to_string).collect();
    let plural = if tables.len() == 1 { "" } else { "s" };
    let mut text = format!(
        "{}; skips table{plural} {}",
        megaflow.covers,
        tables.join(", ")
    );
    if let Some(table) = megaflow.continues_at {
        text += &format!(", continues at table {table}");
    }
    fact(out, "Megaflow", text)
}

impl TraceReport {
    pub(super) fn new(
        lines: ItemLines<'_>,
        traced: Traced<'_>,
        story: &PacketTrace,
    ) -> TraceReport {
        let Traced {
            source,
            number,
            time,
            packet,
            caches,
            script,
        } = traced;
        TraceReport {
            pipeline: lines.source().to_owned(),
            packet: TracePacket::new(packet, source, number, time),
            script,
            steps: TraceStep::all(story, &|item| origin(lines, item)),
            dropped: story.is_dropped(),
            caches: caches.as_ref().map(CacheRow::new),
            live: None,
        }
    }

    /// Returns the report of a trace through a running switch.
    pub(in crate::commands) fn live(switch: &str, trace: LiveTrace) -> TraceReport {
        TraceReport {
            pipeline: format!("switch {switch}"),
            packet: trace.packet,
            script: None,
            steps: trace.steps,
            dropped: trace.dropped,
            caches: None,
            live: Some(LiveRow {
                port: trace.port,
                megaflow: trace.megaflow,
            }),
        }
    }

    fn write_packet(&self, out: &mut dyn Write) -> io::Result<()> {
        let packet = &self.packet;
        let source_text = match packet.number {
            Some(number) => format!("packet {number} of {}", packet.source),
            None => format!("from {}", packet.source),
        };
        let text = format!(
            "{source_text}, {}, by port {} after {:.3} s",
            counted(packet.bytes.len() / 2, "byte"),
            packet.in_port,
            packet.seconds
        );
        fact(out, "Packet", text)?;
        let fields = packet.fields.iter().filter(|row| row.field != "in_port");
        let fields: Vec<String> = fields
            .map(|row| format!("{}={}", row.field, row.value))
            .collect();
        for (number, chunk) in fields.chunks(5).enumerate() {
            fact(
                out,
                if number == 0 { "Fields" } else { "" },
                chunk.join(" "),
            )?;
        }
        if !packet.malformed.is_empty() {
            fact(out, "Malformed", packet.malformed.join(", "))?;
        }
        if let Some(live) = &self.live {
            live.write_port(out)?;
        }
        fact(out, "Pipeline", &self.pipeline)?;
        match &self.script {
            Some(script) => script.write(out),
            None => Ok(()),
        }
    }

    fn write_table(out: &mut dyn Write, table: &TraceTable) -> io::Result<()> {
        writeln!(out)?;
        let heading = format!("Table {}, {}", table.table, counted(table.flows, "flow"));
        writeln!(out, "{}", paint(BOLD, &heading))?;
        match &table.winner {
            Some(winner) => writeln!(out, "  {} {}", paint(GOOD, "wins"), flow_text(winner))?,
            None => writeln!(out, "  {}: no flow matches", paint(NOTABLE, "dropped"))?,
        }
        for near in &table.near {
            let refused: Vec<String> = near.refused_by.iter().map(refused_text).collect();
            let refused = refused.join(", ");
            writeln!(out, "  near {}", flow_text(&near.flow))?;
            writeln!(out, "       {}", paint(DIM, &format!("refused: {refused}")))?;
        }
        if !table.mattered.is_empty() {
            let mattered = format!("fields that mattered: {}", table.mattered.join(", "));
            writeln!(out, "  {}", paint(DIM, &mattered))?;
        }
        Ok(())
    }
}

fn refused_text(refused: &RefusedField) -> String {
    match &refused.packet {
        Some(packet) => format!("{} {packet} is not {}", refused.field, refused.flow),
        None => format!("no {}, wanted {}", refused.field, refused.flow),
    }
}

fn change_text(change: &TraceChange) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let (old, new) = (side(&change.old), side(&change.new));
    format!("{} {old} → {new}", change.field)
}

/// Writes a step for people.
fn write_step(step: &TraceStep, out: &mut dyn Write) -> io::Result<()> {
    let indent = "  ".repeat(step.depth + 1);
    let changes: Vec<String> = step.changes.iter().map(change_text).collect();
    let changes = changes.join(", ");
    if let Some(table) = &step.table {
        return TraceReport::write_table(out, table);
    }
    if let Some(meter) = &step.meter {
        let band = meter
            .band
            .map(|band| format!(" by band {band}"))
            .unwrap_or_default();
        return writeln!(out, "{indent}meter {}: {}{band}", meter.meter, meter.did);
    }
    if let Some(action) = &step.action {
        // The next step shows the destination.
        return match changes.is_empty() {
            true => writeln!(out, "{indent}{action}"),
            false => writeln!(out, "{indent}{action}   {}", paint(DIM, &changes)),
        };
    }
    if let Some(group) = &step.group {
        return match group.bucket {
            Some(bucket) => writeln!(out, "{indent}group {}, bucket {bucket}", group.group),
            None => writeln!(out, "{indent}group {}: no bucket is live", group.group),
        };
    }
    if let Some(sent) = &step.sent {
        let reason = sent
            .reason
            .as_ref()
            .map(|reason| format!(", {reason}"))
            .unwrap_or_default();
        let queue = sent
            .queue
            .map(|queue| format!(", queue {queue}"))
            .unwrap_or_default();
        let port = format!("out by {}{queue}{reason}", port_text(&sent.port));
        writeln!(out, "{indent}{}", paint(GOOD, &port))?;
        for line in lines_of(&sent.bytes) {
            writeln!(out, "{indent}  {}", paint(DIM, &line))?;
        }
        return Ok(());
    }
    match step.step.as_str() {
        "action set" => writeln!(out, "{indent}its action set:"),
        limit if PacketLimit::ALL.iter().any(|one| one.name() == limit) => {
            let text = format!("dropped: {limit}");
            writeln!(out, "{indent}{}", paint(NOTABLE, &text))
        }
        "remarked" => writeln!(out, "{indent}remarked   {}", paint(DIM, &changes)),
        _ => Ok(()),
    }
}

/// Splits hexadecimal digits into lines of 32 bytes.
fn lines_of(digits: &str) -> Vec<String> {
    let bytes: Vec<char> = digits.chars().collect();
    let lines = bytes.chunks(64).map(|line| {
        let pairs = line.chunks(4).map(|pair| pair.iter().collect::<String>());
        pairs.collect::<Vec<_>>().join(" ")
    });
    lines.collect()
}

impl Report for TraceReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_packet(out)?;
        for step in &self.steps {
            write_step(step, out)?;
        }
        if self.dropped {
            writeln!(out)?;
            writeln!(out, "{}", paint(NOTABLE, "The packet goes nowhere."))?;
        }
        if let Some(caches) = &self.caches {
            writeln!(out)?;
            caches.write(out)?;
        }
        if let Some(live) = &self.live {
            writeln!(out)?;
            match &live.megaflow {
                Some(megaflow) => write_megaflow(megaflow, out)?,
                None => fact(out, "Megaflow", "none is added for the packet")?,
            }
        }
        Ok(())
    }

    /// Writes the steps, without the fields that only some kinds have.
    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"step",
            &"depth",
            &"table",
            &"line",
            &"action",
            &"port",
            &"script_line",
        ])?;
        for step in &self.steps {
            let winner = step.table.as_ref().and_then(|table| table.winner.as_ref());
            let line = winner.map_or_else(LineRow::default, |winner| LineRow {
                line: winner.origin.line,
                script_line: winner.origin.script_line,
            });
            out.row(&[
                &step.step,
                &step.depth,
                &csv::optional(step.table.as_ref().map(|table| table.table).as_ref()),
                &csv::optional(line.line.as_ref()),
                &csv::optional(step.action.as_ref()),
                &csv::optional(step.sent.as_ref().map(|sent| &sent.port)),
                &csv::optional(line.script_line.as_ref()),
            ])?;
        }
        Ok(())
    }
}
