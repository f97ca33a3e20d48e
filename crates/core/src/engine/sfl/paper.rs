//! The published form: rules known by their indices, and corrected.
//!
//! # Idea
//! The master rule set is a list, best first. Rules of the inner engine have an
//! *old index*, their place in the list when it was built, counted from 1. What
//! changed since is in *update nodes*, ascending by old index:
//! ```text
//! node j:  [ index j | delete flag | rules inserted before old rule j, best first ]
//! node N+1: rules inserted behind all N old rules
//! ```
//! A rule is at its old index, plus the rules inserted before it, less the old
//! rules deleted before it.
//!
//! # Lookup
//! ```text
//! found = the inner engine's old index, N + 1 for none;  offset = 0
//! for node with node.index <= found:
//!     if one of its rules matches: return its index in the master list
//!     if node.index = found and its delete flag is set:
//!         search the master list behind it
//!     offset += rules of the node - delete flag
//! return found + offset
//! ```
//!
//! # Updates
//! Insertion finds the node of the next old rule, or makes it. Deletion takes a
//! rule out of its node, or sets the delete flag of an old rule's node. Both
//! shift the master list. The update after which more than δ were made rebuilds.
//!
//! # Where we differ from the paper, and why
//! - Nodes are in an array and not in a linked list, which finds the same nodes
//!   in the same order.
//! - The next old rule is the next rule of the inner engine, be it deleted or
//!   not. Algorithm 1 looks for it in the master list, where deleted rules are
//!   no more. Then a rule inserted before another one could get into a later
//!   node, and lose to it.
//!
//! # References
//! [SFL17] §IV, Algorithms 1 to 3.
//!
//! [SFL17]: crate::papers#sfl17

use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::{Counted, Settings, inner_of};
use crate::classifier::{Classifier, LookupTrace, Metric, Probe, Scratch};
use crate::engine::EngineSpec;
use crate::engine::adapter::{Algorithm, BuildRequest, Updates};
use crate::error::BuildError;
use crate::key::KeySlice;
use crate::limits::Limits;
use crate::memory::{Memory, bytes_of, map_bytes};
use crate::monitor::Monitor;
use crate::packed::PackedRule;
use crate::progress::{NoProgress, Progress};
use crate::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::ruleset::RuleSet;
use crate::schema::Schema;
use crate::seed::MapState;
use crate::unwildcard;

/// What progress observers are told while building.
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
    /// What is known of a rule by its id.
    by_id: ById,
    /// Over the old rules: the rule of old index i has id i - 1.
    inner: Box<dyn Classifier>,
    inner_bytes: usize,
    /// The ranks of the old rules, best first.
    old: Vec<Winner>,
    /// The update buffer.
    nodes: Vec<Node>,
    /// Updates since the last rebuild, and how many there may be.
    updates: usize,
    delta: usize,
    /// No rebuild is tried before so many updates.
    patience: usize,
    rebuilds: usize,
}

type ById = HashMap<RuleId, Known, MapState>;

/// Ranks and words of the rules, best first, and what is known by id.
type MasterList = (Vec<Winner>, Vec<u64>, ById);

#[derive(Clone, Copy)]
struct Known {
    priority: Priority,
    action: ActionId,
}

/// What changed at an old rule and right before it.
struct Node {
    index: usize,
    deleted: bool,
    /// Best first: rank and words.
    inserted: Vec<(Winner, Box<[u64]>)>,
}

/// What a walk through the nodes came to.
enum Found {
    /// The rule at an index of the master list, from 1.
    Index(usize),
    /// The rule was deleted: search from that index on.
    SearchFrom(usize),
    Nothing,
}

impl Paper {
    /// The bytes of that many rules beside the inner engine.
    pub(super) fn bytes_of(schema: &Schema, rules: usize) -> usize {
        let words = bytes_of::<u64>(rules.saturating_mul(schema.rule_words()));
        let ranks = 2 * bytes_of::<Winner>(rules);
        words.saturating_add(ranks + map_bytes::<RuleId, Known>(rules))
    }

    fn rule(&self, place: usize) -> PackedRule<'_> {
        let words = self.schema.rule_words();
        PackedRule::new(&self.schema, &self.words[place * words..][..words])
    }

    /// The place of a rule in the master list, or the one where it would be.
    fn place(&self, rank: Winner) -> usize {
        self.ranks.partition_point(|other| other.beats(rank))
    }

    /// The rules that a node has, as they are compared.
    fn inserted<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = PackedRule<'a>> {
        let words = node.inserted.iter();
        words.map(|(_, words)| PackedRule::new(&self.schema, words))
    }

    /// The old index of the inner engine's outcome, N + 1 for none.
    fn old_index(&self, found: Winner) -> usize {
        (found.rule()).map_or(self.old.len(), RuleId::index) + 1
    }

    /// Algorithm 3 from line 5 on: the index that a rule has now. `visit` is told
    /// of each comparison with an inserted rule, and what came of it.
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

    /// What a rule of the inner engine is called, a miss if it is gone.
    fn now(&self, named: RuleId) -> Winner {
        let rank = self.old[named.index()];
        let node = (self.nodes).binary_search_by_key(&(named.index() + 1), |node| node.index);
        match node {
            Ok(at) if self.nodes[at].deleted => Winner::MISS,
            _ => rank,
        }
    }

    /// The rule of the master list that the inner engine's outcome stands for.
    fn resolve(&self, key: &[u64], found: Winner) -> Winner {
        match self.correct(key, self.old_index(found), |_, _, _| ()) {
            Found::Index(index) => self.ranks[index - 1],
            Found::SearchFrom(index) => {
                let places = index - 1..self.ranks.len();
                let mut places = places.filter(|&place| self.rule(place).matches(key));
                places
                    .next()
                    .map_or(Winner::MISS, |place| self.ranks[place])
            }
            Found::Nothing => Winner::MISS,
        }
    }

    /// The node of an old index, made if there is none.
    fn node(&mut self, index: usize) -> &mut Node {
        let at = self.nodes.partition_point(|node| node.index < index);
        if self.nodes.get(at).is_none_or(|node| node.index != index) {
            let node = Node {
                index,
                deleted: false,
                inserted: Vec::new(),
            };
            self.nodes.insert(at, node);
        }
        &mut self.nodes[at]
    }

    /// Builds an inner engine over the master list. Its rules are named by their
    /// places and have one priority, so the first that matches wins.
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
        self.delta = self.settings.delta(&self.schema, counted.reports);
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
        // The rules under their places' names, as in a rule set.
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
        let delta = settings.delta(&schema, counted.reports);
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
        let found = self.inner.classify_one(key);
        self.resolve(key, found).or(best)
    }

    fn improve_batch(
        &self,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        (scratch, found): &mut (Scratch, Vec<Winner>),
    ) {
        if keys.is_empty() {
            return;
        }
        found.clear();
        found.resize(keys.len(), Winner::MISS);
        let slice = KeySlice::new(keys.as_flattened(), W);
        self.inner.classify_batch(slice, found, scratch);
        for ((key, winner), &found) in keys.iter().zip(winners).zip(found.iter()) {
            *winner = self.resolve(key, found).or(*winner);
        }
    }

    /// All that is compared counts, whatever the candidate.
    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        let inner = &self.inner;
        let found = inner.improve_masked(key, Winner::MISS, mask);
        let outcome = self.correct(key, self.old_index(found), |rule, _, matches| {
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

    /// The inner engine as one table, then the buffer, then what was searched of
    /// the master list.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let found = self.inner.classify_one(key);
        let winner = self.resolve(key, found);
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
        let outcome = self.correct(key, self.old_index(found), |_, rank, _| {
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
    /// The bytes of the renamed rules that an inner engine is built from.
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
        let place = self.place(Winner::new(known.priority, id));
        let width = self.schema.rule_words();
        words.extend_from_slice(&self.words[place * width..][..width]);
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
        let place = self.place(rank);
        self.ranks.insert(place, rank);
        let row = place * self.schema.rule_words();
        self.words.splice(row..row, rule.words().iter().copied());

        let next_old = self.old.partition_point(|old| old.beats(rank)) + 1;
        let inserted = &mut self.node(next_old).inserted;
        let at = inserted.partition_point(|(other, _)| other.beats(rank));
        inserted.insert(at, (rank, rule.words().into()));
        true
    }

    /// Algorithm 2.
    fn remove(&mut self, id: RuleId) -> bool {
        let Some(known) = self.by_id.remove(&id) else {
            return false;
        };
        let rank = Winner::new(known.priority, id);
        let place = self.place(rank);
        self.ranks.remove(place);
        let width = self.schema.rule_words();
        self.words.drain(place * width..(place + 1) * width);
        let left = self.ranks.len();
        if left * 5 < self.ranks.capacity() * 2 {
            self.ranks.shrink_to(left / 2 * 3);
            self.words.shrink_to(left / 2 * 3 * width);
            self.by_id.shrink_to(left / 2 * 3);
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
        let gone = self.old.len() > self.ranks.len() / 4 * 5 + 16;
        let due = self.updates > self.delta || gone;
        if due && self.updates >= self.patience && self.rebuild_now(&mut NoProgress).is_err() {
            self.patience = self.updates * 2;
        }
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.rebuild_now(progress)
    }
}
