//! Headers in reports of the analysis: values by field.

use classyard::Schema;
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::join;

/// Returns the name and the value of each field.
pub(super) fn header_values(schema: &Schema, header: &[u128]) -> Vec<(String, String)> {
    let fields = schema.fields().iter().zip(header);
    let values = fields.map(|(field, &value)| {
        let value = field.format().display(value).to_string();
        (field.name().to_owned(), value)
    });
    values.collect()
}

/// Returns a header as text: `src=10.0.0.1 dport=443`. Of the fields of firewall rules, those
/// that say nothing are left out.
pub(super) fn header_text(rules: &LoadedRules, schema: &Schema, header: &[u128]) -> String {
    let protocol = value_of(schema, header, "proto").filter(|_| is_acl(schema));
    let values = header_values(schema, header).into_iter().zip(header);
    let values = values.filter(|((name, _), value)| match protocol {
        Some(protocol) => is_shown(protocol, name, **value),
        None => true,
    });
    let text = join(
        values.map(|((name, value), _)| format!("{name}={value}")),
        " ",
    );
    let conditions = value_of(schema, header, CONDITION_FIELD).unwrap_or_default();
    match &rules.conditions(conditions)[..] {
        [] => text,
        conditions => format!("{text}, if {}", join(conditions, " and ")),
    }
}

/// The field with a bit for each condition that no other field expresses.
const CONDITION_FIELD: &str = "condition";

/// The protocols that have ports.
const WITH_PORTS: [u128; 5] = [6, 17, 33, 132, 136];

/// The protocols that have an ICMP type and code.
const WITH_ICMP_TYPE: [u128; 2] = [1, 58];

fn value_of(schema: &Schema, header: &[u128], name: &str) -> Option<u128> {
    schema.field_named(name).map(|field| header[field.index()])
}

/// True for the schemas of firewall rules.
pub(super) fn is_acl(schema: &Schema) -> bool {
    [Schema::acl_ipv4(), Schema::acl_ipv6()]
        .iter()
        .any(|acl| **acl == *schema)
}

/// True if a field of firewall rules says something about a header with this protocol.
fn is_shown(protocol: u128, name: &str, value: u128) -> bool {
    match name {
        "src" | "dst" | "proto" => true,
        "sport" | "dport" => WITH_PORTS.contains(&protocol),
        "icmp_type" | "icmp_code" => WITH_ICMP_TYPE.contains(&protocol),
        CONDITION_FIELD => false,
        _ => value != 0,
    }
}
