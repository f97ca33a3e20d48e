//! Processing vectors of packets.
//!
//! Each table has a list of waiting packets. The tables are processed in order. A table
//! looks all its packets up together. Then the winners' instructions are carried out packet
//! by packet, and each packet waits for a later table or is done.

use classyard::{RuleId, Winner};

use super::actions::MatchedEntry;
use super::observer::{Node, Observer};
use super::side::{Side, SideFlow};
use super::vector::Vector;
use crate::flow::TableId;
use crate::key::PacketKey;

/// Packets whose entries are loaded and counted together, before their instructions are
/// carried out. If there are many entries, the cache misses of a batch overlap. Measured in
/// `bench/records/datapath.md` (What each step brought).
const BATCH_PACKETS: usize = 64;

/// Receives each lookup of a packet in a table, before its winner's instructions are
/// carried out.
pub(in crate::pipeline) trait Recorder {
    /// A packet, given by its index in the vector and its key, was looked up.
    fn record_lookup(
        &mut self,
        packet: (usize, &PacketKey),
        table: TableId,
        winner: Winner,
        side: &Side,
    );
}

/// The entries that win a batch of packets.
type Winners<'s> = [Option<(RuleId, &'s SideFlow)>; BATCH_PACKETS];

impl<'v, O: Observer + ?Sized> Vector<'v, O> {
    /// Processes all packets in the tables, beginning with table 0.
    pub(in crate::pipeline) fn process(&mut self) {
        for packet_index in 0..self.packets.len() {
            if self.is_received(packet_index) {
                self.wait(TableId(0), packet_index);
            }
        }
        self.run_tables(None);
    }

    /// Processes all packets that wait for tables.
    pub(in crate::pipeline) fn run_tables(&mut self, mut recorder: Option<&mut dyn Recorder>) {
        while let Some(table) = self.buffers.next() {
            self.look_up(table);
            if let Some(recorder) = &mut recorder {
                for (&packet_index, &winner) in self.buffers.here.iter().zip(&self.buffers.winners)
                {
                    let packet = (packet_index, self.packets[packet_index].key());
                    recorder.record_lookup(packet, table, winner, self.side);
                }
            }
            self.observer.node(Node::Tables, self.buffers.here.len());
            let waiting = std::mem::take(&mut self.buffers.here);
            let winners = std::mem::take(&mut self.buffers.winners);
            let batches = waiting.chunks(BATCH_PACKETS);
            for (batch, winners) in batches.zip(winners.chunks(BATCH_PACKETS)) {
                let flows = self.count(batch, winners);
                self.carry_out(table, batch, &flows);
            }
            self.observer.node(Node::Actions, waiting.len());
            self.buffers.here = waiting;
            self.buffers.winners = winners;
        }
    }

    /// Looks up the packets in `buffers.here` in a table, and counts them.
    fn look_up(&mut self, table: TableId) {
        let buffers = &mut *self.buffers;
        buffers.winners.clear();
        buffers.winners.resize(buffers.here.len(), Winner::MISS);
        if let Some(rules) = self.side.table(table) {
            let (packets, waiting) = (&*self.packets, &buffers.here);
            let key = |index: usize| packets[waiting[index]].key();
            rules.classify(key, &mut buffers.winners, &mut buffers.table);
        }
        let matched = buffers.winners.iter().filter(|winner| !winner.is_miss());
        self.tally
            .count_table(table, buffers.here.len(), matched.count());
    }

    /// Counts packets for the entries that win them. Returns these entries.
    #[inline(always)]
    fn count(&self, batch: &[usize], winners: &[Winner]) -> Winners<'v> {
        let side = self.side;
        let mut flows = [None; BATCH_PACKETS];
        let bytes = |packet_index: usize| self.packets[packet_index].bytes().len();
        match the_same(winners) {
            // Common in small tables. One add per batch avoids store-to-load stalls on the
            // cell.
            Some(id) => {
                let bytes = batch.iter().map(|&packet_index| bytes(packet_index)).sum();
                self.tally
                    .count_flows(id, (batch.len(), bytes), self.nanoseconds);
                flows[..batch.len()].fill(Some((id, side.flow(id))));
            }
            None => {
                for ((flow, &packet_index), winner) in flows.iter_mut().zip(batch).zip(winners) {
                    if let Some(id) = winner.rule() {
                        self.tally
                            .count_flows(id, (1, bytes(packet_index)), self.nanoseconds);
                        *flow = Some((id, side.flow(id)));
                    }
                }
            }
        }
        flows
    }

    /// Carries out the instructions of the entries that win packets in a table.
    #[inline(always)]
    fn carry_out(&mut self, table: TableId, batch: &[usize], flows: &Winners<'_>) {
        for (flow, &packet_index) in flows.iter().zip(batch) {
            let winner = flow.map(|(id, _)| id);
            self.observer
                .looked_up(table, winner, &self.packets[packet_index]);
            let &Some((_, flow)) = flow else {
                continue;
            };
            let matched = MatchedEntry {
                table,
                cookie: flow.cookie,
                is_miss: flow.is_miss,
            };
            let (mut run, packet, set) = self.packet(packet_index, matched);
            let next = run.instructions(&flow.instructions, packet, set);
            if let Ok(Some(next)) = next {
                self.wait(next, packet_index);
            }
        }
    }
}

/// Returns the entry that wins all packets, or `None` if the winners differ.
#[inline]
fn the_same(winners: &[Winner]) -> Option<RuleId> {
    let (first, others) = winners.split_first()?;
    let is_same = others.iter().all(|winner| winner == first);
    first.rule().filter(|_| is_same)
}
