//! Expressions of rules in JSON.

use std::borrow::Cow;

use super::value::{Json, JsonKind};
use crate::nftables::build::queue;
use crate::nftables::show;
use crate::nftables::tree::{
    Element, ElementData, Expression, ExpressionKind, Operator, Parsed, Verdict, raw_selector,
};

/// Reads an expression. The reader of JSON limits the depth of values.
pub(super) fn read<'t>(value: &Json<'t>) -> Parsed<'t, Expression<'t>> {
    let kind = match &value.kind {
        JsonKind::String(word) => string(word),
        JsonKind::Array(parts) => ExpressionKind::List(read_all(parts)?),
        JsonKind::Object(_) => object(value)?,
        _ => match value.as_word() {
            Some(word) => ExpressionKind::Word(Cow::Owned(word)),
            None => return Err(value.unexpected("an expression")),
        },
    };
    Ok(Expression {
        text: value.text,
        kind,
    })
}

fn string<'t>(word: &Cow<'t, str>) -> ExpressionKind<'t> {
    match word.strip_prefix('@') {
        Some(name) => ExpressionKind::SetReference(name.to_owned()),
        None if word == "*" => ExpressionKind::Any,
        None => ExpressionKind::Word(word.clone()),
    }
}

fn read_all<'t>(parts: &[Json<'t>]) -> Parsed<'t, Vec<Expression<'t>>> {
    parts.iter().map(read).collect()
}

fn object<'t>(value: &Json<'t>) -> Parsed<'t, ExpressionKind<'t>> {
    let Some((kind, inner)) = value.single() else {
        return Err(value.unexpected("an expression: an object with one key"));
    };
    if let Some(operator) = Operator::from_text(kind) {
        return binary(operator, inner);
    }
    Ok(match kind {
        "concat" => ExpressionKind::Concatenation(read_all(inner.elements())?),
        "set" => ExpressionKind::Set(elements(inner)?),
        "range" => match inner.elements() {
            [low, high] => ExpressionKind::Range(Box::new([read(low)?, read(high)?])),
            _ => return Err(inner.unexpected("two ends of a range")),
        },
        "prefix" => {
            let address = inner.need_word("addr")?;
            let length = inner.need_word("len")?;
            ExpressionKind::Word(Cow::Owned(format!("{address}/{length}")))
        }
        "elem" => read(inner.need("val")?)?.kind,
        "map" => {
            let parts = [read(inner.need("key")?)?, read(inner.need("data")?)?];
            ExpressionKind::Map(Box::new(parts))
        }
        _ => ExpressionKind::Selector(selector(kind, inner)?),
    })
}

/// Reads an operator. It may have more than two operands.
fn binary<'t>(operator: Operator, operands: &Json<'t>) -> Parsed<'t, ExpressionKind<'t>> {
    let mut parts = read_all(operands.elements())?.into_iter();
    let Some(mut left_side) = parts.next() else {
        return Err(operands.unexpected("operands"));
    };
    if parts.len() > super::super::MAX_OPERANDS {
        return Err(operands.unexpected("fewer operands"));
    }
    for right_side in parts {
        left_side = Expression {
            text: operands.text,
            kind: ExpressionKind::Binary(operator, Box::new([left_side, right_side])),
        };
    }
    Ok(left_side.kind)
}

/// Reads the elements of a set or map.
pub(super) fn elements<'t>(value: &Json<'t>) -> Parsed<'t, Vec<Element<'t>>> {
    value.elements().iter().map(element).collect()
}

fn element<'t>(value: &Json<'t>) -> Parsed<'t, Element<'t>> {
    let (key, data) = match &value.kind {
        JsonKind::Array(pair) if pair.len() == 2 => (&pair[0], Some(&pair[1])),
        _ => (value, None),
    };
    let properties = key.get("elem");
    let is_limited = properties.is_some_and(|properties| {
        let limits = ["limit", "quota", "ct count"];
        limits.iter().any(|limit| properties.get(limit).is_some())
    });
    let data = match data {
        None => ElementData::None,
        Some(data) => match verdict(data) {
            Some(verdict) => ElementData::Verdict(verdict?),
            None => ElementData::Value(read(data)?),
        },
    };
    Ok(Element {
        key: read(key)?,
        data,
        is_limited,
    })
}

/// Returns the words of a property of packets, as the text form of a ruleset has them.
fn selector<'t>(kind: &str, value: &Json<'t>) -> Parsed<'t, String> {
    let words = |keys: &[&str]| {
        let words: Vec<String> = keys.iter().filter_map(|key| value.word(key)).collect();
        match words.is_empty() {
            true => Err(value.unexpected("a property of packets")),
            false => Ok(words.join(" ")),
        }
    };
    Ok(match kind {
        "payload" if value.get("base").is_some() => {
            let base = value.need_word("base")?;
            let offset = value.need_word("offset")?;
            raw_selector(&format!("@{base},{offset},{}", value.need_word("len")?))
        }
        "payload" => format!(
            "{} {}",
            value.need_word("protocol")?,
            value.need_word("field")?
        ),
        "meta" => format!("meta {}", words(&["key"])?),
        "ct" => format!("ct {}", words(&["dir", "key"])?),
        "rt" => format!("rt {}", words(&["family", "key"])?),
        "socket" => format!("socket {}", words(&["key"])?),
        "osf" => format!("osf {}", words(&["key"])?),
        "exthdr" if value.get("field").is_none() => format!("exthdr {}", words(&["name"])?),
        "exthdr" => words(&["name", "field"])?,
        "tcp option" | "ip option" | "sctp chunk" | "dccp option" => {
            format!("{kind} {}", words(&["name", "field"])?)
        }
        "fib" => {
            let flags = value.get("flags").map_or(&[][..], |flags| flags.elements());
            let flags: Vec<&str> = flags.iter().filter_map(Json::as_str).collect();
            format!("fib {} {}", flags.join(" . "), words(&["result"])?)
        }
        "numgen" => generator(&format!("numgen {}", words(&["mode"])?), value)?,
        "symhash" => generator("symhash", value)?,
        "jhash" => {
            let key = show::expression(&read(value.need("expr")?)?);
            generator(&format!("jhash {key}"), value)?
        }
        "ipsec" => format!("ipsec {}", words(&["dir", "family", "key"])?),
        "tunnel" => format!("tunnel {}", words(&["key"])?),
        _ => return Err(value.unexpected("an expression that this program has")),
    })
}

fn generator<'t>(start: &str, value: &Json<'t>) -> Parsed<'t, String> {
    let mut shown = format!("{start} mod {}", value.need_word("mod")?);
    for option in ["seed", "offset"] {
        if let Some(number) = value.word(option).filter(|number| number != "0") {
            shown = format!("{shown} {option} {number}");
        }
    }
    Ok(shown)
}

/// Reads a verdict. `None` if the value is not one.
pub(super) fn verdict<'t>(value: &Json<'t>) -> Option<Parsed<'t, Verdict>> {
    let (kind, inner) = value.single()?;
    let target = || match inner.as_word() {
        Some(name) => Ok(name),
        None => inner.need_word("target"),
    };
    Some(match kind {
        "accept" => Ok(Verdict::Accept),
        "drop" => Ok(Verdict::Drop),
        "continue" => Ok(Verdict::Continue),
        "return" => Ok(Verdict::Return),
        "jump" => target().map(Verdict::Jump),
        "goto" => target().map(Verdict::Goto),
        "queue" => read_queue(inner).map(Verdict::Queue),
        _ => return None,
    })
}

fn read_queue<'t>(value: &Json<'t>) -> Parsed<'t, String> {
    let number = match value.get("num") {
        Some(number) => Some(show::expression(&read(number)?)),
        None => None,
    };
    Ok(queue(&flags(value), number))
}

pub(super) fn flags(value: &Json<'_>) -> Vec<String> {
    let flags = value.get("flags").map_or(&[][..], |flags| flags.elements());
    flags.iter().filter_map(Json::as_word).collect()
}
