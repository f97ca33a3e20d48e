//! Reading and writing files of rules, headers and schemas.
//!
//! | format | reads | writes | made for |
//! |---|---|---|---|
//! | [`classbench`] | five-tuple rules, IPv4 and IPv6 | the same | exchange with the tools of the literature |
//! | [`rules`] | rules of any schema, names, actions | everything a [`Policy`] holds | people |
//! | [`ovs`] | flows as `ovs-ofctl` prints and reads them | the same | switches |
//! | [`trace`] | headers, with expected rules if there are any | the same | classifying and checking |
//! | [`schema_file`] | schemas in TOML | the same | headers that are not built in |
//!
//! # What a reader promises
//!
//! A reader parses a text in memory and does no input. The functions that end in `_file`
//! open the file, unpack it if it is gzip, and check that it is UTF-8. A bad line never
//! stops a reader: it lists the [problems](crate::diagnostic::Problem) of the file, one
//! for each bad line. It then loads nothing, unless [`ReadOptions::skip_bad`] is set: then
//! it keeps the good lines. No input makes a reader panic or use more memory than
//! [`limits`](crate::limits) allow. Line ends may be `\n` or `\r\n`, the last line end may
//! be missing, and a byte order mark at the start is skipped.
//!
//! A rule's id, unless its line gives one, counts from 0 over all lines that are rules,
//! including skipped bad lines. So an id means the same line with and without
//! [`ReadOptions::skip_bad`]. The numbers in reports are positions among the rules that
//! were loaded; [`Loaded::rule_lines`] has the line of each. If a format has no priorities, the first line wins: rule `i` of `n` has
//! priority `n - i`.
//!
//! # What a writer promises
//!
//! A writer rewrites or leaves out whatever a format cannot express. The [`WriteReport`]
//! lists and counts both. [`WriteReport::losses`] names the lost rules one by one, with
//! the reason; without them, some headers get another decision.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use classyard::policy::Policy;
use classyard::{RuleId, Schema};
use thiserror::Error;

use classyard_text::Fault;

use crate::diagnostic::{Loaded, ReadError, ReadOptions};
use crate::limits::FileLimit;

pub mod classbench;
mod file;
mod loss;
pub mod ovs;
pub mod rules;
pub mod schema_file;
mod text;
pub mod trace;
mod value;

pub use file::{read_bytes_from, read_text_file, read_text_from};
pub use loss::{Loss, Losses};
pub use schema_file::{read_schema, read_schema_file, write_schema};
pub use trace::{Trace, read_trace, read_trace_file, write_trace};

/// A format of rule files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleFormat {
    /// ClassBench filter sets: [`classbench`].
    Classbench,
    /// The format of this project, for people: [`rules`].
    Rules,
    /// Rules as JSON, for programs: [`rules`] says what values mean.
    Json,
    /// Flows of Open vSwitch: [`ovs`].
    Ovs,
}

impl RuleFormat {
    /// All formats.
    pub const ALL: [RuleFormat; 4] = [
        RuleFormat::Classbench,
        RuleFormat::Rules,
        RuleFormat::Json,
        RuleFormat::Ovs,
    ];

    /// The format's name on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RuleFormat::Classbench => "classbench",
            RuleFormat::Rules => "rules",
            RuleFormat::Json => "json",
            RuleFormat::Ovs => "ovs",
        }
    }

    /// Returns the format with that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<RuleFormat> {
        RuleFormat::ALL.into_iter().find(|f| f.name() == name)
    }

    /// Detects the format of a text by its first line; `None` if the line fits no format.
    ///
    /// If the text is an object with `schema` or `rules` as its first key, the format is
    /// [`Json`](RuleFormat::Json). Otherwise, empty lines and lines that start with `#` are
    /// skipped. If the next line starts with `@`, the format is [`Classbench`](RuleFormat::Classbench). If it starts with
    /// `schema` or `actions`, the format is [`Rules`](RuleFormat::Rules). If it has
    /// `actions=` or is a reply's heading, the format is [`Ovs`](RuleFormat::Ovs). If it
    /// has another `field=value`, the format is [`Rules`](RuleFormat::Rules).
    #[must_use]
    pub fn detect(text: &str) -> Option<RuleFormat> {
        let object = text.trim_start().strip_prefix('{').map(str::trim_start);
        if object.is_some_and(|keys| {
            ["\"schema\"", "\"rules\""]
                .iter()
                .any(|key| keys.starts_with(key))
        }) {
            return Some(RuleFormat::Json);
        }
        let (_, line) = text::lines(text)
            .find(|(_, line)| !text::is_blank(line) && !line.trim_start().starts_with('#'))?;
        let mut words = line.split_ascii_whitespace();
        let first = words.next()?;
        if first.starts_with('@') {
            Some(RuleFormat::Classbench)
        } else if matches!(first, "schema" | "actions") {
            Some(RuleFormat::Rules)
        } else if ovs::looks_like_flow(line) {
            Some(RuleFormat::Ovs)
        } else if words.any(|word| word.contains('=')) {
            Some(RuleFormat::Rules)
        } else {
            None
        }
    }
}

impl fmt::Display for RuleFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The schema or schemas of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaChoice {
    /// One schema.
    Single(Arc<Schema>),
    /// IPv4 and IPv6 five-tuples in one priority order:
    /// [`Policy::dual_stack`].
    DualStack,
    /// The fields of firewall rules for IPv4 and IPv6: [`Policy::acl`].
    Acl,
}

impl SchemaChoice {
    /// Returns the choice with that name: a built-in schema, `dual-5tuple` or `acl`.
    #[must_use]
    pub fn named(name: &str) -> Option<SchemaChoice> {
        match name {
            Policy::DUAL_STACK => Some(SchemaChoice::DualStack),
            Policy::ACL => Some(SchemaChoice::Acl),
            _ => Schema::built_in(name).map(SchemaChoice::Single),
        }
    }

    /// Returns the names that [`named`](SchemaChoice::named) accepts.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        let mut names = Schema::BUILT_IN.to_vec();
        names.extend([Policy::DUAL_STACK, Policy::ACL]);
        names
    }

    /// Returns the choice that gives a policy's schemas, or `None` if no choice does.
    #[must_use]
    pub fn of(policy: &Policy) -> Option<SchemaChoice> {
        let schemas: Vec<_> = policy.schemas().cloned().collect();
        match schemas.as_slice() {
            [only] => Some(SchemaChoice::Single(Arc::clone(only))),
            pair => {
                let mut choices = [SchemaChoice::DualStack, SchemaChoice::Acl].into_iter();
                choices.find(|choice| pair == choice.schemas())
            }
        }
    }

    /// True if rules are for IPv4, for IPv6 or for both: there is a part for each.
    pub(crate) fn has_both_families(&self) -> bool {
        matches!(self, SchemaChoice::DualStack | SchemaChoice::Acl)
    }

    /// The name of the schema, or of the pair of schemas.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            SchemaChoice::Single(schema) => schema.name(),
            SchemaChoice::DualStack => Policy::DUAL_STACK,
            SchemaChoice::Acl => Policy::ACL,
        }
    }

    /// Returns the schemas, one for each part of a policy.
    #[must_use]
    pub fn schemas(&self) -> Vec<Arc<Schema>> {
        match self {
            SchemaChoice::Single(schema) => vec![Arc::clone(schema)],
            SchemaChoice::DualStack => vec![Schema::ipv4_5tuple(), Schema::ipv6_5tuple()],
            SchemaChoice::Acl => vec![Schema::acl_ipv4(), Schema::acl_ipv6()],
        }
    }

    /// Returns a policy over these schemas, without rules.
    #[must_use]
    pub fn policy(&self) -> Policy {
        match self {
            SchemaChoice::Single(schema) => Policy::single(schema),
            SchemaChoice::DualStack => Policy::dual_stack(),
            SchemaChoice::Acl => Policy::acl(),
        }
    }
}

/// Loads the schema that a rule file names by a path, such as `schema "my.toml"`. The
/// argument is the path as written in the file, relative to the file.
pub type SchemaLoader<'a> = dyn FnMut(&str) -> Result<Arc<Schema>, ReadError> + 'a;

/// Reads rules from a text.
///
/// `source` is the file's name in messages. Without a `format` the format is
/// [detected](RuleFormat::detect). Without a `schema` the text gives the schema. A text
/// that names a schema file is refused, because this function opens no files: see
/// [`read_policy_with`] and [`read_policy_file`].
///
/// # Errors
/// [`ReadError`]: the problems of the text, or the reason to refuse the text as a whole.
pub fn read_policy(
    source: &str,
    text: &str,
    format: Option<RuleFormat>,
    schema: Option<&SchemaChoice>,
    options: &ReadOptions,
) -> Result<Loaded<Policy>, ReadError> {
    let mut loader = |path: &str| {
        Err(ReadError::Io {
            file: path.to_owned(),
            error: io::Error::new(
                io::ErrorKind::Unsupported,
                "this text was not read from a file, so schema files next to it cannot be found",
            ),
        })
    };
    read_policy_with(source, text, format, schema, options, &mut loader)
}

/// Reads rules from a text. `loader` loads the schema files that the text names.
///
/// # Errors
/// [`ReadError`]: the problems of the text or of a schema file, or the reason to refuse
/// the text as a whole.
pub fn read_policy_with(
    source: &str,
    text: &str,
    format: Option<RuleFormat>,
    schema: Option<&SchemaChoice>,
    options: &ReadOptions,
    loader: &mut SchemaLoader<'_>,
) -> Result<Loaded<Policy>, ReadError> {
    let format = match format.or_else(|| RuleFormat::detect(text)) {
        Some(format) => format,
        None => return Err(unknown_format(source, text)),
    };
    if let Some(table) = options.table.filter(|_| format != RuleFormat::Ovs) {
        return Err(ReadError::NoTables {
            file: source.to_owned(),
            table,
            format: format.name(),
        });
    }
    match format {
        RuleFormat::Classbench => classbench::read(source, text, schema, options),
        RuleFormat::Rules => rules::read(source, text, schema, options, loader),
        RuleFormat::Json => rules::json::read(source, text, schema, options, loader),
        RuleFormat::Ovs => ovs::read(source, text, schema, options),
    }
}

/// Reads rules from a file. A gzip file is unpacked.
///
/// # Errors
/// [`ReadError`]: the file cannot be read, is not UTF-8, or has problems.
pub fn read_policy_file(
    path: &Path,
    format: Option<RuleFormat>,
    schema: Option<&SchemaChoice>,
    options: &ReadOptions,
) -> Result<Loaded<Policy>, ReadError> {
    let limit = FileLimit::TEXT.with_bytes(options.max_bytes);
    let text = read_text_file(path, limit)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut loader = |name: &str| read_schema_file(&folder.join(name));
    let source = path.display().to_string();
    read_policy_with(&source, &text, format, schema, options, &mut loader)
}

fn unknown_format(source: &str, text: &str) -> ReadError {
    let first = text::lines(text).find(|(_, line)| !text::is_blank(line));
    let message = match first {
        None => "there is no rule, so the format cannot be detected".to_owned(),
        Some((number, line)) => format!(
            "line {number} is of no known format: {}",
            text::quoted(line.trim())
        ),
    };
    ReadError::Format {
        file: source.to_owned(),
        found: message,
        expected: "a file of the format classbench, rules, json or ovs, or to be told which it is"
            .to_owned(),
    }
}

/// Writes a policy in a format.
///
/// # Errors
/// [`WriteError`] if the format cannot express rules of this schema, or if writing fails.
/// A rule that the format can express only in part is not an error; the report lists it.
pub fn write_policy(
    policy: &Policy,
    format: RuleFormat,
    out: &mut dyn io::Write,
) -> Result<WriteReport, WriteError> {
    write_statements(policy, &[], format, out)
}

/// Writes a policy in a format. Neighbouring rules of one statement become one line with lists
/// of values, if the format has lists and file order gives the rules their priorities and ids.
///
/// `statement_of_rule` has a number of the statement of each rule, in the order of
/// [`Policy::ids`]. Neighbours with equal numbers are of one statement.
///
/// # Errors
/// As for [`write_policy`].
pub fn write_statements(
    policy: &Policy,
    statement_of_rule: &[u32],
    format: RuleFormat,
    out: &mut dyn io::Write,
) -> Result<WriteReport, WriteError> {
    match format {
        RuleFormat::Classbench => classbench::write(policy, out),
        RuleFormat::Rules => rules::write_statements(policy, statement_of_rule, None, out),
        RuleFormat::Json => rules::write_json(policy, statement_of_rule, out),
        RuleFormat::Ovs => ovs::write(policy, out),
    }
}

/// A report of the differences between a policy and its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// The number of rules in the policy.
    pub rules: usize,
    /// The number of lines with rules in the file.
    pub lines: usize,
    /// The differences between the policy and the file.
    pub notes: Vec<WriteNote>,
    /// The rules that the file lacks, or that match fewer headers in the file. The notes
    /// with [`Effect::Changed`] count the same rules by reason.
    pub losses: Losses,
}

impl WriteReport {
    /// True if reading the file gives the same policy again.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.notes.iter().all(|note| note.effect == Effect::Exact)
    }

    fn lose(&mut self, policy: &Policy, id: RuleId, left_out: bool, why: impl Into<String>) {
        self.losses.push(|| Loss {
            id,
            name: policy.rule_name(id).map(str::to_owned),
            left_out,
            why: why.into(),
        });
    }

    fn note(&mut self, effect: Effect, count: usize, text: String) {
        if count > 0 {
            self.notes.push(WriteNote {
                effect,
                count,
                text,
            });
        }
    }
}

impl fmt::Display for WriteReport {
    /// Writes one sentence per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} written as {}",
            text::counted(self.rules, "rule"),
            text::counted(self.lines, "line")
        )?;
        for note in &self.notes {
            write!(f, "\n{}", note.text)?;
        }
        Ok(())
    }
}

/// A difference between a policy and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteNote {
    /// The effect of the difference for a reader of the file.
    pub effect: Effect,
    /// The number of rules or names concerned.
    pub count: usize,
    /// A sentence that describes the difference.
    pub text: String,
}

/// The effect of a [`WriteNote`] for a reader of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// No effect: a remark on the notation in the file.
    Exact,
    /// Equal decisions, expressed differently: more lines, other priorities or numbers, or
    /// without names of rules or actions.
    Restated,
    /// Different decisions for some headers.
    Changed,
}

/// The reason for which a policy cannot be written in a format.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The format cannot express rules of that schema.
    #[error("rules of schema `{schema}` cannot be written as {format}; it takes {takes}")]
    Schema {
        /// The format.
        format: RuleFormat,
        /// The policy's schema.
        schema: String,
        /// The schemas that the format supports.
        takes: &'static str,
    },
    /// The policy has more different priorities than the format supports.
    #[error("{found} different priorities; {format} has only {limit}")]
    TooManyPriorities {
        /// The format.
        format: RuleFormat,
        /// The number of different priorities in the policy.
        found: usize,
        /// The maximum number of different priorities.
        limit: usize,
    },
    /// Writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Returns a line as [`Loaded::rule_lines`] stores it. A file of more lines than that is
/// larger than any limit on text.
fn line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// Returns the id that a rule has by its position in the file, unless its line gives an id.
fn rule_number(source: &str, index: usize, line: usize) -> Result<RuleId, ReadError> {
    u32::try_from(index)
        .ok()
        .and_then(|number| RuleId::new(number).ok())
        .ok_or_else(|| ReadError::Limit {
            file: source.to_owned(),
            line,
            limit: RuleId::MAX.index() + 1,
            what: "rules",
        })
}

/// Returns the error for more rules or headers than the caller allows.
fn limit_reached(
    source: &str,
    line: usize,
    options: &ReadOptions,
    what: &'static str,
) -> ReadError {
    ReadError::Limit {
        file: source.to_owned(),
        line,
        limit: options.limit,
        what,
    }
}

/// Returns an error if there are more lines of rules than the limit and bad lines are not
/// skipped. This check needs no memory, as no rule has been loaded yet.
fn check_count<'t>(
    source: &str,
    count: usize,
    mut lines: impl Iterator<Item = (usize, &'t str)>,
    options: &ReadOptions,
) -> Result<(), ReadError> {
    if options.skip_bad || count <= options.limit {
        return Ok(());
    }
    let line = lines.nth(options.limit).map_or(0, |(number, _)| number);
    Err(limit_reached(source, line, options, "rules"))
}

#[cfg(test)]
mod tests;
