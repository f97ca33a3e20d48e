//! Values of several engines over the same rule sets, with means and mean ratios.

use std::collections::BTreeSet;

use crate::reproduce::statistics::mean;

/// Indices of a profile and a size.
pub(super) type At = (usize, usize);

/// A value for each engine and rule set.
#[derive(Clone, Debug, Default)]
pub(super) struct Sheet(Vec<(At, Vec<f64>)>);

impl Sheet {
    /// Adds the values of all engines for one rule set.
    pub(super) fn add(&mut self, at: At, values: Vec<f64>) {
        self.0.push((at, values));
    }

    fn of<'a>(
        &'a self,
        within: impl Fn(At) -> bool + 'a,
        value: impl Fn(&[f64]) -> f64 + 'a,
    ) -> impl Iterator<Item = f64> + 'a {
        let chosen = self.0.iter().filter(move |(at, _)| within(*at));
        let values = chosen.map(move |(_, values)| value(values));
        // An engine that was not built has no value (NaN).
        values.filter(|value| value.is_finite())
    }

    /// Returns the values of an engine.
    pub(super) fn values(&self, engine: usize, within: impl Fn(At) -> bool) -> Vec<f64> {
        self.of(within, |values| values[engine]).collect()
    }

    /// Returns the mean over rule sets; `None` without values.
    pub(super) fn mean(&self, engine: usize, within: impl Fn(At) -> bool) -> Option<f64> {
        let values = self.values(engine, within);
        (!values.is_empty()).then(|| mean(&values))
    }

    /// Returns the mean over rule sets of engine `a`'s value divided by engine `b`'s.
    pub(super) fn ratio(&self, a: usize, b: usize, within: impl Fn(At) -> bool) -> Option<f64> {
        let ratios: Vec<f64> = self.of(within, |values| values[a] / values[b]).collect();
        (!ratios.is_empty()).then(|| mean(&ratios))
    }

    /// Returns engine `a`'s value divided by engine `b`'s for each rule set; NaN if an engine
    /// was not built.
    pub(super) fn ratios(&self, a: usize, b: usize, within: impl Fn(At) -> bool) -> Vec<f64> {
        let chosen = self.0.iter().filter(|(at, _)| within(*at));
        chosen.map(|(_, values)| values[a] / values[b]).collect()
    }

    /// Returns engine `a`'s value at a size divided by its value at another size, for each
    /// rule set of a profile that both sizes have.
    pub(super) fn growth(&self, engine: usize, (from, to): (usize, usize)) -> Vec<f64> {
        let profiles: BTreeSet<usize> = self.0.iter().map(|(at, _)| at.0).collect();
        let growth = profiles.into_iter().flat_map(|profile| {
            let values = |size| self.values(engine, |at| at == (profile, size));
            let pairs = values(to).into_iter().zip(values(from));
            pairs.map(|(last, first)| last / first).collect::<Vec<_>>()
        });
        growth.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_mean_of_ratios() {
        let mut sheet = Sheet::default();
        sheet.add((0, 0), vec![1.0, 2.0]);
        sheet.add((1, 0), vec![10.0, 40.0]);
        sheet.add((1, 1), vec![10.0, f64::NAN]);
        assert_eq!(sheet.ratio(1, 0, |_| true), Some(3.0));
        assert_eq!(sheet.mean(1, |_| true), Some(21.0));
        assert_eq!(sheet.mean(0, |at| at.0 == 1), Some(10.0));
        assert_eq!(sheet.ratio(1, 0, |at| at.1 == 1), None);
        assert_eq!(sheet.values(0, |at| at.1 == 0), [1.0, 10.0]);
        assert_eq!(sheet.ratios(1, 0, |at| at.1 == 0), [2.0, 4.0]);
        assert!(sheet.ratios(1, 0, |at| at.1 == 1)[0].is_nan());
        assert_eq!(sheet.growth(0, (0, 1)), [1.0]);
    }
}
