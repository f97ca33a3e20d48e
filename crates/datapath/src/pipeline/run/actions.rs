//! Carrying out the instructions of entries and the buckets of groups for one packet.

use std::time::Duration;

use super::choice::Choice;
use super::limiter::remarked;
use super::observer::Observer;
use super::side::{Side, SideGroup};
use super::sink::{PacketInReason, Sink};
use super::tally::Tally;
use crate::action::{Action, ActionSet, GroupId, PortNo};
use crate::field::Field;
use crate::flow::{Instructions, TableId};
use crate::key::PacketKey;
use crate::limits::{MAX_PACKET_ACTIONS, MAX_PACKET_COPIES, PacketLimit};
use crate::meter::{BandKind, MeterId};
use crate::packet::{InvalidTtl, Packet};

/// A table that a packet went through, and the entry that matched the packet.
#[derive(Clone, Copy)]
pub(in crate::pipeline) struct MatchedEntry {
    pub(in crate::pipeline) table: TableId,
    pub(in crate::pipeline) cookie: u64,
    /// True if the entry is the table-miss entry.
    pub(in crate::pipeline) is_miss: bool,
}

/// No entry has matched yet: at the start of a cached path, and for a packet from the
/// controller. If such a packet goes to the controller, the table is 255 and the cookie is
/// all ones.
pub(in crate::pipeline) const NO_TABLE: MatchedEntry = MatchedEntry {
    table: TableId::ALL,
    cookie: u64::MAX,
    is_miss: false,
};

/// The packet is dropped: it is not processed any further.
#[derive(Debug)]
pub(in crate::pipeline) struct Dropped;

/// The state of a packet and its copies that is kept from table to table.
#[derive(Clone, Copy, Default)]
pub(super) struct Carried {
    /// The chosen queue.
    pub(in crate::pipeline) queue: Option<u32>,
    /// Actions carried out and buckets visited.
    actions: u32,
    /// Packets sent.
    copies: u32,
    /// True if the packet reached a limit.
    is_over: bool,
}

/// The processing of one packet in one table.
pub(in crate::pipeline) struct Run<'r, O: ?Sized> {
    pub(in crate::pipeline) side: &'r Side,
    pub(in crate::pipeline) tally: &'r Tally,
    pub(in crate::pipeline) now: Duration,
    pub(in crate::pipeline) nanoseconds: u64,
    pub(in crate::pipeline) sink: &'r mut dyn Sink,
    pub(in crate::pipeline) observer: &'r mut O,
    /// Packets that are reused for copies.
    pub(in crate::pipeline) copies: &'r mut Vec<Packet>,
    pub(in crate::pipeline) matched: MatchedEntry,
    pub(super) carried: &'r mut Carried,
}

impl<O: Observer + ?Sized> Run<'_, O> {
    /// Carries out an entry's instructions. Returns the next table.
    #[inline(always)] // once for each packet and table
    pub(in crate::pipeline) fn instructions(
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
        self.tally.count(limiter.counter, bytes, self.nanoseconds);
        let band = match self.observer.is_rehearsal() {
            true => limiter.would_meter(bytes, self.now),
            false => limiter.meter(bytes, self.now),
        };
        self.observer.metered(id, band);
        let Some((number, kind)) = band else {
            return Ok(());
        };
        let band_place = limiter.bands[number];
        self.tally.count(band_place, bytes, self.nanoseconds);
        match kind {
            BandKind::Drop => Err(Dropped),
            BandKind::DscpRemark(level) => {
                // A packet without IP has DSCP 0, which is not remarked.
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

    /// Returns [`Dropped`] for a packet that reached a limit. Counts and reports the first
    /// limit that the packet reached.
    #[cold]
    fn exceed(&mut self, limit: PacketLimit) -> Dropped {
        if !self.carried.is_over {
            self.carried.is_over = true;
            self.tally.count_limit(limit);
            self.observer.limited(limit);
        }
        Dropped
    }

    /// Counts an action or a visit of a bucket.
    #[inline]
    fn count_action(&mut self) -> Result<(), Dropped> {
        if self.carried.actions >= MAX_PACKET_ACTIONS {
            return Err(self.exceed(PacketLimit::Actions));
        }
        self.carried.actions += 1;
        Ok(())
    }

    /// Counts a packet that is about to be sent.
    #[inline]
    fn count_copy(&mut self) -> Result<(), Dropped> {
        if self.carried.copies >= MAX_PACKET_COPIES {
            return Err(self.exceed(PacketLimit::Copies));
        }
        self.carried.copies += 1;
        Ok(())
    }

    /// Carries out an action.
    pub(in crate::pipeline) fn action(
        &mut self,
        action: &Action,
        packet: &mut Packet,
    ) -> Result<(), Dropped> {
        self.count_action()?;
        self.observer.acting(action, packet);
        match *action {
            Action::Output { port, max_len } => self.output(port, max_len, packet)?,
            Action::Group(group) => self.group(group, packet)?,
            Action::SetQueue(queue) => self.carried.queue = Some(queue),
            _ => {
                if let Err(InvalidTtl) = action.change(packet) {
                    self.send_to_controller(PacketInReason::InvalidTtl, u16::MAX, packet)?;
                    return Err(Dropped);
                }
                self.observer.changed(packet);
            }
        }
        Ok(())
    }

    fn send_to_controller(
        &mut self,
        reason: PacketInReason,
        max_len: u16,
        packet: &Packet,
    ) -> Result<(), Dropped> {
        self.count_copy()?;
        let sender = (self.matched.table, self.matched.cookie);
        self.sink.to_controller(reason, max_len, sender, packet);
        Ok(())
    }

    fn send(&mut self, port: PortNo, packet: &Packet) -> Result<(), Dropped> {
        self.count_copy()?;
        self.sink.send(port, self.carried.queue, packet);
        Ok(())
    }

    fn output(&mut self, port: PortNo, max_len: u16, packet: &Packet) -> Result<(), Dropped> {
        let ingress = in_port(packet.key());
        let side = self.side;
        let ports = &side.ports;
        match port {
            PortNo::CONTROLLER => {
                let reason = match self.matched.is_miss {
                    true => PacketInReason::NoMatch,
                    false => PacketInReason::Action,
                };
                self.send_to_controller(reason, max_len, packet)
            }
            PortNo::IN_PORT if ports.sends(ingress) => self.send(ingress, packet),
            PortNo::ALL | PortNo::FLOOD => {
                let mut outputs = ports.others(ingress, port == PortNo::FLOOD);
                outputs.try_for_each(|port| self.send(port, packet))
            }
            // A packet leaves by its ingress port only through `IN_PORT`.
            _ if port != ingress && ports.sends(port) => self.send(port, packet),
            _ => Ok(()),
        }
    }

    /// Processes a packet in a group, without changing the packet. At most
    /// [`MAX_GROUP_DEPTH`](crate::limits::MAX_GROUP_DEPTH) groups are nested, since the store
    /// of groups refuses longer chains.
    fn group(&mut self, id: GroupId, packet: &mut Packet) -> Result<(), Dropped> {
        let side = self.side;
        let Some(group) = side.group(id) else {
            return Ok(());
        };
        self.tally
            .count(group.counter, packet.bytes().len(), self.nanoseconds);
        let number = match &group.choice {
            Choice::All => {
                let mut buckets = 0..group.buckets.len();
                return buckets.try_for_each(|number| self.bucket(id, group, number, packet));
            }
            Choice::One(number) => *number,
            Choice::ByFlow(shares) => shares.choose(|| side.flow_hash.of(packet.key())),
        };
        match number {
            Some(number) => self.bucket(id, group, number, packet),
            None => {
                self.observer.bucket(id, None);
                Ok(())
            }
        }
    }

    /// Carries out the actions of a bucket, on a copy of the packet if they change it. A
    /// dropped copy does not drop the packet, unless the packet reached a limit.
    fn bucket(
        &mut self,
        id: GroupId,
        group: &SideGroup,
        number: usize,
        packet: &mut Packet,
    ) -> Result<(), Dropped> {
        self.count_action()?;
        let bucket = &group.buckets[number];
        self.tally
            .count(bucket.counter, packet.bytes().len(), self.nanoseconds);
        self.observer.bucket(id, Some(number));
        let queue = self.carried.queue;
        let mut actions = bucket.actions.iter();
        let result = if bucket.changes {
            let mut copy = self.copies.pop().unwrap_or_default();
            copy.copy_from(packet);
            let result = actions.try_for_each(|action| self.action(action, &mut copy));
            self.copies.push(copy);
            result
        } else {
            actions.try_for_each(|action| self.action(action, packet))
        };
        self.carried.queue = queue;
        self.observer.bucket_done();
        result.or(match self.carried.is_over {
            true => Err(Dropped),
            false => Ok(()),
        })
    }
}

#[inline]
pub(super) fn in_port(key: &PacketKey) -> PortNo {
    PortNo(u32::try_from(key.get(Field::InPort)).expect("thirty-two bits"))
}
