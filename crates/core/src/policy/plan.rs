//! Translation of a policy's transaction into changes of each part.

use std::sync::Arc;

use crate::contract::classifier::Limits;
use crate::model::error::UpdateError;
use crate::model::rule::{RuleId, RuleRef};
use crate::model::schema::Schema;
use crate::model::transaction::Change;
use crate::model::transaction::packed::Kind;
use crate::model::transaction::standing::Standing;

use super::{MAX_PARTS, PartId, PolicyChange, PolicyTransaction};

/// A change of one part's rules.
#[derive(Clone, Copy)]
struct Step {
    kind: Kind,
    part: PartId,
    id: RuleId,
    /// The number of rules that the policy gains by the change. All steps of a
    /// change except the first have 0.
    growth: i8,
    /// The position of the change in the caller's transaction.
    change: usize,
    /// The position of the rule's new form among all forms.
    form: usize,
}

/// The changes of each part for a transaction. A reused plan allocates nothing.
#[derive(Default)]
pub(crate) struct Plan {
    steps: Vec<Step>,
    /// The parts of each rule after the changes so far.
    standing: Standing,
    /// The number of rules that each part gains.
    growth: [isize; MAX_PARTS],
    /// The number of rules in the policy after the changes.
    rules: usize,
}

impl Plan {
    /// Plans a transaction for parts with these schemas. Before the
    /// transaction, the policy has `rules` rules. `standing_before` returns the
    /// parts that then contain a rule, a bit for each part. Checks the limit on
    /// rules, but not the parts' own limits.
    ///
    /// # Errors
    /// [`UpdateError`] names the first change that cannot be made.
    pub(crate) fn make<'s>(
        &mut self,
        transaction: &PolicyTransaction<'_>,
        schemas: &(impl ExactSizeIterator<Item = &'s Arc<Schema>> + Clone),
        limits: &Limits,
        rules: usize,
        standing_before: impl Fn(RuleId) -> u8,
    ) -> Result<(), UpdateError> {
        self.steps.clear();
        self.standing.clear();
        self.growth = [0; MAX_PARTS];
        self.rules = rules;
        let mut form = 0;
        for (index, change) in transaction.changes().enumerate() {
            let (id, forms) = change
                .rule(schemas.len())
                .map_err(|error| UpdateError::Parts {
                    change: index,
                    error,
                })?;
            check_schemas(index, forms, schemas)?;
            let known = self.standing.get(id);
            let before = known.unwrap_or_else(|| standing_before(id));
            let mut growth = self.count(index, change, id, before != 0, limits)?;
            let mut step = |kind, part: PartId, form| {
                self.growth[part.index()] += match kind {
                    Kind::Insert => 1,
                    Kind::Remove => -1,
                    Kind::Modify => 0,
                };
                self.steps.push(Step {
                    kind,
                    part,
                    id,
                    growth: std::mem::take(&mut growth),
                    change: index,
                    form,
                });
            };
            let mut after = 0;
            for (part, _) in forms {
                let bit = 1 << part.index();
                after |= bit;
                let kind = match before & bit {
                    0 => Kind::Insert,
                    _ => Kind::Modify,
                };
                step(kind, *part, form);
                form += 1;
            }
            for part in (0..schemas.len()).map(PartId::from_index) {
                if before & !after & (1 << part.index()) != 0 {
                    step(Kind::Remove, part, 0);
                }
            }
            if transaction.len() > 1 {
                self.standing.set(id, after);
            }
        }
        Ok(())
    }

    /// Checks that an inserted rule is not present, and that a removed or
    /// modified rule is present. Updates the number of rules and checks it
    /// against the limit. Returns the number of rules that the policy gains.
    fn count(
        &mut self,
        index: usize,
        change: PolicyChange<'_>,
        id: RuleId,
        present: bool,
        limits: &Limits,
    ) -> Result<i8, UpdateError> {
        let missing = |operation| UpdateError::UnknownId {
            change: index,
            operation,
            id: id.get(),
        };
        let growth = match change {
            PolicyChange::Insert(_) if present => {
                return Err(UpdateError::DuplicateId {
                    change: index,
                    id: id.get(),
                });
            }
            PolicyChange::Remove(_) if !present => return Err(missing("remove")),
            PolicyChange::Modify(_) if !present => return Err(missing("modify")),
            PolicyChange::Insert(_) => 1,
            PolicyChange::Remove(_) => -1,
            PolicyChange::Modify(_) => 0,
        };
        self.rules = self.rules.saturating_add_signed(growth.into());
        if self.rules > limits.rules {
            return Err(UpdateError::TooManyRules {
                change: index,
                found: self.rules,
                limit: limits.rules,
            });
        }
        Ok(growth)
    }

    /// Returns the number of rules in the policy after the changes.
    pub(crate) fn rules(&self) -> usize {
        self.rules
    }

    /// Returns the number of changes in all parts together.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns the changes of all parts for the planned transaction, in order.
    /// Each change has the number of rules that the policy gains by it, and the
    /// position of the caller's change in the transaction.
    pub(crate) fn changes<'t>(
        &self,
        transaction: &'t PolicyTransaction<'_>,
    ) -> impl Iterator<Item = PartChange<'t>> {
        self.steps.iter().map(|step| {
            let rule = || transaction.forms()[step.form].1;
            PartChange {
                part: step.part,
                change: match step.kind {
                    Kind::Insert => Change::Insert(rule()),
                    Kind::Remove => Change::Remove(step.id),
                    Kind::Modify => Change::Modify(rule()),
                },
                growth: step.growth,
                origin: step.change,
            }
        })
    }

    /// Returns the first change of the transaction that adds a rule to a part,
    /// if the part has more rules afterwards.
    pub(crate) fn first_to_grow(&self, part: PartId) -> Option<usize> {
        if self.growth[part.index()] <= 0 {
            return None;
        }
        let inserts = |step: &&Step| step.part == part && step.kind == Kind::Insert;
        self.steps.iter().find(inserts).map(|step| step.change)
    }

    /// Returns the bytes held, including unused capacity.
    pub(crate) fn bytes(&self) -> usize {
        self.steps.capacity() * size_of::<Step>() + self.standing.bytes()
    }
}

/// A change of one part's rules.
pub(crate) struct PartChange<'t> {
    pub(crate) part: PartId,
    pub(crate) change: Change<'t>,
    pub(crate) growth: i8,
    pub(crate) origin: usize,
}

fn check_schemas<'s>(
    change: usize,
    forms: &[(PartId, RuleRef<'_>)],
    schemas: &(impl Iterator<Item = &'s Arc<Schema>> + Clone),
) -> Result<(), UpdateError> {
    for (part, rule) in forms {
        let mut schemas = schemas.clone();
        let expected = schemas.nth(part.index()).expect("the part is there");
        if !Arc::ptr_eq(rule.schema(), expected) && rule.schema() != expected {
            return Err(UpdateError::WrongSchema {
                change,
                found: rule.schema().name().to_owned(),
                expected: expected.name().to_owned(),
            });
        }
    }
    Ok(())
}
