//! The statements of a text: flows, groups, meters, tables, ports.

use super::scan::first_word;
use crate::line::lines;

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatementKind {
    /// A flow.
    Flow,
    /// A group: `group_id=…`.
    Group,
    /// A meter: `meter=…`, with its bands on the next lines.
    Meter,
    /// A table's configuration: `table_id=…`.
    Table,
    /// A port: `port=…`.
    Port,
}

impl StatementKind {
    /// Returns the kind of a line by its first key.
    pub(super) fn of(line: &str) -> StatementKind {
        match line {
            _ if line.starts_with("group_id") => StatementKind::Group,
            _ if line.starts_with("table_id") => StatementKind::Table,
            _ if line.starts_with("meter=") => StatementKind::Meter,
            _ if line.starts_with("port=") => StatementKind::Port,
            _ => StatementKind::Flow,
        }
    }
}

/// A flow, a group, a meter, a port or a table's configuration. It is one line, but a meter
/// may have several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'t> {
    /// The kind.
    pub kind: StatementKind,
    /// The number of its first line, counted from 1.
    pub number: usize,
    /// Its lines.
    pub lines: &'t str,
    /// Its text, without comment, the words `flow add`, and white space at the ends.
    pub text: &'t str,
}

impl<'t> Statement<'t> {
    /// Returns the number and the text of the line that has `part` of the statement.
    #[must_use]
    pub fn line_of(&self, part: &str) -> (usize, &'t str) {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.lines.as_ptr() as usize);
        let offset = offset.min(self.lines.len());
        let mut start = 0;
        for (index, line) in self.lines.split('\n').enumerate() {
            if offset <= start + line.len() {
                return (self.number + index, line.strip_suffix('\r').unwrap_or(line));
            }
            start += line.len() + 1;
        }
        (self.number, self.lines)
    }
}

/// True for the heading of a reply, such as `OFPST_FLOW reply (OF1.3) (xid=0x2):`.
#[must_use]
pub fn is_heading(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let is_reply = |word: &str| {
        word.contains("ST_") && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
    };
    words.next().is_some_and(is_reply) && words.next() == Some("reply")
}

/// Returns the statements of a text. Comments, empty lines and reply headings are skipped.
pub fn statements(text: &str) -> impl Iterator<Item = Statement<'_>> + Clone {
    let mut numbered_lines = lines(text).peekable();
    std::iter::from_fn(move || {
        loop {
            let (number, line) = numbered_lines.next()?;
            let content = line.split('#').next().unwrap_or(line).trim();
            if content.is_empty() || is_heading(content) {
                continue;
            }
            let (kind, content) = classify(content);
            if kind != StatementKind::Meter
                || content.len() < line.trim_end().len() - offset(line, content)
            {
                return Some(Statement {
                    kind,
                    number,
                    lines: line,
                    text: content,
                });
            }
            // Each band of a meter is on its own line.
            let mut meter_end = offset(text, line) + line.len();
            while let Some(&(_, band)) = numbered_lines.peek() {
                if !band.trim_start().starts_with("type=") || band.contains('#') {
                    break;
                }
                meter_end = offset(text, band) + band.len();
                numbered_lines.next();
            }
            return Some(Statement {
                kind,
                number,
                lines: &text[offset(text, line)..meter_end],
                text: text[offset(text, content)..meter_end].trim_end(),
            });
        }
    })
}

/// Returns the offset of `part`, which must be a slice of `text`, in `text`.
fn offset(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize)
}

/// Returns the kind of a line, and the line without the words that name the kind.
fn classify(line: &str) -> (StatementKind, &str) {
    let (word, rest) = first_word(line);
    let kind = match word {
        "flow" => Some(StatementKind::Flow),
        "group" => Some(StatementKind::Group),
        "meter" => Some(StatementKind::Meter),
        _ => None,
    };
    if let Some(kind) = kind {
        let (command, after) = first_word(rest);
        return (kind, if command == "add" { after } else { rest });
    }
    match word {
        "add" => (StatementKind::Flow, rest),
        _ => (StatementKind::of(line), line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, Problems};

    #[test]
    fn headings_and_comments_are_left_out_and_bands_are_of_their_meter() {
        let text = "OFPST_FLOW reply (OF1.3) (xid=0x2):\n a # b\r\n\n# c\nflow add d\n\
            OFPST_METER_CONFIG reply (OF1.3) (xid=0x2):\nmeter=1 kbps bands=\ntype=drop rate=1\n\
            type=drop rate=x\n\nmeter=2 kbps bands=type=drop,rate=1 # no\ntable_id=1\ngroup_id=7\n port=3,link=down # c";
        let statements_read: Vec<_> = statements(text)
            .map(|one| (one.kind, one.number, one.text))
            .collect();
        use StatementKind::{Flow, Group, Meter, Port, Table};
        assert_eq!(
            statements_read,
            [
                (Flow, 2, "a"),
                (Flow, 5, "d"),
                (
                    Meter,
                    7,
                    "meter=1 kbps bands=\ntype=drop rate=1\ntype=drop rate=x"
                ),
                (Meter, 11, "meter=2 kbps bands=type=drop,rate=1"),
                (Table, 12, "table_id=1"),
                (Group, 13, "group_id=7"),
                (Port, 14, "port=3,link=down"),
            ]
        );
        let meter = statements(text).nth(2).unwrap();
        let part = &meter.text[meter.text.len() - 1..];
        let mut problems = Problems::new("f");
        problems.push_fault_of(&meter, Fault::new(part, "`x`", "a number"));
        let problem = &problems.shown()[0];
        assert_eq!((problem.line, problem.column, problem.length), (9, 16, 1));
        assert_eq!(problem.excerpt, "type=drop rate=x");
    }
}
