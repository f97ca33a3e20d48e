//! Files of rules, of headers and of schemas.
//!
//! | format | reads | writes | made for |
//! |---|---|---|---|
//! | [`classbench`] | five-tuple rules, IPv4 and IPv6 | the same | exchange with the tools of the literature |
//! | [`rules`] | rules of any schema, names, actions | everything a [`Policy`] holds | people |
//! | [`ovs`] | flows as `ovs-ofctl` prints and takes them | the same | switches |
//! | [`trace`] | headers, with expected rules if there are any | the same | classifying and checking |
//! | [`schema_file`] | schemas in TOML | the same | headers that are not built in |
//!
//! # What a reader promises
//!
//! A reader takes a text that is in memory and does no input of its own; the
//! functions that end in `_file` open the file, unpack it if it is gzip, and
//! check that it is UTF-8. A bad line never stops a reader: it lists the
//! [problems](crate::diagnostic::Problem) of the file, one for each bad line,
//! and loads nothing, unless it is told to keep the good lines. No input makes
//! a reader panic, and none makes it take more memory than
//! [`limits`](crate::limits) allow. Line ends may be `\n` or `\r\n`, the last one may be
//! missing, and a byte order mark at the start is skipped.
//!
//! A rule's number in its file counts from 0 over all lines that are rules,
//! bad ones that are skipped included, so a number in a report always means the
//! same line. Where a format has no priorities the first line wins: rule `i` of
//! `n` has priority `n - i`.
//!
//! # What a writer promises
//!
//! Whatever a format cannot say is either said another way or left out, and
//! both are listed and counted in the [`WriteReport`]. Rules that are lost, so
//! that some headers are decided otherwise, are named one by one, with the
//! reason: [`WriteReport::losses`].

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
    /// Our own, for people: [`rules`].
    Rules,
    /// Flows of Open vSwitch: [`ovs`].
    Ovs,
}

impl RuleFormat {
    /// All formats.
    pub const ALL: [RuleFormat; 3] = [RuleFormat::Classbench, RuleFormat::Rules, RuleFormat::Ovs];

    /// The format's name on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RuleFormat::Classbench => "classbench",
            RuleFormat::Rules => "rules",
            RuleFormat::Ovs => "ovs",
        }
    }

    /// The format of that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<RuleFormat> {
        RuleFormat::ALL.into_iter().find(|f| f.name() == name)
    }

    /// The format that a text is in, judged by its first lines; `None` when
    /// they look like none.
    ///
    /// Lines that are empty or start with `#` are passed over. Then a line that
    /// starts with `@` is ClassBench; one with `actions=`, or a reply's heading,
    /// is a flow; one that starts with `schema` or `actions` or has a `field=value` is ours.
    #[must_use]
    pub fn detect(text: &str) -> Option<RuleFormat> {
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
}

impl SchemaChoice {
    /// The choice of that name: a built-in schema or `dual-5tuple`.
    #[must_use]
    pub fn named(name: &str) -> Option<SchemaChoice> {
        if name == Policy::DUAL_STACK {
            return Some(SchemaChoice::DualStack);
        }
        Schema::built_in(name).map(SchemaChoice::Single)
    }

    /// The names that [`named`](SchemaChoice::named) knows.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        let mut names = Schema::BUILT_IN.to_vec();
        names.push(Policy::DUAL_STACK);
        names
    }

    /// The choice that a policy was made with, if it is one.
    #[must_use]
    pub fn of(policy: &Policy) -> Option<SchemaChoice> {
        let schemas: Vec<_> = policy.schemas().cloned().collect();
        match schemas.as_slice() {
            [only] => Some(SchemaChoice::Single(Arc::clone(only))),
            both if both == SchemaChoice::DualStack.schemas() => Some(SchemaChoice::DualStack),
            _ => None,
        }
    }

    /// The schema's name, or that of the combination.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            SchemaChoice::Single(schema) => schema.name(),
            SchemaChoice::DualStack => Policy::DUAL_STACK,
        }
    }

    /// The schemas, one for each part of a policy.
    #[must_use]
    pub fn schemas(&self) -> Vec<Arc<Schema>> {
        match self {
            SchemaChoice::Single(schema) => vec![Arc::clone(schema)],
            SchemaChoice::DualStack => vec![Schema::ipv4_5tuple(), Schema::ipv6_5tuple()],
        }
    }

    /// A policy over these schemas, without rules.
    #[must_use]
    pub fn policy(&self) -> Policy {
        match self {
            SchemaChoice::Single(schema) => Policy::single(schema),
            SchemaChoice::DualStack => Policy::dual_stack(),
        }
    }
}

/// Gets the schema that a rule file names by a path, such as
/// `schema "my.toml"`. The path is as it stands in the file; it is relative to
/// the file.
pub type SchemaLoader<'a> = dyn FnMut(&str) -> Result<Arc<Schema>, ReadError> + 'a;

/// Reads rules from a text.
///
/// `source` is the file's name in messages. Without a `format` it is
/// [detected](RuleFormat::detect), without a `schema` it follows from the text.
/// A file that names a schema file is refused here, as this function opens
/// nothing: see [`read_policy_with`] and [`read_policy_file`].
///
/// # Errors
/// [`ReadError`]: the problems of the text, or what it is as a whole.
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
                "this text was not read from a file, so schema files beside it cannot be found",
            ),
        })
    };
    read_policy_with(source, text, format, schema, options, &mut loader)
}

/// Reads rules from a text, with a way to get the schema files that it names.
///
/// # Errors
/// [`ReadError`]: the problems of the text or of a schema file, or what the
/// text is as a whole.
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
        RuleFormat::Ovs => ovs::read(source, text, schema, options),
    }
}

/// Reads rules from a file; one that is gzip is unpacked.
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
    let found = match first {
        None => "there is no rule, so the format cannot be told".to_owned(),
        Some((number, line)) => format!(
            "line {number} is of no known format: {}",
            text::quoted(line.trim())
        ),
    };
    ReadError::Format {
        file: source.to_owned(),
        found,
        expected: "a file of the format classbench, rules or ovs, or to be told which it is"
            .to_owned(),
    }
}

/// Writes a policy.
///
/// # Errors
/// [`WriteError`] when the format has no way to say rules of this schema, or
/// writing fails. What it can say only in part is no error but stands in the
/// report.
pub fn write_policy(
    policy: &Policy,
    format: RuleFormat,
    out: &mut dyn io::Write,
) -> Result<WriteReport, WriteError> {
    match format {
        RuleFormat::Classbench => classbench::write(policy, out),
        RuleFormat::Rules => rules::write(policy, None, out),
        RuleFormat::Ovs => ovs::write(policy, out),
    }
}

/// What became of a policy on its way into a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// The rules that were to be written.
    pub rules: usize,
    /// The lines that hold them now.
    pub lines: usize,
    /// What does not stand in the file as it stood in the policy.
    pub notes: Vec<WriteNote>,
    /// The rules that the file does not say, or says for fewer headers. The
    /// notes with [`Effect::Changed`] count the same rules by reason.
    pub losses: Losses,
}

impl WriteReport {
    /// Whether reading the file gives the same policy again.
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
    /// One sentence a line.
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

/// One thing that does not stand in a file as it stood in the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteNote {
    /// What it means for a reader of the file.
    pub effect: Effect,
    /// How many rules, or names, it happened to.
    pub count: usize,
    /// A sentence that says it.
    pub text: String,
}

/// What a [`WriteNote`] means for a reader of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing: a remark on how it is said there.
    Exact,
    /// The same decisions by other means: more lines, other priorities or
    /// numbers, or without what the decisions are called.
    Restated,
    /// Other decisions for some headers.
    Changed,
}

/// A policy cannot be written in a format.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The format has no way to say rules of that schema.
    #[error("rules of schema `{schema}` cannot be written as {format}; it takes {takes}")]
    Schema {
        /// The format.
        format: RuleFormat,
        /// The policy's schema.
        schema: String,
        /// The schemas that the format can say.
        takes: &'static str,
    },
    /// There are more different priorities than the format has numbers for.
    #[error("{found} different priorities; {format} has only {limit}")]
    TooManyPriorities {
        /// The format.
        format: RuleFormat,
        /// How many there are.
        found: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The number that rules have by their position, unless they say otherwise.
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

/// One rule or header more than the caller allows.
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

/// An error if there are so many lines of rules that one of them must be bad or
/// one too many. Found before anything is held in memory.
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
