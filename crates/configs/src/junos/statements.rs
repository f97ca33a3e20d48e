//! Keywords of a statement with their values, for all translations.

use std::collections::HashMap;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::prefixes::PrefixList;
use super::tree::{Lines, Tree, WordId};
use crate::builder::{Builder, SourceId};
use crate::packets::PacketSet;

/// A value of a keyword.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) word: WordId,
    /// True if `except` follows.
    pub(super) is_except: bool,
}

/// A keyword of a statement with all its values.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) keyword: WordId,
    pub(super) values: Vec<Value>,
}

/// Reads a tree of statements, and collects rules.
pub(super) struct Reader<'a, 'o, 't> {
    pub(super) tree: &'a Tree<'t>,
    pub(super) lines: &'a Lines<'t>,
    pub(super) builder: &'a mut Builder<'o>,
    /// The prefix lists that were read, by name.
    pub(super) prefix_lists: HashMap<&'t str, PrefixList<'t>>,
}

impl<'t> Reader<'_, '_, 't> {
    /// Records a problem.
    pub(super) fn problem(&mut self, fault: Fault<'t>) {
        let (number, line) = self.lines.line_of(fault.part());
        self.builder.problem(fault, number, line);
    }

    /// Adds the statement that ends with a word, at the position of its keyword.
    pub(super) fn source(&mut self, word: WordId, list: &str) -> SourceId {
        let keyword = self.tree.keyword(word);
        let (line, column) = self.lines.position(keyword);
        let statement = match self.tree.text(self.tree.parent(word)) == keyword {
            true => format!("{keyword} {}", self.tree.statement(word)),
            false => self.tree.statement(word),
        };
        let source = self.builder.source_at(line, column, &statement, list);
        self.builder.source_mut(source).comment = self.tree.comment(word).and_then(comment_text);
        source
    }

    /// Adds a statement that is not in the file, at the position of a word.
    pub(super) fn implied_source(&mut self, word: WordId, text: &str, list: &str) -> SourceId {
        let (line, column) = self.lines.position(self.tree.keyword(word));
        let source = self.builder.source_at(line, column, text, list);
        self.builder.source_mut(source).is_implied = true;
        source
    }

    /// Returns the packets for which a condition holds that no field can express.
    pub(super) fn condition(
        &mut self,
        source: SourceId,
        text: &str,
        part: &'t str,
    ) -> Result<PacketSet, Fault<'t>> {
        let packets = self.builder.condition(source, text);
        packets.map_err(|fault| Fault::new(part, fault.found(), "a file with fewer of them"))
    }

    /// Returns the keywords below a statement. Keywords on one line are nested in the tree:
    /// `term t1 protocol tcp destination-port 80`. Keywords for which `is_whole` is true keep
    /// what follows their values.
    pub(super) fn attributes(
        &self,
        statement: WordId,
        is_whole: fn(&str) -> bool,
    ) -> Vec<Attribute> {
        let tree = self.tree;
        let mut attributes: Vec<Attribute> = Vec::new();
        let mut indices: HashMap<&str, usize> = HashMap::new();
        let mut statements = vec![statement];
        while let Some(statement) = statements.pop() {
            for keyword in tree.children(statement) {
                let values: Vec<Value> = tree
                    .children(keyword)
                    .map(|word| Value {
                        word,
                        is_except: tree.child(word, "except").is_some(),
                    })
                    .collect();
                if values.is_empty() && tree.all_children(keyword).next().is_some() {
                    continue; // All values are inactive.
                }
                if !is_whole(tree.text(keyword)) {
                    let has_keywords = |value: &&Value| {
                        let mut children = tree.children(value.word);
                        children.any(|child| tree.text(child) != "except")
                    };
                    statements.extend(values.iter().filter(has_keywords).map(|value| value.word));
                }
                let index = *indices.entry(tree.text(keyword)).or_insert_with(|| {
                    attributes.push(Attribute {
                        keyword,
                        values: Vec::new(),
                    });
                    attributes.len() - 1
                });
                attributes[index].values.extend(values);
            }
        }
        attributes.retain(|attribute| !matches!(tree.text(attribute.keyword), "except"));
        attributes
    }

    /// Returns the values of an attribute, at least one.
    pub(super) fn values(&self, attribute: &Attribute) -> Result<Vec<&'t str>, Fault<'t>> {
        let keyword = self.tree.text(attribute.keyword);
        if attribute.values.is_empty() {
            let message = format!("{} without a value", quoted(keyword));
            return Err(Fault::new(keyword, message, "a value after it"));
        }
        let mut texts = Vec::new();
        for value in &attribute.values {
            let text = self.tree.text(value.word);
            if value.is_except {
                let message = format!("`except` after a value of {}", quoted(keyword));
                return Err(Fault::new(text, message, "the end of the statement"));
            }
            texts.push(text);
        }
        Ok(texts)
    }

    /// Returns the only value of an attribute.
    pub(super) fn value(&self, attribute: &Attribute) -> Result<&'t str, Fault<'t>> {
        match self.values(attribute)?[..] {
            [value] => Ok(value),
            [_, second, ..] => {
                let keyword = self.tree.text(attribute.keyword);
                let message = format!("a second value of {}", quoted(keyword));
                Err(Fault::new(second, message, "one value"))
            }
            [] => unreachable!("an attribute with a value"),
        }
    }

    /// Checks that nothing follows a word.
    pub(super) fn expect_leaf(&self, word: WordId) -> Result<(), Fault<'t>> {
        match self.tree.children(word).next() {
            None => Ok(()),
            Some(child) => {
                let text = self.tree.text(child);
                Err(Fault::new(text, quoted(text), "the end of the statement"))
            }
        }
    }
}

/// Returns the text of a comment on one line; `None` if it is empty.
fn comment_text(comment: &str) -> Option<String> {
    let lines = comment.lines();
    let words = lines.flat_map(|line| line.trim().trim_start_matches('*').split_whitespace());
    let text = words.collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

/// True for keywords that Junos adds at any place and that say nothing about packets.
pub(super) fn is_bookkeeping(keyword: &str) -> bool {
    matches!(
        keyword,
        "apply-groups" | "apply-groups-except" | "apply-flags" | "apply-macro"
    )
}
