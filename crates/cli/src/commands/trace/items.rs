//! Flows and ports in the report of a trace.

use classyard_datapath::flow::FlowEntry;
use classyard_switch::control::{ItemOrigin, TraceFlow, TracedItem};

use crate::commands::script::{ItemLines, LineRow};

/// Returns the lines of an item.
pub(super) fn origin(lines: ItemLines<'_>, item: TracedItem<'_>) -> ItemOrigin {
    let LineRow { line, script_line } = match item {
        TracedItem::Flow(entry) => lines.flow(entry),
        TracedItem::Group(group) => lines.group(group),
        TracedItem::Meter(meter) => lines.meter(meter),
    };
    ItemOrigin {
        line,
        script_line,
        cookie: None,
    }
}

/// Returns the row of a flow with its line.
pub(super) fn flow_row(entry: &FlowEntry, lines: ItemLines<'_>) -> TraceFlow {
    TraceFlow::new(entry, origin(lines, TracedItem::Flow(entry)))
}

/// Returns a flow for people, with its line, or with its cookie if that is not 0.
pub(super) fn flow_text(flow: &TraceFlow) -> String {
    let ItemOrigin {
        line,
        script_line,
        cookie,
    } = &flow.origin;
    let origin = match (line, script_line, cookie) {
        (_, Some(line), _) => format!("line {line} of the script: "),
        (Some(line), None, _) => format!("line {line}: "),
        (None, None, Some(cookie)) if cookie != "0x0" => format!("cookie {cookie}: "),
        (None, None, _) => String::new(),
    };
    let matches = match flow.matches.is_empty() {
        true => "every packet",
        false => &flow.matches,
    };
    format!(
        "{origin}priority {}, {matches} ▸ {}",
        flow.priority, flow.actions
    )
}

/// Returns a port for people.
pub(super) fn port_text(port: &str) -> String {
    match port.parse::<u32>() {
        Ok(number) => format!("port {number}"),
        Err(_) => port.to_owned(),
    }
}
