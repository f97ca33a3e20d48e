//! Costs of the forms of `tuplemerge`: table selection, simulated on tuples instead of
//! rules.
//!
//! ```text
//! online:  for tuple in the order in which rules are placed:
//!              join the first table that it fits, or make one by selection
//!          place common tuples again, after all tables exist
//!          while a table's chains are too long: split it as rules would
//! offline: while rules are left:
//!              of the masks common to the best 1, 2, 3, … tuples
//!              take the mask that admits most rules
//! ```
//! The length of chains depends on values, which the shape does not have. The number of
//! keys under a shorter mask is estimated ([`TableEstimate::of_tuple`]), and the longest
//! chain is a fixed multiple of the mean. So the number of tables is usually right
//! within a factor of two.

#![allow(clippy::cast_precision_loss)] // estimates

use super::selection::{Selection, leading_bits};
use super::{Settings, TupleMerge, Variant, is_within};
use crate::contract::observe::{Growth, Met, Prices};
use crate::contract::spec::EngineSpec;
use crate::cost::estimate::{Costs, Shape, Tuple};
use crate::model::error::BuildError;
use crate::model::schema::{MatchKind, Schema};
use crate::model::seed::splitmix;
use crate::parts::tuple_space::{Placing, SpaceEstimate, TableEstimate, most_keys};

/// The length of a table's longest chain, divided by the mean length. Measured in
/// `bench/records/constants.md` (Estimates of TupleMerge).
const LONGEST_TO_MEAN_CHAIN: f64 = 4.0;

/// The number of simulated tuples: the most common ones. Rules of other tuples join the
/// largest table. It bounds the time of an estimate.
const MAX_SIMULATED_TUPLES: usize = 4096;

/// The smallest number of rules of a tuple that is placed again after all tables exist,
/// because most of its rules come then. Measured in `bench/records/constants.md`
/// (Estimates of TupleMerge).
const MIN_RULES_OF_COMMON_TUPLE: usize = 8;

/// The largest number of simulated splits. It bounds the time of an estimate.
const MAX_SIMULATED_SPLITS: usize = 64;

/// Growth of probes and comparisons of a lookup with the number of rules. Chosen by
/// rule sets of 30,000 rules (`bench/README.md`, Estimates).
const GROWTH: Growth = [0.05, 0.15];

/// Costs of lookups, in batches and single; `crate::cost::estimate` describes the fit.
const ONLINE_BATCH: Prices = Prices {
    lookup: 10.0,
    probe: 51.0,
    compare: 75.0,
    compare_word: 13.0,
    probe_lines: 4.3,
    ..Prices::NONE
};
const ONLINE_SINGLE: Prices = Prices {
    lookup: 10.0,
    probe: 77.0,
    compare: 68.0,
    compare_word: 12.5,
    lines: 0.8,
    probe_lines: 6.0,
    ..Prices::NONE
};
const OFFLINE_BATCH: Prices = Prices {
    lookup: 10.0,
    probe: 119.0,
    probe_word: 20.0,
    compare: 44.0,
    compare_word: 2.0,
    ..Prices::NONE
};
const OFFLINE_SINGLE: Prices = Prices {
    lookup: 10.0,
    probe: 166.0,
    probe_word: 21.0,
    compare: 26.0,
    lines: 0.75,
    probe_lines: 0.9,
    ..Prices::NONE
};
const VPP_BATCH: Prices = Prices {
    lookup: 12.0,
    probe: 86.0,
    probe_word: 10.5,
    compare: 55.0,
    compare_word: 2.7,
    probe_lines: 2.2,
    ..Prices::NONE
};
const VPP_SINGLE: Prices = Prices {
    lookup: 33.0,
    probe: 26.0,
    probe_word: 14.0,
    compare: 83.0,
    lines: 0.4,
    probe_lines: 10.8,
    ..Prices::NONE
};

/// Instructions of moving a rule when its table is split, and of choosing its table
/// offline; `crate::cost::estimate` describes the fit.
const MOVE_WORK: f64 = 500.0;
const SELECT_WORK: f64 = 700.0;

/// For [`Engine::estimate`](crate::contract::spec::Engine::estimate).
pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    let settings = Settings::of(spec);
    let (form, selection) = TupleMerge::form(&settings, shape.schema());
    let (tables, splits) = tables(&settings, &selection, shape);
    let moves = match settings.variant {
        Variant::Offline => SELECT_WORK,
        Variant::Online | Variant::Vpp => {
            MOVE_WORK * f64::from(splits) / tables.len().max(1) as f64
        }
    };
    let space = SpaceEstimate {
        shape,
        form,
        placing: Placing::ByTrial { moves },
        met: Met::of(spec, shape, GROWTH)?,
        prices: match settings.variant {
            Variant::Online => [ONLINE_BATCH, ONLINE_SINGLE],
            Variant::Offline => [OFFLINE_BATCH, OFFLINE_SINGLE],
            Variant::Vpp => [VPP_BATCH, VPP_SINGLE],
        },
    };
    Ok(space.estimate(tables))
}

/// Returns the tables and the number of splits; offline, the number of passes over all
/// rules instead.
fn tables(settings: &Settings, selection: &Selection, shape: &Shape) -> (Vec<TableEstimate>, u32) {
    let tuples = shape.tuples();
    let (simulated, others) = tuples.split_at(tuples.len().min(MAX_SIMULATED_TUPLES));
    let members: Vec<&Tuple> = simulated.iter().collect();
    let (mut tables, splits) = match settings.variant {
        Variant::Offline => select_offline(members, settings.offline_limit),
        Variant::Online | Variant::Vpp => {
            place_online(members, settings, selection, shape.schema())
        }
    };
    if let Some(largest) = tables.iter_mut().max_by(|a, b| a.rules.total_cmp(&b.rules)) {
        for tuple in others {
            largest.add(&TableEstimate::of_tuple(tuple, &tuple.mask));
        }
    }
    (tables, splits)
}

/// Returns the time at which the first rule of a tuple is inserted in a random order of
/// all rules: earlier for a tuple with more rules. It depends only on the tuple, so
/// every estimate has the same result.
fn first_at_random(tuple: &Tuple) -> f64 {
    let mut state = tuple.mask.iter().fold(0, |state, word| {
        let mut state = state ^ word;
        splitmix(&mut state)
    });
    let drawn = (splitmix(&mut state) >> 11) as f64 / (1_u64 << 53) as f64;
    -(1.0 - drawn).ln() / tuple.rules as f64
}

/// A table, and the tuples whose rules are in it.
struct Simulated<'a> {
    mask: Vec<u64>,
    members: Vec<&'a Tuple>,
    total: TableEstimate,
}

impl<'a> Simulated<'a> {
    fn new(mask: Vec<u64>) -> Self {
        Simulated {
            mask,
            members: Vec::new(),
            total: TableEstimate::empty(),
        }
    }

    fn admit(&mut self, member: &'a Tuple) {
        self.total.add(&TableEstimate::of_tuple(member, &self.mask));
        self.members.push(member);
    }

    fn clear(&mut self) {
        self.members.clear();
        self.total = TableEstimate::empty();
    }

    fn longest_chain(&self) -> f64 {
        let keys = self.total.keys.max(1.0);
        (self.total.rules / keys * LONGEST_TO_MEAN_CHAIN).min(self.total.rules)
    }

    /// Returns the mask that splits a full chain, if masks can separate its rules: as in
    /// [`TupleMerge::split`], for a chain of the most common tuples.
    fn parting_mask(
        &self,
        limit: usize,
        selection: &Selection,
        schema: &Schema,
    ) -> Option<Vec<u64>> {
        let min_rules = self.total.rules / (limit + 1) as f64;
        let mut members = self.members.clone();
        members.sort_by_key(|member| std::cmp::Reverse(member.rules));
        let common = members.partition_point(|member| member.rules as f64 >= min_rules);
        members.truncate(common.max(2));
        let chain: Vec<&[u64]> = members.iter().map(|member| &*member.mask).collect();
        let mut shared = vec![u64::MAX; self.mask.len()];
        for mask in &chain {
            for (shared, mask) in shared.iter_mut().zip(*mask) {
                *shared &= mask;
            }
        }
        if chain.is_empty() {
            return None;
        }
        let mut relaxed = shared.clone();
        selection.relax_split(&mut relaxed);
        let has_more_bits = |mask: &&Vec<u64>| **mask != self.mask && is_within(&self.mask, mask);
        if let Some(mask) = [&relaxed, &shared].into_iter().find(has_more_bits) {
            return Some(mask.clone());
        }
        let lengths = schema.field_ids().filter_map(|id| {
            let bits = chain.iter().map(|mask| schema.placement(id).get(mask));
            let longest = bits.clone().max_by_key(|bits| bits.count_ones())?;
            let shortest = bits.map(u128::count_ones).min()?;
            let spread = longest.count_ones() - shortest;
            (spread > 0).then_some((spread, shortest, longest, id))
        });
        let (_, shortest, longest, id) = lengths.max_by_key(|&(spread, ..)| spread)?;
        let bits = match schema.field(id).kind() {
            MatchKind::Ternary | MatchKind::Exact => longest,
            MatchKind::Prefix | MatchKind::Range => {
                leading_bits(longest, (shortest + longest.count_ones()).div_ceil(2))
            }
        };
        let mut mask = shared;
        schema.placement(id).set_bits(&mut mask, bits);
        Some(mask)
    }
}

/// Simulates placing rules one by one ([TM19] §III.C.3).
///
/// [TM19]: crate::papers#tm19
fn place_online(
    mut members: Vec<&Tuple>,
    settings: &Settings,
    selection: &Selection,
    schema: &Schema,
) -> (Vec<TableEstimate>, u32) {
    let order_key = |member: &&Tuple| match settings.order {
        "best-first" => member.best,
        "worst-first" => -member.best,
        _ => first_at_random(member),
    };
    members.sort_by(|a, b| order_key(a).total_cmp(&order_key(b)));
    let mut tables: Vec<Simulated<'_>> = Vec::new();
    for &member in &members {
        let fits = |table: &Simulated<'_>| is_within(&table.mask, &member.mask);
        if !tables.iter().any(fits) {
            let mut mask = member.mask.to_vec();
            selection.select(&mut mask);
            tables.push(Simulated::new(mask));
        }
        let first = tables
            .iter_mut()
            .find(|table| is_within(&table.mask, &member.mask));
        first.expect("a table that was there or made").admit(member);
    }
    tables.sort_by(|a, b| a.total.best.total_cmp(&b.total.best));
    let mut again = Vec::new();
    for table in &mut tables {
        let (many, few): (Vec<_>, Vec<_>) = std::mem::take(&mut table.members)
            .into_iter()
            .partition(|member| member.rules >= MIN_RULES_OF_COMMON_TUPLE);
        table.clear();
        few.into_iter().for_each(|member| table.admit(member));
        again.extend(many);
    }
    for member in again {
        let mut tables = tables.iter_mut();
        let first = tables.find(|table| is_within(&table.mask, &member.mask));
        first.expect("every tuple has a table").admit(member);
    }
    tables.retain(|table| !table.members.is_empty());
    let (mut splits, mut at) = (0, 0);
    while at < tables.len() {
        let parting = (splits < MAX_SIMULATED_SPLITS
            && tables[at].longest_chain() > settings.limit as f64)
            .then(|| tables[at].parting_mask(settings.limit, selection, schema))
            .flatten();
        let Some(mask) = parting else {
            at += 1;
            continue;
        };
        splits += 1;
        let (moving, staying): (Vec<_>, Vec<_>) = std::mem::take(&mut tables[at].members)
            .into_iter()
            .partition(|member| is_within(&mask, &member.mask));
        tables[at].clear();
        staying
            .into_iter()
            .for_each(|member| tables[at].admit(member));
        let target = tables.iter().position(|table| table.mask == mask);
        let target = target.unwrap_or_else(|| {
            tables.push(Simulated::new(mask));
            tables.len() - 1
        });
        let nothing_moved = moving.is_empty();
        moving
            .into_iter()
            .for_each(|member| tables[target].admit(member));
        if nothing_moved || tables[at].members.is_empty() {
            at += 1;
        }
    }
    let tables = tables.into_iter().filter(|table| !table.members.is_empty());
    let splits = u32::try_from(splits).expect("not many");
    (tables.map(|table| table.total).collect(), splits)
}

/// Simulates selecting all tables together ([TM19] §III.C.5).
///
/// [TM19]: crate::papers#tm19
fn select_offline(mut members: Vec<&Tuple>, limit: usize) -> (Vec<TableEstimate>, u32) {
    members.sort_by(|a, b| a.best.total_cmp(&b.best));
    let mut remaining: Vec<(&Tuple, f64)> = members
        .into_iter()
        .map(|member| (member, member.rules as f64))
        .collect();
    let (mut tables, mut passes) = (Vec::new(), 0);
    while !remaining.is_empty() {
        let mut masks: Vec<Vec<u64>> = Vec::new();
        let mut common = vec![u64::MAX; remaining[0].0.mask.len()];
        for (member, _) in &remaining {
            for (common, mask) in common.iter_mut().zip(&*member.mask) {
                *common &= mask;
            }
            if masks.last() != Some(&common) {
                masks.push(common.clone());
            }
        }
        // Returns the part of a tuple that a mask admits, and the number of its keys.
        let admitted = |(member, rules): &(&Tuple, f64), mask: &[u64]| {
            if !is_within(mask, &member.mask) {
                return TableEstimate::empty();
            }
            let whole_tuple = TableEstimate::of_tuple(member, mask);
            let share = rules / whole_tuple.rules;
            let keys = (whole_tuple.keys * share).max(1.0);
            let max_rules = (keys * limit as f64).max(1.0);
            // Better rules of the tuple were admitted before.
            let best = whole_tuple.best + (1.0 - share) * (1.0 - whole_tuple.best);
            TableEstimate {
                rules: rules.min(max_rules),
                keys,
                best,
            }
        };
        // Under a mask of few bits, tuples share keys.
        let room = |mask: &[u64]| most_keys(mask) * limit as f64;
        let count = |mask: &[u64]| {
            let rules: f64 = remaining
                .iter()
                .map(|part| admitted(part, mask).rules)
                .sum();
            rules.min(room(mask))
        };
        let counts: Vec<f64> = masks.iter().map(|mask| count(mask)).collect();
        passes += u32::try_from(masks.len()).unwrap_or(u32::MAX);
        let best = (0..masks.len()).max_by(|&a, &b| counts[a].total_cmp(&counts[b]));
        let mask = &masks[best.expect("a tuple has a mask")];
        let mut table = TableEstimate::empty();
        let mut room = room(mask);
        let last = tables.len() + 1 >= MAX_SIMULATED_TUPLES;
        remaining.retain_mut(|part| {
            let mut admitted_part = admitted(part, mask);
            admitted_part.rules = admitted_part.rules.min(room);
            if admitted_part.rules > 0.0 {
                table.add(&admitted_part);
            }
            room -= admitted_part.rules;
            part.1 -= admitted_part.rules;
            part.1 >= 0.5 && !last
        });
        table.keys = table.keys.min(most_keys(mask));
        tables.push(table);
    }
    (tables, passes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shape of tuples, each with the lengths of both addresses and its number of
    /// rules.
    fn shape(tuples: &[(u32, u32, usize)]) -> Shape {
        let schema = Schema::ipv4_5tuple();
        let tuples = tuples.iter().map(|&(source, destination, rules)| {
            Tuple::of_lengths(&schema, &[source, destination, 0, 0, 8], rules)
        });
        Shape::new(&schema, tuples.collect())
    }

    fn simulate(text: &str, shape: &Shape) -> Vec<TableEstimate> {
        let settings = Settings::of(&EngineSpec::parse(text).unwrap());
        let (_, selection) = TupleMerge::form(&settings, shape.schema());
        tables(&settings, &selection, shape).0
    }

    const FORMS: [&str; 3] = ["tuplemerge", "tuplemerge-offline", "tuplemerge-vpp"];

    #[test]
    fn every_rule_is_in_a_table() {
        let many: Vec<_> = (0..33)
            .flat_map(|a| (0..33).map(move |b| (a, b, (a * b) as usize)))
            .collect();
        for tuples in [&[][..], &[(32, 32, 1)], &[(0, 0, 900), (32, 0, 7)], &many] {
            let shape = shape(tuples);
            for form in FORMS {
                let tables = simulate(form, &shape);
                let rules: f64 = tables.iter().map(|table| table.rules).sum();
                let off = (rules - shape.rules() as f64).abs();
                // Rounding may drop less than half a rule of each tuple.
                assert!(off <= 0.5 * tuples.len() as f64, "{form}: {rules}");
                // Offline, rules that match everything fill one table after the other.
                let max_tables = tuples.len() * if form.ends_with("offline") { 20 } else { 1 };
                assert!(
                    tables.len() <= max_tables,
                    "{form}: {} tables",
                    tables.len()
                );
                assert!(tables.iter().all(|t| (0.0..=1.0).contains(&t.best)));
            }
        }
    }

    #[test]
    fn like_masks_share_a_table_and_others_do_not() {
        let alike = shape(&[(32, 32, 5000), (31, 30, 400), (30, 32, 300)]);
        assert_eq!(simulate("tuplemerge", &alike).len(), 1);
        let apart = shape(&[(32, 0, 500), (0, 32, 400)]);
        for form in FORMS {
            assert_eq!(simulate(form, &apart).len(), 2, "{form}");
        }
    }

    #[test]
    fn few_rules_may_collide_where_the_limit_is_low() {
        let coarse = shape(&[(8, 0, 4000), (16, 0, 4000), (24, 0, 4000), (32, 0, 4000)]);
        let [low, high] = ["tuplemerge:c=2:order=worst-first", "tuplemerge:c=60000"]
            .map(|text| simulate(text, &coarse).len());
        assert!(low > high, "{low}, {high}");
    }

    /// A general rule does not fit a table made for a specific rule.
    #[test]
    fn specific_rules_first_make_more_tables() {
        let mut tuples = Vec::new();
        let schema = Schema::ipv4_5tuple();
        for length in 1..=32 {
            let mut tuple = Tuple::of_lengths(&schema, &[length, 0, 0, 0, 0], 100);
            tuple.best = 1.0 - f64::from(length) / 33.0;
            tuples.push(tuple);
        }
        let nested = Shape::new(&schema, tuples);
        let [best, worst] = ["best", "worst"].map(|order| {
            let text = format!("tuplemerge:c=65535:order={order}-first");
            simulate(&text, &nested).len()
        });
        assert!(best > worst, "{best}, {worst}");
    }
}
