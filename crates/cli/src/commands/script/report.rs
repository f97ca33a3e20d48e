//! The report on a script.

use std::io::{self, Write};

use classyard_datapath::text::Due;
use classyard_report::output::style::{counted, grouped};
use classyard_report::output::table::{Side, Table, heading};
use serde::Serialize;

use super::{Made, ScriptRun, Stale};
use crate::commands::rows::{MAX_ROWS, remark_more};

impl ScriptRun {
    pub(in crate::commands) fn report(&self) -> ScriptReport {
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
pub(in crate::commands) struct ScriptReport {
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
    /// Returns the name of the script.
    pub(in crate::commands) fn source(&self) -> &str {
        &self.source
    }

    /// Returns facts for people: names and values.
    pub(in crate::commands) fn facts(&self) -> Vec<(&'static str, String)> {
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
    pub(in crate::commands) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
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
