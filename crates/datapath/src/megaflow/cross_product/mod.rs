//! Cross-producting: all flows of a pipeline, ahead of time.
//!
//! # Idea
//! A set of all headers is sent to the first table. What a flow entry matches of it, less
//! what entries of higher priority match, goes where the entry sends it, until no table
//! is left. Each set that arrives is an entry of one table that does what the whole
//! pipeline does: a cache filled with it never misses.
//!
//! # Data layout
//! ```text
//! entry   term over the 22 words of a packet's key │ path: table, entry that won │ … │ end
//! ```
//! Sets are kept as what packets are when they come in. Bits that entries have set on the
//! way are constants: a later match is first asked whether it agrees with them, and only
//! its other bits are matched. The bits of [`Presence`](crate::Presence) that a match needs
//! are bits of its term.
//!
//! # Algorithm
//! ```text
//! visit(table, space, constants):
//!     for each entry, the highest priority first:
//!         matching = what the entry matches, before constants were set
//!         won = space ∩ matching; space = space − matching
//!         if won is not empty: carry the entry's instructions out on constants;
//!             visit(next table, won, constants), or add an entry for each term of won
//!     what is left of space: add an entry for each term, dropped as a table miss
//! ```
//!
//! # Cost
//! Terms are as many as the products of tables, and subtraction multiplies them by the
//! bits of what is subtracted: see [`header_space`](crate::lab::header_space). So there is a
//! limit on entries, and on the terms of every set on the way.
//!
//! # Where we differ from the paper, and why
//! - **The key as it is.** Every value of the 22 words counts as a header, also those that
//!   no frame has, such as ports of TCP in ARP. So some entries may match no packet.
//! - **What a key does not have.** After a tag or label is pushed or popped, or the type of
//!   ICMPv6 is set, a later table sees what is below in the frame. Such an entry ends there:
//!   its [`End`] is the table that it would go on with. The paper's datapaths shift
//!   registers instead, which is no action of OpenFlow 1.3.5.
//! - **Packets that an action drops**: by a meter, or by a time to live that cannot be
//!   decremented. The path is that of packets that pass.
//! - Ports, groups and action sets do not change which tables a packet goes through, and
//!   are left to the entries of the path.
//!
//! # References
//! [FCH14] §3.1, Fig. 2, Tables 1 to 3.
//!
//! [FCH14]: classyard::papers#fch14

use std::fmt;
use std::sync::Arc;

use classyard::RuleId;

use crate::action::Action;
use crate::field::Field;
use crate::flow::{FlowEntry, FlowStore, Instructions, TableId};
use crate::flow_match::{FieldValue, FlowMatch};
use crate::header_space::{Space, Term};
use crate::key::{KEY_WORDS, PacketKey};

#[cfg(test)]
mod tests;

/// How a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The last entry sends packets to no further table: their action set is carried out.
    ActionSet,
    /// No entry of the last table matches: packets are dropped.
    Miss,
    /// Packets go on with this table, but what it sees of them is not in the key that they
    /// came in with.
    Continue(TableId),
}

/// The tables that packets go through, and the entry that wins them in each; none in a
/// last table where no entry matches.
pub type Path = Vec<(TableId, Option<RuleId>)>;

/// Packets that take the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossEntry {
    /// What they are when they come in.
    pub term: Term<KEY_WORDS>,
    /// The way that they take, shared by all entries of it.
    pub path: Arc<Path>,
    /// How it ends.
    pub end: End,
}

/// A whole pipeline as one table. Its entries do not overlap, so they need no priorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossProduct {
    /// Disjoint, path by path.
    pub entries: Vec<CrossEntry>,
    /// How many different paths they take: header spaces before these are divided into
    /// terms, as in the paper's Table 3.
    pub paths: usize,
}

/// A limit was met before the cross product was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyEntries {
    /// The limit, on entries and on the terms of a set.
    pub most: usize,
    /// Entries that were complete.
    pub entries: usize,
    /// Paths that were complete.
    pub paths: usize,
    /// The table in which it was met.
    pub table: TableId,
    /// The flow entry there, if it was met at one.
    pub rule: Option<RuleId>,
}

impl fmt::Display for TooManyEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooManyEntries {
            most,
            entries,
            paths,
            table,
            rule,
        } = self;
        write!(
            f,
            "the cross product has more than {most} entries, its limit: {entries} entries of \
             {paths} paths were complete at table {table}"
        )?;
        match rule {
            Some(rule) => write!(f, ", flow {}", rule.get()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TooManyEntries {}

/// What a match is as a term over the words of a key, with the presence that it needs.
///
/// A packet's key is in the term if and only if the match has it
/// ([`FlowMatch::matches`]).
#[must_use]
pub fn term_of(flow: &FlowMatch) -> Term<KEY_WORDS> {
    let mut value = PacketKey::default();
    let mut mask = PacketKey::default();
    for one in flow.values() {
        // Fields of one match that share a place would be of different packets.
        let place = PacketKey::place(one.field);
        place.set_bits(value.words_mut(), one.value);
        place.set_bits(mask.words_mut(), one.mask);
    }
    value.set_presence(flow.presence());
    mask.set_presence(flow.presence());
    Term::new(*value.words(), *mask.words())
}

/// The cross product of all tables, from table 0 on.
///
/// # Errors
/// [`TooManyEntries`] when there are more than `most` entries, or a set on the way needs
/// more than `most` terms.
pub fn cross_product(flows: &FlowStore, most: usize) -> Result<CrossProduct, TooManyEntries> {
    let mut product = Product {
        flows,
        most,
        found: CrossProduct::default(),
        path: Vec::new(),
        tables: std::collections::BTreeMap::new(),
    };
    product.visit(TableId(0), Space::any(), &Constants::default())?;
    Ok(product.found)
}

/// Bits that were set on the way.
#[derive(Clone, Copy, Debug)]
struct Constants {
    value: [u64; KEY_WORDS],
    mask: [u64; KEY_WORDS],
}

impl Default for Constants {
    fn default() -> Constants {
        Constants {
            value: [0; KEY_WORDS],
            mask: [0; KEY_WORDS],
        }
    }
}

impl Constants {
    fn set(&mut self, field: Field, value: u128, mask: u128) {
        let place = PacketKey::place(field);
        let old = place.get(&self.value);
        place.set(&mut self.value, old & !mask | value & mask);
        place.set_bits(&mut self.mask, mask);
    }

    /// What is in a term once the bits are set.
    fn before(&self, term: &Term<KEY_WORDS>) -> Option<Term<KEY_WORDS>> {
        term.before_bits(&self.value, &self.mask)
    }
}

/// The entries of a table, the highest priority first, with what they match.
type Ordered<'a> = Arc<[(&'a FlowEntry, Term<KEY_WORDS>)]>;

struct Product<'a> {
    flows: &'a FlowStore,
    most: usize,
    found: CrossProduct,
    /// The way to here.
    path: Path,
    /// Tables that have been visited.
    tables: std::collections::BTreeMap<TableId, Ordered<'a>>,
}

impl<'a> Product<'a> {
    fn ordered(&mut self, table: TableId) -> Ordered<'a> {
        let flows = self.flows;
        let ordered = self.tables.entry(table).or_insert_with(|| {
            let mut entries: Vec<_> = flows.table(table).collect();
            // At equal priority the lower number wins.
            entries.sort_by_key(|entry| (std::cmp::Reverse(entry.priority), entry.id));
            let terms = entries
                .into_iter()
                .map(|entry| (entry, term_of(&entry.flow)));
            terms.collect()
        });
        Arc::clone(ordered)
    }

    fn limit(&self, table: TableId, rule: Option<RuleId>) -> TooManyEntries {
        TooManyEntries {
            most: self.most,
            entries: self.found.entries.len(),
            paths: self.found.paths,
            table,
            rule,
        }
    }

    /// Follows packets into a table.
    fn visit(
        &mut self,
        table: TableId,
        mut space: Space<KEY_WORDS>,
        constants: &Constants,
    ) -> Result<(), TooManyEntries> {
        for (entry, term) in self.ordered(table).iter() {
            let Some(matching) = constants.before(term) else {
                continue;
            };
            let won = space.within(&matching);
            if won.is_empty() {
                continue;
            }
            self.path.push((table, Some(entry.id)));
            self.follow(entry, &entry.instructions, won, *constants)?;
            self.path.pop();
            space = space
                .without(&matching, self.most)
                .map_err(|_| self.limit(table, Some(entry.id)))?;
            if space.is_empty() {
                return Ok(());
            }
        }
        self.path.push((table, None));
        self.end(&space, End::Miss)?;
        self.path.pop();
        Ok(())
    }

    /// Carries an entry's instructions out on packets that it won.
    fn follow(
        &mut self,
        entry: &FlowEntry,
        instructions: &Instructions,
        won: Space<KEY_WORDS>,
        constants: Constants,
    ) -> Result<(), TooManyEntries> {
        let Some(next) = instructions.goto_table else {
            return self.end(&won, End::ActionSet);
        };
        self.apply(entry, &instructions.apply, won, constants, next)
    }

    /// Carries actions out, then goes on with the next table.
    fn apply(
        &mut self,
        entry: &FlowEntry,
        actions: &[Action],
        space: Space<KEY_WORDS>,
        mut constants: Constants,
        next: TableId,
    ) -> Result<(), TooManyEntries> {
        for (number, action) in actions.iter().enumerate() {
            match *action {
                Action::SetField(FieldValue {
                    field: Field::Icmpv6Type | Field::Icmpv6Code,
                    ..
                }) => {
                    return self.end(&space, End::Continue(next));
                }
                Action::SetField(FieldValue { field, value, .. }) => {
                    let mut needed = PacketKey::default();
                    needed.set_presence(field.info().presence);
                    let having = Term::new(*needed.words(), *needed.words());
                    // Packets without the field, such as later fragments without ports,
                    // stay as they are.
                    let lacking = space
                        .without(&having, self.most)
                        .map_err(|_| self.limit(entry.table, Some(entry.id)))?;
                    if !lacking.is_empty() {
                        let rest = &actions[number + 1..];
                        self.apply(entry, rest, lacking, constants, next)?;
                        let space = space.within(&having);
                        constants.set(field, value, field.max_value());
                        return match space.is_empty() {
                            true => Ok(()),
                            false => self.apply(entry, rest, space, constants, next),
                        };
                    }
                    constants.set(field, value, field.max_value());
                }
                Action::PushVlan(_)
                | Action::PopVlan
                | Action::PushMpls(_)
                | Action::PopMpls(_) => {
                    return self.end(&space, End::Continue(next));
                }
                Action::Output { .. }
                | Action::Group(_)
                | Action::SetQueue(_)
                | Action::SetMplsTtl(_)
                | Action::DecrementMplsTtl
                | Action::SetTtl(_)
                | Action::DecrementTtl
                | Action::CopyTtlOut
                | Action::CopyTtlIn => {}
            }
        }
        if let Some((value, mask)) = entry.instructions.metadata {
            constants.set(Field::Metadata, u128::from(value), u128::from(mask));
        }
        self.visit(next, space, &constants)
    }

    /// Adds an entry for each term.
    fn end(&mut self, space: &Space<KEY_WORDS>, end: End) -> Result<(), TooManyEntries> {
        let (table, rule) = *self.path.last().expect("a path begins with a table");
        let terms = space.terms();
        if terms.len() > self.most - self.found.entries.len() {
            return Err(self.limit(table, rule));
        }
        let path = Arc::new(self.path.clone());
        self.found.paths += 1;
        self.found
            .entries
            .extend(terms.iter().map(|&term| CrossEntry {
                term,
                path: Arc::clone(&path),
                end,
            }));
        Ok(())
    }
}
