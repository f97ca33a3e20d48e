//! Workers: each processes vectors of packets on one thread, and never waits for changes of
//! the pipeline. It takes a lock for these only:
//!
//! - a packet at a meter: the levels of the meter
//! - counts of a cached path that begin or end, and each vector that stores recorded paths:
//!   the register of paths
//! - a recorded packet, if the algorithm of the megaflows' bits is not `auto`

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use classyard::table::Reader;

use super::cached::caches::Caches;
use super::cached::listing::{MegaflowPart, MegaflowPlace};
use super::cached::proactive::{ProactiveError, ProactiveMegaflows};
use super::cached::status::{CacheAnswer, CacheStatus};
use super::run::actions::NO_TABLE;
use super::run::observer::{Node, Nodes, Observer, Unobserved};
use super::run::side::Side;
use super::run::sink::Sink;
use super::run::tally::Tally;
use super::run::vector::{Buffers, Vector};
use crate::action::{Action, GroupId, PortNo, check_alone, check_length};
use crate::error::{ErrorCode, OpenFlowError};
use crate::megaflow::cross_product::CrossProduct;
use crate::packet::Packet;

/// Processes vectors of packets, on one thread at a time.
///
/// ```
/// use std::time::Duration;
///
/// use classyard::EngineSpec;
/// use classyard_datapath::flow::TableId;
/// use classyard_datapath::pipeline::{CacheSettings, Discard, Pipeline};
/// use classyard_datapath::{Packet, TableSettings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut pipeline = Pipeline::new(TableSettings::new(EngineSpec::parse("forest")?)?);
/// let mut worker = pipeline.cached_worker(CacheSettings::new());
/// let mut packets = [1, 2, 3].map(|port| Packet::new(&[0; 60], port));
/// worker.process(&mut packets, Duration::ZERO, &mut Discard);
/// assert_eq!(pipeline.table_count(TableId(0)).lookups, 3);
/// # Ok(())
/// # }
/// ```
pub struct Worker {
    reader: Reader<Side>,
    tally: Arc<Tally>,
    buffers: Buffers,
    /// For the packets of [`execute`](Worker::execute).
    sent_buffers: Buffers,
    caches: Option<Box<Caches>>,
}

impl Worker {
    pub(super) fn new(
        reader: Reader<Side>,
        tally: Arc<Tally>,
        caches: Option<Box<Caches>>,
    ) -> Worker {
        Worker {
            reader,
            tally,
            buffers: Buffers::default(),
            sent_buffers: Buffers::default(),
            caches,
        }
    }

    /// Processes a vector of packets that arrived at `now`, all with the same version of the
    /// pipeline.
    pub fn process(&mut self, packets: &mut [Packet], now: Duration, sink: &mut dyn Sink) {
        self.process_for(packets, now, sink, &mut Unobserved);
    }

    /// Processes packets as [`process`](Self::process) does, and calls `on_node` after each
    /// [`Node`] with the number of packets that the node processed. The time from one call
    /// to the next is the time that the node of the second call took.
    pub fn process_timed(
        &mut self,
        packets: &mut [Packet],
        now: Duration,
        sink: &mut dyn Sink,
        on_node: &mut dyn FnMut(Node, usize),
    ) {
        self.process_for(packets, now, sink, &mut Nodes(on_node));
    }

    /// Processes packets as [`process`](Self::process) does, and reports each step of
    /// each packet to an observer.
    pub fn process_observed(
        &mut self,
        packets: &mut [Packet],
        now: Duration,
        sink: &mut dyn Sink,
        observer: &mut dyn Observer,
    ) {
        self.process_for(packets, now, sink, observer);
    }

    /// Pins a version of the pipeline and processes a vector with it: through the caches if
    /// the worker has caches, otherwise in the tables alone.
    fn process_for(
        &mut self,
        packets: &mut [Packet],
        now: Duration,
        sink: &mut dyn Sink,
        observer: &mut (impl Observer + ?Sized),
    ) {
        let side = self.reader.pin();
        let counters = (&*self.tally, now);
        let mut vector = Vector::begin(&side, packets, counters, &mut self.buffers, sink, observer);
        match &mut self.caches {
            None => vector.process(None),
            Some(caches) => caches.process(&mut vector),
        }
    }

    /// Returns the contents and counters of the worker's caches, or `None` without caches.
    #[must_use]
    pub fn caches(&self) -> Option<CacheStatus> {
        self.caches.as_ref().map(|caches| caches.status())
    }

    /// Returns the caches' answer for a packet, or `None` without caches. The packet is not
    /// processed.
    pub fn ask_caches(&mut self, packet: &Packet, now: Duration) -> Option<CacheAnswer> {
        let side = self.reader.pin();
        let caches = self.caches.as_mut()?;
        Some(caches.ask((&side, &self.tally), packet, now))
    }

    /// Returns the megaflows in the next `max_rows` rows of the worker's cache, beginning at
    /// `place`. Rows may be free. `None` without caches. No megaflow is marked as used. A megaflow
    /// that is added or removed between two calls may be left out or listed twice.
    #[must_use]
    pub fn megaflows(&self, place: MegaflowPlace, max_rows: usize) -> Option<MegaflowPart> {
        let caches = self.caches.as_ref()?;
        Some(caches.list(&self.tally, place, max_rows))
    }

    /// True if this worker has these counters.
    pub(super) fn has_tally(&self, tally: &Arc<Tally>) -> bool {
        Arc::ptr_eq(&self.tally, tally)
    }

    /// Stores the entries of the cross product of the present version's tables as megaflows.
    pub(super) fn store_product(
        &mut self,
        product: &CrossProduct,
    ) -> Result<ProactiveMegaflows, ProactiveError> {
        let side = self.reader.pin();
        let caches = self.caches.as_mut().filter(|caches| caches.has_megaflows());
        let caches = caches.ok_or(ProactiveError::NoMegaflows)?;
        caches.store_product((&side, &self.tally), product)
    }

    /// Carries out the actions of a packet from the controller (`ofp_packet_out`), as if it
    /// had arrived at the ingress port in its key. Output to [`PortNo::TABLE`] sends the
    /// packet, with the changes made so far, through the tables.
    ///
    /// # Errors
    /// [`OpenFlowError`] about the first action that cannot be carried out. Then nothing is
    /// done.
    pub fn execute(
        &mut self,
        actions: &[Action],
        packet: &Packet,
        now: Duration,
        sink: &mut dyn Sink,
    ) -> Result<(), OpenFlowError> {
        let side = self.reader.pin();
        check_packet_out(actions, |group| side.group(group).is_some())?;
        let (mut packets, mut observer) = ([packet.clone()], Unobserved);
        let counters = (&*self.tally, now);
        let buffers = &mut self.sent_buffers;
        let mut vector = Vector::begin(&side, &mut packets, counters, buffers, sink, &mut observer);
        for action in actions {
            if is_to_table(action) {
                let mut packets = vector.packets.to_vec();
                let (buffers, sink) = (&mut self.buffers, vector.sink());
                let mut observer = Unobserved;
                Vector::begin(&side, &mut packets, counters, buffers, sink, &mut observer)
                    .process(None);
                continue;
            }
            let (mut run, packet, _) = vector.packet(0, NO_TABLE);
            if run.action(action, packet).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Checks the actions of a packet from the controller.
pub(super) fn check_packet_out(
    actions: &[Action],
    has_group: impl Fn(GroupId) -> bool,
) -> Result<(), OpenFlowError> {
    check_length(actions)?;
    let checked = actions.iter().filter(|action| !is_to_table(action));
    checked.into_iter().try_for_each(check_alone)?;
    for action in actions {
        if let Action::Group(group) = action
            && !has_group(*group)
        {
            let message = format!("{action}: there is no group {group}");
            return Err(OpenFlowError::new(ErrorCode::BadOutGroup, message));
        }
    }
    Ok(())
}

/// True for an output to the first table.
fn is_to_table(action: &Action) -> bool {
    matches!(action, Action::Output { port, .. } if *port == PortNo::TABLE)
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
