//! One packet's whole story: which entries it met, why, and what became of it.
//!
//! The packet goes the way that all packets go, with somebody who watches. Nothing is
//! counted, and meters say what they would do. What is told besides of each lookup,
//! entries that nearly won and the fields that mattered, comes from a plain look at
//! all entries of the table.

use std::cell::RefCell;
use std::time::Duration;

use classyard::RuleId;

use super::live::Pipeline;
use super::observer::Observer;
use super::process::{PacketInReason, Sink};
use crate::action::{Action, GroupId, PortNo};
use crate::field::Field;
use crate::flow::{FlowEntry, TableId};
use crate::flow_match::FieldValue;
use crate::key::PacketKey;
use crate::limits::PacketLimit;
use crate::meter::{BandKind, MeterId};
use crate::packet::Packet;

/// What became of a packet, step by step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// In the order in which they were made.
    pub steps: Vec<Step>,
}

/// A step of a packet's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was looked up in a table.
    Lookup(Box<Lookup>),
    /// It came to a meter: the number of the band that was applied, and what it does.
    Metered {
        /// The meter.
        meter: MeterId,
        /// The band; `None` where no rate was exceeded.
        band: Option<(usize, BandKind)>,
    },
    /// An action was carried out.
    Action {
        /// The action.
        action: Action,
        /// Fields that it changed.
        changes: Vec<FieldChange>,
    },
    /// A meter changed fields.
    Remarked(Vec<FieldChange>),
    /// The actions that follow are those of the packet's action set.
    ActionSet,
    /// It goes to a bucket of a group; `None` where no bucket is live. The steps up to
    /// [`Step::BucketDone`] are those of a copy.
    Bucket {
        /// The group.
        group: GroupId,
        /// The bucket's number, from 0.
        bucket: Option<usize>,
    },
    /// The bucket's actions are done.
    BucketDone,
    /// It was dropped at a limit: no action follows.
    Limited(PacketLimit),
    /// It went out.
    Sent {
        /// By this port.
        port: PortNo,
        /// From a queue, if one was chosen.
        queue: Option<u32>,
        /// As it was then.
        bytes: Vec<u8>,
    },
    /// It went to the controller.
    ToController {
        /// Why.
        reason: PacketInReason,
        /// At most so many of its bytes.
        max_len: u16,
        /// As it was then.
        bytes: Vec<u8>,
    },
}

/// A lookup of a packet in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The table.
    pub table: TableId,
    /// Entries of the table.
    pub entries: usize,
    /// The entry that won the packet.
    pub winner: Option<FlowEntry>,
    /// Entries that would have won it if a few fields were different, closest first.
    pub near: Vec<NearMiss>,
    /// Fields that tell the winner and all better entries apart for this packet: while
    /// they stay the same, so does the winner.
    pub mattered: Vec<Field>,
}

/// An entry that would have won a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearMiss {
    /// The entry.
    pub entry: FlowEntry,
    /// What it wants and the packet does not have.
    pub differences: Vec<Difference>,
}

/// What an entry wants and a packet does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What the packet has; `None` where it lacks the field.
    pub has: Option<u128>,
    /// What the entry wants.
    pub wants: FieldValue,
}

/// A field that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The field.
    pub field: Field,
    /// What it was; `None` where the packet lacked it.
    pub old: Option<u128>,
    /// What it is; `None` where the packet lacks it now.
    pub new: Option<u128>,
}

impl Story {
    /// Whether the packet, or a copy of it, went anywhere.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        let gone = |step: &Step| matches!(step, Step::Sent { .. } | Step::ToController { .. });
        !self.steps.iter().any(gone)
    }
}

/// Tells the story of a packet that comes at a time, with up to so many entries that
/// nearly won it for each lookup.
pub(super) fn trace(pipeline: &Pipeline, packet: &Packet, now: Duration, near: usize) -> Story {
    let steps = RefCell::new(Vec::new());
    let mut watcher = Watcher {
        pipeline,
        steps: &steps,
        near,
        before: None,
    };
    pipeline.rehearse(packet.clone(), now, &mut Outputs(&steps), &mut watcher);
    Story {
        steps: steps.into_inner(),
    }
}

struct Outputs<'t>(&'t RefCell<Vec<Step>>);

impl Sink for Outputs<'_> {
    fn send(&mut self, port: PortNo, queue: Option<u32>, packet: &Packet) {
        let bytes = packet.bytes().to_vec();
        self.0.borrow_mut().push(Step::Sent { port, queue, bytes });
    }

    fn to_controller(
        &mut self,
        reason: PacketInReason,
        max_len: u16,
        _: (TableId, u64),
        packet: &Packet,
    ) {
        let bytes = packet.bytes().to_vec();
        self.0.borrow_mut().push(Step::ToController {
            reason,
            max_len,
            bytes,
        });
    }
}

struct Watcher<'t> {
    pipeline: &'t Pipeline,
    steps: &'t RefCell<Vec<Step>>,
    near: usize,
    /// The packet before the action that is being carried out.
    before: Option<PacketKey>,
}

impl Watcher<'_> {
    fn push(&self, step: Step) {
        self.steps.borrow_mut().push(step);
    }
}

impl Observer for Watcher<'_> {
    fn looked_up(&mut self, table: TableId, winner: Option<RuleId>, packet: &Packet) {
        let lookup = lookup(self.pipeline, table, winner, packet.key(), self.near);
        self.push(Step::Lookup(Box::new(lookup)));
        self.before = Some(packet.key().clone());
    }

    fn metered(&mut self, meter: MeterId, band: Option<(usize, BandKind)>) {
        self.push(Step::Metered { meter, band });
    }

    fn acting(&mut self, action: &Action, packet: &Packet) {
        self.push(Step::Action {
            action: *action,
            changes: Vec::new(),
        });
        self.before = Some(packet.key().clone());
    }

    fn changed(&mut self, packet: &Packet) {
        let Some(before) = self.before.take() else {
            return;
        };
        let found = changes(&before, packet.key());
        let mut steps = self.steps.borrow_mut();
        match steps.last_mut() {
            Some(Step::Action { changes, .. }) => *changes = found,
            _ => steps.push(Step::Remarked(found)),
        }
    }

    fn action_set(&mut self) {
        self.push(Step::ActionSet);
    }

    fn bucket(&mut self, group: GroupId, bucket: Option<usize>) {
        self.push(Step::Bucket { group, bucket });
    }

    fn bucket_done(&mut self) {
        self.push(Step::BucketDone);
    }

    fn limited(&mut self, limit: PacketLimit) {
        self.push(Step::Limited(limit));
    }

    fn is_rehearsal(&self) -> bool {
        true
    }
}

fn value(key: &PacketKey, field: Field) -> Option<u128> {
    key.has(field).then(|| key.get(field))
}

/// Fields that differ, in the order of their numbers.
fn changes(old: &PacketKey, new: &PacketKey) -> Vec<FieldChange> {
    let fields = Field::all().map(|field| FieldChange {
        field,
        old: value(old, field),
        new: value(new, field),
    });
    fields.filter(|change| change.old != change.new).collect()
}

/// What an entry wants and a packet does not have.
fn differences(entry: &FlowEntry, key: &PacketKey) -> Vec<Difference> {
    let values = entry.flow.values().iter();
    let unmet = values.filter_map(|wants| {
        let has = value(key, wants.field);
        let is_met = has.is_some_and(|has| has & wants.mask == wants.value);
        (!is_met).then_some(Difference { has, wants: *wants })
    });
    unmet.collect()
}

fn lookup(
    pipeline: &Pipeline,
    table: TableId,
    winner: Option<RuleId>,
    key: &PacketKey,
    near: usize,
) -> Lookup {
    let flows = pipeline.flows();
    let winner = winner.and_then(|id| flows.get(id));
    let rank = |entry: &FlowEntry| (u16::MAX - entry.priority, entry.id);
    let better = flows
        .table(table)
        .filter(|entry| winner.is_none_or(|winner| rank(entry) < rank(winner)));
    let mut misses: Vec<NearMiss> = better
        .map(|entry| NearMiss {
            differences: differences(entry, key),
            entry: entry.clone(),
        })
        .collect();
    misses.sort_by_key(|miss| (miss.differences.len(), rank(&miss.entry)));
    // What the winner looks at, and of each better entry a field that refuses the
    // packet: one that is there already if there is one.
    let mut mattered: Vec<Field> = Vec::new();
    if let Some(winner) = winner {
        mattered.extend(winner.flow.values().iter().map(|value| value.field));
    }
    for miss in &misses {
        let mut fields = miss.differences.iter().map(|one| one.wants.field);
        let is_told_apart = fields.clone().any(|field| mattered.contains(&field));
        if !is_told_apart {
            mattered.extend(fields.next());
        }
    }
    mattered.sort_unstable_by_key(|field| field.index());
    misses.truncate(near);
    Lookup {
        table,
        entries: flows.table(table).count(),
        winner: winner.cloned(),
        near: misses,
        mattered,
    }
}
