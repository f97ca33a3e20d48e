//! Headers as text, one per line, with the expected rules.
//!
//! ```text
//! SRC <tab> DST <tab> SPORT <tab> DPORT <tab> PROTO [<tab> RULE] [more]
//! 3325256705   3221225985   40000   443   6   17
//! 2001:db8:0:0:0:0:0:1   2001:db8:0:0:0:0:0:2   40000   53   17   -1
//! ```
//!
//! For IPv4 this is the output of ClassBench's trace generator: decimal numbers, one for
//! each field. IPv6 addresses are written as text with all eight groups, because public
//! tools that read ClassBench IPv6 traces require it. Other schemas have a column for
//! each field, in the schema's order. A value may always be a decimal or `0x` number, or
//! have its field's [format](classyard::value::ValueFormat). Tabs or spaces separate the
//! columns. In a dual-stack trace the first column of a line gives its family.
//!
//! If the caller passes `expected`, the column after the fields is the number of the
//! winning rule: a rule's id, or `-1` for none. ClassBench's own generator writes into
//! this column the rule that it used to generate the header. Another rule may have a higher
//! priority, so do not pass `expected` for such a trace.

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

/// Headers, with the expected rule of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The headers, in file order.
    pub headers: PolicyTrace,
    /// For each header the rule that wins, or `None` for a miss. Present only if the
    /// caller requested the column.
    pub expected: Option<Vec<Option<RuleId>>>,
}

/// Reads headers; see the [module](self) for the format.
///
/// Without a `schema` the headers are five-tuples; their addresses select IPv4, IPv6 or
/// dual-stack. A policy's trace must have the policy's parts. So if the policy exists
/// already, pass its [`SchemaChoice::of`]. With `expected` each line must have a rule's
/// number after the fields.
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
    let dual = choice.has_both_families();
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
    options.finish(
        problems.with_good_lines(headers.len()),
        Trace { headers, expected },
    )
}

/// Reads headers from a file. A gzip file is unpacked.
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

/// Returns the five-tuple schema or schemas that the first columns require.
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

/// Reads a line's fields into `values`. Returns the winner if `expected` is true.
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
    let expectation = "the number of the rule that wins, or -1 for none";
    match columns.next() {
        None => Err(Fault::missing(line, expectation)),
        Some("-1") => Ok(Some(None)),
        Some(text) => match decimal(text).map(RuleId::new) {
            Some(Ok(id)) => Ok(Some(Some(id))),
            _ => Err(Fault::new(
                text,
                format!("{} is not a rule number", quoted(text)),
                expectation,
            )),
        },
    }
}

/// As [`value::parse_value`], with a fast path for decimal numbers, the usual case.
fn parse_value<'t>(text: &'t str, field: &Field) -> Result<u128, Fault<'t>> {
    match decimal::<u64>(text) {
        Some(number) if u128::from(number) <= field.max_value() => Ok(number.into()),
        _ => value::parse_value(text, field),
    }
}

/// Writes headers, with their expected rules if `expected` is given.
///
/// # Errors
/// Writing failed.
///
/// # Panics
/// If `expected` does not have one entry for each header.
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
        ValueFormat::Hex | ValueFormat::TcpFlags => write!(out, "{value:#x}"),
        ValueFormat::Mac | ValueFormat::Text => {
            write!(out, "{}", field.format().display(value))
        }
        ValueFormat::Decimal
        | ValueFormat::Ipv4
        | ValueFormat::IpProtocol
        | ValueFormat::ConnectionState
        | ValueFormat::Fragment => write!(out, "{value}"),
    };
}
