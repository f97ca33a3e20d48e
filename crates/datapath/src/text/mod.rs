//! A pipeline as text: flow entries, groups and meters as `ovs-ofctl` takes them, in one
//! file, and how tables are configured.
//!
//! ```text
//! # A comment. A line is a flow, a group, a meter or a table's configuration.
//! table_id=1,max_entries=1000,eviction
//! meter=1,pktps,burst,bands=type=drop,rate=100,burst_size=10
//! group_id=1,type=select,bucket=weight:1,actions=output:1,bucket=weight:2,actions=output:2
//! table=0,priority=10,tcp,nw_dst=10.0.0.0/8,tp_dst=80 actions=push_vlan:0x8100,goto_table:1
//! table=1,priority=0 actions=group:1
//! ```
//! [`read`] makes messages of a text, [`load`] carries them out as one bundle. Either
//! says of everything that is wrong in which line and column it is.

mod actions;
mod fields;
mod flow;
mod group;
mod meter;
mod scan;
mod table;

use std::fmt;
use std::time::Duration;

use crate::pipeline::{Message, Pipeline};
use scan::Fault;

/// One thing that is wrong in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The column of the first character that is wrong, from 1.
    pub column: usize,
    /// How many characters are; 0 where something is missing.
    pub length: usize,
    /// What is there, or why it cannot be.
    pub found: String,
    /// What should be there, or what to do; empty where `found` says that.
    pub expected: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.found)?;
        match self.expected.is_empty() {
            true => Ok(()),
            false => write!(f, "; expected {}", self.expected),
        }
    }
}

/// A message, and the line that it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The line, from 1.
    pub line: usize,
    /// What it says.
    pub message: Message,
}

/// Reads the messages of a text, all of which add something.
///
/// # Errors
/// Everything that is wrong, line by line.
pub fn read(text: &str) -> Result<Vec<Located>, Vec<Problem>> {
    let (mut messages, mut problems) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        match read_line(content) {
            Ok(message) => messages.push(Located {
                line: number + 1,
                message,
            }),
            Err(fault) => problems.push(fault.in_line(number + 1, line)),
        }
    }
    match problems.is_empty() {
        true => Ok(messages),
        false => Err(problems),
    }
}

fn read_line(line: &str) -> Result<Message, Fault<'_>> {
    let (word, rest) = scan::first_word(line);
    match word {
        "flow" | "group" | "meter" => {
            let (command, after) = scan::first_word(rest);
            let rest = if command == "add" { after } else { rest };
            match word {
                "flow" => flow::read(rest).map(Message::Flow),
                "meter" => meter::read(rest).map(Message::Meter),
                _ => group::read(rest).map(Message::Group),
            }
        }
        _ if line.starts_with("group_id") => group::read(line).map(Message::Group),
        _ if line.starts_with("table_id") => table::read(line).map(Message::Table),
        _ if line.starts_with("meter=") => meter::read(line).map(Message::Meter),
        _ => flow::read(line).map(Message::Flow),
    }
}

/// Carries the messages of a text out, all or none. Returns them.
///
/// # Errors
/// Everything that is wrong with the text; or the first message that the pipeline
/// refuses, and why. Nothing is changed then.
pub fn load(
    text: &str,
    pipeline: &mut Pipeline,
    now: Duration,
) -> Result<Vec<Located>, Vec<Problem>> {
    let located = read(text)?;
    let messages: Vec<Message> = located.iter().map(|one| one.message.clone()).collect();
    match pipeline.apply(&messages, now) {
        Ok(_) => Ok(located),
        Err(refused) => {
            let line = located[refused.index()].line;
            let text = text.lines().nth(line - 1).unwrap_or_default();
            Err(vec![Problem {
                line,
                column: 1,
                length: text.trim_end().chars().count(),
                found: refused.error().to_string(),
                expected: String::new(),
            }])
        }
    }
}
