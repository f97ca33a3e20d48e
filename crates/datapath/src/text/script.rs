//! Scripts: changes of a pipeline, each at a time of a capture or before a packet of it.
//!
//! # Format
//! ```text
//! # A line has a moment and a change. `#` starts a comment.
//! at=1.5s      add table=0,priority=9,tcp,tp_dst=80 actions=output:2
//! at=200ms     delete table=0,tcp                    # of any priority
//! before=100   modify_strict table=0,priority=9,tcp,tp_dst=80 actions=drop
//! before=2000  port=1,link=down                      # or port=eth0
//! before=2000  group modify group_id=1,type=ff,bucket=watch_port:2,actions=output:2
//! before=2000  delete meter=1
//! ```
//! [`classyard_text::ofctl`] describes the syntax of changes.
//!
//! # Order
//! A change `at` a time is due before the first packet with that time or a later one. A
//! change `before` a packet has the time of that packet; if the switch cannot process this
//! packet, the time of the next packet. The changes that are due before a packet apply in
//! the order of their times, and at equal times in the order of the lines. So the lines may
//! be in any order.
//!
//! # Cost
//! A script holds its text and 48 bytes for each line. Reading a line twice takes less
//! memory than holding its message. With `n` changes, reading takes `O(n log n)` time, and
//! [`due`](Script::due) takes `O(1)` for a packet without changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use classyard_text::line::lines;
use classyard_text::ofctl::{Command, CommandLine, Due, PortLine, PortNames, StatementKind};
use classyard_text::{Fault, Problems};

use super::{ACCEPTED_MESSAGE, flow, group, meter, port, table};
use crate::action::PortNo;
use crate::error::OpenFlowError;
use crate::field::Field;
use crate::flow::{self as flows, FlowMod};
use crate::pipeline::{Message, Ports};

/// The place of a line with a change in the text.
#[derive(Clone, Copy)]
struct Line {
    number: usize,
    start: usize,
    length: usize,
    due: Due,
}

/// A change that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptChange {
    /// The time of the change, after the first packet.
    pub time: Duration,
    index: usize,
}

/// A script of changes, and the changes that were not due yet.
pub struct Script {
    source: String,
    text: String,
    lines: Vec<Line>,
    port_numbers: PortNames<'static>,
    named_ports: BTreeSet<PortNo>,
    /// The changes at times that are not due yet, the latest first.
    timed: Vec<usize>,
    /// The changes before packets that are not due yet, the latest first.
    numbered: Vec<usize>,
}

impl Script {
    /// Reads a script. `source` names it in messages. `port_numbers` has the numbers of
    /// ports by name; no other names are accepted.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use std::time::Duration;
    ///
    /// use classyard_datapath::text::Script;
    ///
    /// let text = "before=3 delete\nat=1s add actions=drop\n".to_owned();
    /// let mut script = Script::read("changes", text, BTreeMap::new())?;
    /// assert!(script.due(1, Duration::ZERO).is_empty());
    /// let due = script.due(3, Duration::from_secs(2));
    /// let lines: Vec<usize> = due.iter().map(|change| script.line(change)).collect();
    /// assert_eq!(lines, [2, 1], "in the order of their times");
    /// # Ok::<(), classyard_datapath::text::Problems>(())
    /// ```
    ///
    /// # Errors
    /// The problems of the text.
    pub fn read(
        source: &str,
        text: String,
        port_numbers: BTreeMap<String, u32>,
    ) -> Result<Script, Problems> {
        let mut names = PortNames::known(port_numbers);
        let (mut script_lines, mut named_ports) = (Vec::new(), BTreeSet::new());
        let mut problems = Problems::new(source);
        for (number, line) in lines(&text) {
            let content = line.split('#').next().unwrap_or(line).trim();
            if content.is_empty() {
                continue;
            }
            match read_change(content, &mut names) {
                Ok((due, change)) => {
                    change.add_ports(&mut named_ports);
                    script_lines.push(Line {
                        number,
                        start: (content.as_ptr() as usize) - (text.as_ptr() as usize),
                        length: content.len(),
                        due,
                    });
                }
                Err(fault) => problems.push_fault(fault, number, line),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let (timed, numbered) = queues(&script_lines);
        Ok(Script {
            source: source.to_owned(),
            text,
            lines: script_lines,
            port_numbers: names,
            named_ports,
            timed,
            numbered,
        })
    }

    /// The name of the script.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// True if the script has no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the ports that flows and groups of the script name. A port that only its own
    /// line names is not among them.
    pub fn named_ports(&self) -> impl Iterator<Item = PortNo> {
        self.named_ports.iter().copied()
    }

    /// Returns the changes that are due before a packet, in their order.
    /// `packet` is the number of the packet, counted from 1, and `time` is its time after
    /// the first packet. Each change is returned once.
    pub fn due(&mut self, packet: u64, time: Duration) -> Vec<ScriptChange> {
        let mut changes = Vec::new();
        let lines = &self.lines;
        let mut pop = |queue: &mut Vec<usize>| {
            while let Some(&index) = queue.last() {
                let due_time = match lines[index].due {
                    Due::At(at) if at <= time => at,
                    Due::Before(number) if number <= packet => time,
                    _ => break,
                };
                queue.pop();
                changes.push(ScriptChange {
                    time: due_time,
                    index,
                });
            }
        };
        pop(&mut self.timed);
        pop(&mut self.numbered);
        changes.sort_unstable_by_key(|change| (change.time, change.index));
        changes
    }

    /// Returns the changes that were not due yet, in the order of the lines: the line, the
    /// moment, and the text of the change.
    pub fn waiting(&self) -> impl Iterator<Item = (usize, Due, &str)> {
        let queues = self.timed.iter().chain(&self.numbered);
        let mut indexes: Vec<usize> = queues.copied().collect();
        indexes.sort_unstable();
        indexes.into_iter().map(|index| {
            let line = &self.lines[index];
            (line.number, line.due, change_text(self.content(index)))
        })
    }

    /// Returns the line number of a change, counted from 1.
    #[must_use]
    pub fn line(&self, change: &ScriptChange) -> usize {
        self.lines[change.index].number
    }

    /// Returns the text of a change, without its moment.
    #[must_use]
    pub fn text(&self, change: &ScriptChange) -> &str {
        change_text(self.content(change.index))
    }

    fn content(&self, index: usize) -> &str {
        let Line { start, length, .. } = self.lines[index];
        &self.text[start..start + length]
    }

    /// Returns the message of a change. A line about a port keeps the values that it does
    /// not have, which are taken from `ports`.
    ///
    /// # Errors
    /// The problem of a change whose port is unknown.
    pub fn message(&mut self, change: &ScriptChange, ports: &Ports) -> Result<Message, Problems> {
        let Line { start, length, .. } = self.lines[change.index];
        let content = &self.text[start..start + length];
        let message = read_change(content, &mut self.port_numbers)
            .and_then(|(_, change)| change.message(ports));
        message.map_err(|fault| self.problems(change, fault))
    }

    /// Returns the problem of a change that the pipeline refuses.
    #[must_use]
    pub fn refused(&self, change: &ScriptChange, why: &OpenFlowError) -> Problems {
        let text = self.text(change);
        self.problems(change, Fault::new(text, why.to_string(), ACCEPTED_MESSAGE))
    }

    fn problems(&self, change: &ScriptChange, fault: Fault<'_>) -> Problems {
        let Line { start, number, .. } = self.lines[change.index];
        let line_start = self.text[..start].rfind('\n').map_or(0, |end| end + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default();
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        let mut problems = Problems::new(&self.source);
        problems.push_fault(fault, number, line);
        problems
    }
}

/// Returns the changes at times and the changes before packets, the latest of each first.
fn queues(lines: &[Line]) -> (Vec<usize>, Vec<usize>) {
    let is_timed = |index: &usize| matches!(lines[*index].due, Due::At(_));
    let (mut timed, mut numbered): (Vec<usize>, Vec<usize>) = (0..lines.len()).partition(is_timed);
    let key = |index: &usize| match lines[*index].due {
        Due::At(time) => (u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), *index),
        Due::Before(packet) => (packet, *index),
    };
    for queue in [&mut timed, &mut numbered] {
        queue.sort_unstable_by_key(|index| std::cmp::Reverse(key(index)));
    }
    (timed, numbered)
}

/// Returns the text of a line without its moment.
fn change_text(content: &str) -> &str {
    CommandLine::parse(content).map_or(content, |line| line.change)
}

/// A change that was read: a message, or values of a port.
enum Change<'t> {
    Message(Message),
    Port(PortLine<'t>, PortNo),
}

impl<'t> Change<'t> {
    fn message(self, ports: &Ports) -> Result<Message, Fault<'t>> {
        match self {
            Change::Message(message) => Ok(message),
            Change::Port(line, number) => {
                let state = port::changed(&line, number, ports)?;
                Ok(Message::Port(number, Some(state)))
            }
        }
    }

    /// Adds the ports that a flow or a group names.
    fn add_ports(&self, ports: &mut BTreeSet<PortNo>) {
        match self {
            Change::Message(Message::Flow(FlowMod {
                command: flows::Command::Delete { .. },
                ..
            })) => {}
            Change::Message(Message::Flow(message)) => {
                let in_port = message.flow.get(Field::InPort);
                let in_port = in_port.and_then(|port| u32::try_from(port.value).ok());
                ports.extend(in_port.map(PortNo));
                ports.extend(message.instructions.output_ports());
            }
            Change::Message(Message::Group(message)) => ports.extend(message.group.named_ports()),
            _ => {}
        }
    }
}

/// Reads a line without comment. Returns its moment and its change.
fn read_change<'t>(
    content: &'t str,
    names: &mut PortNames<'_>,
) -> Result<(Due, Change<'t>), Fault<'t>> {
    let line = CommandLine::parse(content)?;
    let command = line.command.unwrap_or(Command::Add);
    let message = match line.kind {
        StatementKind::Flow => Message::Flow(flow::read(line.text, command, names)?.message),
        StatementKind::Group => Message::Group(group::read_command(line.text, command, names)?),
        StatementKind::Meter => Message::Meter(meter::read_command(line.text, command)?),
        StatementKind::Table => Message::Table(table::read(line.text)?),
        StatementKind::Port => {
            let port_line = PortLine::parse(line.text)?;
            let port = port::named(&port_line, names)?;
            return Ok((line.due, Change::Port(port_line, port)));
        }
    };
    Ok((line.due, Change::Message(message)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::GroupCommand;
    use crate::pipeline::{Pipeline, PortState};
    use crate::table_settings::TableSettings;

    fn script(text: &str) -> Script {
        let names = BTreeMap::from([("eth0".to_owned(), 3)]);
        Script::read("s", text.to_owned(), names).unwrap()
    }

    fn lines_due(script: &mut Script, packet: u64, milliseconds: u64) -> Vec<usize> {
        let due = script.due(packet, Duration::from_millis(milliseconds));
        due.iter().map(|change| script.line(change)).collect()
    }

    #[test]
    fn changes_are_due_once_in_the_order_of_their_times() {
        let mut script = script(
            "\u{feff}at=2s delete # unsorted\r\n\r\n# nothing\nat=1s delete\nbefore=3 delete\n\
             at=2s delete\nbefore=2 delete\nbefore=90 delete\nat=100s group delete",
        );
        assert_eq!(script.len(), 7);
        assert_eq!(lines_due(&mut script, 1, 0), [0; 0]);
        assert_eq!(lines_due(&mut script, 2, 999), [7]);
        // At the time of packet 4, line 5 has the time of the packet. A packet may be missing.
        assert_eq!(lines_due(&mut script, 4, 2_000), [4, 1, 5, 6]);
        assert_eq!(
            lines_due(&mut script, 5, 1_000),
            [0; 0],
            "the clock goes back"
        );
        let waiting: Vec<_> = script.waiting().collect();
        let last = Due::At(Duration::from_secs(100));
        assert_eq!(
            waiting,
            [(8, Due::Before(90), "delete"), (9, last, "group delete")]
        );
        for empty in ["", "\n\n", "# nothing", "\u{feff}"] {
            assert!(
                Script::read("s", empty.to_owned(), BTreeMap::new())
                    .unwrap()
                    .is_empty()
            );
        }
    }

    #[test]
    fn lines_about_ports_keep_other_values() {
        let engine = classyard::EngineSpec::parse("linear").unwrap();
        let mut pipeline = Pipeline::new(TableSettings::new(engine).unwrap());
        let flooded = PortState {
            no_flood: true,
            ..PortState::default()
        };
        let port = Message::Port(PortNo(3), Some(flooded));
        pipeline.apply(&[port], Duration::ZERO).unwrap();
        let mut script = script("before=1 port=eth0,link=down,speed=1G\n before=1  port=7,flood");
        let due = script.due(1, Duration::ZERO);
        let message = script.message(&due[0], pipeline.ports()).unwrap();
        assert_eq!(message.to_string(), "port=3,link=down,speed=1G,no-flood");
        let problems = script.message(&due[1], pipeline.ports()).unwrap_err();
        assert_eq!(
            problems.to_string(),
            "s:2:17: there is no port 7; expected one of the ports 3"
        );
        let error = OpenFlowError::new(crate::error::ErrorCode::BadPort, "no".to_owned());
        let refused = script.refused(&due[0], &error);
        assert_eq!(refused.shown()[0].column, 10);
    }

    #[test]
    fn every_kind_of_change_is_read() {
        let mut script = script(
            "before=1 add in_port=8 actions=output:eth0\n\
             before=1 modify_strict priority=1,ip actions=2\n\
             before=1 delete in_port=9,out_port=4\n\
             before=1 group modify group_id=1,type=ff,bucket=watch_port:5,actions=6\n\
             before=1 delete group_id=all\nbefore=1 meter delete\nbefore=1 table_id=1,eviction",
        );
        let named: Vec<u32> = script.named_ports().map(|port| port.0).collect();
        assert_eq!(named, [2, 3, 5, 6, 8], "deletions name no port");
        let ports = Ports::default();
        let due = script.due(1, Duration::ZERO);
        let messages = due
            .iter()
            .map(|change| script.message(change, &ports).unwrap());
        let messages: Vec<Message> = messages.collect();
        let is_modified = matches!(&messages[3], Message::Group(group)
            if group.command == GroupCommand::Modify);
        assert!(is_modified, "{:?}", messages[3]);
        let deletion = crate::group::GroupMod::delete(crate::action::GroupId::ALL);
        assert_eq!(messages[4], Message::Group(deletion));
        let deletion = crate::meter::MeterMod::delete(crate::meter::MeterId::ALL);
        assert_eq!(messages[5], Message::Meter(deletion));
        let Message::Flow(deletion) = &messages[2] else {
            panic!("{:?}", messages[2]);
        };
        assert_eq!(deletion.table, crate::flow::TableId::ALL);
        assert_eq!(deletion.out_port, Some(PortNo(4)));
    }

    #[test]
    fn problems_have_line_and_column() {
        let problems = |text: &str| {
            let read = Script::read("s", text.to_owned(), BTreeMap::new());
            read.err().unwrap().to_string()
        };
        for (text, start) in [
            (
                "\nat=1s add actions=fly",
                "s:2:19: unsupported action `fly`",
            ),
            ("  before=1 add tp_dst=1 actions=drop\r\n", "s:1:16: "),
            ("before=1 port=1,name=a", "s:1:22: a name in a script"),
            ("before=1 port=eth0", "s:1:15: no port has the name `eth0`"),
            ("before=1 port=flood", "s:1:15: `flood` is not a port"),
            (
                "before=1 delete group_id=1,type=all",
                "s:1:28: `type=all` in the deletion",
            ),
            ("before=1 delete table=254x", "s:1:23: "),
            (
                "before=1 add table=255 actions=drop",
                "s:1:20: there is no table 255",
            ),
        ] {
            let problem = problems(text);
            assert!(problem.starts_with(start), "{problem}");
        }
        let many = problems(&"at=1s fly\n".repeat(50));
        assert!(many.ends_with("s: 30 more problems"), "{many}");
    }
}
