//! Messages: a header of eight bytes, and a body that depends on the type (OpenFlow 1.3.5
//! §7.1).
//!
//! ```text
//! version 8 │ type 8 │ length 16 │ transaction number 32 │ body
//! ```

use classyard_datapath::flow::FlowMod;
use classyard_datapath::group::GroupMod;
use classyard_datapath::meter::MeterMod;

use crate::bundle::{self, BundleAdd, BundleControl};
use crate::fault::{Code, Fault, ONF};
use crate::flow::FlowRemoved;
use crate::monitor::{self, MonitorCancel};
use crate::multipart::{Multipart, Nothing, Reply, Request};
use crate::packet::{PacketIn, PacketOut};
use crate::port::{PortMod, PortStatus, QueueConfig, QueueConfigRequest};
use crate::switch::{
    AsyncConfig, ErrorMessage, Experimenter, Hello, RoleMessage, SwitchConfig, SwitchFeatures,
    VERSION_1_3,
};
use crate::table::TableModMessage;
use crate::wire::{Reader, Wire, Writer};

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version.
    pub version: u8,
    /// The type of the message.
    pub kind: u8,
    /// The length of the message, in bytes, with the header.
    pub length: u16,
    /// The transaction number, which a reply has too.
    pub xid: u32,
}

impl Header {
    /// The bytes of a header.
    pub const BYTES: usize = 8;

    /// Reads the first eight bytes of a message.
    #[must_use]
    pub fn read(bytes: [u8; Header::BYTES]) -> Header {
        let [version, kind, high, low, xid @ ..] = bytes;
        Header {
            version,
            kind,
            length: u16::from_be_bytes([high, low]),
            xid: u32::from_be_bytes(xid),
        }
    }
}

macro_rules! messages {
    ($($(#[$doc:meta])* $variant:ident($body:ty) = $number:literal $name:literal,)*) => {
        /// A message.
        ///
        /// ```
        /// use classyard_openflow::{Header, Message};
        ///
        /// let bytes = Message::EchoRequest(b"ping".to_vec()).to_bytes(7);
        /// assert_eq!(bytes, [4, 2, 0, 12, 0, 0, 0, 7, b'p', b'i', b'n', b'g']);
        /// let (header, message) = Message::read(&bytes).expect("a right message");
        /// assert_eq!((header.xid, message), (7, Message::EchoRequest(b"ping".to_vec())));
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Message {
            $($(#[$doc])* $variant($body),)*
            /// A message of ONF that opens, closes, commits or discards a bundle, or answers.
            BundleControl(BundleControl),
            /// A message of ONF with a message for a bundle.
            BundleAdd(BundleAdd),
            /// A message of ONF that ends a monitor.
            MonitorCancel(MonitorCancel),
            /// A message of ONF: the switch does not report all changes any more.
            MonitorPaused(Nothing),
            /// A message of ONF: the switch has reported all changes again.
            MonitorResumed(Nothing),
        }

        impl Message {
            /// Returns the name of the type, as in the specification without `OFPT`.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Message::$variant(_) => $name,)*
                    Message::BundleControl(_) => "BUNDLE_CONTROL",
                    Message::BundleAdd(_) => "BUNDLE_ADD_MESSAGE",
                    Message::MonitorCancel(_) => "FLOW_MONITOR_CANCEL",
                    Message::MonitorPaused(_) => "FLOW_MONITOR_PAUSED",
                    Message::MonitorResumed(_) => "FLOW_MONITOR_RESUMED",
                }
            }

            fn kind(&self) -> u8 {
                match self {
                    $(Message::$variant(_) => $number,)*
                    Message::BundleControl(_)
                    | Message::BundleAdd(_)
                    | Message::MonitorCancel(_)
                    | Message::MonitorPaused(_)
                    | Message::MonitorResumed(_) => EXPERIMENTER,
                }
            }

            fn write_body(&self, writer: &mut Writer<'_>) {
                match self {
                    $(Message::$variant(body) => writer.put(body),)*
                    Message::BundleControl(body) => onf(writer, bundle::BUNDLE_CONTROL, body),
                    Message::BundleAdd(body) => onf(writer, bundle::BUNDLE_ADD, body),
                    Message::MonitorCancel(body) => onf(writer, monitor::MONITOR_CANCEL, body),
                    Message::MonitorPaused(body) => onf(writer, monitor::MONITOR_PAUSED, body),
                    Message::MonitorResumed(body) => onf(writer, monitor::MONITOR_RESUMED, body),
                }
            }

            fn read_body(kind: u8, reader: &mut Reader<'_>) -> Result<Message, Fault> {
                match kind {
                    $($number => reader.get().map(Message::$variant),)*
                    unknown => {
                        let message = format!("a message of type {unknown}; the types are 0 to 29");
                        Err(Fault::new(Code::BAD_TYPE, message))
                    }
                }
            }
        }
    };
}

/// The type of experimenters' messages.
const EXPERIMENTER: u8 = 4;

messages! {
    /// The versions of the sender; the first message of both ends.
    Hello(Hello) = 0 "HELLO",
    /// Another message failed.
    Error(ErrorMessage) = 1 "ERROR",
    /// A question whether the other end is there.
    EchoRequest(Vec<u8>) = 2 "ECHO_REQUEST",
    /// The answer, with the data of the question.
    EchoReply(Vec<u8>) = 3 "ECHO_REPLY",
    /// A message of an experimenter that this crate does not know.
    Experimenter(Experimenter) = 4 "EXPERIMENTER",
    /// A question for the features of the switch.
    FeaturesRequest(Nothing) = 5 "FEATURES_REQUEST",
    /// The features of the switch.
    FeaturesReply(SwitchFeatures) = 6 "FEATURES_REPLY",
    /// A question for the configuration.
    GetConfigRequest(Nothing) = 7 "GET_CONFIG_REQUEST",
    /// The configuration.
    GetConfigReply(SwitchConfig) = 8 "GET_CONFIG_REPLY",
    /// A new configuration.
    SetConfig(SwitchConfig) = 9 "SET_CONFIG",
    /// A packet for the controller.
    PacketIn(PacketIn) = 10 "PACKET_IN",
    /// An entry was removed.
    FlowRemoved(FlowRemoved) = 11 "FLOW_REMOVED",
    /// A port changed.
    PortStatus(PortStatus) = 12 "PORT_STATUS",
    /// A packet of the controller.
    PacketOut(PacketOut) = 13 "PACKET_OUT",
    /// A change of flow entries.
    FlowMod(FlowMod) = 14 "FLOW_MOD",
    /// A change of groups.
    GroupMod(GroupMod) = 15 "GROUP_MOD",
    /// A change of a port.
    PortMod(PortMod) = 16 "PORT_MOD",
    /// A change of a table.
    TableMod(TableModMessage) = 17 "TABLE_MOD",
    /// A request whose answer may take several messages.
    MultipartRequest(Multipart<Request>) = 18 "MULTIPART_REQUEST",
    /// A part of an answer.
    MultipartReply(Multipart<Reply>) = 19 "MULTIPART_REPLY",
    /// A request to finish all messages before.
    BarrierRequest(Nothing) = 20 "BARRIER_REQUEST",
    /// All messages before are finished.
    BarrierReply(Nothing) = 21 "BARRIER_REPLY",
    /// A question for the queues of a port.
    QueueConfigRequest(QueueConfigRequest) = 22 "QUEUE_GET_CONFIG_REQUEST",
    /// The queues of a port.
    QueueConfigReply(QueueConfig) = 23 "QUEUE_GET_CONFIG_REPLY",
    /// A change of the controller's role.
    RoleRequest(RoleMessage) = 24 "ROLE_REQUEST",
    /// The controller's role.
    RoleReply(RoleMessage) = 25 "ROLE_REPLY",
    /// A question for the messages that the controller gets without request.
    GetAsyncRequest(Nothing) = 26 "GET_ASYNC_REQUEST",
    /// The messages that the controller gets without request.
    GetAsyncReply(AsyncConfig) = 27 "GET_ASYNC_REPLY",
    /// A choice of the messages that the controller gets without request.
    SetAsync(AsyncConfig) = 28 "SET_ASYNC",
    /// A change of meters.
    MeterMod(MeterMod) = 29 "METER_MOD",
}

fn onf(writer: &mut Writer<'_>, kind: u32, body: &impl Wire) {
    writer.put(&ONF);
    writer.put(&kind);
    writer.put(body);
}

impl Message {
    /// Reads a message of OpenFlow 1.3. Hellos and errors of other versions are read too.
    ///
    /// # Errors
    /// [`Fault`] if `bytes` is not exactly one message, or if the switch must refuse it.
    pub fn read(bytes: &[u8]) -> Result<(Header, Message), Fault> {
        let header = bytes.first_chunk().copied().map(Header::read);
        let Some(header) = header.filter(|header| usize::from(header.length) == bytes.len()) else {
            let message = format!("{} bytes that are not one message", bytes.len());
            return Err(Fault::new(Code::BAD_LENGTH, message));
        };
        let has_all_versions = header.kind <= 1;
        if header.version != VERSION_1_3 && !has_all_versions {
            let message = format!("version {}; the version is {VERSION_1_3}", header.version);
            return Err(Fault::new(Code::BAD_VERSION, message));
        }
        let mut reader = Reader::new(&bytes[Header::BYTES..], Code::BAD_LENGTH);
        let message = Message::read_body(header.kind, &mut reader)?;
        reader.end()?;
        Ok((header, message.known()?))
    }

    /// Returns the message of a known experimenter in place of its bytes.
    fn known(self) -> Result<Message, Fault> {
        let Message::Experimenter(unknown) = &self else {
            return Ok(self);
        };
        let mut reader = Reader::new(&unknown.data, Code::BAD_LENGTH);
        let message = match (unknown.experimenter, unknown.kind) {
            (ONF, bundle::BUNDLE_CONTROL) => Message::BundleControl(reader.get()?),
            (ONF, bundle::BUNDLE_ADD) => Message::BundleAdd(reader.get()?),
            (ONF, monitor::MONITOR_CANCEL) => Message::MonitorCancel(reader.get()?),
            (ONF, monitor::MONITOR_PAUSED) => Message::MonitorPaused(reader.get()?),
            (ONF, monitor::MONITOR_RESUMED) => Message::MonitorResumed(reader.get()?),
            _ => return Ok(self),
        };
        reader.end()?;
        Ok(message)
    }

    /// Appends the message to a buffer. A message longer than 65,535 bytes gets this length,
    /// so it must be split before.
    pub fn write(&self, xid: u32, buffer: &mut Vec<u8>) {
        let mut writer = Writer::new(buffer);
        let start = writer.len();
        writer.put(&VERSION_1_3);
        writer.put(&self.kind());
        writer.put(&0_u16);
        writer.put(&xid);
        self.write_body(&mut writer);
        let length = writer.len() - start;
        writer.set_length(start + 2, length);
    }

    /// Returns the message in bytes.
    #[must_use]
    pub fn to_bytes(&self, xid: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(xid, &mut bytes);
        bytes
    }
}
