//! Answers to multipart requests.

use std::collections::BTreeMap;
use std::time::Duration;

use classyard_datapath::flow::{FlowEntry, TableId};
use classyard_datapath::group::Group;
use classyard_datapath::meter::Meter;
use classyard_datapath::pipeline::Pipeline;
use classyard_datapath::{Action, GroupId, MeterId, PortNo};

use super::parts::Parts;
use super::ports::describe;
use super::session::{FlowDump, Waiting};
use super::shared::{PortCounts, Shared};
use super::turn::Turn;
use crate::fault::{Code, Fault};
use crate::flow::{AggregateStats, FlowRequest, FlowStats};
use crate::group::{BucketStats, GroupFeatures, GroupStats, Quad};
use crate::message::{Header, Message};
use crate::meter::{BandStats, MeterFeatures, MeterStats};
use crate::multipart::{Description, List, Multipart, Reply, Request};
use crate::port::{PortStats, QueueRequest};
use crate::table::TableStats;
use crate::wire::Wire;

/// Entries that one step of statistics looks at.
pub(super) const ENTRIES_PER_STEP: usize = 4096;

impl Turn<'_, '_> {
    /// Answers a multipart request.
    pub(super) fn answer(&mut self, xid: u32, request: Multipart<Request>) -> Result<(), Fault> {
        if request.is_more {
            let message = "a request in several parts; this switch takes one part";
            return Err(Fault::new(Code::MULTIPART_OVERFLOW, message));
        }
        match request.body {
            Request::Description(_) => {
                let description = self.description();
                self.reply(xid, Reply::Description(Box::new(description)));
            }
            Request::Flow(request) => {
                check_table(request.table)?;
                let dump = FlowDump {
                    xid,
                    request,
                    last: None,
                };
                self.session.waiting = Some(Waiting::Flows(Box::new(dump)));
            }
            Request::Aggregate(request) => {
                check_table(request.table)?;
                let stats = self.aggregate(&request);
                self.reply(xid, Reply::Aggregate(stats));
            }
            Request::Table(_) => self.tables(xid),
            Request::Port(request) => self.port_stats(xid, request.port)?,
            Request::Queue(request) => self.queue_stats(xid, &request)?,
            Request::Group(request) => self.group_stats(xid, request.group),
            Request::GroupDescription(_) => {
                let groups = self.around.pipeline.groups();
                self.items(
                    xid,
                    Reply::GroupDescription(List(Vec::new())),
                    groups.iter().cloned().collect(),
                );
            }
            Request::GroupFeatures(_) => {
                let features = group_features(self.around.pipeline);
                self.reply(xid, Reply::GroupFeatures(features));
            }
            Request::Meter(request) => {
                let meters = self.meters(request.meter)?;
                let stats = self.meter_stats(&meters);
                self.items(xid, Reply::Meter(List(Vec::new())), stats);
            }
            Request::MeterConfig(request) => {
                let meters = self.meters(request.meter)?;
                self.items(xid, Reply::MeterConfig(List(Vec::new())), meters);
            }
            Request::MeterFeatures(_) => self.reply(xid, Reply::MeterFeatures(METER_FEATURES)),
            Request::TableFeatures(features) if features.0.is_empty() => self.table_features(xid),
            Request::TableFeatures(_) => {
                let message = "the features of tables cannot be set";
                return Err(Fault::new(Code::TABLE_FEATURE_PERMISSION, message));
            }
            Request::PortDescription(_) => {
                let numbers: Vec<PortNo> = self.port_numbers();
                let ports = numbers.iter();
                let ports = ports.filter_map(|&port| describe(self.shared, self.around, port));
                let ports = ports.collect();
                self.items(xid, Reply::PortDescription(List(Vec::new())), ports);
            }
            Request::FlowMonitor(requests) => self.monitor(xid, &requests.0)?,
            Request::Experimenter(unknown) => {
                let message = format!("the unknown experimenter {:#010x}", unknown.experimenter);
                return Err(Fault::new(Code::BAD_EXPERIMENTER, message));
            }
        }
        Ok(())
    }

    fn reply(&mut self, xid: u32, body: Reply) {
        let reply = Message::MultipartReply(Multipart {
            is_more: false,
            body,
        });
        self.session.send(xid, &reply);
    }

    /// Sends items, split into messages. `empty` is the reply without items.
    #[allow(clippy::needless_pass_by_value)] // the items are made for this call
    fn items<T: Wire>(&mut self, xid: u32, empty: Reply, items: Vec<T>) {
        let mut parts = Parts::new(xid, empty);
        for item in &items {
            let is_sent = parts.push(item);
            self.session.counts.too_long += u64::from(!is_sent);
        }
        self.session.send_bytes(&parts.finish(false));
    }

    fn description(&self) -> Description {
        let identity = &self.shared.identity;
        Description {
            manufacturer: filled(&identity.manufacturer),
            hardware: filled(&identity.hardware),
            software: filled(&identity.software),
            serial_number: filled(&identity.serial_number),
            datapath: filled(&identity.name),
        }
    }

    /// Makes the next parts of statistics of entries. Returns what is left.
    pub(super) fn send_flows(&mut self, mut dump: FlowDump) -> Option<Box<FlowDump>> {
        let pipeline = &*self.around.pipeline;
        let mut parts = Parts::new(dump.xid, Reply::Flow(List(Vec::new())));
        let mut entries_left = ENTRIES_PER_STEP;
        let mut entries = pipeline.flows().after(dump.last);
        let is_more = loop {
            let Some(entry) = entries.next() else {
                break false;
            };
            if entries_left == 0 {
                break true;
            }
            entries_left -= 1;
            dump.last = Some((entry.table, entry.id));
            if is_meant(&dump.request, entry) {
                let is_sent = parts.push(&flow_stats(pipeline, entry, self.around.now));
                self.session.counts.too_long += u64::from(!is_sent);
            }
        };
        let bytes = parts.finish(is_more);
        self.session.send_bytes(&bytes);
        is_more.then(|| Box::new(dump))
    }

    fn aggregate(&self, request: &FlowRequest) -> AggregateStats {
        let pipeline = &*self.around.pipeline;
        let mut stats = AggregateStats {
            packets: 0,
            bytes: 0,
            flows: 0,
        };
        let entries = pipeline.flows().iter();
        for entry in entries.filter(|entry| is_meant(request, entry)) {
            let count = pipeline.flow_count(entry.id);
            stats.packets += count.packets;
            stats.bytes += count.bytes;
            stats.flows += 1;
        }
        stats
    }

    fn tables(&mut self, xid: u32) {
        let pipeline = &*self.around.pipeline;
        let stats = (0..=TableId::LAST.0).map(|number| {
            let table = TableId(number);
            let count = pipeline.table_count(table);
            TableStats {
                table,
                active: saturated(pipeline.flows().table_len(table)),
                lookups: count.lookups,
                matched: count.matched,
            }
        });
        let stats = stats.collect();
        self.items(xid, Reply::Table(List(Vec::new())), stats);
    }

    fn port_numbers(&self) -> Vec<PortNo> {
        let ports = self.around.pipeline.ports().iter();
        ports.map(|(port, _)| port).collect()
    }

    fn port_stats(&mut self, xid: u32, wanted: PortNo) -> Result<(), Fault> {
        let mut ports = self.port_numbers();
        if wanted != PortNo::ANY {
            ports.retain(|port| *port == wanted);
            if ports.is_empty() {
                let message = format!("there is no port {wanted}");
                return Err(Fault::new(Code::BAD_PORT, message));
            }
        }
        let stats = ports.iter().map(|&port| {
            let known = self.shared.ports.get(&port);
            let details = known.map(|known| known.details);
            let added = details.map_or(Duration::ZERO, |details| details.added);
            let age = self.around.now.saturating_sub(added);
            port_stats(port, (self.around.port_counts)(port), age)
        });
        let stats = stats.collect();
        self.items(xid, Reply::Port(List(Vec::new())), stats);
        Ok(())
    }

    /// Answers with an empty list of queues.
    fn queue_stats(&mut self, xid: u32, request: &QueueRequest) -> Result<(), Fault> {
        let is_known = self.around.pipeline.ports().get(request.port).is_some();
        if !is_known && request.port != PortNo::ANY {
            let message = format!("there is no port {}", request.port);
            return Err(Fault::new(Code::QUEUE_BAD_PORT, message));
        }
        if request.queue != u32::MAX {
            let message = format!("there is no queue {}", request.queue);
            return Err(Fault::new(Code::QUEUE_BAD_QUEUE, message));
        }
        self.reply(xid, Reply::Queue(List(Vec::new())));
        Ok(())
    }

    fn group_stats(&mut self, xid: u32, wanted: GroupId) {
        let pipeline = &*self.around.pipeline;
        let users = group_users(pipeline);
        let groups = pipeline.groups().iter();
        let groups = groups.filter(|group| wanted == GroupId::ALL || group.id == wanted);
        let stats = groups.map(|group| {
            let count = pipeline.group_count(group.id);
            let (seconds, nanoseconds) = self.age(self.shared.groups_added.get(&group.id));
            GroupStats {
                group: group.id,
                references: users.get(&group.id).copied().unwrap_or(0),
                packets: count.all.packets,
                bytes: count.all.bytes,
                seconds,
                nanoseconds,
                buckets: count
                    .buckets
                    .iter()
                    .map(|bucket| BucketStats {
                        packets: bucket.packets,
                        bytes: bucket.bytes,
                    })
                    .collect(),
            }
        });
        let stats = stats.collect();
        self.items(xid, Reply::Group(List(Vec::new())), stats);
    }

    /// Returns one meter or all.
    fn meters(&self, wanted: MeterId) -> Result<Vec<Meter>, Fault> {
        let meters = self.around.pipeline.meters();
        if wanted == MeterId::ALL {
            return Ok(meters.iter().cloned().collect());
        }
        match meters.get(wanted) {
            Some(meter) => Ok(vec![meter.clone()]),
            None => {
                let message = format!("there is no meter {wanted}");
                Err(Fault::new(Code { kind: 12, code: 3 }, message))
            }
        }
    }

    fn meter_stats(&self, meters: &[Meter]) -> Vec<MeterStats> {
        let pipeline = &*self.around.pipeline;
        let mut users: BTreeMap<MeterId, u32> = BTreeMap::new();
        let used = pipeline.flows().iter();
        for meter in used.filter_map(|entry| entry.instructions.meter) {
            *users.entry(meter).or_default() += 1;
        }
        let stats = meters.iter().map(|meter| {
            let count = pipeline.meter_count(meter.id);
            let (seconds, nanoseconds) = self.age(self.shared.meters_added.get(&meter.id));
            MeterStats {
                meter: meter.id,
                flows: users.get(&meter.id).copied().unwrap_or(0),
                packets: count.all.packets,
                bytes: count.all.bytes,
                seconds,
                nanoseconds,
                bands: count
                    .bands
                    .iter()
                    .map(|band| BandStats {
                        packets: band.packets,
                        bytes: band.bytes,
                    })
                    .collect(),
            }
        });
        stats.collect()
    }

    /// Returns the seconds and nanoseconds since a time.
    fn age(&self, added: Option<&Duration>) -> (u32, u32) {
        let age = added.map_or(Duration::ZERO, |added| {
            self.around.now.saturating_sub(*added)
        });
        parts_of(age)
    }

    fn table_features(&mut self, xid: u32) {
        let Shared { table_features, .. } = &mut *self.shared;
        table_features.refresh(self.around.pipeline);
        for part in &table_features.parts {
            let mut part = part.clone();
            part[4..Header::BYTES].copy_from_slice(&xid.to_be_bytes());
            self.session.send_bytes(&part);
        }
    }
}

/// The supported meters: both types of bands, all flags. The number of meters and of bands
/// is limited by their numbers and by the length of messages.
const METER_FEATURES: MeterFeatures = MeterFeatures {
    max_meters: MeterId::MAX.0,
    band_types: 1 << 1 | 1 << 2,
    capabilities: 0b1111,
    max_bands: u8::MAX,
    max_color: 0,
};

/// All types of groups; weights, liveness, chains, and checks of chains.
fn group_features(pipeline: &Pipeline) -> GroupFeatures {
    let features = pipeline.features(TableId(0));
    let types = features.map_or_else(Vec::new, |features| features.actions);
    let actions = types
        .iter()
        .filter(|kind| **kind < 32)
        .fold(0, |bits, kind| bits | 1_u32 << kind);
    GroupFeatures {
        types: 0b1111,
        capabilities: 0b1111,
        max_groups: Quad([GroupId::MAX.0; 4]),
        actions: Quad([actions; 4]),
    }
}

pub(super) fn check_table(table: TableId) -> Result<(), Fault> {
    match table.is_table() || table == TableId::ALL {
        true => Ok(()),
        false => {
            let message = format!("there is no table {table}");
            Err(Fault::new(Code::BAD_TABLE_ID, message))
        }
    }
}

/// True if a request is about an entry.
fn is_meant(request: &FlowRequest, entry: &FlowEntry) -> bool {
    let is_in = request.table == TableId::ALL || request.table == entry.table;
    let sends = |port| entry.instructions.sends_to(port);
    let uses = |group| entry.instructions.uses_group(group);
    is_in
        && request.cookie_mask & (request.cookie ^ entry.cookie) == 0
        && request.out_port().is_none_or(sends)
        && request.out_group().is_none_or(uses)
        && request.flow.includes(&entry.flow)
}

fn flow_stats(pipeline: &Pipeline, entry: &FlowEntry, now: Duration) -> FlowStats {
    let count = pipeline.flow_count(entry.id);
    let (seconds, nanoseconds) = parts_of(now.saturating_sub(entry.added));
    FlowStats {
        table: entry.table,
        seconds,
        nanoseconds,
        priority: entry.priority,
        idle_timeout: entry.idle_timeout,
        hard_timeout: entry.hard_timeout,
        flags: entry.flags,
        cookie: entry.cookie,
        packets: count.packets,
        bytes: count.bytes,
        flow: std::sync::Arc::clone(&entry.flow),
        instructions: std::sync::Arc::clone(&entry.instructions),
    }
}

fn port_stats(port: PortNo, counts: PortCounts, age: Duration) -> PortStats {
    // OpenFlow's value for a counter that a port does not have.
    let pair_of = |count: Option<(u64, u64)>| count.unwrap_or((u64::MAX, u64::MAX));
    let (received, sent) = (pair_of(counts.received), pair_of(counts.sent));
    let (dropped, errors) = (pair_of(counts.dropped), pair_of(counts.errors));
    let (seconds, nanoseconds) = parts_of(age);
    PortStats {
        port,
        received_packets: received.0,
        sent_packets: sent.0,
        received_bytes: received.1,
        sent_bytes: sent.1,
        receive_dropped: dropped.0,
        send_dropped: dropped.1,
        receive_errors: errors.0,
        send_errors: errors.1,
        frame_errors: u64::MAX,
        overrun_errors: u64::MAX,
        crc_errors: u64::MAX,
        collisions: u64::MAX,
        seconds,
        nanoseconds,
    }
}

/// Returns the number of entries and groups that use each group.
fn group_users(pipeline: &Pipeline) -> BTreeMap<GroupId, u32> {
    let entries = pipeline.flows().iter();
    let of_entries = entries.map(|entry| {
        let instructions = &entry.instructions;
        groups_in(instructions.apply.iter().chain(&instructions.write))
    });
    let of_groups = pipeline.groups().iter().map(|group: &Group| {
        let actions = group.buckets.iter().flat_map(|bucket| &bucket.actions);
        groups_in(actions)
    });
    let mut users: BTreeMap<GroupId, u32> = BTreeMap::new();
    for group in of_entries.chain(of_groups).flatten() {
        *users.entry(group).or_default() += 1;
    }
    users
}

/// Returns the groups that actions send packets to, each once.
fn groups_in<'a>(actions: impl Iterator<Item = &'a Action>) -> Vec<GroupId> {
    let mut groups: Vec<GroupId> = actions
        .filter_map(|action| match action {
            Action::Group(group) => Some(*group),
            _ => None,
        })
        .collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

fn parts_of(age: Duration) -> (u32, u32) {
    (
        u32::try_from(age.as_secs()).unwrap_or(u32::MAX),
        age.subsec_nanos(),
    )
}

fn saturated(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the first `N - 1` bytes of a text, filled with zeros.
fn filled<const N: usize>(text: &str) -> [u8; N] {
    let mut filled = [0; N];
    let bytes = &text.as_bytes()[..text.len().min(N - 1)];
    filled[..bytes.len()].copy_from_slice(bytes);
    filled
}
