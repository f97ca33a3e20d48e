//! Writing the rule format for people, in aligned columns.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use classyard::policy::Policy;
use classyard::{FieldMatch, Priority, RuleId, RuleRef, Schema};

use super::row::{Row, join};
use super::token::write_word;
use crate::formats::text::counted_verb;
use crate::formats::value::write_match;
use crate::formats::{Effect, RuleFormat, SchemaChoice, WriteError, WriteReport};

/// The maximum line width, in characters, up to which columns are aligned.
const MAX_ALIGNED_WIDTH: usize = 160;

/// Writes a policy over one schema or over both five-tuples.
///
/// A schema that is not built in is named by the path of its file: `path`, or by default
/// the schema's name with `.toml`. This function does not write that file; see
/// [`write_schema`](super::super::write_schema).
///
/// # Errors
/// [`WriteError`] if the policy has other parts, or if writing fails.
pub fn write(
    policy: &Policy,
    path: Option<&str>,
    out: &mut dyn io::Write,
) -> Result<WriteReport, WriteError> {
    write_statements(policy, &[], path, out)
}

/// Writes a policy as [`write`] does. Rules of one statement become one line with lists of
/// values where possible, if file order gives their priorities and ids. `statement_of_rule`
/// has the statement of each rule, or nothing if each rule is one.
pub(in crate::formats) fn write_statements(
    policy: &Policy,
    statement_of_rule: &[u32],
    path: Option<&str>,
    out: &mut dyn io::Write,
) -> Result<WriteReport, WriteError> {
    let choice = written_choice(policy, RuleFormat::Rules)?;
    let mut report = WriteReport {
        rules: policy.len(),
        ..WriteReport::default()
    };

    let mut head = String::from("schema ");
    if is_built_in(&choice) {
        head.push_str(choice.name());
    } else {
        let default = format!("{}.toml", choice.name());
        let path = path.unwrap_or(&default);
        let mut word = String::new();
        write_word(&mut word, path, true);
        if !word.starts_with('"') {
            word = format!("\"{word}\"");
        }
        head.push_str(&word);
        report.note(
            Effect::Exact,
            1,
            format!("the file expects its schema beside it, as {word}"),
        );
    }
    head.push('\n');
    head.extend(super::actions::declaration(policy));
    out.write_all(head.as_bytes())?;

    let table = Table::new(policy, &choice, statement_of_rule);
    table.write_lines(out)?;
    table.describe(&mut report);
    Ok(report)
}

/// Writes a policy as JSON; see [`json`](super::json), and [`write_statements`].
///
/// # Errors
/// As for [`write`].
pub(in crate::formats) fn write_json(
    policy: &Policy,
    statement_of_rule: &[u32],
    out: &mut dyn io::Write,
) -> Result<WriteReport, WriteError> {
    let choice = written_choice(policy, RuleFormat::Json)?;
    let mut report = WriteReport {
        rules: policy.len(),
        ..WriteReport::default()
    };
    let table = Table::new(policy, &choice, statement_of_rule);
    let schema = match is_built_in(&choice) {
        true => json_text(choice.name()),
        false => {
            let file = json_text(&format!("{}.toml", choice.name()));
            report.note(
                Effect::Exact,
                1,
                format!("the file expects its schema beside it, as {file}"),
            );
            format!("{{\"file\": {file}}}")
        }
    };
    let mut buffer = format!("{{\"schema\": {schema}, \"rules\": [");
    let mut cells = vec![String::new(); table.columns()];
    for (number, row) in table.rows.iter().enumerate() {
        buffer.push_str(if number == 0 { "\n" } else { ",\n" });
        table.fill(row, &mut cells);
        table.push_object(row, &cells, &mut buffer);
        if buffer.len() > 1 << 16 {
            out.write_all(buffer.as_bytes())?;
            buffer.clear();
        }
    }
    buffer.push_str("\n]}\n");
    out.write_all(buffer.as_bytes())?;
    table.describe(&mut report);
    Ok(report)
}

/// Returns the schema or schemas of a policy.
fn written_choice(policy: &Policy, format: RuleFormat) -> Result<SchemaChoice, WriteError> {
    SchemaChoice::of(policy).ok_or_else(|| WriteError::Schema {
        format,
        schema: policy.name().to_owned(),
        takes: "one schema, dual-5tuple or acl",
    })
}

/// True if files name the schema, and need no schema file.
fn is_built_in(choice: &SchemaChoice) -> bool {
    SchemaChoice::named(choice.name()).as_ref() == Some(choice)
}

/// Returns a text as a string of JSON.
fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the lines, and the number of rules that require two lines because their IPv4 and
/// IPv6 halves differ.
fn rows(policy: &Policy, dual: bool) -> (Vec<Row>, usize) {
    let mut fresh = policy.ids().iter().map(|id| id.get()).max().unwrap_or(0);
    let mut rows = Vec::with_capacity(policy.len());
    let mut split = 0;
    for &id in policy.ids() {
        let parts: Vec<_> = policy.rule(id).collect();
        let Some((first, rule)) = parts.first() else {
            continue;
        };
        let row = |id, part| Row {
            source: rule.id(),
            id,
            priority: rule.priority(),
            part,
            lists: Vec::new(),
        };
        match parts.as_slice() {
            [_, (second, other)] if dual && !says_the_same(rule, other) => {
                rows.push(row(id, Some(*first)));
                let second_id = next_free(policy, &mut fresh);
                rows.push(row(second_id, Some(*second)));
                split += 1;
            }
            [_, _] | [_] if dual => {
                rows.push(row(id, (parts.len() == 1).then_some(*first)));
            }
            _ => rows.push(row(id, None)),
        }
    }
    if split > 0 {
        // With split rules, line numbers no longer give the priorities of a plain list. And
        // a half with a new id would rank behind other rules of equal priority.
        let plain = policy.ids().iter().zip(0..).all(|(&id, position)| {
            let rule = policy.rule(id).next();
            rule.is_some_and(|(_, rule)| {
                u32::try_from(policy.len() - position) == Ok(rule.priority().0)
            })
        });
        let sources: BTreeMap<RuleId, Priority> =
            rows.iter().map(|row| (row.source, row.priority)).collect();
        let different: BTreeSet<Priority> = sources.values().copied().collect();
        if plain || different.len() < sources.len() {
            let count = rows.len();
            let mut order: Vec<usize> = (0..count).collect();
            order.sort_by_key(|&row| (std::cmp::Reverse(rows[row].priority), rows[row].source));
            for (rank, row) in order.into_iter().enumerate() {
                rows[row].priority = Priority(u32::try_from(count - rank).unwrap_or(u32::MAX));
            }
        }
    }
    (rows, split)
}

/// Returns the next id after `last_id` that no rule has.
fn next_free(policy: &Policy, last_id: &mut u32) -> RuleId {
    loop {
        *last_id = last_id.wrapping_add(1);
        if let Ok(id) = RuleId::new(*last_id)
            && policy.position(id).is_none()
        {
            return id;
        }
    }
}

/// True if one line can express both halves of a rule: it has no addresses, and the other
/// fields are equal.
fn says_the_same(v4: &RuleRef<'_>, v6: &RuleRef<'_>) -> bool {
    v4.fields()
        .iter()
        .zip(v6.fields())
        .enumerate()
        .all(|(index, (a, b))| *a == b && (index > 1 || *a == FieldMatch::Any))
}

/// The rows of a file, in columns: action, family, fields, name, id, priority.
struct Table<'a> {
    policy: &'a Policy,
    rows: Vec<Row>,
    /// The number of rules that require two rows because their IPv4 and IPv6 halves differ.
    split: usize,
    /// The number of rows that were joined with another row.
    joined: usize,
    dual: bool,
    with_ids: bool,
    with_priorities: bool,
    fields: usize,
}

impl<'a> Table<'a> {
    fn new(policy: &'a Policy, choice: &SchemaChoice, statement_of_rule: &[u32]) -> Table<'a> {
        let dual = choice.has_both_families();
        let (mut rows, split) = rows(policy, dual);
        let count = rows.len();
        let plain = |(row, i): (&Row, usize)| u32::try_from(count - i) == Ok(row.priority.0);
        let with_ids = rows.iter().zip(0..).any(|(row, i)| row.id.index() != i);
        let with_priorities = !rows.iter().zip(0..).all(plain);
        if !with_ids && !with_priorities && !statement_of_rule.is_empty() {
            rows = join(policy, &rows, statement_of_rule);
        }
        Table {
            policy,
            split,
            joined: count - rows.len(),
            dual,
            with_ids,
            with_priorities,
            fields: choice.schemas()[0].fields().len(),
            rows,
        }
    }

    /// Writes a line for each row, in aligned columns unless lines would be too long.
    fn write_lines(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut cells = vec![String::new(); self.columns()];
        let mut widths = vec![0; self.columns()];
        for row in &self.rows {
            self.fill(row, &mut cells);
            for (width, cell) in widths.iter_mut().zip(&cells) {
                *width = cell.chars().count().max(*width);
            }
        }
        let total: usize = widths
            .iter()
            .filter(|&&width| width > 0)
            .map(|w| w + 1)
            .sum();
        if total > MAX_ALIGNED_WIDTH {
            widths.fill(0);
        }
        let mut buffer = String::new();
        for row in &self.rows {
            self.fill(row, &mut cells);
            let start = buffer.len();
            for (width, cell) in widths.iter().zip(&cells) {
                if *width > 0 || !cell.is_empty() {
                    buffer.push_str(cell);
                    let missing = width.saturating_sub(cell.chars().count());
                    buffer.extend(std::iter::repeat_n(' ', missing + 1));
                }
            }
            buffer.truncate(start + buffer[start..].trim_end().len());
            buffer.push('\n');
            if buffer.len() > 1 << 16 {
                out.write_all(buffer.as_bytes())?;
                buffer.clear();
            }
        }
        out.write_all(buffer.as_bytes())
    }

    /// Adds the number of rows to a report, and notes about rules that the file states in
    /// another way.
    fn describe(&self, report: &mut WriteReport) {
        report.lines = self.rows.len();
        let split = counted_verb(
            self.split,
            "rule",
            "demands different things",
            "demand different things",
        );
        let halves = "for IPv4 and IPv6, so the IPv6 half became a rule with an id of its own";
        report.note(Effect::Restated, self.split, format!("{split} {halves}"));
        let joined = counted_verb(self.joined, "rule", "became a value", "became values");
        let text = format!("{joined} of lists, so rules have other ids in the file");
        report.note(Effect::Restated, self.joined, text);
        let unnamed = self.rows.iter().filter(|row| {
            let rule = self.policy.rule(row.source).next();
            rule.is_none_or(|(_, rule)| self.policy.action_name(rule.action()).is_none())
        });
        let unnamed = unnamed.count();
        let actions = counted_verb(unnamed, "rule", "has an action", "have actions");
        report.note(
            Effect::Restated,
            unnamed,
            format!("{actions} without a name, written as action-NUMBER"),
        );
    }

    /// Returns the name of a rule's action.
    fn action(&self, rule: &RuleRef<'_>) -> Cow<'a, str> {
        match self.policy.action_name(rule.action()) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("action-{}", rule.action().0)),
        }
    }

    /// Adds an object of JSON for a row. [`fill`](Table::fill) has filled `cells`.
    fn push_object(&self, row: &Row, cells: &[String], out: &mut String) {
        let rule = self.policy.rule(row.source).next();
        let action = rule.map(|(_, rule)| self.action(&rule));
        out.push_str("{\"action\": ");
        out.push_str(&json_text(&action.unwrap_or_default()));
        let texts = cells[1..self.fields + 2].iter();
        for (key, value) in texts.filter_map(|cell| cell.split_once('=')) {
            out.extend([", ", &json_text(key), ": ", &json_text(value)]);
        }
        if let Some(name) = self.policy.rule_name(row.source) {
            out.extend([", \"name\": ", &json_text(name)]);
        }
        let numbers = cells[self.fields + 3..].iter();
        for (key, value) in numbers.filter_map(|cell| cell.split_once('=')) {
            out.extend([", ", &json_text(key), ": ", value]);
        }
        out.push('}');
    }

    fn columns(&self) -> usize {
        self.fields + 5
    }

    fn fill(&self, row: &Row, cells: &mut [String]) {
        cells.iter_mut().for_each(String::clear);
        let Some(rule) = row.rule(self.policy) else {
            return;
        };
        let [action, family, rest @ ..] = cells else {
            return;
        };
        write_word(action, &self.action(&rule), false);
        let schema: &Arc<Schema> = rule.schema();
        let mut addressed = false;
        for (id, cell) in schema.field_ids().zip(&mut *rest) {
            let field_match = rule.field(id);
            if field_match != FieldMatch::Any {
                addressed |= id.index() < 2;
                let field = schema.field(id);
                cell.push_str(field.name());
                cell.push('=');
                write_match(cell, field, &field_match);
                let lists = row.lists.iter().filter(|(other, _)| *other == id.index());
                for value in lists.flat_map(|(_, values)| values) {
                    cell.push(',');
                    write_match(cell, field, value);
                }
            }
        }
        if let Some(part) = row.part.filter(|_| self.dual && !addressed) {
            family.push_str(["family=ipv4", "family=ipv6"][part.index().min(1)]);
        }
        let Some([name, id, priority]) = rest.get_mut(self.fields..) else {
            return;
        };
        if let Some(text) = self.policy.rule_name(row.source) {
            name.push_str("name=");
            write_word(name, text, true);
        }
        if self.with_ids {
            id.push_str(&format!("id={}", row.id));
        }
        if self.with_priorities {
            priority.push_str(&format!("priority={}", row.priority));
        }
    }
}
