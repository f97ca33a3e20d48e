//! Words of logs and names of actions that mean permission or denial.

use std::collections::HashMap;

use thiserror::Error;

/// The decision about a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The flow may pass.
    Permit,
    /// The flow may not pass.
    Deny,
}

impl Verdict {
    /// The words that are known without a table, in lower case.
    const WORDS: [(&'static str, Verdict); 13] = [
        ("accept", Verdict::Permit),
        ("accepted", Verdict::Permit),
        ("allow", Verdict::Permit),
        ("allowed", Verdict::Permit),
        ("permit", Verdict::Permit),
        ("pass", Verdict::Permit),
        ("reject", Verdict::Deny),
        ("rejected", Verdict::Deny),
        ("deny", Verdict::Deny),
        ("denied", Verdict::Deny),
        ("drop", Verdict::Deny),
        ("dropped", Verdict::Deny),
        ("block", Verdict::Deny),
    ];
}

/// The meaning of words, of either case: in logs and as names of actions.
///
/// Without other names, `accept`, `accepted`, `allow`, `allowed`, `permit` and `pass` are
/// [`Verdict::Permit`], and `reject`, `rejected`, `deny`, `denied`, `drop`, `dropped` and `block`
/// are [`Verdict::Deny`]. All other words have no meaning.
///
/// ```
/// use classyard_parquet::{Verdict, VerdictNames};
///
/// let mut names = VerdictNames::default();
/// assert_eq!(names.verdict("REJECT"), Some(Verdict::Deny));
/// assert_eq!(names.verdict("log"), None);
/// names.add("log=permit")?;
/// assert_eq!(names.verdict("log"), Some(Verdict::Permit));
/// # Ok::<(), classyard_parquet::VerdictNameError>(())
/// ```
#[derive(Clone, Debug)]
pub struct VerdictNames(HashMap<String, Verdict>);

/// A text gives no word a meaning.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{found}`: expected WORD=permit or WORD=deny")]
pub struct VerdictNameError {
    found: String,
}

impl Default for VerdictNames {
    fn default() -> VerdictNames {
        let words = Verdict::WORDS.iter();
        VerdictNames(
            words
                .map(|&(word, verdict)| (word.to_owned(), verdict))
                .collect(),
        )
    }
}

impl VerdictNames {
    /// Gives a word a meaning: `A=permit`. The meaning is any word that is known without a table,
    /// such as `drop`.
    ///
    /// # Errors
    /// [`VerdictNameError`] if the text has no `=` or another meaning.
    pub fn add(&mut self, text: &str) -> Result<(), VerdictNameError> {
        let meaning = |word: &str| {
            let word = word.to_lowercase();
            let known = Verdict::WORDS.iter().find(|(known, _)| *known == word);
            known.map(|&(_, verdict)| verdict)
        };
        let parsed = text.split_once('=').filter(|(word, _)| !word.is_empty());
        let parsed = parsed.and_then(|(word, verdict)| Some((word, meaning(verdict)?)));
        let (word, verdict) = parsed.ok_or_else(|| VerdictNameError {
            found: text.to_owned(),
        })?;
        self.0.insert(word.to_lowercase(), verdict);
        Ok(())
    }

    /// Returns the meaning of a word.
    #[must_use]
    pub fn verdict(&self, word: &str) -> Option<Verdict> {
        self.0.get(&word.to_lowercase()).copied()
    }
}
