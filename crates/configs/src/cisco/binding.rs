//! The lists that interfaces use.

use std::collections::HashSet;

use classyard_text::line::{counted_verb, quoted};

use super::Dialect;
use super::list::List;
use super::words::Statement;
use crate::builder::Builder;

/// The maximum number of names in a note.
const MAX_NAMES: usize = 5;

/// The names of lists that interfaces use.
#[derive(Debug, Default)]
pub(super) struct Bindings<'t> {
    names: Vec<&'t str>,
    /// True if a list of ASA examines the packets of all interfaces.
    has_global: bool,
}

impl<'t> Bindings<'t> {
    /// Reads a statement that may bind a list to an interface.
    pub(super) fn read(&mut self, statement: Statement<'t>) {
        let words: Vec<&str> = statement.text.split_ascii_whitespace().collect();
        let names = match &words[..] {
            [
                "ip" | "ipv4" | "ipv6",
                "access-group" | "traffic-filter",
                names @ ..,
            ]
            | [
                "ip" | "ipv6",
                "port",
                "access-group" | "traffic-filter",
                names @ ..,
            ] => names,
            ["access-group", name, "global", ..] => {
                self.has_global = true;
                self.names.push(name);
                return;
            }
            ["access-group", name, "in" | "out", "interface", ..] => {
                self.names.push(name);
                return;
            }
            _ => return,
        };
        let is_direction = |word: &str| matches!(word, "in" | "out" | "ingress" | "egress");
        let Some(direction) = names.iter().position(|word| is_direction(word)) else {
            return;
        };
        let names = names[..direction].iter();
        self.names.extend(names.filter(|name| **name != "common"));
    }

    /// Adds notes about lists that are bound but not defined, and about lists of ASA that
    /// are not bound.
    pub(super) fn note(&self, lists: &[List<'_>], dialect: Dialect, builder: &mut Builder<'_>) {
        let defined: HashSet<&str> = lists.iter().map(|list| list.name).collect();
        let mut undefined = Vec::new();
        let mut noted = HashSet::new();
        for name in &self.names {
            if !defined.contains(name) && noted.insert(*name) {
                undefined.push(*name);
            }
        }
        if !undefined.is_empty() {
            builder.note(format!(
                "{} bound to an interface but not defined in the file: {}",
                counted_verb(undefined.len(), "access list", "is", "are"),
                listed(&undefined)
            ));
        }
        if dialect != Dialect::Asa {
            return;
        }
        let bound: HashSet<&str> = self.names.iter().copied().collect();
        let unbound = lists.iter().map(|list| list.name);
        let unbound: Vec<&str> = unbound.filter(|name| !bound.contains(name)).collect();
        if !unbound.is_empty() {
            builder.note(format!(
                "{} bound to no interface by `access-group`: {}",
                counted_verb(unbound.len(), "access list", "is", "are"),
                listed(&unbound)
            ));
        }
        if self.has_global {
            builder.note(
                "a global access list examines the packets that no entry of an interface's list \
                 matches; here each list ends with its own implied rule"
                    .to_owned(),
            );
        }
    }
}

/// Returns the first names of a list.
pub(super) fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(MAX_NAMES).map(|name| quoted(name));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES {
        text.push_str(", …");
    }
    text
}
