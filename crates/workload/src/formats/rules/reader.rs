//! Reading the lines of rules.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use classyard::policy::{PartId, Policy};
use classyard::schema::Field;
use classyard::value::ValueFormat;
use classyard::{FieldMatch, Priority, RuleId, Schema};

use super::actions::{self, Actions};
use super::alternatives::{self, MAX_MASKS, MAX_RULES};
use super::token::{Token, next_token, unquote};
use super::{Fault, SchemaChoice, kind_takes};
use crate::diagnostic::{Loaded, Problems, ReadError, ReadOptions};
use crate::formats::text::{counted_verb, decimal, quoted};
use crate::formats::value::{parse_match, takes_all};
use crate::formats::{limit_reached, line_number, rule_number};

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

/// The maximum number of characters of a line's text that is kept.
const MAX_TEXT_CHARACTERS: usize = 200;

/// The matches of a field, if a rule cannot have all of them in one match.
struct Alternatives {
    part: usize,
    field: usize,
    matches: Vec<FieldMatch>,
}

/// The parsed parts of a line, and the policy. Lines share it, so its memory is reused.
pub(super) struct Reader<'t> {
    policy: Policy,
    options: ReadOptions,
    /// The number of rules that gives the rules without a priority theirs.
    expected_rules: usize,
    /// The number of rules of the lines before this one; a bad line counts as one.
    next_number: usize,
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
    /// The fields with several matches.
    alternatives: Vec<Alternatives>,
    /// For each part, the matches of one condition of the line.
    values: Vec<Vec<FieldMatch>>,
    /// True if the line has a condition on an address.
    has_addresses: bool,
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
    /// The statement of each rule. Empty while every statement is one rule.
    statement_of_rule: Vec<u32>,
    /// The texts of statements that became several rules.
    statement_texts: BTreeMap<u32, String>,
    /// The first line with a priority, and the first line without a priority.
    with_priority: Option<usize>,
    without_priority: Option<usize>,
}

impl<'t> Reader<'t> {
    /// `expected_rules` is the number of rules of the file. It gives priorities to rules without
    /// one; if it turns out to be wrong, [`needs_number_of_rules`] says so.
    ///
    /// [`needs_number_of_rules`]: Reader::needs_number_of_rules
    pub(super) fn new(
        choice: &SchemaChoice,
        expected_rules: usize,
        options: &ReadOptions,
        actions: Actions,
    ) -> Reader<'t> {
        let schemas = choice.schemas();
        let mut policy = choice.policy();
        policy.reserve(expected_rules.min(options.limit));
        Reader {
            options: *options,
            expected_rules,
            next_number: 0,
            dual: choice.has_both_families(),
            matches: schemas
                .iter()
                .map(|schema| vec![FieldMatch::Any; schema.fields().len()])
                .collect(),
            alternatives: Vec::new(),
            values: vec![Vec::new(); schemas.len()],
            has_addresses: false,
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
            statement_of_rule: Vec::new(),
            statement_texts: BTreeMap::new(),
            with_priority: None,
            without_priority: None,
        }
    }

    /// Reads a line, and adds its rules or its problem.
    ///
    /// # Errors
    /// [`ReadError`] for more rules than the options allow.
    pub(super) fn read(
        &mut self,
        source: &str,
        number: usize,
        line: &'t str,
        problems: &mut Problems,
    ) -> Result<(), ReadError> {
        let parsed = self.parse(line);
        if let Err(fault) = self.add_parsed(source, number, line, parsed)? {
            problems.push_fault(fault, number, line);
        }
        Ok(())
    }

    /// Adds the rules of a parsed statement that starts on line `number`. Returns the fault
    /// of a bad statement.
    ///
    /// # Errors
    /// [`ReadError`] for more rules than the options allow.
    pub(super) fn add_parsed(
        &mut self,
        source: &str,
        number: usize,
        text: &'t str,
        parsed: Result<(), Fault<'t>>,
    ) -> Result<Result<(), Fault<'t>>, ReadError> {
        let outcome = parsed.and_then(|()| self.count_rules(text));
        let rules = *outcome.as_ref().unwrap_or(&1);
        rule_number(source, self.next_number + rules - 1, number)?;
        if outcome.is_ok() && self.policy.len() + rules > self.options.limit {
            return Err(limit_reached(source, number, &self.options, "rules"));
        }
        let added = outcome.and_then(|rules| self.add(rules, number, text));
        self.next_number += rules;
        Ok(added)
    }

    /// True if lines became more rules than were expected, so that rules have wrong
    /// priorities.
    pub(super) fn needs_number_of_rules(&self) -> bool {
        self.next_number != self.expected_rules && self.with_priority.is_none()
    }

    /// The number of rules of the file; a bad line counts as one.
    pub(super) fn rules_of_file(&self) -> usize {
        self.next_number
    }

    /// Returns the rules, with notes.
    ///
    /// # Errors
    /// [`ReadError::Bad`] if there are problems and bad lines must not be skipped.
    pub(super) fn finish(self, problems: Problems) -> Result<Loaded<Policy>, ReadError> {
        let notes = self.notes();
        let problems = problems.with_good_lines(self.policy.len());
        let mut loaded = self.options.finish(problems, self.policy)?;
        loaded.notes = notes;
        loaded.rule_lines = self.lines.iter().map(|&line| line_number(line)).collect();
        loaded.statement_of_rule = self.statement_of_rule;
        loaded.statement_texts = self.statement_texts;
        Ok(loaded)
    }

    /// Forgets the statement before this one.
    pub(super) fn clear(&mut self) {
        for matches in &mut self.matches {
            matches.fill(FieldMatch::Any);
        }
        self.alternatives.clear();
        self.has_addresses = false;
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
        self.set_action(unquote(first.text)?, first.text)?;
        while let Some(token) = next_token(&mut unread)? {
            self.attribute(&token)?;
        }
        self.check()
    }

    /// Sets the action. `text` is the part of the file with the action.
    pub(super) fn set_action(
        &mut self,
        action: Cow<'t, str>,
        text: &'t str,
    ) -> Result<(), Fault<'t>> {
        self.action = action;
        self.actions.take(&self.action, text)
    }

    /// Checks the conditions of a statement together.
    pub(super) fn check(&self) -> Result<(), Fault<'t>> {
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
            return match token.text {
                // As reports show a match without conditions.
                "any" => Ok(()),
                _ => Err(Fault::new(token.text, quoted(token.text), "field=value")),
            };
        };
        match key {
            "name" => self.set_name(unquote(token.value)?, token.text),
            _ => self.set(key, token.value, token.text),
        }
    }

    /// Sets the name. `text` is the part of the file with the name.
    pub(super) fn set_name(&mut self, name: Cow<'t, str>, text: &'t str) -> Result<(), Fault<'t>> {
        match self.name.replace(name) {
            None => Ok(()),
            Some(_) => Err(set_twice("name", text)),
        }
    }

    /// Sets anything else: `id`, `priority`, `family` or the condition of a field, which may be
    /// a list.
    pub(super) fn set(
        &mut self,
        key: &'t str,
        value: &'t str,
        text: &'t str,
    ) -> Result<(), Fault<'t>> {
        match key {
            "id" if self.id.is_some() => return Err(set_twice(key, text)),
            "priority" if self.priority.is_some() => return Err(set_twice(key, text)),
            "family" if self.family.is_some() => return Err(set_twice(key, text)),
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
                Some(priority) => self.priority = Some((Priority(priority), text)),
                None => {
                    return Err(Fault::new(
                        value,
                        format!("{} is not a priority", quoted(value)),
                        format!("a number of 0 to {}", u32::MAX),
                    ));
                }
            },
            "family" => self.set_family(value, text)?,
            _ => {
                let (is_negated, values) = alternatives::split(value);
                self.set_field(key, text, is_negated, values)?;
            }
        }
        Ok(())
    }

    fn set_family(&mut self, family: &'t str, text: &'t str) -> Result<(), Fault<'t>> {
        if !self.dual {
            return Err(Fault::new(
                text,
                format!("`family` in a file of schema `{}`", self.policy.name()),
                format!("no family, or the schema `{}`", Policy::DUAL_STACK),
            ));
        }
        let index = match family {
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
        self.family = Some(text);
        self.close(1 - index, text)
    }

    /// Excludes the rule from a part. The rule must remain in at least one part.
    fn close(&mut self, part: usize, text: &'t str) -> Result<(), Fault<'t>> {
        self.open[part] = false;
        if self.open.contains(&true) {
            return Ok(());
        }
        let families = ["IPv4", "IPv6"];
        Err(Fault::new(
            text,
            format!(
                "{} is {}, but what stands before it on this line is {}",
                quoted(text),
                families[1 - part.min(1)],
                families[part.min(1)]
            ),
            "addresses and family of one kind",
        ))
    }

    /// Sets the condition of a field. Its value must be in `values`, or if
    /// `is_negated` outside of them. `text` is the part of the file with the condition.
    pub(super) fn set_field<'v>(
        &mut self,
        name: &'t str,
        text: &'t str,
        is_negated: bool,
        values: impl Iterator<Item = &'v str>,
    ) -> Result<(), Fault<'t>>
    where
        't: 'v,
    {
        let Some(field) = self.schemas[0].field_named(name) else {
            return Err(self.unknown_field(name));
        };
        let index = field.index();
        if self.set[index].replace(text).is_some() {
            return Err(set_twice(name, text));
        }
        self.values.iter_mut().for_each(Vec::clear);
        for value in values {
            self.take_value(index, value, text)
                .map_err(|fault| fault.within(text))?;
        }
        for part in 0..self.schemas.len() {
            let field = &self.schemas[part].fields()[index];
            let matches = match self.values[part][..] {
                [] => {
                    self.close(part, text)?;
                    continue;
                }
                [one] if !is_negated && kind_takes(field, &one) => {
                    self.matches[part][index] = one;
                    continue;
                }
                ref values => alternatives::union(values, is_negated, field),
            };
            match matches.as_deref() {
                None => return Err(too_many(text)),
                Some([]) => {
                    return Err(Fault::new(
                        text,
                        format!("no value of `{}` meets {}", field.name(), quoted(text)),
                        "a condition that some value meets",
                    ));
                }
                Some([one]) => self.matches[part][index] = *one,
                Some(_) => self.alternatives.push(Alternatives {
                    part,
                    field: index,
                    matches: matches.expect("several"),
                }),
            }
        }
        Ok(())
    }

    /// Adds a value of a condition to each part whose field has such values.
    fn take_value<'v>(
        &mut self,
        index: usize,
        value: &'v str,
        text: &'t str,
    ) -> Result<(), Fault<'v>> {
        let (mut parts, mut first_fault) = (0, None);
        for (part, schema) in self.schemas.iter().enumerate() {
            let field = &schema.fields()[index];
            match parse_match(value, field) {
                Ok(one) => {
                    parts += 1;
                    let is_stray = parts == 1 && has_stray_bits(field, &one);
                    self.stray_bits = self.stray_bits.or(is_stray.then_some(text));
                    let is_address =
                        matches!(field.format(), ValueFormat::Ipv4 | ValueFormat::Ipv6);
                    if self.dual && is_address && !takes_all(&one) {
                        self.has_addresses = true;
                        if parts == 2 {
                            self.undecided.get_or_insert(text);
                        }
                    }
                    self.values[part].push(one);
                }
                Err(fault) if first_fault.is_none() || value.contains(':') => {
                    first_fault = Some(fault);
                }
                Err(_) => {}
            }
        }
        match first_fault {
            Some(fault) if parts == 0 => Err(fault),
            _ => Ok(()),
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

    /// Returns the parts of the group with a number below the number of parts. The rules of a
    /// group are in all of its parts, with equal conditions. Other groups are empty.
    fn parts_of_group(&self, group: usize) -> impl Iterator<Item = usize> {
        let parts = match (self.has_addresses, group) {
            (true, _) => group..group + 1,
            (false, 0) => 0..self.open.len(),
            (false, _) => 0..0,
        };
        parts.filter(|&part| self.open[part])
    }

    /// Returns the number of rules that a part requires.
    fn rules_of_part(&self, part: usize) -> Option<usize> {
        let alternatives = self.alternatives.iter().filter(|one| one.part == part);
        let mut sizes = alternatives.map(|one| one.matches.len());
        sizes.try_fold(1, usize::checked_mul)
    }

    /// Sets the matches of a part to the matches of its rule number `rule`.
    fn choose(&mut self, part: usize, mut rule: usize) {
        for one in self.alternatives.iter().filter(|one| one.part == part) {
            self.matches[part][one.field] = one.matches[rule % one.matches.len()];
            rule /= one.matches.len();
        }
    }

    /// Returns the number of rules that the parsed line becomes.
    fn count_rules(&self, line: &'t str) -> Result<usize, Fault<'t>> {
        let groups = 0..self.open.len();
        let firsts = groups.filter_map(|group| self.parts_of_group(group).next());
        let mut sizes = firsts.map(|part| self.rules_of_part(part));
        let rules = sizes.try_fold(0, |sum: usize, size| sum.checked_add(size?));
        match (rules, self.id) {
            (Some(rules), Some((_, text))) if rules > 1 => Err(Fault::new(
                text,
                format!("an id, but the line becomes {rules} rules"),
                "no id here, or values that one rule can have",
            )),
            (Some(rules), _) if rules <= MAX_RULES => Ok(rules),
            _ => Err(too_many(line.trim())),
        }
    }

    /// Adds the `rules` rules of the parsed line, or none.
    fn add(&mut self, rules: usize, line_number: usize, line: &'t str) -> Result<(), Fault<'t>> {
        let priority = self.given_priority(line)?;
        let first_id = self.id.map_or(self.next_number, |(id, _)| id.index());
        let mut ids = (first_id..first_id + rules).map(RuleId::from_index);
        if let Some(id) = ids.find(|&id| self.policy.position(id).is_some()) {
            return Err(self.id_in_use(id, line));
        }
        let action = self.policy.declare_action(&self.action);
        let mut id = first_id;
        for group in 0..self.open.len() {
            let parts: Vec<usize> = self.parts_of_group(group).collect();
            let rules = parts
                .first()
                .map_or(Some(0), |&part| self.rules_of_part(part));
            let rules = rules.expect("`count_rules` has counted the rules");
            for rule in 0..rules {
                parts.iter().for_each(|&part| self.choose(part, rule));
                let by_line = self
                    .expected_rules
                    .saturating_sub(self.next_number + id - first_id);
                let by_line = Priority(u32::try_from(by_line).unwrap_or(u32::MAX));
                let matches: Vec<(PartId, &[FieldMatch])> = self
                    .policy
                    .part_ids()
                    .filter(|part| parts.contains(&part.index()))
                    .map(|part| (part, self.matches[part.index()].as_slice()))
                    .collect();
                let (rule_id, priority) = (RuleId::from_index(id), priority.unwrap_or(by_line));
                if let Err(error) = self.policy.add(rule_id, priority, action, &matches) {
                    return Err(Fault::new(
                        line.trim(),
                        error.to_string(),
                        "a rule of the schema",
                    ));
                }
                if let Some(name) = &self.name {
                    self.policy.set_rule_name(rule_id, name);
                }
                id += 1;
            }
        }
        self.note_line(rules, line_number, line);
        Ok(())
    }

    /// Returns the priority on the line. `None` if no rule of the file has one.
    fn given_priority(&self, line: &'t str) -> Result<Option<Priority>, Fault<'t>> {
        let (part, found) = match (self.priority, self.without_priority, self.with_priority) {
            (Some((_, text)), Some(first), _) => (
                text,
                format!(
                    "{} here, but the rule in line {first} has no priority",
                    quoted(text)
                ),
            ),
            (None, _, Some(first)) => (
                line.split_ascii_whitespace().next().unwrap_or(line),
                format!("no priority here, but the rule in line {first} has one"),
            ),
            (given, _, _) => return Ok(given.map(|(priority, _)| priority)),
        };
        let expected = "a priority for all rules or for none";
        Err(Fault::new(part, found, expected))
    }

    /// Records a line that became `rules` rules, for later lines and for notes.
    fn note_line(&mut self, rules: usize, line_number: usize, line: &str) {
        let to_number = |count| u32::try_from(count).expect("fewer rules than ids");
        if rules > 1 && self.statement_of_rule.is_empty() {
            self.statement_of_rule = (0..to_number(self.lines.len())).collect();
        }
        if rules > 1 || !self.statement_of_rule.is_empty() {
            let last_statement = self.statement_of_rule.last();
            let statement = last_statement.map_or(0, |last| last + 1);
            let numbers = std::iter::repeat_n(statement, rules);
            self.statement_of_rule.extend(numbers);
            if rules > 1 {
                let text = line.trim().chars().take(MAX_TEXT_CHARACTERS).collect();
                self.statement_texts.insert(statement, text);
            }
        }
        self.lines.extend(std::iter::repeat_n(line_number, rules));
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
    }

    fn id_in_use(&self, id: RuleId, line: &'t str) -> Fault<'t> {
        let part = self.id.map_or(line.trim(), |(_, text)| text);
        let first = self.policy.position(id).and_then(|i| self.lines.get(i));
        let first = first.map_or(String::new(), |first| format!(" in line {first}"));
        Fault::new(
            part,
            format!("rule id {id} is taken by the rule{first}"),
            "an id of its own (a rule without one has its number in the file, from 0)",
        )
    }
}

fn set_twice<'t>(key: &str, text: &'t str) -> Fault<'t> {
    Fault::new(
        text,
        format!("`{key}` is set twice in this rule"),
        "each field at most once",
    )
}

/// Returns the fault for a condition or a line that would become too many rules.
fn too_many(part: &str) -> Fault<'_> {
    Fault::new(
        part,
        format!("{} is too many rules", quoted(part)),
        format!(
            "a line that becomes at most {MAX_RULES} rules (a list with a mask that ignores bits \
             above others has at most {MAX_MASKS} values)"
        ),
    )
}
