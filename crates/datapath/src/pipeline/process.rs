//! Processing vectors of packets.

use classyard::Winner;

use super::counters::Counters;
use super::side::Side;
use crate::action::{Action, ActionSet, GroupId, PortNo};
use crate::field::Field;
use crate::flow::{Instructions, TableId};
use crate::flow_table::TableBuffers;
use crate::group::{Bucket, Group, GroupType};
use crate::key::PacketKey;
use crate::packet::{InvalidTtl, Packet};

/// Why a packet goes to the controller (`ofp_packet_in_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketInReason {
    /// The table-miss entry says so.
    NoMatch,
    /// Another action says so.
    Action,
    /// Its time to live is over.
    InvalidTtl,
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

/// Working memory: one for each thread.
#[derive(Default)]
pub struct Buffers {
    sets: Vec<ActionSet>,
    queues: Vec<Option<u32>>,
    /// For each table, packets that wait for it, by their places in the vector.
    waiting: Vec<Vec<usize>>,
    here: Vec<usize>,
    winners: Vec<Winner>,
    table: TableBuffers,
}

/// Where a packet is: the table, and the entry that matched it there.
#[derive(Clone, Copy)]
struct Place {
    table: TableId,
    cookie: u64,
    /// The entry is the table-miss entry.
    is_miss: bool,
}

/// A packet is not processed any further.
struct Dropped;

pub(super) fn process(
    side: &Side,
    packets: &mut [Packet],
    counters: &mut Counters,
    buffers: &mut Buffers,
    sink: &mut impl Sink,
) {
    buffers.begin(packets.len());
    for (number, packet) in packets.iter().enumerate() {
        if side.ports.receives(in_port(packet.key())) {
            buffers.waiting[0].push(number);
        }
    }
    for table in 0..=TableId::LAST.0 {
        if buffers.waiting[usize::from(table)].is_empty() {
            continue;
        }
        std::mem::swap(&mut buffers.here, &mut buffers.waiting[usize::from(table)]);
        let table = TableId(table);
        look_up(side, table, packets, counters, buffers);
        let here = std::mem::take(&mut buffers.here);
        for (&number, &winner) in here.iter().zip(&buffers.winners) {
            if let Some(id) = winner.rule() {
                let flow = side.flow(id);
                let mut run = Run {
                    side,
                    counters: &mut *counters,
                    sink: &mut *sink,
                    place: Place {
                        table,
                        cookie: flow.cookie,
                        is_miss: flow.is_miss,
                    },
                    queue: buffers.queues[number],
                };
                let packet = &mut packets[number];
                run.counters.count_flow(id, packet.bytes().len());
                let set = &mut buffers.sets[number];
                let next = run.instructions(&flow.instructions, packet, set);
                buffers.queues[number] = run.queue;
                if let Ok(Some(next)) = next {
                    buffers.waiting[usize::from(next.0)].push(number);
                }
            }
        }
        buffers.here = here;
        buffers.here.clear();
    }
}

fn in_port(key: &PacketKey) -> PortNo {
    PortNo(u32::try_from(key.get(Field::InPort)).expect("thirty-two bits"))
}

/// Finds the winners of the packets that are in a table.
fn look_up(
    side: &Side,
    table: TableId,
    packets: &[Packet],
    counters: &mut Counters,
    buffers: &mut Buffers,
) {
    buffers.winners.clear();
    buffers.winners.resize(buffers.here.len(), Winner::MISS);
    if let Some(rules) = side.table(table) {
        let here = &buffers.here;
        let key = |place: usize| packets[here[place]].key();
        rules.classify(key, &mut buffers.winners, &mut buffers.table);
    }
    let matched = buffers.winners.iter().filter(|winner| !winner.is_miss());
    counters.count_table(table, buffers.here.len(), matched.count());
}

impl Buffers {
    /// Nothing allocated yet.
    #[must_use]
    pub fn new() -> Buffers {
        Buffers::default()
    }

    fn begin(&mut self, packets: usize) {
        if self.sets.len() < packets {
            self.sets.resize_with(packets, ActionSet::default);
        }
        for set in &mut self.sets[..packets] {
            set.clear();
        }
        self.queues.clear();
        self.queues.resize(packets, None);
        self.waiting
            .resize_with(usize::from(TableId::LAST.0) + 1, Vec::new);
    }
}

/// What goes on with one packet in one table.
struct Run<'r, S> {
    side: &'r Side,
    counters: &'r mut Counters,
    sink: &'r mut S,
    place: Place,
    queue: Option<u32>,
}

impl<S: Sink> Run<'_, S> {
    /// Carries an entry's instructions out; says which table is next.
    fn instructions(
        &mut self,
        instructions: &Instructions,
        packet: &mut Packet,
        set: &mut ActionSet,
    ) -> Result<Option<TableId>, Dropped> {
        for action in &instructions.apply {
            self.action(action, packet)?;
        }
        if instructions.clear {
            set.clear();
        }
        if !instructions.write.is_empty() {
            set.write(&instructions.write);
        }
        if let Some((value, mask)) = instructions.metadata {
            packet.write_metadata(value, mask);
        }
        if instructions.goto_table.is_none() {
            for action in set.ordered() {
                self.action(action, packet)?;
            }
        }
        Ok(instructions.goto_table)
    }

    /// Carries an action out.
    fn action(&mut self, action: &Action, packet: &mut Packet) -> Result<(), Dropped> {
        match *action {
            Action::Output { port, max_len } => self.output(port, max_len, packet),
            Action::Group(group) => self.group(group, packet),
            Action::SetQueue(queue) => self.queue = Some(queue),
            _ => {
                if let Err(InvalidTtl) = action.change(packet) {
                    let from = (self.place.table, self.place.cookie);
                    let reason = PacketInReason::InvalidTtl;
                    self.sink.to_controller(reason, u16::MAX, from, packet);
                    return Err(Dropped);
                }
            }
        }
        Ok(())
    }

    fn output(&mut self, port: PortNo, max_len: u16, packet: &Packet) {
        let own = in_port(packet.key());
        let (ports, queue) = (&self.side.ports, self.queue);
        match port {
            PortNo::CONTROLLER => {
                let reason = match self.place.is_miss {
                    true => PacketInReason::NoMatch,
                    false => PacketInReason::Action,
                };
                let from = (self.place.table, self.place.cookie);
                self.sink.to_controller(reason, max_len, from, packet);
            }
            PortNo::IN_PORT if ports.sends(own) => self.sink.send(own, queue, packet),
            PortNo::ALL | PortNo::FLOOD => {
                for port in ports.others(own, port == PortNo::FLOOD) {
                    self.sink.send(port, queue, packet);
                }
            }
            // Back where it came from a packet goes by `in_port` alone.
            _ if port != own && ports.sends(port) => self.sink.send(port, queue, packet),
            _ => {}
        }
    }

    /// Has a group process a copy of a packet.
    fn group(&mut self, id: GroupId, packet: &Packet) {
        let Some(group) = self.side.group(id) else {
            return;
        };
        self.counters.count_group(id, packet.bytes().len());
        match group.kind {
            GroupType::All => {
                for number in 0..group.buckets.len() {
                    self.bucket(group, number, packet);
                }
            }
            GroupType::Indirect => self.bucket(group, 0, packet),
            GroupType::FastFailover => {
                let mut buckets = group.buckets.iter();
                if let Some(number) = buckets.position(|bucket| self.side.is_live(bucket)) {
                    self.bucket(group, number, packet);
                }
            }
            GroupType::Select => {
                if let Some(number) = self.selected(group, packet.key()) {
                    self.bucket(group, number, packet);
                }
            }
        }
    }

    /// Carries the actions of a bucket out, for a copy of a packet.
    fn bucket(&mut self, group: &Group, number: usize, packet: &Packet) {
        self.counters
            .count_bucket(group.id, number, packet.bytes().len());
        let mut set = ActionSet::default();
        set.write(&group.buckets[number].actions);
        let (mut copy, queue) = (packet.clone(), self.queue);
        for action in set.ordered() {
            if self.action(action, &mut copy).is_err() {
                break;
            }
        }
        self.queue = queue;
    }

    /// The bucket of a select group that a packet's flow goes to: of those that are
    /// live, each by its weight. While these stay the same, packets of a flow go to
    /// the same one.
    fn selected(&self, group: &Group, key: &PacketKey) -> Option<usize> {
        let weight = |bucket: &Bucket| match self.side.is_live(bucket) {
            true => u64::from(bucket.weight),
            false => 0,
        };
        let total: u64 = group.buckets.iter().map(weight).sum();
        let mut at = flow_hash(key).checked_rem(total)?;
        group.buckets.iter().position(|bucket| {
            let weight = weight(bucket);
            let is_here = at < weight;
            at = at.saturating_sub(weight);
            is_here
        })
    }
}

/// A hash of what all packets of a flow have in common: Ethernet addresses and type,
/// IP addresses, protocol and ports, without the VLAN and what changes on the way.
#[must_use]
pub fn flow_hash(key: &PacketKey) -> u64 {
    let fields = [
        Field::EthDst,
        Field::EthSrc,
        Field::EthType,
        Field::IpProto,
        Field::Ipv6Src,
        Field::Ipv6Dst,
        Field::TcpSrc,
        Field::TcpDst,
    ];
    let mut hash = 0x9e37_79b9_7f4a_7c15_u64;
    for field in fields {
        let value = key.get(field);
        for half in [value, value >> 64] {
            let [.., a, b, c, d, e, f, g, h] = half.to_be_bytes();
            hash ^= u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
            hash ^= hash >> 32;
        }
    }
    hash
}
