//! Errors: one enum for each class of operation.
//!
//! Every message has the value found, the value expected and the position.
//! Readers of files add the line and column.

mod column;

pub use column::ColumnError;

use std::fmt;

use thiserror::Error;

use crate::model::match_kind::MatchKind;

/// Formats a number and a noun: `1 rule`, `2 rules`, `2 matches`.
fn counted(count: &dyn fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    match noun {
        _ if count == "1" => format!("1 {noun}"),
        _ if noun.ends_with("ch") => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

/// A list of fields is not a valid schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The list is empty.
    #[error("a schema needs at least one field; this one has no field")]
    NoFields,
    /// The list is too long.
    #[error("{found} fields; a schema has at most {limit}")]
    TooManyFields {
        /// The number of fields.
        found: usize,
        /// The maximum number of fields.
        limit: usize,
    },
    /// A name is empty or has an invalid character.
    #[error(
        "field {position} has the name {name:?}; a name is made of letters, digits, `_`, `-` and `.`"
    )]
    BadName {
        /// The field's position, from 0.
        position: usize,
        /// Its name.
        name: String,
    },
    /// A name is reserved in rule files.
    #[error("the field name `{name}` is reserved for rule files; choose another")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// Two fields have the same name.
    #[error("the field name `{name}` is given twice")]
    RepeatedName {
        /// The name.
        name: String,
    },
    /// Two fields have the same role.
    #[error("fields `{first}` and `{second}` both have the role {role}; at most one may")]
    RepeatedRole {
        /// The role.
        role: &'static str,
        /// The first field that has it.
        first: String,
        /// The second field that has it.
        second: String,
    },
    /// A width is out of range.
    #[error("field `{field}` is {found} bits wide; expected 1 to {limit}")]
    BadWidth {
        /// The field.
        field: String,
        /// Its width.
        found: u32,
        /// The largest width.
        limit: u32,
    },
    /// A value format does not suit the field's width.
    #[error("field `{field}` is {} wide and cannot be written as {format}", counted(.width, "bit"))]
    BadFormat {
        /// The field.
        field: String,
        /// The format's name.
        format: &'static str,
        /// The field's width.
        width: u32,
    },
    /// All fields together are too wide.
    #[error("the fields have {found} bits together; a schema has at most {limit}")]
    TooManyBits {
        /// The number of bits.
        found: u32,
        /// The maximum number of bits.
        limit: u32,
    },
}

/// A text is not a valid header.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderTextError {
    /// A word is not `field=value`, or the text is empty.
    #[error(
        "`{text}` is not a header; expected field=value pairs with spaces or commas between them"
    )]
    NoPair {
        /// The word, or the whole text.
        text: String,
    },
    /// The schema has no field with this name.
    #[error("{schema} has no field `{name}`; its fields are {}", .fields.join(", "))]
    UnknownField {
        /// The schema's name.
        schema: String,
        /// The name in the text.
        name: String,
        /// The names of the schema's fields.
        fields: Vec<String>,
    },
    /// A field has two values.
    #[error("the header says `{name}` twice")]
    RepeatedField {
        /// The field.
        name: String,
    },
    /// A text is not a value in the field's format.
    #[error("{name}: `{text}` is not a value of the field; expected {expected}")]
    BadValue {
        /// The field.
        name: String,
        /// The text.
        text: String,
        /// The format of the field's values.
        expected: &'static str,
    },
    /// A value has more bits than its field.
    #[error("{name}: {text} does not fit in {}", counted(.width, "bit"))]
    ValueTooLarge {
        /// The field.
        name: String,
        /// The text.
        text: String,
        /// The width of the field in bits.
        width: u32,
    },
    /// A required field is missing.
    #[error("the header does not say `{name}`")]
    MissingField {
        /// The field.
        name: &'static str,
    },
}

/// A list of matches is not a valid rule of the schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The numbers of matches and fields differ.
    #[error("{} for a schema of {}", counted(.found, "match"), counted(.expected, "field"))]
    WrongFieldCount {
        /// The number of matches.
        found: usize,
        /// The number of fields in the schema.
        expected: usize,
    },
    /// A number does not fit its field.
    #[error("{field}: {value} does not fit in {}", counted(.width, "bit"))]
    ValueTooLarge {
        /// The field.
        field: String,
        /// The number.
        value: String,
        /// The field's width.
        width: u32,
    },
    /// A prefix is longer than its field.
    #[error("{field}: prefix length /{length} is longer than the field's {}", counted(.width, "bit"))]
    PrefixTooLong {
        /// The field.
        field: String,
        /// The prefix length.
        length: u32,
        /// The field's width.
        width: u32,
    },
    /// A range ends before it begins.
    #[error("{field}: the range {low}-{high} is inverted; the lower end comes first")]
    InvertedRange {
        /// The field.
        field: String,
        /// The lower end.
        low: String,
        /// The upper end.
        high: String,
    },
    /// The field's kind does not allow this match.
    #[error("{field}: {found} is no {kind} match, and the schema allows no other here")]
    WrongKind {
        /// The field.
        field: String,
        /// The field's kind.
        kind: MatchKind,
        /// The given match.
        found: String,
    },
    /// The id is `u32::MAX`, which stands for "no rule".
    #[error("rule id {number} is too large; the largest is {}", u32::MAX - 1)]
    IdTooLarge {
        /// The number.
        number: u32,
    },
    /// The rule has no id.
    #[error("the rule has no id; set one")]
    MissingId,
    /// The schema has no field with this name.
    #[error("{schema} has no field `{field}`; its fields are {known}")]
    UnknownField {
        /// The name.
        field: String,
        /// The schema.
        schema: String,
        /// The names of its fields.
        known: String,
    },
    /// A field is given more than once.
    #[error("{field} is given twice; a rule demands one thing of a field")]
    RepeatedField {
        /// The field.
        field: String,
    },
    /// An address is not as wide as its field.
    #[error("{field}: {found} has {bits} bits, the field {width}")]
    WrongAddress {
        /// The field.
        field: String,
        /// The kind of address.
        found: &'static str,
        /// The address's width in bits.
        bits: u32,
        /// The field's width in bits.
        width: u32,
    },
    /// A rule has addresses of both families.
    #[error("{ipv4} demands an IPv4 address and {ipv6} an IPv6 address; no header has both")]
    MixedFamilies {
        /// A field that demands an IPv4 address.
        ipv4: String,
        /// A field that demands an IPv6 address.
        ipv6: String,
    },
    /// A number is negative.
    #[error("{field}: {value} is negative; fields hold numbers from 0 on")]
    Negative {
        /// The field.
        field: String,
        /// The number.
        value: i128,
    },
}

/// A list of values is not a valid header of the schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The numbers of values and fields differ.
    #[error("{} for a schema of {}", counted(.found, "value"), counted(.expected, "field"))]
    WrongFieldCount {
        /// The number of values.
        found: usize,
        /// The number of fields in the schema.
        expected: usize,
    },
    /// A number does not fit its field.
    #[error("{field}: {value} does not fit in {}", counted(.width, "bit"))]
    ValueTooLarge {
        /// The field.
        field: String,
        /// The number.
        value: String,
        /// The field's width.
        width: u32,
    },
    /// Packed words are not a whole number of keys.
    #[error("{words} words are not a whole number of keys of {key_words} words")]
    PartialKey {
        /// The number of words.
        words: usize,
        /// The number of words in a key.
        key_words: usize,
    },
}

/// An engine, or a live table of engines, cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The engine specification is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The engine does not support the rules' schema.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An option requires something that this host does not have.
    #[error("engine `{engine}`: {option}={value} is not possible here: {reason}")]
    Unavailable {
        /// The engine.
        engine: &'static str,
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// The reason why the host does not support the value.
        reason: String,
    },
    /// There are more rules than the caller allows.
    #[error("{}; the limit is {limit}", counted(.found, "rule"))]
    TooManyRules {
        /// The number of rules.
        found: usize,
        /// The maximum number of rules.
        limit: usize,
    },
    /// The engine needs more memory than the caller allows.
    #[error("the engine needs {needed} bytes; the limit is {limit}")]
    TooManyBytes {
        /// The number of bytes needed.
        needed: usize,
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The build needs more memory at one moment than the caller allows.
    #[error(
        "while {stage}, building needs {needed} bytes at once, working memory included; \
         the limit on peak bytes is {limit}; raise it, choose an engine that needs less, or \
         divide the rules among several classifiers"
    )]
    TooManyPeakBytes {
        /// The build stage.
        stage: &'static str,
        /// The number of bytes needed at this moment; later stages may need
        /// more.
        needed: usize,
        /// The maximum number of bytes.
        limit: usize,
    },
    /// There are more rules than the engine can address, whatever the caller's
    /// limits.
    #[error(
        "{rules} rules; engine `{engine}` can hold {limit} of this schema; \
         choose another engine, or divide the rules among several classifiers"
    )]
    EngineFull {
        /// The engine.
        engine: String,
        /// The number of rules.
        rules: usize,
        /// The maximum number of rules in the engine.
        limit: usize,
    },
    /// Updates are required, but the engine does not support them.
    #[error(
        "engine `{engine}` takes no updates, so there can be no live table of it; these take \
         updates: {dynamic}"
    )]
    Static {
        /// The engine.
        engine: String,
        /// The engines that support updates.
        dynamic: String,
    },
    /// The progress callback cancelled the work.
    #[error("stopped while {stage}, at {done} of {total}")]
    Stopped {
        /// The stage of the work.
        stage: &'static str,
        /// The number of steps done in this stage.
        done: usize,
        /// The number of steps in this stage.
        total: usize,
    },
}

/// An engine does not support a schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("engine `{engine}` does not serve field `{field}`: {reason}; {instead}")]
pub struct Refusal {
    /// The engine's name or specification.
    pub engine: String,
    /// The field.
    pub field: String,
    /// The reason why it is not supported.
    pub reason: String,
    /// An alternative that supports the field.
    pub instead: String,
}

/// The position of an error in an engine specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecPlace {
    text: Box<str>,
    byte: usize,
}

impl SpecPlace {
    pub(crate) fn new(text: &str, byte: usize) -> SpecPlace {
        SpecPlace {
            text: text.into(),
            byte,
        }
    }

    /// Returns the whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the column in bytes, from 1. At the end of the text, it is the
    /// text's length plus 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.byte + 1
    }
}

impl fmt::Display for SpecPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, column {}", self.text, self.column())
    }
}

/// A text is not an engine specification. Each message is one line: the text,
/// the column, the text found there and the allowed text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A name, an option or a value is missing.
    #[error("{at}: expected {expected}, found {}", found_char(*found))]
    Empty {
        /// The position of the error.
        at: SpecPlace,
        /// The character at this position; `None` at the end.
        found: Option<char>,
        /// The missing item.
        expected: &'static str,
    },
    /// No engine has that name.
    #[error("{at}: there is no engine `{found}`; there are {known}{}", near_name(*near))]
    UnknownEngine {
        /// The start of the name.
        at: SpecPlace,
        /// The name.
        found: String,
        /// The available engines.
        known: String,
        /// The most similar name, if one is similar.
        near: Option<&'static str>,
    },
    /// The engine has no such option.
    #[error("{at}: engine `{engine}` has no option `{found}`; it has {known}{}", near_name(*near))]
    UnknownOption {
        /// The start of the option.
        at: SpecPlace,
        /// The engine.
        engine: &'static str,
        /// The option.
        found: String,
        /// The available options.
        known: String,
        /// The most similar name, if one is similar.
        near: Option<&'static str>,
    },
    /// An option does not accept this value.
    #[error("{at}: engine `{engine}`: expected {expected} for `{option}`, found `{found}`")]
    BadValue {
        /// The start of the value.
        at: SpecPlace,
        /// The engine.
        engine: &'static str,
        /// The option.
        option: &'static str,
        /// The value.
        found: String,
        /// The accepted values.
        expected: String,
    },
    /// An option has no value.
    #[error("{at}: expected `=VALUE` after `{option}`")]
    NoValue {
        /// The end of the option.
        at: SpecPlace,
        /// The option.
        option: String,
    },
    /// An option is given twice.
    #[error("{at}: option `{option}` is given twice, first at column {first}; give it once")]
    Repeated {
        /// The second occurrence of the option.
        at: SpecPlace,
        /// The option.
        option: &'static str,
        /// The column of its first occurrence.
        first: usize,
    },
    /// An inner engine is given to an engine that wraps none.
    #[error("{at}: engine `{engine}` wraps no other engine; expected no parentheses, found `(`")]
    UnexpectedInner {
        /// The position of the parenthesis.
        at: SpecPlace,
        /// The engine.
        engine: &'static str,
    },
    /// An engine that wraps another engine is given no inner engine.
    #[error(
        "{at}: engine `{engine}` wraps another one; expected {allowed}, in parentheses: \
         `{engine}(INNER)`"
    )]
    MissingInner {
        /// The position where the inner engine is expected.
        at: SpecPlace,
        /// The engine.
        engine: &'static str,
        /// The engines that it can wrap.
        allowed: &'static str,
    },
    /// The outer engine cannot wrap this inner engine.
    #[error("{at}: engine `{engine}` cannot wrap `{found}`; expected {allowed}")]
    WrongInner {
        /// The start of the inner engine.
        at: SpecPlace,
        /// The outer engine.
        engine: &'static str,
        /// The inner engine.
        found: &'static str,
        /// The engines that the outer engine can wrap.
        allowed: &'static str,
    },
    /// A parenthesis is not closed.
    #[error("{at}: expected `)` for the `(` at column {opened}, found the end")]
    Unclosed {
        /// The end of the text.
        at: SpecPlace,
        /// The column of the parenthesis.
        opened: usize,
    },
    /// Extra text follows a specification.
    #[error("{at}: expected {expected}, found `{found}`")]
    Unexpected {
        /// The start of the extra text.
        at: SpecPlace,
        /// The extra text.
        found: String,
        /// The text allowed at this position.
        expected: &'static str,
    },
    /// Engines are nested too deeply.
    #[error("{at}: expected at most {limit} engines in each other, found one more")]
    TooDeep {
        /// The position of the first parenthesis that is too deep.
        at: SpecPlace,
        /// The maximum number of nested engines.
        limit: usize,
    },
}

impl SpecError {
    /// Returns the position of the error in the text.
    #[must_use]
    pub fn place(&self) -> &SpecPlace {
        match self {
            SpecError::Empty { at, .. }
            | SpecError::UnknownEngine { at, .. }
            | SpecError::UnknownOption { at, .. }
            | SpecError::BadValue { at, .. }
            | SpecError::NoValue { at, .. }
            | SpecError::Repeated { at, .. }
            | SpecError::UnexpectedInner { at, .. }
            | SpecError::MissingInner { at, .. }
            | SpecError::WrongInner { at, .. }
            | SpecError::Unclosed { at, .. }
            | SpecError::Unexpected { at, .. }
            | SpecError::TooDeep { at, .. } => at,
        }
    }

    /// Returns the column in bytes, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.place().column()
    }
}

fn found_char(found: Option<char>) -> String {
    match found {
        Some(character) => format!("`{character}`"),
        None => "the end".to_owned(),
    }
}

fn near_name(near: Option<&'static str>) -> String {
    match near {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

/// A rule of a policy was given an invalid list of parts. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PartError {
    /// The list has no part.
    #[error("no part is given for the rule; a rule stands in at least one part")]
    Missing,
    /// The policy has no such part.
    #[error("rule {id}: there is no part {part}; the policy's parts are 0 to {}", .parts - 1)]
    Unknown {
        /// The rule's id.
        id: u32,
        /// The part's position, from 0.
        part: usize,
        /// The number of parts in the policy.
        parts: usize,
    },
    /// The list has one part twice.
    #[error("rule {id}: part {part} is given twice; a rule stands in a part at most once")]
    Repeated {
        /// The rule's id.
        id: u32,
        /// The part's position, from 0.
        part: usize,
    },
    /// The rule has different ids in different parts.
    #[error("rule {id} has the id {found} in part {part}; one rule has one id in all parts")]
    DifferentId {
        /// The id in the part named first.
        id: u32,
        /// The id in the other part.
        found: u32,
        /// The other part's position, from 0.
        part: usize,
    },
}

/// A transaction, or one rule, is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The transaction's rules are packed for another schema.
    #[error(
        "change {change}: the rule belongs to schema `{found}`, the rules here to `{expected}`"
    )]
    WrongSchema {
        /// The change's position in the transaction, from 0.
        change: usize,
        /// The rule's schema.
        found: String,
        /// The classifier's schema.
        expected: String,
    },
    /// An insert has an id that is already in use.
    #[error("change {change}: cannot insert rule {id}: a rule with that id is there already")]
    DuplicateId {
        /// The change's position in the transaction, from 0.
        change: usize,
        /// The rule's id.
        id: u32,
    },
    /// A remove or modify has an id that is not in use.
    #[error("change {change}: cannot {operation} rule {id}: no rule has that id")]
    UnknownId {
        /// The change's position in the transaction, from 0.
        change: usize,
        /// `remove` or `modify`.
        operation: &'static str,
        /// The rule's id.
        id: u32,
    },
    /// A rule of a policy has an invalid list of parts.
    #[error("change {change}: {error}")]
    Parts {
        /// The change's position in the list, from 0.
        change: usize,
        /// The error in the list of parts.
        #[source]
        error: PartError,
    },
    /// There would be more rules than the caller allows.
    #[error("change {change}: {}; the limit is {limit}", counted(.found, "rule"))]
    TooManyRules {
        /// The change's position in the transaction, from 0.
        change: usize,
        /// The number of rules after the change.
        found: usize,
        /// The maximum number of rules.
        limit: usize,
    },
    /// There would be more rules than the engine can address, whatever the
    /// caller's limits.
    #[error(
        "change {change}: {rules} rules; engine `{engine}` can hold {limit} of this schema; \
         remove rules first, choose another engine, or divide the rules among several classifiers"
    )]
    EngineFull {
        /// The change's position in the transaction, from 0.
        change: usize,
        /// The engine.
        engine: String,
        /// The number of rules after the change.
        rules: usize,
        /// The maximum number of rules in the engine.
        limit: usize,
    },
    /// The engine holds more memory than the caller allows.
    #[error(
        "change {change}: no room for more rules: the engine holds {held} bytes; the limit is {limit}"
    )]
    TooManyBytes {
        /// The position of the first change that adds a rule, from 0.
        change: usize,
        /// The number of bytes held, index and rules together.
        held: usize,
        /// The maximum number of bytes.
        limit: usize,
    },
}

/// A live table's `try_apply` did not accept a transaction. Nothing was
/// changed. `E` is the type of the reason for a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TryApplyError<E = UpdateError> {
    /// The transaction is refused; retrying will not help.
    #[error(transparent)]
    Refused(E),
    /// The writer would have to wait for a reader that pinned an older version.
    /// Retrying later may succeed.
    #[error(
        "a reader that pinned an older version is in the way: {pending} changes are pending, \
         and with {changes} more they would exceed the limit of {limit}"
    )]
    WouldWait {
        /// The number of accepted changes that are not visible yet.
        pending: usize,
        /// The number of changes in the transaction.
        changes: usize,
        /// The maximum number of pending changes.
        limit: usize,
    },
}

impl UpdateError {
    /// Returns the position of the refused change, from 0.
    #[must_use]
    pub fn change(&self) -> usize {
        match self {
            UpdateError::WrongSchema { change, .. }
            | UpdateError::DuplicateId { change, .. }
            | UpdateError::UnknownId { change, .. }
            | UpdateError::Parts { change, .. }
            | UpdateError::TooManyRules { change, .. }
            | UpdateError::EngineFull { change, .. }
            | UpdateError::TooManyBytes { change, .. } => *change,
        }
    }

    /// Returns the error with its change position replaced by
    /// `number(position)`. For callers that split a list of changes: the
    /// position in a piece becomes the position in the whole list.
    #[must_use]
    pub fn renumbered(mut self, number: impl FnOnce(usize) -> usize) -> UpdateError {
        match &mut self {
            UpdateError::WrongSchema { change, .. }
            | UpdateError::DuplicateId { change, .. }
            | UpdateError::UnknownId { change, .. }
            | UpdateError::Parts { change, .. }
            | UpdateError::TooManyRules { change, .. }
            | UpdateError::EngineFull { change, .. }
            | UpdateError::TooManyBytes { change, .. } => *change = number(*change),
        }
        self
    }
}
