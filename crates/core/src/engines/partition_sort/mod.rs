//! `partition-sort`: few partitions of sortable rules, each a search tree over all
//! fields.
//!
//! # Idea
//! In each field a rule has an interval. Rules are *sortable* ([PS16]) if the intervals
//! of any two of them are equal or disjoint in a first field; rules that are equal there
//! are equal or disjoint in a second field, and so on. Then no header matches two
//! different rules, and a search tree finds it: a tree over the intervals of the first
//! field, and below each interval a tree over the second field. Rules are divided into
//! few sortable *partitions*, which are ordered by their best rules. A lookup ends when
//! no later partition can win.
//!
//! # Data layout
//! ```text
//! order   [ best | root | number | rules ] …                  best first
//!                    │
//! nodes   [ 8 lower ends ][ best | 9 × next | a rule | word, shift … ]   128 B
//!            ascending            │
//!                                 ├─▶ node of the same field     a B-tree
//!                                 ├─▶ node of another field      equal so far
//!                                 └─▶ list: [ rule ] ─next─▶ [ rule ]    64 B each
//! ids     { rule id → rule }              for IPv4, up to `leaf` rules, best first
//! rest    tuple space of rules that no partition takes
//! ```
//! A node shifts a word of the key up until the field's highest bit is the word's
//! highest bit, and counts the lower ends that are at most the result. The count is the
//! index in `next`. Eight lower ends take one cache line; `next` is in a second line.
//! Nodes of one field are a B-tree over the field's intervals. Inner nodes and nodes at
//! the bottom of the B-tree differ only in what their entries lead to.
//!
//! Lookups do not read upper ends. A header between two intervals follows the lower
//! interval, and does not match the rules in the list that it reaches. Updates read
//! upper ends from the rules.
//!
//! # Build
//! ```text
//! until no rule is left:
//!     tree(all remaining rules) becomes a partition
//!
//! tree(rules):
//!     at most `leaf` rules: a list of them
//!     for each field: classes of rules with the same interval;
//!                     total = the largest weight of disjoint classes
//!     take the field with the largest total; leave the other classes to later trees
//!     tree(class) for each class, and nodes above
//!     if no field separates rules: list of the best `leaf`; later trees take the rest
//! ```
//! This is GrInd of [PS16]: weighted interval scheduling for each field, then the field
//! that keeps the most weight. The first `leaf` rules of a class weigh 1 each; each
//! further rule weighs 3/4, because later fields will not keep all of them.
//!
//! # Lookup
//! See [`lookup`]: single keys, batches, and masked lookups.
//!
//! # Updates
//! An insertion tries the partitions, best first: the rule descends by its intervals. At
//! an equal interval it descends further. If it is disjoint from both neighbours, it
//! becomes an entry. If it overlaps a neighbour, the next partition is tried. A list of
//! more than `leaf` rules becomes nodes of one field, if a field has only equal or
//! disjoint intervals of these rules. If there are several such fields, it takes the
//! field with most classes. A full node is split as in a B-tree. A removal descends the
//! same way. A node with a single entry separates nothing, so the entry's child replaces
//! it.
//!
//! # Cost
//! For n rules and d fields, a lookup visits O(d + log n) nodes and one list in each
//! partition that may have a better rule. An update visits O(d + log n) nodes in each
//! partition that it tries. There are at most `partitions` partitions. Rules that no
//! partition takes go to a tuple space as in `tss`, so n rules that all overlap take at
//! most `partitions` × n tries. Building takes O(d n log n) for each field of each
//! partition. A build also reads at most 16 n rules that it does not place. Memory is
//! O(n): nodes have at least two entries each. When three fifths of the records or of
//! the nodes are free, the removal that caused this compacts them.
//!
//! # Where we differ from the paper, and why
//! The engine follows what [TM19] says about the method.
//! - The paper has one order of fields for each partition. Here every class of rules
//!   chooses its next field. So fewer rules are refused, and a field needs no node if
//!   all rules of a class agree in it.
//! - Lists of up to `leaf` rules need not be sortable. Ports of firewalls overlap below
//!   equal addresses: lists of eight rules halve the number of partitions. `leaf=1`
//!   sorts all rules, as the paper does.
//! - The paper has balanced binary trees, weighted over all fields. A B-tree with eight
//!   entries a node has a third of the levels; each level costs a cache miss.
//! - The paper rebuilds a small partition, of up to ten rules, at each insertion. Here a
//!   list chooses its field when it becomes too long, by the rules that it has then.
//!   `rebuild` builds all partitions again.
//! - The paper does not limit the number of partitions. This engine does.
//! - Fields wider than 64 bits are two dimensions, and a value under a mask with holes
//!   is treated as the interval around it: see [`dimension`]. Rules in lists are
//!   compared in full, so such intervals may contain more than the rule matches.
//!
//! # References
//! [PS16]; [TM19] §II.B, ref. 11.
//!
//! [PS16]: crate::papers#ps16
//! [TM19]: crate::papers#tm19

mod dimension;
mod estimate;
mod grow;
mod lookup;
mod node;
#[cfg(test)]
mod tests;
mod trees;

use std::sync::Arc;

use crate::budget::memory::{Memory, bytes_of};
use crate::budget::monitor::{Monitor, unwatched};
use crate::contract::adapter::{Algorithm, DynamicEveryWidth, Updates, build_dynamic};
use crate::contract::classifier::{LookupTrace, Metric, Progress};
use crate::contract::options::EngineOption;
use crate::contract::spec::BuildRequest;
use crate::contract::spec::{Engine, Wraps};
use crate::engines::tss::{self, OneTablePerMask};
use crate::model::error::BuildError;
use crate::model::rule::{ActionId, Priority, Rule, RuleId, RuleRef, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::Schema;
use crate::model::seed::Seed;
use crate::parts::id_map::IdMap;
use crate::parts::sort::sort_short;
use crate::parts::tuple_space::{EntryIndex, TableNumber, TupleEngine};

use grow::Grow;
use lookup::Buffers;
use node::{MOST_RULES, To};
use trees::{Source, Trees};

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "partition-sort",
    summary: "few partitions of rules that can be sorted, each a search tree over all fields",
    paper: "[PS16]; [TM19] ref. 11",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::whole(
            "leaf",
            (1, 64),
            8,
            "how many rules may share a leaf without being told apart",
        ),
        EngineOption::whole(
            "partitions",
            (1, 256),
            64,
            "the most partitions; rules that none of them takes are in a tuple space",
        ),
        EngineOption::SEED,
    ],
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: build_dynamic::<AnyWidth>,
    estimate: estimate::estimate,
};

/// Names of phases for the progress callback.
const SORTING: &str = "sorting rules into partitions";
const PLACING: &str = "placing other rules";
const NAMING: &str = "noting ids";

/// If a set has more than `MIN_RULES_FOR_SHARE` unplaced rules, the build grows another
/// partition only if the last one took at least 1/`MIN_PARTITION_SHARE` of them. The
/// remaining rules are placed one by one. Measured in `bench/records/constants.md`
/// (PartitionSort).
const MIN_RULES_FOR_SHARE: usize = 1024;
const MIN_PARTITION_SHARE: usize = 16;

/// Refuses more rules than can be numbered.
fn check_rules(rules: usize) -> Result<(), BuildError> {
    if rules > MOST_RULES {
        return Err(BuildError::EngineFull {
            engine: ENGINE.name.to_owned(),
            rules,
            limit: MOST_RULES,
        });
    }
    Ok(())
}

/// The engine at every key width.
struct AnyWidth;

impl DynamicEveryWidth for AnyWidth {
    type At<const W: usize> = PartitionSort<W>;
}

/// The engine for rules that no partition takes.
type Rest<const W: usize> = TupleEngine<W, OneTablePerMask<W>>;

/// A set of sortable rules and its tree.
#[derive(Clone, Copy, Debug)]
struct Partition {
    /// The rank of the best rule.
    best: u64,
    root: To,
    number: TableNumber,
    rules: usize,
}

/// Partitions in the order of their best rules, and the rules in no partition.
struct PartitionSort<const W: usize> {
    trees: Trees<W>,
    order: Vec<Partition>,
    /// The largest number of partitions.
    most: usize,
    ids: IdMap<EntryIndex>,
    rest: Rest<W>,
    seed: Seed,
}

impl<const W: usize> PartitionSort<W> {
    /// Returns an engine without rules.
    fn new(
        schema: &Arc<Schema>,
        leaf: usize,
        max_partitions: usize,
        seed: Seed,
    ) -> PartitionSort<W> {
        PartitionSort {
            trees: Trees::new(schema, leaf),
            order: Vec::new(),
            most: max_partitions,
            ids: IdMap::new(seed.number()),
            rest: tss::empty(schema, seed),
            seed,
        }
    }

    fn has_rest(&self) -> bool {
        self.rest.space.len() > 0
    }

    /// Grows partitions over the rules of a set; places the remaining rules one by one.
    /// The engine must be empty.
    fn place_all(&mut self, set: &RuleSet, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        let count = set.len();
        monitor
            .memory()
            .keep(self.trees.arena.reserved_bytes(count))?;
        self.trees.arena.reserve(count);
        let place_bytes = bytes_of::<EntryIndex>(count).saturating_add(bytes_of::<u32>(count));
        monitor.begin(SORTING, count)?;
        monitor.memory().take(place_bytes)?;
        let mut remaining: Vec<u32> = (0..).take(count).collect();
        let mut source = Source {
            set,
            arena: &mut self.trees.arena,
            partition: TableNumber::new(0),
            places: vec![EntryIndex::NONE; count],
        };
        let mut numbers = 0_u32..;
        let dimensions = &self.trees.dimensions;
        let mut grow = Grow::new(dimensions, self.trees.leaf, count, monitor)?;
        while !remaining.is_empty() && self.order.len() < self.most {
            let before = remaining.len();
            let subtree =
                grow.partition(&mut remaining, &mut source, &mut self.trees.nodes, monitor)?;
            let number = source.partition;
            monitor.memory().room_to_keep(&mut self.order)?;
            self.order.push(Partition {
                best: subtree.best,
                root: subtree.to,
                number,
                rules: before - remaining.len(),
            });
            numbers.next();
            source.partition = TableNumber::new(numbers.start);
            if before > MIN_RULES_FOR_SHARE
                && before - remaining.len() < before / MIN_PARTITION_SHARE
            {
                break;
            }
        }
        grow.finish(monitor);
        let mut records = source.places;
        sort_short(&mut self.order, |partition| partition.best);

        monitor.begin(PLACING, remaining.len())?;
        let mut unplaced = Vec::new();
        for &rule in &remaining {
            let stored = self.trees.arena.add(&set.rule(rule as usize));
            if self.place(stored, monitor)? {
                records[rule as usize] = stored;
            } else {
                self.trees.arena.remove(stored);
                monitor.memory().room(&mut unplaced)?;
                unplaced.push(rule);
            }
            monitor.advance(1)?;
        }
        self.place_in_rest(set, &unplaced, monitor)?;
        monitor
            .memory()
            .give_back(bytes_of::<u32>(unplaced.capacity()));
        drop((remaining, unplaced));

        monitor.begin(NAMING, count)?;
        let mut counted = 0;
        for from in (0..count).step_by(Monitor::BLOCK) {
            let block = from..count.min(from + Monitor::BLOCK);
            let entry = |at: usize| (set.rule(at).id(), records[at]);
            let placed = block
                .clone()
                .map(entry)
                .filter(|&(_, at)| at != EntryIndex::NONE);
            self.ids.extend(placed);
            monitor.memory().recount(&mut counted, self.ids.bytes())?;
            monitor.advance(block.len())?;
        }
        drop(records);
        monitor
            .memory()
            .give_back(bytes_of::<EntryIndex>(count).saturating_add(bytes_of::<u32>(count)));
        Ok(())
    }

    /// Puts rules into the tuple space, and frees the records reserved for them.
    fn place_in_rest(
        &mut self,
        set: &RuleSet,
        rules: &[u32],
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        if rules.is_empty() {
            return Ok(());
        }
        self.rest.space.reserve(rules.len(), monitor)?;
        for &rule in rules {
            let stored = self.rest.space.store(&set.rule(rule as usize));
            let stored = stored.expect("ids of a set differ");
            self.rest.place(stored, monitor)?;
            monitor.work(1)?;
        }
        let before = self.trees.arena.shrink();
        monitor.memory().replace(before, self.trees.arena.bytes())
    }

    /// Puts a stored rule into the first partition that takes it, or into a new
    /// partition. Returns true if a partition took the rule.
    fn place(&mut self, rule: EntryIndex, monitor: &mut Monitor<'_>) -> Result<bool, BuildError> {
        let rank = self.trees.rank(rule);
        for place in 0..self.order.len() {
            monitor.work(1)?;
            let root = self.order[place].root;
            if let Some(root) = self.trees.insert(root, rule, monitor)? {
                let partition = &mut self.order[place];
                partition.root = root;
                partition.rules += 1;
                self.trees.arena.get_mut(rule).table = partition.number;
                if rank < partition.best {
                    partition.best = rank;
                    self.sift(place);
                }
                return Ok(true);
            }
        }
        if self.order.len() == self.most {
            return Ok(false);
        }
        let mut numbers = (0..).map(TableNumber::new);
        let is_used = |number| {
            self.order
                .iter()
                .any(|partition| partition.number == number)
        };
        let number = numbers
            .find(|&number| !is_used(number))
            .expect("few partitions");
        monitor.memory().room_to_keep(&mut self.order)?;
        self.trees.arena.get_mut(rule).table = number;
        self.order.push(Partition {
            best: rank,
            root: To::list(rule),
            number,
            rules: 1,
        });
        self.sift(self.order.len() - 1);
        Ok(true)
    }

    /// Moves a partition to its place in the order of best rules.
    fn sift(&mut self, place: usize) {
        let partition = self.order.remove(place);
        let target = (self.order).partition_point(|other| other.best < partition.best);
        self.order.insert(target, partition);
    }

    /// Removes a stored rule from its partition and from the records.
    fn unplace(&mut self, rule: EntryIndex) {
        let number = self.trees.arena.get(rule).table;
        let mut partitions = self.order.iter();
        let index = partitions.position(|partition| partition.number == number);
        let index = index.expect("a stored rule is in a partition");
        let root = self.trees.remove(self.order[index].root, rule);
        self.trees.arena.remove_unlinked(rule);
        if root == To::NOTHING {
            self.order.remove(index);
            return;
        }
        let best = self.trees.below(root).best;
        let partition = &mut self.order[index];
        partition.root = root;
        partition.rules -= 1;
        if best != partition.best {
            partition.best = best;
            self.sift(index);
        }
    }

    /// If most records or nodes are free, compacts them and frees the memory. Takes O(n)
    /// for the n remaining rules, at most once in n/2 removals.
    fn compact_if_sparse(&mut self) {
        let trees = &mut self.trees;
        if !trees.arena.is_sparse() && !trees.nodes.are_sparse() {
            return;
        }
        let moved = trees.arena.compact(|partition| partition);
        let new_target = trees.nodes.compact(|rule| moved.to(rule));
        for partition in &mut self.order {
            partition.root = new_target(partition.root);
        }
        drop(new_target);
        trees.nodes.move_rules(|rule| moved.to(rule));
        let rules = trees.arena.records();
        for position in 0..rules {
            let rule = trees.arena.record(position).expect("all are there");
            let id = trees.arena.get(rule).id();
            *self.ids.get_mut(id).expect("its id is known") = rule;
        }
        self.order.shrink_to_fit();
    }
}

impl<const W: usize> Algorithm<W> for PartitionSort<W> {
    type Buffers = Buffers<W>;

    fn build(request: &mut BuildRequest<'_>) -> Result<Self, BuildError> {
        let (options, set) = (request.spec.options(), request.rules);
        check_rules(set.len())?;
        let (leaf, max_partitions) = (options.whole("leaf"), options.whole("partitions"));
        let mut built =
            PartitionSort::new(set.schema(), leaf, max_partitions, options.seed("seed"));
        let records = built.trees.arena.reserved_bytes(set.len());
        request.limits.check_bytes(records)?;
        built.place_all(set, &mut request.monitor())?;
        Ok(built)
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        self.look_up(key, best)
    }

    fn improve_batch(&self, keys: &[[u64; W]], winners: &mut [Winner], buffers: &mut Buffers<W>) {
        self.look_up_batch(keys, winners, buffers);
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        self.look_up_masked(key, best, mask)
    }

    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        self.look_up_traced(key)
    }

    fn rules(&self) -> usize {
        self.trees.arena.len() + self.rest.rules()
    }

    fn tables(&self) -> usize {
        self.order.len() + self.rest.tables()
    }

    fn bytes(&self) -> usize {
        self.trees.bytes()
            + self.order.capacity() * size_of::<Partition>()
            + self.ids.bytes()
            + self.rest.bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        let largest = self.order.iter().map(|partition| partition.rules).max();
        vec![
            Metric::count("partitions", self.order.len()),
            Metric::count("rules in the largest partition", largest.unwrap_or(0)),
            Metric::count("nodes", self.trees.nodes.len()),
            Metric::count("rules in no partition", self.rest.rules()),
        ]
    }
}

impl<const W: usize> Updates<W> for PartitionSort<W> {
    fn capacity(&self) -> usize {
        MOST_RULES
    }

    fn contains(&self, id: RuleId) -> bool {
        self.ids.get(id).is_some() || (self.has_rest() && self.rest.contains(id))
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let Some(rule) = self.ids.get(id) else {
            return self.rest.copy_rule(id, words);
        };
        let packed = self.trees.packed(rule);
        for part in [packed.value, packed.mask, packed.high] {
            words.extend_from_slice(part);
        }
        Winner::from_rank(self.trees.rank(rule)).priority()
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        match self.ids.get(id) {
            Some(rule) => Some(self.trees.arena.get(rule).action),
            None => self.rest.action(id),
        }
    }

    fn winners(&self) -> Vec<Winner> {
        let stored = self.ids.iter().map(|(_, rule)| self.trees.rank(rule));
        let mut winners: Vec<Winner> = stored.map(Winner::from_rank).collect();
        winners.extend(self.rest.winners());
        winners
    }

    fn insert(&mut self, rule: &RuleRef<'_>) -> bool {
        if self.contains(rule.id()) {
            return false;
        }
        let stored = self.trees.arena.add(rule);
        if unwatched(|monitor| self.place(stored, monitor)) {
            self.ids.set(rule.id(), stored);
        } else {
            self.trees.arena.remove(stored);
            self.rest.insert(rule);
        }
        true
    }

    fn remove(&mut self, id: RuleId) -> bool {
        let Some(rule) = self.ids.remove(id) else {
            return self.has_rest() && self.rest.remove(id);
        };
        self.unplace(rule);
        self.compact_if_sparse();
        true
    }

    /// Builds all partitions again, in new memory.
    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let schema = &self.trees.schema;
        let mut set = RuleSet::new(schema);
        set.reserve(Algorithm::<W>::rules(self));
        for winner in self.winners() {
            let (id, mut words) = (winner.rule().expect("a rule"), Vec::new());
            let priority = self.copy_rule(id, &mut words).expect("its id is known");
            let action = self.action(id).expect("its id is known");
            let rule = Rule::from_words(schema, id, priority, action, 0, words);
            set.push(rule.view()).expect("ids differ");
        }
        let mut rebuilt = PartitionSort::new(schema, self.trees.leaf, self.most, self.seed);
        let mut memory = Memory::unlimited();
        rebuilt.place_all(&set, &mut Monitor::new(progress, &mut memory))?;
        *self = rebuilt;
        Ok(())
    }
}
