//! Collects the rules of a configuration.

use std::collections::{HashMap, HashSet};

use classyard::policy::PartId;
use classyard::{Policy, Priority, RuleId};
use classyard_text::{Fault, Problems};
use classyard_workload::diagnostic::{ReadError, ReadOptions};

use crate::config::{Conditions, Config, SourceRule};
use crate::host_bits::{MemberWithHostBits, host_bits};
use crate::packets::{Families, Field, PacketSet, Values, name_value};

/// The maximum number of characters of a statement that is kept.
const TEXT_CHARACTERS: usize = 200;

/// The action of rules that let packets pass.
pub(crate) const PERMIT: &str = "permit";
/// The action of rules that drop packets.
pub(crate) const DENY: &str = "deny";
/// The action of rules that drop packets and send an error to their sender.
pub(crate) const REJECT: &str = "reject";

/// A statement in a [`Builder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceId(u32);

/// The rules of a configuration while it is read, the first rule first.
#[derive(Debug)]
pub(crate) struct Builder<'a> {
    file: &'a str,
    options: &'a ReadOptions,
    conditions: &'a mut Conditions,
    /// Statements that may match differently each time they are examined are told apart by
    /// their number among equal texts.
    stateful: HashMap<String, usize>,
    sources: Vec<SourceRule>,
    entries: Vec<Entry>,
    rules: usize,
    lists: Vec<String>,
    /// The names of lists, by their values.
    list_names: HashMap<u128, String>,
    problems: Problems,
    notes: Vec<String>,
    members_with_host_bits: Vec<MemberWithHostBits>,
}

#[derive(Debug)]
struct Entry {
    source: SourceId,
    packets: PacketSet,
    action: String,
}

impl<'a> Builder<'a> {
    /// Returns a builder without rules for the file with this name.
    pub(crate) fn new(
        file: &'a str,
        options: &'a ReadOptions,
        conditions: &'a mut Conditions,
    ) -> Builder<'a> {
        Builder {
            file,
            options,
            conditions,
            stateful: HashMap::new(),
            sources: Vec::new(),
            entries: Vec::new(),
            rules: 0,
            lists: Vec::new(),
            list_names: HashMap::new(),
            problems: Problems::new(file),
            notes: Vec::new(),
            members_with_host_bits: Vec::new(),
        }
    }

    /// Adds a statement. `line` counts from 1; `text` is the whole line, and `statement` a
    /// slice of it.
    pub(crate) fn source(
        &mut self,
        line: usize,
        text: &str,
        statement: &str,
        list: &str,
    ) -> SourceId {
        self.source_at(line, column_of(statement, text), statement, list)
    }

    /// Adds a statement at a line and column, both counted from 1.
    pub(crate) fn source_at(
        &mut self,
        line: usize,
        column: usize,
        statement: &str,
        list: &str,
    ) -> SourceId {
        self.sources.push(SourceRule {
            line: number(line),
            column: number(column),
            text: shortened(statement),
            list: list.to_owned(),
            comment: None,
            hits: None,
            is_implied: false,
            is_default: false,
            conditions: Vec::new(),
        });
        SourceId(number(self.sources.len() - 1))
    }

    /// Adds a member of a named group of addresses if it has a network with bits outside of the
    /// prefix. Line and column count from 1.
    pub(crate) fn member_at(&mut self, (line, column): (usize, usize), member: &str, group: &str) {
        let networks = host_bits(member);
        if networks.is_empty() {
            return;
        }
        self.members_with_host_bits.push(MemberWithHostBits {
            line: number(line),
            column: number(column),
            text: shortened(member),
            group: group.to_owned(),
            networks,
        });
    }

    /// Like [`member_at`](Self::member_at). `text` is the whole line, and `member` a slice of
    /// it.
    pub(crate) fn member(&mut self, line: usize, text: &str, member: &str, group: &str) {
        self.member_at((line, column_of(member, text)), member, group);
    }

    /// Returns a statement, to add a comment or counters.
    pub(crate) fn source_mut(&mut self, id: SourceId) -> &mut SourceRule {
        &mut self.sources[id.0 as usize]
    }

    /// Returns the packets for which a condition holds that no field can express, and records
    /// it with its statement. The condition depends on the packet only, so equal texts are
    /// one condition.
    pub(crate) fn condition<'t>(
        &mut self,
        source: SourceId,
        text: &'t str,
    ) -> Result<PacketSet, Fault<'t>> {
        self.condition_named(source, text, text)
    }

    /// Like [`condition`](Self::condition), for a condition that depends on more than the
    /// packet, such as a rate or a random number: each statement has its own.
    pub(crate) fn stateful_condition<'t>(
        &mut self,
        source: SourceId,
        text: &'t str,
    ) -> Result<PacketSet, Fault<'t>> {
        let count = self.stateful.entry(text.to_owned()).or_insert(0);
        *count += 1;
        let name = format!("{text} (number {count})");
        self.condition_named(source, text, &name)
    }

    fn condition_named<'t>(
        &mut self,
        source: SourceId,
        text: &'t str,
        name: &str,
    ) -> Result<PacketSet, Fault<'t>> {
        let Some(bit) = self.conditions.bit(name) else {
            return Err(Fault::new(
                text,
                format!(
                    "more than {} different conditions that are not modelled",
                    Conditions::MAX
                ),
                "a file with fewer of them",
            ));
        };
        self.source_mut(source).conditions.push(text.to_owned());
        let bit = 1 << bit;
        Ok(PacketSet::of(Field::Condition, [Values::bits(bit, bit)]))
    }

    /// Returns the packets that a list examines.
    pub(crate) fn list<'t>(&mut self, name: &'t str) -> Result<PacketSet, Fault<'t>> {
        let values = name_value(name);
        if let Values::Bits { value, .. } = values {
            let other = self.list_names.entry(value).or_insert_with(|| {
                self.lists.push(name.to_owned());
                name.to_owned()
            });
            if other != name {
                return Err(Fault::new(
                    name,
                    format!("the names `{name}` and `{other}` have the same short form"),
                    "another name for one of the lists",
                ));
            }
        }
        Ok(PacketSet::of(Field::List, [values]))
    }

    /// Adds rules with an action, after all rules that were added before. A statement may
    /// have several sets of packets, also with rules of other statements between them.
    ///
    /// # Errors
    /// [`ReadError::Limit`] if there are more rules than the options allow.
    pub(crate) fn add(
        &mut self,
        source: SourceId,
        packets: PacketSet,
        action: &str,
    ) -> Result<(), ReadError> {
        self.rules += packets.boxes().len();
        let limit = self.options.config_limit;
        if self.rules > limit {
            return Err(ReadError::Limit {
                file: self.file.to_owned(),
                line: self.sources[source.0 as usize].line as usize,
                limit,
                what: "rules",
            });
        }
        self.entries.push(Entry {
            source,
            packets,
            action: action.to_owned(),
        });
        Ok(())
    }

    /// Records a problem with a part of a line.
    pub(crate) fn problem(&mut self, fault: Fault<'_>, line: usize, text: &str) {
        self.problems.push_fault(fault, line, text);
    }

    /// Adds a sentence about content that was left out or assumed.
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Returns the rules.
    ///
    /// # Errors
    /// [`ReadError::Bad`] if there are problems and bad statements must not be skipped.
    pub(crate) fn finish(mut self) -> Result<Config, ReadError> {
        // Groups that share a member by inheritance have it at one place of the file.
        let place = |member: &MemberWithHostBits| (member.line, member.column);
        self.members_with_host_bits.sort_by_key(place);
        self.members_with_host_bits
            .dedup_by_key(|member| place(member));
        let mut policy = Policy::acl();
        let mut source_of_rule = Vec::with_capacity(self.rules);
        let mut used = HashSet::new();
        for Entry {
            source,
            packets,
            action,
        } in &self.entries
        {
            let action = policy.declare_action(action);
            for packets in packets.boxes() {
                let number = source_of_rule.len();
                let rank = u32::try_from(self.rules - number).expect("fewer rules than ids");
                let matches = Families::EACH.map(|(_, bits)| packets.matches(bits));
                let parts = [0, 1].map(PartId::from_index);
                let forms = parts.into_iter().zip(&matches).zip(Families::EACH);
                let forms = forms.filter(|(_, (family, _))| packets.families().has(*family));
                let forms: Vec<_> = forms
                    .map(|((part, matches), _)| (part, &matches[..]))
                    .collect();
                let added = policy.add(RuleId::from_index(number), Priority(rank), action, &forms);
                added.expect("matches of the schemas' fields");
                source_of_rule.push(source.0);
                used.insert(source.0);
            }
        }
        let good = used.len();
        let loaded = self
            .options
            .finish(self.problems.with_good_lines(good), ())?;
        Ok(Config {
            policy,
            sources: self.sources,
            source_of_rule,
            skipped: loaded.skipped,
            notes: self.notes,
            lists: self.lists,
            members_with_host_bits: self.members_with_host_bits,
        })
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the text of a statement that is kept.
fn shortened(statement: &str) -> String {
    statement.trim().chars().take(TEXT_CHARACTERS).collect()
}

/// Returns the column, from 1, of a slice of a line.
fn column_of(part: &str, line: &str) -> usize {
    let offset = (part.as_ptr() as usize).wrapping_sub(line.as_ptr() as usize);
    line.get(..offset).unwrap_or("").chars().count() + 1
}
