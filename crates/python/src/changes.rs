//! Transactions: lines of rules to insert and to modify, and ids to remove.

use std::collections::HashMap;

use classyard::policy::PartId;
use classyard::{ActionId, FieldMatch, PolicyTransactionBuf, Priority, RuleId, Schema};
use classyard_workload::diagnostic::{ReadError, ReadOptions};
use classyard_workload::formats::{RuleFormat, SchemaChoice, read_policy};
use pyo3::prelude::*;
use std::sync::Arc;

use crate::error::{read_error, update_error};

/// A transaction that was made.
#[pyclass(frozen, get_all, module = "classyard")]
pub(crate) struct Update {
    /// The version of the rules after the transaction: the number of transactions.
    version: u64,
    /// The ids of the inserted rules, in the order of the lines.
    inserted: Vec<u32>,
}

#[pymethods]
impl Update {
    fn __repr__(&self) -> String {
        format!(
            "<classyard.Update version {}, inserted {:?}>",
            self.version, self.inserted
        )
    }
}

impl Update {
    pub(crate) fn new(version: u64, inserted: Vec<u32>) -> Update {
        Update { version, inserted }
    }
}

/// The reason why a transaction is not made.
pub(crate) enum Fault {
    /// A line that cannot be read. The index is its position in its list.
    Line { error: ReadError, index: usize },
    /// A change cannot be made.
    Refused {
        message: String,
        change: Option<(&'static str, usize)>,
    },
}

impl Fault {
    pub(crate) fn into_error(self, py: Python<'_>) -> PyErr {
        match self {
            Fault::Line { error, index } => {
                // The line follows one line that the caller did not write.
                let offset = i64::try_from(index).unwrap_or(i64::MAX) - 1;
                read_error(py, &error, offset)
            }
            Fault::Refused { message, change } => {
                let place = change.map(|(list, index)| format!("{list}[{index}]: "));
                update_error(py, place.unwrap_or_default() + &message, change)
            }
        }
    }
}

/// A rule of a line.
pub(crate) struct NewRule {
    /// The list of the line, and its position there.
    pub(crate) change: (&'static str, usize),
    /// The id on the line.
    pub(crate) id: Option<RuleId>,
    pub(crate) priority: Priority,
    pub(crate) action: String,
    pub(crate) name: Option<String>,
    pub(crate) forms: Vec<(PartId, Vec<FieldMatch>)>,
}

/// The ids of rules that stand before a line while it is read: an id without a number on the
/// line is the number of these rules.
const IDS_BEFORE: [u32; 2] = [4_294_967_294, 4_294_967_293];

/// Reads lines of the own format. Each line is read on its own. It must have a priority: a
/// rule with a priority stands before it, and either all rules have one or none.
pub(crate) fn parse(
    schema: &SchemaChoice,
    list: &'static str,
    lines: &[String],
) -> Result<Vec<NewRule>, Fault> {
    let mut rules = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let change = (list, index);
        let refused = |message: &str| Fault::Refused {
            message: message.to_owned(),
            change: Some(change),
        };
        if line.contains(['\n', '\r']) {
            return Err(refused("a rule of several lines; expected one line"));
        }
        let read = |before: usize| {
            let before = IDS_BEFORE[..before].iter();
            let text: String = before
                .map(|id| format!("deny priority=1 id={id}\n"))
                .collect();
            let format = Some(RuleFormat::Rules);
            let source = format!("<{list}>");
            let options = ReadOptions::DEFAULT;
            let read = read_policy(&source, &(text + line), format, Some(schema), &options);
            read.map(|read| read.value)
                .map_err(|error| Fault::Line { error, index })
        };
        let policy = read(1)?;
        let ids = &policy.ids()[1..];
        let Some(first) = ids.first() else {
            return Err(refused("a line without a rule"));
        };
        // The id is the position of the rule, or the line says so.
        let has_id = first.get() != 1 || read(2)?.ids()[2] == *first;
        for &id in ids {
            let mut forms = policy.rule(id).peekable();
            let (_, rule) = forms.peek().expect("the form of a rule");
            let action = policy
                .action_name(rule.action())
                .expect("the action of a rule");
            rules.push(NewRule {
                change,
                id: has_id.then_some(id),
                priority: rule.priority(),
                action: action.to_owned(),
                name: policy.rule_name(id).map(str::to_owned),
                forms: forms.map(|(part, rule)| (part, rule.fields())).collect(),
            });
        }
    }
    Ok(rules)
}

/// The changes of a transaction, in order: removes, modifies, inserts.
pub(crate) struct Transaction {
    pub(crate) buffer: PolicyTransactionBuf,
    /// The list of each change, and its position there.
    origins: Vec<(&'static str, usize)>,
    pub(crate) removed: Vec<RuleId>,
    pub(crate) modified: Vec<(RuleId, Option<String>)>,
    pub(crate) inserted: Vec<(RuleId, Option<String>)>,
    /// The names of all actions after the transaction, by their number.
    pub(crate) actions: Vec<String>,
    /// An id above all ids in use.
    pub(crate) next_id: u64,
}

/// The rules of the lists of a transaction.
pub(crate) struct Lists {
    pub(crate) remove: Vec<u32>,
    pub(crate) modify: Vec<NewRule>,
    pub(crate) insert: Vec<NewRule>,
}

impl Transaction {
    /// Makes a transaction. Inserted rules without an id get ids from `next_id`.
    pub(crate) fn new(
        schemas: &[Arc<Schema>],
        lists: &Lists,
        actions: &[String],
        next_id: u64,
    ) -> Result<Transaction, Fault> {
        let numbers = actions.iter().zip(0..);
        let mut numbers: HashMap<String, u32> = numbers
            .map(|(name, number)| (name.clone(), number))
            .collect();
        let mut transaction = Transaction {
            buffer: PolicyTransactionBuf::new(schemas),
            origins: Vec::new(),
            removed: Vec::new(),
            modified: Vec::new(),
            inserted: Vec::new(),
            actions: actions.to_vec(),
            next_id,
        };
        for (index, &id) in lists.remove.iter().enumerate() {
            let change = ("remove", index);
            let id = RuleId::new(id).map_err(|error| refused(error.to_string(), change))?;
            transaction.buffer.remove(id);
            transaction.removed.push(id);
            transaction.origins.push(change);
        }
        for rule in &lists.modify {
            let no_id = || refused("the line has no id; add id=N".to_owned(), rule.change);
            let id = rule.id.ok_or_else(no_id)?;
            transaction.add(rule, id, &mut numbers, true)?;
            transaction.modified.push((id, rule.name.clone()));
        }
        let explicit = lists.insert.iter().filter_map(|rule| rule.id);
        let largest = explicit.map(|id| u64::from(id.get()) + 1).max();
        transaction.next_id = next_id.max(largest.unwrap_or(0));
        for rule in &lists.insert {
            let id = match rule.id {
                Some(id) => id,
                None => transaction.free_id(rule.change)?,
            };
            transaction.add(rule, id, &mut numbers, false)?;
            transaction.inserted.push((id, rule.name.clone()));
        }
        Ok(transaction)
    }

    fn free_id(&mut self, change: (&'static str, usize)) -> Result<RuleId, Fault> {
        let id = u32::try_from(self.next_id).ok();
        let id = id.and_then(|id| RuleId::new(id).ok());
        self.next_id += 1;
        id.ok_or_else(|| {
            refused(
                "no id above all others is free; add id=N".to_owned(),
                change,
            )
        })
    }

    fn add(
        &mut self,
        rule: &NewRule,
        id: RuleId,
        numbers: &mut HashMap<String, u32>,
        is_modify: bool,
    ) -> Result<(), Fault> {
        let action = *numbers.entry(rule.action.clone()).or_insert_with(|| {
            self.actions.push(rule.action.clone());
            u32::try_from(self.actions.len() - 1).expect("fewer actions than rules")
        });
        let forms: Vec<_> = rule
            .forms
            .iter()
            .map(|(part, matches)| (*part, &matches[..]))
            .collect();
        let action = ActionId(action);
        let added = match is_modify {
            true => self.buffer.modify(id, rule.priority, action, &forms),
            false => self.buffer.insert(id, rule.priority, action, &forms),
        };
        added.map_err(|error| refused(error.to_string(), rule.change))?;
        self.origins.push(rule.change);
        Ok(())
    }

    /// Returns the list and the position of a change.
    pub(crate) fn origin(&self, change: usize) -> Option<(&'static str, usize)> {
        self.origins.get(change).copied()
    }
}

fn refused(message: String, change: (&'static str, usize)) -> Fault {
    Fault::Refused {
        message,
        change: Some(change),
    }
}
