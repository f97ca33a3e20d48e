//! Random messages.

use std::sync::Arc;

use classyard_conformance::random::Dice;
use classyard_datapath::flow::{Command, FlowFlags, FlowMod, Instructions, RemovalReason, TableId};
use classyard_datapath::group::{Bucket, Group, GroupCommand, GroupMod, GroupType};
use classyard_datapath::meter::{
    Band, BandKind, Meter, MeterCommand, MeterFlags, MeterMod, MeterUnit,
};
use classyard_datapath::pipeline::PacketInReason;
use classyard_datapath::{Action, Field, FlowMatch, GroupId, MatchField, MeterId, PortNo};
use classyard_openflow::Message;
use classyard_openflow::bundle::{BundleAdd, BundleControl, BundleStep};
use classyard_openflow::flow::{AggregateStats, FlowRemoved, FlowRequest, FlowStats};
use classyard_openflow::group::{BucketStats, GroupFeatures, GroupStats, Quad};
use classyard_openflow::meter::{BandStats, MeterFeatures, MeterRequest, MeterStats};
use classyard_openflow::monitor::{FlowUpdate, MonitorCancel, MonitorRequest, MonitoredFlow};
use classyard_openflow::multipart::{
    Description, GroupRequest, List, Multipart, Nothing, Reply, Request,
};
use classyard_openflow::oxm::OxmHeader;
use classyard_openflow::packet::{PacketIn, PacketOut};
use classyard_openflow::port::{
    Port, PortMod, PortRequest, PortStats, PortStatus, QueueConfig, QueueConfigRequest,
    QueueRequest, QueueStats,
};
use classyard_openflow::switch::{
    AsyncConfig, ErrorMessage, Experimenter, Hello, Role, RoleMasks, RoleMessage, SwitchConfig,
    SwitchFeatures,
};
use classyard_openflow::table::{
    TableFeaturesItem, TableModMessage, TableProperty, TableStats, Written,
};

/// A source of random parts of messages.
struct Source<'d>(&'d mut dyn Dice);

impl Source<'_> {
    fn one_in(&mut self, count: usize) -> bool {
        self.0.below(count) == 0
    }

    fn long(&mut self) -> u64 {
        self.0.word()
    }

    fn word(&mut self) -> u32 {
        u32::try_from(self.long() >> 32).expect("32 bits")
    }

    fn short(&mut self) -> u16 {
        u16::try_from(self.long() >> 48).expect("16 bits")
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.0.below(256)).expect("a byte")
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.0.below(70)).map(|_| self.byte()).collect()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.0.below(4)).map(|_| one(self)).collect()
    }

    fn port(&mut self) -> PortNo {
        PortNo(self.word())
    }

    /// A match that has no prerequisites beyond those it has itself.
    fn flow(&mut self) -> Arc<FlowMatch> {
        let masked = |field: Field, value: u128, mask: u128| MatchField {
            field,
            value: value & mask & field.max_value(),
            mask: mask & field.max_value(),
        };
        let mut values = Vec::new();
        let mut add = |value: MatchField| values.push(value);
        if self.one_in(2) {
            add(masked(
                Field::Metadata,
                self.long().into(),
                self.long().into(),
            ));
        }
        if self.one_in(3) {
            add(masked(
                Field::EthDst,
                self.long().into(),
                self.long().into(),
            ));
        }
        if self.one_in(3) {
            add(MatchField::exact(
                Field::VlanVid,
                0x1000 | u128::from(self.short() & 0xfff),
            ));
            add(MatchField::exact(
                Field::VlanPcp,
                u128::from(self.byte() & 7),
            ));
        }
        if self.one_in(3) {
            add(masked(Field::Reg7, self.long().into(), self.long().into()));
        }
        match self.0.below(3) {
            0 => {
                add(MatchField::exact(Field::EthType, 0x86dd));
                let address = u128::from(self.long()) << 64 | u128::from(self.long());
                add(masked(
                    Field::Ipv6Src,
                    address,
                    u128::MAX << self.0.below(128),
                ));
                add(masked(
                    Field::Ipv6Exthdr,
                    self.short().into(),
                    self.short().into(),
                ));
            }
            1 => {
                add(MatchField::exact(Field::EthType, 0x0800));
                add(MatchField::exact(Field::IpProto, 6));
                add(masked(
                    Field::TcpDst,
                    self.short().into(),
                    self.short().into(),
                ));
            }
            _ => {}
        }
        Arc::new(FlowMatch::new(values).expect("a right match"))
    }

    fn action(&mut self) -> Action {
        match self.0.below(14) {
            0 => Action::Output {
                port: self.port(),
                max_len: self.short(),
            },
            1 => Action::Group(GroupId(self.word())),
            2 => Action::SetQueue(self.word()),
            3 => {
                let settable: Vec<Field> = Field::all().collect();
                let field = settable[self.0.below(settable.len())];
                let value = u128::from(self.long()) << 64 | u128::from(self.long());
                Action::SetField(MatchField::exact(field, value & field.max_value()))
            }
            4 => Action::PushVlan(self.short()),
            5 => Action::PopVlan,
            6 => Action::PushMpls(self.short()),
            7 => Action::PopMpls(self.short()),
            8 => Action::SetMplsTtl(self.byte()),
            9 => Action::DecrementMplsTtl,
            10 => Action::SetTtl(self.byte()),
            11 => Action::DecrementTtl,
            12 => Action::CopyTtlOut,
            _ => Action::CopyTtlIn,
        }
    }

    fn instructions(&mut self) -> Arc<Instructions> {
        let meter = self.one_in(3).then(|| MeterId(self.word()));
        let metadata = self.one_in(3).then(|| (self.long(), self.long()));
        let goto_table = self.one_in(3).then(|| TableId(self.byte()));
        Arc::new(Instructions {
            meter,
            apply: self.list(Self::action),
            clear: self.one_in(2),
            write: self.list(Self::action),
            metadata,
            goto_table,
        })
    }

    fn flags(&mut self) -> FlowFlags {
        FlowFlags {
            send_removed: self.one_in(2),
            check_overlap: self.one_in(2),
            reset_counts: self.one_in(2),
            no_packet_counts: self.one_in(2),
            no_byte_counts: self.one_in(2),
        }
    }

    fn flow_mod(&mut self) -> FlowMod {
        let strict = self.one_in(2);
        let command = match self.0.below(3) {
            0 => Command::Add,
            1 => Command::Modify { strict },
            _ => Command::Delete { strict },
        };
        // The largest numbers stand for no restriction.
        let out_port = self.one_in(2).then(|| PortNo(self.word() >> 1));
        let out_group = self.one_in(2).then(|| GroupId(self.word() >> 1));
        FlowMod {
            command,
            table: TableId(self.byte()),
            priority: self.short(),
            flow: self.flow(),
            cookie: self.long(),
            cookie_mask: self.long(),
            idle_timeout: self.short(),
            hard_timeout: self.short(),
            importance: 0,
            flags: self.flags(),
            out_port,
            out_group,
            instructions: self.instructions(),
        }
    }

    fn bucket(&mut self) -> Bucket {
        let watch_port = self.one_in(2).then(|| PortNo(self.word() >> 1));
        let watch_group = self.one_in(2).then(|| GroupId(self.word() >> 1));
        Bucket {
            weight: self.short(),
            watch_port,
            watch_group,
            actions: self.list(Self::action),
        }
    }

    fn group(&mut self) -> Group {
        let kinds = [
            GroupType::All,
            GroupType::Select,
            GroupType::Indirect,
            GroupType::FastFailover,
        ];
        Group {
            id: GroupId(self.word()),
            kind: kinds[self.0.below(4)],
            buckets: self.list(Self::bucket),
        }
    }

    fn meter(&mut self) -> Meter {
        let units = [MeterUnit::Kilobits, MeterUnit::Packets];
        Meter {
            id: MeterId(self.word()),
            unit: units[self.0.below(2)],
            flags: MeterFlags {
                burst: true,
                stats: self.one_in(2),
            },
            bands: self.list(|source| Band {
                kind: match source.one_in(2) {
                    true => BandKind::Drop,
                    false => BandKind::DscpRemark(source.byte()),
                },
                rate: source.word(),
                burst: source.word(),
            }),
        }
    }

    fn described_port(&mut self) -> Port {
        Port {
            number: self.port(),
            address: self.array(),
            name: self.array(),
            config: self.word(),
            state: self.word(),
            current: self.word(),
            advertised: self.word(),
            supported: self.word(),
            peer: self.word(),
            current_speed: self.word(),
            max_speed: self.word(),
        }
    }

    fn experimenter(&mut self) -> Experimenter {
        Experimenter {
            experimenter: 0x0000_2320,
            kind: self.word(),
            data: self.bytes(),
        }
    }

    fn masks(&mut self) -> RoleMasks {
        RoleMasks {
            primary: self.word(),
            secondary: self.word(),
        }
    }

    fn async_config(&mut self) -> AsyncConfig {
        AsyncConfig {
            packet_in: self.masks(),
            port_status: self.masks(),
            flow_removed: self.masks(),
        }
    }

    fn role(&mut self) -> RoleMessage {
        let roles = [Role::NoChange, Role::Equal, Role::Primary, Role::Secondary];
        RoleMessage {
            role: roles[self.0.below(4)],
            generation: self.long(),
        }
    }

    fn config(&mut self) -> SwitchConfig {
        SwitchConfig {
            flags: self.short(),
            miss_send_len: self.short(),
        }
    }

    fn flow_request(&mut self) -> FlowRequest {
        FlowRequest {
            table: TableId(self.byte()),
            out_port: self.port(),
            out_group: GroupId(self.word()),
            cookie: self.long(),
            cookie_mask: self.long(),
            flow: self.flow(),
        }
    }

    fn headers(&mut self) -> Vec<OxmHeader> {
        let fields: Vec<Field> = Field::all().collect();
        self.list(|source| {
            let field = fields[source.0.below(fields.len())];
            OxmHeader::new(field, source.one_in(2))
        })
    }

    fn property(&mut self) -> TableProperty {
        let (miss, types) = (self.one_in(2), self.list(Self::short));
        let written = [Written::Write, Written::Apply][self.0.below(2)];
        match self.0.below(6) {
            0 => TableProperty::Instructions { miss, types },
            1 => TableProperty::NextTables {
                miss,
                tables: self.list(|source| TableId(source.byte())),
            },
            2 => TableProperty::Actions {
                written,
                miss,
                types,
            },
            3 => TableProperty::Match(self.headers()),
            4 => TableProperty::Wildcards(self.headers()),
            _ => TableProperty::SetFields {
                written,
                miss,
                fields: self.headers(),
            },
        }
    }

    fn table_features(&mut self) -> TableFeaturesItem {
        TableFeaturesItem {
            table: TableId(self.byte()),
            name: self.array(),
            metadata_match: self.long(),
            metadata_write: self.long(),
            config: self.word(),
            max_entries: self.word(),
            properties: self.list(Self::property),
        }
    }

    fn request(&mut self) -> Request {
        let port = PortRequest { port: self.port() };
        let meter = MeterRequest {
            meter: MeterId(self.word()),
        };
        match self.0.below(16) {
            0 => Request::Description(Nothing),
            1 => Request::Flow(self.flow_request()),
            2 => Request::Aggregate(self.flow_request()),
            3 => Request::Table(Nothing),
            4 => Request::Port(port),
            5 => Request::Queue(QueueRequest {
                port: self.port(),
                queue: self.word(),
            }),
            6 => Request::Group(GroupRequest {
                group: GroupId(self.word()),
            }),
            7 => Request::GroupDescription(Nothing),
            8 => Request::GroupFeatures(Nothing),
            9 => Request::Meter(meter),
            10 => Request::MeterConfig(meter),
            11 => Request::MeterFeatures(Nothing),
            12 => Request::TableFeatures(List(self.list(Self::table_features))),
            13 => Request::PortDescription(Nothing),
            14 => Request::FlowMonitor(List(self.list(|source| MonitorRequest {
                monitor: source.word(),
                flags: source.short(),
                out_port: source.port(),
                table: TableId(source.byte()),
                flow: source.flow(),
            }))),
            _ => Request::Experimenter(self.experimenter()),
        }
    }

    fn reply(&mut self) -> Reply {
        match self.0.below(16) {
            0 => Reply::Description(Box::new(Description {
                manufacturer: self.array(),
                hardware: self.array(),
                software: self.array(),
                serial_number: self.array(),
                datapath: self.array(),
            })),
            1 => Reply::Flow(List(self.list(Self::flow_stats))),
            2 => Reply::Aggregate(AggregateStats {
                packets: self.long(),
                bytes: self.long(),
                flows: self.word(),
            }),
            3 => Reply::Table(List(self.list(|source| TableStats {
                table: TableId(source.byte()),
                active: source.word(),
                lookups: source.long(),
                matched: source.long(),
            }))),
            4 => Reply::Port(List(self.list(Self::port_stats))),
            5 => Reply::Queue(List(self.list(Self::queue_stats))),
            6 => Reply::Group(List(self.list(Self::group_stats))),
            7 => Reply::GroupDescription(List(self.list(Self::group))),
            8 => Reply::GroupFeatures(GroupFeatures {
                types: self.word(),
                capabilities: self.word(),
                max_groups: Quad(std::array::from_fn(|_| self.word())),
                actions: Quad(std::array::from_fn(|_| self.word())),
            }),
            9 => Reply::Meter(List(self.list(Self::meter_stats))),
            10 => Reply::MeterConfig(List(self.list(Self::meter))),
            11 => Reply::MeterFeatures(MeterFeatures {
                max_meters: self.word(),
                band_types: self.word(),
                capabilities: self.word(),
                max_bands: self.byte(),
                max_color: self.byte(),
            }),
            12 => Reply::TableFeatures(List(self.list(Self::table_features))),
            13 => Reply::PortDescription(List(self.list(Self::described_port))),
            14 => Reply::FlowMonitor(List(self.list(Self::flow_update))),
            _ => Reply::Experimenter(self.experimenter()),
        }
    }

    fn flow_stats(&mut self) -> FlowStats {
        FlowStats {
            table: TableId(self.byte()),
            seconds: self.word(),
            nanoseconds: self.word(),
            priority: self.short(),
            idle_timeout: self.short(),
            hard_timeout: self.short(),
            flags: self.flags(),
            cookie: self.long(),
            packets: self.long(),
            bytes: self.long(),
            flow: self.flow(),
            instructions: self.instructions(),
        }
    }

    fn port_stats(&mut self) -> PortStats {
        PortStats {
            port: self.port(),
            received_packets: self.long(),
            sent_packets: self.long(),
            received_bytes: self.long(),
            sent_bytes: self.long(),
            receive_dropped: self.long(),
            send_dropped: self.long(),
            receive_errors: self.long(),
            send_errors: self.long(),
            frame_errors: self.long(),
            overrun_errors: self.long(),
            crc_errors: self.long(),
            collisions: self.long(),
            seconds: self.word(),
            nanoseconds: self.word(),
        }
    }

    fn queue_stats(&mut self) -> QueueStats {
        QueueStats {
            port: self.port(),
            queue: self.word(),
            bytes: self.long(),
            packets: self.long(),
            errors: self.long(),
            seconds: self.word(),
            nanoseconds: self.word(),
        }
    }

    fn group_stats(&mut self) -> GroupStats {
        GroupStats {
            group: GroupId(self.word()),
            references: self.word(),
            packets: self.long(),
            bytes: self.long(),
            seconds: self.word(),
            nanoseconds: self.word(),
            buckets: self.list(|source| BucketStats {
                packets: source.long(),
                bytes: source.long(),
            }),
        }
    }

    fn meter_stats(&mut self) -> MeterStats {
        MeterStats {
            meter: MeterId(self.word()),
            flows: self.word(),
            packets: self.long(),
            bytes: self.long(),
            seconds: self.word(),
            nanoseconds: self.word(),
            bands: self.list(|source| BandStats {
                packets: source.long(),
                bytes: source.long(),
            }),
        }
    }

    fn reason(&mut self) -> RemovalReason {
        let reasons = [
            RemovalReason::IdleTimeout,
            RemovalReason::HardTimeout,
            RemovalReason::Delete,
            RemovalReason::GroupDelete,
            RemovalReason::MeterDelete,
        ];
        reasons[self.0.below(5)]
    }

    fn flow_update(&mut self) -> FlowUpdate {
        let entry = MonitoredFlow {
            table: TableId(self.byte()),
            priority: self.short(),
            idle_timeout: self.short(),
            hard_timeout: self.short(),
            cookie: self.long(),
            flow: self.flow(),
            instructions: self.instructions(),
        };
        match self.0.below(4) {
            0 => FlowUpdate::Added(entry),
            1 => FlowUpdate::Deleted(entry, self.reason()),
            2 => FlowUpdate::Modified(entry),
            _ => FlowUpdate::Abbreviated(self.word()),
        }
    }

    fn flow_removed(&mut self) -> FlowRemoved {
        FlowRemoved {
            cookie: self.long(),
            priority: self.short(),
            reason: self.reason(),
            table: TableId(self.byte()),
            seconds: self.word(),
            nanoseconds: self.word(),
            idle_timeout: self.short(),
            hard_timeout: self.short(),
            packets: self.long(),
            bytes: self.long(),
            flow: self.flow(),
        }
    }

    fn packet_in(&mut self) -> PacketIn {
        let reasons = [
            PacketInReason::NoMatch,
            PacketInReason::Action,
            PacketInReason::InvalidTtl,
        ];
        let in_port = MatchField::exact(Field::InPort, self.word().into());
        PacketIn {
            buffer: PacketIn::NO_BUFFER,
            total_bytes: self.short(),
            reason: reasons[self.0.below(3)],
            table: TableId(self.byte()),
            cookie: self.long(),
            context: Arc::new(FlowMatch::new([in_port]).expect("a right match")),
            data: self.bytes(),
        }
    }

    fn controller_message(&mut self, kind: usize) -> Message {
        let steps = [
            BundleStep::OpenRequest,
            BundleStep::OpenReply,
            BundleStep::CloseRequest,
            BundleStep::CloseReply,
            BundleStep::CommitRequest,
            BundleStep::CommitReply,
            BundleStep::DiscardRequest,
            BundleStep::DiscardReply,
        ];
        match kind {
            24 => Message::RoleRequest(self.role()),
            25 => Message::RoleReply(self.role()),
            26 => Message::GetAsyncRequest(Nothing),
            27 => Message::GetAsyncReply(self.async_config()),
            28 => Message::SetAsync(self.async_config()),
            29 => Message::MeterMod(MeterMod {
                command: [
                    MeterCommand::Add,
                    MeterCommand::Modify,
                    MeterCommand::Delete,
                ][self.0.below(3)],
                meter: self.meter(),
            }),
            30 => Message::BundleControl(BundleControl {
                bundle: self.word(),
                step: steps[self.0.below(8)],
                flags: self.short(),
                properties: self.bytes(),
            }),
            32 => Message::MonitorCancel(MonitorCancel {
                monitor: self.word(),
            }),
            33 => Message::MonitorPaused(Nothing),
            34 => Message::MonitorResumed(Nothing),
            _ => Message::BundleAdd(BundleAdd {
                bundle: self.word(),
                flags: self.short(),
                message: Message::FlowMod(self.flow_mod()).to_bytes(1),
            }),
        }
    }
}

/// Returns a random message of a type, 0 to 34.
pub(crate) fn message(dice: &mut dyn Dice, kind: usize) -> Message {
    let mut source = Source(dice);
    let is_more = source.one_in(3);
    match kind {
        0 => Message::Hello(Hello {
            versions: source.one_in(2).then(|| source.list(Source::word)),
        }),
        1 => Message::Error(ErrorMessage {
            kind: source.short(),
            code: source.short(),
            data: source.bytes(),
        }),
        2 => Message::EchoRequest(source.bytes()),
        3 => Message::EchoReply(source.bytes()),
        4 => Message::Experimenter(source.experimenter()),
        5 => Message::FeaturesRequest(Nothing),
        6 => Message::FeaturesReply(SwitchFeatures {
            datapath_id: source.long(),
            buffers: source.word(),
            tables: source.byte(),
            auxiliary_id: source.byte(),
            capabilities: source.word(),
            reserved: source.word(),
        }),
        7 => Message::GetConfigRequest(Nothing),
        8 => Message::GetConfigReply(source.config()),
        9 => Message::SetConfig(source.config()),
        10 => Message::PacketIn(source.packet_in()),
        11 => Message::FlowRemoved(source.flow_removed()),
        12 => Message::PortStatus(PortStatus {
            reason: source.byte(),
            port: source.described_port(),
        }),
        13 => Message::PacketOut(PacketOut {
            in_port: source.port(),
            actions: source.list(Source::action),
            data: source.bytes(),
        }),
        14 => Message::FlowMod(source.flow_mod()),
        15 => Message::GroupMod(GroupMod {
            command: [
                GroupCommand::Add,
                GroupCommand::Modify,
                GroupCommand::Delete,
            ][source.0.below(3)],
            group: source.group(),
        }),
        16 => Message::PortMod(PortMod {
            number: source.port(),
            address: source.array(),
            config: source.word(),
            mask: source.word(),
            advertise: source.word(),
        }),
        17 => Message::TableMod(TableModMessage {
            table: TableId(source.byte()),
            config: source.word(),
        }),
        18 => Message::MultipartRequest(Multipart {
            is_more,
            body: source.request(),
        }),
        19 => Message::MultipartReply(Multipart {
            is_more,
            body: source.reply(),
        }),
        20 => Message::BarrierRequest(Nothing),
        21 => Message::BarrierReply(Nothing),
        22 => Message::QueueConfigRequest(QueueConfigRequest {
            port: source.port(),
        }),
        23 => Message::QueueConfigReply(QueueConfig {
            port: source.port(),
            queues: source.bytes(),
        }),
        _ => source.controller_message(kind),
    }
}
