//! The entries of a statement.

use super::super::statement::{Protocols, Statement, TCP};
use super::super::words::{flag_names, host, prefix_length};
use super::super::{Family, Refusal};
use super::dialect::{Dialect, Networks};
use crate::builder::{DENY, PERMIT};
use crate::packets::Field;

/// The maximum number of entries that a statement becomes.
const MAX_ENTRIES: usize = 256;

/// The protocols whose ports are compared: TCP, UDP and SCTP.
const COMPARED_PROTOCOLS: [u8; 3] = [TCP, 17, 132];

/// The protocols with names, in lists of IPv4.
const PROTOCOLS: [(u8, &str); 9] = [
    (1, "icmp"),
    (2, "igmp"),
    (TCP, "tcp"),
    (17, "udp"),
    (47, "gre"),
    (50, "esp"),
    (88, "eigrp"),
    (89, "ospf"),
    (132, "sctp"),
];

/// The protocols with names, in lists of IPv6.
const PROTOCOLS_OF_IPV6: [(u8, &str); 4] = [(TCP, "tcp"), (17, "udp"), (50, "esp"), (132, "sctp")];

/// The types of ICMP with names.
const ICMP_TYPES: [(u128, &str); 5] = [
    (0, "echo-reply"),
    (3, "unreachable"),
    (5, "redirect"),
    (8, "echo"),
    (11, "time-exceeded"),
];

/// A statement, and the packets that its entries select.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form<'l, 'p> {
    pub(super) statement: &'l Statement<'p>,
    /// True if the entries select later fragments only.
    pub(super) is_for_fragments: bool,
    /// True if the entries select TCP packets with ACK or RST, whatever the flags of the
    /// statement are.
    pub(super) is_established: bool,
    /// True if the entries are also for the other family.
    pub(super) is_for_both: bool,
}

impl<'l, 'p> Form<'l, 'p> {
    pub(super) fn new(statement: &'l Statement<'p>) -> Form<'l, 'p> {
        Form {
            statement,
            is_for_fragments: false,
            is_established: false,
            is_for_both: false,
        }
    }

    /// True if the statement is about later fragments only.
    pub(super) fn is_only_for_fragments(&self) -> bool {
        self.statement.range(Field::Fragment) == Some((2, 3))
    }

    /// Returns the form for later fragments.
    pub(super) fn for_fragments(self) -> Form<'l, 'p> {
        Form {
            is_for_fragments: true,
            ..self
        }
    }

    /// Returns the entries.
    ///
    /// # Errors
    /// [`Refusal`]: an entry cannot express the statement.
    pub(super) fn entries(&self, dialect: &Dialect) -> Result<Vec<String>, Refusal> {
        let statement = self.statement;
        self.check(dialect)?;
        let numbers = numbers(statement)?;
        let source = self.address(Field::Source, dialect)? + &self.ports(Field::SourcePort)?;
        let destination =
            self.address(Field::Destination, dialect)? + &self.ports(Field::DestinationPort)?;
        let mut ends = messages(statement)?;
        let mut end = self.flags(dialect)?;
        if self.is_for_fragments {
            end.push_str(" fragments");
        }
        ends.iter_mut().for_each(|text| text.push_str(&end));
        if numbers.len() * ends.len() > MAX_ENTRIES {
            return Err(statement.refuse(format!(
                "more than {MAX_ENTRIES} protocols or ICMP messages, each of which needs an entry"
            )));
        }
        let mut entries = Vec::with_capacity(numbers.len() * ends.len());
        for number in numbers {
            let protocol = protocol(number, statement.family, dialect);
            let action = statement.action;
            entries.extend(
                ends.iter()
                    .map(|end| format!("{action} {protocol} {source} {destination}{end}")),
            );
        }
        Ok(entries)
    }

    /// Refuses what no entry can say.
    fn check(&self, dialect: &Dialect) -> Result<(), Refusal> {
        let statement = self.statement;
        let name = dialect.name;
        if ![PERMIT, DENY].contains(&statement.action) {
            return Err(statement.refuse(format!(
                "the action {}, where access lists of {name} have permit and deny",
                statement.action
            )));
        }
        let is_selected = |field| statement.values(field).is_some();
        if is_selected(Field::InInterface) || is_selected(Field::OutInterface) {
            return Err(statement.refuse(format!(
                "an interface, which entries of {name} do not compare: interfaces name their lists"
            )));
        }
        if is_selected(Field::State) {
            return Err(statement.refuse(format!(
                "the state of connections, which entries of {name} do not compare"
            )));
        }
        match statement.range(Field::Fragment) {
            None | Some((0, 1) | (2, 3)) => Ok(()),
            Some(_) => Err(statement.refuse("only whole packets, or only first fragments")),
        }
    }

    /// Returns an address.
    fn address(&self, field: Field, dialect: &Dialect) -> Result<String, Refusal> {
        let statement = self.statement;
        let family = statement.family;
        let Some((value, mask)) = statement.bits(field) else {
            return Ok(any((!self.is_for_both)
                .then_some(family)
                .filter(|_| dialect.has_any_of_family))
            .to_owned());
        };
        let first = host(family, value);
        let bits = family.address_bits();
        let mask_text = |mask| host(Family::Ipv4, mask);
        let free_bits = (u128::MAX >> (128 - bits)) & !mask;
        match (prefix_length(family, mask), family, dialect.networks) {
            (Some(length), ..) if length == bits => Ok(format!("host {first}")),
            (Some(length), Family::Ipv6, _) | (Some(length), _, Networks::Prefix) => {
                Ok(format!("{first}/{length}"))
            }
            (Some(_), Family::Ipv4, Networks::Netmask) => {
                Ok(format!("{first} {}", mask_text(mask)))
            }
            (_, Family::Ipv4, Networks::Wildcard | Networks::Prefix) => {
                Ok(format!("{first} {}", mask_text(free_bits)))
            }
            (None, ..) => Err(statement.refuse(format!(
                "a mask with holes, where {} has prefixes of {}",
                dialect.name,
                family.name()
            ))),
        }
    }

    /// Returns ports after an address.
    fn ports(&self, field: Field) -> Result<String, Refusal> {
        let statement = self.statement;
        let Some((low, high)) = statement.range(field) else {
            return Ok(String::new());
        };
        match statement.protocols {
            Protocols::One(number) if !COMPARED_PROTOCOLS.contains(&number) => Err(statement
                .refuse(format!(
                    "ports of the protocol {number}, where access lists compare ports of TCP, UDP \
                     and SCTP; a rule that names one of these can be written"
                ))),
            _ if low == high => Ok(format!(" eq {low}")),
            _ => Ok(format!(" range {low} {high}")),
        }
    }

    /// Returns TCP flags.
    fn flags(&self, dialect: &Dialect) -> Result<String, Refusal> {
        let statement = self.statement;
        let Some((value, mask)) = statement.bits(Field::TcpFlags) else {
            return Ok(String::new());
        };
        let name = dialect.name;
        if !dialect.has_flags {
            return Err(statement.refuse(format!("TCP flags, which entries of {name} do not have")));
        }
        if self.is_established {
            return Ok(" established".to_owned());
        }
        let names = |bits| {
            flag_names(bits, " ").ok_or_else(|| statement.refuse("the TCP flags ECE and CWR"))
        };
        let (set, clear) = (names(value)?, names(mask & !value)?);
        if mask == value && mask.count_ones() == 1 {
            return Ok(format!(" {set}"));
        }
        if !dialect.has_match_all[statement.family as usize] {
            return Err(statement.refuse(format!(
                "several TCP flags or a flag that is not set, where entries of {name} for {} have \
                 one flag that is set",
                statement.family.name()
            )));
        }
        let signed = |names: &str, sign| -> String {
            let words = names.split_ascii_whitespace();
            words.map(|word| format!(" {sign}{word}")).collect()
        };
        Ok(format!(
            " match-all{}{}",
            signed(&set, '+'),
            signed(&clear, '-')
        ))
    }
}

/// Returns the word for all addresses, of a family or of all that the list examines.
pub(super) fn any(family: Option<Family>) -> &'static str {
    match family {
        None => "any",
        Some(Family::Ipv4) => "any4",
        Some(Family::Ipv6) => "any6",
    }
}

/// Returns the protocols of the entries, `None` for all.
fn numbers(statement: &Statement<'_>) -> Result<Vec<Option<u8>>, Refusal> {
    let (low, high, excluded) = match statement.protocols {
        Protocols::All => return Ok(vec![None]),
        Protocols::One(number) => (number, number, None),
        Protocols::Range(low, high) => (low, high, None),
        Protocols::Not(number) => (0, u8::MAX, Some(number)),
    };
    if low == 0 && excluded != Some(0) {
        return Err(statement.refuse("the protocol 0, which systems may take as every protocol"));
    }
    let numbers = (low..=high).filter(|&number| Some(number) != excluded);
    Ok(numbers.map(Some).collect())
}

/// Returns the word of a protocol.
fn protocol(number: Option<u8>, family: Family, dialect: &Dialect) -> String {
    let Some(number) = number else {
        return dialect.all_protocols[family as usize].to_owned();
    };
    if number == Family::Ipv6.icmp() && (family == Family::Ipv6 || dialect.headers.is_none()) {
        return dialect.icmpv6.to_owned();
    }
    let is_ipv4 = family == Family::Ipv4 || dialect.headers.is_none();
    let mut names = match is_ipv4 {
        true => PROTOCOLS.iter(),
        false => PROTOCOLS_OF_IPV6.iter(),
    };
    let name = names.find(|(known, _)| *known == number);
    name.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}

/// Returns the ICMP messages at the end of entries: a text without words if there is no
/// condition on them.
fn messages(statement: &Statement<'_>) -> Result<Vec<String>, Refusal> {
    let types = statement.range(Field::IcmpType);
    let codes = statement.range(Field::IcmpCode);
    let (low, high) = match (types, codes) {
        (None, None) => return Ok(vec![String::new()]),
        (types, _) => types.unwrap_or((0, u8::MAX.into())),
    };
    let count = codes.map_or(1, |(low, high)| high - low + 1) * (high - low + 1);
    if count > MAX_ENTRIES as u128 {
        return Err(statement.refuse(format!(
            "more than {MAX_ENTRIES} ICMP messages, each of which needs an entry"
        )));
    }
    let mut messages = Vec::new();
    for number in low..=high {
        match codes {
            Some((low, high)) => {
                messages.extend((low..=high).map(|code| format!(" {number} {code}")));
            }
            None => messages.push(message_type(number, statement.family)),
        }
    }
    Ok(messages)
}

/// Returns an ICMP type with all its codes.
fn message_type(number: u128, family: Family) -> String {
    let mut names = ICMP_TYPES.iter().filter(|_| family == Family::Ipv4);
    match names.find(|(known, _)| *known == number) {
        Some((_, name)) => format!(" {name}"),
        None => format!(" {number}"),
    }
}
