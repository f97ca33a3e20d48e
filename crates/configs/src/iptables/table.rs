//! A table: its chains become lists of rules.

use std::collections::HashMap;

use classyard_text::Fault;
use classyard_text::line::{counted, quoted};
use classyard_workload::diagnostic::ReadError;

use super::dump::{Line, Table, without_counters};
use super::matcher::Context;
use super::notes::shown;
use super::rule::{Rule, RuleReader, RuleTarget};
use super::words;
use crate::builder::{Builder, DENY, PERMIT, SourceId};
use crate::chains::{Chain, ChainRule, End, Target, add_chain};
use crate::packets::PacketSet;

/// The maximum number of boxes of the rules of all tables.
pub(super) const MAX_RULE_BOXES: usize = 1 << 20;

/// The policy of a built-in chain: its action, and the line that states it.
#[derive(Clone, Copy, Debug)]
struct ChainPolicy<'t> {
    action: &'static str,
    line: Line<'t>,
    hits: Option<u64>,
}

/// Reads the rules of a table.
pub(super) struct TableReader<'a, 'b, 't> {
    builder: &'a mut Builder<'b>,
    context: &'a mut Context<'t>,
    table: &'a Table<'t>,
    numbers: HashMap<&'t str, usize>,
    chains: Vec<Chain<'t>>,
    policies: Vec<Option<ChainPolicy<'t>>>,
}

/// Adds the rules of a table. `boxes_left` is the number of boxes that rules may still have.
pub(super) fn add<'t>(
    table: &Table<'t>,
    context: &mut Context<'t>,
    boxes_left: &mut usize,
    builder: &mut Builder<'_>,
) -> Result<(), ReadError> {
    let mut reader = TableReader {
        builder,
        context,
        table,
        numbers: HashMap::new(),
        chains: Vec::new(),
        policies: Vec::new(),
    };
    for &line in &table.chains {
        if let Err(fault) = reader.declare(line) {
            reader.builder.problem(fault, line.number, line.text);
        }
    }
    for &line in &table.rules {
        if let Err(fault) = reader.add_rule(line, boxes_left) {
            reader.builder.problem(fault, line.number, line.text);
        }
    }
    reader.note_unreached_chains();
    reader.add_lists()
}

impl<'t> TableReader<'_, '_, 't> {
    /// Returns the name of the list that a chain is.
    fn list_name(&self, chain: &str) -> String {
        match self.table.name {
            "filter" => chain.to_owned(),
            table => format!("{table}/{chain}"),
        }
    }

    /// Reads `:CHAIN POLICY [PACKETS:BYTES]` or `-N CHAIN`.
    fn declare(&mut self, line: Line<'t>) -> Result<(), Fault<'t>> {
        let text = line.text.trim_ascii();
        let (declaration, is_command) = match text.strip_prefix(':') {
            Some(declaration) => (declaration, false),
            None => (text.trim_start_matches(|c: char| !c.is_whitespace()), true),
        };
        let mut parts = declaration.split_ascii_whitespace();
        let name = parts
            .next()
            .ok_or_else(|| Fault::missing(line.text, "the name of a chain"))?;
        let policy = match is_command {
            true => "-",
            false => parts
                .next()
                .ok_or_else(|| Fault::missing(line.text, "ACCEPT, DROP or `-`"))?,
        };
        let hits = parts.next().map(counters).transpose()?;
        if let Some(part) = parts.next() {
            return Err(Fault::new(part, quoted(part), "the end of the line"));
        }
        let action = match policy {
            "-" => None,
            "ACCEPT" => Some(PERMIT),
            "DROP" => Some(DENY),
            _ => {
                return Err(Fault::new(
                    policy,
                    format!("the policy {}", quoted(policy)),
                    "ACCEPT, DROP or `-`",
                ));
            }
        };
        if self.numbers.contains_key(name) {
            return Err(Fault::new(
                name,
                format!("a second chain {}", quoted(name)),
                "one line `:CHAIN POLICY` for each chain",
            ));
        }
        self.numbers.insert(name, self.chains.len());
        self.chains.push(Chain {
            name: name.to_owned(),
            rules: Vec::new(),
        });
        self.policies
            .push(action.map(|action| ChainPolicy { action, line, hits }));
        Ok(())
    }

    /// Reads `[PACKETS:BYTES] -A CHAIN ...`.
    fn add_rule(&mut self, line: Line<'t>, boxes_left: &mut usize) -> Result<(), Fault<'t>> {
        let whole = line.text.trim_ascii();
        let statement = without_counters(whole);
        let hits = whole
            .strip_suffix(statement)
            .map(str::trim_ascii)
            .filter(|counters| !counters.is_empty())
            .map(counters)
            .transpose()?;
        let words = words::split(statement)?;
        let Some(chain) = words.get(1) else {
            return Err(Fault::missing(line.text, "the name of a chain"));
        };
        let name = chain.slice();
        let &number = self.numbers.get(name).ok_or_else(|| {
            Fault::new(
                name,
                format!(
                    "the chain {}, which the table does not declare",
                    quoted(name)
                ),
                "a line `:CHAIN POLICY` for each chain",
            )
        })?;
        let list = self.list_name(name);
        let source = self
            .builder
            .source(line.number, line.text, statement, &list);
        self.builder.source_mut(source).hits = hits;
        let mut reader = RuleReader {
            builder: self.builder,
            context: self.context,
            family: self.table.family,
        };
        let rule = reader.read(statement, &words[2..], source)?;
        let others = rule
            .others
            .as_ref()
            .map_or(0, |others| others.boxes().len());
        let boxes = rule.packets.boxes().len() + others;
        *boxes_left = boxes_left.checked_sub(boxes).ok_or_else(|| {
            Fault::new(
                statement,
                format!("the rules expand to more than {MAX_RULE_BOXES} matches"),
                "smaller sets, or fewer rules with sets",
            )
        })?;
        self.builder
            .source_mut(source)
            .comment
            .clone_from(&rule.comment);
        self.push_rule((number, name), line, source, rule)
    }

    /// Adds a rule to its chain, with a number and a name.
    fn push_rule(
        &mut self,
        (number, name): (usize, &'t str),
        line: Line<'t>,
        source: SourceId,
        rule: Rule<'t>,
    ) -> Result<(), Fault<'t>> {
        // A built-in chain ends with its policy. So its rules need not take packets from
        // the rules after them, which may need many boxes.
        let end = match (self.policies[number], rule.others) {
            (Some(policy), _) => Target::Verdict(policy.action.to_owned()),
            (None, Some(others)) => Target::Leave { others },
            (None, None) => Target::Return,
        };
        let part = match rule.target {
            RuleTarget::Jump(chain) | RuleTarget::Goto(chain) => chain,
            _ => name,
        };
        let targets = match rule.target {
            RuleTarget::Verdict(action) => vec![Target::Verdict(action)],
            RuleTarget::Continue => vec![Target::Continue],
            RuleTarget::Return => vec![end],
            RuleTarget::Jump(name) => vec![Target::Jump(self.chain(name)?)],
            RuleTarget::Goto(name) => vec![Target::Jump(self.chain(name)?), end],
        };
        for (index, target) in targets.into_iter().enumerate() {
            let source = match index {
                0 => source,
                _ => self.end_of_goto(number, line),
            };
            self.chains[number].rules.push(ChainRule {
                source,
                line: (line.number, line.text),
                part,
                packets: rule.packets.clone(),
                target,
            });
        }
        Ok(())
    }

    /// Adds the statement that decides packets which come back from a goto of a built-in
    /// chain: the policy of the chain.
    fn end_of_goto(&mut self, number: usize, line: Line<'t>) -> SourceId {
        let list = self.list_name(&self.chains[number].name);
        let statement = line.text.trim_ascii();
        let source = self
            .builder
            .source(line.number, line.text, statement, &list);
        let rule = self.builder.source_mut(source);
        (rule.is_implied, rule.is_default) = (true, true);
        source
    }

    /// Returns the user chain with this name.
    fn chain(&self, name: &'t str) -> Result<usize, Fault<'t>> {
        match self.numbers.get(name) {
            None => Err(Fault::unsupported(
                name,
                format!("the target {}", quoted(name)),
                "a target of iptables, or a chain that the table declares",
            )),
            Some(&number) if self.policies[number].is_some() => Err(Fault::new(
                name,
                format!("a jump to the built-in chain {}", quoted(name)),
                "a chain whose policy is `-`",
            )),
            Some(&number) => Ok(number),
        }
    }

    /// Notes the user chains that no rule of a built-in chain reaches.
    fn note_unreached_chains(&mut self) {
        let mut is_reached: Vec<bool> = self.policies.iter().map(Option::is_some).collect();
        let mut open: Vec<usize> = (0..self.chains.len()).filter(|&n| is_reached[n]).collect();
        while let Some(number) = open.pop() {
            for rule in &self.chains[number].rules {
                if let Target::Jump(chain) | Target::Goto(chain) = rule.target
                    && !std::mem::replace(&mut is_reached[chain], true)
                {
                    open.push(chain);
                }
            }
        }
        let chains = self.chains.iter().zip(is_reached);
        let names: Vec<String> = chains
            .filter(|(_, is_reached)| !is_reached)
            .map(|(chain, _)| self.list_name(&chain.name))
            .collect();
        if names.is_empty() {
            return;
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.builder.note(format!(
            "no rule reaches {}: {}",
            counted(names.len(), "chain"),
            shown(&names)
        ));
    }

    /// Adds the built-in chains, each with its policy at its end.
    fn add_lists(self) -> Result<(), ReadError> {
        let of_family = PacketSet::of_families(self.table.family);
        for (number, policy) in self.policies.iter().enumerate() {
            let Some(policy) = policy else {
                continue;
            };
            let list = self.list_name(&self.chains[number].name);
            let line = policy.line;
            let packets = self.builder.list(&list);
            let packets = packets.map_err(|fault| fault.found().to_owned());
            let packets = match packets {
                Ok(packets) => packets.intersect(&of_family).expect("one box"),
                Err(message) => {
                    let part = line.text.trim_ascii();
                    let fault = Fault::new(part, message, "another name for one of the chains");
                    self.builder.problem(fault, line.number, line.text);
                    continue;
                }
            };
            let statement = line.text.trim_ascii();
            let source = self
                .builder
                .source(line.number, line.text, statement, &list);
            let statement = self.builder.source_mut(source);
            (statement.hits, statement.is_default) = (policy.hits, true);
            let action = policy.action;
            let end = End { source, action };
            add_chain(self.builder, &self.chains, (number, packets), end)?;
        }
        Ok(())
    }
}

/// Returns the number of packets of `[PACKETS:BYTES]`.
fn counters(text: &str) -> Result<u64, Fault<'_>> {
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let parts = inner.and_then(|inner| inner.split_once(':'));
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<u64>().ok(),
        false => None,
    };
    let packets =
        parts.and_then(|(packets, bytes)| number(packets).filter(|_| number(bytes).is_some()));
    packets.ok_or_else(|| Fault::new(text, quoted(text), "counters as `[PACKETS:BYTES]`"))
}
