//! The lines of flows, groups and meters, in the pipeline's file or in the script.

use classyard_datapath::flow::FlowEntry;
use classyard_datapath::{GroupId, MeterId};
use classyard_report::input::switch::Lines;
use serde::Serialize;

use super::ScriptRun;

/// The line of an item, in the pipeline's file or in the script.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::commands) struct LineRow {
    pub(in crate::commands) line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) script_line: Option<usize>,
}

impl LineRow {
    /// Returns the line of the script if there is one, otherwise the line of the pipeline.
    fn new(line: Option<usize>, script_line: Option<usize>) -> LineRow {
        LineRow {
            line: line.filter(|_| script_line.is_none()),
            script_line,
        }
    }

    /// Returns the line for a table.
    pub(in crate::commands) fn text(self) -> String {
        match (self.line, self.script_line) {
            (_, Some(line)) => format!("script:{line}"),
            (Some(line), None) => line.to_string(),
            (None, None) => String::new(),
        }
    }
}

/// The lines of a pipeline and of the changes that a script has made so far.
#[derive(Clone, Copy)]
pub(in crate::commands) struct ItemLines<'l> {
    pipeline: &'l Lines,
    script: Option<&'l ScriptRun>,
}

impl<'l> ItemLines<'l> {
    /// Returns the lines of a pipeline and of a script, if there is one.
    pub(in crate::commands) fn new(
        pipeline: &'l Lines,
        script: Option<&'l ScriptRun>,
    ) -> ItemLines<'l> {
        ItemLines { pipeline, script }
    }

    /// Returns the name of the pipeline's file.
    pub(in crate::commands) fn source(self) -> &'l str {
        &self.pipeline.source
    }

    /// Returns the line that added or last changed a flow.
    pub(in crate::commands) fn flow(self, entry: &FlowEntry) -> LineRow {
        let script_line = self.script.and_then(|script| script.flow_line(entry.id));
        LineRow::new(self.pipeline.flow(entry), script_line)
    }

    /// Returns the line that added or last changed a group.
    pub(in crate::commands) fn group(self, id: GroupId) -> LineRow {
        let script_line = self.script.and_then(|script| script.group_line(id));
        LineRow::new(self.pipeline.group(id), script_line)
    }

    /// Returns the line that added or last changed a meter.
    pub(in crate::commands) fn meter(self, id: MeterId) -> LineRow {
        let script_line = self.script.and_then(|script| script.meter_line(id));
        LineRow::new(self.pipeline.meter(id), script_line)
    }
}
