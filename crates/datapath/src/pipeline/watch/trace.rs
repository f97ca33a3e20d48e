//! A trace of one packet: its lookups with the reasons for their winners, actions, outputs.
//!
//! The packet is processed like any packet, with an [`Observer`]. Nothing is counted.
//! Meters report the band that they would apply, but take no tokens. Each lookup also has
//! the entries that nearly won and the fields that determined the winner. They come from
//! a search of all entries of the table.

use std::cell::RefCell;
use std::time::Duration;

use classyard::RuleId;

use crate::action::{Action, GroupId, PortNo};
use crate::field::Field;
use crate::flow::{FlowEntry, TableId};
use crate::flow_match::MatchField;
use crate::key::PacketKey;
use crate::limits::PacketLimit;
use crate::meter::{BandKind, MeterId};
use crate::packet::Packet;
use crate::pipeline::control::live::Pipeline;
use crate::pipeline::run::observer::Observer;
use crate::pipeline::run::sink::{PacketInReason, Sink};

/// The steps of a packet through the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketTrace {
    /// The steps in order.
    pub steps: Vec<Step>,
}

/// A step of a packet through the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The packet was looked up in a table.
    Lookup(Box<Lookup>),
    /// The packet passed a meter.
    Metered {
        /// The meter.
        meter: MeterId,
        /// The number and kind of the applied band; `None` if no rate was exceeded.
        band: Option<(usize, BandKind)>,
    },
    /// An action was carried out.
    Action {
        /// The action.
        action: Action,
        /// Fields that the action changed.
        changes: Vec<FieldChange>,
    },
    /// A meter changed fields of the packet.
    Remarked(Vec<FieldChange>),
    /// The actions of the packet's action set follow.
    ActionSet,
    /// A copy of the packet goes to a bucket of a group. The steps up to
    /// [`Step::BucketDone`] are steps of the copy.
    Bucket {
        /// The group.
        group: GroupId,
        /// The bucket's number, from 0; `None` if no bucket is live.
        bucket: Option<usize>,
    },
    /// The bucket's actions are done.
    BucketDone,
    /// The packet was dropped at a limit: no action follows.
    Limited(PacketLimit),
    /// The packet was sent to a port.
    Sent {
        /// The output port.
        port: PortNo,
        /// The queue, if one was chosen.
        queue: Option<u32>,
        /// The packet's bytes at this step.
        bytes: Vec<u8>,
    },
    /// The packet was sent to the controller.
    ToController {
        /// The reason.
        reason: PacketInReason,
        /// The maximum number of bytes to send.
        max_len: u16,
        /// The packet's bytes at this step.
        bytes: Vec<u8>,
    },
}

/// A lookup of a packet in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The table.
    pub table: TableId,
    /// The number of entries in the table; 0 if only winners are traced.
    pub entries: usize,
    /// The winning entry.
    pub winner: Option<FlowEntry>,
    /// Entries that would have won if a few fields were different, fewest differences first.
    pub near: Vec<NearMiss>,
    /// Fields that determine the winner for this packet. Every packet with the same values
    /// in these fields has the same winner.
    pub mattered: Vec<Field>,
}

/// An entry that would win the packet if it matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearMiss {
    /// The entry.
    pub entry: FlowEntry,
    /// The entry's fields that do not match the packet.
    pub differences: Vec<Difference>,
}

/// A field of an entry that does not match a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The packet's value; `None` if it lacks the field.
    pub has: Option<u128>,
    /// The value and mask that the entry requires.
    pub wants: MatchField,
}

/// A changed field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The field.
    pub field: Field,
    /// The old value; `None` if the packet lacked the field.
    pub old: Option<u128>,
    /// The new value; `None` if the packet now lacks the field.
    pub new: Option<u128>,
}

impl PacketTrace {
    /// True if neither the packet nor a copy of it was sent.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        let sends = |step: &Step| matches!(step, Step::Sent { .. } | Step::ToController { .. });
        !self.steps.iter().any(sends)
    }
}

impl Pipeline {
    /// Returns the steps of a packet that would arrive at `now`: tables, winning entries,
    /// meters, groups, changes and outputs. Nothing is counted. Each lookup has up to `near`
    /// entries that nearly won.
    #[must_use]
    pub fn trace(&self, packet: &Packet, now: Duration, near: usize) -> PacketTrace {
        self.trace_lookups(packet, now, Some(near))
    }

    /// Returns the steps as [`trace`](Self::trace) does, but of each lookup only the table
    /// and the winner. Does not search all entries of the tables, so it takes about as long
    /// as processing the packet.
    #[must_use]
    pub fn trace_winners(&self, packet: &Packet, now: Duration) -> PacketTrace {
        self.trace_lookups(packet, now, None)
    }

    fn trace_lookups(&self, packet: &Packet, now: Duration, near: Option<usize>) -> PacketTrace {
        let steps = RefCell::new(Vec::new());
        let mut watcher = Watcher {
            pipeline: self,
            steps: &steps,
            near,
            before: None,
        };
        self.rehearse(
            (packet.clone(), now),
            &mut Outputs(&steps),
            &mut watcher,
            None,
        );
        PacketTrace {
            steps: steps.into_inner(),
        }
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
    /// The maximum number of entries that nearly won; `None` if only winners are traced.
    near: Option<usize>,
    /// The packet's key before the present action.
    before: Option<PacketKey>,
}

impl Watcher<'_> {
    fn push(&self, step: Step) {
        self.steps.borrow_mut().push(step);
    }
}

impl Observer for Watcher<'_> {
    fn looked_up(&mut self, table: TableId, winner: Option<RuleId>, packet: &Packet) {
        let lookup = match self.near {
            Some(near) => lookup(self.pipeline, table, winner, packet.key(), near),
            None => Lookup {
                table,
                entries: 0,
                winner: winner.and_then(|id| self.pipeline.flows().get(id).cloned()),
                near: Vec::new(),
                mattered: Vec::new(),
            },
        };
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
        let new_changes = changes(&before, packet.key());
        let mut steps = self.steps.borrow_mut();
        match steps.last_mut() {
            Some(Step::Action { changes, .. }) => *changes = new_changes,
            _ => steps.push(Step::Remarked(new_changes)),
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

/// Returns the fields that differ, in the order of their numbers.
fn changes(old: &PacketKey, new: &PacketKey) -> Vec<FieldChange> {
    let fields = Field::all().map(|field| FieldChange {
        field,
        old: value(old, field),
        new: value(new, field),
    });
    fields.filter(|change| change.old != change.new).collect()
}

/// Returns the entry's fields that do not match the packet.
fn differences(entry: &FlowEntry, key: &PacketKey) -> impl Iterator<Item = Difference> {
    let values = entry.flow.values();
    values.filter_map(|wants| {
        let has = value(key, wants.field);
        let is_met = has.is_some_and(|has| has & wants.mask == wants.value);
        (!is_met).then_some(Difference { has, wants })
    })
}

/// An entry that would win if it matched, in the order of [`Lookup::near`]: by the number of
/// fields that do not match, and then by rank.
type RankedMiss<'e> = (usize, (u16, RuleId), &'e FlowEntry);

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
    let mut misses: Vec<RankedMiss<'_>> = better
        .map(|entry| (differences(entry, key).count(), rank(entry), entry))
        .collect();
    misses.sort_unstable_by_key(|&(count, rank, _)| (count, rank));
    // The winner's fields, and for each better entry a field that does not match: a field
    // already in the list, if possible.
    let mut mattered: Vec<Field> = Vec::new();
    if let Some(winner) = winner {
        mattered.extend(winner.flow.values().map(|value| value.field));
    }
    for (_, _, entry) in &misses {
        let fields = || differences(entry, key).map(|difference| difference.wants.field);
        let is_decided = fields().any(|field| mattered.contains(&field));
        if !is_decided {
            mattered.extend(fields().next());
        }
    }
    mattered.sort_unstable_by_key(|field| field.index());
    let nearest = misses.iter().take(near);
    Lookup {
        table,
        entries: flows.table_len(table),
        winner: winner.cloned(),
        near: nearest
            .map(|(_, _, entry)| NearMiss {
                entry: (*entry).clone(),
                differences: differences(entry, key).collect(),
            })
            .collect(),
        mattered,
    }
}
