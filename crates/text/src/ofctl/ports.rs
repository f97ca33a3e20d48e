//! Port names, and the numbers assigned to them.

use std::collections::{BTreeMap, HashSet};

use super::scan::number;
use crate::Fault;
use crate::line::{counted_verb, quoted};

/// Names of reserved ports.
pub const RESERVED_PORTS: [(&str, u32); 9] = [
    ("UNSET", 0xffff_fff7),
    ("IN_PORT", 0xffff_fff8),
    ("TABLE", 0xffff_fff9),
    ("NORMAL", 0xffff_fffa),
    ("FLOOD", 0xffff_fffb),
    ("ALL", 0xffff_fffc),
    ("CONTROLLER", 0xffff_fffd),
    ("LOCAL", 0xffff_fffe),
    ("ANY", 0xffff_ffff),
];

/// The maximum number of names that a note lists.
const NAMES_SHOWN: usize = 8;

/// Numbers of the ports that a file gives by name.
///
/// A dump has the names of ports, not their numbers. In order of first use, each name
/// gets the lowest number that no port of the file has.
#[derive(Clone, Debug, Default)]
pub struct PortNames<'t> {
    text: &'t str,
    numbers: BTreeMap<String, u32>,
    used: HashSet<u32>,
    last: u32,
}

impl<'t> PortNames<'t> {
    /// Returns a table without names. Numbers of ports in `text` are never assigned to names.
    #[must_use]
    pub fn of(text: &'t str) -> PortNames<'t> {
        PortNames {
            text,
            ..PortNames::default()
        }
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
            || (text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"_-.@:".contains(&b)));
        if is_name {
            return Ok(self.number_of(name));
        }
        if text.starts_with('"') {
            let message = format!("{} is not a port name", quoted(text));
            return Err(Fault::new(text, message, "a name in quotes, or a number"));
        }
        number(text, field)
    }

    fn number_of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.numbers.is_empty() {
            self.used = numbered_ports(self.text);
        }
        self.last += 1;
        while self.used.contains(&self.last) {
            self.last += 1;
        }
        self.numbers.insert(name.to_owned(), self.last);
        self.last
    }

    /// Returns a sentence about the names, or `None` if there are none.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        if self.numbers.is_empty() {
            return None;
        }
        let mut named: Vec<(&str, u32)> = self
            .numbers
            .iter()
            .map(|(name, number)| (name.as_str(), *number))
            .collect();
        named.sort_by_key(|&(_, number)| number);
        let shown = named.iter().take(NAMES_SHOWN);
        let shown: Vec<String> = shown
            .map(|(name, number)| format!("{name} = {number}"))
            .collect();
        let ellipsis = if named.len() > NAMES_SHOWN {
            ", …"
        } else {
            ""
        };
        Some(format!(
            "{}: {}{ellipsis}",
            counted_verb(
                named.len(),
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
}
