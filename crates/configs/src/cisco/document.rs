//! The lists, groups and bindings of a configuration.
//!
//! Statements that are not about access lists are ignored. A list or a group is a line and
//! the lines after it that are indented more. Lines that lost their indentation belong to it
//! too if they start like an entry or a member.

use std::collections::HashMap;

use classyard_text::Fault;
use classyard_text::line::{lines, quoted};

use super::Dialect;
use super::asa;
use super::binding::Bindings;
use super::group::{GroupId, Groups};
use super::list::{List, ListKind};
use super::names;
use super::words::{Statement, Words, text_after};
use crate::packets::Families;

/// The maximum number of lines of a banner. A longer text is read as statements.
const MAX_BANNER_LINES: usize = 500;

/// A list or a group whose lines are being read.
#[derive(Clone, Copy, Debug)]
struct Section {
    content: SectionContent,
    /// The number of spaces before the first line.
    indent: usize,
}

#[derive(Clone, Copy, Debug)]
enum SectionContent {
    List(usize),
    Group(GroupId),
    /// A list that is not read.
    Other,
}

/// The content of a configuration that is about access lists.
#[derive(Debug)]
pub(super) struct Document<'t> {
    dialect: Dialect,
    lists: Vec<List<'t>>,
    /// The lists by name; true for IPv6.
    index: HashMap<(bool, &'t str), usize>,
    pub(super) groups: Groups<'t>,
    pub(super) bindings: Bindings<'t>,
    /// The number of lists of MAC addresses.
    pub(super) mac_lists: usize,
    /// The faults with their lines and the lines' numbers.
    pub(super) problems: Vec<(Fault<'t>, usize, &'t str)>,
    section: Option<Section>,
}

impl<'t> Document<'t> {
    /// Reads a configuration.
    pub(super) fn read(text: &'t str, dialect: Dialect) -> Document<'t> {
        let mut document = Document {
            dialect,
            lists: Vec::new(),
            index: HashMap::new(),
            groups: Groups::new(dialect),
            bindings: Bindings::default(),
            mac_lists: 0,
            problems: Vec::new(),
            section: None,
        };
        let mut banner_end = 0;
        let mut unread = lines(text);
        while let Some((number, line)) = unread.next() {
            let statement = Statement {
                number,
                line,
                text: line.trim(),
            };
            // Addresses of IPv6 may start with a colon too.
            let is_asa_comment = dialect == Dialect::Asa && statement.text.starts_with(": ");
            let is_comment = statement.text.starts_with('!') || is_asa_comment;
            if number <= banner_end || statement.text.is_empty() || is_comment {
                continue;
            }
            if let Some(delimiter) = banner_delimiter(statement.text, dialect) {
                let lines_after = unread.clone().take(MAX_BANNER_LINES);
                let mut ends = lines_after.filter(|(_, line)| line.contains(delimiter));
                banner_end = ends.next().map_or(0, |(number, _)| number);
            } else if let Err(fault) = document.read_statement(statement) {
                document.problems.push((fault, number, line));
            }
        }
        document
    }

    /// Returns the lists in the order of the file, with their items in order.
    pub(super) fn take_lists(&mut self) -> Vec<List<'t>> {
        let mut lists = std::mem::take(&mut self.lists);
        let mut index = 0;
        lists.retain(|list| {
            let key = (list.families == Families::IPV6, list.name);
            index += 1;
            self.index.get(&key) == Some(&(index - 1))
        });
        if self.dialect != Dialect::Asa {
            lists.iter_mut().for_each(List::sort);
        }
        lists
    }

    fn read_statement(&mut self, statement: Statement<'t>) -> Result<(), Fault<'t>> {
        let indent = statement.line.len() - statement.line.trim_start().len();
        if let Some(section) = self.section {
            let is_exit = matches!(statement.text, "exit" | "end" | "root" | "commit");
            let is_inside = indent > section.indent || section.has_member(statement.text);
            if is_inside && !is_exit {
                return self.read_member(section, statement);
            }
        }
        self.section = None;
        self.read_top_level(statement, indent)
    }

    fn read_member(&mut self, section: Section, statement: Statement<'t>) -> Result<(), Fault<'t>> {
        match section.content {
            SectionContent::List(index) => {
                self.lists[index].add_line(statement, statement.text, self.dialect)
            }
            SectionContent::Group(id) => self.groups.add_member(id, statement),
            SectionContent::Other => Ok(()),
        }
    }

    fn read_top_level(&mut self, statement: Statement<'t>, indent: usize) -> Result<(), Fault<'t>> {
        let mut words = Words::new(statement.text);
        let is_removed = words.take_word("no");
        let is_asa = self.dialect == Dialect::Asa;
        let content = match (words.peek(), words.peek_after(1)) {
            (Some("access-list"), Some(_)) if is_asa => {
                self.read_asa_list(statement, words, is_removed)?;
                None
            }
            (Some("access-list"), Some(_)) => {
                self.read_numbered(statement, words, is_removed)?;
                None
            }
            (Some(family @ ("ip" | "ipv4" | "ipv6")), Some("access-list")) => {
                self.section = Some(Section {
                    content: SectionContent::Other,
                    indent,
                });
                let is_ipv6 = family == "ipv6";
                self.read_named(statement, words, is_ipv6, is_removed)?
            }
            (Some("mac"), Some("access-list")) => {
                self.mac_lists += usize::from(!is_removed);
                Some(SectionContent::Other)
            }
            (Some("object-group"), Some(_)) => self.read_group(statement, words, is_removed)?,
            (Some("object"), Some("network" | "service")) if is_asa => {
                self.read_group(statement, words, is_removed)?
            }
            (Some("name"), Some(address)) if is_asa && !is_removed => {
                if let Some(name) = words.peek_after(2) {
                    self.groups.add_name(name, address);
                }
                None
            }
            (Some("permit" | "deny"), Some(_)) if indent == 0 => {
                return Err(Fault::new(
                    statement.text,
                    "an entry outside of an access list",
                    "the statement that names the list before it",
                ));
            }
            _ => {
                let shown = self.read_shown(statement, &words)?;
                if shown.is_none() && !is_removed {
                    self.bindings.read(statement);
                }
                shown
            }
        };
        self.section = content.map(|content| Section { content, indent });
        Ok(())
    }

    fn read_group(
        &mut self,
        statement: Statement<'t>,
        mut words: Words<'t>,
        is_removed: bool,
    ) -> Result<Option<SectionContent>, Fault<'t>> {
        if is_removed {
            self.groups.remove(&mut words)?;
            return Ok(None);
        }
        let id = self.groups.open(statement)?;
        Ok(Some(SectionContent::Group(id)))
    }

    /// Reads the headlines of lists that `show` commands print.
    fn read_shown(
        &mut self,
        statement: Statement<'t>,
        words: &Words<'t>,
    ) -> Result<Option<SectionContent>, Fault<'t>> {
        let (kind, is_ipv6, name) = match *words.unread() {
            ["Standard", "IP", "access", "list", name, ..] => (ListKind::Standard, false, name),
            ["Extended", "IP", "access", "list", name, ..] => (ListKind::Extended, false, name),
            ["IP", "access", "list", name, ..] | ["IPV4", "ACL", name, ..] => {
                (ListKind::Extended, false, name)
            }
            ["IPv6", "access", "list", name, ..] | ["IPV6", "ACL", name, ..] => {
                (ListKind::Extended, true, name)
            }
            [
                word @ ("Reflexive" | "Role-based"),
                "IP",
                "access",
                "list",
                ..,
            ] => {
                return Err(Fault::unsupported(
                    word,
                    format!("an access list of the kind `{word}`"),
                    "standard and extended lists",
                ));
            }
            _ => return Ok(None),
        };
        let index = self.list(name, statement, kind, is_ipv6)?;
        Ok(Some(SectionContent::List(index)))
    }

    /// Returns the list with a name, which may be new.
    fn list(
        &mut self,
        name: &'t str,
        header: Statement<'t>,
        kind: ListKind,
        is_ipv6: bool,
    ) -> Result<usize, Fault<'t>> {
        let families = match (is_ipv6, kind, self.dialect) {
            (true, ..) => Families::IPV6,
            (false, ListKind::Extended, Dialect::Asa) => Families::BOTH,
            (false, ..) => Families::IPV4,
        };
        let Some(&index) = self.index.get(&(is_ipv6, name)) else {
            self.index.insert((is_ipv6, name), self.lists.len());
            self.lists.push(List::new(name, header, kind, families));
            return Ok(self.lists.len() - 1);
        };
        let list = &mut self.lists[index];
        if list.kind != kind && list.has_entries {
            return Err(Fault::new(
                name,
                format!(
                    "the list {} is of another kind in line {}",
                    quoted(name),
                    list.header.number
                ),
                "lists of one kind with a name",
            ));
        }
        (list.kind, list.families) = (kind, families);
        Ok(index)
    }

    /// Reads `ip access-list extended NAME`, `ipv4 access-list NAME` and others.
    fn read_named(
        &mut self,
        statement: Statement<'t>,
        mut words: Words<'t>,
        is_ipv6: bool,
        is_removed: bool,
    ) -> Result<Option<SectionContent>, Fault<'t>> {
        let family = words.require("an IP version")?;
        let keyword = words.require("`access-list`")?;
        if self.dialect == Dialect::Asa {
            return Err(Fault::unsupported(
                keyword,
                format!("`{family} access-list` in a configuration of ASA"),
                "`access-list` with a name",
            ));
        }
        const EXPECTED: &str = "the name of the list";
        let mut name = words.require(EXPECTED)?;
        let mut kind = ListKind::Extended;
        let has_kind = family == "ip" && words.peek().is_some();
        match name {
            "standard" | "extended" if has_kind => {
                if name == "standard" {
                    kind = ListKind::Standard;
                }
                name = words.require(EXPECTED)?;
            }
            "helper" | "log-update" | "logging" | "match-local-traffic" | "persistent" => {
                return Ok(None);
            }
            "fqdn" | "resequence" | "role-based" => {
                return Err(Fault::unsupported(
                    name,
                    format!("`{family} access-list {name}`"),
                    "`standard` or `extended`",
                ));
            }
            _ if family == "ip" && self.dialect == Dialect::Ios => {
                return Err(Fault::new(
                    name,
                    format!("the unknown kind of access lists {}", quoted(name)),
                    "`standard` or `extended`",
                ));
            }
            _ => {}
        }
        if is_removed {
            words.require_end()?;
            self.index.remove(&(is_ipv6, name));
            return Ok(None);
        }
        let index = self.list(name, statement, kind, is_ipv6)?;
        if !words.is_done() {
            let entry = text_after(statement.text, name);
            self.lists[index].add_line(statement, entry, self.dialect)?;
        }
        Ok(Some(SectionContent::List(index)))
    }

    /// Reads an entry of a list with a number, such as `access-list 101 permit ip any any`.
    fn read_numbered(
        &mut self,
        statement: Statement<'t>,
        mut words: Words<'t>,
        is_removed: bool,
    ) -> Result<(), Fault<'t>> {
        words.take();
        let name = words.require("the number of the list")?;
        if !names::is_number(name) {
            return match name {
                "compiled" | "dynamic-extended" => Ok(()),
                "rate-limit" => Err(Fault::unsupported(
                    name,
                    "an access list of the kind `rate-limit`",
                    "lists of IP",
                )),
                _ => Err(Fault::new(
                    name,
                    format!("the unknown number {} of a list", quoted(name)),
                    "the number of a list of IP: 1 to 199 or 1300 to 2699",
                )),
            };
        }
        let kind = match name.parse() {
            Ok(1_u32..=99 | 1300..=1999) => ListKind::Standard,
            Ok(100..=199 | 2000..=2699) => ListKind::Extended,
            _ => {
                return Err(Fault::unsupported(
                    name,
                    "a number of access lists of other protocols than IP",
                    "the number of a list of IP: 1 to 199 or 1300 to 2699",
                ));
            }
        };
        if is_removed {
            if let Some(word) = words.peek() {
                return Err(Fault::unsupported(
                    word,
                    "an entry after `no access-list`, which removes the whole list",
                    "`no access-list` and the number only",
                ));
            }
            self.index.remove(&(false, name));
            return Ok(());
        }
        if words.is_done() {
            return Err(words.missing("`permit`, `deny` or `remark`"));
        }
        let index = self.list(name, statement, kind, false)?;
        let entry = text_after(statement.text, name);
        self.lists[index].add_line(statement, entry, self.dialect)
    }

    /// Reads a statement `access-list` of ASA.
    fn read_asa_list(
        &mut self,
        statement: Statement<'t>,
        mut words: Words<'t>,
        is_removed: bool,
    ) -> Result<(), Fault<'t>> {
        words.take();
        let name = words.require("the name of the list")?;
        let is_headline = name.ends_with(';') || statement.text.contains("name hash:");
        let is_setting = matches!(name, "alert-interval" | "cached" | "deny-flow-max" | "mode");
        if is_headline || is_setting {
            return Ok(());
        }
        if is_removed && words.is_done() {
            self.index.remove(&(false, name));
            return Ok(());
        }
        let line = asa::read_line(text_after(statement.text, name))?;
        let kind = match (line.kind, self.index.get(&(false, name))) {
            (Some(kind), _) => kind,
            (None, Some(&index)) => self.lists[index].kind,
            (None, None) => ListKind::Extended,
        };
        let index = self.list(name, statement, kind, false)?;
        if is_removed {
            return self.remove_asa_line(index, statement, &line);
        }
        let is_expansion = statement.line.starts_with([' ', '\t']);
        self.lists[index].add_asa_line(statement, line, is_expansion)
    }

    fn remove_asa_line(
        &mut self,
        index: usize,
        statement: Statement<'t>,
        line: &asa::AsaLine<'t>,
    ) -> Result<(), Fault<'t>> {
        match self.lists[index].remove_asa_line(line)? {
            true => Ok(()),
            false => Err(Fault::new(
                statement.text,
                "no entry of the list is the same",
                "an entry of the list",
            )),
        }
    }
}

impl Section {
    /// True if a line without indentation starts like a line of the section.
    fn has_member(&self, text: &str) -> bool {
        let mut words = text.split_ascii_whitespace();
        let mut first = words.next().unwrap_or("");
        if first == "no" {
            first = words.next().unwrap_or("");
        }
        let is_numbered = names::is_number(first);
        match self.content {
            SectionContent::Group(_) => {
                let is_address = first.starts_with(|c: char| c.is_ascii_digit());
                let starts = ["host", "eq", "gt", "lt", "neq", "range", "subnet", "fqdn"];
                is_address || first.ends_with("-object") || starts.contains(&first)
            }
            SectionContent::List(_) | SectionContent::Other => {
                let keyword = match is_numbered || first == "sequence" {
                    true => words.next().unwrap_or(""),
                    false => first,
                };
                matches!(
                    keyword,
                    "permit" | "deny" | "remark" | "evaluate" | "statistics"
                ) || (first == "sequence" && names::is_number(keyword))
            }
        }
    }
}

/// Returns the character that ends a banner, if a statement starts a banner that goes on in
/// the next lines. Banners of ASA have one line for each statement.
fn banner_delimiter(text: &str, dialect: Dialect) -> Option<&str> {
    let words: Vec<&str> = text.split_ascii_whitespace().take(3).collect();
    let ["banner", kind, start] = words[..] else {
        return None;
    };
    if dialect == Dialect::Asa {
        return None;
    }
    let banner = text_after(text, kind);
    let delimiter = match start.starts_with("^C") {
        true => "^C",
        false => &start[..start.chars().next()?.len_utf8()],
    };
    let is_open = !banner[delimiter.len()..].contains(delimiter);
    is_open.then_some(delimiter)
}
