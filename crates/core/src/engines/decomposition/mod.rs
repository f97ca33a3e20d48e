//! `decomposition`: searches each field by itself and joins the results: bit vectors
//! of rules, and lists of rules whose values few rules share.
//!
//! # Idea
//! If rules have many fields, a few values distinguish them. Each field has the
//! unique values of the rules (ranges: elementary intervals). Each value has the
//! rules that match there, as a vector of one bit for each rule, best first. A lookup
//! searches all fields and joins the vectors 512 rules at a time. The first bit that
//! is set in all vectors is the winner, and the rest of the vectors is not read.
//!
//! Most values of a field such as an Ethernet address are in one or two rules. A
//! vector for each of them takes memory that grows with the square of the number of
//! rules, for little information. So a rule that shares a value with at most `share`
//! rules is in no vector. It is in the list of that value, and is compared when a
//! header has the value. Vectors have only the rules without such a value, which are
//! few.
//!
//! # Data layout
//! ```text
//! field 0:  value ─▶ class ─▶ ( row, list )      a hash table with two places,
//! field 1:  value ─▶ class ─▶ ( row, list )      a range tree, or a table of all
//! …                                              values
//! rows:     [ summary 1101… | 1011… | 0011… ] …  bits of the rules in vectors
//! lists:    [ 17 | 203 | - ][ 5 | - ] …          places of rules, ascending
//! wide:     [ 3 | 4 | 18 | … ]                   the place of each bit
//! screens:  tests of a rule before the full comparison: see `screen`
//! rules:    best first
//! ```
//! Values with the same rules have one class. The class of values that no rule names
//! comes first. A field has rows, lists, or both; other fields are not searched. If
//! there are more than `aggregate` rules in vectors, a row begins with its summary: a
//! bit for each block of 512 rules that has any.
//!
//! # Build
//! 1. Choose lists and the fields of vectors: see `pick`.
//! 2. For each field that is searched, sweep over the elementary intervals of
//!    its rules, and store each different row and list: see `fill`.
//! 3. Join short fields with vectors to superfields: their values together are
//!    the index of a table, and each combination of classes has a row, the AND of
//!    the rows of its classes. The two fields with the fewest classes are joined
//!    first, then the next, while all together have at most sixteen bits, `product`
//!    combinations, and rows of 256 KiB.
//!
//! The rows of a field must fit into its share of `mebibytes`. If there are more sets
//! of rules than rows, neighbouring values share a row: the union of their sets. So a
//! row may have rules that do not match, and each candidate is compared in full.
//!
//! # Lookup
//! ```text
//! for each field: class = search(value)
//! for blocks of 512 rules, from the best:
//!     stop if the block's best rule does not beat the winner so far
//!     bits = AND of that block in all rows
//!     for each bit: if the rule passes its screen, is not hidden and matches:
//!         it wins; stop
//!     pause after 32 rules that did not match, and after 16 blocks
//! for each list: for its rules that beat the winner so far and pass: compare
//! if paused: continue with the rules that beat the winner so far; in a block with 64
//!     candidates or more, compare without screens
//! ```
//! A batch takes 64 headers through the searches, one field after the other, and
//! prefetches their rows and lists. Then it finishes one header after the other: an
//! early winner saves most of the remaining work of its header.
//!
//! # Worst lookup
//! A candidate need not match. A header may have thousands of candidates that do not
//! match, if they differ from it only in a field without vectors, or if values share
//! a vector. This is the bound of a lookup. `linear` compares the p best rules: up to
//! the winner, or all rules if none matches. Let L be the sum of the lengths of the
//! longest list of each field, which is at most `share` for each field with lists.
//!
//! | work | at most |
//! |---|---|
//! | searches | d |
//! | blocks joined | 16 + ⌈p / 512⌉ |
//! | blocks of summaries joined | 34 + 2 ⌈p / 512⌉ |
//! | rules compared | p + 32 + L |
//! | of these, rules that are worse than the winner | 32 + L |
//! | tags tested | 32 + L + 63 ⌈p / 512⌉ |
//!
//! *Proof.* Until the pause, at most 16 blocks are joined, and 32 rules are tested. The
//! searches choose one list of each field, so L entries are tested. After the pause,
//! the vectors are read in order of places, up to the winner so far or up to a better
//! rule that matches. So the rules that are compared there are among the p best rules,
//! and each of them is compared once. Places ascend in the vectors, so the p best
//! rules have the first p bits or fewer, in ⌈p / 512⌉ blocks. A summary is joined once
//! for each block with candidates, once for each 512 blocks (at most 16 times until the
//! pause), and once at the end. Tags are tested only in blocks with fewer than 64
//! candidates. ∎
//!
//! A block has d / 8 bytes for each rule. With two blocks of summaries, that is 3 d / 8
//! bytes. `linear` reads at least 24 bytes of each rule. So apart from its searches, a
//! lookup takes at most a small multiple of the time of `linear`: see
//! `bench/records/decomposition.md`. A masked lookup is a lookup, and then reads the
//! blocks and candidates of the p best rules once more; `linear` and this engine
//! un-wildcard bits for the same rules or for fewer. With `stop=off`, all blocks are
//! joined. Hidden rules count as rules.
//!
//! The metrics "most rules compared a lookup", "most tags tested a lookup" and "most
//! rules compared below the winner" have these limits, for p = n.
//!
//! # Cost
//! n rules, d fields: lookup O(d log n) to search, v / 512 blocks of at most d rows,
//! if v rules are in vectors, and at most d × `share` comparisons. Memory O(n): lists
//! have at most 2 × `share` places for each rule, rows at most `mebibytes`, tables
//! sixteen bytes for each rule and field. Build O(d n log n), and the rows. The
//! engine takes no updates; `hide` takes O(log n).
//!
//! # Where we differ from the paper, and why
//! - Lists, see above. With `share=0` there are none: all rules are in vectors, and
//!   all fields are searched, as in the paper.
//! - The paper stores a vector for each unique value, which is 160 MB for 10,000
//!   rules of Table III. The memory of our vectors is bounded.
//! - The paper groups fields by hand, also long ones, into superfields that are
//!   searched as ranges. Ours are chosen by the build, and have up to sixteen bits:
//!   see `bench/records/decomposition.md` (Superfields of up to 96 bits).
//! - Hash tables have two places for each value, and a tag of 32 bits instead of the
//!   value.
//! - Fields of up to sixteen bits have a table of all values if there are many rules.
//! - The paper's first phase runs on many cores. Ours runs on one.
//!
//! # References
//! [DEC14] §III, §IV.D; F. Baboescu, G. Varghese: *Scalable Packet Classification*,
//! SIGCOMM 2001 (summaries); R. Pagh, F. Rodler: *Cuckoo Hashing*, 2001.
//!
//! [DEC14]: crate::papers#dec14

mod candidates;
mod cuckoo;
mod estimate;
mod field;
mod fill;
mod lookup;
mod model;
mod pick;
mod screen;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::contract::adapter::{Algorithm, EveryWidth, build_static};
use crate::contract::classifier::{LookupTrace, Metric};
use crate::contract::options::{EngineOption, EngineOptions, OptionValue};
use crate::contract::spec::BuildRequest;
use crate::contract::spec::{Engine, Wraps};
use crate::cost::estimate::whole;
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::model::rule::{RuleId, Winner};
use crate::model::ruleset::RuleSet;
use crate::model::schema::FieldId;
use crate::parts::bit_vectors::BLOCK_RULES;
use crate::parts::ranked::RankedRules;
use crate::parts::simd::Isa;
use crate::parts::simd::bits::Block;

use field::Field;
use fill::{Filling, Store, direct_bits, is_direct, join, sizes};
use pick::{MAX_SHARED, Plan, PlanConfig, is_open};
use screen::{Entry, Screens};

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "decomposition",
    summary: "each field searched by itself; bit vectors and short lists of rules joined",
    paper: "[DEC14] §III, §IV.D",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::host_choice(
            "isa",
            &Isa::NAMES,
            Isa::lacks,
            "instructions to join vectors with",
        ),
        EngineOption::whole(
            "share",
            (0, MAX_SHARED),
            8,
            "rules that share a value with at most this many are in lists, others in vectors; \
             with 0 all are in vectors, of all fields",
        ),
        EngineOption::choice(
            "group",
            &["auto", "off"],
            "whether short fields are joined to superfields",
        ),
        EngineOption::whole(
            "product",
            (2, 1 << 16),
            4096,
            "the most combinations of values of a superfield",
        ),
        EngineOption::choice(
            "stop",
            &["on", "off"],
            "whether joining vectors stops at the first rule",
        ),
        EngineOption::whole(
            "aggregate",
            (1, 1 << 30),
            4096,
            "vectors of more rules than this have a summary",
        ),
        EngineOption::whole_or_auto(
            "mebibytes",
            (1, 1 << 22),
            "the most memory of all vectors, in MiB; neighbouring values share a vector where \
             it is not enough",
        ),
        EngineOption::SEED,
    ],
    dynamic: Engine::takes_no_updates,
    accepts: Engine::accepts_all,
    build: build_static::<AnyWidth>,
    estimate: estimate::estimate,
};

/// The largest number of rules: their places have 32 bits.
const MAX_RULES: usize = 1 << 28;

/// Blocks that count as one step of work. It sets how often a build reports progress.
const BLOCKS_PER_STEP: usize = 32;

/// Largest number of bytes of a superfield's vectors: a part of the second-level
/// cache. Measured in `bench/records/constants.md` (Decomposition).
const SUPERFIELD_BYTES: usize = 256 << 10;

/// Largest number of bits of a superfield, and of a field in a superfield. Measured
/// in `bench/records/constants.md` (Decomposition).
const SUPERFIELD_BITS: u32 = 16;
const SHORT_BITS: u32 = 12;

/// Default limit on bytes of all vectors: for each rule, and at least.
const ROW_BYTES_PER_RULE: usize = 512;
const MIN_ROW_BYTES: usize = 4 << 20;

/// Refuses more rules than the engine can number.
fn check_rules(rules: usize) -> Result<(), BuildError> {
    if rules > MAX_RULES {
        return Err(BuildError::EngineFull {
            engine: ENGINE.name.to_owned(),
            rules,
            limit: MAX_RULES,
        });
    }
    Ok(())
}

/// Settings that only tests and estimates change.
#[derive(Clone, Copy)]
struct Tuning {
    /// The smallest number of rules for which a field gets lists.
    least_listed: usize,
    /// The number of all rules that share a value, divided by the number in a sample.
    fewer_shared: f64,
    /// A mask over hashes.
    hash_bits: u64,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            least_listed: BLOCK_RULES,
            fewer_shared: 1.0,
            hash_bits: u64::MAX,
        }
    }
}

/// The engine at every key width.
struct AnyWidth;

impl EveryWidth for AnyWidth {
    type At<const W: usize> = Decomposition;
}

/// The engine: rules in the vectors and lists of their fields. Duplicates share
/// everything except the hidden bits.
#[derive(Clone)]
struct Decomposition {
    isa: Isa,
    /// True if joining stops at the first rule.
    stops: bool,
    rules: RankedRules,
    shared: Arc<Shared>,
}

/// The data that never changes.
struct Shared {
    fields: Vec<Field>,
    /// The number of fields with lists, and the number of fields with vectors.
    listing: usize,
    joining: usize,
    store: Store,
    screens: Screens,
    /// The rule of each bit of the vectors, in ascending order of places.
    wide: Vec<Entry>,
}

impl Decomposition {
    fn new(
        rules: &RuleSet,
        options: &EngineOptions,
        limits: &Limits,
        tuning: Tuning,
        monitor: &mut Monitor<'_>,
    ) -> Result<Decomposition, BuildError> {
        check_rules(rules.len())?;
        let ranked = RankedRules::build(rules, limits, monitor)?;
        let share = options.whole("share");
        #[allow(clippy::cast_precision_loss)] // at most a byte
        let fewer = whole((share as f64 / tuning.fewer_shared).ceil());
        let config = PlanConfig {
            share: fewer,
            least: tuning.least_listed,
            all_fields: share == 0,
        };
        let mut plan = Plan::make(&ranked, config, monitor)?;
        let screens = Screens::choose(&ranked, &mut plan.screen_of, monitor)?;
        let shared = Shared::build(&ranked, plan, screens, options, tuning.hash_bits, monitor)?;
        Ok(Decomposition {
            isa: Isa::named(options.choice("isa")).expect("the specification was checked"),
            stops: options.choice("stop") == "on",
            rules: ranked,
            shared: Arc::new(shared),
        })
    }
}

/// Returns the largest number of bytes of all vectors.
fn most_row_bytes(options: &EngineOptions, rules: usize) -> usize {
    match options.value("mebibytes") {
        OptionValue::Whole(mebibytes) => mebibytes.saturating_mul(1 << 20),
        _ => rules.saturating_mul(ROW_BYTES_PER_RULE).max(MIN_ROW_BYTES),
    }
}

impl Shared {
    fn build(
        rules: &RankedRules,
        plan: Plan,
        screens: Screens,
        options: &EngineOptions,
        hash_bits: u64,
        monitor: &mut Monitor<'_>,
    ) -> Result<Shared, BuildError> {
        let with_summary = plan.wide.len() > options.whole("aggregate");
        let mut searched = plan.listed.clone();
        searched.extend(plan.joined.iter().filter(|id| !plan.listed.contains(id)));
        searched.sort_unstable();
        monitor.begin(
            "filling vectors and lists",
            rules.len().saturating_mul(2 * searched.len()),
        )?;
        let (_, row_blocks) = sizes(plan.wide.len(), with_summary);
        let most_rows = most_rows(rules, &plan, row_blocks, options, monitor)?;
        let filling = Filling {
            rules,
            plan: &plan,
            screens: &screens,
            most_rows,
            seed: options.seed("seed").number(),
            hash_bits,
        };
        let mut store = Store::new(plan.wide.len(), with_summary, monitor)?;
        let is_grouped = |id: &FieldId| {
            let width = rules.schema().field(*id).width();
            let fits = width <= SHORT_BITS && is_direct(width, rules.len());
            options.choice("group") == "auto" && fits && !plan.listed.contains(id)
        };
        let (grouped, single): (Vec<_>, Vec<_>) = searched.into_iter().partition(is_grouped);
        monitor
            .memory()
            .keep(bytes_of::<Field>(grouped.len() + single.len()))?;
        let mut fields = Vec::with_capacity(grouped.len() + single.len());
        for id in single {
            fields.push(filling.fill(id, plan.joined.contains(&id), &mut store, monitor)?);
        }
        let max_product = options.whole("product");
        Self::group(
            &filling,
            &grouped,
            max_product,
            &mut store,
            &mut fields,
            monitor,
        )?;
        store.finish(monitor)?;
        monitor.memory().keep(bytes_of::<Entry>(plan.wide.len()))?;
        let mut wide = Vec::with_capacity(plan.wide.len());
        wide.extend(plan.wide.iter().map(|&place| filling.entry(place)));
        let bytes = plan.bytes();
        drop(plan);
        monitor.memory().give_back(bytes);
        Ok(Shared {
            listing: fields.iter().filter(|field| field.has_lists).count(),
            joining: fields.iter().filter(|field| field.has_rows).count(),
            fields,
            store,
            screens,
            wide,
        })
    }

    /// Makes superfields of short fields, in ascending order of their numbers of
    /// classes.
    fn group(
        filling: &Filling<'_>,
        ids: &[FieldId],
        max_product: usize,
        store: &mut Store,
        fields: &mut Vec<Field>,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut apart = Store::new(filling.plan.wide.len(), store.summary > 0, monitor)?;
        let mut short = Vec::with_capacity(ids.len());
        for &id in ids {
            short.push(filling.fill(id, true, &mut apart, monitor)?);
        }
        short.sort_by_key(|field| field.classes.len());
        let row_bytes = bytes_of::<Block>(store.row_blocks).max(1);
        let max_product = max_product.min(SUPERFIELD_BYTES / row_bytes);
        let mut group: Vec<Field> = Vec::new();
        for field in short {
            let members = || group.iter().chain([&field]);
            let bits = members()
                .map(|field| direct_bits(&field.search))
                .sum::<u32>();
            let classes = members().map(|field| field.classes.len());
            let product = classes.fold(1, usize::saturating_mul);
            if !group.is_empty() && (bits > SUPERFIELD_BITS || product > max_product) {
                let group = std::mem::take(&mut group);
                fields.push(join(group, &apart, store, monitor)?);
            }
            group.push(field);
        }
        fields.push(join(group, &apart, store, monitor)?);
        let bytes = apart.bytes();
        drop(apart);
        monitor.memory().drop_kept(bytes);
        Ok(())
    }

    fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(Field::bytes);
        bytes_of::<Field>(self.fields.capacity())
            + fields.sum::<usize>()
            + self.store.bytes()
            + Screens::BYTES
            + bytes_of::<Entry>(self.wide.capacity())
    }
}

/// Returns the largest number of vectors of a field, so that the vectors of all
/// fields fit in memory. Fields that need fewer vectors leave more to other fields.
fn most_rows(
    rules: &RankedRules,
    plan: &Plan,
    row_blocks: usize,
    options: &EngineOptions,
    monitor: &mut Monitor<'_>,
) -> Result<usize, BuildError> {
    let row_bytes = bytes_of::<Block>(row_blocks).max(1);
    let mut rows_left = most_row_bytes(options, rules.len()) / row_bytes;
    let mut needed = Vec::with_capacity(plan.joined.len());
    for &id in &plan.joined {
        let wide = plan.wide.iter().map(|&place| place as usize);
        let named = wide.filter(|&place| !is_open(rules, place, id)).count();
        needed.push(2 * named + 1);
        monitor.work(plan.wide.len() / 8)?;
    }
    needed.sort_unstable();
    let mut fields = needed.len();
    for needed in needed {
        let share = rows_left / fields;
        if needed > share {
            return Ok(share);
        }
        rows_left -= needed;
        fields -= 1;
    }
    Ok(usize::MAX)
}

impl<const W: usize> Algorithm<W> for Decomposition {
    type Buffers = lookup::Buffers;

    fn build(request: &mut BuildRequest<'_>) -> Result<Decomposition, BuildError> {
        let (rules, limits) = (request.rules, request.limits);
        let options = request.spec.options();
        Decomposition::new(
            rules,
            options,
            limits,
            Tuning::default(),
            &mut request.monitor(),
        )
    }

    #[inline]
    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        self.look_up(key, best)
    }

    fn improve_batch(
        &self,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        buffers: &mut lookup::Buffers,
    ) {
        self.look_up_batch(keys, winners, buffers);
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        self.look_up_masked(key, best, mask)
    }

    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        self.trace_of(key)
    }

    fn rules(&self) -> usize {
        self.rules.present()
    }

    fn tables(&self) -> usize {
        self.shared.fields.len()
    }

    fn bytes(&self) -> usize {
        self.rules.bytes() + self.shared.bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        let shared = &*self.shared;
        let store = &shared.store;
        let members = shared.fields.iter().map(|field| field.members.len());
        let vectors = store.rows.len().checked_div(store.row_blocks).unwrap_or(0);
        let most = self.most_tests();
        let mut metrics = vec![
            Metric::count("fields searched", members.sum()),
            Metric::count("fields with lists", shared.listing),
            Metric::count("fields with vectors", shared.joining),
            Metric::count("rules in vectors", shared.wide.len()),
            Metric::count("bit vectors", vectors),
            Metric::count("places in lists", store.lists.len()),
            Metric::count("most rules compared a lookup", most.compared),
            Metric::count("most tags tested a lookup", most.tags),
            Metric::count("most rules compared below the winner", most.worse),
        ];
        metrics.extend(self.work_metrics());
        metrics
    }

    fn hide(&mut self, id: RuleId) -> Option<bool> {
        Some(self.rules.hide(id))
    }

    fn duplicate(&self) -> Option<Decomposition> {
        Some(self.clone())
    }
}
