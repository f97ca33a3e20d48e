//! Rules and their statements.

use classyard_text::line::quoted;

use super::Parser;
use super::lexer::TokenKind;
use crate::nftables::build::change_of_field;
use crate::nftables::show;
use crate::nftables::tree::{
    Expression, ExpressionKind, Operator, Parsed, Relation, Rule, Statement, StatementAction,
    Verdict, fault, unsupported,
};

/// Options of `log` that a value follows.
const LOG_OPTIONS: [&str; 5] = ["prefix", "level", "group", "snaplen", "queue-threshold"];

/// The number of packets that the kernel allows above a rate if none is written.
const DEFAULT_BURST: &str = "5 packets";

impl<'t> Parser<'t> {
    /// Reads a rule up to the end of its line.
    pub(super) fn rule(&mut self) -> Parsed<'t, Rule<'t>> {
        let first = self.next;
        let mut rule = Rule {
            text: self.peek().text,
            statements: Vec::new(),
            comment: None,
        };
        while !self.is_end_of_statement() {
            if self.accept("comment") {
                rule.comment = Some(self.word("a comment")?.to_owned());
                continue;
            }
            let start = self.next;
            let action = self.statement()?;
            let text = self.text_since(start);
            rule.statements.push(Statement { text, action });
        }
        rule.text = self.text_since(first);
        Ok(rule)
    }

    /// Reads a verdict if one is next.
    pub(super) fn verdict(&mut self) -> Parsed<'t, Option<Verdict>> {
        if self.peek().kind != TokenKind::Word {
            return Ok(None);
        }
        let verdict = match self.peek().text {
            "accept" => Verdict::Accept,
            "drop" => Verdict::Drop,
            "continue" => Verdict::Continue,
            "return" => Verdict::Return,
            keyword @ ("jump" | "goto") => {
                self.advance();
                if self.is_next("{") {
                    return Err(unsupported(self.peek().text, "chains without a name"));
                }
                let word = self.word("the name of a chain")?;
                let name = match word.strip_prefix('$') {
                    Some(variable) => self.variable_word(word, variable)?,
                    None => word.to_owned(),
                };
                return Ok(Some(match keyword {
                    "jump" => Verdict::Jump(name),
                    _ => Verdict::Goto(name),
                }));
            }
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(verdict))
    }

    pub(super) fn statement(&mut self) -> Parsed<'t, StatementAction<'t>> {
        if let Some(verdict) = self.verdict()? {
            return Ok(StatementAction::Verdict(verdict));
        }
        let keyword = self.peek().text;
        if self.peek().kind != TokenKind::Word {
            return self.comparison();
        }
        match keyword {
            "queue" => self.queue(),
            "reject" => self.reject(),
            "log" => self.log(),
            "counter" => self.counter(),
            "limit" => self.limit(),
            "quota" => self.quota(),
            "dnat" | "snat" | "masquerade" | "redirect" => self.translation(keyword),
            "tproxy" => self.transparent_proxy(),
            "notrack" => {
                self.advance();
                Ok(StatementAction::Pass(keyword.to_owned()))
            }
            "add" | "update" | "delete" | "set" => self.change_of_set(keyword),
            "meter" => self.meter(),
            "ct" => self.connection_statement(),
            "last" => {
                self.words_while(|word| ["last", "used", "never"].contains(&word));
                Ok(StatementAction::Pass("last".to_owned()))
            }
            "dup" | "flow" | "fwd" | "synproxy" | "xt" | "reset" => {
                self.skip_statement();
                Ok(StatementAction::Unsupported(format!(
                    "the statement `{keyword}`"
                )))
            }
            _ => self.comparison(),
        }
    }

    /// Reads words while `is_part` holds for the next one.
    pub(super) fn words_while(&mut self, is_part: impl Fn(&str) -> bool) -> Vec<&'t str> {
        let mut words = Vec::new();
        while self.peek().kind == TokenKind::Word && is_part(self.peek().text) {
            words.push(self.advance().text);
        }
        words
    }

    /// Reads a statement that starts with fields: a comparison, a verdict map, or a change of
    /// a field.
    fn comparison(&mut self) -> Parsed<'t, StatementAction<'t>> {
        let left_side = self.fields()?;
        let is_constant = matches!(
            left_side.kind,
            ExpressionKind::Word(_)
                | ExpressionKind::Any
                | ExpressionKind::Range(_)
                | ExpressionKind::Set(_)
                | ExpressionKind::SetReference(_)
        );
        if is_constant {
            let expected = "a statement or a field of packets";
            return Err(fault(left_side.text, quoted(left_side.text), expected));
        }
        if self.accept("set") {
            return self.change_of_field(left_side);
        }
        if self.accept("vmap") {
            let map = self.constant()?;
            return Ok(StatementAction::VerdictMap {
                key: left_side,
                map,
            });
        }
        let relation = self.relation(&left_side);
        let mut right_side = self.list()?;
        if is_priority(&left_side) && self.accept(":") {
            let minor = self.constant()?;
            let text = format!(
                "{}:{}",
                show::expression(&right_side),
                show::expression(&minor)
            );
            right_side.kind = ExpressionKind::Word(text.into());
        }
        match self.accept("/") {
            true => self.masked(left_side, relation, right_side),
            false => Ok(StatementAction::Match {
                left_side,
                relation,
                right_side,
            }),
        }
    }

    /// Reads the operator of a comparison, which may be left out.
    fn relation(&mut self, left_side: &Expression<'t>) -> Relation {
        let operator = self.peek();
        let relation = match operator.kind {
            TokenKind::Word | TokenKind::Symbol => Relation::from_operator(operator.text),
            _ => None,
        };
        match relation {
            Some(relation) => {
                self.advance();
                relation
            }
            None if has_bits(left_side) => Relation::Implicit,
            None => Relation::Equal,
        }
    }

    /// Reads the mask of `tcp flags syn / syn,ack`, which compares the flags of the mask.
    fn masked(
        &mut self,
        left_side: Expression<'t>,
        relation: Relation,
        right_side: Expression<'t>,
    ) -> Parsed<'t, StatementAction<'t>> {
        let mask = self.list()?;
        let text = left_side.text;
        let kind = ExpressionKind::Binary(Operator::And, Box::new([left_side, mask]));
        Ok(StatementAction::Match {
            left_side: Expression { text, kind },
            relation: match relation {
                Relation::Implicit => Relation::Equal,
                other => other,
            },
            right_side,
        })
    }

    fn change_of_field(&mut self, left_side: Expression<'t>) -> Parsed<'t, StatementAction<'t>> {
        let mut value = self.fields()?;
        if is_priority(&left_side) && self.accept(":") {
            let minor = show::expression(&self.fields()?);
            let text = format!("{}:{minor}", show::expression(&value));
            value.kind = ExpressionKind::Word(text.into());
        }
        Ok(change_of_field(left_side, value))
    }

    fn connection_statement(&mut self) -> Parsed<'t, StatementAction<'t>> {
        if self.peek_at(1).text != "count" {
            return self.comparison();
        }
        self.advance();
        self.advance();
        let over = if self.accept("over") { "over " } else { "" };
        let count = self.word("a number of connections")?;
        let condition = format!("ct count {over}{count}");
        Ok(StatementAction::StatefulCondition(condition, None))
    }

    /// Reads the name of an object: `name "x"`, or the string alone. A map may select the
    /// object.
    fn object_name(&mut self) -> Parsed<'t, Option<String>> {
        if !self.accept("name") {
            let is_quoted = self.peek().kind == TokenKind::Quoted;
            return Ok(is_quoted.then(|| self.advance().text.to_owned()));
        }
        let name = self.fields()?;
        match name.kind {
            ExpressionKind::Word(word) => Ok(Some(word.into_owned())),
            _ => Err(unsupported(name.text, "maps of counters, limits or quotas")),
        }
    }

    fn counter(&mut self) -> Parsed<'t, StatementAction<'t>> {
        self.advance();
        if let Some(name) = self.object_name()? {
            return Ok(StatementAction::Pass(format!("counter name {name}")));
        }
        let mut packets = 0;
        if self.accept("packets") {
            let word = self.word("a number of packets")?;
            let Ok(count) = word.parse() else {
                return Err(fault(word, quoted(word), "a number of packets"));
            };
            packets = count;
            self.expect("bytes")?;
            self.word("a number of bytes")?;
        }
        Ok(StatementAction::Counter(packets))
    }

    fn limit(&mut self) -> Parsed<'t, StatementAction<'t>> {
        self.advance();
        if let Some(name) = self.object_name()? {
            let condition = format!("limit name {name}");
            return Ok(StatementAction::StatefulCondition(condition, None));
        }
        self.expect("rate")?;
        let over = match self.accept("over") {
            true => "over ",
            false => {
                self.accept("until");
                ""
            }
        };
        let rate = self.word("a rate, such as `10/second`")?;
        let is_packets = rate.contains('/');
        let unit = match is_packets {
            true => String::new(),
            false => format!(" {}", self.word("a unit, such as `kbytes/second`")?),
        };
        let mut burst = String::from(if is_packets { DEFAULT_BURST } else { "" });
        if self.accept("burst") {
            let count = self.word("a number")?;
            burst = format!("{count} {}", self.word("`packets` or a unit of bytes")?);
        }
        let burst = match burst.is_empty() || burst == "0 bytes" {
            true => String::new(),
            false => format!(" burst {burst}"),
        };
        let condition = format!("limit rate {over}{rate}{unit}{burst}");
        Ok(StatementAction::StatefulCondition(condition, None))
    }

    fn quota(&mut self) -> Parsed<'t, StatementAction<'t>> {
        self.advance();
        if let Some(name) = self.object_name()? {
            let condition = format!("quota name {name}");
            return Ok(StatementAction::StatefulCondition(condition, None));
        }
        let over = match self.accept("over") {
            true => "over ",
            false => {
                self.accept("until");
                ""
            }
        };
        let size = self.word("a number of bytes")?;
        let unit = self.word("a unit of bytes")?;
        if self.accept("used") {
            self.word("a number of bytes")?;
            self.word("a unit of bytes")?;
        }
        let condition = format!("quota {over}{size} {unit}");
        Ok(StatementAction::StatefulCondition(condition, None))
    }

    fn log(&mut self) -> Parsed<'t, StatementAction<'t>> {
        self.advance();
        loop {
            let option = self.peek();
            if option.kind != TokenKind::Word {
                break;
            }
            if LOG_OPTIONS.contains(&option.text) {
                self.advance();
                self.word("the value of an option of `log`")?;
            } else if option.text == "flags" {
                self.advance();
                if matches!(self.word("flags of `log`")?, "tcp" | "ip") {
                    self.list()?;
                }
            } else {
                break;
            }
        }
        Ok(StatementAction::Pass("log".to_owned()))
    }
}

/// True for expressions on flags, for which a comparison without an operator needs one
/// common bit.
fn has_bits(left_side: &Expression<'_>) -> bool {
    let flags = ["tcp flags", "ct state", "ct status", "ct label", "ct event"];
    match &left_side.kind {
        ExpressionKind::Selector(selector) => flags.contains(&&selector[..]),
        _ => false,
    }
}

/// True for `meta priority`: its value is two numbers with a colon.
fn is_priority(left_side: &Expression<'_>) -> bool {
    matches!(&left_side.kind, ExpressionKind::Selector(selector) if selector == "meta priority")
}
