//! The lists of a policy, each with its statements in order.

use std::collections::HashMap;

use classyard::{FieldMatch, Policy, RuleId};
use classyard_text::line::quoted;

use super::statement::{Columns, Statement, kinds_of_packets, statement};
use super::{Family, Output, Refusal, WriteError};
use crate::builder::{DENY, PERMIT, REJECT};
use crate::packets::{Field, Values, name_of_value, name_value};

/// A list of rules.
#[derive(Debug)]
pub(super) struct List<'p> {
    /// The name. `None` if the rules name no list.
    pub(super) name: Option<String>,
    /// The statements, the best first. The default actions are not among them.
    pub(super) statements: Vec<Statement<'p>>,
    /// For each family with rules, the last statement if that selects every packet.
    defaults: [Option<Statement<'p>>; 2],
    families: [bool; 2],
}

impl<'p> List<'p> {
    /// True if the list has rules of a family.
    pub(super) fn has(&self, family: Family) -> bool {
        self.families[family as usize]
    }

    /// Returns the action of the packets that no statement selects, if the rules have one.
    pub(super) fn default_action(&self, family: Family) -> Option<&'p str> {
        let default = self.default_statement(family);
        default.map(|statement| statement.action)
    }

    /// Returns the statement that has the default action, if the rules have one.
    pub(super) fn default_statement(&self, family: Family) -> Option<&Statement<'p>> {
        self.defaults[family as usize].as_ref()
    }

    /// Returns the statements of a family.
    pub(super) fn of_family(&self, family: Family) -> impl Iterator<Item = &Statement<'p>> {
        let statements = self.statements.iter();
        statements.filter(move |statement| statement.family == family)
    }

    /// Returns the list for messages.
    pub(super) fn shown(&self) -> String {
        match &self.name {
            Some(name) => format!("the list {}", quoted(name)),
            None => "the file".to_owned(),
        }
    }

    fn push(&mut self, statement: Statement<'p>) {
        self.families[statement.family as usize] = true;
        // Forms of the other family may be between two statements of a rule.
        let last = self.statements.iter_mut().rev();
        let last = last.take(2).find(|last| last.family == statement.family);
        if !last.is_some_and(|last| last.merge(&statement)) {
            self.statements.push(statement);
        }
    }

    /// Makes the last statement of each family its default action, if it selects every packet.
    /// Of several such statements at the end, the first one decides.
    fn take_defaults(&mut self) {
        for family in Family::EACH {
            let of_family = |statement: &Statement<'_>| statement.family == family;
            while let Some(index) = self.statements.iter().rposition(of_family) {
                let last = &self.statements[index];
                if !last.is_for_all() || last.action == REJECT {
                    break;
                }
                self.defaults[family as usize] = Some(self.statements.remove(index));
            }
        }
    }
}

/// Returns the lists of a policy. Rules that cannot be statements are recorded.
pub(super) fn lists<'p>(
    policy: &'p Policy,
    output: &mut Output<'_>,
) -> Result<Vec<List<'p>>, WriteError> {
    let columns: Option<Vec<Columns>> = policy
        .schemas()
        .map(|schema| Columns::new(schema))
        .collect();
    let columns = columns.ok_or_else(|| WriteError::Schema(policy.name().to_owned()))?;
    if policy.is_empty() {
        return Err(WriteError::Empty);
    }
    let mut ranked: Vec<RuleId> = policy.ids().to_vec();
    let priority = |id: RuleId| policy.rule(id).next().map(|(_, rule)| rule.priority());
    ranked.sort_by_key(|&id| (std::cmp::Reverse(priority(id)), id));
    let mut lists = Lists::new(policy, output);
    for id in ranked {
        if let Err(refusal) = lists.add(policy, &columns, id) {
            output.refuse(refusal);
        }
    }
    let mut lists = lists.lists;
    for list in &mut lists {
        list.take_defaults();
    }
    Ok(lists)
}

struct Lists<'p, 'o> {
    lists: Vec<List<'p>>,
    /// The list of each value of the field `list`.
    numbers: HashMap<u128, usize>,
    conditions: &'o [String],
}

impl<'p, 'o> Lists<'p, 'o> {
    /// Returns the lists that rules name, without statements.
    fn new(policy: &Policy, output: &Output<'o>) -> Lists<'p, 'o> {
        let mut names: HashMap<u128, &str> = HashMap::new();
        for name in output.options.lists {
            if let Values::Bits { value, .. } = name_value(name) {
                names.insert(value, name);
            }
        }
        let mut lists = Lists {
            lists: Vec::new(),
            numbers: HashMap::new(),
            conditions: output.options.conditions,
        };
        let empty = |name| List {
            name,
            statements: Vec::new(),
            defaults: [None, None],
            families: [false; 2],
        };
        for part in policy.parts() {
            let Some(field) = part.schema().field_named("list") else {
                continue;
            };
            for rule in part.iter() {
                let FieldMatch::Exact(value) = rule.field(field) else {
                    continue;
                };
                let next = lists.lists.len();
                if *lists.numbers.entry(value).or_insert(next) == next {
                    let known = names.get(&value).map(|&name| name.to_owned());
                    lists
                        .lists
                        .push(empty(known.or_else(|| name_of_value(value))));
                }
            }
        }
        if lists.lists.is_empty() {
            let name = match output.options.lists {
                [only] => Some(only.clone()),
                _ => None,
            };
            lists.lists.push(empty(name));
        }
        lists
    }

    /// Adds a rule to its list, or to each list if it names none.
    fn add(&mut self, policy: &'p Policy, columns: &[Columns], id: RuleId) -> Result<(), Refusal> {
        let refuse = |reason: String| Refusal { rule: id, reason };
        for (part, rule) in policy.rule(id) {
            let columns = &columns[part.index()];
            let mut values = columns.values(&rule.fields());
            let lists = match values[Field::List as usize].take() {
                Some(Values::Bits { value, .. }) => match self.numbers.get(&value) {
                    Some(&number) => number..number + 1,
                    None => return Err(refuse("a part of the name of a list".to_owned())),
                },
                _ => 0..self.lists.len(),
            };
            if let Some(condition) = values[Field::Condition as usize] {
                return Err(refuse(self.condition(condition)));
            }
            let action = policy.action_name(rule.action()).unwrap_or_default();
            let action = action_word(action).ok_or_else(|| {
                refuse(format!(
                    "the action {}, where firewalls have permit, deny and reject",
                    quoted(action)
                ))
            })?;
            for values in kinds_of_packets(values, columns.family) {
                let name = policy.rule_name(id);
                let statement = statement(id, columns.family, action, name, values);
                for list in &mut self.lists[lists.clone()] {
                    list.push(statement.clone());
                }
            }
        }
        Ok(())
    }

    /// Describes a condition that no field expresses.
    fn condition(&self, condition: Values) -> String {
        let text = match condition {
            Values::Bits { mask, .. } => self.conditions.get(mask.trailing_zeros() as usize),
            Values::Range { .. } => None,
        };
        match text {
            Some(text) => format!("the condition {}, which no field expresses", quoted(text)),
            None => "a condition that no field expresses".to_owned(),
        }
    }
}

/// Returns the action of a statement. `None` for actions that not every firewall has.
fn action_word(action: &str) -> Option<&'static str> {
    Some(match action {
        "permit" | "accept" | "allow" | "NORMAL" => PERMIT,
        "deny" | "drop" => DENY,
        "reject" => REJECT,
        _ => return None,
    })
}
