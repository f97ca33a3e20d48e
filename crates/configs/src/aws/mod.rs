//! Security groups and network ACLs of AWS, as the command line of AWS prints them.
//!
//! The text is JSON (or YAML, `--output yaml`): one output, several after each other, or a
//! list of outputs.
//!
//! | output of `aws ec2` | use |
//! |---|---|
//! | `describe-security-groups` | the lists `NAME/sg-ID/in` and `NAME/sg-ID/out` of each group |
//! | `describe-security-group-rules` | the same, for groups without an entry in the output above |
//! | `describe-network-acls` | the lists `acl-ID/in` and `acl-ID/out` of each network ACL |
//! | `describe-network-interfaces`, `describe-instances` | the addresses of members of groups |
//! | `describe-managed-prefix-lists`, then `get-managed-prefix-list-entries` | prefix lists |
//! | `describe-prefix-lists` | prefix lists of AWS services |
//!
//! The entries of a managed prefix list do not name their list. So they follow an output of
//! `describe-managed-prefix-lists` with this list alone, or their output has the key
//! `PrefixListId` too.
//!
//! A security group permits packets that a rule matches, and replies to permitted packets:
//! its first rule, which is implied, permits the states `established` and `related`. A network
//! ACL has no states.
//!
//! A member of a security group is known if the file has network interfaces, and the group is
//! in the file. Other groups, and prefix lists without entries, are conditions.
//!
//! Not modelled: routes, load balancers, rules of AWS Network Firewall (reported by name),
//! fragments (a rule with ports is compared with the ports of every packet).

use classyard_text::Fault;
use classyard_text::line::quoted;
use classyard_workload::diagnostic::ReadError;

use crate::builder::Builder;
use crate::document::{Document, Item, is_json};
use crate::notes::Names;

mod acls;
mod groups;
mod inventory;
mod protocols;

use inventory::Inventory;

/// The keys of outputs with lists of rules.
const RULE_KEYS: [&str; 3] = ["SecurityGroups", "SecurityGroupRules", "NetworkAcls"];

/// The keys of outputs of AWS Network Firewall.
const FIREWALL_KEYS: [&str; 3] = ["RuleGroup", "FirewallPolicy", "Firewall"];

/// True if a text has an output with lists of rules.
pub(crate) fn is_format(text: &str) -> bool {
    let is_key = |line: &str, key: &str| match is_json(text) {
        true => line.contains(&format!("\"{key}\"")),
        false => line
            .strip_prefix(key)
            .is_some_and(|tail| tail.starts_with(':')),
    };
    let has_key = |line: &str| RULE_KEYS.iter().any(|key| is_key(line, key));
    text.lines().any(has_key)
}

/// The parts of all outputs.
#[derive(Default)]
struct Outputs<'d> {
    groups: Vec<Item<'d>>,
    group_rules: Vec<Item<'d>>,
    acls: Vec<Item<'d>>,
    inventory: Inventory<'d>,
    /// True if there is a key of [`RULE_KEYS`].
    has_rules: bool,
    has_faults: bool,
    ignored_keys: Names,
}

/// Reads outputs.
pub(crate) fn read(file: &str, text: &str, builder: &mut Builder<'_>) -> Result<(), ReadError> {
    let Some(document) = Document::read(text, builder) else {
        return Ok(());
    };
    let mut outputs = Outputs::default();
    for root in document.roots() {
        let elements = match root.is_sequence() {
            true => root.elements().map(Iterator::collect),
            false => Ok(vec![root]),
        };
        for output in elements.unwrap_or_default() {
            outputs.add(output, builder);
        }
    }
    if !outputs.has_rules && !outputs.has_faults {
        return Err(ReadError::Format {
            file: file.to_owned(),
            found: "no rules of AWS".to_owned(),
            expected: "the output of `aws ec2 describe-security-groups`, \
                       `describe-security-group-rules` or `describe-network-acls`"
                .to_owned(),
        });
    }
    if outputs.ignored_keys.count() > 0 {
        builder.note(format!(
            "outputs without rules, addresses and prefix lists were ignored: {}",
            outputs.ignored_keys
        ));
    }
    outputs.inventory.merge();
    groups::add(&outputs, builder)?;
    acls::add(&outputs.acls, builder)
}

impl<'d> Outputs<'d> {
    fn add(&mut self, output: Item<'d>, builder: &mut Builder<'_>) {
        let entries = match output.entries() {
            Ok(entries) => entries,
            Err(_) => {
                output.report(builder, output.unexpected("an output of `aws ec2`"));
                self.has_faults = true;
                return;
            }
        };
        for (key, value) in entries {
            if let Err(fault) = self.add_section(output, key, value, builder) {
                output.report(builder, fault);
                self.has_faults = true;
            }
        }
    }

    fn add_section(
        &mut self,
        output: Item<'d>,
        key: Item<'d>,
        value: Item<'d>,
        builder: &mut Builder<'_>,
    ) -> Result<(), Fault<'d>> {
        let name = key.scalar_text();
        self.has_rules |= RULE_KEYS.contains(&name);
        match name {
            "SecurityGroups" => self.groups.extend(value.elements()?),
            "SecurityGroupRules" => self.group_rules.extend(value.elements()?),
            "NetworkAcls" => self.acls.extend(value.elements()?),
            "NextToken" if !value.is_null() => {
                return Err(key.fault(
                    "an output that lacks its next pages",
                    "the output of all pages (without --max-items and --no-paginate)",
                ));
            }
            _ if FIREWALL_KEYS.contains(&name) => {
                return Err(
                    key.unsupported("AWS Network Firewall", "security groups and network ACLs")
                );
            }
            _ => {
                if !self.inventory.add_section(output, key, value, builder)?
                    && !["NextToken", "PrefixListId"].contains(&name)
                {
                    self.ignored_keys.add(quoted(name));
                }
            }
        }
        Ok(())
    }
}
