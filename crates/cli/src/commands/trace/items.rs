//! Flows and ports in the report of a trace.

use classyard_datapath::flow::FlowEntry;
use serde::Serialize;

use crate::commands::script::{ItemLines, LineRow};

/// A flow with its line.
#[derive(Clone, Serialize)]
pub(super) struct FlowRow {
    #[serde(flatten)]
    line: LineRow,
    priority: u16,
    #[serde(rename = "match")]
    matches: String,
    actions: String,
}

impl FlowRow {
    /// Returns the row of a flow.
    pub(super) fn new(entry: &FlowEntry, lines: ItemLines<'_>) -> FlowRow {
        FlowRow {
            line: lines.flow(entry),
            priority: entry.priority,
            matches: entry.flow.to_string(),
            actions: entry.instructions.to_string(),
        }
    }

    /// Returns the line of the flow.
    pub(super) fn line(&self) -> LineRow {
        self.line
    }

    /// Returns the flow for people, with its line.
    pub(super) fn text(&self) -> String {
        let line = match (self.line.line, self.line.script_line) {
            (_, Some(line)) => format!("line {line} of the script: "),
            (Some(line), None) => format!("line {line}: "),
            (None, None) => String::new(),
        };
        let matches = match self.matches.is_empty() {
            true => "every packet",
            false => &self.matches,
        };
        format!(
            "{line}priority {}, {matches} ▸ {}",
            self.priority, self.actions
        )
    }
}

/// Returns a port for people.
pub(super) fn port_text(port: &str) -> String {
    match port.parse::<u32>() {
        Ok(number) => format!("port {number}"),
        Err(_) => port.to_owned(),
    }
}
