//! Cases of claims about the paper's sizes and seeds. A size or seed that was not measured
//! has a case without a measurement.

use classyard_workload::generate::Profile;

use crate::bench::size_name;
use crate::reproduce::claims::{Case, Gap};

/// The sizes and profiles that a figure was measured for.
#[derive(Clone, Copy)]
pub(super) struct Coverage<'a> {
    /// The paper's numbers of rules.
    pub(super) paper_sizes: &'a [usize],
    pub(super) sizes: &'a [usize],
    pub(super) names: &'a [String],
}

/// The reason why a size or a seed has no measurement.
pub(super) const LEFT_OUT: Gap = Gap::NotRun("left out of this reproduction");

impl<'a> Coverage<'a> {
    /// Returns a case for each of the paper's sizes that `is_wanted` accepts. `samples`
    /// receives the index of the size.
    pub(super) fn by_size(
        self,
        is_wanted: impl Fn(usize) -> bool + 'a,
        samples: impl Fn(usize) -> Vec<f64> + 'a,
    ) -> impl Iterator<Item = Case> + 'a {
        let wanted = self
            .paper_sizes
            .iter()
            .filter(move |&&size| is_wanted(size));
        wanted.map(move |&size| self.at_size(size, size_name(size), &samples))
    }

    /// Returns a case at one size.
    pub(super) fn at_size(
        self,
        size: usize,
        name: impl Into<String>,
        samples: impl Fn(usize) -> Vec<f64>,
    ) -> Case {
        match self.place(size) {
            Some(place) => Case::samples(name, samples(place)),
            None => Case::missing(name, LEFT_OUT),
        }
    }

    /// Returns a case for each of the paper's seeds at one size. `samples` receives the
    /// index of the profile and the index of the size.
    pub(super) fn by_seed(
        self,
        size: usize,
        samples: impl Fn(usize, usize) -> Vec<f64> + 'a,
    ) -> impl Iterator<Item = Case> + 'a {
        Profile::BUILT_IN.iter().map(move |&name| {
            let number = self.names.iter().position(|other| other == name);
            match (number, self.place(size)) {
                (Some(number), Some(place)) => Case::samples(name, samples(number, place)),
                _ => Case::missing(name, LEFT_OUT),
            }
        })
    }

    /// Returns one case of all rule sets, if no size or seed of the paper was left out.
    pub(super) fn pooled(self, name: impl Into<String>, samples: Vec<f64>) -> Case {
        let has_sizes = self
            .paper_sizes
            .iter()
            .all(|&size| self.place(size).is_some());
        match has_sizes && self.has_seeds() {
            true => Case::samples(name, samples),
            false => Case::missing(name, Gap::NotRun("all sizes and seeds of the paper")),
        }
    }

    /// Returns a case without a measurement for each seed of the paper that was left out.
    pub(super) fn absent_seeds(self) -> impl Iterator<Item = Case> + 'a {
        let absent = Profile::BUILT_IN
            .iter()
            .filter(move |seed| self.number(seed).is_none());
        absent.map(|&seed| Case::missing(seed, LEFT_OUT))
    }

    /// True if no seed of the paper was left out.
    pub(super) fn has_seeds(self) -> bool {
        let seeds = Profile::BUILT_IN.iter();
        seeds
            .into_iter()
            .all(|&seed| self.names.iter().any(|name| name == seed))
    }

    /// The index of a size.
    pub(super) fn place(self, size: usize) -> Option<usize> {
        self.sizes.iter().position(|&other| other == size)
    }

    /// The index of a profile.
    pub(super) fn number(self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other == name)
    }
}
