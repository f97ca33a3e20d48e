//! What can go wrong, one enum for each class of operation.
//!
//! Every message says what was found, what was expected and where; readers of
//! files add the line and the column.

use std::fmt;

use thiserror::Error;

use crate::match_kind::MatchKind;

/// `1 rule`, `2 rules`, `2 matches`.
fn counted(count: &dyn fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    match noun {
        _ if count == "1" => format!("1 {noun}"),
        _ if noun.ends_with("ch") => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

/// A list of fields is no schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The list is empty.
    #[error("a schema needs at least one field; this one has no field")]
    NoFields,
    /// The list is too long.
    #[error("{found} fields; a schema has at most {limit}")]
    TooManyFields {
        /// How many there are.
        found: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A name is empty or has a character that names may not have.
    #[error(
        "field {position} has the name {name:?}; a name is made of letters, digits, `_`, `-` and `.`"
    )]
    BadName {
        /// The field's position, from 0.
        position: usize,
        /// Its name.
        name: String,
    },
    /// A name means something else in rule files.
    #[error("the field name `{name}` is reserved for rule files; choose another")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// Two fields have one name.
    #[error("the field name `{name}` is there twice")]
    RepeatedName {
        /// The name.
        name: String,
    },
    /// Two fields have one role.
    #[error("fields `{first}` and `{second}` both have the role {role}; at most one may")]
    RepeatedRole {
        /// The role.
        role: &'static str,
        /// The first field that has it.
        first: String,
        /// The second.
        second: String,
    },
    /// A width is out of bounds.
    #[error("field `{field}` is {found} bits wide; expected 1 to {limit}")]
    BadWidth {
        /// The field.
        field: String,
        /// Its width.
        found: u32,
        /// The largest width.
        limit: u32,
    },
    /// A way to write values does not go with the width.
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
        /// How many there are.
        found: u32,
        /// How many there may be.
        limit: u32,
    },
}

/// A text cannot be read as a header.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderTextError {
    /// A word is not `field=value`, or the text is empty.
    #[error("`{text}` is no header; expected field=value pairs with spaces or commas between them")]
    NoPair {
        /// The word, or the whole text.
        text: String,
    },
    /// No field has that name.
    #[error("{schema} has no field `{name}`; its fields are {}", .fields.join(", "))]
    UnknownField {
        /// The schema's name.
        schema: String,
        /// The name that the text gives.
        name: String,
        /// The names of the schema's fields.
        fields: Vec<String>,
    },
    /// One field has two values.
    #[error("the header says `{name}` twice")]
    RepeatedField {
        /// The field.
        name: String,
    },
    /// A text is not a value as the field writes it.
    #[error("{name}: `{text}` is no value of the field; expected {expected}")]
    BadValue {
        /// The field.
        name: String,
        /// The text.
        text: String,
        /// What values of the field look like.
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
    /// A field without which the header means nothing is not there.
    #[error("the header does not say `{name}`")]
    MissingField {
        /// The field.
        name: &'static str,
    },
}

/// A list of matches is no rule of its schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Not one match for each field.
    #[error("{} for a schema of {}", counted(.found, "match"), counted(.expected, "field"))]
    WrongFieldCount {
        /// How many matches there are.
        found: usize,
        /// How many fields the schema has.
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
    /// The field's kind has no such match.
    #[error("{field}: {found} is no {kind} match, and the schema allows no other here")]
    WrongKind {
        /// The field.
        field: String,
        /// The field's kind.
        kind: MatchKind,
        /// What was asked for.
        found: String,
    },
    /// The id is the number that means "no rule".
    #[error("rule id {number} is too large; the largest is {}", u32::MAX - 1)]
    IdTooLarge {
        /// The number.
        number: u32,
    },
    /// No id was given.
    #[error("the rule has no id; set one")]
    MissingId,
    /// The schema has no field of that name.
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
    /// An address does not go into a field of that width.
    #[error("{field}: {found} has {bits} bits, the field {width}")]
    WrongAddress {
        /// The field.
        field: String,
        /// What was given.
        found: &'static str,
        /// How many bits that has.
        bits: u32,
        /// The field's width.
        width: u32,
    },
    /// Addresses of both families in one rule.
    #[error("{ipv4} demands an IPv4 address and {ipv6} an IPv6 address; no header has both")]
    MixedFamilies {
        /// A field that demands an IPv4 address.
        ipv4: String,
        /// A field that demands an IPv6 address.
        ipv6: String,
    },
    /// A number is below 0.
    #[error("{field}: {value} is negative; fields hold numbers from 0 on")]
    Negative {
        /// The field.
        field: String,
        /// The number.
        value: i128,
    },
}

/// A list of values is no header of its schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// Not one value for each field.
    #[error("{} for a schema of {}", counted(.found, "value"), counted(.expected, "field"))]
    WrongFieldCount {
        /// How many values there are.
        found: usize,
        /// How many fields the schema has.
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
        /// How many words there are.
        words: usize,
        /// How many words a key has.
        key_words: usize,
    },
}

/// A rule set, or an engine for one, cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The specification of the engine cannot be understood.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The engine does not serve the rules' schema.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An option requires something that this host lacks.
    #[error("engine `{engine}`: {option}={value} is not possible here: {reason}")]
    Unavailable {
        /// The engine.
        engine: &'static str,
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What the host has.
        reason: String,
    },
    /// More rules than the caller allows.
    #[error("{}; the limit is {limit}", counted(.found, "rule"))]
    TooManyRules {
        /// How many there are.
        found: usize,
        /// How many there may be.
        limit: usize,
    },
    /// More memory than the caller allows.
    #[error("the engine needs {needed} bytes; the limit is {limit}")]
    TooManyBytes {
        /// How many are needed.
        needed: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Building takes more memory at once than the caller allows.
    #[error(
        "while {stage}, building needs {needed} bytes at once, working memory included; \
         the limit on peak bytes is {limit}; raise it, choose an engine that needs less, or \
         divide the rules among several classifiers"
    )]
    TooManyPeakBytes {
        /// What was going on.
        stage: &'static str,
        /// How many bytes are needed at this moment; later ones may need more.
        needed: usize,
        /// How many there may be.
        limit: usize,
    },
    /// More rules than the engine can address, whatever the caller allows.
    #[error(
        "{rules} rules; engine `{engine}` can hold {limit} of this schema; \
         choose another engine, or divide the rules among several classifiers"
    )]
    EngineFull {
        /// The engine.
        engine: String,
        /// How many rules there are.
        rules: usize,
        /// How many the engine can hold.
        limit: usize,
    },
    /// Updates are required, but the engine takes none.
    #[error(
        "engine `{engine}` takes no updates, so there can be no live table of it; these take \
         updates: {dynamic}"
    )]
    Static {
        /// The engine.
        engine: String,
        /// The engines that take updates.
        dynamic: String,
    },
    /// The progress observer cancelled the work.
    #[error("stopped while {stage}, at {done} of {total}")]
    Stopped {
        /// What was going on.
        stage: &'static str,
        /// How far it was.
        done: usize,
        /// How far it had to go.
        total: usize,
    },
}

/// An engine does not serve a schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("engine `{engine}` does not serve field `{field}`: {reason}; {instead}")]
pub struct Refusal {
    /// The engine, or its specification.
    pub engine: String,
    /// The field.
    pub field: String,
    /// Why it is not served.
    pub reason: String,
    /// What would work instead.
    pub instead: String,
}

/// Where in the text of an engine's specification something is wrong.
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

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The column, in bytes from 1; one more than the text has bytes for its
    /// end.
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

/// A text is no engine's specification. Messages are one line: the text, the
/// column, what was found there and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A name, an option or a value is missing.
    #[error("{at}: expected {expected}, found {}", found_char(*found))]
    Empty {
        /// Where.
        at: SpecPlace,
        /// The character there; `None` at the end.
        found: Option<char>,
        /// What is missing.
        expected: &'static str,
    },
    /// No engine has that name.
    #[error("{at}: there is no engine `{found}`; there are {known}{}", near_name(*near))]
    UnknownEngine {
        /// Where the name begins.
        at: SpecPlace,
        /// The name.
        found: String,
        /// The engines that there are.
        known: String,
        /// The one whose name is nearest, if one is near.
        near: Option<&'static str>,
    },
    /// The engine has no such option.
    #[error("{at}: engine `{engine}` has no option `{found}`; it has {known}{}", near_name(*near))]
    UnknownOption {
        /// Where the option begins.
        at: SpecPlace,
        /// The engine.
        engine: &'static str,
        /// The option.
        found: String,
        /// The options that there are.
        known: String,
        /// The one whose name is nearest, if one is near.
        near: Option<&'static str>,
    },
    /// An option's value is not one that it takes.
    #[error("{at}: engine `{engine}`: expected {expected} for `{option}`, found `{found}`")]
    BadValue {
        /// Where the value begins.
        at: SpecPlace,
        /// The engine.
        engine: &'static str,
        /// The option.
        option: &'static str,
        /// The value.
        found: String,
        /// What the option takes.
        expected: String,
    },
    /// An option has no value.
    #[error("{at}: expected `=VALUE` after `{option}`")]
    NoValue {
        /// Where the option ends.
        at: SpecPlace,
        /// The option.
        option: String,
    },
    /// An option is given twice.
    #[error("{at}: option `{option}` is given twice, first at column {first}; give it once")]
    Repeated {
        /// Where it is given again.
        at: SpecPlace,
        /// The option.
        option: &'static str,
        /// The column where it is given first.
        first: usize,
    },
    /// There is an inner engine for an engine that wraps none.
    #[error("{at}: engine `{engine}` wraps no other engine; expected no parentheses, found `(`")]
    UnexpectedInner {
        /// Where the parenthesis is.
        at: SpecPlace,
        /// The engine.
        engine: &'static str,
    },
    /// There is no inner engine for an engine that wraps one.
    #[error(
        "{at}: engine `{engine}` wraps another one; expected {allowed}, in parentheses: \
         `{engine}(INNER)`"
    )]
    MissingInner {
        /// Where it should be.
        at: SpecPlace,
        /// The engine.
        engine: &'static str,
        /// Which engines it wraps.
        allowed: &'static str,
    },
    /// The inner engine is not one that the outer one can wrap.
    #[error("{at}: engine `{engine}` cannot wrap `{found}`; expected {allowed}")]
    WrongInner {
        /// Where the inner engine begins.
        at: SpecPlace,
        /// The outer engine.
        engine: &'static str,
        /// The inner engine.
        found: &'static str,
        /// Which engines the outer one wraps.
        allowed: &'static str,
    },
    /// A parenthesis is not closed.
    #[error("{at}: expected `)` for the `(` at column {opened}, found the end")]
    Unclosed {
        /// Where the text ends.
        at: SpecPlace,
        /// The column of the parenthesis.
        opened: usize,
    },
    /// Something comes after a specification that is no part of it.
    #[error("{at}: expected {expected}, found `{found}`")]
    Unexpected {
        /// Where it begins.
        at: SpecPlace,
        /// What it is.
        found: String,
        /// What could come there.
        expected: &'static str,
    },
    /// Too many engines stand in each other.
    #[error("{at}: expected at most {limit} engines in each other, found one more")]
    TooDeep {
        /// Where the parenthesis is that is too many.
        at: SpecPlace,
        /// How many there may be.
        limit: usize,
    },
}

impl SpecError {
    /// Where in the text it is.
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

    /// The column, in bytes from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.place().column()
    }
}

fn found_char(found: Option<char>) -> String {
    match found {
        Some(found) => format!("`{found}`"),
        None => "the end".to_owned(),
    }
}

fn near_name(near: Option<&'static str>) -> String {
    match near {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

/// The parts named for one rule of a policy are not parts that it can stand
/// in. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PartError {
    /// The rule is in no part.
    #[error("no part is given for the rule; a rule stands in at least one part")]
    Missing,
    /// The policy has no such part.
    #[error("rule {id}: there is no part {part}; the policy's parts are 0 to {}", .parts - 1)]
    Unknown {
        /// The rule's id.
        id: u32,
        /// The part's position, from 0.
        part: usize,
        /// How many parts the policy has.
        parts: usize,
    },
    /// One part is named twice.
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

/// A transaction, or one rule of it, is refused. Nothing was changed.
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
        /// The classifier's.
        expected: String,
    },
    /// An insert of an id that is there.
    #[error("change {change}: cannot insert rule {id}: a rule with that id is there already")]
    DuplicateId {
        /// The change's position in the transaction, from 0.
        change: usize,
        /// The rule's id.
        id: u32,
    },
    /// A remove or modify of an id that is not there.
    #[error("change {change}: cannot {operation} rule {id}: no rule has that id")]
    UnknownId {
        /// The change's position in the transaction, from 0.
        change: usize,
        /// `remove` or `modify`.
        operation: &'static str,
        /// The rule's id.
        id: u32,
    },
    /// A policy's rule is given for parts that it cannot stand in.
    #[error("change {change}: {error}")]
    Parts {
        /// The change's position in the list, from 0.
        change: usize,
        /// What is wrong with the parts.
        #[source]
        error: PartError,
    },
    /// More rules than the caller allows.
    #[error("change {change}: {}; the limit is {limit}", counted(.found, "rule"))]
    TooManyRules {
        /// The change's position in the transaction, from 0.
        change: usize,
        /// How many rules there would be.
        found: usize,
        /// How many there may be.
        limit: usize,
    },
    /// More rules than the engine can address, whatever the caller allows.
    #[error(
        "change {change}: {rules} rules; engine `{engine}` can hold {limit} of this schema; \
         remove rules first, choose another engine, or divide the rules among several classifiers"
    )]
    EngineFull {
        /// The change's position in the transaction, from 0.
        change: usize,
        /// The engine.
        engine: String,
        /// How many rules there would be.
        rules: usize,
        /// How many the engine can hold.
        limit: usize,
    },
    /// More memory than the caller allows.
    #[error(
        "change {change}: no room for more rules: the engine holds {held} bytes; the limit is {limit}"
    )]
    TooManyBytes {
        /// The first change that adds a rule, by its position from 0.
        change: usize,
        /// How many bytes there are, index and rules together.
        held: usize,
        /// How many bytes there may be.
        limit: usize,
    },
}

/// A transaction was not accepted by a live table's `try_apply`. Nothing was
/// changed. `E` says why a transaction cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TryApplyError<E = UpdateError> {
    /// The transaction is refused; trying again makes no difference.
    #[error(transparent)]
    Refused(E),
    /// The writer would wait for a reader that pinned an older version; trying
    /// again later may succeed.
    #[error(
        "a reader that pinned an older version is in the way: {pending} changes are pending, \
         and with {changes} more they would exceed the limit of {limit}"
    )]
    WouldWait {
        /// Changes that are accepted and not visible yet.
        pending: usize,
        /// Changes of the transaction.
        changes: usize,
        /// How many changes may be pending.
        limit: usize,
    },
}

impl UpdateError {
    /// The position of the change that was refused, from 0.
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

    /// The same error in another numbering of changes, for layers that pass on
    /// parts of a longer list.
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
