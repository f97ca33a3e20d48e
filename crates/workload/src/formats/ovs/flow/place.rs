//! The places of a flow's demands among the fields of schemas.

use std::sync::Arc;

use classyard::policy::PartId;
use classyard::{FieldMatch, Schema};

use super::{Demand, Flow, Needs};
use crate::formats::ovs::{Fault, IPV4, IPV6, quoted};
use crate::formats::value::{kind_takes, too_large};

/// The matches of a flow in each part where it stands; at least one.
pub(in crate::formats::ovs) fn place<'t>(
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
pub(in crate::formats::ovs) fn family(schema: &Schema) -> Option<u16> {
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
