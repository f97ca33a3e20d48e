//! Packets that miss the caches: they pass the tables, some of them are recorded there, and
//! the paths of recorded packets are cached.

use super::caches::{Caches, Lookup};
use super::flow_hash::flow_of;
use super::program::Program;
use super::selector::{Outcome, VectorPlan};
use crate::cache::bits::Words;
use crate::cache::path::Path;
use crate::cache::store::{Found, Kept};
use crate::field::Field;
use crate::flow::TableId;
use crate::key::PacketKey;
use crate::packet::Packet;
use crate::pipeline::run::observer::Observer;
use crate::pipeline::run::process::Recorder;
use crate::pipeline::run::side::Side;
use crate::pipeline::run::tally::Tally;
use crate::pipeline::run::vector::Vector;

impl Caches {
    /// Passes the packets that missed through the tables, and caches the recorded paths.
    pub(super) fn pass_tables<O: Observer + ?Sized>(
        &mut self,
        vector: &mut Vector<'_, O>,
        plan: VectorPlan,
        outcome: &mut Outcome,
    ) {
        let Lookup { misses, stale, .. } = &self.lookup;
        let stale = stale.iter().map(|(packet_index, _)| packet_index);
        for &packet_index in misses.iter().chain(stale) {
            vector.wait(TableId(0), packet_index);
        }
        self.learner.begin(vector.packets.len());
        self.hash_misses(vector.packets, plan);
        self.select_recorded(vector.packets, plan, vector.nanoseconds, outcome);
        let learner = Some(&mut self.learner).filter(|learner| learner.is_recording());
        vector.run_tables(learner.map(|learner| learner as &mut dyn Recorder));
        self.store_paths(vector.side, vector.tally, vector.nanoseconds);
    }

    /// Computes the flow hashes that recording needs and the lookup did not compute.
    fn hash_misses(&mut self, packets: &[Packet], plan: VectorPlan) {
        if plan.levels.microflows {
            return;
        }
        let Lookup {
            flows,
            misses,
            stale,
            ..
        } = &mut self.lookup;
        let unknown = misses.iter().filter(|_| plan.marks_flows);
        let stale = stale.iter().map(|(packet_index, _)| packet_index);
        for &packet_index in unknown.chain(stale) {
            flows[packet_index] = flow_of(packets[packet_index].key().words(), self.secrets);
        }
    }

    /// Selects the packets to record: all with stale megaflows, all of flows seen
    /// recently, and a sample of the others.
    fn select_recorded(
        &mut self,
        packets: &[Packet],
        plan: VectorPlan,
        now: u64,
        outcome: &mut Outcome,
    ) {
        let stale_count = self.lookup.stale.len();
        self.status.stale += stale_count as u64;
        self.status.by_tables += (stale_count + self.lookup.misses.len()) as u64;
        // Renewing stale megaflows is a cost of changes, not of learning.
        self.record_stale(packets, 0);
        outcome.stale = stale_count;
        outcome.renewed = self.learner.recorded().len();
        if !plan.marks_flows {
            return;
        }
        let Lookup {
            flows,
            misses,
            to_record,
            ..
        } = &mut self.lookup;
        to_record.clear();
        let mut seen = stale_count;
        for &packet_index in &*misses {
            let flow = self.seen.note(flows[packet_index]);
            seen += usize::from(flow.recently);
            if flow.recently || plan.of_any_flow || flow.is_sampled {
                to_record.push(packet_index);
            }
        }
        outcome.seen = Some(seen);
        if !plan.may_record {
            return;
        }
        if !plan.levels.megaflows {
            self.search_megaflows(packets, now);
            self.record_stale(packets, stale_count);
            outcome.renewed = self.learner.recorded().len();
        }
        for &packet_index in &self.lookup.to_record {
            let (flow, key) = (self.lookup.flows[packet_index], packets[packet_index].key());
            self.learner.record(packet_index, flow, None, key);
        }
        outcome.recorded = self.learner.recorded().len() - outcome.renewed;
    }

    /// Records packets with stale megaflows, starting at index `first`.
    fn record_stale(&mut self, packets: &[Packet], first: usize) {
        for &(packet_index, decision) in &self.lookup.stale[first..] {
            let (flow, key) = (self.lookup.flows[packet_index], packets[packet_index].key());
            self.learner.record(packet_index, flow, Some(decision), key);
        }
    }

    /// Looks up packets among the megaflows, which the vector has not used yet, and offers
    /// hits to the microflow cache. That takes less time than recording a known path.
    /// Packets that hit are not recorded any more.
    fn search_megaflows(&mut self, packets: &[Packet], now: u64) {
        let Lookup {
            flows,
            stale,
            to_record,
            ..
        } = &mut self.lookup;
        let microflows = &mut self.microflows;
        let key = |packet_index: usize| packets[packet_index].key().words();
        let take_result =
            |packet_index: usize, decision, result| match (result, microflows.as_mut()) {
                (Found::Path(_), Some(cache)) => cache.offer(flows[packet_index], decision, now),
                (Found::Stale, _) => stale.push((packet_index, decision)),
                _ => {}
            };
        let probes_all = self.settings.clock.is_none();
        self.store.find(probes_all, key, to_record, take_result);
    }

    /// Caches the paths of recorded packets. Leaves out packets that were dropped on the
    /// way, since the ends of their paths are not known.
    fn store_paths(&mut self, side: &Side, tally: &Tally, now: u64) {
        for recorded in self.learner.recorded() {
            if let Some(decision) = recorded.stale {
                self.store.drop_stale(decision, &recorded.key);
            }
            if recorded.is_open || recorded.path.steps.is_empty() {
                continue;
            }
            let mask = widened(&recorded.mask, &recorded.key);
            let operations = &mut self.operations;
            let program = |path: &Path| Program::new(side, path, operations);
            let added = self
                .store
                .insert(&recorded.key, &mask, &recorded.path, program);
            for path in self.store.paths_mut().take_closed() {
                tally.close_path(path);
            }
            let Some(added) = added else { continue };
            let Kept { decision, path, .. } = added;
            // A path of an earlier era is opened again; that settles its earlier counts.
            if added.has_new_program {
                let steps = recorded.path.steps.iter();
                tally.open_path(path, steps.map(|step| (step.table, step.winner)));
            }
            self.status.learned += 1;
            if let Some(cache) = &mut self.microflows {
                cache.offer(recorded.flow, decision, now);
            }
        }
    }
}

/// Returns a mask with more bits, so that there are fewer different masks. In addresses
/// and ports, adds all bits before the last bit of `mask`. In addresses, also rounds the
/// number of leading bits up to a multiple of four.
fn widened(mask: &Words, key: &Words) -> Words {
    let mut wide = *mask;
    let is_ipv6 = PacketKey::place(Field::EthType).get(key) == 0x86dd;
    let addresses = match is_ipv6 {
        true => [(Field::Ipv6Src, 128), (Field::Ipv6Dst, 128)],
        false => [(Field::Ipv4Src, 32), (Field::Ipv4Dst, 32)],
    };
    let ports = [(Field::TcpSrc, 16), (Field::TcpDst, 16)];
    let fields = addresses.into_iter().map(|field| (field, 4));
    let fields = fields.chain(ports.into_iter().map(|field| (field, 1)));
    for ((field, width), step) in fields {
        let field_place = PacketKey::place(field);
        let field_mask = field_place.get(mask);
        if field_mask != 0 {
            let last = field_mask.trailing_zeros() / step * step;
            field_place.set_bits(&mut wide, u128::MAX >> (128 - width) >> last << last);
        }
    }
    wide
}
