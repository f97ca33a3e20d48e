//! Lines to write, and rules of one statement as one line with lists of values.

use std::collections::HashMap;

use classyard::policy::{PartId, Policy};
use classyard::{ActionId, FieldMatch, Priority, RuleId, RuleRef};

/// The maximum number of values of a list.
const MAX_LIST_VALUES: usize = 1 << 10;

/// A line to write.
#[derive(Clone)]
pub(super) struct Row {
    /// The rule in the policy.
    pub(super) source: RuleId,
    /// The rule's id in the file.
    pub(super) id: RuleId,
    pub(super) priority: Priority,
    /// The part that the line is for; `None` for all parts.
    pub(super) part: Option<PartId>,
    /// The lists of fields: the values after the value of the rule.
    pub(super) lists: Vec<(usize, Vec<FieldMatch>)>,
}

/// What rows must have in common to become one row with a list.
#[derive(PartialEq, Eq, Hash)]
struct Shared<'a> {
    action: ActionId,
    name: Option<&'a str>,
    part: Option<PartId>,
    /// The matches, with any value for the field of the list.
    matches: Vec<FieldMatch>,
    /// The lists of the other fields.
    lists: Vec<(usize, Vec<FieldMatch>)>,
}

/// Joins rows of one statement that differ in the values of one field. Masks that ignore bits
/// above others are in no list.
pub(super) fn join(policy: &Policy, rows: &[Row], statement_of_rule: &[u32]) -> Vec<Row> {
    // Rows with another action between them keep their order.
    let statement = |row: &Row| {
        let position = policy.position(row.source)?;
        let action = row.rule(policy)?.action();
        Some((statement_of_rule.get(position)?, action))
    };
    let is_one = |first: &Row, second: &Row| {
        statement(first).is_some() && statement(first) == statement(second)
    };
    let mut joined = Vec::with_capacity(rows.len());
    for rows in rows.chunk_by(is_one) {
        match rows {
            [only] => joined.push(only.clone()),
            _ => joined.extend(join_statement(policy, rows.to_vec())),
        }
    }
    joined
}

fn join_statement(policy: &Policy, mut rows: Vec<Row>) -> Vec<Row> {
    let fields = rows[0].rule(policy).map_or(0, |rule| rule.fields().len());
    for field in 0..fields {
        let mut joined: Vec<Row> = Vec::with_capacity(rows.len());
        let mut last_with: HashMap<Shared<'_>, usize> = HashMap::new();
        for row in rows {
            let Some(rule) = row.rule(policy) else {
                joined.push(row);
                continue;
            };
            let values = row.values(field, &rule);
            let shared = shared(policy, &row, &rule, field);
            let last = last_with.get(&shared).copied();
            if last.is_some_and(|last| joined[last].add(field, &values, &rule)) {
                continue;
            }
            last_with.insert(shared, joined.len());
            joined.push(row);
        }
        rows = joined;
    }
    rows
}

fn shared<'a>(policy: &'a Policy, row: &Row, rule: &RuleRef<'_>, field: usize) -> Shared<'a> {
    let mut matches = rule.fields();
    matches[field] = FieldMatch::Any;
    let lists = row.lists.iter().filter(|(other, _)| *other != field);
    Shared {
        action: rule.action(),
        name: policy.rule_name(row.source),
        part: row.part,
        matches,
        lists: lists.cloned().collect(),
    }
}

impl Row {
    /// Returns the rule of the policy whose matches the row has.
    pub(super) fn rule<'p>(&self, policy: &'p Policy) -> Option<RuleRef<'p>> {
        let mut rules = policy.rule(self.source);
        let chosen = match self.part {
            Some(part) => rules.find(|(rule_part, _)| *rule_part == part),
            None => rules.next(),
        };
        chosen.map(|(_, rule)| rule)
    }

    /// Returns the values of a field.
    fn values(&self, field: usize, rule: &RuleRef<'_>) -> Vec<FieldMatch> {
        let more = self.lists.iter().find(|(other, _)| *other == field);
        let more = more.map_or(&[][..], |(_, values)| values);
        let mut values = vec![rule.fields()[field]];
        values.extend(more);
        values
    }

    /// Adds values to the list of a field. False if they cannot be in a list.
    fn add(&mut self, field: usize, values: &[FieldMatch], rule: &RuleRef<'_>) -> bool {
        let width = rule.schema().fields()[field].width();
        let can_be_listed =
            |one: &FieldMatch| *one != FieldMatch::Any && one.as_range(width).is_some();
        if !values.iter().all(can_be_listed) {
            return false;
        }
        match self.lists.iter_mut().find(|(other, _)| *other == field) {
            Some((_, list)) if list.len() + values.len() < MAX_LIST_VALUES => list.extend(values),
            Some(_) => return false,
            None => self.lists.push((field, values.to_vec())),
        }
        true
    }
}
