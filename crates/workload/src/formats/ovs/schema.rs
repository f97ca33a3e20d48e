//! The schema of a file of flows.

use classyard::Schema;
use classyard::policy::Policy;
use classyard_text::line::lines;
use classyard_text::ofctl::{StatementKind, statements};

use crate::formats::SchemaChoice;

/// Words before the name of a schema, in a comment over the first flow.
const SCHEMA_COMMENT: &str = "# schema ";

/// Parts of names of fields that five-tuples do not have.
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

/// The comment that says which schema the flows of a file are for; nothing if they would
/// be read with it anyway, or if it has no name.
pub(super) fn comment(choice: &SchemaChoice, policy: &Policy) -> Option<String> {
    // Names of rules are written as comments, too.
    let mut names = policy.ids().iter().filter_map(|&id| policy.rule_name(id));
    let is_default = *choice == SchemaChoice::Single(Schema::openflow15())
        && !names.any(|name| name.trim_start().starts_with("schema "));
    let is_named = SchemaChoice::named(choice.name()).as_ref() == Some(choice);
    (is_named && !is_default).then(|| format!("{SCHEMA_COMMENT}{}\n", choice.name()))
}

/// The schema that a file's comment says; or `openflow15`, unless the file has addresses
/// of IPv6, for which only five-tuples have room, and no field that these lack.
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
    let flows = || statements(text).filter(|one| one.kind == StatementKind::Flow);
    let has = |names: &[&str]| flows().any(|one| names.iter().any(|name| one.text.contains(name)));
    match has(&["ipv6_src=", "ipv6_dst="]) && !has(&ABOVE_FIVE_TUPLES) {
        true => SchemaChoice::DualStack,
        false => SchemaChoice::Single(Schema::openflow15()),
    }
}
