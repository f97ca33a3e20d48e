//! The schema of a file of flows: from a comment, or from the fields of the flows.

use classyard::Schema;
use classyard::policy::Policy;
use classyard_text::line::lines;
use classyard_text::ofctl::{StatementKind, statements};

use crate::formats::SchemaChoice;

/// The start of the comment that names a schema. It must be above the first flow.
const SCHEMA_COMMENT: &str = "# schema ";

/// Texts that occur in the names of fields that five-tuples lack.
const ABOVE_FIVE_TUPLES: [&str; 9] = [
    "in_port=",
    "metadata=",
    "dl_",
    "eth_",
    "vlan_",
    "mpls",
    "arp",
    "nw_tos",
    "ip_dscp",
];

/// Returns the comment that names the schema of a file. Returns `None` if the schema is the
/// reader's default or has no built-in name.
pub(super) fn comment(choice: &SchemaChoice, policy: &Policy) -> Option<String> {
    // Names of rules are also written as comments.
    let mut names = policy.ids().iter().filter_map(|&id| policy.rule_name(id));
    let is_default = *choice == SchemaChoice::Single(Schema::openflow15())
        && !names.any(|name| name.trim_start().starts_with("schema "));
    let is_named = SchemaChoice::named(choice.name()).as_ref() == Some(choice);
    (is_named && !is_default).then(|| format!("{SCHEMA_COMMENT}{}\n", choice.name()))
}

/// Returns the schema that a file's comment names. Without a comment, returns
/// `dual-5tuple` if the file has IPv6 addresses and no field that five-tuples lack,
/// otherwise `openflow15`. Only five-tuples have IPv6 addresses.
pub(super) fn of(text: &str) -> SchemaChoice {
    let comments = lines(text).take_while(|(_, line)| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#')
    });
    let mut named = comments.filter_map(|(_, line)| {
        let name = line.trim().strip_prefix(SCHEMA_COMMENT)?;
        SchemaChoice::named(name.trim())
    });
    if let Some(choice) = named.next() {
        return choice;
    }
    let flows = || statements(text).filter(|s| s.kind == StatementKind::Flow);
    let has = |names: &[&str]| flows().any(|flow| names.iter().any(|n| flow.text.contains(n)));
    match has(&["ipv6_src=", "ipv6_dst="]) && !has(&ABOVE_FIVE_TUPLES) {
        true => SchemaChoice::DualStack,
        false => SchemaChoice::Single(Schema::openflow15()),
    }
}
