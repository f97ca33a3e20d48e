//! The rule format for people.
//!
//! ```text
//! schema dual-5tuple
//! # Staff may use the web.
//! allow           proto=tcp src=10.20.1.0/24 dst=10.20.2.80 dport=443  name=staff-web
//! "output:3,vlan" proto=udp src=2001:db8::/32 dport=5000-5999
//! drop            name=default
//! ```
//!
//! The file is UTF-8 with one rule per line. `#` starts a comment anywhere outside of
//! quotes. A [`Policy`] has no comments, so reading and writing a file again removes them.
//!
//! The first line that is not blank or a comment is `schema NAME`. `NAME` is
//! `ipv4-5tuple`, `ipv6-5tuple`, `openflow15`, `dual-5tuple` or, in quotes, the path of a
//! [schema file](super::schema_file), relative to the rule file. The line may be missing
//! if the caller gives the schema.
//!
//! Lines `actions WORD …` above the first rule declare actions. Built in are `accept`,
//! `allow`, `deny`, `drop`, `log`, `match`, `permit` and `reject`. Any other word is also
//! an action, and a note lists such words. But a word that differs from a known action
//! only by one character or by capitals is a bad line, because it is probably misspelt. A word
//! in quotes is accepted without this check.
//!
//! A rule is `ACTION field=value …`, with optional `name=NAME`, `id=N` and `priority=N`
//! anywhere after the action. Actions and names are words. In quotes they may have any
//! characters, with `\"`, `\\`, `\n`, `\r`, `\t` and `\u{…}`. A field that is left out, or
//! is `*`, may have any value. Values:
//!
//! | form | means | for fields of kind |
//! |---|---|---|
//! | `443`, `0x1bb`, `10.0.0.1`, `tcp` | this value | all |
//! | `10.0.0.0/8` | the values that start with these bits | prefix, range, ternary |
//! | `80-89` | the values from the first to the last | range; others if it is a prefix |
//! | `0x1&0x3` | the values that agree on the mask's bits | prefix, range, ternary |
//!
//! All numbers may be decimal or hexadecimal. In `dual-5tuple` the addresses of a rule
//! give its family. A rule without addresses matches both families, unless it has
//! `family=ipv4` or `family=ipv6`. A rule with an address that is a plain number must have
//! a `family`.
//!
//! Without priorities, the first line wins: rule `i` of `n` has priority `n - i`. If the
//! rules have `priority=N`, the highest priority wins, and at equal priority the lowest
//! id. Either all rules must have a priority, or none. A rule without `id=N` has its
//! number in the file, from 0, as its id.

use std::borrow::Cow;
use std::sync::Arc;

use classyard::policy::{PartId, Policy};
use classyard::ruleset::AddError;
use classyard::schema::Field;
use classyard::value::ValueFormat;
use classyard::{FieldMatch, Priority, RuleId, Schema, UpdateError};

use super::text::{counted_verb, decimal, lines, quoted};
use super::value::{kind_takes, parse_match, takes_all, wrong_kind};
use super::{
    Fault, SchemaChoice, SchemaLoader, check_count, limit_reached, line_number, rule_number,
};
use crate::diagnostic::{Loaded, Problems, ReadError, ReadOptions};

mod actions;
mod token;
mod write;

pub use write::write;

use actions::Actions;
use token::{Token, next_token, unquote};

/// Reads rules; see the [module](self) for the format.
///
/// # Errors
/// [`ReadError`]: the bad lines, more rules than `options` allow, or the problems of a
/// schema file.
pub fn read(
    source: &str,
    text: &str,
    schema: Option<&SchemaChoice>,
    options: &ReadOptions,
    loader: &mut SchemaLoader<'_>,
) -> Result<Loaded<Policy>, ReadError> {
    let mut problems = Problems::new(source);
    let mut significant = lines(text)
        .filter(|(_, line)| says_something(line))
        .peekable();

    let mut choice = schema.cloned();
    if let Some(&(number, line)) = significant.peek() {
        match schema_line(line, schema, loader) {
            Ok(Some(named)) => {
                choice = Some(named);
                significant.next();
            }
            Ok(None) => {}
            Err(SchemaTrouble::Read(error)) => return Err(error),
            Err(SchemaTrouble::Fault(fault)) => {
                // Without the schema, the reader cannot check the next lines.
                problems.push_fault(fault, number, line);
                return Err(ReadError::Bad(problems));
            }
        }
    }
    let Some(choice) = choice else {
        let Some(&(number, line)) = significant.peek() else {
            return Err(ReadError::Format {
                file: source.to_owned(),
                found: "there is no rule and no schema".to_owned(),
                expected: schema_expectation(),
            });
        };
        let first = line.split_ascii_whitespace().next().unwrap_or(line);
        let message = format!("{} before any `schema` line", quoted(first));
        problems.push(Fault::new(first, message, schema_expectation()).at(number, line));
        return Err(ReadError::Bad(problems));
    };

    let mut actions = Actions::default();
    while let Some(&(number, line)) = significant.peek() {
        match actions.declare(line) {
            Ok(true) => {}
            Ok(false) => break,
            Err(fault) => problems.push_fault(fault, number, line),
        }
        significant.next();
    }

    let count = significant.clone().count();
    check_count(source, count, significant.clone(), options)?;
    let mut reader = Reader::new(&choice, count, options, actions);
    for (index, (number, line)) in significant.enumerate() {
        let id = rule_number(source, index, number)?;
        let outcome = match reader.parse(line) {
            Ok(()) if reader.policy.len() >= options.limit => {
                return Err(limit_reached(source, number, options, "rules"));
            }
            Ok(()) => reader.add(
                id,
                u32::try_from(count - index).unwrap_or(u32::MAX),
                number,
                line,
            ),
            Err(fault) => Err(fault),
        };
        if let Err(fault) = outcome {
            problems.push_fault(fault, number, line);
        }
    }
    let notes = reader.notes();
    let problems = problems.with_good_lines(reader.policy.len());
    let lines = reader.lines.iter();
    let rule_lines = lines.map(|&line| line_number(line)).collect();
    let mut loaded = options.finish(problems, reader.policy)?;
    loaded.notes = notes;
    loaded.rule_lines = rule_lines;
    Ok(loaded)
}

fn says_something(line: &str) -> bool {
    let first = line.bytes().find(|b| !b.is_ascii_whitespace());
    first.is_some_and(|b| b != b'#')
}

fn schema_expectation() -> String {
    let names = SchemaChoice::names().join(", ");
    format!("`schema NAME` first, where NAME is {names} or a schema file's path in quotes")
}

enum SchemaTrouble<'t> {
    Fault(Fault<'t>),
    Read(ReadError),
}

impl<'t> From<Fault<'t>> for SchemaTrouble<'t> {
    fn from(fault: Fault<'t>) -> SchemaTrouble<'t> {
        SchemaTrouble::Fault(fault)
    }
}

/// Returns the schema that a line names, or `None` if it is not a `schema` line.
fn schema_line<'t>(
    line: &'t str,
    requested: Option<&SchemaChoice>,
    loader: &mut SchemaLoader<'_>,
) -> Result<Option<SchemaChoice>, SchemaTrouble<'t>> {
    let mut unread = line;
    match next_token(&mut unread) {
        Ok(Some(token)) if token.text == "schema" => {}
        _ => return Ok(None),
    }
    let Some(name) = next_token(&mut unread)? else {
        return Err(Fault::missing(line, schema_expectation()).into());
    };
    let unknown = |found| Fault::new(name.text, found, schema_expectation());
    let choice = if name.text.starts_with('"') {
        let path = unquote(name.text)?;
        match loader(&path) {
            Ok(schema) => SchemaChoice::Single(schema),
            Err(ReadError::Io { error, .. }) => {
                return Err(unknown(format!("schema file {}: {error}", quoted(&path))).into());
            }
            Err(other) => return Err(SchemaTrouble::Read(other)),
        }
    } else {
        match SchemaChoice::named(name.text) {
            Some(choice) => choice,
            None => return Err(unknown(format!("unknown schema {}", quoted(name.text))).into()),
        }
    };
    if let Some(requested) = requested.filter(|requested| **requested != choice) {
        return Err(Fault::new(
            name.text,
            format!("the file is for schema `{}`", choice.name()),
            format!("schema `{}`, which was asked for", requested.name()),
        )
        .into());
    }
    if let Some(extra) = next_token(&mut unread)? {
        let fault = Fault::new(extra.text, quoted(extra.text), "nothing after the schema");
        return Err(fault.into());
    }
    Ok(Some(choice))
}

/// True if a value has bits set that its prefix or mask ignores.
fn has_stray_bits(field: &Field, wanted: &FieldMatch) -> bool {
    match *wanted {
        FieldMatch::Prefix { value, length } => {
            let wildcard_bits = field.width().saturating_sub(length);
            value & !u128::MAX.checked_shl(wildcard_bits).unwrap_or(0) != 0
        }
        FieldMatch::Ternary { value, mask } => value & !mask != 0,
        _ => false,
    }
}

/// The keys of a rule that are not fields.
const RESERVED: [&str; 4] = classyard::schema::RESERVED_NAMES;

/// The parsed parts of a line, and the policy. Lines share it, so its memory is reused.
struct Reader<'t> {
    policy: Policy,
    actions: Actions,
    /// The first field of the line whose value has bits outside of its prefix or mask.
    stray_bits: Option<&'t str>,
    /// The number of rules with such a field, and the first such field with its line.
    stray_rules: usize,
    first_stray: Option<(usize, &'t str)>,
    dual: bool,
    schemas: Vec<Arc<Schema>>,
    /// For each part, a match for each field.
    matches: Vec<Vec<FieldMatch>>,
    /// For each part, true if the rule may belong to it.
    open: Vec<bool>,
    /// For each field, the text that set it on this line.
    set: Vec<Option<&'t str>>,
    action: Cow<'t, str>,
    name: Option<Cow<'t, str>>,
    id: Option<(RuleId, &'t str)>,
    priority: Option<(Priority, &'t str)>,
    family: Option<&'t str>,
    /// An address that is valid in both families, such as `10`.
    undecided: Option<&'t str>,
    /// The line numbers of the loaded rules.
    lines: Vec<usize>,
    /// The first line with a priority, and the first line without a priority.
    with_priority: Option<usize>,
    without_priority: Option<usize>,
}

impl<'t> Reader<'t> {
    fn new(
        choice: &SchemaChoice,
        rules: usize,
        options: &ReadOptions,
        actions: Actions,
    ) -> Reader<'t> {
        let schemas = choice.schemas();
        let mut policy = choice.policy();
        policy.reserve(rules.min(options.limit));
        Reader {
            dual: choice.has_both_families(),
            matches: schemas
                .iter()
                .map(|schema| vec![FieldMatch::Any; schema.fields().len()])
                .collect(),
            open: vec![true; schemas.len()],
            set: vec![None; schemas[0].fields().len()],
            schemas,
            policy,
            actions,
            stray_bits: None,
            stray_rules: 0,
            first_stray: None,
            action: Cow::Borrowed(""),
            name: None,
            id: None,
            priority: None,
            family: None,
            undecided: None,
            lines: Vec::new(),
            with_priority: None,
            without_priority: None,
        }
    }

    fn clear(&mut self) {
        for matches in &mut self.matches {
            matches.fill(FieldMatch::Any);
        }
        self.open.fill(true);
        self.set.fill(None);
        self.name = None;
        self.id = None;
        self.priority = None;
        self.family = None;
        self.undecided = None;
        self.stray_bits = None;
    }

    /// Returns notes about the file, one sentence each.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.actions.note().into_iter().collect();
        if let Some((line, text)) = self.first_stray {
            notes.push(format!(
                "{} bits beyond a prefix or mask, such as {} in line {line}; they are ignored",
                counted_verb(self.stray_rules, "rule", "has", "have"),
                quoted(text)
            ));
        }
        notes
    }

    /// Parses a line into the fields of the reader.
    fn parse(&mut self, line: &'t str) -> Result<(), Fault<'t>> {
        self.clear();
        let mut unread = line;
        let Some(first) = next_token(&mut unread)? else {
            return Err(Fault::missing(line, "a rule"));
        };
        if first.key.is_some() {
            return Err(Fault::new(
                first.text,
                format!("{} where the action should be", quoted(first.text)),
                "an action first, such as allow or drop (in quotes if it has a `=`)",
            ));
        }
        if first.text == "schema" {
            return Err(Fault::new(
                first.text,
                "a second `schema` line",
                "one schema for the whole file (an action of that name goes in quotes)",
            ));
        }
        if first.text == actions::DECLARATION {
            return Err(Fault::new(
                first.text,
                "an `actions` line after a rule",
                "it before the first rule (an action of that name goes in quotes)",
            ));
        }
        self.action = unquote(first.text)?;
        self.actions.take(&self.action, first.text)?;
        while let Some(token) = next_token(&mut unread)? {
            self.attribute(&token)?;
        }
        match self.undecided {
            // A rule for both families would have two unrelated conditions.
            Some(text) if !self.open.contains(&false) => Err(Fault::new(
                text,
                format!("{} could be an address of either family", quoted(text)),
                "an address such as 10.0.0.1 or fe80::1, or family=ipv4 or family=ipv6",
            )),
            _ => Ok(()),
        }
    }

    fn attribute(&mut self, token: &Token<'t>) -> Result<(), Fault<'t>> {
        let Some(key) = token.key else {
            return Err(Fault::new(token.text, quoted(token.text), "field=value"));
        };
        let value = token.value;
        let again = || {
            Fault::new(
                token.text,
                format!("`{key}` is set twice on this line"),
                "each field at most once",
            )
        };
        match key {
            "name" if self.name.is_some() => return Err(again()),
            "id" if self.id.is_some() => return Err(again()),
            "priority" if self.priority.is_some() => return Err(again()),
            "family" if self.family.is_some() => return Err(again()),
            "name" => self.name = Some(unquote(value)?),
            "id" => match decimal(value).map(RuleId::new) {
                Some(Ok(id)) => self.id = Some((id, value)),
                _ => {
                    return Err(Fault::new(
                        value,
                        format!("{} is not a rule id", quoted(value)),
                        format!("a number of 0 to {}", RuleId::MAX),
                    ));
                }
            },
            "priority" => match decimal(value) {
                Some(priority) => self.priority = Some((Priority(priority), token.text)),
                None => {
                    return Err(Fault::new(
                        value,
                        format!("{} is not a priority", quoted(value)),
                        format!("a number of 0 to {}", u32::MAX),
                    ));
                }
            },
            "family" => self.set_family(token)?,
            _ => {
                let Some(field) = self.schemas[0].field_named(key) else {
                    return Err(self.unknown_field(key));
                };
                if self.set[field.index()].is_some() {
                    return Err(again());
                }
                self.set_field(field.index(), token)?;
                self.set[field.index()] = Some(token.text);
            }
        }
        Ok(())
    }

    fn set_family(&mut self, token: &Token<'t>) -> Result<(), Fault<'t>> {
        if !self.dual {
            return Err(Fault::new(
                token.text,
                format!("`family` in a file of schema `{}`", self.policy.name()),
                format!("no family, or the schema `{}`", Policy::DUAL_STACK),
            ));
        }
        let index = match token.value {
            "ipv4" => 0,
            "ipv6" => 1,
            other => {
                return Err(Fault::new(
                    other,
                    format!("unknown family {}", quoted(other)),
                    "ipv4 or ipv6",
                ));
            }
        };
        self.family = Some(token.text);
        self.close(1 - index, token)
    }

    /// Excludes the rule from a part. The rule must remain in at least one part.
    fn close(&mut self, part: usize, token: &Token<'t>) -> Result<(), Fault<'t>> {
        self.open[part] = false;
        if self.open.contains(&true) {
            return Ok(());
        }
        let families = ["IPv4", "IPv6"];
        Err(Fault::new(
            token.text,
            format!(
                "{} is {}, but what stands before it on this line is {}",
                quoted(token.text),
                families[1 - part.min(1)],
                families[part.min(1)]
            ),
            "addresses and family of one kind",
        ))
    }

    fn set_field(&mut self, index: usize, token: &Token<'t>) -> Result<(), Fault<'t>> {
        let text = token.value;
        let parse = |schema: &Arc<Schema>| {
            let field = &schema.fields()[index];
            let field_match = parse_match(text, field)?;
            if kind_takes(field, &field_match) {
                Ok((field_match, has_stray_bits(field, &field_match)))
            } else {
                Err(wrong_kind(text, field))
            }
        };
        if !self.dual {
            let (field_match, is_stray) = parse(&self.schemas[0])?;
            self.matches[0][index] = field_match;
            self.stray_bits = self.stray_bits.or(is_stray.then_some(token.text));
            return Ok(());
        }
        match (parse(&self.schemas[0]), parse(&self.schemas[1])) {
            (Ok((v4, is_stray)), Ok((v6, _))) => {
                self.stray_bits = self.stray_bits.or(is_stray.then_some(token.text));
                let address = self.schemas[1].fields()[index].format() == ValueFormat::Ipv6;
                if address && !takes_all(&v4) {
                    self.undecided.get_or_insert(token.text);
                }
                self.matches[0][index] = v4;
                self.matches[1][index] = v6;
                Ok(())
            }
            (Ok((v4, is_stray)), Err(_)) => {
                self.stray_bits = self.stray_bits.or(is_stray.then_some(token.text));
                self.matches[0][index] = v4;
                self.close(1, token)
            }
            (Err(_), Ok((v6, is_stray))) => {
                self.stray_bits = self.stray_bits.or(is_stray.then_some(token.text));
                self.matches[1][index] = v6;
                self.close(0, token)
            }
            (Err(v4), Err(v6)) => Err(if text.contains(':') { v6 } else { v4 }),
        }
    }

    fn unknown_field(&self, key: &'t str) -> Fault<'t> {
        let mut known: Vec<&str> = self.schemas[0].fields().iter().map(Field::name).collect();
        known.extend(
            RESERVED
                .iter()
                .filter(|&&word| self.dual || word != "family"),
        );
        Fault::new(
            key,
            format!("unknown field {}", quoted(key)),
            format!("one of {}", known.join(", ")),
        )
    }

    /// Adds the rule that [`parse`](Reader::parse) has read.
    fn add(
        &mut self,
        number: RuleId,
        by_line: u32,
        line_number: usize,
        line: &'t str,
    ) -> Result<(), Fault<'t>> {
        let priority = match self.priority {
            Some((priority, text)) => {
                if let Some(first) = self.without_priority {
                    return Err(Fault::new(
                        text,
                        format!(
                            "{} here, but the rule in line {first} has no priority",
                            quoted(text)
                        ),
                        "a priority for all rules or for none",
                    ));
                }
                priority
            }
            None => {
                if let Some(first) = self.with_priority {
                    return Err(Fault::new(
                        line.split_ascii_whitespace().next().unwrap_or(line),
                        format!("no priority here, but the rule in line {first} has one"),
                        "a priority for all rules or for none",
                    ));
                }
                Priority(by_line)
            }
        };
        let id = self.id.map_or(number, |(id, _)| id);
        let action = self.policy.declare_action(&self.action);
        let parts: Vec<(PartId, &[FieldMatch])> = self
            .policy
            .part_ids()
            .filter(|part| self.open[part.index()])
            .map(|part| (part, self.matches[part.index()].as_slice()))
            .collect();
        if let Err(error) = self.policy.add(id, priority, action, &parts) {
            return Err(self.refused(&error, id, line));
        }
        if let Some(name) = &self.name {
            self.policy.set_rule_name(id, name);
        }
        self.lines.push(line_number);
        if let Some(text) = self.stray_bits {
            self.stray_rules += 1;
            self.first_stray.get_or_insert((line_number, text));
        }
        let first = if self.priority.is_some() {
            &mut self.with_priority
        } else {
            &mut self.without_priority
        };
        first.get_or_insert(line_number);
        Ok(())
    }

    fn refused(&self, error: &AddError, id: RuleId, line: &'t str) -> Fault<'t> {
        let part = self.id.map_or(line.trim(), |(_, text)| text);
        if let AddError::Update(UpdateError::DuplicateId { .. }) = error {
            let first = self.policy.position(id).and_then(|i| self.lines.get(i));
            let first = first.map_or(String::new(), |first| format!(" in line {first}"));
            return Fault::new(
                part,
                format!("rule id {id} is taken by the rule{first}"),
                "an id of its own (a rule without one has its number in the file, from 0)",
            );
        }
        Fault::new(line.trim(), error.to_string(), "a rule of the schema")
    }
}
