//! Matches and targets of iptables by their names.

use crate::linux_protocols;

/// Matches that depend on the packet and its connection only, and that no field expresses.
const STATELESS_MODULES: [&str; 38] = [
    "addrtype",
    "ah",
    "bpf",
    "cgroup",
    "cluster",
    "connlabel",
    "connmark",
    "devgroup",
    "dscp",
    "dst",
    "ecn",
    "esp",
    "eui64",
    "frag",
    "geoip",
    "hbh",
    "helper",
    "hl",
    "ipcomp",
    "ipp2p",
    "ipv6header",
    "ipvs",
    "length",
    "mac",
    "mark",
    "mh",
    "osf",
    "owner",
    "physdev",
    "pkttype",
    "policy",
    "realm",
    "rpfilter",
    "rt",
    "socket",
    "srh",
    "string",
    "u32",
];

/// Further matches like [`STATELESS_MODULES`].
const STATELESS_HEADER_MODULES: [&str; 5] = ["length2", "tcpmss", "tos", "ttl", "vlan"];

/// True if a match that no field expresses gives the same answer for the same packet
/// always, so that two rules with the match have the same condition.
pub(super) fn is_stateless(module: &str) -> bool {
    STATELESS_MODULES.contains(&module) || STATELESS_HEADER_MODULES.contains(&module)
}

/// Returns the matches that may answer differently after the target has changed the packet.
pub(super) fn altered_by(target: &str) -> &'static [&'static str] {
    match target {
        "MARK" | "HMARK" => &["mark"],
        "CONNMARK" | "CT" => &["mark", "connmark", "connlabel", "helper"],
        "TOS" | "DSCP" | "ECN" => &["tos", "dscp", "ecn", "u32", "bpf", "string"],
        "TTL" | "HL" => &["ttl", "hl", "u32", "bpf", "string"],
        "TCPMSS" | "TCPOPTSTRIP" => &["tcpmss", "tcp-option", "length", "u32", "bpf", "string"],
        "CHECKSUM" | "SNPT" | "DNPT" => &["u32", "bpf", "string"],
        "TPROXY" => &["mark", "socket"],
        _ => &[],
    }
}

/// The effect of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Accept,
    Drop,
    Reject,
    Return,
    /// The next rule is examined.
    Continue,
    /// No further rule is examined; the target is the action.
    Terminate,
    /// Like `Terminate` for the packets that open a TCP connection. For other packets the
    /// next rule is examined.
    TerminateHandshake,
}

/// Returns the effect of a target of iptables. `None` for an unknown target.
pub(super) fn effect(target: &str) -> Option<Effect> {
    Some(match target {
        "ACCEPT" => Effect::Accept,
        "DROP" => Effect::Drop,
        "REJECT" => Effect::Reject,
        "RETURN" => Effect::Return,
        "LOG" | "NFLOG" | "ULOG" | "AUDIT" | "MARK" | "CONNMARK" | "CLASSIFY" | "TCPMSS"
        | "TCPOPTSTRIP" | "TTL" | "HL" | "DSCP" | "TOS" | "ECN" | "CHECKSUM" | "SET" | "TRACE"
        | "NOTRACK" | "CT" | "SECMARK" | "CONNSECMARK" | "IDLETIMER" | "LED" | "RATEEST"
        | "TEE" | "HMARK" | "ACCOUNT" | "SNPT" | "DNPT" | "FLOWOFFLOAD" => Effect::Continue,
        "DNAT" | "SNAT" | "MASQUERADE" | "REDIRECT" | "NETMAP" | "SAME" | "TPROXY" | "QUEUE"
        | "NFQUEUE" | "MIRROR" | "TARPIT" | "DELUDE" => Effect::Terminate,
        "SYNPROXY" => Effect::TerminateHandshake,
        _ => return None,
    })
}

/// True if the next word is the value of the option, even if it looks like an option.
pub(super) fn takes_any_text(option: &str) -> bool {
    matches!(
        option,
        "--log-prefix" | "--nflog-prefix" | "--ulog-prefix" | "--string" | "--hex-string"
    )
}

/// Returns the number of values of an option of a match that is modelled. `None` if the
/// match has no such option.
pub(super) fn option_values(module: &str, option: &str) -> Option<usize> {
    let option = option.strip_prefix("--")?;
    let is_port = matches!(
        option,
        "sport" | "source-port" | "dport" | "destination-port"
    );
    match module {
        "tcp" | "udp" | "udplite" | "sctp" | "dccp" if is_port => Some(1),
        "tcp" => match option {
            "tcp-flags" => Some(2),
            "tcp-option" => Some(1),
            "syn" => Some(0),
            _ => None,
        },
        "sctp" => (option == "chunk-types").then_some(2),
        "dccp" => matches!(option, "dccp-types" | "dccp-option").then_some(1),
        "icmp" => (option == "icmp-type").then_some(1),
        "icmp6" => (option == "icmpv6-type").then_some(1),
        "multiport" => matches!(
            option,
            "sports" | "source-ports" | "dports" | "destination-ports" | "ports" | "port"
        )
        .then_some(1),
        "conntrack" => option.starts_with("ct").then_some(1),
        "state" => (option == "state").then_some(1),
        "comment" => (option == "comment").then_some(1),
        "iprange" => matches!(option, "src-range" | "dst-range").then_some(1),
        "set" => match option {
            "match-set" => Some(2),
            "return-nomatch" | "update-counters" | "update-subcounters" => Some(0),
            "packets-eq" | "packets-lt" | "packets-gt" | "bytes-eq" | "bytes-lt" | "bytes-gt" => {
                Some(1)
            }
            _ => None,
        },
        _ => None,
    }
}

/// True if the match is modelled, at least in part.
pub(super) fn is_modelled(module: &str) -> bool {
    matches!(
        module,
        "multiport" | "conntrack" | "state" | "comment" | "iprange" | "set"
    ) || is_protocol_module(module)
}

/// True if the match belongs to a protocol, and reads the protocol's header.
pub(super) fn is_protocol_module(module: &str) -> bool {
    PROTOCOL_MODULES.iter().any(|(name, _)| *name == module)
}

/// The matches of protocols, with the protocols that they serve. The first match of a
/// protocol is loaded by `-p`.
const PROTOCOL_MODULES: [(&str, &[u8]); 7] = [
    ("tcp", &[6]),
    ("udplite", &[136]),
    ("udp", &[17, 136]),
    ("sctp", &[132]),
    ("dccp", &[33]),
    ("icmp", &[super::icmp::ICMP]),
    ("icmp6", &[super::icmp::ICMPV6]),
];

/// Returns the match that `-p` loads.
pub(super) fn module_of_protocol(protocol: u8) -> Option<&'static str> {
    let mut modules = PROTOCOL_MODULES.iter();
    let module = modules.find(|(_, protocols)| protocols.contains(&protocol));
    module.map(|(name, _)| *name)
}

/// Returns the protocols that a match serves.
pub(super) fn protocols_of_module(module: &str) -> &'static [u8] {
    let mut modules = PROTOCOL_MODULES.iter();
    let module = modules.find(|(name, _)| *name == module);
    module.map_or(&[], |(_, protocols)| protocols)
}

/// Returns a protocol, 0 for all.
pub(super) fn parse_protocol(text: &str) -> Option<u8> {
    match text.eq_ignore_ascii_case("all") {
        true => Some(0),
        false => linux_protocols::parse_protocol(text),
    }
}

/// Returns the protocol's name in the table of services.
pub(super) fn service_protocol(protocol: u8) -> Option<&'static str> {
    match protocol {
        6 => Some("tcp"),
        17 => Some("udp"),
        132 => Some("sctp"),
        _ => None,
    }
}
