//! What learning may cost within updates, so that no update takes long.
//!
//! An update that splits a run may read [`ALLOWANCE`] words to learn masks. Where
//! no mask is found, the words were read for nothing: they are *debt*, which each
//! update pays off a little, and until it is paid runs grow instead of being split.

/// Words that an update may read to learn: some 0.2 milliseconds.
const ALLOWANCE: usize = 300_000;

/// Words of learning without a result that each update pays off: about a
/// microsecond.
const PAID_OFF: usize = 2000;

/// What may be spent on learning.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    /// Words that the update at hand may still read; `None` while building, when
    /// plans have no bounds but their own.
    allowance: Option<usize>,
    /// Words read by updates that found no mask, not yet paid off.
    debt: usize,
}

impl Budget {
    /// For a build.
    pub(crate) fn unlimited() -> Budget {
        Budget::default()
    }

    /// For a few rules that are learned within an update.
    pub(crate) fn of_update() -> Budget {
        Budget {
            allowance: Some(ALLOWANCE),
            debt: 0,
        }
    }

    /// Words that may be read now; `None` if that is not limited.
    pub(crate) fn allowance(&self) -> Option<usize> {
        self.allowance
    }

    /// An update splits a run: what follows may read `ALLOWANCE` words, or none
    /// while there is debt.
    pub(crate) fn begin_split(&mut self) {
        self.allowance = Some(if self.is_in_debt() { 0 } else { ALLOWANCE });
    }

    /// What follows is not part of an update's learning.
    pub(crate) fn end(&mut self) {
        self.allowance = None;
    }

    /// `words` words were read, and masks were found or not.
    pub(crate) fn spend(&mut self, words: usize, found: bool) {
        if let Some(left) = &mut self.allowance {
            *left = left.saturating_sub(words);
            if !found {
                self.debt += words;
            }
        }
    }

    /// Whether words that were read for nothing are still to be paid off.
    pub(crate) fn is_in_debt(&self) -> bool {
        self.debt > 0
    }

    /// An update is over.
    pub(crate) fn pay_off(&mut self) {
        self.debt = self.debt.saturating_sub(PAID_OFF);
    }
}
