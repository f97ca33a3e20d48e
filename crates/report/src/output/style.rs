//! Colours, and numbers formatted for people.
//!
//! Colours are escape sequences in the text. The streams remove them if the output
//! is not a terminal or `NO_COLOR` is set.

use anstyle::{AnsiColor, Style};

/// For headings and names.
pub const BOLD: Style = Style::new().bold();

/// For secondary details.
pub const DIM: Style = Style::new().dimmed();

/// For bars.
pub const BAR: Style = AnsiColor::Cyan.on_default();

/// For winners and permitted traffic.
pub const GOOD: Style = AnsiColor::Green.on_default();

/// For errors and dropped traffic.
pub const BAD: Style = AnsiColor::Red.on_default();

/// For notable values.
pub const NOTABLE: Style = AnsiColor::Yellow.on_default();

/// Returns a text in a style.
pub fn paint(style: Style, text: &str) -> String {
    if style == Style::new() || text.is_empty() {
        return text.to_owned();
    }
    format!("{style}{text}{style:#}")
}

/// Returns the colour of an action if its name implies one.
pub fn action_style(name: &str) -> Style {
    let word = name.split([':', ',', '(']).next().unwrap_or(name);
    match word.to_ascii_lowercase().as_str() {
        "allow" | "accept" | "permit" | "pass" => GOOD,
        "drop" | "deny" | "reject" | "block" | "discard" => BAD,
        "log" | "alert" | "warn" => NOTABLE,
        _ => Style::new(),
    }
}

/// Returns a number with grouped digits: `1,234,567`.
pub fn grouped(number: impl TryInto<u128>) -> String {
    let number: u128 = number.try_into().unwrap_or(u128::MAX);
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number with its noun: `1 rule`, `2,000 rules`.
pub fn counted(count: impl TryInto<u128> + Copy, noun: &str) -> String {
    let number = grouped(count);
    match (number.as_str(), noun.strip_suffix("y")) {
        ("1", _) => format!("1 {noun}"),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        _ if noun.ends_with("ch") || noun.ends_with('s') => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

/// Returns a percentage: `38.2 %`, or `<0.1 %` if it would round to zero.
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.000_5 {
        "<0.1 %".to_owned()
    } else {
        format!("{:.1} %", share * 100.0)
    }
}

/// Joins items with commas, in lines that fit on the terminal next to their label.
/// Lines have at most 84 characters unless a single item is longer.
pub fn listed(items: impl IntoIterator<Item = String>) -> String {
    let room = super::width().map_or(LINE_LENGTH, |width| {
        usize::from(width).saturating_sub(LABEL_WIDTH)
    });
    listed_within(items, room.clamp(MIN_LINE_LENGTH, LINE_LENGTH))
}

/// Joins items in lines of at most `line` characters.
fn listed_within(items: impl IntoIterator<Item = String>, line: usize) -> String {
    let mut text = String::new();
    let mut room = line;
    for item in items {
        let width = item.chars().count() + 2;
        if text.is_empty() {
        } else if width <= room {
            text.push_str(", ");
        } else {
            text.push_str(",\n");
            room = line;
        }
        text.push_str(&item);
        room = room.saturating_sub(width);
    }
    text
}

/// The maximum line length of a list, and the minimum on narrow terminals.
const LINE_LENGTH: usize = 84;
const MIN_LINE_LENGTH: usize = 20;

/// The width of a list's label, plus one for the comma at the end of a line.
const LABEL_WIDTH: usize = 13;

/// Returns a bar of `width` characters, filled to `share` in eighths.
pub fn bar(share: f64, width: u32) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * f64::from(width) * 8.0).round();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most 8 * width
    let mut eighths = eighths as usize;
    if eighths == 0 && share > 0.0 {
        eighths = 1;
    }
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// Returns a number with three significant digits: `0.123`, `1.23`, `12.3`, `123`.
pub fn three_digits(number: f64) -> String {
    match number.abs() {
        n if n >= 99.95 => format!("{number:.0}"),
        n if n >= 9.995 => format!("{number:.1}"),
        n if n >= 0.9995 || n == 0.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

/// Returns a size in bytes: `21.3 KiB`.
#[allow(clippy::cast_precision_loss)] // shown with three digits
pub fn bytes(count: usize) -> String {
    let mut number = count as f64;
    if number < 1024.0 {
        return format!("{count} B");
    }
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if number < 1000.0 {
            break;
        }
        number /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", three_digits(number))
}

/// Returns a duration in seconds: `1.23 ms`.
pub fn seconds(duration: f64) -> String {
    let (number, unit) = match duration {
        d if d >= 1.0 => (d, "s"),
        d if d >= 1e-3 => (d * 1e3, "ms"),
        d if d >= 1e-6 => (d * 1e6, "µs"),
        d => (d * 1e9, "ns"),
    };
    format!("{} {unit}", three_digits(number))
}

/// Returns a large number: `21.3 million`, `4.2 thousand`.
pub fn large(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{} billion", three_digits(n / 1e9)),
        n if n >= 1e6 => format!("{} million", three_digits(n / 1e6)),
        n if n >= 1e4 => format!("{} thousand", three_digits(n / 1e3)),
        n => three_digits(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(0u32), "0");
        assert_eq!(grouped(999u32), "999");
        assert_eq!(grouped(1_234_567u32), "1,234,567");
        assert_eq!(counted(1, "rule"), "1 rule");
        assert_eq!(counted(1000, "rule"), "1,000 rules");
        assert_eq!(counted(2, "entry"), "2 entries");
        assert_eq!(counted(0, "batch"), "0 batches");
        assert_eq!(percent(0.3821), "38.2 %");
        assert_eq!(percent(0.0001), "<0.1 %");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(21_812), "21.3 KiB");
        assert_eq!(seconds(0.001_234), "1.23 ms");
        assert_eq!(large(21_345_678.0), "21.3 million");
    }

    #[test]
    fn long_lists_are_broken_between_items() {
        for line in [MIN_LINE_LENGTH, LINE_LENGTH] {
            let text = listed_within((0..40).map(|number| format!("number {number}")), line);
            assert!(text.lines().count() > 3);
            assert!(
                text.lines().all(|found| found.chars().count() <= line + 1),
                "{text}"
            );
            assert_eq!(text.replace('\n', " ").split(", ").count(), 40);
        }
    }

    #[test]
    fn bars_fill_in_eighths() {
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(1.0 / 32.0, 4), "▏");
        assert_eq!(bar(1e-9, 4), "▏");
    }
}
