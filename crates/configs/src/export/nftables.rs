//! Writes rules for `nft -f`.

use std::collections::HashSet;

use classyard_text::line::quoted;

use super::bundle::{Bundle, join};
use super::lists::List;
use super::statement::{Protocols, Statement, TCP};
use super::words::{
    Name, address, flag_names, host, name_of, port_range, prefix_length, state_names,
};
use super::{Family, Output, Refusal, WriteError};
use crate::builder::{DENY, PERMIT};
use crate::packets::{Field, Values};

/// The chain of rules that name no list.
const DEFAULT_CHAIN: &str = "forward";

/// The hooks of chains.
const HOOKS: [&str; 5] = ["input", "forward", "output", "prerouting", "postrouting"];

/// The maximum number of bytes of a comment.
const MAX_COMMENT_BYTES: usize = 128;

/// The maximum number of bytes of an interface's name.
const MAX_INTERFACE_BYTES: usize = 15;

/// The protocols with names for `meta l4proto`.
const PROTOCOLS: [(u8, &str); 11] = [
    (1, "icmp"),
    (2, "igmp"),
    (TCP, "tcp"),
    (17, "udp"),
    (33, "dccp"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (58, "ipv6-icmp"),
    (132, "sctp"),
    (136, "udplite"),
];

/// The fields with sets of values.
const FIELDS_WITH_SETS: [Field; 4] = [
    Field::SourcePort,
    Field::DestinationPort,
    Field::Source,
    Field::Destination,
];

/// Writes lists as chains of a table.
pub(super) fn write(output: &mut Output<'_>, lists: &[List<'_>]) -> Result<(), WriteError> {
    let has = |family| lists.iter().any(|list| list.has(family));
    let table = match (has(Family::Ipv4), has(Family::Ipv6)) {
        (true, true) => "inet",
        (true, false) => "ip",
        _ => "ip6",
    };
    output.line(format_args!("table {table} filter {{"));
    let mut chains = HashSet::new();
    for list in lists {
        let name = list.name.as_deref().unwrap_or(DEFAULT_CHAIN);
        let refusal = |expected| WriteError::List {
            list: quoted(name),
            format: output.format,
            expected,
        };
        if !is_identifier(name) {
            return Err(refusal(
                "a chain's name has ASCII letters, digits, and `/`, `-`, `_` or `.` after a letter",
            ));
        }
        if !chains.insert(name) {
            return Err(refusal("another list has the same name"));
        }
        write_chain(output, name, list, table)?;
    }
    output.line("}");
    Ok(())
}

/// True if a name can be a chain's.
fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte))
}

fn write_chain(
    output: &mut Output<'_>,
    name: &str,
    list: &List<'_>,
    table: &str,
) -> Result<(), WriteError> {
    let lower = name.to_ascii_lowercase();
    let hook = HOOKS.into_iter().find(|hook| lower.ends_with(hook));
    let hook = hook.unwrap_or("forward");
    let families: Vec<Family> = Family::EACH.into_iter().filter(|&f| list.has(f)).collect();
    let mut defaults = Vec::new();
    for &family in &families {
        let action = output.default_action(list, family)?;
        defaults.push(if action == PERMIT { "accept" } else { "drop" });
    }
    let policy = defaults.last().copied().unwrap_or("accept");
    output.line(format_args!("\tchain {name} {{"));
    output.line(format_args!(
        "\t\ttype filter hook {hook} priority filter; policy {policy};"
    ));
    let chunks: Vec<_> = output.of_one_source(&list.statements).collect();
    for chunk in chunks {
        let mut statements = chunk.iter().peekable();
        let mut bundles = Vec::new();
        while let Some(statement) = statements.next() {
            // A rule of both families without addresses is one statement.
            let other = statements.next_if(|next| next.is_form_of(statement));
            bundles.push(Bundle::new(statement.clone(), other.is_some()));
        }
        for bundle in join(bundles, &FIELDS_WITH_SETS, fits_set) {
            let needs_family = table == "inet" && !bundle.is_for_both;
            let line = rule(&bundle, needs_family);
            output.statement(line.map(|line| format!("\t\t{line}")));
        }
    }
    if let [first, last] = defaults[..]
        && first != last
    {
        output.line(format_args!("\t\tmeta nfproto ipv4 {first}"));
    }
    output.line("\t}");
    Ok(())
}

/// True if some values of a field can be a set: sets have no masks with holes.
fn fits_set(statement: &Statement<'_>, values: &[Values]) -> bool {
    values.iter().all(|one| match *one {
        Values::Range { .. } => true,
        Values::Bits { mask, .. } => prefix_length(statement.family, mask).is_some(),
    })
}

/// Returns the only value, or several values as a set.
fn set(values: &[String]) -> String {
    match values {
        [one] => one.clone(),
        _ => format!("{{ {} }}", values.join(", ")),
    }
}

/// Returns the rule of a bundle. `needs_family` if it must say the IP version.
fn rule(bundle: &Bundle<'_>, needs_family: bool) -> Result<String, Refusal> {
    let statement = &bundle.first;
    let mut terms: Vec<String> = Vec::new();
    interfaces(statement, &mut terms)?;
    let before_addresses = terms.len();
    addresses(bundle, &mut terms);
    let has_addresses = terms.len() > before_addresses;
    let protocol_of_family = Protocols::One(statement.family.icmp());
    let says_family = has_addresses
        || statement.protocols == protocol_of_family && statement.has_layer4()
        || fragment_says_family(statement);
    if needs_family && !says_family {
        let family = match statement.family {
            Family::Ipv4 => "ipv4",
            Family::Ipv6 => "ipv6",
        };
        terms.insert(before_addresses, format!("meta nfproto {family}"));
    }
    layer4(bundle, &mut terms)?;
    if let Some(range) = statement.range(Field::State) {
        let states = state_names(range)
            .ok_or_else(|| statement.refuse("a part of the packets that are not tracked"))?;
        terms.push(format!("ct state {states}"));
    }
    terms.push(match statement.action {
        PERMIT => "accept".to_owned(),
        DENY => "drop".to_owned(),
        _ => "reject".to_owned(),
    });
    if let Some(name) = statement.name {
        terms.push(format!("comment {}", comment(statement, name)?));
    }
    Ok(terms.join(" "))
}

/// True if the comparison of fragments exists for a single IP version.
fn fragment_says_family(statement: &Statement<'_>) -> bool {
    statement
        .range(Field::Fragment)
        .is_some_and(|range| !(range == (0, 1) && statement.has_layer4()))
}

fn interfaces(statement: &Statement<'_>, terms: &mut Vec<String>) -> Result<(), Refusal> {
    for (field, word) in [
        (Field::InInterface, "iifname"),
        (Field::OutInterface, "oifname"),
    ] {
        let Some((value, mask)) = statement.bits(field) else {
            continue;
        };
        let name = name_of(value, mask)
            .ok_or_else(|| statement.refuse("an interface whose name has no text"))?;
        let (text, end) = match &name {
            Name::Whole(name) => (name, ""),
            Name::Start(start) => (start, "*"),
        };
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"*\"\\/".contains(&byte);
        if text.len() + end.len() > MAX_INTERFACE_BYTES || !text.bytes().all(is_plain) {
            return Err(statement.refuse(format!(
                "the interface {}, as nftables has at most {MAX_INTERFACE_BYTES} plain characters",
                quoted(text)
            )));
        }
        terms.push(format!("{word} \"{text}{end}\""));
    }
    Ok(())
}

fn addresses(bundle: &Bundle<'_>, terms: &mut Vec<String>) {
    let family = bundle.first.family;
    let header = match family {
        Family::Ipv4 => "ip",
        Family::Ipv6 => "ip6",
    };
    for (field, word) in [(Field::Source, "saddr"), (Field::Destination, "daddr")] {
        let values = bundle.values(field);
        let bits = values.iter().filter_map(|one| match *one {
            Values::Bits { value, mask } => Some((value, mask)),
            Values::Range { .. } => None,
        });
        let bits: Vec<(u128, u128)> = bits.collect();
        terms.push(match bits[..] {
            [] => continue,
            [(value, mask)] if prefix_length(family, mask).is_none() => format!(
                "{header} {word} & {} == {}",
                host(family, mask),
                host(family, value)
            ),
            _ => {
                let networks = bits.iter();
                let networks = networks.map(|&(value, mask)| address(family, value, mask));
                let networks: Vec<String> = networks.collect();
                format!("{header} {word} {}", set(&networks))
            }
        });
    }
}

/// Adds the protocol, fragments, and fields of the headers that follow the IP header.
fn layer4(bundle: &Bundle<'_>, terms: &mut Vec<String>) -> Result<(), Refusal> {
    let statement = &bundle.first;
    let before = terms.len();
    let header = match statement.protocols {
        Protocols::One(TCP) => "tcp",
        Protocols::One(17) => "udp",
        Protocols::One(33) => "dccp",
        Protocols::One(132) => "sctp",
        Protocols::One(136) => "udplite",
        Protocols::One(1) => "icmp",
        Protocols::One(58) => "icmpv6",
        _ => "",
    };
    for (field, word) in [
        (Field::SourcePort, "sport"),
        (Field::DestinationPort, "dport"),
        (Field::IcmpType, "type"),
        (Field::IcmpCode, "code"),
    ] {
        let ranges = bundle
            .values(field)
            .into_iter()
            .filter_map(|one| match one {
                Values::Range { low, high } => Some(port_range((low, high), '-')),
                Values::Bits { .. } => None,
            });
        let ranges: Vec<String> = ranges.collect();
        if !ranges.is_empty() {
            terms.push(format!("{header} {word} {}", set(&ranges)));
        }
    }
    if let Some((value, mask)) = statement.bits(Field::TcpFlags) {
        let (Some(mask), Some(set)) = (flag_names(mask, "|"), flag_names(value, "|")) else {
            return Err(statement.refuse("the TCP flags ECE and CWR"));
        };
        let set = if set.is_empty() { "0x0" } else { &set };
        terms.push(format!("tcp flags & ({mask}) == {set}"));
    }
    let has_layer4 = terms.len() > before;
    if !has_layer4 {
        protocols(statement.protocols, terms);
    }
    fragments(statement, has_layer4, terms)
}

fn protocols(protocols: Protocols, terms: &mut Vec<String>) {
    let name = |number: u8| {
        let known = PROTOCOLS.iter().find(|(known, _)| *known == number);
        known.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
    };
    match protocols {
        Protocols::All => {}
        Protocols::One(number) => terms.push(format!("meta l4proto {}", name(number))),
        Protocols::Not(number) => terms.push(format!("meta l4proto != {}", name(number))),
        Protocols::Range(low, high) => terms.push(format!("meta l4proto {low}-{high}")),
    }
}

/// Adds the comparison of fragments. A comparison of the layer-4 header refuses later
/// fragments.
fn fragments(
    statement: &Statement<'_>,
    has_layer4: bool,
    terms: &mut Vec<String>,
) -> Result<(), Refusal> {
    let Some(range) = statement.range(Field::Fragment) else {
        return Ok(());
    };
    let term = match (statement.family, range) {
        (_, (0, 1)) if has_layer4 => return Ok(()),
        (Family::Ipv4, (0, 0)) => "ip frag-off & 0x3fff == 0",
        (Family::Ipv4, (0, 1)) => "ip frag-off & 0x1fff == 0",
        (Family::Ipv4, (2, 3)) => "ip frag-off & 0x1fff != 0",
        (Family::Ipv4, (1, 3)) => "ip frag-off & 0x3fff != 0",
        (Family::Ipv4, (1, 1)) => "ip frag-off & 0x3fff != 0 ip frag-off & 0x1fff == 0",
        (Family::Ipv6, (0, 0)) => "exthdr frag missing",
        (Family::Ipv6, (1, 1)) => "frag frag-off 0",
        (Family::Ipv6, (2, 3)) => "frag frag-off != 0",
        (Family::Ipv6, (1, 3)) => "exthdr frag exists",
        _ => return Err(statement.refuse("these kinds of fragments together")),
    };
    terms.push(term.to_owned());
    Ok(())
}

/// Returns a comment in quotes.
fn comment(statement: &Statement<'_>, text: &str) -> Result<String, Refusal> {
    let is_plain = |character: char| !character.is_control() && character != '"';
    match text.len() <= MAX_COMMENT_BYTES && text.chars().all(is_plain) {
        true => Ok(format!("\"{text}\"")),
        false => Err(statement.refuse(format!(
            "a name with quotes, control characters or more than {MAX_COMMENT_BYTES} bytes"
        ))),
    }
}
