//! Configurations of Juniper devices: firewall filters and security policies.
//!
//! Both notations are read: blocks in braces (`show configuration`) and commands
//! (`show configuration | display set`). They become one [`tree`] of words, and one
//! translation reads it.
//!
//! | statements | module |
//! |---|---|
//! | both notations, `inactive:`, `deactivate`, `replace:`, `delete:`, comments | `parse` |
//! | `groups`, `apply-groups`, `apply-groups-except` | `groups` |
//! | `firewall filter`, `firewall family inet` and `inet6` with `filter` | `filter`, `conditions` |
//! | `policy-options prefix-list`, also with `apply-path` | `conditions`, `prefixes` |
//! | `security policies`, `default-policy` | `policy` |
//! | `security address-book`, `security zones … address-book` | `address_book` |
//! | `applications`, and predefined applications | `application` |
//!
//! Each filter is a list with its name; the security policies are the list `policies`.
//!
//! These statements are faults with a name: filters of other families, service filters and
//! simple filters; a filter in a term; `next filter`; conditions and actions that are not in
//! the lists of `conditions` and `filter`; the commands `delete`, `insert` and similar ones;
//! rules of logical systems and tenants. Statements at the top that have no rules, and no
//! definitions that rules use, are ignored.

use std::collections::HashMap;

use classyard_text::Fault;
use classyard_text::line::{counted_verb, quoted};
use classyard_workload::diagnostic::ReadError;

use crate::builder::Builder;

mod address_book;
mod application;
mod conditions;
mod filter;
mod flags;
mod groups;
mod host_bits;
mod names;
mod parse;
mod policy;
mod prefixes;
mod statements;
mod token;
mod tree;

use statements::Reader;
use tree::{Lines, Tree};

/// Statements at the top of configurations.
const TOP: [&str; 11] = [
    "applications",
    "chassis",
    "firewall",
    "forwarding-options",
    "groups",
    "interfaces",
    "policy-options",
    "routing-instances",
    "routing-options",
    "security",
    "system",
];

/// True if a text looks like a configuration of a Juniper device.
pub(crate) fn is_format(text: &str) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        let first = match words.next() {
            Some("inactive:" | "replace:" | "protect:") => words.next(),
            other => other,
        };
        match (first, words.next()) {
            (Some("set" | "deactivate"), Some(second)) => TOP.contains(&second),
            (Some(first), Some("{")) => TOP.contains(&first),
            _ => false,
        }
    })
}

/// Reads the firewall filters and the security policies of a configuration.
pub(crate) fn read(text: &str, builder: &mut Builder<'_>) -> Result<(), ReadError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = Lines::new(text);
    let mut faults = Vec::new();
    let mut tree = Tree::new();
    let parsed = parse::parse(text, &mut faults).and_then(|parsed| {
        tree = parsed;
        groups::inherit(&mut tree, &mut faults)
    });
    let is_complete = parsed.is_ok();
    faults.extend(parsed.err());
    let mut reader = Reader {
        tree: &tree,
        lines: &lines,
        builder,
        prefix_lists: HashMap::new(),
    };
    for fault in faults {
        reader.problem(fault);
    }
    // Rules of a part of the file would say nothing about the device.
    if !is_complete {
        return Ok(());
    }
    report_other_systems(&mut reader);
    filter::read(&mut reader)?;
    policy::read(&mut reader)?;
    host_bits::note(&mut reader);
    let inactive = tree.count_inactive();
    if inactive > 0 {
        let verb = counted_verb(inactive, "inactive statement", "was", "were");
        reader.builder.note(format!("{verb} ignored"));
    }
    Ok(())
}

/// Reports rules of logical systems and tenants.
fn report_other_systems(reader: &mut Reader<'_, '_, '_>) {
    let tree = reader.tree;
    for kind in ["logical-systems", "tenants"] {
        for system in address_book::children_at(tree, &[kind]) {
            for part in ["firewall", "security"] {
                if let Some(word) = tree.child(system, part) {
                    reader.problem(Fault::unsupported(
                        tree.text(word),
                        format!("{} of {}", quoted(part), quoted(kind)),
                        "the configuration of the system alone",
                    ));
                }
            }
        }
    }
}
