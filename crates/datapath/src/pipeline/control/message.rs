//! Messages to a pipeline.

use std::fmt;

use crate::action::PortNo;
use crate::flow::{FlowMod, TableMod};
use crate::group::GroupMod;
use crate::meter::MeterMod;
use crate::pipeline::run::ports::PortState;

/// A message that changes a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Adds, modifies or deletes flow entries.
    Flow(FlowMod),
    /// Adds, modifies or deletes groups.
    Group(GroupMod),
    /// Adds, modifies or deletes meters.
    Meter(MeterMod),
    /// Configures a table.
    Table(TableMod),
    /// Sets the state of a port, or removes it (`None`).
    Port(PortNo, Option<PortState>),
}

impl fmt::Display for Message {
    /// Writes the message as a line of a pipeline's text; a removed port as a comment.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Flow(message) => message.fmt(f),
            Message::Group(message) => message.group.fmt(f),
            Message::Meter(message) => message.meter.fmt(f),
            Message::Table(message) => message.fmt(f),
            Message::Port(port, Some(state)) => {
                write!(f, "port={port}")?;
                if let Some(name) = state.name {
                    write!(f, ",name={name}")?;
                }
                if !state.is_up {
                    f.write_str(",link=down")?;
                }
                if let Some(speed) = state.speed {
                    write!(f, ",speed={speed}")?;
                }
                let flags = [
                    (",no-receive", state.no_receive),
                    (",no-forward", state.no_forward),
                    (",no-flood", state.no_flood),
                ];
                let mut set = flags.into_iter().filter(|(_, is_set)| *is_set);
                set.try_for_each(|(flag, _)| f.write_str(flag))
            }
            Message::Port(port, None) => write!(f, "# no port {port}"),
        }
    }
}
