//! Processing vectors of packets.
//!
//! Each table has a list of waiting packets. The tables are processed in order. A table
//! looks all its packets up together. Then the winners' instructions are carried out packet
//! by packet, and each packet waits for a later table or is done.

use std::time::Duration;

use classyard::{RuleId, Winner};

use super::actions::{Carried, MatchedEntry, Run, in_port};
use super::learn::Learner;
use super::observer::{Node, Observer};
use super::side::Side;
use super::sink::Sink;
use super::tally::{Tally, nanoseconds};
use crate::action::ActionSet;
use crate::flow::TableId;
use crate::flow_table::TableBuffers;
use crate::packet::Packet;

/// Packets whose entries are loaded and counted together, before their instructions are
/// carried out. If there are many entries, the cache misses of a batch overlap. Measured in
/// `bench/records/datapath.md` (What each step brought).
const BATCH_PACKETS: usize = 64;

/// Words of a bit set of tables.
const TABLE_SET_WORDS: usize = (TableId::LAST.0 as usize + 1).div_ceil(64);

/// Working memory of a worker. It allocates nothing after the longest vector and frame.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) sets: Vec<ActionSet>,
    /// The state of each packet that is kept from table to table.
    pub(super) carried: Vec<Carried>,
    /// For each table, the indexes in the vector of the packets that wait for it.
    waiting: Vec<Vec<usize>>,
    /// The set of tables that packets wait for, one bit for each table.
    tables: [u64; TABLE_SET_WORDS],
    here: Vec<usize>,
    winners: Vec<Winner>,
    table: TableBuffers,
    /// Packets reused as copies for buckets that change them.
    pub(super) copies: Vec<Packet>,
}

impl Buffers {
    pub(super) fn begin(&mut self, packets: usize) {
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

    #[inline]
    pub(super) fn wait(&mut self, table: TableId, number: usize) {
        let index = usize::from(table.0);
        self.tables[index / 64] |= 1 << (index % 64);
        self.waiting[index].push(number);
    }

    /// True if packets wait for any table.
    pub(super) fn is_waited(&self) -> bool {
        self.tables.iter().any(|&tables| tables != 0)
    }

    /// Returns the next table that packets wait for, and moves these packets to `here`.
    fn next(&mut self) -> Option<TableId> {
        let word = self.tables.iter().position(|&tables| tables != 0)?;
        let bit = self.tables[word].trailing_zeros();
        self.tables[word] &= self.tables[word] - 1;
        let table = word * 64 + bit as usize;
        self.here.clear();
        std::mem::swap(&mut self.here, &mut self.waiting[table]);
        Some(TableId(u8::try_from(table).expect("a table's number")))
    }
}

pub(super) fn process(
    side: &Side,
    packets: &mut [Packet],
    (tally, now): (&Tally, Duration),
    buffers: &mut Buffers,
    sink: &mut dyn Sink,
    observer: &mut (impl Observer + ?Sized),
) {
    buffers.begin(packets.len());
    for (number, packet) in packets.iter().enumerate() {
        if side.ports.receives(in_port(packet.key())) {
            buffers.wait(TableId(0), number);
        }
    }
    run_tables(side, packets, (tally, now), buffers, None, sink, observer);
}

/// Processes all packets that wait for tables.
pub(super) fn run_tables(
    side: &Side,
    packets: &mut [Packet],
    (tally, now): (&Tally, Duration),
    buffers: &mut Buffers,
    mut learner: Option<&mut Learner>,
    sink: &mut dyn Sink,
    observer: &mut (impl Observer + ?Sized),
) {
    let nanoseconds = nanoseconds(now);
    while let Some(table) = buffers.next() {
        // Restores the order of the vector: packets may come from several tables.
        if !buffers.here.is_sorted() {
            buffers.here.sort_unstable();
        }
        look_up(side, table, packets, tally, buffers);
        if let Some(learner) = &mut learner {
            for (&number, &winner) in buffers.here.iter().zip(&buffers.winners) {
                let packet = (number, packets[number].key());
                learner.looked_up(packet, table, winner, side);
            }
        }
        observer.node(Node::Tables, buffers.here.len());
        let waiting = std::mem::take(&mut buffers.here);
        let mut copies = std::mem::take(&mut buffers.copies);
        let winners = std::mem::take(&mut buffers.winners);
        let batches = waiting.chunks(BATCH_PACKETS);
        for (batch, winners) in batches.zip(winners.chunks(BATCH_PACKETS)) {
            let mut flows = [None; BATCH_PACKETS];
            let bytes = |number: usize| packets[number].bytes().len();
            match the_same(winners) {
                // Common in small tables. One add per batch avoids store-to-load stalls on
                // the cell.
                Some(id) => {
                    let bytes = batch.iter().map(|&number| bytes(number)).sum();
                    tally.count_flows(id, (batch.len(), bytes), nanoseconds);
                    flows[..batch.len()].fill(Some((id, side.flow(id))));
                }
                None => {
                    for ((flow, &number), winner) in flows.iter_mut().zip(batch).zip(winners) {
                        if let Some(id) = winner.rule() {
                            tally.count_flows(id, (1, bytes(number)), nanoseconds);
                            *flow = Some((id, side.flow(id)));
                        }
                    }
                }
            }
            for (flow, &number) in flows.iter().zip(batch) {
                observer.looked_up(table, flow.map(|(id, _)| id), &packets[number]);
                let &Some((_, flow)) = flow else {
                    continue;
                };
                let mut run = Run {
                    side,
                    tally,
                    now,
                    nanoseconds,
                    sink: &mut *sink,
                    observer: &mut *observer,
                    copies: &mut copies,
                    place: MatchedEntry {
                        table,
                        cookie: flow.cookie,
                        is_miss: flow.is_miss,
                    },
                    carried: &mut buffers.carried[number],
                };
                let (packet, set) = (&mut packets[number], &mut buffers.sets[number]);
                let next = run.instructions(&flow.instructions, packet, set);
                if let Ok(Some(next)) = next {
                    buffers.wait(next, number);
                }
            }
        }
        buffers.winners = winners;
        observer.node(Node::Actions, waiting.len());
        buffers.copies = copies;
        buffers.here = waiting;
    }
}

/// Returns the entry that wins all packets, or `None` if the winners differ.
#[inline]
fn the_same(winners: &[Winner]) -> Option<RuleId> {
    let (first, others) = winners.split_first()?;
    let is_same = others.iter().all(|winner| winner == first);
    first.rule().filter(|_| is_same)
}

/// Looks up the packets in `buffers.here` in a table, and counts them.
fn look_up(side: &Side, table: TableId, packets: &[Packet], tally: &Tally, buffers: &mut Buffers) {
    buffers.winners.clear();
    buffers.winners.resize(buffers.here.len(), Winner::MISS);
    if let Some(rules) = side.table(table) {
        let waiting = &buffers.here;
        let key = |index: usize| packets[waiting[index]].key();
        rules.classify(key, &mut buffers.winners, &mut buffers.table);
    }
    let matched = buffers.winners.iter().filter(|winner| !winner.is_miss());
    tally.count_table(table, buffers.here.len(), matched.count());
}
