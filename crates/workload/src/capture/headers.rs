//! Extraction of headers from packets: the headers that a policy classifies.

use std::collections::BTreeMap;
use std::sync::Arc;

use classyard::policy::PartId;
use classyard::{PolicyTrace, Schema};
use thiserror::Error;

use super::{Capture, Packet};
use crate::packet::{Counters, Kind, LinkType, Parsed, parse};

/// The headers of a capture's packets, and the packet that each header came from.
///
/// Index `i` of each vector belongs to header `i` of the trace.
#[derive(Clone, Debug)]
pub struct CaptureTrace {
    /// The headers, each for one part of the policy.
    pub trace: PolicyTrace,
    /// The position of each header's packet in [`Capture::packets`].
    pub packet_of: Vec<u32>,
    /// The capture time of each packet, in nanoseconds since 1970.
    pub timestamps_ns: Vec<u64>,
    /// The length of each packet on the wire, in bytes.
    pub lengths: Vec<u32>,
    /// Counts of all packets of the capture, including packets without a header.
    pub counters: Counters,
    left_out: [u64; Kind::ALL.len()],
}

impl CaptureTrace {
    /// Returns the number of packets without a header for each kind that has any. A
    /// packet has no header if the policy has no part for it, or if too little of the
    /// packet is known.
    #[must_use]
    pub fn left_out(&self) -> Vec<(Kind, u64)> {
        listed(self.left_out)
    }

    /// Returns the number of packets without a header.
    #[must_use]
    pub fn left_out_total(&self) -> u64 {
        self.left_out.iter().sum()
    }
}

/// A reason why headers for a policy cannot be extracted from packets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeadersError {
    /// The schema is not built in.
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

/// For each built-in schema, the part that takes packets, or `None` if no part does.
///
/// A packet whose five-tuple is known also has a header of firewall rules and of `openflow15`. So the first
/// part that can represent a packet is never a five-tuple part after `openflow15`.
#[derive(Debug)]
struct Parts {
    ipv4: Option<PartId>,
    ipv6: Option<PartId>,
    acl_ipv4: Option<PartId>,
    acl_ipv6: Option<PartId>,
    openflow: Option<PartId>,
}

impl Parts {
    fn new(schemas: &[&Arc<Schema>]) -> Result<Parts, HeadersError> {
        let mut parts = Parts {
            ipv4: None,
            ipv6: None,
            acl_ipv4: None,
            acl_ipv6: None,
            openflow: None,
        };
        for (index, &schema) in schemas.iter().enumerate() {
            let is_after_openflow = parts.openflow.is_some();
            let slot = if *schema == Schema::ipv4_5tuple() {
                &mut parts.ipv4
            } else if *schema == Schema::ipv6_5tuple() {
                &mut parts.ipv6
            } else if *schema == Schema::acl_ipv4() {
                &mut parts.acl_ipv4
            } else if *schema == Schema::acl_ipv6() {
                &mut parts.acl_ipv6
            } else if *schema == Schema::openflow15() {
                &mut parts.openflow
            } else {
                return Err(HeadersError::Schema {
                    schema: schema.name().to_owned(),
                });
            };
            if !is_after_openflow {
                slot.get_or_insert(PartId::from_index(index));
            }
        }
        Ok(parts)
    }

    /// Adds the packet's header to the first part that can represent it. Returns true
    /// if it was added.
    fn push(&self, trace: &mut PolicyTrace, parsed: &Parsed, in_port: u32) -> bool {
        let five_tuple = match parsed.kind {
            Kind::Ipv4 => self.ipv4.zip(parsed.ipv4_5tuple()),
            Kind::Ipv6 => self.ipv6.zip(parsed.ipv6_5tuple()),
            _ => None,
        };
        let acl = match parsed.kind {
            Kind::Ipv4 => self
                .acl_ipv4
                .and_then(|part| Some((part, parsed.acl_ipv4()?))),
            Kind::Ipv6 => self
                .acl_ipv6
                .and_then(|part| Some((part, parsed.acl_ipv6()?))),
            _ => None,
        };
        let acl_part = acl.as_ref().map(|(part, _)| *part);
        let pushed = match five_tuple {
            Some((part, header)) if acl_part.is_none_or(|acl| part < acl) => {
                trace.push(part, &header)
            }
            _ => match (acl, self.openflow) {
                (Some((part, header)), _) => trace.push(part, &header),
                (None, Some(part)) => match parsed.openflow15(in_port) {
                    Some(header) => trace.push(part, &header),
                    None => return false,
                },
                (None, None) => return false,
            },
        };
        // The parser's fields fit the widths in the schema.
        debug_assert!(pushed.is_ok(), "{pushed:?}");
        pushed.is_ok()
    }
}

/// Extracts a header for a policy from each packet of a capture, and counts packets.
///
/// A packet goes to the first part of the policy that can represent it, as with
/// [`PolicyClassifier::classify_header`]. A five-tuple part can represent a packet of
/// its IP version whose five-tuple is known. An `openflow15` part can represent every
/// packet whose EtherType is known, so five-tuple parts after it get no packets. The
/// `in_port` of a header of `openflow15` is the position of the packet's interface + 1.
/// Packets that fit no part are counted and get no header.
///
/// [`PolicyClassifier::classify_header`]: classyard::PolicyClassifier::classify_header
#[derive(Debug)]
pub struct HeaderExtractor {
    parts: Parts,
    counters: Counters,
    left_out: [u64; Kind::ALL.len()],
    /// Packets without a header by number of the link type: at most 65,536 entries.
    left_out_by_link: BTreeMap<u16, u64>,
}

impl HeaderExtractor {
    /// Creates an extractor for a policy over `schemas`.
    ///
    /// # Errors
    /// [`HeadersError::Schema`] if a schema is not built in.
    pub fn new<'a>(
        schemas: impl IntoIterator<Item = &'a Arc<Schema>>,
    ) -> Result<HeaderExtractor, HeadersError> {
        let schemas: Vec<&Arc<Schema>> = schemas.into_iter().collect();
        Ok(HeaderExtractor {
            parts: Parts::new(&schemas)?,
            counters: Counters::new(),
            left_out: [0; Kind::ALL.len()],
            left_out_by_link: BTreeMap::new(),
        })
    }

    /// Counts a packet and adds its header to a trace over the same schemas. Returns
    /// true if the packet has a header.
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

    /// Returns the counts of all packets so far, including packets without a header.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the number of packets so far without a header for each kind that has
    /// any. A packet has no header if the policy has no part for it, or if too little
    /// of the packet is known.
    #[must_use]
    pub fn left_out(&self) -> Vec<(Kind, u64)> {
        listed(self.left_out)
    }

    /// Returns the number of packets so far without a header by link type, in the order
    /// of the link types' numbers.
    #[must_use]
    pub fn left_out_by_link(&self) -> Vec<(LinkType, u64)> {
        let counts = self.left_out_by_link.iter();
        let counts = counts.map(|(&number, &packets)| (LinkType::from_number(number), packets));
        counts.collect()
    }
}

/// Returns the kinds whose count is not 0.
fn listed(counts: [u64; Kind::ALL.len()]) -> Vec<(Kind, u64)> {
    let counts = Kind::ALL.into_iter().zip(counts);
    counts.filter(|&(_, count)| count > 0).collect()
}

impl Capture {
    /// Parses all packets into headers for a policy over `schemas`, in capture order.
    /// [`HeaderExtractor`] describes the part that each packet goes to.
    ///
    /// # Errors
    /// [`HeadersError::Schema`] if a schema is not built in.
    pub fn classify_input<'a>(
        &self,
        schemas: impl IntoIterator<Item = &'a Arc<Schema>>,
    ) -> Result<CaptureTrace, HeadersError> {
        let schemas: Vec<&Arc<Schema>> = schemas.into_iter().collect();
        let mut extractor = HeaderExtractor::new(schemas.iter().copied())?;
        let mut trace = PolicyTrace::new(schemas.iter().copied());
        let (mut packet_of, mut timestamps_ns, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        // The reader's limit ensures that positions fit 32 bits.
        for (position, (packet, frame)) in (0_u32..).zip(self.frames()) {
            if extractor.add(packet, frame, &mut trace) {
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
            counters: extractor.counters,
            left_out: extractor.left_out,
        })
    }
}
