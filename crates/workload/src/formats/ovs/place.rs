//! The translation of a flow's conditions to matches on a schema's fields.

use std::sync::Arc;

use classyard::policy::PartId;
use classyard::{FieldMatch, Schema};
use classyard_text::ofctl::{Demand, FlowLine, too_large};

use super::{ETH_IPV4, ETH_IPV6, Fault, quoted};
use crate::formats::value::kind_takes;

/// The bit of `vlan_vid` that is set in packets with a VLAN tag.
const TAG_BIT: u128 = 0x1000;

/// The bits of `vlan_vid` that hold the VLAN number.
const VLAN_NUMBER: u128 = 0x0fff;

/// The conditions that a flow may use instead of the presence of a tag, for messages.
const TAG_WORDS: &str = "a VLAN's number or priority that is not 0, such as dl_vlan=5, or \
    vlan_tci=0x0000/0x0fff for 0 with a tag or without; schemas have no field for the presence \
    of a tag";

/// Returns the matches of a flow in each part of the policy that it belongs to. There is
/// at least one such part.
pub(super) fn place<'t>(
    flow: &FlowLine<'t>,
    schemas: &[Arc<Schema>],
    name: &str,
) -> Result<Vec<(PartId, Vec<FieldMatch>)>, Fault<'t>> {
    let mut parts = Vec::with_capacity(schemas.len());
    for (index, schema) in schemas.iter().enumerate() {
        if let Some(matches) = place_in(flow, schema)? {
            parts.push((PartId::from_index(index), matches));
        }
    }
    let typed = flow
        .demands()
        .iter()
        .find(|demand| demand.field.name == "eth_type");
    if let (true, Some(demand)) = (parts.is_empty(), typed) {
        return Err(Fault::new(
            demand.text,
            format!(
                "Ethernet type {:#06x} does not occur in schema `{name}`",
                demand.value
            ),
            "flows of the schema's packets",
        ));
    }
    Ok(parts)
}

/// Returns the family of a schema without a field for the Ethernet type, by the width of
/// its addresses.
pub(super) fn family(schema: &Schema) -> Option<u16> {
    let source = schema.field_named("src").map(|id| schema.field(id).width());
    match source {
        Some(32) => Some(ETH_IPV4),
        Some(128) => Some(ETH_IPV6),
        _ => None,
    }
}

/// Returns the schema's name for a field, and the width that the schema's field must
/// have, if several widths exist.
fn schema_field(name: &str) -> Option<(&'static str, Option<u32>)> {
    Some(match name {
        "in_port" => ("in_port", None),
        "metadata" => ("metadata", None),
        "eth_src" => ("eth_src", None),
        "eth_dst" => ("eth_dst", None),
        "eth_type" => ("eth_type", None),
        "vlan_vid" => ("vlan_vid", None),
        "vlan_pcp" => ("vlan_pcp", None),
        "mpls_label" => ("mpls_label", None),
        "mpls_tc" => ("mpls_tc", None),
        "ip_dscp" => ("ip_dscp", None),
        "ip_proto" | "arp_op" => ("proto", None),
        "ipv4_src" | "arp_spa" => ("src", Some(32)),
        "ipv4_dst" | "arp_tpa" => ("dst", Some(32)),
        "ipv6_src" => ("src", Some(128)),
        "ipv6_dst" => ("dst", Some(128)),
        "tcp_src" | "udp_src" | "sctp_src" | "icmp_type" | "icmpv6_type" => ("sport", None),
        "tcp_dst" | "udp_dst" | "sctp_dst" | "icmp_code" | "icmpv6_code" => ("dport", None),
        _ => return None,
    })
}

/// Returns the matches for a schema, or `None` if none of the schema's packets can match.
fn place_in<'t>(
    flow: &FlowLine<'t>,
    schema: &Arc<Schema>,
) -> Result<Option<Vec<FieldMatch>>, Fault<'t>> {
    let typed = schema.field_named("eth_type").is_some();
    let mut matches = vec![FieldMatch::Any; schema.fields().len()];
    // The type is checked first. This schema ignores flows of another family.
    if let Some(eth_type) = flow.kind.eth_type.filter(|_| !typed)
        && family(schema) != Some(eth_type)
    {
        return Ok(None);
    }
    for demand in flow.demands() {
        if demand.field.name == "eth_type" && !typed {
            continue;
        }
        if !typed && flow.kind.is_icmp() && is_port(demand) {
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
        let Some((name, width)) = schema_field(demand.field.name) else {
            return Err(unsupported(demand));
        };
        let field_id = schema
            .field_named(name)
            .filter(|&id| width.is_none_or(|width| width == schema.field(id).width()));
        let Some(id) = field_id else {
            return Err(Fault::unsupported(
                demand.text,
                format!(
                    "schema `{}` has no field for {}",
                    schema.name(),
                    quoted(demand.text)
                ),
                "a flow without it, or another schema",
            ));
        };
        if let Some(field_match) = wanted(flow, demand)? {
            check(schema, schema.field(id), demand, &field_match)?;
            matches[id.index()] = field_match;
        }
    }
    Ok(Some(matches))
}

/// Checks that a schema's field can express a match.
fn check<'t>(
    schema: &Schema,
    field: &classyard::schema::Field,
    demand: &Demand<'t>,
    wanted: &FieldMatch,
) -> Result<(), Fault<'t>> {
    let numbers = match *wanted {
        FieldMatch::Ternary { value, mask } => [value, mask],
        FieldMatch::Exact(value) => [value, 0],
        _ => [0, 0],
    };
    if numbers.iter().any(|&number| number > field.max_value()) {
        return Err(too_large(demand.value_text, demand.key, field.width()));
    }
    if kind_takes(field, wanted) {
        return Ok(());
    }
    Err(Fault::new(
        demand.text,
        format!(
            "schema `{}` cannot say the mask of {}: `{}` takes {} matches",
            schema.name(),
            quoted(demand.text),
            field.name(),
            field.kind()
        ),
        "a value without a mask, as the field takes one value or any",
    ))
}

/// Returns the match of a condition, or `None` if other conditions of the flow imply it.
fn wanted<'t>(flow: &FlowLine<'t>, demand: &Demand<'t>) -> Result<Option<FieldMatch>, Fault<'t>> {
    match demand.field.name {
        "vlan_vid" => vlan_number(flow, demand),
        "vlan_pcp" if demand.needs_tag && !shows_tag(flow) => {
            Err(needs_tag(demand.text, demand.text))
        }
        _ => Ok(Some(masked(
            demand.value,
            demand.mask,
            demand.field.max_value(),
        ))),
    }
}

/// Returns the match of a VLAN number. In packets without a tag, number and priority are
/// 0. So only a number or priority other than 0 can require a tag.
fn vlan_number<'t>(
    flow: &FlowLine<'t>,
    demand: &Demand<'t>,
) -> Result<Option<FieldMatch>, Fault<'t>> {
    let tests_tag = demand.mask & TAG_BIT != 0;
    if tests_tag && demand.value & TAG_BIT == 0 {
        return Err(needs_tag(demand.value_text, demand.value_text));
    }
    let mask = demand.mask & VLAN_NUMBER;
    if tests_tag && !shows_tag(flow) {
        return Err(match mask {
            0 => needs_tag(demand.value_text, demand.value_text),
            _ => needs_tag(demand.text, demand.text),
        });
    }
    let field_match = masked(demand.value & mask, mask, VLAN_NUMBER);
    Ok((mask != 0).then_some(field_match))
}

/// True if the flow requires a VLAN number or priority other than 0. Packets without a
/// tag have 0 there.
fn shows_tag(flow: &FlowLine<'_>) -> bool {
    flow.demands().iter().any(|demand| match demand.field.name {
        "vlan_vid" => demand.value & demand.mask & VLAN_NUMBER != 0,
        "vlan_pcp" => demand.value & demand.mask != 0,
        _ => false,
    })
}

fn needs_tag<'t>(part: &'t str, text: &str) -> Fault<'t> {
    Fault::new(
        part,
        format!("{} asks whether there is a VLAN tag", quoted(text)),
        TAG_WORDS,
    )
}

/// Returns the simplest match for a value under a mask.
fn masked(value: u128, mask: u128, all: u128) -> FieldMatch {
    match mask {
        mask if mask == all => FieldMatch::Exact(value),
        mask => FieldMatch::Ternary { value, mask },
    }
}

fn is_port(demand: &Demand<'_>) -> bool {
    let schema_name = schema_field(demand.field.name);
    schema_name.is_some_and(|(name, _)| matches!(name, "sport" | "dport"))
}

/// Returns the fault for a field that no schema has.
fn unsupported<'t>(demand: &Demand<'t>) -> Fault<'t> {
    let message = match demand.field.name {
        "arp_sha" | "arp_tha" | "nd_target" | "nd_sll" | "nd_tll" => {
            format!("no schema has a field for {}", quoted(demand.key))
        }
        _ => format!("unsupported field {}", quoted(demand.key)),
    };
    Fault::unsupported(
        demand.text,
        message,
        "a field that schemas have, or a flow without it (dropping it would change what matches)",
    )
}
