//! The blocks of a table: chains, sets, maps and other objects.

use classyard_text::line::quoted;

use super::Parser;
use super::lexer::TokenKind;
use crate::nftables::tree::{
    Base, Element, Family, NamedSet, Parsed, Policy, Rule, fault, unsupported,
};

/// Objects that do not select packets: rules name them.
const OBJECTS: [&str; 8] = [
    "counter",
    "quota",
    "limit",
    "flowtable",
    "ct",
    "secmark",
    "synproxy",
    "tunnel",
];

impl<'t> Parser<'t> {
    /// Reads the items of a block, each by `item`. A bad item is skipped.
    fn block(&mut self, mut item: impl FnMut(&mut Parser<'t>) -> Parsed<'t, ()>) -> Parsed<'t, ()> {
        self.expect("{")?;
        let mut hidden = Vec::new();
        loop {
            self.skip_separators();
            if self.accept("}") {
                break;
            }
            if self.peek().kind == TokenKind::End {
                self.restore(hidden);
                return Err(self.unexpected("`}` at the end of the block"));
            }
            let first = self.next;
            if self.is_next("include") {
                let text = self.peek().text;
                self.recover(unsupported(text, "`include` of other files"), first);
                continue;
            }
            let read = match self.variable_command(&mut hidden) {
                Ok(true) => Ok(()),
                Ok(false) => item(self),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = read.and_then(|()| self.expect_end_of_statement()) {
                self.recover(fault, first);
            }
        }
        self.restore(hidden);
        Ok(())
    }

    pub(super) fn table_block(&mut self, family: Family, name: &'t str) -> Parsed<'t, ()> {
        self.block(|parser| {
            let first = parser.peek();
            match first.text {
                "chain" => {
                    parser.advance();
                    parser.chain(family, name)
                }
                "set" | "map" => {
                    parser.advance();
                    parser.set(family, name)
                }
                "flags" => {
                    parser.advance();
                    let flags = parser.words_of_statement();
                    let table = parser.ruleset.table(family, name, first.text);
                    table.is_dormant |= flags.contains(&"dormant");
                    Ok(())
                }
                "comment" => {
                    parser.skip_statement();
                    Ok(())
                }
                word if OBJECTS.contains(&word) => {
                    parser.skip_statement();
                    Ok(())
                }
                "elements" => Err(parser.unexpected("`chain`, `set` or `map`")),
                _ => Err(parser.unexpected("`chain`, `set`, `map` or another object of a table")),
            }
        })
    }

    /// Reads the words up to the end of the statement.
    fn words_of_statement(&mut self) -> Vec<&'t str> {
        let mut words = Vec::new();
        while !self.is_end_of_statement() {
            words.push(self.advance().text);
        }
        words
    }

    /// Reads a chain from its name on.
    pub(super) fn chain(&mut self, family: Family, table: &'t str) -> Parsed<'t, ()> {
        let first = self.next - 1;
        let name = self.word("the name of a chain")?;
        let text = self.text_since(first);
        self.ruleset.table(family, table, text).chain(name, text);
        if !self.is_next("{") {
            return Ok(());
        }
        self.block(|parser| {
            let word = parser.peek();
            match word.text {
                "type" => {
                    let base = parser.base()?;
                    let chain = parser.ruleset.table(family, table, text).chain(name, text);
                    chain.base = Some(base);
                }
                "policy" => {
                    let policy = parser.policy()?;
                    let chain = parser.ruleset.table(family, table, text).chain(name, text);
                    match &mut chain.base {
                        Some(base) => base.policy = Some(policy),
                        None => {
                            let problem = "a policy of a chain without a hook";
                            return Err(fault(policy.1, problem, "`type … hook …` before it"));
                        }
                    }
                }
                "comment" if parser.peek_at(1).kind == TokenKind::Quoted => {
                    parser.skip_statement();
                }
                "flags" => parser.skip_statement(),
                _ => {
                    let rule: Rule<'t> = parser.rule()?;
                    let chain = parser.ruleset.table(family, table, text).chain(name, text);
                    chain.rules.push_back(rule);
                }
            }
            Ok(())
        })
    }

    /// Reads `type filter hook input device eth0 priority 0`.
    fn base(&mut self) -> Parsed<'t, Base<'t>> {
        self.expect("type")?;
        let chain_type = self.word("`filter`, `nat` or `route`")?;
        if !["filter", "nat", "route"].contains(&chain_type) {
            let expected = "`filter`, `nat` or `route`";
            return Err(fault(chain_type, quoted(chain_type), expected));
        }
        self.expect("hook")?;
        let hook = self.word("the name of a hook")?;
        // Devices and the priority do not change the packets that the chain accepts.
        self.skip_statement();
        Ok(Base {
            chain_type: chain_type.to_owned(),
            hook: hook.to_owned(),
            policy: None,
        })
    }

    fn policy(&mut self) -> Parsed<'t, (Policy, &'t str)> {
        let first = self.next;
        self.expect("policy")?;
        let name = self.word("`accept` or `drop`")?;
        let policy = match name.strip_prefix('$') {
            Some(variable) => self.variable_word(name, variable)?,
            None => name.to_owned(),
        };
        let policy = match &policy[..] {
            "accept" => Policy::Accept,
            "drop" => Policy::Drop,
            other => return Err(fault(name, quoted(other), "`accept` or `drop`")),
        };
        Ok((policy, self.text_since(first)))
    }

    /// Reads a set or map from its name on.
    pub(super) fn set(&mut self, family: Family, table: &'t str) -> Parsed<'t, ()> {
        let text = self.peek().text;
        let name = self.word("the name of a set")?;
        self.ruleset.table(family, table, text).set(name);
        if !self.is_next("{") {
            return Ok(());
        }
        self.block(|parser| {
            let word = parser.peek().text;
            match word {
                "elements" => {
                    parser.advance();
                    parser.expect("=")?;
                    let elements = parser.elements()?;
                    parser
                        .named_set(family, table, name)
                        .elements
                        .extend(elements);
                }
                "flags" => {
                    let flags = parser.words_of_statement();
                    let is_changing = flags.contains(&"dynamic") || flags.contains(&"timeout");
                    parser.named_set(family, table, name).is_changing |= is_changing;
                }
                "timeout" => {
                    parser.skip_statement();
                    parser.named_set(family, table, name).is_changing = true;
                }
                "type" | "typeof" | "gc-interval" | "size" | "policy" | "auto-merge"
                | "counter" | "comment" => parser.skip_statement(),
                // Each element has its own limit then.
                "limit" | "quota" | "ct" => {
                    parser.skip_statement();
                    parser.named_set(family, table, name).is_changing = true;
                }
                _ => return Err(parser.unexpected("a property of a set")),
            }
            Ok(())
        })
    }

    fn named_set(&mut self, family: Family, table: &'t str, name: &str) -> &mut NamedSet<'t> {
        self.ruleset.table(family, table, table).set(name)
    }

    /// Reads elements: `{ 22, 80-90 }`, or a variable that has such a set.
    pub(super) fn elements(&mut self) -> Parsed<'t, Vec<Element<'t>>> {
        let set = self.constant()?;
        match set.kind {
            crate::nftables::tree::ExpressionKind::Set(elements) => Ok(elements),
            _ => Err(fault(set.text, quoted(set.text), "elements in `{ }`")),
        }
    }
}
