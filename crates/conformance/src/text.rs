//! Rules, headers and changes as single lines of text, for case files and for reports that
//! can be pasted into a case file.
//!
//! ```text
//! schema field  src 32 prefix ipv4 source-address
//! rule          3 @ 10: src=10.0.0.0/8 dport=80-89
//! header        src=10.1.2.3 dport=80
//! change        insert 3 @ 10: src=10.0.0.0/8     modify 3 @ 9: *     remove 3
//!               insert foreign      a rule of another schema; engines must refuse it
//! probe         src=10.1.2.3 dport=80 -> 3, 7     proto=udp -> miss
//! ```
//!
//! A rule's priority follows its `@`. Missing fields are wildcards in rules and zeros in
//! headers. `*` is a rule or header without any field. A probe lists all rules that match,
//! best first.

use std::sync::Arc;

use classyard::schema::FieldRole;
use classyard::value::ValueFormat;
use classyard::{ActionId, Field, FieldMatch, MatchKind, Priority, Rule, RuleId, RuleRef, Schema};

use super::oracle::OwnedChange;

/// Reads a schema's field: name, width and kind, then a format and a role.
///
/// # Errors
/// A description of the problem.
pub fn parse_field(text: &str) -> Result<Field, String> {
    let mut words = text.split_whitespace();
    let mut next = |what: &str| words.next().ok_or(format!("`{text}` has no {what}"));
    let (name, width, kind) = (next("name")?, next("width")?, next("kind")?);
    let width = width
        .parse()
        .map_err(|_| format!("`{width}` in `{text}` is no width"))?;
    let kind =
        MatchKind::from_name(kind).ok_or(format!("`{kind}` in `{text}` is no kind of match"))?;
    let mut field = Field::new(name, width, kind);
    for word in words {
        if let Some(format) = ValueFormat::from_name(word) {
            field = field.with_format(format);
        } else if let Some(role) = FieldRole::from_name(word) {
            field = field.with_role(role);
        } else {
            return Err(format!("`{word}` in `{text}` is neither format nor role"));
        }
    }
    Ok(field)
}

/// Writes a schema's field.
#[must_use]
pub fn write_field(field: &Field) -> String {
    let mut text = format!("{} {} {}", field.name(), field.width(), field.kind());
    if field.format() != ValueFormat::Decimal {
        text = format!("{text} {}", field.format().name());
    }
    if field.role() != FieldRole::Plain {
        text = format!("{text} {}", field.role().name());
    }
    text
}

/// Reads a match: `*`, `80`, `10.0.0.0/8`, `80-89`, `0x10&0xf0`, `+syn-ack`.
///
/// # Errors
/// A description of the problem.
pub fn parse_match(field: &Field, text: &str) -> Result<FieldMatch, String> {
    let value = |part: &str| parse_value(field, part);
    if text == "*" {
        Ok(FieldMatch::Any)
    } else if let Some((value, mask)) = field.format().parse_masked(text) {
        Ok(FieldMatch::Ternary { value, mask })
    } else if let Some((part, length)) = text.split_once('/') {
        let length = length
            .parse()
            .map_err(|_| format!("`{length}` in `{text}` is not a prefix length"))?;
        let value = value(part)?;
        Ok(FieldMatch::Prefix { value, length })
    } else if let Some((low, high)) = text.split_once('-') {
        let (low, high) = (value(low)?, value(high)?);
        Ok(FieldMatch::Range { low, high })
    } else if let Some((part, mask)) = text.split_once('&') {
        let (value, mask) = (value(part)?, value(mask)?);
        Ok(FieldMatch::Ternary { value, mask })
    } else {
        value(text).map(FieldMatch::Exact)
    }
}

fn parse_value(field: &Field, text: &str) -> Result<u128, String> {
    field.format().parse(text).ok_or_else(|| {
        let expected = field.format().expectation();
        format!("{}: `{text}` is not {expected}", field.name())
    })
}

/// Splits `name=text name=text` and looks up each field's position.
fn assignments<'t>(schema: &Schema, text: &'t str) -> Result<Vec<(usize, &'t str)>, String> {
    if text.trim() == "*" {
        return Ok(Vec::new());
    }
    let mut assigned: Vec<(usize, &str)> = Vec::new();
    for word in text.split_whitespace() {
        let (name, value) = word
            .split_once('=')
            .ok_or(format!("`{word}` does not have the form FIELD=VALUE"))?;
        let id = schema
            .field_named(name)
            .ok_or(format!("schema `{}` has no field `{name}`", schema.name()))?;
        if assigned.iter().any(|&(index, _)| index == id.index()) {
            return Err(format!("`{name}` is given twice in `{text}`"));
        }
        assigned.push((id.index(), value));
    }
    if assigned.is_empty() {
        return Err("nothing is written here; `*` stands for nothing".to_owned());
    }
    Ok(assigned)
}

/// Reads a rule: `ID @ PRIORITY: FIELD=MATCH …`.
///
/// # Errors
/// A description of the problem.
pub fn parse_rule(schema: &Arc<Schema>, text: &str) -> Result<Rule, String> {
    let form = || format!("`{text}` does not have the form ID @ PRIORITY: FIELD=MATCH …");
    let (head, body) = text.split_once(": ").ok_or_else(form)?;
    let (id, priority) = head.split_once('@').ok_or_else(form)?;
    let id = parse_id(id)?;
    let priority = priority
        .trim()
        .parse()
        .map_err(|_| format!("`{}` is not a priority", priority.trim()))?;
    let mut matches = vec![FieldMatch::Any; schema.fields().len()];
    for (index, wanted) in assignments(schema, body)? {
        matches[index] = parse_match(&schema.fields()[index], wanted)?;
    }
    Rule::new(schema, id, Priority(priority), ActionId(0), &matches)
        .map_err(|error| format!("rule {id}: {error}"))
}

fn parse_id(text: &str) -> Result<RuleId, String> {
    let number = text
        .trim()
        .parse()
        .map_err(|_| format!("`{}` is not a rule id", text.trim()))?;
    RuleId::new(number).map_err(|error| error.to_string())
}

/// Writes a rule so that [`parse_rule`] reads an equal rule, except for its action.
#[must_use]
pub fn write_rule(rule: RuleRef<'_>) -> String {
    let body = rule.to_string();
    let body = if body == "any" { "*" } else { &body };
    format!("{} @ {}: {body}", rule.id(), rule.priority())
}

/// Reads a header: one value for each field.
///
/// # Errors
/// A description of the problem.
pub fn parse_header(schema: &Schema, text: &str) -> Result<Vec<u128>, String> {
    let mut header = vec![0; schema.fields().len()];
    for (index, value) in assignments(schema, text)? {
        header[index] = parse_value(&schema.fields()[index], value)?;
    }
    Ok(header)
}

/// Writes a header so that [`parse_header`] reads an equal header.
#[must_use]
pub fn write_header(schema: &Schema, header: &[u128]) -> String {
    let fields = schema.fields().iter().zip(header);
    let words: Vec<String> = fields
        .filter(|&(_, &value)| value != 0)
        .map(|(field, &value)| format!("{}={}", field.name(), field.format().display(value)))
        .collect();
    if words.is_empty() {
        "*".to_owned()
    } else {
        words.join(" ")
    }
}

/// Returns a rule of a schema that differs from all others. Every engine must refuse it.
///
/// # Panics
/// Never: the rule is valid.
#[must_use]
pub fn foreign_rule() -> Arc<Rule> {
    let field = Field::new("foreign", 9, MatchKind::Exact);
    let schema = Schema::new(FOREIGN, vec![field]).expect("a schema");
    let (id, any) = (RuleId::from_index(0), [FieldMatch::Any]);
    let rule = Rule::new(&schema, id, Priority(1), ActionId(0), &any);
    Arc::new(rule.expect("a rule"))
}

/// The word for [`foreign_rule`] in texts, and the name of its schema.
const FOREIGN: &str = "foreign";

/// Reads a change: `insert RULE`, `modify RULE` or `remove ID`. The rule `foreign` is
/// [`foreign_rule`].
///
/// # Errors
/// A description of the problem.
pub fn parse_change(schema: &Arc<Schema>, text: &str) -> Result<OwnedChange, String> {
    let rule = |rule_text| match rule_text {
        FOREIGN => Ok(foreign_rule()),
        rule_text => parse_rule(schema, rule_text).map(Arc::new),
    };
    match text.trim().split_once(' ') {
        Some(("insert", rule_text)) => rule(rule_text).map(OwnedChange::Insert),
        Some(("modify", rule_text)) => rule(rule_text).map(OwnedChange::Modify),
        Some(("remove", id)) => parse_id(id).map(OwnedChange::Remove),
        _ => Err(format!(
            "`{text}` begins with none of `insert`, `modify` and `remove`"
        )),
    }
}

/// Writes a change so that [`parse_change`] reads an equal change, except for its rule's
/// action.
#[must_use]
pub fn write_change(change: &OwnedChange) -> String {
    let show = |rule: &Rule| match rule.view().schema().name() {
        FOREIGN => FOREIGN.to_owned(),
        _ => write_rule(rule.view()),
    };
    match change {
        OwnedChange::Insert(rule) => format!("insert {}", show(rule)),
        OwnedChange::Modify(rule) => format!("modify {}", show(rule)),
        OwnedChange::Remove(id) => format!("remove {id}"),
    }
}

/// Reads a probe: `HEADER -> ID, ID, …` or `HEADER -> miss`.
///
/// # Errors
/// A description of the problem.
pub fn parse_probe(schema: &Schema, text: &str) -> Result<(Vec<u128>, Vec<RuleId>), String> {
    let (header, ids) = text
        .split_once("->")
        .ok_or(format!("`{text}` does not have the form HEADER -> ID, …"))?;
    let header = parse_header(schema, header)?;
    let ids = match ids.trim() {
        "miss" => Vec::new(),
        ids => ids.split(',').map(parse_id).collect::<Result<_, _>>()?,
    };
    Ok((header, ids))
}

/// Writes a probe.
#[must_use]
pub fn write_probe(schema: &Schema, header: &[u128], matches: &[RuleId]) -> String {
    let ids: Vec<String> = matches.iter().map(ToString::to_string).collect();
    let ids = if ids.is_empty() {
        "miss".to_owned()
    } else {
        ids.join(", ")
    };
    format!("{} -> {ids}", write_header(schema, header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{RuleMaker, SeededDice, draw_header, random_schema};

    #[test]
    fn what_is_written_reads_back() {
        let mut dice = SeededDice::new(23);
        for round in 0..100 {
            let schema = match round {
                0 => Schema::ipv4_5tuple(),
                1 => Schema::ipv6_5tuple(),
                2 => Schema::openflow15(),
                _ => random_schema(&mut dice),
            };
            for field in schema.fields() {
                assert_eq!(&parse_field(&write_field(field)).unwrap(), field);
            }
            let rules = RuleMaker::new(&schema, &mut dice).rule_set(20, &mut dice);
            let views: Vec<_> = rules.iter().collect();
            for rule in &views {
                let text = write_rule(*rule);
                let read = parse_rule(&schema, &text).unwrap();
                assert_eq!(read.view().words(), rule.words(), "{text}");
                assert_eq!(read.view().winner(), rule.winner(), "{text}");
                let header = draw_header(&schema, &views, &mut dice);
                let ids = [rule.id(), RuleId::MAX];
                let probe = write_probe(&schema, &header, &ids);
                assert_eq!(
                    parse_probe(&schema, &probe).unwrap(),
                    (header, ids.to_vec())
                );
            }
        }
    }

    #[test]
    fn nonsense_is_refused_in_words() {
        let schema = Schema::ipv4_5tuple();
        for (text, expected) in [
            ("", "form"),
            ("1 @ 2:", "form"),
            ("1 @ 2: ", "nothing"),
            ("1 @ 2: color=3", "no field `color`"),
            ("1 @ 2: proto=tcp proto=udp", "twice"),
            ("x @ 2: *", "rule id"),
            ("4294967295 @ 2: *", "too large"),
            ("1 @ -2: *", "priority"),
            ("1 @ 2: src=10.0.0.0/33", "/33"),
            ("1 @ 2: sport=9-8", "inverted"),
            ("1 @ 2: sport=99999", "16 bits"),
            ("1 @ 2: proto=blue", "protocol"),
        ] {
            let error = parse_rule(&schema, text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error:?}");
        }
        assert!(parse_change(&schema, "add 1 @ 2: *").is_err());
        assert!(parse_probe(&schema, "src=10.0.0.1 -> ").is_err());
        assert!(parse_header(&schema, "src=10.0.0.0/8").is_err());
    }
}
