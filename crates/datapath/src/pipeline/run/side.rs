//! The data for processing packets: tables, instructions, groups, meters, ports.
//!
//! A pipeline has two sides in its live table: workers use one side while the other side is
//! changed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use classyard::reoptimise::LookupPlan;
use classyard::table::{Accepted, Replica};
use classyard::{Priority, RuleId};

use super::change::{Change, Changes, GroupCountersChange, LimiterChange, new_group, new_meter};
use super::choice::{Choice, FlowHash};
use super::limiter::Limiter;
use super::liveness::Liveness;
use super::ports::Ports;
use super::tally::CounterId;
use crate::action::{Action, ActionSet, GroupId};
use crate::cache::path::{EntryChange, Recent};
use crate::flow::{FlowEntry, Instructions, TableId};
use crate::flow_match::Family;
use crate::flow_table::{FlowTable, Generation};
use crate::group::{Bucket, Group, GroupChange, GroupType};
use crate::growth::slot_at;
use crate::megaflow::planned::{PlannedMasks, PlannedRules};
use crate::meter::{MeterChange, MeterId};
use crate::table_settings::{TableError, TableSettings};

/// The data of an entry for processing packets. Two entries fill a cache line, and no entry
/// crosses a cache line.
#[repr(align(32))]
pub(in crate::pipeline) struct SideFlow {
    pub(in crate::pipeline) instructions: Arc<Instructions>,
    pub(in crate::pipeline) cookie: u64,
    /// True for a table-miss entry: priority 0, every packet.
    pub(in crate::pipeline) is_miss: bool,
}

/// A group prepared for processing packets.
pub(in crate::pipeline) struct SideGroup {
    kind: GroupType,
    pub(in crate::pipeline) counter: CounterId,
    pub(in crate::pipeline) buckets: Vec<SideBucket>,
    pub(in crate::pipeline) choice: Choice,
}

/// A bucket prepared for processing packets.
pub(in crate::pipeline) struct SideBucket {
    bucket: Bucket,
    /// Its actions in the order of execution.
    pub(in crate::pipeline) actions: Vec<Action>,
    /// True if an action changes packets, so that a copy is needed.
    pub(in crate::pipeline) changes: bool,
    pub(in crate::pipeline) counter: CounterId,
}

/// All data for processing packets.
pub(in crate::pipeline) struct Side {
    settings: TableSettings,
    /// The number of tables that had entries so far.
    tables_made: u64,
    /// Tables, indexed by number, up to the last table that has had an entry.
    tables: Vec<Option<FlowTable>>,
    /// Entries, indexed by number.
    flows: Vec<Option<SideFlow>>,
    groups: BTreeMap<GroupId, SideGroup>,
    liveness: Liveness,
    pub(in crate::pipeline) flow_hash: FlowHash,
    meters: BTreeMap<MeterId, Arc<Limiter>>,
    pub(in crate::pipeline) ports: Ports,
    /// The latest changes of entries, for flow caches.
    pub(in crate::pipeline) recent: Recent,
    /// True if engines receive new entries only when they are rebuilt.
    is_filling: bool,
}

impl Side {
    pub(in crate::pipeline) fn new(settings: TableSettings, flow_hash: FlowHash) -> Side {
        Side {
            settings,
            tables_made: 0,
            liveness: Liveness::default(),
            flow_hash,
            tables: Vec::new(),
            flows: Vec::new(),
            groups: BTreeMap::new(),
            meters: BTreeMap::new(),
            ports: Ports::default(),
            recent: Recent::default(),
            is_filling: false,
        }
    }

    /// Leaves new entries out of lookups until [`rebuild`](Self::rebuild).
    pub(in crate::pipeline) fn begin_filling(&mut self) {
        self.is_filling = true;
        let tables = self.tables.iter_mut().flatten();
        tables.for_each(FlowTable::begin_filling);
    }

    /// Returns an entry by its number.
    pub(in crate::pipeline) fn find_flow(&self, id: RuleId) -> Option<&SideFlow> {
        self.flows.get(id.index())?.as_ref()
    }

    /// Rebuilds the engines of all tables.
    pub(in crate::pipeline) fn rebuild(&mut self) -> Result<(), TableError> {
        let mut tables = self.tables.iter_mut().flatten();
        tables.try_for_each(FlowTable::rebuild)?;
        self.is_filling = false;
        Ok(())
    }

    /// Returns a table and family whose engine should be re-optimised.
    pub(in crate::pipeline) fn drifted(&self) -> Option<(TableId, Family)> {
        let mut tables = (0..).zip(&self.tables);
        tables.find_map(|(number, table)| Some((TableId(number), table.as_ref()?.drifted()?)))
    }

    /// Returns a table, and a family of its entries for which masks of megaflows can be
    /// planned.
    pub(in crate::pipeline) fn unplanned(
        &self,
    ) -> Option<(TableId, (Family, Generation, PlannedRules))> {
        let mut tables = (0..).zip(&self.tables);
        tables.find_map(|(number, table)| Some((TableId(number), table.as_ref()?.unplanned()?)))
    }

    #[inline]
    pub(in crate::pipeline) fn table(&self, table: TableId) -> Option<&FlowTable> {
        self.tables.get(usize::from(table.0))?.as_ref()
    }

    #[inline]
    pub(in crate::pipeline) fn flow(&self, id: RuleId) -> &SideFlow {
        self.find_flow(id).expect("an entry of the tables")
    }

    pub(in crate::pipeline) fn group(&self, id: GroupId) -> Option<&SideGroup> {
        self.groups.get(&id)
    }

    pub(in crate::pipeline) fn meter(&self, id: MeterId) -> Option<&Limiter> {
        self.meters.get(&id).map(|meter| &**meter)
    }

    /// Recomputes the choices of groups whose buckets changed liveness.
    fn choose(&mut self) {
        for id in self.liveness.take_changed() {
            if let Some(group) = self.groups.get_mut(&id) {
                let buckets = group.buckets.iter().map(|bucket| &bucket.bucket);
                let is_live = |number| self.liveness.is_live(id, number);
                group.choice = Choice::new(group.kind, buckets, is_live);
            }
        }
    }

    /// Makes a change that the stores accepted.
    fn make(&mut self, change: &Change) {
        match change {
            Change::Flow(_) => {
                if let Some((old, new)) = change.flow() {
                    self.replace(old, new);
                }
            }
            Change::Group(change, GroupCountersChange(counters)) => {
                match (new_group(change), &counters.new) {
                    (Some(group), Some(counters)) => {
                        let buckets = group.buckets.iter().zip(&counters.buckets);
                        let side_group = SideGroup {
                            kind: group.kind,
                            counter: counters.all,
                            buckets: buckets
                                .map(|(bucket, &counter)| ready(bucket, counter))
                                .collect(),
                            choice: Choice::One(None),
                        };
                        self.liveness.put(group, &self.ports);
                        self.groups.insert(group.id, side_group);
                    }
                    _ => {
                        if let GroupChange::Removed(Group { id, .. }) = change {
                            self.groups.remove(id);
                            self.liveness.remove(*id);
                        }
                    }
                }
            }
            Change::Meter(change, LimiterChange(counters)) => {
                match (new_meter(change), &counters.new) {
                    (Some(meter), Some(limiter)) => {
                        self.meters.insert(meter.id, Arc::clone(limiter));
                    }
                    _ => {
                        if let MeterChange::Removed(meter) = change {
                            self.meters.remove(&meter.id);
                        }
                    }
                }
            }
            // The stores enforce the maximum of entries.
            Change::Table(..) => {}
            Change::Port { port, new, .. } => {
                let was_live = self.ports.is_live(*port);
                self.ports.set(*port, *new);
                let is_live = self.ports.is_live(*port);
                self.liveness.port_is(*port, was_live, is_live);
            }
        }
    }

    /// Adds or removes an entry, or replaces it by an entry of the same table, match and
    /// priority.
    fn replace(&mut self, old: Option<&FlowEntry>, new: Option<&FlowEntry>) {
        match (old, new) {
            (None, Some(new)) => {
                let index = usize::from(new.table.0);
                if self.tables.len() <= index {
                    self.tables.resize_with(index + 1, || None);
                }
                let (settings, is_filling) = (&self.settings, self.is_filling);
                let tables_made = &mut self.tables_made;
                let table = self.tables[index].get_or_insert_with(|| {
                    *tables_made += 1;
                    let mut table = FlowTable::numbered(settings.clone(), *tables_made);
                    if is_filling {
                        table.begin_filling();
                    }
                    table
                });
                let priority = Priority(u32::from(new.priority));
                if let Err(error) = table.add(new.id, priority, Arc::clone(&new.flow)) {
                    panic!("table {}, {}: {error}", new.table, new.flow);
                }
                self.set(new);
            }
            (Some(_), Some(new)) => self.set(new),
            (Some(old), None) => {
                let index = usize::from(old.table.0);
                let table = self.tables[index].as_mut().expect("its table");
                assert!(table.remove(old.id), "an entry of its table");
                if table.is_empty() {
                    self.tables[index] = None;
                }
                self.flows[old.id.index()] = None;
            }
            (None, None) => {}
        }
        if let Some(change) = EntryChange::between(old, new) {
            self.recent.push(change);
        }
    }

    fn set(&mut self, entry: &FlowEntry) {
        *slot_at(&mut self.flows, entry.id.index()) = Some(SideFlow {
            instructions: Arc::clone(&entry.instructions),
            cookie: entry.cookie,
            is_miss: entry.is_table_miss(),
        });
    }
}

/// Prepares a bucket for processing packets.
fn ready(bucket: &Bucket, counter: CounterId) -> SideBucket {
    let mut set = ActionSet::default();
    set.write(&bucket.actions);
    let actions: Vec<Action> = set.ordered().copied().collect();
    SideBucket {
        bucket: bucket.clone(),
        changes: actions.iter().any(Action::changes_packets),
        actions,
        counter,
    }
}

/// A plan that improves a flow table for one [`Family`] of packets. A
/// [`Planner`](crate::pipeline::Planner) computes it without blocking workers or changes.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(in crate::pipeline) table: TableId,
    pub(in crate::pipeline) family: Family,
    pub(in crate::pipeline) improvement: Improvement,
}

/// The part of a flow table that a plan improves.
#[derive(Clone, Debug)]
pub(in crate::pipeline) enum Improvement {
    /// Rearranges the engine.
    Engine(LookupPlan),
    /// Uses planned masks of megaflows.
    Masks(Generation, Arc<PlannedMasks>),
}

/// Accepts every change, since the stores check messages before they make changes.
pub(in crate::pipeline) struct AllAccepted;

impl Replica for Side {
    type Transaction<'t> = &'t [Change];
    type Refusal = Infallible;
    type Log = Changes;
    type Accepted = AllAccepted;
    type Operation = Plan;

    fn replay(&mut self, Changes(log): &Changes, changes: Range<usize>) {
        log[changes].iter().for_each(|change| self.make(change));
        self.choose();
    }

    fn operate(&mut self, plan: &Plan) {
        let index = usize::from(plan.table.0);
        if let Some(table) = self.tables.get_mut(index).and_then(Option::as_mut) {
            // A plan for an engine that was replaced, or for entries that have changed since,
            // is ignored.
            match &plan.improvement {
                Improvement::Engine(lookup) => _ = table.install(plan.family, lookup),
                Improvement::Masks(generation, masks) => {
                    table.use_masks(plan.family, *generation, masks);
                }
            }
        }
    }

    fn replaces(plan: &Plan, earlier: &Plan) -> bool {
        let kind = |plan: &Plan| std::mem::discriminant(&plan.improvement);
        (plan.table, plan.family, kind(plan)) == (earlier.table, earlier.family, kind(earlier))
    }

    /// Moves up to `steps` entries to engines over wider keys, and makes up to `steps` steps
    /// of installing plans in each engine.
    fn maintain(&mut self, steps: usize) -> bool {
        let mut steps_left = steps;
        for table in self.tables.iter_mut().flatten() {
            steps_left -= table.maintain(steps_left);
        }
        self.is_unfinished()
    }

    fn is_unfinished(&self) -> bool {
        self.tables.iter().flatten().any(FlowTable::is_unfinished)
    }

    fn bytes(&self) -> usize {
        let tables = self.tables.iter().flatten();
        tables.map(FlowTable::bytes).sum::<usize>()
            + self.flows.capacity() * size_of::<Option<SideFlow>>()
    }
}

impl Accepted<Side> for AllAccepted {
    fn check(&mut self, _: &Side, changes: &[Change]) -> Result<usize, Infallible> {
        Ok(changes.len())
    }

    fn accept(&mut self, changes: &[Change], Changes(log): &mut Changes) {
        log.extend_from_slice(changes);
    }
}
