//! Values of JSON that own their parts, for readers that keep parts of the text.

use std::borrow::Cow;

use classyard_text::Fault;

use super::tree::Tree;
use super::{Content, Node, NodeId, ScalarKind, json};

/// A JSON value with its text.
#[derive(Clone, Debug)]
pub(crate) struct Json<'t> {
    pub(crate) text: &'t str,
    pub(crate) kind: JsonKind<'t>,
}

/// The kinds of JSON values.
#[derive(Clone, Debug)]
pub(crate) enum JsonKind<'t> {
    Null,
    Boolean(bool),
    /// The text of a number.
    Number(Cow<'t, str>),
    String(Cow<'t, str>),
    Array(Vec<Json<'t>>),
    Object(Vec<(Cow<'t, str>, Json<'t>)>),
}

/// Returns the values of a JSON text, with the limits of all documents.
pub(crate) fn json_values(text: &str) -> Result<Vec<Json<'_>>, Fault<'_>> {
    let mut tree = Tree::new(text);
    json::parse(text, &mut tree)?;
    let (nodes, roots) = tree.finish();
    let mut nodes = Nodes {
        text,
        nodes: nodes.into_iter().map(Some).collect(),
    };
    Ok(roots.into_iter().map(|root| nodes.value(root)).collect())
}

/// The nodes of a tree without aliases: each has one parent, which takes it.
struct Nodes<'t> {
    text: &'t str,
    nodes: Vec<Option<Node<'t>>>,
}

impl<'t> Nodes<'t> {
    fn take(&mut self, id: NodeId) -> Node<'t> {
        self.nodes[id].take().expect("a node with one parent")
    }

    fn value(&mut self, id: NodeId) -> Json<'t> {
        let Node {
            start,
            end,
            content,
            ..
        } = self.take(id);
        let kind = match content {
            Content::Scalar(ScalarKind::Null, _) => JsonKind::Null,
            Content::Scalar(ScalarKind::Boolean, text) => JsonKind::Boolean(text == "true"),
            Content::Scalar(ScalarKind::Number, text) => JsonKind::Number(text),
            Content::Scalar(ScalarKind::String, text) => JsonKind::String(text),
            Content::Sequence(elements) => {
                let elements = elements.into_iter().map(|element| self.value(element));
                JsonKind::Array(elements.collect())
            }
            Content::Mapping(pairs) => {
                let entries = pairs.into_iter().map(|(key, value)| {
                    let name = match self.take(key).content {
                        Content::Scalar(_, text) => text,
                        _ => unreachable!("keys of JSON are strings"),
                    };
                    (name, self.value(value))
                });
                JsonKind::Object(entries.collect())
            }
        };
        Json {
            text: &self.text[start..end],
            kind,
        }
    }
}
