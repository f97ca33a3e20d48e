//! Networks of named sets with bits outside of their prefix.

use super::position::Positions;
use super::show;
use super::tree::{Expression, ExpressionKind, Ruleset, Table};
use crate::builder::Builder;

/// Records the networks.
pub(super) fn note(ruleset: &Ruleset<'_>, positions: &Positions<'_>, builder: &mut Builder<'_>) {
    for (name, set) in ruleset.tables.iter().flat_map(Table::named_sets) {
        for element in &set.elements {
            if has_network(&element.key) {
                let (line, _, column) = positions.of(element.key.text);
                let member = show::expression(&element.key);
                builder.member_at((line, column), &member, name);
            }
        }
    }
}

/// True if a part of an element may be a network.
fn has_network(key: &Expression<'_>) -> bool {
    match &key.kind {
        ExpressionKind::Word(word) => word.contains('/'),
        ExpressionKind::Concatenation(parts) => parts.iter().any(has_network),
        _ => false,
    }
}
