//! Processing vectors of packets.
//!
//! Packets wait for tables in lists, one for each table. The tables are taken in order:
//! all packets that wait for one are looked up together, then each is acted upon and
//! waits for a later table, or is done.

use std::time::Duration;

use classyard::{RuleId, Winner};

use super::actions::{Carried, Place, Run, in_port};
use super::learn::Learner;
use super::observer::{Node, Observer};
use super::side::Side;
use super::tally::{Tally, nanoseconds};
use crate::action::{ActionSet, PortNo};
use crate::flow::TableId;
use crate::flow_table::TableBuffers;
use crate::packet::Packet;

/// Why a packet goes to the controller (`ofp_packet_in_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PacketInReason {
    /// The table-miss entry says so.
    NoMatch,
    /// Another action says so.
    Action,
    /// Its time to live is over.
    InvalidTtl,
}

impl PacketInReason {
    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PacketInReason::NoMatch => "no match",
            PacketInReason::Action => "action",
            PacketInReason::InvalidTtl => "invalid TTL",
        }
    }
}

/// Takes what comes out of the pipeline.
pub trait Sink {
    /// A packet goes out by a port, from a queue if one was chosen.
    fn send(&mut self, port: PortNo, queue: Option<u32>, packet: &Packet);

    /// A packet goes to the controller: at most `max_len` bytes of it, from a table, by
    /// an entry with this cookie.
    fn to_controller(
        &mut self,
        reason: PacketInReason,
        max_len: u16,
        from: (TableId, u64),
        packet: &Packet,
    );
}

/// Forgets all packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Sink for Discard {
    fn send(&mut self, _: PortNo, _: Option<u32>, _: &Packet) {}

    fn to_controller(&mut self, _: PacketInReason, _: u16, _: (TableId, u64), _: &Packet) {}
}

/// Packets whose entries are fetched and counted together, before any is acted upon:
/// with many entries each is far, and the accesses overlap.
const TOGETHER: usize = 64;

/// Words of a set of tables.
const WORDS: usize = (TableId::LAST.0 as usize + 1).div_ceil(64);

/// Working memory of a worker. Once it has seen the longest vector and frame, it
/// allocates nothing.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) sets: Vec<ActionSet>,
    /// What each packet takes along from table to table.
    pub(super) carried: Vec<Carried>,
    /// For each table, packets that wait for it, by their places in the vector.
    waiting: Vec<Vec<usize>>,
    /// Tables that packets wait for, a bit each.
    tables: [u64; WORDS],
    here: Vec<usize>,
    winners: Vec<Winner>,
    table: TableBuffers,
    /// Packets for buckets that change them.
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
        let at = usize::from(table.0);
        self.tables[at / 64] |= 1 << (at % 64);
        self.waiting[at].push(number);
    }

    /// Whether packets wait for some table.
    pub(super) fn is_waited(&self) -> bool {
        self.tables.iter().any(|&tables| tables != 0)
    }

    /// The next table that packets wait for; they are `here` then.
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

/// Has all packets that wait for tables pass them.
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
        // Packets come to a table in the order of the vector, by whatever way.
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
        let here = std::mem::take(&mut buffers.here);
        let mut copies = std::mem::take(&mut buffers.copies);
        let winners = std::mem::take(&mut buffers.winners);
        for (here, winners) in here.chunks(TOGETHER).zip(winners.chunks(TOGETHER)) {
            let mut flows = [None; TOGETHER];
            let bytes = |number: usize| packets[number].bytes().len();
            match the_same(winners) {
                // In a table of few entries: a cell that is added to again at once is slow.
                Some(id) => {
                    let bytes = here.iter().map(|&number| bytes(number)).sum();
                    tally.count_flows(id, (here.len(), bytes), nanoseconds);
                    flows[..here.len()].fill(Some((id, side.flow(id))));
                }
                None => {
                    for ((flow, &number), winner) in flows.iter_mut().zip(here).zip(winners) {
                        if let Some(id) = winner.rule() {
                            tally.count_flows(id, (1, bytes(number)), nanoseconds);
                            *flow = Some((id, side.flow(id)));
                        }
                    }
                }
            }
            for (flow, &number) in flows.iter().zip(here) {
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
                    place: Place {
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
        observer.node(Node::Actions, here.len());
        buffers.copies = copies;
        buffers.here = here;
    }
}

/// The entry that wins all packets.
#[inline]
fn the_same(winners: &[Winner]) -> Option<RuleId> {
    let (first, others) = winners.split_first()?;
    let is_one = others.iter().all(|winner| winner == first);
    first.rule().filter(|_| is_one)
}

/// Finds the winners of the packets that are in a table.
fn look_up(side: &Side, table: TableId, packets: &[Packet], tally: &Tally, buffers: &mut Buffers) {
    buffers.winners.clear();
    buffers.winners.resize(buffers.here.len(), Winner::MISS);
    if let Some(rules) = side.table(table) {
        let here = &buffers.here;
        let key = |place: usize| packets[here[place]].key();
        rules.classify(key, &mut buffers.winners, &mut buffers.table);
    }
    let matched = buffers.winners.iter().filter(|winner| !winner.is_miss());
    tally.count_table(table, buffers.here.len(), matched.count());
}
