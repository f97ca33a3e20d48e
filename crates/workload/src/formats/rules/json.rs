//! Rules as JSON, for programs.
//!
//! ```json
//! {"schema": "acl", "rules": [
//! {"action": "allow", "src": "10.0.0.0/8", "dport": ["80", "443"], "name": "web"},
//! {"action": "deny"}
//! ]}
//! ```
//!
//! A rule has the keys of the [format for people](super), and values as there: a string, a
//! number, or a list of both. `action` is required. `schema` is a name, or `{"file": "PATH"}`
//! for a schema file; it may be missing if the caller gives the schema.

use std::borrow::Cow;
use std::fmt;

use classyard::policy::Policy;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::actions::Actions;
use super::reader::Reader;
use super::{SchemaChoice, SchemaLoader};
use crate::diagnostic::{Loaded, Problems, ReadError, ReadOptions};
use crate::formats::text::quoted;
use crate::formats::{Fault, limit_reached};

/// The keys of the text.
const KEYS: &str = "the keys `schema` and `rules`";

/// Returns the text that a schema is expected to be.
fn schema_expectation() -> String {
    let names = SchemaChoice::names().join(", ");
    format!("a schema is {names} or {{\"file\": \"PATH\"}} of a schema file")
}

/// The keys and values of an object, in their order.
struct Object<'t>(Vec<(Cow<'t, str>, &'t RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<'de>, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Object<'de>, M::Error> {
                let mut entries = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    entries.push((key, map.next_value()?));
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// A key: a part of the text, if it has no escapes.
struct Key<'t>(Cow<'t, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key<'de>, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A text with the offsets of its lines.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Lines<'t> {
        let ends = text.match_indices('\n').map(|(offset, _)| offset + 1);
        Lines {
            text,
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    /// Returns the number, from 1, and the text of the line of a part of the text.
    fn line_of(&self, part: &str) -> (usize, &'t str) {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let number = self.starts.partition_point(|&start| start <= offset).max(1);
        // The end is not searched for, as a line may have all rules.
        let next_start = self.starts.get(number);
        let line_end = next_start.map_or(self.text.len(), |start| start - 1);
        (number, &self.text[self.starts[number - 1]..line_end])
    }

    /// Adds a problem. A part of several lines is cut after the first one.
    fn report(&self, problems: &mut Problems, fault: Fault<'t>) {
        let (number, line) = self.line_of(fault.part());
        let first_line = fault.part().split('\n').next().unwrap_or_default();
        problems.push_fault(fault.within(first_line), number, line);
    }
}

/// Reads rules; see the [module](self) for the format.
///
/// # Errors
/// [`ReadError`]: the bad rules, more rules than `options` allow, or the problems of a
/// schema file.
pub(in crate::formats) fn read(
    source: &str,
    text: &str,
    schema: Option<&SchemaChoice>,
    options: &ReadOptions,
    loader: &mut SchemaLoader<'_>,
) -> Result<Loaded<Policy>, ReadError> {
    let mut problems = Problems::new(source);
    let lines = Lines::new(text);
    let bad = |mut problems: Problems, fault| {
        lines.report(&mut problems, fault);
        ReadError::Bad(problems)
    };
    let (named, rules) = match schema_and_rules(&lines, &mut problems) {
        Ok(values) => values,
        Err(fault) => return Err(bad(problems, fault)),
    };
    let named = named.map(|named| schema_of(named, schema, loader));
    let choice = match named.transpose() {
        Ok(named) => named.or_else(|| schema.cloned()),
        Err(SchemaTrouble::Fault(fault)) => return Err(bad(problems, fault)),
        Err(SchemaTrouble::Read(error)) => return Err(error),
    };
    let missing = |key: &str, expected: &str| ReadError::Format {
        file: source.to_owned(),
        found: format!("the key `{key}` is missing"),
        expected: format!("{KEYS}: {expected}"),
    };
    let choice = choice.ok_or_else(|| missing("schema", &schema_expectation()))?;
    let rules = rules.ok_or_else(|| missing("rules", "a list of objects"))?;
    let Ok(rules) = serde_json::from_str::<Vec<&RawValue>>(rules.get()) else {
        let fault = Fault::new(rules.get(), "`rules` is no list", "a list of objects");
        return Err(bad(problems, fault));
    };
    if rules.len() > options.limit && !options.skip_bad {
        let (line, _) = lines.line_of(rules[options.limit].get());
        return Err(limit_reached(source, line, options, "rules"));
    }
    let read = |expected_rules: usize| {
        let actions = Actions::default();
        let mut reader = Reader::new(&choice, expected_rules, options, actions);
        let mut problems = problems.clone();
        for rule in &rules {
            let text = rule.get();
            let (number, _) = lines.line_of(text);
            let parsed = parse(&mut reader, text);
            if let Err(fault) = reader.add_parsed(source, number, text, parsed)? {
                lines.report(&mut problems, fault);
            }
        }
        Ok::<_, ReadError>((reader, problems))
    };
    let (mut reader, mut found) = read(rules.len())?;
    if reader.needs_number_of_rules() {
        (reader, found) = read(reader.rules_of_file())?;
    }
    reader.finish(found)
}

/// Returns the values of the keys `schema` and `rules`. Other keys are problems.
fn schema_and_rules<'t>(
    lines: &Lines<'t>,
    problems: &mut Problems,
) -> Result<(Option<&'t RawValue>, Option<&'t RawValue>), Fault<'t>> {
    let object = serde_json::from_str(lines.text);
    let Object(entries) = object.map_err(|error| syntax_fault(lines, &error))?;
    let (mut schema, mut rules) = (None, None);
    for (key, value) in entries {
        let slot = match &*key {
            "schema" => &mut schema,
            "rules" => &mut rules,
            _ => {
                let found = format!("the key {} beside the rules", quoted(&key));
                lines.report(problems, Fault::new(value.get(), found, KEYS));
                continue;
            }
        };
        if slot.replace(value).is_some() {
            let found = format!("`{key}` is set twice");
            return Err(Fault::new(value.get(), found, "each key once"));
        }
    }
    Ok((schema, rules))
}

/// Returns the fault for a text that is not JSON, or no object.
fn syntax_fault<'t>(lines: &Lines<'t>, error: &serde_json::Error) -> Fault<'t> {
    let start = lines.starts.get(error.line().saturating_sub(1));
    let line_start = start.copied().unwrap_or(lines.text.len());
    // Columns of the parser count bytes, and point behind the byte at fault.
    let mut offset = (line_start + error.column().saturating_sub(1)).min(lines.text.len());
    while !lines.text.is_char_boundary(offset) {
        offset -= 1;
    }
    let tail = &lines.text[offset..];
    let part_end = tail.chars().next().map_or(0, char::len_utf8);
    let message = error.to_string();
    let found = message
        .rsplit_once(" at line ")
        .map_or(&*message, |(found, _)| found);
    Fault::new(&tail[..part_end], found, "JSON: an object with rules")
}

enum SchemaTrouble<'t> {
    Fault(Fault<'t>),
    Read(ReadError),
}

/// Returns the schema that a value names.
fn schema_of<'t>(
    named: &'t RawValue,
    requested: Option<&SchemaChoice>,
    loader: &mut SchemaLoader<'_>,
) -> Result<SchemaChoice, SchemaTrouble<'t>> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Named {
        Name(String),
        File { file: String },
    }
    let text = named.get();
    let unknown =
        |found: String| SchemaTrouble::Fault(Fault::new(text, found, schema_expectation()));
    let choice = match serde_json::from_str(text) {
        Ok(Named::Name(name)) => SchemaChoice::named(&name)
            .ok_or_else(|| unknown(format!("unknown schema {}", quoted(&name))))?,
        Ok(Named::File { file }) => match loader(&file) {
            Ok(schema) => SchemaChoice::Single(schema),
            Err(ReadError::Io { error, .. }) => {
                return Err(unknown(format!("schema file {}: {error}", quoted(&file))));
            }
            Err(other) => return Err(SchemaTrouble::Read(other)),
        },
        Err(_) => return Err(unknown("no name of a schema".to_owned())),
    };
    match requested.filter(|requested| **requested != choice) {
        None => Ok(choice),
        Some(requested) => Err(SchemaTrouble::Fault(Fault::new(
            text,
            format!("the file is for schema `{}`", choice.name()),
            format!("schema `{}`, which was asked for", requested.name()),
        ))),
    }
}

/// Parses a rule into the fields of the reader.
fn parse<'t>(reader: &mut Reader<'t>, text: &'t str) -> Result<(), Fault<'t>> {
    reader.clear();
    let Ok(Object(entries)) = serde_json::from_str(text) else {
        return Err(Fault::new(text, "no object", "an object for each rule"));
    };
    let mut has_action = false;
    for (key, value) in entries {
        let raw = value.get();
        match &*key {
            "action" if has_action => {
                return Err(Fault::new(
                    raw,
                    "`action` is set twice in this rule",
                    "one action",
                ));
            }
            "action" => {
                // In quotes, as programs do not misspell words.
                reader.set_action(string(raw)?, raw)?;
                has_action = true;
            }
            "name" => reader.set_name(string(raw)?, raw)?,
            _ => set(reader, &key, raw)?,
        }
    }
    if !has_action {
        return Err(Fault::new(
            text,
            "a rule without `action`",
            "the key `action`",
        ));
    }
    reader.check()
}

/// Sets anything but the action and the name.
fn set<'t>(reader: &mut Reader<'t>, key: &Cow<'t, str>, raw: &'t str) -> Result<(), Fault<'t>> {
    let Cow::Borrowed(key) = key else {
        let found = format!("unknown field {}", quoted(key));
        return Err(Fault::new(raw, found, "names of fields without escapes"));
    };
    if raw.starts_with('[') {
        let Ok(values) = serde_json::from_str::<Vec<&RawValue>>(raw) else {
            return Err(Fault::new(raw, "no list of values", "strings or numbers"));
        };
        let values = values.iter().map(|value| scalar(value.get()));
        let values: Vec<Cow<'t, str>> = values.collect::<Result<_, _>>()?;
        return reader.set_field(key, raw, false, values.iter().map(|value| &**value));
    }
    match scalar(raw)? {
        Cow::Borrowed(value) => reader.set(key, value, raw),
        Cow::Owned(value) => {
            let (is_negated, values) = super::alternatives::split(&value);
            reader.set_field(key, raw, is_negated, values)
        }
    }
}

/// Returns the text of a string or a number.
fn scalar(raw: &str) -> Result<Cow<'_, str>, Fault<'_>> {
    match raw.as_bytes() {
        [b'0'..=b'9', ..] => Ok(Cow::Borrowed(raw)),
        _ => string(raw),
    }
}

/// Returns the text of a string.
fn string(raw: &str) -> Result<Cow<'_, str>, Fault<'_>> {
    let inner = raw
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    match inner {
        Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
        _ => serde_json::from_str(raw)
            .map(Cow::Owned)
            .map_err(|_| Fault::new(raw, quoted(raw), "a string or a number")),
    }
}
