//! One table, and a cache of the flows that a heuristic computes for it.
//!
//! # Idea
//! The simulator of [FCH14] §5.2. A packet is looked up in the cache. If it misses, the
//! table returns the winning rule and a heuristic chooses the bits that distinguish the
//! packet from the rules above; the resulting flow is cached. After all headers have been
//! sent, as in a scan of all ports, the cache has all flows that these headers need: the
//! worst case.
//!
//! # Data layout
//! Rules and flows are in tuple spaces: one hash table of values for each mask.
//!
//! # Lookup
//! ```text
//! for each mask: look up packet & mask
//! ```
//!
//! # Cost
//! O(m) for m masks. This is why the number of masks matters.
//!
//! # References
//! [FCH14] §5.2.
//!
//! [FCH14]: classyard::papers#fch14

use foldhash::HashMap;
use std::sync::Arc;

use super::{Heuristic, TooMuchWork, and};
use crate::header_space::Term;

/// A flow for a cache: the same rule wins all its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Megaflow<const W: usize> {
    /// The packets of the flow.
    pub term: Term<W>,
    /// The number of the winning rule in the table, or `None` if no rule matches.
    pub winner: Option<usize>,
}

/// A table of rules.
#[derive(Clone, Debug)]
pub struct Table<const W: usize> {
    rules: Arc<[Term<W>]>,
    /// The number of the first rule with each term.
    space: TupleSpace<W, usize>,
}

impl<const W: usize> Table<W> {
    /// Returns a table of rules, the highest priority first.
    #[must_use]
    pub fn new(rules: Arc<[Term<W>]>) -> Table<W> {
        let mut space = TupleSpace::default();
        for (number, rule) in rules.iter().enumerate() {
            space.insert_first(rule, number);
        }
        Table { rules, space }
    }

    /// Returns the rules, the highest priority first.
    #[must_use]
    pub fn rules(&self) -> &Arc<[Term<W>]> {
        &self.rules
    }

    /// Returns the number of the rule that wins a packet.
    #[must_use]
    pub fn winner(&self, packet: &[u64; W]) -> Option<usize> {
        let matches = self
            .space
            .tables
            .iter()
            .filter_map(|table| table.get(packet));
        matches.min().copied()
    }

    /// Returns the flow of a packet, with the bits that a heuristic chooses.
    ///
    /// # Errors
    /// [`TooMuchWork`] from the heuristic.
    pub fn megaflow(
        &self,
        packet: &[u64; W],
        heuristic: &mut impl Heuristic<W>,
    ) -> Result<Megaflow<W>, TooMuchWork> {
        let winner = self.winner(packet);
        let mut mask = winner.map_or([0; W], |winner| *self.rules[winner].mask());
        let above = winner.unwrap_or(self.rules.len());
        heuristic.tell_apart(packet, above, &mut mask)?;
        Ok(Megaflow {
            term: Term::new(*packet, mask),
            winner,
        })
    }
}

/// A cache of flows, without a bound and without removal.
#[derive(Clone, Debug, Default)]
pub struct Cache<const W: usize> {
    space: TupleSpace<W, Option<usize>>,
}

impl<const W: usize> Cache<W> {
    /// Returns an empty cache.
    #[must_use]
    pub fn new() -> Cache<W> {
        Cache::default()
    }

    /// Returns the winning rule of the flow that covers a packet. The outer `None` is a
    /// cache miss.
    #[must_use]
    pub fn get(&self, packet: &[u64; W]) -> Option<Option<usize>> {
        let mut tables = self.space.tables.iter();
        tables.find_map(|table| table.get(packet)).copied()
    }

    /// Adds a flow.
    pub fn insert(&mut self, flow: &Megaflow<W>) {
        self.space.insert_first(&flow.term, flow.winner);
    }

    /// Returns the number of flows.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.space
            .tables
            .iter()
            .map(|table| table.values.len())
            .sum()
    }

    /// Returns the number of masks.
    #[must_use]
    pub fn masks(&self) -> usize {
        self.space.tables.len()
    }
}

/// One hash table for each mask.
#[derive(Clone, Debug)]
struct TupleSpace<const W: usize, V> {
    tables: Vec<Tuple<W, V>>,
    places: HashMap<[u64; W], usize>,
}

#[derive(Clone, Debug)]
struct Tuple<const W: usize, V> {
    mask: [u64; W],
    values: HashMap<[u64; W], V>,
}

impl<const W: usize, V> Default for TupleSpace<W, V> {
    fn default() -> TupleSpace<W, V> {
        TupleSpace {
            tables: Vec::new(),
            places: HashMap::default(),
        }
    }
}

impl<const W: usize, V> TupleSpace<W, V> {
    /// Adds a term, unless it exists.
    fn insert_first(&mut self, term: &Term<W>, value: V) {
        let tables = &mut self.tables;
        let table = *self.places.entry(*term.mask()).or_insert_with(|| {
            tables.push(Tuple {
                mask: *term.mask(),
                values: HashMap::default(),
            });
            tables.len() - 1
        });
        tables[table].values.entry(*term.value()).or_insert(value);
    }
}

impl<const W: usize, V> Tuple<W, V> {
    #[inline]
    fn get(&self, packet: &[u64; W]) -> Option<&V> {
        self.values.get(&and(packet, &self.mask))
    }
}
