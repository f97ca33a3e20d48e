//! Reads the text of a ruleset: files for `nft -f`, and what `nft list ruleset` prints.

mod blocks;
mod commands;
mod effect;
mod expression;
mod lexer;
mod selector;
mod statement;

use std::collections::HashMap;

use classyard_text::Fault;
use classyard_text::line::quoted;

use self::lexer::{Token, TokenKind, tokens};
use super::tree::{Expression, Parsed, Ruleset, fault};

/// Returns the tables of a text, and its problems.
pub(super) fn read(text: &str) -> (Ruleset<'_>, Vec<Fault<'_>>) {
    let mut parser = Parser {
        text,
        tokens: tokens(text),
        next: 0,
        depth: 0,
        variables: HashMap::new(),
        copied_expressions: 0,
        ruleset: Ruleset::default(),
        faults: Vec::new(),
    };
    parser.read_file();
    (parser.ruleset, parser.faults)
}

/// True if a text starts like a ruleset.
pub(super) fn is_format(text: &str) -> bool {
    if text.starts_with("#!") && text.lines().next().is_some_and(|line| line.contains("nft")) {
        return true;
    }
    let lines = text.lines().map(str::trim_start);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(line) = lines.next() else {
        return false;
    };
    let words: Vec<&str> = line.split_whitespace().take(3).collect();
    match words[..] {
        ["flush", "ruleset" | "ruleset;", ..] => true,
        ["define", _, "=", ..] => true,
        ["define", assignment, ..] => assignment.contains('='),
        ["add", "table", ..] => true,
        ["table", family, ..] if super::tree::Family::from_keyword(family).is_some() => true,
        ["table", name, "{", ..] => !name.starts_with('<'),
        _ => false,
    }
}

/// The variables that a block hides, with their former values.
type HiddenVariables<'t> = Vec<(&'t str, Option<Expression<'t>>)>;

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    /// The position of the next token.
    next: usize,
    /// The number of expressions inside each other.
    depth: usize,
    variables: HashMap<&'t str, Expression<'t>>,
    /// The number of expressions that variables have added.
    copied_expressions: usize,
    ruleset: Ruleset<'t>,
    faults: Vec<Fault<'t>>,
}

impl<'t> Parser<'t> {
    /// Returns the next token without reading it.
    fn peek(&self) -> Token<'t> {
        self.peek_at(0)
    }

    /// Returns the token that `ahead` tokens follow.
    fn peek_at(&self, ahead: usize) -> Token<'t> {
        let end_index = self.tokens.len() - 1;
        self.tokens[(self.next + ahead).min(end_index)]
    }

    fn advance(&mut self) -> Token<'t> {
        let token = self.peek();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    /// True if the next token is this word or symbol.
    fn is_next(&self, text: &str) -> bool {
        let token = self.peek();
        token.kind != TokenKind::Quoted && token.text == text && token.kind != TokenKind::End
    }

    /// Reads a word or symbol if it is next.
    fn accept(&mut self, text: &str) -> bool {
        let is_next = self.is_next(text);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn expect(&mut self, symbol: &str) -> Parsed<'t, Token<'t>> {
        match self.is_next(symbol) {
            true => Ok(self.advance()),
            false => Err(self.unexpected(format!("`{symbol}`"))),
        }
    }

    /// Reads a word or a string.
    fn word(&mut self, expected: &str) -> Parsed<'t, &'t str> {
        match self.peek().kind {
            TokenKind::Word | TokenKind::Quoted => Ok(self.advance().text),
            _ => Err(self.unexpected(expected)),
        }
    }

    fn unexpected(&self, expected: impl Into<String>) -> Fault<'t> {
        let token = self.peek();
        let problem = match token.kind {
            TokenKind::End => "the file ends here".to_owned(),
            TokenKind::Newline => "the line ends here".to_owned(),
            TokenKind::Symbol if token.text == "\"" => "a string without its end".to_owned(),
            _ => quoted(token.text),
        };
        // The end of a line is a part without characters.
        let part = match token.kind {
            TokenKind::Newline => &token.text[..0],
            _ => token.text,
        };
        fault(part, problem, expected)
    }

    fn skip_newlines(&mut self) {
        while self.peek().kind == TokenKind::Newline {
            self.advance();
        }
    }

    /// Skips ends of lines and semicolons.
    fn skip_separators(&mut self) {
        while self.peek().kind == TokenKind::Newline || self.is_next(";") {
            self.advance();
        }
    }

    /// True if a statement ends before the next token.
    fn is_end_of_statement(&self) -> bool {
        let is_end = matches!(self.peek().kind, TokenKind::Newline | TokenKind::End);
        is_end || self.is_next(";") || self.is_next("}")
    }

    fn expect_end_of_statement(&mut self) -> Parsed<'t, ()> {
        match self.is_end_of_statement() {
            true => Ok(()),
            false => Err(self.unexpected("the end of the statement")),
        }
    }

    /// Records a fault and skips the tokens up to the end of the statement that starts with
    /// the token `first`.
    fn recover(&mut self, fault: Fault<'t>, first: usize) {
        self.faults.push(fault);
        let read = &self.tokens[first..self.next];
        let symbols = read.iter().filter(|token| token.kind == TokenKind::Symbol);
        let open_braces = symbols.fold(0_usize, |open, token| match token.text {
            "{" => open + 1,
            "}" => open.saturating_sub(1),
            _ => open,
        });
        self.skip_tokens(open_braces);
    }

    /// Skips the tokens up to the end of the statement, with the blocks inside it.
    fn skip_statement(&mut self) {
        self.skip_tokens(0);
    }

    fn skip_tokens(&mut self, mut open_braces: usize) {
        loop {
            if self.peek().kind == TokenKind::End {
                return;
            }
            if open_braces == 0 && self.is_end_of_statement() {
                return;
            }
            match self.advance() {
                token if token.kind == TokenKind::Quoted => {}
                token if token.text == "{" => open_braces += 1,
                token if token.text == "}" => open_braces -= 1,
                _ => {}
            }
        }
    }

    /// Returns the text from one token to the token before the next one.
    fn text_since(&self, first: usize) -> &'t str {
        let offset = |text: &str| text.as_ptr() as usize - self.text.as_ptr() as usize;
        let edge = |token: &Token<'_>| usize::from(token.kind == TokenKind::Quoted);
        let first_token = &self.tokens[first];
        let last_token = &self.tokens[self.next.saturating_sub(1).max(first)];
        let start = offset(first_token.text) - edge(first_token);
        let end = offset(last_token.text) + last_token.text.len() + edge(last_token);
        self.text.get(start..end).unwrap_or(first_token.text)
    }

    /// Sets a variable. Returns its former value.
    fn set_variable(
        &mut self,
        name: &'t str,
        value: Option<Expression<'t>>,
    ) -> Option<Expression<'t>> {
        match value {
            Some(value) => self.variables.insert(name, value),
            None => self.variables.remove(name),
        }
    }

    /// Ends a block: variables get the values that they had before it.
    fn restore(&mut self, hidden: HiddenVariables<'t>) {
        for (name, value) in hidden.into_iter().rev() {
            self.set_variable(name, value);
        }
    }
}
