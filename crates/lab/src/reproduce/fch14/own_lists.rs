//! Lists of ports for the figures of [FCH14] with own inputs: the paper's lists with the
//! destination ports of captured packets, and the ports that own rules match.
//!
//! [FCH14]: classyard::papers#fch14

use std::collections::HashSet;
use std::sync::Arc;

use classyard::policy::PartId;
use classyard::schema::FieldRole;
use classyard::{
    ActionId, Field, FieldId, FieldMatch, MatchKind, PolicyTrace, Priority, RuleId, RuleSet, Schema,
};
use classyard_datapath::lab::header_space::Term;
use classyard_report::failure::Failure;
use classyard_workload::traffic::locality::LocalityPacket;

use super::{Order, exact, lists};
use crate::bench::size_name;
use crate::reproduce::comparison::MadeSet;
use crate::reproduce::inputs::OwnRules;
use crate::reproduce::study::Study;

/// The protocols whose packets have ports: TCP, UDP and SCTP.
const PROTOCOLS_WITH_PORTS: [u8; 3] = [6, 17, 132];

/// A list of ports, with its name.
pub(super) type NamedList = (String, Arc<[Term<1>]>);

/// Returns lists of random ports, one for each size of `acls`.
pub(super) fn random_lists(study: &Study<'_>) -> Vec<NamedList> {
    let sizes = study.fch14_sizes().into_iter();
    let list = |size| {
        (
            format!("{} random ports", size_name(size)),
            random(study, size),
        )
    };
    sizes.map(list).collect()
}

/// Returns a list of `size` random ports in ascending order, as Table 4 has them.
pub(super) fn random(study: &Study<'_>, size: usize) -> Arc<[Term<1>]> {
    exact(&Order::Ascending.of(study.fch14_ports(size, 0), 0))
}

/// Returns the stand-ins for the lists of the providers.
pub(super) fn stand_ins() -> Vec<NamedList> {
    vec![
        ("long stand-in".to_owned(), lists::long()),
        ("short stand-in".to_owned(), lists::short()),
    ]
}

/// Returns each list with the destination ports of each capture, in the order of its packets.
///
/// # Errors
/// If a capture has no packet with ports.
pub(super) fn captured_ports(
    study: &Study<'_>,
    port_lists: &[NamedList],
) -> Result<Vec<MadeSet>, Failure> {
    let schema = port_schema("port", MatchKind::Ternary);
    let mut sets = Vec::new();
    for capture in &study.inputs.packets {
        let ports = destination_ports(&capture.packets);
        if ports.is_empty() {
            return Err(Failure::usage(format!(
                "{} has no packet with ports; figures of fch14 send the destination ports of TCP, \
                 UDP and SCTP",
                capture.name
            )));
        }
        for (name, terms) in port_lists {
            let matches = terms.iter().map(|term| FieldMatch::Ternary {
                value: term.value()[0].into(),
                mask: term.mask()[0].into(),
            });
            sets.push(MadeSet {
                name: format!("{}, {name}", capture.name),
                content: format!("packets {}, {name}", capture.content),
                rules: rules_of(&schema, matches),
                headers: headers_of(&schema, ports.iter().copied()),
            });
        }
    }
    Ok(sets)
}

fn destination_ports(packets: &[LocalityPacket]) -> Vec<u16> {
    let headers = packets.iter().map(|packet| packet.header);
    let with_ports = headers.filter(|header| PROTOCOLS_WITH_PORTS.contains(&header.protocol));
    with_ports.map(|header| header.destination_port).collect()
}

/// Returns a list for each field of ports of each file of own rules: the different matches of
/// the field, the best rule first. The headers are the values of the field in own headers, or
/// else all ports in random order.
///
/// # Errors
/// If the rules of a file match no port.
pub(super) fn ports_of_rules(study: &Study<'_>) -> Result<Vec<MadeSet>, Failure> {
    let mut sets = Vec::new();
    for own in &study.inputs.rules {
        let before = sets.len();
        let fields = own.policy.part(PartId::FIRST).schema();
        let roles = [FieldRole::SourcePort, FieldRole::DestinationPort];
        let fields = roles.map(|role| fields.field_with_role(role));
        for field in fields.into_iter().flatten() {
            sets.extend(ports_of_field(study, own, field));
        }
        if sets.len() == before {
            return Err(Failure::usage(format!(
                "{}: figure `providers` of fch14 needs rules that match source or destination \
                 ports of 16 bits, and no rule does",
                own.name
            ))
            .with_help("`acls` takes rules over any fields"));
        }
    }
    Ok(sets)
}

/// Returns the list of a field; `None` if the field has other than 16 bits, or if all rules
/// have a wildcard in it.
fn ports_of_field(study: &Study<'_>, own: &OwnRules, field: FieldId) -> Option<MadeSet> {
    let rules = own.policy.part(PartId::FIRST);
    let own_schema = rules.schema();
    let described = own_schema.field(field);
    if described.max_value() != u128::from(u16::MAX) {
        return None;
    }
    let mut known = HashSet::from([FieldMatch::Any]);
    let ranked = rules.by_rank().into_iter();
    let matches = ranked.map(|position| rules.rule(position as usize).field(field));
    let matches: Vec<FieldMatch> = matches.filter(|one| known.insert(*one)).collect();
    if matches.is_empty() {
        return None;
    }
    let schema = port_schema(described.name(), described.kind());
    let (headers, origin) = match &own.headers {
        Some(headers) => {
            let keys = headers.trace.part(PartId::FIRST).as_slice();
            let values = keys.iter().map(|key| own_schema.get_field(key, field));
            let ports = values.map(|value| u16::try_from(value).expect("16 bits"));
            (headers_of(&schema, ports), headers.content.clone())
        }
        None => {
            let ports = Order::Random.packets(study.list_seed(0));
            (
                headers_of(&schema, ports.into_iter()),
                "all ports".to_owned(),
            )
        }
    };
    let field = described.name();
    Some(MadeSet {
        name: format!("{}, {field}", own.name),
        content: format!("rules {}, {field}, {origin}", own.content),
        rules: rules_of(&schema, matches.into_iter()),
        headers,
    })
}

fn port_schema(name: &str, kind: MatchKind) -> Arc<Schema> {
    let field = Field::new(name, u16::BITS, kind);
    Schema::new("port", vec![field]).expect("one field of 16 bits")
}

/// Returns a rule for each match, the first one the best.
fn rules_of(schema: &Arc<Schema>, matches: impl Iterator<Item = FieldMatch>) -> RuleSet {
    let mut rules = RuleSet::new(schema);
    for (index, one) in matches.enumerate() {
        let id = RuleId::from_index(index);
        let priority = Priority(u32::MAX - id.get());
        let added = rules.add(id, priority, ActionId(0), &[one]);
        added.expect("a match of the field");
    }
    rules
}

fn headers_of(schema: &Arc<Schema>, ports: impl Iterator<Item = u16>) -> PolicyTrace {
    let mut headers = PolicyTrace::new(std::iter::once(schema));
    for port in ports {
        let pushed = headers.push(PartId::FIRST, &[port.into()]);
        pushed.expect("a port has 16 bits");
    }
    headers
}
