//! Reads lines of groups.

use classyard_text::Fault;
use classyard_text::line::quoted;
use classyard_text::ofctl::{Command, Kind, PortNames, number, parts};

use super::actions::actions;
use crate::action::{GroupId, PortNo};
use crate::group::{Bucket, Group, GroupCommand, GroupMod, GroupType};

/// Reads a group to add: `group_id=N,type=TYPE`, then `bucket=…` for each bucket.
pub(super) fn read<'t>(line: &'t str, ports: &mut PortNames<'_>) -> Result<GroupMod, Fault<'t>> {
    let mut pieces = pieces(line);
    let head = pieces.remove(0);
    let (mut id, mut kind) = (None, None);
    for part in parts(head) {
        match part.split_once('=') {
            Some(("group_id", value)) => id = Some(GroupId(number(value, "group_id")?)),
            Some(("type", value)) => kind = Some(group_type(value)?),
            _ => {
                return Err(Fault::new(
                    part,
                    format!("unknown group option {}", quoted(part)),
                    "`group_id=N`, `type=all|select|indirect|ff` and then `bucket=…`",
                ));
            }
        }
    }
    let id = id.ok_or_else(|| Fault::missing(head, "`group_id=N`"))?;
    let kind = kind.ok_or_else(|| Fault::missing(head, "`type=all|select|indirect|ff`"))?;
    let buckets: Result<Vec<Bucket>, Fault<'_>> = pieces
        .into_iter()
        .map(|piece| bucket(piece, kind, ports))
        .collect();
    Ok(GroupMod {
        command: GroupCommand::Add,
        group: Group {
            id,
            kind,
            buckets: buckets?,
        },
    })
}

/// Reads a group to add or modify as [`read`] does, or to delete: `group_id=N`, or
/// `group_id=all` or nothing for all groups.
pub(super) fn read_command<'t>(
    line: &'t str,
    command: Command,
    ports: &mut PortNames<'_>,
) -> Result<GroupMod, Fault<'t>> {
    let command = match command {
        Command::Add => GroupCommand::Add,
        Command::Modify { .. } => GroupCommand::Modify,
        Command::Delete { .. } => return Ok(GroupMod::delete(deleted(line)?)),
    };
    Ok(GroupMod {
        command,
        ..read(line, ports)?
    })
}

/// Reads the group or groups of a deletion.
fn deleted(line: &str) -> Result<GroupId, Fault<'_>> {
    let mut id = GroupId::ALL;
    for part in parts(line) {
        id = match part.split_once('=') {
            Some(("group_id", "all")) => GroupId::ALL,
            Some(("group_id", value)) => GroupId(number(value, "group_id")?),
            _ => {
                let description = format!("{} in the deletion of a group", quoted(part));
                return Err(Fault::new(
                    part,
                    description,
                    "`group_id=N` or `group_id=all`",
                ));
            }
        };
    }
    Ok(id)
}

/// Returns the text before the first `bucket=`, and the text after each `bucket=`.
fn pieces(line: &str) -> Vec<&str> {
    let mut pieces: Vec<&str> = line.split("bucket=").collect();
    for piece in &mut pieces {
        *piece = piece.trim_matches([',', ' ', '\t']);
    }
    pieces
}

fn group_type(text: &str) -> Result<GroupType, Fault<'_>> {
    match text {
        "all" => Ok(GroupType::All),
        "select" => Ok(GroupType::Select),
        "indirect" => Ok(GroupType::Indirect),
        "ff" | "fast_failover" => Ok(GroupType::FastFailover),
        _ => Err(Fault::new(
            text,
            format!("{} is not a group type", quoted(text)),
            "`all`, `select`, `indirect` or `ff`",
        )),
    }
}

/// Reads `weight:N,watch_port:N,watch_group:N,actions=…`; `actions=` may be left out.
fn bucket<'t>(
    text: &'t str,
    kind: GroupType,
    ports: &mut PortNames<'_>,
) -> Result<Bucket, Fault<'t>> {
    let (head, tail) = match text.find("actions=") {
        Some(start) => (&text[..start], &text[start + "actions=".len()..]),
        None => (text, &text[text.len()..]),
    };
    let mut read = Bucket {
        // The default of `ovs-ofctl`.
        weight: u16::from(kind == GroupType::Select),
        ..Bucket::default()
    };
    let mut action_parts: Vec<&str> = Vec::new();
    for part in parts(head) {
        let (name, value) = part
            .split_once([':', '='])
            .unwrap_or((part, &part[part.len()..]));
        match name {
            "weight" => read.weight = number(value, name)?,
            "watch_port" => {
                read.watch_port = match value.eq_ignore_ascii_case("any") {
                    true => None,
                    false => Some(PortNo(ports.port(value, name)?)),
                };
            }
            "watch_group" => read.watch_group = Some(GroupId(number(value, name)?)),
            "bucket_id" => {
                let _: u32 = number(value, name)?;
            }
            _ => action_parts.push(part),
        }
    }
    for part in action_parts {
        read.actions.extend(actions(part, Kind::default(), ports)?);
    }
    read.actions.extend(actions(tail, Kind::default(), ports)?);
    Ok(read)
}
