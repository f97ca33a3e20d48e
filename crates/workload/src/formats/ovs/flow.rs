//! One flow: its text, and its place in the schemas' fields.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use classyard::policy::PartId;
use classyard::{FieldMatch, Schema, ValueFormat};

use super::{
    ARP, DEFAULT_PRIORITY, Fault, ICMP, ICMPV6, IPV4, IPV6, MPLS, MPLS_MULTICAST, PORTS, RARP,
    SCTP, SHORTHANDS, TCP, UDP, quoted,
};
use crate::formats::value::{kind_takes, parse_length, too_large};

/// A flow, before it is known which schema it is for.
#[derive(Debug)]
pub(super) struct Flow<'t> {
    pub(super) priority: u32,
    pub(super) action: &'t str,
    /// Whether the action leads to another table.
    pub(super) jumps: bool,
    pub(super) cookie: bool,
    pub(super) timeout: bool,
    pub(super) flags: bool,
    pub(super) low_tos_bits: bool,
    eth_type: Option<(u16, &'t str)>,
    protocol: Option<(u8, &'t str)>,
    /// The protocol, if it was said as the operation of ARP.
    arp_operation: Option<&'t str>,
    demands: Vec<Demand<'t>>,
}

/// What a flow demands of one field.
#[derive(Clone, Debug)]
struct Demand<'t> {
    /// The schema's name of the field.
    field: &'static str,
    /// The width that the field must have, if it matters.
    width: Option<u32>,
    wanted: FieldMatch,
    needs: Needs,
    text: &'t str,
}

/// What must stand on the line for a field to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Ipv4OrArp,
    Ipv6,
    AnyIp,
    /// ARP or RARP.
    Arp,
    Mpls,
    /// A VLAN tag, which only a number or a priority other than 0 shows.
    Tag,
    /// ICMP or ICMPv6: ovs-ofctl prints `icmp_type` for both.
    Icmp,
    Icmpv6,
    /// A protocol with ports; this one, if the field's name says which. Without
    /// one, ICMP as well: its type and code.
    Ports(Option<u8>),
}

impl<'t> Flow<'t> {
    /// Takes a line apart. Comments are cut off already.
    pub(super) fn parse(line: &'t str) -> Result<Flow<'t>, Fault<'t>> {
        let mut flow = Flow {
            priority: DEFAULT_PRIORITY,
            action: "",
            jumps: false,
            cookie: false,
            timeout: false,
            flags: false,
            low_tos_bits: false,
            eth_type: None,
            protocol: None,
            arp_operation: None,
            demands: Vec::new(),
        };
        let mut rest = line;
        let mut first = true;
        loop {
            let token = match next_token(&mut rest) {
                Token::Actions(action) => {
                    flow.action = action.trim();
                    if flow.action.is_empty() {
                        return Err(Fault::missing(line, "actions, or `drop`"));
                    }
                    flow.jumps = is_jump(flow.action);
                    break;
                }
                Token::End => return Err(Fault::missing(line, "`actions=…`")),
                Token::Word(token) => token,
            };
            match token {
                "flow" | "add" if first => {}
                "modify" | "modify_strict" | "delete" | "delete_strict" if first => {
                    return Err(Fault::new(
                        token,
                        format!("a flow to {token}"),
                        "flows that are there, as this is no script",
                    ));
                }
                _ => flow.attribute(token)?,
            }
            first = token == "flow";
        }
        flow.check_needs()?;
        Ok(flow)
    }

    fn attribute(&mut self, token: &'t str) -> Result<(), Fault<'t>> {
        let Some((key, value)) = token.split_once('=') else {
            return self.word(token);
        };
        match key {
            "priority" => self.priority = number(value, 16, key)?,
            // Which table counts is decided by `table_of`.
            "table" => {
                let _: u8 = number(value, 8, key)?;
            }
            "cookie" => {
                self.cookie |= value
                    .bytes()
                    .any(|b| matches!(b, b'1'..=b'9' | b'a'..=b'f'));
            }
            "idle_timeout" | "hard_timeout" => self.timeout |= value != "0",
            "importance" => self.flags |= value != "0",
            "duration" | "n_packets" | "n_bytes" | "idle_age" | "hard_age" => {}
            _ if value == "*" && (is_field(key) || WITHOUT_PLACE.contains(&key)) => {}
            _ => self.field(key, value, token)?,
        }
        Ok(())
    }

    fn word(&mut self, token: &'t str) -> Result<(), Fault<'t>> {
        if let Some(&(_, eth_type, protocol)) = SHORTHANDS.iter().find(|s| s.0 == token) {
            self.set_eth_type(eth_type, token)?;
            if let Some(protocol) = protocol {
                self.set_protocol(protocol, token)?;
            }
            return Ok(());
        }
        match token {
            "eth" => {}
            "send_flow_rem" | "check_overlap" | "reset_counts" | "no_packet_counts"
            | "no_byte_counts" => self.flags = true,
            _ => return Err(unsupported(token, token)),
        }
        Ok(())
    }

    fn field(&mut self, key: &'t str, value: &'t str, token: &'t str) -> Result<(), Fault<'t>> {
        use Needs::{AnyIp, Arp, Icmp, Icmpv6, Ipv4OrArp, Ipv6, Mpls, Nothing, Ports, Tag};
        let (field, width, wanted, needs) = match key {
            "in_port" => ("in_port", None, port_number(value)?, Nothing),
            "metadata" => ("metadata", None, masked(value, 64, key)?, Nothing),
            "dl_src" | "eth_src" => ("eth_src", None, mac(value)?, Nothing),
            "dl_dst" | "eth_dst" => ("eth_dst", None, mac(value)?, Nothing),
            "dl_type" | "eth_type" => return self.set_eth_type(number(value, 16, key)?, token),
            "dl_vlan" => ("vlan_vid", None, dl_vlan(value)?, Tag),
            "vlan_vid" => ("vlan_vid", None, vlan_vid(value)?, Tag),
            "vlan_tci" => return self.set_vlan_tci(value, token),
            "dl_vlan_pcp" | "vlan_pcp" => ("vlan_pcp", None, exact(value, 3, key)?, Tag),
            "mpls_label" => ("mpls_label", None, exact(value, 20, key)?, Mpls),
            "mpls_tc" => ("mpls_tc", None, exact(value, 3, key)?, Mpls),
            "nw_src" | "ip_src" => ("src", Some(32), ipv4(value)?, Ipv4OrArp),
            "nw_dst" | "ip_dst" => ("dst", Some(32), ipv4(value)?, Ipv4OrArp),
            "arp_spa" => ("src", Some(32), ipv4(value)?, Arp),
            "arp_tpa" => ("dst", Some(32), ipv4(value)?, Arp),
            "arp_op" => {
                self.arp_operation = Some(token);
                return self.set_protocol(number(value, 8, key)?, token);
            }
            "ipv6_src" => ("src", Some(128), ipv6(value)?, Ipv6),
            "ipv6_dst" => ("dst", Some(128), ipv6(value)?, Ipv6),
            "nw_proto" | "ip_proto" => {
                return self.set_protocol(number(value, 8, key)?, token);
            }
            "icmp_type" => ("sport", None, byte(value, key)?, Icmp),
            "icmp_code" => ("dport", None, byte(value, key)?, Icmp),
            "icmpv6_type" => ("sport", None, byte(value, key)?, Icmpv6),
            "icmpv6_code" => ("dport", None, byte(value, key)?, Icmpv6),
            "nw_tos" => {
                let tos: u8 = number(value, 8, key)?;
                self.low_tos_bits |= tos & 3 != 0;
                let dscp = FieldMatch::Exact(u128::from(tos >> 2));
                ("ip_dscp", None, dscp, AnyIp)
            }
            "ip_dscp" => ("ip_dscp", None, exact(value, 6, key)?, AnyIp),
            _ => {
                let (protocol, side) = match key.split_once('_') {
                    Some(("tp", side)) => (None, side),
                    Some(("tcp", side)) => (Some(TCP), side),
                    Some(("udp", side)) => (Some(UDP), side),
                    Some(("sctp", side)) => (Some(SCTP), side),
                    _ => return Err(unsupported(key, token)),
                };
                let field = match side {
                    "src" => "sport",
                    "dst" => "dport",
                    _ => return Err(unsupported(key, token)),
                };
                (field, None, masked(value, 16, key)?, Ports(protocol))
            }
        };
        self.demand(Demand {
            field,
            width,
            wanted,
            needs,
            text: token,
        })
    }

    fn demand(&mut self, demand: Demand<'t>) -> Result<(), Fault<'t>> {
        if let Some(other) = self.demands.iter().find(|d| d.field == demand.field) {
            return Err(Fault::new(
                demand.text,
                format!(
                    "{} after {}: one field twice",
                    quoted(demand.text),
                    quoted(other.text)
                ),
                "each field at most once",
            ));
        }
        self.demands.push(demand);
        Ok(())
    }

    fn set_eth_type(&mut self, eth_type: u16, token: &'t str) -> Result<(), Fault<'t>> {
        match self.eth_type {
            Some((other, text)) if other != eth_type => Err(contradiction(token, text)),
            _ => {
                self.eth_type = Some((eth_type, token));
                Ok(())
            }
        }
    }

    fn set_protocol(&mut self, protocol: u8, token: &'t str) -> Result<(), Fault<'t>> {
        match self.protocol {
            Some((other, text)) if other != protocol => Err(contradiction(token, text)),
            _ => {
                self.protocol = Some((protocol, token));
                Ok(())
            }
        }
    }

    /// The whole tag: priority in the upper three bits, a one if there is a tag,
    /// the VLAN's number.
    fn set_vlan_tci(&mut self, value: &'t str, token: &'t str) -> Result<(), Fault<'t>> {
        let (tci, mask) = split_mask(value, 16, "vlan_tci")?;
        let mask = mask.unwrap_or(0xffff);
        let needs = match (mask & 0x1000 != 0, tci & 0x1000 != 0) {
            (true, true) => Needs::Tag,
            (true, false) => return Err(no_tag_bit(token)),
            (false, _) => Needs::Nothing,
        };
        if mask == 0x1000 {
            return Err(no_tag_bit(token));
        }
        let fields = [
            ("vlan_vid", 12, mask & 0x0fff, tci & 0x0fff),
            ("vlan_pcp", 3, mask >> 13, tci >> 13),
        ];
        for (field, width, mask, value) in fields {
            if mask != 0 {
                self.demand(Demand {
                    field,
                    width: None,
                    wanted: ternary(value, Some(mask), width),
                    needs,
                    text: token,
                })?;
            }
        }
        Ok(())
    }

    /// Whether the flow demands a VLAN's number or priority that packets without
    /// a tag, whose fields are 0, do not have.
    fn shows_tag(&self) -> bool {
        let mut demands = self.demands.iter();
        demands.any(|demand| {
            matches!(demand.field, "vlan_vid" | "vlan_pcp")
                && match demand.wanted {
                    FieldMatch::Exact(value) => value != 0,
                    FieldMatch::Ternary { value, mask } => value & mask != 0,
                    _ => false,
                }
        })
    }

    /// Every field must have what it needs on the line.
    fn check_needs(&self) -> Result<(), Fault<'t>> {
        let eth_type = self.eth_type.map(|(eth_type, _)| eth_type);
        let protocol = self.protocol.map(|(protocol, _)| protocol);
        let is_ip = matches!(eth_type, Some(IPV4 | IPV6));
        let is_arp = matches!(eth_type, Some(ARP | RARP));
        if let Some((_, text)) = self.protocol.filter(|_| !is_ip && !is_arp) {
            let (found, expected) = match self.arp_operation {
                Some(_) => ("an operation of ARP without `arp` or `rarp`", ARP_WORDS),
                None => (
                    "a protocol without `ip` or `ipv6`",
                    "`ip` or `ipv6` on the line",
                ),
            };
            return Err(Fault::new(text, found, expected));
        }
        if let Some(text) = self.arp_operation.filter(|_| !is_arp) {
            let found = "an operation of ARP without `arp` or `rarp`";
            return Err(Fault::new(text, found, ARP_WORDS));
        }
        for demand in &self.demands {
            let (met, expected) = match demand.needs {
                Needs::Nothing => (true, ""),
                Needs::Ipv4OrArp => (
                    is_arp || eth_type == Some(IPV4),
                    "`ip`, `tcp`, `arp`, … or dl_type=0x0800 on the line",
                ),
                Needs::Ipv6 => (
                    eth_type == Some(IPV6),
                    "`ipv6`, `tcp6`, … or dl_type=0x86dd on the line",
                ),
                Needs::AnyIp => (is_ip, "`ip` or `ipv6` on the line"),
                Needs::Arp => (is_arp, ARP_WORDS),
                Needs::Mpls => (
                    matches!(eth_type, Some(MPLS | MPLS_MULTICAST)),
                    "`mpls` or `mplsm` on the line",
                ),
                Needs::Tag => (self.shows_tag(), TAG_WORDS),
                Needs::Icmp => (self.is_icmp(), "`icmp` or `icmp6` on the line"),
                Needs::Icmpv6 => (
                    self.is_icmp() && eth_type == Some(IPV6),
                    "`icmp6` on the line",
                ),
                Needs::Ports(Some(wanted)) => (
                    is_ip && protocol == Some(wanted),
                    "the field's protocol on the line",
                ),
                Needs::Ports(None) if self.is_icmp() => (
                    matches!(demand.wanted, FieldMatch::Any)
                        || matches!(demand.wanted, FieldMatch::Exact(value) if value <= 255),
                    "a type or code of ICMP: 0 to 255, without a mask",
                ),
                Needs::Ports(None) => (
                    is_ip && matches!(protocol, Some(TCP | UDP | SCTP)),
                    "`tcp`, `udp` or `sctp`, or one with a 6, on the line",
                ),
            };
            if !met {
                let found = match demand.needs {
                    Needs::Ports(None) if self.is_icmp() => {
                        format!("{} is no type or code of ICMP", quoted(demand.text))
                    }
                    Needs::Tag => {
                        format!("{} asks whether there is a VLAN tag", quoted(demand.text))
                    }
                    _ => format!("{} without what it needs", quoted(demand.text)),
                };
                return Err(Fault::new(demand.text, found, expected));
            }
        }
        Ok(())
    }

    /// Whether the packets are ICMP in IPv4 or ICMPv6 in IPv6.
    fn is_icmp(&self) -> bool {
        let stack = (self.eth_type, self.protocol);
        matches!(
            stack,
            (Some((IPV4, _)), Some((ICMP, _))) | (Some((IPV6, _)), Some((ICMPV6, _)))
        )
    }
}

const ARP_WORDS: &str = "`arp` or `rarp` on the line";

/// The table of a line's flow, 0 if it names none; `None` if the line is no
/// flow or its table is no number.
pub(super) fn table_of(line: &str) -> Option<u8> {
    let mut rest = line;
    let mut table = None;
    loop {
        match next_token(&mut rest) {
            Token::Word(token) => {
                if let Some(value) = token.strip_prefix("table=") {
                    table = Some(number(value, 8, "table").ok()?);
                }
            }
            Token::Actions(_) => return Some(table.unwrap_or(0)),
            Token::End => return table,
        }
    }
}

/// Whether an action leads to another table.
fn is_jump(action: &str) -> bool {
    let mut words = action.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.any(|word| {
        ["resubmit", "goto_table"]
            .iter()
            .any(|jump| word.eq_ignore_ascii_case(jump))
    })
}

/// A piece of a line.
enum Token<'t> {
    /// A field, a word or an attribute.
    Word(&'t str),
    /// What stands behind `actions=`, which is the rest of the line.
    Actions(&'t str),
    /// Nothing is left.
    End,
}

/// Takes the next piece of what is left of a line.
fn next_token<'t>(rest: &mut &'t str) -> Token<'t> {
    let start = rest.trim_start_matches([',', ' ', '\t', '\u{b}', '\u{c}', '\r']);
    let action = start
        .strip_prefix("actions=")
        .or(start.strip_prefix("action="));
    if let Some(action) = action {
        return Token::Actions(action);
    }
    if start.is_empty() {
        return Token::End;
    }
    let (token, tail) = start.split_at(token_length(start));
    *rest = tail;
    Token::Word(token)
}

/// Up to the next comma or blank outside of quotes.
fn token_length(text: &str) -> usize {
    let mut in_quotes = false;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => in_quotes = !in_quotes,
            b',' if !in_quotes => return index,
            b if b.is_ascii_whitespace() && !in_quotes => return index,
            b'\x0b' if !in_quotes => return index,
            _ => {}
        }
    }
    text.len()
}

/// Whether flows have a field of that name here.
fn is_field(key: &str) -> bool {
    const FIELDS: [&str; 30] = [
        "in_port",
        "metadata",
        "dl_src",
        "eth_src",
        "dl_dst",
        "eth_dst",
        "dl_type",
        "eth_type",
        "dl_vlan",
        "vlan_vid",
        "vlan_tci",
        "dl_vlan_pcp",
        "vlan_pcp",
        "mpls_label",
        "mpls_tc",
        "nw_src",
        "nw_dst",
        "ipv6_src",
        "ipv6_dst",
        "nw_proto",
        "nw_tos",
        "tp_src",
        "tp_dst",
        "icmp_type",
        "icmp_code",
        "icmpv6_type",
        "icmpv6_code",
        "arp_spa",
        "arp_tpa",
        "arp_op",
    ];
    FIELDS.contains(&key)
}

/// Fields of ARP and of neighbour discovery for which schemas have no field.
const WITHOUT_PLACE: [&str; 7] = [
    "arp_sha",
    "arp_tha",
    "nd_target",
    "nd_sll",
    "nd_tll",
    "nd_reserved",
    "nd_options_type",
];

fn unsupported<'t>(key: &str, token: &'t str) -> Fault<'t> {
    let found = if WITHOUT_PLACE.contains(&key) {
        format!("no schema has a field for {}", quoted(key))
    } else {
        format!("unsupported field {}", quoted(key))
    };
    Fault::new(
        token,
        found,
        "a field that schemas have, or a flow without it (dropping it would change what matches)",
    )
}

fn contradiction<'t>(token: &'t str, other: &str) -> Fault<'t> {
    Fault::new(
        token,
        format!("{} contradicts {}", quoted(token), quoted(other)),
        "one Ethernet type and one protocol",
    )
}

/// What can be demanded instead of a tag.
const TAG_WORDS: &str = "a VLAN's number or priority that is not 0, such as dl_vlan=5, or \
    vlan_tci=0x0000/0x0fff for 0 with a tag or without; schemas have no field for the presence \
    of a tag";

fn no_tag_bit(token: &str) -> Fault<'_> {
    Fault::new(
        token,
        format!("{} asks whether there is a VLAN tag", quoted(token)),
        TAG_WORDS,
    )
}

/// A decimal or hexadecimal number of at most `width` bits.
fn number<'t, T: TryFrom<u128>>(text: &'t str, width: u32, key: &str) -> Result<T, Fault<'t>> {
    let value = ValueFormat::Decimal.parse(text).ok_or_else(|| {
        Fault::new(
            text,
            format!("{} is no value of `{key}`", quoted(text)),
            ValueFormat::Decimal.expectation(),
        )
    })?;
    let fits = value <= u128::MAX >> (128 - width);
    let value = if fits { T::try_from(value).ok() } else { None };
    value.ok_or_else(|| too_large(text, key, width))
}

fn exact<'t>(text: &'t str, width: u32, key: &str) -> Result<FieldMatch, Fault<'t>> {
    number(text, width, key).map(FieldMatch::Exact)
}

/// A type or code of ICMP. Open vSwitch takes a mask of all bits or of none.
fn byte<'t>(text: &'t str, key: &str) -> Result<FieldMatch, Fault<'t>> {
    let (value, mask) = split_mask(text, 8, key)?;
    match ternary(value, mask, 8) {
        FieldMatch::Ternary { .. } => Err(Fault::new(
            text,
            format!("{} has a mask, which `{key}` does not take", quoted(text)),
            "one value, 0 to 255",
        )),
        wanted => Ok(wanted),
    }
}

/// A number, and its mask if it has one.
fn split_mask<'t>(text: &'t str, width: u32, key: &str) -> Result<(u128, Option<u128>), Fault<'t>> {
    match text.split_once('/') {
        None => Ok((number(text, width, key)?, None)),
        Some((value, mask)) => Ok((number(value, width, key)?, Some(number(mask, width, key)?))),
    }
}

fn masked<'t>(text: &'t str, width: u32, key: &str) -> Result<FieldMatch, Fault<'t>> {
    let (value, mask) = split_mask(text, width, key)?;
    Ok(ternary(value, mask, width))
}

/// The simplest match that says a value under a mask.
fn ternary(value: u128, mask: Option<u128>, width: u32) -> FieldMatch {
    match mask {
        None => FieldMatch::Exact(value),
        Some(0) => FieldMatch::Any,
        Some(mask) if mask == u128::MAX >> (128 - width) => FieldMatch::Exact(value),
        Some(mask) => FieldMatch::Ternary { value, mask },
    }
}

fn port_number(text: &str) -> Result<FieldMatch, Fault<'_>> {
    let named = PORTS
        .iter()
        .find(|(name, _)| text.eq_ignore_ascii_case(name));
    if let Some((_, number)) = named {
        return Ok(FieldMatch::Exact(u128::from(*number)));
    }
    if text.starts_with('"') || text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(Fault::new(
            text,
            format!("the name of a port, {}", quoted(text)),
            "the port's number (ovs-ofctl prints numbers with --no-names)",
        ));
    }
    exact(text, 32, "in_port")
}

fn mac(text: &str) -> Result<FieldMatch, Fault<'_>> {
    let parse = |text| {
        ValueFormat::Mac
            .parse(text)
            .filter(|_| text.contains(':'))
            .ok_or_else(|| {
                Fault::new(
                    text,
                    format!("{} is no Ethernet address", quoted(text)),
                    ValueFormat::Mac.expectation(),
                )
            })
    };
    match text.split_once('/') {
        None => parse(text).map(FieldMatch::Exact),
        Some((value, mask)) => Ok(ternary(parse(value)?, Some(parse(mask)?), 48)),
    }
}

fn dl_vlan(text: &str) -> Result<FieldMatch, Fault<'_>> {
    let (vid, mask) = split_mask(text, 16, "dl_vlan")?;
    match mask {
        _ if vid == 0xffff => Err(no_tag_bit(text)),
        None | Some(0xfff | 0xffff) if vid <= 0xfff => Ok(FieldMatch::Exact(vid)),
        Some(mask @ 0..=0xfff) if vid <= 0xfff => Ok(ternary(vid, Some(mask), 12)),
        _ => Err(too_large(text, "dl_vlan", 12)),
    }
}

/// As OpenFlow 1.2 has it: bit 12 says that there is a tag.
fn vlan_vid(text: &str) -> Result<FieldMatch, Fault<'_>> {
    let (vid, mask) = split_mask(text, 13, "vlan_vid")?;
    let mask = mask.unwrap_or(0x1fff);
    if vid & mask & 0x1000 == 0 || mask & 0xfff == 0 {
        return Err(no_tag_bit(text));
    }
    Ok(ternary(vid & 0xfff, Some(mask & 0xfff), 12))
}

fn ipv4(text: &str) -> Result<FieldMatch, Fault<'_>> {
    address(text, 32, |text| {
        text.parse::<Ipv4Addr>().ok().map(|a| a.to_bits().into())
    })
}

fn ipv6(text: &str) -> Result<FieldMatch, Fault<'_>> {
    address(text, 128, |text| {
        text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits)
    })
}

/// An address, perhaps with a prefix length or a mask in the form of one.
fn address(
    text: &str,
    width: u32,
    parse: impl Fn(&str) -> Option<u128>,
) -> Result<FieldMatch, Fault<'_>> {
    let value = |part| {
        parse(part).ok_or_else(|| {
            let format = if width == 32 {
                ValueFormat::Ipv4
            } else {
                ValueFormat::Ipv6
            };
            Fault::new(
                part,
                format!("{} is no address", quoted(part)),
                format.expectation(),
            )
        })
    };
    match text.split_once('/') {
        None => value(text).map(FieldMatch::Exact),
        Some((bits, mask)) => match parse(mask) {
            Some(mask) => Ok(ternary(value(bits)?, Some(mask), width)),
            None => Ok(FieldMatch::Prefix {
                value: value(bits)?,
                length: parse_length(mask, width)?,
            }),
        },
    }
}

// ------------------------------------------------------------------ placing

/// The matches of a flow in each part where it stands; at least one.
pub(super) fn place<'t>(
    flow: &Flow<'t>,
    schemas: &[Arc<Schema>],
    name: &str,
) -> Result<Vec<(PartId, Vec<FieldMatch>)>, Fault<'t>> {
    let mut parts = Vec::with_capacity(schemas.len());
    for (index, schema) in schemas.iter().enumerate() {
        if let Some(matches) = place_in(flow, schema)? {
            parts.push((PartId::from_index(index), matches));
        }
    }
    if let (true, Some((eth_type, text))) = (parts.is_empty(), flow.eth_type) {
        return Err(Fault::new(
            text,
            format!("Ethernet type {eth_type:#06x} does not occur in schema `{name}`"),
            "flows of the schema's packets",
        ));
    }
    Ok(parts)
}

/// The family of a schema that has no Ethernet type, by its addresses.
pub(super) fn family(schema: &Schema) -> Option<u16> {
    let source = schema.field_named("src").map(|id| schema.field(id).width());
    match source {
        Some(32) => Some(IPV4),
        Some(128) => Some(IPV6),
        _ => None,
    }
}

/// The matches for one schema, or `None` if none of its packets can match.
fn place_in<'t>(
    flow: &Flow<'t>,
    schema: &Arc<Schema>,
) -> Result<Option<Vec<FieldMatch>>, Fault<'t>> {
    let mut demands = Vec::with_capacity(flow.demands.len() + 2);
    let typed = schema.field_named("eth_type").is_some();
    if let Some((eth_type, text)) = flow.eth_type {
        if typed {
            demands.push(plain("eth_type", eth_type.into(), text));
        } else if family(schema) != Some(eth_type) {
            return Ok(None);
        }
    }
    if let Some((protocol, text)) = flow.protocol {
        demands.push(plain("proto", protocol.into(), text));
    }
    demands.extend_from_slice(&flow.demands);

    let mut matches = vec![FieldMatch::Any; schema.fields().len()];
    for demand in demands {
        if demand.wanted == FieldMatch::Any {
            continue;
        }
        if !typed && flow.is_icmp() && matches!(demand.field, "sport" | "dport") {
            return Err(Fault::new(
                demand.text,
                format!(
                    "schema `{}` has no field for {}: packets of ICMP have the ports 0 there",
                    schema.name(),
                    quoted(demand.text)
                ),
                "a flow without it, or the schema openflow15",
            ));
        }
        let place = schema.field_named(demand.field).filter(|&id| {
            let width = schema.field(id).width();
            demand.width.is_none_or(|wanted| wanted == width)
        });
        let Some(id) = place else {
            return Err(Fault::new(
                demand.text,
                format!(
                    "schema `{}` has no field for {}",
                    schema.name(),
                    quoted(demand.text)
                ),
                "a flow without it, or another schema",
            ));
        };
        let field = schema.field(id);
        let numbers = match demand.wanted {
            FieldMatch::Exact(value) | FieldMatch::Prefix { value, .. } => [value, 0],
            FieldMatch::Ternary { value, mask } => [value, mask],
            FieldMatch::Any | FieldMatch::Range { .. } => [0, 0],
        };
        if numbers.iter().any(|&number| number > field.max_value()) {
            return Err(too_large(demand.text, field.name(), field.width()));
        }
        if !kind_takes(field, &demand.wanted) {
            return Err(Fault::new(
                demand.text,
                format!(
                    "schema `{}` cannot say the mask of {}: `{}` takes {} matches",
                    schema.name(),
                    quoted(demand.text),
                    field.name(),
                    field.kind()
                ),
                "a value without a mask, as the field takes one value or any",
            ));
        }
        matches[id.index()] = demand.wanted;
    }
    Ok(Some(matches))
}

fn plain<'t>(field: &'static str, value: u128, text: &'t str) -> Demand<'t> {
    Demand {
        field,
        width: None,
        wanted: FieldMatch::Exact(value),
        needs: Needs::Nothing,
        text,
    }
}
