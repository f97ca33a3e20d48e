//! The times of latest packets, for the caches of active flows.
//!
//! A flow is active if little time has passed since its previous packet ([FTS25] §4.2.2).
//! Two kinds of tables record the times:
//!
//! ```text
//! Recorded::Flows       bucket, 64 bytes, one cache line            4 buckets or more
//!                       │ flows 8 × u32 │ times 8 × u32 │           a flow: the low 32 bits
//!                         0: vacant                                 of its hash
//! Recorded::Decisions   │ flow u32 │ time u32 │ …                   8 bytes per slot
//! ```
//! [`Recorded::Flows`] is for switches. A bucket by the high bits of the flow's hash has the
//! times of up to eight flows. If a bucket is full, a new flow replaces the flow that was
//! idle longest if it was idle for more than the threshold, since its time has no use any
//! more. Otherwise the new flow replaces a flow of the bucket at random. So if more flows come
//! in turn than the table has room for, some of them are still known at their next packet.
//!
//! [`Recorded::Decisions`] is [FTS25] Alg. 1 to the letter: each flow entry stores its latest
//! packet (line 17), and a flow is active if that packet was of the same flow (line 22). It
//! fails if several flows share a megaflow and their packets alternate: then no flow has two
//! successive packets. Decisions that share a slot count as one.
//!
//! A table never grows. Flows are hashes with a secret seed, so senders of packets cannot
//! choose flows that share a bucket. A packet reads and writes one cache line.
//!
//! [FTS25]: classyard::papers#fts25

use super::MegaflowId;
use super::random::{Random, bucket_of, low, mixed, scaled};
use super::timed::Tick;

/// The objects whose latest packets are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// The time of the latest packet of each flow ([FTS25] §4.2.2).
    ///
    /// [FTS25]: classyard::papers#fts25
    Flows,
    /// The flow and time of the latest packet of each megaflow ([FTS25] Alg. 1, lines 17 and
    /// 22). For reproductions; wrong for megaflows that cover several flows at a time.
    ///
    /// [FTS25]: classyard::papers#fts25
    Decisions,
}

/// A table of latest packets.
#[derive(Clone, Debug)]
pub(super) enum Latest {
    Flows(FlowTimes),
    Decisions(Box<[LatestFlow]>),
}

impl Latest {
    /// Returns a table of `slots` latest packets, rounded down to whole buckets, at least one
    /// bucket.
    pub(super) fn new(recorded: Recorded, slots: usize, seed: u64) -> Latest {
        match recorded {
            Recorded::Flows => Latest::Flows(FlowTimes {
                buckets: vec![Bucket::VACANT; (slots / BUCKET_FLOWS).max(1)].into(),
                random: Random::new(seed),
            }),
            Recorded::Decisions => {
                Latest::Decisions(vec![LatestFlow::default(); slots.max(1)].into())
            }
        }
    }

    /// Records a packet of a flow. Returns the ticks since the flow's previous packet, or
    /// `None` if that packet is not known. A flow that is idle for more than `threshold`
    /// ticks may be dropped first.
    #[inline]
    pub(super) fn replace(
        &mut self,
        flow: u64,
        megaflow: MegaflowId,
        now: Tick,
        threshold: u32,
    ) -> Option<u32> {
        match self {
            Latest::Flows(flows) => flows.replace(flow, now, threshold),
            Latest::Decisions(slots) => {
                let slot = scaled(mixed(u64::from(megaflow.number())) >> 32, slots.len());
                let latest = LatestFlow {
                    flow: low(flow),
                    time: now,
                };
                // An unused slot looks like a packet of flow 0 at time 0. At worst, one flow
                // is admitted a packet early.
                let previous = std::mem::replace(&mut slots[slot], latest);
                (previous.flow == latest.flow).then(|| now.since(previous.time))
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Latest::Flows(flows) => size_of_val(&*flows.buckets),
            Latest::Decisions(slots) => size_of_val(&**slots),
        }
    }
}

/// The latest packet of a megaflow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatestFlow {
    flow: u32,
    time: Tick,
}

/// The number of flows in a bucket: as many as fit into a cache line. Measured in
/// `bench/records/constants.md` (Microflow caches: thresholds).
const BUCKET_FLOWS: usize = 8;

/// The marker of a place without a flow.
const NO_FLOW: u32 = 0;

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Bucket {
    flows: [u32; BUCKET_FLOWS],
    times: [Tick; BUCKET_FLOWS],
}

/// The times of the latest packets of flows.
#[derive(Clone, Debug)]
pub(super) struct FlowTimes {
    buckets: Box<[Bucket]>,
    random: Random,
}

impl FlowTimes {
    #[inline]
    fn replace(&mut self, flow: u64, now: Tick, threshold: u32) -> Option<u32> {
        let index = bucket_of(flow, self.buckets.len());
        let bucket = &mut self.buckets[index];
        // Flows 0 and 1 count as one.
        let flow = low(flow).max(NO_FLOW + 1);
        if let Some(way) = bucket.find(flow) {
            let previous = std::mem::replace(&mut bucket.times[way], now);
            return Some(now.since(previous));
        }
        let way = bucket.find(NO_FLOW).unwrap_or_else(|| {
            let (way, idle) = bucket.longest_idle(now);
            match idle > threshold {
                true => way,
                false => self.random.below(BUCKET_FLOWS),
            }
        });
        (bucket.flows[way], bucket.times[way]) = (flow, now);
        None
    }
}

impl Bucket {
    const VACANT: Bucket = Bucket {
        flows: [NO_FLOW; BUCKET_FLOWS],
        times: [Tick::ZERO; BUCKET_FLOWS],
    };

    /// Returns the place of a flow.
    #[inline]
    fn find(&self, flow: u32) -> Option<usize> {
        // Compares all places without branches.
        let mut matching = BUCKET_FLOWS;
        for (way, &held) in self.flows.iter().enumerate() {
            matching = if held == flow { way } else { matching };
        }
        (matching < BUCKET_FLOWS).then_some(matching)
    }

    /// Returns the place of the flow that was idle longest, and its idle time in ticks.
    fn longest_idle(&self, now: Tick) -> (usize, u32) {
        let idle = self.times.iter().map(|&time| now.since(time));
        let longest = idle.enumerate().max_by_key(|&(_, idle)| idle);
        longest.expect("a bucket has places")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLD: u32 = 1_000;

    fn time(tick: u64) -> Tick {
        Tick::at(tick << 16)
    }

    fn replace(latest: &mut Latest, flow: u64, tick: u64) -> Option<u32> {
        let megaflow = MegaflowId::new(5).unwrap();
        latest.replace(mixed(flow), megaflow, time(tick), THRESHOLD)
    }

    #[test]
    fn a_packet_is_compared_with_the_previous_one_of_its_flow() {
        let mut latest = Latest::new(Recorded::Flows, 64, 1);
        for flow in 0..20 {
            assert_eq!(replace(&mut latest, flow, 10 + flow), None);
        }
        for flow in 0..20 {
            assert_eq!(replace(&mut latest, flow, 50 + flow), Some(40), "{flow}");
        }
    }

    #[test]
    fn by_megaflow_only_successive_packets_count() {
        let mut latest = Latest::new(Recorded::Decisions, 64, 1);
        assert_eq!(replace(&mut latest, 1, 10), None);
        assert_eq!(replace(&mut latest, 1, 13), Some(3));
        assert_eq!(replace(&mut latest, 2, 14), None);
        assert_eq!(replace(&mut latest, 1, 15), None);
    }

    /// A flow that was idle for too long makes room before the others.
    #[test]
    fn flows_that_are_not_active_are_replaced_first() {
        let mut latest = Latest::new(Recorded::Flows, BUCKET_FLOWS, 1);
        for flow in 0..8 {
            replace(&mut latest, flow, 100 + 200 * flow);
        }
        // Flow 0 was idle for 1,500 ticks, the others for less than 1,500.
        assert_eq!(replace(&mut latest, 8, 1_600), None);
        assert_eq!(replace(&mut latest, 7, 1_601), Some(101));
        assert_eq!(replace(&mut latest, 1, 1_602), Some(1_302));
        assert_eq!(replace(&mut latest, 0, 1_603), None);
    }

    /// If there are three flows for each place, some flows are known at their next packet,
    /// although the flow that was idle longest is always the next one.
    #[test]
    fn some_of_too_many_flows_are_known() {
        let mut latest = Latest::new(Recorded::Flows, 512, 1);
        let bytes = latest.bytes();
        assert_eq!(bytes, 512 * 8);
        let mut known = 0;
        for round in 0..20 {
            for flow in 0..1_536 {
                known += u32::from(replace(&mut latest, flow, round).is_some());
            }
        }
        assert!(known > 500, "{known}");
        assert_eq!(latest.bytes(), bytes);
    }
}
