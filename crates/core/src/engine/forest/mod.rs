//! `forest`: few tables, each with a mask learned over the whole key.
//!
//! # Idea
//! A rule may stand in a table if all bits of the table's mask are exact in the
//! rule; a range counts with the prefix that its values share. [TM19] relaxes
//! the masks of tuples, field by field, until they are few. Here masks are
//! *learned*: any bits of any fields that tell the rules apart, so that two or
//! three tables serve nearly all rules of a set, in small buckets. A bucket is
//! a *run* of rules, best first, compared up to eight at a time; a bucket that
//! is too full for that becomes a *node* with masks of its own. Tables are
//! visited in the order of their best rules, and a lookup ends when no later
//! table can win.
//!
//! # Data layout
//! ```text
//! node    table ──next──▶ table ──next──▶ table          best first
//!           │ mask | best | slots
//! slots   [ position | signature | rivals | length ] …   8 bytes, no probing
//!              │                        └─ NODE: position is a node's first table
//! runs    rank × n | value₀ × n | mask₀ × n | …          n rules, column by column
//!
//! places  { rule id → table, slot }                      9 bytes for ids in order
//! ```
//! A slot has no key: rules whose hashes meet share a run, and the comparison
//! tells them apart. A 16-bit signature turns away most keys that have nothing
//! to find.
//!
//! # Lookup
//! See [`lookup`]: in batches, one key at a time, and with un-wildcarding; the
//! comparison is [`crate::simd::runs`]. Tables in which nothing better than what
//! was found can match are passed over: [`rivals`].
//!
//! # Learning
//! See [`learn`]. When building, choose the masks whose tables make lookups
//! cheapest, as simulated on a sample of the rules, and deal the rules out: each
//! goes to the first mask that serves it. Likewise in each bucket of more than
//! `most` rules.
//!
//! # Updates
//! A rule goes to the first learned table that serves it, in each node on its
//! way; a run of `most` rules is split into a node when one more comes. A
//! removal finds its run through `places`. A node of few rules becomes a run
//! again, an empty table goes. Whatever is large, arrays that grow, gaps to be
//! closed, bounds to be corrected, is done a few steps with each update
//! ([`runs`], [`places`]).
//!
//! # Learning again
//! Masks are not touched by updates, so lookups get dearer as the rules become
//! others: [`drift`]. The root is learned again from notes of the rules, on
//! another thread ([`study`]), and the plan is adopted in place: new tables join
//! the old ones in the root, and rules move over, a few with each update
//! ([`adopt`]). [`rebuild`] learns everything anew, nested nodes as well, at
//! once.
//!
//! # Cost
//! Lookup: a hash and a slot for each table that is visited, mostly one to
//! three, and a run in one or two of them. Update: a hash and a copy of a run.
//! Memory of an IPv4 rule: 40 bytes in its run, 9 in `places`, 4 to 16 in
//! slots.
//!
//! # References
//! [TM19] §III for tables that rules of several tuples share, and for the order
//! of tables. Learned masks and the rest are ours.
//!
//! [`rebuild`]: crate::classifier::DynamicClassifier::rebuild

use crate::classifier::{LookupTrace, Metric, Progress, report};
use crate::engine::adapter::{Algorithm, BuildRequest, DynamicFamily, Updates, build_dynamic};
use crate::engine::{Engine, EngineOption, Wraps};
use crate::error::BuildError;
use crate::reoptimise::{Drift, LookupPlan, Reoptimise, Snapshot};
use crate::rule::{Priority, RuleId, RuleRef, Winner};
use crate::simd::Isa;

mod adopt;
mod change;
mod drift;
mod learn;
mod lookup;
mod places;
mod rivals;
mod runs;
mod shape;
mod study;
mod table;
mod tables;
mod tree;
mod units;

use lookup::{Buffers, Means};
use runs::MAX_RUN;
use shape::RowShape;
use table::TableNumber;
use tree::{Forest, Settings};

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "forest",
    summary: "few tables with learned masks, rules compared eight at a time",
    paper: "ours; tables as in [TM19] §III",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::whole(
            "bucket",
            (1, 64),
            2,
            "rules in a mean bucket that learning aims at",
        ),
        EngineOption::whole(
            "most",
            (2, MAX_RUN),
            128,
            "rules of a bucket beyond which it becomes a node",
        ),
        EngineOption::host_choice(
            "isa",
            &Isa::NAMES,
            lacks_isa,
            "instructions to compare with",
        ),
        EngineOption::SEED,
        EngineOption::choice(
            "without",
            &Ingredient::NAMES,
            "go without an ingredient, to see what it is worth",
        ),
    ],
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: build_dynamic::<AnyWidth>,
};

/// Why this processor cannot run instructions of that name, if so.
fn lacks_isa(name: &str) -> Option<String> {
    if Isa::named(name).is_some() {
        return None;
    }
    let available: Vec<String> = Isa::available().map(|isa| isa.to_string()).collect();
    Some(format!("this processor has {}", available.join(", ")))
}

/// The engine at every key width.
struct AnyWidth;

impl DynamicFamily for AnyWidth {
    type At<const W: usize> = ForestEngine<W>;
}

/// What the options say.
fn settings(request: &BuildRequest<'_>) -> (Settings, Means) {
    let options = request.spec.options();
    let without = Ingredient::named(options.choice("without"));
    let settings = Settings {
        target: options.whole("bucket"),
        most: if without == Some(Ingredient::Nests) {
            MAX_RUN
        } else {
            options.whole("most")
        },
        seed: options.seed("seed").number(),
        without,
    };
    let isa = Isa::named(options.choice("isa")).expect("the specification was checked");
    let instead = |ingredient| {
        if without == Some(ingredient) {
            Isa::Scalar
        } else {
            isa
        }
    };
    let means = Means {
        probing: instead(Ingredient::Vectors),
        comparing: instead(Ingredient::Blocks),
        ahead: without != Some(Ingredient::Prefetch),
    };
    (settings, means)
}

/// What makes the engine fast, piece by piece. Going without one changes speed,
/// never results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ingredient {
    /// Masks of any bits. Without: of the leading bits of fields, as tuples are.
    Masks,
    /// Nodes nested in full buckets. Without: long runs.
    Nests,
    /// Marks of where rules may be beaten. Without: every table with better
    /// rules is looked into.
    Rivals,
    /// Huge pages.
    Pages,
    /// Eight keys hashed and eight slots read at a time.
    Vectors,
    /// Four or eight rules compared at a time.
    Blocks,
    /// Memory asked for ahead of its use.
    Prefetch,
}

impl Ingredient {
    /// The names by which one is left out, after the one for none.
    const NAMES: [&'static str; 8] = [
        "nothing", "masks", "nests", "rivals", "pages", "vectors", "blocks", "prefetch",
    ];

    fn named(name: &str) -> Option<Ingredient> {
        match name {
            "masks" => Some(Ingredient::Masks),
            "nests" => Some(Ingredient::Nests),
            "rivals" => Some(Ingredient::Rivals),
            "pages" => Some(Ingredient::Pages),
            "vectors" => Some(Ingredient::Vectors),
            "blocks" => Some(Ingredient::Blocks),
            "prefetch" => Some(Ingredient::Prefetch),
            _ => None,
        }
    }
}

/// A forest as an engine.
struct ForestEngine<const W: usize> {
    forest: Forest<W>,
    means: Means,
}

impl<const W: usize> Algorithm<W> for ForestEngine<W> {
    type Buffers = Buffers;

    fn build(request: &mut BuildRequest<'_>) -> Result<Self, BuildError> {
        let (settings, means) = settings(request);
        let rules = request.rules;
        let mut forest = Forest::<W>::new(rules.schema(), settings);
        let row = forest.shape.columns() * size_of::<u64>();
        request
            .limits
            .check_bytes(rules.len().saturating_mul(row))?;
        forest.fill(rules.iter(), request.progress)?;
        request.limits.check_bytes(forest.bytes())?;
        report(request.progress, "learning masks", rules.len(), rules.len())?;
        Ok(ForestEngine { forest, means })
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        self.forest.improve(self.means, key, best)
    }

    fn improve_batch(&self, keys: &[[u64; W]], winners: &mut [Winner], buffers: &mut Buffers) {
        self.forest
            .improve_batch(self.means, keys, winners, buffers);
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        self.forest.improve_masked(key, best, mask)
    }

    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        self.forest.trace(key)
    }

    fn rules(&self) -> usize {
        self.forest.len()
    }

    fn tables(&self) -> usize {
        self.forest.tables_in_use()
    }

    fn bytes(&self) -> usize {
        self.forest.bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        self.forest.metrics(self.means)
    }
}

impl<const W: usize> Updates<W> for ForestEngine<W> {
    fn capacity(&self) -> usize {
        self.forest.runs.capacity()
    }

    fn contains(&self, id: RuleId) -> bool {
        self.forest.contains(id)
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        self.forest.copy_rule(id, words)
    }

    fn insert(&mut self, rule: &RuleRef<'_>) -> bool {
        if self.forest.contains(rule.id()) {
            return false;
        }
        self.forest.insert(rule);
        self.forest.go_on(adopt::STEPS);
        true
    }

    fn remove(&mut self, id: RuleId) -> bool {
        let removed = self.forest.remove(id);
        if removed {
            self.forest.go_on(adopt::STEPS);
        }
        removed
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.forest.relearn(progress)
    }

    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        Some(self)
    }

    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        Some(self)
    }
}

impl<const W: usize> Reoptimise for ForestEngine<W> {
    fn drift(&self) -> Drift {
        self.forest.drift()
    }

    fn look(&self, snapshot: &mut Snapshot) -> bool {
        let forest = &self.forest;
        let fresh = || forest.notes();
        let notes = snapshot.contents(ENGINE.name, &forest.schema, forest.changes, fresh);
        if forest.study(notes) {
            return snapshot.complete();
        }
        false
    }

    fn install(&mut self, plan: &LookupPlan) -> bool {
        let schema = &self.forest.schema;
        let Some(root) = plan.get(ENGINE.name, schema) else {
            return false;
        };
        self.forest.adopt(root);
        true
    }

    fn step(&mut self, steps: usize) -> bool {
        self.forest.go_on(steps);
        self.forest.is_unfinished()
    }

    fn is_installing(&self) -> bool {
        self.forest.is_unfinished()
    }
}
