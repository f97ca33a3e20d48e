//! Checks transactions of rules against everything accepted.

use std::sync::Arc;

use crate::contract::classifier::Limits;
use crate::model::error::UpdateError;
use crate::model::rule::RuleId;
use crate::model::schema::Schema;
use crate::model::transaction::standing::Standing;
use crate::model::transaction::{Change, Transaction};
use crate::policy::{PartId, Plan, PolicyTransaction};

use super::log::RuleLog;
use super::parts::Parts;

/// The writer's state about rules: the parts of each rule that pending changes touch,
/// the number of rules, and the limits. After the first transactions, it checks without
/// allocating.
pub struct AcceptedRules {
    /// The parts' schemas.
    schemas: Box<[Arc<Schema>]>,
    limits: Limits,
    /// The number of accepted rules.
    rules: usize,
    /// For each rule that pending changes touch, the parts that contain it. For other
    /// rules, the live side has the parts.
    pending: Standing,
    /// From the last check: the number of rules after the transaction.
    rules_after: usize,
    /// From the last check: the ids that the transaction touches, in a table of one
    /// engine.
    touched: Standing,
    /// From the last check: the changes in each part, in a table of a policy.
    plan: Plan,
}

impl AcceptedRules {
    /// Returns the state for a table of two replicas. The state enforces these limits.
    ///
    /// # Errors
    /// [`BuildError::TooManyBytes`](crate::BuildError::TooManyBytes) if a part of either
    /// replica takes more bytes than the limit, including actions and cookies.
    pub(super) fn new<R: Parts>(
        sides: [&R; 2],
        rules: usize,
        limits: &Limits,
    ) -> Result<AcceptedRules, crate::model::error::BuildError> {
        if limits.bytes != usize::MAX {
            for side in sides {
                let mut parts = side.part_ids();
                parts.try_for_each(|part| limits.check_bytes(side.part_bytes(part)))?;
            }
        }
        let schemas = sides[0].part_ids().map(|part| sides[0].engine(part));
        Ok(AcceptedRules {
            schemas: schemas.map(|engine| Arc::clone(engine.schema())).collect(),
            limits: *limits,
            rules,
            pending: Standing::default(),
            rules_after: rules,
            touched: Standing::default(),
            plan: Plan::default(),
        })
    }

    /// The number of accepted rules.
    pub(super) fn rules(&self) -> usize {
        self.rules
    }

    /// Returns the parts that contain an accepted rule: a bit for each part.
    pub(super) fn standing<R: Parts>(&self, live: &R, id: RuleId) -> u8 {
        standing(&self.pending, live, id)
    }

    /// Records the changes of the last transaction, which begin at position `from` of the
    /// log. The log has a change for every part of a changed rule, so the live side need
    /// not be read.
    pub(super) fn record(&mut self, log: &RuleLog, from: usize) {
        for (id, part, stands) in log.standing(from) {
            let (bits, bit) = (self.pending.bits_mut(id), 1 << part.index());
            match stands {
                true => *bits |= bit,
                false => *bits &= !bit,
            }
        }
    }

    /// Removes the changes of a log from the state. The log must have all recorded
    /// changes.
    pub(super) fn forget(&mut self, log: &RuleLog) {
        self.pending.forget(log.standing(0).map(|(id, _, _)| id));
    }

    /// Bytes held, including unused capacity.
    pub(super) fn bytes(&self) -> usize {
        self.pending.bytes() + self.touched.bytes() + self.plan.bytes()
    }
}

/// Returns the parts that contain a rule after the pending changes: a bit for each part.
/// If no pending change touches the rule, reads the live side.
fn standing<R: Parts>(pending: &Standing, live: &R, id: RuleId) -> u8 {
    pending.get(id).unwrap_or_else(|| {
        live.part_ids().fold(0, |bits, part| {
            bits | u8::from(live.engine(part).contains(id)) << part.index()
        })
    })
}

impl AcceptedRules {
    /// Checks a transaction of a table of one engine; see
    /// [`Accepted::check`](crate::table::Accepted::check).
    pub(super) fn check_engine<R: Parts>(
        &mut self,
        live: &R,
        transaction: &Transaction<'_>,
    ) -> Result<usize, UpdateError> {
        let engine = live.engine(PartId::FIRST);
        let (limits, pending) = (&self.limits, &self.pending);
        let checked = transaction.validate_with(
            &mut self.touched,
            &self.schemas[0],
            &limits.within(engine.capacity()),
            self.rules,
            &|| live.part_bytes(PartId::FIRST),
            &|id| standing(pending, live, id) != 0,
        );
        self.rules_after = checked.map_err(|error| limits.blame(error, engine.engine()))?;
        Ok(transaction.changes().len())
    }

    /// Accepts the transaction that [`check_engine`](Self::check_engine) has checked.
    pub(super) fn accept_engine(&mut self, transaction: &Transaction<'_>, log: &mut RuleLog) {
        self.rules = self.rules_after;
        for change in transaction.changes() {
            log.push(PartId::FIRST, change, growth(change));
        }
    }
}

fn growth(change: &Change<'_>) -> i8 {
    match change {
        Change::Insert(_) => 1,
        Change::Remove(_) => -1,
        Change::Modify(_) => 0,
    }
}

impl AcceptedRules {
    /// Checks a transaction of a policy's table; see
    /// [`Accepted::check`](crate::table::Accepted::check).
    pub(super) fn check_policy<R: Parts>(
        &mut self,
        live: &R,
        transaction: &PolicyTransaction<'_>,
    ) -> Result<usize, UpdateError> {
        // No part has more rules than all parts together. So if all rules fit into the
        // part with the smallest capacity, each part has room for its own.
        let engines = live.part_ids().map(|part| live.engine(part));
        let capacities = engines.map(|engine| (engine.capacity(), engine.engine()));
        let (capacity, engine) = capacities.min().expect("a policy has a part");
        let (limits, pending) = (&self.limits, &self.pending);
        let planned = self.plan.make(
            transaction,
            &self.schemas.iter(),
            &limits.within(capacity),
            self.rules,
            |id| standing(pending, live, id),
        );
        planned.map_err(|error| limits.blame(error, engine))?;
        if limits.bytes != usize::MAX {
            for part in live.part_ids() {
                let Some(change) = self.plan.first_to_grow(part) else {
                    continue;
                };
                let held = live.part_bytes(part);
                if held > limits.bytes {
                    return Err(UpdateError::TooManyBytes {
                        change,
                        held,
                        limit: limits.bytes,
                    });
                }
            }
        }
        self.rules_after = self.plan.rules();
        Ok(self.plan.len())
    }

    /// Accepts the transaction that [`check_policy`](Self::check_policy) has checked.
    pub(super) fn accept_policy(&mut self, transaction: &PolicyTransaction<'_>, log: &mut RuleLog) {
        self.rules = self.rules_after;
        for step in self.plan.changes(transaction) {
            log.push(step.part, &step.change, step.growth);
        }
    }
}
