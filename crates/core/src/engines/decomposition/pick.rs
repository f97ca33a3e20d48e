//! Divides rules between lists and bit vectors, and chooses the fields to search.
//!
//! # Lists
//! If a rule shares its match of some field with few other rules, it need not be in
//! any vector: the few rules with that field's value are compared. Two rules *share*
//! a field if both name values there and some value matches both. A rule may go to
//! the list of a field that it shares with at most `share` rules, itself included. So
//! no list is longer than `share`, and no rule is in more than `2 * share` lists.
//!
//! Each field with lists is one more search. So the fields are chosen greedily: first
//! the field whose lists can have the most rules, then the field whose lists can have
//! the most of the remaining rules, as long as a field takes a block's worth of rules
//! from the vectors. Each rule goes to the chosen field that it shares with the
//! fewest rules.
//!
//! # Vectors
//! A comparison of the rule confirms each candidate of the vectors. So a field may be
//! left out: this costs comparisons, and saves a search and a vector. Samples of
//! rules and headers are drawn. The field that excludes most of the wrong candidates
//! is added, as long as this saves more than it costs.

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::schema::{FieldId, Schema};
use crate::model::seed::splitmix;
use crate::parts::projection::Places;
use crate::parts::ranked::RankedRules;
use crate::parts::sort::sort;

use super::BLOCK_RULES;
use super::screen::{NO_SCREEN, Rarest};

/// The list number of a rule that is in the vectors and in no list.
pub(super) const NO_LIST: u8 = u8::MAX;

/// The count of rules that share an open match, or a match shared by too many rules.
const SHARED_BY_MANY: u8 = u8::MAX;

/// The largest number of rules in a list.
pub(super) const MAX_SHARED: usize = SHARED_BY_MANY as usize - 1;

/// The number of headers and rules that are drawn to choose the fields of vectors.
/// Measured in `bench/records/constants.md` (Decomposition).
const SAMPLE_HEADERS: usize = 64;
const SAMPLE_RULES: usize = 256;

// Prices in nanoseconds. Only their ratios matter.
/// To test the tag of a candidate, and to compare a candidate that passes. Measured
/// in `bench/records/constants.md` (Decomposition).
const SCREEN_NS: f64 = 1.5;
const COMPARE_NS: f64 = 8.0;
/// To search a field, for each doubling of its values; and to join a block. Measured
/// in `bench/records/constants.md` (Decomposition).
const SEARCH_NS: f64 = 0.4;
const BLOCK_NS: f64 = 0.7;
/// The largest number of blocks that are joined before the first rule is found.
/// Measured in `bench/records/constants.md` (Decomposition).
const MAX_READ_BLOCKS: usize = 4;

/// The division of rules, and the fields that are searched.
pub(super) struct Plan {
    /// For each place, the field with the rule's list, or [`NO_LIST`].
    pub(super) list_of: Vec<u8>,
    /// The places of the rules in the vectors, ascending.
    pub(super) wide: Vec<u32>,
    /// For each place, the field with the rule's screen, or [`NO_SCREEN`].
    pub(super) screen_of: Vec<u8>,
    /// Fields with lists.
    pub(super) listed: Vec<FieldId>,
    /// Fields with vectors.
    pub(super) joined: Vec<FieldId>,
}

/// Settings for the division of rules.
#[derive(Clone, Copy)]
pub(super) struct PlanConfig {
    /// The largest number of rules in a list; 0 for no lists.
    pub(super) share: usize,
    /// The smallest number of rules for which a field gets lists.
    pub(super) least: usize,
    /// True if all fields that are not open have vectors.
    pub(super) all_fields: bool,
}

impl Plan {
    /// Chooses lists and fields. Counts the memory of the plan as working memory.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] and [`BuildError::TooManyPeakBytes`].
    pub(super) fn make(
        rules: &RankedRules,
        config: PlanConfig,
        monitor: &mut Monitor<'_>,
    ) -> Result<Plan, BuildError> {
        let fields = rules.schema().fields().len();
        monitor.begin("choosing fields", rules.len().saturating_mul(fields))?;
        monitor.memory().take(rules.len())?;
        let mut plan = Plan {
            list_of: vec![NO_LIST; rules.len()],
            wide: Vec::new(),
            screen_of: Vec::new(),
            listed: Vec::new(),
            joined: Vec::new(),
        };
        plan.screen_of = match config.all_fields {
            true => {
                monitor.memory().take(rules.len())?;
                vec![NO_SCREEN; rules.len()]
            }
            false => {
                let rarest = plan.choose_lists(rules, config, monitor)?;
                rarest.screens(&plan.list_of, monitor)?
            }
        };
        let count = plan.list_of.iter().filter(|&&list| list == NO_LIST).count();
        monitor.memory().take(bytes_of::<u32>(count))?;
        let wide = (0..=u32::MAX).zip(&plan.list_of);
        let wide = wide.filter(|(_, list)| **list == NO_LIST);
        plan.wide = Vec::with_capacity(count);
        plan.wide.extend(wide.map(|(place, _)| place));
        plan.joined = match config.all_fields {
            true => plan.constrained(rules, monitor)?,
            false => plan.choose_joined(rules, monitor)?,
        };
        Ok(plan)
    }

    /// Bytes held by the plan.
    pub(super) fn bytes(&self) -> usize {
        self.list_of.capacity() + self.screen_of.capacity() + bytes_of::<u32>(self.wide.capacity())
    }

    fn choose_lists(
        &mut self,
        rules: &RankedRules,
        config: PlanConfig,
        monitor: &mut Monitor<'_>,
    ) -> Result<Rarest, BuildError> {
        let (schema, count) = (rules.schema(), rules.len());
        let mut rarest = Rarest::new(count, monitor)?;
        if count == 0 {
            return Ok(rarest);
        }
        let bytes = count.saturating_mul(schema.fields().len());
        monitor.memory().take(bytes)?;
        // One row for each field.
        let mut shared = vec![SHARED_BY_MANY; bytes];
        for (id, shared) in schema.field_ids().zip(shared.chunks_exact_mut(count)) {
            count_shared(rules, id, shared, &mut rarest, monitor)?;
        }
        let max_shared = u8::try_from(config.share.min(MAX_SHARED)).unwrap_or(SHARED_BY_MANY - 1);
        let has_lists = config.share > 0 && count >= config.least.max(1);
        // A field is never chosen twice, because it would list no further rule.
        for _ in schema.field_ids().take_while(|_| has_lists) {
            let free = |shared: &[u8]| {
                let rules = shared.iter().zip(&self.list_of);
                rules
                    .filter(|&(&shared, &list)| shared <= max_shared && list == NO_LIST)
                    .count()
            };
            let ids = schema.field_ids().zip(shared.chunks_exact(count));
            let best = ids.map(|(id, shared)| (free(shared), id, shared));
            // Of fields with equal numbers, chooses the first.
            let best = best.reduce(|best, next| if next.0 > best.0 { next } else { best });
            let Some((_, id, of_best)) = best.filter(|best| best.0 >= config.least.max(1)) else {
                break;
            };
            self.listed.push(id);
            let number = u8::try_from(id.index()).expect("a field's index is a byte");
            for (list, &shared) in self.list_of.iter_mut().zip(of_best) {
                if *list == NO_LIST && shared <= max_shared {
                    *list = number;
                }
            }
            monitor.work(count)?;
        }
        // Moves each rule to the shortest list that it may be in.
        for (place, list) in self.list_of.iter_mut().enumerate() {
            let shared = |id: FieldId| shared[id.index() * count + place];
            let best = self.listed.iter().min_by_key(|&&id| shared(id));
            if let Some(id) = best.filter(|&&id| shared(id) <= max_shared) {
                *list = u8::try_from(id.index()).expect("a field's index is a byte");
            }
            monitor.work(usize::from(place % 8 == 0))?;
        }
        let used = |id: &FieldId| {
            self.list_of
                .iter()
                .any(|&list| usize::from(list) == id.index())
        };
        self.listed.retain(used);
        drop(shared);
        monitor.memory().give_back(bytes);
        Ok(rarest)
    }

    /// Returns the fields that are not open in every rule of the vectors.
    fn constrained(
        &self,
        rules: &RankedRules,
        monitor: &mut Monitor<'_>,
    ) -> Result<Vec<FieldId>, BuildError> {
        let mut constrained = Vec::new();
        for id in rules.schema().field_ids() {
            let wide = self.wide.iter().map(|&place| place as usize);
            if { wide }.any(|place| !is_open(rules, place, id)) {
                constrained.push(id);
            }
            monitor.work(self.wide.len())?;
        }
        Ok(constrained)
    }

    /// Chooses the fields that exclude the most rules of the vectors.
    #[allow(clippy::cast_precision_loss)] // prices
    fn choose_joined(
        &self,
        rules: &RankedRules,
        monitor: &mut Monitor<'_>,
    ) -> Result<Vec<FieldId>, BuildError> {
        let schema = rules.schema();
        let (headers, count) = (
            SAMPLE_HEADERS.min(rules.len()),
            SAMPLE_RULES.min(self.wide.len()),
        );
        if count == 0 {
            return Ok(Vec::new());
        }
        let bytes = bytes_of::<u64>(headers * count);
        monitor.memory().take(bytes)?;
        // A bit for each field that excludes the rule for the header.
        let mut excluded = vec![0_u64; headers * count];
        let drawn = |number: usize| self.wide[number * self.wide.len() / count] as usize;
        let screens: Vec<u64> = (0..count)
            .map(|number| 1_u64.checked_shl(self.screen_of[drawn(number)].into()))
            .map(Option::unwrap_or_default)
            .collect();
        let mut state = 1;
        for id in schema.field_ids() {
            for header in 0..headers {
                let value = drawn_value(rules, id, header, headers, &mut state);
                let row = &mut excluded[header * count..][..count];
                for (number, excluded) in row.iter_mut().enumerate() {
                    let (low, high) = rules.ends(drawn(number), id);
                    *excluded |= u64::from(value < low || high < value) << id.index();
                }
                monitor.work(count / 8)?;
            }
        }
        let weight = self.wide.len() as f64 / (headers * count) as f64;
        let blocks = self.wide.len().div_ceil(BLOCK_RULES).min(MAX_READ_BLOCKS) as f64;
        let mut joined = Vec::new();
        loop {
            let saved = |id: FieldId| {
                let rows = excluded.chunks_exact(count);
                let pairs = rows.flat_map(|row| row.iter().zip(&screens));
                let wrong = pairs.filter(|(bits, _)| *bits >> id.index() & 1 == 1);
                // A screen excludes most rules that do not match in its field.
                let saved = wrong.map(|(bits, screen)| match bits & screen {
                    0 => SCREEN_NS + COMPARE_NS,
                    _ => SCREEN_NS,
                });
                saved.sum::<f64>() * weight
            };
            let best = schema.field_ids().map(|id| (saved(id), id));
            let best = best.reduce(|best, next| if next.0 > best.0 { next } else { best });
            monitor.work(headers * count / 8)?;
            let search = match self.listed.contains(&best.expect("a field").1) {
                true => 0.0,
                false => SEARCH_NS * (1.0 + (self.wide.len() as f64).log2().min(8.0)),
            };
            let Some((_, id)) = best.filter(|best| best.0 > search + blocks * BLOCK_NS) else {
                break;
            };
            joined.push(id);
            for bits in &mut excluded {
                if *bits >> id.index() & 1 == 1 {
                    *bits = 0;
                }
            }
        }
        joined.sort_unstable();
        drop(excluded);
        monitor.memory().give_back(bytes);
        Ok(joined)
    }
}

/// True if a rule matches all values of a field.
pub(super) fn is_open(rules: &RankedRules, place: usize, id: FieldId) -> bool {
    rules.ends(place, id) == (0, rules.schema().field(id).max_value())
}

/// Draws a field's value of a header that some rule matches, at least in the fields
/// that the rule names. In its open fields, the value is random, 0, the largest
/// value, or a value that another rule names.
pub(super) fn drawn_value(
    rules: &RankedRules,
    id: FieldId,
    header: usize,
    headers: usize,
    state: &mut u64,
) -> u128 {
    let max_value = rules.schema().field(id).max_value();
    let random = u128::from(splitmix(state)) << 64 | u128::from(splitmix(state));
    let place = header * rules.len() / headers;
    let other_place = usize::try_from(random % rules.len() as u128).unwrap_or(0);
    let is_open = is_open(rules, place, id);
    let (low, high) = rules.ends(if is_open { other_place } else { place }, id);
    match splitmix(state) % 4 {
        0 if is_open => random & max_value,
        0 | 1 => low,
        _ => high,
    }
}

/// Counts for each rule the rules that share a field with it, including itself. The
/// count is [`SHARED_BY_MANY`] if the field is open.
fn count_shared(
    rules: &RankedRules,
    id: FieldId,
    shared: &mut [u8],
    rarest: &mut Rarest,
    monitor: &mut Monitor<'_>,
) -> Result<(), BuildError> {
    let number = u8::try_from(id.index()).expect("a field's index is a byte");
    let named = |place: &usize| !is_open(rules, *place, id);
    let count = (0..rules.len()).filter(named).count();
    monitor.work(rules.len() / 8)?;
    let bytes = 2 * bytes_of::<u128>(count);
    monitor.memory().take(bytes)?;
    let (mut lows, mut highs) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for place in (0..rules.len()).filter(named) {
        let (low, high) = rules.ends(place, id);
        lows.push(low);
        highs.push(high);
        monitor.work(1)?;
    }
    sort(&mut lows, monitor)?;
    sort(&mut highs, monitor)?;
    for (place, shared) in shared.iter_mut().enumerate() {
        if named(&place) {
            let (low, high) = rules.ends(place, id);
            let begun = lows.partition_point(|&end| end <= high);
            let ended = highs.partition_point(|&end| end < low);
            *shared = u8::try_from(begun - ended).unwrap_or(SHARED_BY_MANY);
            if rules.schema().placement(id).get(rules.rule(place).mask) != 0 {
                let count = u32::try_from(begun - ended).unwrap_or(u32::MAX);
                rarest.note(place, count, number);
            }
        }
        monitor.advance(1)?;
    }
    drop((lows, highs));
    monitor.memory().give_back(bytes);
    Ok(())
}

/// Some of the rules, for their projection on a field.
pub(super) struct Subset<'a> {
    pub(super) rules: &'a RankedRules,
    /// In ascending order.
    pub(super) places: &'a [u32],
}

impl Places for Subset<'_> {
    fn schema(&self) -> &Schema {
        self.rules.schema()
    }

    fn count(&self) -> usize {
        self.places.len()
    }

    fn ends(&self, place: usize, field: FieldId) -> (u128, u128) {
        self.rules.ends(self.places[place] as usize, field)
    }

    fn is_box(&self, place: usize) -> bool {
        self.rules.is_box(self.places[place] as usize)
    }
}
