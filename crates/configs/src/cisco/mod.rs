//! Access lists of Cisco's systems: IOS and IOS-XE, NX-OS, IOS XR, ASA.
//!
//! A text may be a whole `show running-config`, a part of it, or `show access-lists`. Lists,
//! object groups, objects, names and bindings are read; other statements are ignored, but no
//! line of a list is.
//!
//! | module | has |
//! |---|---|
//! | `detect` | the system of a text |
//! | `document` | the lists, groups and bindings of a text |
//! | `list` | the entries of a list in their order |
//! | `group` | object groups and objects |
//! | `router`, `options` | entries of IOS, NX-OS and IOS XR |
//! | `asa` | entries of ASA |
//! | `selector` | the packets of an entry |
//! | `address`, `service`, `names` | addresses, ports, ICMP messages and their names |
//! | `binding` | notes about interfaces |
//!
//! # Semantics
//!
//! The first entry that matches decides. A list ends with an implied `deny ip any any`, and
//! lists of IPv6 of routers permit neighbour discovery before it. Each list has its own
//! packets, by the field `list`.
//!
//! | construct | packets |
//! |---|---|
//! | `established` | TCP packets with ACK or RST |
//! | `fragments` | later fragments |
//! | an entry with ports, ICMP messages or TCP flags | whole packets and first fragments; with `permit` in an IPv4 list of a router also later fragments whose addresses and protocol match |
//! | `dscp`, `ttl`, `time-range`, `fqdn`, users, the address of an interface | a condition |
//! | `inactive` | none, with a note |
//!
//! The treatment of fragments is documented for IOS, NX-OS and IOS XR with IPv4. In lists of
//! IPv6 and of ASA, an entry with ports never matches a later fragment. ASA reassembles
//! packets before a list examines them, so it examines no later fragments.
//!
//! Standard lists examine the source; standard lists of ASA examine the destination. Sequence numbers
//! order the entries of routers; `line` inserts entries of ASA. `no` removes an entry.
//!
//! Without effect here: `log`, `capture`, `counter`, `statistics`, `icmp-off`, `nat` in
//! objects. Faults with a stable name: `reflect`, `evaluate`, dynamic entries, `nexthop`,
//! `set`, `police`, `redirect`, `udf`, `tcp-flags-mask`, `ignore routable`, several TCP flags
//! without `match-any` or `match-all`, lists of other protocols than IP, and the kinds
//! `webtype`, `ethertype`, `advanced`, `role-based`. A list without entries has no rules.

use classyard_text::Fault;
use classyard_text::line::counted_verb;
use classyard_workload::diagnostic::ReadError;

use crate::builder::{Builder, DENY, PERMIT};
use crate::packets::{Families, PacketSet};

mod address;
mod asa;
mod binding;
mod detect;
mod document;
mod group;
mod list;
mod names;
mod options;
mod router;
mod selector;
mod service;
mod words;

use document::Document;
use group::Groups;
use list::{Content, Entry, List, ListKind};
use selector::{EntryContext, Selector, later_fragments};
use words::{Statement, Words};

/// The maximum number of entries or members that `no` removes, or that are inserted before
/// others, in each list or file. Each takes time that grows with the list.
const MAX_REMOVALS: usize = 1000;

/// A system whose configurations are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// IOS and IOS-XE.
    Ios,
    /// NX-OS.
    NxOs,
    /// IOS XR.
    Xr,
    /// ASA.
    Asa,
}

/// True if a text is a configuration of the system.
pub(crate) fn is_format(text: &str, dialect: Dialect) -> bool {
    detect::dialect(text) == Some(dialect)
}

/// Reads the access lists of a configuration.
///
/// # Errors
/// [`ReadError::Limit`] if there are more rules than the builder's options allow.
pub(crate) fn read(
    text: &str,
    dialect: Dialect,
    builder: &mut Builder<'_>,
) -> Result<(), ReadError> {
    let mut document = Document::read(text, dialect);
    let lists = document.take_lists();
    let mut reader = ListReader {
        dialect,
        groups: &document.groups,
        builder,
        problems: std::mem::take(&mut document.problems),
        inactive_entries: 0,
        empty_lists: Vec::new(),
    };
    for list in &lists {
        reader.add_list(list)?;
    }
    reader.finish();
    document.groups.note_host_bits(builder);
    document.bindings.note(&lists, dialect, builder);
    if document.mac_lists > 0 {
        let lists = counted_verb(document.mac_lists, "access list", "is", "are");
        builder.note(format!("{lists} for MAC addresses and left out"));
    }
    Ok(())
}

/// Adds the rules of lists.
struct ListReader<'a, 'b, 't> {
    dialect: Dialect,
    groups: &'a Groups<'t>,
    builder: &'a mut Builder<'b>,
    problems: Vec<(Fault<'t>, usize, &'t str)>,
    inactive_entries: usize,
    empty_lists: Vec<&'t str>,
}

impl<'t> ListReader<'_, '_, 't> {
    fn add_list(&mut self, list: &List<'t>) -> Result<(), ReadError> {
        if !list.has_entries {
            self.empty_lists.push(list.name);
            return Ok(());
        }
        let families = PacketSet::of_families(list.families);
        let packets = match self.builder.list(list.name) {
            // The intersection of two boxes is one box.
            Ok(packets) => packets.intersect(&families).unwrap_or(packets),
            Err(fault) => {
                self.add_problem(fault, list.header);
                return Ok(());
            }
        };
        let mut remarks: Vec<&str> = Vec::new();
        for item in &list.items {
            match &item.content {
                Content::Remark(remark) => remarks.push(remark),
                Content::Entry(entry) => {
                    self.add_entry(list, &packets, item.statement, (entry, &remarks))?;
                    remarks.clear();
                }
            }
        }
        self.add_end(list, &packets)
    }

    fn add_problem(&mut self, fault: Fault<'t>, statement: Statement<'t>) {
        self.problems
            .push((fault, statement.number, statement.line));
    }

    /// Adds an entry with the remarks before it.
    fn add_entry(
        &mut self,
        list: &List<'t>,
        list_packets: &PacketSet,
        statement: Statement<'t>,
        (entry, remarks): (&Entry<'t>, &[&str]),
    ) -> Result<(), ReadError> {
        let selector = match self.read_entry(list, entry) {
            Ok(selector) if selector.is_inactive => {
                self.inactive_entries += 1;
                return Ok(());
            }
            Ok(selector) => selector,
            Err(fault) => {
                self.add_problem(fault, statement);
                return Ok(());
            }
        };
        let source =
            self.builder
                .source(statement.number, statement.line, statement.text, list.name);
        let source_rule = self.builder.source_mut(source);
        source_rule.hits = entry.hits;
        source_rule.comment = (!remarks.is_empty()).then(|| remarks.join(" "));
        let mut context = EntryContext {
            permits_later_fragments: entry.permits && self.permits_later_fragments(list),
            builder: self.builder,
            source,
            statement,
            list_packets,
        };
        match context.packets(&selector) {
            Ok(packets) => self.builder.add(source, packets, action(entry.permits)),
            Err(fault) => {
                self.add_problem(fault, statement);
                Ok(())
            }
        }
    }

    /// True if entries with ports that permit also permit later fragments.
    fn permits_later_fragments(&self, list: &List<'t>) -> bool {
        self.dialect != Dialect::Asa && list.families == Families::IPV4
    }

    fn read_entry(&self, list: &List<'t>, entry: &Entry<'t>) -> Result<Selector<'t>, Fault<'t>> {
        let mut words = entry.words.clone();
        let (groups, dialect) = (self.groups, self.dialect);
        match (list.kind, dialect) {
            (ListKind::Standard, Dialect::Asa) => asa::read_standard(&mut words, groups),
            (ListKind::Extended, Dialect::Asa) => asa::read_extended(&mut words, groups),
            (ListKind::Standard, _) => router::read_standard(&mut words, groups, dialect),
            (ListKind::Extended, _) => {
                router::read_extended(&mut words, list.families, groups, dialect)
            }
        }
    }

    /// Adds the rules at the end of a list.
    fn add_end(&mut self, list: &List<'t>, packets: &PacketSet) -> Result<(), ReadError> {
        if let Some((statement, permits)) = list.fragments {
            let source =
                self.builder
                    .source(statement.number, statement.line, statement.text, list.name);
            let fragments = packets.intersect(&later_fragments());
            let fragments = fragments.unwrap_or_else(|_| PacketSet::none());
            self.builder.add(source, fragments, action(permits))?;
        }
        for text in self.implied_permits(list) {
            let tail = &text["permit ".len()..];
            let mut words = Words::new(tail);
            let selector =
                router::read_extended(&mut words, list.families, self.groups, self.dialect);
            let source = self.implied_source(list, text);
            let mut context = EntryContext {
                builder: self.builder,
                source,
                statement: list.header,
                list_packets: packets,
                permits_later_fragments: false,
            };
            let permitted = selector.and_then(|selector| context.packets(&selector));
            let permitted = permitted.unwrap_or_else(|_| PacketSet::none());
            self.builder.add(source, permitted, PERMIT)?;
        }
        let text = match (list.kind, list.families == Families::IPV6) {
            (ListKind::Standard, _) => "deny any",
            (ListKind::Extended, true) => "deny ipv6 any any",
            (ListKind::Extended, false) if self.dialect == Dialect::Xr => "deny ipv4 any any",
            (ListKind::Extended, false) => "deny ip any any",
        };
        let source = self.implied_source(list, text);
        self.builder.add(source, packets.clone(), DENY)
    }

    /// Returns the entries that routers add to lists of IPv6, for neighbour discovery.
    fn implied_permits(&self, list: &List<'t>) -> &'static [&'static str] {
        const NEIGHBOURS: [&str; 4] = [
            "permit icmp any any nd-na",
            "permit icmp any any nd-ns",
            "permit icmp any any router-advertisement",
            "permit icmp any any router-solicitation",
        ];
        match (list.families == Families::IPV6, self.dialect) {
            (false, _) | (_, Dialect::Asa) => &[],
            (true, Dialect::NxOs) => &NEIGHBOURS,
            (true, Dialect::Ios | Dialect::Xr) => &NEIGHBOURS[..2],
        }
    }

    fn implied_source(&mut self, list: &List<'t>, text: &str) -> crate::builder::SourceId {
        let source = self
            .builder
            .source_at(list.header.number, 1, text, list.name);
        self.builder.source_mut(source).is_implied = true;
        source
    }

    /// Records the problems in the order of the file, and adds notes about entries and lists
    /// that were left out.
    fn finish(&mut self) {
        self.problems.sort_by_key(|(_, number, _)| *number);
        for (fault, number, line) in self.problems.drain(..) {
            self.builder.problem(fault, number, line);
        }
        match self.inactive_entries {
            0 => {}
            1 => self
                .builder
                .note("1 entry is `inactive` and not applied".to_owned()),
            count => self
                .builder
                .note(format!("{count} entries are `inactive` and not applied")),
        }
        if !self.empty_lists.is_empty() {
            let lists = counted_verb(self.empty_lists.len(), "access list", "has", "have");
            self.builder.note(format!(
                "{lists} no entries and no rules here, as devices differ in their treatment of \
                 empty lists: {}",
                binding::listed(&self.empty_lists)
            ));
        }
    }
}

fn action(permits: bool) -> &'static str {
    match permits {
        true => PERMIT,
        false => DENY,
    }
}
