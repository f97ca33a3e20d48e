//! The decision on the traced packet, before and after each change of a script.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use classyard::RuleId;
use classyard_datapath::flow::{FlowEntry, Instructions, TableId};
use classyard_datapath::pipeline::{PacketTrace, Pipeline, Step};
use classyard_datapath::{FlowMatch, Packet, PortNo};
use classyard_report::input::switch::Lines;
use classyard_report::output::style::{DIM, counted, paint};
use classyard_report::output::table::{heading, remark};
use classyard_switch::control::TraceFlow;
use serde::Serialize;

use super::items::{flow_row, flow_text, port_text};
use crate::commands::script::{ChangeObserver, ItemLines, LatestChange, ScriptRun};

/// The changes that a table for people lists: the latest ones.
const MAX_LISTED_CHANGES: usize = 10;

/// Compares the decision on a packet before and after each change.
pub(super) struct DecisionObserver<'d> {
    packet: &'d Packet,
    lines: &'d Lines,
    /// The decision before the next change.
    before: Option<Decision>,
    altered: Vec<AlteredRow>,
}

impl<'d> DecisionObserver<'d> {
    pub(super) fn new(packet: &'d Packet, lines: &'d Lines) -> DecisionObserver<'d> {
        DecisionObserver {
            packet,
            lines,
            before: None,
            altered: Vec::new(),
        }
    }

    /// Returns the changes that altered the decision, in their order.
    pub(super) fn altered(self) -> Vec<AlteredRow> {
        self.altered
    }

    fn decide(&self, pipeline: &Pipeline, script: &ScriptRun, time: Duration) -> Decision {
        let trace = pipeline.trace_winners(self.packet, time);
        Decision::new(&trace, ItemLines::new(self.lines, Some(script)))
    }
}

impl ChangeObserver for DecisionObserver<'_> {
    fn before(&mut self, pipeline: &Pipeline, script: &ScriptRun, time: Duration) {
        self.before = Some(self.decide(pipeline, script, time));
    }

    fn after(&mut self, pipeline: &Pipeline, script: &ScriptRun, change: LatestChange<'_>) {
        let after = self.decide(pipeline, script, change.time);
        if let Some(before) = self.before.replace(after.clone())
            && before.key != after.key
        {
            self.altered.push(AlteredRow {
                line: change.line,
                packet: change.packet,
                seconds: change.time.as_secs_f64(),
                change: change.text.to_owned(),
                before: before.row,
                after: after.row,
            });
        }
    }
}

/// The flows that a packet hits, and what they do to it.
#[derive(Clone)]
struct Decision {
    key: DecisionKey,
    row: DecisionRow,
}

/// The parts of a decision that are compared: for each table its winner, and all later
/// effects. A flow with another cookie or timeout is the same winner.
#[derive(Clone, Default, PartialEq)]
struct DecisionKey {
    winners: Vec<(TableId, Option<WinnerKey>)>,
    effects: Vec<Step>,
}

#[derive(Clone, PartialEq)]
struct WinnerKey {
    id: RuleId,
    priority: u16,
    flow: Arc<FlowMatch>,
    instructions: Arc<Instructions>,
}

impl WinnerKey {
    fn new(entry: &FlowEntry) -> WinnerKey {
        WinnerKey {
            id: entry.id,
            priority: entry.priority,
            flow: Arc::clone(&entry.flow),
            instructions: Arc::clone(&entry.instructions),
        }
    }
}

/// A decision as JSON.
#[derive(Clone, Default, Serialize)]
pub(super) struct DecisionRow {
    flows: Vec<HitRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<BucketRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    meters: Vec<BandRow>,
    sent: Vec<OutputRow>,
}

/// A table and the flow that wins there.
#[derive(Clone, Serialize)]
struct HitRow {
    table: u8,
    winner: Option<TraceFlow>,
}

#[derive(Clone, Serialize)]
struct BucketRow {
    group: u32,
    bucket: Option<usize>,
}

#[derive(Clone, Serialize)]
struct BandRow {
    meter: u32,
    band: Option<usize>,
}

#[derive(Clone, Serialize)]
struct OutputRow {
    port: String,
    queue: Option<u32>,
}

/// A change that altered the decision on the packet.
#[derive(Serialize)]
pub(super) struct AlteredRow {
    line: usize,
    /// The packet before which the change was made.
    packet: usize,
    seconds: f64,
    change: String,
    before: DecisionRow,
    after: DecisionRow,
}

impl Decision {
    fn new(trace: &PacketTrace, lines: ItemLines<'_>) -> Decision {
        let (mut key, mut row) = (DecisionKey::default(), DecisionRow::default());
        for step in &trace.steps {
            if let Step::Lookup(lookup) = step {
                let winner = lookup.winner.as_ref();
                row.flows.push(HitRow {
                    table: lookup.table.0,
                    winner: winner.map(|winner| flow_row(winner, lines)),
                });
                key.winners.push((lookup.table, winner.map(WinnerKey::new)));
                continue;
            }
            row.add(step);
            key.effects.push(step.clone());
        }
        Decision { key, row }
    }
}

impl DecisionRow {
    /// Adds a step that is not a lookup.
    fn add(&mut self, step: &Step) {
        match step {
            Step::Bucket { group, bucket } => self.groups.push(BucketRow {
                group: group.0,
                bucket: *bucket,
            }),
            Step::Metered { meter, band } => self.meters.push(BandRow {
                meter: meter.0,
                band: band.map(|(number, _)| number),
            }),
            Step::Sent { port, queue, .. } => self.sent.push(OutputRow {
                port: port.to_string(),
                queue: *queue,
            }),
            Step::ToController { .. } => self.sent.push(OutputRow {
                port: PortNo::CONTROLLER.to_string(),
                queue: None,
            }),
            _ => {}
        }
    }

    /// Returns the decision in lines of text.
    fn texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for hit in &self.flows {
            texts.push(match &hit.winner {
                Some(winner) => format!("table {}, {}", hit.table, flow_text(winner)),
                None => format!("table {}: no flow matches", hit.table),
            });
        }
        for band in &self.meters {
            texts.push(match band.band {
                Some(number) => format!("meter {}: band {number} is applied", band.meter),
                None => format!("meter {}: passed", band.meter),
            });
        }
        for group in &self.groups {
            texts.push(match group.bucket {
                Some(bucket) => format!("group {}, bucket {bucket}", group.group),
                None => format!("group {}: no bucket is live", group.group),
            });
        }
        for output in &self.sent {
            let queue = output.queue.map(|queue| format!(", queue {queue}"));
            let port = port_text(&output.port);
            texts.push(format!("out by {port}{}", queue.unwrap_or_default()));
        }
        if self.sent.is_empty() {
            texts.push("goes nowhere".to_owned());
        }
        texts
    }
}

impl AlteredRow {
    /// Returns the line of the change and the packet before which it was made.
    pub(super) fn place(&self, script: &str) -> String {
        format!("{script}:{} before packet {}", self.line, self.packet)
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "  line {}, before packet {}, at {:.3} s: {}",
            self.line, self.packet, self.seconds, self.change
        )?;
        for (name, decision) in [("before", &self.before), ("after", &self.after)] {
            for (number, text) in decision.texts().iter().enumerate() {
                let name = if number == 0 { name } else { "" };
                writeln!(out, "    {} {text}", paint(DIM, &format!("{name:6}")))?;
            }
        }
        Ok(())
    }
}

/// Writes the latest changes that altered the decision.
pub(super) fn write_altered(altered: &[AlteredRow], out: &mut dyn Write) -> io::Result<()> {
    if altered.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    heading(out, "Changes that altered the decision on this packet")?;
    let earlier = altered.len().saturating_sub(MAX_LISTED_CHANGES);
    if earlier > 0 {
        let earlier = counted(earlier, "earlier change");
        remark(out, &format!("after {earlier} (--format json lists all)"))?;
    }
    let listed = &altered[altered.len().saturating_sub(MAX_LISTED_CHANGES)..];
    listed.iter().try_for_each(|row| row.write(out))
}
