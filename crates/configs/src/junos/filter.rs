//! Firewall filters.
//!
//! The first term whose conditions hold decides, and a packet that no term decides is
//! discarded. A term without a terminating action accepts, except with `next term`.
//!
//! | actions | effect |
//! |---|---|
//! | `accept`, `discard`, `reject` | `permit`, `deny`, `reject` |
//! | [`FORWARDING`], such as `routing-instance X`, `next-ip A` | an action with that text |
//! | `next term` | the next term examines the packet |
//! | [`MODIFIERS`] and [`FLAGS`], such as `count`, `log` | none: without a terminating action, the term accepts |
//! | [`POLICERS`] | as before, with a note |
//! | `next filter`, others | a fault with their name |

use classyard_text::Fault;
use classyard_text::line::{counted_verb, quoted};
use classyard_workload::diagnostic::ReadError;

use super::conditions::Conditions;
use super::policy;
use super::prefixes::too_many;
use super::statements::{Reader, is_bookkeeping};
use super::tree::WordId;
use crate::builder::{DENY, PERMIT, REJECT};
use crate::packets::{Families, PacketSet};

/// Statements that bind filters to interfaces.
const BINDINGS: [&str; 4] = ["input", "output", "input-list", "output-list"];

/// The maximum number of names in a note.
const MAX_NAMES: usize = 8;

/// Statements of a filter that decide nothing.
const FILTER_OPTIONS: [&str; 9] = [
    "accounting-profile",
    "enhanced-mode",
    "fast-lookup-filter",
    "instance-shared",
    "interface-shared",
    "interface-specific",
    "physical-interface-filter",
    "promote",
    "scale-optimized",
];

/// Definitions at the top of `firewall`, other than filters.
const DEFINITIONS: [&str; 8] = [
    "flexible-match",
    "hierarchical-policer",
    "interface-set",
    "load-balance-group",
    "policer",
    "three-color-policer",
    "traceoptions",
    "tunnel-end-point",
];

/// Actions with a value, after which other actions follow.
const MODIFIERS: [&str; 11] = [
    "count",
    "dont-fragment",
    "dscp",
    "forwarding-class",
    "loss-priority",
    "policy-map",
    "port-mirror-instance",
    "prefix-action",
    "traffic-class",
    "traffic-class-count",
    "bgp-output-queue-priority",
];

/// Actions without a value, after which other actions follow.
const FLAGS: [&str; 9] = [
    "force-premium",
    "log",
    "packet-mode",
    "port-mirror",
    "sample",
    "service-accounting",
    "service-accounting-deferred",
    "service-filter-hit",
    "syslog",
];

/// Actions that drop packets above a rate.
const POLICERS: [&str; 4] = [
    "enhanced-hierarchical-policer",
    "hierarchical-policer",
    "policer",
    "three-color-policer",
];

/// Actions that forward packets in another way; they are actions of the policy.
const FORWARDING: [&str; 8] = [
    "decapsulate",
    "encapsulate",
    "logical-system",
    "next-interface",
    "next-ip",
    "next-ip6",
    "routing-instance",
    "topology",
];

/// The result of a term for the packets that it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Decision {
    Action(String),
    NextTerm,
}

/// Reads all filters below `firewall`.
pub(super) fn read(reader: &mut Reader<'_, '_, '_>) -> Result<(), ReadError> {
    let tree = reader.tree;
    let Some(firewall) = tree.at(&["firewall"]) else {
        return Ok(());
    };
    let mut names = Vec::new();
    for word in tree.children(firewall) {
        match tree.text(word) {
            "filter" => {
                for filter in tree.children(word) {
                    names.push(tree.text(filter));
                    read_filter(reader, filter, Families::IPV4)?;
                }
            }
            "family" => {
                for family in tree.children(word) {
                    read_family(reader, family, &mut names)?;
                }
            }
            text if DEFINITIONS.contains(&text) || is_bookkeeping(text) => {}
            text => reader.problem(unsupported_filter(text)),
        }
    }
    note_bindings(reader, &names);
    Ok(())
}

fn unsupported_filter(text: &str) -> Fault<'_> {
    Fault::unsupported(
        text,
        format!("{} of `firewall`", quoted(text)),
        "`filter`, or `family inet` or `family inet6` with `filter`",
    )
}

fn read_family<'t>(
    reader: &mut Reader<'_, '_, 't>,
    family: WordId,
    names: &mut Vec<&'t str>,
) -> Result<(), ReadError> {
    let tree = reader.tree;
    let families = match tree.text(family) {
        "inet" => Some(Families::IPV4),
        "inet6" => Some(Families::IPV6),
        _ => None,
    };
    for word in tree.children(family) {
        match (tree.text(word), families) {
            ("filter", Some(families)) => {
                for filter in tree.children(word) {
                    names.push(tree.text(filter));
                    let is_old = families == Families::IPV4
                        && tree
                            .at(&["firewall", "filter", tree.text(filter)])
                            .is_some();
                    if is_old {
                        let text = tree.text(filter);
                        let message = format!("a second filter {}", quoted(text));
                        reader.problem(Fault::new(text, message, "another name"));
                    } else {
                        read_filter(reader, filter, families)?;
                    }
                }
            }
            ("filter", None) => {
                for filter in tree.children(word) {
                    names.push(tree.text(filter));
                    reader.problem(Fault::unsupported(
                        tree.text(filter),
                        format!("a filter of the family {}", quoted(tree.text(family))),
                        "a filter of `family inet` or `family inet6`",
                    ));
                }
            }
            ("prefix-action", _) => {}
            (text, _) if is_bookkeeping(text) => {}
            (text, _) => reader.problem(unsupported_filter(text)),
        }
    }
    Ok(())
}

fn read_filter(
    reader: &mut Reader<'_, '_, '_>,
    filter: WordId,
    families: Families,
) -> Result<(), ReadError> {
    let tree = reader.tree;
    let name = tree.text(filter);
    if name == policy::LIST && tree.at(&["security", "policies"]).is_some() {
        let message = "a filter with the name of the list of security policies";
        reader.problem(Fault::new(name, message, "another name"));
        return Ok(());
    }
    let list = match reader.builder.list(name) {
        Ok(list) => list,
        Err(fault) => {
            reader.problem(fault);
            return Ok(());
        }
    };
    for word in tree.children(filter) {
        match tree.text(word) {
            "term" => {
                for term in tree.children(word) {
                    read_term(reader, term, families, (name, &list))?;
                }
            }
            text if FILTER_OPTIONS.contains(&text) || is_bookkeeping(text) => {}
            text => reader.problem(Fault::unsupported(
                text,
                format!("{} of a filter", quoted(text)),
                "`term`",
            )),
        }
    }
    let text = "term implicit-rule then discard";
    let source = reader.implied_source(filter, text, name);
    let packets = PacketSet::of_families(families).intersect(&list);
    let packets = packets.expect("one box");
    reader.builder.add(source, packets, DENY)
}

fn read_term(
    reader: &mut Reader<'_, '_, '_>,
    term: WordId,
    families: Families,
    (name, list): (&str, &PacketSet),
) -> Result<(), ReadError> {
    let source = reader.source(term, name);
    let decided = decision(reader, term).and_then(|decision| {
        let packets = Conditions::new(reader, source, families).packets_of(term)?;
        let text = reader.tree.text(term);
        let packets = packets
            .intersect(list)
            .map_err(|error| too_many(text, error))?;
        Ok((packets, decision))
    });
    match decided {
        Ok((packets, Decision::Action(action))) => reader.builder.add(source, packets, &action),
        Ok((_, Decision::NextTerm)) => Ok(()),
        Err(fault) => {
            reader.problem(fault);
            Ok(())
        }
    }
}

/// Returns what a term does with its packets.
fn decision<'t>(reader: &mut Reader<'_, '_, 't>, term: WordId) -> Result<Decision, Fault<'t>> {
    let tree = reader.tree;
    let mut then = None;
    for word in tree.children(term) {
        match tree.text(word) {
            "from" => {}
            "then" => then = Some(word),
            "filter" => {
                return Err(Fault::unsupported(
                    tree.text(word),
                    "a filter in a term",
                    "the terms of that filter",
                ));
            }
            text if is_bookkeeping(text) => {}
            text => {
                let message = format!("{} of a term", quoted(text));
                return Err(Fault::unsupported(text, message, "`from` or `then`"));
            }
        }
    }
    let mut decision: Option<Decision> = None;
    for word in then.into_iter().flat_map(|then| tree.children(then)) {
        let Some(other) = action(reader, word)? else {
            continue;
        };
        let accept = Decision::Action(PERMIT.to_owned());
        let is_forwarding = |decision: &Decision| match decision {
            Decision::Action(action) => ![PERMIT, DENY, REJECT].contains(&action.as_str()),
            Decision::NextTerm => false,
        };
        decision = match decision {
            None => Some(other),
            Some(previous) if previous == accept && is_forwarding(&other) => Some(other),
            Some(previous) if other == accept && is_forwarding(&previous) => Some(previous),
            Some(_) => {
                let text = tree.text(word);
                let message = format!("{} after another terminating action", quoted(text));
                return Err(Fault::new(text, message, "one terminating action"));
            }
        };
    }
    Ok(decision.unwrap_or(Decision::Action(PERMIT.to_owned())))
}

/// Returns what a word after `then` does; `None` if other actions may follow.
fn action<'t>(
    reader: &mut Reader<'_, '_, 't>,
    word: WordId,
) -> Result<Option<Decision>, Fault<'t>> {
    let tree = reader.tree;
    let text = tree.text(word);
    let decide = |action: &str| Ok(Some(Decision::Action(action.to_owned())));
    match text {
        "accept" => reader.expect_leaf(word).and_then(|()| decide(PERMIT)),
        "discard" if tree.child(word, "accounting").is_some() => decide(DENY),
        "discard" => reader.expect_leaf(word).and_then(|()| decide(DENY)),
        // The type of the message follows.
        "reject" => {
            for message in tree.children(word) {
                reader.expect_leaf(message)?;
            }
            decide(REJECT)
        }
        "next" => match tree
            .children(word)
            .map(|next| tree.text(next))
            .collect::<Vec<_>>()[..]
        {
            ["term"] => Ok(Some(Decision::NextTerm)),
            ["filter"] => Err(Fault::unsupported(text, "`next filter`", "`next term`")),
            _ => Err(Fault::new(text, quoted(text), "`next term`")),
        },
        _ if FORWARDING.contains(&text) => decide(&tree.statement(word)),
        _ if POLICERS.contains(&text) => {
            reader.builder.note(
                "policers may drop packets of terms that accept them; rates are not modelled"
                    .to_owned(),
            );
            Ok(None)
        }
        _ if MODIFIERS.contains(&text) => {
            for value in tree.children(word) {
                reader.expect_leaf(value)?;
            }
            Ok(None)
        }
        _ if FLAGS.contains(&text) => reader.expect_leaf(word).map(|()| None),
        _ if is_bookkeeping(text) => Ok(None),
        _ => Err(Fault::unsupported(
            text,
            format!("the action {}", quoted(text)),
            "accept, discard, reject or next term",
        )),
    }
}

/// Adds notes on filters that no interface uses, and on names without a filter.
fn note_bindings(reader: &mut Reader<'_, '_, '_>, names: &[&str]) {
    let tree = reader.tree;
    if tree.at(&["interfaces"]).is_none() {
        return;
    }
    let mut bound = Vec::new();
    let mut words: Vec<WordId> = tree.children(WordId::TOP).collect();
    words.retain(|word| !matches!(tree.text(*word), "firewall" | "groups"));
    while let Some(word) = words.pop() {
        let keyword = tree.text(word);
        if BINDINGS.contains(&keyword) && tree.text(tree.parent(word)) == "filter" {
            bound.extend(tree.children(word).map(|name| tree.text(name)));
        }
        words.extend(tree.children(word));
    }
    let bound: std::collections::HashSet<&str> = bound.into_iter().collect();
    let defined: std::collections::HashSet<&str> = names.iter().copied().collect();
    for (names, others, fact) in [
        (&defined, &bound, "not bound to an interface"),
        (
            &bound,
            &defined,
            "bound to an interface, but not in the file",
        ),
    ] {
        let mut names: Vec<&str> = names.difference(others).copied().collect();
        names.sort_unstable();
        if !names.is_empty() {
            let verb = counted_verb(names.len(), "filter", "is", "are");
            let names = name_list(&names);
            reader.builder.note(format!("{verb} {fact}: {names}"));
        }
    }
}

/// Returns the first names of a list, for a note.
fn name_list(names: &[&str]) -> String {
    let mut text: Vec<String> = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| quoted(name))
        .collect();
    if names.len() > MAX_NAMES {
        text.push("…".to_owned());
    }
    text.join(", ")
}
