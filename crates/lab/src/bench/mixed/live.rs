//! The two kinds of live table behind one interface: the table of one engine, and
//! the table of a policy with several parts, where a rule has a form for each part.

use classyard::policy::PartId;
use classyard::reoptimise::{Drift, LookupPlan};
use classyard::table::Version;
use classyard::table::{EngineReplica, PolicyReplica, RuleReplica};
use classyard::{
    BuildError, EngineSpec, Limits, NoProgress, Policy, PolicyTable, PolicyTransaction,
    PolicyWriter, Reader, Table, Transaction, UpdateError, Writer,
};

use super::churn::{Form, Forms, Kind, Step};

/// A table with its writer and its next transaction.
pub(super) trait Live: Send {
    type Side: RuleReplica;

    /// Returns the writer.
    fn writer(&mut self) -> &mut Writer<Self::Side>;

    /// Prepares a transaction of these steps.
    fn prepare(&mut self, steps: impl Iterator<Item = Step>);

    /// Submits the transaction; returns once it is accepted.
    fn apply(&mut self) -> Result<Version, UpdateError>;

    /// Returns the drift of a part, or `None` if its engine cannot be re-optimised.
    fn drift(reader: &mut Reader<Self::Side>, part: PartId) -> Option<Drift>;

    /// Computes a plan for a part.
    fn plan(reader: &mut Reader<Self::Side>, part: PartId) -> Option<LookupPlan>;

    /// Begins to install a plan for a part.
    fn install(&mut self, part: PartId, plan: &LookupPlan) -> bool;
}

/// A table of one classifier.
pub(super) struct Single<'a> {
    writer: Writer,
    forms: &'a Forms<'a>,
    transaction: Transaction<'a>,
}

impl<'a> Single<'a> {
    /// Builds a table of the first part's rules.
    pub(super) fn build(
        rules: &Policy,
        forms: &'a Forms<'a>,
        spec: &EngineSpec,
    ) -> Result<(Single<'a>, Table), BuildError> {
        let rules = rules.part(PartId::FIRST);
        let (writer, table) = Table::build(rules, spec, &Limits::default(), &mut NoProgress)?;
        let single = Single {
            writer,
            forms,
            transaction: Transaction::new(),
        };
        Ok((single, table))
    }
}

impl Live for Single<'_> {
    type Side = EngineReplica;

    fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    fn prepare(&mut self, steps: impl Iterator<Item = Step>) {
        self.transaction.clear();
        for Step { kind, id, form } in steps {
            let rule = || {
                let rules = self.forms.all(form).part(PartId::FIRST);
                rules.get(id).expect("steps are about the policy's rules")
            };
            match kind {
                Kind::Insert => self.transaction.insert(rule()),
                Kind::Remove => self.transaction.remove(id),
                Kind::Modify => self.transaction.modify(rule()),
            };
        }
    }

    fn apply(&mut self) -> Result<Version, UpdateError> {
        self.writer.apply(&self.transaction)
    }

    fn drift(reader: &mut Reader, _: PartId) -> Option<Drift> {
        reader.drift()
    }

    fn plan(reader: &mut Reader, _: PartId) -> Option<LookupPlan> {
        let plan = reader.plan(&mut NoProgress);
        plan.expect("it is not cancelled, and memory is not limited")
    }

    fn install(&mut self, _: PartId, plan: &LookupPlan) -> bool {
        self.writer.install(plan)
    }
}

/// A table of several parts.
pub(super) struct Several<'a> {
    writer: PolicyWriter,
    forms: &'a Forms<'a>,
    transaction: PolicyTransaction<'a>,
}

impl<'a> Several<'a> {
    /// Builds a table of all parts.
    pub(super) fn build(
        rules: &Policy,
        forms: &'a Forms<'a>,
        spec: &EngineSpec,
    ) -> Result<(Several<'a>, PolicyTable), BuildError> {
        let (writer, table) =
            PolicyTable::build_policy(rules, spec, &Limits::default(), &mut NoProgress)?;
        let several = Several {
            writer,
            forms,
            transaction: PolicyTransaction::new(),
        };
        Ok((several, table))
    }
}

impl Live for Several<'_> {
    type Side = PolicyReplica;

    fn writer(&mut self) -> &mut PolicyWriter {
        &mut self.writer
    }

    fn prepare(&mut self, steps: impl Iterator<Item = Step>) {
        self.transaction.clear();
        let forms = self.forms;
        let rule = |id, form: Form| forms.all(form).rule(id);
        for Step { kind, id, form } in steps {
            match kind {
                Kind::Insert => self.transaction.insert(rule(id, form)),
                Kind::Remove => self.transaction.remove(id),
                Kind::Modify => self.transaction.modify(rule(id, form)),
            };
        }
    }

    fn apply(&mut self) -> Result<Version, UpdateError> {
        self.writer.apply(&self.transaction)
    }

    fn drift(reader: &mut Reader<PolicyReplica>, part: PartId) -> Option<Drift> {
        reader.drift(part)
    }

    fn plan(reader: &mut Reader<PolicyReplica>, part: PartId) -> Option<LookupPlan> {
        let plan = reader.plan(part, &mut NoProgress);
        plan.expect("it is not cancelled, and memory is not limited")
    }

    fn install(&mut self, part: PartId, plan: &LookupPlan) -> bool {
        self.writer.install(part, plan)
    }
}
