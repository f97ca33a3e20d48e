//! The statements of a configuration as a tree of words.
//!
//! `from { protocol [ tcp udp ]; }` and `set … from protocol tcp`, `set … from protocol udp`
//! are the same tree: a word has the words that follow it as children, in the order of their
//! first appearance. A statement that appears twice is merged, as Junos does.

use std::collections::HashMap;

use classyard_text::Fault;

/// The maximum number of words on the path from the top of the configuration to a word.
pub(super) const MAX_DEPTH: usize = 128;

/// The maximum number of words of a tree.
pub(super) const MAX_WORDS: usize = 1 << 21;

/// The number of characters after which a statement in a message is cut.
const TEXT_CHARACTERS: usize = 200;

/// A word of a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WordId(u32);

impl WordId {
    /// The top of the configuration, which has no text.
    pub(super) const TOP: WordId = WordId(0);

    fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug)]
struct Word<'t> {
    text: &'t str,
    /// The word before this one in the statement, or this word if it is the first one.
    keyword: &'t str,
    parent: WordId,
    depth: usize,
    children: Vec<WordId>,
    is_inactive: bool,
    is_removed: bool,
    comment: Option<&'t str>,
}

/// The statements of a configuration.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    words: Vec<Word<'t>>,
    ids: HashMap<(WordId, &'t str), WordId>,
}

impl<'t> Tree<'t> {
    /// Returns a tree without statements.
    pub(super) fn new() -> Tree<'t> {
        let top = Word {
            text: "",
            keyword: "",
            parent: WordId::TOP,
            depth: 0,
            children: Vec::new(),
            is_inactive: false,
            is_removed: false,
            comment: None,
        };
        Tree {
            words: vec![top],
            ids: HashMap::new(),
        }
    }

    /// Returns the text of a word.
    pub(super) fn text(&self, word: WordId) -> &'t str {
        self.words[word.index()].text
    }

    /// Returns the word before a word in the statement where it first appears.
    pub(super) fn keyword(&self, word: WordId) -> &'t str {
        self.words[word.index()].keyword
    }

    /// Returns the word above a word.
    pub(super) fn parent(&self, word: WordId) -> WordId {
        self.words[word.index()].parent
    }

    /// Returns the comment before a statement.
    pub(super) fn comment(&self, word: WordId) -> Option<&'t str> {
        self.words[word.index()].comment
    }

    /// Returns the words that follow a word, without inactive ones.
    pub(super) fn children(&self, word: WordId) -> impl Iterator<Item = WordId> + Clone {
        self.all_children(word)
            .filter(|child| !self.is_inactive(*child))
    }

    /// Returns the words that follow a word, also inactive ones.
    pub(super) fn all_children(&self, word: WordId) -> impl Iterator<Item = WordId> + Clone {
        let children = self.words[word.index()].children.iter().copied();
        children.filter(|child| !self.words[child.index()].is_removed)
    }

    /// True if a word was deactivated itself; the words above it do not count.
    pub(super) fn is_inactive(&self, word: WordId) -> bool {
        self.words[word.index()].is_inactive
    }

    /// Returns the number of inactive statements, without those inside of inactive ones.
    pub(super) fn count_inactive(&self) -> usize {
        let mut count = 0;
        let mut words = vec![WordId::TOP];
        while let Some(word) = words.pop() {
            for child in self.all_children(word) {
                match self.is_inactive(child) {
                    true => count += 1,
                    false => words.push(child),
                }
            }
        }
        count
    }

    /// Returns a child that is not inactive.
    pub(super) fn child(&self, word: WordId, text: &str) -> Option<WordId> {
        self.any_child(word, text)
            .filter(|child| !self.is_inactive(*child))
    }

    /// Returns a child, also if it is inactive.
    pub(super) fn any_child(&self, word: WordId, text: &str) -> Option<WordId> {
        self.ids.get(&(word, text)).copied()
    }

    /// Returns the word at the end of a path from the top.
    pub(super) fn at(&self, path: &[&str]) -> Option<WordId> {
        let mut words = path.iter();
        words.try_fold(WordId::TOP, |word, text| self.child(word, text))
    }

    /// Returns the words from the top to a word.
    pub(super) fn path(&self, word: WordId) -> Vec<&'t str> {
        let mut path = Vec::new();
        let mut word = word;
        while word != WordId::TOP {
            path.push(self.text(word));
            word = self.parent(word);
        }
        path.reverse();
        path
    }

    /// Returns the child with a text, and adds it if there is none. `keyword` is the word
    /// before it in the statement.
    pub(super) fn add(
        &mut self,
        parent: WordId,
        text: &'t str,
        keyword: &'t str,
    ) -> Result<WordId, Fault<'t>> {
        if let Some(word) = self.any_child(parent, text) {
            return Ok(word);
        }
        let word = self.create(parent, text, keyword)?;
        self.words[parent.index()].children.push(word);
        Ok(word)
    }

    fn create(
        &mut self,
        parent: WordId,
        text: &'t str,
        keyword: &'t str,
    ) -> Result<WordId, Fault<'t>> {
        let depth = self.words[parent.index()].depth + 1;
        if depth > MAX_DEPTH {
            return Err(Fault::new(
                text,
                format!("more than {MAX_DEPTH} words from the top to a statement"),
                "fewer blocks inside each other",
            ));
        }
        if self.words.len() == MAX_WORDS {
            return Err(Fault::new(
                text,
                format!("more than {MAX_WORDS} different words, groups included"),
                "a smaller configuration",
            ));
        }
        let word = WordId(u32::try_from(self.words.len()).expect("a limited number"));
        self.words.push(Word {
            text,
            keyword,
            parent,
            depth,
            children: Vec::new(),
            is_inactive: false,
            is_removed: false,
            comment: None,
        });
        self.ids.insert((parent, text), word);
        Ok(word)
    }

    /// Removes the words below a word, its comment and its deactivation.
    pub(super) fn clear(&mut self, word: WordId) {
        for child in std::mem::take(&mut self.words[word.index()].children) {
            self.ids.remove(&(word, self.text(child)));
        }
        let word = &mut self.words[word.index()];
        word.comment = None;
        word.is_inactive = false;
    }

    /// Removes a word with all words below it.
    pub(super) fn remove(&mut self, word: WordId) {
        let Word { text, parent, .. } = self.words[word.index()];
        self.ids.remove(&(parent, text));
        self.words[word.index()].is_removed = true;
    }

    /// Activates or deactivates a statement.
    pub(super) fn set_inactive(&mut self, word: WordId, is_inactive: bool) {
        self.words[word.index()].is_inactive = is_inactive;
    }

    /// Sets the comment of a statement.
    pub(super) fn set_comment(&mut self, word: WordId, comment: &'t str) {
        self.words[word.index()].comment = Some(comment);
    }

    /// Returns a statement as text on one line, cut after some characters.
    pub(super) fn statement(&self, word: WordId) -> String {
        let mut text = String::new();
        self.write(word, &mut text);
        text.chars().take(TEXT_CHARACTERS).collect()
    }

    fn write(&self, word: WordId, text: &mut String) {
        if text.len() > 4 * TEXT_CHARACTERS {
            return;
        }
        text.push_str(self.text(word));
        // A keyword is left out if all its values are inactive.
        let has_values = |child: &WordId| {
            self.children(*child).next().is_some() || self.all_children(*child).next().is_none()
        };
        let children: Vec<WordId> = self.children(word).filter(has_values).collect();
        let is_leaf = |child: &WordId| self.children(*child).next().is_none();
        let is_block = matches!(self.text(word), "from" | "then" | "match");
        match children[..] {
            [] => {}
            [child] => {
                text.push(' ');
                self.write(child, text);
            }
            _ if !is_block && children.iter().all(is_leaf) => {
                text.push_str(" [");
                for child in children {
                    text.push(' ');
                    self.write(child, text);
                }
                text.push_str(" ]");
            }
            _ => {
                text.push_str(" {");
                for child in children {
                    text.push(' ');
                    self.write(child, text);
                    if !text.ends_with('}') {
                        text.push(';');
                    }
                }
                text.push_str(" }");
            }
        }
    }
}

/// The lines of a text, by position.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    text: &'t str,
    /// The offset of the first byte of each line.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Returns the lines of a text.
    pub(super) fn new(text: &'t str) -> Lines<'t> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(end, _)| end + 1));
        Lines {
            text,
            starts: starts.collect(),
        }
    }

    /// Returns the number, from 1, and the text of the line where a slice begins.
    pub(super) fn line_of(&self, part: &str) -> (usize, &'t str) {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let offset = offset.min(self.text.len());
        let number = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[number - 1];
        let end = self
            .starts
            .get(number)
            .map_or(self.text.len(), |end| end - 1);
        let line = &self.text[start..end];
        (number, line.strip_suffix('\r').unwrap_or(line))
    }

    /// Returns the line and the column, both from 1, of a slice of the text.
    pub(super) fn position(&self, part: &str) -> (usize, usize) {
        let (number, line) = self.line_of(part);
        let offset = (part.as_ptr() as usize).wrapping_sub(line.as_ptr() as usize);
        let before = line.get(..offset).unwrap_or(line);
        (number, before.chars().count() + 1)
    }
}
