//! Processing vectors of packets, and the working memory for it.
//!
//! Each table has a list of waiting packets. The tables are processed in order. A table
//! looks all its packets up together. Then the winners' instructions are carried out packet
//! by packet, and each packet waits for a later table or is done.

use std::time::Duration;

use classyard::{RuleId, Winner};

use super::actions::{Carried, MatchedEntry, Run, in_port};
use super::observer::{Node, Observer};
use super::side::{Side, SideFlow};
use super::sink::Sink;
use super::tally::{Tally, nanoseconds};
use crate::action::ActionSet;
use crate::flow::TableId;
use crate::flow_table::TableBuffers;
use crate::packet::Packet;

/// Words of a bit set of tables.
const TABLE_SET_WORDS: usize = (TableId::LAST.0 as usize + 1).div_ceil(64);

/// Packets whose entries are loaded and counted together, before their instructions are
/// carried out. If there are many entries, the cache misses of a batch overlap. Measured in
/// `bench/records/datapath.md` (What each step brought).
const BATCH_PACKETS: usize = 64;

/// Receives the lookups of packets in each table, before the winners' instructions are
/// carried out.
pub(in crate::pipeline) trait Recorder {
    /// Packets were looked up in a table. `lookups` has the index of each of them in the vector
    /// `packets`, and their winners. The keys of the packets are those at this table, which
    /// the actions of earlier tables may have changed.
    fn record_lookups(
        &mut self,
        table: TableId,
        lookups: (&[usize], &[Winner]),
        packets: &[Packet],
        side: &Side,
    );
}

/// Working memory of a worker. A vector allocates memory only if it has more packets, or
/// longer frames, than all previous vectors.
#[derive(Default)]
pub(in crate::pipeline) struct Buffers {
    sets: Vec<ActionSet>,
    /// The state of each packet that is kept from table to table.
    carried: Vec<Carried>,
    /// For each table, the indexes in the vector of the packets that wait for it.
    waiting: Vec<Vec<usize>>,
    /// The set of tables that packets wait for, one bit for each table.
    tables: [u64; TABLE_SET_WORDS],
    /// The packets that are looked up in the present table, and their winners.
    here: Vec<usize>,
    winners: Vec<Winner>,
    table: TableBuffers,
    /// Packets reused as copies for buckets that change them.
    copies: Vec<Packet>,
}

impl Buffers {
    fn begin(&mut self, packets: usize) {
        if self.sets.len() < packets {
            self.sets.resize_with(packets, ActionSet::default);
        }
        for set in &mut self.sets[..packets] {
            set.clear();
        }
        self.carried.clear();
        self.carried.resize(packets, Carried::default());
        self.waiting
            .resize_with(usize::from(TableId::LAST.0) + 1, Vec::new);
    }

    /// Returns the next table that packets wait for, and moves these packets to `here`, in
    /// the order of the vector.
    fn next(&mut self) -> Option<TableId> {
        let word = self.tables.iter().position(|&tables| tables != 0)?;
        let bit = self.tables[word].trailing_zeros();
        self.tables[word] &= self.tables[word] - 1;
        let table = word * 64 + bit as usize;
        self.here.clear();
        std::mem::swap(&mut self.here, &mut self.waiting[table]);
        // Packets may come from several tables.
        if !self.here.is_sorted() {
            self.here.sort_unstable();
        }
        Some(TableId(u8::try_from(table).expect("a table's number")))
    }
}

/// A vector of packets while it is processed, at one version of the pipeline.
pub(in crate::pipeline) struct Vector<'v, O: ?Sized> {
    pub(in crate::pipeline) side: &'v Side,
    pub(in crate::pipeline) packets: &'v mut [Packet],
    /// The counters of the worker.
    pub(in crate::pipeline) tally: &'v Tally,
    /// The arrival time of all packets, as a duration and in nanoseconds.
    now: Duration,
    pub(in crate::pipeline) nanoseconds: u64,
    buffers: &'v mut Buffers,
    sink: &'v mut dyn Sink,
    pub(in crate::pipeline) observer: &'v mut O,
}

impl<'v, O: Observer + ?Sized> Vector<'v, O> {
    /// Begins a vector of packets that arrived at `now`. No packet waits for a table yet.
    pub(in crate::pipeline) fn begin(
        side: &'v Side,
        packets: &'v mut [Packet],
        (tally, now): (&'v Tally, Duration),
        buffers: &'v mut Buffers,
        sink: &'v mut dyn Sink,
        observer: &'v mut O,
    ) -> Vector<'v, O> {
        buffers.begin(packets.len());
        Vector {
            side,
            packets,
            tally,
            now,
            nanoseconds: nanoseconds(now),
            buffers,
            sink,
            observer,
        }
    }

    /// True if the packet's ingress port receives packets.
    #[inline]
    pub(in crate::pipeline) fn is_received(&self, packet_index: usize) -> bool {
        let port = in_port(self.packets[packet_index].key());
        self.side.ports.receives(port)
    }

    /// The receiver of sent packets.
    pub(in crate::pipeline) fn sink(&mut self) -> &mut dyn Sink {
        self.sink
    }

    /// Makes a packet wait for a table.
    #[inline]
    pub(in crate::pipeline) fn wait(&mut self, table: TableId, packet_index: usize) {
        let index = usize::from(table.0);
        self.buffers.tables[index / 64] |= 1 << (index % 64);
        self.buffers.waiting[index].push(packet_index);
    }

    /// True if packets wait for any table.
    pub(in crate::pipeline) fn is_waited(&self) -> bool {
        self.buffers.tables.iter().any(|&tables| tables != 0)
    }

    /// Returns a packet and its action set, and the `Run` that carries out the actions of
    /// the entry `matched` for it.
    #[inline(always)] // once for each packet and table
    pub(in crate::pipeline) fn packet(
        &mut self,
        packet_index: usize,
        matched: MatchedEntry,
    ) -> (Run<'_, O>, &mut Packet, &mut ActionSet) {
        let run = Run {
            side: self.side,
            tally: self.tally,
            now: self.now,
            nanoseconds: self.nanoseconds,
            sink: &mut *self.sink,
            observer: &mut *self.observer,
            copies: &mut self.buffers.copies,
            matched,
            carried: &mut self.buffers.carried[packet_index],
        };
        (
            run,
            &mut self.packets[packet_index],
            &mut self.buffers.sets[packet_index],
        )
    }
}

/// The entries that win a batch of packets.
type Winners<'s> = [Option<(RuleId, &'s SideFlow)>; BATCH_PACKETS];

/// The way through the tables.
impl<'v, O: Observer + ?Sized> Vector<'v, O> {
    /// Processes all packets in the tables, beginning with table 0.
    pub(in crate::pipeline) fn process(&mut self, recorder: Option<&mut dyn Recorder>) {
        for packet_index in 0..self.packets.len() {
            if self.is_received(packet_index) {
                self.wait(TableId(0), packet_index);
            }
        }
        self.run_tables(recorder);
    }

    /// Processes all packets that wait for tables.
    pub(in crate::pipeline) fn run_tables(&mut self, mut recorder: Option<&mut dyn Recorder>) {
        while let Some(table) = self.buffers.next() {
            self.look_up(table);
            if let Some(recorder) = &mut recorder {
                let lookups = (&*self.buffers.here, &*self.buffers.winners);
                recorder.record_lookups(table, lookups, self.packets, self.side);
            }
            self.observer.node(Node::Tables, self.buffers.here.len());
            let waiting = std::mem::take(&mut self.buffers.here);
            let winners = std::mem::take(&mut self.buffers.winners);
            let batches = waiting.chunks(BATCH_PACKETS);
            for (batch, winners) in batches.zip(winners.chunks(BATCH_PACKETS)) {
                let entries = self.count(batch, winners);
                self.carry_out(table, batch, &entries);
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
        let mut entries = [None; BATCH_PACKETS];
        let bytes = |packet_index: usize| self.packets[packet_index].bytes().len();
        match the_same(winners) {
            // Common in small tables. One add per batch avoids store-to-load stalls on the
            // cell.
            Some(id) => {
                let bytes = batch.iter().map(|&packet_index| bytes(packet_index)).sum();
                self.tally
                    .count_flows(id, (batch.len(), bytes), self.nanoseconds);
                entries[..batch.len()].fill(Some((id, side.flow(id))));
            }
            None => {
                for ((entry, &packet_index), winner) in entries.iter_mut().zip(batch).zip(winners) {
                    if let Some(id) = winner.rule() {
                        self.tally
                            .count_flows(id, (1, bytes(packet_index)), self.nanoseconds);
                        *entry = Some((id, side.flow(id)));
                    }
                }
            }
        }
        entries
    }

    /// Carries out the instructions of the entries that win packets in a table.
    #[inline(always)]
    fn carry_out(&mut self, table: TableId, batch: &[usize], entries: &Winners<'_>) {
        for (entry, &packet_index) in entries.iter().zip(batch) {
            let winner = entry.map(|(id, _)| id);
            self.observer
                .looked_up(table, winner, &self.packets[packet_index]);
            let &Some((_, entry)) = entry else {
                continue;
            };
            let matched = MatchedEntry {
                table,
                cookie: entry.cookie,
                is_miss: entry.is_miss,
            };
            let (mut run, packet, set) = self.packet(packet_index, matched);
            let next = run.instructions(&entry.instructions, packet, set);
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
