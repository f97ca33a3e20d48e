//! Programs: the combined actions of all entries on a path.
//!
//! The instructions of all entries on a path become one list of actions. Writes to the
//! action set are carried out when the program is built, so the list has only the final
//! set. Packets are counted for all entries of the path together
//! ([`path_counts`](crate::pipeline::run::path_counts)), unless the packet's length
//! changes on the path or the packet is dropped before the last entry.

use std::sync::Arc;

use classyard::RuleId;
use foldhash::HashSet;

use crate::action::{Action, ActionSet, PortNo};
use crate::cache::entry_paths::PathId;
use crate::cache::path::Path;
use crate::flow::TableId;
use crate::limits::MAX_PACKET_ACTIONS;
use crate::packet::Packet;
use crate::pipeline::run::actions::{Dropped, MatchedEntry, Run};
use crate::pipeline::run::observer::Observer;
use crate::pipeline::run::side::Side;
use crate::pipeline::run::tally::Tally;

/// A step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::pipeline) enum Operation {
    /// The actions of a step's entry follow. Packets to the controller name this entry.
    Begin(u8),
    /// Carries out an action.
    Act(Action),
    /// Writes metadata: value and mask.
    Metadata(u64, u64),
    /// The actions of the action set follow.
    Set,
}

/// Lists of operations, shared by programs with equal lists.
#[derive(Default)]
pub(super) struct Operations {
    shared: HashSet<Arc<[Operation]>>,
    /// Working memory: the list and the action set of the program that is being built.
    list: Vec<Operation>,
    set: ActionSet,
}

impl Operations {
    /// Maximum number of shared lists. When it is reached, the set is cleared. It bounds the
    /// memory of lists that no program uses any more.
    const MAX_SHARED: usize = 4096;

    /// Returns the list that was built, shared with all programs with an equal list.
    fn share(&mut self) -> Arc<[Operation]> {
        if let Some(operations) = self.shared.get(&self.list[..]) {
            return Arc::clone(operations);
        }
        if self.shared.len() == Operations::MAX_SHARED {
            self.shared.clear();
        }
        let operations: Arc<[Operation]> = self.list[..].into();
        self.shared.insert(Arc::clone(&operations));
        operations
    }
}

/// The program of a path.
pub(super) struct Program {
    operations: Arc<[Operation]>,
    /// `None` unless the program needs its steps or the pipeline continues after the path.
    details: Option<Box<Details>>,
    /// True if packets have the same length at all steps.
    is_even: bool,
}

/// Data that only few programs need.
struct Details {
    /// The tables, and the entry that wins in each.
    steps: Vec<(TableId, Option<RuleId>)>,
    /// The place of each step's entry.
    places: Vec<MatchedEntry>,
    /// The table where the pipeline continues, and the action set.
    rest: Option<(TableId, ActionSet)>,
}

impl Program {
    pub(in crate::pipeline) fn new(side: &Side, path: &Path, shared: &mut Operations) -> Program {
        let flows = || {
            let winners = path.steps.iter().map_while(|step| step.winner.rule());
            winners.map(|entry| side.flow(entry))
        };
        let matched = flows().count();
        // With many actions, a packet may reach a limit at any action.
        let lists = || flows().map(|flow| &flow.instructions);
        let length = lists().map(|list| list.apply.len() + list.write.len());
        let is_long = length.sum::<usize>() > MAX_PACKET_ACTIONS as usize
            || lists().any(|list| list.apply.iter().chain(&list.write).any(multiplies));
        let needs_place = |action: &Action| is_long || needs_place(action);
        let before_last = flows().take(path.steps.len() - 1);
        let is_even = !before_last
            .flat_map(|flow| &flow.instructions.apply)
            .any(Action::changes_length);
        let Operations { list, set, .. } = shared;
        list.clear();
        set.clear();
        for (step, flow) in (0..).zip(flows()) {
            let instructions = &flow.instructions;
            let actions = &instructions.apply;
            if !is_even || actions.iter().any(&needs_place) {
                list.push(Operation::Begin(step));
            }
            list.extend(actions.iter().copied().map(Operation::Act));
            if instructions.clear {
                set.clear();
            }
            set.write(&instructions.write);
            if let Some((value, mask)) = instructions.metadata {
                list.push(Operation::Metadata(value, mask));
            }
        }
        // A packet that no entry matches is dropped.
        if path.rest.is_none() && !set.is_empty() && matched == path.steps.len() {
            if is_even && set.ordered().any(&needs_place) {
                let last = u8::try_from(matched - 1).expect("fewer steps than tables");
                list.push(Operation::Begin(last));
            }
            list.push(Operation::Set);
            list.extend(set.ordered().copied().map(Operation::Act));
        }
        let begins = |operation: &Operation| matches!(operation, Operation::Begin(_));
        let has_details = !is_even || path.rest.is_some() || list.iter().any(begins);
        let details = has_details.then(|| {
            let steps = path.steps.iter();
            let matched_steps = path.steps.iter().zip(flows());
            Box::new(Details {
                steps: steps.map(|step| (step.table, step.winner.rule())).collect(),
                places: matched_steps
                    .map(|(step, flow)| MatchedEntry {
                        table: step.table,
                        cookie: flow.cookie,
                        is_miss: flow.is_miss,
                    })
                    .collect(),
                rest: path.rest.map(|table| (table, set.clone())),
            })
        });
        Program {
            operations: shared.share(),
            details,
            is_even,
        }
    }

    /// Runs the program for a packet. If the pipeline continues after the path, returns the
    /// table and puts the packet's action set into `set`.
    pub(in crate::pipeline) fn run<O: Observer + ?Sized>(
        &self,
        path: PathId,
        run: &mut Run<'_, O>,
        packet: &mut Packet,
        set: &mut ActionSet,
    ) -> Option<TableId> {
        let (length, details) = (packet.bytes().len(), self.details.as_deref());
        let mut begun = 0;
        for operation in &*self.operations {
            match *operation {
                Operation::Begin(step) => {
                    begun = usize::from(step);
                    if let Some(details) = details {
                        run.place = details.places[begun];
                        if !self.is_even {
                            let length = packet.bytes().len();
                            details.count(begun, run.tally, length, run.nanoseconds);
                        }
                    }
                }
                Operation::Act(action) => {
                    if let Err(Dropped) = run.action(&action, packet) {
                        if let Some(details) = details.filter(|_| self.is_even) {
                            let steps = 0..=begun;
                            let time = run.nanoseconds;
                            steps.for_each(|step| details.count(step, run.tally, length, time));
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
        }
        let details = details?;
        if !self.is_even
            && let Some((table, _)) = details.steps.get(details.places.len())
        {
            // The packet matches no entry of the last table.
            run.tally.count_table(*table, 1, 0);
        }
        let (table, actions) = details.rest.as_ref()?;
        set.clone_from(actions);
        Some(*table)
    }
}

impl Details {
    /// Counts a packet at a step that has an entry.
    fn count(&self, step: usize, tally: &Tally, bytes: usize, now: u64) {
        let (table, entry) = self.steps[step];
        let entry = entry.expect("steps that begin have an entry");
        tally.count_flows(entry, (1, bytes), now);
        tally.count_table(table, 1, 1);
    }
}

/// True if an action may send packets to the controller or drop them. Then the program
/// needs the action's entry.
fn needs_place(action: &Action) -> bool {
    match action {
        Action::Output { port, .. } => *port == PortNo::CONTROLLER,
        Action::Group(_) | Action::DecrementTtl | Action::DecrementMplsTtl => true,
        _ => false,
    }
}

/// True if an action carries out other actions, or sends several packets.
fn multiplies(action: &Action) -> bool {
    match action {
        Action::Group(_) => true,
        Action::Output { port, .. } => matches!(*port, PortNo::ALL | PortNo::FLOOD),
        _ => false,
    }
}
