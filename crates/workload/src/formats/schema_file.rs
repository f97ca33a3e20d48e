//! Schemas in TOML.
//!
//! ```toml
//! name = "tenants"
//!
//! [[field]]
//! name = "tenant"
//! width = 24                 # bits, 1 to 128
//! kind = "exact"             # exact, prefix, range or ternary
//!
//! [[field]]
//! name = "src"
//! width = 32
//! kind = "prefix"
//! role = "source-address"    # plain, source-address, destination-address,
//!                            # source-port or destination-port
//! format = "ipv4"            # decimal, hex, ipv4, ipv6, mac, ip-protocol, …
//! ```
//!
//! `role` and `format` are optional. Their defaults are `plain` and `decimal`. A file with
//! any other key, such as a misspelt key, is refused. A schema must not have the name of a
//! built-in schema, unless it has the same fields.

use std::fmt::Write as _;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use classyard::error::SchemaError;
use classyard::policy::Policy;
use classyard::schema::{Field, FieldRole, MAX_FIELD_BITS};
use classyard::value::ValueFormat;
use classyard::{MatchKind, Schema};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::read_text_file;
use super::text::{lines, quoted};
use crate::diagnostic::{Problem, Problems, ReadError};
use crate::limits::FileLimit;

/// Reads a schema from a text; see the [module](self) for the format.
///
/// # Errors
/// [`ReadError`]: all problems of the text, with line and column. [`ReadError::TooLong`] if
/// the text is longer than [`FileLimit::SCHEMA`]; then nothing is parsed.
pub fn read_schema(source: &str, text: &str) -> Result<Arc<Schema>, ReadError> {
    FileLimit::SCHEMA.check(source, text)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut faults = Faults(Vec::new());
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        faults.push(span, error.message().replace('\n', "; "), "TOML");
    }
    let mut draft = None;
    if errors.is_empty() {
        draft = Draft::read(table.get_ref(), &mut faults);
    }
    let schema = match draft {
        Some(draft) if faults.0.is_empty() => draft.freeze(source, &mut faults)?,
        _ => None,
    };
    match schema {
        Some(schema) if faults.0.is_empty() => Ok(schema),
        _ => Err(ReadError::Bad(faults.locate(source, text))),
    }
}

/// Reads a schema from a file.
///
/// # Errors
/// [`ReadError`]: the file cannot be read, is not UTF-8, or is not a schema.
pub fn read_schema_file(path: &Path) -> Result<Arc<Schema>, ReadError> {
    let text = read_text_file(path, FileLimit::SCHEMA)?;
    read_schema(&path.display().to_string(), &text)
}

/// Writes a schema so that [`read_schema`] reads it back.
///
/// # Errors
/// Writing failed.
pub fn write_schema(schema: &Schema, out: &mut dyn io::Write) -> io::Result<()> {
    let mut text = format!("name = {}\n", toml_string(schema.name()));
    for field in schema.fields() {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n[[field]]\nname = {}\nwidth = {}\nkind = \"{}\"\n",
            toml_string(field.name()),
            field.width(),
            field.kind()
        );
        if field.role() != FieldRole::Plain {
            let _ = writeln!(text, "role = \"{}\"", field.role().name());
        }
        if field.format() != ValueFormat::Decimal {
            let _ = writeln!(text, "format = \"{}\"", field.format().name());
        }
    }
    out.write_all(text.as_bytes())
}

fn toml_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Problems, each with its span in bytes, the text found and the text expected.
struct Faults(Vec<(Range<usize>, String, String)>);

impl Faults {
    fn push(&mut self, span: Range<usize>, found: impl Into<String>, expected: impl Into<String>) {
        self.0.push((span, found.into(), expected.into()));
    }

    /// Converts the faults to problems, in file order.
    fn locate(mut self, source: &str, text: &str) -> Problems {
        self.0.sort_by_key(|(span, ..)| span.start);
        let mut problems = Problems::new(source);
        let offset = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
        let mut lines = lines(text).peekable();
        let mut current = (1, text);
        for (span, found, expected) in self.0 {
            while let Some(next) = lines.next_if(|(_, line)| offset(line) <= span.start) {
                current = next;
            }
            let (number, line) = current;
            let line_start = offset(line);
            let part_start = (span.start - line_start).min(line.len());
            let part_end = span.end.max(span.start) - line_start;
            let part_end = part_end.clamp(part_start, line.len());
            let part = line
                .get(part_start..part_end)
                .unwrap_or(&line[line.len()..]);
            problems.push(Problem::at(number, line, part, found, expected));
        }
        problems
    }
}

/// A value and its span in the text.
struct At<T> {
    value: T,
    span: Range<usize>,
}

struct DraftField {
    name: At<String>,
    width: At<u32>,
    kind: At<MatchKind>,
    role: Option<At<FieldRole>>,
    format: Option<At<ValueFormat>>,
}

struct Draft {
    name: At<String>,
    fields: Vec<DraftField>,
}

impl Draft {
    fn read(table: &DeTable<'_>, faults: &mut Faults) -> Option<Draft> {
        let mut fields = None;
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "name" => {}
                "field" => fields = read_fields(value, faults),
                other => faults.push(
                    key.span(),
                    format!("unknown key {}", quoted(other)),
                    "`name` or `[[field]]`",
                ),
            }
        }
        let name = required(table, 0..0, "name", faults, |value, faults| {
            string(value, "the schema's name", faults)
        });
        if !table.keys().any(|key| key.get_ref() == "field") {
            faults.push(0..0, "the schema has no field", "at least one `[[field]]`");
        }
        Some(Draft {
            name: name?,
            fields: fields?,
        })
    }

    /// Checks conditions that involve more than one value, and builds the schema.
    fn freeze(self, source: &str, faults: &mut Faults) -> Result<Option<Arc<Schema>>, ReadError> {
        let make = |field: &DraftField| {
            let role = field.role.as_ref().map(|role| role.value);
            let format = field.format.as_ref().map(|format| format.value);
            Field::new(&field.name.value, field.width.value, field.kind.value)
                .with_role(role.unwrap_or_default())
                .with_format(format.unwrap_or_default())
        };
        let fields = self.fields.iter().map(make).collect();
        let schema = match Schema::new(&self.name.value, fields) {
            Ok(schema) => schema,
            Err(error) => {
                return match self.blame(&error) {
                    Some((span, expected)) => {
                        faults.push(span, error.to_string(), expected);
                        Ok(None)
                    }
                    None => Err(ReadError::Format {
                        file: source.to_owned(),
                        found: error.to_string(),
                        expected: "fewer or narrower fields".to_owned(),
                    }),
                };
            }
        };
        let built_in = Schema::built_in(schema.name());
        let taken = built_in.is_some_and(|other| other != schema);
        if taken || schema.name() == Policy::DUAL_STACK {
            faults.push(
                self.name.span,
                format!("{} is built in and has other fields", quoted(schema.name())),
                "another name",
            );
            return Ok(None);
        }
        Ok(Some(schema))
    }

    /// Returns the span that an error refers to, and the expected text there.
    fn blame(&self, error: &SchemaError) -> Option<(Range<usize>, &'static str)> {
        let named = |name: &str| self.fields.iter().rfind(|f| f.name.value == name);
        match error {
            SchemaError::BadName { position, .. } => {
                let field = self.fields.get(*position)?;
                Some((field.name.span.clone(), "a name of those characters"))
            }
            SchemaError::ReservedName { name } | SchemaError::RepeatedName { name } => {
                Some((named(name)?.name.span.clone(), "another name"))
            }
            SchemaError::BadWidth { field, .. } => {
                Some((named(field)?.width.span.clone(), "a width in bits"))
            }
            SchemaError::BadFormat { field, .. } => {
                let format = named(field)?.format.as_ref()?;
                Some((
                    format.span.clone(),
                    "a format for that width, such as decimal or hex",
                ))
            }
            SchemaError::RepeatedRole { second, .. } => {
                let role = named(second)?.role.as_ref()?;
                Some((role.span.clone(), "another role, or none"))
            }
            _ => None,
        }
    }
}

fn read_fields(value: &Spanned<DeValue<'_>>, faults: &mut Faults) -> Option<Vec<DraftField>> {
    let Some(array) = value.get_ref().as_array() else {
        faults.push(value.span(), found(value), "one or more `[[field]]` tables");
        return None;
    };
    let mut fields = Vec::new();
    let mut is_complete = true;
    for entry in array {
        match entry.get_ref().as_table() {
            Some(table) => match read_field(table, entry.span(), faults) {
                Some(field) => fields.push(field),
                None => is_complete = false,
            },
            None => {
                faults.push(entry.span(), found(entry), "a `[[field]]` table");
                is_complete = false;
            }
        }
    }
    is_complete.then_some(fields)
}

fn read_field(table: &DeTable<'_>, place: Range<usize>, faults: &mut Faults) -> Option<DraftField> {
    const KEYS: [&str; 5] = ["name", "width", "kind", "role", "format"];
    for key in table.keys() {
        if !KEYS.contains(&key.get_ref().as_ref()) {
            faults.push(
                key.span(),
                format!("unknown key {}", quoted(key.get_ref())),
                "`name`, `width`, `kind`, `role` or `format`",
            );
        }
    }
    let name = required(table, place.clone(), "name", faults, |value, faults| {
        string(value, "the field's name", faults)
    });
    let width = required(table, place.clone(), "width", faults, width);
    let kind = required(table, place, "kind", faults, |value, faults| {
        let expected = "exact, prefix, range or ternary";
        word(value, expected, faults, MatchKind::from_name)
    });
    let role = table.get("role").map(|value| {
        let expected =
            "plain, source-address, destination-address, source-port or destination-port";
        word(value, expected, faults, FieldRole::from_name)
    });
    let format = table.get("format").map(|value| {
        let expected = "decimal, hex, ipv4, ipv6, mac, ip-protocol, connection-state, \
                        fragment, tcp-flags or text";
        word(value, expected, faults, ValueFormat::from_name)
    });
    Some(DraftField {
        name: name?,
        width: width?,
        kind: kind?,
        role: role.flatten(),
        format: format.flatten(),
    })
}

/// Reads the value of a required key.
fn required<T>(
    table: &DeTable<'_>,
    place: Range<usize>,
    key: &str,
    faults: &mut Faults,
    read: impl FnOnce(&Spanned<DeValue<'_>>, &mut Faults) -> Option<At<T>>,
) -> Option<At<T>> {
    match table.get(key) {
        Some(value) => read(value, faults),
        None => {
            faults.push(place, format!("`{key}` is missing"), format!("`{key} = …`"));
            None
        }
    }
}

fn width(value: &Spanned<DeValue<'_>>, faults: &mut Faults) -> Option<At<u32>> {
    let number = value.get_ref().as_integer();
    let number = number.and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok());
    match number {
        Some(number) if (1..=MAX_FIELD_BITS).contains(&number) => Some(At {
            value: number,
            span: value.span(),
        }),
        _ => {
            let expected = format!("a width in bits, 1 to {MAX_FIELD_BITS}");
            faults.push(value.span(), found(value), expected);
            None
        }
    }
}

fn string(value: &Spanned<DeValue<'_>>, expected: &str, faults: &mut Faults) -> Option<At<String>> {
    match value.get_ref().as_str() {
        Some(text) => Some(At {
            value: text.to_owned(),
            span: value.span(),
        }),
        None => {
            faults.push(value.span(), found(value), format!("{expected} in quotes"));
            None
        }
    }
}

fn word<T>(
    value: &Spanned<DeValue<'_>>,
    expected: &str,
    faults: &mut Faults,
    from_name: impl FnOnce(&str) -> Option<T>,
) -> Option<At<T>> {
    let known = value.get_ref().as_str().and_then(from_name);
    if known.is_none() {
        faults.push(value.span(), found(value), expected);
    }
    Some(At {
        value: known?,
        span: value.span(),
    })
}

/// Returns a value as messages show it.
fn found(value: &Spanned<DeValue<'_>>) -> String {
    match value.get_ref() {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => quoted(&number.to_string()),
        DeValue::Float(number) => quoted(&number.to_string()),
        DeValue::Boolean(truth) => quoted(&truth.to_string()),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        match read_schema("s.toml", text) {
            Ok(schema) => panic!("read as {schema:?}"),
            Err(ReadError::Bad(problems)) => {
                problems.shown().iter().map(ToString::to_string).collect()
            }
            Err(other) => vec![other.to_string()],
        }
    }

    fn assert_problems(text: &str, expected: &[&str]) {
        let problems = problems(text);
        assert_eq!(problems.len(), expected.len(), "{problems:#?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.contains(expected), "{problem:?} lacks {expected:?}");
        }
    }

    #[test]
    fn a_schema_is_read_and_written_back() {
        let text = "\u{feff}name = \"ten \\\"ants\"\r\n\r\n[[field]]\r\nname = \"tenant\"\r\nwidth = 0x18\r\nkind = \"exact\"\r\n\
            [[field]]\r\nname = \"src\"\r\nwidth = 32 # bits\r\nkind = \"prefix\"\r\nrole = \"source-address\"\r\nformat = \"ipv4\"";
        let schema = read_schema("s.toml", text).unwrap();
        assert_eq!(schema.name(), "ten \"ants");
        assert_eq!(schema.fields().len(), 2);
        assert_eq!(schema.fields()[0].width(), 24);
        assert_eq!(schema.fields()[1].role(), FieldRole::SourceAddress);
        let mut written = Vec::new();
        write_schema(&schema, &mut written).unwrap();
        let again = read_schema("s.toml", std::str::from_utf8(&written).unwrap()).unwrap();
        assert_eq!(schema, again);
    }

    #[test]
    fn built_in_schemas_survive_the_trip() {
        for name in Schema::BUILT_IN {
            let schema = Schema::built_in(name).unwrap();
            let mut written = Vec::new();
            write_schema(&schema, &mut written).unwrap();
            let again = read_schema(name, std::str::from_utf8(&written).unwrap()).unwrap();
            assert_eq!(schema, again);
        }
    }

    #[test]
    fn every_mistake_is_found_where_it_stands() {
        let field = "[[field]]\nname = \"a\"\nwidth = 8\nkind = \"exact\"\n";
        assert_problems(
            "",
            &["1:1: `name` is missing", "1:1: the schema has no field"],
        );
        assert_problems("name = 7\n", &["1:1: the schema has no field", "1:8: `7`"]);
        assert_problems("name = \n", &["1:8: "]);
        assert_problems("name = \"x\"\nfield = 3", &["2:9: `3`"]);
        assert_problems("name = \"x\"\nfield = [3]", &["2:10: `3`"]);
        assert_problems(
            "nam = \"x\"\n[[field]]\nname = \"a\"\nwidht = 8\nkind = \"exat\"\nrole = \"boss\"\nformat = 1\n",
            &[
                "1:1: unknown key `nam`",
                "1:1: `name` is missing",
                "2:1: `width` is missing",
                "4:1: unknown key `widht`",
                "5:8: `exat`; expected exact, prefix, range or ternary",
                "6:8: `boss`; expected plain, source-address",
                "7:10: `1`; expected decimal",
            ],
        );
        for (width, shown) in [
            ("0", "`0`"),
            ("129", "`129`"),
            ("-1", "`-1`"),
            ("8.5", "`8.5`"),
            ("true", "`true`"),
        ] {
            let text = format!(
                "name = \"x\"\n[[field]]\nname = \"a\"\nwidth = {width}\nkind = \"exact\"\n"
            );
            assert_problems(
                &text,
                &[&format!("4:9: {shown}; expected a width in bits, 1 to 128")],
            );
        }
        let head = "name = \"x\"\n";
        assert_problems(
            &format!("{head}{field}{field}"),
            &["7:8: the field name `a` is given twice"],
        );
        for (line, expected) in [
            ("name = \"a b\"\nwidth = 8", "3:8: field 0 has the name"),
            (
                "name = \"id\"\nwidth = 8",
                "3:8: the field name `id` is reserved",
            ),
            (
                "name = \"b\"\nwidth = 8\nformat = \"ipv4\"",
                "5:10: field `b` is 8 bits wide",
            ),
        ] {
            let text = format!("{head}[[field]]\n{line}\nkind = \"exact\"\n");
            assert_problems(&text, &[expected]);
        }
        let wide: String = (0..9)
            .map(|i| format!("[[field]]\nname = \"f{i}\"\nwidth = 128\nkind = \"exact\"\n"))
            .collect();
        assert_problems(
            &format!("{head}{wide}"),
            &["s.toml: the fields have 1152 bits"],
        );
        let roles: String = ["b", "c"]
            .map(|name| format!("[[field]]\nname = \"{name}\"\nwidth = 8\nkind = \"exact\"\nrole = \"source-port\"\n"))
            .concat();
        assert_problems(
            &format!("{head}{roles}"),
            &["11:8: fields `b` and `c` both have"],
        );
        assert_problems(
            &format!("name = \"ipv4-5tuple\"\n{field}"),
            &["1:8: `ipv4-5tuple` is built in"],
        );
        // Deep nesting is refused, and a text with 100,000 errors is read quickly.
        assert!(read_schema("s", &format!("x = {}", "[".repeat(100_000))).is_err());
        assert!(read_schema("s", &"=\n".repeat(100_000)).is_err());
        assert_problems(
            &format!("name = \"dual-5tuple\"\n{field}"),
            &["1:8: `dual-5tuple` is built in"],
        );
    }
}
