//! Writes the rules of a policy as the configuration of a firewall.
//!
//! Rules become statements of lists ([`lists`]), and each format writes the statements. If a
//! format cannot express a rule, the error names the rule, and nothing is written.

use std::collections::HashSet;
use std::fmt::Write;

use classyard::{Policy, RuleId};
use thiserror::Error;

use crate::format::ConfigFormat;

mod bundle;
mod cisco;
mod five_tuples;
mod iptables;
mod lists;
mod nftables;
mod statement;
mod words;

pub use five_tuples::as_five_tuples;
use lists::List;
use statement::Statement;

/// A family of IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    const EACH: [Family; 2] = [Family::Ipv4, Family::Ipv6];

    fn address_bits(self) -> u32 {
        match self {
            Family::Ipv4 => 32,
            Family::Ipv6 => 128,
        }
    }

    /// The number of the family's ICMP among the IP protocols.
    fn icmp(self) -> u8 {
        match self {
            Family::Ipv4 => 1,
            Family::Ipv6 => 58,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Family::Ipv4 => "IPv4",
            Family::Ipv6 => "IPv6",
        }
    }
}

/// Settings of [`write()`].
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions<'a> {
    /// The names of the lists, as [`Config::lists`](crate::Config::lists) has them. The field
    /// `list` keeps the start of long names only, and a single list may be a policy without the
    /// field.
    pub lists: &'a [String],
    /// The conditions of the bits of the field `condition`, for messages.
    pub conditions: &'a [String],
    /// The action for packets that no rule matches, in formats where each list has one:
    /// `permit` or `deny`. Not needed if the last rule of each list matches every packet.
    pub default_action: Option<&'a str>,
    /// For each rule, in the order of [`Policy::ids`], a number of the statement that it comes
    /// from. nftables and iptables write neighbouring rules of one statement as one, with sets of
    /// addresses and ports. Without numbers, each rule is a statement of its own.
    pub statement_of_rule: Option<&'a [u32]>,
}

/// A configuration that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// The number of statements, without default actions.
    pub statements: usize,
    /// A sentence for each thing that the configuration says in another way than the rules.
    pub notes: Vec<String>,
}

/// A rule that a format cannot express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule.
    pub rule: RuleId,
    /// What cannot be expressed.
    pub reason: String,
}

/// An error of [`write()`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The format can only be read.
    #[error("rules cannot be written as {0}")]
    Format(ConfigFormat),
    /// The rules have other fields than firewalls.
    #[error("rules of the schema {0} have fields that firewalls do not have")]
    Schema(String),
    /// The policy has no rules.
    #[error("there are no rules to write")]
    Empty,
    /// Rules that the format cannot express: the first 20, and the number of all.
    #[error("{total} rules cannot be written")]
    Rules {
        /// The first rules.
        shown: Vec<Refusal>,
        /// The number of such rules.
        total: usize,
    },
    /// A list without a default action, in a format where each has one.
    #[error(
        "no rule of {list} matches every {family} packet, and {format} needs an action for the others"
    )]
    NoDefault {
        /// The list, or `the rules`.
        list: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
        /// The format.
        format: ConfigFormat,
    },
    /// Lists that have no place in the format.
    #[error("{format} has no place for the list {list} beside others; {expected}")]
    List {
        /// The list.
        list: String,
        /// The format.
        format: ConfigFormat,
        /// The lists that the format has.
        expected: &'static str,
    },
}

/// The maximum number of rules that [`WriteError::Rules`] names.
const MAX_REFUSALS: usize = 20;

/// Writes rules as a configuration. Reading it gives rules with the same action for every
/// packet that a network can have.
///
/// The policy has the fields of firewall rules or of five-tuples. Actions are `permit`
/// (`accept`, `allow`), `deny` (`drop`) and `reject`.
///
/// # Errors
/// [`WriteError`]: the format cannot express the rules. Nothing is left out.
pub fn write(
    policy: &Policy,
    format: ConfigFormat,
    options: &WriteOptions<'_>,
) -> Result<Written, WriteError> {
    let writer: fn(&mut Output<'_>, &[List<'_>]) -> Result<(), WriteError> = match format {
        ConfigFormat::Iptables => iptables::write,
        ConfigFormat::Nftables => nftables::write,
        ConfigFormat::CiscoIos
        | ConfigFormat::CiscoNxos
        | ConfigFormat::CiscoXr
        | ConfigFormat::CiscoAsa => cisco::write,
        _ => return Err(WriteError::Format(format)),
    };
    let mut output = Output {
        format,
        options,
        written: Written {
            text: String::new(),
            statements: 0,
            notes: Vec::new(),
        },
        policy,
        refusals: Vec::new(),
        refused: HashSet::new(),
    };
    let lists = lists::lists(policy, &mut output)?;
    if output.refused.is_empty() {
        writer(&mut output, &lists)?;
    }
    output.finish()
}

/// A configuration while it is written.
struct Output<'a> {
    format: ConfigFormat,
    options: &'a WriteOptions<'a>,
    policy: &'a Policy,
    written: Written,
    refusals: Vec<Refusal>,
    refused: HashSet<RuleId>,
}

impl Output<'_> {
    /// Adds a line.
    fn line(&mut self, line: impl std::fmt::Display) {
        writeln!(self.written.text, "{line}").expect("a string grows");
    }

    /// Adds the line of a statement, or records that the rule cannot be expressed.
    fn statement(&mut self, line: Result<String, Refusal>) {
        match line {
            Ok(line) => {
                self.line(line);
                self.written.statements += 1;
            }
            Err(refusal) => self.refuse(refusal),
        }
    }

    /// Returns the parts of a list of statements that come from one statement of the source, or
    /// are one statement for both families.
    fn of_one_source<'l, 'p>(
        &self,
        statements: &'l [Statement<'p>],
    ) -> impl Iterator<Item = &'l [Statement<'p>]> + use<'l, 'p, '_> {
        let number = |statement: &Statement<'_>| {
            let numbers = self.options.statement_of_rule?;
            numbers.get(self.policy.position(statement.rule)?)
        };
        statements.chunk_by(move |first, second| {
            let is_one_source = number(first).is_some() && number(first) == number(second);
            (is_one_source && first.action == second.action) || second.is_form_of(first)
        })
    }

    /// Records that a rule cannot be expressed. A rule of several statements counts once.
    fn refuse(&mut self, refusal: Refusal) {
        if self.refused.insert(refusal.rule) && self.refusals.len() < MAX_REFUSALS {
            self.refusals.push(refusal);
        }
    }

    /// Adds a sentence about something that is said in another way.
    fn note(&mut self, note: String) {
        if !self.written.notes.contains(&note) {
            self.written.notes.push(note);
        }
    }

    /// Returns the default action of a list for a family that has rules.
    fn default_action<'l>(
        &'l self,
        list: &'l List<'_>,
        family: Family,
    ) -> Result<&'l str, WriteError> {
        let found = list.default_action(family).or(self.options.default_action);
        found.ok_or_else(|| WriteError::NoDefault {
            list: list.shown(),
            family: family.name(),
            format: self.format,
        })
    }

    fn finish(self) -> Result<Written, WriteError> {
        match self.refused.len() {
            0 => Ok(self.written),
            total => Err(WriteError::Rules {
                shown: self.refusals,
                total,
            }),
        }
    }
}
