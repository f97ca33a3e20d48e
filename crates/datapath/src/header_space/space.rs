//! Unions of terms, and what can be done with them.

use std::fmt;

use super::Term;

/// A set of headers of `W` words: a union of terms, which may overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Space<const W: usize> {
    terms: Vec<Term<W>>,
}

/// An operation would have made more terms than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyTerms {
    /// The limit.
    pub most: usize,
}

impl fmt::Display for TooManyTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.most;
        write!(f, "a header space needs more than {most} terms, its limit")
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

/// Gathers terms, as many as are allowed.
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
    /// No header.
    #[must_use]
    pub fn empty() -> Space<W> {
        Space { terms: Vec::new() }
    }

    /// All headers.
    #[must_use]
    pub fn any() -> Space<W> {
        Term::ANY.into()
    }

    /// The terms.
    #[must_use]
    pub fn terms(&self) -> &[Term<W>] {
        &self.terms
    }

    /// Whether no header is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a header is in the set.
    #[must_use]
    pub fn contains(&self, point: &[u64; W]) -> bool {
        self.terms.iter().any(|term| term.contains(point))
    }

    /// Whether some header is in both sets.
    #[must_use]
    pub fn overlaps(&self, other: &Space<W>) -> bool {
        let mut terms = self.terms.iter();
        terms.any(|one| other.terms.iter().any(|two| one.overlaps(two)))
    }

    /// Whether all headers of the other set are in this one.
    ///
    /// # Errors
    /// [`TooManyTerms`] when the difference needs more than `most` terms on the way.
    pub fn covers(&self, other: &Space<W>, most: usize) -> Result<bool, TooManyTerms> {
        Ok(other.difference(self, most)?.is_empty())
    }

    /// The headers that are in either set.
    ///
    /// # Errors
    /// [`TooManyTerms`] when these are more than `most` terms.
    pub fn union(&self, other: &Space<W>, most: usize) -> Result<Space<W>, TooManyTerms> {
        gather(self.terms.iter().chain(&other.terms).copied(), most)
    }

    /// The headers that are in both sets.
    ///
    /// # Errors
    /// [`TooManyTerms`] when these are more than `most` terms.
    pub fn intersection(&self, other: &Space<W>, most: usize) -> Result<Space<W>, TooManyTerms> {
        let pairs = self
            .terms
            .iter()
            .flat_map(|one| other.terms.iter().map(move |two| one.intersection(two)));
        gather(pairs.flatten(), most)
    }

    /// The headers of this set that a term has: never more terms than before.
    #[must_use]
    pub fn within(&self, term: &Term<W>) -> Space<W> {
        let common = self.terms.iter().filter_map(|one| one.intersection(term));
        common.collect()
    }

    /// The headers of this set that a term does not have. Disjoint terms stay disjoint.
    ///
    /// # Errors
    /// [`TooManyTerms`] when these are more than `most` terms.
    pub fn without(&self, term: &Term<W>, most: usize) -> Result<Space<W>, TooManyTerms> {
        gather(self.terms.iter().flat_map(|one| one.difference(term)), most)
    }

    /// The headers of this set that are not in the other.
    ///
    /// # Errors
    /// [`TooManyTerms`] when these are more than `most` terms after some term of the other
    /// set has been subtracted.
    pub fn difference(&self, other: &Space<W>, most: usize) -> Result<Space<W>, TooManyTerms> {
        let mut left = self.clone();
        for term in &other.terms {
            left = left.without(term, most)?;
        }
        Ok(left)
    }

    /// The headers that are not in this set: disjoint terms.
    ///
    /// # Errors
    /// [`TooManyTerms`] as [`Space::difference`].
    pub fn complement(&self, most: usize) -> Result<Space<W>, TooManyTerms> {
        Space::any().difference(self, most)
    }

    /// What the headers are after the bits of `mask` have been set to those of `value`,
    /// without terms that are covered then.
    #[must_use]
    pub fn with_bits(&self, value: &[u64; W], mask: &[u64; W]) -> Space<W> {
        let set = self.terms.iter().map(|term| term.with_bits(value, mask));
        set.collect::<Space<W>>().without_covered()
    }

    /// The same set without terms that another term covers; of equal terms one stays.
    /// Time grows with the square of the number of terms.
    #[must_use]
    pub fn without_covered(mut self) -> Space<W> {
        // What covers a term looks at fewer bits, or is equal to it.
        self.terms.sort_by_key(|term| (term.bits(), *term));
        let mut kept: Vec<Term<W>> = Vec::new();
        for term in self.terms {
            if !kept.iter().any(|other| other.covers(&term)) {
                kept.push(term);
            }
        }
        Space { terms: kept }
    }
}

impl<const W: usize> fmt::Display for Space<W> {
    /// The terms with ` ∪ ` between them; `none`.
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
