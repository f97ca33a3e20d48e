//! YAML, with the parser `saphyr-parser`.
//!
//! A scalar without quotes is a number, a Boolean or no value if the core schema of YAML 1.2
//! has it so. `yes`, `no`, `on` and `off` are Booleans too, because the tools that load such
//! files follow YAML 1.1.

use std::collections::HashMap;

use classyard_text::Fault;
use classyard_text::line::quoted;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};

use super::tree::Tree;
use super::{NodeId, ScalarKind};

/// Parses the documents of a text.
pub(super) fn parse<'t>(text: &'t str, tree: &mut Tree<'t>) -> Result<(), Fault<'t>> {
    let mut reader = Reader {
        offsets: Offsets {
            text,
            character: 0,
            byte: 0,
        },
        anchors: HashMap::new(),
        open_anchors: Vec::new(),
    };
    let mut parser: Parser<'t, StrInput<'t>> = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((event, span)) => reader.event(event, span, tree)?,
            Err(error) => {
                let offset = reader.offsets.byte(*error.marker());
                let tail = &text[offset..];
                let part = &tail[..tail.chars().next().map_or(0, char::len_utf8)];
                let problem = format!("bad YAML ({})", error.info());
                return Err(Fault::new(part, problem, "YAML"));
            }
        }
    }
    Ok(())
}

struct Reader<'t> {
    offsets: Offsets<'t>,
    /// The nodes of anchors, by their numbers.
    anchors: HashMap<usize, NodeId>,
    /// The numbers of the anchors of open sequences and mappings; 0 is none.
    open_anchors: Vec<usize>,
}

impl<'t> Reader<'t> {
    fn event(
        &mut self,
        event: Event<'t>,
        span: Span,
        tree: &mut Tree<'t>,
    ) -> Result<(), Fault<'t>> {
        let start = self.offsets.byte(span.start);
        match event {
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(&node) => tree.alias(node, start)?,
                None => {
                    let part = &self.offsets.text[start..start];
                    return Err(Fault::new(
                        part,
                        "an alias inside of its own anchor",
                        "an alias of an earlier value",
                    ));
                }
            },
            Event::Scalar(text, style, anchor, tag) => {
                let end = self.offsets.byte(span.end).max(start);
                let kind = self.scalar_kind(&text, style, tag.as_deref(), start)?;
                let node = tree.scalar(kind, text, start, end)?;
                self.anchor(anchor, node);
            }
            Event::SequenceStart(_, tag) | Event::MappingStart(_, tag)
                if !is_structure_tag(tag.as_deref()) =>
            {
                return Err(self.bad_tag(tag.as_deref(), start));
            }
            Event::SequenceStart(anchor, _) => {
                tree.open(start, false)?;
                self.open_anchors.push(anchor);
            }
            Event::MappingStart(anchor, _) => {
                tree.open(start, true)?;
                self.open_anchors.push(anchor);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let end = self.offsets.byte(span.end);
                let node = tree.close((end > start).then_some(end))?;
                let anchor = self.open_anchors.pop().unwrap_or(0);
                self.anchor(anchor, node);
            }
            Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::StreamStart
            | Event::StreamEnd
            | Event::Nothing => {}
        }
        Ok(())
    }

    fn anchor(&mut self, anchor: usize, node: NodeId) {
        if anchor != 0 {
            self.anchors.insert(anchor, node);
        }
    }

    fn scalar_kind(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        start: usize,
    ) -> Result<ScalarKind, Fault<'t>> {
        match tag {
            None if style == ScalarStyle::Plain => Ok(plain_kind(text)),
            None => Ok(ScalarKind::String),
            Some(tag) if tag.is_yaml_core_schema() => match tag.suffix.as_str() {
                "str" => Ok(ScalarKind::String),
                "int" | "float" | "bool" | "null" => Ok(plain_kind(text)),
                _ => Err(self.bad_tag(Some(tag), start)),
            },
            Some(tag) => Err(self.bad_tag(Some(tag), start)),
        }
    }

    fn bad_tag(&self, tag: Option<&Tag>, start: usize) -> Fault<'t> {
        let name = tag.map_or(String::new(), |tag| quoted(&tag.suffix));
        Fault::unsupported(
            &self.offsets.text[start..start],
            "tags of YAML outside of the core schema",
            format!("a value without the tag {name}"),
        )
    }
}

fn is_structure_tag(tag: Option<&Tag>) -> bool {
    tag.is_none_or(|tag| tag.is_yaml_core_schema() && ["seq", "map"].contains(&tag.suffix.as_str()))
}

/// Returns the kind of a scalar without quotes.
fn plain_kind(text: &str) -> ScalarKind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => ScalarKind::Null,
        _ if is_number(text) => ScalarKind::Number,
        _ if is_boolean(text) => ScalarKind::Boolean,
        _ => ScalarKind::String,
    }
}

fn is_boolean(text: &str) -> bool {
    let words = ["true", "false", "yes", "no", "on", "off"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits =
        |text: &str, radix: u32| !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    if let Some(hexadecimal) = unsigned.strip_prefix("0x") {
        return digits(hexadecimal, 16);
    }
    if let Some(octal) = unsigned.strip_prefix("0o") {
        return digits(octal, 8);
    }
    if [".inf", ".nan"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word))
    {
        return true;
    }
    let is_of_floats = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    text.contains(|c: char| c.is_ascii_digit())
        && text.chars().all(is_of_floats)
        && text.parse::<f64>().is_ok()
}

/// Converts positions in characters to positions in bytes. Positions mostly ascend, so each
/// conversion starts at the position before.
struct Offsets<'t> {
    text: &'t str,
    character: usize,
    byte: usize,
}

impl Offsets<'_> {
    fn byte(&mut self, marker: Marker) -> usize {
        let character = marker.index();
        if character >= self.character {
            let tail = &self.text[self.byte..];
            match tail.char_indices().nth(character - self.character) {
                Some((offset, _)) => {
                    self.byte += offset;
                    self.character = character;
                }
                None => {
                    self.byte = self.text.len();
                    self.character += tail.chars().count();
                }
            }
        } else {
            let head = &self.text[..self.byte];
            let back = self.character - character;
            let kept = head.char_indices().rev().nth(back - 1);
            self.byte = kept.map_or(0, |(offset, _)| offset);
            self.character = character;
        }
        self.byte
    }
}
