//! All meters, changed by messages, which can be taken back.

use std::collections::BTreeMap;

use super::{Meter, MeterId, MeterUnit};
use crate::error::{ErrorCode, OpenFlowError};

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterCommand {
    /// Adds a meter that is not there.
    Add,
    /// Replaces unit and bands of a meter that is there. It goes on counting; its bands
    /// count and measure from 0.
    Modify,
    /// Deletes a meter, if it is there, or all.
    Delete,
}

/// A message that changes meters (`ofp_meter_mod`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterMod {
    /// What is to be done.
    pub command: MeterCommand,
    /// The meter, or what it is to be. Deletions look at its number alone.
    pub meter: Meter,
}

impl MeterMod {
    /// A message that deletes a meter, or all.
    #[must_use]
    pub fn delete(id: MeterId) -> MeterMod {
        MeterMod {
            command: MeterCommand::Delete,
            meter: Meter {
                id,
                unit: MeterUnit::Packets,
                bands: Vec::new(),
            },
        }
    }
}

/// What became of a meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeterChange {
    /// It was added.
    Added(Meter),
    /// It has other bands.
    Changed {
        /// What it was.
        old: Meter,
        /// What it is.
        new: Meter,
    },
    /// It is gone, and with it all flow entries that use it.
    Removed(Meter),
}

/// All meters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterStore {
    meters: BTreeMap<MeterId, Meter>,
}

impl MeterStore {
    /// No meter.
    #[must_use]
    pub fn new() -> MeterStore {
        MeterStore::default()
    }

    /// A meter by its number.
    #[must_use]
    pub fn get(&self, id: MeterId) -> Option<&Meter> {
        self.meters.get(&id)
    }

    /// All meters, by their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Meter> {
        self.meters.values()
    }

    /// Carries a message out; what was changed.
    ///
    /// # Errors
    /// [`OpenFlowError`]; nothing is changed then.
    pub fn apply(&mut self, message: &MeterMod) -> Result<Vec<MeterChange>, OpenFlowError> {
        let meter = &message.meter;
        let is_known = self.meters.contains_key(&meter.id);
        match message.command {
            MeterCommand::Add if is_known => {
                let message = format!("meter {} is there already; modify it", meter.id);
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
                let all = std::mem::take(&mut self.meters);
                Ok(all.into_values().map(MeterChange::Removed).collect())
            }
            MeterCommand::Delete => {
                let removed = self.meters.remove(&meter.id);
                Ok(removed.into_iter().map(MeterChange::Removed).collect())
            }
        }
    }

    /// Takes back what the last messages changed: all changes since some moment, in
    /// the order in which they were made.
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
