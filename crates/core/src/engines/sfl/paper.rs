//! The published form: rules are identified by indices, which offsets correct.
//!
//! # Idea
//! The master rule set is a list, best first. Rules of the inner engine have an *old
//! index*: their place in the list when the engine was built, counted from 1. Changes
//! since then are in *update nodes*, ascending by old index:
//! ```text
//! node j:  [ index j | delete flag | rules inserted before old rule j, best first ]
//! node N+1: rules inserted behind all N old rules
//! ```
//! The index of a rule is its old index, plus the number of rules inserted before it,
//! minus the number of old rules deleted before it.
//!
//! # Lookup
//! ```text
//! found = the inner engine's old index, N + 1 if it has no match;  offset = 0
//! for node with node.index <= found:
//!     if one of its rules matches: return its index in the master list
//!     if node.index = found and its delete flag is set:
//!         search the master list behind it
//!     offset += rules of the node - delete flag
//! return found + offset
//! ```
//!
//! # Updates
//! An insertion finds the node of the next old rule, or makes it. A deletion removes a
//! rule from its node, or sets the delete flag of an old rule's node. Both shift the
//! master list. The update that exceeds δ rebuilds.
//!
//! # Where we differ from the paper, and why
//! - Nodes are in an array instead of a linked list; searches find the same nodes in the
//!   same order.
//! - The next old rule is the next rule of the inner engine, deleted or not. Algorithm 1
//!   searches the master list, which does not have deleted rules. Then a rule inserted
//!   before another rule could get into a later node, and lose to it.
//!
//! # References
//! [SFL17] §IV, Algorithms 1 to 3.
//!
//! [SFL17]: crate::papers#sfl17

use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::{Counted, Settings, build_cost, inner_of};
use crate::budget::memory::{Memory, bytes_of, map_bytes};
use crate::budget::monitor::Monitor;
use crate::budget::progress::{NoProgress, Progress};
use crate::contract::adapter::{Algorithm, Updates};
use crate::contract::classifier::{Classifier, LookupTrace, Metric, Probe, Scratch};
use crate::contract::spec::BuildRequest;
use crate::contract::spec::EngineSpec;
use crate::model::error::BuildError;
use crate::model::key::KeySlice;
use crate::model::limits::Limits;
use crate::model::packed::PackedRule;
use crate::model::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::seed::MapState;
use crate::parts::unwildcard;

/// Name of the build phase for the progress callback.
const COPYING: &str = "copying rules";

/// An inner engine, the master list and the update nodes.
pub(super) struct Paper {
    spec: EngineSpec,
    limits: Limits,
    settings: Settings,
    schema: Arc<Schema>,
    /// The master list, and the rules' words in the same order.
    ranks: Vec<Winner>,
    words: Vec<u64>,
    /// The priority and action of each rule, by id.
    by_id: ById,
    /// Built over the old rules: the rule with old index i has id i - 1.
    inner: Box<dyn Classifier>,
    inner_bytes: usize,
    /// The ranks of the old rules, best first.
    old: Vec<Winner>,
    /// The update buffer.
    nodes: Vec<Node>,
    /// The number of updates since the last rebuild, and the largest number allowed.
    updates: usize,
    delta: usize,
    /// The number of updates before the next rebuild is tried.
    patience: usize,
    rebuilds: usize,
}

type ById = HashMap<RuleId, Known, MapState>;

/// Ranks and words of the rules, best first, and priorities and actions by id.
type MasterList = (Vec<Winner>, Vec<u64>, ById);

#[derive(Clone, Copy)]
struct Known {
    priority: Priority,
    action: ActionId,
}

/// Changes at an old rule and directly before it.
struct Node {
    index: usize,
    deleted: bool,
    /// Best first: rank and words.
    inserted: Vec<(Winner, Box<[u64]>)>,
}

/// The result of a walk through the nodes.
enum Found {
    /// The rule at an index of the master list, counted from 1.
    Index(usize),
    /// The rule was deleted: search from that index on.
    SearchFrom(usize),
    Nothing,
}

impl Paper {
    /// Bytes of `rules` rules, without the inner engine.
    pub(super) fn bytes_of(schema: &Schema, rules: usize) -> usize {
        let words = bytes_of::<u64>(rules.saturating_mul(schema.rule_words()));
        let ranks = 2 * bytes_of::<Winner>(rules);
        words.saturating_add(ranks + map_bytes::<RuleId, Known>(rules))
    }

    fn rule(&self, place: usize) -> PackedRule<'_> {
        let words = self.schema.rule_words();
        PackedRule::new(&self.schema, &self.words[place * words..][..words])
    }

    /// Returns the place of a rule in the master list, or its place if it were inserted.
    fn place(&self, rank: Winner) -> usize {
        self.ranks.partition_point(|other| other.beats(rank))
    }

    /// Returns the rules of a node.
    fn inserted<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = PackedRule<'a>> {
        let words = node.inserted.iter();
        words.map(|(_, words)| PackedRule::new(&self.schema, words))
    }

    /// Returns the old index of the inner engine's outcome, N + 1 for a miss.
    fn old_index(&self, found: Winner) -> usize {
        (found.rule()).map_or(self.old.len(), RuleId::index) + 1
    }

    /// Algorithm 3 from line 5 on: returns the current index of a rule. Calls `visit`
    /// for each comparison with an inserted rule, with the outcome.
    fn correct(
        &self,
        key: &[u64],
        found: usize,
        mut visit: impl FnMut(&PackedRule<'_>, Winner, bool),
    ) -> Found {
        let (mut inserted, mut deleted) = (0, 0);
        for node in self.nodes.iter().take_while(|node| node.index <= found) {
            for (at, rule) in self.inserted(node).enumerate() {
                let matches = rule.matches(key);
                visit(&rule, node.inserted[at].0, matches);
                if matches {
                    return Found::Index(node.index + inserted + at - deleted);
                }
            }
            inserted += node.inserted.len();
            if node.deleted && node.index == found {
                return Found::SearchFrom(found + inserted - deleted);
            }
            deleted += usize::from(node.deleted);
        }
        if found > self.old.len() {
            return Found::Nothing;
        }
        Found::Index(found + inserted - deleted)
    }

    /// Returns the rank of a rule of the inner engine, or a miss if the rule was
    /// deleted.
    fn now(&self, named: RuleId) -> Winner {
        let rank = self.old[named.index()];
        let node = (self.nodes).binary_search_by_key(&(named.index() + 1), |node| node.index);
        match node {
            Ok(at) if self.nodes[at].deleted => Winner::MISS,
            _ => rank,
        }
    }

    /// Returns the rule of the master list for the inner engine's outcome.
    fn resolve(&self, key: &[u64], found: Winner) -> Winner {
        match self.correct(key, self.old_index(found), |_, _, _| ()) {
            Found::Index(index) => self.ranks[index - 1],
            Found::SearchFrom(index) => {
                let candidates = index - 1..self.ranks.len();
                let mut candidates = candidates.filter(|&place| self.rule(place).matches(key));
                candidates
                    .next()
                    .map_or(Winner::MISS, |place| self.ranks[place])
            }
            Found::Nothing => Winner::MISS,
        }
    }

    /// Returns the node of an old index; makes it if there is none.
    fn node(&mut self, index: usize) -> &mut Node {
        let position = self.nodes.partition_point(|node| node.index < index);
        if self
            .nodes
            .get(position)
            .is_none_or(|node| node.index != index)
        {
            let node = Node {
                index,
                deleted: false,
                inserted: Vec::new(),
            };
            self.nodes.insert(position, node);
        }
        &mut self.nodes[position]
    }

    /// Builds an inner engine over the master list. The ids of its rules are their
    /// places, and all have the same priority, so the first matching rule wins.
    fn spawn(
        spec: &EngineSpec,
        schema: &Arc<Schema>,
        words: &[u64],
        limits: &Limits,
        progress: &mut dyn Progress,
        memory: &mut Memory,
    ) -> Result<Box<dyn Classifier>, BuildError> {
        let mut rules = RuleSet::new(schema);
        rules.reserve(words.len() / schema.rule_words());
        for (place, words) in words.chunks_exact(schema.rule_words()).enumerate() {
            let rule = RuleRef {
                schema,
                id: RuleId::from_index(place),
                priority: Priority(0),
                action: ActionId(0),
                cookie: 0,
                words,
            };
            rules.push(rule).expect("ids are places");
        }
        spec.build_within(&rules, limits, progress, memory)
    }

    fn rebuild_now(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let mut memory = Memory::unlimited();
        let mut counted = Counted::new(progress);
        let inner = Paper::spawn(
            &self.spec,
            &self.schema,
            &self.words,
            &self.limits,
            &mut counted,
            &mut memory,
        )?;
        self.delta = (self.settings).delta(build_cost(&self.schema, counted.reports));
        self.inner_bytes = inner.stats().bytes();
        self.inner = inner;
        self.old = self.ranks.clone();
        self.nodes = Vec::new();
        (self.updates, self.patience) = (0, 0);
        self.rebuilds += 1;
        Ok(())
    }

    fn copy(rules: &RuleSet, monitor: &mut Monitor<'_>) -> Result<MasterList, BuildError> {
        let (schema, count) = (rules.schema(), rules.len());
        monitor.begin(COPYING, count)?;
        monitor.memory().keep(Self::bytes_of(schema, count))?;
        monitor.memory().take(bytes_of::<u32>(count))?;
        let order = rules.by_rank();
        let mut ranks = Vec::with_capacity(count);
        let mut words = Vec::with_capacity(count * schema.rule_words());
        let mut by_id = HashMap::with_capacity_and_hasher(count, MapState::default());
        for at in order {
            let rule = rules.rule(at as usize);
            ranks.push(rule.winner());
            words.extend_from_slice(rule.words());
            by_id.insert(rule.id(), Known::of(&rule));
            monitor.advance(1)?;
        }
        monitor.memory().give_back(bytes_of::<u32>(count));
        Ok((ranks, words, by_id))
    }
}

impl Known {
    fn of(rule: &RuleRef<'_>) -> Known {
        Known {
            priority: rule.priority(),
            action: rule.action(),
        }
    }
}

impl<const W: usize> Algorithm<W> for Paper {
    type Buffers = (Scratch, Vec<Winner>);

    fn build(request: &mut BuildRequest<'_>) -> Result<Paper, BuildError> {
        let spec = inner_of(request.spec).clone();
        let settings = Settings::of(request.spec);
        let schema = Arc::clone(request.schema());
        let (rules, limits) = (request.rules, *request.limits);
        let (ranks, words, by_id) = Paper::copy(rules, &mut request.monitor())?;
        // Memory for a rule set with places as ids.
        let renamed = Paper::renamed_bytes(&schema, ranks.len());
        request.memory.take(renamed)?;
        let mut counted = Counted::new(request.progress);
        let inner = Paper::spawn(
            &spec,
            &schema,
            &words,
            &limits,
            &mut counted,
            request.memory,
        )?;
        let delta = settings.delta(build_cost(&schema, counted.reports));
        request.memory.give_back(renamed);
        Ok(Paper {
            spec,
            limits,
            settings,
            schema,
            old: ranks.clone(),
            ranks,
            words,
            by_id,
            inner_bytes: inner.stats().bytes(),
            inner,
            nodes: Vec::new(),
            updates: 0,
            delta,
            patience: 0,
            rebuilds: 0,
        })
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let inner_winner = self.inner.classify_one(key);
        self.resolve(key, inner_winner).or(best)
    }

    fn improve_batch(
        &self,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        (scratch, inner_winners): &mut (Scratch, Vec<Winner>),
    ) {
        if keys.is_empty() {
            return;
        }
        inner_winners.clear();
        inner_winners.resize(keys.len(), Winner::MISS);
        let slice = KeySlice::new(keys.as_flattened(), W);
        self.inner.classify_batch(slice, inner_winners, scratch);
        for ((key, winner), &inner_winner) in keys.iter().zip(winners).zip(inner_winners.iter()) {
            *winner = self.resolve(key, inner_winner).or(*winner);
        }
    }

    /// Counts everything that is compared, whatever the candidate.
    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        let inner = &self.inner;
        let inner_winner = inner.improve_masked(key, Winner::MISS, mask);
        let outcome = self.correct(key, self.old_index(inner_winner), |rule, _, matches| {
            if matches {
                unwildcard::confirm(rule, key, mask);
            } else {
                unwildcard::refute(rule, key, mask);
            }
        });
        let winner = match outcome {
            Found::Index(index) => self.ranks[index - 1],
            Found::Nothing => Winner::MISS,
            Found::SearchFrom(index) => {
                let mut winner = Winner::MISS;
                for place in index - 1..self.ranks.len() {
                    let rule = self.rule(place);
                    if rule.matches(key) {
                        unwildcard::confirm(&rule, key, mask);
                        winner = self.ranks[place];
                        break;
                    }
                    unwildcard::refute(&rule, key, mask);
                }
                winner
            }
        };
        winner.or(best)
    }

    /// Lists the inner engine's probes, then the buffer, then the searched part of the
    /// master list.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let inner_winner = self.inner.classify_one(key);
        let winner = self.resolve(key, inner_winner);
        let mut probes = Vec::new();
        for probe in self.inner.trace(key).probes {
            let compared = probe.compared.iter().map(|rule| self.now(*rule));
            probes.push(Probe {
                compared: compared.filter_map(Winner::rule).collect(),
                winner: (probe.winner.rule()).map_or(Winner::MISS, |rule| self.now(rule)),
                ..probe
            });
        }
        let mut compared = Vec::new();
        let outcome = self.correct(key, self.old_index(inner_winner), |_, rank, _| {
            compared.extend(rank.rule());
        });
        let tables = self.inner.stats().tables;
        let probe = |table, rules, compared, won| Probe {
            table,
            mask: vec![0; W],
            rules,
            compared,
            winner: if won { winner } else { Winner::MISS },
        };
        let waiting = self.nodes.iter().map(|node| node.inserted.len()).sum();
        let won = compared.last() == winner.rule().as_ref() && !compared.is_empty();
        probes.push(probe(tables, waiting, compared, won));
        if let Found::SearchFrom(index) = outcome {
            let searched = self.ranks[index - 1..].iter();
            let searched = searched.take_while(|rank| !winner.beats(**rank));
            let searched = searched.filter_map(|rank| rank.rule()).collect();
            let won = !winner.is_miss();
            probes.push(probe(tables + 1, self.ranks.len(), searched, won));
        }
        LookupTrace {
            probes,
            tables: tables + 2,
            winner,
        }
    }

    fn rules(&self) -> usize {
        self.ranks.len()
    }

    fn tables(&self) -> usize {
        self.inner.stats().tables + 2
    }

    fn bytes(&self) -> usize {
        let ranks = self.ranks.capacity() + self.old.capacity();
        let nodes = self.nodes.iter().map(|node| {
            let words: usize = node.inserted.iter().map(|(_, words)| words.len()).sum();
            bytes_of::<(Winner, Box<[u64]>)>(node.inserted.capacity()) + bytes_of::<u64>(words)
        });
        self.inner_bytes
            + bytes_of::<Winner>(ranks)
            + bytes_of::<u64>(self.words.capacity())
            + self.by_id.allocation_size()
            + bytes_of::<Node>(self.nodes.capacity())
            + nodes.sum::<usize>()
    }

    fn metrics(&self) -> Vec<Metric> {
        let inserted = self.nodes.iter().map(|node| node.inserted.len());
        let deleted = self.nodes.iter().filter(|node| node.deleted);
        vec![
            Metric::count("rules in the update buffer", inserted.sum()),
            Metric::count("deleted rules in the inner engine", deleted.count()),
            Metric::count("changes that may wait", self.delta),
            Metric::count("rebuilds", self.rebuilds),
        ]
    }
}

impl Paper {
    /// Bytes of a rule set with places as ids, for building an inner engine.
    fn renamed_bytes(schema: &Schema, rules: usize) -> usize {
        let row = schema.rule_words() * size_of::<u64>();
        let row = row + size_of::<Winner>() + size_of::<ActionId>() + 2 * size_of::<u32>();
        rules.saturating_mul(row)
    }
}

impl<const W: usize> Updates<W> for Paper {
    fn contains(&self, id: RuleId) -> bool {
        self.by_id.contains_key(&id)
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let known = self.by_id.get(&id)?;
        let index = self.place(Winner::new(known.priority, id));
        let width = self.schema.rule_words();
        words.extend_from_slice(&self.words[index * width..][..width]);
        Some(known.priority)
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        Some(self.by_id.get(&id)?.action)
    }

    fn winners(&self) -> Vec<Winner> {
        self.ranks.clone()
    }

    /// Algorithm 1.
    fn insert(&mut self, rule: &RuleRef<'_>) -> bool {
        let Entry::Vacant(entry) = self.by_id.entry(rule.id()) else {
            return false;
        };
        entry.insert(Known::of(rule));
        let rank = rule.winner();
        let index = self.place(rank);
        self.ranks.insert(index, rank);
        let row = index * self.schema.rule_words();
        self.words.splice(row..row, rule.words().iter().copied());

        let next_old = self.old.partition_point(|old| old.beats(rank)) + 1;
        let inserted = &mut self.node(next_old).inserted;
        let position = inserted.partition_point(|(other, _)| other.beats(rank));
        inserted.insert(position, (rank, rule.words().into()));
        true
    }

    /// Algorithm 2.
    fn remove(&mut self, id: RuleId) -> bool {
        let Some(known) = self.by_id.remove(&id) else {
            return false;
        };
        let rank = Winner::new(known.priority, id);
        let index = self.place(rank);
        self.ranks.remove(index);
        let width = self.schema.rule_words();
        self.words.drain(index * width..(index + 1) * width);
        let remaining = self.ranks.len();
        if remaining * 5 < self.ranks.capacity() * 2 {
            self.ranks.shrink_to(remaining / 2 * 3);
            self.words.shrink_to(remaining / 2 * 3 * width);
            self.by_id.shrink_to(remaining / 2 * 3);
        }

        let index = self.old.partition_point(|old| old.beats(rank)) + 1;
        let node = self.node(index);
        match node
            .inserted
            .binary_search_by_key(&rank.rank(), |(rank, _)| rank.rank())
        {
            Ok(at) => {
                node.inserted.remove(at);
                self.nodes
                    .retain(|node| node.deleted || !node.inserted.is_empty());
            }
            Err(_) => node.deleted = true,
        }
        true
    }

    fn settle(&mut self, changes: usize) {
        self.updates += changes;
        let is_sparse = self.old.len() > self.ranks.len() / 4 * 5 + 16;
        let due = self.updates > self.delta || is_sparse;
        if due && self.updates >= self.patience && self.rebuild_now(&mut NoProgress).is_err() {
            self.patience = self.updates * 2;
        }
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.rebuild_now(progress)
    }
}
