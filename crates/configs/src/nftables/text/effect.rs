//! Statements that decide packets or change something: queues, errors, translations of
//! addresses, and elements that rules add to sets.

use classyard_text::line::quoted;

use super::Parser;
use crate::nftables::build::{address_family, change_of_set, meter, queue, reject};
use crate::nftables::show;
use crate::nftables::tree::{Family, Parsed, RejectKind, StatementAction, Verdict, fault};

/// Flags of a translation of addresses.
const TRANSLATION_FLAGS: [&str; 4] = ["random", "fully-random", "persistent", "netmap"];

impl<'t> Parser<'t> {
    /// Reads `queue flags bypass to 1-3` or `queue num 1-3 bypass`.
    pub(super) fn queue(&mut self) -> Parsed<'t, StatementAction<'t>> {
        self.advance();
        let mut flags = Vec::new();
        let mut number = None;
        loop {
            if self.accept("num") || self.accept("to") {
                number = Some(show::expression(&self.fields()?));
            } else if !self.accept("flags") && !self.accept(",") {
                let names = self.words_while(|word| ["bypass", "fanout"].contains(&word));
                if names.is_empty() {
                    break;
                }
                flags.extend(names.into_iter().map(str::to_owned));
            }
        }
        let shown = queue(&flags, number);
        Ok(StatementAction::Verdict(Verdict::Queue(shown)))
    }

    pub(super) fn reject(&mut self) -> Parsed<'t, StatementAction<'t>> {
        self.advance();
        if !self.accept("with") {
            return Ok(StatementAction::Reject {
                shown: String::new(),
                kind: RejectKind::Any,
            });
        }
        let protocol = self.word("`tcp`, `icmp`, `icmpv6` or `icmpx`")?;
        if protocol != "tcp" {
            self.accept("type");
        }
        let name = self.word("the name of an error")?;
        reject(protocol, name).ok_or_else(|| {
            let expected = "`tcp reset`, `icmp`, `icmpv6` or `icmpx` and an error";
            fault(protocol, quoted(protocol), expected)
        })
    }

    /// Reads `dnat ip to 10.0.0.1:80 random`, and the like.
    pub(super) fn translation(&mut self, keyword: &str) -> Parsed<'t, StatementAction<'t>> {
        self.advance();
        // `snat ip saddr map { … }` has a field, and no family.
        let is_family = ["to", "addr", "prefix", "interval"].contains(&self.peek_at(1).text);
        let family = Family::from_keyword(self.peek().text).filter(|_| is_family);
        if family.is_some() {
            self.advance();
        }
        if self.accept("addr") {
            self.expect(".")?;
            self.expect("port")?;
        }
        self.words_while(|word| ["prefix", "interval"].contains(&word));
        let (mut address, mut port) = (None, None);
        let has_to = self.accept("to");
        if has_to && keyword == "redirect" && !self.is_next(":") {
            port = Some(self.fields()?);
        }
        // The word `to` may be left out before an address.
        let has_address = matches!(keyword, "dnat" | "snat")
            && !self.is_end_of_statement()
            && !TRANSLATION_FLAGS.contains(&self.peek().text);
        if has_address && !self.is_next(":") {
            address = Some(self.fields()?);
        }
        if self.accept(":") {
            port = Some(self.fields()?);
        }
        let mut flags = Vec::new();
        loop {
            let names = self.words_while(|word| TRANSLATION_FLAGS.contains(&word));
            flags.extend(names.iter().map(|name| (*name).to_owned()));
            if !self.accept(",") {
                break;
            }
        }
        let family = family.or_else(|| address.as_ref().and_then(address_family));
        let action = show::translation(keyword, address.as_ref(), port.as_ref(), &flags);
        Ok(StatementAction::Translate {
            action,
            family,
            target: address.into_iter().chain(port).collect(),
        })
    }

    pub(super) fn transparent_proxy(&mut self) -> Parsed<'t, StatementAction<'t>> {
        self.advance();
        if Family::from_keyword(self.peek().text).is_some() {
            self.advance();
        }
        self.expect("to")?;
        let (mut address, mut port) = (None, None);
        if !self.is_next(":") {
            address = Some(self.fields()?);
        }
        if self.accept(":") {
            port = Some(self.fields()?);
        }
        let condition = show::translation("tproxy", address.as_ref(), port.as_ref(), &[]);
        Ok(StatementAction::StatefulCondition(condition, None))
    }

    /// Reads `add @set { ip saddr timeout 1m limit rate 3/minute }`.
    pub(super) fn change_of_set(&mut self, operation: &str) -> Parsed<'t, StatementAction<'t>> {
        let word = self.advance();
        if operation == "set" {
            // The older form: `set add ip saddr @set`.
            let operation = self.word("`add` or `update`")?;
            let key = self.fields()?;
            let set = self.set_name()?;
            return Ok(change_of_set(operation, &set, key, ""));
        }
        if !self.peek().text.starts_with('@') {
            return Err(fault(word.text, quoted(word.text), "a statement of a rule"));
        }
        let set = self.set_name()?;
        self.expect("{")?;
        let key = self.fields()?;
        let limit = self.limits_of_element()?;
        Ok(change_of_set(operation, &set, key, &limit))
    }

    fn set_name(&mut self) -> Parsed<'t, String> {
        let word = self.word("the name of a set")?;
        match word.strip_prefix('@') {
            Some(name) => Ok(name.to_owned()),
            None => Err(fault(word, quoted(word), "the name of a set after `@`")),
        }
    }

    /// Reads properties of an element that a rule adds, up to the brace. Returns the limits.
    fn limits_of_element(&mut self) -> Parsed<'t, String> {
        let mut limits = Vec::new();
        loop {
            self.skip_newlines();
            if self.accept("}") {
                break;
            }
            if self.accept(":") {
                self.constant()?;
                continue;
            }
            match self.peek().text {
                "timeout" | "expires" => {
                    self.advance();
                    self.word("a time")?;
                }
                "comment" => {
                    self.advance();
                    self.word("a comment")?;
                }
                "limit" | "quota" | "ct" | "counter" | "last" => {
                    if let StatementAction::StatefulCondition(limit, _) = self.statement()? {
                        limits.push(limit);
                    }
                }
                _ => return Err(self.unexpected("`}`")),
            }
        }
        Ok(limits.join(" "))
    }

    /// Reads `meter m size 100 { ip saddr limit rate 3/second }`.
    pub(super) fn meter(&mut self) -> Parsed<'t, StatementAction<'t>> {
        self.advance();
        let name = self.word("the name of a meter")?;
        if self.accept("size") {
            self.word("a number")?;
        }
        self.expect("{")?;
        let key = self.fields()?;
        let limit = self.limits_of_element()?;
        Ok(meter(name, key, &limit))
    }
}
