//! Entries of ASA: `access-list NAME extended permit tcp any host 10.0.0.1 eq 443`.

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::address::{Addresses, Condition};
use super::group::{GroupClass, Groups};
use super::list::{Content, Entry, Item, List, ListKind};
use super::selector::{Selector, read_address};
use super::service::{self, Ports, Service, read_ports, unknown_protocol};
use super::words::{Statement, Words, split_hits, text_after};
use super::{Dialect, names};
use crate::packets::Families;

/// A statement `access-list`, after the list's name.
#[derive(Debug)]
pub(super) struct AsaLine<'t> {
    /// The position in the list, counted from 1.
    position: Option<u64>,
    /// `None` for a remark.
    pub(super) kind: Option<ListKind>,
    content: Content<'t>,
}

/// Reads a statement after the list's name.
pub(super) fn read_line(text: &str) -> Result<AsaLine<'_>, Fault<'_>> {
    let mut words = Words::new(text);
    let mut position = None;
    if words.take_word("line") {
        const EXPECTED: &str = "the position of the entry, from 1";
        let word = words.require(EXPECTED)?;
        let number = word.parse().ok().filter(|number| *number > 0);
        let fault = || Fault::new(word, format!("the position {}", quoted(word)), EXPECTED);
        position = Some(number.ok_or_else(fault)?);
    }
    if let Some("remark") = words.peek() {
        let keyword = words.require("`remark`")?;
        return Ok(AsaLine {
            position,
            kind: None,
            content: Content::Remark(text_after(text, keyword)),
        });
    }
    let (kind, permits, action) = read_action(&mut words)?;
    let tail = text_after(text, action);
    let (mut entry_words, hits) = split_hits(tail)?;
    let is_hash = |word: &&str| word.starts_with("0x");
    if hits.is_some() && entry_words.last().is_some_and(is_hash) {
        entry_words.pop();
    }
    Ok(AsaLine {
        position,
        kind: Some(kind),
        content: Content::Entry(Entry {
            permits,
            words: Words::of(tail, entry_words),
            hits,
        }),
    })
}

/// Reads the kind of the list and the action.
fn read_action<'t>(words: &mut Words<'t>) -> Result<(ListKind, bool, &'t str), Fault<'t>> {
    const EXPECTED: &str = "`extended` or `standard`, and `permit` or `deny`";
    let mut kind = ListKind::Extended;
    let mut word = words.require(EXPECTED)?;
    match word {
        "extended" => word = words.require(EXPECTED)?,
        "standard" => {
            kind = ListKind::Standard;
            word = words.require(EXPECTED)?;
        }
        "advanced" | "ethertype" | "webtype" => {
            return Err(Fault::unsupported(
                word,
                format!("an access list of the kind `{word}`"),
                "`extended` or `standard`",
            ));
        }
        _ => {}
    }
    match word {
        "permit" => Ok((kind, true, word)),
        "deny" => Ok((kind, false, word)),
        _ => Err(Fault::new(
            word,
            format!("the unknown word {}", quoted(word)),
            EXPECTED,
        )),
    }
}

impl<'t> List<'t> {
    /// Adds a line at its position. Entries that `show` prints indented replace the entry
    /// with groups before them.
    pub(super) fn add_asa_line(
        &mut self,
        statement: Statement<'t>,
        line: AsaLine<'t>,
        is_expansion: bool,
    ) -> Result<(), Fault<'t>> {
        self.has_entries |= line.kind.is_some();
        let last_number = self.items.last().map_or(0, |item| item.number);
        let next = last_number + 1;
        let mut item = Item {
            number: line.position.unwrap_or(next),
            statement,
            content: line.content,
        };
        if is_expansion && item.number == last_number {
            // The entry that is expanded is not indented.
            let expanded = self.items.last().is_some_and(|before| !is_indented(before));
            if expanded {
                self.items.pop();
            }
            self.items.push(item);
        } else if item.number > last_number {
            // Positions have no gaps in a list.
            item.number = next;
            self.items.push(item);
        } else {
            self.insert(item)?;
        }
        Ok(())
    }

    fn insert(&mut self, item: Item<'t>) -> Result<(), Fault<'t>> {
        self.count_removal(item.statement.text)?;
        let index = self
            .items
            .partition_point(|other| other.number < item.number);
        for other in &mut self.items[index..] {
            other.number += 1;
        }
        self.items.insert(index, item);
        Ok(())
    }

    /// Removes the items that are the same as a line. Returns true if there was one.
    pub(super) fn remove_asa_line(&mut self, line: &AsaLine<'t>) -> Result<bool, Fault<'t>> {
        self.count_removal(self.header.text)?;
        let is_same = |item: &Item<'t>| match (&item.content, &line.content) {
            (Content::Remark(remark), Content::Remark(other)) => remark == other,
            (Content::Entry(entry), Content::Entry(other)) => {
                entry.permits == other.permits && entry.words.unread() == other.words.unread()
            }
            _ => false,
        };
        let count = self.items.len();
        self.items.retain(|item| !is_same(item));
        for (item, number) in self.items.iter_mut().zip(1..) {
            item.number = number;
        }
        Ok(self.items.len() < count)
    }
}

/// True if an item is on an indented line.
fn is_indented(item: &Item<'_>) -> bool {
    item.statement.line.starts_with([' ', '\t'])
}

/// Reads the conditions of an entry of a standard list. They are on the destination.
pub(super) fn read_standard<'t>(
    words: &mut Words<'t>,
    groups: &Groups<'t>,
) -> Result<Selector<'t>, Fault<'t>> {
    let mut selector = Selector::any(Families::IPV4);
    selector.destinations = read_address(words, Families::IPV4, groups, Dialect::Asa)?;
    words.require_end()?;
    Ok(selector)
}

/// Reads the conditions of an entry of an extended list, after `permit` or `deny`.
pub(super) fn read_extended<'t>(
    words: &mut Words<'t>,
    groups: &Groups<'t>,
) -> Result<Selector<'t>, Fault<'t>> {
    let mut selector = Selector::any(Families::BOTH);
    selector.services = read_entry_services(words, groups)?;
    read_identity(words, "source", &mut selector)?;
    selector.sources = read_asa_address(words, groups)?;
    let source_ports = read_entry_ports(words, &selector.services, groups)?;
    read_identity(words, "destination", &mut selector)?;
    selector.destinations = read_asa_address(words, groups)?;
    let destination_ports = read_entry_ports(words, &selector.services, groups)?;
    for service in &mut selector.services {
        service.source_ports = source_ports.clone().or(service.source_ports.take());
        service.destination_ports = destination_ports
            .clone()
            .or(service.destination_ports.take());
    }
    read_icmp(words, groups, &mut selector)?;
    read_options(words, &mut selector)?;
    Ok(selector)
}

fn read_asa_address<'t>(
    words: &mut Words<'t>,
    groups: &Groups<'t>,
) -> Result<Addresses<'t>, Fault<'t>> {
    read_address(words, Families::BOTH, groups, Dialect::Asa)
}

fn read_entry_services<'t>(
    words: &mut Words<'t>,
    groups: &Groups<'t>,
) -> Result<Vec<Service>, Fault<'t>> {
    let word = words.require("a protocol")?;
    let protocol = match word {
        "object" | "object-group" => {
            return groups.services(words.require("the name of a group of services")?);
        }
        "ip" => None,
        _ => Some(names::protocol(word).ok_or_else(|| unknown_protocol(word))?),
    };
    Ok(vec![Service::of_protocol(protocol)])
}

/// Reads users and security groups before or after an address. They are conditions.
fn read_identity<'t>(
    words: &mut Words<'t>,
    direction: &str,
    selector: &mut Selector<'t>,
) -> Result<(), Fault<'t>> {
    while let Some(word) = words.peek() {
        let values = match word {
            "user" | "user-group" | "object-group-user" | "object-group-security" => 1,
            "security-group" => 2,
            _ => return Ok(()),
        };
        words.take();
        let mut text = format!("{direction} {word}");
        for _ in 0..values {
            text.extend([" ", words.require("the name of a user or of a group")?]);
        }
        selector.conditions.push(Condition { text, word });
    }
    Ok(())
}

/// Reads the ports after an address, if there are any and the protocols have ports.
fn read_entry_ports<'t>(
    words: &mut Words<'t>,
    services: &[Service],
    groups: &Groups<'t>,
) -> Result<Option<Ports>, Fault<'t>> {
    let allows_ports =
        |service: &Service| names::has_ports(service.protocol) && !service.has_layer4();
    if !services.iter().all(allows_ports) {
        return Ok(None);
    }
    if let (Some("object-group"), Some(name)) = (words.peek(), words.peek_after(1)) {
        if !groups.has(GroupClass::Port, name) {
            return Ok(None);
        }
        words.take();
        return groups
            .ports(words.require("the name of a group of ports")?)
            .map(Some);
    }
    let protocols: Vec<u8> = services
        .iter()
        .filter_map(|service| service.protocol)
        .collect();
    read_ports(words, &protocols, Dialect::Asa)
}

/// Reads the ICMP message of an entry, if there is one.
fn read_icmp<'t>(
    words: &mut Words<'t>,
    groups: &Groups<'t>,
    selector: &mut Selector<'t>,
) -> Result<(), Fault<'t>> {
    let [service] = &mut selector.services[..] else {
        return Ok(());
    };
    let Some(protocol @ (names::ICMP_NUMBER | names::ICMPV6_NUMBER)) = service.protocol else {
        return Ok(());
    };
    if let (None, Some("object-group"), Some(name)) =
        (&service.icmp, words.peek(), words.peek_after(1))
    {
        if protocol == names::ICMPV6_NUMBER {
            return Err(Fault::unsupported(
                name,
                "a group of ICMP types in an entry for ICMPv6",
                "an entry for each type",
            ));
        }
        words.take();
        words.take();
        service.icmp = Some(groups.icmp(name)?);
    } else if service.icmp.is_none() {
        let message = service::read_icmp(words, protocol)?;
        service.icmp = message.map(|message| vec![message]);
    }
    Ok(())
}

/// The levels of log messages.
const LOG_LEVELS: [&str; 10] = [
    "alerts",
    "critical",
    "debugging",
    "default",
    "disable",
    "emergencies",
    "errors",
    "informational",
    "notifications",
    "warnings",
];

fn read_options<'t>(words: &mut Words<'t>, selector: &mut Selector<'t>) -> Result<(), Fault<'t>> {
    while let Some(word) = words.take() {
        match word {
            "log" => {
                let is_level = |word: &&str| names::is_number(word) || LOG_LEVELS.contains(word);
                if words.peek().filter(is_level).is_some() {
                    words.take();
                }
                if words.take_word("interval") {
                    words.require("a number of seconds")?;
                }
            }
            "inactive" => selector.is_inactive = true,
            "time-range" => {
                let text = format!("time-range {}", words.require("the name of a time range")?);
                selector.conditions.push(Condition { text, word });
            }
            _ => {
                return Err(Fault::new(
                    word,
                    format!("the unknown word {}", quoted(word)),
                    "`log`, `time-range`, `inactive` or the end of the statement",
                ));
            }
        }
    }
    Ok(())
}
