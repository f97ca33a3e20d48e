//! What entries and groups do with one packet.

use std::time::Duration;

use super::limiter::remarked;
use super::observer::Observer;
use super::process::{PacketInReason, Sink};
use super::side::{Side, SideGroup};
use super::tally::Tally;
use crate::action::{Action, ActionSet, GroupId, PortNo};
use crate::field::Field;
use crate::flow::{Instructions, TableId};
use crate::group::{Bucket, GroupType};
use crate::key::PacketKey;
use crate::meter::{BandKind, MeterId};
use crate::packet::{InvalidTtl, Packet};

/// Where a packet is: the table, and the entry that matched it there.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) table: TableId,
    pub(super) cookie: u64,
    /// The entry is the table-miss entry.
    pub(super) is_miss: bool,
}

/// The place of a packet from the controller, which no entry has sent: what goes back
/// there is said to be from table 255, with a cookie of all ones.
pub(super) const NO_TABLE: Place = Place {
    table: TableId::ALL,
    cookie: u64::MAX,
    is_miss: false,
};

/// A packet is not processed any further.
pub(super) struct Dropped;

/// What goes on with one packet in one table.
pub(super) struct Run<'r, S, O> {
    pub(super) side: &'r Side,
    pub(super) tally: &'r Tally,
    pub(super) now: Duration,
    pub(super) nanoseconds: u64,
    pub(super) sink: &'r mut S,
    pub(super) observer: &'r mut O,
    /// Packets that can be filled with copies.
    pub(super) copies: &'r mut Vec<Packet>,
    pub(super) place: Place,
    pub(super) queue: Option<u32>,
}

impl<S: Sink, O: Observer> Run<'_, S, O> {
    /// Carries an entry's instructions out; says which table is next.
    pub(super) fn instructions(
        &mut self,
        instructions: &Instructions,
        packet: &mut Packet,
        set: &mut ActionSet,
    ) -> Result<Option<TableId>, Dropped> {
        if let Some(meter) = instructions.meter {
            self.meter(meter, packet)?;
        }
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
        if instructions.goto_table.is_none() && !set.is_empty() {
            self.observer.action_set();
            for action in set.ordered() {
                self.action(action, packet)?;
            }
        }
        Ok(instructions.goto_table)
    }

    /// Passes a packet through a meter.
    fn meter(&mut self, id: MeterId, packet: &mut Packet) -> Result<(), Dropped> {
        let Some(limiter) = self.side.meter(id) else {
            return Ok(());
        };
        let bytes = packet.bytes().len();
        self.tally.count(limiter.place, bytes, self.nanoseconds);
        let band = match self.observer.is_rehearsal() {
            true => limiter.would_meter(bytes, self.now),
            false => limiter.meter(bytes, self.now),
        };
        self.observer.metered(id, band);
        let Some((number, kind)) = band else {
            return Ok(());
        };
        let place = limiter.bands[number];
        self.tally.count(place, bytes, self.nanoseconds);
        match kind {
            BandKind::Drop => Err(Dropped),
            BandKind::DscpRemark(level) => {
                // A packet without IP has a DSCP of 0, which stays.
                let dscp = packet.key().get(Field::IpDscp);
                let old = u8::try_from(dscp).expect("six bits");
                let new = remarked(old, level);
                if new != old {
                    packet.set_field(Field::IpDscp, u128::from(new));
                    self.observer.changed(packet);
                }
                Ok(())
            }
        }
    }

    /// Carries an action out.
    pub(super) fn action(&mut self, action: &Action, packet: &mut Packet) -> Result<(), Dropped> {
        self.observer.acting(action, packet);
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
                self.observer.changed(packet);
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

    /// Has a group process a packet, which stays as it is.
    fn group(&mut self, id: GroupId, packet: &mut Packet) {
        let side = self.side;
        let Some(group) = side.group(id) else {
            return;
        };
        self.tally
            .count(group.place, packet.bytes().len(), self.nanoseconds);
        let chosen = match group.kind {
            GroupType::All => {
                for number in 0..group.buckets.len() {
                    self.bucket(id, group, number, packet);
                }
                return;
            }
            GroupType::Indirect => Some(0),
            GroupType::FastFailover => {
                let mut buckets = group.buckets.iter();
                buckets.position(|bucket| side.is_live(&bucket.bucket))
            }
            GroupType::Select => self.selected(group, packet.key()),
        };
        match chosen {
            Some(number) => self.bucket(id, group, number, packet),
            None => self.observer.bucket(id, None),
        }
    }

    /// Carries the actions of a bucket out, for a copy of a packet if some change it.
    fn bucket(&mut self, id: GroupId, group: &SideGroup, number: usize, packet: &mut Packet) {
        let bucket = &group.buckets[number];
        self.tally
            .count(bucket.place, packet.bytes().len(), self.nanoseconds);
        self.observer.bucket(id, Some(number));
        let queue = self.queue;
        if bucket.changes {
            let mut copy = self.copies.pop().unwrap_or_default();
            copy.copy_from(packet);
            for action in &bucket.actions {
                if self.action(action, &mut copy).is_err() {
                    break;
                }
            }
            self.copies.push(copy);
        } else {
            for action in &bucket.actions {
                if self.action(action, packet).is_err() {
                    break;
                }
            }
        }
        self.queue = queue;
        self.observer.bucket_done();
    }

    /// The bucket of a select group that a packet's flow goes to: of those that are
    /// live, each by its weight. While these stay the same, packets of a flow go to
    /// the same one.
    fn selected(&self, group: &SideGroup, key: &PacketKey) -> Option<usize> {
        let weight = |bucket: &Bucket| match self.side.is_live(bucket) {
            true => u64::from(bucket.weight),
            false => 0,
        };
        let buckets = group.buckets.iter().map(|bucket| &bucket.bucket);
        let total: u64 = buckets.clone().map(weight).sum();
        let mut at = flow_hash(key).checked_rem(total)?;
        let mut buckets = buckets;
        buckets.position(|bucket| {
            let weight = weight(bucket);
            let is_here = at < weight;
            at = at.saturating_sub(weight);
            is_here
        })
    }
}

#[inline]
pub(super) fn in_port(key: &PacketKey) -> PortNo {
    PortNo(u32::try_from(key.get(Field::InPort)).expect("thirty-two bits"))
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
