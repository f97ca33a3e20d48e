//! The matches that fields express.

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::icmp;
use super::ipset::{Directions, LookupError};
use super::matcher::Matcher;
use super::modules::{is_protocol_module, parse_protocol, protocols_of_module, service_protocol};
use super::notes::SetNote;
use super::options::{Module, OptionUse};
use crate::packets::{Families, Field, PORT_PROTOCOLS, PacketSet, Values, range_of_addresses};
use crate::services::parse_port;

/// The flags of TCP, from bit 0.
const TCP_FLAGS: [&str; 6] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"];

/// The bits of FIN, SYN, RST and ACK.
const HANDSHAKE_FLAGS: u8 = 0x17;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// The states of connections with their numbers, from the first to the last.
const STATES: [(&str, u8, u8); 5] = [
    ("NEW", 0, 0),
    ("ESTABLISHED", 1, 1),
    ("RELATED", 2, 2),
    ("INVALID", 3, 3),
    ("UNTRACKED", 4, 7),
];

/// Adds a modelled match to its rule.
pub(super) fn add<'t>(
    matcher: &mut Matcher<'_, '_, 't>,
    module: &Module<'_, 't>,
) -> Result<(), Fault<'t>> {
    if module.name == "set" {
        return add_set(matcher, module);
    }
    if is_protocol_module(module.name) || module.name == "multiport" {
        check_protocol(matcher.protocol, module)?;
        // The kernel's matches of protocols refuse later fragments, as these lack the
        // protocol's header.
        let with_header = PacketSet::of(Field::Fragment, [Values::range(0u8, 1u8)]);
        matcher.require(with_header, false)?;
    }
    if module.name == "multiport" && module.options.len() != 1 {
        return Err(Fault::new(
            module.text,
            format!("a match `multiport` with {} options", module.options.len()),
            "one of --sports, --dports and --ports",
        ));
    }
    for option in &module.options {
        let selected = option_packets(matcher, module, option)?;
        matcher.require(selected, option.is_negated)?;
    }
    Ok(())
}

/// Returns the packets that an option selects without its `!`.
fn option_packets<'t>(
    matcher: &mut Matcher<'_, '_, 't>,
    module: &Module<'_, 't>,
    option: &OptionUse<'_, 't>,
) -> Result<PacketSet, Fault<'t>> {
    let name = option.name.trim_start_matches('-');
    match name {
        "sport" | "source-port" | "dport" | "destination-port" => {
            let range = port_range(option.value(), ':', matcher.protocol)?;
            Ok(PacketSet::of(port_field(name), [range]))
        }
        "sports" | "source-ports" | "dports" | "destination-ports" => {
            let ports = port_list(option.value(), matcher.protocol)?;
            Ok(PacketSet::of(port_field(name), ports))
        }
        "ports" | "port" => {
            let ports = port_list(option.value(), matcher.protocol)?;
            let [sources, destinations] = [Field::SourcePort, Field::DestinationPort]
                .map(|field| PacketSet::of(field, ports.clone()));
            matcher.limited(sources.union(destinations))
        }
        "tcp-flags" => tcp_flags(option),
        "syn" => Ok(PacketSet::of(
            Field::TcpFlags,
            [Values::bits(SYN.into(), HANDSHAKE_FLAGS.into())],
        )),
        "icmp-type" => icmp_types(option, icmp::ICMP),
        "icmpv6-type" => icmp_types(option, icmp::ICMPV6),
        "ctstate" | "state" => states(matcher, option),
        "src-range" => address_range(matcher, Field::Source, option),
        "dst-range" => address_range(matcher, Field::Destination, option),
        _ => other_option(matcher, module, option),
    }
}

/// Returns the condition of an option that no field expresses.
fn other_option<'t>(
    matcher: &mut Matcher<'_, '_, 't>,
    module: &Module<'_, 't>,
    option: &OptionUse<'_, 't>,
) -> Result<PacketSet, Fault<'t>> {
    let name = option.name.trim_start_matches('-');
    let is_known = match module.name {
        "conntrack" => matches!(
            name,
            "ctproto"
                | "ctorigsrc"
                | "ctorigdst"
                | "ctreplsrc"
                | "ctrepldst"
                | "ctorigsrcport"
                | "ctorigdstport"
                | "ctreplsrcport"
                | "ctrepldstport"
                | "ctstatus"
                | "ctexpire"
                | "ctdir"
        ),
        _ => true,
    };
    if !is_known {
        return Err(Fault::unsupported(
            option.text,
            format!("the option {} of conntrack", quoted(option.name)),
            "an option of conntrack such as --ctstate",
        ));
    }
    let is_altered = matcher.context.altered.contains(name);
    // The text without `!`, so that a rule and its opposite have the same condition.
    let text = option.text.trim_start_matches(['!', ' ', '\t']);
    matcher.opaque_condition(text, name != "ctexpire" && !is_altered)
}

/// Returns a fault if a match needs a protocol that the rule does not have.
fn check_protocol<'t>(protocol: u8, module: &Module<'_, 't>) -> Result<(), Fault<'t>> {
    let protocols = match module.name {
        "multiport" => &PORT_PROTOCOLS[..],
        name => protocols_of_module(name),
    };
    if protocols.contains(&protocol) {
        return Ok(());
    }
    Err(Fault::new(
        module.text,
        format!("the match {} without its protocol", quoted(module.name)),
        match module.name {
            "multiport" => "`-p` with tcp, udp, udplite, sctp or dccp, and without `!`".to_owned(),
            "icmp6" => "`-p ipv6-icmp`, and without `!`".to_owned(),
            name => format!("`-p {name}`, and without `!`"),
        },
    ))
}

fn port_field(option: &str) -> Field {
    match option.starts_with('s') {
        true => Field::SourcePort,
        false => Field::DestinationPort,
    }
}

/// Reads `PORT`, `LOW:HIGH`, `LOW:` or `:HIGH`.
fn port_range(text: &str, separator: char, protocol: u8) -> Result<Values, Fault<'_>> {
    let port = |text, open_end: u16| match text {
        "" => Ok(open_end),
        text => parse_port(text, service_protocol(protocol)).ok_or_else(|| port_fault(text)),
    };
    let (low, high) = match text.split_once(separator) {
        Some((low, high)) => (port(low, 0)?, port(high, u16::MAX)?),
        None if text.is_empty() => return Err(port_fault(text)),
        None => [port(text, 0)?; 2].into(),
    };
    match low <= high {
        true => Ok(Values::range(low, high)),
        false => Err(Fault::new(
            text,
            "a range whose first port is above its last port",
            "the lower port first",
        )),
    }
}

fn port_fault(text: &str) -> Fault<'_> {
    Fault::new(
        text,
        format!("the port {}", quoted(text)),
        "a number up to 65535, the name of a service of the protocol, or LOW:HIGH",
    )
}

/// Reads ports and ranges of ports with commas between them.
fn port_list(text: &str, protocol: u8) -> Result<Vec<Values>, Fault<'_>> {
    let ports = text.split(',');
    ports.map(|text| port_range(text, ':', protocol)).collect()
}

/// Reads the mask and the flags that must be set.
fn tcp_flags<'t>(option: &OptionUse<'_, 't>) -> Result<PacketSet, Fault<'t>> {
    let [mask, set] = option.values else {
        return Ok(PacketSet::none());
    };
    let (mask, set) = (flag_bits(mask.slice())?, flag_bits(set.slice())?);
    if set & !mask != 0 {
        return Ok(PacketSet::none());
    }
    let values = Values::bits(set.into(), mask.into());
    Ok(PacketSet::of(Field::TcpFlags, [values]))
}

/// Reads names of flags with commas between them.
fn flag_bits(text: &str) -> Result<u8, Fault<'_>> {
    let mut bits = 0;
    for name in text.split(',') {
        let index = TCP_FLAGS
            .iter()
            .position(|flag| flag.eq_ignore_ascii_case(name));
        bits |= match index {
            Some(index) => 1 << index,
            None if name.eq_ignore_ascii_case("ALL") => 0x3f,
            None if name.eq_ignore_ascii_case("NONE") => 0,
            None => {
                return Err(Fault::new(
                    name,
                    format!("the flag {}", quoted(name)),
                    "FIN, SYN, RST, PSH, ACK, URG, ALL or NONE, with commas between them",
                ));
            }
        };
    }
    Ok(bits)
}

/// Returns the packets of TCP that the target SYNPROXY takes: SYN alone or ACK alone of the
/// flags that open and close connections.
pub(super) fn tcp_handshake() -> PacketSet {
    let flags = [SYN, ACK].map(|flag| Values::bits(flag.into(), HANDSHAKE_FLAGS.into()));
    let of_tcp = PacketSet::of(Field::Protocol, [Values::number(6u8)]);
    let flags = PacketSet::of(Field::TcpFlags, flags);
    of_tcp.intersect(&flags).expect("two boxes")
}

fn icmp_types<'t>(option: &OptionUse<'_, 't>, protocol: u8) -> Result<PacketSet, Fault<'t>> {
    let text = option.value();
    icmp::selected(text, protocol).ok_or_else(|| {
        Fault::new(
            text,
            format!("the ICMP type {}", quoted(text)),
            "a name such as echo-request, TYPE or TYPE/CODE",
        )
    })
}

/// Reads states with commas between them.
fn states<'t>(
    matcher: &mut Matcher<'_, '_, 't>,
    option: &OptionUse<'_, 't>,
) -> Result<PacketSet, Fault<'t>> {
    let mut numbers = 0u8;
    let mut translated = PacketSet::none();
    for name in option.value().split(',') {
        let mut states = STATES.iter();
        let state = states.find(|(state, ..)| state.eq_ignore_ascii_case(name));
        if let Some(&(_, low, high)) = state {
            numbers |= (low..=high).fold(0, |bits, number| bits | 1 << number);
            continue;
        }
        let upper = name.to_ascii_uppercase();
        if option.name != "--ctstate" || !matches!(upper.as_str(), "SNAT" | "DNAT") {
            return Err(Fault::new(
                name,
                format!("the state {}", quoted(name)),
                "NEW, ESTABLISHED, RELATED, INVALID or UNTRACKED, with commas between them",
            ));
        }
        let condition = matcher.named_condition(&format!("--ctstate {upper}"), name)?;
        translated = matcher.limited(translated.union(condition))?;
    }
    let of_state = PacketSet::of(Field::State, ranges_of_bits(numbers));
    matcher.limited(of_state.union(translated))
}

/// Returns the numbers of the bits that are set, as ranges.
fn ranges_of_bits(bits: u8) -> Vec<Values> {
    let is_set = |number: u8| bits >> number & 1 == 1;
    let mut ranges = Vec::new();
    let mut number = 0;
    while number < 8 {
        let first = number;
        while number < 8 && is_set(number) {
            number += 1;
        }
        if number > first {
            ranges.push(Values::range(first, number - 1));
        }
        number += 1;
    }
    ranges
}

/// Reads `FIRST-LAST` or one address.
fn address_range<'t>(
    matcher: &Matcher<'_, '_, 't>,
    field: Field,
    option: &OptionUse<'_, 't>,
) -> Result<PacketSet, Fault<'t>> {
    let text = option.value();
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let is_ipv4 = matcher.family == Families::IPV4;
    let address = |text: &'t str| {
        let address = text.parse::<std::net::IpAddr>().ok();
        address
            .filter(|address| address.is_ipv4() == is_ipv4)
            .ok_or_else(|| {
                let version = if is_ipv4 { 4 } else { 6 };
                Fault::new(
                    text,
                    quoted(text),
                    format!("an address of IPv{version}, or FIRST-LAST"),
                )
            })
    };
    let networks = range_of_addresses(address(low)?, address(high)?);
    let networks = networks
        .map_err(|error| Fault::new(text, error.to_string(), "FIRST-LAST with FIRST <= LAST"))?;
    Ok(PacketSet::of_addresses(field, networks))
}

/// Adds `-m set` to its rule.
fn add_set<'t>(
    matcher: &mut Matcher<'_, '_, 't>,
    module: &Module<'_, 't>,
) -> Result<(), Fault<'t>> {
    for option in &module.options {
        match option.name {
            "--match-set" => add_match_set(matcher, option)?,
            // The match counts the element's packets if the set has counters.
            "--update-counters" | "--update-subcounters" => {}
            "--return-nomatch" => {
                return Err(Fault::unsupported(
                    option.text,
                    "the option `--return-nomatch` of sets",
                    "a set without elements that are `nomatch`",
                ));
            }
            _ => {
                let text = option.text.trim_start_matches(['!', ' ', '\t']);
                let condition = matcher.opaque_condition(text, false)?;
                matcher.require(condition, option.is_negated)?;
            }
        }
    }
    let has_set = |option: &OptionUse<'_, '_>| option.name == "--match-set";
    match module.options.iter().any(has_set) {
        true => Ok(()),
        false => Err(Fault::new(
            module.text,
            "the match `set` without a set",
            "`--match-set NAME src` or another direction",
        )),
    }
}

fn add_match_set<'t>(
    matcher: &mut Matcher<'_, '_, 't>,
    option: &OptionUse<'_, 't>,
) -> Result<(), Fault<'t>> {
    let [name, sides] = option.values else {
        return Ok(());
    };
    let (name, sides) = (name.slice(), sides.slice());
    let directions = Directions::parse(sides).ok_or_else(|| {
        Fault::new(
            sides,
            format!("the directions {}", quoted(sides)),
            "up to 6 times `src` or `dst`, with commas between them",
        )
    })?;
    if matcher.context.sets.lacks_directions(name, directions) {
        matcher.context.notes.add(SetNote::FewDirections, name);
    }
    let is_negated = option.is_negated;
    let lookup = matcher.require_either(|context, is_complement| {
        context
            .sets
            .packets(name, directions, is_negated != is_complement)
    });
    match lookup {
        Ok(()) => Ok(()),
        Err(error @ LookupError::Bad(_)) => Err(Fault::new(
            name,
            error.to_string(),
            "a smaller set, whose lists are defined in the file and have no loops",
        )),
        Err(LookupError::NotModelled) => {
            let note = match matcher.context.sets.has(name) {
                true => SetNote::NotModelled,
                false => SetNote::Absent,
            };
            matcher.context.notes.add(note, name);
            let text = format!("--match-set {name} {sides}");
            let condition = matcher.named_condition(&text, option.text)?;
            matcher.require(condition, is_negated)
        }
    }
}

/// True if a word shows that a rule is for IPv6.
pub(super) fn is_ipv6_protocol(text: &str) -> bool {
    parse_protocol(text) == Some(icmp::ICMPV6)
}
