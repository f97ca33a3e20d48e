//! The fields that rows of Arrow data must have, and the names of actions in results.

use std::sync::{Arc, Mutex, PoisonError};

use classyard::policy::PolicyChange;
use classyard::{ActionId, Policy, PolicyTransaction};
use classyard_arrow::HeaderFields;

/// The fields and action names of a table, for lookups in Arrow data. The table and its readers
/// share them.
pub(crate) struct ArrowFields {
    /// The fields that headers must have. They are noted before their rules are visible.
    fields: Mutex<Arc<HeaderFields>>,
    pub(crate) action_names: Vec<String>,
}

impl ArrowFields {
    pub(crate) fn new(policy: &Policy) -> ArrowFields {
        let names = (0..).map_while(|number| policy.action_name(ActionId(number)));
        ArrowFields {
            fields: Mutex::new(Arc::new(HeaderFields::of(policy))),
            action_names: names.map(str::to_owned).collect(),
        }
    }

    pub(crate) fn fields(&self) -> Arc<HeaderFields> {
        let fields = self.fields.lock();
        Arc::clone(&fields.unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes the fields that rules of a transaction depend on.
    pub(crate) fn note_fields(&self, transaction: &PolicyTransaction<'_>) {
        let mut fields = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
        if fields.are_all_needed() {
            return;
        }
        let fields = Arc::make_mut(&mut fields);
        for change in transaction.changes() {
            if let PolicyChange::Insert(forms) | PolicyChange::Modify(forms) = change {
                (forms.iter()).for_each(|&(part, rule)| fields.add_rule(part, rule));
            }
        }
    }
}
