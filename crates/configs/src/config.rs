//! The rules of a configuration, with the statement that each comes from.

use classyard::{FieldMatch, Policy};
use classyard_text::Problems;

use crate::copied::copied;
use crate::host_bits::MemberWithHostBits;
use crate::packets::{Field, Values, name_value};

/// A statement of a configuration that selects packets and decides them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRule {
    /// The line, counted from 1.
    pub line: u32,
    /// The column of the first character, counted from 1.
    pub column: u32,
    /// The statement, cut after 200 characters.
    pub text: String,
    /// The list that the statement is in, as the file names it.
    pub list: String,
    /// The comment or description in the file, if any.
    pub comment: Option<String>,
    /// The number of packets that the statement has counted, if the file has counters.
    pub hits: Option<u64>,
    /// True if the statement is not in the file, for example the deny at the end of a
    /// Cisco access list.
    pub is_implied: bool,
    /// True if the statement is the default action of a list, for example the policy of a
    /// chain. It decides what all other statements leave.
    pub is_default: bool,
    /// The conditions of the statement that no field of the schema can express, as they are
    /// written. If there are any, the statement matches some of its packets only.
    pub conditions: Vec<String>,
}

/// The rules of a configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The rules, over [`Policy::acl`]. A statement may have become several rules, and a
    /// statement that selects no packets none.
    pub policy: Policy,
    /// The statements.
    pub sources: Vec<SourceRule>,
    /// For each rule of the policy, in order, its statement: an index of `sources`.
    pub source_of_rule: Vec<u32>,
    /// The statements that were skipped; empty without
    /// [`skip_bad`](classyard_workload::diagnostic::ReadOptions::skip_bad).
    pub skipped: Problems,
    /// One sentence for each kind of content that was left out or assumed.
    pub notes: Vec<String>,
    /// The lists of rules, in the order of the file. Headers say by the field `list` which of
    /// them examines the packet.
    pub lists: Vec<String>,
    /// The members of named groups of addresses whose networks have bits outside of their
    /// prefix, in the order of the file. Cisco's groups and objects, sets of iptables and
    /// nftables, and prefix lists and address books of Junos are searched.
    pub members_with_host_bits: Vec<MemberWithHostBits>,
}

impl Config {
    /// Returns the statement of the rule at a position of the policy.
    ///
    /// # Panics
    /// If the position is out of range.
    #[must_use]
    pub fn source(&self, position: usize) -> &SourceRule {
        &self.sources[self.source_of_rule[position] as usize]
    }

    /// Returns the rules of one list only, for any value of the field `list`. So lists with
    /// different names can be compared. `None` if there is no such list.
    #[must_use]
    pub fn with_only_list(self, name: &str) -> Option<Config> {
        if !self.lists.iter().any(|list| list == name) {
            return None;
        }
        let Values::Bits { value, .. } = name_value(name) else {
            return None;
        };
        let policy = copied(&self.policy, |part, matches| {
            let list = std::mem::replace(&mut matches[Field::List as usize], FieldMatch::Any);
            let is_selected = matches!(list, FieldMatch::Any) || list == FieldMatch::Exact(value);
            is_selected.then_some(part)
        });
        let rules = self.policy.ids().iter().zip(self.source_of_rule);
        let kept = rules.filter(|(id, _)| policy.position(**id).is_some());
        let source_of_rule = kept.map(|(_, source)| source).collect();
        Some(Config {
            policy,
            source_of_rule,
            lists: vec![name.to_owned()],
            ..self
        })
    }
}

/// Conditions that no field can express, such as `-m limit --limit 5/min`. Each has a bit of
/// the field `condition`, which is set in headers for which the condition holds.
///
/// Two configurations can be compared if they were read with the same `Conditions`: equal
/// conditions have the same bit then.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    texts: Vec<String>,
}

impl Conditions {
    /// The maximum number of different conditions.
    pub const MAX: usize = 128;

    /// Returns the conditions, by their bits. ` (number 1)`, ` (number 2)` follow the
    /// text of conditions that depend on more than the packet.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns the bit of a condition. `None` if there are too many conditions.
    pub(crate) fn bit(&mut self, text: &str) -> Option<usize> {
        if let Some(bit) = self.texts.iter().position(|other| other == text) {
            return Some(bit);
        }
        if self.texts.len() == Self::MAX {
            return None;
        }
        self.texts.push(text.to_owned());
        Some(self.texts.len() - 1)
    }
}
