//! The report of a trace.

use std::io::{self, Write};
use std::time::Duration;

use classyard_datapath::limits::PacketLimit;
use classyard_datapath::meter::BandKind;
use classyard_datapath::pipeline::{CacheAnswer, FieldChange, Lookup, PacketTrace, Step};
use classyard_datapath::{Field, Flaw, MatchField, Packet, PacketKey, PortNo, Prerequisite};
use classyard_report::output::style::{BOLD, DIM, GOOD, NOTABLE, counted, paint};
use classyard_report::output::table::fact;
use classyard_report::output::{Report, csv};
use serde::Serialize;

use super::decision::{AlteredRow, write_altered};
use super::items::{FlowRow, port_text};
use crate::commands::script::{ItemLines, LineRow, ScriptReport};

/// The packet and its source.
pub(super) struct Traced<'t> {
    pub(super) source: String,
    /// The packet's number in the capture, from 1.
    pub(super) number: Option<usize>,
    pub(super) in_port: u32,
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
pub(super) struct TraceReport {
    pipeline: String,
    packet: PacketRow,
    /// `None` without a script.
    script: Option<TracedScript>,
    steps: Vec<StepRow>,
    dropped: bool,
    /// `None` without caches.
    caches: Option<CacheRow>,
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
    megaflow: Option<MegaflowRow>,
}

#[derive(Serialize)]
struct MegaflowRow {
    /// The fields and bits that the covered packets share.
    covers: String,
    /// The number of bits of a packet's key that are compared.
    bits: u32,
    /// The tables that these packets skip.
    tables: Vec<u8>,
    /// The table at which they continue.
    continues_at: Option<u8>,
}

impl CacheRow {
    fn new((before, after): &(CacheAnswer, CacheAnswer)) -> CacheRow {
        CacheRow {
            microflow_hit: before.microflow,
            megaflow_hit: before.megaflow.is_some() && !before.stale,
            megaflow_stale: before.stale,
            megaflow: after.megaflow.as_ref().map(|megaflow| MegaflowRow {
                covers: megaflow.to_string(),
                bits: megaflow.mask.iter().map(|word| word.count_ones()).sum(),
                tables: megaflow.steps.iter().map(|(table, _)| table.0).collect(),
                continues_at: megaflow.rest.map(|table| table.0),
            }),
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
}

#[derive(Serialize)]
struct PacketRow {
    source: String,
    number: Option<usize>,
    in_port: u32,
    seconds: f64,
    bytes: String,
    fields: Vec<FieldRow>,
    malformed: Vec<&'static str>,
}

#[derive(Serialize)]
struct FieldRow {
    field: &'static str,
    value: String,
}

/// A step as JSON: its kind, and the values that this kind has.
#[derive(Default, Serialize)]
struct StepRow {
    step: &'static str,
    /// The depth of nested buckets around the packet.
    depth: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<TableRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meter: Option<MeterRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<GroupRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<ChangeRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<SentRow>,
}

#[derive(Serialize)]
struct TableRow {
    table: u8,
    flows: usize,
    winner: Option<FlowRow>,
    near: Vec<NearRow>,
    mattered: Vec<&'static str>,
}

#[derive(Serialize)]
struct NearRow {
    #[serde(flatten)]
    flow: FlowRow,
    refused_by: Vec<RefusedRow>,
}

#[derive(Serialize)]
struct RefusedRow {
    field: &'static str,
    packet: Option<String>,
    flow: String,
}

#[derive(Serialize)]
struct MeterRow {
    meter: u32,
    #[serde(flatten)]
    line: LineRow,
    /// The index of the applied band, from 0.
    band: Option<usize>,
    /// The effect of the band.
    did: &'static str,
}

#[derive(Serialize)]
struct GroupRow {
    group: u32,
    #[serde(flatten)]
    line: LineRow,
    /// The bucket's index, from 0; `None` if no bucket is live.
    bucket: Option<usize>,
}

#[derive(Serialize)]
struct ChangeRow {
    field: &'static str,
    old: Option<String>,
    new: Option<String>,
}

#[derive(Serialize)]
struct SentRow {
    port: String,
    queue: Option<u32>,
    /// The reason for sending it to the controller.
    reason: Option<&'static str>,
    max_len: Option<u16>,
    bytes: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shown(field: Field, value: u128) -> String {
    field.format().display(value).to_string()
}

/// Returns the value that a flow matches, with its mask.
fn wanted(value: &MatchField) -> String {
    let text = value.to_string();
    match text.split_once('=') {
        Some((_, value)) => value.to_owned(),
        None => text,
    }
}

fn fields(key: &PacketKey) -> Vec<FieldRow> {
    let present_fields = Field::all().filter(|&field| key.has(field));
    // Leaves out zero values of registers, metadata and tunnel fields, which a new
    // packet does not have, and the VLAN field of an untagged packet.
    let shown_fields = present_fields.filter(|&field| {
        let is_header = match field.info().prerequisite {
            Prerequisite::None => matches!(field, Field::EthDst | Field::EthSrc | Field::EthType),
            Prerequisite::InPort => false,
            _ => true,
        };
        is_header || key.get(field) != 0
    });
    shown_fields
        .map(|field| FieldRow {
            field: field.name(),
            value: shown(field, key.get(field)),
        })
        .collect()
}

fn changes(changes: &[FieldChange]) -> Vec<ChangeRow> {
    let rows = changes.iter().map(|change| ChangeRow {
        field: change.field.name(),
        old: change.old.map(|value| shown(change.field, value)),
        new: change.new.map(|value| shown(change.field, value)),
    });
    rows.collect()
}

fn table(lookup: &Lookup, lines: ItemLines<'_>) -> TableRow {
    let near_rows = lookup.near.iter().map(|miss| NearRow {
        flow: FlowRow::new(&miss.entry, lines),
        refused_by: miss
            .differences
            .iter()
            .map(|one| RefusedRow {
                field: one.wants.field.name(),
                packet: one.has.map(|has| shown(one.wants.field, has)),
                flow: wanted(&one.wants),
            })
            .collect(),
    });
    TableRow {
        table: lookup.table.0,
        flows: lookup.entries,
        winner: lookup
            .winner
            .as_ref()
            .map(|winner| FlowRow::new(winner, lines)),
        near: near_rows.collect(),
        mattered: lookup.mattered.iter().map(|field| field.name()).collect(),
    }
}

impl TraceReport {
    pub(super) fn new(
        lines: ItemLines<'_>,
        traced: Traced<'_>,
        story: &PacketTrace,
    ) -> TraceReport {
        let packet = traced.packet;
        let flaws = Flaw::ALL.iter();
        let flaws = flaws.filter(|flaw| packet.parsed().flaws.contains(**flaw));
        let mut depth = 0;
        let steps = story.steps.iter().map(|step| {
            if *step == Step::BucketDone {
                depth -= 1;
            }
            let mut row = StepRow {
                depth,
                ..StepRow::default()
            };
            match step {
                Step::Lookup(lookup) => {
                    row.step = "lookup";
                    row.table = Some(table(lookup, lines));
                }
                Step::Metered { meter, band } => {
                    row.step = "meter";
                    row.meter = Some(MeterRow {
                        meter: meter.0,
                        line: lines.meter(*meter),
                        band: band.map(|(number, _)| number),
                        did: match band {
                            None => "passed",
                            Some((_, BandKind::Drop)) => "dropped",
                            Some((_, BandKind::DscpRemark(_))) => "remarked",
                        },
                    });
                }
                Step::Action {
                    action,
                    changes: made,
                } => {
                    row.step = "action";
                    row.action = Some(action.to_string());
                    row.changes = changes(made);
                }
                Step::Remarked(made) => {
                    row.step = "remarked";
                    row.changes = changes(made);
                }
                Step::ActionSet => row.step = "action set",
                Step::Bucket { group, bucket } => {
                    row.step = "bucket";
                    row.group = Some(GroupRow {
                        group: group.0,
                        line: lines.group(*group),
                        bucket: *bucket,
                    });
                    depth += usize::from(bucket.is_some());
                }
                Step::BucketDone => row.step = "bucket done",
                Step::Limited(limit) => row.step = limit.name(),
                Step::Sent { port, queue, bytes } => {
                    row.step = "sent";
                    row.sent = Some(SentRow {
                        port: port.to_string(),
                        queue: *queue,
                        reason: None,
                        max_len: None,
                        bytes: hex(bytes),
                    });
                }
                Step::ToController {
                    reason,
                    max_len,
                    bytes,
                } => {
                    row.step = "sent";
                    row.sent = Some(SentRow {
                        port: PortNo::CONTROLLER.to_string(),
                        queue: None,
                        reason: Some(reason.name()),
                        max_len: Some(*max_len),
                        bytes: hex(bytes),
                    });
                }
            }
            row
        });
        TraceReport {
            pipeline: lines.source().to_owned(),
            packet: PacketRow {
                source: traced.source,
                number: traced.number,
                in_port: traced.in_port,
                seconds: traced.time.as_secs_f64(),
                bytes: hex(packet.bytes()),
                fields: fields(packet.key()),
                malformed: flaws.map(|flaw| flaw.name()).collect(),
            },
            script: traced.script,
            steps: steps.collect(),
            dropped: story.is_dropped(),
            caches: traced.caches.as_ref().map(CacheRow::new),
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
        fact(out, "Pipeline", &self.pipeline)?;
        match &self.script {
            Some(script) => script.write(out),
            None => Ok(()),
        }
    }

    fn write_table(out: &mut dyn Write, table: &TableRow) -> io::Result<()> {
        writeln!(out)?;
        let heading = format!("Table {}, {}", table.table, counted(table.flows, "flow"));
        writeln!(out, "{}", paint(BOLD, &heading))?;
        match &table.winner {
            Some(winner) => writeln!(out, "  {} {}", paint(GOOD, "wins"), winner.text())?,
            None => writeln!(out, "  {}: no flow matches", paint(NOTABLE, "dropped"))?,
        }
        for near in &table.near {
            let refused: Vec<String> = near.refused_by.iter().map(RefusedRow::text).collect();
            let refused = refused.join(", ");
            writeln!(out, "  near {}", near.flow.text())?;
            writeln!(out, "       {}", paint(DIM, &format!("refused: {refused}")))?;
        }
        if !table.mattered.is_empty() {
            let mattered = format!("fields that mattered: {}", table.mattered.join(", "));
            writeln!(out, "  {}", paint(DIM, &mattered))?;
        }
        Ok(())
    }
}

impl RefusedRow {
    fn text(&self) -> String {
        match &self.packet {
            Some(packet) => format!("{} {packet} is not {}", self.field, self.flow),
            None => format!("no {}, wanted {}", self.field, self.flow),
        }
    }
}

impl ChangeRow {
    fn text(&self) -> String {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        format!("{} {} → {}", self.field, side(&self.old), side(&self.new))
    }
}

impl StepRow {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let indent = "  ".repeat(self.depth + 1);
        let changes: Vec<String> = self.changes.iter().map(ChangeRow::text).collect();
        let changes = changes.join(", ");
        if let Some(table) = &self.table {
            return TraceReport::write_table(out, table);
        }
        if let Some(meter) = &self.meter {
            let band = meter
                .band
                .map(|band| format!(" by band {band}"))
                .unwrap_or_default();
            return writeln!(out, "{indent}meter {}: {}{band}", meter.meter, meter.did);
        }
        if let Some(action) = &self.action {
            // The next step shows the destination.
            return match changes.is_empty() {
                true => writeln!(out, "{indent}{action}"),
                false => writeln!(out, "{indent}{action}   {}", paint(DIM, &changes)),
            };
        }
        if let Some(group) = &self.group {
            return match group.bucket {
                Some(bucket) => writeln!(out, "{indent}group {}, bucket {bucket}", group.group),
                None => writeln!(out, "{indent}group {}: no bucket is live", group.group),
            };
        }
        if let Some(sent) = &self.sent {
            let reason = sent
                .reason
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
        match self.step {
            "action set" => writeln!(out, "{indent}its action set:"),
            limit if PacketLimit::ALL.iter().any(|one| one.name() == limit) => {
                let text = format!("dropped: {limit}");
                writeln!(out, "{indent}{}", paint(NOTABLE, &text))
            }
            "remarked" => writeln!(out, "{indent}remarked   {}", paint(DIM, &changes)),
            _ => Ok(()),
        }
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
            step.write(out)?;
        }
        if self.dropped {
            writeln!(out)?;
            writeln!(out, "{}", paint(NOTABLE, "The packet goes nowhere."))?;
        }
        if let Some(caches) = &self.caches {
            writeln!(out)?;
            caches.write(out)?;
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
            let line = winner.map_or_else(LineRow::default, FlowRow::line);
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
