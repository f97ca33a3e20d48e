//! Cross-producting: all flows of a pipeline, computed in advance.
//!
//! # Idea
//! The set of all headers enters the first table. Each flow entry takes the headers in
//! its match, minus the matches of entries of higher priority, and sends them to its next
//! table, until no table follows. Each resulting set is an entry of one table that has
//! the effect of the whole pipeline. A cache with these entries never misses.
//!
//! # Data layout
//! ```text
//! entry   term over the 22 words of a packet's key │ path: table, winning entry │ … │ end
//! ```
//! Sets describe packets as received. Bits set on the way are constants: a later match
//! must agree with the constants, and only its other bits restrict the set. The
//! [`Presence`](crate::Presence) bits that a match needs are part of its term.
//!
//! # Algorithm
//! ```text
//! visit(table, space, constants):
//!     for each entry, the highest priority first:
//!         matching = the entry's match on received packets, given the constants
//!         won = space ∩ matching; space = space − matching
//!         if won is not empty: apply the entry's instructions to the constants;
//!             visit(next table, won, constants), or add an entry for each term of won
//!     add an entry for each remaining term of space: dropped as a table miss
//! ```
//!
//! # Cost
//! The number of terms grows with the product of the tables' sizes, and each subtraction
//! multiplies it by the number of subtracted mask bits: see
//! [`header_space`](crate::lab::header_space). So entries, and the terms of every
//! intermediate set, have a limit.
//!
//! # Where we differ from the paper, and why
//! - **All values of the key.** Every value of the 22 words counts as a header, even if
//!   no frame has it, such as TCP ports in ARP. So some entries may match no packet.
//! - **Inner headers.** After a tag or label is pushed or popped, or a field that announces
//!   a header is set, a later table matches other headers, which the received key does not
//!   have. The entry ends there, and its [`End`] is the table at which the packet continues. The
//!   paper's datapaths shift registers instead; OpenFlow 1.3.5 has no such action.
//! - **Dropped packets.** A meter, or a time to live that cannot be decremented, may drop
//!   a packet. The path is the path of packets that pass.
//! - Ports, groups and action sets do not change the tables of a packet, so they are left
//!   to the entries of the path.
//!
//! # References
//! [FCH14] §3.1, Fig. 2, Tables 1 to 3.
//!
//! [FCH14]: classyard::papers#fch14

use std::fmt;
use std::sync::Arc;

use classyard::{Priority, RuleId, Winner};

use crate::action::Action;
use crate::field::Field;
use crate::flow::{FlowEntry, FlowStore, Instructions, TableId};
use crate::flow_match::{FlowMatch, MatchField};
use crate::header_space::{Space, Term, TooManyTerms};
use crate::key::{KEY_WORDS, PacketKey};

#[cfg(test)]
mod tests;

/// The end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The last entry has no `goto_table`: the action set is carried out.
    ActionSet,
    /// No entry of the last table matches: the packets are dropped.
    Miss,
    /// Packets continue at this table, which matches bits that their received key does
    /// not have.
    Continue(TableId),
}

/// The tables of a path with the winning entry of each. The last winner is a miss if no
/// entry matches.
pub type Path = Vec<(TableId, Winner)>;

/// Packets that take the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossEntry {
    /// The packets, as received.
    pub term: Term<KEY_WORDS>,
    /// Their path, shared by all entries with the same path.
    pub path: Arc<Path>,
    /// The end of the path.
    pub end: End,
}

/// A whole pipeline as one table. Its entries do not overlap, so they have no priorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossProduct {
    /// Disjoint entries, path by path.
    pub entries: Vec<CrossEntry>,
    /// The number of different paths: the header spaces before division into terms, as in
    /// the paper's Table 3.
    pub paths: usize,
}

/// The limit was reached before the cross product was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyEntries {
    /// The limit, on entries and on the terms of a set.
    pub most: usize,
    /// The number of complete entries.
    pub entries: usize,
    /// The number of complete paths.
    pub paths: usize,
    /// The table that reached the limit.
    pub table: TableId,
    /// The flow entry that reached the limit, if any.
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

/// Returns a match as a term over the words of a key, including the presence bits.
///
/// The term contains a packet's key if and only if the match
/// [matches](FlowMatch::matches) it.
#[must_use]
pub fn term_of(flow: &FlowMatch) -> Term<KEY_WORDS> {
    let mut value = PacketKey::default();
    let mut mask = PacketKey::default();
    for one in flow.values() {
        // Fields of one match do not share a place: no packet has both.
        let placement = PacketKey::place(one.field);
        placement.set_bits(value.words_mut(), one.value);
        placement.set_bits(mask.words_mut(), one.mask);
    }
    value.set_presence(flow.presence());
    mask.set_presence(flow.presence());
    Term::new(*value.words(), *mask.words())
}

/// Returns the cross product of all tables, starting at table 0.
///
/// # Errors
/// [`TooManyEntries`] if there are more than `most` entries, or if an intermediate set
/// has more than `most` terms.
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

/// Returns an entry as the winner of a lookup.
fn winner_of(entry: &FlowEntry) -> Winner {
    Winner::new(Priority(u32::from(entry.priority)), entry.id)
}

/// Bits that actions have set, with their values.
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
        let placement = PacketKey::place(field);
        let old = placement.get(&self.value);
        placement.set(&mut self.value, old & !mask | value & mask);
        placement.set_bits(&mut self.mask, mask);
    }

    /// Returns the received packets that are in a term after the bits are set.
    fn before(&self, term: &Term<KEY_WORDS>) -> Option<Term<KEY_WORDS>> {
        term.before_bits(&self.value, &self.mask)
    }
}

/// Divides packets by whether an action that sets the field changes them. Returns the changed
/// packets first. [`is_set`](crate::bits::is_set) does this for one packet. The match of the
/// action's entry requires the headers that the field needs, so only their presence can differ.
fn divide(
    space: &Space<KEY_WORDS>,
    field: Field,
    most: usize,
) -> Result<(Space<KEY_WORDS>, Space<KEY_WORDS>), TooManyTerms> {
    if matches!(field, Field::EthDst | Field::EthSrc) {
        let mut type_mask = PacketKey::default();
        PacketKey::place(Field::EthType).set_bits(type_mask.words_mut(), u128::MAX);
        // A frame too short for Ethernet addresses has type 0.
        let lacking = Term::new([0; KEY_WORDS], *type_mask.words());
        return Ok((space.without(&lacking, most)?, space.within(&lacking)));
    }
    let mut needed = PacketKey::default();
    needed.set_presence(field.info().presence);
    let having = Term::new(*needed.words(), *needed.words());
    Ok((space.within(&having), space.without(&having, most)?))
}

/// The entries of a table with their terms, the highest priority first.
type Ordered<'a> = Arc<[(&'a FlowEntry, Term<KEY_WORDS>)]>;

struct Product<'a> {
    flows: &'a FlowStore,
    most: usize,
    found: CrossProduct,
    /// The path so far.
    path: Path,
    /// The entries of tables visited so far.
    tables: std::collections::BTreeMap<TableId, Ordered<'a>>,
}

impl<'a> Product<'a> {
    fn ordered(&mut self, table: TableId) -> Ordered<'a> {
        let flows = self.flows;
        let ordered = self.tables.entry(table).or_insert_with(|| {
            let mut entries: Vec<_> = flows.table(table).collect();
            // At equal priority the lower id wins.
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

    /// Processes packets that enter a table.
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
            self.path.push((table, winner_of(entry)));
            self.follow(entry, &entry.instructions, won, *constants)?;
            self.path.pop();
            space = space
                .without(&matching, self.most)
                .map_err(|_| self.limit(table, Some(entry.id)))?;
            if space.is_empty() {
                return Ok(());
            }
        }
        self.path.push((table, Winner::MISS));
        self.end(&space, End::Miss)?;
        self.path.pop();
        Ok(())
    }

    /// Applies an entry's instructions to the packets that it wins.
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

    /// Applies actions, then continues at the next table.
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
                Action::SetField(MatchField { field, .. }) if field.announces_headers() => {
                    return self.end(&space, End::Continue(next));
                }
                Action::SetField(MatchField { field, value, .. }) => {
                    // Packets without the field, such as later fragments without ports,
                    // are unchanged.
                    let (having, lacking) = divide(&space, field, self.most)
                        .map_err(|_| self.limit(entry.table, Some(entry.id)))?;
                    if !lacking.is_empty() {
                        let later_actions = &actions[number + 1..];
                        self.apply(entry, later_actions, lacking, constants, next)?;
                        constants.set(field, value, field.max_value());
                        return match having.is_empty() {
                            true => Ok(()),
                            false => self.apply(entry, later_actions, having, constants, next),
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
        let (table, winner) = *self.path.last().expect("a path begins with a table");
        let terms = space.terms();
        if terms.len() > self.most - self.found.entries.len() {
            return Err(self.limit(table, winner.rule()));
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
