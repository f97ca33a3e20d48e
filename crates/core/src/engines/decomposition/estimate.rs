//! Estimates the costs of a classifier.
//!
//! The division of rules into lists and vectors, and the fields that are searched,
//! depend on all rules together. So they are determined for a sample, where fewer
//! rules share a value than in the whole set. The counts of each field are then
//! extrapolated, up to the number of different matches in the field.

#![allow(clippy::cast_precision_loss)] // estimates

use super::cuckoo::Cuckoo;
use super::field::{Class, Field, Member, Search};
use super::fill::{direct_bits, is_direct, sizes};
use super::model::Counts;
use super::screen::{Entry, Screens};
use super::{Decomposition, Tuning, check_rules, most_row_bytes};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::unwatched;
use crate::contract::spec::EngineSpec;
use crate::cost::estimate::{Costs, Shape, some_of, whole};
use crate::cost::machine::Work;
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::parts::range_tree::RangeTree;
use crate::parts::ranked::RankedRules;
use crate::parts::simd::bits::Block;

// Numbers of instructions. `crate::cost::estimate` describes the measurements behind them.
/// To copy a rule, and to sort each of its fields.
const COPY_INSTRUCTIONS: f64 = 600.0;
const SORT_INSTRUCTIONS: f64 = 2000.0;

/// The number of all rules, divided by the number of rules in the sample.
#[derive(Clone, Copy)]
struct Scale(f64);

impl Scale {
    fn of(self, count: usize) -> usize {
        whole((count as f64 * self.0).ceil())
    }
}

pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    check_rules(shape.rules())?;
    let (schema, rules, options) = (shape.schema(), shape.rules(), spec.options());
    let sample = some_of(shape.sample(), rules);
    let scale = Scale(rules as f64 / sample.len().max(1) as f64);
    let fewer = |count: usize| whole(count as f64 / scale.0.max(1.0)).max(1);
    let tuning = Tuning::default();
    let tuning = Tuning {
        least_listed: fewer(tuning.least_listed),
        fewer_shared: scale.0.max(1.0),
        ..tuning
    };
    let built = unwatched(|monitor| {
        Decomposition::new(&sample, options, &Limits::default(), tuning, monitor)
    });
    let shared = &*built.shared;
    let wide = scale.of(shared.wide.len());
    let (_, row_blocks) = sizes(wide, wide > options.whole("aggregate"));
    let mut rows = 1;
    let mut bytes = bytes_of::<Field>(shared.fields.len())
        .saturating_add(bytes_of::<Entry>(scale.of(shared.store.lists.len()) + wide))
        .saturating_add(Screens::BYTES);
    for field in &shared.fields {
        let (in_field, of_field) = extrapolated(field, shape, scale);
        rows += in_field;
        bytes = bytes.saturating_add(of_field);
    }
    let max_row_bytes = most_row_bytes(options, rules);
    let vectors = bytes_of::<Block>(rows.saturating_mul(row_blocks)).min(max_row_bytes);
    let copy = RankedRules::bytes_of(schema, rules);
    let bytes = copy.saturating_add(bytes).saturating_add(vectors);
    let fields = schema.fields().len() as f64;
    let counts = among_all(&built, scale, wide, row_blocks, copy, vectors);
    Ok(Costs {
        bytes,
        build: Work::of(rules as f64 * (COPY_INSTRUCTIONS + SORT_INSTRUCTIONS * fields)),
        batch: counts.batch(),
        single: counts.single(),
        update: None,
    })
}

/// Returns the counts of a lookup among all rules, from a structure over the sample.
/// Its lists have fewer rules than lists over all rules, and its vectors fewer
/// blocks.
fn among_all(
    built: &Decomposition,
    scale: Scale,
    wide: usize,
    row_blocks: usize,
    rule_bytes: usize,
    row_bytes: usize,
) -> Counts {
    let mut counts = built.counts();
    let shared = &*built.shared;
    let times = scale.0.max(1.0);
    // The rule that a header is drawn from is counted once, in the sample as in all
    // rules.
    let scaled = |count: f64, limit: f64| {
        let other_rules = (count - 1.0).max(0.0) * times;
        (count.min(1.0) + other_rules).min(limit.max(count))
    };
    let in_lists = (shared.listing * MAX_LISTED_RULES) as f64;
    counts.entries = scaled(counts.entries, in_lists + (wide as f64).sqrt());
    counts.compared = scaled(counts.compared, counts.entries / 2.0);
    let before = shared.store.row_blocks.max(1) as f64;
    let steps = counts.steps * (row_blocks as f64 / before).max(1.0);
    let max_steps: f64 = if shared.store.summary > 0 { 8.0 } else { 64.0 };
    counts.blocks *= steps.min(max_steps.max(counts.steps)) / counts.steps.max(1.0);
    counts.steps = steps.min(max_steps.max(counts.steps));
    counts.search_bytes = scale.of(counts.search_bytes);
    counts.list_bytes = scale.of(counts.list_bytes);
    counts.row_bytes = row_bytes;
    counts.rule_bytes = rule_bytes;
    counts
}

/// The largest mean number of rules in the lists that a lookup visits. Measured in
/// `bench/records/constants.md` (Estimates of other engines).
const MAX_LISTED_RULES: usize = 4;

/// Returns the number of vectors of a field, and the bytes of its search.
fn extrapolated(field: &Field, shape: &Shape, scale: Scale) -> (usize, usize) {
    let rules = shape.rules();
    let (mut bytes, mut max_classes) = (bytes_of::<Member>(field.members.len()), 1_usize);
    let mut intervals = 1;
    for member in &field.members {
        let of_field = &shape.fields()[member.id.index()];
        let matches = of_field.prefixes + 2 * of_field.ranges + 1;
        let width = shape.schema().field(member.id).width();
        let sampled = member.intervals.len();
        let cuts = 2 * (of_field.prefixes + of_field.ranges) + 1;
        intervals = scale.of(sampled).min(cuts.max(sampled));
        bytes = bytes.saturating_add(RangeTree::bytes_of(width, intervals));
        max_classes = max_classes.saturating_mul(matches);
    }
    let classes = field.classes.len();
    let all_classes = scale.of(classes).min(max_classes.max(classes));
    let width = shape.schema().field(field.members[0].id).width();
    bytes += match &field.search {
        Search::Direct { .. } if field.members.len() > 1 => {
            bytes_of::<u16>(1 << direct_bits(&field.search))
        }
        _ if is_direct(width, rules) => bytes_of::<u16>(1 << width),
        Search::Hash(_) => Cuckoo::bytes_of(intervals / 2),
        _ => bytes_of::<u32>(intervals),
    };
    let mut rows: Vec<u32> = field.classes.iter().map(|class| class.row).collect();
    rows.sort_unstable();
    rows.dedup();
    let sampled_rows = if field.has_rows { rows.len() } else { 0 };
    let rows = scale.of(sampled_rows).min(max_classes.max(sampled_rows));
    (rows, bytes.saturating_add(bytes_of::<Class>(all_classes)))
}
