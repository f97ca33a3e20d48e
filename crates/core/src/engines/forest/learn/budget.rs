//! The budget of learning within updates, so that no update takes long.
//!
//! An update that splits a run may read [`ALLOWED_WORDS`] words to learn masks. If
//! it finds no mask, these words become *debt*, and each update pays off a part of
//! it. Until the debt is paid off, runs grow instead of being split.

/// The most words that an update may read for learning: some 0.2 milliseconds.
/// `docs/forest.md` (Worst cases, wide keys) has the longest updates with and
/// without.
const ALLOWED_WORDS: usize = 300_000;

/// Words of debt that each update pays off: about a microsecond. Bounds the mean
/// time of updates that learn nothing.
const PAID_OFF_WORDS: usize = 2000;

/// The budget of learning.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    /// Words that the current update may still read; `None` while building, when
    /// only the plans' own bounds apply.
    allowance: Option<usize>,
    /// Words read by updates that found no mask, and not yet paid off.
    debt: usize,
}

impl Budget {
    /// Returns the budget of a build.
    pub(crate) fn unlimited() -> Budget {
        Budget::default()
    }

    /// Returns the budget for a few rules that are learned within an update.
    pub(crate) fn of_update() -> Budget {
        Budget {
            allowance: Some(ALLOWED_WORDS),
            debt: 0,
        }
    }

    /// Words that may be read now; `None` if unlimited.
    pub(crate) fn allowance(&self) -> Option<usize> {
        self.allowance
    }

    /// Starts the split of a run by an update, which may read `ALLOWED_WORDS` words,
    /// or none while there is debt.
    pub(crate) fn begin_split(&mut self) {
        self.allowance = Some(if self.is_in_debt() { 0 } else { ALLOWED_WORDS });
    }

    /// Ends the learning of an update.
    pub(crate) fn end(&mut self) {
        self.allowance = None;
    }

    /// Records that `words` words were read; `found` is true if that found masks.
    pub(crate) fn spend(&mut self, words: usize, found: bool) {
        if let Some(allowed_words) = &mut self.allowance {
            *allowed_words = allowed_words.saturating_sub(words);
            if !found {
                self.debt += words;
            }
        }
    }

    /// True if words that found no mask are not yet paid off.
    pub(crate) fn is_in_debt(&self) -> bool {
        self.debt > 0
    }

    /// Pays off a part of the debt, after each update.
    pub(crate) fn pay_off(&mut self) {
        self.debt = self.debt.saturating_sub(PAID_OFF_WORDS);
    }
}
