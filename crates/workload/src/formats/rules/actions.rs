//! The words that name actions: built-in words, and words that a file declares.
//!
//! An unknown word that is almost equal to a known word is reported as a mistake. Other
//! unknown words are actions, and a note lists them.

use std::collections::BTreeSet;

use classyard::policy::Policy;

use super::token::{next_token, unquote, write_word};
use super::{Fault, quoted};

/// Actions that every file has.
pub(super) const BUILT_IN: [&str; 8] = [
    "accept", "allow", "deny", "drop", "log", "match", "permit", "reject",
];

/// The word that a declaration begins with.
pub(super) const DECLARATION: &str = "actions";

/// The minimum length of a word that is checked for misspelling. Shorter words resemble
/// too many other words.
const MIN_CHECKED_CHARACTERS: usize = 3;

/// The maximum edit distance, in characters, between a misspelt word and a known word.
const MAX_DIFFERENCES: usize = 1;

/// The maximum number of unknown words that a note lists.
const WORDS_SHOWN: usize = 8;

/// The actions of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Actions {
    declared: BTreeSet<String>,
    /// Words that are neither built in nor declared.
    unknown: BTreeSet<String>,
}

impl Actions {
    /// Reads a line such as `actions allow log`. Returns false if `line` declares no actions.
    pub(super) fn declare<'t>(&mut self, line: &'t str) -> Result<bool, Fault<'t>> {
        let mut unread = line;
        match next_token(&mut unread) {
            Ok(Some(token)) if token.text == DECLARATION => {}
            _ => return Ok(false),
        }
        while let Some(word) = next_token(&mut unread)? {
            if word.key.is_some() {
                return Err(Fault::new(
                    word.text,
                    format!("{} where an action should be", quoted(word.text)),
                    "words, as `actions` declares actions (an action of that name goes in quotes)",
                ));
            }
            self.declared.insert(unquote(word.text)?.into_owned());
        }
        Ok(true)
    }

    /// Checks the action of a rule, and records it if it is unknown. `part` is its text; an
    /// action in quotes is accepted without a check.
    pub(super) fn take<'t>(&mut self, action: &str, part: &'t str) -> Result<(), Fault<'t>> {
        let is_quoted = part.starts_with('"');
        if is_quoted || self.is_known(action) || self.unknown.contains(action) {
            return Ok(());
        }
        if let Some(near) = self.near(action) {
            return Err(Fault::new(
                part,
                format!("unknown action {}; did you mean `{near}`?", quoted(action)),
                format!(
                    "{}, or {} declared in a line `{DECLARATION} …` before the first rule",
                    quoted(near),
                    quoted(action)
                ),
            ));
        }
        self.unknown.insert(action.to_owned());
        Ok(())
    }

    /// Returns a sentence about words that are neither built in nor declared.
    pub(super) fn note(&self) -> Option<String> {
        if self.unknown.is_empty() {
            return None;
        }
        let shown = self
            .unknown
            .iter()
            .take(WORDS_SHOWN)
            .map(|word| quoted(word));
        let ellipsis = if self.unknown.len() > WORDS_SHOWN {
            ", …"
        } else {
            ""
        };
        let (noun, verb) = if self.unknown.len() == 1 {
            ("action", "is")
        } else {
            ("actions", "are")
        };
        Some(format!(
            "{} {noun} {verb} neither built in nor declared: {}{ellipsis}; a line `{DECLARATION} …` \
             before the first rule declares actions",
            self.unknown.len(),
            shown.collect::<Vec<_>>().join(", ")
        ))
    }

    fn is_known(&self, action: &str) -> bool {
        BUILT_IN.contains(&action) || self.declared.contains(action)
    }

    /// Returns a known word that `action` probably misspells.
    fn near(&self, action: &str) -> Option<&str> {
        let mut known = BUILT_IN
            .into_iter()
            .chain(self.declared.iter().map(String::as_str));
        known.find(|known| is_near(action, known))
    }
}

/// True if `word` is probably a misspelling of `known`. Words that differ only in digits
/// are different on purpose: `output:1`, `output:2`.
fn is_near(word: &str, known: &str) -> bool {
    let letters = |text: &str| -> String { text.chars().filter(|c| !c.is_ascii_digit()).collect() };
    let length = word.chars().count();
    if length < MIN_CHECKED_CHARACTERS || length.abs_diff(known.chars().count()) > MAX_DIFFERENCES {
        return false;
    }
    let (word, known) = (word.to_lowercase(), known.to_lowercase());
    word == known
        || (letters(&word) != letters(&known)
            && strsim::osa_distance(&word, &known) <= MAX_DIFFERENCES)
}

/// Returns the line that declares a policy's actions. Returns `None` if the reader accepts
/// all of them without a declaration.
pub(super) fn declaration(policy: &Policy) -> Option<String> {
    let mut words = BTreeSet::new();
    for &id in policy.ids() {
        for (_, rule) in policy.rule(id) {
            words.extend(policy.action_name(rule.action()));
        }
    }
    let is_refused =
        |word: &&str| !BUILT_IN.contains(word) && BUILT_IN.iter().any(|known| is_near(word, known));
    if !words.iter().any(is_refused) {
        return None;
    }
    let mut line = DECLARATION.to_owned();
    for word in words {
        line.push(' ');
        write_word(&mut line, word, false);
    }
    line.push('\n');
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_are_near_and_other_words_are_not() {
        for (word, known) in [
            ("alow", "allow"),
            ("allow:", "allow"),
            ("Allow", "allow"),
            ("DROP", "drop"),
            ("drpo", "drop"),
            ("rejct", "reject"),
        ] {
            assert!(is_near(word, known), "{word}");
        }
        for word in [
            "output:1",
            "a",
            "al",
            "allow,log",
            "goto_table:1",
            "queue",
            "drop2",
            "pass",
        ] {
            assert!(!BUILT_IN.iter().any(|known| is_near(word, known)), "{word}");
        }
        assert!(!is_near("output:1", "output:2"));
    }
}
