//! Reads lines of flows.

use std::sync::Arc;

use classyard_text::Fault;
use classyard_text::ofctl::{self, FlowLine, PortNames};

use super::actions::instructions;
use super::fields;
use crate::action::{GroupId, PortNo};
use crate::error::ErrorCode;
use crate::flow::{Command, FlowFlags, FlowMod, TableId};

/// Reads a flow to add, or the flows to modify or delete: attributes and a match, then
/// `actions=…` except for a deletion.
pub(super) fn read<'t>(
    line: &'t str,
    command: ofctl::Command,
    ports: &mut PortNames<'_>,
) -> Result<Read, Fault<'t>> {
    let flow = FlowLine::parse_command(line, command, ports)?;
    let command = match command {
        ofctl::Command::Add => Command::Add,
        ofctl::Command::Modify { strict } => Command::Modify { strict },
        ofctl::Command::Delete { strict } => Command::Delete { strict },
    };
    let deletes = matches!(command, Command::Delete { .. });
    let table = TableId(flow.table);
    if !(table.is_table() || deletes && table == TableId::ALL) {
        let part = line.split_once("table=").map_or(line, |(_, value)| value);
        let number_end = part
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(part.len());
        return Err(Fault::new(
            &part[..number_end],
            format!("there is no table {table}"),
            format!("a table from 0 to {}", TableId::LAST),
        ));
    }
    let mut message = FlowMod::new(command, fields::flow_match(&flow, line)?);
    message.table = table;
    message.priority = flow.priority;
    message.cookie = flow.cookie;
    message.cookie_mask = flow.cookie_mask;
    message.out_port = flow.out_port.map(PortNo);
    message.out_group = flow.out_group.map(GroupId);
    message.idle_timeout = flow.idle_timeout;
    message.hard_timeout = flow.hard_timeout;
    message.importance = flow.importance;
    message.flags = FlowFlags {
        send_removed: flow.flags.send_flow_rem,
        check_overlap: flow.flags.check_overlap,
        reset_counts: flow.flags.reset_counts,
        no_packet_counts: flow.flags.no_packet_counts,
        no_byte_counts: flow.flags.no_byte_counts,
    };
    if !deletes {
        let actions = flow.actions;
        message.instructions = Arc::new(instructions(actions, flow.kind, ports)?);
        let checked = message.instructions.check(message.table, &message.flow);
        checked.map_err(|error| match error.code() {
            // For example `normal`, which is unsupported in all flows.
            ErrorCode::BadOutPort => {
                Fault::unsupported(actions, error.to_string(), super::ACCEPTED_MESSAGE)
            }
            _ => Fault::new(actions, error.to_string(), super::ACCEPTED_MESSAGE),
        })?;
    }
    let has_stray_bits = flow.demands().iter().any(|demand| demand.has_stray_bits);
    Ok(Read {
        message,
        has_stray_bits,
    })
}

/// A flow read from a line.
pub(super) struct Read {
    pub(super) message: FlowMod,
    /// True if a value has bits outside of its mask.
    pub(super) has_stray_bits: bool,
}
