//! The packets of a rule, and what happens to them.

use super::compared::Compared;
use super::field::{fragments, without_ports};
use super::matching::{MAX_NEGATED_ELEMENTS, Matcher, bounded};
use crate::builder::{DENY, PERMIT, REJECT};
use crate::nftables::show;
use crate::nftables::tree::{
    Element, ElementData, Expression, ExpressionKind, Family, Parsed, RejectKind, Relation, Rule,
    Statement, StatementAction, Verdict, fault, unsupported,
};
use crate::packets::{Families, Field, PacketSet, Values};

/// Returns the packets for which a condition holds that no field expresses. The arguments
/// are the part of the file for messages, the condition, and true if the condition depends
/// on more than the packet.
pub(super) type AddCondition<'a, 't> =
    &'a mut dyn FnMut(&'t str, &str, bool) -> Parsed<'t, PacketSet>;

/// The result of a rule for some packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Decide(String),
    Jump(String),
    Goto(String),
    Return,
}

/// The effect of a rule.
#[derive(Debug, Default)]
pub(super) struct Effect<'t> {
    /// Packets, their outcome and the statement. Packets without an outcome continue with
    /// the next rule.
    pub(super) outcomes: Vec<(PacketSet, Outcome, &'t str)>,
    /// The packets that the rule has counted after all its comparisons.
    pub(super) hits: Option<u64>,
}

/// Returns the effect of a rule on the packets of its table.
pub(super) fn effect<'t>(
    matcher: Matcher<'_, 't>,
    packets: PacketSet,
    rule: &Rule<'t>,
    add_condition: AddCondition<'_, 't>,
) -> Parsed<'t, Effect<'t>> {
    let mut reader = RuleReader {
        matcher,
        packets,
        effect: Effect::default(),
        is_decided: false,
        add_condition,
    };
    for statement in &rule.statements {
        if reader.is_decided {
            let problem = "a statement after the decision of the rule";
            return Err(fault(statement.text, problem, "the decision at the end"));
        }
        reader.read(statement)?;
    }
    Ok(reader.effect)
}

struct RuleReader<'a, 't> {
    matcher: Matcher<'a, 't>,
    /// The packets that reach the next statement.
    packets: PacketSet,
    effect: Effect<'t>,
    is_decided: bool,
    add_condition: AddCondition<'a, 't>,
}

impl<'t> RuleReader<'_, 't> {
    fn read(&mut self, statement: &Statement<'t>) -> Parsed<'t, ()> {
        let text = statement.text;
        match &statement.action {
            StatementAction::Match {
                left_side,
                relation,
                right_side,
            } => {
                let packets = self.compare(text, left_side, *relation, right_side)?;
                self.keep_at(left_side.text, &packets)
            }
            StatementAction::Verdict(verdict) => {
                self.decide(text, verdict);
                Ok(())
            }
            StatementAction::VerdictMap { key, map } => self.read_map(text, key, map),
            StatementAction::Counter(packets) => {
                self.effect.hits = Some(*packets);
                Ok(())
            }
            StatementAction::Pass(_) => Ok(()),
            StatementAction::Change(field, value) => {
                self.keep_readable(text, field)?;
                self.keep_readable(text, value)
            }
            StatementAction::ChangeSet {
                key,
                shown,
                is_limited,
                ..
            } => {
                self.keep_readable(text, key)?;
                match is_limited {
                    true => self.stateful(text, shown),
                    false => Ok(()),
                }
            }
            StatementAction::Reject { kind, .. } => {
                self.keep_at(text, &rejected_packets(*kind))?;
                self.push(text, Outcome::Decide(REJECT.to_owned()));
                Ok(())
            }
            StatementAction::Translate {
                action,
                family,
                target,
            } => {
                self.keep_at(text, &translated_packets(*family))?;
                for expression in target {
                    self.keep_readable(text, expression)?;
                }
                self.push(text, Outcome::Decide(action.clone()));
                Ok(())
            }
            StatementAction::StatefulCondition(condition, key) => {
                if let Some(key) = key {
                    self.keep_readable(text, key)?;
                }
                self.stateful(text, condition)
            }
            StatementAction::Unsupported(feature) => Err(unsupported(text, feature.clone())),
        }
    }

    /// Keeps the packets that are also in a set. A counter before it does not count the
    /// packets of the rule.
    fn keep_at(&mut self, text: &'t str, packets: &PacketSet) -> Parsed<'t, ()> {
        let common = self.packets.intersect(packets);
        let common = common.map_err(|error| fault(text, error.to_string(), "smaller sets"))?;
        if common != self.packets {
            self.effect.hits = None;
        }
        self.packets = common;
        Ok(())
    }

    /// Keeps the packets for which the kernel can compute an expression: packets with its
    /// fields, and with values of its maps.
    fn keep_readable(&mut self, text: &'t str, expression: &Expression<'t>) -> Parsed<'t, ()> {
        let packets = match &expression.kind {
            ExpressionKind::Map(parts) => {
                let [key, map] = &**parts;
                self.compare(text, key, Relation::Equal, map)?
            }
            _ => self.matcher.domain(expression)?,
        };
        self.keep_at(text, &packets)
    }

    fn stateful(&mut self, text: &'t str, condition: &str) -> Parsed<'t, ()> {
        let packets = (self.add_condition)(text, condition, true)?;
        self.keep_at(text, &packets)
    }

    /// Gives the packets an outcome. No packets are left for the next statement.
    fn push(&mut self, text: &'t str, outcome: Outcome) {
        let packets = std::mem::replace(&mut self.packets, PacketSet::none());
        self.effect.outcomes.push((packets, outcome, text));
        self.is_decided = true;
    }

    fn decide(&mut self, text: &'t str, verdict: &Verdict) {
        if let Some(outcome) = outcome(verdict) {
            self.push(text, outcome);
        }
    }

    /// Returns the packets of a comparison. If no field expresses it, a condition does.
    fn compare(
        &mut self,
        text: &'t str,
        left_side: &Expression<'t>,
        relation: Relation,
        right_side: &Expression<'t>,
    ) -> Parsed<'t, PacketSet> {
        let compared = self.matcher.compare(left_side, relation, right_side)?;
        let shown = || show::comparison(left_side, relation, right_side);
        let is_stateful = is_stateful(left_side);
        match compared {
            Compared::Unknown(domain) => {
                let packets = (self.add_condition)(text, &shown(), is_stateful)?;
                bounded(left_side, domain.intersect(&packets))
            }
            Compared::Packets(packets) if reads_any_header(left_side) => {
                // The bytes of headers without ports are unknown.
                let others = bounded(left_side, without_ports())?;
                let others = bounded(left_side, others.intersect(&fragments(0, 1)))?;
                let others = bounded(left_side, others.intersect(&self.packets))?;
                if others.is_empty() {
                    return Ok(packets);
                }
                let condition = (self.add_condition)(text, &shown(), is_stateful)?;
                let others = bounded(left_side, others.intersect(&condition))?;
                bounded(left_side, packets.union(others))
            }
            Compared::Packets(packets) => Ok(packets),
        }
    }

    /// Reads `key vmap { 22 : accept, 23 : jump other }`.
    fn read_map(
        &mut self,
        text: &'t str,
        key: &Expression<'t>,
        map: &Expression<'t>,
    ) -> Parsed<'t, ()> {
        if let ExpressionKind::SetReference(name) = &map.kind
            && self.matcher.named_set(map, name)?.is_changing
        {
            return Err(unsupported(
                text,
                "verdict maps that change while the firewall runs",
            ));
        }
        let elements = self.matcher.elements(map)?;
        let is_catch_all = |element: &&Element<'t>| matches!(element.key.kind, ExpressionKind::Any);
        let mut outcomes = Vec::new();
        let mut named = PacketSet::none();
        for element in elements.iter().filter(|element| !is_catch_all(element)) {
            let packets = self.compare(text, key, Relation::Equal, &element.key)?;
            named = bounded(key, named.union(packets.clone()))?;
            outcomes.push((packets, element));
        }
        if let Some(element) = elements.iter().find(is_catch_all) {
            if outcomes.len() > MAX_NEGATED_ELEMENTS {
                let feature = format!("`*` after more than {MAX_NEGATED_ELEMENTS} elements");
                return Err(unsupported(text, feature));
            }
            let domain = self.matcher.domain(key)?;
            outcomes.push((bounded(key, domain.subtract(&named))?, element));
        }
        let mut continuing = PacketSet::none();
        for (packets, element) in outcomes {
            let ElementData::Verdict(verdict) = &element.data else {
                return Err(fault(
                    element.key.text,
                    "an element without a verdict",
                    "a verdict",
                ));
            };
            let packets = bounded(key, self.packets.intersect(&packets))?;
            match outcome(verdict) {
                Some(outcome) => self.effect.outcomes.push((packets, outcome, text)),
                None => continuing = bounded(key, continuing.union(packets))?,
            }
        }
        self.effect.hits = None;
        self.packets = continuing;
        Ok(())
    }
}

/// Returns the packets that a kind of errors can be sent for.
fn rejected_packets(kind: RejectKind) -> PacketSet {
    match kind {
        RejectKind::Any => PacketSet::all(),
        RejectKind::TcpReset => PacketSet::of(Field::Protocol, [Values::number(6_u8)]),
        RejectKind::Icmp => PacketSet::of_families(Families::IPV4),
        RejectKind::Icmpv6 => PacketSet::of_families(Families::IPV6),
    }
}

/// Returns the packets that can get an address of a family.
fn translated_packets(family: Option<Family>) -> PacketSet {
    match family {
        Some(Family::Ip) => PacketSet::of_families(Families::IPV4),
        Some(Family::Ip6) => PacketSet::of_families(Families::IPV6),
        _ => PacketSet::all(),
    }
}

/// Returns what a verdict does. `None` if the packet continues.
fn outcome(verdict: &Verdict) -> Option<Outcome> {
    Some(match verdict {
        Verdict::Accept => Outcome::Decide(PERMIT.to_owned()),
        Verdict::Drop => Outcome::Decide(DENY.to_owned()),
        Verdict::Queue(action) => Outcome::Decide(action.clone()),
        Verdict::Return => Outcome::Return,
        Verdict::Jump(chain) => Outcome::Jump(chain.clone()),
        Verdict::Goto(chain) => Outcome::Goto(chain.clone()),
        Verdict::Continue => return None,
    })
}

/// True if the value of an expression depends on more than the packet.
fn is_stateful(left_side: &Expression<'_>) -> bool {
    let starts = [
        "numgen",
        "meta time",
        "meta hour",
        "meta day",
        "meta random",
    ];
    any_selector(left_side, &|selector| {
        starts.iter().any(|start| selector.starts_with(start))
    })
}

/// True if an expression has ports of any header, and no protocol next to them.
fn reads_any_header(left_side: &Expression<'_>) -> bool {
    let protocols = ["meta l4proto", "ip protocol", "ip6 nexthdr"];
    any_selector(left_side, &|selector| selector.starts_with("th "))
        && !any_selector(left_side, &|selector| protocols.contains(&selector))
}

/// True if `test` holds for a selector of an expression.
pub(super) fn any_selector(expression: &Expression<'_>, test: &dyn Fn(&str) -> bool) -> bool {
    let any = |parts: &[Expression<'_>]| parts.iter().any(|part| any_selector(part, test));
    match &expression.kind {
        ExpressionKind::Selector(selector) => test(selector),
        ExpressionKind::Concatenation(parts) => any(parts),
        ExpressionKind::Binary(_, operands) => any(&operands[..]),
        _ => false,
    }
}
