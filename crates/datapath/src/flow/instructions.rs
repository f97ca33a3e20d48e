//! Instructions of a flow entry for the packets that it wins (OpenFlow 1.3.5 §5.9).

use std::collections::BTreeSet;
use std::fmt;

use super::table_id::TableId;
use crate::action::{self, Action, ActionSet, GroupId, PortNo};
use crate::error::{ErrorCode, OpenFlowError};
use crate::flow_match::FlowMatch;
use crate::meter::MeterId;

/// Instructions, at most one of each type, in the order of execution. An entry without
/// instructions ends the processing of a packet: the packet's action set is carried out,
/// and a packet with an empty action set is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Instructions {
    /// Passes the packet through a meter, which may drop it.
    pub meter: Option<MeterId>,
    /// Carries out actions immediately, in order.
    pub apply: Vec<Action>,
    /// Empties the action set.
    pub clear: bool,
    /// Writes actions into the action set.
    pub write: Vec<Action>,
    /// Writes metadata: value and mask.
    pub metadata: Option<(u64, u64)>,
    /// Continues with a later table. Without it, the action set is carried out.
    pub goto_table: Option<TableId>,
}

impl Instructions {
    /// Checks that the instructions fit an entry with this table and match. Does not check
    /// that meters, groups and ports exist.
    ///
    /// # Errors
    /// [`OpenFlowError`] about the first instruction that does not fit.
    pub fn check(&self, table: TableId, flow: &FlowMatch) -> Result<(), OpenFlowError> {
        if let Some(next) = self.goto_table
            && (next <= table || !next.is_table())
        {
            let message = format!(
                "goto_table:{next}: packets go from table {table} to a later one, {} at most",
                TableId::LAST
            );
            return Err(OpenFlowError::new(ErrorCode::BadTable, message));
        }
        if let Some((value, mask)) = self.metadata
            && value & !mask != 0
        {
            let message =
                format!("write_metadata:{value:#x}/{mask:#x} has bits outside of its mask");
            return Err(OpenFlowError::new(ErrorCode::UnsupportedMetadata, message));
        }
        action::check_length(&self.apply)?;
        action::check_length(&self.write)?;
        action::check(&self.apply, flow)?;
        if self.write.is_empty() {
            return Ok(());
        }
        // Also checks actions that later actions of their kind replace.
        self.write.iter().try_for_each(action::check_alone)?;
        let mut set = ActionSet::default();
        set.write(&self.write);
        let ordered: Vec<Action> = set.in_order().copied().collect();
        action::check(&ordered, flow)
    }

    /// Returns the groups that actions use, in the order of their numbers.
    pub(crate) fn groups(&self) -> BTreeSet<GroupId> {
        let groups = self.actions().filter_map(|action| match action {
            Action::Group(group) => Some(*group),
            _ => None,
        });
        groups.collect()
    }

    fn actions(&self) -> impl Iterator<Item = &Action> {
        self.apply.iter().chain(&self.write)
    }

    /// Returns the ports that actions send packets to, also reserved ports. A port may
    /// occur several times.
    pub fn output_ports(&self) -> impl Iterator<Item = PortNo> {
        self.actions().filter_map(Action::output_port)
    }

    /// Returns true if an action sends packets to a port.
    #[must_use]
    pub fn sends_to(&self, port: PortNo) -> bool {
        let mut actions = self.actions();
        actions.any(|action| matches!(action, Action::Output { port: to, .. } if *to == port))
    }

    /// Returns true if an action uses a group.
    #[must_use]
    pub fn uses_group(&self, group: GroupId) -> bool {
        self.actions().any(|action| *action == Action::Group(group))
    }
}

impl fmt::Display for Instructions {
    /// Writes the instructions in the syntax of `ovs-ofctl`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        if let Some(meter) = self.meter {
            parts.push(format!("meter:{meter}"));
        }
        parts.extend(self.apply.iter().map(ToString::to_string));
        if self.clear {
            parts.push("clear_actions".to_owned());
        }
        if !self.write.is_empty() {
            let write: Vec<String> = self.write.iter().map(ToString::to_string).collect();
            parts.push(format!("write_actions({})", write.join(",")));
        }
        match self.metadata {
            Some((value, u64::MAX)) => parts.push(format!("write_metadata:{value:#x}")),
            Some((value, mask)) => parts.push(format!("write_metadata:{value:#x}/{mask:#x}")),
            None => {}
        }
        if let Some(table) = self.goto_table {
            parts.push(format!("goto_table:{table}"));
        }
        match parts.is_empty() {
            true => f.write_str("drop"),
            false => f.write_str(&parts.join(",")),
        }
    }
}
