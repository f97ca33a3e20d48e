//! What a side of a table still has to be told: changes and operations that
//! were accepted, in order, owning their words.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::classifier::{Classifier, DynamicClassifier, Progress};
use crate::error::BuildError;
use crate::policy::{PartId, PolicyClassifier};
use crate::reoptimise::LookupPlan;
use crate::rule::{ActionId, Priority, RuleId, RuleRef};
use crate::schema::Schema;
use crate::seed::MapState;
use crate::transaction::{Change, Transaction};

use super::Side;

/// What a table can hold on each of its sides. The library implements it for
/// what it can keep two of: any [`Classifier`] with updates, and
/// [`PolicyClassifier`].
pub trait Replica: Send + Sync {
    /// The classifier of one part; there are as many as in the policy, one for
    /// a classifier.
    #[doc(hidden)]
    fn part(&self, part: PartId) -> &dyn Classifier;

    /// The same, to change as the table has accepted.
    #[doc(hidden)]
    fn part_mut(&mut self, part: PartId) -> &mut dyn DynamicClassifier;

    /// All changes up to here are made, and there are this many rules.
    #[doc(hidden)]
    fn set_rules(&mut self, rules: usize);

    /// Reorganises for faster lookups.
    #[doc(hidden)]
    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError>;
}

pub(super) const STATIC: &str = "the table was built over engines that take updates";

impl Replica for dyn Classifier {
    fn part(&self, _: PartId) -> &dyn Classifier {
        self
    }

    fn part_mut(&mut self, _: PartId) -> &mut dyn DynamicClassifier {
        self.as_dynamic().expect(STATIC)
    }

    fn set_rules(&mut self, _: usize) {}

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.as_dynamic().expect(STATIC).rebuild(progress)
    }
}

impl Replica for PolicyClassifier {
    fn part(&self, part: PartId) -> &dyn Classifier {
        PolicyClassifier::part(self, part)
    }

    fn part_mut(&mut self, part: PartId) -> &mut dyn DynamicClassifier {
        let part = PolicyClassifier::part_mut(self, part).as_dynamic();
        part.expect(STATIC)
    }

    fn set_rules(&mut self, rules: usize) {
        PolicyClassifier::set_rules(self, rules);
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        PolicyClassifier::rebuild(self, progress)
    }
}

/// A part of a replica, as something with updates.
pub(super) fn dynamic<C: Replica + ?Sized>(replica: &C, part: PartId) -> &dyn DynamicClassifier {
    replica.part(part).dynamic().expect(STATIC)
}

/// Work that is no change of rules, and that both sides do at the same place
/// among the changes.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// Reorganise for faster lookups.
    Rebuild,
    /// Begin to arrange a part's rules as a plan says.
    Adopt(PartId, LookupPlan),
    /// Make this many more steps of that, in all parts.
    Maintain(usize),
}

/// Makes steps of adopting plans in all parts; says whether there are more to
/// make.
fn maintain<C: Replica + ?Sized>(replica: &mut C, parts: usize, steps: usize) -> bool {
    let mut more = false;
    for part in (0..parts).map(PartId::from_index) {
        let part = replica.part_mut(part).reoptimise_mut();
        more |= part.is_some_and(|part| part.step(steps));
    }
    more
}

/// How far one side has come in a log. The sides replay a log one after the
/// other, so one such place is enough.
#[derive(Clone, Copy, Default)]
struct Place {
    changes: usize,
    operations: usize,
    /// Of the operation there, steps that are made.
    steps: usize,
}

/// Changes and operations in order. Cleared and filled again, it allocates
/// nothing.
///
/// ```text
///  changes     a b c d e f g h i j
///  operations       ^2    ^5           each before the change of that number
///  place              ^                the standby has what is on the left
/// ```
#[derive(Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
    /// The rules' words, one after the other.
    words: Vec<u64>,
    /// Operations, each with the number of changes before it.
    operations: Vec<(usize, Operation)>,
    /// What the standby has.
    place: Place,
}

/// A change, without its words.
#[derive(Clone, Copy)]
struct Entry {
    kind: Kind,
    part: PartId,
    id: RuleId,
    priority: Priority,
    action: ActionId,
    cookie: u64,
    /// Where the rule's words begin.
    words: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert,
    Remove,
    Modify,
}

impl Log {
    /// Changes held.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn push(&mut self, part: PartId, change: &Change<'_>) {
        let words = self.words.len();
        let (kind, rule) = match change {
            Change::Insert(rule) => (Kind::Insert, Some(rule)),
            Change::Modify(rule) => (Kind::Modify, Some(rule)),
            Change::Remove(_) => (Kind::Remove, None),
        };
        if let Some(rule) = rule {
            self.words.extend_from_slice(rule.words());
        }
        self.entries.push(Entry {
            kind,
            part,
            id: change.id(),
            priority: rule.map_or(Priority(0), RuleRef::priority),
            action: rule.map_or(ActionId(0), RuleRef::action),
            cookie: rule.map_or(0, RuleRef::cookie),
            words,
        });
    }

    /// Whether there is an operation to do.
    pub(super) fn has_operations(&self) -> bool {
        !self.operations.is_empty()
    }

    /// A plan takes the place of one that is still to be adopted, steps are
    /// added to those at the same place: however often it is called between two
    /// changes, the log grows by a plan for each part and a step, no more.
    pub(super) fn push_operation(&mut self, operation: Operation) {
        let here = self.entries.len();
        let made = self.place.operations == self.operations.len();
        match (&operation, self.operations.last_mut()) {
            (Operation::Adopt(part, _), _) => self.forget_plan(*part),
            (Operation::Maintain(more), Some((at, Operation::Maintain(steps)))) if *at == here => {
                if made {
                    self.place.operations -= 1;
                    self.place.steps = *steps;
                }
                *steps = steps.saturating_add(*more);
                return;
            }
            _ => {}
        }
        self.operations.push((here, operation));
    }

    /// Takes a part's plan out, also if the standby has it already: the other
    /// side then goes without.
    fn forget_plan(&mut self, part: PartId) {
        let plan = |(_, operation): &(usize, Operation)| matches!(operation, Operation::Adopt(of, _) if *of == part);
        let behind = self.operations[..self.place.operations].iter();
        self.place.operations -= behind.filter(|&entry| plan(entry)).count();
        self.operations.retain(|entry| !plan(entry));
    }

    /// Forgets everything. Keeps memory for `keep` changes and frees the rest, so
    /// that one large transaction does not cost memory for good.
    pub(super) fn clear(&mut self, keep: usize) {
        if self.entries.capacity() > 2 * keep {
            let width = self.words.len() / self.entries.len().max(1);
            self.entries.clear();
            self.entries.shrink_to(keep);
            self.words.clear();
            self.words.shrink_to(keep * width);
        }
        self.entries.clear();
        self.words.clear();
        self.operations.clear();
        self.rewind();
    }

    /// The sides have swapped: the new standby has nothing of this.
    pub(super) fn rewind(&mut self) {
        self.place = Place::default();
    }

    /// Whether the standby has everything.
    pub(super) fn is_done(&self) -> bool {
        self.place.changes == self.entries.len() && self.place.operations == self.operations.len()
    }

    /// Goes on with the standby, in order, as far as the budget goes: a change
    /// costs 1, an operation as many as it has steps. Takes what it has used
    /// from the budget. Engines, actions and cookies are changed together.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer stops an operation. That and
    /// later ones are not done then; every change is made, within the budget.
    pub(super) fn replay<C: Replica + ?Sized>(
        &mut self,
        side: &mut Side<C>,
        schemas: &[Arc<Schema>],
        memory: &mut Transaction<'static>,
        budget: &mut usize,
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError> {
        let mut outcome = Ok(());
        while *budget > 0 && !self.is_done() {
            let next = self.operations.get(self.place.operations);
            let until = next.map_or(self.entries.len(), |&(at, _)| at);
            if self.place.changes < until {
                let from = self.place.changes;
                let to = until.min(from.saturating_add(*budget));
                self.replay_changes(from..to, side, schemas, memory);
                self.place.changes = to;
                *budget -= to - from;
            } else if outcome.is_ok() {
                let replica = &mut *side.classifier;
                outcome = self.replay_operation(replica, schemas.len(), budget, progress);
            } else {
                self.place.operations += 1;
            }
        }
        outcome
    }

    /// Goes on with the operation at the place reached.
    fn replay_operation<C: Replica + ?Sized>(
        &mut self,
        replica: &mut C,
        parts: usize,
        budget: &mut usize,
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError> {
        let (_, operation) = &self.operations[self.place.operations];
        let mut used = 1;
        let mut outcome = Ok(());
        match operation {
            Operation::Rebuild => outcome = replica.rebuild(progress),
            Operation::Adopt(part, plan) => {
                let part = replica.part_mut(*part).reoptimise_mut();
                let adopted = part.is_some_and(|part| part.install(plan));
                assert!(adopted, "the writer has seen that the plan fits");
            }
            Operation::Maintain(steps) => {
                used = (steps - self.place.steps).min(*budget);
                self.place.steps += used;
                // The steps that are left where nothing is to do cost nothing.
                if maintain(replica, parts, used) && self.place.steps < *steps {
                    *budget -= used;
                    return outcome;
                }
            }
        }
        *budget -= used;
        self.place.operations += 1;
        self.place.steps = 0;
        outcome
    }

    /// All changes of a part become one transaction: the sides meet only where
    /// they are live, so what lies between is nobody's to see.
    fn replay_changes<C: Replica + ?Sized>(
        &self,
        range: std::ops::Range<usize>,
        side: &mut Side<C>,
        schemas: &[Arc<Schema>],
        memory: &mut Transaction<'static>,
    ) {
        if range.is_empty() {
            return;
        }
        let entries = &self.entries[range];
        let mut transaction = std::mem::take(memory).reuse();
        for (index, schema) in schemas.iter().enumerate() {
            let part = PartId::from_index(index);
            transaction.clear();
            for entry in entries.iter().filter(|entry| entry.part == part) {
                transaction.push(self.change(entry, schema));
            }
            if !transaction.changes().is_empty() {
                side.classifier.part_mut(part).replay(&transaction);
                for change in transaction.changes() {
                    side.stores[index].change(change);
                }
            }
        }
        *memory = transaction.reuse();
    }

    fn change<'a>(&'a self, entry: &Entry, schema: &'a Arc<Schema>) -> Change<'a> {
        let rule = |log: &'a Log| RuleRef {
            schema,
            id: entry.id,
            priority: entry.priority,
            action: entry.action,
            cookie: entry.cookie,
            words: &log.words[entry.words..entry.words + schema.rule_words()],
        };
        match entry.kind {
            Kind::Insert => Change::Insert(rule(self)),
            Kind::Modify => Change::Modify(rule(self)),
            Kind::Remove => Change::Remove(entry.id),
        }
    }

    /// Bytes held, spare room included.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.words.capacity() * size_of::<u64>()
    }
}

/// Where rules stand once everything in a log is done, as far as that differs
/// from the live side: a bit for each part.
#[derive(Default)]
pub(super) struct Overlay {
    parts: HashMap<RuleId, u8, MapState>,
}

impl Overlay {
    /// The parts where a rule stands, if changes on their way touch it.
    pub(super) fn get(&self, id: RuleId) -> Option<u8> {
        self.parts.get(&id).copied()
    }

    /// Takes the last changes of a log in, those of one transaction. It says of
    /// each rule what becomes of it in all parts where it stands, so the live
    /// side need not be asked.
    pub(super) fn record(&mut self, log: &Log, from: usize) {
        for entry in &log.entries[from..] {
            let parts = self.parts.entry(entry.id).or_insert(0);
            let bit = 1 << entry.part.index();
            match entry.kind {
                Kind::Insert | Kind::Modify => *parts |= bit,
                Kind::Remove => *parts &= !bit,
            }
        }
    }

    /// Forgets the changes of a log, which are all that was recorded.
    pub(super) fn forget(&mut self, log: &Log) {
        // Clearing takes as long as the map once was large, removing as long as
        // the log is.
        if self.parts.len() * 16 >= self.parts.capacity() {
            self.parts.clear();
        } else {
            for entry in &log.entries {
                self.parts.remove(&entry.id);
            }
        }
    }

    /// Bytes held, spare room included.
    pub(super) fn bytes(&self) -> usize {
        self.parts.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{FieldMatch, Rule};

    #[test]
    fn a_transactions_memory_is_used_again() {
        let schema = Schema::ipv4_5tuple();
        let rule = Rule::new(
            &schema,
            RuleId::from_index(1),
            Priority(2),
            ActionId(3),
            &[FieldMatch::Any; 5],
        )
        .unwrap();
        let mut first = Transaction::new();
        for _ in 0..100 {
            first.insert(rule.view());
        }
        let place = first.changes().as_ptr() as usize;
        let mut second: Transaction<'static> = first.reuse();
        assert!(second.changes().is_empty());
        for _ in 0..100 {
            second.remove(RuleId::from_index(1));
        }
        assert_eq!(second.changes().as_ptr() as usize, place);
    }

    #[test]
    fn a_log_gives_the_room_of_a_great_transaction_back() {
        let schema = Schema::ipv4_5tuple();
        let matches = [FieldMatch::Any; 5];
        let rule = Rule::new(&schema, RuleId::MAX, Priority(2), ActionId(3), &matches).unwrap();
        let mut log = Log::default();
        for _ in 0..10_000 {
            log.push(PartId::FIRST, &Change::Insert(rule.view()));
        }
        let large = log.bytes();
        log.clear(100);
        assert!(log.bytes() * 50 < large, "{} of {large}", log.bytes());
        assert_eq!(log.len(), 0);
    }
}
