//! The script of a replay: changes of the pipeline while packets pass, and the report on
//! them.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use classyard::{Progress, RuleId};
use classyard_datapath::flow::FlowChange;
use classyard_datapath::pipeline::{CacheStatus, Change, Message, Pipeline, Worker};
use classyard_datapath::text::{Due, Script, ScriptChange};
use classyard_datapath::{GroupId, MeterId};
use classyard_report::failure::Failure;
use classyard_report::input::frames::Frame;
use classyard_report::interrupt;
use classyard_report::output::style::{counted, grouped};
use classyard_report::output::table::{Side, Table, heading};
use classyard_report::reporter::Reporter;
use classyard_workload::diagnostic::ReadError;
use serde::Serialize;

use super::rows::{MAX_ROWS, remark_more};

/// A script, and the changes that were made so far.
pub(super) struct ScriptRun {
    script: Script,
    steps: Vec<Step>,
    made: Vec<Made>,
    flow_lines: HashMap<RuleId, usize>,
    group_lines: HashMap<GroupId, usize>,
    meter_lines: HashMap<MeterId, usize>,
    /// The status of the caches before the latest step until its packet has been
    /// processed.
    before: Option<CacheStatus>,
}

/// A packet before which changes were made.
struct Step {
    packet: usize,
    time: Duration,
    /// The number of changes made before this step.
    first_change: usize,
    stale: Option<Stale>,
}

/// A change that was made.
struct Made {
    change: ScriptChange,
    flows_added: u32,
    flows_changed: u32,
    flows_removed: u32,
}

/// The megaflows that the changes of a step made stale.
#[derive(Clone, Copy, Serialize)]
struct Stale {
    /// Megaflows some of whose packets a new flow wins.
    outdated: u64,
    /// Megaflows on whose path a flow was removed, or leads elsewhere.
    stranded: u64,
    /// True if all megaflows became stale, since there were too many changes to check.
    all: bool,
}

/// Changes between two reports of progress, and between checks for an interrupt.
const CHANGES_PER_REPORT: usize = 1 << 14;

impl ScriptRun {
    pub(super) fn new(script: Script) -> ScriptRun {
        ScriptRun {
            script,
            steps: Vec::new(),
            made: Vec::new(),
            flow_lines: HashMap::new(),
            group_lines: HashMap::new(),
            meter_lines: HashMap::new(),
            before: None,
        }
    }

    /// Makes the changes that are due before a packet of a worker.
    ///
    /// # Errors
    /// The first change that the pipeline refuses, with its line and the reason; or an
    /// interrupt while many changes are made.
    pub(super) fn change(
        &mut self,
        (pipeline, worker): (&mut Pipeline, &Worker),
        frame: &Frame<'_>,
        progress: &mut impl Progress,
    ) -> Result<(), Failure> {
        let due = self.script.due(frame.number as u64, frame.time);
        if due.is_empty() {
            return Ok(());
        }
        self.steps.push(Step {
            packet: frame.number,
            time: frame.time,
            first_change: self.made.len(),
            stale: None,
        });
        self.before = worker.caches();
        let mut expired = None;
        for (index, change) in due.iter().enumerate() {
            if index % CHANGES_PER_REPORT == CHANGES_PER_REPORT - 1 {
                interrupt::outcome()?;
                let _ = progress.report("changing the pipeline", index, due.len());
            }
            if expired != Some(change.time) {
                pipeline.expire(change.time);
                expired = Some(change.time);
            }
            let message = self.script.message(change, pipeline.ports());
            let message = message.map_err(ReadError::Bad)?;
            let changes = pipeline.submit(std::slice::from_ref(&message), change.time);
            let changes = changes
                .map_err(|refusal| ReadError::Bad(self.script.refused(change, refusal.error())))?;
            self.note(*change, &message, &changes);
        }
        pipeline.publish();
        Ok(())
    }

    /// Records a change, and the lines of the items that it added or changed.
    fn note(&mut self, change: ScriptChange, message: &Message, changes: &[Change]) {
        let line = self.script.line(&change);
        let mut made = Made {
            change,
            flows_added: 0,
            flows_changed: 0,
            flows_removed: 0,
        };
        for change in changes {
            match change {
                Change::Flow(FlowChange::Added(new)) => {
                    made.flows_added += 1;
                    self.flow_lines.insert(new.id, line);
                }
                Change::Flow(FlowChange::Changed { new, .. }) => {
                    made.flows_changed += 1;
                    self.flow_lines.insert(new.id, line);
                }
                Change::Flow(FlowChange::Removed(..)) => made.flows_removed += 1,
                _ => {}
            }
        }
        match message {
            Message::Group(message) => _ = self.group_lines.insert(message.group.id, line),
            Message::Meter(message) => _ = self.meter_lines.insert(message.meter.id, line),
            _ => {}
        }
        self.made.push(made);
    }

    /// Records the megaflows that became stale, after the packet of a step.
    pub(super) fn follow_caches(&mut self, worker: &Worker) {
        let Some(before) = self.before.take() else {
            return;
        };
        if let (Some(step), Some(after)) = (self.steps.last_mut(), worker.caches()) {
            step.stale = Some(Stale {
                outdated: after.outdated - before.outdated,
                stranded: after.stranded - before.stranded,
                all: after.revalidations > before.revalidations,
            });
        }
    }

    /// Returns the line that added or last changed a flow, or `None`.
    pub(super) fn flow_line(&self, id: RuleId) -> Option<usize> {
        self.flow_lines.get(&id).copied()
    }

    /// Returns the line that added or last changed a group, or `None`.
    pub(super) fn group_line(&self, id: GroupId) -> Option<usize> {
        self.group_lines.get(&id).copied()
    }

    /// Returns the line that added or last changed a meter, or `None`.
    pub(super) fn meter_line(&self, id: MeterId) -> Option<usize> {
        self.meter_lines.get(&id).copied()
    }

    /// Notes if changes were not due before the end of the capture.
    pub(super) fn note_waiting(&self, reporter: Reporter) {
        let waiting = self.script.len() - self.made.len();
        if waiting > 0 {
            reporter.note(&format!(
                "{}: {} of {} not made, since the capture ended before",
                self.script.source(),
                grouped(waiting),
                counted(self.script.len(), "change")
            ));
        }
    }

    pub(super) fn report(&self) -> ScriptReport {
        let steps = self.steps.iter().enumerate().map(|(number, step)| {
            let next = self.steps.get(number + 1);
            let end = next.map_or(self.made.len(), |next| next.first_change);
            let changes = self.made[step.first_change..end].iter();
            StepRow {
                packet: step.packet,
                seconds: step.time.as_secs_f64(),
                changes: changes.map(|made| self.change_row(made)).collect(),
                megaflows: step.stale,
            }
        });
        let waiting = self.script.waiting().map(|(line, due, change)| WaitingRow {
            line,
            due: match due {
                Due::At(time) => DueRow::AtSeconds(time.as_secs_f64()),
                Due::Before(packet) => DueRow::BeforePacket(packet),
            },
            change: change.to_owned(),
        });
        ScriptReport {
            source: self.script.source().to_owned(),
            changes: self.script.len(),
            made: self.made.len(),
            steps: steps.collect(),
            not_made: waiting.collect(),
        }
    }

    fn change_row(&self, made: &Made) -> ChangeRow {
        ChangeRow {
            line: self.script.line(&made.change),
            seconds: made.change.time.as_secs_f64(),
            change: self.script.text(&made.change).to_owned(),
            flows_added: made.flows_added,
            flows_changed: made.flows_changed,
            flows_removed: made.flows_removed,
        }
    }
}

/// The report on a script.
#[derive(Serialize)]
pub(super) struct ScriptReport {
    source: String,
    changes: usize,
    made: usize,
    steps: Vec<StepRow>,
    not_made: Vec<WaitingRow>,
}

/// A packet, and the changes made before it.
#[derive(Serialize)]
struct StepRow {
    packet: usize,
    seconds: f64,
    changes: Vec<ChangeRow>,
    megaflows: Option<Stale>,
}

#[derive(Serialize)]
struct ChangeRow {
    line: usize,
    seconds: f64,
    change: String,
    flows_added: u32,
    flows_changed: u32,
    flows_removed: u32,
}

impl ChangeRow {
    /// Returns the numbers of flows for people.
    fn flows(&self) -> String {
        let counts = [
            (self.flows_added, "added"),
            (self.flows_changed, "changed"),
            (self.flows_removed, "removed"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let texts: Vec<String> = counts
            .map(|(count, word)| format!("{} {word}", grouped(count)))
            .collect();
        texts.join(", ")
    }
}

#[derive(Serialize)]
struct WaitingRow {
    line: usize,
    #[serde(flatten)]
    due: DueRow,
    change: String,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum DueRow {
    AtSeconds(f64),
    BeforePacket(u64),
}

impl ScriptReport {
    /// Returns facts for people: names and values.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut made = format!(
            "{}, {} of {} made",
            self.source,
            grouped(self.made),
            counted(self.changes, "change")
        );
        if let [first, .., last] = self.steps.as_slice() {
            made += &format!(", before packets {} to {}", first.packet, last.packet);
        }
        let mut facts = vec![("Script", made)];
        let stale = self.steps.iter().filter_map(|step| step.megaflows);
        if stale.clone().next().is_some() {
            let (outdated, stranded, all) = stale.fold((0, 0, 0), |sum, stale| {
                (
                    sum.0 + stale.outdated,
                    sum.1 + stale.stranded,
                    sum.2 + usize::from(stale.all),
                )
            });
            let mut text = format!(
                "{} megaflows outdated by new flows, {} stranded by other changes",
                grouped(outdated),
                grouped(stranded)
            );
            if all > 0 {
                text += &format!("; all megaflows {} times", grouped(all));
            }
            facts.push(("Made stale", text));
        }
        facts
    }

    /// Writes the changes that were made, and the changes that were not due.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.made > 0 {
            self.write_made(out)?;
        }
        if self.not_made.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        heading(out, "Changes after the end of the capture")?;
        let mut table = Table::new(&[
            ("line", Side::Right),
            ("due", Side::Left),
            ("change", Side::Left),
        ]);
        for row in self.not_made.iter().take(MAX_ROWS) {
            let due = match row.due {
                DueRow::AtSeconds(seconds) => format!("at {seconds} s"),
                DueRow::BeforePacket(packet) => format!("before packet {packet}"),
            };
            table.row(vec![row.line.to_string(), due, row.change.clone()]);
        }
        table.write(out)?;
        let rows_left = self.not_made.len().saturating_sub(MAX_ROWS);
        remark_more(out, rows_left, "more change")
    }

    fn write_made(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        heading(out, "Changes of the script")?;
        let mut table = Table::new(&[
            ("before packet", Side::Right),
            ("seconds", Side::Right),
            ("line", Side::Right),
            ("stale megaflows", Side::Right),
            ("flows", Side::Left),
            ("change", Side::Left),
        ]);
        let rows = self.steps.iter().flat_map(|step| {
            let last = step.changes.len().saturating_sub(1);
            let numbered = step.changes.iter().enumerate();
            numbered.map(move |(number, change)| {
                // Megaflows are counted for all changes before a packet together.
                let stale = step.megaflows.filter(|_| number == last);
                vec![
                    grouped(step.packet),
                    format!("{:.3}", change.seconds),
                    change.line.to_string(),
                    match stale {
                        None => String::new(),
                        Some(stale) if stale.all => "all".to_owned(),
                        Some(stale) => grouped(stale.outdated + stale.stranded),
                    },
                    change.flows(),
                    change.change.clone(),
                ]
            })
        });
        rows.take(MAX_ROWS).for_each(|row| table.row(row));
        table.write(out)?;
        remark_more(out, self.made.saturating_sub(MAX_ROWS), "more change")
    }
}
