//! The rules of a policy, as statements that formats of firewalls can write.
//!
//! A rule of a policy can ask for a port and no protocol, or for TCP flags of any packet.
//! Firewalls compare such fields only in packets that have them. So a rule with conditions
//! on them becomes a statement for each kind of packet. In headers, a field that a packet
//! does not have is 0: a rule for the ports 0 to 1023 also selects ICMP and later fragments.

use classyard::{FieldMatch, RuleId, Schema};

use super::{Family, Refusal};
use crate::packets::{FIELDS, Field, PORT_PROTOCOLS, Values};

/// The number of TCP among the IP protocols.
pub(super) const TCP: u8 = 6;

/// The fields of headers that follow the IP header.
const LAYER4: [Field; 5] = [
    Field::SourcePort,
    Field::DestinationPort,
    Field::IcmpType,
    Field::IcmpCode,
    Field::TcpFlags,
];

/// The names of the fields in schemas, in their order.
const FIELD_NAMES: [&str; FIELDS] = [
    "src",
    "dst",
    "sport",
    "dport",
    "proto",
    "icmp_type",
    "icmp_code",
    "tcp_flags",
    "fragment",
    "state",
    "in",
    "out",
    "list",
    "condition",
];

/// The protocols that a statement selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Protocols {
    All,
    One(u8),
    /// All except one.
    Not(u8),
    Range(u8, u8),
}

/// Packets of one family, and their action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Statement<'p> {
    pub(super) rule: RuleId,
    pub(super) family: Family,
    pub(super) action: &'p str,
    pub(super) name: Option<&'p str>,
    pub(super) protocols: Protocols,
    /// A value for each field; `None` if any value is selected. The protocol has none.
    fields: [Option<Values>; FIELDS],
}

impl<'p> Statement<'p> {
    /// Returns the values of a field, `None` for all. Not for the protocol.
    pub(super) fn values(&self, field: Field) -> Option<Values> {
        self.fields[field as usize]
    }

    /// Returns the lowest and the highest value of a field with ranges. `None` for all.
    pub(super) fn range(&self, field: Field) -> Option<(u128, u128)> {
        match self.values(field)? {
            Values::Range { low, high } => Some((low, high)),
            Values::Bits { .. } => None,
        }
    }

    /// Returns the value and the mask of a field with bits. `None` for all.
    pub(super) fn bits(&self, field: Field) -> Option<(u128, u128)> {
        match self.values(field)? {
            Values::Bits { value, mask } => Some((value, mask)),
            Values::Range { .. } => None,
        }
    }

    /// True if the statement has conditions on ports, ICMP messages or TCP flags.
    pub(super) fn has_layer4(&self) -> bool {
        LAYER4.iter().any(|&field| self.values(field).is_some())
    }

    /// True if the statement selects every packet of its family.
    pub(super) fn is_for_all(&self) -> bool {
        self.protocols == Protocols::All && self.fields.iter().all(Option::is_none)
    }

    /// True if a statement is the same as another for the other family.
    pub(super) fn is_form_of(&self, other: &Statement<'_>) -> bool {
        let mut same_family = self.clone();
        same_family.family = other.family;
        // Fragments and ICMP differ between the families.
        let is_common = self.range(Field::Fragment).is_none() || self.has_ports();
        self.family != other.family && same_family == *other && is_common
    }

    /// True if the statement has conditions on ports or TCP flags.
    fn has_ports(&self) -> bool {
        let fields = [Field::SourcePort, Field::DestinationPort, Field::TcpFlags];
        self.range(Field::Fragment) == Some((0, 1))
            && fields.iter().any(|&field| self.values(field).is_some())
    }

    /// True if two statements of one or two rules differ in the values of a field at most.
    pub(super) fn is_same_except(&self, other: &Statement<'_>, field: Field) -> bool {
        let mut same = other.clone();
        same.fields[field as usize] = self.values(field);
        same.rule = self.rule;
        *self == same
    }

    /// Returns the statement for any value of a field, as if it came from the first rule of all.
    pub(super) fn without(&self, field: Field) -> Statement<'p> {
        let mut other = self.clone();
        other.fields[field as usize] = None;
        other.rule = RuleId::from_index(0);
        other
    }

    /// Returns the refusal of the statement's rule.
    pub(super) fn refuse(&self, reason: impl Into<String>) -> Refusal {
        Refusal {
            rule: self.rule,
            reason: reason.into(),
        }
    }

    /// Merges the protocols below and above one into all protocols except that one.
    pub(super) fn merge(&mut self, next: &Statement<'_>) -> bool {
        let excluded = match (self.protocols, next.protocols) {
            (Protocols::Range(0, last), Protocols::Range(first, u8::MAX))
                if first.checked_sub(last) == Some(2) =>
            {
                last + 1
            }
            (Protocols::One(0), Protocols::Range(2, u8::MAX)) => 1,
            _ => return false,
        };
        let is_same =
            self.family == next.family && self.action == next.action && self.fields == next.fields;
        if is_same {
            self.protocols = Protocols::Not(excluded);
        }
        is_same
    }
}

/// The field of a schema that is compared as a field of firewall rules.
fn field_named(name: &str) -> Option<Field> {
    const FIELDS_IN_ORDER: [Field; FIELDS] = [
        Field::Source,
        Field::Destination,
        Field::SourcePort,
        Field::DestinationPort,
        Field::Protocol,
        Field::IcmpType,
        Field::IcmpCode,
        Field::TcpFlags,
        Field::Fragment,
        Field::State,
        Field::InInterface,
        Field::OutInterface,
        Field::List,
        Field::Condition,
    ];
    let index = FIELD_NAMES.iter().position(|known| *known == name)?;
    Some(FIELDS_IN_ORDER[index])
}

/// The fields of a schema, as fields of firewall rules.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) family: Family,
    fields: Vec<Field>,
}

impl Columns {
    /// Returns the fields of a schema. `None` if firewall rules lack a field.
    pub(super) fn new(schema: &Schema) -> Option<Columns> {
        let fields: Option<Vec<Field>> = schema
            .fields()
            .iter()
            .map(|field| field_named(field.name()))
            .collect();
        let family = match schema
            .field_named("src")
            .map(|field| schema.field(field).width())
        {
            Some(32) => Family::Ipv4,
            Some(128) => Family::Ipv6,
            _ => return None,
        };
        let fields = fields?;
        Some(Columns { family, fields })
    }

    /// Returns the values of each field that a rule's matches select.
    pub(super) fn values(&self, matches: &[FieldMatch]) -> [Option<Values>; FIELDS] {
        let mut values = [None; FIELDS];
        for (&field, &matched) in self.fields.iter().zip(matches) {
            values[field as usize] = Values::of_match(matched, field, self.family.address_bits());
        }
        values
    }
}

/// A kind of packets by the headers that follow the IP header.
struct Kind {
    protocols: Values,
    fragments: Option<Values>,
    /// The fields that the packets have.
    fields: &'static [Field],
}

/// Returns the kinds of packets of a family.
fn kinds(family: Family) -> Vec<Kind> {
    let with_header = Some(Values::range(0u8, 1u8));
    let ports = &LAYER4[..2];
    let mut kinds = Vec::new();
    for protocol in PORT_PROTOCOLS {
        kinds.push(Kind {
            protocols: Values::number(protocol),
            fragments: with_header,
            fields: match protocol {
                TCP => const { &[Field::SourcePort, Field::DestinationPort, Field::TcpFlags] },
                _ => ports,
            },
        });
    }
    kinds.push(Kind {
        protocols: Values::number(family.icmp()),
        fragments: with_header,
        fields: &LAYER4[2..4],
    });
    let mut named: Vec<u8> = PORT_PROTOCOLS.into_iter().chain([family.icmp()]).collect();
    named.sort_unstable();
    let mut first = 0;
    for last in named.into_iter().map(Some).chain([None]) {
        let end = last.map_or(u8::MAX, |last| last.saturating_sub(1));
        if first <= end && last != Some(first) {
            kinds.push(Kind {
                protocols: Values::range(first, end),
                fragments: with_header,
                fields: &[],
            });
        }
        first = last.map_or(u8::MAX, |last| last.saturating_add(1));
    }
    kinds.push(Kind {
        protocols: Values::range(0u8, u8::MAX),
        fragments: Some(Values::range(2u8, 3u8)),
        fields: &[],
    });
    kinds
}

/// Returns the values of the packets of a kind, without conditions on fields that the packets
/// do not have. `None` if no packet is left.
fn of_kind(values: &[Option<Values>; FIELDS], kind: &Kind) -> Option<[Option<Values>; FIELDS]> {
    let mut common = *values;
    for field in LAYER4 {
        let wanted = &mut common[field as usize];
        if kind.fields.contains(&field) {
            continue;
        }
        if wanted.is_some_and(|wanted| !wanted.has(0)) {
            return None;
        }
        *wanted = None;
    }
    let restrict = |own: Option<Values>, other: Values| match own {
        Some(own) => own.intersect(&other),
        None => Some(other),
    };
    let [protocol, fragment] = [Field::Protocol, Field::Fragment].map(|field| field as usize);
    common[protocol] = Some(restrict(common[protocol], kind.protocols)?);
    if let Some(fragments) = kind.fragments {
        common[fragment] = Some(restrict(common[fragment], fragments)?);
    }
    Some(common)
}

/// Returns the packets that a rule selects: for each kind of packets if the rule has
/// conditions on fields that not all packets have.
pub(super) fn kinds_of_packets(
    values: [Option<Values>; FIELDS],
    family: Family,
) -> Vec<[Option<Values>; FIELDS]> {
    if LAYER4.iter().all(|&field| values[field as usize].is_none()) {
        return vec![values];
    }
    let kinds = kinds(family);
    kinds
        .iter()
        .filter_map(|kind| of_kind(&values, kind))
        .collect()
}

/// Returns the statement of some packets.
pub(super) fn statement<'p>(
    rule: RuleId,
    family: Family,
    action: &'p str,
    name: Option<&'p str>,
    mut values: [Option<Values>; FIELDS],
) -> Statement<'p> {
    let protocols = match values[Field::Protocol as usize].take() {
        Some(Values::Range { low, high }) => {
            let number = |value| u8::try_from(value).unwrap_or(u8::MAX);
            match (number(low), number(high)) {
                (0, u8::MAX) => Protocols::All,
                (low, high) if low == high => Protocols::One(low),
                (low, high) => Protocols::Range(low, high),
            }
        }
        _ => Protocols::All,
    };
    Statement {
        rule,
        family,
        action,
        name,
        protocols,
        fields: values,
    }
}
