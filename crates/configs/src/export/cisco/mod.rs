//! Writes rules as access lists of Cisco's systems.
//!
//! Each list of rules is a list of its name for each family; one list of ASA is for both.

use std::collections::HashSet;

use classyard::RuleId;
use classyard_text::line::{counted_verb, quoted};

use super::lists::List;
use super::statement::Statement;
use super::{Family, Output, Refusal, WriteError};
use crate::builder::{DENY, PERMIT};
use crate::format::ConfigFormat;

mod dialect;
mod entry;
mod order;

use dialect::Dialect;
use entry::{Form, any};
use order::Part;

/// The list of rules that name no list.
const DEFAULT_LIST: &str = "RULES";

/// The maximum number of bytes of a list's name.
const MAX_NAME_BYTES: usize = 64;

/// The maximum number of bytes of a remark. A longer name of a rule has several remarks.
const MAX_REMARK_BYTES: usize = 100;

/// The difference between the numbers of entries.
const NUMBER_STEP: usize = 10;

/// Words after `access-list` that are not names of lists.
const RESERVED_NAMES: [&str; 15] = [
    "alert-interval",
    "cached",
    "deny-flow-max",
    "extended",
    "fqdn",
    "helper",
    "log-update",
    "logging",
    "match-local-traffic",
    "mode",
    "persistent",
    "rate-limit",
    "resequence",
    "role-based",
    "standard",
];

/// The remark before entries for later fragments.
const FRAGMENTS_REMARK: &str = "later fragments of packets";

/// Writes lists.
pub(super) fn write(output: &mut Output<'_>, lists: &[List<'_>]) -> Result<(), WriteError> {
    let format = output.format;
    let dialect = Dialect::of(format);
    output.line(format_args!(
        "! {format} configuration, written by classyard"
    ));
    let mut names = HashSet::new();
    for list in lists {
        let name = list.name.as_deref().unwrap_or(DEFAULT_LIST);
        let refusal = |expected| WriteError::List {
            list: quoted(name),
            format,
            expected,
        };
        if !is_list_name(name) && !is_list_number(name, format, list) {
            return Err(refusal(
                "a name starts with a letter and has at most 64 ASCII letters, digits and signs \
                 except quotes, `?` and `;`",
            ));
        }
        if !names.insert(name) {
            return Err(refusal("another list has the same name"));
        }
        match dialect.headers {
            Some(headers) => write_router_lists(output, dialect, list, (name, headers))?,
            None => write_list_of_both(output, dialect, list, name)?,
        }
    }
    Ok(())
}

/// True if a name can be a list's.
fn is_list_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'?;".contains(&byte);
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(is_plain)
        && !RESERVED_NAMES.contains(&name)
}

/// True if a name is the number of a list that a system has.
fn is_list_number(name: &str, format: ConfigFormat, list: &List<'_>) -> bool {
    let number = name.parse::<u16>().ok();
    let number = number.filter(|number| number.to_string() == name);
    match format {
        ConfigFormat::CiscoAsa => number.is_some(),
        ConfigFormat::CiscoIos => {
            !list.has(Family::Ipv6) && matches!(number, Some(100..=199 | 2000..=2699))
        }
        _ => false,
    }
}

/// Returns the default action of a list for a family that has rules.
fn default_action(
    output: &Output<'_>,
    list: &List<'_>,
    family: Family,
) -> Result<&'static str, WriteError> {
    Ok(match output.default_action(list, family)? {
        PERMIT => PERMIT,
        _ => DENY,
    })
}

/// Writes a list of IPv4 and a list of IPv6.
fn write_router_lists(
    output: &mut Output<'_>,
    dialect: &Dialect,
    list: &List<'_>,
    (name, headers): (&str, [&str; 2]),
) -> Result<(), WriteError> {
    let families: Vec<Family> = Family::EACH.into_iter().filter(|&f| list.has(f)).collect();
    if families.len() > 1 {
        output.note(format!(
            "{} is written as two lists of this name, as its rules are for IPv4 and IPv6; a \
             system that has one list of a name needs another name for the second",
            list.shown()
        ));
    }
    for family in families {
        let default = default_action(output, list, family)?;
        let permits = dialect.permits_later_fragments(family);
        let parts = order::of_router(list.of_family(family), default, permits);
        let protocol = dialect.all_protocols[family as usize];
        let last = format!("{default} {protocol} any any");
        output.line("!");
        output.line(format_args!("{} {name}", headers[family as usize]));
        let mut writer = ListWriter {
            output,
            dialect,
            prefix: dialect.indent.to_owned(),
            entry_word: "",
            number: NUMBER_STEP,
            remarked: None,
        };
        writer.parts(&parts, &format!("{last} fragments"));
        writer.default_entry(list.default_statement(family), &last);
    }
    Ok(())
}

/// Writes a list for both families.
fn write_list_of_both(
    output: &mut Output<'_>,
    dialect: &Dialect,
    list: &List<'_>,
    name: &str,
) -> Result<(), WriteError> {
    let mut defaults = [None; 2];
    for family in Family::EACH.into_iter().filter(|&family| list.has(family)) {
        defaults[family as usize] = Some(default_action(output, list, family)?);
    }
    let (parts, refusals, left_out) = order::of_reassembling(&list.statements, defaults);
    refusals
        .into_iter()
        .for_each(|refusal| output.refuse(refusal));
    if left_out > 0 {
        output.note(format!(
            "{} left out of {}: later fragments alone, which the other rules decide alike",
            counted_verb(left_out, "statement", "is", "are"),
            list.shown()
        ));
    }
    for (family, default) in Family::EACH.into_iter().zip(defaults) {
        if default.is_none() {
            output.note(format!(
                "{} has no rules for {}, and {} denies these packets at its end",
                list.shown(),
                family.name(),
                dialect.name
            ));
        }
    }
    output.line("!");
    let mut writer = ListWriter {
        output,
        dialect,
        prefix: format!("access-list {name} "),
        entry_word: "extended ",
        number: NUMBER_STEP,
        remarked: None,
    };
    writer.parts(&parts, "");
    let protocol = dialect.all_protocols[0];
    let entry = |action: &str, address| format!("{action} {protocol} {address} {address}");
    let statements = Family::EACH.map(|family| list.default_statement(family));
    match defaults {
        [Some(action), Some(other)] if action == other => {
            writer.default_entry(statements[0], &entry(action, any(None)));
        }
        _ => {
            for (index, family) in Family::EACH.into_iter().enumerate() {
                if let Some(action) = defaults[index] {
                    writer.default_entry(statements[index], &entry(action, any(Some(family))));
                }
            }
        }
    }
    Ok(())
}

/// Writes the entries of a list.
struct ListWriter<'w, 'o, 'd> {
    output: &'w mut Output<'o>,
    dialect: &'d Dialect,
    /// The text before each entry and each remark.
    prefix: String,
    /// The text between the prefix and an entry.
    entry_word: &'static str,
    /// The number of the next entry.
    number: usize,
    /// The rule whose name is the last remark.
    remarked: Option<RuleId>,
}

impl ListWriter<'_, '_, '_> {
    /// Writes parts of a list. `fragments_default` is the entry for the later fragments that
    /// no other entry selects.
    fn parts(&mut self, parts: &[Part<'_, '_>], fragments_default: &str) {
        let mut is_repeated = false;
        for part in parts {
            match part {
                Part::Statement(form) => self.statement(form, is_repeated),
                Part::FragmentsStart => {
                    self.remark(FRAGMENTS_REMARK);
                    is_repeated = true;
                }
                Part::FragmentsDefault => {
                    self.entry(fragments_default);
                    is_repeated = false;
                }
            }
        }
    }

    /// Writes the entries of a statement after the name of its rule. Statements that are
    /// written for other packets again have their name there.
    fn statement(&mut self, form: &Form<'_, '_>, is_repeated: bool) {
        let statement = form.statement;
        let entries = form.entries(self.dialect).and_then(|entries| {
            let is_named = !is_repeated || form.is_only_for_fragments();
            let has_remark = is_named && self.remarked != Some(statement.rule);
            let remarks = if has_remark {
                remarks(statement)?
            } else {
                Vec::new()
            };
            Ok((remarks, entries))
        });
        match entries {
            Ok((remarks, entries)) => {
                for remark in &remarks {
                    self.remark(remark);
                    self.remarked = Some(statement.rule);
                }
                for entry in entries {
                    self.entry(&entry);
                    self.output.written.statements += 1;
                }
            }
            Err(refusal) => self.output.refuse(refusal),
        }
    }

    /// Writes the default action of a list after the name of the rule that has it.
    fn default_entry(&mut self, statement: Option<&Statement<'_>>, text: &str) {
        match statement.map_or_else(|| Ok(Vec::new()), remarks) {
            Ok(remarks) => {
                for remark in remarks {
                    self.remark(remark);
                }
                self.entry(text);
            }
            Err(refusal) => self.output.refuse(refusal),
        }
    }

    fn entry(&mut self, text: &str) {
        let word = self.entry_word;
        let line = self.prefixed(&format!("{word}{text}"));
        self.output.line(line);
    }

    fn prefixed(&mut self, text: &str) -> String {
        let prefix = &self.prefix;
        if !self.dialect.has_numbers {
            return format!("{prefix}{text}");
        }
        self.number += NUMBER_STEP;
        format!("{prefix}{} {text}", self.number - NUMBER_STEP)
    }

    fn remark(&mut self, text: &str) {
        let line = self.prefixed(&format!("remark {text}"));
        self.output.line(line);
    }
}

/// Returns the name of a statement's rule as remarks that become the name again with spaces
/// between them.
fn remarks<'p>(statement: &Statement<'p>) -> Result<Vec<&'p str>, Refusal> {
    let refuse = |reason: String| statement.refuse(reason);
    let name = statement.name.unwrap_or_default();
    if name.chars().any(char::is_control) {
        return Err(refuse("a name with control characters".to_owned()));
    }
    let mut remarks = Vec::new();
    let mut rest = name.trim();
    while rest.len() > MAX_REMARK_BYTES {
        let start = &rest.as_bytes()[..=MAX_REMARK_BYTES];
        let space = start.iter().rposition(|&byte| byte == b' ');
        let (line, next) = match space {
            Some(space) => (&rest[..space], &rest[space + 1..]),
            None => {
                return Err(refuse(format!(
                    "a name with a word of more than {MAX_REMARK_BYTES} bytes"
                )));
            }
        };
        remarks.push(line.trim_end());
        rest = next.trim_start();
    }
    if !rest.is_empty() {
        remarks.push(rest);
    }
    Ok(remarks)
}
