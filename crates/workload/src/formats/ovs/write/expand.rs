//! Expanding a rule into flows: the kinds of packets that the rule matches and, for each
//! kind, values under masks for the fields of such packets.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use classyard::schema::Field;
use classyard::value::ValueFormat;
use classyard::{FieldMatch, RuleRef, Schema};
use classyard_text::ofctl::{RESERVED_PORTS, SHORTHANDS};

use super::super::place::family;
use super::super::{
    ETH_ARP, ETH_IPV4, ETH_IPV6, ETH_MPLS, ETH_MPLS_MULTICAST, ETH_RARP, PROTO_ICMP, PROTO_ICMPV6,
    PROTO_SCTP, PROTO_TCP, PROTO_UDP,
};
use super::FIELDS;

/// The maximum number of flows for one rule.
pub(super) const MAX_FLOWS: usize = 1 << 16;

/// The Ethernet types whose packets have fields of their own.
const TYPES: [u16; 6] = [
    ETH_IPV4,
    ETH_IPV6,
    ETH_ARP,
    ETH_RARP,
    ETH_MPLS,
    ETH_MPLS_MULTICAST,
];

/// The protocols whose packets have ports, or a type and a code (ICMP).
const WITH_PORTS: [u8; 5] = [PROTO_TCP, PROTO_UDP, PROTO_SCTP, PROTO_ICMP, PROTO_ICMPV6];

/// The fields that depend on the Ethernet type.
const ABOVE_ETHERNET: [&str; 8] = [
    "mpls_label",
    "mpls_tc",
    "src",
    "dst",
    "proto",
    "ip_dscp",
    "sport",
    "dport",
];

/// The reason for which a rule cannot be written as flows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hindrance {
    /// No packet meets all conditions of the rule.
    Impossible,
    /// The rule has conditions on IP fields behind MPLS labels.
    Labels,
    /// The rule has a mask or range on a field for which flows require an exact value.
    Mask,
    /// The rule would become more than [`MAX_FLOWS`] flows.
    Large,
}

impl Hindrance {
    pub(super) fn why(self) -> String {
        match self {
            Hindrance::Impossible => "no packet has all that it demands".to_owned(),
            Hindrance::Labels => "flows cannot match the fields after the MPLS labels".to_owned(),
            Hindrance::Mask => {
                "it has a mask or a range on a field where flows take one value".to_owned()
            }
            Hindrance::Large => format!("it would become more than {MAX_FLOWS} flows"),
        }
    }
}

/// The kinds of packets that a rule matches but its flows cannot match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Missed {
    /// True for packets with IP behind MPLS labels.
    pub(super) labels: bool,
    /// True for packets of other Ethernet types, which flows would have to list one by
    /// one. Such packets lack the rule's fields; the rule matches them because missing
    /// fields are 0.
    pub(super) other_types: bool,
}

impl Missed {
    pub(super) fn any(self) -> bool {
        self != Missed::default()
    }

    pub(super) fn why(self) -> String {
        let packets = match (self.labels, self.other_types) {
            (true, true) => "packets with IP behind MPLS labels, nor those of other Ethernet types",
            (true, false) => "packets with IP behind MPLS labels",
            _ => "packets of Ethernet types that lack the fields it demands",
        };
        format!("it has no Ethernet type, and flows cannot match {packets}")
    }
}

/// The flows of a rule: for each kind of packets, the product of the pieces of its fields.
pub(super) struct Expansion<'s> {
    /// The kinds of packets that flows can match.
    pub(super) kinds: Vec<KindOfPacket<'s>>,
    /// True if a field requires several values under masks.
    pub(super) ranged: bool,
    /// True if conditions were omitted because all packets of a kind meet them.
    pub(super) omitted: bool,
    /// The packets that the flows do not match.
    pub(super) missed: Missed,
}

/// A kind of packets: the Ethernet type and protocol, where flows must give them, and the
/// matches of its fields.
pub(super) struct KindOfPacket<'s> {
    eth_type: Option<u16>,
    protocol: Option<u8>,
    /// Each field with a condition, and its possible values with their masks.
    pieces: Vec<(&'s Field, Vec<(u128, u128)>)>,
}

/// The presence of a field in packets of one kind.
enum Place {
    /// The packets have the field.
    There,
    /// The packets have the field, with 8 bits only: the type or code of ICMP.
    Byte,
    /// The packets lack the field. It reads as 0.
    Missing,
    /// The packets may have the field, but flows cannot match it.
    Hidden,
}

impl<'s> Expansion<'s> {
    pub(super) fn of(rule: &RuleRef<'s>) -> Result<Expansion<'s>, Hindrance> {
        let schema = rule.schema();
        let mut demands = Vec::new();
        let (mut eth_type, mut protocol) = (None, None);
        for id in schema.field_ids() {
            let field = schema.field(id);
            match (field.name(), rule.field(id)) {
                (_, FieldMatch::Any) => {}
                ("eth_type", FieldMatch::Exact(value)) => eth_type = u16::try_from(value).ok(),
                (name, wanted) => {
                    let maskable =
                        |(known, _, mask): &(&str, &[u32], bool)| *known == name && *mask;
                    if !matches!(wanted, FieldMatch::Exact(_)) && !FIELDS.iter().any(maskable) {
                        return Err(Hindrance::Mask);
                    }
                    if let ("proto", FieldMatch::Exact(value)) = (name, wanted) {
                        protocol = u8::try_from(value).ok();
                    }
                    demands.push((field, wanted));
                }
            }
        }
        let demands = Demands {
            schema,
            has_type: schema.field_named("eth_type").is_some(),
            protocol,
            demands,
        };
        demands.expand(eth_type)
    }

    /// The number of flows.
    fn len(&self) -> usize {
        let product = |kind: &KindOfPacket<'_>| {
            let sizes = kind.pieces.iter().map(|(_, pieces)| pieces.len());
            sizes.fold(1, usize::saturating_mul)
        };
        self.kinds
            .iter()
            .map(product)
            .fold(0, usize::saturating_add)
    }

    /// Appends the match of each flow, with a comma before every field.
    pub(super) fn write(&self, flows: &mut Vec<String>) {
        for kind in &self.kinds {
            let mut heads = vec![kind.stack_text()];
            // Both fields of a VLAN tag are written at the position of the first field.
            let mut vlan = Some(kind.vlan_texts());
            let texts = kind.pieces.iter().filter_map(|(field, pieces)| {
                let text = |&(value, mask): &_| kind.field_text(field, value, mask);
                match field.name() {
                    "vlan_vid" | "vlan_pcp" => vlan.take(),
                    _ => Some(pieces.iter().map(text).collect()),
                }
            });
            for texts in texts {
                heads = heads
                    .iter()
                    .flat_map(|head| texts.iter().map(move |text| format!("{head}{text}")))
                    .collect();
            }
            flows.append(&mut heads);
        }
    }
}

/// The conditions of a rule, without the Ethernet type.
struct Demands<'s> {
    schema: &'s Schema,
    /// True if the schema has a field for the Ethernet type. If so, packets need not be
    /// IP, and the type and code of ICMP are in the port fields.
    has_type: bool,
    protocol: Option<u8>,
    demands: Vec<(&'s Field, FieldMatch)>,
}

impl<'s> Demands<'s> {
    fn expand(&self, eth_type: Option<u16>) -> Result<Expansion<'s>, Hindrance> {
        let mut expansion = Expansion {
            kinds: Vec::new(),
            ranged: false,
            omitted: false,
            missed: Missed::default(),
        };
        let mut hidden = false;
        for eth_type in self.types(eth_type) {
            for protocol in self.protocols(eth_type) {
                self.add(eth_type, protocol, &mut expansion, &mut hidden);
            }
        }
        if expansion.kinds.is_empty() {
            return Err(if hidden {
                Hindrance::Labels
            } else {
                Hindrance::Impossible
            });
        }
        if self.has_type && eth_type.is_none() && self.demands(&ABOVE_ETHERNET) {
            let mut above = self.demands.iter().filter(|(f, _)| is_above(f));
            expansion.missed = Missed {
                labels: hidden,
                other_types: above.all(|(field, wanted)| takes(field, wanted, 0)),
            };
        }
        if expansion.len() > MAX_FLOWS {
            return Err(Hindrance::Large);
        }
        Ok(expansion)
    }

    fn demands(&self, names: &[&str]) -> bool {
        let mut demands = self.demands.iter();
        demands.any(|(field, _)| names.contains(&field.name()))
    }

    /// Returns the Ethernet types that flows are written for; `None` means any type.
    fn types(&self, eth_type: Option<u16>) -> Vec<Option<u16>> {
        let each = |types: &[u16]| types.iter().copied().map(Some).collect();
        match eth_type {
            Some(_) => vec![eth_type],
            None if self.has_type && self.demands(&ABOVE_ETHERNET) => each(&TYPES),
            None if self.has_type => vec![None],
            None => match family(self.schema) {
                Some(family) => vec![Some(family)],
                None if self.demands(&["mpls_label", "mpls_tc"]) => {
                    each(&[ETH_MPLS, ETH_MPLS_MULTICAST])
                }
                None if self.demands(&ABOVE_ETHERNET) => each(&[ETH_IPV4, ETH_IPV6]),
                None => vec![None],
            },
        }
    }

    /// Returns the protocols that flows are written for; `None` means any protocol.
    fn protocols(&self, eth_type: Option<u16>) -> Vec<Option<u8>> {
        match self.protocol {
            _ if !matches!(eth_type, Some(ETH_IPV4 | ETH_IPV6)) => vec![None],
            Some(_) => vec![self.protocol],
            None if self.demands(&["sport", "dport"]) => {
                let without_ports = (0..=u8::MAX).filter(|p| !WITH_PORTS.contains(p));
                let protocols = WITH_PORTS.into_iter().chain(without_ports);
                protocols.map(Some).collect()
            }
            None => vec![None],
        }
    }

    /// Adds the packets with an Ethernet type and protocol, if the rule matches any.
    fn add(
        &self,
        eth_type: Option<u16>,
        protocol: Option<u8>,
        expansion: &mut Expansion<'s>,
        hidden: &mut bool,
    ) {
        let mut kind = KindOfPacket {
            eth_type,
            protocol,
            pieces: Vec::new(),
        };
        let (mut ranged, mut omitted) = (false, false);
        for (field, wanted) in &self.demands {
            let pieces = match kind.place(field, self.has_type) {
                // The protocol is written together with the Ethernet type.
                Place::There if field.name() == "proto" && protocol.is_some() => continue,
                Place::There => wanted.masked_values(field.width()),
                Place::Byte => {
                    let byte_values = 0..=u128::from(u8::MAX);
                    let accepted = byte_values.filter(|&value| takes(field, wanted, value));
                    let full = field.max_value();
                    let pieces: Vec<_> = accepted.map(|value| (value, full)).collect();
                    if pieces.is_empty() {
                        return;
                    }
                    if pieces.len() > usize::from(u8::MAX) {
                        omitted = true;
                        continue;
                    }
                    pieces
                }
                Place::Missing if takes(field, wanted, 0) => {
                    omitted = true;
                    continue;
                }
                Place::Missing => return,
                Place::Hidden => {
                    *hidden = true;
                    return;
                }
            };
            ranged |= pieces.len() > 1;
            kind.pieces.push((field, pieces));
        }
        expansion.ranged |= ranged;
        expansion.omitted |= omitted;
        expansion.kinds.push(kind);
    }
}

fn is_above(field: &Field) -> bool {
    ABOVE_ETHERNET.contains(&field.name())
}

impl KindOfPacket<'_> {
    fn place(&self, field: &Field, has_type: bool) -> Place {
        let there_if = |present: bool| {
            if present {
                Place::There
            } else {
                Place::Missing
            }
        };
        let is_ip = matches!(self.eth_type, Some(ETH_IPV4 | ETH_IPV6));
        let is_arp = self.is_arp();
        match (field.name(), self.eth_type) {
            _ if !is_above(field) => Place::There,
            ("mpls_label" | "mpls_tc", Some(ETH_MPLS | ETH_MPLS_MULTICAST)) => Place::There,
            ("mpls_label" | "mpls_tc", _) => Place::Missing,
            (_, Some(ETH_MPLS | ETH_MPLS_MULTICAST)) => Place::Hidden,
            ("src" | "dst", Some(ETH_IPV6)) => there_if(field.width() == 128),
            ("src" | "dst", Some(ETH_IPV4)) => there_if(field.width() == 32),
            ("src" | "dst", _) => there_if(is_arp && field.width() == 32),
            ("proto", _) => there_if(is_ip || is_arp),
            ("ip_dscp", _) => there_if(is_ip),
            _ => match self.protocol {
                Some(PROTO_TCP | PROTO_UDP | PROTO_SCTP) => there_if(is_ip),
                Some(_) if has_type && self.icmp().is_some() => Place::Byte,
                _ => Place::Missing,
            },
        }
    }

    fn is_arp(&self) -> bool {
        matches!(self.eth_type, Some(ETH_ARP | ETH_RARP))
    }

    /// Returns the flow field names of ICMP type and code, or `None` for other packets.
    fn icmp(&self) -> Option<[&'static str; 2]> {
        match (self.eth_type, self.protocol) {
            (Some(ETH_IPV4), Some(PROTO_ICMP)) => Some(["icmp_type", "icmp_code"]),
            (Some(ETH_IPV6), Some(PROTO_ICMPV6)) => Some(["icmpv6_type", "icmpv6_code"]),
            _ => None,
        }
    }

    fn stack_text(&self) -> String {
        let find = |protocol: Option<u8>| {
            let mut words = SHORTHANDS.iter();
            words.find(|(_, t, p)| Some(*t) == self.eth_type && *p == protocol)
        };
        if let Some((word, ..)) = find(self.protocol) {
            return format!(",{word}");
        }
        let mut text = match (find(None), self.eth_type) {
            (Some((word, ..)), _) => format!(",{word}"),
            (None, Some(eth_type)) => format!(",dl_type={eth_type:#06x}"),
            (None, None) => String::new(),
        };
        if let Some(protocol) = self.protocol {
            // Writing to a String cannot fail.
            let _ = write!(text, ",nw_proto={protocol}");
        }
        text
    }

    /// Returns the conditions on a VLAN tag, as text; an empty text if there are none.
    /// `dl_vlan` and `dl_vlan_pcp` match tagged packets only. A rule for 0 also matches
    /// packets without a tag; it is written as `vlan_tci` with a mask.
    fn vlan_texts(&self) -> Vec<String> {
        let values = |name| -> Vec<Option<u128>> {
            let mut fields = self.pieces.iter();
            match fields.find(|(field, _)| field.name() == name) {
                None => vec![None],
                Some((_, pieces)) => pieces
                    .iter()
                    .map(|&(value, mask)| (mask != 0).then_some(value))
                    .collect(),
            }
        };
        let priorities = values("vlan_pcp");
        let text = |vid: Option<u128>, pcp: Option<u128>| match (vid, pcp) {
            (None, None) => String::new(),
            (Some(0), None) => ",vlan_tci=0x0000/0x0fff".to_owned(),
            (None, Some(0)) => ",vlan_tci=0x0000/0xe000".to_owned(),
            (Some(0), Some(0)) => ",vlan_tci=0x0000/0xefff".to_owned(),
            (Some(vid), None) => format!(",dl_vlan={vid}"),
            (None, Some(pcp)) => format!(",dl_vlan_pcp={pcp}"),
            (Some(vid), Some(pcp)) => format!(",dl_vlan={vid},dl_vlan_pcp={pcp}"),
        };
        let numbers = values("vlan_vid").into_iter();
        numbers
            .flat_map(|vid| priorities.iter().map(move |&pcp| text(vid, pcp)))
            .collect()
    }

    fn field_text(&self, field: &Field, value: u128, mask: u128) -> String {
        let full = field.max_value();
        let whole = mask == full;
        let format = field.format();
        let shown = |value| match field.width() {
            32 if field.name() != "in_port" => ip(value),
            128 => Ipv6Addr::from_bits(value).to_string(),
            48 => ValueFormat::Mac.display(value).to_string(),
            64 => format!("{value:#x}"),
            _ => format.display(value).to_string(),
        };
        let free = full & !mask;
        let prefix = (free & free.wrapping_add(1) == 0).then(|| mask.count_ones());
        let name = match (field.name(), field.width()) {
            ("in_port", _) => {
                let named = RESERVED_PORTS
                    .iter()
                    .find(|(_, number)| u128::from(*number) == value);
                return match named {
                    Some((name, _)) => format!(",in_port={name}"),
                    None => format!(",in_port={value}"),
                };
            }
            ("eth_src", _) => "dl_src",
            ("eth_dst", _) => "dl_dst",
            ("src", _) if self.is_arp() => "arp_spa",
            ("dst", _) if self.is_arp() => "arp_tpa",
            ("src", 32) => "nw_src",
            ("dst", 32) => "nw_dst",
            ("src", _) => "ipv6_src",
            ("dst", _) => "ipv6_dst",
            ("proto", _) => return format!(",arp_op={value}"),
            ("ip_dscp", _) => return format!(",nw_tos={}", value << 2),
            ("sport", _) => match self.icmp() {
                Some([name, _]) => return format!(",{name}={value}"),
                None => "tp_src",
            },
            ("dport", _) => match self.icmp() {
                Some([_, name]) => return format!(",{name}={value}"),
                None => "tp_dst",
            },
            (name @ ("mpls_label" | "mpls_tc"), _) => return format!(",{name}={value}"),
            (other, _) => other,
        };
        match prefix {
            _ if mask == 0 => String::new(),
            _ if whole && matches!(name, "tp_src" | "tp_dst") => format!(",{name}={value}"),
            _ if matches!(name, "tp_src" | "tp_dst") => format!(",{name}={value:#x}/{mask:#x}"),
            _ if whole => format!(",{name}={}", shown(value)),
            Some(length) if matches!(field.width(), 32 | 128) => {
                format!(",{name}={}/{length}", shown(value))
            }
            _ => format!(",{name}={}/{}", shown(value), shown(mask)),
        }
    }
}

/// True if a match accepts `value`.
fn takes(field: &Field, wanted: &FieldMatch, value: u128) -> bool {
    match *wanted {
        FieldMatch::Range { low, high } => (low..=high).contains(&value),
        _ => wanted
            .masked_values(field.width())
            .iter()
            .any(|(bits, mask)| (bits ^ value) & mask == 0),
    }
}

fn ip(value: u128) -> String {
    Ipv4Addr::from_bits(u32::try_from(value).unwrap_or(u32::MAX)).to_string()
}
