//! Headers as text, one a line, and what a classifier should find for them.
//!
//! ```text
//! SRC <tab> DST <tab> SPORT <tab> DPORT <tab> PROTO [<tab> RULE] [more]
//! 3325256705   3221225985   40000   443   6   17
//! 2001:db8:0:0:0:0:0:1   2001:db8:0:0:0:0:0:2   40000   53   17   -1
//! ```
//!
//! That is what ClassBench's trace generator writes for IPv4: decimal numbers,
//! one for each field. IPv6 addresses stand as text, as public tools that read
//! ClassBench traces of IPv6 want them, and are written with all eight groups.
//! For other schemas there is a column for each field, in the schema's order; a
//! value may always be a decimal or `0x` number, or be written as its field's
//! [format](classyard::value::ValueFormat) says. Columns are parted by tabs or spaces.
//! In a dual-stack trace each line is of the family of its first column.
//!
//! The column after the fields is, if the caller says so, the number of the
//! rule that wins: a rule's id, or `-1` for none. ClassBench's own generator
//! writes there the rule that it drew the header from, which another rule may
//! beat; so such a column is not to be taken for the expected one.

use std::fmt::Write as _;
use std::io;
use std::net::Ipv6Addr;
use std::path::Path;
use std::sync::Arc;

use classyard::policy::{PartId, PolicyTrace};
use classyard::schema::Field;
use classyard::value::ValueFormat;
use classyard::{RuleId, Schema};

use super::classbench::write_full_ipv6;
use super::text::{decimal, is_blank, lines, quoted, words};
use super::{Fault, SchemaChoice, limit_reached, read_text_file, value};
use crate::diagnostic::{Loaded, Problems, ReadError, ReadOptions};
use crate::limits::FileLimit;

/// Headers, and what is expected for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The headers, in file order.
    pub headers: PolicyTrace,
    /// For each header the rule that wins, `None` for a miss; if the file has
    /// such a column and the caller asked for it.
    pub expected: Option<Vec<Option<RuleId>>>,
}

/// Reads headers; see the [module](self) for the format.
///
/// Without a `schema` they are five-tuples of the family that the addresses
/// show, or dual-stack. A policy's trace must have the policy's parts, so for a
/// policy that is there already pass [`SchemaChoice::of`] it. With `expected`
/// each line must have a rule's number after the fields.
///
/// # Errors
/// [`ReadError`]: the bad lines, or more headers than `options` allow.
pub fn read_trace(
    source: &str,
    text: &str,
    schema: Option<&SchemaChoice>,
    expected: bool,
    options: &ReadOptions,
) -> Result<Loaded<Trace>, ReadError> {
    let choice = schema.cloned().unwrap_or_else(|| families(text));
    let schemas = choice.schemas();
    let dual = choice == SchemaChoice::DualStack;
    let mut headers = PolicyTrace::new(schemas.iter());
    let mut winners = Vec::new();
    let mut problems = Problems::new(source);
    let mut values = Vec::new();
    for (number, line) in lines(text).filter(|(_, line)| !is_blank(line)) {
        let v6 = dual && has_colon_first(line);
        let part = PartId::from_index(usize::from(v6));
        let schema = schemas.get(part.index()).unwrap_or(&schemas[0]);
        match parse_line(line, schema, expected, &mut values) {
            Ok(winner) => {
                if headers.len() >= options.limit {
                    return Err(limit_reached(source, number, options, "headers"));
                }
                match headers.push(part, &values) {
                    Ok(()) => winners.extend(winner),
                    Err(error) => {
                        let fault = Fault::new(line.trim(), error.to_string(), "a header");
                        problems.push_fault(fault, number, line);
                    }
                }
            }
            Err(fault) => problems.push_fault(fault, number, line),
        }
    }
    let expected = expected.then_some(winners);
    options.finish(problems.beside(headers.len()), Trace { headers, expected })
}

/// Reads headers from a file; one that is gzip is unpacked.
///
/// # Errors
/// [`ReadError`]: the file cannot be read, is not UTF-8, or has bad lines.
pub fn read_trace_file(
    path: &Path,
    schema: Option<&SchemaChoice>,
    expected: bool,
    options: &ReadOptions,
) -> Result<Loaded<Trace>, ReadError> {
    let limit = FileLimit::TEXT.with_bytes(options.max_bytes);
    let text = read_text_file(path, limit)?;
    read_trace(
        &path.display().to_string(),
        &text,
        schema,
        expected,
        options,
    )
}

/// The five-tuples that the first columns show.
fn families(text: &str) -> SchemaChoice {
    let (mut v4, mut v6) = (false, false);
    for (_, line) in lines(text).filter(|(_, line)| !is_blank(line)) {
        let colon = has_colon_first(line);
        v6 |= colon;
        v4 |= !colon;
        if v4 && v6 {
            return SchemaChoice::DualStack;
        }
    }
    SchemaChoice::Single(if v6 {
        Schema::ipv6_5tuple()
    } else {
        Schema::ipv4_5tuple()
    })
}

fn has_colon_first(line: &str) -> bool {
    words(line).next().is_some_and(|word| word.contains(':'))
}

/// Fills `values` with a line's fields; the winner, if one is expected.
fn parse_line<'t>(
    line: &'t str,
    schema: &Arc<Schema>,
    expected: bool,
    values: &mut Vec<u128>,
) -> Result<Option<Option<RuleId>>, Fault<'t>> {
    values.clear();
    let mut columns = words(line);
    for field in schema.fields() {
        let Some(text) = columns.next() else {
            return Err(Fault::missing(
                line,
                format!(
                    "a column for `{}`: {} has {} of them",
                    field.name(),
                    schema.name(),
                    schema.fields().len()
                ),
            ));
        };
        values.push(parse_value(text, field)?);
    }
    if !expected {
        return Ok(None);
    }
    let what = "the number of the rule that wins, or -1 for none";
    match columns.next() {
        None => Err(Fault::missing(line, what)),
        Some("-1") => Ok(Some(None)),
        Some(text) => match decimal(text).map(RuleId::new) {
            Some(Ok(id)) => Ok(Some(Some(id))),
            _ => Err(Fault::new(
                text,
                format!("{} is no rule's number", quoted(text)),
                what,
            )),
        },
    }
}

/// As [`value::parse_value`], with a short way for what is almost always there.
fn parse_value<'t>(text: &'t str, field: &Field) -> Result<u128, Fault<'t>> {
    match decimal::<u64>(text) {
        Some(number) if u128::from(number) <= field.max_value() => Ok(number.into()),
        _ => value::parse_value(text, field),
    }
}

/// Writes headers, with the rules that should win if they are known.
///
/// # Errors
/// Writing failed.
///
/// # Panics
/// When there is not one expected outcome for each header.
pub fn write_trace(
    headers: &PolicyTrace,
    expected: Option<&[Option<RuleId>]>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if let Some(expected) = expected {
        assert_eq!(headers.len(), expected.len(), "an outcome for each header");
    }
    let mut buffer = String::new();
    for (index, (part, key)) in headers.iter().enumerate() {
        let schema = headers.part(part).schema();
        for (column, field) in schema.field_ids().enumerate() {
            if column > 0 {
                buffer.push('\t');
            }
            write_value(
                &mut buffer,
                schema.field(field),
                schema.placement(field).get(key),
            );
        }
        // Writing to a String cannot fail.
        let _ = match expected.and_then(|expected| expected.get(index)) {
            None => Ok(()),
            Some(Some(id)) => write!(buffer, "\t{id}"),
            Some(None) => write!(buffer, "\t-1"),
        };
        buffer.push('\n');
        if buffer.len() > 1 << 16 {
            out.write_all(buffer.as_bytes())?;
            buffer.clear();
        }
    }
    out.write_all(buffer.as_bytes())
}

fn write_value(out: &mut String, field: &Field, value: u128) {
    let _ = match field.format() {
        ValueFormat::Ipv6 => {
            write_full_ipv6(out, Ipv6Addr::from_bits(value));
            Ok(())
        }
        ValueFormat::Hex => write!(out, "{value:#x}"),
        ValueFormat::Mac => write!(out, "{}", field.format().display(value)),
        ValueFormat::Decimal | ValueFormat::Ipv4 | ValueFormat::IpProtocol => {
            write!(out, "{value}")
        }
    };
}
