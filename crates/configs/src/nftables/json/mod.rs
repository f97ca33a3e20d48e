//! Reads the JSON of a ruleset: what `nft -j list ruleset` prints, and commands in JSON.

mod expression;
mod statement;
mod value;

use classyard_text::Fault;
use classyard_text::line::quoted;

use self::value::{Json, JsonKind, parse};
use super::tree::{
    Base, Family, NamedSet, Parsed, Policy, Rule, Ruleset, Table, fault, unsupported,
};

/// Returns the tables of a JSON text, and its problems.
pub(super) fn read(text: &str) -> (Ruleset<'_>, Vec<Fault<'_>>) {
    let mut ruleset = Ruleset::default();
    let root = match parse(text) {
        Ok(root) => root,
        Err(fault) => return (ruleset, vec![fault]),
    };
    let mut faults = Vec::new();
    match root.need("nftables") {
        Ok(list) => {
            for item in list.elements() {
                if let Err(fault) = read_item(item, &mut ruleset) {
                    faults.push(fault);
                }
            }
        }
        Err(fault) => faults.push(fault),
    }
    (ruleset, faults)
}

/// True if a text starts like the JSON of a ruleset.
pub(super) fn is_format(text: &str) -> bool {
    let key = text.trim_start().strip_prefix('{').map(str::trim_start);
    key.is_some_and(|key| key.starts_with("\"nftables\""))
}

fn read_item<'t>(item: &Json<'t>, ruleset: &mut Ruleset<'t>) -> Parsed<'t, ()> {
    let Some((kind, value)) = item.single() else {
        return Err(item.unexpected("an object with one key, such as `rule`"));
    };
    match kind {
        "metainfo" => Ok(()),
        "add" | "create" => read_object(value, ruleset, false),
        "insert" => read_object(value, ruleset, true),
        "flush" => flush(value, ruleset),
        "delete" | "destroy" => delete(kind, value, ruleset),
        "replace" | "rename" | "list" | "reset" => {
            Err(unsupported(item.text, format!("the command `{kind}`")))
        }
        _ => read_object(item, ruleset, false),
    }
}

fn read_object<'t>(
    object: &Json<'t>,
    ruleset: &mut Ruleset<'t>,
    is_inserted: bool,
) -> Parsed<'t, ()> {
    let Some((kind, value)) = object.single() else {
        return Err(object.unexpected("an object with one key, such as `rule`"));
    };
    match kind {
        "table" => {
            let family = family_of(value)?;
            let table = ruleset.table(family, &value.need_word("name")?, value.text);
            let flags = value.get("flags").map_or(&[][..], |flags| flags.elements());
            table.is_dormant |= flags.iter().any(|flag| flag.as_str() == Some("dormant"));
            Ok(())
        }
        "chain" => read_chain(value, table_of(value, ruleset)?),
        "set" | "map" => read_set(value, table_of(value, ruleset)?),
        "meter" => {
            let name = value.need_word("name")?;
            table_of(value, ruleset)?.set(&name).is_changing = true;
            Ok(())
        }
        "element" => {
            let elements = expression::elements(value.need("elem")?)?;
            let name = value.need_word("name")?;
            let set = table_of(value, ruleset)?.set(&name);
            set.elements.extend(elements);
            Ok(())
        }
        "rule" => {
            let rule = read_rule(value)?;
            let name = value.need_word("chain")?;
            let rules = &mut table_of(value, ruleset)?.chain(&name, value.text).rules;
            match is_inserted {
                true => rules.push_front(rule),
                false => rules.push_back(rule),
            }
            Ok(())
        }
        "counter" | "quota" | "limit" | "flowtable" | "ct helper" | "ct timeout"
        | "ct expectation" | "secmark" | "synproxy" | "tunnel" => Ok(()),
        _ => Err(fault(
            object.text,
            format!("an object {}", quoted(kind)),
            "`table`, `chain`, `set`, `map`, `element` or `rule`",
        )),
    }
}

fn family_of<'t>(object: &Json<'t>) -> Parsed<'t, Family> {
    let family = object.need_word("family")?;
    let expected = "`ip`, `ip6`, `inet`, `arp`, `bridge` or `netdev`";
    Family::from_keyword(&family).ok_or_else(|| {
        fault(
            object.text,
            format!("the family {}", quoted(&family)),
            expected,
        )
    })
}

fn table_of<'a, 't>(
    object: &Json<'t>,
    ruleset: &'a mut Ruleset<'t>,
) -> Parsed<'t, &'a mut Table<'t>> {
    let family = family_of(object)?;
    let name = object.need_word("table")?;
    Ok(ruleset.table(family, &name, object.text))
}

fn flush<'t>(value: &Json<'t>, ruleset: &mut Ruleset<'t>) -> Parsed<'t, ()> {
    let JsonKind::Object(entries) = &value.kind else {
        return Err(value.unexpected("an object, such as `ruleset`"));
    };
    match entries.first().map(|(kind, object)| (&kind[..], object)) {
        Some(("ruleset", object)) if matches!(object.kind, JsonKind::Null) => {
            *ruleset = Ruleset::default();
            Ok(())
        }
        Some(("table", table)) => {
            let family = family_of(table)?;
            ruleset.flush_table(family, &table.need_word("name")?);
            Ok(())
        }
        Some(("chain", chain)) => {
            let name = chain.need_word("name")?;
            let table = table_of(chain, ruleset)?;
            table.chain(&name, chain.text).rules.clear();
            Ok(())
        }
        Some((kind, _)) => Err(unsupported(
            value.text,
            format!("the command `flush {kind}`"),
        )),
        None => Err(value.unexpected("an object, such as `ruleset`")),
    }
}

fn delete<'t>(command: &str, value: &Json<'t>, ruleset: &mut Ruleset<'t>) -> Parsed<'t, ()> {
    match value.single() {
        Some(("table", table)) => {
            let family = family_of(table)?;
            ruleset.clear_table(family, &table.need_word("name")?);
            Ok(())
        }
        Some((kind, _)) => Err(unsupported(
            value.text,
            format!("the command `{command} {kind}`"),
        )),
        None => Err(value.unexpected("an object, such as `table`")),
    }
}

fn read_chain<'t>(value: &Json<'t>, table: &mut Table<'t>) -> Parsed<'t, ()> {
    let name = value.need_word("name")?;
    let chain = table.chain(&name, value.text);
    if value.get("hook").is_none() {
        return Ok(());
    }
    let policy = match value.get("policy") {
        None => None,
        Some(policy) => Some(match policy.as_str() {
            Some("accept") => (Policy::Accept, policy.text),
            Some("drop") => (Policy::Drop, policy.text),
            _ => return Err(policy.unexpected("`accept` or `drop`")),
        }),
    };
    chain.base = Some(Base {
        chain_type: value.need_word("type")?,
        hook: value.need_word("hook")?,
        policy,
    });
    Ok(())
}

fn read_set<'t>(value: &Json<'t>, table: &mut Table<'t>) -> Parsed<'t, ()> {
    let elements = match value.get("elem") {
        Some(elements) => expression::elements(elements)?,
        None => Vec::new(),
    };
    let flags = value.get("flags").map_or(&[][..], |flags| flags.elements());
    let is_changing_flag = |flag: &Json<'_>| matches!(flag.as_str(), Some("dynamic" | "timeout"));
    let is_changing = flags.iter().any(is_changing_flag)
        || value.get("timeout").is_some()
        || value.get("stmt").is_some_and(|statements| {
            let is_counter = |statement: &Json<'_>| {
                statement
                    .single()
                    .is_some_and(|(kind, _)| kind == "counter")
            };
            !statements.elements().iter().all(is_counter)
        });
    let set: &mut NamedSet<'t> = table.set(&value.need_word("name")?);
    set.elements.extend(elements);
    set.is_changing |= is_changing;
    Ok(())
}

fn read_rule<'t>(value: &Json<'t>) -> Parsed<'t, Rule<'t>> {
    let statements = value.need("expr")?.elements();
    let statements = statements.iter().map(statement::read);
    Ok(Rule {
        text: value.text,
        statements: statements.collect::<Result<_, _>>()?,
        comment: value.word("comment"),
    })
}
