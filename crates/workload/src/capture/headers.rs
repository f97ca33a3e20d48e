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

/// A schema that packets have headers of.
#[derive(Clone, Copy, Debug)]
enum Form {
    Ipv4FiveTuple,
    Ipv6FiveTuple,
    AclIpv4,
    AclIpv6,
    OpenFlow,
}

impl Form {
    /// Returns the form of a built-in schema.
    fn of(schema: &Schema) -> Option<Form> {
        let forms = [
            (Schema::ipv4_5tuple(), Form::Ipv4FiveTuple),
            (Schema::ipv6_5tuple(), Form::Ipv6FiveTuple),
            (Schema::acl_ipv4(), Form::AclIpv4),
            (Schema::acl_ipv6(), Form::AclIpv6),
            (Schema::openflow15(), Form::OpenFlow),
        ];
        let mut forms = forms.into_iter();
        forms.find_map(|(built_in, form)| (*built_in == *schema).then_some(form))
    }
}

/// The form of each part of a policy, in order.
#[derive(Debug)]
struct Parts(Vec<Form>);

impl Parts {
    fn new(schemas: &[&Arc<Schema>]) -> Result<Parts, HeadersError> {
        let forms = schemas.iter().map(|schema| {
            Form::of(schema).ok_or_else(|| HeadersError::Schema {
                schema: schema.name().to_owned(),
            })
        });
        Ok(Parts(forms.collect::<Result<_, _>>()?))
    }

    /// Adds the packet's header to the first part that can represent it. Returns true
    /// if it was added.
    fn push(&self, trace: &mut PolicyTrace, parsed: &Parsed, in_port: u32) -> bool {
        let mut parts = self.0.iter().enumerate();
        parts.any(|(index, form)| {
            let part = PartId::from_index(index);
            match form {
                Form::Ipv4FiveTuple => push(trace, part, parsed.ipv4_5tuple()),
                Form::Ipv6FiveTuple => push(trace, part, parsed.ipv6_5tuple()),
                Form::AclIpv4 => push(trace, part, parsed.acl_ipv4()),
                Form::AclIpv6 => push(trace, part, parsed.acl_ipv6()),
                Form::OpenFlow => push(trace, part, parsed.openflow15(in_port)),
            }
        })
    }
}

/// Adds a header of a part, if there is one. Returns true if it was added.
fn push<const N: usize>(trace: &mut PolicyTrace, part: PartId, header: Option<[u128; N]>) -> bool {
    header.is_some_and(|header| {
        let pushed = trace.push(part, &header);
        // The parser's fields fit the widths in the schema.
        debug_assert!(pushed.is_ok(), "{pushed:?}");
        pushed.is_ok()
    })
}

/// Extracts a header for a policy from each packet of a capture, and counts packets.
///
/// A packet goes to the first part of the policy that can represent it, as with
/// [`PolicyClassifier::classify_header`]. A part of five-tuples or of firewall rules can
/// represent a packet of its IP version whose five-tuple is known. An `openflow15` part can
/// represent every packet whose EtherType is known, so parts after it get no packets. The
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
