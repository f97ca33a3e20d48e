//! Lines of flows.

use std::sync::Arc;

use super::actions::instructions;
use super::fields::{self, Kind, SHORTHANDS};
use super::scan::{Fault, part_number, parts, quoted};
use crate::field::Field;
use crate::flow::{Command, FlowMod, TableId};
use crate::flow_match::{FieldValue, FlowMatch};

/// Reads a flow to add: attributes and a match, then `actions=` and what follows.
pub(super) fn read(line: &str) -> Result<FlowMod, Fault<'_>> {
    let Some((before, actions)) = split_actions(line) else {
        return Err(Fault::missing(line, "`actions=…`, or `actions=drop`"));
    };
    let mut message = FlowMod::new(Command::Add, FlowMatch::default());
    let mut demands: Vec<(&str, &str, &str)> = Vec::new();
    let mut values: Vec<(FieldValue, &str)> = Vec::new();
    let mut kind = Kind::default();
    for part in parts(before) {
        match part.split_once('=') {
            Some((key, value)) => {
                if !attribute(&mut message, key, value)? {
                    demands.push((part, key, value));
                }
            }
            None => word(&mut message, &mut kind, &mut values, part)?,
        }
    }
    // Types first: old names of fields depend on them.
    for &(_, key, value) in &demands {
        match key {
            "dl_type" | "eth_type" => kind.eth_type = Some(part_number(value, "EtherType")?),
            "nw_proto" | "ip_proto" => kind.ip_proto = Some(part_number(value, "protocol")?),
            _ => {}
        }
    }
    for (part, key, text) in demands {
        let field = fields::field(key, kind)?;
        values.push((fields::value(key, field, text)?, part));
    }
    let flow = FlowMatch::new(values.iter().map(|(value, _)| *value));
    message.flow = Arc::new(flow.map_err(|error| {
        // The last part that says something of the field.
        let mut said = values.iter().rev();
        let part = said.find(|(value, _)| Some(value.field) == error.field());
        Fault::new(part.map_or(before, |(_, part)| part), error.to_string(), "")
    })?);
    message.instructions = Arc::new(instructions(actions, kind)?);
    let checked = message.instructions.check(message.table, &message.flow);
    checked.map_err(|error| Fault::new(actions, error.to_string(), ""))?;
    Ok(message)
}

/// What is before `actions=`, and what follows.
fn split_actions(line: &str) -> Option<(&str, &str)> {
    let at = line.find("actions=").or_else(|| line.find("action="))?;
    let (before, rest) = line.split_at(at);
    let (_, actions) = rest.split_once('=')?;
    Some((before.trim_end_matches([',', ' ', '\t']), actions.trim()))
}

/// Takes an attribute; says whether it was one.
fn attribute<'t>(message: &mut FlowMod, key: &str, value: &'t str) -> Result<bool, Fault<'t>> {
    match key {
        "table" => {
            let table = TableId(part_number(value, "table")?);
            if !table.is_table() {
                return Err(Fault::new(
                    value,
                    format!("there is no table {table}"),
                    format!("a table from 0 to {}", TableId::LAST),
                ));
            }
            message.table = table;
        }
        "priority" => message.priority = part_number(value, "priority")?,
        "cookie" => message.cookie = part_number(value, "cookie")?,
        "idle_timeout" => message.idle_timeout = part_number(value, "time in seconds")?,
        "hard_timeout" => message.hard_timeout = part_number(value, "time in seconds")?,
        "importance" => message.importance = part_number(value, "importance")?,
        // What `ovs-ofctl dump-flows` says of flows that are there.
        "duration" | "n_packets" | "n_bytes" | "idle_age" | "hard_age" => {}
        _ => return Ok(false),
    }
    Ok(true)
}

/// Takes a word without a value: a flag, or a kind of packets.
fn word<'t>(
    message: &mut FlowMod,
    kind: &mut Kind,
    values: &mut Vec<(FieldValue, &'t str)>,
    part: &'t str,
) -> Result<(), Fault<'t>> {
    let flags = &mut message.flags;
    match part {
        "send_flow_rem" => flags.send_removed = true,
        "check_overlap" => flags.check_overlap = true,
        "reset_counts" => flags.reset_counts = true,
        "no_packet_counts" => flags.no_packet_counts = true,
        "no_byte_counts" => flags.no_byte_counts = true,
        _ => {
            let Some((_, eth_type, proto)) = SHORTHANDS.iter().find(|(name, ..)| *name == part)
            else {
                return Err(Fault::new(
                    part,
                    format!("{} is no kind of packets and no flag", quoted(part)),
                    "NAME=VALUE, or a word such as `ip`, `tcp6`, `arp`, `send_flow_rem`",
                ));
            };
            kind.eth_type = Some(*eth_type);
            let value = FieldValue::exact(Field::EthType, u128::from(*eth_type));
            values.push((value, part));
            if let Some(proto) = proto {
                kind.ip_proto = Some(*proto);
                let value = FieldValue::exact(Field::IpProto, u128::from(*proto));
                values.push((value, part));
            }
        }
    }
    Ok(())
}
