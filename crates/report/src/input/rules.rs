//! Rules from a file, from standard input or from the embedded example.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use classyard::{FieldMatch, Policy};
use classyard_configs::{
    Conditions, Config, ConfigFormat, HostBits, InputFormat, MemberWithHostBits, SourceRule,
    WriteOptions, as_acl, for_any_list, host_bits,
};
use classyard_workload::diagnostic::{Loaded, ReadError, ReadOptions};
use classyard_workload::formats::{
    self, RuleFormat, SchemaChoice, read_policy_with, read_schema_file,
};

use super::limits::ByteLimit;
use super::{count, read_text, source_name};
use crate::embedded;
use crate::failure::Failure;
use crate::output::file::is_dash;
use crate::output::style::counted;
use crate::reporter::Reporter;
use crate::suggestion::did_you_mean;

/// The flags of every command that reads rules, except the file itself.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RulesArgs {
    /// The format of the rules; by default, detected from their text
    ///
    /// classbench, rules (our own), json (the same for programs), ovs (as ovs-ofctl prints
    /// flows), or the format of a firewall's configuration: `classyard formats` lists them.
    #[arg(long, value_name = "FORMAT", value_parser = input_format, help_heading = "Input")]
    pub rules_format: Option<InputFormat>,

    /// The list of rules to read from a configuration, for example INPUT
    ///
    /// By default all lists are read, and the field `list` has the name of the list.
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub list: Option<String>,

    /// Refuse configurations with conditions that are not modelled
    ///
    /// By default a rule with such a condition matches only if the condition holds, which
    /// is not known.
    #[arg(long, help_heading = "Input")]
    pub strict: bool,

    /// The table of Open vSwitch flows to read, 0 to 255
    ///
    /// Required if the file has flows of several tables. Jumps from table to table
    /// are not followed.
    #[arg(long, value_name = "N", help_heading = "Input")]
    pub table: Option<u8>,

    /// The schema of the rules: a built-in name or a TOML file
    ///
    /// Built-in schemas are ipv4-5tuple, ipv6-5tuple, openflow15, dual-5tuple (IPv4 and
    /// IPv6 in one order), and acl (the fields of firewall rules). By default a file in the
    /// format `rules` names it, and for other formats it is detected from the rules.
    #[arg(long, value_name = "SCHEMA", help_heading = "Input")]
    pub schema: Option<String>,

    /// Skip bad lines and use the good ones
    ///
    /// Standard error has the number of skipped lines and the reasons. Without the
    /// flag, a single bad line is an error and nothing is loaded.
    #[arg(long, help_heading = "Input")]
    pub skip_bad: bool,

    /// Refuse files with more than N rules (10k, 1M, ...)
    ///
    /// The default is 16,777,216, and 1,048,576 for configurations, whose groups and jumps
    /// multiply rules.
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Input")]
    pub limit_rules: Option<usize>,

    /// The limit on bytes of a file.
    #[command(flatten)]
    pub bytes: ByteLimit,

    /// True if the networks with bits outside of their prefix are of interest.
    #[arg(skip)]
    pub finds_host_bits: bool,
}

/// The lists of a configuration that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lists {
    All,
    /// One list, whose rules examine packets that name no list.
    OneForPackets,
}

/// The statements of a file that its rules come from.
enum Statements {
    Lines {
        /// The line of each rule, in file order.
        lines: Vec<u32>,
        /// The statement of each rule; empty if each rule is one.
        statement_of_rule: Vec<u32>,
        /// The texts of statements that became several rules.
        texts: BTreeMap<u32, String>,
    },
    /// The statements of a configuration, and the statement of each rule.
    Config {
        sources: Vec<SourceRule>,
        source_of_rule: Vec<u32>,
    },
}

/// Rules that were read.
pub struct LoadedRules {
    /// The rules.
    pub policy: Policy,
    /// The source of the rules.
    pub source: String,
    /// True if the rules are the embedded example.
    pub embedded: bool,
    /// The number of bad lines that were skipped.
    pub skipped: usize,
    /// Rules that differ from an earlier one only in columns that were not read.
    pub merged: usize,
    statements: Statements,
    /// The conditions that no field can express, by their bits in headers.
    conditions: Vec<String>,
    /// The names of the lists of a configuration.
    lists: Vec<String>,
    /// The lines with a comment that allows findings, and the names in it.
    allowances: BTreeMap<u32, Vec<String>>,
    /// The lines with networks that have bits outside of their prefix.
    host_bits: BTreeMap<u32, Vec<HostBits>>,
    /// Members of groups with such networks.
    members_with_host_bits: Vec<MemberWithHostBits>,
}

/// The start of comments that allow findings about the rule on the line or the next line.
const ALLOWANCE_MARK: &str = "classyard: allow ";

/// Returns the lines with a comment such as `# classyard: allow dead`, with its names.
fn allowances(text: &str) -> BTreeMap<u32, Vec<String>> {
    let lines = (1..).zip(text.lines());
    let marked = lines.filter_map(|(number, line)| {
        let (_, names) = line.split_once(ALLOWANCE_MARK)?;
        let is_name =
            |character: char| character.is_ascii_alphabetic() || "-, ".contains(character);
        let names = names.split(|character| !is_name(character)).next()?;
        let names = names.split([',', ' ']).filter(|name| !name.is_empty());
        Some((number, names.map(str::to_owned).collect()))
    });
    marked.collect()
}

impl LoadedRules {
    /// Returns the line, from 1, of the rule at a position in file order.
    pub fn line(&self, position: usize) -> Option<u32> {
        match &self.statements {
            Statements::Lines { lines, .. } => lines.get(position).copied(),
            Statements::Config { .. } => self.statement(position).map(|source| source.line),
        }
    }

    /// Returns the text of the line or statement that the rule at a position in file order comes
    /// from. `None` if the rule is all that its line says.
    pub fn text(&self, position: usize) -> Option<&str> {
        match &self.statements {
            Statements::Lines {
                statement_of_rule,
                texts,
                ..
            } => texts
                .get(statement_of_rule.get(position)?)
                .map(String::as_str),
            Statements::Config { .. } => self.statement(position).map(|source| &*source.text),
        }
    }

    /// Returns the statement of a configuration that the rule at a position in file order
    /// comes from. `None` for other formats.
    pub fn statement(&self, position: usize) -> Option<&SourceRule> {
        match &self.statements {
            Statements::Lines { .. } => None,
            Statements::Config {
                sources,
                source_of_rule,
            } => Some(&sources[*source_of_rule.get(position)? as usize]),
        }
    }

    /// Returns for each rule, in file order, a number of its statement. `None` if every statement
    /// is one rule.
    pub fn statement_of_rule(&self) -> Option<&[u32]> {
        match &self.statements {
            Statements::Lines {
                statement_of_rule, ..
            } => (!statement_of_rule.is_empty()).then_some(statement_of_rule),
            Statements::Config { source_of_rule, .. } => Some(source_of_rule),
        }
    }

    /// Returns the conditions that hold in a header, from its field `condition`.
    pub fn conditions(&self, bits: u128) -> Vec<&str> {
        let conditions = self.conditions.iter().enumerate();
        let held = conditions.filter(|(bit, _)| bits >> bit & 1 != 0);
        held.map(|(_, text)| text.strip_suffix(" (number 1)").unwrap_or(text))
            .collect()
    }

    /// Writes the rules as a configuration of a firewall; see [`classyard_configs::write`].
    pub fn to_config(
        &self,
        format: ConfigFormat,
        default_action: Option<&str>,
    ) -> Result<classyard_configs::Written, classyard_configs::WriteError> {
        let options = WriteOptions {
            lists: &self.lists,
            conditions: &self.conditions,
            default_action,
            statement_of_rule: self.statement_of_rule(),
        };
        classyard_configs::write(&self.policy, format, &options)
    }

    /// Returns the lines with networks that have bits outside of their prefix. Empty unless
    /// [`RulesArgs::finds_host_bits`] is set.
    pub fn host_bits(&self) -> &BTreeMap<u32, Vec<HostBits>> {
        &self.host_bits
    }

    /// Returns the members of named groups of addresses with such networks, in file order. Only
    /// configurations of firewalls have groups.
    pub fn members_with_host_bits(&self) -> &[MemberWithHostBits] {
        &self.members_with_host_bits
    }

    /// Returns the lines with a comment that allows findings, and the names in it.
    pub fn allowances(&self) -> &BTreeMap<u32, Vec<String>> {
        &self.allowances
    }

    /// Returns the line of the comment that allows findings of a kind about a line: the line
    /// itself, or the line before it if that has no rule.
    pub fn allowance(&self, line: u32, kind: &str) -> Option<u32> {
        let allows = |line: &u32| {
            let names = self.allowances.get(line);
            names.is_some_and(|names| names.iter().any(|name| name == kind))
        };
        let has_rule = |line: u32| (0..self.policy.len()).any(|rule| self.line(rule) == Some(line));
        let before = line
            .checked_sub(1)
            .filter(|line| allows(line) && !has_rule(*line));
        Some(line).filter(allows).or(before)
    }

    /// Returns the number of statements with conditions that no field can express.
    pub fn statements_with_conditions(&self) -> usize {
        match &self.statements {
            Statements::Lines { .. } => 0,
            Statements::Config {
                sources,
                source_of_rule,
            } => with_conditions(sources, source_of_rule).len(),
        }
    }

    /// Returns the number of statements with rules.
    pub fn statement_count(&self) -> usize {
        match self.statement_of_rule() {
            None => self.policy.len(),
            Some(statements) => statements.iter().collect::<BTreeSet<_>>().len(),
        }
    }
}

impl RulesArgs {
    /// Returns the options for reading rules.
    pub fn options(&self) -> ReadOptions {
        let options = ReadOptions::DEFAULT
            .with_skip_bad(self.skip_bad)
            .with_max_bytes(self.bytes.text().bytes)
            .with_table(self.table);
        match self.limit_rules {
            Some(limit) => options.with_limit(limit),
            None => options,
        }
    }

    /// Returns the requested schema.
    pub fn schema(&self) -> Result<Option<SchemaChoice>, Failure> {
        self.schema.as_deref().map(schema_choice).transpose()
    }

    /// Reads a file of rules; without a file, the embedded example.
    pub fn load(&self, file: Option<&Path>, reporter: Reporter) -> Result<LoadedRules, Failure> {
        let Some(path) = file else {
            let name = embedded::RULES_NAME;
            let loaded = formats::read_policy(name, embedded::RULES, None, None, &self.options())?;
            return Ok(finish(name.to_owned(), true, loaded, reporter));
        };
        let text = read_text(path, self.bytes.text())?;
        self.load_text(path, &text, reporter)
    }

    /// Reads a file of rules for packets of a capture, which are in no list of a firewall: of a
    /// configuration with several lists, `--list` must select one. Without a file, reads the
    /// embedded example.
    pub fn load_for_packets(
        &self,
        file: Option<&Path>,
        reporter: Reporter,
    ) -> Result<LoadedRules, Failure> {
        let Some(path) = file else {
            return self.load(None, reporter);
        };
        let text = read_text(path, self.bytes.text())?;
        let conditions = &mut Conditions::default();
        self.load_with(path, &text, Lists::OneForPackets, conditions, reporter)
    }

    /// Reads rules from the text of a file, or of standard input if the path is `-`. A
    /// schema file that the rules name is relative to the folder of the file, or to the
    /// current folder.
    pub fn load_text(
        &self,
        path: &Path,
        text: &str,
        reporter: Reporter,
    ) -> Result<LoadedRules, Failure> {
        self.load_with(path, text, Lists::All, &mut Conditions::default(), reporter)
    }

    fn load_with(
        &self,
        path: &Path,
        text: &str,
        lists: Lists,
        conditions: &mut Conditions,
        reporter: Reporter,
    ) -> Result<LoadedRules, Failure> {
        let mut rules = self.load_policy(path, text, lists, conditions, reporter)?;
        rules.allowances = allowances(text);
        if self.finds_host_bits {
            let lines = (1..).zip(text.lines());
            let found = lines.map(|(number, line)| (number, host_bits(line)));
            rules.host_bits = found.filter(|(_, found)| !found.is_empty()).collect();
        }
        Ok(rules)
    }

    fn load_policy(
        &self,
        path: &Path,
        text: &str,
        lists: Lists,
        conditions: &mut Conditions,
        reporter: Reporter,
    ) -> Result<LoadedRules, Failure> {
        let source = source_name(path);
        let format = match self.rules_format.or_else(|| InputFormat::detect(text)) {
            Some(InputFormat::Config(format)) => {
                let config = self.read_config(&source, text, format, conditions)?;
                let config = self.select(config, lists, &source)?;
                return self.load_config(source, config, conditions, reporter);
            }
            Some(InputFormat::Rules(format)) => Some(format),
            None => None,
        };
        if let Some(list) = &self.list {
            return Err(Failure::usage(format!(
                "{source}: --list {list} selects a list of a firewall's configuration, but the \
                 file has rules with a line each"
            )));
        }
        let folder = match path.parent() {
            Some(folder) if !is_dash(path) => folder,
            _ => Path::new(""),
        };
        let mut loader = |name: &str| read_schema_file(&folder.join(name));
        let (schema, options) = (self.schema()?, self.options());
        let loaded = read_policy_with(
            &source,
            text,
            format,
            schema.as_ref(),
            &options,
            &mut loader,
        );
        let loaded = loaded.map_err(|error| match format {
            None => unknown_format(error, text),
            Some(_) => error,
        })?;
        Ok(finish(source, false, loaded, reporter))
    }

    fn read_config(
        &self,
        source: &str,
        text: &str,
        format: ConfigFormat,
        conditions: &mut Conditions,
    ) -> Result<Config, Failure> {
        let refused = |option: &str| {
            Failure::usage(format!(
                "{source}: {option} does not apply to configurations of the format {format}"
            ))
        };
        if self.schema.is_some() {
            return Err(refused("--schema").with_help("their schema is always `acl`"));
        }
        if self.table.is_some() {
            return Err(refused("--table").with_help("--list selects one of several lists"));
        }
        let options = self.options();
        Ok(classyard_configs::read(
            source, text, format, &options, conditions,
        )?)
    }

    /// Returns the list of a configuration that `--list` selects, or all lists.
    fn select(&self, config: Config, lists: Lists, source: &str) -> Result<Config, Failure> {
        match (&self.list, lists, &config.lists[..]) {
            (Some(name), _, _) => only_list(config, name, source),
            (None, Lists::OneForPackets, [only]) => {
                let name = only.clone();
                only_list(config, &name, source)
            }
            (None, Lists::OneForPackets, [_, _, ..]) => Err(Failure::usage(format!(
                "{source} has {}, and a packet is examined by one of them",
                counted(config.lists.len(), "list")
            ))
            .with_help(format!("--list selects one of {}", config.lists.join(", ")))),
            (None, _, _) => Ok(config),
        }
    }

    fn load_config(
        &self,
        source: String,
        config: Config,
        conditions: &Conditions,
        reporter: Reporter,
    ) -> Result<LoadedRules, Failure> {
        if self.strict {
            refuse_conditions(&config, &source)?;
        }
        reporter.skipped(&config.skipped);
        for note in &config.notes {
            reporter.note(&format!("{source}: {note}"));
        }
        Ok(LoadedRules {
            policy: config.policy,
            source,
            embedded: false,
            skipped: config.skipped.total(),
            merged: 0,
            statements: Statements::Config {
                sources: config.sources,
                source_of_rule: config.source_of_rule,
            },
            conditions: conditions.texts().to_vec(),
            lists: config.lists,
            allowances: BTreeMap::new(),
            host_bits: BTreeMap::new(),
            members_with_host_bits: config.members_with_host_bits,
        })
    }
}

/// Names all formats in the error for a text of no known format.
fn unknown_format(error: ReadError, text: &str) -> ReadError {
    let ReadError::Format { file, found, .. } = error else {
        return error;
    };
    let names: Vec<&str> = InputFormat::all().map(InputFormat::name).collect();
    let found = match classyard_configs::unsupported_format(text) {
        Some(name) => format!("{name} are not supported"),
        None => found,
    };
    ReadError::Format {
        file,
        found,
        expected: format!(
            "a file of one of the formats {}, or --rules-format with the name of the format",
            names.join(", ")
        ),
    }
}

/// Reads two files of rules that are compared. Equal conditions of both have the same bit.
/// `--list` applies to the files that have lists. Lists with different names are compared if
/// each file has no other list. Rules of five-tuples become rules over the fields of firewalls
/// if the other file has those.
pub fn load_both(
    readings: [&RulesArgs; 2],
    files: [&Path; 2],
    reporter: Reporter,
) -> Result<[LoadedRules; 2], Failure> {
    let mut conditions = Conditions::default();
    let mut load = |reading: &RulesArgs, path: &Path| {
        let text = read_text(path, reading.bytes.text())?;
        let format = reading.rules_format.or_else(|| InputFormat::detect(&text));
        let has_lists = matches!(format, Some(InputFormat::Config(_)));
        let reading = RulesArgs {
            list: reading.list.clone().filter(|_| has_lists),
            ..reading.clone()
        };
        let rules = reading.load_with(path, &text, Lists::All, &mut conditions, reporter)?;
        Ok::<_, Failure>((rules, has_lists))
    };
    let [first, second] = files;
    let (first, first_has_lists) = load(readings[0], first)?;
    let (second, second_has_lists) = load(readings[1], second)?;
    if let (Some(list), false) = (&readings[0].list, first_has_lists || second_has_lists) {
        return Err(Failure::usage(format!(
            "--list {list} selects a list of a firewall's configuration, but both files have \
             rules with a line each"
        )));
    }
    let mut both = [first, second];
    let lists = both.each_ref().map(named_lists);
    if lists.iter().all(|&count| count <= 1) {
        for (rules, _) in both.iter_mut().zip(lists).filter(|(_, count)| *count == 1) {
            rules.policy = for_any_list(&rules.policy);
        }
    }
    let is_acl = |rules: &LoadedRules| rules.policy.name() == Policy::ACL;
    if both.iter().any(is_acl) {
        for rules in both.iter_mut().filter(|rules| !is_acl(rules)) {
            if let Some(policy) = as_acl(&rules.policy) {
                rules.policy = policy;
            }
        }
    }
    Ok(both)
}

/// Returns the number of lists that the rules of a file name.
fn named_lists(rules: &LoadedRules) -> usize {
    if !rules.lists.is_empty() {
        return rules.lists.len();
    }
    let mut lists = BTreeSet::new();
    for part in rules.policy.parts() {
        let Some(field) = part.schema().field_named("list") else {
            continue;
        };
        let of_rules = part.iter().map(|rule| rule.field(field));
        lists.extend(of_rules.filter_map(|list| match list {
            FieldMatch::Exact(value) => Some(value),
            _ => None,
        }));
    }
    lists.len()
}

/// Returns the rules of one list of a configuration.
fn only_list(config: Config, name: &str, source: &str) -> Result<Config, Failure> {
    let lists = config.lists.clone();
    config.with_only_list(name).ok_or_else(|| {
        let hint = did_you_mean(name, lists.iter().map(String::as_str));
        Failure::usage(format!("{source} has no list `{name}`{hint}"))
            .with_help(format!("its lists are {}", lists.join(", ")))
    })
}

/// Returns the statements with rules and with conditions that no field can express.
fn with_conditions<'a>(sources: &'a [SourceRule], source_of_rule: &[u32]) -> Vec<&'a SourceRule> {
    let numbers: BTreeSet<u32> = source_of_rule.iter().copied().collect();
    let with_rules = numbers.into_iter().map(|number| &sources[number as usize]);
    with_rules
        .filter(|source| !source.conditions.is_empty())
        .collect()
}

/// Fails if a statement has a condition that no field can express.
fn refuse_conditions(config: &Config, source: &str) -> Result<(), Failure> {
    let statements = with_conditions(&config.sources, &config.source_of_rule);
    let Some((first, others)) = statements.split_first() else {
        return Ok(());
    };
    let further = match others.len() {
        0 => String::new(),
        count => format!(", and {}", counted(count, "further statement")),
    };
    Err(Failure::usage(format!(
        "{source}:{}:{}: a condition that is not modelled: {}{further}",
        first.line,
        first.column,
        first.conditions.join(", "),
    ))
    .with_help("without --strict, such rules are taken to match some packets only"))
}

fn finish(
    source: String,
    embedded: bool,
    loaded: Loaded<Policy>,
    reporter: Reporter,
) -> LoadedRules {
    reporter.skipped(&loaded.skipped);
    for note in &loaded.notes {
        reporter.note(&format!("{source}: {note}"));
    }
    LoadedRules {
        policy: loaded.value,
        source,
        embedded,
        skipped: loaded.skipped.total(),
        merged: loaded.merged_rules,
        statements: Statements::Lines {
            lines: loaded.rule_lines,
            statement_of_rule: loaded.statement_of_rule,
            texts: loaded.statement_texts,
        },
        conditions: Vec::new(),
        lists: Vec::new(),
        allowances: BTreeMap::new(),
        host_bits: BTreeMap::new(),
        members_with_host_bits: Vec::new(),
    }
}

/// Returns the built-in schema `text`, or the schema in the file `text`.
pub fn schema_choice(text: &str) -> Result<SchemaChoice, Failure> {
    if let Some(choice) = SchemaChoice::named(text) {
        return Ok(choice);
    }
    let path = PathBuf::from(text);
    match read_schema_file(&path) {
        Ok(schema) => Ok(SchemaChoice::Single(schema)),
        Err(ReadError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            let names = SchemaChoice::names();
            let hint = did_you_mean(text, names.iter().copied());
            Err(Failure::usage(format!(
                "`{text}` is neither a built-in schema nor a file{hint}"
            ))
            .with_help(format!("built-in schemas are {}", names.join(", "))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Parses the name of a format of files with rules, for the argument parser.
pub fn input_format(text: &str) -> Result<InputFormat, String> {
    InputFormat::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = InputFormat::all().map(InputFormat::name).collect();
        format!(
            "unknown rule format `{text}`; expected {}{}",
            names.join(", "),
            did_you_mean(text, names.iter().copied())
        )
    })
}

/// Parses the name of a rule format that can be written, for the argument parser.
pub fn rule_format(text: &str) -> Result<RuleFormat, String> {
    RuleFormat::from_name(text).ok_or_else(|| {
        let names = RuleFormat::ALL.map(RuleFormat::name);
        format!(
            "unknown rule format `{text}`; expected {}{}",
            names.join(", "),
            did_you_mean(text, names)
        )
    })
}
