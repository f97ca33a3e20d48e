//! Policies: rules, before they become a table.

use std::ffi::c_char;
use std::path::Path;

use classyard::columns::Columns;
use classyard::policy::PartId;
use classyard::ruleset::AddError;
use classyard::{ActionId, FieldMatch, Priority, Rule as CoreRule, RuleId, RuleRef};
use classyard_configs::{AnyOptions, InputFormat, read_any, read_any_file};
use classyard_workload::diagnostic::{ReadError, ReadOptions};
use classyard_workload::formats::{RuleFormat, SchemaChoice, read_policy};

use crate::handle::{borrow, borrow_mut, give_to, take};
use crate::status::{Fault, Status, call};
use crate::types::{
    Column, Form, Forms, Match, Rule, optional_text, part, put, slice, slice_mut, text,
};

/// Rules, with the names of their actions. A policy is for one thread at a time.
pub struct Policy {
    pub(crate) rules: classyard::Policy,
    /// The line of each rule in the file or text, in order; rules added later have none.
    lines: Vec<u32>,
}

/// Returns the schema or schemas of a policy, for rules that are read from text.
pub(crate) fn schemas(policy: &classyard::Policy) -> Result<SchemaChoice, Fault> {
    SchemaChoice::of(policy).ok_or_else(|| {
        let name = policy.name();
        Fault::argument(format!(
            "rules of the schemas `{name}` cannot be written as text"
        ))
    })
}

/// Reads one rule in the format `rules`, such as `permit src=10.0.0.0/8 dport=443`. Its id and
/// priority are not part of the text.
pub(crate) fn parse_rule(
    schemas: &SchemaChoice,
    id: u32,
    priority: u32,
    text: &str,
) -> Result<ParsedRule, Fault> {
    let line = format!("{text} id={id} priority={priority}");
    let options = ReadOptions::DEFAULT;
    let loaded = read_policy(
        "rule",
        &line,
        Some(RuleFormat::Rules),
        Some(schemas),
        &options,
    );
    let policy = loaded.map_err(read_fault)?.value;
    match policy.ids() {
        // A comment in the text hides the id.
        [only] if only.get() == id => Ok(ParsedRule { id: *only, policy }),
        ids => {
            let count = ids.len();
            let message = format!("one rule without a comment is expected, not {count}: {text}");
            Err(Fault::new(Status::ParseFailed, message))
        }
    }
}

/// A rule that was read from a text.
pub(crate) struct ParsedRule {
    pub(crate) id: RuleId,
    policy: classyard::Policy,
}

impl ParsedRule {
    /// Returns the name of the rule's action.
    pub(crate) fn action(&self) -> &str {
        let action = self
            .policy
            .rule(self.id)
            .next()
            .map(|(_, rule)| rule.action());
        let name = action.and_then(|action| self.policy.action_name(action));
        name.unwrap_or_default()
    }

    /// Returns the rule's matches in each part.
    pub(crate) fn forms(&self) -> Vec<(PartId, Vec<FieldMatch>)> {
        let matches = |rule: RuleRef<'_>| {
            let fields = rule.schema().field_ids();
            fields.map(|field| rule.field(field)).collect()
        };
        let forms = self.policy.rule(self.id);
        forms.map(|(part, rule)| (part, matches(rule))).collect()
    }
}

pub(crate) fn read_fault(error: ReadError) -> Fault {
    let status = match error {
        ReadError::Io { .. } => Status::InvalidArgument,
        _ => Status::ParseFailed,
    };
    Fault::new(status, error)
}

fn options(
    format: Option<&str>,
    schema: Option<&str>,
    list: Option<&str>,
) -> Result<AnyOptions, Fault> {
    let format = format.map(|name| {
        InputFormat::from_name(name).ok_or_else(|| {
            let names: Vec<&str> = InputFormat::all().map(InputFormat::name).collect();
            let names = names.join(", ");
            Fault::argument(format!(
                "`{name}` is no format of rules; the formats are {names}"
            ))
        })
    });
    Ok(AnyOptions {
        format: format.transpose()?,
        schema: schema.map(named_schema).transpose()?,
        list: list.map(str::to_owned),
        read: ReadOptions::DEFAULT,
    })
}

fn named_schema(name: &str) -> Result<SchemaChoice, Fault> {
    SchemaChoice::named(name).ok_or_else(|| {
        let names = SchemaChoice::names().join(", ");
        Fault::argument(format!("`{name}` is no schema; the schemas are {names}"))
    })
}

/// Reads the rules of a file: any format that `classyard formats` lists, also packed with
/// gzip.
///
/// `format` is the name of the format, or null to detect it. `list` is the list of a
/// firewall's configuration to read, or null for all lists. `*policy` is the new policy; free
/// it with `cy_policy_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_read(
    path: *const c_char,
    format: *const c_char,
    list: *const c_char,
    policy: *mut *mut Policy,
) -> Status {
    call(|| {
        // SAFETY: the texts are as documented.
        let (path, format, list) = unsafe {
            let path = text(path, "path")?;
            let format = optional_text(format, "format")?;
            (path, format, optional_text(list, "list")?)
        };
        let options = options(format, None, list)?;
        let read = read_any_file(Path::new(path), &options).map_err(read_fault)?;
        let (rules, lines) = (read.policy, read.line_of_rule);
        // SAFETY: the place is as documented.
        unsafe { give_to(policy, Policy { rules, lines }) }
    })
}

/// Reads the rules of a text.
///
/// `text` has `length` bytes of UTF-8. `format` and `list` are as for `cy_policy_read`.
/// `schema` is the schema of rules that do not name one, such as "ipv4-5tuple", or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_parse(
    text: *const c_char,
    length: usize,
    format: *const c_char,
    schema: *const c_char,
    list: *const c_char,
    policy: *mut *mut Policy,
) -> Status {
    call(|| {
        // SAFETY: the texts are as documented.
        let (bytes, format, schema, list) = unsafe {
            let bytes: &[u8] = slice(text.cast(), length, "text")?;
            let format = optional_text(format, "format")?;
            let schema = optional_text(schema, "schema")?;
            (bytes, format, schema, optional_text(list, "list")?)
        };
        let text = std::str::from_utf8(bytes).map_err(Fault::argument)?;
        let options = options(format, schema, list)?;
        let mut no_files = |name: &str| {
            Err(ReadError::Format {
                file: "text".to_owned(),
                found: format!("the schema file {name}"),
                expected: "a built-in schema; read a file with cy_policy_read".to_owned(),
            })
        };
        let read = read_any("text", text, &options, &mut no_files).map_err(read_fault)?;
        let (rules, lines) = (read.policy, read.line_of_rule);
        // SAFETY: the place is as documented.
        unsafe { give_to(policy, Policy { rules, lines }) }
    })
}

/// Makes a policy without rules. `schema` is "ipv4-5tuple", "ipv6-5tuple", "dual-5tuple" (IPv4
/// and IPv6 in one order), "acl" (the fields of firewall rules), or "openflow15".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_new(schema: *const c_char, policy: *mut *mut Policy) -> Status {
    call(|| {
        // SAFETY: the text is as documented.
        let schema = unsafe { text(schema, "schema") }?;
        let rules = named_schema(schema)?.policy();
        let lines = Vec::new();
        // SAFETY: the place is as documented.
        unsafe { give_to(policy, Policy { rules, lines }) }
    })
}

/// Frees a policy. Tables that were made from it stay. Null is accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_free(policy: *mut Policy) -> Status {
    // SAFETY: as documented, nobody uses the policy.
    call(|| unsafe { take(policy) }.map(drop))
}

/// Adds a rule: one form for each part that it is in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_add(
    policy: *mut Policy,
    rule: *const Rule,
    forms: *const Form,
    form_count: usize,
) -> Status {
    call(|| {
        // SAFETY: the pointers are as documented.
        let (policy, rule) = unsafe { (borrow_mut(policy)?, &slice(rule, 1, "rule")?[0]) };
        let parts = policy.rules.parts().len();
        // SAFETY: the arrays are as documented.
        let forms = unsafe { Forms::new(forms, form_count, parts) }?;
        let (id, priority, action) = rule.head()?;
        let packed = forms.borrowed().into_iter().map(|(part, matches)| {
            let schema = policy.rules.part(part).schema();
            let packed = CoreRule::new(schema, id, priority, action, matches);
            let packed = packed.map_err(Fault::argument)?;
            Ok((part, packed.with_cookie(rule.cookie)))
        });
        let packed: Result<Vec<_>, Fault> = packed.collect();
        let packed = packed?;
        let packed: Vec<_> = packed
            .iter()
            .map(|(part, rule)| (*part, rule.view()))
            .collect();
        policy.rules.add_forms(&packed).map_err(refused)
    })
}

fn refused(error: AddError) -> Fault {
    Fault::new(Status::UpdateRefused, error)
}

/// Adds a rule that a text gives, such as "permit src=10.0.0.0/8 dport=443 proto=tcp": a line
/// of the format `rules` without id and priority. The text must be one rule: it has no lists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_add_text(
    policy: *mut Policy,
    id: u32,
    priority: u32,
    rule: *const c_char,
) -> Status {
    call(|| {
        // SAFETY: the pointers are as documented.
        let (policy, rule) = unsafe { (borrow_mut(policy)?, text(rule, "rule")?) };
        let parsed = parse_rule(&schemas(&policy.rules)?, id, priority, rule)?;
        let action = policy.rules.declare_action(parsed.action());
        let forms = parsed.forms();
        let forms: Vec<_> = forms
            .iter()
            .map(|(part, matches)| (*part, &matches[..]))
            .collect();
        let added = policy
            .rules
            .add(parsed.id, Priority(priority), action, &forms);
        added.map_err(refused)
    })
}

/// Writes the number of rules to `*count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_rules(policy: *const Policy, count: *mut usize) -> Status {
    // SAFETY: the pointers are as documented.
    call(|| unsafe { put(count, borrow(policy)?.rules.len(), "number of rules") })
}

/// Writes the number of parts to `*count`: 1, or 2 for policies of IPv4 and IPv6.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_parts(policy: *const Policy, count: *mut usize) -> Status {
    // SAFETY: the pointers are as documented.
    call(|| unsafe {
        put(
            count,
            borrow(policy)?.rules.parts().len(),
            "number of parts",
        )
    })
}

/// Writes the number of words of a key of a part to `*words`: see `cy_classify_keys`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_key_words(
    policy: *const Policy,
    part_number: u32,
    words: *mut usize,
) -> Status {
    call(|| {
        // SAFETY: the pointer is as documented.
        let rules = &unsafe { borrow(policy) }?.rules;
        let part = part(part_number, rules.parts().len())?;
        let count = rules.part(part).schema().key_words();
        // SAFETY: the place is as documented.
        unsafe { put(words, count, "number of words") }
    })
}

/// Writes the name of a field of a part to `name`, an array of `capacity` bytes, and its width
/// in bits to `*width`. Fields have the numbers 0, 1 and so on. A field after the last is
/// `CY_STATUS_INVALID_ARGUMENT`. The name ends with a null byte, and is cut if it does not
/// fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_field(
    policy: *const Policy,
    part_number: u32,
    field: usize,
    name: *mut c_char,
    capacity: usize,
    width: *mut u32,
) -> Status {
    call(|| {
        // SAFETY: the pointer is as documented.
        let rules = &unsafe { borrow(policy) }?.rules;
        let schema = rules.part(part(part_number, rules.parts().len())?).schema();
        let schema_field = schema.fields().get(field).ok_or_else(|| {
            let count = schema.fields().len();
            Fault::argument(format!(
                "field {field}: the schema has {count}, numbered from 0"
            ))
        })?;
        // SAFETY: the places are as documented.
        unsafe {
            put_text(name, capacity, schema_field.name())?;
            put(width, schema_field.width(), "width")
        }
    })
}

/// Writes the number of the action with this name to `*action`. An action that the policy does
/// not have is declared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_action(
    policy: *mut Policy,
    name: *const c_char,
    action: *mut u32,
) -> Status {
    call(|| {
        // SAFETY: the pointers are as documented.
        unsafe {
            let (policy, name) = (borrow_mut(policy)?, text(name, "name")?);
            put(
                action,
                policy.rules.declare_action(name).0,
                "number of the action",
            )
        }
    })
}

/// Writes the name of an action to `name`, an array of `capacity` bytes. The name ends with a
/// null byte, and is cut if it does not fit. An action without a name is
/// `CY_STATUS_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_action_name(
    policy: *const Policy,
    action: u32,
    name: *mut c_char,
    capacity: usize,
) -> Status {
    call(|| {
        // SAFETY: the pointer is as documented.
        let rules = &unsafe { borrow(policy) }?.rules;
        let action_name = rules.action_name(ActionId(action));
        let action_name =
            action_name.ok_or_else(|| Fault::argument(format!("action {action} has no name")))?;
        // SAFETY: the place is as documented.
        unsafe { put_text(name, capacity, action_name) }
    })
}

/// Writes the line of a rule to `*line`: in the file or text that it was read from, counted
/// from 1; 0 for rules that were added later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_line(
    policy: *const Policy,
    rule: u32,
    line: *mut u32,
) -> Status {
    call(|| {
        // SAFETY: the pointer is as documented.
        let policy = unsafe { borrow(policy) }?;
        let id = RuleId::new(rule).map_err(Fault::argument)?;
        let position = policy.rules.position(id);
        let position = position.ok_or_else(|| Fault::argument(format!("no rule has id {rule}")))?;
        let rule_line = policy.lines.get(position).copied().unwrap_or(0);
        // SAFETY: the place is as documented.
        unsafe { put(line, rule_line, "line") }
    })
}

/// Packs headers that are stored by column into keys, for `cy_classify_keys`.
///
/// `columns` has one column for each field of the part, each with `rows` values. `keys` has
/// room for `rows` keys of `cy_policy_key_words` words each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_policy_pack(
    policy: *const Policy,
    part_number: u32,
    columns: *const Column,
    column_count: usize,
    rows: usize,
    keys: *mut u64,
) -> Status {
    call(|| {
        // SAFETY: the pointers are as documented.
        let rules = &unsafe { borrow(policy) }?.rules;
        let schema = rules.part(part(part_number, rules.parts().len())?).schema();
        // SAFETY: the arrays are as documented.
        let columns = unsafe { slice(columns, column_count, "columns") }?;
        // SAFETY: each column has `rows` values, as documented.
        let columns = columns.iter().map(|column| unsafe { column.convert(rows) });
        let columns: Result<Vec<_>, Fault> = columns.collect();
        let columns = columns?;
        let columns = Columns::new(schema, &columns);
        let columns = columns.map_err(|error| Fault::new(Status::InvalidColumns, error))?;
        let words = rows.saturating_mul(schema.key_words());
        // SAFETY: the array is as documented.
        let keys = unsafe { slice_mut(keys, words, "keys") }?;
        let keys =
            keys.ok_or_else(|| Fault::new(Status::NullPointer, "the keys: a null pointer"))?;
        columns.pack(keys);
        Ok(())
    })
}

/// Writes a text and a null byte to an array of C; what does not fit is cut.
///
/// # Safety
/// `place` is null or has `capacity` bytes that may be written.
unsafe fn put_text(place: *mut c_char, capacity: usize, text: &str) -> Result<(), Fault> {
    // SAFETY: the caller promises it.
    let buffer: Option<&mut [u8]> = unsafe { slice_mut(place.cast(), capacity, "name") }?;
    let Some(buffer) = buffer.filter(|buffer| !buffer.is_empty()) else {
        return Err(Fault::new(Status::NullPointer, "no room for the name"));
    };
    let bytes = &text.as_bytes()[..text.len().min(capacity - 1)];
    buffer[..bytes.len()].copy_from_slice(bytes);
    buffer[bytes.len()] = 0;
    Ok(())
}

const _: () = assert!(size_of::<Match>() == 40, "the layout that C sees");
