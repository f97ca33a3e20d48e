//! Scripts: changes of a pipeline while a capture passes. `replay` and `trace` read and
//! play them here.

use std::collections::HashMap;
use std::time::Duration;

use classyard::{Progress, RuleId};
use classyard_datapath::flow::FlowChange;
use classyard_datapath::pipeline::{CacheStatus, Change, Message, Pipeline, Worker};
use classyard_datapath::text::{Script, ScriptChange};
use classyard_datapath::{GroupId, MeterId};
use classyard_report::failure::Failure;
use classyard_report::input::frames::Frame;
use classyard_report::input::switch::add_missing_ports;
use classyard_report::interrupt;
use classyard_report::output::style::{counted, grouped};
use classyard_report::reporter::Reporter;
use classyard_workload::diagnostic::ReadError;
use serde::Serialize;

mod lines;
mod report;

pub(super) use lines::{ItemLines, LineRow};
pub(super) use report::ScriptReport;

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

/// A change that was just made.
#[derive(Clone, Copy)]
pub(super) struct LatestChange<'s> {
    /// The line of the change, counted from 1.
    pub(super) line: usize,
    /// The change, without its moment.
    pub(super) text: &'s str,
    /// The time of the change, after the first packet.
    pub(super) time: Duration,
    /// The number of the packet before which the change was made.
    pub(super) packet: usize,
}

/// Inspects the pipeline before and after each change.
pub(super) trait ChangeObserver {
    /// Receives the pipeline before the first change with this time.
    fn before(&mut self, pipeline: &Pipeline, script: &ScriptRun, time: Duration);

    /// Receives the pipeline after a change.
    fn after(&mut self, pipeline: &Pipeline, script: &ScriptRun, change: LatestChange<'_>);
}

/// Changes between two reports of progress, and between checks for an interrupt.
const CHANGES_PER_REPORT: usize = 1 << 14;

impl ScriptRun {
    /// Begins to play a script. Adds the ports that the script names to the pipeline; they
    /// are up.
    pub(super) fn begin(script: Script, pipeline: &mut Pipeline) -> ScriptRun {
        add_missing_ports(pipeline, script.named_ports(), Duration::ZERO);
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

    /// Makes the changes that are due before a packet of a worker. With an observer, each
    /// change is visible before the next is made.
    ///
    /// # Errors
    /// The first change that the pipeline refuses, with its line and the reason; or an
    /// interrupt while many changes are made.
    pub(super) fn change(
        &mut self,
        (pipeline, worker): (&mut Pipeline, &Worker),
        frame: &Frame<'_>,
        mut observer: Option<&mut dyn ChangeObserver>,
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
                if let Some(observer) = &mut observer {
                    observer.before(pipeline, self, change.time);
                }
            }
            self.submit(pipeline, change)?;
            if let Some(observer) = &mut observer {
                pipeline.publish();
                let latest = LatestChange {
                    line: self.script.line(change),
                    text: self.script.text(change),
                    time: change.time,
                    packet: frame.number,
                };
                observer.after(pipeline, self, latest);
            }
        }
        pipeline.publish();
        Ok(())
    }

    /// Makes a change, which is visible once the pipeline publishes it.
    fn submit(&mut self, pipeline: &mut Pipeline, change: &ScriptChange) -> Result<(), Failure> {
        let message = self.script.message(change, pipeline.ports());
        let message = message.map_err(ReadError::Bad)?;
        let changes = pipeline.submit(std::slice::from_ref(&message), change.time);
        let changes = changes
            .map_err(|refusal| ReadError::Bad(self.script.refused(change, refusal.error())))?;
        self.note(*change, &message, &changes);
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
    fn flow_line(&self, id: RuleId) -> Option<usize> {
        self.flow_lines.get(&id).copied()
    }

    /// Returns the line that added or last changed a group, or `None`.
    fn group_line(&self, id: GroupId) -> Option<usize> {
        self.group_lines.get(&id).copied()
    }

    /// Returns the line that added or last changed a meter, or `None`.
    fn meter_line(&self, id: MeterId) -> Option<usize> {
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
}
