//! Statements that a format writes as one, with sets of addresses and ports.
//!
//! A rule has one network and one range of ports in each field. A statement of a firewall that
//! had more became several rules; here they become one statement again.

use std::collections::HashMap;

use super::statement::Statement;
use crate::packets::{Field, Values};

/// The maximum number of values of a set.
const MAX_SET_VALUES: usize = 1024;

/// Statements that differ in the values of some fields only.
#[derive(Clone, Debug)]
pub(super) struct Bundle<'p> {
    /// The first statement.
    pub(super) first: Statement<'p>,
    /// The fields with further values.
    more: Vec<(Field, Vec<Values>)>,
    /// True if the statements are also for the other family.
    pub(super) is_for_both: bool,
}

impl<'p> Bundle<'p> {
    pub(super) fn new(first: Statement<'p>, is_for_both: bool) -> Bundle<'p> {
        Bundle {
            first,
            more: Vec::new(),
            is_for_both,
        }
    }

    /// Returns the values of a field: none if any value is selected.
    pub(super) fn values(&self, field: Field) -> Vec<Values> {
        let more = self.more.iter().find(|(other, _)| *other == field);
        let more = more.map_or(&[][..], |(_, values)| values);
        let first = self.first.values(field).into_iter();
        first.chain(more.iter().copied()).collect()
    }

    /// Adds the values of a field of another bundle. False if they cannot be in one set.
    fn add(&mut self, field: Field, others: &[Values], fits: Fits) -> bool {
        let mut values = self.values(field);
        let overlap = |other: &Values| values.iter().any(|one| one.intersect(other).is_some());
        if values.is_empty() || others.is_empty() || others.iter().any(overlap) {
            return false;
        }
        values.extend(others);
        if values.len() > MAX_SET_VALUES || !fits(&self.first, &values) {
            return false;
        }
        self.more.retain(|(other, _)| *other != field);
        self.more.push((field, values.split_off(1)));
        true
    }

    /// Returns what bundles must have in common if their values of `field` become one set.
    fn key(&self, field: Field) -> (Statement<'p>, Vec<(Field, Vec<Values>)>, bool) {
        let mut more = self.more.clone();
        more.retain(|(other, _)| *other != field);
        more.sort_by_key(|(other, _)| *other);
        (self.first.without(field), more, self.is_for_both)
    }
}

/// True if a format can write some values of a field of a statement as a set.
type Fits = fn(&Statement<'_>, &[Values]) -> bool;

/// Joins bundles of one statement of the source, whose order does not matter. `fields` may have
/// sets if `fits` accepts their values.
pub(super) fn join<'p>(
    mut bundles: Vec<Bundle<'p>>,
    fields: &[Field],
    fits: Fits,
) -> Vec<Bundle<'p>> {
    for &field in fields {
        let mut joined: Vec<Bundle<'p>> = Vec::with_capacity(bundles.len());
        let mut last_of_key = HashMap::new();
        for bundle in bundles {
            let key = bundle.key(field);
            let last: Option<usize> = last_of_key.get(&key).copied();
            let values = bundle.values(field);
            if last.is_some_and(|last| joined[last].add(field, &values, fits)) {
                continue;
            }
            last_of_key.insert(key, joined.len());
            joined.push(bundle);
        }
        bundles = joined;
    }
    bundles
}
