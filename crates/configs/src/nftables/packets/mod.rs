//! The tables of a ruleset as lists of rules.

mod compared;
mod field;
mod fragment;
mod interval;
mod matching;
mod rule;
mod value;

use std::collections::{HashMap, HashSet};

use classyard_text::line::quoted;
use classyard_workload::diagnostic::ReadError;

use self::matching::Matcher;
use self::rule::{Effect, Outcome, any_selector, effect};
use super::position::Positions;
use super::show;
use super::tree::{
    Chain, ExpressionKind, Family, Parsed, Policy, Rule, Ruleset, StatementAction, Table, fault,
    unsupported,
};
use crate::builder::{Builder, DENY, PERMIT, SourceId};
use crate::chains::{self, ChainRule, End, Target, add_chain};
use crate::packets::{Families, Field, PacketSet, Values};

/// The maximum number of boxes of all rules together, before jumps are followed.
const MAX_RULE_BOXES: usize = 1 << 21;

/// The maximum number of elements of named sets that all rules together read.
const MAX_READ_ELEMENTS: usize = 1 << 24;

/// The maximum number of names that a note lists.
const MAX_LISTED_NAMES: usize = 5;

/// Adds the rules of all tables.
pub(super) fn add_ruleset<'t>(
    ruleset: &mut Ruleset<'t>,
    positions: &Positions<'t>,
    is_json: bool,
    builder: &mut Builder<'_>,
) -> Result<(), ReadError> {
    mark_changing_sets(ruleset);
    let names = list_names(ruleset);
    let mut writer = Writer {
        positions,
        is_json,
        boxes: 0,
        read_elements: 0,
        builder,
    };
    writer.note_hooks(ruleset);
    for (table, names) in ruleset.tables.iter().zip(&names) {
        writer.add_table(table, names)?;
    }
    Ok(())
}

/// Marks the sets that rules change.
fn mark_changing_sets(ruleset: &mut Ruleset<'_>) {
    for table in &mut ruleset.tables {
        let rules = table.chains.iter().flat_map(|chain| &chain.rules);
        let statements = rules.flat_map(|rule| &rule.statements);
        let changed: HashSet<String> = statements
            .filter_map(|statement| match &statement.action {
                StatementAction::ChangeSet { set, .. } => Some(set.clone()),
                _ => None,
            })
            .collect();
        for name in changed
            .iter()
            .filter(|name| table.find_set(name).is_some())
            .cloned()
            .collect::<Vec<_>>()
        {
            table.set(&name).is_changing = true;
        }
    }
}

/// Returns the IP families of a table. `None` if its packets are not modelled.
fn families(family: Family) -> Option<Families> {
    match family {
        Family::Ip => Some(Families::IPV4),
        Family::Ip6 => Some(Families::IPV6),
        Family::Inet => Some(Families::BOTH),
        Family::Arp | Family::Bridge | Family::Netdev => None,
    }
}

/// Returns the names of the chains of each table: `CHAIN` if no other chain of the same IP
/// family has that name, else `TABLE/CHAIN` or `FAMILY/TABLE/CHAIN`.
fn list_names(ruleset: &Ruleset<'_>) -> Vec<Vec<String>> {
    let each_family = Families::EACH.map(|(family, _)| family);
    let forms = |table: &Table<'_>, chain: &Chain<'_>| {
        let (family, table, chain) = (table.family.keyword(), &table.name, &chain.name);
        [
            chain.clone(),
            format!("{table}/{chain}"),
            format!("{family}/{table}/{chain}"),
        ]
    };
    let mut counts: HashMap<(usize, String), usize> = HashMap::new();
    let families_of = |table: &Table<'_>| {
        let families = families(table.family);
        (0..2).filter(move |&index| families.is_some_and(|all| all.has(each_family[index])))
    };
    for table in &ruleset.tables {
        for chain in &table.chains {
            for form in forms(table, chain) {
                for family in families_of(table) {
                    *counts.entry((family, form.clone())).or_insert(0) += 1;
                }
            }
        }
    }
    let name = |table: &Table<'_>, chain: &Chain<'_>| {
        let forms = forms(table, chain);
        let is_unique = |form: &&String| {
            families_of(table).all(|family| counts[&(family, (*form).clone())] == 1)
        };
        let unique = forms.iter().find(is_unique);
        unique.unwrap_or(&forms[2]).clone()
    };
    let tables = ruleset.tables.iter();
    tables
        .map(|table| {
            table
                .chains
                .iter()
                .map(|chain| name(table, chain))
                .collect()
        })
        .collect()
}

struct Writer<'a, 'b, 't> {
    positions: &'a Positions<'t>,
    is_json: bool,
    /// The boxes of all rules so far.
    boxes: usize,
    /// The elements of named sets that rules have read so far.
    read_elements: usize,
    builder: &'a mut Builder<'b>,
}

impl<'t> Writer<'_, '_, 't> {
    /// Adds notes on chains that together decide packets.
    fn note_hooks(&mut self, ruleset: &Ruleset<'t>) {
        let mut hooks: HashMap<&str, Vec<(&str, Families)>> = HashMap::new();
        let mut shared: Vec<&str> = Vec::new();
        let mut has_translation = false;
        for table in &ruleset.tables {
            let Some(families) = families(table.family) else {
                continue;
            };
            for base in table.chains.iter().filter_map(|chain| chain.base.as_ref()) {
                has_translation |= base.chain_type == "nat";
                if base.chain_type == "nat" {
                    continue;
                }
                let others = hooks.entry(&base.hook).or_default();
                let is_common =
                    |(_, other): &(&str, Families)| other.has(families) || families.has(*other);
                if others.iter().any(is_common) && !shared.contains(&&base.hook[..]) {
                    shared.push(&base.hook);
                }
                others.push((&base.hook, families));
            }
        }
        for hook in shared {
            self.builder.note(format!(
                "several chains have the hook {}: a packet passes if each of them accepts it",
                quoted(hook)
            ));
        }
        if has_translation {
            self.builder.note(
                "chains of type `nat` examine only the first packet of each connection".to_owned(),
            );
        }
    }

    fn add_table(&mut self, table: &Table<'t>, names: &[String]) -> Result<(), ReadError> {
        let has_hooks = table.chains.iter().any(|chain| chain.base.is_some());
        let Some(families) = families(table.family) else {
            if has_hooks {
                let feature = format!("tables of the family `{}`", table.family.keyword());
                self.positions
                    .report(self.builder, unsupported(table.text, feature));
            }
            return Ok(());
        };
        if table.is_dormant {
            self.builder.note(format!(
                "the table {} is dormant: its chains were left out",
                quoted(&table.name)
            ));
            return Ok(());
        }
        let packets = PacketSet::of_families(families);
        let mut chains = Vec::with_capacity(table.chains.len());
        for (chain, name) in table.chains.iter().zip(names) {
            let mut rules = Vec::new();
            for rule in &chain.rules {
                if let Err(fault) = self.add_rule(table, rule, (&packets, name), &mut rules) {
                    self.positions.report(self.builder, fault);
                }
            }
            chains.push(chains::Chain {
                name: chain.name.clone(),
                rules,
            });
        }
        self.note_unreached(table, &chains);
        for (index, chain) in table.chains.iter().enumerate() {
            if chain.base.is_some() {
                self.add_list(chain, &names[index], (&chains, index), &packets)?;
            }
        }
        Ok(())
    }

    /// Adds the rules of a chain with a hook, and its policy.
    fn add_list(
        &mut self,
        chain: &Chain<'t>,
        name: &str,
        (chains, index): (&[chains::Chain<'t>], usize),
        packets: &PacketSet,
    ) -> Result<(), ReadError> {
        let list = self.builder.list(name).map(|list| list.intersect(packets));
        let packets = match list {
            Ok(Ok(packets)) => packets,
            Ok(Err(error)) => {
                let fault = fault(chain.text, error.to_string(), "fewer rules");
                self.positions.report(self.builder, fault);
                return Ok(());
            }
            Err(problem) => {
                let fault = fault(chain.text, problem.found(), "another name for the chain");
                self.positions.report(self.builder, fault);
                return Ok(());
            }
        };
        let policy = chain.base.as_ref().and_then(|base| base.policy);
        let (policy, text) = match policy {
            Some((policy, text)) => (policy, Some(text)),
            None => (Policy::Accept, None),
        };
        let (line, _, column) = self.positions.of(text.unwrap_or(chain.text));
        let (word, action) = match policy {
            Policy::Accept => ("policy accept", PERMIT),
            Policy::Drop => ("policy drop", DENY),
        };
        let source = self.builder.source_at(line, column, word, name);
        let rule = self.builder.source_mut(source);
        (rule.is_implied, rule.is_default) = (text.is_none(), true);
        add_chain(
            self.builder,
            chains,
            (index, packets),
            End { source, action },
        )
    }

    /// Adds a rule to the rules of its chain. The rule is read two times, so that a rule with
    /// a fault does not become a statement of the configuration.
    fn add_rule(
        &mut self,
        table: &Table<'t>,
        rule: &Rule<'t>,
        (packets, list): (&PacketSet, &str),
        rules: &mut Vec<ChainRule<'t>>,
    ) -> Parsed<'t, ()> {
        self.check_elements(table, rule)?;
        let matcher = Matcher { table };
        let mut check_condition = |_: &'t str, _: &str, _: bool| {
            Ok(PacketSet::of(Field::Condition, [Values::bits(1, 1)]))
        };
        let checked = effect(matcher, packets.clone(), rule, &mut check_condition)?;
        self.check_outcomes(table, rule, &checked)?;
        self.note_rule(rule);

        let (line, _, column) = self.positions.of(rule.text);
        let shown = match self.is_json {
            true => show::rule(rule),
            false => on_one_line(rule.text),
        };
        let source = self.builder.source_at(line, column, &shown, list);
        let builder = &mut *self.builder;
        let mut add_condition = |part: &'t str, condition: &str, is_stateful: bool| {
            let packets = match is_stateful {
                true => builder.stateful_condition(source, condition),
                false => builder.condition(source, condition),
            };
            packets.map_err(|problem| fault(part, problem.found(), "a file with fewer of them"))
        };
        let effect = effect(matcher, packets.clone(), rule, &mut add_condition)?;
        let statement = self.builder.source_mut(source);
        statement.comment.clone_from(&rule.comment);
        statement.hits = effect.hits;
        self.push_rules(table, source, effect, rules);
        Ok(())
    }

    /// Adds the outcomes of a rule to the rules of its chain.
    fn push_rules(
        &self,
        table: &Table<'t>,
        source: SourceId,
        effect: Effect<'t>,
        rules: &mut Vec<ChainRule<'t>>,
    ) {
        let index = |name: &str| table.chain_index(name).expect("a chain that was checked");
        for (packets, outcome, text) in effect.outcomes {
            let target = match outcome {
                Outcome::Decide(action) => Target::Verdict(action),
                Outcome::Jump(name) => Target::Jump(index(&name)),
                Outcome::Goto(name) => Target::Goto(index(&name)),
                Outcome::Return => Target::Return,
            };
            let (number, line, _) = self.positions.of(text);
            rules.push(ChainRule {
                source,
                line: (number, line),
                part: text.lines().next().unwrap_or(text),
                packets,
                target,
            });
        }
    }

    /// Counts the elements of the named sets of a rule.
    fn check_elements(&mut self, table: &Table<'t>, rule: &Rule<'t>) -> Parsed<'t, ()> {
        for statement in &rule.statements {
            let (StatementAction::Match {
                right_side: set, ..
            }
            | StatementAction::VerdictMap { map: set, .. }) = &statement.action
            else {
                continue;
            };
            if let ExpressionKind::SetReference(name) = &set.kind {
                let set = table.find_set(name);
                self.read_elements += set.map_or(0, |set| set.elements.len());
            }
        }
        match self.read_elements > MAX_READ_ELEMENTS {
            true => {
                let problem = format!("the rules read more than {MAX_READ_ELEMENTS} elements");
                Err(fault(
                    rule.text,
                    problem,
                    "smaller sets, or a part of the file",
                ))
            }
            false => Ok(()),
        }
    }

    /// Checks that the chains of a rule exist, and the size of its sets.
    fn check_outcomes(
        &mut self,
        table: &Table<'t>,
        rule: &Rule<'t>,
        effect: &Effect<'t>,
    ) -> Parsed<'t, ()> {
        for (packets, outcome, text) in &effect.outcomes {
            self.boxes += packets.boxes().len();
            let (Outcome::Jump(name) | Outcome::Goto(name)) = outcome else {
                continue;
            };
            match table.chain_index(name) {
                None => {
                    let problem = format!("no chain {} in this table", quoted(name));
                    return Err(fault(text, problem, "the name of a chain"));
                }
                Some(index) if table.chains[index].base.is_some() => {
                    let problem = format!("a jump to {}, which has a hook", quoted(name));
                    return Err(fault(text, problem, "a chain without a hook"));
                }
                Some(_) => {}
            }
        }
        if self.boxes > MAX_RULE_BOXES {
            let problem = format!("the rules expand to more than {MAX_RULE_BOXES} matches");
            return Err(fault(
                rule.text,
                problem,
                "smaller sets, or a part of the file",
            ));
        }
        Ok(())
    }

    fn note_rule(&mut self, rule: &Rule<'t>) {
        let is_header = |selector: &str| selector == "ip6 nexthdr";
        let has_header = rule
            .statements
            .iter()
            .any(|statement| match &statement.action {
                StatementAction::Match { left_side, .. }
                | StatementAction::VerdictMap { key: left_side, .. } => {
                    any_selector(left_side, &is_header)
                }
                _ => false,
            });
        if has_header {
            self.builder.note(
                "`ip6 nexthdr` was read as the protocol of the packet: packets with extension \
                 headers differ"
                    .to_owned(),
            );
        }
    }

    /// Adds a note on the chains that no rule of a hook reaches.
    fn note_unreached(&mut self, table: &Table<'t>, chains: &[chains::Chain<'t>]) {
        let mut reached: Vec<bool> = table
            .chains
            .iter()
            .map(|chain| chain.base.is_some())
            .collect();
        let mut open: Vec<usize> = (0..chains.len()).filter(|&index| reached[index]).collect();
        while let Some(index) = open.pop() {
            for rule in &chains[index].rules {
                if let Target::Jump(target) | Target::Goto(target) = rule.target
                    && !reached[target]
                {
                    reached[target] = true;
                    open.push(target);
                }
            }
        }
        let unreached = table
            .chains
            .iter()
            .zip(reached)
            .filter(|(_, is_reached)| !is_reached);
        let names: Vec<String> = unreached.map(|(chain, _)| quoted(&chain.name)).collect();
        if names.is_empty() {
            return;
        }
        let listed = names[..names.len().min(MAX_LISTED_NAMES)].join(", ");
        let others = match names.len().saturating_sub(MAX_LISTED_NAMES) {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        self.builder.note(format!(
            "no chain with a hook leads to the chains {listed}{others} of the table {}: their \
             rules were left out",
            quoted(&table.name)
        ));
    }
}

/// Returns a rule of several lines on one line.
fn on_one_line(text: &str) -> String {
    match text.contains('\n') {
        true => text.split_whitespace().collect::<Vec<_>>().join(" "),
        false => text.to_owned(),
    }
}
