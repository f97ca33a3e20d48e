//! The rule format for people.
//!
//! ```text
//! schema dual-5tuple
//! # Staff may use the web.
//! allow           proto=tcp src=10.20.1.0/24 dst=10.20.2.80 dport=443  name=staff-web
//! "output:3,vlan" proto=udp src=2001:db8::/32 dport=5000-5999
//! drop            name=default
//! ```
//!
//! The file is UTF-8 with one rule per line. `#` starts a comment anywhere outside of
//! quotes. A [`Policy`] has no comments, so reading and writing a file again removes them.
//!
//! The first line that is not blank or a comment is `schema NAME`. `NAME` is
//! `ipv4-5tuple`, `ipv6-5tuple`, `openflow15`, `dual-5tuple` or, in quotes, the path of a
//! [schema file](super::schema_file), relative to the rule file. The line may be missing
//! if the caller gives the schema.
//!
//! Lines `actions WORD …` above the first rule declare actions. Built in are `accept`,
//! `allow`, `deny`, `drop`, `log`, `match`, `permit` and `reject`. Any other word is also
//! an action, and a note lists such words. But a word that differs from a known action
//! only by one character or by capitals is a bad line, because it is probably misspelt. A word
//! in quotes is accepted without this check.
//!
//! A rule is `ACTION field=value …`, with optional `name=NAME`, `id=N` and `priority=N`
//! anywhere after the action. Actions and names are words. In quotes they may have any
//! characters, with `\"`, `\\`, `\n`, `\r`, `\t` and `\u{…}`. A field that is left out, or
//! is `*`, may have any value. Values:
//!
//! | form | means |
//! |---|---|
//! | `443`, `0x1bb`, `10.0.0.1`, `tcp` | this value |
//! | `10.0.0.0/8`, `10.0.0.0/255.0.0.0` | the values that start with these bits |
//! | `80-89` | the values from the first to the last |
//! | `0x1&0x3` | the values that agree on the mask's bits |
//! | `+syn-ack` | TCP flags: SYN is set, ACK is not |
//! | `80,443,8000-8999` | the values of a list, of these forms |
//! | `!80,443` | all other values |
//!
//! A condition that one rule of the schema cannot have makes the line several rules with one
//! action and one name: one for each port of a list, or for each prefix of a range of
//! addresses. A line is at most 65,536 rules.
//!
//! All numbers may be decimal or hexadecimal. In `dual-5tuple` and `acl` the addresses of a rule
//! give its family; a list may have addresses of both. A rule without addresses matches both families, unless it has
//! `family=ipv4` or `family=ipv6`. A rule with an address that is a plain number must have
//! a `family`.
//!
//! Without priorities, the first line wins: rule `i` of `n` has priority `n - i`. If the
//! rules have `priority=N`, the highest priority wins, and at equal priority the lowest
//! id. Either all rules must have a priority, or none. A rule without `id=N` has its
//! number in the file, from 0, as its id. Only a line that is one rule may have an id.

use classyard::policy::Policy;

use super::text::{lines, quoted};
use super::value::kind_takes;
use super::{Fault, SchemaChoice, SchemaLoader, check_count};
use crate::diagnostic::{Loaded, Problems, ReadError, ReadOptions};

mod actions;
mod alternatives;
pub(super) mod json;
mod reader;
mod row;
mod token;
mod write;

pub use write::write;
pub(super) use write::{write_json, write_statements};

use actions::Actions;
use reader::Reader;
use token::{next_token, unquote};

/// Reads rules; see the [module](self) for the format.
///
/// # Errors
/// [`ReadError`]: the bad lines, more rules than `options` allow, or the problems of a
/// schema file.
pub fn read(
    source: &str,
    text: &str,
    schema: Option<&SchemaChoice>,
    options: &ReadOptions,
    loader: &mut SchemaLoader<'_>,
) -> Result<Loaded<Policy>, ReadError> {
    let mut problems = Problems::new(source);
    let mut significant = lines(text)
        .filter(|(_, line)| says_something(line))
        .peekable();

    let mut choice = schema.cloned();
    if let Some(&(number, line)) = significant.peek() {
        match schema_line(line, schema, loader) {
            Ok(Some(named)) => {
                choice = Some(named);
                significant.next();
            }
            Ok(None) => {}
            Err(SchemaTrouble::Read(error)) => return Err(error),
            Err(SchemaTrouble::Fault(fault)) => {
                // Without the schema, the reader cannot check the next lines.
                problems.push_fault(fault, number, line);
                return Err(ReadError::Bad(problems));
            }
        }
    }
    let Some(choice) = choice else {
        let Some(&(number, line)) = significant.peek() else {
            return Err(ReadError::Format {
                file: source.to_owned(),
                found: "there is no rule and no schema".to_owned(),
                expected: schema_expectation(),
            });
        };
        let first = line.split_ascii_whitespace().next().unwrap_or(line);
        let message = format!("{} before any `schema` line", quoted(first));
        problems.push(Fault::new(first, message, schema_expectation()).at(number, line));
        return Err(ReadError::Bad(problems));
    };

    let mut actions = Actions::default();
    while let Some(&(number, line)) = significant.peek() {
        match actions.declare(line) {
            Ok(true) => {}
            Ok(false) => break,
            Err(fault) => problems.push_fault(fault, number, line),
        }
        significant.next();
    }

    let count = significant.clone().count();
    check_count(source, count, significant.clone(), options)?;
    let read = |rules: usize| {
        let mut reader = Reader::new(&choice, rules, options, actions.clone());
        let mut problems = problems.clone();
        for (number, line) in significant.clone() {
            reader.read(source, number, line, &mut problems)?;
        }
        Ok::<_, ReadError>((reader, problems))
    };
    let (mut reader, mut problems) = read(count)?;
    if reader.needs_number_of_rules() {
        (reader, problems) = read(reader.rules_of_file())?;
    }
    reader.finish(problems)
}

fn says_something(line: &str) -> bool {
    let first = line.bytes().find(|b| !b.is_ascii_whitespace());
    first.is_some_and(|b| b != b'#')
}

fn schema_expectation() -> String {
    let names = SchemaChoice::names().join(", ");
    format!("`schema NAME` first, where NAME is {names} or a schema file's path in quotes")
}

enum SchemaTrouble<'t> {
    Fault(Fault<'t>),
    Read(ReadError),
}

impl<'t> From<Fault<'t>> for SchemaTrouble<'t> {
    fn from(fault: Fault<'t>) -> SchemaTrouble<'t> {
        SchemaTrouble::Fault(fault)
    }
}

/// Returns the schema that a line names, or `None` if it is not a `schema` line.
fn schema_line<'t>(
    line: &'t str,
    requested: Option<&SchemaChoice>,
    loader: &mut SchemaLoader<'_>,
) -> Result<Option<SchemaChoice>, SchemaTrouble<'t>> {
    let mut unread = line;
    match next_token(&mut unread) {
        Ok(Some(token)) if token.text == "schema" => {}
        _ => return Ok(None),
    }
    let Some(name) = next_token(&mut unread)? else {
        return Err(Fault::missing(line, schema_expectation()).into());
    };
    let unknown = |found| Fault::new(name.text, found, schema_expectation());
    let choice = if name.text.starts_with('"') {
        let path = unquote(name.text)?;
        match loader(&path) {
            Ok(schema) => SchemaChoice::Single(schema),
            Err(ReadError::Io { error, .. }) => {
                return Err(unknown(format!("schema file {}: {error}", quoted(&path))).into());
            }
            Err(other) => return Err(SchemaTrouble::Read(other)),
        }
    } else {
        match SchemaChoice::named(name.text) {
            Some(choice) => choice,
            None => return Err(unknown(format!("unknown schema {}", quoted(name.text))).into()),
        }
    };
    if let Some(requested) = requested.filter(|requested| **requested != choice) {
        return Err(Fault::new(
            name.text,
            format!("the file is for schema `{}`", choice.name()),
            format!("schema `{}`, which was asked for", requested.name()),
        )
        .into());
    }
    if let Some(extra) = next_token(&mut unread)? {
        let fault = Fault::new(extra.text, quoted(extra.text), "nothing after the schema");
        return Err(fault.into());
    }
    Ok(Some(choice))
}
