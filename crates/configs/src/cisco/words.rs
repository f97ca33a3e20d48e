//! Statements and their words.

use classyard_text::Fault;
use classyard_text::line::quoted;

/// A statement: a part of a line without spaces around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statement<'t> {
    /// The line, counted from 1.
    pub(super) number: usize,
    /// The whole line.
    pub(super) line: &'t str,
    /// The statement, a slice of the line.
    pub(super) text: &'t str,
}

/// The words of a statement, with the position of the next one.
#[derive(Clone, Debug)]
pub(super) struct Words<'t> {
    /// The statement that missing words are reported for.
    text: &'t str,
    words: Vec<&'t str>,
    next: usize,
}

impl<'t> Words<'t> {
    pub(super) fn new(text: &'t str) -> Words<'t> {
        Words::of(text, text.split_ascii_whitespace().collect())
    }

    /// Returns some words of a statement.
    pub(super) fn of(text: &'t str, words: Vec<&'t str>) -> Words<'t> {
        Words {
            text,
            words,
            next: 0,
        }
    }

    /// The statement.
    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the next word and leaves it.
    pub(super) fn peek(&self) -> Option<&'t str> {
        self.peek_after(0)
    }

    /// Returns the word after `skipped` words and leaves it.
    pub(super) fn peek_after(&self, skipped: usize) -> Option<&'t str> {
        self.words.get(self.next + skipped).copied()
    }

    /// Takes the next word, if there is one.
    pub(super) fn take(&mut self) -> Option<&'t str> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    /// Takes the next word. A statement without one is a fault.
    pub(super) fn require(&mut self, expected: &str) -> Result<&'t str, Fault<'t>> {
        self.take().ok_or_else(|| self.missing(expected))
    }

    /// Takes the next word if it is this one.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        self.next += usize::from(is_next);
        is_next
    }

    /// True if no word is unread.
    pub(super) fn is_done(&self) -> bool {
        self.next >= self.words.len()
    }

    /// Returns the unread words.
    pub(super) fn unread(&self) -> &[&'t str] {
        &self.words[self.next.min(self.words.len())..]
    }

    /// Returns the fault of a statement that ends too early.
    pub(super) fn missing(&self, expected: &str) -> Fault<'t> {
        match self.words.last() {
            Some(word) => Fault::new(end_of(self.text, word), "the statement ends here", expected),
            None => Fault::missing(self.text, expected),
        }
    }

    /// Returns a fault if a word is unread.
    pub(super) fn require_end(&self) -> Result<(), Fault<'t>> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(Fault::new(
                word,
                format!("the unknown word {}", quoted(word)),
                "the end of the statement",
            )),
        }
    }
}

/// Returns the empty slice of `text` after a word, which is a slice of `text`.
fn end_of<'t>(text: &'t str, word: &'t str) -> &'t str {
    let end = offset_in(text, word) + word.len();
    text.get(end..end).unwrap_or(word)
}

/// Returns the position of a slice of a text, in bytes.
fn offset_in(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize)
}

/// Returns the text after a word, which is a slice of `text`, without spaces around it.
pub(super) fn text_after<'t>(text: &'t str, word: &str) -> &'t str {
    let end = offset_in(text, word) + word.len();
    text.get(end..).unwrap_or("").trim()
}

/// Returns the number of matches that one pair of brackets has: `(12 matches)`,
/// `(hitcnt=12)`, `[match=12]`. `None` if it has the state of a time range.
fn read_hits<'t>(words: &[&'t str]) -> Result<Option<u64>, Fault<'t>> {
    let content = words.join(" ");
    let content = content.trim_matches(['(', ')', '[', ']']);
    let count = match content.split_once(' ') {
        Some((count, noun)) => {
            let nouns = ["match", "matches", "hw matches", "estimate matches"];
            nouns.contains(&noun).then_some(count)
        }
        None => content
            .strip_prefix("hitcnt=")
            .or_else(|| content.strip_prefix("match=")),
    };
    match (count.map(str::parse), content) {
        (Some(Ok(count)), _) => Ok(Some(count)),
        (None, "inactive" | "active") => Ok(None),
        _ => Err(Fault::new(
            words[0],
            format!("the unknown counter {}", quoted(content)),
            "`(12 matches)`, `(hitcnt=12)` or `[match=12]`",
        )),
    }
}

/// Splits the words of an entry from the number of matches that `show` commands print
/// after it.
pub(super) fn split_hits(text: &str) -> Result<(Vec<&str>, Option<u64>), Fault<'_>> {
    let mut hits = None;
    let mut words = Vec::new();
    let mut bracketed = Vec::new();
    for word in text.split_ascii_whitespace() {
        if bracketed.is_empty() && !word.starts_with(['(', '[']) {
            words.push(word);
            continue;
        }
        bracketed.push(word);
        if word.ends_with([')', ']']) {
            hits = read_hits(&bracketed)?.or(hits);
            bracketed.clear();
        }
    }
    match bracketed.first() {
        None => Ok((words, hits)),
        Some(word) => Err(Fault::new(
            word,
            "a bracket that is not closed",
            "a counter such as `(12 matches)`",
        )),
    }
}
