//! A pipeline that changes while packets are processed.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use classyard::RuleId;
use classyard::table::Version;
use classyard::table::{Table, Writer};

use super::expiry::{Expiration, Expiry, expiration};
use super::features::TableFeatures;
use super::message::Message;
use super::planner::Planner;
use super::settings::PipelineSettings;
use super::stores::Stores;
use crate::action::{Action, GroupId};
use crate::error::{ApplyError, OpenFlowError};
use crate::flow::{FlowChange, FlowEntry, FlowStore, RemovalReason, TableId};
use crate::flow_table::FlowTable;
use crate::group::GroupStore;
use crate::limits::{LimitCounts, PacketLimit};
use crate::megaflow::cross_product::cross_product;
use crate::meter::{MeterId, MeterStore};
use crate::packet::Packet;
use crate::pipeline::cached::caches::Caches;
use crate::pipeline::cached::proactive::{ProactiveError, ProactiveMegaflows};
use crate::pipeline::cached::settings::CacheSettings;
use crate::pipeline::run::change::{Change, GroupCountersChange, LimiterChange, freed_counters};
use crate::pipeline::run::choice::FlowHash;
use crate::pipeline::run::counts::{Count, GroupCount, MeterCount, TableCount};
use crate::pipeline::run::observer::Observer;
use crate::pipeline::run::ports::Ports;
use crate::pipeline::run::side::{AllAccepted, Plan, Side};
use crate::pipeline::run::sink::Sink;
use crate::pipeline::run::tally::{CounterId, Tally};
use crate::pipeline::run::vector::{Buffers, Recorder, Vector};
use crate::pipeline::worker::{Worker, check_packet_out};
use crate::table_settings::TableError;

/// Flow tables, groups, meters and ports, with the writer that changes them.
///
/// A bundle of messages is carried out as a whole or not at all. For each vector, a
/// [`Worker`] uses the pipeline before a bundle or after it, never a part of the bundle.
///
/// ```
/// use std::time::Duration;
///
/// use classyard::EngineSpec;
/// use classyard_datapath::pipeline::{Message, Pipeline, PortState};
/// use classyard_datapath::{ErrorCode, PortNo, TableSettings, text};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tables = TableSettings::new(EngineSpec::parse("forest")?)?;
/// let mut pipeline = Pipeline::new(tables);
/// let port = |number| Message::Port(PortNo(number), Some(PortState::default()));
/// pipeline.apply(&[port(1), port(2)], Duration::ZERO)?;
/// let flows = "priority=10,ip,nw_dst=10.0.0.0/8 actions=output:2";
/// text::load(flows, &mut pipeline, Duration::ZERO).expect("a flow");
/// assert_eq!(pipeline.flows().len(), 1);
/// // A bundle is refused as a whole.
/// let refused = pipeline.apply(&[port(3), port(0)], Duration::ZERO).unwrap_err();
/// assert_eq!((refused.index(), refused.error().code()), (1, ErrorCode::BadPort));
/// assert_eq!(pipeline.ports().iter().count(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Pipeline {
    stores: Stores,
    writer: Writer<Side>,
    table: Table<Side>,
    tallies: Vec<Arc<Tally>>,
    /// The counts of dropped workers.
    former: Arc<Tally>,
    /// The counts of entries when their counters were reset.
    resets: HashMap<RuleId, Count>,
    expiry: Expiry,
    /// Removed items that workers may still use, oldest first.
    leaving: VecDeque<(Version, Leaving)>,
}

/// A removed item for which workers in an older version may still count.
enum Leaving {
    Entry {
        entry: Box<FlowEntry>,
        reason: RemovalReason,
        now: Duration,
    },
    Counter(CounterId),
}

/// A removed flow entry with its final counts (`ofp_flow_removed`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedFlow {
    /// The entry.
    pub entry: FlowEntry,
    /// The reason for the removal.
    pub reason: RemovalReason,
    /// The time from adding to removing the entry.
    pub duration: Duration,
    /// The packets and bytes that it matched.
    pub count: Count,
}

impl Pipeline {
    /// Returns a pipeline without entries, groups, meters and ports.
    #[must_use]
    pub fn new(settings: impl Into<PipelineSettings>) -> Pipeline {
        let PipelineSettings {
            tables,
            select_hash,
        } = settings.into();
        let select_hash = select_hash.unwrap_or_else(FlowHash::random);
        let right = Side::new(tables.clone(), select_hash);
        let (writer, table) = Table::new(Side::new(tables, select_hash), right, AllAccepted);
        Pipeline {
            stores: Stores::default(),
            writer,
            table,
            tallies: Vec::new(),
            former: Arc::new(Tally::new()),
            resets: HashMap::new(),
            expiry: Expiry::default(),
            leaving: VecDeque::new(),
        }
    }

    /// Returns a worker without caches, for one thread.
    #[must_use]
    pub fn worker(&mut self) -> Worker {
        self.new_worker(None)
    }

    /// Returns a worker with flow caches, for one thread.
    #[must_use]
    pub fn cached_worker(&mut self, settings: CacheSettings) -> Worker {
        self.new_worker(Some(Box::new(Caches::new(settings))))
    }

    fn new_worker(&mut self, caches: Option<Box<Caches>>) -> Worker {
        self.forget_workers();
        let tally = Arc::new(Tally::new());
        self.tallies.push(Arc::clone(&tally));
        Worker::new(self.table.reader(), tally, caches)
    }

    /// Adds the counts of dropped workers to `former`.
    fn forget_workers(&mut self) {
        let former = &self.former;
        self.tallies.retain_mut(|tally| {
            // The only owner of the tally sees all counts of the worker.
            let is_former = Arc::get_mut(tally).is_some();
            if is_former {
                former.absorb(tally);
            }
            !is_former
        });
    }

    /// The flow entries.
    #[must_use]
    pub fn flows(&self) -> &FlowStore {
        &self.stores.flows
    }

    /// Returns the features of a table; `None` if no table can have the number.
    #[must_use]
    pub fn features(&self, table: TableId) -> Option<TableFeatures> {
        let config = self.stores.flows.config(table);
        table.is_table().then(|| TableFeatures::new(table, config))
    }

    /// The groups.
    #[must_use]
    pub fn groups(&self) -> &GroupStore {
        &self.stores.groups
    }

    /// The meters.
    #[must_use]
    pub fn meters(&self) -> &MeterStore {
        &self.stores.meters
    }

    /// The ports.
    #[must_use]
    pub fn ports(&self) -> &Ports {
        &self.stores.ports
    }

    /// Carries out all messages or none. Returns the changes in order. The changes apply to
    /// every vector whose processing begins after this call. The call waits for workers that
    /// still use an older version, at most until the end of their present vectors.
    ///
    /// # Errors
    /// [`ApplyError`] with the first message that cannot be carried out. Then nothing is
    /// changed.
    pub fn apply(
        &mut self,
        messages: &[Message],
        now: Duration,
    ) -> Result<Vec<Change>, ApplyError> {
        let changes = self.submit(messages, now)?;
        self.writer.publish();
        Ok(changes)
    }

    /// Carries out messages as [`apply`](Self::apply) does. Also returns, for each message, the
    /// number of changes of the messages up to and including this one.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn apply_bundle(
        &mut self,
        messages: &[Message],
        now: Duration,
    ) -> Result<(Vec<Change>, Vec<usize>), ApplyError> {
        let mut counts = Vec::with_capacity(messages.len());
        let changes = self
            .stores
            .apply_counted(messages, now, |count| counts.push(count))?;
        self.commit(&changes, now);
        self.writer.publish();
        Ok((changes, counts))
    }

    /// Carries out messages as [`apply`](Self::apply) does, but leaves the work on the tables to
    /// [`publish`](Self::publish), which makes the changes visible. Work on many changes at a
    /// time takes about a tenth less time. If a controller sends many messages and then a barrier,
    /// submit the messages and publish at the barrier. When more than
    /// [`MAX_DEFERRED`](classyard::table::MAX_DEFERRED) changes would be invisible, they are made
    /// visible earlier. The call waits for a worker in an older version only if more than
    /// [`MAX_PENDING`](classyard::table::MAX_PENDING) changes would stay invisible.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn submit(
        &mut self,
        messages: &[Message],
        now: Duration,
    ) -> Result<Vec<Change>, ApplyError> {
        let changes = self.stores.apply(messages, now)?;
        self.commit(&changes, now);
        Ok(changes)
    }

    /// Checks the actions of a packet from the controller, as
    /// [`Worker::execute`] does.
    ///
    /// # Errors
    /// [`OpenFlowError`] about the first action that cannot be carried out.
    pub fn check_packet_out(&self, actions: &[Action]) -> Result<(), OpenFlowError> {
        check_packet_out(actions, |group| self.stores.groups.get(group).is_some())
    }

    /// Makes all submitted changes visible to every vector whose processing begins
    /// afterwards.
    pub fn publish(&mut self) {
        self.writer.publish();
    }

    /// Removes the entries that have expired at time `now`. Returns the changes. If there
    /// are any, they are visible after this call, which waits like [`apply`](Self::apply).
    pub fn expire(&mut self, now: Duration) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some(id) = self.expiry.pop(now) {
            let Some(entry) = self.stores.flows.get(id) else {
                continue;
            };
            let last = self.last(id);
            match expiration(entry, last, now) {
                Some(Expiration::Due(reason)) => changes.extend(self.stores.expire(id, reason)),
                Some(Expiration::Later(time)) => self.expiry.put_in(id, time),
                None => {}
            }
        }
        if !changes.is_empty() {
            self.commit(&changes, now);
            self.writer.publish();
        }
        changes
    }

    /// Applies changes of the stores to the tables, timeouts and counters.
    fn commit(&mut self, changes: &[Change], now: Duration) {
        if changes.is_empty() {
            return;
        }
        let Ok(version) = self.writer.apply_later(changes);
        self.expiry.follow(changes);
        for change in changes {
            let unused = match change {
                Change::Flow(FlowChange::Removed(entry, reason)) => {
                    let leaving = Leaving::Entry {
                        entry: Box::new(entry.clone()),
                        reason: *reason,
                        now,
                    };
                    self.leaving.push_back((version, leaving));
                    continue;
                }
                Change::Flow(FlowChange::Changed {
                    new,
                    reset_counts: true,
                    ..
                }) => {
                    let count = self.total(new.id);
                    self.resets.insert(new.id, count);
                    continue;
                }
                Change::Group(_, GroupCountersChange(counters)) => freed_counters(counters),
                Change::Meter(_, LimiterChange(counters)) => freed_counters(counters),
                _ => continue,
            };
            let unused = unused.into_iter();
            let leaving = unused.map(|counter| (version, Leaving::Counter(counter)));
            self.leaving.extend(leaving);
        }
    }

    /// Returns the removed entries for which no worker can count packets any more, with
    /// their final counts, in the order of their removal. Call it regularly: only this call
    /// frees the numbers of removed entries. Does not wait.
    pub fn collect_removed(&mut self) -> Vec<RemovedFlow> {
        let oldest = self.writer.oldest_in_use();
        let mut removed = Vec::new();
        while let Some((version, _)) = self.leaving.front()
            && *version <= oldest
        {
            let (_, leaving) = self.leaving.pop_front().expect("the front exists");
            match leaving {
                Leaving::Entry { entry, reason, now } => {
                    let id = entry.id;
                    removed.push(RemovedFlow {
                        reason,
                        duration: now.saturating_sub(entry.added),
                        count: self.flow_count(id),
                        entry: *entry,
                    });
                    self.each_tally(|tally| tally.clear_flow(id));
                    self.resets.remove(&id);
                    self.stores.flows.release(id);
                }
                Leaving::Counter(counter) => {
                    self.each_tally(|tally| tally.clear(counter));
                    self.stores.book.give_back(counter);
                }
            }
        }
        removed
    }

    fn each_tally(&self, act: impl FnMut(&Tally)) {
        let tallies = self.tallies.iter().chain([&self.former]);
        tallies.map(|tally| &**tally).for_each(act);
    }

    /// Returns the packets and bytes that an entry matched since it was added or its
    /// counters were last reset.
    #[must_use]
    pub fn flow_count(&self, id: RuleId) -> Count {
        let before = self.resets.get(&id).copied().unwrap_or_default();
        self.total(id).since(before)
    }

    fn total(&self, id: RuleId) -> Count {
        let mut count = Count::default();
        self.each_tally(|tally| count = count.and(tally.flow(id).0));
        count
    }

    /// Returns the time of the last packet that an entry matched, or `None`.
    #[must_use]
    pub fn last_match(&self, id: RuleId) -> Option<Duration> {
        (self.total(id).packets > 0).then(|| self.last(id))
    }

    fn last(&self, id: RuleId) -> Duration {
        let mut last = Duration::ZERO;
        self.each_tally(|tally| last = last.max(tally.flow(id).1));
        last
    }

    /// Returns the counts of a table; zeros if no table can have the number.
    #[must_use]
    pub fn table_count(&self, table: TableId) -> TableCount {
        let mut sum = TableCount::default();
        self.each_tally(|tally| {
            let count = tally.table(table);
            sum.lookups += count.lookups;
            sum.matched += count.matched;
        });
        sum
    }

    /// Returns the counts of a group; an empty count if the group does not exist.
    #[must_use]
    pub fn group_count(&self, id: GroupId) -> GroupCount {
        match self.stores.group_counters(id) {
            None => GroupCount::default(),
            Some(counters) => GroupCount {
                all: self.counter_total(counters.all),
                buckets: counters
                    .buckets
                    .iter()
                    .map(|&counter| self.counter_total(counter))
                    .collect(),
            },
        }
    }

    /// Returns the counts of a meter; an empty count if the meter does not exist.
    #[must_use]
    pub fn meter_count(&self, id: MeterId) -> MeterCount {
        match self.stores.limiter(id) {
            None => MeterCount::default(),
            Some(limiter) => MeterCount {
                all: self.counter_total(limiter.counter),
                bands: limiter
                    .bands
                    .iter()
                    .map(|&counter| self.counter_total(counter))
                    .collect(),
            },
        }
    }

    /// Returns the number of packets dropped at each of the [limits](crate::limits).
    #[must_use]
    pub fn limit_counts(&self) -> LimitCounts {
        let mut counts = LimitCounts::default();
        self.each_tally(|tally| {
            counts.actions += tally.limits(PacketLimit::Actions);
            counts.copies += tally.limits(PacketLimit::Copies);
        });
        counts
    }

    fn counter_total(&self, counter: CounterId) -> Count {
        let mut count = Count::default();
        self.each_tally(|tally| count = count.and(tally.counted(counter)));
        count
    }

    /// Processes a packet without counting it. A recorder receives its lookups.
    pub(in crate::pipeline) fn rehearse(
        &self,
        (packet, now): (Packet, Duration),
        sink: &mut dyn Sink,
        observer: &mut dyn Observer,
        recorder: Option<&mut dyn Recorder>,
    ) {
        let (mut reader, tally) = (self.table.reader(), Tally::new());
        let (mut packets, mut buffers) = ([packet], Buffers::default());
        let side = reader.pin();
        let counters = (&tally, now);
        Vector::begin(&side, &mut packets, counters, &mut buffers, sink, observer)
            .process(recorder);
    }

    /// Rebuilds the engines of all tables, with only the fields that entries match now.
    /// Lookups return the same winners. Takes as long as building the engines twice, and
    /// waits for workers in older versions, so call it after loading. While packets are
    /// processed, use a [`Planner`] and [`maintain`](Self::maintain), which do the same in
    /// small steps.
    ///
    /// # Errors
    /// [`TableError`]; tables that were already rebuilt stay rebuilt.
    pub fn rebuild(&mut self) -> Result<(), TableError> {
        self.writer.on_both_sides(Side::rebuild).map(drop)
    }

    /// Rebuilds all engines while another thread runs `work` on the entries. If the system
    /// cannot start a thread, `work` runs afterwards. Returns the result of `work`.
    ///
    /// # Errors
    /// As [`rebuild`](Self::rebuild).
    pub(crate) fn rebuild_beside<T: Send>(
        &mut self,
        work: impl Fn(&FlowStore) -> T + Sync,
    ) -> Result<T, TableError> {
        let (flows, writer) = (&self.stores.flows, &mut self.writer);
        thread::scope(|scope| {
            let working = thread::Builder::new().spawn_scoped(scope, || work(flows));
            writer.on_both_sides(Side::rebuild)?;
            match working {
                Ok(working) => Ok(working.join().unwrap_or_else(|panic| resume_unwind(panic))),
                Err(_) => Ok(work(flows)),
            }
        })
    }

    /// Keeps new entries out of lookups until [`rebuild`](Self::rebuild), unless the
    /// pipeline has workers. Returns false if it has workers.
    ///
    /// A worker's flow caches follow changes of entries, but would not notice that a rebuild
    /// makes entries visible.
    pub(crate) fn begin_filling(&mut self) -> bool {
        self.forget_workers();
        if !self.tallies.is_empty() {
            return false;
        }
        let begun = self.writer.on_both_sides(|side| {
            side.begin_filling();
            Ok::<(), Infallible>(())
        });
        begun.is_ok()
    }

    /// Does pending work of changes and plans: makes up to `steps` changes on the side of the
    /// tables that lacks them, moves up to `steps` entries to engines over wider keys, and makes
    /// up to `steps` steps of installing plans in each engine. Returns true if work is left. Does
    /// not wait. Call it in idle times: then a change after many others takes little time.
    pub fn maintain(&mut self, steps: usize) -> bool {
        let lacks_changes = self.writer.prepare(steps);
        self.writer.maintain(steps) || lacks_changes
    }

    /// Returns the number of tables in the engines of a flow table, such as the tuples of
    /// `tss`; 0 for a flow table without entries.
    #[must_use]
    pub fn engine_tables(&self, table: TableId) -> usize {
        let mut reader = self.table.reader();
        let side = reader.pin();
        side.table(table).map_or(0, FlowTable::engine_tables)
    }

    /// Returns a planner that computes plans to re-optimise engines, on a thread of the
    /// caller.
    #[must_use]
    pub fn planner(&self) -> Planner {
        Planner {
            reader: self.table.reader(),
        }
    }

    /// Begins to rearrange entries according to a plan; [`maintain`](Self::maintain) and
    /// later changes continue. A plan for an engine that was replaced has no effect.
    pub fn install(&mut self, plan: Plan) {
        self.writer.operate(plan);
    }

    /// Publishes all accepted changes, and stores megaflows for all packets in a worker's caches:
    /// the entries of the cross product of all tables ([FCH14] §3.1). Then packets need not
    /// pass the tables first. Later changes make megaflows stale, as usual. Takes time that
    /// grows with the product of the sizes of the tables, up to seconds for 10,000 entries.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use classyard::EngineSpec;
    /// use classyard_datapath::pipeline::{CacheSettings, Pipeline};
    /// use classyard_datapath::text::read;
    /// use classyard_datapath::TableSettings;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut pipeline = Pipeline::new(TableSettings::new(EngineSpec::parse("forest")?)?);
    /// for line in ["tcp,tp_dst=80 actions=drop", "priority=0 actions=output:1"] {
    ///     let message = read(line).expect("flows").remove(0).message;
    ///     pipeline.apply(&[message], Duration::ZERO)?;
    /// }
    /// let mut worker = pipeline.cached_worker(CacheSettings::new().max_masks(64)?);
    /// let stored = pipeline.store_megaflows(&mut worker, 10_000)?;
    /// assert_eq!(stored.paths, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ProactiveError`] if the cross product has more than `max_entries` entries, if the
    /// caches have no room for its megaflows or masks, or if the worker has no megaflow cache or
    /// is of another pipeline. Then no megaflow is stored.
    ///
    /// [FCH14]: classyard::papers#fch14
    pub fn store_megaflows(
        &mut self,
        worker: &mut Worker,
        max_entries: usize,
    ) -> Result<ProactiveMegaflows, ProactiveError> {
        if !self.tallies.iter().any(|tally| worker.has_tally(tally)) {
            return Err(ProactiveError::OtherPipeline);
        }
        self.publish();
        let product = cross_product(&self.stores.flows, max_entries);
        worker.store_product(&product.map_err(ProactiveError::Entries)?)
    }

    /// Bytes held by both sides of all tables.
    #[must_use]
    pub fn bytes(&self) -> usize {
        2 * self.table.reader().pin().bytes()
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("flows", &self.stores.flows.len())
            .field("groups", &self.stores.groups.iter().len())
            .field("meters", &self.stores.meters.iter().len())
            .finish_non_exhaustive()
    }
}
