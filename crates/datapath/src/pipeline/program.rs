//! Programs: what is done with packets on a path, put together once.
//!
//! The instructions of all entries on a path become one list of actions: writes to the
//! action set are carried out beforehand, so only the set that is left at the end
//! remains. Packets are counted for all entries of the path together
//! ([`path_counts`](super::path_counts)), unless their length changes on the way or it
//! ends before the last of them.

use std::sync::Arc;

use classyard::RuleId;
use foldhash::HashSet;

use super::actions::{Dropped, Place, Run};
use super::observer::Observer;
use super::side::Side;
use super::tally::Tally;
use crate::action::{Action, ActionSet, PortNo};
use crate::cache::path::{Path, PathId};
use crate::flow::{Instructions, TableId};
use crate::limits::MAX_PACKET_ACTIONS;
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
pub(super) struct Operations {
    shared: HashSet<Arc<[Operation]>>,
    /// Room for the list and the action set of a program that is being made.
    list: Vec<Operation>,
    set: ActionSet,
}

impl Operations {
    /// Lists that are kept to be found again.
    const MOST: usize = 4096;

    /// The list that was made, the same for all programs that have it.
    fn share(&mut self) -> Arc<[Operation]> {
        if let Some(same) = self.shared.get(&self.list[..]) {
            return Arc::clone(same);
        }
        if self.shared.len() == Operations::MOST {
            self.shared.clear();
        }
        let operations: Arc<[Operation]> = self.list[..].into();
        self.shared.insert(Arc::clone(&operations));
        operations
    }
}

/// What is done with packets on a path.
pub(super) struct Program {
    operations: Arc<[Operation]>,
    /// Where steps matter one by one, or the pipeline goes on.
    details: Option<Box<Details>>,
    /// Packets have the same length at all steps.
    is_even: bool,
}

/// What few programs need.
struct Details {
    /// Tables, and the entries that win there.
    steps: Vec<(TableId, Option<RuleId>)>,
    /// The place of each step's entry.
    places: Vec<Place>,
    /// Where the pipeline goes on, with which action set.
    rest: Option<(TableId, ActionSet)>,
}

impl Program {
    pub(super) fn new(side: &Side, path: &Path, shared: &mut Operations) -> Program {
        let flows = || {
            let winners = path.steps.iter().map_while(|step| step.winner.rule());
            winners.map(|entry| side.flow(entry))
        };
        let matched = flows().count();
        // A packet may reach a limit at any action then.
        let lists = || flows().map(|flow| &flow.instructions);
        let length = lists().map(|list| list.apply.len() + list.write.len());
        let is_long = length.sum::<usize>() > MAX_PACKET_ACTIONS as usize
            || lists().any(|list| list.apply.iter().chain(&list.write).any(multiplies));
        let needs_place = |action: &Action| is_long || needs_place(action);
        let before_last = flows().take(path.steps.len() - 1);
        let is_even = !before_last
            .flat_map(|flow| &flow.instructions.apply)
            .any(changes_length);
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
            let places = path.steps.iter().zip(flows());
            Box::new(Details {
                steps: steps.map(|step| (step.table, step.winner.rule())).collect(),
                places: places
                    .map(|(step, flow)| Place {
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

    /// Carries the program out for a packet. Where the pipeline goes on it says in which
    /// table, and has put the packet's action set into `set`.
    pub(super) fn run<O: Observer + ?Sized>(
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
                            let now = run.nanoseconds;
                            steps.for_each(|step| details.count(step, run.tally, length, now));
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
            // The last table has no entry for it.
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

/// Whether the paths of an entry stay the same where it says something else.
pub(super) fn goes_on(old: &Instructions, new: &Instructions) -> bool {
    let changes = |of: &Instructions| -> Vec<Action> {
        let actions = of.apply.iter().copied();
        actions.filter(changes_key).collect()
    };
    (old.meter, old.goto_table) == (new.meter, new.goto_table)
        && (old.goto_table.is_none()
            || old.metadata == new.metadata && changes(old) == changes(new))
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

/// True if an action takes others, or makes several packets come out.
fn multiplies(action: &Action) -> bool {
    match action {
        Action::Group(_) => true,
        Action::Output { port, .. } => matches!(*port, PortNo::ALL | PortNo::FLOOD),
        _ => false,
    }
}

/// Whether an action changes what later lookups see.
fn changes_key(action: &Action) -> bool {
    changes_length(action) || matches!(action, Action::SetField(_))
}
