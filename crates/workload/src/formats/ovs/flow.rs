//! One flow: what its text demands of which fields.

mod place;
mod values;

use classyard::FieldMatch;

use super::{
    ARP, DEFAULT_PRIORITY, Fault, ICMP, ICMPV6, IPV4, IPV6, MPLS, MPLS_MULTICAST, RARP, SCTP,
    SHORTHANDS, TCP, UDP, quoted,
};

pub(super) use place::{family, place};
use values::{
    TAG_WORDS, byte, dl_vlan, exact, ipv4, ipv6, mac, masked, no_tag_bit, number, port_number,
    split_mask, ternary, vlan_vid,
};

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
