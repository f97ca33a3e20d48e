//! Programs: what is done with packets on a path, put together once.
//!
//! The instructions of all entries on a path become one list of actions: writes to the
//! action set are carried out beforehand, so only the set that is left at the end
//! remains. Packets are counted for all entries of the path together, once for a
//! vector, unless their length changes on the way.

use std::sync::Arc;

use classyard::RuleId;

use super::actions::{Dropped, Place, Run};
use super::observer::Observer;
use super::process::Sink;
use super::side::Side;
use super::tally::{Count, Tally};
use crate::action::{Action, ActionSet};
use crate::cache::path::Path;
use crate::flow::{Instructions, TableId};
use crate::packet::Packet;

/// A part of a program.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// The entry of a step begins.
    Begin(usize),
    /// An action.
    Act(Action),
    /// Value and mask of metadata.
    Metadata(u64, u64),
    /// The action set follows.
    Set,
}

/// What is done with packets on a path.
pub(super) struct Program {
    operations: Vec<Operation>,
    /// Tables, and the entries that win there.
    steps: Vec<(TableId, Option<RuleId>)>,
    /// The place of each step's entry.
    places: Vec<Place>,
    /// What the entries say.
    instructions: Vec<Arc<Instructions>>,
    /// Packets have the same length at all steps.
    is_even: bool,
    /// Where the pipeline goes on, with which action set.
    rest: Option<(TableId, ActionSet)>,
    /// What has come since it was counted.
    pending: Count,
}

impl Program {
    pub(super) fn new(side: &Side, path: &Path) -> Program {
        let mut program = Program {
            operations: Vec::new(),
            steps: Vec::new(),
            places: Vec::new(),
            instructions: Vec::new(),
            is_even: true,
            rest: None,
            pending: Count::default(),
        };
        let mut set = ActionSet::default();
        for (number, step) in path.steps.iter().enumerate() {
            let entry = step.winner.rule();
            program.steps.push((step.table, entry));
            let Some(entry) = entry else {
                return program;
            };
            let flow = side.flow(entry);
            program.places.push(Place {
                table: step.table,
                cookie: flow.cookie,
                is_miss: flow.is_miss,
            });
            let instructions = &flow.instructions;
            program.instructions.push(Arc::clone(instructions));
            program.operations.push(Operation::Begin(number));
            let actions = instructions.apply.iter().copied();
            program.operations.extend(actions.map(Operation::Act));
            if instructions.clear {
                set.clear();
            }
            set.write(&instructions.write);
            if let Some((value, mask)) = instructions.metadata {
                program.operations.push(Operation::Metadata(value, mask));
            }
            let is_last = number + 1 == path.steps.len();
            program.is_even &= is_last || !instructions.apply.iter().any(changes_length);
        }
        match path.rest {
            Some(table) => program.rest = Some((table, set)),
            None if !set.is_empty() => {
                program.operations.push(Operation::Set);
                let actions = set.ordered().copied();
                program.operations.extend(actions.map(Operation::Act));
            }
            None => {}
        }
        program
    }

    /// Tables that a packet is looked up in.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether the path stays the same where the entry of a step says something else.
    pub(super) fn goes_on(&self, step: usize, new: &Instructions) -> bool {
        let old = &self.instructions[step];
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
        &mut self,
        run: &mut Run<'_, S, O>,
        packet: &mut Packet,
        set: &mut ActionSet,
    ) -> Option<TableId> {
        let length = packet.bytes().len();
        let mut begun = 0;
        let done = self.operations.iter().try_for_each(|operation| {
            match *operation {
                Operation::Begin(step) => {
                    begun = step;
                    run.place = self.places[step];
                    if !self.is_even {
                        self.count(step, run.tally, packet.bytes().len(), run.nanoseconds);
                    }
                }
                Operation::Act(action) => return run.action(&action, packet),
                Operation::Metadata(value, mask) => packet.write_metadata(value, mask),
                Operation::Set => run.observer.action_set(),
            }
            Ok(())
        });
        match done {
            Err(Dropped) => {
                if self.is_even {
                    let steps = 0..=begun;
                    steps.for_each(|step| self.count(step, run.tally, length, run.nanoseconds));
                }
                None
            }
            Ok(()) => {
                if self.is_even {
                    self.pending.packets += 1;
                    self.pending.bytes += length as u64;
                } else if self.steps.len() > self.places.len() {
                    // The last table has no entry for it.
                    let (table, _) = self.steps[self.places.len()];
                    run.tally.count_table(table, 1, 0);
                }
                let (table, actions) = self.rest.as_ref()?;
                set.clone_from(actions);
                Some(*table)
            }
        }
    }

    /// Counts a packet at a step that has an entry.
    fn count(&self, step: usize, tally: &Tally, bytes: usize, now: u64) {
        let (table, entry) = self.steps[step];
        let entry = entry.expect("steps that begin have an entry");
        tally.count_flow(entry, bytes, now);
        tally.count_table(table, 1, 1);
    }

    /// Whether nothing has come that is still to be counted.
    pub(super) fn is_counted(&self) -> bool {
        self.pending.packets == 0
    }

    /// Counts what has come.
    pub(super) fn settle(&mut self, tally: &Tally, now: u64) {
        let count = std::mem::take(&mut self.pending);
        #[allow(clippy::cast_possible_truncation)] // packets of a vector
        let packets = count.packets as usize;
        for &(table, entry) in &self.steps {
            match entry {
                Some(entry) => {
                    tally.count_flows(entry, count, now);
                    tally.count_table(table, packets, packets);
                }
                None => tally.count_table(table, packets, 0),
            }
        }
    }
}

/// Whether an action changes the length of packets.
fn changes_length(action: &Action) -> bool {
    matches!(
        action,
        Action::PushVlan(_) | Action::PopVlan | Action::PushMpls(_) | Action::PopMpls(_)
    )
}

/// Whether an action changes what later lookups see.
fn changes_key(action: &Action) -> bool {
    changes_length(action) || matches!(action, Action::SetField(_))
}
