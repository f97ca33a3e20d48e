//! Lists: their entries and remarks, in order.

use std::collections::HashMap;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::words::{Statement, Words, split_hits, text_after};
use super::{Dialect, MAX_REMOVALS, names};
use crate::packets::Families;

/// The difference between the numbers of entries that have none.
const NUMBER_STEP: u64 = 10;

/// The addresses and options that entries of a list have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListKind {
    /// Entries have one address.
    Standard,
    Extended,
}

/// An entry or a remark.
#[derive(Debug)]
pub(super) struct Item<'t> {
    /// The sequence number, or the position for ASA.
    pub(super) number: u64,
    pub(super) statement: Statement<'t>,
    pub(super) content: Content<'t>,
}

#[derive(Debug)]
pub(super) enum Content<'t> {
    Remark(&'t str),
    Entry(Entry<'t>),
}

/// An entry that is not read yet, as it may use groups that are defined later.
#[derive(Debug)]
pub(super) struct Entry<'t> {
    pub(super) permits: bool,
    /// The words after `permit` or `deny`.
    pub(super) words: Words<'t>,
    /// The number of packets that matched.
    pub(super) hits: Option<u64>,
}

/// A list.
#[derive(Debug)]
pub(super) struct List<'t> {
    pub(super) name: &'t str,
    /// The statement that defines the list first.
    pub(super) header: Statement<'t>,
    pub(super) kind: ListKind,
    pub(super) families: Families,
    pub(super) items: Vec<Item<'t>>,
    /// The statement `fragments permit-all` or `fragments deny-all` of NX-OS, and true if it
    /// permits.
    pub(super) fragments: Option<(Statement<'t>, bool)>,
    /// True if there is an entry, which may be faulty.
    pub(super) has_entries: bool,
    /// The lines of entries, by their numbers.
    lines_by_number: HashMap<u64, usize>,
    last_number: u64,
    /// Remarks without a number, which belong to the next entry.
    pending_remarks: Vec<Item<'t>>,
    /// The number of entries that were removed, or inserted before others.
    changes: usize,
}

impl<'t> List<'t> {
    pub(super) fn new(
        name: &'t str,
        header: Statement<'t>,
        kind: ListKind,
        families: Families,
    ) -> List<'t> {
        List {
            name,
            header,
            kind,
            families,
            items: Vec::new(),
            fragments: None,
            has_entries: false,
            lines_by_number: HashMap::new(),
            last_number: 0,
            pending_remarks: Vec::new(),
            changes: 0,
        }
    }

    /// Reads a line of a list of IOS, NX-OS or IOS XR. `text` is the part of the statement
    /// that is in the list.
    pub(super) fn add_line(
        &mut self,
        statement: Statement<'t>,
        text: &'t str,
        dialect: Dialect,
    ) -> Result<(), Fault<'t>> {
        let mut words = Words::new(text);
        let number = read_number(&mut words)?;
        let Some(keyword) = words.take() else {
            return Err(words.missing("`permit`, `deny` or `remark`"));
        };
        match keyword {
            "permit" | "deny" => {
                self.has_entries = true;
                self.add_entry(statement, text, keyword)
            }
            "remark" => {
                self.add_remark(statement, text_after(text, keyword), number, dialect);
                Ok(())
            }
            "no" => self.remove(text, text_after(text, keyword)),
            "statistics" => Ok(()),
            "fragments" if dialect == Dialect::NxOs => self.set_fragments(statement, &mut words),
            "dynamic" | "evaluate" | "ignore" => Err(Fault::unsupported(
                keyword,
                format!("the statement `{keyword}` in an access list"),
                "a list without it",
            )),
            _ => Err(Fault::new(
                keyword,
                format!(
                    "the unknown statement {} in an access list",
                    quoted(keyword)
                ),
                "`permit`, `deny` or `remark`",
            )),
        }
    }

    fn add_entry(
        &mut self,
        statement: Statement<'t>,
        text: &'t str,
        keyword: &'t str,
    ) -> Result<(), Fault<'t>> {
        let (mut all_words, hits) = split_hits(text)?;
        // `show` prints the numbers of IPv6 entries after them.
        let mut number_after = None;
        if let [first_word, .., "sequence", number] = all_words[..]
            && number.parse::<u64>().is_ok()
            && first_word != "sequence"
        {
            number_after = Some(number);
            all_words.truncate(all_words.len() - 2);
        }
        let mut words = Words::of(text, all_words);
        let number = match number_after {
            Some(number) => number.parse().ok(),
            None => read_number(&mut words)?,
        };
        words.take();
        let number = number.unwrap_or(self.last_number.saturating_add(NUMBER_STEP));
        if let Some(line) = self.lines_by_number.insert(number, statement.number) {
            self.lines_by_number.insert(number, line);
            return Err(Fault::new(
                text,
                format!("line {line} has the number {number} too"),
                "another number, or `no` and the number before the entry",
            ));
        }
        self.last_number = self.last_number.max(number);
        let remarks = self.pending_remarks.drain(..);
        self.items
            .extend(remarks.map(|remark| Item { number, ..remark }));
        self.items.push(Item {
            number,
            statement,
            content: Content::Entry(Entry {
                permits: keyword == "permit",
                words,
                hits,
            }),
        });
        Ok(())
    }

    fn add_remark(
        &mut self,
        statement: Statement<'t>,
        remark: &'t str,
        number: Option<u64>,
        dialect: Dialect,
    ) {
        let number = match (number, dialect) {
            (None, Dialect::NxOs | Dialect::Xr) => {
                Some(self.last_number.saturating_add(NUMBER_STEP))
            }
            (number, _) => number,
        };
        let item = |number| Item {
            number,
            statement,
            content: Content::Remark(remark),
        };
        match number {
            None => self.pending_remarks.push(item(0)),
            Some(number) => {
                if dialect != Dialect::Ios {
                    self.last_number = self.last_number.max(number);
                }
                self.items.push(item(number));
            }
        }
    }

    fn set_fragments(
        &mut self,
        statement: Statement<'t>,
        words: &mut Words<'t>,
    ) -> Result<(), Fault<'t>> {
        const EXPECTED: &str = "`permit-all` or `deny-all`";
        let permits = match words.require(EXPECTED)? {
            "permit-all" => true,
            "deny-all" => false,
            word => {
                let found = format!("the unknown word {}", quoted(word));
                return Err(Fault::new(word, found, EXPECTED));
            }
        };
        words.require_end()?;
        self.fragments = Some((statement, permits));
        Ok(())
    }

    /// Counts a removal, or an insertion before others. `text` is at fault if there are too
    /// many.
    pub(super) fn count_removal(&mut self, text: &'t str) -> Result<(), Fault<'t>> {
        self.changes += 1;
        match self.changes > MAX_REMOVALS {
            true => Err(Fault::new(
                text,
                format!("more than {MAX_REMOVALS} changes of a list by `no` or `line`"),
                "the configuration after the changes",
            )),
            false => Ok(()),
        }
    }

    /// Removes the entry or the remark that `no` names by its number or its text.
    fn remove(&mut self, text: &'t str, removed: &'t str) -> Result<(), Fault<'t>> {
        self.count_removal(text)?;
        let mut words = Words::new(removed);
        let number = read_number(&mut words)?;
        let wanted: Vec<&str> = words.unread().to_vec();
        if wanted.first() == Some(&"fragments") {
            self.fragments = None;
            return Ok(());
        }
        if wanted.first() == Some(&"statistics") {
            return Ok(());
        }
        let is_removed = |item: &Item<'t>| match number {
            Some(number) => item.number == number,
            None => has_words(item, &wanted),
        };
        let count = self.items.len() + self.pending_remarks.len();
        self.pending_remarks.retain(|item| !is_removed(item));
        self.items.retain(|item| !is_removed(item));
        if self.items.len() + self.pending_remarks.len() == count {
            return Err(Fault::new(
                text,
                "no entry of the list is the same",
                "an entry of the list, or its number",
            ));
        }
        self.lines_by_number = self.entries().collect();
        Ok(())
    }

    /// Returns the numbers and lines of the entries.
    fn entries(&self) -> impl Iterator<Item = (u64, usize)> {
        let entries = self.items.iter();
        let entries = entries.filter(|item| matches!(item.content, Content::Entry(_)));
        entries.map(|item| (item.number, item.statement.number))
    }

    /// Sorts the items by their numbers.
    pub(super) fn sort(&mut self) {
        self.items.sort_by_key(|item| item.number);
    }
}

/// Returns the number before an entry: `10` or `sequence 10`.
fn read_number<'t>(words: &mut Words<'t>) -> Result<Option<u64>, Fault<'t>> {
    words.take_word("sequence");
    let Some(word) = words.peek().filter(|word| names::is_number(word)) else {
        return Ok(None);
    };
    words.take();
    match word.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Fault::new(
            word,
            "a sequence number that is too large",
            "a number below 2^64",
        )),
    }
}

/// True if an item has these words after its number.
fn has_words(item: &Item<'_>, wanted: &[&str]) -> bool {
    match (&item.content, wanted) {
        (Content::Remark(remark), ["remark", wanted @ ..]) => {
            wanted.is_empty() || remark.split_ascii_whitespace().eq(wanted.iter().copied())
        }
        (Content::Entry(entry), [action @ ("permit" | "deny"), wanted @ ..]) => {
            entry.permits == (*action == "permit") && entry.words.unread() == wanted
        }
        _ => false,
    }
}
