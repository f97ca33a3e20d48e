//! Converts fields of a text to fields of the datapath.

use classyard_text::Fault;
use classyard_text::line::quoted;
use classyard_text::ofctl::{self, Demand, FieldSpec, FlowLine, Kind, PortNames};

use crate::error::OpenFlowError;
use crate::field::{Field, VLAN_PRESENT};
use crate::flow_match::{FlowMatch, MatchField};

/// Returns the field of a specification. A test checks that each specification has a field.
fn of(spec: &FieldSpec) -> Field {
    Field::from_name(spec.name).unwrap_or(Field::InPort)
}

/// Returns the match of a flow.
pub(super) fn flow_match<'t>(flow: &FlowLine<'t>, line: &'t str) -> Result<FlowMatch, Fault<'t>> {
    let mut values: Vec<MatchField> = Vec::with_capacity(flow.demands().len() + 1);
    values.extend(flow.demands().iter().map(|demand| MatchField {
        field: of(demand.field),
        value: demand.value,
        mask: demand.mask,
    }));
    let named = |name| {
        flow.demands()
            .iter()
            .find(|demand| demand.field.name == name)
    };
    if let Some(priority) = named("vlan_pcp") {
        values.extend(implied_tag(priority, named("vlan_vid"))?);
        if let Some(vid) = values
            .iter_mut()
            .find(|value| value.field == Field::VlanVid)
        {
            vid.value |= u128::from(VLAN_PRESENT);
            vid.mask |= u128::from(VLAN_PRESENT);
        }
    }
    FlowMatch::new(values).map_err(|error| refused(&error, flow, line))
}

/// Returns the match on a VLAN tag that a match on the VLAN priority implies, unless the flow
/// already matches the VLAN number.
fn implied_tag<'t>(
    priority: &Demand<'t>,
    number: Option<&Demand<'t>>,
) -> Result<Option<MatchField>, Fault<'t>> {
    if !priority.needs_tag && priority.value == 0 {
        return Err(Fault::new(
            priority.text,
            format!(
                "{} matches packets without a VLAN tag and some packets with a tag",
                quoted(priority.text)
            ),
            "a flow for packets without a tag (vlan_tci=0), and one for those with a tag",
        ));
    }
    let present = u128::from(VLAN_PRESENT);
    Ok(number.is_none().then_some(MatchField {
        field: Field::VlanVid,
        value: present,
        mask: present,
    }))
}

/// Converts the error of a refused match to a fault that names the wrong field.
fn refused<'t>(error: &OpenFlowError, flow: &FlowLine<'t>, line: &'t str) -> Fault<'t> {
    let demand = flow
        .demands()
        .iter()
        .find(|demand| Some(of(demand.field)) == error.field());
    let part = demand.map_or(line, |demand| demand.text);
    Fault::new(part, error.to_string(), super::ACCEPTED_MESSAGE)
}

/// Reads a value of the field that has the name `name`.
pub(super) fn value<'t>(
    name: &'t str,
    text: &'t str,
    kind: Kind,
    ports: &mut PortNames<'_>,
) -> Result<MatchField, Fault<'t>> {
    let spec = ofctl::field(name, kind)?;
    let read = ofctl::value(name, spec, text, ports)?;
    Ok(MatchField {
        field: of(spec),
        value: read.value,
        mask: read.mask,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the text parser and the datapath have the same fields.
    #[test]
    fn every_field_is_read_with_its_width_and_masks() {
        for field in Field::all() {
            let spec = ofctl::field(field.name(), Kind::default()).unwrap();
            let info = field.info();
            assert_eq!(of(spec), field);
            assert_eq!(
                (spec.name, spec.width, spec.maskable, spec.format),
                (info.name, info.width, info.maskable, field.format())
            );
        }
        for spec in ofctl::FIELDS {
            assert!(Field::from_name(spec.name).is_some(), "{}", spec.name);
        }
    }
}
