//! The tree of a ruleset: tables, sets, chains, rules, statements and expressions.
//!
//! Both forms of a ruleset, text and JSON, are read into this tree. Names of values are
//! resolved later, because their meaning depends on the field that they are compared with.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use classyard_text::Fault;

/// A result whose error points to a part of the file.
pub(super) type Parsed<'t, T> = Result<T, Fault<'t>>;

/// The family of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Ip,
    Ip6,
    Inet,
    Arp,
    Bridge,
    Netdev,
}

impl Family {
    /// Returns the family with this keyword.
    pub(super) fn from_keyword(word: &str) -> Option<Family> {
        Some(match word {
            "ip" => Family::Ip,
            "ip6" => Family::Ip6,
            "inet" => Family::Inet,
            "arp" => Family::Arp,
            "bridge" => Family::Bridge,
            "netdev" => Family::Netdev,
            _ => return None,
        })
    }

    /// The keyword.
    pub(super) fn keyword(self) -> &'static str {
        match self {
            Family::Ip => "ip",
            Family::Ip6 => "ip6",
            Family::Inet => "inet",
            Family::Arp => "arp",
            Family::Bridge => "bridge",
            Family::Netdev => "netdev",
        }
    }
}

/// The tables of a file.
#[derive(Debug, Default)]
pub(super) struct Ruleset<'t> {
    pub(super) tables: Vec<Table<'t>>,
    table_indices: HashMap<(Family, String), usize>,
}

impl<'t> Ruleset<'t> {
    /// Returns the table with this name; adds it if it does not exist.
    pub(super) fn table(&mut self, family: Family, name: &str, text: &'t str) -> &mut Table<'t> {
        let tables = &mut self.tables;
        let index = *self
            .table_indices
            .entry((family, name.to_owned()))
            .or_insert_with(|| {
                tables.push(Table::new(family, name, text));
                tables.len() - 1
            });
        &mut self.tables[index]
    }

    /// Removes the content of a table.
    pub(super) fn clear_table(&mut self, family: Family, name: &str) {
        if let Some(&index) = self.table_indices.get(&(family, name.to_owned())) {
            let text = self.tables[index].text;
            self.tables[index] = Table::new(family, name, text);
        }
    }

    /// Removes the rules of a table, and keeps its chains and sets.
    pub(super) fn flush_table(&mut self, family: Family, name: &str) {
        if let Some(&index) = self.table_indices.get(&(family, name.to_owned())) {
            for chain in &mut self.tables[index].chains {
                chain.rules.clear();
            }
        }
    }
}

/// A table.
#[derive(Debug)]
pub(super) struct Table<'t> {
    pub(super) family: Family,
    pub(super) name: String,
    pub(super) text: &'t str,
    /// True if the table has the flag `dormant`: the kernel does not apply its chains.
    pub(super) is_dormant: bool,
    pub(super) chains: Vec<Chain<'t>>,
    pub(super) sets: Vec<NamedSet<'t>>,
    chain_indices: HashMap<String, usize>,
    set_indices: HashMap<String, usize>,
}

impl<'t> Table<'t> {
    fn new(family: Family, name: &str, text: &'t str) -> Table<'t> {
        Table {
            family,
            name: name.to_owned(),
            text,
            is_dormant: false,
            chains: Vec::new(),
            sets: Vec::new(),
            chain_indices: HashMap::new(),
            set_indices: HashMap::new(),
        }
    }

    /// Returns the position of a chain.
    pub(super) fn chain_index(&self, name: &str) -> Option<usize> {
        self.chain_indices.get(name).copied()
    }

    /// Returns the chain with this name; adds it if it does not exist.
    pub(super) fn chain(&mut self, name: &str, text: &'t str) -> &mut Chain<'t> {
        let index = self.chain_index(name).unwrap_or_else(|| {
            self.chains.push(Chain {
                name: name.to_owned(),
                text,
                base: None,
                rules: VecDeque::new(),
            });
            let index = self.chains.len() - 1;
            self.chain_indices.insert(name.to_owned(), index);
            index
        });
        &mut self.chains[index]
    }

    /// Returns a set or map.
    pub(super) fn find_set(&self, name: &str) -> Option<&NamedSet<'t>> {
        self.set_indices.get(name).map(|&index| &self.sets[index])
    }

    /// Returns the sets and maps with their names, in any order.
    pub(super) fn named_sets(&self) -> impl Iterator<Item = (&str, &NamedSet<'t>)> {
        let names = self.set_indices.iter();
        names.map(|(name, &index)| (&name[..], &self.sets[index]))
    }

    /// Returns the set or map with this name; adds it if it does not exist.
    pub(super) fn set(&mut self, name: &str) -> &mut NamedSet<'t> {
        let sets = &mut self.sets;
        let index = *self.set_indices.entry(name.to_owned()).or_insert_with(|| {
            sets.push(NamedSet::default());
            sets.len() - 1
        });
        &mut self.sets[index]
    }
}

/// A chain.
#[derive(Debug)]
pub(super) struct Chain<'t> {
    pub(super) name: String,
    pub(super) text: &'t str,
    /// `None` if only jumps lead to the chain.
    pub(super) base: Option<Base<'t>>,
    /// Commands add rules at both ends.
    pub(super) rules: VecDeque<Rule<'t>>,
}

/// The properties of a chain that the kernel calls.
#[derive(Clone, Debug)]
pub(super) struct Base<'t> {
    pub(super) chain_type: String,
    pub(super) hook: String,
    /// The policy, with its text.
    pub(super) policy: Option<(Policy, &'t str)>,
}

/// The decision about packets that no rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Accept,
    Drop,
}

/// A named set, or a named map.
#[derive(Debug, Default)]
pub(super) struct NamedSet<'t> {
    pub(super) elements: Vec<Element<'t>>,
    /// True if elements come and go while the firewall runs.
    pub(super) is_changing: bool,
}

/// A rule.
#[derive(Debug)]
pub(super) struct Rule<'t> {
    pub(super) text: &'t str,
    pub(super) statements: Vec<Statement<'t>>,
    pub(super) comment: Option<String>,
}

/// A statement of a rule.
#[derive(Debug)]
pub(super) struct Statement<'t> {
    pub(super) text: &'t str,
    pub(super) action: StatementAction<'t>,
}

/// The effect of a statement.
#[derive(Debug)]
pub(super) enum StatementAction<'t> {
    Match {
        left_side: Expression<'t>,
        relation: Relation,
        right_side: Expression<'t>,
    },
    Verdict(Verdict),
    VerdictMap {
        key: Expression<'t>,
        map: Expression<'t>,
    },
    /// A counter of this rule, with its packets.
    Counter(u64),
    /// An effect that leaves the packet in the chain, such as `log`.
    Pass(String),
    /// Changes a field. The rule goes on only for packets that have the fields of both
    /// expressions, and values of the maps in them.
    Change(Expression<'t>, Expression<'t>),
    /// Adds elements to a set or removes them. If `is_limited`, the rule goes on only while
    /// a limit of the element holds.
    ChangeSet {
        set: String,
        key: Expression<'t>,
        shown: String,
        is_limited: bool,
    },
    Reject {
        shown: String,
        kind: RejectKind,
    },
    /// A translation of addresses. It decides the packet.
    Translate {
        action: String,
        /// The family of the new address, if there is one.
        family: Option<Family>,
        /// The new address and port, which maps may give.
        target: Vec<Expression<'t>>,
    },
    /// The rule goes on only if a state of the firewall permits it. Fields of the packet
    /// may select the state.
    StatefulCondition(String, Option<Expression<'t>>),
    /// A statement that is not modelled, by the name of its feature.
    Unsupported(String),
}

/// The packets that a `reject` is limited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RejectKind {
    Any,
    TcpReset,
    Icmp,
    Icmpv6,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    Drop,
    Continue,
    Return,
    Jump(String),
    Goto(String),
    /// The packet goes to a program. The text is the whole statement.
    Queue(String),
}

/// Returns the words for bytes of a header. Two of them have other words too.
pub(super) fn raw_selector(words: &str) -> String {
    match words {
        "@th,0,16" => "th sport".to_owned(),
        "@th,16,16" => "th dport".to_owned(),
        _ => words.to_owned(),
    }
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// No operator is written: fields of flags need one common bit, other fields equality.
    Implicit,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `!`: no common bit.
    NoCommonBit,
}

impl Relation {
    /// Returns the relation that is written this way in text or JSON.
    pub(super) fn from_operator(operator: &str) -> Option<Relation> {
        Some(match operator {
            "in" => Relation::Implicit,
            "==" | "eq" => Relation::Equal,
            "!=" | "ne" => Relation::NotEqual,
            "<" | "lt" => Relation::Less,
            "<=" | "le" => Relation::LessOrEqual,
            ">" | "gt" => Relation::Greater,
            ">=" | "ge" => Relation::GreaterOrEqual,
            "!" => Relation::NoCommonBit,
            _ => return None,
        })
    }
}

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Expression<'t> {
    pub(super) text: &'t str,
    pub(super) kind: ExpressionKind<'t>,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub(super) enum ExpressionKind<'t> {
    /// A property of packets, such as `tcp dport`.
    Selector(String),
    /// A constant: a number, an address, a prefix or a name.
    Word(Cow<'t, str>),
    /// `*`: any value.
    Any,
    Range(Box<[Expression<'t>; 2]>),
    /// `a,b`: flags that are joined.
    List(Vec<Expression<'t>>),
    Set(Vec<Element<'t>>),
    SetReference(String),
    /// `a . b`
    Concatenation(Vec<Expression<'t>>),
    Binary(Operator, Box<[Expression<'t>; 2]>),
    /// `key map { … }`
    Map(Box<[Expression<'t>; 2]>),
}

/// An operator on bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

impl Operator {
    /// Returns the operator that is written this way in text or JSON.
    pub(super) fn from_text(text: &str) -> Option<Operator> {
        Some(match text {
            "&" | "and" => Operator::And,
            "|" | "or" => Operator::Or,
            "^" | "xor" => Operator::Xor,
            "<<" | "lshift" => Operator::ShiftLeft,
            ">>" | "rshift" => Operator::ShiftRight,
            _ => return None,
        })
    }

    /// The symbol.
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Operator::And => "&",
            Operator::Or => "|",
            Operator::Xor => "^",
            Operator::ShiftLeft => "<<",
            Operator::ShiftRight => ">>",
        }
    }

    /// The operators that bind less strongly have lower numbers.
    pub(super) fn precedence(self) -> usize {
        match self {
            Operator::Or => 0,
            Operator::Xor => 1,
            Operator::And => 2,
            Operator::ShiftLeft | Operator::ShiftRight => 3,
        }
    }
}

/// An element of a set or map.
#[derive(Clone, Debug)]
pub(super) struct Element<'t> {
    pub(super) key: Expression<'t>,
    pub(super) data: ElementData<'t>,
    /// True if the element has a limit, so that it does not always match.
    pub(super) is_limited: bool,
}

/// The value of an element.
#[derive(Clone, Debug)]
pub(super) enum ElementData<'t> {
    /// The element is of a set.
    None,
    Verdict(Verdict),
    Value(Expression<'t>),
}

/// Returns a fault whose part is the first line of a text.
pub(super) fn fault<'t>(
    text: &'t str,
    problem: impl Into<String>,
    expected: impl Into<String>,
) -> Fault<'t> {
    Fault::new(first_line(text), problem, expected)
}

/// Returns a fault for a feature that is not modelled.
pub(super) fn unsupported<'t>(text: &'t str, feature: impl Into<String>) -> Fault<'t> {
    let remedy = "a ruleset without it, or skipping of bad statements";
    Fault::unsupported(first_line(text), feature, remedy)
}

fn first_line(text: &str) -> &str {
    let line = text.split('\n').next().unwrap_or(text);
    line.strip_suffix('\r').unwrap_or(line)
}
