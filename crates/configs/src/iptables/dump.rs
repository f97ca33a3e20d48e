//! The tables of a file: their chains, rules and IP versions.

use std::collections::HashSet;

use classyard_text::Fault;
use classyard_text::line::{is_blank, lines, quoted};

use super::ipset::Sets;
use super::matches::is_ipv6_protocol;
use super::modules::altered_by;
use crate::builder::Builder;
use crate::packets::Families;

/// The tables of iptables.
pub(super) const TABLES: [&str; 5] = ["filter", "nat", "mangle", "raw", "security"];

/// Commands of ipset, at the start of a line.
const IPSET_COMMANDS: [&str; 11] = [
    "create", "add", "del", "flush", "destroy", "swap", "rename", "-N", "-X", "-F", "-E",
];

/// Commands of iptables that change a chain in another way than by adding a rule at its end.
const OTHER_COMMANDS: [&str; 9] = ["-I", "-D", "-R", "-P", "-F", "-X", "-Z", "-E", "-C"];

/// A line with its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    pub(super) number: usize,
    pub(super) text: &'t str,
}

/// A table of the file.
#[derive(Debug)]
pub(super) struct Table<'t> {
    pub(super) name: &'t str,
    /// The line that starts the table.
    pub(super) line: Line<'t>,
    pub(super) family: Families,
    /// The lines that start with `:` or `-N`.
    pub(super) chains: Vec<Line<'t>>,
    pub(super) rules: Vec<Line<'t>>,
    /// The IP version in the comment before the table.
    stated_family: Option<Families>,
    /// False if the table's rules are not filtering rules of a known table.
    is_known: bool,
}

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct Dump<'t> {
    pub(super) tables: Vec<Table<'t>>,
    pub(super) sets: Sets<'t>,
    /// The matches whose answers the targets of the file may change.
    pub(super) altered: HashSet<&'static str>,
}

/// Reads the lines of a file, without the content of rules.
pub(super) fn read<'t>(text: &'t str, builder: &mut Builder<'_>) -> Dump<'t> {
    let mut scanner = Scanner {
        dump: Dump::default(),
        stated_family: None,
        is_in_table: false,
    };
    let mut last_line = Line {
        number: 1,
        text: "",
    };
    for (number, text) in lines(text) {
        last_line = Line { number, text };
        if let Err(fault) = scanner.scan(last_line, builder) {
            builder.problem(fault, number, text);
        }
    }
    if scanner.is_in_table {
        let fault = Fault::missing(last_line.text, "`COMMIT` at the end of the table");
        builder.problem(fault, last_line.number, last_line.text);
    } else if scanner.dump.tables.is_empty() {
        let fault = Fault::missing(last_line.text, "a table such as `*filter`");
        builder.problem(fault, last_line.number, last_line.text);
    }
    let mut dump = scanner.dump;
    dump.tables.retain(|table| table.is_known);
    set_families(&mut dump.tables);
    refuse_second_tables(&mut dump.tables, builder);
    dump
}

struct Scanner<'t> {
    dump: Dump<'t>,
    stated_family: Option<Families>,
    is_in_table: bool,
}

impl<'t> Scanner<'t> {
    fn scan(&mut self, line: Line<'t>, builder: &mut Builder<'_>) -> Result<(), Fault<'t>> {
        let statement = line.text.trim_ascii();
        if is_blank(statement) {
            return Ok(());
        }
        if let Some(comment) = statement.strip_prefix('#') {
            self.comment(comment, builder);
            return Ok(());
        }
        if let Some(name) = statement.strip_prefix('*') {
            return self.start_table(name, line);
        }
        if !self.is_in_table {
            return self.outside_of_tables(statement, line, builder);
        }
        let table = self.dump.tables.last_mut().expect("a table");
        let command = without_counters(statement).split_ascii_whitespace().next();
        match command {
            Some("COMMIT") => self.is_in_table = false,
            Some("-A" | "--append") => {
                table.rules.push(line);
                let mut words = statement.split_ascii_whitespace();
                while let Some(word) = words.next() {
                    if matches!(word, "-j" | "--jump") {
                        let target = words.next().unwrap_or_default();
                        self.dump.altered.extend(altered_by(target));
                    }
                }
            }
            Some("-N" | "--new-chain") => table.chains.push(line),
            _ if statement.starts_with(':') => table.chains.push(line),
            Some(command) if OTHER_COMMANDS.contains(&command) => {
                return Err(Fault::unsupported(
                    command,
                    format!("the command {}", quoted(command)),
                    "`:CHAIN POLICY`, `-N CHAIN` and `-A CHAIN ...`",
                ));
            }
            _ => {
                return Err(Fault::new(
                    statement,
                    quoted(statement),
                    "`:CHAIN POLICY`, `-A CHAIN ...` or `COMMIT`",
                ));
            }
        }
        Ok(())
    }

    /// Reads a comment, which may have the IP version of the tables after it.
    fn comment(&mut self, comment: &str, builder: &mut Builder<'_>) {
        let comment = comment.trim_ascii();
        if let Some(program) = comment.strip_prefix("Generated by ") {
            let program = program.split_ascii_whitespace().next().unwrap_or_default();
            self.stated_family = match program {
                _ if program.starts_with("ip6tables") => Some(Families::IPV6),
                _ if program.starts_with("iptables") => Some(Families::IPV4),
                _ => None,
            };
        } else if comment.contains("tables-legacy tables present") {
            let note =
                "the firewall also has tables of the legacy program, which are not in the file";
            builder.note(note.to_owned());
        } else if comment.starts_with("Table `") && comment.contains("is incompatible") {
            let note = "the firewall has a table that iptables cannot print; it is not in the file";
            builder.note(note.to_owned());
        }
    }

    fn start_table(&mut self, name: &'t str, line: Line<'t>) -> Result<(), Fault<'t>> {
        let was_in_table = std::mem::replace(&mut self.is_in_table, true);
        let is_known = TABLES.contains(&name);
        self.dump.tables.push(Table {
            name,
            line,
            family: Families::IPV4,
            chains: Vec::new(),
            rules: Vec::new(),
            stated_family: self.stated_family,
            is_known,
        });
        if was_in_table {
            return Err(Fault::new(
                line.text.trim_ascii(),
                "a table inside of a table",
                "`COMMIT` before it",
            ));
        }
        if !is_known {
            return Err(Fault::unsupported(
                name,
                format!("the table {}", quoted(name)),
                "filter, nat, mangle, raw or security",
            ));
        }
        Ok(())
    }

    fn outside_of_tables(
        &mut self,
        statement: &'t str,
        line: Line<'t>,
        builder: &mut Builder<'_>,
    ) -> Result<(), Fault<'t>> {
        let command = statement
            .split_ascii_whitespace()
            .next()
            .unwrap_or_default();
        if IPSET_COMMANDS.contains(&command) {
            if let Some((element, set)) = self.dump.sets.read_line(line.text)? {
                builder.member(line.number, line.text, element, set);
            }
            return Ok(());
        }
        Err(Fault::new(
            statement,
            format!("{} outside of tables", quoted(statement)),
            "a table such as `*filter`, or `create` and `add` of ipset",
        ))
    }
}

/// Returns a rule without its counters: `[12:340] -A INPUT` becomes `-A INPUT`.
pub(super) fn without_counters(statement: &str) -> &str {
    match statement.starts_with('[') {
        true => statement
            .split_once(']')
            .map_or(statement, |(_, rule)| rule.trim_ascii_start()),
        false => statement,
    }
}

/// Finds the IP versions of tables whose comments do not state it. Such tables that follow
/// each other are of one version, up to a table with the name of an earlier one.
fn set_families(tables: &mut [Table<'_>]) {
    let mut start = 0;
    while start < tables.len() {
        let stated = tables[start].stated_family;
        let mut end = start + 1;
        let mut names = HashSet::from([tables[start].name]);
        while stated.is_none()
            && end < tables.len()
            && tables[end].stated_family.is_none()
            && names.insert(tables[end].name)
        {
            end += 1;
        }
        let group = &mut tables[start..end];
        let family = stated.unwrap_or_else(|| {
            let rules = group.iter().flat_map(|table| &table.rules);
            match rules.filter_map(|rule| evidence(rule.text)).max() {
                Some(Evidence::Ipv6Address | Evidence::Ipv6Protocol) => Families::IPV6,
                Some(Evidence::Ipv4Address) | None => Families::IPV4,
            }
        });
        for table in group {
            table.family = family;
        }
        start = end;
    }
}

/// A reason to read rules as rules of an IP version; the strongest one is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    Ipv6Protocol,
    Ipv4Address,
    Ipv6Address,
}

/// Returns the strongest evidence of a rule for its IP version.
fn evidence(rule: &str) -> Option<Evidence> {
    let mut strongest = None;
    let mut words = rule.split_ascii_whitespace();
    while let Some(word) = words.next() {
        let evidence = match word {
            "-s" | "-d" | "--source" | "--src" | "--destination" | "--dst" | "--src-range"
            | "--dst-range" => words.next().map(|address| match address.contains(':') {
                true => Evidence::Ipv6Address,
                false => Evidence::Ipv4Address,
            }),
            "-p" | "--protocol" | "--proto" => {
                let protocol = words.next().filter(|protocol| is_ipv6_protocol(protocol));
                protocol.map(|_| Evidence::Ipv6Protocol)
            }
            "icmp6" | "--icmpv6-type" => Some(Evidence::Ipv6Protocol),
            _ => None,
        };
        strongest = strongest.max(evidence);
    }
    strongest
}

/// Removes each table that an earlier table of the same version has the name of.
fn refuse_second_tables(tables: &mut Vec<Table<'_>>, builder: &mut Builder<'_>) {
    let mut names: Vec<(&str, Families)> = Vec::new();
    tables.retain(|table| {
        let is_first = !names.contains(&(table.name, table.family));
        if is_first {
            names.push((table.name, table.family));
        } else {
            let version = if table.family == Families::IPV4 { 4 } else { 6 };
            let fault = Fault::new(
                table.line.text.trim_ascii(),
                format!("a second table {} of IPv{version}", quoted(table.name)),
                "one dump of each IP version in a file",
            );
            builder.problem(fault, table.line.number, table.line.text);
        }
        is_first
    });
}
