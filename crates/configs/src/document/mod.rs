//! Documents of JSON and YAML as a tree whose nodes have positions.
//!
//! A text that starts with `{` or `[` is JSON: one value or several. Any other text is YAML:
//! one document or several. The tree holds at most [`MAX_NODES`] nodes, at most [`MAX_DEPTH`]
//! of them inside each other. An alias of YAML counts as a copy of its anchor, so nested
//! aliases cannot expand to more nodes. A mapping with two equal keys is an error, because
//! some readers take the first value and others the last.

use std::borrow::Cow;

use classyard_text::Fault;
use classyard_text::line::quoted;

use crate::builder::{Builder, SourceId};

mod json;
mod tree;
mod value;
mod yaml;

use tree::Tree;
pub(crate) use value::{Json, JsonKind, json_values};

/// The maximum number of nodes of a text.
pub(crate) const MAX_NODES: u32 = 1 << 22;

/// The maximum number of nodes inside each other.
pub(crate) const MAX_DEPTH: u32 = 100;

/// The maximum number of characters of a node that its one-line form has.
const COMPACT_CHARACTERS: usize = 200;

/// The number of bytes of a block in [`Document::characters_before`].
const BLOCK_BYTES: usize = 1024;

/// A node's index.
type NodeId = usize;

#[derive(Debug)]
struct Node<'t> {
    /// The byte offsets of the first character and of the end.
    start: usize,
    end: usize,
    /// The number of nodes, this node included; aliases count as copies.
    size: u32,
    depth: u32,
    content: Content<'t>,
}

#[derive(Debug)]
enum Content<'t> {
    Scalar(ScalarKind, Cow<'t, str>),
    Sequence(Vec<NodeId>),
    /// Keys, which are scalars, and values.
    Mapping(Vec<(NodeId, NodeId)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScalarKind {
    Null,
    Boolean,
    Number,
    String,
}

/// The values of a text.
#[derive(Debug)]
pub(crate) struct Document<'t> {
    text: &'t str,
    /// The byte offset of each line.
    line_starts: Vec<usize>,
    /// The number of characters before each block of [`BLOCK_BYTES`]; none if all characters
    /// are ASCII. So columns of a long line take no long time.
    characters_before: Vec<usize>,
    nodes: Vec<Node<'t>>,
    roots: Vec<NodeId>,
}

impl<'t> Document<'t> {
    /// Parses a text. An error of the syntax is recorded as a problem, and the result is
    /// `None` then.
    pub(crate) fn read(text: &'t str, builder: &mut Builder<'_>) -> Option<Document<'t>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut tree = Tree::new(text);
        let parsed = match is_json(text) {
            true => json::parse(text, &mut tree),
            false => yaml::parse(text, &mut tree),
        };
        let (nodes, roots) = tree.finish();
        let line_ends = text.match_indices('\n').map(|(offset, _)| offset + 1);
        let document = Document {
            text,
            line_starts: std::iter::once(0).chain(line_ends).collect(),
            characters_before: characters_before(text),
            nodes,
            roots,
        };
        match parsed {
            Ok(()) => Some(document),
            Err(fault) => {
                document.report(builder, fault);
                None
            }
        }
    }

    /// Returns the values: the JSON values or YAML documents, in order.
    pub(crate) fn roots(&self) -> impl Iterator<Item = Item<'_>> {
        self.roots.iter().map(|&node| Item {
            document: self,
            node,
        })
    }

    /// Records a problem. Its part must be a slice of the text.
    pub(crate) fn report(&self, builder: &mut Builder<'_>, fault: Fault<'_>) {
        let offset = (fault.part().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let (line, line_text) = self.line(offset.min(self.text.len()));
        builder.problem(fault, line, line_text);
    }

    /// Returns the line of a byte offset: its number, counted from 1, and its text.
    fn line(&self, offset: usize) -> (usize, &str) {
        let number = self.line_starts.partition_point(|&start| start <= offset);
        let start = self.line_starts[number - 1];
        let line = match self.line_starts.get(number) {
            Some(next_start) => &self.text[start..next_start - 1],
            None => &self.text[start..],
        };
        (number, line.strip_suffix('\r').unwrap_or(line))
    }

    /// Returns the column of a byte offset, counted from 1.
    fn column(&self, offset: usize) -> usize {
        let number = self.line_starts.partition_point(|&start| start <= offset);
        let start = self.line_starts[number - 1];
        self.characters(offset) - self.characters(start) + 1
    }

    /// Returns the number of characters before a byte offset.
    fn characters(&self, offset: usize) -> usize {
        let block = offset / BLOCK_BYTES;
        let Some(before) = self.characters_before.get(block) else {
            return offset;
        };
        let bytes = &self.text.as_bytes()[block * BLOCK_BYTES..offset];
        before + count_characters(bytes)
    }
}

/// Returns the number of characters that start in some bytes of a text.
fn count_characters(bytes: &[u8]) -> usize {
    let is_start = |byte: &&u8| **byte & 0xc0 != 0x80;
    bytes.iter().filter(is_start).count()
}

/// Returns the number of characters before each block, if there are others than ASCII.
fn characters_before(text: &str) -> Vec<usize> {
    if text.is_ascii() {
        return Vec::new();
    }
    let mut characters = 0;
    // The last block may be empty: it has the end of the text.
    let starts = (0..=text.len()).step_by(BLOCK_BYTES);
    let blocks = starts.map(|start| {
        let before = characters;
        let end = (start + BLOCK_BYTES).min(text.len());
        characters += count_characters(&text.as_bytes()[start..end]);
        before
    });
    blocks.collect()
}

/// True if the first character of a text that is not white space starts a value of JSON.
pub(crate) fn is_json(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.trim_start().starts_with(['{', '['])
}

/// A node of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'d> {
    document: &'d Document<'d>,
    node: NodeId,
}

impl<'d> Item<'d> {
    fn at(self, node: NodeId) -> Item<'d> {
        Item { node, ..self }
    }

    fn node(self) -> &'d Node<'d> {
        &self.document.nodes[self.node]
    }

    /// Returns the first line of the node.
    fn part(self) -> &'d str {
        let Node { start, end, .. } = *self.node();
        let text = &self.document.text[start..end];
        text.split(['\r', '\n']).next().unwrap_or(text)
    }

    /// Returns a problem with the node.
    pub(crate) fn fault(self, found: impl Into<String>, expected: impl Into<String>) -> Fault<'d> {
        Fault::new(self.part(), found, expected)
    }

    /// Returns a problem with a node that has a feature which is not supported.
    pub(crate) fn unsupported(
        self,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Fault<'d> {
        Fault::unsupported(self.part(), found, expected)
    }

    /// Returns a problem with a node that has another value than is expected.
    pub(crate) fn unexpected(self, expected: impl Into<String>) -> Fault<'d> {
        let description = match &self.node().content {
            Content::Scalar(ScalarKind::Null, _) => "no value".to_owned(),
            Content::Scalar(ScalarKind::Boolean, text) => format!("the Boolean {}", quoted(text)),
            Content::Scalar(ScalarKind::Number, text) => format!("the number {}", quoted(text)),
            Content::Scalar(ScalarKind::String, text) => format!("the string {}", quoted(text)),
            Content::Sequence(_) => "a list".to_owned(),
            Content::Mapping(_) => "a mapping".to_owned(),
        };
        self.fault(description, expected)
    }

    /// True if there is no value.
    pub(crate) fn is_null(self) -> bool {
        matches!(self.node().content, Content::Scalar(ScalarKind::Null, _))
    }

    /// True if the value is a string.
    pub(crate) fn is_string(self) -> bool {
        matches!(self.node().content, Content::Scalar(ScalarKind::String, _))
    }

    /// True if the value is a list.
    pub(crate) fn is_sequence(self) -> bool {
        matches!(self.node().content, Content::Sequence(_))
    }

    /// Returns a string.
    pub(crate) fn string(self) -> Result<&'d str, Fault<'d>> {
        match &self.node().content {
            Content::Scalar(ScalarKind::String, text) => Ok(text),
            Content::Scalar(ScalarKind::Boolean | ScalarKind::Number, _) => {
                Err(self.unexpected("a string, in quotes"))
            }
            _ => Err(self.unexpected("a string")),
        }
    }

    /// Returns an integer that is written in decimal digits, if it is from `low` to `high`.
    pub(crate) fn integer(self, low: i64, high: i64) -> Result<i64, Fault<'d>> {
        let number = match &self.node().content {
            Content::Scalar(ScalarKind::Number, text) => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit())
                    && (digits.len() == 1 || !digits.starts_with('0'));
                is_decimal.then(|| text.parse().ok()).flatten()
            }
            _ => None,
        };
        let number = number.filter(|number| (low..=high).contains(number));
        number.ok_or_else(|| self.unexpected(format!("a number from {low} to {high}")))
    }

    /// Returns a Boolean.
    pub(crate) fn boolean(self) -> Result<bool, Fault<'d>> {
        match &self.node().content {
            Content::Scalar(ScalarKind::Boolean, text) => Ok(text.eq_ignore_ascii_case("true")),
            _ => Err(self.unexpected("true or false")),
        }
    }

    /// Returns the elements of a list.
    pub(crate) fn elements(self) -> Result<impl Iterator<Item = Item<'d>>, Fault<'d>> {
        match &self.node().content {
            Content::Sequence(nodes) => Ok(nodes.iter().map(move |&node| self.at(node))),
            _ => Err(self.unexpected("a list")),
        }
    }

    /// Returns the keys of a mapping and their values.
    pub(crate) fn entries(self) -> Result<impl Iterator<Item = (Item<'d>, Item<'d>)>, Fault<'d>> {
        match &self.node().content {
            Content::Mapping(nodes) => Ok(nodes
                .iter()
                .map(move |&(key, value)| (self.at(key), self.at(value)))),
            _ => Err(self.unexpected("a mapping")),
        }
    }

    /// Returns the text of a scalar, for keys of mappings. The text of other nodes is empty.
    pub(crate) fn scalar_text(self) -> &'d str {
        match &self.node().content {
            Content::Scalar(_, text) => text,
            _ => "",
        }
    }

    /// Returns the value of a key. `None` if there is no value, or the node is not a mapping.
    pub(crate) fn get(self, key: &str) -> Option<Item<'d>> {
        let Content::Mapping(nodes) = &self.node().content else {
            return None;
        };
        let mut entries = nodes.iter();
        let entry = entries.find(|(node, _)| self.at(*node).scalar_text() == key);
        let value = entry.map(|(_, value)| self.at(*value));
        value.filter(|value| !value.is_null())
    }

    /// Returns the value of a key that must be there.
    pub(crate) fn require(self, key: &str) -> Result<Item<'d>, Fault<'d>> {
        self.check_mapping()?;
        let missing = || self.fault(format!("no `{key}`"), format!("a value of `{key}`"));
        self.get(key).ok_or_else(missing)
    }

    /// Returns the elements of the list that a key has; none without a value.
    pub(crate) fn list(self, key: &str) -> Result<Vec<Item<'d>>, Fault<'d>> {
        self.check_mapping()?;
        match self.get(key) {
            Some(list) => Ok(list.elements()?.collect()),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the string that a key has, if there is one.
    pub(crate) fn optional_string(self, key: &str) -> Result<Option<&'d str>, Fault<'d>> {
        self.get(key).map(Item::string).transpose()
    }

    /// Checks that the node is a mapping.
    pub(crate) fn check_mapping(self) -> Result<(), Fault<'d>> {
        self.entries().map(|_| ())
    }

    /// Checks that a mapping has no other keys.
    pub(crate) fn check_keys(self, keys: &[&str]) -> Result<(), Fault<'d>> {
        let mut entries = self.entries()?;
        match entries.find(|(key, _)| !keys.contains(&key.scalar_text())) {
            None => Ok(()),
            Some((key, _)) => Err(key.fault(
                format!("the unknown field {}", quoted(key.scalar_text())),
                format!("one of the fields {}", keys.join(", ")),
            )),
        }
    }

    /// Returns the node on one line, cut after 200 characters.
    pub(crate) fn compact(self) -> String {
        let Node { start, end, .. } = *self.node();
        let mut compact = String::new();
        let mut characters = 0;
        for word in self.document.text[start..end].split_whitespace() {
            if characters > 0 {
                compact.push(' ');
            }
            let kept = word.chars().take(COMPACT_CHARACTERS);
            compact.extend(kept);
            characters += word.len() + 1;
            if characters > COMPACT_CHARACTERS {
                break;
            }
        }
        compact.chars().take(COMPACT_CHARACTERS).collect()
    }

    /// Records a problem with a part of the node's document.
    pub(crate) fn report(self, builder: &mut Builder<'_>, fault: Fault<'_>) {
        self.document.report(builder, fault);
    }

    /// Adds a statement at the position of the node.
    pub(crate) fn source(self, builder: &mut Builder<'_>, statement: &str, list: &str) -> SourceId {
        let (number, _) = self.document.line(self.node().start);
        let column = self.document.column(self.node().start);
        builder.source_at(number, column, statement, list)
    }
}

#[cfg(test)]
mod tests;
