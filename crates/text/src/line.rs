//! The lines of a text, and quoted text and counts for messages.

/// Returns the lines of a text, numbered from 1, without line ends and byte order mark.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> + Clone {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .zip(1..)
        .map(|(line, number)| (number, line))
}

/// True if a line is empty or has only white space.
#[must_use]
pub fn is_blank(line: &str) -> bool {
    line.bytes().all(|b| b.is_ascii_whitespace())
}

/// The maximum number of characters of a file that a message quotes.
const REPEATED_CHARACTERS: usize = 60;

/// Returns a piece of a file as messages show it: in backticks, with control characters
/// escaped, and cut after 60 characters.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut shown = String::from("`");
    for (index, c) in text.chars().enumerate() {
        if index == REPEATED_CHARACTERS {
            shown.push('…');
            break;
        }
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown.push('`');
    shown
}

/// Returns a count with its noun: `1 rule`, `2 rules`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Returns a count with its noun and verb: `1 rule matches`, `3 rules match`.
#[must_use]
pub fn counted_verb(count: usize, noun: &str, one: &str, many: &str) -> String {
    let verb = if count == 1 { one } else { many };
    format!("{} {verb}", counted(count, noun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_any_way_and_start_after_the_mark() {
        let numbered: Vec<_> = lines("\u{feff}a\r\nb\n\nc").collect();
        assert_eq!(numbered, [(1, "a"), (2, "b"), (3, ""), (4, "c")]);
    }

    #[test]
    fn messages_repeat_little_and_nothing_that_controls_a_terminal() {
        assert_eq!(quoted("a\u{1b}[1m"), "`a\\u{1b}[1m`");
        assert_eq!(quoted(&"x".repeat(1000)).chars().count(), 63);
    }
}
