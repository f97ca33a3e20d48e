//! A vector of packets while it is processed, and the working memory for it.

use std::time::Duration;

use classyard::Winner;

use super::actions::{Carried, MatchedEntry, Run, in_port};
use super::observer::Observer;
use super::side::Side;
use super::sink::Sink;
use super::tally::{Tally, nanoseconds};
use crate::action::ActionSet;
use crate::flow::TableId;
use crate::flow_table::TableBuffers;
use crate::packet::Packet;

/// Words of a bit set of tables.
const TABLE_SET_WORDS: usize = (TableId::LAST.0 as usize + 1).div_ceil(64);

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
    pub(super) here: Vec<usize>,
    pub(super) winners: Vec<Winner>,
    pub(super) table: TableBuffers,
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
    pub(super) fn next(&mut self) -> Option<TableId> {
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
    pub(super) buffers: &'v mut Buffers,
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

    /// Returns a `Run` that carries out actions for a packet that matched `matched`, with the packet and
    /// its action set.
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
