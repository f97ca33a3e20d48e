//! What packets are processed by: tables, instructions, groups, ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use classyard::{Priority, RuleId};

use super::Change;
use super::ports::Ports;
use crate::action::{GroupId, PortNo};
use crate::error::{ErrorCode, OpenFlowError};
use crate::flow::{FlowEntry, Instructions, TableId};
use crate::flow_table::{FlowTable, TableError, TableSettings};
use crate::group::{Bucket, Group};

/// What an entry does.
pub(super) struct SideFlow {
    pub(super) instructions: Arc<Instructions>,
    pub(super) cookie: u64,
    /// It is a table-miss entry: of priority 0, for every packet.
    pub(super) is_miss: bool,
}

/// All that packets are processed by.
pub(super) struct Side {
    settings: TableSettings,
    tables: BTreeMap<TableId, FlowTable>,
    /// By the entries' numbers.
    flows: Vec<Option<SideFlow>>,
    groups: BTreeMap<GroupId, Group>,
    pub(super) ports: Ports,
}

impl Side {
    pub(super) fn new(settings: TableSettings) -> Side {
        Side {
            settings,
            tables: BTreeMap::new(),
            flows: Vec::new(),
            groups: BTreeMap::new(),
            ports: Ports::default(),
        }
    }

    pub(super) fn merge(&mut self) -> Result<(), TableError> {
        self.tables.values_mut().try_for_each(FlowTable::merge)
    }

    pub(super) fn table(&self, table: TableId) -> Option<&FlowTable> {
        self.tables.get(&table)
    }

    pub(super) fn flow(&self, id: RuleId) -> &SideFlow {
        let flow = self.flows.get(id.index()).and_then(Option::as_ref);
        flow.expect("an entry of the tables")
    }

    pub(super) fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// Whether packets may go to a bucket: what it watches is live, or it watches
    /// nothing.
    pub(super) fn is_live(&self, bucket: &Bucket) -> bool {
        let port = bucket.watch_port.map(|port| self.is_live_port(port));
        let group = bucket.watch_group.map(|group| self.is_live_group(group));
        match (port, group) {
            (None, None) => true,
            (port, group) => port.unwrap_or(false) || group.unwrap_or(false),
        }
    }

    fn is_live_port(&self, port: PortNo) -> bool {
        self.ports.is_live(port)
    }

    /// Groups do not watch each other in circles.
    fn is_live_group(&self, id: GroupId) -> bool {
        let group = self.groups.get(&id);
        group.is_some_and(|group| group.buckets.iter().any(|bucket| self.is_live(bucket)))
    }

    /// Makes changes, all or none.
    ///
    /// # Errors
    /// The position of the change that cannot be made, and why.
    pub(super) fn make(&mut self, changes: &[Change]) -> Result<(), (usize, OpenFlowError)> {
        for (number, change) in changes.iter().enumerate() {
            if let Some((old, new)) = change.flow()
                && let Err(error) = self.replace(old, new)
            {
                for done in changes[..number].iter().rev() {
                    if let Some((old, new)) = done.flow() {
                        let undone = self.replace(new, old);
                        undone.expect("the entry was there before");
                    }
                }
                return Err((number, error));
            }
        }
        for change in changes {
            match change.group() {
                Some((_, Some(new))) => {
                    self.groups.insert(new.id, new.clone());
                }
                Some((Some(old), None)) => {
                    self.groups.remove(&old.id);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts an entry in the place of another one, which has the same table, match and
    /// priority, or adds or removes one.
    fn replace(
        &mut self,
        old: Option<&FlowEntry>,
        new: Option<&FlowEntry>,
    ) -> Result<(), OpenFlowError> {
        match (old, new) {
            (None, Some(new)) => {
                let settings = &self.settings;
                let table = self.tables.entry(new.table);
                let table = table.or_insert_with(|| FlowTable::new(settings.clone()));
                let priority = Priority(u32::from(new.priority));
                if let Err(error) = table.add(new.id, priority, Arc::clone(&new.flow)) {
                    let message = format!("table {}, {}: {error}", new.table, new.flow);
                    return Err(OpenFlowError::new(ErrorCode::FlowModTableFull, message));
                }
                self.set(new);
            }
            (Some(_), Some(new)) => self.set(new),
            (Some(old), None) => {
                let table = self.tables.get_mut(&old.table).expect("its table");
                assert!(table.remove(old.id), "an entry of its table");
                if table.is_empty() {
                    self.tables.remove(&old.table);
                }
                self.flows[old.id.index()] = None;
            }
            (None, None) => {}
        }
        Ok(())
    }

    fn set(&mut self, entry: &FlowEntry) {
        let at = entry.id.index();
        if self.flows.len() <= at {
            self.flows.resize_with(at + 1, || None);
        }
        self.flows[at] = Some(SideFlow {
            instructions: Arc::clone(&entry.instructions),
            cookie: entry.cookie,
            is_miss: entry.priority == 0 && entry.flow.values().is_empty(),
        });
    }
}
