//! A pipeline as text: flow entries, groups and meters in the syntax of `ovs-ofctl`, ports,
//! and configurations of tables, in one file. Scripts of changes.
//!
//! ```text
//! # A comment. A line is a flow, a group, a meter, a port or a table's configuration.
//! port=1,name=eth0,link=down,speed=10G
//! table_id=1,max_entries=1000,eviction
//! meter=1,pktps,burst,bands=type=drop,rate=100,burst_size=10
//! group_id=1,type=select,bucket=weight:1,actions=output:1,bucket=weight:2,actions=output:2
//! table=0,priority=10,tcp,nw_dst=10.0.0.0/8,tp_dst=80 actions=push_vlan:0x8100,goto_table:1
//! table=1,priority=0 actions=group:1
//! ```
//!
//! [`classyard_text::ofctl`] describes the syntax. Lines may be in any order, so a dump of
//! flows may precede a dump of groups. Tables and ports are first. Then meters and groups
//! are added, each group after the groups that it refers to. Flows are added last.
//!
//! [`read`] converts a text to messages. [`load`] carries them out as one bundle, and the
//! engines get the entries one by one. [`fill`] fills an empty pipeline piece by piece, which
//! needs little memory in addition to the text, and builds each engine once at the end.
//! A [`Script`] has changes that apply while packets are processed.
//! [`packet()`] makes a packet that has the fields of a match.
//! Each problem has its line and column. The first [`SHOWN`](classyard_text::SHOWN)
//! problems are kept, the others are only counted.

mod actions;
mod fields;
mod fill;
mod flow;
mod group;
mod meter;
mod one;
mod order;
mod packet;
mod port;
mod script;
mod table;

use std::collections::HashMap;
use std::time::Duration;

use classyard_text::line::quoted;
pub use classyard_text::ofctl::Due;
use classyard_text::ofctl::{Command, PortLine, PortNames, Statement, StatementKind, statements};
pub use classyard_text::{Fault, Problem, Problems};

pub use fill::{Filled, Lines, fill};
pub use packet::packet;
pub use script::{Script, ScriptChange};

use crate::action::PortNo;

use crate::pipeline::{Message, Pipeline};

/// The name of a text without a file, in messages.
const SOURCE: &str = "pipeline";

/// The expected text in the fault of a refused message.
const ACCEPTED_MESSAGE: &str = "a message that a switch accepts";

/// A message and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The line, from 1.
    pub line: usize,
    /// The message.
    pub message: Message,
}

/// Reads the messages of a text, in the order of the text. Each message adds a flow, a
/// group, a meter or a port, or configures a table.
///
/// # Errors
/// The problems of the text.
pub fn read(text: &str) -> Result<Vec<Located>, Problems> {
    let (mut messages, mut problems) = (Vec::new(), Problems::new(SOURCE));
    let mut reader = Reader::of(text);
    for statement in statements(text) {
        match reader.message(&statement) {
            Ok(message) => messages.push(Located {
                line: statement.number,
                message,
            }),
            Err(fault) => problems.push_fault_of(&statement, fault),
        }
    }
    match problems.is_empty() {
        true => Ok(messages),
        false => Err(problems),
    }
}

/// Reads statements, and keeps state that they share.
struct Reader<'t> {
    ports: PortNames<'t>,
    /// Flows with a value that has bits outside of its mask.
    stray_bits: usize,
    /// The lines of ports so far.
    port_lines: HashMap<PortNo, usize>,
    /// The lines of names so far.
    name_lines: HashMap<&'t str, usize>,
}

impl<'t> Reader<'t> {
    fn of(text: &'t str) -> Reader<'t> {
        Reader {
            ports: PortNames::of(text),
            stray_bits: 0,
            port_lines: HashMap::new(),
            name_lines: HashMap::new(),
        }
    }

    fn message(&mut self, statement: &Statement<'t>) -> Result<Message, Fault<'t>> {
        let text = statement.text;
        match statement.kind {
            StatementKind::Flow => {
                let read = flow::read(text, Command::Add, &mut self.ports)?;
                self.stray_bits += usize::from(read.has_stray_bits);
                Ok(Message::Flow(read.message))
            }
            StatementKind::Group => group::read(text, &mut self.ports).map(Message::Group),
            StatementKind::Meter => meter::read(text).map(Message::Meter),
            StatementKind::Table => table::read(text).map(Message::Table),
            StatementKind::Port => self.port(statement),
        }
    }

    /// Reads a port. Each number and each name may occur once.
    fn port(&mut self, statement: &Statement<'t>) -> Result<Message, Fault<'t>> {
        let line = PortLine::parse(statement.text)?;
        let (port, state) = port::described(&line)?;
        let again = |part: &'t str, noun: &str, earlier: usize| {
            let description = format!("{noun} {} again, after line {earlier}", quoted(part));
            Fault::new(
                part,
                description,
                "each number and each name of a port once",
            )
        };
        if let Some(&earlier) = self.port_lines.get(&port) {
            return Err(again(line.port, "port", earlier));
        }
        if let Some(name) = line.name
            && let Some(earlier) = self.name_lines.insert(name, statement.number)
        {
            self.name_lines.insert(name, earlier);
            return Err(again(name, "name", earlier));
        }
        self.port_lines.insert(port, statement.number);
        Ok(Message::Port(port, Some(state)))
    }
}

/// Carries out all messages of a text or none, in the order that the [module](self)
/// describes. Returns the messages in that order.
///
/// # Errors
/// The problems of the text; or the first message that the pipeline refuses, with the
/// reason. Then nothing is changed.
pub fn load(text: &str, pipeline: &mut Pipeline, now: Duration) -> Result<Vec<Located>, Problems> {
    let located = order::ordered(read(text)?);
    let messages: Vec<Message> = located.iter().map(|line| line.message.clone()).collect();
    match pipeline.apply(&messages, now) {
        Ok(_) => Ok(located),
        Err(refusal) => {
            let mut problems = Problems::new(SOURCE);
            let number = located[refusal.index()].line;
            let mut statements = statements(text);
            if let Some(statement) = statements.find(|statement| statement.number == number) {
                problems
                    .push_fault_of(&statement, refused(&statement, refusal.error().to_string()));
            }
            Err(problems)
        }
    }
}

/// Returns the fault of a statement that the pipeline refuses.
fn refused<'t>(statement: &Statement<'t>, why: String) -> Fault<'t> {
    Fault::new(statement.text, why, ACCEPTED_MESSAGE)
}
