//! What entries and groups do with one packet.

use std::time::Duration;

use super::choice::Choice;
use super::limiter::remarked;
use super::observer::Observer;
use super::process::{PacketInReason, Sink};
use super::side::{Side, SideGroup};
use super::tally::Tally;
use crate::action::{Action, ActionSet, GroupId, PortNo};
use crate::field::Field;
use crate::flow::{Instructions, TableId};
use crate::key::PacketKey;
use crate::limits::{MAX_PACKET_ACTIONS, MAX_PACKET_COPIES, PacketLimit};
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
#[derive(Debug)]
pub(super) struct Dropped;

/// What a packet takes along on its way, its copies included.
#[derive(Clone, Copy, Default)]
pub(super) struct Carried {
    /// The queue that was chosen.
    pub(super) queue: Option<u32>,
    /// Actions that were carried out, and buckets that were gone to.
    actions: u32,
    /// Packets that came out.
    copies: u32,
    /// It reached a limit.
    is_over: bool,
}

/// What goes on with one packet in one table.
pub(super) struct Run<'r, O: ?Sized> {
    pub(super) side: &'r Side,
    pub(super) tally: &'r Tally,
    pub(super) now: Duration,
    pub(super) nanoseconds: u64,
    pub(super) sink: &'r mut dyn Sink,
    pub(super) observer: &'r mut O,
    /// Packets that can be filled with copies.
    pub(super) copies: &'r mut Vec<Packet>,
    pub(super) place: Place,
    pub(super) carried: &'r mut Carried,
}

impl<O: Observer + ?Sized> Run<'_, O> {
    /// Carries an entry's instructions out; says which table is next.
    #[inline(always)] // once a packet and table
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

    /// Drops a packet at a limit.
    #[cold]
    fn exceed(&mut self, limit: PacketLimit) -> Dropped {
        if !self.carried.is_over {
            self.carried.is_over = true;
            self.tally.count_limit(limit);
            self.observer.limited(limit);
        }
        Dropped
    }

    /// Counts an action, or going to a bucket.
    #[inline]
    fn count_action(&mut self) -> Result<(), Dropped> {
        if self.carried.actions >= MAX_PACKET_ACTIONS {
            return Err(self.exceed(PacketLimit::Actions));
        }
        self.carried.actions += 1;
        Ok(())
    }

    /// Counts a packet that is about to come out.
    #[inline]
    fn count_copy(&mut self) -> Result<(), Dropped> {
        if self.carried.copies >= MAX_PACKET_COPIES {
            return Err(self.exceed(PacketLimit::Copies));
        }
        self.carried.copies += 1;
        Ok(())
    }

    /// Carries an action out.
    pub(super) fn action(&mut self, action: &Action, packet: &mut Packet) -> Result<(), Dropped> {
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
        let from = (self.place.table, self.place.cookie);
        self.sink.to_controller(reason, max_len, from, packet);
        Ok(())
    }

    fn send(&mut self, port: PortNo, packet: &Packet) -> Result<(), Dropped> {
        self.count_copy()?;
        self.sink.send(port, self.carried.queue, packet);
        Ok(())
    }

    fn output(&mut self, port: PortNo, max_len: u16, packet: &Packet) -> Result<(), Dropped> {
        let own = in_port(packet.key());
        let side = self.side;
        let ports = &side.ports;
        match port {
            PortNo::CONTROLLER => {
                let reason = match self.place.is_miss {
                    true => PacketInReason::NoMatch,
                    false => PacketInReason::Action,
                };
                self.send_to_controller(reason, max_len, packet)
            }
            PortNo::IN_PORT if ports.sends(own) => self.send(own, packet),
            PortNo::ALL | PortNo::FLOOD => {
                let mut others = ports.others(own, port == PortNo::FLOOD);
                others.try_for_each(|port| self.send(port, packet))
            }
            // Back where it came from a packet goes by `in_port` alone.
            _ if port != own && ports.sends(port) => self.send(port, packet),
            _ => Ok(()),
        }
    }

    /// Has a group process a packet, which stays as it is. No more than
    /// [`MAX_GROUP_DEPTH`](crate::limits::MAX_GROUP_DEPTH) groups are within each other:
    /// the store of groups refuses longer chains.
    fn group(&mut self, id: GroupId, packet: &mut Packet) -> Result<(), Dropped> {
        let side = self.side;
        let Some(group) = side.group(id) else {
            return Ok(());
        };
        self.tally
            .count(group.place, packet.bytes().len(), self.nanoseconds);
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

    /// Carries the actions of a bucket out, for a copy of a packet if some change it. A
    /// copy that is dropped ends alone, unless the packet reached a limit.
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
            .count(bucket.place, packet.bytes().len(), self.nanoseconds);
        self.observer.bucket(id, Some(number));
        let queue = self.carried.queue;
        let mut actions = bucket.actions.iter();
        let done = if bucket.changes {
            let mut copy = self.copies.pop().unwrap_or_default();
            copy.copy_from(packet);
            let done = actions.try_for_each(|action| self.action(action, &mut copy));
            self.copies.push(copy);
            done
        } else {
            actions.try_for_each(|action| self.action(action, packet))
        };
        self.carried.queue = queue;
        self.observer.bucket_done();
        done.or(match self.carried.is_over {
            true => Err(Dropped),
            false => Ok(()),
        })
    }
}

#[inline]
pub(super) fn in_port(key: &PacketKey) -> PortNo {
    PortNo(u32::try_from(key.get(Field::InPort)).expect("thirty-two bits"))
}
