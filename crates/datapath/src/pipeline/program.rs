//! Programs: what is done with packets on a path, put together once.
//!
//! The instructions of all entries on a path become one list of actions: writes to the
//! action set are carried out beforehand, so only the set that is left at the end
//! remains. Packets are counted for all entries of the path together
//! ([`path_counts`](super::path_counts)), unless their length changes on the way or it
//! ends before the last of them.

use std::collections::HashSet;
use std::sync::Arc;

use classyard::RuleId;

use super::actions::{Dropped, Place, Run};
use super::observer::Observer;
use super::process::Sink;
use super::side::Side;
use super::tally::Tally;
use crate::action::{Action, ActionSet, PortNo};
use crate::cache::path::{Path, PathId};
use crate::flow::{Instructions, TableId};
use crate::packet::Packet;

/// A part of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    /// The entry of a step begins, and says where packets to the controller are from.
    Begin(u8),
    /// An action.
    Act(Action),
    /// Value and mask of metadata.
    Metadata(u64, u64),
    /// The action set follows.
    Set,
}

/// What many paths do alike, once.
#[derive(Default)]
pub(super) struct Operations(HashSet<Arc<[Operation]>>);

impl Operations {
    /// Lists that are kept to be found again.
    const MOST: usize = 4096;

    fn share(&mut self, operations: Vec<Operation>) -> Arc<[Operation]> {
        if let Some(same) = self.0.get(&operations[..]) {
            return Arc::clone(same);
        }
        if self.0.len() == Operations::MOST {
            self.0.clear();
        }
        let operations: Arc<[Operation]> = operations.into();
        self.0.insert(Arc::clone(&operations));
        operations
    }
}

/// What is done with packets on a path.
pub(super) struct Program {
    operations: Arc<[Operation]>,
    details: Box<Details>,
    /// Packets have the same length at all steps.
    is_even: bool,
    /// The pipeline does not go on.
    ends: bool,
}

/// What is asked for less often.
#[derive(Default)]
struct Details {
    /// Tables, and the entries that win there.
    steps: Vec<(TableId, Option<RuleId>)>,
    /// The place of each step's entry.
    places: Vec<Place>,
    /// What the entries say.
    instructions: Vec<Arc<Instructions>>,
    /// Where the pipeline goes on, with which action set.
    rest: Option<(TableId, ActionSet)>,
}

impl Program {
    pub(super) fn new(side: &Side, path: &Path, shared: &mut Operations) -> Program {
        let mut details = Details::default();
        let mut set = ActionSet::default();
        let steps = path
            .steps
            .iter()
            .map(|step| (step.table, step.winner.rule()));
        details.steps.extend(steps);
        for &(table, entry) in &details.steps {
            let Some(entry) = entry else { break };
            let flow = side.flow(entry);
            details.places.push(Place {
                table,
                cookie: flow.cookie,
                is_miss: flow.is_miss,
            });
            details.instructions.push(Arc::clone(&flow.instructions));
        }
        let matched = details.instructions.len();
        let before_last = details.instructions.iter().take(details.steps.len() - 1);
        let is_even = !before_last
            .flat_map(|instructions| &instructions.apply)
            .any(changes_length);
        let mut operations = Vec::new();
        for (step, instructions) in (0..).zip(&details.instructions) {
            let actions = &instructions.apply;
            if !is_even || actions.iter().any(needs_place) {
                operations.push(Operation::Begin(step));
            }
            operations.extend(actions.iter().copied().map(Operation::Act));
            if instructions.clear {
                set.clear();
            }
            set.write(&instructions.write);
            if let Some((value, mask)) = instructions.metadata {
                operations.push(Operation::Metadata(value, mask));
            }
        }
        match path.rest {
            Some(table) => details.rest = Some((table, set)),
            // A packet that no entry matches is dropped.
            None if !set.is_empty() && matched == details.steps.len() => {
                if is_even && set.ordered().any(needs_place) {
                    let last = u8::try_from(matched - 1).expect("fewer steps than tables");
                    operations.push(Operation::Begin(last));
                }
                operations.push(Operation::Set);
                operations.extend(set.ordered().copied().map(Operation::Act));
            }
            None => {}
        }
        Program {
            operations: shared.share(operations),
            ends: details.rest.is_none(),
            details: Box::new(details),
            is_even,
        }
    }

    /// Tables, and the entries that win there.
    pub(super) fn steps(&self) -> &[(TableId, Option<RuleId>)] {
        &self.details.steps
    }

    /// Whether the path stays the same where the entry of a step says something else.
    pub(super) fn goes_on(&self, step: usize, new: &Instructions) -> bool {
        let old = &self.details.instructions[step];
        let changes = |instructions: &Instructions| -> Vec<Action> {
            let actions = instructions.apply.iter().copied();
            actions.filter(changes_key).collect()
        };
        (old.meter, old.goto_table) == (new.meter, new.goto_table)
            && (old.goto_table.is_none()
                || old.metadata == new.metadata && changes(old) == changes(new))
    }

    /// Carries the program out for a packet. Where the pipeline goes on it says in which
    /// table, and has put the packet's action set into `set`.
    pub(super) fn run<S: Sink, O: Observer>(
        &self,
        path: PathId,
        run: &mut Run<'_, S, O>,
        packet: &mut Packet,
        set: &mut ActionSet,
    ) -> Option<TableId> {
        let (length, details) = (packet.bytes().len(), &self.details);
        let mut begun = 0;
        for operation in &*self.operations {
            match *operation {
                Operation::Begin(step) => {
                    begun = usize::from(step);
                    run.place = details.places[begun];
                    if !self.is_even {
                        self.count(begun, run.tally, packet.bytes().len(), run.nanoseconds);
                    }
                }
                Operation::Act(action) => {
                    if let Err(Dropped) = run.action(&action, packet) {
                        if self.is_even {
                            let steps = 0..=begun;
                            let now = run.nanoseconds;
                            steps.for_each(|step| self.count(step, run.tally, length, now));
                        }
                        return None;
                    }
                }
                Operation::Metadata(value, mask) => packet.write_metadata(value, mask),
                Operation::Set => run.observer.action_set(),
            }
        }
        if self.is_even {
            run.tally.count_path(path, length, run.nanoseconds);
        } else if let Some((table, _)) = details.steps.get(details.places.len()) {
            // The last table has no entry for it.
            run.tally.count_table(*table, 1, 0);
        }
        if self.ends {
            return None;
        }
        let (table, actions) = details.rest.as_ref()?;
        set.clone_from(actions);
        Some(*table)
    }

    /// Counts a packet at a step that has an entry.
    fn count(&self, step: usize, tally: &Tally, bytes: usize, now: u64) {
        let (table, entry) = self.details.steps[step];
        let entry = entry.expect("steps that begin have an entry");
        tally.count_flow(entry, bytes, now);
        tally.count_table(table, 1, 1);
    }
}

/// Whether an action changes the length of packets.
fn changes_length(action: &Action) -> bool {
    matches!(
        action,
        Action::PushVlan(_) | Action::PopVlan | Action::PushMpls(_) | Action::PopMpls(_)
    )
}

/// Whether an action may send packets to the controller, or end a packet's way: it
/// matters which entry it is of.
fn needs_place(action: &Action) -> bool {
    match action {
        Action::Output { port, .. } => *port == PortNo::CONTROLLER,
        Action::Group(_) | Action::DecrementTtl | Action::DecrementMplsTtl => true,
        _ => false,
    }
}

/// Whether an action changes what later lookups see.
fn changes_key(action: &Action) -> bool {
    changes_length(action) || matches!(action, Action::SetField(_))
}
