//! `linear`: compares every rule in turn. The oracle.
//!
//! # Idea
//! Rules are in a list, best first. A lookup walks the list and stops at the first
//! rule that matches, or when no later rule can improve the candidate. The algorithm
//! is so simple that the tests compare every other engine with it.
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
//! Lookup O(n), on average half of the rules above the winner. Insert and remove
//! O(n), to shift the list. Memory: the rules, and one hash entry for each.
//!
//! # Where we differ from the paper, and why
//! [TM19] Table II has linear search as a linked list in priority order. Ours is an
//! array, because linear search is fastest when it reads memory in order.
//!
//! # References
//! [TM19] §II.B, Table II.
//!
//! [TM19]: crate::papers#tm19

use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::budget::memory::{bytes_of, map_bytes};
use crate::contract::adapter::{Algorithm, DynamicEveryWidth, Updates, build_dynamic};
use crate::contract::classifier::{LookupTrace, Probe};
use crate::contract::observe::{FREE, Met, Prices};
use crate::contract::spec::BuildRequest;
use crate::contract::spec::EngineSpec;
use crate::contract::spec::{Engine, Wraps};
use crate::cost::estimate::{Costs, Shape};
use crate::cost::machine::Work;
use crate::model::error::BuildError;
use crate::model::packed::PackedRule;
use crate::model::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::model::schema::Schema;
use crate::model::seed::MapState;
use crate::parts::sort::sort_by_key;
use crate::parts::unwildcard;

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

/// Names of the build's stages.
const SORTING: &str = "sorting rules";
const COPYING: &str = "copying rules";

/// Memory: arrays of exactly the number of rules, and a map. An update moves half of
/// the rules.
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
        build: Work::of(count * (BUILD_INSTRUCTIONS + BUILD_BYTE_INSTRUCTIONS * row as f64)),
        batch: BATCH.batch(&met, shape, bytes),
        single: SINGLE.single(&met, shape, bytes),
        update: Some(
            Work::of(UPDATE_INSTRUCTIONS).reading_ahead(READS_PER_MOVED_LINE * moved, bytes),
        ),
    })
}

/// Costs of lookups in batches and of single lookups. `crate::cost::estimate` describes the
/// measurements behind them.
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

// Numbers of instructions. `crate::cost::estimate` describes the measurements behind them.
/// To sort and copy a rule.
const BUILD_INSTRUCTIONS: f64 = 300.0;
const BUILD_BYTE_INSTRUCTIONS: f64 = 1.0;
/// For an update; and the cost of moving a cache line of the array, in reads of a
/// line.
const UPDATE_INSTRUCTIONS: f64 = 900.0;
const READS_PER_MOVED_LINE: f64 = 0.9;

/// The engine at every key width.
struct AnyWidth;

impl DynamicEveryWidth for AnyWidth {
    type At<const W: usize> = Linear;
}

/// Rules in a list, best first.
struct Linear {
    schema: Arc<Schema>,
    ranks: Vec<Winner>,
    words: Vec<u64>,
    by_id: HashMap<RuleId, Known, MapState>,
}

/// The priority and action of a rule, found by its id.
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
    /// The index of a rule in the list.
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

/// The key by which rules are sorted.
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
        let total_bytes = rank_bytes.saturating_add(word_bytes).saturating_add(map);
        request.limits.check_bytes(total_bytes)?;

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
        let index = self.position(id, known);
        let width = self.schema.rule_words();
        words.extend_from_slice(&self.words[index * width..(index + 1) * width]);
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
        let index = self.ranks.partition_point(|rank| rank.beats(rule.winner()));
        self.ranks.insert(index, rule.winner());
        let row = index * self.schema.rule_words();
        self.words.splice(row..row, rule.words().iter().copied());
        true
    }

    fn remove(&mut self, id: RuleId) -> bool {
        let Some(known) = self.by_id.remove(&id) else {
            return false;
        };
        let index = self.position(id, known);
        self.ranks.remove(index);
        let width = self.schema.rule_words();
        self.words.drain(index * width..(index + 1) * width);
        let rules = self.ranks.len();
        if rules * 5 < self.ranks.capacity() * 2 {
            self.ranks.shrink_to(rules / 2 * 3);
            self.words.shrink_to(rules / 2 * 3 * width);
            self.by_id.shrink_to(rules / 2 * 3);
        }
        true
    }
}
