//! The commands of a file: definitions, tables, and rules that are added one by one.

use classyard_text::line::quoted;

use super::lexer::TokenKind;
use super::{HiddenVariables, Parser};
use crate::nftables::tree::{Family, Parsed, Rule, Ruleset, fault, unsupported};

/// The commands that add something.
const ADDING: [&str; 3] = ["add", "create", "insert"];

impl<'t> Parser<'t> {
    pub(super) fn read_file(&mut self) {
        let mut hidden = Vec::new();
        loop {
            self.skip_separators();
            if self.peek().kind == TokenKind::End {
                return;
            }
            let first = self.next;
            let command = self.command(&mut hidden);
            let command = command.and_then(|()| self.expect_end_of_statement());
            if let Err(fault) = command {
                self.recover(fault, first);
            }
            if self.is_next("}") {
                let fault = self.unexpected("a command");
                self.faults.push(fault);
                self.advance();
            }
        }
    }

    fn command(&mut self, hidden: &mut HiddenVariables<'t>) -> Parsed<'t, ()> {
        if self.variable_command(hidden)? {
            return Ok(());
        }
        let first = self.peek();
        match first.text {
            "table" => {
                self.advance();
                self.table()
            }
            "flush" => {
                self.advance();
                self.flush()
            }
            "delete" | "destroy" => {
                self.advance();
                self.delete(first.text)
            }
            word if ADDING.contains(&word) => {
                self.advance();
                self.add(first.text)
            }
            "include" => Err(unsupported(first.text, "`include` of other files")),
            "chain" | "rule" | "set" | "map" | "element" => self.add(first.text),
            "list" | "reset" | "rename" | "replace" | "monitor" | "describe" | "export"
            | "import" => Err(unsupported(
                first.text,
                format!("the command `{}`", first.text),
            )),
            _ => Err(self.unexpected("`table`, or a command that adds or deletes something")),
        }
    }

    /// Reads `define`, `redefine` or `undefine`. Returns false if none is next.
    pub(super) fn variable_command(
        &mut self,
        hidden: &mut HiddenVariables<'t>,
    ) -> Parsed<'t, bool> {
        let is_definition = self.is_next("define") || self.is_next("redefine");
        if !is_definition && !self.is_next("undefine") {
            return Ok(false);
        }
        self.advance();
        let mut name = self.word("the name of a variable")?;
        // Without spaces, the word is cut at the equals sign only, which is a symbol.
        name = name.strip_prefix('$').unwrap_or(name);
        let value = match is_definition {
            true => {
                self.expect("=")?;
                Some(self.definition()?)
            }
            false => None,
        };
        let former = self.set_variable(name, value);
        hidden.push((name, former));
        Ok(true)
    }

    /// Reads the family, if there is one, and the name of a table.
    fn table_name(&mut self) -> Parsed<'t, (Family, &'t str)> {
        let family = match Family::from_keyword(self.peek().text) {
            Some(family) if self.peek_at(1).kind == TokenKind::Word => {
                self.advance();
                family
            }
            _ => Family::Ip,
        };
        Ok((family, self.word("the name of a table")?))
    }

    fn table(&mut self) -> Parsed<'t, ()> {
        let first = self.next.saturating_sub(1);
        let (family, name) = self.table_name()?;
        let text = self.text_since(first);
        self.ruleset.table(family, name, text);
        match self.is_next("{") {
            true => self.table_block(family, name),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Parsed<'t, ()> {
        let object = self.word("`ruleset`, `table` or `chain`")?;
        match object {
            "ruleset" => {
                if let Some(family) = Family::from_keyword(self.peek().text) {
                    let text = self.advance().text;
                    let feature = format!("`flush ruleset {}`", family.keyword());
                    return Err(unsupported(text, feature));
                }
                self.ruleset = Ruleset::default();
            }
            "table" => {
                let (family, name) = self.table_name()?;
                self.ruleset.flush_table(family, name);
            }
            "chain" => {
                let (family, table) = self.table_name()?;
                let chain = self.word("the name of a chain")?;
                let table = self.ruleset.table(family, table, object);
                table.chain(chain, chain).rules.clear();
            }
            "set" | "map" => {
                let (family, table) = self.table_name()?;
                let set = self.word("the name of a set")?;
                let table = self.ruleset.table(family, table, object);
                table.set(set).elements.clear();
            }
            _ => {
                return Err(fault(
                    object,
                    quoted(object),
                    "`ruleset`, `table` or `chain`",
                ));
            }
        }
        Ok(())
    }

    fn delete(&mut self, command: &'t str) -> Parsed<'t, ()> {
        let object = self.word("`table`")?;
        if object != "table" {
            let feature = format!("the command `{command} {object}`");
            return Err(unsupported(object, feature));
        }
        let (family, name) = self.table_name()?;
        self.ruleset.clear_table(family, name);
        Ok(())
    }

    /// Reads the object that a command adds. Without a command, `add` is meant.
    fn add(&mut self, command: &'t str) -> Parsed<'t, ()> {
        let object = self.word("`table`, `chain`, `set`, `map`, `element` or `rule`")?;
        match object {
            "table" => self.table(),
            "chain" => {
                let (family, table) = self.table_name()?;
                self.ruleset.table(family, table, object);
                self.chain(family, table)
            }
            "set" | "map" => {
                let (family, table) = self.table_name()?;
                self.ruleset.table(family, table, object);
                self.set(family, table)
            }
            "element" => {
                let (family, table) = self.table_name()?;
                let name = self.word("the name of a set")?;
                let elements = self.elements()?;
                let table = self.ruleset.table(family, table, object);
                table.set(name).elements.extend(elements);
                Ok(())
            }
            "rule" => self.added_rule(command),
            "counter" | "quota" | "limit" | "flowtable" | "ct" | "secmark" | "synproxy" => {
                self.skip_statement();
                Ok(())
            }
            _ => {
                let expected = "`table`, `chain`, `set`, `map`, `element` or `rule`";
                Err(fault(object, quoted(object), expected))
            }
        }
    }

    fn added_rule(&mut self, command: &'t str) -> Parsed<'t, ()> {
        let (family, table) = self.table_name()?;
        let name = self.word("the name of a chain")?;
        for position in ["index", "handle", "position"] {
            if self.is_next(position) {
                let text = self.peek().text;
                return Err(unsupported(text, "rules that are added at a position"));
            }
        }
        let rule: Rule<'t> = self.rule()?;
        let table = self.ruleset.table(family, table, command);
        let rules = &mut table.chain(name, name).rules;
        match command {
            "insert" => rules.push_front(rule),
            _ => rules.push_back(rule),
        }
        Ok(())
    }
}
