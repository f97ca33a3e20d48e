//! Statements of rules in JSON.

use super::expression::{self, flags, verdict};
use super::value::{Json, JsonKind};
use crate::nftables::build::{address_family, change_of_field, change_of_set, meter, reject};
use crate::nftables::show;
use crate::nftables::tree::{
    Expression, Family, Parsed, RejectKind, Relation, Statement, StatementAction, unsupported,
};

/// Reads a statement.
pub(super) fn read<'t>(value: &Json<'t>) -> Parsed<'t, Statement<'t>> {
    let Some((kind, inner)) = value.single() else {
        // `nft` prints a jump to a chain without a name as a string.
        let is_jump = value
            .as_str()
            .is_some_and(|text| text.starts_with("jump {") || text.starts_with("goto {"));
        if is_jump {
            return Err(unsupported(value.text, "chains without a name"));
        }
        return Err(value.unexpected("a statement: an object with one key"));
    };
    let action = match verdict(value) {
        Some(verdict) => StatementAction::Verdict(verdict?),
        None => action(kind, inner)?,
    };
    Ok(Statement {
        text: value.text,
        action,
    })
}

/// Reads a statement that is not a verdict.
fn action<'t>(kind: &str, value: &Json<'t>) -> Parsed<'t, StatementAction<'t>> {
    let expression = |key| expression::read(value.need(key)?);
    Ok(match kind {
        "counter" | "limit" | "quota" if value.get("map").is_some() => {
            StatementAction::Unsupported("maps of counters, limits or quotas".to_owned())
        }
        "match" => {
            let operator = value.need("op")?;
            let relation = operator.as_str().and_then(Relation::from_operator);
            StatementAction::Match {
                left_side: expression("left")?,
                relation: relation
                    .ok_or_else(|| operator.unexpected("an operator, such as `==`"))?,
                right_side: expression("right")?,
            }
        }
        "vmap" => StatementAction::VerdictMap {
            key: expression("key")?,
            map: expression("data")?,
        },
        "counter" => counter(value)?,
        "mangle" => change_of_field(expression("key")?, expression("value")?),
        "log" | "notrack" | "last" | "ct helper" | "ct timeout" | "ct expectation" | "secmark" => {
            StatementAction::Pass(kind.to_owned())
        }
        "limit" | "quota" | "ct count" => {
            StatementAction::StatefulCondition(limit(kind, value)?, None)
        }
        "set" => {
            let set = value.need_word("set")?;
            let set = set.strip_prefix('@').unwrap_or(&set);
            let operation = value.need_word("op")?;
            change_of_set(&operation, set, expression("elem")?, &limits(value)?)
        }
        "meter" => meter(
            &value.need_word("name")?,
            expression("key")?,
            &limits(value)?,
        ),
        "reject" => read_reject(value)?,
        "dnat" | "snat" | "masquerade" | "redirect" => translation(kind, value)?,
        "tproxy" => {
            let (address, port) = target(value)?;
            let shown = show::translation(kind, address.as_ref(), port.as_ref(), &[]);
            StatementAction::StatefulCondition(shown, None)
        }
        _ => StatementAction::Unsupported(format!("the statement `{kind}`")),
    })
}

fn counter<'t>(value: &Json<'t>) -> Parsed<'t, StatementAction<'t>> {
    if let Some(name) = value.as_str() {
        return Ok(StatementAction::Pass(format!("counter name {name}")));
    }
    let packets = match value.get("packets") {
        None => 0,
        Some(packets) => match &packets.kind {
            JsonKind::Number(number) => number
                .parse()
                .map_err(|_| packets.unexpected("a number of packets"))?,
            _ => return Err(packets.unexpected("a number of packets")),
        },
    };
    Ok(StatementAction::Counter(packets))
}

/// Returns a limit, a quota or a count of connections as text.
fn limit<'t>(kind: &str, value: &Json<'t>) -> Parsed<'t, String> {
    if let Some(name) = value.as_str() {
        return Ok(format!("{kind} name {name}"));
    }
    let is_over = value.word("inv").is_some_and(|word| word == "exists");
    let over = if is_over { "over " } else { "" };
    match kind {
        "limit" => {
            let rate = value.need_word("rate")?;
            let per = value.word("per").unwrap_or_else(|| "second".to_owned());
            let (rate, unit) = match value.word("rate_unit") {
                Some(unit) if unit != "packets" => (format!("{rate} {unit}/{per}"), "bytes"),
                _ => (format!("{rate}/{per}"), "packets"),
            };
            let unit = value.word("burst_unit").unwrap_or_else(|| unit.to_owned());
            let burst = match value.word("burst") {
                Some(burst) => format!("{burst} {unit}"),
                None if unit == "packets" => "5 packets".to_owned(),
                None => String::new(),
            };
            Ok(match burst.is_empty() || burst == "0 bytes" {
                true => format!("limit rate {over}{rate}"),
                false => format!("limit rate {over}{rate} burst {burst}"),
            })
        }
        "quota" => {
            let unit = value.word("val_unit").unwrap_or_else(|| "bytes".to_owned());
            Ok(format!("quota {over}{} {unit}", value.need_word("val")?))
        }
        _ => Ok(format!("ct count {over}{}", value.need_word("val")?)),
    }
}

/// Returns the limits of an element that a rule adds, as text.
fn limits<'t>(value: &Json<'t>) -> Parsed<'t, String> {
    let statements = value.get("stmt").map_or(&[][..], |list| list.elements());
    let mut texts = Vec::new();
    for statement in statements {
        if let StatementAction::StatefulCondition(text, _) = read(statement)?.action {
            texts.push(text);
        }
    }
    Ok(texts.join(" "))
}

fn read_reject<'t>(value: &Json<'t>) -> Parsed<'t, StatementAction<'t>> {
    let Some(kind) = value.word("type") else {
        return Ok(StatementAction::Reject {
            shown: String::new(),
            kind: RejectKind::Any,
        });
    };
    let action = match &kind[..] {
        "tcp reset" => reject("tcp", "reset"),
        protocol => reject(protocol, &value.word("expr").unwrap_or_default()),
    };
    action.ok_or_else(|| value.unexpected("`tcp reset`, `icmp`, `icmpv6` or `icmpx`"))
}

type Target<'t> = (Option<Expression<'t>>, Option<Expression<'t>>);

/// Reads the new address and port of a translation.
fn target<'t>(value: &Json<'t>) -> Parsed<'t, Target<'t>> {
    let read = |key| value.get(key).map(expression::read).transpose();
    Ok((read("addr")?, read("port")?))
}

fn translation<'t>(kind: &str, value: &Json<'t>) -> Parsed<'t, StatementAction<'t>> {
    let (address, port) = target(value)?;
    let family = value
        .word("family")
        .as_deref()
        .and_then(Family::from_keyword);
    let family = family.or_else(|| {
        let address = address.as_ref()?;
        address_family(address)
    });
    let action = show::translation(kind, address.as_ref(), port.as_ref(), &flags(value));
    Ok(StatementAction::Translate {
        action,
        family,
        target: address.into_iter().chain(port).collect(),
    })
}
