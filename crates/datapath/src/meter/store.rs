//! The store of all meters, which messages change. Changes can be undone.

use std::collections::BTreeMap;

use super::{Meter, MeterFlags, MeterId, MeterUnit};
use crate::error::{ErrorCode, OpenFlowError};

/// The command of a [`MeterMod`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterCommand {
    /// Adds a new meter.
    Add,
    /// Replaces unit and bands of an existing meter. The meter keeps its counters; its bands
    /// count from 0, with full token buckets.
    Modify,
    /// Deletes a meter if it exists, or all meters if the number is [`MeterId::ALL`].
    Delete,
}

/// A message that changes meters (`ofp_meter_mod`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterMod {
    /// The command.
    pub command: MeterCommand,
    /// The new or modified meter. Deletions use only its number.
    pub meter: Meter,
}

impl MeterMod {
    /// Returns a message that deletes a meter, or all meters.
    #[must_use]
    pub fn delete(id: MeterId) -> MeterMod {
        MeterMod {
            command: MeterCommand::Delete,
            meter: Meter {
                id,
                unit: MeterUnit::Packets,
                flags: MeterFlags::default(),
                bands: Vec::new(),
            },
        }
    }
}

/// A change of a meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeterChange {
    /// The meter was added.
    Added(Meter),
    /// The meter was modified.
    Changed {
        /// The meter before the change.
        old: Meter,
        /// The meter after the change.
        new: Meter,
    },
    /// The meter was removed. A pipeline also removes all flow entries that use it.
    Removed(Meter),
}

/// The meters of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterStore {
    meters: BTreeMap<MeterId, Meter>,
}

impl MeterStore {
    /// Returns an empty store.
    #[must_use]
    pub fn new() -> MeterStore {
        MeterStore::default()
    }

    /// Returns a meter by its number.
    #[must_use]
    pub fn get(&self, id: MeterId) -> Option<&Meter> {
        self.meters.get(&id)
    }

    /// Returns all meters, in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Meter> {
        self.meters.values()
    }

    /// Carries out a message. Returns the changes.
    ///
    /// # Errors
    /// [`OpenFlowError`]; then nothing is changed.
    pub fn apply(&mut self, message: &MeterMod) -> Result<Vec<MeterChange>, OpenFlowError> {
        let meter = &message.meter;
        let is_known = self.meters.contains_key(&meter.id);
        match message.command {
            MeterCommand::Add if is_known => {
                let message = format!("meter {} already exists; modify it", meter.id);
                Err(OpenFlowError::new(ErrorCode::MeterExists, message))
            }
            MeterCommand::Modify if !is_known => {
                let message = format!("there is no meter {}; add it", meter.id);
                Err(OpenFlowError::new(ErrorCode::UnknownMeter, message))
            }
            MeterCommand::Add | MeterCommand::Modify => {
                meter.check()?;
                let new = meter.clone();
                Ok(vec![match self.meters.insert(meter.id, new.clone()) {
                    None => MeterChange::Added(new),
                    Some(old) => MeterChange::Changed { old, new },
                }])
            }
            MeterCommand::Delete if meter.id == MeterId::ALL => {
                let meters = std::mem::take(&mut self.meters);
                Ok(meters.into_values().map(MeterChange::Removed).collect())
            }
            MeterCommand::Delete => {
                let removed = self.meters.remove(&meter.id);
                Ok(removed.into_iter().map(MeterChange::Removed).collect())
            }
        }
    }

    /// Undoes the latest changes. `changes` has them in the order of [`apply`](Self::apply).
    pub fn undo(&mut self, changes: Vec<MeterChange>) {
        for change in changes.into_iter().rev() {
            match change {
                MeterChange::Added(meter) => {
                    self.meters.remove(&meter.id);
                }
                MeterChange::Changed { old, .. } | MeterChange::Removed(old) => {
                    self.meters.insert(old.id, old);
                }
            }
        }
    }
}
