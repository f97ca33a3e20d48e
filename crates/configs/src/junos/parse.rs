//! Both notations, as one tree of statements.

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::token::{Kind, Notation, Token, Tokens};
use super::tree::{Tree, WordId};

/// The first words of commands.
const COMMANDS: [&str; 14] = [
    "set",
    "deactivate",
    "activate",
    "delete",
    "insert",
    "annotate",
    "protect",
    "unprotect",
    "rename",
    "copy",
    "replace",
    "edit",
    "top",
    "up",
];

/// Statements at the top with rules, or with definitions that rules use.
pub(super) const RELEVANT: [&str; 8] = [
    "firewall",
    "security",
    "applications",
    "policy-options",
    "interfaces",
    "groups",
    "logical-systems",
    "tenants",
];

/// Returns the notation of a text: the first word decides.
pub(super) fn notation(text: &str) -> Notation {
    let mut tokens = Tokens::new(text, Notation::Commands);
    while let Ok(Some(token)) = tokens.read() {
        match token.kind {
            Kind::Line | Kind::Comment => {}
            Kind::Word if COMMANDS.contains(&token.text) => return Notation::Commands,
            _ => break,
        }
    }
    Notation::Braces
}

/// Reads a text. Problems of commands are added to `faults`, and the other commands are
/// read. A problem in the other notation ends reading, because the blocks are not clear
/// after it.
pub(super) fn parse<'t>(text: &'t str, faults: &mut Vec<Fault<'t>>) -> Result<Tree<'t>, Fault<'t>> {
    let mut tree = Tree::new();
    match notation(text) {
        Notation::Braces => Blocks::new(text, &mut tree).read()?,
        Notation::Commands => read_commands(text, &mut tree, faults)?,
    }
    Ok(tree)
}

/// A statement that has not ended.
#[derive(Debug, Default)]
struct Statement<'t> {
    words: Vec<&'t str>,
    /// The words of a list in brackets.
    list: Option<Vec<&'t str>>,
    list_is_open: bool,
    is_inactive: bool,
    is_replacement: bool,
    is_deletion: bool,
    comment: Option<&'t str>,
}

impl<'t> Statement<'t> {
    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.list.is_none()
    }

    fn add(&mut self, token: Token<'t>) -> Result<(), Fault<'t>> {
        let text = token.text;
        match (token.kind, &mut self.list) {
            (Kind::ListOpen, None) if !self.words.is_empty() => {
                self.list = Some(Vec::new());
                self.list_is_open = true;
                Ok(())
            }
            (Kind::ListClose, Some(_)) if self.list_is_open => {
                self.list_is_open = false;
                Ok(())
            }
            (Kind::Word, Some(list)) if self.list_is_open => {
                list.push(text);
                Ok(())
            }
            (Kind::Word, None) => {
                self.words.push(text);
                Ok(())
            }
            (_, list) => Err(Fault::new(
                text,
                quoted(text),
                match (list, self.list_is_open) {
                    (Some(_), true) => "a word of the list, or `]`",
                    (Some(_), false) => "the end of the statement after the list",
                    _ => "a word",
                },
            )),
        }
    }

    /// Removes the statement below a word, if there is one.
    fn delete(self, tree: &mut Tree<'t>, block: WordId) {
        let mut words = self.words.iter();
        let word = words.try_fold(block, |word, text| tree.any_child(word, text));
        match (word, self.list) {
            (Some(word), None) => tree.remove(word),
            (Some(word), Some(list)) => {
                for text in list {
                    if let Some(child) = tree.any_child(word, text) {
                        tree.remove(child);
                    }
                }
            }
            (None, _) => {}
        }
    }

    /// Adds the statement below a word. Returns the last words of the statement.
    fn insert(self, tree: &mut Tree<'t>, block: WordId) -> Result<Vec<WordId>, Fault<'t>> {
        if self.is_deletion {
            self.delete(tree, block);
            return Ok(Vec::new());
        }
        let mut word = block;
        let mut keyword = None;
        for text in self.words {
            word = tree.add(word, text, keyword.unwrap_or(text))?;
            keyword = Some(text);
        }
        let mut ends = Vec::new();
        match self.list {
            None => ends.push(word),
            Some(list) => {
                for text in list {
                    ends.push(tree.add(word, text, keyword.unwrap_or(text))?);
                }
            }
        }
        for word in &ends {
            if self.is_replacement {
                tree.clear(*word);
            }
            if self.is_inactive {
                tree.set_inactive(*word, true);
            }
            if let Some(comment) = self.comment {
                tree.set_comment(*word, comment);
            }
        }
        Ok(ends)
    }
}

/// Reads the notation with braces.
struct Blocks<'a, 't> {
    tokens: Tokens<'t>,
    tree: &'a mut Tree<'t>,
    /// The open blocks, each with its brace.
    blocks: Vec<(WordId, &'t str)>,
    statement: Statement<'t>,
}

impl<'a, 't> Blocks<'a, 't> {
    fn new(text: &'t str, tree: &'a mut Tree<'t>) -> Blocks<'a, 't> {
        Blocks {
            tokens: Tokens::new(text, Notation::Braces),
            tree,
            blocks: Vec::new(),
            statement: Statement::default(),
        }
    }

    fn read(mut self) -> Result<(), Fault<'t>> {
        while let Some(token) = self.tokens.read()? {
            self.add(token)?;
        }
        if let Some(word) = self.statement.words.first() {
            let message = format!("the file ends in the statement {}", quoted(word));
            return Err(Fault::new(word, message, "`;` at its end"));
        }
        match self.blocks.last() {
            Some((_, brace)) => Err(Fault::new(
                brace,
                "a block that does not end",
                "`}` at its end",
            )),
            None => Ok(()),
        }
    }

    fn add(&mut self, token: Token<'t>) -> Result<(), Fault<'t>> {
        let text = token.text;
        match token.kind {
            Kind::Comment if self.statement.is_empty() => self.statement.comment = Some(text),
            Kind::Comment => {}
            Kind::Open | Kind::End if self.statement.list_is_open => {
                self.statement.add(token)?;
            }
            // Junos prints `;` after nothing for empty containers in some releases.
            Kind::End if self.statement.is_empty() => {}
            Kind::End => {
                self.insert()?;
            }
            Kind::Open => self.open(text)?,
            Kind::Close => self.close(text)?,
            Kind::Word if self.statement.is_empty() && self.prefix(text)? => {}
            Kind::Word | Kind::ListOpen | Kind::ListClose | Kind::Line => {
                self.statement.add(token)?;
            }
        }
        Ok(())
    }

    /// Reads a word before a statement, such as `inactive:`.
    fn prefix(&mut self, text: &'t str) -> Result<bool, Fault<'t>> {
        match text {
            "inactive:" => self.statement.is_inactive = true,
            "replace:" => self.statement.is_replacement = true,
            "delete:" => self.statement.is_deletion = true,
            "active:" | "protect:" => {}
            "rename:" => {
                return Err(Fault::unsupported(
                    text,
                    format!("`{text}` before a statement"),
                    "the output of `show configuration`",
                ));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn insert(&mut self) -> Result<Vec<WordId>, Fault<'t>> {
        let block = self.blocks.last().map_or(WordId::TOP, |block| block.0);
        std::mem::take(&mut self.statement).insert(self.tree, block)
    }

    fn open(&mut self, brace: &'t str) -> Result<(), Fault<'t>> {
        if self.statement.words.is_empty() || self.statement.list.is_some() {
            return Err(Fault::new(brace, "`{`", "the name of a block before it"));
        }
        if self.statement.is_deletion {
            return Err(Fault::new(brace, "`{` after `delete:`", "`;` at the end"));
        }
        if self.blocks.len() == super::tree::MAX_DEPTH {
            return Err(Fault::new(
                brace,
                format!("more than {} blocks inside each other", self.blocks.len()),
                "fewer blocks inside each other",
            ));
        }
        let ends = self.insert()?;
        self.blocks.extend(ends.first().map(|word| (*word, brace)));
        Ok(())
    }

    fn close(&mut self, brace: &'t str) -> Result<(), Fault<'t>> {
        if !self.statement.is_empty() {
            return Err(Fault::new(brace, "`}`", "`;` at the end of the statement"));
        }
        self.statement = Statement::default();
        match self.blocks.pop() {
            Some(_) => Ok(()),
            None => Err(Fault::new(brace, "`}` without a block", "`{` before it")),
        }
    }
}

/// Reads commands, one a line.
fn read_commands<'t>(
    text: &'t str,
    tree: &mut Tree<'t>,
    faults: &mut Vec<Fault<'t>>,
) -> Result<(), Fault<'t>> {
    let mut tokens = Tokens::new(text, Notation::Commands);
    let mut command = Vec::new();
    loop {
        match tokens.read()? {
            Some(token) if token.kind == Kind::Line => {
                if let Err(fault) = read_command(&command, tree) {
                    faults.push(fault);
                }
                command.clear();
            }
            Some(token) if token.kind == Kind::Comment => {}
            Some(token) => command.push(token),
            None => break,
        }
    }
    if let Err(fault) = read_command(&command, tree) {
        faults.push(fault);
    }
    Ok(())
}

fn read_command<'t>(command: &[Token<'t>], tree: &mut Tree<'t>) -> Result<(), Fault<'t>> {
    let Some((first, arguments)) = command.split_first() else {
        return Ok(());
    };
    let mut statement = Statement::default();
    match first.text {
        "set" | "activate" | "deactivate" | "annotate" => {}
        "protect" | "unprotect" => return Ok(()),
        _ if COMMANDS.contains(&first.text) => {
            let is_relevant =
                |token: &Token<'_>| RELEVANT.contains(&token.text) || token.text == "apply-groups";
            return match arguments.first().is_none_or(is_relevant) {
                true => Err(Fault::unsupported(
                    first.text,
                    format!("the command `{}`", first.text),
                    "the output of `show configuration | display set`",
                )),
                false => Ok(()),
            };
        }
        _ => {
            return Err(Fault::new(
                first.text,
                quoted(first.text),
                "`set` or `deactivate`",
            ));
        }
    }
    let (comment, arguments) = match (first.text, arguments.split_last()) {
        ("annotate", Some((comment, arguments))) => (Some(comment.text), arguments),
        _ => (None, arguments),
    };
    for token in arguments {
        statement.add(*token)?;
    }
    if statement.list_is_open || statement.words.is_empty() {
        let message = match statement.list_is_open {
            true => "a list that does not end",
            false => "a command without a statement",
        };
        return Err(Fault::new(first.text, message, "a complete command"));
    }
    let ends = statement.insert(tree, WordId::TOP)?;
    for word in ends {
        match first.text {
            "activate" => tree.set_inactive(word, false),
            "deactivate" => tree.set_inactive(word, true),
            _ => {}
        }
        if let Some(comment) = comment {
            tree.set_comment(word, comment);
        }
    }
    Ok(())
}
