//! Builds the tree of a document from the values as they start and end in the text.

use std::borrow::Cow;
use std::collections::HashSet;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::{Content, MAX_DEPTH, MAX_NODES, Node, NodeId, ScalarKind};

/// The maximum number of keys that are compared one by one; more are hashed.
const MAX_COMPARED_KEYS: usize = 8;

/// A tree while its text is parsed.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    text: &'t str,
    nodes: Vec<Node<'t>>,
    roots: Vec<NodeId>,
    open: Vec<OpenNode>,
    /// The number of nodes, with aliases as copies.
    size: u32,
}

/// A sequence or mapping that has not ended.
#[derive(Debug)]
struct OpenNode {
    start: usize,
    is_mapping: bool,
    /// Elements, or keys and values.
    children: Vec<NodeId>,
}

impl<'t> Tree<'t> {
    pub(super) fn new(text: &'t str) -> Tree<'t> {
        Tree {
            text,
            nodes: Vec::new(),
            roots: Vec::new(),
            open: Vec::new(),
            size: 0,
        }
    }

    pub(super) fn finish(self) -> (Vec<Node<'t>>, Vec<NodeId>) {
        (self.nodes, self.roots)
    }

    /// Adds a scalar.
    pub(super) fn scalar(
        &mut self,
        kind: ScalarKind,
        text: Cow<'t, str>,
        start: usize,
        end: usize,
    ) -> Result<NodeId, Fault<'t>> {
        self.count(1, start)?;
        let is_key = self.open.last().is_some_and(OpenNode::expects_key);
        if is_key && text == "<<" {
            return Err(Fault::unsupported(
                &self.text[start..end],
                "merge keys of YAML (`<<`)",
                "the merged keys themselves",
            ));
        }
        let node = Node {
            start,
            end,
            size: 1,
            depth: 1,
            content: Content::Scalar(kind, text),
        };
        Ok(self.push(node))
    }

    /// Starts a sequence or mapping.
    pub(super) fn open(&mut self, start: usize, is_mapping: bool) -> Result<(), Fault<'t>> {
        if self.open.len() >= MAX_DEPTH as usize {
            return Err(self.too_deep(start));
        }
        self.check_key(start)?;
        self.count(1, start)?;
        self.open.push(OpenNode {
            start,
            is_mapping,
            children: Vec::new(),
        });
        Ok(())
    }

    /// Ends the innermost sequence or mapping. Without `end`, it ends with its last child.
    pub(super) fn close(&mut self, end: Option<usize>) -> Result<NodeId, Fault<'t>> {
        let open = self.open.pop().expect("a value that was opened");
        let children = || open.children.iter().map(|&child| &self.nodes[child]);
        let last_end = children().map(|child| child.end).max();
        let end = end.or(last_end).unwrap_or(open.start).max(open.start);
        let node = Node {
            start: open.start,
            end,
            size: children().map(|child| child.size).sum::<u32>() + 1,
            depth: children().map(|child| child.depth).max().unwrap_or(0) + 1,
            content: match open.is_mapping {
                false => Content::Sequence(open.children),
                true => Content::Mapping(self.pairs(&open.children)?),
            },
        };
        Ok(self.push(node))
    }

    /// Adds a node that is in the tree already.
    pub(super) fn alias(&mut self, node: NodeId, start: usize) -> Result<(), Fault<'t>> {
        let Node { size, depth, .. } = self.nodes[node];
        if self.open.len() + depth as usize > MAX_DEPTH as usize {
            return Err(self.too_deep(start));
        }
        if !matches!(self.nodes[node].content, Content::Scalar(..)) {
            self.check_key(start)?;
        }
        self.count(size, start)?;
        self.add_child(node);
        Ok(())
    }

    fn push(&mut self, node: Node<'t>) -> NodeId {
        self.nodes.push(node);
        self.add_child(self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn add_child(&mut self, node: NodeId) {
        match self.open.last_mut() {
            Some(open) => open.children.push(node),
            None => self.roots.push(node),
        }
    }

    fn count(&mut self, size: u32, offset: usize) -> Result<(), Fault<'t>> {
        self.size = self.size.saturating_add(size);
        match self.size > MAX_NODES {
            false => Ok(()),
            true => Err(Fault::new(
                self.character(offset),
                format!("more than {MAX_NODES} values"),
                "a smaller file",
            )),
        }
    }

    /// Checks that the innermost mapping does not expect a key.
    fn check_key(&self, offset: usize) -> Result<(), Fault<'t>> {
        match self.open.last().is_some_and(OpenNode::expects_key) {
            false => Ok(()),
            true => Err(Fault::unsupported(
                self.character(offset),
                "lists and mappings as keys of YAML",
                "keys that are strings",
            )),
        }
    }

    fn too_deep(&self, offset: usize) -> Fault<'t> {
        Fault::new(
            self.character(offset),
            format!("more than {MAX_DEPTH} lists and mappings inside each other"),
            "fewer of them",
        )
    }

    /// Returns the character at an offset.
    fn character(&self, offset: usize) -> &'t str {
        let tail = &self.text[offset..];
        &tail[..tail.chars().next().map_or(0, char::len_utf8)]
    }

    /// Returns keys with their values. Two equal keys are an error.
    fn pairs(&self, children: &[NodeId]) -> Result<Vec<(NodeId, NodeId)>, Fault<'t>> {
        let pairs = children.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        let pairs: Vec<_> = pairs.collect();
        let name = |node: NodeId| match &self.nodes[node].content {
            Content::Scalar(_, text) => text.as_ref(),
            _ => "",
        };
        let mut names = HashSet::new();
        let mut is_second = |index: usize, key: NodeId| match pairs.len() <= MAX_COMPARED_KEYS {
            true => pairs[..index].iter().any(|pair| name(pair.0) == name(key)),
            false => !names.insert(name(key)),
        };
        for (index, &(key, _)) in pairs.iter().enumerate() {
            if is_second(index, key) {
                let Node { start, end, .. } = self.nodes[key];
                return Err(Fault::new(
                    &self.text[start..end],
                    format!("a second value of the key {}", quoted(name(key))),
                    "each key once",
                ));
            }
        }
        Ok(pairs)
    }
}

impl OpenNode {
    fn expects_key(&self) -> bool {
        self.is_mapping && self.children.len().is_multiple_of(2)
    }
}
