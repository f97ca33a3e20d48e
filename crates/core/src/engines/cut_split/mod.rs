//! `cut-split`: a few decision trees that cut first and split below, with updates.
//!
//! # Idea
//! A node can be cut or split. To cut a field into blocks of equal size takes one
//! step for many rules, but copies a rule into each block that it overlaps. To split
//! a node in two at the end of a rule copies less, but takes many steps. So rules are
//! divided by their *small* fields: in a small field, all values of the rule lie in
//! one block of a given size. The tree of rules that are small in
//! some fields is first cut in these fields, down to that block size, which copies no
//! rule. Then its nodes are split, as in `hyper-split`.
//!
//! # Data layout
//! ```text
//! trees:   one for each set of small fields, and a list;
//!          ordered by their best rules
//! nodes:   [ node node | node node ] …          16 bytes each, siblings together
//!
//! split:   [ value 64 | child 32 | word 8 | shift 8 | 0 8    | field 8 ]
//! cut:     [ places 64| child 32 | word 8 | shift 8 | bits 8 | field 8 ]
//! leaf:    [ 11 | rows 30 | first 32 | itself 32 | 0 8 | 63 8 | 0 8 | none 8 ]
//!
//! rows:    [ rank value mask high ] [ rank … ] …  copies of a leaf's rules, best first
//! ids:     { id → a key of the rule, priority, action, tree }
//! ```
//! A node shifts a word of the key left until its own bits are the highest. A split
//! compares the word with `value`; a cut takes its highest `bits` bits. A leaf sends every
//! key to itself. So a walk is one loop, and many keys descend together until each is at
//! its leaf. The rows of a leaf are contiguous in memory and hold everything that is
//! compared.
//!
//! To find a rule by its id, the map of ids stores a key that the rule matches: the lower
//! ends of its match. The rule is in the leaf of that key.
//!
//! # Build
//! ```text
//! select up to two fields, each with a block size ([`fields`]):
//!     the fields that separate most pairs of rules, if rules that are small there
//!     are cut to blocks of that size
//! divide the rules by their small fields; a class of few rules
//!     shares the tree of a larger class that cuts some of the same fields
//! node(rules, box):
//!     leaf, if at most `binth` rules can win there
//!     cut, if there are more than `change` rules and a small field is wider than
//!          its blocks: the field, and up to 8 bits, that leave the fewest rules
//!          together
//!     else split, as `hyper-split` does, while rules are in at most `places`
//!          leaves on average
//! rules in more than `spread` leaves go to the list
//! ```
//!
//! # Lookup
//! ```text
//! for (best, root) of the trees, in order:
//!     stop if best does not beat the winner
//!     node = root; until node is a leaf: node = child + branch(key)
//!     for rows of the leaf: stop at a row that does not beat the winner;
//!                           the first row that matches is the winner
//! ```
//!
//! # Updates
//! See [`update`]. A rule is added to each leaf that its box overlaps, at most `spread`
//! leaves, and is never in many more. Leaves that have become long are split, and nodes
//! that have lost most of their rules are rebuilt, with at most 256 rules each. If half of
//! the memory of nodes or rows is unused, it is compacted. All trees can be rebuilt during
//! updates and lookups ([`reoptimise`]).
//!
//! # Cost
//! n rules, d fields. Lookup: for each tree a few cuts, O(log n) splits and one leaf.
//! Memory: O(n); at most `places` rows and nodes for each rule. Build: O(d n log n),
//! and the cost of `hyper-split` for the split nodes. Update: a walk to each leaf of
//! the rule, and an amortised cost equal to the rule's share of a build. Compaction
//! takes O(n), once in n removals. If no field separates the rules, a leaf or the
//! list is long, and lookups and updates take O(n).
//!
//! # Where we differ from the paper, and why
//! - The paper selects the two addresses and calls a rule small below 2^16 values.
//!   Ours selects any fields of a schema, and block sizes, by how well they separate
//!   rules.
//! - Rules are small in aligned blocks, so a cut copies no rule, not even a range.
//! - The paper's subset of big rules is an ordinary tree without cuts.
//! - FiCuts cuts all small fields of a node together. Ours cuts the better field,
//!   into at most as many children as the node has rules.
//! - Rules in many leaves go to a list, so memory and the cost of updates are
//!   bounded.
//! - The paper relies on fast builds. Insertion and removal of single rules are ours.
//!
//! # References
//! [CS18]; [TM19] §II.B, ref. 18.
//!
//! [CS18]: crate::papers#cs18
//! [TM19]: crate::papers#tm19

use std::sync::Arc;

use crate::budget::memory::{Memory, bytes_of};
use crate::budget::monitor::Monitor;
use crate::contract::adapter::{Algorithm, DynamicEveryWidth, Updates, build_dynamic};
use crate::contract::classifier::{LookupTrace, Metric, Progress};
use crate::contract::options::EngineOption;
use crate::contract::reoptimise::Reoptimise;
use crate::contract::spec::BuildRequest;
use crate::contract::spec::EngineSpec;
use crate::contract::spec::{Engine, Wraps};
use crate::model::error::BuildError;
use crate::model::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::model::schema::Schema;
use crate::model::seed::Seed;
use crate::parts::id_map::IdMap;
use crate::parts::ranked::{best_first, places_by_id};
use crate::parts::sort::sort;
use crate::parts::tree::MOST_RULES;

mod estimate;
mod fields;
mod grow;
mod node;
mod reoptimise;
mod rows;
#[cfg(test)]
mod tests;
mod trees;
mod update;

use fields::Fields;
use reoptimise::Installing;
use rows::Rows;
use trees::{Outline, Trees};

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "cut-split",
    summary: "a few trees that cut the small fields and split below; rules at the leaves",
    paper: "[CS18]; [TM19] §II.B, ref. 18",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::whole(
            "binth",
            (1, 1 << 16),
            8,
            "nodes of at most this many rules are not split",
        ),
        EngineOption::whole(
            "fields",
            (0, 4),
            2,
            "selected fields: rules that are small in the same ones share a tree",
        ),
        EngineOption::whole(
            "change",
            (1, 1 << 30),
            32,
            "nodes of at most this many rules are split, larger ones are cut where they can be",
        ),
        EngineOption::whole(
            "places",
            (1, 1 << 16),
            8,
            "how many leaves a rule may be in, in the mean; leaves stay long where more are needed",
        ),
        EngineOption::whole(
            "spread",
            (1, 1 << 16),
            64,
            "rules in more leaves than this go to a list instead",
        ),
        EngineOption::SEED,
    ],
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: build_dynamic::<AnyWidth>,
    estimate: estimate::estimate,
};

/// Names of the build's stages.
const SORTING: &str = "sorting rules";
const NOTING: &str = "noting ids";

/// The values of the options.
#[derive(Clone, Copy, Debug)]
struct Settings {
    binth: usize,
    fields: usize,
    change: usize,
    places: usize,
    spread: usize,
    seed: Seed,
}

impl Settings {
    fn of(spec: &EngineSpec) -> Settings {
        let options = spec.options();
        Settings {
            binth: options.whole("binth"),
            fields: options.whole("fields"),
            change: options.whole("change"),
            places: options.whole("places"),
            spread: options.whole("spread"),
            seed: options.seed("seed"),
        }
    }
}

/// Refuses more rules than the engine can number.
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

/// The number of keys that a batch looks up together. Measured in `bench/records/constants.md`
/// (CutSplit).
const GROUP_KEYS: usize = 32;

/// The number of ids in a group of the map of ids: a page of `crate::parts::id_map`.
const ID_GROUP: usize = 16;

/// The engine at every key width.
struct AnyWidth;

impl DynamicEveryWidth for AnyWidth {
    type At<const W: usize> = CutSplit<W>;
}

/// The data of a rule that its id leads to. The rest is in the leaf of `key`.
#[derive(Clone, Copy, Debug)]
struct Known<const W: usize> {
    /// A key that the rule matches.
    key: [u64; W],
    priority: Priority,
    action: ActionId,
    tree: u8,
    /// The side of the rule's trees: equal to [`CutSplit::side`] for `trees`, not
    /// equal for `old`.
    side: bool,
}

/// The engine: rules in trees.
struct CutSplit<const W: usize> {
    settings: Settings,
    fields: Arc<Fields>,
    trees: Trees<W>,
    /// Old trees, whose rules are being moved to `trees`.
    old: Option<Trees<W>>,
    /// Distinguishes rules in `trees` from rules in `old`.
    side: bool,
    ids: IdMap<Known<W>>,
    installing: Installing,
    /// The number of changes so far.
    changes: u64,
    /// The cost of a lookup right after the trees were built.
    fitted: f64,
    /// The row of the rule that is being changed.
    row: Vec<u64>,
}

impl<const W: usize> CutSplit<W> {
    fn schema(&self) -> &Arc<Schema> {
        &self.fields.schema
    }

    fn rank(id: RuleId, known: &Known<W>) -> u64 {
        Winner::new(known.priority, id).rank()
    }

    /// Returns the trees that a rule is in.
    fn trees_of(&self, known: &Known<W>) -> &Trees<W> {
        match &self.old {
            Some(old) if known.side != self.side => old,
            _ => &self.trees,
        }
    }

    /// Returns the row of a rule.
    fn row(&self, id: RuleId, known: &Known<W>) -> &[u64] {
        let trees = self.trees_of(known);
        let row = trees.find(usize::from(known.tree), &known.key, Self::rank(id, known));
        row.expect("a rule is in the leaf of each key that it matches")
    }

    /// Returns the rows of all rules, best first.
    fn all_rows(&self, monitor: &mut Monitor<'_>) -> Result<Vec<u64>, BuildError> {
        let mut ranks: Vec<(u64, RuleId)> = Vec::with_capacity(self.ids.len());
        ranks.extend(
            self.ids
                .iter()
                .map(|(id, known)| (Self::rank(id, &known), id)),
        );
        monitor.begin(SORTING, ranks.len())?;
        sort(&mut ranks, monitor)?;
        let stride = Rows::<W>::stride(self.schema());
        let mut rows = Vec::with_capacity(ranks.len() * stride);
        for (_, id) in ranks {
            let known = self.ids.get(id).expect("it was there");
            rows.extend_from_slice(self.row(id, &known));
            monitor.advance(1)?;
        }
        Ok(rows)
    }

    /// Rebuilds all trees from the current rules.
    fn make_anew(&mut self, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        let rows = self.all_rows(monitor)?;
        let stride = Rows::<W>::stride(self.schema());
        let words = |place: usize| grow::words_of(&rows, stride, place);
        let rule = |place: usize| (rows[place * stride], words(place));
        let (fields, count) = (Arc::clone(&self.fields), self.ids.len());
        let outline = Outline::new(&fields, &self.settings, count, &words, monitor)?;
        let trees = Trees::plant(&fields, &self.settings, &outline, &rule, monitor)?;
        for (row, &tree) in rows.chunks_exact(stride).zip(&outline.of_place) {
            let id = grow::winner_of(row).rule().expect("a rule's rank");
            let known = self.ids.get_mut(id).expect("all rules are known");
            (known.tree, known.side) = (tree, self.side);
        }
        (self.trees, self.old) = (trees, None);
        self.installing = Installing::default();
        self.fitted = self.cost();
        Ok(())
    }

    /// Records the tree of rules that an insertion moved to the list.
    fn note_moved(&mut self) {
        for rank in std::mem::take(&mut self.trees.moved) {
            let id = Winner::from_rank(rank).rule().expect("a rule's rank");
            let known = self.ids.get_mut(id).expect("all rules are known");
            known.tree = u8::try_from(self.trees.list()).expect("at most 17 trees");
        }
    }

    /// Looks up a whole group of keys.
    #[inline]
    fn improve_group(&self, keys: &[[u64; W]; GROUP_KEYS], winners: &mut [Winner]) {
        self.trees.improve_group(keys, winners);
        if let Some(old) = &self.old {
            old.improve_group(keys, winners);
        }
    }
}

impl<const W: usize> Algorithm<W> for CutSplit<W> {
    type Buffers = ();

    fn build(request: &mut BuildRequest<'_>) -> Result<CutSplit<W>, BuildError> {
        let (rules, limits) = (request.rules, request.limits);
        check_rules(rules.len())?;
        let settings = Settings::of(request.spec);
        let (schema, count) = (rules.schema(), rules.len());
        let min_id_bytes = IdMap::<Known<W>>::bytes_for(count, count.div_ceil(ID_GROUP));
        limits.check_bytes(Rows::<W>::bytes_of(schema, count).saturating_add(min_id_bytes))?;
        let mut monitor = request.monitor();
        let monitor = &mut monitor;

        monitor.begin(SORTING, count)?;
        monitor.memory().take(bytes_of::<u32>(count))?;
        let mut order: Vec<u32> = (0..=u32::MAX).take(count).collect();
        best_first(rules, &mut order, monitor)?;
        let fields = Arc::new(Fields::new(schema));
        let rule_at = |place: usize| rules.rule(order[place] as usize);
        let words = |place: usize| rule_at(place).words();
        let outline = Outline::new(&fields, &settings, count, &words, monitor)?;
        let rule = |place: usize| (rule_at(place).winner().rank(), words(place));
        let trees = Trees::plant(&fields, &settings, &outline, &rule, monitor)?;

        monitor.begin(NOTING, count)?;
        monitor.memory().take(bytes_of::<u32>(count))?;
        let by_id = places_by_id(rules, &order, monitor)?;
        let id = |&place: &u32| rule_at(place as usize).id();
        let group = |place: &u32| id(place).index() / ID_GROUP;
        let groups = by_id.chunk_by(|a, b| group(a) == group(b)).count();
        let mut counted = 0;
        let needed = IdMap::<Known<W>>::bytes_for(count, groups);
        monitor.memory().recount(&mut counted, needed)?;
        let mut ids = IdMap::new(settings.seed.number());
        for chunk in by_id.chunks(Monitor::BLOCK) {
            ids.extend(chunk.iter().map(|&place| {
                let rule = rule_at(place as usize);
                let known = Known {
                    key: rule.value().try_into().expect("a rule of this width"),
                    priority: rule.priority(),
                    action: rule.action(),
                    tree: outline.of_place[place as usize],
                    side: false,
                };
                (rule.id(), known)
            }));
            monitor.advance(chunk.len())?;
        }
        monitor.memory().recount(&mut counted, ids.bytes())?;
        let working = bytes_of::<u32>(2 * count) + outline.bytes();
        drop((by_id, order, outline));
        monitor.memory().give_back(working);
        let mut built = CutSplit {
            settings,
            fields,
            trees,
            old: None,
            side: false,
            ids,
            installing: Installing::default(),
            changes: 0,
            fitted: 0.0,
            row: Vec::new(),
        };
        built.fitted = built.cost();
        Ok(built)
    }

    #[inline]
    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let winner = self.trees.improve(key, best);
        match &self.old {
            None => winner,
            Some(old) => old.improve(key, winner),
        }
    }

    fn improve_batch(&self, keys: &[[u64; W]], winners: &mut [Winner], (): &mut ()) {
        let (groups, rest) = keys.as_chunks::<GROUP_KEYS>();
        let (of_groups, of_rest) = winners.split_at_mut(groups.len() * GROUP_KEYS);
        for (keys, winners) in groups.iter().zip(of_groups.chunks_exact_mut(GROUP_KEYS)) {
            self.improve_group(keys, winners);
        }
        for (key, winner) in rest.iter().zip(of_rest) {
            *winner = self.improve(key, *winner);
        }
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        let winner = self.trees.improve_masked(key, best, mask);
        match &self.old {
            None => winner,
            Some(old) => old.improve_masked(key, winner, mask),
        }
    }

    /// A trace has a table without rules for each node on the way, and a table with
    /// rules for the leaf. Each tree that is not searched counts as one more table.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut trace = LookupTrace {
            probes: Vec::new(),
            tables: Algorithm::tables(self),
            winner: Winner::MISS,
        };
        let mut searched = self.trees.trace(key, &mut trace);
        if let Some(old) = &self.old {
            let first = trace.probes.len();
            searched += old.trace(key, &mut trace);
            for probe in &mut trace.probes[first..] {
                probe.table += self.trees.trees.len();
            }
        }
        trace.tables = trace.tables.saturating_sub(searched) + trace.probes.len();
        trace
    }

    fn rules(&self) -> usize {
        self.ids.len()
    }

    fn tables(&self) -> usize {
        self.trees.present() + self.old.as_ref().map_or(0, Trees::present)
    }

    fn bytes(&self) -> usize {
        self.trees.bytes() + self.old.as_ref().map_or(0, Trees::bytes) + self.ids.bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        let list = &self.trees.trees[self.trees.list()];
        vec![
            Metric::count("selected fields", self.trees.selected.len()),
            Metric::count("nodes", self.trees.nodes.used()),
            Metric::count("places", self.trees.places()),
            Metric::count("rules in the list", list.rules),
        ]
    }
}

impl<const W: usize> Updates<W> for CutSplit<W> {
    fn capacity(&self) -> usize {
        MOST_RULES
    }

    fn contains(&self, id: RuleId) -> bool {
        self.ids.get(id).is_some()
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let known = self.ids.get(id)?;
        words.extend_from_slice(&self.row(id, &known)[1..]);
        Some(known.priority)
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        Some(self.ids.get(id)?.action)
    }

    fn winners(&self) -> Vec<Winner> {
        let rules = self.ids.iter();
        rules
            .map(|(id, known)| Winner::new(known.priority, id))
            .collect()
    }

    fn insert(&mut self, rule: &RuleRef<'_>) -> bool {
        let known = Known {
            key: rule.value().try_into().expect("a rule of this width"),
            priority: rule.priority(),
            action: rule.action(),
            tree: 0,
            side: self.side,
        };
        let Ok(position) = self.ids.insert(rule.id(), known) else {
            return false;
        };
        self.row.clear();
        self.row.push(rule.winner().rank());
        self.row.extend_from_slice(rule.words());
        let tree = self.trees.insert(&self.row);
        self.ids.at_mut(position).tree = u8::try_from(tree).expect("at most 17 trees");
        self.note_moved();
        self.changes += 1;
        true
    }

    fn remove(&mut self, id: RuleId) -> bool {
        let Some(known) = self.ids.get(id) else {
            return false;
        };
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        row.extend_from_slice(self.row(id, &known));
        let trees = match &mut self.old {
            Some(old) if known.side != self.side => old,
            _ => &mut self.trees,
        };
        trees.remove(usize::from(known.tree), &row);
        self.row = row;
        self.ids.remove(id);
        self.changes += 1;
        true
    }

    fn settle(&mut self, changes: usize) {
        if self.old.is_some() {
            self.install_some(changes.saturating_mul(reoptimise::STEPS_PER_CHANGE));
        }
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let mut memory = Memory::unlimited();
        self.make_anew(&mut Monitor::new(progress, &mut memory))
    }

    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        Some(self)
    }

    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        Some(self)
    }
}
