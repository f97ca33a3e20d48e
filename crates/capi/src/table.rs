//! Live tables, and transactions that change their rules.

use std::ffi::c_char;
use std::sync::{Arc, Mutex, PoisonError};

use classyard::{
    ActionId, EngineSpec, PolicyTable, PolicyTransactionBuf, PolicyWriter, Priority, RuleId,
};

use crate::arrow_fields::ArrowFields;
use crate::handle::{borrow, borrow_mut, give_to, take};
use crate::policy::{Policy, parse_rule, schemas};
use crate::status::{Fault, Status, call};
use crate::types::{Form, Forms, Rule, optional_text, put, slice, text};

/// Rules that are looked up and changed at the same time. Any thread may use a table.
pub struct Table {
    writer: Mutex<PolicyWriter>,
    pub(crate) readers: PolicyTable,
    pub(crate) arrow: Arc<ArrowFields>,
    /// A policy without rules: the schemas of the parts, and the actions.
    empty: classyard::Policy,
}

impl Table {
    /// Returns the parts, without rules.
    pub(crate) fn empty(&self) -> &classyard::Policy {
        &self.empty
    }
}

/// Makes a table of a policy's rules. The policy is not needed afterwards.
///
/// `engine` is the name of an engine with its options, such as "tuplemerge", or null for
/// "forest". An engine without updates is `CY_STATUS_BUILD_FAILED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_table_new(
    policy: *const Policy,
    engine: *const c_char,
    table: *mut *mut Table,
) -> Status {
    call(|| {
        // SAFETY: the pointers are as documented.
        let (policy, engine) = unsafe { (borrow(policy)?, optional_text(engine, "engine")?) };
        let spec = EngineSpec::parse(engine.unwrap_or("forest")).map_err(Fault::argument)?;
        let built = spec.builder().policy_table(&policy.rules);
        let (writer, readers) = built.map_err(|error| Fault::new(Status::BuildFailed, error))?;
        let schemas: Vec<_> = policy.rules.schemas().cloned().collect();
        let mut empty = classyard::Policy::new(policy.rules.name(), &schemas);
        for action in (0..).map_while(|number| policy.rules.action_name(ActionId(number))) {
            empty.declare_action(action);
        }
        let writer = Mutex::new(writer);
        let new_table = Table {
            writer,
            readers,
            arrow: Arc::new(ArrowFields::new(&policy.rules)),
            empty,
        };
        // SAFETY: the place is as documented.
        unsafe { give_to(table, new_table) }
    })
}

/// Frees a table. Its readers and transactions stay, and are freed on their own. Null is
/// accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_table_free(table: *mut Table) -> Status {
    // SAFETY: as documented, nobody uses the table.
    call(|| unsafe { take(table) }.map(drop))
}

/// Writes the number of rules to `*count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_table_rules(table: *const Table, count: *mut usize) -> Status {
    call(|| {
        // SAFETY: the pointer is as documented.
        let table = unsafe { borrow(table) }?;
        let writer = table.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the place is as documented.
        unsafe { put(count, writer.rules(), "number of rules") }
    })
}

/// Makes all changes of a transaction, in order, or none. Lookups that begin after the call see
/// all changes. The transaction is empty afterwards; if the changes are refused, it stays.
///
/// Several threads may apply transactions; each waits for the other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_table_apply(
    table: *const Table,
    transaction: *mut Transaction,
) -> Status {
    call(|| {
        // SAFETY: the pointers are as documented.
        let (table, transaction) = unsafe { (borrow(table)?, borrow_mut(transaction)?) };
        let mut writer = table.writer.lock().map_err(|_| {
            Fault::new(
                Status::InternalError,
                "an earlier change of the table ended by a panic",
            )
        })?;
        let changes = transaction.changes.transaction();
        let applied = writer.apply(&changes);
        applied.map_err(|error| Fault::new(Status::UpdateRefused, error))?;
        // Before lookups can see the rules.
        table.arrow.note_fields(&changes);
        drop(changes);
        writer.publish();
        transaction.changes.clear();
        Ok(())
    })
}

/// Changes to rules that are made together. A transaction is for one thread at a time, and for
/// tables with the schemas of the table that it was made for.
pub struct Transaction {
    changes: PolicyTransactionBuf,
    /// The schemas of the parts and the actions, for rules from texts.
    empty: classyard::Policy,
}

/// Makes a transaction without changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_transaction_new(
    table: *const Table,
    transaction: *mut *mut Transaction,
) -> Status {
    call(|| {
        // SAFETY: the pointer is as documented.
        let empty = unsafe { borrow(table) }?.empty.clone();
        let changes = PolicyTransactionBuf::new(empty.schemas());
        // SAFETY: the place is as documented.
        unsafe { give_to(transaction, Transaction { changes, empty }) }
    })
}

/// Frees a transaction. Null is accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_transaction_free(transaction: *mut Transaction) -> Status {
    // SAFETY: as documented, nobody uses the transaction.
    call(|| unsafe { take(transaction) }.map(drop))
}

/// Removes all changes from a transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_transaction_clear(transaction: *mut Transaction) -> Status {
    call(|| {
        // SAFETY: the pointer is as documented.
        unsafe { borrow_mut(transaction) }?.changes.clear();
        Ok(())
    })
}

/// A kind of change that has a rule.
#[derive(Clone, Copy)]
enum Change {
    Insert,
    Modify,
}

/// Appends a rule that is new: one form for each part that it is in. `cy_table_apply` refuses
/// a rule whose id is in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_transaction_insert(
    transaction: *mut Transaction,
    rule: *const Rule,
    forms: *const Form,
    form_count: usize,
) -> Status {
    // SAFETY: the pointers are as documented.
    call(|| unsafe { append(transaction, Change::Insert, rule, forms, form_count) })
}

/// Appends a rule that replaces the rule of the same id. `cy_table_apply` refuses it if there
/// is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_transaction_modify(
    transaction: *mut Transaction,
    rule: *const Rule,
    forms: *const Form,
    form_count: usize,
) -> Status {
    // SAFETY: the pointers are as documented.
    call(|| unsafe { append(transaction, Change::Modify, rule, forms, form_count) })
}

/// # Safety
/// As for [`borrow_mut`], [`slice`] and [`Forms::new`].
unsafe fn append(
    transaction: *mut Transaction,
    change: Change,
    rule: *const Rule,
    forms: *const Form,
    form_count: usize,
) -> Result<(), Fault> {
    // SAFETY: the caller promises it.
    let (transaction, rule) = unsafe { (borrow_mut(transaction)?, &slice(rule, 1, "rule")?[0]) };
    let parts = transaction.empty.parts().len();
    // SAFETY: the caller promises it.
    let forms = unsafe { Forms::new(forms, form_count, parts) }?;
    let (id, priority, action) = rule.head()?;
    let (changes, forms) = (&mut transaction.changes, forms.borrowed());
    let appended = match change {
        Change::Insert => changes.insert(id, priority, action, &forms),
        Change::Modify => changes.modify(id, priority, action, &forms),
    };
    appended.map_err(Fault::argument)?.cookie(rule.cookie);
    Ok(())
}

/// Appends a rule that is new, from a text as for `cy_policy_add_text`. Its action must be an
/// action of the policy that the table was made from.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_transaction_insert_text(
    transaction: *mut Transaction,
    id: u32,
    priority: u32,
    rule: *const c_char,
) -> Status {
    // SAFETY: the pointers are as documented.
    call(|| unsafe { append_text(transaction, Change::Insert, id, priority, rule) })
}

/// Appends a rule that replaces the rule of the same id, from a text as for
/// `cy_transaction_insert_text`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_transaction_modify_text(
    transaction: *mut Transaction,
    id: u32,
    priority: u32,
    rule: *const c_char,
) -> Status {
    // SAFETY: the pointers are as documented.
    call(|| unsafe { append_text(transaction, Change::Modify, id, priority, rule) })
}

/// # Safety
/// As for [`borrow_mut`] and [`text`].
unsafe fn append_text(
    transaction: *mut Transaction,
    change: Change,
    id: u32,
    priority: u32,
    rule: *const c_char,
) -> Result<(), Fault> {
    // SAFETY: the caller promises it.
    let (transaction, rule) = unsafe { (borrow_mut(transaction)?, text(rule, "rule")?) };
    let empty = &transaction.empty;
    let parsed = parse_rule(&schemas(empty)?, id, priority, rule)?;
    let name = parsed.action();
    let action = empty.action_named(name).ok_or_else(|| {
        Fault::argument(format!(
            "`{name}` is no action of the policy; declare it with cy_policy_action before \
             cy_table_new"
        ))
    })?;
    let forms = parsed.forms();
    let forms: Vec<_> = forms
        .iter()
        .map(|(part, matches)| (*part, &matches[..]))
        .collect();
    let changes = &mut transaction.changes;
    let priority = Priority(priority);
    let appended = match change {
        Change::Insert => changes.insert(parsed.id, priority, action, &forms),
        Change::Modify => changes.modify(parsed.id, priority, action, &forms),
    };
    appended.map(drop).map_err(Fault::argument)
}

/// Appends the removal of the rule with this id. `cy_table_apply` refuses it if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_transaction_remove(transaction: *mut Transaction, id: u32) -> Status {
    call(|| {
        let id = RuleId::new(id).map_err(Fault::argument)?;
        // SAFETY: the pointer is as documented.
        unsafe { borrow_mut(transaction) }?.changes.remove(id);
        Ok(())
    })
}
