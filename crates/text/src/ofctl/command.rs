//! Lines of a script: a time or a packet, and a change of a switch.
//!
//! ```text
//! at=1.5s delete table=0,tcp,tp_dst=80
//! before=2000 port=1,link=down
//! before=2000 group modify group_id=1,type=ff,bucket=watch_port:2,actions=output:2
//! ```
//! The change is a line of a pipeline with a command before it, as `ovs-ofctl bundle`
//! takes it. Without a command, a line of a pipeline adds, and a line about a port changes
//! the values that it has.

use std::time::Duration;

use super::port::decimal;
use super::scan::first_word;
use super::statement::StatementKind;
use crate::Fault;
use crate::line::quoted;

/// The start of a line, in messages.
const EXPECTED_START: &str = "`at=TIME` such as `at=1.5s`, or `before=N` for the packet with \
    number N, and then a change";

/// Units of time, each with its nanoseconds. A unit that ends as another one comes first.
const TIME_UNITS: [(&str, u64); 4] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
];

/// The command of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// `add`
    Add,
    /// `modify`, or `modify_strict`
    Modify {
        /// True for `modify_strict`.
        strict: bool,
    },
    /// `delete`, or `delete_strict`
    Delete {
        /// True for `delete_strict`.
        strict: bool,
    },
}

impl Command {
    /// Returns the command with a name, or `None`.
    fn from_name(name: &str) -> Option<Command> {
        Some(match name {
            "add" => Command::Add,
            "modify" => Command::Modify { strict: false },
            "modify_strict" => Command::Modify { strict: true },
            "delete" => Command::Delete { strict: false },
            "delete_strict" => Command::Delete { strict: true },
            _ => return None,
        })
    }
}

/// The moment of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Due {
    /// At a time after the first packet.
    At(Duration),
    /// Before the packet with a number, counted from 1.
    Before(u64),
}

/// A line of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLine<'t> {
    /// The moment of the change.
    pub due: Due,
    /// The subject of the change.
    pub kind: StatementKind,
    /// The command; `None` if the line has none.
    pub command: Option<Command>,
    /// The text after moment and command.
    pub text: &'t str,
    /// The text after the moment.
    pub change: &'t str,
}

impl<'t> CommandLine<'t> {
    /// Reads a line. A comment must have been removed, and white space at its ends.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use classyard_text::ofctl::{Command, CommandLine, Due, StatementKind};
    ///
    /// let line = CommandLine::parse("at=1.5s delete table=0,tcp").unwrap();
    /// assert_eq!(line.due, Due::At(Duration::from_millis(1500)));
    /// assert_eq!(line.command, Some(Command::Delete { strict: false }));
    /// assert_eq!((line.kind, line.text), (StatementKind::Flow, "table=0,tcp"));
    /// ```
    ///
    /// # Errors
    /// A [`Fault`] about a part of the line.
    pub fn parse(line: &'t str) -> Result<CommandLine<'t>, Fault<'t>> {
        let (word, change) = first_word(line);
        let due = match word.split_once('=') {
            Some(("at", value)) => Due::At(time(value)?),
            Some(("before", value)) => Due::Before(packet(value)?),
            _ => {
                let description = format!("{} without a moment", quoted(word));
                return Err(Fault::new(word, description, EXPECTED_START));
            }
        };
        if change.is_empty() {
            let expected = "a change such as `add table=0,tcp actions=drop` or `port=1,link=down`";
            return Err(Fault::missing(line, expected));
        }
        let (word, after_kind) = first_word(change);
        let named = match word {
            "flow" => Some(StatementKind::Flow),
            "group" => Some(StatementKind::Group),
            "meter" => Some(StatementKind::Meter),
            "port" => Some(StatementKind::Port),
            _ => None,
        };
        let unread = named.map_or(change, |_| after_kind);
        let (word, after_command) = first_word(unread);
        let command = Command::from_name(word);
        let text = command.map_or(unread, |_| after_command);
        let kind = named.unwrap_or_else(|| StatementKind::of(text));
        let line = CommandLine {
            due,
            kind,
            command,
            text,
            change,
        };
        line.check_command(word)?;
        Ok(line)
    }

    /// Refuses commands that the subject does not have.
    fn check_command(&self, word: &'t str) -> Result<(), Fault<'t>> {
        let (noun, commands) = match (self.kind, self.command) {
            (StatementKind::Flow, _) | (_, None | Some(Command::Modify { strict: false })) => {
                return Ok(());
            }
            (
                StatementKind::Group | StatementKind::Meter,
                Some(Command::Add | Command::Delete { strict: false }),
            ) => return Ok(()),
            (StatementKind::Group, _) => ("a group", "`add`, `modify` or `delete`"),
            (StatementKind::Meter, _) => ("a meter", "`add`, `modify` or `delete`"),
            (StatementKind::Port, _) => (
                "a port",
                "`modify` or no command, such as `port=1,link=down`; a script does not add or \
                 delete ports",
            ),
            (StatementKind::Table, _) => ("a table", "`modify` or no command"),
        };
        let description = format!("{} of {noun}", quoted(word));
        Err(Fault::new(word, description, commands))
    }
}

/// Reads a time such as `1.5s`.
fn time(text: &str) -> Result<Duration, Fault<'_>> {
    const EXPECTED: &str = "a number with its unit s, ms, us or ns, such as `1.5s`";
    let fault = |found: String| Err(Fault::new(text, found, EXPECTED));
    let mut units = TIME_UNITS.into_iter();
    let read = units.find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)));
    let Some((number, scale)) = read else {
        return match decimal(text) {
            Some(_) => fault(format!("{} has no unit", quoted(text))),
            None => fault(format!("{} is not a time", quoted(text))),
        };
    };
    let Some((whole, decimals)) = decimal(number) else {
        return fault(format!("{} is not a time", quoted(text)));
    };
    let power = 10_u64.pow(u32::try_from(decimals.len()).unwrap_or(0));
    let decimals: u64 = decimals.parse().unwrap_or(0);
    // At most nine digits times a billion: no overflow.
    let part = decimals * scale / power;
    let nanoseconds = whole.checked_mul(scale);
    match nanoseconds.and_then(|whole| whole.checked_add(part)) {
        Some(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        None => fault(format!("{} is longer than 584 years", quoted(text))),
    }
}

/// Reads the number of a packet.
fn packet(text: &str) -> Result<u64, Fault<'_>> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if is_number && number > 0 => Ok(number),
        _ => Err(Fault::new(
            text,
            format!("{} is not the number of a packet", quoted(text)),
            "a number from 1",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: &str) -> String {
        let fault = CommandLine::parse(line).unwrap_err();
        fault.at(1, line).to_string()
    }

    #[test]
    fn times_have_units() {
        for (text, nanoseconds) in [
            ("0s", 0),
            ("1.5s", 1_500_000_000),
            ("0.000000001s", 1),
            ("20ms", 20_000_000),
            ("2.5us", 2_500),
            ("7ns", 7),
            ("0.9ns", 0),
            ("18446744073s", 18_446_744_073_000_000_000),
        ] {
            assert_eq!(
                time(text).ok(),
                Some(Duration::from_nanos(nanoseconds)),
                "{text}"
            );
        }
        for bad in [
            "",
            "s",
            "1",
            "-1s",
            "1e3s",
            "1m",
            "1.s",
            ".5s",
            "inf",
            "18446744074s",
            "1 s",
        ] {
            assert!(time(bad).is_err(), "{bad}");
        }
        assert!(fault("at=2 delete").starts_with("1:4: `2` has no unit; expected a number"));
    }

    #[test]
    fn the_subject_follows_from_word_or_key() {
        use Command::{Add, Delete, Modify};
        use StatementKind::{Flow, Group, Meter, Port, Table};
        for (change, kind, command, text) in [
            ("add actions=drop", Flow, Some(Add), "actions=drop"),
            ("actions=drop", Flow, None, "actions=drop"),
            ("delete", Flow, Some(Delete { strict: false }), ""),
            (
                "flow delete_strict arp",
                Flow,
                Some(Delete { strict: true }),
                "arp",
            ),
            (
                "modify_strict ip",
                Flow,
                Some(Modify { strict: true }),
                "ip",
            ),
            ("group_id=1,type=all", Group, None, "group_id=1,type=all"),
            ("group delete", Group, Some(Delete { strict: false }), ""),
            (
                "delete group_id=1",
                Group,
                Some(Delete { strict: false }),
                "group_id=1",
            ),
            (
                "meter modify meter=1",
                Meter,
                Some(Modify { strict: false }),
                "meter=1",
            ),
            ("port=1,link=up", Port, None, "port=1,link=up"),
            (
                "port modify port=1",
                Port,
                Some(Modify { strict: false }),
                "port=1",
            ),
            ("table_id=1,eviction", Table, None, "table_id=1,eviction"),
        ] {
            let line = format!("before=7   {change}");
            let read = CommandLine::parse(&line).unwrap();
            assert_eq!((read.due, read.change), (Due::Before(7), change));
            assert_eq!((read.kind, read.command, read.text), (kind, command, text));
        }
    }

    #[test]
    fn faults_name_the_part() {
        assert!(fault("add actions=drop").starts_with("1:1: `add` without a moment"));
        assert!(fault("before=0 delete").starts_with("1:8: `0` is not the number of a packet"));
        assert!(fault("before=+1 delete").starts_with("1:8: `+1`"));
        assert!(fault("at=1s").starts_with("1:6: the line ends here"));
        assert!(fault("at=1s add port=9").starts_with("1:7: `add` of a port"));
        assert!(
            fault("at=1s group modify_strict group_id=1").contains("`modify_strict` of a group")
        );
        assert!(fault("at=1s delete table_id=1").contains("`delete` of a table"));
    }
}
