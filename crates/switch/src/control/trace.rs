//! The trace of a packet as texts and numbers, for people and programs.

use std::time::Duration;

use classyard_datapath::flow::FlowEntry;
use classyard_datapath::meter::BandKind;
use classyard_datapath::pipeline::{FieldChange, Lookup, Megaflow, PacketTrace, Step};
use classyard_datapath::{
    Field, Flaw, GroupId, MatchField, MeterId, Packet, PacketKey, PortNo, Prerequisite,
};
use serde::{Deserialize, Serialize};

/// The largest number of flows that nearly won which a running switch lists for each table.
pub const MAX_NEAR_FLOWS: usize = 1000;

/// The packet that a running switch traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TraceSource {
    /// An Ethernet frame.
    Frame {
        /// The bytes in hexadecimal digits.
        bytes: String,
        /// The number or name of the ingress port; `None` for port 1.
        in_port: Option<String>,
    },
    /// A packet with given fields.
    Flow {
        /// The fields, in the syntax of `ovs-ofctl`.
        fields: String,
        /// The number or name of the ingress port if the fields lack it; `None` for port 1.
        in_port: Option<String>,
    },
    /// The next packet that a port receives.
    Next {
        /// The number or name of the port.
        port: String,
        /// The longest time to wait, in seconds.
        max_seconds: u64,
    },
}

/// The trace of a packet through a running switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveTrace {
    /// The packet.
    pub packet: TracePacket,
    /// The ingress port; `None` for a reserved port, such as the controller.
    pub port: Option<TracePort>,
    /// The steps in order.
    pub steps: Vec<TraceStep>,
    /// True if neither the packet nor a copy of it was sent.
    pub dropped: bool,
    /// The megaflow that a worker with a free mask adds for the packet; `None` if it adds none.
    pub megaflow: Option<TraceMegaflow>,
}

/// The ingress port of a packet that a running switch traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePort {
    /// The number.
    pub number: u32,
    /// The name.
    pub name: String,
    /// True if the port has a link.
    pub is_up: bool,
    /// True if the switch processes packets of the port (no flag `OFPPC_NO_RECV`).
    pub receives: bool,
}

/// A traced packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracePacket {
    /// The origin: a file, a port, or the command line.
    pub source: String,
    /// The number in the capture, from 1.
    pub number: Option<usize>,
    /// The number of the ingress port.
    pub in_port: u32,
    /// The time of arrival in seconds.
    pub seconds: f64,
    /// The bytes in hexadecimal digits.
    pub bytes: String,
    /// The fields of the headers.
    pub fields: Vec<TraceField>,
    /// The flaws of the headers.
    pub malformed: Vec<String>,
}

/// A field of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceField {
    /// The name.
    pub field: String,
    /// The value.
    pub value: String,
}

/// A flow, group or meter on a packet's path.
#[derive(Clone, Copy, Debug)]
pub enum TracedItem<'i> {
    /// A flow.
    Flow(&'i FlowEntry),
    /// A group.
    Group(GroupId),
    /// A meter.
    Meter(MeterId),
}

/// The origin of a flow, a group or a meter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemOrigin {
    /// The line in the pipeline's file.
    pub line: Option<usize>,
    /// The line in the script that added or changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_line: Option<usize>,
    /// The cookie of a running switch's flow, such as `0x5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
}

/// A flow on a packet's path, or a flow that nearly won.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFlow {
    /// The origin.
    #[serde(flatten)]
    pub origin: ItemOrigin,
    /// The priority.
    pub priority: u16,
    /// The match; empty for a flow that matches every packet.
    #[serde(rename = "match")]
    pub matches: String,
    /// The actions.
    pub actions: String,
}

/// A step of a packet: its kind, and the values that this kind has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceStep {
    /// The kind, such as `lookup` or `sent`.
    pub step: String,
    /// The depth of nested buckets around the packet.
    pub depth: usize,
    /// The lookup in a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<TraceTable>,
    /// The action that was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The meter that the packet passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<TraceMeter>,
    /// The group that chose a bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<TraceGroup>,
    /// The fields that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<TraceChange>,
    /// The output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<TraceSent>,
}

/// The lookup of a packet in a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceTable {
    /// The number of the table.
    pub table: u8,
    /// The number of its flows.
    pub flows: usize,
    /// The flow that wins.
    pub winner: Option<TraceFlow>,
    /// Flows that would have won if a few fields were different, fewest fields first.
    pub near: Vec<NearFlow>,
    /// The fields that decided between the winner and all better flows.
    pub mattered: Vec<String>,
}

/// A flow that nearly won.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearFlow {
    /// The flow.
    #[serde(flatten)]
    pub flow: TraceFlow,
    /// The fields that do not match.
    pub refused_by: Vec<RefusedField>,
}

/// A field of a flow that does not match the packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedField {
    /// The name.
    pub field: String,
    /// The packet's value; `None` if the packet lacks the field.
    pub packet: Option<String>,
    /// The flow's value, with its mask.
    pub flow: String,
}

/// A meter on a packet's path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMeter {
    /// The number of the meter.
    pub meter: u32,
    /// The origin.
    #[serde(flatten)]
    pub origin: ItemOrigin,
    /// The index of the applied band, from 0; `None` if no rate was exceeded.
    pub band: Option<usize>,
    /// The effect: `passed`, `dropped` or `remarked`.
    pub did: String,
}

/// A group on a packet's path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceGroup {
    /// The number of the group.
    pub group: u32,
    /// The origin.
    #[serde(flatten)]
    pub origin: ItemOrigin,
    /// The index of the bucket, from 0; `None` if no bucket is live.
    pub bucket: Option<usize>,
}

/// A changed field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceChange {
    /// The name.
    pub field: String,
    /// The old value; `None` if the packet lacked the field.
    pub old: Option<String>,
    /// The new value; `None` if the packet now lacks the field.
    pub new: Option<String>,
}

/// An output of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSent {
    /// The port.
    pub port: String,
    /// The queue, if one was chosen.
    pub queue: Option<u32>,
    /// The reason for sending the packet to the controller.
    pub reason: Option<String>,
    /// The largest number of bytes that are sent to the controller.
    pub max_len: Option<u16>,
    /// The packet's bytes at this step, in hexadecimal digits.
    pub bytes: String,
}

/// The megaflow of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMegaflow {
    /// The fields and bits that the covered packets share.
    pub covers: String,
    /// The number of bits of a packet's key that are compared.
    pub bits: u32,
    /// The tables that these packets skip.
    pub tables: Vec<u8>,
    /// The table at which they continue.
    pub continues_at: Option<u8>,
}

/// Reads the bytes of a frame from hexadecimal digits, with or without spaces and colons.
///
/// # Errors
/// The text found and the text expected.
pub fn frame_bytes(text: &str) -> Result<Vec<u8>, String> {
    let digits = text
        .chars()
        .filter(|character| !matches!(character, ' ' | ':' | '\n'));
    let digits: Option<Vec<u8>> = digits
        .map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    match digits {
        Some(digits) if !digits.is_empty() && digits.len() % 2 == 0 => {
            let bytes = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]);
            Ok(bytes.collect())
        }
        Some(digits) => {
            let plural = if digits.len() == 1 { "" } else { "s" };
            Err(format!(
                "{} digit{plural}; expected two for each byte of a frame",
                digits.len()
            ))
        }
        None => Err("not a frame; expected hexadecimal digits, two for each byte".to_owned()),
    }
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shown(field: Field, value: u128) -> String {
    field.format().display(value).to_string()
}

/// Returns the value that a flow matches, with its mask.
fn wanted(value: &MatchField) -> String {
    let text = value.to_string();
    match text.split_once('=') {
        Some((_, value)) => value.to_owned(),
        None => text,
    }
}

impl TracePacket {
    /// Describes a packet of `source` that arrived at `time`. `number` is its number in a
    /// capture.
    #[must_use]
    pub fn new(
        packet: &Packet,
        source: String,
        number: Option<usize>,
        time: Duration,
    ) -> TracePacket {
        let flaws = Flaw::ALL.iter();
        let flaws = flaws.filter(|flaw| packet.parsed().flaws.contains(**flaw));
        let in_port = packet.key().get(Field::InPort);
        TracePacket {
            source,
            number,
            in_port: u32::try_from(in_port).expect("32 bits"),
            seconds: time.as_secs_f64(),
            bytes: hex(packet.bytes()),
            fields: fields(packet.key()),
            malformed: flaws.map(|flaw| flaw.name().to_owned()).collect(),
        }
    }
}

fn fields(key: &PacketKey) -> Vec<TraceField> {
    let present_fields = Field::all().filter(|&field| key.has(field));
    // Leaves out zero values of registers, metadata and tunnel fields, which a new
    // packet does not have, and the VLAN field of an untagged packet.
    let shown_fields = present_fields.filter(|&field| {
        let is_header = match field.info().prerequisite {
            Prerequisite::None => matches!(field, Field::EthDst | Field::EthSrc | Field::EthType),
            Prerequisite::InPort => false,
            _ => true,
        };
        is_header || key.get(field) != 0
    });
    shown_fields
        .map(|field| TraceField {
            field: field.name().to_owned(),
            value: shown(field, key.get(field)),
        })
        .collect()
}

fn changes(changes: &[FieldChange]) -> Vec<TraceChange> {
    let rows = changes.iter().map(|change| TraceChange {
        field: change.field.name().to_owned(),
        old: change.old.map(|value| shown(change.field, value)),
        new: change.new.map(|value| shown(change.field, value)),
    });
    rows.collect()
}

impl TraceFlow {
    /// Describes a flow.
    #[must_use]
    pub fn new(entry: &FlowEntry, origin: ItemOrigin) -> TraceFlow {
        TraceFlow {
            origin,
            priority: entry.priority,
            matches: entry.flow.to_string(),
            actions: entry.instructions.to_string(),
        }
    }
}

impl TraceMegaflow {
    /// Describes a megaflow.
    #[must_use]
    pub fn new(megaflow: &Megaflow) -> TraceMegaflow {
        TraceMegaflow {
            covers: megaflow.to_string(),
            bits: megaflow.bits(),
            tables: megaflow.steps.iter().map(|(table, _)| table.0).collect(),
            continues_at: megaflow.rest.map(|table| table.0),
        }
    }
}

/// Returns the origin of an item.
type OriginOf<'o> = &'o dyn Fn(TracedItem<'_>) -> ItemOrigin;

impl TraceTable {
    fn new(lookup: &Lookup, origin: OriginOf<'_>) -> TraceTable {
        let flow = |entry: &FlowEntry| TraceFlow::new(entry, origin(TracedItem::Flow(entry)));
        let near_flows = lookup.near.iter().map(|miss| NearFlow {
            flow: flow(&miss.entry),
            refused_by: miss
                .differences
                .iter()
                .map(|one| RefusedField {
                    field: one.wants.field.name().to_owned(),
                    packet: one.has.map(|has| shown(one.wants.field, has)),
                    flow: wanted(&one.wants),
                })
                .collect(),
        });
        let mattered = lookup.mattered.iter();
        TraceTable {
            table: lookup.table.0,
            flows: lookup.entries,
            winner: lookup.winner.as_ref().map(flow),
            near: near_flows.collect(),
            mattered: mattered.map(|field| field.name().to_owned()).collect(),
        }
    }
}

impl TraceMeter {
    fn new(meter: MeterId, band: Option<(usize, BandKind)>, origin: OriginOf<'_>) -> TraceMeter {
        let did = match band {
            None => "passed",
            Some((_, BandKind::Drop)) => "dropped",
            Some((_, BandKind::DscpRemark(_))) => "remarked",
        };
        TraceMeter {
            meter: meter.0,
            origin: origin(TracedItem::Meter(meter)),
            band: band.map(|(number, _)| number),
            did: did.to_owned(),
        }
    }
}

impl TraceSent {
    /// Describes an output to a port.
    fn new(port: PortNo, queue: Option<u32>, bytes: &[u8]) -> TraceSent {
        TraceSent {
            port: port.to_string(),
            queue,
            reason: None,
            max_len: None,
            bytes: hex(bytes),
        }
    }
}

impl TraceStep {
    /// Describes the steps of a trace. `origin` returns the origin of an item.
    #[must_use]
    pub fn all(trace: &PacketTrace, origin: OriginOf<'_>) -> Vec<TraceStep> {
        let mut depth = 0;
        let steps = trace.steps.iter().map(|step| {
            if *step == Step::BucketDone {
                depth -= 1;
            }
            let row = TraceStep::new(step, depth, origin);
            if let Step::Bucket { bucket, .. } = step {
                depth += usize::from(bucket.is_some());
            }
            row
        });
        steps.collect()
    }

    fn new(step: &Step, depth: usize, origin: OriginOf<'_>) -> TraceStep {
        let mut row = TraceStep {
            depth,
            ..TraceStep::default()
        };
        let kind = match step {
            Step::Lookup(lookup) => {
                row.table = Some(TraceTable::new(lookup, origin));
                "lookup"
            }
            Step::Metered { meter, band } => {
                row.meter = Some(TraceMeter::new(*meter, *band, origin));
                "meter"
            }
            Step::Action {
                action,
                changes: made,
            } => {
                row.action = Some(action.to_string());
                row.changes = changes(made);
                "action"
            }
            Step::Remarked(made) => {
                row.changes = changes(made);
                "remarked"
            }
            Step::ActionSet => "action set",
            Step::Bucket { group, bucket } => {
                row.group = Some(TraceGroup {
                    group: group.0,
                    origin: origin(TracedItem::Group(*group)),
                    bucket: *bucket,
                });
                "bucket"
            }
            Step::BucketDone => "bucket done",
            Step::Limited(limit) => limit.name(),
            Step::Sent { port, queue, bytes } => {
                row.sent = Some(TraceSent::new(*port, *queue, bytes));
                "sent"
            }
            Step::ToController {
                reason,
                max_len,
                bytes,
            } => {
                row.sent = Some(TraceSent {
                    reason: Some(reason.name().to_owned()),
                    max_len: Some(*max_len),
                    ..TraceSent::new(PortNo::CONTROLLER, None, bytes)
                });
                "sent"
            }
        };
        kind.clone_into(&mut row.step);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_hexadecimal_digits() {
        assert_eq!(frame_bytes("02:0a FF"), Ok(vec![2, 10, 255]));
        for (text, message) in [
            ("", "0 digits; expected two for each byte of a frame"),
            ("1", "1 digit; expected two"),
            ("123", "3 digits; expected two"),
            ("0x12", "not a frame; expected hexadecimal digits"),
        ] {
            let error = frame_bytes(text).unwrap_err();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn steps_are_read_back_from_json() {
        let flow = TraceFlow {
            origin: ItemOrigin {
                cookie: Some("0x5".to_owned()),
                ..ItemOrigin::default()
            },
            priority: 7,
            matches: "tcp".to_owned(),
            actions: "drop".to_owned(),
        };
        let step = TraceStep {
            step: "lookup".to_owned(),
            table: Some(TraceTable {
                table: 3,
                flows: 2,
                winner: None,
                near: vec![NearFlow {
                    flow,
                    refused_by: vec![RefusedField {
                        field: "ip_proto".to_owned(),
                        packet: None,
                        flow: "6".to_owned(),
                    }],
                }],
                mattered: vec!["ip_proto".to_owned()],
            }),
            ..TraceStep::default()
        };
        let text = serde_json::to_string(&step).unwrap();
        assert_eq!(
            text,
            r#"{"step":"lookup","depth":0,"table":{"table":3,"flows":2,"winner":null,"near":[{"line":null,"cookie":"0x5","priority":7,"match":"tcp","actions":"drop","refused_by":[{"field":"ip_proto","packet":null,"flow":"6"}]}],"mattered":["ip_proto"]}}"#
        );
        assert_eq!(serde_json::from_str::<TraceStep>(&text).unwrap(), step);
    }
}
