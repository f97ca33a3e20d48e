//! Unions of terms, and their set operations.

use std::fmt;

use super::Term;

/// A set of headers of `W` words: a union of terms, which may overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Space<const W: usize> {
    terms: Vec<Term<W>>,
}

/// The result of an operation would have more terms than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyTerms {
    /// The limit.
    pub most: usize,
}

impl fmt::Display for TooManyTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max_terms = self.most;
        write!(
            f,
            "a header space needs more than {max_terms} terms, its limit"
        )
    }
}

impl std::error::Error for TooManyTerms {}

impl<const W: usize> From<Term<W>> for Space<W> {
    fn from(term: Term<W>) -> Space<W> {
        Space { terms: vec![term] }
    }
}

impl<const W: usize> FromIterator<Term<W>> for Space<W> {
    fn from_iter<I: IntoIterator<Item = Term<W>>>(terms: I) -> Space<W> {
        Space {
            terms: terms.into_iter().collect(),
        }
    }
}

/// Collects terms, at most `most`.
fn gather<const W: usize>(
    terms: impl Iterator<Item = Term<W>>,
    most: usize,
) -> Result<Space<W>, TooManyTerms> {
    let mut gathered = Vec::new();
    for term in terms {
        if gathered.len() == most {
            return Err(TooManyTerms { most });
        }
        gathered.push(term);
    }
    Ok(Space { terms: gathered })
}

impl<const W: usize> Space<W> {
    /// Returns the empty set.
    #[must_use]
    pub fn empty() -> Space<W> {
        Space { terms: Vec::new() }
    }

    /// Returns the set of all headers.
    #[must_use]
    pub fn any() -> Space<W> {
        Term::ANY.into()
    }

    /// Returns the terms.
    #[must_use]
    pub fn terms(&self) -> &[Term<W>] {
        &self.terms
    }

    /// True if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// True if a header is in the set.
    #[must_use]
    pub fn contains(&self, point: &[u64; W]) -> bool {
        self.terms.iter().any(|term| term.contains(point))
    }

    /// True if some header is in both sets.
    #[must_use]
    pub fn overlaps(&self, other: &Space<W>) -> bool {
        let mut terms = self.terms.iter();
        terms.any(|one| other.terms.iter().any(|two| one.overlaps(two)))
    }

    /// True if all headers of `other` are in this set.
    ///
    /// # Errors
    /// [`TooManyTerms`] if an intermediate result has more than `most` terms.
    pub fn covers(&self, other: &Space<W>, most: usize) -> Result<bool, TooManyTerms> {
        Ok(other.difference(self, most)?.is_empty())
    }

    /// Returns the headers that are in either set.
    ///
    /// # Errors
    /// [`TooManyTerms`] if the union has more than `most` terms.
    pub fn union(&self, other: &Space<W>, most: usize) -> Result<Space<W>, TooManyTerms> {
        gather(self.terms.iter().chain(&other.terms).copied(), most)
    }

    /// Returns the headers that are in both sets.
    ///
    /// # Errors
    /// [`TooManyTerms`] if the intersection has more than `most` terms.
    pub fn intersection(&self, other: &Space<W>, most: usize) -> Result<Space<W>, TooManyTerms> {
        let pairs = self
            .terms
            .iter()
            .flat_map(|one| other.terms.iter().map(move |two| one.intersection(two)));
        gather(pairs.flatten(), most)
    }

    /// Returns the headers of this set that are in `term`. The number of terms does not
    /// grow.
    #[must_use]
    pub fn within(&self, term: &Term<W>) -> Space<W> {
        let common = self.terms.iter().filter_map(|one| one.intersection(term));
        common.collect()
    }

    /// Returns the headers of this set that are not in `term`. Disjoint terms stay
    /// disjoint.
    ///
    /// # Errors
    /// [`TooManyTerms`] if the result has more than `most` terms.
    pub fn without(&self, term: &Term<W>, most: usize) -> Result<Space<W>, TooManyTerms> {
        gather(self.terms.iter().flat_map(|one| one.difference(term)), most)
    }

    /// Returns the headers of this set that are not in `other`.
    ///
    /// [`TooManyTerms`] if there are more than `most` terms after subtracting any term of
    /// `other`.
    pub fn difference(&self, other: &Space<W>, most: usize) -> Result<Space<W>, TooManyTerms> {
        let mut difference = self.clone();
        for term in &other.terms {
            difference = difference.without(term, most)?;
        }
        Ok(difference)
    }

    /// Returns the headers that are not in this set, as disjoint terms.
    ///
    /// # Errors
    /// [`TooManyTerms`] as in [`Space::difference`].
    pub fn complement(&self, most: usize) -> Result<Space<W>, TooManyTerms> {
        Space::any().difference(self, most)
    }

    /// Returns the headers after the bits of `mask` have been set to `value`. Drops terms
    /// that another term then covers.
    #[must_use]
    pub fn with_bits(&self, value: &[u64; W], mask: &[u64; W]) -> Space<W> {
        let set = self.terms.iter().map(|term| term.with_bits(value, mask));
        set.collect::<Space<W>>().without_covered()
    }

    /// Returns the same set without terms that another term covers. One of
    /// several equal terms stays. Time grows with the square of the number of terms.
    #[must_use]
    pub fn without_covered(mut self) -> Space<W> {
        // A covering term has fewer mask bits, or is equal.
        self.terms.sort_by_key(|term| (term.bits(), *term));
        let mut uncovered: Vec<Term<W>> = Vec::new();
        for term in self.terms {
            if !uncovered.iter().any(|other| other.covers(&term)) {
                uncovered.push(term);
            }
        }
        Space { terms: uncovered }
    }
}

impl<const W: usize> fmt::Display for Space<W> {
    /// Writes the terms with ` ∪ ` between them, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, term) in self.terms.iter().enumerate() {
            match number {
                0 => write!(f, "{term}")?,
                _ => write!(f, " ∪ {term}")?,
            }
        }
        match self.is_empty() {
            true => f.write_str("none"),
            false => Ok(()),
        }
    }
}
