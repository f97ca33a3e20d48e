//! The switch: bundles of messages, expired entries, and the processing of packets
//! (OpenFlow 1.3.5 §5.1, §5.9 to §5.12).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use classyard::author::splitmix;
use classyard_datapath::flow::{FlowEntry, RemovalReason, TableConfig, TableId};
use classyard_datapath::group::GroupType;
use classyard_datapath::limits::LimitCounts;
use classyard_datapath::meter::BandKind;
use classyard_datapath::pipeline::{Message, PacketInReason, PortState, RemovedFlow, TableCount};
use classyard_datapath::{Action, ErrorCode, Field, GroupId, MatchField, MeterId, PortNo};

use crate::actions::{self, MAX_ACTIONS};
use crate::groups::MAX_COPIES;
use crate::matching::{matches, values};
use crate::metering::remarked;
use crate::packet::Packet;
use crate::rewrite::InvalidTtl;
use crate::state::{Counted, CountedGroup, CountedMeter, State, add};
use crate::{flows, groups, meters};

/// An output of the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet is sent.
    Sent {
        /// The output port.
        port: PortNo,
        /// The queue, if one was chosen.
        queue: Option<u32>,
        /// The packet.
        bytes: Vec<u8>,
    },
    /// A packet is sent to the controller.
    Controller {
        /// The reason.
        reason: PacketInReason,
        /// The maximum number of bytes to send.
        max_len: u16,
        /// The table whose entry sent it.
        table: TableId,
        /// The cookie of the entry.
        cookie: u64,
        /// The packet.
        bytes: Vec<u8>,
    },
}

/// A switch that implements the text literally, step by step.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    state: State,
    /// The seed of select groups' choices.
    select_seed: u64,
}

impl Reference {
    /// Creates a switch without entries, groups, meters and ports. Its select groups
    /// choose by a seed as the datapath's do.
    #[must_use]
    pub fn new(select_seed: u64) -> Reference {
        Reference {
            state: State::default(),
            select_seed,
        }
    }

    /// Applies a bundle of messages: all of them, or none.
    ///
    /// # Errors
    /// The position of the first message that cannot be applied, and the reason.
    pub fn apply(&mut self, messages: &[Message], now: Duration) -> Result<(), (usize, ErrorCode)> {
        let mut changed = self.state.clone();
        for (number, message) in messages.iter().enumerate() {
            let result = match message {
                Message::Flow(message) => flows::apply(&mut changed, message, now),
                Message::Group(message) => groups::apply(&mut changed, message, now),
                Message::Meter(message) => meters::apply(&mut changed, message, now),
                Message::Table(message) => flows::configure(&mut changed, message),
                Message::Port(port, state) => set_port(&mut changed, *port, *state),
            };
            result.map_err(|code| (number, code))?;
        }
        self.state = changed;
        Ok(())
    }

    /// Removes the expired entries (§5.5); returns them with the reasons. A hard timeout
    /// has priority over an idle timeout.
    pub fn expire(&mut self, now: Duration) -> Vec<(FlowEntry, RemovalReason)> {
        let seconds = |seconds: u16| Duration::from_secs(seconds.into());
        let is_hard = |counted: &Counted| {
            let entry = &counted.entry;
            let end = entry.added.checked_add(seconds(entry.hard_timeout));
            entry.hard_timeout > 0 && end.is_some_and(|end| end <= now)
        };
        let is_idle = |counted: &Counted| {
            let entry = &counted.entry;
            let last = counted.last_match.unwrap_or_default().max(entry.added);
            let end = last.checked_add(seconds(entry.idle_timeout));
            entry.idle_timeout > 0 && end.is_some_and(|end| end <= now)
        };
        let before = self.state.removed.len();
        let state = &mut self.state;
        state.remove(RemovalReason::HardTimeout, now, is_hard);
        state.remove(RemovalReason::IdleTimeout, now, is_idle);
        let expired = state.removed[before..].iter();
        expired
            .map(|removed| (removed.entry.clone(), removed.reason))
            .collect()
    }

    /// Returns the removed entries. Their numbers are free afterwards.
    pub fn collect_removed(&mut self) -> Vec<RemovedFlow> {
        std::mem::take(&mut self.state.removed)
    }

    /// Processes a packet and returns its outputs, in order. The packet keeps its state
    /// at the end of processing.
    pub fn process(&mut self, packet: &mut Packet, now: Duration) -> Vec<Event> {
        let mut way = Way {
            in_port: in_port(packet),
            state: &mut self.state,
            select_seed: self.select_seed,
            spent: Spent::default(),
            now,
            events: Vec::new(),
            table: TableId(0),
            cookie: 0,
            reason: PacketInReason::Action,
        };
        let is_refused = way
            .state
            .ports
            .get(&way.in_port)
            .is_some_and(|port| port.no_receive);
        if !is_refused {
            // A dropped packet needs no further processing.
            let _: Result<(), Dropped> = way.tables(packet);
        }
        way.events
    }

    /// Executes the actions of a packet from the controller, which specifies the packet's
    /// input port (§7.3.7), and returns the outputs. Output to `table` sends the packet,
    /// in its current state, through the tables.
    ///
    /// # Errors
    /// The error of the first action that is invalid; missing groups are checked after
    /// that. Then nothing is executed.
    pub fn execute(
        &mut self,
        wanted: &[Action],
        packet: &Packet,
        now: Duration,
    ) -> Result<Vec<Event>, ErrorCode> {
        let to_table = |action: &Action| {
            let table = PortNo::TABLE;
            matches!(action, Action::Output { port, .. } if *port == table)
        };
        actions::check_length(wanted)?;
        for action in wanted.iter().filter(|action| !to_table(action)) {
            actions::check_alone(action)?;
        }
        let is_missing = |action: &Action| match action {
            Action::Group(group) => !self.state.groups.contains_key(group),
            _ => false,
        };
        if wanted.iter().any(is_missing) {
            return Err(ErrorCode::BadOutGroup);
        }
        let mut packet = packet.clone();
        let (mut events, mut spent) = (Vec::new(), Spent::default());
        for action in wanted {
            if to_table(action) {
                let mut copy = packet.clone();
                copy.queue = None;
                events.extend(self.process(&mut copy, now));
                continue;
            }
            let mut way = Way {
                in_port: in_port(&packet),
                state: &mut self.state,
                select_seed: self.select_seed,
                spent,
                now,
                events: Vec::new(),
                // No entry has sent it.
                table: TableId::ALL,
                cookie: u64::MAX,
                reason: PacketInReason::Action,
            };
            let result = way.list(&[*action], &mut packet);
            events.extend(way.events);
            spent = way.spent;
            if let Err(Dropped) = result {
                break;
            }
        }
        Ok(events)
    }

    /// Returns the entries with their counters, sorted by table, then by number.
    #[must_use]
    pub fn entries(&self) -> &[Counted] {
        &self.state.entries
    }

    /// Returns the groups with their counters, by number.
    pub fn groups(&self) -> impl Iterator<Item = &CountedGroup> {
        self.state.groups.values()
    }

    /// Returns the meters with their counters, by number.
    pub fn meters(&self) -> impl Iterator<Item = (MeterId, &CountedMeter)> {
        self.state.meters.iter().map(|(&id, meter)| (id, meter))
    }

    /// Returns the ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, PortState)> {
        self.state.ports.iter().map(|(&port, &state)| (port, state))
    }

    /// Returns the configuration of a table, if it was set.
    #[must_use]
    pub fn config(&self, table: TableId) -> Option<TableConfig> {
        self.state.tables.get(&table).copied()
    }

    /// Returns the numbers of packets dropped at a limit.
    #[must_use]
    pub fn limit_counts(&self) -> LimitCounts {
        self.state.limits
    }

    /// Returns the counters of a table.
    #[must_use]
    pub fn table_count(&self, table: TableId) -> TableCount {
        let count = self.state.table_counts.get(&table);
        count.copied().unwrap_or_default()
    }
}

fn set_port(state: &mut State, port: PortNo, is: Option<PortState>) -> Result<(), ErrorCode> {
    if !(1..=PortNo::MAX.0).contains(&port.0) && port != PortNo::LOCAL {
        return Err(ErrorCode::BadPort);
    }
    match is {
        Some(is) => drop(state.ports.insert(port, is)),
        None => drop(state.ports.remove(&port)),
    }
    Ok(())
}

fn in_port(packet: &Packet) -> PortNo {
    let port = packet.get(Field::InPort).unwrap_or(0);
    PortNo(u32::try_from(port).expect("thirty-two bits"))
}

/// The processing of the packet ends.
struct Dropped;

/// Actions and copies that a packet has used so far.
#[derive(Clone, Copy, Default)]
struct Spent {
    actions: u64,
    copies: u64,
    /// True after a limit was reached: nothing more is done for the packet.
    is_over: bool,
}

/// The processing of one packet: its current table, and its outputs so far.
struct Way<'s> {
    state: &'s mut State,
    select_seed: u64,
    spent: Spent,
    now: Duration,
    events: Vec<Event>,
    in_port: PortNo,
    table: TableId,
    cookie: u64,
    reason: PacketInReason,
}

impl Way<'_> {
    fn tables(&mut self, packet: &mut Packet) -> Result<(), Dropped> {
        let mut set: Vec<Action> = Vec::new();
        loop {
            let counts = self.state.table_counts.entry(self.table).or_default();
            counts.lookups += 1;
            // The highest priority, then the lowest number.
            let table = self.table;
            let entries = self.state.entries.iter_mut();
            let in_table = entries.filter(|counted| counted.entry.table == table);
            let matching = in_table.filter(|counted| matches(&counted.entry.flow, packet));
            let best = matching
                .min_by_key(|counted| (u16::MAX - counted.entry.priority, counted.entry.id));
            let Some(winner) = best else {
                return Err(Dropped);
            };
            counts.matched += 1;
            add(&mut winner.count, packet.bytes.len());
            winner.last_match = Some(self.now);
            let entry = &winner.entry;
            let is_miss = entry.priority == 0 && values(&entry.flow).is_empty();
            self.cookie = entry.cookie;
            self.reason = match is_miss {
                true => PacketInReason::NoMatch,
                false => PacketInReason::Action,
            };
            let instructions = Arc::clone(&entry.instructions);
            if let Some(meter) = instructions.meter {
                self.meter(meter, packet)?;
            }
            self.list(&instructions.apply, packet)?;
            if instructions.clear {
                set.clear();
            }
            actions::write(&mut set, &instructions.write);
            if let Some((value, mask)) = instructions.metadata {
                packet.write_metadata(value, mask);
            }
            match instructions.goto_table {
                Some(next) => self.table = next,
                None => return self.list(&actions::carried_out(&set), packet),
            }
        }
    }

    fn meter(&mut self, id: MeterId, packet: &mut Packet) -> Result<(), Dropped> {
        let meter = self.state.meters.get_mut(&id).expect("entries go with it");
        let bytes = packet.bytes.len();
        add(&mut meter.count.all, bytes);
        let Some(number) = meter.running.pass(bytes, self.now) else {
            return Ok(());
        };
        add(&mut meter.count.bands[number], bytes);
        match meter.running.meter.bands[number].kind {
            BandKind::Drop => Err(Dropped),
            BandKind::DscpRemark(by) => {
                if let Some(dscp) = packet.get(Field::IpDscp)
                    && remarked(dscp, by) != dscp
                {
                    packet.set_field(Field::IpDscp, remarked(dscp, by));
                }
                Ok(())
            }
        }
    }

    /// Counts an action, or a bucket, which counts as an action.
    fn take_action(&mut self) -> Result<(), Dropped> {
        if self.spent.actions == MAX_ACTIONS {
            if !self.spent.is_over {
                self.state.limits.actions += 1;
            }
            self.spent.is_over = true;
            return Err(Dropped);
        }
        self.spent.actions += 1;
        Ok(())
    }

    /// Records an output.
    fn come_out(&mut self, event: Event) -> Result<(), Dropped> {
        if self.spent.copies == MAX_COPIES {
            if !self.spent.is_over {
                self.state.limits.copies += 1;
            }
            self.spent.is_over = true;
            return Err(Dropped);
        }
        self.spent.copies += 1;
        self.events.push(event);
        Ok(())
    }

    /// Executes actions, in order.
    fn list(&mut self, actions: &[Action], packet: &mut Packet) -> Result<(), Dropped> {
        for action in actions {
            self.take_action()?;
            let result = match *action {
                Action::Output { port, max_len } => {
                    self.output(port, max_len, packet)?;
                    Ok(())
                }
                Action::Group(group) => {
                    self.group(group, packet)?;
                    Ok(())
                }
                Action::SetQueue(queue) => {
                    packet.queue = Some(queue);
                    Ok(())
                }
                _ => change(action, packet),
            };
            if let Err(InvalidTtl) = result {
                self.controller(PacketInReason::InvalidTtl, u16::MAX, packet)?;
                return Err(Dropped);
            }
        }
        Ok(())
    }

    fn controller(
        &mut self,
        reason: PacketInReason,
        max_len: u16,
        packet: &Packet,
    ) -> Result<(), Dropped> {
        self.come_out(Event::Controller {
            reason,
            max_len,
            table: self.table,
            cookie: self.cookie,
            bytes: packet.bytes.clone(),
        })
    }

    /// §4.5, §5.12. Standard ports are all ports with a number, and `local`.
    fn output(&mut self, wanted: PortNo, max_len: u16, packet: &Packet) -> Result<(), Dropped> {
        if wanted == PortNo::CONTROLLER {
            return self.controller(self.reason, max_len, packet);
        }
        for (port, state) in self.state.ports.clone() {
            let is_own = port == self.in_port;
            let is_meant = match wanted {
                PortNo::IN_PORT => is_own,
                PortNo::ALL => !is_own,
                PortNo::FLOOD => !is_own && !state.no_flood,
                _ => !is_own && port == wanted,
            };
            if is_meant && state.is_up && !state.no_forward {
                self.come_out(Event::Sent {
                    port,
                    queue: packet.queue,
                    bytes: packet.bytes.clone(),
                })?;
            }
        }
        Ok(())
    }

    /// §5.6: buckets process copies of the packet. The limit of chains also limits the
    /// recursion.
    fn group(&mut self, id: GroupId, packet: &Packet) -> Result<(), Dropped> {
        let counted = self.state.groups.get_mut(&id).expect("it is there");
        add(&mut counted.count.all, packet.bytes.len());
        let group = Arc::clone(&counted.group);
        let bucket_numbers = 0..group.buckets.len();
        let live_groups = match group.kind {
            GroupType::All | GroupType::Indirect => BTreeSet::new(),
            GroupType::FastFailover | GroupType::Select => groups::live_groups(self.state),
        };
        let live = bucket_numbers
            .clone()
            .filter(|&number| groups::is_live(self.state, &live_groups, &group.buckets[number]));
        let chosen: Vec<usize> = match group.kind {
            GroupType::All | GroupType::Indirect => bucket_numbers.collect(),
            GroupType::FastFailover => live.take(1).collect(),
            GroupType::Select => {
                // Each live bucket as often as its weight.
                let shares: Vec<usize> = live
                    .flat_map(|number| vec![number; group.buckets[number].weight.into()])
                    .collect();
                let index = flow_hash(packet, self.select_seed).checked_rem(shares.len() as u64);
                index
                    .map(|index| shares[usize::try_from(index).expect("below their number")])
                    .into_iter()
                    .collect()
            }
        };
        for number in chosen {
            self.take_action()?;
            let counted = self.state.groups.get_mut(&id).expect("it is there");
            add(&mut counted.count.buckets[number], packet.bytes.len());
            let mut set = Vec::new();
            actions::write(&mut set, &group.buckets[number].actions);
            // A dropped copy does not end the packet, unless a limit ends both.
            let result = self.list(&actions::carried_out(&set), &mut packet.clone());
            if self.spent.is_over {
                return result;
            }
        }
        Ok(())
    }
}

fn change(action: &Action, packet: &mut Packet) -> Result<(), InvalidTtl> {
    match *action {
        Action::SetField(MatchField { field, value, .. }) => packet.set_field(field, value),
        Action::PushVlan(kind) => packet.push_vlan(kind),
        Action::PopVlan => packet.pop_vlan(),
        Action::PushMpls(kind) => packet.push_mpls(kind),
        Action::PopMpls(kind) => packet.pop_mpls(kind),
        Action::SetMplsTtl(ttl) => packet.set_mpls_ttl(ttl),
        Action::DecrementMplsTtl => packet.decrement_mpls_ttl()?,
        Action::SetTtl(ttl) => packet.set_ttl(ttl),
        Action::DecrementTtl => packet.decrement_ttl()?,
        Action::CopyTtlOut => packet.copy_ttl_out(),
        Action::CopyTtlIn => packet.copy_ttl_in(),
        Action::Output { .. } | Action::Group(_) | Action::SetQueue(_) => {}
    }
    Ok(())
}

/// OpenFlow leaves open how a select group chooses. This is the datapath's hash of a
/// packet's flow, over the fields that are listed here: sums and 128-bit products whose
/// halves are combined, with numbers that SplitMix64 derives from a seed.
fn flow_hash(packet: &Packet, seed: u64) -> u64 {
    let first = |fields: &[Field]| {
        fields
            .iter()
            .find_map(|&field| packet.get(field))
            .unwrap_or(0)
    };
    let parts = [
        first(&[Field::EthDst]),
        first(&[Field::EthSrc]),
        first(&[Field::EthType]),
        first(&[Field::IpProto]),
        first(&[Field::Ipv4Src, Field::Ipv6Src, Field::ArpSpa]),
        first(&[Field::Ipv4Dst, Field::Ipv6Dst, Field::ArpTpa]),
        first(&[
            Field::TcpSrc,
            Field::UdpSrc,
            Field::SctpSrc,
            Field::Icmpv4Type,
            Field::Icmpv6Type,
            Field::ArpOp,
        ]),
        first(&[
            Field::TcpDst,
            Field::UdpDst,
            Field::SctpDst,
            Field::Icmpv4Code,
            Field::Icmpv6Code,
        ]),
    ];
    let low = |wide: u128| u64::try_from(wide & u128::from(u64::MAX)).expect("sixty-four bits");
    let mut state = seed;
    let mut hash = splitmix(&mut state);
    let secret = u128::from(splitmix(&mut state) | 1);
    for part in parts {
        for half in [low(part), low(part >> 64)] {
            let product = u128::from(hash.wrapping_add(half)) * secret;
            hash = low(product) ^ low(product >> 64);
        }
    }
    hash
}
