//! Expressions of rules: fields of packets, constants, sets and operators.

use std::borrow::Cow;

use classyard_text::line::quoted;

use super::Parser;
use super::lexer::TokenKind;
use crate::nftables::show;
use crate::nftables::tree::{
    Element, ElementData, Expression, ExpressionKind, Operator, Parsed, fault,
};

/// The maximum number of expressions inside each other.
const MAX_DEPTH: usize = 24;

/// The maximum number of operators of one expression.
const MAX_OPERATORS: usize = 16;

/// The maximum number of expressions inside each other in the value of a variable.
const MAX_VARIABLE_DEPTH: usize = 64;

/// The maximum number of expressions that variables add to a file.
const MAX_COPIED_EXPRESSIONS: usize = 1 << 20;

/// The content that an expression may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Constants only: `tcp` is a protocol, and not the start of `tcp dport`.
    Constants,
    /// Fields of packets too.
    Fields,
}

/// Properties of elements that do not change the packets that match.
const ELEMENT_PROPERTIES: [&str; 5] = ["timeout", "expires", "counter", "comment", "last"];

impl<'t> Parser<'t> {
    /// Reads an expression with fields of packets, such as `ip saddr . tcp dport`.
    pub(super) fn fields(&mut self) -> Parsed<'t, Expression<'t>> {
        self.concatenation(Content::Fields)
    }

    /// Reads a constant without commas outside of braces.
    pub(super) fn constant(&mut self) -> Parsed<'t, Expression<'t>> {
        self.concatenation(Content::Constants)
    }

    /// Reads the value of a variable, which may be a list.
    pub(super) fn definition(&mut self) -> Parsed<'t, Expression<'t>> {
        self.list()
    }

    /// Reads the right side of a comparison: a constant or several joined by commas.
    pub(super) fn list(&mut self) -> Parsed<'t, Expression<'t>> {
        let first = self.next;
        let mut parts = vec![self.constant()?];
        while self.accept(",") {
            parts.push(self.constant()?);
        }
        let text = self.text_since(first);
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Expression {
                text,
                kind: ExpressionKind::List(parts),
            },
        })
    }

    /// Runs `read` one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Parser<'t>) -> Parsed<'t, T>) -> Parsed<'t, T> {
        if self.depth == MAX_DEPTH {
            let problem = format!("more than {MAX_DEPTH} expressions inside each other");
            return Err(fault(self.peek().text, problem, "a simpler expression"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn concatenation(&mut self, content: Content) -> Parsed<'t, Expression<'t>> {
        self.nested(|parser| {
            let first = parser.next;
            let mut parts = vec![parser.binary(content, 0)?];
            while parser.accept(".") {
                parser.skip_newlines();
                parts.push(parser.binary(content, 0)?);
            }
            let text = parser.text_since(first);
            let expression = match parts.len() {
                1 => parts.remove(0),
                _ => Expression {
                    text,
                    kind: ExpressionKind::Concatenation(parts),
                },
            };
            if content == Content::Constants || !parser.accept("map") {
                return Ok(expression);
            }
            let map = parser.constant()?;
            Ok(Expression {
                text: parser.text_since(first),
                kind: ExpressionKind::Map(Box::new([expression, map])),
            })
        })
    }

    /// Reads operators that bind at least as strongly as `precedence`.
    fn binary(&mut self, content: Content, precedence: usize) -> Parsed<'t, Expression<'t>> {
        let first = self.next;
        let mut left_side = self.primary(content)?;
        for _ in 0..MAX_OPERATORS {
            let token = self.peek();
            let operator = match token.kind {
                TokenKind::Word | TokenKind::Symbol => Operator::from_text(token.text),
                _ => None,
            };
            let Some(operator) = operator.filter(|o| o.precedence() >= precedence) else {
                return Ok(left_side);
            };
            self.advance();
            let next_precedence = operator.precedence() + 1;
            let right_side = self.nested(|parser| parser.binary(content, next_precedence))?;
            left_side = Expression {
                text: self.text_since(first),
                kind: ExpressionKind::Binary(operator, Box::new([left_side, right_side])),
            };
        }
        let problem = format!("more than {MAX_OPERATORS} operators");
        Err(fault(self.peek().text, problem, "a simpler expression"))
    }

    fn primary(&mut self, content: Content) -> Parsed<'t, Expression<'t>> {
        let first = self.next;
        if self.accept("(") {
            self.skip_newlines();
            let inner = self.nested(|parser| match content {
                Content::Fields => parser.fields(),
                Content::Constants => parser.list(),
            })?;
            self.skip_newlines();
            self.expect(")")?;
            return Ok(inner);
        }
        if self.is_next("{") {
            return self.anonymous_set();
        }
        if content == Content::Fields
            && let Some(selector) = self.selector()?
        {
            return Ok(Expression {
                text: self.text_since(first),
                kind: ExpressionKind::Selector(selector),
            });
        }
        let low = self.constant_word()?;
        if !self.accept("-") {
            return Ok(low);
        }
        let high = self.constant_word()?;
        Ok(Expression {
            text: self.text_since(first),
            kind: ExpressionKind::Range(Box::new([low, high])),
        })
    }

    fn constant_word(&mut self) -> Parsed<'t, Expression<'t>> {
        let token = self.peek();
        if self.accept("*") {
            return Ok(Expression {
                text: token.text,
                kind: ExpressionKind::Any,
            });
        }
        let word = self.word("a value")?;
        let is_quoted = token.kind == TokenKind::Quoted;
        if is_quoted {
            return Ok(word_expression(word, word));
        }
        if let Some(name) = word.strip_prefix('$') {
            return self.variable(word, name);
        }
        if let Some(name) = word.strip_prefix('@') {
            return Ok(Expression {
                text: word,
                kind: ExpressionKind::SetReference(name.to_owned()),
            });
        }
        if let Some((low, high)) = split_range(word) {
            let ends = [word_expression(low, low), word_expression(high, high)];
            return Ok(Expression {
                text: word,
                kind: ExpressionKind::Range(Box::new(ends)),
            });
        }
        let address = word
            .strip_prefix('[')
            .and_then(|open| open.strip_suffix(']'));
        Ok(word_expression(word, address.unwrap_or(word)))
    }

    fn variable(&mut self, word: &'t str, name: &str) -> Parsed<'t, Expression<'t>> {
        let Some(value) = self.variables.get(name) else {
            return Err(fault(
                word,
                format!("no variable {}", quoted(name)),
                "its `define`",
            ));
        };
        let size = size(value);
        if size.depth > MAX_VARIABLE_DEPTH {
            let problem = format!(
                "a variable with more than {MAX_VARIABLE_DEPTH} expressions inside each other"
            );
            return Err(fault(word, problem, "a simpler variable"));
        }
        self.copied_expressions += size.count;
        if self.copied_expressions > MAX_COPIED_EXPRESSIONS {
            let problem = format!("variables add more than {MAX_COPIED_EXPRESSIONS} values");
            return Err(fault(word, problem, "smaller variables"));
        }
        Ok(Expression {
            text: word,
            kind: value.kind.clone(),
        })
    }

    /// Returns the word that a variable stands for.
    pub(super) fn variable_word(&mut self, word: &'t str, name: &str) -> Parsed<'t, String> {
        match self.variable(word, name)?.kind {
            ExpressionKind::Word(value) => Ok(value.into_owned()),
            _ => Err(fault(word, "a variable that is not a word", "a word")),
        }
    }

    fn anonymous_set(&mut self) -> Parsed<'t, Expression<'t>> {
        let first = self.next;
        self.expect("{")?;
        let mut elements = Vec::new();
        loop {
            self.skip_newlines();
            if self.accept("}") {
                break;
            }
            self.nested(|parser| parser.element(&mut elements))?;
            self.skip_newlines();
            if !self.is_next("}") {
                self.expect(",")?;
            }
        }
        Ok(Expression {
            text: self.text_since(first),
            kind: ExpressionKind::Set(elements),
        })
    }

    /// Reads an element. A set as an element, which a variable may have, is its elements.
    fn element(&mut self, elements: &mut Vec<Element<'t>>) -> Parsed<'t, ()> {
        let key = self.constant()?;
        let mut is_limited = false;
        loop {
            let token = self.peek();
            if self.is_next(",") || self.is_next("}") || self.is_next(":") {
                break;
            }
            match token.kind {
                TokenKind::End => return Err(self.unexpected("`}`")),
                TokenKind::Symbol => return Err(self.unexpected("`,` or `}`")),
                TokenKind::Newline => self.skip_newlines(),
                _ => {
                    is_limited |= self.element_property()?;
                }
            }
        }
        let data = match self.accept(":") {
            true => self.element_data()?,
            false => ElementData::None,
        };
        match key.kind {
            ExpressionKind::Set(inner) => elements.extend(inner),
            _ => elements.push(Element {
                key,
                data,
                is_limited,
            }),
        }
        Ok(())
    }

    /// Reads a property of an element. Returns true if it limits the element.
    fn element_property(&mut self) -> Parsed<'t, bool> {
        let name = self.word("a property of an element")?;
        if !is_property(name) {
            return Err(fault(name, quoted(name), "`,` or `}`"));
        }
        loop {
            let token = self.peek();
            let is_end = match token.kind {
                TokenKind::Newline | TokenKind::End => true,
                TokenKind::Quoted => false,
                _ => is_property(token.text) || [",", "}", ":"].contains(&token.text),
            };
            if is_end {
                break;
            }
            self.advance();
        }
        Ok(!ELEMENT_PROPERTIES.contains(&name))
    }

    fn element_data(&mut self) -> Parsed<'t, ElementData<'t>> {
        self.skip_newlines();
        if let Some(verdict) = self.verdict()? {
            return Ok(ElementData::Verdict(verdict));
        }
        let mut value = self.constant()?;
        // Classes of traffic are two numbers with a colon.
        if self.accept(":") {
            let minor = show::expression(&self.constant()?);
            let text = format!("{}:{minor}", show::expression(&value));
            value.kind = ExpressionKind::Word(text.into());
        }
        Ok(ElementData::Value(value))
    }
}

/// True if a word starts a property of an element.
fn is_property(word: &str) -> bool {
    ELEMENT_PROPERTIES.contains(&word) || ["limit", "quota", "ct"].contains(&word)
}

fn word_expression<'t>(text: &'t str, word: &'t str) -> Expression<'t> {
    Expression {
        text,
        kind: ExpressionKind::Word(Cow::Borrowed(word)),
    }
}

/// Returns the ends of a range such as `80-90`. A name with a hyphen is not a range.
fn split_range(word: &str) -> Option<(&str, &str)> {
    let (low, high) = word.split_once('-')?;
    let is_value = |end: &str| {
        end.starts_with(|c: char| c.is_ascii_digit()) || end.parse::<std::net::Ipv6Addr>().is_ok()
    };
    (is_value(low) && is_value(high)).then_some((low, high))
}

/// The size of an expression.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    /// The number of expressions in it.
    count: usize,
    /// The number of expressions inside each other.
    depth: usize,
}

fn size(expression: &Expression<'_>) -> Size {
    let add = |total: Size, part: &Expression<'_>| {
        let part = size(part);
        Size {
            count: total.count + part.count,
            depth: total.depth.max(part.depth),
        }
    };
    let parts = |parts: &[Expression<'_>]| parts.iter().fold(Size::default(), add);
    let inner = match &expression.kind {
        ExpressionKind::Selector(_)
        | ExpressionKind::Word(_)
        | ExpressionKind::Any
        | ExpressionKind::SetReference(_) => Size::default(),
        ExpressionKind::Range(ends) => parts(&ends[..]),
        ExpressionKind::List(list) | ExpressionKind::Concatenation(list) => parts(list),
        ExpressionKind::Binary(_, operands) | ExpressionKind::Map(operands) => parts(&operands[..]),
        ExpressionKind::Set(elements) => {
            let keys = elements.iter().map(|element| &element.key);
            let values = elements.iter().filter_map(|element| match &element.data {
                ElementData::Value(value) => Some(value),
                _ => None,
            });
            keys.chain(values).fold(Size::default(), add)
        }
    };
    Size {
        count: inner.count + 1,
        depth: inner.depth + 1,
    }
}
