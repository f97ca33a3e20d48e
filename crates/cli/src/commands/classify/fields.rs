//! A line for each packet or header: its number, its fields and the rule that decides it.

use std::io::{self, Write as _};
use std::path::Path;

use classyard::key::unpack;
use classyard_report::failure::Failure;
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::{Format, csv};
use classyard_workload::capture::Packet;
use serde_json::{Map, Value, json};

use super::outcome::Outcome;
use super::outlet::Outlet;
use super::packets::{Chunk, Column};
use super::selection::Selection;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The fields of firewall rules that packets of a capture do not have.
const UNKNOWN_OF_PACKETS: [&str; 4] = ["in", "out", "list", "condition"];

/// A file with a line for each packet or header.
pub(super) struct FieldsFile<'a> {
    out: Outlet,
    format: Format,
    rules: &'a LoadedRules,
    /// The names of the fields of all parts of the policy.
    columns: Vec<String>,
    has_heading: bool,
    /// The packets or headers so far.
    number: u64,
}

/// The cells of one line.
struct Line<'a> {
    number: u64,
    packet: Option<&'a Packet>,
    /// The values of the header by column; `None` for packets without a header.
    values: Option<Vec<Option<String>>>,
    outcome: Outcome,
}

impl<'a> FieldsFile<'a> {
    /// Creates the file. A capture says nothing about some fields, which are left out.
    pub(super) fn create(
        path: &Path,
        rules: &'a LoadedRules,
        format: Format,
        is_capture: bool,
    ) -> Result<FieldsFile<'a>, Failure> {
        let mut columns: Vec<String> = Vec::new();
        for schema in rules.policy.schemas() {
            for id in schema.field_ids() {
                let name = schema.field(id).name();
                let is_unknown = is_capture && UNKNOWN_OF_PACKETS.contains(&name);
                if !is_unknown && !columns.iter().any(|column| column == name) {
                    columns.push(name.to_owned());
                }
            }
        }
        Ok(FieldsFile {
            out: Outlet::create(path)?,
            format,
            rules,
            columns,
            has_heading: false,
            number: 0,
        })
    }

    /// Writes a line for each packet or header that is selected.
    pub(super) fn write(
        &mut self,
        chunk: &Chunk,
        outcomes: &[Outcome],
        selection: &Selection,
    ) -> Result<(), Failure> {
        let mut headers = chunk.trace.iter();
        let records = chunk.packets.as_ref().map(Column::records);
        let mut records = records.into_iter().flatten();
        if !std::mem::replace(&mut self.has_heading, true) {
            self.write_heading(chunk.packets.is_some())?;
        }
        for &outcome in outcomes {
            self.number += 1;
            let packet = records.next().map(|(packet, _)| packet);
            let header = match outcome {
                Outcome::NoHeader => None,
                Outcome::Rule(_) | Outcome::Miss => headers.next(),
            };
            if !selection.has(outcome) {
                continue;
            }
            let line = Line {
                number: self.number,
                packet,
                values: header.map(|(part, key)| {
                    let schema = chunk.trace.part(part).schema();
                    let values = unpack(schema, key);
                    self.columns
                        .iter()
                        .map(|column| {
                            let id = schema.field_named(column)?;
                            let field = schema.field(id);
                            Some(field.format().display(values[id.index()]).to_string())
                        })
                        .collect()
                }),
                outcome,
            };
            self.write_line(&line)?;
        }
        Ok(())
    }

    fn write_heading(&mut self, has_packets: bool) -> Result<(), Failure> {
        let first_columns: &[&str] = match has_packets {
            true => &["packet", "time", "length"],
            false => &["header"],
        };
        let last_columns = ["rule", "line", "name", "action"];
        let columns = self.columns.iter().map(String::as_str);
        let cells = first_columns
            .iter()
            .copied()
            .chain(columns)
            .chain(last_columns);
        let cells: Vec<String> = cells.map(str::to_owned).collect();
        match self.format {
            Format::Json | Format::Ndjson => Ok(()),
            Format::Table | Format::Csv => self.write_cells(cells),
        }
    }

    fn write_line(&mut self, line: &Line<'_>) -> Result<(), Failure> {
        let policy = &self.rules.policy;
        let position = match line.outcome {
            Outcome::Rule(position) => Some(position),
            Outcome::Miss | Outcome::NoHeader => None,
        };
        let rule_line = position.and_then(|position| self.rules.line(position));
        let id = position.map(|position| policy.ids()[position]);
        let name = id.and_then(|id| policy.rule_name(id));
        let action = id.and_then(|id| {
            let (_, rule) = policy.rule(id).next()?;
            policy.action_name(rule.action())
        });
        if matches!(self.format, Format::Json | Format::Ndjson) {
            let mut object = line.first_members();
            object.insert("fields".to_owned(), line.fields(&self.columns));
            object.insert("rule".to_owned(), json!(position));
            object.insert("line".to_owned(), json!(rule_line));
            object.insert("name".to_owned(), json!(name));
            object.insert("action".to_owned(), json!(action));
            let text = Value::Object(object).to_string() + "\n";
            return self.write_record(text.as_bytes());
        }
        let mut cells = line.first_cells();
        match &line.values {
            Some(values) => cells.extend(values.iter().map(|v| v.clone().unwrap_or_default())),
            None => cells.resize(cells.len() + self.columns.len(), String::new()),
        }
        cells.push(match line.outcome {
            Outcome::Rule(position) => position.to_string(),
            Outcome::Miss => "-".to_owned(),
            Outcome::NoHeader => "x".to_owned(),
        });
        cells.push(csv::optional(rule_line.as_ref()));
        cells.push(csv::optional(name.as_ref()));
        cells.push(csv::optional(action.as_ref()));
        self.write_cells(cells)
    }

    fn write_cells(&mut self, cells: Vec<String>) -> Result<(), Failure> {
        let mut text = Vec::new();
        if self.format == Format::Csv {
            let cells: Vec<&dyn std::fmt::Display> = cells.iter().map(|cell| cell as _).collect();
            csv::Writer::new(&mut text).row(&cells)?;
        } else {
            let cells: Vec<String> = cells.into_iter().map(without_tabs).collect();
            text.extend(cells.join("\t").into_bytes());
            text.push(b'\n');
        }
        self.write_record(&text)
    }

    fn write_record(&mut self, text: &[u8]) -> Result<(), Failure> {
        let result = self.out.write_all(text);
        result.map_err(|error| self.out.failure(error))
    }

    /// Writes what is buffered.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let flushed: io::Result<()> = self.out.flush();
        flushed.map_err(|error| self.out.failure(error))
    }
}

impl Line<'_> {
    /// Returns number, time and length of a packet, or the number of a header.
    fn first_cells(&self) -> Vec<String> {
        let mut cells = vec![self.number.to_string()];
        if let Some(packet) = self.packet {
            cells.push(time(packet));
            cells.push(packet.original_length.to_string());
        }
        cells
    }

    fn first_members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        match self.packet {
            Some(packet) => {
                members.insert("packet".to_owned(), json!(self.number));
                members.insert("time".to_owned(), json!(time(packet)));
                members.insert("length".to_owned(), json!(packet.original_length));
            }
            None => {
                members.insert("header".to_owned(), json!(self.number));
            }
        }
        members
    }

    /// Returns the fields of the header as an object, or null.
    fn fields(&self, columns: &[String]) -> Value {
        let Some(values) = &self.values else {
            return Value::Null;
        };
        let fields = columns.iter().zip(values);
        let fields =
            fields.filter_map(|(name, value)| Some((name.clone(), json!(value.as_ref()?))));
        Value::Object(fields.collect())
    }
}

/// Returns the time of a packet in seconds since 1970, with nine digits after the point.
fn time(packet: &Packet) -> String {
    let (seconds, nanos) = (
        packet.timestamp_ns / NANOS_PER_SECOND,
        packet.timestamp_ns % NANOS_PER_SECOND,
    );
    format!("{seconds}.{nanos:09}")
}

/// Replaces tabs and line ends, which would end a cell.
fn without_tabs(cell: String) -> String {
    match cell.contains(['\t', '\n', '\r', '\\']) {
        true => cell
            .replace('\\', "\\\\")
            .replace('\t', "\\t")
            .replace('\n', "\\n")
            .replace('\r', "\\r"),
        false => cell,
    }
}
