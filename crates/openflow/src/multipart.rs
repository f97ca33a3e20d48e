//! Multipart messages: requests whose answers may take several messages (OpenFlow 1.3.5
//! §7.3.5).
//!
//! | type | request | reply |
//! |---|---|---|
//! | 0 | nothing | [`Description`] |
//! | 1 | [`FlowRequest`] | a list of [`FlowStats`] |
//! | 2 | [`FlowRequest`] | [`AggregateStats`] |
//! | 3 | nothing | a list of [`TableStats`] |
//! | 4 | [`PortRequest`] | a list of [`PortStats`] |
//! | 5 | [`QueueRequest`] | a list of [`QueueStats`] |
//! | 6 | [`GroupRequest`] | a list of [`GroupStats`] |
//! | 7 | nothing | a list of [`Group`] |
//! | 8 | nothing | [`GroupFeatures`] |
//! | 9 | [`MeterRequest`] | a list of [`MeterStats`] |
//! | 10 | [`MeterRequest`] | a list of [`Meter`] |
//! | 11 | nothing | [`MeterFeatures`] |
//! | 12 | nothing, or a list of [`TableFeaturesItem`] to set | a list of [`TableFeaturesItem`] |
//! | 13 | nothing | a list of [`Port`] |
//! | 65,535 of ONF, 1870 | a list of [`MonitorRequest`] | a list of [`FlowUpdate`] |
//! | 65,535 of others | [`Experimenter`] | [`Experimenter`] |

use classyard_datapath::GroupId;
use classyard_datapath::group::Group;
use classyard_datapath::meter::Meter;

use crate::fault::{Code, Fault, ONF};
use crate::flow::{AggregateStats, FlowRequest, FlowStats};
use crate::group::{GroupFeatures, GroupStats};
use crate::meter::{MeterFeatures, MeterRequest, MeterStats};
use crate::monitor::{self, FlowUpdate, MonitorRequest};
use crate::port::{Port, PortRequest, PortStats, QueueRequest, QueueStats};
use crate::switch::Experimenter;
use crate::table::{TableFeaturesItem, TableStats};
use crate::wire::{Reader, Wire, Writer, layout};

/// The flag of a message that another part follows (`OFPMPF_REQ_MORE`, `OFPMPF_REPLY_MORE`).
pub(crate) const MORE_PARTS: u16 = 1;

layout! {
    /// The description of a switch, for people (`ofp_desc`). Texts are filled with zeros.
    pub struct Description {
        /// The manufacturer.
        manufacturer: [u8; 256],
        /// The hardware.
        hardware: [u8; 256],
        /// The software.
        software: [u8; 256],
        /// The serial number.
        serial_number: [u8; 32],
        /// The name of the switch.
        datapath: [u8; 256],
    }
}

layout! {
    /// A request about one group or all (`ofp_group_stats_request`).
    pub struct GroupRequest {
        /// The group, or [`GroupId::ALL`].
        group: GroupId,
    } [4]
}

/// Nothing: the body of a request without arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nothing;

impl Wire for Nothing {
    fn read(_: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Nothing)
    }

    fn write(&self, _: &mut Writer<'_>) {}
}

/// A list that fills the rest of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

impl<T: Wire> Wire for List<T> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        reader.list().map(List)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.list(&self.0);
    }
}

/// The body of a multipart message, which has a type.
pub(crate) trait Body: Sized {
    fn kind(&self) -> u16;

    fn read(kind: u16, reader: &mut Reader<'_>) -> Result<Self, Fault>;

    fn write(&self, writer: &mut Writer<'_>);
}

/// One part of a request or a reply (`ofp_multipart_request`, `ofp_multipart_reply`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipart<B> {
    /// True if another part follows, with the same transaction number.
    pub is_more: bool,
    /// The contents of this part.
    pub body: B,
}

impl<B: Body> Wire for Multipart<B> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let (kind, flags): (u16, u16) = (reader.get()?, reader.get()?);
        reader.skip(4)?;
        Ok(Multipart {
            is_more: flags & MORE_PARTS != 0,
            body: B::read(kind, reader)?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&self.body.kind());
        writer.put(&if self.is_more { MORE_PARTS } else { 0 });
        writer.skip(4);
        self.body.write(writer);
    }
}

/// The type of experimenters' requests and replies.
const EXPERIMENTER_PART: u16 = 0xffff;

/// Returns the experimenter's number and the type that follow in an experimenter's body.
fn announced(reader: &Reader<'_>) -> Option<(u32, u32)> {
    let mut body = *reader;
    Some((body.get().ok()?, body.get().ok()?))
}

/// Declares the bodies of requests or replies, with their types. The types of ONF's bodies
/// follow after `onf`.
macro_rules! bodies {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$doc:meta])* $variant:ident($body:ty) = $number:literal,)* }
        onf { $($(#[$onf_doc:meta])* $onf:ident($onf_body:ty) = $onf_number:path,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant($body),)*
            $($(#[$onf_doc])* $onf($onf_body),)*
        }

        impl Body for $name {
            fn kind(&self) -> u16 {
                match self {
                    $($name::$variant(_) => $number,)*
                    $($name::$onf(_) => EXPERIMENTER_PART,)*
                }
            }

            fn read(kind: u16, reader: &mut Reader<'_>) -> Result<Self, Fault> {
                $(if kind == EXPERIMENTER_PART && announced(reader) == Some((ONF, $onf_number)) {
                    reader.skip(8)?;
                    return reader.get().map($name::$onf);
                })*
                match kind {
                    $($number => reader.get().map($name::$variant),)*
                    unknown => {
                        let message = format!("a multipart message of type {unknown}");
                        Err(Fault::new(Code::BAD_MULTIPART, message))
                    }
                }
            }

            fn write(&self, writer: &mut Writer<'_>) {
                match self {
                    $($name::$variant(body) => writer.put(body),)*
                    $($name::$onf(body) => {
                        writer.put(&ONF);
                        writer.put(&$onf_number);
                        writer.put(body);
                    })*
                }
            }
        }
    };
}

bodies! {
    /// The contents of a request.
    pub enum Request {
        /// The description of the switch.
        Description(Nothing) = 0,
        /// Statistics of each entry.
        Flow(FlowRequest) = 1,
        /// Statistics of entries together.
        Aggregate(FlowRequest) = 2,
        /// Statistics of tables.
        Table(Nothing) = 3,
        /// Statistics of ports.
        Port(PortRequest) = 4,
        /// Statistics of queues.
        Queue(QueueRequest) = 5,
        /// Statistics of groups.
        Group(GroupRequest) = 6,
        /// The groups.
        GroupDescription(Nothing) = 7,
        /// The groups that the switch supports.
        GroupFeatures(Nothing) = 8,
        /// Statistics of meters.
        Meter(MeterRequest) = 9,
        /// The meters.
        MeterConfig(MeterRequest) = 10,
        /// The meters that the switch supports.
        MeterFeatures(Nothing) = 11,
        /// The features of tables, or features to set.
        TableFeatures(List<TableFeaturesItem>) = 12,
        /// The ports.
        PortDescription(Nothing) = 13,
        /// A request of an experimenter that this crate does not know.
        Experimenter(Experimenter) = 0xffff,
    }
    onf {
        /// Entries to monitor.
        FlowMonitor(List<MonitorRequest>) = monitor::FLOW_MONITOR,
    }
}

bodies! {
    /// The contents of a reply, or of one part of it.
    pub enum Reply {
        /// The description of the switch.
        Description(Box<Description>) = 0,
        /// Statistics of each entry.
        Flow(List<FlowStats>) = 1,
        /// Statistics of entries together.
        Aggregate(AggregateStats) = 2,
        /// Statistics of tables.
        Table(List<TableStats>) = 3,
        /// Statistics of ports.
        Port(List<PortStats>) = 4,
        /// Statistics of queues.
        Queue(List<QueueStats>) = 5,
        /// Statistics of groups.
        Group(List<GroupStats>) = 6,
        /// The groups.
        GroupDescription(List<Group>) = 7,
        /// The groups that the switch supports.
        GroupFeatures(GroupFeatures) = 8,
        /// Statistics of meters.
        Meter(List<MeterStats>) = 9,
        /// The meters.
        MeterConfig(List<Meter>) = 10,
        /// The meters that the switch supports.
        MeterFeatures(MeterFeatures) = 11,
        /// The features of tables.
        TableFeatures(List<TableFeaturesItem>) = 12,
        /// The ports.
        PortDescription(List<Port>) = 13,
        /// A reply of an experimenter that this crate does not know.
        Experimenter(Experimenter) = 0xffff,
    }
    onf {
        /// Monitored entries, or their changes.
        FlowMonitor(List<FlowUpdate>) = monitor::FLOW_MONITOR,
    }
}

impl<T: Wire> Wire for Box<T> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        reader.get().map(Box::new)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&**self);
    }
}
