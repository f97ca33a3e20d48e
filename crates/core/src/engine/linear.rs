//! `linear`: every rule in turn. The oracle.
//!
//! # Idea
//! Rules stand in a list, best first. A lookup walks the list and stops at the
//! first rule that matches, or as soon as no later rule can improve the
//! candidate. There is nothing to get wrong, so every other engine is held
//! against this one.
//!
//! # Data layout
//! ```text
//! ranks:  [ rank ][ rank ][ rank ] …                        best first
//! words:  [ value mask high ][ value mask high ][ … ] …    in the same order
//! by_id:  { id → priority, action }                        to find a rule
//! ```
//!
//! # Lookup
//! ```text
//! for rule in rules:
//!     if not rule.rank beats best: stop
//!     if rule matches key: best = rule.rank; stop
//! ```
//!
//! # Cost
//! Lookup O(n), on average half of the rules above the winner. Insert and
//! remove O(n) to shift the list. Memory: the rules and one hash entry each.
//!
//! # Where we differ from the paper, and why
//! [TM19] Table II has linear search as a linked list in priority order; ours
//! is an array, because walking memory in order is what linear search is good
//! at.
//!
//! # References
//! [TM19] §II.B, Table II.
//!
//! [TM19]: crate::papers#tm19

use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::classifier::{LookupTrace, Probe};
use crate::engine::adapter::{Algorithm, BuildRequest, DynamicFamily, Updates, build_dynamic};
use crate::engine::observe::{FREE, Met, Prices};
use crate::engine::{Engine, EngineSpec, Wraps};
use crate::error::BuildError;
use crate::estimate::{Costs, Shape};
use crate::machine::Work;
use crate::memory::{bytes_of, map_bytes};
use crate::packed::PackedRule;
use crate::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::schema::Schema;
use crate::seed::MapState;
use crate::sort::sort_by_key;
use crate::unwildcard;

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "linear",
    summary: "every rule in turn, best first; the oracle",
    paper: "[TM19] §II.B",
    wraps: Wraps::Nothing,
    options: &[],
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: build_dynamic::<AnyWidth>,
    estimate,
};

/// What progress observers are told while building.
const SORTING: &str = "sorting rules";
const COPYING: &str = "copying rules";

/// Arrays of exactly the rules, and a map. An update moves half of the rules.
#[allow(clippy::cast_precision_loss)] // estimates
fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    let (schema, rules) = (shape.schema(), shape.rules());
    let row = schema.rule_words() * size_of::<u64>() + size_of::<Winner>();
    let count = rules as f64;
    let bytes = rules * row + map_bytes::<RuleId, Known>(rules);
    let met = Met::of(spec, shape, FREE)?;
    let moved = count * 0.5 * row as f64 / 64.0;
    Ok(Costs {
        bytes,
        build: Work::of(count * (BUILD + BUILD_BYTE * row as f64)),
        batch: BATCH.batch(&met, shape, bytes),
        single: SINGLE.single(&met, shape, bytes),
        update: Some(Work::of(UPDATE).reading_ahead(MOVED * moved, bytes)),
    })
}

/// What lookups cost, in batches and alone; what it was fitted to: see
/// `crate::estimate`.
const BATCH: Prices = Prices {
    lookup: 60.0,
    compare: 17.8,
    compare_word: 1.9,
    ..Prices::NONE
};
const SINGLE: Prices = Prices {
    lookup: 60.0,
    compare: 17.8,
    compare_word: 1.9,
    ..Prices::NONE
};

// Instructions; what they were fitted to: see `crate::estimate`.
/// Sorting and copying a rule.
const BUILD: f64 = 300.0;
const BUILD_BYTE: f64 = 1.0;
/// An update, and what moving a line of the array takes of reading one.
const UPDATE: f64 = 900.0;
const MOVED: f64 = 0.9;

/// The engine at every key width.
struct AnyWidth;

impl DynamicFamily for AnyWidth {
    type At<const W: usize> = Linear;
}

/// Rules in a list, best first.
struct Linear {
    schema: Arc<Schema>,
    ranks: Vec<Winner>,
    words: Vec<u64>,
    by_id: HashMap<RuleId, Known, MapState>,
}

/// What is known of a rule by its id.
#[derive(Clone, Copy)]
struct Known {
    priority: Priority,
    action: ActionId,
}

impl Known {
    fn of(rule: &RuleRef<'_>) -> Known {
        Known {
            priority: rule.priority(),
            action: rule.action(),
        }
    }
}

impl Linear {
    /// Where a rule is in the list.
    fn position(&self, id: RuleId, known: Known) -> usize {
        let winner = Winner::new(known.priority, id);
        self.ranks.partition_point(|other| other.beats(winner))
    }

    /// The rules that could improve a candidate, best first.
    fn better_than(&self, best: Winner) -> impl Iterator<Item = (Winner, PackedRule<'_>)> {
        let rows = self.words.chunks_exact(self.schema.rule_words());
        let packed = rows.map(|words| PackedRule::new(&self.schema, words));
        self.ranks
            .iter()
            .copied()
            .zip(packed)
            .take_while(move |(rank, _)| rank.beats(best))
    }
}

/// By what rules are sorted.
fn rank_of(rule: &Winner) -> u64 {
    rule.rank()
}

impl<const W: usize> Algorithm<W> for Linear {
    type Buffers = ();

    fn build(request: &mut BuildRequest<'_>) -> Result<Linear, BuildError> {
        let rules = request.rules;
        let words = rules.schema().rule_words();
        let rank_bytes = bytes_of::<Winner>(rules.len());
        let word_bytes = bytes_of::<u64>(rules.len().saturating_mul(words));
        let map = map_bytes::<RuleId, Known>(rules.len());
        let all = rank_bytes.saturating_add(word_bytes).saturating_add(map);
        request.limits.check_bytes(all)?;

        let mut monitor = request.monitor();
        monitor.begin(SORTING, rules.len())?;
        monitor.memory().keep(rank_bytes)?;
        let mut ranks = rules.winners().to_vec();
        sort_by_key(&mut ranks, rank_of, &mut monitor)?;

        monitor.begin(COPYING, rules.len())?;
        monitor.memory().keep(word_bytes.saturating_add(map))?;
        let mut linear = Linear {
            schema: Arc::clone(rules.schema()),
            ranks,
            words: Vec::with_capacity(rules.len() * words),
            by_id: HashMap::with_capacity_and_hasher(rules.len(), MapState::default()),
        };
        for &rank in &linear.ranks {
            let id = rank.rule().expect("a rule's rank");
            let rule = rules.get(id).expect("it is of this set");
            linear.by_id.insert(id, Known::of(&rule));
            linear.words.extend_from_slice(rule.words());
            monitor.advance(1)?;
        }
        Ok(linear)
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let first = self.better_than(best).find(|(_, rule)| rule.matches(key));
        first.map_or(best, |(rank, _)| rank)
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        for (rank, rule) in self.better_than(best) {
            if rule.matches(key) {
                unwildcard::confirm(&rule, key, mask);
                return rank;
            }
            unwildcard::refute(&rule, key, mask);
        }
        best
    }

    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let winner = self.improve(key, Winner::MISS);
        let compared = self.ranks.iter().take_while(|rank| !winner.beats(**rank));
        LookupTrace {
            probes: vec![Probe {
                table: 0,
                mask: vec![0; W],
                rules: self.ranks.len(),
                compared: compared.filter_map(|rank| rank.rule()).collect(),
                winner,
            }],
            tables: 1,
            winner,
        }
    }

    fn rules(&self) -> usize {
        self.ranks.len()
    }

    fn tables(&self) -> usize {
        1
    }

    fn bytes(&self) -> usize {
        self.ranks.capacity() * size_of::<Winner>()
            + self.words.capacity() * size_of::<u64>()
            + self.by_id.allocation_size()
    }
}

impl<const W: usize> Updates<W> for Linear {
    fn contains(&self, id: RuleId) -> bool {
        self.by_id.contains_key(&id)
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let known = *self.by_id.get(&id)?;
        let at = self.position(id, known);
        let width = self.schema.rule_words();
        words.extend_from_slice(&self.words[at * width..(at + 1) * width]);
        Some(known.priority)
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        Some(self.by_id.get(&id)?.action)
    }

    fn winners(&self) -> Vec<Winner> {
        self.ranks.clone()
    }

    fn insert(&mut self, rule: &RuleRef<'_>) -> bool {
        let Entry::Vacant(entry) = self.by_id.entry(rule.id()) else {
            return false;
        };
        entry.insert(Known::of(rule));
        let at = self.ranks.partition_point(|rank| rank.beats(rule.winner()));
        self.ranks.insert(at, rule.winner());
        let row = at * self.schema.rule_words();
        self.words.splice(row..row, rule.words().iter().copied());
        true
    }

    fn remove(&mut self, id: RuleId) -> bool {
        let Some(known) = self.by_id.remove(&id) else {
            return false;
        };
        let at = self.position(id, known);
        self.ranks.remove(at);
        let width = self.schema.rule_words();
        self.words.drain(at * width..(at + 1) * width);
        let left = self.ranks.len();
        if left * 5 < self.ranks.capacity() * 2 {
            self.ranks.shrink_to(left / 2 * 3);
            self.words.shrink_to(left / 2 * 3 * width);
            self.by_id.shrink_to(left / 2 * 3);
        }
        true
    }
}
