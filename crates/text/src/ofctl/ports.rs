//! Port names, and the numbers assigned to them.

use std::collections::{BTreeMap, HashSet};

use super::port::{PortLine, RESERVED_PORTS, is_bare_name, port_number};
use super::scan::number;
use crate::Fault;
use crate::line::{counted_verb, lines, quoted};

/// The maximum number of names that a note lists.
const NAMES_SHOWN: usize = 8;

/// Numbers of the ports that a file gives by name.
///
/// A line such as `port=1,name=eth0` gives a port its name. A dump has the names of ports,
/// not their numbers: in order of first use, each other name gets the lowest number that no
/// port of the file has.
#[derive(Clone, Debug, Default)]
pub struct PortNames<'t> {
    text: &'t str,
    /// The named ports. Names that no line gives are added when they are used.
    numbers: BTreeMap<String, u32>,
    /// The names that no line gives, in order of first use.
    assigned: Vec<String>,
    /// The numbers of all ports in `text`; empty before the first name gets a number.
    used: HashSet<u32>,
    last: u32,
    /// True after the names in `text` were read.
    is_scanned: bool,
    /// True if names that are not in `numbers` are refused.
    is_closed: bool,
}

impl<'t> PortNames<'t> {
    /// Returns the names of a text. Numbers of ports in `text` are never assigned to other
    /// names.
    #[must_use]
    pub fn of(text: &'t str) -> PortNames<'t> {
        PortNames {
            text,
            ..PortNames::default()
        }
    }

    /// Returns the names of known ports. All other names are refused.
    #[must_use]
    pub fn known(numbers: BTreeMap<String, u32>) -> PortNames<'t> {
        PortNames {
            numbers,
            is_scanned: true,
            is_closed: true,
            ..PortNames::default()
        }
    }

    /// Returns the names so far, with their numbers.
    #[must_use]
    pub fn into_numbers(mut self) -> BTreeMap<String, u32> {
        self.scan();
        self.numbers
    }

    /// Returns the number of a port, given as a number, a reserved name or a name, which
    /// may be quoted. Messages name `field`.
    ///
    /// # Errors
    /// A [`Fault`] about the text.
    pub fn port<'l>(&mut self, text: &'l str, field: &str) -> Result<u32, Fault<'l>> {
        let mut reserved = RESERVED_PORTS.iter();
        if let Some((_, number)) = reserved.find(|(name, _)| text.eq_ignore_ascii_case(name)) {
            return Ok(*number);
        }
        let quoted_name = text
            .strip_prefix('"')
            .and_then(|name| name.strip_suffix('"'));
        let name = quoted_name.unwrap_or(text);
        let is_name = quoted_name.is_some_and(|name| !name.is_empty() && !name.contains('"'))
            || is_bare_name(text);
        if is_name {
            return self.number_of(name).ok_or_else(|| {
                let description = format!("no port has the name {}", quoted(text));
                Fault::new(text, description, "a name of the pipeline, or a number")
            });
        }
        if text.starts_with('"') {
            let message = format!("{} is not a port name", quoted(text));
            return Err(Fault::new(text, message, "a name in quotes, or a number"));
        }
        number(text, field)
    }

    /// Reads the names that lines of the text give to ports. If several lines give a name,
    /// the first line counts.
    fn scan(&mut self) {
        if std::mem::replace(&mut self.is_scanned, true) {
            return;
        }
        for (_, line) in lines(self.text) {
            let line = line.trim_start();
            if !line.starts_with("port=") {
                continue;
            }
            let line = line.split('#').next().unwrap_or(line);
            // The reader of the line reports its problems.
            if let Ok(PortLine {
                port,
                name: Some(name),
                ..
            }) = PortLine::parse(line)
                && let Ok(port) = port_number(port)
            {
                self.numbers.entry(name.to_owned()).or_insert(port);
            }
        }
    }

    /// Returns the number of a named port, or `None` if other names are refused.
    fn number_of(&mut self, name: &str) -> Option<u32> {
        self.scan();
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        if self.is_closed {
            return None;
        }
        if self.assigned.is_empty() {
            self.used = numbered_ports(self.text);
        }
        self.last += 1;
        while self.used.contains(&self.last) {
            self.last += 1;
        }
        self.numbers.insert(name.to_owned(), self.last);
        self.assigned.push(name.to_owned());
        Some(self.last)
    }

    /// Returns a sentence about the names that no line gives, or `None` if there are none.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        if self.assigned.is_empty() {
            return None;
        }
        let shown = self.assigned.iter().take(NAMES_SHOWN);
        let shown: Vec<String> = shown
            .map(|name| format!("{name} = {}", self.numbers[name]))
            .collect();
        let ellipsis = if self.assigned.len() > NAMES_SHOWN {
            ", …"
        } else {
            ""
        };
        Some(format!(
            "{}: {}{ellipsis}",
            counted_verb(
                self.assigned.len(),
                "port",
                "is called by name and got a number",
                "are called by name and got numbers"
            ),
            shown.join(", ")
        ))
    }
}

/// Returns the numbers of the ports that a text gives by number.
fn numbered_ports(text: &str) -> HashSet<u32> {
    const PORT_KEYS: [&str; 3] = ["port", "output", "enqueue"];
    let mut used = HashSet::new();
    for line in text.lines() {
        let actions = line.find("actions=").unwrap_or(line.len());
        for (at, part) in parts_within(line) {
            let (key, value) = match part.rsplit_once(['=', ':']) {
                Some((key, value)) => (key, value),
                None => ("", part),
            };
            let names_port = PORT_KEYS.iter().any(|name| key.ends_with(name))
                || (at >= actions && (key.is_empty() || key.ends_with("actions")));
            if let Some(number) = value.parse().ok().filter(|_| names_port) {
                used.insert(number);
            }
        }
    }
    used
}

/// Returns the parts of a line with their offsets, also the parts within parentheses.
fn parts_within(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let separates = |c: char| matches!(c, ',' | '(' | ')') || c.is_whitespace();
    let offset = move |part: &str| (part.as_ptr() as usize) - (line.as_ptr() as usize);
    line.split(separates).map(move |part| (offset(part), part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_numbers_that_no_port_has() {
        let text = "in_port=1 actions=2,output:eth0\nactions=write_actions(output:3,output:eth1)\n\
            group_id=1,type=ff,bucket=watch_port:5,actions=output:6,4\npriority=7 actions=\"a b\"";
        let mut names = PortNames::of(text);
        assert_eq!(names.port("eth0", "in_port").unwrap(), 7);
        assert_eq!(names.port("\"eth1\"", "in_port").unwrap(), 8);
        assert_eq!(names.port("eth0", "in_port").unwrap(), 7);
        assert_eq!(names.port("local", "in_port").unwrap(), 0xffff_fffe);
        assert_eq!(names.port("0x10", "in_port").unwrap(), 16);
        assert_eq!(
            names.note().unwrap(),
            "2 ports are called by name and got numbers: eth0 = 7, eth1 = 8"
        );
        let mut single_name = PortNames::of("actions=output:eth0");
        assert_eq!(single_name.port("eth0", "in_port").unwrap(), 1);
        assert_eq!(
            single_name.note().unwrap(),
            "1 port is called by name and got a number: eth0 = 1"
        );
        for bad in ["", "\"\"", "\"a", "-1", "4294967296", "eth 0"] {
            assert!(names.port(bad, "in_port").is_err(), "{bad}");
        }
        assert!(PortNames::default().note().is_none());
    }

    #[test]
    fn lines_of_ports_give_names() {
        let text = "actions=output:eth1\r\n port=3,name=eth0 # left\nport=3,name=eth0x\n\
            port=x,name=bad\nport=local,name=br0\nport=4,name=eth0";
        let mut names = PortNames::of(text);
        assert_eq!(names.port("eth0", "in_port").unwrap(), 3, "the first line");
        assert_eq!(names.port("eth0x", "in_port").unwrap(), 3);
        assert_eq!(names.port("br0", "in_port").unwrap(), 0xffff_fffe);
        assert_eq!(names.note(), None);
        assert_eq!(
            names.port("eth1", "in_port").unwrap(),
            1,
            "3 and 4 are used"
        );
        assert_eq!(
            names.note().unwrap(),
            "1 port is called by name and got a number: eth1 = 1"
        );
        let mut known = PortNames::known(names.into_numbers());
        assert_eq!(known.port("\"eth1\"", "in_port").unwrap(), 1);
        assert_eq!(known.port("7", "in_port").unwrap(), 7);
        let fault = known.port("eth2", "in_port").unwrap_err();
        assert_eq!(fault.found(), "no port has the name `eth2`");
    }
}
