//! From packets to the headers that a policy classifies.

use std::collections::BTreeMap;
use std::sync::Arc;

use classyard::policy::PartId;
use classyard::{PolicyTrace, Schema};
use thiserror::Error;

use super::{Capture, Packet};
use crate::packet::{Counters, Kind, LinkType, Parsed, parse};

/// The headers of a capture's packets, and where each came from.
///
/// The vectors run side by side with the headers of the trace.
#[derive(Clone, Debug)]
pub struct CaptureTrace {
    /// The headers, each of one part of the policy.
    pub trace: PolicyTrace,
    /// The position of each header's packet in [`Capture::packets`].
    pub packet_of: Vec<u32>,
    /// When each packet was captured, in nanoseconds since 1970.
    pub timestamps_ns: Vec<u64>,
    /// How long each packet was on the wire.
    pub lengths: Vec<u32>,
    /// All packets of the capture, those without a header too.
    pub counters: Counters,
    left_out: [u64; Kind::ALL.len()],
}

impl CaptureTrace {
    /// How many packets have no header because the policy has no part for
    /// them, or too little of them is known, by kind; only kinds with such
    /// packets.
    #[must_use]
    pub fn left_out(&self) -> Vec<(Kind, u64)> {
        listed(self.left_out)
    }

    /// How many packets have no header.
    #[must_use]
    pub fn left_out_total(&self) -> u64 {
        self.left_out.iter().sum()
    }
}

/// A policy whose headers packets cannot give.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeadersError {
    /// The schema is not one of the built-in ones.
    #[error(
        "packets cannot be parsed into headers of the schema `{schema}`: captures give headers \
         of {known} only; use rules of one of these schemas, or give headers of `{schema}` as \
         text instead of a capture",
        known = Schema::BUILT_IN.join(", ")
    )]
    Schema {
        /// The schema's name.
        schema: String,
    },
}

/// The parts of a policy, by what packets go there.
#[derive(Debug)]
struct Parts {
    ipv4: Option<PartId>,
    ipv6: Option<PartId>,
    openflow: Option<PartId>,
}

impl Parts {
    fn new(schemas: &[&Arc<Schema>]) -> Result<Parts, HeadersError> {
        let mut parts = Parts {
            ipv4: None,
            ipv6: None,
            openflow: None,
        };
        for (index, &schema) in schemas.iter().enumerate() {
            let slot = if *schema == Schema::ipv4_5tuple() {
                &mut parts.ipv4
            } else if *schema == Schema::ipv6_5tuple() {
                &mut parts.ipv6
            } else if *schema == Schema::openflow15() {
                &mut parts.openflow
            } else {
                return Err(HeadersError::Schema {
                    schema: schema.name().to_owned(),
                });
            };
            slot.get_or_insert(PartId::from_index(index));
        }
        Ok(parts)
    }

    /// The packet's part and whether it was added there.
    fn push(&self, trace: &mut PolicyTrace, parsed: &Parsed, in_port: u32) -> bool {
        let five_tuple = match parsed.kind {
            Kind::Ipv4 => self.ipv4.zip(parsed.ipv4_5tuple()),
            Kind::Ipv6 => self.ipv6.zip(parsed.ipv6_5tuple()),
            _ => None,
        };
        let pushed = if let Some((part, header)) = five_tuple {
            trace.push(part, &header)
        } else if let Some((part, header)) = self.openflow.zip(parsed.openflow15(in_port)) {
            trace.push(part, &header)
        } else {
            return false;
        };
        // The parser's fields are no wider than the schema's.
        debug_assert!(pushed.is_ok(), "{pushed:?}");
        pushed.is_ok()
    }
}

/// Parses packets into headers for a policy, one by one, and counts them.
///
/// A packet goes to the five-tuple part of its IP version if its five-tuple is
/// known, else to the `openflow15` part, with the position of its interface + 1
/// as `in_port`. Packets that fit no part are left out and counted.
#[derive(Debug)]
pub struct PacketHeaders {
    parts: Parts,
    counters: Counters,
    left_out: [u64; Kind::ALL.len()],
    /// By the number of the link type: at most 65,536.
    left_out_by_link: BTreeMap<u16, u64>,
}

impl PacketHeaders {
    /// For a policy over these schemas.
    ///
    /// # Errors
    /// [`HeadersError::Schema`] when one of the schemas is not built in.
    pub fn new<'a>(
        schemas: impl IntoIterator<Item = &'a Arc<Schema>>,
    ) -> Result<PacketHeaders, HeadersError> {
        let schemas: Vec<&Arc<Schema>> = schemas.into_iter().collect();
        Ok(PacketHeaders {
            parts: Parts::new(&schemas)?,
            counters: Counters::new(),
            left_out: [0; Kind::ALL.len()],
            left_out_by_link: BTreeMap::new(),
        })
    }

    /// Counts a packet and adds its header to a trace over the same schemas;
    /// whether it has one.
    pub fn add(&mut self, packet: &Packet, frame: &[u8], trace: &mut PolicyTrace) -> bool {
        let parsed = parse(frame, packet.link);
        self.counters.add(&parsed);
        let in_port = packet.interface.saturating_add(1);
        let added = self.parts.push(trace, &parsed, in_port);
        if !added {
            self.left_out[parsed.kind as usize] += 1;
            *self
                .left_out_by_link
                .entry(packet.link.number())
                .or_default() += 1;
        }
        added
    }

    /// All packets so far, those without a header too.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many packets so far have no header because the policy has no part
    /// for them, or too little of them is known, by kind; only kinds with such
    /// packets.
    #[must_use]
    pub fn left_out(&self) -> Vec<(Kind, u64)> {
        listed(self.left_out)
    }

    /// How many packets so far have no header, by link type, in the order of the link
    /// types' numbers.
    #[must_use]
    pub fn left_out_by_link(&self) -> Vec<(LinkType, u64)> {
        let counts = self.left_out_by_link.iter();
        let counts = counts.map(|(&number, &packets)| (LinkType::from_number(number), packets));
        counts.collect()
    }
}

/// The kinds that have packets.
fn listed(counts: [u64; Kind::ALL.len()]) -> Vec<(Kind, u64)> {
    let counts = Kind::ALL.into_iter().zip(counts);
    counts.filter(|&(_, count)| count > 0).collect()
}

impl Capture {
    /// Parses all packets into headers for a policy over these schemas, in
    /// capture order; [`PacketHeaders`] says how.
    ///
    /// # Errors
    /// [`HeadersError::Schema`] when one of the schemas is not built in.
    pub fn classify_input<'a>(
        &self,
        schemas: impl IntoIterator<Item = &'a Arc<Schema>>,
    ) -> Result<CaptureTrace, HeadersError> {
        let schemas: Vec<&Arc<Schema>> = schemas.into_iter().collect();
        let mut headers = PacketHeaders::new(schemas.iter().copied())?;
        let mut trace = PolicyTrace::new(schemas.iter().copied());
        let (mut packet_of, mut timestamps_ns, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        // The reader allows no more packets than positions.
        for (position, (packet, frame)) in (0_u32..).zip(self.frames()) {
            if headers.add(packet, frame, &mut trace) {
                packet_of.push(position);
                timestamps_ns.push(packet.timestamp_ns);
                lengths.push(packet.original_length);
            }
        }
        Ok(CaptureTrace {
            trace,
            packet_of,
            timestamps_ns,
            lengths,
            counters: headers.counters,
            left_out: headers.left_out,
        })
    }
}
