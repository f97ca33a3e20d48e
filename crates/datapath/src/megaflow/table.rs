//! One table, and a cache of the flows that a heuristic computes for it.
//!
//! # Idea
//! The simulator of [FCH14] §5.2. A packet is looked up in the cache; if it is not there,
//! the table says which rule wins, a heuristic which bits tell it apart from the rules
//! before, and both together are the flow that is cached. Where all headers are sent,
//! the cache ends with as many flows as it takes to hold them all: the worst case, a scan
//! of all ports.
//!
//! # Data layout
//! Rules and flows are in tuple spaces: a hash table of values for each mask.
//!
//! # Lookup
//! ```text
//! for each mask: look up packet & mask
//! ```
//!
//! # Cost
//! O(m) for m masks, which is what the number of masks counts for.
//!
//! # References
//! [FCH14] §5.2.
//!
//! [FCH14]: classyard::papers#fch14

use foldhash::HashMap;
use std::sync::Arc;

use super::{Heuristic, TooMuchWork, and};
use crate::header_space::Term;

/// A flow that a cache may hold: for all its packets the same rule wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Megaflow<const W: usize> {
    /// The packets.
    pub term: Term<W>,
    /// The rule that wins, by its number in the table; none if none matches.
    pub winner: Option<usize>,
}

/// A table of rules.
#[derive(Clone, Debug)]
pub struct Table<const W: usize> {
    rules: Arc<[Term<W>]>,
    /// The first rule of each term.
    space: TupleSpace<W, usize>,
}

impl<const W: usize> Table<W> {
    /// A table of rules, the highest priority first.
    #[must_use]
    pub fn new(rules: Arc<[Term<W>]>) -> Table<W> {
        let mut space = TupleSpace::default();
        for (number, rule) in rules.iter().enumerate() {
            space.insert_first(rule, number);
        }
        Table { rules, space }
    }

    /// The rules, the highest priority first.
    #[must_use]
    pub fn rules(&self) -> &Arc<[Term<W>]> {
        &self.rules
    }

    /// The number of the rule that wins a packet.
    #[must_use]
    pub fn winner(&self, packet: &[u64; W]) -> Option<usize> {
        let found = self
            .space
            .tables
            .iter()
            .filter_map(|table| table.get(packet));
        found.min().copied()
    }

    /// The flow that a packet is in, with the bits that a heuristic chooses.
    ///
    /// # Errors
    /// [`TooMuchWork`] from the heuristic.
    pub fn megaflow(
        &self,
        packet: &[u64; W],
        heuristic: &mut impl Heuristic<W>,
    ) -> Result<Megaflow<W>, TooMuchWork> {
        let winner = self.winner(packet);
        let mut wanted = winner.map_or([0; W], |winner| *self.rules[winner].mask());
        let above = winner.unwrap_or(self.rules.len());
        heuristic.tell_apart(packet, above, &mut wanted)?;
        Ok(Megaflow {
            term: Term::new(*packet, wanted),
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
    /// No flow.
    #[must_use]
    pub fn new() -> Cache<W> {
        Cache::default()
    }

    /// The rule that wins a packet, as a flow in the cache says.
    #[must_use]
    pub fn get(&self, packet: &[u64; W]) -> Option<Option<usize>> {
        let mut tables = self.space.tables.iter();
        tables.find_map(|table| table.get(packet)).copied()
    }

    /// Adds a flow.
    pub fn insert(&mut self, flow: &Megaflow<W>) {
        self.space.insert_first(&flow.term, flow.winner);
    }

    /// How many flows there are.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.space
            .tables
            .iter()
            .map(|table| table.values.len())
            .sum()
    }

    /// How many masks they have.
    #[must_use]
    pub fn masks(&self) -> usize {
        self.space.tables.len()
    }
}

/// A hash table for each mask.
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
    /// Adds a term, unless the same one is there.
    fn insert_first(&mut self, term: &Term<W>, value: V) {
        let tables = &mut self.tables;
        let place = *self.places.entry(*term.mask()).or_insert_with(|| {
            tables.push(Tuple {
                mask: *term.mask(),
                values: HashMap::default(),
            });
            tables.len() - 1
        });
        tables[place].values.entry(*term.value()).or_insert(value);
    }
}

impl<const W: usize, V> Tuple<W, V> {
    #[inline]
    fn get(&self, packet: &[u64; W]) -> Option<&V> {
        self.values.get(&and(packet, &self.mask))
    }
}
