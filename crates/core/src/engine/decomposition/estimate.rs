//! What it would cost.
//!
//! Which rules are in lists and which fields are searched depends on the rules
//! together, so it is found out for the sample, where a rule shares a value with
//! fewer others than among all. What each field then has is extrapolated, up to
//! as many different matches as there are.

#![allow(clippy::cast_precision_loss)] // estimates

use super::cuckoo::Cuckoo;
use super::field::{Class, Field, Member, Search};
use super::fill::{direct_bits, is_direct, sizes};
use super::model::Counts;
use super::screen::{Entry, Screens};
use super::{Decomposition, Tuning, check_rules, most_row_bytes};
use crate::engine::EngineSpec;
use crate::engine::range_tree::RangeTree;
use crate::engine::ranked::RankedRules;
use crate::error::BuildError;
use crate::estimate::{Costs, Shape, some_of, whole};
use crate::limits::Limits;
use crate::machine::Work;
use crate::memory::bytes_of;
use crate::monitor::unwatched;
use crate::simd::bits::Block;

// Instructions; what they were fitted to: see `crate::estimate`.
/// Copying a rule, and sorting each of its fields.
const COPY: f64 = 600.0;
const SORT: f64 = 2000.0;

/// Numbers of the sample times as many rules as it stands for.
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
    let most = most_row_bytes(options, rules);
    let vectors = bytes_of::<Block>(rows.saturating_mul(row_blocks)).min(most);
    let copy = RankedRules::bytes_of(schema, rules);
    let bytes = copy.saturating_add(bytes).saturating_add(vectors);
    let fields = schema.fields().len() as f64;
    let counts = among_all(&built, scale, wide, row_blocks, copy, vectors);
    Ok(Costs {
        bytes,
        build: Work::of(rules as f64 * (COPY + SORT * fields)),
        batch: counts.batch(),
        single: counts.single(),
        update: None,
    })
}

/// What a lookup among all rules does, given a structure over the sample, in which
/// lists have fewer rules, and vectors fewer blocks.
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
    // The rule that a header is drawn from is there in either.
    let more = |count: f64, most: f64| {
        let others = (count - 1.0).max(0.0) * times;
        (count.min(1.0) + others).min(most.max(count))
    };
    let in_lists = (shared.listing * MOST_LISTED) as f64;
    counts.entries = more(counts.entries, in_lists + (wide as f64).sqrt());
    counts.compared = more(counts.compared, counts.entries / 2.0);
    let before = shared.store.row_blocks.max(1) as f64;
    let steps = counts.steps * (row_blocks as f64 / before).max(1.0);
    let most: f64 = if shared.store.summary > 0 { 8.0 } else { 64.0 };
    counts.blocks *= steps.min(most.max(counts.steps)) / counts.steps.max(1.0);
    counts.steps = steps.min(most.max(counts.steps));
    counts.search_bytes = scale.of(counts.search_bytes);
    counts.list_bytes = scale.of(counts.list_bytes);
    counts.row_bytes = row_bytes;
    counts.rule_bytes = rule_bytes;
    counts
}

/// Rules of a list that is met, at most, in the mean.
const MOST_LISTED: usize = 4;

/// The vectors of a field, and the bytes of its search.
fn extrapolated(field: &Field, shape: &Shape, scale: Scale) -> (usize, usize) {
    let rules = shape.rules();
    let (mut bytes, mut most) = (bytes_of::<Member>(field.members.len()), 1_usize);
    let mut intervals = 1;
    for member in &field.members {
        let of_field = &shape.fields()[member.id.index()];
        let matches = of_field.prefixes + 2 * of_field.ranges + 1;
        let width = shape.schema().field(member.id).width();
        let found = member.intervals.len();
        let cuts = 2 * (of_field.prefixes + of_field.ranges) + 1;
        intervals = scale.of(found).min(cuts.max(found));
        bytes = bytes.saturating_add(RangeTree::bytes_of(width, intervals));
        most = most.saturating_mul(matches);
    }
    let classes = field.classes.len();
    let all_classes = scale.of(classes).min(most.max(classes));
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
    let found = if field.has_rows { rows.len() } else { 0 };
    let rows = scale.of(found).min(most.max(found));
    (rows, bytes.saturating_add(bytes_of::<Class>(all_classes)))
}
