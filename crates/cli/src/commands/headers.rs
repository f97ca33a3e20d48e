//! Headers in reports of the analysis: values by field.

use classyard::Schema;
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

/// Returns a header as text: `src=10.0.0.1 dport=443`.
pub(super) fn header_text(schema: &Schema, header: &[u128]) -> String {
    let values = header_values(schema, header).into_iter();
    join(values.map(|(name, value)| format!("{name}={value}")), " ")
}
