//! The two kinds of live table, driven the same way: that of a classifier, and
//! that of a policy with several parts, where a change is a list of rules.

use classyard::policy::{PartId, PolicyChange};
use classyard::table::Replica;
use classyard::{
    BuildError, Classifier, EngineSpec, Limits, NoProgress, Policy, PolicyClassifier, PolicyTable,
    PolicyWriter, Table, Transaction, UpdateError, Version, Writer,
};

use super::churn::{Form, Forms, Kind, Step};

/// What is on a side of a table.
pub(super) trait Side: Replica {
    /// The classifier of one part.
    fn classifier(&self, part: PartId) -> &dyn Classifier;
}

impl Side for dyn Classifier {
    fn classifier(&self, _: PartId) -> &dyn Classifier {
        self
    }
}

impl Side for PolicyClassifier {
    fn classifier(&self, part: PartId) -> &dyn Classifier {
        self.part(part)
    }
}

/// A table with its writer, and the transaction that it makes next.
pub(super) trait Live: Send {
    type Side: Side + ?Sized;

    /// The writer.
    fn writer(&mut self) -> &mut Writer<Self::Side>;

    /// Begins a transaction of these steps.
    fn prepare(&mut self, steps: impl Iterator<Item = Step>);

    /// Has the transaction accepted.
    fn apply(&mut self) -> Result<Version, UpdateError>;
}

/// A table of one classifier.
pub(super) struct Single<'a> {
    writer: Writer,
    forms: &'a Forms<'a>,
    transaction: Transaction<'a>,
}

impl<'a> Single<'a> {
    /// A table of the first part's rules.
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
    type Side = dyn Classifier;

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
}

/// A table of several parts.
pub(super) struct Several<'a> {
    writer: PolicyWriter,
    forms: &'a Forms<'a>,
    changes: Vec<PolicyChange<'a>>,
}

impl<'a> Several<'a> {
    /// A table of all parts.
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
            changes: Vec::new(),
        };
        Ok((several, table))
    }
}

impl Live for Several<'_> {
    type Side = PolicyClassifier;

    fn writer(&mut self) -> &mut PolicyWriter {
        &mut self.writer
    }

    fn prepare(&mut self, steps: impl Iterator<Item = Step>) {
        self.changes.clear();
        let forms = self.forms;
        let rule = |id, form: Form| forms.all(form).rule(id).collect();
        self.changes
            .extend(steps.map(|Step { kind, id, form }| match kind {
                Kind::Insert => PolicyChange::Insert(rule(id, form)),
                Kind::Remove => PolicyChange::Remove(id),
                Kind::Modify => PolicyChange::Modify(rule(id, form)),
            }));
    }

    fn apply(&mut self) -> Result<Version, UpdateError> {
        self.writer.apply(&self.changes)
    }
}
